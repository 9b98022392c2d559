"""Sums and maps over blocks of rows, wherever the rows are."""

from contextlib import nullcontext

import numpy as np
from joblib import parallel_config
from scipy import sparse

from .chunks import ChunkRows, RowChunks
from .distributed import DistributedRows, from_dask, is_dask
from .memory_maps import MemoryMapRows, is_memory_map
from .source import ArrayRows, RowSource


def block_sum(function, X, *aligned, n_jobs=None, row_elements=None):
    """Sum ``function(X_block, *aligned_blocks)`` over blocks of rows, in one pass.

    Parameters
    ----------
    function : callable
        Maps blocks to a tuple of arrays whose shapes do not depend on the block.
    X : ndarray, sparse matrix, or rows that are read lazily, of shape (n, d)
        Sparse blocks reach `function` as dense arrays.
    *aligned : array of shape (n, ...)
        In memory, or as :func:`block_map` and :func:`align` return them; cut at the same rows.
    n_jobs : int, default=None
        Number of threads that share the blocks.
    row_elements : int, default=None
        Elements a row stands for when blocks are cut; None means d.

    Returns
    -------
    tuple of ndarray
        The sums: of int64 where `function` returns integers, otherwise of float64.
    """
    rows = _source(X)
    return rows.block_sum(function, aligned, n_jobs, row_elements or _width(rows))


def block_map(function, X, *aligned, n_jobs=None, row_elements=None):
    """Collect ``function(X_block, *aligned_blocks)``, one entry a row.

    Parameters are those of :func:`block_sum`; `function` returns an array whose
    first axis runs over the rows of the block.

    Returns
    -------
    array of shape (n, ...)
        In memory; for distributed rows a lazy array, cut at the same rows.
    """
    rows = _source(X)
    return rows.block_map(function, aligned, n_jobs, row_elements or _width(rows))


def sample(n_rows, X, *aligned):
    """Return about `n_rows` rows that are spread evenly, as shapes alone say.

    Parameters
    ----------
    n_rows : int
    X, *aligned
        As for :func:`block_sum`.

    Returns
    -------
    X, *aligned
        In memory; of distributed rows, a few that stay where they are.
    """
    return _source(X).sample(n_rows, aligned)


def map_rows(function, X, tail, names=None, dtype=np.float64):
    """Return the rows that `function` makes of lazy rows, each by itself, as lazy rows.

    Parameters
    ----------
    function : callable
        From a chunk, in the container that it came in, to as many rows.
    X
        Rows that are read lazily.
    tail : tuple of int
        Shape of a new row.
    names : list of str, default=None
        Of its columns.
    dtype : dtype, default=float64

    Returns
    -------
    RowSource
    """
    return as_lazy(X).map(function, tail, names, dtype)


def on_first_row(function, X):
    """Return ``function(row)`` for the first of lazy rows; it runs where the rows are."""
    return as_lazy(X).on_first_row(function)


def as_lazy(X):
    """Return memory maps, chunks and distributed collections as lazy rows, all else as it is."""
    if isinstance(X, RowChunks):
        return ChunkRows(X)
    if is_memory_map(X):
        return MemoryMapRows(X)
    return from_dask(X) if is_dask(X) else X


def is_lazy(X):
    """Tell whether `X` is what :func:`as_lazy` makes of rows that are not in memory."""
    return isinstance(X, RowSource)


def gathered(X, owner):
    """Return lazy rows as an array, or refuse to gather distributed ones.

    Parameters
    ----------
    X : RowSource
    owner : str
        Name of the estimator, for the message.

    Returns
    -------
    ndarray
    """
    if isinstance(X, DistributedRows):
        raise TypeError(
            f"{owner} needs all rows in one place, and those of X are on a cluster, from which none "
            "is gathered; give X in memory, or use an estimator of dpselect."
        )
    return block_map(np.asarray, X)


def run_here(X):
    """Return a context in which joblib's jobs on `X` stay in this process, if they have to.

    Distributed rows are worked on by the whole cluster already, one job after the other; a job on
    one of its workers would wait for the others.
    """
    here = isinstance(X, DistributedRows)
    return parallel_config(backend="sequential") if here else nullcontext()


def _source(X):
    X = as_lazy(X)
    if is_lazy(X):
        return X
    return ArrayRows(X.tocsr() if sparse.issparse(X) else np.asarray(X))


def _width(rows):
    return rows.shape[1] if rows.ndim > 1 else 1

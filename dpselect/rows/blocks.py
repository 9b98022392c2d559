"""Sums and maps over blocks of rows, wherever the rows are."""

from contextlib import nullcontext

import numpy as np
from joblib import parallel_config
from scipy import sparse

from .chunks import ChunkRows, RowChunks
from .cutting import collect, join, over_blocks, plus, spread_runs
from .distributed import DistributedRows, from_dask, is_dask
from .memory_maps import MemoryMapRows, is_memory_map
from .source import RowSource
from .sparse_rows import rows_between


def block_sum(function, X, *aligned, n_jobs=None, row_elements=None, beside=None):
    """Sum ``function(X_block, *aligned_blocks)`` over blocks of rows, in one pass.

    `function` maps blocks to a tuple of arrays whose shapes do not depend on the block; sparse
    blocks reach it as dense arrays, or, with a number for `beside`, as CSR arrays. `aligned` are
    arrays of shape (n, ...), in memory or as :func:`block_map` and :func:`align` return them.
    `n_jobs` threads share the blocks. A row stands for `row_elements` numbers when blocks are cut;
    None means its own. A row that stays sparse stands for its stored entries, or `beside` numbers
    if these are more.

    Returns a tuple of the sums: of int64 where `function` returns integers, otherwise of float64.
    """
    X, row_elements = _readable(X, row_elements)
    if is_lazy(X):
        return X.block_sum(function, aligned, n_jobs, row_elements, beside)
    total = None
    for part in over_blocks(function, X, aligned, row_elements, n_jobs, beside):
        total = plus(total, part)
    return total


def block_map(function, X, *aligned, n_jobs=None, row_elements=None, beside=None):
    """Collect ``function(X_block, *aligned_blocks)``, an array with one entry a row.

    As for :func:`block_sum`; of distributed rows it is a lazy array, cut at the same rows.
    """
    X, row_elements = _readable(X, row_elements)
    if is_lazy(X):
        return X.block_map(function, aligned, n_jobs, row_elements, beside)
    return collect(over_blocks(function, X, aligned, row_elements, n_jobs, beside), X.shape[0])


def hold(function, X, *aligned, tails):
    """Return lazy rows that are read once, together with ``function(block, *aligned_blocks)`` of them.

    They stay in the memory of the workers that read them, together: if rows are made anew, what was
    computed of them is, too. `function` returns a tuple of arrays with one entry a row, of the shapes
    `tails`; sparse blocks reach it as CSR arrays.

    Returns a tuple of lazy rows; or None where nothing can be held, so that each pass reads and checks.
    """
    return X.hold(function, aligned, tails) if is_lazy(X) else None


def sample(n_rows, X, *aligned):
    """Return about `n_rows` evenly spread rows, chosen by shapes alone, with aligned arrays.

    In memory; of distributed rows, a few that stay where they are.
    """
    X, _ = _readable(X, None)
    if is_lazy(X):
        return X.sample(n_rows, aligned)
    runs = spread_runs(n_rows, X.shape[0])
    # slices of sparse rows would be copied once more
    first = [rows_between(X, rows) if sparse.issparse(X) else X[rows] for rows in runs]
    return join(first), *(join([array[rows] for rows in runs]) for array in aligned)


def in_one_place(function, X, *aligned):
    """Return ``function(X, *aligned)`` of distributed rows in one chunk, computed where they are."""
    return X.in_one_place(function, aligned)


def map_rows(function, X, tail, names=None, dtype=np.float64):
    """Apply `function` to lazy rows, each by itself, and return lazy rows.

    It takes a chunk, in the container that it came in, to as many rows of shape `tail`.
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
    """Return whether `X` is a lazy form of rows, as :func:`as_lazy` returns it."""
    return isinstance(X, RowSource)


def gathered(X, owner):
    """Return lazy rows as an array, or refuse to gather distributed ones for the estimator `owner`."""
    if isinstance(X, DistributedRows):
        raise TypeError(
            f"{owner} needs all rows in one place, and those of X are on a cluster, from which none "
            "is gathered; give X in memory, or use an estimator of dpselect."
        )
    return block_map(np.asarray, X)


def run_here(X):
    """Return a context in which joblib's jobs on `X` stay in this process, if necessary.

    Distributed rows are worked on by the whole cluster already, one job after the other; a job on
    one of its workers would wait for the others.
    """
    here = isinstance(X, DistributedRows)
    return parallel_config(backend="sequential") if here else nullcontext()


def _readable(X, row_elements):
    X = as_lazy(X)
    if not is_lazy(X):
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    return X, row_elements or (X.shape[1] if X.ndim > 1 else 1)

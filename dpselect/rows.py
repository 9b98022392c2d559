"""The one place where rows are read: sums and maps over blocks of consecutive rows.

A block is a slice of a numpy array, of a memory map or of a sparse matrix, small
enough to stay in a processor's cache. Block borders depend on shapes alone and
partial sums are added in the order of the blocks, so results do not depend on the
number of threads.
"""

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

BLOCK_ELEMENTS = 1 << 18
# consecutive rows of a sample: a file is read in pages
RUN = 64


def row_blocks(n_rows, row_elements):
    """Cut `n_rows` rows into slices of about 2**18 elements each.

    Parameters
    ----------
    n_rows : int
    row_elements : int
        Number of elements that the work on one row touches.

    Returns
    -------
    list of slice
    """
    step = rows_in_block(row_elements)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def rows_in_block(row_elements):
    """Return how many rows a block has, but for the last one."""
    return max(1, BLOCK_ELEMENTS // max(1, row_elements))


def block_sum(function, X, *aligned, n_jobs=None, row_elements=None):
    """Sum ``function(X_block, *aligned_blocks)`` over blocks of rows.

    Parameters
    ----------
    function : callable
        Maps blocks to a tuple of arrays whose shapes do not depend on the block.
    X : ndarray, memmap or sparse matrix of shape (n, d)
        Sparse blocks reach `function` as dense arrays.
    *aligned : ndarray of shape (n, ...)
        Further arrays, cut at the same rows.
    n_jobs : int, default=None
        Number of threads that share the blocks.
    row_elements : int, default=None
        Elements a row stands for when blocks are cut; None means d.

    Returns
    -------
    tuple of ndarray
        The sums: of int64 where `function` returns integers, otherwise of float64.
    """
    total = None
    for part in _over_blocks(function, X, aligned, n_jobs, row_elements):
        if total is None:
            kinds = [np.int64 if np.asarray(t).dtype.kind in "biu" else np.float64 for t in part]
            total = [np.array(term, dtype=kind) for term, kind in zip(part, kinds)]
        else:
            for term, increment in zip(total, part):
                term += increment
    return tuple(total)


def block_map(function, X, *aligned, n_jobs=None, row_elements=None):
    """Collect ``function(X_block, *aligned_blocks)``, one entry a row.

    Parameters are those of :func:`block_sum`; `function` returns an array whose
    first axis runs over the rows of the block.

    Returns
    -------
    ndarray of shape (n, ...)
    """
    parts = list(_over_blocks(function, X, aligned, n_jobs, row_elements))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _over_blocks(function, X, aligned, n_jobs, row_elements):
    # float sums over blocks of a plain array: a memory map's slices are views of
    # the file, and only the block at work is read into memory
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    blocks = row_blocks(X.shape[0], row_elements or X.shape[1])

    def run(rows):
        block = X[rows]
        if sparse.issparse(block):
            block = block.toarray()
        return function(block, *(array[rows] for array in aligned))

    if n_jobs in (None, 1) or len(blocks) == 1:
        return map(run, blocks)
    return Parallel(n_jobs=n_jobs, backend="threading", return_as="generator")(
        delayed(run)(rows) for rows in blocks
    )


def sample(n_rows, X, *aligned):
    """Return about `n_rows` rows from all over a table, chosen from its shape alone.

    Parameters
    ----------
    n_rows : int
    X : ndarray, memmap or sparse matrix of shape (n, d)
    *aligned : ndarray of shape (n, ...)
        Further arrays, of which the entries of the same rows are returned.

    Returns
    -------
    tuple of the same arrays
        Runs of consecutive rows at even distances.
    """
    n, run = X.shape[0], min(RUN, X.shape[0])
    # no more runs than fit in side by side
    n_runs = max(1, min(n_rows, n) // run)
    chosen = (np.arange(n_runs) * (n // n_runs))[:, None] + np.arange(run)
    chosen = chosen.ravel()
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    return X[chosen], *(array[chosen] for array in aligned)


def take(X, indices):
    """Return the rows of `X` at `indices`, in the container that `X` came in.

    Parameters
    ----------
    X : ndarray, memmap, sparse matrix, dataframe (pandas or polars), list
    indices : ndarray of int

    Returns
    -------
    Rows in the same container.
    """
    if hasattr(X, "iloc"):
        return X.iloc[indices]
    if hasattr(X, "shape"):
        return X[indices]
    return [X[i] for i in indices]


def take_records(X, y, indices):
    """Return the rows of `X` and the entries of `y` at `indices`, as :func:`take` does.

    Parameters
    ----------
    X, y
        Rows and labels; y may be None.
    indices : ndarray of int

    Returns
    -------
    X, y
    """
    return take(X, indices), None if y is None else take(y, indices)


def n_rows(X):
    """Return the number of rows of an array, sparse matrix, dataframe or list."""
    if not hasattr(X, "shape") and not hasattr(X, "__len__"):
        raise TypeError(
            f"X of type {type(X).__name__} has no rows; give an array, a sparse matrix, a "
            "dataframe or a list."
        )
    return X.shape[0] if hasattr(X, "shape") else len(X)

"""Blocks of consecutive rows, small enough to stay in a processor's cache.

Block borders depend on shapes alone (of sparse rows, on the number of stored entries, too) and partial
sums are added in the order of the blocks, so results do not depend on the number of threads.
"""

import warnings
from functools import partial, reduce
from itertools import starmap

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from .sparse_rows import rows_between

BLOCK_ELEMENTS = 1 << 18
# consecutive rows in a sample
RUN = 64


def row_blocks(n_rows, row_elements):
    """Cut rows, on each of which the work touches `row_elements` numbers, into slices."""
    return _slices(n_rows, rows_in_block(row_elements))


def _slices(n_rows, step):
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def rows_in_block(row_elements):
    """Return how many rows a block has, but for the last one: about 2**18 elements."""
    return max(1, BLOCK_ELEMENTS // max(1, row_elements))


def sparse_blocks(X, beside):
    """Cut rows of a sparse matrix by stored entries, or by `beside` numbers a row if these are more."""
    width = max(beside, -(-X.nnz // max(1, X.shape[0])))
    # a sum over a block may have an entry for each column, and adding it should be a small part
    step = max(rows_in_block(width), 4 * X.shape[1] // width)
    return _slices(X.shape[0], step)


def over_blocks(function, X, aligned, row_elements, n_jobs=None, beside=None):
    """Iterate over ``function(block, *aligned_blocks)`` of the blocks of rows in memory.

    A block of a sparse matrix is dense; with a number for `beside` it is a CSR array, as
    :func:`sparse_blocks` cuts it. Nothing of this function is on the stack when `function` is called.
    """
    if not sparse.issparse(X):
        slices, block = row_blocks(X.shape[0], row_elements), X.__getitem__
    elif beside is None:
        slices, block = row_blocks(X.shape[0], row_elements), lambda rows: X[rows].toarray()
    else:
        X = X.tocsr()
        slices, block = sparse_blocks(X, beside), partial(rows_between, X)

    def cut(rows):
        return block(rows), *(array[rows] for array in aligned)

    if n_jobs in (None, 1) or len(slices) == 1:
        return starmap(function, map(cut, slices))
    return in_threads(lambda rows: function(*cut(rows)), slices, n_jobs)


def in_threads(function, slices, n_jobs):
    """Iterate over ``function(rows)`` of slices of rows, in their order."""
    # the threads restore each other's filters of warnings
    with warnings.catch_warnings():
        yield from Parallel(n_jobs=n_jobs, backend="threading", return_as="generator")(
            delayed(function)(rows) for rows in slices
        )


def plus(total, part):
    """Add a tuple of arrays to a total, in place; the first one is added to None.

    Sums are of int64 where the first arrays are integers, otherwise of float64.
    """
    if total is None:
        kinds = [np.int64 if np.asarray(t).dtype.kind in "biu" else np.float64 for t in part]
        return tuple(np.array(term, dtype=kind) for term, kind in zip(part, kinds))
    for term, increment in zip(total, part):
        term += increment
    return total


def add_up(parts):
    """Return the sums of tuples of arrays, in their order."""
    return reduce(plus, parts, None)


def collect(parts, n_rows):
    """Return arrays whose first axes have `n_rows` entries in all as one array."""
    collected, at = None, 0
    for part in parts:
        if len(part) == n_rows:
            return part
        if collected is None:
            # here, and not joined in the end: that would need the memory twice
            collected = np.empty((n_rows, *part.shape[1:]), dtype=part.dtype)
        # labels that are texts become longer on the way
        if part.dtype != collected.dtype:
            collected = collected.astype(np.result_type(collected, part))
        collected[at : at + len(part)] = part
        at += len(part)
    return collected


def spread_runs(requested, n_rows):
    """Return slices of about `requested` rows in all, spread evenly over `n_rows`."""
    if requested >= n_rows:
        return [slice(0, n_rows)]
    run = min(RUN, requested)
    starts = np.linspace(0, n_rows - run, max(1, -(-requested // RUN))).astype(int)
    return [slice(start, start + run) for start in starts.tolist()]


def join(parts):
    """Return blocks of rows as one array; as a CSR matrix, if one of them is sparse."""
    if len(parts) == 1:
        return parts[0]
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)

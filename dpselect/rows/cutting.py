"""Cut rows into blocks of consecutive ones that fit into a processor's cache.

Block borders depend on shapes alone (of sparse rows, on the number of stored entries, too) and partial
sums are added in the order of the blocks, so results do not depend on the number of threads.
"""

import warnings
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import starmap

import numpy as np
from joblib import effective_n_jobs, parallel_config
from scipy import sparse

from .sparse_rows import rows_between

BLOCK_ELEMENTS = 1 << 18
# upper bound on the rows of a sparse block
MAX_SUMMED = 1 << 18
# length of runs of consecutive rows in a sample
RUN = 64
# least blocks per thread, below which threads cost more than they save, and most blocks per task
WORTH_A_THREAD, AT_A_TIME = 4, 8
# tasks per thread that may finish ahead of their use
AHEAD = 2


def row_blocks(n_rows, row_elements):
    """Cut rows into slices, for work that touches `row_elements` numbers per row."""
    return _slices(n_rows, rows_in_block(row_elements))


def _slices(n_rows, step):
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def rows_in_block(row_elements):
    """Return the number of rows in all blocks but the last: about 2**18 elements."""
    return max(1, BLOCK_ELEMENTS // max(1, row_elements))


def sparse_blocks(X, beside):
    """Cut rows of a sparse matrix by stored entries, or by `beside` numbers a row if these are more."""
    return equally_sparse_blocks(X.shape, max(beside, -(-X.nnz // max(1, X.shape[0]))))


def equally_sparse_blocks(shape, width):
    """Cut sparse rows of `width` stored entries."""
    # a sum over a block may have an entry per column, and adding it should be relatively cheap
    # the allowance for rounding in linear models' noise does not cover sums over more rows
    step = max(rows_in_block(width), min(4 * shape[1] // width, MAX_SUMMED))
    return _slices(shape[0], step)


def over_blocks(function, X, aligned, row_elements, n_jobs=None, beside=None):
    """Iterate over ``function(block, *aligned_blocks)`` of the blocks of rows in memory.

    A block of a sparse matrix is dense; with a number for `beside` it is a CSR array, as
    :func:`sparse_blocks` cuts it. Rows of numbers become float64.
    Nothing of this function is on the stack when `function` is called.
    """
    to_dense = sparse.issparse(X) and beside is None
    if sparse.issparse(X) and not to_dense:
        X = X.tocsr()
        slices, block = sparse_blocks(X, beside), partial(rows_between, X)
    else:
        slices, block = row_blocks(X.shape[0], row_elements), X.__getitem__

    def cut(rows):
        # first, because duplicate entries add up in a dense array
        rows_here = _as_floats(block(rows))
        return rows_here.toarray() if to_dense else rows_here, *(array[rows] for array in aligned)

    n_threads = min(n_threads_of(n_jobs), len(slices) // WORTH_A_THREAD)
    if n_threads <= 1:
        return starmap(function, map(cut, slices))
    at_a_time = min(AT_A_TIME, -(-len(slices) // (2 * AHEAD * n_threads)))
    return in_threads(lambda rows: function(*cut(rows)), slices, n_threads, at_a_time)


def _as_floats(block):
    # chunks may be dataframes, which have no dtype
    numbers = hasattr(block, "dtype") and block.ndim == 2 and block.dtype.kind in "biuf"
    return block.astype(np.float64, copy=False) if numbers else block


def n_threads_of(n_jobs):
    """Return the number of threads that `n_jobs` stands for, as in joblib; None is always one."""
    if n_jobs in (None, 1):
        return 1
    with parallel_config(backend="threading"):
        return effective_n_jobs(n_jobs)


def in_threads(function, slices, n_threads, at_a_time=1):
    """Iterate over ``function(rows)`` of slices of rows, in order, with several threads."""

    def on_some(some):
        # threads do not inherit numpy's error settings
        with np.errstate(all="ignore"):
            return [function(rows) for rows in some]

    # warning filters are global, so threads would restore each other's
    with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as threads:
        running = deque()
        for start in range(0, len(slices), at_a_time):
            running.append(threads.submit(on_some, slices[start : start + at_a_time]))
            if len(running) > AHEAD * n_threads:
                yield from running.popleft().result()
        while running:
            yield from running.popleft().result()


def plus(total, part):
    """Add a tuple of arrays to a total, in place; a total of None starts with the tuple.

    Sums are of int64 where the first arrays are integers, otherwise of float64.
    """
    if total is None:
        kinds = [np.int64 if np.asarray(t).dtype.kind in "biu" else np.float64 for t in part]
        return tuple(np.array(term, dtype=kind) for term, kind in zip(part, kinds))
    for term, increment in zip(total, part):
        term += increment
    return total


def add_up(parts):
    """Return the sums of tuples of arrays, added in order."""
    return reduce(plus, parts, None)


def collect(parts, n_rows):
    """Concatenate arrays whose first axes have `n_rows` entries in all."""
    collected, at = None, 0
    for part in parts:
        if len(part) == n_rows:
            return part
        if collected is None:
            # write into one array: concatenating at the end would need twice the memory
            order = "F" if np.isfortran(part) else "C"
            collected = np.empty((n_rows, *part.shape[1:]), dtype=part.dtype, order=order)
        # later blocks may have longer texts, and so a wider dtype
        if part.dtype != collected.dtype:
            collected = collected.astype(np.result_type(collected, part))
        collected[at : at + len(part)] = part
        at += len(part)
        del part  # before the next one is computed
    return collected


def all_indices(n_rows):
    """Return the index of each row, in the shortest signed type."""
    return np.arange(n_rows, dtype=np.min_scalar_type(-n_rows))


def packed(indices, n_rows):
    """Return strictly ascending indices as a mask of one bit a row, others unchanged."""
    if not (indices[1:] > indices[:-1]).all():
        return indices
    mask = np.zeros(n_rows, dtype=bool)
    mask[indices] = True
    return np.packbits(mask)


def unpacked(indices, n_rows):
    """Return the indices of a mask made by :func:`packed`; slices and others unchanged."""
    if getattr(indices, "dtype", None) != np.uint8:
        return indices
    return all_indices(n_rows)[np.unpackbits(indices, count=n_rows).view(bool)]


def spread_runs(requested, n_rows):
    """Return slices of about `requested` rows in all, spread evenly over `n_rows`."""
    if requested >= n_rows:
        return [slice(0, n_rows)]
    run = min(RUN, requested)
    starts = np.linspace(0, n_rows - run, max(1, -(-requested // RUN))).astype(int)
    return [slice(start, start + run) for start in starts.tolist()]


def join(parts):
    """Concatenate blocks of rows; as a CSR matrix, if one of them is sparse."""
    if len(parts) == 1:
        return parts[0]
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)

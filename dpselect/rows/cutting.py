"""Blocks of consecutive rows, small enough to stay in a processor's cache.

Block borders depend on shapes alone and partial sums are added in the order of the blocks, so
results do not depend on the number of threads.
"""

import numpy as np
from scipy import sparse

BLOCK_ELEMENTS = 1 << 18


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


def over_blocks(function, piece, aligned, row_elements):
    """Yield ``function(block, *aligned_blocks)`` over the blocks of rows in memory.

    Parameters
    ----------
    function : callable
    piece : ndarray or CSR matrix
        Sparse blocks reach `function` as dense arrays.
    aligned : list of ndarray
        Cut at the same rows.
    row_elements : int
    """
    for rows in row_blocks(piece.shape[0], row_elements):
        block = piece[rows]
        if sparse.issparse(block):
            block = block.toarray()
        yield function(block, *(array[rows] for array in aligned))


def add_up(parts):
    """Return the sums of tuples of arrays, in their order.

    Parameters
    ----------
    parts : iterable of tuple

    Returns
    -------
    tuple of ndarray
        Of int64 where the parts are integers, otherwise of float64.
    """
    total = None
    for part in parts:
        if total is None:
            kinds = [np.int64 if np.asarray(t).dtype.kind in "biu" else np.float64 for t in part]
            total = [np.array(term, dtype=kind) for term, kind in zip(part, kinds)]
        else:
            for term, increment in zip(total, part):
                term += increment
    return tuple(total)


def join(parts):
    """Return blocks of rows as one array; as a CSR matrix, if one of them is sparse."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)

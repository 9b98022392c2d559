"""Sparse rows as CSR arrays without duplicate entries."""

from copy import copy
from functools import lru_cache

import numpy as np
from scipy import sparse


def canonical(X):
    """Return sparse rows as a CSR array with sorted entries and no duplicates, others unchanged.

    Code that reads entries one by one needs this: duplicate entries count as their sum. The input is not
    changed, and its flags are not trusted.
    """
    if not sparse.issparse(X):
        return X
    X = X.tocsr()
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.astype(np.float64)
        X.sum_duplicates()
    return X


def on_each_row(operation, X, numbers):
    """Return ``operation(X, numbers)`` of an array or CSR array, with one number a row, shape (b, 1).

    Of 0 it must be 0.
    """
    if sparse.issparse(X):
        entries = operation(X.data, np.repeat(numbers[:, 0], np.diff(X.indptr)))
        return _of_parts(sparse.csr_array, entries, X.indices, X.indptr, X.shape)
    return operation(X, numbers)


def row_sums(X, entries):
    """Return the sums of the rows of a CSR array with other entries, shape (b,)."""
    sums, some = np.zeros(X.shape[0]), X.indptr[1:] > X.indptr[:-1]
    if some.any():
        sums[some] = np.add.reduceat(entries, X.indptr[:-1][some])
    return sums


def rows_between(X, rows):
    """Return a slice of the rows of a CSR matrix as a CSR array; copies nothing but row pointers."""
    low, high = X.indptr[rows.start], X.indptr[rows.stop]
    places = X.indices[low:high], X.indptr[rows.start : rows.stop + 1] - low
    shape = rows.stop - rows.start, X.shape[1]
    return _of_parts(sparse.csr_array, X.data[low:high], *places, shape)


def equal_rows(values, places, n_columns):
    """Return a CSR array of b rows with `values` at ascending `places`, both of shape (n_entries, b)."""
    kind = np.int32 if max(values.size, n_columns) <= np.iinfo(np.int32).max else np.int64
    ends = np.arange(0, values.size + 1, max(1, len(values)), dtype=kind)
    entries = values.T.ravel(), places.T.ravel().astype(kind, copy=False), ends
    return _of_parts(sparse.csr_array, *entries, (values.shape[1], n_columns))


def transposed(block):
    """Return the transpose of a CSR array without copying."""
    parts = block.data, block.indices, block.indptr
    return _of_parts(sparse.csc_array, *parts, block.shape[::-1])


def _of_parts(container, data, indices, indptr, shape):
    # set attributes, because the constructor would copy slices of long arrays
    matrix = copy(_empty(container, shape))
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


@lru_cache(maxsize=16)
def _empty(container, shape):
    # the constructor is as slow as products with a few thousand entries
    return container(shape)

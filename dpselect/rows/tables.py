"""Rows of tables of any kind, in their own container."""

import numpy as np

from .blocks import as_lazy, is_lazy
from .source import is_arrow, rows_at


def take(X, indices):
    """Return the rows of a table of any kind at `indices`, in its own container.

    What is read lazily stays so, in ascending order.
    """
    X = as_lazy(X)
    if is_lazy(X):
        return X.pick(np.sort(indices))
    if hasattr(X, "iloc") or is_arrow(X):
        return rows_at(X, indices)
    if hasattr(X, "shape"):
        return X[indices]
    return [X[i] for i in indices]


def take_records(X, y, indices):
    """Return the rows of `X` and the entries of `y` (or None) at `indices`.

    It is ascending for rows that are read lazily.
    """
    X = as_lazy(X)
    if is_lazy(X):
        indices = np.sort(indices)
    return take(X, indices), None if y is None else take(y, indices)


def n_rows(X):
    """Return the number of rows of an array, sparse matrix, dataframe, list or lazy rows."""
    if not hasattr(X, "shape") and not hasattr(X, "__len__"):
        raise TypeError(
            f"X of type {type(X).__name__} has no rows; give an array, a sparse matrix, a "
            "dataframe or a list."
        )
    X = as_lazy(X)
    return X.shape[0] if hasattr(X, "shape") else len(X)

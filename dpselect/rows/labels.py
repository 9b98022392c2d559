"""Labels: one column that belongs to rows, cut as they are."""

import numpy as np
from sklearn.utils import check_consistent_length

from ..utils.validation import unquoted
from .blocks import as_lazy, is_lazy
from .distributed import DistributedRows, align_dask, is_dask
from .source import LocalRows

# more distinct labels are not classes, and must not be gathered
MAX_LABELS = 10_000


def align(X, y):
    """Return X, lazily if it is not in memory, and y (or None) cut as X is.

    y stays where distributed rows are, and comes into memory with all others.
    """
    if isinstance(X, DistributedRows) or is_dask(X):
        return align_dask(X, y if is_dask(y) else in_memory(y))
    X, y = as_lazy(X), in_memory(y)
    if isinstance(y, DistributedRows):
        y = y.computed()
    if is_lazy(X) and y is not None:
        unquoted(check_consistent_length, np.broadcast_to(0, len(X)), y, what="y")
    return X, y


def in_memory(y):
    """Return labels in chunks or a memory map as an array, others unchanged."""
    y = as_lazy(y)
    if not isinstance(y, LocalRows):
        return y
    return y.map(_column, ()).block_map(np.asarray, (), None, 1)


def _column(y):
    y = np.asarray(y)
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def on_labels(function, y):
    """Return ``function(y)``, chunk by chunk for labels that are not in memory."""
    return y.map(function, (), dtype=y.dtype) if is_lazy(y) else function(y)


def distinct(y):
    """Return the sorted distinct labels, in one pass; refuse so many that they would be gathered."""
    return y.reduce(_distinct, _union) if isinstance(y, DistributedRows) else _sorted(y)


def _sorted(y):
    return unquoted(np.unique, y, what="y")  # raises for labels without an order


def _distinct(y):
    return _few(_sorted(y))


def _union(parts):
    return _few(_sorted(np.concatenate(parts)))


def _few(labels):
    if len(labels) > MAX_LABELS:
        raise ValueError(
            f"y holds more than {MAX_LABELS} different labels, and classes=None would gather them "
            "all in one place; give classes=[...], or use a regression."
        )
    return labels

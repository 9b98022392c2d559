"""Tables whose rows are made into numbers whenever they are read, where these are not worth storing."""

import os

import numpy as np

from .blocks import as_lazy, is_lazy
from .cutting import row_blocks
from .distributed import DistributedRows
from .source import LocalRows

# rows that many passes read are stored if they take no more than this share of the machine's memory
STORED = 0.25
# so many numbers are stored in any case
FEW_NUMBERS = 1 << 20


def read_by_block(X, n_columns, once=False):
    """Return a table as lazy rows, or None if `n_columns` numbers of each row are to be stored.

    They are if they fit well into memory, and more than one pass reads them. X is a table in memory
    that slices cut, a memory map or chunks; sparse rows are small.
    """
    X = as_lazy(X)
    if len(getattr(X, "shape", ())) != 2 or hasattr(X, "tocsr") or isinstance(X, DistributedRows):
        return None
    n_numbers = X.shape[0] * n_columns
    if n_numbers <= FEW_NUMBERS or not once and 8 * n_numbers <= STORED * _memory():
        return None
    return X if is_lazy(X) else TableRows(X)


class SlicedRows(LocalRows):
    """Rows of float64 that a function makes of any slice, such as that of a table in memory."""

    def __init__(self, function, shape):
        super().__init__(shape)
        self.function = function

    def pieces(self, row_elements):
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        return self.function(rows)


class TableRows(LocalRows):
    """Rows of a table in memory, in the container that they are in."""

    def __init__(self, X):
        names = getattr(X, "column_names", getattr(X, "columns", None))
        names = None if names is None else list(names)
        super().__init__(X.shape, getattr(X, "dtype", np.dtype(object)), names)
        self.X = X

    def pieces(self, row_elements):
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        return (self.X.iloc if hasattr(self.X, "iloc") else self.X)[rows]


def _memory():
    """Return the bytes of this machine's memory, or 8 GiB if it does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 8 << 30

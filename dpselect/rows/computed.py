"""Tables whose rows are converted to numbers at each read, where these are not worth storing."""

import numpy as np
from sklearn import get_config

from .blocks import as_lazy, is_lazy
from .cutting import equally_sparse_blocks, row_blocks
from .distributed import DistributedRows
from .source import LocalRows, column_names, rows_at

# up to so many numbers (32 MiB) are always stored
FEW_NUMBERS = 1 << 22


def read_by_block(X, n_columns, cheap=False):
    """Return a table as lazy rows, or None if `n_columns` numbers of each row are to be stored.

    They are if they are few. So are those that fit into scikit-learn's ``working_memory``, unless they
    are `cheap` to make anew in each pass. X is a table in memory that slices cut, a memory map or
    chunks; sparse rows are small.
    """
    X = as_lazy(X)
    if len(getattr(X, "shape", ())) != 2 or hasattr(X, "tocsr") or isinstance(X, DistributedRows):
        return None
    fitting = 0 if cheap else get_config()["working_memory"] * 2**20 / 8
    if X.shape[0] * n_columns <= max(FEW_NUMBERS, fitting):
        return None
    return X if is_lazy(X) else TableRows(X)


class SlicedRows(LocalRows):
    """Rows of finite float64 that a function computes from any slice of a table in memory.

    They are dense, or CSR arrays that store `n_entries` of each row.
    """

    in_memory = finite = True

    def __init__(self, function, shape, n_entries=None):
        super().__init__(shape)
        self.function, self.n_entries = function, n_entries
        self.sparse = n_entries is not None

    def pieces(self, row_elements):
        if self.sparse:
            return equally_sparse_blocks(self.shape, self.n_entries)
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        return self.function(rows)


class TableRows(LocalRows):
    """Rows of a table in memory, in its own container."""

    def __init__(self, X):
        super().__init__(X.shape, getattr(X, "dtype", np.dtype(object)), column_names(X))
        self.X = X

    def pieces(self, row_elements):
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        return rows_at(self.X, rows)

"""Dataframes and Arrow tables of numbers with separate columns, read by slices of them."""

import numpy as np

from .cutting import row_blocks
from .source import LocalRows, column_names, is_arrow, library_of

# smaller tables are copied
FEW_NUMBERS = 1 << 20


def by_columns(X):
    """Return a large table of numbers as rows that are never copied at once, others unchanged."""
    module, shape = library_of(X), getattr(X, "shape", ())
    if module not in COLUMNS or len(shape) != 2 or shape[0] * shape[1] <= FEW_NUMBERS:
        return X
    columns = COLUMNS[module](X)
    return X if columns is None or not all(map(_holds_numbers, columns)) else ColumnRows(X, columns)


class ColumnRows(LocalRows):
    """Rows of a table in memory, as float64 in the memory order of numpy's conversion of the table."""

    in_memory = True

    def __init__(self, table, columns):
        super().__init__(table.shape, names=column_names(table))
        self.table, self.columns, self.order = table, columns, "C" if is_arrow(table) else "F"

    def first(self):
        """Return the first row, in the container of the table."""
        return self.table.iloc[:1] if hasattr(self.table, "iloc") else self.table[:1]

    def pieces(self, row_elements):
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        block = np.empty((rows.stop - rows.start, self.shape[1]), order=self.order)
        for j, column in enumerate(self.columns):
            block[:, j] = column[rows]
        return block


class _Cells:
    """A column that may be chunked or have gaps, and converts slices to arrays."""

    def __init__(self, column):
        self.column = column

    def __getitem__(self, rows):
        return self.column[rows].to_numpy()


def _of_pandas(X):
    """Return the columns of a dataframe, or None if they are one array."""
    if not all(isinstance(dtype, np.dtype) for dtype in X.dtypes):
        return None
    found = [column.to_numpy() for _, column in X.items()]
    return found if len({id(_owner(column)) for column in found}) > 1 else None


def _of_polars(X):
    return list(map(_polars_view, X.get_columns()))


def _of_arrow(X):
    return list(map(_Cells, X.columns))


COLUMNS = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow}


def _polars_view(column):
    try:
        # slicing it takes as long as work on a small block
        return column.to_numpy(allow_copy=False)
    except RuntimeError:
        return _Cells(column)


def _holds_numbers(column):
    # boolean columns have no gaps only as numpy arrays, which pandas has
    kinds = "biuf" if isinstance(column, np.ndarray) else "iuf"
    dtype = column[:1].dtype
    return dtype.kind in kinds and dtype.itemsize <= 8


def _owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array

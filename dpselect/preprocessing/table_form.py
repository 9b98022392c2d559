"""The public form of a table: its container, its columns, and their types.

A list of documents has a form, too: one column of text, in one dimension.

The storage type of a column may depend on single records: one gap turns integers into floats, and one
``None`` turns them into objects. A form knows numbers and text only, and converts every record by
itself: numbers to float64, text to ``str``. Steps are fitted on a dummy row of it, which holds no
record.
"""

import numbers
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
from scipy import sparse

from ..rows import is_arrow, is_lazy, library_of, map_rows, n_rows, on_first_row
from ..utils.validation import unquoted
from .arrow_columns import arrow_cells, arrow_values, holds_numbers, holds_text

NUMBERS, TEXT = "numbers", "text"
GAPS = "gaps"  # numbers with gaps, stored as objects
NUMERIC_TYPES, FLOATS = (numbers.Real, Decimal, np.bool_), (float, np.floating)
# Every elementwise function of numpy is finite at one of these at least.
DUMMY_NUMBERS, DUMMY_TEXT = (0.5, 2.0), "text"
# of so few texts reading each takes less time than finding those that are equal
FEW_TEXTS = 256


@dataclass(frozen=True)
class TableForm:
    """Container, names and kinds of the columns of a table.

    Attributes
    ----------
    container : {"array", "sparse", "pandas", "polars", "arrow", "documents"}
        Lists are arrays. Documents are texts in one dimension.
    kinds : tuple of {"numbers", "text"}
        Of each column.
    columns : object, default=None
        Names as the container keeps them.
    sparse_type : type, default=None
        Class of a sparse matrix.
    gaps : bool, default=False
        Whether None and NA among numbers that are stored as objects are nan, and not refused.
    """

    container: str
    kinds: tuple
    columns: object = None
    sparse_type: type | None = None
    gaps: bool = False

    def convert(self, X):
        """Return rows as float64 and ``str``, each record by itself, in the container of X.

        Parameters
        ----------
        X : table of shape (n, p), or rows that are read lazily

        Raises
        ------
        ValueError
            If a column does not hold what the form says.
        """
        if is_lazy(X):
            return map_rows(self.convert, X, X.shape[1:], X.names, X.dtype)
        if sparse.issparse(X):
            return unquoted(X.astype, np.float64)
        if self.container == "documents":
            return _documents(X)
        columns = table_columns(X)
        if columns is None and TEXT not in self.kinds:
            return np.asarray(X, dtype=np.float64)
        floats = container_of(X) == "pandas" and all(dtype == np.float64 for dtype in X.dtypes)
        if floats and TEXT not in self.kinds and len(columns) == len(self.kinds):
            return X  # without a copy, for large tables
        if columns is None:
            columns = list(np.asarray(X).T)
        if len(columns) != len(self.kinds):
            raise ValueError("A chunk of X has another number of columns than the first one.")
        names = range(len(columns)) if self.columns is None else list(self.columns)
        values = [self.cells(*each) for each in zip(range(len(columns)), columns, names)]
        return self._table(values, X)

    def dummies(self):
        """Return dummy tables of one row each."""
        if self.container == "sparse":
            return [self.sparse_type((1, len(self.kinds)), dtype=np.float64)]
        if self.container == "documents":
            return [np.array([DUMMY_TEXT], dtype=object)]
        return [
            self._table(
                [
                    np.array([cell], dtype=np.float64 if kind == NUMBERS else object)
                    for kind, cell in zip(self.kinds, self.dummy_cells(value))
                ]
            )
            for value in DUMMY_NUMBERS
        ]

    def dummy_cells(self, number):
        """Return a cell for each column of a dummy row."""
        return [number if kind == NUMBERS else DUMMY_TEXT for kind in self.kinds]

    def cells(self, j, column, name):
        """Return the cells of column j, or refuse those of another kind than the form has."""
        expected, (kind, values) = self.kinds[j], read_column(column)
        if kind == expected or (self.gaps and (kind, expected) == (GAPS, NUMBERS)):
            return values
        if kind in (NUMBERS, TEXT, None) and all(is_gap(type(v)) or v != v for v in values):
            # a chunk without values fits any kind
            return values.astype(object) if expected == TEXT else np.full(len(values), np.nan)
        raise _refused(name, kind)

    def _table(self, values, like=None):
        """Return columns in the container, with the index of `like`."""
        if self.container == "pandas":
            import pandas as pd

            # with its dtype: pandas would convert texts to its own type
            table = pd.DataFrame(
                {j: pd.Series(column, dtype=column.dtype) for j, column in enumerate(values)}
            )
            table.columns = self.columns
            if container_of(like) == "pandas":
                table.index = like.index
            return table
        if self.container in ("polars", "arrow"):
            texts = [
                # missing texts become null
                [v if isinstance(v, str) else None for v in column] if column.dtype == object else None
                for column in values
            ]
        if self.container == "arrow":
            import pyarrow as pa

            return pa.Table.from_arrays(
                [
                    pa.array(column, pa.float64()) if text is None else pa.array(text, pa.string())
                    for column, text in zip(values, texts)
                ],
                names=self.columns,
            )
        if self.container == "polars":
            import polars as pl

            return pl.DataFrame(
                [
                    pl.Series(name, column, dtype=pl.Float64)
                    if text is None
                    else pl.Series(name, text, dtype=pl.String)
                    for name, column, text in zip(self.columns, values, texts)
                ]
            )
        table = np.empty(
            (len(values[0]) if values else 0, len(values)),
            dtype=object if TEXT in self.kinds else np.float64,
        )
        for j, column in enumerate(values):
            table[:, j] = column
        return table


def read_form(X, gaps=False):
    """Return the public form of a table.

    Parameters
    ----------
    X : table of shape (n, p), or rows that are read lazily
        Of lazy rows the first one stands for all; the others are checked when they are read.
    gaps : bool, default=False
        Whether the steps take None and NA among numbers for missing, in prediction too.

    Returns
    -------
    TableForm

    Raises
    ------
    ValueError, TypeError
        If a column mixes numbers and text, holds neither, or holds nothing.
    """
    if is_lazy(X):
        return on_first_row(partial(read_form, gaps=gaps), X)
    if sparse.issparse(X):
        return TableForm("sparse", (NUMBERS,) * X.shape[1], sparse_type=type(X))
    if is_documents(X):
        return TableForm("documents", (TEXT,))
    columns = table_columns(X)
    if columns is None:
        return TableForm("array", (NUMBERS,) * np.shape(X)[1])
    frame = container_of(X)
    labels = column_labels(X)
    names = range(len(columns)) if labels is None else list(labels)
    kinds = [NUMBERS if gaps and kind == GAPS else kind for kind in map(kind_of, columns)]
    if n_rows(X) == 0:
        kinds = [kind or NUMBERS for kind in kinds]
    for name, kind in zip(names, kinds):
        if kind is None:
            raise ValueError(
                f"Column {name!r} of X has no value and no type, so one record would decide whether it "
                "holds numbers or text (of rows beyond memory the first one must have a value); leave "
                "it out, or give it a type (astype(float) for numbers)."
            )
        if kind in ("mixed", GAPS):
            raise _refused(name, kind)
        if kind not in (NUMBERS, TEXT):
            raise neither(name)
    return TableForm(frame or "array", tuple(kinds), labels, gaps=gaps)


def column_labels(X):
    """Return the names of the columns of a table as it keeps them, or None."""
    frame = container_of(X)
    return None if frame is None else X.column_names if frame == "arrow" else X.columns


def neither(name):
    """Return the error for a column of dates, lists and so on."""
    return ValueError(
        f"Column {name!r} of X holds neither numbers nor text, which are all that steps before "
        "a private model are fitted for; leave it out of X, or turn it into numbers, each "
        "record by itself."
    )


def is_documents(X):
    """Return whether X is a list, array or series of texts, in one dimension."""
    if is_lazy(X) or not (isinstance(X, (list, tuple)) or len(getattr(X, "shape", ())) == 1):
        return False
    return any(isinstance(document, str) for document in X)


def _documents(X):
    documents = np.empty(n_rows(X), dtype=object)
    # a fixed-width array of texts would be as wide as the longest one
    documents[:] = [str(text) if isinstance(text, str) else None for text in X]
    if any(text is None for text in documents):
        raise ValueError(
            "X in one dimension holds documents and what is no text, and one record would decide what "
            'steps make of all; write "" for a missing document, and give a table two dimensions.'
        )
    return documents


def list_columns(X):
    """Return the columns of a table in memory; of a sparse matrix, columns of the same kind."""
    if sparse.issparse(X):
        return [np.zeros(1)] * X.shape[1]
    columns = table_columns(X)
    return list(np.asarray(X).T) if columns is None else columns


def column_kind(column):
    """Return the kind of a column, or None if it has no value, or is neither of numbers nor of text."""
    kind = kind_of(column)
    return kind if kind in (NUMBERS, TEXT) else None


def plain_values(column):
    """Return a column as a one-dimensional array of float64, or of objects, whatever its kind."""
    if is_arrow(column):
        return arrow_values(column)
    if library_of(column) == "polars":
        import polars as pl

        # missing booleans are None
        if column.dtype.is_numeric() or (column.dtype == pl.Boolean and not column.null_count()):
            return column.cast(pl.Float64).to_numpy()
        return np.array([*column.to_list(), None], dtype=object)[:-1]
    if hasattr(column, "cat") and hasattr(column.dtype, "categories"):
        known = _plain_index(column.dtype.categories)
        return np.append(known, [np.nan])[column.cat.codes.to_numpy()]
    if column.dtype.kind not in "biuf":
        return column.to_numpy(dtype=object) if hasattr(column, "iloc") else column.astype(object)
    if hasattr(column, "iloc"):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.astype(np.float64)


def _plain_index(categories):
    """Return the categories of a column of pandas as :func:`plain_values` does; a series takes long."""
    if categories.dtype.kind in "biuf":
        return categories.to_numpy(dtype=np.float64, na_value=np.nan)
    return categories.to_numpy(dtype=object)


def distinct_cells(column):
    """Return the distinct cells of a column of texts or categories, and their positions; else None.

    None, too, of a few texts, which are read one by one.
    """
    if is_arrow(column):
        return arrow_cells(column)
    dtype = column.dtype
    if library_of(column) == "polars":
        import polars as pl

        if not _holds_text(column):
            return None
        distinct = column.unique()
        places = pl.Series(range(len(distinct)), dtype=pl.UInt32)
        found = column.replace_strict(distinct, places, return_dtype=pl.UInt32).to_numpy()
        return plain_values(distinct), found
    if hasattr(column, "cat") and hasattr(dtype, "categories"):
        # not remove_unused_categories, which sorts the codes
        # a view, and not column.cat.codes, a copy
        places, met = column.array.codes, np.zeros(len(dtype.categories) + 1, dtype=bool)
        met[places] = True
        if not met[:-1].all():
            found = np.cumsum(met, dtype=places.dtype) - places.dtype.type(1)
            found[-1] = -1
            places = found[places]
        distinct = _plain_index(dtype.categories)
        if not met[:-1].all():
            distinct = distinct[met[:-1]]
    elif hasattr(column, "iloc") and issubclass(getattr(dtype, "type", object), str):
        if len(column) <= FEW_TEXTS:
            return None
        places, distinct = column.factorize()
        distinct = distinct.to_numpy(dtype=object)
    else:
        return None
    # the code of a gap is -1, which indexes the appended NaN
    return (np.append(distinct, [np.nan]) if (places < 0).any() else distinct), places


def _refused(name, kind):
    if kind == GAPS:
        return ValueError(
            f"Column {name!r} of X has None or NA among numbers that are stored as objects, or among "
            "polars' booleans or Arrow's, which scikit-learn's steps do not take for missing; write "
            'nan, give the column a type (astype(float), or "Float64" for NA; cast(pl.Float64) in '
            "polars), or begin with a TableEncoder."
        )
    return ValueError(
        f"Column {name!r} of X mixes numbers and text, or changes from one to the other, so one record "
        "would decide what steps make of all; write all its values as numbers, or all as text."
    )


def container_of(X):
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return "pandas"
    if library_of(X) == "polars":
        return "polars"
    if is_arrow(X) and hasattr(X, "column_names"):
        return "arrow"
    if hasattr(X, "__dataframe__") or hasattr(X, "column_names"):
        raise TypeError(
            f"X is a table of type {type(X).__name__}, whose columns steps before a private model "
            "cannot be fitted for; give a dataframe of pandas or polars, or an Arrow table."
        )
    return None


def table_columns(X):
    """Return the columns of a table; None for an array or list of numbers."""
    frame = container_of(X)
    if frame == "pandas":
        return [column for _, column in X.items()]
    if frame == "polars":
        return X.get_columns()
    if frame == "arrow":
        return X.columns
    array = as_array(X)
    return None if array.dtype.kind in "biuf" else list(array.T)


def as_array(X):
    """Return a table other than a dataframe as an array, without making numbers texts."""
    array = unquoted(np.asarray, X)
    if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
        return unquoted(np.array, X, dtype=object)
    return array


def kind_of(column):
    """Return the kind of a column, None if undetermined; without its values, if its type says it."""
    if is_arrow(column):
        numbers, text = holds_numbers(column), holds_text(column)
    elif library_of(column) == "polars":
        numbers, text = column.dtype.is_numeric(), _holds_text(column)
    else:
        numbers = column.dtype.kind in "biuf"
        text = issubclass(getattr(column.dtype, "type", object), str)
    return NUMBERS if numbers else TEXT if text else read_column(column)[0]


def read_column(column):
    """Return the kind of a column, None if undetermined, and its values as one-dimensional array."""
    if is_arrow(column) or library_of(column) == "polars":
        return _read_typed(column)
    dtype = column.dtype
    if hasattr(column, "cat") and hasattr(dtype, "categories"):
        kind, values = read_column(dtype.categories.to_series())
        if not len(values):
            return None, np.full(len(column), np.nan, dtype=object)
        # the code of a missing value is -1
        return kind, np.append(values, [np.nan])[column.cat.codes.to_numpy()]
    values = plain_values(column)
    if dtype.kind in "biuf":
        return NUMBERS, values
    kind, values = _read_objects(values)
    if kind is None and issubclass(getattr(dtype, "type", object), str):
        return TEXT, values
    return kind, values


def _read_typed(column):
    """Return kind and values of a column of polars or Arrow, by its type."""
    # Arrow converts booleans with gaps to objects
    values = plain_values(column)
    if values.dtype == np.float64:
        return NUMBERS, values
    kind, values = _read_objects(values)
    if kind is None and (holds_text if is_arrow(column) else _holds_text)(column):
        return TEXT, values
    return kind, values


def _holds_text(column):
    import polars as pl

    return column.dtype in (pl.String, pl.Categorical, pl.Enum)


def _read_objects(values):
    """Return the kind of objects, and their values as numbers or text."""
    types = set(map(type, values))
    gaps = {kind for kind in types if is_gap(kind)}
    texts = {kind for kind in types if issubclass(kind, str)}
    numeric = {kind for kind in types - gaps if issubclass(kind, NUMERIC_TYPES)}
    if types - gaps - texts - numeric:
        return "other", values
    floats = all(issubclass(kind, FLOATS) for kind in numeric)
    if numeric and floats and all(v != v for v in values if isinstance(v, FLOATS)):
        numeric = set()  # NaN marks a gap
    if texts and numeric:
        return "mixed", values
    if numeric and gaps:
        values = np.where([kind in gaps for kind in map(type, values)], np.nan, values)
        return GAPS, unquoted(values.astype, np.float64)
    if numeric:
        return NUMBERS, unquoted(values.astype, np.float64)
    if texts <= {str}:
        # keep gaps unchanged: steps may treat None, NaN and NA differently, also in prediction
        return TEXT if texts else None, values
    plain = np.empty(len(values), dtype=object)
    plain[:] = [str(v) if isinstance(v, str) else v for v in values]
    return TEXT, plain


def is_gap(kind):
    return kind is type(None) or (
        kind.__module__.startswith("pandas") and kind.__name__ in ("NAType", "NaTType")
    )

"""Columns of Arrow tables, which may be chunked, dictionary-encoded, and have gaps."""

import numpy as np

from ..utils.validation import unquoted


def holds_numbers(column):
    """Return whether numpy converts any slice of a column to numbers."""
    import pyarrow as pa

    # Arrow converts booleans with gaps to objects
    is_full_boolean = pa.types.is_boolean(column.type) and not column.null_count
    return is_full_boolean or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)


def holds_text(column):
    """Return whether all values of a column are texts, by its type."""
    import pyarrow as pa

    dictionary = pa.types.is_dictionary(column.type)
    return _is_text(column.type.value_type if dictionary else column.type)


def arrow_values(column):
    """Return a column as float64, or as objects."""
    if holds_numbers(column):
        return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    coded = arrow_cells(column)
    if coded is not None:
        distinct, places = coded
        return distinct[places]
    return _objects(column)


def arrow_cells(column):
    """Return the distinct cells of a column of texts or with a dictionary, and their positions."""
    import pyarrow as pa

    dictionary = pa.types.is_dictionary(column.type)
    if not dictionary and not _is_text(column.type):
        return None
    distinct, places, start = [], [], 0
    # chunks may have different dictionaries
    for piece in _pieces(column) or [pa.array([], column.type)]:
        coded = piece if dictionary else piece.dictionary_encode()
        # the code of a gap is -1, which indexes the appended NaN
        codes = coded.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
        values = (arrow_values if dictionary else _objects)(coded.dictionary)
        values = np.append(values, [np.nan])
        # drop dictionary entries that do not occur
        met = np.zeros(len(values), dtype=bool)
        met[codes] = True
        distinct.append(values[met])
        places.append((np.cumsum(met, dtype=np.int32) + np.int32(start - 1))[codes])
        start += len(distinct[-1])
    return np.concatenate(distinct), np.concatenate(places)


def arrow_view(column):
    """Return a column of numbers as an array that shares its memory, or itself if that is impossible."""
    pieces = _pieces(column)
    if len(pieces) != 1:
        return column
    try:
        return pieces[0].to_numpy()
    except ValueError:
        return column


def _pieces(column):
    return getattr(column, "chunks", [column])


def _objects(column):
    # errors about dates quote them
    return np.array([*unquoted(column.to_pylist), None], dtype=object)[:-1]


def _is_text(kind):
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)

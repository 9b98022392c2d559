"""Parse single cells, independently of how their column is stored: a number, a text or a gap.

One record can turn a column of integers into floats, objects or texts. So 1, 1.0, True and "1" mean
the same here, and no cell is read with an eye on others.
"""

import math

import numpy as np

from .table_form import NUMERIC_TYPES, is_gap

# texts that mean a gap, in lower case: those of pandas.read_csv, and three of other programs
MISSING_TEXTS = (
    *("", "na", "<na>", "n/a", "#n/a", "#n/a n/a", "#na", "nan", "-nan", "none", "null"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
    *("?", "-", "."),
)
TRUTHS = {"true": 1.0, "false": 0.0}
# codes of cells that are not in a category
GAP, UNLISTED, STRANGE = -1, -2, -3


class CellError(ValueError):
    """Raised if a column has unreadable cells; the message names the column, and quotes nothing."""


def as_number(value):
    """Return a number or a text as float64; NaN for a gap, None if it is not a number."""
    if is_gap(type(value)):
        return math.nan
    if isinstance(value, str):
        text = value.strip().lower()
        if text in TRUTHS or text in MISSING_TEXTS:
            return TRUTHS.get(text, math.nan)
        return None if "_" in text else _converted(text)  # float() would accept 1_000
    return _converted(value) if isinstance(value, NUMERIC_TYPES) else None


def _converted(value):
    try:
        return float(value)
    except OverflowError:  # a too large integer
        return math.inf if value > 0 else -math.inf
    except ValueError:
        return None


def read_numbers(values, name, gaps=()):
    """Return cells as float64, NaN for gaps; refuse non-numbers and infinity without quoting them.

    `gaps` are further texts that mean a gap, in lower case.
    """
    if values.dtype != np.float64:
        cells = [math.nan if gaps and _is_one(value, gaps) else as_number(value) for value in values]
        if None in cells:
            raise CellError(
                f"Column {name!r} of X holds something that is no number, and the schema has bounds for "
                "it; write numbers (of a date the days since a public one), and None or nan for a gap, "
                "or in the schema its categories, or how else a gap is written, as 'missing_values'."
            )
        values = np.array(cells, dtype=np.float64)
    if np.isinf(values).any():
        raise CellError(
            f"Column {name!r} of X holds an infinite number (inf), which no record can have; leave it "
            "missing, or write a number."
        )
    return values


def _is_one(value, texts):
    return isinstance(value, str) and value.strip().lower() in texts


def read_codes(values, name, texts, numbers):
    """Return the code of each cell by `texts` and `numbers`; GAP or UNLISTED for others."""
    if values.dtype == np.float64:
        listed = sorted(numbers)
        codes = np.array([*(numbers[number] for number in listed), UNLISTED], dtype=int)
        places = np.searchsorted(listed, values)
        found = np.array([*listed, math.nan])[places] == values
        return np.where(np.isnan(values), GAP, np.where(found, codes[places], UNLISTED))
    known = _Codes(texts, numbers)
    try:
        codes = np.fromiter(map(known.__getitem__, values.tolist()), dtype=int, count=len(values))
        strange = STRANGE in known.values()
    except TypeError:  # an unhashable cell
        strange = True
    if strange:
        raise CellError(
            f"Column {name!r} of X holds something that is no text, no number and no gap, so it "
            "is no category; write texts, numbers or None."
        )
    return codes


class _Codes(dict):
    """Cache of the codes of cells."""

    def __init__(self, *listed):
        super().__init__()
        self.listed = listed

    def __missing__(self, value):
        code = self[value] = _code(value, *self.listed)
        return code


def _code(value, texts, numbers):
    is_text = isinstance(value, str)
    if is_text and value.strip() in texts:
        return texts[value.strip()]
    number = as_number(value)
    if number is None:
        return UNLISTED if is_text else STRANGE
    return GAP if math.isnan(number) else numbers.get(number, UNLISTED)

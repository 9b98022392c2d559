"""Values of the entries of a schema, read one by one; mistakes are appended to a list."""

import numbers

import numpy as np

from .scalers import LARGEST_BOUND


def listed(values):
    """Return the values of a list as Python types; an empty list for other values."""
    if not isinstance(values, (list, tuple, np.ndarray)) or getattr(values, "ndim", 1) != 1:
        return []
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def is_number(value):
    """Return whether a value is a finite number that can be a bound."""
    known = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return known and bool(abs(value) <= LARGEST_BOUND)


def far_apart(low, high, transform):
    """Return whether low < high, also after the transform."""
    return low < high and bool(transform(low) < transform(high))


def read_flag(entry, key, wrong):
    """Return the truth value of a key, and remove it from the entry."""
    value = entry.pop(key, False)
    if not isinstance(value, (bool, np.bool_)):
        wrong.append(f"its {key!r} is neither True nor False")
    return bool(value)


def read_missing(entry, wrong):
    """Return whether there are gaps, which codes of gaps say, too; and the codes."""
    given = entry.pop("missing_values", [])
    codes = listed(given)
    valid = all(isinstance(code, str) or is_number(code) for code in codes)
    if not valid or not isinstance(given, (list, tuple, np.ndarray)):
        wrong.append("its 'missing_values' is no list of texts and numbers")
        codes = []
    if codes and entry.get("missing", True) is False:
        wrong.append("it has 'missing_values', and 'missing': False")
    return read_flag(entry, "missing", wrong) or bool(codes), tuple(codes)


def refuse_others(entry, wrong):
    """Call all keys that are left a mistake."""
    if entry:
        wrong.append(f"it has {' and '.join(map(repr, entry))}, which means nothing there")

"""The bounds file: what is public about each column.

The domain of a column is a list of two numbers (low, high), a list of strings (its
categories), or None (numeric, on its own scale). Numbers always mean bounds and strings
always mean categories, so categories that look like numbers are written as ["1", "2"].
"""

import json
import math

from .messages import CommandError, name_of


def is_categorical(domain):
    """Tell whether a domain is a list of categories."""
    return domain is not None and isinstance(domain[0], str)


def read_bounds(path):
    """Return the domains that a bounds file gives.

    Parameters
    ----------
    path : str
        A JSON object: name of a column -> [low, high], or list of strings.

    Returns
    -------
    dict
        Name -> domain.

    Raises
    ------
    CommandError
        If the file cannot be read or a column's entry is neither of the two.
    """
    entries = _load(path)
    if not isinstance(entries, dict):
        raise CommandError(
            f"The bounds file {name_of(path)} must hold a JSON object such as "
            '{"age": [0, 120], "smoker": ["yes", "no"]}.'
        )
    domains = {}
    for raw, entry in entries.items():
        name = raw.strip()
        if name in domains:
            raise CommandError(f"The bounds file has the column {name_of(name)} twice.")
        domains[name] = _domain(name, entry)
    return domains


def _load(path):
    try:
        with open(path, encoding="utf-8-sig") as stream:
            return json.load(
                stream, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant
            )
    except OSError as error:
        raise CommandError(
            f"The bounds file {name_of(path)} cannot be read ({error.strerror})."
        ) from None
    except json.JSONDecodeError as error:
        raise CommandError(
            f"The bounds file {name_of(path)} is not valid JSON (line {error.lineno})."
        ) from None
    except (ValueError, RecursionError):  # not UTF-8, digits without end, nested without end
        raise CommandError(f"The bounds file {name_of(path)} is not valid JSON.") from None


def _without_duplicates(pairs):
    entries = {}
    for name, entry in pairs:
        if name in entries:
            raise CommandError(f"The bounds file has the column {name_of(name)} twice.")
        entries[name] = entry
    return entries


def _refuse_constant(token):
    raise CommandError(f"The bounds file holds {token}, but bounds must be finite numbers.")


def _domain(name, entry):
    if isinstance(entry, list) and entry:
        if all(isinstance(item, str) for item in entry):
            return _categories(name, entry)
        # bool is a subclass of int
        if all(type(item) in (int, float) for item in entry):
            return _interval(name, entry)
    raise CommandError(
        f"The bounds file must give the column {name_of(name)} two numbers [low, high], or all its "
        'categories as strings ["a", "b"], and nothing else.'
    )


def _categories(name, entry):
    # spaces around the fields of a CSV file do not count, so they must not count here
    categories = [item.strip() for item in entry]
    if len(categories) < 2 or len(set(categories)) < len(categories):
        raise CommandError(
            f"The bounds file must give the column {name_of(name)} two or more different "
            "categories."
        )
    return categories


def _interval(name, entry):
    try:
        bounds = [float(item) for item in entry]
    except OverflowError:
        bounds = []
    if len(bounds) != 2 or not all(map(math.isfinite, bounds)) or not bounds[0] < bounds[1]:
        raise CommandError(
            f"The bounds file must give the column {name_of(name)} two finite numbers "
            '[low, high] with low < high; categories are written as strings, such as ["1", "2"].'
        )
    return bounds

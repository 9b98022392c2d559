"""Public parts of a data set: of releases about different parts, only the larger sum counts.

A record is in one part, whatever its values are: see the page "A budget for a whole team".
"""

from fractions import Fraction

from .admission import check_text

# entries about all records
WHOLE = ""


def check_parts(parts):
    """Return the names of the parts as a tuple, empty if there are none."""
    if parts is None:
        return ()
    instead = 'write a list of two names or more, such as parts=["first half", "second half"]'
    if isinstance(parts, str):
        raise TypeError(f"parts={parts!r} is one text, and a part needs another beside it; {instead}.")
    names = tuple(parts)
    for name in names:
        check_text("a name in parts", name)
    if len(names) < 2 or len(set(names)) < len(names) or WHOLE in names:
        raise ValueError(
            f"parts={list(names)!r} does not name two different parts or more, in which the records are "
            f"by public knowledge; {instead}."
        )
    return names


def together(amounts):
    """Return what all releases count, from the amounts of each part and of all records.

    Parameters
    ----------
    amounts : dict of str to tuple of numbers
    """
    whole = amounts.get(WHOLE, (Fraction(0), Fraction(0)))
    largest = zip(*(found for part, found in amounts.items() if part != WHOLE))
    return tuple(map(sum, zip(whole, map(max, largest)))) if len(amounts) > (WHOLE in amounts) else whole


def of_part(amounts, part):
    """Return what the releases count for the records of one part; WHOLE is of all parts together."""
    if part == WHOLE:
        return together(amounts)
    return together({name: found for name, found in amounts.items() if name in (WHOLE, part)})

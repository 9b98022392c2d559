"""Whose rows are whose, where the unit of privacy is a person with any number of rows.

Each person counts as one record, which is the mean of what their rows count for. The page "A person, not
a row" of the documentation has statement and proof.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .noise.grid import LARGEST_PLACE, LONGEST
from .rows import align, block_sum, n_rows

# a weight is a multiple of this: those of one person's rows add up to at most 1, exactly
WEIGHT_STEP = 2.0**-52
# parts of a person are counted to so many bits, where doubles hold that
PART_BITS = 30


@dataclass(frozen=True)
class Persons:
    """The persons of n rows, numbered in the order of their ids, which are forgotten.

    Attributes
    ----------
    number : ndarray of int64 of shape (n,)
        Of each row's person.
    weight : array of shape (n,)
        One by the number of rows of the person, rounded down; cut as the rows are, wherever these are.
    n : int
        Number of persons N.
    """

    number: np.ndarray
    weight: Any
    n: int

    @classmethod
    def of(cls, groups, X):
        """Return the persons whose ids `groups` has for each row of X."""
        number, n = _numbered(align((), groups)[1], n_rows(X))
        per_row = np.bincount(number, minlength=n)[number]
        weight = (2**52 // np.maximum(per_row, 1)) * WEIGHT_STEP
        return cls(number, align(X, weight)[1], n)


def cell_counts(index, size, X, persons, scale):
    """Return how many records are in each of `size` cells, as integers, and the unit that these count.

    A person adds at most 1 in all, shared among the cells of their rows.

    Parameters
    ----------
    index : callable
        From a block to the cell of each row.
    size : int
    X : rows, or labels
    persons : Persons or None
    scale : float
        Of the noise that will be added, which doubles must hold in that unit.
    """
    if persons is None:
        (counts,) = block_sum(lambda block: (np.bincount(index(block), minlength=size),), X)
        return counts, 1.0
    unit = counting_unit(persons.n, scale)

    def count(block, weight):
        parts = np.bincount(index(block), np.floor(weight / unit), size)
        return (parts.astype(np.int64),)

    (counts,) = block_sum(count, X, persons.weight)
    return counts, unit


def counting_unit(n_persons, scale):
    """Return the unit in which parts of persons are counted: a power of two, from public numbers."""
    largest = max(n_persons, LONGEST * scale)
    return min(1.0, max(2.0**-PART_BITS, 2.0 ** np.ceil(np.log2(largest / LARGEST_PLACE))))


def _numbered(groups, n):
    """Return the number of each row's person, and how many there are; errors quote no id."""
    # numpy would make one text of 1 and "1"
    ids = np.empty(0) if groups is None else np.asarray(
        groups, dtype=object if isinstance(groups, (list, tuple)) else None
    )
    if ids.shape != (n,):
        raise ValueError(
            "groups must have one id for each row of X, because it says whose row it is; give an array "
            "of shape (n_samples,)."
        )
    missing = {"f": np.isnan, "c": np.isnan, "m": np.isnat, "M": np.isnat}.get(ids.dtype.kind)
    if missing is not None and missing(ids).any():
        raise ValueError(_MISSING)
    if ids.dtype.kind in "biufcmM":
        known, number = np.unique(ids, return_inverse=True)
        return number.astype(np.int64, copy=False), len(known)
    ids = ids.tolist()
    said = None
    try:
        places = dict.fromkeys(ids)
        if any(_is_missing(known) for known in places):
            said = _MISSING
        else:
            places = {known: i for i, known in enumerate(sorted(places))}
    except TypeError:
        said = (
            "groups holds ids that cannot be hashed, or have no order, so it is not known whose rows "
            "belong together; give each person one number or one text."
        )
    if said:  # outside the except block, so that the original, which may quote ids, does not hang on
        raise ValueError(said)
    return np.fromiter(map(places.__getitem__, ids), dtype=np.int64, count=n), len(places)


_MISSING = (
    "groups holds a missing id, and rows of nobody would be one person, or many; give each row the id "
    "of its person, or leave the row out."
)


def _is_missing(known):
    if known is None:
        return True
    try:
        return bool(known != known)  # not a number, nor a time
    except TypeError:  # pandas.NA is neither equal nor different
        return True

"""Whose rows are whose, where the unit of privacy is a person with any number of rows.

Each person counts as one record, which is the mean of what their rows count for. The page "A person, not
a row" of the documentation has statement and proof.
"""

from collections import defaultdict
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from .exceptions import CertificateError
from .noise.grid import LARGEST_PLACE
from .privacy import Adjacency
from .rows import align, as_lazy, block_sum, n_rows
from .validation import unquoted

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


def adjacency_of(persons):
    """Return which data sets are neighbours where records are persons, or are not."""
    return Adjacency.REPLACE_PERSON if persons else Adjacency.REPLACE_RECORD


def check_weighs_persons(score):
    """Refuse a score that is no mean over persons."""
    if "sample_weight" not in signature(type(score).__call__).parameters:
        raise CertificateError(
            f"groups need a score that is a mean over persons, and {type(score).__name__} takes no "
            "sample_weight; use one of dpselect.metrics."
        )


def check_one_label_a_row(X, y):
    """Refuse labels that are not one for each row, and do not tell how many rows persons have."""
    if y is None:
        return
    X, y = as_lazy(X), as_lazy(y)
    shape = y.shape if hasattr(y, "shape") else unquoted(np.shape, y, what="y")
    if shape not in {(n_rows(X),), (n_rows(X), 1)}:
        raise ValueError(
            "y must have one label for each row of X; give an array of shape (n_samples,)."
        )


def shares(records):
    """Return the weights of rows of persons in a tuple, which is empty where each row is a person."""
    return () if records.persons is None else (records.persons.weight,)


def cell_counts(index, size, X, persons, step=1.0, aligned=()):
    """Return how many records are in each of `size` cells, exactly, in one pass.

    A person adds at most 1 for each column of cells, shared among the cells of their rows.

    Parameters
    ----------
    index : callable
        From a block, and blocks of `aligned`, to the cells of each row, shape (b,) or (b, columns).
    size : int
    X : rows, or labels
    persons : Persons or None
    step : float, default=1.0
        Of the grid of the noise that will be added: a power of two, which counts of persons are
        multiples of.
    aligned : tuple of arrays of shape (n, ...)
    """
    if persons is None:
        (counts,) = block_sum(
            lambda *blocks: (np.bincount(index(*blocks).ravel(), minlength=size),), X, *aligned
        )
        return counts
    unit = max(step, 2.0**-PART_BITS, 2.0 ** np.ceil(np.log2(persons.n / LARGEST_PLACE)))

    def count(block, weight, *others):
        cells = index(block, *others).reshape(len(weight), -1)
        parts = np.broadcast_to(np.floor(weight / unit)[:, None], cells.shape)
        return (np.bincount(cells.ravel(), parts.ravel(), size).astype(np.int64),)

    (counts,) = block_sum(count, X, persons.weight, *aligned)
    return counts * unit


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
    if ids.dtype.kind in "iu" and n and int(ids.max()) - int(ids.min()) < 4 * n:
        # without sorting; differences of short integers would overflow
        place = (ids if ids.dtype.kind == "u" else ids.astype(np.int64)) - ids.min()
        known = np.bincount(place.astype(np.int64)) > 0
        return (np.cumsum(known) - 1)[place], int(known.sum())
    if ids.dtype.kind in "biufcmM":
        known, number = np.unique(ids, return_inverse=True)
        return number, len(known)
    said = None
    # each id has the number of its first row, and then the one of its order
    first = defaultdict(int)
    first.default_factory = first.__len__
    try:
        number = np.fromiter(map(first.__getitem__, ids.tolist()), dtype=np.int64, count=n)
        if any(_is_missing(known) for known in first):
            said = _MISSING
        else:
            order = [first[known] for known in sorted(first)]
    except TypeError:
        said = (
            "groups holds ids that cannot be hashed, or have no order, so it is not known whose rows "
            "belong together; give each person one number or one text."
        )
    if said:  # outside the except block, so that the original, which may quote ids, does not hang on
        raise ValueError(said)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places[number], len(order)


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

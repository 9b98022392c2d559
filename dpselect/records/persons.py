"""User-level privacy: group rows by person.

Each person counts as one record, which is the mean of what their rows count for. The page "A person, not
a row" of the documentation has statement and proof.
"""

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from inspect import signature
from numbers import Number
from typing import Any
from unicodedata import category, normalize

import numpy as np

from ..accounting.privacy_loss import Adjacency
from ..exceptions import CertificateError
from ..noise.grid import LARGEST_PLACE
from ..rows import align, as_lazy, block_map, block_sum, n_rows
from ..utils.validation import unquoted

# weights are multiples of this, so those of one person's rows add up to at most 1 exactly
WEIGHT_STEP = 2.0**-52
# characters at the ends of a text that are not visible
BLANKS = "".join(map(chr, range(33)))
INTEGRAL = re.compile(r"^(\d+)\.0+$")
# bits of a person's contributions, as far as float64 allows
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
        """Return the persons for the ids in `groups`, one for each row of X."""
        number, n = _numbered(align((), groups)[1], n_rows(X))
        per_row = np.bincount(number, minlength=n)[number]
        weight = (2**52 // np.maximum(per_row, 1)) * WEIGHT_STEP
        return cls(number, align(X, weight)[1], n)


def adjacency_of(persons):
    """Return the adjacency of records, or of persons."""
    return Adjacency.REPLACE_PERSON if persons else Adjacency.REPLACE_RECORD


def check_weighs_persons(score):
    """Refuse a score that is not a mean over persons."""
    if "sample_weight" not in signature(type(score).__call__).parameters:
        raise CertificateError(
            f"groups need a score that is a mean over persons, and {type(score).__name__} takes no "
            "sample_weight; use one of dpselect.metrics."
        )


def check_one_label_a_row(X, y):
    """Refuse labels of another number than the rows; the error does not disclose rows per person."""
    if y is None:
        return
    X, y = as_lazy(X), as_lazy(y)
    shape = y.shape if hasattr(y, "shape") else unquoted(np.shape, y, what="y")
    if shape not in {(n_rows(X),), (n_rows(X), 1)}:
        raise ValueError("y must have one label for each row of X; give an array of shape (n_samples,).")


def person_weights(records):
    """Return the weights of rows of persons in a tuple, which is empty where each row is a person."""
    return () if records.persons is None else (records.persons.weight,)


def cell_counts(index, size, X, persons, step=1.0, aligned=(), weight=None):
    """Return the exact number of records in each of `size` cells, in one pass.

    A person adds at most 1 for each column of cells, shared among the cells of their rows; a record
    with a weight adds that.

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
    weight : array of shape (n,), or None
        In [0, 1], what each row counts for.
    """
    if persons is None and weight is None:
        (counts,) = block_sum(
            lambda *blocks: (np.bincount(index(*blocks).ravel(), minlength=size),), X, *aligned
        )
        return counts
    unit = _unit(step, n_rows(X) if persons is None else persons.n)
    if persons is not None:
        # a product with a number in [0, 1] is rounded to no more than the other factor
        weight = persons.weight if weight is None else block_map(np.multiply, persons.weight, weight)

    def count(block, weight, *others):
        cells = index(block, *others).reshape(len(weight), -1)
        parts = np.broadcast_to(np.floor(weight / unit)[:, None], cells.shape)
        return (np.bincount(cells.ravel(), parts.ravel(), size).astype(np.int64),)

    (counts,) = block_sum(count, X, weight, *aligned)
    return counts * unit


def sum_of_parts(part, X, persons, n, step):
    """Return the sum of contributions in [0, 1] of n records, as a multiple of `step`, in one pass.

    A person adds the mean of what their rows add, rounded down.

    Parameters
    ----------
    part : callable
        From a block to what each row adds, shape (b,).
    X : rows, or labels
    persons : Persons or None
    n : int
        Number of records, or of persons.
    step : float
        Of the grid of the noise that will be added: a power of two, at most 1.
    """
    unit = _unit(step, n)

    def add(block, *weight):
        parts = part(block) * weight[0] if weight else part(block)
        return (np.floor(parts / unit).astype(np.int64).sum(),)

    (total,) = block_sum(add, X, *(() if persons is None else (persons.weight,)))
    return int(total) * unit


def _unit(step, n):
    """Return a multiple of the step for which sums of n contributions are exact in float64."""
    return max(step, 2.0**-PART_BITS, 2.0 ** np.ceil(np.log2(n / LARGEST_PLACE)))


def _numbered(groups, n):
    """Return the number of each row's person, and how many persons there are; errors quote no id."""
    # as a numpy array of texts, 1 and "1" would be equal
    ids = (
        np.empty(0)
        if groups is None
        else np.asarray(groups, dtype=object if isinstance(groups, (list, tuple)) else None)
    )
    if ids.shape != (n,):
        raise ValueError(
            "groups must have one id for each row of X, because it says whose row it is; give an array "
            "of shape (n_samples,)."
        )
    missing = {"f": np.isnan, "c": np.isnan, "m": np.isnat, "M": np.isnat}.get(ids.dtype.kind)
    if np.ma.is_masked(groups) or missing is not None and missing(ids).any():
        raise ValueError(_MISSING)
    if ids.dtype.kind in "iu" and n and int(ids.max()) - int(ids.min()) < 4 * n:
        # without sorting; in int64, as differences of short integers overflow
        place = (ids if ids.dtype.kind == "u" else ids.astype(np.int64)) - ids.min()
        known = np.bincount(place.astype(np.int64)) > 0
        return (np.cumsum(known) - 1)[place], int(known.sum())
    if ids.dtype.kind in "biufcmM":
        known, number = _distinct(ids)
        return number, len(known)
    said = None
    try:
        number, known = _in_order_of_rows(ids)
        if any(map(_is_missing, known)):
            said = _MISSING
        else:
            number, known = _in_one_form(number, known)
            order = sorted(range(len(known)), key=known.__getitem__)
    except TypeError:
        said = (
            "groups holds ids that cannot be hashed, or have no order, so it is not known whose rows "
            "belong together; give each person one number or one text."
        )
    # outside the except block, so that the original error, which may quote ids, is not attached
    if said:
        raise ValueError(said)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places[number], len(order)


def _in_order_of_rows(ids):
    """Return a number for each id, and the list of distinct ids; None if one is missing."""
    if ids.dtype.kind == "U" and ids.nbytes:
        # hash texts by sums of letters times odd numbers; collisions are detected below
        letters = np.ascontiguousarray(ids).view(np.uint32).reshape(len(ids), -1).T
        odd = 2 * np.random.default_rng(0).integers(2**63, size=len(letters), dtype=np.uint64) + 1
        known, number = _distinct(sum(column * factor for column, factor in zip(letters, odd)))
        known = ids[_last_places(number, len(known))]
        if (known[number] == ids).all():
            return number, known.tolist()
    pandas = sys.modules.get("pandas")
    if pandas is not None and ids.dtype == object:
        number, known = pandas.factorize(ids)
        return number, known.tolist() + [None] * bool((number < 0).any())
    # label each id by its first row
    first = defaultdict(int)
    first.default_factory = first.__len__
    return np.fromiter(map(first.__getitem__, ids.tolist()), dtype=np.int64, count=len(ids)), list(first)


def _in_one_form(number, known):
    """Return numbers and ids, where ids that are written in two ways are made one."""
    kinds = set(map(type, known))
    formed = list(map(_formed, known)) if kinds - {str} else _texts(known)
    if kinds in ({np.datetime64}, {np.timedelta64}):
        formed = np.array(known).tolist()  # tolist() of one common unit
    floats = [kind for kind in kinds if issubclass(kind, (float, np.floating))]
    if floats and len(kinds) > 1:
        # compare numbers at the precision of the shortest float type among them
        shortest = min(floats, key=lambda kind: np.finfo(kind).nmant)
        with np.errstate(over="ignore"):
            formed = [_as_float(shortest, each) for each in formed]
    if len(kinds) == 1 and formed == known:
        return number, known
    place = {}
    places = np.array([place.setdefault(each, len(place)) for each in formed], dtype=np.int64)
    return places[number], list(place)


def _formed(known):
    if isinstance(known, str):
        return _texts([known])[0]
    if isinstance(known, bytes):
        return known.strip(BLANKS.encode())
    # a named tuple has its own __new__
    return tuple(map(_formed, known)) if type(known) is tuple else known


def _texts(known):
    """Normalise texts: Unicode's form NFKC, without blanks at the ends and the zeros of whole floats."""
    if not "".join(known).isascii():
        known = [
            # strip invisible characters, such as the byte order mark of a file
            "".join(c for c in normalize("NFKC", text) if category(c) != "Cf").strip()
            if not text.isascii()
            else text
            for text in known
        ]
    known = [text.strip(BLANKS) for text in known]
    if ".0" in "\n".join(known):
        # numbers that became floats before they became texts, such as "7.0"
        known = [INTEGRAL.sub(r"\1", text) for text in known]
    return known


def _as_float(kind, known):
    if not isinstance(known, Number | np.bool_):
        return known
    try:
        return float(kind(known))
    except (OverflowError, TypeError):  # too large for a float, or complex
        return known


def _distinct(numbers):
    """Return the sorted distinct numbers, and the index of each among them."""
    pandas = sys.modules.get("pandas")
    # pandas hashes in a tenth of the time, but is not imported for this
    if pandas is not None and numbers.dtype in (np.int64, np.uint64, np.float64):
        return pandas.factorize(numbers, sort=True)[::-1]
    return np.unique(numbers, return_inverse=True)


def _last_places(number, n):
    """Return the last index of each of n numbers."""
    places = np.empty(n, dtype=np.int64)
    places[number] = np.arange(len(number))
    return places


_MISSING = (
    "groups holds a missing id, and rows of nobody would be one person, or many; give each row the id "
    "of its person, or leave the row out."
)


def _is_missing(known):
    if known is None:
        return True
    try:
        return bool(known != known)  # NaN or NaT
    except TypeError:  # pandas.NA is neither equal nor different
        return True

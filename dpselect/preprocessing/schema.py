"""The public schema: bounds and categories of the columns of a table, from public knowledge.

Nothing of it may be looked up in the records, so nothing is inferred from them here.
"""

import json
import numbers
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..utils.type_aliases import Array, FloatArray, IntArray, PathLike
from .scalers import LARGEST_BOUND
from .table_cells import GAP, UNLISTED, CellError, as_number, read_codes, read_numbers

TRANSFORMS = {None: np.positive, "log1p": np.log1p, "arcsinh": np.arcsinh}
INVERSES = {None: np.positive, "log1p": np.expm1, "arcsinh": np.sinh}
INSTEAD = (
    "write for each column two numbers (low, high), a list of all its categories, or a dict with "
    "'bounds' (and 'transform', 'periodic', 'missing', 'fill', 'unit') or 'categories' (and 'missing', "
    "'unknown')"
)


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers between two bounds.

    Attributes
    ----------
    name : object
    low, high : float
        A number outside counts as the nearer one.
    transform : {None, "log1p", "arcsinh"}
        Of a number within the bounds, before it is scaled.
    missing : bool
        Whether a record may lack it.
    fill : float, default=None
        What stands for a missing number; None for nothing.
    unit : str, default=None
        For plots.
    periodic : bool
        Whether `high` is the same point as `low`.
    """

    name: Any
    low: float
    high: float
    transform: str | None = None
    missing: bool = False
    fill: float | None = None
    unit: str | None = None
    periodic: bool = False

    def read(self, values: Any) -> FloatArray:
        """Return cells, transformed, on a scale from 0 at `low` to 1 at `high`; nan for gaps."""
        x = np.array(self.numbers(values)[np.newaxis])
        NumberScale([self]).apply(x)
        return x[0]

    def numbers(self, values: Any) -> FloatArray:
        """Return cells as numbers, NaN for gaps, or refuse values that no record can have."""
        x = read_numbers(values, self.name)
        if not self.missing and np.isnan(x).any():
            raise CellError(
                f"Column {self.name!r} of X has missing values (NaN), and the schema says that no "
                "record lacks it; write 'missing': True in the schema."
            )
        return x

    def values(self, n: int) -> FloatArray:
        """Return n numbers from `low` to `high`, evenly on the scale of `read`, and nan for gaps."""
        transform, inverse = TRANSFORMS[self.transform], INVERSES[self.transform]
        even = np.linspace(transform(self.low), transform(self.high), n)
        between = inverse(even)
        for end in (self.low, self.high):  # so that both ends are exact
            between[even == transform(end)] = end
        return np.append(between, np.nan) if self.missing else between

    def entry(self) -> dict[str, Any]:
        """Return the schema entry of the column."""
        said = {
            "bounds": [self.low, self.high],
            "transform": self.transform,
            "periodic": self.periodic or None,
            "missing": self.missing or None,
            "fill": self.fill,
            "unit": self.unit,
        }
        return {key: value for key, value in said.items() if value is not None}


class NumberScale:
    """The scaling of several columns of numbers to [0, 1], all at once."""

    def __init__(self, columns):
        self.columns = columns
        ends = [(c.low, c.high, *map(TRANSFORMS[c.transform], (c.low, c.high))) for c in columns]
        self.low, self.high, self.start, end = np.array(ends, dtype=np.float64).T[:, :, np.newaxis]
        self.span = end - self.start
        self.linear = all(column.transform is None for column in columns)

    def check(self, x):
        """Refuse numbers of shape (p, b) that no record can have."""
        for j in np.flatnonzero(~np.isfinite(x).all(axis=1)):
            self.columns[j].numbers(x[j])

    def apply(self, x):
        """Scale numbers of shape (p, b) in place."""
        np.clip(x, self.low, self.high, out=x)
        for column, clipped in zip(self.columns, x):
            if column.transform is not None:
                TRANSFORMS[column.transform](clipped, out=clipped)
        x -= self.start
        x /= self.span
        if not self.linear:
            # clip again: numpy functions of arrays and of scalars may differ in the last bits
            np.clip(x, 0.0, 1.0, out=x)


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories.

    Attributes
    ----------
    name : object
    categories : tuple of str, float, int or bool
    missing, unknown : bool
        Whether a gap, and any other value, is a category of its own.
    """

    name: Any
    categories: tuple[Any, ...]
    missing: bool = False
    unknown: bool = False

    @property
    def levels(self) -> tuple[Any, ...]:
        """The categories, "<unknown>" and "<missing>" among them."""
        more = [("<unknown>", self.unknown), ("<missing>", self.missing)]
        return (*self.categories, *(level for level, listed in more if listed))

    def read(self, values: Any) -> IntArray:
        """Return the indices of cells among the levels, -1 for others."""
        codes = read_codes(values, self.name, *map(dict, _meanings(self.categories)))
        other = self.levels.index("<unknown>") if self.unknown else -1
        codes[codes == GAP] = len(self.levels) - 1 if self.missing else other
        codes[codes == UNLISTED] = other
        return codes

    def values(self, n: int) -> Array:
        """Return a cell for each level, None for a missing one; ignores `n`."""
        more = [*(["<unknown>"] if self.unknown else []), *([None] if self.missing else [])]
        return np.array([*self.categories, *more, None], dtype=object)[:-1]

    def entry(self) -> dict[str, Any]:
        """Return the schema entry of the column."""
        said = {"categories": list(self.categories), "missing": self.missing, "unknown": self.unknown}
        return {key: value for key, value in said.items() if value is not False}


def _meanings(categories):
    """Return pairs (text, index) and (number, index) of categories; a text may also be a number."""
    texts = [(value.strip(), i) for i, value in enumerate(categories) if isinstance(value, str)]
    numbers = [(as_number(value), i) for i, value in enumerate(categories)]
    return texts, [(number, i) for number, i in numbers if number is not None and number == number]


@dataclass(frozen=True)
class PublicSchema:
    """Public knowledge about the columns of a table, from before looking at it.

    An entry of a column is one of

    - ``(low, high)``: numbers between bounds;
    - ``["a", "b"]``: all categories. Integers that are categories are written as texts
      (``["1", "2"]``), or as below; either way 1, 1.0, True and "1" in a table mean the same;
    - a declared type: ``bool``, or a categorical type of pandas or polars *with its categories*;
    - ``{"bounds": (low, high)}``, and if you like ``"transform"``: "log1p" or "arcsinh" for numbers
      that are spread over several powers of ten, ``"periodic": True`` if the upper bound is the same
      point as the lower one, as of hours between 0 and 24, ``"missing": True`` if a record may lack it,
      ``"fill"``: the number that a missing one counts as, and ``"unit"``: a text for plots;
    - ``{"categories": [...]}``, and if you like ``"missing": True`` and ``"unknown": True``: gaps, and
      all that is not listed, are categories of their own.

    Parameters
    ----------
    columns : dict
        From the name of each column to its entry, in the order of the columns of tables without names.
        Bounds and categories must come from knowledge of the field, never from the records: types of a
        dataframe whose categories were found in it are found in the records, too.

    Raises
    ------
    ValueError
        Names all mistakes at once.

    Examples
    --------
    >>> from dpselect.preprocessing import PublicSchema
    >>> schema = PublicSchema({
    ...     "age": (0, 120),
    ...     "job": ["farmer", "clerk"],
    ...     "income": {"bounds": (0, 1e6), "transform": "log1p", "missing": True, "unit": "USD"},
    ... })
    >>> list(schema.columns)
    ['age', 'job', 'income']
    >>> PublicSchema({"age": (120, 0), "job": ["farmer", "farmer"]})
    Traceback (most recent call last):
    ...
    ValueError: The schema does not say what is public of column 'age' (its bounds are not two finite \
numbers low < high), of column 'job' (it has categories that mean the same, as 1 and "1" do); write for \
each column two numbers (low, high), a list of all its categories, or a dict with 'bounds' (and \
'transform', 'periodic', 'missing', 'fill', 'unit') or 'categories' (and 'missing', 'unknown').
    """

    columns: Mapping[Any, Any]

    def __post_init__(self) -> None:
        """Check all entries, and replace them by columns."""
        object.__setattr__(self, "columns", _checked(self.columns))

    @classmethod
    def from_json(cls, path: PathLike) -> Self:
        """Read a schema from a file.

        Parameters
        ----------
        path : str or path-like
            Of a JSON object: name -> entry. Spaces around names do not count.

        Returns
        -------
        PublicSchema

        Raises
        ------
        ValueError
            If it is no such file, or names all mistakes at once.
        """
        twice: list[str] = []

        def pairs(found):
            found = [(name.strip(), entry) for name, entry in found]
            names = [name for name, _ in found]
            twice.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)
            return dict(found)

        try:
            with open(path, encoding="utf-8-sig") as stream:
                columns = json.load(stream, object_pairs_hook=pairs)
        except OSError as error:
            wrong = f"cannot be read ({error.strerror})"
        except json.JSONDecodeError as error:
            wrong = f"is not valid JSON (line {error.lineno})"
        except (ValueError, RecursionError):  # not UTF-8, too many digits, or nested too deeply
            wrong = "is not valid JSON"
        else:
            return cls(_checked(columns, twice))
        raise ValueError(f"The schema in {os.fspath(path)!r} {wrong}, so it says nothing; {INSTEAD}.")

    def to_dict(self) -> dict[Any, Any]:
        """Return the entries of all columns, in the form of the JSON file.

        Returns
        -------
        dict
            Of which a schema can be made again.
        """
        return {name: column.entry() for name, column in self.columns.items()}


def schema_template(columns: Iterable[str]) -> dict[str, None]:
    """Return a schema to fill in, from the header of a table.

    Parameters
    ----------
    columns : iterable of str
        Names of the columns, such as ``frame.columns``.

    Returns
    -------
    dict
        From each name to None, in whose place you write bounds or categories: see
        :class:`PublicSchema`.

    Raises
    ------
    ValueError
        If a name comes twice.

    Examples
    --------
    >>> import json
    >>> from dpselect.preprocessing import schema_template
    >>> print(json.dumps(schema_template(["age", "job"])))
    {"age": null, "job": null}
    """
    names = list(columns)
    template = dict.fromkeys(names)
    if isinstance(columns, str) or len(template) < len(names):
        raise ValueError(
            f"columns={names!r} are not different names, so two columns would share one entry; write a "
            "list with one name for each column."
        )
    return template


def _checked(columns, twice=()):
    """Return the columns of a schema by name, or refuse them with a list of all mistakes."""
    if not isinstance(columns, Mapping) or not columns:
        kind = "empty" if isinstance(columns, Mapping) else "no dict (in a file: no JSON object)"
        raise ValueError(
            f"The schema is {kind}, so nothing is known of any column; {INSTEAD}, such as "
            '{"age": [0, 120], "smoker": ["yes", "no"]}.'
        )
    checked, mistakes = {}, {}
    for name, entry in columns.items():
        wrong = []
        checked[name] = _column(name, entry, wrong)
        if wrong:
            mistakes.setdefault(", and ".join(wrong), []).append(name)
    if twice or mistakes:
        said = [f"of {name!r} (it is there twice)" for name in twice] + [
            f"of column{'s' * (len(names) > 1)} {', '.join(map(repr, names))} ({wrong})"
            for wrong, names in mistakes.items()
        ]
        raise ValueError(f"The schema does not say what is public {', '.join(said)}; {INSTEAD}.")
    return checked


def _column(name, entry, wrong):
    """Return the column of an entry, and append its mistakes to a list."""
    if isinstance(entry, (NumberColumn, CategoryColumn)):
        return replace(entry, name=name)
    if not isinstance(entry, Mapping):
        entry = _long(entry, wrong)
    if "bounds" in entry and "categories" not in entry:
        return _number_column(name, dict(entry), wrong)
    if "categories" in entry and "bounds" not in entry:
        return _category_column(name, dict(entry), wrong)
    if not wrong:
        wrong.append("it needs either bounds or categories")
    return None


def _long(entry, wrong):
    """Return an entry in its long form, a dict."""
    if entry is None:
        wrong.append("it is not filled in")
    elif hasattr(entry, "categories"):  # a type of pandas or polars
        if entry.categories is not None:
            return {"categories": list(entry.categories)}
        wrong.append("its type names no categories")
    elif getattr(entry, "__name__", str(entry)).rstrip("_").lower() in ("bool", "boolean"):
        return {"categories": [False, True]}
    elif isinstance(entry, str):
        wrong.append(
            "it is a text; turn dates into days with bounds, and give texts a HashingVectorizer beside "
            "the TableEncoder"
        )
    elif not _listed(entry):
        wrong.append("it is neither bounds nor a list of categories")
    elif all(isinstance(value, (str, bool)) for value in _listed(entry)):
        return {"categories": entry}
    elif len(entry) != 2 and all(isinstance(value, numbers.Real) for value in entry):
        wrong.append("it lists numbers that are not two bounds, and categories are written as texts")
    else:
        return {"bounds": entry}
    return {}


def _number_column(name, entry, wrong):
    given = _listed(entry.pop("bounds"))
    bounds = [float(end) for end in given if _is_number(end)] if len(given) == 2 else []
    transform = entry.pop("transform", None)
    if not isinstance(transform, str | None) or transform not in TRANSFORMS:
        wrong.append(f"its transform is not one of {[*TRANSFORMS]}")
        transform = None
    if transform == "log1p" and bounds and min(bounds) <= -1:
        wrong.append("log1p has no value at -1 or less; arcsinh has")
    elif len(bounds) != 2 or not _far_apart(*bounds, TRANSFORMS[transform]):
        dates = any(isinstance(end, str) or hasattr(end, "year") for end in given)
        wrong.append(
            "its bounds are not two finite numbers low < high"
            + (", and of dates these are the days since a public one" if dates else "")
        )
    periodic = _flag(entry, "periodic", wrong)
    if periodic and transform is not None:
        wrong.append("it is periodic and has a transform, after which periods are of unequal length")
    missing, fill = _flag(entry, "missing", wrong), entry.pop("fill", None)
    if fill is not None and not missing:
        wrong.append("it has a fill, and no 'missing': True")
    if fill is not None:
        fill = float(fill) if _is_number(fill) else np.inf
        if len(bounds) == 2 and not bounds[0] <= fill <= bounds[1]:
            wrong.append("its fill is no number between the bounds")
    unit = entry.pop("unit", None)
    if not isinstance(unit, str | None):
        wrong.append("its unit is no text")
    _nothing_else(entry, wrong)
    return None if wrong else NumberColumn(name, *bounds, transform, missing, fill, unit, periodic)


def _category_column(name, entry, wrong):
    known = _listed(entry.pop("categories"))
    if not all(isinstance(value, (str, bool)) or _is_number(value) for value in known):
        wrong.append("its categories are not texts or finite numbers")
        known = []
    elif any(len(dict(pairs)) < len(pairs) for pairs in _meanings(known)):
        wrong.append('it has categories that mean the same, as 1 and "1" do')
    column = CategoryColumn(
        name, tuple(known), _flag(entry, "missing", wrong), _flag(entry, "unknown", wrong)
    )
    if len(column.levels) < 2 and not wrong:
        wrong.append("it has fewer than two categories, so it tells nothing")
    _nothing_else(entry, wrong)
    return column


def _listed(values):
    """Return the values of a list as Python types; an empty list for other values."""
    if not isinstance(values, (list, tuple, np.ndarray)) or getattr(values, "ndim", 1) != 1:
        return []
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _is_number(value):
    known = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return known and bool(abs(value) <= LARGEST_BOUND)


def _far_apart(low, high, transform):
    return low < high and bool(transform(low) < transform(high))


def _flag(entry, key, wrong):
    value = entry.pop(key, False)
    if not isinstance(value, (bool, np.bool_)):
        wrong.append(f"its {key!r} is neither True nor False")
    return bool(value)


def _nothing_else(entry, wrong):
    if entry:
        wrong.append(f"it has {' and '.join(map(repr, entry))}, which means nothing there")

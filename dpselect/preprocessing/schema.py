"""The public schema: bounds and categories of the columns of a table, from public knowledge.

Nothing of it may be looked up in the records, so nothing is inferred from them here.
"""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Self

import numpy as np

from ..utils.type_aliases import Array, FloatArray, IntArray, PathLike
from .dates import as_days, first_day, gaps_of_dates, read_dates
from .entry_values import far_apart, is_number, listed, read_flag, read_missing, refuse_others
from .number_scale import INVERSES, TRANSFORMS, NumberScale
from .spellings import known_spellings, meanings
from .table_cells import GAP, UNLISTED, CellError, as_number, read_codes, read_numbers

INSTEAD = (
    "write for each column two numbers (low, high), a list of all its categories, or a dict with "
    "'bounds' or 'date' (and 'transform', 'periodic', 'missing', 'missing_values', 'fill', 'unit') or "
    "'categories' (and 'missing', 'missing_values', 'unknown')"
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
    missing_values : tuple of str or float
        Cells that mean a gap, beside the usual ones.
    dates : tuple of (str, str or None), default=None
        The date that is day 0, and the form of texts, if cells are dates.
    cycles : tuple of str
        "year", "week" and "day": what comes round, of dates.
    """

    name: Any
    low: float
    high: float
    transform: str | None = None
    missing: bool = False
    fill: float | None = None
    unit: str | None = None
    periodic: bool = False
    missing_values: tuple[str | float, ...] = ()
    dates: tuple[str, str | None] | None = None
    cycles: tuple[str, ...] = ()

    def read(self, values: Any) -> FloatArray:
        """Return cells, transformed, on a scale from 0 at `low` to 1 at `high`; nan for gaps."""
        x = np.array(self.numbers(values)[np.newaxis])
        NumberScale([self]).apply(x)
        return x[0]

    def numbers(self, values: Any) -> FloatArray:
        """Return cells as numbers, NaN for gaps, or refuse values that no record can have."""
        x = self.without_codes(self.parsed(values))
        if not self.missing and np.isnan(x).any():
            raise CellError(
                f"Column {self.name!r} of X has missing values (NaN), and the schema says that no "
                "record lacks it; write 'missing': True in the schema before the fit, or fill them with "
                "a public number."
            )
        return x

    def fit_of(self, values: Any) -> tuple[bool, bool]:
        """Return whether a cell lies between the bounds, and whether one lies beyond them."""
        x = self.numbers(values)
        inside = (x >= self.low) & (x <= self.high)
        return bool(inside.any()), bool((~inside & ~np.isnan(x)).any())

    def parsed(self, values: Any) -> FloatArray:
        """Return cells as numbers, NaN for gaps that are no numbers, or refuse other texts."""
        texts = {value.strip().lower() for value in self.missing_values if isinstance(value, str)}
        if self.dates is not None:
            values = as_days(values, *self.dates, self.codes, "day" in self.cycles)
        return read_numbers(values, self.name, texts)

    def without_codes(self, x: FloatArray) -> FloatArray:
        """Return numbers with NaN for those that mean a gap, of a date at any hour."""
        whole = np.floor(x) if "day" in self.cycles else x
        return np.where(np.isin(whole, self.codes), np.nan, x) if self.codes else x

    @property
    def codes(self) -> tuple[float, ...]:
        """tuple of float : Numbers that mean a gap, -9 also where it is listed as "-9"."""
        read = map(as_number, self.missing_values)
        codes = {code for code in read if code is not None and np.isfinite(code)}
        days = set() if self.dates is None else gaps_of_dates(self.missing_values, *self.dates)
        return tuple(codes | days)

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
            "missing_values": list(self.missing_values) or None,
            "fill": self.fill,
            "unit": self.unit,
        }
        if self.dates is not None:
            first, form = self.dates
            last = date.fromisoformat(first) + timedelta(days=self.high - ("day" in self.cycles))
            dates = {"date": [first, str(last)], "format": form, "cycles": list(self.cycles) or None}
            said = dates | {**said, "bounds": None}
        return {key: value for key, value in said.items() if value is not None}


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories.

    Attributes
    ----------
    name : object
    categories : tuple of str, float, int or bool
    missing, unknown : bool
        Whether a gap, and any other value, is a category of its own.
    missing_values : tuple of str or float
        Cells that mean a gap, beside the usual ones.
    """

    name: Any
    categories: tuple[Any, ...]
    missing: bool = False
    unknown: bool = False
    missing_values: tuple[str | float, ...] = ()

    @property
    def levels(self) -> tuple[Any, ...]:
        """The categories, "<unknown>" and "<missing>" among them."""
        more = [("<unknown>", self.unknown), ("<missing>", self.missing)]
        return (*self.categories, *(level for level, listed in more if listed))

    def read(self, values: Any) -> IntArray:
        """Return the indices of cells among the levels, -1 for others."""
        codes = self._codes(values)
        other = self.levels.index("<unknown>") if self.unknown else -1
        codes[codes == GAP] = len(self.levels) - 1 if self.missing else other
        codes[codes == UNLISTED] = other
        return codes

    def fit_of(self, values: Any) -> tuple[bool, bool]:
        """Return whether a cell is a listed category, and whether one should be and is not.

        A column may well hold nothing of a list of one, or of one beside which all else is a category;
        to tell so would be a fact about the records.
        """
        if values.dtype == np.float64:
            self.check_numbers(values)
        codes = self._codes(values)
        is_complete = len(self.categories) > 1 and not self.unknown
        return bool((codes >= 0).any()), is_complete and bool((codes == UNLISTED).any())

    def _codes(self, values):
        return read_codes(values, self.name, *known_spellings(self.categories, self.missing_values))

    def values(self, n: int) -> Array:
        """Return a cell for each level, None for a missing one; ignores `n`."""
        more = [*(["<unknown>"] if self.unknown else []), *([None] if self.missing else [])]
        return np.array([*self.categories, *more, None], dtype=object)[:-1]

    @property
    def has_numbers(self) -> bool:
        """bool : Whether a number can be one of the categories."""
        return any(place >= 0 for place in self.spellings()[1].values())

    def check_numbers(self, x: FloatArray) -> None:
        """Refuse a column that holds numbers, of which none can be a category, unless all are gaps."""
        if not self.has_numbers and not np.isnan(x).all():
            raise CellError(
                f"Column {self.name!r} of X holds numbers or booleans, and the schema lists texts "
                "alone, so no cell can be one of them; write the categories of the table, such as "
                '[False, True] or ["0", "1"].'
            )

    def spellings(self) -> tuple[dict[str, int], dict[float, int]]:
        """Return the index of each text, and of each number, that is a category; GAP of a gap."""
        texts, numbers = known_spellings(self.categories, self.missing_values)
        return dict(texts), dict(numbers)

    def entry(self) -> dict[str, Any]:
        """Return the schema entry of the column."""
        said = {
            "categories": list(self.categories),
            "missing": self.missing,
            "missing_values": list(self.missing_values) or False,
            "unknown": self.unknown,
        }
        return {key: value for key, value in said.items() if value is not False}


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
      all that is not listed, are categories of their own;
    - ``{"date": ["2015-01-01", "2026-12-31"]}``, the first and the last date: the column is one of
      numbers, the days since the first. ``"format": "%d.%m.%Y"`` says how texts are written, if not as
      ISO 8601; a cell that is a number is a number of days, and 20150131 is that date. ``"cycles":
      ["year", "week", "day"]`` adds waves of the season, the weekday and the hour, or of some of them.
      All else as with bounds;
    - either with ``"missing_values": [-9, "refused"]``, which says how else a gap is written, as one
      may that is so declared, beside None, nan and the texts that ``pandas.read_csv`` takes for gaps.

    Read more in :doc:`/tables`.

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
numbers low < high), of column 'job' (it has categories that mean the same, as 1 and "1" do); write \
for each column two numbers (low, high), a list of all its categories, or a dict with 'bounds' or \
'date' (and 'transform', 'periodic', 'missing', 'missing_values', 'fill', 'unit') or 'categories' \
(and 'missing', 'missing_values', 'unknown').
    """

    columns: Mapping[Any, Any]

    def __post_init__(self) -> None:
        """Check all entries, and replace them by columns."""
        object.__setattr__(self, "columns", _checked(self.columns))

    def __deepcopy__(self, memo: Any) -> Self:
        # columns are frozen, and plans clone encoders some hundred times
        duplicate = object.__new__(type(self))
        object.__setattr__(duplicate, "columns", dict(self.columns))
        return duplicate

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
            with open(path, "rb") as stream:
                # of bytes json finds the encoding: UTF-8 or, as some shells write, UTF-16
                columns = json.loads(stream.read(), object_pairs_hook=pairs)
        except OSError as error:
            wrong = f"cannot be read ({error.strerror})"
        except json.JSONDecodeError as error:
            wrong = f"is not valid JSON (line {error.lineno})"
        except UnicodeDecodeError:
            wrong = "is not UTF-8 text"
        except (ValueError, RecursionError):  # too many digits, or nested too deeply
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

    def invented_row(self) -> Array:
        """Return an invented row: the low end of each number, and the first of each list of categories.

        Returns
        -------
        ndarray of object, shape (1, n_columns)

        Examples
        --------
        >>> from dpselect.preprocessing import PublicSchema
        >>> PublicSchema({"age": (18, 90), "smokes": ["yes", "no"]}).invented_row()
        array([[18.0, 'yes']], dtype=object)
        """
        cells = [
            column.categories[0]
            if isinstance(column, CategoryColumn)
            else column.low
            if column.dates is None
            else first_day(*column.dates)
            for column in self.columns.values()
        ]
        row = np.empty((1, len(cells)), dtype=object)
        row[0] = cells
        return row


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
    if "date" in entry and not {"bounds", "categories"} & set(entry):
        days, dates = read_dates(dict(entry), wrong)
        column = _number_column(name, days, wrong)
        return column and dates and replace(column, dates=dates[:2], cycles=dates[2])
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
    elif not listed(entry):
        wrong.append("it is neither bounds nor a list of categories")
    elif all(isinstance(value, (str, bool)) for value in listed(entry)):
        return {"categories": entry}
    elif len(entry) != 2 and all(isinstance(value, numbers.Real) for value in entry):
        wrong.append("it lists numbers that are not two bounds, and categories are written as texts")
    else:
        return {"bounds": entry}
    return {}


def _number_column(name, entry, wrong):
    given = listed(entry.pop("bounds"))
    bounds = [float(end) for end in given if is_number(end)] if len(given) == 2 else []
    transform = entry.pop("transform", None)
    if not isinstance(transform, str | None) or transform not in TRANSFORMS:
        wrong.append(f"its transform is not one of {[*TRANSFORMS]}")
        transform = None
    if transform == "log1p" and bounds and min(bounds) <= -1:
        wrong.append("log1p has no value at -1 or less; arcsinh has")
    elif len(bounds) != 2 or not far_apart(*bounds, TRANSFORMS[transform]):
        dates = any(isinstance(end, str) or hasattr(end, "year") for end in given)
        wrong.append(
            "its bounds are not two finite numbers low < high"
            + (", and of dates these are the days since a public one" if dates else "")
        )
    periodic = read_flag(entry, "periodic", wrong)
    if periodic and transform is not None:
        wrong.append("it is periodic and has a transform, after which periods are of unequal length")
    missing, codes = read_missing(entry, wrong)
    fill = entry.pop("fill", None)
    if fill is not None and not missing:
        wrong.append("it has a fill, and no 'missing': True")
    if fill is not None:
        fill = float(fill) if is_number(fill) else np.inf
        if len(bounds) == 2 and not bounds[0] <= fill <= bounds[1]:
            wrong.append("its fill is no number between the bounds")
    unit = entry.pop("unit", None)
    if not isinstance(unit, str | None):
        wrong.append("its unit is no text")
    refuse_others(entry, wrong)
    if wrong:
        return None
    return NumberColumn(name, *bounds, transform, missing, fill, unit, periodic, codes)


def _category_column(name, entry, wrong):
    known = listed(entry.pop("categories"))
    if not all(isinstance(value, (str, bool)) or is_number(value) for value in known):
        wrong.append("its categories are not texts or finite numbers")
        known = []
    elif any(len(dict(pairs)) < len(pairs) for pairs in meanings(known)):
        wrong.append('it has categories that mean the same, as 1 and "1" do')
    missing, codes = read_missing(entry, wrong)
    column = CategoryColumn(name, tuple(known), missing, read_flag(entry, "unknown", wrong), codes)
    texts, numbers = map(dict, meanings(known))
    if any(set(gaps) & set(known) for gaps, known in zip(map(dict, meanings(codes)), (texts, numbers))):
        wrong.append("its 'missing_values' are among its categories")
    if set(map(str, known)) & set(column.levels[len(known) :]):
        wrong.append("it has '<unknown>' or '<missing>' among its categories, which is added to them")
    if len(column.levels) < 2 and not wrong:
        wrong.append("it has fewer than two categories, so it tells nothing")
    refuse_others(entry, wrong)
    return column

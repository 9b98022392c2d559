"""Check that encoders and imputers fit the types of their columns.

A column of numbers is read as text if one record holds a word. An encoder of numbers would then know
none of its values, and what a step stores would tell of the word. So it is refused.
"""

import warnings

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from .pipeline_check import map_parts
from .table_form import NUMBERS, NUMERIC_TYPES, TEXT, column_kind, list_columns

SAME_KIND = (
    "One record can turn a column of numbers into text; write table and step with the same kind, and "
    "give each kind its own step, with ColumnTransformer."
)
VECTORIZERS = (HashingVectorizer, CountVectorizer)  # TfidfVectorizer is a subclass of CountVectorizer


def check_kinds(steps, form):
    """Refuse steps with numeric parameters for text columns, or the other way round.

    Parameters
    ----------
    steps : transformer
        A step, or a Pipeline; what stands behind a step that makes new columns is not looked at.
    form : TableForm

    Raises
    ------
    ValueError
        Names all such steps.
    """
    names = None if form.columns is None else list(form.columns)
    found = dict(_misfits(steps, type(steps).__name__, list(enumerate(form.kinds)), names))
    if found:
        raise _refused(found)


def _misfits(step, label, columns, names):
    """Yield the steps that do not fit, with the reason; columns are pairs (index, kind)."""
    if isinstance(step, Pipeline):
        for name, part in step.steps:
            yield from _misfits(part, name, columns, names)
            # only these steps keep the columns, so later steps cannot be checked
            if part is not None and part != "passthrough" and type(part) is not SimpleImputer:
                return
    elif isinstance(step, FeatureUnion):
        for name, part in step.transformer_list:
            yield from _misfits(part, name, columns, names)
    elif isinstance(step, ColumnTransformer):
        remaining = set(range(len(columns)))
        for name, part, chosen in step.transformers:
            try:
                places = _places(chosen, len(columns), names)
            except (AttributeError, IndexError, TypeError, ValueError):
                places = []  # missing columns are refused by scikit-learn
            remaining.difference_update(places)
            # inner transformers number their columns from 0
            inner = None if names is None else [names[i] for i in places]
            yield from _misfits(part, name, [columns[i] for i in places], inner)
        left = sorted(remaining)
        inner = None if names is None else [names[i] for i in left]
        yield from _misfits(step.remainder, "remainder", [columns[i] for i in left], inner)
    else:
        yield from _wrong(step, label, columns)


def check_kinds_inside(steps, dummy):
    """Check the types inside of pipelines, behind steps that make new columns; see :func:`check_kinds`.

    Parameters
    ----------
    steps : transformer
        Fitted.
    dummy : table of shape (1, p)

    Raises
    ------
    ValueError
        Names all such steps.
    """
    found = {}

    def watch(path, part):
        return _Watch(part, path[-1] if path else type(part).__name__, found)

    # in place, because a fitted step may not support copying
    watched = map_parts(steps, watch)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            watched.transform(dummy)
    finally:
        map_parts(watched, lambda path, part: part.step)
    if found:
        raise _refused(found)


class _Watch(BaseEstimator):
    """Step that records whether the input of a fitted step has the right type."""

    def __init__(self, step, label, found):
        self.step, self.label, self.found = step, label, found

    def fit(self, X, y=None):
        return self  # scikit-learn requires `fit` of an estimator

    def transform(self, X):
        columns = [X] if np.ndim(X) == 1 else list_columns(X)
        for label, wrong in _wrong(self.step, self.label, list(enumerate(map(column_kind, columns)))):
            self.found.setdefault(label, wrong)
        return self.step.transform(X)

    def get_feature_names_out(self, input_features=None):
        return self.step.get_feature_names_out(input_features)

    def __sklearn_is_fitted__(self):
        return True


def _wrong(step, label, columns):
    """Yield a single step with the reason if it does not fit."""
    wrong = []
    if isinstance(step, (OneHotEncoder, OrdinalEncoder)) and not isinstance(step.categories, str):
        wrong = _wrong_categories(step, columns)
    elif isinstance(step, (SimpleImputer, MissingIndicator)):
        wrong = _wrong_values(step, columns)
    elif isinstance(step, VECTORIZERS) and [kind for _, kind in columns] == [NUMBERS]:
        wrong = [f"is made for text, and column {columns[0][0]} of X holds numbers"]
    for what in wrong:
        yield label, f"Step {label!r} ({type(step).__name__}) {what}"


def _wrong_categories(step, columns):
    for (place, kind), known in zip(columns, step.categories):
        kinds = {_kind(value) for value in known} - {None}
        if not kinds:
            yield (f"has no category that is a number or a text for column {place}, so it takes either")
        elif kind is not None and kind not in kinds:
            yield f"has categories that are {kinds.pop()}, and column {place} of X holds {kind}"


def _wrong_values(step, columns):
    for name in ("fill_value", "missing_values"):
        if _kind(getattr(step, name, None)) == NUMBERS:
            for place, kind in columns:
                if kind == TEXT:
                    yield f"has a {name} that is a number, and column {place} of X holds text"


def _refused(found):
    return ValueError(f"{'; '.join(found.values())}. {SAME_KIND}")


def _kind(value):
    if isinstance(value, str):
        return TEXT
    # NaN marks a gap in both
    return NUMBERS if isinstance(value, NUMERIC_TYPES) and value == value else None


def _places(chosen, n_columns, names):
    """Return the indices of the columns that a ColumnTransformer selects."""
    every = np.arange(n_columns)
    if isinstance(chosen, slice) and any(isinstance(end, str) for end in (chosen.start, chosen.stop)):
        first = 0 if chosen.start is None else names.index(chosen.start)
        last = n_columns - 1 if chosen.stop is None else names.index(chosen.stop)
        return every[first : last + 1].tolist()
    if not isinstance(chosen, slice):
        chosen = np.atleast_1d(np.asarray(chosen))
        if not chosen.size:
            return []
        if chosen.dtype.kind in "OU":
            chosen = [names.index(name) if isinstance(name, str) else name for name in chosen.tolist()]
    return every[chosen].tolist()

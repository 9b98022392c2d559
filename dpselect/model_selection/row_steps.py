"""The steps before a model, and the rows that they return: lazily, where rows are not in memory.

Every step but a private one treats each row by itself, with parameters that do not depend on the
data (:func:`~dpselect.preprocessing.check_pipeline_privacy`). So it is fitted on a dummy row of the
public form, and what it stores (types, names, categories) can tell nothing of a record.
"""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from ..config import usual_settings
from ..ledger import without_spending
from ..noise.generators import noise_for_dummy_data
from ..preprocessing.declared_form import read_declared_form
from ..preprocessing.kinds_check import check_kinds_inside
from ..preprocessing.pipeline_check import map_parts, releases_privately
from ..preprocessing.table_cells import CellError
from ..preprocessing.table_encoder import TableEncoder
from ..preprocessing.table_form import DUMMY_NUMBERS, DUMMY_TEXT, TableForm, read_form
from ..rows import (
    as_lazy,
    column_names,
    gathered,
    is_lazy,
    map_rows,
    on_first_row,
    read_by_block,
    take,
)

# end of a refusal's message
NO_DUMMY = (
    f"(Said of a dummy row in the form of X, in which a number is {DUMMY_NUMBERS[0]} or "
    f"{DUMMY_NUMBERS[1]} and a text is {DUMMY_TEXT!r}: the steps before the model are fitted on it, and "
    "not on records.)"
)


@dataclass(frozen=True)
class PublicRows:
    """The public part of a table: dummy rows, and the form that they were made of.

    `dummies` are tables of one row each. One is enough; there are more for steps that do not take the
    first. `form` is that of the table that the first step sees.
    """

    dummies: list
    form: TableForm

    @property
    def n_columns(self):
        return self.dummies[0].shape[1]


def public_rows(X, *steps):
    """Return the public part of a table as the first step of each of the Pipelines sees it.

    It may be a plan's example.
    """
    first = [None if pipeline is None else pipeline.steps[0][1] for pipeline in steps]
    form = _form(X, first)
    return PublicRows(form.dummies(), form)


def _form(X, first):
    """Return the form of a table, by the schema of the steps that see it if there is one."""
    if not first or not all(isinstance(step, TableEncoder) for step in first):
        return read_form(X)
    shape = np.shape(X)
    if len(shape) == 2:
        names = column_names(X)
        known = [step.declared(names, shape[1]) for step in first]
        if known[0] is not None and all(each == known[0] for each in known):
            return read_declared_form(X, known[0])
    return read_form(X, gaps=True)


def fit(steps, public):
    """Fit steps that learn nothing on a dummy row, and return the PublicRows of their output."""
    # in this process, whose context excludes fits on dummies from spending
    with _unknown_categories_ignored(steps), parallel_config(backend="sequential"):
        given = public.dummies
        # SplineTransformer needs two rows
        for i, first in enumerate(chain(given, map(_twice, given))):
            try:
                dummies = [_on_dummy(partial(_fit_transform, steps), first)]
                break
            except ValueError:
                if i + 1 == 2 * len(given):
                    raise
        if i >= len(given):
            dummies = [take(dummies[0], [0])]
        for dummy in given[i % len(given) + 1 :]:
            try:
                dummies.append(_on_dummy(steps.transform, dummy))
            except ValueError:
                pass  # try the next dummy
        check_kinds_inside(steps, first)
    map_parts(steps, _keep_integer_statistics)
    return PublicRows(dummies, public.form)


def transform(steps, X, public, stored=False, for_one_fit=False):
    """Return the output of fitted steps for X, in its public form; lazy if X is.

    So they are if they are many, unless they are to be `stored`; `for_one_fit`, those of an encoder are
    read by block earlier.
    """
    row = public.dummies[0]
    only = steps[0] if isinstance(steps, Pipeline) and len(steps) == 1 else steps
    encoder = isinstance(only, TableEncoder) and type(row) is np.ndarray
    if not is_lazy(X):
        cheap = for_one_fit and encoder and not only.n_fourier
        by_block = None if stored or sparse.issparse(row) else read_by_block(X, row.shape[1], cheap)
        if by_block is None:
            return quietly(steps.transform, X)
        X = by_block
        if encoder:
            return quietly(only.transform, X)  # it decides once how to read all blocks
    return map_rows(partial(quietly, steps.transform), X, tuple(row.shape[1:]), column_names(row))


def as_model_sees(estimator, X):
    """Return what predicts of a fitted estimator, and the rows to predict from.

    scikit-learn's steps take no lazy rows, so those of a Pipeline are applied chunk by chunk, as in a
    search, and the model alone predicts.
    """
    rows = as_lazy(X)
    if not (is_lazy(rows) and isinstance(estimator, Pipeline)):
        return estimator, X
    steps, model = estimator[:-1], estimator[-1]
    if all(step in (None, "passthrough") or _reads_lazily(step) for _, step in steps.steps):
        return estimator, X
    apply = partial(quietly, steps.transform)
    tail, names = on_first_row(partial(_form_of_output, apply), rows)
    rows = map_rows(apply, rows, tail, names)
    return model, rows if _reads_lazily(model) else gathered(rows, type(model).__name__)


def _reads_lazily(step):
    return getattr(step, "reads", {}).get("lazily", False)


def _form_of_output(apply, row):
    output = apply(row)
    return tuple(output.shape[1:]), column_names(output)


def fit_private(step, X, y, public, groups=None):
    """Fit a step that learns privately, or a composite one with such parts, on all records.

    What learns nothing in it is fitted on a dummy row, as it is alone. Returns the step, and the
    PublicRows that it gives.
    """
    if releases_privately(step):
        quietly(step.fit if groups is None else partial(step.fit, groups=groups), X, y)
        dummies = [_on_dummy(step.transform, dummy) for dummy in public.dummies]
        return step, PublicRows(dummies, public.form)
    if is_lazy(X):
        raise ValueError(
            f"A part of {type(step).__name__} learns from the data, and scikit-learn would gather "
            "all rows for it; make the part a step of the Pipeline itself, or give X in memory."
        )
    # fit a clone first: the composites of these parts see records, and are discarded
    trial = clone(step)
    fit(trial, public)
    parts = _single_parts(trial)
    before = {
        path: clone(part) if releases_privately(part) else FrozenEstimator(part)
        for path, part in parts.items()
    }
    with _replaced(trial, before, {}):
        quietly(trial.fit, X, y)
    parts.update({p: part for p, part in _single_parts(trial).items() if releases_privately(part)})
    with _replaced(step, {path: FrozenEstimator(part) for path, part in parts.items()}, parts):
        public = fit(step, public)
    return step, public


def _twice(dummy):
    if sparse.issparse(dummy):
        return type(dummy)(sparse.vstack([dummy, dummy]))
    return take(dummy, [0, 0])


def _fit_transform(steps, dummy):
    """Fit steps one by one, so that later ones see the released names of columns."""
    if isinstance(steps, Pipeline):
        for _, step in steps.steps:
            if step is not None and step != "passthrough":
                dummy = _fit_transform(step, dummy)
        return dummy
    if not hasattr(steps, "fit_transform"):  # a frozen step
        return steps.fit(dummy, None).transform(dummy)
    row, kept = steps.fit_transform(dummy), {}
    map_parts(steps, partial(_keep_integer_categories, kept))
    if not kept:
        return row
    if () in kept:  # the step itself
        return steps.transform(dummy)
    with _replaced(steps, {path: FrozenEstimator(part) for path, part in kept.items()}, kept):
        return steps.fit_transform(dummy)


def _single_parts(steps):
    """Return the parts by path, with the fitted clones of a ColumnTransformer."""
    found = {}
    map_parts(steps, lambda path, part: found.update({path: part}) or part)
    return found


@contextmanager
def _replaced(steps, before, after):
    """Replace parts by `before`, by path, and by `after` when the block ends."""
    map_parts(steps, lambda path, part: before.get(path, part))
    try:
        yield
    finally:
        map_parts(steps, lambda path, part: after.get(path, part))


def _on_dummy(function, dummy):
    """Return ``function(dummy)``; errors about dummy rows may quote them."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            # while planning, steps that learn privately are fitted on dummies, too
            with without_spending(), noise_for_dummy_data():
                row = function(dummy)
        if len(getattr(row, "shape", ())) == 2:
            return row
        said = "The steps before the model give no table of two dimensions"
    except Exception as error:
        said = str(error)
    raise ValueError(f"{said.rstrip('.')}. {NO_DUMMY}")


@contextmanager
def _unknown_categories_ignored(steps):
    """Make encoders accept a dummy row, whose values may not be among their categories."""
    strict = {}

    def relax(path, part):
        if isinstance(part, FrozenEstimator):
            map_parts(part.estimator, partial(_below, relax, path))
        elif isinstance(part, (OneHotEncoder, OrdinalEncoder)) and part.handle_unknown == "error":
            strict[path] = {"handle_unknown": "error"}
            relaxed = {"handle_unknown": "ignore"}
            if isinstance(part, OrdinalEncoder):
                strict[path]["unknown_value"] = part.unknown_value
                code = 1 + max((np.size(known) for known in part.categories), default=0)
                relaxed = {"handle_unknown": "use_encoded_value", "unknown_value": code}
            part.set_params(**relaxed)
        return part

    def restore(path, part):
        if isinstance(part, FrozenEstimator):
            map_parts(part.estimator, partial(_below, restore, path))
        elif path in strict:
            part.set_params(**strict[path])
        return part

    map_parts(steps, relax)
    try:
        yield
    finally:
        # restore the fitted clones, too
        map_parts(steps, restore)


def _below(function, start, path, part):
    return function((*start, *path), part)


def _keep_integer_categories(kept, path, part):
    """Make an encoder store integers as in its parameter, although the dummy row has floats.

    Names of columns are made of categories. Encoders that are changed are added to `kept`.
    """
    if isinstance(part, (OneHotEncoder, OrdinalEncoder)) and not isinstance(part.categories, str):
        for j, known in enumerate(getattr(part, "categories_", ())):
            given = np.asarray(part.categories[j])
            if known.dtype.kind == "f" and given.dtype.kind in "biu":
                part.categories_[j] = given.copy()
                kept[path] = part
    return part


def _keep_integer_statistics(path, part):
    """Make an imputer store integers: one fitted on floats refuses integers."""
    if isinstance(part, SimpleImputer) and hasattr(part, "statistics_"):
        integers = np.ones((1, part.n_features_in_), dtype=np.int64)
        try:
            # it may return a dataframe
            rows = np.asarray(quietly(part.transform, integers.astype(np.float64)))
            trial = quietly(clone(part).fit, integers)
        except ValueError:  # its fill value or missing value is not an integer
            return part
        if rows.dtype != object:
            names = getattr(part, "feature_names_in_", None)
            vars(part).update(vars(trial))
            if names is not None:
                part.feature_names_in_ = names
    return part


def quietly(function, *args):
    """Call a method of a step on records, without its warnings, and without records in its errors.

    Of messages only those on columns, and on missing and infinite values, are kept: they quote nothing.
    """
    try:
        with warnings.catch_warnings(), usual_settings():
            warnings.simplefilter("ignore")
            return function(*args)
    except CellError as error:
        said = str(error)
    except Exception as error:
        if "Input X contains NaN" in str(error) or "Input X contains infinity" in str(error):
            raise
        said = (
            f"The steps before the model could not transform X ({type(error).__name__}); check its "
            "columns, missing values and categories (OneHotEncoder: handle_unknown='ignore') without "
            "looking at single records."
        )
    # outside the except block, so that the original error is not attached as __context__
    raise ValueError(said)

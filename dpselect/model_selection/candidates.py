"""The candidates of a grid: data-independent steps, a private model, its certificates."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.pipeline import Pipeline

from ..base.capabilities import require
from ..base.estimator import PrivateEstimator
from ..base.learned_numbers import first_releases
from ..exceptions import CertificateError
from ..ledger import refuse_inner_ledger
from ..preprocessing.kinds_check import check_kinds
from ..preprocessing.learned_ranges import narrowed
from ..preprocessing.pipeline_check import check_pipeline_privacy, releases_privately
from ..preprocessing.ranges_of_a_fit import ranges_to_learn
from ..preprocessing.table_form import is_documents
from ..preprocessing.tabular import BOUNDS, TOLD, TabularPipeline, known_share, write_share
from ..records.public_shape import PublicShape, n_problems
from ..records.records import one_label_a_row, public_classes, warn_if_labels_learned
from ..utils.validation import unquoted
from . import row_steps
from .private_steps import check_candidate, check_grid, keep_to_memory, last_step
from .sklearn_forms import grid_points

OWNED = ("epsilon", "random_state")


@dataclass(frozen=True)
class Candidate:
    """Point of the grid; frozen, so that a change gives a new candidate.

    Attributes
    ----------
    params : dict
        The point.
    estimator : estimator
        A clone of the search's estimator that has these parameters.
    params_key : tuple
        Equal for candidates with the same parameters of the steps before the model.
    n_features : int or None
        Columns that reach the model, once they are known.
    fitted_steps, output : Pipeline and PublicRows, or None
        The steps before the model, fitted on a dummy row, and what is public of the rows they give.
    persons : bool
        Whether records are persons with any number of rows.
    """

    params: dict
    estimator: Any
    params_key: tuple = field(repr=False)
    n_features: int | None = None
    fitted_steps: Any = None
    output: Any = field(default=None, repr=False)
    persons: bool = False

    @property
    def model(self):
        """The private model: the estimator itself, or the last step of a Pipeline."""
        return last_step(self.estimator)

    @property
    def ruled(self):
        """The value of the parameter that a public rule decides, such as `alpha`, or None."""
        return getattr(self.model, getattr(self.model, "ruled_param", ""), None)

    @property
    def but_for_ruled(self):
        """Equal for candidates that differ in that parameter of their model only."""
        ruled = getattr(self.model, "ruled_param", None)
        # values of a grid need not be comparable, and one value is one object in all candidates
        return tuple(
            (name, id(value))
            for name, value in sorted(self.params.items())
            if not (self.belongs_to_model(name) and name.rpartition("__")[2] == ruled)
        )

    @property
    def steps(self):
        """The steps before the model as a Pipeline, or None."""
        pipeline = isinstance(self.estimator, Pipeline)
        return self.estimator[:-1] if pipeline and len(self.estimator.steps) > 1 else None

    def belongs_to_model(self, name):
        """Return whether a parameter of the grid is one of the model's."""
        pipeline = isinstance(self.estimator, Pipeline)
        return not pipeline or name.startswith(f"{self.estimator.steps[-1][0]}__")

    def with_model_params(self, **params):
        """Return the candidate with other parameters of its model."""
        estimator = clone(self.estimator)
        last_step(estimator).set_params(**params)
        return replace(self, estimator=estimator)

    def first_releases(self, n_samples=None, epsilon=None):
        """Return what is learned first, by the parameter: of the model, and `ranges` of its encoder.

        Of columns that a fit of so many records would read with this epsilon, if they are given.
        """
        ranges = None
        if isinstance(self.estimator, TabularPipeline):
            estimator = self.estimator if n_samples is None else self.for_fit(n_samples, epsilon)
            ranges = ranges_to_learn(estimator)
        return first_releases(self.model) | ({} if ranges is None else {"ranges": ranges})

    def for_fit(self, n_samples, epsilon):
        """Return the TabularPipeline, made for a fit of so many records with this epsilon."""
        return clone(self.estimator).bound(n_samples, epsilon)

    def with_learned(self, ranges=None, **params):
        """Return the candidate with values of what is learned first; ranges of None keep the schema."""
        changed = self.with_model_params(**params)
        if isinstance(self.estimator, TabularPipeline):
            encoder = changed.estimator.steps[-2][1]
            if ranges is not None:
                encoder.set_params(schema=narrowed(encoder.public_schema(), ranges))
            encoder.set_params(ranges=None)
        return changed

    def rows_of_numbers(self, release, X):
        """Return the rows that ranges are learned from."""

        def transform(encoder):
            estimator = Pipeline([("encoder", encoder), ("model", self.model)])
            alone = replace(self, estimator=estimator, n_features=None, fitted_steps=None, output=None)
            return alone.transform(X, for_one_fit=True)

        return release.rows(self.estimator.steps[-2][1], transform)

    def fitted_on(self, public):
        """Return the candidate with its steps fitted on a dummy row of a table with these PublicRows."""
        check_kinds(self.steps, public.form)
        steps = clone(self.steps)
        output = row_steps.fit(steps, public)
        return replace(self, fitted_steps=steps, output=output, n_features=output.n_columns)

    def transform(self, X, for_one_fit=False):
        """Return the rows as the model sees them: steps treat each by itself, so once for all splits.

        `for_one_fit`, they need less memory; see :func:`~dpselect.model_selection.row_steps.transform`.
        """
        if self.steps is None:
            return X
        if self.fitted_steps is None:
            return self.fitted_on(row_steps.public_rows(X, self.steps)).transform(X, for_one_fit)
        rows = row_steps.transform(self.fitted_steps, X, self.output, for_one_fit=for_one_fit)
        if np.shape(rows)[1:] != (self.n_features,):
            raise ValueError(
                "The steps before the model give another number of columns on the records than on "
                "a dummy row, and the noise was planned for that one; use steps whose columns do not "
                "depend on the records."
            )
        return rows

    def with_steps(self, model):
        """Return a fitted model behind the fitted steps, as the estimator has it."""
        if not isinstance(self.estimator, Pipeline):
            return model
        before = [] if self.steps is None else self.fitted_steps.steps
        return Pipeline([*before, (self.estimator.steps[-1][0], model)])

    @property
    def steps_key(self):
        """Equal for candidates whose steps before the model are the same."""
        if not isinstance(self.estimator, TabularPipeline):
            return self.params_key
        # the model sets parameters of its encoder
        delta, share = parameters(self.model).get("delta"), self.estimator.steps[-2][1].class_share
        return *self.params_key, self.n_problems, delta, share

    @property
    def n_problems(self):
        """Number of one-vs-rest problems: 1 for two classes, else the number of classes."""
        return n_problems(self.model)

    def shape(self, n_samples):
        """Return what is public of the records that reach the model."""
        return PublicShape(n_samples, self.n_features, self.n_problems, self.persons)


def parameters(model):
    """Return the parameters of a model that was not fitted."""
    # a calibration takes no longer than scikit-learn takes to find their names
    return vars(model) if isinstance(model, PrivateEstimator) else model.get_params()


def n_columns(X, name="X"):
    """Return the number of columns of a table, which `name` has in messages."""
    if is_documents(X):
        return 1
    shape = X.shape if hasattr(X, "shape") else unquoted(np.shape, X, what=name)
    if len(shape) != 2:
        raise ValueError(
            f"{name} has {len(shape)} dimensions, but a search needs a table of rows and columns "
            f"(2 dimensions); reshape it, for instance with {name}.reshape(-1, 1)."
        )
    return shape[1]


def places_by(items, key):
    """Return the places of items in groups of the same key; candidates of one `steps_key` see one X."""
    groups = {}
    for i, item in enumerate(items):
        groups.setdefault(key(item), []).append(i)
    return list(groups.values())


def make_candidates(
    estimator, param_grid, *, trusted_steps, persons=False, needs=None, search="a private search"
):
    """Return the candidates of a grid, each checked before any data is touched.

    `persons` tells whether records are persons with any number of rows, `needs` is the capability that
    a model must have, and `search` names what needs it in messages.
    """
    points = grid_points(param_grid)
    if not points:
        raise ValueError("param_grid has no candidates; give at least one value for a parameter.")
    last = estimator.steps[-1][0] if isinstance(estimator, Pipeline) else None
    names = {name: None for params in points for name in params}
    check_grid(estimator, [names])
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"param_grid has a key of type {type(name).__name__}, and parameters have "
                "names; write them as texts."
            )
        owner, _, own = name.rpartition("__")
        if own in OWNED and owner in ("", last):
            raise ValueError(
                f"param_grid names {name!r}, which the search sets itself to keep its budget; "
                "give it to the search instead."
            )
    candidates = []
    for params in points:
        copy = clone(estimator)
        copy.set_params(**{name: clone(value, safe=False) for name, value in params.items()})
        if isinstance(copy, TabularPipeline):
            _bound(copy, params)
        refuse_inner_ledger(copy, "search")
        _check_last_step(copy, search)
        check_pipeline_privacy(copy, trusted_steps)
        check_candidate(estimator, copy)
        keep_to_memory(copy)
        key = tuple(
            (name, id(value))
            for name, value in sorted(params.items())
            if last is not None and name.partition("__")[0] != last
        )
        candidates.append(Candidate(params, copy, key, persons=persons))
        if needs is not None:
            instead = "use a private estimator of dpselect as the last step"
            require(needs, last_step(copy), search, instead)
    return candidates


def _bound(pipeline, params):
    """Bound the rows of the model by the norms of this candidate's encoder."""
    write_share(pipeline)  # as it is given: shares may be learned later
    pipeline.bound()
    owned = {f"{pipeline.steps[-1][0]}__{name}": "reads from its encoder" for name in BOUNDS}
    told = TOLD if known_share(last_step(pipeline)) is None else (*TOLD, "class_share")
    for name in told:
        owned[f"{pipeline.steps[-2][0]}__{name}"] = "writes from public numbers"
    for name in params.keys() & owned.keys():
        raise ValueError(
            f"param_grid names {name!r}, which a TabularPipeline {owned[name]}; leave it out, or give "
            "the steps to a Pipeline."
        )


def bound(candidates, n_samples, epsilon):
    """Return the candidates with TabularPipelines that are made for the fit to come."""
    return [
        replace(candidate, estimator=candidate.for_fit(n_samples, epsilon))
        if isinstance(candidate.estimator, TabularPipeline)
        else candidate
        for candidate in candidates
    ]


def with_columns(candidates, n_features, public):
    """Return the candidates once the columns of the table are known, with steps fitted on dummy rows.

    `public` are the PublicRows of the table, or None if there are no steps or no table yet.
    """
    fitted, columns = {}, []
    for candidate in candidates:
        if public is None or candidate.steps is None:
            columns.append(replace(candidate, n_features=n_features))
            continue
        if candidate.steps_key not in fitted:
            fitted[candidate.steps_key] = candidate.fitted_on(public)
        first = fitted[candidate.steps_key]
        columns.append(
            replace(
                candidate,
                fitted_steps=first.fitted_steps,
                output=first.output,
                n_features=first.n_features,
            )
        )
    return columns


def _check_last_step(estimator, search):
    """Refuse what is no private model, before anything is said of the steps before it."""
    last = last_step(estimator)
    shown = repr(last) if last is None or isinstance(last, str) else type(last).__name__
    where = "The last step of the Pipeline" if isinstance(estimator, Pipeline) else "The estimator"
    missing = [name for name in OWNED if name not in getattr(last, "get_params", dict)()]
    if missing:
        raise CertificateError(
            f"{where}, {shown}, is no private model: {search} needs one with {' and '.join(missing)}, "
            "because its loss is to be stated; write a private estimator of dpselect, such as "
            "DPLogisticRegression or DPRidge."
        )


def seed_features(estimator, stream):
    """Return a clone whose steps that draw random features without a random_state have one.

    All candidates, and the released model, then use the same features. They are public. The
    noise of private steps, and of the model, is not: those keep their random_state.
    """
    estimator = clone(estimator)
    if not isinstance(estimator, Pipeline):
        return estimator
    params = estimator.get_params()
    secret = [name for name, value in params.items() if releases_privately(value)]
    secret = tuple(f"{owner}__" for owner in (*secret, estimator.steps[-1][0]))
    return estimator.set_params(
        **{
            name: stream.child(name).integer()
            for name, value in params.items()
            if name.endswith("__random_state") and value is None and not name.startswith(secret)
        }
    )


def with_classes(candidates, classes):
    """Return the candidates with these labels where a model has `classes` and no value for it."""
    if classes is None:
        return candidates
    return [
        candidate.with_model_params(classes=classes)
        if parameters(candidate.model).get("classes", 0) is None
        else candidate
        for candidate in candidates
    ]


def learn_classes(candidates, y, owner):
    """Return the public labels of the models, or learn them from `y` with a warning if there are none.

    Returns y, one label a record, and the classes; what was given, and None, if no model has labels.
    """
    given = [
        candidate.model.classes for candidate in candidates if "classes" in parameters(candidate.model)
    ]
    if not given:
        # a target that is not a number would reach scores, if not the training
        regression = isinstance(candidates[0].model, RegressorMixin)
        return one_label_a_row(y, owner) if regression else y, None
    known = next((classes for classes in given if classes is not None), None)
    warn_if_labels_learned(known, owner)
    y = one_label_a_row(y, owner)
    return y, public_classes(y, known, owner)

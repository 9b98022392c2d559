"""The candidates of a grid: data-independent steps, a private model, its certificates."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from ..base.capabilities import require
from ..base.estimator import PrivateEstimator
from ..exceptions import CertificateError
from ..ledger import refuse_inner_ledger
from ..preprocessing.kinds_check import check_kinds
from ..preprocessing.pipeline_check import check_pipeline_privacy, releases_privately
from ..preprocessing.table_form import is_documents
from ..preprocessing.tabular import BOUNDS, TOLD, TabularPipeline
from ..records.public_shape import PublicShape, n_problems
from ..records.records import one_label_a_row, public_classes, warn_if_labels_learned
from ..utils.parameters import with_values
from ..utils.validation import unquoted
from . import row_steps
from .private_steps import check_candidate, check_grid, keep_to_memory, last_step

OWNED = ("epsilon", "random_state")


@dataclass
class Candidate:
    """One point of the grid: its `params`, and a clone of the estimator that has them.

    `params_key` is that of the parameters of the steps before the model. `n_features` counts
    the columns that reach the model, `fitted_steps` are the steps, fitted on a dummy row, and `output`
    is what is public of the rows that they give; all three once the columns are known. `persons` tells
    whether records are persons with any number of rows. Of one `kind` are candidates without steps that
    differ in numbers of a private estimator only. `but_for_alpha` is equal for candidates that differ in
    `alpha` only, that of their model, if it has one.
    """

    params: dict
    estimator: object
    params_key: tuple = field(repr=False)
    n_features: int | None = None
    fitted_steps: object = None
    output: object = field(default=None, repr=False)
    persons: bool = False
    kind: object = field(default_factory=object, repr=False, compare=False)

    def __post_init__(self):
        # grids are long, and an abstract class takes its time to say what an instance of it is
        self._has_steps = isinstance(self.estimator, Pipeline)
        # values of a grid need not be comparable, and one value is one object in all candidates
        self._other_names = [
            name
            for name in sorted(self.params)
            if not (self.belongs_to_model(name) and name.rpartition("__")[2] == "alpha")
        ]
        self.but_for_alpha = self._but_for_alpha(self.params)
        self.alpha = getattr(self.model, "alpha", None)

    def with_numbers(self):
        """Return a function from `params` to a candidate of the same kind; none has been fitted."""
        shared = vars(self) | {"_alike": with_values(self.estimator)}
        del shared["estimator"]

        def of_this_kind(params):
            candidate = object.__new__(type(self))
            candidate.__dict__ = shared | {"params": params, "alpha": params.get("alpha", self.alpha)}
            if self._other_names:
                candidate.but_for_alpha = self._but_for_alpha(params)
            return candidate

        return of_this_kind

    def __getattr__(self, name):
        # most candidates of a long grid are never asked for their estimator
        if name != "estimator":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.estimator = with_values(self._alike, **self.params)
        return self.estimator

    @property
    def model(self):
        """The private model: the estimator itself, or the last step of a Pipeline."""
        return self.estimator.steps[-1][1] if self._has_steps else self.estimator

    @property
    def steps(self):
        """The steps before the model as a Pipeline, or None."""
        if self._has_steps and len(self.estimator.steps) > 1:
            return self.estimator[:-1]
        return None

    def belongs_to_model(self, name):
        """Tell whether a parameter of the grid is one of the model's."""
        return not self._has_steps or name.startswith(f"{self.estimator.steps[-1][0]}__")

    def _but_for_alpha(self, params):
        return tuple((name, id(params[name])) for name in self._other_names)

    def fit_steps(self, public):
        """Fit the steps on a dummy row of a table, of which these are the PublicRows."""
        check_kinds(self.steps, public.form)
        self.fitted_steps = clone(self.steps)
        self.output = row_steps.fit(self.fitted_steps, public)

    def transform(self, X):
        """Return the rows as the model sees them: steps treat each by itself, so once for all splits."""
        if self.steps is None:
            return X
        if self.fitted_steps is None:
            self.fit_steps(row_steps.public_rows(X, self.steps))
        rows = row_steps.transform(self.fitted_steps, X, self.output)
        if self.n_features is not None and np.shape(rows)[1:] != (self.n_features,):
            raise ValueError(
                "The steps before the model give another number of columns on the records than on "
                "a dummy row, and the noise was planned for that one; use steps whose columns do not "
                "depend on the records."
            )
        return rows

    def with_steps(self, model):
        """Return a fitted model behind the fitted steps, as the estimator has it."""
        if not self._has_steps:
            return model
        before = [] if self.steps is None else self.fitted_steps.steps
        return Pipeline([*before, (self.estimator.steps[-1][0], model)])

    @property
    def steps_key(self):
        """Equal for candidates whose steps before the model are the same."""
        return *self.params_key, self.n_problems if isinstance(self.estimator, TabularPipeline) else 1

    @property
    def n_problems(self):
        """One-vs-rest problems of the model: 1 for two classes, else their number."""
        return n_problems(self.model)

    def shape(self, n_samples):
        """Return what is public of the records that reach the model."""
        return PublicShape(n_samples, self.n_features, self.n_problems, self.persons)


def one_of_each_kind(candidates):
    """Return the first candidate of each kind: for what numbers do not decide."""
    return list({candidate.kind: candidate for candidate in reversed(candidates)}.values())[::-1]


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


def make_candidates(estimator, param_grid, *, trusted_steps, needs=None, search="a private search"):
    """Return the candidates of a grid, each checked before any data is touched.

    `needs` is the capability that a model must have, and `search` what needs it, for messages.
    """
    if not np.iterable(param_grid):
        raise TypeError(
            f"param_grid of type {type(param_grid).__name__} lists no values; write a dict of lists, "
            "or a list of such dicts."
        )
    points = list(ParameterGrid(param_grid))
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
    candidates, checked, alone = [], {}, isinstance(estimator, PrivateEstimator)
    for params in points:
        alike = _but_for_numbers(params) if alone and params else None
        if alike in checked:
            candidates.append(checked[alike](params))
            continue
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
        candidates.append(Candidate(params, copy, key))
        _check_model(candidates[-1].model, needs, search)
        if alike is not None:
            checked[alike] = candidates[-1].with_numbers()
    return candidates


def _but_for_numbers(params):
    """Return what the points of candidates of one kind share."""
    return tuple(
        [(name, float if isinstance(value, float) else id(value)) for name, value in params.items()]
    )


def _bound(pipeline, params):
    """Let the rows of the model be bounded as the encoder of this candidate makes them."""
    pipeline.bound()
    owned = {f"{pipeline.steps[-1][0]}__{name}": "reads from its encoder" for name in BOUNDS}
    owned[f"{pipeline.steps[-2][0]}__{TOLD}"] = "writes from public numbers"
    for name in params.keys() & owned.keys():
        raise ValueError(
            f"param_grid names {name!r}, which a TabularPipeline {owned[name]}; leave it out, or give "
            "the steps to a Pipeline."
        )


def bind(candidates, n_samples, epsilon):
    """Let all TabularPipelines know the fit to come; tell whether there are any."""
    pipelines = [
        c.estimator for c in one_of_each_kind(candidates) if isinstance(c.estimator, TabularPipeline)
    ]
    for pipeline in pipelines:
        pipeline.bound(n_samples, epsilon)
    return bool(pipelines)


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


def _check_model(model, needs, search):
    if needs is not None:
        require(needs, model, search, "use a private estimator of dpselect as the last step")


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


def set_classes(candidates, classes):
    """Give the labels to every model that has a parameter `classes` and no value for it."""
    unknown = {
        candidate.kind
        for candidate in one_of_each_kind(candidates)
        if parameters(candidate.model).get("classes", 0) is None
    }
    for candidate in candidates:
        if candidate.kind in unknown:
            candidate.model.set_params(classes=classes)


def learn_classes(candidates, y, owner):
    """Give all models the public labels; without any, learn them from `y` with a warning.

    Returns y, one label a record, and the classes; what was given, and None, if no model has labels.
    """
    given = [
        candidate.model.classes
        for candidate in one_of_each_kind(candidates)
        if "classes" in parameters(candidate.model)
    ]
    if not given:
        # a target that is not a number would reach scores, if not the training
        regression = isinstance(candidates[0].model, RegressorMixin)
        return one_label_a_row(y, owner) if regression else y, None
    known = next((classes for classes in given if classes is not None), None)
    warn_if_labels_learned(known, owner)
    y = one_label_a_row(y, owner)
    classes = public_classes(y, known, owner)
    set_classes(candidates, classes)
    return y, classes

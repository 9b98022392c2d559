"""Steps of a Pipeline that learn privately: fitted once, on all records, and public from then on."""

from joblib import parallel_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..base.capabilities import TakesGroups, require
from ..base.fit_warnings import warn_if_seeded
from ..preprocessing.kinds_check import check_kinds
from ..preprocessing.pipeline_check import inner_parts, private_parts
from .row_steps import fit, fit_private, transform


def steps_before(estimator):
    """Return the named steps before the model; none if the estimator is no Pipeline."""
    return estimator.steps[:-1] if isinstance(estimator, Pipeline) else []


def last_step(estimator):
    """Return the model of a Pipeline, or an estimator that is none."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def last_private(estimator):
    """Return the position of the last step that pays for what it learns, or -1."""
    found = [i for i, (_, step) in enumerate(steps_before(estimator)) if private_parts(step)]
    return max(found, default=-1)


def check_grid(estimator, points):
    """Refuse a grid over a step up to the last private one: each value would be a release."""
    fixed = [name for name, _ in steps_before(estimator)[: last_private(estimator) + 1]]
    for params in points:
        for name in params:
            if name == "steps" and isinstance(estimator, Pipeline):
                raise ValueError(
                    "param_grid replaces all 'steps' at once, so they cannot be distinguished; name "
                    "the step that varies."
                )
            if str(name).partition("__")[0] in fixed:
                raise ValueError(
                    f"param_grid varies {name!r}, a step up to the last one that learns from the "
                    "data privately, and each value would be a release of its own; fix it."
                )


def check_candidate(estimator, candidate):
    """Refuse a candidate with a private step that the estimator itself does not have there."""
    if last_private(candidate) > last_private(estimator):
        raise ValueError(
            "param_grid brings in a step that learns from the data privately, and each value would "
            "be a release of its own; make it a step of the estimator."
        )


def keep_to_memory(estimator):
    """Switch off what writes rows to disk, prints timings, or hands records to others."""
    for _, part in [("", estimator), *(inner_parts(estimator) or [])]:
        if part is not estimator and inner_parts(part) is not None:
            keep_to_memory(part)
        if inner_parts(part) is not None:
            off = {"memory": None, "verbose": False}
            part.set_params(**{name: off[name] for name in off.keys() & part.get_params(deep=False)})
        if hasattr(part, "set_callbacks"):  # scikit-learn 1.9 and later
            part.set_callbacks()


def check_groups_are_taken(estimator):
    """Refuse rows of persons, before any data is read, if a private step does not take them."""
    for name, step in steps_before(estimator):
        for part in private_parts(step):
            if part is not step:
                raise ValueError(
                    f"groups do not reach {type(part).__name__} inside of the step {name!r}; make it a "
                    "step of the Pipeline itself."
                )
            require(TakesGroups, part, "groups", "leave them out")
            part.check_takes_groups()


def freeze(estimator, X, y, stream, public, groups=None):
    """Fit the private steps on all records; return a Pipeline in which they are constants.

    Returns a clone with the steps up to the last private one frozen, what its private parts spent, and
    the names of the frozen steps. Parts without a `random_state` take their noise from the stream, or
    from the operating system if it is None; steps that draw features have seeds.
    """
    estimator = clone(estimator)
    keep_to_memory(estimator)
    check_kinds(estimator, public.form)
    losses, names, last = [], [], last_private(estimator)
    for i in range(last + 1):
        name, step = estimator.steps[i]
        if step is None or isinstance(step, str):
            continue
        for j, part in enumerate(private_parts(step)):
            if stream is not None and part.random_state is None:
                part.set_params(random_state=stream.child(i, j).for_release())
            # here, because the fit's own warning is silenced with those of other libraries
            warn_if_seeded(part)
        # here and in no other thread or process, where the reservation of the search is not known
        with parallel_config(backend="sequential"):
            if private_parts(step):
                step, public = fit_private(step, X, y, public, groups)
            else:
                public = fit(step, public)
        # scikit-learn's steps with private parts take rows that are stored
        later = estimator.steps[i + 1 : last + 1]
        stored = any(part is not step for _, step in later for part in private_parts(step))
        X = transform(step, X, public, stored)
        for part in private_parts(step):
            losses.append(part.privacy_)
            # a key that stayed with the step would draw the same noise again
            part.set_params(random_state=None)
        estimator.steps[i] = (name, FrozenEstimator(step))
        names.append(name)
    return estimator, losses, names


def thaw(estimator):
    """Put the fitted steps themselves in the place of their frozen forms."""
    if isinstance(estimator, Pipeline):
        estimator.steps = [
            (name, step.estimator if isinstance(step, FrozenEstimator) else step)
            for name, step in estimator.steps
        ]
    return estimator

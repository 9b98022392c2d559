"""Steps of a Pipeline that learn privately: fitted once, on all records, and public from then on."""

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..preprocessing.pipeline_check import private_parts


def last_private(estimator):
    """Return the position of the last step that pays for what it learns, or -1."""
    if not isinstance(estimator, Pipeline):
        return -1
    found = [i for i, (_, step) in enumerate(estimator.steps[:-1]) if private_parts(step)]
    return max(found, default=-1)


def check_grid(estimator, points):
    """Refuse a grid that would make one release for each candidate.

    Parameters
    ----------
    estimator : estimator
    points : list of dict
        The candidates' parameters.

    Raises
    ------
    ValueError
        If a parameter belongs to a step up to the last private one.
    """
    fixed = [name for name, _ in estimator.steps[: last_private(estimator) + 1]] if isinstance(
        estimator, Pipeline
    ) else []
    for params in points:
        for name in params:
            if name.partition("__")[0] in fixed:
                raise ValueError(
                    f"param_grid varies {name!r}, a step up to the last one that learns from the "
                    "data privately, and each value would be a release of its own; fix it."
                )


def freeze(estimator, X, y, stream):
    """Fit the private steps and return a Pipeline in which they are constants.

    Parameters
    ----------
    estimator : Pipeline
        Its random features have seeds.
    X, y
        All records.
    stream : InnerStream or None
        Noise for private parts without a `random_state`; None for the operating system's.

    Returns
    -------
    estimator : Pipeline
        A clone in which the steps up to the last private one are frozen.
    losses : list of PrivacyLoss
        What the private parts spent, in order.
    """
    estimator = clone(estimator)
    losses = []
    for i in range(last_private(estimator) + 1):
        name, step = estimator.steps[i]
        if step is None or isinstance(step, str):
            continue
        if stream is not None:
            for j, part in enumerate(private_parts(step)):
                if part.random_state is None:
                    part.set_params(random_state=stream.child(i, j))
        X = step.fit_transform(X, y)
        losses += [part.privacy_ for part in private_parts(step)]
        estimator.steps[i] = (name, FrozenEstimator(step))
    return estimator, losses


def thaw(estimator):
    """Put the fitted steps themselves in the place of their frozen forms."""
    if isinstance(estimator, Pipeline):
        estimator.steps = [
            (name, step.estimator if isinstance(step, FrozenEstimator) else step)
            for name, step in estimator.steps
        ]
    return estimator

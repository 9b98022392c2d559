"""A grid that only post-processes one private release: its candidates cost nothing.

The model is trained once, on the training part, and each candidate is another reading of
what was released. The choice is made on the validation part, which shares no record with
the training part, so the two losses do not add: the larger one counts.
"""

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..exceptions import CertificateError
from ..mechanisms import exponential_noise_scales, noisy_argmax
from ..noise import root_stream
from ..privacy import PrivacyLoss
from ..rows import take
from .plan import SelectionPlan, resolution
from .quiet import quietly


def applies(candidates):
    """Tell whether all candidates are readings of one release.

    Parameters
    ----------
    candidates : list of Candidate

    Returns
    -------
    bool
    """
    free = getattr(candidates[0].model, "post_processing_params", ())
    return len(candidates) > 1 and all(
        candidate.belongs_to_model(name) and name.rpartition("__")[2] in free
        for candidate in candidates
        for name in candidate.params
    )


def rehearse(candidates, score, epsilon):
    """Refuse what cannot work before any data is touched: on made-up rows, of which there are two.

    Parameters
    ----------
    candidates : list of Candidate
    score : Score
    epsilon : float

    Raises
    ------
    CertificateError
        If one record can count for the score without limit.
    ValueError, TypeError
        If a candidate's parameters are refused.
    """
    model = candidates[0].model
    if not np.isfinite(score.width):
        raise CertificateError(
            f"No bound exists on what one record adds to {type(score).__name__} for a released "
            f"{type(model).__name__}; use a score with a bounded range, such as "
            "'clipped_squared_error' or 'brier'."
        )
    made_up = clone(model).set_params(epsilon=epsilon, random_state=root_stream(0))
    made_up.fit(np.zeros((2, 1)), np.zeros(2))
    for candidate in candidates:
        _reading(made_up, candidate)


def _reading(model, candidate):
    """Return the candidate's reading of what `model` released."""
    params = candidate.model.get_params()
    return model.post_process(**{name: params[name] for name in model.post_processing_params})


def make_plan(candidates, score, splits, n_samples, n_features, epsilon):
    """Return the plan of a choice among readings of one release.

    Parameters
    ----------
    candidates : list of Candidate
    score : Score
    splits : list of (train, test)
        The first one is used.
    n_samples, n_features : int
        Shape of X.
    epsilon : float
        Privacy loss of the choice; that of the release is as large.

    Returns
    -------
    SelectionPlan
    """
    k, m = len(candidates), len(splits[0][1])
    sensitivity = np.full(k, score.width / m)
    scales = exponential_noise_scales(sensitivity, epsilon)
    said = (
        "All candidates are readings of one release on the training part; the choice is made "
        "on the validation part, and the larger of the two losses counts.",
        f"Scores that differ by less than about {resolution(scales):.2g} cannot be told apart.",
    )
    return SelectionPlan(
        tuple(candidate.params for candidate in candidates), n_samples, n_features, epsilon,
        epsilon, np.zeros(k), np.full(k, score.width), sensitivity, scales, said,
    )


def select(candidates, score, splits, plan, X, y, noise_state, release_state):
    """Release a model on the training part and choose a reading of it on the validation part.

    Parameters
    ----------
    candidates : list of Candidate
    score : Score
    splits : list of (train, test)
        The first one is used.
    plan : SelectionPlan
    X, y
        All records.
    noise_state, release_state
        `random_state` of the choice and of the release.

    Returns
    -------
    best : int
    estimator : estimator
        Fitted: the model, in its Pipeline if there is one.
    loss : PrivacyLoss
    """
    train, test = splits[0]
    if np.intersect1d(train, test).size:
        raise ValueError(
            "The first split of cv validates on records that it trains on, so the losses of the "
            "release and of the choice would add up; give a split whose parts are disjoint."
        )
    steps = candidates[0].steps
    rows = candidates[0].transform(X)
    model = clone(candidates[0].model).set_params(
        epsilon=plan.selection_epsilon, random_state=release_state
    )
    model.fit(take(rows, train), None if y is None else take(y, train))
    # a key that stayed with the model would draw the same noise again
    model.set_params(random_state=None)
    readings = [_reading(model, candidate) for candidate in candidates]
    held_out = take(rows, test), None if y is None else take(y, test)
    scores = [score(reading, *held_out) for reading in readings]
    best = noisy_argmax(scores, plan.sensitivity, plan.selection_epsilon, noise_state)
    loss = PrivacyLoss.parallel(
        [
            model.privacy_,
            PrivacyLoss(
                plan.selection_epsilon,
                label=f"choice among {len(candidates)} readings, on the validation part",
                seeded=model.privacy_.seeded,
            ),
        ],
        label="one release and one choice, on disjoint parts",
    )
    if steps is None:
        return best, readings[best], loss
    name = candidates[0].estimator.steps[-1][0]
    fitted = clone(steps)
    quietly(fitted.fit, X)
    return best, Pipeline([*fitted.steps, (name, readings[best])]), loss

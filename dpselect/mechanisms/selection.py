"""Private selection: release the index of a large score, without the scores.

Functions of numbers; they know nothing of estimators. Scores and noise are brought to a grid that
public numbers fix, and compared exactly: the page "Noise on a grid" of the documentation has
statement and proof.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..accounting.events import GRID_COST, ChoiceEvent
from ..noise import as_generator, geometric, grid_step, gumbel, nearest_multiple
from ..noise.generators import RandomState
from ..utils.type_aliases import FloatArray
from ..utils.validation import check_number, unquoted


def exponential_noise_scales(sensitivities: npt.ArrayLike, epsilon: float) -> FloatArray:
    """Return the scales s_i = (Delta_i + max over j != i of Delta_j) / epsilon.

    Parameters
    ----------
    sensitivities : array-like of shape (k,)
        Delta_i >= 0: how far one record can move candidate i's score.
    epsilon : float
        Privacy loss of the selection, greater than 0.

    Returns
    -------
    ndarray of shape (k,)
        All 0 for a single candidate: then nothing is selected.

    Examples
    --------
    >>> from dpselect.mechanisms import exponential_noise_scales
    >>> exponential_noise_scales([0.5, 1.0, 0.25], epsilon=1.0).tolist()
    [1.5, 1.5, 1.25]
    """
    sensitivities = _check_sequence("sensitivities", sensitivities)
    # a single candidate needs no noise
    epsilon = _check_epsilon(epsilon, low_included=len(sensitivities) == 1)
    if not (sensitivities >= 0).all():
        raise ValueError(
            "sensitivities holds a number below 0, or none, which no noise can hide; give how far "
            "one record can move each score."
        )
    if len(sensitivities) == 1:
        return np.zeros(1)
    order = np.argsort(sensitivities)
    others = np.full(len(sensitivities), sensitivities[order[-1]])
    others[order[-1]] = sensitivities[order[-2]]
    with np.errstate(over="ignore"):
        return _check_scales((sensitivities + others) / epsilon, epsilon)


def noisy_argmax(
    scores: npt.ArrayLike,
    sensitivities: npt.ArrayLike,
    epsilon: float,
    random_state: RandomState = None,
) -> int:
    """Select an index with a large score, epsilon-differentially private.

    Returns argmax_i of q_i + s_i (Z_i - 1), where the Z_i are independent standard
    exponential variables, on a grid, and s_i is given by :func:`exponential_noise_scales`.

    Parameters
    ----------
    scores : array-like of shape (k,)
        q_i, finite. One record moves q_i by at most Delta_i.
    sensitivities : array-like of shape (k,)
        Delta_i, from public numbers.
    epsilon : float
        Privacy loss, greater than 0; ``inf`` returns the argmax.
    random_state : None, int, SeedSequence, RandomState, Generator or InnerStream
        See :func:`dpselect.noise.root_stream`.

    Returns
    -------
    int

    Notes
    -----
    Algorithm 1 of Chaudhuri and Vinterbo 2013, where all sensitivities are equal. With different ones, 2
    Delta_i / epsilon would not be private: candidate i's noise has to cover the sensitivity of every
    rival too. Taking 1 off Z_i, a public offset, removes the advantage that a larger mean gives to a
    noisier candidate. The noise covers rounding to the grid, of step g: 2 g / epsilon is added to each
    scale. Of equal sums the first one wins.

    Examples
    --------
    >>> from dpselect.mechanisms import noisy_argmax
    >>> noisy_argmax([0.0, 1.0, 0.2], [0.001] * 3, epsilon=1.0)
    1
    """
    scores = _check_scores(scores)
    scales = exponential_noise_scales(sensitivities, epsilon)
    if scales.shape != scores.shape:
        raise ValueError(
            f"scores has {len(scores)} entries and sensitivities {len(scales)}, but each score "
            "needs its own noise; give one sensitivity for each."
        )
    if not scales.any():
        return int(np.argmax(scores))
    step = grid_step(scales)
    with np.errstate(over="ignore"):
        scales = _check_scales(scales + 2 * step / epsilon, epsilon)
    # one-sided, like exponential variables
    noise = step * geometric(as_generator(random_state), scores.shape, step / scales)
    noise -= nearest_multiple(scales, step)
    return int(largest_sum(nearest_multiple(scores, step), noise))


def exponential_mechanism(
    scores: npt.ArrayLike,
    sensitivity: float,
    epsilon: float,
    random_state: RandomState = None,
) -> int:
    """Select index i with probability proportional to exp(epsilon q_i / (2 Delta)).

    Parameters
    ----------
    scores : array-like of shape (k,)
        q_i, finite.
    sensitivity : float
        Delta >= 0: how far one record can move any score.
    epsilon : float
        Privacy loss, greater than 0; ``inf`` returns the argmax.
    random_state : None, int, SeedSequence, RandomState, Generator or InnerStream
        See :func:`dpselect.noise.root_stream`.

    Returns
    -------
    int

    Notes
    -----
    McSherry and Talwar, *Mechanism Design via Differential Privacy*, 2007. Drawn as the argmax of q_i
    plus Gumbel noise of scale 2 Delta / epsilon, which has the same law. Both are rounded to a grid of
    step g, which the noise covers: the scale is 2 (Delta + g) / epsilon.

    Examples
    --------
    >>> from dpselect.mechanisms import exponential_mechanism
    >>> exponential_mechanism([0.0, 1.0, 0.2], 0.001, epsilon=1.0)
    1
    """
    scores, epsilon = _check_scores(scores), _check_epsilon(epsilon)
    sensitivity = check_number(
        "sensitivity",
        sensitivity,
        low_included=True,
        why="the noise is proportional to it",
        instead="give how far one record can move a score",
    )
    scale = float(_check_scales(2 * sensitivity / epsilon, epsilon))
    if scale == 0:
        return int(np.argmax(scores))
    step = grid_step(scale)
    scale = _check_scales(scale + 2 * step / epsilon, epsilon)
    noise = scale * gumbel(as_generator(random_state), scores.shape)
    return int(largest_sum(nearest_multiple(scores, step), nearest_multiple(noise, step)))


def gumbel_choice(epsilon, times=1):
    """Return the Event of choices by Gumbel noise on a grid, each with this epsilon.

    The grid may move the logarithm of a probability by two of its steps, in units of the noise, of which
    the noise has 2^40 / 2 or more: the page "How losses add up", proposition 4.
    """
    return ChoiceEvent(epsilon + GRID_COST, times)


def largest_sum(values, noise):
    """Return the index of the largest exact sum of arrays of shape (..., k), the first of equal ones.

    Rounding of sums would let numbers win that are not the largest. The error of a rounded sum of
    two doubles is a double: Knuth, *The Art of Computer Programming*, volume 2, section 4.2.2,
    theorem B.
    """
    sums = values + noise
    second = sums - values
    remainder = (values - (sums - second)) + (noise - second)
    # ties of rounded sums are broken by their exact rounding errors
    return np.argmax(np.where(sums == sums.max(axis=-1, keepdims=True), remainder, -np.inf), axis=-1)


def _check_epsilon(epsilon, low_included=False):
    return check_number(
        "epsilon",
        epsilon,
        low_included=low_included,
        high_included=True,
        why="the noise is proportional to 1 / epsilon",
        instead="write a number greater than 0",
    )


def _check_scales(scales, epsilon):
    """Return the scales, if their grid is representable in float64; 0 needs none."""
    if not np.all((scales == 0) | ((scales >= 1e-250) & (scales <= 1e250))):
        raise ValueError(
            f"sensitivities over epsilon={epsilon!r} need noise beyond the range of float64; write "
            "scores in another unit, or a larger epsilon."
        )
    return scales


def _check_sequence(name, values):
    values = unquoted(np.asarray, values, dtype=np.float64, what=name)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"{name} must list one number for each candidate, of which there is at least one."
        )
    return values


def _check_scores(scores):
    scores = _check_sequence("scores", scores)
    if not np.isfinite(scores).all():
        raise ValueError("scores holds NaN or infinity, which no noise can hide; give finite numbers.")
    return scores

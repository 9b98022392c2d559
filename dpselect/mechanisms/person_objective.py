"""Calibrate Gaussian noise in the objective for persons with any number of rows.

The theorems are on the page "A person, not a row" of the documentation, with its symbols. They bound the
score: how fast the density of what is released changes, as one person's rows turn into another's.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, logsumexp, ndtr

from .gaussian_objective import N_LOSSES, largest_kappa, objective_mu, tail_bounds

# number of intervals on the path from one person to the other
N_STEPS = 256
# largest epsilon and least delta for which the densities of all classes are convolved; beyond them each
# class gets a part of epsilon and delta
LARGEST_JOINT, LEAST_JOINT = 100.0, 1e-200
# range of the scores of one class, in standard deviations
FARTHEST = 10


def person_kappa(epsilon, delta, n_problems=1):
    """Return the largest kappa = R^2 / (N mu) at which curvature is free."""
    # the curvature that is left at the end of the path, for each class on its own
    m = objective_mu(epsilon / n_problems, delta / n_problems)
    return largest_kappa(epsilon / n_problems) - m * m / 4


@lru_cache(maxsize=1024)
def person_mu(epsilon, delta, n_problems=1, kappa=0.0, charge=0.0):
    """Return the largest m for which sigma = 2 R / (N m) is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        In (0, 1000].
    delta : float
        In (0, 1).
    n_problems : int, default=1
        Of one-vs-rest, with independent noise of this scale each.
    kappa : float, default=0.0
        Of the logistic loss, at most :func:`person_kappa`; 0 for other losses.
    charge : float, default=0.0
        What curvature adds to the scores of all problems together, less than epsilon.

    Returns
    -------
    float
        Of theorem 2c or 2d, for losses of a margin.
    """
    if n_problems == 1:
        return (
            objective_mu(epsilon, delta)
            if charge == 0
            else _tails_mu(epsilon, delta, ((1.0, 1.0, charge),), 2.0)
        )
    apart = person_mu(epsilon / n_problems, delta / n_problems, 1, kappa, charge / n_problems)
    if delta < LEAST_JOINT:
        return apart
    epsilon = charge + min(epsilon - charge, LARGEST_JOINT)

    def log_spent(m):
        mean_excess = _mean_excess(m, kappa, n_problems)
        with np.errstate(divide="ignore"):
            return _log_spent(lambda s: np.log(mean_excess(s - charge)), epsilon, n_problems * m * m)

    # the bound decreases in m, down to `charge`
    high = min(
        objective_mu(epsilon - charge, delta),
        math.sqrt(2 * (epsilon - charge) / n_problems),
    )
    return _largest(log_spent, delta, apart, high, 1e-6) if apart < high else apart


@lru_cache(maxsize=1024)
def person_signless_mu(epsilon, delta, parts):
    """Return the largest m for gradients whose sign depends on the noise, by theorem 2d.

    Parameters
    ----------
    epsilon : float
        In (0, 1000].
    delta : float
        In (0, 1).
    parts : tuple of (float, float)
        Parts of the range [0, 1] of slopes: the largest slope of each, and what curvature adds to the
        score there, less than epsilon.

    Returns
    -------
    float
    """
    tails = tuple(
        (2.0, abs(1 + sign * a) / 2, charge) for a, charge in parts for sign in (1, -1) if a + sign
    )
    return _tails_mu(epsilon, delta, tails, math.sqrt(3))


def _tails_mu(epsilon, delta, tails, least):
    """Return the largest m for scores with P(S > t) <= sum of weight Q((t - charge) / (m length)).

    `tails` are (weight, length, charge), and hold from `least` standard deviations on.
    """
    weight, length, charge = np.array(tails).T[:, :, None]
    high = (np.sqrt((least * length) ** 2 + 2 * (epsilon - charge)) - least * length).min()

    def log_spent(m):
        def log_excess(s):
            y = (s - charge) / (m * length)
            return logsumexp(_log_normal_excess(y), b=weight * m * length, axis=0)

        return _log_spent(log_excess, epsilon, m * m)

    return _largest(log_spent, delta, 0.0, float(high), 1e-12)


def _log_spent(log_excess, epsilon, variance):
    """Return the logarithm of the integral of theorem 2b on a straight path, rounded upwards."""
    t = np.linspace(0, 1, N_STEPS + 1)
    path = epsilon + variance * (1 / 2 - t)
    remaining = epsilon * (1 - t) - variance * t * (1 - t) / 2
    # the first term decreases in t and the second one increases: take each at its larger end
    return logsumexp(remaining[:-1] + log_excess(path[1:])) - math.log(N_STEPS)


def _log_normal_excess(y):
    """Return log E(Z - y)_+ for a standard normal Z and y > 0, rounded upwards."""
    with np.errstate(over="ignore"):
        ratio = math.sqrt(math.pi / 2) * erfcx(y / math.sqrt(2))
        factor = np.where(y < 30, 1 - y * ratio, 1 / (1 + y * y))
        return np.log(factor) - y * y / 2 - math.log(2 * math.pi) / 2


def _mean_excess(m, kappa, n_problems):
    """Return the function E(S - s)_+ of s, for the sum S of all problems' scores, rounded upwards."""
    edge = max(2 * kappa, 2 * m)
    step = edge / N_LOSSES
    t = step * np.arange(math.ceil(max(edge, FARTHEST * m) / step) + 1)
    tail = np.where(t < edge, 1.0, ndtr(-t / m))
    tail[t < edge] = tail_bounds(m, kappa, t[t < edge], 0.0)
    # pessimistic rounding: mass between two points moves to the upper one, and the tail to the last
    mass = -np.diff(np.minimum.accumulate(tail), prepend=1.0)
    mass[-1] += tail[-1]
    beyond = n_problems * m * math.exp(_log_normal_excess(np.array(t[-1] / m)))
    total = np.ones(1)
    for bit in f"{n_problems:b}":
        total = np.convolve(total, total)
        if bit == "1":
            total = np.convolve(total, mass)
    grid = step * np.arange(len(total))
    return lambda s: np.maximum(grid - s[:, None], 0.0) @ total + beyond


def _largest(log_spent, delta, least, high, xtol):
    """Return the largest m in [least, high] at which delta is not exceeded; it is not at `least`."""

    def excess(log_m):
        return max(log_spent(math.exp(log_m)), -1e3) - math.log(delta)

    end = math.log(high)
    if excess(end) <= 0:
        return high
    low = math.log(least) if least else end - 0.5
    while excess(low) > 0:
        if least:
            return least
        low -= 0.5
    root = brentq(excess, low, end, xtol=xtol)
    # the root may be off to either side, and logarithms have rounding errors
    while excess(root) > -1e-12:
        root -= xtol
    return max(least, math.exp(root))

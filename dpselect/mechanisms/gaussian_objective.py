"""Calibrate Gaussian noise in the objective of a linear model.

The theorems are on the page "Gaussian noise in the objective" of the documentation, with its symbols.
"""

import math
from functools import cache, lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ..accounting.gaussian import gaussian_log_delta, gaussian_mu

# numbers of intervals: of the correlation's angle, of directions, of s, and of the loss
N_ANGLES, N_DIRECTIONS, N_SLOPES, N_LOSSES = 24, 240, 8, 96
T_AT_A_TIME = 8
# losses beyond so many standard deviations count as unbounded
FARTHEST = 10
# larger epsilons are reduced to this, because squares would overflow float64
LARGEST = 1e3


def largest_kappa(epsilon, n_problems=1):
    """Return the largest kappa = R^2 / (n mu) at which curvature is free."""
    return min(epsilon, LARGEST) / (2 * n_problems)


@lru_cache(maxsize=1024)
def objective_mu(epsilon, delta, n_problems=1):
    """Return the largest m for which sigma = 2 R / (n m) is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        In (0, inf).
    delta : float
        In (0, 1).
    n_problems : int, default=1
        Of one-vs-rest, with independent noise of this scale each.

    Returns
    -------
    float
        Of theorem 1, for one problem; otherwise of theorem 2.
    """
    epsilon = min(epsilon, LARGEST)
    single = min(gaussian_mu(epsilon, delta), math.sqrt(4 + 2 * epsilon) - 2)
    if n_problems == 1:
        return single
    kappa = largest_kappa(epsilon, n_problems)

    @cache
    def excess(log_m):
        spent = _delta(math.exp(log_m), kappa, epsilon, n_problems)
        return math.log(max(spent, math.ulp(0.0))) - math.log(delta)

    low, high = math.log(single / n_problems), math.log(single)
    if excess(high) <= 0:
        return single
    while excess(low) > 0:
        low -= 0.5
    root = brentq(excess, low, high, xtol=1e-6)
    # the root may be off to either side: step back until the condition holds
    while excess(root) > 0:
        root -= 1e-6
    return math.exp(root)


# far beyond any relevant value, and doubling it does not overflow
LARGEST_EPSILON = 1e300


@lru_cache(maxsize=1024)
def signless_mu(delta, parts):
    """Return the largest m for gradients whose sign depends on the noise, by theorem 4.

    Parameters
    ----------
    delta : float
        In (0, 1).
    parts : tuple of (float, float)
        Parts of the range [0, 1] of slopes: the largest slope of each, and what curvature leaves of
        epsilon there, greater than 0.

    Returns
    -------
    float
    """
    # noise for a smaller epsilon is sufficient, too
    parts = [(a, min(epsilon, LARGEST_EPSILON)) for a, epsilon in parts]
    # lengths for both signs: half the sum and half the difference of the slopes 1 and a
    pairs = [(abs(1 + sign * a) / 2, epsilon) for a, epsilon in parts for sign in (1, -1) if a + sign]
    highest = min((math.sqrt(3 + 2 * epsilon) - math.sqrt(3)) / length for length, epsilon in pairs)

    def excess(log_m):
        m = math.exp(log_m)
        logs = [gaussian_log_delta(epsilon, length * m) for length, epsilon in pairs]
        return np.logaddexp.reduce(logs) + math.log(2) - math.log(delta)

    high = math.log(highest)
    if excess(high) <= 0:
        return highest
    low = high - 0.5
    while excess(low) > 0:
        low -= 0.5
    root = brentq(excess, low, high, xtol=1e-12)
    # the root may be off to either side, and logarithms have rounding errors
    while excess(root) > -1e-12:
        root -= 1e-12
    return math.exp(root)


def _delta(m, kappa, epsilon, n_problems):
    """Return the mean of (1 - exp(epsilon - Z))_+ for the sum Z of theorem 2, rounded upwards."""
    edge = max(2 * kappa, 2 * m + m * m / 2)
    step = edge / N_LOSSES
    t = step * np.arange(math.ceil(max(edge, (FARTHEST + m / 2) * m) / step) + 1)
    tail = np.where(t < edge, 1.0, ndtr(m / 2 - t / m))
    tail[t < edge] = tail_bounds(m, kappa, t[t < edge], m)
    tail = np.minimum.accumulate(tail)
    # pessimistic rounding: mass between two points moves to the upper one
    mass = -np.diff(tail, prepend=1.0)
    size = n_problems * (len(t) - 1) + 1
    # by powers of a polynomial, because the rounding error of a Fourier transform would hide a small
    # delta
    total = np.ones(1)
    for bit in f"{n_problems:b}":
        total = np.convolve(total, total)
        if bit == "1":
            total = np.convolve(total, mass)
    return n_problems * tail[-1] + total @ -np.expm1(np.minimum(epsilon - step * np.arange(size), 0))


def tail_bounds(m, kappa, t, drift):
    """Return bounds on P(M > t), for any correlation, as sums over intervals of directions.

    The squares in M count `drift` / 8, which is m / 8 for a loss, and 0 for a score.
    """
    angles = np.linspace(0, np.pi / 2, N_ANGLES + 1)[:, None]
    directions = np.linspace(-np.pi, np.pi, N_DIRECTIONS + 1)
    low, high = directions[:-1], directions[1:]
    along_x = _largest_cosine(low - angles[1:], high - angles[:-1])
    along_y = _largest_cosine(low + angles[:-1], high + angles[1:])
    rho = np.cos(2 * angles[:-1])
    curvature = 2 * kappa / m - drift / 4
    # a function that is concave in s has its minimum at an end
    s = np.linspace(0, 1, N_SLOPES + 1 if curvature > 0 else 2)
    ends = list(zip(s[:-1], s[1:])) if curvature > 0 else [(0.0, 0.0), (1.0, 1.0)]
    lines = []
    for other in (0.0, 1.0):
        for a, b in ends:
            mean = (
                np.maximum(
                    *(
                        drift / 4 * (x * x + other + 2 * rho * x * other) + 2 * kappa / m * x * (1 - x)
                        for x in (a, b)
                    )
                )
                + max(curvature, 0.0) * (b - a) ** 2 / 4
            )
            # never 0, because it is a divisor
            cosine = np.maximum(np.maximum(a * along_x, b * along_x) + other * along_y, 1e-9)
            lines.append((mean, cosine))
    # few t at a time, so that arrays stay in a processor's cache
    parts = np.array_split(t, -(-len(t) // T_AT_A_TIME) or 1)
    return np.concatenate([_tail_bounds(2 * part[:, None, None] / m, lines) for part in parts])


def _tail_bounds(goals, lines):
    distance, ratio = np.full((2, len(goals), *lines[0][1].shape), np.inf)
    for mean, cosine in lines:
        np.divide(np.maximum(goals - mean, 0.0), cosine, out=ratio)
        np.minimum(distance, ratio, out=distance)
    np.square(distance, out=distance)
    np.negative(distance, out=distance)
    distance /= 2
    return np.exp(distance, out=distance).mean(axis=2).max(axis=1)


def _largest_cosine(low, high):
    """Return the largest cosine on intervals shorter than 2 pi."""
    peak = 2 * np.pi * np.ceil(low / (2 * np.pi))
    return np.where(peak <= high, 1.0, np.maximum(np.cos(low), np.cos(high)))

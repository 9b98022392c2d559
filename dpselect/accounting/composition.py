"""Compose exponential mechanisms and pure-DP releases with another mechanism, on a grid of losses.

A mechanism is given by its deltas at the epsilons ``step * arange(-N, N + 1)``; all of them are bounds
from above. Propositions 4 and 5 of the page "How losses add up".
"""

import math
from collections import Counter

import numpy as np
from scipy.special import ndtr

from .events import ChoiceEvent, pure_gaussian

# largest number of choices that are composed one by one
MAX_CHOICES = 1000
# losses beyond so many standard deviations count as unbounded
FARTHEST = 10


def many_choices(choices):
    """Return choices to compose one by one, and mu of a Gaussian that dominates the others.

    The dominated choices are those with the smallest epsilons: proposition 4.
    """
    if sum(choice.times for choice in choices) <= MAX_CHOICES:
        return choices, 0.0
    times = Counter()
    for choice in choices:
        times[choice.epsilon] += choice.times
    separate, squares, n_left = [], [], MAX_CHOICES
    for epsilon, n in sorted(times.items(), reverse=True):
        if n <= n_left:
            separate.append(ChoiceEvent(epsilon, n))
        else:
            squares.append(n * pure_gaussian(epsilon / 2) ** 2)
        n_left = max(n_left - n, 0)
    return separate, math.sqrt(math.fsum(squares))


def padding_of(choices, mu, step):
    """Return how many grid points of padding the composition with choices and Gaussian noise needs."""
    return _gaussian_places(mu, step) + sum(
        math.ceil(choice.epsilon / step + 1) * choice.times for choice in choices
    )


def _gaussian_places(mu, step):
    return math.ceil((mu * mu / 2 + FARTHEST * mu) / step) if mu < math.inf else 0


def compose_gaussian(deltas, step, mu):
    """Return the deltas of a mechanism composed with a Gaussian one, with losses rounded upwards."""
    if mu == 0:
        return deltas
    if mu == math.inf:  # epsilon is so large that no Gaussian mechanism dominates
        return np.ones_like(deltas)
    n = _gaussian_places(mu, step)
    z = (np.arange(-n, n + 1) * step - mu * mu / 2) / mu
    mass = np.diff(ndtr(z), prepend=0.0)
    padded = np.pad(deltas, (n, n), constant_values=(1.0, deltas[-1]))
    return np.convolve(padded, mass, "valid") + ndtr(-z[-1])


def compose_choice(deltas, step, epsilon, times=1):
    """Return the deltas of a mechanism composed with exponential mechanisms, in either order.

    The losses of a choice lie in an interval of length epsilon. Deltas are convex in exp(epsilon), so
    no law of losses within it is worse than that of its two ends, whose mean of exp(-loss) is 1. An
    interval with ends between those of the grid lies in one that is a step longer.
    """
    length = math.ceil(epsilon / step) + 1
    ends = np.arange(length + 1)
    at_upper_end = np.expm1((length - ends) * step) / (
        np.exp((length - ends) * step) - np.exp(-ends * step)
    )
    n, (found, other) = len(deltas), np.empty((2, len(deltas)))
    for _ in range(times):
        worst, padded = np.zeros(n), np.pad(deltas, length, constant_values=(1.0, deltas[-1]))
        for start, p in zip(length - ends, at_upper_end):
            # the deltas shifted by either end of the interval
            np.multiply(padded[start : start + n], p, out=found)
            np.multiply(padded[start + length : start + length + n], 1 - p, out=other)
            np.maximum(worst, np.add(found, other, out=found), out=worst)
        deltas = worst
    return deltas


def compose_pure(deltas, step, epsilon):
    """Return the deltas of a mechanism composed with a pure-DP one, at worst randomised response."""
    length = math.ceil(epsilon / step)
    p = 1 / (1 + math.exp(-length * step))
    return p * _shifted(deltas, length) + (1 - p) * _shifted(deltas, -length)


def two_sided(deltas, step):
    """Extend deltas from epsilons >= 0 to negative ones: adjacency is symmetric."""
    places = np.arange(1 - len(deltas), 0)
    below = np.exp(places * step) * deltas[:0:-1] - np.expm1(places * step)
    return np.concatenate([below, deltas])


def lower_hull(deltas, step):
    """Return the indices of two-sided deltas on their lower hull: true ones are convex in exp(eps)."""
    x, y = np.exp((np.arange(len(deltas)) - len(deltas) // 2) * step), deltas
    separate = []
    for i in range(len(x)):
        while len(separate) > 1 and (
            (y[i] - y[separate[-2]]) * (x[separate[-1]] - x[separate[-2]])
            <= (y[separate[-1]] - y[separate[-2]]) * (x[i] - x[separate[-2]])
        ):
            separate.pop()
        separate.append(i)
    return np.array(separate)


def stated_profile(epsilon, delta, epsilons):
    """Return upper bounds on the deltas of any (epsilon, delta)-private mechanism, from epsilon 0 on.

    They are the deltas of randomised response that discloses the record with probability delta.
    """
    below = -np.expm1(np.minimum(epsilons - epsilon, 0.0)) / (1 + math.exp(-epsilon))
    return delta + (1 - delta) * below


def _shifted(deltas, places):
    """Return the deltas shifted by grid steps; 1 for those below the first."""
    if places >= 0:
        return np.concatenate([np.ones(places), deltas])[: len(deltas)]
    n_left = deltas[-places:]
    return np.concatenate([n_left, np.full(len(deltas) - len(n_left), deltas[-1])])

"""What choices and purely private releases cost beside other releases.

A mechanism is given by its deltas at the epsilons ``step * arange(-N, N + 1)``; all of them are bounds
from above. Propositions 4 and 5 of the page "A budget for a whole team".
"""

import math
from collections import Counter

import numpy as np
from scipy.special import ndtr

from .events import ChoiceEvent, pure_gaussian

# so many choices are composed one by one
MOST = 1000
# what lies so many standard deviations out counts as an unbounded loss
FARTHEST = 10


def many_choices(choices):
    """Return the choices that are composed one by one, and mu of a Gaussian mechanism for the others.

    It tells more than these, which are the smallest ones: proposition 4.
    """
    if sum(choice.times for choice in choices) <= MOST:
        return choices, 0.0
    times = Counter()
    for choice in choices:
        times[choice.epsilon] += choice.times
    kept, squares, left = [], [], MOST
    for epsilon, n in sorted(times.items(), reverse=True):
        if n <= left:
            kept.append(ChoiceEvent(epsilon, n))
        else:
            squares.append(n * pure_gaussian(epsilon / 2) ** 2)
        left = max(left - n, 0)
    return kept, math.sqrt(math.fsum(squares))


def places_of(choices, mu, step):
    """Return how many places above those that are asked for are needed beside them."""
    return _gaussian_places(mu, step) + sum(
        math.ceil(choice.epsilon / step + 1) * choice.times for choice in choices
    )


def _gaussian_places(mu, step):
    return math.ceil((mu * mu / 2 + FARTHEST * mu) / step) if mu < math.inf else 0


def beside_gaussian(deltas, step, mu):
    """Return the deltas of a mechanism and a Gaussian one, whose losses are rounded upwards."""
    if mu == 0:
        return deltas
    if mu == math.inf:  # choices of which so much is known that there is no such mechanism
        return np.ones_like(deltas)
    n = _gaussian_places(mu, step)
    z = (np.arange(-n, n + 1) * step - mu * mu / 2) / mu
    mass = np.diff(ndtr(z), prepend=0.0)
    padded = np.pad(deltas, (n, n), constant_values=(1.0, deltas[-1]))
    return np.convolve(padded, mass, "valid") + ndtr(-z[-1])


def beside_choice(deltas, step, epsilon, times=1):
    """Return the deltas of a mechanism and, before or after it, exponential mechanisms.

    The losses of a choice lie in an interval of length epsilon. Deltas are convex in exp(epsilon), so
    no law of losses within it is worse than that of its two ends, whose mean of exp(-loss) is 1. An
    interval with ends between those of the grid lies in one that is a step longer.
    """
    length = math.ceil(epsilon / step) + 1
    ends = np.arange(length + 1)
    at_upper_end = np.expm1((length - ends) * step) / (
        np.exp((length - ends) * step) - np.exp(-ends * step)
    )
    for _ in range(times):
        worst = np.zeros(len(deltas))
        for upper, p in zip(ends, at_upper_end):
            found = p * _shifted(deltas, upper) + (1 - p) * _shifted(deltas, upper - length)
            np.maximum(worst, found, out=worst)
        deltas = worst
    return deltas


def beside_pure(deltas, step, epsilon):
    """Return the deltas of a mechanism and a purely private one, at worst randomised response."""
    length = math.ceil(epsilon / step)
    p = 1 / (1 + math.exp(-length * step))
    return p * _shifted(deltas, length) + (1 - p) * _shifted(deltas, -length)


def two_sided(deltas, step):
    """Return deltas from 0 on, with those below 0: neighbours are so either way round."""
    places = np.arange(1 - len(deltas), 0)
    below = np.exp(places * step) * deltas[:0:-1] - np.expm1(places * step)
    return np.concatenate([below, deltas])


def lower_hull(deltas, step):
    """Return which two-sided deltas are on their lower hull: true ones are convex in exp(epsilon)."""
    x, y = np.exp((np.arange(len(deltas)) - len(deltas) // 2) * step), deltas
    kept = []
    for i in range(len(x)):
        while len(kept) > 1 and (
            (y[i] - y[kept[-2]]) * (x[kept[-1]] - x[kept[-2]])
            <= (y[kept[-1]] - y[kept[-2]]) * (x[i] - x[kept[-2]])
        ):
            kept.pop()
        kept.append(i)
    return np.array(kept)


def stated_profile(epsilon, delta, epsilons):
    """Return the deltas, from epsilon 0 on, of a mechanism of which nothing else is known.

    They are those of randomised response that tells all with probability delta.
    """
    below = -np.expm1(np.minimum(epsilons - epsilon, 0.0)) / (1 + math.exp(-epsilon))
    return delta + (1 - delta) * below


def _shifted(deltas, places):
    """Return the deltas at epsilons so many steps less; 1 for those below the first."""
    if places >= 0:
        return np.concatenate([np.ones(places), deltas])[: len(deltas)]
    left = deltas[-places:]
    return np.concatenate([left, np.full(len(deltas) - len(left), deltas[-1])])

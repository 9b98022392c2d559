"""The plan of a selection by stability: what its noise can detect, and what would fix it."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.optimize import brentq

from ...base.capabilities import HasScoreStake
from ...base.certificates import SplitPatterns
from ...mechanisms import exponential_noise_scales
from ..plan import describe, minimum_detectable_difference

# Shares of what a perfect model gains over one that says nothing. A selection that cannot see
# a quarter of that is decided by its noise; candidates worth tuning differ by a twentieth or less.
UNDERPOWERED, USEFUL = 0.25, 0.05
# More than 2^20 times the records, or the epsilon, are no help.
MOST_DOUBLINGS = 20.0


def make_plan(strategy, trials, tail=None):
    """Return the SelectionPlan of a choice by stability.

    `trials` has a list for each candidate, one trial for each noise sample. `tail` bounds every noise
    sample but those of at most this probability, in place of those of the trials.
    """
    problem, selection_epsilon = strategy.problem, strategy.selection_epsilon
    candidates, score, n_samples = problem.candidates, problem.score, problem.n_samples
    patterns = SplitPatterns.from_splits(problem.splits, n_samples)

    k = len(candidates)

    def certify(patterns, some, factor=1.0):
        epsilon = factor * strategy.training_epsilon
        of = [candidates[i] for i in some], [trials[i] for i in some]
        return certificates(*of, score, patterns.train_sizes, epsilon, tail)

    def blur(n_factor, epsilon_factor, some):
        scaled = patterns.scaled(n_factor)
        moved = scaled.sensitivities(*certify(scaled, some, epsilon_factor))
        scales = exponential_noise_scales(moved, epsilon_factor * selection_epsilon)
        return minimum_detectable_difference(scales, k)

    training, span, residual = certify(patterns, range(k))
    sensitivity = patterns.sensitivities(training, span, residual)
    scales = exponential_noise_scales(sensitivity, selection_epsilon)
    # a density's score has no stake of its own: it depends on the volume of the bounds
    model = candidates[0].model
    stake = model.score_stake if isinstance(model, HasScoreStake) else score.stake
    stake = stake or float(span.max())
    params, several = [candidate.params for candidate in candidates], k > 1
    return strategy.make_plan(
        messages(params, sensitivity, stake, problem.epsilon, selection_epsilon, n_samples, blur),
        training=training.max(axis=1),
        span=span.max(axis=1),
        sensitivity=sensitivity,
        scales=scales,
        minimum_detectable_difference=minimum_detectable_difference(scales) if several else math.nan,
        stake=stake if several else math.nan,
    )


def certificates(candidates, trials, score, sizes, epsilon, tail):
    """Bound how far one record moves each score: training, span and residual, shape (3, k, J).

    They are means over a candidate's noise samples, since the mean of scores moves by at most the mean
    of the bounds. `sizes` are the training records of each split.
    """
    table, unique = np.empty((3, len(candidates), len(sizes))), np.unique(sizes)
    for i, candidate in enumerate(candidates):
        # a tail is the same for all noise samples
        some = [replace(t, epsilon=epsilon) for t in trials[i][: None if tail is None else 1]]
        for n in unique:
            bounds = [trial.certificate(score, candidate.shape(int(n)), tail) for trial in some]
            mean = np.mean([(b.training, b.span, b.residual) for b in bounds], axis=0)
            table[:, i, sizes == n] = mean[:, None]
    return table


def messages(params, sensitivity, stake, epsilon, selection_epsilon, n_samples, blur_of):
    """Return messages on what a selection can detect, and what would fix one that cannot.

    blur_of(n_factor, epsilon_factor, some) returns the minimum detectable difference for that many times
    as many records and that many times the privacy loss, if only those candidates have sensitivities.
    """
    if len(params) == 1:
        return ("One candidate: nothing is selected, and the whole epsilon goes to training.",)
    said, scales = [], exponential_noise_scales(sensitivity, selection_epsilon)
    order = np.argsort(sensitivity)[::-1]
    ahead = int(np.sum(sensitivity > sensitivity[order[0]] / 1.5))
    if ahead < len(params):
        loud, rest = order[:ahead], order[ahead:]
        gain = (
            scales.max() / exponential_noise_scales(sensitivity[rest], selection_epsilon).max()
            if len(rest) > 1
            else math.inf
        )
        names = " and ".join(describe(params[i]) for i in sorted(loud))
        said.append(
            f"{names} sets the noise of all candidates: one record can move its score by "
            f"{sensitivity[order[0]]:.2g}, the next one's by {sensitivity[rest[0]]:.2g}. "
            + (
                f"Without it the noise is {gain:.3g} times less."
                if gain < math.inf
                else "Without it one candidate is left, and nothing is to be selected."
            )
        )
    blur, goal = minimum_detectable_difference(scales), USEFUL * stake
    if blur <= UNDERPOWERED * stake:
        said.append(
            f"Scores that differ by less than about {blur:.2g} cannot be distinguished; a perfect "
            f"model scores {stake:.2g} better than one that says nothing."
        )
        return tuple(said)
    said.append(
        f"This selection is underpowered: its minimum detectable difference of scores is {blur:.2g}, "
        f"and a perfect model scores only {stake:.2g} better than one that says nothing (a ratio of "
        f"{blur / stake:.2g}; at most {UNDERPOWERED} is worth the price of a choice)."
    )
    fixes = [
        _dropping(params, sensitivity, selection_epsilon, order, goal),
        _at_least("n_samples", n_samples, lambda c, some: blur_of(c, 1, some), order, goal),
        _at_least("epsilon", epsilon, lambda c, some: blur_of(1, c, some), order, goal),
    ]
    fixes = [fix for fix in fixes if fix is not None]
    if fixes:
        said.append(f"To see differences of {goal:.2g}: {', or '.join(fixes)}.")
    return tuple(said)


def _dropping(params, sensitivity, epsilon, order, goal):
    for dropped in range(1, len(params) - 1):
        rest = exponential_noise_scales(sensitivity[order[dropped:]], epsilon)
        if minimum_detectable_difference(rest) <= goal:
            names = "; ".join(describe(params[i]) for i in sorted(order[:dropped]))
            return f"drop {names}"
    return None


def _at_least(name, value, blur, order, goal):
    """Return about the least `value` that brings a blur down to `goal`, in words, or None.

    `order` has the candidates, those of the largest sensitivities first.
    """
    try:
        doublings = _doublings_of_all(blur, order, goal)
    except ValueError:  # so many records, or so large an epsilon, that the model is refused
        return None
    if doublings is None:
        return None
    least = value * 2.0**doublings
    if not isinstance(value, int):
        return f"{name} >= {least:.3g}"
    unit = 10 ** max(0, math.floor(math.log10(least)) - 2)
    return f"{name} >= {math.ceil(least / unit) * unit}"


def _doublings_of_all(blur, order, goal):
    """Return about how many doublings bring the blur of all candidates down to `goal`, or None."""
    # two candidates set the noise of all; as a rule they are the same ones at any value
    for some in (order[:2], order):
        doublings = _doublings(cache(lambda x, some=some: math.log2(blur(2.0**x, some) / goal)))
        tried = MOST_DOUBLINGS if doublings is None else doublings
        if blur(2.0**tried, order) == blur(2.0**tried, some):
            break
    return doublings


def _doublings(excess):
    """Return about how many doublings bring an excess, in doublings, down to 0, or None for too many."""
    # it falls about as fast as the factor grows, so that few points are tried
    likely = min(math.ceil(excess(0.0)) + 1.0, MOST_DOUBLINGS)
    high = likely if excess(likely) <= 0 else MOST_DOUBLINGS
    if excess(high) > 0:
        return None
    precision = 2.0**-10
    return brentq(excess, 0.0, high, xtol=precision) + precision

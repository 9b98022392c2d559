"""What a selection can tell apart, from public numbers, before any data is read."""

import math
from dataclasses import dataclass

import numpy as np

from ..mechanisms import exponential_noise_scales
from ..stability import SplitPatterns
from .candidates import certificates

# Shares of what a perfect model gains over one that says nothing. A selection that cannot see
# a quarter of that is decided by its noise; candidates worth tuning differ by a twentieth or less.
COIN_TOSS, USEFUL = 0.25, 0.05
RECORDS_PER_DIMENSION = 30


@dataclass(frozen=True)
class SelectionPlan:
    """The noise of a planned selection beside the span of its score.

    Attributes
    ----------
    params : tuple of dict
        The candidates.
    n_samples, n_features : int
        What the plan is for; the columns of X.
    epsilon, selection_epsilon : float
        The whole privacy loss, and the selection's share.
    training, span : ndarray of shape (k,)
        How far one training record can move each candidate's score, and the score's span.
    sensitivity : ndarray of shape (k,)
        Delta_i, how far one record can move the score averaged over the splits.
    noise_scale : ndarray of shape (k,)
        Scale of the exponential noise.
    messages : tuple of str
        What follows, in words.
    strategy : str
    training_epsilon : float
        Privacy loss with which the released model is trained.
    """

    params: tuple
    n_samples: int
    n_features: int
    epsilon: float
    selection_epsilon: float
    training: np.ndarray
    span: np.ndarray
    sensitivity: np.ndarray
    noise_scale: np.ndarray
    messages: tuple
    strategy: str = "stability"
    training_epsilon: float = 0.0

    @property
    def resolution(self):
        """float : With probability 1/2 or more, the chosen score is this close to the best."""
        return resolution(self.noise_scale)

    def to_dict(self):
        """Return the plan as plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
        """
        columns = zip(self.sensitivity, self.noise_scale, self.span)
        return {
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "epsilon": self.epsilon,
            "selection_epsilon": self.selection_epsilon,
            "resolution": self.resolution,
            "candidates": [
                {
                    "params": {name: _plain(value) for name, value in params.items()},
                    "sensitivity": float(sensitivity),
                    "noise_scale": float(scale),
                    "span": float(span),
                }
                for params, (sensitivity, scale, span) in zip(self.params, columns)
            ],
            "messages": list(self.messages),
        }

    def to_results(self):
        """Return the plan as the columns of `cv_results_`.

        Returns
        -------
        dict of arrays of shape (k,)
        """
        results = {}
        for name in sorted({name for params in self.params for name in params}):
            column = np.ma.masked_all(len(self.params), dtype=object)
            for i, params in enumerate(self.params):
                if name in params:
                    column[i] = params[name]
            results[f"param_{name}"] = column
        results["params"] = list(self.params)
        results["training_stability"] = self.training
        results["score_span"] = self.span
        results["sensitivity"] = self.sensitivity
        results["noise_scale"] = self.noise_scale
        return results

    def __str__(self):
        names = [describe(params) for params in self.params]
        width = max(len("candidate"), *map(len, names))
        lines = [
            f"Plan for {self.n_samples} records and {self.n_features} columns: "
            f"epsilon {self.epsilon:.4g}, of which {self.selection_epsilon:.4g} to select.",
            f"{'candidate':{width}}  one record moves  noise scale  span of the score",
        ]
        lines += [
            f"{name:{width}}  {moves:16.2g}  {scale:11.2g}  {span:17.2g}"
            for name, moves, scale, span in zip(
                names, self.sensitivity, self.noise_scale, self.span
            )
        ]
        return "\n".join([*lines, *self.messages])


def make_plan(candidates, draws, score, splits, n_samples, n_features, *, epsilon,
              selection_epsilon, tail=None):
    """Compute the plan of a selection.

    Parameters
    ----------
    candidates : list of Candidate
        With `n_features` known.
    draws : list of list of InnerStream
    score : score
    splits : list of (train, test)
    n_samples, n_features : int
        Shape of X.
    epsilon, selection_epsilon : float
    tail : float, default=None
        None for the draws that were made; otherwise see
        :func:`~dpselect.model_selection.candidates.certificates`.

    Returns
    -------
    SelectionPlan
    """
    patterns = SplitPatterns.from_splits(splits, n_samples)

    def certify(patterns, factor=1.0):
        return certificates(
            candidates, draws, score, patterns.train_sizes,
            factor * (epsilon - selection_epsilon), tail,
        )

    def noise(n_factor, epsilon_factor):
        scaled = patterns.scaled(n_factor)
        moved = scaled.sensitivities(*certify(scaled, epsilon_factor))
        return exponential_noise_scales(moved, epsilon_factor * selection_epsilon)

    training, span = certify(patterns)
    sensitivity = patterns.sensitivities(training, span)
    params = tuple(candidate.params for candidate in candidates)
    # a density's score has no stake of its own: it depends on the volume of the bounds
    stake = getattr(candidates[0].model, "score_stake", score.stake) or float(span.max())
    said = messages(
        params, sensitivity, stake, epsilon,
        selection_epsilon, n_samples, max(c.n_features for c in candidates) + 1, noise,
    )
    return SelectionPlan(
        params, n_samples, n_features, epsilon, selection_epsilon, training.max(axis=1),
        span.max(axis=1), sensitivity, exponential_noise_scales(sensitivity, selection_epsilon),
        said, "stability", epsilon - selection_epsilon,
    )


def resolution(scales):
    """Return the difference of scores that a noisy argmax can tell apart.

    max s_i ln(2 k): with probability at least 1/2 every exponential variable stays under
    ln(2 k), and the chosen score then lies within this of the best (Chaudhuri and Vinterbo
    2013, theorem 3).
    """
    return float(np.max(scales)) * math.log(2 * len(scales))


def describe(params):
    """Return a candidate's parameters as one short text, without the names of steps if clear."""
    short = {name.rpartition("__")[2]: value for name, value in params.items()}
    if len(short) == len(params):
        params = short
    return ", ".join(f"{name}={_short(value)}" for name, value in params.items()) or "(default)"


def _short(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__}(...)"


def _plain(value):
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)


def messages(params, sensitivity, stake, epsilon, selection_epsilon, n_samples, dimension, noise):
    """Say in words what a selection can do, and what would mend one that cannot.

    Parameters
    ----------
    params : list of dict
    sensitivity : ndarray of shape (k,)
    stake : float
        What a perfect model's score gains over that of one that says nothing.
    epsilon, selection_epsilon : float
    n_samples : int
    dimension : int
        The largest number d of coefficients of a candidate.
    noise : callable
        noise(n_factor, epsilon_factor) returns the scales for that many times as many
        records and that many times the privacy loss.

    Returns
    -------
    tuple of str
    """
    said = []
    if n_samples * epsilon < RECORDS_PER_DIMENSION * dimension:
        needed = math.ceil(RECORDS_PER_DIMENSION * dimension / epsilon)
        said.append(
            f"n epsilon / d = {n_samples * epsilon / dimension:.2g} is below "
            f"{RECORDS_PER_DIMENSION}: expect a model no better than the base rate; use "
            f"n_samples >= {needed}, a larger epsilon, or fewer columns."
        )
    if len(params) == 1:
        said.append("One candidate: nothing is selected, and the whole epsilon goes to training.")
        return tuple(said)
    scales = exponential_noise_scales(sensitivity, selection_epsilon)
    order = np.argsort(sensitivity)[::-1]
    ahead = int(np.sum(sensitivity > sensitivity[order[0]] / 1.5))
    if ahead < len(params):
        loud, rest = order[:ahead], order[ahead:]
        gain = scales.max() / exponential_noise_scales(sensitivity[rest], selection_epsilon).max() \
            if len(rest) > 1 else math.inf
        names = " and ".join(describe(params[i]) for i in sorted(loud))
        said.append(
            f"{names} sets the noise of all candidates: one record can move its score by "
            f"{sensitivity[order[0]]:.2g}, the next one's by {sensitivity[rest[0]]:.2g}. "
            + (f"Without it the noise is {gain:.3g} times less." if gain < math.inf else
               "Without it one candidate is left, and nothing is to be selected.")
        )
    blur, goal = resolution(scales), USEFUL * stake
    if blur <= COIN_TOSS * stake:
        said.append(
            f"Scores that differ by less than about {blur:.2g} cannot be told apart; a perfect "
            f"model scores {stake:.2g} better than one that says nothing."
        )
        return tuple(said)
    said.append(
        f"This selection would be a coin toss: it can tell scores apart that differ by {blur:.2g}, "
        f"and a perfect model scores only {stake:.2g} better than one that says nothing."
    )
    mends = [
        _dropping(params, sensitivity, selection_epsilon, order, goal),
        _at_least("n_samples", n_samples, lambda c: resolution(noise(c, 1)), goal),
        _at_least("epsilon", epsilon, lambda c: resolution(noise(1, c)), goal),
    ]
    mends = [mend for mend in mends if mend is not None]
    if mends:
        said.append(f"To see differences of {goal:.2g}: {', or '.join(mends)}.")
    return tuple(said)


def _dropping(params, sensitivity, epsilon, order, goal):
    for dropped in range(1, len(params) - 1):
        rest = exponential_noise_scales(sensitivity[order[dropped:]], epsilon)
        if resolution(rest) <= goal:
            names = "; ".join(describe(params[i]) for i in sorted(order[:dropped]))
            return f"drop {names}"
    return None


def _at_least(name, value, blur, goal):
    """Return the least `value` that brings blur(factor) down to `goal`, in words, or None."""
    high = 2.0
    while blur(high) > goal:
        high *= 2
        if high > 2**20:
            return None
    low = high / 2
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if blur(middle) <= goal else (middle, high)
    least = math.ceil(high * value) if isinstance(value, int) else f"{high * value:.3g}"
    return f"{name} >= {least}"

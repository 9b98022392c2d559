"""What a selection can tell apart, from public numbers, before any data is read."""

import math
from dataclasses import dataclass

import numpy as np

from ..mechanisms import exponential_noise_scales

# a selection that cannot resolve half of a score's span is decided by its noise alone;
# one that resolves a tenth sees the differences that tuning is usually about
COIN_TOSS, USEFUL = 0.5, 0.1
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


def messages(params, sensitivity, span, epsilon, selection_epsilon, n_samples, dimension, noise):
    """Say in words what a selection can do, and what would mend one that cannot.

    Parameters
    ----------
    params : list of dict
    sensitivity, span : ndarray of shape (k,)
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
    blur, width = resolution(scales), float(span.max())
    if blur <= COIN_TOSS * width:
        said.append(
            f"Scores that differ by less than about {blur:.2g} cannot be told apart "
            f"({blur / width:.0%} of the score's span)."
        )
        return tuple(said)
    said.append(
        f"This selection would be a coin toss: its noise can tell scores apart that differ by "
        f"{blur:.2g}, and the score spans {width:.2g}."
    )
    mends = [_dropping(params, sensitivity, selection_epsilon, order, width)]
    for text, scale in (("n_samples >= ", n_samples), ("epsilon >= ", epsilon)):
        factor = _factor(lambda c: resolution(noise(c, 1) if scale is n_samples else noise(1, c)),
                         USEFUL * width)
        if factor is not None:
            mends.append(text + (f"{math.ceil(factor * scale)}" if scale is n_samples
                                 else f"{factor * scale:.3g}"))
    mends = [mend for mend in mends if mend]
    if mends:
        said.append(f"To see differences of a tenth of the span: {', or '.join(mends)}.")
    return tuple(said)


def _dropping(params, sensitivity, epsilon, order, width):
    for dropped in range(1, len(params) - 1):
        rest = exponential_noise_scales(sensitivity[order[dropped:]], epsilon)
        if resolution(rest) <= USEFUL * width:
            names = "; ".join(describe(params[i]) for i in sorted(order[:dropped]))
            return f"drop {names}"
    return None


def _factor(blur, goal):
    """Return the least factor up to 2**20 that brings `blur` down to `goal`, or None."""
    high = 2.0
    while blur(high) > goal:
        high *= 2
        if high > 2**20:
            return None
    low = high / 2
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if blur(middle) <= goal else (middle, high)
    return high

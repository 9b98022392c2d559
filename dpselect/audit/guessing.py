"""A guessing game that refutes a claimed privacy loss with few releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ..utils.validation import check_callable, check_number
from .random_numbers import numpy_generator

# releases of each data set that are observed before the first guess
FIRST = 32
# losses that the bets assume, in units of the claimed one
BETS = np.array([1.3, 2.0])
# stop when the log evidence has fallen to this
GIVEN_UP = math.log(0.05)
# number of single coordinates that are tried as a statistic
SINGLE = 4


@dataclass(frozen=True)
class GuessingResult:
    """The result of a guessing game.

    Parameters
    ----------
    refuted : bool
        Whether the claim is refuted.
    right, wrong : int
        Guesses.
    n_trials : int
        Releases that it took.

    Examples
    --------
    >>> from dpselect.audit import GuessingResult
    >>> GuessingResult(refuted=False, right=12, wrong=9, n_trials=166).refuted
    False
    """

    refuted: bool
    right: int
    wrong: int
    n_trials: int


def guessing_game(
    release: Callable[[Any], npt.ArrayLike],
    records: Any,
    neighbour: Any,
    epsilon: float,
    *,
    delta: float = 0.0,
    n_trials: int = 3000,
    false_alarm: float = 1e-7,
    random_state: int | np.random.Generator | None = None,
) -> GuessingResult:
    """Try to refute a claimed loss, by guessing which of two data sets a release came from.

    A fair coin chooses the data set of each release. A rule that was learned from the releases
    before guesses it, or passes. Under epsilon-differential privacy a guess is right with a
    probability of at most exp(epsilon) / (1 + exp(epsilon)), whatever came out before.

    Parameters
    ----------
    release : callable
        ``release(records)`` returns what is released, as an array whose shape is always the
        same. It draws new noise at each call.
    records, neighbour : object
        Two neighbouring data sets, as `release` takes them.
    epsilon : float
        The claimed loss, greater than 0. Between 1 and 3 the fewest releases are needed.
    delta : float, default=0.0
        The claimed delta.
    n_trials : int, default=3000
        Most releases. Fewer are made if the claim is refuted early, or the guesses are so bad
        that it hardly would be.
    false_alarm : float, default=1e-7
        Largest probability with which a true claim is refuted.
    random_state : None, int or Generator, default=None
        For the coin; see :func:`numpy.random.default_rng`.

    Returns
    -------
    GuessingResult

    See Also
    --------
    epsilon_lower_bound : A lower bound in place of a verdict; it needs more releases.

    Notes
    -----
    The evidence is a mixture of likelihood ratios of Bernoulli variables, a nonnegative
    supermartingale under the claim: it exceeds 1 / `false_alarm` with at most this probability (Ville's
    inequality), whenever the game is stopped. With delta, releases that the delta excuses may be right
    for nothing; so many are allowed for as come about with a probability of `false_alarm` or more.
    The guesses are those of Steinke, Nasr and Jagielski, *Privacy Auditing with One (1) Training
    Run*, NeurIPS 2023, section 4, for single releases.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect.audit import guessing_game
    >>> rng = np.random.default_rng(0)
    >>> def noisy_sum(records):  # noise for epsilon = 2
    ...     return records.sum() + rng.laplace(scale=0.5)
    >>> data, neighbour = np.zeros(5), np.array([1.0, 0, 0, 0, 0])
    >>> guessing_game(noisy_sum, data, neighbour, epsilon=2.0, random_state=0).refuted
    False
    >>> guessing_game(noisy_sum, data, neighbour, epsilon=1.0, random_state=0).refuted
    True
    """
    why = {"why": "the evidence is counted with it", "instead": "write a number in its range"}
    epsilon = check_number("epsilon", epsilon, **why)
    delta = check_number("delta", delta, low_included=True, high=1.0, **why)
    n_trials = check_number("n_trials", n_trials, low=4 * FIRST, low_included=True, integer=True, **why)
    false_alarm = check_number("false_alarm", false_alarm, high=1.0, **why)
    check_callable("release", release, call="release(records)")
    rng = numpy_generator(random_state)
    sides: tuple[list[Any], list[Any]] = ([], [])

    def play(side):
        released = np.ravel(np.asarray(release((records, neighbour)[side]), dtype=np.float64))
        sides[side].append(np.nan_to_num(released, nan=-1e300, posinf=1e300, neginf=-1e300))
        return sides[side][-1]

    for _ in range(FIRST):
        play(0), play(1)
    fair = 1 / (1 + math.exp(-epsilon))
    bets = 1 / (1 + np.exp(-epsilon * BETS))
    gains = np.log([(1 - bets) / (1 - fair), bets / fair])
    # each release that delta excuses may have turned a wrong guess into a right one
    excused = int(binom.isf(false_alarm, n_trials, delta)) if delta else 0
    evidence = -excused * (gains[1] - gains[0])
    given_up = GIVEN_UP + np.logaddexp.reduce(evidence) - math.log(len(BETS))
    rule = _Rule(np.array(sides[0]), np.array(sides[1]), 1 - fair)
    counts, made, next_rule, total = [0, 0], 2 * FIRST, 4 * FIRST, 0.0
    while made < n_trials and given_up < total < -math.log(false_alarm):
        if made >= next_rule:
            rule = _Rule(np.array(sides[0]), np.array(sides[1]), 1 - fair)
            next_rule = 2 * made
        side = int(rng.integers(2))
        guess = rule.guess(play(side))
        made += 1
        if guess is not None:
            counts[guess == side] += 1
            evidence = evidence + gains[int(guess == side)]
            total = float(np.logaddexp.reduce(evidence)) - math.log(len(BETS))
    return GuessingResult(total >= -math.log(false_alarm), counts[1], counts[0], made)


class _Rule:
    """The statistic and the two thresholds with the most evidence on releases of both data sets."""

    def __init__(self, first, second, wrong):
        centres = np.median(first, axis=0), np.median(second, axis=0)
        spread = sum(np.abs(part - c).mean(axis=0) for part, c in zip((first, second), centres)) / 2
        middle = (centres[0] + centres[1]) / 2
        # keep the spread positive: numbers without noise distinguish perfectly
        self.spread = np.maximum(spread, 1e-9 * np.abs(centres[0] - centres[1]) + 1e-300)
        self.middle = middle
        half = (centres[0] - centres[1]) / 2 / self.spread
        # ignore differences that are within sampling error
        self.half = np.where(np.abs(half) > 1.5 / math.sqrt(len(first)), half, 0.0)
        self.single = np.argsort(-np.abs(half))[:SINGLE]
        scores = zip(self.statistics(first).T, self.statistics(second).T)
        found = [_thresholds(*pair, wrong) for pair in scores]
        self.best = int(np.argmax([value for value, *_ in found]))
        _, self.low, self.high = found[self.best]

    def statistics(self, releases):
        z = np.clip((releases - self.middle) / self.spread, -1e9, 1e9)
        apart, lengths = [z + self.half, z - self.half], np.linalg.norm(z, axis=1)
        return np.column_stack(
            [
                # likelihood ratios of Laplace, spherical Laplace and Gaussian noise
                (np.abs(apart[0]) - np.abs(apart[1])).sum(axis=1),
                np.linalg.norm(apart[0], axis=1) - np.linalg.norm(apart[1], axis=1),
                z @ self.half,
                lengths,
                -lengths,
                z[:, self.single] * np.where(self.half[self.single] < 0, -1.0, 1.0),
            ]
        )

    def guess(self, release):
        """Return the guessed data set, 0 or 1, or None."""
        score = self.statistics(release[None])[0, self.best]
        return 0 if score > self.high else 1 if score < self.low else None


def _thresholds(first, second, wrong):
    """Return the evidence of the best two thresholds, and these.

    Above the high one the first data set is guessed, and below the low one the second.
    """
    tried = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 41)))
    above = [len(part) - np.searchsorted(np.sort(part), tried, "right") for part in (first, second)]
    below = [np.searchsorted(np.sort(part), tried, "left") for part in (second, first)]
    values = [_evidence(*above, wrong), _evidence(*below, wrong)]
    high, low = (tried[int(np.argmax(value))] for value in values)
    return sum(float(value.max()) for value in values), min(low, high), high


def _evidence(right, mistaken, wrong):
    success = (mistaken + 0.5) / (right + mistaken + 1)
    gain = success * np.log(success / wrong) + (1 - success) * np.log((1 - success) / (1 - wrong))
    # without evidence, minimise mistakes
    return np.where(success < wrong, (right + mistaken) * gain, -success)

"""Search for neighbouring records that move a score, at fixed noise, by more than was claimed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from ..metrics import Score
from ..noise.generators import search_stream
from ..records.persons import Persons
from ..utils.type_aliases import Estimator
from ..utils.validation import check_callable, check_number
from .random_numbers import numpy_generator

# walks of a trial; with 100 records, one finds a jump of the score in a tenth to a fifth of the
# cases, for about as many evaluations as seven steps
WALKS = 5
# function of a generator and a number of records, which returns an array or a tuple of arrays
DrawRecords: TypeAlias = Callable[[np.random.Generator, int], Any]


@dataclass(frozen=True, eq=False)
class ScoreChange:
    """Two neighbouring data sets and the difference of their scores.

    Parameters
    ----------
    change : float
        The absolute difference of the two scores.
    index : int
        The record in which the data sets differ.
    records, neighbour : ndarray or tuple of ndarray
        The data sets, in the form in which records were drawn.
    bound : float or None
        What the change was claimed not to exceed.
    """

    change: float
    index: int
    records: object = field(repr=False)
    neighbour: object = field(repr=False)
    bound: float | None = None

    @property
    def ratio(self) -> float | None:
        """float or None : change / bound; more than 1 refutes the bound."""
        return None if self.bound is None else self.change / self.bound


def stability_violation(
    score_of: Callable[..., float],
    draw_records: DrawRecords,
    n_samples: int,
    *,
    bound: float | None = None,
    n_trials: int = 10,
    n_steps: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> ScoreChange:
    """Search neighbouring data sets for the largest change of a score at fixed noise.

    A private search may score a training procedure only if one record changes the score by
    little while the procedure's noise stays the same. Differential privacy does not imply that.

    Each trial walks five times from one random data set to another, record by record, and starts
    at the step that moves the score most, found by bisection. It then changes that record, its
    replacement and the other records at random, and keeps what does not lower the change.

    Parameters
    ----------
    score_of : callable
        ``score_of(records)``, or ``score_of(X, y)`` if records are drawn as such a pair:
        trains at fixed noise and returns the score on fixed validation records.
    draw_records : callable
        ``draw_records(rng, size)`` returns `size` records as an array, or a tuple of arrays
        such as ``(X, y)``, whose first axes have that length. `rng` is a numpy Generator. The
        search tries no values but those it draws: let it draw extreme ones.
    n_samples : int
        Number of records of a data set.
    bound : float, default=None
        The claim to be tested, greater than 0.
    n_trials : int, default=10
        Independent trials.
    n_steps : int, default=100
        Steps of each, of at most two evaluations.
    random_state : None, int or Generator, default=None
        For numpy's ``default_rng``. Not noise: a seed does no harm, and gives the same
        search again.

    Returns
    -------
    ScoreChange
        The largest change that was found, a lower bound on the largest there is.

    Raises
    ------
    ValueError
        If `score_of` gives two scores to the same records (its noise is then not fixed), or
        one that is not finite, or a parameter is out of range.

    See Also
    --------
    attack_certificate : The same for an estimator that states its stability.

    Notes
    -----
    Condition 1 of definition 2 of Chaudhuri and Vinterbo, *A Stability-based Validation
    Procedure for Differentially Private Machine Learning*, NIPS 2013.

    Examples
    --------
    The mean of numbers in [0, 1] plus noise moves by at most 1 / n, and so does a score of it.
    Noise that is drawn from the numbers themselves has the right law, and is not stable.

    >>> import numpy as np
    >>> from dpselect.audit import stability_violation
    >>> from dpselect.noise import as_generator, laplace
    >>> noise = laplace(as_generator(0), ()) / 50
    >>> def score_of(records):
    ...     return records.mean() + noise
    >>> def careless_score_of(records):
    ...     seed = int(2**32 * records.mean())
    ...     return records.mean() + laplace(as_generator(seed), ()) / 50
    >>> def draw_records(rng, size):
    ...     return rng.choice([0.0, 0.5, 1.0], size=size)
    >>> found = stability_violation(score_of, draw_records, 50, bound=1 / 50, random_state=0)
    >>> print(round(found.ratio, 6))
    1.0
    >>> found = stability_violation(
    ...     careless_score_of, draw_records, 50, bound=1 / 50, random_state=0
    ... )
    >>> found.ratio > 5
    True

    For an estimator of your own, clone it, with the noise in its `random_state`, and score it on
    records that stay the same:

    >>> from sklearn.base import BaseEstimator, clone
    >>> from dpselect.noise import root_stream
    >>> class NoisyMean(BaseEstimator):
    ...     def __init__(self, random_state=None):
    ...         self.random_state = random_state
    ...     def fit(self, X, y=None):
    ...         self.mean_ = X.mean() + laplace(as_generator(self.random_state), ()) / len(X)
    ...         return self
    ...     def score(self, X, y=None):
    ...         return -np.abs(X - self.mean_).mean()
    >>> model, validation = NoisyMean(random_state=root_stream()), np.array([[0.2], [0.4]])
    >>> found = stability_violation(
    ...     lambda X: clone(model).fit(X).score(validation), lambda rng, n: rng.random((n, 1)), 20,
    ...     bound=1 / 20, n_trials=3, n_steps=20, random_state=0,
    ... )
    >>> found.ratio < 1.001
    True
    """
    n_samples, n_trials = _check_counts(1, n_samples=n_samples, n_trials=n_trials)
    (n_steps,) = _check_counts(0, n_steps=n_steps)
    if bound is not None:
        check_number(
            "bound",
            bound,
            high_included=True,
            why="changes are compared with it",
            instead="write a number greater than 0, or None",
        )
    check_callable("score_of", score_of, call="score_of(records)")
    check_callable("draw_records", draw_records, call="draw_records(rng, size)")
    rng = numpy_generator(random_state)
    search = _Search(score_of, draw_records, n_samples, rng)
    search.check_noise_is_fixed()
    best = max((search.trial(n_steps) for _ in range(n_trials)), key=lambda pair: pair.change)
    return ScoreChange(
        best.change,
        best.index,
        search.as_drawn(best.records),
        search.as_drawn(best.neighbour),
        None if bound is None else float(bound),
    )


def attack_certificate(
    estimator: Estimator,
    score: Score,
    draw_records: DrawRecords,
    n_samples: int,
    n_validation: int = 1,
    *,
    n_problems: int = 1,
    persons: bool = False,
    n_trials: int = 10,
    n_steps: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> tuple[ScoreChange, ScoreChange]:
    """Attack both parts of an estimator's stability certificate.

    Parameters
    ----------
    estimator : estimator
        With `stability_certificate` and `random_state`. It is cloned; a `random_state` of None
        stands for new noise, which then stays fixed.
    score : Score
        As for `stability_certificate`.
    draw_records : callable
        ``draw_records(rng, size)`` returns what `fit` and `score` take: X, or ``(X, y)``.
    n_samples, n_validation : int
        Training and validation records. A single validation record shows a change of the
        model best.
    n_problems : int, default=1
        As for `stability_certificate`.
    persons : bool, default=False
        Whether records are persons. The arrays that are drawn are then of objects: for each person
        the rows, an array of shape (m, n_features), and the labels, of shape (m,).
    n_trials : int, default=10
    n_steps : int, default=100
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        As for :func:`stability_violation`; each trial has its own validation records.

    Returns
    -------
    training, validation : ScoreChange
        The largest changes that were found when one training record, or one validation
        record, is replaced. A ratio above 1 refutes the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression
    >>> from dpselect.audit import attack_certificate
    >>> from dpselect.metrics import BrierScore
    >>> def draw_records(rng, size):
    ...     return rng.normal(size=(size, 2)), rng.integers(2, size=size)
    >>> training, validation = attack_certificate(
    ...     DPLogisticRegression(alpha=0.1, classes=[0, 1]), BrierScore(), draw_records,
    ...     n_samples=20, n_trials=2, n_steps=20,
    ... )
    >>> training.ratio <= 1 and validation.ratio <= 1
    True
    """
    n_samples, n_validation, n_trials = _check_counts(
        1, n_samples=n_samples, n_validation=n_validation, n_trials=n_trials
    )
    (n_steps,) = _check_counts(0, n_steps=n_steps)
    model = clone(estimator).set_params(random_state=search_stream(estimator.random_state))
    rng = numpy_generator(random_state)
    found = []
    for _ in range(n_trials):
        train, validation = (_as_tuple(draw_records(rng, size)) for size in (n_samples, n_validation))
        n_features = (train[0][0] if persons else train[0]).shape[1]
        certificate = model.stability_certificate(
            score, n_samples, n_features, n_problems, **{"persons": True} if persons else {}
        )
        fitted = _fitted(model, train, persons)
        # sequentially, because each call advances the generator
        common = dict(n_trials=1, n_steps=n_steps, random_state=rng)
        found.append(
            (
                stability_violation(
                    lambda *records: _score(
                        score, _fitted(model, records, persons), validation, persons
                    ),
                    draw_records,
                    n_samples,
                    bound=certificate.training,
                    **common,
                ),
                stability_violation(
                    lambda *records: _score(score, fitted, records, persons),
                    draw_records,
                    n_validation,
                    bound=certificate.span / n_validation,
                    **common,
                ),
            )
        )
    return tuple(max(part, key=lambda change: change.change) for part in zip(*found))


def _fitted(model, records, persons):
    if not persons:
        return clone(model).fit(*records)
    *rows, ids = _rows(records)
    return clone(model).fit(*rows, groups=ids)


def _score(score, fitted, records, persons):
    if not persons:
        return score(fitted, *records)
    *rows, ids = _rows(records)
    return score(fitted, *rows, sample_weight=Persons.of(ids, rows[0]).weight)


def _rows(records):
    """Return the rows of persons, and the index of each row's person."""
    sizes = [len(table) for table in records[0]]
    return *map(np.concatenate, records), np.repeat(np.arange(len(sizes)), sizes)


@dataclass(frozen=True)
class _Pair:
    """Neighbouring data sets, which differ at `index`, and their scores."""

    index: int
    records: tuple
    neighbour: tuple
    score: float
    neighbour_score: float

    @property
    def change(self):
        return abs(self.score - self.neighbour_score)


class _Search:
    def __init__(self, score_of, draw_records, n_samples, rng):
        self.score_of = score_of
        self.draw_records = draw_records
        self.n_samples = n_samples
        self.rng = rng
        self.bare = False

    def as_drawn(self, records):
        return records[0] if self.bare else records

    def draw(self, size):
        """Draw records with few or many distinct ones."""
        drawn = self.draw_records(self.rng, size)
        self.bare = not isinstance(drawn, tuple)
        drawn = _as_tuple(drawn)
        if not drawn or any(array.ndim == 0 for array in drawn):
            raise ValueError(
                "draw_records gave no array, or one without rows; return an array with a row for "
                "each record, or a tuple of such arrays."
            )
        if any(len(array) != size for array in drawn):
            raise ValueError(
                f"draw_records gave arrays of {', '.join(str(len(array)) for array in drawn)} rows "
                f"when asked for {size} records; give that many in each."
            )
        distinct = self.up_to(size)
        order = self.rng.integers(distinct, size=size) if distinct < size else np.arange(size)
        return tuple(array[order] for array in drawn)

    def up_to(self, size):
        """Draw a number from 1 to `size`, with small and large ones equally likely."""
        return min(size, int((size + 1) ** self.rng.random()))

    def score(self, records):
        score = self.score_of(*records)
        if not isinstance(score, numbers.Real):
            raise TypeError(
                f"score_of returned a {type(score).__name__}, and a change from or to it has no "
                "size; return a number."
            )
        score = float(score)
        if not math.isfinite(score):
            raise ValueError(
                f"score_of returned {score} for records that draw_records gave, and a change from "
                "or to it has no size; return a finite number for all records."
            )
        return score

    def check_noise_is_fixed(self):
        records = self.draw(self.n_samples)
        if self.score(records) != self.score(records):
            raise ValueError(
                "score_of gave two scores to the same records, so it is not at fixed noise; fix it, "
                "for an estimator by random_state=dpselect.noise.root_stream(0)."
            )

    def trial(self, n_steps):
        pair = max((self.walk() for _ in range(WALKS)), key=lambda pair: pair.change)
        for _ in range(n_steps):
            tried = self.step(pair)
            if tried.change >= pair.change:
                pair = tried
        return pair

    def walk(self):
        """Return the pair with the largest change on a path from one data set to another."""
        start, goal = self.draw(self.n_samples), self.draw(self.n_samples)

        def after(n_replaced):
            records = _replaced(start, slice(n_replaced), [array[:n_replaced] for array in goal])
            return records, self.score(records)

        low, high = 0, self.n_samples
        left, right = after(low), after(high)
        while high - low > 1:
            middle = (low + high) // 2
            between = after(middle)
            if abs(between[1] - left[1]) >= abs(right[1] - between[1]):
                high, right = middle, between
            else:
                low, left = middle, between
        return _Pair(low, left[0], right[0], left[1], right[1])

    def step(self, pair):
        """Change the record, its replacement or some of the others."""
        records, neighbour = pair.records, pair.neighbour
        kind = self.rng.integers(3)
        if kind < 2 or self.n_samples == 1:
            new = _replaced(records, [pair.index], self.draw(1))
            if kind == 0:
                return _Pair(pair.index, new, neighbour, self.score(new), pair.neighbour_score)
            return _Pair(pair.index, records, new, pair.score, self.score(new))
        others = np.delete(np.arange(self.n_samples), pair.index)
        others = self.rng.permutation(others)[: self.up_to(len(others))]
        new = self.draw(len(others))
        records, neighbour = (_replaced(data, others, new) for data in (records, neighbour))
        return _Pair(pair.index, records, neighbour, self.score(records), self.score(neighbour))


def _check_counts(least, **counts):
    """Return the counts as Python integers, which do not overflow."""
    return [
        check_number(
            name,
            value,
            integer=True,
            low=least,
            low_included=True,
            why="it counts what the search goes through",
            instead=f"write {least} or more",
        )
        for name, value in counts.items()
    ]


def _as_tuple(drawn):
    return tuple(map(np.asarray, drawn)) if isinstance(drawn, tuple) else (np.asarray(drawn),)


def _replaced(records, where, rows):
    """Return a copy of `records` with `rows` at the indices `where`."""
    copies = tuple(array.copy() for array in records)
    for array, new in zip(copies, rows):
        array[where] = new
    return copies

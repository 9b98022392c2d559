"""Attack a choice: distinguish neighbouring data sets by what a search releases."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from ..noise import InnerStream, root_stream
from .strategy_case import Chooser, StrategyCase, quiet, restored_generators, revealing_subject
from .tally import require
from .telling import ColumnScore

# leads of one candidate's score, relative to the sensitivity of a score, and to its width: where the
# choice is nearly certain, records are distinguished best
LEANINGS, FAR, HANDICAP = (0.0, -0.6, -1.1, -2.0), -0.3, -0.4
# releases of each data set for a first look, for a second one if they differ, and pairs to attack
GLANCES, LOOKS, PAIRS = 4, 46, 2
# fractions of the trials after which the rule is learned again, and the least useful evidence
STAGES, WORTH_IT = (0.1, 0.3, 0.6), 4.0
# all games of a check together raise a false alarm with a probability below 1e-6
FALSE_ALARM = 2e-8
# losses that the bets assume, in units of the claimed one
BETS = np.array([1.2, 1.5, 2.0, 3.0])
# the loss with which guesses need the fewest releases
BEST_EPSILON = 2.0
# epsilon of a choice that states none, and of a search whose choice gets a small part
NO_EPSILON, LARGEST_EPSILON = 0.05, 100.0
# rows of a person among others with one each
ROWS = 30


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets, with a description."""

    what: str
    first: tuple
    second: tuple


def scores_of(k, leaning=0.0):
    """Return one record's scores of k candidates: the first one is a little better or worse."""
    scores = np.full(k, 0.5)
    scores[0] += leaning
    return scores


def records(n, base, place, scores, questions, label=1, labels=1, rows=1):
    """Return n records with a special one, as X, label numbers, and groups.

    `base` are the scores of the others, shape (k,), or (n, k). The special record has `rows` rows.
    """
    k = len(scores)
    X, y = np.zeros((n, 2 * k + 1)), np.full(n, labels)
    X[:, :k], X[:, -1] = base, np.arange(n)
    X[place, : 2 * k], y[place] = (*scores, *questions), label
    order = np.r_[np.full(rows - 1, place, dtype=int), np.arange(n)]
    return X[order], y[order], order


class Pairs:
    """Pairs of data sets of n records with scores of k candidates, which differ in one record."""

    def __init__(self, n, k, scored, rows=1, centre=0.0):
        self.n, self.k, self.rows = n, k, rows
        size = max(len(scored), 1)
        # with new noise, the centre is known only up to the noise
        centre *= abs(centre) * size > 2
        self.leanings = [centre + leaning / size for leaning in LEANINGS]
        others = np.setdiff1d(np.arange(n), scored)
        self.scored_place = "a record that models are scored on", int(scored[0]) if len(scored) else 0
        self.trained = "a record that no model is scored on", int(others[0]) if len(others) else n - 1
        self.likes, self.dislikes = np.eye(k)[0], 1 - np.eye(k)[0]
        self.asks, self.silent = np.ones(k), np.zeros(k)

    def pair(self, where, what, base, *sides, labels=1):
        name, place = where
        data = [records(self.n, base, place, *side, labels=labels, rows=self.rows) for side in sides]
        return Pair(f"{name} and {what}", *data)

    def of_scores(self):
        """Yield pairs in which a record favours one candidate, or all others."""
        sides = (self.likes, self.silent), (self.dislikes, self.silent)
        scored_pairs = [(self.scored_place, leaning) for leaning in (*self.leanings, FAR)]
        for where, leaning in (*scored_pairs, (self.trained, self.leanings[1])):
            what = f"decides between scores {abs(leaning):.2g} apart"
            yield self.pair(where, what, scores_of(self.k, leaning), *sides)
        halves = np.where(np.arange(self.n)[:, None] % 2, self.likes, self.dislikes)
        yield self.pair(self.scored_place, "decides between halves of the others", halves, *sides)
        for side in sides:
            same = scores_of(self.k), self.silent
            yield self.pair(self.scored_place, "decides whether scores are equal", same[0], side, same)
        if self.rows == 1:
            yield from self.of_places()

    def of_places(self):
        """Yield pairs in which a record has another position in any order of the records."""
        for seed in range(8):
            rng = np.random.default_rng(seed)
            labels = rng.permutation(np.arange(self.n) % 2)
            base = np.where(rng.permutation(np.arange(self.n) % 2)[:, None], self.likes, self.dislikes)
            yield self.pair(
                ("the first record", 0),
                "has another label and scores",
                base,
                (self.likes, self.silent, 0),
                (self.dislikes, self.silent, 1),
                labels=labels,
            )

    def of_answers(self):
        """Yield pairs in which a record decides the answers of models."""
        same, one = scores_of(self.k), np.eye(self.k)[0]
        for where in (self.trained, self.scored_place):
            yield self.pair(
                where, "decides what all models answer", same, (same, self.asks), (same, self.silent)
            )
            # with a handicap, the first candidate is chosen only if all others answer differently
            for leaning in (0.0, HANDICAP):
                base = scores_of(self.k, leaning)
                yield self.pair(
                    where, "decides which models answer", base, (base, one), (base, self.asks - one)
                )

    def of_both(self):
        """Yield pairs in which a record decides on scores and answers."""
        sides = (self.likes, self.asks), (self.dislikes, self.silent)
        for where in (self.trained, self.scored_place):
            for leaning in self.leanings[:2]:
                base = scores_of(self.k, leaning)
                yield self.pair(where, "decides on scores and answers", base, *sides)


def rule(counts, epsilon):
    """Return the evidence of guesses by some outcomes against a loss, and the data set that each means.

    `counts` are those of outcomes on both data sets.
    """
    fair, found, guesses, right, total = _fair(epsilon), (0.0, 0), [], 0.5, 1.0
    for outcome in counts[0].keys() | counts[1].keys():
        here, there = (part[outcome] for part in counts)
        larger = max(here, there)
        guesses.append(((larger + 0.5) / (here + there + 1), repr(outcome), outcome, here, there))
    guesses.sort(reverse=True)
    for i, (_, _, _, here, there) in enumerate(guesses, start=1):
        right, total = right + max(here, there), total + here + there
        success = right / total
        if success > fair:
            gain = total * (
                success * math.log(success / fair) + (1 - success) * math.log((1 - success) / (1 - fair))
            )
            found = max(found, (gain, i))
    return found[0], {outcome: int(there > here) for _, _, outcome, here, there in guesses[: found[1]]}


def _fair(epsilon):
    """Return the largest probability that a guess is right."""
    return 1 / (1 + math.exp(-epsilon))


def distinguish(chooser, tried, delta, outcome, n_trials, seed, persons=False):
    """Require that no pair is distinguished better than is claimed.

    Under (epsilon, delta)-privacy a guess which of two data sets, chosen by a fair coin, was searched is
    right with a probability of at most exp(epsilon) / (1 + exp(epsilon)), up to delta. Each rule is
    learned from releases that are not counted with it.
    """
    root, looked, made = root_stream(seed), [], iter(range(10**9))
    coin = np.random.default_rng(seed)

    def release(data):
        X, labels, order = data
        stream = NewNoise.of(root, root.child("release", next(made)))
        return outcome(chooser, X, labels, stream, order if persons else None)

    claim = chooser.loss.epsilon
    require(claim < math.inf, "privacy_ states an infinite loss: the search is not private.")
    epsilon = max(claim, NO_EPSILON)
    with restored_generators(), quiet():
        for pair in tried:
            sides = pair.first, pair.second
            counts = [Counter(release(side) for _ in range(GLANCES)) for side in sides]
            if len(counts[0].keys() | counts[1].keys()) > 1:
                for side, part in zip(sides, counts):
                    part.update(release(side) for _ in range(LOOKS))
            looked.append((-rule(counts, epsilon)[0], len(looked), sides, pair.what, counts))
        for *_, sides, what, counts in sorted(looked, key=lambda one: one[:2])[:PAIRS]:
            left, guessed = n_trials, Guesses(epsilon, delta, n_trials)
            for size in (int(fraction * n_trials) for fraction in STAGES):
                found, guesses = rule(counts, epsilon)
                if found * left / counts[0].total() < 2 * WORTH_IT:
                    break
                left -= size
                for side in coin.integers(2, size=size):
                    seen = release(sides[side])
                    counts[side][seen] += 1
                    if seen in guesses:
                        guessed.add(guesses[seen] == side)
                        require(
                            not guessed.refute,
                            f"With {chooser.what}, {guessed.right} of {guessed.total} guesses which of "
                            f"two data sets was searched were right, which a loss of {claim:.3g} does "
                            f"not allow; they differ in {what}.",
                        )


class Guesses:
    """Sequential guesses of bounded success probability, and their evidence."""

    def __init__(self, epsilon, delta, n_trials):
        bets, fair = 1 / (1 + np.exp(-epsilon * BETS)), _fair(epsilon)
        self.gains = np.log([(1 - bets) / (1 - fair), bets / fair])
        # each release that delta excuses may have turned a wrong guess into a right one
        excused = int(binom.isf(FALSE_ALARM, n_trials, delta)) if delta else 0
        self.evidence = -excused * (self.gains[1] - self.gains[0])
        self.right = self.total = 0

    def add(self, right):
        self.right, self.total = self.right + bool(right), self.total + 1
        self.evidence = self.evidence + self.gains[int(right)]

    @property
    def refute(self):
        """bool : Whether there are too many right ones (Ville's inequality)."""
        evidence = np.logaddexp.reduce(self.evidence) - math.log(len(BETS))
        return evidence >= -math.log(FALSE_ALARM)


def choice_alone(chooser, *data):
    return chooser.choose(*data, train=False)[0]


def choice_and_model(chooser, *data):
    best, model = chooser.choose(*data)
    return best, model.answer_


@dataclass(frozen=True)
class NewNoise(InnerStream):
    """A stream with new noise for the release only: splits and trials stay the same.

    No proof may need that they are secret, as they are not released by that noise.
    """

    new: Any = None

    @classmethod
    def of(cls, stream, new):
        return cls(stream.key, False, new)

    def child(self, *path):
        return NewNoise(super().child(*path).key, False, self.new.child(*path))

    def for_release(self):
        return self.new.for_release()


def scored_records(case, chooser, seed, rows):
    """Return the records on which models are scored, by the splits common to all choices of a seed."""
    X, labels, order = dummy(case, rows)
    root, ColumnScore.log = root_stream(seed), []
    try:
        with restored_generators(), quiet():
            stream = NewNoise.of(root, root.child("look"))
            chooser.choose(X, labels, stream, order if rows > 1 else None, train=False)
        return np.unique(np.concatenate([np.arange(0), *ColumnScore.log]))
    finally:
        ColumnScore.log = None


def dummy(case, rows=1, leaning=0.0):
    """Return records without a special one."""
    n, k = case.subject.n, case.subject.d // 2
    scores = scores_of(k, leaning)
    return records(n, scores, 0, scores, np.zeros(k), rows=rows)


def balance(case, chooser, seed, rows):
    """Return the lead in scores at which the first candidate is chosen half of the time."""
    root, low, high = root_stream(seed), -0.5, 0.5
    with restored_generators(), quiet():
        for step in range(10):
            middle, times = (low + high) / 2, 0
            X, labels, order = dummy(case, rows, middle)
            for i in range(3):
                stream = NewNoise.of(root, root.child("balance", step, i))
                groups = order if rows > 1 else None
                times += chooser.choose(X, labels, stream, groups, train=False)[0] == 0
            low, high = (low, middle) if times >= 2 else (middle, high)
    return high


def chooser_of(case, alone, rows=1, **parameters):
    """Return the Chooser for records as in pairs; of a choice alone where that is attacked best."""
    X, labels, order = dummy(case, rows)
    groups, epsilon = order if rows > 1 else None, BEST_EPSILON
    data = X, case.subject.labels(labels)
    for _ in range(2 if alone else 1):
        chooser = Chooser(case, data, groups, epsilon=epsilon, refit=not alone, **parameters)
        stated = chooser.loss.epsilon
        chooser.what = f"epsilon={epsilon:.3g} and a {case.subject.name}"
        if not 0 < stated < math.inf or abs(stated - BEST_EPSILON) < 0.1:
            break
        epsilon = min(epsilon * BEST_EPSILON / stated, LARGEST_EPSILON)
    return chooser


def check_choice(case, n_trials):
    """Check that a choice, by scores that a record decides, has at most the stated loss."""
    _attack(case, n_trials, alone=True)
    if case.subject.made_for_attacks:
        _attack(case, n_trials, alone=False)


def check_choice_by_models(case, n_trials):
    """Check that a choice, by scores that reveal training records, has at most the stated loss."""
    subject = case.subject
    # more models of the same records make a choice among them more revealing
    revealing = revealing_subject(type(subject.estimator), 3, True, subject.n, **subject.parameters)
    for alone in (True, False):
        _attack(StrategyCase(case.kind, revealing), n_trials, alone=alone)


def check_choice_of_persons(case, n_trials):
    """Check that a person with many rows is protected like one with a single row."""
    if case.refusal_of_persons:
        return f"rows of persons are refused ({case.refusal_of_persons})"
    return _attack(case, n_trials, alone=True, rows=ROWS)


def _attack(case, n_trials, alone, rows=1):
    revealing, chooser = case.subject.scoring.revealing, chooser_of(case, alone, rows)
    seed = 2 * revealing + alone
    scored = scored_records(case, chooser, seed, rows)
    centre = balance(case, chooser, seed, rows) if alone and not revealing else 0.0
    made = Pairs(case.subject.n, case.subject.d // 2, scored, rows, centre)
    tried = made.of_answers() if revealing else made.of_scores() if alone else made.of_both()
    distinguish(
        chooser,
        tried,
        chooser.loss.delta,
        choice_alone if alone else choice_and_model,
        n_trials,
        seed,
        rows > 1,
    )

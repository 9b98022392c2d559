"""The law of what the strategies of a search release, sampled on neighbouring data sets.

The bound of the audit must stay under the claimed epsilon, and go over it for twins that are
deliberately broken. The models are those that show the most of a record that their privacy
loss allows: they tell one of three things, and what is likely here is as unlikely there as it
may be. One record decides on what a model tells, another one on what a score is.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.base import BaseEstimator

from dpselect import PrivacyLoss
from dpselect.base.certificates import RiskBound as Bound
from dpselect.metrics import Score
from dpselect.model_selection.candidates import Candidate
from dpselect.model_selection.strategies import Problem
from dpselect.model_selection.strategies.auto import Auto
from dpselect.model_selection.strategies.data_free import FirstCandidate, Random
from dpselect.model_selection.strategies.held_out import BudgetSplit, DataSplit
from dpselect.model_selection.strategies.optimal_risk import OptimalRisk
from dpselect.model_selection.strategies.random_stopping import RandomStopping
from dpselect.noise import as_generator, root_stream

from .audit import FALSE_ALARM

N = 4_000
EPSILON = 1.0
# what a model tells with probabilities MIDDLE and exp(epsilon) MIDDLE
MIDDLE = 0.25


class Telling(BaseEstimator):
    """Randomised response of three answers to the question whether a label is 1.

    The probabilities of the answers 0, 1, 2 have the ratios exp(epsilon), exp(epsilon) and
    exp(-epsilon), of which no record can make more.
    """

    delta = 0.0

    def __init__(self, side=0, epsilon=EPSILON, random_state=None):
        self.side, self.epsilon, self.random_state = side, epsilon, random_state

    def __sklearn_clone__(self):
        return Telling(self.side, self.epsilon, self.random_state)

    def get_params(self, deep=True):
        return {"side": self.side, "epsilon": self.epsilon, "random_state": self.random_state}

    def set_params(self, **params):
        vars(self).update(params)
        return self

    def fit(self, X, y):
        e = math.exp(self.epsilon)
        middle, best = MIDDLE / e, 1 / (1 + e)
        law = [1 - middle * e - best, middle * e, best]
        if not np.any(y == 1):
            law = [1 - middle - best * e, middle, best * e]
        left = as_generator(self.random_state).random()
        self.answer_ = int(left >= law[0]) + int(left >= law[0] + law[1])
        self.privacy_ = PrivacyLoss(self.epsilon)
        return self

    # the least risk of a side is the share of records on the other one
    def calibration(self, shape, epsilon=None):
        bound = Bound(1 / shape.n_samples, 0.0, 0.0, 1.0, ("share",))
        return SimpleNamespace(risk_bound=lambda reach: bound)

    def risk_bound(self, *shape):
        """Stands for the capability; strategies ask the calibration."""

    @staticmethod
    def optimal_values(trials, X, y, reach):
        return [np.mean(X[:, 0] != trial.model.side) for trial in trials]


@dataclass(frozen=True)
class Answers(Score):
    """The larger the answer, the better."""

    width = 1.0

    def __call__(self, model, X, y):
        return model.answer_ / 2


@dataclass(frozen=True)
class Sides(Score):
    """The share of records on the model's side, whatever it answers."""

    width = 1.0

    def __call__(self, model, X, y):
        return float(np.mean(X[:, 0] == model.side))


def split(n_train=6, n_test=40):
    return [(np.arange(n_train), np.arange(n_train, n_train + n_test))]


def neighbours(n, label=None, side=None, ones=1):
    """Two data sets: the label of a record is 1 in the first; a record is on side 1 there."""
    pair = []
    for first in (True, False):
        X, y = np.zeros((n, 1)), np.zeros(n)
        if side is not None:
            X[side : side + ones, 0] = 1.0
            X[side, 0] = first
        if label is not None:
            y[label] = first
        pair.append((X, y))
    return pair


def released(strategy, X, y, size, seed, k=2, score=Sides(), splits=None, fraction=0.5):
    """What `size` choices release: the index and the answer of each."""
    n = len(X)
    problem = Problem(
        [Candidate({"side": i}, Telling(i), (), 1) for i in range(k)],
        score,
        splits,
        n,
        1,
        epsilon=EPSILON,
        selection_fraction=fraction,
        random_state=0,
    )
    chooser, root, found = strategy(problem), root_stream(seed), []
    for run in range(size):
        stream = root.child("run", run)
        choice = chooser.choose(X, y, stream)
        model = choice.estimator
        if model is None:
            state = stream.child("release")
            model = Telling(choice.best, chooser.training_epsilon, state).fit(X, y)
        found.append((choice.best, model.answer_))
    return np.array(found)


def audit(strategy, data, *, index=None, answer=None, size=N, **parameters):
    """Bound the loss from below by one event, which is more likely on the first data set."""
    hits = []
    for seed, records in enumerate(data, start=1):
        chosen, told = released(strategy, *records, size, seed, **parameters).T
        event = (chosen == index if index is not None else True) & (
            told == answer if answer is not None else True
        )
        hits.append(int(np.sum(event)))
    p = beta.ppf(FALSE_ALARM / 2, hits[0], size - hits[0] + 1)
    q = beta.isf(FALSE_ALARM / 2, hits[1] + 1, size - hits[1])
    return math.log(p / q)


# 40 validation records, by which a choice by answers is almost exact
BY_ANSWERS = dict(data=neighbours(46, label=0), score=Answers(), splits=split())
# two or one of six validation records on side 1
BY_SIDES = dict(data=neighbours(12, side=6, ones=2), splits=split(6, 6), index=1)
# four or three of seven
CLOSE = dict(data=neighbours(13, side=6, ones=4), splits=split(6, 7), index=1)


def by_risk():
    """100 or 99 of 200 records are on side 1; the model sees the one that differs as well."""
    data = neighbours(200, label=99, side=99, ones=2)
    for X, _ in data:
        X[:98] = 1.0
    return dict(data=data, index=1, answer=0, size=2 * N)


# --- the strategies as they are


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy, answer, least",
    [
        (BudgetSplit, 0, 0.3),
        (DataSplit, 0, 0.2),
        (RandomStopping, 1, 0.2),
        (Random, 0, 0.6),
        (Auto, 0, 0.6),
    ],
)
def test_a_training_record_stays_under_the_claim(strategy, answer, least):
    assert least < audit(strategy, answer=answer, **BY_ANSWERS) <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [BudgetSplit, DataSplit])
def test_a_validation_record_stays_under_the_claim(strategy):
    assert 0.3 < audit(strategy, **BY_SIDES) <= EPSILON


@pytest.mark.slow
def test_the_score_of_a_run_stays_under_the_claim():
    assert audit(RandomStopping, size=N // 4, **CLOSE) <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [OptimalRisk, Auto])  # which takes it here
def test_a_choice_by_risk_and_the_model_stay_under_the_claim(strategy):
    assert 0.5 < audit(strategy, **by_risk()) <= EPSILON


# --- twins that are broken


class FullShares(BudgetSplit):
    """Trains every model with the whole epsilon."""

    def prepare(self):
        super().prepare()
        self.training_epsilon = self.problem.epsilon


class OverlappingParts(DataSplit):
    """Trains every candidate on all training records."""

    def parts(self, stream):
        return [self.train] * len(self.problem.candidates)


class ExactScores(RandomStopping):
    """Runs whose scores have no noise."""

    def prepare(self):
        super().prepare()
        self.scale = 0.0


class CountedAsOneRun(RandomStopping):
    """Every run spends the whole epsilon."""

    def prepare(self):
        super().prepare()
        self.training_epsilon = self.problem.epsilon


class SameRecords(DataSplit):
    """Chooses on records that a model was trained on, and states the larger loss."""

    def prepare(self):
        super().prepare()
        self.test = self.train

    def parts(self, stream):
        # not shuffled: the audit knows which candidate the record trains
        return np.array_split(self.train, len(self.problem.candidates))


class HalfTheSensitivity(OptimalRisk):
    def prepare(self):
        super().prepare()
        self.bounds = [Bound(bound.sensitivity / 2, 0.0, 0.0, 1.0, bound.unit) for bound in self.bounds]


class SpentTwice(OptimalRisk):
    """Trains with the whole epsilon after it has paid for the choice."""

    def prepare(self):
        super().prepare()
        self.training_epsilon = self.problem.epsilon


class LooksAtTheRecords(Auto):
    """Takes the candidate on the side that has more records, since a data-free one costs nothing."""

    def choose(self, X, y, stream):
        self.members = [int(2 * X[:, 0].sum() >= len(X))]
        self.strategy = FirstCandidate(self.problem.restricted(self.members))
        self.training_epsilon = self.strategy.training_epsilon
        return super().choose(X, y, stream)


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken, answer", [(FullShares, 0), (OverlappingParts, 0), (CountedAsOneRun, 1)]
)
def test_models_that_spend_too_much_are_caught(broken, answer):
    assert audit(broken, answer=answer, **BY_ANSWERS) > EPSILON


@pytest.mark.slow
def test_runs_with_exact_scores_are_caught():
    assert audit(ExactScores, size=N // 4, **CLOSE) > EPSILON


@pytest.mark.slow
def test_a_choice_on_training_records_is_caught():
    """The record is in the part of the second candidate, and among those that choose."""
    data = neighbours(12, label=3, side=3, ones=2)
    assert audit(SameRecords, data, splits=split(6, 6), index=1, answer=0) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken, size", [(HalfTheSensitivity, 4 * N), (SpentTwice, 3 * N), (LooksAtTheRecords, N // 4)]
)
def test_a_choice_by_risk_that_is_not_paid_is_caught(broken, size):
    assert audit(broken, **{**by_risk(), "size": size}) > EPSILON


# --- the models, on paper


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_models_have_the_loss_that_they_state(epsilon):
    e = math.exp(epsilon)
    middle, best = MIDDLE / e, 1 / (1 + e)
    here = np.array([1 - middle * e - best, middle * e, best])
    there = np.array([1 - middle - best * e, middle, best * e])
    np.testing.assert_allclose(np.abs(np.log(here / there)), epsilon)
    assert (here > 0).all() and (there > 0).all()

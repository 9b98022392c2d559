"""Scores that shall be at least a target, on held-out records."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from dpselect import (
    AccuracyFirstSearchCV,
    AccuracyNotReachedError,
    Adjacency,
    DPLogisticRegression,
    DPRidge,
)
from dpselect.linear_model.linear_noise import LinearNoise
from dpselect.metrics import AccuracyScore, BrierScore, RocAucScore, get_score
from dpselect.model_selection.accuracy_first.goals import Goal, goal_of, with_public_alpha
from dpselect.model_selection.splits import disjoint_parts
from dpselect.records.public_shape import PublicShape

RNG = np.random.default_rng(0)
N = 4000
X = RNG.uniform(-1, 1, size=(N, 2)) / 2**0.5
Y = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0.1).astype(int)
TARGETS = np.clip(X[:, 0] + 0.1 * RNG.normal(size=N), -1, 1)
GRID = {"epsilon": np.geomspace(0.03, 30, 40)}
HALVES = [(np.arange(N // 2), np.arange(N // 2, N))]
LOGISTIC, RIDGE = DPLogisticRegression(classes=[0, 1]), DPRidge(alpha=0.001, target_range=(-1, 1))


def search(criterion, target, model=LOGISTIC, **parameters):
    return AccuracyFirstSearchCV(
        model, GRID, criterion=criterion, target=target, cv=HALVES, public_splits=True, **parameters
    )


def records(model):
    return X, Y if model is LOGISTIC else TARGETS


@pytest.mark.parametrize("criterion, target, model", [
    ("accuracy", 0.7, LOGISTIC), ("roc_auc", 0.75, LOGISTIC), ("balanced_accuracy", 0.65, LOGISTIC),
    ("f1", 0.6, LOGISTIC), ("r2", 0.5, RIDGE),
])  # fmt: skip
def test_what_is_released_meets_its_target(criterion, target, model):
    fitted = search(criterion, target, model, failure_probability=1e-6).fit(*records(model))
    test = HALVES[0][1]
    assert fitted.reached_ and fitted.privacy_.epsilon < 30
    # answers are told as scores, up to the noise of the tests and the guess of the unit
    answers = fitted.path_["answer"]
    assert len(answers) and answers[-1] > target and (model is RIDGE or answers[-1] < 1.5)
    assert fitted.scorer_(fitted.best_estimator_, X[test], records(model)[1][test]) >= target


@pytest.mark.parametrize(
    "method", ["predict_verify", "above_threshold", "reduced_above_threshold", "doubling"]
)
def test_what_misses_its_target_is_not_released(method):
    model = (
        LOGISTIC
        if method in ("predict_verify", "doubling")
        else DPLogisticRegression(classes=[0, 1], alpha=0.001, perturbation="output")
    )
    exact = DPLogisticRegression(float("inf"), classes=[0, 1], alpha=1e-6).fit(X[: N // 2], Y[: N // 2])
    best = RocAucScore()(exact, X[N // 2 :], Y[N // 2 :])
    # no model reaches that; the broken twin takes the target for what the score may be at most
    s = search("roc_auc", best + 0.005, model, method=method, failure_probability=1e-6)
    with pytest.raises(AccuracyNotReachedError):
        s.fit(X, Y)

    class Twin(RocAucScore):
        def shortfall(self, *args, **kwargs):
            return -super().shortfall(*args, **kwargs)

    assert s.set_params(criterion=Twin(), target=0.95).fit(X, Y).reached_


def test_a_loss_meets_its_target_where_the_score_does():
    model = DPLogisticRegression(float("inf"), classes=[0, 1], alpha=0.01).fit(X, Y)
    for name in ("accuracy", "roc_auc", "balanced_accuracy", "f1"):
        score = get_score(name)
        for target in (score(model, X, Y) - 1e-9, score(model, X, Y) + 1e-9):
            goal = goal_of(score, target)
            assert goal.target == pytest.approx((1 - target) * score.unit)
            assert (goal.loss(model, X, Y) <= goal.target) == (score(model, X, Y) >= target)
    assert type(goal_of(BrierScore(), 0.1)) is Goal and goal_of(None, 0.1) is None


def test_the_noise_is_that_of_the_held_out_records():
    for criterion, moved in (("accuracy", 1.0), ("roc_auc", 4.0), ("f1", 2 - 0.8)):
        plan = search(criterion, 0.8).plan(N, 2)
        assert plan.sensitivity == pytest.approx(moved / (N // 2))
    plan = search(RocAucScore(class_share=0.01), 0.8).plan(N, 2)
    assert "share of 0.01" in plan.messages[-1] and "0.84" in plan.messages[-1]
    # the rarer the class, the longer the tests must look
    common = search("roc_auc", 0.8).plan(N, 2)
    assert plan.chosen.testing > 10 * common.chosen.testing


def test_alpha_is_found_from_public_numbers():
    shape, epsilons = PublicShape(N, 2), GRID["epsilon"]
    resolved = with_public_alpha(LOGISTIC, shape, epsilons, 0.04)
    assert isinstance(resolved.alpha, float) and LOGISTIC.alpha == "auto"
    alphas = [LOGISTIC.calibration(shape, float(epsilon)).alpha for epsilon in epsilons]
    assert resolved.alpha in alphas
    costs = [LOGISTIC.calibration(shape, float(epsilon)).regularisation_cost() for epsilon in epsilons]
    level = alphas.index(resolved.alpha)
    assert costs[level] <= 0.04 < costs[level - 1]
    # the last one where none is enough
    assert with_public_alpha(LOGISTIC, shape, epsilons, 1e-9).alpha == alphas[-1]
    given = DPLogisticRegression(alpha=0.5)
    assert with_public_alpha(given, shape, epsilons, 0.04) is given


@pytest.mark.parametrize(
    "perturbation, forecast, enough",
    [
        ("objective", LinearNoise.forecast, True),
        ("output", LinearNoise.forecast, True),
        # what the rule for alpha minimises forecasts nothing
        ("output", LinearNoise.regularisation_cost, False),
    ],
)
def test_what_regularising_takes_leaves_the_target_in_reach(perturbation, forecast, enough, monkeypatch):
    monkeypatch.setattr(LinearNoise, "forecast", forecast)
    model = clone(LOGISTIC).set_params(perturbation=perturbation)
    alpha = with_public_alpha(model, PublicShape(N, 2), GRID["epsilon"], 0.04).alpha

    def loss(alpha):
        exact = clone(model).set_params(epsilon=float("inf"), alpha=alpha).fit(X, Y)
        return log_loss(Y, exact.predict_proba(X.copy()))

    assert (loss(alpha) - loss(alpha / 1e4) < 0.04) == enough


def test_the_model_has_the_alpha_of_the_records_that_train():
    fitted = search("accuracy", 0.7).fit(X, Y)
    train, _ = disjoint_parts(HALVES)
    expected = with_public_alpha(LOGISTIC, PublicShape(len(train), 2), GRID["epsilon"], 0.2 * 0.3)
    assert fitted.best_estimator_.alpha == expected.alpha
    assert isinstance(fitted.scorer_, AccuracyScore)


def test_persons_count_once():
    """The sensitivity is that of persons, and their rows are in one of the two parts."""
    ids = np.arange(N) // 4
    fitted = AccuracyFirstSearchCV(
        LOGISTIC, GRID, criterion="roc_auc", target=0.7, failure_probability=1e-6
    ).fit(X, Y, groups=ids)
    assert fitted.plan_.sensitivity == pytest.approx(4 / (N // 4 // 5))
    assert fitted.privacy_.adjacency == Adjacency.REPLACE_PERSON

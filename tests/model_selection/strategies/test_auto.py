import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import Pipeline, make_pipeline

from dpselect import (
    CertificateError,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    PrivacyLoss,
    StabilityGridSearchCV,
)
from dpselect.metrics import IntegratedSquaredErrorScore
from dpselect.model_selection.strategies import STRATEGIES

from .common import GRID, LOGISTIC, RIDGE, SVC, Untouchable, records, search, targets

ALPHAS = [1e-4, 1e-3, 1e-2, 0.1, 1.0]
KERNELS = make_pipeline(RBFSampler(n_components=10), LOGISTIC)
GAMMAS = {"rbfsampler__gamma": [0.1, 1.0, 10.0]}
LOSSES = (Pipeline([("m", LOGISTIC)]), {"m": [SVC, LOGISTIC]})
DENSITY = DPHistogramDensity(bounds=(-1, 1))
COVARIANCE = DPRidge(norm="l2", target_range=(-1, 1))


@pytest.mark.parametrize("model, grid, n, expected", [
    (LOGISTIC, GRID, 50, "data_independent"),
    (LOGISTIC, GRID, 50_000, "data_independent"),
    (SVC, GRID, 50_000, "data_independent"),
    # only alpha varies, although more is named
    (LOGISTIC, {"alpha": ALPHAS, "norm": ["l2"]}, 50_000, "data_independent"),
    (LOGISTIC, {"alpha": [0.1]}, 50_000, "first_candidate"),
    (KERNELS, GAMMAS, 50_000, "optimal_risk"),
    (KERNELS, {**GAMMAS, "dplogisticregression__alpha": ALPHAS}, 50_000, "optimal_risk"),
    (KERNELS, GAMMAS, 1_000, "first_candidate"),
    (RIDGE, GRID, 50_000, "optimal_risk"),
    (COVARIANCE, GRID, 50_000, "one_release"),
    (COVARIANCE, {"target_range": [(-0.5, 0.5), (-1, 1)]}, 50_000, "random_stopping"),
    (clone(COVARIANCE).set_params(delta=1e-6), {"target_range": [(-0.5, 0.5), (-1, 1)]}, 5_000,
     "budget_split"),
    (*LOSSES, 50_000, "random_stopping"),
    (*LOSSES, 100, "first_candidate"),
    (LOSSES[0], {"m": [clone(SVC).set_params(alpha=1.0), clone(LOGISTIC).set_params(alpha=1.0)]},
     50_000, "stability"),
    (DENSITY, {"bin_width": [0.5, 1.0]}, 50_000, "stability"),
    (DENSITY, {"bin_width": [0.5, 1.0]}, 10, "first_candidate"),
])  # fmt: skip
def test_which_strategy_it_takes(model, grid, n, expected):
    s = StabilityGridSearchCV(model, grid)
    assert s.strategy == "auto"
    plan = s.plan(n, 3)
    assert plan.strategy == expected
    assert plan.messages[0].startswith(f'strategy="auto" takes {expected}: ')
    assert plan.messages[0].endswith(".") and len(plan.messages[0]) > 50


@pytest.mark.parametrize("model, grid, n", [
    (LOGISTIC, GRID, 300), (KERNELS, GAMMAS, 8_000), (KERNELS, GAMMAS, 300),
    (COVARIANCE, GRID, 300), (RIDGE, GRID, 8_000), (*LOSSES, 2_000),
    (DENSITY, {"bin_width": [0.5, 1.0]}, 2_000),
])  # fmt: skip
def test_it_does_what_the_strategy_does_for_the_same_loss(model, grid, n):
    X, y = records(n)
    y = targets(X) if isinstance(model, DPRidge) else None if model is DENSITY else y
    s = search("auto", model, grid).fit(X, y)
    plan = s.plan(n, 3)
    assert s.privacy_.epsilon == 1.0 and s.plan_.strategy == plan.strategy
    best = s.best_estimator_
    best = best[-1] if isinstance(best, Pipeline) else best
    assert best.epsilon == plan.training_epsilon
    named = plan.strategy
    if named in STRATEGIES:
        same = search(named, model, grid)
        assert same.plan(n, 3).selection_epsilon == plan.selection_epsilon
        same.fit(X, y)
        assert [r.epsilon for r in same.privacy_.releases] == [r.epsilon for r in s.privacy_.releases]


def test_alpha_is_decided_by_the_public_rule_and_the_rest_by_the_records():
    X, y = records(20_000)
    grid = {**GAMMAS, "dplogisticregression__alpha": ALPHAS}
    s = search("auto", KERNELS, grid).fit(X, y)
    plan, results = s.plan_, s.cv_results_
    considered = results["considered"]
    assert considered.sum() == 3 and considered[s.best_index_]
    assert s.best_params_ == results["params"][s.best_index_]
    assert s.best_estimator_[0].gamma == s.best_params_["rbfsampler__gamma"]
    assert s.best_estimator_[-1].alpha == s.best_params_["dplogisticregression__alpha"]
    costs = [
        DPLogisticRegression(epsilon=0.9, alpha=alpha).regularisation_cost(20_000, 10)
        for alpha in ALPHAS
    ]
    kept = {params["dplogisticregression__alpha"] for params in np.array(plan.params)[considered]}
    assert kept == {ALPHAS[np.argmin(costs)]}
    for column in (plan.noise_scale, plan.sensitivity, plan.span, plan.training):
        assert (np.isnan(column) == ~considered).all()
    said = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert [c["considered"] for c in said["candidates"]] == considered.tolist()
    lines = str(plan).splitlines()
    assert sum(line.split()[-3:] == ["-"] * 3 for line in lines) == 12


@pytest.mark.parametrize("n", [500, 1_000, 2_000])
def test_few_records_are_not_spent_on_a_choice(n):
    X, y = records(n)
    grid = {**GAMMAS, "dplogisticregression__alpha": ALPHAS}
    s = search("auto", KERNELS, grid, epsilon=0.5).fit(X, y)
    plan = s.plan(n, 3)
    assert plan.strategy == s.plan_.strategy == "first_candidate"
    assert [loss.epsilon for loss in s.privacy_.releases] == [0.5] and plan.training_epsilon == 0.5
    # the first features of the grid, with the alpha that suits them
    assert s.best_params_["rbfsampler__gamma"] == 0.1 and plan.considered.sum() == 1
    costs = [
        DPLogisticRegression(epsilon=0.5, alpha=alpha).regularisation_cost(n, 10) for alpha in ALPHAS
    ]
    assert s.best_params_["dplogisticregression__alpha"] == ALPHAS[np.argmin(costs)]
    # 11 coefficients
    assert any("n_samples >=" in text for text in plan.advice) == (plan.expected_quality[0].median < 0.8)


@pytest.mark.slow
def test_no_record_moves_the_decision():
    X, y = records(6_000)
    for model, grid in ((LOGISTIC, GRID), (KERNELS, GAMMAS), LOSSES):
        found = {
            repr(search("auto", model, grid, refit=False).fit(*data).plan_)
            for data in ((X, y), (-X, y), (0 * X, y), (X, 1 - y), (X, np.ones(6_000, dtype=int)))
        }
        assert len(found) == 1


def test_when_nothing_serves_it_says_why():
    score = IntegratedSquaredErrorScore()
    object.__setattr__(score, "task", None)  # it says nothing of the models that it is for
    with pytest.raises(CertificateError, match="No strategy serves.*stability:.*budget_split:"):
        search("auto", *LOSSES, scoring=score).fit(Untouchable(), Untouchable())


def test_a_model_that_states_no_loss_is_refused_before_the_data():
    for strategy in ("auto", "random", "budget_split", "random_stopping"):
        s = search(strategy, SGDRegressor(), GRID, scoring="clipped_squared_error")
        with pytest.raises(CertificateError, match="SGDRegressor.*privacy_"):
            s.fit(Untouchable(), Untouchable())


class Mean(BaseEstimator):
    """A user's private model that has no certificate: a noisy mean of targets in [0, 1]."""

    def __init__(self, epsilon=1.0, shift=0.0, random_state=None):
        self.epsilon = epsilon
        self.shift = shift
        self.random_state = random_state

    def fit(self, X, y):
        noise = np.random.default_rng().laplace(scale=1 / (len(y) * self.epsilon))
        self.mean_ = np.clip(y, 0, 1).mean() + noise
        self.privacy_ = PrivacyLoss(self.epsilon, label="mean")
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_ + self.shift)


def test_a_users_model_needs_no_more_than_a_stated_loss():
    X, y = records(20_000)
    s = search("auto", Mean(), {"shift": [0.5, 0.0]}, scoring="clipped_squared_error")
    assert s.plan(20_000, 3).strategy == "random_stopping"
    s.fit(X, 0.3 + 0 * y)
    assert s.best_params_["shift"] in (0.5, 0.0) and s.privacy_.epsilon == 1.0


def test_splits_that_no_held_out_strategy_takes_leave_the_others():
    X, y = records(2_000)
    cv = [(np.repeat(np.arange(1_000), 2), np.arange(1_000, 2_000))]
    model, grid = LOSSES
    s = search("auto", model, {"m": [clone(SVC).set_params(alpha=1.0), clone(LOGISTIC)]}, cv=cv,
               public_splits=True).fit(X, y)  # fmt: skip
    assert s.plan_.strategy in ("stability", "first_candidate")


@pytest.mark.parametrize("grid, n", [({"bin_width": [0.5]}, 100), ({"bin_width": [0.5, 1.0]}, 10)])
def test_a_model_that_lists_its_columns_has_a_dry_run_with_them(grid, n):
    density = DPHistogramDensity(bounds=[(-1, 1)] * 3)
    s = search("auto", density, grid, epsilon=0.1).fit(records(n)[0])
    assert s.plan_.strategy == "first_candidate" and s.n_features_in_ == 3


def test_a_model_without_a_score_of_its_own_asks_for_one():
    with pytest.raises(CertificateError, match="scoring=None.*Mean.*scoring='accuracy'"):
        search("auto", Mean(), {"shift": [0.0]}).fit(Untouchable(), Untouchable())

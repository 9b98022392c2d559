"""Poisson regression: beside scikit-learn's, its law on neighbours, its certificate, in every search."""

import math

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPPoissonRegressor,
    StabilityGridSearchCV,
)
from dpselect.base.accuracy_form import NoiseLevels
from dpselect.base.estimator import Trial
from dpselect.linear_model.losses import PoissonLoss
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import root_stream
from dpselect.records.public_shape import PublicShape
from tests.trials import shares_moved

from ..statistical.audit import loss_lower_bound
from ..statistical.test_released_law import sample
from ..trials import fitted, scales_of

INF = float("inf")


def counts(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, rng.poisson(np.exp(0.5 + X @ np.linspace(1, -1, d)))


# --- scikit-learn


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
@pytest.mark.parametrize("constant", [None, 0.7])
def test_without_privacy_it_agrees_with_scikit_learn(constant, alpha):
    """Where no bound is reached; an intercept is scikit-learn's coefficient of a constant column."""
    X, y = counts(3000, 4)
    model = DPPoissonRegressor(
        INF,
        alpha=alpha,
        target_bound=40.0,
        fit_intercept=constant is not None,
        intercept_scaling=constant or 1.0,
    ).fit(X, y)
    A = X if constant is None else np.column_stack([X, np.full(len(X), constant)])
    theirs = PoissonRegressor(
        alpha=alpha, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000
    ).fit(A, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_[:4], rtol=0, atol=1e-6)
    if constant is not None:
        assert math.isclose(model.intercept_, constant * theirs.coef_[4], abs_tol=1e-6)
    np.testing.assert_allclose(model.predict(X), theirs.predict(A), rtol=1e-6)
    assert math.isclose(model.score(X, y), theirs.score(A, y), rel_tol=1e-6)


# --- public numbers


@pytest.mark.parametrize("epsilon", [0.5, 20.0])
def test_the_public_alpha_has_the_least_regularisation_cost(epsilon):
    shape = PublicShape(50_000, 60)
    model = DPPoissonRegressor(epsilon, target_bound=4.0, fit_intercept=False, data_norm=3.0)
    alpha = model.calibration(shape).alpha
    assert math.isclose(alpha, 2 * 4.0 * 3.0**2 * 60 / (3 * 50_000 * epsilon))
    costs = [
        model.set_params(alpha=factor * alpha).regularisation_cost(50_000, 60)
        for factor in (0.5, 1.0, 2.0)
    ]
    assert costs[1] == min(costs)


def test_rates_lie_between_0_and_the_bound():
    model = DPPoissonRegressor(INF, alpha=1e-3, target_bound=10.0).fit(*counts(50, 1))
    model.coef_ = 1e6 * model.coef_
    rates = model.predict([[-1.0], [0.0], [1.0]])
    assert 0 < rates.min() < 1e-9 and rates.max() == model.target_bound


# --- the law on neighbours


class HalfTheNoise(DPPoissonRegressor):
    def _standard_noise(self, *args):
        return super()._standard_noise(*args) / 2


class UnclippedLoss(PoissonLoss):
    def _clipped(self, target):
        return target


class UnclippedCounts(DPPoissonRegressor):
    def _loss(self):
        return UnclippedLoss(float(self.target_bound))


def loss_of(kind, perturbation, records):
    """Bound the loss between two data sets of ten records, of which the first alone is not 0."""
    B = 0.1
    alpha = {"objective": 0.5, "output": 0.05}[perturbation]
    model = kind(1.0, alpha=alpha, target_bound=B, perturbation=perturbation, fit_intercept=False)
    released = []
    for seed, (x, t) in enumerate(records):
        X, y = np.zeros((10, 1)), np.zeros(10)
        X[0], y[0] = x, t
        released.append(sample(model, scales_of(model, *X.shape), X, y, 100_000, seed)[:, 0])
    return loss_lower_bound(*released)


ZERO_COUNTS, LARGE_COUNTS = [(1, 0), (-1, 0)], [(1, 10), (-1, 10)]


@pytest.mark.slow
@pytest.mark.parametrize("perturbation", ["objective", "output"])
def test_the_loss_stays_under_the_claim_and_comes_close(perturbation):
    assert 0.85 < loss_of(DPPoissonRegressor, perturbation, ZERO_COUNTS) <= 1
    assert loss_of(DPPoissonRegressor, perturbation, LARGE_COUNTS) <= 1


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("twin, records", [(HalfTheNoise, ZERO_COUNTS), (UnclippedCounts, LARGE_COUNTS)])
def test_broken_twins_are_caught(twin, records, perturbation):
    assert loss_of(twin, perturbation, records) > 1.5


@pytest.mark.parametrize("perturbation", ["objective", "output"])
def test_the_sampler_is_the_estimator(perturbation):
    X, y = counts(10, 2)
    model = DPPoissonRegressor(
        perturbation=perturbation, alpha=0.1, fit_intercept=False, random_state=7, target_bound=10.0
    )
    s = scales_of(model, *X.shape)
    w = sample(model, s, X, y.astype(float), 1, seed=7)
    np.testing.assert_allclose(fitted(model, X, y).coef_, w[0], rtol=1e-9, atol=s.step)


# --- what one record moves, beside models


def agreeing(n, against):
    """Records that all ask for large rates at one end of the ball; one may ask for it at the other."""
    X, y = np.zeros((n, 2)), np.full(n, 5.0)
    X[:, 0] = 1.0
    if against:
        X[0, 0] = -1.0
    return X, y


@pytest.mark.parametrize("reach", [0.7, 2.5])
def test_the_least_risk_moves_as_far_as_is_charged(reach):
    n = 200
    model = DPPoissonRegressor(1e6, alpha=1e-4, target_bound=5.0, fit_intercept=False)
    values = [
        model.optimal_values([Trial(model, 1e6)], *agreeing(n, against), reach)[0]
        for against in (False, True)
    ]
    sensitivity = model.risk_bound(n, 2, reach=reach).sensitivity
    assert 0.7 * sensitivity < values[1] - values[0] <= sensitivity


def test_risks_and_excesses_move_as_far_as_is_charged():
    n, levels = 40, NoiseLevels("path", 0.1, 1.0)
    model = DPPoissonRegressor(alpha=2.0, target_bound=5.0, perturbation="output", fit_intercept=False)
    form = model.accuracy_form()
    bounds = form.bounds(PublicShape(n, 2))
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(50, 2))
    directions[0] = 1.0, 0.0
    models = form.ball * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    pairs = [(agreeing(n, False), agreeing(n, True))]
    for _ in range(20):
        X = rng.normal(size=(n, 2)) * 3
        y = 5.0 * rng.integers(2, size=n)
        new, t = X.copy(), y.copy()
        new[0], t[0] = -X[0], 5 - y[0]
        pairs.append(((X, y), (new, t)))
    moved = shares_moved(form, bounds, models, pairs, levels)
    least = np.array([0.8, 0.3, 0.3])
    assert (moved <= 1).all() and (moved > least).all()


def test_other_scores_have_no_certificate():
    with pytest.raises(CertificateError, match="PoissonDevianceScore"):
        StabilityGridSearchCV(
            DPPoissonRegressor(target_bound=10.0),
            {"alpha": [0.1, 1.0]},
            scoring="clipped_squared_error",
            strategy="stability",
        ).fit(*counts(100, 2))


# --- searches


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"control"}))
def test_every_strategy_chooses_among_its_models(strategy):
    X, y = counts(20_000, 2)
    search = StabilityGridSearchCV(
        DPPoissonRegressor(target_bound=10.0),
        {"alpha": [0.01, 30.0]},
        epsilon=4.0,
        strategy=strategy,
        random_state=root_stream(0),
    )
    search.fit(X[:15_000], y[:15_000])
    assert search.privacy_.epsilon <= 4.0
    if strategy != "random":
        assert search.best_params_ == {"alpha": 0.01}
        assert search.best_estimator_.score(X[15_000:], y[15_000:]) > 0.3


@pytest.mark.parametrize(
    "perturbation, method",
    [
        ("output", "above_threshold"),
        ("output", "predict_verify"),
        ("objective", "certified"),
        ("objective", "doubling"),
    ],
)
def test_accuracy_first_keeps_its_promise(perturbation, method):
    X, y = counts(20_000, 2)
    model = DPPoissonRegressor(alpha=0.3, target_bound=5.0, perturbation=perturbation)
    search = AccuracyFirstSearchCV(
        model,
        {"epsilon": np.geomspace(0.01, 50, 40)},
        target=0.2,
        method=method,
        failure_probability=1e-6,
        max_epsilon=INF,
        random_state=root_stream(0),
    ).fit(X, y)
    exact = DPPoissonRegressor(INF, alpha=0.3, target_bound=5.0).fit(X, y)

    def risk(model):
        w = np.append(model.coef_, model.intercept_)
        z = X @ w[:2] + w[2]
        return PoissonLoss(5.0).value(z, y).mean() + 0.15 * w @ w

    assert 0 <= risk(search.best_estimator_) - risk(exact) <= 0.2

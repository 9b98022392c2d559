"""Robust regression: beside an optimiser, its law on neighbours, its certificate, in every search."""

import dataclasses
import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPHuberRegressor,
    StabilityGridSearchCV,
)
from dpselect.audit import attack_certificate
from dpselect.base.accuracy_form import NoiseLevels
from dpselect.base.estimator import Trial
from dpselect.linear_model.design import design_and_targets
from dpselect.linear_model.losses import PseudoHuberLoss
from dpselect.metrics import ClippedAbsoluteErrorScore, ClippedSquaredErrorScore
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import root_stream
from dpselect.records.public_shape import PublicShape

from ..trials import fitted, shares_moved

INF, FAR = float("inf"), 1e308
RANGE = (20.0, 100.0)  # m = 60, h = 10


def table(n, d, seed=0):
    """Targets of which a fifth are far off, either way."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = 50 + 30 * X @ np.linspace(1, -1, d) + rng.normal(size=n)
    y[: n // 5] += 200 * rng.standard_cauchy(n // 5)
    return X, y


# --- what is minimised


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
@pytest.mark.parametrize("constant", [None, 0.7])
def test_without_privacy_it_agrees_with_a_generic_optimiser(constant, alpha):
    X, y = table(500, 3)
    model = DPHuberRegressor(
        INF,
        target_range=RANGE,
        alpha=alpha,
        fit_intercept=constant is not None,
        intercept_scaling=constant or 1.0,
    ).fit(X, y)
    A = X if constant is None else np.column_stack([X, np.full(len(X), constant)])

    def objective(w):
        r = y - 60 - A @ w
        root = np.sqrt(1 + (r / 10) ** 2)
        return 100 * (root - 1).mean() + alpha / 2 * w @ w, -A.T @ (r / root) / len(A) + alpha * w

    theirs = minimize(
        objective,
        np.zeros(A.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 0, "gtol": 1e-12, "maxiter": 10_000},
    ).x
    np.testing.assert_allclose(model.coef_, theirs[:3], rtol=0, atol=1e-6)
    b = 0.0 if constant is None else constant * theirs[3]
    assert math.isclose(model.intercept_, 60 + b, abs_tol=1e-6)
    np.testing.assert_allclose(model.predict(X), 60 + A @ theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("perturbation", ["objective", "output"])
def test_another_unit_makes_no_difference(perturbation):
    X, y = table(200, 2)
    model = DPHuberRegressor(
        target_range=RANGE, alpha=0.1, perturbation=perturbation, random_state=root_stream(0)
    )
    one = fitted(model, X, y)
    other = fitted(model.set_params(target_range=(-0.4, 0.4)), X, (y - 60) / 100)
    np.testing.assert_allclose(one.coef_, 100 * other.coef_, rtol=1e-6)
    np.testing.assert_allclose(one.predict(X), 60 + 100 * other.predict(X), rtol=1e-6)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_targets_may_be_any_size_and_nothing_is_said_of_it(convert):
    X, y = table(2000, 3)
    y[:600], X[3:6] = np.where(np.arange(600) % 3, FAR, -FAR), 1e9 * X[3:6]
    model = DPHuberRegressor(0.5, target_range=RANGE, random_state=root_stream(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far = fitted(model, convert(X), y)
    # a million units away the derivative is 1, but for 1e-12
    near = fitted(
        model,
        X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1),
        y.clip(60 - 1e7, 60 + 1e7),
    )
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-7)
    np.testing.assert_allclose(far.predict(convert(X)), near.predict(X), rtol=1e-7)


# --- public numbers


@pytest.mark.parametrize(
    "n, factor",
    [
        (3_000_000, 1.0),
        (300_000, 1.0),
        (75_000, 2.0),
        (33_000, 3.0),
        (900, 3.0),
    ],
)
def test_the_public_alpha(n, factor):
    model = DPHuberRegressor(0.5, target_range=RANGE, fit_intercept=False, data_norm=3.0)
    assert math.isclose(
        model.calibration(PublicShape(n, 500)).alpha, factor * 3.0**2 * 500 / (5 * n * 0.5)
    )
    assert math.isclose(model.calibration(PublicShape(n, 500), INF).alpha, 3.0**2 / (100 * n))


@pytest.mark.parametrize("n", [15_000, 400_000])
def test_the_public_alpha_has_the_least_regularisation_cost(n):
    model = DPHuberRegressor(0.5, target_range=RANGE, fit_intercept=False, data_norm=3.0)
    alpha = model.calibration(PublicShape(n, 500)).alpha
    costs = [
        model.set_params(alpha=factor * alpha).regularisation_cost(n, 500) for factor in (0.5, 1.0, 2.0)
    ]
    assert costs[1] == min(costs)


@pytest.mark.parametrize(
    "target_range",
    [
        None,
        5.0,
        "ab",
        (1,),
        (1, 2, 3),
        (1.0, 1.0),
        (2, 1),
        (0, INF),
        (-INF, 0),
        (math.nan, 1),
        (0, 5e-324),
        (-1e200, 1e200),
        (0, True),
        (0, "1"),
        ([0], [1, 2]),
        {0, 1},
    ],
)
def test_a_range_has_to_be_named(target_range):
    with pytest.raises((TypeError, ValueError), match=r"target_range.*write target_range=\(low, high\)"):
        DPHuberRegressor(target_range=target_range).fit(*table(10, 2))


def test_the_default_score_is_in_units_of_the_range():
    assert DPHuberRegressor(target_range=RANGE).default_scoring == ClippedAbsoluteErrorScore(40.0)


# --- the law on neighbours, by its density


class HalfTheNoise(DPHuberRegressor):
    def _calibration(self, shape, epsilon):
        return super()._calibration(shape, 2 * epsilon)


class FlatLoss(PseudoHuberLoss):
    curvature = 1e-6


class CurvatureForgotten(DPHuberRegressor):
    def _loss(self):
        loss = super()._loss()
        return FlatLoss(loss.centre, loss.unit)


class UnclippedRows(DPHuberRegressor):
    def problem(self, epsilon=None):
        return dataclasses.replace(super().problem(epsilon), data_norm=1e6)

    def _calibration(self, shape, epsilon):
        right = DPHuberRegressor(**self.get_params()).calibration(shape, epsilon)
        return dataclasses.replace(right, problem=self.problem())


def noise_behind(model, X, y, points):
    """Return the noise that brings the minimiser to each point, and log det of its derivative."""
    problem, s = model.problem(), model.calibration(PublicShape(*X.shape)).scales
    records = Trial(model, 1.0).records(X, y)
    design, targets = design_and_targets(problem, records)
    A = design.factor * X
    z = A @ points.T
    second, first = problem.loss.second_derivative(z, targets), problem.loss.derivative(z, targets)
    gradient = first.T @ A / len(A) + s.mu * points
    curvature = np.einsum("nk,ni,nj->kij", second, A, A) / len(A) + s.mu * np.eye(A.shape[1])
    return -gradient / s.linear_scale, np.linalg.slogdet(curvature)[1]


def largest_loss(kind, d, alpha, epsilon=1.0):
    """Return the largest log-ratio of densities found, on neighbours of ten records, over epsilon."""
    model = kind(
        epsilon, target_range=(-4.0, 4.0), alpha=alpha, norm="l2", data_norm=2.0, fit_intercept=False
    )
    rng = np.random.default_rng(0)
    axis, far = 2.0 * np.eye(d)[0], 1e300
    values = [(axis, far), (-axis, far), (axis, -far), (5 * axis, far), (0 * axis, 0.0), (axis, 0.5)]
    values += [(axis, 2.0), (axis + 0.2 * np.eye(d)[-1], -far), (axis, -0.5)]
    line = np.linspace(-60, 60, 2001)[:, None] * np.eye(d)[0]
    points = np.vstack([line, line + 0.1, rng.normal(size=(2000, d)) * 10])
    found = []
    for others in (np.zeros((9, d)), rng.normal(size=(9, d))):
        log_density = []
        for x, t in values:
            X, y = np.vstack([[x], others]), np.append(t, np.linspace(-3, 3, 9))
            noise, log_det = noise_behind(model, X, y, points)
            log_density.append(log_det - np.linalg.norm(noise, axis=1))
        found.append(np.ptp(log_density, axis=0).max())
    return max(found) / epsilon


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("alpha, least", [(100.0, 0.99), (1.0, 0.7), (1e-3, 0.5)])
def test_the_loss_stays_under_the_claim_and_comes_close(d, alpha, least):
    assert least < largest_loss(DPHuberRegressor, d, alpha) <= 1


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(
    "twin, alpha",
    [
        (HalfTheNoise, 100.0),
        (CurvatureForgotten, 1e-3),
        (UnclippedRows, 100.0),
    ],
)
def test_broken_twins_are_caught(twin, alpha, d):
    assert largest_loss(twin, d, alpha) > 1.5


def test_what_is_released_is_what_the_density_is_about():
    X, y = table(30, 2)
    y[0] = FAR
    model = DPHuberRegressor(
        target_range=RANGE, alpha=0.1, fit_intercept=False, random_state=root_stream(0)
    )
    drawn = model.standard_noise(2)
    s = model.calibration(PublicShape(*X.shape)).scales
    w = (fitted(model, X, y).coef_ / 10 - s.output_scale * drawn[1, 0])[None]
    noise, _ = noise_behind(model, X, y, w)
    np.testing.assert_allclose(noise[0], drawn[0, 0], rtol=1e-6)


@pytest.mark.parametrize(
    "kind, low, high",
    [
        (DPHuberRegressor, 0.98, 1),
        (HalfTheNoise, 1.9, 2),
        (UnclippedRows, 4, 6),
    ],
)
def test_one_record_moves_the_minimiser_by_as_much_as_output_noise_hides(kind, low, high):
    model = kind(
        target_range=RANGE,
        alpha=10.0,
        fit_intercept=False,
        perturbation="output",
        random_state=root_stream(0),
    )
    X, y = np.zeros((10, 1)), np.full(10, 60.0)
    X[0], y[0] = 5.0, FAR
    s = DPHuberRegressor(**model.get_params()).calibration(PublicShape(10, 1)).scales
    one, other = fitted(model, X, y).coef_, fitted(model, X, -y).coef_
    if kind is HalfTheNoise:
        s = model.calibration(PublicShape(10, 1)).scales
    assert low < abs(one - other).max() / 10 / (model.epsilon * s.output_scale) <= high


# --- the certificate


def draw_records(rng, size):
    X = rng.choice([-1.0, 1.0], size=(size, 1)) * rng.choice([0.1, 1.0, 10.0], size=(size, 1))
    return X, rng.choice([-FAR, -11.0, 0.0, 11.0, FAR], size=size, p=[0.2, 0.25, 0.1, 0.25, 0.2])


class HalfACertificate(DPHuberRegressor):
    """Makes noise for the sensitivity when a record is added or removed."""

    def stability_certificate(self, *args, **kwargs):
        right = super().stability_certificate(*args, **kwargs)
        return dataclasses.replace(right, training=right.training / 2, span=right.span / 2)


class InOtherUnits(DPHuberRegressor):
    """Makes noise for the sensitivity in units of h."""

    def stability_certificate(self, *args, **kwargs):
        right = super().stability_certificate(*args, **kwargs)
        return dataclasses.replace(right, training=right.training / 3)


ABSOLUTE = ClippedAbsoluteErrorScore(12.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, score, low, high",
    [
        (DPHuberRegressor, ABSOLUTE, 0.9, 1),
        (HalfACertificate, ABSOLUTE, 1.8, 2),
        (InOtherUnits, ABSOLUTE, 2.7, 3),
        (DPHuberRegressor, ClippedSquaredErrorScore(144.0), 0.8, 1),
    ],
)
def test_certificates_hold_and_come_close(kind, score, low, high):
    model = kind(target_range=(-12, 12), alpha=5.0, fit_intercept=False, random_state=root_stream(0))
    training, validation = attack_certificate(
        model, score, draw_records, 10, n_trials=3, n_steps=20, random_state=0
    )
    assert low < training.ratio <= high * (1 + 1e-6)
    assert 0.99 < validation.ratio <= (2 if kind is HalfACertificate else 1) * (1 + 1e-6)


# --- what one record moves, beside models


def agreeing(n, against):
    """Records that all ask for large predictions; one may ask for the opposite."""
    X, y = np.zeros((n, 2)), np.full(n, FAR)
    X[:, 0] = 1.0
    if against:
        y[0] = -FAR
    return X, y


class LossItself(PseudoHuberLoss):
    def value(self, prediction, target):
        return np.hypot(1, prediction - self._scaled(target))


class NotLessThatOfTheCentre(DPHuberRegressor):
    def _loss(self):
        loss = super()._loss()
        return LossItself(loss.centre, loss.unit)


def moved(kind, reach, n=200, against=agreeing):
    model = kind(1e6, target_range=RANGE, alpha=1e-4, fit_intercept=False)
    values = [
        model.optimal_values([Trial(model, 1e6)], *against(n, one), reach)[0] for one in (False, True)
    ]
    return (values[1] - values[0]) / model.risk_bound(n, 2, reach=reach).sensitivity


@pytest.mark.parametrize("reach", [0.7, 2.5, 10.0])
def test_the_least_risk_moves_as_far_as_is_charged(reach):
    assert 0.98 < moved(DPHuberRegressor, reach) <= 1


def test_the_least_loss_itself_has_no_bound():
    def one_far(n, there):
        X, y = agreeing(n, False)
        return X, np.where(np.arange(n) == 0, 1e9 if there else 60.0, 60.0)

    assert abs(moved(DPHuberRegressor, 2.5, against=one_far)) <= 1
    assert moved(NotLessThatOfTheCentre, 2.5, against=one_far) > 1e3


def test_optimal_values_are_the_least_risks_on_the_ball():
    X, y = table(300, 2)
    model = DPHuberRegressor(1e6, target_range=RANGE, alpha=1e-3, fit_intercept=False)
    loss, mu = model._loss(), model.calibration(PublicShape(300, 2)).scales.mu
    angles = np.linspace(0, 2 * np.pi, 121)
    for reach in (0.5, 1.5, 10.0):
        found = model.optimal_values([Trial(model, 1e6)], X, y, reach)[0]
        w = [r * np.array([np.cos(a), np.sin(a)]) for r in np.linspace(0, reach, 61) for a in angles]
        w = np.array(w)
        risks = loss.value(X @ w.T, y[:, None]).mean(axis=0) + mu / 2 * (w * w).sum(axis=1)
        assert found == pytest.approx(risks.min(), abs=0.01) and risks.min() < 0


def test_risks_and_excesses_move_as_far_as_is_charged():
    n, levels = 40, NoiseLevels("path", 0.1, 1.0)
    model = DPHuberRegressor(target_range=RANGE, alpha=2.0, perturbation="output", fit_intercept=False)
    form = model.accuracy_form()
    bounds = form.bounds(PublicShape(n, 2))
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(50, 2))
    directions[0] = 1.0, 0.0
    models = form.ball * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    pairs = [(agreeing(n, False), agreeing(n, True))]
    for _ in range(20):
        X, y = rng.normal(size=(n, 2)) * 3, rng.choice([-FAR, 60.0, FAR], size=n)
        new, t = X.copy(), y.copy()
        new[0], t[0] = -X[0], 60 - y[0]
        pairs.append(((X, y), (new, t)))
    moved = shares_moved(form, bounds, models, pairs, levels)
    least = np.array([0.99, 0.9, 0.3])
    assert (moved <= 1).all() and (moved > least).all()


def test_other_scores_have_no_certificate():
    with pytest.raises(CertificateError, match="ClippedAbsoluteErrorScore"):
        StabilityGridSearchCV(
            DPHuberRegressor(target_range=RANGE),
            {"alpha": [0.1, 1.0]},
            scoring="r2",
            strategy="stability",
        ).fit(*table(100, 2))


# --- searches


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"control"}))
def test_every_strategy_chooses_among_its_models(strategy):
    X, y = table(20_000, 2)
    search = StabilityGridSearchCV(
        DPHuberRegressor(target_range=RANGE),
        {"alpha": [0.01, 30.0]},
        epsilon=4.0,
        strategy=strategy,
        random_state=root_stream(0),
    )
    search.fit(X[:15_000], y[:15_000])
    assert search.privacy_.epsilon <= 4.0
    if strategy != "random":
        assert search.best_params_ == {"alpha": 0.01}
        assert search.best_estimator_.score(X[15_000:], y[15_000:]) > 0.9


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
    X, y = table(20_000, 2)
    model = DPHuberRegressor(target_range=RANGE, alpha=0.3, perturbation=perturbation)
    search = AccuracyFirstSearchCV(
        model,
        {"epsilon": np.geomspace(0.01, 50, 40)},
        target=0.05,
        method=method,
        failure_probability=1e-6,
        max_epsilon=INF,
        random_state=root_stream(0),
    ).fit(X, y)
    exact = DPHuberRegressor(INF, target_range=RANGE, alpha=0.3).fit(X, y)

    def risk(model):
        w = np.append(model.coef_, model.intercept_ - 60) / 10
        r = (y - 60) / 10 - X @ w[:2] - w[2]
        return (np.sqrt(1 + r**2) - np.sqrt(1 + ((y - 60) / 10) ** 2)).mean() + 0.15 * w @ w

    assert 0 <= risk(search.best_estimator_) - risk(exact) <= 0.05
    search.set_params(criterion="risk", target=risk(exact) + 0.1, method="auto").fit(X, y)
    assert risk(search.best_estimator_) <= risk(exact) + 0.1 < 0

"""Intervals of coefficients: what is released, that they hold, and what is refused."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    BudgetExceededError,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLedger,
    coef_interval,
)
from dpselect.linear_model import coefficients
from dpselect.linear_model.coefficients import (
    IntervalPlan,
    entry_scale,
    fit_of,
    released_matrices,
    upper,
)
from dpselect.preprocessing import BoundedScaler
from tests.model_selection.strategies.common import Untouchable

INF = float("inf")
RNG = np.random.default_rng(0)
N = 2000
X = np.tanh(RNG.normal(size=(N, 2))) / 1.5
TRUE = np.array([1.5, -0.5])
LABELS = (X @ TRUE + RNG.logistic(size=N) > 0.5).astype(int)
TARGETS = X @ TRUE / 3 + 0.2 * RNG.normal(size=N)
COUNTS = np.minimum(RNG.poisson(np.exp(X @ TRUE / 2)), 5)
MODELS = {
    "logistic": (DPLogisticRegression(classes=[0, 1], alpha=0.01), LABELS),
    "svc": (DPLinearSVC(classes=[0, 1], alpha=0.01), LABELS),
    "poisson": (DPPoissonRegressor(target_bound=5.0, alpha=0.01), COUNTS),
    "huber": (DPHuberRegressor(target_range=(-2, 2), alpha=0.01), TARGETS),
    "sums": (DPRidge(target_range=(-2, 2), alpha=0.01), TARGETS),
    "sums l1": (DPRidge(target_range=(-2, 2), alpha=0.01, norm="l1", data_norm_l1=1.5), TARGETS),
    "sums gauss": (DPRidge(target_range=(-2, 2), alpha=0.01, norm="l2", delta=1e-6), TARGETS),
    "objective": (DPRidge(target_range=(-2, 2), alpha=0.1, perturbation="objective"), TARGETS),
    "output": (DPRidge(target_range=(-2, 2), alpha=0.1, perturbation="output"), TARGETS),
    "logistic output": (
        DPLogisticRegression(classes=[0, 1], alpha=0.1, perturbation="output"), LABELS
    ),
    "no intercept": (DPLogisticRegression(classes=[0, 1], fit_intercept=False, alpha=0.01), LABELS),
    "weights of classes": (
        DPLogisticRegression(classes=[0, 1], class_weight={0: 0.25, 1: 0.5}, alpha=0.01), LABELS
    ),
    "learned norm": (DPLogisticRegression(classes=[0, 1], data_norm="auto", alpha=0.01), LABELS),
}


def fitted(name, epsilon=INF):
    model, y = MODELS[name]
    return model.set_params(epsilon=epsilon).fit(X, y), y


@pytest.mark.parametrize("name", [
    "logistic", "huber", "poisson", "sums", "no intercept", "weights of classes"
])
def test_without_noise_they_are_those_of_the_sandwich(name):
    model, y = fitted(name)
    found = coef_interval(model, X, y, epsilon=INF, n_samples=N)
    curvature = found.curvature_ + model.alpha * np.eye(len(found.coef))
    variance = np.linalg.inv(curvature) @ found.gradients_ @ np.linalg.inv(curvature) / N
    scale = fit_of(model, N).scale
    reach = np.diff(found.confidence_interval(), axis=0)[0] / 2
    assert reach == pytest.approx(1.96 * scale * np.sqrt(np.diag(variance)), rel=0.1)
    told = np.append(np.ravel(model.coef_), model.intercept_)[: len(found.coef)]
    assert found.coef == pytest.approx(told, rel=1e-6, abs=1e-9)
    assert (found.noise_share == 0).all() and not found.empty
    if name in ("logistic", "weights of classes"):
        p, weight = model.predict_proba(X)[:, 1], np.where(y, 0.5, 0.25) if model.class_weight else 1.0
        A = np.column_stack([X, np.ones(N)])
        assert found.curvature_ == pytest.approx((A * (weight * p * (1 - p))[:, None]).T @ A / N)
        assert found.gradients_ == pytest.approx((A * ((weight * (p - y)) ** 2)[:, None]).T @ A / N)


@pytest.mark.parametrize("name", MODELS)
def test_they_are_there_for_every_noise(name):
    model, y = fitted(name, 5.0)
    found = coef_interval(model, X, y, epsilon=5.0, n_samples=N)
    low, high = found.confidence_interval(0.9)
    wider = found.confidence_interval(0.99)
    assert not found.empty and (wider.low < low).all() and (high < wider.high).all()
    assert (0 < found.noise_share).all() and (found.noise_share < 1).all()
    assert found.privacy_.epsilon == 5.0 and len(found.names) == len(low)
    assert "noise" in repr(found) and list(found.to_frame().columns)[:3] == ["coef", "low", "high"]


# --- what is released


def vector(fit, X, y):
    """The numbers to which noise is added: length 1 for each matrix of each record, at most."""
    plan = IntervalPlan(fit, INF)
    matrices = released_matrices(plan, fit.sums(X, y), len(y))
    rows, columns, share = upper(len(fit.w))
    weighted = np.outer(fit.weights, fit.weights)
    return np.concatenate([
        share * (weighted * matrix)[rows, columns] / bound
        for matrix, bound in zip(matrices, fit.bounds)
    ])


@pytest.mark.parametrize(
    "name",
    ["logistic", "svc", "poisson", "huber", "sums", "sums l1", "no intercept", "weights of classes"],
)
def test_one_record_moves_the_matrices_as_said(name):
    model, y = fitted(name)
    fit, worst = fit_of(model, N), 0.0
    ends = (0, 1) if hasattr(model, "classes_") else (0.0 if name == "poisson" else -1e9, 1e9)
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [-9.0, 9.0], [1e6, 1e6], [0.0, 0.0], [1e-3, -1e-3]])
    others = [(X[:3], y[:3])]
    kinds = list(itertools.product(rows, ends))
    for (a, s), (b, t) in itertools.combinations(kinds, 2):
        for rest, targets in others:
            one, two = (
                vector(fit, np.vstack([rest, row]), np.append(targets, label))
                for row, label in ((a, s), (b, t))
            )
            worst = max(worst, np.linalg.norm(one - two) / (coefficients.SENSITIVITY / 4))
    assert worst <= 1 + 1e-9
    # of orthogonal rows with the largest derivatives; a sensitivity of a third is caught
    assert worst > 0.35


def test_the_sensitivity_is_attained():
    """At a ridge model of 0 every second derivative is 1; targets are as far off as they can be."""
    model = DPRidge(INF, target_range=(-1, 1), fit_intercept=False).fit(np.zeros((4, 2)), np.zeros(4))
    fit = fit_of(model, 4)
    one, two = (vector(fit, np.array([row] * 2), np.ones(2)) for row in ([1.0, 0.0], [0.0, 1.0]))
    # both records are replaced
    assert np.linalg.norm(one - two) == pytest.approx(2 * coefficients.SENSITIVITY / 2)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_noise_has_the_length_that_hides_it(share, monkeypatch):
    model, y = fitted("logistic")
    fit, m, epsilon = fit_of(model, N), len(y), 2.0
    if share < 1:  # the broken twin has half the noise
        monkeypatch.setattr(coefficients, "SENSITIVITY", share * coefficients.SENSITIVITY)
    sums, exact = fit.sums(X, y), vector(fit, X, y)
    rows, columns, counted = upper(3)
    weighted = np.outer(fit.weights, fit.weights)
    lengths = []
    for _ in range(300):
        matrices = released_matrices(IntervalPlan(fit, epsilon), sums, m)
        noisy = np.concatenate([
            counted * (weighted * matrix)[rows, columns] / bound
            for matrix, bound in zip(matrices, fit.bounds)
        ])
        lengths.append(np.linalg.norm(noisy - exact))
    # a Gamma variable of the dimension, 12, times 2 / (m epsilon)
    mean, deviation = 12 * 2 / (m * epsilon), math.sqrt(12) * 2 / (m * epsilon)
    away = abs(np.mean(lengths) - mean) / (deviation / math.sqrt(len(lengths)))
    assert (away < 5) == (share == 1)
    step, scale = entry_scale(epsilon, m)
    assert step <= scale / 2**24


# --- they hold


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "sums", "huber", "poisson"])
def test_they_hold_the_coefficients_of_the_population(name):
    model, n, runs = MODELS[name][0], 4000, 150
    rng = np.random.default_rng(3)

    def drawn(size):
        rows = np.tanh(rng.normal(size=(size, 2))) / 1.5
        z = rows @ TRUE
        if name == "logistic":
            return rows, (z + rng.logistic(size=size) > 0.5).astype(int)
        if name == "poisson":
            return rows, np.minimum(rng.poisson(np.exp(z / 2)), 5)
        return rows, z / 3 + 0.2 * rng.normal(size=size)

    exact = model.set_params(epsilon=INF).fit(*drawn(400_000))
    true = np.append(np.ravel(exact.coef_), exact.intercept_)
    inside = np.zeros(3)
    for _ in range(runs):
        fit = model.set_params(epsilon=2.0).fit(*drawn(n))
        found = coef_interval(fit, *drawn(n), epsilon=2.0, n_samples=n)
        assert not found.empty
        low, high = found.confidence_interval()
        inside += (low <= true) & (true <= high)
    assert (inside >= binom.ppf(1e-7, runs, 0.93)).all()
    # half the noise would not do, and twice as wide ones would always hold
    assert inside.sum() < 3 * runs


def test_few_records_say_nothing():
    model, y = fitted("logistic", 1.0)
    found = coef_interval(model, X[:100], y[:100], epsilon=0.1, n_samples=N)
    assert found.empty and "nothing to be said" in repr(found)
    assert np.isnan(found.confidence_interval()).all()


# --- what is paid, and refused


def test_a_ledger_pays(tmp_path):
    model, y = fitted("logistic", 1.0)
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.5)
    coef_interval(model, X, y, epsilon=1.0, n_samples=N, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        coef_interval(model, Untouchable(), Untouchable(), epsilon=1.0, n_samples=N, ledger=ledger)


@pytest.mark.parametrize("make, match", [
    (lambda: LogisticRegression().fit(X, LABELS), "model must be"),
    (lambda: DPLogisticRegression, "model must be"),
    (lambda: DPHistogramDensity(bounds=(-1, 1)).fit(X), "model must be"),
    (lambda: make_pipeline(BoundedScaler((-1, 1)), LogisticRegression()).fit(X, LABELS), "last step"),
    (lambda: DPLogisticRegression(classes=[0, 1, 2]).fit(X, LABELS), "two classes"),
    (lambda: DPLogisticRegression(classes=[0, 1]).fit(X, LABELS, groups=np.arange(N) // 2), "persons"),
    (lambda: DPLogisticRegression(classes=[0, 1], max_sample_weight=2.0).fit(X, LABELS), "weights"),
    (lambda: DPRidge(target_range=(-1, 1)).fit(X[:9], TARGETS[:9]), "n_samples=2000.*9; write that"),
    (lambda: AccuracyFirstSearchCV(
        DPLogisticRegression(classes=[0, 1], alpha=0.1), {"epsilon": [10.0, 20.0]}, target=0.9,
        criterion="risk", method="predict_verify",
    ).fit(X, LABELS).best_estimator_, "search that looked at its noise"),
])  # fmt: skip
def test_models_whose_noise_has_no_known_law_are_refused(make, match):
    with pytest.raises((TypeError, ValueError), match=match):
        coef_interval(make(), Untouchable(), Untouchable(), epsilon=1.0, n_samples=N)


@pytest.mark.parametrize("changed, match", [
    ({"epsilon": 0.0}, "epsilon"), ({"n_samples": 0}, "n_samples"), ({"n_samples": 1.5}, "n_samples"),
    ({"random_state": "a"}, "random_state"), ({"ledger": 3}, "ledger"),
])
def test_parameters_are_refused_before_the_data(changed, match):
    model, _ = fitted("logistic")
    with pytest.raises((TypeError, ValueError), match=match):
        coef_interval(model, Untouchable(), Untouchable(), **{"epsilon": 1.0, "n_samples": N, **changed})
    with pytest.raises(ValueError, match="confidence_level"):
        coef_interval(model, X, LABELS, epsilon=INF, n_samples=N).confidence_interval(1.0)


def test_no_message_tells_of_records():
    model, y = fitted("logistic")
    for rows, labels, said in (
        (np.where(X > 0.6, np.nan, X), y, "Input X contains NaN"),
        (X, np.where(y == 1, 77, y), "may quote them"),
    ):
        with pytest.raises(ValueError, match=said) as caught:
            coef_interval(model, rows, labels, epsilon=1.0, n_samples=N)
        assert "77" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("name", ["logistic", "sums"])
def test_columns_are_those_of_the_fit(name):
    """One column would be spread over all, and rows be longer than the noise is for."""
    model, y = fitted(name)
    with pytest.raises(ValueError, match="X has 1 features"):
        coef_interval(model, X[:, :1], y, epsilon=1.0, n_samples=N)
    table = pytest.importorskip("pandas").DataFrame(X, columns=["age", "dose"])
    model = clone(model).fit(table, y)
    with pytest.raises(ValueError, match="feature names should match"):
        coef_interval(model, table[["dose", "age"]], y, epsilon=1.0, n_samples=N)
    assert coef_interval(model, table, y, epsilon=INF, n_samples=N).names[:2] == ("age", "dose")

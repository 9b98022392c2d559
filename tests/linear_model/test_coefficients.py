"""Intervals of coefficients: what is released, that they hold, and what is refused."""

import itertools
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from dpselect import (
    AccuracyFirstSearchCV,
    BudgetExceededError,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLeakWarning,
    PrivacyLedger,
    RowChunks,
    StabilityGridSearchCV,
    coef_interval,
    coef_interval_forecast,
)
from dpselect.audit import epsilon_lower_bound
from dpselect.linear_model import coefficient_intervals, coefficients
from dpselect.linear_model.coefficient_fits import at_least_zero, fits_of
from dpselect.linear_model.coefficient_intervals import intervals_of, upper
from dpselect.linear_model.coefficients import IntervalPlan, released_matrices
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, tabular_pipeline
from dpselect.records.public_shape import PublicShape
from dpselect.records.records import Weighted
from tests.model_selection.strategies.common import Untouchable

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))
import coef_intervals  # noqa: E402
import interval_records  # noqa: E402

INF = float("inf")
RNG = np.random.default_rng(0)
N = 2000
X = np.tanh(RNG.normal(size=(N, 2))) / 1.5
TRUE = np.array([1.5, -0.5])
LABELS = (X @ TRUE + RNG.logistic(size=N) > 0.5).astype(int)
TARGETS = X @ TRUE / 3 + 0.2 * RNG.normal(size=N)
COUNTS = np.minimum(RNG.poisson(np.exp(X @ TRUE / 2)), 5)
CLASSES = LABELS + (X[:, 1] > 0.4)
PERSONS = np.arange(N) // 2
WEIGHTS = RNG.uniform(0, 3, size=N)
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
    "logistic output": (DPLogisticRegression(classes=[0, 1], alpha=0.1, perturbation="output"), LABELS),
    "no intercept": (DPLogisticRegression(classes=[0, 1], fit_intercept=False, alpha=0.01), LABELS),
    "weights of classes": (
        DPLogisticRegression(classes=[0, 1], class_weight={0: 0.25, 1: 0.5}, alpha=0.01),
        LABELS,
    ),
    # (together they cost less than their sum)
    "learned norm, gauss": (
        DPRidge(target_range=(-2, 2), norm="l2", delta=1e-3, epsilon=3.0, data_norm="auto"),
        TARGETS,
    ),
    "learned norm": (DPLogisticRegression(classes=[0, 1], data_norm="auto", alpha=0.01), LABELS),
    # whose parts cost less together than their sum
    "learned, and gauss": (
        DPRidge(target_range=(-2, 2), alpha=0.01, data_norm="auto", delta=1e-6),
        TARGETS,
    ),
}


def fitted(name, epsilon=INF):
    model, y = MODELS[name]
    return model.set_params(epsilon=epsilon).fit(X, y), y


@pytest.mark.parametrize("many", [0, 100])
@pytest.mark.parametrize(
    "name", ["logistic", "huber", "poisson", "sums", "no intercept", "weights of classes"]
)
def test_without_noise_they_are_those_of_the_sandwich(name, many, monkeypatch):
    monkeypatch.setattr(coefficient_intervals, "MANY", many)
    model, y = fitted(name)
    found = coef_interval(model, X, y, epsilon=INF, n_samples=N)
    curvature = found.curvature_ + model.alpha * np.eye(len(found.coef))
    variance = np.linalg.inv(curvature) @ found.gradients_ @ np.linalg.inv(curvature) / N
    scale = fits_of(model, N)[0].scale
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


@pytest.mark.parametrize("name", ["logistic", "sums", "objective", "output"])
def test_errors_that_share_matrices_have_the_law_of_those_that_do_not(name, monkeypatch):
    model, y = fitted(name, 5.0)
    drawn, reaches = coefficient_intervals._noise, []
    for many, noise in [(100, 1.0), (0, 1.0), (0, 30.0)]:
        monkeypatch.setattr(coefficient_intervals, "MANY", many)
        monkeypatch.setattr(coefficient_intervals, "_noise", lambda *args: noise * drawn(*args))
        release = {"epsilon": 0.7, "random_state": root_stream(0)}
        found = coef_interval(model, X, y, n_samples=N, **release)
        assert len(np.unique(found.errors, axis=0)) == 1000 and not found.empty
        reaches.append(np.abs(found.errors).mean(axis=0))
    alone, shared, twin = reaches
    # means of 200 independent groups of errors at least, with a relative deviation below .08
    assert shared == pytest.approx(alone, rel=0.5)
    assert twin != pytest.approx(alone, rel=0.5)  # with too much noise in the matrices


def test_matrices_with_a_negative_eigenvalue_are_projected():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 6, 6))
    positive, others = A @ A.swapaxes(1, 2) + 0.1 * np.eye(6), A + A.swapaxes(1, 2)
    for matrices in (positive, others, np.concatenate([positive, others])):
        values, vectors = np.linalg.eigh(matrices)
        expected = (vectors * np.maximum(values, 0.0)[:, None]) @ vectors.swapaxes(1, 2)
        found = at_least_zero(matrices)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(others - at_least_zero(others)).max() > 0.1  # no projection


# --- what is released


def vector(fits, X, y, m=None, matrices=None):
    """The numbers to which noise is added: length 1 for each matrix of each record, at most."""
    m = len(y) if m is None else m
    if matrices is None:
        matrices = released_matrices(IntervalPlan(fits, INF), [fit.sums(X, y) for fit in fits], m)
    rows, columns, share = upper(len(fits[0].w))
    return np.concatenate(
        [
            share * (np.outer(fit.weights, fit.weights) * matrix)[rows, columns] / bound
            for fit, pair in zip(fits, matrices)
            for matrix, bound in zip(pair, fit.bounds)
        ]
    )


@pytest.mark.parametrize(
    "name",
    ["logistic", "svc", "poisson", "huber", "sums", "sums l1", "no intercept", "weights of classes"],
)
def test_one_record_moves_the_matrices_as_said(name):
    model, y = fitted(name)
    fits, worst = fits_of(model, N), 0.0
    ends = (0, 1) if hasattr(model, "classes_") else (0.0 if name == "poisson" else -1e9, 1e9)
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [-9.0, 9.0], [1e6, 1e6], [0.0, 0.0], [1e-3, -1e-3]])
    others = [(X[:3], y[:3])]
    kinds = list(itertools.product(rows, ends))
    for (a, s), (b, t) in itertools.combinations(kinds, 2):
        for rest, targets in others:
            one, two = (
                vector(fits, np.vstack([rest, row]), np.append(targets, label))
                for row, label in ((a, s), (b, t))
            )
            worst = max(worst, np.linalg.norm(one - two) / (coefficients.SENSITIVITY / 4))
    assert worst <= 1 + 1e-9
    # of orthogonal rows with the largest derivatives; a sensitivity of a third is caught
    assert worst > 0.35


def test_the_sensitivity_is_attained():
    """At a ridge model of 0 every second derivative is 1; targets are as far off as they can be."""
    model = DPRidge(INF, target_range=(-1, 1), fit_intercept=False).fit(np.zeros((4, 2)), np.zeros(4))
    fits = fits_of(model, 4)
    one, two = (vector(fits, np.array([row] * 2), np.ones(2)) for row in ([1.0, 0.0], [0.0, 1.0]))
    # both records are replaced
    assert np.linalg.norm(one - two) == pytest.approx(2 * coefficients.SENSITIVITY / 2)


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.2])
def test_an_audit_does_not_tell_records_apart(share, monkeypatch):
    """By the numbers that are told, and by how many bits they have."""
    model = DPRidge(INF, target_range=(-1, 1), fit_intercept=False).fit(np.zeros((4, 2)), np.zeros(4))
    monkeypatch.setattr(coefficients, "SENSITIVITY", share * coefficients.SENSITIVITY)
    plan = IntervalPlan(fits_of(model, 4), 3.0, random_state=np.random.default_rng(1))

    def told(row):
        sums = [fit.sums(np.array([row]), np.ones(1)) for fit in plan.fits]
        return lambda: np.ravel(released_matrices(plan, sums, 1))

    found = epsilon_lower_bound(
        lambda release: release(),
        told([1.0, 0.0]),
        told([0.0, 1.0]),
        n_trials=1500,
        random_state=0,
    )
    # a fifth of the noise is caught
    assert (found.epsilon < 3.0) == (share == 1)


def test_what_is_told_is_on_a_grid(monkeypatch):
    model, y = fitted("logistic")
    plan, sums, m = IntervalPlan(fits_of(model, N), 2.0), [fits_of(model, N)[0].sums(X, y)], len(y)
    step, _ = plan.scale(m)

    def off_the_grid():
        places = vector(plan.fits, X, y, matrices=released_matrices(plan, sums, m)) / step
        return np.abs(places - np.round(places)).max()

    # to how far the units of the matrices round
    assert off_the_grid() < 1e-3
    monkeypatch.setattr(coefficients, "release", lambda values, noise, step: values + noise)
    assert off_the_grid() > 0.1


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_noise_has_the_length_that_hides_it(share, K, monkeypatch):
    y = LABELS if K == 1 else CLASSES
    model = DPLogisticRegression(INF, classes=np.unique(y).tolist(), alpha=0.01).fit(X, y)
    fits, m, epsilon = fits_of(model, N), len(y), 2.0
    if share < 1:  # the broken twin has half the noise
        monkeypatch.setattr(coefficients, "SENSITIVITY", share * coefficients.SENSITIVITY)
    sums, exact = [fit.sums(X, y) for fit in fits], vector(fits, X, y)
    plan, lengths = IntervalPlan(fits, epsilon), []
    for _ in range(300):
        noisy = vector(fits, X, y, matrices=released_matrices(plan, sums, m))
        lengths.append(np.linalg.norm(noisy - exact))
    # a Gamma variable of the dimension, times 2 sqrt(K) / (m epsilon)
    moved, dimension = 2 * math.sqrt(K) / (m * epsilon), 12 * K
    mean, deviation = dimension * moved, math.sqrt(dimension) * moved
    away = abs(np.mean(lengths) - mean) / (deviation / math.sqrt(len(lengths)))
    assert (away < 5) == (share == 1)
    step, scale = plan.scale(m)
    assert step <= scale / 2**24


# --- weights, persons and several classes


def test_of_several_classes_they_are_those_of_each_against_the_rest():
    def of(classes, y):
        model = DPLogisticRegression(INF, classes=classes, alpha=0.01).fit(X, y)
        return coef_interval(model, X, y, epsilon=INF, n_samples=N)

    found = of([0, 1, 2], CLASSES)
    for k in range(3):
        one, part = of([0, 1], (CLASSES == k).astype(int)), slice(3 * k, 3 * k + 3)
        assert found.coef[part] == pytest.approx(one.coef, rel=1e-6, abs=1e-8)
        assert found.errors[:, part] == pytest.approx(one.errors, rel=1e-5, abs=1e-7)
        assert found.gradients_[k] == pytest.approx(one.gradients_, rel=1e-6, abs=1e-9)
        assert found.names[part] == tuple((k, name) for name in (0, 1, "intercept"))
    assert found.to_frame().index.names == ["class", "column"]
    assert "2: intercept" in repr(found) and "6 matrices of 3 x 3" in repr(found)


def test_a_class_of_which_too_little_is_known_says_nothing():
    y = np.where(X[:, 0] > X[:, 0].max() - 1e-9, 2, LABELS)  # one record
    seed = root_stream(0)
    model = DPLogisticRegression(30.0, classes=[0, 1, 2], alpha=1e-6, random_state=seed).fit(X, y)
    found = coef_interval(model, X, y, epsilon=30.0, n_samples=N, random_state=seed)
    told = np.isfinite(found.confidence_interval().low).reshape(3, 3)
    assert told[:2].all() and not told[2].any() and not found.empty
    assert repr(found).count("not known") == 3


@pytest.mark.parametrize("name", ["logistic", "sums"])
def test_a_person_counts_as_the_mean_of_their_rows(name):
    model, y = fitted(name)
    of_records = coef_interval(model, X, y, epsilon=INF, n_samples=N)
    model = clone(model).fit(X, y, groups=np.arange(N))
    alone = coef_interval(model, X, y, epsilon=INF, n_samples=N, groups=np.arange(N))
    assert alone.errors == pytest.approx(of_records.errors, rel=1e-6, abs=1e-9)
    assert str(alone.privacy_.adjacency) == "replace all rows of one person"
    # rows in any order, and one person with three of them
    person, order = np.append(PERSONS, 0), RNG.permutation(N + 1)
    rows, labels = np.vstack([X, X[5]]), np.append(y, y[5])
    given = {"groups": person[order]}
    model = clone(model).fit(rows[order], labels[order], **given)
    found = coef_interval(model, rows[order], labels[order], epsilon=INF, n_samples=N // 2, **given)
    A, w = np.column_stack([rows, np.ones(N + 1)]), np.append(np.ravel(model.coef_), model.intercept_)
    chunks = RowChunks(lambda i: rows[order][500 * i : 500 * i + 500], [500] * 4 + [1], n_columns=2)
    again = coef_interval(model, chunks, labels[order], epsilon=INF, n_samples=N // 2, **given)
    assert again.errors == pytest.approx(found.errors, rel=1e-9, abs=1e-12)
    share = 1 / np.bincount(person)[person]
    p = A @ w if name == "sums" else 1 / (1 + np.exp(-A @ w))
    bend = np.ones(N + 1) if name == "sums" else p * (1 - p)
    gradients = np.zeros((N // 2, 3))
    np.add.at(gradients, person, (share * (p - labels))[:, None] * A)
    assert found.curvature_ == pytest.approx((A * (share * bend)[:, None]).T @ A / (N // 2), rel=1e-6)
    assert found.gradients_ == pytest.approx(gradients.T @ gradients / (N // 2), rel=1e-5, abs=1e-9)


def test_weights_count_as_in_the_fit():
    """A record of weight 2 curves as two records do, and its gradient is twice as long."""
    model = DPLogisticRegression(INF, classes=[0, 1], alpha=0.01, max_sample_weight=2.0)
    weight = np.where(X[:, 0] > 0, 7.0, 1.0)  # clipped
    model.fit(X, LABELS, sample_weight=weight)
    found = coef_interval(model, X, LABELS, epsilon=INF, n_samples=N, sample_weight=weight)
    s, p = np.minimum(weight, 2.0), model.predict_proba(X)[:, 1]
    A = np.column_stack([X, np.ones(N)])
    assert found.curvature_ == pytest.approx((A * (s * p * (1 - p))[:, None]).T @ A / N)
    assert found.gradients_ == pytest.approx((A * ((s * (p - LABELS)) ** 2)[:, None]).T @ A / N)


def worst_move(fits, kinds):
    """The longest way that one replaced record, or person, moves the vector; m times."""
    rest, m = X[:3], 4
    vectors = []
    for rows, label, weight in kinds:
        y = np.append(LABELS[:3], [label] * len(rows))
        given = Weighted.of(
            y,
            None if weight is None else np.append([1.0] * 3, [weight] * len(rows)),
            np.append(np.arange(3), [3] * len(rows)) if len(rows) > 1 else None,
        )
        vectors.append(vector(fits, np.vstack([rest, rows]), given, m))
    return m * max(np.linalg.norm(a - b) for a, b in itertools.combinations(vectors, 2))


ENDS = np.array([[1.0, 0.0], [0.0, 1.0], [-9.0, 9.0], [1e6, 1e6], [0.0, 0.0]])


@pytest.mark.parametrize("twin", [False, True])
def test_one_person_moves_the_matrices_no_farther_than_one_record(twin, monkeypatch):
    model = DPLogisticRegression(INF, classes=[0, 1], alpha=1e4).fit(X, LABELS, groups=PERSONS)
    if twin:  # it sums over rows
        monkeypatch.setattr(
            "dpselect.linear_model.weights.block_map", lambda function, weight: np.ones((len(weight), 1))
        )
    kinds = [(np.tile(row, (40, 1)), label, None) for row in ENDS for label in (0, 1)]
    worst = worst_move(fits_of(model, N // 2), kinds)
    assert worst > 0.35 * coefficients.SENSITIVITY
    assert (worst <= coefficients.SENSITIVITY + 1e-9) == (not twin)


@pytest.mark.parametrize("twin", [False, True])
def test_one_weighted_record_moves_the_matrices_as_said(twin, monkeypatch):
    model = DPLogisticRegression(INF, classes=[0, 1], alpha=1e4, max_sample_weight=3.0)
    fits = fits_of(model.fit(X, LABELS), N)
    if twin:  # it does not clip
        monkeypatch.setattr("dpselect.linear_model.weights.np.clip", lambda values, low, high: values)
    kinds = [([row], label, weight) for row in ENDS for label in (0, 1) for weight in (0.0, 1.0, 50.0)]
    worst = worst_move(fits, kinds)
    assert worst > 0.35 * coefficients.SENSITIVITY
    assert (worst <= coefficients.SENSITIVITY + 1e-9) == (not twin)


def test_several_classes_move_farther_than_two():
    model = DPLogisticRegression(INF, classes=[0, 1, 2], alpha=1e4).fit(X, CLASSES)
    worst = worst_move(fits_of(model, N), [([row], label, None) for row in ENDS for label in (0, 1, 2)])
    # that of two classes would be too little noise
    assert coefficients.SENSITIVITY < worst <= math.sqrt(3) * coefficients.SENSITIVITY + 1e-9


# --- they hold


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "sums", "huber", "poisson"])
def test_they_hold_the_coefficients_of_the_population(name):
    model, n, runs = clone(MODELS[name][0]).set_params(epsilon=2.0), 4000, 60
    rng = np.random.default_rng(3)

    def drawn(size):
        rows = np.tanh(rng.normal(size=(size, 2))) / 1.5
        z = rows @ TRUE
        if name == "logistic":
            return rows, (z + rng.logistic(size=size) > 0.5).astype(int)
        if name == "poisson":
            return rows, np.minimum(rng.poisson(np.exp(z / 2)), 5)
        return rows, z / 3 + 0.2 * rng.normal(size=size)

    loss = {"max_derivative": model.largest_derivative} if name == "logistic" else {}  # not that of inf
    exact = clone(model).set_params(epsilon=INF, **loss).fit(*drawn(400_000))
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


def test_the_table_of_records_for_intervals_is_what_is_forecast():
    table = (ROOT / "doc" / "interval_records.inc").read_text(encoding="utf-8")
    lines = [cells.split("\n     - ") for cells in table.rstrip().split("\n   * - ")[1:]]
    assert len(lines) == 1 + 2 * (len(interval_records.NUMBERS) + len(interval_records.CODES))
    assert interval_records.report(lines[1:]) == table
    found = {tuple(line[:2]): line[2:] for line in lines}
    sizes = interval_records.SIZES
    needed = next(n for n in sizes if interval_records.shown(n) == found["logistic", "8"][-1])

    def times(columns, n):
        exact = interval_records.half_width("logistic", columns, interval_records.NO_NOISE, n)
        return interval_records.half_width("logistic", columns, 3.0, n) / exact

    assert times(8, needed) <= 2 < times(8, sizes[sizes.index(needed) - 1])
    # one coefficient for each category is of no use
    assert times("simplex", 2000) < 2 and times("onehot", 2000) > 10


def test_the_table_of_the_documentation_is_what_was_measured():
    results = coef_intervals.read(coef_intervals.RESULTS)
    table = ROOT / "doc" / "mechanisms" / "coef_intervals.inc"
    assert table.read_text(encoding="utf-8") == coef_intervals.report(results)
    told = [line for line in results.values() if float(line["silent"]) <= 1 - coef_intervals.OFTEN]
    assert len(told) >= 15 and min(float(line["least"]) for line in told) > 0.9
    # of all models that have a page, so often that a coverage is known to .013
    assert all(int(line["repetitions"]) >= 300 for line in told)


def test_few_records_say_nothing():
    model, y = fitted("logistic", 1.0)
    seed = root_stream(0)
    found = coef_interval(model, X[:900], y[:900], epsilon=0.08, n_samples=N, random_state=seed)
    assert found.empty and "not known" in repr(found)
    assert np.isnan(found.confidence_interval()).all()


@pytest.mark.parametrize("name, K", [("logistic", 1), ("sums", 1), ("logistic", 3)])
def test_it_is_refused_before_noise_where_no_records_could_say_anything(name, K, tmp_path):
    """The largest curvature that there can be is told just above the number in the message."""
    model, y = fitted(name)
    model = model.set_params(epsilon=1.0)
    if K > 1:
        model, y = clone(model).set_params(classes=[0, 1, 2]), np.arange(N) % 3
    model = model.fit(X, y)
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.0)
    with pytest.raises(ValueError, match="says nothing of 3 coefficients") as caught:
        coef_interval(model, X[:20], y[:20], epsilon=0.125, n_samples=N, ledger=ledger)
    assert ledger.spent()[0] == 0.0
    enough = int(re.search("at least ([0-9]+) records", str(caught.value))[1])
    for m, told in ((enough - 1, False), (enough, True)):
        plan = IntervalPlan(fits_of(model, N), 0.125)
        # as if all directions were curved alike, in the units of the release
        best = [(np.eye(3) * fit.bounds[0] / 3 / fit.weights**2, np.eye(3)) for fit in plan.fits]
        if told:
            plan.check_size(m)
        else:
            with pytest.raises(ValueError, match="says nothing"):
                plan.check_size(m)
        found = intervals_of(plan.fits, best, plan.deviation(m), None)
        assert found.empty != told or fits_of(model, N)[0].mu > 0


# --- of a Pipeline

TABLE = np.array([20 + 50 * (X[:, 0] + 1), np.where(X[:, 1] > 0, "yes", "no")], dtype=object).T
SCHEMA = {"age": (20, 120), "smokes": ["yes", "no"]}


def test_of_a_pipeline_columns_have_the_names_that_the_model_sees():
    model = tabular_pipeline(
        SCHEMA, DPLogisticRegression(INF, classes=[0, 1], alpha=0.01), expansion="linear"
    ).fit(TABLE, LABELS)
    found = coef_interval(model, TABLE, LABELS, epsilon=INF, n_samples=N)
    assert found.names == ("age", "smokes_code1", "intercept")
    by_hand = coef_interval(model[-1], model[:-1].transform(TABLE), LABELS, epsilon=INF, n_samples=N)
    assert by_hand.names == (0, 1, "intercept")
    assert np.array_equal(found.confidence_interval(), by_hand.confidence_interval())
    table = pytest.importorskip("pandas").DataFrame(TABLE, columns=list(SCHEMA))
    told = coef_interval(model.fit(table, LABELS), table, LABELS, epsilon=INF, n_samples=N)
    assert told.to_frame().equals(found.to_frame())
    pieces = RowChunks(lambda i: table[1000 * i : 1000 * (i + 1)], lengths=[1000] * 2, n_columns=2)
    lazily = coef_interval(model, pieces, LABELS, epsilon=INF, n_samples=N)
    assert lazily.curvature_ == pytest.approx(found.curvature_, abs=1e-12)


@pytest.mark.parametrize("signal, whole, rest", [(10.2, 1.25, 1.0), (230.0, 1.0, 1.25)])
def test_they_divide_by_what_the_epsilon_of_the_training_multiplies(signal, whole, rest):
    """A part of epsilon learned a norm before, and on its own it would have multiplied otherwise."""
    n, p = 300, 4
    epsilon = signal * (p + 1) / n
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, p))
    model = DPLogisticRegression(epsilon, data_norm="auto", norm="l2", classes=[0, 1])
    model.fit(X, (X[:, 0] > 0).astype(int))
    plain = clone(model).set_params(data_norm=model.data_norm_)
    assert plain.calibration(PublicShape(n, p)).stretch == whole
    (fit,) = fits_of(model, n)
    assert (fit.scale[:-1] == rest).all() and fit.scale[-1] == 1.0


def test_steps_before_it_may_have_learned_privately_and_may_have_no_names():
    nameless = FunctionTransformer(np.tanh)
    model = make_pipeline(DPBoundsScaler(5.0), nameless, DPLogisticRegression(5.0, classes=[0, 1]))
    model.fit(X, LABELS)
    found = coef_interval(model, X, LABELS, epsilon=5.0, n_samples=N, groups=None)
    assert found.names == (0, 1, "intercept") and not found.empty
    assert found.privacy_.epsilon == 5.0


def test_no_record_changes_the_rows_of_others_on_their_way_through_a_pipeline():
    """A text among numbers would make texts of all of them, of which an encoder knows none."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"ward": 1.0 + (X[:, 0] > 0), "dose": X[:, 1]})
    encoder = OneHotEncoder(categories=[[1.0, 2.0]], handle_unknown="ignore", sparse_output=False)
    model = make_pipeline(
        ColumnTransformer([("ward", encoder, ["ward"])], remainder="passthrough", sparse_threshold=0),
        DPLogisticRegression(INF, classes=[0, 1], alpha=0.01),
    ).fit(table, LABELS)
    found = coef_interval(model, table, LABELS, epsilon=INF, n_samples=N)
    assert found.names[:2] == ("ward__ward_1.0", "ward__ward_2.0")
    mixed = table.astype({"ward": object})
    mixed.iloc[0, 0] = "surgery"
    with pytest.raises(ValueError, match="Column 'ward' of X .*text") as caught:
        coef_interval(model, mixed, LABELS, epsilon=INF, n_samples=N)
    assert "surgery" not in str(caught.value)
    # rows in pieces go through the steps piece by piece
    pieces = RowChunks(lambda i: table[1000 * i : 1000 * (i + 1)], lengths=[1000] * 2, n_columns=2)
    told = coef_interval(model, pieces, LABELS, epsilon=INF, n_samples=N)
    assert told.curvature_ == pytest.approx(found.curvature_, abs=1e-12)


def test_an_unknown_column_is_named():
    rows = X * [1.0, 1e-3]
    seed = root_stream(0)
    model = make_pipeline(
        BoundedScaler([(-1, 1), (-1, 1)]),
        DPLogisticRegression(5.0, classes=[0, 1], alpha=1e-4, random_state=seed),
    ).fit(rows, LABELS)
    found = coef_interval(model, rows, LABELS, epsilon=5.0, n_samples=N, random_state=seed)
    assert found.lost == ("x1",) and "Least is known of x1: drop" in repr(found)
    # the other one is known as well as if it were alone
    widths = np.subtract(*found.confidence_interval()[::-1])
    assert not found.empty and widths[0] < 1 < 5 < widths[1]
    model[:-1].set_params(boundedscaler__bounds=[(-1, 1), (-1e-3, 1e-3)])
    model.fit(rows, LABELS)
    found = coef_interval(model, rows, LABELS, epsilon=5.0, n_samples=N, random_state=seed)
    assert not found.empty and found.lost == () and "Least" not in repr(found)


@pytest.mark.parametrize(
    "name, code", [("logistic", "simplex"), ("huber", "simplex"), ("huber", "onehot")]
)
@pytest.mark.parametrize("twin", [False, True])
def test_intervals_hold_where_a_direction_is_lost(name, code, twin):
    """A column that hardly varies, or codes that add up to the constant: others stay known."""
    model, y = MODELS[name]
    rows = np.array([0.02 * X[:, 0], X[:, 1], np.where(X[:, 0] > 0, "a", "b")], dtype=object).T
    schema = {"narrow": (-1, 1), "x1": (-1, 1), "kind": ["a", "b", "never"]}
    model = tabular_pipeline(schema, clone(model).set_params(epsilon=4.0, alpha=1e-3), categories=code)
    model.set_params(encoder__expansion="linear").fit(rows, y)
    (fit,), Z = fits_of(model[-1], N), model[:-1].transform(rows)
    d, plan = len(fit.w), IntervalPlan(fits_of(model[-1], N), 8.0)
    sums = fit.sums(Z, y)
    exact = [matrix / N for matrix in sums]
    rng = np.random.default_rng(2)
    linear, result = map(np.array, zip(*(fit.draw(rng) for _ in range(2000))))
    chance = rng.multivariate_normal(np.zeros(d), exact[1] / N, size=2000)
    true = np.abs(result - np.linalg.solve(exact[0] + fit.mu * np.eye(d), (linear + chance).T).T)
    inside, widths, deviation = [], [], plan.deviation(N)
    for _ in range(8):
        matrices = released_matrices(replace(plan, random_state=rng), [sums], N)
        # the twin takes the matrices for exact, and the penalty for none
        given = replace(fit, mu=20 * fit.mu) if twin else fit
        found = intervals_of((given,), matrices, 0.0 if twin else deviation, None)
        half = np.diff(found.confidence_interval(), axis=0)[0] / 2 / fit.scale
        inside.append((true <= half).mean(axis=0))
        widths.append(half / np.quantile(true, 0.95, axis=0))
        assert twin or found.lost
    assert (np.mean(inside, axis=0).min() > 0.9) == (not twin)
    assert twin or np.median(widths, axis=0)[1] < 3


# --- before it is paid


@pytest.mark.parametrize("name", ["logistic", "huber"])
@pytest.mark.parametrize("twin", [False, True])
def test_a_forecast_is_as_wide_as_intervals_will_be(name, twin):
    """From half as many invented records, of those that are paid for; the twin forgets their number."""
    rng = np.random.default_rng(4)
    rows = np.tanh(rng.normal(size=(1000, 2))) / 1.5
    z = rows @ TRUE
    y = (z + rng.logistic(size=1000) > 0.5).astype(int)
    if name == "huber":
        y = z / 3 + 0.2 * rng.normal(size=1000)
    model, targets = fitted(name, 5.0)
    n_records = 8 * N if twin else N
    told = coef_interval_forecast(model, rows, y, epsilon=2.0, n_samples=n_records, n_records=n_records)
    assert list(told) == [0, 1, "intercept"]
    widths = [
        np.diff(coef_interval(model, X, targets, epsilon=2.0, n_samples=N).confidence_interval(), axis=0)
        for _ in range(20)
    ]
    ratio = np.array(list(told.values())) / (np.median(widths, axis=0)[0] / 2)
    assert (0.6 < ratio.min() and ratio.max() < 1.6) == (not twin)
    narrower = coef_interval_forecast(
        model, rows, y, epsilon=2.0, n_samples=n_records, confidence_level=0.5
    )
    assert all(narrower[column] < told[column] for column in told)


def test_a_forecast_pays_nothing_and_tells_of_records_that_may_be_real(tmp_path):
    model, y = fitted("logistic", 1.0)
    with PrivacyLedger(tmp_path / "ledger", epsilon=1.0) as ledger:
        told = coef_interval_forecast(model, X.copy(), y, epsilon=9.0, n_samples=N)
    assert ledger.spent()[0] == 0.0 and all(width > 0 for width in told.values())
    with pytest.warns(PrivacyLeakWarning, match="X is what model was trained on"):
        coef_interval_forecast(model, X, y, epsilon=9.0, n_samples=N)
    with pytest.raises(ValueError, match="says nothing of 3 coefficients"):
        coef_interval_forecast(model, X.copy(), y, epsilon=0.1, n_samples=N, n_records=20)
    with pytest.raises(ValueError, match="n_records"):
        coef_interval_forecast(model, X.copy(), y, epsilon=1.0, n_samples=N, n_records=0)
    of_persons = clone(model).fit(X, y, groups=PERSONS)
    given = {"epsilon": 9.0, "n_samples": N // 2}
    assert coef_interval_forecast(of_persons, X.copy(), y, groups=PERSONS, **given).keys() == told.keys()
    with pytest.raises(ValueError, match="groups is missing"):
        coef_interval_forecast(of_persons, X.copy(), y, **given)


def test_errors_of_steps_name_the_column_and_no_value(tmp_path):
    model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]), expansion="linear")
    model.fit(TABLE, LABELS)
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.0)
    for value, said in ((np.nan, "'age' of X has missing values"), ("77 years", "'age'")):
        rows = TABLE.copy()
        rows[3, 0] = value
        with pytest.raises(ValueError, match=said) as caught:
            coef_interval(model, rows, LABELS, epsilon=1.0, n_samples=N, ledger=ledger)
        assert "77" not in str(caught.value) and caught.value.__context__ is None
    assert ledger.spent()[0] == 0.0


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
    (lambda: StabilityGridSearchCV(DPLogisticRegression(classes=[0, 1]), {}).fit(X, LABELS),
     r"write search\.best_estimator_"),
    (lambda: DPHistogramDensity(bounds=(-1, 1)).fit(X), "model must be"),
    (lambda: make_pipeline(BoundedScaler((-1, 1)), LogisticRegression()).fit(X, LABELS),
     "ends with one"),
    (lambda: make_pipeline(StandardScaler(), DPLogisticRegression(classes=[0, 1])).fit(X, LABELS),
     "'standardscaler' .* learns from the data"),
    (lambda: DPLogisticRegression(classes=[0, 1]).fit(X, LABELS, groups=PERSONS), "groups is missing"),
    (lambda: DPLogisticRegression(classes=[0, 1], max_sample_weight=2.0).fit(X, LABELS),
     "sample_weight is missing, and model has max_sample_weight=2.0"),
    (lambda: DPRidge(target_range=(-1, 1)).fit(X[:9], TARGETS[:9]), "n_samples=2000.*9; write that"),
    (lambda: AccuracyFirstSearchCV(
        DPLogisticRegression(classes=[0, 1], alpha=0.1), {"epsilon": [10.0, 20.0]}, target=0.9,
        criterion="risk", method="predict_verify",
    ).fit(X, LABELS).best_estimator_, "search that looked at its noise"),
    *(
        (lambda strategy=strategy: StabilityGridSearchCV(
            DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, strategy=strategy,
        ).fit(X, LABELS).best_estimator_, "search that looked at its noise")
        for strategy in ("budget_split", "data_split", "random_stopping")
    ),
])  # fmt: skip
def test_models_whose_noise_has_no_known_law_are_refused(make, match):
    with pytest.raises((TypeError, ValueError), match=match):
        coef_interval(make(), Untouchable(), Untouchable(), epsilon=1.0, n_samples=N)


def test_the_winner_of_an_exact_choice_is_refused():
    with pytest.warns(PrivacyLeakWarning, match="exact scores"):
        search = StabilityGridSearchCV(
            DPLogisticRegression(classes=[0, 1]),
            {"alpha": [0.1, 1.0]},
            strategy="control",
        ).fit(X, LABELS)
    with pytest.raises(ValueError, match="looked at its noise"):
        coef_interval(search.best_estimator_, X, LABELS, epsilon=1.0, n_samples=N)


@pytest.mark.parametrize(
    "name, given, match",
    [
        ("logistic", {"groups": PERSONS}, "groups is given, and model was trained on records"),
        ("logistic", {"sample_weight": WEIGHTS}, "sample_weight is given, and .*=None, so"),
        ("sums", {"sample_weight": WEIGHTS}, "sample_weight is given"),
    ],
)
def test_records_are_of_the_kind_of_the_fit(name, given, match):
    model, _ = fitted(name)
    with pytest.raises(ValueError, match=match):
        coef_interval(model, Untouchable(), Untouchable(), epsilon=1.0, n_samples=N, **given)


@pytest.mark.parametrize(
    "changed, match",
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": 1.5}, "n_samples"),
        ({"random_state": "a"}, "random_state"),
        ({"ledger": 3}, "ledger"),
    ],
)
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


def test_a_contrast_is_the_difference_of_two_linear_predictions():
    """Its interval takes the errors of all coefficients together, and holds as those of one do."""
    row, other = np.array([0.6, -0.2]), np.array([-0.3, 0.5])
    held, runs = 0, 40
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-0.7, 0.7, size=(2 * N, 2))
        rows[:, 1] = (rows[:, 0] + rows[:, 1]) / 2  # so that the errors of both are correlated
        labels = (rows @ TRUE + rng.logistic(size=2 * N) > 0).astype(int)
        model = DPLogisticRegression(
            5.0, classes=[0, 1], alpha=1e-3, random_state=root_stream(seed).for_release()
        ).fit(rows[:N], labels[:N])
        found = coef_interval(
            model,
            rows[N:],
            labels[N:],
            epsilon=5.0,
            n_samples=N,
            random_state=root_stream(1000 + seed).for_release(),
        )
        estimate = found.contrast(row - other)
        held += estimate.low < (row - other) @ TRUE < estimate.high
    assert held >= binom.ppf(1e-6, runs, 0.93)
    low, high = found.confidence_interval(0.8)
    one = found.contrast([0, 1, 0], 0.8)
    assert (one.value, one.low, one.high) == pytest.approx((found.coef[1], low[1], high[1]))
    apart = [found.contrast(weights) for weights in ([0.9, 0], [0, -0.7])]
    together = sum((each.high - each.low) ** 2 for each in apart) ** 0.5
    assert estimate.high - estimate.low != pytest.approx(together, rel=0.02)
    for weights in ([1.0], [1.0, math.nan], np.ones((2, 3))):
        with pytest.raises(ValueError, match="one finite number for each of 3 coefficients"):
            found.contrast(weights)


def test_a_contrast_is_forecast_with_the_coefficients():
    """That of one coefficient is its own; that of a difference, the width that the intervals have."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(8000, 2)) / 2**0.5
    y = (X @ [2, -1] + rng.logistic(size=8000) > 0).astype(int)
    model = DPLogisticRegression(classes=[0, 1], alpha=0.001).fit(X[:4000], y[:4000])
    records = X[4000:], y[4000:]
    planned = {"epsilon": 3.0, "n_samples": 4000}
    one = coef_interval_forecast(model, *records, **planned, contrast=[1.0, 0.0])
    assert one["contrast"] == pytest.approx(one[0], rel=1e-9)
    difference = coef_interval_forecast(model, *records, **planned, contrast=[0.5, -0.5])["contrast"]
    estimate = coef_interval(model, *records, **planned).contrast([0.5, -0.5])
    assert difference == pytest.approx((estimate.high - estimate.low) / 2, rel=0.3)
    with pytest.raises(ValueError, match="one finite number for each"):
        coef_interval_forecast(model, *records, **planned, contrast=[1.0])

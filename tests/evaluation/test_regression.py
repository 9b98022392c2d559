"""Regressions: a cell for every record, and figures near the exact ones although cells are wide."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

from dpselect import DPPoissonRegressor, evaluate
from dpselect.accounting.privacy_loss import PrivacyLoss
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.regression import (
    ERROR_EDGES,
    N_BINS,
    RegressionCells,
    RegressionEvaluation,
    moments,
    table,
)
from dpselect.noise import as_generator, discrete_laplace
from dpselect.noise.grid import noise_ratio

INF = float("inf")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(42_000, 2))
ERRORS = {
    "normal": RNG.normal(size=42_000),
    "laplace": RNG.laplace(size=42_000),
    "tails": RNG.standard_t(3, size=42_000),
    "skewed": RNG.exponential(1.5, size=42_000),
}
NAMES = "r2", "rmse", "mae", "bias"


def exact(y, predicted, ends):
    y, predicted = np.clip(y, *ends), np.clip(predicted, *ends)
    return {
        "r2": metrics.r2_score(y, predicted),
        "rmse": metrics.root_mean_squared_error(y, predicted),
        "mae": metrics.mean_absolute_error(y, predicted),
        "bias": np.mean(y - predicted),
    }


@pytest.mark.parametrize("law", ERRORS)
@pytest.mark.parametrize("ends", [(-6.0, 6.0), (-10.0, 20.0)], ids=["narrow", "wide"])
def test_figures_without_noise_are_near_the_exact_ones(law, ends):
    y = X.sum(axis=1) + ERRORS[law]
    model = LinearRegression().fit(X[:2000], y[:2000])
    found = evaluate(model, X[2000:], y[2000:], epsilon=INF, target_range=ends)
    truth = exact(y[2000:], model.predict(X[2000:]), ends)
    assert found.metrics == NAMES
    for name in NAMES:
        estimate = found.metric(name)
        near = {"r2": 0.01, "bias": 0.01}.get(name, 0.013 * truth[name])
        assert abs(estimate.value - truth[name]) < near, name
        assert estimate.low <= truth[name] <= estimate.high, name


def test_counts():
    rows = np.clip(X, -1, 1)
    y = np.random.default_rng(1).poisson(np.exp(0.5 + rows[:, 0]))
    model = DPPoissonRegressor(INF, target_bound=20.0, data_norm=1.5).fit(rows[:2000], y[:2000])
    found = evaluate(model, rows[2000:], y[2000:], epsilon=INF, target_range=(0, 20))
    truth = exact(y[2000:], model.predict(rows[2000:]), (0, 20))
    # counts are no smooth density
    for name in NAMES:
        assert found.metric(name).value == pytest.approx(truth[name], abs=0.06), name


def test_calibration_curve():
    y = X.sum(axis=1) + ERRORS["normal"]
    model = LinearRegression().fit(X[:2000], y[:2000])
    half = SimpleModel(lambda X: 0.5 * model.predict(X))
    found = evaluate(half, X[2000:], y[2000:], epsilon=1.0, target_range=(-6, 6))
    curve = found.calibration_curve()
    assert all(len(column) == 8 for column in curve.values())
    told = ~np.isnan(curve["observed"] * curve["predicted"])
    # predictions are half of what they should be
    assert told.sum() >= 2
    np.testing.assert_allclose(curve["observed"][told], 2 * curve["predicted"][told], atol=0.5)


class SimpleModel(RegressorMixin, BaseEstimator):
    """A model that predicts by a function."""

    def __init__(self, function):
        self.predict = function

    def fit(self, X, y):
        """Do nothing."""

    def __sklearn_is_fitted__(self):
        return True


def test_cells():
    bins, ends, place = table()
    assert place.shape == (len(ERROR_EDGES) - 1, N_BINS)
    np.testing.assert_array_equal(np.unique(place), np.arange(len(bins)))
    rng = np.random.default_rng(0)
    predicted, y = rng.random(50_000), rng.random(50_000)
    found = RegressionCells((0.0, 1.0)).index(predicted, y)
    error = y - predicted
    assert (ERROR_EDGES[bins[found]] <= error).all() and (error <= ERROR_EDGES[bins[found] + 1]).all()
    assert (ends[found, 0] <= predicted).all() and (predicted <= ends[found, 1]).all()
    # a cell that no record can fall into would be noise alone; some are narrow triangles
    assert len(np.unique(found)) > 0.98 * len(bins)


def test_odd_numbers_have_a_cell():
    odd = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 5.0])
    cells = RegressionCells((0.0, 1.0))
    for other in odd:
        found = cells.index(odd, np.full(7, other))
        assert (found >= 0).all() and (found < cells.shape[0]).all()


def test_corrections_for_slopes_matter():
    values, ends = moments()["squared"], ERROR_EDGES[table()[0]]
    assert ends.shape == values.shape
    errors = np.random.default_rng(0).normal(size=100_000) / 12
    counts = np.bincount(
        RegressionCells((0.0, 1.0)).index(np.full(100_000, 0.5), 0.5 + errors), minlength=len(values)
    )
    assert (counts @ values / counts.sum()) == pytest.approx(np.mean(errors**2), rel=0.006)
    # a twin without them is more than 2 % off
    low, high = ERROR_EDGES[table()[0]], ERROR_EDGES[table()[0] + 1]
    even = (low**2 + low * high + high**2) / 3
    assert (counts @ even / counts.sum()) > 1.02 * np.mean(errors**2)


def of_counts(counts):
    evaluation = RegressionEvaluation(
        counts_=np.zeros(714), n_records=1, privacy_=PrivacyLoss(1.0, label=""), target_range=(0.0, 1.0)
    )
    return {name: metric(counts) for name, metric in evaluation._readers.items()}


def coverage(m, epsilon, scale=1.0, law="normal", repetitions=500):
    """Shares of repetitions, with records drawn anew, that are told, and of these right."""
    rng = np.random.default_rng(1)
    predicted = np.clip(0.4 + 0.1 * rng.normal(size=400_000), 0, 1)
    noise = {"normal": rng.normal, "tails": lambda size: rng.standard_t(3, size=size)}[law](size=400_000)
    y = np.clip(predicted + 0.08 * noise, 0, 1)
    truth = exact(y, predicted, (0.0, 1.0))
    cells = RegressionCells((0.0, 1.0))
    shares = np.bincount(cells.index(predicted, y), minlength=714) / 400_000
    generator = as_generator(0)
    counts = generator.multinomial(m, shares, size=repetitions)
    noise = scale * discrete_laplace(generator, counts.shape, noise_ratio(epsilon, 2))
    found = of_counts(NoisyCounts.of(1.0 * (counts + noise), m, noise_variance(epsilon)))
    for name, (value, low, high) in found.items():
        told = ~np.isnan(value)
        right = (low <= truth[name]) & (truth[name] <= high)
        yield name, told.mean(), right[told].mean() if told.any() else np.nan


@pytest.mark.parametrize(
    "m, epsilon, law",
    [
        (1000, 1.0, "normal"),
        (5000, 0.3, "tails"),
        (20_000, 3.0, "normal"),
        (20_000, 1.0, "tails"),
    ],
)
def test_intervals_cover(m, epsilon, law):
    found = list(coverage(m, epsilon, law=law))
    # 0.89 of 500 and more has a probability below 1e-7 at 0.95
    assert all(covered > 0.89 for _, told, covered in found if told > 0.5), found
    assert sum(told > 0.5 for _, told, _ in found) >= 2


def test_noise_never_says_that_the_root_mean_square_is_less_than_the_mean_size():
    """Without the comparison it does so in a third of these releases."""
    counts = np.bincount(
        RegressionCells((0.0, 1.0)).index(
            np.full(1000, 0.5), 0.5 + np.random.default_rng(0).uniform(-0.1, 0.1, size=1000)
        ),
        minlength=714,
    )
    noise = discrete_laplace(as_generator(0), (500, 714), noise_ratio(1.0, 2))
    noisy = NoisyCounts.of(1.0 * (counts + noise), 1000, noise_variance(1.0))
    found = of_counts(noisy)
    (root, low, high), (size, *_) = found["rmse"], found["mae"]
    both = ~np.isnan(root) & ~np.isnan(size)
    assert both.sum() > 200 and (root >= size)[both].all()
    told = ~np.isnan(root)
    assert (low <= root)[told].all() and (root <= high)[told].all()
    # a twin that reads each figure by itself
    h = noisy.h / noisy.h.sum(axis=-1, keepdims=True)
    alone = np.sqrt(np.maximum(h @ moments()["squared"], 0.0)), h @ moments()["absolute"]
    assert (alone[0] < alone[1])[both].mean() > 0.1


def test_noise_that_is_longer_than_stated_is_caught():
    found = {name: (told, covered) for name, told, covered in coverage(5000, 0.3, 3.0)}
    assert found["mae"][1] < 0.85 and found["bias"][1] < 0.85


def test_a_range_that_is_too_wide_says_so():
    y = X[:, 0] + 0.01 * X[:, 1]
    model = LinearRegression().fit(X[:, :1], y)
    found = evaluate(model, X[:, :1], y, epsilon=INF, target_range=(-50, 50))
    assert found.metric("r2").empty and found.metric("rmse").low < 0.07
    # where all errors would be at the end of the finest bin, and what chance may add
    assert found.metric("rmse").high < 1.2 * 100 / 64


@pytest.mark.parametrize(
    "bad",
    [
        dict(target_range=None),
        dict(target_range=3.0),
        dict(target_range=(1, 0)),
        dict(target_range=(0, INF)),
        dict(target_range=("a", 1)),
        dict(y=np.full(10, np.nan)),
        dict(y=np.array(["SECRET"] * 10)),
    ],
)
def test_bad_input(bad):
    given = dict(y=np.arange(10.0), target_range=(0.0, 10.0)) | bad
    with pytest.raises((ValueError, TypeError), match="target_range|y") as caught:
        evaluate(SimpleModel(lambda X: X[:, 0]), X[:10], given.pop("y"), epsilon=1.0, **given)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(ValueError, match="could not be answered"):
        evaluate(SimpleModel(lambda X: X), X[:9], X[:9, 0], epsilon=1.0, target_range=(0, 1))


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize(
    "ends, said",
    [
        ((0.0, 1.0), "highest sixteenth"),  # in another unit
        ((0.0, 95.0), "highest sixteenth"),  # 95 % of the targets beyond
        ((200.0, 300.0), "lowest sixteenth"),
        ((0.0, 10_000.0), "lowest sixteenth"),
        ((40.0, 105.0), None),  # a sixth beyond
        ((90.0, 120.0), None),
        ((-1000.0, 1000.0), None),
    ],
)
def test_targets_that_lie_at_an_end_of_the_range_are_told(ends, said):
    y = 100 + 3 * X.sum(axis=1) + 3 * ERRORS["normal"]
    model = LinearRegression().fit(X[:2000], y[:2000])
    found = evaluate(
        model, X[2000:12_000], y[2000:12_000], epsilon=1.0, target_range=ends, random_state=0
    )
    told = " ".join(found.remarks)
    assert told == "" if said is None else said in told
    assert told in repr(found) and told in found._repr_html_()
    # of the released counts alone, so that it costs nothing
    nothing = replace(found, counts_=np.full_like(found.counts_, 10_000 / len(found.counts_)))
    assert nothing.remarks == ()
    assert replace(nothing, counts_=found.counts_).remarks == found.remarks


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
def test_noise_alone_tells_nothing_of_the_range():
    y = np.where(np.arange(400) % 3, 0.3, 1.0)  # a third at an end
    model = LinearRegression().fit(X[:400], y)
    for seed in range(20):
        found = evaluate(model, X[:400], y, epsilon=0.1, target_range=(0.0, 1.0), random_state=seed)
        assert found.remarks == ()

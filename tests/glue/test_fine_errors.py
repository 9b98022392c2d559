"""Figures cover where what they measure is finer than their cells.

Errors of a regression below the finest bin, predictions on the edges of bins, probabilities that all lie
in one bin: there a figure that takes the middle of a cell for all that lies in it is off by the same
number in every data set, and no number of records helps.
"""

import numpy as np
import pytest
from scipy.stats import binom

from dpselect.evaluation import regression
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.regression import ERROR_EDGES, RegressionCells
from dpselect.evaluation.release import EvaluationPlan, count
from dpselect.evaluation.score_bins import BinaryCells
from dpselect.noise import root_stream
from tests.marks import slow_but

FINEST = ERROR_EDGES[ERROR_EDGES > 0].min()
M, REPETITIONS = 4000, 150
# fewer of as many have a probability below 1e-7 at 0.95
FEWEST = int(binom.ppf(1e-7, REPETITIONS, 0.95))
# of errors, in widths of the finest bin: smooth ones around 0 may be longer
SMOOTH = {
    "normal": lambda rng, n: rng.normal(size=n),
    "one sign": lambda rng, n: rng.exponential(size=n),
}
NARROW = {
    "always the same": lambda rng, n: np.ones(n),
    "off": lambda rng, n: -1 + 0.01 * rng.normal(size=n),
    "two sizes": lambda rng, n: rng.choice([-1.0, 0.3], size=n),
}
LAWS = SMOOTH | NARROW
FINE = [
    *((law, size) for law in SMOOTH for size in (0.0, 1e-6, 0.01, 0.1, 0.3, 0.5, 1.0, 2.0)),
    *((law, size) for law in NARROW for size in (1e-6, 0.1, 0.5, 0.9)),
]


def predictions_of(rng, n):
    return rng.beta(2, 3, size=n)


def targets_by_point(predicted, targets):
    """Return the mean target in each range of predictions, or not a number where records are few."""
    point = np.minimum((8 * predicted).astype(int), 7)
    n, total = np.bincount(point, minlength=8), np.bincount(point, targets, 8)
    return np.divide(total, n, out=np.full(8, np.nan), where=n > 0.01 * len(point))


def exact_figures(errors, targets):
    return {
        "bias": errors.mean(),
        "mae": np.abs(errors).mean(),
        "rmse": np.sqrt((errors**2).mean()),
        "r2": 1 - (errors**2).mean() / targets.var(),
    }


def regression_records(law, size, n, seed):
    """Return predictions and targets within the range, in shares of it."""
    rng = np.random.default_rng(seed)
    predicted = predictions_of(rng, n)
    errors = size * FINEST * LAWS[law](rng, n)
    return predicted, np.clip(predicted + errors, 0, 1)


def check_fine_errors(law, size, epsilon=1.0):
    """Count how often each figure that is told holds that of the law."""
    ends = (-3.0, 5.0)
    plan = EvaluationPlan(
        RegressionCells(ends), epsilon, random_state=root_stream(9).child(law, str(size))
    )
    p, y = regression_records(law, size, 400_000, 1)
    truth = exact_figures(8 * (y - p), 8 * y)
    noise = plan.standard_noise(REPETITIONS * 714).reshape(REPETITIONS, -1)
    counts = []
    for i in range(REPETITIONS):
        p, y = regression_records(law, size, M, 2 + i)
        counts.append(count(plan.cells, 1, 8 * p - 3, 8 * y - 3) + noise[i])
    stated = NoisyCounts.of(np.array(counts), M, noise_variance(epsilon))
    told = 0
    for name, metric in plan.read(counts[0], M)._readers.items():
        value, low, high = metric(stated)
        some = ~np.isnan(value)
        # the law's own figures are known to a few thousandths of an error
        slack = 0.01 * 8 * FINEST * size if name != "r2" else 1e-3
        inside = (low - slack <= truth[name]) & (truth[name] <= high + slack)
        assert (inside | ~some).sum() >= FEWEST, (name, truth[name], inside[some].mean())
        told += some.any()
    assert told, "nothing is told"


@pytest.mark.parametrize("law, size", slow_but(FINE, 18))
def test_figures_of_small_errors_cover(law, size):
    check_fine_errors(law, size)


def check_fine_curve(law, size):
    """Count how often each point of the curve that is told holds the mean target of the law."""
    p, y = regression_records(law, size, 400_000, 1)
    truth, right, repetitions = targets_by_point(p, y), np.zeros(8), 25
    for i in range(repetitions):
        stream = root_stream(9).child(law, i)
        plan = EvaluationPlan(RegressionCells((0.0, 1.0)), 2.0, random_state=stream)
        p, y = regression_records(law, size, M, 2 + i)
        noisy = count(plan.cells, 1, p, y) + plan.standard_noise(714)
        curve = plan.read(noisy, M).calibration_curve()
        low, high = curve["observed_low"], curve["observed_high"]
        # not told is no error, and predictions that lie unevenly in their bins are a small one
        right += ~((truth < low - 5e-4) | (truth > high + 5e-4))
    assert (right >= binom.ppf(1e-7, repetitions, 0.95)).all(), right


@pytest.mark.slow
@pytest.mark.parametrize("law, size", [FINE[i] for i in (6, 18, 21)])
def test_mean_targets_cover_where_errors_are_small(law, size):
    check_fine_curve(law, size)


def test_errors_as_if_they_were_evenly_spread_are_caught(monkeypatch):
    monkeypatch.setattr(regression, "_too_fine", lambda counts, *weights: np.zeros(counts.h.shape[:-1]))
    with pytest.raises(AssertionError):
        check_fine_errors("off", 0.5)


@pytest.mark.slow
def test_mean_targets_as_if_they_were_are_caught(monkeypatch):
    monkeypatch.setattr(regression, "_too_fine", lambda counts, *weights: np.zeros(counts.h.shape[:-1]))
    with pytest.raises(AssertionError):
        check_fine_curve("off", 0.5)


# ---- scores in one bin


PROBABILITIES = {
    "near 0": (1e-5, 1e-3),
    "near 1": (0.999, 1.0),
    "in one bin": (0.4, 0.401),
    "spread": (0, 1),
}


def check_scores(where, epsilon=1.0):
    """Count how often figures of probabilities hold those of the records, told in their bins."""
    plan = EvaluationPlan(
        BinaryCells(np.array([0, 1]), True), epsilon, random_state=root_stream(9).child(where)
    )
    low, high = PROBABILITIES[where]

    def records(n, seed):
        rng = np.random.default_rng(seed)
        p = rng.uniform(low, high, size=n)
        return count(plan.cells, 1, p, 1 * (rng.random(n) < 0.8 * p + 0.1))

    noise = plan.standard_noise(REPETITIONS * 64).reshape(REPETITIONS, -1)
    noisy = np.array([records(M, 2 + i) for i in range(REPETITIONS)]) + noise
    stated = NoisyCounts.of(noisy, M, noise_variance(epsilon))
    many = records(1_000_000, 1)
    exact, told = NoisyCounts.of(1.0 * many, many.sum(), 0.0), 0
    evaluation = plan.read(noisy[0], M)
    for name, metric in evaluation._readers.items():
        truth = metric(exact, evaluation._above(0.5))[0]
        value, start, end = metric(stated, evaluation._above(0.5))
        some = ~np.isnan(value) & ~np.isnan(truth)
        right = ~some | ((start <= truth + 2e-3) & (truth - 2e-3 <= end))
        assert right.sum() >= FEWEST, (name, truth, right.mean())
        told += some.any()
    assert told >= 4


@pytest.mark.parametrize("where", slow_but([*PROBABILITIES], 0))
def test_figures_of_scores_in_one_bin_cover(where):
    check_scores(where)

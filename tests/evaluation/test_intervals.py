"""Figures from noisy counts: without noise, without bias, and with intervals that cover."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics

from dpselect.evaluation.binary import BIN, LABEL, METRICS
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts, Z, figure
from dpselect.evaluation.score_bins import PROBABILITIES
from dpselect.noise import as_generator, discrete_laplace
from dpselect.noise.grid import noise_ratio

SCORE = PROBABILITIES[BIN]
CELLS = (SCORE**LABEL * (1 - SCORE) ** (1 - LABEL)) * np.bincount(
    np.minimum(np.arange(2000) // 90, 31), minlength=32
)[BIN]
CELLS /= CELLS.sum()
POSITIVE = BIN >= 12
SKLEARNS = {
    "accuracy": lambda y, p: metrics.accuracy_score(y, p > 0.5),
    "balanced_accuracy": lambda y, p: metrics.balanced_accuracy_score(y, p > 0.5),
    "precision": lambda y, p: metrics.precision_score(y, p > 0.5),
    "recall": lambda y, p: metrics.recall_score(y, p > 0.5),
    "specificity": lambda y, p: metrics.recall_score(y, p > 0.5, pos_label=0),
    "f1": lambda y, p: metrics.f1_score(y, p > 0.5),
    "lift": lambda y, p: metrics.precision_score(y, p > 0.5) / y.mean(),
    "positive_rate": lambda y, p: y.mean(),
    "selection_rate": lambda y, p: np.mean(p > 0.5),
    "roc_auc": metrics.roc_auc_score,
    "brier": metrics.brier_score_loss,
    "log_loss": metrics.log_loss,
}


def drawn(m, epsilon, repetitions=2000, seed=0, cells=CELLS, scale=1.0):
    """Noisy counts of `repetitions` sets of m records; `scale` makes their noise too long."""
    generator = as_generator(seed)
    counts = generator.multinomial(m, cells, size=repetitions)
    noise = scale * discrete_laplace(generator, counts.shape, noise_ratio(epsilon, 2))
    return NoisyCounts.of(counts + noise, m, noise_variance(epsilon))


def truth(name, cells=CELLS):
    return METRICS[name](NoisyCounts.of(cells[None] * 1e12, 1e12, 0.0), POSITIVE)[0][0]


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", SKLEARNS)
def test_without_noise_figures_are_scikit_learns(name):
    counts = np.random.default_rng(0).multinomial(5000, CELLS)
    y, p = np.repeat(LABEL, counts), np.repeat(SCORE, counts)
    exact = NoisyCounts.of(counts[None] * 1.0, 5000, 0.0)
    value, low, high = METRICS[name](exact, BIN >= 16)
    assert value[0] == pytest.approx(SKLEARNS[name](y, p), abs=1e-12)
    assert low[0] < value[0] < high[0]


def test_the_calibration_error_is_that_of_eight_ranges():
    counts = np.random.default_rng(0).multinomial(5000, CELLS)
    gaps = [((LABEL - SCORE) * counts)[BIN // 4 == i].sum() for i in range(8)]
    exact = NoisyCounts.of(counts[None] * 1.0, 5000, 0.0)
    rows = (LABEL - SCORE) * (BIN // 4 == np.arange(8)[:, None])
    _, low, high, _ = exact.absolute_sum(rows)
    assert low[0] < np.abs(gaps).sum() / 5000 < high[0]


def test_the_stated_variance_is_the_noises():
    for epsilon in (0.3, 1.0, 3.0):
        noise = discrete_laplace(as_generator(1), 400_000, noise_ratio(epsilon, 2))
        assert noise.var() == pytest.approx(noise_variance(epsilon), rel=0.03)
    assert noise_variance(np.inf) == 0 and noise_variance(1e6) < 1e-40


@pytest.mark.parametrize("name", ["accuracy", *map(slow, ("brier", "log_loss", "positive_rate"))])
def test_counts_below_0_stay_so_that_means_are_not_biased(name):
    counts = drawn(500, 0.3, 10_000)
    metric = METRICS[name]
    values = counts.mean(
        *{
            "accuracy": (1.0 * (POSITIVE == LABEL), np.ones(64)),
            "positive_rate": (1.0 * LABEL, np.ones(64)),
            "brier": ((LABEL - SCORE) ** 2, np.ones(64)),
            "log_loss": (-np.log(np.where(LABEL == 1, SCORE, 1 - SCORE)), np.ones(64)),
        }[name]
    )
    np.testing.assert_array_equal(values[0], metric.read(counts, POSITIVE)[0])
    g = {
        "accuracy": POSITIVE == LABEL,
        "positive_rate": LABEL,
        "brier": (LABEL - SCORE) ** 2,
        "log_loss": -np.log(np.where(LABEL == 1, SCORE, 1 - SCORE)),
    }[name] * 1.0

    def off(h):
        means = h @ g / 500
        return abs(means.mean() - CELLS @ g) / (means.std() / np.sqrt(len(means)))

    assert off(counts.h) < 5.5
    # the twin sets them to 0
    assert off(np.maximum(counts.h, 0)) > 20 or name == "positive_rate"


@pytest.mark.slow
def test_pairs_are_not_biased_by_the_common_move():
    counts = drawn(50, 0.1, 60_000)
    wins = np.tri(32, k=-1) + np.eye(32) / 2
    expected = 50 * 49 * CELLS[1::2] @ wins @ CELLS[0::2]

    def off(found):
        return abs(found.mean() - expected) / found.std() * np.sqrt(len(found))

    assert off(counts.surplus(wins, np.zeros(60_000))) < 5.5
    # the twin forgets that the noise of cells is dependent once they sum to m
    forgetful = (counts.h[:, 1::2] @ wins * counts.h[:, 0::2]).sum(axis=1)
    assert off(forgetful) > 20


CASES = [(500, 1.0), (2000, 0.3), (2000, 3.0), (20_000, 0.3)]


def coverage(name, counts, cells=CELLS):
    value, low, high = METRICS[name](counts, POSITIVE)
    told = ~np.isnan(value)
    inside = (low <= truth(name, cells) + 1e-9) & (truth(name, cells) - 1e-9 <= high)
    return told.mean(), inside[told].mean()


@pytest.mark.parametrize(
    "name", [name if name in ("accuracy", "brier") else slow(name) for name in METRICS]
)
def test_intervals_cover(name):
    told = 0
    for m, epsilon in CASES:
        share, covered = coverage(name, drawn(m, epsilon))
        told += share > 0.5
        # 0.91 of 1000 and more has a probability below 1e-7 at 0.95
        assert share < 0.5 or covered > 0.91, (m, epsilon)
    assert told >= 2


@pytest.mark.parametrize("name", ["accuracy", "roc_auc", "brier", "recall"])
def test_coverage_is_caught_if_the_noise_is_longer_than_stated(name):
    _, covered = coverage(name, drawn(2000, 0.3, scale=2.0))
    assert covered < 0.91


@pytest.mark.slow
def test_what_says_nothing_is_said_to():
    rare = np.where(LABEL == 1, 0.01, 0.99) * np.tile([1 / 32], 64)
    for name in ("recall", "roc_auc", "f1", "balanced_accuracy"):
        value, *_ = METRICS[name](drawn(500, 0.3, cells=rare), POSITIVE)
        assert np.isnan(value).mean() > 0.95
    assert not np.isnan(METRICS["accuracy"](drawn(500, 3.0, cells=rare), POSITIVE)).any()


def slow_mean(counts, values, weights, moved):
    """The mean of a cell and its interval, from all cells in each step of the bisection."""
    among = weights > 0
    least, upper_end = values[among].min(), values[among].max()
    size, a = counts.h @ weights, counts.h @ (weights * values)
    stands = counts.stands(weights)
    b = np.where(stands, size, 1.0)
    r = np.clip(a / b, least, upper_end)
    spread = (counts.h * weights * (values - r[..., None]) ** 2).sum(axis=-1) / b
    spread = np.clip(spread, 0.0, (upper_end - r) * (r - least))

    def excess(s):
        tilted = spread + np.maximum((least + upper_end - 2 * r) * (s - r), 0.0)
        sampling = b * np.minimum(tilted, (upper_end - s) * (s - least))
        noise = replace(counts, moved=moved).noise(weights * (values - s[..., None]))
        return (a - s * b) ** 2 - Z**2 * (sampling + noise)

    return figure(stands, a / b, r, excess, least, upper_end)


def test_many_means_are_those_of_all_cells():
    rng = np.random.default_rng(0)
    released = rng.poisson(40, (6, 50)) + rng.normal(0, 5.0, (6, 50))
    released[:, 0] -= 30  # too few records in one cell
    counts = NoisyCounts.of(released, 2000.0, 25.0)
    pairs = [
        (rng.random(50) * 9 - 2, np.where(rng.random(50) < p, rng.random(50), 0.0)) for p in (1, 0.5)
    ]
    pairs += [(rng.random(50), 1.0 * (np.arange(50) < k)) for k in (50, 20, 1)]
    found = counts.means(pairs)
    assert found[0].shape == (6, 5) and np.isnan(found[0]).any() and not np.isnan(found[0]).all()
    for j, pair in enumerate(pairs):
        for number, expected in zip(found, slow_mean(counts, *pair, counts.moved)):
            np.testing.assert_allclose(number[:, j], expected, rtol=1e-11, atol=1e-12)
        alone = counts.mean(*pair)
        np.testing.assert_array_equal(np.stack(alone), np.stack(found)[..., j])
    # a twin that takes the noise of the counts for independent after they were moved
    twin = slow_mean(counts, *pairs[0], 10**9)
    assert np.abs(found[1][:, 0] - twin[1]).max() > 1e-4

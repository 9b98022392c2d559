"""Recall, precision and lift where a share of the records is flagged, between two thresholds."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression

from dpselect import evaluate
from dpselect.evaluation import at_rate as module
from dpselect.evaluation.at_rate import at_rate
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.score_bins import score_bins

RATES = (0.05, 0.1, 0.2)


def drawn(m, share, sureness, rng):
    """Labels, and calibrated probabilities of a rare class."""
    y = rng.random(m) < share
    x = rng.normal(size=m) + sureness * y
    odds = share / (1 - share) * norm.pdf(x - sureness) / norm.pdf(x)
    return y.astype(int), odds / (1 + odds)


def counts_of(y, p, epsilon, rng):
    h = np.bincount(2 * score_bins(p) + y, minlength=64).astype(float)
    if epsilon < math.inf:
        q = 1 - math.exp(-epsilon / 2)
        h += rng.geometric(q, 64) - rng.geometric(q, 64)
    return NoisyCounts.of(h, len(y), noise_variance(epsilon))


def truth(y, p, rate):
    flagged = p > np.quantile(p, 1 - rate)
    hits = (y[flagged] == 1).sum()
    return {
        "recall": hits / y.sum(),
        "precision": hits / flagged.sum(),
        "lift": hits / flagged.sum() / y.mean(),
    }


def coverage(share, sureness, m, epsilon, repetitions, seed=0, tables=drawn):
    """How often each figure is told and holds the truth, and how often it is told."""
    rng = np.random.default_rng(seed)
    population = tables(400_000, share, sureness, rng)
    true = {rate: truth(*population, rate) for rate in RATES}
    inside, told = {}, {}
    for _ in range(repetitions):
        counts = counts_of(*tables(m, share, sureness, rng), epsilon, rng)
        for rate in RATES:
            for name in ("recall", "precision"):
                value, low, high = map(float, at_rate(name, rate)(counts, None))
                known = not math.isnan(value)
                told[rate, name] = told.get((rate, name), 0) + known
                hit = known and low <= true[rate][name] <= high
                inside[rate, name] = inside.get((rate, name), 0) + hit
    return inside, told


@pytest.mark.slow
@pytest.mark.parametrize("share, m", [(0.02, 20_000), (0.05, 5_000), (0.1, 5_000)])
def test_intervals_hold(share, m):
    inside, told = coverage(share, 1.5, m, 1.0, 100)
    assert sum(told.values()) > 300
    for key, n in told.items():
        assert inside[key] >= binom.ppf(1e-7, n, 0.93)


def reversed_in_bins(m, share, sureness, rng):
    """Scores of which the positive ones come last in each bin: no counts can tell."""
    y, p = drawn(m, share, sureness, rng)
    bins = score_bins(p)
    edges = (1 - np.cos(np.pi * np.arange(33) / 32)) / 2
    within = np.where(y == 1, 0.25, 0.75) + 0.2 * (rng.random(m) - 0.5)
    return y, edges[bins] + within * (edges[bins + 1] - edges[bins])


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True])
def test_they_hold_in_any_order_within_a_bin(twin, monkeypatch):
    if twin:  # it takes every bin for evenly mixed
        monkeypatch.setattr(module, "_worst", lambda above, here, n, taken, local: even(above, here))
        monkeypatch.setattr(module, "_best", lambda above, here, n, p, taken, local: even(above, here))

    def even(above, here):
        return above + 0.5 * here, above + 0.5 * here, 0.1

    inside, told = coverage(0.05, 1.5, 40_000, 3.0, 40, tables=reversed_in_bins)
    least = min(inside[key] / max(n, 1) for key, n in told.items() if n > 20)
    assert (least > 0.75) == (not twin)


@pytest.mark.parametrize("rate", RATES)
def test_without_noise_it_is_the_truth_of_the_records(rate):
    """Between what the neighbouring thresholds say; exactly so where the rate is that of a threshold."""
    rng = np.random.default_rng(1)
    y, p = drawn(50_000, 0.05, 1.5, rng)
    counts, true = counts_of(y, p, math.inf, rng), truth(y, p, rate)
    for name in ("recall", "precision", "lift"):
        value, low, high = map(float, at_rate(name, rate)(counts, None))
        assert low <= true[name] <= high and value == pytest.approx(true[name], rel=0.05)
    recall, precision, lift = (
        float(at_rate(name, rate)(counts, None)[0]) for name in ("recall", "precision", "lift")
    )
    assert precision == pytest.approx(recall * y.mean() / rate) and lift == pytest.approx(recall / rate)


@pytest.fixture(scope="module")
def evaluation():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_000, 2))
    y = (X[:, 0] + rng.normal(size=20_000) > 1.5).astype(int)
    model = LogisticRegression().fit(X[:10_000], y[:10_000])
    by = np.where(X[10_000:, 1] > 0, "a", "b")
    return evaluate(model, X[10_000:], y[10_000:], epsilon=5.0, by=by, levels=["a", "b"], random_state=1)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
def test_at_the_rate_of_a_threshold_it_is_the_figure_there(evaluation):
    threshold = evaluation.thresholds[12]
    rate = evaluation.metric("selection_rate", threshold).value
    for name in ("recall", "precision"):
        at, there = evaluation.metric(name, rate=rate), evaluation.metric(name, threshold)
        assert at.value == pytest.approx(there.value, abs=1e-9)
        assert at.low == pytest.approx(there.low, abs=0.05)
        assert at.high == pytest.approx(there.high, abs=0.05)
    group = evaluation.group("a").metric("recall", rate=0.2)
    assert group.low < evaluation.metric("recall", rate=0.2).value < group.high


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
def test_what_has_no_rate_is_refused(evaluation):
    with pytest.raises(ValueError, match="name='roc_auc'.*no other figure is told at a rate"):
        evaluation.metric("roc_auc", rate=0.1)
    for rate in (0.0, 1.0, 1.5, "few"):
        with pytest.raises((ValueError, TypeError), match="rate"):
            evaluation.metric("recall", rate=rate)

"""The law of the counts of an evaluation on neighbouring data sets, exactly.

Cells are independent, and each has the law of integers of ratio q: the loss is the largest sum of
logarithms of ratios, which is |c - c'|_1 log(1/q). Twins forget that a replaced record leaves one cell
and enters another, take bins from the records, or take the noise of twice the epsilon.
"""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect import evaluate
from dpselect.evaluation.confidence import ConfidenceCells
from dpselect.evaluation.density import DensityCells
from dpselect.evaluation.multiclass import MulticlassCells
from dpselect.evaluation.regression import RegressionCells
from dpselect.evaluation.release import EvaluationPlan, count
from dpselect.evaluation.score_bins import BinaryCells, score_bins
from dpselect.noise import root_stream

EPSILON = 1.0
SCORES = np.random.default_rng(0).random(40)
LABELS = (SCORES > 0.4).astype(int)
# the records' neighbours: any score with any label in place of the first record's
OTHERS = [(score, label) for score in (0.0, 0.2, 0.5, 0.9, 1.0, np.nan) for label in (0, 1)]


def loss(counted, ratio):
    """The largest loss over the neighbours, at noise with probabilities prop. to ratio ** |k|."""
    first = counted(SCORES, LABELS)
    worst = 0.0
    for score, label in OTHERS:
        scores, labels = SCORES.copy(), LABELS.copy()
        scores[0], labels[0] = score, label
        worst = max(worst, np.abs(first - counted(scores, labels)).sum())
    return worst * math.log(1 / ratio)


def standard_noise(epsilon, size, stream):
    return EvaluationPlan(None, epsilon, random_state=stream).standard_noise(size)


def counted(scores, labels):
    return count(BinaryCells(np.array([0, 1]), True), 1, scores, labels)


def ratio_of_noise(epsilon, cells=64, repetitions=8000):
    """The ratio of neighbouring integers' probabilities in the noise that is drawn."""
    stream = root_stream(0)
    noise = np.concatenate([standard_noise(epsilon, cells, stream.child(i)) for i in range(repetitions)])
    assert len(noise) == cells * repetitions
    zero = np.mean(noise == 0)  # (1 - q) / (1 + q)
    return (1 - zero) / (1 + zero), noise


@pytest.mark.slow
def test_the_loss_is_the_stated_one():
    ratio, noise = ratio_of_noise(EPSILON)
    # within 5.5 standard deviations of a sample of half a million
    assert ratio == pytest.approx(math.exp(-EPSILON / 2), abs=6e-3)
    assert 0.97 < loss(counted, ratio) < 1.03
    # and the noise of cells is independent
    cells = noise.reshape(-1, 64)
    assert np.abs(np.corrcoef(cells.T) - np.eye(64)).max() < 0.08


@pytest.mark.slow
def test_noise_for_one_cell_only_is_caught():
    # a sensitivity of 1, or twice the epsilon
    ratio, _ = ratio_of_noise(2 * EPSILON)
    assert loss(counted, ratio) > 1.9


def test_bins_by_quantiles_of_the_records_are_caught():
    def by_quantiles(scores, labels):
        edges = np.quantile(np.nan_to_num(scores), np.arange(1, 32) / 32)
        cell = 2 * np.searchsorted(edges, np.nan_to_num(scores)) + labels
        return np.bincount(cell, minlength=64)

    assert loss(by_quantiles, math.exp(-EPSILON / 2)) > 1.5


class Fixed(ClassifierMixin, BaseEstimator):
    """A model whose scores are the rows."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        """Do nothing."""

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def test_the_release_is_counts_and_noise_and_nothing_else():
    stream = root_stream(3)
    found = evaluate(Fixed(), SCORES[:, None], LABELS, epsilon=EPSILON, random_state=stream)
    expected = counted(SCORES, LABELS) + standard_noise(EPSILON, 64, stream)
    np.testing.assert_array_equal(found.counts_.ravel(), expected)


def test_equal_counts_give_equal_evaluations():
    # all that is told is a function of the counts: records that fall into the same cells tell the same
    within = np.nextafter(SCORES, 0.5)
    assert (score_bins(within) == score_bins(SCORES)).all() and (within != SCORES).any()
    stream = root_stream(3)
    one, other = (
        evaluate(Fixed(), scores[:, None], LABELS, epsilon=EPSILON, random_state=stream)
        for scores in (SCORES, within)
    )
    assert repr(one) == repr(other) and one._repr_html_() == other._repr_html_()
    computed = {"noisy_counts", "_moved", "thresholds", "probabilities"}
    assert set(vars(one)) - computed == {
        "counts_",
        "edges",
        "max_weight",
        "n_records",
        "classes",
        "calibrated_scores",
        "privacy_",
        "levels",
        "level",
        "of_training_records",
    }


KINDS = {
    "three classes": (
        MulticlassCells(np.arange(3), True),
        lambda rng, n: rng.dirichlet(np.ones(3), size=n),
        lambda rng, n: rng.integers(3, size=n),
    ),
    "three classes, no probabilities": (
        MulticlassCells(np.arange(3), False),
        lambda rng, n: rng.integers(3, size=n),
        lambda rng, n: rng.integers(3, size=n),
    ),
    "confidence": (
        ConfidenceCells(np.arange(3), True),
        lambda rng, n: rng.dirichlet(np.ones(3), size=n),
        lambda rng, n: rng.integers(3, size=n),
    ),
    "regression": (
        RegressionCells((-1.0, 1.0)),
        lambda rng, n: rng.standard_cauchy(size=n),
        lambda rng, n: rng.standard_cauchy(size=n),
    ),
    "density": (
        DensityCells.invented(),
        lambda rng, n: rng.standard_cauchy(size=n) ** 2,
        lambda rng, n: np.zeros(n),
    ),
    "two classes": (
        BinaryCells(np.array([0, 1]), True),
        lambda rng, n: rng.random(n),
        lambda rng, n: rng.integers(2, size=n),
    ),
}


def moved(kind, counted, n_groups):
    """The largest sum of changes of counts when one record, its group included, is replaced."""
    cells, predictions, targets = KINDS[kind]
    rng, worst = np.random.default_rng(0), 0
    records = [predictions(rng, 300), targets(rng, 300), rng.integers(n_groups, size=300)]
    first = counted(cells, n_groups, *(part[:100] for part in records))
    for i in range(100, 300):
        other = [np.concatenate([part[1:100], part[i : i + 1]]) for part in records]
        worst = max(worst, np.abs(first - counted(cells, n_groups, *other)).sum())
    return worst


@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_replaced_record_moves_two_counts(kind, n_groups):
    assert moved(kind, count, n_groups) == 2

    # the twin releases the counts of all groups beside those of each
    def with_totals(cells, n_groups, *records):
        counts = count(cells, n_groups, *records)
        return np.concatenate([counts, counts.reshape(n_groups, -1).sum(axis=0)])

    assert moved(kind, with_totals, n_groups) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_is_counted_once(kind):
    cells, predictions, targets = KINDS[kind]
    rng = np.random.default_rng(0)
    counts = count(cells, 2, predictions(rng, 500), targets(rng, 500), rng.integers(2, size=500))
    assert counts.sum() == 500 and (counts >= 0).all() and len(counts) == 2 * np.prod(cells.shape)

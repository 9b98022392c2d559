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
from dpselect.evaluation.release import standard_noise
from dpselect.evaluation.scores import score_bins, score_counts
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


def counted(scores, labels):
    return score_counts(scores, labels, 1)


def ratio_of_noise(epsilon, cells=64, repetitions=8000):
    """The ratio of neighbouring integers' probabilities in the noise that is drawn."""
    stream = root_stream(0)
    noise = np.concatenate([standard_noise(epsilon, stream.child(i)) for i in range(repetitions)])
    assert len(noise) == cells * repetitions
    zero = np.mean(noise == 0)  # (1 - q) / (1 + q)
    return (1 - zero) / (1 + zero), noise


def test_the_loss_is_the_stated_one():
    ratio, noise = ratio_of_noise(EPSILON)
    # within 5.5 standard deviations of a sample of half a million
    assert ratio == pytest.approx(math.exp(-EPSILON / 2), abs=6e-3)
    assert 0.97 < loss(counted, ratio) < 1.03
    # and the noise of cells is independent
    cells = noise.reshape(-1, 64)
    assert np.abs(np.corrcoef(cells.T) - np.eye(64)).max() < 0.08


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
    expected = counted(SCORES, LABELS) + standard_noise(EPSILON, stream)
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
    assert set(vars(one)) - {"_counts"} == {
        "counts_", "n_records", "classes", "calibrated_scores", "privacy_",
    }

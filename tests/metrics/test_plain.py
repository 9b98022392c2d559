"""Accuracy and R^2 of predictions that are not in memory are scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from dpselect import RowChunks
from dpselect.metrics.exact import accuracy, r_squared

da = pytest.importorskip("dask.array")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ours, theirs", [(accuracy, accuracy_score), (r_squared, r2_score)])
def test_they_are_those_of_scikit_learn(ours, theirs, weighted):
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(3, size=(2, 1000))
    weights = rng.random(1000) if weighted else None
    expected = theirs(y, predicted, sample_weight=weights)
    assert ours(predicted, y, weights) == expected
    lazy = da.from_array(predicted, chunks=300)
    for labels in (y, list(y), da.from_array(y, chunks=170)):
        assert ours(lazy, labels, weights) == pytest.approx(expected, abs=1e-12)


def test_targets_that_do_not_vary():
    y = np.ones(10)
    for predicted in (y, y + 1):
        lazy = da.from_array(predicted, chunks=4)
        assert r_squared(lazy, y) == r_squared(predicted, y)


@pytest.mark.parametrize("ours", [accuracy, r_squared])
def test_weights_of_every_kind(ours):
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(3, size=(2, 1000))
    weights = rng.random(1000)
    for given in (
        RowChunks(np.split(weights, 4).__getitem__, [250] * 4, n_columns=1),
        da.from_array(weights, chunks=170),
    ):
        for rows in (predicted, da.from_array(predicted, chunks=300)):
            assert ours(rows, y, given) == pytest.approx(ours(predicted, y, weights), abs=1e-12)

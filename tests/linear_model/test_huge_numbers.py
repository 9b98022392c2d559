"""Rows of any size count as rows of their bound, as the page "Limits" says."""

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import DPHuberRegressor, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor, DPRidge
from dpselect.noise import root_stream

RNG = np.random.default_rng(0)
X, Y = 0.1 * RNG.normal(size=(300, 3)), RNG.integers(2, size=300)
LONG = np.array([1.0, -0.5, 1.0])


@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(1e4, classes=[0, 1]),
        DPLinearSVC(1e4, classes=[0, 1], norm="l1"),
        DPHuberRegressor(1e4, target_range=(0, 1)),
        DPPoissonRegressor(1e4, target_bound=1),
        DPRidge(1e4, target_range=(0, 1)),
        DPRidge(1e4, target_range=(0, 1), perturbation="objective"),
    ],
    ids=repr,
)
def test_a_huge_row_counts_as_a_long_one(model):
    def fitted(size):
        rows = np.vstack([X[:200], [size * LONG] * 100])
        return clone(model).set_params(random_state=root_stream(0)).fit(rows, Y)

    long = fitted(1e10)
    for size in (1e155, 1e308):
        huge = fitted(size)
        np.testing.assert_allclose(huge.coef_, long.coef_, rtol=1e-6)
        np.testing.assert_allclose(huge.predict([size * LONG]), long.predict([1e10 * LONG]), rtol=1e-6)
    assert not np.allclose(fitted(1e-3).coef_, long.coef_, rtol=1e-3)

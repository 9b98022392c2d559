import numpy as np
import pytest
from scipy import sparse

from dpselect.rows import n_rows, take, take_records


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(1000, 7))


def test_take_keeps_the_container(X):
    import pandas as pd
    import polars as pl

    expected = np.array([3, 1, 1])
    assert (take(X, expected) == X[expected]).all()
    assert take(X.tolist(), expected) == X[expected].tolist()
    assert (take(sparse.csr_array(X), expected).toarray() == X[expected]).all()
    assert (take(pd.DataFrame(X, index=range(1000, 2000)), expected).to_numpy() == X[expected]).all()
    assert (take(pl.DataFrame(X), expected).to_numpy() == X[expected]).all()
    assert n_rows(X) == n_rows(X.tolist()) == n_rows(pl.DataFrame(X)) == 1000


def test_records_are_rows_with_their_labels(X):
    expected = np.array([3, 1, 1])
    rows, labels = take_records(X, list(range(1000)), expected)
    assert (rows == X[expected]).all() and labels == [3, 1, 1]
    rows, labels = take_records(X, None, expected)
    assert (rows == X[expected]).all() and labels is None

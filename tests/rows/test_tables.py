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

    wanted = np.array([3, 1, 1])
    assert (take(X, wanted) == X[wanted]).all()
    assert take(X.tolist(), wanted) == X[wanted].tolist()
    assert (take(sparse.csr_array(X), wanted).toarray() == X[wanted]).all()
    assert (take(pd.DataFrame(X, index=range(1000, 2000)), wanted).to_numpy() == X[wanted]).all()
    assert (take(pl.DataFrame(X), wanted).to_numpy() == X[wanted]).all()
    assert n_rows(X) == n_rows(X.tolist()) == n_rows(pl.DataFrame(X)) == 1000


def test_records_are_rows_with_their_labels(X):
    wanted = np.array([3, 1, 1])
    rows, labels = take_records(X, list(range(1000)), wanted)
    assert (rows == X[wanted]).all() and labels == [3, 1, 1]
    rows, labels = take_records(X, None, wanted)
    assert (rows == X[wanted]).all() and labels is None

import numpy as np
import pytest

from dpselect.rows import cutting


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 500)


@pytest.fixture
def records():
    """2000 records: rows, labels and targets."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 4))
    labels = (X[:, 0] + 0.3 * rng.normal(size=2000) > 0).astype(int)
    return X, labels, X @ [1.0, 0.0, 0.5, 0.0]


@pytest.fixture
def serial():
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        yield

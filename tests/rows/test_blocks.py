import numpy as np
import pytest
from scipy import sparse

from dpselect.rows import block_map, block_sum, cutting


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(1000, 7))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 500)


def gram(block, weight):
    return block.T @ (weight[:, None] * block), weight.sum()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_block_sum(X, container):
    weight = np.arange(1000.0)
    total, count = block_sum(gram, container(X), weight)
    np.testing.assert_allclose(total, X.T @ (weight[:, None] * X), atol=1e-8)
    assert count == weight.sum()


def test_threads_do_not_change_a_bit(X):
    weight = np.random.default_rng(1).random(1000)
    one, two = block_sum(gram, X, weight), block_sum(gram, X, weight, n_jobs=2)
    assert (one[0] == two[0]).all() and one[1] == two[1]


def test_block_map_keeps_the_order(X):
    for n_jobs in (1, 2):
        result = block_map(lambda block: block.sum(axis=1), X, n_jobs=n_jobs)
        np.testing.assert_allclose(result, X.sum(axis=1))


def test_memory_map_is_read_block_by_block(X, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    np.testing.assert_array_equal(
        block_sum(gram, mapped, np.ones(1000))[0], block_sum(gram, X, np.ones(1000))[0]
    )


def test_block_sum_does_not_write_into_what_the_function_returned():
    kept = []

    def keep(block):
        kept.append(block.sum(axis=0))
        return (kept[-1],)

    X = np.ones((10, 500))
    block_sum(keep, X)
    assert all((part == 1).all() for part in kept)

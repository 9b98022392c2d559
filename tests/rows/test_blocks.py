import numpy as np
import pytest
from scipy import sparse

from dpselect.rows import block_map, block_sum, cutting, n_rows, row_blocks, take, take_records


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(1000, 7))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 500)


@pytest.mark.parametrize("n, width", [(1, 1), (1000, 7), (500, 1), (501, 1), (10, 10_000)])
def test_blocks_cover_all_rows_once(n, width):
    blocks = row_blocks(n, width)
    covered = np.concatenate([np.arange(n)[block] for block in blocks])
    assert (covered == np.arange(n)).all()


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

import numpy as np
import pytest
from scipy import sparse

from dpselect.rows import block_map, block_sum, cutting, row_blocks

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(1000, 7))


def gram(block, weight):
    return block.T @ (weight[:, None] * block), weight.sum()


@pytest.mark.parametrize("n, width", [(1, 1), (1000, 7), (500, 1), (501, 1), (10, 10_000)])
def test_blocks_cover_all_rows_once(n, width):
    blocks = row_blocks(n, width)
    covered = np.concatenate([np.arange(n)[block] for block in blocks])
    assert (covered == np.arange(n)).all()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_sums_and_maps_over_dense_blocks_of_all_that_is_aligned(X, container):
    weight, seen = np.arange(1000.0), []

    def first(block, weight):
        seen.append((type(block), len(block)))
        return block[:, 0] + weight

    for n_jobs in (1, 2):
        total, count = block_sum(gram, container(X), weight, n_jobs=n_jobs)
        np.testing.assert_allclose(total, X.T @ (weight[:, None] * X), atol=1e-8)
        assert count == weight.sum()
        found = block_map(first, container(X), weight, n_jobs=n_jobs)
        np.testing.assert_array_equal(found, X[:, 0] + weight)
    assert set(seen) == {(np.ndarray, 71), (np.ndarray, 1000 % 71)}


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_blocks_are_cut_by_entries(container, monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 500)
    X = np.zeros((1000, 40))
    X[:, 3], X[::2, 7] = np.arange(1000), 1.0
    seen = []

    def total(block):
        seen.append((type(block), block.shape[0]))
        return (block.T @ np.ones(block.shape[0]),)

    for n_jobs in (1, 2):
        found = block_sum(total, container(X), n_jobs=n_jobs, row_elements=40, beside=1)[0]
        np.testing.assert_array_equal(found, X.sum(axis=0))
        rows = block_map(lambda block: block @ np.ones(40), container(X), n_jobs=n_jobs, beside=5)
        np.testing.assert_array_equal(rows, X.sum(axis=1))
    # two entries a row, rounded up, so that 250 rows have 500
    assert set(seen) == {(sparse.csr_array, 250)}
    # a block of few rows is not worth a sum of many columns
    assert [rows.stop for rows in cutting.sparse_blocks(sparse.csr_array((10, 5000)), 4000)] == [5, 10]


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_do_not_change_a_bit(X, n_jobs, monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 140)
    weight = np.random.default_rng(1).random(1000) ** 20
    one, several = block_sum(gram, X, weight), block_sum(gram, X, weight, n_jobs=n_jobs)
    assert (one[0] == several[0]).all() and one[1] == several[1]
    backwards = block_sum(gram, X[::-1], weight[::-1])
    assert (one[0] != backwards[0]).any()  # another order is seen


@pytest.mark.parametrize("n_blocks, threads, tasks", [(7, 0, 0), (8, 2, 8), (39, 2, 8), (200, 2, 25)])
def test_each_thread_takes_blocks_that_follow_each_other(n_blocks, threads, tasks, monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 2)
    started, submitted = [], []

    class Pool(cutting.ThreadPoolExecutor):
        def __init__(self, n_threads):
            super().__init__(n_threads)
            started.append(n_threads)

        def submit(self, function, some):
            submitted.append([rows.start for rows in some])
            return super().submit(function, some)

    monkeypatch.setattr(cutting, "ThreadPoolExecutor", Pool)
    (total,) = block_sum(lambda block: (block.sum(),), np.arange(2.0 * n_blocks)[:, None], n_jobs=2)
    assert total == n_blocks * (2 * n_blocks - 1)
    assert (started, len(submitted)) == ([threads][: threads > 0], tasks)
    assert sum(submitted, []) == list(range(0, 2 * n_blocks, 2))[: 2 * n_blocks * (threads > 0)]


def test_a_block_that_fails_in_a_thread_fails_the_pass(X):
    def fail(block):
        if block[0, 0] == X[71 * 9, 0]:
            raise ValueError("the tenth")
        return (block.sum(),)

    with pytest.raises(ValueError, match="the tenth"):
        block_sum(fail, X, n_jobs=2)


def test_what_the_function_returned_is_not_written_into():
    kept = []

    def keep(block):
        kept.append(block.sum(axis=0))
        return (kept[-1],)

    block_sum(keep, np.ones((10, 500)))
    assert kept and all((part == 1).all() for part in kept)


def test_integers_are_added_exactly():
    large = np.int64(2**53)
    (total,) = cutting.add_up([(large,), (np.int8(1),), (np.int8(1),)])
    assert total.dtype == np.int64 and int(total) == 2**53 + 2
    (total,) = cutting.add_up([(np.float32(0.5),), (0.25,)])
    assert total.dtype == np.float64 and total == 0.75


@pytest.mark.parametrize(
    "kinds",
    [
        (np.asarray,) * 3,
        (sparse.csr_matrix,) * 3,
        (np.asarray, sparse.csr_matrix, np.asarray),
        (sparse.csc_array, np.asarray, np.asarray),
    ],
)
def test_blocks_are_joined_in_their_order(kinds):
    """Dense and sparse ones, too: files of one data set may be read so."""
    X = np.arange(12.0).reshape(6, 2)
    joined = cutting.join([kind(X[i : i + 2]) for kind, i in zip(kinds, (0, 2, 4))])
    assert sparse.issparse(joined) == (set(kinds) != {np.asarray})
    np.testing.assert_array_equal(joined.toarray() if sparse.issparse(joined) else joined, X)

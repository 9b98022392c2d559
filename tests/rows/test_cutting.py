import numpy as np
import pytest
from scipy import sparse

from dpselect.rows import cutting, row_blocks


@pytest.fixture(autouse=True)
def small(small_blocks):
    """Blocks of 500 elements."""


@pytest.mark.parametrize("n, width", [(1, 1), (1000, 7), (500, 1), (501, 1), (10, 10_000)])
def test_blocks_cover_all_rows_once(n, width):
    blocks = row_blocks(n, width)
    covered = np.concatenate([np.arange(n)[block] for block in blocks])
    assert (covered == np.arange(n)).all()


def test_functions_see_blocks_of_all_that_is_aligned():
    X, y = np.arange(1200.0).reshape(400, 3), np.arange(400)
    seen = list(cutting.over_blocks(lambda X, y: (X[:, 0], y), X, [y], 3))
    assert [len(y) for _, y in seen] == [166, 166, 68]
    assert all((column == 3 * y).all() for column, y in seen)
    dense = cutting.over_blocks(type, sparse.csr_array(X), [], 3)
    assert set(dense) == {np.ndarray}


def test_integers_are_added_exactly():
    large = np.int64(2**53)
    (total,) = cutting.add_up([(large,), (np.int8(1),), (np.int8(1),)])
    assert total.dtype == np.int64 and int(total) == 2**53 + 2
    (total,) = cutting.add_up([(np.float32(0.5),), (0.25,)])
    assert total.dtype == np.float64 and total == 0.75


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_blocks_are_joined_in_their_order(container):
    X = np.arange(12.0).reshape(6, 2)
    joined = cutting.join(container(X[i : i + 2]) for i in range(0, 6, 2))
    assert sparse.issparse(joined) == (container is sparse.csr_matrix)
    found = joined.toarray() if sparse.issparse(joined) else joined
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("first, second", [
    (np.asarray, sparse.csr_matrix), (sparse.csc_array, np.asarray),
])
def test_dense_and_sparse_blocks_are_joined(first, second):
    # as files of one data set may be read
    X = np.arange(12.0).reshape(6, 2)
    joined = cutting.join([first(X[:2]), second(X[2:])])
    np.testing.assert_array_equal(joined.toarray(), X)

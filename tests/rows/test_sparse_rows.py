import numpy as np
import pytest
from scipy import sparse

from dpselect.rows import canonical, on_each_row, row_sums, transposed
from dpselect.rows.sparse_rows import rows_between


def untidy(rng, shape=(50, 6), kind=sparse.csr_array):
    """Entries out of order, stored twice, and zeros; and what says that there are none of these."""
    n, d = shape
    columns = rng.integers(d, size=(n, 2 * d))
    entries = rng.normal(size=(n, 2 * d)) * (rng.random((n, 2 * d)) < 0.5)
    X = kind((entries.ravel(), columns.ravel(), np.arange(n + 1) * 2 * d), shape=shape)
    X.has_canonical_format = True
    return X


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_entries_are_stored_once_and_in_order_whatever_the_matrix_says(kind):
    X = untidy(np.random.default_rng(0), kind=kind)
    before, dense = X.data.copy(), X.toarray()
    tidy = canonical(X)
    assert type(tidy) is sparse.csr_array and (np.diff(tidy.indptr) <= 6).all()
    assert all((np.diff(row.indices) > 0).all() for row in (tidy[[i]] for i in range(50)))
    np.testing.assert_allclose(tidy.toarray(), dense, rtol=1e-14)
    np.testing.assert_array_equal(X.data, before)
    assert canonical(dense) is dense


def test_slices_and_factors():
    X = canonical(untidy(np.random.default_rng(1)))
    numbers = np.arange(1.0, 51)[:, None]
    for rows in (slice(0, 0), slice(0, 7), slice(7, 50)):
        part = rows_between(X, rows)
        np.testing.assert_array_equal(part.toarray(), X.toarray()[rows])
        for operation in (np.multiply, np.divide):
            np.testing.assert_array_equal(
                on_each_row(operation, part, numbers[rows]).toarray(),
                on_each_row(operation, part.toarray(), numbers[rows]),
            )


@pytest.mark.parametrize("empty", [[], [0], [3, 4], [49], [0, 1, 48, 49], range(50)])
def test_sums_of_rows(empty):
    X = canonical(sparse.random(50, 30, 0.2, format="csr", random_state=0))
    X = canonical(sparse.csr_array(X.toarray() * ~np.isin(np.arange(50), empty)[:, None]))
    for rows in (slice(0, 0), slice(0, 7), slice(7, 50)):
        part = rows_between(X, rows)
        np.testing.assert_allclose(
            row_sums(part, part.data**2), (X.toarray()[rows] ** 2).sum(axis=1), rtol=1e-14
        )


def test_a_block_copies_no_entry_however_long_the_table_is():
    X = canonical(sparse.random(400, 30, 0.2, format="csr", random_state=0))
    block = rows_between(X, slice(10, 40))
    for part, dense in ((block, X.toarray()[10:40]), (transposed(block), X.toarray()[10:40].T)):
        assert np.shares_memory(part.data, X.data) and np.shares_memory(part.indices, X.indices)
        np.testing.assert_array_equal(part.toarray(), dense)
        np.testing.assert_allclose(part @ np.eye(part.shape[1]), dense)

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpselect import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    RowChunks,
)
from dpselect.linear_model.design import Design, design_and_targets
from dpselect.noise import root_stream
from dpselect.rows import as_lazy, cutting
from dpselect.utils.validation import SMALLEST_BOUND
from tests.trials import trial


def explicit(X, R, s):
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    A = X * np.minimum(1, R / np.where(norms > 0, norms, 1))
    return A if s is None else np.hstack([A, np.full((len(X), 1), s)])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, np.float32])
@pytest.mark.parametrize("block", [256, 1 << 18])
def test_many_passes_see_what_one_does(kind, block, monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", block)
    rng = np.random.default_rng(1)
    design, G = Design(kind(3 * rng.normal(size=(200, 4))), 1.3, 0.7), rng.normal(size=(200, 3))
    design.weight = rng.random((200, 1))

    def products(rows, g):
        seen.append(len(g))
        return (rows.adjoint_dot(rows.weighted(g)), rows.gram(rows.weight[:, 0]))

    seen, sums = [], design.sums(G, columns=3)
    for _ in range(2):
        for one, other in zip(
            sums(products, 3, dense=True), design.sum(products, G, columns=3, dense=True)
        ):
            if block > 256 and not design.sparse:
                # a clipped copy is made, whose products round in another way
                assert one == pytest.approx(other, rel=1e-13, abs=1e-13)
            else:
                assert np.array_equal(one, other)
    assert (seen == [200] * 4) == (block > 256)


@pytest.mark.parametrize("s", [None, 0.7])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_products(s, container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * rng.exponential(size=(200, 1))
    X[0] = 0
    A, design = explicit(X, 1.3, s), Design(container(X), 1.3, s)
    d = A.shape[1]
    assert (design.n_rows, design.n_columns) == (200, d)
    assert np.isclose(design.radius, np.hypot(1.3, s or 0))
    W, G, c = rng.normal(size=(d, 3)), rng.normal(size=(200, 3)), rng.random(200)
    np.testing.assert_allclose(design.dot(W), A @ W)
    (total,) = design.sum(lambda rows, g: (rows.adjoint_dot(g),), G, columns=3)
    np.testing.assert_allclose(total, A.T @ G, atol=1e-12)
    (total,) = design.sum(lambda rows, c: (rows.gram(c),), c, columns=1, dense=True)
    np.testing.assert_allclose(total, (A.T * c) @ A, atol=1e-12)


def test_sparse_rows_are_clipped_whatever_way_their_entries_are_stored():
    """Two entries of one place count as their sum, and twins that square them one by one are caught."""
    one, twice = ([1.0, 1.0, 3.0, -4.0, 0.0], [0, 0, 1, 0, 1], [0, 2, 5]), ([2.0], [0], [0, 1])
    for entries, norms in ((one, [2.0, 5.0]), (twice, [2.0])):
        X = sparse.csr_array(entries, shape=(len(norms), 3))
        X.has_canonical_format = True
        design = Design(X, 1.0, None)
        np.testing.assert_allclose(np.linalg.norm(design.dot(np.eye(3)), axis=1), 1.0)
        np.testing.assert_allclose(1 / design.factor[:, 0], norms)
    l1 = Design(sparse.csr_array(one, shape=(2, 3)), np.inf, None, data_norm_l1=1.0)
    np.testing.assert_allclose(1 / l1.factor[:, 0], [2.0, 7.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_sparse_rows_agree_with_dense_ones(dtype):
    rng = np.random.default_rng(2)
    X = (10 * rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.1)).astype(dtype)
    y, weight = np.arange(300) % 2, 3 * rng.random(300)
    noise = dict(random_state=root_stream(0), classes=[0, 1], data_norm=5.0, data_norm_l1=8.0)
    noise["max_sample_weight"] = 2.0
    for model in (DPLogisticRegression(**noise), DPLinearSVC(**noise, norm="l1")):
        dense, thin = (
            clone(model).fit(rows, y, sample_weight=weight) for rows in (X, sparse.csr_matrix(X))
        )
        np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-6)
        np.testing.assert_allclose(
            dense.decision_function(sparse.csc_array(X)),
            dense.decision_function(X),
            rtol=1e-10,
            atol=1e-12,
        )


def test_no_pass_makes_sparse_rows_dense(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a sparse matrix was made dense")

    X = sparse.csr_array(sparse.random(400, 5000, 0.002, format="csr", random_state=3))
    X.data[:5] = 1e300  # rows that are scaled before any product
    for kind in (sparse.csr_array, sparse.csc_array):
        monkeypatch.setattr(kind, "toarray", refuse)
        monkeypatch.setattr(kind, "todense", refuse)
    noise = dict(random_state=root_stream(0))
    for model, y in (
        (DPLogisticRegression(classes=[0, 1, 2], **noise), np.arange(400) % 3),
        (DPLinearSVC(classes=[0, 1], data_norm_l1=1.0, **noise), np.arange(400) % 2),
        (DPPoissonRegressor(target_bound=3.0, **noise), np.arange(400.0) % 3),
        (DPHuberRegressor(target_range=(0.0, 400.0), **noise), np.arange(400.0)),
    ):
        assert np.isfinite(model.fit(X, y).predict(X)).all()


def test_no_row_is_longer_than_the_norm():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100_000, 3)) * 10 ** rng.uniform(-5, 100, size=(100_000, 1))
    rows = Design(X, 1.0, None, data_norm_l1=1.4).factor * X
    assert np.linalg.norm(rows, axis=1).max() <= 1.0
    assert np.abs(rows).sum(axis=1).max() <= 1.4


def test_rows_too_large_to_be_squared_are_scaled_down():
    X = np.array([[3e200, 4e200], [1e308, 1e308], [-1e308, 0.0], [1e-320, 0.0], [0.5, 0.0]])
    design = Design(X, 1.0, 1.0)
    W = np.array([[1e4], [1e4], [0.0]])
    with np.errstate(all="raise", under="ignore"):
        products = design.dot(W).ravel()
    expected = 1e4 * np.array([1.4, 2**0.5, -1.0, 0.0, 0.5])
    np.testing.assert_allclose(products, expected, atol=1e-6)


def test_sparse_rows_too_large_to_be_squared_are_scaled_down():
    X = np.array([[3e200, 4e200], [1e308, 1e308], [-1e308, 0.0], [1e-320, 0.0], [0.5, 0.0]])
    W = np.array([[1e4], [1e4], [0.0]])
    with np.errstate(all="raise", under="ignore"):
        products = Design(sparse.csr_array(X), 1.0, 1.0).dot(W)
    np.testing.assert_allclose(products, Design(X, 1.0, 1.0).dot(W), rtol=1e-14)


@pytest.mark.parametrize("scale", [SMALLEST_BOUND, 1.0, 1 / SMALLEST_BOUND])
@pytest.mark.parametrize("l2, l1", [(1.0, np.inf), (np.inf, 1.0), (1.0, 1.2)])
@pytest.mark.parametrize("direction", [[0.6, -0.8], [0.0, 1.0]])
def test_rows_of_all_lengths_are_clipped_without_a_word(l2, l1, direction, scale):
    lengths = 10.0 ** np.arange(-323, 308)[:, None]
    X = lengths * np.array(direction)
    # a warning would tell that some row is so short
    with np.errstate(all="raise", under="ignore"):
        rows = Design(X, l2 * scale, None, data_norm_l1=l1 * scale).factor * X

    def share(rows):
        norms = np.linalg.norm(rows, axis=1) / l2, np.abs(rows).sum(axis=1) / l1
        return np.maximum(*norms)

    reached, size = share(rows / scale), share(X / lengths) * lengths[:, 0]
    assert reached.max() <= 1.0
    assert (reached[(size > scale) & (size / 1e290 < scale)] > 1 - 1e-12).all()
    assert (rows[size < 0.9 * scale] == X[size < 0.9 * scale]).all()


@pytest.mark.parametrize("labels", [["b", "a"], ["b", "c", "a"]])
def test_one_problem_for_two_classes_and_else_one_for_each(labels):
    X = np.arange(12.0).reshape(6, 2)
    y = np.array(labels)[np.arange(6) % len(labels)]
    model = DPLogisticRegression(classes=labels, data_norm=2.0, intercept_scaling=0.5)
    records = trial(model).records(X, y)
    design, signs = design_and_targets(model.problem(), records)
    assert list(records.classes) == sorted(labels) and records.public["n_features_in_"] == 2
    positive = ["b"] if len(labels) == 2 else ["a", "b", "c"]
    assert signs.dtype == np.int8
    assert (signs == np.where(y[:, None] == positive, 1, -1)).all()
    assert (design.n_rows, design.n_columns, design.constant) == (6, 3, 0.5)
    np.testing.assert_allclose(np.linalg.norm(design.factor[1:] * X[1:], axis=1), 2.0)


def test_entries_that_are_stored_twice_and_add_up_to_infinity():
    # each entry is finite, so that scikit-learn's check lets them pass
    X = sparse.csr_array(([1e308, 1e308], [0, 0], [0, 2, 2]), shape=(2, 3))
    with pytest.raises(ValueError, match="X contains infinity"):
        DPLogisticRegression(classes=[0, 1]).fit(X, [0, 1])


def test_rows_that_come_in_another_order_in_each_pass_are_clipped_all_the_same():
    X, passes = np.linspace(0.01, 50.0, 20)[:, None] * [0.6, -0.8], itertools.count()
    chunks = RowChunks(lambda i: np.roll(X, next(passes), axis=0), [20], 2)
    design = Design(as_lazy(chunks), 1.0, None)
    for _ in range(3):
        assert np.linalg.norm(design.dot(np.eye(2)), axis=1).max() <= 1.0
        smaller, _ = design.sample(15, np.arange(20))
        assert np.linalg.norm(smaller.dot(np.eye(2)), axis=1).max() <= 1.0

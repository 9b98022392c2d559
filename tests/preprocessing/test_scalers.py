import numpy as np
import pytest
from scipy import sparse

from dpselect.preprocessing import BoundedScaler, NormClipper


def test_bounded_scaler():
    X = np.array([[0.0, -5.0], [10.0, 5.0], [99.0, -99.0]])
    scaler = BoundedScaler([(0, 10), (-5, 5)])
    np.testing.assert_allclose(scaler.fit_transform(X), [[-1, -1], [1, 1], [1, -1]])
    np.testing.assert_allclose(BoundedScaler((0, 10)).fit_transform(X[:, :1]).ravel(), [-1, 1, 1])


def test_bounded_scaler_set_output():
    import pandas as pd

    frame = pd.DataFrame({"age": [60.0], "dose": [1.0]})
    out = BoundedScaler((0, 120)).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["age", "dose"] and out.loc[0, "age"] == 0.0


def test_bounds_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"dose": [1.0], "age": [60.0]})
    scaler = BoundedScaler({"age": (0, 120), "dose": (0, 1)})
    assert scaler.fit_transform(frame).tolist() == [[1, 0]]  # by name
    assert scaler.fit_transform([[60, 1]]).tolist() == [[0, 1]]  # in order
    other = {"age": (0, 1), "dosis": (0, 1)}
    for bounds, table in (({"age": (0, 1)}, frame), (other, frame), ({}, [[1]])):
        with pytest.raises(ValueError, match="^bounds says"):
            BoundedScaler(bounds).fit(table)


@pytest.mark.parametrize("bounds", [(1, 0), (0, np.inf), [(0, 1)] * 3, 5.0, [(0, np.nan), (0, 1)]])
def test_bounds_must_bound(bounds):
    with pytest.raises(ValueError, match="bounds"):
        BoundedScaler(bounds).fit(np.zeros((2, 2)))


@pytest.mark.parametrize("norm, order", [("l1", 1), ("l2", 2)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_norm_clipper(norm, order, container):
    X = np.random.default_rng(0).normal(size=(100, 3)) * 2
    X[0] = 0
    Z = NormClipper(norm, 1.5).fit_transform(container(X))
    Z = Z.toarray() if sparse.issparse(Z) else Z
    norms = np.linalg.norm(X, order, axis=1)
    assert np.linalg.norm(Z, order, axis=1).max() <= 1.5 * (1 + 1e-12)
    np.testing.assert_array_equal(Z[norms <= 1.5], X[norms <= 1.5])
    np.testing.assert_allclose(Z[norms > 1.5], X[norms > 1.5] * (1.5 / norms[norms > 1.5])[:, None])


@pytest.mark.parametrize("norm, order", [("l1", 1), ("l2", 2)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_norm_clipper_scales_numbers_whose_squares_overflow(norm, order, container):
    row = np.array([1.0, -0.5, 0.25])
    Z = NormClipper(norm, 1.5).fit_transform(container(row * [[1e10], [1e155], [1e308]]))
    Z = Z.toarray() if sparse.issparse(Z) else Z
    np.testing.assert_allclose(Z, [row * (1.5 / np.linalg.norm(row, order))] * 3, rtol=1e-12)
    assert np.linalg.norm(Z, order, axis=1).max() <= 1.5 * (1 + 1e-15)


@pytest.mark.parametrize(
    "parameters", [{"norm": "max"}, {"bound": 0}, {"bound": "1"}, {"bound": 1e-200}]
)
def test_norm_clipper_parameters(parameters):
    with pytest.raises((ValueError, TypeError), match="norm|bound"):
        NormClipper(**parameters).fit(np.ones((2, 2)))

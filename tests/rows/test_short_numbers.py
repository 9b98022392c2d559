"""Rows of short numbers: blocks become float64 when they are read, and the table never does."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

from dpselect import (
    DPHistogramDensity,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    SeededNoiseWarning,
)
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, NormClipper, TableEncoder

TYPES = [np.float32, np.float16, np.int64, np.int8, np.uint16, np.bool_, ">f4", np.longdouble]
ESTIMATORS = [
    DPLogisticRegression(classes=[0, 1], data_norm=2.0, max_iter=5),
    DPRidge(target_range=(0, 1)),
    DPRidge(target_range=(0, 1), norm="l1", data_norm=2.0),
    DPPoissonRegressor(target_bound=1.0),
    DPHistogramDensity(bounds=(-3, 3), bin_width=1.0),
    DPBoundsScaler(),
]
STEPS = [
    BoundedScaler((-1, 1)),
    NormClipper("l1", 2.0),
    NormClipper(),
    TableEncoder((-3, 3)),
    TableEncoder((-3, 3), sparse_output=True),
]


def fitted(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        estimator = type(estimator)(**estimator.get_params()).set_params(random_state=3)
        return estimator.fit(X, y)


def answers(model, X):
    for name in ("transform", "predict", "decision_function", "score_samples"):
        if hasattr(model, name):
            yield getattr(model, name)(X)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return np.round(rng.normal(0, 1.5, size=(300, 3))), rng.integers(2, size=300)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_they_give_what_doubles_give(data, estimator, dtype, order):
    X, y = np.array(abs(data[0]), dtype, order=order), data[1]
    doubles = np.array(X, np.float64, order=order)
    model, other = fitted(estimator, X, y), fitted(estimator, doubles, y)
    for name, value in vars(other).items():
        if name.endswith("_") and name not in ("privacy_",):
            np.testing.assert_array_equal(getattr(model, name), value)
    X, doubles = X[::-1].copy(), doubles[::-1].copy()  # which nobody remembers as training records
    for found, expected in zip(answers(model, X), answers(model, doubles), strict=True):
        assert found.dtype == expected.dtype and (found == expected).all()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("step", STEPS)
def test_steps_make_doubles_of_them(data, step, dtype):
    X = abs(data[0]).astype(dtype)
    found, expected = step.fit(X).transform(X), step.fit(X).transform(X.astype(np.float64))
    assert found.dtype == np.float64 and abs(found - expected).max() == 0


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("estimator", ESTIMATORS[:4])
@pytest.mark.parametrize("dtype, large", [(np.float32, 2.0**24), (np.int8, 127)])
def test_sparse_ones_are_added_as_doubles(data, estimator, dtype, large):
    once, y = sparse.csr_array(abs(data[0]).astype(dtype)), data[1]
    # as short numbers the sum of what the first row stores three times would be another one
    entries = np.append(np.array([large, 1, 1], dtype), once.data)
    starts = np.append(0, once.indptr[1:] + 3)
    X = sparse.csr_array((entries, np.append([1, 1, 1], once.indices), starts), shape=once.shape)
    model, other = fitted(estimator, X, y), fitted(estimator, X.astype(np.float64), y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.predict(X.copy()), other.predict(X.astype(np.float64)))
    found = NormClipper(bound=1e9).fit(X).transform(X)
    assert found.dtype == np.float64 and found.toarray()[0, 1] == large + 2 + float(once[0, 1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gaps_and_infinity_are_refused(data, estimator, bad):
    X = data[0].astype(np.float32)
    X[7, 1] = bad
    with pytest.raises(ValueError, match="Input X contains"):
        fitted(estimator, X, data[1])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_number_beyond_float64_is_infinite(data, estimator):
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("long doubles are doubles here")
    X = data[0].astype(np.longdouble)
    X[7, 1] = np.longdouble(10) ** 400
    with pytest.raises(ValueError, match="Input X contains infinity"):
        fitted(estimator, X, data[1])


def peak(function, X):
    """Memory that was held at a time, in units of that of X."""
    function()
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / X.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("estimator", [ESTIMATORS[0], ESTIMATORS[1], ESTIMATORS[3]])
def test_a_table_of_them_is_never_held_as_doubles(estimator, dtype):
    rng = np.random.default_rng(0)
    X, y = (9 * rng.normal(size=(20_000, 100))).astype(dtype), rng.integers(2, size=20_000)
    doubles = 8 / np.dtype(dtype).itemsize
    assert peak(lambda: fitted(estimator, X, y), X) < 0.75 * doubles  # and blocks of 2 MB, of 16
    model = fitted(estimator, X, y)
    assert peak(lambda: model.predict(X), X) < 0.5 * doubles


@pytest.mark.parametrize("step", [BoundedScaler((-1, 1)), NormClipper(), TableEncoder((-1, 1))])
def test_a_step_holds_its_result_and_no_more(step):
    X = np.random.default_rng(0).normal(size=(50_000, 40))
    step.fit(X)
    result = step.transform(X[:1]).shape[1] / 40
    assert peak(lambda: step.transform(X), X) < 1.35 * result + 0.3

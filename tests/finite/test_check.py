"""The library's own check of finite numbers: no setting turns it off, and finite tables pass it."""

import tracemalloc

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.utils import assert_all_finite

from dpselect import DPHuberRegressor, DPPoissonRegressor, DPRidge
from dpselect.utils.finite import BLOCK, check_finite

RNG = np.random.default_rng(0)
TABLE = RNG.uniform(-1, 1, (3 * BLOCK // 7, 7))
FORMS = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "long": np.longdouble,
    "complex": np.complex128,
    "Fortran": np.asfortranarray,
    "reversed": lambda table: table[::-1, ::-1],
    "csr": sparse.csr_array,
    "coo": sparse.coo_matrix,
}


def said(check, *args, **kwargs):
    try:
        check(*args, **kwargs)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", [(0, 0), (BLOCK // 7 + 1, 3), (-1, -1)])
def test_it_says_what_scikit_learn_says(form, place):
    for value in (None, np.nan, np.inf, -np.inf):
        table = TABLE.copy()
        if value is not None:
            table[place] = value
        table = FORMS[form](table)
        for allow_nan in (False, True):
            expected = said(assert_all_finite, table, input_name="X", allow_nan=allow_nan)
            assert (expected is None) == (value is None or (allow_nan and np.isnan(value)))
            with sklearn.config_context(assume_finite=True), np.errstate(all="raise"):
                assert said(check_finite, table, "X", allow_nan) == expected
                # the twin
                assert said(assert_all_finite, table, input_name="X", allow_nan=allow_nan) is None


def test_opposite_infinities_and_a_gap_that_comes_last():
    table = TABLE.copy()
    table[0, 0], table[1, 0] = np.inf, -np.inf
    assert "infinity" in said(check_finite, table, "X")
    table[-1, -1] = np.nan
    assert said(check_finite, table, "X") == "Input X contains NaN."
    assert "infinity" in said(check_finite, table, "X", allow_nan=True)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (np.float64, 1.7e308),
        (np.float32, 3.4e38),
        (np.float16, 65504.0),
        (np.longdouble, "1.1e4932"),
        (np.complex128, 1.7e308 + 1.7e308j),
    ],
)
def test_finite_numbers_pass_whose_sum_is_not(dtype, number):
    table = np.full((1000, 3), dtype(number))
    with np.errstate(all="ignore"):
        assert dtype is np.float16 or not np.isfinite(table.sum())
    assert said(check_finite, table, "X") is None
    assert said(check_finite, -table, "X") is None
    table[999, 2] = np.nan
    assert said(check_finite, table, "X") is not None


def test_objects_and_what_cannot_hold_a_gap():
    for values in (["a", "b"], [1, 2], [True], np.array([None, "a"], dtype=object), []):
        assert said(check_finite, np.asarray(values), "y") is None
    assert said(check_finite, np.array(["a", np.nan], dtype=object), "y") == "Input y contains NaN."


def test_arrays_of_other_classes_are_looked_at():
    table = np.ma.masked_invalid([[0.5, np.nan]])
    assert np.isfinite(table.sum())
    assert said(check_finite, table, "X") == "Input X contains NaN."


def peak(table):
    tracemalloc.start()
    said(check_finite, table, "X")
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_it_makes_no_array_of_booleans():
    table = np.zeros((200_000, 10))
    table[0, 0] = 1.0
    assert peak(table) < 10_000  # bytes
    # where the sum says nothing, a block at a time
    assert peak(np.full((200_000, 10), 1e305)) < 4 * BLOCK < table.size
    assert peak(np.asfortranarray(table).astype(np.float16)) < 4 * BLOCK


REGRESSIONS = {
    "ridge": lambda: DPRidge(target_range=(-1, 1)),
    "huber": lambda: DPHuberRegressor(target_range=(-1, 1)),
    "poisson": lambda: DPPoissonRegressor(target_bound=2.0),
}
X = RNG.uniform(-0.5, 0.5, (40, 2))


def targets(value, dtype=object):
    y = np.abs(X[:, 0]).astype(dtype)
    y[3] = value
    return y


@pytest.mark.parametrize("make", REGRESSIONS.values(), ids=REGRESSIONS)
@pytest.mark.parametrize(
    "y",
    [
        targets(np.inf),
        targets(-np.inf),
        targets(np.nan),
        targets(None),
        targets("nan").astype(str).astype(object),
        targets("-inf").astype(str).astype(object),
        targets(np.longdouble("1e400"), np.longdouble),
    ],
    ids=["inf", "-inf", "nan", "None", "text nan", "text inf", "long double"],
)
def test_targets_are_finite_once_they_are_numbers(make, y):
    model = make()
    with pytest.raises((TypeError, ValueError), match=r"\by\b"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
    y = y.copy()
    y[3] = type(y[0])(0.25)
    assert np.isfinite(model.fit(X, y).coef_).all()

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpselect.records.held_records import HeldRecords

X = np.arange(12.0).reshape(6, 2) + 0.123456789
Y = np.arange(6)


@pytest.mark.parametrize(
    "rows", [X, X.tolist(), pd.DataFrame(X), sparse.csr_array(X)], ids=lambda r: type(r).__name__
)
def test_containers(rows):
    records = HeldRecords(rows, Y)
    assert len(records) == 6
    assert records.evaluate(lambda X, y: X is rows and y is Y)


def test_values_are_clipped():
    found = [-1.0, 0.25, 1.5, np.nan, np.inf, -np.inf]
    values = HeldRecords(X, None).values(lambda X, y: found)
    np.testing.assert_array_equal(values, [0.0, 0.25, 1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(HeldRecords(X, Y).values(lambda X, y: y > 3), [0, 0, 0, 0, 1, 1])


@pytest.mark.parametrize("found", [0.5, np.ones(5), np.ones((6, 1)), np.ones((6, 2))])
def test_one_number_for_each_record(found):
    with pytest.raises(ValueError, match=r"return an array of shape \(6,\)"):
        HeldRecords(X, Y).values(lambda X, y: found)


def test_nothing_is_said_of_the_records():
    def talks(X, y):
        warnings.warn(f"saw {X[0, 0]}", stacklevel=2)
        return np.log(-X[:, 0])

    def fails(X, y):
        raise KeyError(X[0, 0])

    def quotes(X, y):
        return [str(X[0, 0]) + "?"] * 6

    records = HeldRecords(X, Y)
    np.testing.assert_array_equal(records.values(talks), 0.0)
    for function in (fails, quotes):
        with pytest.raises(ValueError) as caught:
            records.values(function)
        assert "123456789" not in str(caught.value)
        assert caught.value.__context__ is None and caught.value.__cause__ is None
    with pytest.raises(KeyError, match="123456789"):
        records.values(fails, quietly=False)


def test_neither_shown_nor_pickled_nor_copied():
    records = HeldRecords(X, Y)
    assert "123456789" not in repr(records)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            copied(records)


def test_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        HeldRecords(X, Y[:5])
    with pytest.raises(ValueError, match="no records"):
        HeldRecords(X[:0], Y[:0])


def test_how_many_records_a_function_kept_is_not_said():
    held = HeldRecords(np.arange(10.0)[:, None], None)
    with pytest.raises(ValueError) as caught:
        held.values(lambda X, y: X[X[:, 0] > 6, 0])
    assert "3" not in str(caught.value) and caught.value.__context__ is None

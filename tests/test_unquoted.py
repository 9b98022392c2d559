import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import validate_data

from dpselect import DPLogisticRegression, PrivacyLeakWarning
from dpselect.records.records import numeric_rows
from dpselect.utils.validation import unquoted

SECRET = 0.7316542890123


@pytest.mark.parametrize(
    "given, words",
    [
        (np.full(3, SECRET), "Reshape your data"),
        (SECRET, "scalar array"),
        (np.full((2, 2), SECRET + 1j), "Complex data not supported"),
        (np.array([["SECRET", "1"]]), "text"),
        ([[SECRET], [SECRET, 1.0]], "lengths"),
        ([[{SECRET: 1}]], "dict"),
        (np.array([[10**400]], dtype=object), "array"),
    ],
)
def test_no_record_is_quoted(given, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        unquoted(check_array, given, dtype=np.float64)
    error = caught.value
    assert error.__context__ is None and error.__cause__ is None
    assert "7316" not in str(error) and "SECRET" not in str(error) and str(error)[0] in "XEC"


def test_what_quotes_nothing_is_kept():
    for given, words in (
        ([[np.nan]], "Input contains NaN|Input X contains NaN"),
        (np.empty((0, 2)), "0 sample"),
        (sparse.csr_array(np.eye(2)), "Sparse data was passed"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            unquoted(check_array, given, input_name="X")


def test_names_what_was_checked():
    with pytest.raises(ValueError, match="^y holds text"):
        unquoted(column_or_1d, ["SECRET"], dtype=np.float64, what="y")
    assert unquoted(column_or_1d, [1.0, 2.0]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize(
    "given",
    [
        np.ones((3, 2)),
        np.ones((3, 3)),
        np.array([[0.5, np.nan]]),
        np.array([[np.inf, 0.5]]),
        np.array([[np.inf, -np.inf]]),
        np.array([[np.nan, 1.0, 1.0]]),
        np.empty((0, 2)),
        np.empty((3, 0)),
        np.ones(2),
        np.ones((2, 1, 1)),
        np.ones((3, 2), dtype=object),
        np.ones((3, 2), dtype=">f8"),
        np.ones((3, 2), dtype="f2"),
        np.ones((3, 2), order="F")[::-1],
        np.ma.ones((3, 2)),
    ],
)
def test_tables_are_checked_as_scikit_learn_checks_them(given, reset):
    def checked(check):
        model = DPLogisticRegression().fit(np.eye(2), [0, 1])
        try:
            X = check(model, given, dtype=np.float64, reset=reset, accept_sparse="csr")
            return X.tolist(), X.dtype, type(X), model.n_features_in_
        except ValueError as error:
            return str(error), model.n_features_in_

    def ours(model, X, dtype, **checks):
        return numeric_rows(model, X, **checks)

    with pytest.warns(PrivacyLeakWarning):
        assert checked(ours) == checked(lambda *args, **checks: unquoted(validate_data, *args, **checks))

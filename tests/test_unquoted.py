import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import check_array, column_or_1d

from dpselect.validation import unquoted

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

"""An estimator that does not read rows lazily gets an array, or an error in place of a gathering."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from dpselect.records.records import numeric_rows, one_label_a_row
from dpselect.rows import as_lazy

from .kinds import few_forms


@pytest.mark.usefixtures("serial")
def test_rows_that_are_needed_in_one_place(records, tmp_path):
    X, labels, _ = records
    for name, (rows, y) in few_forms(X, labels, tmp_path).items():
        for given in (rows, as_lazy(rows)):
            if name == "dask":
                with pytest.raises(TypeError, match="on a cluster"):
                    numeric_rows(BaseEstimator(), given, y)
                continue
            found, found_y = numeric_rows(BaseEstimator(), given, y)
            assert isinstance(found, np.ndarray) and isinstance(found_y, np.ndarray)
            np.testing.assert_array_equal(found, X)
            np.testing.assert_array_equal(found_y, labels)


@pytest.mark.usefixtures("serial")
def test_labels_on_a_cluster_come_to_rows_in_memory(records, tmp_path):
    X, labels, _ = records
    lazy = one_label_a_row(few_forms(X, labels, tmp_path)["dask"][1], "")
    found, found_y = numeric_rows(BaseEstimator(), X, lazy)
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(found_y, labels)

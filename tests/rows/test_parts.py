import numpy as np
import pytest
from sklearn.model_selection import KFold

from dpselect.rows import Parts


def test_tables_name_the_rows_of_each_part():
    splits = list(KFold(3).split(np.zeros((7, 1))))
    parts = Parts.from_splits(splits, np.zeros((7, 1)))
    for j, (train, test) in enumerate(splits):
        np.testing.assert_array_equal(np.flatnonzero(parts.train[:, j]), train)
        np.testing.assert_array_equal(np.flatnonzero(parts.test[:, j]), test)
    assert parts.train_sizes.tolist() == [4, 5, 5]
    assert parts.test_sizes.tolist() == [3, 2, 2]
    assert parts.left_out_once
    assert not Parts.from_splits(splits[:2], np.zeros((7, 1))).left_out_once
    # each row is tested once, and one of them is trained on never
    train = [part[part != 6] for part, _ in splits]
    parts = Parts.from_splits(list(zip(train, (test for _, test in splits))), np.zeros((7, 1)))
    assert not parts.left_out_once


@pytest.mark.parametrize("train, test", [([0, 0, 1], [2]), ([0, 1], [2, 3, 2])])
def test_a_row_that_is_named_twice_has_no_table(train, test):
    splits = [(np.array([0, 1]), np.array([2])), (np.array(train), np.array(test))]
    assert Parts.from_splits(splits, [[0.0]] * 4) is None

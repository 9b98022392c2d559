import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

from dpselect.rows import MOST_SPLITS, Parts, in_part


def test_codes_name_the_rows_of_each_part():
    splits = list(KFold(3).split(np.zeros((7, 1))))
    parts = Parts.from_splits(splits, np.zeros((7, 1)))
    for j, (train, test) in enumerate(splits):
        np.testing.assert_array_equal(np.flatnonzero(in_part(parts.train, j)), train)
        np.testing.assert_array_equal(np.flatnonzero(in_part(parts.test, j)), test)
    assert parts.train_sizes.tolist() == [4, 5, 5]
    assert parts.test_sizes.tolist() == [3, 2, 2]
    assert parts.left_out_once
    assert not Parts.from_splits(splits[:2], np.zeros((7, 1))).left_out_once
    # each row is tested once, and one of them is trained on never
    train = [part[part != 6] for part, _ in splits]
    parts = Parts.from_splits(list(zip(train, (test for _, test in splits))), np.zeros((7, 1)))
    assert not parts.left_out_once


@pytest.mark.parametrize("J", [1, 8, 9, MOST_SPLITS])
@pytest.mark.parametrize("persons", [None, np.arange(90) // 3])
def test_as_many_bits_a_row_as_there_are_splits(J, persons):
    # some rows are in neither part
    of = np.arange(90) if persons is None else persons
    cv = ShuffleSplit(J, train_size=0.5, test_size=0.25, random_state=0)
    splits = list(cv.split(np.zeros(of[-1] + 1)))
    parts = Parts.from_splits(splits, np.zeros((90, 1)), persons)
    for j, pair in enumerate(splits):
        for codes, part in zip((parts.train, parts.test), pair):
            assert 8 * codes.nbytes == len(codes) * (8 if J <= 8 else 16)
            np.testing.assert_array_equal(in_part(codes, j), np.isin(of, part))
    assert not parts.left_out_once


@pytest.mark.parametrize("train, test", [([0, 0, 1], [2]), ([0, 1], [2, 3, 2])])
def test_a_row_that_is_named_twice_has_no_code(train, test):
    splits = [(np.array([0, 1]), np.array([2])), (np.array(train), np.array(test))]
    assert Parts.from_splits(splits, [[0.0]] * 4) is None

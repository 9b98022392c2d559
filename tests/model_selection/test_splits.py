import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from dpselect.model_selection.splits import check_splitter, make_splits
from dpselect.noise import root_stream

STREAM = root_stream(0)


@pytest.mark.parametrize("cv", [None, 3, np.int64(4)])
def test_numbers_mean_shuffled_folds(cv):
    splits = make_splits(cv, 100, STREAM)
    assert len(splits) == (5 if cv is None else cv)
    tests = np.concatenate([test for _, test in splits])
    assert (np.sort(tests) == np.arange(100)).all() and (tests != np.arange(100)).any()
    again = make_splits(cv, 100, STREAM)
    assert all((a[0] == b[0]).all() for a, b in zip(splits, again))


@pytest.mark.parametrize(
    "cv", [None, 5, KFold(3), RepeatedKFold(), ShuffleSplit(), LeaveOneOut(), TimeSeriesSplit()]
)
def test_blind_splitters_pass(cv):
    check_splitter(cv)
    assert make_splits(cv, 20, STREAM)


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(
    "cv",
    [StratifiedKFold(), StratifiedShuffleSplit(), RepeatedStratifiedKFold(), StratifiedGroupKFold()],
)
def test_stratified_splitters_are_always_refused(cv, public):
    with pytest.raises(ValueError, match="looks at the labels.*KFold\\(5, shuffle=True\\)"):
        check_splitter(cv, public)


class Own(KFold):
    pass


@pytest.mark.parametrize("cv", [GroupKFold(), PredefinedSplit([0, 1]), Own(), [([0], [1])], "x"])
def test_others_need_the_users_word(cv):
    with pytest.raises(ValueError, match="public_splits=True"):
        check_splitter(cv)
    check_splitter(cv, public_splits=True)


@pytest.mark.parametrize("cv", [0, 1, -3])
def test_too_few_folds(cv):
    with pytest.raises(ValueError, match="2 or more"):
        check_splitter(cv)


def test_index_lists_masks_and_groups():
    mask = np.arange(6) < 4
    splits = make_splits([([0, 1, 1, -1], [2]), (mask, ~mask)], 6, STREAM)
    assert splits[0][0].tolist() == [0, 1, 1, 5]
    assert splits[1][1].tolist() == [4, 5]
    # each person is a group
    splits = make_splits(GroupKFold(2), 4, STREAM, persons=True)
    assert [len(part) for split in splits for part in split] == [2, 2, 2, 2]


def test_a_splitter_sees_no_records():
    class Spy(KFold):
        def split(self, X, y=None, groups=None):
            assert (X == 0).all() and y is None
            return super().split(X, y, groups)

    make_splits(Spy(2), 10, STREAM)


@pytest.mark.parametrize("cv", [[], [([0, 1], [])], [([], [0])]])
def test_empty_parts(cv):
    with pytest.raises(ValueError, match="empty part"):
        make_splits(cv, 4, STREAM)


def test_no_part_may_name_a_person_twice():
    splits = [([0, 1, 1, 2], [3])]
    assert len(make_splits(splits, 4, root_stream(0))) == 1
    for split in (splits, [([3], [0, 0, 1])]):
        with pytest.raises(ValueError, match="a person twice"):
            make_splits(split, 4, root_stream(0), persons=True)


@pytest.mark.parametrize("cv", [
    KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0),
])
def test_folds_are_kept_as_bits_and_give_the_same_indices(cv):
    n = 1001
    expected = list(cv.split(np.zeros((n, 1))))
    splits = make_splits(cv, n, STREAM)
    for split, pair in zip(splits, expected, strict=True):
        for part, indices in zip(split, pair, strict=True):
            assert part.dtype == np.int16 and part.tolist() == indices.tolist()
    kept = sum(part.nbytes for split in splits for part in split.parts)
    assert (kept < n * len(splits) / 3) == isinstance(cv, KFold)

import pickle

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

from dpselect.model_selection.splits import Halves, Split, check_splitter, make_splits
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


@pytest.mark.parametrize("cv", [5, KFold(3), KFold(4, shuffle=True, random_state=np.int64(1))])
def test_folds_are_made_when_they_are_asked_for(cv, monkeypatch):
    class Eager(KFold):  # not of the type that is known
        pass

    splits, made = make_splits(cv, 20, STREAM), Split.__init__
    known = splits.cv
    eager = (
        make_splits(
            Eager(known.n_splits, shuffle=known.shuffle, random_state=known.random_state), 20, STREAM
        )
        if known.shuffle
        else make_splits(list(known.split(np.zeros(20))), 20, STREAM)
    )
    assert isinstance(eager, list) and len(splits) == len(eager)
    asked = []
    monkeypatch.setattr(Split, "__init__", lambda *args: asked.append(1) or made(*args))
    pickled = pickle.loads(pickle.dumps(splits))
    assert not asked
    for folds in (splits, splits[:], pickled):
        for one, other in zip(folds, eager, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert len(asked) == 2 * len(splits)


def test_more_folds_than_records_are_refused_at_once():
    with pytest.raises(ValueError, match="n_splits=5 greater than"):
        make_splits(5, 4, STREAM)


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("n_splits", 1, "empty part"),
        ("random_state", -1, "Seed"),
        ("random_state", 2**32, "Seed"),
    ],
)
def test_folds_that_there_cannot_be_are_refused_at_once(attribute, value, message):
    cv = KFold(3, shuffle=True, random_state=0)
    setattr(cv, attribute, value)
    with pytest.raises(ValueError, match=message):
        make_splits(cv, 10, STREAM)


def test_index_lists_masks_and_groups():
    mask = np.arange(6) < 4
    splits = make_splits([([0, 1, 1, -1], [2]), (mask, ~mask)], 6, STREAM)
    assert splits[0][0].tolist() == [0, 1, 1, 5]
    assert splits[1][1].tolist() == [4, 5]
    # each person is a group
    splits = make_splits(GroupKFold(2), 4, STREAM, persons=True)
    assert [len(part) for split in splits for part in split] == [2, 2, 2, 2]


def test_a_splitter_sees_no_records():
    given = []

    class Spy(KFold):
        def split(self, X, y=None, groups=None):
            given.append((X, y))
            return super().split(X, y, groups)

    make_splits(Spy(2), 10, STREAM)
    assert given and all((X == 0).all() and y is None for X, y in given)


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


@pytest.mark.parametrize(
    "cv",
    [
        KFold(4, shuffle=True, random_state=0),
        ShuffleSplit(3, random_state=0),
    ],
)
def test_folds_are_kept_as_bits_and_give_the_same_indices(cv):
    n = 1001
    expected = list(cv.split(np.zeros((n, 1))))
    splits = make_splits(cv, n, STREAM)
    for split, pair in zip(splits, expected, strict=True):
        for part, indices in zip(split, pair, strict=True):
            assert part.dtype == np.int16 and part.tolist() == indices.tolist()
    kept = sum(part.nbytes for split in splits for part in split.parts)
    assert (kept < n * len(splits) / 3) == isinstance(cv, KFold)


def test_halves_of_dummy_records():
    halves = Halves(6)
    assert len(halves) == len(list(halves)) == 1
    train, test = halves[0]
    assert train.tolist() == [0, 1, 2] and test.tolist() == [3, 4, 5]
    with pytest.raises(IndexError):
        halves[1]

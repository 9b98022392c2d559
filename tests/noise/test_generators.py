import pickle

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import DPLogisticRegression
from dpselect.noise import InnerStream, as_generator, is_seeded, root_stream


def draw(random_state=None):
    return as_generator(random_state).standard_normal(4).tolist()


@pytest.mark.parametrize(
    "make",
    [
        int,
        lambda: 7,
        lambda: 2**80,
        lambda: np.int64(3),
        lambda: np.random.SeedSequence(5),
        lambda: InnerStream(bytes(32)),
        lambda: np.random.RandomState(5),
        lambda: np.random.default_rng(5),
    ],
)
def test_seeds_repeat_and_what_has_a_state_advances(make):
    assert draw(make()) == draw(make())
    given = make()
    advances = isinstance(given, (np.random.RandomState, np.random.Generator))
    assert (draw(given) != draw(given)) == advances


def test_none_is_new_each_time():
    assert len({tuple(draw()) for _ in range(200)}) == 200


def test_every_byte_of_the_key_counts():
    keys = [bytes(32)] + [bytes(i) + b"\x01" + bytes(31 - i) for i in range(32)]
    assert len({tuple(draw(InnerStream(key))) for key in keys}) == 33


def test_numpy_global_state_is_neither_read_nor_moved():
    np.random.seed(0)
    before = pickle.dumps(np.random.get_state())
    first = draw()
    assert pickle.dumps(np.random.get_state()) == before
    np.random.seed(0)
    assert draw() != first


@pytest.mark.parametrize("bad", [-1, -(2**70), "seed", 1.5, True, np.random, [1, 2]])
def test_what_is_no_seed(bad):
    negative = type(bad) is int
    with pytest.raises(ValueError if negative else TypeError, match="random_state"):
        root_stream(bad)


def test_children_are_distinct_and_repeat():
    stream = root_stream(1)
    paths = [("draw", 0, 1), ("draw", 1, 0), ("draw", 0), ("draw", 10), ("draw", "0", 1), ()]
    keys = {stream.child(*path).key for path in paths}
    assert len(keys) == len(paths)
    assert stream.child("draw", 0, 1) == root_stream(1).child("draw", 0, 1)
    assert 0 <= stream.integer() < 2**31


def test_a_public_seed_is_no_part_of_the_key():
    for stream in (root_stream(None), root_stream(0), root_stream(0).child("features")):
        parts = {int.from_bytes(stream.key[i : i + 4], "little") for i in range(29)}
        assert stream.integer() not in parts | {part >> 1 for part in parts}


def test_key_is_not_shown():
    stream = root_stream(1)
    assert stream.key.hex() not in repr(stream) and repr(stream.key) not in repr(stream)


def test_is_seeded():
    assert not is_seeded(None)
    assert is_seeded(0) and is_seeded(np.random.default_rng()) and is_seeded(root_stream())


# what follows holds for estimators: noise is drawn in the call that uses it


def standard_noise(random_state=None):
    return DPLogisticRegression(random_state=random_state).standard_noise(3).ravel().tolist()


def test_same_noise_through_clone():
    model = DPLogisticRegression(random_state=3)
    assert (model.standard_noise(5) == clone(model).standard_noise(5)).all()

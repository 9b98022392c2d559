import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpselect import DPRidge
from dpselect.linear_model.ridge.sums import (
    clip_factor,
    entry_bits,
    outer_sums,
    split_sums,
    truncated,
)
from dpselect.noise import release
from dpselect.records.records import Records
from dpselect.rows import Parts, cutting
from dpselect.utils.validation import SMALLEST_BOUND

MODEL = DPRidge(norm="l1", data_norm_l1=0.7, target_range=(-0.5, 2.5))


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5)) * rng.choice([0.01, 0.2, 30.0], size=(3000, 1))
    return X, rng.normal(size=3000)


def test_every_sum_is_exact(records):
    X, y = (array[:40] for array in records)
    bits = 20
    sums = outer_sums(Records(X, y, {}), bits, MODEL.problem())
    x = X * clip_factor(X, {"l1": 0.7}, 0.7)
    z = np.column_stack([x, np.ones(40), (np.clip(y, -0.5, 2.5) - 1) / 1.5])
    z = [[math.trunc(Fraction(entry) * 2**bits) for entry in row] for row in z.tolist()]
    assert all(sum(map(abs, row[:5])) <= 2**bits and abs(row[6]) <= 2**bits for row in z)
    for i in range(7):
        for j in range(7):
            # the square of the target is left out
            expected = sum(row[i] * row[j] for row in z) if (i, j) != (6, 6) else 0
            assert int(sums.places[i, j]) == expected
    assert (sums.values == sums.places * 2.0**-40).all()


def test_what_is_below_the_diagonal_does_not_count(records):
    """Two values that were rounded apart, under one noise, would tell by how much."""
    X, y = (array[:40] for array in records)
    for bits in (None, 20):
        sums = outer_sums(Records(X, y, {}), bits, MODEL.problem())
        apart = replace(sums, places=sums.places + np.tri(7, k=-1, dtype=sums.places.dtype))
        assert (apart.places != sums.places).sum() == 21
        for told in (lambda s: s.values, lambda s: s.noisy(lambda v, unit: v * (unit or 1.0))):
            assert (told(apart) == told(apart).T).all() and (told(apart) == told(sums)).all()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_neither_order_nor_blocks_nor_layout_matter(records, monkeypatch, norm):
    X, y = records
    problem = clone(MODEL).set_params(norm=norm, data_norm=0.5).problem()
    expected = outer_sums(Records(X, y, {}), 18, problem).places
    rounded = outer_sums(Records(X, y, {}), None, problem).places
    same = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(X))
        monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 7 * (100 + seed))
        for container in (np.asarray, np.asfortranarray, sparse.csr_array):
            again = outer_sums(Records(container(X[order]), y[order], {}), 18, problem).places
            np.testing.assert_array_equal(again, expected)
        same.append((outer_sums(Records(X[order], y[order], {}), None, problem).places == rounded).all())
    # sums of doubles that are rounded on the way tell the order
    assert not any(same)


@pytest.mark.parametrize(
    "train",
    [
        np.arange(1000)[:, None] % 5 != np.arange(5),
        np.arange(1000)[:, None] < [512, 505, 2],
    ],
    ids=["folds", "overlapping"],
)
def test_sums_of_splits_are_exact(train):
    """As many bits as 512 records allow, and doubles do not hold the sums of all 1000."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0.9, 1.0, size=(1000, 1)), rng.uniform(0.9, 1.0, size=1000)
    problem = DPRidge(target_range=(-1, 1)).problem()
    parts = Parts.from_splits([(np.flatnonzero(t), np.flatnonzero(~t)) for t in train.T], X)
    bits_of = np.array([entry_bits(int(n), 3, 2.0**-60) for n in parts.train_sizes])
    assert len(bits_of) == train.shape[1]
    for bits in np.unique(bits_of):
        own = np.flatnonzero(bits_of == bits)
        sums = [*split_sums(Records(X, y, {}), parts, own, int(bits), problem)]
        assert len(sums) == len(own) > 0
        for j, found in zip(own, sums):
            chosen = train[:, j]
            expected = outer_sums(Records(X[chosen], y[chosen], {}), int(bits), problem).places
            np.testing.assert_array_equal(found.places, expected)


def test_truncated_entries_are_never_larger():
    values = np.random.default_rng(0).uniform(-1, 1, size=1000)
    for bits in (0, 3, 20):
        places = truncated(values, bits)
        assert (np.abs(places) <= np.abs(values) * 2.0**bits).all()
        assert (np.abs(places - values * 2.0**bits) < 1).all()
        assert (places == np.round(places)).all()


@pytest.mark.parametrize("data_norm", [SMALLEST_BOUND, 1.0, 1 / SMALLEST_BOUND])
def test_rows_of_all_lengths_are_clipped_without_a_word(data_norm):
    X = 10.0 ** np.arange(-323, 308)[:, None] * np.array([0.6, -0.4])
    # a warning would tell that some row is so short
    with np.errstate(all="raise", under="ignore"):
        factor = clip_factor(X, {"l2": 0.7 * data_norm, "l1": data_norm}, data_norm)
    places = truncated(X * factor, 26)
    assert (np.abs(places).sum(axis=1) <= 2**26).all()
    assert (np.linalg.norm(X * factor, axis=1) <= 0.7).all()
    long = np.abs(X).max(axis=1) > 2 * data_norm
    assert (np.linalg.norm((X * factor)[long], axis=1) > 0.69).all()


def test_what_is_released_is_a_function_of_the_exact_sum():
    rng = np.random.default_rng(0)
    unit, step = 2.0**-40, 2.0**-44
    places = rng.integers(-(2**61), 2**61, size=(4, 4))
    noise = step * rng.integers(-(2**50), 2**50, size=(4, 4))
    released = release(places, noise, step, unit)
    for moved in (1, -7, 1000):
        again = release(places + moved, noise - moved * unit, step, unit)
        np.testing.assert_array_equal(again, released)
    # what is rounded first is not
    assert (places * unit + noise != (places + 1) * unit + (noise - unit)).any()
    # and it is the sum, up to rounding
    for k, r, found in zip(places.ravel(), noise.ravel(), released.ravel()):
        exact = int(k) * Fraction(unit) + Fraction(r)
        assert abs(Fraction(found) - exact) <= abs(exact) * Fraction(2) ** -51 + Fraction(step)


@pytest.mark.parametrize("n", [1, 7, 1000, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("q, block", [(2, 2**17), (79, 3318), (512, 512), (700, 700), (10**6, 1024)])
@pytest.mark.parametrize("step", [1.0, 2.0**-9, 2.0**-38, 2.0**-60])
def test_bits_leave_room_for_the_sums_and_for_the_noise(n, q, block, step):
    bits = entry_bits(n, q, step)
    in_block = min(n, block)
    limits = (in_block * 4**bits / 2**53, n * 4**bits / 2**62, step * 4**bits)
    assert bits >= 0 and max(limits) <= 1
    # less than two bits of the sums are wasted by rounding up
    assert max(limits) > 2.0**-3


@pytest.mark.parametrize("q, block", [(79, 3318), (700, 700)])
@pytest.mark.parametrize("of_splits", [False, True])
def test_blocks_are_as_long_as_the_bits_assume(monkeypatch, q, block, of_splits):
    seen, original = [], np.trunc
    monkeypatch.setattr(np, "trunc", lambda z, **how: (seen.append(len(z)), original(z, **how))[1])
    n = block + 20
    X, y, problem = np.zeros((n, q - 2)), np.zeros(n), MODEL.problem()
    if of_splits:
        parts = Parts.from_splits([(np.arange(1, n), np.arange(1))], X)
        split_sums(Records(X, y, {}), parts, np.array([0]), 10, problem)
    else:
        outer_sums(Records(X, y, {}), 10, problem)
    assert seen == [block, 20]

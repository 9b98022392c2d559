"""What is counted of persons with any number of rows: histograms, bounds, norms, shares of classes."""

import math
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dpselect.records.persons
from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLogisticRegression,
    PrivacyLoss,
)
from dpselect.linear_model.norms_and_rates import ClassShares, MedianNorm
from dpselect.noise import as_generator, root_stream
from dpselect.preprocessing import DPBoundsScaler
from dpselect.preprocessing.estimator_loss import privacy_of
from dpselect.preprocessing.private_bounds import bound_grid, ranks_of
from dpselect.records.persons import Persons, cell_counts
from dpselect.records.records import Records

RNG = np.random.default_rng(0)
SIZES = np.array([1, 2, 3, 7, 64, 999])
IDS = np.repeat(np.arange(6), SIZES)
X = RNG.uniform(size=(len(IDS), 2))


def first_digit(block):
    return np.floor(8 * block[:, 0]).astype(int)


@pytest.mark.parametrize("step", [2.0**-1000, 2.0**-40, 2.0**-20])
def test_cells_are_counted_in_parts_of_persons(step):
    persons = Persons.of(IDS, X)
    counts = cell_counts(first_digit, 8, X, persons, step)
    exact = np.array(
        [np.bincount(first_digit(X[IDS == u]), minlength=8) / m for u, m in enumerate(SIZES)]
    )
    unit = max(step, 2.0**-30)
    assert (counts % unit == 0).all()
    missed = exact.sum(axis=0) - counts
    assert (missed >= -1e-12).all() and (missed <= unit * SIZES.sum()).all()
    # a person adds at most 1 in all, exactly
    for u, m in enumerate(SIZES):
        own = IDS == u
        (total,) = {cell_counts(first_digit, 8, X[own], Persons.of(IDS[own], X[own]), step).sum()}
        assert 1 - m * unit <= total <= 1
    assert np.array_equal(cell_counts(first_digit, 8, X, None), np.bincount(first_digit(X), minlength=8))


@pytest.mark.parametrize("ids", [
    np.array([127, -128, 5, -128], dtype=np.int8), np.array([255, 0, 9, 0], dtype=np.uint8),
    np.array([2**64 - 1, 2**64 - 9, 2**64 - 5, 2**64 - 9], dtype=np.uint64), [3, -2**62, 0, -2**62],
    [2**70, -2**70, 5, -2**70], ["z", "a", "b", "a"], [("z", 1), ("a", 2), ("a", 3), ("a", 2)],
    [3.5, -math.inf, -0.0, -math.inf], [True, False, 0.5, False],
], ids=str)  # fmt: skip
def test_persons_are_numbered_in_the_order_of_their_ids(ids, monkeypatch):
    if isinstance(ids, list) and isinstance(ids[0], tuple):
        ids = np.fromiter(ids, dtype=object, count=4)
    for _ in range(2):
        persons = Persons.of(ids, np.zeros((4, 1)))
        assert persons.number.tolist() == [2, 0, 1, 0] and persons.n == 3
        assert persons.weight.tolist() == [1.0, 0.5, 1.0, 0.5]
        monkeypatch.delitem(sys.modules, "pandas", raising=False)


def test_texts_of_one_sum_are_told_apart(monkeypatch):
    """Whatever the numbers are by which texts are told apart at first."""
    texts = np.array([f"{i:04d}" for i in RNG.integers(1000, size=3000)])
    expected = np.unique(texts, return_inverse=True)[1]
    assert np.array_equal(Persons.of(texts, np.zeros((3000, 1))).number, expected)
    same = np.zeros(3000, dtype=int)
    monkeypatch.setattr(dpselect.records.persons, "_distinct", lambda sums: (sums[:1], same))
    assert np.array_equal(Persons.of(texts, np.zeros((3000, 1))).number, expected)


@pytest.mark.parametrize("ids", [
    np.ma.array([1, 2], mask=[False, True]), np.ma.array(["a", "b"], mask=[False, True]),
    ["a", None], [1.5, math.nan], np.array(["2020-01-01", "NaT"], dtype="M8[s]"),
    pd.array([1, None], dtype="Int64"), pd.array(["a", None], dtype="string"),
    pd.Categorical(["a", None]),
], ids=str)  # fmt: skip
def test_missing_ids_are_refused(ids, monkeypatch):
    for _ in range(2):
        with pytest.raises(ValueError, match="missing id"):
            Persons.of(ids, np.zeros((2, 1)))
        monkeypatch.delitem(sys.modules, "pandas", raising=False)


def neighbours(size, seed):
    """Records of 5 persons, and others in place of all rows of the last one."""
    rng = np.random.default_rng(seed)
    stay, ids = rng.uniform(size=(12, 2)), np.append(np.arange(12) % 4, np.full(size, 4))
    one, other = (
        # all in one cell, or anywhere
        np.vstack([stay, np.full((size, 2), end) if seed % 2 else rng.uniform(size=(size, 2))])
        for end in (0.01, 0.99)
    )
    return ids, one, other


@pytest.mark.parametrize("size", [1, 2, 10, 1000])
def test_a_person_moves_counts_as_far_as_a_record(size):
    moved = dict.fromkeys(["cells", "ranks", "each row a person"], 0.0)
    for seed in range(8):
        ids, *pair = neighbours(size, seed)
        for name, whose in (("cells", ids), ("each row a person", np.arange(len(ids)))):
            # (a step of 1 would leave nothing of a person with two rows)
            one, other = (
                cell_counts(first_digit, 8, rows, Persons.of(whose, rows), 2.0**-40) for rows in pair
            )
            moved[name] = max(moved[name], np.abs(one - other).sum())
        grid = bound_grid()
        one, other = (ranks_of(rows, grid, Persons.of(ids, rows), 2.0**-40) for rows in pair)
        moved["ranks"] = max(moved["ranks"], np.abs(one - other).max())
    assert 1.99 < moved["cells"] <= 2 and 0.99 < moved["ranks"] <= 1
    if size > 1:
        assert moved["each row a person"] > 1.5 * 2


def released(model, ids=None):
    rows = 3 * np.repeat(X, 2, axis=0)[: 2 * 400]
    return model.fit(rows, groups=ids)


@pytest.mark.parametrize("model, name", [
    (DPHistogramDensity(0.5, bounds=(0, 3), bin_width=1.0), "density_"),
    (DPBoundsScaler(0.5, tail=0.1), "bounds_"),
])  # fmt: skip
def test_one_row_a_person_is_no_groups_to_the_last_bit(model, name):
    model = clone(model).set_params(random_state=root_stream(0))
    expected = getattr(released(model), name)
    for ids in (np.arange(800), np.array([f"{i:03d}" for i in range(800)])):
        fitted = released(model, ids)
        assert np.array_equal(getattr(fitted, name), expected)
        assert fitted.privacy_.adjacency == "replace all rows of one person"


@pytest.mark.parametrize("model, name", [
    (DPHistogramDensity(math.inf, bounds=(0, 3), bin_width=1.0), "density_"),
    (DPBoundsScaler(math.inf, tail=0.1), "bounds_"),
])  # fmt: skip
def test_many_equal_rows_are_one(model, name):
    ids = np.where(np.arange(800) < 200, np.arange(800), 200)
    rows = np.repeat(3 * X[:1], 800, axis=0)
    rows[:200] = 3 * X[:200]
    once = getattr(clone(model).fit(rows[:201]), name)
    found = getattr(clone(model).fit(rows, groups=ids), name)
    assert found == pytest.approx(once, abs=1e-6)
    # the broken twin counts rows
    assert np.abs(getattr(clone(model).fit(rows), name) - once).max() > 0.1


def test_integer_noise_hides_whole_records_only():
    model = DPHistogramDensity(bounds=(0, 1), noise="discrete_laplace")
    with pytest.raises(ValueError, match="groups.*noise='laplace'"):
        model.fit("not even records", groups=[1])


def test_norms_and_shares_are_those_of_persons():
    """One person with a thousand long rows of one class does not outvote 200 others."""
    rows = np.vstack([np.full((200, 1), 1.0), np.full((1000, 1), 64.0)])
    y = np.append(np.zeros(200, dtype=int), np.ones(1000, dtype=int))
    ids = np.append(np.arange(200), np.full(1000, 200))
    for whose, norm, share in ((ids, 1.0, 1 / 201), (None, 64.0, 1000 / 1200)):
        persons = None if whose is None else Persons.of(whose, rows)
        records = Records(rows, y, {"classes_": np.array([0, 1])}, persons=persons)
        assert MedianNorm("l2").learn(records, math.inf, as_generator()) == norm
        learned = ClassShares().learn(records, math.inf, as_generator())
        assert learned == pytest.approx(share, abs=1e-6)
        near = [ClassShares().learn(records, 5.0, as_generator(i)) for i in range(20)]
        assert np.mean(near) == pytest.approx(max(share, 1 / 201), abs=0.02)


def test_a_pipeline_adds_losses_of_one_unit():
    y = (X[:, 0] > 0.5).astype(int)
    model = DPLogisticRegression(classes=[0, 1], epsilon=1.0)
    names = ("dpboundsscaler__groups", "dplogisticregression__groups")
    both = make_pipeline(DPBoundsScaler(0.5), model).fit(X, y, **dict.fromkeys(names, IDS))
    assert privacy_of(both).epsilon == 1.5
    assert privacy_of(both).adjacency == "replace all rows of one person"
    one = make_pipeline(DPBoundsScaler(0.5), model).fit(X, y, **{names[1]: IDS})
    with pytest.raises(ValueError, match="do not compose"):
        privacy_of(one)


def test_losses_of_other_units_do_not_add():
    persons = DPHuberRegressor(target_range=(-1, 1)).fit(X, X[:, 0], groups=IDS).privacy_
    for compose in (PrivacyLoss.sequential, PrivacyLoss.parallel):
        with pytest.raises(ValueError, match="different adjacencies"):
            compose([persons, PrivacyLoss(1.0)])

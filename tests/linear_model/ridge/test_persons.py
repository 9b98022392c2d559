"""Ridge regression where a person has any number of rows, which count as their mean."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from dpselect import DPRidge
from dpselect.linear_model.ridge.ridge_noise import statistic_sensitivity
from dpselect.linear_model.ridge.sums import outer_sums
from dpselect.noise import root_stream
from dpselect.records.persons import Persons
from dpselect.records.public_shape import PublicShape
from dpselect.records.records import Records

RNG = np.random.default_rng(0)
N_ROWS = 300
X = RNG.uniform(-0.5, 0.5, size=(N_ROWS, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=N_ROWS)
IDS = np.unique(np.minimum(RNG.geometric(0.05, N_ROWS), 60), return_inverse=True)[1]
N, SHARE = IDS.max() + 1, 1 / np.bincount(IDS)[IDS]

VARIANTS = pytest.mark.parametrize("parameters", [
    {"norm": "l1"}, {"norm": "l2"}, {"norm": "l2", "delta": 1e-6}, {"perturbation": "output"},
    {"perturbation": "objective", "alpha": 1.0}, {"norm": "l1", "fit_intercept": False},
], ids=str)  # fmt: skip


def ridge(**parameters):
    return DPRidge(
        **{"target_range": (-2, 2), "data_norm_l1": 1.2, "random_state": root_stream(0), **parameters}
    )


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_it_is_scikit_learn_s_ridge_of_persons(norm):
    model = ridge(epsilon=math.inf, norm=norm, alpha=0.1, fit_intercept=False, data_norm_l1=9.0)
    exact = Ridge(alpha=0.1 * N, fit_intercept=False).fit(X, Y, sample_weight=SHARE)
    assert model.fit(X, Y, groups=IDS).coef_ == pytest.approx(exact.coef_, abs=1e-9)
    assert model.n_samples_ == N


@VARIANTS
def test_one_row_a_person_is_no_groups_to_the_last_bit(parameters):
    model = ridge(**parameters)
    if model.perturbation == "objective":  # curvature of a higher rank costs a little noise
        scales = [
            model.calibration(PublicShape(N_ROWS, 3, persons=persons)).scales.linear_scale
            for persons in (False, True)
        ]
        assert 1 < scales[1] / scales[0] < 1.01
        return
    plain = clone(model).fit(X, Y)
    for ids in (np.arange(N_ROWS), [f"{i:03d}" for i in range(N_ROWS)]):
        model.fit(X, Y, groups=ids)
        for name in ("coef_", "intercept_", "n_samples_", "gram_", "moment_"):
            assert np.array_equal(getattr(model, name, 0), getattr(plain, name, 0))
    learned = ridge(**parameters).set_params(data_norm="auto", data_norm_l1=None, alpha=1.0)
    plain = learned.fit(X, Y).coef_
    assert np.array_equal(learned.fit(X, Y, groups=np.arange(N_ROWS)).coef_, plain)


@VARIANTS
def test_a_thousand_equal_rows_are_one(parameters):
    model, times = ridge(**parameters), np.where(np.arange(N_ROWS) == 7, 1024, 1)
    once = model.fit(X, Y, groups=np.arange(N_ROWS)).coef_
    ids = np.repeat(np.arange(N_ROWS), times)
    many = model.fit(np.repeat(X, times, axis=0), np.repeat(Y, times), groups=ids).coef_
    # a row's entries have some 20 bits, and those of a thousand rows five less
    assert many == pytest.approx(once, rel=1e-3)


def sums(model, rows, targets, ids, bits):
    records = Records(rows, targets, {}, persons=None if ids is None else Persons.of(ids, rows))
    return outer_sums(records, bits, model.problem())


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("size", [1, 3, 100, 1000])
def test_a_person_moves_the_sums_as_far_as_a_record(norm, fit_intercept, size):
    """The worst records of the proofs, each of them many times over, and others beside them."""
    model = ridge(
        norm=norm, fit_intercept=fit_intercept, data_norm=1.0, data_norm_l1=1.0 if norm == "l1" else None
    )
    weights = model.problem().statistic_noise(2, 1.0).weights
    bound = statistic_sensitivity(fit_intercept, norm)
    rng, moved = np.random.default_rng(0), {}

    def move(one, other, ids):
        before, after = (
            sums(model, *records, ids, 19 if norm == "l1" else None).values for records in (one, other)
        )
        change = np.abs(after - before) * np.outer(weights, weights)
        if norm == "l1":
            return change.sum()
        return np.linalg.norm(change)

    ids = np.append([0], np.ones(size, dtype=int))
    for kind in range(4):
        rows, others = np.zeros((size + 1, 2)), np.zeros((size + 1, 2))
        rows[:, 0] = 1.0
        # in l2 the weighted records are at a right angle
        across = weights[-1] ** 2 - (weights[-2] ** 2 if fit_intercept else 0.0)
        others[:] = [0.0, 1.0] if norm == "l1" else [across, math.sqrt(1 - across**2)]
        targets, changed = np.full(size + 1, 2.0), np.full(size + 1, -2.0)
        if kind > 1:
            rows, others = rng.normal(size=rows.shape), rng.normal(size=rows.shape)
            targets, changed = rng.normal(size=size + 1), 2 * rng.normal(size=size + 1)
        others[0], changed[0] = rows[0], targets[0]
        pair = (rows, targets), (others, changed)
        moved["right"] = max(moved.get("right", 0.0), move(*pair, ids))
        moved["each row a person"] = max(moved.get("each row a person", 0.0), move(*pair, None))
    assert 0.999 * bound < moved["right"] <= bound * (1 + 1e-12)
    if size > 1:
        assert moved["each row a person"] > 2 * bound


@pytest.mark.parametrize("perturbation", ["objective", "output"])
def test_a_person_moves_the_minimiser_no_farther_than_a_record(perturbation):
    model = ridge(perturbation=perturbation, alpha=0.3, epsilon=2.0, norm="l2", data_norm_l1=None)
    calibration = model.calibration(PublicShape(20, 2, persons=True))
    s, rng, moved = calibration.scales, np.random.default_rng(0), {"right": 0.0, "twin": 0.0}
    still = np.zeros((2, 3)) if perturbation == "objective" else np.zeros(3)
    bound = model.problem().gradient_change() / 20 / s.mu
    for size in (1, 5, 1000):
        ids = np.append(np.arange(19), np.full(size, 19))
        for _ in range(6):
            rows, targets = rng.normal(size=(19 + size, 2)), 3 * rng.normal(size=19 + size)
            other, changed = rows.copy(), targets.copy()
            rows[19:], targets[19:], other[19:], changed[19:] = [1, 0], 2, [-1, 0], 2
            for name, whose in (("right", ids), ("twin", None)):
                found = [
                    calibration.minimiser(sums(model, *records, whose, None), still)
                    for records in ((rows, targets), (other, changed))
                ]
                far = np.linalg.norm(found[0] - found[1]) * (1 if whose is not None else len(ids) / 20)
                moved[name] = max(moved[name], far / bound)
    assert 0.2 < moved["right"] <= 1 < moved["twin"]


def test_splits_of_persons_have_their_sums():
    from dpselect.linear_model.ridge.sums import split_sums
    from dpselect.rows import Parts

    model, chosen = ridge(norm="l1"), [0, 1, 2]
    persons = np.arange(N)
    splits = [(persons[persons % 3 != k], persons[persons % 3 == k]) for k in range(3)]
    records = Records(X, Y, {}, persons=Persons.of(IDS, X))
    rows = [tuple(np.flatnonzero(np.isin(IDS, part)) for part in split) for split in splits]
    by_rows = Parts.from_splits(rows, X)
    sizes = [np.array([len(split[k]) for split in splits]) for k in (0, 1)]
    parts = Parts(by_rows.train, by_rows.test, *sizes, by_rows.left_out_once)
    for found, split in zip(split_sums(records, parts, chosen, 18, model.problem()), rows):
        expected = sums(model, X[split[0]], Y[split[0]], IDS[split[0]], 18)
        assert np.array_equal(found.places, expected.places) and found.n_samples == expected.n_samples

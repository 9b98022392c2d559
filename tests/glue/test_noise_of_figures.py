"""What an evaluation states of the noise in its figures is what the noise does, in every kind of one.

Counts of all groups are moved together, and figures are of one group or of their sum: whoever forgets
one of both states intervals that do not cover. Stated variances are compared with the exact linear map
from the noise of each count, and with the noise that is drawn.
"""

import math

import numpy as np
import pytest

from dpselect.evaluation import evaluation as evaluations
from dpselect.evaluation.binary import BinaryEvaluation
from dpselect.evaluation.confidence import ConfidenceCells
from dpselect.evaluation.density import DensityCells
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.multiclass import MulticlassCells
from dpselect.evaluation.regression import RegressionCells
from dpselect.evaluation.release import EVALUATIONS, EvaluationPlan
from dpselect.evaluation.score_bins import BinaryCells
from dpselect.noise import root_stream
from tests.marks import slow_but

CELLS = {
    "two classes": BinaryCells(np.array([0, 1]), True),
    "two classes, decisions": BinaryCells(np.array([0, 1]), False),
    "three classes": MulticlassCells(np.arange(3), True),
    "five classes, labels": MulticlassCells(np.arange(5), False),
    "confidence": ConfidenceCells(np.arange(3), True),
    "density": DensityCells.invented(),
    "regression": RegressionCells((-1.0, 1.0)),
}
EPSILON = 0.5


def test_every_kind_of_evaluation_is_there():
    assert {type(cells) for cells in CELLS.values()} == set(EVALUATIONS)


def plan_of(kind, n_groups, persons=False, seed=0):
    levels = tuple(range(n_groups)) if n_groups > 1 else ()
    stream = root_stream(20261126).child(kind, n_groups, persons, seed)
    return EvaluationPlan(CELLS[kind], EPSILON, levels, random_state=stream, persons=persons)


def parts_of(evaluation):
    """Return the figures of all records, and of each group."""
    return [evaluation, *map(evaluation.group, evaluation.levels)]


def functions_of(size):
    """Return what figures weigh the cells by: alike, at random, by labels, and one cell alone."""
    rng = np.random.default_rng(1)
    return [np.ones(size), rng.random(size), np.arange(size) % 2 - 0.9, 1.0 * (np.arange(size) == 3)]


def check_stated_variance(kind, n_groups, persons=False):
    """Compare the stated variance with what independent noise in each count does, exactly."""
    plan = plan_of(kind, n_groups, persons)
    size = math.prod(plan.cells.shape)
    stated = [part.noisy_counts for part in parts_of(plan.read(np.zeros(n_groups * size), 0))]
    # of integers of ratio q, and of Laplace noise
    q = math.exp(-EPSILON / 2)
    variance = 8 / EPSILON**2 if persons else 2 * q / (1 - q) ** 2
    exact = np.zeros((len(stated), 4))
    for block in range(n_groups):
        # (all unit vectors at once would not fit into memory)
        unit = np.eye(size, n_groups * size, block * size)
        moved = NoisyCounts.of(unit, 0.0, 1.0)
        moved = moved.h.reshape(size, n_groups, size)
        for i, h in enumerate([moved.sum(axis=1), *np.swapaxes(moved, 0, 1)][: len(stated)]):
            exact[i] += [((h @ g) ** 2).sum() for g in functions_of(size)]
    found = [[counts.noise(g) for g in functions_of(size)] for counts in stated]
    # what rounding leaves of a sum that is public
    np.testing.assert_allclose(found, variance * exact, rtol=1e-9, atol=1e-9 * variance * size)


STATED = [(kind, n_groups) for kind in CELLS for n_groups in (3, 8, 1, 2)]


@pytest.mark.parametrize("kind, n_groups", slow_but(STATED, *range(0, len(STATED), 4)))
def test_the_stated_variance_is_that_of_the_linear_map(kind, n_groups):
    check_stated_variance(kind, n_groups)


@pytest.mark.parametrize("n_groups", range(4, 8))
def test_so_it_is_for_every_number_of_groups_and_for_persons(n_groups):
    check_stated_variance("two classes", n_groups)
    check_stated_variance("two classes", n_groups, persons=True)


def variance_of_one_group(counts, n_groups):
    h = counts._by_group(n_groups).sum(axis=-2)
    return NoisyCounts(h, counts.variance, counts.moved // n_groups)


def moved_by_as_many(counts, n_groups):
    h = counts._by_group(n_groups).sum(axis=-2)
    return NoisyCounts(h, n_groups * counts.variance, counts.moved)


def moved_alone(counts, i, n_groups):
    return NoisyCounts(counts._by_group(n_groups)[..., i, :], counts.variance, counts.moved // n_groups)


TWINS = {
    "the variance of one group for the sum of all": ("over_groups", variance_of_one_group),
    "a sum as if its own counts were moved alone": ("over_groups", moved_by_as_many),
    "a group as if its counts were moved alone": ("group", moved_alone),
    "noise as if no counts were moved": ("noise", lambda counts, g: counts.variance * (g**2).sum(-1)),
}


@pytest.mark.parametrize("kind", slow_but([*CELLS], 1, 3))
@pytest.mark.parametrize("twin", TWINS)
def test_other_variances_are_caught(kind, twin, monkeypatch):
    monkeypatch.setattr(NoisyCounts, *TWINS[twin])
    with pytest.raises(AssertionError):
        check_stated_variance(kind, 3)


# ---- what is drawn


def check_drawn_variance(kind, n_groups, persons, draws=200, functions=30):
    """Compare the stated variance with that of the noise that is drawn."""
    size = math.prod(CELLS[kind].shape)
    g = np.random.default_rng(2).normal(size=(functions, size))
    shares = []
    for seed in range(draws):
        plan = plan_of(kind, n_groups, persons, seed)
        evaluation = plan.read(plan.standard_noise(n_groups * size), 0)
        for part in (evaluation, *map(evaluation.group, evaluation.levels[-1:])):
            counts = part.noisy_counts
            shares.append([(counts.h @ each) ** 2 / counts.noise(each) for each in g])
    # the mean of 6000 squares of nearly independent normal numbers has a deviation of 0.018
    assert np.mean(shares) == pytest.approx(1.0, abs=0.12)


DRAWN = [(kind, L, persons) for kind in CELLS for L in (1, 3) for persons in (False, True)]


@pytest.mark.parametrize("kind, n_groups, persons", slow_but(DRAWN, 3, 22))
def test_noise_has_the_stated_variance(kind, n_groups, persons):
    check_drawn_variance(kind, n_groups, persons)


def test_the_variance_of_records_is_not_that_of_persons(monkeypatch):
    usual = evaluations.noise_variance
    monkeypatch.setattr(evaluations, "noise_variance", lambda epsilon, persons: 1.5 * usual(epsilon))
    with pytest.raises(AssertionError):
        check_drawn_variance("two classes", 3, True)


# ---- figures of groups cover

SHARE = 0.25


def covered(kind, n_groups, m, repetitions=600, seed=0):
    """Return the names of figures that are told in most cases, and how often each holds the truth."""
    plan, rng = plan_of(kind, n_groups), np.random.default_rng(seed)
    size = math.prod(plan.cells.shape)
    shares = np.array([SHARE, *[(1 - SHARE) / (n_groups - 1)] * (n_groups - 1)])
    cells = (shares[:, None] * rng.dirichlet(np.full(size, 0.5), size=n_groups)).ravel()
    counts = rng.multinomial(m, cells, size=repetitions)
    noise = plan.standard_noise(counts.size).reshape(counts.shape)
    # many evaluations at once
    read = plan.read(counts[0], m)
    stated = NoisyCounts.of(counts + noise, m, evaluations.noise_variance(EPSILON))
    exact = NoisyCounts.of(1e12 * cells, 1e12, 0.0)
    found = {}
    for part, many, one in (
        ("all", stated.over_groups(n_groups), exact.over_groups(n_groups)),
        ("group", stated.group(0, n_groups), exact.group(0, n_groups)),
    ):
        asked = (read._above(0.5),) if isinstance(read, BinaryEvaluation) else ()
        for name, metric in read._readers.items():
            (truth, *_), (value, low, high) = metric(one, *asked), metric(many, *asked)
            told = ~np.isnan(value)
            if told.mean() > 0.5 and not np.isnan(truth):
                inside = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
                found[part, name] = inside[told].mean()
    return found


COVERED = [
    ("two classes", 2, 20_000),
    ("two classes", 8, 20_000),
    ("density", 5, 20_000),
    ("three classes", 3, 40_000),
    ("confidence", 4, 20_000),
    ("two classes, decisions", 3, 20_000),
]


def check_coverage(kind, n_groups, m):
    found = covered(kind, n_groups, m)
    # 0.87 of 300 and more has a probability below 1e-6 at 0.95
    assert {part for part, _ in found} == {"all", "group"} and min(found.values()) > 0.87, found


@pytest.mark.parametrize("kind, n_groups, m", slow_but(COVERED, 1))
def test_intervals_of_groups_and_of_their_sum_cover(kind, n_groups, m):
    check_coverage(kind, n_groups, m)


@pytest.mark.slow
def test_intervals_without_the_noise_of_all_groups_do_not_cover(monkeypatch):
    monkeypatch.setattr(NoisyCounts, "over_groups", variance_of_one_group)
    with pytest.raises(AssertionError):
        check_coverage("two classes", 8, 20_000)

"""Evaluation of persons with any number of rows: a person counts once, as the mean of their rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression

from dpselect import DPLogisticRegression, PrivacyLedger, RowChunks, evaluate
from dpselect.evaluation.binary import METRICS
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.release import EvaluationPlan, cells_of, groups_of
from dpselect.noise import as_generator
from dpselect.records.persons import Persons

INF = float("inf")
PERSON = "replace all rows of one person"
RNG = np.random.default_rng(0)
SIZES = np.minimum(RNG.geometric(0.2, 120), 60)
IDS = RNG.permutation(np.repeat(np.arange(120), SIZES))
X = RNG.normal(size=(len(IDS), 2)) + 0.7 * RNG.normal(size=(120, 1))[IDS]
Y = (X[:, 0] + RNG.normal(size=len(IDS)) > 0.3).astype(int)
Z = X[:, 0] + X[:, 1] + 0.1 * SIZES[IDS] * RNG.normal(size=len(IDS))
TARGETS = {"two": Y, "three": Y + (X[:, 1] > 1), "regression": Z}
MODELS = {
    name: (LinearRegression() if name == "regression" else LogisticRegression()).fit(X[:400], y[:400])
    for name, y in TARGETS.items()
}
RANGE = {"target_range": (-5, 5)}


def evaluated(kind, rows=X, y=None, epsilon=INF, **given):
    y = TARGETS[kind] if y is None else y
    more = RANGE if kind == "regression" else {}
    return evaluate(MODELS[kind], rows, y, epsilon=epsilon, **more, **given)


@pytest.mark.parametrize("kind", MODELS)
def test_counts_are_of_persons_each_the_mean_of_their_rows(kind):
    found = evaluated(kind, groups=IDS)
    expected = np.mean(
        [evaluated(kind, X[IDS == u], TARGETS[kind][IDS == u]).counts_ / SIZES[u] for u in range(120)],
        axis=0,
    )
    assert found.n_records == 120 and found.privacy_.adjacency == PERSON
    np.testing.assert_allclose(found.counts_ / 120, expected, atol=1e-7)
    name = "rmse" if kind == "regression" else "accuracy"
    if kind != "regression":
        right = MODELS[kind].predict(X) == TARGETS[kind]
        each = np.mean([right[IDS == u].mean() for u in range(120)])
        assert found.metric(name).value == pytest.approx(each, abs=1e-7)
    # the broken twin counts rows
    assert found.metric(name).value != pytest.approx(evaluated(kind).metric(name).value, abs=1e-3)


@pytest.mark.parametrize("kind", MODELS)
def test_one_row_a_person_is_no_groups(kind):
    plain, persons = evaluated(kind), evaluated(kind, groups=np.arange(len(X)).astype(str))
    assert np.array_equal(plain.counts_, persons.counts_)
    assert plain.to_frame().equals(persons.to_frame())


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_replaced_person_moves_the_counts_by_two(size):
    """Their rows may be of any number, of all groups and in all cells."""
    rng, worst = np.random.default_rng(size), dict.fromkeys(("persons", "rows"), 0.0)
    levels = ["a", "b", "c"]
    for _ in range(3):
        for kind, y in TARGETS.items():
            plan = EvaluationPlan(
                cells_of(MODELS[kind], *RANGE.values() if kind == "regression" else ()),
                1.0,
                tuple(levels),
                persons=True,
            )
            counts = []
            for m in (size, int(rng.integers(1, 40))):
                rows, own = np.vstack([X[:50], 3 * rng.normal(size=(m, 2))]), rng.integers(2, size=m)
                ids, by = np.append(IDS[:50], np.full(m, 600)), rng.choice(levels, 50 + m)
                by[:50] = "a"
                records = MODELS[kind], rows, np.append(y[:50], own)
                found = evaluate_exactly(plan, *records, by, ids)
                assert (found % plan.step == 0).all()
                counts.append((found, evaluate_exactly(plan, *records, by, np.arange(50 + m))))
            for name, one, other in zip(worst, *counts):
                worst[name] = max(worst[name], np.abs(one - other).sum())
    assert 1.5 < worst["persons"] <= 2
    # the broken twin takes each row for a person
    assert size == 1 or worst["rows"] > 3


def evaluate_exactly(plan, model, rows, y, by, ids):
    persons = Persons.of(ids, rows)
    return plan._counts(model, rows, y, groups_of(by, plan.levels, len(rows)), persons)


def test_noise_is_that_of_persons():
    plan = EvaluationPlan(cells_of(MODELS["two"]), 0.7, random_state=1, persons=True)
    noise = plan.standard_noise(50_000)
    assert (noise % plan.step == 0).all() and (noise % 1 != 0).any()
    assert noise.var() == pytest.approx(noise_variance(0.7, fractions=True), rel=0.1)
    # the mean size of Laplace noise of scale 2 / epsilon
    assert np.abs(noise).mean() == pytest.approx(2 / 0.7, rel=0.05)
    found = evaluated("two", epsilon=0.7, groups=IDS)
    assert (found.counts_ % plan.step == 0).all() and (found.counts_ % 1 != 0).any()
    assert "on 120 persons" in repr(found)
    assert evaluated("two", epsilon=1e300, groups=IDS).metric("accuracy").high <= 1


@pytest.mark.parametrize("rows", ["sparse", "chunks", "shuffled"])
def test_rows_wherever_they_are(rows):
    order = np.random.default_rng(1).permutation(len(X))
    table, y, ids = X[order], Y[order], [f"{i:03d}" for i in IDS[order]]
    if rows == "sparse":
        table = sparse.csr_array(table)
    if rows == "chunks":
        parts = np.array_split(np.arange(len(X)), 3)
        whole = table
        table = RowChunks(lambda i: whole[parts[i]], [len(part) for part in parts], 2)
    model = DPLogisticRegression(INF, classes=[0, 1]).fit(X[:400], Y[:400])
    expected = evaluate(model, X, Y, epsilon=INF, groups=IDS).counts_
    found = evaluate(model, table, y, epsilon=INF, groups=ids).counts_
    np.testing.assert_allclose(found, expected, atol=1e-6)


def coverage(n, epsilon, alike, taken_for=None, repetitions=300):
    """How often the truth is in intervals, where a share of a person's rows equals their first."""
    generator = as_generator(0)
    law = generator.dirichlet(np.full(64, 0.5))
    counts = np.empty((repetitions, 64))
    for i in range(repetitions):
        m = generator.geometric(0.2, size=n)
        person, first = np.repeat(np.arange(n), m), np.cumsum(m) - m
        cell = generator.choice(64, size=len(person), p=law)
        cell = np.where(generator.random(len(cell)) < alike, cell[first][person], cell)
        counts[i] = np.bincount(cell, 1 / m[person], 64)
    counts += generator.laplace(scale=2 / epsilon, size=counts.shape)
    m = n if taken_for is None else taken_for
    found = NoisyCounts.of(counts * (m / n), m, noise_variance(epsilon, True) * (m / n) ** 2)
    exact, positive = NoisyCounts.of(1e12 * law[None], 1e12, 0.0), np.arange(64) // 2 > 15
    for name, metric in METRICS.items():
        truth = metric(exact, positive)[0][0]
        value, low, high = metric(found, positive)
        told = ~np.isnan(value)
        yield name, told.mean(), ((low <= truth) & (truth <= high))[told].mean()


@pytest.mark.parametrize("alike", [0.0, 1.0])
def test_intervals_cover_however_alike_a_persons_rows_are(alike):
    for name, told, covered in coverage(1000, 3.0, alike):
        # below 0.88 of 300 and more at 0.95 has a probability below 1e-6
        assert told < 0.5 or covered > 0.88, name


def test_rows_that_are_taken_for_persons_are_caught():
    found = {name: covered for name, _, covered in coverage(1000, 30.0, 1.0, taken_for=5000)}
    assert found["accuracy"] < 0.75 and found["brier"] < 0.75


def test_the_ledger_counts_persons(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.0, adjacency=PERSON)
    evaluated("two", epsilon=0.4, groups=IDS, ledger=ledger)
    assert ledger.remaining()[0] == pytest.approx(0.6)
    with pytest.raises(ValueError, match="replace one record"):
        evaluated("two", epsilon=0.4, ledger=ledger)


@pytest.mark.parametrize(
    "given, said",
    [
        (dict(groups=IDS[:-1]), "groups must have one id"),
        (dict(groups=5), "groups must have one id"),
        (dict(groups=np.where(IDS > 3, np.nan, IDS)), "missing id"),
        (dict(groups=IDS, y=Y[:-1]), "y must have one label"),
        (dict(groups=IDS, y=np.stack([Y, Y], axis=1)), "y must have one label"),
    ],
)
def test_bad_input_tells_no_number_of_rows(given, said):
    with pytest.raises(ValueError, match=said) as caught:
        evaluated("two", epsilon=1.0, **given)
    assert str(len(X)) not in str(caught.value) and str(len(X) - 1) not in str(caught.value)

"""Evaluation of records with weights: each counts as a fraction of a public bound."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, mean_absolute_error, recall_score, roc_auc_score

from dpselect import DPHistogramDensity, RowChunks, calibrated, evaluate
from dpselect.evaluation.binary import METRICS
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.release import EvaluationPlan, cells_of, groups_of
from dpselect.noise import as_generator, root_stream
from dpselect.records.persons import Persons
from dpselect.records.records import fractions_of_largest

INF = float("inf")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 2))
Y = (X[:, 0] + RNG.normal(size=900) > 0.3).astype(int)
TARGETS = {"two": Y, "three": Y + (X[:, 1] > 1), "regression": X @ [1.0, 0.5] + RNG.normal(size=900)}
MODELS = {
    name: (LinearRegression() if name == "regression" else LogisticRegression()).fit(X[:400], y[:400])
    for name, y in TARGETS.items()
}
MODELS["density"] = DPHistogramDensity(INF, bounds=(-4, 4), bin_width=1.0).fit(X)
RANGE = {"regression": {"target_range": (-8, 8)}}
# more for positive labels, so that a figure without weights is another one
WEIGHT = RNG.choice([0.25, 1.0, 2.0], size=900) + Y


def evaluated(kind, rows=X, y=None, epsilon=INF, weight=WEIGHT, largest=3.0, **given):
    y = TARGETS.get(kind) if y is None else y
    given |= {"sample_weight": weight, "max_weight": largest}
    return evaluate(MODELS[kind], rows, y, epsilon=epsilon, **RANGE.get(kind, {}), **given)


def test_figures_are_weighted_means():
    two, regression = evaluated("two"), evaluated("regression")
    predicted, scores = MODELS["two"].predict(X), MODELS["two"].predict_proba(X)[:, 1]
    exact = {
        "accuracy": accuracy_score(Y, predicted, sample_weight=WEIGHT),
        "recall": recall_score(Y, predicted, sample_weight=WEIGHT),
        "roc_auc": roc_auc_score(Y, scores, sample_weight=WEIGHT),
        "positive_rate": np.average(Y, weights=WEIGHT),
    }
    plain = evaluated("two", weight=None, largest=None)
    for name, value in exact.items():
        # scores in one bin count as equal
        close = pytest.approx(value, abs=3e-3 if name == "roc_auc" else 1e-6)
        assert two.metric(name).value == close
        # the broken twin forgets the weights
        assert plain.metric(name).value != close
    z = TARGETS["regression"]
    error = mean_absolute_error(z, MODELS["regression"].predict(X), sample_weight=WEIGHT)
    assert regression.metric("mae").value == pytest.approx(error, rel=0.02)
    assert "900 records with weights of up to 3," in repr(two)
    assert "64 weighted counts" in repr(two)


@pytest.mark.parametrize("kind", MODELS)
def test_weights_count_as_fractions_of_the_bound(kind):
    found = evaluated(kind, largest=2.0)
    parts = [
        np.minimum(w, 2)
        / 2
        * evaluated(kind, X[WEIGHT == w], picked(kind, w), weight=None, largest=None).counts_
        for w in np.unique(WEIGHT)
    ]
    np.testing.assert_allclose(found.counts_, sum(parts), atol=1e-6)


def picked(kind, w):
    return TARGETS[kind][WEIGHT == w] if kind in TARGETS else None


@pytest.mark.parametrize("persons", [False, True])
def test_a_replaced_record_moves_the_counts_by_two(persons):
    """Whatever its weight is, or a person's rows are; twins do not clip, or divide by the sum."""
    rng, levels = np.random.default_rng(1), ["a", "b"]
    worst = dict.fromkeys(("clipped", "not clipped", "by the sum"), 0.0)
    for kind, y in TARGETS.items():
        cells = cells_of(MODELS[kind], *RANGE.get(kind, {}).values())
        plan = EvaluationPlan(cells, 1.0, tuple(levels), persons=persons, max_weight=3.0)
        for _ in range(4):
            counts = []
            for m in rng.integers(1, 30, 2) if persons else (1, 1):
                rows, own = np.vstack([X[:50], 3 * rng.normal(size=(m, 2))]), rng.integers(2, size=m)
                ids, by = np.append(np.arange(50), np.full(m, 60)), rng.choice(levels, 50 + m)
                by[:50] = "a"
                weight = np.append(WEIGHT[:50], rng.choice([3.0, 40.0], size=m))
                given = MODELS[kind], rows, np.append(y[:50], own), groups_of(by, levels, 50 + m)
                each = Persons.of(ids, rows) if persons else None
                own = fractions_of_largest(weight, rows, 3.0)
                twins = [own, weight / 3, weight / weight.sum() * 50]
                found = [plan._counts(*given, each, fraction) for fraction in twins]
                assert (found[0] % plan.step == 0).all()
                counts.append(found)
            for name, one, other in zip(worst, *counts):
                worst[name] = max(worst[name], np.abs(one - other).sum())
    assert 1.5 < worst["clipped"] <= 2
    assert worst["not clipped"] > 3 and worst["by the sum"] > 2


def test_the_release_is_weighted_counts_and_noise_on_their_grid():
    stream = root_stream(3)
    found = evaluated("two", epsilon=0.7, random_state=stream)
    plan = EvaluationPlan(cells_of(MODELS["two"]), 0.7, random_state=stream, max_weight=3.0)
    exact = plan._counts(MODELS["two"], X, Y, weight=WEIGHT / 3)
    np.testing.assert_array_equal(found.counts_.ravel(), exact + plan.standard_noise(64))
    noise = EvaluationPlan(plan.cells, 0.7, random_state=1, max_weight=3.0).standard_noise(50_000)
    assert (noise % 1 != 0).any()  # whole numbers would show the fractions of the weights
    assert np.abs(noise).mean() == pytest.approx(2 / 0.7, rel=0.05)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration_and_rates_are_those_of_the_weighted_population(method):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40_000, 2))
    y = (rows[:, 0] + rng.normal(size=40_000) > 0.3).astype(int)
    weight = np.where(y == 1, 3.0, 1.0)
    model = LogisticRegression().fit(rows[:20_000], y[:20_000])
    found = evaluate(
        model, rows[20_000:], y[20_000:], epsilon=3.0, sample_weight=weight[20_000:], max_weight=3.0
    )
    p = calibrated(model, found, method=method).predict_proba(rows)[:, 1]
    exact = LogisticRegression().fit(rows, y, sample_weight=weight).predict_proba(rows)[:, 1]
    assert np.abs(p - exact).mean() < 0.03 < np.abs(model.predict_proba(rows)[:, 1] - exact).mean()
    flagged = calibrated(model, found, method=None, rate=0.3).predict(rows)
    assert np.average(flagged, weights=weight) == pytest.approx(0.3, abs=0.02)
    recall = found.metric("recall", rate=0.3)
    assert recall.low < np.average(flagged[y == 1]) < recall.high


@pytest.mark.parametrize("rows", ["sparse", "chunks"])
def test_rows_wherever_they_are(rows):
    parts = np.array_split(np.arange(len(X)), 3)
    table = (
        sparse.csr_array(X)
        if rows == "sparse"
        else RowChunks(lambda i: X[parts[i]], [len(part) for part in parts], 2)
    )
    kind = "two" if rows == "sparse" else "density"
    assert np.array_equal(evaluated(kind, table).counts_, evaluated(kind).counts_)


def coverage(scale, repetitions=300, n=1500, epsilon=3.0):
    """How often the truth is in intervals; weights depend on the cell, and are cut at 1."""
    generator = as_generator(0)
    law = generator.dirichlet(np.full(64, 0.5))
    mean_weight = generator.uniform(0.2, 0.6, size=64)
    counts = np.empty((repetitions, 64))
    for i in range(repetitions):
        cell = generator.choice(64, size=n, p=law)
        weight = np.minimum(generator.exponential(mean_weight[cell]), 1.0)
        counts[i] = np.bincount(cell, weight, 64)
    counts += generator.laplace(scale=2 / epsilon, size=counts.shape)
    found = NoisyCounts(counts * scale, noise_variance(epsilon, True) * scale**2, np.inf)
    truth = law * mean_weight * -np.expm1(-1 / mean_weight)  # the mean of the smaller one of both
    exact, positive = NoisyCounts(1e12 * truth[None], 0.0, np.inf), np.arange(64) // 2 > 15
    for name, metric in METRICS.items():
        expected = metric(exact, positive)[0][0]
        value, low, high = metric(found, positive)
        told = ~np.isnan(value)
        yield name, told.mean(), ((low <= expected) & (expected <= high))[told].mean()


def test_intervals_cover_whatever_the_weights_are():
    told_of = {}
    for name, told, covered in coverage(1.0):
        told_of[name] = told
        # below 0.88 of 300 and more at 0.95 has a probability below 1e-6
        assert told < 0.5 or covered > 0.88, name
    assert told_of["accuracy"] == told_of["roc_auc"] == 1


def test_weights_taken_for_numbers_of_records_are_caught():
    found = {name: covered for name, _, covered in coverage(30.0)}
    assert found["accuracy"] < 0.6


@pytest.mark.parametrize(
    "given, said",
    [
        ({"largest": None}, "sample_weight was given without max_weight"),
        ({"weight": None}, "max_weight was given without sample_weight"),
        ({"largest": -1.0}, "max_weight"),
        ({"largest": INF}, "max_weight"),
        ({"weight": WEIGHT[1:]}, "sample_weight must have one number"),
        ({"weight": np.where(WEIGHT > 2, np.nan, WEIGHT)}, "sample_weight holds a negative"),
        ({"weight": -WEIGHT}, "sample_weight holds a negative"),
    ],
)
def test_weights_that_say_nothing_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        evaluated("two", epsilon=1.0, **given)

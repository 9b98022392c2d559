"""Accuracy first where a person has any number of rows: risks and scores are means over persons."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    AccuracyNotReachedError,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
)
from dpselect.base.accuracy_form import NoiseLevels
from dpselect.model_selection.set_aside import SetAside
from dpselect.noise import root_stream
from dpselect.preprocessing import DPBoundsScaler
from dpselect.records.persons import Persons
from dpselect.records.public_shape import PublicShape
from dpselect.records.records import Weighted

PERSON = "replace all rows of one person"
RNG = np.random.default_rng(0)
SIZES = np.minimum(RNG.geometric(0.3, 400), 30)
IDS = RNG.permutation(np.repeat(np.arange(400), SIZES))
N_ROWS, N = len(IDS), 400
X = RNG.uniform(-0.5, 0.5, size=(N_ROWS, 2))
Z = X @ [1.0, -1.0] + 0.1 * RNG.normal(size=N_ROWS)
Y = (Z > 0).astype(int)
OUTPUT = DPLogisticRegression(classes=[0, 1], alpha=0.1, perturbation="output")
RIDGE = DPRidge(target_range=(-1, 1), alpha=0.1)
MODELS = {
    "output": (OUTPUT, Y),
    "objective": (DPLogisticRegression(classes=[0, 1], alpha=0.1), Y),
    "svc": (DPLinearSVC(classes=[0, 1], alpha=0.1, perturbation="output"), Y),
    "ridge": (RIDGE, Z),
    "ridge, output": (clone(RIDGE).set_params(perturbation="output"), Z),
    "histogram": (DPHistogramDensity(bounds=(-0.5, 0.5), bin_width=0.5), None),
}
EPSILONS = np.geomspace(0.05, 50, 40)


def search(model="output", **parameters):
    given = {"target": 0.05, "max_epsilon": float("inf"), "on_failure": "last"}
    given |= {"random_state": root_stream(0)} | parameters
    return AccuracyFirstSearchCV(MODELS[model][0], {"epsilon": EPSILONS}, **given)


WAYS = pytest.mark.parametrize("model, given", [
    ("output", dict(method="above_threshold")), ("output", dict(method="reduced_above_threshold")),
    ("output", dict(method="brownian", delta=1e-6)), ("output", dict(method="predict_verify")),
    ("output", dict(method="doubling", criterion="brier", target=0.24)),
    ("svc", dict(method="above_threshold", criterion="ramp", target=0.45)),
    ("ridge", dict(method="above_threshold")), ("ridge", dict(method="predict_verify")),
    ("ridge, output", dict(method="theory", target=0.2)), ("histogram", dict(method="certified")),
    ("histogram", dict(method="above_threshold", target=0.5)),
])  # fmt: skip


@WAYS
def test_one_row_a_person_is_no_groups_to_the_last_bit(model, given):
    y = MODELS[model][1]
    plain, persons = (
        search(model, **given).fit(X, y, **groups) for groups in ({}, {"groups": np.arange(N_ROWS)})
    )
    assert plain.best_epsilon_ == persons.best_epsilon_ and plain.path_.keys() == persons.path_.keys()
    for name in plain.path_:
        assert np.array_equal(plain.path_[name], persons.path_[name])
    for name in ("coef_", "density_"):
        one, other = (getattr(found.best_estimator_, name, 0) for found in (plain, persons))
        assert np.array_equal(one, other)
    assert persons.privacy_.epsilon == plain.privacy_.epsilon
    assert str(persons.plan_) == str(plain.plan_)


@WAYS
def test_losses_are_those_of_persons(model, given, tmp_path):
    y = MODELS[model][1]
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1e4, delta=1e-5, adjacency=PERSON)
    fitted = search(model, ledger=ledger, **given).fit(X, y, groups=IDS)
    assert {loss.adjacency for loss in fitted.privacy_.releases} == {PERSON}
    assert ledger.spent()[0] == fitted.privacy_.epsilon <= fitted.plan_.at_most.epsilon
    planned = search(model, **given).plan(N, 2, persons=True)
    assert planned.at_most.adjacency == PERSON and planned.sensitivity == fitted.plan_.sensitivity
    with pytest.raises(ValueError, match="replace one record"):
        search(model, ledger=ledger, **given).fit(X, y)


def pair(sizes, seed, kind):
    """Thirty persons of one row, and one whose rows are replaced by others, as many as there are."""
    rng, most = np.random.default_rng(seed), max(sizes)
    rows, other = rng.uniform(-0.7, 0.7, size=(2, 30 + most, 2))
    rows[30:], other[30:] = [0.45, 0.45], ([-0.45, -0.45] if seed % 2 else other[30:])
    other[:30] = rows[:30]
    y = np.append(rng.integers(2, size=30), np.ones(most, dtype=int))
    t = y.copy()
    t[30:] = 0 if seed % 3 else 1
    if kind.startswith("ridge"):
        y, t = 2.0 * y - 1, 2.0 * t - 1
        t[30:] *= seed < 3  # or in the middle of the range: of another size
    ids = np.append(np.arange(30), np.full(most, 30))
    return [(X[: 30 + n], y[: 30 + n], ids[: 30 + n]) for n, X, y in zip(sizes, (rows, other), (y, t))]


@pytest.mark.parametrize("kind", ["output", "svc", "ridge", "ridge, output", "histogram"])
def test_a_person_moves_errors_no_more_than_stated(kind):
    """The risk, the least risk and the root of the excess, of models anywhere in the ball."""
    model = clone(MODELS[kind][0])
    if kind != "histogram":
        model.set_params(fit_intercept=False)
    form = model.accuracy_form()
    bounds = form.bounds(PublicShape(31, 2, persons=True))
    directions = np.random.default_rng(0).normal(size=(30, 2))
    models = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    models = models[:, None] * getattr(form, "ball", 1.0)
    if kind.startswith("ridge"):
        models = models[:, 0] * form.problem.ball
    if kind == "histogram":
        models = np.eye(4)
    levels = NoiseLevels("fresh" if kind == "ridge" else "path", 1.0, 2.0)
    worst = {"persons": np.zeros(3), "rows": np.zeros(3)}
    for sizes in ((1, 1), (3, 3), (1000, 1000), (1, 1000), (1000, 3)):
        for seed in range(4):
            two = pair(sizes, seed, kind)
            # the broken twin takes each row for a person, of whom there are as many in both
            for name in ("persons", "rows") if len(set(sizes)) == 1 else ("persons",):
                one, other = (
                    form.reduction(
                        rows,
                        Weighted(y, None, ids if name == "persons" else np.arange(len(ids))),
                        levels,
                        root_stream(0),
                    )
                    for rows, y, ids in two
                )
                excess = [np.sqrt(each.excesses(models)) for each in (one, other)]
                moved = [
                    np.abs(one.risks(models) - other.risks(models)).max() / bounds.risk,
                    abs(one.minimum - other.minimum) / bounds.minimum,
                    np.abs(excess[0] - excess[1]).max() / bounds.root,
                ]
                worst[name] = np.maximum(worst[name], moved)
    assert (worst["persons"] <= 1 + 1e-9).all() and (worst["persons"] > 0.1).all()
    assert (worst["rows"] > 1).any()


def test_risks_are_means_over_persons():
    form = OUTPUT.accuracy_form()
    levels = NoiseLevels("path", 1.0, 2.0)

    def risks(rows, y, ids):
        reduction = form.reduction(rows, Weighted(y, None, ids), levels, root_stream(0))
        return reduction.risks(models)

    models = np.array([[[1.0, -1.0, 0.2]]])
    some = IDS < 30
    records = X[some], Y[some], IDS[some]
    each = [risks(*(part[records[2] == u] for part in records)) for u in range(30)]
    assert risks(*records) == pytest.approx(np.mean(each), rel=1e-9)
    assert risks(*records) != pytest.approx(risks(*records[:2], np.arange(some.sum())), rel=1e-5)


def test_parts_are_of_persons():
    """A score is tested on persons who did not train, and counts each of them once."""
    seen = {}

    class Score(type(search(criterion="brier")._score())):
        def __call__(self, estimator, X, y, sample_weight=None):
            seen["rows"], seen["weight"] = len(X), sample_weight
            return super().__call__(estimator, X, y, sample_weight=sample_weight)

    given = dict(criterion=Score(), method="doubling", target=0.24)
    fitted = search(**given).fit(X, Y, groups=IDS)
    assert seen["weight"].sum() == pytest.approx(80) and seen["rows"] != 80
    assert fitted.plan_.sensitivity == pytest.approx(search(**given).plan(N, 2).sensitivity)


def test_steps_evaluation_and_failure(tmp_path):
    pipeline = make_pipeline(DPBoundsScaler(0.5), clone(OUTPUT))
    fitted = AccuracyFirstSearchCV(
        pipeline,
        {"dplogisticregression__epsilon": EPSILONS},
        target=0.05,
        evaluation=0.25,
        max_epsilon=float("inf"),
    ).fit(X, Y, groups=IDS)
    assert {loss.adjacency for loss in fitted.privacy_.releases} == {PERSON}
    assert fitted.evaluation_.n_records == 100
    with pytest.raises(AccuracyNotReachedError) as caught:
        search(target=1e-9, method="certified", on_failure="raise").fit(X, Y, groups=IDS)
    assert caught.value.privacy.adjacency == PERSON


def test_a_bad_label_among_those_set_aside_costs_nothing(tmp_path):
    y = Y.copy()
    y[SetAside.of(0.25, N_ROWS, root_stream(0), Persons.of(IDS, X)).held[0]] = 7
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1e4, adjacency=PERSON)
    with pytest.raises(ValueError, match="y holds a label"):
        search(ledger=ledger, evaluation=0.25).fit(X, y, groups=IDS)
    assert ledger.spent()[0] == 0

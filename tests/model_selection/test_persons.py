"""Searches where a person has any number of rows: splits of persons, scores as means over persons."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    StabilityGridSearchCV,
)
from dpselect.base.certificates import SplitPatterns
from dpselect.base.estimator import Trial
from dpselect.exceptions import CertificateError
from dpselect.metrics import (
    AccuracyScore,
    BrierScore,
    ClippedSquaredErrorScore,
    IntegratedSquaredErrorScore,
    RampScore,
)
from dpselect.model_selection.candidates import Candidate
from dpselect.model_selection.exact_scores import exact_scores
from dpselect.model_selection.progress import Progress
from dpselect.model_selection.set_aside import SetAside
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler
from dpselect.records.persons import Persons
from dpselect.records.records import Weighted, score_on, take_part
from dpselect.rows import Parts, in_part

PERSON = "replace all rows of one person"
RNG = np.random.default_rng(0)
N_ROWS = 600
X = RNG.uniform(-0.5, 0.5, size=(N_ROWS, 2))
Y = (X @ [1.0, -1.0] + 0.2 * RNG.normal(size=N_ROWS) > 0).astype(int)
IDS = np.unique(np.minimum(RNG.geometric(0.02, N_ROWS), 150), return_inverse=True)[1]
N = IDS.max() + 1
LOGISTIC = DPLogisticRegression(classes=[0, 1], alpha=0.1)
# curvature of persons costs no more than that of records
STEEP = clone(LOGISTIC).set_params(max_derivative=None)
GRID = {"alpha": [0.05, 0.5]}


def search(strategy="stability", model=STEEP, grid=GRID, **parameters):
    return StabilityGridSearchCV(
        model,
        grid,
        strategy=strategy,
        **{"epsilon": 2.0, "random_state": root_stream(0), **parameters},
    )


RIDGE = DPRidge(target_range=(-1, 1))
WAYS = pytest.mark.parametrize("make", [
    lambda: search(), lambda: search("stability", scoring="ramp", n_noise_samples=2),
    lambda: search("optimal_risk"), lambda: search("budget_split"), lambda: search("random"),
    lambda: search("random_stopping"), lambda: search("data_independent"),
    lambda: search("budget_split", scoring="accuracy", delta=1e-6),
    lambda: search(model=RIDGE), lambda: search("optimal_risk", RIDGE, {"data_norm": [0.5, 1.0]}),
    lambda: search(model=clone(RIDGE).set_params(perturbation="output")),
    lambda: search("stability", DPHistogramDensity(bounds=(-0.5, 0.5)), {"bin_width": [0.5, 0.25]}),
    lambda: search(model=clone(LOGISTIC).set_params(perturbation="output")),
    lambda: search("optimal_risk", clone(STEEP).set_params(data_norm="auto")),
    lambda: search("auto", make_pipeline(DPBoundsScaler(0.5), clone(STEEP)), {
        "dplogisticregression__alpha": [0.1, 0.5]
    }),
])  # fmt: skip


@WAYS
def test_one_row_a_person_is_no_groups_to_the_last_bit(make):
    plain, persons = make().fit(X, Y), make().fit(X, Y, groups=np.arange(N_ROWS))
    assert plain.best_params_ == persons.best_params_
    one, other = (found.best_estimator_ for found in (plain, persons))
    one, other = (found[-1] if hasattr(found, "steps") else found for found in (one, other))
    for name in ("coef_", "gram_", "density_"):
        assert np.array_equal(getattr(one, name, 0), getattr(other, name, 0))
    assert persons.privacy_.epsilon == plain.privacy_.epsilon and persons.privacy_.adjacency == PERSON
    assert plain.plan_.to_dict() | {"persons": True} == persons.plan_.to_dict()


@WAYS
def test_losses_are_those_of_persons_and_paid_as_such(make, tmp_path):
    fitted = make().set_params(random_state=None)
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=3.0, delta=1e-5, adjacency=PERSON)
    fitted.set_params(ledger=ledger).fit(X, Y, groups=IDS)
    assert {loss.adjacency for loss in fitted.privacy_.releases} == {PERSON}
    assert ledger.remaining()[0] == pytest.approx(1.0)
    assert fitted.plan_.n_samples == N
    with pytest.raises(ValueError, match="replace one record"):
        fitted.fit(X, Y)
    planned = make().plan(N, 2, persons=True)
    assert planned.strategy == fitted.plan_.strategy
    assert planned.training_size == fitted.plan_.training_size


def test_parts_are_of_persons():
    shuffled = RNG.permutation(N)
    splits = [(np.sort(shuffled[: N // 2]), np.sort(shuffled[N // 2 :]))]
    parts = Parts.from_splits(splits, X, IDS)
    assert parts.train_sizes.tolist() == [N // 2] and parts.test_sizes.tolist() == [N - N // 2]
    train, test = in_part(parts.train, 0), in_part(parts.test, 0)
    for mask, part in ((train, splits[0][0]), (test, splits[0][1])):
        assert set(IDS[mask]) == set(part.tolist())
        rows, y = take_part(X, Weighted(Y, None, IDS), part)
        assert np.array_equal(rows, X[mask]) and np.array_equal(y.groups, IDS[mask])
    assert (train ^ test).all()


MODELS = {
    "logistic": (LOGISTIC, BrierScore(), Y), "steep": (STEEP, BrierScore(), Y),
    "svc": (DPLinearSVC(classes=[0, 1]), RampScore(), Y),
    "ridge": (
        clone(RIDGE).set_params(perturbation="output"), ClippedSquaredErrorScore(1.0), X[:, 0] - X[:, 1]
    ),
    "density": (
        DPHistogramDensity(bounds=(-0.5, 0.5), bin_width=0.5), IntegratedSquaredErrorScore(), None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_means_over_persons(name):
    model, score, y = MODELS[name]
    splits = [
        split
        for seed in range(2)
        for split in ShuffleSplit(1, test_size=0.3, random_state=seed).split(np.zeros(N))
    ]
    trial = Trial(model, 3.0, root_stream(1))
    parts = Parts.from_splits(splits, X, IDS)
    persons = Weighted(y, None, IDS)
    (together,) = type(model).split_scores([trial], score, X, persons, parts).T
    assert len(together) == len(splits) == 2
    for found, (train, test) in zip(together, splits):
        fitted = trial.fitted(*take_part(X, persons, train))
        each = [score(fitted, X[IDS == u], None if y is None else y[IDS == u]) for u in test]
        # (a release on a grid may be one step off)
        assert found == pytest.approx(np.mean(each), rel=1e-5, abs=1e-6)
        assert score_on(score, fitted, *take_part(X, persons, test)) == pytest.approx(np.mean(each))


def moved(name, size, splits_of, groups):
    """How far a person with `size` rows moves a mean score, as a share of what is certified."""
    model, score, _ = MODELS[name]
    model = clone(model).set_params(alpha=2.0, perturbation="output", fit_intercept=False)
    rng, worst = np.random.default_rng(0), 0.0
    ids = np.append(np.arange(11), np.full(size, 11))
    n = 12 if groups else len(ids)
    splits = splits_of(n)
    trial = Trial(model, 50.0, root_stream(0))
    for seed in range(12):
        rows = rng.normal(size=(len(ids), 2))
        y = rng.integers(2, size=len(ids)) if name != "ridge" else rng.choice([-1.0, 1.0], len(ids))
        if seed % 2:
            rows[:], y[:] = [1.0, 0.0], 1
        rows[11:], y[11:] = rows[11], y[11]
        other = rows.copy()
        other[11:] = -rows[11]
        shape = replace(trial.records(rows, y).shape, n_samples=len(splits[0][0]), persons=groups)
        certificate = trial.certificate(score, shape)
        (bound,) = SplitPatterns.from_splits(splits, n).sensitivities(
            *(np.full((1, 3), getattr(certificate, part)) for part in ("training", "span", "residual"))
        )
        parts = Parts.from_splits(splits, rows, ids if groups else None)
        labels = Weighted.of(y, None, ids if groups else None)
        one, two = (
            type(model).split_scores([trial], score, each, labels, parts).mean()
            for each in (rows, other)
        )
        worst = max(worst, abs(one - two) / bound)
    return worst


def thirds(n):
    units = np.arange(n)
    return [(units[units % 3 != k], units[units % 3 == k]) for k in range(3)]


@pytest.mark.parametrize("name", ["logistic", "svc", "ridge"])
@pytest.mark.parametrize("size", [1, 31])
def test_a_person_moves_scores_no_farther_than_certified(name, size):
    assert 0.05 < moved(name, size, thirds, groups=True) <= 1
    # the broken twin splits rows, and certifies them
    if size > 1:
        assert moved(name, size, thirds, groups=False) > 1


def test_the_sensitivity_of_a_search_is_that_of_persons():
    fitted = search(scoring="brier").fit(X, Y, groups=IDS)
    counted = search(scoring="brier").fit(X, Y)
    # far fewer persons than rows: the noise of rows would hide nobody
    assert (fitted.plan_.sensitivity > 2 * counted.plan_.sensitivity).all()


@pytest.mark.parametrize("kind", ["arrays", "sparse", "frame", "chunks"])
def test_rows_wherever_they_are(kind, tmp_path):
    from scipy import sparse

    from dpselect import RowChunks

    expected = search().fit(X, Y, groups=IDS)
    order = np.random.default_rng(5).permutation(N_ROWS)
    ids, rows, y = IDS[order], X[order], Y[order]
    if kind == "sparse":
        rows = sparse.csr_matrix(rows)
    if kind == "frame":
        pd = pytest.importorskip("pandas")
        rows, ids = pd.DataFrame(rows, columns=["a", "b"]), pd.Series([f"{i:03d}" for i in ids])
    if kind == "chunks":
        table, thirds = rows, np.split(np.arange(N_ROWS), 3)
        rows = RowChunks(lambda i: table[thirds[i]], [N_ROWS // 3] * 3, 2)
    found = search().fit(rows, y, groups=ids)
    assert found.best_params_ == expected.best_params_
    assert found.best_estimator_.coef_ == pytest.approx(expected.best_estimator_.coef_, rel=1e-6)


def test_steps_see_persons():
    pipeline = make_pipeline(BoundedScaler((-1, 1)), clone(LOGISTIC))
    fitted = search(model=pipeline, grid={"dplogisticregression__alpha": [0.1, 1.0]})
    assert fitted.fit(X, Y, groups=IDS).privacy_.adjacency == PERSON
    by_group = search(cv=GroupKFold(3), public_splits=True).fit(X, Y, groups=IDS)
    assert by_group.n_splits_ == 3
    weighted = search(model=clone(LOGISTIC).set_params(max_sample_weight=2.0))
    weighted.fit(X, Y, sample_weight=RNG.uniform(0, 2, N_ROWS), groups=IDS)
    assert weighted.privacy_.adjacency == PERSON


class OwnScore(BrierScore):
    def __call__(self, estimator, X, y):
        return 0.0


@pytest.mark.parametrize("make, said", [
    (lambda: search("budget_split", scoring=OwnScore()), "sample_weight"),
    (lambda: search(model=DPHistogramDensity(bounds=(-1, 1), noise="discrete_laplace"),
                    grid={"bin_width": [0.5, 1.0]}), "noise='laplace'"),
    (lambda: AccuracyFirstSearchCV(
        clone(LOGISTIC), {"epsilon": [1.0]}, target=0.1, criterion=OwnScore()
    ), "sample_weight"),
])  # fmt: skip
def test_what_does_not_take_groups_refuses_before_any_record(make, said):
    with pytest.raises((CertificateError, TypeError, ValueError), match=said):
        make().fit("not even records", None, groups="no ids")


def test_a_search_of_a_pipeline_says_how_groups_are_given():
    steps = make_pipeline(BoundedScaler((-1, 1)), clone(LOGISTIC))
    with pytest.raises(TypeError, match="write groups="):
        search(model=steps, grid={}).fit("not even records", None, dplogisticregression__groups="no ids")


def test_accuracy_of_persons():
    model = LOGISTIC.set_params(random_state=None).fit(X, Y, groups=IDS)
    hits = model.predict(X) == Y
    expected = np.mean([hits[IDS == u].mean() for u in range(N)])
    weight = Persons.of(IDS, X).weight
    assert AccuracyScore()(model, X, Y, sample_weight=weight) == pytest.approx(expected)


def test_exact_scores_without_a_sweep(monkeypatch):
    """Where a part names a person twice, each model is trained alone."""
    persons, trials = Weighted(Y, None, IDS), [Trial(LOGISTIC, 3.0, root_stream(1))] * 2
    candidates = [Candidate({}, LOGISTIC, ()) for _ in range(2)]
    splits = list(ShuffleSplit(2, test_size=0.3, random_state=0).split(np.zeros(N)))
    common = {"n_jobs": None, "pre_dispatch": "all", "progress": Progress()}

    def scores():
        return exact_scores(
            candidates, [[t] for t in trials], BrierScore(), X, persons, splits, **common
        )

    together = scores()
    monkeypatch.setattr(Parts, "from_splits", lambda *arguments: None)
    assert scores() == pytest.approx(together, rel=1e-6)


EVALUATED = {
    "logistic": (lambda **given: search(**given), Y),
    "held out": (lambda **given: search("budget_split", **given), Y),
    "ridge": (lambda **given: search(model=RIDGE, **given), X[:, 0] - X[:, 1]),
    "steps": (lambda **given: search("auto", make_pipeline(DPBoundsScaler(0.5), clone(STEEP)), {
        "dplogisticregression__alpha": [0.1, 0.5]
    }, **given), Y),
}  # fmt: skip


@pytest.mark.parametrize("kind", EVALUATED)
def test_persons_that_are_set_aside_have_no_part_in_the_model(kind, tmp_path):
    make, y = EVALUATED[kind]
    aside = SetAside.of(0.25, N_ROWS, root_stream(0), Persons.of(IDS, X))
    assert not set(IDS[aside.held]) & set(IDS[aside.training])
    assert len(np.unique(IDS[aside.held])) == round(0.25 * N)
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=2.0, adjacency=PERSON)
    fitted = make(evaluation=0.25, ledger=ledger).fit(X, y, groups=IDS)
    loss = fitted.privacy_
    assert loss.epsilon == fitted.evaluation_.privacy_.epsilon == ledger.spent()[0]
    assert {release.adjacency for release in loss.releases} == {PERSON}
    assert fitted.evaluation_.n_records == round(0.25 * N)
    assert fitted.plan_.n_samples == N - round(0.25 * N)
    # all their rows may be others, and of another number
    times = np.ones(N_ROWS, dtype=int)
    times[aside.held[::2]] = 3
    rows, labels = X.copy(), y.copy()
    rows[aside.held], labels[aside.held] = 0.4, y[0]
    rows, labels, ids = (np.repeat(part, times, axis=0) for part in (rows, labels, IDS))
    other = make(evaluation=0.25).fit(rows, labels, groups=ids)
    one, other = (found.best_estimator_ for found in (fitted, other))
    one, other = (found[-1] if hasattr(found, "steps") else found for found in (one, other))
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_a_plan_is_of_persons():
    parameters = dict(evaluation=0.25, cv=GroupKFold(3), public_splits=True)
    fitted = search(**parameters).fit(X, Y, groups=IDS)
    planned = search(**parameters).plan(N, 2, persons=True)
    assert "persons are set aside" in planned.messages[-1]
    assert planned.n_samples == fitted.plan_.n_samples
    assert planned.training_size == fitted.plan_.training_size
    with pytest.raises(CertificateError, match="sample_weight"):
        search("budget_split", scoring=OwnScore()).plan(N, 2, persons=True)


def test_without_privacy():
    """Still about persons: these are set aside, and in a fold, with all rows."""
    fitted = search(epsilon=math.inf, evaluation=0.25, cv=3).fit(X, Y, groups=IDS)
    rest = SetAside.of(0.25, N_ROWS, root_stream(0), Persons.of(IDS, X)).training
    exact = GridSearchCV(clone(LOGISTIC).set_params(epsilon=math.inf), GRID, cv=GroupKFold(3))
    exact.fit(X[rest], Y[rest], groups=IDS[rest])
    assert np.array_equal(fitted.cv_results_["mean_test_score"], exact.cv_results_["mean_test_score"])
    assert fitted.privacy_.adjacency == fitted.evaluation_.privacy_.adjacency == PERSON
    assert fitted.evaluation_.n_records == round(0.25 * N)


@pytest.mark.parametrize("bad", ["row", "target"])
def test_a_bad_value_among_those_set_aside_costs_nothing(bad, tmp_path):
    rows, targets = X.copy(), (X[:, 0] - X[:, 1]).astype(str).astype(object)
    held = SetAside.of(0.25, N_ROWS, root_stream(0), Persons.of(IDS, X)).held
    if bad == "row":
        rows[held[0]] = np.nan
    else:
        targets[held[0]] = "none"
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=2.0, adjacency=PERSON)
    with pytest.raises(ValueError):
        search(model=RIDGE, evaluation=0.25, ledger=ledger).fit(rows, targets, groups=IDS)
    assert ledger.spent()[0] == 0

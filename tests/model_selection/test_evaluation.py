"""The sweep over all candidates, noise samples and splits against one fit after the other."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
)

import dpselect
from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from dpselect.base.estimator import Trial
from dpselect.density import split_scores as density_splits
from dpselect.metrics import (
    BrierScore,
    ClippedSquaredErrorScore,
    HingeScore,
    IntegratedSquaredErrorScore,
    LogisticScore,
    RampScore,
    get_score,
)
from dpselect.model_selection import exact_scores as evaluation
from dpselect.model_selection.candidates import make_candidates, with_columns
from dpselect.model_selection.progress import Progress
from dpselect.model_selection.strategies import Problem
from dpselect.model_selection.strategies.stability import Stability
from dpselect.model_selection.strategies.stability_plan import make_plan
from dpselect.noise import root_stream
from dpselect.rows import MOST_SPLITS, Parts
from tests.trials import fitted, scales_of, solved, trial

CV = {
    "folds": KFold(5, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=2, n_repeats=3, random_state=0),
    "shuffle": ShuffleSplit(3, train_size=0.3, test_size=0.5, random_state=0),
    "uneven": PredefinedSplit(np.digitize(np.arange(3000), [300, 1200])),
}
LOGISTIC = DPLogisticRegression(epsilon=2.0, classes=[0, 1])
CLASSIFIERS = {
    "alphas": ([clone(LOGISTIC).set_params(alpha=a) for a in (1e-4, 1e-2, 1.0, 100.0)], BrierScore()),
    "automatic": ([LOGISTIC], LogisticScore()),
    "rows seen differently": (
        [
            clone(LOGISTIC).set_params(alpha=0.1, data_norm=R, perturbation=kind, fit_intercept=b)
            for R in (0.3, 3.0)
            for kind in ("objective", "output")
            for b in (True, False)
        ],
        RampScore(),
    ),
    "l1": (
        [clone(LOGISTIC).set_params(alpha=a, norm="l1", data_norm_l1=1.2) for a in (0.01, 0.1)],
        HingeScore(),
    ),
    "two kinds": (
        [clone(LOGISTIC).set_params(alpha=0.1), DPLinearSVC(2.0, alpha=0.1, classes=[0, 1])],
        BrierScore(),
    ),
    "svc": (
        [DPLinearSVC(2.0, alpha=a, huber_width=0.1, classes=[0, 1]) for a in (1e-3, 0.1)],
        BrierScore(),
    ),
}


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4)) * [0.1, 0.3, 0.5, 1.0]
    return X, (X @ [3.0, -2.0, 1.0, 0.0] + 0.5 * rng.logistic(size=3000) > 0).astype(int)


def compare(models, score, X, y, splits, tolerance=1e-8):
    """Compare the sweep with one fit and one score after the other, at the same noise."""
    models = [
        clone(model).set_params(random_state=root_stream(0).child("draw", i))
        for i, model in enumerate(models)
    ]
    sweep = evaluation._score_splits(list(map(trial, models)), X, y, splits, score)

    def one_by_one(model, train, test):
        alone = fitted(model, X[train], None if y is None else y[train])
        return score(alone, X[test], None if y is None else y[test])

    expected = [[one_by_one(model, *split) for model in models] for split in splits]
    np.testing.assert_allclose(sweep, expected, rtol=0, atol=tolerance)
    return sweep


@pytest.fixture
def swept(monkeypatch):
    """No sweep may silently give way to one-by-one fits."""
    monkeypatch.setattr(evaluation, "_scores_of", None)


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("cv", CV.values(), ids=CV)
@pytest.mark.parametrize("models, score", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers(records, models, score, cv):
    sweep = compare(models, score, *records, list(cv.split(records[0])))
    assert np.ptp(sweep) > 0


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_many_classes_of_dense_and_sparse_rows(records, container):
    X, _ = records
    y = np.array(["ill", "well", "neither"])[np.digitize(X[:, 3], [-0.5, 0.5])]
    models = [
        clone(LOGISTIC).set_params(alpha=a, classes=["ill", "neither", "well", "never seen"])
        for a in (1e-3, 0.1)
    ]
    compare(models, BrierScore(), container(X), y, list(CV["folds"].split(X)))


def test_coefficients_of_the_sweep_are_those_of_single_fits(records):
    """Not only their scores, which average errors out; for weak regularisation too.

    A residual of tau moves a minimiser by tau / mu, so that the tolerance is a small one here.
    """
    X, y = records
    models = [
        clone(LOGISTIC).set_params(alpha=a, tol=1e-12, random_state=root_stream(i))
        for i, a in enumerate(np.geomspace(1e-3, 10, 6))
    ]
    splits = list(CV["folds"].split(X))
    W = solved(models, X, y, Parts.from_splits(splits, X))
    for j, (train, _) in enumerate(splits):
        for i, model in enumerate(models):
            alone = fitted(model, X[train], y[train])
            expected = np.append(alone.coef_, alone.intercept_)
            np.testing.assert_allclose(W[j, i, 0], expected, rtol=0, atol=1e-8)


def test_records_outside_of_a_training_part_move_its_model_by_the_residual_only(records):
    """But they do move it: where the descent starts depends on all records."""
    X, y = records
    model = clone(LOGISTIC).set_params(alpha=0.01, random_state=root_stream(0))
    train = np.arange(len(X)) < 2000
    parts = Parts.from_splits([(np.flatnonzero(train), np.flatnonzero(~train))], X)

    def coefficients(X, y):
        return solved([model], X, y, parts)[0, 0, 0]

    others = np.where(train[:, None], X, -5.0)
    moved = np.linalg.norm(coefficients(X, y) - coefficients(others, np.where(train, y, 1)))
    scales = scales_of(model, 2000, 4)
    certificate = model.stability_certificate(BrierScore(), 2000, 4)
    allowed = BrierScore().lipschitz * model.problem().radius * 2 * scales.tau / scales.mu
    assert certificate.residual == pytest.approx(allowed, rel=1e-12)
    assert 0 < moved <= 2 * scales.tau / scales.mu


def test_the_plan_charges_for_the_residual():
    # so weak a regularisation that the sensitivity to a training record is the whole span
    model = clone(LOGISTIC).set_params(alpha=1e-9, perturbation="output")
    candidates = make_candidates(model, {"alpha": [1e-9, 2e-9]}, trusted_steps=())
    candidates = with_columns(candidates, 4, None)
    trials = [[Trial(c.model, 1.0, root_stream(i))] for i, c in enumerate(candidates)]
    splits = list(KFold(5).split(np.zeros((1000, 1))))
    problem = Problem(candidates, BrierScore(), splits, 1000, 4, epsilon=2.0, selection_fraction=0.5)
    plan = make_plan(Stability(problem), trials)
    for i, candidate in enumerate(candidates):
        bound = trials[i][0].certificate(BrierScore(), candidate.shape(800))
        assert bound.residual > 0.05
        expected = (4 * bound.training + bound.span / 200 + bound.residual) / 5
        assert plan.sensitivity[i] == pytest.approx(expected, rel=1e-12)


RIDGES = {
    "objective": [
        DPRidge(2.0, alpha=a, perturbation="objective", target_range=(-1, 1)) for a in (1e-3, 0.1, 10.0)
    ],
    "output": [
        DPRidge(
            2.0,
            alpha=a,
            perturbation="output",
            norm=norm,
            fit_intercept=b,
            target_range=(-1, 1),
            data_norm_l1=1.0 if norm == "l1" else None,
        )
        for a in (1e-3, 1.0)
        for norm in ("l1", "l2")
        for b in (True, False)
    ],
    "covariance": [
        DPRidge(
            2.0,
            alpha=a,
            norm=norm,
            data_norm=R,
            target_range=(-1, 1),
            data_norm_l1=R if norm == "l1" else None,
        )
        for a in (1e-3, 1.0)
        for norm in ("l1", "l2")
        for R in (0.5, 2.0)
    ],
    "all": [
        DPRidge(50.0, norm="l2", perturbation=kind, coef_bound=0.3, target_range=(-1, 1))
        for kind in ("objective", "output", "covariance")
    ],
}


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("cv", CV.values(), ids=CV)
@pytest.mark.parametrize("models", RIDGES.values(), ids=RIDGES)
def test_ridge(records, models, cv):
    X, y = records
    score = ClippedSquaredErrorScore(bound=0.3)
    sweep = compare(models, score, X, y * 1.0, list(cv.split(X)))
    assert np.ptp(sweep) > 0


@pytest.mark.usefixtures("swept")
def test_ridge_on_training_parts_of_very_different_sizes(records):
    """Few records allow entries of more bits than the sums over many can hold."""
    X, y = records
    splits = [(np.arange(n), np.arange(n, 3000)) for n in (2, 300, 1600, 2999)]
    models = [DPRidge(1e6, norm="l1", perturbation="covariance", target_range=(-1, 1), data_norm_l1=1.0)]
    compare(models, ClippedSquaredErrorScore(bound=0.3), X, y * 1.0, splits)


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("noise", ["laplace", "discrete_laplace"])
@pytest.mark.parametrize("cv", CV.values(), ids=CV)
def test_histograms(records, cv, noise):
    X = records[0][:, 2:]
    # on the edges, too, and outside
    X = np.where(np.arange(len(X))[:, None] % 3, X, np.round(X, 1))
    widths = [0.1, 0.2, 0.4, 2.0, 0.05, 1 / 3, (0.1, 1.0), (0.5, 2 / 3)]
    models = [DPHistogramDensity(0.5, bin_width=w, bounds=(-1.0, 1.0), noise=noise) for w in widths]
    models.append(DPHistogramDensity(0.5, bin_width=0.1, bounds=[(-1.0, 1.0), (-2.0, 2.0)]))
    compare(models, IntegratedSquaredErrorScore(), X, None, list(cv.split(X)))


# Each parameter may be all in which two candidates differ. Rows are longer than each of these norms.
LINEAR = {"epsilon": 2.0, "alpha": 0.1, "data_norm": 0.5}
L1 = {"norm": "l1", "data_norm_l1": 0.6}
BASES = {
    "logistic": [DPLogisticRegression(**LINEAR, **norm, classes=[0, 1]) for norm in ({}, L1)],
    "svc": [DPLinearSVC(**LINEAR, **norm, classes=[0, 1]) for norm in ({}, L1)],
    "poisson": [DPPoissonRegressor(**LINEAR, **norm, target_bound=1.0) for norm in ({}, L1)],
    "huber": [DPHuberRegressor(**LINEAR, **norm, target_range=(-1.0, 1.0)) for norm in ({}, L1)],
    "ridge": [
        DPRidge(**LINEAR, **norm, perturbation=kind, target_range=(-1.0, 1.0), coef_bound=0.1)
        for norm in ({"norm": "l2"}, L1)
        for kind in ("covariance", "output", "objective")
    ],
    "histogram": [DPHistogramDensity(2.0, bin_width=0.25, bounds=(-1.0, 1.0))],
}
OTHERS = {
    "epsilon": [1.0],
    "alpha": [0.3],
    "perturbation": ["objective", "output", "covariance"],
    "norm": ["l1", "l2"],
    "data_norm": [0.3],
    "data_norm_l1": [0.4],
    "fit_intercept": [False],
    "intercept_scaling": [0.5],
    "max_sample_weight": [0.5],
    "class_weight": [{0: 0.5, 1: 2.0}],
    "base_rate": [0.2],
    "huber_width": [0.1],
    "max_derivative": [0.6],
    "target_bound": [0.5],
    "target_range": [(-0.5, 0.7)],
    "coef_bound": [0.05],
    "delta": [1e-3],
    "tol": [1e-12],
    "bin_width": [0.5],
    "bounds": [(-0.5, 1.0)],
    "noise": ["discrete_laplace"],
}
# a search's records have one set of labels; the others say how a model is computed, or paid
NOT_VARIED = {"classes", "ledger", "random_state", "n_jobs", "max_iter"}


def pairs_of(base):
    """Yield a parameter and two models that differ in it alone."""
    for name in base.get_params().keys() - NOT_VARIED:
        for value in OTHERS[name]:
            other = clone(base).set_params(**{name: value})
            try:
                other._check_parameters()
            except ValueError:
                continue  # not together with the others
            yield name, (clone(base), other)


def test_every_class_with_a_sweep_is_here():
    kinds = {getattr(dpselect, name) for name in dpselect.__all__}
    swept = {kind for kind in kinds if hasattr(kind, "split_scores") or hasattr(kind, "optimal_values")}
    assert swept == {type(base) for bases in BASES.values() for base in bases}


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("bases", BASES.values(), ids=BASES)
def test_candidates_that_differ_in_one_parameter_alone(records, bases):
    """They are scored and bounded together as they are one by one, so none has the other's value."""
    X = records[0][:200] + 0.4
    y = None if bases is BASES["histogram"] else records[1][:200]
    splits, matters = list(KFold(2).split(X)), set()
    score = get_score(bases[0].default_scoring)
    for name, models in (pair for base in bases for pair in pairs_of(base)):
        table = compare(models, score, X, y, splits)
        if np.ptp(table, axis=1).all():
            matters.add(name)
        if hasattr(models[0], "optimal_values"):
            trials = list(map(trial, models))
            values = type(models[0]).optimal_values(trials, X, y, 3.0)
            alone = [type(models[0]).optimal_values([one], X, y, 3.0)[0] for one in trials]
            np.testing.assert_allclose(values, alone, rtol=1e-8)
    assert matters == bases[0].get_params().keys() - NOT_VARIED


def test_widths_that_are_multiples_are_counted_once(records, monkeypatch):
    X, seen = records[0][:, 3:], []
    count = density_splits._counts
    monkeypatch.setattr(
        density_splits, "_counts", lambda *args: seen.append(args[1].size) or count(*args)
    )
    models = [DPHistogramDensity(bin_width=w, bounds=(0.0, 1.0)) for w in (1.0, 0.5, 0.25, 0.125, 0.2)]
    splits = list(CV["uneven"].split(X))
    compare(models, IntegratedSquaredErrorScore(), X, None, splits)
    assert seen == [8, 5]
    # few counts at a time
    monkeypatch.setattr(density_splits, "MAX_COUNTS", 20)
    compare(models, IntegratedSquaredErrorScore(), X, None, splits)
    assert seen[2:] == [8, 8, 8, 5, 5]


def test_splits_that_repeat_a_record_are_trained_one_by_one(records):
    X, y = records
    rng = np.random.default_rng(1)
    splits = [
        (rng.integers(2000, size=1500), np.arange(2000, 3000)),
        (np.arange(2000), np.r_[2000:2500, 2000:2500]),
    ]
    assert Parts.from_splits(splits[:1], X) is None
    assert Parts.from_splits(splits[1:], X) is None
    compare([clone(LOGISTIC).set_params(alpha=0.1)], BrierScore(), X, y, splits)


def test_more_splits_than_are_worked_on_together(records, monkeypatch):
    X, y = records[0][:40], records[1][:40]
    sizes = []
    original = Parts.from_splits
    monkeypatch.setattr(
        Parts,
        "from_splits",
        lambda splits, *given: sizes.append(len(splits)) or original(splits, *given),
    )
    candidates = make_candidates(LOGISTIC, {"alpha": [0.1, 1.0]}, trusted_steps=())
    trials = [[Trial(c.model, 2.0, root_stream(i))] for i, c in enumerate(candidates)]
    splits = list(LeaveOneOut().split(X))
    scores = evaluation.exact_scores(
        candidates,
        trials,
        BrierScore(),
        X,
        y,
        splits,
        n_jobs=1,
        pre_dispatch="all",
        progress=Progress(),
    )
    assert sum(sizes) == 40 and max(sizes) <= MOST_SPLITS
    together = [t for (t,) in trials]
    expected = evaluation._score_splits(together, X, y, splits, BrierScore()).mean(axis=0)
    np.testing.assert_allclose(scores, expected, atol=1e-8)

import math
import pickle
import time
import warnings
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, ParameterGrid, StratifiedKFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dpselect import (
    CertificateError,
    DPLogisticRegression,
    PrivacyLoss,
    SeededNoiseWarning,
    StabilityGridSearchCV,
)
from dpselect.base.certificates import Certificate
from dpselect.base.estimator import PrivateClassifier, Trial
from dpselect.metrics import BrierScore
from dpselect.model_selection import exact_scores as evaluation
from dpselect.model_selection.candidates import make_candidates
from dpselect.model_selection.progress import Progress
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler
from dpselect.records.public_shape import PublicShape
from dpselect.rows import Parts
from tests.model_selection.strategies.common import Untouchable

MODEL = DPLogisticRegression(classes=["ill", "well"])
GRID = {"alpha": [0.01, 0.1, 1.0]}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4)) / 3
    y = np.where(X @ [4, -4, 1, 0] + rng.logistic(size=3000) / 3 > 0, "well", "ill")
    return X, y


def search(estimator=MODEL, grid=GRID, **parameters):
    """The search that this module is about; every strategy has tests of its own."""
    return StabilityGridSearchCV(estimator, grid, **{"strategy": "stability", **parameters})


def seeded_fit(data, estimator=MODEL, grid=GRID, **parameters):
    with pytest.warns(SeededNoiseWarning):
        return search(estimator, grid, random_state=0, **parameters).fit(*data)


@pytest.mark.parametrize("fraction", [0.1, 0.9])
def test_selection_fraction(data, fraction):
    s = search(selection_fraction=fraction).fit(*data)
    np.testing.assert_allclose([r.epsilon for r in s.privacy_.releases], [fraction, 1 - fraction])
    assert s.privacy_.epsilon == 1.0


def trials_of(candidates, epsilon, noise_streams):
    return [
        [Trial(candidate.model, epsilon, draw) for draw in some]
        for candidate, some in zip(candidates, noise_streams)
    ]


@pytest.mark.parametrize("grid", [{"alpha": [0.1, 0.2, 0.3]}, [{}, {}, {"alpha": [0.1, 0.2]}]])
def test_candidates_that_differ_in_numbers_are_models_of_their_own(grid):
    given = clone(MODEL)
    models = [candidate.model for candidate in make_candidates(given, grid, trusted_steps=())]
    before = [model.get_params() for model in models]
    assert [p["alpha"] for p in before] == [
        {"alpha": given.alpha, **params}["alpha"] for params in ParameterGrid(grid)
    ]
    for i, model in enumerate(models):
        model.set_params(alpha=float(i), classes=[i, i + 1])
    assert [model.alpha for model in models] == list(range(len(models)))
    assert given.get_params() == MODEL.get_params()


def test_candidates_know_nothing_of_each_other():
    first, second = make_candidates(clone(MODEL), {"alpha": [0.1, 0.2]}, trusted_steps=())
    changed = first.with_model_params(alpha=7.0, classes=[7, 8])
    assert [c.model.alpha for c in (first, second, changed)] == [0.1, 0.2, 7.0]
    assert first.model.classes == MODEL.classes and changed.params == first.params
    with pytest.raises(FrozenInstanceError):
        first.n_features = 3


def test_numbers_do_not_hide_what_a_grid_may_not_vary():
    for name in ("ledger", "no_such_parameter", "epsilon"):
        with pytest.raises(ValueError, match=name):
            make_candidates(clone(MODEL), {"alpha": [0.1, 0.2], name: [0.3, 0.4]}, trusted_steps=())


def test_candidates_that_see_rows_differently_are_trained_apart(data):
    """A grid over the norm, the intercept and the perturbation, against one-by-one fits."""
    X, y = data
    grid = {
        "data_norm": [0.3, 3.0],
        "fit_intercept": [True, False],
        "perturbation": ["objective", "output"],
        "max_iter": [3, 100],
    }
    stream = root_stream(0)
    candidates = make_candidates(clone(MODEL).set_params(alpha=0.1), grid, trusted_steps=())
    noise_streams = [[stream.child("draw", i)] for i in range(len(candidates))]
    trials = trials_of(candidates, 5.0, noise_streams)
    split = [(np.arange(2000), np.arange(2000, 3000))]
    scores = evaluation.exact_scores(
        candidates, trials, BrierScore(), X, y, split, n_jobs=1, pre_dispatch="all", progress=Progress()
    )
    assert len(trials) == len(scores) == 16
    for (trial,), score in zip(trials, scores):
        model = trial.fitted(X[:2000], y[:2000])
        np.testing.assert_allclose(BrierScore()(model, X[2000:], y[2000:]), score, atol=1e-8)


def test_every_candidate_and_noise_sample_has_its_own_noise_the_same_for_all_splits(data, monkeypatch):
    seen = []

    def spy(trials, X, y, train, test, score):
        seen.append([trial.noise(PublicShape(*X.shape)).tobytes() for trial in trials])
        return [0.0] * len(trials)

    # one split after the other, as for splits that cannot be swept
    monkeypatch.setattr(evaluation, "_scores_of", spy)
    monkeypatch.setattr(Parts, "from_splits", lambda *splits: None)
    s = search(n_noise_samples=3).fit(*data)
    assert len(seen) == 5 and all(noise == seen[0] for noise in seen)
    assert len(set(seen[0])) == 9
    assert s.n_splits_ == 5


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_jobs_do_not_change_the_result(data, backend):
    alone = seeded_fit(data, n_jobs=1)
    with parallel_config(backend=backend):
        together = seeded_fit(data, n_jobs=2)
    assert alone.best_index_ == together.best_index_
    np.testing.assert_array_equal(alone.best_estimator_.coef_, together.best_estimator_.coef_)


def test_numpy_global_state_is_untouched(data):
    pipeline = make_pipeline(RBFSampler(gamma=1.0, n_components=5), clone(MODEL))
    np.random.seed(0)
    before = pickle.dumps(np.random.get_state())
    search(pipeline, {"dplogisticregression__alpha": [0.1, 1.0]}).fit(*data)
    assert pickle.dumps(np.random.get_state()) == before


def test_pipeline(data):
    pipeline = make_pipeline(BoundedScaler((-2, 2)), RBFSampler(n_components=10), clone(MODEL))
    grid = {
        "rbfsampler__gamma": [0.1, 1.0],
        "dplogisticregression__alpha": [0.01, 0.1],
        "boundedscaler": [BoundedScaler((-1, 1)), "passthrough"],
    }
    s = search(pipeline, grid).fit(*data)
    assert s.best_estimator_[-1].privacy_.epsilon == 0.5 and s.privacy_.epsilon == 1.0
    assert len(s.cv_results_["params"]) == 8
    assert s.predict(data[0]).shape == (3000,)
    # the feature maps that were compared and the one that is released are the same sample
    assert isinstance(s.best_estimator_.named_steps["rbfsampler"].random_state, int)
    assert pipeline.named_steps["rbfsampler"].random_state is None


def test_models_as_candidates(data):
    pipeline = make_pipeline(BoundedScaler((-2, 2)), "passthrough")
    pipeline.steps[-1] = ("model", clone(MODEL))
    grid = [
        {
            "model": [DPLogisticRegression(classes=["ill", "well"], perturbation="output")],
            "model__alpha": [0.1, 1.0],
        },
        {"model__data_norm": [0.5, 2.0]},
    ]
    s = search(pipeline, grid).fit(*data)
    assert len(s.cv_results_["params"]) == 4 and s.privacy_.epsilon == 1.0
    assert np.ma.is_masked(s.cv_results_["param_model"][2])


def test_one_candidate_costs_nothing_to_select(data):
    s = search(grid={"alpha": [0.1]}).fit(*data)
    assert s.best_estimator_.epsilon == 1.0 and len(s.privacy_.releases) == 1
    s = search(grid={"alpha": [0.1]}, refit=False).fit(*data)
    assert s.privacy_.epsilon == 0.0


def test_delta_bounds_the_tail(data):
    s = seeded_fit(data, delta=1e-6)
    exact = seeded_fit(data)
    assert (s.privacy_.delta, exact.privacy_.delta) == (1e-6, 0.0)
    assert (s.cv_results_["score_span"] >= exact.cv_results_["score_span"]).all()


def test_a_class_that_some_folds_lack(data):
    X, y = data
    y = np.where(np.arange(3000) == 0, "ill", "well")
    search().fit(X, y)


def test_verbose_prints_public_facts(data, capsys):
    search(verbose=1).fit(*data)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["group of candidates 1 of 1: done", "training the chosen model on 3000 records"]
    assert lines[0].startswith("choosing among ") and len(lines) == 3


def test_refit_after_inf_forgets_exact_scores(data):
    s = search(epsilon=float("inf"), cv=3).fit(*data)
    assert "mean_test_score" in s.cv_results_ and 0 > s.best_score_ - 1
    assert s.privacy_ == PrivacyLoss(float("inf"), label="exact scores and an exact choice")
    s.set_params(epsilon=1.0).fit(*data)
    assert "mean_test_score" not in s.cv_results_
    assert not hasattr(s, "best_score_") and not hasattr(s, "refit_time_")
    with pytest.raises(AttributeError, match="not paid for"):
        s.best_score_


NESTED = FeatureUnion([("a", make_pipeline(DPBoundsScaler(0.1))), ("b", DPBoundsScaler(0.2))])


@pytest.mark.parametrize(
    "estimator, grid",
    [
        (MODEL, {"alpha": [0.1, 1.0]}),
        (make_pipeline(DPBoundsScaler(0.1), MODEL), {"dplogisticregression__alpha": [0.1, 1.0]}),
        (Pipeline([("s", NESTED), ("m", MODEL)]), {"m__alpha": [0.1]}),
        (
            Pipeline([("s", "passthrough"), ("m", MODEL)]),
            {"m": [clone(MODEL).set_params(epsilon=0.01)], "s": [NESTED, DPBoundsScaler(0.01)]},
        ),
        (MultiOutputClassifier(MODEL), {"estimator__alpha": [0.1]}),
    ],
    ids=["model", "step", "nested steps", "brought in by the grid", "wrapped"],
)
def test_inf_takes_the_noise_out_of_every_part(estimator, grid, data):
    X, y = data
    if isinstance(estimator, MultiOutputClassifier):
        y = y[:, None]
    first, again = (
        StabilityGridSearchCV(clone(estimator), grid, epsilon=math.inf, cv=3).fit(X, y) for _ in range(2)
    )
    parts = first.best_estimator_.get_params()
    assert {value for name, value in parts.items() if name.endswith("epsilon")} == {math.inf}
    np.testing.assert_array_equal(
        first.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"]
    )
    assert first.estimator.get_params().keys() == clone(estimator).get_params().keys()
    given = [value for name, value in first.estimator.get_params().items() if name.endswith("epsilon")]
    assert math.inf not in given


# --- what an adversarial reader of the code found


def test_a_grid_cannot_bring_in_a_private_step(data):
    pipeline = Pipeline([("s", "passthrough"), ("m", clone(MODEL))])
    for grid in (
        {"s": [DPBoundsScaler(50.0), DPBoundsScaler(float("inf"))]},
        {"s": [FeatureUnion([("a", DPBoundsScaler(50.0))])]},
        {"steps": [[("s", DPBoundsScaler(50.0)), ("m", clone(MODEL))]]},
    ):
        with pytest.raises(ValueError, match="param_grid"):
            search(pipeline, grid).fit(*data)
    frozen = Pipeline([("s", FrozenEstimator(DPBoundsScaler(50.0))), ("m", clone(MODEL))])
    with pytest.raises(ValueError, match="FrozenEstimator"):
        search(frozen, {"m__alpha": [0.1, 1.0]}).fit(*data)


def test_every_candidate_is_certified_for_its_own_classes(data):
    X, y = data
    grid = {"classes": [["ill", "well"], ["ill", "unknown", "well"]], "alpha": [0.1]}
    s = seeded_fit(data, DPLogisticRegression(), grid)
    stream = root_stream(0)
    for i, (classes, problems) in enumerate(zip(grid["classes"], (1, 3))):
        model = DPLogisticRegression(
            epsilon=0.5, alpha=0.1, classes=classes, random_state=stream.child("draw", i, 0)
        )
        expected = model.stability_certificate(BrierScore(), 2400, 4, problems)
        assert np.isclose(s.cv_results_["training_stability"][i], expected.training)
        assert np.isclose(s.cv_results_["score_span"][i], expected.span)


def test_threads_do_not_share_models(data, monkeypatch):
    """Folds that are trained in threads must not overwrite each other's models."""
    X, y = data
    order = np.argsort(y, kind="stable")
    cv, original = KFold(5), DPLogisticRegression.decision_function

    def slow(self, X):
        decision = original(self, X)
        time.sleep(0.02)
        return decision

    monkeypatch.setattr(DPLogisticRegression, "decision_function", slow)
    monkeypatch.setattr(Parts, "from_splits", lambda *splits: None)
    candidates = make_candidates(MODEL, GRID, trusted_steps=())
    noise_streams = [[root_stream(0).child("draw", i)] for i in range(3)]
    trials = trials_of(candidates, 0.5, noise_streams)

    def scores(n_jobs):
        with parallel_config(backend="threading"):
            return evaluation.exact_scores(
                candidates,
                trials,
                BrierScore(),
                X[order],
                y[order],
                list(cv.split(X)),
                n_jobs=n_jobs,
                pre_dispatch="all",
                progress=Progress(),
            )

    together = scores(1)
    np.testing.assert_array_equal(together, scores(5))
    monkeypatch.undo()
    # a sweep over fewer splits at a time ends elsewhere within the solver's tolerance
    np.testing.assert_allclose(together, scores(1), rtol=0, atol=1e-9)
    np.testing.assert_allclose(together, scores(5), rtol=0, atol=1e-9)


@pytest.mark.parametrize("second", [BoundedScaler((-1, 1)), DPBoundsScaler(0.5)])
@pytest.mark.parametrize("around", [lambda s: s, lambda s: FeatureUnion([("u", s)], verbose=True)])
def test_nothing_is_written_or_printed_by_the_steps(second, around, data, tmp_path, capsys):
    loud = {"memory": str(tmp_path), "verbose": True}
    steps = Pipeline([("first", BoundedScaler((-1, 1))), ("second", second)], **loud)
    pipeline = Pipeline([("s", around(steps)), ("m", clone(MODEL))], **loud)
    s = search(pipeline, {"m__alpha": [0.1, 1.0]}).fit(*data)
    assert not list(tmp_path.iterdir()) and capsys.readouterr().out == ""
    assert s.best_estimator_.memory is None


def test_warnings_of_steps_are_not_passed_on(data):
    X, y = data
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), BoundedScaler((0, 1)), clone(MODEL))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="NaN"):  # as public as any missing value
            search(pipeline, {"dplogisticregression__alpha": [0.1, 1.0]}).fit(X, y)
        search(pipeline, {"dplogisticregression__alpha": [0.1, 1.0]}).fit(np.abs(X), y)


def test_two_feature_maps_are_independent(data):
    union = FeatureUnion(
        [("a", RBFSampler(gamma=1.0, n_components=3)), ("b", RBFSampler(gamma=1.0, n_components=3))]
    )
    s = search(make_pipeline(union, clone(MODEL)), {"dplogisticregression__alpha": [0.1]}).fit(*data)
    Z = s.best_estimator_[0].transform(data[0])
    assert (Z[:, :3] != Z[:, 3:]).any()


# --- refusals


@pytest.mark.parametrize(
    "parameters, error, match",
    [
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"epsilon": -1}, ValueError, "epsilon"),
        ({"epsilon": float("nan")}, ValueError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"delta": -1e-9}, ValueError, "delta"),
        ({"selection_fraction": 0}, ValueError, "selection_fraction"),
        ({"selection_fraction": 1}, ValueError, "selection_fraction"),
        ({"strategy": "best"}, ValueError, "stability"),
        ({"n_noise_samples": 0}, ValueError, "n_noise_samples"),
        ({"refit": "accuracy"}, ValueError, "refit"),
        ({"refit": len}, ValueError, "refit"),
        ({"return_train_score": True}, ValueError, "return_train_score"),
        ({"scoring": "accuracy"}, CertificateError, "AccuracyScore.*'brier'"),
        ({"scoring": "average_precision"}, CertificateError, "'average_precision'.*'brier'"),
        ({"scoring": "roc_auc", "strategy": "stability"}, CertificateError, "RocAucScore.*'brier'"),
        ({"scoring": "r2"}, CertificateError, "'r2' needs a public range.*target_range"),
        ({"scoring": "no such score"}, CertificateError, "no such score"),
        ({"scoring": make_scorer(roc_auc_score)}, CertificateError, "'brier'"),
        ({"scoring": ["brier", "ramp"]}, ValueError, "refit='brier'"),
        ({"cv": StratifiedKFold()}, ValueError, "StratifiedKFold.*labels"),
        ({"cv": GroupKFold()}, ValueError, "public_splits"),
        ({"cv": [([0], [1])]}, ValueError, "public_splits"),
        ({"grid": {"alpha": []}}, ValueError, "alpha"),
        ({"grid": []}, (ValueError, TypeError), "param_grid|no candidates"),
        ({"grid": {"alpha": [0.1, -1.0]}}, ValueError, "alpha=-1.0"),
        ({"grid": {"alpha": [0.1, 0]}}, ValueError, "alpha=0"),
        ({"grid": {"epsilon": [0.1, 1]}}, ValueError, "'epsilon'.*budget"),
        ({"grid": {"random_state": [0, 1]}}, ValueError, "'random_state'.*budget"),
        ({"grid": {"no_such": [1]}}, ValueError, "no_such"),
        (
            {"estimator": LogisticRegression(), "grid": {"C": [1.0]}},
            CertificateError,
            "LogisticRegression.*epsilon",
        ),
        ({"random_state": "seed"}, TypeError, "random_state"),
    ],
)
def test_refused_before_the_data_is_touched(parameters, error, match):
    parameters = dict(parameters)
    s = search(parameters.pop("estimator", MODEL), parameters.pop("grid", GRID), **parameters)
    with pytest.raises(error, match=match):
        s.fit(Untouchable(), Untouchable())
    assert not [name for name in vars(s) if name.endswith("_")]


@pytest.mark.parametrize(
    "step, match",
    [(StandardScaler(), "BoundedScaler"), (RBFSampler(gamma="scale"), "gamma")],
)
def test_unsafe_steps_are_refused(data, step, match):
    pipeline = make_pipeline(step, clone(MODEL))
    with pytest.raises(ValueError, match=match):
        search(pipeline, {"dplogisticregression__alpha": [0.1, 1.0]}).fit(*data)
    # a grid cannot smuggle one in
    pipeline = make_pipeline(BoundedScaler((-1, 1)), clone(MODEL))
    with pytest.raises(ValueError, match=match):
        search(pipeline, {"boundedscaler": [BoundedScaler((-1, 1)), step]}).fit(*data)


def test_public_groups(data):
    groups = np.arange(3000) % 7
    splits = list(GroupKFold(3).split(*data, groups=groups))
    assert search(cv=splits, public_splits=True).fit(*data).n_splits_ == 3


def test_errors_of_other_libraries_do_not_quote_records(data):
    from sklearn.preprocessing import OneHotEncoder

    pipeline = make_pipeline(OneHotEncoder(categories=[["a", "b"]]), clone(MODEL))
    X = np.array([["a"], ["b"]] * 1499 + [["secret"], ["a"]])
    with pytest.raises(ValueError, match="OneHotEncoder") as caught:
        search(pipeline, {"dplogisticregression__alpha": [0.1, 1.0]}).fit(X, data[1])
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


# --- an estimator of the user's own


@dataclass(frozen=True)
class PriorNoise:
    shape: PublicShape
    epsilon: float
    shrink: float

    def certificate(self, score, noise, failure_probability):
        moved = 2 * (1 - self.shrink) / self.shape.n_samples
        return Certificate(min(score.lipschitz * moved, score.span(1.0)), float(score.span(1.0)))


class Prior(PrivateClassifier):
    """Predicts with the noisy share of the second class, whatever the columns."""

    default_scoring = "brier"

    def __init__(self, epsilon=1.0, shrink=0.0, classes=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.shrink = shrink
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state

    def _what(self):
        return "share of the second class"

    def _calibration(self, shape, epsilon):
        return PriorNoise(shape, epsilon, self.shrink)

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        return generator.laplace()

    def _release(self, records, calibration, noise):
        share = np.mean(records.y == records.classes[1])
        share += noise / (calibration.shape.n_samples * calibration.epsilon)
        return {"share_": (1 - self.shrink) * np.clip(share, 0, 1) + self.shrink / 2}

    def decision_function(self, X):
        return np.full(len(X), 2 * self.share_ - 1)


def test_a_users_own_estimator_joins(data):
    s = search(Prior(classes=["ill", "well"]), {"shrink": [0.0, 0.5, 1.0]}).fit(*data)
    assert s.privacy_.epsilon == 1.0 and s.best_params_["shrink"] in (0.0, 0.5, 1.0)


# --- a score that is not used


@pytest.mark.parametrize(
    "strategy, ignored",
    [
        ("data_independent", True),
        ("optimal_risk", True),
        ("random", True),
        ("auto", True),
        ("stability", False),
        ("budget_split", False),
        ("data_split", False),
        ("random_stopping", False),
    ],
)
def test_a_score_that_takes_no_part_in_the_choice_is_said(strategy, ignored, data):
    text = f"scoring='ramp' has no part in the choice, because strategy={strategy!r}"
    s = search(strategy=strategy, scoring="ramp")
    assert [m.startswith(text) for m in s.plan(3000, 4).messages].count(True) == ignored
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        s.fit(*data)
    assert [str(w.message).startswith(text) for w in caught].count(True) == ignored
    said = [w.filename for w in caught if w.category is UserWarning and "length of the" not in str(w)]
    assert said == [__file__] * ignored
    # nobody asked for a score: nothing is said
    s.set_params(scoring=None)
    assert not any("scoring" in message for message in s.plan(3000, 4).messages)
    s.fit(*data)

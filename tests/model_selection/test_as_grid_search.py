"""What scikit-learn's GridSearchCV means by scores, and which scores fit which models."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import get_scorer, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, ParameterSampler, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLedger,
    StabilityGridSearchCV,
    Thresholdout,
    ThresholdoutFeatureSelector,
)
from dpselect.metrics import BrierScore, MeanPoissonDevianceScore, PoissonDevianceScore, get_score
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler
from tests.model_selection.test_progress import Recorder, needs_callbacks

RNG = np.random.default_rng(0)
N = 600
X = RNG.uniform(-0.5, 0.5, size=(N, 2))
LABELS = (X[:, 0] + 0.2 * RNG.normal(size=N) > 0).astype(int)
TARGETS = X[:, 0] + 0.1 * RNG.normal(size=N)
COUNTS = np.minimum(RNG.poisson(np.exp(2 * X[:, 0])), 6)
MODELS = {
    "classifier": (DPLogisticRegression(classes=[0, 1]), LABELS),
    "regression": (DPHuberRegressor(target_range=(-1, 1)), TARGETS),
    "ridge": (DPRidge(target_range=(-1, 1)), TARGETS),
    "counts": (DPPoissonRegressor(target_bound=6.0), COUNTS),
}
EXACT = {
    "classifier": [None, "accuracy", "neg_brier_score", "neg_log_loss", "roc_auc", "f1"],
    "regression": [None, "r2", "neg_mean_absolute_error", "neg_mean_squared_error"],
    "counts": [None, "neg_mean_poisson_deviance"],
}


def search(name, scoring, epsilon=2.0, **params):
    model, y = MODELS[name]
    grid = {"alpha": [0.01, 0.1]}
    return StabilityGridSearchCV(clone(model), grid, scoring=scoring, epsilon=epsilon, **params), y


@pytest.mark.parametrize("name, scoring", [(n, s) for n, all_ in EXACT.items() for s in all_])
def test_a_score_is_what_it_is_without_privacy(name, scoring):
    """As GridSearchCV computes it of the same model: the estimator's own, or scikit-learn's."""
    fitted, y = search(name, scoring, strategy="random_stopping")
    model = fitted.fit(X, y).best_estimator_
    scorer = type(model).score if scoring is None else get_scorer(scoring)
    assert fitted.score(X.copy(), y) == scorer(model, X.copy(), y)
    exact, _ = search(name, scoring, epsilon=np.inf)
    plain = GridSearchCV(exact.estimator.set_params(epsilon=np.inf), exact.param_grid, scoring=scoring)
    assert exact.fit(X, y).score(X.copy(), y) == plain.fit(X, y).score(X.copy(), y)


def test_the_score_of_the_choice_would_be_another_number():
    fitted, y = search("classifier", None)
    fitted.fit(X, y)
    assert fitted.scorer_(fitted.best_estimator_, X.copy(), y) < 0 < fitted.score(X.copy(), y)


WRONG = [
    *((name, scoring) for name in ("regression", "ridge", "counts")
      for scoring in ("accuracy", "brier", "ramp", "f1", "roc_auc", "neg_log_loss", "neg_brier_score")),
    *(("classifier", scoring) for scoring in ("clipped_squared_error", "integrated_squared_error")),
]  # fmt: skip


@pytest.mark.parametrize("strategy", ["auto", "data_independent", "random_stopping", "data_split"])
@pytest.mark.parametrize("name, scoring", WRONG)
def test_a_score_of_other_models_is_refused_before_anything_is_spent(name, scoring, strategy, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0)
    asked, y = search(name, scoring, strategy=strategy, ledger=ledger)
    with pytest.raises(CertificateError, match="cannot score a .* because it is a score of"):
        asked.fit(X, y)
    with pytest.raises(CertificateError, match="cannot score a"):
        asked.plan(N, 2)
    assert ledger.spent()[0] == 0.0


def test_without_the_check_it_is_paid_for(tmp_path, monkeypatch):
    for module in ("metrics.scores", "model_selection.grid_search"):
        monkeypatch.setattr(f"dpselect.{module}.check_task", lambda *given: None)
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0)
    asked, y = search("regression", "accuracy", ledger=ledger, strategy="random_stopping")
    asked.fit(X, y)
    assert ledger.spent()[0] == 2.0


def test_models_of_several_kinds_are_all_looked_at():
    models = [model for model, _ in (MODELS["classifier"], MODELS["regression"])]
    pipeline = make_pipeline(BoundedScaler((-1, 1)), models[0])
    asked = StabilityGridSearchCV(pipeline, {"dplogisticregression": models}, scoring="brier")
    with pytest.raises(CertificateError, match="cannot score a DPHuberRegressor"):
        asked.fit(X, LABELS)
    with pytest.raises(CertificateError, match="cannot score a DPHuberRegressor"):
        get_score("brier", model=models[1])
    with pytest.raises(CertificateError, match="cannot score a DPHistogramDensity"):
        get_score("accuracy", model=DPHistogramDensity(bounds=(-1, 1)))
    with pytest.raises(CertificateError, match="criterion: .* cannot score a DPHuberRegressor"):
        AccuracyFirstSearchCV(models[1], {"epsilon": [1.0]}, target=0.5, criterion="f1").fit(X, TARGETS)


def test_holdouts_refuse_a_score_of_other_models():
    halves = {"X_holdout": X[300:], "y_holdout": TARGETS[300:]}
    holdout = Thresholdout().fit(X[:300], TARGETS[:300], **halves)
    model = DecisionTreeRegressor(max_depth=2).fit(X[:300], TARGETS[:300])
    with pytest.raises(CertificateError, match="cannot score a DecisionTreeRegressor"):
        holdout.score(model, "accuracy")
    assert holdout.uses_ == 0 and np.isfinite(holdout.score(model, "clipped_squared_error"))
    with pytest.raises(CertificateError, match="cannot score a DecisionTreeRegressor"):
        ThresholdoutFeatureSelector(DecisionTreeRegressor(), n_features_to_select=1).fit(X, TARGETS)


def test_the_deviance_is_scikit_learns():
    model, y = MODELS["counts"]
    fitted = clone(model).set_params(epsilon=1e3).fit(X, y)
    mean = get_score("neg_mean_poisson_deviance", model=fitted)
    assert mean == MeanPoissonDevianceScore(6.0)
    assert mean(fitted, X, y) == pytest.approx(-mean_poisson_deviance(y, fitted.predict(X)))
    half = PoissonDevianceScore(6.0)
    assert mean(fitted, X, y) == pytest.approx(2 * half(fitted, X, y))
    for name in ("stake", "width", "lipschitz"):
        assert getattr(mean, name) == 2 * getattr(half, name)
    assert mean.span(1.5) == pytest.approx(2 * half.span(1.5))
    assert mean.penalty(np.array([6.0]), np.array([0.0])) == mean.width
    with pytest.raises(CertificateError, match="begins below 0"):
        get_score("neg_mean_poisson_deviance", model=DPRidge(target_range=(-1, 1)))


def test_times_are_told_without_privacy_only():
    asked, y = search("classifier", None)
    asked.fit(X, y)
    assert not hasattr(asked, "refit_time_")
    with pytest.raises(AttributeError, match="depends on the records"):
        _ = asked.refit_time_
    assert asked.set_params(epsilon=np.inf).fit(X, y).refit_time_ >= 0


SEVERAL = {
    "list": ["brier", "roc_auc", "f1"],
    "set": {"brier", "roc_auc"},
    "dict": {"mine": "accuracy", "brier": BrierScore(), "auc": "roc_auc"},
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_of_several_scores_one_chooses(kind, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=2.0)
    given = {"refit": "brier", "strategy": "random_stopping", "random_state": root_stream(0)}
    asked, y = search("classifier", SEVERAL[kind], evaluation=0.2, ledger=ledger, **given)
    with pytest.warns(UserWarning, match="'brier' is the one that.*'(auc|roc_auc)'.*evaluation_ has"):
        asked.fit(X, y)
    assert ledger.spent() == (2.0, 0.0)  # as much as for one score
    (said,) = [text for text in asked.plan(N, 2).messages if "is the one that" in text]
    one, _ = search("classifier", "brier", evaluation=0.2, **{**given, "refit": True})
    one.fit(X, y)
    assert asked.scorer_ == one.scorer_ == BrierScore() and asked.best_params_ == one.best_params_
    assert asked.score(X.copy(), y) == one.score(X.copy(), y)
    assert "each would cost epsilon" in said
    exact, _ = search("classifier", SEVERAL[kind], epsilon=np.inf, refit="brier")
    exact.fit(X, y)
    assert exact.multimetric_ and exact.score(X.copy(), y) < 0
    assert {f"mean_test_{name}" for name in SEVERAL[kind]} <= exact.cv_results_.keys()


@pytest.mark.parametrize("refit", [True, False, "accuracy", len])
def test_several_scores_need_one_that_chooses(refit):
    asked, y = search("classifier", ["brier", "roc_auc"], refit=refit)
    with pytest.raises(ValueError, match="scoring lists 2 scores.*write for instance refit='brier'"):
        asked.fit(X, y)
    one, _ = search("classifier", "brier", refit="brier")
    with pytest.raises(ValueError, match="refit must be True or False"):
        one.fit(X, y)
    wrong, _ = search("classifier", ["brier", "clipped_squared_error"], refit="clipped_squared_error")
    with pytest.raises(CertificateError, match="cannot score"):
        wrong.fit(X, y)


LAWS = {"alpha": stats.loguniform(1e-3, 1.0), "data_norm": [0.5, 1.0]}


def test_candidates_may_be_sampled():
    sampler = ParameterSampler(LAWS, n_iter=4, random_state=0)
    points, exact = list(sampler), None
    copied = clone(search("classifier", None)[0].set_params(param_grid=sampler)).param_grid
    for grid in (sampler, points, copied):
        asked, y = search("classifier", None)
        found = asked.set_params(param_grid=grid).fit(X, y)
        assert found.cv_results_["params"] == points and found.best_params_ in points
        assert found.plan(N, 2).params == tuple(points)
        exact = clone(asked).set_params(epsilon=np.inf).fit(X, y)
        assert exact.cv_results_["params"] == points
    plain = clone(MODELS["classifier"][0]).set_params(epsilon=np.inf)
    randomized = RandomizedSearchCV(plain, LAWS, n_iter=4, random_state=0).fit(X, LABELS)
    assert exact.best_params_ == randomized.best_params_
    scores = (each.cv_results_["mean_test_score"] for each in (exact, randomized))
    np.testing.assert_allclose(*scores)
    # lists are grids, as for GridSearchCV
    asked, y = search("classifier", None)
    grids = [{"alpha": [0.1, 0.2]}, {"alpha": [0.3]}]
    asked.set_params(param_grid=grids).fit(X, y)
    assert [params["alpha"] for params in asked.cv_results_["params"]] == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("state", [None, np.random.RandomState(0)])
def test_candidates_that_would_be_drawn_anew_are_refused(state):
    asked, y = search("classifier", None)
    asked.set_params(param_grid=ParameterSampler(LAWS, n_iter=4, random_state=state))
    with pytest.raises(ValueError, match="ParameterSampler without an integer"):
        asked.fit(X, y)
    with pytest.raises(TypeError, match="lists no values"):
        asked.set_params(param_grid=3).fit(X, y)


@needs_callbacks
def test_callbacks_are_called_without_privacy_too():
    recorder = Recorder()
    asked, y = search("classifier", None, epsilon=np.inf)
    asked.set_callbacks(recorder).fit(X, y)
    assert [name for name, _ in recorder.tasks] == ["fit", "exact scores of all candidates"]
    assert recorder.ended == 1 and all(given is None for given in recorder.given)

"""What holds for every strategy of a search."""

import pickle

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import Pipeline, make_pipeline

from dpselect import (
    BudgetExceededError,
    CertificateError,
    DPHistogramDensity,
    DPLogisticRegression,
    PrivacyLeakWarning,
    PrivacyLedger,
)
from dpselect.metrics import ClippedSquaredErrorScore
from dpselect.model_selection import Strategy
from dpselect.model_selection.budget import Budget
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import is_seeded
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler
from tests.trials import watch_noise

from .common import (
    GRID,
    HELD_OUT,
    LOGISTIC,
    RIDGE,
    SVC,
    Untouchable,
    coefficients,
    records,
    search,
    seeded,
    targets,
)

PRIVATE = sorted(set(STRATEGIES) - {"control"})
# the losses that are listed: the shares of the choice and the model, or of both parts
SPENT = {
    "auto": [1.0],
    "data_independent": [1.0],
    "random": [1.0],
    "optimal_risk": [0.1, 0.9],
    "stability": [0.1, 0.9],
    "budget_split": [1 / 3, 1 / 3, 1 / 3, 1.0],
    "data_split": [1.0, 1.0, 1.0, 1.0],
    "random_stopping": [1.0],
}
# of these, what is paid if no model is released
CHOICE = {"auto": 0.0, "data_independent": 0.0, "random": 0.0, "optimal_risk": 0.1, "stability": 0.1}
# where only alpha varies
NAMED = {"auto": "data_independent"}
# enough for a comparison by risk bounds
MANY = 20_000


@pytest.fixture(scope="module")
def data():
    return records(MANY)


@pytest.mark.parametrize("model", [LOGISTIC, SVC], ids=["logistic", "svc"])
@pytest.mark.parametrize("strategy", PRIVATE)
def test_the_total_is_epsilon_and_computed_from_what_was_done(strategy, model, data):
    s = search(strategy, model).fit(*data)
    loss = s.privacy_
    assert (loss.epsilon, loss.delta, loss.kind) == (1.0, 0.0, "differential privacy")
    assert not loss.seeded
    assert [release.epsilon for release in loss.releases] == pytest.approx(SPENT[strategy])
    parallel = any(part.composition == "parallel" for part in loss.parts)
    assert parallel == (strategy in ("budget_split", "data_split"))
    assert s.best_params_ == {"alpha": GRID["alpha"][s.best_index_]}
    best = s.best_estimator_
    assert best.alpha == s.best_params_["alpha"] and best.random_state is None
    assert type(best) is type(model) and s.predict(data[0]).shape == (MANY,)


@pytest.mark.parametrize("strategy", sorted(set(PRIVATE) - {"data_independent"}))
def test_ridge(strategy, data):
    X, _ = data
    s = search(strategy, RIDGE).fit(X, targets(X))
    assert (s.privacy_.epsilon, s.privacy_.delta) == (1.0, 0.0)
    assert s.predict(X).shape == (MANY,)


@pytest.mark.parametrize("strategy", ["stability", "random"])
def test_density(strategy, data):
    density = DPHistogramDensity(bounds=(-1, 1))
    s = search(strategy, density, {"bin_width": [0.5, 1.0]}).fit(data[0])
    assert s.privacy_.epsilon == 1.0 and s.score_samples(data[0].copy()).shape == (MANY,)


@pytest.mark.parametrize("strategy", ["control", *HELD_OUT])
def test_a_density_has_no_bounded_score(strategy):
    density = DPHistogramDensity(bounds=(-1, 1))
    with pytest.raises(ValueError, match=f"{strategy}.*IntegratedSquaredErrorScore"):
        search(strategy, density, {"bin_width": [0.5, 1.0]}).fit(Untouchable())


@pytest.mark.parametrize("strategy", PRIVATE)
def test_without_refit_the_choice_alone_is_paid(strategy, data):
    s = search(strategy, refit=False).fit(*data)
    assert s.privacy_.epsilon == pytest.approx(CHOICE.get(strategy, 1.0), rel=1e-12)
    assert not hasattr(s, "best_estimator_") and s.best_params_ in s.cv_results_["params"]


@pytest.mark.parametrize("strategy", ["stability", "optimal_risk", "budget_split", "data_split"])
@pytest.mark.parametrize("model", [LOGISTIC, SVC, RIDGE], ids=lambda model: type(model).__name__)
def test_with_much_to_spend_the_best_is_chosen(strategy, model, data):
    X, y = data[0], targets(data[0]) if model is RIDGE else data[1]
    grid = {"alpha": [100.0, 1e-3, 30.0]}
    assert search(strategy, model, grid, epsilon=1000.0).fit(X, y).best_index_ == 1


@pytest.mark.parametrize("strategy", PRIVATE)
def test_three_classes(strategy, data):
    X, _ = data
    y = np.digitize(X[:, 0], [-0.2, 0.2])
    s = search(strategy, DPLogisticRegression(classes=[0, 1, 2])).fit(X, y)
    assert s.best_estimator_.coef_.shape == (3, 3) and s.privacy_.epsilon == 1.0


@pytest.mark.parametrize("strategy", sorted(set(PRIVATE) - {"data_independent"}))
def test_steps_that_vary(strategy, data):
    pipeline = make_pipeline(BoundedScaler((-2, 2)), RBFSampler(n_components=6), clone(LOGISTIC))
    grid = {
        "rbfsampler__gamma": [0.1, 1.0],
        "dplogisticregression__alpha": [0.01, 1.0],
        "rbfsampler__n_components": [4, 6],
    }
    s = search(strategy, pipeline, grid).fit(*data)
    assert s.privacy_.epsilon == 1.0 and s.n_features_in_ == 3
    columns = s.best_params_["rbfsampler__n_components"]
    assert s.best_estimator_[-1].coef_.shape == (1, columns)
    assert s.best_estimator_[1].gamma == s.best_params_["rbfsampler__gamma"]
    assert s.predict(data[0]).shape == (MANY,)


@pytest.mark.parametrize("strategy", PRIVATE)
def test_a_pipeline_of_one_step_stays_one(strategy, data):
    s = search(strategy, Pipeline([("m", clone(LOGISTIC))]), {"m__alpha": [0.1, 1.0]}).fit(*data)
    assert isinstance(s.best_estimator_, Pipeline)


STEPPED = make_pipeline(
    ColumnTransformer([("a", DPBoundsScaler(0.125), [0]), ("b", DPBoundsScaler(0.125), [1, 2])]),
    clone(LOGISTIC),
)


def check_that_epsilon_is_the_total(strategy, data, folder):
    """Fit a search with private steps of epsilon 0.25, and compare all that is said of its loss."""
    s = search(strategy, STEPPED, {"dplogisticregression__alpha": [0.1, 1.0]}, epsilon=1.0)
    with PrivacyLedger(folder / "budget", epsilon=1.0) as ledger:
        s.fit(*data)
    (entry,) = ledger.history()
    assert s.privacy_.epsilon == entry.epsilon == entry.reserved_epsilon == 1.0
    assert [loss.epsilon for loss in s.privacy_.parts[:2]] == [0.125, 0.125]
    alone = search(strategy, grid={"alpha": [0.1, 1.0]}, epsilon=0.75).fit(*data)
    rest = [loss.epsilon for loss in s.privacy_.releases[2:]]
    assert rest == [loss.epsilon for loss in alone.privacy_.releases]
    for plan in (s.plan_, s.plan(MANY, 3)):
        assert (plan.epsilon, plan.steps_epsilon) == (1.0, 0.25) and "0.25" in plan.messages[0]
        assert plan.training_epsilon == alone.plan_.training_epsilon
        assert plan.selection_epsilon == alone.plan_.selection_epsilon


@pytest.mark.parametrize("strategy", PRIVATE)
def test_private_steps_take_their_share_of_the_total(strategy, data, tmp_path):
    check_that_epsilon_is_the_total(strategy, data, tmp_path)


def test_steps_that_are_not_counted_are_caught(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Budget, "remaining", property(lambda budget: budget.total))
    with pytest.raises((AssertionError, BudgetExceededError, CertificateError)):
        check_that_epsilon_is_the_total("data_independent", data, tmp_path)


@pytest.mark.parametrize("strategy", [*PRIVATE, "control"])
@pytest.mark.parametrize("asked", [1.0, 7.0, float("inf")])
def test_steps_that_ask_for_all_of_epsilon_are_refused_before_data(strategy, asked):
    estimator = make_pipeline(DPBoundsScaler(asked), clone(LOGISTIC))
    s = search(strategy, estimator, {"dplogisticregression__alpha": [0.1, 1.0]}, epsilon=1.0)
    said = f"epsilon=1.0 is the loss of the whole.*DPBoundsScaler {asked:g}.*larger epsilon"
    with pytest.raises(ValueError, match=said):
        s.fit(Untouchable(), Untouchable())
    with pytest.raises(ValueError, match=said):
        s.plan(1000, 3)


@pytest.mark.parametrize("strategy", PRIVATE)
def test_a_seed_gives_the_same_again_and_is_marked(strategy, data):
    one, two = (seeded(search(strategy)).fit(*data) for _ in range(2))
    assert one.best_index_ == two.best_index_
    np.testing.assert_array_equal(coefficients(one), coefficients(two))
    assert one.privacy_.seeded and all(loss.seeded for loss in one.privacy_.releases)
    other = seeded(search(strategy), 1).fit(*data)
    assert (coefficients(one) != coefficients(other)).any()
    assert one.best_estimator_.random_state is None and b"InnerStream" not in pickle.dumps(one)


@pytest.mark.parametrize("strategy", PRIVATE)
def test_without_a_seed_noise_is_new_and_the_systems(strategy, data, monkeypatch):
    seen = watch_noise(monkeypatch, DPLogisticRegression)
    found = {tuple(coefficients(search(strategy).fit(*data)).ravel()) for _ in range(3)}
    assert len(found) == 3
    states = [state for state, _ in seen]
    # dry runs and the models of a selection by stability have streams, and are not released
    assert states[-1] is None and any(not is_seeded(state) for state in states)


@pytest.mark.parametrize("strategy", PRIVATE)
def test_jobs_and_names(strategy, data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = seeded(search(strategy)).fit(X, y)
    with parallel_config(backend="threading"):
        found = seeded(search(strategy, n_jobs=2)).fit(frame, pd.Series(y))
    np.testing.assert_allclose(coefficients(found), coefficients(expected))
    assert list(found.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize("n", [300, MANY])
@pytest.mark.parametrize("strategy", PRIVATE)
def test_the_plan_needs_no_data_and_is_what_is_done(strategy, n, data):
    s = search(strategy, delta=1e-6 if strategy == "stability" else 0.0)
    plan = s.plan(n, 3)
    s.fit(data[0][:n], data[1][:n])
    done = s.plan_
    assert (plan.strategy, plan.params) == (NAMED.get(strategy, strategy), done.params)
    assert (plan.selection_epsilon, plan.training_epsilon, plan.epsilon) == (
        done.selection_epsilon,
        done.training_epsilon,
        1.0,
    )
    assert s.best_estimator_.epsilon == plan.training_epsilon
    if strategy != "stability":  # whose plan is for noise of median length
        np.testing.assert_array_equal(plan.noise_scale, done.noise_scale)
        np.testing.assert_array_equal(plan.sensitivity, done.sensitivity)
        assert plan.messages == done.messages


@pytest.mark.parametrize("strategy", PRIVATE)
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_low_precision_numbers_do_not_weaken_the_noise(strategy, kind, data, monkeypatch):
    problems, original = [], Strategy.__init__
    monkeypatch.setattr(
        Strategy,
        "__init__",
        lambda self, problem: (problems.append(problem), original(self, problem))[1],
    )
    s = search(strategy, epsilon=kind(0.7), delta=kind(0.0)).fit(*data)
    assert {type(problem.epsilon) for problem in problems} == {float}
    assert s.privacy_.epsilon == pytest.approx(float(kind(0.7)), rel=1e-15)
    assert s.plan_.noise_scale.dtype == np.float64


@pytest.mark.parametrize("strategy", ["control", *HELD_OUT])
def test_a_low_precision_score_does_not_weaken_the_noise(strategy):
    score = ClippedSquaredErrorScore(bound=np.float16(1.0))
    plan = search(strategy, RIDGE, scoring=score).plan(3_000, 3)
    assert (plan.sensitivity == 1 / 600).all()


@pytest.mark.parametrize("strategy", ["control", *PRIVATE])
def test_nothing_depends_on_a_single_candidate(strategy, data):
    s = search(strategy, grid={"alpha": [0.1]})
    if strategy == "control":
        with pytest.warns(PrivacyLeakWarning):
            s.fit(*data)
    else:
        s.fit(*data)
        assert s.privacy_.epsilon == 1.0
    assert s.best_index_ == 0


@pytest.mark.parametrize("strategy", ["control", *PRIVATE])
def test_bad_parameters_are_refused_before_the_data(strategy):
    for parameters, error, match in (
        ({"grid": {"alpha": [0.1, -1.0]}}, ValueError, "alpha=-1.0"),
        ({"grid": {"alpha": [0.1], "no_such": [1]}}, ValueError, "no_such"),
        ({"grid": {"epsilon": [0.1, 1.0]}}, ValueError, "'epsilon'.*budget"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"scoring": "average_precision"}, ValueError, "'average_precision'.*'brier'"),
    ):
        s = search(strategy, **parameters)
        with pytest.raises(error, match=match):
            s.fit(Untouchable(), Untouchable())
        with pytest.raises(error, match=match):
            s.plan(1000, 3)
        assert not [name for name in vars(s) if name.endswith("_")]


def test_an_unknown_strategy_lists_the_known_ones():
    with pytest.raises(ValueError, match="strategy='best'.*'optimal_risk', 'stability'"):
        search("best").fit(Untouchable(), Untouchable())


@pytest.mark.parametrize("strategy", ["stability", "optimal_risk", *HELD_OUT])
def test_a_target_that_is_not_a_number_is_refused_wherever_it_lies(strategy, data):
    X, y = data[0], targets(data[0])
    cv = [(np.arange(10_000), np.arange(10_000, MANY))]
    for bad in (5, 15_000):
        labels = y.copy()
        labels[bad] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            search(strategy, RIDGE, cv=cv, public_splits=True).fit(X, labels)

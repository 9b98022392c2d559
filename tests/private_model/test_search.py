"""Models of other libraries in grids beside ours."""

import gc
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPLogisticRegression,
    PrivacyLedger,
    PrivateModel,
    StabilityGridSearchCV,
    privacy_report,
)
from dpselect.preprocessing import BoundedScaler
from dpselect.testing.attempts import Untouchable

from .other_library import SignedSum, SumWithDelta
from .test_private_model import OTHER, declared, records

OURS = DPLogisticRegression(classes=[0, 1])
KINDS = [
    {"model": [OURS], "model__data_norm": [1.0, 2.0]},
    {"scale": [BoundedScaler((-2, 2))], "model": [OTHER], "model__estimator__gain": [1.0, 5.0]},
]


def search(strategy="auto", grid=KINDS, **params):
    start = Pipeline([("scale", "passthrough"), ("model", OURS)])
    return StabilityGridSearchCV(start, grid, strategy=strategy, **params)


@pytest.fixture(scope="module")
def data():
    return records(4000)


@pytest.mark.parametrize("strategy", ["auto", "random_stopping", "budget_split", "data_split", "random"])
def test_kinds_are_compared_at_the_total_of_one_search(data, strategy, tmp_path):
    with PrivacyLedger(tmp_path / "ledger", epsilon=2.0) as ledger:
        fitted = search(strategy).fit(*data)
    assert fitted.privacy_.epsilon == 1.0 and ledger.remaining() == (1.0, 0.0)
    if strategy == "auto":
        assert fitted.plan_.strategy == "random_stopping"
    inner = getattr(fitted.best_estimator_["model"], "estimator_", None)
    if inner is not None and strategy != "random_stopping":
        assert 2 * inner.epsilon == fitted.plan_.training_epsilon
    assert "nothing here proves or tests: SignedSum, by" in privacy_report(fitted).to_markdown()
    assert fitted.predict(data[0][:5]).shape == (5,)


def test_a_chosen_model_is_evaluated_on_what_was_set_aside(data):
    found = StabilityGridSearchCV(OTHER, {"estimator__gain": [1.0]}, evaluation=0.25).fit(*data)
    assert found.evaluation_.n_records == 1000 and found.privacy_.epsilon == 1.0


@pytest.mark.parametrize("strategy", ["stability", "optimal_risk", "data_independent"])
def test_what_needs_more_than_a_black_box_is_refused_before_the_data(strategy):
    with pytest.raises(CertificateError, match="PrivateModel has none; use|differ in alpha only"):
        search(strategy).fit(Untouchable(), Untouchable())


def test_accuracy_first_is_refused_before_the_data():
    grid = {"epsilon": [0.1, 1.0]}
    with pytest.raises(CertificateError, match="PrivateModel"):
        AccuracyFirstSearchCV(OTHER, grid, target=0.2).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize(
    "params, match",
    [
        ({"conversion": None}, "two steps"),
        ({"estimator": SignedSum(bound=None)}, "write bound="),
    ],
)
def test_a_candidate_that_is_not_declared_is_refused_before_the_data(params, match):
    grid = {"model": [OURS, declared(**params)]}
    with pytest.raises(ValueError, match=match):
        search(grid=grid).fit(Untouchable(), Untouchable())


def test_a_score_that_the_model_has_nothing_for_is_refused_before_the_data():
    class Silent(SignedSum):
        decision_function = None

        def __getattribute__(self, name):
            if name == "decision_function":
                raise AttributeError
            return super().__getattribute__(name)

    model = declared(estimator=Silent())
    with pytest.raises(CertificateError, match="BrierScore cannot score a PrivateModel"):
        search("budget_split", {"model": [OURS, model]}).fit(Untouchable(), Untouchable())


def test_the_number_of_runs_is_not_told_by_warnings(data):
    """A model that learns its labels warns once, however often it is trained."""
    warned = []
    grid = {"model": [declared(classes_parameter=None)]}
    for _ in range(6):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search("random_stopping", grid).fit(*data)
        warned.append(len(caught))
    assert len(set(warned)) == 1 and warned[0] > 0


@pytest.mark.slow
def test_models_that_were_not_chosen_are_forgotten(data):
    search("budget_split", {"model": [OTHER], "model__estimator__gain": [1.0, 2.0, 4.0]}).fit(*data)
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one) is SignedSum and hasattr(one, "coef_")]


def test_a_winner_that_is_trained_again_is_caught(data):
    from dpselect.model_selection.strategies.held_out import BudgetSplit

    class TrainsAgain(BudgetSplit):
        def choose(self, X, y, stream):
            choice = super().choose(X, y, stream)
            choice.estimator = None  # the search trains the winner, with what the models had
            return choice

    with pytest.raises(CertificateError, match="have spent more than"):
        search(TrainsAgain).fit(*data)


@pytest.mark.parametrize("strategy, total", [("budget_split", 3e-6), ("data_split", 1e-6)])
def test_deltas_of_the_models_are_stated(data, strategy, total):
    model = declared(estimator=SumWithDelta(), delta=1e-6, delta_parameter="delta")
    grid = {"model": [model], "model__estimator__gain": [1.0, 2.0, 5.0]}
    fitted = search(strategy, grid).fit(*data)
    assert fitted.privacy_.delta == pytest.approx(total)


class Elsewhere(ClassifierMixin, BaseEstimator):
    """A model whose noise is not known here; one of its calls on records fails."""

    calls, fails_at = 0, 0

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self._called(X)

    def decision_function(self, X):
        self._called(X)
        return np.random.default_rng(0).normal(size=len(X))

    def _called(self, X):
        Elsewhere.calls += len(X) > 2  # not on dummy rows
        if Elsewhere.calls == Elsewhere.fails_at:
            raise ArithmeticError
        return self


@pytest.mark.parametrize("strategy", ["random_stopping", "budget_split", "data_split", "random"])
def test_a_search_that_fails_after_a_model_was_trained_is_counted(strategy, tmp_path):
    """Wherever it fails: something may have come out, although no noise was drawn here."""
    X, y = records(60)
    model = PrivateModel(
        Elsewhere(),
        adjacency="replace one record",
        classes=[0, 1],
        public_records=(np.zeros((2, 2)), np.arange(2)),
    )
    for fails_at in range(1, 4):
        Elsewhere.calls, Elsewhere.fails_at = 0, fails_at
        ledger = PrivacyLedger(tmp_path / str(fails_at), epsilon=3.0)
        made = search(strategy, {"model": [model], "scale": ["passthrough", BoundedScaler((-2, 2))]})
        made.set_params(ledger=ledger)
        # refused before a model is trained
        with pytest.raises(ValueError, match="label that is not in classes"):
            made.fit(X, y + 7)
        assert ledger.spent() == (0.0, 0.0) and Elsewhere.calls == 0
        try:
            made.fit(X, y)
        except ValueError:
            assert Elsewhere.calls == fails_at
        else:  # so many calls there were not
            assert 0 < Elsewhere.calls < fails_at
        assert ledger.spent() == (1.0, 0.0)


def test_the_grid_may_not_name_what_the_search_sets():
    with pytest.raises(ValueError, match="which the search sets itself"):
        search(grid={"model": [OTHER], "model__epsilon": [1.0]}).fit(Untouchable(), Untouchable())
    assert clone(OTHER).get_params()["estimator__gain"] == 10.0
    assert np.isclose(OTHER.declared_loss(0.5).epsilon, 0.5)

"""A ledger that was given to a model which is then searched, evaluated or wrapped: none is ignored."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dpselect
from dpselect import (
    AccuracyFirstSearchCV,
    DPLogisticRegression,
    PrivacyLeakError,
    PrivacyLeakWarning,
    PrivacyLedger,
    PrivateModel,
    StabilityGridSearchCV,
    ThresholdoutFeatureSelector,
    coef_interval,
    evaluate,
)
from dpselect.ledger import inner, without_spending
from dpselect.preprocessing import DPBoundsScaler

from ..private_model.other_library import SignedSum


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "records.ledger", epsilon=8.0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(400, 2))
    return X, (X[:, 0] > 0).astype(int)


class Kept(SignedSum):
    """A model of another library, with a parameter for a ledger."""

    def __init__(self, epsilon=1.0, labels=None, ledger=None):
        super().__init__(epsilon=epsilon, labels=labels)
        self.ledger = ledger


def classifier(**parameters):
    return DPLogisticRegression(classes=[0, 1], **parameters)


WHOLES = {
    "search": lambda ledger: StabilityGridSearchCV(classifier(ledger=ledger), {}),
    "grid": lambda ledger: StabilityGridSearchCV(classifier(), {"ledger": [ledger]}),
    "step": lambda ledger: StabilityGridSearchCV(
        make_pipeline(DPBoundsScaler(0.3, ledger=ledger), classifier()), {}
    ),
    "accuracy first": lambda ledger: AccuracyFirstSearchCV(
        classifier(alpha=0.1, ledger=ledger), {"epsilon": [0.5, 1.0]}, target=5.0, method="certified"
    ),
    "selector": lambda ledger: ThresholdoutFeatureSelector(
        classifier(ledger=ledger), n_features_to_select=1, noise_rate=0.1, budget=10
    ),
    "private model": lambda ledger: PrivateModel(
        Kept(ledger=ledger),
        adjacency="replace one record",
        classes=[0, 1],
        classes_parameter="labels",
        public_parameters=["ledger"] if ledger else [],
    ),
}


@pytest.mark.parametrize("name", WHOLES)
def test_only_the_whole_has_a_ledger(name, data, ledger):
    with pytest.raises(ValueError, match="ledger is given, but .* give ledger= to the"):
        WHOLES[name](ledger).fit(*data)
    with ledger, pytest.raises(ValueError, match="ledger is given"):
        WHOLES[name](ledger).fit(*data)
    assert ledger.history() == []


@pytest.mark.parametrize("name", ["selector", "private model"])
def test_a_twin_that_does_not_look_is_counted_nowhere(name, data, ledger, monkeypatch):
    monkeypatch.setattr(inner, "_inner_ledgers", lambda estimator: [])
    model = WHOLES[name](ledger).fit(*data)
    assert model.privacy_.epsilon > 0 and ledger.history() == []


def release(function, model, data, ledger=None):
    data = [part.copy() for part in data]  # that it trained the model is another warning
    if function is evaluate:
        return evaluate(model, *data, epsilon=1.0, ledger=ledger)
    return coef_interval(model, *data, epsilon=1.0, n_samples=400, ledger=ledger)


@pytest.fixture(params=["evaluate", "coef_interval", "evaluate a search"])
def about(request, data, ledger):
    """A function, and a model with a ledger."""
    model = classifier()
    if request.param.endswith("search"):
        model = StabilityGridSearchCV(model, {})
    model.fit(*data)
    return {"coef_interval": coef_interval}.get(request.param, evaluate), model.set_params(ledger=ledger)


def test_a_release_about_a_model_with_a_ledger_is_counted_or_warned_of(about, data, ledger, tmp_path):
    function, model = about
    with pytest.warns(PrivacyLeakWarning, match="counted nowhere; give .* the ledger="):
        release(function, model, data)
    with dpselect.config_context(strict=True), pytest.raises(PrivacyLeakError, match="counted nowhere"):
        release(function, model, data)
    assert ledger.history() == []
    other = PrivacyLedger(tmp_path / "other.ledger", epsilon=8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        release(function, model, data, ledger)
        with other:
            release(function, model, data)
        with without_spending():
            release(function, model, data)
        release(function, clone(model).set_params(ledger=None).fit(*data), data)
    assert ledger.spent() == other.spent() == (1.0, 0.0)


def test_a_twin_that_does_not_look_does_not_warn(about, data, ledger, monkeypatch):
    monkeypatch.setattr(inner, "_inner_ledgers", lambda estimator: [])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        release(*about, data)
    assert ledger.history() == []

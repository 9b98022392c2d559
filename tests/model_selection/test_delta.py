"""Searches over linear models with a delta: what they state, reserve and refuse."""

import numpy as np
import pytest

from dpselect import (
    AccuracyFirstSearchCV,
    BudgetExceededError,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    PrivacyLedger,
    StabilityGridSearchCV,
)
from dpselect.base.accuracy_form import NoiseLevels
from dpselect.exceptions import CertificateError
from dpselect.metrics import RampScore
from dpselect.noise import root_stream
from dpselect.records.public_shape import PublicShape

DELTA = 1e-6
MODELS = {
    "logistic": DPLogisticRegression(delta=DELTA, classes=[0, 1]),
    "svc": DPLinearSVC(delta=DELTA, classes=[0, 1], perturbation="output"),
    "huber": DPHuberRegressor(delta=DELTA, target_range=(-1, 1)),
}
# which of the released models have a delta, as multiples of it
SPENT = {
    "auto": 1,
    "data_independent": 1,
    "random": 1,
    "optimal_risk": 1,
    "stability": 1,
    "budget_split": 2,
    "data_split": 1,
}


def records(n_features, n=400):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, n_features)) / n_features**0.5
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("strategy, times", SPENT.items())
@pytest.mark.parametrize("name", MODELS)
def test_a_search_states_the_delta_that_its_models_used(name, strategy, times, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=10.0, delta=0.5)
    search = StabilityGridSearchCV(MODELS[name], {"alpha": [0.1, 1.0]}, strategy=strategy, ledger=ledger)
    search.fit(*records(40))
    loss = search.privacy_
    assert loss.delta == pytest.approx(times * DELTA)
    # (a choice beside Gaussian noise costs less than their sum)
    less = strategy == "stability" and name in ("logistic", "svc")
    assert 0.95 < loss.epsilon < 1.0 if less else loss.epsilon == 1.0
    assert search.fit(*records(3)).privacy_.delta == 0
    first, second = ledger.history()
    assert (first.delta, second.delta) == (loss.delta, 0.0)
    # the number of columns is not known when a loss is reserved
    assert first.reserved_delta == second.reserved_delta == pytest.approx(times * DELTA)


def test_a_budget_without_a_delta_pays_for_no_model_that_may_use_one(tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=10.0)
    for model in (MODELS["logistic"], StabilityGridSearchCV(MODELS["logistic"], {"alpha": [0.1, 1.0]})):
        with ledger, pytest.raises(BudgetExceededError):
            model.fit("not even records", None)


def test_random_stopping_refuses_a_delta_that_it_was_not_given_before_the_data():
    with pytest.raises(CertificateError, match="divides the delta of the search"):
        StabilityGridSearchCV(MODELS["logistic"], {"alpha": [0.1, 1.0]}, strategy="random_stopping").fit(
            "not even records", None
        )


def test_what_is_learned_first_leaves_the_delta_charged():
    """Norms that were learned decide which noise is the shortest."""
    for n_features in (3, 40):
        model = DPLogisticRegression(delta=DELTA, data_norm="auto", classes=[0, 1])
        loss = model.fit(*records(n_features)).privacy_
        assert loss.delta == DELTA and loss.epsilon == 1.0
    search = StabilityGridSearchCV(model, {"alpha": [0.1, 1.0]}, strategy="stability")
    assert search.fit(*records(3)).privacy_.delta in (0.0, DELTA)


@pytest.mark.parametrize("failure_probability", [1e-3, 0.1])
def test_certificates_for_nearly_all_noise_hold_for_nearly_all(failure_probability):
    model = DPLogisticRegression(delta=DELTA, alpha=0.5, classes=[0, 1])
    shape, score, n = PublicShape(1000, 40), RampScore(-1, 1), 2000
    calibration = model.calibration(shape)
    most = calibration.certificate(score, failure_probability=failure_probability)
    spans = [
        calibration.certificate(score, model.set_params(random_state=i).standard_noise(40)).span
        for i in range(n)
    ]
    beyond = np.mean(np.array(spans) > most.span)
    assert beyond <= failure_probability + 6 * (failure_probability / n) ** 0.5
    assert np.mean(spans) > 0.5 * most.span


# --- accuracy first


def accuracy_first(method, **parameters):
    return AccuracyFirstSearchCV(
        DPLogisticRegression(delta=DELTA, alpha=0.5, classes=[0, 1], **parameters),
        {"epsilon": np.geomspace(0.1, 1000, 20)},
        target=0.05,
        method=method,
        on_failure="last",
    )


@pytest.mark.parametrize("method", ["doubling", "predict_verify", "certified", "theory"])
def test_each_new_model_costs_its_delta(method, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1e9, delta=0.1)
    search = accuracy_first(method)
    search.fit(*records(40))
    models = [part for part in parts(search.privacy_) if "model" in part.label or not part.parts]
    used = sum(part.delta for part in models if not part.parts)
    assert search.privacy_.delta == pytest.approx(used) and used >= DELTA
    assert search.plan_.at_most.delta >= search.privacy_.delta
    few = accuracy_first(method).fit(*records(3))
    assert few.privacy_.delta == few.plan_.at_most.delta == 0
    with ledger:
        search.fit(*records(40))
    (entry,) = ledger.history()
    assert entry.reserved_delta == search.plan_.at_most.delta
    assert entry.delta == search.privacy_.delta


def parts(loss):
    return [loss, *(deeper for part in loss.parts for deeper in parts(part))]


def test_a_path_has_noise_of_its_own():
    with pytest.raises(ValueError, match="method='brownian' and the search's delta"):
        accuracy_first("brownian", perturbation="output").fit("not even records", None)


def test_the_promised_excess_holds_for_gaussian_noise():
    X, y = records(40, n=2000)
    model = DPLogisticRegression(3.0, delta=DELTA, alpha=0.5, classes=[0, 1])
    form, shape = model.accuracy_form(), PublicShape(*X.shape)
    reduction = form.reduction(X, y, NoiseLevels("fresh", 3.0, 3.0), root_stream(0))
    fits = [model.set_params(random_state=root_stream(0).child(i)).fit(X, y) for i in range(100)]
    found = reduction.excesses(np.array([np.column_stack([m.coef_, m.intercept_]) for m in fits]))
    assert np.std(found) < 0.3 * np.mean(found)
    # up to six standard errors
    assert 0.6 < np.mean(found) / form.excess_bound(shape, 3.0) < 1.2
    assert max(found) <= form.excess_bound(shape, 3.0, 1e-6)


@pytest.mark.parametrize("strategy", sorted(SPENT.keys() - {"data_independent", "random"}))
def test_a_delta_does_not_depend_on_what_was_learned(strategy, tmp_path):
    """A short learned norm makes the noise pure; whether it does must not be stated."""
    found = set()
    for scale in (1e-3, 1.0):
        X, y = records(30, 3000)
        ledger = PrivacyLedger(tmp_path / f"{scale}", epsilon=10.0, delta=1e-3)
        model = DPLogisticRegression(delta=DELTA, data_norm="auto", classes=[0, 1])
        search = StabilityGridSearchCV(
            model,
            {"max_iter": [99, 100]},
            epsilon=1.0,
            strategy=strategy,
            ledger=ledger,
            scoring="ramp" if strategy == "stability" else None,
        ).fit(scale * 30**0.5 * X, y)
        assert ledger.spent()[1] == search.privacy_.delta
        found.add(search.privacy_.delta)
    assert found == {SPENT[strategy] * DELTA}


@pytest.mark.parametrize("strategy", ["stability", "optimal_risk", "data_split"])
def test_nor_on_the_choice(strategy):
    X, y = records(30, 2000)
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1], alpha=0.05),
        {"delta": [0.0, DELTA]},
        epsilon=1.0,
        strategy=strategy,
        scoring="ramp" if strategy == "stability" else None,
    )
    assert {search.fit(X, y).privacy_.delta for _ in range(6)} == {DELTA}

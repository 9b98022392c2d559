"""A person whose rows are written several times is the same person, to everything that takes `groups`.

The same key draws the same noise, so all that is released must be the same. What counts rows in place of
persons anywhere (a number of records, a rank, the size of a part, a mean) shows in it.
"""

import warnings
from dataclasses import is_dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    Ladder,
    StabilityGridSearchCV,
    Thresholdout,
    evaluate,
)
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.preprocessing import DPBoundsScaler
from dpselect.records.persons import Persons
from tests.marks import a_third

from .cases import key, records_for, rows, targets
from .test_persons import PUBLIC

N = 60
# shares of powers of two are not rounded
ONCE, OFTEN = np.ones(N, dtype=int), 2 ** (np.arange(N) % 4)
LOGISTIC = DPLogisticRegression(classes=[0, 1], alpha=0.5)
RIDGE = DPRidge(target_range=(-1, 1), alpha=0.5)
HISTOGRAM = DPHistogramDensity(bounds=(-1, 1), bin_width=1.0)
ESTIMATORS = {
    "logistic": DPLogisticRegression(
        0.3,
        classes=[0, 1],
        data_norm="auto",
        data_norm_l1="auto",
        base_rate="auto",
    ),
    "norms": DPLogisticRegression(30.0, classes=[0, 1], data_norm="auto", data_norm_l1="auto"),
    "output": DPLogisticRegression(classes=[0, 1, 2], perturbation="output", class_weight={0: 2.0}),
    "svc": DPLinearSVC(classes=[0, 1], data_norm="auto"),
    "huber": DPHuberRegressor(target_range=(-1, 1), data_norm_l1="auto"),
    "poisson": DPPoissonRegressor(target_bound=3.0, base_rate="auto"),
    "histogram": HISTOGRAM,
    "bounds": DPBoundsScaler(100.0),
}
for how in ("covariance", "objective", "output"):
    ESTIMATORS[f"ridge, {how}"] = clone(RIDGE).set_params(perturbation=how, data_norm="auto")
CHOSEN = {
    "logistic": (LOGISTIC, {"alpha": [0.1, 1.0]}),
    "histogram": (HISTOGRAM, {"bin_width": [1.0, 0.5]}),
    "ridge": (ESTIMATORS["ridge, objective"], {"alpha": [0.1, 1.0]}),
}
READ = {"logistic": clone(LOGISTIC).set_params(perturbation="output"), "histogram": HISTOGRAM} | {
    f"ridge, {how}": clone(RIDGE).set_params(perturbation=how)
    for how in ("covariance", "objective", "output")
}
SEARCHES = {
    f"{strategy}, {name}": StabilityGridSearchCV(
        model, grid, strategy=strategy, evaluation=None if name == "histogram" else 0.25
    )
    for strategy in STRATEGIES
    for name, (model, grid) in CHOSEN.items()
} | {
    # whose answers are risks with noise
    f"{method}, {criterion}, {name}": AccuracyFirstSearchCV(
        model,
        {"epsilon": np.geomspace(10, 1e4, 5)},
        target=0.01,
        method=method,
        criterion=criterion,
        max_epsilon=float("inf"),
        on_failure="last",
    )
    for method in ("predict_verify", "doubling")
    for criterion in ("risk", "excess_risk")
    for name, model in READ.items()
}
ALL = ESTIMATORS | SEARCHES


def released(thing):
    """Return what was released, by name."""
    if isinstance(thing, BaseEstimator):
        thing = {
            name: value
            for name, value in vars(thing).items()
            if name[-1] == "_" != name[0] and not callable(value)
        }
    elif is_dataclass(thing):
        thing = vars(thing)
    if isinstance(thing, (list, tuple)):
        thing = dict(enumerate(thing))
    return {name: released(one) for name, one in thing.items()} if isinstance(thing, dict) else thing


def assert_same(one, other, where=""):
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name in one:
            assert_same(one[name], other[name], f"{where}.{name}")
    elif np.asarray(one).dtype.kind == "f":
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-7, err_msg=where)
    else:
        assert np.array_equal(one, other), where


def fitted(name, times):
    estimator = clone(ALL[name]).set_params(random_state=key("repeated", name))
    X, y = records_for(getattr(estimator, "estimator", estimator), N)
    ids = np.repeat(np.arange(N), times)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return released(estimator.fit(X[ids], None if y is None else y[ids], groups=ids))
    except CertificateError as error:
        return str(error)  # not every strategy knows every model


@pytest.mark.parametrize("name", a_third(ALL))
def test_a_person_whose_rows_are_repeated_is_the_same_person(name):
    assert_same(fitted(name, ONCE), fitted(name, OFTEN))


def test_questions_about_persons_whose_rows_are_repeated():
    X, answers = rows(N), []
    y = (targets(X) > 0).astype(int)
    model = DPLogisticRegression(float("inf"), classes=[0, 1]).fit(X, y)
    for times in (ONCE, OFTEN):
        ids = np.repeat(np.arange(N), times)
        part, labels, state = X[ids], y[ids], key("questions")
        holdout = Thresholdout(0.0, 0.1, random_state=state).fit(
            X, y, X_holdout=part, y_holdout=labels, groups=np.arange(N), groups_holdout=ids
        )
        evaluation = evaluate(model, part, labels, epsilon=1.0, groups=ids, random_state=state)
        answers.append(
            {
                "holdout": holdout.query(lambda X, y: y),
                "loss": holdout.privacy_,
                "uses": holdout.uses_,
                "ladder": Ladder(0.01).fit(part, labels, groups=ids).query(lambda X, y: y),
                "evaluation": released(evaluation),
            }
        )
    assert_same(*answers)


def test_every_class_is_here_and_its_twin_is_seen(monkeypatch):
    taken = {name for name, kind in PUBLIC.items() if getattr(kind, "takes_groups", False)}
    assert taken <= {type(estimator).__name__ for estimator in ALL.values()}
    # the broken twin takes each row for a person
    monkeypatch.setattr(Persons, "of", lambda ids, X: Persons(ids, np.ones(len(ids)), len(ids)))
    for name in ESTIMATORS:
        with pytest.raises(AssertionError):
            assert_same(fitted(name, ONCE), fitted(name, OFTEN))

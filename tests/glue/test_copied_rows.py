"""Copies of all rows of a person change no score that reaches a mechanism: it is a mean over persons.

That holds for every score, wherever one chooses, tests or answers. A weight that is lost on the way is
seen at once.
"""

import math
import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone

from dpselect import (
    AccuracyFirstSearchCV,
    DPLogisticRegression,
    DPRidge,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    Thresholdout,
    ThresholdoutFeatureSelector,
)
from dpselect.mechanisms import exponential_mechanism
from dpselect.mechanisms.reusable_holdout import ReusableHoldout
from dpselect.metrics import R2Score, RootMeanSquaredErrorScore
from dpselect.metrics.score import AtLeastScore
from dpselect.metrics.scores import SCORES
from dpselect.noise import grid_laplace

from .recording import Recorder

RNG = np.random.default_rng(0)
SIZES = np.array([1, 9, 2, 5, 1, 3] * 10)
IDS = RNG.permutation(np.repeat(np.arange(60), SIZES))
X = RNG.uniform(-0.7, 0.7, size=(len(IDS), 2))
# persons with many rows are not like others
Z = np.clip((X[:, 0] + 0.3 * RNG.normal(size=len(IDS))) * np.where(SIZES[IDS] > 4, -1, 1), -1, 1)
COPIES = np.repeat(np.arange(len(IDS)), RNG.choice([1, 2, 7], size=60)[IDS])
KINDS = {
    "classes": (DPLogisticRegression(classes=[0, 1], alpha=0.1), (Z > 0) * 1),
    "numbers": (DPRidge(alpha=0.1, perturbation="output", target_range=(-1, 1)), Z),
}
SERVED = {
    name: ("numbers" if "error" in name else "classes", score)
    for name, score in SCORES.items()
    if math.isfinite(score.sensitivity(1))
}
SERVED["r2"] = "numbers", R2Score((-1, 1))
SERVED["root"] = "numbers", RootMeanSquaredErrorScore((-1, 1))
GIVEN = {"random_state": 0}


class Unmoved(ClassifierMixin, BaseEstimator):
    """Predicts by its columns; one that learned would see copies, as nothing protects its records."""

    classes_ = np.arange(2)

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X.sum(axis=1)

    def predict(self, X):
        return (X.sum(axis=1) > 0) * 1

    def predict_proba(self, X):
        return expit(np.outer(X.sum(axis=1), [-1, 1]))


class UnmovedRegressor(RegressorMixin, BaseEstimator):
    """The same of numbers."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X.sum(axis=1)


def choice(kind, score):
    search = StabilityGridSearchCV(
        KINDS[kind][0], {"data_norm": [0.5, 1.0]}, strategy="budget_split", scoring=score, **GIVEN
    )
    return lambda X, y, ids: search.fit(X, y, groups=ids)


def first(kind, criterion, target):
    search = AccuracyFirstSearchCV(
        KINDS[kind][0],
        {"epsilon": [0.5, 1.0, 4.0]},
        target=target,
        criterion=criterion,
        max_epsilon=math.inf,
        on_failure="last",
        method="doubling",
        **GIVEN,
    )
    return lambda X, y, ids: search.fit(X, y, groups=ids)


def holdout(kind, score):
    def ask(X, y, ids):
        train = ids % 2 == 0
        model = clone(KINDS[kind][0]).set_params(**GIVEN).fit(X[train], y[train], groups=ids[train])
        Thresholdout(0.0, **GIVEN).fit(
            X[train],
            y[train],
            groups=ids[train],
            X_holdout=X[~train],
            y_holdout=y[~train],
            groups_holdout=ids[~train],
        ).score(model, score)

    return ask


def columns(score):
    model = UnmovedRegressor() if score.task == "regressor" else Unmoved()
    selector = ThresholdoutFeatureSelector(model, n_features_to_select=1, scoring=score, **GIVEN)
    return lambda X, y, ids: selector.fit(X, y, groups=ids)


CASES = {}
for _name, (_kind, _score) in SERVED.items():
    CASES[f"choice by {_name}"] = _kind, choice(_kind, _score)
    if isinstance(_score, AtLeastScore):
        CASES[f"at least {_name}"] = _kind, first(_kind, _score, 0.7)
    elif _name in ("brier", "ramp", "clipped_squared_error"):
        CASES[f"at most {_name}"] = _kind, first(_kind, _score, 0.3)
    if math.isfinite(_score.width):
        CASES[f"holdout by {_name}"] = _kind, holdout(_kind, _score)
        CASES[f"columns by {_name}"] = _kind, columns(_score)

# what mechanisms are given that follows from records
READ = {
    "exponential_mechanism": ["scores"],
    "grid_laplace": ["values"],
    "answer": ["train_value", "holdout_value"],
}


def numbers(call):
    return np.concatenate([np.ravel(call[name]).astype(float) for name in READ[call.name]])


@pytest.fixture(scope="module")
def recorder():
    with pytest.MonkeyPatch.context() as patch:
        found = Recorder(patch).watch_methods(ReusableHoldout, "answer", note=numbers)
        yield found.watch(exponential_mechanism, grid_laplace, note=numbers)


def reached(recorder, kind, run, rows):
    """Return the numbers that reach mechanisms, in their order."""
    y = KINDS[kind][1]
    recorder.calls.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        run(X[rows], None if y is None else y[rows], IDS[rows])
    return [call.noted for call in recorder.calls]


@pytest.mark.parametrize("case", CASES)
def test_copies_of_all_rows_of_a_person_change_no_score(recorder, case):
    kind, run = CASES[case]
    usual, copied = (reached(recorder, kind, run, rows) for rows in (np.arange(len(IDS)), COPIES))
    assert len(usual) == len(copied) > 0
    for one, other in zip(usual, copied):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-6)

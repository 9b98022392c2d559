"""Bad input for reusable holdout sets."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold, StratifiedKFold

from dpselect import Ladder, Thresholdout, ThresholdoutFeatureSelector
from dpselect.exceptions import BudgetExceededError

from .properties import attempt, cases, check_error, check_fit
from .values import GOOD_LABELS, SECRET, TEXT, changes, junk, records

ROWS = np.random.default_rng(1).random((20, 2))
LABELS = np.arange(20) % 2
ODD = (np.float16(0.3), np.float32(0.04), Fraction(1, 3), 1.0, 1e-9)
ANSWERS = dict(
    threshold=(0, *ODD), noise_rate=ODD, budget=(1, np.int8(100), 10**6), random_state=(0, None)
)
LABELS_OR_NONE = {**GOOD_LABELS, "nothing": lambda rng, n: None}


def same_lengths(kept):
    """Ask a question that reads nothing of the records."""
    return kept.query(lambda X, y: np.full(X.shape[0] if hasattr(X, "shape") else len(X), 0.5))


@cases(
    350,
    params=changes(**ANSWERS),
    train=records(LABELS_OR_NONE),
    held=records(LABELS_OR_NONE),
    again=st.booleans(),
)
def test_thresholdout(params, train, held, again):
    def fit(holdout, X, y, X_holdout, y_holdout):
        return holdout.fit(X, y, X_holdout=X_holdout, y_holdout=y_holdout)

    return check_fit(
        Thresholdout(random_state=0),
        params,
        (*train, *held),
        fit=fit,
        good=(ROWS, LABELS, ROWS, LABELS) if again else None,
        use=same_lengths,
        loss=lambda holdout: holdout._answers.epsilon,
    )


@cases(250, params=changes(step=(None, 1, *ODD)), data=records(LABELS_OR_NONE), again=st.booleans())
def test_ladder(params, data, again):
    return check_fit(
        Ladder(),
        params,
        data,
        good=(ROWS, LABELS) if again else None,
        use=same_lengths,
        loss=lambda ladder: float("inf"),
    )


def raising(kind):
    def function(X, y):
        raise kind(f"{TEXT} {SECRET}")

    return function


FUNCTIONS = st.one_of(
    st.sampled_from(
        [
            lambda X, y: X[:, 1] > 0.5,
            lambda X, y: X[:, 1] ** 2,
            lambda X, y: X[:, 0],
            lambda X, y: y,
            lambda X, y: X[:, 0].tolist(),
            lambda X, y: 1e300 * X[:, 1],
            lambda X, y: X,
            lambda X, y: X[:3, 0],
            lambda X, y: float(X[0, 0]),
            lambda X, y: X[:, 0] * np.nan,
            lambda X, y: np.full(len(X), TEXT),
            lambda X, y: X[:, 0] + 1j,
            lambda X, y: None,
            *map(raising, (ValueError, KeyError, RuntimeError, ZeroDivisionError, RecursionError)),
            lambda X, y: np.exp(1e3 + X[:, 0]),
            lambda X, y: print(X[0, 0]) or X[:, 0],
        ]
    ),
    junk().map(lambda value: lambda X, y: value),
    junk(),
)


@cases(250, function=FUNCTIONS, ladder=st.booleans())
def test_queries(function, ladder):
    # training records are not protected: only the holdout set has secrets, and no training errors
    held = np.where(ROWS == ROWS.min(), SECRET, ROWS)
    kept = Ladder() if ladder else Thresholdout(random_state=0, noise_rate=1.0)
    if ladder:
        attempt(lambda: kept.fit(held, LABELS))
    else:
        attempt(lambda: kept.fit(ROWS, LABELS, X_holdout=held, y_holdout=LABELS))

    def guarded(X, y):
        if X is ROWS:
            return np.zeros(len(X))
        return function(X, y)

    found = attempt(lambda: kept.query(guarded))
    if found.error is None:
        assert type(found.value) is float and np.isfinite(found.value)
        return "result"
    check_error(found.error, ("question", "function"))
    return "error"


@cases(
    75,
    params=changes(
        **ANSWERS,
        n_features_to_select=(1, 2, np.int8(1)),
        scoring=("accuracy", "brier"),
        n_jobs=(None, 1),
        cv=(2, KFold(3), StratifiedKFold(2), [([0, 1], [2, 3])], [([0, 1], [99])], 10**9),
        public_splits=(True, False),
        estimator=(DummyClassifier(), None, 5),
    ),
    data=records(),
    again=st.booleans(),
)
def test_feature_selector(params, data, again):
    return check_fit(
        ThresholdoutFeatureSelector(DummyClassifier(), n_features_to_select=1, random_state=0),
        params,
        data,
        good=(ROWS, LABELS) if again else None,
        use=lambda selector: selector.transform(ROWS[:, : selector.n_features_in_]),
    )


def test_a_spent_budget_is_an_error_of_its_own():
    holdout = Thresholdout(threshold=0.0, noise_rate=1e-6, budget=1)
    holdout.fit(ROWS, LABELS, X_holdout=ROWS[:5], y_holdout=LABELS[:5])
    holdout.query(lambda X, y: np.full(len(X), len(X) == 5))
    with pytest.raises(BudgetExceededError):
        holdout.query(lambda X, y: np.full(len(X), len(X) == 5))

"""Bad input for searches."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.preprocessing import BoundedScaler

from .properties import attempt, cases, check_error, check_fit, names_of
from .values import GOOD_LABELS, NUMBERS, changes, junk, records

ROWS = np.random.default_rng(1).random((40, 2))
LABELS = np.arange(40) % 2
LOGISTIC = DPLogisticRegression(alpha=0.1, classes=[0, 1])
RIDGE = DPRidge(alpha=0.1, perturbation="objective", target_range=(-1, 1))
DENSITY = DPHistogramDensity(bin_width=0.5, bounds=(0, 1))
PIPELINE = make_pipeline(BoundedScaler((0, 1)), LOGISTIC)
ALPHAS, WIDTHS = {"alpha": [0.1, 1.0]}, {"bin_width": [0.5, 1.0]}
GRIDS = (
    ALPHAS,
    WIDTHS,
    {},
    [],
    [ALPHAS],
    {"alpha": []},
    {"alpha": 0.1},
    {"epsilon": [1.0]},
    {"beta": [1]},
    {"alpha": [0.1, "a text"]},
    {"alpha": ["auto", -1.0]},
    {"classes": [[0, 1], [0, 1, 2]]},
    {5: [1]},
    {"dplogisticregression__alpha": [0.1, np.nan]},
    {"alpha": [0.1, np.float16(0.2)]},
    ("alpha", 0.1),
)
SPLITS = (
    2,
    np.int8(2),
    KFold(3),
    StratifiedKFold(2),
    [([0, 1], [2, 3])],
    [([0, 1], [99])],
    10**9,
    10**400,
    [([0], [-99])],
    [([], [1])],
    [(0, 1)],
    [5],
    [([True], [False])],
    [([0, 0, 1], [2])],
    [([0, 1], [1])],
    [(["a"], [0.5])],
)
SHARES = (None, 0.2, np.float16(0.3), Fraction(1, 3), 1e-9, 0.99)
STEPS = ((), ("standardscaler",), [StandardScaler], "standardscaler")
RECORDS = dict(data=records({**GOOD_LABELS, **NUMBERS}, sizes=(2, 7, 40)), again=st.booleans())


def predict(search):
    if not search.refit:
        return None
    rows = ROWS[:, : search.n_features_in_]
    method = search.predict if hasattr(search, "predict") else search.score_samples
    found = method(rows)
    assert found.shape == (40,)
    return np.where(np.isneginf(found), 0.0, found)


def spent(search):
    """Return the loss if it does not exceed what was to be spent."""
    total = search.privacy_.epsilon
    assert total <= float(search.epsilon) * (1 + 1e-12) or search.strategy == "control"
    return total


@cases(
    225,
    start=st.sampled_from(
        [
            *(
                (LOGISTIC, ALPHAS, strategy)
                for strategy in (
                    "auto",
                    "stability",
                    "data_independent",
                    "optimal_risk",
                    "budget_split",
                    "data_split",
                    "random_stopping",
                    "random",
                    "control",
                )
            ),
            (RIDGE, ALPHAS, "stability"),
            (DPRidge(target_range=(-1, 1)), ALPHAS, "stability"),
            (DENSITY, WIDTHS, "stability"),
            (DENSITY, WIDTHS, "random_stopping"),
            (PIPELINE, {"dplogisticregression__alpha": [0.1, 1.0]}, "stability"),
        ]
    ),
    params=changes(
        estimator=(
            LOGISTIC,
            RIDGE,
            DENSITY,
            PIPELINE,
            DecisionTreeClassifier(),
            None,
            LOGISTIC.__class__,
            make_pipeline(StandardScaler(), LOGISTIC),
            make_pipeline(5, LOGISTIC),
            make_pipeline(LOGISTIC),
        ),
        param_grid=GRIDS,
        epsilon=(1.0, np.float16(0.3), np.int8(2), Fraction(1, 3), 1e-9, 1e6),
        delta=(0.0, 1e-6, np.float16(0.1), 0.5),
        selection_fraction=("auto", 0.5, np.float16(0.1), 1e-12),
        scoring=(
            None,
            "brier",
            "accuracy",
            "ramp",
            "clipped_squared_error",
            "logistic",
            "r2",
            "roc_auc",
            "f1",
            "balanced_accuracy",
            "neg_log_loss",
            "neg_mean_absolute_error",
        ),
        strategy=("auto", "stability", "data_independent", "optimal_risk", "budget_split", "random"),
        n_noise_samples=(1, 2, np.int8(2)),
        n_jobs=(None, 1),
        refit=(True, False),
        cv=SPLITS,
        public_splits=(True, False),
        trusted_steps=STEPS,
        evaluation=SHARES,
        verbose=(0, 1),
        random_state=(0, None),
    ),
    **RECORDS,
)
def test_private_search(start, params, data, again):
    estimator, grid, strategy = start
    y = LABELS if estimator is not DENSITY else None
    return check_fit(
        StabilityGridSearchCV(estimator, grid, epsilon=8.0, strategy=strategy, cv=2, random_state=0),
        params,
        data,
        good=(ROWS, y) if again else None,
        use=predict,
        loss=spent,
    )


LEVELS = {"epsilon": [0.5, 8.0, 5000.0]}


@cases(
    200,
    start=st.sampled_from(
        [
            *(
                (DPRidge(alpha=0.1, target_range=(-1, 1)), method)
                for method in (
                    "auto",
                    "certified",
                    "theory",
                    "predict_verify",
                    "above_threshold",
                    "reduced_above_threshold",
                    "doubling",
                    "published_above_threshold",
                )
            ),
            (LOGISTIC, "certified"),
            (LOGISTIC, "doubling"),
            (LOGISTIC, "predict_verify"),
            (DENSITY, "above_threshold"),
            (DENSITY, "certified"),
        ]
    ),
    params=changes(
        estimator=(
            LOGISTIC,
            RIDGE,
            DENSITY,
            DecisionTreeClassifier(),
            None,
            LOGISTIC.__class__,
            PIPELINE,
        ),
        param_grid=(
            LEVELS,
            {"epsilon": [1]},
            {"epsilon": []},
            {"epsilon": [2.0, 1.0]},
            {"epsilon": [np.nan]},
            {"epsilon": ["a"]},
            {"epsilon": [1.0, 10**400]},
            {"epsilon": [0.0, 1.0]},
            {"alpha": [1.0]},
            {},
            {"epsilon": np.float16([0.1, 1.0, 100])},
            {"epsilon": np.int8([1, 100])},
            {"epsilon": [1j]},
            {"epsilon": [1e-9, 1e300]},
            {"epsilon": (x for x in (1.0, 2.0))},
            {"epsilon": [[1.0], [1, 2]]},
        ),
        target=(0.5, np.float16(0.3), Fraction(1, 3), 1e-300, 1e300, 9, -0.5),
        delta=(0.0, 1e-6, 0.5),
        criterion=("excess_risk", "risk", "brier", "clipped_squared_error", "accuracy", "r2"),
        failure_probability=(0.1, np.float16(0.1), Fraction(1, 3), 0.999, 1e-6),
        method=("auto", "certified", "brownian", "doubling"),
        max_epsilon=("auto", math.inf, 1, np.float16(1e3), Fraction(1, 3)),
        on_failure=("raise", "last"),
        cv=SPLITS,
        verbose=(0, 1),
        public_splits=(True, False),
        trusted_steps=STEPS,
        evaluation=SHARES,
        random_state=(0, None),
    ),
    **RECORDS,
)
def test_accuracy_first(start, params, data, again):
    estimator, method = start
    y = LABELS if estimator is not DENSITY else None
    return check_fit(
        AccuracyFirstSearchCV(
            estimator, LEVELS, target=5.0, method=method, on_failure="last", random_state=0
        ),
        params,
        data,
        good=(ROWS, y) if again else None,
        use=predict,
        loss=lambda search: search.privacy_.epsilon,
    )


SHAPES = st.one_of(st.sampled_from([1, 2, np.int8(100), 30]), junk())


@cases(
    150,
    search=st.sampled_from(
        [
            StabilityGridSearchCV(LOGISTIC, ALPHAS),
            StabilityGridSearchCV(PIPELINE, {}, evaluation=0.2),
            AccuracyFirstSearchCV(DPRidge(target_range=(-1, 1)), LEVELS, target=0.5, evaluation=0.5),
            StabilityGridSearchCV(DENSITY, WIDTHS, strategy="stability"),
        ]
    ),
    n_samples=SHAPES,
    n_features=st.one_of(st.just(2), SHAPES),
    n_classes=st.one_of(st.just(2), SHAPES),
    example=st.one_of(st.none(), st.none(), st.just(ROWS[:1]), junk()),
)
def test_plan(search, n_samples, n_features, n_classes, example):
    found = attempt(lambda: search.plan(n_samples, n_features, n_classes, example))
    if found.error is None:
        assert all(isinstance(message, str) for message in found.value.messages)
        return "result"
    check_error(
        found.error,
        {
            *names_of(search),
            "n_samples",
            "n_features",
            "n_classes",
            "example",
            "bounds",
            "bin_width",
        },
    )
    return "error"

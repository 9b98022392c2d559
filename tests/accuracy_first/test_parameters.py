"""What an accuracy-first search refuses, before it touches the data."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
)
from dpselect.metrics import ClippedSquaredErrorScore
from dpselect.model_selection.accuracy_first.target_checks import epsilon_grid
from dpselect.preprocessing import BoundedScaler
from tests.model_selection.strategies.common import Untouchable

GRID = {"epsilon": [0.1, 1.0, 10.0]}
NAN, INF = float("nan"), float("inf")
LOGISTIC = DPLogisticRegression(alpha=0.1)
OBJECTIVE = DPRidge(alpha=0.1, perturbation="objective", target_range=(-1, 1))
DENSITY = DPHistogramDensity(bin_width=0.5, bounds=(0, 1))


def refusal(error, fit_params=(), **parameters):
    """The message with which a search refuses, having touched nothing."""
    parameters = {
        "estimator": DPRidge(alpha=0.1, target_range=(-1, 1)),
        "param_grid": GRID,
        "target": 0.1,
        **parameters,
    }
    search = AccuracyFirstSearchCV(**parameters)
    with pytest.raises(error) as caught:
        search.fit(Untouchable(), Untouchable(), **dict(fit_params))
    assert not [name for name in vars(search) if name.endswith("_")]
    return str(caught.value)


def says(message, *parts):
    assert not [part for part in parts if part not in message], message


def name_of(value):
    return value if isinstance(value, str) else repr(value)[:40]


def lists(*values):
    return [{"epsilon": value} for value in values]


# what each parameter may not be, and what the refusal says besides its name
REFUSED = [
    ("param_grid", "['epsilon'] does not increase", lists([1.0, 0.5], [1.0, 1.0])),
    (
        "param_grid",
        "['epsilon'] holds a value that is no finite number",
        lists([0.0, 1.0], [-1.0, 1.0], [1e-10, 1.0], [1.0, INF], [NAN, 1.0], [1.0, NAN]),
    ),
    (
        "param_grid",
        "['epsilon'] must list at least one number",
        lists(
            [], 1.0, None, "small", ["small"], [[0.1, 1.0]], [[0.1], [0.1, 1.0]], ["0.1", "1"], [True]
        ),
    ),
    (
        "param_grid",
        "one key 'epsilon'",
        [
            {},
            [GRID],
            [],
            None,
            {"alpha": [0.1]},
            {"epsilon": [0.1, 1.0], "alpha": [0.1]},
            {"dpridge__epsilon": [1.0]},
            "epsilon",
            [0.1, 1.0],
        ],
    ),
    ("target", "greater than 0", [0, -0.1]),
    ("target", "0.05", [NAN, INF, -INF, "0.1", None, True, [0.1]]),
    ("failure_probability", "1e-6", [0, 1, -0.5, 1.5, 1e-7, NAN, "0.1"]),
    ("delta", "1e-6", [-1e-9, 1.0, NAN, None]),
    ("method", "'certified', 'reduced_above_threshold'", ["best", None, ["certified"]]),
    ("on_failure", "'raise', 'last'", ["ignore", None]),
    ("random_state", "None", ["seed", -1]),
    ("cv", "leave it out, or name a score", [5, KFold(5)]),
    ("max_epsilon", "auto", [0, -1.0, NAN, "all", None]),
]


@pytest.mark.parametrize("name, says_so, values", REFUSED)
def test_bad_parameters_are_refused_in_one_sentence(name, says_so, values):
    for value in values:
        message = refusal((TypeError, ValueError), **{name: value})
        says(message, name, says_so)
        assert message.endswith(".") and message.rstrip(".").count(". ") == 0, message


def test_the_epsilon_of_a_pipeline():
    pipeline = make_pipeline(BoundedScaler((-1, 1)), DPRidge(alpha=0.1, target_range=(-1, 1)))
    for grid in (GRID, {"boundedscaler__epsilon": [1.0]}, {"dpridge__alpha": [1.0]}):
        message = refusal(ValueError, estimator=pipeline, param_grid=grid)
        says(message, "one key 'dpridge__epsilon'", "{'dpridge__epsilon': [")
    name, epsilons = epsilon_grid(pipeline, {"dpridge__epsilon": (1, 2)})
    assert name == "dpridge__epsilon" and epsilons.dtype == float and list(epsilons) == [1.0, 2.0]


def test_what_a_target_may_be_depends_on_the_criterion():
    for criterion in ("risk", "clipped_squared_error"):
        says(refusal(ValueError, target=-0.5, criterion=criterion), "target=-0.5", "greater than 0")
    # a density's risk can be negative; its excess cannot
    says(refusal(ValueError, estimator=DENSITY, target=-0.5), "target=-0.5")
    says(refusal(ValueError, estimator=DENSITY, target=0, criterion="risk"), "target=0")
    X = np.linspace(0, 1, 500)[:, None] / 2
    grid = {"epsilon": [1.0, 10.0, 100.0]}
    search = AccuracyFirstSearchCV(DENSITY, grid, target=-0.5, criterion="risk")
    assert search.fit(X).reached_


CRITERIA = [
    "average_precision",
    "neg_max_error",
    "no such score",
    None,
    1.0,
    ["brier"],
    make_scorer(mean_squared_error),
]


@pytest.mark.parametrize("criterion", CRITERIA, ids=name_of)
def test_criteria_without_a_bound_are_refused(criterion):
    message = refusal(CertificateError, criterion=criterion)
    says(message, "'brier'", "'clipped_squared_error'")
    if isinstance(criterion, str) and criterion in CRITERIA[:2]:
        says(message, f"criterion={criterion!r}", "'excess_risk'")
        assert "scoring" not in message


@pytest.mark.parametrize("criterion", ["accuracy", "roc_auc", "balanced_accuracy", "f1"])
def test_a_score_that_should_be_large_is_at_least_its_target(criterion):
    for target in (0.0, 1.0, 1.5, -0.1, np.nan):
        message = refusal(ValueError, estimator=LOGISTIC, criterion=criterion, target=target)
        says(message, "target", criterion, "at least", "0.8")
    says(refusal(CertificateError, criterion=criterion), "DPRidge")
    says(refusal(CertificateError, criterion="r2", estimator=LOGISTIC), "public range of targets")
    three = DPLogisticRegression(alpha=0.1, classes=[0, 1, 2])
    if criterion in ("roc_auc", "f1"):
        says(refusal(CertificateError, criterion=criterion, estimator=three), "two classes")


@pytest.mark.parametrize(
    "estimator, criterion, instead",
    [
        (DPRidge(alpha=0.1, target_range=(-1, 1)), "brier", "'clipped_squared_error'"),
        (OBJECTIVE, "ramp", "'clipped_squared_error'"),
        (LOGISTIC, "clipped_squared_error", "'brier'"),
        (DPLinearSVC(alpha=0.1), ClippedSquaredErrorScore(2.0), "'ramp'"),
        (DENSITY, "logistic", "'integrated_squared_error'"),
    ],
    ids=name_of,
)
def test_scores_of_other_estimators_are_refused(estimator, criterion, instead):
    message = refusal(CertificateError, estimator=estimator, criterion=criterion)
    says(message, type(estimator).__name__, instead)


@pytest.mark.parametrize(
    "cv, says_so",
    [
        (StratifiedKFold(), "cv=5"),
        (GroupKFold(), "public_splits=True"),
        ([([0], [1])], "public_splits=True"),
        (1, "2 or more"),
        ("folds", "public_splits=True"),
    ],
    ids=name_of,
)
def test_splits_that_may_look_at_the_records_are_refused(cv, says_so):
    message = refusal(ValueError, estimator=LOGISTIC, criterion="brier", target=0.2, cv=cv)
    says(message, "cv", says_so)


@pytest.mark.parametrize(
    "train, test, which",
    [
        (np.arange(8), np.arange(7, 10), "cv.*disjoint"),
        # it would count more often than the noise is made for
        (np.arange(5), np.append(np.arange(5, 10), 5), "validates on a record more than once"),
        (np.append(np.arange(5), 0), np.arange(5, 10), "trains on a record more than once"),
    ],
    ids=name_of,
)
def test_parts_that_share_or_repeat_a_record_are_refused(train, test, which):
    search = AccuracyFirstSearchCV(
        DPLogisticRegression(alpha=0.1, classes=[0, 1], perturbation="output"),
        GRID,
        target=0.2,
        criterion="brier",
        cv=[(train, test)],
        public_splits=True,
    )
    with pytest.raises(ValueError, match=which):
        search.fit(np.ones((10, 1)), np.arange(10) % 2)


PATHS = ["above_threshold", "published_above_threshold", "reduced_above_threshold", "brownian"]


@pytest.mark.parametrize("method", PATHS)
@pytest.mark.parametrize("estimator", [OBJECTIVE, LOGISTIC, DPLinearSVC(alpha=0.1)], ids=name_of)
def test_objective_perturbation_has_no_path(estimator, method):
    for criterion in ("excess_risk", "risk"):
        message = refusal(
            CertificateError, estimator=estimator, method=method, delta=1e-6, criterion=criterion
        )
        says(message, "perturbation='objective'", "perturbation='output'", "'certified'", "'doubling'")


@pytest.mark.parametrize(
    "parameters, parts",
    [
        ({"method": "brownian"}, ("method='brownian'", "delta=1e-6")),
        (
            {"method": "certified", "criterion": "risk"},
            ("method='certified'", "'excess_risk'", "'above_threshold'"),
        ),
        (
            {"method": "theory", "criterion": "clipped_squared_error"},
            ("method='theory'", "'excess_risk'"),
        ),
        ({"method": "theory"}, ('perturbation="covariance"', '"objective" or "output"')),
    ],
)
def test_methods_that_do_not_serve(parameters, parts):
    says(refusal(CertificateError, **parameters), *parts)


@pytest.mark.parametrize("method", ["auto", "certified", "doubling"])
def test_alpha_must_be_a_number(method):
    for estimator in (DPLogisticRegression(), DPLinearSVC(alpha="auto", perturbation="output")):
        message = refusal(ValueError, estimator=estimator, method=method)
        says(message, 'alpha="auto"', "write a number for alpha")


@pytest.mark.parametrize(
    "estimator, part",
    [
        (DPRidge(alpha=-1.0, target_range=(-1, 1)), "alpha=-1.0"),
        (DPRidge(alpha=0.1, norm="max", target_range=(-1, 1)), "norm"),
        (DPLogisticRegression(alpha=0.1, tol=1.0), "tol"),
        (DPHistogramDensity(bin_width=0.3, bounds=(0, 1)), "bin_width"),
    ],
    ids=name_of,
)
def test_bad_parameters_of_the_estimator(estimator, part):
    says(refusal(ValueError, estimator=estimator), part)


@pytest.mark.parametrize("estimator", [Ridge(), LogisticRegression()], ids=name_of)
def test_other_estimators_are_refused(estimator):
    message = refusal(CertificateError, estimator=estimator)
    says(message, type(estimator).__name__, "no private model", "a private estimator of dpselect")
    assert "epsilon=float('inf')" not in message  # a parameter that there is not


def test_a_pipeline_must_end_with_a_private_estimator():
    pipeline = Pipeline([("m", DPRidge(alpha=0.1, target_range=(-1, 1))), ("last", Ridge())])
    says(refusal(ValueError, estimator=pipeline, param_grid={"last__epsilon": [1.0]}), "Ridge")


def test_unsafe_steps_are_refused():
    pipeline = make_pipeline(StandardScaler(), DPRidge(alpha=0.1, target_range=(-1, 1)))
    message = refusal(ValueError, estimator=pipeline, param_grid={"dpridge__epsilon": [1.0]})
    says(message, "StandardScaler", "BoundedScaler")


@pytest.mark.parametrize("name", ["sample_weight", "anything"])
def test_fit_parameters_are_refused(name):
    weights = name == "sample_weight"
    error, instead = (
        (CertificateError, "write DPHuberRegressor") if weights else (TypeError, "leave it out")
    )
    says(refusal(error, fit_params={name: Untouchable()}), name, instead)


def test_the_target_has_no_default():
    with pytest.raises(TypeError, match="target"):
        AccuracyFirstSearchCV(DPRidge(target_range=(-1, 1)), GRID)


def test_refusals_of_methods_are_one_sentence():
    for parameters in (
        {"method": "theory"},
        {"method": "brownian"},
        {"estimator": DPLogisticRegression()},
        {"estimator": OBJECTIVE, "method": "above_threshold"},
    ):
        message = refusal((ValueError, TypeError), **parameters)
        assert message.endswith(".") and message.rstrip(".").count(". ") == 0

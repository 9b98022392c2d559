"""Errors that send to what works here, and not to what another library would do."""

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.exceptions import CertificateError
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, tabular_pipeline
from dpselect.utils.parameters import COUNTERPARTS

X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 2))
Y = (X[:, 0] > 0).astype(int)
GAPS = np.where(X > 0.49, np.nan, X)
MODEL = DPLogisticRegression(classes=[0, 1])
LAST = "The last step of the Pipeline"
CLASSES = (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)


@pytest.mark.parametrize("estimator", [
    MODEL, DPRidge(target_range=(-1, 1)), DPHistogramDensity(bounds=[(-1, 1)] * 2),
    DPBoundsScaler(1.0), StabilityGridSearchCV(MODEL, {"alpha": [0.1]}),
])  # fmt: skip
def test_gaps_send_to_an_imputer_that_learns_nothing(estimator):
    with pytest.raises(ValueError) as refusal:
        estimator.fit(GAPS, Y)
    said = str(refusal.value)
    assert said.startswith("Input X contains NaN") and "HistGradient" not in said
    (imputer,) = re.findall(r"SimpleImputer\(.*?\)", said)
    model = make_pipeline(eval(imputer, {"SimpleImputer": SimpleImputer}), MODEL)
    assert StabilityGridSearchCV(model, {}).fit(GAPS, Y).privacy_.epsilon == 1.0


def test_gaps_send_to_a_schema(estimator=MODEL):
    schema = {name: {"bounds": (-1, 1), "missing": True} for name in "ab"}
    model = tabular_pipeline(schema, estimator)
    assert model.fit(pd.DataFrame(GAPS, columns=["a", "b"]), Y)[-1].privacy_.epsilon == 1.0


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", COUNTERPARTS)
def test_parameters_of_other_libraries_point_to_ours(kind, name):
    instead, needed = COUNTERPARTS[name]
    own = kind._get_param_names()
    if name in own:
        return
    with pytest.raises(TypeError) as made:
        kind(**{name: 1})
    with pytest.raises(ValueError) as changed:
        kind().set_params(**{name: 1})
    for error in (made, changed):
        known = f"{kind.__name__} has no parameter {name}, which other libraries have; {instead}."
        assert (str(error.value) == known) == (needed in own)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_signature_of_a_class_is_its_own(kind):
    """Which help, editors and the documentation show."""
    assert list(inspect.signature(kind).parameters)[0] == "epsilon"
    assert set(inspect.signature(kind).parameters) == set(kind._get_param_names())


def test_counterparts_are_named_in_grids_and_pipelines_too():
    pipeline = make_pipeline(BoundedScaler((-1, 1)), MODEL)
    for estimator, name in ((MODEL, "C"), (pipeline, "dplogisticregression__C")):
        with pytest.raises(ValueError, match=r"leave alpha at .*1 / \(n_samples \* C\)"):
            StabilityGridSearchCV(estimator, {name: [1.0]}).fit(X, Y)


def test_what_is_no_parameter_anywhere_is_refused_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        DPLogisticRegression(depth=3)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        DPLogisticRegression().set_params(depth=3)


@pytest.mark.parametrize("estimator", [
    DPLogisticRegression(epsilon="1.0", classes=[0, 1]),
    StabilityGridSearchCV(MODEL, {}, epsilon="1e-1"),
    DPHistogramDensity(epsilon="inf", bounds=[(-1, 1)] * 2),
])  # fmt: skip
def test_a_number_in_quotation_marks(estimator):
    with pytest.raises(TypeError, match="epsilon must be a number, not a str, .*without quotation"):
        estimator.fit(X, Y)


def test_a_word_in_place_of_a_number():
    with pytest.raises(TypeError, match="epsilon must be a number, not a str, .*such as 1.0"):
        DPLogisticRegression(epsilon="one", classes=[0, 1]).fit(X, Y)


@pytest.mark.parametrize("estimator, shown", [
    (LogisticRegression(), "The estimator, LogisticRegression,"),
    (make_pipeline(StandardScaler(), LogisticRegression()), f"{LAST}, LogisticRegression,"),
    (make_pipeline(MODEL, BoundedScaler((-1, 1))), f"{LAST}, BoundedScaler,"),
    (make_pipeline(BoundedScaler((-1, 1)), "passthrough"), f"{LAST}, 'passthrough',"),
    (make_pipeline(BoundedScaler((-1, 1)), None), f"{LAST}, None,"),
])  # fmt: skip
def test_a_last_step_that_is_no_private_model(estimator, shown):
    name = f"{estimator.steps[-1][0]}__epsilon" if hasattr(estimator, "steps") else "epsilon"
    for search in (
        StabilityGridSearchCV(estimator, {}),
        AccuracyFirstSearchCV(estimator, {name: [1.0]}, target=0.1),
    ):
        with pytest.raises(CertificateError, match=f"^{shown} is no private model: .*such as DPLogi"):
            search.fit(X, Y)


@pytest.mark.parametrize("name", [
    "mean_test_score", "std_test_score", "rank_test_score", "split0_test_score", "split12_train_score",
    "mean_train_accuracy", "mean_fit_time", "std_score_time",
])  # fmt: skip
def test_scores_that_are_not_there_say_why(name):
    search = StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}).fit(X, Y)
    with pytest.raises(KeyError, match="was not paid for; score the released model"):
        search.cv_results_[name]
    assert name not in search.cv_results_ and search.cv_results_.get(name) is None
    copy = pickle.loads(pickle.dumps(search)).cv_results_
    with pytest.raises(KeyError, match="was not paid for"):
        copy[name]


def test_other_names_are_missing_as_ever():
    search = StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}).fit(X, Y)
    with pytest.raises(KeyError, match="^'param_beta'$"):
        search.cv_results_["param_beta"]
    assert list(pd.DataFrame(search.cv_results_)["param_alpha"]) == [0.1, 1.0]


def test_a_plan_of_named_columns_asks_for_a_row():
    model = make_pipeline(BoundedScaler({"age": (0, 100), "dose": (0, 1)}), MODEL)
    search = StabilityGridSearchCV(model, {})
    with pytest.raises(ValueError, match="in their order; give example=, a row that you make up"):
        search.plan(1000, 3)
    row = pd.DataFrame({"id": [0.0], "age": [50.0], "dose": [0.5]})
    with pytest.raises(ValueError) as refusal:
        search.plan(1000, 3, example=row)
    assert "example=" not in str(refusal.value)
    assert search.plan(1000, 2, example=row[["age", "dose"]]).n_samples == 1000
    words = make_pipeline(HashingVectorizer(n_features=16), MODEL)
    with pytest.raises(ValueError, match="made for text.*give example="):
        StabilityGridSearchCV(words, {}).plan(1000, 1)
    assert StabilityGridSearchCV(words, {}).plan(1000, 1, example=["a text"]).n_samples == 1000
    with pytest.raises(ValueError, match="give example="):
        AccuracyFirstSearchCV(
            make_pipeline(BoundedScaler({"age": (0, 100)}), DPRidge(target_range=(0, 1))),
            {"dpridge__epsilon": [1.0]},
            target=0.1,
        ).plan(1000, 3)


@pytest.mark.parametrize("kind", CLASSES)
def test_only_epsilon_goes_by_position(kind):
    """Types do not tell for linear models, as scikit-learn's base classes have none."""
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments"):
        kind(1.0, 0.1)

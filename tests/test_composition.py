"""The loss of an estimator that is made of several."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from dpselect import (
    AccuracyFirstSearchCV,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    StabilityGridSearchCV,
    privacy_of,
)
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler
from dpselect.preprocessing import estimator_loss as composition

from . import test_meta_estimators as meta

MODEL = DPLogisticRegression(0.5, classes=[0, 1])
COLUMNS = ColumnTransformer([("a", DPBoundsScaler(0.25), [0]), ("b", DPBoundsScaler(0.125), [1, 2])])


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(-1, 1, size=(300, 3))
    return X, (X[:, 0] > 0).astype(int)


def fitted(estimator, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(*data)


@pytest.mark.parametrize("estimator, epsilon", [
    (MODEL, 0.5),
    (make_pipeline(BoundedScaler((-1, 1)), MODEL), 0.5),
    (make_pipeline(DPBoundsScaler(0.25), MODEL), 0.75),
    (make_pipeline(COLUMNS, PolynomialFeatures(2), MODEL), 0.875),
    (make_pipeline(DPBoundsScaler(0.25), make_pipeline(DPBoundsScaler(0.125), MODEL)), 0.875),
    (make_pipeline(make_pipeline(DPBoundsScaler(0.25)), MODEL), 0.75),
    (make_pipeline(FeatureUnion([("a", DPBoundsScaler(0.25)), ("b", COLUMNS)]), MODEL), 1.125),
    (make_pipeline(DPBoundsScaler(0.25), BoundedScaler((-1, 1))), 0.25),
    (make_pipeline(DPBoundsScaler(0.25), "passthrough"), 0.25),
    (COLUMNS, 0.375),
    (VotingRegressor([("a", DPRidge(0.5, target_range=(-1, 1))), ("b",
        make_pipeline(DPBoundsScaler(0.25), DPRidge(1.0, target_range=(-1, 1))))]),
     1.75),
    (make_pipeline(DPBoundsScaler(0.25), VotingRegressor([("a", DPRidge(0.5, target_range=(-1,
        1))), ("b", "drop")])), 0.75),
    (StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, epsilon=0.25), 0.25),
    (StabilityGridSearchCV(make_pipeline(DPBoundsScaler(0.25), MODEL), {}, epsilon=1.0), 1.0),
    (make_pipeline(DPBoundsScaler(0.25), StabilityGridSearchCV(MODEL, {}, epsilon=0.25)), 0.5),
    (MODEL.__class__(float("inf"), classes=[0, 1]), float("inf")),
])  # fmt: skip
def test_all_private_parts_add_up_to_what_a_ledger_counts(estimator, epsilon, data, tmp_path):
    assert epsilon == float("inf") or _counted(estimator, data, tmp_path) == epsilon
    loss = privacy_of(fitted(estimator, data))
    assert loss.epsilon == epsilon and loss.kind == "differential privacy"


def _counted(estimator, data, folder):
    with PrivacyLedger(folder / "records.ledger", epsilon=10.0) as ledger:
        fitted(estimator, data)
    return ledger.spent()[0]


def test_several_outputs_add_up(data, tmp_path):
    X, y = data
    Y = np.column_stack([y, 1.0 - y])
    for kind in (MultiOutputRegressor, RegressorChain):
        assert privacy_of(kind(DPRidge(0.5, target_range=(-1, 1))).fit(X, Y)).epsilon == 1.0
    with pytest.raises(ValueError, match="RegressorChain.*cv=None"):
        privacy_of(RegressorChain(DPRidge(0.5, target_range=(-1, 1)), cv=3).fit(X, Y))


def test_an_accuracy_first_search_states_its_own_loss(data):
    search = AccuracyFirstSearchCV(
        make_pipeline(DPBoundsScaler(0.25), DPLogisticRegression(alpha=0.1, classes=[0, 1])),
        {"dplogisticregression__epsilon": [0.5, 1.0]},
        target=5.0,
    )
    assert privacy_of(fitted(search, data)) == search.privacy_


class Halves(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X / 2


def test_a_step_of_your_own_needs_your_word(data):
    model = fitted(make_pipeline(Halves(), MODEL), data)
    with pytest.raises(ValueError, match="halves"):
        privacy_of(model)
    assert privacy_of(model, trusted_steps=[Halves]).epsilon == 0.5


class OwnUnion(FeatureUnion):
    pass


class OwnPipeline(Pipeline):
    pass


class OwnColumns(ColumnTransformer):
    pass


OWN = [OwnUnion, OwnPipeline, OwnColumns, FrozenEstimator]


@pytest.mark.parametrize("kind", OWN)
def test_trust_in_a_container_is_no_gift_of_what_its_parts_spent(kind, data):
    step = {
        OwnUnion: OwnUnion([("a", DPBoundsScaler(0.25))]),
        OwnPipeline: OwnPipeline([("a", DPBoundsScaler(0.25))]),
        OwnColumns: OwnColumns([("a", DPBoundsScaler(0.25), [0, 1])]),
        FrozenEstimator: FrozenEstimator(DPBoundsScaler(0.25).fit(data[0])),
    }[kind]
    model = fitted(make_pipeline(step, MODEL), data)
    assert privacy_of(model, trusted_steps=[kind]).epsilon == 0.75
    with pytest.raises(ValueError, match=kind.__name__):
        privacy_of(model)


@pytest.mark.parametrize("estimator, match", [
    (make_pipeline(StandardScaler(), MODEL), "standardscaler.*BoundedScaler"),
    (make_pipeline(DPBoundsScaler(0.25), LogisticRegression()), "LogisticRegression was fitted"),
    (LogisticRegression(), "LogisticRegression was fitted"),
    (StandardScaler(), "StandardScaler.*BoundedScaler"),
    (BoundedScaler((-1, 1)), "Nothing in BoundedScaler states"),
    (GridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, cv=KFold(2)), "GridSearchCV.*StabilityGridSearchCV"),
    (make_pipeline(BoundedScaler((-1, 1)), GridSearchCV(MODEL, {}, cv=KFold(2))), "StabilityGrid"),
])  # fmt: skip
def test_what_does_not_add_up_is_refused(estimator, match, data):
    with pytest.raises(ValueError, match=match):
        privacy_of(fitted(estimator, data))


@pytest.mark.parametrize("estimator", [
    DPRidge(target_range=(-1, 1)), make_pipeline(BoundedScaler((-1, 1)), DPRidge(target_range=(-1,
        1))), COLUMNS.__class__(COLUMNS.transformers),
    make_pipeline(DPBoundsScaler(), "passthrough"), VotingRegressor([("a",
        DPRidge(target_range=(-1, 1)))]),
    StabilityGridSearchCV(DPRidge(target_range=(-1, 1)), {}), Pipeline([("a", DPBoundsScaler()),
        ("b", DPRidge(target_range=(-1, 1)))]),
    BoundedScaler((-1, 1)),
])  # fmt: skip
def test_nothing_is_stated_before_fit(estimator):
    with pytest.raises(NotFittedError):
        privacy_of(estimator)


def check_what_is_added(estimator, says):
    X, y, *_ = meta.table_of(estimator, np.random.default_rng(0))
    one, handed, _ = meta.run(estimator, (X, y))
    try:
        loss = privacy_of(one)
    except ValueError:
        # said to add up in the docstring, and refused all the same?
        assert type(estimator).__name__ not in privacy_of.__doc__ or "cv=" in repr(estimator)
    else:
        assert says == meta.ADDS and loss.epsilon == meta.EPSILON * max(len(handed), 1)


@pytest.mark.parametrize("estimator, says", [
    case for case in meta.cases(meta.AS_IT_COMES) + meta.cases(meta.OTHERWISE)
    if meta.REFUSED not in case.values
])  # fmt: skip
def test_only_what_adds_up_is_added(estimator, says):
    """A sum is stated for meta-estimators whose fits' losses add up, and it is theirs."""
    check_what_is_added(estimator, says)


@pytest.mark.parametrize("name", ["BaggingRegressor", "VotingClassifier", "OneVsOneClassifier"])
def test_a_sum_that_does_not_hold_is_caught(name, monkeypatch):
    (case,) = [case for case in meta.cases(meta.AS_IT_COMES) if type(case.values[0]).__name__ == name]
    monkeypatch.setitem(composition.MEMBERS, type(case.values[0]), lambda fitted: fitted.estimators_)
    with pytest.raises(AssertionError):
        check_what_is_added(*case.values)

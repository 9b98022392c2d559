"""Private models of InterpretML and diffprivlib, declared as the documentation declares them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from dpselect import (
    CertificateError,
    DPLogisticRegression,
    PrivacyLeakError,
    PrivateModel,
    StabilityGridSearchCV,
    config_context,
)
from dpselect.preprocessing import BoundedScaler
from dpselect.testing.attempts import Untouchable, attempt

from .conftest import table

DECLARED = {
    "adjacency": "add or remove one record",
    "conversion": "remove and add",
    "classes": [0, 1],
}
JOBS = ["clerk", "farmer", "pirate"]


def records(n=2000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X[:, 0] + 0.2 * rng.normal(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def boosting():
    privacy = pytest.importorskip("interpret.privacy")
    estimator = privacy.DPExplainableBoostingClassifier(
        feature_names=["age", "job"],
        feature_types=["continuous", JOBS],
        max_rounds=50,
        n_jobs=1,
        privacy_bounds={"age": (0, 100)},
    )
    public = pd.DataFrame({"age": [0.0] * 3, "job": JOBS})
    return PrivateModel(
        estimator,
        **DECLARED,
        delta=1e-6,
        delta_parameter="delta",
        public_parameters=["feature_types", "privacy_bounds"],
        public_records=(public, [0, 1, 1]),
    )


@pytest.fixture(scope="module")
def forest():
    models = pytest.importorskip("diffprivlib.models")
    return PrivateModel(
        models.RandomForestClassifier(bounds=(-1, 1)),
        **DECLARED,
        classes_parameter="classes",
        public_parameters=["bounds"],
    )


def test_boosting_of_a_table(boosting):
    X = table(0, 2000)[["age", "job"]]
    X["age"] = X["age"].astype(float)
    y = (X["age"] > 50).astype(int).to_numpy()
    with config_context(strict=True):
        model = clone(boosting).fit(X, y)
    assert (model.estimator_.epsilon, model.privacy_.epsilon, model.privacy_.delta) == (0.5, 1.0, 1e-6)
    assert "by the account of interpret" in model.privacy_.label
    assert np.mean(model.predict(X[:200]) == y[:200]) > 0.7


def test_what_boosting_would_read_from_the_records_is_refused(boosting):
    model = clone(boosting).set_params(estimator__privacy_bounds=None)
    with pytest.raises(ValueError, match="reads privacy_bounds from the records"):
        model.fit(Untouchable(), Untouchable())
    X = table(0)[["age", "job"]].astype({"age": float})
    found = attempt(lambda: model.set_params(public_parameters=()).fit(X, np.arange(400) % 2))
    assert isinstance(found.error, PrivacyLeakError) and "privacy_bounds" in str(found.error)


def test_the_forest_has_no_seeds(forest):
    trees = clone(forest).fit(*records()).estimator_.estimators_
    assert len(trees) > 1 and {tree.random_state for tree in trees} == {None}


def test_what_the_forest_would_read_from_the_records_is_an_error(forest):
    model = clone(forest).set_params(estimator__bounds=None, public_parameters=())
    found = attempt(lambda: model.fit(*records()))
    assert isinstance(found.error, PrivacyLeakError) and not found.warned
    assert "PrivacyLeakWarning" in str(found.error) and "bounds" in str(found.error)


@pytest.mark.parametrize("other", ["boosting", "forest"])
def test_a_search_over_kinds(other, request):
    theirs = clone(request.getfixturevalue(other))
    if other == "boosting":
        theirs.set_params(
            estimator__feature_names=None,
            estimator__feature_types=["continuous"] * 3,
            estimator__privacy_bounds=np.array([[-1.0, 1.0]] * 3),
            estimator__max_rounds=5,
            public_records=(np.zeros((2, 3)), [0, 1]),
        )
    ours = DPLogisticRegression(classes=[0, 1])
    grid = [{"scale": [BoundedScaler((-1, 1))], "model": [ours]}, {"model": [theirs]}]
    start = Pipeline([("scale", FunctionTransformer()), ("model", ours)])
    search = StabilityGridSearchCV(start, grid, strategy="budget_split", cv=2)
    fitted = search.fit(*records())
    assert fitted.privacy_.epsilon == 1.0 and fitted.score(*records(100)) > 0.5
    assert fitted.privacy_.delta == pytest.approx(1e-6 if other == "boosting" else 0.0)
    with pytest.raises(CertificateError, match="conversion='remove and add'"):
        clone(search).set_params(param_grid={"model": [ours, theirs.set_params(conversion=None)]}).fit(
            Untouchable(), Untouchable()
        )

"""Scores that mlflow writes down by itself: a private fit says so."""

import re
import warnings

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpselect import (
    DPLogisticRegression,
    PrivacyLeakError,
    PrivacyLeakWarning,
    StabilityGridSearchCV,
    config_context,
)
from dpselect.preprocessing import BoundedScaler

from ..glue import cases
from .rows import X

Y = cases.labels(2, X)
MODEL = DPLogisticRegression(classes=[0, 1])
PIPELINE = make_pipeline(BoundedScaler((-1, 1)), MODEL)
# as mlflow patches `fit` of scikit-learn's classes
PATCH = "def patched(original, *args): return original(*args)"


def patched(module="mlflow.utils.autologging_utils.safety"):
    namespace = {"__name__": module}
    exec(PATCH, namespace)
    return namespace["patched"]


@pytest.mark.parametrize(
    "estimator",
    [
        PIPELINE,
        StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, strategy="data_independent"),
    ],
)
def test_a_fit_that_is_logged_warns(estimator):
    with pytest.warns(PrivacyLeakWarning) as caught:
        patched()(clone(estimator).fit, X, Y)
    (said,) = caught
    assert re.search("autologging records scores.*disable=True", str(said.message))
    with config_context(strict=True), pytest.raises(PrivacyLeakError, match="autologging"):
        patched()(clone(estimator).fit, X, Y)


@pytest.mark.parametrize(
    "call",
    [
        lambda: clone(PIPELINE).fit(X, Y),
        lambda: patched("mlflow.utils.autologging_utilities")(clone(PIPELINE).fit, X, Y),
        lambda: patched()(clone(MODEL).set_params(epsilon=float("inf")).fit, X, Y),
    ],
)
def test_others_do_not(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call()

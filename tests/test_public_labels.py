"""Labels that are public: the messages say what is wrong with those that were given."""

import numpy as np
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import KFold, cross_val_predict

from dpselect import DPHuberRegressor, DPLinearSVC, DPLogisticRegression, DPRidge
from dpselect.preprocessing import tabular_pipeline
from dpselect.records import records

X = np.linspace(-1, 1, 60)[:, None]
TEXTS = np.array(["no", "yes"] * 30)


def coded_by(caller, model, y):
    if caller == "cross_val_predict":
        return cross_val_predict(model, X, y, cv=KFold(2), method="predict_proba").shape
    if caller == "VotingClassifier":
        return VotingClassifier([("a", model)]).fit(X, y).predict(X).shape
    return model.fit(X, np.unique(y, return_inverse=True)[1])


@pytest.mark.parametrize("caller", ["cross_val_predict", "VotingClassifier", "np.unique"])
def test_labels_that_a_caller_has_coded(caller):
    model = DPLogisticRegression(classes=["no", "yes"], data_norm=1.0)
    with pytest.raises(ValueError, match="as if the caller had coded the labels"):
        coded_by(caller, model, TEXTS)
    coded_by(caller, model.set_params(classes=[0, 1]), np.array([0, 1] * 30))
    # another label of the same kind is no code
    with pytest.raises(ValueError, match="a label that is not in classes"):
        model.set_params(classes=["no", "maybe"]).fit(X, TEXTS)


@pytest.mark.parametrize("classes", [{"no", "yes"}, frozenset({"no", "yes"}), "no", {"no": 0, "yes": 1}])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_classes_that_are_no_list(kind, classes):
    with pytest.raises(ValueError, match=f"classes of type {type(classes).__name__} is no list"):
        kind(classes=classes).fit(X, TEXTS)


def test_classes_of_too_few_labels_are_another_mistake():
    for classes in ([], ["no"], ["no", "no"]):
        with pytest.raises(ValueError, match="at least two different labels"):
            records.check_classes(classes)


@pytest.mark.parametrize("model", [
    DPHuberRegressor(target_range=(0, 1), data_norm=2.0), DPRidge(target_range=(0, 1), data_norm=0.5),
    DPLogisticRegression(classes=[0, 1], data_norm_l1=3.0), DPLogisticRegression(data_norm=1.5),
])  # fmt: skip
def test_a_norm_that_would_be_overwritten(model):
    with pytest.raises(ValueError, match="would be overwritten by the encoder's typical_norm"):
        tabular_pipeline({"x": (0, 1)}, model)
    model.set_params(data_norm="auto", data_norm_l1=None)  # learned, and not overwritten
    assert tabular_pipeline({"x": (0, 1)}, model).bound()["model"].data_norm == "auto"

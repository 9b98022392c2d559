"""A graph predicts as its model does, in a runtime that knows nothing of Python."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLoss,
    StabilityGridSearchCV,
    evaluate,
)
from dpselect.evaluation import CalibratedModel
from dpselect.export import to_onnx
from dpselect.preprocessing import (
    BoundedScaler,
    DPBoundsScaler,
    NormClipper,
    TableEncoder,
    tabular_pipeline,
)

from ..glue import cases
from .rows import MODELS, ROWS, SCHEMA, SETTINGS, X, table

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
Y = cases.labels(2, X)
MODEL = DPLogisticRegression(classes=[0, 1])


def run(graph, rows):
    """Return the outputs of a graph by name; categories are written as numpy writes them."""
    session = runtime.InferenceSession(graph.SerializeToString())
    if isinstance(rows, pd.DataFrame):
        kinds = {given.name: given.type for given in session.get_inputs()}
        given = {
            name: rows[[name]].astype(object).to_numpy(str if kind == "tensor(string)" else float)
            for name, kind in kinds.items()
        }
        given = {
            name: cells.astype(object) if cells.dtype.kind == "U" else cells
            for name, cells in given.items()
        }
    else:
        given = {"X": rows}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, given)))


def test_a_calibrated_model():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    y = np.where(X[:, 0] > 0.5, "yes", "no")
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=["no", "yes"], data_norm=3.0), {"alpha": [0.1]}, evaluation=0.5
    ).fit(X, y)
    for method, threshold in (("sigmoid", None), ("isotonic", 0.3), (None, 0.7)):
        model = CalibratedModel(search, search.evaluation_, method=method, threshold=threshold)
        graph = to_onnx(model)
        found = run(graph, X)
        assert sorted(found) == ["label", "probabilities"]
        assert found["label"].tolist() == model.predict(X).tolist()
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=1e-12)
        assert json.loads(graph.metadata_props[0].value)["epsilon"] == model.privacy_.epsilon
    with pytest.raises(Exception, match="indices"):
        run(graph, np.full((1, 2), np.nan))
    model = DPLinearSVC(classes=["no", "yes"]).fit(X, y)
    with pytest.raises(TypeError, match="before calibration"):
        to_onnx(CalibratedModel(model, evaluate(model, X.copy(), y, epsilon=1.0)))


def same(model, rows):
    """Whether the graph of a model predicts as the model does, and has all of its outputs."""
    found = run(to_onnx(model), rows)
    if not hasattr(model, "classes_"):
        expected = {"prediction": model.predict(rows)}
    else:
        expected = {"label": model.predict(rows), "decision": model.decision_function(rows)}
        if hasattr(model, "predict_proba"):
            expected["probabilities"] = model.predict_proba(rows)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if values.dtype.kind == "f":
            largest = max(1.0, np.abs(values).max())
            np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-12 * largest)
        else:
            assert found[name].tolist() == values.tolist()


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    model = clone(MODELS[name])
    model.fit(*cases.records_for(model))
    same(model, np.vstack([ROWS, 1e300 * X[:3]]))


@pytest.mark.parametrize(
    "labels",
    [
        ["yes", "no"],
        ["a", "b", "é"],
        [-1, 1],
        [False, True],
        [0.5, 1.5, 2.5],
        np.array(["x", "y"], dtype=object),
        np.array([3, 7], dtype=np.uint8),
    ],
)
def test_labels_of_all_types(labels):
    labels = np.asarray(labels)
    y = labels[cases.labels(len(labels), X)]
    same(DPLogisticRegression(classes=labels).fit(X, y), ROWS)


@pytest.mark.parametrize(
    "steps",
    [
        (BoundedScaler([(-1, 2), (0, 1e-3), (1e9, 1e9 + 1)]),),
        (BoundedScaler((-1, 2)), NormClipper("l1", 0.7)),
        (DPBoundsScaler(), NormClipper(bound=0.5), "passthrough"),
        (make_pipeline(BoundedScaler((0, 1))),),
    ],
)
def test_steps(steps):
    same(clone(make_pipeline(*steps, MODEL)).fit(X, Y), ROWS)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(50.0, classes=[0, 1, 2]),
        DPHuberRegressor(50.0, target_range=(0, 2)),
    ],
)
def test_tables(setting, model):
    frame = table()
    y = np.digitize(frame["age"], [30, 60])
    same(tabular_pipeline(SCHEMA, model, **setting).fit(frame, y), table(seed=1))


def test_bounds_that_were_learned():
    model = tabular_pipeline(SCHEMA, DPRidge(200.0, target_range=(0, 2)), ranges="auto")
    model.fit(table(), np.ones(300))
    assert hasattr(model[0], "privacy_")
    same(model, table(seed=1))


def test_numbers_at_cuts_and_bounds():
    cells = [0.0, 7.0, 7.0 - 1e-9, 7.0 + 1e-9, 1e6, 1e7, -3.0, 0.1, 1e-300]
    frame = pd.DataFrame({"income": cells})
    for transform in (None, "log1p", "arcsinh"):
        for cuts in (None, {"income": [0.1, 7.0]}):
            schema = {"income": {"bounds": (0, 1e6), "transform": transform}}
            model = tabular_pipeline(schema, DPRidge(50.0, target_range=(0, 2)), cut_points=cuts)
            same(model.fit(frame, np.arange(9.0)), frame)


def test_searches():
    search = StabilityGridSearchCV(clone(MODEL), {"alpha": [0.1, 1.0]}, epsilon=1.0).fit(X, Y)
    same(search, ROWS)
    (stated,) = to_onnx(search).metadata_props
    assert stated.key == "privacy" and json.loads(stated.value) == search.privacy_.to_dict()
    assert isinstance(search.privacy_, PrivacyLoss)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_no_label_without_a_decision(number, classes):
    model = make_pipeline(BoundedScaler((-1, 1)), DPLogisticRegression(classes=classes)).fit(X, Y)
    rows = X.copy()
    rows[0, 0] = number
    for pipeline in (model, model[-1:]):
        with pytest.raises(Exception, match="out of data bounds"):
            run(to_onnx(pipeline), rows)
    regression = make_pipeline(BoundedScaler((-1, 1)), DPRidge(target_range=(-1, 1))).fit(X, X[:, 0])
    unknown = np.isnan(run(to_onnx(regression), rows)["prediction"])
    assert unknown[0] and not unknown[1:].any()


def test_a_gap_that_the_schema_does_not_allow_is_refused():
    frame = table()
    for setting in SETTINGS[:2]:
        model = tabular_pipeline(SCHEMA, clone(MODEL), **setting).fit(frame, Y[0] + 0 * frame["age"])
        with pytest.raises(Exception, match="out of data bounds"):
            run(to_onnx(model), frame.assign(age=np.nan))


def test_the_graph_is_a_function_of_what_was_released():
    one, other = (make_pipeline(BoundedScaler((-1, 1)), clone(MODEL)) for _ in range(2))
    one.fit(X, Y)
    other.fit(np.vstack([[[9.0, 9.0, 9.0]], X[1:]]), 1 - Y)
    assert to_onnx(one).SerializeToString() != to_onnx(other).SerializeToString()
    for name in ("coef_", "intercept_"):
        setattr(other[-1], name, getattr(one[-1], name))
    assert to_onnx(one).SerializeToString() == to_onnx(other).SerializeToString()


# ---- what is refused


@pytest.mark.parametrize(
    "estimator, error, said",
    [
        (DPHistogramDensity(bounds=(-4, 4), bin_width=2.0), TypeError, r"write to_frame\(\)"),
        (make_pipeline(PolynomialFeatures(2), MODEL), TypeError, "PolynomialFeatures has no operators"),
        (make_pipeline(StandardScaler(), MODEL), ValueError, "learns from the data"),
        (BoundedScaler((0, 1)), ValueError, "states a privacy loss"),
    ],
)
def test_what_is_unknown_is_refused(estimator, error, said):
    with pytest.raises(error, match=said):
        to_onnx(clone(estimator).fit(X, Y))


def test_labels_of_no_type_of_onnx_are_refused():
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    model = clone(MODEL).fit(X, Y)
    model.classes_ = days
    with pytest.raises(TypeError, match="Labels of type datetime64"):
        to_onnx(model)


def test_columns_that_are_called_as_outputs():
    model = tabular_pipeline({"label": (0, 1)}, clone(MODEL)).fit(X[:, :1], Y)
    with pytest.raises(ValueError, match="called as outputs"):
        to_onnx(model)


def test_without_onnx(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"dpselect\[onnx\]"):
        to_onnx(clone(MODEL).fit(X, Y))


def test_a_category_that_is_written_as_a_gap_is_refused():
    model = make_pipeline(TableEncoder({"a": ["x", "None"]}), clone(MODEL))
    with pytest.raises(ValueError, match="cannot tell from a missing cell"):
        to_onnx(model.fit([["x"]] * len(Y), Y))

"""Classifiers predict labels at their shares, wherever probabilities are told.

A column for each group of records leaves a model without a penalty free to predict each share.
"""

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression, calibrated, evaluate
from dpselect.export import to_onnx, to_sklearn
from dpselect.linear_model.losses import CappedLogisticLoss
from dpselect.metrics import BrierScore, LogisticScore, LogLossScore
from dpselect.preprocessing import BoundedScaler

SHARES = {
    2: np.array([[0.98, 0.02], [0.7, 0.3], [0.4, 0.6]]),
    3: np.array([[0.9, 0.02, 0.08], [0.3, 0.3, 0.4], [0.05, 0.75, 0.2]]),
}
WEIGHTS = {0: 0.5, 1: 2.0, 2: 1.5}
LARGEST = (None, 0.5, 0.6, 0.9)
GROUPS = np.eye(3)


def records(K, per_group=1000):
    counts = np.rint(per_group * SHARES[K]).astype(int)
    y = np.concatenate([np.repeat(np.arange(K), each) for each in counts])
    return GROUPS[np.repeat(np.arange(3), counts.sum(axis=1))], y


def classifier(K, **parameters):
    return DPLogisticRegression(math.inf, alpha=1e-9, classes=list(range(K)), **parameters)


@pytest.mark.parametrize("K", SHARES)
@pytest.mark.parametrize("max_derivative", LARGEST)
@pytest.mark.parametrize("weighted", ["alike", "classes", "records"])
def test_labels_are_predicted_at_their_shares(K, max_derivative, weighted):
    X, y = records(K)
    model, weights, given = classifier(K, max_derivative=max_derivative), np.ones(K), {}
    if weighted == "classes":
        weights = np.array([WEIGHTS[k] for k in range(K)])
        model.set_params(class_weight={k: WEIGHTS[k] for k in range(K)})
    elif weighted == "records":
        weights = np.array([WEIGHTS[k] for k in range(K)])
        model.set_params(max_sample_weight=2.0)
        given = {"sample_weight": weights[y]}
    expected = SHARES[K] * weights
    expected /= expected.sum(axis=1, keepdims=True)
    model.fit(X, y, **given)
    np.testing.assert_allclose(model.predict_proba(GROUPS), expected, rtol=1e-4)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(GROUPS)), expected, rtol=1e-4)
    if max_derivative is not None:  # predictions alone are no log odds
        twin, p = expit(GROUPS @ model.coef_.T + model.intercept_), expected[0, 1]
        assert p < 1 - max_derivative
        assert twin[0, K - 2] == pytest.approx(max_derivative * p / (1 - p), rel=1e-4)
        assert twin[0, K - 2] < 0.98 * p


@pytest.mark.parametrize("K", SHARES)
@pytest.mark.parametrize("max_derivative", LARGEST)
def test_all_that_tells_probabilities_tells_the_same(K, max_derivative):
    X, y = records(K)
    model = make_pipeline(BoundedScaler((-1, 1)), classifier(K, max_derivative=max_derivative))
    model.fit(X, y)
    p = model.predict_proba(X)
    of_label = p[np.arange(len(y)), y]
    problems = expit(model.decision_function(X)).reshape(len(y), -1)
    hits = y[:, None] == (np.arange(K) if K > 2 else [1])
    expected = -((problems - hits) ** 2).mean()
    assert BrierScore()(model, X, y) == pytest.approx(expected, rel=1e-12)
    expected = np.log(np.where(hits, problems, 1 - problems)).mean()
    assert LogisticScore()(model, X, y) == pytest.approx(expected, rel=1e-12)
    assert LogLossScore(1e-6)(model, X, y) == pytest.approx(np.log(of_label).mean(), rel=1e-12)
    rows = np.vstack([X[::500], 30 * X[::500] - 1])
    plain = to_sklearn(model)
    for method in ("predict_proba", "decision_function"):
        own = getattr(model, method)(rows)
        size = 1e-12 * max(1, abs(own).max())
        np.testing.assert_allclose(getattr(plain, method)(rows), own, rtol=0, atol=size)
    assert np.array_equal(plain.predict(rows), model.predict(rows))
    if K == 2:
        evaluation = evaluate(model, X, y, epsilon=math.inf)
        assert evaluation.metric("brier").value == pytest.approx(((p[:, 1] - y) ** 2).mean(), abs=1e-3)
        better = calibrated(model, evaluation)
        np.testing.assert_allclose(better.predict_proba(X)[:, 1], p[:, 1], atol=0.03)
        np.testing.assert_allclose(
            better.to_sklearn().predict_proba(rows), better.predict_proba(rows), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("K", SHARES)
def test_in_graphs(K):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y = records(K)
    for max_derivative in LARGEST:
        model = classifier(K, max_derivative=max_derivative, data_norm=50.0).fit(X, y)
        rows = np.vstack([X[::500], 30 * X[::500]])
        session = runtime.InferenceSession(to_onnx(model).SerializeToString())
        names = ("label", "decision", "probabilities")
        for name, found, own in zip(
            names,
            session.run(names, {"X": rows}),
            (
                model.predict(rows),
                model.decision_function(rows),
                model.predict_proba(rows),
            ),
        ):
            size = 1e-12 * max(1, abs(own).max())
            np.testing.assert_allclose(found, own, rtol=0, atol=size, err_msg=name)


def test_the_twin_of_every_place(monkeypatch):
    # without the link, labels are predicted at L times their share
    monkeypatch.setattr(CappedLogisticLoss, "decision", lambda self, z: z)
    X, y = records(2)
    p = classifier(2, max_derivative=0.6).fit(X, y).predict_proba(GROUPS)
    assert p[0, 1] == pytest.approx(0.6 * 0.02 / 0.98, rel=1e-3)

"""Of several classes: how probable right and wrong predictions are, and calibration by that."""

from contextlib import suppress

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from dpselect import DPLogisticRegression, RowChunks, calibrated, evaluate
from dpselect.evaluation import ConfidenceEvaluation, release
from dpselect.evaluation.calibrated import METHODS, _with_confidence
from dpselect.evaluation.score_bins import EDGES
from dpselect.inspection import EvaluationCalibrationDisplay, EvaluationConfusionDisplay

INF = float("inf")
NAMES = np.array(["a", "b", "c"])
X, Y = make_classification(
    30_000, 8, n_informative=4, n_classes=3, n_clusters_per_class=1, class_sep=0.8, random_state=0
)
Y = NAMES[Y]
HELD, TEST = (X[1000:15_000], Y[1000:15_000]), (X[15_000:], Y[15_000:])


class Bold(LogisticRegression):
    """Far too sure of itself."""

    def predict_proba(self, X):
        p = super().predict_proba(X) ** 3
        return p / p.sum(axis=1, keepdims=True)


MODEL = Bold().fit(X[:1000], Y[:1000])
EXACT, NOISY = (evaluate(MODEL, *HELD, epsilon=epsilon, confidence=True) for epsilon in (INF, 1.0))
SURE = MODEL.predict_proba(TEST[0]).max(axis=1)
RIGHT = MODEL.predict(TEST[0]) == TEST[1]


def gap(model):
    """Between the largest probability and the share of right predictions, over ten bins."""
    sure, right = model.predict_proba(TEST[0]).max(axis=1), model.predict(TEST[0]) == TEST[1]
    place = np.minimum((10 * sure).astype(int), 9)
    return sum(abs((right - sure)[place == i].sum()) for i in range(10)) / len(sure)


def test_exact_figures_are_those_of_right_predictions():
    found = evaluate(MODEL, *TEST, epsilon=INF, confidence=True)
    assert isinstance(found, ConfidenceEvaluation) and found.counts_.shape == (32, 2)
    assert found.metric("accuracy").value == pytest.approx(RIGHT.mean(), abs=1e-12)
    edge = EDGES[20]
    above = found.metric("selective_accuracy", edge).value
    assert above == pytest.approx(RIGHT[SURE > edge].mean(), abs=1e-12)
    assert found.metric("selection_rate", edge).value == pytest.approx((SURE > edge).mean(), abs=1e-12)
    auc = metrics.roc_auc_score(RIGHT, SURE)
    assert found.metric("confidence_auc").value == pytest.approx(auc, abs=0.02)
    assert found.metric("calibration_error").value == pytest.approx(gap(MODEL), abs=0.01)
    brier = np.mean((SURE - RIGHT) ** 2)
    assert found.metric("confidence_brier").value == pytest.approx(brier, abs=0.005)
    assert "selective_accuracy" in repr(found) and "balanced_accuracy" not in repr(found)
    assert repr(found).startswith("Evaluation of confidence on 15000 records")
    curve = found.roc_curve()
    assert curve["recall"][19] == pytest.approx((SURE[RIGHT] > edge).mean(), abs=1e-12)
    assert "64 counts of probabilities of predictions that are right or wrong" in str(found.privacy_)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("evaluation", [EXACT, NOISY], ids=["exact", "noisy"])
def test_calibration_is_nearly_scikit_learns(method, evaluation):
    found = calibrated(MODEL, evaluation, method=method)
    other = CalibratedClassifierCV(FrozenEstimator(MODEL), method=method).fit(*HELD)
    assert gap(found) < 0.25 * gap(MODEL) and gap(found) < gap(other) + 0.01
    p, before = found.predict_proba(TEST[0]), MODEL.predict_proba(TEST[0])
    assert p.sum(axis=1) == pytest.approx(1) and (p >= 0).all()
    assert metrics.log_loss(TEST[1], p) < metrics.log_loss(TEST[1], before) - 0.1
    np.testing.assert_array_equal(found.predict(TEST[0]), MODEL.predict(TEST[0]))
    np.testing.assert_array_equal(NAMES[p.argmax(axis=1)], MODEL.predict(TEST[0]))


def test_without_a_method_probabilities_stay():
    found = calibrated(MODEL, NOISY, method=None).predict_proba(TEST[0])
    np.testing.assert_allclose(found, MODEL.predict_proba(TEST[0]), atol=1e-12)


def test_rows_that_leave_nothing_to_others():
    curve = np.array([0.0, 1.0]), np.array([0.0, 0.6])
    p = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [np.nan, 0.2, 0.1], [0.4, 0.3, 0.3]])
    found = _with_confidence(curve, p)
    assert found[0] == pytest.approx([0.6, 0.2, 0.2])
    # half of the rest or less would make another class more probable
    assert found[1] == pytest.approx([0.5, 0.5, 0.0]) and found[3] == pytest.approx([1 / 3] * 3)
    assert found.sum(axis=1) == pytest.approx(1) and found[2].argmax() == 1


def test_rows_in_pieces_and_groups():
    model = DPLogisticRegression(5.0, classes=NAMES, data_norm=3.0).fit(X[:1000], Y[:1000])
    by = np.where(HELD[0][:, 0] > 0, "left", "other")
    evaluation = evaluate(model, *HELD, epsilon=2.0, confidence=True, by=by, levels=["left", "other"])
    found = calibrated(model, evaluation.group("left"))
    assert found.privacy_.epsilon == 7.0 and evaluation.counts_.shape == (2, 32, 2)
    chunks = RowChunks(lambda i: X[100 * i : 100 * i + 100], lengths=[100] * 3, n_columns=8)
    np.testing.assert_allclose(found.predict_proba(chunks), found.predict_proba(X[:300]))
    np.testing.assert_array_equal(found.predict(chunks), found.predict(X[:300]))
    of_persons = evaluate(model, *HELD, epsilon=2.0, confidence=True, groups=np.arange(14_000) // 2)
    assert of_persons.n_records == 7_000 and of_persons.privacy_.adjacency.unit == "person"


def test_displays_name_what_is_counted():
    pytest.importorskip("matplotlib")
    shown = EvaluationConfusionDisplay.from_evaluation(NOISY)
    assert shown.classes.tolist() == ["wrong", "right"]
    assert "'right'" in EvaluationCalibrationDisplay.from_evaluation(NOISY).unit


@pytest.mark.parametrize(
    "model, said",
    [
        (LogisticRegression().fit(X[:99], Y[:99] == "a"), "three or more classes"),
        (LinearSVC().fit(X[:99], Y[:99]), "predict_proba"),
        (LinearRegression().fit(X[:99], X[:99, 0]), "three or more classes"),
    ],
)
def test_models_without_confidences_are_refused(model, said):
    with pytest.raises(ValueError, match=f"confidence=True .*{said}"):
        evaluate(model, *HELD, epsilon=1.0, confidence=True)


@pytest.mark.parametrize(
    "bad, said",
    [
        (dict(recall=0.5), "recall was given for 3 classes"),
        (dict(rate=0.1), "rate was given"),
        (dict(evaluation=evaluate(MODEL, *HELD, epsilon=1.0)), "MulticlassEvaluation has no scores"),
        (dict(model=LogisticRegression().fit(X[:99], X[:99, 0] > 0)), "classes_"),
    ],
)
def test_bad_input(bad, said):
    given = dict(model=MODEL, evaluation=NOISY) | bad
    with pytest.raises((ValueError, TypeError), match=said):
        calibrated(given.pop("model"), given.pop("evaluation"), **given)
    with pytest.raises(TypeError, match="confidence"):
        evaluate(MODEL, *HELD, epsilon=1.0, confidence="yes")


STRANGER = np.where(np.arange(len(HELD[1])) == 7, "d", HELD[1])
HOW = [{}, {"confidence": True}, {"by": np.arange(len(STRANGER)) % 2, "levels": [0, 1]}]


@pytest.mark.parametrize("how", HOW, ids=["classes", "confidence", "groups"])
def test_a_label_that_is_no_class_is_refused_in_every_evaluation(how, monkeypatch):
    with pytest.raises(ValueError, match="classes"):
        evaluate(MODEL, HELD[0], STRANGER, epsilon=1.0, **how)
    # without the check it is counted as something else
    monkeypatch.setattr(release, "public_classes", lambda *args: None)
    with suppress(ValueError):
        assert evaluate(MODEL, HELD[0], STRANGER, epsilon=1.0, **how).n_records == len(STRANGER)

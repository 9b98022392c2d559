"""An evaluation with the other label as the positive one: the same release, seen from its other end."""

import numpy as np
import pytest
from sklearn.metrics import fbeta_score, recall_score, roc_auc_score

from dpselect import (
    DPLogisticRegression,
    PrivacyLeakWarning,
    PrivacyLoss,
    StabilityGridSearchCV,
    calibrated,
    evaluate,
    privacy_report,
)
from dpselect.evaluation import CalibratedModel
from dpselect.preprocessing import tabular_pipeline

INF = float("inf")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12_000, 2))
Y = np.where(X[:, 0] + RNG.normal(size=12_000) > 1.5, "ja", "nein")
TRAIN, TEST = slice(4000), slice(4000, None)
MODEL = DPLogisticRegression(20.0, classes=["ja", "nein"], data_norm=4.0).fit(X[TRAIN], Y[TRAIN])
EVALUATION = evaluate(MODEL, X[TEST], Y[TEST], epsilon=INF)
ILL = EVALUATION.with_positive("ja")
P_ILL = MODEL.predict_proba(X[TEST])[:, 0]


def test_figures_are_those_of_the_label():
    assert ILL.outcomes == ("nein", "ja") and EVALUATION.outcomes == ("ja", "nein")
    for threshold in ILL.thresholds[::5]:
        said = np.where(threshold < P_ILL, "ja", "nein")
        recall = recall_score(Y[TEST], said, pos_label="ja")
        assert ILL.metric("recall", threshold).value == pytest.approx(recall, abs=1e-9, nan_ok=True)
    for name, other in (("recall", "specificity"), ("roc_auc",) * 2, ("brier",) * 2, ("accuracy",) * 2):
        both = ILL.metric(name), EVALUATION.metric(other)
        assert both[0].value == pytest.approx(both[1].value)
    assert ILL.metric("roc_auc").value == pytest.approx(roc_auc_score(Y[TEST] == "ja", P_ILL), abs=0.005)
    top = np.sort(P_ILL)[-len(P_ILL) // 10]
    at_rate = ILL.metric("recall", rate=0.1)
    assert at_rate.low <= recall_score(Y[TEST] == "ja", top <= P_ILL) <= at_rate.high
    assert "'ja' predicted above 0.5" in repr(ILL)


@pytest.mark.parametrize("thresholds", [0.1, np.linspace(0.02, 0.9, 31)])
def test_bins_of_the_caller_are_mirrored(thresholds):
    given = evaluate(MODEL, X[TEST], Y[TEST], epsilon=INF, thresholds=thresholds)
    ill = given.with_positive("ja")
    assert ill.thresholds == pytest.approx(1 - given.thresholds[::-1])
    t = ill.thresholds[20]
    recall = recall_score(Y[TEST], np.where(t < P_ILL, "ja", "nein"), pos_label="ja")
    assert ill.metric("recall", t).value == pytest.approx(recall, abs=1e-9, nan_ok=True)


def test_groups_and_the_way_back():
    shift = np.where(np.arange(8000) % 2, "day", "night")
    by = evaluate(MODEL, X[TEST], Y[TEST], epsilon=INF, by=shift, levels=["day", "night"])
    day = evaluate(MODEL, X[TEST][shift == "day"], Y[TEST][shift == "day"], epsilon=INF)
    for ill in (by.with_positive("ja").group("day"), by.group("day").with_positive("ja")):
        assert ill.metric("recall").value == pytest.approx(
            day.with_positive("ja").metric("recall").value
        )
    assert ILL.with_positive("nein") is EVALUATION and EVALUATION.with_positive("nein") is EVALUATION
    back = by.with_positive("ja").group("day").with_positive("nein")
    assert back.metric("recall").value == pytest.approx(by.group("day").metric("recall").value)


@pytest.mark.parametrize("target", ["recall", "rate", "precision"])
def test_a_threshold_for_the_label(target):
    model = calibrated(MODEL, ILL, **{target: 0.6 if target != "rate" else 0.1})
    assert model.classes_.tolist() == ["ja", "nein"] and model.positive_label == "ja"
    said = model.predict(X[TEST]) == "ja"
    ill = Y[TEST] == "ja"
    found = {"recall": said[ill].mean(), "rate": said.mean(), "precision": ill[said].mean()}[target]
    assert found == pytest.approx(0.1 if target == "rate" else 0.6, abs=0.06)
    # the threshold is one of the view that was given
    assert (said == (P_ILL > model.threshold)).all()
    flagged = ILL.metric("selection_rate", model.threshold).value
    assert flagged == pytest.approx(said.mean(), abs=0.05)
    assert (model.to_sklearn().predict(X[TEST]) == model.predict(X[TEST])).all()


def test_nothing_more_is_stated():
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=["ja", "nein"]), {}, epsilon=1.0, evaluation=0.5
    ).fit(X, Y)
    ill = search.evaluation_.with_positive("ja")
    for released in (calibrated(search, ill, recall=0.5), search):
        report = privacy_report(released, evaluation=None if released is not search else ill)
        text = report.to_markdown()
        assert "Positive is ja" in text and "epsilon = 1 " in text
        assert "release of its own" not in text
    assert calibrated(search, ill).privacy_ == search.privacy_
    # of an evaluation of its own both losses count, from either end
    again = evaluate(search, RNG.normal(size=(500, 2)), RNG.choice(["ja", "nein"], 500), epsilon=0.5)
    together = PrivacyLoss.sequential([search.privacy_, again.privacy_]).epsilon
    assert calibrated(search, again.with_positive("ja")).privacy_.epsilon == together == 1.5


def test_the_word_that_records_are_others_takes_the_larger_loss():
    table = np.array([[x, "ab"[i % 2]] for i, x in enumerate(X[:, 0])], dtype=object)
    schema = {"x": (-3, 3), "ward": ["a", "b"]}
    model = tabular_pipeline(schema, DPLogisticRegression(2.0, classes=["ja", "nein"]))
    train = table[:4000]
    model.fit(train, Y[:4000])
    evaluation = evaluate(model, table[4000:], Y[4000:], epsilon=1.0).with_positive("ja")
    added, apart = (calibrated(model, evaluation, other_records=word) for word in (False, True))
    assert (added.privacy_.epsilon, apart.privacy_.epsilon) == (3.0, 2.0)
    assert "it was declared" in privacy_report(apart).to_markdown()
    assert "it was declared" not in privacy_report(added).to_markdown()
    with pytest.warns(PrivacyLeakWarning):
        trained = evaluate(model, train, Y[:4000], epsilon=1.0)
    with pytest.raises(ValueError, match="known to be of records that the model was trained on"):
        calibrated(model, trained, other_records=True)
    # nor does who builds the model, or changes it, state the larger loss alone
    by_hand = CalibratedModel(model, trained, other_records=True)
    changed = calibrated(model, trained).set_params(other_records=True)
    for each in (by_hand, changed):
        with pytest.raises(ValueError, match="known to be of records that the model was trained on"):
            privacy_report(each)
    with pytest.raises(TypeError, match="other_records"):
        _ = CalibratedModel(model, evaluation, other_records="no").privacy_


def test_refusals():
    with pytest.raises(ValueError, match=r"label='maybe' is not allowed"):
        EVALUATION.with_positive("maybe")
    z = RNG.integers(3, size=1000)
    three = DPLogisticRegression(classes=[0, 1, 2]).fit(X[:500], z[:500])
    sure = evaluate(three, X[500:1000], z[500:], epsilon=1.0, confidence=True)
    with pytest.raises(ValueError, match="is of two classes"):
        sure.with_positive("right")
    with pytest.raises(ValueError, match="does not have the classes_ of evaluation"):
        calibrated(three, ILL)


@pytest.mark.parametrize("beta", [0.5, 1, 2, 7.0])
def test_f_beta_is_that_of_scikit_learn(beta):
    for threshold in (0.1, 0.3, 0.5):
        t = ILL.thresholds[np.abs(ILL.thresholds - threshold).argmin()]
        said = np.where(t < P_ILL, "ja", "nein")
        expected = fbeta_score(Y[TEST], said, beta=beta, pos_label="ja")
        assert ILL.metric("fbeta", threshold, beta=beta).value == pytest.approx(expected)
    with pytest.raises(ValueError, match="weight of recall in 'fbeta'"):
        ILL.metric("recall", beta=beta)
    with pytest.raises(ValueError, match="beta=None was given for 'fbeta'"):
        ILL.metric("fbeta")
    with pytest.raises(ValueError, match="beta"):
        ILL.metric("fbeta", beta=0)

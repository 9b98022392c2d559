"""Calibration and thresholds are functions of an evaluation, and do what scikit-learn's do."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

from dpselect import (
    DPLinearSVC,
    DPLogisticRegression,
    PrivacyLoss,
    RowChunks,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    calibrated,
    evaluate,
    privacy_report,
)
from dpselect.evaluation import CalibratedModel
from dpselect.evaluation.calibrated import METHODS
from dpselect.evaluation.plain_calibrated import plain_calibrated
from dpselect.evaluation.score_bins import EDGES, PROBABILITIES
from dpselect.preprocessing import tabular_pipeline

INF = float("inf")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60_000, 2))
Y = np.where(X[:, 0] + RNG.normal(size=60_000) > 1, "ill", "fit")
HELD, TEST = (X[1000:31_000], Y[1000:31_000]), (X[31_000:], Y[31_000:])


class Bold(LogisticRegression):
    """Far too sure of itself."""

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-3 * self.decision_function(X) - 1))
        return np.column_stack([1 - p, p])


MODEL = Bold().fit(X[:1000], Y[:1000])
EXACT, NOISY = (evaluate(MODEL, *HELD, epsilon=epsilon) for epsilon in (INF, 1.0))


def errors(model):
    """Of probabilities in ten bins, and Brier's score."""
    p, y = model.predict_proba(TEST[0])[:, 1], TEST[1] == "ill"
    place = np.minimum((10 * p).astype(int), 9)
    gaps = [abs((y - p)[place == i].sum()) for i in range(10)]
    return sum(gaps) / len(y), np.mean((y - p) ** 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("evaluation", [EXACT, NOISY], ids=["exact", "noisy"])
def test_calibration_is_nearly_scikit_learns(method, evaluation):
    found = errors(calibrated(MODEL, evaluation, method=method))
    other = errors(CalibratedClassifierCV(FrozenEstimator(MODEL), method=method).fit(*HELD))
    before = errors(MODEL)
    assert found[0] < 0.25 * before[0] and found[0] < other[0] + 0.01
    assert found[1] < before[1] - 0.01 and found[1] < other[1] + 0.001


def test_without_a_method_probabilities_stay():
    np.testing.assert_allclose(
        calibrated(MODEL, NOISY, method=None).predict_proba(TEST[0]),
        MODEL.predict_proba(TEST[0]),
        atol=1e-12,
    )


@pytest.mark.parametrize("target", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("evaluation", [EXACT, NOISY], ids=["exact", "noisy"])
def test_targets_are_reached_and_little_more(target, evaluation):
    scores = MODEL.predict_proba(TEST[0])[:, 1]
    found = calibrated(MODEL, evaluation, recall=target)
    predicted = found.predict(TEST[0])
    recall = metrics.recall_score(TEST[1], predicted, pos_label="ill")
    assert recall > target - 0.02
    # the next threshold would not reach it
    above = EDGES[np.searchsorted(EDGES, found.threshold) + 1]
    assert np.mean(scores[TEST[1] == "ill"] > above) < target + 0.02
    target = min(target, 0.7)
    precise = calibrated(MODEL, evaluation, precision=target)
    precision = metrics.precision_score(TEST[1], precise.predict(TEST[0]), pos_label="ill")
    assert precision > target - 0.06
    few = calibrated(MODEL, evaluation, rate=target)
    assert np.mean(few.predict(TEST[0]) == "ill") < target + 0.01


def test_decisions_become_probabilities():
    model = LinearSVC().fit(X[:1000], Y[:1000])
    found = calibrated(model, evaluate(model, *HELD, epsilon=1.0))
    assert errors(found)[0] < 0.03
    assert np.mean(found.predict(TEST[0]) == TEST[1]) > 0.79


def test_it_is_a_fitted_classifier_of_scikit_learn():
    found = calibrated(MODEL, NOISY)
    assert clone(found) is found and found.fit("nothing", "is read") is found
    assert found.n_features_in_ == 2 and found.classes_.tolist() == ["fit", "ill"]
    assert found.score(*TEST) > 0.8 and cross_val_score(found, *TEST, cv=2).mean() > 0.8
    assert found.predict_proba(TEST[0]).sum(axis=1) == pytest.approx(1)
    positive = found.predict_proba(TEST[0])[:, 1] > 0.5
    np.testing.assert_array_equal(found.predict(TEST[0]) == "ill", positive)


def test_rows_in_pieces():
    model = DPLogisticRegression(5.0, classes=["fit", "ill"], data_norm=3.0).fit(X[:1000], Y[:1000])
    found = calibrated(model, evaluate(model, *HELD, epsilon=1.0), recall=0.5)
    chunks = RowChunks(lambda i: X[100 * i : 100 * i + 100], lengths=[100] * 3, n_columns=2)
    np.testing.assert_array_equal(found.predict(chunks), found.predict(X[:300]))
    np.testing.assert_allclose(found.predict_proba(chunks), found.predict_proba(X[:300]))


def test_what_it_costs():
    model = DPLogisticRegression(0.5, classes=["fit", "ill"], data_norm=3.0).fit(X[:1000], Y[:1000])
    evaluation = evaluate(model, *HELD, epsilon=1.0)
    # the sum always holds; whoever knows that the records are others takes the larger one
    assert calibrated(model, evaluation).privacy_.epsilon == 1.5
    search = StabilityGridSearchCV(model, {"alpha": [0.1, 1.0]}, epsilon=1.0, evaluation=0.5).fit(X, Y)
    assert calibrated(search, search.evaluation_).privacy_ == search.privacy_
    assert isinstance(search.privacy_, PrivacyLoss)
    assert not hasattr(calibrated(MODEL, EXACT), "privacy_")


@pytest.mark.parametrize("method", METHODS)
def test_it_is_a_function_of_what_was_released(method):
    again = type(NOISY)(
        **{
            name: getattr(NOISY, name)
            for name in (
                "counts_",
                "n_records",
                "privacy_",
                "classes",
                "calibrated_scores",
            )
        }
    )
    curves = [calibrated(MODEL, each, method=method).curve_ for each in (NOISY, again)]
    assert len(curves[0]) > 0
    for one, other in zip(*curves, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [1e-3, 0.1])
def test_noise_alone_changes_little(method, epsilon):
    """Where nothing can be known, a sigmoid is the line of no change, and a curve is flat."""
    few = evaluate(MODEL, X[:200], Y[:200], epsilon=epsilon)
    scores, curve = calibrated(MODEL, few, method=method).curve_
    assert ((0 <= curve) & (curve <= 1)).all() and (np.diff(curve) >= -1e-12).all()
    if method == "sigmoid" and epsilon < 0.01:
        inside = np.isin(scores, PROBABILITIES)
        np.testing.assert_allclose(curve[inside], scores[inside], atol=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPLinearSVC, DPLogisticRegression])
def test_in_scikit_learn_alone(kind):
    # (with so little noise that all targets are reached)
    model = kind(1000.0, classes=["fit", "ill"], data_norm=3.0).fit(X[:1000], Y[:1000])
    evaluation, rows = evaluate(model, *HELD, epsilon=INF), TEST[0][:5000]
    for method, target in product([None, *METHODS], [{}, {"recall": 0.9}, {"rate": 0.02}]):
        found = calibrated(model, evaluation, method=method, **target)
        plain = found.to_sklearn()
        assert abs(plain.predict_proba(rows) - found.predict_proba(rows)).max() < 1e-12
        np.testing.assert_array_equal(plain.predict(rows), found.predict(rows))
        assert plain.classes_.tolist() == ["fit", "ill"] and plain.n_features_in_ == 2


def test_scikit_learn_alone_tells_sides_of_a_threshold_on_a_flat_curve():
    for p in (0.0, 0.3, 1.0):
        plain = plain_calibrated(MODEL, MODEL.classes_, (np.array([0.5]), np.array([p])), 0.25)
        positive = MODEL.predict_proba(TEST[0])[:, 1] > 0.25
        assert 0.1 < positive.mean() < 0.9
        np.testing.assert_array_equal(plain.predict(TEST[0]) == "ill", positive)
        assert abs(plain.predict_proba(TEST[0])[:, 1] - p).max() < 1e-12


def test_of_three_classes_there_is_none():
    model = DPLogisticRegression(classes=[0, 1, 2]).fit(X[:300], np.arange(300) % 3)
    evaluation = evaluate(model, X[300:600], np.arange(300) % 3, epsilon=1.0, confidence=True)
    found = calibrated(model, evaluation)
    with pytest.raises(TypeError, match=r"3 classes.*estimator\.to_sklearn\(\)"):
        found.to_sklearn()


def test_groups():
    by = np.where(X[:, 1] > 0, "a", "b")
    evaluation = evaluate(MODEL, *HELD, epsilon=1.0, by=by[1000:31_000], levels=["a", "b"])
    found = calibrated(MODEL, evaluation.group("a"), recall=0.8)
    here = (TEST[1] == "ill") & (by[31_000:] == "a")
    assert np.mean(found.predict(TEST[0][here]) == "ill") > 0.76


@pytest.mark.parametrize(
    "bad, said",
    [
        (dict(method="beta"), "method"),
        (dict(method=3), "method"),
        (dict(recall=0.0), "recall"),
        (dict(recall=1.0), "recall"),
        (dict(precision="a"), "precision"),
        (dict(rate=True), "rate"),
        (dict(rate=0.1, recall=0.9), "recall and rate"),
        (dict(model=LogisticRegression()), "classes_"),
        (dict(model=LogisticRegression), "classes_"),
        (dict(model=None), "classes_"),
        (dict(model=LogisticRegression().fit(X[:99], np.arange(99) % 3)), "classes_"),
        (dict(evaluation=None), "evaluation"),
        (dict(evaluation=5), "evaluation"),
        (dict(precision=0.9999), "precision=0.9999 is not known"),
    ],
)
def test_bad_input(bad, said):
    given = dict(model=MODEL, evaluation=NOISY) | bad
    with pytest.raises((ValueError, TypeError), match=said):
        calibrated(given.pop("model"), given.pop("evaluation"), **given)


def test_the_class_is_there_for_documentation_alone():
    direct = CalibratedModel(MODEL, NOISY)
    np.testing.assert_array_equal(direct.predict(X[:50]), calibrated(MODEL, NOISY).predict(X[:50]))


def test_another_evaluation_of_the_same_loss_is_another_release():
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=["fit", "ill"]), {"alpha": [0.01, 1.0]}, evaluation=0.3
    ).fit(*HELD)
    again = evaluate(search, HELD[0].copy(), HELD[1], epsilon=1.0)
    assert again.privacy_ == search.evaluation_.privacy_
    assert calibrated(search, search.evaluation_).privacy_.epsilon == 1.0
    assert calibrated(search, again).privacy_.epsilon == 2.0
    said = [
        "a release of its own" in privacy_report(search, **given).to_markdown()
        for given in ({}, {"evaluation": search.evaluation_}, {"evaluation": again})
    ]
    assert said == [False, False, True]


def test_the_report_of_a_calibrated_model_has_all_that_the_one_of_its_search_has():
    schema = {"a": (-4, 4), "b": (-4, 4)}
    model = tabular_pipeline(schema, DPLogisticRegression(classes=["fit", "ill"]), expansion="linear")
    grid = {"model__alpha": [0.01, 0.1]}
    search = StabilityGridSearchCV(model, grid, epsilon=100.0, evaluation=0.3)
    search.fit(pd.DataFrame(X[:3000], columns=["a", "b"]), Y[:3000])
    found = calibrated(search, search.evaluation_, rate=0.2)
    before, after = privacy_report(search), privacy_report(found)
    assert [section.title for section in after.sections] == [s.title for s in before.sections]
    for block in before.sections[3].blocks[2:] + before.sections[1].blocks:  # schema, number of records
        assert any(block in section.blocks for section in after.sections)
    # nothing that came from the records is signed as public
    public, good = (
        next(section for section in after.sections if section.title == title).blocks
        for title in ("What is taken to be public", "How good it is")
    )
    signed = {row[1]: row[2] for row in public[1].rows}
    assert signed["rate"] == "0.2" and signed["evaluation"] == "0.3" and "threshold" not in signed
    assert f"{found.threshold:.6g}, was computed from the released evaluation" in public[2]
    figures = {row[0]: row[1] for row in good[-1].rows}
    assert figures["recall"] == str(search.evaluation_.metric("recall", rate=0.2))
    for name in ("accuracy", "roc_auc"):
        assert figures[name] == str(search.evaluation_.metric(name, found.threshold))
    assert "recall, precision, lift where 20% of the records" in good[0]
    # a threshold of one's own is one's own to sign for
    by_hand = privacy_report(CalibratedModel(search, search.evaluation_, threshold=0.25))
    assert "| CalibratedModel | threshold | 0.25 |" in str(by_hand)
    assert "was computed" not in str(by_hand)
    assert found.set_params(threshold=0.25).threshold_target is None


def test_the_report_tells_of_the_seed_and_the_unit_of_an_evaluation():
    model = DPLogisticRegression(classes=["fit", "ill"]).fit(*HELD, groups=np.arange(30_000) // 3)
    with pytest.warns(SeededNoiseWarning):
        seeded = evaluate(model, *TEST, epsilon=3.0, random_state=0)
    said = privacy_report(model, evaluation=seeded).to_markdown()
    assert "about another adjacency: replace one record" in said and "came from a seed" in said

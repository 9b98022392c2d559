"""Thresholds where the scores of a rare class are: public numbers of the caller."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect import DPLogisticRegression, StabilityGridSearchCV, calibrated, evaluate
from dpselect.evaluation.release import EvaluationPlan, cells_of
from dpselect.evaluation.score_bins import EDGES, edges_of
from dpselect.noise import root_stream

INF = float("inf")
SHARE = 0.03


class Fixed(ClassifierMixin, BaseEstimator):
    """A model whose scores are the rows."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        """Do nothing."""

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def drawn(m, seed):
    """Labels and the cautious scores of a strongly regularised model, which are close to each other."""
    rng = np.random.default_rng(seed)
    y = (rng.random(m) < SHARE).astype(int)
    x = rng.normal(size=m) + 1.5 * y
    return expit(logit(SHARE) + 0.3 * (1.5 * x - 1.125))[:, None], y


X, Y = drawn(40_000, 0)


def test_around_the_share_there_are_thresholds_where_scores_are():
    default, around = (evaluate(Fixed(), X, Y, epsilon=INF, thresholds=t) for t in (None, SHARE))
    inside = [
        np.sum((t > np.quantile(X, 0.01)) & (t < np.quantile(X, 0.99)))
        for t in (default.thresholds, around.thresholds)
    ]
    assert inside[0] < 6 and inside[1] > 10
    assert np.array_equal(default.thresholds, EDGES[1:-1]) and around.thresholds[15] == SHARE
    for name in ("roc_auc", "positive_rate", "brier"):
        assert around.metric(name).value == pytest.approx(default.metric(name).value, rel=0.05)
    # figures at a threshold are exact
    threshold = around.thresholds[18]
    flagged = X[:, 0] > threshold
    assert around.metric("recall", threshold).value == pytest.approx(flagged[Y == 1].mean())
    assert around.metric("precision", threshold).value == pytest.approx(Y[flagged].mean())


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_recall_at_a_rate_is_told_better_and_still_covered(rate):
    true = (X[Y == 1] > np.quantile(X, 1 - rate)).mean()
    rows, y = drawn(20_000, 1)
    default, around = (
        evaluate(Fixed(), rows, y, epsilon=1.0, thresholds=t, random_state=root_stream(2))
        for t in (None, SHARE)
    )
    found = around.metric("recall", rate=rate)
    assert found.low < true < found.high and default.metric("recall", rate=rate).empty
    quantiles = np.quantile(X[:5000, 0], np.arange(1, 32) / 32)  # of public rows
    own = evaluate(Fixed(), rows, y, epsilon=1.0, thresholds=quantiles, random_state=root_stream(2))
    at_own = own.metric("recall", rate=rate)
    assert at_own.low < true < at_own.high


@pytest.mark.parametrize("thresholds", [None, SHARE])
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3])
def test_a_rate_is_interpolated_between_thresholds(thresholds, rate):
    scores = np.random.default_rng(3).beta(1.5, 12, size=(20_000, 1))
    y = (np.random.default_rng(4).random(20_000) < scores[:, 0]).astype(int)
    evaluation = evaluate(
        Fixed(), scores, y, epsilon=1.0, thresholds=thresholds, random_state=root_stream(5)
    )
    found = calibrated(Fixed(), evaluation, method=None, rate=rate)
    assert found.predict(scores).mean() == pytest.approx(rate, abs=0.015)
    # the broken twin takes the lowest of the thresholds with no more
    rates = (scores > evaluation.thresholds).mean(axis=0)
    assert thresholds is not None or rate - rates[rates <= rate].max() > 0.015


def test_calibration_knows_the_thresholds():
    evaluation = evaluate(Fixed(), X, Y, epsilon=INF, thresholds=SHARE)
    for method in ("sigmoid", "isotonic"):
        p = calibrated(Fixed(), evaluation, method=method).predict_proba(X)[:, 1]
        x = (logit(X[:, 0]) - logit(SHARE)) / 0.3
        assert np.abs(p - expit(logit(SHARE) + x)).mean() < 0.01
        assert np.abs(X[:, 0] - expit(logit(SHARE) + x)).mean() > 0.01
    curve = evaluation.calibration_curve()
    known = ~np.isnan(curve["observed"])
    assert known.sum() >= 5
    low, high = curve["observed_low"], curve["observed_high"]
    assert (np.diff(curve["observed"][known]) > 0).all() and (low <= high)[known].all()


def test_a_replaced_record_moves_the_counts_by_two_whatever_the_thresholds_are():
    """The broken twin takes quantiles of the records themselves."""
    worst = dict.fromkeys(("public", "of the records"), 0.0)
    for other in np.linspace(0.001, 0.2, 30):
        rows = np.append(X[:60], [[other]], axis=0)[1:]
        y = np.append(Y[:60], 1)[1:]
        for name in worst:
            counts = []
            for records, labels in ((X[:60], Y[:60]), (rows, y)):
                thresholds = SHARE
                if name == "of the records":
                    thresholds = np.quantile(records[:, 0], np.arange(1, 32) / 32)
                plan = EvaluationPlan(cells_of(Fixed(), thresholds=thresholds), 1.0)
                counts.append(plan._counts(Fixed(), records, labels))
            worst[name] = max(worst[name], np.abs(counts[0] - counts[1]).sum())
    assert worst["public"] == 2 < worst["of the records"]


@pytest.mark.parametrize(
    "thresholds",
    [0.0, 1.0, -0.1, math.nan, "many", [0.1, 0.2], [0.5] * 31, np.linspace(0, 1, 31), np.eye(31)],
)
def test_thresholds_that_are_none_are_refused(thresholds):
    with pytest.raises(ValueError, match="thresholds must be the public share"):
        evaluate(Fixed(), X, Y, epsilon=1.0, thresholds=thresholds)


def test_only_two_classes_have_thresholds():
    model = Fixed()
    model.classes_ = np.array([0, 1, 2])
    with pytest.raises(ValueError, match="thresholds are of scores"):
        evaluate(model, X, Y, epsilon=1.0, thresholds=0.1)
    assert len(edges_of(0.1)) == 33


@pytest.mark.parametrize("rate", [0.02, {0: 0.98, 1: 0.02}, 0.98, 0.3, None, "auto"])
def test_a_search_counts_around_a_share_that_is_given_and_not_around_one_that_is_learned(rate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    y = (X[:, 0] + rng.normal(size=4000) > 2.8).astype(int)
    model = DPLogisticRegression(classes=[0, 1], base_rate=rate)
    search = StabilityGridSearchCV(model, {}, epsilon=1.0, evaluation=0.5)
    found = search.fit(X, y).evaluation_
    share = rate[1] if isinstance(rate, dict) else rate
    rare = share in (0.02, 0.98)
    assert found.thresholds == pytest.approx(edges_of(share if rare else None)[1:-1])
    said = search.plan(4000, 2).messages[1]
    rarer = int(rate != 0.98)
    assert (f"recall of {rarer}" in said) == isinstance(rate, (float, dict))

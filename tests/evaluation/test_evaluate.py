"""The release of an evaluation: what it spends, states, refuses and shows."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, confusion_matrix, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dpselect import (
    BudgetExceededError,
    DPLogisticRegression,
    PrivacyLedger,
    PrivacyLoss,
    RowChunks,
    SeededNoiseWarning,
    evaluate,
)

INF = float("inf")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 2))
Y = np.where(X[:, 0] + RNG.normal(size=4000) > 0.7, "yes", "no")
MODEL = LogisticRegression().fit(X[:1000], Y[:1000])
SET_ASIDE = X[1000:], Y[1000:]


def test_exact_figures_are_scikit_learns():
    evaluation = evaluate(MODEL, *SET_ASIDE, epsilon=INF)
    predicted, scores = MODEL.predict(X[1000:]), MODEL.predict_proba(X[1000:])[:, 1]
    found = evaluation.metric("accuracy")
    assert found.value == pytest.approx(accuracy_score(Y[1000:], predicted), abs=1e-12)
    # scores are rounded
    assert evaluation.metric("roc_auc").value == pytest.approx(roc_auc_score(Y[1000:], scores), abs=2e-3)
    cells = [[cell.value for cell in row] for row in evaluation.confusion_matrix()]
    np.testing.assert_allclose(cells, confusion_matrix(Y[1000:], predicted))


def test_what_it_states():
    evaluation = evaluate(MODEL, *SET_ASIDE, epsilon=0.5)
    assert evaluation.privacy_.epsilon == 0.5 and evaluation.privacy_.delta == 0
    assert "the model's own loss is not counted" in str(evaluation) and not evaluation.privacy_.seeded
    model = DPLogisticRegression(0.5, classes=["no", "yes"]).fit(X[:1000], Y[:1000])
    together = PrivacyLoss.parallel([model.privacy_, evaluate(model, *SET_ASIDE, epsilon=0.5).privacy_])
    assert together.epsilon == 0.5
    assert "not private" in str(evaluate(MODEL, *SET_ASIDE, epsilon=INF))


def test_noise_is_new_each_time_and_of_integers():
    first, second = (evaluate(MODEL, *SET_ASIDE, epsilon=0.5).counts_ for _ in range(2))
    assert (first != second).any() and (first % 1 == 0).all() and first.dtype == np.float64
    with pytest.warns(SeededNoiseWarning):
        seeded = [evaluate(MODEL, *SET_ASIDE, epsilon=0.5, random_state=0) for _ in range(2)]
    np.testing.assert_array_equal(seeded[0].counts_, seeded[1].counts_)
    assert seeded[0].privacy_.seeded


def test_the_ledger_pays_before_any_record_is_read(tmp_path):
    ledger = PrivacyLedger(tmp_path / "budget", epsilon=1.0)
    evaluate(MODEL, *SET_ASIDE, epsilon=0.75, ledger=ledger)
    assert ledger.spent()[0] == 0.75

    class Unreadable:
        def __array__(self, *args, **kwargs):
            raise AssertionError("read")

    with pytest.raises(BudgetExceededError):
        evaluate(MODEL, Unreadable(), Unreadable(), epsilon=0.5, ledger=ledger)
    with ledger:
        evaluate(MODEL, *SET_ASIDE, epsilon=0.25)
    assert ledger.spent()[0] == 1.0


def test_a_failure_before_the_noise_costs_nothing(tmp_path):
    ledger = PrivacyLedger(tmp_path / "budget", epsilon=1.0)
    with pytest.raises(ValueError):
        evaluate(MODEL, X[:10], Y[:9], epsilon=0.5, ledger=ledger)
    assert ledger.spent()[0] == 0


def test_models_without_probabilities_have_no_figures_of_them():
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(X[:1000], Y[:1000])
    evaluation = evaluate(model, *SET_ASIDE, epsilon=INF)
    exact = model.score(*SET_ASIDE)
    assert evaluation.metric("accuracy").value == pytest.approx(exact, abs=1e-12)
    assert "brier" not in evaluation.metrics and "brier" not in str(evaluation)
    with pytest.raises(ValueError, match="name='brier'"):
        evaluation.metric("brier")
    with pytest.raises(ValueError, match="decisions"):
        evaluation.calibration_curve()


def test_rows_in_pieces():
    model = DPLogisticRegression(INF, classes=["no", "yes"]).fit(X[:1000], Y[:1000])
    parts = np.array_split(np.arange(1000, 4000), 4)
    chunks = RowChunks(lambda i: X[parts[i]], lengths=[len(part) for part in parts], n_columns=2)
    np.testing.assert_array_equal(
        evaluate(model, chunks, Y[1000:], epsilon=INF).counts_,
        evaluate(model, *SET_ASIDE, epsilon=INF).counts_,
    )


def test_what_it_shows():
    evaluation = evaluate(MODEL, *SET_ASIDE, epsilon=1.0)
    frame = evaluation.to_frame()
    assert list(frame.index) == list(evaluation.metrics)
    assert list(frame.columns) == ["value", "low", "high"]
    assert frame.loc["roc_auc", "value"] == evaluation.metric("roc_auc").value
    page = evaluation._repr_html_()
    assert all(name in page for name in evaluation.metrics) and "Privacy loss" in page
    curve = evaluation.roc_curve()
    assert all(len(column) == 31 for column in curve.values())
    told = ~np.isnan(curve["recall"])
    assert (curve["recall_low"] <= curve["recall"])[told].all() and told.sum() > 20
    assert all(len(column) == 8 for column in evaluation.calibration_curve().values())
    assert repr(pickle.loads(pickle.dumps(evaluation))) == repr(evaluation)


@pytest.mark.parametrize("model, epsilon", [(MODEL, 1.0), (LinearSVC().fit(X[:1000], Y[:1000]), 0.1)])
def test_every_figure_lies_within_its_interval(model, epsilon):
    evaluation = evaluate(model, *SET_ASIDE, epsilon=epsilon)
    estimates = [cell for row in evaluation.confusion_matrix() for cell in row]
    estimates += [evaluation.metric(name) for name in evaluation.metrics]
    figures = [(e.value, e.low, e.high) for e in estimates]
    figures += evaluation.to_frame()[["value", "low", "high"]].to_numpy().tolist()
    curves = [evaluation.roc_curve()]
    curves += [evaluation.calibration_curve()] if evaluation.calibrated_scores else []
    for curve in curves:
        for name in {column.removesuffix("_low") for column in curve if column.endswith("_low")}:
            figures += zip(curve[name], curve[f"{name}_low"], curve[f"{name}_high"])
    figures = np.array(figures)
    told = figures[~np.isnan(figures).all(axis=1)]
    assert (told[:, 1] <= told[:, 0]).all() and (told[:, 0] <= told[:, 2]).all()
    assert (told[:, 1] < told[:, 2]).any()
    # the curve has what the metrics say at its thresholds
    roc = curves[0]
    for i in range(0, 31, 6):
        recall = evaluation.metric("recall", roc["threshold"][i])
        kept = evaluation.metric("specificity", roc["threshold"][i])
        expected = {
            "recall": recall.value,
            "recall_low": recall.low,
            "recall_high": recall.high,
            "false_positive_rate": 1 - kept.value,
            "false_positive_rate_low": 1 - kept.high,
            "false_positive_rate_high": 1 - kept.low,
        }
        np.testing.assert_equal({name: roc[name][i] for name in expected}, expected)


def test_what_says_nothing_prints_so():
    rare = evaluate(MODEL, X[:300], np.where(np.arange(300) < 3, "yes", "no"), epsilon=0.3)
    assert rare.metric("roc_auc").empty and "roc_auc            not known" in repr(rare)
    assert "not known" in rare._repr_html_() and rare.to_frame().isna().any().any()


def test_thresholds():
    evaluation = evaluate(MODEL, *SET_ASIDE, epsilon=INF)
    scores = MODEL.predict_proba(X[1000:])[:, 1]
    for threshold in evaluation.thresholds[[3, 10, 15, 27]]:
        exact = np.mean((scores > threshold) == (Y[1000:] == "yes"))
        assert evaluation.metric("accuracy", threshold).value == pytest.approx(exact, abs=1e-12)
    assert evaluation.metric("recall", 0.0).value > evaluation.metric("recall", 1.0).value


class Odd(ClassifierMixin, BaseEstimator):
    """A fitted model that says something odd of one record."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, said=np.nan):
        self.said = said

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        """Do nothing."""

    def predict_proba(self, X):
        if isinstance(self.said, Exception):
            raise self.said
        p = np.full((len(X), 2), 0.5)
        p[0, 1] = self.said
        return p


@pytest.mark.parametrize("said", [np.nan, np.inf, -1.0, 1e300])
def test_an_odd_score_is_no_news(said):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(Odd(said), *SET_ASIDE, epsilon=INF).counts_.sum() == 3000


def test_what_a_model_says_of_records_is_not_repeated():
    with pytest.raises(ValueError) as caught:
        evaluate(Odd(KeyError("SECRET-42")), *SET_ASIDE, epsilon=1.0)
    assert "SECRET" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize(
    "bad, error",
    [
        (dict(epsilon=0.0), ValueError),
        (dict(epsilon="1"), TypeError),
        (dict(epsilon=np.nan), ValueError),
        (dict(random_state=-1), ValueError),
        (dict(random_state="a"), TypeError),
        (dict(ledger=5), TypeError),
        (dict(model=LogisticRegression), TypeError),
        (dict(model=LogisticRegression()), NotFittedError),
        (dict(model=Ridge().fit(X, X[:, 0])), ValueError),
        (dict(model=None), TypeError),
        (dict(X=X[:7]), ValueError),
        (dict(X=None), TypeError),
        (dict(X=X[1000:] * np.nan), ValueError),
        (dict(X=X[1000:, :1]), ValueError),
        (dict(y=None), ValueError),
        (dict(y=np.full(3000, "SECRET-42")), ValueError),
        (dict(X=X[:0], y=Y[:0]), ValueError),
        (dict(y=X[1000:, 0]), ValueError),
    ],
)
def test_bad_input(bad, error):
    given = dict(model=MODEL, X=X[1000:], y=Y[1000:], epsilon=1.0) | bad
    with pytest.raises(error) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluate(given.pop("model"), given.pop("X"), given.pop("y"), **given)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda e: e.metric("auc"),
        lambda e: e.metric(None),
        lambda e: e.metric("recall", 1.5),
        lambda e: e.metric("recall", "a"),
        lambda e: e.confusion_matrix(-1),
        lambda e: e.to_frame(np.nan),
    ],
)
def test_bad_questions(call):
    with pytest.raises((ValueError, TypeError), match=r"name|threshold"):
        call(evaluate(MODEL, *SET_ASIDE, epsilon=1.0))


def test_a_model_that_leaves_records_out_is_refused():
    """Labels would be counted beside the predictions of other records, and one record move them all."""

    class Dropping(LogisticRegression):
        def predict_proba(self, X):
            return super().predict_proba(X[np.abs(X[:, 0]) < 1.0])

    X = np.random.default_rng(0).normal(size=(200, 1))
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match="could not be answered|not one prediction"):
        evaluate(Dropping().fit(X, y), X, y, epsilon=1.0)

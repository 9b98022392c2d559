import math
import warnings
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dpselect import (
    CertificateError,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLeakWarning,
    PrivacyLoss,
)
from dpselect.accounting.zcdp import pure_to_zcdp, zcdp_to_epsilon
from dpselect.exceptions import SeededNoiseWarning
from dpselect.metrics import AccuracyScore, ClippedSquaredErrorScore, HingeScore, get_score
from dpselect.model_selection.candidates import Candidate
from dpselect.model_selection.strategies import held_out, post_processing, random_stopping
from dpselect.preprocessing import BoundedScaler

from .common import (
    GRID,
    HELD_OUT,
    LOGISTIC,
    RIDGE,
    Touched,
    Untouchable,
    records,
    search,
    seeded,
    targets,
)

GAUSSIAN = DPRidge(perturbation="covariance", norm="l2", delta=1e-6, target_range=(-1, 1))


@pytest.fixture(scope="module")
def data():
    return records()


@pytest.fixture
def fits(monkeypatch):
    """(candidate, records, epsilon, state, model) of every fit on the caller's records."""
    made, original = [], held_out.HeldOut.fit

    def spy(self, i, rows, y, part, epsilon, state):
        model = original(self, i, rows, y, part, epsilon, state)
        made.append((i, part, epsilon, state, model))
        return model

    monkeypatch.setattr(held_out.HeldOut, "fit", spy)
    return made


# --- budget_split


def test_the_share_of_every_model_never_adds_up_to_more():
    # (a plain 7.3 / 7 seven times is more than 7.3)
    for k, epsilon in [(3, 0.1), (7, 1.0), (7, 7.3), (14, 1.9), (49, 7.3)]:
        grid = {"alpha": np.geomspace(0.01, 1, k)}
        share = search("budget_split", grid=grid, epsilon=epsilon).plan(100, 2).training_epsilon
        assert epsilon * (1 - 1e-15) <= math.fsum([share] * k) <= epsilon


@pytest.mark.parametrize("k, better", [(3, False), (80, True)])
def test_delta_is_spent_only_where_it_makes_the_shares_larger(k, better, data, fits):
    grid = {"alpha": np.geomspace(0.01, 1, k)}
    s = search("budget_split", grid=grid, delta=1e-6).fit(*data)
    share = fits[0][2]
    assert (s.privacy_.epsilon, s.privacy_.delta) == (1.0, 1e-6 if better else 0.0)
    assert (share > 1.5 / k) == better
    # as large as zero-concentrated differential privacy allows, or adding up to epsilon
    together = zcdp_to_epsilon(k * pure_to_zcdp(share), 1e-6)
    assert 0.999 < together <= 1.0 if better else k * share == 1.0


def test_models_with_a_delta_are_no_concentrated_differential_privacy(data):
    """Gaussian noise for (epsilon, delta) has no rho of epsilon^2 / 2, so the losses add up."""
    X, _ = data
    grid = {"alpha": np.geomspace(0.01, 1, 80)}
    s = search("budget_split", GAUSSIAN, grid, delta=1e-6).fit(X, targets(X))
    assert s.best_estimator_.epsilon == pytest.approx(1 / 80)
    assert s.privacy_.epsilon == 1.0 and s.privacy_.delta == pytest.approx(80e-6)


class Overspends(DPLogisticRegression):
    """States more than it was given."""

    def fit(self, X, y):
        super().fit(X, y)
        self.privacy_ = PrivacyLoss(2 * float(self.epsilon), label="twice")
        return self


def test_models_that_state_more_than_they_were_given_are_not_released(data):
    model = Overspends(classes=[0, 1])
    many = {"alpha": np.geomspace(0.01, 1, 80)}
    for strategy, grid, delta in (
        ("budget_split", GRID, 0.0),
        ("data_split", GRID, 0.0),
        ("budget_split", many, 1e-6),
        ("stability", GRID, 0.0),
        ("random", GRID, 0.0),
    ):
        with pytest.raises(CertificateError, match=f"{strategy}.*spent more"):
            search(strategy, model, grid, delta=delta).fit(*data)
    with pytest.raises(CertificateError, match="random_stopping"):
        search("random_stopping", model).fit(Untouchable(), Untouchable())


# --- data_split


def test_every_candidate_has_records_of_its_own(data, fits):
    s = search("data_split").fit(*data)
    parts = [part for _, part, _, _, _ in fits]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together) == 800
    assert [epsilon for _, _, epsilon, _, _ in fits] == [1.0] * 3
    models, choice = s.privacy_.parts[0].parts
    assert (models.composition, models.epsilon, choice.epsilon) == ("parallel", 1.0, 1.0)


def test_parts_that_would_be_empty_are_refused(data):
    X, y = data
    many = {"alpha": np.geomspace(0.01, 1, 9)}
    with pytest.raises(ValueError, match="8 training records into 9 parts.*fewer candidates"):
        search("data_split", grid=many).fit(X[:10], y[:10])
    with pytest.raises(ValueError, match="fewer candidates"):
        search("data_split", grid=many).plan(10, 3)


@pytest.mark.slow
def test_many_candidates_are_no_reason_to_refuse_many_records():
    many = {"max_iter": list(range(501))}
    with pytest.raises(Touched):
        search("data_split", grid=many).fit(Untouchable(), Untouchable())


# --- both, and random stopping


@pytest.mark.parametrize("strategy", ["control", *HELD_OUT])
def test_overlapping_and_repeated_records_are_refused(strategy, data):
    rest = np.arange(500, 1000)
    for cv, match in (
        ([(np.arange(501), rest)], "disjoint"),
        ([(np.append(np.arange(500), 3), rest)], "trains on a record more than once"),
        ([(np.arange(500), np.append(rest, 700))], "validates on a record more than once"),
        # the same records under negative numbers
        ([(np.arange(500), np.arange(-510, 0))], "disjoint"),
    ):
        with pytest.raises(ValueError, match=match):
            search(strategy, cv=cv, public_splits=True).fit(*data)


@pytest.mark.parametrize("strategy", ["control", *HELD_OUT])
def test_only_the_first_split_counts(strategy, data, fits):
    cv = [(np.arange(600), np.arange(600, 1000)), (np.arange(5), np.arange(5))]
    s = search(strategy, cv=cv, public_splits=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        s.fit(*data)
    used = np.concatenate([part for _, part, _, _, _ in fits])
    assert used.max() == 599 and (s.cv_results_["sensitivity"] == 1 / 400).all()


@pytest.mark.parametrize("strategy", HELD_OUT)
def test_accuracy_will_do(strategy, data):
    s = seeded(search(strategy, scoring="accuracy", epsilon=300.0)).fit(*data)
    score = s.score(data[0].copy(), data[1])
    assert s.scorer_ == AccuracyScore() and score > 0.8
    assert score == np.mean(s.predict(data[0]) == data[1])


@pytest.mark.parametrize("strategy", [*HELD_OUT, "one_release"])
def test_what_is_compared_and_how_far_a_record_moves_it(strategy, data, monkeypatch):
    """Scores that are no mean are handed on as what one record moves by a known amount."""
    X, y = data
    name, model, labels, sensitivity = "roc_auc", LOGISTIC, y, 4 / 200
    if strategy == "one_release":
        name, model, labels = "neg_root_mean_squared_error", DPRidge(target_range=(-1, 1)), targets(X)
    asked, compared = [], type(get_score(name, model=model)).comparison

    def spy(score, *records, **weight):
        asked.append(compared(score, *records, **weight))
        return asked[-1]

    monkeypatch.setattr(type(get_score(name, model=model)), "comparison", spy)
    strategy = "stability" if strategy == "one_release" else strategy
    given = []
    for module, mechanism in (
        (held_out, "exponential_mechanism"),
        (post_processing, "noisy_argmax"),
        (random_stopping, "grid_laplace"),
    ):
        original = Mock(side_effect=getattr(module, mechanism))
        monkeypatch.setattr(module, mechanism, original)
        given.append(original)
    s = search(strategy, model, scoring=name, epsilon=300.0).fit(X, labels)
    assert (s.plan_.sensitivity == sensitivity).all()
    if strategy == "random_stopping":
        calls = [call.args for call in given[2].call_args_list]
        assert [scores for _, scores, _, _ in calls] == asked
        assert all(scale == sensitivity / epsilon for _, _, scale, epsilon in calls)
    else:
        ((scores, hidden, *_),) = [call.args for each in given for call in each.call_args_list]
        assert list(scores) == asked and np.all(hidden == sensitivity)
    # the search's own score is the metric
    own = s.scorer_(s.best_estimator_, X, labels)
    assert s.score(X.copy(), labels) == pytest.approx(own, rel=1e-12)  # scikit-learn rounds otherwise


@pytest.mark.parametrize("model, score, match", [
    (DPLogisticRegression(classes=[0, 1, 2]), "f1", "F1Score is about two classes.*3"),
    (LOGISTIC, "r2", "'r2' needs a public range of targets"),
    (DPLinearSVC(classes=[0, 1]), "neg_log_loss", "LogLossScore cannot score a DPLinearSVC"),
    (RIDGE, "roc_auc", "RocAucScore cannot score a DPRidge"),
])  # fmt: skip
@pytest.mark.parametrize("strategy", HELD_OUT)
def test_models_that_a_score_is_not_about_are_refused(strategy, model, score, match):
    with pytest.raises(CertificateError, match=match):
        search(strategy, model, scoring=score).fit(Untouchable(), Untouchable())


def test_accuracy_has_no_certificate_of_stability():
    with pytest.raises(CertificateError, match="AccuracyScore.*'brier'"):
        search("stability", scoring="accuracy").fit(Untouchable(), Untouchable())


@pytest.mark.parametrize("strategy", ["control", *HELD_OUT])
def test_scores_that_do_not_serve_are_refused_before_the_data(strategy):
    for model, score, match in (
        (LOGISTIC, HingeScore(), f"strategy='{strategy}'.*HingeScore.*'accuracy'"),
        (LOGISTIC, "logistic", "LogisticScore.*'brier'"),
        (RIDGE, "brier", "BrierScore cannot score a DPRidge.*scoring"),
        (DPLogisticRegression(classes=["a", "b"]), ClippedSquaredErrorScore(), "cannot score"),
    ):
        with pytest.raises(CertificateError, match=match):
            search(strategy, model, scoring=score).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize("strategy", ["control", "budget_split", "data_split"])
def test_rows_are_transformed_once_for_all_candidates_with_the_same_steps(
    strategy, data, fits, monkeypatch
):
    pipeline = Pipeline([("scale", BoundedScaler((-1, 1))), ("model", clone(LOGISTIC))])
    # neighbours in the grid differ in their steps
    grid = {"model__alpha": [0.1, 1.0], "scale__bounds": [(-1, 1), (-2, 2), (-4, 4)]}
    transformed, original = [], Candidate.transform

    def spy(self, X):
        transformed.append(self.params["scale__bounds"][1])
        return original(self, X)

    s = search(strategy, pipeline, grid, epsilon=1e6).set_params(random_state=0)
    monkeypatch.setattr(Candidate, "transform", spy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        s.fit(*data)
    assert sorted(transformed) == [1, 2, 4]
    # each model is that of its own candidate, parts and noise included
    by_candidate = {i: model for i, _, _, _, model in fits}
    assert list(by_candidate) == [0, 3, 1, 4, 2, 5]
    lengths = [np.linalg.norm(by_candidate[i].coef_) for i in range(6)]
    assert [by_candidate[i].alpha for i in range(6)] == [0.1] * 3 + [1.0] * 3
    # the coefficients of shorter rows are shorter, so strongly are they regularised
    assert lengths[3] > 1.5 * lengths[4] > 2.25 * lengths[5]
    assert s.best_estimator_["model"] is by_candidate[s.best_index_]
    assert s.best_estimator_["scale"].bounds == s.best_params_["scale__bounds"]


# --- yardsticks


def test_the_exact_choice_warns_and_promises_nothing(data):
    s = search("control", grid={"alpha": [100.0, 1e-3]}, epsilon=1000.0)
    with pytest.warns(PrivacyLeakWarning, match="exact scores.*public records") as warned:
        s.fit(*data)
    assert [warning.filename for warning in warned] == [__file__]
    assert s.privacy_.epsilon == math.inf and "not private" in str(s.privacy_)
    assert s.best_index_ == 1


def test_a_random_choice_does_not_look(data):
    X, y = data
    chosen = {}
    for labels in (y, 1 - y):
        chosen[labels[0]] = [
            seeded(search("random", refit=False), seed).fit(X, labels).best_index_ for seed in range(60)
        ]
    assert chosen[0] == chosen[1]
    # each has 20 of 60 on average, with a standard deviation of 3.7
    assert min(np.bincount(chosen[0], minlength=3)) > 5


@pytest.mark.parametrize("strategy", HELD_OUT)
def test_models_that_differ_in_numbers_have_one_dry_run(strategy, data, monkeypatch):
    sizes, original = [], DPLogisticRegression.fit
    monkeypatch.setattr(
        DPLogisticRegression,
        "fit",
        lambda self, X, y: (sizes.append(len(X)), original(self, X, y))[1],
    )
    grid = {**GRID, "perturbation": ["objective", "output"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search(strategy, clone(LOGISTIC), grid).fit(*data)
    assert sizes[:2] == [2, 2] and 2 not in sizes[2:]


class Stubborn(DPLogisticRegression):
    """Refuses a number, a text or a delta where a fit, and nothing before it, looks at it."""

    def __init__(self, epsilon=1.0, *, size=0.0, text="a", delta=0.0, classes=(0, 1), random_state=None,
                 ledger=None):  # fmt: skip
        super().__init__(epsilon, classes=classes, random_state=random_state, ledger=ledger)
        self.size, self.text, self.delta = size, text, delta

    def _calibration(self, shape, epsilon):
        if self.size > 1:
            raise ValueError("size")
        return super()._calibration(shape, epsilon)

    def _release(self, records, calibration, noise):
        if self.text == "b":
            raise ValueError("text")
        return super()._release(records, calibration, noise)


@pytest.mark.parametrize("strategy", HELD_OUT)
@pytest.mark.parametrize(
    "grid, said",
    [
        ({"size": [0.0, 0.5, 2.0]}, "size"),
        ({"text": ["a", "b"]}, "text"),
    ],
)
def test_each_candidate_is_refused_before_any_record(strategy, grid, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        search(strategy, Stubborn(), grid).fit(Untouchable(), Untouchable())


def test_each_delta_is_looked_at_before_any_record():
    with pytest.raises(CertificateError, match="a model has delta=1e-06; write"):
        grid = {"delta": [0.0, 1e-6]}
        search("random_stopping", Stubborn(), grid).fit(Untouchable(), Untouchable())

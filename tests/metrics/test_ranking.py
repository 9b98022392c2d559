"""Scores that are no mean: scikit-learn's values, and one record moves what is compared as said."""

import itertools
from functools import partial

import numpy as np
import pytest
from sklearn import metrics

from dpselect import CertificateError, DPLogisticRegression, RowChunks
from dpselect.metrics import (
    AccuracyScore,
    BalancedAccuracyScore,
    F1Score,
    LogLossScore,
    R2Score,
    RocAucScore,
    RootMeanSquaredErrorScore,
)
from dpselect.metrics.explained import RangeScore

RANGE = (-1.0, 3.0)
EXACT = {
    RocAucScore(): lambda y, score, **w: metrics.roc_auc_score(y, score, **w),
    BalancedAccuracyScore(): lambda y, score, **w: metrics.balanced_accuracy_score(y, score > 0, **w),
    F1Score(): lambda y, score, **w: metrics.f1_score(y, score > 0, **w),
    R2Score(RANGE): lambda y, score, **w: metrics.r2_score(y, np.clip(score, *RANGE), **w),
    RootMeanSquaredErrorScore(RANGE): lambda y, score, **w: (
        -metrics.root_mean_squared_error(y, np.clip(score, *RANGE), **w)
    ),
}
CLASSIFIERS = [score for score in EXACT if not isinstance(score, RangeScore)]


class Given:
    """Predicts what its rows say: a decision, or a label if there are more than two."""

    def __init__(self, n_classes=2, regression=False):
        self.classes_, self.regression = np.arange(n_classes), regression

    def decision_function(self, X):
        return np.asarray(X)[:, 0]

    def predict(self, X):
        x = np.asarray(X)[:, 0]
        return x if self.regression or len(self.classes_) > 2 else (x > 0).astype(int)


@pytest.mark.parametrize("score", EXACT, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_scikit_learn(score, weighted):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 1)), 1)  # with ties
    y = (X[:, 0] + rng.normal(size=300) > 0.5).astype(int)
    model = Given(regression=isinstance(score, RangeScore))
    weight = {"sample_weight": rng.uniform(0, 2, 300)} if weighted else {}
    expected = EXACT[score](y, X[:, 0], **weight)
    assert score(model, X, y, **weight) == pytest.approx(expected, abs=1e-12)
    # what is compared ranks models alike
    models = [X, X[::-1], np.abs(X), -X]
    values, compared = (
        [of(model, rows, y, **weight) for rows in models] for of in (score, score.comparison)
    )
    assert (np.argsort(values) == np.argsort(compared)).all()


@pytest.mark.parametrize("score", [*CLASSIFIERS, LogLossScore()], ids=repr)
def test_rows_in_chunks(score):
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, size=(60, 1)), rng.integers(2, size=60)
    model = DPLogisticRegression(float("inf"), classes=[0, 1]).fit(X, y)
    chunks = RowChunks(lambda i: X[20 * i : 20 * (i + 1)], [20] * 3, 1)
    on_cluster = [da.from_array(array, chunks=chunk) for array, chunk in ((X, (25, 1)), (y, 40))]
    weight = {"sample_weight": da.from_array(rng.random(60), chunks=25)}
    given = weight["sample_weight"].compute()
    for form in ((chunks, y), on_cluster, (on_cluster[0], y)):
        for of in (score.comparison, score):
            assert of(model, *form) == pytest.approx(of(model, X, y), rel=1e-12)
            expected = of(model, X, y, sample_weight=given)
            assert of(model, *form, **weight) == pytest.approx(expected, rel=1e-12)


def largest_movement(score, kinds, m, model, target=None):
    """Return how far one of m records moves what is compared or tested, over tables of some kinds."""
    function = score.comparison if target is None else partial(score.shortfall, target=target)
    found = {}
    for table in itertools.combinations_with_replacement(range(len(kinds)), m):
        x, y = np.array([kinds[i] for i in table], dtype=np.float64).T
        found[table] = function(model, x[:, None], y)
    worst = 0.0
    for table, value in found.items():
        for i, other in itertools.product(range(m), range(len(kinds))):
            neighbour = tuple(sorted((*table[:i], *table[i + 1 :], other)))
            worst = max(worst, abs(found[neighbour] - value))
    return worst


BINARY = list(itertools.product([-1.0, 1.0], [0, 1]))
RANKED = list(itertools.product([-1.0, 0.0, 1.0], [0, 1]))
THREE = list(itertools.product([0.0, 1.0, 2.0], [0, 1, 2]))
ENDS = list(itertools.product(RANGE, RANGE))
CASES = [
    (RocAucScore(), RANKED, 6, Given()),
    (BalancedAccuracyScore(), BINARY, 9, Given()),
    (BalancedAccuracyScore(), THREE, 4, Given(3)),
    # labels that the model does not know
    (BalancedAccuracyScore(), [*BINARY, (1.0, 7)], 7, Given()),
    (F1Score(), BINARY, 9, Given()),
    (R2Score(RANGE), ENDS, 5, Given(regression=True)),
    (RootMeanSquaredErrorScore(RANGE), ENDS, 5, Given(regression=True)),
]


@pytest.mark.parametrize("score, kinds, m, model", CASES)
def test_one_record_moves_what_is_compared_as_said(score, kinds, m, model):
    ratio = largest_movement(score, kinds, m, model) / score.sensitivity(m)
    # and hardly less: a constant of half the size is caught (of three classes, a record moves 5/6)
    assert (0.45 if model.classes_.size == 3 else 0.6) < ratio <= 1 + 1e-12


@pytest.mark.parametrize("score, kinds, m, model", [*CASES[:5], (AccuracyScore(), BINARY, 4, Given())])
@pytest.mark.parametrize("target", [0.2, 0.5, 0.9])
def test_one_record_moves_what_is_tested_as_said(score, kinds, m, model, target):
    moved = largest_movement(score, kinds, min(m, 5), model, target)
    assert 0.4 < moved / score.shortfall_sensitivity(min(m, 5), target) <= 1 + 1e-12
    # the broken twin tests the score itself, as if one record added its share to a mean
    if m == 9:
        naive = {"shortfall": lambda self, *records, target: target - np.nan_to_num(self(*records))}
        twin = type("Naive", (type(score),), naive)()
        assert largest_movement(twin, kinds, 7, model, target) > score.shortfall_sensitivity(7, target)


@pytest.mark.parametrize("score", [*CLASSIFIERS, AccuracyScore(), R2Score(RANGE)], ids=repr)
def test_what_is_tested_is_positive_below_the_target_only(score):
    rng = np.random.default_rng(4)
    model = Given(regression=isinstance(score, R2Score))
    for strength in (0.5, 1.0, 3.0):
        X = rng.normal(size=(200, 1))
        y = (strength * X[:, 0] + rng.normal(size=200) > 0.5).astype(int)
        value = score(model, X, y)
        for target in (value - 1e-9, value + 1e-9, 0.1, 0.9):
            assert (score.shortfall(model, X, y, target) > 0) == (value < target)
        # a guess of about its slope
        slope = (score.shortfall(model, X, y, 0.6) - score.shortfall(model, X, y, 0.5)) / 0.1
        assert 0.3 < slope / score.unit < 5


@pytest.mark.parametrize("score", [RocAucScore(), BalancedAccuracyScore(), F1Score()], ids=repr)
def test_the_score_itself_moves_farther(score):
    """The broken twin compares the score, as if one record added its share to a mean."""
    naive = {"_compared": lambda self, sums: np.nan_to_num(self._value(sums))}
    kind = type("Naive", (type(score),), naive)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = largest_movement(kind(), BINARY, 9, Given())
    assert moved > score.sensitivity(9)


@pytest.mark.parametrize("score", CLASSIFIERS, ids=repr)
def test_a_person_moves_what_is_compared_no_farther(score):
    """The weights of a person's rows add up to 1, and the rows may be of both classes."""
    rng, m = np.random.default_rng(2), 5
    X, y = np.array(RANKED).T
    worst = 0.0
    for _ in range(250):
        others = rng.dirichlet(np.full(len(X), rng.choice([0.05, 1.0])), m - 1).sum(axis=0)
        one, two = rng.dirichlet(np.full(len(X), 0.05), 2)
        values = [
            score.comparison(Given(), X[:, None], y, sample_weight=others + person)
            for person in (one, two)
        ]
        worst = max(worst, abs(values[0] - values[1]))
    assert 0.4 < worst / score.sensitivity(m) <= 1 + 1e-9


def test_log_loss():
    p = np.array([[0.9, 0.1], [0.4, 0.6], [1.0, 0.0], [np.nan, 0.3]])
    model = Given()
    model.predict_proba = lambda X: p
    score, y = LogLossScore(floor=0.01), np.array([0, 1, 1, 0])
    expected = np.log([0.9, 0.6, 0.01, 0.01]).mean()
    assert score(model, np.zeros((4, 1)), y) == pytest.approx(expected)
    assert score.sensitivity(4) == pytest.approx(-np.log(0.01) / 4)
    q = np.array([[0.9, 0.1], [0.4, 0.6], [0.95, 0.05], [0.3, 0.7]])
    model.predict_proba = lambda X: q
    assert score(model, np.zeros((4, 1)), y) == pytest.approx(-metrics.log_loss(y, q))


@pytest.mark.parametrize("score", [RocAucScore(), F1Score()], ids=repr)
def test_more_classes_are_refused(score):
    with pytest.raises(CertificateError, match="two classes.*3.*balanced_accuracy"):
        score(Given(3), np.zeros((2, 1)), np.array([0, 1]))


def test_one_class_alone_says_nothing():
    X, y = np.ones((3, 1)), np.ones(3, dtype=int)
    assert np.isnan(RocAucScore()(Given(), X, y)) and RocAucScore().comparison(Given(), X, y) == 0
    assert BalancedAccuracyScore()(Given(), X, y) == 1
    assert F1Score()(Given(), -X, 0 * y) == F1Score().comparison(Given(), -X, 0 * y) == 0


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: LogLossScore(0.0), "floor"),
        (lambda: LogLossScore(1.0), "floor"),
        (lambda: RocAucScore(class_share=0.6), "class_share"),
        (lambda: F1Score(0.0), "class_share"),
        (lambda: R2Score(RANGE, target_std=0.0), "target_std"),
        (lambda: R2Score((1, 1)), "target_range"),
        (lambda: R2Score(None), "target_range"),
    ],
)
def test_parameters_are_checked(make, match):
    with pytest.raises(ValueError, match=match):
        make()

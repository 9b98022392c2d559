"""Losses of several fits add up if each was handed every record at most once, by public numbers.

The exact loss of models is computed in one dimension: output perturbation adds Laplace noise to a
minimiser, so the loss of a model is its change, in units of what one record can move it at most,
times epsilon.
"""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_validate

from dpselect import (
    AccuracyFirstSearchCV,
    DPLinearSVC,
    DPLogisticRegression,
    PrivacyLedger,
    SeededNoiseWarning,
    StabilityGridSearchCV,
)
from dpselect.model_selection import stages

N, FITS, EPSILON = 100, 5, 0.125
# so strong a penalty that all margins are small: the minimiser is the mean of sign * x, over alpha
MODEL = DPLinearSVC(
    epsilon=EPSILON, alpha=50.0, perturbation="output", fit_intercept=False, classes=[0, 1]
)


def minimiser(x, y, records):
    exact = DPLinearSVC(**{**MODEL.get_params(), "epsilon": float("inf")})
    return exact.fit(x[records, None], y[records]).coef_[0, 0]


def most(n):
    """How far one of n records can move the minimiser: from one end of its mean to the other."""
    x, y = np.ones(n), np.ones(n, dtype=int)
    turned = x.copy()
    turned[0] = -1.0
    return minimiser(x, y, np.arange(n)) - minimiser(turned, y, np.arange(n))


def exact_loss(parts, neighbours):
    """The loss of the models of several training parts, on two data sets (x, y)."""
    total = 0.0
    for one, other in zip(*parts):
        assert len(one) == len(other)
        moved = minimiser(*neighbours[0], one) - minimiser(*neighbours[1], other)
        total += EPSILON * abs(moved) / most(len(one))
    return total


def training_parts(splitter, y):
    return [train for train, _ in splitter.split(np.zeros(N), y)]


@pytest.fixture(scope="module")
def worst():
    """Labels of neighbours whose stratified folds differ most, and values that make most of it."""
    rng = np.random.default_rng(0)
    best = -1, None
    for _ in range(300):
        y = (rng.random(N) < rng.choice([0.2, 0.5, 0.8])).astype(int)
        i = int(rng.integers(N))
        y_other = y.copy()
        y_other[i] = 1 - y[i]
        parts = [training_parts(StratifiedKFold(FITS), labels) for labels in (y, y_other)]
        moved = sum(len(np.setxor1d(a, b)) for a, b in zip(*parts))
        if moved > best[0] and all(len(a) == len(b) for a, b in zip(*parts)):
            best = moved, (y, y_other, i, parts)
    y, y_other, i, parts = best[1]
    # margins are small, so the change is linear in x: climb from several starts
    ways = [np.zeros(N) for _ in range(2 * FITS)]
    for j, (a, b) in enumerate(zip(*parts)):
        ways[j][a] = (2 * y[a] - 1) / len(a)
        ways[FITS + j][b] = (2 * y_other[b] - 1) / len(b)
    ways = np.array(ways)

    def moves(x, x_other):
        return np.abs(ways[:FITS] @ x - ways[FITS:] @ x_other).sum()

    found = -1.0, None
    for _ in range(10):
        x = rng.choice([-1.0, 1.0], N)
        x_other = x.copy()
        now, better = moves(x, x_other), True
        while better:
            better = False
            for k in (*range(N), N + i):
                one, two = x.copy(), x_other.copy()
                if k < N:
                    one[k] *= -1
                two[k % N] *= -1
                if moves(one, two) > now + 1e-12:
                    x, x_other, now, better = one, two, moves(one, two), True
        if now > found[0]:
            found = now, ((x, y), (x_other, y_other))
    assert sum((x != x_other) | (y != y_other)) == 1
    return found[1]


def loss_of_folds(splitter, neighbours):
    parts = [training_parts(splitter, y) for _, y in neighbours]
    return exact_loss(parts, neighbours)


@pytest.mark.parametrize("splitter", [
    KFold(FITS), KFold(FITS, shuffle=True, random_state=0), ShuffleSplit(FITS, random_state=0),
])  # fmt: skip
def test_models_of_public_folds_lose_their_sum_at_most(splitter, worst):
    x, y = worst[0]
    assert loss_of_folds(splitter, worst) <= FITS * EPSILON * (1 + 1e-9)
    # a record that turns round, in every part that holds it, loses all that these state
    for i in (0, 7):
        turned = x.copy()
        turned[i] *= -1
        loss = loss_of_folds(splitter, ((x, y), (turned, y)))
        held = sum(i in part for part in training_parts(splitter, y))
        assert loss == pytest.approx(held * EPSILON, rel=1e-6)


def test_models_of_stratified_folds_lose_more_than_a_ledger_counts(worst, tmp_path):
    x, y = worst[0]
    with PrivacyLedger(tmp_path / "records.ledger", epsilon=10.0) as ledger:
        fits = cross_validate(MODEL, x[:, None], y, cv=FITS, return_estimator=True)["estimator"]
    assert ledger.spent()[0] == FITS * EPSILON == sum(model.privacy_.epsilon for model in fits)
    assert loss_of_folds(StratifiedKFold(FITS), worst) > 1.3 * FITS * EPSILON


class Unweighted(DPLinearSVC):
    """Is handed records as often as they were drawn."""

    def fit(self, X, y=None):
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore::dpselect.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("sampling, adds", [
    ({"bootstrap": True}, False), ({"bootstrap": False}, True),
    ({"bootstrap": False, "max_samples": 0.5}, True), ({"bootstrap": True, "max_samples": 0.2}, True),
])  # fmt: skip
def test_a_bootstrap_counts_a_record_as_often_as_it_was_drawn(sampling, adds, tmp_path):
    # (a small bootstrap may happen to draw no record more often than there are models)
    rng = np.random.default_rng(0)
    x, y = rng.choice([-1.0, 1.0], N), rng.integers(2, size=N)
    model = Unweighted(**MODEL.get_params())
    bag = BaggingClassifier(model, n_estimators=FITS, random_state=0, **sampling)
    with PrivacyLedger(tmp_path / "records.ledger", epsilon=10.0) as ledger:
        drawn = bag.fit(x[:, None], y).estimators_samples_
    assert ledger.spent()[0] == FITS * EPSILON
    times = sum(np.bincount(part, minlength=N) for part in drawn)
    turned = x.copy()
    turned[np.argmax(times)] *= -1
    loss = exact_loss((drawn, drawn), ((x, y), (turned, y)))
    assert loss == pytest.approx(max(times) * EPSILON, rel=1e-6)
    assert (loss <= ledger.spent()[0] * (1 + 1e-9)) == adds


# --- the splits of this library's own searches


def splits_of(kind, monkeypatch, y, cv, alter=None):
    """The splits that a search makes for records with labels y."""
    made = []
    original = stages.make_splits

    def spy(cv, n_samples, stream, *persons):
        made.append(original(cv, n_samples, stream, *persons))
        if alter is not None:
            made[-1] = alter(y)
        return made[-1]

    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(N, 2))
    if kind is StabilityGridSearchCV:
        search = kind(
            DPLogisticRegression(classes=[0, 1]),
            {"alpha": [0.1, 1.0]},
            epsilon=50.0,
            strategy="stability",
            cv=cv,
            random_state=0,
        )
    else:
        search = kind(
            DPLogisticRegression(alpha=0.1, perturbation="output", classes=[0, 1]),
            {"epsilon": [1.0, 10.0]},
            target=0.9,
            criterion="brier",
            method="doubling",
            cv=cv,
            on_failure="last",
            random_state=0,
        )
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        patch.setattr(stages, "make_splits", spy)
        search.fit(X, y)
    (splits,) = made
    return [np.concatenate([train, test]).tolist() for train, test in splits]


SEARCHES = [StabilityGridSearchCV, AccuracyFirstSearchCV]


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("cv", [None, 5, KFold(3)])
def test_the_splits_of_a_search_do_not_depend_on_the_labels(kind, cv, worst, monkeypatch):
    (_, y), (_, y_other) = worst
    one, other = (splits_of(kind, monkeypatch, labels, cv) for labels in (y, y_other))
    assert one == other


@pytest.mark.parametrize("kind", SEARCHES)
def test_stratified_splits_of_a_search_are_caught(kind, worst, monkeypatch):
    def stratified(y):
        return list(StratifiedKFold(FITS).split(np.zeros(N), y))

    (_, y), (_, y_other) = worst
    one, other = (splits_of(kind, monkeypatch, labels, 5, stratified) for labels in (y, y_other))
    assert one != other


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_refuses_stratified_folds_before_data(kind):
    model, grid = DPLogisticRegression(alpha=0.1, classes=[0, 1]), {"epsilon": [1.0, 2.0]}
    search = (
        kind(model, {"alpha": [0.1, 1.0]}, cv=StratifiedKFold(5))
        if kind is StabilityGridSearchCV
        else kind(model, grid, target=0.9, criterion="brier", cv=StratifiedKFold(5))
    )
    with pytest.raises(ValueError, match=r"StratifiedKFold\(\) looks at the labels"):
        search.fit(None, None)

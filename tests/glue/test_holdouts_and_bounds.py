"""What leaves the holdouts and the private bounds: widths, scales, grids and records of their own."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from dpselect import PrivacyLedger, SeededNoiseWarning, Thresholdout, ThresholdoutFeatureSelector
from dpselect.mechanisms.reusable_holdout import ReusableHoldout
from dpselect.mechanisms.selection import largest_sum
from dpselect.metrics import ClippedSquaredErrorScore, RampScore, Score
from dpselect.noise import grid_step
from dpselect.preprocessing import DPBoundsScaler
from dpselect.preprocessing.private_bounds import RANK_UNIT, bound_grid

from .cases import key, rows
from .recording import Recorder

# ---- private bounds


def table(n=333, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * [1.0, 30.0, 0.02][:p]


def bounds_of(monkeypatch, X, epsilon=0.7, tail=0.0213):
    recorder = Recorder(monkeypatch).watch(largest_sum)
    scaler = DPBoundsScaler(epsilon, tail=tail, random_state=key("bounds")).fit(X)
    (call,) = recorder.of("largest_sum")
    return scaler, call


def test_each_column_s_bounds_have_noise_of_their_own_at_their_share_of_epsilon(monkeypatch):
    X = table()
    scaler, call = bounds_of(monkeypatch, X)
    unit = scaler.standard_noise(3)
    # 2 p bounds share epsilon, and a rank moves by 1: a Gumbel scale of 2 / (epsilon / (2 p))
    assert call["noise"] == pytest.approx(2 / (0.7 / 6) * unit, abs=1e-3)
    vectors = unit.reshape(6, -1)
    assert np.abs(np.corrcoef(vectors) - np.eye(6)).max() < 0.3
    assert len(np.unique(unit)) == unit.size
    # six bounds of p columns in one choice each
    assert call["values"].shape == call["noise"].shape == unit.shape


def test_ranks_and_noise_lie_on_a_public_grid(monkeypatch):
    _, call = bounds_of(monkeypatch, table())
    values, noise = call["values"], call["noise"]
    # so no sum of the two is rounded, whatever the records
    assert (values % RANK_UNIT == 0).all()
    assert (noise % grid_step(4 * 3 / 0.7, unit=RANK_UNIT) == 0).all()
    assert values.min() < -1 and (values == 0).any()


def test_the_utility_of_a_cell_moves_by_one():
    X = table()
    other = X.copy()
    other[0] = [-1e9, 1e9, -1e9]
    found = []
    for records in (X, other):
        with pytest.MonkeyPatch.context() as patch:
            found.append(bounds_of(patch, records)[1]["values"])
    assert np.abs(found[0] - found[1]).max() == 1.0


def test_bounds_are_the_cells_that_were_chosen(monkeypatch):
    X = table()
    scaler, call = bounds_of(monkeypatch, X, epsilon=1e6)
    grid = bound_grid()
    chosen = np.sort(call.result, axis=1)
    assert (scaler.bounds_[:, 0] == grid[chosen[:, 0]]).all()
    assert (scaler.bounds_[:, 1] == grid[chosen[:, 1] + 1]).all()
    low, high = np.quantile(X, [0.0213, 1 - 0.0213], axis=0)
    assert (scaler.bounds_[:, 0] <= low + 1e-9).all() and (high - 1e-9 <= scaler.bounds_[:, 1]).all()
    assert (scaler.bounds_[:, 0] >= 1.3 * low).all() and (scaler.bounds_[:, 1] <= 1.3 * high).all()


# ---- holdouts


class Spoilt(Score):
    """A score that is not finite on some records."""

    width = 1.0

    def __init__(self, bad, where):
        self.bad, self.where = bad, where

    def __call__(self, estimator, X, y=None):
        held = X[0, 0] > 50
        return self.bad if held == (self.where == "holdout") else 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["training", "holdout"])
def test_a_score_that_is_not_finite_reaches_no_mechanism(where, bad, monkeypatch):
    recorder = Recorder(monkeypatch).watch_methods(ReusableHoldout, "answer")
    holdout = Thresholdout().fit(np.zeros((20, 1)), X_holdout=np.full((20, 1), 99.0))
    with pytest.raises(ValueError, match="not finite"):
        holdout.score(LinearRegression(), Spoilt(bad, where))
    assert not recorder.calls and holdout.uses_ == 0
    X = np.r_[np.zeros((20, 2)), np.full((20, 2), 99.0)]
    selector = ThresholdoutFeatureSelector(
        LinearRegression(),
        n_features_to_select=1,
        scoring=Spoilt(bad, where),
        public_splits=True,
        cv=[(np.arange(20), np.arange(20, 40))],
    )
    with pytest.raises(ValueError, match="not finite"):
        selector.fit(X, np.arange(40.0))
    assert not recorder.calls


@pytest.mark.parametrize("score", [RampScore(), ClippedSquaredErrorScore(3.5)], ids=repr)
def test_questions_have_the_width_of_the_score_and_the_records_of_the_holdout(
    score, monkeypatch, tmp_path
):
    recorder = Recorder(monkeypatch).watch_methods(
        ReusableHoldout, "answer", note=lambda call: call["self"].n_holdout
    )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(70, 2)), rng.integers(2, size=70)
    from dpselect import DPLogisticRegression

    model = LinearRegression()
    if isinstance(score, RampScore):
        model = DPLogisticRegression(epsilon=np.inf, classes=[0, 1])
    model.fit(X[:40], y[:40])
    ledger = PrivacyLedger(
        tmp_path / "records.ledger", epsilon=1e9, adjacency="replace one holdout record"
    )
    holdout = Thresholdout(noise_rate=0.03, budget=4, ledger=ledger).fit(
        X[:40], y[:40], X_holdout=X[40:], y_holdout=y[40:]
    )
    holdout.score(model, score)
    holdout.query(lambda X, y: X[:, 0] > 0)
    asked, question = recorder.of("answer")
    assert (asked["width"], asked.noted) == (score.width, 30)
    assert asked["train_value"] == pytest.approx(score(model, X[:40], y[:40]))
    assert asked["holdout_value"] == pytest.approx(score(model, X[40:], y[40:]))
    assert (question["width"], question.noted) == (1.0, 30)
    assert question["holdout_value"] == pytest.approx(np.mean(X[40:, 0] > 0))
    assert holdout.privacy_.epsilon == pytest.approx(2 * 4 / (0.03 * 30))
    assert holdout.privacy_.adjacency == "replace one holdout record"
    assert ledger.spent()[0] == pytest.approx(holdout.privacy_.epsilon)


def test_a_selector_asks_about_its_holdout_with_the_width_of_a_difference(monkeypatch, tmp_path):
    recorder = Recorder(monkeypatch).watch_methods(
        ReusableHoldout, "answer", note=lambda call: call["self"].n_holdout
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = X @ [1.0, 0.5, 0.0]
    parts = np.arange(60), np.arange(60, 90)
    ledger = PrivacyLedger(
        tmp_path / "records.ledger", epsilon=1e9, adjacency="replace one holdout record"
    )
    selector = ThresholdoutFeatureSelector(
        LinearRegression(),
        n_features_to_select=2,
        scoring=ClippedSquaredErrorScore(2.0),
        noise_rate=0.02,
        budget=20,
        public_splits=True,
        cv=[parts],
        ledger=ledger,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        selector.fit(X, y)
    calls = recorder.of("answer")
    # the score itself of three columns, and then by how much each of the other two improves it
    assert [call["width"] for call in calls] == [2.0] * 3 + [4.0] * 2
    assert {call.noted for call in calls} == {30}
    loss = selector.privacy_
    assert loss.epsilon == pytest.approx(2 * 20 / (0.02 * 30)) == ledger.spent()[0]
    assert loss.adjacency == "replace one holdout record"

    def score_of(columns, part):
        model = LinearRegression().fit(X[parts[0]][:, columns], y[parts[0]])
        return ClippedSquaredErrorScore(2.0)(model, X[part][:, columns], y[part])

    alone = sorted(call["holdout_value"] for call in calls[:3])
    assert alone == pytest.approx(sorted(score_of([c], parts[1]) for c in range(3)))
    first = selector.order_[0]
    gains = sorted(call["holdout_value"] for call in calls[3:])
    assert gains == pytest.approx(
        sorted(
            score_of([first, c], parts[1]) - score_of([first], parts[1]) for c in range(3) if c != first
        )
    )
    gains = sorted(call["train_value"] for call in calls[3:])
    assert gains == pytest.approx(
        sorted(
            score_of([first, c], parts[0]) - score_of([first], parts[0]) for c in range(3) if c != first
        )
    )


@pytest.mark.parametrize("seed", [None, 0])
def test_what_answers_have_cost_so_far_is_stated_for_the_records_that_all_answers_are(seed):
    X = rows(60, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        holdout = Thresholdout(0.0, 0.05, budget=3, random_state=seed).fit(X[:30], X_holdout=X[30:])
    whole = holdout.privacy_
    for _ in range(3):
        holdout.query(lambda X, y: np.full(len(X), 0.5 + np.sign(X[0, 0] - 1e-9) / 2))
        so_far = holdout.spent_
        assert (so_far.adjacency, so_far.seeded) == (whole.adjacency, seed is not None)
        assert (so_far.kind, so_far.delta) == ("ex-post", 0.0) and so_far.epsilon <= whole.epsilon

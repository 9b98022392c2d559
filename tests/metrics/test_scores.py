import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, hinge_loss, log_loss, mean_poisson_deviance

from dpselect import CertificateError
from dpselect.metrics import (
    BrierScore,
    ClippedAbsoluteErrorScore,
    ClippedSquaredErrorScore,
    HingeScore,
    IntegratedSquaredErrorScore,
    LogisticScore,
    MarginScore,
    PoissonDevianceScore,
    RampScore,
    get_score,
    margins,
)
from dpselect.metrics.regression_scores import TargetScore
from dpselect.metrics.scores import SCORES

ALL = [score for score in SCORES.values() if isinstance(score, MarginScore)]
ALL.append(RampScore(-0.5, 2.0))
GRID = np.linspace(-30, 30, 400_001)
# numbers of float64 at which products and quotients leave its range
SIZES = [0.0, 5e-324, *(10.0 ** np.arange(-322, 309, 3)).tolist(), 1.7e308, np.inf]
EVERY = np.array([*SIZES, *(-size for size in SIZES), np.nan])
BOUNDED = [score for score in SCORES.values() if hasattr(score, "penalty") and np.isfinite(score.width)]
BOUNDED += [PoissonDevianceScore(bound) for bound in (1e-100, 1e-3, 1.0, 10.0, 1e100)]
BOUNDED += [ClippedSquaredErrorScore(bound) for bound in (1e-200, 1e200)]


@pytest.mark.parametrize("score", BOUNDED, ids=repr)
def test_no_record_adds_more_to_a_score_than_its_width_says(score):
    if isinstance(score, TargetScore):
        with np.errstate(all="raise", under="ignore", over="ignore"):
            values = score.penalty(EVERY[:, None], EVERY)
    else:
        values = np.array([score.total(np.array([u])) for u in EVERY])
    assert ((0 <= values) & (values <= score.width)).all()


@pytest.mark.parametrize("score", ALL, ids=repr)
def test_lipschitz_constant_is_right_and_tight(score):
    derivatives = np.abs(np.diff(score.penalty(GRID)) / np.diff(GRID))
    assert derivatives.max() <= score.lipschitz * (1 + 1e-9)
    assert derivatives.max() >= score.lipschitz * 0.999


@pytest.mark.parametrize("score", ALL, ids=repr)
@pytest.mark.parametrize("bound", [0.0, 0.1, 0.5, 1.0, 3.0, 25.0])
def test_span_is_the_range_over_margins_up_to_the_bound(score, bound):
    values = score.penalty(np.linspace(-bound, bound, 10_001))
    assert np.isclose(score.span(bound), np.ptp(values), rtol=1e-6, atol=1e-12)
    assert np.all(np.diff(score.span(np.linspace(0, 30, 100))) >= 0)


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    return LogisticRegression().fit(X, y), X, y


def test_agrees_with_scikit_learn(binary):
    model, X, y = binary
    p = model.predict_proba(X)[:, 1]
    assert np.isclose(BrierScore()(model, X, y), -brier_score_loss(y == "yes", p))
    assert np.isclose(LogisticScore()(model, X, y), -log_loss(y == "yes", p))
    decision = model.decision_function(X)
    assert np.isclose(HingeScore()(model, X, y), -hinge_loss(y == "yes", decision))
    ramp = np.minimum(1, np.maximum(0, 1 - np.where(y == "yes", decision, -decision)))
    assert np.isclose(RampScore()(model, X, y), -ramp.mean())


def test_more_classes_are_the_mean_over_one_vs_rest_problems(binary):
    _, X, _ = binary
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LogisticRegression().fit(X, y)
    u = margins(model, X, y)
    assert u.shape == (300, 3)
    decision = model.decision_function(X)
    assert np.array_equal(u[:, 1], np.where(y == 1, decision[:, 1], -decision[:, 1]))
    assert np.isclose(RampScore()(model, X, y), -RampScore().penalty(u).mean())


def test_names():
    assert get_score("brier") == BrierScore() and get_score(RampScore(0, 2)).high == 2


@pytest.mark.parametrize("refused", ["average_precision", "neg_max_error", len, None, 3])
def test_refused_scores_say_what_to_use(refused):
    with pytest.raises(CertificateError, match="'ramp'"):
        get_score(refused)


def test_ramp_needs_a_width():
    with pytest.raises(ValueError, match="low=1.0"):
        RampScore(1.0, 1.0)


def test_clipped_squared_error():
    model = DummyRegressor(strategy="constant", constant=0.5).fit([[0]], [0])
    y = np.array([0.5, 1.0, 100.0])
    assert np.isclose(ClippedSquaredErrorScore(4.0)(model, np.zeros((3, 1)), y), -(0.25 + 4) / 3)
    r = np.linspace(-5, 5, 100_001)
    derivatives = np.abs(np.diff(np.minimum(r * r, 4.0)) / np.diff(r))
    assert 0.999 * 4.0 <= derivatives.max() <= ClippedSquaredErrorScore(4.0).lipschitz


def test_clipped_absolute_error():
    model = DummyRegressor(strategy="constant", constant=0.5).fit([[0]], [0])
    score, y = ClippedAbsoluteErrorScore(4.0), np.array([0.5, 1.0, 100.0, -1e308])
    assert np.isclose(score(model, np.zeros((4, 1)), y), -(0.5 + 4 + 4) / 4)
    r = np.linspace(-5, 5, 100_001)
    penalty = score.penalty(r, 0.0)
    derivatives = np.abs(np.diff(penalty) / np.diff(r))
    assert 0.999 <= derivatives.max() <= score.lipschitz * (1 + 1e-9)
    assert np.ptp(penalty) == score.span(0.0) == score.width == 4.0
    # what is no number counts as the worst
    with np.errstate(all="raise"):
        worst = score.penalty(np.array([1.0, np.nan, 1e308]), np.array([np.nan, 1.0, -1e308]))
    assert (worst == 4.0).all()


@pytest.mark.parametrize("bound", [0, -1.0, np.inf, np.nan])
@pytest.mark.parametrize("kind", [ClippedSquaredErrorScore, ClippedAbsoluteErrorScore])
def test_clipped_errors_need_a_bound(kind, bound):
    with pytest.raises(ValueError, match="bound"):
        kind(bound)


def test_poisson_deviance():
    score, z = PoissonDevianceScore(4.0), np.linspace(-3, 3, 60_001)
    t = np.array([0.0, 1.0, 2.5, 4.0])
    penalty = score.penalty(t[:, None], np.exp(z))
    # half of scikit-learn's where nothing is clipped
    deviance = [mean_poisson_deviance(t[1:3], np.full(2, rate)) for rate in (0.5, 3.0)]
    np.testing.assert_allclose(
        score.penalty(t[1:3, None], np.array([0.5, 3.0])).mean(axis=0), np.array(deviance) / 2
    )
    derivatives = np.abs(np.diff(penalty) / np.diff(z))
    assert 0.999 * score.lipschitz <= derivatives.max() <= score.lipschitz
    assert score.span(800.0) == score.width == 4.0
    # targets beyond the bound count as the bound, negative ones as 0, what is no number as the worst
    wild, tame = np.array([-3.0, 1e300]), np.array([0.0, 4.0])
    np.testing.assert_array_equal(score.penalty(wild, 2.0), score.penalty(tame, 2.0))
    assert (score.penalty(np.array([1.0, np.nan]), np.array([np.nan, 1.0])) == 4.0).all()
    model = DummyRegressor(strategy="constant", constant=2.0).fit([[0]], [0])
    assert score(model, np.zeros((2, 1)), wild) == -score.penalty(tame, 2.0).mean()


@pytest.mark.parametrize("bound", [0.0, 0.01, 0.5, 1.0, 3.0, 800.0])
@pytest.mark.parametrize("target_bound", [1e-3, 0.3, 1.0, 2.0, 4.0, 1e3])
def test_span_is_the_range_over_all_counts_and_rates(target_bound, bound):
    score, z = PoissonDevianceScore(target_bound), np.linspace(-bound, bound, 2001)
    with np.errstate(over="ignore"):
        penalty = score.penalty(target_bound * np.linspace(0, 1, 101)[:, None], np.exp(z))
    assert np.ptp(penalty) <= score.span(bound) * (1 + 1e-9)
    # a record may be as far off as it says, and another one not at all
    assert penalty.max() == pytest.approx(score.span(bound), rel=1e-6)


@pytest.mark.parametrize("bound", [0, -1.0, np.inf, np.nan])
def test_poisson_deviance_needs_a_bound(bound):
    with pytest.raises(ValueError, match="target_bound"):
        PoissonDevianceScore(bound)


def test_integrated_squared_error():
    class Uniform:
        def score_samples(self, X):
            return np.log(np.full(len(X), 0.5))

        def squared_integral(self):
            return 0.5

    # on [0, 2] the uniform density has int f^2 = 1/2
    assert np.isclose(IntegratedSquaredErrorScore()(Uniform(), np.zeros((3, 1))), 0.5)


class Column:
    """Predicts an array of shape (n, 1), as models that were fitted on such targets do."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return np.asarray(X)[:, :1]

    def decision_function(self, X):
        return np.asarray(X)[:, :1].repeat(2, axis=1)


@pytest.mark.parametrize("scoring", ["clipped_squared_error", "accuracy", "brier", "ramp"])
def test_no_record_counts_more_than_once(scoring):
    """Predictions of shape (n, 1) beside targets of shape (n,) would be spread out to (n, n)."""
    X, y = np.zeros((4, 1)), np.zeros(4)
    with pytest.raises(ValueError, match="count more than once"):
        get_score(scoring)(Column(), X, y)


def test_a_column_of_targets_is_a_list_of_targets():
    X, y = np.array([[0.0], [1.0], [1.0]]), np.array([0, 1, 1])
    model = DummyClassifier(strategy="uniform").fit(X, y)
    model.predict = lambda X: X[:, 0].astype(int)
    model.decision_function = lambda X: 2 * X[:, 0] - 1
    for scoring in ("accuracy", "brier", "clipped_squared_error"):
        score = get_score(scoring)
        assert score(model, X, y[:, None]) == score(model, X, y)
    assert get_score("accuracy")(model, X, y[:, None]) == 1.0


@pytest.mark.parametrize("scoring", ["brier", "ramp"])
def test_a_margin_that_is_not_a_number_counts_as_the_worst(scoring):
    model = DummyClassifier().fit([[0.0], [1.0]], [0, 1])
    model.decision_function = lambda X: np.array([np.nan, 50.0])
    assert get_score(scoring)(model, np.zeros((2, 1)), np.array([1, 1])) == pytest.approx(-0.5)

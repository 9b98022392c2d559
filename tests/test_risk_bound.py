"""Optimal values against another solver, and against neighbours that try to move them most."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone

from dpselect import CertificateError, DPLinearSVC, DPLogisticRegression, DPRidge
from dpselect.base.certificates import RiskBound, public_reach, select_by_risk_bound
from dpselect.linear_model import risk_bound
from dpselect.records.records import Weighted
from tests.trials import scales_of, solved, trial

CLASSIFIERS = [DPLogisticRegression, DPLinearSVC]


def classifier(kind=DPLogisticRegression, classes=(0, 1), **params):
    params = {"epsilon": 1.0, "alpha": 0.01, "fit_intercept": False, **params}
    return kind(classes=list(classes), **params)


def ridge(**params):
    params = {"perturbation": "output", "norm": "l2", "fit_intercept": False, **params}
    return DPRidge(**{"target_range": (-1, 1), **params})


def bound_of(model, n, p, reach):
    K = len(getattr(model, "classes", [0, 1]))
    return model.risk_bound(n, p, 1 if K == 2 else K, reach)


def values_of(models, X, y, reach):
    return models[0].optimal_values(list(map(trial, models)), X, y, reach)


def value_of(model, X, y, reach):
    return values_of([model], X, y, reach)[0]


def some_records(n, p, classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = (X @ rng.normal(size=(p, len(classes))) * 6 + rng.gumbel(size=(n, len(classes)))).argmax(1)
    return X, np.asarray(classes)[y]


def least_on_ball(objective, d, radius):
    """The least value of a smooth convex function on a ball, by SLSQP."""
    return minimize(
        objective,
        np.zeros(d),
        jac=True,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
        constraints={"type": "ineq", "fun": lambda w: radius**2 - w @ w, "jac": lambda w: -2 * w},
    ).fun


def margin_objective(model, A, sign, mu):
    loss = model.problem().loss

    def objective(w):
        u = sign * (A @ w)
        derivative = A.T @ (sign * loss.derivative(u)) / len(u)
        return loss.value(u).mean() + mu / 2 * w @ w, derivative + mu * w

    return objective


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("classes", [(0, 1), (2, 5, 7)])
@pytest.mark.parametrize("reach", [0.3, 3.0, 1e3])
def test_values_are_those_of_another_solver(kind, perturbation, classes, reach):
    X, y = some_records(300, 3, classes)
    models = [
        classifier(kind, classes, alpha=alpha, perturbation=perturbation, fit_intercept=True)
        for alpha in (1e-4, 0.3, 0.01)
    ]
    A, R = np.hstack([X, np.ones((300, 1))]), math.sqrt(2)
    positive = classes[1:] if len(classes) == 2 else classes
    values = values_of(models, X, y, reach)
    for model, value in zip(models, values):
        bound = bound_of(model, 300, 3, reach)
        mu = scales_of(model, 300, 3, len(positive)).mu
        exact = np.mean(
            [
                least_on_ball(margin_objective(model, A, np.where(y == c, 1, -1), mu), 4, reach / R)
                for c in positive
            ]
        )
        assert abs(value - exact) <= 2 * bound.inexactness + 1e-9
        assert 0 < bound.inexactness < 1e-3 * bound.sensitivity
        assert value_of(model, X, y, reach) == pytest.approx(value, abs=2 * bound.inexactness)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("reach", [0.3, 1.0])
def test_the_path_of_each_class_is_known_where_it_enters_the_ball(kind, reach, monkeypatch):
    paths, make = [], risk_bound._Path.__init__

    def made(self, *args):
        paths.append((self, args[-1]))
        make(self, *args)

    monkeypatch.setattr(risk_bound._Path, "__init__", made)
    X, y = some_records(400, 3, range(5))
    # classes of unlike sizes
    y[:300] = np.minimum(y[:300], 1)
    models = [classifier(kind, range(5), alpha=a, fit_intercept=True) for a in (1e-3, 0.1, 50.0)]
    values_of(models, X, y, reach)
    ((path, balls),) = paths
    entered = 0
    # a strong penalty asks for more
    assert path.goal == min(ball.goal for ball in balls) < 0.5 * balls[0].goal
    for _, lengths in path.evaluated:
        inside = min(M for M, length in lengths.items() if length <= path.B)
        outside = max((M for M in lengths if M < inside), default=None)
        if outside is not None:
            entered += 1
            gap = (inside - outside) * (path.B**2 - lengths[inside] ** 2) / 2
            assert gap <= path.goal
    assert entered


@pytest.mark.parametrize("perturbation", ["covariance", "objective", "output"])
@pytest.mark.parametrize("reach", [0.3, 1e3])
def test_ridge_values_are_those_of_another_solver(perturbation, reach):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.clip(X @ [3.0, -1.0, 1.0] + rng.normal(size=300), -2, 2)
    models = [
        ridge(alpha=alpha, perturbation=perturbation, target_range=(-2, 2)) for alpha in (0.3, 0.001)
    ]
    models.append(ridge(alpha=0.01, perturbation=perturbation, target_range=(-2, 2), coef_bound=0.5))
    for model, value in zip(models, values_of(models, X, y, reach)):
        bound = bound_of(model, 300, 3, reach)
        mu = scales_of(model, 300, 3).mu if perturbation == "objective" else model.alpha

        def objective(w, mu=mu):
            r = X @ w - y
            return (r @ r / 300 + mu * w @ w) / 2, X.T @ r / 300 + mu * w

        # the other bounds on the length hold for the minimiser anyway
        exact = least_on_ball(objective, 3, min(2 * min(reach, 1.0), model.coef_bound or 9))
        assert value + (y @ y) / 600 == pytest.approx(exact, abs=1e-9)
        assert 0 < bound.inexactness < 1e-3 * bound.sensitivity


def neighbours(model, p, counts, numbers):
    """Two data sets that differ in one record, from numbers; record i occurs counts[i] times."""
    k = len(counts)
    numbers = np.asarray(numbers).reshape(k + 1, p + 1)
    X = numbers[:, :p] * 2.0
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    if isinstance(model, DPRidge):
        y = np.clip(2 * numbers[:, p], -1, 1)
    else:
        K = len(model.classes)
        which = np.clip((numbers[:, p] + 1) / 2 * K, 0, K - 1).astype(int)
        y = np.asarray(model.classes)[which]
    rest = np.repeat(np.arange(k), counts)
    first, second = np.append(rest, k - 1)[:-1], np.append(rest[:-1], k)
    return (X[first], y[first]), (X[second], y[second])


def largest_change(model, p, counts, reach, seed=0, trials=60):
    """The largest difference of values that random and then guided search finds."""
    rng = np.random.default_rng(seed)

    def change(numbers):
        one, other = neighbours(model, p, counts, numbers)
        return abs(value_of(model, *one, reach) - value_of(model, *other, reach))

    size = (len(counts) + 1) * (p + 1)
    starts = list(rng.uniform(-1, 1, size=(trials, size)))
    # all agree, and the new record contradicts them
    agreeing = np.tile(np.r_[1.0, np.zeros(p - 1), 1.0], (len(counts) + 1, 1))
    agreeing[-1, 0] = -1.0
    starts.append(agreeing.ravel())
    starts.sort(key=change)
    best = 0.0
    for start in starts[-2:]:
        found = minimize(lambda v: -change(v), start, method="Nelder-Mead", options={"maxfev": 7 * size})
        best = max(best, -found.fun, change(start))
    return best


SMALL = [(p, (1,) * n) for p, n in [(1, 1), (1, 2), (2, 3), (3, 4)]]


REACHES = [(0.4, 0.01), (1.5, 1e-3), (1e3, 0.1), (1e3, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, reach, alpha, p, counts",
    # each reach and each size with either kind
    [
        (CLASSIFIERS[(i + j) % 2], *REACHES[i], *SMALL[j])
        for i in range(len(REACHES))
        for j in range(len(SMALL))
    ],
)
def test_no_small_neighbour_moves_a_value_further(kind, reach, alpha, p, counts):
    model = classifier(kind, alpha=alpha, epsilon=1e6)
    change = largest_change(model, p, counts, reach, trials=10)
    assert 0 < change <= bound_of(model, len(counts), p, reach).sensitivity


@pytest.mark.slow
@pytest.mark.parametrize("reach, alpha", [(0.3, 0.01), (1.0, 0.1), (1.0, 2.0)])
@pytest.mark.parametrize("p, counts", SMALL)
def test_no_small_neighbour_moves_a_ridge_value_further(reach, alpha, p, counts):
    model = ridge(alpha=alpha)
    change = largest_change(model, p, counts, reach, trials=40)
    assert 0 < change <= bound_of(model, len(counts), p, reach).sensitivity


ATTAINED = [
    # the ball holds the minimiser, whatever one record wants
    (classifier(alpha=1e-3, epsilon=1e6), 6, 0.4),
    (classifier(DPLinearSVC, alpha=1e-3, epsilon=1e6), 6, 0.4),
    (ridge(alpha=1e-3), 6, 0.3),
    # without it, what one record wants is outvoted by many
    (classifier(alpha=0.05, epsilon=1e6), 400, 1e3),
    (classifier(DPLinearSVC, alpha=0.05, epsilon=1e6), 400, 1e3),
    (ridge(alpha=0.25), 400, 1e3),
]


@pytest.mark.parametrize("model, n, reach", ATTAINED)
def test_bounds_are_attained_and_half_of_them_would_not_hold(model, n, reach):
    sensitivity = bound_of(model, n, 1, reach).sensitivity
    best = 0.0
    high = 1 if isinstance(model, DPRidge) else model.classes[1]
    # long rows that would be moved far, among rows that make the model long
    for length in np.linspace(0.2, 1, 33):
        X, y = np.full((n, 1), length), np.full(n, high)
        X[0] = 1.0
        if isinstance(model, DPRidge):
            y = y.astype(float)
        other_X, other_y = X.copy(), y.copy()
        other_X[0], other_y[0] = -1.0, high
        best = max(best, abs(value_of(model, X, y, reach) - value_of(model, other_X, other_y, reach)))
    assert 0.85 * sensitivity <= best <= sensitivity


def moved_by_rounding(model, n=300):
    """How far a value moves in float64 if one person has the same row several times."""
    furthest = 0.0
    for seed in range(20):
        X, y = some_records(n, 3, (0, 1), seed)
        times = np.ones(n, dtype=int)
        times[0] = 2 + seed % 10
        persons = np.arange(n)
        once, often = (
            values_of(
                [model],
                np.repeat(X, t, axis=0),
                Weighted.of(np.repeat(y, t), None, np.repeat(persons, t)),
                1.0,
            )[0]
            for t in (np.ones(n, dtype=int), times)
        )
        furthest = max(furthest, abs(once - often))
    return furthest, model.risk_bound(n, 3, 1, 1.0).sensitivity


def test_rounding_moves_no_value_further_than_the_least_span_allows(monkeypatch):
    """Losses of nearly flat models differ by less than float64 rounds their mean."""
    model = classifier(alpha=1e28)
    moved, sensitivity = moved_by_rounding(model)
    assert 0 < moved <= 1e-3 * sensitivity
    monkeypatch.setattr(risk_bound, "LEAST_SPAN", 0.0)
    moved, sensitivity = moved_by_rounding(model)
    assert moved > 3 * sensitivity


def test_a_value_without_the_ball_moves_further():
    model = classifier(alpha=1e-3, epsilon=1e6)
    sensitivity = bound_of(model, 6, 1, 0.4).sensitivity
    X, y = np.ones((6, 1)), np.ones(6, dtype=int)
    other = np.r_[[[-1.0]], X[1:]]
    for reach, further in ((0.4, False), (1e3, True)):
        moved = abs(value_of(model, X, y, reach) - value_of(model, other, y, reach))
        assert bool(moved > 1.2 * sensitivity) is further


def test_ridge_without_a_square_off_would_move_further_than_is_charged():
    """The span 2 U Y needs y^2 / 2 taken off every loss."""
    model, n, reach = ridge(alpha=1e-3), 6, 0.3
    sensitivity = bound_of(model, n, 1, reach).sensitivity
    X, y = np.ones((n, 1)), np.full(n, 1.0)
    y[0] = 0.3
    other_X, other_y = X.copy(), y.copy()
    other_X[0], other_y[0] = -1.0, 1.0
    values = [value_of(model, *D, reach) for D in ((X, y), (other_X, other_y))]
    full = [v + (t @ t) / (2 * n) for v, t in zip(values, (y, other_y))]
    assert abs(values[0] - values[1]) <= sensitivity < abs(full[0] - full[1])


@pytest.mark.parametrize("reach", [pytest.param(0.5, marks=pytest.mark.slow), 1e3])
def test_three_classes_move_no_further_than_two(reach):
    model = classifier(classes=(0, 1, 2), alpha=0.05, epsilon=1e6)
    binary = bound_of(classifier(alpha=0.05, epsilon=1e6), 3, 2, reach).sensitivity
    sensitivity = bound_of(model, 3, 2, reach).sensitivity
    assert sensitivity == pytest.approx(binary, rel=1e-3)
    assert 0 < largest_change(model, 2, (1, 1, 1), reach, trials=5) <= sensitivity


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("classes", [(0, 1), (2, 5, 7)])
def test_every_solve_is_as_exact_as_each_bound_counts_on(kind, classes, monkeypatch):
    X, y = some_records(200, 2, classes)
    models = [classifier(kind, classes, alpha=alpha, epsilon=1e3) for alpha in (3.0, 1e-8, 1e-4)]
    solves, minimise_all = [], risk_bound.minimise

    def seen(*args, mu, tau, **kwargs):
        solves.append((mu, tau))
        return minimise_all(*args, mu=mu, tau=tau, **kwargs)

    monkeypatch.setattr(risk_bound, "minimise", seen)
    values_of(models, X, y, 0.3)
    M, taus = (np.concatenate(column) for column in zip(*solves))
    balls = [risk_bound._Ball(t.calibration(t.records(X, y).shape), 0.3) for t in map(trial, models)]
    assert len({ball.tau for ball in balls}) == 3
    for ball in balls:
        # a candidate's value lies on the path from its own mu on
        assert (M == ball.mu).any() and (taus[M >= ball.mu] <= ball.tau).all()


def test_candidates_share_one_path():
    """Values are those of the candidates alone, in any order and whatever else is asked."""
    X, y = some_records(200, 2, (0, 1))
    models = [
        classifier(kind, alpha=alpha, norm=norm)
        for alpha in (1e-4, 3.0, 1e-2)
        for kind in CLASSIFIERS
        for norm in ("l1", "l2")
    ]
    together = values_of(models, X, y, 2.0)
    for model, value in zip(models, together):
        gap = 2 * bound_of(model, 200, 2, 2.0).inexactness
        assert value_of(model, X, y, 2.0) == pytest.approx(value, abs=gap)
    # more regularisation, higher value
    assert together[0] < together[8] < together[4]


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_array, pd.DataFrame])
@pytest.mark.parametrize("model", [classifier(), ridge()])
def test_rows_in_any_container(form, model):
    X, y = some_records(60, 3, (0, 1))
    given = form(X, columns=["a", "b", "c"]) if form is pd.DataFrame else form(X)
    assert_allclose(value_of(model, given, y, 2.0), value_of(model, X, y, 2.0), rtol=1e-9)


@pytest.mark.parametrize("data_norm", [1e-3, 1.0, 1e3])
def test_units_of_the_columns_do_not_matter(data_norm):
    X, y = some_records(100, 2, (0, 1))
    model = classifier(alpha=0.02 * data_norm**2, data_norm=data_norm)
    plain = classifier(alpha=0.02)
    bound, expected = bound_of(model, 100, 2, 2.0), bound_of(plain, 100, 2, 2.0)
    assert bound.sensitivity == pytest.approx(expected.sensitivity, rel=1e-5)
    assert bound.forecast == pytest.approx(expected.forecast, rel=1e-5)
    assert bound.ball * data_norm == pytest.approx(expected.ball)
    value = value_of(model, X * data_norm, y, 2.0)
    assert value == pytest.approx(value_of(plain, X, y, 2.0), abs=2 * bound.inexactness)


def test_rows_are_clipped():
    X, y = some_records(50, 2, (0, 1))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for model in (classifier(), ridge()):
        assert value_of(model, 1e6 * X, y, 2.0) == pytest.approx(value_of(model, X, y, 2.0))


@pytest.mark.parametrize("n", [1, 10, 10**4, 10**6])
@pytest.mark.parametrize("alpha", [1e-5, 1e-2, 10.0, "auto"])
@pytest.mark.parametrize("perturbation", ["objective", "output"])
def test_exactness_costs_little(n, alpha, perturbation):
    model = classifier(alpha=alpha, perturbation=perturbation)
    bound = bound_of(model, n, 5, 5.0)
    assert bound.inexactness < 0.02 * bound.sensitivity
    assert bound.sensitivity * n < 10.2


@pytest.mark.parametrize(
    "model",
    [
        classifier(alpha=0.1, perturbation="objective"),
        classifier(alpha=0.1, perturbation="output"),
        classifier(alpha=0.1, norm="l1"),
        ridge(alpha=0.1),
        ridge(alpha=0.1, perturbation="objective"),
        ridge(alpha=0.1, perturbation="covariance", norm="l1"),
    ],
)
def test_forecast_falls_with_records_and_epsilon(model):
    at = bound_of(model, 10**4, 20, 5.0).forecast
    assert bound_of(model, 10**5, 20, 5.0).forecast == pytest.approx(at / 100, rel=0.1)
    epsilon = model.epsilon
    try:
        assert bound_of(model.set_params(epsilon=10.0), 10**4, 20, 5.0).forecast < at / 20
        assert bound_of(model.set_params(epsilon=math.inf), 10**4, 20, 5.0).forecast == 0
    finally:
        model.set_params(epsilon=epsilon)


def test_forecast_is_of_the_right_size():
    """Rows in all directions alike, where the guess of the curvature is too high by intention."""
    rng = np.random.default_rng(0)
    n, d = 2000, 10
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 2, n)
    A, sign = X, np.where(y == 1, 1, -1)
    for perturbation, low, high in (("objective", 0.03, 1.0), ("output", 0.7, 1.3)):
        model = classifier(alpha=0.02, perturbation=perturbation)
        mu = scales_of(model, n, d).mu
        risk = margin_objective(model, A, sign, mu)
        models = [clone(model).set_params(random_state=seed) for seed in range(300)]
        risks = [risk(w)[0] for w in solved(models, X, y)[0, :, 0]]
        excess = np.mean(risks) - value_of(model, X, y, 1e3)
        assert low * excess < bound_of(model, n, d, 1e3).forecast < high * excess


@pytest.mark.slow
def test_selection_weighs_values_forecasts_and_noise():
    unit = ("loss",)
    one, other = RiskBound(1e-3, 0, 0.0, 1, unit), RiskBound(1e-2, 0, 0.2, 1, unit)
    assert select_by_risk_bound([0.5, 0.4], [one, other], math.inf) == 0
    assert select_by_risk_bound([0.5, 0.2], [one, other], math.inf) == 1
    for gap in (0.0, 0.05):
        picks = [select_by_risk_bound([0.5, 0.3 - gap], [one, other], 0.5, seed) for seed in range(4000)]
        # both scales are (1e-3 + 1e-2) / 0.5
        assert np.mean(picks) == pytest.approx(1 - math.exp(-gap / 0.022) / 2, abs=0.04)


def test_one_candidate_is_not_selected_with_noise():
    assert select_by_risk_bound([0.5], [RiskBound(1.0, 0, 0, 1, ())], 1e-3) == 0


def test_different_losses_are_not_compared():
    bounds = [bound_of(classifier(), 10, 2, 1.0), bound_of(classifier(DPLinearSVC), 10, 2, 1.0)]
    with pytest.raises(CertificateError, match="LogisticLoss.*stability"):
        select_by_risk_bound([0.5, 0.5], bounds, 1.0)
    bounds = [bound_of(ridge(target_range=(-t, t)), 10, 2, 1.0) for t in (1.0, 2.0)]
    with pytest.raises(CertificateError, match="1.0.*2.0"):
        select_by_risk_bound([0.5, 0.5], bounds, 1.0)


def test_reach_grows_with_records_up_to_a_limit():
    reaches = [public_reach(n, 10, 0.1) for n in (10**3, 10**4, 2 * 10**4, 10**6)]
    assert reaches[0] is None and 2 <= reaches[1] < reaches[2] <= reaches[3] == 10
    assert public_reach(10**4, 100, 0.05) is None

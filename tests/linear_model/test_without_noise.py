"""Without privacy, models are those of scikit-learn and statsmodels, whatever the bounds on rows are."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge

from dpselect import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.linear_model.linear_noise import LinearNoise
from dpselect.records import PublicShape

INF, N, ALPHA = float("inf"), 2000, 1e-3
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, 3)) / 2
Z = X @ [2.0, -1.0, 0.0]
LABELS = (Z + RNG.logistic(size=N) > 0.3).astype(int)
COUNTS = np.minimum(RNG.poisson(np.exp(Z)), 30)
TARGETS = Z + 0.3 * RNG.normal(size=N)
ROWS = np.column_stack([X, np.ones(N)])


def newton(rows, derivatives, n_steps=50, alpha=ALPHA):
    """The minimiser of a mean loss with the penalty, from its first and second derivatives."""
    w = np.zeros(rows.shape[1])
    for _ in range(n_steps):
        first, second = derivatives(rows @ w)
        curvature = (rows * second[:, None]).T @ rows / N + alpha * np.eye(len(w))
        w -= np.linalg.solve(curvature, rows.T @ first / N + alpha * w)
    return w


def pseudo_huber(z):
    length = np.sqrt(1 + (z - TARGETS) ** 2)
    return (z - TARGETS) / length, length**-3


OTHERS = {"fit_intercept": False, "tol": 1e-14, "max_iter": 10_000}
EXACT = {
    "logistic": (
        DPLogisticRegression(INF, classes=[0, 1], alpha=ALPHA, max_derivative=None),
        LABELS,
        lambda: (
            LogisticRegression(C=1 / (ALPHA * N), solver="newton-cholesky", **OTHERS)
            .fit(ROWS, LABELS)
            .coef_[0]
        ),
    ),
    "poisson": (
        DPPoissonRegressor(INF, target_bound=40.0, alpha=ALPHA),
        COUNTS,
        lambda: (
            PoissonRegressor(alpha=ALPHA, solver="newton-cholesky", **OTHERS).fit(ROWS, COUNTS).coef_
        ),
    ),
    # unit 1: an eighth of the range
    "huber": (
        DPHuberRegressor(INF, target_range=(-4, 4), alpha=ALPHA),
        TARGETS,
        lambda: newton(ROWS, pseudo_huber),
    ),
    "ridge": (
        DPRidge(INF, target_range=(-4, 4), alpha=ALPHA),
        TARGETS,
        lambda: Ridge(alpha=ALPHA * N, fit_intercept=False, tol=1e-14).fit(ROWS, TARGETS).coef_,
    ),
}


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_a_loose_bound_on_rows_changes_nothing(name, twin, monkeypatch):
    if twin:  # its solver ends where the bound says that noise would hide the rest
        if name == "ridge":  # without a solver
            return
        monkeypatch.setattr(LinearNoise, "at_bounds", lambda self, *bounds: self)
    model, y, exact = EXACT[name]
    exact, worst = exact(), 0.0
    for data_norm in 10.0 ** np.arange(7):
        fitted = clone(model).set_params(data_norm=float(data_norm)).fit(X, y)
        found = np.append(np.ravel(fitted.coef_), fitted.intercept_)
        worst = max(worst, np.linalg.norm(found - exact) / np.linalg.norm(exact))
    assert (worst <= 1e-6) == (not twin)


UNPENALISED = {
    "logistic": lambda: (
        LogisticRegression(C=np.inf, solver="newton-cholesky", **OTHERS).fit(ROWS, LABELS).coef_[0]
    ),
    "poisson": lambda: (
        PoissonRegressor(alpha=0, solver="newton-cholesky", **OTHERS).fit(ROWS, COUNTS).coef_
    ),
    "huber": lambda: newton(ROWS, pseudo_huber, alpha=0.0),
    "ridge": lambda: LinearRegression(fit_intercept=False).fit(ROWS, TARGETS).coef_,
}


@pytest.mark.parametrize("alpha", [0, 0.0, 1e-100, 1e-14])
@pytest.mark.parametrize("name", UNPENALISED)
def test_no_penalty(name, alpha):
    """Of 0 and of what is as good as 0, at any bound: rounding does not end the solver at 0."""
    model, y, _ = EXACT[name]
    exact = UNPENALISED[name]()
    for data_norm in (1.0, 1e6):
        fitted = clone(model).set_params(alpha=alpha, data_norm=data_norm).fit(X, y)
        found = np.append(np.ravel(fitted.coef_), fitted.intercept_)
        assert np.linalg.norm(found - exact) <= 1e-6 * np.linalg.norm(exact)


@pytest.mark.parametrize("name", UNPENALISED)
@pytest.mark.parametrize("epsilon, alpha", [(1.0, 0.0), (INF, False), (INF, -1.0), (INF, float("nan"))])
def test_with_noise_there_is_a_penalty(name, epsilon, alpha):
    model, y, _ = EXACT[name]
    with pytest.raises((ValueError, TypeError), match="alpha"):
        clone(model).set_params(epsilon=epsilon, alpha=alpha).fit(X, y)
    if epsilon < INF and name != "ridge":  # as a search would train it
        with pytest.raises(ValueError, match="alpha=0.0 is not allowed"):
            clone(model).set_params(alpha=alpha).calibration(PublicShape(N, 3), epsilon)


def test_separable_classes_and_equal_columns_have_a_model():
    labels = (Z > 0).astype(int)
    model = DPLogisticRegression(INF, classes=[0, 1], alpha=0, data_norm=10.0).fit(X, labels)
    assert model.score(X, labels) > 0.999 and np.isfinite(model.coef_).all()
    doubled = DPHuberRegressor(INF, target_range=(-4, 4), alpha=0, data_norm=10.0).fit(
        X[:, [0, 0]], TARGETS
    )
    assert doubled.coef_[0] == pytest.approx(doubled.coef_[1], rel=1e-2)


def test_a_search_without_noise_takes_it():
    grid = {"alpha": [0.0, 10.0]}
    model = DPLogisticRegression(classes=[0, 1])
    search = StabilityGridSearchCV(model, grid, epsilon=INF).fit(X, LABELS)
    assert search.best_params_ == {"alpha": 0.0} and search.refit_time_ >= 0


def test_alpha_auto_follows_the_bound():
    """As is documented, and not the rows."""
    model = DPLinearSVC(INF, classes=[0, 1], alpha=ALPHA)
    tight, loose = (clone(model).set_params(data_norm=r).fit(X, LABELS) for r in (1.0, 1e6))
    assert loose.coef_ == pytest.approx(tight.coef_, rel=1e-6)
    auto = [
        DPHuberRegressor(INF, target_range=(-4, 4), data_norm=r).fit(X, TARGETS).coef_[0]
        for r in (1.0, 300.0)
    ]
    assert abs(auto[1]) < 0.9 * abs(auto[0])


def test_rows_beyond_the_bound_are_clipped_as_before():
    model, y, _ = EXACT["huber"]
    longer = np.vstack([X, [[3.0, 4.0, 0.0]]])
    clipped = np.vstack([X, [[0.6, 0.8, 0.0]]])
    one, other = (
        clone(model).set_params(data_norm=1.0).fit(rows, np.append(y, 1.0)).coef_
        for rows in (longer, clipped)
    )
    assert one == pytest.approx(other, rel=1e-9)
    zero = clone(model).fit(np.zeros_like(X), y)
    assert not zero.coef_.any() and abs(zero.intercept_ - np.median(TARGETS)) < 0.1


@pytest.mark.parametrize("name", ["logistic", "huber", "poisson"])
def test_with_privacy_the_solver_asks_no_row_for_its_length(name, monkeypatch):
    """How exactly it solves is public there."""
    model, y, _ = EXACT[name]

    def refused(rows):
        raise AssertionError

    monkeypatch.setattr("dpselect.linear_model.model.largest_norm", refused)
    clone(model).set_params(epsilon=1.0).fit(X, y)
    with pytest.raises(AssertionError):
        clone(model).fit(X, y)

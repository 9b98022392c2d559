"""What passes over the rows tell of a table of problems, beside sums over rows one by one."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from dpselect.linear_model.design import Rows
from dpselect.linear_model.losses import (
    HuberHingeLoss,
    LogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
)
from dpselect.linear_model.problems import IndependentColumns, Problems, mean_losses
from dpselect.rows import Parts, in_part

from .tables import problem, rows_of

J = 4
LOSSES = [LogisticLoss(), HuberHingeLoss(), PoissonLoss(2.0), PseudoHuberLoss(0.5, 2.0)]


def split(p):
    X = p["design"].X
    return Parts.from_splits(list(KFold(J).split(X)), X)


def table(p, loss, parts):
    """The problems on all parts; those of one column differ by their part only."""
    mu, linear = (np.repeat(p[name][None], J, axis=0) for name in ("mu", "linear"))
    return Problems(p["design"], p["targets"], p["which"], loss, mu, linear, parts)


def check_factors(p, curvature, factors, numbers, d, k):
    """Their product with any vector is what the dense inverse makes of it, and 0 elsewhere."""
    q = np.random.default_rng(9).normal(size=(d + 1, J * k))
    solved = factors.solve(q, k)
    for number in range(J * k):
        expected = np.zeros(d + 1)
        if number % k in numbers % k:
            H = curvature(number) + p["mu"][number % k] * np.eye(d + 1)
            expected = np.linalg.solve(H, q[:, number])
        np.testing.assert_allclose(
            solved[:, number], expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max()
        )


@pytest.mark.parametrize("chosen", [slice(None), slice(1, None, 3)], ids=["all", "some"])
@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients(loss, K, chosen):
    d, k = 5, 7
    p = problem(60, d, k, seed=6, K=K, loss=loss)
    parts, A = split(p), rows_of(p["design"])
    numbers = np.arange(J * k)[chosen]
    W = np.random.default_rng(6).normal(size=(d + 1, len(numbers)))
    found = table(p, loss, parts).gradients(W, numbers)
    for w, g, number in zip(W.T, found.T, numbers):
        j, column = divmod(number, k)
        rows = in_part(parts.train, j)
        y, a = p["targets"][rows, p["which"][column]], A[rows]
        expected = a.T @ loss.derivative(a @ w, y) / rows.sum()
        expected += p["mu"][column] * w + p["linear"][:, column]
        np.testing.assert_allclose(g, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_curvatures_are_means_over_the_parts_of_a_column():
    d, k, loss = 5, 7, LogisticLoss()
    p = problem(60, d, k, seed=7, K=3)
    p["mu"] = np.maximum(p["mu"], 1e-3)
    parts, A = split(p), rows_of(p["design"])
    numbers = np.array([1, 2, 8, 9, 15, 16, 23])  # columns 1 and 2, on parts 0, 1, 2; and 3
    W = np.random.default_rng(7).normal(size=(d + 1, len(numbers)))

    def curvature(number):
        column, total = number % k, []
        for w, n in zip(W.T, numbers):
            if n % k == column:
                rows = in_part(parts.train, n // k)
                y, a = p["targets"][rows, p["which"][column]], A[rows]
                total.append((a.T * loss.second_derivative(a @ w, y)) @ a / rows.sum())
        return np.mean(total, axis=0)

    factors = table(p, loss, parts).curvature_factors(W, numbers)
    check_factors(p, curvature, factors, numbers, d, k)


@pytest.mark.parametrize("d, k", [(2, 6), (2, 100), (30, 6)])
def test_at_zero_one_curvature_serves_all_columns(d, k, monkeypatch):
    p, loss = problem(60, d, k, seed=8, K=3), LogisticLoss()
    p["mu"][::2] = 0.25
    parts, A, everything = split(p), rows_of(p["design"]), np.arange(J * k)
    made, gram = [], Rows.gram
    monkeypatch.setattr(Rows, "gram", lambda *args: made.append(1) or gram(*args))
    factors = table(p, loss, parts).curvature_factors(np.zeros((d + 1, J * k)), everything)
    assert len(made) == 1
    masks = (in_part(parts.train, j) for j in range(J))
    H = sum(A[t].T @ A[t] / t.sum() for t in masks) / J * loss.second_derivative(np.zeros(1))
    check_factors(p, lambda number: H, factors, everything, d, k)


@pytest.mark.parametrize("loss", LOSSES[1:], ids=repr)
def test_mean_losses(loss):
    p = problem(300, 4, 7, seed=4, K=3, loss=loss)
    W = np.random.default_rng(4).normal(size=(5, 7))
    expected = loss.value(rows_of(p["design"]) @ W, p["targets"][:, p["which"]]).mean(axis=0)
    found = mean_losses(p["design"], p["targets"], p["which"], loss, W)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_moments_are_those_of_the_rows_and_the_mean_is_shrunk(loss, weighted):
    d, k = 5, 3
    p = problem(60, d, k, seed=8, K=2, loss=loss, spread=0.3)
    rng = np.random.default_rng(8)
    w = rng.uniform(0.0, 2.0, size=60) if weighted else np.ones(60)
    p["design"].weight = w[:, None] if weighted else None
    A, W = rows_of(p["design"]), rng.normal(size=(d + 1, k))
    mean, variance, curvature = Problems(
        p["design"], p["targets"], p["which"], loss, p["mu"][None], p["linear"][None]
    ).moments(W)
    expected = w @ A / w.sum()
    spread = w @ (A - expected) ** 2 / w.sum()
    np.testing.assert_allclose(variance[:, 0], spread, rtol=1e-10, atol=1e-15)
    shrunk = max(0.0, 1 - spread.sum() / 60 / (expected[:-1] ** 2).sum())
    np.testing.assert_allclose(mean[:-1, 0], shrunk * expected[:-1], rtol=1e-10)
    assert mean[-1, 0] == pytest.approx(p["design"].constant)
    second = loss.second_derivative(A @ W, p["targets"][:, p["which"]].astype(float))
    np.testing.assert_allclose(curvature, w @ second / 60, rtol=1e-10)


def test_the_inverse_of_independent_columns():
    d, k = 5, 3
    p, rng = problem(60, d, k, seed=9), np.random.default_rng(9)
    problems = table(p, LogisticLoss(), split(p))
    mean, variance = rng.normal(size=(d + 1, 1)), rng.uniform(size=(d + 1, 1))
    curvature = rng.uniform(size=k)
    factors, q = IndependentColumns(problems, mean, variance, curvature), rng.normal(size=(d + 1, J * k))
    for number, solved in enumerate(factors.solve(q, k).T):
        c, mu = curvature[number % k], p["mu"][number % k]
        H = mu * np.eye(d + 1) + c * (np.diag(variance[:, 0]) + mean @ mean.T)
        np.testing.assert_allclose(H @ solved, q[:, number], rtol=1e-6, atol=1e-9)
    # the factor that makes the last step fit: of a quarter of the curvature, 4 for all steps alike
    s = factors.solve(q, k)
    correct = factors.correction(4 * s, q, 1 / (4 * s * q).sum(axis=0))
    np.testing.assert_allclose(correct, 4.0, rtol=1e-9)
    np.testing.assert_array_equal(factors.correction(s, q, np.zeros(J * k)), 1.0)

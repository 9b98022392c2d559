"""Gaussian noise in the objective: the lemma and the theorems of its page, by independent quadrature."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpselect.accounting.gaussian import gaussian_mu
from dpselect.mechanisms.gaussian_objective import (
    largest_kappa,
    objective_mu,
    signless_mu,
    tail_bounds,
)

CORRELATIONS = [1.0, 0.9999, 0.99, 0.9, 0.5, 0.0, -0.5, -0.9, -1.0]
BUDGETS = [(0.01, 1e-8), (0.1, 1e-6), (0.3, 1e-4), (1.0, 1e-6), (3.0, 1e-3), (8.0, 1e-6)]


def losses(m, kappa, rho, x, y, s):
    """The bound on the loss at the noise (x, y), for the slope s and the worse of the other slopes."""
    own = m / 2 * s * x + m**2 / 8 * s**2 + kappa * s * (1 - s)
    return own + np.maximum(0, m / 2 * y + m**2 / 8 * (1 + 2 * rho * s))


def exceeds(m, kappa, t, rho):
    """P(M > t) by quadrature over V, and for each by bisection in U, in which M grows."""
    r, q = math.sqrt((1 + rho) / 2), math.sqrt((1 - rho) / 2)
    V, weights = np.polynomial.hermite_e.hermegauss(64)
    weights = weights / weights.sum()
    s = np.linspace(0, 1, 101)[:, None]
    low, high = np.full(len(V), -30.0), np.full(len(V), 30.0)
    for _ in range(40):
        u = (low + high) / 2
        above = losses(m, kappa, rho, r * u + q * V, r * u - q * V, s).max(axis=0) > t
        low, high = np.where(above, low, u), np.where(above, u, high)
    return weights @ norm.sf(high)


def spent(m, kappa, epsilon, rho):
    """E(1 - exp(epsilon - M))_+, as an integral of tails."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    t = epsilon + 3 * m * (1 + nodes)
    tails = np.array([exceeds(m, kappa, level, rho) for level in t])
    return 3 * m * weights @ (np.exp(epsilon - t) * tails)


@pytest.mark.parametrize("epsilon, delta", BUDGETS)
@pytest.mark.parametrize("times", [1.0, 1.3, 3.0])
def test_lemma_1(epsilon, delta, times):
    m, t = objective_mu(epsilon, delta), times * epsilon
    tails = [exceeds(m, largest_kappa(epsilon), t, rho) for rho in CORRELATIONS]
    assert max(tails) <= norm.sf(t / m - m / 2) * (1 + 1e-6)
    # where both records point the same way nothing is given away
    assert tails[0] == pytest.approx(norm.sf(t / m - m / 2), rel=1e-4)


def test_more_curvature_is_not_free():
    epsilon, delta = 1.0, 1e-6
    m = objective_mu(epsilon, delta)
    assert spent(m, epsilon / 2, epsilon, 1.0) == pytest.approx(delta, rel=1e-3)
    assert spent(m, epsilon / 2, epsilon, 0.99) <= delta
    assert spent(m, epsilon, epsilon, 1.0) > 2 * delta


@pytest.mark.parametrize("epsilon, delta", BUDGETS)
def test_one_problem_has_the_noise_of_a_gaussian_mechanism(epsilon, delta):
    m = objective_mu(epsilon, delta)
    assert m <= gaussian_mu(epsilon, delta) and epsilon / m - m / 2 >= 2 - 1e-12
    if delta <= 0.003 * epsilon:
        assert m == gaussian_mu(epsilon, delta)


def test_a_large_delta_does_not_leave_the_lemma():
    m = objective_mu(0.1, 0.1)
    assert m < gaussian_mu(0.1, 0.1) / 2 and 0.1 / m - m / 2 == pytest.approx(2)


@pytest.mark.parametrize("m, kappa", [(0.02, 0.0), (0.02, 0.005), (0.2, 0.05), (0.4, 0.01), (1.5, 0.8)])
def test_tails_hold_for_every_correlation(m, kappa):
    t = np.linspace(0, max(2 * kappa, 2 * m + m * m / 2), 7)[1:]
    bounds = tail_bounds(m, kappa, t, m)
    exact = np.array(
        [[exceeds(m, kappa, level, rho) for level in t] for rho in np.cos(np.linspace(0, np.pi, 13))]
    )
    assert (exact <= bounds).all()
    # and they are of use, but for the smallest losses, which do not matter
    assert (bounds[2:] <= 1.25 * exact.max(axis=0)[2:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("n_problems", [2, 3, 10])
def test_several_problems_spend_what_a_sum_of_losses_does(n_problems):
    epsilon, delta = 1.0, 1e-3
    m, kappa = objective_mu(epsilon, delta, n_problems), largest_kappa(epsilon, n_problems)
    rng = np.random.default_rng(0)
    for rho in (1.0, 0.6, -1.0):
        z = rng.standard_normal((2, 200_000, n_problems))
        x, y = z[0], rho * z[0] + math.sqrt(1 - rho**2) * z[1]
        total = np.zeros(len(x))
        for k in range(n_problems):
            grid = np.linspace(0, 1, 9)[:, None]
            total += losses(m, kappa, rho, x[:, k], y[:, k], grid).max(axis=0)
        gaps = np.maximum(1 - np.exp(epsilon - total), 0)
        assert gaps.mean() <= delta + 5 * gaps.std() / math.sqrt(len(gaps))
        if rho == 1.0:  # close to the bound, and a noise of 1 / K is far from it
            assert gaps.mean() > 0.1 * delta


@pytest.mark.parametrize("epsilon, delta", [(1e-9, 0.999), (1e3, 1e-320), (1e6, 1e-6), (1e300, 0.5)])
def test_any_budget_has_some_noise(epsilon, delta):
    m = objective_mu(epsilon, delta, 3)
    assert 0 < m <= objective_mu(epsilon, delta) and 0 < signless_mu(delta, ((1.0, epsilon),)) < np.inf
    # the curvature that is free is that for which the noise was computed
    assert largest_kappa(epsilon, 3) == largest_kappa(min(epsilon, 1e3), 3)


@pytest.mark.slow
def test_classes_share_a_budget_better_than_by_halves():
    for n_problems, gain in [(2, 1.3), (3, 1.6), (10, 2.5)]:
        m = objective_mu(1.0, 1e-6, n_problems)
        assert m > gain * gaussian_mu(1.0 / n_problems, 1e-6 / n_problems)
        assert m < gaussian_mu(1.0, 1e-6) / math.sqrt(n_problems)


# --- gradients whose sign is not fixed


def signless_spent(m, curved, epsilon, rho, size=241, reach=7.5):
    """E(1 - exp(epsilon - M))_+ for slopes s in [-1, 1] that are curved(|s|), on a grid of noise."""
    r, q = math.sqrt((1 + rho) / 2), math.sqrt((1 - rho) / 2)
    u = np.linspace(-reach, reach, size)
    U, V = np.meshgrid(u, u)
    x, y = r * U + q * V, r * U - q * V
    largest = np.full(U.shape, -np.inf)
    for s in np.linspace(-1, 1, 65):
        for other in (-1, 1):
            moved = m / 2 * (s * x + other * y) + m**2 / 8 * (s * s + 1 + 2 * rho * s * other)
            largest = np.maximum(largest, moved + math.log1p(curved(abs(s))))
    weights = np.exp(-(U**2 + V**2) / 2) * (u[1] - u[0]) ** 2 / (2 * math.pi)
    return (weights * np.maximum(1 - np.exp(np.minimum(epsilon - largest, 0)), 0)).sum()


def huber_parts(epsilon, kappa, n_parts=8):
    ends = [i / n_parts for i in range(n_parts + 1)]
    return tuple(
        (b, epsilon - math.log1p((1 - a * a) ** 1.5 * kappa)) for a, b in zip(ends[:-1], ends[1:])
    )


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-3), (3.0, 1e-4)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.385])
def test_theorem_4(epsilon, delta, share):
    kappa = share * epsilon
    for parts, curved in (
        (huber_parts(epsilon, kappa), lambda s: (1 - s * s) ** 1.5 * kappa),
        (((1.0, epsilon - math.log1p(kappa)),), lambda s: kappa),
    ):
        m = signless_mu(delta, parts)
        found = [signless_spent(m, curved, epsilon, rho) for rho in (1.0, 0.99, 0.7, 0.0)]
        assert max(found) <= delta * 1.005  # what the grid is off by, where the bound is attained
        if len(parts) == 1 and delta < 0.003 * epsilon:
            # both signs are there if the records pull the same way or apart
            assert found[0] == pytest.approx(delta, rel=0.02)
    # the noise of one sign, or without a charge for what curves
    forgets = gaussian_mu(epsilon, delta) if share == 0 else signless_mu(delta, ((1.0, epsilon),))
    assert signless_spent(forgets, lambda s: kappa, epsilon, 1.0) > 1.5 * delta


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon, delta",
    [
        (0.05, 1e-9),
        (0.05, 1e-3),
        (0.2, 1e-7),
        (0.5, 1e-5),
        (2.0, 1e-9),
        (6.0, 1e-9),
        (6.0, 1e-3),
    ],
)
def test_both_theorems_on_a_grid_of_budgets(epsilon, delta):
    m = objective_mu(epsilon, delta)
    assert max(spent(m, largest_kappa(epsilon), epsilon, rho) for rho in CORRELATIONS) <= delta * 1.001
    kappa = 0.3 * epsilon
    m = signless_mu(delta, huber_parts(epsilon, kappa))
    for rho in (1.0, 0.95, 0.5, 0.0):
        curved = lambda s: (1 - s * s) ** 1.5 * kappa  # noqa: E731
        assert signless_spent(m, curved, epsilon, rho, size=301, reach=9.0) <= delta * 1.005

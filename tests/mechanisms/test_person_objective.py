"""Gaussian noise for persons: theorems 2b to 2d of their page, by an independent bound for all sets."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpselect.accounting.gaussian import gaussian_log_delta, gaussian_mu
from dpselect.mechanisms.gaussian_objective import objective_mu
from dpselect.mechanisms.person_objective import (
    _log_normal_excess,
    _log_spent,
    _mean_excess,
    person_kappa,
    person_mu,
    person_signless_mu,
)

CORRELATIONS = [1.0, 0.99, 0.9, 0.5, -0.5, -1.0]
BUDGETS = [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-3), (3.0, 1e-4)]
U, V = np.meshgrid(*[np.linspace(-9, 9, 241)] * 2)
WEIGHTS = np.exp(-(U**2 + V**2) / 2) * 0.075**2 / (2 * math.pi)


def mean_excess(m, curved, rho, levels, sides=(0.0, 1.0)):
    """E(S - s)_+ for the largest score S of two rows, on a grid of their two normal variables."""
    x, y = (math.sqrt((1 + rho) / 2) * U + side * math.sqrt((1 - rho) / 2) * V for side in (1, -1))
    largest = np.full(U.shape, -np.inf)
    for s in np.linspace(sides[0], sides[1], 21):
        other = np.maximum(sides[0] * y, sides[1] * y)
        largest = np.maximum(largest, m / 2 * (s * x + other) + curved(abs(s)))
    return np.array([(WEIGHTS * np.maximum(largest - s, 0)).sum() for s in levels])


def spent(levels, excess, epsilon, size=400):
    """The worst delta of all sets: their probability p grows by at most min over s of H(s) + s p."""
    # the line of each level is below all others where its tangent is, and time passes as p grows there
    tails = -np.diff(excess) / np.diff(levels)
    p = np.geomspace(tails[tails > 0].min(), tails.max(), 4_000)
    growth = np.min([h + s * p for s, h in zip(levels, excess)], axis=0)
    time = np.append(0.0, np.cumsum(np.diff(p) * (1 / growth[1:] + 1 / growth[:-1]) / 2))
    end = np.interp(time + 1, time, p, right=np.nan)
    return np.nanmax(end - math.exp(epsilon) * p)


def levels_of(epsilon, m):
    return np.linspace(max(epsilon - m * m, 0), epsilon + m * m + 0.5 * m, 80)


@pytest.mark.parametrize("epsilon, delta", BUDGETS)
def test_one_class_has_the_noise_of_a_record(epsilon, delta):
    m, kappa = person_mu(epsilon, delta), person_kappa(epsilon, delta)
    assert m == objective_mu(epsilon, delta) and 0 < epsilon / 2 - kappa < m * m / 3.9
    levels = levels_of(epsilon, m)
    found = [mean_excess(m, lambda s: kappa * s * (1 - s), rho, levels) for rho in CORRELATIONS]
    gaussian = m * (norm.pdf(levels / m) - levels / m * norm.sf(levels / m))
    # from the end of the way on, a score exceeds each level by no more than a Gaussian mechanism's does
    above = levels >= epsilon - m * m / 2
    assert (found <= 1.02 * gaussian)[:, above].all()
    assert found[0] == pytest.approx(gaussian, rel=0.02)
    whole = spent(levels, np.max(found, axis=0), epsilon)
    assert 0.95 * delta < whole < 1.02 * delta
    # the broken twin has too much curvature
    more = mean_excess(m, lambda s: 2 * kappa * s * (1 - s), 1.0, levels)
    assert spent(levels, more, epsilon) > 1.3 * delta


@pytest.mark.parametrize("epsilon, delta", [*BUDGETS, (20.0, 1e-9), (0.1, 0.1)])
def test_the_straight_way_of_a_gaussian_mechanism_loses_nothing(epsilon, delta):
    m = gaussian_mu(epsilon, delta)

    def log_excess(s):
        return np.log(m * (norm.pdf(s / m) - s / m * norm.sf(s / m)))

    lost = _log_spent(log_excess, epsilon, m * m) - gaussian_log_delta(epsilon, m)
    assert 0 <= lost < 0.01 * max(epsilon, 1)
    # another way is a proof as well, of more
    assert _log_spent(log_excess, epsilon, 0.0) > gaussian_log_delta(epsilon, m)


@pytest.mark.parametrize(
    "epsilon, delta, share",
    [
        (0.1, 1e-6, 0.0),
        (1.0, 1e-6, 0.1),
        (1.0, 1e-3, 0.5),
        (3.0, 1e-4, 0.1),
    ],
)
def test_other_losses_pay_for_what_curves(epsilon, delta, share):
    kappa = share * epsilon
    ends = [i / 8 for i in range(9)]
    parts = tuple((b, (1 - a * a) ** 1.5 * kappa) for a, b in zip(ends[:-1], ends[1:]))
    for m, curved, sides in (
        (person_mu(epsilon, delta, charge=kappa), lambda s: kappa, (0.0, 1.0)),
        (person_signless_mu(epsilon, delta, ((1.0, kappa),)), lambda s: kappa, (-1.0, 1.0)),
        (person_signless_mu(epsilon, delta, parts), lambda s: kappa * (1 - s * s) ** 1.5, (-1.0, 1.0)),
    ):
        levels = levels_of(epsilon, m)
        found = [mean_excess(m, curved, rho, levels, sides) for rho in (1.0, 0.9, 0.0)]
        whole = spent(levels, np.max(found, axis=0), epsilon)
        assert whole < 1.02 * delta and (whole > 0.85 * delta or len(parts) > 1)
    # the broken twin takes the logarithm, which is that of one row
    forgets = person_mu(epsilon, delta, charge=math.log1p(kappa) if share < 0.5 else 0.0)
    twin = mean_excess(forgets, lambda s: kappa, 1.0, levels_of(epsilon, forgets))
    if kappa >= 0.3:
        assert spent(levels_of(epsilon, forgets), twin, epsilon) > 1.2 * delta


@pytest.mark.parametrize("n_problems, epsilon, delta", [(2, 1.0, 1e-3), (10, 3.0, 1e-6)])
def test_scores_of_several_classes(n_problems, epsilon, delta):
    kappa = person_kappa(epsilon, delta, n_problems)
    m = person_mu(epsilon, delta, n_problems, kappa=kappa)
    assert 0.97 * objective_mu(epsilon, delta, n_problems) < m < objective_mu(epsilon, delta, n_problems)
    alone = objective_mu(epsilon / n_problems, delta / n_problems)
    assert kappa == pytest.approx(epsilon / n_problems / 2 - alone**2 / 4) and m > 1.2 * alone
    # those that are computed are larger than those that are sampled
    rng, grid = np.random.default_rng(0), np.linspace(0, 1, 9)[:, None]
    levels = np.linspace(0, 3 * math.sqrt(n_problems) * m, 7)
    computed = _mean_excess(m, kappa, n_problems)(levels)
    for rho in (1.0, 0.5):
        z = rng.standard_normal((2, n_problems, 20_000))
        x, y = z[0], rho * z[0] + math.sqrt(1 - rho**2) * z[1]
        total = sum(
            (m / 2 * (grid * x[k] + np.maximum(y[k], 0)) + kappa * grid * (1 - grid)).max(axis=0)
            for k in range(n_problems)
        )
        excess = np.maximum(total - levels[:, None], 0)
        error = excess.std(axis=1) / math.sqrt(excess.shape[1])
        assert (excess.mean(axis=1) <= computed + 6 * error).all()
        if rho == 1.0:
            assert (excess.mean(axis=1)[:4] > 0.3 * computed[:4]).all()


def test_scores_at_the_end_of_the_grid_count():
    m = 0.1
    y = np.linspace(2, 20, 400)
    gaussian = m * np.exp(_log_normal_excess(y))
    assert (_mean_excess(m, 0.0, 1)(m * y) >= gaussian * (1 - 1e-9)).all()


@pytest.mark.parametrize("epsilon, delta", [(1e-9, 0.999), (1e3, 1e-320), (1e3, 1e-6), (50.0, 1e-9)])
def test_any_budget_has_some_noise(epsilon, delta):
    for n_problems in (1, 3):
        kappa = person_kappa(epsilon, delta, n_problems)
        assert 0 < kappa < epsilon / (2 * n_problems)
        found = person_mu(epsilon, delta, n_problems, kappa=kappa)
        alone = objective_mu(epsilon / n_problems, delta / n_problems)
        assert alone <= found <= objective_mu(epsilon, delta)
        charged = [person_mu(epsilon, delta, n_problems, charge=c * epsilon) for c in (0.0, 0.1, 0.5)]
        assert charged == sorted(charged, reverse=True) and charged[-1] > 0
    assert 0 < person_signless_mu(epsilon, delta, ((1.0, epsilon / 2),)) < np.inf

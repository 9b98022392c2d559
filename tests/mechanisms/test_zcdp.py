import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import logsumexp
from scipy.stats import norm

from dpselect.accounting.zcdp import pure_to_zcdp, zcdp_budget, zcdp_to_epsilon

ATTACKED = np.array([1 + 1e-5, 1.01, 1.1, 1.5, 2.0, 4.0, 10.0, 100.0])


def renyi(p, q, orders=ATTACKED):
    """Return D_a(p || q) at each order."""
    a = np.asarray(orders)[:, None]
    return logsumexp(a * np.log(p) + (1 - a) * np.log(q), axis=1) / (a[:, 0] - 1)


def randomised_response(epsilon):
    p = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    return p, p[::-1]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 10.0])
def test_rho_of_pure_losses_is_the_least_that_holds(epsilon):
    ratios = renyi(*randomised_response(epsilon)) / ATTACKED
    # (the order next to 1 divides the rounding of its logarithm by 1e-5)
    assert ratios.max() * (1 - 1e-6) < pure_to_zcdp(epsilon) < ratios.max() * (1 + 1e-3)
    assert pure_to_zcdp(epsilon) < epsilon**2 / 2
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.dirichlet(np.ones(4))
        q = p * np.exp(epsilon * rng.uniform(-0.5, 0.5, size=4))
        assert (renyi(p, q / q.sum()) / ATTACKED <= pure_to_zcdp(epsilon)).all()


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 10.0])
def test_conversion_is_the_least_over_all_orders(rho, delta):
    epsilon = zcdp_to_epsilon(rho, delta)
    a = 1 + np.geomspace(1e-3, 1e6, 200_000)
    everywhere = (rho * a + np.log1p(-1 / a) - np.log(a * delta) / (a - 1)).min()
    assert epsilon == pytest.approx(max(0.0, everywhere), rel=1e-6)
    # the classical conversion
    assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))


def gaussian_delta(epsilon, rho):
    """Return the delta of Gaussian noise, exactly (Balle and Wang 2018, theorem 8)."""
    mean = math.sqrt(2 * rho)
    upper, lower = norm.sf(epsilon / mean - mean / 2), norm.sf(epsilon / mean + mean / 2)
    return upper - math.exp(epsilon) * lower


@pytest.mark.parametrize("rho", [1e-3, 0.05, 1.0])
def test_conversion_is_valid_for_gaussian_noise_and_close(rho):
    for delta in (1e-9, 1e-5):
        epsilon = zcdp_to_epsilon(rho, delta)
        assert gaussian_delta(epsilon, rho) <= delta < gaussian_delta(0.85 * epsilon, rho)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.5, 1.0, 8.0])
def test_budget_is_the_inverse(epsilon, delta):
    rho = zcdp_budget(epsilon, delta)
    assert rho > 0
    assert zcdp_to_epsilon(rho * (1 - 1e-9), delta) <= epsilon * (1 + 1e-9)
    assert zcdp_to_epsilon(rho * (1 + 1e-3), delta) > epsilon


@pytest.mark.parametrize("rho", [1e-3, 0.1, 2.0])
def test_agrees_with_dp_accounting(rho):
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    rdp_accountant = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = list(1 + np.geomspace(0.05, 1e4, 3000))
    for event in (dp_event.ZCDpEvent(rho), dp_event.ComposedDpEvent([dp_event.ZCDpEvent(rho / 2)] * 2)):
        accountant = rdp_accountant.RdpAccountant(orders=orders).compose(event)
        for delta in (1e-9, 1e-4):
            expected = accountant.get_epsilon(delta)
            assert zcdp_to_epsilon(rho, delta) == pytest.approx(expected, rel=1e-5)


# orders less 1 at which divergences are bounded, in units of 1 / sqrt(rho)
STEPS = np.geomspace(0.02, 60, 150)


def worst_delta(rho, epsilon):
    """Return the largest E max(0, 1 - exp(epsilon - Y)) of laws whose divergences are at most rho a.

    Of Y nothing else is asked, so it may be a loss less xi, of which the divergences are at most
    xi + rho a: a linear program in the law, on a grid.
    """
    unit = math.sqrt(rho)
    Y = unit * np.linspace(-6, 10, 401)
    s = STEPS / unit
    powers = np.exp(np.minimum(np.outer(s, Y) - (rho * s * (s + 1))[:, None], 600.0))
    rows, bounds = np.vstack([powers, Y / unit]), np.append(np.ones(len(s)), rho / unit)
    largest = np.maximum(rows.max(axis=1), 1.0)
    found = linprog(
        -np.maximum(0.0, -np.expm1(epsilon - Y)),
        A_ub=rows / largest[:, None],
        b_ub=bounds / largest,
        A_eq=np.ones((1, len(Y))),
        b_eq=[1.0],
    )
    # the solver allows small errors in rows of large numbers: with so much of the law, and the rest at
    # the least loss, none is left
    return -found.fun / max(1.0, (rows[:-1] @ found.x).max())


def check_conversion(convert, rho, delta):
    found = worst_delta(rho, convert(rho, delta))
    # (of the orders of divergences those of a grid are looked at)
    assert found <= delta * (1 + 5e-3)
    return found / delta


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.1, 1.0])
def test_no_law_with_a_shift_has_a_larger_delta(rho):
    """The shift may be any: laws need not have E exp(-Y) <= 1, on which Bretagnolle and Huber rest."""
    deltas = (0.5, 0.1, 1e-2, 1e-4)
    reached = [check_conversion(zcdp_to_epsilon, rho, delta) for delta in deltas]
    assert max(reached) > 0.99
    closest = deltas[int(np.argmax(reached))]
    for twin in (
        lambda rho, delta: zcdp_to_epsilon(0.9 * rho, delta),
        lambda rho, delta: zcdp_to_epsilon(rho, 1.1 * delta),
    ):
        with pytest.raises(AssertionError):
            check_conversion(twin, rho, closest)


def test_the_conversion_is_no_worse_than_the_inequality_of_bretagnolle_and_huber():
    rng = np.random.default_rng(0)
    for delta in [*10 ** rng.uniform(-12, -0.01, size=300), *(1 - 10 ** rng.uniform(-6, -1, size=50))]:
        rho = -math.log1p(-(delta**2))
        assert zcdp_to_epsilon(rho, delta) == 0.0 and zcdp_budget(1e-9, delta) >= rho
        # nearly as much as can be: total variation of Gaussian noise
        assert zcdp_to_epsilon(4 * rho, delta) > 0

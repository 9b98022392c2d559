import math

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import norm

from dpselect.mechanisms.renyi import (
    ORDERS,
    exponential_mechanism_to_zcdp,
    pure_rdp,
    pure_to_zcdp,
    rdp_to_delta,
    rdp_to_epsilon,
    zcdp_budget,
    zcdp_to_epsilon,
)

ATTACKED = np.array([1 + 1e-5, 1.01, 1.1, 1.5, 2.0, 4.0, 10.0, 100.0])


def renyi(p, q, orders=ATTACKED):
    """Return D_a(p || q) at each order."""
    a = np.asarray(orders)[:, None]
    return logsumexp(a * np.log(p) + (1 - a) * np.log(q), axis=1) / (a[:, 0] - 1)


def randomised_response(epsilon):
    p = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    return p, p[::-1]


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0, 20.0])
def test_pure_curve_is_that_of_randomised_response(epsilon):
    orders = ATTACKED[1:]
    np.testing.assert_allclose(
        pure_rdp(epsilon, orders), renyi(*randomised_response(epsilon), orders), rtol=1e-6
    )
    few = orders[orders * epsilon < 300]
    published = np.sinh(few * epsilon) - np.sinh((few - 1) * epsilon)
    published = np.log(published / math.sinh(epsilon)) / (few - 1)
    np.testing.assert_allclose(pure_rdp(epsilon, few), published, rtol=1e-6)


def test_pure_curve_keeps_its_digits():
    np.testing.assert_allclose(pure_rdp(1e-9, [2.0, 5.0]), [1e-18, 2.5e-18], rtol=1e-9)
    assert pure_rdp(700.0, [1e5]) == pytest.approx(700.0, rel=1e-4)
    assert (pure_rdp(0.0) == 0).all()


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


def worst_rho(mechanism, epsilon):
    """Return the largest D_a / a of a mechanism when scores move by Delta = 1 either way."""
    rng = np.random.default_rng(0)
    gaps = np.linspace(-4, 4, 81) / epsilon
    cases = [(np.array([0.0, gap]), np.array([-1.0, 1.0])) for gap in gaps]
    cases += [(rng.normal(size=4) / epsilon, rng.choice([-1.0, 1.0], size=4)) for _ in range(200)]
    worst = 0.0
    for scores, moves in cases:
        p, q = mechanism(scores, epsilon), mechanism(scores + moves, epsilon)
        worst = max(worst, (np.maximum(renyi(p, q), renyi(q, p)) / ATTACKED).max())
    return worst


def exponential(scores, epsilon):
    return softmax(epsilon * scores / 2)


def permute_and_flip(scores, epsilon):
    """The law of noisy_argmax, for two candidates."""
    lesser = math.exp(-epsilon * abs(scores[0] - scores[1]) / 2) / 2
    return np.where(scores == scores.max(), 1 - lesser, lesser)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0])
def test_rho_of_the_exponential_mechanism_holds_and_is_close(epsilon):
    worst = worst_rho(exponential, epsilon)
    bound = exponential_mechanism_to_zcdp(epsilon)
    assert bound == epsilon**2 / 8
    assert 0.98 * bound < worst < bound


@pytest.mark.parametrize("epsilon", [4.0, 20.0])
def test_rho_of_the_exponential_mechanism_at_a_large_epsilon(epsilon):
    assert worst_rho(exponential, epsilon) < exponential_mechanism_to_zcdp(epsilon) <= epsilon


def test_a_missing_factor_is_caught():
    worst = worst_rho(lambda scores, e: exponential(scores, 2 * e), 0.5)
    assert worst > 3.5 * exponential_mechanism_to_zcdp(0.5)


def test_rho_of_bounded_range_does_not_hold_for_noisy_argmax():
    scores, moved = np.array([1e-12, 0.0]), np.array([-1.0, 1.0])
    p, q = permute_and_flip(scores, 0.2), permute_and_flip(moved, 0.2)
    ratio = (np.maximum(renyi(p, q), renyi(q, p)) / ATTACKED).max()
    assert 3 * exponential_mechanism_to_zcdp(0.2) < ratio <= pure_to_zcdp(0.2)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 10.0])
def test_conversion_is_the_least_over_all_orders(rho, delta):
    epsilon = zcdp_to_epsilon(rho, delta)
    a = 1 + np.geomspace(1e-3, 1e6, 200_000)
    everywhere = rdp_to_epsilon(rho * a, delta, a)
    assert epsilon == pytest.approx(everywhere, rel=1e-6)
    # the fixed grid loses little
    assert epsilon <= rdp_to_epsilon(rho * ORDERS, delta) * (1 + 1e-9) <= 1.002 * epsilon + 1e-9
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
    # every curve of slope rho keeps it at each order of the grid
    if epsilon > 0:
        assert rdp_to_epsilon(rho * ORDERS, delta) >= epsilon * (1 - 1e-9)


def test_delta_is_the_inverse_of_epsilon():
    for rho in (1e-3, 0.1, 2.0):
        for delta in (1e-9, 1e-3):
            epsilon = rdp_to_epsilon(rho * ORDERS, delta)
            assert rdp_to_delta(rho * ORDERS, epsilon) == pytest.approx(delta, rel=1e-6)
    assert rdp_to_delta(0 * ORDERS, 0.1) == 0.0
    assert 0.999 < rdp_to_delta(100 + 0 * ORDERS, 0.1) <= 1.0


@pytest.mark.parametrize("rho", [1e-3, 0.1, 2.0])
def test_agrees_with_dp_accounting(rho):
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    rdp_accountant = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = list(1 + np.geomspace(0.05, 1e4, 3000))
    for event, curve in [
        (dp_event.ZCDpEvent(rho), rho * ORDERS),
        (dp_event.ComposedDpEvent([dp_event.ZCDpEvent(rho / 2)] * 2), rho * ORDERS),
    ]:
        accountant = rdp_accountant.RdpAccountant(orders=orders).compose(event)
        for delta in (1e-9, 1e-4):
            expected = accountant.get_epsilon(delta)
            assert zcdp_to_epsilon(rho, delta) == pytest.approx(expected, rel=1e-5)
            assert rdp_to_epsilon(curve, delta) == pytest.approx(expected, rel=2e-3)
    accountant = rdp_accountant.RdpAccountant(orders=list(ORDERS[ORDERS > 1.02]))
    accountant.compose(dp_event.ZCDpEvent(rho))
    for epsilon in (0.1, 1.0):
        expected = accountant.get_delta(epsilon)
        assert rdp_to_delta(rho * ORDERS, epsilon) == pytest.approx(expected, rel=1e-2)


def test_pure_curve_agrees_with_dp_accounting():
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    rdp_accountant = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    relation = pytest.importorskip("dp_accounting.privacy_accountant").NeighboringRelation
    orders = ATTACKED[2:]
    accountant = rdp_accountant.RdpAccountant(list(orders), relation.REPLACE_ONE)
    epsilon = 0.8
    event = dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)
    np.testing.assert_allclose(pure_rdp(epsilon, orders), accountant.compose(event).rdp, rtol=1e-9)


def test_many_models_and_a_choice_cost_less_than_their_sum():
    # 100 models and a choice among them, each with an epsilon of 0.03
    rho = 100 * pure_to_zcdp(0.03) + exponential_mechanism_to_zcdp(0.03)
    assert zcdp_to_epsilon(rho, 1e-6) < 1.5 < 101 * 0.03
    # for ten of them a delta is no help
    assert zcdp_to_epsilon(10 * pure_to_zcdp(0.03), 1e-6) > 10 * 0.03

import math

import numpy as np
import pytest
from scipy.stats import chisquare, geom, logser, nbinom, poisson

from dpselect.mechanisms.renyi import ORDERS, rdp_to_epsilon
from dpselect.mechanisms.stopping_laws import (
    Poisson,
    TruncatedNegativeBinomial,
    geometric,
    logarithmic,
)

FALSE_ALARM = 1e-7
with_shape = TruncatedNegativeBinomial.from_mean
LAWS = {
    "geometric": geometric(10),
    "logarithmic": logarithmic(10),
    "heavy": with_shape(4, eta=-0.5),
    "light": with_shape(10, eta=5.0),
    "short": geometric(1.5),
    "poisson": Poisson(3.0),
}


def masses(law):
    """Return the probabilities of 0, 1, ... runs, but for 1e-16 of them."""
    size = 1024
    while law.pmf(size) > 1e-20 or size < law.mean:
        size *= 2
    return law.pmf(np.arange(size))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_masses_sum_to_one_and_have_the_mean(law):
    p = masses(law)
    assert (p >= 0).all() and p.sum() == pytest.approx(1, abs=1e-10)
    assert p @ np.arange(len(p)) == pytest.approx(law.mean, rel=1e-9)


def test_masses_are_those_of_known_laws():
    k = np.arange(60)
    for gamma in (0.9, 0.3, 0.01):
        negative = nbinom.pmf(k, 2.5, gamma) / nbinom.sf(0, 2.5, gamma)
        for eta, expected in [
            (1.0, geom.pmf(k, gamma)), (0.0, logser.pmf(k, 1 - gamma)), (2.5, negative)
        ]:
            expected[0] = 0
            law = TruncatedNegativeBinomial(eta, gamma)
            np.testing.assert_allclose(law.pmf(k), expected, rtol=1e-9)
    np.testing.assert_allclose(Poisson(7.0).pmf(k), poisson.pmf(k, 7.0), rtol=1e-9)
    assert geometric(4).pmf(1) == pytest.approx(0.25) and geometric(4).pmf(-1) == 0.0


@pytest.mark.parametrize("eta", [-0.9, -0.3, -1e-9, 0.0, 1e-9, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("mean", [1.001, 2.0, 50.0, 1e4])
def test_laws_from_their_means(mean, eta):
    law = with_shape(mean, eta)
    assert law.mean == pytest.approx(mean, rel=1e-9)
    # with shapes near 0 the formulas do not lose digits
    if abs(eta) < 1e-6:
        assert law.gamma == pytest.approx(logarithmic(mean).gamma, rel=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TruncatedNegativeBinomial(-1.0, 0.5),
        lambda: TruncatedNegativeBinomial(math.nan, 0.5),
        lambda: TruncatedNegativeBinomial(1.0, 0.0),
        lambda: TruncatedNegativeBinomial(1.0, 1.0),
        lambda: geometric(1.0),
        lambda: geometric(math.inf),
        lambda: with_shape(1e6, -0.9999),
        lambda: Poisson(0.9),
    ],
)
def test_laws_that_do_not_exist_are_refused(make):
    with pytest.raises(ValueError, match="give"):
        make()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_draws_have_the_law(law):
    rng = np.random.default_rng(0)
    draws = np.array([law.draw(rng) for _ in range(2500)])
    p = masses(law)
    classes = np.minimum(np.cumsum(p) * 40, 39).astype(int)  # of about equal probability
    counts = np.bincount(classes[draws], minlength=40)
    expected = np.bincount(classes, weights=p, minlength=40)
    seen = expected > 1e-3
    assert counts[~seen].sum() <= 8 and seen.sum() > 2
    expected = expected[seen] / expected[seen].sum() * counts[seen].sum()
    assert chisquare(counts[seen], expected).pvalue > FALSE_ALARM


def test_draws_beyond_the_first_block():
    law = logarithmic(2000)
    rng = np.random.default_rng(0)
    draws = [law.draw(rng) for _ in range(500)]
    far = law.pmf(np.arange(5000)).sum()
    above = sum(draw >= 5000 for draw in draws)
    assert abs(above - 500 * (1 - far)) < 5.5 * math.sqrt(500 * far * (1 - far)) and above > 10


def test_draws_do_not_depend_on_the_blocks(monkeypatch):
    draws = [law.draw(i) for law in LAWS.values() for i in range(40)]
    monkeypatch.setattr("dpselect.mechanisms.stopping_laws.BLOCK", 3)
    assert draws == [law.draw(i) for law in LAWS.values() for i in range(40)]


# Renyi curves


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 4.0, math.inf])
@pytest.mark.parametrize("mean", [1.5, 10.0, 300.0])
@pytest.mark.parametrize("base", ["gaussian", "laplace"])
def test_renyi_curves_agree_with_dp_accounting(eta, mean, base):
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    rdp_accountant = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = np.array([1.02, 1.1, 1.5, 2, 3, 5, 8, 16, 40, 128, 1024.0])
    make = dp_event.GaussianDpEvent if base == "gaussian" else dp_event.LaplaceDpEvent
    event = make(noise_multiplier=3.0)

    def curve(event):
        return rdp_accountant.RdpAccountant(orders=list(orders)).compose(event).rdp

    law = Poisson(mean) if eta == math.inf else with_shape(mean, eta)
    # a higher order bounds a lower one, which is not used there for the Poisson law
    expected = curve(dp_event.RepeatAndSelectDpEvent(event, mean, eta))
    expected = np.minimum.accumulate(expected[::-1])[::-1]
    np.testing.assert_allclose(law.selection_rdp(curve(event), orders), expected, rtol=1e-6)


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0])
def test_many_runs_with_gaussian_noise_cost_less_than_three(eta):
    delta, run = 1e-6, 0.01 * ORDERS
    one = rdp_to_epsilon(run, delta)
    totals = [rdp_to_epsilon(with_shape(mean, eta).selection_rdp(run), delta) for mean in (2, 100)]
    assert one < totals[0] < totals[1] < 2.6 * one

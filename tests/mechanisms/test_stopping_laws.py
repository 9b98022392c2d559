import math

import numpy as np
import pytest
from scipy.stats import chisquare, geom, logser, nbinom

from dpselect.mechanisms.stopping_laws import TruncatedNegativeBinomial, geometric

FALSE_ALARM = 1e-7
with_shape = TruncatedNegativeBinomial.from_mean


def logarithmic(mean):
    """Return the law of the smallest shape that has a name."""
    return with_shape(mean, eta=0.0)


LAWS = {
    "geometric": geometric(10),
    "logarithmic": logarithmic(10),
    "heavy": with_shape(4, eta=-0.5),
    "light": with_shape(10, eta=5.0),
    "short": geometric(1.5),
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
            (1.0, geom.pmf(k, gamma)),
            (0.0, logser.pmf(k, 1 - gamma)),
            (2.5, negative),
        ]:
            expected[0] = 0
            law = TruncatedNegativeBinomial(eta, gamma)
            np.testing.assert_allclose(law.pmf(k), expected, rtol=1e-9)
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
    ],
)
def test_laws_that_do_not_exist_are_refused(make):
    with pytest.raises(ValueError, match="give"):
        make()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_samples_have_the_law(law):
    rng = np.random.default_rng(0)
    samples = np.array([law.draw(rng) for _ in range(2500)])
    p = masses(law)
    classes = np.minimum(np.cumsum(p) * 40, 39).astype(int)  # of about equal probability
    counts = np.bincount(classes[samples], minlength=40)
    expected = np.bincount(classes, weights=p, minlength=40)
    seen = expected > 1e-3
    assert counts[~seen].sum() <= 8 and seen.sum() > 2
    expected = expected[seen] / expected[seen].sum() * counts[seen].sum()
    assert chisquare(counts[seen], expected).pvalue > FALSE_ALARM


def test_samples_beyond_the_first_block():
    law = logarithmic(2000)
    rng = np.random.default_rng(0)
    samples = [law.draw(rng) for _ in range(500)]
    far = law.pmf(np.arange(5000)).sum()
    above = sum(draw >= 5000 for draw in samples)
    assert abs(above - 500 * (1 - far)) < 5.5 * math.sqrt(500 * far * (1 - far)) and above > 10


def test_samples_do_not_depend_on_the_blocks(monkeypatch):
    samples = [law.draw(i) for law in LAWS.values() for i in range(40)]
    monkeypatch.setattr("dpselect.mechanisms.stopping_laws.BLOCK", 3)
    assert samples == [law.draw(i) for law in LAWS.values() for i in range(40)]

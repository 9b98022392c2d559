import math

import numpy as np
import pytest
from scipy import stats
from scipy.signal import fftconvolve

from dpselect.noise import as_generator, gaussian, laplace, spherical_laplace, tails
from dpselect.noise.tails import laplace_length_quantile, lipschitz_deviation, noise_length

PROBABILITIES = [1e-9, 1e-4, 0.05, 0.5]
ALARM = 1e-7


def quantile_rounded_down(log2_dimension, probability, n_steps=2**15):
    """Bound the quantile for 2**log2_dimension coordinates from below, by repeated doubling.

    Squares are rounded down to a grid. A sum beyond the grid stays beyond it.
    """
    dimension = 2**log2_dimension
    top = 2 * dimension + 3 * np.log(1 / probability) * dimension**0.5 + np.log(probability) ** 2
    step = 1.5 * top / n_steps
    beyond = np.exp(-np.sqrt(step * np.arange(n_steps + 1)))
    law = beyond[:-1] - beyond[1:]
    for _ in range(log2_dimension):
        law = fftconvolve(law, law)[:n_steps]
    return np.sqrt(step * np.argmax(1 - law.cumsum() <= probability))


@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.parametrize("log2_dimension", [0, 1, 2, 4, 6, 8])
def test_against_squares_rounded_down(log2_dimension, probability):
    below = quantile_rounded_down(log2_dimension, probability)
    assert below <= laplace_length_quantile(2**log2_dimension, probability) <= 1.01 * below


@pytest.mark.parametrize("probability", [1e-3, 0.05, 0.5])
@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 50, 1000])
def test_monte_carlo(dimension, probability):
    n = 2_000_000 // max(dimension, 10)
    r = laplace(as_generator(dimension), (n, dimension))
    lengths = np.linalg.norm(r, axis=1)
    q = laplace_length_quantile(dimension, probability)
    exceeding = [int((lengths > bound).sum()) for bound in (q, q / 1.01)]
    assert stats.binomtest(exceeding[0], n, probability, "greater").pvalue > ALARM
    assert stats.binomtest(exceeding[1], n, probability, "less").pvalue > ALARM


def test_monte_carlo_catches_a_bound_that_undercuts():
    lengths = np.linalg.norm(laplace(as_generator(0), (100_000, 7)), axis=1)
    exceeding = int((lengths > 0.98 * laplace_length_quantile(7, 0.05)).sum())
    assert stats.binomtest(exceeding, len(lengths), 0.05, "greater").pvalue < ALARM


@pytest.mark.parametrize("dimension", [10_000, 1_000_000])
def test_many_coordinates(dimension):
    # the normal law of the sum of squares, mean 2 and variance 20 each, is good to a few percent
    # of the distance from the mean
    for probability in PROBABILITIES:
        total = laplace_length_quantile(dimension, probability) ** 2 / dimension - 2
        normal = np.sqrt(20 / dimension) * stats.norm.isf(probability)
        assert normal - 0.03 <= total <= 1.3 * normal + 0.03


@pytest.mark.parametrize("dimension, largest", [(1000, 200_000), (1_000_000, 5_000_000)])
def test_one_transform_and_remembered(dimension, largest, monkeypatch):
    sizes, rfft = [], tails.fft.rfft

    def counting(law, size):
        sizes.append(size)
        return rfft(law, size)

    monkeypatch.setattr(tails.fft, "rfft", counting)
    laplace_length_quantile.cache_clear()
    first = laplace_length_quantile(dimension, 1e-9)
    assert laplace_length_quantile(dimension, 1e-9) == first
    # the whole grid of a million coordinates, without the window, has a hundred million steps
    assert len(sizes) == 1 and sizes[0] <= largest


@pytest.mark.parametrize(
    "norm, unit",
    [
        ("l1", lambda n, d: laplace(as_generator(0), (n, d))),
        ("l2", lambda n, d: spherical_laplace(as_generator(0), n, d)),
        ("gaussian", lambda n, d: gaussian(as_generator(0), (n, d))),
    ],
)
@pytest.mark.parametrize("dimension", [1, 2, 7, 40])
def test_noise_length_is_that_of_the_samples(norm, unit, dimension):
    if norm == "l2":
        exact = stats.gamma(dimension)
        assert noise_length(norm, dimension, 1e-9) == pytest.approx(exact.isf(1e-9))
    n = 40_000
    lengths = np.linalg.norm(unit(n, dimension), axis=1)
    assert np.sqrt((lengths**2).mean()) == pytest.approx(noise_length(norm, dimension), rel=0.05)
    for p in (0.3, 0.01):
        beyond = (lengths > noise_length(norm, dimension, p)).mean()
        wide = 6 * math.sqrt(p / n)
        assert beyond <= p + wide
        # no more than 1 % too long, which in 40 dimensions is a share of a third
        assert beyond >= 0.6 * p - wide


@pytest.mark.parametrize("dimension", [1, 5, 100])
def test_rare_lengths_are_bounded_too(dimension):
    quantiles = [laplace_length_quantile(dimension, p) for p in (1e-8, 1e-9, 1e-11, 1e-15, 1e-300)]
    assert np.all(np.diff(quantiles) > 0)
    # P(||r||_2 > q) is at least that of one coordinate
    for p in (1e-11, 1e-300):
        assert laplace_length_quantile(dimension, p) >= -np.log(p) * (1 - 1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "gaussian"])
@pytest.mark.parametrize("d", [1, 2, 3, 10, 200])
def test_functions_that_change_slowly_spread_little(norm, d):
    """Attack the bound with functions of slope 1; one coordinate comes near it under spherical noise."""
    generator = np.random.default_rng(d)
    n = 20_000
    if norm == "l2":
        r = spherical_laplace(generator, n, d)
    else:
        r = {"l1": laplace, "gaussian": gaussian}[norm](generator, (n, d))
    length = np.linalg.norm(r, axis=1)
    bound = lipschitz_deviation(norm, d)
    attacks = [r[:, 0], length, np.abs(r).max(axis=1), (r[:, 0] + length) / 2, np.maximum(r[:, 0], 0)]
    assert max(np.std(attack) for attack in attacks) < 1.05 * bound
    assert np.std(r[:, 0]) > 0.65 * bound
    assert lipschitz_deviation("l2", 1000) == pytest.approx(1001**0.5, rel=0.01)

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.noise import (
    as_generator,
    discrete_laplace,
    geometric,
    grid_laplace,
    grid_noise,
    grid_step,
    laplace,
    nearest_multiple,
)
from dpselect.noise.grid import FINENESS, _digits, _limits

N = 100_000
# probability of a false alarm of one test
ALARM = 1e-7


@pytest.mark.parametrize("ratio", [1e-3, 0.3, 0.6, 0.95, 0.999])
def test_discrete_laplace(ratio):
    r = discrete_laplace(as_generator(2), (N // 2, 2), ratio)
    assert r.shape == (N // 2, 2) and r.dtype == np.int64
    # cut where the expected counts become small, and compare all pieces
    edge = max(1, int(np.log(50 / (N * (1 - ratio))) / np.log(ratio)))
    k = np.arange(-edge + 1, edge)
    inner = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k)
    outer = ratio**edge / (1 + ratio)
    expected = N * np.concatenate([[outer], inner, [outer]])
    counts = np.bincount(np.clip(r.ravel(), -edge, edge) + edge, minlength=2 * edge + 1)
    assert stats.chisquare(counts, expected).pvalue > ALARM


def test_discrete_laplace_limits():
    assert not discrete_laplace(as_generator(), 100, 0.0).any()
    # a scale of 2e9, that of the smallest epsilon, and a scale below 1
    wide = discrete_laplace(as_generator(0), N, np.exp(-5e-10))
    assert stats.kstest(wide * 5e-10, stats.laplace().cdf).pvalue > ALARM
    assert (discrete_laplace(as_generator(0), N, np.exp(-5.0)) != 0).mean() < 0.02


@pytest.mark.parametrize("rate", [3.0, 0.7, 0.05])
def test_every_integer_has_its_probability(rate):
    k = geometric(as_generator(1), N, rate)
    edge = max(1, int(np.log(N * (1 - np.exp(-rate)) / 50) / rate))
    law = np.append((1 - np.exp(-rate)) * np.exp(-rate * np.arange(edge)), np.exp(-rate * edge))
    counts = np.bincount(np.minimum(k, edge), minlength=edge + 1)
    assert stats.chisquare(counts, N * law).pvalue > ALARM


def test_digits_that_are_as_likely_1_as_0():
    k = geometric(as_generator(1), N, 2.0**-40)
    assert k.dtype == np.int64 and k.min() >= 0
    for digit in range(30):
        ones = np.count_nonzero(k >> digit & 1)
        assert stats.binomtest(ones, N, 0.5).pvalue > ALARM
    assert stats.kstest(k * 2.0**-40, stats.expon().cdf).pvalue > ALARM


def test_rates_are_broadcast():
    k = geometric(as_generator(1), (N, 3), [np.inf, 1.0, 0.1])
    assert not k[:, 0].any()
    np.testing.assert_allclose(k.mean(axis=0), [0, 0.582, 9.508], rtol=0.02)
    assert geometric(as_generator(), 0, 1.0).shape == (0,)
    assert geometric(as_generator(), 0, np.zeros(0)).shape == (0,)


class AllBits:
    """A generator whose bits are all 0 or all 1: the extremes of every decision."""

    def __init__(self, value):
        self.value = value

    def integers(self, low, high, size, dtype):
        return np.full(size, self.value, dtype=dtype)


def test_extreme_bits():
    assert geometric(AllBits(2**64 - 1), 2, 1e-3).tolist() == [0, 0]
    # every digit that can be 1 is
    assert geometric(AllBits(0), 1, 1.0)[0] == 63
    for rate in (1e-17, 2.0**-40, 0.022, 22.52, 22.53, 45.05, 45.06, 46.0, 1e300):
        possible = [j for j in range(62) if rate * 2.0**j <= 65 * math.log(2)]
        for rates in (rate, [rate, np.inf]):
            assert geometric(AllBits(0), np.shape(rates), rates).flat[0] == 2 ** len(possible) - 1


class ListedBits:
    """A generator of listed words, the last of them again and again."""

    def __init__(self, *words):
        self.words, self.drawn = list(words), 0

    def integers(self, low, high, size, dtype):
        self.drawn += size
        words = self.words.pop(0) if len(self.words) > 1 else self.words[0]
        return np.resize(np.asarray(words, dtype=dtype), size)


def values_that_give_a_1(digit, limit):
    """How many of 2^64 values do: all first bytes, with later bits below those of the limit, and not."""
    later, count = limit % 2**56, 0
    for byte in range(256):
        first = int.from_bytes(bytes([byte] * 8), "little")
        below, above = (digit(ListedBits(first, rest << 8), limit) for rest in (later - 1, later))
        count += int(below) * later + int(above) * (2**56 - later)
    return count


def test_eight_bits_and_a_tie_decide_as_64_bits_do():
    def digit(generator, limit):
        return _digits(generator, 1, np.array([[limit]], dtype=np.uint64), None)[0, 0]

    def without_ties(generator, limit):
        return digit(generator, limit >> 56 << 56)

    limits = _limits(np.array([1e-3, 0.7]), 8).ravel()[[0, 1, 4, 7, 8, 10, 13, 14]].tolist()
    assert len(limits) == 8
    for limit in limits:
        assert limit % 2**56 > 0
        assert values_that_give_a_1(digit, limit) == limit
        assert values_that_give_a_1(without_ties, limit) != limit


def test_a_number_takes_an_eighth_of_its_bits():
    generator = ListedBits(np.random.default_rng(0).integers(0, 2**64, size=8191, dtype=np.uint64))
    geometric(generator, N, 2.0**-40)
    assert generator.drawn < 6.2 * N


def test_the_grid_is_a_power_of_two_from_public_numbers():
    for scales, largest in ((np.array([3.0, 0.7]), 1.0), (np.array([1e-9, 1e9]), np.inf)):
        step = grid_step(scales, largest)
        assert math.log2(step).is_integer() and step <= largest
        assert 64 * scales.max() / step < 2**53
    assert grid_step(1.0) == grid_step([1.0, 0.75]) == 2.0**-FINENESS
    assert grid_step(0.5) == 2.0 ** -(FINENESS + 1)
    # for integers the step divides 1, however long the noise
    assert grid_step(3e13, unit=1.0) == 1.0 and grid_step(3.0, unit=1.0) == 2.0 ** (2 - FINENESS)
    assert nearest_multiple(1 / 3, grid_step(0.0)) == 1 / 3


def test_the_law_is_that_of_laplace_noise():
    noisy = grid_laplace(as_generator(3), np.full(N, 0.1), 0.7, 1.0)
    # 100,000 values on the grid cost some scale, which this states
    wider = 0.7 * (1 + N * 2.0**-FINENESS / 0.7)
    assert stats.kstest(noisy - 0.1, stats.laplace(scale=wider).cdf).pvalue > ALARM
    unequal = grid_laplace(as_generator(3), np.zeros((N, 2)), [0.1, 10.0], 1.0)
    assert np.median(np.abs(unequal), axis=0) == pytest.approx(np.log(2) * np.array([0.1, 10]), rel=0.03)


def test_rounding_is_paid_for(monkeypatch):
    """The rates at which integers are drawn, against how far apart places can lie."""
    rates = []
    monkeypatch.setattr(
        "dpselect.noise.grid.geometric",
        lambda generator, shape, rate: (rates.append(rate), np.zeros(shape, dtype=np.int64))[1],
    )
    rng = np.random.default_rng(0)
    for fineness in (FINENESS, 3):
        monkeypatch.setattr("dpselect.noise.grid.FINENESS", fineness)
        for _ in range(50):
            d, epsilon = rng.integers(1, 20), rng.exponential()
            scales = rng.exponential(size=d) + 0.01
            change = rng.dirichlet(np.ones(d)) * epsilon * scales * rng.choice([-1, 1], size=d)
            values = rng.uniform(-1, 1, size=d)
            one, two = (grid_laplace(None, v, scales, epsilon) for v in (values, values + change))
            step = grid_step(scales)
            assert np.sum(np.abs(one - two) / step * rates[-1]) <= epsilon * (1 + 1e-9)


def test_the_nearest_multiple_is_exact():
    rng = np.random.default_rng(0)
    step = 2.0**-40
    for value in rng.normal(size=200) * 10.0 ** rng.integers(-12, 16, size=200):
        near = Fraction(float(nearest_multiple(value, step)))
        assert (near / Fraction(step)).denominator == 1
        assert abs(near - Fraction(value)) <= Fraction(step) / 2
    # larger ones are multiples, and nothing overflows
    values = np.array([1e308, -1e308, np.inf, 2.0**53 * step, np.nan])
    np.testing.assert_array_equal(nearest_multiple(values, 2.0**-800), values)


def test_noise_is_a_multiple_of_any_step():
    for step in (2.0**-40, 2.0**-3, 4.0):
        noise = grid_noise(as_generator(5), (N, 2), [1.0, 30.0], step)
        assert (noise % step == 0).all() and (noise % (2 * step) != 0).any()
        rate = step / np.array([1.0, 30.0])
        variance = step**2 / (2 * np.sinh(rate / 2) ** 2)
        assert noise.var(axis=0) == pytest.approx(variance, rel=0.06)
    assert not grid_noise(as_generator(5), 3, 0.0, 1.0).any()


def test_noise_that_doubles_would_not_hold_is_refused():
    grid_noise(as_generator(), 3, 2.0**47, 1.0)
    for scale in (2.0**47 * 1.001, np.inf, np.nan):
        with pytest.raises(ValueError, match="larger step"):
            grid_noise(as_generator(), 3, [1.0, 1.0, scale], 1.0)


def test_batches_of_digits_do_not_matter(monkeypatch):
    one = geometric(as_generator(1), (50, 2), [1e-9, 0.3])
    monkeypatch.setattr("dpselect.noise.grid.BATCH", 100)
    assert (geometric(as_generator(1), (50, 2), [1e-9, 0.3]) == one).all()
    # the rates go with the numbers
    monkeypatch.setattr("dpselect.noise.grid.BATCH", 7)
    k = geometric(as_generator(1), (50, 2), [1e-9, 0.3])
    assert k[:, 1].max() < 100 and np.median(k[:, 0]) > 1e8


@pytest.mark.parametrize("rates", [[1e-9, 0.3, np.inf], np.random.default_rng(0).random(3000)])
def test_few_and_many_rates_give_the_same_digits(rates, monkeypatch):
    rates = np.random.default_rng(1).choice(rates, size=3000)
    together = geometric(as_generator(1), 3000, rates)
    monkeypatch.setattr(
        "dpselect.noise.grid._limits_of",
        lambda different, which, n_digits: (
            lambda part: (_limits(different[which[part]], n_digits), slice(None))
        ),
    )
    np.testing.assert_array_equal(geometric(as_generator(1), 3000, rates), together)


def reached(noisy):
    """Share of results below 1 that are no multiples of 2^-53: none, if what was hidden is 1."""
    return np.mean((np.abs(noisy) < 1) & (noisy * 2.0**53 % 1 != 0))


def test_the_last_bits_tell_nothing():
    """The attack of Mironov (2012), on 100,000 releases: it finds Laplace noise of doubles out."""
    runs = 10**5
    here, there = (value + laplace(as_generator(i), runs) for i, value in enumerate((0.0, 1.0)))
    assert reached(here) > 0.2 and reached(there) == 0
    for i, value in enumerate((0.0, 1.0, 1 / 3)):
        noisy = grid_laplace(as_generator(i), np.full(runs, value), 1.0, 1.0)
        assert reached(noisy) == 0
        # every double is reached from all values: all lie on one grid
        assert (noisy % grid_step(1.0) == 0).all()


def two_values(scales=1.0, epsilon=1.0):
    return grid_laplace(as_generator(), np.array([0.1, 0.2]), scales, epsilon)


BAD = {
    "rate": (
        lambda rate: geometric(as_generator(), np.shape(rate), rate),
        [np.nan, 0.0, -1.0, 2.0**-62, [0.1, np.nan]],
    ),
    "ratio": (lambda ratio: discrete_laplace(as_generator(), 3, ratio), [np.nan, -0.5, 1.0, 1.5]),
    "scales": (two_values, [np.nan, 0.0, [1.0, -1.0], 1e-310]),
    "epsilon": (lambda epsilon: two_values(epsilon=epsilon), [np.nan, -1.0, 0.0]),
}


@pytest.mark.parametrize("name", BAD)
def test_numbers_that_would_give_no_noise_or_too_much_are_refused(name):
    sample, values = BAD[name]
    assert len(values) > 0
    for value in values:
        with pytest.raises(ValueError, match=name):
            sample(value)


def test_no_sign_of_a_zero_tells_a_value(monkeypatch):
    monkeypatch.setattr("dpselect.noise.grid.FINENESS", 0)
    values = np.tile([0.0, -0.0, 1e-9, -1e-9, 0.4, -0.4, 1.0, -1.0], 100)
    noisy = grid_laplace(as_generator(1), values, 1.0, 1e4).reshape(100, 8)
    # rounding alone would leave signs
    assert np.signbit(nearest_multiple(values, grid_step(1.0))[[1, 3, 5]]).all()
    assert (noisy == 0).any(axis=0).all() and not np.signbit(noisy[noisy == 0]).any()
    assert not np.signbit(grid_noise(as_generator(2), 100, 0.1, 1.0)).any()


def test_nothing_stays_nothing():
    assert grid_laplace(as_generator(), np.zeros(0), 1.0, 1.0).shape == (0,)

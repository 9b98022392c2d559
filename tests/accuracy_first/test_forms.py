"""The noise that accuracy-first searches announce, against the noise that they draw."""

import numpy as np
import pytest

from dpselect.base.accuracy_form import NoiseLevels, SensitivityNoise
from dpselect.mechanisms.brownian import brownian_loss, brownian_time
from dpselect.noise import root_stream

HOW = ("path", "brownian", "fresh")
NOISES = [
    SensitivityNoise("l1", (20_000,), 0.3),
    SensitivityNoise("integers", (20_000,), 2.0),
    # many vectors share one epsilon
    SensitivityNoise("l2", (10_000, 2), 0.3),
]


def draws(noise, how, seed, readings=(0.5, 2.0, 8.0)):
    levels = NoiseLevels(how, readings[0], readings[-1], delta=1e-6)
    put_noise_on, nothing = noise.start(levels, root_stream(seed)), np.zeros(noise.shape)
    return [
        (epsilon, put_noise_on(nothing, epsilon), noise.deviation(levels, epsilon))
        for epsilon in readings
    ]


def every_noise(test):
    cases = [
        pytest.param(noise, how, id=f"{noise.kind}-{how}")
        for noise in NOISES
        for how in HOW
        if how != "brownian" or noise.kind == "l2"
    ]
    return pytest.mark.parametrize("noise, how", cases)(test)


@every_noise
def test_deviation_is_that_of_the_samples(noise, how):
    scale = noise.shape[0] if noise.kind == "l2" else 1
    drawn = draws(noise, how, 0, (0.5 * scale, 2.0 * scale, 8.0 * scale))
    for _, reading, deviation in drawn:
        assert reading.shape == noise.shape
        # 20 000 numbers whose kurtosis is below 30: seven standard deviations of their spread
        assert reading.std() == pytest.approx(deviation, rel=0.15)
        assert abs(reading.mean()) < 0.06 * deviation
    deviations = [deviation for _, _, deviation in drawn]
    assert deviations[0] > 2 * deviations[1] > 4 * deviations[2]


@every_noise
def test_noise_is_correlated_along_a_path_and_independent_when_fresh(noise, how):
    scale = noise.shape[0] if noise.kind == "l2" else 1
    (_, one, _), (_, other, _) = draws(noise, how, 1, (0.9 * scale, scale))
    correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
    assert abs(correlation) < 0.06 if how == "fresh" else correlation > 0.7


@every_noise
def test_same_stream_same_noise(noise, how):
    one, other, third = (draws(noise, how, seed) for seed in (2, 2, 3))
    assert len(one) == 3
    for (_, a, _), (_, b, _), (_, c, _) in zip(one, other, third):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()


def test_discrete_noise_is_integer():
    for how in ("path", "fresh"):
        for _, reading, _ in draws(NOISES[1], how, 0):
            assert (reading == np.round(reading)).all()


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.kind)
def test_fresh_noise_has_the_law_of_the_path(noise):
    """Shares beyond two thresholds, at the level where the path ends."""
    scale = noise.shape[0] if noise.kind == "l2" else 1
    readings = (0.5 * scale, 2.0 * scale)
    (_, path, deviation), (_, fresh, _) = (draws(noise, how, 4, readings)[-1] for how in HOW[::2])
    for threshold in (0.5, 2.0):
        shares = [(np.abs(x) > threshold * deviation).mean() for x in (path, fresh)]
        assert shares[0] == pytest.approx(shares[1], abs=0.035) and min(shares) > 0.01


@pytest.mark.parametrize("low, high", [(0.01, 10.0), (1.0, 1.0), (1e-9, 1e6)])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_brownian_levels_have_the_loss_that_they_say(low, high, delta):
    levels = NoiseLevels("brownian", low, high, delta)
    # the mixture's parameter is fixed in advance; at any other, the levels would not fit
    rho = levels._rho
    for epsilon in np.geomspace(low, high, 7):
        loss = brownian_loss(levels.time(epsilon), delta, rho)
        assert loss <= epsilon and loss == pytest.approx(epsilon, rel=1e-6)
        hidden = brownian_loss(levels.time(epsilon) * 9.0, delta, rho * 9.0, sensitivity=3.0)
        assert hidden == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_brownian_levels_are_tight_in_the_middle_of_the_grid(delta):
    levels = NoiseLevels("brownian", 0.04, 9.0, delta)
    best = min(brownian_time(0.6, delta, rho) for rho in levels._rho * np.geomspace(0.05, 20, 60))
    assert levels.time(0.6) <= 1.001 * best


@pytest.mark.parametrize(
    "kind, how",
    [
        ("l1", "path"),
        ("l1", "fresh"),
        ("l2", "path"),
        ("l2", "brownian"),
        ("l2", "fresh"),
    ],
)
def test_each_coordinate_has_the_scale_of_its_own(kind, how):
    scales = np.repeat([1.0, 7.0], 10_000)
    shape = (20_000,) if kind == "l1" else (1, 20_000)
    noise = SensitivityNoise(kind, shape, 0.3, scales)
    for _, reading, deviation in draws(noise, how, 5):
        halves = reading.reshape(2, -1).std(axis=1)
        # 10 000 numbers each, as above
        np.testing.assert_allclose(halves, deviation * np.array([1.0, 7.0]), rtol=0.15)

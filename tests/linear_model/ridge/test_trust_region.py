import numpy as np
import pytest
from scipy.optimize import minimize

from dpselect.linear_model.ridge.trust_region import minimise_on_ball


def value(spectrum, linear, t):
    return (spectrum * t * t / 2 - linear * t).sum()


def assert_global_minimiser(spectrum, linear, radius, t):
    """The conditions of Moré and Sorensen, which are necessary and sufficient."""
    length = np.linalg.norm(t)
    assert length <= radius * (1 + 1e-12)
    scale = np.abs(spectrum).max() * radius + np.abs(linear).max()
    pull = linear - spectrum * t  # nu t at the minimiser
    if length < radius * (1 - 1e-9):
        assert np.abs(pull).max() <= 1e-12 * scale
        assert spectrum.min() >= -1e-12 * np.abs(spectrum).max()
    else:
        nu = pull @ t / length**2
        assert np.abs(pull - nu * t).max() <= 1e-11 * scale
        assert nu >= -1e-12 * scale / radius
        assert nu + spectrum.min() >= -1e-11 * scale / radius


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_a_generic_optimiser(d, seed):
    rng = np.random.default_rng(seed)
    spectrum, linear, radius = rng.normal(size=d), rng.normal(size=d), rng.exponential()
    t = minimise_on_ball(spectrum, linear, radius)
    starts = radius * rng.normal(size=(20, d)) / np.sqrt(d)
    best = min(
        minimize(
            lambda v: value(spectrum, linear, v),
            start,
            jac=lambda v: spectrum * v - linear,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 1000},
            constraints={
                "type": "ineq",
                "fun": lambda v: radius**2 - v @ v,
                "jac": lambda v: -2 * v,
            },
        ).fun
        for start in starts
    )
    assert abs(value(spectrum, linear, t) - best) <= 1e-6 * (1 + abs(best))


@pytest.mark.parametrize("seeds", [range(first, 300, 15) for first in range(15)], ids=str)
def test_conditions_of_a_global_minimiser(seeds):
    for seed in seeds:
        check_conditions_of_a_global_minimiser(seed)


def check_conditions_of_a_global_minimiser(seed):
    rng = np.random.default_rng(seed)
    d = rng.integers(1, 30)
    spectrum = rng.normal(size=d) * 10 ** rng.uniform(-3, 3) + rng.normal()
    linear = rng.normal(size=d) * 10 ** rng.uniform(-6, 3)
    if seed % 3 == 0:  # a multiple smallest eigenvalue
        spectrum[: d // 2] = spectrum.min()
    if seed % 5 == 0:  # nearly or exactly hard
        linear[spectrum == spectrum.min()] *= 10.0 ** -rng.integers(10, 400)
    radius = 10 ** rng.uniform(-3, 3)
    assert_global_minimiser(spectrum, linear, radius, minimise_on_ball(spectrum, linear, radius))


@pytest.mark.parametrize("multiplicity", [1, 3])
@pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-16, 1e-9])
def test_hard_case(multiplicity, tiny):
    spectrum = np.array([-2.0] * multiplicity + [-1.0, 0.0, 3.0])
    linear = np.array([tiny] * multiplicity + [0.5, -1.0, 2.0])
    # (spectrum + 2) t = linear away from the smallest eigenvalue
    rest = np.array([0.5, -0.5, 0.4])
    radius = 2.0
    t = minimise_on_ball(spectrum, linear, radius)
    np.testing.assert_allclose(t[multiplicity:], rest, rtol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(t), radius, rtol=1e-15)
    assert_global_minimiser(spectrum, linear, radius, t)


def test_vanishing_linear_term_but_not_hard():
    # the rest alone fills the ball
    spectrum, linear = np.array([-1.0, 1.0]), np.array([0.0, 10.0])
    t = minimise_on_ball(spectrum, linear, 1.0)
    np.testing.assert_allclose(t, [0.0, 1.0], atol=1e-15)


@pytest.mark.parametrize(
    "spectrum, linear, expected",
    [
        ([2.0, 4.0], [1.0, 1.0], [0.5, 0.25]),  # inside
        ([1.0, 1.0], [3.0, 4.0], [0.6, 0.8]),  # on the border
        ([0.0, 0.0], [3.0, 4.0], [0.6, 0.8]),  # linear
        ([-1.0, -1.0], [3.0, 4.0], [0.6, 0.8]),
        ([0.0, 2.0], [0.0, 1.0], None),  # a segment of minimisers
        ([-1.0, -1.0], [0.0, 0.0], None),  # a circle of minimisers
        ([1.0, np.inf], [0.5, 7.0], [0.5, 0.0]),  # held at 0
        ([0.25, np.inf], [0.5, 7.0], [1.0, 0.0]),
        ([np.inf, np.inf], [0.5, 7.0], [0.0, 0.0]),
        ([1e-200, 1e200], [1.0, 1.0], [1.0, 0.0]),
        ([1e-320, 1.0], [0.0, 0.5], [0.0, 0.5]),
    ],
)
def test_corners(spectrum, linear, expected):
    spectrum, linear = np.array(spectrum), np.array(linear)
    t = minimise_on_ball(spectrum, linear, 1.0)
    if expected is None:
        assert_global_minimiser(spectrum, linear, 1.0, t)
    else:
        np.testing.assert_allclose(t, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(scale):
    spectrum, linear = np.array([-1.0, 0.5, 2.0]), np.array([0.3, -0.4, 1.0])
    t = minimise_on_ball(spectrum, linear, 0.7)
    other = minimise_on_ball(scale * spectrum, scale * linear, 0.7)
    np.testing.assert_allclose(other, t, rtol=1e-12)
    np.testing.assert_allclose(
        minimise_on_ball(spectrum, scale * linear, scale * 0.7), scale * t, rtol=1e-12
    )

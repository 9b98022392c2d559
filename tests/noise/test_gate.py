"""The release gate: exact sums on a grid, and what rounding costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect.noise import release, release_step, scale_with_rounding
from dpselect.noise.gate import FINENESS

numbers = st.floats(-1e12, 1e12)
steps = st.integers(-60, 20).map(lambda power: 2.0**power)


def nearest_place(number, step):
    """Half-way cases go to the even place."""
    return round(Fraction(number) / Fraction(step))


@given(numbers, numbers, steps)
def test_a_release_is_the_double_nearest_to_the_exact_sum_on_the_grid(value, noise, step):
    exact = (nearest_place(value, step) + nearest_place(noise, step)) * Fraction(step)
    assert release(value, noise, step) == float(exact)


@given(st.integers(-(2**61), 2**61), st.floats(-1e6, 1e6), st.integers(-30, 0), st.integers(0, 30))
def test_integers_are_added_exactly(place, noise, power, finer):
    unit, step = 2.0**power, 2.0 ** (power - finer)
    found = release(np.array([place]), np.array([noise]), step, unit)
    exact = place * Fraction(unit) + nearest_place(noise, step) * Fraction(step)
    assert abs(Fraction(float(found[0])) - exact) <= abs(exact) * Fraction(2) ** -51 + Fraction(step)


@given(numbers, st.integers(-1000, 1000), steps)
def test_values_on_the_grid_are_moved_by_the_noise_alone(value, places, step):
    """What is released depends on the sum: a shift of the value is undone by one of the noise."""
    value = float(nearest_place(value, step) * step)
    if abs(value) > 2.0**52 * step:
        return
    assert release(value + places * step, -places * step, step) == release(value, 0.0, step)


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, -0.1, 5.0, -5.0])
def test_a_sum_of_zero_has_one_sign(value):
    """-0.0 + -0.0 is -0.0, which no value but one near 0 could give."""
    noise = -float(np.rint(value)) - 0.2
    assert not np.signbit(release([value], [noise], 1.0))[0]
    assert release([value], [noise], 1.0)[0] == 0


@pytest.mark.parametrize("scale", [1e-290, 1e-9, 0.7, 1.0, 3.0, 1e9, 1e300])
def test_the_step_is_a_power_of_two_below_the_scale(scale):
    step = release_step(scale)
    assert math.frexp(step)[0] == 0.5
    assert 2.0**-FINENESS / 2 < step / scale <= 2.0**-FINENESS
    assert release_step([scale, 2 * scale]) == step


def test_no_noise_needs_no_grid():
    assert release([0.1, 1e300], [0.0, 0.0], release_step(0.0)).tolist() == [0.1, 1e300]
    assert scale_with_rounding(0.0, release_step(0.0), math.inf) == 0


@given(st.integers(0, 2**32), st.integers(1, 30), st.floats(0.01, 10.0))
def test_the_charge_covers_what_rounding_moves(seed, d, loss):
    """The rounded values, in units of the stated scales, are within the loss of each other."""
    rng = np.random.default_rng(seed)
    # a coarse grid, so that rounding counts
    scale, step = rng.uniform(0.5, 2.0, size=d), 0.25
    difference = rng.normal(size=d)
    difference *= loss / np.linalg.norm(difference / scale)
    value = rng.uniform(-10, 10, size=d)
    moved = release(value, 0.0, step) - release(value + difference, 0.0, step)
    assert np.linalg.norm(moved / scale_with_rounding(scale, step, loss)) <= loss * (1 + 1e-12)
    alike = scale_with_rounding(2.0, step, loss, d)
    assert alike == pytest.approx(scale_with_rounding(np.full(d, 2.0), step, loss)[0])


def test_the_charge_cannot_be_smaller():
    """In each coordinate two values at either side of a half-way case move a whole step apart."""
    d, step, scale, loss = 4, 0.25, 1.0, 0.5
    tiny = 1e-9
    value, other = np.full(d, step / 2 - tiny), np.full(d, step / 2 + tiny)
    moved = np.linalg.norm(release(other, 0.0, step) - release(value, 0.0, step))
    spending = scale_with_rounding(scale, step, loss, d) * loss - scale * loss
    assert moved == pytest.approx(spending)


def test_values_that_the_grid_does_not_hold_are_refused():
    with pytest.raises(ValueError, match="unit=0.25 is no multiple of step=0.5"):
        release(np.array([1]), np.array([0.5]), 0.5, unit=0.25)

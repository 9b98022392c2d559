"""Gaussian noise against the exact delta that it spends, to 60 digits and more."""

import math

import mpmath
import numpy as np
import pytest

from dpselect.accounting import gaussian
from dpselect.accounting.gaussian import gaussian_mu


def delta_spent(epsilon, mu):
    # the terms are Mills' ratios at points that lie mu apart, so that log10(1 / mu) digits cancel
    with mpmath.workdps(100 + math.ceil(max(0.0, -math.log10(mu)))):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        far = mpmath.ncdf(-mu / 2 - epsilon / mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * far


def budgets(seed, size):
    rng = np.random.default_rng(seed)
    yield from [(e, d) for e in (1e-6, 1.0, 1e3) for d in (1e-300, 1e-15, 1e-6, 0.5)]
    for exponent in rng.uniform(-6, 3, size):
        low = rng.choice([-300.0, -12.0])
        yield 10**exponent, 10 ** rng.uniform(low, np.log10(0.5))


def spends_too_much(solve, seed, size=150):
    return [
        (epsilon, delta)
        for epsilon, delta in budgets(seed, size)
        if delta_spent(epsilon, solve(epsilon, delta)) > mpmath.mpf(delta)
    ]


def test_no_more_than_delta_in_exact_arithmetic():
    assert spends_too_much(gaussian_mu, seed=0) == []


def test_the_largest_there_is():
    for epsilon, delta in budgets(seed=1, size=150):
        more = mpmath.mpf(gaussian_mu(epsilon, delta)) * (1 + mpmath.mpf(10) ** -12)
        assert delta_spent(epsilon, more) > mpmath.mpf(delta)


def test_the_root_as_computed_is_caught(monkeypatch):
    """The twin that does not step back spends too much about every other time."""
    monkeypatch.setattr(gaussian, "STEP_BACK", 0.0)
    assert len(spends_too_much(gaussian_mu, seed=0)) > 30


def test_the_step_back_is_many_times_the_error(monkeypatch):
    safety = gaussian.STEP_BACK / 50
    monkeypatch.setattr(gaussian, "STEP_BACK", safety)
    assert spends_too_much(gaussian_mu, seed=2) == []


@pytest.mark.parametrize(
    "epsilon, delta",
    [
        (1e-300, 1e-300),
        (1e-12, 1e-9),
        (1e9, 1e-9),
        (1e20, 1e-9),
        (1e300, 1e-9),
        (1.0, 0.9),
    ],
)
def test_beyond_the_range(epsilon, delta):
    assert 0 < delta_spent(epsilon, gaussian_mu(epsilon, delta)) <= mpmath.mpf(delta)

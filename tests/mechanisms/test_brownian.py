import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import beta, multivariate_normal, norm

from dpselect.mechanisms.brownian import brownian_loss, brownian_time, mixture_rho

FALSE_ALARM = 1e-7
DELTA, RHO = 0.05, 1.0
TIMES = np.geomspace(1e3, 1e-3, 200)


@pytest.mark.parametrize("sensitivity", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("time", [1e-3, 1.0, 1e4])
def test_loss(time, sensitivity):
    x = (time + 2.0) / 2.0
    expected = sensitivity**2 / (2 * time) + sensitivity / time * math.sqrt(
        2 * (time + 2.0) * math.log(math.sqrt(x) / 1e-5)
    )
    assert brownian_loss(time, 1e-5, 2.0, sensitivity) == pytest.approx(expected)


@pytest.mark.parametrize("delta", [1e-12, 0.01, 0.999])
@pytest.mark.parametrize("rho", [1e-6, 1.0, 1e5])
def test_loss_falls_with_time_and_is_inverted(delta, rho):
    losses = [brownian_loss(time, delta, rho) for time in np.geomspace(1e-8, 1e8, 400)]
    assert (np.diff(losses) < 0).all()
    for epsilon in (1e-3, 0.7, 30.0):
        for sensitivity in (0.01, 1.0, 4.0):
            time = brownian_time(epsilon, delta, rho, sensitivity)
            assert brownian_loss(time, delta, rho, sensitivity) <= epsilon
            assert brownian_loss(time * (1 - 1e-9), delta, rho, sensitivity) > epsilon


@pytest.mark.parametrize("delta", [1e-100, 1e-6, 0.3, 0.999])
def test_mixture_rho_is_the_best(delta):
    time = 37.0
    best = minimize_scalar(
        lambda log_rho: brownian_loss(time, delta, math.exp(log_rho)),
        bracket=(math.log(time) - 3, math.log(time)),
    )
    assert brownian_loss(time, delta, mixture_rho(time, delta)) <= best.fun * (1 + 1e-12)


@pytest.mark.parametrize("dimension", [1, 3])
def test_log_ratio_of_a_path_is_that_of_its_last_point(dimension):
    rng = np.random.default_rng(0)
    times = np.array([9.0, 4.0, 3.5, 0.2])
    covariance = np.minimum.outer(times, times)
    shift = rng.normal(size=dimension)
    path = multivariate_normal.rvs(cov=covariance, size=dimension, random_state=rng).T
    path = path.reshape(len(times), dimension)
    law = multivariate_normal(cov=covariance)
    ratio = sum(law.logpdf(path[:, j]) - law.logpdf(path[:, j] + shift[j]) for j in range(dimension))
    last = path[-1]
    expected = ((last + shift) @ (last + shift) - last @ last) / (2 * times[-1])
    assert ratio == pytest.approx(expected)


@pytest.fixture(scope="module")
def losses():
    """The log-ratio of all released down to each of TIMES, in 1e5 runs, shape (times, runs)."""
    rng = np.random.default_rng(0)
    motion = rng.standard_normal((len(TIMES), 100_000))
    motion *= np.sqrt(np.diff(TIMES[::-1], prepend=0.0))[:, None]
    np.cumsum(motion, axis=0, out=motion)
    motion = motion[::-1]
    # the release is the motion itself, or on the neighbouring data the motion less 1
    return (motion + 0.5) / TIMES[:, None]


def ever_exceeded(losses, bounds):
    """Return bounds of the probability that a loss exceeds its bound at any of the times."""
    runs = losses.shape[1]
    count = int((losses > np.asarray(bounds)[:, None]).any(axis=0).sum())
    low = beta.ppf(FALSE_ALARM, count, runs - count + 1) if count else 0.0
    high = beta.isf(FALSE_ALARM, count + 1, runs - count) if count < runs else 1.0
    return low, high


@pytest.mark.parametrize("rho", [0.01, RHO, 10.0])
def test_bound_holds_at_all_times_at_once(losses, rho):
    low, high = ever_exceeded(losses, [brownian_loss(t, DELTA, rho) for t in TIMES])
    # one-sided: near delta / 2, less what happens between the times
    assert high < DELTA and low > DELTA / 5


def test_one_sided_bound_of_the_notes_holds(losses):
    def bound(t):
        inside = 0.5 + math.sqrt((t + RHO) / RHO) / (2 * DELTA)
        return 1 / (2 * t) + math.sqrt(2 * (t + RHO) * math.log(inside)) / t

    assert all(bound(t) < brownian_loss(t, DELTA, RHO) for t in TIMES)
    low, high = ever_exceeded(losses, [bound(t) for t in TIMES])
    assert high < DELTA and low > DELTA / 2


def test_bound_for_one_time_is_caught(losses):
    at_one_time = 1 / (2 * TIMES) + norm.isf(DELTA) / np.sqrt(TIMES)
    assert ever_exceeded(losses, at_one_time)[0] > 4 * DELTA
    for k in (0, 100, 199):
        assert ever_exceeded(losses[[k]], at_one_time[[k]])[0] < DELTA


def test_bound_without_its_parts_is_caught(losses):
    # rho left out, or in the logarithm alone, and the part of the loss that is no noise left out
    deviations = {
        "no rho": [math.sqrt(2 * t * math.log(1 / DELTA)) for t in TIMES],
        "logarithm": [math.sqrt(2 * t * math.log(math.sqrt(t + 1) / DELTA)) for t in TIMES],
    }
    for deviation in deviations.values():
        assert ever_exceeded(losses, 1 / (2 * TIMES) + deviation / TIMES)[0] > DELTA
    no_drift = [brownian_loss(t, DELTA, 0.01) - 1 / (2 * t) for t in TIMES]
    assert ever_exceeded(losses, no_drift)[0] > 4 * DELTA

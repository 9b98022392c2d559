"""Privacy loss along a Brownian path of Gaussian noise that is reduced as the data require.

A vector is released with noise B_t, a Brownian motion of variance t per coordinate, from large
times to small ones. Where to stop may depend on all that was released.
"""

import functools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw


def brownian_loss(time, delta, rho, sensitivity=1.0):
    """Return the ex-post privacy loss of a Brownian path down to `time`, the variance t.

    Delta^2 / (2 t) + (Delta / t) sqrt(2 (t + rho) ln(sqrt((t + rho) / rho) / delta)), decreasing in
    t. It fails at any time at all with probability at most delta. rho, in the unit of `time`, is
    fixed before the path is begun; the bound is tightest near one time, see :func:`mixture_rho`.
    Replacing one record moves the vector by at most the `sensitivity`, Delta, in l2 norm.

    Let d, ||d|| <= Delta, be the difference of the vectors on two data sets. What was released
    before time t is what was released at t plus noise independent of the data, so the log-ratio of
    the densities of everything released down to t is that of the last vector,

        (||B_t + d||^2 - ||B_t||^2) / 2t = ||d||^2 / 2t + ||d|| W_t / t,

    with W_t = <d, B_t> / ||d|| a Brownian motion. It is below the bound at all times if W_t stays
    below u(t), the square root above; that it is read from large times to small ones does not
    matter. exp(c W_t - c^2 t / 2) is a martingale for every c, and so is its mean over c ~ N(0, 1 /
    rho), which is sqrt(rho / (t + rho)) exp(W_t^2 / (2 (t + rho))). It starts at 1, so by Ville's
    inequality it ever reaches 1 / delta, that is abs(W_t) reaches u(t), with probability at most
    delta.

    This is the published bound. It is two-sided, where W_t >= u(t) alone is a failure: that has
    probability between delta / 2 and delta, near delta / 2 for a small delta. With c > 0 only the
    same argument gives 1/2 + sqrt((t + rho) / rho) / (2 delta) inside the logarithm.

    Whitehouse, Ramdas, Wu and Rogers, *Brownian Noise Reduction: Maximizing Privacy Subject to
    Accuracy Constraints*, NeurIPS 2022. Howard, Ramdas, McAuliffe and Sekhon, *Time-uniform,
    nonparametric, nonasymptotic confidence sequences*, Annals of Statistics 49, 2021.
    """
    log_term = 0.5 * math.log1p(time / rho) - math.log(delta)
    deviation = math.sqrt(2 * (time + rho) * log_term)
    return sensitivity**2 / (2 * time) + sensitivity / time * deviation


@functools.lru_cache
def brownian_time(epsilon, delta, rho, sensitivity=1.0):
    """Return the smallest time at which the privacy loss is at most `epsilon`.

    Greater than the root of :func:`brownian_loss` by at most a relative 1e-11; the loss at it is at
    most `epsilon`.
    """

    def excess(log_time):
        return brownian_loss(math.exp(log_time), delta, rho, sensitivity) - epsilon

    low = high = math.log(rho)
    while excess(low) <= 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    time = math.exp(brentq(excess, low, high, xtol=1e-13))
    # the root may be off to either side; only a larger time has a smaller loss
    while brownian_loss(time, delta, rho, sensitivity) > epsilon:
        time *= 1 + 1e-12
    return time


def mixture_rho(time, delta):
    """Return the rho, in the unit of `time`, that makes the privacy loss at `time` smallest.

    With u = t / rho, (1 + 1 / u) (ln(1 + u) / 2 - ln(delta)) is smallest where u - ln(1 + u) = -2
    ln(delta), that is u = -1 - W(-delta^2 / e) for the lower branch of Lambert's function (Howard
    et al. 2021, section 3.5). delta is at least 1e-150.
    """
    return time / (-1 - float(lambertw(-(delta**2) / np.e, k=-1).real))

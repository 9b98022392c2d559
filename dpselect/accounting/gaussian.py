"""Exact calibration of the Gaussian mechanism."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx

LOG_ROOT = math.log(2 * math.pi) / 2
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
# The computed root is wrong by less than 2^-46 of itself for every epsilon from 1e-6 to 1e3 and
# every delta from 1e-300 on, so the returned value is reduced by that much.
STEP_BACK = 2.0**-40


def gaussian_mu(epsilon, delta):
    """Return the largest sensitivity, in standard deviations, that is (epsilon, delta)-private.

    Solves Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu) = delta, the exact
    condition for Gaussian noise (Balle and Wang, *Improving the Gaussian Mechanism for Differential
    Privacy*, ICML 2018, theorem 8), and returns less by at most 1e-12 of it: the left side, in
    exact arithmetic, is never above delta. A delta above 1/2 counts as 1/2.

    With x = epsilon / mu - mu / 2, y = x + mu and Mills' ratio M(s) = Phi(-s) / phi(s) the left
    side is phi(x) (M(x) - M(y)): as written above it would be a difference of numbers that agree in
    nearly all digits. For a small mu that would still hold of the ratios, and M(x) - M(y) is the
    integral of -M'(s) = 1 - s M(s) from x to y.
    """
    log_delta = math.log(min(delta, 0.5))

    def excess(mu):
        return gaussian_log_delta(epsilon, mu) - log_delta

    high = 1.0
    while excess(high) < 0:
        high *= 2
    low = high / 2
    while excess(low) > 0:
        low /= 2
    return brentq(excess, low, 2 * low, xtol=1e-15 * low) * (1 - STEP_BACK)


def gaussian_epsilon(mu, delta):
    """Return the least epsilon at a delta for a sensitivity of mu standard deviations.

    Or more by at most 1e-12 of it. It is 0 if `delta` is at least the delta at epsilon 0.
    """
    if mu == 0 or delta >= math.erf(mu / math.sqrt(8)):
        return 0.0
    log_delta, high = math.log(min(delta, 0.5)), mu
    while gaussian_log_delta(high, mu) > log_delta:
        high *= 2
    return brentq(lambda e: gaussian_log_delta(e, mu) - log_delta, 0.0, high, xtol=1e-15 * high) * (
        1 + STEP_BACK
    )


def gaussian_log_delta(epsilon, mu):
    """Return log(delta) at an epsilon for a sensitivity of mu standard deviations.

    0 where it is more than 1/2.
    """
    x = epsilon / mu - mu / 2
    if x < -2:
        return 0.0
    if mu > 0.5:
        fall = _mills(x) - _mills(x + mu)
    else:
        s = x + mu / 2 * (1 + NODES)
        # in the far tail all digits cancel, but there delta is negligible
        fall = mu / 2 * (WEIGHTS @ np.maximum(1 - s * _mills(s), np.finfo(float).tiny))
    # the difference of ratios is 0 for a huge epsilon, where x decides
    return -x * x / 2 - LOG_ROOT + math.log(max(fall, np.finfo(float).tiny))


def _mills(s):
    return math.sqrt(math.pi / 2) * erfcx(s / math.sqrt(2))

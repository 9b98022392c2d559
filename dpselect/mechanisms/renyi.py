"""Renyi and concentrated differential privacy: what many releases cost together, given a delta.

A mechanism has the Renyi curve r if D_a(P || P') <= r(a) for every order a > 1 and all neighbouring
data sets; it is rho-zCDP if r(a) = rho a. Curves of releases about the same records add up.
Functions of numbers; they know nothing of estimators.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar

# Public and fixed: the orders at which curves are compared. Orders close to 1 serve large values
# of delta, high orders small privacy losses.
ORDERS = 1 + np.geomspace(1e-2, 1e5, 421)
ORDERS.flags.writeable = False


def pure_rdp(epsilon, orders=ORDERS):
    """Return the Renyi curve that every epsilon-differentially private mechanism has.

    Parameters
    ----------
    epsilon : float
        Privacy loss, 0 or more, finite.
    orders : array-like of shape (n_orders,), default=ORDERS
        Orders a > 1.

    Returns
    -------
    ndarray of shape (n_orders,)
        ln(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1).

    Notes
    -----
    Attained by randomised response between two answers, from which every epsilon-differentially
    private pair of laws can be computed (Kairouz, Oh and Viswanath, *The Composition Theorem for
    Differential Privacy*, 2015). The same as proposition 3.3 of Bun and Steinke 2016, where it
    is written ln((sinh(a epsilon) - sinh((a - 1) epsilon)) / sinh(epsilon)) / (a - 1).

    Examples
    --------
    >>> from dpselect.mechanisms.renyi import pure_rdp
    >>> pure_rdp(1.0, [2.0, 1000.0])
    array([0.735..., 0.9996...])
    """
    a = np.asarray(orders, dtype=np.float64)
    return (_log_cosh((a - 0.5) * epsilon) - _log_cosh(0.5 * epsilon)) / (a - 1)


def _log_cosh(x):
    # the second form loses all digits near 0, where ln(cosh(x)) is x^2 / 2
    near = np.log1p(2 * np.sinh(np.minimum(x, 1.0) / 2) ** 2)
    return np.where(x < 1, near, x + np.log1p(np.exp(-2 * x)) - math.log(2))


def rdp_to_epsilon(rdp, delta, orders=ORDERS):
    """Return the epsilon that a Renyi curve has at a given delta.

    Parameters
    ----------
    rdp : array-like of shape (n_orders,)
        r(a) >= 0 at each of the orders.
    delta : float
        In (0, 1).
    orders : array-like of shape (n_orders,), default=ORDERS
        Orders a > 1.

    Returns
    -------
    float
        The least of r(a) + ln(1 - 1 / a) - ln(a delta) / (a - 1), and 0 if that is negative or if
        1 - exp(-r(a)) <= delta^2 at some order.

    Notes
    -----
    Proposition 12 of Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential
    Privacy*, 2020. The other condition is the inequality of Bretagnolle and Huber: the distance
    in total variation, which is delta at epsilon = 0, is at most sqrt(1 - exp(-D_1)), and
    D_1 <= D_a.

    Examples
    --------
    >>> from dpselect.mechanisms.renyi import pure_rdp, rdp_to_epsilon
    >>> rdp_to_epsilon(100 * pure_rdp(0.1), delta=1e-6)
    5.0...
    """
    rdp, a = np.asarray(rdp, dtype=np.float64), np.asarray(orders, dtype=np.float64)
    if (-np.expm1(-rdp) <= delta**2).any():
        return 0.0
    return max(0.0, float((rdp + _conversion(a, delta)).min()))


def rdp_to_delta(rdp, epsilon, orders=ORDERS):
    """Return the delta that a Renyi curve has at a given epsilon.

    Parameters
    ----------
    rdp, orders
        As in :func:`rdp_to_epsilon`.
    epsilon : float
        0 or more.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    By the same two inequalities as :func:`rdp_to_epsilon`.
    """
    rdp, a = np.asarray(rdp, dtype=np.float64), np.asarray(orders, dtype=np.float64)
    log_delta = (a - 1) * (rdp - epsilon + np.log1p(-1 / a)) - np.log(a)
    total_variation = math.sqrt(-np.expm1(-rdp.min()))
    return min(1.0, total_variation, math.exp(min(0.0, log_delta.min())))


def _conversion(a, delta):
    """Return what r(a) is short of an epsilon at `delta`."""
    return np.log1p(-1 / a) - np.log(a * delta) / (a - 1)


def pure_to_zcdp(epsilon):
    """Return the rho of every epsilon-differentially private mechanism.

    Parameters
    ----------
    epsilon : float
        Privacy loss, 0 or more.

    Returns
    -------
    float
        epsilon tanh(epsilon / 2), which is less than epsilon^2 / 2.

    Notes
    -----
    Bun and Steinke, *Concentrated Differential Privacy*, 2016, proposition 1.4, has epsilon^2 / 2.
    The curve of :func:`pure_rdp` is epsilon times the mean of tanh between epsilon / 2 and
    (a - 1/2) epsilon. As tanh is concave there, r(a) <= epsilon tanh(a epsilon / 2), and
    tanh(a x) / a falls with a. So r(a) / a <= epsilon tanh(epsilon / 2), which is the limit
    of r(a) / a at a = 1: no smaller rho holds.

    Examples
    --------
    >>> from dpselect.mechanisms.renyi import pure_to_zcdp
    >>> pure_to_zcdp(0.1)
    0.00499...
    >>> pure_to_zcdp(4.0)
    3.85...
    """
    return epsilon * math.tanh(epsilon / 2)


def exponential_mechanism_to_zcdp(epsilon):
    """Return the rho of an epsilon-differentially private exponential mechanism.

    Parameters
    ----------
    epsilon : float
        That of :func:`dpselect.mechanisms.exponential_mechanism`, 0 or more.

    Returns
    -------
    float
        epsilon^2 / 8: a quarter of what pure differential privacy alone gives if epsilon is
        small. For a large epsilon, what it gives if that is less.

    Notes
    -----
    One record moves each epsilon q_i / (2 Delta) by at most epsilon / 2 either way, so the
    log-ratio L of the probabilities lies in an interval of length epsilon: the mechanism has
    bounded range (Durfee and Rogers 2019). Then rho = epsilon^2 / 8 (Cesar and Rogers 2021). For
    K(s) = ln E[exp(s L)] under P' has a second derivative that is a variance on this interval, at
    most epsilon^2 / 4, and K(0) = K(1) = 0. So K(s) - s (s - 1) epsilon^2 / 8 is concave and
    vanishes at 0 and 1, and (a - 1) D_a = K(a) <= a (a - 1) epsilon^2 / 8.

    This does not hold for :func:`dpselect.mechanisms.noisy_argmax`, whose log-ratios can span
    2 epsilon: two candidates with equal scores that move apart. Its rho is
    :func:`pure_to_zcdp`.

    References
    ----------
    Durfee and Rogers, *Practical Differentially Private Top-k Selection with Pay-what-you-get
    Composition*, 2019.

    Cesar and Rogers, *Bounding, Concentrating, and Truncating: Unifying Privacy Loss Composition
    for Data Analytics*, 2021.

    Examples
    --------
    >>> from dpselect.mechanisms.renyi import exponential_mechanism_to_zcdp
    >>> exponential_mechanism_to_zcdp(1.0)
    0.125
    """
    return min(epsilon**2 / 8, pure_to_zcdp(epsilon))


def zcdp_to_epsilon(rho, delta):
    """Return the epsilon that rho-zCDP has at a given delta.

    Parameters
    ----------
    rho : float
        Greater than 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float

    Notes
    -----
    The least value of :func:`rdp_to_epsilon` over all orders. Every order gives a valid epsilon,
    so a search that stops early is on the safe side. With ln(delta) = h(a, epsilon) in the
    proposition, h is convex in a, so there is one valley to be searched.

    Examples
    --------
    >>> from dpselect.mechanisms.renyi import zcdp_to_epsilon
    >>> zcdp_to_epsilon(0.01, delta=1e-6)
    0.62...
    """
    if -math.expm1(-rho) <= delta**2:
        return 0.0
    return max(0.0, _least(lambda a: rho * a + _conversion(a, delta)))


def zcdp_budget(epsilon, delta):
    """Return the largest rho that has a given epsilon at a given delta.

    Parameters
    ----------
    epsilon : float
        0 or more.
    delta : float
        In (0, 1).

    Returns
    -------
    float

    Notes
    -----
    :func:`zcdp_to_epsilon`, solved for rho at each order.

    Examples
    --------
    >>> from dpselect.mechanisms.renyi import zcdp_budget
    >>> rho = zcdp_budget(1.0, delta=1e-6)
    >>> rho
    0.024...
    >>> (2 * rho / 100) ** 0.5  # for each of 100 models, where adding up leaves 0.01
    0.022...
    """
    far = -_least(lambda a: (_conversion(a, delta) - epsilon) / a)
    return max(far, -math.log1p(-(delta**2)))


def _least(value):
    """Return the least value of a function of the order that has one valley."""
    found = minimize_scalar(
        lambda log: float(value(1 + math.exp(log))), bounds=(-20, 40), method="bounded",
        options={"xatol": 1e-10},
    )
    return float(found.fun)

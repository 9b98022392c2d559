"""Concentrated differential privacy: composition of many releases at a given delta.

A mechanism is rho-zCDP if its Renyi divergences satisfy D_a(P || P') <= rho a for every order a > 1
and all neighbouring data sets. The rhos of releases about the same records add up. Functions of
numbers; they know nothing of estimators.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar

# Budgets are found numerically; converting them back was measured to be off by up to 4e-12 of epsilon.
ROUNDING = 1e-9


def conversion(a, delta):
    """Return the difference between epsilon at `delta` and a divergence of order `a`."""
    return float(np.log1p(-1 / a) - np.log(a * delta) / (a - 1))


def pure_divergence(epsilon, order):
    """Return the largest divergence of an order among epsilon-differentially private mechanisms.

    That of randomised response, r(a) of :func:`pure_to_zcdp`, with the quotient of hyperbolic cosines
    written as 1 and a product, in which no digits cancel.
    """
    if order * epsilon > 700:  # exponentials overflow float64; a divergence is at most epsilon
        return epsilon
    product = math.sinh(order * epsilon / 2) * math.sinh((order - 1) * epsilon / 2)
    return min(epsilon, math.log1p(2 * product / math.cosh(epsilon / 2)) / (order - 1))


def pure_to_zcdp(epsilon):
    """Return the rho of every epsilon-differentially private mechanism, epsilon tanh(epsilon / 2).

    Bun and Steinke, *Concentrated Differential Privacy*, 2016, proposition 1.4, has epsilon^2 / 2.
    Every epsilon-differentially private pair of laws can be computed from the answers of randomised
    response (Kairouz, Oh and Viswanath, *The Composition Theorem for Differential Privacy*, 2015),
    whose divergence is r(a) = ln(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1). This is
    epsilon times the mean of tanh between epsilon / 2 and (a - 1/2) epsilon. As tanh is concave
    there, r(a) <= epsilon tanh(a epsilon / 2), and tanh(a x) / a falls with a. So r(a) / a <=
    epsilon tanh(epsilon / 2), which is the limit of r(a) / a at a = 1: no smaller rho holds.
    """
    return epsilon * math.tanh(epsilon / 2)


def zcdp_to_epsilon(rho, delta):
    """Return the epsilon that rho-zCDP has at a given delta.

    The least of rho a + ln(1 - 1 / a) - ln(a delta) / (a - 1) over all orders a > 1: proposition 12
    of Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential Privacy*, 2020. Every
    order gives a valid epsilon, so a search that stops early is on the safe side. With ln(delta) =
    h(a, epsilon) in the proposition, h is convex in a, so there is one valley to be searched.

    The least is below 0 where 1 - exp(-rho) <= delta^2, so it is no worse than the inequality of
    Bretagnolle and Huber, and unlike that one it holds for divergences of at most xi + rho a, too,
    with xi added.
    """
    return max(0.0, _least(lambda a: rho * a + conversion(a, delta)))


def zcdp_budget(epsilon, delta):
    """Return the largest rho with a given epsilon: zcdp_to_epsilon, solved for rho at each order."""
    return -_least(lambda a: (conversion(a, delta) - epsilon) / a)


def filter_order(epsilon, delta):
    """Return the order at which a budget admits most Gaussian releases: that of `zcdp_budget`."""
    return 1 + math.exp(_valley(lambda a: (conversion(a, delta) - epsilon) / a).x)


def _least(value):
    """Return the minimum of a unimodal function of the order."""
    return float(_valley(value).fun)


def _valley(value):
    return minimize_scalar(
        lambda log: float(value(1 + math.exp(log))),
        bounds=(-20, 40),
        method="bounded",
        options={"xatol": 1e-10},
    )

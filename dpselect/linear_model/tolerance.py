"""Tolerances of the solver of linear models, and its guaranteed number of passes.

Everything here is a function of public numbers. Symbols as in
:mod:`~dpselect.linear_model.calibration`. The proofs are on the page "Linear classifiers" of the
documentation.
"""

import math

import numpy as np

# A margin of size R ||w|| has a rounding error of about 2**-52 of itself, a gradient c R times that.
ROUNDING = 2**-48
# Upper bound on the tolerance.
TOL = 1e-10
# Rounding error of a gradient's sum over a block of rows, relative to its largest norm; equal rows were
# measured to come near.
FINEST = 1e-11
# Largest effect on the model of the noise that hides the residual, relative to the objective's noise.
HARMLESS = 0.1
# Bound on the gradients of a guaranteed method, for any data. Most problems need a few dozen, by faster
# methods that are tried first.
MAX_STEPS = 2**20
# with more coefficients than this, no d x d array is stored or computed
MAX_SQUARE = 1024


def attainable(loss, R, mu, t, tol):
    """Return tau, the attainable gradient norm: a function of public numbers.

    tol (L R + t), t being the mean length of the noise in the gradient, or what rounding of
    the margins leaves of it when mu is so small that the model may be very long.
    """
    length = longest(loss, R, mu, t)
    return float(max(tol * (loss.lipschitz * R + t), ROUNDING * loss.curvature * R * (R * length)))


def tightened(loss, R, mu, t, tol, harmless=math.inf):
    """Return the computed gradient norm at which the solver ends, and tau, that of the exact problem.

    tau is `harmless` at most, if that can be had. It counts rounding of the sums where the solver ends
    later than at ``TOL``, of which that is no more than a tenth.
    """
    finest = FINEST * (loss.lipschitz * R + t)
    tighter = max(harmless - finest, attainable(loss, R, mu, t, FINEST))
    goal = min(attainable(loss, R, mu, t, tol), tighter)
    return goal, goal + finest if goal < attainable(loss, R, mu, t, TOL) else goal


def harmless_scale(loss, R, mu, d, linear_scale):
    """Return the largest harmless scale of added noise, relative to the objective's: theorem 4b."""
    return HARMLESS * linear_scale / (mu + loss.curvature * R**2 / d)


def longest(loss, R, mu, t):
    """Bound ||w|| where mu w differs by at most t from the negative gradient of the loss."""
    if isinstance(t, float):
        t = float(t)
        by_norm = (loss.lipschitz * R + t) / mu
        return min(by_norm, (t + math.sqrt(t * t + 4 * mu * loss.pull)) / (2 * mu))
    with np.errstate(over="ignore"):
        by_norm = (loss.lipschitz * R + t) / mu
        return np.minimum(by_norm, (t + np.sqrt(t * t + 4 * mu * loss.pull)) / (2 * mu))


def guaranteed_steps(loss, R, mu, t, tau, d):
    """Return bounds on the number of gradients that two methods need to reach tau.

    Two whole numbers, or ``inf``, for problems of d coefficients with rows of l2 norm at most R,
    strong convexity mu, and a linear term of length t. Of Nesterov's method for strongly convex
    functions, from any point with a gradient no longer than R + t: with M = c R^2 + mu, the squared
    gradient after N steps is at most 2 M (R + t)^2 / mu (1 - sqrt(mu / M))^N. Of the ellipsoid
    method, from a ball of radius W that holds the minimiser: N steps leave less than the volume of
    a ball of radius tau / M.

    Nesterov, *Lectures on Convex Optimization*, 2018, theorem 2.2.3 and section 3.2.8.
    """
    M = loss.curvature * R**2 + mu
    # a smaller mu is a valid bound too, and keeps the rate below 1
    rate = min(math.sqrt(mu / M), 0.9)
    if not 0 < rate:
        return math.inf, math.inf
    # separate logarithms: in small units the squares would underflow
    fall = math.log(2 * M / mu) + 2 * (math.log(loss.lipschitz * R + t) - math.log(tau))
    accelerated = fall / -math.log1p(-rate)
    width = float(longest(loss, R, mu, t)) * M / tau
    along, across = ellipsoid_factors(d)
    shrinkage = -math.log(along) - (d - 1) * math.log(across)
    ellipsoids = d * math.log1p(width) / shrinkage + 1 if d <= MAX_SQUARE else math.inf
    return tuple(
        float(math.ceil(max(N, 1.0))) if math.isfinite(N) else math.inf
        for N in (accelerated, ellipsoids)
    )


def ellipsoid_factors(d):
    """Return the axes, along the cut and across it, of the least ellipsoid about half a unit ball."""
    return d / (d + 1), d / math.sqrt(d * d - 1) if d > 1 else 1.0


def check_steps(loss, R, mu, t, tau, d, alpha, tol):
    """Refuse a problem that, on some data, might need more than ``MAX_STEPS`` gradients.

    Parameters are those of :func:`guaranteed_steps` and :func:`attainable`; `alpha` is lambda, as it
    was given: mu or less.
    """
    needed = min(guaranteed_steps(loss, R, mu, t, tau, d))
    if needed <= MAX_STEPS:
        return
    # tau need not increase with mu
    enough, tau = 2 * mu, min(tol, FINEST) * (loss.lipschitz * R + t)
    while min(guaranteed_steps(loss, R, enough, t, tau, d)) > MAX_STEPS:
        enough *= 2
    given, smoother = loss.smoother
    raise ValueError(
        f"alpha={alpha!r} for rows of norm up to {R!r} (data_norm with intercept_scaling){given} might "
        f"take the solver {needed:.2g} passes over the records, where {MAX_STEPS} are the most, and "
        "the privacy loss covers only what is solved whatever the records are; write "
        f"alpha={enough:.2g}{smoother} or a smaller intercept_scaling."
    )

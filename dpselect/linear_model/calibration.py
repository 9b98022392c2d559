"""Calibrate the noise of a linear model: output and objective perturbation.

Symbols, as in Chaudhuri, Monteleoni and Sarwate (2011): n records, rows of l2 norm
at most R in d dimensions (the intercept's constant included in both), G a bound on the
rows in the norm that the noise of the objective is made for, lambda the
regularisation, L and c the largest first and second derivative of the loss, Delta the
extra regularisation of objective perturbation, mu = lambda + Delta, and tau the solver's
tolerance. The proofs are on the page "Linear classifiers" of the documentation.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from ..noise import release_step, scale_with_rounding
from ..noise.grid import NO_GRID
from .losses import LogisticLoss, PseudoHuberLoss, WeightedLoss
from .tolerance import HARMLESS, attainable, check_steps, harmless_scale, longest, tightened

# Fraction of epsilon that objective perturbation spends on hiding the solver's residual.
RESIDUAL_FRACTION = 1e-3
# Its upper bound, for a residual that needs longer noise than the objective.
MAX_RESIDUAL_FRACTION = 0.05
# Grid of derivatives for the curvature of the pseudo-Huber loss, in units of the largest one.
DERIVATIVES = np.linspace(0.0, 1.0, 2**13 + 1)


@dataclass(frozen=True)
class Perturbation:
    """The scales at which standard noise enters one linear model.

    The model is argmin J(w) + (Delta / 2) ||w||^2 + `linear_scale` r.w, to gradient norm `tau`,
    plus `output_scale` times a spherical Laplace or Gaussian sample, on a grid of `step`.

    Attributes
    ----------
    mu : float
        lambda + Delta, the strong convexity of what is minimised.
    linear_scale : float
        Scale of the standard noise r in the objective; 0 for output perturbation.
    output_scale : float
        Scale of the sample that is added to the minimiser.
    tau : float
        Bound on the gradient norm of what is solved; public.
    step : float
        Of the grid on which the model is released.
    rounding : float
        How far rounding to the grid may move the model, in l2 norm.
    goal : float
        The gradient norm, as it is computed, at which the solver ends; None is tau.
    """

    mu: float
    linear_scale: float
    output_scale: float
    tau: float
    step: float = NO_GRID
    rounding: float = 0.0
    goal: float | None = None

    @classmethod
    def on_grid(cls, mu, linear_scale, moved, tau, dimension, *, alpha, epsilon, loss, goal=None):
        """Return the scales for a minimiser of sensitivity `moved`.

        `loss` is what may be hidden by a sample of scale 1, and `epsilon` that of the whole model.
        """
        step = release_step(moved / loss)
        output_scale = scale_with_rounding(moved / loss, step, loss, dimension)
        if not math.isfinite(mu + linear_scale + output_scale + tau):
            raise ValueError(
                f"alpha={alpha!r} and epsilon={epsilon!r} with these bounds of the rows need noise "
                "beyond the range of float64; bring the columns to a scale near 1, or write a larger "
                "alpha."
            )
        return cls(mu, linear_scale, output_scale, tau, step, math.sqrt(dimension) * step, goal)

    @property
    def solved(self):
        """float : `goal`, or tau."""
        return self.tau if self.goal is None else self.goal


def calibrate(
    perturbation,
    loss,
    *,
    n_samples,
    dimension,
    radius,
    alpha,
    epsilon,
    tol,
    noise_radius=None,
    origin=0.0,
    persons=False,
):
    """Return the noise that makes one linear model epsilon-differentially private.

    Neighbouring data sets differ in one record; n, d, R, the loss and all
    parameters are public.

    Parameters
    ----------
    perturbation : {"output", "objective"}
    loss : Loss
    n_samples : int
        n.
    dimension : int
        d, the constant included.
    radius : float
        R, the constant included.
    alpha : float
        lambda, greater than 0.
    epsilon : float
        Privacy loss of this one model; ``inf`` for no noise.
    tol : float
        Relative tolerance of the solver.
    noise_radius : float, default=None
        G: a bound on the l1 norm of the rows if the noise of the objective is made of
        independent Laplace variables. None is R, for spherical Laplace noise.
    origin : float, default=0.0
        ||o||, the length of the public coefficients from which the penalty counts.
    persons : bool, default=False
        Whether n counts persons, each of them the mean of any number of rows.

    Returns
    -------
    Perturbation

    Raises
    ------
    ValueError
        If the noise is beyond the range of float64, or if, with a finite epsilon, the solver is
        not certain to end within a public number of passes; see
        :func:`~dpselect.linear_model.tolerance.check_steps`.

    Notes
    -----
    Output perturbation (CMS11 algorithm 1): the minimiser moves by at most
    2 L R / (n lambda), and the computed one by 2 tau / lambda more; the noise hides both.

    Objective perturbation (CMS11 algorithm 2, with one logarithm in place of two and
    with Delta chosen so that epsilon' never falls below epsilon / 2): the residual is
    hidden by a second noise vector of scale 2 tau / (mu epsilon_tau), with epsilon_tau =
    epsilon / 1000, or up to epsilon / 20 if that noise would cost more than a hundredth of the first
    even where the solver works as hard as it can. This needs a tau that depends on neither the data nor
    the noise. One record moves the gradient by at most 2 L G / n in the norm of the noise.

    The noise of the minimiser covers rounding to the grid, too: see
    :func:`~dpselect.noise.scale_with_rounding`.
    """
    n, d, R = n_samples, dimension, radius
    G = R if noise_radius is None else noise_radius
    mu, t = alpha, alpha * origin
    if epsilon == math.inf:
        return Perturbation(mu, 0.0, 0.0, attainable(loss, R, mu, t, tol))
    fraction, linear_scale = 1.0, 0.0
    if perturbation == "output":
        goal, tau = tightened(loss, R, mu, t, tol)
        moved = minimiser_sensitivity(loss, R, n, mu, tau)
    else:
        rank = largest_rank(d) if persons else None
        # independent Laplace variables are shorter than spherical noise of the same scale
        norm_ratio = 1.0 if noise_radius is None else math.sqrt(2 / (d + 1))

        def noise(fraction):
            main_epsilon = epsilon - fraction * epsilon
            mu = alpha + extra_regularisation(loss, n, R, alpha, main_epsilon, rank)
            noise_part = noise_epsilon(loss, n, R, mu, main_epsilon, rank)
            linear_scale = 2 * (loss.lipschitz * G) / (n * noise_part)
            t = linear_scale * d + mu * origin
            harmless = harmless_scale(loss, R, mu, d, linear_scale * norm_ratio) * fraction * epsilon
            goal, tau = tightened(loss, R, mu, t, tol, harmless * mu / 2)
            return mu, linear_scale, t, goal, tau, 2 * tau / mu, harmless

        fraction = RESIDUAL_FRACTION
        mu, linear_scale, t, goal, tau, moved, harmless = noise(fraction)
        if moved > harmless * (1 + 1e-9):
            # this fraction minimises the cost of both noises together
            length = HARMLESS * moved / max(harmless, math.ulp(0.0))
            fraction = min((length * fraction) ** (2 / 3), MAX_RESIDUAL_FRACTION)
            mu, linear_scale, t, goal, tau, moved, _ = noise(fraction)
    scales = Perturbation.on_grid(
        mu, linear_scale, moved, tau, d, alpha=alpha, epsilon=epsilon, loss=fraction * epsilon, goal=goal
    )
    check_steps(loss, R, mu, t, goal, d, alpha, tol)
    return scales


def minimiser_sensitivity(loss, R, n, mu, tau):
    """Return the sensitivity of the computed minimiser to one record, in l2 norm."""
    return (2 * (loss.lipschitz * R) / n + 2 * tau) / mu


def largest_rank(dimension):
    """Return r, a bound on the rank of one person's contribution to the curvature.

    A power of two, by which numbers are divided without rounding.
    """
    return 1 << (dimension - 1).bit_length()


def extra_regularisation(loss, n, R, alpha, epsilon, rank=None):
    """Return Delta, the least extra regularisation that keeps epsilon' at or above epsilon / 2.

    Delta = max(0, c R^2 / (n (exp(epsilon / 2) - 1)) - lambda). CMS11 adds none until
    epsilon' reaches 0, and lets the noise explode just before. `rank` is as for :func:`noise_epsilon`.
    """
    r = rank or 1
    growth = r * math.expm1(min(epsilon / r / 2, 700.0))
    return max(0.0, loss.curvature * R**2 / (n * growth) - alpha)


def noise_epsilon(loss, n, R, mu, epsilon, rank=None):
    """Return epsilon', the part of epsilon that sets the noise of objective perturbation.

    A replaced record moves the noise that explains a given w, and curves the map from
    noise to w. With kappa = R^2 / (n mu), a general loss pays log(1 + c kappa) for the
    curvature. The logistic loss curves by s (1 - s) where its derivative is s in size, and
    the pseudo-Huber loss by (1 - s^2)^(3/2), so that a record which curves moves less. With kappa
    W times as large for weights up to W, epsilon' is the largest number with

        max over 0 <= s <= 1 of  epsilon' (1 + s) / 2 + log(1 + phi''(s) kappa) <= epsilon,

    which is epsilon itself if kappa <= epsilon / 2, or kappa <= 2 epsilon / sqrt(27) for pseudo-Huber.

    A person's rows curve in up to r = `rank` directions, so that log(1 + t) becomes r log(1 + t / r),
    which is what r records at epsilon / r would pay. `rank` is None for records of one row.
    """
    kappa = R**2 / (n * mu)
    if isinstance(loss, WeightedLoss):
        kappa, loss = loss.largest_weight * kappa, loss.loss
    r = rank or 1
    kappa, epsilon = kappa / r, epsilon / r
    if type(loss) is PseudoHuberLoss:  # exact type: a subclass may have another curvature
        return r * _pseudo_huber_epsilon(loss, kappa, epsilon, rank is not None)
    if type(loss) is LogisticLoss:
        return r * _logistic_epsilon(kappa, epsilon, mu)
    return r * (epsilon - math.log1p(loss.curvature * kappa))


def _logistic_epsilon(kappa, epsilon, mu):
    """Return epsilon' of the logistic loss, for one record."""
    if kappa <= epsilon / 2:
        return epsilon
    low, high = epsilon / 2, epsilon
    if _logistic_excess(low, kappa, epsilon) > 0:
        # never true if mu includes Delta, but the function should be right for any mu
        low = 0.0
        if math.log1p(kappa / 4) >= epsilon:
            raise ValueError(
                f"mu={mu!r} is too small for objective perturbation at epsilon={epsilon!r}; "
                "add extra_regularisation to it."
            )
    root = brentq(_logistic_excess, low, high, args=(kappa, epsilon), xtol=1e-13 * epsilon)
    # the root may be off to either side: step back until the condition holds
    while _logistic_excess(root, kappa, epsilon) > 0:
        root *= 1 - 1e-12
    return root


def _pseudo_huber_epsilon(loss, kappa, epsilon, averaged):
    """Return epsilon' for one record, or the mean of several, less at most 2^-13 of itself."""
    if kappa <= 2 * epsilon / math.sqrt(27):
        return epsilon
    # between two derivatives the curvature is at most that at the smaller one
    curvature = (loss.mean_curvature_at if averaged else loss.curvature_at)(DERIVATIVES[:-1])
    return float((2 * (epsilon - np.log1p(curvature * kappa)) / (1 + DERIVATIVES[1:])).min())


def _logistic_excess(e, kappa, epsilon):
    """Return max over s of e (1 + s) / 2 + log(1 + s (1 - s) kappa), less epsilon."""
    s = 1.0
    if kappa > e / 2:
        # the larger root of the derivative, s^2 - (1 - 4 / e) s - (1 / kappa + 2 / e) = 0,
        # multiplied by e so that a small e does no harm
        a, b, c = e, 4.0 - e, -(e / kappa + 2.0)
        root = math.sqrt(b * b - 4 * a * c)
        s = (-2 * c) / (b + root) if b > 0 else (-b + root) / (2 * a)
        s = min(max(s, 0.0), 1.0)
    return e * (1 + s) / 2 + math.log1p(s * (1 - s) * kappa) - epsilon


def public_alpha(loss, perturbation, n_samples, noise_length, radius, epsilon):
    """Return the regularisation lambda* = k R^2 d / (5 n epsilon), a function of public numbers.

    At k = 1 the bias of regularising balances the noise of privacy for data of ordinary difficulty,
    a loss with derivatives up to 1 and a typical model that predicts up to 5; other losses need
    5 L / reach times as much. With noise in the objective, at a signal s = n epsilon / d, k is
    sqrt(225 / s) between 1/2 and 4.5 for the logistic loss, sqrt(100 / s) between 1/2 and 3 for the
    hinge, and 12 for s < 1; it is 4 for noise in the result. These numbers were fitted on the tables of
    the page "Linear classifiers". lambda* is bounded below by
    R^2 / (100 n), which is what the non-private counterpart (epsilon = inf) uses. Where noise that is
    added to the minimiser costs too much, "auto" goes on to :func:`larger_alpha`.

    Parameters
    ----------
    loss : Loss
    perturbation : {"output", "objective"}
    n_samples : int
        n.
    noise_length : float
        d, the constant included: the mean length of the noise in units of R. Independent
        Laplace variables are about G sqrt(2 d) / R long, and Gaussian ones epsilon sqrt(d) / m.
    radius : float
        R, the constant included.
    epsilon : float
        Privacy loss of one model.

    Returns
    -------
    float
    """
    factor = loss.shrinkage(perturbation, n_samples * epsilon / noise_length)
    balance = max(factor * noise_length / (5 * epsilon), 0.01)
    return 5 * loss.lipschitz / loss.reach * radius**2 / n_samples * balance


def added_cost(loss, perturbation, squared_length, dimension, radius):
    """Return the cost of the noise that is added to the minimiser, relative to the cost of mu.

    With a = mu / R^2, standard noise r and `reach` v: c R^2 / 2 (output_scale ||r||)^2 / d, which bounds
    the mean cost, over v^2 / 2 a^2 / (a + c / (4 d^2)), the bias of a model that predicts up to v, if
    it needs directions of curvature c R^2 / (4 d^2), as was found by experiment.
    """
    c, a = loss.curvature, perturbation.mu / radius**2
    moved = radius * perturbation.output_scale / (loss.reach * a)
    return float(c * moved * moved * squared_length / dimension * (a + c / (4 * dimension**2)))


def larger_alpha(alpha, cost):
    """Return the least alpha, from the given one on, at which the decreasing `cost` is at most 1."""
    cost = lru_cache(cost)
    # up to the extra regularisation, it decreases at least like alpha ** -3
    low, high = alpha, alpha * cost(alpha) ** (1 / 3)
    while cost(high) > 1:
        low, high = high, 2 * high

    def excess(t):
        return math.log(cost(low * (high / low) ** t))

    return low * (high / low) ** brentq(excess, 0.0, 1.0, xtol=1e-6)


def norm_bound(loss, perturbation, radius, linear_norm, output_norm, origin=0.0):
    """Bound the l2 norm of the model by public numbers and the lengths of its standard noise vectors.

    Parameters
    ----------
    loss : Loss
    perturbation : Perturbation
    radius : float
        R, the constant included.
    linear_norm, output_norm : float or ndarray
        Lengths ||r|| of the two standard noise vectors.
    origin : float, default=0.0
        ||o||, as for :func:`calibrate`.

    Returns
    -------
    float or ndarray

    Notes
    -----
    With t = linear_scale ||r|| + tau + mu ||o||, setting the gradient to within tau of 0 gives
    mu ||w|| <= L R + t; its product with w gives mu ||w||^2 <= kappa_l + t ||w||. The second
    noise vector adds its own length, and the grid what is rounded.
    """
    mu, t = perturbation.mu, perturbation.linear_scale * np.asarray(linear_norm) + perturbation.tau
    t = t + mu * origin
    added = perturbation.output_scale * np.asarray(output_norm) + perturbation.rounding
    return longest(loss, radius, mu, t) + added

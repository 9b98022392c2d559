"""Sensitivities of ridge regression on a ball, and the noise that hides them.

A record (x, y) has ||x|| <= R, the intercept's constant included, and |y| <= Y, counted from the
middle of the targets' range. The coefficients lie in the ball ||theta|| <= B.
"""

import math
from dataclasses import dataclass

from ..calibration import Perturbation, extra_regularisation, largest_rank, noise_epsilon

# residual of the minimiser on the ball, relative to S
RESIDUAL = 1e-11
# fraction of epsilon that objective perturbation spends on hiding it
RESIDUAL_FRACTION = 5e-3


@dataclass(frozen=True)
class SquaredLoss:
    """(x.theta - y)^2 / 2, by its second derivative in x.theta."""

    curvature = 1.0


def ball_radius(alpha, target_bound, coef_bound):
    """Return B: the ball that contains every minimiser, or a smaller one on request.

    alpha ||theta||^2 <= mean(y x.theta - (x.theta)^2) <= Y^2 / 4 at the minimiser.
    """
    largest = target_bound / (2 * math.sqrt(alpha))
    return largest if coef_bound is None else min(largest, coef_bound)


def gradient_change_l2(r, s, Y, B):
    """Return S, the sensitivity of the sum of the gradients on the ball, in l2 norm.

    r bounds the l2 norm of the rows without the constant s. Twice the largest gradient,
    2 R (Y + R B), would be too much: the gradients (x.theta - y) x of two records cannot both be
    that long and point away from each other. The page "Ridge regression" has the proofs.
    """
    R = math.hypot(r, s)
    return R * (2 * Y + R * B)


def gradient_change_l1(r, g, s, Y, B):
    """Return S in l1 norm, for rows of l2 norm at most r and l1 norm at most g."""
    R, G = math.hypot(r, s), g + s
    if s <= g:
        by_l1 = G * (2 * Y + math.sqrt(2) * g * B)
    else:
        by_l1 = 2 * G * Y + g * B * math.sqrt(2 * g**2 + 4 * g * s + 8 * s**2)
    return min(by_l1, 2 * G * Y + G * R * B * math.sqrt(_opposition(R / G)))


def _opposition(fraction):
    """Return H, the largest squared distance of unit gradients of l1 norm 1 / share, for one sign."""
    if fraction >= 0.5:
        return 2.0
    if fraction >= (3 - math.sqrt(5)) / 4:
        return 2 + (1 - 2 * fraction) ** 2 / (4 * fraction * (1 - fraction))
    return 4 * (1 - fraction) ** 2


def minimiser_sensitivity(change, n_samples, alpha):
    """Return the sensitivity of the minimiser on the ball, its residual included."""
    return (change / n_samples + 2 * RESIDUAL * change) / alpha


def objective_noise(problem, shape, epsilon):
    """Return the noise of objective perturbation on the ball."""
    n, p, alpha = shape.n_samples, shape.n_features, problem.alpha
    d = problem.dimension(p)
    change = problem.gradient_change(problem.noise_norm(p), p)
    if epsilon == math.inf:
        return Perturbation(alpha, 0.0, 0.0, RESIDUAL * change)
    loss, R, main_epsilon = SquaredLoss(), problem.radius, (1 - RESIDUAL_FRACTION) * epsilon
    rank = largest_rank(d) if shape.persons else None
    mu = alpha + extra_regularisation(loss, n, R, alpha, main_epsilon, rank)
    linear_scale = change / (n * noise_epsilon(loss, n, R, mu, main_epsilon, rank))
    # rounding errors are proportional to the noise, whose mean length is at most d
    tau = RESIDUAL * (change + linear_scale * d)
    return Perturbation.on_grid(
        mu,
        linear_scale,
        2 * tau / mu,
        tau,
        d,
        alpha=alpha,
        epsilon=epsilon,
        loss=RESIDUAL_FRACTION * epsilon,
    )


def output_noise(problem, shape, epsilon):
    """Return the noise of output perturbation on the ball."""
    change, alpha = problem.gradient_change(), problem.alpha
    tau = RESIDUAL * change
    if epsilon == math.inf:
        return Perturbation(alpha, 0.0, 0.0, tau)
    return Perturbation.on_grid(
        alpha,
        0.0,
        minimiser_sensitivity(change, shape.n_samples, alpha),
        tau,
        problem.dimension(shape.n_features),
        alpha=alpha,
        epsilon=epsilon,
        loss=epsilon,
    )

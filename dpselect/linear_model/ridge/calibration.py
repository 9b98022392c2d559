"""How far one record moves ridge regression on a ball, and the noise that hides it.

A record (x, y) has ||x|| <= R, the intercept's constant included, and |y| <= Y. The
coefficients lie in the ball ||theta|| <= B.
"""

import math
from dataclasses import dataclass

from ..calibration import Perturbation, extra_regularisation, noise_epsilon

# residual of the minimiser on the ball, relative to S
RESIDUAL = 1e-11
# share of epsilon that objective perturbation spends on hiding it
RESIDUAL_SHARE = 5e-3


@dataclass(frozen=True)
class SquaredLoss:
    """(x.theta - y)^2 / 2, by its second derivative in x.theta."""

    curvature = 1.0


def ball_radius(alpha, target_bound, coef_bound):
    """Return B: the ball that contains every minimiser, or the smaller one that was asked for.

    alpha ||theta||^2 <= mean(y x.theta - (x.theta)^2) <= Y^2 / 4 at the minimiser.
    """
    largest = target_bound / (2 * math.sqrt(alpha))
    return largest if coef_bound is None else min(largest, coef_bound)


def gradient_change(norm, data_norm, constant, target_bound, radius):
    """Return S, how far one replaced record moves the sum of the gradients on the ball.

    `norm` is that in which rows are bounded, by r without the constant s, and S is measured.

    Notes
    -----
    Twice the largest gradient, 2 R (Y + R B), would be too much: the gradients (x.theta - y) x
    of two records cannot both be that long and point away from each other. The page "Ridge
    regression" has the proof.
    """
    r, s, Y, B = data_norm, constant, target_bound, radius
    if norm == "l2":
        R = math.hypot(r, s)
        return R * (2 * Y + R * B)
    if s <= r:
        return (r + s) * (2 * Y + math.sqrt(2) * r * B)
    return 2 * (r + s) * Y + r * B * math.sqrt(2 * r**2 + 4 * r * s + 8 * s**2)


def minimiser_sensitivity(change, n_samples, alpha):
    """Return how far one record moves the minimiser on the ball, its residual included."""
    return (change / n_samples + 2 * RESIDUAL * change) / alpha


def objective_noise(problem, n_samples, n_features, epsilon):
    """Return the noise of objective perturbation on the ball."""
    n, d, alpha = n_samples, problem.dimension(n_features), problem.alpha
    change = problem.gradient_change(problem.norm)
    if epsilon == math.inf:
        return Perturbation(alpha, 0.0, 0.0, RESIDUAL * change)
    loss, R, main_epsilon = SquaredLoss(), problem.radius, (1 - RESIDUAL_SHARE) * epsilon
    mu = alpha + extra_regularisation(loss, n, R, alpha, main_epsilon)
    linear_scale = change / (n * noise_epsilon(loss, n, R, mu, main_epsilon))
    # rounding grows with the noise, whose mean length is at most d
    tau = RESIDUAL * (change + linear_scale * d)
    return Perturbation.on_grid(
        mu, linear_scale, 2 * tau / mu, tau, d, alpha=alpha, epsilon=epsilon, share=RESIDUAL_SHARE
    )


def output_noise(problem, n_samples, n_features, epsilon):
    """Return the noise of output perturbation on the ball."""
    change, alpha = problem.gradient_change(), problem.alpha
    tau = RESIDUAL * change
    if epsilon == math.inf:
        return Perturbation(alpha, 0.0, 0.0, tau)
    return Perturbation.on_grid(
        alpha, 0.0, minimiser_sensitivity(change, n_samples, alpha), tau, problem.dimension(n_features),
        alpha=alpha, epsilon=epsilon,
    )

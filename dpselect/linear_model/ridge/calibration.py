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

    Parameters
    ----------
    norm : {"l1", "l2"}
        In which the rows are bounded and the change is measured.
    data_norm : float
        Bound r on the rows in that norm, without the constant.
    constant : float
        s, 0 without an intercept.
    target_bound : float
        Y.
    radius : float
        B.

    Returns
    -------
    float
        "l2": R (2 Y + R B), R^2 = r^2 + s^2. "l1": (r + s) (2 Y + sqrt(2) r B) if s <= r, and
        2 (r + s) Y + r B sqrt(2 r^2 + 4 r s + 8 s^2) otherwise.

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


def movement(change, n_samples, alpha):
    """Return how far one record moves the minimiser on the ball, its residual included."""
    return (change / n_samples + 2 * RESIDUAL * change) / alpha


def objective_noise(*, n_samples, dimension, row_radius, change, alpha, epsilon):
    """Return the noise of objective perturbation on the ball.

    Parameters
    ----------
    n_samples : int
        n.
    dimension : int
        d.
    row_radius : float
        Bound on the l2 norm of the rows.
    change : float
        S in the norm of the noise.
    alpha : float
        lambda.
    epsilon : float
        ``inf`` for no noise.

    Returns
    -------
    Perturbation
        As for linear classifiers; `tau` is the largest residual.
    """
    if epsilon == math.inf:
        return Perturbation(alpha, 0.0, 0.0, RESIDUAL * change)
    loss = SquaredLoss()
    main_epsilon = (1 - RESIDUAL_SHARE) * epsilon
    mu = alpha + extra_regularisation(loss, n_samples, row_radius, alpha, main_epsilon)
    linear_scale = change / (n_samples * noise_epsilon(loss, n_samples, row_radius, mu, main_epsilon))
    # rounding grows with the noise, whose mean length is at most d
    tau = RESIDUAL * (change + linear_scale * dimension)
    return Perturbation.on_grid(
        mu, linear_scale, 2 * tau / mu, RESIDUAL_SHARE * epsilon, tau, dimension
    )


def output_noise(*, n_samples, dimension, change, alpha, epsilon):
    """Return the noise of output perturbation on the ball; parameters as above."""
    tau = RESIDUAL * change
    if epsilon == math.inf:
        return Perturbation(alpha, 0.0, 0.0, tau)
    moved = movement(change, n_samples, alpha)
    return Perturbation.on_grid(alpha, 0.0, moved, epsilon, tau, dimension)

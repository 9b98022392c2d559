"""Calibrate the noise of covariance perturbation.

A record (x, y) is clipped to ||x|| <= R, in l1 or l2 norm, and |y| <= Y. What covariance
perturbation releases is the sum of the outer products u u' of the weighted records

    u = (x / R, tau, kappa y / Y),

tau being the weight of the constant (absent without an intercept) and kappa that of the
target, without the two entries tau^2 (which is public) and y^2 (which is not needed). The
weights are free: the sums for x, 1 and y follow by division, and each entry's noise is
divided by its weights. The proofs are on the page "Ridge regression" of the documentation.
"""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from ...accounting.gaussian import gaussian_mu
from ...noise import grid_step, release_step, scale_with_rounding
from ...noise.grid import NO_GRID

# (tau, kappa), public constants: a larger weight means less noise in its sums and more in all others.
# The page "Ridge regression" says on which data they were chosen.
WEIGHTS = {"l1": (0.2, 0.35), "l2": (0.3, 0.6)}
# largest number of columns for which the mask of released sums is cached
MAX_CACHED = 256


@dataclass(frozen=True)
class StatisticNoise:
    """The noise of one release of sums of outer products.

    Attributes
    ----------
    weights : ndarray of shape (q,)
        Weights of the columns, in the order features, constant, target.
    diagonal, off_diagonal : float
        Scale of the standard noise on the diagonal, and above it.
    spread : float
        Standard deviation of the noise above the diagonal.
    step : float
        Of the grid on which the sums are released; for "l1" at most 1.
    """

    weights: np.ndarray
    diagonal: float
    off_diagonal: float
    spread: float
    step: float = NO_GRID

    def scales(self, n_features):
        """Return the scale of the noise of each released sum, divided by the columns' weights."""
        q = len(self.weights)
        scale = np.full((q, q), self.off_diagonal)
        scale.flat[:: q + 1] = self.diagonal
        scale /= self.weights[:, None] * self.weights
        return scale[released_entries(n_features, q)]


def symmetric(entries, n_features, n_columns):
    """Return the matrix with values at the :func:`released_entries`, mirrored, and 0 elsewhere."""
    matrix = np.zeros((n_columns, n_columns))
    matrix[released_entries(n_features, n_columns)] = entries
    both = matrix + matrix.T
    both.flat[:: n_columns + 1] = matrix.diagonal()
    return both


def released_entries(n_features, n_columns):
    """Return a mask of the released entries of u u', shape (n_columns, n_columns).

    The upper triangle, without the squares of the constant and of the target.
    """
    # a fit needs them three times; wide ones would take too much memory, and are cheap relative to a fit
    return (_entries if n_columns <= MAX_CACHED else _entries.__wrapped__)(n_features, n_columns)


def n_released(n_features, n_columns):
    """Return the number of :func:`released_entries`."""
    return n_columns * (n_columns + 1) // 2 - (n_columns - n_features)


@functools.lru_cache(maxsize=1)
def _entries(n_features, n_columns):
    released = np.tri(n_columns, dtype=bool).T.copy()
    np.fill_diagonal(released[n_features:, n_features:], False)
    released.flags.writeable = False
    return released


def column_weights(n_features, fit_intercept, norm):
    """Return the weights of the columns: 1 for each feature, tau, kappa."""
    tau, kappa = WEIGHTS[norm]
    return np.array([1.0] * n_features + [tau] * bool(fit_intercept) + [kappa])


def statistic_noise(n_features, *, fit_intercept, norm, epsilon, delta):
    """Return the noise that makes the sums (epsilon, delta)-differentially private.

    Notes
    -----
    "l1": independent Laplace variables of scale S / epsilon on the diagonal and S / (2 epsilon)
    above it, S = 2 ((1 + tau + kappa)^2 - tau^2 - kappa^2). "l2": with the entries above the
    diagonal counted sqrt(2)-fold, the sums move by at most S = sqrt(2) (1 + tau^2 + kappa^2)
    in l2 norm. One spherical Laplace sample of scale S / epsilon hides that, or Gaussian variables
    of standard deviation S / mu, mu from :func:`~dpselect.accounting.gaussian.gaussian_mu`; both
    are a little longer, to hide that the sums are rounded to a grid: see
    :func:`~dpselect.noise.scale_with_rounding`.
    """
    weights = column_weights(n_features, fit_intercept, norm)
    sensitivity = statistic_sensitivity(fit_intercept, norm)
    if epsilon == math.inf:
        return StatisticNoise(weights, 0.0, 0.0, 0.0)
    if norm == "l1":
        scale = sensitivity / epsilon
        noise = StatisticNoise(weights, scale, scale / 2, math.sqrt(2) * scale / 2)
        return replace(noise, step=grid_step(noise.scales(n_features), unit=1.0))
    loss, deviation = _loss_and_deviation(n_features, fit_intercept, epsilon, delta)
    bare = l2_noise(weights, sensitivity / loss)
    scales = bare.scales(n_features)
    step = release_step(scales)
    allowance = scale_with_rounding(scales, step, loss)[0] / scales[0]
    noise = l2_noise(weights, allowance * bare.diagonal)
    return replace(noise, spread=deviation * noise.off_diagonal, step=step)


def bare_spread(n_features, *, fit_intercept, norm, epsilon, delta):
    """Return the spread of the :func:`statistic_noise` that covers no rounding."""
    scale = statistic_sensitivity(fit_intercept, norm) / math.sqrt(2)
    if norm == "l1" or epsilon == math.inf:
        return scale / epsilon
    loss, deviation = _loss_and_deviation(n_features, fit_intercept, epsilon, delta)
    return deviation * scale / loss


def _loss_and_deviation(n_features, fit_intercept, epsilon, delta):
    """Return the loss that a sample of scale 1 has, and the deviation of one of its entries."""
    if delta > 0:
        return gaussian_mu(epsilon, delta), 1.0
    # a spherical Laplace sample in D dimensions has E ||r||^2 = D (D + 1)
    n_entries = n_released(n_features, n_features + bool(fit_intercept) + 1)
    return epsilon, math.sqrt(n_entries + 1)


def l2_noise(weights, scale):
    """Return noise calibrated to a sensitivity of `scale` of the weighted sums, in l2 norm."""
    off_diagonal = scale / math.sqrt(2)
    return StatisticNoise(weights, scale, off_diagonal, off_diagonal)


def statistic_sensitivity(fit_intercept, norm):
    """Return S, how far one replaced record moves the weighted sums."""
    tau, kappa = WEIGHTS[norm]
    tau = tau if fit_intercept else 0.0
    if norm == "l1":
        return 2 * ((1 + tau + kappa) ** 2 - tau**2 - kappa**2)
    return math.sqrt(2) * (1 + tau**2 + kappa**2)

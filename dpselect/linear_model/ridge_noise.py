"""How much noise covariance perturbation needs, and how its release is read.

A record (x, y) is clipped to ||x|| <= R, in l1 or l2 norm, and |y| <= Y. What covariance
perturbation releases is the sum of the outer products u u' of the weighted records

    u = (x / R, tau, kappa y / Y),

tau being the weight of the constant (absent without an intercept) and kappa that of the
target, without the two entries tau^2 (which is public) and y^2 (which is not needed). The
weights are free: the sums for x, 1 and y follow by division, and each entry's noise is
divided by its weights. The proofs are on the page "Ridge regression" of the documentation.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from ..rows import block_sum
from .trust_region import minimise_on_ball

# (tau, kappa), public constants: the larger a weight, the less noise in its sums and the more in
# all others. The page "Ridge regression" says on which data they were chosen.
WEIGHTS = {"l1": (0.2, 0.35), "l2": (0.3, 0.6)}


@dataclass(frozen=True)
class StatisticNoise:
    """The noise of one release of sums of outer products.

    Attributes
    ----------
    weights : ndarray of shape (q,)
        Weights of the columns, in the order features, constant, target.
    diagonal, off_diagonal : float
        Scale of a unit draw on the diagonal, and above it.
    spread : float
        Standard deviation of the noise above the diagonal.
    """

    weights: np.ndarray
    diagonal: float
    off_diagonal: float
    spread: float

    def matrix(self, unit, n_features):
        """Return the noise of the sums of u u', divided by the columns' weights.

        Parameters
        ----------
        unit : ndarray of shape (n_entries,)
            A unit draw for each entry of :func:`released_entries`.
        n_features : int

        Returns
        -------
        ndarray of shape (q, q)
        """
        q = len(self.weights)
        rows, columns = released_entries(n_features, q)
        scale = np.where(rows == columns, self.diagonal, self.off_diagonal)
        noise = np.zeros((q, q))
        noise[rows, columns] = scale * unit / (self.weights[rows] * self.weights[columns])
        return noise + np.triu(noise, 1).T


def released_entries(n_features, n_columns):
    """Return row and column indices of the released entries of u u'.

    The upper triangle, without the squares of the constant and of the target.
    """
    rows, columns = np.triu_indices(n_columns)
    released = (rows < n_features) | (rows != columns)
    return rows[released], columns[released]


def column_weights(n_features, fit_intercept, norm):
    """Return the weights of the columns: 1 for each feature, tau, kappa."""
    tau, kappa = WEIGHTS[norm]
    return np.array([1.0] * n_features + [tau] * bool(fit_intercept) + [kappa])


def statistic_noise(n_features, *, fit_intercept, norm, epsilon, delta):
    """Return the noise that makes the sums (epsilon, delta)-differentially private.

    Parameters
    ----------
    n_features : int
    fit_intercept : bool
    norm : {"l1", "l2"}
        In which norm rows are bounded.
    epsilon : float
        ``inf`` for no noise.
    delta : float
        0 for pure privacy; otherwise `norm` is "l2".

    Returns
    -------
    StatisticNoise

    Notes
    -----
    "l1": independent Laplace draws of scale S / epsilon on the diagonal and S / (2 epsilon)
    above it, S = 2 ((1 + tau + kappa)^2 - tau^2 - kappa^2). "l2": with the entries above the
    diagonal counted sqrt(2)-fold, the sums move by at most S = sqrt(2) (1 + tau^2 + kappa^2)
    in l2 norm. One ball-Laplace draw of scale S / epsilon hides that, or Gaussian draws of
    standard deviation S / mu, mu from :func:`gaussian_mu`.
    """
    weights = column_weights(n_features, fit_intercept, norm)
    n_entries = len(released_entries(n_features, len(weights))[0])
    sensitivity = statistic_sensitivity(fit_intercept, norm)
    if epsilon == math.inf:
        return StatisticNoise(weights, 0.0, 0.0, 0.0)
    if norm == "l1":
        scale = sensitivity / epsilon
        return StatisticNoise(weights, scale, scale / 2, math.sqrt(2) * scale / 2)
    if delta == 0:
        scale = sensitivity / epsilon
        # a ball-Laplace draw in D dimensions has E ||r||^2 = D (D + 1)
        deviation = math.sqrt(n_entries + 1)
    else:
        scale, deviation = sensitivity / gaussian_mu(epsilon, delta), 1.0
    off_diagonal = scale / math.sqrt(2)
    return StatisticNoise(weights, scale, off_diagonal, deviation * off_diagonal)


def statistic_sensitivity(fit_intercept, norm):
    """Return S, how far one replaced record moves the weighted sums."""
    tau, kappa = WEIGHTS[norm]
    tau = tau if fit_intercept else 0.0
    if norm == "l1":
        return 2 * ((1 + tau + kappa) ** 2 - tau**2 - kappa**2)
    return math.sqrt(2) * (1 + tau**2 + kappa**2)


def gaussian_mu(epsilon, delta):
    """Return the largest sensitivity, in standard deviations, that is (epsilon, delta)-private.

    Solves Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu) = delta, the
    exact condition for Gaussian noise.

    References
    ----------
    Balle and Wang, *Improving the Gaussian Mechanism for Differential Privacy*, ICML 2018,
    theorem 8.

    Examples
    --------
    >>> from dpselect.linear_model.ridge_noise import gaussian_mu
    >>> round(gaussian_mu(epsilon=1.0, delta=1e-5), 4)
    0.2681
    """

    def excess(mu):
        a = log_ndtr(mu / 2 - epsilon / mu)
        b = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
        # log(exp(a) - exp(b)) - log(delta), without overflow
        return float(a + np.log(max(-np.expm1(min(b - a, 0.0)), 1e-300)) - math.log(delta))

    high = 1.0
    while excess(high) < 0:
        high *= 2
    low = high / 2
    while excess(low) > 0:
        low /= 2
    mu = brentq(excess, low, high, xtol=1e-13 * low)
    # the root is found from either side: step back until the condition holds
    while excess(mu) > 0:
        mu *= 1 - 1e-12
    return mu


def exact_sums(X, y, *, norm, data_norm, target_bound, fit_intercept):
    """Return the sums of z z' over the clipped records z = (x, 1, y), in one pass.

    They are exact, so they must not leave a fit without noise. The square of the target is
    neither released nor needed, and is 0 here.
    """
    n_features = X.shape[1]
    q = n_features + fit_intercept + 1

    def outer_products(rows, targets):
        # rows divided by R and targets by Y: nothing overflows, whatever the units
        z = np.empty((len(rows), q))
        x = z[:, :n_features]
        np.multiply(rows, clip_factor(rows, norm, data_norm, scratch=x), out=x)
        z[:, n_features:-1] = 1.0
        np.clip(targets, -target_bound, target_bound, out=z[:, -1])
        z[:, -1] /= target_bound
        return (z.T @ z,)

    (sums,) = block_sum(outer_products, X, y, row_elements=q)
    sums[-1, -1] = 0.0
    # one value for both triangles: they get the same noise, so two that were rounded apart would
    # reveal by how much
    sums = np.triu(sums) + np.triu(sums, 1).T
    return sums * units(n_features, data_norm, target_bound, fit_intercept)


def clip_factor(rows, norm, bound, scratch=None):
    """Return what brings each row to a norm of at most 1 in units of `bound`, shape (b, 1).

    `scratch` is an array of the shape of `rows` that may be overwritten: one more temporary
    array for each block would double the time of the pass.
    """
    with np.errstate(over="ignore"):
        if norm == "l1":
            # a product is faster than a sum along short rows
            norms = np.abs(rows, out=scratch) @ np.ones(rows.shape[1])
        else:
            norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not np.isfinite(norms).all():
        raise ValueError(
            "X contains infinity or a value too large to be squared in float64; "
            "bound the columns first, for instance with BoundedScaler."
        )
    # the tiny shrinkage keeps the rounded norm of a clipped row from exceeding the bound
    shrinkage = 1 - (rows.shape[1] + 8) * 2.0**-52
    with np.errstate(divide="ignore"):
        return np.minimum(1 / bound, shrinkage / norms)[:, None]


def units(n_features, data_norm, target_bound, fit_intercept):
    """Return the largest size that one record gives each sum, R^2, R, R Y and so on."""
    column = np.array([data_norm] * n_features + [1.0] * fit_intercept + [target_bound])
    return np.outer(column, column)


@dataclass(frozen=True)
class Reading:
    """One eigendecomposition of a Gram matrix, from which every alpha is served.

    Attributes
    ----------
    spectrum, basis : ndarray of shape (d,) and (d, d)
        Eigenvalues and eigenvectors of the mean Gram matrix, with its noise.
    linear : ndarray of shape (d,)
        The mean moments in that basis.
    rho : float
        Length of the noise's image of a unit vector, per record; 0 without noise.
    """

    spectrum: np.ndarray
    basis: np.ndarray
    linear: np.ndarray
    rho: float

    @classmethod
    def of(cls, gram, moment, rho):
        """Decompose a symmetric matrix, positive semi-definite or not."""
        spectrum, basis = np.linalg.eigh(gram)
        return cls(spectrum, basis, basis.T @ moment, rho)

    def minimiser(self, alpha, radius):
        """Return the coefficients for one alpha, on the ball of a radius.

        Each eigenvalue e of the regularised noisy matrix M is replaced by e + rho^2 / e, and
        by ``inf`` if it is not positive. Inside the ball that is (M^2 + rho^2 I)^{-1} M m on
        the positive part of M, which minimises ||M theta - m||^2 + rho^2 ||theta||^2: the
        gradient that is seen, and the one that noise hides. Without noise it is the ridge
        estimator on the ball.
        """
        noisy = self.spectrum + alpha
        stiffness = np.full_like(noisy, np.inf)
        positive = noisy > 0
        with np.errstate(over="ignore"):
            stiffness[positive] = noisy[positive] + self.rho * (self.rho / noisy[positive])
        return self.basis @ minimise_on_ball(stiffness, self.linear, radius)

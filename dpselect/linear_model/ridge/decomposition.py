"""Ridge regression on a ball for every alpha, from one eigendecomposition of a Gram matrix."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, eigh_tridiagonal, lapack

from .trust_region import minimise_on_ball

# with more columns, keep eigenvectors as two factors: their product would take half of the time
LARGE = 256


@dataclass(frozen=True)
class Decomposition:
    """One eigendecomposition of a Gram matrix, which gives the solution for every alpha.

    A large matrix is brought to a tridiagonal one by reflections, and the eigenvectors are those of that
    one, reflected.

    Attributes
    ----------
    spectrum, basis : ndarray of shape (d,) and (d, d)
        Eigenvalues of the mean Gram matrix, with its noise, and its eigenvectors before reflections.
    linear : ndarray of shape (d,)
        The mean moments in the basis of eigenvectors.
    rho : float
        Length of the noise's image of a unit vector, per record; 0 without noise.
    reflections, factors : ndarray of shape (d - 1, d - 1) and (d - 1,), or None
        As LAPACK's dsytrd leaves them; None for a matrix that is not large.
    """

    spectrum: np.ndarray
    basis: np.ndarray
    linear: np.ndarray
    rho: float
    reflections: np.ndarray | None = None
    factors: np.ndarray | None = None

    @classmethod
    def of(cls, gram, moment, rho):
        """Decompose a symmetric matrix, positive semi-definite or not."""
        d = len(gram)
        if d > LARGE:
            reduced, diagonal, off_diagonal, factors, failed = lapack.dsytrd(gram, lower=1, lwork=64 * d)
            try:
                spectrum, basis = eigh_tridiagonal(diagonal, off_diagonal)
            except LinAlgError:
                failed = True
            if not failed:
                # contiguous, or LAPACK would copy them each time
                reflections = np.asfortranarray(reduced[1:, :-1])
                decomposed = cls(spectrum, basis, np.zeros(d), rho, reflections, factors)
                return decomposed.with_moment(moment)
        spectrum, basis = np.linalg.eigh(gram)
        return cls(spectrum, basis, basis.T @ moment, rho)

    def with_moment(self, moment):
        """Return the same decomposition with other mean moments."""
        return replace(self, linear=self.basis.T @ self._reflected(moment, "T"))

    def _reflected(self, vector, direction):
        """Return Q v, or Q' v for the direction "T"; no reflection changes the first entry of v."""
        if self.reflections is None:
            return vector
        tail = np.array(vector[1:, None], order="F")
        tail, _, _ = lapack.dormqr("L", direction, self.reflections, self.factors, tail, 64)
        return np.append(vector[:1], tail)

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
        return self._reflected(self.basis @ minimise_on_ball(stiffness, self.linear, radius), "N")

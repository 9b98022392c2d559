"""What is public of a linear classifier before any data: its problem, and the noise of a fit.

Symbols as in :mod:`~dpselect.linear_model.calibration`.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from ..capabilities import PublicShape
from ..certificates import margin_certificate
from ..exceptions import CertificateError
from ..metrics import MarginScore
from ..noise import laplace, spherical_laplace
from ..noise.tails import noise_length
from .calibration import Perturbation, calibrate, norm_bound, public_alpha
from .design import Design
from .losses import MarginLoss
from .risk_bound import linear_risk_bound


@dataclass(frozen=True)
class LinearProblem:
    """What is minimised without noise, but for lambda: models with equal problems are solved together.

    Attributes
    ----------
    kind : type
        The estimator's class.
    loss : MarginLoss
    norm : {"l2", "l1"}
        In which rows are bounded.
    data_norm : float
        The largest norm of a row.
    constant : float or None
        The column from which the intercept is learned.
    classes : tuple or None
        The public labels.
    tol, max_iter, n_jobs
        Of the solver.
    """

    kind: type
    loss: MarginLoss
    norm: str
    data_norm: float
    constant: float | None
    classes: tuple | None
    tol: float = field(compare=False)  # each has its own tolerance in the same solve
    max_iter: int
    n_jobs: int | None

    @property
    def radius(self):
        """float : R, bound on the l2 norm of the rows, the constant included."""
        # the l1 norm bounds the l2 norm
        return math.hypot(self.data_norm, self.constant or 0.0)

    def dimension(self, n_features):
        """Return d, the number of coefficients of one binary problem."""
        return n_features + (self.constant is not None)

    def design(self, X):
        """Return the rows as they are trained on."""
        return Design(X, self.data_norm, self.constant, self.n_jobs, self.norm)

    def standard_noise(self, generator, n_features, n_problems):
        """Return independent vectors of shape (2, n_problems, d): see DPLogisticRegression."""
        d = self.dimension(n_features)
        if self.norm == "l1":
            linear = laplace(generator, (n_problems, d))
            return np.stack([linear, spherical_laplace(generator, n_problems, d)])
        return spherical_laplace(generator, 2 * n_problems, d).reshape(2, n_problems, d)

    def attributes(self, w):
        """Return what is released for coefficients of shape (K, d), noise included."""
        if self.constant is None:
            return {"coef_": w, "intercept_": np.zeros(len(w)), "n_iter_": self.max_iter}
        # the public limit: the number of steps that were needed depends on the data
        return {
            "coef_": w[:, :-1].copy(), "intercept_": self.constant * w[:, -1],
            "n_iter_": self.max_iter,
        }

    def certified(self, score):
        """Refuse a score for which no certificate is known."""
        if not isinstance(score, MarginScore):
            raise CertificateError(
                f"No certificate exists for {self.kind.__name__} with {type(score).__name__}; "
                "use a score of margins, such as 'brier' or 'ramp'."
            )


@dataclass(frozen=True)
class LinearNoise:
    """The noise of one fit of a linear classifier, and what follows from it before any data.

    Attributes
    ----------
    problem : LinearProblem
    shape : PublicShape
    epsilon : float
        Of the fit.
    perturbation : {"objective", "output"}
    alpha : float
        lambda.
    scales : Perturbation
        Of each one-vs-rest problem.
    """

    problem: LinearProblem
    shape: PublicShape
    epsilon: float
    perturbation: str
    alpha: float
    scales: Perturbation

    @classmethod
    def of(cls, problem, shape, epsilon, perturbation, alpha):
        """Calibrate the noise; `alpha` may be "auto"."""
        d, R = problem.dimension(shape.n_features), problem.radius
        noise_radius, length = R, d
        if problem.norm == "l1" and perturbation == "objective":
            noise_radius = problem.data_norm + (problem.constant or 0.0)
            length = math.sqrt(2 * d) * noise_radius / R
        share = epsilon / shape.n_problems
        if isinstance(alpha, str):
            alpha = public_alpha(shape.n_samples, length, R, share)
        scales = calibrate(
            perturbation, problem.loss, n_samples=shape.n_samples, dimension=d, radius=R,
            alpha=float(alpha), epsilon=share, tol=problem.tol, noise_radius=noise_radius,
        )
        return cls(problem, shape, epsilon, perturbation, float(alpha), scales)

    @property
    def dimension(self):
        """int : d, the number of coefficients of one binary problem."""
        return self.problem.dimension(self.shape.n_features)

    def certificate(self, score, noise=None, failure_probability=None):
        """Return the Certificate of a margin score, at a noise sample or for nearly all of them."""
        problem, s = self.problem, self.scales
        problem.certified(score)
        if failure_probability is None:
            lengths = np.linalg.norm(noise, axis=2)
        else:
            share = failure_probability / (2 * self.shape.n_problems)
            lengths = np.empty((2, self.shape.n_problems))
            lengths[0] = noise_length(problem.norm, self.dimension, share)
            lengths[1] = noise_length("l2", self.dimension, share)
        residual = 2 * s.tau / s.mu + s.rounding
        moved = 2 * problem.radius / self.shape.n_samples / s.mu + residual
        norms = norm_bound(problem.loss, s, problem.radius, *lengths)
        return margin_certificate(score, problem.radius, moved, norms, residual)

    def risk_bound(self, reach):
        """Return the RiskBound over the ball of models that reach as far as `reach`."""
        return linear_risk_bound(self, reach)

    def regularisation_cost(self):
        """Return what the public rule for lambda minimises over a grid."""
        s, d = self.scales, self.dimension
        squared_length = 2 * d if self.problem.norm == "l1" else d * (d + 1)
        if self.perturbation == "objective":
            noise = s.linear_scale**2 * squared_length / (8 * s.mu)
        else:
            noise = s.output_scale**2 * d * (d + 1) * s.mu / 8
        return float(noise + 12.5 * s.mu / self.problem.radius**2)

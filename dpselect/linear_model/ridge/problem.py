"""The public part of a ridge regression before any data: its problem, and the noise of a fit."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ...accounting.events import GaussianEvent
from ...accounting.gaussian import gaussian_mu
from ...base.certificates import Certificate
from ...exceptions import CertificateError
from ...metrics import ClippedSquaredErrorScore
from ...noise import gaussian, grid_noise, laplace, release, spherical_laplace
from ...noise.tails import noise_length
from ...records.public_shape import PublicShape
from ..calibration import Perturbation
from .calibration import (
    ball_radius,
    gradient_change_l1,
    gradient_change_l2,
    objective_noise,
    output_noise,
)
from .decomposition import Decomposition
from .ridge_noise import WEIGHTS, StatisticNoise, bare_spread, n_released, statistic_noise
from .risk_bound import ridge_optimal_values, ridge_risk_bound
from .split_scores import ridge_split_scores
from .sums import entry_bits
from .trust_region import length_of


@dataclass(frozen=True)
class RidgeProblem:
    """All public numbers of a ridge regression, except epsilon; equal problems share their sums.

    Attributes
    ----------
    kind : type
        The estimator's class.
    norm : {"auto", "l1", "l2"}
        For which the noise is made.
    data_norm, data_norm_l1 : float
        The largest l2 and l1 norm of a row.
    centre, target_bound : float
        Targets are counted from the centre, and at most so far away from it.
    fit_intercept, alpha, coef_bound, perturbation, delta
        As for :class:`~dpselect.DPRidge`.
    """

    kind: type
    norm: str
    data_norm: float
    data_norm_l1: float
    centre: float
    target_bound: float
    fit_intercept: bool
    alpha: float = field(compare=False)
    coef_bound: float | None = field(compare=False)
    # "auto" depends on the bounds, and the unit of the rows depends on it
    perturbation: str
    delta: float

    @property
    def largest(self):
        """float : Bound on the l2 norm of the rows, without the constant."""
        return min(self.data_norm, self.data_norm_l1)  # the l1 norm bounds the l2 norm

    @property
    def radius(self):
        """float : R, bound on the l2 norm of the rows, the constant included."""
        return math.hypot(self.largest, self.fit_intercept)

    def largest_l1(self, n_features):
        """Return a bound on the l1 norm of the rows, without the constant."""
        return min(self.data_norm_l1, math.sqrt(n_features) * self.data_norm)

    def noise_norm(self, n_features):
        """Return `norm`, or, if it is "auto", the norm with the shorter noise."""
        if self.norm != "auto":
            return self.norm
        if self.data_norm_l1 == math.inf or self.perturbation == "output" or self.delta > 0:
            return "l2"
        return min(("l2", "l1"), key=lambda norm: self._noise_length(norm, n_features))

    def _noise_length(self, norm, n_features):
        if self.perturbation == "objective":
            change = self.gradient_change(norm, n_features)
            return change * noise_length(norm, self.dimension(n_features))
        noise = statistic_noise(
            n_features, fit_intercept=self.fit_intercept, norm=norm, epsilon=1.0, delta=0.0
        )
        return noise.spread * replace(self, norm=norm).row_unit(n_features) ** 2

    def row_unit(self, n_features):
        """Return the bound on the norm of the rows that calibrates the noise of the sums."""
        l1 = self.noise_norm(n_features) == "l1"
        return self.largest_l1(n_features) if l1 else self.largest

    def row_bounds(self, n_features):
        """Return the norms to which rows are scaled down."""
        bounds = {"l2": self.data_norm} if self.data_norm < self.data_norm_l1 else {}
        if self.data_norm_l1 < math.inf or self.noise_norm(n_features) == "l1":
            bounds["l1"] = self.largest_l1(n_features)
        return bounds

    def scaled_targets(self, targets):
        """Return the clipped targets, relative to the centre, in units of their bound."""
        Y = self.target_bound
        return np.clip(targets - self.centre, -Y, Y) / Y

    @property
    def ball(self):
        """float : B, bound on the l2 norm of the coefficients."""
        return ball_radius(self.alpha, self.target_bound, self.coef_bound)

    def dimension(self, n_features):
        """Return d, the number of coefficients."""
        return n_features + self.fit_intercept

    def gradient_change(self, norm="l2", n_features=None):
        """Return S, the sensitivity of the sum of the gradients on the ball, in either norm."""
        s, Y, B = float(self.fit_intercept), self.target_bound, self.ball
        if norm == "l2":
            return gradient_change_l2(self.largest, s, Y, B)
        return gradient_change_l1(self.largest, self.largest_l1(n_features), s, Y, B)

    def statistic_noise(self, n_features, epsilon):
        """Return the StatisticNoise of covariance perturbation."""
        return statistic_noise(
            n_features,
            fit_intercept=self.fit_intercept,
            norm=self.noise_norm(n_features),
            epsilon=epsilon,
            delta=self.delta,
        )

    def spread_in_gradient(self, spread, weight, shape, length):
        """Return the norm of (noise in X'X) theta - (noise in X'y) for coefficients of this length.

        `spread` and `weight` are those of a StatisticNoise, and of its target.
        """
        unit = self.row_unit(shape.n_features)
        spread = spread * unit / shape.n_samples
        target = self.target_bound / weight
        return spread * math.sqrt(self.dimension(shape.n_features)) * math.hypot(unit * length, target)

    def covariance_noise_length(self, shape, epsilon):
        """Return that norm halfway to the end of the ball, for noise that covers no rounding.

        Without the matrix of all scales, which a plan for many columns has no memory for.
        """
        norm = self.noise_norm(shape.n_features)
        spread = bare_spread(
            shape.n_features,
            fit_intercept=self.fit_intercept,
            norm=norm,
            epsilon=epsilon,
            delta=self.delta,
        )
        return self.spread_in_gradient(spread, WEIGHTS[norm][1], shape, self.ball / 2)

    def standard_noise(self, generator, n_features, epsilon):
        """Return the noise of one fit, of shape (n_entries,), (2, d) or (d,): see DPRidge."""
        d, norm = self.dimension(n_features), self.noise_norm(n_features)
        if self.perturbation == "output":
            return spherical_laplace(generator, 1, d)[0]
        if self.perturbation == "objective":
            if norm == "l1":
                return np.stack([laplace(generator, d), spherical_laplace(generator, 1, d)[0]])
            return spherical_laplace(generator, 2, d)
        n_entries = n_released(n_features, d + 1)
        if norm == "l1":
            if epsilon == math.inf:
                return np.zeros(n_entries)
            scales = self.statistic_noise(n_features, epsilon)
            return grid_noise(generator, n_entries, scales.scales(n_features), scales.step)
        if self.delta == 0:
            return spherical_laplace(generator, 1, n_entries)[0]
        return gaussian(generator, n_entries)

    def split_scores(self, trials, score, records, parts):
        """Return the scores of trials of this problem on splits, shape (J, k)."""
        return ridge_split_scores(self, trials, score, records, parts)

    def optimal_values(self, calibrations, records, reach):
        """Return the least risks for calibrations of this problem."""
        return ridge_optimal_values(self, calibrations, records, reach)

    def attributes(self, theta):
        """Return the released attributes for coefficients, the constant's being the last."""
        if self.fit_intercept:
            return {"coef_": theta[:-1].copy(), "intercept_": self.centre + float(theta[-1])}
        return {"coef_": theta, "intercept_": self.centre}

    def certified(self, score):
        """Refuse a score without a known certificate."""
        if not isinstance(score, ClippedSquaredErrorScore):
            raise CertificateError(
                f"No certificate exists for {self.kind.__name__}(perturbation="
                f"{self.perturbation!r}) with {type(score).__name__}; use "
                "ClippedSquaredErrorScore of dpselect.metrics."
            )


@dataclass(frozen=True)
class RidgeNoise(ABC):
    """The noise calibration of one fit.

    Attributes
    ----------
    problem : RidgeProblem
    shape : PublicShape
    epsilon : float
        Of the fit.
    scales : StatisticNoise or Perturbation
    """

    problem: RidgeProblem
    shape: PublicShape
    epsilon: float
    scales: StatisticNoise | Perturbation

    @classmethod
    def of(cls, problem, shape, epsilon):
        """Calibrate the noise."""
        p = shape.n_features
        if problem.perturbation == "covariance":
            return CovarianceNoise(problem, shape, epsilon, problem.statistic_noise(p, epsilon))
        calibrated = objective_noise if problem.perturbation == "objective" else output_noise
        scales = calibrated(problem, shape, epsilon)
        return MinimiserNoise(problem, shape, epsilon, scales)

    @property
    def dimension(self):
        """int : d, the number of coefficients."""
        return self.problem.dimension(self.shape.n_features)

    @property
    def norm(self):
        """str : Norm of the rows that calibrates the noise."""
        return self.problem.noise_norm(self.shape.n_features)

    def risk_bound(self, reach):
        """Return the RiskBound over the ball of models whose radius is `reach`."""
        return ridge_risk_bound(self, reach)

    @abstractmethod
    def certificate(self, score, noise=None, failure_probability=None):
        """Return the Certificate of a score, which holds for any noise."""

    @abstractmethod
    def gradient_noise(self, length):
        """Return the root mean square norm of the noise in the gradient at given coefficients."""

    @abstractmethod
    def released(self, sums, noise):
        """Return the released attributes as a dict."""


class CovarianceNoise(RidgeNoise):
    """Noise of sums of outer products."""

    def event(self, learned=False):
        """Return the Event of the fit, which does not depend on learned bounds of rows."""
        delta = self.problem.delta
        if delta == 0 or self.epsilon == math.inf or self.norm != "l2":
            return None
        return GaussianEvent(gaussian_mu(self.epsilon, delta))

    @property
    def mu(self):
        """float : Regularisation of the minimised objective."""
        return self.problem.alpha

    @property
    def on_grid(self):
        """bool : Whether the sums are released on a grid, as they are unless there is no noise."""
        return self.norm == "l1" and self.epsilon < math.inf

    @property
    def bits(self):
        """int or None : Bits of a record's entries, None if they are not truncated."""
        if not self.on_grid:
            return None
        return entry_bits(self.shape.n_samples, len(self.scales.weights), self.scales.step)

    def certificate(self, score, noise=None, failure_probability=None):
        self.problem.certified(score)
        raise CertificateError(
            f"No certificate exists for {self.problem.kind.__name__}(perturbation='covariance') "
            f"with {type(score).__name__}, because one record can turn the solution of a "
            'noisy system from one side of the ball to the other; use perturbation="objective" '
            'or "output", or search over alpha alone, for which one release and post_process '
            "serve the whole grid."
        )

    def gradient_noise(self, length):
        spread, weight = self.scales.spread, self.scales.weights[-1]
        return self.problem.spread_in_gradient(spread, weight, self.shape, length)

    def released(self, sums, noise):
        problem, n = self.problem, self.shape.n_samples
        if not self.on_grid:
            noise = self.scales.scales(self.shape.n_features) * noise
        noisy = sums.noisy(partial(release, noise=noise, step=self.scales.step)) * sums.units
        gram, moment = noisy[:-1, :-1].copy(), noisy[:-1, -1].copy()
        # rho^2 n^2 ||theta||^2 is about the expected squared length of (noise theta)
        unit = problem.row_unit(self.shape.n_features)
        rho = self.scales.spread * unit**2 * math.sqrt(self.dimension) / n
        decomposed = Decomposition.of(gram / n, moment / n, rho)
        theta = decomposed.minimiser(problem.alpha, problem.ball)
        return {
            "gram_": gram,
            "moment_": moment,
            "_rho": rho,
            "_decomposed": decomposed,
            "n_samples_": n,
            **problem.attributes(theta),
        }


class MinimiserNoise(RidgeNoise):
    """Noise in the objective or in its minimiser."""

    bits = None

    @property
    def mu(self):
        """float : lambda, plus the addition of objective perturbation."""
        return self.scales.mu

    def certificate(self, score, noise=None, failure_probability=None):
        self.problem.certified(score)
        s = self.scales
        # the step of a part's sums is that of all records, so a record outside of the part may move a
        # coefficient to the next multiple of the step, too
        residual = 2 * s.tau / s.mu + s.rounding
        moved = self.problem.gradient_change() / self.shape.n_samples / s.mu + residual
        derivative = score.lipschitz * self.problem.radius
        training, apart = (min(score.width, derivative * far) for far in (moved, residual))
        return Certificate(float(training), float(score.width), float(apart))

    def gradient_noise(self, length):
        return self.scales.linear_scale * noise_length(self.norm, self.dimension)

    @property
    def noise_length(self):
        s = self.scales
        # that of output perturbation is in the minimiser
        added = s.mu * s.output_scale * noise_length("l2", self.dimension)
        return self.gradient_noise(self.problem.ball / 2) or added

    def minimiser(self, sums, noise):
        """Return the coefficients on the ball for exact sums."""
        s, ball, (_, moment) = self.scales, self.problem.ball, sums.means
        if self.problem.perturbation == "objective":
            moment, noise = moment - s.linear_scale * noise[0], noise[1]
        theta = sums.decomposed.with_moment(moment).minimiser(s.mu, ball)
        theta = release(theta, s.output_scale * noise, s.step)
        # project on the public ball, which contains the minimiser
        return theta * (ball / max(ball, length_of(theta)))

    def released(self, sums, noise):
        theta = self.minimiser(sums, noise)
        return {"n_samples_": self.shape.n_samples, **self.problem.attributes(theta)}

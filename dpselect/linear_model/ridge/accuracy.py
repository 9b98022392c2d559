"""The accuracy of private ridge regression, and its models at every noise level.

The risk L is what ridge regression minimises on the ball ||theta|| <= B without noise: half
the mean squared error of the clipped records plus alpha / 2 times ||theta||^2. It needs
one pass over the records, for any number of models.
"""

import math
from functools import partial

import numpy as np

from ...base.accuracy_form import (
    AccuracyBounds,
    AccuracyForm,
    Reduction,
    SensitivityNoise,
    root_rounding,
)
from ...base.estimator import Trial
from ...exceptions import CertificateError
from ...mechanisms.verification import root_excess_sensitivity
from ...noise.tails import noise_length
from ...records.persons import person_weights
from ...rows import block_sum
from .calibration import RESIDUAL, minimiser_sensitivity
from .decomposition import Decomposition
from .ridge_noise import statistic_noise
from .sums import entry_bits, outer_sums, truncated
from .trust_region import length_of


class RidgeAccuracy(AccuracyForm):
    """The accuracy of private ridge regression."""

    certified_params = {"perturbation": "objective", "delta": 0.0}

    def __init__(self, model):
        super().__init__(model)
        self.problem = model.problem()

    @property
    def reduces_noise(self):
        return self.problem.perturbation != "objective"

    def excess_bound(self, shape, epsilon, failure_probability=None):
        """Bound L - min L of one fit; see :class:`~dpselect.base.accuracy_form.AccuracyForm`.

        Notes
        -----
        Objective perturbation: L - min L <= ||b||^2 / (2 lambda) for the minimiser with
        b.theta in the objective. A vector o that is added raises L by at most
        ||grad L|| ||o|| + h ||o||^2 / 2, h = R^2 + lambda. The gradient there is at most ||b||:
        inside the ball it is -b, and on the sphere it does not point inwards, since
        grad L . theta >= lambda B^2 - Y^2 / 4 = 0. At the minimiser without noise it is the
        residual. On a smaller ball than the one that contains every minimiser it may be as
        long as a gradient can be.
        """
        problem = self.problem
        if problem.perturbation == "covariance":
            raise CertificateError(
                'No bound on the excess risk is known for DPRidge(perturbation="covariance"), '
                "because the noisy matrix is read with shrinkage of its eigenvalues; use "
                'perturbation="objective" or "output".'
            )
        alpha, R, B = problem.alpha, problem.radius, problem.ball
        s, d = self.model.calibration(shape, epsilon).scales, problem.dimension(shape.n_features)
        steepest = R * (problem.target_bound + R * B) + alpha * B
        expected = failure_probability is None
        if problem.perturbation == "output":
            o = s.output_scale * noise_length("l2", d, failure_probability)
            # the computed minimiser has an error
            derivative = steepest if problem.coef_bound else RESIDUAL * problem.gradient_change()
            # rounding has no random direction, so it meets the largest curvature
            steepened = math.sqrt(R**2 / (d if expected else 1) + alpha) * o
            steepened += math.sqrt(R**2 + alpha) * s.rounding
            return float(derivative * (o + s.rounding) + steepened**2 / 2)
        # give nearly all of the failure probability to the dominant noise
        probabilities = [None if expected else part * failure_probability for part in (0.99, 0.01)]
        norm = problem.noise_norm(shape.n_features)
        b = s.linear_scale * noise_length(norm, d, probabilities[0]) + (s.mu - alpha) * B + s.tau
        o = s.output_scale * noise_length("l2", d, probabilities[1]) + s.rounding
        derivative = steepest if problem.coef_bound else b
        return float(b**2 / (2 * alpha) + derivative * o + (R**2 + alpha) * o**2 / 2)

    def bounds(self, shape):
        problem, n, p = self.problem, shape.n_samples, shape.n_features
        Y, R, B, alpha = problem.target_bound, problem.radius, problem.ball, problem.alpha
        span = (Y + R * B) ** 2 / (2 * n)
        # the computed minimum lies up to tau^2 / (2 lambda) above the true one
        change = problem.gradient_change()
        tau = RESIDUAL * change
        root = root_excess_sensitivity(change / 2 + n * tau, n, alpha)
        root += root_rounding((Y + R * B) ** 2 / 2 + alpha * B**2 / 2)

        def forecast(levels, epsilon):
            if problem.perturbation == "objective":
                return self.excess_bound(shape, epsilon)
            if problem.perturbation == "output":
                deviation = self.output_noise(n, p).deviation(levels, epsilon)
                return deviation**2 * (R**2 + problem.dimension(p) * alpha) / 2
            noise, scale = self.statistics_noise(p, levels.how)
            # assume coefficients of half the largest norm, as none are known
            return self.forecast_excess(scale, noise.deviation(levels, epsilon), shape, B / 2)

        return AccuracyBounds(
            risk=span, minimum=span + tau**2 / (2 * alpha), root=root, forecast=forecast
        )

    def score_span(self, score, n_features):
        self.problem.certified(score)
        return float(score.width)

    def statistics_noise(self, n_features, how):
        """Return the SensitivityNoise of covariance perturbation, and the StatisticNoise at epsilon 1.

        The sums are in units of R and Y.
        """
        problem = self.problem
        norm = "l2" if how == "brownian" else problem.noise_norm(n_features)
        scale = statistic_noise(
            n_features, fit_intercept=problem.fit_intercept, norm=norm, epsilon=1.0, delta=0.0
        )
        scales = scale.scales(n_features)
        shape = scales.shape if norm == "l1" else (1, len(scales))
        return SensitivityNoise(norm, shape, 1.0, scales), scale

    def output_noise(self, n_samples, n_features):
        """Return the SensitivityNoise of output perturbation."""
        moved = minimiser_sensitivity(self.problem.gradient_change(), n_samples, self.problem.alpha)
        return SensitivityNoise("l2", (1, self.problem.dimension(n_features)), moved)

    def forecast_excess(self, scale, deviation, shape, length):
        """Estimate the excess after covariance perturbation from the norm of the coefficients.

        The gradient of the noisy objective is off by (noise in X'X) theta - (noise in X'y), and
        the curvature is lambda in most directions.
        """
        Y, unit = self.problem.target_bound, self.problem.row_unit(shape.n_features)
        spread = scale.off_diagonal * deviation * unit / shape.n_samples
        d = len(scale.weights) - 1
        variance = spread**2 * ((unit * length) ** 2 + (Y / scale.weights[-1]) ** 2)
        return d * variance / (2 * self.problem.alpha)

    def reduction(self, X, y, levels, stream):
        return RidgeReduction(self, X, y, levels, stream)


class RidgeReduction(Reduction):
    """Models of ridge regression at increasing epsilon, from sums that are computed once."""

    def __init__(self, form, X, y, levels, stream):
        self.form, self.levels, self.stream, self.n_read = form, levels, stream, 0
        self.problem = problem = form.problem
        records = Trial(form.model, levels.high).records(X, y)
        self.public, self.shape = records.public, records.shape
        self.n, p = self.shape.n_samples, self.shape.n_features
        bits = None
        if problem.perturbation == "covariance":
            self.noise, self.scale = form.statistics_noise(p, levels.how)
            if self.noise.kind == "l1":
                bits = entry_bits(self.n, len(self.scale.weights), self.noise.step(levels))
        elif problem.perturbation == "output":
            self.noise = form.output_noise(self.n, p)
        self.sums = outer_sums(records, bits, problem)

        # the risks are computed from the exact sums
        def energy(targets, weight=None):
            y = problem.scaled_targets(targets)
            if weight is not None:
                y = y * np.sqrt(weight)
            if bits is not None:
                y = np.ldexp(truncated(y, bits), -bits)
            return (y @ y,)

        (squares,) = block_sum(energy, records.y, *person_weights(records))
        self.energy = float(squares) * problem.target_bound**2 / self.n
        self.minimiser = self.sums.decomposed.minimiser(problem.alpha, problem.ball)
        self.bounds = form.bounds(self.shape)
        if form.reduces_noise:
            self.put_noise_on = self.noise.start(levels, stream.child("levels"))

    def read(self, epsilon):
        problem = self.problem
        if problem.perturbation == "objective":
            trial = Trial(self.form.model, epsilon, self.stream.child("fresh", self.n_read))
            self.n_read += 1
            return trial.calibration(self.shape).minimiser(self.sums, trial.noise(self.shape))
        if problem.perturbation == "output":
            theta = self.put_noise_on(self.minimiser, epsilon)
            return theta * (problem.ball / max(problem.ball, length_of(theta)))
        noisy = self.sums.noisy(partial(self.put_noise_on, epsilon=epsilon))
        noisy *= self.sums.units / self.n
        spread = self.scale.off_diagonal * self.noise.deviation(self.levels, epsilon)
        unit = problem.row_unit(self.shape.n_features)
        rho = spread * unit**2 * math.sqrt(len(self.minimiser)) / self.n
        decomposed = Decomposition.of(noisy[:-1, :-1], noisy[:-1, -1], rho)
        return decomposed.minimiser(problem.alpha, problem.ball)

    def forecast(self, model, epsilon):
        if self.problem.perturbation != "covariance":
            return super().forecast(model, epsilon)
        deviation = self.noise.deviation(self.levels, epsilon)
        return self.form.forecast_excess(self.scale, deviation, self.shape, length_of(model))

    def risks(self, models):
        models, (gram, moment) = np.asarray(models), self.sums.means
        quadratic = ((models @ gram) * models).sum(axis=1)
        squares = (models * models).sum(axis=1)
        return 0.5 * (self.energy - 2 * models @ moment + quadratic + self.problem.alpha * squares)

    @property
    def minimum(self):
        return float(self.risks(self.minimiser[None])[0])

    def publish(self, model, epsilon):
        return Trial(self.form.model, epsilon).published(
            n_samples_=self.n, **self.problem.attributes(model), **self.public
        )

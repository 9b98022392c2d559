"""How accurate private ridge regression is, and its models at every noise level.

The risk L is what ridge regression minimises on the ball ||theta|| <= B without noise: half
the mean squared error of the clipped records plus alpha / 2 times ||theta||^2. It needs
one pass over the records, for any number of models.
"""

import math
from functools import partial

import numpy as np
from sklearn.base import clone

from ...accuracy_first.forms import (
    AccuracyBounds,
    AccuracyForm,
    MovementNoise,
    Reduction,
    root_rounding,
)
from ...exceptions import CertificateError
from ...mechanisms.verification import root_excess_sensitivity
from ...noise.tails import noise_length
from ...records import regression_records
from ...rows import block_sum
from .calibration import RESIDUAL, movement
from .noise import Reading, statistic_noise
from .sums import entry_bits, outer_sums, scaled_targets, truncated
from .trust_region import length_of


class RidgeAccuracy(AccuracyForm):
    """The accuracy of private ridge regression."""

    certified_params = {"perturbation": "objective", "delta": 0.0}

    @property
    def reduces_noise(self):
        return self.model.perturbation != "objective"

    def excess_bound(self, n_samples, n_features, n_problems=1, failure_probability=None):
        """Bound L - min L of one fit; see :class:`~dpselect.accuracy_first.forms.AccuracyForm`.

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
        model, n, d = self.model, n_samples, n_features + bool(self.model.fit_intercept)
        if model.perturbation == "covariance":
            raise CertificateError(
                'No bound on the excess risk is known for DPRidge(perturbation="covariance"), '
                "because the noisy matrix is read with shrinkage of its eigenvalues; use "
                'perturbation="objective" or "output".'
            )
        alpha, R, B = float(model.alpha), model._row_radius(), model._ball_radius()
        steepest = R * (float(model.target_bound) + R * B) + alpha * B
        expected = failure_probability is None
        if model.perturbation == "output":
            s = model._noise(n, d)
            o = s.output_scale * noise_length("l2", d, failure_probability)
            # the computed minimiser is not exact
            slope = steepest if model.coef_bound else RESIDUAL * model._gradient_change("l2")
            # what is rounded has no random direction
            steepened = math.sqrt(R**2 / (d if expected else 1) + alpha) * o
            steepened += math.sqrt(R**2 + alpha) * s.rounding
            return float(slope * (o + s.rounding) + steepened**2 / 2)
        # the draw that matters gets nearly all of the probability
        shares = [None if expected else share * failure_probability for share in (0.99, 0.01)]
        s = model._noise(n, d)
        b = s.linear_scale * noise_length(model.norm, d, shares[0]) + (s.mu - alpha) * B + s.tau
        o = s.output_scale * noise_length("l2", d, shares[1]) + s.rounding
        slope = steepest if model.coef_bound else b
        return float(b**2 / (2 * alpha) + slope * o + (R**2 + alpha) * o**2 / 2)

    def bounds(self, n_samples, n_features, n_problems=1):
        model, Y = self.model, float(self.model.target_bound)
        R, B = model._row_radius(), model._ball_radius()
        span = (Y + R * B) ** 2 / (2 * n_samples)
        # the computed minimum lies up to tau^2 / (2 lambda) above the true one
        alpha, change = float(model.alpha), model._gradient_change("l2")
        tau = RESIDUAL * change
        root = root_excess_sensitivity(change / 2 + n_samples * tau, n_samples, alpha)
        root += root_rounding((Y + R * B) ** 2 / 2 + alpha * B**2 / 2)

        def forecast(levels, epsilon):
            if model.perturbation == "objective":
                at_level = RidgeAccuracy(clone(model).set_params(epsilon=epsilon))
                return at_level.excess_bound(n_samples, n_features)
            if model.perturbation == "output":
                noise, d = output_noise(model, n_samples, n_features)
                return noise.deviation(levels, epsilon) ** 2 * (R**2 + d * model.alpha) / 2
            noise, scale = statistics_noise(model, n_features, levels.how)
            deviation = noise.deviation(levels, epsilon)
            # coefficients of half the largest length, for want of any
            return forecast_excess(model, scale, deviation, n_samples, B / 2)

        return AccuracyBounds(
            risk=span, minimum=span + tau**2 / (2 * alpha), root=root, forecast=forecast
        )

    def score_span(self, score, n_features):
        self.model._certified(score)
        return float(score.bound)

    def reduction(self, X, y, levels, stream):
        return RidgeReduction(self, X, y, levels, stream)


def statistics_noise(model, n_features, how):
    """Return the noise of covariance perturbation.

    Parameters
    ----------
    model : DPRidge
    n_features : int
    how : {"path", "brownian", "fresh"}

    Returns
    -------
    noise : MovementNoise
        Of the sums, in units of R and Y.
    scale : StatisticNoise
        At epsilon = 1.
    """
    norm = "l2" if how == "brownian" else model.norm
    scale = statistic_noise(
        n_features, fit_intercept=model.fit_intercept, norm=norm, epsilon=1.0, delta=0.0
    )
    scales = scale.scales(n_features)
    if norm == "l1":
        return MovementNoise(norm, scales.shape, 1.0, scales), scale
    return MovementNoise(norm, (1, len(scales)), 1.0, scales), scale


def output_noise(model, n_samples, n_features):
    """Return the MovementNoise of output perturbation, and the number of coefficients."""
    d = n_features + bool(model.fit_intercept)
    moved = movement(model._gradient_change("l2"), n_samples, float(model.alpha))
    return MovementNoise("l2", (1, d), moved), d


def forecast_excess(model, scale, deviation, n_samples, length):
    """Guess the excess after covariance perturbation from the length of the coefficients.

    The gradient of the noisy objective is off by (noise in X'X) theta - (noise in X'y), and
    the curvature is lambda in most directions.
    """
    Y, R = float(model.target_bound), float(model.data_norm)
    spread = scale.off_diagonal * deviation * R / n_samples
    d = len(scale.weights) - 1
    variance = spread**2 * ((R * length) ** 2 + (Y / scale.weights[-1]) ** 2)
    return d * variance / (2 * float(model.alpha))


class RidgeReduction(Reduction):
    """Models of ridge regression at increasing epsilon, from sums that are computed once.

    Parameters
    ----------
    form : RidgeAccuracy
    X, y
        The records.
    levels : NoiseLevels
        "fresh" for objective perturbation.
    stream : InnerStream
        Of the noise.
    """

    def __init__(self, form, X, y, levels, stream):
        self.estimator = model = clone(form.model).set_params(random_state=None)
        X, targets = regression_records(model, X, y)
        self.n, self.p = X.shape
        bits = None
        if model.perturbation == "covariance":
            self.noise, self.scale = statistics_noise(model, self.p, levels.how)
            if self.noise.kind == "l1":
                bits = entry_bits(self.n, len(self.scale.weights), self.noise.step(levels))
        self.outer = outer_sums(X, targets, bits, **model._bounds())
        self.sums = self.outer.values * model._units(self.p)
        # the risks are those of the records that the sums are made of
        def energy(targets):
            y = scaled_targets(targets, model.target_bound)
            if bits is not None:
                y = np.ldexp(truncated(y, bits), -bits)
            return (y @ y,)

        (squares,) = block_sum(energy, targets)
        self.energy = float(squares) * float(model.target_bound) ** 2 / self.n
        self.gram, self.moment = self.sums[:-1, :-1] / self.n, self.sums[:-1, -1] / self.n
        self.alpha, self.ball = float(model.alpha), model._ball_radius()
        self.minimiser = Reading.of(self.gram, self.moment, 0.0).minimiser(self.alpha, self.ball)
        self.levels, self.stream, self.n_read = levels, stream, 0
        self.bounds = form.bounds(self.n, self.p)
        if model.perturbation == "output":
            self.noise, _ = output_noise(model, self.n, self.p)
        if model.perturbation != "objective":
            self.put_noise_on = self.noise.start(levels, stream.child("levels"))

    def read(self, epsilon):
        model = self.estimator
        if model.perturbation == "objective":
            model = clone(model).set_params(
                epsilon=epsilon, random_state=self.stream.child("fresh", self.n_read)
            )
            self.n_read += 1
            return model._minimise(self.sums, self.n, model.unit_noise(self.p))
        if model.perturbation == "output":
            theta = self.put_noise_on(self.minimiser, epsilon)
            return theta * (self.ball / max(self.ball, length_of(theta)))
        noisy = self.outer.noisy(self.p, partial(self.put_noise_on, epsilon=epsilon))
        noisy *= model._units(self.p) / self.n
        spread = self.scale.off_diagonal * self.noise.deviation(self.levels, epsilon)
        rho = spread * float(model.data_norm) ** 2 * math.sqrt(len(self.gram)) / self.n
        return Reading.of(noisy[:-1, :-1], noisy[:-1, -1], rho).minimiser(self.alpha, self.ball)

    def forecast(self, model, epsilon):
        if self.estimator.perturbation != "covariance":
            return super().forecast(model, epsilon)
        deviation = self.noise.deviation(self.levels, epsilon)
        return forecast_excess(self.estimator, self.scale, deviation, self.n, length_of(model))

    def risks(self, models):
        models = np.asarray(models)
        quadratic = ((models @ self.gram) * models).sum(axis=1)
        squares = (models * models).sum(axis=1)
        return 0.5 * (self.energy - 2 * models @ self.moment + quadratic + self.alpha * squares)

    @property
    def minimum(self):
        return float(self.risks(self.minimiser[None])[0])

    def publish(self, model, epsilon):
        fitted = clone(self.estimator).set_params(epsilon=epsilon)
        fitted.n_samples_, fitted.n_features_in_ = self.n, self.p
        if hasattr(self.estimator, "feature_names_in_"):
            fitted.feature_names_in_ = self.estimator.feature_names_in_
        fitted._set_coefficients(model)
        return fitted

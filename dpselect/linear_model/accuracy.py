"""The accuracy of private linear models, and their models at every noise level.

The risk L is what the model minimises without noise, the mean loss of the clipped rows
plus alpha / 2 times the squared norm of the coefficients, averaged over the one-vs-rest
problems. Symbols as in :mod:`~dpselect.linear_model.calibration`.
"""

import math
from functools import cached_property

import numpy as np

from ..base.accuracy_form import (
    AccuracyBounds,
    AccuracyForm,
    Reduction,
    SensitivityNoise,
    root_rounding,
)
from ..base.estimator import Trial
from ..mechanisms.verification import root_excess_sensitivity
from ..noise import release
from ..noise.tails import noise_length
from .calibration import calibrate, minimiser_sensitivity, norm_bound
from .design import design_and_targets
from .problems import mean_losses
from .solver import minimise

# number of columns whose risks are computed in one pass
CHUNK = 64


class LinearAccuracy(AccuracyForm):
    """The accuracy of a private linear model with a number for `alpha`."""

    # a small residual needs little noise to hide it
    certified_params = {"perturbation": "objective", "tol": 1e-12}
    alpha_by_rule = True

    def __init__(self, model):
        super().__init__(model)
        if isinstance(model.alpha, str):
            raise ValueError(
                'alpha="auto" changes with epsilon, and with it the risk whose value is promised; '
                "write a number for alpha, such as 0.01, or name a score as the criterion."
            )
        if model.delta > 0 and model.perturbation == "output":
            raise ValueError(
                f"delta={model.delta!r} with perturbation='output' would not be used, because an "
                "accuracy-first search draws the noise of a path itself; write delta=0.0, and for "
                "Gaussian noise method='brownian' and the search's delta, or perturbation='objective'."
            )
        # the loss of a fit with noise, whatever the epsilon of the model itself
        self.problem, self.alpha = model.problem(1.0), float(model.alpha)
        self.loss, self.radius = self.problem.loss, self.problem.radius
        # radius about the penalty's origin of a ball that contains every minimiser
        L, pull = self.loss.lipschitz, self.problem.pull
        self.ball = min(L * self.radius / self.alpha, math.sqrt(pull / self.alpha))

    @property
    def nonnegative(self):
        return self.loss.nonnegative

    @property
    def reduces_noise(self):
        return self.model.perturbation == "output"

    def delta(self, shape, epsilon):
        return self.model.calibration(shape, epsilon).delta

    def excess_bound(self, shape, epsilon, failure_probability=None):
        """Bound L - min L of one fit; see :class:`~dpselect.base.accuracy_form.AccuracyForm`.

        Notes
        -----
        With h = c R^2 + lambda, L(w + o) <= L(w) + ||grad L(w)|| ||o|| + h ||o||^2 / 2 and
        L(w) - min L <= ||grad L(w)||^2 / (2 lambda). The gradient at the perturbed minimiser
        is the noise, what Delta adds, and the residual. At the minimiser itself it is the
        residual, and the mean of the last term has c R^2 / d + lambda in place of h.
        """
        calibration = self.model.calibration(shape, epsilon)
        s, d, alpha = calibration.scales, calibration.dimension, self.alpha
        curvature = self.loss.curvature * self.radius**2
        objective, expected = self.model.perturbation == "objective", failure_probability is None
        # give nearly all of the failure probability to the dominant noise
        probabilities = (
            [None, None]
            if expected
            else [
                fraction * failure_probability / shape.n_problems
                for fraction in ((0.99, 0.01) if objective else (1.0, 1.0))
            ]
        )
        length = noise_length(calibration.law, d, probabilities[0]) if objective else 0.0
        added = s.output_scale * noise_length(calibration.added_law, d, probabilities[1])
        o = self.problem.origin_length
        longest = norm_bound(self.loss, s, self.radius, length, 0.0, o) + o
        gradient = s.linear_scale * length + (s.mu - alpha) * longest + s.tau
        h = (curvature / d if expected and not objective else curvature) + alpha
        # rounding has no random direction, so it meets the largest curvature
        steepened = math.sqrt(h) * added + math.sqrt(curvature + alpha) * s.rounding
        added += s.rounding
        return float(gradient**2 / (2 * alpha) + gradient * added + steepened**2 / 2)

    def bounds(self, shape):
        n, d, R = shape.n_samples, self.problem.dimension(shape.n_features), self.radius
        bare = self.bare(n, d)
        L, U = self.loss.lipschitz, R * self.ball + self.problem.farthest_offset
        span = float(self.loss.span(U)) / n
        # the computed minimum lies up to tau^2 / (2 lambda) above the true one
        root = root_excess_sensitivity(L * R + n * bare.tau, n, self.alpha) + root_rounding(
            float(self.loss.largest(U)) + self.alpha * self.ball**2 / 2
        )
        moved = minimiser_sensitivity(self.loss, R, n, bare.mu, bare.tau)
        noise = SensitivityNoise("l2", (shape.n_problems, d), moved)
        curvature = self.loss.curvature * R**2 + d * self.alpha

        def forecast(levels, epsilon):
            if self.reduces_noise:
                return noise.deviation(levels, epsilon) ** 2 * curvature / 2
            return self.excess_bound(shape, epsilon)

        minimum = span + bare.tau**2 / (2 * self.alpha)
        return AccuracyBounds(risk=span, minimum=minimum, root=root, forecast=forecast)

    def bare(self, n_samples, dimension):
        """Return the calibration of output perturbation; its mu and tau do not depend on epsilon."""
        return calibrate(
            "output",
            self.loss,
            n_samples=n_samples,
            dimension=dimension,
            radius=self.radius,
            alpha=self.alpha,
            epsilon=1.0,
            tol=self.problem.tol,
            origin=self.problem.origin_length,
        )

    def score_span(self, score, n_features):
        self.problem.certified(score)
        farthest = self.radius * self.ball + self.problem.farthest_offset
        return float(score.span(self.loss.unit * farthest))

    def reduction(self, X, y, levels, stream):
        return LinearReduction(self, X, y, levels, stream)


class LinearReduction(Reduction):
    """Linear models at increasing epsilon.

    Parameters
    ----------
    form : LinearAccuracy
    X, y
        The records.
    levels : NoiseLevels
        "fresh" for objective perturbation.
    stream : InnerStream
        Of the noise.
    """

    def __init__(self, form, X, y, levels, stream):
        self.form, self.levels, self.stream, self.n_read = form, levels, stream, 0
        records = Trial(form.model, levels.high).records(X, y)
        self.design, self.targets = design_and_targets(form.problem, records)
        self.public, self.shape = records.public, records.shape
        self.n, self.d, self.K = self.shape.n_samples, self.design.n_columns, self.targets.shape[1]
        self.origin = form.problem.origin(self.d)
        self.bare = form.bare(self.n, self.d)
        self.bounds = form.bounds(self.shape)
        if form.reduces_noise:
            moved = minimiser_sensitivity(form.loss, form.radius, self.n, self.bare.mu, self.bare.tau)
            self.noise = SensitivityNoise("l2", (self.K, self.d), moved)
            self.put_noise_on = self.noise.start(levels, stream.child("levels"))

    @cached_property
    def minimiser(self):
        """ndarray of shape (K, d) : The coefficients without noise."""
        return self._solve(self.form.alpha, np.zeros((self.d, self.K)), self.bare.solved)

    def read(self, epsilon):
        if not self.form.reduces_noise:
            trial = Trial(self.form.model, epsilon, self.stream.child("fresh", self.n_read))
            self.n_read += 1
            s, noise = trial.calibration(self.shape).scales, trial.noise(self.shape)
            w = self._solve(s.mu, s.linear_scale * noise[0].T, s.solved)
            w = release(w, s.output_scale * noise[1], s.step)
        else:
            w = self.put_noise_on(self.minimiser, epsilon)
        # project on the public ball, which contains every minimiser; the sensitivities assume it
        lengths = np.linalg.norm(w - self.origin, axis=1, keepdims=True)
        fraction = self.form.ball / np.maximum(lengths, self.form.ball)
        return w * fraction + (1 - fraction) * self.origin

    def _solve(self, mu, linear, tau):
        K = self.K
        return minimise(
            self.design,
            self.targets,
            np.arange(K),
            self.form.loss,
            mu=np.full(K, mu),
            linear=linear - mu * self.origin.T,
            tau=np.full(K, tau),
            max_iter=self.form.problem.max_iter,
        ).T

    def risks(self, models):
        models = np.asarray(models).reshape(-1, self.d)
        risks = np.empty(len(models))
        for start in range(0, len(models), CHUNK):
            chunk = np.arange(start, min(start + CHUNK, len(models)))
            risks[chunk] = mean_losses(
                self.design, self.targets, chunk % self.K, self.form.loss, models[chunk].T
            )
        apart = models.reshape(-1, self.K, self.d) - self.origin
        risks = risks.reshape(-1, self.K) + self.form.alpha / 2 * (apart * apart).sum(axis=2)
        return risks.mean(axis=1)

    @cached_property
    def minimum(self):
        return float(self.risks(self.minimiser[None])[0])

    def publish(self, model, epsilon):
        return Trial(self.form.model, epsilon).published(
            **self.form.problem.attributes(model), **self.public
        )

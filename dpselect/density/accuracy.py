"""The accuracy of a private histogram, and its densities at every noise level.

The risk L of a density f is the integral of f^2 less twice its mean over the records. The
exact histogram minimises it among all densities that are constant on the cells, and L - min L
is the squared L2 distance to it, ||m - m*||^2 / v for masses m of K cells of volume v.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, gamma

from ..base.accuracy_form import AccuracyBounds, AccuracyForm, Reduction, SensitivityNoise
from ..base.estimator import Trial
from ..noise.tails import noise_length
from ..records.public_shape import PublicShape
from .cells import cell_masses
from .count_noise import SENSITIVITY

# grid of probabilities at which quantiles bound the mean of the excess
TAILS = (0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6, 1e-8)


class HistogramAccuracy(AccuracyForm):
    """The accuracy of a private histogram."""

    nonnegative = False

    def excess_bound(self, shape, epsilon, failure_probability=None):
        """Bound L - min L of one fit; see :class:`~dpselect.base.accuracy_form.AccuracyForm`.

        Notes
        -----
        Let eta be the noise of the masses. Setting negative masses to 0 changes each by some
        e_i, no further than its noise, and their sum from 1 to 1 + s. |s| is at most T, the
        larger of the sums of the positive and of the negative noise. Dividing gives
        m - m* = (e - s m*) / (1 + s). Its length is convex in m*, so largest for a single full
        cell: ||m - m*||^2 <= (||eta||^2 + T^2) / (1 - T)^2, and it is at most 2 always.
        """
        calibration = self.model.calibration(shape, epsilon)
        if failure_probability is not None:
            return excess_quantile(calibration, failure_probability)
        volume = calibration.cells.volume
        return min(excess_quantile(calibration, p) + 2 * p / volume for p in TAILS)

    def bounds(self, shape):
        cells, n = self.model.calibration(shape).cells, shape.n_samples

        def forecast(levels, epsilon):
            noise = counts_noise(self.model, cells.size, levels.how)
            return cells.size * noise.deviation(levels, epsilon) ** 2 / (n**2 * cells.volume)

        span = 2 / (n * cells.volume)
        return AccuracyBounds(
            risk=span, minimum=span, root=math.sqrt(2 / cells.volume) / n, forecast=forecast
        )

    def score_span(self, score, n_features):
        calibration = self.model.calibration(PublicShape(1, n_features))
        calibration.certified(score)
        return 2 / calibration.cells.volume

    def reduction(self, X, y, levels, stream):
        return HistogramReduction(self, X, y, levels, stream)


def excess_quantile(calibration, probability):
    """Return an upper quantile of the excess; see `excess_bound`."""
    cells, n = calibration.cells, calibration.shape.n_samples
    K, scale = cells.size, SENSITIVITY / (n * calibration.epsilon)
    # |k| of discrete Laplace noise is stochastically below Laplace noise rounded up to the grid
    rounded = calibration.step / n
    length = scale * noise_length("l1", K, probability / 2) + rounded * math.sqrt(K)
    side = scale * one_sided_quantile(K, probability / 4) + rounded * K
    distance = math.hypot(length, side) / (1 - side) if side < 1 else math.inf
    return float(min(distance**2, 2.0) / cells.volume)


def one_sided_quantile(n_cells, probability):
    """Return an upper quantile of the sum of the positive ones of K Laplace variables.

    Their number is a binomial variable, and their sum, given it, a gamma variable.
    """
    j = np.arange(n_cells + 1)
    weights = binom.pmf(j, n_cells, 0.5)
    j, weights = j[weights > 0], weights[weights > 0]

    def excess(x):
        return float(weights[j > 0] @ gamma.sf(x, j[j > 0])) - probability

    high = n_cells + 40.0
    return brentq(excess, 0.0, high) if excess(0.0) > 0 else 0.0


def counts_noise(model, n_cells, how):
    """Return the SensitivityNoise of the counts."""
    if how == "brownian":
        # replacing a record lowers one count by 1 and raises another
        return SensitivityNoise("l2", (1, n_cells), math.sqrt(2))
    kind = "integers" if model.noise == "discrete_laplace" else "l1"
    return SensitivityNoise(kind, (n_cells,), SENSITIVITY)


class HistogramReduction(Reduction):
    """Histograms at increasing epsilon, from counts that are made once."""

    def __init__(self, form, X, y, levels, stream):
        self.form, self.levels = form, levels
        trial = Trial(form.model, levels.high)
        records = trial.records(X, y)
        self.public, self.n = records.public, records.shape.n_samples
        self.cells = trial.calibration(records.shape).cells
        noise = counts_noise(form.model, self.cells.size, levels.how)
        self.counts = self.cells.counts(records, noise.step(levels))
        self.masses = self.counts / self.n
        self.bounds = form.bounds(records.shape)
        self.put_noise_on = noise.start(levels, stream.child("levels"))

    def read(self, epsilon):
        return cell_masses(self.put_noise_on(self.counts, epsilon))

    def risks(self, models):
        models = np.asarray(models)
        return ((models - 2 * self.masses) * models).sum(axis=1) / self.cells.volume

    @property
    def minimum(self):
        return float(self.risks(self.masses[None])[0])

    def excesses(self, models):
        difference = np.asarray(models) - self.masses
        return (difference * difference).sum(axis=1) / self.cells.volume

    def publish(self, model, epsilon):
        return Trial(self.form.model, epsilon).published(**self.cells.density(model), **self.public)

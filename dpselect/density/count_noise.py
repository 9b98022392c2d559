"""Calibrate the noise of a private histogram, and bound the sensitivity of its score."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..base.certificates import Certificate
from ..exceptions import CertificateError
from ..metrics import IntegratedSquaredErrorScore
from ..noise import discrete_laplace, grid_noise, grid_step
from ..noise.grid import noise_ratio
from ..records.public_shape import PublicShape
from ..utils.validation import check_number
from .cells import Cells

# replacing a record lowers one count by 1 and raises another
SENSITIVITY = 2.0
# The public rule takes each column for a bell of this standard deviation, where the range is 1: real
# columns are less smooth than they are narrow. Found by experiment.
BELL = 0.036


@dataclass(frozen=True)
class HistogramNoise:
    """The noise calibration of one fit of a histogram.

    Attributes
    ----------
    kind : type
        The estimator's class.
    cells : Cells
    noise : {"laplace", "discrete_laplace"}
    shape : PublicShape
    epsilon : float
        Of the fit.
    """

    kind: type
    cells: Cells
    noise: str
    shape: PublicShape
    epsilon: float

    @property
    def step(self):
        """float : Step of the grid of the noise; counts are multiples of it."""
        if self.noise == "discrete_laplace":
            return 1.0
        return grid_step(SENSITIVITY / self.epsilon, unit=1.0)

    def standard_noise(self, generator, shape=None):
        """Return the noise of the counts, of the shape of the cells or another one."""
        shape = self.cells.shape if shape is None else shape
        if self.epsilon == math.inf:
            return np.zeros(shape)
        if self.noise == "laplace":
            return grid_noise(generator, shape, SENSITIVITY / self.epsilon, self.step)
        return discrete_laplace(generator, shape, noise_ratio(self.epsilon, SENSITIVITY))

    def regularisation_parts(self):
        """Return expected squared errors by noise, by sampling and by the width, of a typical density.

        Of columns that are scaled to [0, 1]. The public rule for `bin_width` takes the least sum.
        """
        widths = [1.0 / k for k in self.cells.shape]
        # no records, or no columns, are refused later
        counted = max(self.shape.n_samples, 1) * math.prod(widths)
        noise = 0.0 if self.epsilon == math.inf else 2 * (SENSITIVITY / self.epsilon / counted) ** 2
        # the integrals of the square of one bell, and of the square of its derivative
        square, steep = 1 / (2 * math.sqrt(math.pi) * BELL), 1 / (4 * math.sqrt(math.pi) * BELL**3)
        d = len(widths)
        narrow = steep * square ** (d - 1) * sum(width * width for width in widths) / 12
        # the uniform density errs by no more than that, however wide its cells are
        most = square**d - 1
        return noise, 1.0 / counted, most * narrow / (most + narrow) if d else 0.0

    def certified(self, score):
        """Refuse a score without a known certificate."""
        if not isinstance(score, IntegratedSquaredErrorScore):
            raise CertificateError(
                f"No certificate exists for {self.kind.__name__} with {type(score).__name__}; "
                "use dpselect.metrics.IntegratedSquaredErrorScore()."
            )

    def certificate(self, score, noise=None, failure_probability=None):
        """Return the Certificate of a score, at a noise sample or for nearly all of them.

        With v the volume of a cell and N the least sum of the clipped noisy counts, `training` is
        min(2, 4 / N) / v and `span` is 2 / v.
        """
        self.certified(score)
        n = self.shape.n_samples
        if failure_probability is None:
            total = least_total(noise.ravel(), n)
        else:
            total = max(0.0, n + self.least_noise(failure_probability))
        v = self.cells.volume
        return Certificate(training=float(training_stability(total) / v), span=2.0 / v)

    def least_noise(self, failure_probability):
        """Return a lower quantile of the sum of all noise."""
        check_number(
            "failure_probability",
            failure_probability,
            high=1.0,
            why="it is the probability with which the bound may fail",
            instead="write a number between 0 and 1, or None for the noise that was drawn",
        )
        # the sum is symmetric about 0
        if failure_probability >= 0.5 or self.epsilon == math.inf:
            return 0.0
        # Chernoff: for every theta in (0, limit), with M the moment generating function of one
        # variable, P(sum <= -t) <= M(theta)^cells exp(-theta t); so any grid of theta will do
        fraction = expit(np.linspace(-30.0, 30.0, 3001))
        limit = self.epsilon / SENSITIVITY
        if self.noise == "laplace":
            # on a grid M is smaller, because sinh(st) <= s sinh(t) for s <= 1
            log_m = -np.log1p(-fraction) - np.log1p(fraction)
        else:
            log_m = (
                2 * np.log(-np.expm1(-limit))
                - np.log(-np.expm1(-limit * (1 - fraction)))
                - np.log(-np.expm1(-limit * (1 + fraction)))
            )
        bounds = (self.cells.size * log_m - math.log(failure_probability)) / (limit * fraction)
        return -float(bounds.min())


def least_total(noise, n_samples):
    """Return the least sum of the clipped noisy counts, over all sets of n records."""
    # clipping only raises a noisy count, which is at least its noise
    return np.maximum(np.maximum(noise, 0.0).sum(axis=-1), n_samples + noise.sum(axis=-1))


def training_stability(total):
    """Return v times the bound on the change of the score: min(2, 4 / total)."""
    return 4.0 / np.maximum(total, 2.0)

"""First releases of linear models: the norm of rows, class frequencies, and the mean count.

The page "First releases" of the documentation has statement and proof.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..base.learned_numbers import FRACTION, FirstRelease
from ..mechanisms.selection import gumbel_choice, largest_sum
from ..noise import grid_noise, grid_step, gumbel, nearest_multiple, release
from ..preprocessing.private_bounds import cell_utility
from ..records.persons import cell_counts, sum_of_parts
from .design import row_norms

# upper ends of the cells, four per octave
RADII = 2.0 ** (np.arange(4 * -40, 4 * 40 + 1) / 4)
# standard deviation of the noise of a share, and scale of that of a mean relative to its bound, for
# which a fraction of epsilon is taken; found by experiment, as the limits below were
SHARE_DEVIATION, MEAN_SCALE = 0.04, 1 / 30
# signal, n epsilon / E[noise norm], up to which the smallest and the largest fraction for shares hold
SHARE_FRACTIONS = {3.0: (0.8, 0.8), 10.0: (0.05, 0.25), 30.0: (0.05, 0.05), 100.0: (0.01, 0.05)}
# the same fractions for a mean; where more would be needed, it is not learned
MEAN_FRACTIONS = (0.01, 0.3)


@dataclass(frozen=True)
class MedianNorm(FirstRelease):
    """The median norm of the rows, as the upper end of the cell that holds it.

    The exponential mechanism; cells count for less by the ratio of their ends to sqrt(p) / 2, the norm
    of rows with entries of about 1/2.
    """

    norm: str
    stand_in: float | None = 1.0

    @property
    def what(self):
        return f"median {self.norm} norm of the rows"

    def event(self, epsilon):
        return gumbel_choice(epsilon)

    def learn(self, records, epsilon, generator):
        n, p = records.shape.n_samples, records.shape.n_features
        scale = 2 / epsilon
        step = grid_step(scale, unit=0.5)
        radius = partial(_radius, self.norm)
        counts = cell_counts(radius, len(RADII) + 1, records.X, records.persons, step)
        utility = cell_utility(counts[:-1].cumsum(), n / 2)
        if epsilon < np.inf:
            octaves = np.abs(np.log2(RADII[1:]) - np.log2(np.sqrt(p) / 2))
            noise = scale * (gumbel(generator, len(utility)) - np.log(2) * octaves)
            noise = nearest_multiple(noise, step)
        else:
            noise = np.zeros(len(utility))
        return float(RADII[1:][largest_sum(utility, noise)])


def _radius(norm, block):
    """Return the index of the first radius that is at least the norm of each row."""
    with np.errstate(over="ignore"):
        return np.searchsorted(RADII, row_norms(block, norm)[:, 0])


class LearnsNormsMixin:
    """Mixin for models whose bounds on rows may be "auto"."""

    def first_releases(self) -> dict[str, FirstRelease]:
        """Return the first releases of the parameters that are "auto", except `alpha`.

        Returns
        -------
        dict
            From the parameter to its FirstRelease.
        """
        norms = {"data_norm": MedianNorm("l2"), "data_norm_l1": MedianNorm("l1", None)}
        return {name: norm for name, norm in norms.items() if isinstance(getattr(self, name), str)}


@dataclass(frozen=True)
class ClassShares(FirstRelease):
    """The frequency of each class, by discrete Laplace noise on its count.

    Attributes
    ----------
    fraction : float
    """

    fraction: float = FRACTION

    what = "shares of the classes"
    stand_in = None
    optional = True
    reads_rows = False

    def planned(self, model, shape, epsilon):
        # weights of classes multiply the frequencies, in the order of the public labels
        unknown = model.class_weight is not None and model.classes is None
        if epsilon == math.inf or not model.fit_intercept or unknown:
            return None
        signal = model.calibration(shape, epsilon).signal
        limits = next((limits for above, limits in SHARE_FRACTIONS.items() if signal < above), None)
        if limits is None:  # there is a model to learn, which tells frequencies, too
            return None
        low, high = limits
        deviation = math.sqrt(2) * _counting_scale(shape.n_problems, epsilon) / shape.n_samples
        return replace(self, fraction=min(max(deviation / SHARE_DEVIATION, low), high))

    def learn(self, records, epsilon, generator):
        n, classes = records.shape.n_samples, records.classes
        # two frequencies add up to 1, so only one is noisy
        independent = slice(1 if len(classes) == 2 else 0, None)
        scale = _counting_scale(len(classes[independent]), epsilon)
        step = 1.0 if records.persons is None else grid_step(scale, unit=1.0)
        label = partial(np.searchsorted, classes)
        counts = cell_counts(label, len(classes), records.y, records.persons, step)[independent]
        counts = counts + grid_noise(generator, len(counts), scale, step)
        # a frequency closer to 0 or 1 than the noise is clipped
        least = min(max(scale, 0.5), n / 2)
        frequencies = (np.clip(counts, least, n - least) / n).tolist()
        return frequencies[0] if len(classes) == 2 else dict(zip(classes.tolist(), frequencies))


@dataclass(frozen=True)
class MeanCount(FirstRelease):
    """The mean of targets clipped to [0, B], by Laplace noise on a grid on their sum."""

    bound: float | None
    fraction: float = FRACTION

    what = "mean of the targets"
    stand_in = None
    optional = True
    reads_rows = False

    def planned(self, model, shape, epsilon):
        low, high = MEAN_FRACTIONS
        fraction = max(1 / (MEAN_SCALE * shape.n_samples * epsilon), low)
        if epsilon == math.inf or not model.fit_intercept or fraction > high:
            return None
        return replace(self, fraction=fraction)

    def learn(self, records, epsilon, generator):
        # in units of B, so that a record contributes at most 1
        n, scale = records.shape.n_samples, 1 / epsilon
        step = grid_step(scale, unit=1.0)
        total = sum_of_parts(self._part, records.y, records.persons, n, step)
        (noisy,) = release([total], grid_noise(generator, 1, scale, step), step)
        # a mean closer to 0 than the noise is clipped
        least = min(max(scale, 0.5 / self.bound), n / 2)
        return float(self.bound * min(max(noisy, least), n) / n)

    def _part(self, targets):
        return np.clip(targets, 0.0, self.bound) / self.bound


def _counting_scale(n_counts, epsilon):
    """Return the scale of noise on counts: another label moves one count by 1, or two of several."""
    return (1 if n_counts == 1 else 2) / epsilon

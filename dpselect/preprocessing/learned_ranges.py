"""Ranges of numbers that are learned first: narrower bounds, inside those of a schema.

Section "Ranges of numbers" of the page "First releases" has statement and proof.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaincinv
from sklearn.base import clone

from ..accounting.events import GaussianEvent
from ..accounting.gaussian import gaussian_mu
from ..base.learned_numbers import FirstRelease
from ..noise import gaussian, release, release_step, scale_with_rounding, spherical_laplace
from ..rows import block_sum, n_rows
from .entry_values import far_apart
from .number_scale import INVERSES, TRANSFORMS
from .schema import NumberColumn, PublicSchema

# squared distance by which another record moves (u, 2 u^2 - 1) of one number at most
SQUARED_SENSITIVITY = 5.1447
# of the budget; the noise of a mean up to which ranges are worth it; the share of a law that lies beyond
# each bound: found by experiment
FRACTION, MOST_NOISE, TAIL = 1 / 10, 0.12, 0.02
# largest change of a record's contribution by rounding it down, in each coordinate
ROUNDING, MOST_BITS = 2.0**-20, 45
# narrowest range, and smallest variance of a law, on the scale of the schema from 0 to 1
NARROWEST, SMALLEST_VARIANCE = 0.01, 2e-5


@dataclass(frozen=True)
class RangesNoise:
    """Noise of the sums of u and 2 u^2 - 1 of p numbers: spherical Laplace, or Gaussian if mu is given.

    Attributes
    ----------
    n_numbers : int
    epsilon : float
    mu : float or None
        Sensitivity in standard deviations.
    """

    n_numbers: int
    epsilon: float
    mu: float | None = None

    @property
    def _loss(self):
        return self.epsilon if self.mu is None else self.mu

    @property
    def _scale(self):
        """float : Without the grid."""
        d = 2 * self.n_numbers
        return (math.sqrt(SQUARED_SENSITIVITY * self.n_numbers) + ROUNDING * math.sqrt(d)) / self._loss

    @property
    def step(self):
        """float : Of the grid on which sums are released."""
        return release_step(self._scale)

    @property
    def scale(self):
        """float : Of standard noise."""
        return scale_with_rounding(self._scale, self.step, self._loss, 2 * self.n_numbers)

    @property
    def deviation(self):
        """float : Standard deviation of the noise of one sum."""
        return self.scale * (1.0 if self.mu else math.sqrt(2 * self.n_numbers + 1))

    def sample(self, generator):
        """Return the noise of all sums."""
        if self.mu is None:
            return self.scale * spherical_laplace(generator, 1, 2 * self.n_numbers)[0]
        return self.scale * gaussian(generator, 2 * self.n_numbers)


@dataclass(frozen=True)
class RangeSums:
    """Sums of u and 2 u^2 - 1 of each number, without noise: they must not leave a fit.

    Attributes
    ----------
    places : ndarray of int64
        In units of `unit`.
    unit : float
    n_samples : int
        Records, or persons, of whom each adds the mean of their rows.
    """

    places: np.ndarray
    unit: float
    n_samples: int


@dataclass(frozen=True)
class TableRanges(FirstRelease):
    """Ranges of the numbers of a table, by noisy means of u and 2 u^2 - 1 of each, u in [-1, 1].

    Its value has, for each name, both ends of the range on the scale of the schema from 0 to 1.

    Attributes
    ----------
    columns : tuple of NumberColumn
    allowed_delta : float
        Delta of the whole fit.
    delta : float
        Of this release; 0 for spherical Laplace noise.
    mu : float or None
        Of Gaussian noise; None if it follows from epsilon and delta.
    """

    columns: tuple[NumberColumn, ...]
    allowed_delta: float = 0.0
    delta: float = 0.0
    mu: float | None = None

    what = "ranges of the numbers"
    stand_in = None
    optional = True
    reads_rows = False
    fraction = FRACTION

    def noise(self, epsilon):
        """Return the RangesNoise of a release with a loss of epsilon."""
        mu = gaussian_mu(epsilon, self.delta) if self.mu is None and self.delta else self.mu
        return RangesNoise(len(self.columns), epsilon, mu)

    def event(self, epsilon):
        mu = self.noise(epsilon).mu
        return GaussianEvent(mu) if mu else None

    def begins(self, other):
        """Return whether the columns of another release are the first ones of this."""
        return replace(self, columns=self.columns[: len(other.columns)]) == other

    def pays(self, n_samples, epsilon):
        """Return whether the noise of a mean is short enough, by public numbers."""
        return self.noise(epsilon).deviation <= MOST_NOISE * n_samples

    def planned(self, model, shape, epsilon):
        if epsilon == math.inf or not self.columns:
            return None
        options = [replace(self, delta=0.0)]
        if self.allowed_delta:
            options.append(replace(self, delta=FRACTION * self.allowed_delta))
        best = min(options, key=lambda option: option.noise(FRACTION * epsilon).deviation)
        return best if best.pays(shape.n_samples, FRACTION * epsilon) else None

    def rows(self, encoder, transform):
        """Return rows with u of each number, and flags of gaps, as `summed` takes them.

        Parameters
        ----------
        encoder : TableEncoder
            Of which the parameters are read.
        transform : callable
            From such an encoder, not fitted, to the rows that it makes of the records.
        """
        return transform(
            clone(encoder).set_params(
                columns=[column.name for column in self.columns],
                **{"expansion": "linear", "cut_points": None, "pairs": (), "n_fourier": 0},
                **{"sparse_output": False, "ranges": None},
            )
        )

    def summed(self, rows, persons=None):
        """Return the RangeSums of rows that :meth:`rows` has made, in one pass; no noise is drawn."""
        n = n_rows(rows) if persons is None else persons.n
        bits = min(MOST_BITS, 62 - math.ceil(math.log2(n)))
        (places,) = block_sum(
            lambda block, *weight: (self._contributions(block, bits, *weight).sum(axis=0),),
            rows,
            *(() if persons is None else (persons.weight,)),
        )
        return RangeSums(places, 2.0**-bits, n)

    def learn(self, records, epsilon, generator):
        """Release the ranges; `records` are their RangeSums."""
        noise = self.noise(epsilon)
        step = min(noise.step, records.unit)
        sums = release(records.places, noise.sample(generator), step, records.unit)
        low, high = beta_ranges(sums / records.n_samples, noise.deviation / records.n_samples)
        names = [column.name for column in self.columns]
        return {name: (float(a), float(b)) for name, a, b in zip(names, low, high)}

    def _contributions(self, rows, bits, weight=None):
        """Return u and 2 u^2 - 1 of each number of each row, as integers that count 2^-bits."""
        rows, place = np.asarray(rows), 0
        u, square = np.empty((2, len(rows), len(self.columns)))
        for j, column in enumerate(self.columns):
            u[:, j] = rows[:, place]
            square[:, j] = 2 * u[:, j] ** 2 - 1
            if column.missing and column.fill is None:
                square[rows[:, place + 1] > 0, j] = 0.0
            place += 1 + column.missing
        values = np.clip(np.hstack([u, square]), -1.0, 1.0)
        if weight is not None:  # of a person with more rows than this, none counts
            values *= np.where(weight >= 2.0 ** (1 - bits) / ROUNDING, weight, 0.0)[:, np.newaxis]
        return np.floor(values * 2.0**bits).astype(np.int64)


def beta_ranges(means, deviation):
    """Return both ends of ranges between 0 and 1, by noisy means of u and 2 u^2 - 1 of each number.

    Quantiles of the Beta law with these moments; its variance is raised by what noise may have taken
    from it, so that ranges are rather too wide than too narrow.
    """
    p = len(means) // 2
    mean, square = np.clip(means[:p], -0.99, 0.99), (means[p:] + 1) / 2
    variance = np.clip(square - mean**2, 0, 1) + deviation / 2 + 2 * np.abs(mean) * deviation
    mean, variance = (mean + 1) / 2, variance / 4
    widest = mean * (1 - mean)
    concentration = widest / np.clip(variance, SMALLEST_VARIANCE, 0.98 * widest) - 1
    a, b = mean * concentration, (1 - mean) * concentration
    low = np.minimum(np.nan_to_num(betaincinv(a, b, TAIL), nan=0.0), 1 - NARROWEST)
    high = np.nan_to_num(betaincinv(a, b, 1 - TAIL), nan=1.0)
    return low, np.maximum(high, low + NARROWEST)


def numbers_to_learn(schema, cut_points):
    """Return the columns of numbers that have curves, and no period and no dates."""
    return tuple(
        column
        for name, column in schema.columns.items()
        if isinstance(column, NumberColumn)
        and not (column.periodic or column.dates or name in (cut_points or ()))
    )


def narrowed(schema, ranges):
    """Return a schema with bounds at the ends of ranges, which are on its scale from 0 to 1."""
    columns = dict(schema.columns)
    for name, ends in ranges.items():
        columns[name] = _narrowed(columns[name], *ends)
    return PublicSchema(columns)


def _narrowed(column, start, stop):
    transform, inverse = TRANSFORMS[column.transform], INVERSES[column.transform]
    first, last = transform(column.low), transform(column.high)
    low, high = np.clip(
        inverse(first + (last - first) * np.array([start, stop])), column.low, column.high
    )
    low = column.low if start == 0 else float(low)
    high = column.high if stop == 1 else float(high)
    if not far_apart(low, high, transform):  # so close to each other that rounding makes them equal
        return column
    fill = None if column.fill is None else min(max(column.fill, low), high)
    return replace(column, low=low, high=high, fill=fill)

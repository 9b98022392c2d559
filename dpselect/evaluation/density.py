"""Evaluate a histogram density."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..metrics.score import check_shape, predicted_by
from ..rows import block_map
from ..utils.type_aliases import FloatArray
from .estimate import Metric
from .evaluation import Evaluation

# ranges of densities, from the largest one downwards; smaller densities are one more range
N_OCTAVES, N_PER_OCTAVE = 16, 16
# relative to the uniform density: smaller ones are clipped to this in logarithms
LEAST_SHARE = 0.01
LONGEST_LOG = math.log(2) / 2
# number of cells of an invented density
INVENTED = 100


@dataclass(frozen=True, eq=False)
class DensityCells:
    """Cells of records: ranges of the model's density values.

    Attributes
    ----------
    densities : ndarray of shape (K, 2)
        The least and the largest density in each range; they rise. The first range is 0 alone.
    squared_integral : float
        Of the density.
    uniform : float
        The density that is the same everywhere.
    """

    densities: FloatArray
    squared_integral: float
    uniform: float

    what = "densities"

    @classmethod
    def of(cls, density, edges):
        """Return the cells of a histogram density, which is public."""
        sides = [float(e[-1]) - float(e[0]) for e in edges]
        volume = math.prod(side / (len(e) - 1) for side, e in zip(sides, edges))
        levels = np.unique(density[density > 0])
        octaves = np.log2(levels / levels[-1])
        place = np.maximum(np.floor(N_PER_OCTAVE * octaves), -N_PER_OCTAVE * N_OCTAVES)
        first = np.flatnonzero(np.diff(place, prepend=-np.inf))
        last = np.append(first[1:], len(levels)) - 1
        densities = np.vstack([[0.0, 0.0], np.column_stack([levels[first], levels[last]])])
        return cls(densities, float(np.sum(density * (density * volume))), 1 / math.prod(sides))

    @classmethod
    def invented(cls):
        """Return the cells of a density of medium quality, for forecasts."""
        relative = (np.arange(INVENTED) + 0.5) / INVENTED
        return cls.of(-np.log(relative), [np.linspace(0.0, 1.0, INVENTED + 1)])

    @property
    def shape(self):
        """tuple of int : Number of cells."""
        return (len(self.densities),)

    def predictions(self, model, X):
        """Return the density of each row."""
        logarithms = predicted_by(model, "score_samples", X)
        check_shape(logarithms.shape, (len(logarithms),))
        return block_map(np.exp, logarithms)

    def index(self, predictions, y):
        """Return the cell of each record; NaN is put into the first."""
        # edges in the middle between two ranges, far from rounding errors of logarithms
        between = (self.densities[:-1, 1] + self.densities[1:, 0]) / 2
        return np.searchsorted(between, np.where(np.isnan(predictions), 0.0, predictions))


def _mean(counts, values):
    """Return a function that estimates a mean between the two columns of `values`, from K cells."""
    everything = np.ones(len(values))
    value = counts.mean(values.mean(axis=1), everything)[0]
    (_, low, _, below), (_, _, high, above) = (counts.mean(end, everything) for end in values.T)
    rounding = np.maximum(high - value - above, value - low - below)
    return value, low, high, np.maximum(below, above) + np.maximum(rounding, 0.0)


def _squared_error(counts, relative):
    """Return 2 (mean of the density) / (integral of its square) - 1."""
    value, low, high, margin = _mean(counts, 2 * relative)
    return value - 1, low - 1, high - 1, margin


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class DensityEvaluation(Evaluation):
    """The evaluation of a histogram density, from one release: see :func:`evaluate`.

    A record's cell is the range of the density where it lies, a sixteenth of an octave wide; intervals
    count that a density is known no better. Its metrics are

    - "integrated_squared_error", what :class:`~dpselect.metrics.IntegratedSquaredErrorScore` gives: the
      larger, the closer is the density to that of the records;
    - "log_gain", the mean logarithm of the density by the uniform one, where less than a hundredth of
      the uniform one counts as that: 0 says no more than the bounds;
    - "zero_density", the share of records where the density is 0.

    Parameters
    ----------
    counts_ : ndarray of shape (K,), or (n_groups, K)
        Released: how many records are in each cell, with discrete Laplace noise.
    n_records : int
        Number of records m, public.
    privacy_ : PrivacyLoss
        What the evaluation spent. It does not cover the model.
    levels : tuple, default=()
        The public groups; empty if there are none.
    level : object, default=None
        The group whose figures these are; None for all records.
    of_training_records : bool, default=False
        Whether the model is known to have been trained on the same records.
    max_weight : float, default=None
        To which the weights of records were clipped: then `counts_` are sums of weights as fractions of
        it. None if each record counts once.
    densities : ndarray of shape (K, 2)
        Of the model, public: the least and the largest density in each range, those that it takes. The
        first range is 0 alone.
    squared_integral : float
        Of the density.
    uniform : float
        The density that is the same everywhere within the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPHistogramDensity, evaluate
    >>> X = np.random.default_rng(0).beta(2, 5, size=(20_000, 1))
    >>> model = DPHistogramDensity(bin_width=0.1, bounds=(0, 1)).fit(X[:10_000])
    >>> evaluation = evaluate(model, X[10_000:], epsilon=1.0)
    >>> evaluation.metrics
    ('integrated_squared_error', 'log_gain', 'zero_density')
    >>> gain = evaluation.metric("log_gain")
    >>> 0.3 < gain.low < gain.high < 0.7
    True
    """

    densities: FloatArray
    squared_integral: float
    uniform: float

    @property
    def _readers(self) -> Mapping[str, Metric]:
        gains = np.log(np.maximum(self.densities / self.uniform, LEAST_SHARE))
        relative = self.densities / self.squared_integral
        empty = np.repeat(self.densities[:, 1:] == 0, 2, axis=1).astype(float)
        return {
            "integrated_squared_error": Metric(
                partial(_squared_error, relative=relative), unit=self.squared_integral
            ),
            "log_gain": Metric(partial(_mean, values=gains), LONGEST_LOG),
            "zero_density": Metric(partial(_mean, values=empty)),
        }

"""Evaluate a regression."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from ..metrics.score import check_shape, predicted_by
from ..rows import block_map
from ..utils.type_aliases import FloatArray
from .estimate import Estimate, Metric, columns
from .evaluation import Evaluation
from .quadrature import slope_corrections

# edges of the bins of errors, relative to the target range: thirds of an octave, fine around 0, so that
# the noise of the few cells of large errors does not dominate
N_OCTAVES, N_PER_OCTAVE = 6, 3
_SIZES = 2.0 ** (np.arange(-N_OCTAVES * N_PER_OCTAVE, 1) / N_PER_OCTAVE)
ERROR_EDGES = np.concatenate([-_SIZES[::-1], _SIZES])
# errors below this are in the bin around 0, where their size is unknown
FINEST = _SIZES[0]
# number of bins of predictions where errors are small
N_BINS = 32
PREDICTION_EDGES = np.arange(N_BINS + 1) / N_BINS
# number of points of the curve of predictions and targets
N_POINTS = 8
# R^2 is clipped below at 1 - WORST
WORST = 10.0
# binning error of a mean size of errors, relative to it, and of a mean error
SIZE_ALLOWANCE, MEAN_ALLOWANCE = 0.01, 0.0015
# and of the variance of targets, in variances of predictions uniform in their bins
ROUNDING = 3
# part of the target range that counts as an end of it; targets beyond the range are counted there
END = 1 / 16
# points per cell for means
POINTS = 32
# largest half-width of an interval, relative to the target range
FARTHEST = 0.125


@cache
def table():
    """Return the bin of errors and the bounds of predictions of each cell, and the cells by bin.

    That is an array of shape (bins of errors, bins of predictions) of cells. The larger an error, the
    wider the bins of predictions, since the target is no better known.
    """
    bins, ends, place = [], [], np.empty((len(ERROR_EDGES) - 1, N_BINS), dtype=np.int64)
    for i, (low, high) in enumerate(zip(ERROR_EDGES, ERROR_EDGES[1:])):
        octave = math.floor(-math.log2(max(-low, high)) + 1e-9)
        width = N_BINS // min(N_BINS, 2 ** (octave + 2))
        # the target is within its range, too
        possible = [
            left
            for left in range(0, N_BINS, width)
            if PREDICTION_EDGES[left] + low < 1 and PREDICTION_EDGES[left + width] + high > 0
        ]
        nearest = np.clip(np.arange(N_BINS) // width * width, possible[0], possible[-1])
        place[i] = len(ends) + (nearest - possible[0]) // width
        bins += [i] * len(possible)
        ends += [(PREDICTION_EDGES[left], PREDICTION_EDGES[left + width]) for left in possible]
    return np.array(bins), np.array(ends), place


@cache
def moments():
    """Return means over each cell, as arrays of shape (cells,)."""
    bins, ends, _ = table()
    grid = (np.arange(POINTS) + 0.5) / POINTS
    low, high = (ERROR_EDGES[bins + side][:, None, None] for side in (0, 1))
    left, right = (ends[:, side][:, None, None] for side in (0, 1))
    error = low + (high - low) * grid[:, None]
    predicted = left + (right - left) * grid
    target = predicted + error
    inside = (target >= 0) & (target <= 1)

    def mean(values):
        return (values * inside).sum(axis=(1, 2)) / inside.sum(axis=(1, 2))

    point = np.floor(N_POINTS * predicted)
    extra = {
        name: slope_corrections(ERROR_EDGES, function)
        for name, function in (("error", np.positive), ("absolute", np.abs), ("squared", np.square))
    }
    rounding = mean(predicted**2) - mean(predicted) ** 2
    # Sheppard's correction: for a smooth density, midpoints of narrow bins overestimate the variance by
    # that of a uniform distribution in a bin; for wide bins it is about right
    sheppard = np.where(ends[:, 1] - ends[:, 0] == 1 / N_BINS, 2, 1)
    return {
        "error": mean(error) + extra["error"][bins],
        "absolute": mean(abs(error)) + extra["absolute"][bins],
        "squared": mean(error**2) + extra["squared"][bins],
        "target": mean(target) + extra["error"][bins],
        "squared_target": (
            mean(target**2)
            - sheppard * rounding
            + extra["squared"][bins]
            + 2 * mean(predicted) * extra["error"][bins]
        ),
        "rounding": rounding,
        # fraction of a cell in each range of predictions, with the predictions and targets there
        "points": [
            (mean(at), mean(at * predicted), mean(at * target))
            for at in (point == i for i in range(N_POINTS))
        ],
    }


@cache
def ends():
    """Return which cells have targets in the lower end of the range only, and in the upper end only."""
    bins, predicted, _ = table()
    least, largest = (predicted[:, side] + ERROR_EDGES[bins + side] for side in (0, 1))
    return largest <= END, least >= 1 - END


@dataclass(frozen=True)
class RegressionCells:
    """Cells of records: bins of the prediction and of its error.

    Attributes
    ----------
    target_range : (float, float)
        To which predictions and targets are clipped.
    """

    target_range: tuple[float, float]

    what = "predictions and errors"

    @property
    def shape(self):
        """tuple of int : Number of cells."""
        return (len(table()[0]),)

    def predictions(self, model, X):
        """Return one number for each row."""
        predicted = predicted_by(model, "predict", X)
        check_shape(predicted.shape, (len(predicted),))
        return block_map(lambda p: np.array(p, dtype=np.float64), predicted)

    def index(self, predictions, y):
        """Return the cell of each record."""
        predicted, target = self._position(predictions), self._position(y)
        error = np.searchsorted(ERROR_EDGES[1:-1], target - predicted, side="left")
        return table()[2][error, np.searchsorted(PREDICTION_EDGES[1:-1], predicted, side="left")]

    def _position(self, numbers):
        """Return the position of numbers in the range as a fraction; NaN counts as its lower end."""
        low, high = self.target_range
        numbers = np.where(np.isnan(numbers), low, np.clip(numbers, low, high))
        return (numbers - low) / (high - low)


def _mean_error(counts):
    values = moments()["error"]
    value, low, high, margin = counts.mean(values, np.ones(len(values)))
    allowance = MEAN_ALLOWANCE + FINEST * _too_fine(counts)
    return value, low - allowance, high + allowance, margin + allowance


def _size_of_errors(counts, name, power=1):
    """Return the mean of a size of errors, which is unreliable if most are in the bin around 0."""
    values = moments()[name]
    value, low, high, margin = counts.mean(values, np.ones(len(values)))
    even, fraction = values[_around_0()].mean(), _too_fine(counts)
    below, above = fraction * even, fraction * (FINEST**power - even)
    low = np.maximum(low - below, 0.0) * (1 - SIZE_ALLOWANCE) ** power
    high = (high + above) * (1 + SIZE_ALLOWANCE) ** power
    return value, low, high, margin + np.maximum(below, above)


def _around_0():
    return table()[0] == len(ERROR_EDGES) // 2 - 1


def _too_fine(counts, weights=1.0):
    """Return the fraction of errors in the bin around 0, whose size is unknown; 0 if they are few."""
    size = (counts.h * weights).sum(axis=-1)
    fine = np.minimum((counts.h * weights * _around_0()).sum(axis=-1), size)
    return np.divide(fine, size, out=np.zeros_like(size), where=(size > 0) & (2 * fine > size))


def _root_mean_square(counts):
    value, low, high, margin = _size_of_errors(counts, "squared", power=2)
    root, least, upper = (np.sqrt(np.maximum(number, 0.0)) for number in (value, low, high))
    # without the clipping at 0
    above, below = np.sqrt(np.maximum(value, 0.0) + margin) - root, np.maximum(value - margin, 0.0)
    # rmse >= mae: where noise reverses this, use the mae for both
    size, *_, far = _size_of_errors(counts, "absolute")
    raised = np.where(far <= FARTHEST, np.maximum(size, root), root)
    margin = np.maximum(above, root - np.sqrt(below)) + raised - root
    return raised, least, np.maximum(upper, raised), margin


def _r_squared(counts):
    m = moments()
    lost, low, high, margin, total = counts.share_of_variance(
        m["squared"], m["target"], m["squared_target"], WORST
    )
    # predictions need not be uniform in their bins
    rounding = ROUNDING * lost * np.maximum(counts.h @ m["rounding"], 0.0) / total
    margin = np.where(_too_fine(counts) > 0, np.inf, margin + rounding)
    return 1 - lost, 1 - high - rounding, np.minimum(1 - low + rounding, 1.0), margin


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class RegressionEvaluation(Evaluation):
    """The evaluation of a regression, from one release: see :func:`evaluate`.

    A record's cell is the range of its prediction and that of its error. Ranges of errors are thirds of
    an octave from 1/64 of the target range on: errors should be larger than that, or `target_range` is
    too wide to tell their size.

    Parameters
    ----------
    counts_ : ndarray of shape (714,), or (n_groups, 714)
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
    target_range : (float, float)
        Public; predictions and targets beyond it count as its ends.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from dpselect import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = X[:, 0] + rng.normal(size=20_000)
    >>> model = LinearRegression().fit(X[:10_000], y[:10_000])
    >>> evaluation = evaluate(
    ...     model, X[10_000:], y[10_000:], epsilon=1.0, target_range=(-5.0, 5.0)
    ... )
    >>> error = evaluation.metric("rmse")
    >>> error.low < 1.0 < error.high
    True
    >>> evaluation.metrics
    ('r2', 'rmse', 'mae', 'bias')
    """

    target_range: tuple[float, float]

    @property
    def _readers(self) -> Mapping[str, Metric]:
        span = self._span
        return {
            "r2": Metric(_r_squared),
            "rmse": Metric(_root_mean_square, FARTHEST, span),
            "mae": Metric(partial(_size_of_errors, name="absolute"), FARTHEST, span),
            # mean of target - prediction
            "bias": Metric(_mean_error, FARTHEST, span),
        }

    @property
    def remarks(self) -> tuple[str, ...]:
        """tuple of str : That most targets lie at an end of the range, if the counts tell so surely."""
        whole, sides = np.ones(len(table()[0])), ("lowest", "highest")
        low = [self.noisy_counts.mean(end.astype(np.float64), whole)[1] for end in ends()]
        return tuple(
            f"Most targets lie in the {side} sixteenth of target_range, or beyond it, where they count "
            "as its end: unless this is their nature, the range is in another unit, too narrow or much "
            "too wide, and these figures say little."
            for side, least in zip(sides, low)
            if least > 0.5
        )

    @property
    def _span(self):
        low, high = self.target_range
        return high - low

    def calibration_curve(self) -> dict[str, FloatArray]:
        """Return mean predictions and targets in eight public ranges of predictions.

        Returns
        -------
        dict of ndarrays of shape (8,)
            "predicted" and "observed", each with "_low" and "_high", in units of the target. The
            intervals of 95 % hold for each range; NaN where it is uninformative.
        """
        return columns("predicted", self._points(1)) | columns("observed", self._points(2))

    def _points(self, column):
        """Return the means of predictions (column 1) or targets (2) in each range of predictions."""
        low = self.target_range[0]
        found = []
        for point in moments()["points"]:
            weights = point[0]
            values = np.divide(point[column], weights, out=np.zeros_like(weights), where=weights > 0)
            fine = FINEST if column == 2 else 0.0
            mean = partial(_mean_of, values=values, weights=weights, fine=fine)
            metric = Metric(mean, unit=self._span)
            e = self._estimate(metric)
            found.append(Estimate(low + e.value, low + e.low, low + e.high))
        return found


def _mean_of(counts, values, weights, fine):
    value, low, high, margin = counts.mean(values, weights)
    unseen = fine * _too_fine(counts, weights)
    return value, low - unseen, high + unseen, margin + unseen

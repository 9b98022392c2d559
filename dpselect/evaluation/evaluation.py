"""How good a classifier is: every figure is read from one release of noisy counts."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..privacy import PrivacyLoss
from ..type_aliases import Array, FloatArray
from ..validation import check_choice, check_number
from .intervals import NoisyCounts
from .scores import EDGES, N_BINS, PROBABILITIES

if TYPE_CHECKING:
    from pandas import DataFrame

# bins that a point of the calibration curve takes together
BINS_A_POINT = 4
# of intervals of which two hold together with 95 %
Z_OF_TWO = 2.2414027276049464
# a cell's bin and label, and the numbers that stand for its scores
BIN, LABEL = np.divmod(np.arange(2 * N_BINS), 2)
SCORE = PROBABILITIES[BIN]
EVERYTHING = np.ones(2 * N_BINS)


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval of 95 %, which covers sampling and noise.

    Parameters
    ----------
    value, low, high : float
        NaN if the interval is so wide that it would say nothing.

    Examples
    --------
    >>> from dpselect.evaluation import Estimate
    >>> print(Estimate(0.81, 0.79, 0.83))
    0.81 [0.79, 0.83]
    """

    value: float
    low: float
    high: float

    @property
    def empty(self) -> bool:
        """bool : Whether nothing can be said at this size and epsilon."""
        return math.isnan(self.value)

    def __str__(self) -> str:
        if self.empty:
            return "nothing to be said: too few records at this epsilon"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class Metric:
    """How a figure is read from counts.

    Attributes
    ----------
    read : callable
        ``read(counts, positive)`` returns value, low, high, and how far the interval reaches from the
        value where no end of the range cuts it off; `positive` marks the cells that are predicted
        positive.
    farthest : float
        An interval that reaches farther says nothing.
    probabilistic : bool
        Whether scores have to be probabilities.
    """

    read: Callable[[Any, Any], tuple[Any, ...]]
    farthest: float = 0.25
    probabilistic: bool = False


def share(values, among):
    """Return the reader of a mean of `values` over the cells that `among` weighs."""
    return lambda counts, positive: counts.mean(values(positive), among(positive))


def _all(positive):
    return EVERYTHING


def _label(positive):
    return 1.0 * LABEL


def _predicted(positive):
    return 1.0 * positive


def _right(positive):
    return 1.0 * (positive == LABEL)


def _f1_weights(positive):
    return np.where(positive & (LABEL == 1), 1.0, np.where(positive != LABEL, 0.5, 0.0))


def _auc(counts, positive):
    return counts.pairs(np.tri(N_BINS, k=-1) + np.eye(N_BINS) / 2)


def _balanced_accuracy(counts, positive):
    above = 1.0 * positive[LABEL == 1]
    return counts.pairs((above[:, None] + 1 - above) / 2)


def _lift(counts, positive):
    precision, low, high, reach = counts.mean(_label(positive), _predicted(positive), z=Z_OF_TWO)
    rate, least, most, _ = counts.mean(_label(positive), EVERYTHING, z=Z_OF_TWO)
    known = (least > 0) & (rate < 2 * least) & (reach <= METRICS["precision"].farthest)
    rate, least, most = (np.where(known, number, np.nan) for number in (rate, least, most))
    return precision / rate, low / most, high / least, 0 * rate


def _calibration_error(counts, positive):
    return counts.absolute_sum((LABEL - SCORE) * _points())


def _points():
    """Return which cells each point of the calibration curve has, of shape (points, cells)."""
    points = np.arange(N_BINS // BINS_A_POINT)
    return 1.0 * (BIN // BINS_A_POINT == points[:, None])


METRICS = {
    "accuracy": Metric(share(_right, _all)),
    "balanced_accuracy": Metric(_balanced_accuracy),
    "precision": Metric(share(_label, _predicted)),
    "recall": Metric(share(_predicted, _label)),
    "specificity": Metric(share(lambda positive: 1.0 - positive, lambda positive: 1.0 - LABEL)),
    "f1": Metric(share(lambda positive: 1.0 * (positive & (LABEL == 1)), _f1_weights)),
    "lift": Metric(_lift),
    "positive_rate": Metric(share(_label, _all)),
    "roc_auc": Metric(_auc),
    "brier": Metric(share(lambda positive: (LABEL - SCORE) ** 2, _all), 0.125, True),
    "log_loss": Metric(
        share(lambda positive: -np.log(np.where(LABEL == 1, SCORE, 1 - SCORE)), _all),
        math.log(2) / 2, True,
    ),
    "calibration_error": Metric(_calibration_error, 0.125, True),
}


def read(name, counts, positive):
    """Return (value, low, high) of a metric, NaN where the interval says nothing."""
    metric = METRICS[name]
    return told(metric.read(counts, positive), metric.farthest)


def told(found, farthest):
    """Return (value, low, high), NaN where the interval reaches so far that it says nothing."""
    *numbers, reach = found
    return tuple(np.where(reach <= farthest, number, np.nan) for number in numbers)


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """How good a classifier is, read from one release: see :func:`evaluate`.

    All that an evaluation tells is a function of `counts_` and of public numbers, and costs nothing
    more. Scores count as the numbers in `probabilities` that stand for their bins.

    Parameters
    ----------
    counts_ : ndarray of shape (32, 2)
        Released: how many records have a score in each bin and each of the two labels, with
        discrete Laplace noise. Negative numbers stay: setting them to 0 would add records to all
        bins that have none.
    n_records : int
        Number of records m, public.
    classes : ndarray of shape (2,)
        Labels; the second one is the positive one.
    calibrated_scores : bool
        Whether scores are probabilities; if False, they are decisions f as 1 / (1 + exp(-f)), which
        rank records and are no probabilities.
    privacy_ : PrivacyLoss
        What the evaluation spent. It does not cover the model.

    Attributes
    ----------
    thresholds : ndarray of shape (31,)
        Edges between the bins. A score above the threshold is a positive prediction.
    probabilities : ndarray of shape (32,)
        What stands for the scores of each bin.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = (X[:, 0] + rng.normal(size=20_000) > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1]).fit(X[:10_000], y[:10_000])
    >>> evaluation = evaluate(model, X[10_000:], y[10_000:], epsilon=1.0)
    >>> accuracy = evaluation.metric("accuracy")
    >>> accuracy.low < accuracy.value < accuracy.high
    True
    >>> bool(0.7 < evaluation.metric("roc_auc").value < 0.9)
    True
    """

    counts_: FloatArray
    n_records: int
    classes: Array
    calibrated_scores: bool
    privacy_: PrivacyLoss

    thresholds = EDGES[1:-1]
    probabilities = PROBABILITIES

    @cached_property
    def _counts(self):
        variance = noise_variance(self.privacy_.epsilon)
        return NoisyCounts.of(self.counts_.ravel(), self.n_records, variance)

    @property
    def metrics(self) -> tuple[str, ...]:
        """tuple of str : Names of the metrics; without those of probabilities if there are none."""
        return tuple(
            name for name, metric in METRICS.items()
            if self.calibrated_scores or not metric.probabilistic
        )

    def metric(self, name: str, threshold: float = 0.5) -> Estimate:
        """Return a figure with its interval of 95 %.

        Parameters
        ----------
        name : str
            One of `metrics`. "log_loss" is in nats, and at most 7.4 a record, since no probability
            counts as less than 0.0006. "lift" is precision by the share of positive records.
            "calibration_error" is the mean distance of predicted and observed rates in eight ranges
            of scores.
        threshold : float, default=0.5
            Scores above it are positive predictions; the nearest of `thresholds` is taken. Means
            nothing to metrics that have none, such as "roc_auc".

        Returns
        -------
        Estimate

        Raises
        ------
        ValueError
            If there is no such metric, or the threshold is not in [0, 1].
        """
        check_choice("name", name, self.metrics, why="no figure of this model has this name")
        return self._estimate(read(name, self._counts, self._above(threshold)))

    def confusion_matrix(self, threshold: float = 0.5) -> tuple[tuple[Estimate, ...], ...]:
        """Return the expected counts of (label, prediction) among `n_records` records.

        Parameters
        ----------
        threshold : float, default=0.5
            As in :meth:`metric`.

        Returns
        -------
        tuple of 2 tuples of 2 Estimate
            Rows are labels and columns predictions, as in scikit-learn.
        """
        positive, m = self._above(threshold), self.n_records

        def cell(label, predicted):
            here = 1.0 * ((label == LABEL) & (predicted == positive))
            found = told(self._counts.mean(here, EVERYTHING), METRICS["accuracy"].farthest)
            return self._estimate([m * number for number in found])

        return tuple(tuple(cell(label, predicted) for predicted in (0, 1)) for label in (0, 1))

    def roc_curve(self) -> dict[str, FloatArray]:
        """Return the points of the ROC curve, one for each of `thresholds`.

        Returns
        -------
        dict of ndarrays of shape (31,)
            "threshold", and "recall" and "false_positive_rate" each with "_low" and "_high". The
            intervals of 95 % hold for each point, not for the whole curve; NaN where one says nothing.
        """
        recalls = [self.metric("recall", threshold) for threshold in self.thresholds]
        kept = [self.metric("specificity", threshold) for threshold in self.thresholds]
        curve = _columns("recall", recalls)
        false = [Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low) for rate in kept]
        curve |= _columns("false_positive_rate", false)
        return {"threshold": self.thresholds.copy(), **curve}

    def calibration_curve(self) -> dict[str, FloatArray]:
        """Return predicted and observed rates in eight public ranges of scores.

        Returns
        -------
        dict of ndarrays of shape (8,)
            "predicted" and "observed", each with "_low" and "_high". The intervals of 95 % hold for each
            range; NaN where one says nothing.

        Raises
        ------
        ValueError
            If scores are no probabilities.
        """
        if not self.calibrated_scores:
            raise ValueError(
                "calibration_curve compares probabilities with rates, and this model has decisions "
                "only; evaluate a model with predict_proba."
            )

        def over(point, values):
            return self._estimate(told(self._counts.mean(values, point), METRICS["recall"].farthest))

        points = _points()
        return _columns("predicted", [over(point, SCORE) for point in points]) | _columns(
            "observed", [over(point, 1.0 * LABEL) for point in points]
        )

    def to_frame(self, threshold: float = 0.5) -> "DataFrame":
        """Return all metrics as a dataframe.

        Parameters
        ----------
        threshold : float, default=0.5
            As in :meth:`metric`.

        Returns
        -------
        pandas.DataFrame
            A row for each of `metrics`, with columns "value", "low" and "high"; NaN where nothing can
            be said.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame needs pandas, which is not installed; run pip install pandas, or call metric."
            ) from None
        rows = {name: self.metric(name, threshold) for name in self.metrics}
        return pd.DataFrame(
            [(e.value, e.low, e.high) for e in rows.values()],
            index=pd.Index(rows, name="metric"), columns=["value", "low", "high"],
        )

    def __repr__(self) -> str:
        lines = [f"{name:<18} {self.metric(name)}" for name in self.metrics]
        return "\n".join([self._head(), *lines, str(self.privacy_)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{name}</td>"
            f"<td style='text-align:left'>{escape(str(self.metric(name)))}</td></tr>"
            for name in self.metrics
        )
        return (
            f"<p>{escape(self._head())}</p><table><thead><tr><th>metric</th><th>value [95 %]</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>{self.privacy_._repr_html_()}"
        )

    def _head(self):
        return f"Evaluation on {self.n_records} records, at the threshold 0.5, with intervals of 95 %"

    def _above(self, threshold):
        """Return which cells have scores above the nearest edge."""
        check_number(
            "threshold", threshold, low_included=True, high=1.0, high_included=True,
            why="scores lie in [0, 1]", instead="write a number between 0 and 1, such as 0.5",
        )
        return BIN > np.abs(self.thresholds - threshold).argmin()

    @staticmethod
    def _estimate(numbers):
        return Estimate(*map(float, numbers))


def noise_variance(epsilon):
    """Return the variance of the noise of a count, 2 q / (1 - q)^2 for ``q = exp(-epsilon / 2)``."""
    return 0.0 if epsilon == math.inf else 0.5 / math.sinh(min(epsilon, 200.0) / 4) ** 2


def _columns(name, estimates):
    parts = {"": "value", "_low": "low", "_high": "high"}
    return {
        name + suffix: np.array([getattr(estimate, part) for estimate in estimates])
        for suffix, part in parts.items()
    }

"""Evaluate a classifier of two classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils.type_aliases import Array, FloatArray
from ..utils.validation import check_choice, check_member, check_number
from .at_rate import NAMES, at_rate
from .estimate import Estimate, Metric, columns
from .evaluation import Evaluation
from .score_bins import DEFAULT_EDGES, N_BINS, PROBABILITIES, representatives

if TYPE_CHECKING:
    from pandas import DataFrame

# bins per point of the calibration curve
BINS_A_POINT = 4
# quantile for two intervals that hold jointly with 95 %
Z_OF_TWO = 2.2414027276049464
# bin and label of each cell
BIN, LABEL = np.divmod(np.arange(2 * N_BINS), 2)
EVERYTHING = np.ones(2 * N_BINS)


def proportion(values, among):
    """Return a function that estimates the mean of `values` over the cells weighted by `among`."""
    return lambda counts, positive: counts.mean(values(positive), among(positive))


def _all(positive):
    return EVERYTHING


def _label(positive):
    return 1.0 * LABEL


def _predicted(positive):
    return 1.0 * positive


def _right(positive):
    return 1.0 * (positive == LABEL)


def f_beta(beta):
    """Return the metric F-beta, in which recall counts `beta` times as much as precision."""
    missed = beta**2 / (1 + beta**2)

    def weights(positive):
        hit = positive & (LABEL == 1)
        return np.select([hit, positive, LABEL == 1], [1.0, 1 - missed, missed], 0.0)

    return Metric(proportion(lambda positive: 1.0 * (positive & (LABEL == 1)), weights))


def _auc(counts, positive):
    return counts.pairs(np.tri(N_BINS, k=-1) + np.eye(N_BINS) / 2)


def _balanced_accuracy(counts, positive):
    above = 1.0 * positive[LABEL == 1]
    return counts.pairs((above[:, None] + 1 - above) / 2)


def _lift(counts, positive):
    precision, low, high, margin = counts.mean(_label(positive), _predicted(positive), z=Z_OF_TWO)
    rate, lower, upper, _ = counts.mean(_label(positive), EVERYTHING, z=Z_OF_TWO)
    known = (lower > 0) & (rate < 2 * lower) & (margin <= METRICS["precision"].farthest)
    rate, lower, upper = (np.where(known, number, np.nan) for number in (rate, lower, upper))
    return precision / rate, low / upper, high / lower, 0 * rate


def of_probabilities(probabilities):
    """Return the metrics that are about what stands for the scores of the bins."""
    score = probabilities[BIN]
    loss = -np.log(np.where(LABEL == 1, score, 1 - score))
    return {
        "brier": Metric(proportion(lambda positive: (LABEL - score) ** 2, _all), 0.125),
        "log_loss": Metric(proportion(lambda positive: loss, _all), math.log(2) / 2),
        "calibration_error": Metric(
            lambda counts, positive: counts.absolute_sum((LABEL - score) * points()), 0.125
        ),
    }


def points():
    """Return the mask of cells of each point of the calibration curve, of shape (points, cells)."""
    return 1.0 * (BIN // BINS_A_POINT == np.arange(N_BINS // BINS_A_POINT)[:, None])


# of any scores, such as decisions
OF_RANKS = {
    "accuracy": Metric(proportion(_right, _all)),
    "balanced_accuracy": Metric(_balanced_accuracy),
    "precision": Metric(proportion(_label, _predicted)),
    "recall": Metric(proportion(_predicted, _label)),
    "specificity": Metric(proportion(lambda positive: 1.0 - positive, lambda positive: 1.0 - LABEL)),
    "f1": f_beta(1.0),
    "lift": Metric(_lift),
    "positive_rate": Metric(proportion(_label, _all)),
    "selection_rate": Metric(proportion(_predicted, _all)),
    "roc_auc": Metric(_auc),
}
METRICS = OF_RANKS | of_probabilities(PROBABILITIES)


@lru_cache(maxsize=32)
def _of_edges(edges):
    """Return the metrics of scores in bins with these edges."""
    return METRICS | of_probabilities(representatives(edges))


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class BinaryEvaluation(Evaluation):
    """The evaluation of a classifier of two classes, from one release: see :func:`evaluate`.

    Scores count as the numbers in `probabilities` that stand for their bins.

    Parameters
    ----------
    counts_ : ndarray of shape (32, 2), or (n_groups, 32, 2)
        Released: how many records have a score in each bin and each of the two labels, with
        discrete Laplace noise. Negative numbers stay: setting them to 0 would add records to all
        bins that have none.
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
    classes : ndarray of shape (2,)
        Labels; the second one is the positive one. They are sorted, unless :meth:`with_positive` changed
        that.
    calibrated_scores : bool
        Whether scores are probabilities; if False, they are decisions f as 1 / (1 + exp(-f)), which
        rank records and are no probabilities.
    edges : tuple of 33 float
        Of the bins, public, 0 and 1 included.

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

    classes: Array
    calibrated_scores: bool
    edges: tuple[float, ...] = DEFAULT_EDGES

    @cached_property
    def thresholds(self) -> FloatArray:
        """ndarray of shape (31,) : Edges between the bins."""
        return np.array(self.edges[1:-1])

    @cached_property
    def probabilities(self) -> FloatArray:
        """ndarray of shape (32,) : The numbers that stand for the scores of the bins."""
        return representatives(self.edges)

    @property
    def outcomes(self) -> tuple:
        """tuple of 2 : The negative and the positive label."""
        return tuple(self.classes.tolist())

    def with_positive(self, label: Any) -> BinaryEvaluation:
        """Return the same evaluation with this label as the positive one.

        It is computed from the same release, so nothing is read or paid. scikit-learn sorts labels, and
        of two the second is the positive one: of "ja" and "nein" it is "nein".

        Parameters
        ----------
        label : object
            One of `classes`.

        Returns
        -------
        BinaryEvaluation
            Its scores are those of this label: probabilities p become 1 - p, and thresholds with them.

        Raises
        ------
        ValueError
            If it is no label of the model.

        Examples
        --------
        >>> import numpy as np
        >>> from dpselect import DPLogisticRegression, evaluate
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(20_000, 2))
        >>> y = np.where(X[:, 0] + rng.normal(size=20_000) > 1, "ja", "nein")
        >>> model = DPLogisticRegression(classes=["ja", "nein"]).fit(X[:10_000], y[:10_000])
        >>> evaluation = evaluate(model, X[10_000:], y[10_000:], epsilon=1.0)
        >>> bool(evaluation.metric("positive_rate").value > 0.5)
        True
        >>> bool(evaluation.with_positive("ja").metric("positive_rate").value < 0.5)
        True
        """
        labels = self.outcomes
        if len(self.classes) > 2:
            raise ValueError(
                f"with_positive({label!r}) is of two classes, and this evaluation counts right and "
                f"wrong predictions of {len(self.classes)}; evaluate without confidence=True for "
                "recall and precision of each class."
            )
        place = check_member("label", label, labels, why="only these are labels of the model")
        if place == 1:
            return self
        if (source := self.source) is not self and source.outcomes == labels[::-1]:
            return source
        edges = self.edges
        if edges != DEFAULT_EDGES:  # which are the same from both ends
            edges = tuple(1 - edge for edge in reversed(edges))
        other = replace(
            self, counts_=self.counts_[..., ::-1, ::-1], classes=self.classes[::-1], edges=edges
        )
        object.__setattr__(other, "_source", self)
        return other

    @property
    def _readers(self) -> Mapping[str, Metric]:
        return _of_edges(self.edges) if self.calibrated_scores else OF_RANKS

    def metric(
        self,
        name: str,
        threshold: float = 0.5,
        *,
        rate: float | None = None,
        beta: float | None = None,
    ) -> Estimate:
        """Return a metric with its 95 % interval.

        Parameters
        ----------
        name : str
            One of `metrics`, or "fbeta". "log_loss" is in nats, and at most 7.4 a record, since no
            probability counts as less than 0.0006. "positive_rate" is the share of positive labels,
            "selection_rate" that of positive predictions. "lift" is precision by the share of positive
            labels. "calibration_error" is the mean distance of predicted and observed rates in eight
            ranges of scores.
        threshold : float, default=0.5
            Scores above it are positive predictions; the nearest of `thresholds` is taken. Means
            nothing to metrics that have none, such as "roc_auc".
        rate : float, default=None
            Share of the records that are positive predictions, those of highest score, in (0, 1), in
            place of a threshold: of "recall", "precision" and "lift". It is interpolated between
            thresholds, and the interval covers every order of the scores between them.
        beta : float, default=None
            Of "fbeta", which needs it: how much more recall counts than precision, greater than 0.

        Returns
        -------
        Estimate

        Raises
        ------
        ValueError
            If there is no such metric, or not at a rate, the threshold is not in [0, 1], or `beta` is
            missing or given for another metric.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from dpselect import evaluate
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(20_000, 2))
        >>> y = (X[:, 0] + rng.normal(size=20_000) > 2).astype(int)
        >>> model = LogisticRegression().fit(X[:10_000], y[:10_000])
        >>> evaluation = evaluate(model, X[10_000:], y[10_000:], epsilon=1.0)
        >>> recall = evaluation.metric("recall", rate=0.1)
        >>> bool(recall.low < 0.53 < recall.high)
        True
        """
        if (beta is not None) != (isinstance(name, str) and name == "fbeta"):
            raise ValueError(
                f"beta={beta!r} was given for {name!r}, and it is the weight of recall in 'fbeta' and "
                'in no other figure; write for instance metric("fbeta", beta=2).'
            )
        if rate is not None:
            return self._at_rate(name, rate)
        if beta is None:
            return self._asked(name, self._above(threshold))
        check_number(
            "beta", beta, why="recall has a weight in F-beta", instead="write a number such as 2"
        )
        return self._estimate(f_beta(float(beta)), self._above(threshold))

    def _at_rate(self, name, rate):
        check_choice("name", name, NAMES, why="no other figure is told at a rate")
        check_number(
            "rate",
            rate,
            high=1.0,
            why="it is the share of the records that are positive predictions",
            instead="write a number such as 0.1",
        )
        return self._estimate(at_rate(name, float(rate)), None)

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
        positive = self._above(threshold)
        return tuple(
            tuple(
                self._expected(1.0 * ((label == LABEL) & (predicted == positive)))
                for predicted in (0, 1)
            )
            for label in (0, 1)
        )

    def roc_curve(self) -> dict[str, FloatArray]:
        """Return the points of the ROC curve, one for each of `thresholds`.

        Returns
        -------
        dict of ndarrays of shape (31,)
            "threshold", and "recall" and "false_positive_rate" each with "_low" and "_high". The
            intervals of 95 % hold for each point, not for the whole curve; NaN where it is
            uninformative.
        """
        recalls, kept = (
            [self._estimate(METRICS[name], self._above(threshold)) for threshold in self.thresholds]
            for name in ("recall", "specificity")
        )
        curve = columns("recall", recalls)
        false = [Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low) for rate in kept]
        curve |= columns("false_positive_rate", false)
        return {"threshold": self.thresholds.copy(), **curve}

    def calibration_curve(self) -> dict[str, FloatArray]:
        """Return predicted and observed rates in eight public ranges of scores.

        Returns
        -------
        dict of ndarrays of shape (8,)
            "predicted" and "observed", each with "_low" and "_high". The intervals of 95 % hold for each
            range; NaN where it is uninformative.

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
            return self._estimate(Metric(lambda counts: counts.mean(values, point)))

        score = self.probabilities[BIN]
        return columns("predicted", [over(point, score) for point in points()]) | columns(
            "observed", [over(point, 1.0 * LABEL) for point in points()]
        )

    def to_frame(self, threshold: float = 0.5) -> DataFrame:
        """Return all metrics as a dataframe.

        Parameters
        ----------
        threshold : float, default=0.5
            As in :meth:`metric`.

        Returns
        -------
        pandas.DataFrame
            A row for each of `metrics`, with columns "value", "low" and "high"; NaN where nothing can
            be said. If there are `levels`, a row for each group and metric.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return self._frame(self._above(threshold))

    def _at(self):
        return f"{self.outcomes[1]!r} predicted above 0.5, "

    def _above(self, threshold):
        """Return a mask of the cells with scores above the nearest edge."""
        check_number(
            "threshold",
            threshold,
            low_included=True,
            high=1.0,
            high_included=True,
            why="scores lie in [0, 1]",
            instead="write a number between 0 and 1, such as 0.5",
        )
        return BIN > np.abs(self.thresholds - threshold).argmin()

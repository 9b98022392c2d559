"""Evaluate a classifier of three or more classes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics.score import check_shape, predicted_by
from ..utils.type_aliases import Array
from ..utils.validation import check_choice, check_member, imported_pandas
from .estimate import Estimate, Metric
from .evaluation import Evaluation
from .quadrature import slope_corrections
from .score_bins import class_probabilities

if TYPE_CHECKING:
    from pandas import DataFrame

# bin edges of the label's probability: fine near 0, where its logarithm is steep, and near 1
EDGES = np.array([0.0, 0.001, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 1.0])
# relative error of a log loss due to binning
ROUNDING = 0.03
# largest probability of a label that is not predicted
MAX_OF_OTHERS = 0.5


@dataclass(frozen=True)
class MulticlassCells:
    """Cells of records: the label, the prediction, and a bin of the label's probability.

    Attributes
    ----------
    classes : ndarray of shape (K,)
    calibrated_scores : bool
        Whether the model has probabilities; if not, there is one bin.
    """

    classes: Array
    calibrated_scores: bool

    what = "labels and predictions"

    @property
    def shape(self):
        """tuple of int : Number of cells."""
        return (self._start(len(self.classes) ** 2),)

    def _bins(self, right):
        """Return the first bin and the number of bins for labels that are predicted, or not."""
        if not self.calibrated_scores:
            return 0, 1
        last = np.searchsorted(EDGES, MAX_OF_OTHERS)
        # the predicted label has a probability of at least 1 / K
        first = np.searchsorted(EDGES, 1 / len(self.classes), side="right") - 1
        n = len(EDGES) - 1
        return np.where(right, first, 0), np.where(right, n - first, last)

    def _start(self, pair):
        """Return the first cell of a pair, numbered by label and prediction."""
        K = len(self.classes)
        right_before = -(-pair // (K + 1))
        return right_before * self._bins(True)[1] + (pair - right_before) * self._bins(False)[1]

    @cached_property
    def table(self):
        """tuple of 4 ndarrays : Label, prediction, and the bin's ends, of each cell."""
        K = len(self.classes)
        label, prediction = np.divmod(np.arange(K**2), K)
        first, n = (np.broadcast_to(part, K**2) for part in self._bins(label == prediction))
        pair = np.repeat(np.arange(K**2), n)
        place = np.arange(len(pair)) - self._start(pair) + first[pair]
        return label[pair], prediction[pair], EDGES[place], EDGES[place + 1]

    def predictions(self, model, X):
        """Return the probabilities of all classes, or the predicted labels."""
        if not self.calibrated_scores:
            predicted = predicted_by(model, "predict", X)
            check_shape(predicted.shape, (len(predicted),))
            return predicted
        return class_probabilities(model, X, len(self.classes))

    def index(self, predictions, y):
        """Return the cell of each record."""
        K = len(self.classes)
        label, bins = self._place(y), 0
        if self.calibrated_scores:
            p = np.nan_to_num(np.asarray(predictions, dtype=np.float64))
            predicted = p.argmax(axis=1)
            # an edge belongs to the bin below
            bins = np.searchsorted(EDGES[1:-1], p[np.arange(len(p)), label], side="left")
        else:
            predicted = self._place(predictions)
        first, n = self._bins(label == predicted)
        return self._start(K * label + predicted) + np.clip(bins - first, 0, n - 1)

    def _place(self, labels):
        """Return the index of labels among the classes; others get an arbitrary one."""
        order = np.argsort(self.classes)
        place = np.searchsorted(self.classes[order], labels)
        return order[np.minimum(place, len(self.classes) - 1)]


def _mean(values, weights):
    return Metric(lambda counts: counts.mean(values, weights))


def _loss(counts, values):
    value, low, high, margin = counts.mean(values, np.ones(len(values)))
    return value, low * (1 - ROUNDING), high * (1 + ROUNDING), margin


def _mean_of_recalls(counts, right, labels):
    """Return the mean of the recalls of all classes, which come from different records."""
    value, low, high, margin = counts.means((right, 1.0 * label) for label in labels)
    below, above, margin = (
        np.sqrt((each**2).sum(axis=-1)) / len(labels) for each in (value - low, high - value, margin)
    )
    value = value.mean(axis=-1)
    return value, value - below, value + above, margin


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class MulticlassEvaluation(Evaluation):
    """The evaluation of a classifier of three or more classes, from one release: see :func:`evaluate`.

    A record's cell is its label, the prediction, and one of eleven bins of the label's probability; in
    a bin, probabilities count as spread evenly.

    Parameters
    ----------
    counts_ : ndarray of shape (n_cells,), or (n_groups, n_cells)
        Released: how many records are in each cell, with discrete Laplace noise. The columns of
        `cells` say which they are.
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
    classes : ndarray of shape (n_classes,)
        The labels.
    calibrated_scores : bool
        Whether the model has probabilities. If not, cells have no bins, and there is no log loss.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dpselect import evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    >>> evaluation = evaluate(model, X[1::2], y[1::2], epsilon=float("inf"))
    >>> print(evaluation.metric("accuracy"))
    0.96 [0.8889, 0.9863]
    >>> print(evaluation.class_metric("recall", 0))
    1 [0.8668, 1]
    """

    classes: Array
    calibrated_scores: bool

    @cached_property
    def cells(self) -> dict[str, Array]:
        """dict of ndarrays : "label", "prediction", and the ends "low" and "high" of each cell's bin."""
        label, prediction, low, high = self._table
        names = {"label": self.classes[label], "prediction": self.classes[prediction]}
        return names | ({"low": low, "high": high} if self.calibrated_scores else {})

    @cached_property
    def _table(self):
        return MulticlassCells(self.classes, self.calibrated_scores).table

    @property
    def _readers(self) -> Mapping[str, Metric]:
        label, prediction, low, high = self._table
        right, everything = 1.0 * (label == prediction), np.ones(len(label))
        labels = label == np.arange(len(self.classes))[:, None]
        readers = {
            "accuracy": _mean(right, everything),
            "balanced_accuracy": Metric(partial(_mean_of_recalls, right=right, labels=labels)),
        }
        if self.calibrated_scores:
            # mean over p uniform in the bin
            loss = 1 + (_entropy(high) - _entropy(low)) / (high - low)
            loss += slope_corrections(EDGES, lambda p: -np.log(p))[np.searchsorted(EDGES, low)]
            half = math.log(len(self.classes)) / 2
            readers["log_loss"] = Metric(partial(_loss, values=loss), half)
        return readers

    class_metrics = ("precision", "recall", "f1", "share")

    def class_metric(self, name: str, label: Any) -> Estimate:
        """Return a metric of one class with its 95 % interval.

        Parameters
        ----------
        name : {"precision", "recall", "f1", "share"}
            "share" is how many records have the label.
        label : object
            One of `classes`.

        Returns
        -------
        Estimate

        Raises
        ------
        ValueError
            If there is no such metric or label.
        """
        check_choice("name", name, self.class_metrics, why="no figure of a class has this name")
        place = check_member("label", label, self.classes.tolist(), why="the model has no such label")
        return self._estimate(Metric(lambda counts: counts.mean(*self._ratio(name, place))))

    def _ratio(self, name, place):
        """Return the values and weights of the cells in a metric of one class."""
        label, prediction, *_ = self._table
        is_label, predicted = label == place, prediction == place
        values, weights = {
            "precision": (is_label, predicted),
            "recall": (predicted, is_label),
            "f1": (is_label & predicted, (is_label + 1.0 * predicted) / 2),
            "share": (is_label, np.ones(len(is_label))),
        }[name]
        return 1.0 * values, 1.0 * weights

    def _of_classes(self, names):
        """Return the estimates of metrics of all classes, class by class."""
        asked = list(product(range(len(self.classes)), names))
        metric = Metric(lambda counts: counts.means(self._ratio(name, place) for place, name in asked))
        return [Estimate(*map(float, numbers)) for numbers in zip(*metric(self.noisy_counts))]

    def confusion_matrix(self) -> tuple[tuple[Estimate, ...], ...]:
        """Return the expected counts of (label, prediction) among `n_records` records.

        Returns
        -------
        tuple of tuples of Estimate
            Rows are labels and columns predictions, as in scikit-learn.
        """
        cells = self.cells
        return tuple(
            tuple(
                self._expected(1.0 * ((cells["label"] == label) & (cells["prediction"] == predicted)))
                for predicted in self.classes
            )
            for label in self.classes
        )

    def class_frame(self) -> "DataFrame":
        """Return the metrics of all classes as a dataframe.

        Returns
        -------
        pandas.DataFrame
            A row for each label and metric of `class_metrics`, with columns "value", "low" and
            "high"; NaN where nothing can be said.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = imported_pandas("class_frame", "call class_metric")
        index = pandas.MultiIndex.from_product(
            [self.classes, self.class_metrics], names=["label", "metric"]
        )
        rows = self._of_classes(self.class_metrics)
        return pandas.DataFrame(
            [(e.value, e.low, e.high) for e in rows], index=index, columns=["value", "low", "high"]
        )

    def _figures(self):
        names = ("precision", "recall")
        texts = [f"{name} of {label!r}" for label, name in product(self.classes.tolist(), names)]
        return super()._figures() | dict(zip(texts, self._of_classes(names)))


def _entropy(p):
    """Return -p log p, and 0 at 0."""
    return -p * np.log(np.where(p > 0, p, 1.0))

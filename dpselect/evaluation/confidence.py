"""Confidence of a classifier of three or more classes: its accuracy by predicted probability."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .binary import METRICS, BinaryEvaluation
from .estimate import Metric
from .score_bins import BinaryCells, class_probabilities, score_bins

CONFIDENCE_METRICS = {
    "accuracy": METRICS["positive_rate"],
    "selective_accuracy": METRICS["precision"],
    "selection_rate": METRICS["selection_rate"],
    "confidence_auc": METRICS["roc_auc"],
    "confidence_brier": METRICS["brier"],
    "calibration_error": METRICS["calibration_error"],
}


@dataclass(frozen=True)
class ConfidenceCells(BinaryCells):
    """The 64 cells of records: a bin of the largest probability, and whether the prediction is right."""

    what = "probabilities of predictions that are right or wrong"

    def predictions(self, model, X):
        """Return the probabilities of all classes."""
        return class_probabilities(model, X, len(self.classes))

    def index(self, predictions, y):
        """Return the cell of each record; whether it is right varies fastest."""
        p = np.nan_to_num(np.asarray(predictions, dtype=np.float64))
        return 2 * score_bins(p.max(axis=1)) + (self.classes[p.argmax(axis=1)] == y)


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class ConfidenceEvaluation(BinaryEvaluation):
    """The accuracy of a classifier of three or more classes by confidence: see :func:`evaluate`.

    A :class:`BinaryEvaluation` of whether a prediction is right, with its probability as the score.
    "accuracy" is the model's; "selective_accuracy" at a threshold that of the predictions with a larger
    probability, and "selection_rate" their share; "confidence_auc" tells how well the probability tells
    right predictions from wrong ones, "confidence_brier" is its mean squared distance from 1 for right
    and 0 for wrong, and "calibration_error" how far it is from the share of right ones.
    :func:`calibrated` makes the model's probabilities agree with that.

    Parameters
    ----------
    counts_ : ndarray of shape (32, 2), or (n_groups, 32, 2)
        Released: how many predictions with a probability in each bin are wrong, and right, with discrete
        Laplace noise.
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
        The labels of the model.
    calibrated_scores : bool
        True: a model without probabilities is refused.
    edges : tuple of 33 float
        Of the bins, public, 0 and 1 included.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dpselect import calibrated, evaluate
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GaussianNB().fit(X[:500], y[:500])
    >>> evaluation = evaluate(model, X[500:1000], y[500:1000], epsilon=float("inf"), confidence=True)
    >>> print(evaluation.metric("calibration_error"))
    0.2569 [0.2136, 0.2982]
    >>> after = evaluate(
    ...     calibrated(model, evaluation), X[1000:], y[1000:], epsilon=float("inf"), confidence=True
    ... )
    >>> bool(after.metric("calibration_error").value < 0.1)
    True
    """

    outcomes = ("wrong", "right")

    @property
    def _readers(self) -> Mapping[str, Metric]:
        return CONFIDENCE_METRICS

    def _head(self):
        return super()._head().replace("Evaluation", "Evaluation of confidence", 1)

"""Cells of records of two classes: a public bin of the score, and the label."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..metrics.score import check_shape, predicted_by
from ..rows import block_map
from ..utils.type_aliases import Array, Estimator, FloatArray, IntArray, MatrixLike

N_BINS = 32
# equal in the arcsine of the root of the probability, which stabilises the variance of a rate: narrow
# near 0 and 1, as rare classes need. Rounded, so that 1/2 is an edge, and all machines agree
EDGES = np.round((1 - np.cos(np.pi * np.arange(N_BINS + 1) / N_BINS)) / 2, 12)
# representative score of each bin
PROBABILITIES = (1 - np.cos(np.pi * (np.arange(N_BINS) + 0.5) / N_BINS)) / 2


def score_bins(scores: FloatArray) -> IntArray:
    """Return the bin of each score in [0, 1]; an edge belongs to the bin below, NaN to the lowest."""
    # side="left", so that 1/2 is a negative prediction, as in scikit-learn
    return np.searchsorted(EDGES[1:-1], np.where(np.isnan(scores), 0.0, scores), side="left")


def probabilities(model: Estimator, X: MatrixLike) -> FloatArray:
    """Return each row's score for the second class, in [0, 1]: a probability, or a squashed decision."""
    if hasattr(model, "predict_proba"):
        predicted = predicted_by(model, "predict_proba", X)
        check_shape(predicted.shape, (len(predicted), 2))
        return block_map(lambda p: np.array(p[:, 1], dtype=np.float64), predicted)
    decision = predicted_by(model, "decision_function", X)
    check_shape(decision.shape, (len(decision),))
    return block_map(lambda d: expit(np.array(d, dtype=np.float64)), decision)


def class_probabilities(model: Estimator, X: MatrixLike, n_classes: int) -> FloatArray:
    """Return each row's probabilities of all classes."""
    predicted = predicted_by(model, "predict_proba", X)
    check_shape(predicted.shape, (len(predicted), n_classes))
    return predicted


@dataclass(frozen=True)
class BinaryCells:
    """The 64 cells of records of two classes.

    Attributes
    ----------
    classes : ndarray of shape (2,)
    calibrated_scores : bool
        Whether scores are probabilities.
    """

    classes: Array
    calibrated_scores: bool

    shape = (N_BINS, 2)
    what = "scores and labels"

    predictions = staticmethod(probabilities)

    def index(self, scores, y):
        """Return the cell of each record, the label last."""
        return 2 * score_bins(scores) + (y == self.classes[1])

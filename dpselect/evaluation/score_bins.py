"""Cells of records of two classes: a public bin of the score, and the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from ..metrics.score import check_shape, predicted_by
from ..rows import block_map
from ..utils.type_aliases import Array, Estimator, FloatArray, IntArray, MatrixLike

N_BINS = 32
# equal in the arcsine of the root of the probability, which stabilises the variance of a rate: narrow
# near 0 and 1, as rare classes need. Rounded, so that 1/2 is an edge, and all machines agree
EDGES = np.round((1 - np.cos(np.pi * np.arange(N_BINS + 1) / N_BINS)) / 2, 12)
# representative score of each bin
PROBABILITIES = (1 - np.cos(np.pi * (np.arange(N_BINS) + 0.5) / N_BINS)) / 2
DEFAULT_EDGES = tuple(EDGES.tolist())
# how far thresholds around a rate reach, in logits: they lie close near it, where most scores of a
# private model are
REACH = 4.0
# share of a class below which thresholds lie around it
RARE = 0.1


def score_bins(scores: FloatArray, edges: Sequence[float] | FloatArray = EDGES) -> IntArray:
    """Return the bin of each score in [0, 1]; an edge belongs to the bin below, NaN to the lowest."""
    # side="left", so that 1/2 is a negative prediction, as in scikit-learn
    return np.searchsorted(edges[1:-1], np.where(np.isnan(scores), 0.0, scores), side="left")


def representatives(edges: Sequence[float] | FloatArray) -> FloatArray:
    """Return the score that stands for each bin: the middle, in arcsines of roots."""
    if np.array_equal(edges, EDGES):
        return PROBABILITIES
    angles = np.arccos(1 - 2 * np.asarray(edges))
    return (1 - np.cos((angles[1:] + angles[:-1]) / 2)) / 2


def edges_of(thresholds: npt.ArrayLike | float | None) -> tuple[float, ...]:
    """Return the edges of the bins for public thresholds, or around a public rate, or refuse these."""
    if thresholds is None:
        return DEFAULT_EDGES
    try:
        given = np.asarray(thresholds, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        given = np.empty(0)
    if given.ndim == 0 and 0 < given < 1:
        z = np.arange(1 - N_BINS // 2, N_BINS // 2) / (N_BINS // 2 - 1)
        given = expit(logit(given) + REACH * np.sign(z) * np.abs(z) ** 1.5)
    edges = np.concatenate([[0.0], given.ravel(), [1.0]])
    if given.shape != (N_BINS - 1,) or not (np.diff(edges) > 0).all():
        raise ValueError(
            "thresholds must be the public share of positive records in (0, 1), or "
            f"{N_BINS - 1} numbers that rise between 0 and 1, because records are counted between them; "
            "write for instance thresholds=0.02."
        )
    return tuple(edges.tolist())


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
    edges : tuple of float
        Of the bins, public.
    """

    classes: Array
    calibrated_scores: bool
    edges: tuple[float, ...] = DEFAULT_EDGES

    shape = (N_BINS, 2)
    what = "scores and labels"

    predictions = staticmethod(probabilities)

    def index(self, scores, y):
        """Return the cell of each record, the label last."""
        return 2 * score_bins(scores, self.edges) + (y == self.classes[1])

    def for_share(self, share):
        """Return cells whose thresholds suit the public share of the second class; None if unknown."""
        if share is None or RARE <= share <= 1 - RARE:
            return self
        return replace(self, edges=edges_of(share))

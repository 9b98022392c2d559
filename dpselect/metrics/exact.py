"""scikit-learn's accuracy, R^2 and D^2, also for predictions that are not in memory.

They are means over records, without any privacy: see :mod:`~dpselect.records.training`.
"""

from functools import partial

import numpy as np
from scipy.special import kl_div
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

from ..rows import align, as_lazy, block_sum, is_lazy, on_labels


def accuracy(predicted, y, sample_weight=None):
    """Return the fraction of correct predictions; see sklearn.metrics.accuracy_score.

    Parameters
    ----------
    predicted, y : array of shape (n,)
    sample_weight : array of shape (n,), default=None

    Returns
    -------
    float
    """
    predicted, y, weights = _aligned(predicted, y, sample_weight)
    if not is_lazy(predicted):
        return accuracy_score(y, predicted, sample_weight=weights)

    def hits(predicted, y, weights):
        return (weights * (predicted == y)).sum(), weights.sum()

    hit, total = block_sum(hits, predicted, y, weights)
    return float(hit / total)


def r_squared(predicted, y, sample_weight=None):
    """Return the coefficient of determination; see sklearn.metrics.r2_score.

    Parameters
    ----------
    predicted, y : array of shape (n,)
    sample_weight : array of shape (n,), default=None

    Returns
    -------
    float
    """
    return _explained(r2_score, lambda y, p: (y - p) ** 2, predicted, y, sample_weight)


def d_squared(predicted, y, sample_weight=None):
    """Return the explained fraction of the Poisson deviance; see sklearn.metrics.d2_tweedie_score.

    Parameters
    ----------
    predicted, y : array of shape (n,)
    sample_weight : array of shape (n,), default=None

    Returns
    -------
    float
    """
    in_memory = partial(d2_tweedie_score, power=1)
    return _explained(in_memory, kl_div, predicted, y, sample_weight)


def _explained(in_memory, error, predicted, y, weights):
    """Return 1 - error / (error of predicting the mean)."""
    predicted, y, weights = _aligned(predicted, y, weights)
    if not is_lazy(predicted):
        return float(in_memory(y, predicted, sample_weight=weights))
    moved, total = block_sum(lambda y, w: ((w * y).sum(), w.sum()), y, weights)
    mean = moved / total

    def errors(predicted, y, weights):
        return (weights * error(y, predicted)).sum(), (weights * error(y, mean)).sum()

    residual, spread = block_sum(errors, predicted, y, weights)
    if spread == 0:  # as in scikit-learn
        return float(residual == 0)
    return float(1 - residual / spread)


def _aligned(predicted, y, weights):
    predicted, y = align(as_lazy(predicted), y)
    weights = align(predicted, weights)[1]
    if not is_lazy(predicted):
        return predicted, y, weights
    y = on_labels(_column, y)
    return predicted, y, on_labels(_ones, y) if weights is None else on_labels(_column, weights)


def _column(y):
    return np.asarray(y).reshape(len(y))


def _ones(y):
    return np.ones(len(y))

"""What every score has in common."""

from abc import ABC, abstractmethod
from functools import partial

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from ..rows import align, as_lazy, block_sum, is_lazy, on_labels
from ..type_aliases import Estimator, MatrixLike
from ..validation import unquoted


class Score(ABC):
    """A scorer that a private search may use, if its estimator certifies it.

    Attributes
    ----------
    stake : float
        What a perfect model gains over one that says nothing; 0 if there is no such number.
    width : float
        Largest difference of two records' contributions, whatever the model; may be ``inf``.
    """

    stake = 0.0
    width = np.inf

    @abstractmethod
    def __call__(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the score of a fitted estimator on records, weighted or not; greater is better."""


def weighted_total(function, sample_weight, X, *aligned):
    """Return what ``function(block, *blocks, weight)`` adds up to, and the number or weight of the rows.

    Without weights each is 1, and None.
    """
    if sample_weight is None:
        (total,) = block_sum(lambda *blocks: (function(*blocks, None),), X, *aligned)
        return total, len(X)
    weight = align(X, sample_weight)[1]
    return block_sum(
        lambda *blocks: (function(*blocks), blocks[-1].sum(dtype=np.float64)), X, *aligned, weight
    )


def weighted_sum(values, weight):
    """Return the sum over the first axis, weighted or not."""
    return values.sum(axis=0) if weight is None else np.tensordot(weight, values, axes=(0, 0))


def predicted_by(estimator, method, X):
    if not hasattr(estimator, method):
        raise TypeError(
            f"{type(estimator).__name__} has no {method}, from which the score is computed; use "
            "another scoring or another estimator."
        )
    predicted = as_lazy(getattr(estimator, method)(X))
    return predicted if is_lazy(predicted) else np.asarray(predicted)


def with_labels(predicted, y, dtype=None):
    predicted, y = align(predicted, y)
    return predicted, on_labels(partial(unquoted, column_or_1d, dtype=dtype, what="y"), y)


def check_shape(predicted, shape):
    # arrays of other shapes would be spread out, and one record would count in many pairs
    if predicted != shape:
        raise ValueError(
            f"The estimator returned predictions of {len(predicted)} dimensions in place of one for "
            "each record, so one record would count more than once; predict an array of shape "
            "(n_samples,)."
        )

"""The base class of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d, get_tags

from ..exceptions import CertificateError
from ..rows import align, as_lazy, block_sum, is_lazy, on_labels
from ..utils.type_aliases import Estimator, MatrixLike
from ..utils.validation import unquoted

# what a message proposes for an estimator of each type
OF_TASK = {
    "classifier": ("brier", "ramp", "accuracy"),
    "regressor": ("clipped_squared_error", "clipped_absolute_error", "r2"),
    "density_estimator": ("integrated_squared_error",),
}


class Score(ABC):
    """A scorer that a private search may use, if its estimator certifies it.

    Attributes
    ----------
    stake : float
        Attainable gain of a perfect model over an uninformative one; 0 if there is no such number.
    width : float
        Largest difference of two records' contributions to the mean that the score is, whatever the
        model; ``inf`` if there is no bound, or no such mean.
    compared_width : float
        Largest less least value of `comparison`.
    task : str or None
        Type of estimators that it scores, in scikit-learn's words; None if it scores any.
    """

    stake = 0.0
    width = np.inf
    task: str | None = None

    @property
    def compared_width(self) -> float:
        """float : Width of the range of `comparison`."""
        return self.width

    @abstractmethod
    def __call__(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the score of a fitted estimator on records, weighted or not; greater is better."""

    def comparison(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        **weight: npt.ArrayLike,
    ) -> float:
        """Return a number that ranks models as the score does on the same records.

        It is the score itself, or what one record moves less.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like of shape (m, p)
        y : array-like of shape (m,), default=None
        **weight : array-like of shape (m,)
            `sample_weight`, if rows are weighted.

        Returns
        -------
        float
        """
        return self(estimator, X, y, **weight)

    def sensitivity(self, n: int) -> float:
        """Return the sensitivity of `comparison` to one of n records, for a fixed model.

        Parameters
        ----------
        n : int

        Returns
        -------
        float
            ``inf`` if there is no bound.
        """
        return float(self.width) / n

    def indistinguishable(self, difference: float) -> str:
        """Return a sentence on scores that cannot be distinguished by comparisons this close.

        Parameters
        ----------
        difference : float

        Returns
        -------
        str
            A sentence.
        """
        return f"Scores that differ by less than about {difference:.2g} cannot be distinguished."


class AtLeastScore(Score):
    """A score with a noisy test whether it is at least a target.

    :class:`~dpselect.AccuracyFirstSearchCV` asks. One record may move the score itself by as much as it
    likes.

    Attributes
    ----------
    unit : float
        About how much `shortfall` falls if the score rises by 1: a guess from public numbers, on which
        no promise depends.
    assumed : str
        The guess in words, if there is one.
    """

    unit = 1.0
    assumed = ""

    @abstractmethod
    def shortfall(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        target: float,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return a number that is positive if and only if the score is less than the target.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like of shape (m, p)
        y : array-like of shape (m,)
        target : float
            In (0, 1).
        sample_weight : array-like of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        float
        """

    @abstractmethod
    def shortfall_sensitivity(self, n: int, target: float) -> float:
        """Return the sensitivity of `shortfall` to one of n records, for a fixed model.

        Parameters
        ----------
        n : int
        target : float

        Returns
        -------
        float
        """


def check_task(score, model, name="scoring"):
    """Refuse a score of other estimators than `model` is, before anything is spent.

    One that says nothing of its type may be scored by all.
    """
    kind = get_tags(model).estimator_type if hasattr(model, "__sklearn_tags__") else None
    if kind is None or score.task in (None, kind):
        return
    others = OF_TASK.get(kind, ())
    raise CertificateError(
        f"{name}: {type(score).__name__} cannot score a {type(model).__name__}, because it is a score "
        f"of {score.task.replace('_', ' ')}s and would compare nothing; use another {name}"
        f"{', such as ' if others else ''}{', '.join(map(repr, others))}."
    )


def weighted_total(function, sample_weight, X, *aligned):
    """Return the sum of ``function(block, *blocks, weight)``, and the number or weight of the rows.

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
    # arrays of other shapes would broadcast, and one record would count in many pairs
    if predicted != shape:
        raise ValueError(
            f"The estimator returned predictions of {len(predicted)} dimensions in place of one for "
            "each record, so one record would count more than once; predict an array of shape "
            "(n_samples,)."
        )

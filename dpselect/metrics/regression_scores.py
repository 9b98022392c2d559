"""Scores of regressions: minus the mean of bounded errors, or of bounded deviances."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import kl_div

from ..utils.type_aliases import Estimator, FloatArray, FloatOrArray, MatrixLike
from ..utils.validation import check_number
from .score import Score, check_shape, predicted_by, weighted_sum, weighted_total, with_labels

# relative to the target's bound: smaller targets count as 0
LEAST_SHARE = 1e-300


class TargetScore(Score):
    """A score -(1/m) sum_i g(t_i, p_i) of targets and predictions."""

    task = "regressor"

    @abstractmethod
    def penalty(self, y: FloatOrArray, predicted: FloatOrArray) -> FloatOrArray:
        """Return g(y, predicted), elementwise, with the largest penalty for NaN.

        Parameters
        ----------
        y, predicted : float or ndarray
            Of shapes that go together.

        Returns
        -------
        float or ndarray
        """

    def __call__(  # type: ignore[override]  # other scores need no y
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Score a fitted regressor.

        Parameters
        ----------
        estimator : regressor
        X : array-like of shape (m, p)
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        float
            Minus the mean penalty.
        """
        predicted, y = with_labels(predicted_by(estimator, "predict", X), y, np.float64)
        check_shape(predicted.shape, y.shape)
        total, n = weighted_total(
            lambda predicted, y, weight: self.total(y, predicted, weight), sample_weight, predicted, y
        )
        return -float(total / n)

    def total(
        self,
        y: FloatArray,
        predicted: FloatArray,
        sample_weight: FloatArray | None = None,
    ) -> FloatArray:
        """Return the sums of the penalties over the rows.

        Parameters
        ----------
        y, predicted : ndarray of shape (m, ...)
            Of shapes that go together.
        sample_weight : ndarray of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        ndarray of shape (...)
        """
        return weighted_sum(self.penalty(y, predicted), sample_weight)


class ClippedErrorScore(TargetScore):
    """A score whose penalty grows with the size of the residual, up to `bound`."""

    bound: float
    what: ClassVar[str]

    def __post_init__(self):
        bound = check_number(
            "bound",
            self.bound,
            why="it limits what one record can add to the score",
            instead=f"write the largest {self.what} error that should count, such as 1.0",
        )
        object.__setattr__(self, "bound", bound)

    @property
    def stake(self) -> float:  # type: ignore[override]  # a read-only property
        return self.bound

    @property
    def width(self) -> float:  # type: ignore[override]  # a read-only property
        return self.bound

    def span(self, bound: npt.ArrayLike) -> FloatOrArray:
        """Return the largest difference of two penalties: `self.bound`, as targets are unbounded.

        Parameters
        ----------
        bound : float or ndarray
            On the size of predictions.

        Returns
        -------
        float or ndarray
        """
        return np.full(np.shape(bound), self.bound)


@dataclass(frozen=True)
class ClippedSquaredErrorScore(ClippedErrorScore):
    """The mean of min(residual^2, bound), for regression.

    In the prediction it has Lipschitz constant 2 sqrt(bound), and it spans `bound`.

    Parameters
    ----------
    bound : float, default=1.0
        Largest squared error that counts, in squared units of the target; greater than 0.

    Raises
    ------
    ValueError
        If `bound` is not greater than 0 and finite.

    Examples
    --------
    >>> from dpselect.metrics import ClippedSquaredErrorScore
    >>> ClippedSquaredErrorScore(bound=4.0).lipschitz
    4.0
    """

    bound: float = 1.0
    what: ClassVar[str] = "squared"

    @property
    def lipschitz(self) -> float:
        """float : Lipschitz constant of the penalty in the prediction, 2 sqrt(bound)."""
        return 2 * np.sqrt(self.bound).item()

    def penalty(self, y: FloatOrArray, predicted: FloatOrArray) -> FloatOrArray:
        with np.errstate(over="ignore", invalid="ignore"):
            residual = y - predicted
            return np.fmin(residual * residual, self.bound)


@dataclass(frozen=True)
class ClippedAbsoluteErrorScore(ClippedErrorScore):
    """The mean of min(abs(residual), bound), for regression with unbounded targets.

    In the prediction it has Lipschitz constant 1, and it spans `bound`: half as much, for its span,
    as the squared error.

    Parameters
    ----------
    bound : float, default=1.0
        Largest absolute error that counts, in units of the target; greater than 0.

    Raises
    ------
    ValueError
        If `bound` is not greater than 0 and finite.

    Examples
    --------
    >>> from dpselect.metrics import ClippedAbsoluteErrorScore
    >>> ClippedAbsoluteErrorScore(bound=4.0).penalty(10.0, 9.0).item()
    1.0
    """

    bound: float = 1.0
    what: ClassVar[str] = "absolute"
    lipschitz: ClassVar[float] = 1.0

    def penalty(self, y: FloatOrArray, predicted: FloatOrArray) -> FloatOrArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.fmin(np.abs(y - predicted), self.bound)


@dataclass(frozen=True)
class PoissonDevianceScore(TargetScore):
    """The mean of half the Poisson deviance, up to a bound, for counts.

    The penalty is min(B, r - t + t log(t / r)) for the target t, clipped to [0, B], and the predicted
    rate r, at most B. In the logarithm of the rate it has Lipschitz constant B.

    Parameters
    ----------
    target_bound : float
        B, to which larger counts are clipped; greater than 0.

    Raises
    ------
    ValueError
        If `target_bound` is not greater than 0 and finite.

    Examples
    --------
    >>> from dpselect.metrics import PoissonDevianceScore
    >>> PoissonDevianceScore(target_bound=10.0).lipschitz
    10.0
    """

    target_bound: float
    # of half the deviance
    times: ClassVar[float] = 1.0

    def __post_init__(self):
        bound = check_number(
            "target_bound",
            self.target_bound,
            why="it limits what one record can add to the score",
            instead="write a count that few records exceed, such as 10.0",
        )
        object.__setattr__(self, "target_bound", bound)

    @property
    def stake(self) -> float:  # type: ignore[override]  # a read-only property
        return self.times * self.target_bound

    @property
    def width(self) -> float:  # type: ignore[override]  # a read-only property
        return self.times * self.target_bound

    @property
    def lipschitz(self) -> float:
        """float : Largest derivative of the penalty in the logarithm of the rate, B or 2 B."""
        return self.times * self.target_bound

    def span(self, bound: npt.ArrayLike) -> FloatOrArray:
        """Return the largest difference of two penalties where the rates' logarithms are bounded.

        Parameters
        ----------
        bound : float or ndarray
            U, greater than or equal to 0: the rates lie between exp(-U) and exp(U).

        Returns
        -------
        float or ndarray
        """
        with np.errstate(over="ignore", under="ignore"):
            low, high = np.exp(-np.asarray(bound)), np.exp(bound)
        largest, zero = np.float64(self.target_bound), np.float64(0.0)
        return np.maximum(self.penalty(largest, low), self.penalty(zero, high))

    def penalty(self, y: FloatOrArray, predicted: FloatOrArray) -> FloatOrArray:
        y, rate = np.clip(y, 0.0, self.target_bound), np.clip(predicted, 0.0, self.target_bound)
        # for smaller targets, target / rate may underflow to 0, whose logarithm is -inf
        y = np.where(y < LEAST_SHARE * self.target_bound, 0.0, y)
        return self.times * np.fmin(kl_div(y, rate), self.target_bound)


@dataclass(frozen=True)
class MeanPoissonDevianceScore(PoissonDevianceScore):
    """The mean Poisson deviance, as scikit-learn counts it: twice what PoissonDevianceScore does.

    Parameters
    ----------
    target_bound : float
        B, to which larger counts are clipped; greater than 0.

    Raises
    ------
    ValueError
        If `target_bound` is not greater than 0 and finite.

    Examples
    --------
    >>> from dpselect.metrics import MeanPoissonDevianceScore
    >>> MeanPoissonDevianceScore(target_bound=10.0).width
    20.0
    """

    times: ClassVar[float] = 2.0

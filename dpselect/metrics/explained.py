"""Regression scores that are functions of the mean squared error in a public range."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..utils.type_aliases import Estimator, MatrixLike
from ..utils.validation import check_interval, check_number
from .score import (
    AtLeastScore,
    Score,
    check_shape,
    predicted_by,
    weighted_sum,
    weighted_total,
    with_labels,
)


def checked_range(target_range: tuple[float, float]) -> tuple[float, float]:
    """Return a public range of targets as two floats, or refuse it."""
    low, high = check_interval(
        "target_range",
        target_range,
        why="a target without bounds moves a mean of squares without limit",
        instead="write target_range=(low, high), between which nearly all targets lie by knowledge "
        "of the field",
    )
    return float(low), float(high)


@dataclass(frozen=True)
class RangeScore(Score):
    """A function of the mean squared error of targets in a public range, and of their variance."""

    task = "regressor"

    target_range: tuple[float, float]

    def __post_init__(self):
        object.__setattr__(self, "target_range", checked_range(self.target_range))

    @property
    def bound(self) -> float:
        """float : The largest squared error, (high - low)^2."""
        low, high = self.target_range
        return (high - low) ** 2

    @property
    def stake(self) -> float:  # type: ignore[override]  # a read-only property
        return self.bound

    @property
    def compared_width(self) -> float:
        return self.bound

    def sensitivity(self, n: int) -> float:
        return self.bound / n

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
        """
        error, variance = self._moments(estimator, X, y, sample_weight)
        return self._value(error, variance)

    def comparison(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        **weight: npt.ArrayLike,
    ) -> float:
        return -self._moments(estimator, X, y, weight.get("sample_weight"))[0]

    @abstractmethod
    def _value(self, error, variance):
        """Return the score of a mean squared error and a variance."""

    def _moments(self, estimator, X, y, sample_weight):
        """Return the mean squared error, and the variance of the targets."""
        predicted, y = with_labels(predicted_by(estimator, "predict", X), y, np.float64)
        check_shape(predicted.shape, y.shape)
        low, high = self.target_range

        # centre the targets, to avoid cancellation in a small variance
        def powers(predicted, y, weight):
            y = np.clip(np.where(np.isnan(y), low, y), low, high)
            # NaN has the largest error
            squared = np.fmin((y - np.clip(predicted, low, high)) ** 2, self.bound)
            y = y - (low + high) / 2
            return weighted_sum(np.stack([squared, y, y * y], axis=1), weight)

        total, n = weighted_total(powers, sample_weight, predicted, y)
        error, mean, square = total / n
        return float(error), max(float(square - mean**2), 0.0)


@dataclass(frozen=True)
class R2Score(RangeScore, AtLeastScore):
    """The coefficient of determination, 1 - mean squared error / variance of the targets.

    Targets and predictions are clipped to a public range. On the same records the variance is the same
    for all candidates, so they are compared by minus the mean squared error, which one of m records
    moves by at most (high - low)^2 / m.

    Parameters
    ----------
    target_range : (float, float)
        Public numbers between which nearly all targets lie.
    target_std : float, default=None
        A guess of their standard deviation, for which an accuracy-first search makes its tests; no
        promise depends on it. None is an eighth of the range.

    Raises
    ------
    ValueError
        If the range is not one of two increasing finite numbers, or `target_std` is not greater than 0.

    Examples
    --------
    >>> from dpselect.metrics import R2Score
    >>> R2Score(target_range=(-1, 1)).sensitivity(1000)
    0.004
    """

    target_std: float | None = None

    def __post_init__(self):
        super().__post_init__()
        std = self.bound**0.5 / 8 if self.target_std is None else self.target_std
        std = check_number(
            "target_std",
            std,
            why="tests of an accuracy-first search are made for it",
            instead="write a guess of the targets' standard deviation, or None",
        )
        object.__setattr__(self, "target_std", std)

    @property
    def unit(self) -> float:  # type: ignore[override]  # a read-only property
        return float(self.target_std or 0.0) ** 2

    @property
    def assumed(self) -> str:  # type: ignore[override]  # a read-only property
        return f" if targets have a standard deviation of {self.target_std:.4g}"

    def shortfall(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        target: float,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        error, variance = self._moments(estimator, X, y, sample_weight)
        return error - (1 - target) * variance

    def shortfall_sensitivity(self, n: int, target: float) -> float:
        return self.bound * (2 - target) / n

    def _value(self, error, variance):
        if variance == 0:  # as in scikit-learn
            return float(error == 0)
        return float(1 - error / variance)

    def indistinguishable(self, difference: float) -> str:
        return (
            f"Scores that differ by less than about {difference:.2g} / v cannot be distinguished, v "
            "being the variance of the targets."
        )


@dataclass(frozen=True)
class RootMeanSquaredErrorScore(RangeScore):
    """Minus the root of the mean squared error of targets in a public range.

    Candidates are compared by minus the mean squared error itself, which one of m records moves by at
    most (high - low)^2 / m.

    Parameters
    ----------
    target_range : (float, float)
        Public numbers between which nearly all targets lie.

    Raises
    ------
    ValueError
        If the range is not one of two increasing finite numbers.

    Examples
    --------
    >>> from dpselect.metrics import RootMeanSquaredErrorScore
    >>> RootMeanSquaredErrorScore(target_range=(-1, 1)).sensitivity(1000)
    0.004
    """

    def _value(self, error, variance):
        return -float(np.sqrt(error))

    def indistinguishable(self, difference: float) -> str:
        return (
            f"Mean squared errors that differ by less than about {difference:.2g} cannot be "
            "distinguished."
        )

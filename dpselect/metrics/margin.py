"""Scores of margins u = y f(x): minus the mean of a decreasing function g."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..rows import block_map
from ..utils.type_aliases import Estimator, FloatArray, FloatOrArray, MatrixLike
from ..utils.validation import check_number
from .score import (
    Score,
    check_shape,
    predicted_by,
    weighted_sum,
    weighted_total,
    with_labels,
)


class MarginScore(Score):
    """A score -(1/m) sum_i g(u_i) of margins u_i.

    Attributes
    ----------
    lipschitz : float
        L, the Lipschitz constant of g.
    """

    task = "classifier"

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """float : L, the Lipschitz constant of g."""

    @property
    def stake(self) -> float:  # type: ignore[override]  # a read-only property
        """float : g(0), the largest gain of a perfect model over an uninformative one."""
        return float(self.penalty(0.0))

    @abstractmethod
    def penalty(self, u: npt.ArrayLike) -> FloatOrArray:
        """Return g(u), elementwise.

        Parameters
        ----------
        u : float or ndarray
            Margins.

        Returns
        -------
        float or ndarray
        """

    def span(self, bound: npt.ArrayLike) -> FloatOrArray:
        """Return the largest difference of g between two margins of size at most `bound`.

        Parameters
        ----------
        bound : float or ndarray
            U, greater than or equal to 0.

        Returns
        -------
        float or ndarray
        """
        # g is decreasing for every score of this module
        bound = np.asarray(bound, dtype=np.float64)
        return self.penalty(-bound) - self.penalty(bound)

    def __call__(  # type: ignore[override]  # other scores need no y
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Score a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            With `decision_function` and `classes_`.
        X : array-like of shape (m, p)
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        float
            Minus the mean penalty, over the rows and the one-vs-rest problems.
        """
        u = margins(estimator, X, y)
        total, n = weighted_total(self.total, sample_weight, u)
        return -float(total.mean() / n)

    def total(self, u: FloatArray, sample_weight: FloatArray | None = None) -> FloatArray:
        """Return the sums of the penalties over the rows.

        Parameters
        ----------
        u : ndarray of shape (m, ...)
            Margins.
        sample_weight : ndarray of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        ndarray of shape (...)
        """
        # fmin bounds the penalty of each record, also for NaN
        return weighted_sum(self.penalty(np.where(np.isnan(u), -np.inf, u)), sample_weight)


def margins(estimator: Estimator, X: MatrixLike, y: npt.ArrayLike) -> FloatArray:
    """Return the margins y f(x) of all rows in all one-vs-rest problems.

    Parameters
    ----------
    estimator : classifier
        With `decision_function` and `classes_`.
    X : array-like of shape (m, p)
    y : array-like of shape (m,)

    Returns
    -------
    ndarray of shape (m, k)
        k is 1 for two classes and the number of classes otherwise.

    Examples
    --------
    >>> from dpselect import DPLogisticRegression
    >>> from dpselect.metrics import margins
    >>> X, y = [[-1.0], [1.0]] * 50, [0, 1] * 50
    >>> model = DPLogisticRegression(epsilon=float("inf"), classes=[0, 1]).fit(X, y)
    >>> bool((margins(model, [[-1.0], [1.0]], [0, 1]) > 0).all())
    True
    """
    decision, y = with_labels(predicted_by(estimator, "decision_function", X), y)
    classes = np.asarray(estimator.classes_)
    positive = classes[1:] if len(classes) == 2 else classes
    shape = decision.shape if decision.ndim > 1 else (*decision.shape, 1)
    check_shape(shape, (len(y), len(positive)))

    def signed(decision, y):
        decision = decision.reshape(len(y), -1)
        return np.where(y[:, None] == positive, decision, -decision)

    return block_map(signed, decision, y)


@dataclass(frozen=True)
class RampScore(MarginScore):
    """The ramp: 1 at margins up to `low`, 0 from `high` on, linear between.

    The score of Chaudhuri and Vinterbo 2013, section 4.1, with low = 0 and high = 1. It is close to the
    fraction of errors, but only sees margins between 0 and 1. Where the noise of a choice shrinks with
    the derivative (``strategy="stability"``), RampScore(-4, 4) distinguished classifiers better; the
    page "Selection by stability" has the numbers.

    Parameters
    ----------
    low, high : float
        Margins, low < high.

    Raises
    ------
    ValueError
        If `low` is not less than `high`.

    Examples
    --------
    >>> from dpselect.metrics import RampScore
    >>> float(RampScore().penalty(0.25))
    0.75
    >>> RampScore(low=-1.0).lipschitz
    0.5
    """

    low: float = 0.0
    high: float = 1.0
    width = 1.0

    def __post_init__(self):
        for name, value in (("low", self.low), ("high", self.high)):
            number = check_number(
                name,
                value,
                low=-np.inf,
                why="the ramp runs between two margins",
                instead="write a number, such as 0.0",
            )
            object.__setattr__(self, name, number)
        if not 0 < self.high - self.low < np.inf or 1 / (self.high - self.low) == np.inf:
            raise ValueError(
                f"low={self.low!r} must be less than high={self.high!r}, or the ramp jumps and "
                "no Lipschitz constant bounds it."
            )

    @property
    def lipschitz(self) -> float:
        return 1.0 / (self.high - self.low)

    def penalty(self, u: npt.ArrayLike) -> FloatOrArray:
        with np.errstate(over="ignore"):
            return np.clip((self.high - np.asarray(u)) / (self.high - self.low), 0.0, 1.0)


@dataclass(frozen=True)
class BrierScore(MarginScore):
    """The squared error of the probability of the true class, g(u) = sigma(-u)^2.

    Its derivative is at most 8/27 and its range 1, which makes it the least noisy of the
    scores here and sensitive to calibration as well as to errors.

    Examples
    --------
    >>> from dpselect.metrics import BrierScore
    >>> float(BrierScore().penalty(0.0))
    0.25
    """

    width = 1.0

    @property
    def lipschitz(self) -> float:
        return 8 / 27

    def penalty(self, u: npt.ArrayLike) -> FloatOrArray:
        return expit(-np.asarray(u, dtype=np.float64)) ** 2

    def span(self, bound: npt.ArrayLike) -> FloatOrArray:
        return np.tanh(np.asarray(bound, dtype=np.float64) / 2)


@dataclass(frozen=True)
class LogisticScore(MarginScore):
    """The logistic loss, g(u) = log(1 + exp(-u)): the negative log-likelihood.

    Examples
    --------
    >>> from dpselect.metrics import LogisticScore
    >>> float(LogisticScore().span(3.0))
    3.0
    """

    @property
    def lipschitz(self) -> float:
        return 1.0

    def penalty(self, u: npt.ArrayLike) -> FloatOrArray:
        u = np.asarray(u, dtype=np.float64)
        return np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)

    def span(self, bound: npt.ArrayLike) -> FloatOrArray:
        return np.asarray(bound, dtype=np.float64)[()]


@dataclass(frozen=True)
class HingeScore(MarginScore):
    """The hinge loss, g(u) = max(0, 1 - u).

    Over margins of at most U it spans min(2 U, 1 + U), not U: g(0) = 1.

    Examples
    --------
    >>> from dpselect.metrics import HingeScore
    >>> float(HingeScore().span(0.5))
    1.0
    """

    @property
    def lipschitz(self) -> float:
        return 1.0

    def penalty(self, u: npt.ArrayLike) -> FloatOrArray:
        return np.maximum(0.0, 1.0 - np.asarray(u, dtype=np.float64))

"""Scores that carry what a certificate needs: a Lipschitz constant and a range.

A private search may only use a score whose value changes by a known amount when one
record changes. The scores of margins are means over records of a function g of the margin
u = y f(x), where f is the decision function and y is -1 or 1; with more than two classes
they are the mean over the one-vs-rest problems. All are scorers in scikit-learn's sense,
``score(estimator, X, y)``; greater is better.
"""

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.utils import column_or_1d

from .checks import check_number
from .exceptions import CertificateError
from .rows import align, as_lazy, block_map, block_sum, is_lazy, on_labels
from .type_aliases import Estimator, FloatArray, FloatOrArray, MatrixLike
from .unquoted import unquoted


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
    ) -> float:
        """Return the score of a fitted estimator on records; greater is better."""


class MarginScore(Score):
    """A score -(1/m) sum_i g(u_i) of margins u_i.

    Attributes
    ----------
    lipschitz : float
        L, the largest slope of g.
    """

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """float : L, the largest slope of g."""

    @property
    def stake(self) -> float:  # type: ignore[override]  # is read only
        """float : g(0), the most that a perfect model can gain over one that says nothing."""
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
        """Return the largest difference of g between two margins of at most `bound`.

        Parameters
        ----------
        bound : float or ndarray
            U, greater than or equal to 0.

        Returns
        -------
        float or ndarray
        """
        # g falls in u, for every score of this module
        bound = np.asarray(bound, dtype=np.float64)
        return self.penalty(-bound) - self.penalty(bound)

    def __call__(  # type: ignore[override]  # other scores need no y
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
    ) -> float:
        """Score a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            With `decision_function` and `classes_`.
        X : array-like of shape (m, p)
        y : array-like of shape (m,)

        Returns
        -------
        float
            Minus the mean penalty, over the rows and the one-vs-rest problems.
        """
        u = margins(estimator, X, y)
        (total,) = block_sum(lambda u: (self.total(u),), u)
        return -float(total.mean() / len(u))

    def total(self, u: FloatArray) -> FloatArray:
        """Return the sums of the penalties over the rows.

        Parameters
        ----------
        u : ndarray of shape (m, ...)
            Margins.

        Returns
        -------
        ndarray of shape (...)
        """
        # no record, not even one whose margin is not a number, adds more than the worst
        return self.penalty(np.where(np.isnan(u), -np.inf, u)).sum(axis=0)


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
    decision, y = _with_labels(_predicted(estimator, "decision_function", X), y)
    classes = np.asarray(estimator.classes_)
    positive = classes[1:] if len(classes) == 2 else classes
    shape = decision.shape if decision.ndim > 1 else (*decision.shape, 1)
    _check_shape(shape, (len(y), len(positive)))

    def signed(decision, y):
        decision = decision.reshape(len(y), -1)
        return np.where(y[:, None] == positive, decision, -decision)

    return block_map(signed, decision, y)


def _predicted(estimator, method, X):
    if not hasattr(estimator, method):
        raise TypeError(
            f"{type(estimator).__name__} has no {method}, from which the score is computed; use "
            "another scoring or another estimator."
        )
    predicted = as_lazy(getattr(estimator, method)(X))
    return predicted if is_lazy(predicted) else np.asarray(predicted)


def _with_labels(predicted, y, dtype=None):
    predicted, y = align(predicted, y)
    return predicted, on_labels(partial(unquoted, column_or_1d, dtype=dtype, what="y"), y)


def _check_shape(predicted, shape):
    # arrays of other shapes would be spread out, and one record would count in many pairs
    if predicted != shape:
        raise ValueError(
            f"The estimator returned predictions of {len(predicted)} dimensions in place of one for "
            "each record, so one record would count more than once; predict an array of shape "
            "(n_samples,)."
        )


@dataclass(frozen=True)
class RampScore(MarginScore):
    """The ramp: 1 at margins up to `low`, 0 from `high` on, straight between.

    The score of Chaudhuri and Vinterbo 2013, section 4.1, with low = 0 and high = 1. It is
    close to the share of errors, but only sees margins between 0 and 1. Where the noise of a
    choice shrinks with the slope (``strategy="stability"``), RampScore(-4, 4) told classifiers
    apart better; the page "Selection by stability" has the numbers.

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
                name, value, low=-np.inf,
                why="the ramp runs between two margins", instead="write a number, such as 0.0",
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

    Its slope is at most 8/27 and its range 1, which makes it the least noisy of the
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


@dataclass(frozen=True)
class ClippedSquaredErrorScore(Score):
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

    def __post_init__(self):
        bound = check_number(
            "bound", self.bound, why="it limits what one record can add to the score",
            instead="write the largest squared error that should count, such as 1.0",
        )
        object.__setattr__(self, "bound", bound)

    @property
    def stake(self) -> float:  # type: ignore[override]  # is read only
        return self.bound

    @property
    def width(self) -> float:  # type: ignore[override]  # is read only
        return self.bound

    @property
    def lipschitz(self) -> float:
        """float : Largest slope of the penalty in the prediction, 2 sqrt(bound)."""
        return 2 * np.sqrt(self.bound).item()

    def __call__(  # type: ignore[override]  # other scores need no y
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
    ) -> float:
        """Score a fitted regressor.

        Parameters
        ----------
        estimator : regressor
        X : array-like of shape (m, p)
        y : array-like of shape (m,)

        Returns
        -------
        float
            Minus the mean clipped squared error.
        """
        predicted, y = _with_labels(_predicted(estimator, "predict", X), y, np.float64)
        _check_shape(predicted.shape, y.shape)
        (total,) = block_sum(lambda predicted, y: (self.total(y, predicted),), predicted, y)
        return -float(total / len(y))

    def total(self, y: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return the sums of the clipped squared errors over the rows.

        Parameters
        ----------
        y, predicted : ndarray of shape (m, ...)
            Of shapes that go together.

        Returns
        -------
        ndarray of shape (...)
        """
        # fmin: no target, not even one that is not a number, adds more than the bound
        with np.errstate(over="ignore", invalid="ignore"):
            residual = y - predicted
            return np.fmin(residual * residual, self.bound).sum(axis=0)


@dataclass(frozen=True)
class IntegratedSquaredErrorScore(Score):
    """Minus the integrated squared error of a density, up to a constant of the data.

    q = -int f^2 + (2 / m) sum_i f(z_i), which is greater for a density f that is closer in
    L2 to that of the records z_i. Chaudhuri and Vinterbo 2013, equation (6).

    Examples
    --------
    >>> from dpselect.metrics import IntegratedSquaredErrorScore
    >>> IntegratedSquaredErrorScore()
    IntegratedSquaredErrorScore()
    """

    def __call__(self, estimator: Estimator, X: MatrixLike, y: Any = None) -> float:
        """Score a fitted density.

        Parameters
        ----------
        estimator : density estimator
            With `score_samples` and `squared_integral`.
        X : array-like of shape (m, p)
        y : None
            Ignored.

        Returns
        -------
        float
        """
        density = block_map(np.exp, _predicted(estimator, "score_samples", X))
        return float(2 * density.mean() - estimator.squared_integral())


@dataclass(frozen=True)
class AccuracyScore(Score):
    """The share of labels that are predicted right.

    It jumps when a margin crosses 0, so no certificate of stability exists for it; strategies
    that pay for each model, and need a bounded score only, may use it. A sum of Brier losses
    tells models apart with less noise.

    Examples
    --------
    >>> from dpselect.metrics import AccuracyScore
    >>> AccuracyScore().width
    1.0
    """

    stake = 0.5
    width = 1.0

    def __call__(  # type: ignore[override]  # other scores need no y
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
    ) -> float:
        """Score a fitted classifier.

        Parameters
        ----------
        estimator : classifier
        X : array-like of shape (m, p)
        y : array-like of shape (m,)

        Returns
        -------
        float
        """
        predicted, y = _with_labels(_predicted(estimator, "predict", X), y)
        _check_shape(predicted.shape, y.shape)
        return float(block_map(operator.eq, predicted, y).mean())


SCORES = {
    "brier": BrierScore(),
    "ramp": RampScore(),
    "logistic": LogisticScore(),
    "hinge": HingeScore(),
    "clipped_squared_error": ClippedSquaredErrorScore(),
    "accuracy": AccuracyScore(),
    "integrated_squared_error": IntegratedSquaredErrorScore(),
}


def get_score(scoring: str | Score, name: str = "scoring", others: tuple[str, ...] = ()) -> Score:
    """Return the score for `scoring`, or refuse one that no certificate covers.

    Parameters
    ----------
    scoring : str or Score
        "brier", "ramp", "logistic", "hinge", "clipped_squared_error" (up to 1), "accuracy",
        "integrated_squared_error", or a score of this module.
    name : str
        Of the parameter, for the message.
    others : tuple of str
        What else the parameter may be, for the message.

    Returns
    -------
    Score

    Raises
    ------
    CertificateError
        For every other score. AUC jumps when a margin crosses another one, so one record can
        change it by more than any noise hides.

    Examples
    --------
    >>> from dpselect.metrics import get_score
    >>> get_score("brier")
    BrierScore()
    """
    if isinstance(scoring, Score):
        return scoring
    if isinstance(scoring, str) and scoring in SCORES:
        return SCORES[scoring]
    shown = repr(scoring) if isinstance(scoring, str) else f"a {type(scoring).__name__}"
    raise CertificateError(
        f"{name}={shown} has no Lipschitz constant and range, so no noise is known to hide one "
        f"record's effect on it; use one of {', '.join(map(repr, (*others, *SCORES)))} "
        '("ramp" is closest to accuracy, "brier" to AUC and log-likelihood).'
    )

"""Scores of regressions, densities and labels, and the table of all scores by name."""

import operator
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import kl_div

from ..exceptions import CertificateError
from ..rows import block_map
from ..utils.type_aliases import Estimator, FloatArray, FloatOrArray, MatrixLike
from ..utils.validation import check_number
from .explained import R2Score, RootMeanSquaredErrorScore, checked_range
from .margin import BrierScore, HingeScore, LogisticScore, RampScore
from .probability import LogLossScore
from .ranking import BalancedAccuracyScore, F1Score, RocAucScore
from .score import (
    AtLeastScore,
    Score,
    check_shape,
    predicted_by,
    weighted_sum,
    weighted_total,
    with_labels,
)

# relative to the target's bound: smaller targets count as 0
LEAST_SHARE = 1e-300


class TargetScore(Score):
    """A score -(1/m) sum_i g(t_i, p_i) of targets and predictions."""

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
        return self.target_bound

    @property
    def width(self) -> float:  # type: ignore[override]  # a read-only property
        return self.target_bound

    @property
    def lipschitz(self) -> float:
        """float : Largest derivative of the penalty in the logarithm of the rate, B."""
        return self.target_bound

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
        return np.fmin(kl_div(y, rate), self.target_bound)


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

    def __call__(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Score a fitted density.

        Parameters
        ----------
        estimator : density estimator
            With `score_samples` and `squared_integral`.
        X : array-like of shape (m, p)
        y : None
            Ignored.
        sample_weight : array-like of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        float
        """
        density = block_map(np.exp, predicted_by(estimator, "score_samples", X))
        mean = density.mean()
        if sample_weight is not None:
            total, n = weighted_total(weighted_sum, sample_weight, density)
            mean = total / n
        return float(2 * mean - estimator.squared_integral())


@dataclass(frozen=True)
class AccuracyScore(AtLeastScore):
    """The fraction of correct predictions.

    It jumps when a margin crosses 0, so no certificate of stability exists for it; strategies that pay
    for each model, and need a bounded score only, may use it. A sum of Brier losses distinguishes models
    with less noise.

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
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Score a fitted classifier.

        Parameters
        ----------
        estimator : classifier
        X : array-like of shape (m, p)
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        float
        """
        predicted, y = with_labels(predicted_by(estimator, "predict", X), y)
        check_shape(predicted.shape, y.shape)
        hits = block_map(operator.eq, predicted, y)
        if sample_weight is None:
            return float(hits.mean())
        total, n = weighted_total(weighted_sum, sample_weight, hits)
        return float(total / n)

    def shortfall(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        target: float,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        return target - self(estimator, X, y, sample_weight)

    def shortfall_sensitivity(self, n: int, target: float) -> float:
        return 1 / n


SCORES = {
    "brier": BrierScore(),
    "ramp": RampScore(),
    "logistic": LogisticScore(),
    "hinge": HingeScore(),
    "clipped_squared_error": ClippedSquaredErrorScore(),
    "clipped_absolute_error": ClippedAbsoluteErrorScore(),
    "accuracy": AccuracyScore(),
    "balanced_accuracy": BalancedAccuracyScore(),
    "f1": F1Score(),
    "neg_log_loss": LogLossScore(),
    "roc_auc": RocAucScore(),
    "integrated_squared_error": IntegratedSquaredErrorScore(),
}
# scores that need the public range of a model's targets
OF_RANGE: dict[str, Callable[[tuple[float, float]], Score]] = {
    "neg_mean_absolute_error": lambda ends: ClippedAbsoluteErrorScore(ends[1] - ends[0]),
    "neg_mean_squared_error": lambda ends: ClippedSquaredErrorScore((ends[1] - ends[0]) ** 2),
    "neg_root_mean_squared_error": RootMeanSquaredErrorScore,
    "r2": R2Score,
}


def get_score(
    scoring: str | Score,
    name: str = "scoring",
    others: tuple[str, ...] = (),
    model: Any = None,
) -> Score:
    """Return the score for `scoring`, or refuse one without a proof.

    Parameters
    ----------
    scoring : str or Score
        "brier", "ramp", "logistic", "hinge", "clipped_squared_error" and "clipped_absolute_error" (up
        to 1), "accuracy", "integrated_squared_error", scikit-learn's "balanced_accuracy", "f1",
        "neg_log_loss" and "roc_auc", or, with a `model`, "r2", "neg_mean_absolute_error",
        "neg_mean_squared_error" and "neg_root_mean_squared_error"; or a score of dpselect.metrics.
    name : str
        Of the parameter, for the message.
    others : tuple of str
        What else the parameter may be, for the message.
    model : estimator, default=None
        Its `target_range` (or 0 and its `target_bound`) is that of the errors of a regression.

    Returns
    -------
    Score

    Raises
    ------
    CertificateError
        For every other score, and for errors of a model that has no public range of targets.

    Examples
    --------
    >>> from dpselect import DPRidge
    >>> from dpselect.metrics import get_score
    >>> get_score("brier")
    BrierScore()
    >>> get_score("r2", model=DPRidge(target_range=(-1, 1)))
    R2Score(target_range=(-1.0, 1.0), target_std=0.25)
    """
    if isinstance(scoring, Score):
        return scoring
    if isinstance(scoring, str) and scoring in SCORES:
        return SCORES[scoring]
    if isinstance(scoring, str) and scoring in OF_RANGE:
        return _score_of_range(scoring, name, model)
    shown = repr(scoring) if isinstance(scoring, str) else f"a {type(scoring).__name__}"
    raise CertificateError(
        f"{name}={shown} has no Lipschitz constant and range, so no noise is known to hide one "
        f"record's effect on it; use one of {', '.join(map(repr, (*others, *SCORES, *OF_RANGE)))} "
        '("ramp" is closest to accuracy, "brier" to AUC and log-likelihood).'
    )


def target_range(model: Any) -> tuple[float, float] | None:
    """Return the public range of a regression's targets, or None."""
    bound = getattr(model, "target_bound", None)
    return getattr(model, "target_range", None) if bound is None else (0.0, bound)


def _score_of_range(scoring, name, model):
    ends = target_range(model)
    if ends is None:
        raise CertificateError(
            f"{name}={scoring!r} needs a public range of targets, or one record moves it without limit, "
            f"and {type(model).__name__} has no target_range or target_bound; give it one, or write a "
            "score with a range of its own, such as R2Score(target_range=(low, high))."
        )
    return OF_RANGE[scoring](checked_range(ends))

"""Scores of densities and of predicted labels, and the table of all scores by name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..exceptions import CertificateError
from ..rows import block_map
from ..utils.type_aliases import Estimator, MatrixLike
from .explained import R2Score, RootMeanSquaredErrorScore, checked_range
from .margin import BrierScore, HingeScore, LogisticScore, RampScore
from .probability import LogLossScore
from .ranking import BalancedAccuracyScore, F1Score, RocAucScore
from .regression_scores import (
    ClippedAbsoluteErrorScore,
    ClippedSquaredErrorScore,
    MeanPoissonDevianceScore,
)
from .score import (
    AtLeastScore,
    Score,
    check_shape,
    check_task,
    predicted_by,
    weighted_sum,
    weighted_total,
    with_labels,
)


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

    task = "density_estimator"

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

    task = "classifier"
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
    "neg_brier_score": BrierScore(),
    "neg_log_loss": LogLossScore(),
    "roc_auc": RocAucScore(),
    "integrated_squared_error": IntegratedSquaredErrorScore(),
}


def _deviance_of_range(ends):
    low, high = ends
    if low < 0:
        raise CertificateError(
            f"scoring='neg_mean_poisson_deviance' is of counts, and target_range={ends!r} begins below "
            "0; use another scoring, such as 'clipped_squared_error'."
        )
    return MeanPoissonDevianceScore(high)


# scores that need the public range of a model's targets
OF_RANGE: dict[str, Callable[[tuple[float, float]], Score]] = {
    "neg_mean_absolute_error": lambda ends: ClippedAbsoluteErrorScore(ends[1] - ends[0]),
    "neg_mean_squared_error": lambda ends: ClippedSquaredErrorScore((ends[1] - ends[0]) ** 2),
    "neg_mean_poisson_deviance": _deviance_of_range,
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
        "neg_brier_score", "neg_log_loss" and "roc_auc", or, with a `model`, "r2",
        "neg_mean_absolute_error", "neg_mean_squared_error", "neg_mean_poisson_deviance" and
        "neg_root_mean_squared_error"; or a score of dpselect.metrics.
    name : str
        Of the parameter, for the message.
    others : tuple of str
        What else the parameter may be, for the message.
    model : estimator, default=None
        Its `target_range` (or 0 and its `target_bound`) is that of the errors of a regression. A score
        of other estimators, such as the accuracy of a regression, is refused.

    Returns
    -------
    Score

    Raises
    ------
    CertificateError
        For every other score, for one of other estimators than `model` is, and for errors of a model
        that has no public range of targets.

    Examples
    --------
    >>> from dpselect import DPRidge
    >>> from dpselect.metrics import get_score
    >>> get_score("brier")
    BrierScore()
    >>> get_score("r2", model=DPRidge(target_range=(-1, 1)))
    R2Score(target_range=(-1.0, 1.0), target_std=0.25)
    """
    if isinstance(scoring, str) and scoring in SCORES:
        scoring = SCORES[scoring]
    elif isinstance(scoring, str) and scoring in OF_RANGE:
        scoring = _score_of_range(scoring, name, model)
    if isinstance(scoring, Score):
        if model is not None:
            check_task(scoring, model, name)
        return scoring
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

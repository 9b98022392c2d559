"""The log loss, bounded by a floor of the probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..utils.type_aliases import Estimator, MatrixLike
from ..utils.validation import check_number
from .score import Score, check_shape, predicted_by, weighted_sum, weighted_total, with_labels


@dataclass(frozen=True)
class LogLossScore(Score):
    """Minus the mean of -log p, p being the predicted probability of the true class, or `floor` if less.

    For any number of classes, with the probabilities of `predict_proba`. One of m records moves it by at
    most -log(floor) / m.

    Parameters
    ----------
    floor : float, default=0.001
        In (0, 1): no probability counts as less. A smaller one lets one record count for more.

    Raises
    ------
    ValueError
        If `floor` is not in (0, 1).

    Examples
    --------
    >>> from dpselect.metrics import LogLossScore
    >>> round(LogLossScore().width, 2)
    6.91
    """

    task = "classifier"
    floor: float = 0.001
    # for two equally frequent classes
    stake = float(np.log(2))

    def __post_init__(self):
        floor = check_number(
            "floor",
            self.floor,
            high=1.0,
            why="it bounds what one record adds to the score",
            instead="write a probability, such as 0.001",
        )
        object.__setattr__(self, "floor", floor)

    @property
    def width(self) -> float:  # type: ignore[override]  # a read-only property
        return -float(np.log(self.floor))

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
            With `predict_proba` and `classes_`.
        X : array-like of shape (m, p)
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        float
        """
        predicted, y = with_labels(predicted_by(estimator, "predict_proba", X), y)
        classes = np.asarray(estimator.classes_)
        check_shape(predicted.shape, (len(y), len(classes)))

        def losses(predicted, y, weight):
            of_true = np.where(y[:, None] == classes, predicted, 0.0).sum(axis=1)
            # NaN counts as the floor
            return weighted_sum(-np.log(np.fmin(np.fmax(of_true, self.floor), 1.0)), weight)

        total, n = weighted_total(losses, sample_weight, predicted, y)
        return -float(total / n)

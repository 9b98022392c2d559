"""Predictions of private linear classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy.typing as npt

from ..base.estimator import PrivateClassifier
from ..utils.parameters import with_parameters
from ..utils.type_aliases import FloatArray, MatrixLike
from .model import LinearModel
from .weights import check_class_weight


@with_parameters
class DPLinearClassifier(LinearModel, PrivateClassifier):
    """Base of linear classifiers, with the parameters of :class:`DPLogisticRegression`.

    A subclass says which MarginLoss it minimises.
    """

    _: KW_ONLY
    class_weight: Mapping[Any, float] | None = None
    classes: npt.ArrayLike | None = None

    default_scoring = "brier"

    def _check_parameters(self):
        super()._check_parameters()
        check_class_weight(self.class_weight, self.classes)

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return the confidence scores of rows, clipped as the training rows were.

        They are w.x + b, or the log odds of the probabilities where a loss has a largest derivative
        below 1.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class; with more than two classes, one column each.
        """
        decision = self._predictor(X, self._loss().decision)
        return decision[:, 0] if decision.shape[1] == 1 else decision

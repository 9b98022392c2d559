"""Predictions of private linear classifiers."""

import numpy.typing as npt

from ..estimator import PrivateClassifier
from ..metrics.plain import accuracy
from ..rows import block_map
from ..training_records import warns_of_training_records
from ..type_aliases import Array, FloatArray, MatrixLike
from .base import LinearModel


class DPLinearClassifier(LinearModel, PrivateClassifier):
    """Base of linear classifiers, with the parameters of :class:`DPLogisticRegression`.

    A subclass says which MarginLoss it minimises.
    """

    default_scoring = "brier"

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return the confidence scores w.x + b of rows, clipped as the training rows were.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class; with more than two classes, one column each.
        """
        decision = self._predictor(X)
        return decision[:, 0] if decision.shape[1] == 1 else decision

    def predict(self, X: MatrixLike) -> Array:
        """Predict the class of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decisions = self.decision_function(X)
        classes = self.classes_

        def labels(decision):
            if decision.ndim == 1:
                return classes[(decision > 0).astype(int)]
            return classes[decision.argmax(axis=1)]

        return block_map(labels, decisions)

    @warns_of_training_records
    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the share of labels that are predicted right.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Records that took no part in training.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float

        Warns
        -----
        PrivacyLeakWarning
            If `X` is what the classifier was trained on, or a part of it.
        """
        return accuracy(self.predict(X), y, sample_weight)

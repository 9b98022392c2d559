"""A private model as another library would have it: neighbours add or remove a record."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpselect.noise import as_generator, grid_noise, release

__version__ = "9.1"
STEPS = 2**16


class PrivacyLeakWarning(RuntimeWarning):
    """Of that library."""


class SignedSum(ClassifierMixin, BaseEstimator):
    """Classify by the sum of the rows, clipped to a box, each with the sign of its label.

    One record that comes or goes moves the sum by `bound` for each column.
    """

    def __init__(self, epsilon=1.0, bound=1.0, labels=None, gain=10.0, random_state=None):
        self.epsilon = epsilon
        self.bound = bound
        self.labels = labels
        self.gain = gain
        self.random_state = random_state

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64)
        if self.bound is None:
            warnings.warn(f"bounds {X.min()} will be computed, a leak", PrivacyLeakWarning, stacklevel=2)
        warnings.warn(f"the largest entry is {X.max()}", UserWarning, stacklevel=2)
        self.classes_ = np.unique(y if self.labels is None else self.labels)
        total = np.where(y == self.classes_[1], 1.0, -1.0) @ self._steps(X)
        scale = STEPS * X.shape[1] / self.epsilon
        noise = grid_noise(as_generator(self.random_state), X.shape[1], scale, step=1.0)
        self.coef_ = release(total, noise, step=1.0)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    def _steps(self, X):
        return np.trunc(STEPS * np.clip(X / self.bound, -1, 1))

    def decision_function(self, X):
        check_is_fitted(self)
        X = self._steps(validate_data(self, X, dtype=np.float64, reset=False))
        return self.gain * X @ self.coef_ / STEPS**2

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class SumWithDelta(SignedSum):
    """The same with a delta, of which nothing comes."""

    def __init__(
        self,
        epsilon=1.0,
        bound=1.0,
        labels=None,
        gain=10.0,
        random_state=None,
        delta=1e-5,
    ):
        super().__init__(epsilon, bound, labels, gain, random_state)
        self.delta = delta


class NoisyMean(RegressorMixin, BaseEstimator):
    """The mean of targets in [-1, 1], whatever the row."""

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        noise = as_generator(self.random_state).laplace(scale=2 / self.epsilon)
        self.mean_ = float((np.clip(y, -1, 1).sum() + noise) / len(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)

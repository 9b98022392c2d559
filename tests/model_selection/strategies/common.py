"""Records, models and helpers that the tests of the strategies share."""

import warnings

import numpy as np
from sklearn.base import clone

from dpselect import DPLinearSVC, DPLogisticRegression, DPRidge, StabilityGridSearchCV
from dpselect.exceptions import SeededNoiseWarning

LOGISTIC = DPLogisticRegression(classes=[0, 1])
SVC = DPLinearSVC(classes=[0, 1])
RIDGE = DPRidge(perturbation="objective", norm="l2", target_range=(-1, 1))
GRID = {"alpha": [0.01, 0.1, 1.0]}
HELD_OUT = ("budget_split", "data_split", "random_stopping")


def records(n=1000, p=3, seed=0):
    """Rows of length at most 1, labels 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p)) / p**0.5
    return X, (X[:, 0] + 0.2 * rng.normal(size=n) > 0).astype(int)


def targets(X):
    return 0.8 * X[:, 0] - 0.3 * X[:, 1]


def search(strategy, estimator=LOGISTIC, grid=GRID, **parameters):
    return StabilityGridSearchCV(clone(estimator), grid, strategy=strategy, **parameters)


def seeded(search, seed=0):
    """Return the search with a seed, whose warning is expected."""

    class Quiet:
        @staticmethod
        def fit(*data):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SeededNoiseWarning)
                return clone(search).set_params(random_state=seed).fit(*data)

    return Quiet


def coefficients(fitted):
    model = fitted.best_estimator_
    return (model[-1] if hasattr(model, "steps") else model).coef_


class Touched(BaseException):
    """The data was touched; no search may take it for an error of its own."""


class Untouchable:
    """Records that must not be read."""

    def __getattribute__(self, name):
        raise Touched(name)

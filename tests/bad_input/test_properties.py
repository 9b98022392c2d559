"""Twins that do what must not be done, to see that each is caught."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from dpselect import PrivacyLoss
from dpselect.utils.atomic import all_or_nothing

from .properties import attempt, check_error, check_fit
from .values import SECRET, TEXT

ROWS = np.arange(6.0).reshape(3, 2)
BAD = np.full((3, 2), SECRET)


class Honest(BaseEstimator):
    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def fit(self, X):
        if self.epsilon != 1.0:
            # the tests take this file for the library
            raise ValueError("epsilon must be 1.")
        with self.around():
            self.mean_ = X.mean()
            self.check(X)
            self.privacy_ = PrivacyLoss(self.epsilon)
        return self

    def around(self):
        return all_or_nothing(self)

    def check(self, X):
        if X is BAD:
            raise ValueError("X is bad.")


class Quotes(Honest):
    def check(self, X):
        if X is BAD:
            check_array(X[:, 0])


class QuotesInTheContext(Honest):
    def check(self, X):
        if X is BAD:
            try:
                float(TEXT)
            except ValueError:
                raise ValueError("X is bad.")  # noqa: B904


class Warns(Honest):
    def check(self, X):
        if X is BAD:
            warnings.warn(f"the mean is {X.mean()}", stacklevel=2)


class Prints(Honest):
    def check(self, X):
        if X is BAD:
            print(X)


class Overflows(Honest):
    def check(self, X):
        np.exp(1e4 + X)


class Stumbles(Honest):
    def check(self, X):
        if X is BAD:
            {}["X"]


class NamesNothing(Honest):
    def check(self, X):
        if X is BAD:
            raise ValueError("This will not do.")


class HalfFitted(Honest):
    def around(self):
        return nullcontext()


class LosesItsLoss(Honest):
    def fit(self, X):
        vars(self).pop("privacy_", None)
        Honest.fit(self, X)
        return self


class Understates(Honest):
    def check(self, X):
        self.epsilon = 0.5


class NotFinite(Honest):
    def check(self, X):
        self.mean_ = np.nan if X is BAD else 0.0


def check(estimator, again):
    return check_fit(estimator, {}, (BAD,), good=(ROWS,) if again else None, loss=lambda model: 1.0)


@pytest.fixture(autouse=True)
def _as_if_in_the_library(monkeypatch):
    from . import properties

    monkeypatch.setattr(properties, "PACKAGES", (__file__, *properties.PACKAGES[1:]))


@pytest.mark.parametrize("again", [False, True])
def test_an_honest_one_passes(again):
    assert check(Honest(), again) == "error"


@pytest.mark.parametrize(
    "kind",
    [
        Quotes,
        QuotesInTheContext,
        Warns,
        Prints,
        Overflows,
        Stumbles,
        NamesNothing,
        HalfFitted,
        Understates,
        NotFinite,
    ],
)
def test_a_broken_twin_is_caught(kind):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(kind(), False)


@pytest.mark.parametrize("kind", [HalfFitted, LosesItsLoss])
def test_a_broken_second_fit_is_caught(kind):
    with pytest.raises(AssertionError):
        check(kind(), True)


def test_an_accident_is_no_deliberate_error():
    with pytest.raises(AssertionError):
        check_error(attempt(lambda: np.zeros(2) @ np.zeros(3)).error, ("X",))

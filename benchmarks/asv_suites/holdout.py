"""Answers about a holdout set."""

import numpy as np

from dpselect import Thresholdout
from dpselect.mechanisms.reusable_holdout import ReusableHoldout

from ._records import Suite, uniform

N = 20_000
# so large that no run of a benchmark spends it
BUDGET = 10**9


class Answers(Suite):
    """Questions on which training and holdout records agree, and such on which they do not."""

    params = [True, False]
    param_names = ["agree"]

    def setup(self, agree):
        X = uniform(N, 5)
        X_holdout = X if agree else 1 - X
        self.numbers = (0.75, 0.75) if agree else (0.75, 0.25)
        self.mechanism = ReusableHoldout(0.1, 0.01, BUDGET, N)
        self.holdout = Thresholdout(0.1, 0.01, BUDGET).fit(X, X_holdout=X_holdout)

    def time_numbers(self, agree):
        self.mechanism.answer(*self.numbers)

    def time_query(self, agree):
        self.holdout.query(lambda X, y: X[:, 0])


class Fit(Suite):
    """Keeping the records."""

    def setup(self):
        self.X = np.random.default_rng(0).random((N, 20))

    def time_fit(self):
        Thresholdout().fit(self.X, X_holdout=self.X + 1)

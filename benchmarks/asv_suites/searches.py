"""Whole searches, and their plans."""

import numpy as np

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)

from ._records import Suite, labelled, uniform, with_targets

N, D = 20_000, 20
WIDTHS = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01]


class Stability(Suite):
    """StabilityGridSearchCV over ever more alphas of logistic regression."""

    params = [[2, 50], ["stability", "auto"]]
    param_names = ["alphas", "strategy"]

    def setup(self, alphas, strategy):
        self.search = StabilityGridSearchCV(
            DPLogisticRegression(classes=[0, 1]),
            {"alpha": np.geomspace(1e-4, 1, alphas)},
            strategy=strategy,
        )
        self.X, self.y = labelled(N, D)

    def time_fit(self, *_):
        self.search.fit(self.X, self.y)

    def peakmem_fit(self, *_):
        self.search.fit(self.X, self.y)


class Samples(Suite):
    """The same with several noise samples for each candidate."""

    params = [4]
    param_names = ["noise_samples"]

    def setup(self, samples):
        self.search = StabilityGridSearchCV(
            DPLogisticRegression(classes=[0, 1]),
            {"alpha": np.geomspace(1e-4, 1, 5)},
            strategy="stability",
            n_noise_samples=samples,
        )
        self.X, self.y = labelled(N, D)

    def time_fit(self, samples):
        self.search.fit(self.X, self.y)


class Ridge(Suite):
    """Over 50 alphas of ridge regression: by stability, and read from one release."""

    params = ["objective", "covariance"]
    param_names = ["perturbation"]

    def setup(self, perturbation):
        strategy = "stability" if perturbation == "objective" else "auto"
        self.search = StabilityGridSearchCV(
            DPRidge(perturbation=perturbation, norm="l2", target_range=(-1, 1)),
            {"alpha": np.geomspace(1e-3, 1, 50)},
            strategy=strategy,
        )
        self.X, self.y = with_targets(N, D)

    def time_fit(self, perturbation):
        self.search.fit(self.X, self.y)


class Density(Suite):
    """Over the width of the cells."""

    def setup(self):
        self.search = StabilityGridSearchCV(
            DPHistogramDensity(bounds=(0, 1)), {"bin_width": WIDTHS}, strategy="stability"
        )
        self.X = uniform(N, 1)

    def time_fit(self):
        self.search.fit(self.X)


class AccuracyFirst(Suite):
    """AccuracyFirstSearchCV that walks through all its levels."""

    params = [["ridge", "logistic"], [10, 1_000]]
    param_names = ["model", "levels"]

    def setup(self, model, levels):
        if model == "ridge":
            estimator, (self.X, self.y) = DPRidge(norm="l2", target_range=(-1, 1)), with_targets(N, D)
        else:
            estimator = DPLogisticRegression(alpha=0.01, perturbation="output", classes=[0, 1])
            self.X, self.y = labelled(N, D)
        self.search = AccuracyFirstSearchCV(
            estimator,
            {"epsilon": np.geomspace(0.01, 10, levels)},
            target=1e-9,
            method="above_threshold",
            on_failure="last",
        )

    def time_fit(self, *_):
        self.search.fit(self.X, self.y)

    def peakmem_fit(self, *_):
        self.search.fit(self.X, self.y)

    def time_plan(self, *_):
        self.search.plan(N, D)

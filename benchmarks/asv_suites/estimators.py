"""Single fits of tall tables, of each estimator."""

import numpy as np

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)

from ._records import Suite, labelled, uniform, with_targets

SHAPES = [(50_000, 20), (20_000, 200)]


class LinearClassifiers(Suite):
    """DPLogisticRegression and DPLinearSVC."""

    params = [["logistic", "svc"], SHAPES, ["l2", "l1"], ["objective", "output"]]
    param_names = ["model", "shape", "norm", "perturbation"]

    def setup(self, model, shape, norm, perturbation):
        kind = {"logistic": DPLogisticRegression, "svc": DPLinearSVC}[model]
        self.model = kind(
            classes=[0, 1],
            alpha=0.01,
            norm=norm,
            data_norm_l1=1.0 if norm == "l1" else None,
            perturbation=perturbation,
        )
        self.X, self.y = labelled(*shape)

    def time_fit(self, *_):
        self.model.fit(self.X, self.y)


class Alpha(Suite):
    """Logistic regression with little and much regularisation, and by the public rule."""

    params = ["auto", 1e-4, 1e-2]
    param_names = ["alpha"]

    def setup(self, alpha):
        self.model = DPLogisticRegression(classes=[0, 1], alpha=alpha)
        self.X, self.y = labelled(50_000, 20)

    def time_fit(self, alpha):
        self.model.fit(self.X, self.y)


class Others(Suite):
    """Ten classes, persons with two rows each, and other losses."""

    params = ["ten classes", "persons", "huber", "poisson"]
    param_names = ["of"]

    def setup(self, of):
        self.X, y = labelled(50_000, 20)
        self.y, self.groups = y, {}
        if of == "ten classes":
            self.model = DPLogisticRegression(classes=range(10), alpha=0.01)
            self.y = np.digitize(self.X[:, 0], np.quantile(self.X[:, 0], np.arange(0.1, 1, 0.1)))
        elif of == "persons":
            self.model = DPLogisticRegression(classes=[0, 1], alpha=0.01)
            self.groups = {"groups": np.arange(len(y)) // 2}
        elif of == "huber":
            self.model = DPHuberRegressor(alpha=0.01, target_range=(0, 1))
        else:
            self.model = DPPoissonRegressor(target_bound=5.0, alpha=0.01)

    def time_fit(self, of):
        self.model.fit(self.X, self.y, **self.groups)


class Ridge(Suite):
    """DPRidge."""

    params = [SHAPES, ["l1", "l2"], ["covariance", "objective", "output"]]
    param_names = ["shape", "norm", "perturbation"]

    def setup(self, shape, norm, perturbation):
        self.model = DPRidge(
            norm=norm,
            perturbation=perturbation,
            alpha=0.1,
            target_range=(-1, 1),
            data_norm_l1=1.0 if norm == "l1" else None,
        )
        self.X, self.y = with_targets(*shape)

    def time_fit(self, *_):
        self.model.fit(self.X, self.y)


class Histogram(Suite):
    """DPHistogramDensity."""

    params = [[(50_000, 1), (50_000, 2)], ["laplace", "discrete_laplace"]]
    param_names = ["shape", "noise"]

    def setup(self, shape, noise):
        self.model = DPHistogramDensity(bin_width=0.02, noise=noise, bounds=(0, 1))
        self.X = uniform(*shape)

    def time_fit(self, *_):
        self.model.fit(self.X)

"""Single fits."""

from dpselect import DPHistogramDensity, DPLinearSVC, DPLogisticRegression, DPRidge

from ._records import labelled, uniform, with_targets

SHAPES = [(10_000, 20), (50_000, 20), (20_000, 200)]


class LinearClassifiers:
    """DPLogisticRegression and DPLinearSVC."""

    params = [["logistic", "svc"], SHAPES, ["l2", "l1"], ["objective", "output"]]
    param_names = ["model", "shape", "norm", "perturbation"]

    def setup(self, model, shape, norm, perturbation):
        kind = {"logistic": DPLogisticRegression, "svc": DPLinearSVC}[model]
        self.model = kind(
            classes=[0, 1], alpha=0.01, norm=norm, data_norm_l1=1.0 if norm == "l1" else None,
            perturbation=perturbation,
        )
        self.X, self.y = labelled(*shape)

    def time_fit(self, *_):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, *_):
        self.model.fit(self.X, self.y)


class Alpha:
    """Logistic regression with little and much regularisation, and by the public rule."""

    params = ["auto", 1e-4, 1e-2]
    param_names = ["alpha"]

    def setup(self, alpha):
        self.model = DPLogisticRegression(classes=[0, 1], alpha=alpha)
        self.X, self.y = labelled(50_000, 20)

    def time_fit(self, alpha):
        self.model.fit(self.X, self.y)


class Ridge:
    """DPRidge."""

    params = [SHAPES, ["l1", "l2"], ["covariance", "objective", "output"]]
    param_names = ["shape", "norm", "perturbation"]

    def setup(self, shape, norm, perturbation):
        self.model = DPRidge(norm=norm, perturbation=perturbation, alpha=0.1, target_range=(-1, 1),
            data_norm_l1=1.0 if norm == "l1" else None)
        self.X, self.y = with_targets(*shape)

    def time_fit(self, *_):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, *_):
        self.model.fit(self.X, self.y)


class Histogram:
    """DPHistogramDensity."""

    params = [[(50_000, 1), (50_000, 2)], ["laplace", "discrete_laplace"]]
    param_names = ["shape", "noise"]

    def setup(self, shape, noise):
        self.model = DPHistogramDensity(bin_width=0.02, noise=noise, bounds=(0, 1))
        self.X = uniform(*shape)

    def time_fit(self, *_):
        self.model.fit(self.X)

    def peakmem_fit(self, *_):
        self.model.fit(self.X)

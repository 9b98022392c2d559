"""How much noise is needed, and how stable a model is: from public numbers alone."""

from dpselect import DPHistogramDensity, DPLinearSVC, DPLogisticRegression, DPRidge
from dpselect.metrics import get_score

from ._records import Suite

N, D = 50_000, 20
MODELS = {
    "logistic": DPLogisticRegression(classes=[0, 1], alpha=0.01),
    "logistic, l1": DPLogisticRegression(classes=[0, 1], alpha=0.01, norm="l1", data_norm_l1=1.0),
    "logistic, output": DPLogisticRegression(classes=[0, 1], alpha=0.01, perturbation="output"),
    "svc": DPLinearSVC(classes=[0, 1], alpha=0.01),
    "ridge": DPRidge(perturbation="objective", norm="l2", alpha=0.1, target_range=(-1, 1)),
    "histogram": DPHistogramDensity(bin_width=0.02, bounds=(0, 1)),
}


class Certificates(Suite):
    """Calibration and certificate of one candidate: for its draw, and for planning."""

    params = [list(MODELS), [None, 1e-6]]
    param_names = ["model", "failure_probability"]

    def setup(self, model, failure_probability):
        self.model = MODELS[model]
        self.columns = 1 if model == "histogram" else D
        self.score = get_score(self.model.default_scoring)

    def time_certificate(self, model, failure_probability):
        self.model.stability_certificate(
            self.score, N, self.columns, failure_probability=failure_probability
        )


class UnitNoise(Suite):
    """The standard noise of one fit."""

    params = [list(MODELS), [1, D]]
    param_names = ["model", "columns"]

    def setup(self, model, columns):
        if model == "histogram" and columns > 1:
            raise NotImplementedError("50^20 cells")
        self.model = MODELS[model]

    def time_unit_noise(self, model, columns):
        self.model.standard_noise(columns)

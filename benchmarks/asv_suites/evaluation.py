"""How good a model is, from one release on records that were set aside."""

from dpselect import DPLogisticRegression, DPRidge, evaluate

from ._records import Suite, labelled, with_targets


class Evaluations(Suite):
    """Of a classifier and of a regressor, with an interval of a figure."""

    params = ["logistic", "ridge"]
    param_names = ["model"]

    def setup(self, model):
        if model == "logistic":
            estimator, (self.X, self.y) = DPLogisticRegression(classes=[0, 1]), labelled(50_000, 20)
            self.options, self.figure = {}, "accuracy"
        else:
            self.X, self.y = with_targets(50_000, 20)
            self.options, self.figure = {"target_range": (-1, 1)}, "r2"
            estimator = DPRidge(norm="l2", **self.options)
        self.fitted = estimator.fit(self.X, self.y)

    def time_evaluate(self, model):
        evaluate(self.fitted, self.X, self.y, epsilon=1.0, **self.options).metric(self.figure)

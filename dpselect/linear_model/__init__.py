"""Private linear models."""

from .coefficient_intervals import CoefficientIntervals, ConfidenceInterval
from .coefficients import coef_interval, coef_interval_forecast
from .huber import DPHuberRegressor
from .logistic import DPLogisticRegression
from .poisson import DPPoissonRegressor
from .ridge import DPRidge
from .svc import DPLinearSVC

__all__ = [
    "CoefficientIntervals",
    "ConfidenceInterval",
    "DPHuberRegressor",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "coef_interval",
    "coef_interval_forecast",
]

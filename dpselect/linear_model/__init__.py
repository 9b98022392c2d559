"""Private linear models."""

from .coefficients import CoefficientIntervals, ConfidenceInterval, coef_interval
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
]

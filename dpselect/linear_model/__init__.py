"""Private linear models."""

from .huber import DPHuberRegressor
from .logistic import DPLogisticRegression
from .poisson import DPPoissonRegressor
from .ridge import DPRidge
from .svc import DPLinearSVC

__all__ = ["DPHuberRegressor", "DPLinearSVC", "DPLogisticRegression", "DPPoissonRegressor", "DPRidge"]

"""Private linear models."""

from .logistic import DPLogisticRegression
from .poisson import DPPoissonRegressor
from .ridge import DPRidge
from .svc import DPLinearSVC

__all__ = ["DPLinearSVC", "DPLogisticRegression", "DPPoissonRegressor", "DPRidge"]

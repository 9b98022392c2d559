"""Private linear models."""

from .logistic import DPLogisticRegression
from .ridge import DPRidge
from .svc import DPLinearSVC

__all__ = ["DPLinearSVC", "DPLogisticRegression", "DPRidge"]

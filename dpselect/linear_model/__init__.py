"""Private linear models."""

from .logistic import DPLogisticRegression
from .svc import DPLinearSVC

__all__ = ["DPLinearSVC", "DPLogisticRegression"]

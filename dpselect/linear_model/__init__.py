"""Private linear models."""

from .logistic import DPLogisticRegression

__all__ = ["DPLogisticRegression"]

"""Private ridge regression."""

from .estimator import DPRidge

__all__ = ["DPRidge"]

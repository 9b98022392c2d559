"""The smallest epsilon that is accurate enough."""

from .plan import AccuracyPlan
from .search import AccuracyFirstSearchCV

__all__ = ["AccuracyFirstSearchCV", "AccuracyPlan"]

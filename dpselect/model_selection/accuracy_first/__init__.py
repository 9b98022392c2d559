"""The smallest epsilon that is accurate enough."""

from .accuracy_plan import AccuracyPlan
from .search import AccuracyFirstSearchCV

__all__ = ["AccuracyFirstSearchCV", "AccuracyPlan"]

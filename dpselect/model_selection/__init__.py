"""Private model selection."""

from .accuracy_first import AccuracyFirstSearchCV
from .accuracy_plan import AccuracyPlan
from .plan import SelectionPlan
from .search import StabilityGridSearchCV

__all__ = ["AccuracyFirstSearchCV", "AccuracyPlan", "SelectionPlan", "StabilityGridSearchCV"]

"""Private model selection."""

from .plan import SelectionPlan
from .search import StabilityGridSearchCV
from .strategies import Choice, Problem, Strategy

__all__ = ["Choice", "Problem", "SelectionPlan", "StabilityGridSearchCV", "Strategy"]

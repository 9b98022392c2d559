"""Private model selection."""

from .accuracy_first import AccuracyFirstSearchCV, AccuracyPlan
from .grid_search import StabilityGridSearchCV
from .plan import SelectionPlan
from .strategies import Choice, Problem, Strategy

__all__ = [
    "AccuracyFirstSearchCV",
    "AccuracyPlan",
    "Choice",
    "Problem",
    "SelectionPlan",
    "StabilityGridSearchCV",
    "Strategy",
]

"""Private model selection."""

from .plan import SelectionPlan
from .search import StabilityGridSearchCV

__all__ = ["SelectionPlan", "StabilityGridSearchCV"]

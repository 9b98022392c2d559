"""Reusable holdout sets, which stay valid under adaptive queries."""

from .feature_selector import ThresholdoutFeatureSelector
from .ladder import Ladder
from .thresholdout import Thresholdout

__all__ = ["Ladder", "Thresholdout", "ThresholdoutFeatureSelector"]

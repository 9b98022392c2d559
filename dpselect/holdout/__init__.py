"""Holdout sets that stay honest when they are asked again and again."""

from .feature_selector import ThresholdoutFeatureSelector
from .ladder import Ladder
from .thresholdout import Thresholdout

__all__ = ["Ladder", "Thresholdout", "ThresholdoutFeatureSelector"]

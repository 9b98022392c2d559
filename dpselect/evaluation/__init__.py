"""Evaluate a model: metrics with intervals, from one release on held-out records."""

from .binary import BinaryEvaluation
from .calibrated import CalibratedModel, calibrated
from .confidence import ConfidenceEvaluation
from .density import DensityEvaluation
from .estimate import Estimate
from .evaluation import Evaluation
from .multiclass import MulticlassEvaluation
from .regression import RegressionEvaluation
from .release import evaluate

__all__ = [
    "BinaryEvaluation",
    "CalibratedModel",
    "ConfidenceEvaluation",
    "DensityEvaluation",
    "Estimate",
    "Evaluation",
    "MulticlassEvaluation",
    "RegressionEvaluation",
    "calibrated",
    "evaluate",
]

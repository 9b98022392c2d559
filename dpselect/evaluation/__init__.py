"""How good is a model: figures with intervals, from one release on records that were set aside."""

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

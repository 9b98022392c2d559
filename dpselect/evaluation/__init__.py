"""How good is a model: figures with intervals, from one release on records that were set aside."""

from .evaluation import Estimate, Evaluation
from .release import evaluate

__all__ = ["Estimate", "Evaluation", "evaluate"]

"""Export models to scikit-learn alone, and to ONNX."""

from ..preprocessing.plain_pipelines import to_sklearn
from .onnx_model import to_onnx
from .trusted import TRUSTED_TYPES

__all__ = ["TRUSTED_TYPES", "to_onnx", "to_sklearn"]

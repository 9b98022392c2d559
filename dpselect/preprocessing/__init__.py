"""Steps before a private model: public and private bounds, and the check of a Pipeline."""

from .pipeline_check import DATA_INDEPENDENT, check_pipeline_privacy
from .private_bounds import DPBoundsScaler
from .scalers import BoundedScaler, NormClipper

__all__ = [
    "BoundedScaler",
    "DATA_INDEPENDENT",
    "DPBoundsScaler",
    "NormClipper",
    "check_pipeline_privacy",
]

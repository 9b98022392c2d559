"""Preprocessing: public schemas, public and private bounds, and the check of a Pipeline."""

from .pipeline_check import DATA_INDEPENDENT, check_pipeline_privacy
from .private_bounds import DPBoundsScaler
from .scalers import BoundedScaler, NormClipper
from .schema import PublicSchema
from .schema_template import schema_template
from .table_encoder import TableEncoder
from .tabular import TabularPipeline, tabular_pipeline

__all__ = [
    "BoundedScaler",
    "DATA_INDEPENDENT",
    "DPBoundsScaler",
    "NormClipper",
    "PublicSchema",
    "TableEncoder",
    "TabularPipeline",
    "check_pipeline_privacy",
    "schema_template",
    "tabular_pipeline",
]

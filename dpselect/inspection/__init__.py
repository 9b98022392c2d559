"""Plots of plans and releases, in the style of scikit-learn's Display classes.

They show public numbers and released values only. matplotlib is needed for `plot`.
"""

from .accuracy_first_display import AccuracyFirstDisplay
from .density_display import DensityDisplay
from .evaluation_display import (
    EvaluationCalibrationDisplay,
    EvaluationConfusionDisplay,
    EvaluationRocDisplay,
)
from .ledger_display import PrivacyLedgerDisplay
from .selection_display import StabilitySearchDisplay
from .terms_display import TermsDisplay

__all__ = [
    "AccuracyFirstDisplay",
    "DensityDisplay",
    "EvaluationCalibrationDisplay",
    "EvaluationConfusionDisplay",
    "EvaluationRocDisplay",
    "PrivacyLedgerDisplay",
    "StabilitySearchDisplay",
    "TermsDisplay",
]

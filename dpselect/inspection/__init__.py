"""Pictures of what was planned and released, in the manner of scikit-learn's Display classes.

They show public numbers and released values only. matplotlib is needed for `plot`.
"""

from .accuracy_first import AccuracyFirstDisplay
from .density import DensityDisplay
from .evaluation import (
    EvaluationCalibrationDisplay,
    EvaluationConfusionDisplay,
    EvaluationRocDisplay,
)
from .ledger import PrivacyLedgerDisplay
from .selection import StabilitySearchDisplay
from .terms import TermsDisplay

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

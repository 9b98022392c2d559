"""Base classes of private estimators: one fit, capabilities, certificates, numbers learned first."""

from .capabilities import (
    BoundsRisk,
    Calibrated,
    Certified,
    DeclaresLoss,
    HasAccuracyForm,
    HasDefaultScore,
    HasPlainForm,
    HasScoreStake,
    LearnsFirst,
    PostProcesses,
    RanksRegularisation,
    ScoresSplits,
    TakesGroups,
    TakesWeights,
    require,
)
from .certificates import Certificate, RiskBound, margin_certificate
from .estimator import (
    CertifiedEstimator,
    PrivateClassifier,
    PrivateDensity,
    PrivateEstimator,
    PrivateRegressor,
    ReleaseMixin,
    Trial,
)
from .learned_numbers import FirstRelease

__all__ = [
    "BoundsRisk",
    "Calibrated",
    "Certificate",
    "Certified",
    "CertifiedEstimator",
    "DeclaresLoss",
    "FirstRelease",
    "HasAccuracyForm",
    "HasDefaultScore",
    "HasPlainForm",
    "HasScoreStake",
    "LearnsFirst",
    "PostProcesses",
    "PrivateClassifier",
    "PrivateDensity",
    "PrivateEstimator",
    "PrivateRegressor",
    "RanksRegularisation",
    "ReleaseMixin",
    "RiskBound",
    "ScoresSplits",
    "TakesGroups",
    "TakesWeights",
    "Trial",
    "margin_certificate",
    "require",
]

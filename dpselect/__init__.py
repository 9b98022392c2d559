"""Tune and release machine-learning models under differential privacy."""

from . import audit, mechanisms, metrics, noise, preprocessing
from .accounting.privacy_loss import Adjacency, PrivacyLoss
from .config import config_context, get_config, set_config
from .density import DPHistogramDensity
from .evaluation import Evaluation, calibrated, evaluate
from .exceptions import (
    AccuracyNotReachedError,
    BudgetExceededError,
    CertificateError,
    PrivacyLeakError,
    PrivacyLeakWarning,
    SeededNoiseWarning,
)
from .holdout import Ladder, Thresholdout, ThresholdoutFeatureSelector
from .inspection import (
    AccuracyFirstDisplay,
    DensityDisplay,
    EvaluationCalibrationDisplay,
    EvaluationConfusionDisplay,
    EvaluationRocDisplay,
    PrivacyLedgerDisplay,
    StabilitySearchDisplay,
    TermsDisplay,
)
from .ledger import PrivacyLedger
from .linear_model import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    coef_interval,
    coef_interval_forecast,
)
from .model_selection import AccuracyFirstSearchCV, StabilityGridSearchCV
from .preprocessing.estimator_loss import privacy_of
from .private_model import PrivateModel
from .report import PrivacyReport, privacy_report
from .rows import RowChunks

__version__ = "0.1.0"

__all__ = [
    "AccuracyFirstDisplay",
    "AccuracyFirstSearchCV",
    "AccuracyNotReachedError",
    "Adjacency",
    "BudgetExceededError",
    "CertificateError",
    "DPHistogramDensity",
    "DPHuberRegressor",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "DensityDisplay",
    "Evaluation",
    "EvaluationCalibrationDisplay",
    "EvaluationConfusionDisplay",
    "EvaluationRocDisplay",
    "Ladder",
    "PrivacyLeakError",
    "PrivacyLeakWarning",
    "PrivacyLedger",
    "PrivacyLedgerDisplay",
    "PrivacyLoss",
    "PrivacyReport",
    "PrivateModel",
    "RowChunks",
    "SeededNoiseWarning",
    "StabilityGridSearchCV",
    "StabilitySearchDisplay",
    "TermsDisplay",
    "Thresholdout",
    "ThresholdoutFeatureSelector",
    "audit",
    "calibrated",
    "coef_interval",
    "coef_interval_forecast",
    "config_context",
    "evaluate",
    "get_config",
    "mechanisms",
    "metrics",
    "noise",
    "preprocessing",
    "privacy_of",
    "privacy_report",
    "set_config",
]

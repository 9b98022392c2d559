"""Tune and release machine-learning models under differential privacy."""

from . import audit, mechanisms, metrics, noise, preprocessing
from .density import DPHistogramDensity
from .exceptions import (
    AccuracyNotReachedError,
    CertificateError,
    PrivacyLeakWarning,
    SeededNoiseWarning,
)
from .linear_model import DPLinearSVC, DPLogisticRegression, DPRidge
from .model_selection import AccuracyFirstSearchCV, StabilityGridSearchCV
from .privacy import PrivacyLoss

__version__ = "0.1.0"

__all__ = [
    "AccuracyFirstSearchCV",
    "AccuracyNotReachedError",
    "CertificateError",
    "DPHistogramDensity",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPRidge",
    "PrivacyLeakWarning",
    "PrivacyLoss",
    "SeededNoiseWarning",
    "StabilityGridSearchCV",
    "audit",
    "mechanisms",
    "metrics",
    "noise",
    "preprocessing",
]

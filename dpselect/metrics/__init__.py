"""Scores with a Lipschitz constant and a range, which certificates need.

A private search may only use a score whose value changes by a known amount when one
record changes. The scores of margins are means over records of a function g of the margin
u = y f(x), where f is the decision function and y is -1 or 1; with more than two classes
they are the mean over the one-vs-rest problems. All are scorers in scikit-learn's sense,
``score(estimator, X, y)``; greater is better.
"""

from .explained import R2Score, RootMeanSquaredErrorScore
from .margin import BrierScore, HingeScore, LogisticScore, MarginScore, RampScore, margins
from .probability import LogLossScore
from .ranking import BalancedAccuracyScore, F1Score, RocAucScore
from .regression_scores import (
    ClippedAbsoluteErrorScore,
    ClippedSquaredErrorScore,
    MeanPoissonDevianceScore,
    PoissonDevianceScore,
)
from .score import AtLeastScore, Score
from .scores import AccuracyScore, IntegratedSquaredErrorScore, get_score

__all__ = [
    "AccuracyScore",
    "AtLeastScore",
    "BalancedAccuracyScore",
    "BrierScore",
    "ClippedAbsoluteErrorScore",
    "ClippedSquaredErrorScore",
    "F1Score",
    "HingeScore",
    "IntegratedSquaredErrorScore",
    "LogLossScore",
    "LogisticScore",
    "MarginScore",
    "MeanPoissonDevianceScore",
    "PoissonDevianceScore",
    "R2Score",
    "RampScore",
    "RocAucScore",
    "RootMeanSquaredErrorScore",
    "Score",
    "get_score",
    "margins",
]

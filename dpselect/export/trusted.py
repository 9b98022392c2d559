"""The types that skops may load: those of models, by name.

A rule on names would trust too much: modules of this library import others, such as ``os``, and skops
looks a name up in a module whether or not it was defined there.
"""

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_array

from .. import density, evaluation, linear_model, metrics, preprocessing
from ..accounting.events import ChoiceEvent, GaussianEvent, ObjectiveEvent
from ..accounting.privacy_loss import PrivacyLoss
from ..evaluation.intervals import NoisyCounts
from ..model_selection import (
    AccuracyFirstSearchCV,
    AccuracyPlan,
    SelectionPlan,
    StabilityGridSearchCV,
)
from ..model_selection.accuracy_first.accuracy_plan import MethodPlan
from ..model_selection.accuracy_first.search import own_score
from ..model_selection.plan import PublicResults
from ..preprocessing import schema, terms

# classes with plain attributes: loading one opens no other file and runs no code from the file
OBJECTS = (
    density.DPHistogramDensity,
    linear_model.DPHuberRegressor,
    linear_model.DPLinearSVC,
    linear_model.DPLogisticRegression,
    linear_model.DPPoissonRegressor,
    linear_model.DPRidge,
    preprocessing.BoundedScaler,
    preprocessing.DPBoundsScaler,
    preprocessing.NormClipper,
    preprocessing.PublicSchema,
    preprocessing.TableEncoder,
    preprocessing.TabularPipeline,
    schema.CategoryColumn,
    schema.NumberColumn,
    terms.CategoryTerm,
    terms.CosineTerm,
    terms.CycleTerm,
    terms.FourierTerm,
    terms.NumberTerm,
    terms.PairTerm,
    PrivacyLoss,
    ChoiceEvent,
    GaussianEvent,
    ObjectiveEvent,
    # of searches
    AccuracyFirstSearchCV,
    AccuracyPlan,
    MethodPlan,
    StabilityGridSearchCV,
    SelectionPlan,
    metrics.AccuracyScore,
    metrics.BalancedAccuracyScore,
    metrics.BrierScore,
    metrics.ClippedAbsoluteErrorScore,
    metrics.ClippedSquaredErrorScore,
    metrics.F1Score,
    metrics.HingeScore,
    metrics.IntegratedSquaredErrorScore,
    metrics.LogisticScore,
    metrics.LogLossScore,
    metrics.PoissonDevianceScore,
    metrics.R2Score,
    metrics.RampScore,
    metrics.RocAucScore,
    metrics.RootMeanSquaredErrorScore,
    # of evaluations
    evaluation.BinaryEvaluation,
    evaluation.CalibratedModel,
    evaluation.ConfidenceEvaluation,
    evaluation.DensityEvaluation,
    evaluation.MulticlassEvaluation,
    evaluation.RegressionEvaluation,
    NoisyCounts,
)
# functions of rows, in steps that to_sklearn makes
OF_ROWS = (
    np.asarray,
    np.clip,
    np.dtype,
    np.expand_dims,
    np.interp,
    np.outer,
    np.prod,
    np.split,
    np.squeeze,
    chebvander,
    manhattan_distances,
    row_norms,
    check_array,
)


def type_name(kind):
    """Return the name of a class or function as skops writes it."""
    return f"{kind.__module__}.{kind.__qualname__}"


TRUSTED_TYPES = sorted(map(type_name, (*OBJECTS, PublicResults, own_score, *OF_ROWS)))

"""What skops may load: it reads no other types, so a file runs no code of its own."""

from .. import density, linear_model, preprocessing
from ..events import ChoiceEvent, GaussianEvent, ObjectiveEvent
from ..preprocessing import schema, terms
from ..privacy import PrivacyLoss

OWN = (
    density.DPHistogramDensity, linear_model.DPHuberRegressor, linear_model.DPLinearSVC,
    linear_model.DPLogisticRegression, linear_model.DPPoissonRegressor, linear_model.DPRidge,
    preprocessing.BoundedScaler, preprocessing.DPBoundsScaler, preprocessing.NormClipper,
    preprocessing.PublicSchema, preprocessing.TableEncoder, preprocessing.TabularPipeline,
    schema.CategoryColumn, schema.NumberColumn, terms.CategoryTerm, terms.FourierTerm,
    terms.NumberTerm, terms.PairTerm, PrivacyLoss, ChoiceEvent, GaussianEvent, ObjectiveEvent,
)
# functions of rows, which to_sklearn makes steps of
FUNCTIONS = (
    "numpy.asarray", "numpy.clip", "numpy.dtype", "numpy.interp", "numpy.outer", "numpy.prod",
    "sklearn.metrics.pairwise.euclidean_distances", "sklearn.metrics.pairwise.manhattan_distances",
    "sklearn.utils.validation.check_array",
)
TRUSTED_TYPES = sorted([*FUNCTIONS, *(f"{kind.__module__}.{kind.__qualname__}" for kind in OWN)])

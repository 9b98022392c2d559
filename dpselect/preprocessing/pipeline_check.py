"""Check a Pipeline that ends with a private model.

A step may come before a private model only if it treats each row by itself, with parameters that do not
depend on the data or were released privately. Otherwise one record changes all rows, and the privacy
loss of the model does not cover the Pipeline.
"""

import numbers
from collections.abc import Collection

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from ..utils.type_aliases import Estimator
from .private_bounds import DPBoundsScaler
from .scalers import BoundedScaler, NormClipper
from .table_encoder import TableEncoder
from .tabular import TabularPipeline


def check_pipeline_privacy(pipeline: Estimator, trusted_steps: Collection[str | type] = ()) -> None:
    """Refuse a Pipeline with a step that learns from the data without a privacy loss.

    The records are not looked at: that one of them turns a column of numbers into text, and so all
    rows of an encoder, is seen by a search alone.

    Parameters
    ----------
    pipeline : estimator
        A Pipeline: all its steps but the last are checked, inside ColumnTransformer,
        FeatureUnion and nested Pipelines too. Any other estimator passes.
    trusted_steps : collection of str or class, default=()
        Names of steps, or classes, that you know to treat each row by itself with
        parameters that do not depend on the data.

    Raises
    ------
    ValueError
        If a step learns from the data, or is unknown; the message names it and says what
        to use instead.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dpselect import DPLogisticRegression
    >>> from dpselect.preprocessing import BoundedScaler, check_pipeline_privacy
    >>> check_pipeline_privacy(make_pipeline(BoundedScaler((0, 10)), DPLogisticRegression()))
    >>> check_pipeline_privacy(make_pipeline(StandardScaler(), DPLogisticRegression()))
    Traceback (most recent call last):
    ...
    ValueError: Step 'standardscaler' (StandardScaler) learns from the data, or may, so one record \
changes every row and the privacy loss of the model no longer holds; use \
dpselect.preprocessing.BoundedScaler with bounds from knowledge of the field.
    """
    trusted_steps = check_trusted_steps(trusted_steps)
    if not isinstance(pipeline, Pipeline):
        return
    _refuse_subclass("estimator", pipeline, trusted_steps)
    steps = inner_parts(pipeline)
    if not steps:
        raise ValueError(
            "The Pipeline has no steps, so there is no model to be private; write one as its last step."
        )
    for name, step in steps[:-1]:
        _check_step(name, step, trusted_steps)
    check_pipeline_privacy(steps[-1][1], trusted_steps)


def check_trusted_steps(trusted_steps):
    """Return the names and classes as a tuple, or refuse other values."""
    if isinstance(trusted_steps, str):
        raise TypeError(
            f"trusted_steps={trusted_steps!r} is one text, of which each letter would be a name; "
            f"write trusted_steps=[{trusted_steps!r}]."
        )
    if not np.iterable(trusted_steps):
        raise TypeError(
            f"trusted_steps of type {type(trusted_steps).__name__} names no steps; write a list of "
            "names or classes."
        )
    trusted_steps = tuple(trusted_steps)
    others = {type(given).__name__ for given in trusted_steps if not isinstance(given, (str, type))}
    if others:
        raise TypeError(
            "trusted_steps lists what is neither a name nor a class (of type "
            f"{', '.join(sorted(others))}), so it trusts no step; write a list of names or classes."
        )
    return trusted_steps


def _check_step(name, step, trusted):
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return
    if name in trusted or type(step) in trusted or releases_privately(step):
        return
    _refuse_subclass(name, step, trusted)
    inner = inner_parts(step)
    if inner is not None:
        for label, part in [*inner, *_fitted_parts(step)]:
            _check_step(label, part, trusted)
        if isinstance(step, ColumnTransformer):
            _check_columns(name, step)
        return
    rule = DATA_INDEPENDENT.get(type(step))
    fix = _fix(step) if rule is None else rule(step)
    if fix is not None:
        raise ValueError(
            f"Step {name!r} ({type(step).__name__}) learns from the data, or may, so one record changes "
            f"every row and the privacy loss of the model no longer holds; {fix}."
        )


def releases_privately(step):
    """Return whether a step learns from the data with a privacy loss, stated in `privacy_`."""
    return getattr(type(step), "releases_privately", False)


def inner_parts(step):
    """Return the named parts of a composite step, or None for a single one."""
    if isinstance(step, Pipeline):
        return _listed(step, step.steps, 2)
    if isinstance(step, FeatureUnion):
        return _listed(step, step.transformer_list, 2)
    if isinstance(step, ColumnTransformer):
        return [(label, part) for label, part, _ in _listed(step, step.transformers, 3)] + [
            ("remainder", step.remainder)
        ]
    return None


def _fitted_parts(step):
    # the unfitted transformers of a ColumnTransformer may be replaced after the fit
    if isinstance(step, ColumnTransformer) and hasattr(step, "transformers_"):
        return [(label, part) for label, part, _ in step.transformers_]
    return []


def map_parts(step, function, path=()):
    """Replace the single parts of a step, the fitted clones of a ColumnTransformer included.

    Parameters
    ----------
    step : transformer, None or str
        Containers are changed.
    function : callable
        From the path of a part, a tuple of names that is the same for its fitted clone, and the part
        to what takes its place.
    path : tuple of str
        Of the step itself.

    Returns
    -------
    transformer, None or str
        The step, or what takes its place.
    """
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return step

    def mapped(parts):
        return [
            (name, map_parts(part, function, (*path, name)), *others) for name, part, *others in parts
        ]

    if isinstance(step, Pipeline):
        step.steps = mapped(step.steps)
    elif isinstance(step, FeatureUnion):
        step.transformer_list = mapped(step.transformer_list)
    elif isinstance(step, ColumnTransformer):
        step.transformers = mapped(step.transformers)
        step.remainder = map_parts(step.remainder, function, (*path, "remainder"))
        if hasattr(step, "transformers_"):
            step.transformers_ = mapped(step.transformers_)
    else:
        return function(path, step)
    return step


def _listed(step, parts, length):
    """Return the parts of a container as a list, or refuse other values."""
    if not isinstance(parts, (list, tuple)) or not all(
        isinstance(part, (list, tuple)) and len(part) == length for part in parts
    ):
        names = ("name", "transformer", "columns")[:length]
        raise TypeError(
            f"{type(step).__name__} must list its steps as tuples ({', '.join(names)}), because "
            "each of them is checked; write such a list."
        )
    return list(parts)


def fitted_parts(step):
    """Return the named parts of a composite step, fitted ones where they exist; or none."""
    return _fitted_parts(step) or inner_parts(step) or []


def private_parts(step):
    """Return all private parts of `step` that state a loss, itself included."""
    if releases_privately(step):
        return [step]
    return [found for _, part in fitted_parts(step) for found in private_parts(part)]


def keep_their_columns(steps):
    """Return whether the number of columns is independent of what private steps learn."""
    return all(isinstance(part, OneToOneFeatureMixin) for step in steps for part in private_parts(step))


def _refuse_subclass(name, step, trusted):
    if isinstance(step, COMPOSITE) and type(step) not in (*COMPOSITE, *trusted):
        raise ValueError(
            f"Step {name!r} ({type(step).__name__}) is a container of its own kind, which may learn "
            "from the data in ways that its parts do not show; use scikit-learn's own, or name it "
            f"in trusted_steps=[{type(step).__name__}]."
        )


def _check_columns(name, step):
    if any(callable(columns) for _, _, columns in _listed(step, step.transformers, 3)):
        raise ValueError(
            f"Step {name!r} (ColumnTransformer) chooses columns by a function of the data, and "
            "releases the choice; write the names or numbers of the columns."
        )
    dense = all(
        part == "drop"
        or type(part) in DENSE
        or (type(part) in (OneHotEncoder, SplineTransformer, TableEncoder) and not part.sparse_output)
        for _, part in inner_parts(step)
    )
    if not dense and step.sparse_threshold != 0:
        raise ValueError(
            f"Step {name!r} (ColumnTransformer) may decide by the data whether its output is "
            "sparse, and releases the decision; write sparse_threshold=0."
        )


def _always(step):
    return None


def _function_is_elementwise(step):
    if step.kw_args or step.inv_kw_args:
        return "leave kw_args and inv_kw_args out, for numpy writes rows into out="
    elementwise = isinstance(step.func, np.ufunc) and step.func.signature is None
    if step.func is None:
        return None
    if elementwise and step.func.nin == step.func.nout == 1:
        if _reads_integers_as_floats(step.func):
            return None
        return (
            "this function gives other values for integers than for floats, and one gap makes floats of "
            "a column of integers; write another one"
        )
    return (
        "a function of numpy that works on each number, such as np.log1p, passes; if yours treats "
        "each row by itself, name the step in trusted_steps"
    )


def _reads_integers_as_floats(func):
    integers = np.arange(1, 4)
    try:
        with np.errstate(all="ignore"):
            of_integers, of_floats = func(integers), func(integers.astype(np.float64))
            return np.array_equal(of_integers, of_floats, equal_nan=of_floats.dtype != object)
    except Exception:
        return True  # integers or floats will be refused when records come


def _components_are_given(step):
    if isinstance(step.n_components, numbers.Integral):
        return None
    return "give n_components as a number"


def _gamma_is_given(step):
    return None if isinstance(step.gamma, numbers.Real) else "give gamma as a number"


def _categories_are_given(step):
    if isinstance(step.categories, str):
        return "give categories=[...], all values that each column may have"
    if step.min_frequency is not None or step.max_categories is not None:
        return "leave min_frequency and max_categories at None"
    return None


def _words_are_given(step):
    if step.vocabulary is not None:
        return None
    return "use HashingVectorizer, or give vocabulary=[...], words from knowledge of the field"


def _counts_no_documents(step):
    return "write use_idf=False, for idf counts the documents that hold a word" if step.use_idf else None


def _words_are_given_and_not_counted(step):
    if step.vocabulary is not None and not step.use_idf:
        return None
    return (
        "use HashingVectorizer, or give vocabulary=[...], words from knowledge of the field, and "
        "use_idf=False, for idf counts the documents that hold a word"
    )


def _knots_are_given(step):
    if not isinstance(step.knots, str):
        return None
    return "give knots=[[...], ...], one row for each knot, from bounds that are public"


def _fills_a_constant(step):
    given = step.strategy == "constant" and step.fill_value is not None
    if given and step.keep_empty_features and not step.add_indicator:
        return None
    return (
        'use SimpleImputer(strategy="constant", fill_value=..., keep_empty_features=True), with '
        "MissingIndicator(features='all') if missingness matters"
    )


def _marks_every_column(step):
    return None if step.features == "all" else "write features='all'"


# type -> function of a step: the required change, or None if it treats each row by itself
DATA_INDEPENDENT = {
    BoundedScaler: _always,
    NormClipper: _always,
    Binarizer: _always,
    CountVectorizer: _words_are_given,
    FeatureHasher: _always,
    FunctionTransformer: _function_is_elementwise,
    GaussianRandomProjection: _components_are_given,
    HashingVectorizer: _always,
    MissingIndicator: _marks_every_column,
    Normalizer: _always,
    OneHotEncoder: _categories_are_given,
    OrdinalEncoder: _categories_are_given,
    PolynomialCountSketch: _always,
    PolynomialFeatures: _always,
    RBFSampler: _gamma_is_given,
    SimpleImputer: _fills_a_constant,
    SkewedChi2Sampler: _always,
    SparseRandomProjection: _components_are_given,
    SplineTransformer: _knots_are_given,
    TableEncoder: _always,
    TfidfTransformer: _counts_no_documents,
    TfidfVectorizer: _words_are_given_and_not_counted,
}

COMPOSITE = (Pipeline, TabularPipeline, FeatureUnion, ColumnTransformer)
# transformers whose output is always dense; that of PolynomialFeatures follows its input
DENSE = (BoundedScaler, DPBoundsScaler, OrdinalEncoder, RBFSampler)

_SCALER = "use dpselect.preprocessing.BoundedScaler with bounds from knowledge of the field"
_PROJECTION = "use GaussianRandomProjection or RBFSampler, which draw their directions"
_COLUMNS = "choose the columns by knowledge of the field, with ColumnTransformer"
_CATEGORIES = "use OneHotEncoder(categories=[...]) with all values that each column may have"
FIXES = {
    "StandardScaler": _SCALER,
    "MinMaxScaler": _SCALER,
    "MaxAbsScaler": _SCALER,
    "RobustScaler": _SCALER,
    "QuantileTransformer": _SCALER,
    "PowerTransformer": _SCALER,
    "KBinsDiscretizer": _SCALER,
    "PCA": _PROJECTION,
    "IncrementalPCA": _PROJECTION,
    "KernelPCA": _PROJECTION,
    "TruncatedSVD": _PROJECTION,
    "FastICA": _PROJECTION,
    "FactorAnalysis": _PROJECTION,
    "NMF": _PROJECTION,
    "Nystroem": _PROJECTION,
    "SelectKBest": _COLUMNS,
    "SelectPercentile": _COLUMNS,
    "SelectFromModel": _COLUMNS,
    "SequentialFeatureSelector": _COLUMNS,
    "RFE": _COLUMNS,
    "RFECV": _COLUMNS,
    "VarianceThreshold": _COLUMNS,
    "TargetEncoder": _CATEGORIES,
    "KNNImputer": "use SimpleImputer(strategy='constant', fill_value=..., keep_empty_features=True)",
    "IterativeImputer": (
        "use SimpleImputer(strategy='constant', fill_value=..., keep_empty_features=True)"
    ),
    "FrozenEstimator": (
        "fit the step in the search, or name it in trusted_steps if what it learned was public or "
        "has been paid for"
    ),
    "DictVectorizer": "use FeatureHasher",
}


def _fix(step):
    known = FIXES.get(type(step).__name__)
    return known or (
        "if it treats each row by itself with parameters that do not depend on the data, "
        f"name it in trusted_steps=[{type(step).__name__}]"
    )

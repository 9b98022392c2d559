"""Steps before a private model: scaling by public bounds, and the check of a Pipeline.

A step may come before a private model only if it treats each row by itself, with
parameters that do not depend on the data. Otherwise one record changes all rows, and the
privacy loss of the model says nothing about the Pipeline.
"""

import numbers

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils.validation import check_is_fitted, validate_data

from .checks import check_choice, check_number


class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map each column from public bounds to [-1, 1]; values outside are clipped.

    The private counterpart of MinMaxScaler: it learns nothing from the data.

    Parameters
    ----------
    bounds : (float, float) or array-like of shape (n_features, 2), default=(0.0, 1.0)
        Lower and upper bound of all columns, or of each. They must come from knowledge
        of the field (an age is between 0 and 120), never from the records.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    Examples
    --------
    >>> from dpselect.preprocessing import BoundedScaler
    >>> BoundedScaler(bounds=[(0, 120), (30, 300)]).fit_transform([[60, 30], [200, 300]])
    array([[ 0., -1.],
           [ 1.,  1.]])
    """

    def __init__(self, bounds=(0.0, 1.0)):
        self.bounds = bounds

    def fit(self, X, y=None):
        """Check the bounds against the number of columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        X = validate_data(self, X, dtype=np.float64)
        self._limits(X.shape[1])
        return self

    def transform(self, X):
        """Scale rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Values in [-1, 1].
        """
        check_is_fitted(self, "n_features_in_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        low, high = self._limits(X.shape[1])
        return 2 * (np.clip(X, low, high) - low) / (high - low) - 1

    def _limits(self, n_features):
        bounds = np.asarray(self.bounds, dtype=np.float64)
        if bounds.shape not in ((2,), (n_features, 2)):
            raise ValueError(
                f"bounds of shape {bounds.shape} do not fit {n_features} columns; write one pair "
                "(low, high), or one pair for each column."
            )
        low, high = np.atleast_2d(bounds).T
        if not (np.isfinite(bounds).all() and (low < high).all()):
            raise ValueError(
                f"bounds={self.bounds!r} are not finite pairs low < high, so they bound nothing; "
                "write pairs from knowledge of the field, such as (0, 120) for an age."
            )
        return low, high


class NormClipper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale down every row whose norm is larger than a public bound.

    Parameters
    ----------
    norm : {"l2", "l1"}, default="l2"
    bound : float, default=1.0
        Largest norm of a row; shorter rows stay as they are.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    Examples
    --------
    >>> from dpselect.preprocessing import NormClipper
    >>> NormClipper(bound=2.0).fit_transform([[3.0, 4.0], [1.0, 0.0]])
    array([[1.2, 1.6],
           [1. , 0. ]])
    """

    def __init__(self, norm="l2", bound=1.0):
        self.norm = norm
        self.bound = bound

    def fit(self, X, y=None):
        """Check the parameters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        validate_data(self, X, dtype=np.float64, accept_sparse="csr")
        return self

    def transform(self, X):
        """Clip rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features)
        """
        check_is_fitted(self, "n_features_in_")
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        power = {"l1": 1, "l2": 2}[self.norm]
        magnitudes = abs(X) if power == 1 else (X.multiply(X) if sparse.issparse(X) else X * X)
        norms = np.asarray(magnitudes.sum(axis=1)).reshape(-1, 1) ** (1 / power)
        factor = np.where(norms > self.bound, self.bound / np.where(norms > 0, norms, 1.0), 1.0)
        return sparse.csr_array(X.multiply(factor)) if sparse.issparse(X) else X * factor

    def _check_parameters(self):
        check_choice("norm", self.norm, ("l2", "l1"), why="only these norms are known here")
        check_number(
            "bound", self.bound, why="it is the largest norm that a row may keep",
            instead="write a number greater than 0, such as 1.0",
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_pipeline_privacy(pipeline, trusted_steps=()):
    """Refuse a Pipeline with a step that learns from the data without paying for it.

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
    ValueError: Step 'standardscaler' (StandardScaler) learns from the data, so one record \
changes every row and the privacy loss of the model no longer holds; use \
dpselect.preprocessing.BoundedScaler with bounds from knowledge of the field.
    """
    if isinstance(pipeline, Pipeline):
        for name, step in pipeline.steps[:-1]:
            _check_step(name, step, tuple(trusted_steps))


def _check_step(name, step, trusted):
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return
    if name in trusted or type(step) in trusted:
        return
    if isinstance(step, Pipeline):
        inner = step.steps
    elif isinstance(step, FeatureUnion):
        inner = step.transformer_list
    elif isinstance(step, ColumnTransformer):
        _check_density(name, step)
        inner = [(label, part) for label, part, _ in step.transformers]
        inner.append(("remainder", step.remainder))
    else:
        inner = None
    if inner is not None:
        for label, part in inner:
            _check_step(label, part, trusted)
        return
    rule = DATA_INDEPENDENT.get(type(step))
    mend = _mend(step) if rule is None else rule(step)
    if mend is not None:
        raise ValueError(
            f"Step {name!r} ({type(step).__name__}) learns from the data, so one record changes "
            f"every row and the privacy loss of the model no longer holds; {mend}."
        )


def _check_density(name, step):
    # by default the container is sparse or dense according to how many entries are 0, which
    # unknown categories change, and the fitted transformer remembers it
    varies = any(
        isinstance(part, (FeatureHasher, HashingVectorizer))
        or (isinstance(part, OneHotEncoder) and part.sparse_output and part.handle_unknown != "error")
        for _, part, _ in step.transformers
    )
    if varies and step.sparse_threshold != 0:
        raise ValueError(
            f"Step {name!r} (ColumnTransformer) decides by the data whether its output is sparse, "
            "and releases the decision; write sparse_threshold=0."
        )


def _always(step):
    return None


def _gamma_is_given(step):
    return None if isinstance(step.gamma, numbers.Real) else "give gamma as a number"


def _categories_are_given(step):
    if isinstance(step.categories, str):
        return "give categories=[...], all values that each column may have"
    if step.min_frequency is not None or step.max_categories is not None:
        return "leave min_frequency and max_categories at None"
    return None


def _fills_a_constant(step):
    if step.strategy == "constant" and step.keep_empty_features and not step.add_indicator:
        return None
    return (
        'use SimpleImputer(strategy="constant", fill_value=..., keep_empty_features=True), with '
        "MissingIndicator(features='all') if missingness matters"
    )


def _marks_every_column(step):
    return None if step.features == "all" else "write features='all'"


# type -> what must be changed, or None when the step treats each row by itself
DATA_INDEPENDENT = {
    BoundedScaler: _always,
    NormClipper: _always,
    Binarizer: _always,
    FeatureHasher: _always,
    FunctionTransformer: _always,
    GaussianRandomProjection: _always,
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
    SparseRandomProjection: _always,
}

_SCALER = "use dpselect.preprocessing.BoundedScaler with bounds from knowledge of the field"
_PROJECTION = "use GaussianRandomProjection or RBFSampler, which draw their directions"
_COLUMNS = "choose the columns by knowledge of the field, with ColumnTransformer"
_CATEGORIES = "use OneHotEncoder(categories=[...]) with all values that each column may have"
MENDS = {
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
    "CountVectorizer": "use HashingVectorizer",
    "TfidfVectorizer": "use HashingVectorizer",
    "DictVectorizer": "use FeatureHasher",
}


def _mend(step):
    known = MENDS.get(type(step).__name__)
    return known or (
        "if it treats each row by itself with parameters that do not depend on the data, "
        f"name it in trusted_steps=[{type(step).__name__}]"
    )

"""Scaling and clipping by public bounds, row by row, without learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..records.records import numeric_rows
from ..rows import block_map
from ..utils.atomic import all_or_nothing
from ..utils.type_aliases import FloatArray, MatrixLike
from ..utils.validation import check_choice, size
from .column_places import column_places
from .plain_rows import clipping, scaling

# twice the difference of two bounds must not overflow float64
LARGEST_BOUND = float(np.finfo(np.float64).max) / 4


class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map each column from public bounds to [-1, 1]; values outside are clipped.

    The private counterpart of MinMaxScaler: it learns nothing from the data.

    Parameters
    ----------
    bounds : (float, float), array-like of shape (n_features, 2) or dict, default=None
        Lower and upper bound of all columns, or of each; by their names in a dict, which is in the
        order of the columns if these have none. They must be given, from knowledge
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
    >>> BoundedScaler({"age": (0, 120), "weight": (30, 300)}).fit_transform([[60, 30], [200, 300]])
    array([[ 0., -1.],
           [ 1.,  1.]])
    """

    reads = {"lazily": True}

    def __init__(self, bounds: npt.ArrayLike | Mapping[Any, Any] | None = None) -> None:
        self.bounds = bounds

    def fit(self, X: MatrixLike, y: Any = None) -> Self:
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
        with all_or_nothing(self):
            self.limits(numeric_rows(self, X, lazily=True).shape[1])
        return self

    def transform(self, X: MatrixLike) -> FloatArray:
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
        X = numeric_rows(self, X, lazily=True, reset=False)
        low, high = self.limits(X.shape[1])
        return _each(lambda rows: scale_to_bounds(rows, low, high), X)

    def to_sklearn(self) -> Pipeline:
        """Return an equal step of scikit-learn alone.

        Returns
        -------
        sklearn.pipeline.Pipeline
        """
        check_is_fitted(self, "n_features_in_")
        return scaling(*self.limits(self.n_features_in_), getattr(self, "feature_names_in_", None))

    def limits(self, n_features: int) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of all columns, in order.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        low, high : ndarray of shape (n_features,)

        Raises
        ------
        ValueError
            If `bounds` are none, or not those of so many columns.
        """
        given = self.bounds
        if given is None:
            raise ValueError(
                "bounds must be given, not None, because values outside are clipped, and bounds of "
                "other columns would clip all records to the same; write pairs from knowledge of the "
                "field, such as (0, 120) for an age."
            )
        if isinstance(given, Mapping):
            names = getattr(self, "feature_names_in_", None)
            places = column_places(given, names, n_features, "bounds")
            given = [pair for _, pair in sorted(zip(places, given.values()), key=lambda each: each[0])]
        try:
            bounds = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            bounds = np.empty(0)
        if bounds.shape not in ((2,), (n_features, 2)):
            raise ValueError(
                f"bounds of shape {bounds.shape} do not fit {n_features} columns; write one pair "
                "(low, high), or one pair for each column."
            )
        low, high = np.atleast_2d(bounds).T
        if not ((np.abs(bounds) <= LARGEST_BOUND).all() and (low < high).all()):
            raise ValueError(
                f"bounds={self.bounds!r} are not finite pairs low < high, so they bound nothing; "
                "write pairs from knowledge of the field, such as (0, 120) for an age."
            )
        return np.broadcast_to(low, n_features), np.broadcast_to(high, n_features)


def scale_to_bounds(X, low, high):
    """Clip columns to [low, high] and map them to [-1, 1]."""
    return 2 * (np.clip(X, low, high) - low) / (high - low) - 1


def clip_norms(X, power, bound):
    """Scale down rows whose l1 or l2 norm, according to `power`, exceeds a bound."""
    norms = _norms(X, power)
    factor = bound / np.maximum(norms, bound)
    huge = np.isinf(norms[:, 0])
    if huge.any():  # squares overflow, so the norm must be computed in other units
        largest = abs(X[huge]).max(axis=1)
        unit = (largest.toarray() if sparse.issparse(X) else largest).reshape(-1, 1)
        # the factor may be subnormal, and rounding it up could exceed the bound
        factor[huge] = np.nextafter(bound / _norms(_times(X[huge], 1 / unit), power) / unit, 0)
    return _times(X, factor)


def _norms(X, power):
    with np.errstate(over="ignore"):
        magnitudes = abs(X) if power == 1 else (X.multiply(X) if sparse.issparse(X) else X * X)
        return np.asarray(magnitudes.sum(axis=1)).reshape(-1, 1) ** (1 / power)


def _times(X, factor):
    return sparse.csr_array(X.multiply(factor)) if sparse.issparse(X) else X * factor


def _each(function, X):
    """Return ``function(X)`` as float64, block by block, which needs only one copy."""
    return function(X.astype(np.float64, copy=False)) if sparse.issparse(X) else block_map(function, X)


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

    reads = {"lazily": True}

    def __init__(self, norm: Literal["l2", "l1"] = "l2", bound: float = 1.0) -> None:
        self.norm = norm
        self.bound = bound

    def fit(self, X: MatrixLike, y: Any = None) -> Self:
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
        with all_or_nothing(self):
            numeric_rows(self, X, lazily=True, accept_sparse="csr")
        return self

    def transform(self, X: MatrixLike) -> Any:
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
        X = numeric_rows(self, X, lazily=True, accept_sparse="csr", reset=False)
        power, bound = {"l1": 1, "l2": 2}[self.norm], float(self.bound)
        return _each(lambda rows: clip_norms(rows, power, bound), X)

    def to_sklearn(self) -> Pipeline:
        """Return an equal step of scikit-learn alone.

        Returns
        -------
        sklearn.pipeline.Pipeline
        """
        check_is_fitted(self, "n_features_in_")
        self._check_parameters()
        bounds = {self.norm: float(self.bound)}
        return clipping(bounds, self.n_features_in_, getattr(self, "feature_names_in_", None))

    def _check_parameters(self):
        check_choice("norm", self.norm, ("l2", "l1"), why="only these norms are known here")
        check = size(
            why="it is the largest norm that a row may keep, and its square has to be a number of "
            "float64",
            instead="write a number from 1e-100 to 1e100, such as 1.0",
        )
        check("bound", self.bound)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

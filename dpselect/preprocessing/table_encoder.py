"""Encode a table of numbers and categories as rows for a linear model, by a public schema alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from ..records.training import remember
from ..rows import (
    SlicedRows,
    TableRows,
    as_lazy,
    block_map,
    collect,
    dummy_rows,
    is_lazy,
    map_rows,
    row_blocks,
)
from ..utils.atomic import all_or_nothing
from ..utils.parameters import QuickParamsMixin, keep_params
from ..utils.type_aliases import Array, MatrixLike
from ..utils.validation import check_choice, unquoted
from .column_places import column_places
from .encoder_checks import check_parameters
from .plain_tables import plain_encoder
from .schema import PublicSchema
from .table_encoding import TableEncoding
from .table_form import as_array, list_columns
from .table_terms import TableTerms, total_lengths

# key for all columns, which no column has as its name
EVERY = ("every column",)
# a model reads rows that are not stored as CSR arrays if so many times their entries are no more than
# their features; found by experiment
SPARSER = 8


class TableEncoder(TransformerMixin, QuickParamsMixin, BaseEstimator):
    """Encode a table as rows for a linear model, by public knowledge about its columns.

    Alone it learns nothing from the records, and encodes each by itself. A number is clipped to its
    bounds, transformed, scaled and expanded; a category becomes a code; so a linear model of the rows
    is an *additive* model of the columns, with a curve for each number and a level for each category.
    How long a row can be, and seldom is, is known in advance (:meth:`max_norm`, :meth:`typical_norm`):
    the noise of a private model is proportional to it.

    Read more in :doc:`/tables`.

    Parameters
    ----------
    schema : dict, PublicSchema, path of a JSON file, or one entry for all columns
        What is public of the columns: see :class:`PublicSchema`. One pair of bounds, or one list
        of categories, serves all columns, as ``(0, 255)`` does for pixels.
    expansion : {"auto", "linear"} or int, default="auto"
        What becomes of a number z between 0 and 1: 2 z - 1, or the features k^(-1/2) cos(pi k z) for
        k = 1, ..., K. A periodic number has waves of its period, i^(-1/2) cos(2 pi h z) for i = 2 h - 1
        and i^(-1/2) sin(2 pi h z) for i = 2 h, in even number: K or K + 1, at least 4; with "linear" 2.
        The ridge penalty of a model smooths its curves. Each feature adds noise: "auto" takes 4 cosines
        where the schema and `n_epsilon` allow for them, and else 2; see Notes. A column of 0 and 1 is
        better called a list of two categories, and has one feature.
    n_epsilon : float, default=None
        What "auto" goes by: the number of records times the epsilon with which the model will be
        trained, divided by the number of its classes if there are more than two; both public, greater
        than 0. A :class:`TabularPipeline` writes it at each fit. None stands for 2 cosines.
    n_mu : float, default=None
        If the model has a delta: the number of records times the parameter mu of Gaussian noise that is
        (epsilon, delta)-private, divided by the root of the number of classes if there are more than
        two. A :class:`TabularPipeline` writes it at each fit. None if the model has no delta.
    class_share : float, default=None
        A public guess of the share of records that one of two classes has, between 0 and 1: the rarer
        one is, the fewer columns "first" takes. A :class:`TabularPipeline` writes the `base_rate` of a
        classifier that is a number. None stands for 1/2, and for regressions.
    columns : list of str or "first", default=None
        Columns of the schema that are read; others are ignored. None reads all. "first" is for a schema
        in the order of importance, by knowledge of the field: it reads as many of the first columns as
        `n_epsilon` allows for, at least two, and all if `n_epsilon` is None; see Notes. Pairs and cuts
        of other columns are left out.
    categories : {"auto", "simplex", "onehot"}, default="auto"
        Codes of K categories: the corners of a simplex around 0, in K - 1 columns, whose squared norm
        is 1 - 1/K; or a column for each, with an l1 norm of 1. "auto" takes those for which the noise
        of a linear model is shorter, by the schema: the simplex for a few short lists, and a column
        for each for long ones. A value that is not listed is 0 in all columns of either, unless the
        schema says ``"unknown": True``.
    cut_points : dict, default=None
        Of columns of numbers that are cut into categories, from the name to ascending numbers between
        the bounds. A number at a cut belongs to the upper part.
    pairs : list of (str, str) or "auto", default=()
        Columns between which there is an interaction. A pair has all products of the features of two
        factors: cos(pi z) of a number, or cos(2 pi z) and sin(2 pi z) of a periodic one, and the code of
        a category or of a number that is cut. All pairs have the same typical l2 norm, and its square is
        for all together a quarter of that of all other terms. "auto" takes all pairs of numbers where
        the schema and `n_epsilon` allow for them, and else none; see Notes.
    n_fourier : int, default=0
        Random features sqrt(2 / n_fourier) cos(w . x + b) of all numbers x = 2 z - 1 together, which
        approximate the kernel ``exp(-gamma ||x - x'||^2)``. They mix columns, and have no picture.
    gamma : float, default=1.0
        Of this kernel.
    random_state : int, default=0
        Seed of the random features: a public number.
    sparse_output : bool, default=False
        Whether rows in memory are encoded as a CSR matrix, for "onehot" with many categories.
    ranges : {"auto"}, default=None
        "auto" learns narrower bounds of numbers privately, inside those of the schema, with a tenth of
        the budget of a :class:`TabularPipeline`; see Notes. None keeps to the schema.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Whether a category that the schema does not list, or a gap that it does not declare, is 0 in all
        columns of its code, or refused. Whether a table is refused tells of its records, so "error" is
        for whoever holds them. An export ignores them.

    Attributes
    ----------
    schema_ : PublicSchema
        Of the columns that are read, by name; with the bounds that were learned, if any were.
    columns_ : tuple of str
        Their names: all, `columns`, or what "first" took.
    expansion_ : "linear" or int
        What was made of numbers: `expansion`, or what "auto" took.
    pairs_ : tuple of (str, str)
        The pairs: `pairs`, or what "auto" took.
    terms_ : tuple of Term
        The parts of the additive model: each has the names of its `columns`, the places of its
        features in a row (`outputs`, a slice), `names`, and ``at(*values)``, the features at
        values of the columns, such as ``values()``.
    privacy_ : PrivacyLoss
        What was spent on ranges that were learned; else there is none.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    See Also
    --------
    PublicSchema : What may be said of a column.
    BoundedScaler : Numbers alone, each between -1 and 1.

    Notes
    -----
    Cells mean the same however they are stored: 1, 1.0, True and "1" are one category, and
    text that reads as a number is one. A category that a table spells in capitals or in another Unicode
    form ("Nurse" for "nurse") is the listed one, unless that could be two. A column of numbers or
    booleans is refused where the schema lists texts alone. None, nan, NA and the texts that
    ``pandas.read_csv`` takes for gaps, "?", "-" and "." (unless listed as categories) are gaps. A
    missing number is its `fill` and 1 in a column of its own; without a fill its other features are 0. A
    missing category is a level of its own if the schema says so, and else like one that is not listed.

    "auto" divides `n_epsilon` by the mean length of the noise of a linear model of the rows, in units of
    their :meth:`typical_norm`: at most the number of columns. With `n_mu` it is `n_mu` over the root of
    the number of columns, if that is more. It takes 4 cosines if, with them, that is
    300 or more. The page "Rows of tables" has the experiment. ``pairs="auto"`` takes the pairs if there
    are at most 8 for each number and one more for each level of a category, and this number is 300 or
    more with them.

    ``columns="first"`` reads the most columns with which this number, at 2 cosines each and without
    pairs, is 30 or more, after it is multiplied by 4 s (1 - s) with s = `class_share`.

    ``ranges="auto"`` releases noisy means of u and 2 u^2 - 1 of each number u = 2 z - 1, and takes the 2
    and 98 % quantiles of the Beta law that has them for bounds. Periodic numbers, dates and numbers that
    are cut keep theirs. It learns nothing where the noise of a mean is above 0.12, which public numbers
    decide, or epsilon is infinite; the whole budget then trains. It helps where bounds are much too
    wide, and costs where what matters lies in a tail.

    Name a pair where one column changes what another one means: the hour and whether it is a working
    day. Where this number is below 60, with the pairs, they may cost more than they tell.

    Examples
    --------
    >>> import math
    >>> from dpselect.preprocessing import TableEncoder
    >>> schema = {"age": (0, 120), "job": ["farmer", "clerk"], "income": {
    ...     "bounds": (0, 1e6), "transform": "log1p", "missing": True}}
    >>> encoder = TableEncoder(schema, expansion="linear")
    >>> encoder.fit_transform([[60, "clerk", None], [130, "farmer", 1e6]]).round(2)
    array([[ 0.  , -0.71,  0.  ,  1.  ],
           [ 1.  ,  0.71,  1.  ,  0.  ]])
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'job_code1', 'income', 'income_missing']
    >>> math.isclose(encoder.typical_norm("l2") ** 2, 1 / 3 + 1 / 2 + 1 / 3)
    True
    """

    reads = {"lazily": True}

    def __init__(
        self,
        schema: Any,
        *,
        expansion: Literal["auto", "linear"] | int = "auto",
        n_epsilon: float | None = None,
        n_mu: float | None = None,
        class_share: float | None = None,
        columns: Any = None,
        categories: Literal["auto", "simplex", "onehot"] = "auto",
        cut_points: Mapping[Any, npt.ArrayLike] | None = None,
        pairs: Any = (),
        n_fourier: int = 0,
        gamma: float = 1.0,
        random_state: int = 0,
        sparse_output: bool = False,
        ranges: Literal["auto"] | None = None,
        handle_unknown: Literal["ignore", "error"] = "ignore",
    ) -> None:
        self.schema = schema
        self.expansion = expansion
        self.n_epsilon = n_epsilon
        self.n_mu = n_mu
        self.class_share = class_share
        self.columns = columns
        self.categories = categories
        self.cut_points = cut_points
        self.pairs = pairs
        self.n_fourier = n_fourier
        self.gamma = gamma
        self.random_state = random_state
        self.sparse_output = sparse_output
        self.ranges = ranges
        self.handle_unknown = handle_unknown

    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Check the parameters, and find the columns of the schema in X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, a list, a dataframe of pandas or polars, an Arrow table, or rows that are read
            lazily. Columns of dataframes and Arrow tables are known by their names, those of other
            tables by their places.
        y : None
            Ignored.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the schema or another parameter is wrong, or X has other columns than the schema.
        """
        with all_or_nothing(self):
            if hasattr(self, "privacy_"):
                del self.privacy_
            self._table(X, reset=True)
            known = self.public_schema()
            if self.ranges is not None:
                raise ValueError(
                    f"ranges={self.ranges!r} is learned privately by the fit of a TabularPipeline, or "
                    "of a StabilityGridSearchCV of one, and elsewhere a TableEncoder has no epsilon for "
                    "it; write tabular_pipeline(schema, model, ranges='auto'), or ranges=None."
                )
            made = self._made(known)
            self.schema_, self.columns_ = made.schema, tuple(made.schema.columns)
            names = getattr(self, "feature_names_in_", None)
            self._places = column_places(
                known.columns, names, self.n_features_in_, "schema", read=self.schema_.columns
            )
            self.expansion_, self.pairs_, self.terms_ = made.expansion, made.pairs, made.terms
        keep_params(self)
        remember(self, X)
        return self

    def transform(self, X: MatrixLike) -> Any:
        """Encode records, each by itself.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_features_out)

        Raises
        ------
        ValueError
            If a column of numbers holds something else, an infinite number, or a gap that the schema
            does not allow; the message names the column.
        """
        check_is_fitted(self, "terms_")
        given_lazily = is_lazy(X)
        X = self._table(X, reset=False)
        if given_lazily:  # a TabularPipeline gave lazy rows, for a model that reads blocks
            if isinstance(X, TableRows):
                encoding, shape = self._encoding(X.X), (len(X), self._n_outputs())
                if SPARSER * encoding.n_entries <= shape[1]:
                    return SlicedRows(encoding.sparse, shape, encoding.n_entries)
                return self._sliced(encoding)
            return self._by_chunk(X)
        if is_lazy(X):
            # each chunk in its own container: an array of mixed columns would hold objects
            rows = self._by_chunk(X)
            return rows.to_dask() if hasattr(rows, "to_dask") else block_map(np.asarray, rows)
        encoding = self._encoding(X)
        if self.sparse_output:
            encoded = encoding.sparse(slice(None))
            encoded.eliminate_zeros()
            return encoded
        # block by block, so that memory is needed for the result only
        blocks = row_blocks(len(X), self._n_outputs()) or [slice(0)]
        return collect(map(encoding, blocks), len(X))

    def get_feature_names_out(self, input_features: npt.ArrayLike | None = None) -> Array:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Checked against the names of the columns.

        Returns
        -------
        ndarray of str, shape (n_features_out,)
        """
        check_is_fitted(self, "terms_")
        if input_features is not None:
            given = np.asarray(input_features, dtype=object)
            if given.shape != (self.n_features_in_,):
                raise ValueError("input_features should have length equal to number of features.")
            if not np.array_equal(given, getattr(self, "feature_names_in_", given)):
                raise ValueError("input_features is not equal to feature_names_in_.")
        return np.array([name for term in self.terms_ for name in term.names], dtype=object)

    def to_sklearn(self) -> ColumnTransformer:
        """Return an equal encoder of scikit-learn alone; its rows are dense.

        Returns
        -------
        sklearn.compose.ColumnTransformer

        Raises
        ------
        ValueError
            If a category is written as a gap is, such as "None".
        """
        check_is_fitted(self, "terms_")
        places = dict(zip(self.schema_.columns, self._places))
        names = getattr(self, "feature_names_in_", None)
        return plain_encoder(self.terms_, places, self.n_features_in_, names)

    def max_norm(self, norm: Literal["l1", "l2"] = "l2") -> float:
        """Return the norm that no row can exceed, up to rounding.

        It is read off the parameters; if the schema is one entry for all columns, fit the encoder
        first.

        Parameters
        ----------
        norm : {"l1", "l2"}, default="l2"

        Returns
        -------
        float
        """
        check_choice("norm", norm, ("l1", "l2"), why="only these norms are known here")
        lengths = self._lengths()
        return lengths.max_l1 if norm == "l1" else lengths.max_l2_squared**0.5

    def typical_norm(self, norm: Literal["l1", "l2"] = "l2") -> float:
        """Return the norm of rows whose numbers are uniform between their bounds.

        A bound for a private model: a larger one adds noise, and longer rows are scaled down to it.
        Where numbers lie in the middle of their bounds few rows are longer; where most are at a bound,
        as amounts that are mostly 0, all may be, by about the same factor. Bounds on both sides of the
        usual value make them short. It is the mean l1 norm, or the root of the mean squared l2 norm;
        categories count with their largest, and a missing number like any other.

        Parameters
        ----------
        norm : {"l1", "l2"}, default="l2"

        Returns
        -------
        float
        """
        check_choice("norm", norm, ("l1", "l2"), why="only these norms are known here")
        return self.typical_norms()[norm == "l1"]

    def typical_norms(self) -> tuple[float, float]:
        """Return the l2 norm and the l1 norm of :meth:`typical_norm`.

        Returns
        -------
        (float, float)
        """
        lengths = self._lengths()
        return lengths.typical_l2_squared**0.5, lengths.typical_l1

    def _lengths(self):
        return total_lengths(self._made(self.public_schema()).terms)

    def declared(self, names: Any, n_columns: int) -> list[Any] | None:
        """Return the schema of each column of a table by position, or None if it has other columns.

        Parameters
        ----------
        names : list of str or None
            Of the columns, if they have any.
        n_columns : int

        Returns
        -------
        list of NumberColumn or CategoryColumn, or None
        """
        known = self._given_schema().columns
        if EVERY in known:
            names = [f"x{j}" for j in range(n_columns)] if names is None else names
            return [replace(known[EVERY], name=name) for name in names]
        if names is None:
            return list(known.values()) if len(known) == n_columns else None
        fits = len(names) == n_columns and set(names) == set(known) and len(names) == len(known)
        return [known[name] for name in names] if fits else None

    def _made(self, schema):
        check_parameters(self, schema)
        return TableTerms.of(self, schema)

    def public_schema(self) -> PublicSchema:
        """Return what is public of all columns, also of those that are not read.

        Returns
        -------
        PublicSchema

        Raises
        ------
        NotFittedError
            If one entry serves all columns, and their number is not known.
        ValueError
            If the schema is wrong.
        """
        schema = self._given_schema()
        if EVERY not in schema.columns:
            return schema
        check_is_fitted(self, "n_features_in_")
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return PublicSchema(dict.fromkeys(names, schema.columns[EVERY]))

    def _given_schema(self):
        given = self.schema
        if isinstance(given, PublicSchema):
            return given
        if isinstance(given, (str, os.PathLike)):
            return PublicSchema.from_json(given)
        return PublicSchema(given if isinstance(given, Mapping) else {EVERY: given})

    def _table(self, X, reset):
        """Check shape and names of a table, and return it, lazily if it is not in memory."""
        X = as_lazy(X)
        if not (is_lazy(X) or sparse.issparse(X) or hasattr(X, "columns")):
            X = as_array(X)
        form = dummy_rows(X) if is_lazy(X) else X
        if not hasattr(form, "columns"):
            # sparse matrices and complex numbers are refused
            kind = complex if form.dtype.kind == "c" else float
            zeros = form if sparse.issparse(form) else np.broadcast_to(np.zeros((), kind), form.shape)
            unquoted(check_array, zeros, estimator=type(self).__name__, input_name="X")
        unquoted(validate_data, self, form, reset=reset, skip_check_array=True)
        return X

    def _by_chunk(self, X):
        """Return lazy rows that are encoded in each pass."""
        # workers hold random features, which take long to make
        if self.n_fourier or not hasattr(X, "to_dask"):
            return map_rows(self._dense, X, (self._n_outputs(),))
        return X.map_slices(self._on_a_worker, (self._n_outputs(),))

    def _on_a_worker(self, X):
        """Return the rows of a chunk, of which sums read a slice at a time."""
        return self._sliced(self._encoding(X))

    def _sliced(self, encoding):
        shape = encoding.n_records, self._n_outputs()
        if encoding.n_coded < shape[1]:
            return SlicedRows(encoding, shape, encoding.n_coded, encoding.coded)
        return SlicedRows(encoding, shape)

    def _dense(self, X):
        """Return the rows of a chunk in the order of C, in which workers need them."""
        encoding = self._encoding(X)
        rows = np.empty((encoding.n_records, self._n_outputs()))
        for part in row_blocks(*rows.shape):
            rows[part] = encoding(part)
        return rows

    def _encoding(self, X):
        columns = list_columns(X)
        known = self.schema_.columns
        columns = {name: columns[j] for name, j in zip(known, self._places)}
        strict = getattr(self, "handle_unknown", "ignore") == "error"  # older models have none
        return TableEncoding(self.terms_, columns, known, strict)

    def _n_outputs(self):
        return self.terms_[-1].outputs.stop

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        try:
            # once fitted, without reading the schema anew: scikit-learn asks several times a prediction
            columns = getattr(self, "schema_", None) or self._given_schema()
            columns = columns.columns.values()
        except ValueError:  # `fit` raises it
            columns = ()
        tags.input_tags.allow_nan = any(column.missing for column in columns)
        return tags

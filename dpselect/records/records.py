"""Records as estimators take them: checked as scikit-learn does, without quoting them in an error.

Whether they are finite is checked by this library alone: a setting of scikit-learn turns its check off.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..config import warn_caller
from ..exceptions import PrivacyLeakWarning
from ..rows import (
    align,
    block_map,
    block_sum,
    by_columns,
    checked_rows,
    distinct,
    dummy_rows,
    gathered,
    in_memory,
    is_lazy,
    n_rows,
    on_labels,
    take,
    take_records,
)
from ..utils.atomic import all_or_nothing
from ..utils.finite import check_finite
from ..utils.validation import unquoted
from .persons import Persons
from .public_shape import PublicShape


def warn_if_labels_learned(classes, owner):
    """Warn, before any label is read, if no public list of labels is given.

    Parameters
    ----------
    classes : None or array-like
        As given to `owner`.
    owner : str
        Name of the estimator, for the message.
    """
    if classes is None:
        warn_caller(
            f"{owner} with classes=None learns the set of labels from y, which the privacy loss "
            "does not cover; give classes=[...] with all labels that a record may have.",
            PrivacyLeakWarning,
        )


def numeric_rows(estimator, X, y="no_validation", lazily=False, ensure_all_finite=True, **checks):
    """Check rows as scikit-learn does, as float64, without quoting them in an error.

    Short numbers in memory keep their type for an estimator that reads them lazily: block by block they
    become float64.

    Parameters
    ----------
    estimator : estimator
        Learns the number and names of the columns.
    X, y
        As given to the estimator.
    lazily : bool, default=False
        Whether the estimator reads rows by :mod:`dpselect.rows` alone. Rows that are not in memory
        then are checked whenever they are read, and only their shape and names are here.
    ensure_all_finite : bool or "allow-nan", default=True
        As scikit-learn has it, but checked by :func:`~dpselect.utils.finite.check_finite`. y is
        finite always.
    **checks : dict
        For :func:`sklearn.utils.validation.validate_data`.

    Returns
    -------
    X, or X and y
    """
    alone = isinstance(y, str) and y == "no_validation"
    checks.pop("y_numeric", None)  # an option of scikit-learn for y only
    if lazily:
        X = by_columns(X)
    if lazily or not isinstance(X, np.ndarray) or is_lazy(y):
        X, y = align(X, None if alone else y)
    if is_lazy(X):
        reset, owner = checks.pop("reset", True), type(estimator).__name__
        unquoted(
            validate_data,
            estimator,
            dummy_rows(X),
            dtype=np.float64,
            reset=reset,
            ensure_all_finite=False,
            **checks,
        )
        X = checked_rows(X, owner, ensure_all_finite, **checks)
        if not lazily:
            X = gathered(X, owner)
        return X if alone else (X, one_label_a_row(y, owner))
    what = "X" if alone else "X or y"
    # validate_data refuses missing labels
    labels = None if y is None and not alone else "no_validation"
    validate = partial(unquoted, validate_data, estimator, X, labels, what=what)
    finite = partial(check_finite, name="X", allow_nan=ensure_all_finite == "allow-nan")
    if _is_table(X) and checks.keys() <= {"accept_sparse", "reset"}:
        if ensure_all_finite:
            unquoted(finite, X, what=what)
        validate(skip_check_array=True, reset=checks.get("reset", True))
    else:
        short = lazily and _are_short_numbers(X)
        dtype = [np.float64, X.dtype] if short else np.float64
        with all_or_nothing(estimator):
            X = validate(dtype=dtype, ensure_all_finite=False, **checks)
            if ensure_all_finite:
                unquoted(finite, X, what=what)
    if alone or y is None:
        return X
    y = _finite_column(y, what=what)
    unquoted(check_consistent_length, X, y, what=what)
    return X, y


def _finite_column(y, what="y", warn=True):
    """Return labels as a finite array of shape (n,)."""
    # a numeric array needs no other check
    if not _is_column(y):
        y = unquoted(column_or_1d, y, warn=warn, what=what)
    unquoted(check_finite, y, "y", what=what)
    return y


def _is_column(y):
    """Return whether labels already have the form that scikit-learn's checks return."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf"


def _is_table(X):
    """Return whether rows have the form that scikit-learn's checks return, NaN and infinity aside."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype == np.float64 and X.size > 0


def _are_short_numbers(X):
    """Return whether each block of an array or sparse matrix can become float64 when it is read."""
    known = type(X) is np.ndarray or sparse.issparse(X)
    return known and X.dtype.kind in "biuf" and X.dtype.itemsize <= 8


@dataclass(frozen=True)
class Records:
    """Checked records.

    Attributes
    ----------
    X : ndarray, CSR matrix or lazy rows of shape (n, p)
    y : array of shape (n,), or None
        Labels, or targets of float64.
    public : dict
        Attributes of every model that is trained on them: `n_features_in_`, `feature_names_in_` and
        `classes_` where there are any.
    weight : array of shape (n,), or None
        How often each counts, 0 or more.
    persons : Persons or None
        Whose rows they are; None if each row is a person.
    """

    X: Any
    y: Any
    public: dict
    weight: Any = None
    persons: Persons | None = None

    @classmethod
    def of(cls, estimator, X, y=None, **public):
        """Make Records from arrays that `estimator` has checked."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                public[name] = getattr(estimator, name)
        return cls(X, y, public)

    @property
    def classes(self):
        """ndarray of shape (K,) : The sorted public labels of a classification."""
        return self.public["classes_"]

    @property
    def shape(self):
        """PublicShape : The public shape of the records."""
        K = len(self.public.get("classes_", ()))
        n, p = self.X.shape
        if self.persons is not None:
            n = self.persons.n
        return PublicShape(n, p, K if K > 2 else 1, self.persons is not None)


@dataclass(frozen=True)
class Weighted:
    """Labels or targets with the weights of their records, and the ids of their persons, cut together.

    Takes the place of `y` on the way to an estimator that has ``fit(X, y, sample_weight, groups=...)``.

    Attributes
    ----------
    y, weight, groups : array of shape (n,), or None
    """

    y: Any
    weight: Any = None
    groups: Any = None

    @classmethod
    def of(cls, y, weight=None, groups=None):
        """Return `y` together with weights and ids, or `y` alone if there are none."""
        return y if weight is None and groups is None else cls(y, weight, groups)

    @property
    def shape(self):
        """tuple : Shape of the labels, which may be missing."""
        return (len(self),) if self.y is None else self.y.shape

    def __len__(self):
        return len(self.groups if self.y is None else self.y)

    def __getitem__(self, indices):
        return Weighted(
            *(
                part if part is None else take(part, indices)
                for part in (self.y, self.weight, self.groups)
            )
        )

    def __array__(self, dtype=None, copy=None):
        # scores give each record the same weight
        return np.asarray(self.y, dtype=dtype)


def split_weights(y):
    """Return the labels and their weights, or None for these."""
    return (y.y, y.weight) if isinstance(y, Weighted) else (y, None)


def split_groups(y):
    """Return the labels, with their weights if there are any, and the ids of their persons, or None."""
    return (Weighted.of(y.y, y.weight), y.groups) if isinstance(y, Weighted) else (y, None)


def take_part(X, y, part):
    """Return the rows and labels of a part of the records, or of the persons that have numbers."""
    groups = split_groups(y)[1]
    return take_records(X, y, part if groups is None else np.flatnonzero(np.isin(groups, part)))


def score_on(score, model, X, y):
    """Return the score by which a model is compared."""
    return on_records(score.comparison, model, X, y)


def on_records(function, model, X, y):
    """Return ``function(model, X, labels)`` of records of one weight, or of persons."""
    y, groups = split_groups(y)
    labels = split_weights(y)[0]
    if groups is None:
        return function(model, X, labels)
    return function(model, X, labels, sample_weight=Persons.of(groups, X).weight)


def check_weights_are_bounded(owner, largest, what):
    """Refuse weights of records if their bound is not given; `what` is what a record would move."""
    if largest is None:
        raise ValueError(
            f"sample_weight needs a public bound, and {owner} has max_sample_weight=None, because one "
            f"record could move {what} by any amount; write max_sample_weight=..., a number that few "
            "weights exceed, from knowledge of how they are made."
        )


def check_weights(weight, X):
    """Return the weights of rows as an array of float64 of shape (n,), lazy if the rows are."""
    X, weight = align(X, weight)
    if not is_lazy(weight):
        weight = unquoted(np.asarray, weight, what="sample_weight")
        if weight.shape != (n_rows(X),):
            raise ValueError(
                "sample_weight must have one number for each row of X; give an array of shape "
                "(n_samples,)."
            )
    return on_labels(_as_weights, weight)


def fractions_of_largest(weight, X, largest):
    """Return the weights of rows, clipped to `largest`, as fractions of it: shape (n,), in [0, 1]."""
    # the quotient of a number and one that is no less is rounded to at most 1
    return block_map(lambda w: np.minimum(w, largest) / largest, check_weights(weight, X))


def _as_weights(weight):
    if weight.dtype.kind not in "biufO":
        raise ValueError("sample_weight must hold numbers; give an array of them.")
    weight = unquoted(weight.astype, np.float64, what="sample_weight")
    if not ((weight >= 0) & (weight < math.inf)).all():
        raise ValueError(
            "sample_weight holds a negative, infinite or missing number, with which the loss is not "
            "convex; give weights of 0 or more."
        )
    return weight


def table_records(estimator, X, **reads):
    """Return the checked rows of an estimator that has no labels."""
    return Records.of(estimator, numeric_rows(estimator, X, **reads))


def classification_records(estimator, X, y, **reads):
    """Return the checked rows and labels of a classifier with a parameter `classes`."""
    owner = type(estimator).__name__
    if estimator.epsilon != math.inf:  # at epsilon=inf nothing is protected
        warn_if_labels_learned(estimator.classes, owner)
    X, y = numeric_rows(estimator, X, y, **reads)
    return Records.of(estimator, X, y, classes_=public_classes(y, estimator.classes, owner))


def regression_records(estimator, X, y, lazily=False, **reads):
    """Return the checked rows, and targets as float64."""
    owner = type(estimator).__name__
    X, y = align(X, y)
    if not is_lazy(X):
        y = as_targets(owner, one_label_a_row(y, owner))
        X = numeric_rows(estimator, X, lazily=lazily, **reads)
        unquoted(check_consistent_length, X, y, what="y")
        return Records.of(estimator, X, y)
    X, y = numeric_rows(estimator, X, y, lazily, **reads)
    return Records.of(estimator, X, on_labels(partial(as_targets, owner), y))


def as_targets(owner, y):
    """Return the targets of a regression as float64."""
    if y.dtype.kind not in "biufO":
        raise ValueError(f"y must hold numbers, because {owner} is a regression; encode it first.")
    y = unquoted(y.astype, np.float64, what="y")
    check_finite(y, "y")  # casting to float64 may have made NaN or infinity
    return y


def one_label_a_row(y, owner):
    """Return the labels as an array of shape (n,), or refuse missing and infinite ones."""
    if y is None:
        raise ValueError(
            f"{owner} requires y to be passed, but the target y is None; give one label a row."
        )
    y = in_memory(y)
    return on_labels(partial(_column, not is_lazy(y)), y)


def _column(warn, y):
    y = _finite_column(y, warn=warn)
    if y.dtype == object:
        # labels that cannot be sorted would stop a fit half-way
        unquoted(np.unique, y, what="y")
    return y


def public_classes(y, classes, owner):
    """Return the sorted labels, learning them from `y` when not given.

    That is a leak: see :func:`warn_if_labels_learned`.

    Parameters
    ----------
    y : array of shape (n,)
        As :func:`one_label_a_row` returns it.
    classes : None or array-like of shape (K,)
        The public labels.
    owner : str
        Name of the estimator, for messages.

    Returns
    -------
    ndarray of shape (K,)

    Raises
    ------
    ValueError
        If fewer than two labels remain, or `y` holds a label that is not in `classes`.
    """
    if classes is None:
        # check_classification_targets casts numbers to integers, which may overflow
        labels = distinct(y)
        with np.errstate(invalid="ignore"):
            check_classification_targets(labels)
        if len(labels) < 2:
            raise ValueError(
                f"y holds only one class and classes=None, so {owner} cannot know the other; "
                "give classes=[...] with all labels that a record may have."
            )
        return labels
    labels = check_classes(classes)
    # an empty y is refused together with the rows
    if len(y) and block_sum(partial(_n_unknown, labels), y)[0]:
        if y.dtype.kind in "iu" and labels.dtype.kind not in "biuf":
            raise ValueError(
                "y holds whole numbers and classes other labels, as if the caller had coded the labels "
                "as 0, 1 and so on, which cross_val_predict and VotingClassifier do; write whole "
                "numbers as labels, in y and in classes."
            )
        raise ValueError(
            "y holds a label that is not in classes, or a gap, and a model of labels beyond the public "
            "ones would reveal them; add every label that a record may have to classes."
        )
    return labels


def _n_unknown(labels, y):
    # a lookup table would pay off only for more labels than there are classes
    return (np.count_nonzero(np.isin(y, labels, invert=True, kind="sort")),)


def check_classes(classes):
    """Return the labels sorted, or refuse a list without two different ones.

    None passes, and is returned.
    """
    if classes is None:
        return None
    given = np.asarray(classes)
    if given.ndim != 1:
        raise ValueError(
            f"classes of type {type(classes).__name__} is no list, so it does not list the labels; "
            "write a list of all labels, for instance classes=[0, 1]."
        )
    if len(given) < 2 or len(labels := np.unique(given)) != len(given):
        raise ValueError(
            "classes must list at least two different labels, because a classifier separates "
            "labels that are public knowledge; write for instance classes=[0, 1]."
        )
    return labels

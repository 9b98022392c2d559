"""What private estimators share: the released loss, and public labels."""

import inspect
import warnings
from functools import partial

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .config import get_config
from .exceptions import PrivacyLeakError, PrivacyLeakWarning, SeededNoiseWarning
from .ledger import CarriesLedgerMixin
from .noise import InnerStream, is_seeded
from .privacy import PrivacyLoss
from .rows import (
    align,
    block_sum,
    checked_rows,
    distinct,
    gathered,
    in_memory,
    is_lazy,
    made_up_rows,
    on_labels,
)
from .unquoted import unquoted


class PrivacyHTMLMixin(CarriesLedgerMixin):
    """What private estimators share; comes before BaseEstimator.

    It shows `privacy_` in notebooks, beneath scikit-learn's diagram, and pickles carry the ledger
    that is open.
    """

    privacy_: PrivacyLoss

    @property
    def _repr_html_(self):
        # an AttributeError where scikit-learn's `display` is "text"
        diagram = super()._repr_html_
        return lambda: diagram() + self._privacy_html()

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._privacy_html()
        return bundle

    def _privacy_html(self):
        loss = vars(self).get("privacy_")
        return "" if loss is None else loss._repr_html_()


def warn_caller(message, category):
    """Warn, and point to the line outside of this library that led here; in strict mode, raise.

    Parameters
    ----------
    message : str
        One sentence, without data.
    category : type
        A kind of warning. Those that say nothing of privacy stay warnings in strict mode.

    Raises
    ------
    PrivacyLeakError
        In strict mode, for a PrivacyLeakWarning or a SeededNoiseWarning: see
        :func:`dpselect.config_context`.
    """
    if get_config()["strict"] and issubclass(category, (PrivacyLeakWarning, SeededNoiseWarning)):
        raise PrivacyLeakError(message)
    # scikit-learn stands between where it calls back
    ours = (__name__.partition(".")[0] + ".", "sklearn.callback.")
    level, frame = 2, inspect.currentframe().f_back
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(ours):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def release_loss(estimator, what, delta=0.0):
    """Return the loss of one release by `estimator`, and warn if its noise was seeded.

    Parameters
    ----------
    estimator : estimator
        With parameters `epsilon` and `random_state`.
    what : str
        What is released, in words.
    delta : float, default=0.0
        Probability with which the loss may exceed epsilon.

    Returns
    -------
    PrivacyLoss
    """
    warn_if_seeded(estimator)
    noisy = estimator.epsilon != float("inf")
    return PrivacyLoss(
        float(estimator.epsilon),
        delta=float(delta) if noisy else 0.0,
        label=f"{type(estimator).__name__}: {what}",
        seeded=noisy and is_seeded(estimator.random_state),
    )


def refuse_fit_params(estimator, fit_params):
    """Refuse fit parameters such as `sample_weight`: no guarantee covers them."""
    if fit_params:
        raise TypeError(
            f"{type(estimator).__name__}.fit got {', '.join(sorted(fit_params))}, which would change "
            "how far one record can move the model; leave it out."
        )


def warn_if_seeded(estimator):
    """Warn if what `estimator` is about to release has noise that can be drawn again."""
    state = estimator.random_state
    # a search's inner fits are never released
    private = getattr(estimator, "epsilon", None) != float("inf")
    if is_seeded(state) and not isinstance(state, InnerStream) and private:
        warn_caller(
            f"{type(estimator).__name__} was given a random_state of type {type(state).__name__}: "
            "whoever knows the seed can remove the noise, so use random_state=None for anything "
            "that leaves your hands.",
            SeededNoiseWarning,
        )


def warn_if_labels_learned(classes, owner):
    """Warn, before any label is read, if there is no list of public ones.

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


def numeric_rows(estimator, X, y="no_validation", lazily=False, **checks):
    """Check rows as scikit-learn does, as float64, without quoting them in an error.

    Parameters
    ----------
    estimator : estimator
        Learns the number and names of the columns.
    X, y
        As given to the estimator.
    lazily : bool, default=False
        Whether the estimator reads rows by :mod:`dpselect.rows` alone. Rows that are not in memory
        then are checked whenever they are read, and only their shape and names are here.
    **checks : dict
        For :func:`sklearn.utils.validation.validate_data`.

    Returns
    -------
    X, or X and y
    """
    alone = isinstance(y, str) and y == "no_validation"
    if lazily or not isinstance(X, np.ndarray) or is_lazy(y):
        X, y = align(X, None if alone else y)
    if is_lazy(X):
        reset = checks.pop("reset", True)
        checks.pop("y_numeric", None)  # for y alone
        unquoted(
            validate_data, estimator, made_up_rows(X), dtype=np.float64, reset=reset, **checks
        )
        owner = type(estimator).__name__
        X = checked_rows(X, owner, **checks)
        if not lazily:
            X = gathered(X, owner)
        return X if alone else (X, one_label_a_row(y, owner))
    y = "no_validation" if alone else y
    what = "X" if alone else "X or y"
    return unquoted(validate_data, estimator, X, y, dtype=np.float64, what=what, **checks)


def regression_records(estimator, X, y):
    """Check rows, sparse ones too, and targets, and return both as float64."""
    owner = type(estimator).__name__
    X, y = align(X, y)
    if not is_lazy(X):
        y = one_label_a_row(y, owner)
        X, y = numeric_rows(estimator, X, y, lazily=True, accept_sparse="csr", y_numeric=True)
        return X, _as_targets(owner, y)
    X, y = numeric_rows(estimator, X, y, lazily=True, accept_sparse="csr")
    return X, on_labels(partial(_as_targets, owner), y)


def _as_targets(owner, y):
    if y.dtype.kind == "O":
        y = unquoted(y.astype, np.float64, what="y")
    if y.dtype.kind not in "biuf":
        raise ValueError(f"y must hold numbers, because {owner} is a regression; encode it first.")
    return y.astype(np.float64)


def one_label_a_row(y, owner):
    """Return the labels as an array of shape (n,), or refuse missing and infinite ones."""
    if y is None:
        raise ValueError(
            f"{owner} requires y to be passed, but the target y is None; give one label a row."
        )
    y = in_memory(y)
    return on_labels(partial(_column, not is_lazy(y)), y)


def _column(warn, y):
    y = unquoted(column_or_1d, y, warn=warn, what="y")
    assert_all_finite(y, input_name="y")
    if y.dtype == object:
        unquoted(np.unique, y, what="y")  # labels without an order would stop a fit half-way
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
        # it casts numbers to integers, too large ones included
        labels = distinct(y)
        with np.errstate(invalid="ignore"):
            check_classification_targets(labels)
        if len(labels) < 2:
            raise ValueError(
                f"y holds only one class and classes=None, so {owner} cannot know the other; "
                "give classes=[...] with all labels that a record may have."
            )
        return labels
    check_classes(classes)
    labels = np.unique(np.asarray(classes))
    # (no labels at all are refused with the rows)
    if len(y) and block_sum(lambda y: (np.sum(~np.isin(y, labels)),), y)[0]:
        raise ValueError(
            "y holds a label that is not in classes, and a model of labels beyond the public ones "
            "would reveal them; add every label that a record may have to classes."
        )
    return labels


def check_classes(classes):
    """Refuse a list of labels that does not have two different ones; None passes."""
    if classes is None:
        return
    given = np.asarray(classes)
    if given.ndim != 1 or len(given) < 2 or len(np.unique(given)) != len(given):
        raise ValueError(
            "classes must list at least two different labels, because a classifier separates "
            "labels that are public knowledge; write for instance classes=[0, 1]."
        )

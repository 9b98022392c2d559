"""Which records a model was trained on: known outside of the model, for as long as both live.

A score of a model on its own training records is an exact function of them, which no privacy loss
covers. To notice it, this module remembers where the records lie in memory: not in the model,
which goes out into the world, and without keeping the records.
"""

import math
import threading
import weakref
from functools import wraps
from typing import Any, cast

import numpy as np

from .config import warn_caller
from .exceptions import PrivacyLeakWarning
from .ledger import where_it_came_from
from .type_aliases import Function

# model -> Place; models count by identity, so copies and pickles have none
_TRAINED_ON: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
# far more than numpy needs for the slices that people write
MAX_WORK = 10_000
# whether this thread is in a method that has looked at X already
_local = threading.local()


class Place:
    """Where a table lies in memory, without keeping it.

    Parameters
    ----------
    X : ndarray, dataframe or sparse matrix
    """

    def __init__(self, X):
        # slices such as table[:, :-1] are new objects, and die early; what they look into lives
        self.owner = weakref.ref(_owner(X))
        if _is_plain(X):
            self.__array_interface__ = X.__array_interface__

    def overlaps(self, X):
        """Tell whether `X` shares a value with the table, or is it; never reads one."""
        owner = self.owner()
        # the address is good for as long as the owner lives
        if owner is None or owner is not _owner(X):
            return False
        if not (_is_plain(X) and hasattr(self, "__array_interface__")):
            return True
        try:
            return np.shares_memory(np.asarray(self), X, max_work=MAX_WORK)
        except np.exceptions.TooHardError:
            return False


def remember(model, X):
    """Remember that `model`, and what it contains if it is a search, was trained on X."""
    private = getattr(model, "epsilon", None) != math.inf
    for trained in (model, getattr(model, "best_estimator_", model)):
        _TRAINED_ON.pop(trained, None)
        if private and _has_place(X):
            _TRAINED_ON[trained] = Place(X)


def share_records(model, twin):
    """Remember that `twin` is post-processing of what `model` released."""
    if model in _TRAINED_ON:
        _TRAINED_ON[twin] = _TRAINED_ON[model]


def warns_of_training_records(method: Function) -> Function:
    """Decorate a method that scores: it warns of X that the model was trained on, or a part of it.

    Once, if one such method calls another.

    Parameters
    ----------
    method : callable
        ``method(self, X, ...)``.

    Returns
    -------
    callable
    """

    @wraps(method)
    def warning_method(self, X, *args, **kwargs):
        if getattr(_local, "looked", False):
            return method(self, X, *args, **kwargs)
        place = _TRAINED_ON.get(self)
        if place is not None and place.overlaps(X):
            with where_it_came_from(self):
                warn_caller(
                    "X holds records that the model was trained on, and their score is a function "
                    "of them that the privacy loss does not cover; score records that took no part "
                    "in training.",
                    PrivacyLeakWarning,
                )
        _local.looked = True
        try:
            return method(self, X, *args, **kwargs)
        finally:
            _local.looked = False

    return cast(Function, warning_method)


def _has_place(X):
    # lists and tuples have none
    return getattr(type(X), "__weakrefoffset__", 0) != 0


def _is_plain(X):
    return isinstance(X, np.ndarray) and not X.dtype.hasobject


def _owner(X):
    while _is_plain(X) and isinstance(X.base, np.ndarray):
        X = X.base
    return X

"""Remember which records a model was trained on, outside of the model, for as long as both live.

A score of a model on its own training records is an exact function of them, which no privacy loss
covers. To notice it, this module remembers where the records lie in memory: not in the model,
which goes out into the world, and without keeping the records.
"""

import math
import threading
import weakref
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..config import warn_caller
from ..exceptions import PrivacyLeakWarning
from ..ledger import restored_origin
from ..utils.type_aliases import Function

# model -> Place; keys compare by identity, so copies and pickles have none
_TRAINED_ON: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
# step limit of np.shares_memory, far above what slices need
MAX_WORK = 10_000
# whether an outer method of this thread has already checked X
_local = threading.local()


class Place:
    """Location of a table in memory, which does not keep the table alive.

    Parameters
    ----------
    X : ndarray, dataframe or sparse matrix
    """

    def __init__(self, X):
        # keep the base: slices such as table[:, :-1] are new objects and die early
        self.owner = weakref.ref(_owner(X))
        if _is_plain(X):
            self.__array_interface__ = X.__array_interface__

    def overlaps(self, X):
        """Return whether `X` is the table or shares memory with it; never reads a value."""
        owner = self.owner()
        # the address is valid as long as the owner is alive
        if owner is None or owner is not _owner(X):
            return False
        if not (_is_plain(X) and hasattr(self, "__array_interface__")):
            return True
        try:
            return np.shares_memory(np.asarray(self), X, max_work=MAX_WORK)
        except np.exceptions.TooHardError:
            return False


def remember(model, X):
    """Remember that `model`, and its parts if it is a search, was trained on X."""
    private = getattr(model, "epsilon", None) != math.inf
    for trained in (model, getattr(model, "best_estimator_", model)):
        _TRAINED_ON.pop(trained, None)
        if private and _has_place(X):
            _TRAINED_ON[trained] = Place(X)


def share_records(model, derived):
    """Remember that `derived` is post-processing of what `model` released."""
    if model in _TRAINED_ON:
        _TRAINED_ON[derived] = _TRAINED_ON[model]


def holds_training_records(model, X):
    """Return whether `X` is, or is a part of, what a private model or a part of it was trained on."""
    places = map(_place_of, _parts(model))
    return any(place is not None and place.overlaps(X) for place in places)


def warn_of_training_records(model, message):
    """Warn if X holds records that `model` was trained on; in the mode in which it was sent."""
    with restored_origin(model):
        warn_caller(message, PrivacyLeakWarning)


def uncounted_loss_note(trained):
    """Return a note that a release about a model does not include the model's loss."""
    return (
        "the model was trained on the same records, so its own loss adds to this one"
        if trained
        else "the model's own loss is not counted here"
    )


@contextmanager
def without_training_warning():
    """Suspend the warning about training records: the caller has checked, or pays."""
    before, _local.looked = getattr(_local, "looked", False), True
    try:
        yield
    finally:
        _local.looked = before


def warns_of_training_records(method: Function) -> Function:
    """Decorate a scoring method to warn if X holds records that the model was trained on.

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
        if holds_training_records(self, X):
            warn_of_training_records(
                self,
                "X holds records that the model was trained on, and their score is a function "
                "of them that the privacy loss does not cover; score records that took no part "
                "in training.",
            )
        with without_training_warning():
            return method(self, X, *args, **kwargs)

    return cast(Function, warning_method)


def _parts(model):
    """Yield a model, and its parts that may have been trained on the same rows."""
    yield model
    # follows from a released model by post-processing
    follows = getattr(model, "_post_processed", None)
    if follows is not None or isinstance(model, FrozenEstimator):
        yield from _parts(model.estimator if follows is None else follows)
    elif isinstance(model, Pipeline) and model.steps:
        last = list(_parts(model.steps[-1][1]))
        # the first step has seen the rows, but only a private model has a loss
        if any(_place_of(part) is not None for part in last):
            yield from last
            yield model.steps[0][1]


def _place_of(model):
    try:
        return _TRAINED_ON.get(model)
    except TypeError:  # a third-party model without a hash or weak references
        return None


def _has_place(X):
    # lists and tuples do not support weak references
    return getattr(type(X), "__weakrefoffset__", 0) != 0


def _is_plain(X):
    # not isinstance(), which may read X.__class__: nothing of X is read
    return issubclass(type(X), np.ndarray) and not X.dtype.hasobject


def _owner(X):
    while _is_plain(X) and isinstance(X.base, np.ndarray):
        X = X.base
    return X

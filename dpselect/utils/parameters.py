"""Parameters of estimators: the constructor, and hints for names from other libraries."""

from __future__ import annotations

import inspect
import weakref
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast, dataclass_transform

from sklearn.base import BaseEstimator, clone

from .type_aliases import Function

T = TypeVar("T")

# attribute of a released estimator: the parameters of its fit
KEPT = "_params_of_fit"
# class -> names of its parameters, in their order
_IN_ORDER: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()
# not kept: they do not describe the release, and a seed would reproduce its noise
NOT_KEPT = ("ledger", "random_state")

# name -> advice, and the parameter that a class must have for it to apply
COUNTERPARTS = {
    "C": ("leave alpha at 'auto', as 1 / (n_samples * C) is mostly too small for the noise", "alpha"),
    "accountant": ("write ledger=PrivacyLedger(path)", "ledger"),
    "bins": ("write bin_width, the length of a cell", "bin_width"),
    "bounds_X": ("put a BoundedScaler(bounds) before the model", "data_norm"),
    "bounds_y": ("write target_range=(low, high)", "target_range"),
    "class_weight": ("write sample_weight in fit, with max_sample_weight", "max_sample_weight"),
    "eps": ("write epsilon", "epsilon"),
    "l1_ratio": ("write alpha alone, as the penalty is the squared norm", "alpha"),
    "l2_norm_clip": ("write data_norm, the largest norm of a row", "data_norm"),
    "max_norm": ("write data_norm, the largest norm of a row", "data_norm"),
    "multi_class": ("leave it out, as several classes are one-vs-rest", "classes"),
    "n_bins": ("write bin_width, the length of a cell", "bin_width"),
    "noise_multiplier": ("write epsilon, from which the noise follows", "epsilon"),
    "normalize": ("put a NormClipper or a BoundedScaler before the model", "data_norm"),
    "penalty": ("write alpha alone, as the penalty is the squared norm", "alpha"),
    "solver": ("omit it: there is one solver, and the proof covers it", "alpha"),
    "warm_start": ("leave it out, as each fit is a release of its own", "epsilon"),
}

# class -> names of the parameters of its __init__
_NAMES: weakref.WeakKeyDictionary[type, frozenset[str]] = weakref.WeakKeyDictionary()


def _names(estimator_class):
    # cached, because signatures would dominate the time of a clone
    names = _NAMES.get(estimator_class)
    if names is None:
        signature = inspect.signature(estimator_class.__init__)
        names = _NAMES[estimator_class] = frozenset(signature.parameters)
    return names


def counterpart(estimator_class, names):
    """Return what to use instead of the first name that is not a parameter of a class, or "".

    Parameters
    ----------
    estimator_class : type
    names : iterable of str

    Returns
    -------
    str
        A sentence; empty if all are parameters, or nothing is known of the others.
    """
    for name in names:
        if name not in COUNTERPARTS:
            continue
        known = _names(estimator_class)
        instead, needed = COUNTERPARTS[name]
        if needed in known and name not in known:
            return (
                f"{estimator_class.__name__} has no parameter {name}, which other libraries have; "
                f"{instead}."
            )
    return ""


def with_values(estimator: T, /, **values: Any) -> T:
    """Return an estimator that shares all attributes with another one, except some `values`.

    A clone would copy each parameter, and lose the released attributes.
    """
    duplicate = object.__new__(type(estimator))
    # copying the dict is faster and smaller than filling a new one, which matters for large grids
    attributes = vars(estimator).copy()
    attributes.update(values)
    object.__setattr__(duplicate, "__dict__", attributes)
    return duplicate


class QuickParamsMixin:
    """Mixin that keeps the names of an estimator's parameters; comes before BaseEstimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether those of parameters that are estimators are returned, too.

        Returns
        -------
        dict
        """
        # cached: reading signatures would dominate the time of a search over many candidates
        names = _IN_ORDER.get(type(self))
        if names is None:
            names = _IN_ORDER[type(self)] = tuple(super().get_params(deep=False))  # type: ignore[misc]
        params = {name: getattr(self, name) for name in names}
        nested = deep and any(hasattr(value, "get_params") for value in params.values())
        return super().get_params() if nested else params  # type: ignore[misc]


def keep_params(estimator: BaseEstimator) -> None:
    """Store the parameters of a finished fit, against later changes."""
    params = estimator.get_params(deep=False)
    kept = {name: _kept(value) for name, value in params.items() if name not in NOT_KEPT}
    vars(estimator)[KEPT] = kept


def _kept(value):
    if isinstance(value, (list, dict)):
        return copy(value)
    if not hasattr(value, "get_params") or isinstance(value, type):
        return value
    duplicate = clone(value)
    names = [name for name in duplicate.get_params() if name.rpartition("__")[2] in NOT_KEPT]
    return duplicate.set_params(**dict.fromkeys(names)) if names else duplicate


def as_fitted(estimator: T) -> T:
    """Return a released estimator with the parameters of its fit, if they were changed since."""
    kept = getattr(estimator, "__dict__", {}).get(KEPT, {})
    if all(vars(estimator).get(name) is value for name, value in kept.items()):
        return estimator
    return with_values(estimator, **kept)


def reads_params_of_fit(method: Function) -> Function:
    """Decorate a method of a fitted estimator to use the parameters of the fit."""

    @wraps(method)
    def method_as_fitted(self, *args, **kwargs):
        return method(as_fitted(self), *args, **kwargs)

    return cast(Function, method_as_fitted)


def naming_counterparts(init):
    """Decorate `__init__` to name the counterpart of another library's parameter."""

    # not in __new__, which would hide the signature of the class
    @wraps(init)
    def init_that_names_them(self, *args, **params):
        if instead := counterpart(type(self), params):
            raise TypeError(instead)
        init(self, *args, **params)

    return init_that_names_them


@dataclass_transform(eq_default=False)
def with_parameters(kind: type[T]) -> type[T]:
    """Add a constructor for an estimator's annotated parameters to its class.

    As :func:`dataclasses.dataclass` does: parameters of the base class come first, and those behind
    ``_: KW_ONLY`` are given by name.
    """
    kind = dataclass(eq=False, repr=False)(kind)
    kind.__init__ = naming_counterparts(kind.__init__)  # type: ignore[method-assign]
    return kind

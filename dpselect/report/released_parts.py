"""The parts of a released model, their parameters and loss, and how these are told."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..accounting.privacy_loss import KINDS
from ..evaluation import CalibratedModel
from ..preprocessing.estimator_loss import MEMBERS
from ..preprocessing.pipeline_check import fitted_parts
from ..utils.parameters import as_fitted

MAX_CHARACTERS = 200


def words_of_loss(loss):
    """Return a loss in words, with its kind."""
    if loss.epsilon == math.inf:
        return "no differential privacy: epsilon is infinite"
    kind = "an ex-post privacy loss of" if loss.kind == KINDS[1] else "differential privacy,"
    return f"{kind} epsilon = {loss.epsilon:.6g} and delta = {loss.delta:.6g}"


def _parts(members, model, where=""):
    """Yield (name, part) of an object and all of its parts."""
    name = type(model).__name__
    yield f"{where}: {name}" if where else name, model
    for label, part in members(model):
        if part is not None and not isinstance(part, str):
            yield from _parts(members, as_fitted(part), f"{where}.{label}" if where else label)


def fitted_parts_of(model):
    """Yield (name, part) of a fitted model and of what is fitted within."""

    def members(model):
        if hasattr(model, "best_estimator_"):
            return [("best_estimator_", model.best_estimator_)]
        if isinstance(model, CalibratedModel):
            return [("estimator", model.estimator), ("evaluation", model.evaluation)]
        if type(model) in MEMBERS:
            return [(f"estimators_[{i}]", part) for i, part in enumerate(MEMBERS[type(model)](model))]
        return fitted_parts(model)

    return _parts(members, model)


def given_parts(model):
    """Yield (name, part) of a model and of the estimators in its parameters."""

    def members(model):
        return [
            found for name, value in params_of(model).items() for found in estimators_in(value, name)
        ]

    return _parts(members, model)


def estimators_in(value, name=""):
    """Return the named estimators in a parameter."""
    if isinstance(value, (list, tuple)):
        named = [entry for entry in value if isinstance(entry, tuple) and len(entry) > 1]
        return [found for entry in named for found in estimators_in(entry[1], str(entry[0]))]
    return [(name, value)] if hasattr(value, "get_params") and not isinstance(value, type) else []


def params_of(part):
    """Return the parameters of an estimator, without those of its parts."""
    return part.get_params(deep=False) if hasattr(part, "get_params") else {}


def as_text(value: Any) -> str:
    """Return a parameter as text, cut where it is long; never the address of an object."""
    if isinstance(value, Mapping):
        text = "; ".join(f"{key}: {as_text(entry)}" for key, entry in value.items())
    elif isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        text = ", ".join(map(as_text, value))
    elif isinstance(value, (float, np.floating)):
        text = f"{value:.6g}"
    elif callable(value) and hasattr(value, "__qualname__"):
        text = value.__qualname__
    else:
        text = str(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}"

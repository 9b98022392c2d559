"""The search without privacy (``epsilon=inf``): scikit-learn's own GridSearchCV.

Nothing of GridSearchCV is rewritten. A real one is built from the parameters that it
shares with our search, fitted, and read out.
"""

import math
from inspect import signature
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer_names

# bound at import: a name that is replaced later (as the conformance tests do) must not make
# the twin of a search another search with a twin
from sklearn.model_selection import GridSearchCV, GroupKFold

from ..base.capabilities import Certified
from ..base.estimator import ReleaseMixin
from ..metrics.scores import SCORES
from ..preprocessing.pipeline_check import releases_privately
from ..rows import as_lazy, is_lazy


def fit_twin(search, X, y, params):
    """Fit the non-private twin of a search, and return its fitted attributes."""
    if is_lazy(as_lazy(X)) and not isinstance(X, np.ndarray):
        raise ValueError(
            f"epsilon=inf hands X to scikit-learn's GridSearchCV, which would gather all rows of a "
            f"{type(X).__name__} in one place; give a finite epsilon, or X in memory."
        )
    ours = search.get_params(deep=False)
    shared = {name: ours[name] for name in signature(GridSearchCV).parameters if name in ours}
    shared["estimator"] = without_noise(search.estimator)
    shared["param_grid"] = _grid_without_noise(search.param_grid)
    if isinstance(search.scoring, str) and search.scoring not in get_scorer_names():
        shared["scoring"] = SCORES.get(search.scoring, search.scoring)
    if params.get("groups") is not None and (search.cv is None or isinstance(search.cv, Integral)):
        # no person on both sides, as in a private search
        shared["cv"] = GroupKFold(5 if search.cv is None else search.cv)
    twin = GridSearchCV(**shared).fit(X, y, **params)
    return {
        name: value
        for name, value in vars(twin).items()
        if name.endswith("_") and not name.startswith("_")
    }


def _grid_without_noise(param_grid):
    """Take the noise out of private estimators that the grid brings in."""
    if isinstance(param_grid, list):
        return [_grid_without_noise(part) for part in param_grid]
    if not isinstance(param_grid, dict):
        return param_grid
    return {
        name: [without_noise(value) for value in values] if isinstance(values, (list, tuple)) else values
        for name, values in param_grid.items()
    }


def without_noise(value):
    """Return a clone whose private parts all have epsilon=inf, or `value` itself if it has none."""
    if not hasattr(value, "get_params") or isinstance(value, type):
        return value
    parts = {"epsilon": value}
    parts.update((f"{name}__epsilon", part) for name, part in value.get_params().items())
    private = [name for name, part in parts.items() if _adds_noise(part)]
    return clone(value).set_params(**dict.fromkeys(private, math.inf)) if private else value


def _adds_noise(part):
    private = isinstance(part, (ReleaseMixin, Certified)) or releases_privately(part)
    return private and not isinstance(part, type) and "epsilon" in part.get_params(deep=False)

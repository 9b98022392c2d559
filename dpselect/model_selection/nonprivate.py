"""The search without privacy (``epsilon=inf``): scikit-learn's own GridSearchCV.

Nothing of GridSearchCV is rewritten. A real one is built from the parameters that it
shares with our search, fitted, and read out.
"""

from inspect import signature

import numpy as np
from sklearn.base import clone

# bound at import: a name that is replaced later (as the conformance tests do) must not make
# the twin of a search another search with a twin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from ..capabilities import Certified
from ..metrics.scores import SCORES
from ..rows import as_lazy, is_lazy


def fit_twin(search, X, y, params):
    """Fit the non-private twin of `search`.

    Parameters
    ----------
    search : StabilityGridSearchCV
    X, y, params
        As given to `fit`.

    Returns
    -------
    dict
        The twin's fitted attributes.
    """
    if is_lazy(as_lazy(X)) and not isinstance(X, np.ndarray):
        raise ValueError(
            f"epsilon=inf hands X to scikit-learn's GridSearchCV, which would gather all rows of a "
            f"{type(X).__name__} in one place; give a finite epsilon, or X in memory."
        )
    ours = search.get_params(deep=False)
    shared = {name: ours[name] for name in signature(GridSearchCV).parameters if name in ours}
    shared["estimator"] = without_noise(search.estimator)
    shared["param_grid"] = _grid_without_noise(search.param_grid)
    if isinstance(search.scoring, str):
        shared["scoring"] = SCORES.get(search.scoring, search.scoring)
    twin = GridSearchCV(**shared).fit(X, y, **params)
    return {
        name: value
        for name, value in vars(twin).items()
        if name.endswith("_") and not name.startswith("_")
    }


def _grid_without_noise(param_grid):
    """Take the noise out of private models that the grid brings in."""
    if isinstance(param_grid, list):
        return [_grid_without_noise(part) for part in param_grid]
    if not isinstance(param_grid, dict):
        return param_grid
    return {
        name: [without_noise(value) for value in values]
        if isinstance(values, list) and any(isinstance(v, Certified) for v in values)
        else values
        for name, values in param_grid.items()
    }


def without_noise(estimator):
    """Return `estimator`, or a clone with epsilon=inf if its model is a private one."""
    model = estimator
    while isinstance(model, Pipeline) and model.steps:
        model = model.steps[-1][1]
    if not isinstance(model, Certified):
        return estimator
    prefix = ""
    step, estimator = estimator, clone(estimator)
    while isinstance(step, Pipeline):
        prefix += f"{step.steps[-1][0]}__"
        step = step.steps[-1][1]
    return estimator.set_params(**{f"{prefix}epsilon": float("inf")})

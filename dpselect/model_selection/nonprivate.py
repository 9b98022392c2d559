"""The search without privacy (``epsilon=inf``): scikit-learn's own GridSearchCV.

Nothing of GridSearchCV is rewritten. A real one is built from the parameters that it
shares with our search, fitted, and read out.
"""

import math
from collections.abc import Mapping
from inspect import signature
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer_names

# bound at import: a name that is replaced later (as the conformance tests do) must not make
# the counterpart of a search another search with a counterpart
from sklearn.model_selection import GridSearchCV, GroupKFold, ParameterSampler

from ..accounting.privacy_loss import PrivacyLoss
from ..base.capabilities import Certified
from ..base.estimator import ReleaseMixin
from ..ledger import spending
from ..metrics.scores import SCORES
from ..noise.generators import search_stream
from ..preprocessing.pipeline_check import releases_privately
from ..records.persons import Persons, adjacency_of
from ..rows import as_lazy, is_lazy, n_rows
from .exact_scores import records_of
from .progress import Progress
from .routing import weights_among
from .set_aside import SetAside, check_evaluation, evaluate_released
from .sklearn_forms import as_grid, grid_points, scores_of


def fit_without_noise(search, X, y, params):
    """Fit the non-private counterpart of a search; return its fitted attributes and its loss."""
    check_evaluation(search)
    groups, held = params.get("groups"), None
    loss = PrivacyLoss(
        math.inf,
        adjacency=adjacency_of(groups is not None),
        label="exact scores and an exact choice",
    )
    with spending(search, loss):
        stream = search_stream(search.random_state)
        if search.evaluation is not None:
            X, y = records_of(X, y, groups)
            persons = None if groups is None else Persons.of(groups, X)
            aside = SetAside.of(search.evaluation, n_rows(X), stream, persons)
            weight = weights_among(search, params)
            params = aside.params_of_training(params, X)
            (X, y), held = aside.cut(X, y)
            held = aside.with_weights(held, weight)
        with Progress(search) as progress:
            fitted = _fit_counterpart(search, X, y, params, progress)
        if held is not None:
            best = fitted["best_estimator_"]
            fitted |= evaluate_released(search, best, held, math.inf, stream)
    return fitted | {"privacy_": loss}


def _fit_counterpart(search, X, y, params, progress):
    """Fit scikit-learn's search, and return its fitted attributes."""
    if is_lazy(as_lazy(X)) and not isinstance(X, np.ndarray):
        raise ValueError(
            f"epsilon=inf hands X to scikit-learn's GridSearchCV, which would gather all rows of a "
            f"{type(X).__name__} in one place; give a finite epsilon, or X in memory."
        )
    ours = search.get_params(deep=False)
    shared = {name: ours[name] for name in signature(GridSearchCV).parameters if name in ours}
    shared["estimator"] = without_noise(search.estimator)
    shared["param_grid"] = _grid_without_noise(search.param_grid)
    several = scores_of(search)
    if several is None:
        shared["scoring"] = _known_to_sklearn(search.scoring)
    elif not isinstance(search.scoring, Mapping) and several.keys() - set(get_scorer_names()):
        shared["scoring"] = several
    if isinstance(shared["scoring"], Mapping):
        known = {name: _known_to_sklearn(scoring) for name, scoring in shared["scoring"].items()}
        shared["scoring"] = known
    if params.get("groups") is not None and (search.cv is None or isinstance(search.cv, Integral)):
        # no person on both sides, as in a private search
        shared["cv"] = GroupKFold(5 if search.cv is None else search.cv)
    counterpart = GridSearchCV(**shared)
    with progress.handed_on("exact scores of all candidates", counterpart):
        fitted = counterpart.fit(X, y, **params)
    return {
        name: value
        for name, value in vars(fitted).items()
        if name.endswith("_") and not name.startswith("_")
    }


def _known_to_sklearn(scoring):
    """Return a score itself for a name that scikit-learn does not know."""
    given = isinstance(scoring, str) and scoring not in get_scorer_names()
    return SCORES.get(scoring, scoring) if given else scoring


def _grid_without_noise(param_grid):
    """Take the noise out of private estimators that the grid brings in."""
    if isinstance(param_grid, ParameterSampler):
        param_grid = grid_points(param_grid)
    if isinstance(param_grid, list):
        return [_grid_without_noise(as_grid(part)) for part in param_grid]
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

"""Forms of scikit-learn's searches that a private search takes: several scores, sampled candidates."""

from collections.abc import Mapping, Set
from numbers import Integral

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler


def grid_points(param_grid):
    """Return the points of a grid, of a sampler, or of a list of points that were sampled.

    A dict of a list is one point if it holds a value that is no list, as a ParameterSampler makes them.
    """
    if isinstance(param_grid, ParameterSampler):
        if not isinstance(param_grid.random_state, Integral):
            raise ValueError(
                "param_grid is a ParameterSampler without an integer as random_state, so a plan and a "
                "fit would draw other candidates, and nobody could say later which ones; write "
                "ParameterSampler(..., random_state=0), which is public and protects nothing."
            )
        return list(param_grid)
    if not np.iterable(param_grid):
        raise TypeError(
            f"param_grid of type {type(param_grid).__name__} lists no values; write a dict of lists, "
            "a list of such dicts, or a ParameterSampler of scikit-learn."
        )
    if isinstance(param_grid, (list, tuple)):
        param_grid = [as_grid(part) for part in param_grid]
    return list(ParameterGrid(param_grid))


def as_grid(part):
    """Return a dict of a list as a grid."""
    if not isinstance(part, Mapping) or all(map(_lists_values, part.values())):
        return part
    return {name: [value] for name, value in part.items()}


def _lists_values(value):
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def scores_of(search):
    """Return the scores of `scoring` by their names if it lists several, else None."""
    scoring = search.scoring
    if isinstance(scoring, (list, tuple, Set)):
        return {name: name for name in scoring}
    return dict(scoring) if isinstance(scoring, Mapping) else None


def scoring_that_chooses(search):
    """Return the score that candidates are compared by: of several, the one that `refit` names."""
    several = scores_of(search)
    if several is None:
        return search.scoring
    if not isinstance(search.refit, str) or search.refit not in several:
        raise ValueError(
            f"scoring lists {len(several)} scores and refit={search.refit!r}, but one of them has to "
            "choose, because each comparison costs epsilon; write for instance "
            f"refit={next(iter(several), '')!r}, and evaluation=0.2 for figures of the model."
        )
    return several[search.refit]

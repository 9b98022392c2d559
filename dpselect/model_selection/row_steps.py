"""The steps before a model, and the rows that they give: lazily, where rows are not in memory.

Every step but a private one treats each row by itself, with parameters that do not depend on the
data (:func:`~dpselect.preprocessing.check_pipeline_privacy`): the first row fits it as well as all.
"""

from functools import partial

from ..preprocessing.pipeline_check import private_parts, releases_privately
from ..rows import is_lazy, map_rows, on_first_row
from .quiet import quietly


def fit_transform(steps, X, y=None):
    """Fit steps, and return them with the rows that they give.

    Parameters
    ----------
    steps : transformer
        A step, or a Pipeline of steps. It may be changed.
    X, y
        All records; X lazily if it is not in memory.

    Returns
    -------
    steps : transformer
        Fitted; where rows are elsewhere, a copy that was fitted there.
    rows
        Lazy, if X is.

    Raises
    ------
    ValueError
        If a step fails, or a part of a step would have to learn from lazy rows.
    """
    if not is_lazy(X):
        return steps, quietly(steps.fit_transform, X, y)
    steps, tail, names = _fit_lazily(steps, X, y)
    return steps, map_rows(partial(_transformed, steps), X, tail, names)


def fit(steps, X):
    """Return the steps, fitted; parameters are those of :func:`fit_transform`."""
    if is_lazy(X):
        return _fit_lazily(steps, X, None)[0]
    quietly(steps.fit, X)
    return steps


def _fit_lazily(steps, X, y):
    if releases_privately(steps):
        quietly(steps.fit, X, y)
        return steps, *on_first_row(partial(_form, steps), X)
    if private_parts(steps):
        raise ValueError(
            f"A part of {type(steps).__name__} learns from the data, and scikit-learn would gather "
            "all rows for it; make the part a step of the Pipeline itself, or give X in memory."
        )
    return on_first_row(partial(_fit_on_row, steps), X)


def _fit_on_row(steps, row):
    # those of one row tell nothing of it
    quietly(steps.fit, row)
    return steps, *_form(steps, row)


def _form(steps, row):
    """Return the shape of a transformed row, and the names of its columns."""
    row = _transformed(steps, row)
    names = list(row.columns) if hasattr(row, "columns") else None
    return tuple(row.shape[1:]), names


def _transformed(steps, rows):
    return quietly(steps.transform, rows)

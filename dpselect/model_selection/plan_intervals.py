"""How wide intervals of coefficients will be, for the page of a plan, from an invented table."""

import math
from datetime import date, timedelta

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from ..base.capabilities import ForecastsIntervals
from ..preprocessing.schema import CategoryColumn
from ..utils.same import Same
from .private_steps import last_step

# rows of the invented table
ROWS = 1000
# standard deviation of invented targets, relative to their range
SPREAD = 0.13


def interval_widths(pipeline, schema, n_classes, epsilons, n_samples, persons):
    """Return what a page says of intervals of the coefficients of a TabularPipeline.

    Parameters
    ----------
    pipeline : TabularPipeline
        Not fitted.
    schema : PublicSchema
    n_classes : int
    epsilons : list of float
        Of the model, and of intervals from other records.
    n_samples : int
        Records, or persons, that train, and as many for the intervals.
    persons : bool

    Returns
    -------
    list of dict, or of None
        For each epsilon the "median" and the "widest" half width, or in "why" the reason that nothing
        would be known; None for models without such intervals.
    """
    pipeline = clone(pipeline)
    model = last_step(pipeline)
    if not isinstance(model, ForecastsIntervals):
        return [None] * len(epsilons)
    rng = np.random.default_rng(0)
    X = invented_table(schema, rng)
    y = _invented_targets(model, n_classes, rng)
    widths, encoded = [], {}
    for epsilon in epsilons:
        steps = Pipeline(pipeline.bound(n_samples, epsilon).steps[:-1]).fit(X)
        terms = Same(steps[-1].terms_)
        if terms not in encoded:
            encoded[terms] = steps.transform(X)
        widths.append(_widths(model, encoded[terms], y, epsilon, n_samples, persons))
    return widths


def _widths(model, X, y, epsilon, n_samples, persons):
    """Return what is said of one epsilon."""
    try:
        widths = model.half_widths_before(X, y, epsilon, n_samples, persons)
    except ValueError as error:  # of public numbers and invented rows
        return {"why": str(error)}
    # of three or more classes names are pairs, with that of the class
    names = {name: name[1] if isinstance(name, tuple) else name for name in widths}
    known = [width for name, width in widths.items() if names[name] != "intercept"]
    median, widest = np.median(known), max(known)
    if math.isnan(median) or math.isnan(widest):
        return {
            "why": "Nothing would be known of some coefficients; use more records, or fewer columns."
        }
    return {"median": f"{median:.2g}", "widest": f"{widest:.2g}"}


def invented_table(schema, rng):
    """Return a table whose numbers fill their bounds evenly, with equally frequent categories."""
    X = np.empty((ROWS, len(schema.columns)), dtype=object)
    for j, column in enumerate(schema.columns.values()):
        cells = column.values(ROWS)
        if not isinstance(column, CategoryColumn) and column.dates is not None:
            first = date.fromisoformat(column.dates[0])
            cells = [day if day != day else first + timedelta(days=int(day)) for day in cells]
        X[:, j] = rng.permutation(np.resize(np.array(cells, dtype=object), ROWS))
    return X


def _invented_targets(model, n_classes, rng):
    """Return targets that do not depend on the rows, and give the model classes that it has not."""
    if is_classifier(model):
        if model.classes is None:
            model.set_params(classes=list(range(n_classes)))
        return np.resize(np.asarray(model.classes), ROWS)[rng.permutation(ROWS)]
    if getattr(model, "target_range", None) is not None:
        low, high = model.target_range
        return low + (high - low) * (0.5 + SPREAD * rng.normal(size=ROWS))
    return rng.poisson(1.0, size=ROWS)

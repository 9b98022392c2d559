"""Forecast the intervals of an evaluation, from public numbers alone."""

from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtri, softmax

from .density import DensityCells
from .multiclass import MulticlassCells
from .regression import RegressionCells
from .release import EvaluationPlan, count
from .score_bins import BinaryCells

# standard deviation of the logits, for equally frequent classes
SPREAD = 1.5
# standard deviations of predictions and errors, relative to the target range
PREDICTIONS, ERRORS = 0.1, 0.08
# size of a sample from the made-up distribution
DRAWN = 20_000
FIGURES = {
    BinaryCells: ("accuracy", "roc_auc"),
    MulticlassCells: ("accuracy", "balanced_accuracy"),
    RegressionCells: ("r2", "mae"),
    DensityCells: ("log_gain", "zero_density"),
}


def forecast(cells, n_records, epsilon, persons=False, share=None):
    """Return estimates for a model of medium quality, as a dict: from expected counts, without data.

    With the `share` of the second of two classes there is the recall of the rarer one, too, where so
    many scores are flagged as there are records of it.
    """
    if isinstance(cells, BinaryCells):
        counts, threshold = _of_two_classes(cells.edges, share)
    else:
        counts = count(cells, 1, *_records(cells))
    counts = counts * (n_records / DRAWN)
    evaluation = EvaluationPlan(cells, epsilon, persons=persons).read(counts, n_records)
    estimates = {name: evaluation.metric(name) for name in FIGURES[type(cells)]}
    if share is not None:
        if share > 1 / 2:
            evaluation, threshold = evaluation.with_positive(evaluation.outcomes[0]), 1 - threshold
        estimates["recall"] = evaluation.metric("recall", threshold=threshold)
    return estimates


def forecast_message(cells, n_records, epsilon, persons=False, share=None):
    """Return the forecast as text; the share of the second of two classes is None if unknown."""
    estimates = forecast(cells, n_records, epsilon, persons, share)
    labels = {} if share is None else _of_rarer(cells.classes, share)
    reaches = [
        f"{labels.get(name, name)} +-{float(f'{(e.high - e.low) / 2:.2g}'):g}"
        for name, e in estimates.items()
        if not e.empty
    ]
    known = f"{' and '.join(reaches)}, with 95 %" if reaches else "nothing"
    if reaches and hasattr(cells, "classes") and share is None:
        known += ", and less of a rare class"
    lost = " and ".join(labels.get(name, name) for name, e in estimates.items() if e.empty)
    known += ", and less where persons have several rows" if reaches and persons else ""
    few = f" (too few records at this epsilon for {lost})" if lost else ""
    return (
        f"{n_records} {'persons' if persons else 'records'} are set aside, on which the model is "
        f"evaluated with epsilon {epsilon:.4g}: they are others than those it is trained on, so the "
        f"larger loss counts. Of a model of medium quality it would tell {known}{few}."
    )


def _of_rarer(classes, share):
    """Return how the recall of the rarer class is called."""
    flagged = min(share, 1 - share)
    return {"recall": f"recall of {classes[int(share <= 1 / 2)]} where {flagged:.2g} are flagged"}


def _records(cells, share=None):
    """Return predictions and targets of a made-up distribution, the same each time."""
    rng = np.random.default_rng(0)
    if isinstance(cells, BinaryCells):
        p = expit(_logits() + _offset(share))
        return p, cells.classes[(rng.random(DRAWN) < p).astype(int)]
    if isinstance(cells, MulticlassCells):
        p = softmax(SPREAD * rng.normal(size=(DRAWN, len(cells.classes))), axis=1)
        label = (p.cumsum(axis=1)[:, :-1] < rng.random((DRAWN, 1))).sum(axis=1)
        predictions = p if cells.calibrated_scores else cells.classes[p.argmax(axis=1)]
        return predictions, cells.classes[label]
    if isinstance(cells, DensityCells):
        # an exponential density takes the value v at records with the law of Gamma(2)
        return rng.gamma(2.0, size=DRAWN), np.zeros(DRAWN)
    low, high = cells.target_range
    predicted = 0.5 + PREDICTIONS * rng.normal(size=DRAWN)
    target = predicted + ERRORS * rng.normal(size=DRAWN)
    return low + (high - low) * predicted, low + (high - low) * target


@lru_cache(maxsize=64)
def _of_two_classes(edges, share):
    """Return the counts of the made-up records, and the score that a share of them exceeds.

    Cached: the page of a plan asks for few shares, and many times.
    """
    cells = BinaryCells(np.arange(2), True, edges)
    predictions, y = _records(cells, share)
    threshold = None if share is None else float(np.quantile(predictions, 1 - share))
    return count(cells, 1, predictions, y), threshold


def _logits():
    """Return the logits of the made-up scores of two classes, for equally frequent ones."""
    return SPREAD * ndtri((np.arange(DRAWN) + 0.5) / DRAWN)


def _offset(share):
    """Return what is added to the logits so that probabilities have this mean; 0 for None."""
    if share is None:
        return 0.0
    logits = _logits()
    return brentq(lambda offset: expit(logits + offset).mean() - share, -50, 50)

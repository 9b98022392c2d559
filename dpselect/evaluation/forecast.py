"""How far the intervals of an evaluation will reach, from public numbers alone."""

import math

import numpy as np
from scipy.special import expit, ndtri, softmax

from .multiclass import MulticlassCells
from .regression import RegressionCells
from .release import EvaluationPlan, count
from .scores import BinaryCells

# standard deviation of the logits, of equally frequent classes
SPREAD = 1.5
# of predictions and errors, as shares of the target range
PREDICTIONS, ERRORS = 0.1, 0.08
# records that stand for a law
DRAWN = 20_000
FIGURES = {
    BinaryCells: ("accuracy", "roc_auc"),
    MulticlassCells: ("accuracy", "balanced_accuracy"),
    RegressionCells: ("r2", "mae"),
}


def forecast(cells, n_records, epsilon, persons=False):
    """Return estimates of a middling model's figures, a dict: at expected counts, without any data."""
    predictions, y = _records(cells)
    counts = count(cells, 1, predictions, y) * (n_records / DRAWN)
    evaluation = EvaluationPlan(cells, epsilon, persons=persons).read(counts, n_records)
    return {name: evaluation.metric(name) for name in FIGURES[type(cells)]}


def forecast_message(cells, n_records, epsilon, persons=False):
    """Return the same in words."""
    reaches = [
        f"{name} nothing" if math.isnan(e.value) else f"{name} +-{(e.high - e.low) / 2:.2g}"
        for name, e in forecast(cells, n_records, epsilon, persons).items()
    ]
    return (
        f"{n_records} {'persons' if persons else 'records'} are set aside, on which the model is "
        f"evaluated with epsilon {epsilon:.4g}: they are others than those it is trained on, so the "
        f"larger loss counts. A middling model would be known to {', '.join(reaches)}, with 95 %; a "
        "rare class less well."
    )


def _records(cells):
    """Return predictions and targets of an invented law, the same each time."""
    rng = np.random.default_rng(0)
    if isinstance(cells, BinaryCells):
        p = expit(SPREAD * ndtri((np.arange(DRAWN) + 0.5) / DRAWN))
        return p, cells.classes[(rng.random(DRAWN) < p).astype(int)]
    if isinstance(cells, MulticlassCells):
        p = softmax(SPREAD * rng.normal(size=(DRAWN, len(cells.classes))), axis=1)
        label = (p.cumsum(axis=1)[:, :-1] < rng.random((DRAWN, 1))).sum(axis=1)
        predictions = p if cells.calibrated_scores else cells.classes[p.argmax(axis=1)]
        return predictions, cells.classes[label]
    low, high = cells.target_range
    predicted = 0.5 + PREDICTIONS * rng.normal(size=DRAWN)
    target = predicted + ERRORS * rng.normal(size=DRAWN)
    return low + (high - low) * predicted, low + (high - low) * target

"""How good a released model is, from its evaluation, and how well its coefficients are known."""

import math

from ..evaluation import CalibratedModel, Estimate
from ..evaluation.at_rate import NAMES as AT_A_RATE
from .document import Table
from .released_parts import as_text, words_of_loss

# metric -> description
FIGURES = {
    "accuracy": "share of predictions that are right",
    "balanced_accuracy": "the same share of each label, and the mean of these",
    "precision": "share of positive predictions that are right",
    "recall": "share of positive records that are predicted as such",
    "specificity": "share of negative records that are predicted as such",
    "f1": "harmonic mean of precision and recall",
    "lift": "precision, in multiples of positive_rate",
    "positive_rate": "share of positive records",
    "selection_rate": "share of scores above the threshold",
    "roc_auc": "how often a positive record has a higher score than a negative one",
    "brier": "mean squared error of the probability",
    "log_loss": "mean of minus the logarithm of the label's probability",
    "calibration_error": "mean distance of predicted and observed rates",
    "r2": "share of the variance of the targets that is predicted",
    "rmse": "root of the mean squared error",
    "mae": "mean size of the error",
    "bias": "mean of the target less the prediction",
    "selective_accuracy": "share of right predictions among those above the threshold",
    "confidence_auc": "how often a right prediction is more probable than a wrong one",
    "confidence_brier": "mean squared error of the prediction's probability",
    "integrated_squared_error": "the larger, the closer the density is to that of the records",
    "log_gain": "mean logarithm of the density, less that of a uniform one",
    "zero_density": "share of records where the density is 0",
}


def quality_of(model, evaluation, loss, apart):
    """Return the blocks on the figures of an evaluation; `apart` if its loss is not in `loss`."""
    own, blocks, at, at_rate = evaluation.privacy_, [], {}, {}
    most, is_of_persons = evaluation.max_weight, own.adjacency.unit == "person"
    weighted = "" if most is None else f", each counted by its weight, up to {most:g}"
    if isinstance(model, CalibratedModel) and not apart:
        at = {} if model.threshold is None else {"threshold": model.threshold}
        if model.positive_label is not None:
            evaluation = evaluation.with_positive(model.positive_label)
        where = f", at the threshold {as_text(model.threshold)}" if at else ""
        target, rate = model.threshold_target or (None, None)
        if target == "rate":
            at_rate = dict.fromkeys(AT_A_RATE, {"rate": rate})
            means = " (a mean over persons, and another share of their rows)" * is_of_persons
            where += (
                f": {', '.join(AT_A_RATE)} where {rate:.0%} of the records with the highest scores are "
                f"positive predictions{means}, and all other figures at the nearest threshold that is "
                "counted"
            )
        blocks.append(
            f"Figures are of the scores of {type(model.estimator).__name__}, before calibration{where}."
        )
    rows = tuple(
        (name, str(evaluation.metric(name, **at_rate.get(name, at))), FIGURES[name])
        for name in evaluation.metrics
    )
    positive = f" Positive is {evaluation.classes[1]}." if "recall" in evaluation.metrics else ""
    blocks += [
        (
            f"Measured on {evaluation.n_records:,} {own.adjacency.unit}s{weighted}. What was released "
            f"are {evaluation.counts_.size} noisy counts, from which all figures are computed. "
            f"Intervals of 95 % cover sampling and noise.{positive}"
        ),
        Table(("Figure", "Value [95 %]", "What it is"), rows),
        *evaluation.remarks,
    ]
    if evaluation.of_training_records:
        blocks.append(
            "Its records are those that the model was trained on: the figures are too good, and the "
            "losses of model and evaluation add up."
        )
    if apart and own.adjacency != loss.adjacency:
        blocks.append(
            f"The evaluation is a release of its own, with {words_of_loss(own)}, and about another "
            f"adjacency: {own.adjacency}. Its loss and that of the model do not add up."
        )
    elif apart and not evaluation.of_training_records:
        largest, total = max(loss.epsilon, own.epsilon), loss.epsilon + own.epsilon
        blocks.append(
            f"The evaluation is a release of its own, with {words_of_loss(own)}. If its records took no "
            "part in training, and which ones was decided without looking at them, both together have "
            f"epsilon = {largest:.6g}. Otherwise they have {total:.6g}, and the figures are too good."
        )
    return tuple(blocks)


def coefficients(intervals):
    """Return the table of coefficients with their intervals."""
    low, high = intervals.confidence_interval()
    rows = tuple(
        (str(name), str(Estimate(math.nan if intervals.empty else c, start, end)), f"{fraction:.0%}")
        for name, c, start, end, fraction in zip(
            intervals.names, intervals.coef, low, high, intervals.noise_share
        )
    )
    return (
        "Intervals of 95 % cover sampling, the model's noise, and that of their own release.",
        Table(("Column", "Coefficient [95 %]", "Variance due to the model's noise"), rows),
        *([intervals.hint] if intervals.lost else []),
    )

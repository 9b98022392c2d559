"""Sections of a statement that NIST SP 800-226 asks for: trust, bounds, bias, security.

Near, Darais, Lefkovitz and Howarth, *Guidelines for Evaluating Differential Privacy Guarantees*, NIST
Special Publication 800-226, 2025. Its words are the titles of the sections.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..accounting.privacy_loss import KINDS, Adjacency, PrivacyLoss
from ..evaluation import Evaluation
from .document import Section, Table

# parameters that bound what a record says -> what becomes of what lies beyond
BOUNDS = {
    "data_norm": "longer rows are scaled down to this l2 norm, in training and in prediction",
    "data_norm_l1": "rows with a larger l1 norm are scaled down to it",
    "target_range": "targets beyond it count as its ends",
    "target_bound": "larger counts count as this one",
    "bounds": "values beyond count as the nearest bound",
    "classes": "a record with another label is refused, and nothing is released",
    "max_sample_weight": "larger weights count as this one",
    "coef_bound": "coefficients are sought up to this length",
    "max_derivative": "a record moves the coefficients by no more than this slope of the loss",
    "schema": "values beyond it are brought within it",
}
# figures by group, the first that an evaluation has
ERRORS = ("accuracy", "rmse", "integrated_squared_error")
TRUST = (
    "The central model: one curator holds the records as they are, is trusted with them, computes, and "
    "adds the noise. Nobody else has to be trusted: the promise holds against everyone who sees the "
    "release, whatever else they know. It does not hold against those who see the records, the memory "
    "or the files of the computation."
)
ONE_RELEASE = (
    "The query model is data release: what is computed was decided by those who are trusted, and is "
    "released once. Those who see the release put no questions to the records. Predictions are computed "
    "from what was released, as often as anyone likes."
)
INTERACTIVE = (
    "The query model is interactive: questions are put one after the other, may depend on earlier "
    "answers, and end with the budget, which is fixed. All answers together have the loss of this "
    "statement."
)
SECURITY = (
    (
        "Floating-point numbers: noise is drawn on a grid that does not depend on the records, and what "
        "is released lies on it or is rounded so, so that the last digits tell nothing."
    ),
    (
        "Time, memory and energy of the computation depend on the records. They are not covered, and "
        "not to be shown to those who see the release."
    ),
    (
        "Errors and warnings quote no record. That a fit failed is told, and not covered: a release "
        "that is made again after an error is paid for again where noise had been drawn."
    ),
    (
        "Who can read the records, this process, or the machine's source of randomness can learn more "
        "than the release tells."
    ),
)
DUTIES = (
    (
        "Collect no more than this release needs: differential privacy lessens the risk of holding "
        "records, and does not end it."
    ),
    (
        "Keep the records safe: access for few, encrypted, deleted when they are no longer needed. "
        "Differential privacy protects the release, and not the records."
    ),
    (
        "Decide that epsilon, delta and the unit of privacy suit these people and this use, and say so "
        "to them."
    ),
    "Sign for the public assumptions, or have those sign who know where they come from.",
    "Count every further release from the same records in one ledger, and stop when it is spent.",
    "Release what this statement lists, and nothing beside it: no exact scores, plots, logs or times.",
    "Look at errors of groups of people before the release is used for decisions about them.",
)


def guideline_sections(
    loss: PrivacyLoss,
    given: Sequence[tuple[str, Mapping[str, Any]]],
    fitted: Sequence[tuple[str, Mapping[str, Any]]],
    evaluation: Evaluation | None,
) -> list[Section]:
    """Return the sections on trust, bounds, bias and utility, security, and the curator's duties.

    Parameters
    ----------
    loss : PrivacyLoss
    given, fitted : list of (str, dict)
        Name of each part, with its parameters, and with its released attributes.
    evaluation : Evaluation or None
    """
    if loss.epsilon == math.inf:
        return []
    duties = DUTIES
    asked = loss.adjacency in (Adjacency.REPLACE_HOLDOUT_RECORD, Adjacency.REPLACE_HOLDOUT_PERSON)
    if loss.kind == KINDS[1]:
        duties += (
            "Quote the epsilon that was reserved: the one of this outcome was not fixed in advance.",
        )
    return [
        Section("Trust model", (TRUST, INTERACTIVE if asked else ONE_RELEASE)),
        Section("What was bounded, and how", _bounded(loss, given, fitted)),
        Section("Bias and utility", _bias(evaluation)),
        Section("Security and side channels", (SECURITY,)),
        Section("What the data curator still has to do", (duties,)),
    ]


def _bounded(loss, given, fitted):
    learned = {name: value for _, attributes in fitted for name, value in attributes.items()}
    rows = []
    for where, params in given:
        for name, meaning in BOUNDS.items():
            value = params.get(name)
            if value is None:
                continue
            said = _short(value)
            if isinstance(value, str) and value == "auto":
                found = learned.get(f"{name}_")
                said = (
                    "auto, by public numbers" if found is None else f"learned privately: {_short(found)}"
                )
            rows.append((where, name, said, meaning))
    people = ()
    if loss.adjacency.unit == "person":
        people = (
            (
                "All rows of one person count as much as one record, by their mean, however many there "
                "are. So what was released is about persons, and not about rows."
            ),
        )
    if not rows:
        return (*people, "No record can count for more than one: nothing else had to be bounded.")
    return (
        *people,
        "What one record can say was bounded before it was counted, one record at a time:",
        Table(("Part", "Bound", "Value", "What lies beyond"), tuple(rows)),
        (
            "Bounds that many records exceed make the result wrong in one direction, which no amount of "
            "epsilon mends; bounds that are far too wide make it noisier."
        ),
    )


def _bias(evaluation):
    blocks = [
        (
            (
                "Noise makes results less accurate, and less so the more records there are: a group of "
                "few people has larger errors than the whole."
            ),
            (
                "Bounds, penalties and rounding make results wrong in one direction: more so for people "
                "whose values lie beyond the bounds."
            ),
            (
                "Records that are wrong, or that lack people, stay so: differential privacy mends no "
                "bias of the records, and may make that of small groups harder to see."
            ),
        )
    ]
    if evaluation is None:
        return (
            *blocks,
            "How accurate the result is was not measured: evaluate(...) does, for an epsilon.",
        )
    if not evaluation.levels:
        return (
            *blocks,
            (
                "Errors of groups of people were not measured. evaluate(..., by=..., levels=[...]) "
                "does, for one epsilon for all groups together."
            ),
        )
    name = next(name for name in ERRORS if name in evaluation.metrics)
    rows = tuple((str(level), str(evaluation.group(level).metric(name))) for level in evaluation.levels)
    return (*blocks, f"Errors of groups, by {name}:", Table(("Group", f"{name} [95 %]"), rows))


def _short(value):
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return ", ".join(map(_short, np.asarray(value, dtype=object).ravel()[:8]))
    return "as listed above" if hasattr(value, "keys") or hasattr(value, "columns") else str(value)

"""The most that a search can spend, before any data: what its ledger is asked for."""

import math

from sklearn.pipeline import Pipeline

from ..preprocessing.pipeline_check import private_parts
from ..privacy import PrivacyLoss

# strategies that release several trained models, whose deltas add up
RELEASE_ALL = ("alpha_split", "auto")


def steps_at_most(estimator):
    """Return the losses of the steps that learn privately.

    Parameters
    ----------
    estimator : estimator
        A Pipeline, or a model without steps.

    Returns
    -------
    list of PrivacyLoss
        A part without a parameter `epsilon` has an unknown loss: ``inf``.
    """
    if not isinstance(estimator, Pipeline):
        return []
    return [
        PrivacyLoss(
            float(getattr(part, "epsilon", float("inf"))), float(getattr(part, "delta", 0.0)),
            label=type(part).__name__,
        )
        for _, step in estimator.steps[:-1]
        if step is not None and not isinstance(step, str)
        for part in private_parts(step)
    ]


def selection_at_most(search, estimator, candidates):
    """Return the loss that a StabilityGridSearchCV does not exceed on any records.

    Parameters
    ----------
    search : StabilityGridSearchCV
    estimator : estimator
        Its estimator.
    candidates : list of Candidate

    Returns
    -------
    PrivacyLoss
    """
    deltas = [float(candidate.model.get_params().get("delta", 0.0)) for candidate in candidates]
    delta = max(deltas) if search.strategy not in RELEASE_ALL else min(1.0, math.fsum(deltas))
    # exact scores
    epsilon = float("inf") if search.strategy == "control" else float(search.epsilon)
    # one sum of all, as that of the losses: rounded twice, it might be the smaller one
    parts = [
        *steps_at_most(estimator),
        PrivacyLoss(epsilon, float(search.delta), label="choice and model"),
        PrivacyLoss(0.0, delta, label="the models' own delta"),
    ]
    return PrivacyLoss.sequential(parts, label=type(search).__name__)

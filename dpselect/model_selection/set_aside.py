"""Records that a search sets aside, on which the model that it releases is evaluated.

They are chosen by their number, so that a record is among those that train or among these: the losses
compose as a maximum.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from ..evaluation.forecast import forecast_message
from ..evaluation.release import EvaluationPlan, cells_of, cells_of_classes, cells_of_range
from ..noise import as_generator, is_seeded
from ..privacy import PrivacyLoss
from ..rows import n_rows, take, take_records
from ..validation import check_number
from .release import release_state


def check_evaluation(search, models=()):
    """Refuse a share that leaves nothing, or models of which nothing can be told."""
    if search.evaluation is None:
        return
    check_number(
        "evaluation", search.evaluation, high=1.0,
        why="it is the share of the records on which the model is evaluated and not trained",
        instead="write a number between 0 and 1, such as 0.2, or None",
    )
    if not search.refit:
        raise ValueError(
            f"evaluation={search.evaluation!r} evaluates the model that is released, and refit=False "
            "releases none; write refit=True, or leave evaluation out."
        )
    for model in models:
        cells_before(model, 2)


def check_no_evaluation(search):
    """Refuse to set rows aside, where a person may have rows in both parts."""
    if search.evaluation is not None:
        raise ValueError(
            f"evaluation={search.evaluation!r} is not allowed with groups, because it sets rows aside, "
            "and rows of one person would be in both parts, whose losses then add up; write "
            "evaluation=None."
        )


def cells_before(model, n_classes):
    """Return the cells of a model that is not fitted."""
    if is_classifier(model):
        classes = getattr(model, "classes", None)
        classes = np.arange(n_classes) if classes is None else np.unique(np.asarray(classes))
        return cells_of_classes(classes, hasattr(model, "predict_proba"))
    if target_range(model) is None:
        raise ValueError(
            f"evaluation counts predictions and errors in a public range, and {type(model).__name__} "
            "has neither classes nor target_range or target_bound; leave evaluation out, or call "
            "dpselect.evaluate on records that you set aside."
        )
    return cells_of_range(target_range(model))


def target_range(model):
    """Return the public range of a regression's targets, or None."""
    bound = getattr(model, "target_bound", None)
    return getattr(model, "target_range", None) if bound is None else (0.0, bound)


@dataclass(frozen=True)
class SetAside:
    """Which records train, and which ones are set aside; nothing is if there is no share.

    Attributes
    ----------
    training, held : ndarray of int
        Ascending indices. None if all records train.
    """

    training: Any = None
    held: Any = None

    @classmethod
    def of(cls, share, n_samples, stream):
        """Draw which of the records are set aside."""
        if share is None:
            return cls()
        n_held = count_held(share, n_samples)
        order = as_generator(stream.child("evaluation")).permutation(n_samples)
        return cls(np.sort(order[n_held:]), np.sort(order[:n_held]))

    def cut(self, X, y):
        """Return the records that train, and those that are set aside."""
        if self.held is None:
            return (X, y), None
        return tuple(take_records(X, y, part) for part in (self.training, self.held))

    def of_training(self, values):
        """Return what is given for each record, or None, of those that train."""
        return values if values is None or self.held is None else take(values, self.training)

    def params_of_training(self, params, X):
        """Return the parameters of a fit, those that are one for each record cut."""
        n = n_rows(X)
        return {
            name: self.of_training(value)
            if hasattr(value, "__len__") and not isinstance(value, str) and n_rows(value) == n else value
            for name, value in params.items()
        }


def count_held(share, n_samples):
    """Return how many records are set aside, or refuse a share that leaves none."""
    n_held = 0 if share is None else max(1, round(float(share) * n_samples))
    if n_held >= n_samples > 0:
        raise ValueError(
            f"evaluation={share!r} sets all of the {n_samples} records aside, which leaves none to "
            "train on; write a smaller share, or give more records."
        )
    return n_held


def with_evaluation(most, search, epsilon):
    """Return what is reserved for a search and its evaluation."""
    if search.evaluation is None:
        return most
    seeded = epsilon != math.inf and is_seeded(search.random_state)
    loss = PrivacyLoss(epsilon, label="evaluation", seeded=seeded)
    return PrivacyLoss.parallel([most, loss], label=type(search).__name__)


def beside_evaluation(loss, evaluated, search):
    """Return a search's loss with that of its evaluation, which is about other records."""
    if not evaluated:
        return loss
    losses = [loss, evaluated["evaluation_"].privacy_]
    return PrivacyLoss.parallel(losses, label=type(search).__name__)


def evaluate_released(search, model, held, epsilon, stream):
    """Return `evaluation_` of a fitted model, on rows and targets that were set aside; others pay."""
    state = release_state(stream, is_seeded(search.random_state), "evaluation")
    last = model[-1] if isinstance(model, Pipeline) else model
    cells = cells_of(model, None if is_classifier(model) else target_range(last))
    return {"evaluation_": EvaluationPlan(cells, epsilon, random_state=state).evaluate(model, *held)}


def evaluate_candidate(search, candidate, estimator, public, held, epsilon, stream):
    """Return `evaluation_` of a candidate's released estimator, or nothing if nothing is held."""
    if held is None:
        return {}
    X, y = held
    # as the records that train: step by step, wherever the rows are
    rows = candidate.transform(X if public is None else public.form.convert(X))
    model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return evaluate_released(search, model, (rows, y), epsilon, stream)


def with_forecast(plan, cells, n_held, epsilon):
    """Return a plan that tells how well the model will be known."""
    return replace(plan, messages=(*plan.messages, forecast_message(cells, n_held, epsilon)))

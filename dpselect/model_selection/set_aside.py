"""Records that a search sets aside, on which the model that it releases is evaluated.

They are chosen by their number, so that a record is among those that train or among these: the losses
compose as a maximum.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import DensityMixin, RegressorMixin, clone, is_classifier

from ..accounting.privacy_loss import PrivacyLoss
from ..evaluation.density import DensityCells
from ..evaluation.forecast import forecast_message
from ..evaluation.release import EvaluationPlan, cells_of, cells_of_classes, cells_of_range
from ..evaluation.score_bins import BinaryCells
from ..metrics.scores import target_range
from ..noise import as_generator, is_seeded
from ..preprocessing.tabular import known_share
from ..private_model import PrivateModel
from ..records.persons import Persons
from ..records.records import (
    Weighted,
    as_targets,
    numeric_rows,
    one_label_a_row,
    split_weights,
)
from ..rows import n_rows, on_labels, take, take_records
from ..utils.validation import check_number
from .final_fit import release_state
from .private_steps import last_private, last_step


def check_evaluation(search, models=()):
    """Refuse a fraction that leaves nothing, or models that cannot be evaluated."""
    if search.evaluation is None:
        return
    check_number(
        "evaluation",
        search.evaluation,
        high=1.0,
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


def cells_before(model, n_classes):
    """Return the cells of a model that is not fitted."""
    name = type(model).__name__
    if is_classifier(model):
        classes = getattr(model, "classes", None)
        classes = np.arange(n_classes) if classes is None else np.unique(np.asarray(classes))
        scores = hasattr(model, "predict_proba")
        if len(classes) == 2 and not scores and not hasattr(model, "decision_function"):
            raise ValueError(
                f"evaluation counts records of two classes by their scores, and {name} has neither "
                "predict_proba nor decision_function; leave evaluation out."
            )
        return _for_known_share(cells_of_classes(classes, scores), model)
    if isinstance(model, DensityMixin):
        if not getattr(type(model), "has_cells", False):
            raise ValueError(
                f"evaluation counts records by the densities of a histogram, and {name} is none; "
                "leave evaluation out."
            )
        return DensityCells.invented()
    if target_range(model) is None:
        raise ValueError(
            f"evaluation counts predictions and errors in a public range, and {name} "
            "has neither classes nor target_range or target_bound; leave evaluation out, or call "
            "dpselect.evaluate on records that you set aside."
        )
    return cells_of_range(target_range(model))


def _for_known_share(cells, model):
    """Return cells of scores with thresholds that suit the share given to a model; others unchanged."""
    return cells.for_share(known_share(model)) if isinstance(cells, BinaryCells) else cells


@dataclass(frozen=True)
class SetAside:
    """Split of the records into those that train and those that are set aside, if any are.

    Attributes
    ----------
    training, held : ndarray of int
        Ascending indices of rows. None if all records train.
    persons : Persons or None
        Whose rows all are; those of a person are together in one of the two parts.
    """

    training: Any = None
    held: Any = None
    persons: Any = None

    @classmethod
    def of(cls, share, n_samples, stream, persons=None):
        """Draw which of the records, or persons, are set aside."""
        if share is None:
            return cls(persons=persons)
        n_samples = n_samples if persons is None else persons.n
        n_held = count_held(share, n_samples)
        order = as_generator(stream.child("evaluation")).permutation(n_samples)
        if persons is None:
            return cls(np.sort(order[n_held:]), np.sort(order[:n_held]))
        held = np.isin(persons.number, order[:n_held])
        return cls(np.flatnonzero(~held), np.flatnonzero(held), persons)

    def cut(self, X, y):
        """Return the records that train, and those that are set aside."""
        if self.held is None:
            return (X, y), None
        held = take_records(X, y, self.held)
        if self.persons is not None:
            held = *held, self.persons.number[self.held]
        return take_records(X, y, self.training), held

    def with_weights(self, held, weight):
        """Return what was set aside, with the weights of these records if there are any."""
        if held is None or weight is None:
            return held
        X, y, *numbers = held
        return X, Weighted(y, take(weight, self.held)), *numbers

    def training_persons(self, X):
        """Return the persons whose rows train, or None; X are the rows that train."""
        if self.persons is None or self.held is None:
            return self.persons
        return Persons.of(self.persons.number[self.training], X)

    def of_training(self, values):
        """Return what is given for each record, or None, of those that train."""
        return values if values is None or self.held is None else take(values, self.training)

    def params_of_training(self, params, X):
        """Return the parameters of a fit, those that are one for each record cut."""
        n = n_rows(X)
        return {
            name: self.of_training(value)
            if hasattr(value, "__len__") and not isinstance(value, str) and n_rows(value) == n
            else value
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


def check_held(held, candidate, estimator, public):
    """Refuse records that were set aside as those that train are refused, before anything is paid.

    What a step that learns privately refuses is not known here, nor what a model of another library
    does.
    """
    if held is None:
        return
    X, y = held[0], split_weights(held[1])[0]
    model, owner = candidate.model, type(candidate.model).__name__
    if isinstance(model, RegressorMixin):
        on_labels(partial(as_targets, owner), one_label_a_row(y, owner))
    rows = X if public is None else public.form.convert(X)
    if last_private(estimator) >= 0:
        return
    if candidate.steps is not None:
        # ranges that are learned later lie within those of the schema
        candidate = candidate.with_learned().fitted_on(public)
    rows = candidate.transform(rows)
    if not isinstance(model, PrivateModel):
        numeric_rows(clone(model), rows, **getattr(model, "reads", {}))


def with_evaluation(most, search, epsilon):
    """Return what is reserved for a search and its evaluation."""
    if search.evaluation is None:
        return most
    seeded = epsilon != math.inf and is_seeded(search.random_state)
    loss = PrivacyLoss(epsilon, adjacency=most.adjacency, label="evaluation", seeded=seeded)
    return PrivacyLoss.parallel([most, loss], label=type(search).__name__)


def beside_evaluation(loss, evaluated, search):
    """Return a search's loss with that of its evaluation, which is about other records."""
    if not evaluated:
        return loss
    losses = [loss, evaluated["evaluation_"].privacy_]
    return PrivacyLoss.parallel(losses, label=type(search).__name__)


def evaluate_released(search, model, held, epsilon, stream):
    """Return `evaluation_` of a fitted model, on rows and targets that were set aside; others pay.

    `held` ends with the numbers of persons, if they are those of persons.
    """
    state = release_state(stream, is_seeded(search.random_state), "evaluation")
    cells = cells_of(model, None if is_classifier(model) else target_range(last_step(model)))
    # by what is public, not by a share that was learned
    cells = _for_known_share(cells, last_step(search.estimator))
    X, y, *groups = held
    y, weight = split_weights(y)
    # as the chosen model was trained; without a bound, only epsilon=inf takes weights
    largest = getattr(last_step(model), "max_sample_weight", None)
    if weight is None or largest is None:
        weight = largest = None
    plan = EvaluationPlan(
        cells,
        epsilon,
        random_state=state,
        persons=bool(groups),
        max_weight=largest if largest is None else float(largest),
    )
    return {"evaluation_": plan.evaluate(model, X, y, None, *groups, weight=weight)}


def evaluate_candidate(problem, estimator, held, epsilon):
    """Return `evaluation_` of the released estimator of a search, on records that were set aside."""
    X, *rest = held
    # as the records that train: step by step, wherever the rows are
    rows = problem.winner.transform(X if problem.public is None else problem.public.form.convert(X))
    return evaluate_released(
        problem.search, last_step(estimator), (rows, *rest), epsilon, problem.stream
    )


def with_forecast(plan, model, n_classes, n_held, epsilon, persons=False, share=None):
    """Return a plan with a forecast of how well the quality of the model will be known."""
    cells = cells_before(model, n_classes)
    if not isinstance(cells, BinaryCells):
        share = None
    elif share is None:
        share = known_share(model)
    message = forecast_message(cells, n_held, epsilon, persons, share)
    return replace(plan, messages=(*plan.messages, message))

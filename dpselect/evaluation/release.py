"""The release of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..accounting.privacy_loss import PrivacyLoss
from ..base.fit_warnings import warn_if_seeded
from ..ledger import PrivacyLedger, spending, warn_if_uncharged
from ..metrics.score import with_labels
from ..noise import (
    as_generator,
    check_random_state,
    discrete_laplace,
    grid_noise,
    grid_step,
    is_seeded,
    release,
)
from ..noise.generators import RandomState
from ..noise.grid import noise_ratio
from ..records.held_records import HeldRecords
from ..records.persons import adjacency_of, cell_counts, check_one_label_a_row
from ..records.records import as_targets, fractions_of_largest, one_label_a_row, public_classes
from ..records.training import (
    holds_training_records,
    uncounted_loss_note,
    warn_of_training_records,
    without_training_warning,
)
from ..rows import align, as_lazy, in_memory, n_rows, on_labels
from ..utils.type_aliases import Estimator, MatrixLike
from ..utils.validation import check_epsilon, check_flag, check_interval, check_number, unquoted
from .binary import BinaryEvaluation
from .confidence import ConfidenceCells, ConfidenceEvaluation
from .density import DensityCells, DensityEvaluation
from .evaluation import Evaluation
from .multiclass import MulticlassCells, MulticlassEvaluation
from .regression import RegressionCells, RegressionEvaluation
from .score_bins import BinaryCells, edges_of

# replacing a record or person lowers counts by 1 in total and raises others by 1
SENSITIVITY = 2.0
# cells -> class of the evaluation
EVALUATIONS: dict[type, Any] = {
    BinaryCells: BinaryEvaluation,
    ConfidenceCells: ConfidenceEvaluation,
    MulticlassCells: MulticlassEvaluation,
    RegressionCells: RegressionEvaluation,
    DensityCells: DensityEvaluation,
}


def evaluate(
    model: Estimator,
    X: MatrixLike,
    y: npt.ArrayLike | None = None,
    *,
    epsilon: float,
    target_range: tuple[float, float] | None = None,
    confidence: bool = False,
    thresholds: npt.ArrayLike | float | None = None,
    by: npt.ArrayLike | None = None,
    levels: Sequence[Any] | None = None,
    groups: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    max_weight: float | None = None,
    ledger: PrivacyLedger | None = None,
    random_state: RandomState = None,
) -> Evaluation:
    """Evaluate a fitted model, with epsilon-differential privacy.

    Noisy counts of (score bin, label), (prediction, error) or ranges of a density are released once. All
    figures and their intervals are computed from them. Neighbouring data sets differ in one record of
    X, y and `by`. Public are the number of records, the model, and every parameter, `levels` included.

    **The model is taken to be public**: the loss covers the records that it is evaluated on, and not
    those that it was trained on. Records that were set aside by their index, for instance the last
    fifth, are disjoint from the training records, and the total is the larger of the two losses:
    ``PrivacyLoss.parallel([model.privacy_, evaluation.privacy_])``. If they are the training
    records themselves, the losses add up, and the figures are too good.

    Read more in :doc:`/evaluation`.

    Parameters
    ----------
    model : classifier, regressor or density
        Fitted: an estimator, a search or a Pipeline; of densities a DPHistogramDensity. Its prediction
        of a row must depend on this row alone: that is your word. Of two `classes_` the second one is
        the positive class, and decisions f of a model without `predict_proba` count as the scores
        1 / (1 + exp(-f)).
    X : array-like of shape (m, n_features)
        Records that took no part in training.
    y : array-like of shape (m,), default=None
        Labels, all of them among the model's `classes_`, or targets. Ignored if the model is a density.
    epsilon : float
        Privacy loss of the release, greater than 0; ``inf`` gives exact counts.
    target_range : (float, float), default=None
        Of a regression: public numbers between which nearly all targets lie. Predictions and targets
        beyond it count as its ends, and errors are counted in bins relative to it.
    confidence : bool, default=False
        Of three or more classes: count how probable predictions were that are right or wrong, in place
        of labels and predictions. That is what :func:`calibrated` needs; both are two releases, and
        their losses add up.
    thresholds : float or array-like of shape (31,), default=None
        Of two classes: between which numbers records are counted by their scores. A number is the
        public share of positive records, around which the thresholds then lie close, as the scores of a
        rare class do. An array holds public numbers, such as quantiles of the model's scores of invented
        or public rows. None is for shares from 5 to 95 %. Metrics of probabilities take the scores
        between two thresholds for one number.
    by : array-like of shape (m,), default=None
        The group of each record, for figures of each group; a record's group may be as private as its
        label.
    levels : sequence, default=None
        With `by`: the list of all groups that a record may have, which is public.
    groups : array-like of shape (m,), default=None
        The id of the person whose row it is. Neighbours then differ in all rows of one person, figures
        are means over persons of the mean of their rows, and public is the number of persons. Intervals
        hold for any correlation between the rows of one person, and are wider for a low one. None if
        each row is a person.
    sample_weight : array-like of shape (m,), default=None
        How often each record counts, 0 or more, such as how many people of the population it stands
        for. It must follow from the record and from public numbers. Figures are weighted means.
        Intervals cover the sampling of records drawn independently, not the strata or clusters of a
        survey; they are wider the more weights differ from `max_weight`.
    max_weight : float, default=None
        With `sample_weight`: the public number to which weights are clipped. The noise is as large as
        that of so many records of weight 1.
    ledger : PrivacyLedger, default=None
        Pays, in place of one that is open (``with ledger:``). If too little is left, BudgetExceededError
        is raised before any record is read.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None draws noise from a cryptographic generator keyed by the operating system. Everything
        else is for tests: the noise can be drawn again.

    Returns
    -------
    BinaryEvaluation, MulticlassEvaluation, ConfidenceEvaluation, RegressionEvaluation or
    DensityEvaluation

    Raises
    ------
    BudgetExceededError
        If the ledger has less left; no record is read.
    NotFittedError
        If the model is not fitted.
    TypeError, ValueError
        If a parameter is out of range, the model has no scores or predictions, records, labels, `by` and
        `groups` differ in number, or the model fails on a record; its message is not repeated.

    Warns
    -----
    PrivacyLeakWarning
        If `X` is what the model was trained on, or a part of it: the losses then add up. If nothing
        pays, while the model has a `ledger`.
    SeededNoiseWarning
        If `random_state` is not None.

    References
    ----------
    Discrete Laplace noise: Ghosh, Roughgarden and Sundararajan, *Universally Utility-maximizing Privacy
    Mechanisms*, STOC 2009. The page "Evaluation" has the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dpselect import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6_000, 2))
    >>> y = (X[:, 0] + rng.normal(size=6_000) > 0).astype(int)
    >>> model = LogisticRegression().fit(X[:1_000], y[:1_000])
    >>> evaluation = evaluate(model, X[1_000:], y[1_000:], epsilon=1.0)
    >>> print(evaluation.privacy_)
    (epsilon = 1, delta = 0) differential privacy, adjacency: replace one record
      epsilon 1: evaluate: 64 counts of scores and labels; the model's own loss is not counted here
    """
    epsilon = check_epsilon(epsilon)
    check_random_state(random_state)
    cells = cells_of(model, target_range, confidence, thresholds)
    levels = check_levels(by, levels)
    max_weight = check_max_weight(sample_weight, max_weight)
    trained = holds_training_records(model, X)
    persons = groups is not None
    plan = EvaluationPlan(cells, epsilon, levels, ledger, random_state, persons, trained, max_weight)
    warn_if_seeded(plan)
    if trained:
        warn_of_training_records(
            model,
            "X holds records that the model was trained on, so the losses of the model and of "
            "evaluate add up, and its figures are too good; evaluate records that took no part in "
            "training.",
        )
    warn_if_uncharged(plan, model, "evaluate")
    with spending(plan, plan.loss), without_training_warning():
        return plan.evaluate(model, X, y, by, groups, sample_weight)


@dataclass(frozen=True)
class EvaluationPlan:
    """A planned evaluation, and its loss, from public numbers.

    Attributes
    ----------
    cells : BinaryCells, MulticlassCells, ConfidenceCells, RegressionCells or DensityCells
    epsilon : float
    levels : tuple
        The public groups, or none.
    ledger : PrivacyLedger or None
    random_state : object
    persons : bool
        Whether records are persons with any number of rows.
    of_training_records : bool
        Whether they are known to have trained the model.
    max_weight : float or None
        To which weights are clipped; None if each record counts once.
    """

    cells: Any
    epsilon: float
    levels: tuple[Any, ...] = ()
    ledger: Any = None
    random_state: Any = None
    persons: bool = False
    of_training_records: bool = False
    max_weight: float | None = None

    @property
    def shape(self):
        """tuple of int : Shape of the counts."""
        return (*([len(self.levels)] if self.levels else []), *self.cells.shape)

    @property
    def loss(self):
        """PrivacyLoss : Loss of the release."""
        what = f"{self.cells.what} of {len(self.levels)} groups" if self.levels else self.cells.what
        weighted = "" if self.max_weight is None else "weighted "
        return PrivacyLoss(
            self.epsilon,
            adjacency=adjacency_of(self.persons),
            label=(
                f"evaluate: {math.prod(self.shape)} {weighted}counts of {what}; "
                f"{uncounted_loss_note(self.of_training_records)}"
            ),
            seeded=self.epsilon != math.inf and is_seeded(self.random_state),
        )

    @property
    def step(self):
        """float : Step of the grid of the noise; counts are multiples of it."""
        return grid_step(SENSITIVITY / self.epsilon, unit=1.0) if self._of_fractions else 1.0

    @property
    def _of_fractions(self):
        return self.persons or self.max_weight is not None

    def evaluate(self, model, X, y, by=None, groups=None, weight=None):
        """Release the counts, and compute an evaluation from them; charges no ledger."""
        if isinstance(self.cells, DensityCells):
            y = np.zeros(n_rows(as_lazy(X)))
        if groups is not None:
            # later errors may disclose the number of labels
            check_one_label_a_row(X, y)
        held_out = HeldRecords(X, self._checked(y), groups)
        if self.levels:
            by = groups_of(by, self.levels, held_out.n_rows)
        given = {"by": by, "persons": held_out.persons}
        if weight is not None:
            given["weight"] = fractions_of_largest(weight, X, self.max_weight)
        counts = held_out.evaluate_quietly(partial(self._counts, model, **given))
        noise = self.standard_noise(len(counts))
        return self.read(release(counts, noise, self.step), len(held_out))

    def standard_noise(self, size):
        """Return the noise of the counts: integers, or on a grid for fractions of records."""
        if self.epsilon == math.inf:
            return np.zeros(size)
        generator = as_generator(self.random_state)
        if self._of_fractions:
            return grid_noise(generator, size, SENSITIVITY / self.epsilon, self.step)
        return discrete_laplace(generator, size, noise_ratio(self.epsilon, SENSITIVITY))

    def read(self, counts, n_records):
        """Return the evaluation for released counts."""
        return EVALUATIONS[type(self.cells)](
            counts_=counts.reshape(self.shape),
            n_records=n_records,
            privacy_=self.loss,
            levels=self.levels,
            of_training_records=self.of_training_records,
            max_weight=self.max_weight,
            **vars(self.cells),
        )

    def _checked(self, y):
        y = one_label_a_row(y, "evaluate")
        if isinstance(self.cells, (RegressionCells, DensityCells)):
            return on_labels(partial(as_targets, "evaluate"), y)
        public_classes(y, self.cells.classes, "evaluate")
        return y

    def _counts(self, model, X, y, by=None, persons=None, weight=None):
        predictions = self.cells.predictions(model, X)
        # otherwise labels would be paired with predictions of other records
        if n_rows(predictions) != n_rows(y):
            raise ValueError("The model has not one prediction for each record.")
        predictions, y = with_labels(predictions, y)
        groups = () if by is None else (align(predictions, by)[1],)
        n_groups = max(len(self.levels), 1)
        if weight is not None:
            weight = align(predictions, weight)[1]
        fractions = {"persons": persons, "step": self.step, "weight": weight}
        return count(self.cells, n_groups, predictions, y, *groups, **fractions)


def count(cells, n_groups, predictions, y, *groups, persons=None, step=1.0, weight=None):
    """Return the number of records in each cell, as an array of shape (n_groups * cells,)."""
    n_cells = math.prod(cells.shape)

    def cell(predictions, y, group=0):
        return n_cells * group + cells.index(predictions, y)

    return cell_counts(cell, n_groups * n_cells, predictions, persons, step, (y, *groups), weight)


def cells_of(model, target_range=None, confidence=False, thresholds=None):
    """Return the cells of a fitted model's records, or refuse a model that cannot be evaluated."""
    methods = ("predict_proba", "decision_function", "predict")
    has = [] if isinstance(model, type) else [name for name in methods if hasattr(model, name)]
    is_density = not has and not isinstance(model, type) and hasattr(model, "score_samples")
    if not has and not is_density:
        raise TypeError(
            "model must be a fitted classifier, regressor or density, because records are counted by "
            "its scores or predictions; give for instance a fitted DPLogisticRegression."
        )
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    if thresholds is not None and np.size(classes) != 2:
        raise ValueError(
            "thresholds are of scores, and model does not have two classes, whose records are counted "
            "by one; leave them out."
        )
    check_flag("confidence", confidence, why="it says what is counted")
    if confidence and ("predict_proba" not in has or np.size(classes) < 3):
        raise ValueError(
            "confidence=True is for a model of three or more classes with predict_proba, because what "
            "is counted is how probable its predictions were; leave it out."
        )
    if is_density:
        return cells_of_density(model, target_range)
    if classes is None:
        return cells_of_range(target_range)
    if target_range is not None:
        raise ValueError(
            "target_range is of regressions, and model has classes_, so that no error has a size; "
            "leave it out."
        )
    classes = np.array(classes)
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(
            "model does not have a `classes_` of two labels or more, by which records are counted; "
            "evaluate a classifier that was fitted on two classes or more."
        )
    if len(classes) == 2 and has == ["predict"]:
        raise TypeError(
            "model has neither predict_proba nor decision_function, and records of two classes are "
            "counted by their scores; give a classifier that has one of them."
        )
    if confidence:
        return ConfidenceCells(classes, True)
    cells = cells_of_classes(classes, "predict_proba" in has)
    return cells if thresholds is None else replace(cells, edges=edges_of(thresholds))


def cells_of_classes(classes, calibrated_scores):
    """Return the cells of records of two classes or more."""
    return (BinaryCells if len(classes) == 2 else MulticlassCells)(classes, calibrated_scores)


def cells_of_range(target_range):
    """Return the cells of a regression's records, or refuse a range."""
    ends = check_interval(
        "target_range",
        target_range,
        why="errors are counted in shares of a public range, and model has no classes_",
        instead="write target_range=(low, high), between which nearly all targets lie by knowledge of "
        "the field",
    )
    return RegressionCells(tuple(map(float, ends)))


def cells_of_density(model, target_range=None):
    """Return the cells of a histogram density's records, or refuse another density."""
    if target_range is not None:
        raise ValueError("target_range is of regressions, and model is a density; leave it out.")
    chosen = getattr(model, "best_estimator_", model)
    histogram = chosen[-1] if isinstance(chosen, Pipeline) else chosen
    if not hasattr(histogram, "density_") or not hasattr(histogram, "bin_edges_"):
        raise TypeError(
            f"model is a density of type {type(histogram).__name__}, and records are counted by the "
            "densities of a histogram; give a fitted DPHistogramDensity."
        )
    return DensityCells.of(histogram.density_, histogram.bin_edges_)


def check_levels(by, levels):
    """Return the public groups as a tuple, empty if there are none."""
    if (by is None) != (levels is None):
        given, other = ("by", "levels") if levels is None else ("levels", "by")
        raise ValueError(
            f"{given} was given without {other}, and figures of groups need both, because a list of "
            f"groups that is learned from records reveals them; write {other}=..., or leave {given} out."
        )
    if levels is None:
        return ()
    try:
        found = np.asarray(list(levels))
        different = found.ndim == 1 and len(found) >= 2 and len(np.unique(found)) == len(found)
    except (TypeError, ValueError):
        different = False
    if not different or isinstance(levels, str):
        raise ValueError(
            "levels must list two different groups or more, because counts are kept for each; write "
            "for instance levels=['a', 'b'], with all groups that a record may have."
        )
    return tuple(found.tolist())


def check_max_weight(sample_weight, max_weight):
    """Return the public bound of weights as a float, None if there are none."""
    if (sample_weight is None) != (max_weight is None):
        given, other = (
            ("sample_weight", "max_weight") if max_weight is None else ("max_weight", "sample_weight")
        )
        raise ValueError(
            f"{given} was given without {other}, and weighted figures need both, because one record "
            "could move the counts by any amount without a public bound; write "
            "sample_weight=..., max_weight=... with a number that few weights exceed, or leave both out."
        )
    if max_weight is None:
        return None
    check_number(
        "max_weight",
        max_weight,
        why="counts are sums of weights as fractions of it",
        instead="write a positive number that few weights exceed, such as 3.0",
    )
    return float(max_weight)


def groups_of(by, levels, n_records):
    """Return the index of each record's group among `levels`."""
    by = unquoted(np.asarray, in_memory(by), what="by")
    if by.shape != (n_records,):
        raise ValueError("by must have one group for each record; give an array of shape (n_samples,).")
    known = np.asarray(levels)
    order = np.argsort(known)
    if not np.isin(by, known).all():
        raise ValueError(
            "by holds a group that is not in levels, which must be public; add every group that a "
            "record may have to levels."
        )
    return order[np.searchsorted(known[order], by)]

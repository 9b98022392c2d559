"""Plans of selections and what they can detect, from public numbers, before any data is read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..accounting.privacy_loss import PrivacyLoss
from ..base.capabilities import RanksRegularisation
from ..base.fit_warnings import LEAST_SIGNAL
from ..records.persons import adjacency_of
from .plan_page import page_of, picture_of
from .quality_forecast import QualityForecast, forecast_metrics

# records times epsilon for each coefficient, below which the noise of linear models weighs heavily:
# there four fifths of the gain in AUC are expected to be kept
RECORDS_PER_DIMENSION = 30
# of the table of strategies
LEGEND = (
    (
        "(detects: the smallest difference of scores that can be seen; of: the largest that there can "
        "be, from a model that says nothing to a perfect one."
    ),
    "random takes a candidate by chance; control, which is not private, the best one by exact scores.)",
)
# what GridSearchCV has, and a private search has not
SCORES = re.compile(r"(mean|std|rank|split\d+)_(test|train)_\w+|(mean|std)_(fit|score)_time")


class PublicResults(dict[str, Any]):
    """The `cv_results_` of a private search, which says why it has no scores."""

    def __missing__(self, name: str) -> Any:
        if SCORES.fullmatch(str(name)):
            raise KeyError(
                f"cv_results_ has no {name!r}, which is an exact function of the data that was not paid "
                "for; score the released model on records that are not part of the training data."
            )
        raise KeyError(name)


@dataclass(frozen=True, kw_only=True)
class SelectionPlan:
    """Plan of a search: what it spends, and the noise of its selection beside the scores' span.

    Parameters
    ----------
    params : tuple of dict
        The candidates.
    n_samples, n_features : int
        What the plan is for: records, or persons, without those that are set aside, and columns of X.
    epsilon : float
        The whole privacy loss, private steps included.
    strategy : str
        How the choice is made: a value of the search's `strategy`, "one_release" for
        post-processing of one release, or "first_candidate" where nothing is worth choosing.
    training_epsilon : float
        Privacy loss with which the released model is trained.
    training_size : int
        Number of records that it is trained on.
    selection_epsilon : float
        Privacy loss of the choice. It adds to the training's, unless the two read different
        records; the larger one counts then.
    training, span : ndarray of shape (k,)
        How far one training record can move each candidate's score, and the score's span.
    sensitivity : ndarray of shape (k,)
        Delta_i, how far one record can move the score averaged over the splits.
    noise_scale : ndarray of shape (k,)
        Scale of the noise that is added to each score.
    minimum_detectable_difference : float
        With probability 1/2 or more, the chosen score is this close to the best, or three times
        this where "stability" gives a head start. 0 if scores are compared without noise, nan if
        none are.
    stake : float
        What a perfect model's score gains over that of one that says nothing; nan if no scores
        are compared.
    considered : ndarray of bool of shape (k,)
        Which candidates can be chosen. The columns of the others hold nan.
    messages : tuple of str
        What follows, in words.
    steps_epsilon : float
        Privacy loss of the steps that learn privately. It adds to the training's and the choice's.
    persons : bool
        Whether n_samples and training_size count persons.
    delta : float
        The largest delta that the search can state; this and what follows only in a plan from `plan`.
    expected_quality : tuple of QualityForecast
        What share of its gain over a constant the model is expected to keep, by metric; empty but for
        two classes and for a DPHuberRegressor. No promise.
    advice : tuple of str
        What public numbers say about the quality of the model, the columns of a table, and a delta.
    """

    params: tuple[dict[str, Any], ...]
    n_samples: int
    n_features: int
    epsilon: float
    strategy: str
    training_epsilon: float
    training_size: int
    selection_epsilon: float
    training: np.ndarray
    span: np.ndarray
    sensitivity: np.ndarray
    noise_scale: np.ndarray
    minimum_detectable_difference: float
    stake: float
    considered: np.ndarray
    messages: tuple[str, ...]
    steps_epsilon: float = 0.0
    persons: bool = False
    delta: float = field(default=0.0, compare=False)
    expected_quality: tuple[QualityForecast, ...] = field(default=(), compare=False)
    advice: tuple[str, ...] = field(default=(), compare=False)
    _compare: Callable[[], tuple[PlannedStrategy, ...]] = field(default=tuple, repr=False, compare=False)
    _grid: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def comparison(self) -> tuple[PlannedStrategy, ...]:
        """tuple of PlannedStrategy : What each strategy would spend; made when it is first read.

        Empty but in a plan from `plan`.
        """
        return self._compare()

    def without_comparison(self) -> SelectionPlan:
        """Return the plan without what other strategies would spend.

        Returns
        -------
        SelectionPlan
        """
        return replace(self, _compare=tuple)

    def __getstate__(self):
        # candidates do not travel with what was planned for them
        return {**vars(self), "comparison": self.comparison, "_compare": tuple, "_grid": None}

    @property
    def loss(self) -> PrivacyLoss:
        """PrivacyLoss : The largest loss that the search can state."""
        return PrivacyLoss(self.epsilon, self.delta, label="plan", adjacency=adjacency_of(self.persons))

    @property
    def division(self) -> str:
        """str : The strategy, and how it divides epsilon."""
        return (
            f'"{self.strategy}", epsilon {self.epsilon:.4g}: {self.training_epsilon:.3g} to train, '
            f"{self.selection_epsilon:.3g} to select"
        )

    @property
    def detects(self) -> str:
        """str : What difference of scores is seen; empty if no scores are compared."""
        if math.isnan(self.minimum_detectable_difference):
            return ""
        return (
            f"; minimum detectable difference of scores {self.minimum_detectable_difference:.2g}, and a "
            f"perfect model gains {self.stake:.2g}"
        )

    def to_html(self, ledger: Any = None) -> str:
        """Return a page with controls for epsilon, records, columns, delta and the evaluation.

        For those who decide before any record is read: what quality is expected, how well it will be
        known, what is promised, and what plans say, over a grid of public numbers. It is one file that
        needs no network. It takes some seconds, in which more than a hundred plans are made.

        Parameters
        ----------
        ledger : PrivacyLedger, default=None
            The page then says how many such releases it carries. Nothing is spent.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If the plan is not one that `plan` has returned, but one of a fit or of a file; or if the
            ledger is for another adjacency.
        """
        return page_of(self._known_grid(), ledger)

    def to_grid(self, ledger: Any = None) -> dict[str, Any]:
        """Return the numbers of the page as plain numbers and strings, ready for JSON.

        Parameters
        ----------
        ledger : PrivacyLedger, default=None
            As for :meth:`to_html`.

        Returns
        -------
        dict
            "axes" has the values of each control, "plans" what plans say, by epsilon, records, columns
            and delta, "evaluations" and "groups" what is expected of an evaluation, by epsilon and
            records, "intervals" how wide those of coefficients are expected, by epsilon, and "releases"
            how many releases a budget carries, by epsilon and delta.

        Raises
        ------
        ValueError
            As for :meth:`to_html`.
        """
        return dict(self._known_grid().to_dict(ledger))

    def _known_grid(self):
        if self._grid is None:
            raise ValueError(
                "This plan was kept with a fit or a file, and the search that it is of is not known any "
                "more; call plan of the search, and to_html of what it returns."
            )
        return self._grid

    def _repr_html_(self):
        return picture_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
        """
        columns = ("considered", "sensitivity", "noise_scale", "span")
        apart = {*columns, "params", "training", "messages", "advice", "comparison", "_compare", "_grid"}
        apart.add("expected_quality")
        return {
            **{name: plain(value) for name, value in vars(self).items() if name not in apart},
            "candidates": [
                {"params": {name: plain(value) for name, value in params.items()}}
                | {name: plain(getattr(self, name)[i]) for name in columns}
                for i, params in enumerate(self.params)
            ],
            "messages": list(self.messages),
            "advice": list(self.advice),
            "expected_quality": [each.to_dict() for each in self.expected_quality],
            "comparison": [
                {name: plain(value) for name, value in vars(planned).items()}
                for planned in self.comparison
            ],
        }

    def to_results(self) -> dict[str, Any]:
        """Return the plan as the columns of `cv_results_`.

        Returns
        -------
        dict of arrays of shape (k,)
        """
        results = PublicResults()
        for name in sorted({name for params in self.params for name in params}):
            column = np.empty(len(self.params), dtype=object)
            for i, params in enumerate(self.params):
                column[i] = params.get(name)
            missing = [name not in params for params in self.params]
            results[f"param_{name}"] = np.ma.MaskedArray(column, missing)
        results.update(
            {
                "params": list(self.params),
                "considered": self.considered,
                "training_stability": self.training,
                "score_span": self.span,
                "sensitivity": self.sensitivity,
                "noise_scale": self.noise_scale,
            }
        )
        return results

    def __str__(self):
        unit = "persons" if self.persons else "records"
        first = (
            f"Plan for {self.n_samples} {unit} and {self.n_features} columns, "
            f'strategy="{self.strategy}": epsilon {self.epsilon:.4g} '
            + (f"and delta {self.delta:.4g} " if self.delta else "")
            + "in all, "
            + (f"{self.steps_epsilon:.4g} for private steps, " if self.steps_epsilon else "")
            + f"{self.training_epsilon:.4g} to train on {self.training_size} {unit}, "
            f"{self.selection_epsilon:.4g} to select."
        )
        # without a comparison of scores there is nothing to say of each candidate
        scores = (
            []
            if math.isnan(self.minimum_detectable_difference)
            else _aligned(
                [
                    ("candidate", "one record moves", "noise scale", "span of the score"),
                    *(
                        (
                            describe(params),
                            *(f"{value:.2g}" if considered else "-" for value in (moves, scale, span)),
                        )
                        for params, considered, moves, scale, span in zip(
                            self.params, self.considered, self.sensitivity, self.noise_scale, self.span
                        )
                    ),
                ]
            )
        )
        if scores and not all(self.considered):
            scores.append("(-: ruled out by public numbers, so no epsilon is spent on comparing it)")
        strategies = (
            []
            if not self.comparison
            else _aligned(
                [
                    ("strategy", "training epsilon", f"on {unit}", "selection epsilon", "detects", "of"),
                    *(planned.row() for planned in self.comparison),
                ]
            )
            + [*LEGEND]
        )
        return "\n".join([first, *scores, *self.messages, *self.advice, *strategies])


@dataclass(frozen=True)
class PlannedStrategy:
    """Plan of one strategy for a search, for comparison.

    Attributes
    ----------
    strategy : str
    training_epsilon, training_size, selection_epsilon, minimum_detectable_difference, stake
        As in :class:`SelectionPlan`; None if the strategy does not serve the search.
    refusal : str
        Why it does not serve; empty otherwise.
    """

    strategy: str
    training_epsilon: float | None = None
    training_size: int | None = None
    selection_epsilon: float | None = None
    minimum_detectable_difference: float | None = None
    stake: float | None = None
    refusal: str = ""

    def row(self):
        """Return the entries of a line of the table."""
        if self.refusal:
            return self.strategy, "does not serve here"
        seen = (
            ("-", "-")
            if math.isnan(self.minimum_detectable_difference)
            else (f"{self.minimum_detectable_difference:.2g}", f"{self.stake:.2g}")
        )
        return (
            self.strategy,
            f"{self.training_epsilon:.4g}",
            f"{self.training_size}",
            f"{self.selection_epsilon:.4g}",
            *seen,
        )


def _aligned(rows):
    """Return the lines of a table whose first column is text and whose others are numbers."""
    n_columns = max(map(len, rows))
    full = [row for row in rows if len(row) == n_columns]
    widths = [max(len(row[j]) for row in full) for j in range(n_columns)]
    widths[0] = max(len(row[0]) for row in rows)
    return [
        "  ".join([f"{row[0]:{widths[0]}}", *map(str.rjust, row[1:], widths[1:])]).rstrip()
        if row in full
        else "  ".join(map(str.ljust, row, widths)).rstrip()
        for row in rows
    ]


def with_steps(plan, budget):
    """Return a plan of what private steps leave of epsilon as one of the whole search."""
    return replace(
        plan,
        epsilon=budget.total,
        steps_epsilon=budget.steps_epsilon,
        messages=(*budget.messages, *plan.messages),
    )


def too_few_records(candidates, n_samples, epsilon):
    """Return a message if there are too few records to learn from; the threshold is empirical."""
    # known of linear classifiers; the least demanding one decides, and one-vs-rest problems
    # share epsilon
    models = {type(candidate.model): candidate.model for candidate in candidates}
    if not all(isinstance(model, RanksRegularisation) for model in models.values()):
        return ()
    if forecast_metrics(candidates[0].model, candidates[0].n_problems):
        return ()  # which says more
    dimension = min((c.n_features + 1) * c.n_problems for c in candidates)
    if n_samples * epsilon >= RECORDS_PER_DIMENSION * dimension:
        return ()
    needed = math.ceil(RECORDS_PER_DIMENSION * dimension / epsilon)
    return (
        (
            f"n epsilon / d = {n_samples * epsilon / dimension:.2g} is below "
            f"{RECORDS_PER_DIMENSION}: noise takes much of what a model could learn, and below "
            f"{LEAST_SIGNAL:.0f} most of it; use n_samples >= {needed}, a larger epsilon, or fewer "
            "columns."
        ),
    )


def minimum_detectable_difference(scales, k=None):
    """Return the difference of scores that a noisy argmax can detect.

    max s_i ln(2 k), where k is the number of scales unless it is given: with probability at least 1/2
    every exponential variable stays under ln(2 k), and the chosen score then lies within this of the
    best (Chaudhuri and Vinterbo 2013, theorem 3).
    """
    return float(np.max(scales)) * math.log(2 * (k or len(scales)))


def describe(params):
    """Return a candidate's parameters as one short text, without the names of steps if clear."""
    short = {name.rpartition("__")[2]: value for name, value in params.items()}
    if len(short) == len(params):
        params = short
    return ", ".join(f"{name}={_short(value)}" for name, value in params.items()) or "(default)"


def _short(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__}(...)"


def plain(value):
    """Return a value as JSON keeps it: None for NaN, and texts for what JSON does not know."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)

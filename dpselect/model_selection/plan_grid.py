"""Plans of one search for other epsilons, records, columns and deltas: the numbers of its page.

All numbers are those of plans and forecasts, as texts of the digits that the page shows, and no record
is read.
"""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from ..evaluation.forecast import forecast as evaluation_forecast
from ..preprocessing.schema import CategoryColumn
from ..preprocessing.tabular import TabularPipeline, known_share
from ..records.persons import adjacency_of
from .budget import Budget
from .candidates import make_candidates, parameters
from .engine import price
from .plan import SelectionPlan
from .plan_advice import LEAST_GAIN, customary_delta
from .plan_intervals import interval_widths
from .planned import plan_of
from .quality_forecast import CONSTANT, expected_quality, forecast, quality_messages, weighted
from .set_aside import cells_before

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# multiples of the number of records, and parts of the columns, rounded up
RECORDS, COLUMNS = (1 / 4, 1, 4), (1 / 4, 1 / 2, 1)
# records of the evaluation, beside one that trains; and those of a fifth, where the search has none
USUALLY_HELD = 1 / 4
HELD = (1 / 9, USUALLY_HELD, 1)
# of the rarer of two classes
SHARES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
BUDGETS = (1.0, 2.0, 5.0, 10.0)
# records of a group in the evaluation
GROUPS = (30, 100, 300, 1000, 3000, 10_000)
# an AUC, or R^2, that similar data reach without privacy
REACHABLE = {
    "roc_auc": (0.6, 0.65, 0.7, 0.725, 0.75, 0.775, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95),
    "r2": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
}
# such a figure that is needed: for it the page looks for the smallest epsilon
TARGETS = {
    "roc_auc": tuple(percent / 100 for percent in range(51, 96)),
    "r2": tuple(percent / 100 for percent in range(5, 96)),
}
BELOW_REACHABLE = 0.05
# so many of the longest columns are planned without
LONGEST = 15


@dataclass(frozen=True)
class PlanGrid:
    """Plans of one search over a grid of public numbers.

    Attributes
    ----------
    search : estimator
        Without an evaluation.
    given : callable
        ``given(search, n_samples, n_features, n_classes, example, persons)`` returns the SearchProblem
        of a plan, in which epsilon decides the budget and nothing else yet.
    n_features, n_classes : int
    example : array-like or None
    persons : bool
    n_training : int
        Records, or persons, that train.
    n_held : int, default=0
        Those of the search's evaluation; 0 for none.
    """

    search: Any
    given: Callable[..., Any]
    n_features: int
    n_classes: int
    example: Any
    persons: bool
    n_training: int
    n_held: int = 0

    @property
    def pipeline(self):
        """TabularPipeline or None : Its columns can be varied."""
        estimator = self.search.estimator
        return estimator if isinstance(estimator, TabularPipeline) else None

    @property
    def model(self):
        """estimator : The model of the first candidate."""
        return self.first.model

    @cached_property
    def first(self):
        """Candidate : The first one of the grid."""
        given = clone(self.search)
        return make_candidates(given.estimator, given.param_grid, trusted_steps=given.trusted_steps)[0]

    @cached_property
    def schema(self):
        """PublicSchema or None : Of a table whose columns can be varied; read once for all plans."""
        if self.pipeline is None:
            return None
        encoder = self.pipeline.steps[-2][1]
        names_columns = encoder.columns is not None or encoder.cut_points or not len(encoder.pairs) == 0
        try:
            return None if names_columns else encoder.public_schema()
        except NotFittedError:  # one entry for all columns
            return None

    def columns(self):
        """Return the names of the columns in the order of the schema; none if they cannot be varied."""
        return [] if self.schema is None else list(self.schema.columns)

    def plan(
        self, epsilon: float, n: int, delta: float = 0.0, columns: list[Any] | None = None
    ) -> SelectionPlan:
        """Return the plan with other public numbers, and some of the columns."""
        return plan_of(self._problem(epsilon, n, delta, tuple(columns or ())))

    def _problem(self, epsilon, n, delta, columns):
        """Return the problem with other public numbers; what no epsilon changes is made once."""
        if (n, delta, columns) not in self._problems:
            self._problems[n, delta, columns] = self._of_any_epsilon(n, delta, columns)
        given = self._problems[n, delta, columns]
        search = copy(given.search)
        search.epsilon = epsilon
        return replace(given, search=search, budget=Budget(epsilon))

    @cached_property
    def _problems(self):
        return {}

    def _of_any_epsilon(self, n, delta, columns):
        search = clone(self.search)
        estimator, names = search.estimator, self.columns()
        if names:
            estimator.set_params(**{f"{estimator.steps[-2][0]}__schema": self.schema})
        model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        if "delta" in parameters(model):
            model.set_params(delta=delta)
        if columns and len(columns) < len(names):
            estimator.set_params(**{f"{estimator.steps[-2][0]}__columns": list(columns)})
        # with a schema a plan invents a row, which is faster than reading a dataframe
        example = self.example if len(names) != self.n_features else None
        return self.given(search, n, self.n_features, self.n_classes, example, self.persons)

    def to_dict(self, ledger: Any = None) -> dict[str, Any]:
        """Return all numbers of the page, ready for JSON; of a ledger, how many releases it carries."""
        axes = self._axes()
        epsilons, records, parts, deltas, shares = (
            axes[name] for name in ("epsilon", "records", "columns", "delta", "share")
        )
        carried: dict[Any, int] = {}
        cells = [
            [
                [
                    [self._cell(epsilon, n, delta, k, axes, ledger, carried) for delta in deltas]
                    for k in parts
                ]
                for n in records
            ]
            for epsilon in epsilons
        ]
        return {
            "unit": f"{adjacency_of(self.persons).unit}s",
            "columns": self.columns(),
            "metrics": self.metrics,
            "axes": axes,
            "start": self._start(axes),
            "plans": cells,
            "evaluations": [
                [self._widths(epsilon, n, shares) for n in axes["held"]] for epsilon in epsilons
            ],
            "groups": [[self._group_widths(epsilon, n) for n in axes["group"]] for epsilon in epsilons],
            "intervals": self._intervals(epsilons),
            "releases": [
                {
                    "sure": _sure(epsilon),
                    "carried": {f"{b:g}": math.floor(b / epsilon + 1e-9) for b in BUDGETS},
                }
                for epsilon in epsilons
            ],
            "ledger": None if ledger is None else str(ledger),
            "without": [self._without(epsilon) for epsilon in epsilons],
        }

    @cached_property
    def metrics(self):
        """list of str : Of the forecast; empty if there is none for the model."""
        given = self.plan(float(self.search.epsilon), self.n_training)
        return [each.metric for each in given.expected_quality]

    def _axes(self):
        names, model, metrics = self.columns(), self.first.model, self.metrics
        shares = ()
        if metrics and metrics[0] == "roc_auc":
            known = known_share(model)
            shares = SHARES if known is None else (min(known, 1 - known),)
        held = {max(1, round(part * self.n_training)) for part in HELD if part != USUALLY_HELD}
        held = sorted(held | {self._held})
        return {
            "epsilon": sorted({*EPSILONS, float(self.search.epsilon)}),
            "records": sorted({max(1, round(part * self.n_training)) for part in RECORDS}),
            "columns": sorted({math.ceil(part * len(names)) for part in COLUMNS})
            if names
            else [self.n_features],
            "delta": self._deltas(model),
            "share": list(shares),
            "reachable": list(REACHABLE[metrics[0]]) if metrics else [],
            "target": list(TARGETS[metrics[0]]) if metrics else [],
            "held": held,
            "group": [n for n in GROUPS if n <= held[-1]] or held[-1:],
        }

    @property
    def _held(self):
        """int : Records of the evaluation that the search has, or would usually have."""
        return self.n_held or max(1, round(USUALLY_HELD * self.n_training))

    def _start(self, axes):
        """Return the place of the search as it was given on each axis."""
        given, reachable = parameters(self.first.model).get("delta", 0.0), len(axes["reachable"]) // 2
        target = axes["reachable"][reachable] - BELOW_REACHABLE if axes["target"] else None
        return {
            "epsilon": axes["epsilon"].index(float(self.search.epsilon)),
            "records": axes["records"].index(self.n_training),
            "columns": len(axes["columns"]) - 1,
            "delta": len(axes["delta"]) - 1 if float(given) else 0,
            "share": 0,
            "reachable": reachable,
            "target": 0 if target is None else axes["target"].index(round(target, 2)),
            "held": axes["held"].index(self._held),
            "group": len(axes["group"]) // 2,
        }

    def _deltas(self, model):
        given = parameters(model).get("delta")
        if given is None:
            return [0.0]
        return [0.0, float(given) or customary_delta(self.n_training)]

    def _cell(self, epsilon, n, delta, n_columns, axes, ledger, carried):
        """Return what a plan says at one point of the grid; `carried` keeps what a ledger says."""
        planned = self.plan(epsilon, n, delta, self.columns()[:n_columns])
        expected, several = planned.expected_quality, len(planned.params) > 1
        varied = axes["share"] if len(axes["share"]) > 1 else (None,)
        kept = [
            [forecast(each.metric, weighted(each.signal, share)) for each in expected]
            for share in varied
        ]
        n_quality = len(quality_messages(expected, planned.training_size))
        loss = planned.loss
        if ledger is not None and loss not in carried:
            carried[loss] = ledger.carries(loss)
        return {
            "division": f"{planned.division}{planned.detects}." if several else "",
            "signal": f"{expected[0].signal:.3g}" if expected else None,
            "kept": [list(map(_band, each)) for each in kept],
            "reached": [
                [_reached(each[0], best) for best in axes["reachable"]] for each in kept if each
            ],
            "quality": [list(quality_messages(each, planned.training_size)) for each in kept],
            "advice": [*(planned.messages if several else ()), *planned.advice[n_quality:]],
            "statement": str(loss).splitlines()[0],
            "carried": carried.get(loss),
        }

    def _widths(self, epsilon, n, shares):
        """Return half the lengths of intervals of an evaluation of n records, by share."""
        cells = cells_before(self.model, self.n_classes)
        return [
            _half_lengths(evaluation_forecast(cells, n, epsilon, self.persons, share))
            for share in shares or (None,)
        ]

    def _group_widths(self, epsilon, n):
        """Return those of a group of n records."""
        return self._widths(epsilon, n, ())[0]

    def _intervals(self, epsilons):
        """Return how wide intervals of coefficients are expected for each epsilon, or None."""
        if self.schema is None:
            return [None] * len(epsilons)
        return interval_widths(
            self.first.estimator, self.schema, self.n_classes, epsilons, self.n_training, self.persons
        )

    def _without(self, epsilon):
        """Return what leaving out a column gains, as so many times the records; the largest first."""
        names = self.columns()
        if not self.metrics or len(names) < 2:
            return []
        levels = {name: len(getattr(self.schema.columns[name], "levels", "four")) for name in names}
        delta = parameters(self.first.model).get("delta", 0.0)

        def signal(columns):
            # that of a plan, whose advice takes a third of its time
            problem = self._problem(epsilon, self.n_training, delta, tuple(columns))
            strategy = price(problem.search.stages, problem)[0].problem.decided
            trained = strategy.training_size, strategy.training_epsilon
            return expected_quality(strategy.problem.candidates[0], *trained)[0].signal

        # without any of the columns that are encoded alike a plan is the same
        whole, of_kind, gains = signal(names), {}, {}
        for left_out in sorted(names, key=levels.get, reverse=True)[:LONGEST]:
            kind = _kind(self.schema.columns[left_out])
            if kind not in of_kind:
                of_kind[kind] = signal([name for name in names if name != left_out]) / whole
            gains[left_out] = of_kind[kind]
        # without some columns the encoder takes longer curves of the others
        gaining = [name for name in gains if gains[name] >= LEAST_GAIN]
        return [
            {"column": str(name), "times": f"{gains[name]:.2f}"}
            for name in sorted(gaining, key=gains.get, reverse=True)
        ]


def _kind(column):
    """Return all of a column by which the length of a row goes."""
    if isinstance(column, CategoryColumn):
        return len(column.levels)
    fill = None if column.fill is None else float(column.read(np.array([column.fill]))[0])
    return column.missing, fill, column.periodic, column.cycles, column.transform, column.dates is None


def _half_lengths(estimates):
    return {
        metric: None if each.empty else f"{(each.high - each.low) / 2:.2g}"
        for metric, each in estimates.items()
    }


def _reached(kept, best):
    """Return the metric that is expected where the best model without privacy has `best`."""
    base = CONSTANT[kept.metric]
    return [f"{base + share * (best - base):.2f}" for share in (kept.low, kept.median, kept.high)]


def _band(expected):
    return [_percent(expected.low), _percent(expected.median), _percent(expected.high)]


def _sure(epsilon):
    """Return how sure somebody may become who is half sure, rounded up."""
    doubt = 100 / (1 + math.exp(epsilon))
    digits = max(1, -math.floor(math.log10(doubt)))
    return f"{100 - math.floor(doubt * 10**digits) / 10**digits:.{digits}f}%"


def _percent(share):
    return f"{share:.0%}"

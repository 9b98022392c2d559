"""Plans of one search for other epsilons, records, columns and deltas: the numbers of its page.

Nothing here is computed but by plans and forecasts, and no record is read.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from ..accounting.privacy_loss import PrivacyLoss
from ..evaluation.forecast import forecast as evaluation_forecast
from ..preprocessing.tabular import TabularPipeline, known_share
from ..records.persons import adjacency_of
from .candidates import make_candidates, parameters
from .plan import SelectionPlan
from .plan_advice import customary_delta
from .quality_forecast import forecast, forecast_metrics, weighted
from .set_aside import cells_before

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
# multiples of the number of records, and parts of the columns, rounded up
RECORDS, COLUMNS = (1 / 4, 1, 4), (1 / 4, 1 / 2, 1)
# records of the evaluation, beside one that trains
HELD = (1 / 19, 1 / 9, 1 / 4, 1)
# of the rarer of two classes
SHARES = (0.5, 0.3, 0.1, 0.03, 0.01)
BUDGETS = (1.0, 2.0, 5.0, 10.0)
# a group is this part of the records
GROUP = 0.1


@dataclass(frozen=True)
class PlanGrid:
    """Plans of one search over a grid of public numbers.

    Attributes
    ----------
    search : estimator
        Without an evaluation.
    n_features, n_classes : int
    example : array-like or None
    persons : bool
    n_training : int
        Records, or persons, that train.
    """

    search: Any
    n_features: int
    n_classes: int
    example: Any
    persons: bool
    n_training: int

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
        self, epsilon: float, n: int, delta: float = 0.0, n_columns: int | None = None
    ) -> SelectionPlan:
        """Return the plan with other public numbers."""
        search = clone(self.search).set_params(epsilon=epsilon)
        estimator, names = search.estimator, self.columns()
        if names:
            estimator.set_params(**{f"{estimator.steps[-2][0]}__schema": self.schema})
        model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        if "delta" in parameters(model):
            model.set_params(delta=delta)
        if n_columns is not None and n_columns < len(names):
            encoder = estimator.steps[-2][0]
            estimator.set_params(**{f"{encoder}__columns": names[:n_columns]})
        return search.plan(n, self.n_features, self.n_classes, self.example, self.persons)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers of the page, ready for JSON."""
        names, first = self.columns(), self.first
        metrics = forecast_metrics(first.model, first.n_problems)
        shares = ()
        if metrics and metrics[0] == "roc_auc":
            known = known_share(first.model)
            shares = SHARES if known is None else (min(known, 1 - known),)
        given = float(self.search.epsilon)
        epsilons = sorted({*EPSILONS, given})
        records = sorted({max(1, round(part * self.n_training)) for part in RECORDS})
        parts = (
            sorted({math.ceil(part * len(names)) for part in COLUMNS}) if names else [self.n_features]
        )
        deltas = self._deltas(first.model)
        held = sorted({max(1, round(part * self.n_training)) for part in HELD})
        return {
            "unit": f"{adjacency_of(self.persons).unit}s",
            "columns": names,
            "metrics": list(metrics),
            "axes": {
                "epsilon": epsilons,
                "records": records,
                "columns": parts,
                "delta": deltas,
                "held": held,
                "share": list(shares),
            },
            "start": {
                "epsilon": epsilons.index(given),
                "records": records.index(self.n_training),
                "columns": len(parts) - 1,
                "delta": len(deltas) - 1 if float(parameters(first.model).get("delta", 0.0)) else 0,
                "held": min(2, len(held) - 1),
                "share": 0,
            },
            "plans": [
                [
                    [[self._cell(epsilon, n, delta, k, shares) for delta in deltas] for k in parts]
                    for n in records
                ]
                for epsilon in epsilons
            ],
            "evaluations": [[self._widths(epsilon, n, shares) for n in held] for epsilon in epsilons],
            "releases": [
                {"epsilon": epsilon, "sure": _percent(1 / (1 + math.exp(-epsilon)))}
                | {f"of {budget:g}": math.floor(budget / epsilon + 1e-9) for budget in BUDGETS}
                for epsilon in epsilons
            ],
        }

    def _deltas(self, model):
        given = parameters(model).get("delta")
        if given is None:
            return [0.0]
        return [0.0, float(given) or customary_delta(self.n_training)]

    def _cell(self, epsilon, n, delta, n_columns, shares):
        """Return what a plan says at one point of the grid."""
        planned = self.plan(epsilon, n, delta, n_columns)
        expected = planned.expected_quality
        varied = shares if len(shares) > 1 else (None,)
        kept = [
            [_band(forecast(each.metric, weighted(each.signal, share))) for each in expected]
            for share in varied
        ]
        signal = expected[0].signal if expected else None
        stated = PrivacyLoss(
            planned.epsilon, planned.delta, adjacency=adjacency_of(self.persons), label="plan"
        )
        return {
            "training_epsilon": f"{planned.training_epsilon:.4g}",
            "signal": None if signal is None else f"{signal:,.0f}" if signal >= 10 else f"{signal:.2g}",
            "kept": kept,
            "advice": list(planned.advice),
            "strategy": planned.strategy,
            "statement": str(stated).splitlines()[0],
        }

    def _widths(self, epsilon, n, shares):
        """Return half the lengths of intervals of an evaluation of n records, and of a tenth of them."""
        cells = cells_before(self.model, self.n_classes)
        group = max(1, round(GROUP * n))
        of_all = [
            evaluation_forecast(cells, n, epsilon, self.persons, share) for share in shares or (None,)
        ]
        return {
            "all": list(map(_half_lengths, of_all)),
            "group": _half_lengths(evaluation_forecast(cells, group, epsilon, self.persons)),
        }


def _half_lengths(estimates):
    return {
        metric: None if each.empty else f"{(each.high - each.low) / 2:.2g}"
        for metric, each in estimates.items()
    }


def _band(expected):
    return [_percent(expected.low), _percent(expected.median), _percent(expected.high)]


def _percent(share):
    return f"{share:.0%}"

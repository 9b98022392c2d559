"""The public rule: the regularisation is a function of public numbers, and nothing is selected."""

import math
from numbers import Real
from operator import attrgetter

from ...base.capabilities import PrefersByCost, RanksRegularisation
from ...exceptions import CertificateError
from ..candidates import places_by
from .dry_run import needs_fit
from .strategy import Choice, Strategy


class DataIndependent(Strategy):
    """Choose among candidates that differ in regularisation only, by a rule on public numbers.

    Each model has a `regularisation_cost`, the least of which is best for data of ordinary
    difficulty. The whole privacy loss trains the winner.
    """

    name = "data_independent"
    takes_groups = True
    compares_scores = False
    takes_delta = False
    said = (
        (
            "alpha follows from public numbers, and the whole epsilon goes to training. We tried: "
            "paying for alpha never helped on average."
        ),
    )

    def prepare(self):
        if not applies(self.problem.candidates):
            raise CertificateError(
                "strategy='data_independent' needs candidates that differ in alpha only, and models "
                "with the method regularisation_cost, such as DPLogisticRegression; use "
                "'optimal_risk' or 'stability'."
            )
        self._best = _least_cost(
            self.problem, range(len(self.problem.candidates)), float(self.problem.epsilon)
        )

    def dry_run(self):
        """Fit the models that need it; the rule's calibrations have refused the others' parameters."""
        for candidate in needs_fit(self.problem.candidates):
            self.dry_run_candidate(candidate)

    def choose(self, X, y, stream):
        return Choice(self._best)


def applies(candidates):
    """Return whether candidates differ in the regularisation of one kind of model only."""
    return len({c.but_for_ruled for c in candidates}) == 1 and has_costs(candidates)


def has_costs(candidates):
    """Return whether the public rule is known for all models."""
    # issubclass is faster than isinstance for runtime-checkable protocols, and models are of few classes
    return all(issubclass(kind, RanksRegularisation) for kind in {type(c.model) for c in candidates})


def has_rule(candidates):
    """Return whether all models have public costs, whether or not these should decide alone."""
    models = {type(c.model): c.model for c in candidates}
    return all(isinstance(model, PrefersByCost) for model in models.values())


def best_by_rule(problem, epsilon):
    """Return the candidate that the public rule prefers for each set of the other parameters.

    They are in the order of the grid; `epsilon` is what the model is trained with.
    """
    return [
        _least_cost(problem, members, epsilon)
        for members in places_by(problem.candidates, attrgetter("but_for_ruled"))
    ]


def _least_cost(problem, members, epsilon):
    """Return the candidate, of some that differ in the ruled parameter only, whose model costs least.

    Of values that cost the same the smallest one, up to rounding.
    """
    candidates = [problem.candidates[i] for i in members]
    costs = [
        sum(c.model.calibration(c.shape(problem.n_samples), epsilon).regularisation_parts())
        for c in candidates
    ]
    values = [c.ruled for c in candidates]
    if not all_numbers(values):
        return members[costs.index(min(costs))]
    equal = [
        (float(value), i)
        for value, cost, i in zip(values, costs, members)
        if cost <= (1 + 1e-9) * min(costs)
    ]
    return min(equal)[1]


def all_numbers(values):
    """Return whether all are finite numbers, which have an order."""
    numbers = all([issubclass(kind, Real) and kind is not bool for kind in set(map(type, values))])
    return numbers and all(map(math.isfinite, values))

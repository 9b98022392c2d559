"""The public rule: the regularisation is a function of public numbers, and nothing is selected."""

import heapq
import math
from functools import cache
from numbers import Real
from operator import attrgetter

from ...capabilities import RanksRegularisation
from ...exceptions import CertificateError
from ..candidates import one_of_each_kind, places_by
from .base import Choice, Strategy
from .dry_run import needs_fit


class DataIndependent(Strategy):
    """Of candidates that differ in their regularisation only, the one that the rule prefers.

    Each model has a `regularisation_cost`, the least of which is best for data of ordinary
    difficulty. The whole privacy loss trains the winner.
    """

    name = "data_independent"
    compares_scores = False
    said = (
        "alpha follows from public numbers, and the whole epsilon goes to training. We tried: "
        "paying for alpha never helped on average.",
    )

    def prepare(self):
        if not applies(self.problem.candidates):
            raise CertificateError(
                "strategy='data_independent' needs candidates that differ in alpha only, and models "
                "with the method regularisation_cost, such as DPLogisticRegression; use "
                "'optimal_risk' or 'stability'."
            )
        # the rest of the rule is for records that are there
        members = list(range(len(self.problem.candidates)))
        self._costs = AlphaCosts(self.problem, members, float(self.problem.epsilon))

    def dry_run(self):
        """The rule has asked calibrations, which refuse what they do not hold for."""
        for candidate in needs_fit(self.problem.candidates):
            self.dry_run_candidate(candidate)

    def choose(self, X, y, stream):
        return Choice(self._costs.least())


def applies(candidates):
    """Tell whether candidates differ in the regularisation of one kind of model only."""
    return len({c.but_for_alpha for c in candidates}) == 1 and has_costs(candidates)


def has_costs(candidates):
    """Tell whether the public rule is known for all models."""
    models = {type(c.model): c.model for c in one_of_each_kind(candidates)}
    return all(isinstance(model, RanksRegularisation) for model in models.values())


def best_regularisations(problem, epsilon):
    """Return the candidate that the rule prefers for each set of parameters other than alpha.

    They are in the order of the grid; `epsilon` is what the model is trained with.
    """
    return [
        AlphaCosts(problem, members, epsilon).least()
        for members in places_by(problem.candidates, attrgetter("but_for_alpha"))
    ]


class AlphaCosts:
    """What the candidates with some numbers cost, which differ in the alpha of their model only.

    Those with the least and the largest alpha are calibrated at once, which refuses them if it refuses
    any. What is said of others follows from these.
    """

    def __init__(self, problem, members, epsilon):
        self.candidates, self.members = problem.candidates, members
        alphas = [problem.candidates[i].model.alpha for i in members]
        self.ordered = by_alpha(members, alphas)
        self.calibrations = {}
        for i in members if self.ordered is None else {self.ordered[0], self.ordered[-1]}:
            candidate = problem.candidates[i]
            shape = candidate.shape(problem.n_samples)
            self.calibrations[i] = candidate.model.calibration(shape, epsilon)

    def parts(self, i):
        """Return what noise and bias add to the cost of candidate i."""
        if i not in self.calibrations:
            # what a model checks of its parameters has passed for a smaller alpha and for a larger one
            known = self.calibrations[self.ordered[0]]
            self.calibrations[i] = known.with_alpha(self.candidates[i].model.alpha)
        return self.calibrations[i].regularisation_parts()

    def least(self):
        """Return the candidate with the least cost."""
        if self.ordered is None:
            return min(self.members, key=lambda i: sum(self.parts(i)))
        return least_cost(self.ordered, cache(self.parts))


def least_cost(ordered, parts):
    """Return the first member with the least cost: the sum of parts(i), what noise and bias take.

    The one falls with alpha and the other one grows, so that between two members none costs less than
    the noise of the larger alpha and the bias of the smaller one. Of members that are `ordered` by
    alpha few are looked at, but always those at the ends.
    """
    least, best = min((sum(parts(i)), i) for i in (ordered[0], ordered[-1]))
    spans = [(0.0, 0, len(ordered) - 1)]
    while spans:
        bound, low, high = heapq.heappop(spans)
        # parts are monotone up to rounding, and a hundredth where the residual takes a larger share
        if bound > 1.02 * least:
            break
        middle = (low + high) // 2
        least, best = min((least, best), (sum(parts(ordered[middle])), ordered[middle]))
        for a, b in ((low, middle), (middle, high)):
            if b - a > 1:
                heapq.heappush(spans, (parts(ordered[b])[0] + parts(ordered[a])[1], a, b))
    return best


def by_alpha(members, alphas):
    """Return the members in the order of their alphas, or None if one is no finite number."""
    numbers = all([issubclass(kind, Real) and kind is not bool for kind in set(map(type, alphas))])
    if not numbers or not all(map(math.isfinite, alphas)):
        return None
    return [i for _, i in sorted(zip(map(float, alphas), members))]

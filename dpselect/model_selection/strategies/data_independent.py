"""The public rule: the regularisation is a function of public numbers, and nothing is selected."""

import heapq
import math
from functools import cache
from numbers import Real
from operator import attrgetter

from ...capabilities import RanksRegularisation
from ...exceptions import CertificateError
from ..candidates import places_by
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
        self.best = best_regularisations(self.problem, float(self.problem.epsilon))[0]

    def dry_run(self):
        """The rule has asked calibrations, which refuse what they do not hold for."""
        for candidate in needs_fit(self.problem.candidates):
            self.dry_run_candidate(candidate)

    def choose(self, X, y, stream):
        return Choice(self.best)


def applies(candidates):
    """Tell whether candidates differ in the regularisation of one kind of model only."""
    return has_costs(candidates) and len({c.but_for_alpha for c in candidates}) == 1


def has_costs(candidates):
    """Tell whether the public rule is known for all models."""
    models = {type(candidate.model): candidate.model for candidate in candidates}
    return all(isinstance(model, RanksRegularisation) for model in models.values())


def best_regularisations(problem, epsilon):
    """Return the candidate that the rule prefers for each set of parameters other than alpha.

    They are in the order of the grid; `epsilon` is what the model is trained with.
    """
    @cache
    def parts(i):
        candidate = problem.candidates[i]
        shape = candidate.shape(problem.n_samples)
        return candidate.model.calibration(shape, epsilon).regularisation_parts()

    return [
        least_cost(members, [problem.candidates[i].model.alpha for i in members], parts)
        for members in places_by(problem.candidates, attrgetter("but_for_alpha"))
    ]


def least_cost(members, alphas, parts):
    """Return the first member with the least cost: the sum of parts(i), what noise and bias take.

    The one falls with alpha and the other one grows, so that between two members none costs less than
    the noise of the larger alpha and the bias of the smaller one. Few of many are looked at, but
    always the two at the ends, which are refused if any is.
    """
    if not all(map(_is_finite, alphas)):
        return min(members, key=lambda i: sum(parts(i)))
    ordered = [i for _, i in sorted(zip(alphas, members))]
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


def _is_finite(alpha):
    return isinstance(alpha, Real) and not isinstance(alpha, bool) and math.isfinite(alpha)

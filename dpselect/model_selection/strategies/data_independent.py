"""The public rule: the regularisation is a function of public numbers, and nothing is selected."""

import math
from bisect import bisect_left
from functools import cache
from numbers import Real
from operator import attrgetter

from ...base.capabilities import RanksRegularisation
from ...exceptions import CertificateError
from ..candidates import one_of_each_kind, places_by
from .dry_run import needs_fit
from .strategy import Choice, Strategy


class DataIndependent(Strategy):
    """Of candidates that differ in their regularisation only, the one that the rule prefers.

    Each model has a `regularisation_cost`, the least of which is best for data of ordinary
    difficulty. The whole privacy loss trains the winner.
    """

    name = "data_independent"
    takes_groups = True
    compares_scores = False
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
    # (a class is asked faster than its instances are)
    return all(issubclass(type(c.model), RanksRegularisation) for c in one_of_each_kind(candidates))


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
        self.candidates = problem.candidates
        alphas = [problem.candidates[i].alpha for i in members]
        self.in_order = all_numbers(alphas)
        if self.in_order:
            # (products of other kinds of numbers overflow sooner)
            first = dict(zip(map(float, reversed(alphas)), reversed(members)))
            alphas = apart(sorted(first))
            members = [first[alpha] for alpha in alphas]
        self.members, self.alphas, self.calibrations = members, alphas, {}
        for i in members[:1] if self.in_order else members:
            candidate = problem.candidates[i]
            shape = candidate.shape(problem.n_samples)
            self.calibrations[i] = candidate.model.calibration(shape, epsilon)
        self.parts(len(members) - 1)

    def parts(self, place):
        """Return what noise and bias add to the cost of a member."""
        i = self.members[place]
        if i not in self.calibrations:
            # what a model checks of its parameters has passed for a smaller alpha
            known = self.calibrations[self.members[0]]
            self.calibrations[i] = known.with_alpha(self.alphas[place])
        return self.calibrations[i].regularisation_parts()

    def least(self):
        """Return the candidate with the least cost."""
        costs = cache(lambda place: sum(self.parts(place)))
        if not self.in_order:
            return self.members[min(range(len(self.members)), key=costs)]
        # there they would be alike if noise fell as alpha grows, and bias grew as it does
        noise, bias = self.parts(len(self.members) - 1)
        alike = self.alphas[-1] * math.sqrt(noise / max(bias, math.ulp(0.0)))
        return self.members[least_cost(len(self.members), costs, bisect_left(self.alphas, alike))]


def least_cost(k, cost, near):
    """Return the first of 0, ..., k - 1 whose cost is least, of costs that fall and then rise.

    So do those of alphas in their order, though some are alike before they rise. Few are looked at,
    the first of them `near` the given one.
    """
    low, high, step = 0, k - 1, 1
    i = min(max(near - 1, 0), k - 2)
    while low < high:
        # (what is alike differs by rounding)
        if cost(i + 1) > (1 + 1e-9) * cost(i):
            high = i
            i = max(i - step, (low + high) // 2)
        else:
            low = i + 1
            i = min(i + step, (low + high) // 2)
        step *= 2

    def alike(i):
        return cost(i) <= (1 + 1e-9) * cost(low)

    return bisect_left(range(low), True, key=alike) if low and alike(low - 1) else low


def apart(alphas):
    """Return sorted alphas without those that cost what the one before them costs, whatever it is."""
    kept = alphas[:1]
    for alpha in alphas:
        if alpha > (1 + 1e-6) * kept[-1]:
            kept.append(alpha)
    return kept


def all_numbers(alphas):
    """Tell whether all are finite numbers, which have an order."""
    numbers = all([issubclass(kind, Real) and kind is not bool for kind in set(map(type, alphas))])
    return numbers and all(map(math.isfinite, alphas))

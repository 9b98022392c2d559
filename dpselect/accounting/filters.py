"""How the losses of a ledger add up: their epsilons and deltas, or Renyi divergences of one order.

The page "A budget for a whole team" has statement and proof.
"""

import json
import math
from dataclasses import asdict, dataclass

from .zcdp import conversion, filter_order, pure_divergence

COMPOSITIONS = ("sum", "renyi")
# (more than roundings add)
UP, DOWN = 1 + 2.0**-40, 1 - 2.0**-40


@dataclass(frozen=True)
class Sum:
    """Epsilons and deltas add up.

    `limits` is the most that the two amounts of all losses may add up to.
    """

    epsilon: float
    delta: float
    name = "sum"
    explained = ""
    # of a loss that came out smaller than what was reserved, that of the outcome counts
    counts_outcomes = True

    @classmethod
    def of_budget(cls, epsilon, delta):
        return cls(float(epsilon), float(delta))

    @property
    def limits(self):
        return self.epsilon, self.delta

    def is_of_budget(self, epsilon, delta):
        """Tell whether whoever keeps to this law keeps to a budget."""
        return self == self.of_budget(epsilon, delta)

    def amounts(self, loss):
        """Return the two numbers that count of a loss."""
        return loss.epsilon, loss.delta

    def reservable(self, left):
        """Return the epsilon and the delta that can be reserved with what is left."""
        return left

    def guarantee(self, spent):
        """Return the epsilon and the delta of all losses together, from the sums of their amounts."""
        return spent


@dataclass(frozen=True)
class RenyiFilter:
    """Renyi divergences of one public order add up; deltas of what is known no better do, too.

    `limit` is the largest divergence, which with `delta` makes the epsilon of the budget, and
    `other_delta` the sum of the deltas of releases of which a divergence is known but for that
    probability.
    """

    order: float
    limit: float
    delta: float
    other_delta: float
    name = "renyi"
    # the divergence of a release with an ex-post loss is that of all its outcomes
    counts_outcomes = False

    @property
    def explained(self):
        """str : What the numbers of a ledger mean, for a person."""
        return (
            f"Losses add up as Renyi divergences of order {self.order:.4g}: spent is what all releases "
            "cost together, and left is the largest release of which nothing else is known."
        )

    @classmethod
    def of_budget(cls, epsilon, delta):
        half = float(delta) / 2
        order = filter_order(float(epsilon), half)
        limit = (float(epsilon) - conversion(order, half)) * DOWN
        return cls(order, limit, half, half)

    @property
    def limits(self):
        return self.limit, self.other_delta

    def is_of_budget(self, epsilon, delta):
        # another version may have found another order
        return (
            1 < self.order < math.inf
            and 0 < self.limit
            and 0 < self.delta
            and 0 <= self.other_delta
            and self.delta + self.other_delta <= delta
            and self.limit + conversion(self.order, self.delta) <= epsilon
        )

    def amounts(self, loss):
        """Return a divergence of the order, and the probability but for which it is one."""
        if loss.parts:
            together = max if loss.composition == "parallel" else math.fsum
            return tuple(map(together, zip(*map(self.amounts, loss.parts))))
        pure = pure_divergence(loss.epsilon, self.order) * UP
        if loss.event is not None:
            xi, rho = loss.event.concentrated
            known = (xi + rho * self.order) * UP
            # both are known before the release, and so is which of them is less
            if known <= pure:
                return known, 0.0
        return pure, loss.delta

    def reservable(self, left):
        low, high = 0.0, max(2 * left[0], 1.0)
        while pure_divergence(high, self.order) * UP <= left[0]:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            fits = pure_divergence(middle, self.order) * UP <= left[0]
            low, high = (middle, high) if fits else (low, middle)
        return low, left[1]

    def guarantee(self, spent):
        if spent == (0.0, 0.0):
            return spent
        return max(0.0, spent[0] + conversion(self.order, self.delta)), self.delta + spent[1]


def law_of(name, epsilon, delta):
    """Return the law of a new ledger."""
    return (RenyiFilter if name == "renyi" else Sum).of_budget(epsilon, delta)


def to_text(law):
    """Return a law as text."""
    return json.dumps({"composition": law.name, **asdict(law)})


def of_text(text):
    """Return the law of which `to_text` made a text."""
    values = json.loads(text)
    return (RenyiFilter if values.pop("composition") == "renyi" else Sum)(**values)

"""Privacy filters of a ledger: sums of epsilon and delta, or Renyi divergences of one order.

The page "How losses add up" has statement and proof.
"""

import json
import math
from dataclasses import asdict, dataclass

from .zcdp import conversion, filter_order, pure_divergence

COMPOSITIONS = ("sum", "renyi")
# safety factors, larger than any rounding error
UP, DOWN = 1 + 2.0**-40, 1 - 2.0**-40


@dataclass(frozen=True)
class Sum:
    """Filter that adds up epsilons and deltas.

    `limits` is the most that the two amounts of all losses may add up to.
    """

    epsilon: float
    delta: float
    name = "sum"
    explained = ""
    # an ex-post loss counts by its outcome, which may be less than its reservation
    counts_outcomes = True

    @classmethod
    def of_budget(cls, epsilon, delta):
        return cls(float(epsilon), float(delta))

    @property
    def limits(self):
        return self.epsilon, self.delta

    def is_of_budget(self, epsilon, delta):
        """Return whether this filter guarantees a budget."""
        return self == self.of_budget(epsilon, delta)

    def amounts(self, loss):
        """Return the two numbers by which a loss counts."""
        return loss.epsilon, loss.delta

    def reservable(self, left):
        """Return the epsilon and the delta that can still be reserved."""
        return left

    def guarantee(self, spent):
        """Return the epsilon and the delta of all losses together, from the sums of their amounts."""
        return spent


@dataclass(frozen=True)
class RenyiFilter:
    """Filter that adds up Renyi divergences of one order, and deltas of losses without an event.

    `limit` is the largest divergence, which with `delta` makes the epsilon of the budget, and
    `other_delta` the sum of the deltas of releases whose divergence is bounded except with that
    probability.
    """

    order: float
    limit: float
    delta: float
    other_delta: float
    name = "renyi"
    # an ex-post loss has no divergence of its own: its reservation counts, which holds for all outcomes
    counts_outcomes = False

    @property
    def explained(self):
        """str : Explanation of the numbers of a ledger, for its readers."""
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
        # the order is stored: another version may compute another one
        return (
            1 < self.order < math.inf
            and 0 < self.limit
            and 0 < self.delta
            and 0 <= self.other_delta
            and self.delta + self.other_delta <= delta
            and self.limit + conversion(self.order, self.delta) <= epsilon
        )

    def amounts(self, loss):
        """Return a bound on the divergence of the order, and the probability with which it may fail."""
        if loss.parts:
            together = max if loss.composition == "parallel" else math.fsum
            return tuple(map(together, zip(*map(self.amounts, loss.parts))))
        pure = pure_divergence(loss.epsilon, self.order) * UP
        if loss.event is not None:
            xi, rho = loss.event.concentrated
            bound = (xi + rho * self.order) * UP
            # both bounds are public before the release, so the smaller one may be taken
            if bound <= pure:
                return bound, 0.0
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
    """Return the filter of a new ledger."""
    return (RenyiFilter if name == "renyi" else Sum).of_budget(epsilon, delta)


def to_text(law):
    """Return a filter as text."""
    return json.dumps({"composition": law.name, **asdict(law)})


def from_text(text):
    """Rebuild the filter from the text that `to_text` returned."""
    values = json.loads(text)
    return (RenyiFilter if values.pop("composition") == "renyi" else Sum)(**values)

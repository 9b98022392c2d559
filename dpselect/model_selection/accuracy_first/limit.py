"""Upper bound of an accuracy-first search, and the part of its grid that stays within it.

A search that finds no model pays for its whole grid. So the grid ends early: at the last level at
which the most that any outcome can cost is within a limit. All of it is public.
"""

import math
from dataclasses import dataclass, replace

from ...accounting.privacy_loss import PrivacyLoss
from ...records.persons import adjacency_of
from .methods import Static

# "auto": the excess that noise causes falls with the square of epsilon, so what is not found at this
# many times the plan is hardly held up by noise.
TIMES_EXPECTED = 8


@dataclass(frozen=True)
class Limit:
    """Limit on what a search may spend.

    `steps` are what the steps before the model spend. `max_epsilon` is of all together; None is
    TIMES_EXPECTED times what the models and tests of a method are expected to cost, besides the steps.
    `disjoint` tells whether models and tests read different records, and `releases_last` whether the
    last model is released if none is accurate enough.
    """

    steps: tuple[PrivacyLoss, ...] = ()
    max_epsilon: float | None = math.inf
    disjoint: bool = False
    seeded: bool = False
    releases_last: bool = True

    def at_most(self, method):
        """Return the largest loss of any outcome of a method, that of the steps included."""
        if isinstance(method, Static) and method.level is None and not self.releases_last:
            # known before the data: not even the steps are fitted
            adjacency = adjacency_of(method.question.shape.persons)
            return PrivacyLoss(0.0, adjacency=adjacency, label="nothing is released")
        rest = method.at_most(self.disjoint, self.seeded)
        return PrivacyLoss.sequential([*self.steps, rest], label="AccuracyFirstSearchCV")

    def expected(self, method):
        """Return the planned loss of a method, that of the steps included."""
        losses = [step.epsilon for step in self.steps]
        return math.fsum([*losses, method.expected(self.disjoint)])

    def allows(self, method):
        """Return whether no outcome of a method exceeds the limit."""
        if self.max_epsilon is not None:
            return self.at_most(method).epsilon <= self.max_epsilon
        rest = method.at_most(self.disjoint).epsilon
        return rest <= TIMES_EXPECTED * method.expected(self.disjoint)

    def within(self, kind, question):
        """Set up a method on the longest beginning of the grid that the limit allows.

        None if not even the first level is allowed; a CertificateError if the method does not serve.
        """
        whole, found = kind(question), None
        if self.allows(whole):
            return whole
        low, high = 0, len(question.epsilons)
        # the most grows with the grid; where it does not, what is found is allowed all the same
        while high - low > 1:
            middle = (low + high) // 2
            method = kind(_beginning(question, middle))
            if self.allows(method):
                low, found = middle, method
            else:
                high = middle
        return found

    def least(self, kind, question):
        """Return the most that a method can spend on the first level of the grid alone."""
        return self.at_most(kind(_beginning(question, 1))).epsilon


def _beginning(question, n_levels):
    return replace(question, epsilons=question.epsilons[:n_levels])

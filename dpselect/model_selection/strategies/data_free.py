"""Strategies that do not look at the records: the whole privacy loss trains one model."""

from ...noise import as_generator
from .base import Choice, Strategy
from .dry_run import dry_run_fit


class DataFree(Strategy):
    """A candidate that does not depend on the records, trained with the whole privacy loss."""

    compares_scores = False
    said: tuple[str, ...] = ()

    def dry_run(self):
        # a model that is not taken would never be checked
        for candidate in self.problem.candidates:
            dry_run_fit(candidate, self.problem.epsilon)

    def plan(self):
        return self.bare_plan(self.problem.epsilon, 0.0, self.said)

    def choose(self, X, y, stream):
        return Choice(
            self.index(stream), self.plan(), [], training_epsilon=self.problem.epsilon
        )


class FirstCandidate(DataFree):
    """The first candidate: what a user would have trained without a search."""

    name = "first_candidate"

    def index(self, stream):
        return 0


class Random(DataFree):
    """A candidate by chance."""

    name = "random"
    said = ("The choice does not look at the records.",)

    def index(self, stream):
        return int(as_generator(stream.child("selection")).integers(len(self.problem.candidates)))

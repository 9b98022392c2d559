"""Strategies that do not look at the records: the whole privacy loss trains one model."""

from ...noise import as_generator
from .strategy import Choice, Strategy


class FirstCandidate(Strategy):
    """The first candidate: what a user would have trained without a search."""

    name = "first_candidate"
    takes_groups = True
    compares_scores = False
    takes_delta = False

    def choose(self, X, y, stream):
        return Choice(0)


class Random(Strategy):
    """A candidate by chance."""

    name = "random"
    takes_groups = True
    compares_scores = False
    takes_delta = False
    said = ("The choice does not look at the records.",)

    def choose(self, X, y, stream):
        generator = as_generator(stream.child("selection"))
        return Choice(int(generator.integers(len(self.problem.candidates))))

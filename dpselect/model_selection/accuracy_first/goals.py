"""Goals for a score on held-out records: a penalty of at most a target, or at least a target.

Methods test whether a loss is at most its target. A penalty is such a loss. For a score that should be
large it is by how much the score falls short, on a scale on which one record moves it by a known amount;
what a perfect score would leave is added, so that both kinds of targets are positive numbers of a size.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial

from sklearn.base import clone

from ...metrics import Score
from ...metrics.score import AtLeastScore
from ...records.records import on_records

# The noise of the tests pushes a threshold down by this share of an absolute target: more makes tests
# cheap, less makes them exact.
SLACK = 0.2


@dataclass(frozen=True)
class Goal:
    """A mean penalty of at most a target."""

    score: Score
    asked: float

    @property
    def target(self):
        """float : What the tested loss may be at most."""
        return self.asked

    def sensitivity(self, form, n_features, n_records):
        """Return how far one of the held-out records moves the loss of a model."""
        return form.score_span(self.score, n_features) / n_records

    def loss(self, model, X, y):
        """Return the exact loss of a model."""
        return -on_records(self.score, model, X, y)

    def answers(self, losses):
        """Return noisy losses as they are told."""
        return losses

    def is_reachable(self, reachable, slack):
        """Return whether a model that is found need not be better than models without privacy."""
        return reachable <= self.asked - slack

    def told(self, slack):
        """Return in words how much of the target the noise of the tests takes."""
        return slack_told(self.asked, slack)


class AtLeast(Goal):
    """A score of at least a target."""

    @property
    def target(self):
        return (1 - self.asked) * self.score.unit

    def sensitivity(self, form, n_features, n_records):
        return self.score.shortfall_sensitivity(n_records, self.asked)

    def loss(self, model, X, y):
        shortfall = partial(self.score.shortfall, target=self.asked)
        return self.target + on_records(shortfall, model, X, y)

    def answers(self, losses):
        # where the guess of the unit is right, the noisy score
        return 1 - losses / self.score.unit

    def needed(self, slack):
        """Return the score that a model has to have to be found."""
        return self.asked + slack / self.score.unit

    def is_reachable(self, reachable, slack):
        return reachable >= self.needed(slack)

    def told(self, slack):
        share = slack / self.score.unit
        return (
            f"The noise of the tests may take {share:.3g} of the score{self.score.assumed}: count on a "
            f"model that is found only if models reach {self.needed(slack):.4g}."
        )


def goal_of(score, target):
    """Return the Goal of a score, or None if there is no score."""
    if score is None:
        return None
    return (AtLeast if isinstance(score, AtLeastScore) else Goal)(score, float(target))


def slack_told(target, slack):
    """Return in words how much of the target the noise of the tests takes."""
    return (
        f"The noise of the tests may take {slack:.3g} of the target: count on a model that is found "
        f"only if models reach {target - slack:.4g}."
    )


def with_public_alpha(model, shape, epsilons, allowed):
    """Return a model with a number for ``alpha="auto"``: that of the public rule at one level.

    All models of a search minimise one objective. The level is the first one at which no more than
    `allowed` is expected to be lost by noise and regularisation together.
    """
    if model.get_params().get("alpha") != "auto":
        return model

    def calibration(i):
        return model.calibration(shape, float(epsilons[i]))

    # what is expected falls
    level = bisect_left(range(len(epsilons)), True, key=lambda i: calibration(i).forecast() <= allowed)
    return clone(model).set_params(alpha=calibration(min(level, len(epsilons) - 1)).alpha)

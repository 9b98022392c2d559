"""Ways to find the smallest epsilon that is accurate enough, and what each of them pays.

A method is set up from public numbers alone, so its price can be told before any data. Then it
fits once, or reads models from the most private one on, asks whether their loss is small enough,
and stops at the first that is. The page "Accuracy first" of the documentation has statements and
proofs.
"""

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from ...accounting.privacy_loss import PrivacyLoss
from ...exceptions import CertificateError
from ...mechanisms.above_threshold import (
    above_threshold,
    published_test,
    reduced_above_threshold,
    reduced_tests,
    tighter_test,
)
from ...mechanisms.verification import Verification, failure_share
from ...records.persons import adjacency_of
from ...utils.validation import SMALLEST_EPSILON
from .question import Method, Outcome, Walk

# models that are read ahead, to compute their losses together
CHUNK = 32
# "predict_verify" asks no more questions than this, so that its largest loss is known
MOST_QUESTIONS = 10


class Static(Method):
    """One fit with an epsilon that is known before the data is touched."""

    failure_probability = None

    def prepare(self):
        q = self.question
        if q.absolute:
            raise CertificateError(
                f"method={self.name!r} serves criterion='excess_risk' only, because the least risk "
                "is not known in advance; use a method that tests, such as 'above_threshold'."
            )
        self.model = self.static_model()
        # bounds fall
        level = bisect_left(q.epsilons, True, key=lambda epsilon: self.bound(epsilon) <= q.target)
        self.enough = level < len(q.epsilons)
        self.level = level if self.enough else None
        self.generating = math.inf if self.level is None else float(q.epsilons[level])
        self.testing = 0.0

    def at_most(self, disjoint, seeded=False):
        level = len(self.question.epsilons) - 1 if self.level is None else self.level
        epsilon = float(self.question.epsilons[level])
        delta = self.model.accuracy_form().delta(self.question.shape, epsilon)
        adjacency = adjacency_of(self.question.shape.persons)
        return PrivacyLoss(epsilon, delta, adjacency=adjacency, label=self.name, seeded=seeded)

    @abstractmethod
    def static_model(self):
        """Return the model that is fitted, but for its epsilon."""

    def bound(self, epsilon):
        """Return the bound on the excess at a level."""
        form = self.model.accuracy_form()
        return form.excess_bound(self.question.shape, float(epsilon), self.failure_probability)


class Certified(Static):
    """The noise is so small that the excess is, whatever the data: nothing is tested."""

    name = "certified"

    def static_model(self):
        self.failure_probability = self.question.failure_probability
        form = self.question.form
        return clone(form.model).set_params(**form.certified_params)


class Theory(Static):
    """As `Certified`, for the expected excess of the estimator as it is."""

    name = "theory"
    for_comparison = True

    def static_model(self):
        return clone(self.question.form.model)


class AboveThreshold(Walk):
    """Every model along the path is compared with one noisy threshold."""

    name = "above_threshold"
    calibrate = staticmethod(tighter_test)
    compare: Callable[..., Any] = staticmethod(above_threshold)

    def prepare(self):
        q = self.question
        self.test = self.calibrate(q.slack, q.sensitivity, len(q.epsilons), q.failure_probability)
        index = self.planned_index(self.goals())
        self.generating, self.testing = float(q.epsilons[index]), self.price(index)

    def goals(self):
        return self.test.threshold

    def price(self, last):
        """Return the loss of the comparisons up to a level."""
        return self.test.epsilon

    def most_expensive(self):
        most = max(self.price(level) for level in range(len(self.question.epsilons)))
        return Outcome(epsilons=self.question.epsilons, tests=[most])

    def run(self, reduction, losses, stream):
        outcome = Outcome()
        found = self.compare(self.sequence(reduction, losses, outcome), self.test, stream)
        outcome.accepted = found is not None
        outcome.tests = [self.price(len(self.question.epsilons) - 1 if found is None else found)]
        return outcome

    def sequence(self, reduction, losses, outcome):
        """Yield the losses one by one, above what the slack leaves of the target."""
        q = self.question
        for start in range(0, len(q.epsilons), CHUNK):
            chunk = [float(epsilon) for epsilon in q.epsilons[start : start + CHUNK]]
            models = [reduction.read(epsilon) for epsilon in chunk]
            for epsilon, model, loss in zip(chunk, models, losses(models)):
                outcome.epsilons.append(epsilon)
                outcome.models.append(model)
                yield float(loss) - (q.target - q.slack)


class PublishedAboveThreshold(AboveThreshold):
    """As `AboveThreshold`, with the constants of theorem 3.2 of Ligett et al. 2017."""

    name = "published_above_threshold"
    for_comparison = True
    calibrate = staticmethod(published_test)


class ReducedAboveThreshold(AboveThreshold):
    """The comparisons become more exact, and more expensive, along the path."""

    name = "reduced_above_threshold"
    calibrate = staticmethod(reduced_tests)
    compare = staticmethod(reduced_above_threshold)

    def goals(self):
        return self.test.thresholds

    def price(self, last):
        return float(self.test.epsilons[last])


class Brownian(ReducedAboveThreshold):
    """As `ReducedAboveThreshold`, along a Gaussian path."""

    name = "brownian"
    how = "brownian"

    def prepare(self):
        if self.question.delta == 0:
            raise CertificateError(
                "method='brownian' needs delta greater than 0, because the loss of Gaussian noise "
                "has no bound that always holds; write for instance delta=1e-6."
            )
        super().prepare()


class Doubling(Walk):
    """Fresh models at doubled levels, each with a test of its own; all losses add up."""

    name = "doubling"
    how = "fresh"

    def prepare(self):
        q = self.question
        self.doubled = [0]
        while (q.epsilons >= 2 * q.epsilons[self.doubled[-1]]).any():
            beyond = q.epsilons >= 2 * q.epsilons[self.doubled[-1]]
            self.doubled.append(int(np.argmax(beyond)))
        # the margin is half of the slack at each level
        share = min(0.5, q.failure_probability / len(self.doubled))
        scale = q.slack / 2 / max(math.log(1 / (2 * share)), 1e-3)
        self.verification = _verification(scale, q.sensitivity, share)
        planned = self.planned_index(q.slack / 2)
        place = int(np.searchsorted(self.doubled, planned))
        self.enough &= place < len(self.doubled)
        n_read = min(place + 1, len(self.doubled))
        self.generating = float(q.epsilons[self.doubled[:n_read]].sum())
        self.testing = self.verification.epsilon * n_read

    def most_expensive(self):
        tests = [self.verification.epsilon] * len(self.doubled)
        return Outcome(epsilons=self.question.epsilons[self.doubled], tests=tests)

    def run(self, reduction, losses, stream):
        q, outcome = self.question, Outcome()
        for k, index in enumerate(self.doubled):
            (loss,) = losses([outcome.read(reduction, float(q.epsilons[index]))])
            if outcome.ask(loss, q.target, self.verification, stream.child(k)):
                break
        return outcome


class PredictVerify(Walk):
    """The excess is forecast from what is released, and only then is a question asked.

    For the excess risk the question is about its square root, which one record moves much
    less. After a refusal, the next question waits for half the forecast. How much excess an
    absolute target leaves is not known: there the first question waits for a forecast of no
    more than the target, and each of the others for a quarter of the last. There are no more
    questions than the public forecasts call for, and the last one is kept for the last level.
    """

    name = "predict_verify"
    # shares of the slack that the margin of a question may take
    MARGINS, ABSOLUTE_MARGIN = np.linspace(0.04, 0.6, 57), 0.4

    def __init__(self, question):
        self.how = "path" if question.form.reduces_noise else "fresh"
        super().__init__(question)

    def prepare(self):
        q = self.question
        self.sensitivity = q.sensitivity if q.absolute else q.bounds.root
        # the unit of a question: the slack, or the root of the target
        self.unit = q.slack if q.absolute else math.sqrt(q.target)
        shares = [self.ABSOLUTE_MARGIN] if q.absolute else self.MARGINS
        plans = [self._plan(share) for share in shares]
        self.share, self.enough, self.generating, self.testing = min(
            plans, key=lambda p: (not p[1], p[2] + p[3])
        )
        self.schedule = self._schedule()

    def _plan(self, share):
        level = self.question.epsilons[self.planned_index(self._goal(share))]
        return share, self.enough, float(level), self._verification(1, share).epsilon

    def _schedule(self):
        """Return the levels that the public forecasts would ask about if every answer were no."""
        q, goal, schedule = self.question, self._goal(self.share), []
        last = len(q.epsilons) - 1
        while len(schedule) < MOST_QUESTIONS - 1:
            level = self.first_level(np.broadcast_to(goal, q.epsilons.shape))
            if schedule:
                level = max(level, schedule[-1] + 1)
            if level >= last:
                break
            schedule.append(level)
            goal = self._next_goal(goal)
        return [*schedule, last]

    def _next_goal(self, goal):
        return goal / (4 if self.question.absolute else 2)

    def _goal(self, share):
        """Return the forecast at which the first question is worth asking."""
        if self.question.absolute:
            return abs(self.question.target)
        # one standard deviation of the answer, besides its margin
        doubt = math.sqrt(2) * self._verification(1, share).scale
        return max(self.unit - share * self.unit - doubt, 0.0) ** 2

    def _verification(self, k, share):
        gamma = min(0.5, failure_share(k, self.question.failure_probability))
        scale = share * self.unit / max(math.log(1 / (2 * gamma)), 1e-3)
        return _verification(scale, self.sensitivity, gamma)

    def most_expensive(self):
        epsilons = self.question.epsilons
        if self.how == "fresh":
            # these are asked about, whatever the records
            epsilons = epsilons[self.schedule]
        questions = range(1, 1 + len(self.schedule))
        tests = [self._verification(k, self.share).epsilon for k in questions]
        return Outcome(epsilons=epsilons, tests=tests)

    def run(self, reduction, losses, stream):
        q, outcome = self.question, Outcome()
        goal, k, forecast = self._goal(self.share), 1, -math.inf
        # a fresh model costs, so only those are read that are to be asked about
        levels = q.epsilons[self.schedule] if self.how == "fresh" else q.epsilons
        for epsilon in map(float, levels):
            last = epsilon == q.epsilons[-1]
            model = outcome.read(reduction, epsilon)
            if self.how == "path":
                # the last question is for the last level
                goal = -math.inf if k == len(self.schedule) else goal
                forecast = reduction.forecast(model, epsilon)
            if forecast > goal and not last:
                continue
            (loss,) = losses([model])
            value, target = (loss, q.target) if q.absolute else map(math.sqrt, (loss, q.target))
            if outcome.ask(value, target, self._verification(k, self.share), stream.child(k)):
                break
            goal, k = self._next_goal(goal), k + 1
        return outcome


def _verification(scale, sensitivity, failure_probability):
    # longer noise than that saves nothing, and would leave the range of its grid
    epsilon = max(sensitivity / scale, SMALLEST_EPSILON)
    return Verification(epsilon, sensitivity, failure_probability)


METHODS = {
    method.name: method
    for method in (
        # where plans are equal the first one is taken
        Certified,
        ReducedAboveThreshold,
        AboveThreshold,
        PredictVerify,
        Brownian,
        Doubling,
        Theory,
        PublishedAboveThreshold,
    )
}

"""Test of the models of an accuracy-first search, its methods, and the losses of their outcomes."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...accounting.privacy_loss import PrivacyLoss
from ...base.accuracy_form import AccuracyForm, NoiseLevels
from ...exceptions import CertificateError
from ...mechanisms.verification import verify
from ...records.persons import adjacency_of
from ...records.public_shape import PublicShape
from .goals import Goal


@dataclass(frozen=True)
class Question:
    """Test that a model has to pass, in public numbers.

    The grid `epsilons` increases. `absolute` tells whether the loss itself has a target, and not its
    excess over the least one; `slack` how far below the target the noise of the tests may push the
    threshold; `sensitivity` how far one record moves the loss of any model. `failure_probability` is
    that of accepting a model whose loss is above the target, `delta` is for Brownian noise, and `shape`
    of the records that the model is trained with.
    """

    epsilons: np.ndarray
    absolute: bool
    target: float
    slack: float
    sensitivity: float
    failure_probability: float
    delta: float
    form: AccuracyForm
    shape: PublicShape
    # the alpha that was given where "auto" would serve
    alpha: float | None = None
    # what is asked of a score, if it is one
    goal: Goal | None = None
    # forecasts that are known, shared with the same question about a part of the grid
    known: dict = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def bounds(self):
        return self.form.bounds(self.shape)

    def levels(self, how):
        return NoiseLevels(how, self.epsilons[0], self.epsilons[-1], self.delta)

    def forecast(self, how, i):
        """Return the forecast excess at the level of index i."""
        levels = self.levels(how)
        # only a Brownian path depends on where the grid ends
        key = how, self.epsilons[i], levels.high if how == "brownian" else None
        if key not in self.known:
            self.known[key] = self.bounds.forecast(levels, self.epsilons[i])
        return self.known[key]


@dataclass
class Outcome:
    """Release of a method: the levels that were read, their models, and the losses of the tests.

    `accepted` tells whether the last model was found accurate enough. `answers` are noisy losses, where
    the method releases them, of the models whose indices are in `tested`.
    """

    accepted: bool = False
    epsilons: list = field(default_factory=list)
    models: list = field(default_factory=list)
    tests: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    tested: list = field(default_factory=list)

    def read(self, reduction, epsilon):
        """Return the model at the next level, which is released from here on."""
        self.epsilons.append(epsilon)
        self.models.append(reduction.read(epsilon))
        return self.models[-1]

    def ask(self, loss, target, verification, stream):
        """Return whether the loss of the last model is small enough, by a noisy answer."""
        self.accepted, answer = verify(loss, target, verification, stream)
        self.tests.append(verification.epsilon)
        self.answers.append(answer)
        self.tested.append(len(self.models) - 1)
        return self.accepted


class Method(ABC):
    """Method to find the smallest epsilon that is accurate enough; refuses what it does not serve.

    `prepare` sets `generating` and `testing`, the planned losses of the models and of the tests.
    """

    # whether a level of the grid is known, or forecast, to be enough
    enough = True
    # never the best one
    for_comparison = False

    def __init__(self, question):
        self.question = question
        self.prepare()

    @abstractmethod
    def prepare(self):
        """Set the noise from the question, and the planned losses."""

    def expected(self, disjoint):
        return max(self.generating, self.testing) if disjoint else self.generating + self.testing

    @abstractmethod
    def at_most(self, disjoint, seeded=False):
        """Return the largest loss of any outcome; disjoint: models and tests read different records."""


class Walk(Method):
    """A method that reads models from the most private one on, and asks about them.

    `how` noise goes from one level to the next is "path", "brownian" or "fresh".
    """

    how = "path"

    def __init__(self, question):
        if self.how != "fresh" and not question.form.reduces_noise:
            model = question.form.model
            raise CertificateError(
                f"{type(model).__name__}(perturbation={model.perturbation!r}) has no "
                "noise-reduction form, because its noise enters before the minimiser is computed; "
                "write perturbation='output', or a method without a path: 'certified', "
                "'predict_verify', 'doubling' or 'theory'."
            )
        super().__init__(question)

    @abstractmethod
    def run(self, reduction, losses, stream):
        """Return the Outcome; `losses` gives the exact losses of a list of models."""

    @abstractmethod
    def most_expensive(self):
        """Return an Outcome that costs as much as any, without models."""

    def at_most(self, disjoint, seeded=False):
        return outcome_loss(self, self.most_expensive(), disjoint, seeded)

    def planned_index(self, goals):
        """Return the first level whose forecast excess is at most its goal, or the last one.

        How much excess an absolute target leaves is not known, and the guess is: as much as the target.
        """
        q = self.question
        goals = np.broadcast_to(abs(q.target) if q.absolute else goals, q.epsilons.shape)
        found = self.first_level(goals)
        self.enough = found < len(q.epsilons)
        return min(found, len(q.epsilons) - 1)

    def first_level(self, goals):
        """Return the first level whose forecast excess is at most its goal, or the grid's length."""
        q = self.question
        # forecasts fall
        return bisect_left(
            range(len(q.epsilons)), True, key=lambda i: q.forecast(self.how, i) <= goals[i]
        )


def outcome_loss(method, outcome, disjoint, seeded):
    """Return the loss of the models and of the tests that a method released."""
    q = method.question

    def ex_post(epsilon, label, delta=0.0):
        return PrivacyLoss(
            float(epsilon),
            delta,
            kind="ex-post",
            adjacency=adjacency_of(q.shape.persons),
            label=label,
            seeded=seeded,
        )

    if method.how == "fresh":
        models = [
            ex_post(epsilon, "generating: a model", q.form.delta(q.shape, float(epsilon)))
            for epsilon in outcome.epsilons
        ]
    else:
        label = f"generating: {len(outcome.epsilons)} models along a noise-reduction path"
        models = [ex_post(outcome.epsilons[-1], label, q.delta if method.how == "brownian" else 0.0)]
    tests = [ex_post(epsilon, f"testing: {method.name}") for epsilon in outcome.tests]
    groups = [
        PrivacyLoss.sequential(group, label=label)
        for group, label in ((models, "generating"), (tests, "testing"))
        if group
    ]
    compose = PrivacyLoss.parallel if disjoint else PrivacyLoss.sequential
    return compose(groups, label=method.name)

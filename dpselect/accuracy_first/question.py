"""What an accuracy-first search asks, how a method answers, and what the answer has cost."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..capabilities import PublicShape
from ..exceptions import CertificateError
from ..privacy import PrivacyLoss
from .forms import AccuracyForm, NoiseLevels


@dataclass(frozen=True)
class Question:
    """What is asked of the models, in public numbers.

    Attributes
    ----------
    epsilons : ndarray of shape (T,)
        The grid, increasing.
    absolute : bool
        Whether the loss itself has a target, and not its excess over the least one.
    target : float
        What the loss may be at most.
    slack : float
        How far below the target the noise of the tests may push the threshold.
    sensitivity : float
        How far one record moves the loss of any model.
    failure_probability : float
        gamma, of accepting a model whose loss is above the target.
    delta : float
        For Brownian noise.
    form : AccuracyForm
        Of the model.
    shape : PublicShape
        Of the records that the model is trained with.
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
    """What a method released.

    Attributes
    ----------
    accepted : bool
        Whether the last model was found accurate enough.
    epsilons, models : list
        Levels that were read, and their models.
    tests : list of float
        Privacy losses of the tests.
    answers : list of float
        Noisy losses of tested models, where the method releases them.
    tested : list of int
        The models that these answers belong to.
    """

    accepted: bool = False
    epsilons: list = field(default_factory=list)
    models: list = field(default_factory=list)
    tests: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    tested: list = field(default_factory=list)


class Method(ABC):
    """A way to find the smallest epsilon that is accurate enough.

    Parameters
    ----------
    question : Question

    Attributes
    ----------
    generating, testing : float
        The planned privacy losses of the models and of the tests.
    enough : bool
        Whether a level of the grid is known, or forecast, to be enough.

    Raises
    ------
    CertificateError
        If the method does not serve the estimator or the question.
    """

    # whether a level of the grid is known, or forecast, to be enough
    enough = True

    def __init__(self, question):
        self.question = question
        self.prepare()

    @abstractmethod
    def prepare(self):
        """Set the noise from the question, and the planned losses."""

    def expected(self, disjoint):
        """Return the planned loss of models and tests together."""
        return max(self.generating, self.testing) if disjoint else self.generating + self.testing

    @abstractmethod
    def at_most(self, disjoint, seeded=False):
        """Return the largest loss of any outcome.

        Parameters
        ----------
        disjoint : bool
            Whether models and tests read different records.
        seeded : bool, default=False

        Returns
        -------
        PrivacyLoss
        """


class Walk(Method):
    """A method that reads models from the most private one on, and asks about them.

    Attributes
    ----------
    how : {"path", "brownian", "fresh"}
        How noise goes from one level to the next.
    """

    how = "path"

    def __init__(self, question):
        if self.how != "fresh" and not question.form.reduces_noise:
            model = question.form.model
            raise CertificateError(
                f"{type(model).__name__}(perturbation={model.perturbation!r}) has no "
                "noise-reduction form, because its noise enters before the minimiser is computed; "
                "write another perturbation, or a method without a path: 'certified', "
                "'predict_verify', 'doubling' or 'theory'."
            )
        super().__init__(question)

    @abstractmethod
    def run(self, reduction, losses, stream):
        """Read models and ask.

        Parameters
        ----------
        reduction : Reduction
        losses : callable
            From a list of models to the exact losses.
        stream : InnerStream
            Of the noise of the tests.

        Returns
        -------
        Outcome
        """

    @abstractmethod
    def most_expensive(self):
        """Return an Outcome that costs as much as any, without models."""

    def at_most(self, disjoint, seeded=False):
        return outcome_loss(self, self.most_expensive(), disjoint, seeded)

    def planned_index(self, goals):
        """Return the first level whose forecast excess is at most its goal, or the last one.

        Parameters
        ----------
        goals : float or ndarray of shape (T,)
            For the excess risk. How much excess an absolute target leaves is not known, and
            the guess is: as much as the target.
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
    """Return the loss of the models and of the tests that a search released.

    Parameters
    ----------
    method : Walk
    outcome : Outcome
    disjoint : bool
        Whether models and tests read different records.
    seeded : bool

    Returns
    -------
    PrivacyLoss
    """
    delta = method.question.delta if method.how == "brownian" else 0.0

    def ex_post(epsilon, label, delta=0.0):
        return PrivacyLoss(float(epsilon), delta, kind="ex-post", label=label, seeded=seeded)

    if method.how == "fresh":
        models = [ex_post(epsilon, "generating: a model") for epsilon in outcome.epsilons]
    else:
        label = f"generating: {len(outcome.epsilons)} models along a noise-reduction path"
        models = [ex_post(outcome.epsilons[-1], label, delta)]
    tests = [ex_post(epsilon, f"testing: {method.name}") for epsilon in outcome.tests]
    groups = [
        PrivacyLoss.sequential(group, label=label)
        for group, label in ((models, "generating"), (tests, "testing")) if group
    ]
    compose = PrivacyLoss.parallel if disjoint else PrivacyLoss.sequential
    return compose(groups, label=method.name)

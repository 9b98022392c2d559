"""What the strategies of a search share: the problem in public numbers, and the choice."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.base import clone

from ...metrics import Score
from ...noise import is_seeded
from ...privacy import PrivacyLoss
from ..plan import SelectionPlan, too_few_records
from ..progress import Progress


@dataclass(frozen=True)
class Problem:
    """A selection to be made, in public numbers.

    Attributes
    ----------
    candidates : list of Candidate
        With `n_features` known.
    score : Score
    splits : list of (train, test)
        Index arrays.
    n_samples, n_features : int
        Shape of X.
    epsilon, delta : float
        The whole privacy loss.
    selection_fraction : "auto" or float
        Share of epsilon for the choice.
    n_noise_samples : int
        Noise samples over which a candidate's score is averaged.
    random_state : object
        Whether it is None says where noise comes from.
    jobs : dict
        `n_jobs` and `pre_dispatch`.
    progress : Progress
        Is told what is done.
    """

    candidates: list
    score: Score
    splits: list
    n_samples: int
    n_features: int
    epsilon: float
    delta: float = 0.0
    selection_fraction: object = "auto"
    n_noise_samples: int = 1
    random_state: object = None
    jobs: dict = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)

    @property
    def seeded(self):
        return is_seeded(self.random_state)

    def restricted(self, indices):
        """Return the problem of choosing among some candidates, which are copied."""
        chosen = [self.candidates[i] for i in indices]
        return replace(
            self, candidates=[replace(c, estimator=clone(c.estimator)) for c in chosen]
        )

    def selection_epsilon(self, automatic):
        """Return the share of epsilon for the choice; none for a single candidate.

        It is rounded so that with the rest, ``epsilon - share``, it adds up to epsilon exactly.
        """
        if len(self.candidates) == 1:
            return 0.0
        fraction = automatic if self.selection_fraction == "auto" else self.selection_fraction
        rest = float(self.epsilon) - float(fraction) * float(self.epsilon)
        return float(self.epsilon) - rest


@dataclass
class Choice:
    """What a strategy decided.

    Attributes
    ----------
    best : int
        The chosen candidate.
    plan : SelectionPlan
    losses : list of PrivacyLoss
        Of the choice, and of `estimator` if there is one.
    estimator : estimator or None
        The fitted model, if the strategy trains it itself.
    training_epsilon : float
        What the chosen candidate is trained with otherwise, on all records.
    """

    best: int
    plan: SelectionPlan
    losses: list
    estimator: object = None
    training_epsilon: float = 0.0


class Strategy(ABC):
    """A way to choose a candidate.

    Parameters
    ----------
    problem : Problem

    Raises
    ------
    CertificateError
        If the strategy does not serve the candidates or the score.
    """

    name = ""
    # whether candidates are compared by the search's score
    compares_scores = True

    def __init__(self, problem):
        self.problem = problem
        self.prepare()

    def prepare(self):
        """Check what is needed, and split the budget."""

    def dry_run(self):
        """Refuse early, on dummy records, what `choose` would refuse later."""

    @abstractmethod
    def plan(self):
        """Return the SelectionPlan, before any data."""

    @abstractmethod
    def choose(self, X, y, stream):
        """Return the Choice.

        Parameters
        ----------
        X, y
            All records.
        stream : InnerStream
            Of all noise but that of a model that is released.
        """

    def at_most(self):
        """Return the losses that the choice and the model do not exceed, on any records."""
        problem = self.problem
        # one sum of all, as that of the losses: rounded twice, it might be the smaller one
        return [
            PrivacyLoss(problem.epsilon, problem.delta, label="choice and model"),
            PrivacyLoss(0.0, self.delta_of_models(), label="the models' own delta"),
        ]

    def delta_of_models(self):
        """Return the delta of the trained models that are released, or chosen among."""
        return max(self.deltas)

    @property
    def deltas(self):
        """list of float : The delta of each candidate's model."""
        return [float(c.model.get_params().get("delta", 0.0)) for c in self.problem.candidates]

    def choice_loss(self, epsilon, delta=0.0):
        """Return the loss of an index among the candidates."""
        return PrivacyLoss(
            float(epsilon), float(delta),
            label=f"choice among {len(self.problem.candidates)} candidates",
            seeded=self.problem.seeded,
        )

    def bare_plan(
        self, training_epsilon, selection_epsilon, messages, *, training_size=None,
        sensitivity=0.0, scales=0.0, span=0.0, minimum_detectable_difference=math.nan, stake=math.nan,
    ):
        """Return a plan for scores whose training cannot move them, or is paid for otherwise."""
        problem, k = self.problem, len(self.problem.candidates)
        few = too_few_records(problem.candidates, problem.n_samples, problem.epsilon)
        return SelectionPlan(
            params=tuple(candidate.params for candidate in problem.candidates),
            n_samples=problem.n_samples, n_features=problem.n_features, epsilon=problem.epsilon,
            strategy=self.name, training_epsilon=training_epsilon,
            training_size=problem.n_samples if training_size is None else training_size,
            selection_epsilon=selection_epsilon, training=np.zeros(k), span=_column(span, k),
            sensitivity=_column(sensitivity, k), noise_scale=_column(scales, k),
            minimum_detectable_difference=minimum_detectable_difference, stake=stake,
            considered=np.ones(k, dtype=bool),
            messages=few + tuple(messages),
        )


def _column(values, k):
    return np.broadcast_to(values, k).astype(float)

"""Base class of the strategies of a search, with their problem in public numbers and their choice."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...accounting.privacy_loss import Adjacency, PrivacyLoss
from ...exceptions import CertificateError
from ...metrics import Score
from ...noise import InnerStream, is_seeded
from ...records.persons import adjacency_of
from ..candidates import parameters
from ..plan import SelectionPlan, too_few_records
from ..progress import Progress
from .dry_run import check_calibration, dry_run_fit, needs_fit

# what a strategy spends, on what, and on how many records
DIVISION = ("training_epsilon", "selection_epsilon", "training_size")


@dataclass(frozen=True)
class Problem:
    """A selection to be made, in public numbers.

    Parameters
    ----------
    candidates : list of Candidate
        Each with its `params`, its private `model`, ``transform(X)``, the rows as the model sees them,
        and `n_features`, how many columns these have.
    score : Score
        Of :mod:`dpselect.metrics`; `sensitivity` bounds how far one record moves its `comparison`.
    splits : sequence of (train, test)
        Index arrays.
    n_samples, n_features : int
        Shape of X; where rows are those of persons, n_samples is the number of persons.
    epsilon, delta : float
        The whole privacy loss.
    selection_fraction : "auto" or float
        Share of epsilon for the choice.
    n_noise_samples : int
        Noise samples over which a candidate's score is averaged.
    random_state : object
        Whether it is None says where noise comes from.
    jobs : dict, default={}
        `n_jobs` and `pre_dispatch`.
    progress : Progress
        Is told what is done.
    learned : bool, default=False
        Whether numbers of the candidates were learned from the records.
    """

    candidates: list
    score: Score
    splits: Sequence
    n_samples: int
    n_features: int
    epsilon: float
    delta: float = 0.0
    selection_fraction: Any = "auto"
    n_noise_samples: int = 1
    random_state: object = None
    jobs: dict = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    learned: bool = False

    @property
    def adjacency(self) -> Adjacency:
        """Adjacency : What the losses are about."""
        return adjacency_of(self.candidates[0].persons)

    @property
    def seeded(self) -> bool:
        """bool : Whether the noise can be drawn again."""
        return is_seeded(self.random_state)

    def restricted(self, indices: Iterable[int]) -> Problem:
        """Return the problem of choosing among some candidates.

        Parameters
        ----------
        indices : iterable of int

        Returns
        -------
        Problem
        """
        return replace(self, candidates=[self.candidates[i] for i in indices])

    def selection_epsilon(self, automatic: float) -> float:
        """Return the share of epsilon for the choice; none for a single candidate.

        Parameters
        ----------
        automatic : float
            The share if `selection_fraction` is "auto".

        Returns
        -------
        float
            Rounded so that with the rest, ``epsilon - share``, it adds up to epsilon exactly.
        """
        if len(self.candidates) == 1:
            return 0.0
        fraction = automatic if self.selection_fraction == "auto" else self.selection_fraction
        rest = float(self.epsilon) - float(fraction) * float(self.epsilon)
        return float(self.epsilon) - rest


@dataclass
class Choice:
    """Decision of a strategy.

    Parameters
    ----------
    best : int
        The chosen candidate.
    losses : list of PrivacyLoss
        Of the choice, and of `estimator` if there is one. Empty for a choice that depends on public
        numbers only.
    estimator : estimator or None
        The fitted model, if the strategy trains it itself. None lets the search train the chosen
        candidate, with the strategy's `training_epsilon` and new noise, on all records.
    plan : SelectionPlan or None
        With the noise that was drawn; None is the strategy's own plan.
    """

    best: int
    losses: list = field(default_factory=list)
    estimator: object = None
    plan: SelectionPlan | None = None


class Strategy(ABC):
    """Base class of strategies; a subclass is given to a search as its `strategy`.

    It writes `choose`, and in `prepare` how it divides epsilon if the choice has a price. The search
    reserves `at_most` before it reads a record, trains what was chosen, and adds up what was spent. If
    that exceeds what was reserved, nothing comes out, and the reservation counts in full. What was
    spent is the losses that `choose` states, and a statement needs a proof.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    problem : Problem
    name : str
        Of the strategy in plans and messages; the class's own name unless it is set.
    compares_scores : bool
        Whether candidates are compared by the search's score.
    takes_groups : bool
        Whether `choose` counts and cuts persons, where records are those of persons with several rows:
        by :func:`~dpselect.records.take_part` and :func:`~dpselect.records.score_on`.
    takes_delta : bool
        Whether `choose` may spend the `delta` of the search, beside those of models.
    said : tuple of str
        What a plan says in words.
    training_epsilon, selection_epsilon : float
        Privacy losses of the released model and of the choice: the whole and 0.0, unless `prepare`
        sets them.
    training_size : int
        Records that the released model is trained on: all, unless `prepare` sets it.

    Raises
    ------
    CertificateError
        If the strategy does not serve the candidates or the score.

    See Also
    --------
    dpselect.StabilityGridSearchCV : The search, which lists the strategies that are known by name.
    dpselect.testing.check_strategy : Attacks on a strategy.

    Examples
    --------
    A quarter of epsilon pays for a choice by scores on held-out records, the rest trains the winner. To
    be compared, each candidate is trained on training records of its own, and a record is in one part:

    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, StabilityGridSearchCV
    >>> from dpselect.base import Trial
    >>> from dpselect.mechanisms import noisy_argmax
    >>> from dpselect.model_selection import Choice, Strategy
    >>> from dpselect.noise import as_generator
    >>> from dpselect.records import score_on, take_part
    >>> class Quarter(Strategy):
    ...     takes_groups = True
    ...
    ...     def prepare(self):
    ...         self.selection_epsilon = self.problem.selection_epsilon(0.25)
    ...         self.training_epsilon = self.problem.epsilon - self.selection_epsilon
    ...
    ...     def choose(self, X, y, stream):
    ...         candidates, epsilon = self.problem.candidates, self.selection_epsilon
    ...         noise = lambda name: stream.child("quarter", name).for_release()
    ...         shuffled = as_generator(stream.child("parts")).permutation(self.problem.n_samples)
    ...         test, *parts = np.array_split(shuffled, 1 + len(candidates))
    ...         scores = []
    ...         for i, (candidate, part) in enumerate(zip(candidates, parts)):
    ...             rows, trial = candidate.transform(X), Trial(candidate.model, epsilon, noise(i))
    ...             model = trial.fitted(*take_part(rows, y, part))
    ...             scores.append(score_on(self.problem.score, model, *take_part(rows, y, test)))
    ...         sensitivity = np.full(len(scores), self.problem.score.sensitivity(len(test)))
    ...         best = noisy_argmax(scores, sensitivity, epsilon, noise("choice"))
    ...         return Choice(best, [self.choice_loss(epsilon)])
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(-1, 1, (3000, 2)), rng.integers(2, size=3000)
    >>> search = StabilityGridSearchCV(
    ...     DPLogisticRegression(classes=[0, 1]), {"data_norm": [0.5, 1.0]}, strategy=Quarter
    ... )
    >>> print(search.fit(X, y).privacy_)
    (epsilon = 1, delta = 0) differential privacy, adjacency: replace one record
      sum of
        epsilon 0.25: choice among 2 candidates
        epsilon 0.75: DPLogisticRegression: coefficients by objective perturbation
    """

    name = ""
    compares_scores = True
    takes_groups = False
    takes_delta = True
    said: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.training_epsilon, self.selection_epsilon = float(problem.epsilon), 0.0
        self.training_size = problem.n_samples
        self.prepare()

    @classmethod
    def of(cls, problem: Problem) -> Strategy:
        """Return the strategy for a problem; some have a special case of their own for some grids.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        Strategy
        """
        return cls(problem)

    def after_learning(self, candidates: list[Any]) -> Strategy:
        """Return the same strategy for candidates of which numbers were learned from the records.

        How epsilon is divided may not follow from these numbers: what is stated is public.

        Parameters
        ----------
        candidates : list of Candidate
            In place of those of the problem.

        Returns
        -------
        Strategy

        Raises
        ------
        CertificateError
            If `prepare` divides epsilon in another way than before they were learned.
        """
        again = type(self)(replace(self.problem, candidates=candidates, learned=True))
        if any(getattr(again, name) != getattr(self, name) for name in DIVISION):
            raise CertificateError(
                f"strategy={self.name!r} divides epsilon by numbers that were learned from the records, "
                "and what is stated may not follow from these; let prepare divide it by public numbers."
            )
        return again

    def prepare(self) -> None:
        """Check what is needed, and divide epsilon; no record is known yet."""

    def dry_run(self) -> None:
        """Refuse early, on dummy records, what `choose` would refuse later."""
        score = self.problem.score if self.compares_scores else None
        for candidate in needs_fit(self.problem.candidates, score):
            self.dry_run_candidate(candidate)
        for candidate in self.problem.candidates:
            check_calibration(candidate, self.training_epsilon)

    def dry_run_candidate(self, candidate: Any) -> Any:
        """Refuse a candidate early.

        Parameters
        ----------
        candidate : Candidate

        Returns
        -------
        estimator
            Its model, fitted on two dummy rows.
        """
        score = self.problem.score if self.compares_scores else None
        return dry_run_fit(candidate, self.training_epsilon, score)

    def plan(self) -> SelectionPlan:
        """Plan what will be spent, before any data.

        Returns
        -------
        SelectionPlan
        """
        return self.make_plan(self.said)

    @abstractmethod
    def choose(self, X: Any, y: Any, stream: InnerStream) -> Choice:
        """Choose a candidate.

        Parameters
        ----------
        X : indexable of length n
            All rows.
        y : ndarray of shape (n,) or None
            Their labels or targets; with weights of the records a
            :class:`~dpselect.records.records.Weighted`, which models are trained on in the same way.
        stream : InnerStream
            Of all noise but that of a model that is released; a child of it for each purpose, and
            ``child(...).for_release()`` where the noise hides records. Parts of the records, and noise
            of models that are only compared, are no secrets.

        Returns
        -------
        Choice
        """

    def at_most(self) -> list[PrivacyLoss]:
        """State what the choice and the model together do not exceed, on any records.

        Returns
        -------
        list of PrivacyLoss
            They add up. It is what the ledger reserves.
        """
        problem = self.problem
        # one sum of all, as that of the losses: rounded twice, it might be the smaller one
        return [
            PrivacyLoss(epsilon, delta, adjacency=problem.adjacency, label=label)
            for epsilon, delta, label in (
                (problem.epsilon, problem.delta * self.takes_delta, "choice and model"),
                (0.0, self.delta_of_models(), "the models' own delta"),
            )
        ]

    def delta_of_models(self) -> float:
        """Return the delta of the trained models that are released, or chosen among.

        Returns
        -------
        float
            The largest one, as of a single model.
        """
        return max(self.deltas)

    @property
    def deltas(self) -> list[float]:
        """list of float : The delta of each candidate's model."""
        return [float(parameters(c.model).get("delta", 0.0)) for c in self.problem.candidates]

    def choice_loss(self, epsilon: float, delta: float = 0.0) -> PrivacyLoss:
        """State the loss of an index among the candidates.

        Parameters
        ----------
        epsilon : float
        delta : float, default=0.0

        Returns
        -------
        PrivacyLoss
        """
        return PrivacyLoss(
            float(epsilon),
            float(delta),
            label=f"choice among {len(self.problem.candidates)} candidates",
            seeded=self.problem.seeded,
            adjacency=self.problem.adjacency,
        )

    def make_plan(
        self,
        messages: Iterable[str] = (),
        *,
        training: npt.ArrayLike = 0.0,
        sensitivity: npt.ArrayLike = 0.0,
        scales: npt.ArrayLike = 0.0,
        span: npt.ArrayLike = 0.0,
        minimum_detectable_difference: float = math.nan,
        stake: float = math.nan,
    ) -> SelectionPlan:
        """Return the plan of a strategy that knows these numbers of each candidate.

        Parameters
        ----------
        messages : iterable of str, default=()
            What it says in words.
        training : float or array-like of shape (k,), default=0.0
            How far one training record moves each candidate's score; 0.0 if that is paid for
            otherwise.
        sensitivity, scales, span : float or array-like of shape (k,), default=0.0
            How far any record moves it, the scale of the noise on it, and its largest less its
            least value.
        minimum_detectable_difference, stake : float, default=nan
            As in :class:`SelectionPlan`.

        Returns
        -------
        SelectionPlan
        """
        problem, k = self.problem, len(self.problem.candidates)
        few = too_few_records(problem.candidates, problem.n_samples, problem.epsilon)
        return SelectionPlan(
            params=tuple([candidate.params for candidate in problem.candidates]),
            n_samples=problem.n_samples,
            n_features=problem.n_features,
            epsilon=problem.epsilon,
            strategy=self.name,
            training_epsilon=self.training_epsilon,
            training_size=self.training_size,
            selection_epsilon=self.selection_epsilon,
            training=_column(training, k),
            span=_column(span, k),
            sensitivity=_column(sensitivity, k),
            noise_scale=_column(scales, k),
            stake=stake,
            minimum_detectable_difference=minimum_detectable_difference,
            considered=np.ones(k, dtype=bool),
            messages=few + tuple(messages),
            persons=problem.candidates[0].persons,
        )


def _column(values, k):
    return np.broadcast_to(values, k).astype(float)

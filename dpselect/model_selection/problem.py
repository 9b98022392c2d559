"""A search in public numbers, and the records that it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ..accounting.privacy_loss import Adjacency
from ..metrics import Score
from ..noise import is_seeded
from ..noise.generators import InnerStream
from ..preprocessing import TableEncoder
from ..preprocessing.tabular import TabularPipeline
from ..records.persons import Persons, adjacency_of
from ..records.records import Weighted, check_weights
from ..rows import n_rows
from .budget import Budget
from .candidates import Candidate, bound, learn_classes, n_columns, with_classes, with_columns
from .exact_scores import dummy_records, records_for_steps, records_of
from .private_steps import steps_before
from .progress import Progress
from .row_steps import PublicRows
from .splits import Halves
from .strategies import Problem, Strategy, strategy_class


@dataclass(frozen=True)
class SearchProblem:
    """Public description of a search before one of its stages; a change gives a new problem.

    Attributes
    ----------
    search : estimator
        The search, of which the parameters are read and nothing else.
    stream : InnerStream
        For all noise, and for all that is drawn.
    estimator : estimator
        That of the search, with seeds for features; private steps are constants once they are fitted.
    candidates : list of Candidate
    score : Score or None
    budget : Budget
    candidates_of : callable
        Makes the candidates of an estimator with private steps that were fitted, from it and the names
        of these steps.
    persons : bool
        Whether records are persons with any number of rows.
    classes : array or None
        Labels, once they are known.
    n_samples : int
        Records, or persons, that train.
    n_features : int
        Columns of X.
    public : PublicRows or None
        Of X; None if no step needs them.
    splits : sequence or None
    is_dummy : bool
        Whether the shape of the records is not known yet, and numbers are upper bounds.
    decided : object
        What a stage has decided by public numbers or has paid for: the strategy of a choice, or the
        method and its plan.
    choice : Choice or None
        What was chosen.
    messages : tuple of str
        For a plan.
    progress : Progress
    """

    search: Any
    stream: InnerStream
    estimator: Any
    candidates: list[Candidate]
    score: Score | None
    budget: Budget
    candidates_of: Callable[[Any, Sequence[str]], list[Candidate]]
    persons: bool = False
    classes: Any = None
    n_samples: int = 0
    n_features: int = 1
    public: PublicRows | None = None
    splits: Sequence[Any] | None = None
    is_dummy: bool = False
    decided: Any = None
    choice: Any = None
    messages: tuple[str, ...] = ()
    progress: Progress = field(default_factory=Progress)

    @property
    def adjacency(self) -> Adjacency:
        """The adjacency of all losses."""
        return adjacency_of(self.persons)

    @property
    def seeded(self) -> bool:
        """Seeded noise, which can be drawn again."""
        return is_seeded(self.search.random_state)

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy by public numbers; tables are encoded for the fit that it leaves to the model."""
        kind = strategy_class(self.search.strategy)
        fit = self.n_samples, self.budget.remaining
        strategy = kind.of(self._selection(*fit))
        left = strategy.training_size, strategy.training_epsilon
        encoded = any(isinstance(c.estimator, TabularPipeline) for c in self.candidates)
        return kind.of(self._selection(*left)) if left != fit and encoded else strategy

    def _selection(self, n_samples, epsilon):
        """Return the problem as a strategy sees it, for models that are trained so."""
        search = self.search
        candidates = bound(self.candidates, n_samples, epsilon)
        return Problem(
            with_columns(candidates, self.n_features, self.public),
            self.score,
            self.splits,
            self.n_samples,
            self.n_features,
            epsilon=self.budget.remaining,
            # low-precision numbers would weaken the noise
            delta=float(search.delta),
            selection_fraction=search.selection_fraction,
            n_noise_samples=search.n_noise_samples,
            random_state=search.random_state,
            jobs={"n_jobs": search.n_jobs, "pre_dispatch": search.pre_dispatch},
            progress=self.progress,
        )

    @property
    def winner(self) -> Candidate:
        """The candidate that was chosen, or the only one."""
        return self.candidates[0 if self.choice is None else self.choice.best]

    def dummy(self, n_samples: int) -> "SearchProblem":
        """Return the problem for upper bounds, before any record is read."""
        return replace(self, n_samples=n_samples, splits=Halves(n_samples), is_dummy=True)


@dataclass(frozen=True)
class SearchRecords:
    """The records of a search.

    Attributes
    ----------
    X, y : array-like
        Rows, and labels or targets.
    weight : array-like or None
        Weights of the records.
    persons : Persons or None
        The person of each row.
    held_out : tuple or None
        The records that evaluate, as :func:`.set_aside.evaluate_candidate` takes them.
    """

    X: Any
    y: Any
    weight: Any = None
    persons: Persons | None = None
    held_out: tuple[Any, ...] | None = None

    @property
    def n_samples(self) -> int:
        """Number of records, or of persons."""
        return n_rows(self.X) if self.persons is None else self.persons.n

    @property
    def person_of(self) -> Any:
        """Number of each row's person, or None."""
        return None if self.persons is None else self.persons.number

    def targets(self, rows: Any = None) -> Any:
        """Return labels or targets with persons, and with weights if there are rows to check."""
        weight = None if self.weight is None or rows is None else check_weights(self.weight, rows)
        return Weighted.of(self.y, weight, self.person_of)


def read_records(X: Any, y: Any, groups: Any, weight: Any) -> SearchRecords:
    """Return the records that a fit was given; neither labels nor weights are checked yet."""
    X, y = records_of(X, y, groups)
    return SearchRecords(X, y, weight, None if groups is None else Persons.of(groups, X))


def with_shape(problem: SearchProblem, records: SearchRecords) -> SearchProblem:
    """Return the problem with the number of records and of columns, which are public."""
    return replace(problem, n_samples=records.n_samples, n_features=n_columns(records.X))


def open_records(problem: SearchProblem, records: SearchRecords) -> tuple[SearchProblem, SearchRecords]:
    """Return the problem with what is public of the records, and the records, checked."""
    y, classes = learn_classes(problem.candidates, records.y, type(problem.search).__name__)
    weight = records.weight if records.weight is None else check_weights(records.weight, records.X)
    known = replace(problem, classes=classes, candidates=with_classes(problem.candidates, classes))
    return with_shape(known, records), replace(records, y=y, weight=weight)


def planned_problem(
    problem: SearchProblem, n_samples: Any, n_features: Any, n_classes: Any, example: Any
) -> SearchProblem:
    """Return the problem for a plan of records that nobody has seen."""
    example = invented_row(problem.estimator, n_features) if example is None else example
    n_samples, n_features, n_classes, example = dummy_records(n_samples, n_features, n_classes, example)
    classes = np.arange(n_classes)
    return replace(
        problem,
        n_samples=n_samples,
        n_features=n_features,
        classes=classes,
        candidates=with_classes(problem.candidates, classes),
        public=records_for_steps(problem.candidates, example)[1],
    )


def invented_row(estimator, n_features):
    """Return a row by the schema of a table that the first step encodes, or None if nothing is known."""
    steps = steps_before(estimator)
    encoder = steps[0][1] if steps else None
    if not isinstance(encoder, TableEncoder):
        return None
    try:
        row = encoder.public_schema().invented_row()
    except (NotFittedError, ValueError):  # one entry for all columns, or what is refused elsewhere
        return None
    return row if row.shape[1] == n_features else None

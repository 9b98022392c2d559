"""A strategy under check: searches that use it, made-up records, and their releases."""

import random
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from ..model_selection import StabilityGridSearchCV
from ..model_selection.final_fit import fit_for_release
from ..model_selection.strategies import strategy_class
from ..records.persons import Persons
from ..records.records import Weighted
from .case import Case, open_ledger
from .statement_checks import ReleaseStatement
from .telling import ColumnScore, Telling

# errors by which a strategy may refuse a model
UNSERVED = (ValueError, TypeError, AttributeError, LookupError)


@dataclass
class Subject:
    """A model and a grid for checks of a strategy, and records for it.

    Attributes
    ----------
    name : str
        In reports.
    estimator, grid, scoring
        Of the search.
    n, d : int
        Shape of the records.
    parameters : dict
        Others of the search.
    """

    name: str
    estimator: Any
    grid: Any
    scoring: Any = None
    n: int = 100
    d: int = 3
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def made_for_attacks(self):
        """bool : Whether the models are made for attacks."""
        return isinstance(self.estimator, Telling)

    def labels(self, numbers):
        """Return one of two labels or targets for each 0 and 1; None for models without any."""
        return None if self._labels is None else self._labels[numbers]

    @cached_property
    def _labels(self):
        _, *y = self.case.data()
        return np.array([y[0].min(), y[0].max()]) if y else None

    @property
    def points(self):
        """tuple of dict : The candidates."""
        return tuple(ParameterGrid(self.grid))

    @cached_property
    def case(self):
        """Case : Case for the records of the model, or of the last step of a Pipeline."""
        model = self.estimator[-1] if hasattr(self.estimator, "steps") else self.estimator
        attributes = ("answer_",) if self.made_for_attacks else None
        return Case(model, ReleaseStatement(attributes, n_features=(self.d, self.d)))

    def varied(self):
        """Return very different data sets of one shape, with all labels."""
        data = self.case.data(2, self.n)
        X, *y = data
        many = [data, self.case.outliers(1, self.n), (0 * X, *y)]
        many.append((X[::-1].copy(), *(part[::-1].copy() for part in y)))
        if y:
            many.append((X, np.full_like(y[0], y[0][0]), *y[1:]))
        if self.made_for_attacks:  # a data set with one candidate far ahead
            many.append((np.where(np.arange(self.d) == 0, 1.0, 0 * X), *y))
        return [records[:2] for records in many]


class StrategyCase:
    """A strategy, and a subject for its checks."""

    def __init__(self, strategy, subject):
        self.kind, self.subject = strategy_class(strategy), subject

    def search(self, random_state=None, **parameters):
        subject = self.subject
        given = {"epsilon": 2.0, **subject.parameters, **parameters}
        return StabilityGridSearchCV(
            clone(subject.estimator),
            subject.grid,
            **{
                "strategy": self.kind,
                "scoring": subject.scoring,
                "random_state": random_state,
                **given,
            },
        )

    def fit(self, data, random_state=None, groups=None, **parameters):
        search = self.search(random_state, **parameters)
        with quiet():
            return search.fit(*data, **({} if groups is None else {"groups": groups}))

    @cached_property
    def refusal(self):
        """str : Reason why the strategy does not support the subject; empty if it does."""
        try:
            self.plan()
        except UNSERVED as error:
            return f"{type(error).__name__}: {error}"
        try:
            self.fit(self.subject.varied()[0])
        except (AttributeError, LookupError) as error:
            return f"{type(error).__name__}: {error}"
        except (ValueError, TypeError, ArithmeticError):
            return ""  # other errors fail the checks themselves
        return ""

    def plan(self, **parameters):
        with quiet():
            return self.search(**parameters).plan(self.subject.n, self.subject.d)

    def problem(self, data, groups=None, **parameters):
        """Return the Problem that a search passes to the strategy for such records, and the search."""
        with self.watched() as made:
            search = self.fit(data, None, groups, **parameters)
        return made[-1].problem, search

    @contextmanager
    def watched(self):
        """Yield a list of the strategies that searches make inside the block."""
        made, kind = [], self.kind

        class Watched(kind):
            name = kind.name

            @classmethod
            def of(cls, problem):
                made.append(kind.of(problem))
                return made[-1]

        self.kind = Watched
        try:
            yield made
        finally:
            self.kind = kind

    @cached_property
    def refusal_of_persons(self):
        """str : Reason why it does not take rows of persons; empty if it does."""
        data = self.subject.varied()[0]
        try:
            self.fit(data, groups=np.arange(self.subject.n) // 2)
        except UNSERVED as error:
            return f"{type(error).__name__}: {error}"
        return ""


@contextmanager
def quiet():
    """Suppress warnings about made-up records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def restored_generators():
    """Restore the state of Python's and numpy's global generators when the block ends."""
    state, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpys)  # noqa: NPY002


class Chooser:
    """Choose repeatedly on records of one public shape, as a search does without its checks.

    Noise is the stream's that is given, or the operating system's: of other generators, each choice
    finds the same numbers.
    """

    def __init__(self, case, data, groups=None, **parameters):
        self.kind, self.labels = case.kind, case.subject.labels
        self.problem, self.search = case.problem(data, groups, **parameters)
        self.loss = self.search.privacy_

    def choose(self, X, labels, stream, groups=None, train=True):
        """Return the chosen index and the released model; None for one that is not wanted."""
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        y = self.labels(labels)
        if groups is not None:
            y = Weighted.of(y, None, Persons.of(groups, X).number)
        strategy = self.kind.of(self.problem)
        choice = strategy.choose(X, y, stream)
        model = choice.estimator
        if model is None and train:
            winner = self.problem.candidates[choice.best]
            model = fit_for_release(
                winner.model, strategy.training_epsilon, None, winner.transform(X), y
            )
        return int(choice.best), model


@contextmanager
def a_ledger(epsilon, delta):
    """Yield an empty ledger."""
    with tempfile.TemporaryDirectory() as folder:
        yield open_ledger(folder, epsilon, delta)


def revealing_subject(kind, k, revealing=False, n=100, **parameters):
    """Return the subject of k models that reveal as much as their statements allow."""
    grid = {"alpha": [float(i + 1) for i in range(k)]}
    score = ColumnScore(tuple(ParameterGrid(grid)), revealing)
    return Subject(kind.__name__, kind(), grid, score, n, 2 * k + 1, parameters)

"""The stages of a search: the upper bound of what each one releases, and the release."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import clone

from ..accounting.privacy_loss import PrivacyLoss
from ..base.fit_warnings import warn_of_little
from ..base.learned_numbers import Division
from ..config import warn_caller
from ..ledger.spending import Spending
from ..preprocessing.learned_ranges import MOST_NOISE
from ..rows import n_rows
from .budget import loss_of_any_model, steps_at_most, without_events_of_models
from .candidates import n_columns, with_classes, with_columns
from .exact_scores import records_for_steps
from .final_fit import fit_for_release, release_state
from .learned_first import ToLearn
from .plan import with_steps
from .private_steps import freeze, last_private
from .problem import SearchProblem, SearchRecords
from .quality_forecast import calibration_of
from .set_aside import SetAside, check_held, count_held
from .sklearn_forms import scores_of, scoring_that_chooses
from .splits import make_splits
from .strategies import Strategy, strategy_class

NOTHING_OF_RANGES = (
    f"ranges='auto' learns nothing here, because the noise of a mean would be above {MOST_NOISE:g}; the "
    "bounds of the schema stay, and cost nothing."
)


@dataclass(frozen=True)
class Price:
    """Upper bounds of what a stage releases, and the problem that the next stage has."""

    losses: Sequence[PrivacyLoss]
    problem: SearchProblem


@dataclass(frozen=True)
class Released:
    """The losses of what a stage has released, and what the next stage has.

    The losses have no default: a stage that reads records cannot forget them.
    """

    losses: Sequence[PrivacyLoss]
    problem: SearchProblem
    records: SearchRecords
    values: Mapping[str, Any] = field(default_factory=dict)


class Stage(ABC):
    """Stage of a search; a plan and a fit are two folds of the same list of stages."""

    @abstractmethod
    def price(self, problem: SearchProblem) -> list[Price]:
        """Return the price by public numbers; of several, records that nobody has read yet decide."""

    @abstractmethod
    def run(self, problem: SearchProblem, records: SearchRecords, charge: Spending) -> Released:
        """Read the records, and release something or nothing."""


class HoldOut(Stage):
    """Set records aside for the evaluation; the others train."""

    def price(self, problem: SearchProblem) -> list[Price]:
        if problem.is_dummy:
            return [Price([], problem)]
        search = problem.search
        n = problem.n_samples - count_held(search.evaluation, problem.n_samples)
        splits = None
        if problem.score is not None and problem.decided is None:  # a plan has its splits
            splits = make_splits(search.cv, n, problem.stream.child("splits"), problem.persons)
        return [Price([], replace(problem, n_samples=n, splits=splits))]

    def run(self, problem: SearchProblem, records: SearchRecords, charge: Spending) -> Released:
        rows, evaluation = n_rows(records.X), problem.search.evaluation
        aside = SetAside.of(evaluation, rows, problem.stream, records.persons)
        weight = aside.of_training(records.weight)
        (X, y), held_out = aside.cut(records.X, records.y)
        held_out = aside.with_weights(held_out, records.weight)
        persons = aside.training_persons(X)
        (price,) = self.price(problem)
        X, public = records_for_steps(problem.candidates, X, problem.public)
        check_held(held_out, problem.candidates[0], problem.estimator, public)
        after = replace(price.problem, n_features=n_columns(X), public=public)
        return Released([], after, SearchRecords(X, y, weight, persons, held_out))


class PrivateSteps(Stage):
    """Fit the steps of a Pipeline that learn privately, once for all candidates."""

    def price(self, problem: SearchProblem) -> list[Price]:
        losses = steps_at_most(problem.estimator, problem.adjacency)
        return [Price(losses, replace(problem, budget=problem.budget.spend(losses)))]

    def run(self, problem: SearchProblem, records: SearchRecords, charge: Spending) -> Released:
        (price,) = self.price(problem)
        problem = price.problem
        if last_private(problem.estimator) < 0:
            return Released([], problem, records)
        problem.progress.step("fitting the steps that learn privately")
        noise = problem.stream.child("steps") if problem.seeded else None
        estimator, losses, frozen = freeze(
            problem.estimator, records.X, records.y, noise, problem.public, records.person_of
        )
        charge.begin()
        candidates = with_classes(problem.candidates_of(estimator, frozen), problem.classes)
        return Released(losses, replace(problem, estimator=estimator, candidates=candidates), records)


def _warn_of_little(search, strategy):
    """Warn, by public numbers, of noise that hides most of what the first candidate could learn."""
    planned = strategy.problem.candidates[0], strategy.training_size, strategy.training_epsilon
    warn_of_little(type(search), calibration_of(*planned))


class LearnedNumbers(Stage):
    """Learn what is "auto" once, before the candidates are compared."""

    def price(self, problem: SearchProblem) -> list[Price]:
        numbers = self._numbers(problem)
        if not numbers.releases:
            return [Price([], problem)]
        if not problem.is_dummy:
            planned, division, _ = self._divided(problem, numbers)
            if "ranges" in numbers.releases and "ranges" not in division.releases:
                planned = replace(planned, messages=(*planned.messages, NOTHING_OF_RANGES))
            return [self._paid(planned, numbers, division)]
        # the number of records decides later whether they are worth it
        planned = self._planned(problem, numbers)
        division = Division(numbers.releases, problem.budget.remaining)
        return [Price([], planned), self._paid(planned, numbers, division)]

    def _numbers(self, problem):
        if problem.is_dummy:
            return ToLearn.of(problem.candidates)
        # no model is trained with more than what is left now
        return ToLearn.of(problem.candidates, problem.n_samples, problem.budget.remaining)

    def _planned(self, problem, numbers):
        return replace(
            problem,
            candidates=numbers.with_placeholders(problem.candidates),
            messages=(*problem.messages, *numbers.messages),
        )

    def _divided(self, problem, numbers):
        planned = self._planned(problem, numbers)
        candidates, n = planned.strategy.problem.candidates, problem.n_samples
        return planned, *numbers.divide(candidates, problem.budget.remaining, n)

    def _paid(self, problem, numbers, division):
        losses = numbers.losses(division, problem)
        if not losses:  # so that the strategy is made once
            return Price([], problem)
        candidates = numbers.with_rest_of_delta(division, problem.candidates)
        return Price(
            losses, replace(problem, budget=problem.budget.spend(losses), candidates=candidates)
        )

    def run(self, problem: SearchProblem, records: SearchRecords, charge: Spending) -> Released:
        numbers = self._numbers(problem)
        if not numbers.releases:
            return Released([], problem, records)
        planned, division, paying = self._divided(problem, numbers)
        price = self._paid(planned, numbers, division)
        # the rows that are learned from are those of what remains of the budget
        strategy = price.problem.strategy
        _warn_of_little(problem.search, strategy)
        candidates = numbers.learned(
            division, paying, strategy.problem.candidates, records, problem.stream.for_release()
        )
        if "ranges" in division.releases:  # their encoders are others now
            candidates = with_columns(candidates, problem.n_features, problem.public)
        # the strategy was decided before anything was learned: what is stated goes by it
        decided = strategy.after_learning(candidates)
        return Released(price.losses, replace(price.problem, decided=decided), records)


class Choose(Stage):
    """Choose a candidate; the upper bound is that of the choice and of the released model."""

    def price(self, problem: SearchProblem) -> list[Price]:
        strategy = problem.strategy
        return [Price(strategy.at_most(), replace(problem, decided=strategy))]

    def run(self, problem: SearchProblem, records: SearchRecords, charge: Spending) -> Released:
        strategy = problem.strategy if problem.decided is None else problem.decided
        for message in ignored_scoring(problem.search, strategy):
            warn_caller(message, UserWarning)
        if problem.decided is None:  # else it was said before numbers were learned
            _warn_of_little(problem.search, strategy)
        k = len(problem.candidates)
        if k > 1:
            name = strategy_class(problem.search.strategy).name
            problem.progress.step(f"choosing among {k} candidates by {name!r}")
        choice = strategy.choose(records.X, records.targets(records.X), problem.stream)
        # which model was trained may follow from the choice
        losses = list(map(without_events_of_models, choice.losses))
        after = replace(problem, decided=strategy, candidates=strategy.problem.candidates, choice=choice)
        return Released(losses, after, records)


class Train(Stage):
    """Train the chosen candidate on all records, with new noise, unless the choice has trained it."""

    def price(self, problem: SearchProblem) -> list[Price]:
        return [Price([], problem)]  # the upper bound of the choice includes the model

    def run(self, problem: SearchProblem, records: SearchRecords, charge: Spending) -> Released:
        search, strategy, choice = problem.search, problem.decided, problem.choice
        winner, chosen, losses = problem.candidates[choice.best], choice.estimator, []
        if search.refit and chosen is None:
            state = release_state(problem.stream, problem.seeded)
            n, epsilon = problem.n_samples, strategy.training_epsilon
            problem.progress.step(f"training the chosen model on {n} {problem.adjacency.unit}s")
            targets = records.targets(records.X)
            # of one candidate no rows were kept for comparing
            rows = winner.transform(records.X, for_one_fit=len(problem.candidates) == 1)
            model = fit_for_release(clone(winner.model), epsilon, state, rows, targets)
            chosen, loss = winner.with_steps(model), model.privacy_
            if strategy.problem.learned or choice.losses:
                loss = loss_of_any_model(loss, problem.candidates, n, epsilon, strategy.problem.learned)
            losses = [loss]
        plan = choice.plan or strategy.plan()
        values = {
            "estimator": chosen if search.refit else None,
            "best_index_": choice.best,
            "best_params_": winner.params,
            "plan_": with_steps(plan, problem.budget),
            "cv_results_": plan.to_results(),
            "scorer_": problem.score,
            "n_splits_": len(problem.splits or ()),
        }
        return Released(losses, problem, records, values)


def ignored_scoring(search: Any, strategy: Strategy) -> tuple[str, ...]:
    """Return messages on given scores that have no part in the choice."""
    scoring, several = scoring_that_chooses(search), scores_of(search) or ()
    messages = []
    if scoring is not None and not strategy.compares_scores:
        messages.append(
            f"scoring={scoring!r} has no part in the choice, because "
            f"strategy={strategy.name!r} compares no scores here; only the method score "
            "of the search uses it."
        )
    others = [name for name in several if name != search.refit]
    if others:
        figures = "evaluation_ has figures" if search.evaluation else "evaluation=0.2 gives figures"
        messages.append(
            f"Of the scores in scoring, {search.refit!r} is the one that the search uses, and "
            f"{', '.join(map(repr, others))} are not computed, because each would cost epsilon; "
            f"{figures} of the released model."
        )
    return tuple(messages)

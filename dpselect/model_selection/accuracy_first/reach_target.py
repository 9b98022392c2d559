"""The stage of an accuracy-first search: models are read or fitted until one is accurate enough."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ...ledger.spending import Spending
from ...records.public_shape import PublicShape
from ...records.records import take_part
from ...utils.validation import SMALLEST_EPSILON
from ..candidates import with_columns
from ..final_fit import fit_for_release, release_state
from ..problem import SearchProblem, SearchRecords
from ..splits import disjoint_parts
from ..stages import Price, Released, Stage
from .accuracy_plan import AccuracyPlan, make_plan
from .goals import SLACK, goal_of, with_public_alpha
from .limit import Limit
from .methods import Static
from .question import Method, Question, outcome_loss
from .target_checks import check_target, epsilon_grid


@dataclass(frozen=True)
class Planned:
    """The plan of a search, its method, and the records that train and test, if a score is tested."""

    plan: AccuracyPlan
    method: Method
    split: tuple[Any, Any] | None

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.plan.method


class ReachTarget(Stage):
    """Find the smallest epsilon of the grid whose model is accurate enough, and release the model."""

    def price(self, problem: SearchProblem) -> list[Price]:
        search = problem.search
        (candidate,) = with_columns(problem.candidates, problem.n_features, problem.public)
        split = None if problem.splits is None else disjoint_parts(problem.splits)
        limit = Limit()
        if not problem.is_dummy:  # with other shapes another limit may do
            limit = Limit(
                problem.budget.spent,
                None if isinstance(search.max_epsilon, str) else float(search.max_epsilon),
                disjoint=split is not None,
                seeded=problem.seeded,
                releases_last=search.on_failure == "last",
            )
        question = ask(problem, candidate, split)
        plan, method = make_plan(question, search.method, limit)
        most = method.at_most(limit.disjoint, limit.seeded)
        return [Price([most], replace(problem, decided=Planned(plan, method, split)))]

    def run(self, problem: SearchProblem, records: SearchRecords, charge: Spending) -> Released:
        method = problem.decided.method
        (candidate,) = with_columns(problem.candidates, problem.n_features, problem.public)
        # the noise was planned for so many columns
        candidate = replace(candidate, n_features=method.question.shape.n_features)
        problem = replace(problem, candidates=[candidate])
        rows = candidate.transform(records.X)
        y = records.targets(rows)
        n = method.question.shape.n_samples
        problem.progress.step(f"{method.name} on {n} {problem.adjacency.unit}s")
        if isinstance(method, Static):
            index, model, found = fit_once(problem, rows, y)
        else:
            reduction, losses_of = reduced(problem, rows, y)
            charge.begin()
            index, model, found = walk(problem, reduction, losses_of)
        fails = not found["reached_"] and problem.search.on_failure == "raise"
        values = found | {
            "estimator": None if fails else candidate.with_steps(model),
            "best_index_": index,
        }
        return Released([model.privacy_], problem, records, values)


def ask(problem, candidate, split):
    """Return the Question of a search to the models of a candidate."""
    search, score = problem.search, problem.score
    n_features = candidate.n_features
    goal = goal_of(score, search.target)
    shape = PublicShape(
        problem.n_samples if split is None else len(split[0]),
        n_features,
        candidate.n_problems,
        candidate.persons,
    )
    _, epsilons = epsilon_grid(search.estimator, search.param_grid)
    model = candidate.model
    if goal:
        model = with_public_alpha(model, shape, epsilons, SLACK * abs(goal.target))
    form = model.accuracy_form()
    # a number where "auto" would have served
    written = goal is not None and form.alpha_by_rule and model is candidate.model
    check_target(search.target, form, search.criterion)
    absolute = goal is not None or search.criterion != "excess_risk"
    if goal:
        target, sensitivity = goal.target, goal.sensitivity(form, n_features, len(split[1]))
    else:
        bounds, target = form.bounds(shape), float(search.target)
        sensitivity = bounds.risk if absolute else bounds.excess
    # tests with longer noise than the smallest epsilon has would save nothing
    slack = SLACK * abs(target) if absolute else target
    return Question(
        epsilons=epsilons,
        absolute=absolute,
        target=target,
        slack=min(slack, sensitivity / SMALLEST_EPSILON),
        sensitivity=sensitivity,
        failure_probability=float(search.failure_probability),
        delta=float(search.delta),
        form=form,
        shape=shape,
        goal=goal,
        alpha=form.alpha if written else None,
    )


def fit_once(problem, X, y):
    """Fit the model of a static method, whose epsilon is known."""
    method = problem.decided.method
    epsilons = method.question.epsilons
    index = len(epsilons) - 1 if method.level is None else method.level
    state = release_state(problem.stream, problem.seeded)
    model = fit_for_release(clone(method.model), epsilons[index], state, X, y)
    return index, model, {"reached_": method.level is not None, "path_": {}}


def reduced(problem, X, y):
    """Return the models that can be read at one level after the other, and their exact losses."""
    question, split = problem.decided.method.question, problem.decided.split
    goal = question.goal
    train, test = (X, y), None
    if split is not None:
        train, test = (take_part(X, y, part) for part in split)
    levels = question.levels(problem.decided.method.how)
    reduction = question.form.reduction(*train, levels, problem.stream.child("generating"))

    def exact_losses(models):
        if goal:
            fitted = [reduction.publish(model, question.epsilons[-1]) for model in models]
            return [goal.loss(model, *test) for model in fitted]
        return reduction.excesses(models) if not question.absolute else reduction.risks(models)

    return reduction, exact_losses


def walk(problem, reduction, exact_losses):
    """Read models until a test accepts one."""
    method, split = problem.decided.method, problem.decided.split
    question, goal = method.question, method.question.goal
    outcome = method.run(reduction, exact_losses, problem.stream.child("testing"))
    path = {
        "epsilon": np.array(outcome.epsilons),
        "model": np.array(outcome.models),
        "tested": np.array(outcome.tested, dtype=int),
        "answer": goal.answers(np.array(outcome.answers)) if goal else np.array(outcome.answers),
    }
    index = int(np.searchsorted(question.epsilons, outcome.epsilons[-1]))
    model = reduction.publish(outcome.models[-1], outcome.epsilons[-1])
    model.privacy_ = outcome_loss(method, outcome, split is not None, problem.seeded)
    return index, model, {"reached_": bool(outcome.accepted), "path_": path}

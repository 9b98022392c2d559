"""The plan of a search, from its problem before any data."""

from dataclasses import replace
from functools import partial

from .engine import price, upper_bound
from .plan import with_steps
from .plan_advice import with_advice
from .set_aside import with_forecast
from .stages import ignored_scoring
from .strategies import compare_strategies, strategy_class


def plan_of(given, class_share=None):
    """Return the SelectionPlan of a problem before all stages; a class may have a public share."""
    search = given.search
    (priced,) = price(search.stages, given)
    problem, strategy = priced.problem, priced.problem.decided
    n_held = given.n_samples - problem.n_samples
    strategy.dry_run()
    plan = with_steps(strategy.plan(), problem.budget)
    if n_held:
        model = problem.candidates[0].model
        held = n_held, problem.budget.total, given.persons, class_share
        plan = with_forecast(plan, model, len(given.classes), *held)
    return replace(
        with_advice(plan, strategy.problem.candidates, class_share),
        delta=upper_bound([priced], type(search).__name__).delta,
        messages=(*plan.messages, *ignored_scoring(search, strategy), *problem.messages),
        _compare=partial(compare_strategies, strategy.problem, strategy_class(search.strategy)),
    )

"""Strategies of a private search: how a candidate is chosen, and what that costs."""

from ...utils.validation import check_choice
from ..plan import PlannedStrategy
from .auto import Auto
from .data_free import Random
from .data_independent import DataIndependent
from .held_out import BudgetSplit, Control, DataSplit
from .optimal_risk import OptimalRisk
from .random_stopping import RandomStopping
from .stability import Stability
from .strategy import Choice, Problem, Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    strategy.name: strategy
    for strategy in (
        Auto,
        DataIndependent,
        OptimalRisk,
        Stability,
        BudgetSplit,
        DataSplit,
        RandomStopping,
        Random,
        Control,
    )
}


def strategy_class(strategy):
    """Return the class of a strategy, which is given itself, or by a name that is known here."""
    if isinstance(strategy, type) and issubclass(strategy, Strategy) and strategy is not Strategy:
        return strategy
    why = "only these are known by name, and it is no subclass of dpselect.model_selection.Strategy"
    return STRATEGIES[check_choice("strategy", strategy, tuple(STRATEGIES), why=why)]


def compare_strategies(problem, asked):
    """Return a PlannedStrategy for each of `STRATEGIES` but Auto, which takes one, and for `asked`."""
    kinds = dict.fromkeys([*STRATEGIES.values(), asked])
    return tuple(_planned(kind, problem) for kind in kinds if kind is not Auto)


def _planned(kind, problem):
    try:
        strategy = kind.of(problem)
        strategy.dry_run()
        plan = strategy.plan()
    except ValueError as refusal:  # CertificateError is one
        return PlannedStrategy(kind.name, refusal=str(refusal))
    return PlannedStrategy(
        kind.name,
        plan.training_epsilon,
        plan.training_size,
        plan.selection_epsilon,
        plan.minimum_detectable_difference,
        plan.stake,
    )


__all__ = ["STRATEGIES", "Choice", "Problem", "Strategy", "compare_strategies", "strategy_class"]

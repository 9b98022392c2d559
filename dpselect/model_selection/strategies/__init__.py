"""Strategies of a private search: how a candidate is chosen, and what that costs."""

from . import post_processing
from .auto import Auto
from .base import Choice, Problem, Strategy
from .data_free import Random
from .data_independent import DataIndependent
from .held_out import BudgetSplit, Control, DataSplit
from .optimal_risk import OptimalRisk
from .post_processing import PostProcessing
from .random_stopping import RandomStopping
from .stability import Stability

STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Auto, DataIndependent, OptimalRisk, Stability, BudgetSplit, DataSplit, RandomStopping, Random,
        Control,
    )
}


def make_strategy(name, problem):
    """Set up a strategy.

    Parameters
    ----------
    name : str
        A key of `STRATEGIES`.
    problem : Problem

    Returns
    -------
    Strategy
        "stability" reads one release where a grid only post-processes it.
    """
    if name == "stability" and post_processing.applies(problem.candidates):
        return PostProcessing(problem)
    return STRATEGIES[name](problem)


__all__ = ["STRATEGIES", "Choice", "Problem", "Strategy", "make_strategy"]

"""Strategies of a private search: how a candidate is chosen, and what that costs."""

from . import reading
from .auto import Auto
from .base import Choice, Problem, Strategy
from .data_free import Random
from .held_out import AlphaSplit, Control, DataSplit
from .public_rule import PublicRule
from .random_stopping import RandomStopping
from .reading import Reading
from .risk_bound import RiskBound
from .stability import Stability

STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Auto, PublicRule, RiskBound, Stability, AlphaSplit, DataSplit, RandomStopping, Random, Control,
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
    if name == "stability" and reading.applies(problem.candidates):
        return Reading(problem)
    return STRATEGIES[name](problem)


__all__ = ["STRATEGIES", "Choice", "Problem", "Strategy", "make_strategy"]

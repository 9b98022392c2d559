"""What every strategy would spend on one search, side by side, before any data."""

from .plan import PlannedStrategy
from .strategies import STRATEGIES, make_strategy


def compare_strategies(problem):
    """Plan a search by each strategy.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    tuple of PlannedStrategy
        In the order of `STRATEGIES`, without "auto", which takes one of them.
    """
    return tuple(_planned(name, problem) for name in STRATEGIES if name != "auto")


def _planned(name, problem):
    try:
        # strategies set the budgets of candidates, so each has its own
        strategy = make_strategy(name, problem.restricted(range(len(problem.candidates))))
        strategy.dry_run()
        plan = strategy.plan()
    except ValueError as refusal:  # CertificateError is one
        return PlannedStrategy(name, refusal=str(refusal))
    return PlannedStrategy(
        name, plan.training_epsilon, plan.training_size, plan.selection_epsilon,
        plan.minimum_detectable_difference, plan.stake,
    )

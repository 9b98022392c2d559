"""The parameters of an accuracy-first search, checked before any data is touched."""

import math

import numpy as np
from sklearn.pipeline import Pipeline

from ...metrics import AtLeastScore, get_score
from ...utils.validation import SMALLEST_BOUND, SMALLEST_EPSILON, check_choice, check_number
from ..budget import steps_at_most
from ..private_steps import last_step
from ..search_checks import check_what_all_searches_have
from .methods import METHODS

RISKS = ("excess_risk", "risk")


def check_parameters(search):
    """Refuse parameters under which the search would not keep its promises."""
    check_what_all_searches_have(search)
    check_choice("method", search.method, ("auto", *METHODS), why="only these have a proof here")
    if not is_risk(search.criterion):
        score = get_score(search.criterion, "criterion", RISKS, last_step(search.estimator))
        if isinstance(score, AtLeastScore):
            check_number(
                "target",
                search.target,
                high=1.0,
                why=f"the score of criterion={search.criterion!r} is asked to be at least that",
                instead="write a number between 0 and 1, such as 0.8",
            )
    elif search.cv is not None:
        raise ValueError(
            f"cv={search.cv!r} has no effect with criterion={search.criterion!r}, whose risk is that of "
            "all records; leave it out, or name a score as the criterion."
        )
    check_number(
        "target",
        search.target,
        low=-np.inf,
        why="it is what the criterion may be at most, or at least",
        instead="write a number, such as 0.05",
    )
    if 0 < abs(search.target) < SMALLEST_BOUND:
        raise ValueError(
            f"target={search.target!r} is nearer to 0 than {SMALLEST_BOUND}, and no noise of a test is "
            "as short; write a larger number, such as 0.05."
        )
    check_number(
        "failure_probability",
        search.failure_probability,
        low=1e-6,
        low_included=True,
        high=1.0,
        why="it is the probability with which a model above the target may be accepted",
        instead="write a number from 1e-6 to less than 1, such as 0.1",
    )
    check_number(
        "delta",
        search.delta,
        low_included=True,
        high=1.0,
        why="it is the probability with which the loss may exceed its bound",
        instead="write 0.0, or a number such as 1e-6 for method='brownian'",
    )
    if not (isinstance(search.max_epsilon, str) and search.max_epsilon == "auto"):
        check_number(
            "max_epsilon",
            search.max_epsilon,
            high=np.inf,
            high_included=True,
            why="it is the most that the search may spend",
            instead='write a number greater than 0, such as 1.0, or "auto"',
        )
    check_choice(
        "on_failure",
        search.on_failure,
        ("raise", "last"),
        why="a model without noise would have no finite privacy loss",
    )


def check_steps_afforded(estimator, max_epsilon):
    """Refuse private steps that leave nothing of `max_epsilon` for the model."""
    if isinstance(max_epsilon, str):
        return
    steps = steps_at_most(estimator)
    asked = math.fsum(step.epsilon for step in steps)
    if asked and not asked < max_epsilon:
        names = ", ".join(f"{step.epsilon:.6g} for {step.label}" for step in steps)
        raise ValueError(
            f"max_epsilon={max_epsilon!r} is the most that all of the search may spend, and the "
            f"steps that learn privately ask for {names}, which leaves nothing for the model; write "
            f"more than {asked:.6g}, or give the steps less."
        )


def is_risk(criterion):
    """Return whether a criterion is the estimator's own risk, and not a score."""
    return isinstance(criterion, str) and criterion in RISKS


def check_target(target, form, criterion):
    """Refuse a target that no model can meet; some risks may be negative, others not."""
    negative = not form.nonnegative and criterion != "excess_risk"
    if target == 0 and negative:
        raise ValueError(
            "target=0 allows no noise in the tests, whose noise is a share of the target; "
            "write a number other than 0, such as -0.01."
        )
    if target <= 0 and not negative:
        raise ValueError(
            f"target={target!r} cannot be met with certainty by any model with noise; write a number "
            "greater than 0, such as 0.05."
        )


def epsilon_grid(estimator, param_grid):
    """Return the name of the epsilon in the grid, and its values as an increasing array."""
    name = "epsilon"
    if isinstance(estimator, Pipeline):
        name = f"{estimator.steps[-1][0]}__epsilon"
    if not isinstance(param_grid, dict) or list(param_grid) != [name]:
        raise ValueError(
            f"param_grid must have the one key {name!r}, because an accuracy-first search chooses "
            f"nothing but the privacy loss of the model; write {{{name!r}: [0.01, 0.1, 1.0]}}."
        )
    try:
        values = np.asarray(param_grid[name])
    except ValueError:  # lists of different lengths
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iuf":
        raise ValueError(
            f"param_grid[{name!r}] must list at least one number, and nothing but numbers; write for "
            "instance numpy.geomspace(0.01, 10, 100)."
        )
    epsilons = values.astype(np.float64)
    if not (epsilons >= SMALLEST_EPSILON).all() or not np.isfinite(epsilons).all():
        raise ValueError(
            f"param_grid[{name!r}] holds a value that is no finite number of at least "
            f"{SMALLEST_EPSILON}, and no noise has such a privacy loss; write for instance "
            "numpy.geomspace(0.01, 10, 100)."
        )
    if not (np.diff(epsilons) > 0).all():
        raise ValueError(
            f"param_grid[{name!r}] does not increase, but the search goes from the most private "
            "model to the least private one and stops; sort it, each value once."
        )
    return name, epsilons

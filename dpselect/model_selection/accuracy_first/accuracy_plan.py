"""Plans of accuracy-first searches, from public numbers alone."""

import math
from dataclasses import dataclass, replace
from typing import Any

from ...accounting.privacy_loss import KINDS, PrivacyLoss
from ...exceptions import CertificateError
from ...utils.validation import check_number
from ..plan import plain
from .goals import Goal, slack_told
from .limit import TIMES_EXPECTED
from .methods import METHODS, Static


@dataclass(frozen=True)
class MethodPlan:
    """Expected price of one method.

    Attributes
    ----------
    method : str
    kind : str
        "differential privacy" if the loss is known in advance, or "ex-post".
    generating, testing : float
        Privacy losses of the models, and of the tests. For "ex-post" they are forecasts. ``inf`` if
        no level of the grid is enough, or the method does not serve.
    total : float
        What the search is expected to pay, private steps of a Pipeline included.
    most : float
        What it can pay at most, on any records; the ledger is asked for it. As a whole the search
        is differentially private for this epsilon. 0 if nothing would be released.
    expected_to_reach : bool
        Whether a level of the grid that it may read is known, or forecast, to reach the target. If not,
        `total` is what a search costs that most likely finds no model.
    reason : str
        Why the method does not serve; empty if it does.
    """

    method: str
    kind: str
    generating: float
    testing: float
    total: float
    most: float
    expected_to_reach: bool = False
    reason: str = ""


@dataclass(frozen=True)
class AccuracyPlan:
    """The plan of an accuracy-first search.

    Parameters
    ----------
    method : str
        The one that is used: the cheapest of those that are expected to reach the target; where none is,
        the cheapest of all.
    methods : tuple of MethodPlan
        All of them; only the one that is used, if it was named.
    at_most : PrivacyLoss
        The largest loss of any outcome of the method that is used, private steps included.
    last_epsilon : float
        The last level of the grid that it may read, so that `at_most` is within `max_epsilon`.
    sensitivity : float
        How far one record moves the loss that is tested.
    messages : tuple of str
        The same in words.
    """

    method: str
    methods: tuple[MethodPlan, ...]
    at_most: PrivacyLoss
    last_epsilon: float
    sensitivity: float
    messages: tuple[str, ...]

    @property
    def chosen(self) -> MethodPlan:
        """MethodPlan : That of the method that is used."""
        return next(plan for plan in self.methods if plan.method == self.method)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            The attributes by their names; `methods` is a list of such dicts, and of `at_most` there are
            "epsilon", "delta", "kind" and "adjacency". Infinite numbers are "inf".
        """
        kept = ("epsilon", "delta", "kind", "adjacency")
        return {
            "method": self.method,
            "methods": [
                {name: plain(value) for name, value in vars(planned).items()} for planned in self.methods
            ],
            "at_most": {name: plain(getattr(self.at_most, name)) for name in kept},
            "last_epsilon": plain(self.last_epsilon),
            "sensitivity": plain(self.sensitivity),
            "messages": list(self.messages),
        }

    def __str__(self):
        names = "".join(f"{name:>12}" for name in ("generating", "testing", "total", "at most"))
        lines = [f"{'method':26}{names}  expected to reach  kind of the loss"]
        refused = {}
        for plan in sorted(self.methods, key=_order):
            if plan.reason:
                refused.setdefault(plan.reason, []).append(plan.method)
                continue
            numbers = (plan.generating, plan.testing, plan.total, plan.most)
            columns = "".join(f"{number:>12.4g}" for number in numbers)
            reaches = "yes" if plan.expected_to_reach else "no"
            lines.append(f"{plan.method:26}{columns}  {reaches:17}  {plan.kind}")
        lines += [f"No plan for {', '.join(names)}: {why}" for why, names in refused.items()]
        return "\n".join([*lines, *self.messages])


def _order(plan):
    # a search that is expected to fail is no cheap one
    return not plan.expected_to_reach, plan.total


def make_plan(question, method, limit):
    """Return the AccuracyPlan and the method of this name, or for "auto" the cheapest of all."""
    kinds = (
        [METHODS[method]]
        if method != "auto"
        else [kind for kind in METHODS.values() if not kind.for_comparison]
    )
    plans, setups, leasts = [], {}, {}
    for kind in kinds:
        name, numbers, reaches, reason = kind.name, [math.inf] * 4, False, ""
        try:
            setup = limit.within(kind, question)
            if setup is None:
                leasts[name] = limit.least(kind, question)
                reason = (
                    f"max_epsilon={limit.max_epsilon:.6g} is too little, as the first level and its "
                    f"test can cost {leasts[name]:.6g}"
                )
            else:
                setups[name], most = setup, limit.at_most(setup).epsilon
                numbers = [setup.generating, setup.testing, limit.expected(setup), most]
                reaches = setup.enough
        except CertificateError as error:
            if method != "auto":
                raise
            reason = str(error)
        kind_of_loss = KINDS[not issubclass(kind, Static)]
        plans.append(MethodPlan(name, kind_of_loss, *numbers, bool(reaches), reason))
    if not setups:
        name, least = min(leasts.items(), key=lambda item: item[1])
        raise ValueError(
            f"max_epsilon={limit.max_epsilon!r} is less than what a search of "
            f"{question.shape.n_samples} records can cost at the first level of param_grid, so its loss "
            f"could not be kept within it; write {least * (1 + 1e-5):.6g} or more for method={name!r}, "
            "the cheapest."
        )
    best = min((plan for plan in plans if plan.method in setups), key=_order)
    setup = setups[best.method]
    plan = AccuracyPlan(
        best.method,
        tuple(plans),
        limit.at_most(setup),
        float(setup.question.epsilons[-1]),
        question.sensitivity,
        _messages(question, setup, best, plans, limit),
    )
    return plan, setup


def _messages(question, setup, best, plans, limit):
    n, last = question.shape.n_samples, setup.question.epsilons[-1]
    choice = _choice(best, plans)
    said = []
    if best.kind == "ex-post":
        said.append(
            f"{choice}; it is expected to cost about epsilon={best.total:.4g}, and can cost "
            f"epsilon={best.most:.4g} at most; what it did cost is in privacy_."
        )
    elif setup.enough:
        said.append(f"{choice}; it costs epsilon={best.total:.4g}, known before the data is touched.")
    delta = limit.at_most(setup).delta
    if delta:
        fresh = best.kind == "ex-post" and setup.how == "fresh"
        why = ", as each model that is tried can cost the delta of the model" if fresh else ""
        said.append(f"It can cost delta={delta:.4g} at most{why}.")
    if not setup.enough:
        said.append(
            f"No epsilon up to {last:.4g} is {'forecast' if best.kind == 'ex-post' else 'known'} to be "
            f"enough for n_samples={n}; a larger grid, target, max_epsilon or n_samples would be."
        )
        if best.kind != "ex-post" and best.most:
            said.append(
                f"on_failure='last' releases the last model all the same, for epsilon={best.most:.4g}."
            )
    if last < question.epsilons[-1]:
        within = (
            f"{TIMES_EXPECTED} times what is expected"
            if limit.max_epsilon is None
            else f"max_epsilon={limit.max_epsilon:.6g}"
        )
        said.append(f"No epsilon above {last:.4g} is tried, as the total could then exceed {within}.")
    if limit.steps and best.most:
        shares = ", ".join(f"{step.epsilon:.4g} for {step.label}" for step in limit.steps)
        said.append(f"Both include what is released before them: {shares}.")
    if question.alpha is not None:
        said.append(
            f"alpha={question.alpha:.6g} was written: a larger one makes every forecast smaller and the "
            'models worse, so compare no plans that differ in it; alpha="auto" costs nothing.'
        )
    if question.absolute:
        goal, slack = question.goal, question.slack
        said.append(slack_told(question.target, slack) if goal is None else goal.told(slack))
    return tuple(said)


def _choice(best, plans):
    if len(plans) == 1:
        reaches = "" if best.expected_to_reach else " and is not expected to reach the target"
        return f"The method is {best.method}{reaches}"
    if not best.expected_to_reach:
        return f"No method is expected to reach the target; the cheapest method is {best.method}"
    if best.total > min(plan.total for plan in plans):
        return f"The cheapest method that is expected to reach the target is {best.method}"
    return f"The cheapest method is {best.method}"


def with_reachable(plan, question, target, reachable):
    """Return a plan that knows what models reach without privacy.

    Where that is worse than what a model has to reach to be found, no method is expected to find one.

    Raises
    ------
    TypeError, ValueError
        If it is no number, or the target is a distance from the least risk, which a model without
        privacy has.
    """
    check_number(
        "reachable",
        reachable,
        low=-math.inf,
        why="it is what models reach without privacy",
        instead="write a number in units of target, or None",
    )
    if not question.absolute:
        raise ValueError(
            f"reachable={reachable!r} is what models reach without privacy, and target={target!r} of "
            "the excess risk is a distance from that; leave it out, or give another criterion."
        )
    goal = question.goal or Goal(None, target)
    if goal.is_reachable(reachable, question.slack):
        return plan
    message = (
        f"Models are said to reach {reachable:.4g} without privacy, which is worse than what one has to "
        "reach here to be found: a search would most likely spend this much and find none; write an "
        f"easier target than {target:.4g}."
    )
    return replace(
        plan,
        methods=tuple([replace(method, expected_to_reach=False) for method in plan.methods]),
        messages=(message, *plan.messages),
    )

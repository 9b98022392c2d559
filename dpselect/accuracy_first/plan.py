"""What an accuracy-first search will pay, from public numbers alone."""

import math
from dataclasses import dataclass
from typing import Any

from ..exceptions import CertificateError
from ..model_selection.plan import plain
from ..privacy import KINDS, PrivacyLoss
from .goals import slack_told
from .limit import TIMES_EXPECTED
from .methods import METHODS, Static


@dataclass(frozen=True)
class MethodPlan:
    """What one method is expected to pay.

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
    reason : str
        Why the method does not serve; empty if it does.
    """

    method: str
    kind: str
    generating: float
    testing: float
    total: float
    most: float
    reason: str = ""


@dataclass(frozen=True)
class AccuracyPlan:
    """The plan of an accuracy-first search.

    Attributes
    ----------
    method : str
        The one that is used.
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
        lines = [f"{'method':26}{names}  kind of the loss"]
        refused = {}
        for plan in sorted(self.methods, key=lambda plan: plan.total):
            if plan.reason:
                refused.setdefault(plan.reason, []).append(plan.method)
                continue
            numbers = (plan.generating, plan.testing, plan.total, plan.most)
            columns = "".join(f"{number:>12.4g}" for number in numbers)
            lines.append(f"{plan.method:26}{columns}  {plan.kind}")
        lines += [f"No plan for {', '.join(names)}: {why}" for why, names in refused.items()]
        return "\n".join([*lines, *self.messages])


def make_plan(question, method, limit):
    """Return the AccuracyPlan and the method of this name, or for "auto" the cheapest of all."""
    kinds = [METHODS[method]] if method != "auto" else [
        kind for kind in METHODS.values() if not kind.for_comparison
    ]
    plans, setups, leasts = [], {}, {}
    for kind in kinds:
        name, numbers, reason = kind.name, [math.inf] * 4, ""
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
        except CertificateError as error:
            if method != "auto":
                raise
            reason = str(error)
        plans.append(MethodPlan(name, KINDS[not issubclass(kind, Static)], *numbers, reason))
    if not setups:
        name, least = min(leasts.items(), key=lambda item: item[1])
        raise ValueError(
            f"max_epsilon={limit.max_epsilon!r} is less than what a search of "
            f"{question.shape.n_samples} records can cost at the first level of param_grid, so its loss "
            f"could not be kept within it; write {least * (1 + 1e-5):.6g} or more for method={name!r}, "
            "the cheapest."
        )
    best = min(
        (plan for plan in plans if plan.method in setups),
        key=lambda plan: (not setups[plan.method].enough, plan.total),
    )
    setup = setups[best.method]
    plan = AccuracyPlan(
        best.method, tuple(plans), limit.at_most(setup), float(setup.question.epsilons[-1]),
        question.sensitivity, _messages(question, setup, best, len(plans), limit),
    )
    return plan, setup


def _messages(question, setup, best, n_methods, limit):
    n, last = question.shape.n_samples, setup.question.epsilons[-1]
    choice = "the least of the methods that serve" if n_methods > 1 else "the method asked for"
    said = []
    if best.kind == "ex-post":
        said.append(
            f"{best.method}, {choice}, is expected to pay about epsilon={best.total:.4g}, and can pay "
            f"epsilon={best.most:.4g} at most; what it did pay is in privacy_."
        )
    elif setup.enough:
        said.append(
            f"{best.method}, {choice}, pays epsilon={best.total:.4g}, known before the data is touched."
        )
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
            f"{TIMES_EXPECTED} times what is expected" if limit.max_epsilon is None
            else f"max_epsilon={limit.max_epsilon:.6g}"
        )
        said.append(
            f"No epsilon above {last:.4g} is tried, as the total could then exceed {within}."
        )
    if limit.steps and best.most:
        shares = ", ".join(f"{step.epsilon:.4g} for {step.label}" for step in limit.steps)
        said.append(f"Steps that learn privately have their part in both: {shares}.")
    if question.absolute:
        goal, slack = question.goal, question.slack
        said.append(slack_told(question.target, slack) if goal is None else goal.told(slack))
    return tuple(said)

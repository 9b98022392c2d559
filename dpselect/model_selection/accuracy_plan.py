"""What an accuracy-first search will pay, from public numbers alone."""

import math
from dataclasses import dataclass

from ..exceptions import CertificateError
from .accuracy_methods import METHODS, Static


@dataclass(frozen=True)
class MethodPlan:
    """What one method is expected to pay.

    Attributes
    ----------
    method : str
    kind : str
        "differential privacy" if the loss is known in advance, or "ex-post".
    generating, testing, total : float
        Privacy losses: of the models, of the tests, and of both. For "ex-post" they are
        forecasts. ``inf`` if no level of the grid is enough, or the method does not serve.
    reason : str
        Why the method does not serve; empty if it does.
    """

    method: str
    kind: str
    generating: float
    testing: float
    total: float
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
    sensitivity : float
        How far one record moves the loss that is tested.
    messages : tuple of str
        The same in words.
    """

    method: str
    methods: tuple[MethodPlan, ...]
    sensitivity: float
    messages: tuple[str, ...]

    @property
    def chosen(self) -> MethodPlan:
        """MethodPlan : That of the method that is used."""
        return next(plan for plan in self.methods if plan.method == self.method)

    def __str__(self):
        head = f"{'method':26}{'generating':>12}{'testing':>12}{'total':>12}  kind of the loss"
        lines = [head]
        for plan in sorted(self.methods, key=lambda plan: plan.total):
            numbers = "".join(
                f"{value:>12.4g}" for value in (plan.generating, plan.testing, plan.total)
            )
            lines.append(f"{plan.method:26}{numbers}  {plan.reason or plan.kind}")
        return "\n".join([*lines, *self.messages])


def make_plan(question, method, disjoint):
    """Set up a method, or the cheapest of all.

    Parameters
    ----------
    question : Question
    method : str
        A name, or "auto".
    disjoint : bool
        Whether models and tests read different records: then the larger loss counts.

    Returns
    -------
    plan : AccuracyPlan
    setup : Method

    Raises
    ------
    CertificateError
        If the method that was named does not serve.
    """
    if method == "auto":
        # the published constants and the expected excess are there for comparison
        names = [n for n in METHODS if n not in ("published_above_threshold", "theory")]
    else:
        names = [method]
    plans, setups = [], {}
    for name in names:
        kind = "differential privacy" if issubclass(METHODS[name], Static) else "ex-post"
        try:
            setup = METHODS[name](question)
        except CertificateError as error:
            if method != "auto":
                raise
            plans.append(MethodPlan(name, kind, math.inf, math.inf, math.inf, str(error)))
            continue
        setups[name] = setup
        parts = setup.generating, setup.testing
        plans.append(MethodPlan(name, kind, *parts, max(parts) if disjoint else sum(parts)))
    best = min(plans, key=lambda plan: plan.total)
    if best.method not in setups:
        best = next(plan for plan in plans if plan.method in setups)
    plan = AccuracyPlan(
        best.method, tuple(plans), question.sensitivity, _messages(question, best, len(plans))
    )
    return plan, setups[best.method]


def _messages(question, best, n_methods):
    n = question.shape[0]
    if best.total == math.inf:
        return (
            f"No epsilon up to {question.epsilons[-1]:.4g} is known to be enough for "
            f"n_samples={n}; a larger grid, target or n_samples would be.",
        )
    choice = "the least of the methods that serve" if n_methods > 1 else "the method asked for"
    if best.kind == "ex-post":
        what = f"is expected to pay about epsilon={best.total:.4g}; what it did pay is in privacy_."
    else:
        what = f"pays epsilon={best.total:.4g}, known before the data is touched."
    said = [f"{best.method}, {choice}, {what}"]
    if question.absolute:
        said.append(
            f"The noise of the tests may take {question.slack:.3g} of the target: only where models "
            f"reach {question.target - question.slack:.4g} can one be counted on to be found."
        )
    return tuple(said)

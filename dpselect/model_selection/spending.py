"""What a search may spend, before any data: shares of its epsilon, and what a ledger reserves."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sklearn.pipeline import Pipeline

from ..preprocessing.pipeline_check import private_parts
from ..privacy import PrivacyLoss
from ..validation import SMALLEST_EPSILON, check_epsilon


@dataclass(frozen=True)
class Shares:
    """How a search divides its epsilon between private steps, and the choice and the model.

    Attributes
    ----------
    total : float
        The epsilon of the search.
    steps : tuple of PrivacyLoss
        What each step that learns privately asks for.
    rest : float
        What is left for the choice and the model. With the steps' epsilons it adds up to no more
        than `total`, in one sum that is rounded once, as PrivacyLoss adds.
    """

    total: float
    steps: tuple[PrivacyLoss, ...]
    rest: float

    @property
    def steps_epsilon(self):
        """The epsilon of all steps."""
        return math.fsum(loss.epsilon for loss in self.steps)

    @property
    def messages(self):
        """What the shares are, in words; nothing if there are no private steps."""
        if not self.steps:
            return ()
        return (
            f"{_listed(self.steps)} takes {self.steps_epsilon:.4g} of epsilon "
            f"{self.total:.4g}; what else is said here is about the other {self.rest:.4g}, for the "
            "choice and the model.",
        )


def divide(epsilon, estimator):
    """Return the shares of a search's epsilon, or refuse what leaves nothing for the model.

    Parameters
    ----------
    epsilon : float
        Of the whole search; finite.
    estimator : estimator
        A Pipeline, or a model without steps.

    Returns
    -------
    Shares

    Raises
    ------
    ValueError
        If the private steps ask for all of `epsilon`, or more.
    """
    total, steps = float(epsilon), tuple(steps_at_most(estimator))
    if not steps:
        return Shares(total, steps, total)
    asked = math.fsum(loss.epsilon for loss in steps)
    if not total - asked >= SMALLEST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon} is the loss of the whole search, and its private steps ask for "
            f"{asked:.6g} ({_listed(steps)}), which leaves nothing for the choice and the "
            "model; write a larger epsilon, or smaller ones for the steps."
        )
    taken = sum(Fraction(loss.epsilon) for loss in steps)
    rest = float(Fraction(total) - taken)
    while float(taken + Fraction(rest)) > total:
        rest = math.nextafter(rest, 0.0)
    return Shares(total, steps, rest)


def steps_at_most(estimator):
    """Return the losses of the steps that learn privately.

    Parameters
    ----------
    estimator : estimator
        A Pipeline, or a model without steps.

    Returns
    -------
    list of PrivacyLoss
        A part without a parameter `epsilon` has an unknown loss: ``inf``.
    """
    if not isinstance(estimator, Pipeline):
        return []
    return [
        PrivacyLoss(
            check_epsilon(getattr(part, "epsilon", math.inf), f"epsilon of {type(part).__name__}"),
            float(getattr(part, "delta", 0.0)), label=type(part).__name__,
        )
        for _, step in estimator.steps[:-1]
        if step is not None and not isinstance(step, str)
        for part in private_parts(step)
    ]


def _listed(losses):
    return ", ".join(f"{loss.label} {loss.epsilon:.6g}" for loss in losses)

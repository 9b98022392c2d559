"""What a search may spend, before any data: shares of its epsilon, and what a ledger reserves."""

import math
from dataclasses import dataclass, replace

from ..capabilities import Calibrated
from ..events import ChoiceEvent, event_of_fit, worst_event
from ..exceptions import CertificateError
from ..preprocessing.pipeline_check import private_parts
from ..privacy import Adjacency, PrivacyLoss, remainder
from ..validation import SMALLEST_EPSILON, check_epsilon
from .candidates import parameters
from .private_steps import steps_before


@dataclass(frozen=True)
class Shares:
    """How a search divides its epsilon between private steps, and the choice and the model.

    `total` is that of the search, `steps` what each private step asks for and what is learned first,
    and `rest` what is left. With the steps' epsilons it adds up to no more than `total`, in one sum that
    is rounded once, as PrivacyLoss adds.
    """

    total: float
    steps: tuple[PrivacyLoss, ...]
    rest: float

    def less(self, losses):
        """Return the Shares after more private steps."""
        steps = (*self.steps, *losses)
        return Shares(self.total, steps, remainder(self.total, [loss.epsilon for loss in steps]))

    @property
    def steps_epsilon(self):
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


def divide(epsilon, estimator, adjacency=Adjacency.REPLACE_RECORD):
    """Return the Shares of a search's epsilon, or refuse what leaves nothing for the model."""
    total, steps = float(epsilon), tuple(steps_at_most(estimator, adjacency))
    if not steps:
        return Shares(total, steps, total)
    asked = math.fsum(loss.epsilon for loss in steps)
    if not total - asked >= SMALLEST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon} is the loss of the whole search, and its private steps ask for "
            f"{asked:.6g} ({_listed(steps)}), which leaves nothing for the choice and the "
            "model; write a larger epsilon, or smaller ones for the steps."
        )
    return Shares(total, steps, remainder(total, [loss.epsilon for loss in steps]))


def steps_at_most(estimator, adjacency=Adjacency.REPLACE_RECORD):
    """Return the losses of the steps that learn privately; inf for one without a parameter `epsilon`."""
    return [
        PrivacyLoss(
            check_epsilon(getattr(part, "epsilon", math.inf), f"epsilon of {type(part).__name__}"),
            float(getattr(part, "delta", 0.0)), label=type(part).__name__, adjacency=adjacency,
        )
        for _, step in steps_before(estimator) for part in private_parts(step)
    ]


def refuse_overspent(loss, most, way, charge):
    """Refuse to release what has cost more than was reserved; how much may depend on the records."""
    charge.begin()
    if loss.epsilon > most.epsilon or loss.delta > most.delta:
        raise CertificateError(
            f"{way} and its models have spent more than epsilon={most.epsilon:.6g} and "
            f"delta={most.delta:.6g}, which is what they stated and all that was reserved, so nothing "
            "is released and the reservation counts in full; let at_most() state the most, and take "
            "models that keep to their epsilon and delta."
        )


def _listed(losses):
    return ", ".join(f"{loss.label} {loss.epsilon:.6g}" for loss in losses)


def deltas_differ(candidates, n_samples, epsilon):
    """Tell whether the choice among candidates decides if a delta is used."""
    return len({_delta_used(candidate, n_samples, epsilon) for candidate in candidates}) > 1


def _delta_used(candidate, n_samples, epsilon):
    model = candidate.model
    if isinstance(model, Calibrated):
        return getattr(model.calibration(candidate.shape(n_samples), epsilon), "delta", None)
    return parameters(model).get("delta")


def fixed_event(candidates, n_samples, epsilon, learned):
    """Return the Event of whichever candidate is chosen; `learned` says if numbers of them were."""
    return worst_event([
        event_of_fit(candidate.model.calibration(candidate.shape(n_samples), epsilon), learned)
        if isinstance(candidate.model, Calibrated) else None
        for candidate in candidates
    ])


def with_fixed_event(loss, event=None):
    """Return a loss of which no event follows from records: that of a model is `event`."""
    if isinstance(loss.event, ChoiceEvent):
        return loss
    parts = tuple(map(with_fixed_event, loss.parts))
    return replace(loss, parts=parts, event=None if parts else event)


def without_events(loss):
    """Return what a loss states, and no more."""
    return replace(loss, composition="release", parts=(), event=None)


def unused_delta(spent, most):
    """Return what is missing to a delta of `most`: a delta that depends on the records is none."""
    missing = most - spent.delta
    while spent.delta + missing > most:
        missing = math.nextafter(missing, 0.0)
    return PrivacyLoss(
        0.0, missing, adjacency=spent.adjacency, label="delta of models that were not chosen",
        seeded=spent.seeded,
    )

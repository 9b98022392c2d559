"""What a search may spend, before any data: shares of its epsilon, and what a ledger reserves."""

import math
from dataclasses import dataclass, replace

from ..accounting.events import ChoiceEvent, event_of_fit, worst_event
from ..accounting.privacy_loss import Adjacency, PrivacyLoss, remainder
from ..base.capabilities import Calibrated
from ..exceptions import CertificateError
from ..preprocessing.pipeline_check import private_parts
from ..utils.validation import SMALLEST_EPSILON, check_epsilon
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
            (
                f"{_listed(self.steps)} takes {self.steps_epsilon:.4g} of epsilon "
                f"{self.total:.4g}; what else is said here is about the other {self.rest:.4g}, for the "
                "choice and the model."
            ),
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
            float(getattr(part, "delta", 0.0)),
            label=type(part).__name__,
            adjacency=adjacency,
        )
        for _, step in steps_before(estimator)
        for part in private_parts(step)
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


def loss_of_any_model(loss, candidates, n_samples, epsilon, learned):
    """Return the loss of the chosen model such that it holds for whichever candidate is chosen.

    The records decided which one it is, and with `learned` also numbers of all of them. So neither
    which mechanism a candidate has nor whether it uses its delta may decide what is stated.
    """
    delta, event = max(float(parameters(c.model).get("delta", 0.0)) for c in candidates), None
    if delta > 0:  # without one no mechanism is known by more than its epsilon
        calibrations = [
            candidate.model.calibration(candidate.shape(n_samples), epsilon)
            if isinstance(candidate.model, Calibrated)
            else None
            for candidate in candidates
        ]
        event = worst_event([event_of_fit(calibration, learned) for calibration in calibrations])
        if not learned:
            delta = max(
                float(getattr(calibration, "delta", parameters(candidate.model).get("delta", 0.0)))
                for candidate, calibration in zip(candidates, calibrations)
            )
    return replace(loss, delta=max(loss.delta, delta), event=event, composition="release", parts=())


def without_events_of_models(loss):
    """Return a loss without the events of models, which may follow from records; choices have theirs."""
    if isinstance(loss.event, ChoiceEvent):
        return loss
    return replace(loss, parts=tuple(map(without_events_of_models, loss.parts)), event=None)


def most_of(loss, most):
    """Return all that was reserved as the loss of a search, as one release without parts.

    Where the number of columns was learned, which parts there are follows from the records.
    """
    return replace(
        most,
        label=loss.label,
        kind=loss.kind,
        seeded=loss.seeded,
        composition="release",
        parts=(),
    )

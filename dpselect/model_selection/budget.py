"""The budget of a search, and losses that hold for whichever candidate is chosen."""

import math
from collections.abc import Iterable
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
class Budget:
    """Epsilon of a search; the only place that divides it, and rounds.

    Attributes
    ----------
    total : float
        Epsilon of the whole search.
    spent : tuple of PrivacyLoss
        What private steps ask for, and numbers that are learned first.
    """

    total: float
    spent: tuple[PrivacyLoss, ...] = ()

    @property
    def remaining(self) -> float:
        """Remaining epsilon: with the spent part it adds up to no more than the total, rounded once."""
        return remainder(self.total, [loss.epsilon for loss in self.spent]) if self.spent else self.total

    @property
    def steps_epsilon(self) -> float:
        """Spent epsilon."""
        return math.fsum(loss.epsilon for loss in self.spent)

    def spend(self, losses: Iterable[PrivacyLoss]) -> "Budget":
        """Return what is left after more losses, or refuse those that leave nothing for the model."""
        after = replace(self, spent=(*self.spent, *losses))
        if after.spent and not self.total - after.steps_epsilon >= SMALLEST_EPSILON:
            raise ValueError(
                f"epsilon={self.total!r} is the loss of the whole search, and what is released before "
                f"the choice asks for {after.steps_epsilon:.6g} ({_listed(after.spent)}), which leaves "
                "nothing for the choice and the model; write a larger epsilon, or smaller ones there."
            )
        return after

    @property
    def messages(self) -> tuple[str, ...]:
        """Description of how the budget is divided; empty if no part of it is spent."""
        if not self.spent:
            return ()
        return (
            (
                f"{_listed(self.spent)} takes {self.steps_epsilon:.4g} of epsilon "
                f"{self.total:.4g}; what else is said here is about the other {self.remaining:.4g}, for "
                "the choice and the model."
            ),
        )


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


def refuse_unbudgeted(most, epsilon):
    """Refuse stages that may spend more than a search has, unless they state that nothing is private."""
    if epsilon * (1 + 1e-9) < most.epsilon < math.inf:
        raise CertificateError(
            f"epsilon={epsilon:.6g} is all that the search may spend, and its stages may spend "
            f"{most.epsilon:.6g}; let each of them give its losses to problem.budget.spend(), before "
            "the stage that chooses."
        )


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

"""The loss of the releases of one fit: less than their sum, where their mechanisms are known.

The page "A budget for a whole team" has statement and proof.
"""

import math

import numpy as np

from .composition import (
    beside_choice,
    beside_gaussian,
    beside_pure,
    lower_hull,
    many_choices,
    places_of,
    stated_profile,
    two_sided,
)
from .events import ChoiceEvent, GaussianEvent, ObjectiveEvent
from .privacy_loss import KINDS, PrivacyLoss

# number of grid steps in the sum of the epsilons
N_STEPS = 2000


def jointly(losses, label):
    """Compose releases that were fixed beforehand, at the sum of their deltas."""
    added = PrivacyLoss.sequential(losses, label=label)
    if added.delta == 0 or added.epsilon in (0.0, math.inf) or added.kind != KINDS[0]:
        return added
    epsilon = _joint_epsilon(added_losses(added), added.epsilon, added.delta)
    return added if epsilon >= added.epsilon else PrivacyLoss.joint(losses, epsilon, label=label)


def _joint_epsilon(parts, largest, delta):
    """Return the least multiple of a step at which all together are private, or inf."""
    step = largest / N_STEPS
    choices, mu = many_choices([part.event for part in parts if isinstance(part.event, ChoiceEvent)])
    gaussian = [part.event.mu for part in parts if isinstance(part.event, GaussianEvent)]
    # one other event can start with its exact profile; the others count by their (epsilon, delta)
    known = [part for part in parts if isinstance(part.event, ObjectiveEvent)]
    stated = [part for part in parts if part.event is None]
    n_known = 0 if gaussian else 1
    known, stated = known[:n_known], stated + known[n_known:]
    left = delta - math.fsum(part.delta for part in stated)
    if not left > 0:
        return math.inf
    reach = N_STEPS + places_of(choices, mu, step)
    reach += sum(math.ceil(part.epsilon / step) for part in stated)
    epsilons = np.arange(reach + 1) * step
    deltas = np.zeros(reach + 1)  # the profile of no release
    if gaussian:
        deltas = GaussianEvent(math.hypot(*gaussian)).profile(epsilons)
    for part in known:
        deltas = np.minimum(
            part.event.profile(epsilons), stated_profile(part.epsilon, part.delta, epsilons)
        )
    deltas = two_sided(deltas, step)
    if known:
        kept = lower_hull(deltas, step)
        odds = np.exp((np.arange(len(deltas)) - reach) * step)
        deltas = np.interp(odds, odds[kept], deltas[kept])
    for part in stated:
        deltas = beside_pure(deltas, step, part.epsilon)
    deltas = beside_gaussian(deltas, step, mu)
    for choice in choices:
        deltas = beside_choice(deltas, step, choice.epsilon, choice.times)
    fits = deltas[reach : reach + N_STEPS] <= left
    return step * int(fits.argmax()) if fits.any() else math.inf


def added_losses(loss):
    """Return the losses about the same records that add up to a loss; parallel blocks stay one loss."""
    if loss.composition not in ("sequential", "joint"):
        return [loss]
    return [part for added in loss.parts for part in added_losses(added)]

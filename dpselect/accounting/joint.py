"""The loss of the releases of one fit: less than their sum, where their mechanisms are known.

The page "How losses add up" has statement and proof.
"""

import math

import numpy as np

from .composition import (
    compose_choice,
    compose_gaussian,
    compose_pure,
    lower_hull,
    many_choices,
    padding_of,
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
    gaussian = math.hypot(*(part.event.mu for part in parts if isinstance(part.event, GaussianEvent)))
    # one other event can start with its profile; the others count by their (epsilon, delta)
    exact = [part for part in parts if isinstance(part.event, ObjectiveEvent)]
    stated = [part for part in parts if part.event is None]
    exact, stated = exact[:1], stated + exact[1:]
    if exact:
        mu, gaussian = math.hypot(mu, gaussian), 0.0
    left = delta - math.fsum(part.delta for part in stated)
    if not left > 0:
        return math.inf
    middle = N_STEPS + padding_of(choices, mu, step)
    middle += sum(math.ceil(part.epsilon / step) for part in stated)
    epsilons = np.arange(middle + 1) * step
    deltas = np.zeros(middle + 1)  # the profile of no release
    if gaussian:
        deltas = GaussianEvent(gaussian).profile(epsilons)
    for part in exact:
        deltas = np.minimum(
            part.event.profile(epsilons), stated_profile(part.epsilon, part.delta, epsilons)
        )
    deltas = two_sided(deltas, step)
    if exact:
        kept = lower_hull(deltas, step)
        odds = np.exp((np.arange(len(deltas)) - middle) * step)
        deltas = np.interp(odds, odds[kept], deltas[kept])
    for part in stated:
        deltas = compose_pure(deltas, step, part.epsilon)
    deltas = compose_gaussian(deltas, step, mu)
    for choice in choices:
        deltas = compose_choice(deltas, step, choice.epsilon, choice.times)
    fits = deltas[middle : middle + N_STEPS] <= left
    return step * int(fits.argmax()) if fits.any() else math.inf


def added_losses(loss):
    """Return the losses about the same records that add up to a loss; parallel blocks stay one loss."""
    if loss.composition not in ("sequential", "joint"):
        return [loss]
    return [part for added in loss.parts for part in added_losses(added)]

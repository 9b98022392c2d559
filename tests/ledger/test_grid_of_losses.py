"""Composition on a grid of losses: from above for all laws, also of losses between the grid's points."""

import itertools
import math

import numpy as np
import pytest

from dpselect.accounting.composition import compose_choice, compose_pure, stated_profile, two_sided
from dpselect.accounting.events import ChoiceEvent, GaussianEvent

# coarse, so that what is rounded in the wrong direction shows
STEP, N = 0.2, 40
EPSILONS = STEP * np.arange(N + 1)
FIRST = {
    "nothing": lambda epsilon: np.zeros(np.shape(epsilon)),
    "gaussian": GaussianEvent(0.7).profile,
    "stated": lambda epsilon: stated_profile(0.5, 0.01, epsilon),
}
ON_THE_GRID = [0.4, 1.0]
SIZES = [*ON_THE_GRID, 0.5, 0.2 / 3]


def delta_at(profile, epsilon):
    """Return the delta of a mechanism at any epsilon: neighbours are symmetric."""
    size = np.abs(epsilon)
    delta = profile(size)
    return np.where(epsilon >= 0, delta, -np.expm1(-size) + np.exp(-size) * delta)


def exact(profile, laws):
    """Return the deltas of a mechanism composed with releases of two losses each, independent."""
    total = 0.0
    for losses in itertools.product(*laws):
        weight = math.prod(probability for _, probability in losses)
        total = total + weight * delta_at(profile, EPSILONS - sum(loss for loss, _ in losses))
    return total


def two_losses(epsilon, largest):
    """Return the law of a choice with the loss `largest`, or epsilon less; exp(-loss) has mean 1."""
    p = math.expm1(epsilon - largest) / (math.exp(epsilon - largest) - math.exp(-largest))
    return [(largest, p), (largest - epsilon, 1 - p)]


def composed(profile, compose, *arguments):
    deltas = compose(two_sided(profile(np.append(EPSILONS, EPSILONS[-1] + STEP)), STEP), *arguments)
    return deltas[N + 1 : -1]


def is_above(found, laws, profile):
    """Return whether deltas are those of no law or more, on a part that no padding has changed."""
    kept = slice(0, N // 2)
    return all((found[kept] >= exact(profile, law)[kept] * (1 - 1e-12)).all() for law in laws)


def choices(epsilon, times):
    ends = np.linspace(0, epsilon, 41 if times == 1 else 17)[1:-1]
    return itertools.product([two_losses(epsilon, end) for end in ends], repeat=times)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("epsilon", SIZES)
@pytest.mark.parametrize("name", FIRST)
def test_choices(name, epsilon, times):
    profile, laws = FIRST[name], list(choices(epsilon, times))
    assert is_above(composed(profile, compose_choice, STEP, epsilon, times), laws, profile)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("epsilon", ON_THE_GRID)
@pytest.mark.parametrize("name", FIRST)
def test_an_interval_of_losses_that_is_a_step_shorter_is_found(name, epsilon, times):
    """Where a choice is as long as some steps, its ends lie on the grid only by chance."""
    profile, laws = FIRST[name], list(choices(epsilon, times))
    shorter = composed(profile, compose_choice, STEP, epsilon - STEP, times)
    assert not is_above(shorter, laws, profile)


@pytest.mark.parametrize("epsilon", SIZES)
def test_choices_alone_are_no_better_than_their_event(epsilon):
    found = composed(FIRST["nothing"], compose_choice, STEP, epsilon)
    assert (found[: N // 2] >= ChoiceEvent(epsilon).profile(EPSILONS)[: N // 2] * (1 - 1e-9)).all()


@pytest.mark.parametrize("epsilon", SIZES)
@pytest.mark.parametrize("name", FIRST)
def test_pure_releases(name, epsilon):
    profile, p = FIRST[name], 1 / (1 + math.exp(-epsilon))
    laws = [[[(epsilon, p), (-epsilon, 1 - p)]]]
    assert is_above(composed(profile, compose_pure, STEP, epsilon), laws, profile)


@pytest.mark.parametrize("epsilon", [0.5, *ON_THE_GRID])
@pytest.mark.parametrize("name", FIRST)
def test_a_loss_that_is_rounded_down_is_found(name, epsilon):
    profile, p = FIRST[name], 1 / (1 + math.exp(-epsilon))
    laws = [[[(epsilon, p), (-epsilon, 1 - p)]]]
    assert not is_above(composed(profile, compose_pure, STEP, epsilon - STEP), laws, profile)

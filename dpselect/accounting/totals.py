"""Total losses that are tighter than a sum, from the events of the releases.

The page "How losses add up" says which of them hold when amounts are chosen as results suggest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from ..utils.validation import check_choice, check_number
from .composition import (
    compose_choice,
    compose_gaussian,
    lower_hull,
    many_choices,
    padding_of,
    stated_profile,
    two_sided,
)
from .events import ChoiceEvent, GaussianEvent, pure_gaussian
from .gaussian import gaussian_epsilon
from .joint import added_losses
from .privacy_loss import KINDS, PrivacyLoss
from .zcdp import pure_to_zcdp, zcdp_to_epsilon

ACCOUNTANTS = ("pld", "concentrated")
# number of grid steps up to the largest loss, and the largest step
N_STEPS, LARGEST_STEP = 2000, 1e-3
# far above the rounding error of Fourier transforms of probabilities
LEAST_DELTA = 1e-12
# losses beyond so many standard deviations, or beyond LARGEST_LOSS, count as unbounded: the exponential
# of twice as much overflows float64
FARTHEST, LARGEST_LOSS = 10, 350.0


class _Entry(Protocol):
    """An entry of a ledger."""

    @property
    def statement(self) -> PrivacyLoss: ...


@runtime_checkable
class _HasHistory(Protocol):
    """A ledger."""

    def history(self) -> Sequence[_Entry]: ...


Losses = _HasHistory | PrivacyLoss | Iterable[PrivacyLoss]


def composed_epsilon(
    losses: Losses,
    delta: float,
    *,
    accountant: Literal["pld", "concentrated"] = "pld",
) -> float:
    """Return the epsilon of all losses together, at a delta.

    Parameters
    ----------
    losses : PrivacyLedger, PrivacyLoss or iterable of PrivacyLoss
        About the same records. Entries of a ledger that were committed ex-post count for what was
        reserved, which is their loss under differential privacy; so do those that were not
        committed.
    delta : float
        In (0, 1): the probability with which the loss may exceed what is returned.
    accountant : {"pld", "concentrated"}, default="pld"
        Privacy loss distributions, by dp_accounting, rounded upwards; or Renyi divergences and Gaussian
        noise, which are less exact and need no other library.

    Returns
    -------
    float
        At most the sum of the epsilons, if `delta` is at least the sum of the deltas.

    Raises
    ------
    ImportError
        If dp_accounting is not installed: ``pip install dpselect[accounting]``.
    ValueError
        If losses are for different adjacencies, or one is ex-post, so that no bound is known that holds
        for all outcomes; if `delta` is less than 1e-12, or not larger than the sum of the deltas of
        releases without an event.

    See Also
    --------
    PrivacyLedger.total : The same for a ledger.

    Notes
    -----
    How much each release spends must have been fixed before the first release: later releases may
    depend on earlier results, but not their amounts. A budget that is spent as results suggest is
    covered by the sum that :class:`~dpselect.PrivacyLedger` keeps, not by this number. Propositions 3
    to 5 of the page "How losses add up".

    Examples
    --------
    A hundred releases of 0.1 each:

    >>> from dpselect import PrivacyLoss
    >>> from dpselect.accounting import composed_epsilon
    >>> round(composed_epsilon([PrivacyLoss(0.1)] * 100, delta=1e-5), 2)
    4.31
    """
    check_number(
        "delta",
        delta,
        low=LEAST_DELTA,
        low_included=True,
        high=1.0,
        why="it is the probability with which the bound may fail, and smaller ones are lost in rounding",
        instead="write for instance 1e-6",
    )
    check_choice("accountant", accountant, ACCOUNTANTS, why="only these are known here")
    losses = _of_all_outcomes(losses)
    parts = [part for loss in losses for part in added_losses(loss)]
    total = _concentrated(parts, delta)
    if accountant == "pld" and total < math.inf:
        total = min(total, _by_distributions(parts, delta, total))
    if math.fsum(loss.delta for loss in losses) <= delta:
        total = min(total, math.fsum(loss.epsilon for loss in losses))
    if total == math.inf and all(part.epsilon < math.inf for part in parts):
        raise ValueError(
            f"delta={delta!r} is not larger than {_own_delta(parts):.6g}, the sum of the losses' own "
            "deltas, so nothing of it is left for the composition; write a larger delta."
        )
    return total


def to_dp_event(losses: Losses) -> Any:
    """Return losses as an event of dp_accounting, for its accountants with ``REPLACE_ONE``.

    Parameters
    ----------
    losses : PrivacyLedger, PrivacyLoss or iterable of PrivacyLoss
        As for :func:`composed_epsilon`.

    Returns
    -------
    dp_accounting.ComposedDpEvent
        A Gaussian mechanism for each loss with a GaussianEvent, and for others randomised response over
        two buckets, which dominates every mechanism with the same epsilon. It does not include their
        deltas.

    Raises
    ------
    ImportError, ValueError
        As for :func:`composed_epsilon`.

    Examples
    --------
    >>> from dpselect import PrivacyLoss
    >>> from dpselect.accounting import to_dp_event
    >>> event = to_dp_event([PrivacyLoss(0.1), PrivacyLoss(0.2)])
    >>> [round(part.noise_parameter, 4) for part in event.events]
    [0.95, 0.9003]
    """
    from dp_accounting import dp_event

    # one by one: dp_accounting 0.6 ignores the count of a composed randomised response
    return dp_event.ComposedDpEvent(
        [
            dp_event.GaussianDpEvent(_noise_multiplier(loss.event.mu))
            if isinstance(loss.event, GaussianEvent)
            else dp_event.RandomizedResponseDpEvent(_noise_parameter(loss.epsilon), num_buckets=2)
            for given in _of_all_outcomes(losses)
            for loss in added_losses(given)
        ]
    )


def _noise_multiplier(mu):
    # relative to the norm of one record: replacing a record moves the sum by twice its norm
    return math.nextafter(2 / mu, 0.0)


def _noise_parameter(epsilon):
    # 2 / (1 + exp(epsilon)), rounded down: less noise than that is more loss
    exact = 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    return max(0.0, math.nextafter(math.nextafter(exact, 0.0), 0.0))


def _of_all_outcomes(losses):
    """Return a list of losses that bound all outcomes, or refuse ex-post ones."""
    if isinstance(losses, _HasHistory):
        losses = [entry.statement for entry in losses.history()]
    losses = [losses] if isinstance(losses, PrivacyLoss) else list(losses)
    if any(loss.kind != KINDS[0] for loss in losses):
        raise ValueError(
            "An ex-post loss bounds one outcome and not all, so it cannot be composed like differential "
            "privacy; spend it from a PrivacyLedger, which reserves the largest loss that may come out."
        )
    if losses:
        PrivacyLoss.sequential(losses)  # for its check that all adjacencies are equal
    return losses


def _own_delta(parts):
    return math.fsum(part.delta for part in parts if part.event is None)


def _concentrated(parts, delta):
    """Return the least total by divergences or Gaussian mechanisms, with some epsilons simply added."""
    parts = sorted(parts, key=lambda part: (part.event is None, part.epsilon))
    n_apart = sum(part.event is None for part in parts)
    several = {0, n_apart, *(2**j for j in range(n_apart.bit_length()))}
    # a ledger has many entries that are one object
    found = {
        key: (part.epsilon, part.delta, *_divergences(part), *_gaussian(part))
        for key, part in {id(part): part for part in parts}.items()
    }
    columns = list(zip(*(found[id(part)] for part in parts))) or [()] * 7
    return min(_together(columns, len(parts) - n, delta) for n in several)


def _together(columns, n, delta):
    """Return the smaller of two totals of the first n parts, plus the sum of the other epsilons.

    `columns` are the epsilons, the deltas, and what :func:`_divergences` and :func:`_gaussian` return.
    """
    epsilons, deltas, *others = columns
    delta -= math.fsum(deltas[n:])
    added = math.fsum(epsilons[n:])
    *sums, mus, lost = (column[:n] for column in others)
    shift, rho, own = map(math.fsum, sums)
    total = math.inf
    if delta > own and rho < math.inf:
        total = shift + zcdp_to_epsilon(rho, delta - own)
    mu, own = math.hypot(*mus), math.fsum(lost)
    if delta > own and mu < math.inf:
        total = min(total, gaussian_epsilon(mu, delta - own))
    return added + total


def _divergences(loss):
    """Return xi, rho, delta: up to a probability of delta, divergences are at most xi + rho order."""
    if loss.parts:
        found = [_divergences(part) for part in loss.parts]
        together = max if loss.composition == "parallel" else math.fsum
        return tuple(together(numbers) for numbers in zip(*found))
    if loss.event is None:
        return 0.0, pure_to_zcdp(loss.epsilon), loss.delta
    return *loss.event.concentrated, 0.0


def _gaussian(loss):
    """Return mu and delta of a Gaussian mechanism that dominates up to a probability of delta."""
    if loss.parts:
        found = [_gaussian(part) for part in loss.parts]
        mus, deltas = zip(*found)
        if loss.composition == "parallel":
            return max(mus), max(deltas)
        return math.hypot(*mus), math.fsum(deltas)
    if loss.event is None:
        return pure_gaussian(loss.epsilon), loss.delta
    return loss.event.gaussian, 0.0


def _by_distributions(parts, delta, largest):
    """Return the total by privacy loss distributions, or inf if it is above another one."""
    if largest == 0 or largest > LARGEST_LOSS:
        return largest
    step = min(LARGEST_STEP, largest / N_STEPS)
    deltas = _profile(parts, step, math.ceil(largest / step))
    small = deltas <= delta
    return step * int(small.argmax()) if small.any() else math.inf


def _profile(parts, step, n_steps):
    """Return the deltas of composed losses at the epsilons 0, step, ..., n_steps step."""
    choices, mu = many_choices([part.event for part in parts if isinstance(part.event, ChoiceEvent)])
    others = [part for part in parts if not isinstance(part.event, ChoiceEvent)]
    # composition with choices shifts epsilons, so the deltas of the others are needed that much farther
    middle = n_steps + padding_of(choices, mu, step)
    # deltas decrease: that of the largest loss bounds those beyond it
    epsilons = np.minimum(np.arange(middle + 1) * step, LARGEST_LOSS)
    deltas = np.array(_composed(others, step).get_delta_for_epsilon(epsilons))
    deltas = compose_gaussian(two_sided(deltas, step), step, mu)
    for choice in choices:
        deltas = compose_choice(deltas, step, choice.epsilon, choice.times)
    return deltas[middle:][: n_steps + 1]


def _composed(parts, step):
    """Return the privacy loss distribution of composed losses, on a grid."""
    from dp_accounting.pld.privacy_loss_distribution import identity

    total = identity(value_discretization_interval=step)
    # labels do not affect the loss, so releases that differ only in them are composed at once
    for part, count in Counter(replace(part, label="") for part in parts).items():
        one = _distribution(part, step)
        total = total.compose(one if count == 1 else one.self_compose(count))
    return total


def _distribution(loss, step):
    """Return the privacy loss distribution of one release, or of releases about disjoint blocks."""
    n_steps = math.ceil(min(_farthest(loss), LARGEST_LOSS) / step)
    if loss.parts:
        # disjoint blocks: the largest profile at each epsilon
        blocks = [_profile(added_losses(part), step, n_steps) for part in loss.parts]
        return _connected(np.max(blocks, axis=0), step)
    epsilons = np.arange(n_steps + 1) * step
    deltas = stated_profile(loss.epsilon, loss.delta, epsilons)
    if loss.event is not None:
        deltas = np.minimum(deltas, loss.event.profile(epsilons))
    return _connected(deltas, step)


def _farthest(loss):
    """Return the upper end of a distribution; larger losses count as unbounded."""
    if loss.parts:
        return math.fsum(map(_farthest, loss.parts))
    if loss.event is None:
        return loss.epsilon
    xi, rho = loss.event.concentrated
    return xi + rho + FARTHEST * math.sqrt(2 * rho)


def _connected(deltas, step):
    """Return the worst distribution with these deltas at multiples of the step, from epsilon 0."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    places = np.arange(1 - len(deltas), len(deltas))
    deltas = two_sided(deltas, step)
    kept = lower_hull(deltas, step)
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(step, places[kept], deltas[kept])
    )

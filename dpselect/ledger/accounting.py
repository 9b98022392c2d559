"""Export of losses to Google's dp_accounting, for totals that are finer than a sum.

A release whose epsilon is all that is known of it is, at worst, randomised response with that
epsilon: every mechanism with delta = 0 is a post-processing of it (Kairouz, Oh and Viswanath, *The
Composition Theorem for Differential Privacy*, ICML 2015). Deltas are added apart.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal

from ..ledger import PrivacyLedger
from ..privacy import KINDS, PrivacyLoss
from ..validation import check_choice, check_number

ACCOUNTANTS = ("pld", "rdp")


def to_dp_event(losses: PrivacyLedger | PrivacyLoss | Iterable[PrivacyLoss]) -> Any:
    """Return losses as an event of dp_accounting.

    Parameters
    ----------
    losses : PrivacyLedger, PrivacyLoss or iterable of PrivacyLoss
        About the same records. Entries of a ledger that were committed ex-post count for what was
        reserved, which is their loss under differential privacy; so do those that were not
        committed.

    Returns
    -------
    dp_accounting.ComposedDpEvent
        One randomised response over two buckets for each loss. It says nothing of deltas.

    Raises
    ------
    ImportError
        If dp_accounting is not installed: ``pip install dpselect[accounting]``.
    ValueError
        If a loss is ex-post, so that no bound is known that holds for all outcomes.

    Examples
    --------
    >>> from dpselect import PrivacyLoss
    >>> from dpselect.ledger.accounting import to_dp_event
    >>> event = to_dp_event([PrivacyLoss(0.1), PrivacyLoss(0.2)])
    >>> [round(part.noise_parameter, 4) for part in event.events]
    [0.95, 0.9003]
    """
    from dp_accounting import dp_event

    # one by one: dp_accounting 0.6 forgets how often a randomised response is composed
    return dp_event.ComposedDpEvent([
        dp_event.RandomizedResponseDpEvent(noise_parameter=_noise_parameter(epsilon), num_buckets=2)
        for epsilon, _ in _amounts(losses)
    ])


def composed_epsilon(
    losses: PrivacyLedger | PrivacyLoss | Iterable[PrivacyLoss], delta: float, *,
    accountant: Literal["pld", "rdp"] = "pld",
) -> float:
    """Return the epsilon of all losses together, at a delta.

    Parameters
    ----------
    losses : PrivacyLedger, PrivacyLoss or iterable of PrivacyLoss
        As for :func:`to_dp_event`.
    delta : float
        In (0, 1): the probability with which the loss may exceed what is returned. What exceeds the
        sum of the losses' own deltas is used.
    accountant : {"pld", "rdp"}, default="pld"
        Privacy loss distributions, or Renyi divergences, which are less exact.

    Returns
    -------
    float
        At most the sum of the epsilons.

    Raises
    ------
    ImportError, ValueError
        As for :func:`to_dp_event`; and if `delta` is not larger than the sum of the deltas.

    Notes
    -----
    The epsilons must have been fixed before the first release: the theorem lets a later release
    depend on earlier ones, but not how much it spends. A budget that is spent as results suggest is
    covered by the sum that :class:`~dpselect.PrivacyLedger` keeps, not by this number.

    Examples
    --------
    A hundred releases of 0.1 each:

    >>> from dpselect import PrivacyLoss
    >>> from dpselect.ledger.accounting import composed_epsilon
    >>> round(composed_epsilon([PrivacyLoss(0.1)] * 100, delta=1e-5), 2)
    4.31
    """
    from dp_accounting import NeighboringRelation, pld, rdp

    check_number(
        "delta", delta, high=1.0, why="it is the probability with which the bound may fail",
        instead="write for instance 1e-6",
    )
    check_choice("accountant", accountant, ACCOUNTANTS, why="only these are known here")
    amounts = _amounts(losses)
    own = math.fsum(part for _, part in amounts)
    if own >= delta:
        raise ValueError(
            f"delta={delta!r} is not larger than {own:.6g}, the sum of the losses' own deltas, so "
            "nothing of it is left for the composition; write a larger delta."
        )
    kind = {"pld": pld.PLDAccountant, "rdp": rdp.RdpAccountant}[accountant]
    total = kind(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    total.compose(to_dp_event(losses))
    return min(float(total.get_epsilon(delta - own)), math.fsum(epsilon for epsilon, _ in amounts))


def _noise_parameter(epsilon):
    # 2 / (1 + exp(epsilon)), rounded down: less noise than that is more loss
    exact = 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    return max(0.0, math.nextafter(math.nextafter(exact, 0.0), 0.0))


def _amounts(losses):
    """Return a list of (epsilon, delta) that hold for all outcomes."""
    if isinstance(losses, PrivacyLedger):
        return [
            (entry.epsilon, entry.delta) if entry.kind == KINDS[0]
            else (entry.reserved_epsilon, entry.reserved_delta)
            for entry in losses.history()
        ]
    losses = [losses] if isinstance(losses, PrivacyLoss) else list(losses)
    if any(loss.kind != KINDS[0] for loss in losses):
        raise ValueError(
            "An ex-post loss bounds one outcome and not all, so it cannot be composed like differential "
            "privacy; spend it from a PrivacyLedger, which reserves the largest loss that may come out."
        )
    return [amount for loss in losses for amount in _disjoint(loss)]


def _disjoint(loss):
    """Return the amounts of a composition, of which blocks of records count as one."""
    if loss.composition != "sequential":
        return [(loss.epsilon, loss.delta)]
    return [amount for part in loss.parts for amount in _disjoint(part)]

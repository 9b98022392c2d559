"""Who is charged for a release: the ledger of an estimator, or the one that is open."""

import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from ..noise.generators import noise_is_drawn_since, noise_mark
from ..privacy import PrivacyLoss

# ledgers that this thread has opened, the innermost last
_opened = ContextVar("opened ledgers", default=())
# whether releases here are part of one that is charged as a whole, or are none at all
_included = ContextVar("included", default=False)
# ledgers that any thread has opened: a worker thread spends from its parent's
_everywhere: list[Any] = []
_lock = threading.Lock()


def open_ledger(ledger):
    """Let releases spend from `ledger` until it is closed."""
    _opened.set((*_opened.get(), ledger))
    with _lock:
        _everywhere.append(ledger)


def close_ledger(ledger):
    """End what `open_ledger` began."""
    opened = list(_opened.get())
    # a generator may close in another thread, or after what was opened later
    if ledger in opened:
        del opened[len(opened) - 1 - opened[::-1].index(ledger)]
        _opened.set(tuple(opened))
    with _lock:
        _everywhere.remove(ledger)


def current_ledger(owner=None):
    """Return the ledger that a release is charged to.

    Parameters
    ----------
    owner : object, default=None
        What makes the release; its attribute `ledger`, if not None, is charged.

    Returns
    -------
    PrivacyLedger or None
        None inside of :func:`uncharged`, and where no ledger is open.

    Raises
    ------
    TypeError
        If the attribute is something else.
    RuntimeError
        If other threads have opened different ledgers, and this one none.
    """
    if _included.get():
        return None
    own = getattr(owner, "ledger", None)
    if own is not None:
        if not hasattr(own, "reserve"):
            raise TypeError(
                f"ledger must be a PrivacyLedger, not a {type(own).__name__}, because nothing else "
                "counts what was spent; write ledger=PrivacyLedger(path)."
            )
        return own
    if _opened.get():
        return _opened.get()[-1]
    with _lock:
        candidates = set(_everywhere)
    if len(candidates) > 1:
        raise RuntimeError(
            "Several ledgers are open in other threads, so it is not known which one pays for a "
            "release in this thread; give the estimator its ledger=, or open one in this thread."
        )
    return candidates.pop() if candidates else None


@contextmanager
def uncharged():
    """Charge nothing: for fits that are not released, or are part of a release that is charged."""
    before = _included.set(True)
    try:
        yield
    finally:
        _included.reset(before)


class Charge:
    """What a release has cost so far, in the ledger that pays for it.

    Attributes
    ----------
    reservation : Reservation or None
        None where no ledger pays.
    """

    def __init__(self, reservation):
        self.reservation = reservation
        self._begun = False
        self._mark = noise_mark()

    def begin(self):
        """Say that something may have come out: from here on a failure has its price."""
        self._begun = True

    @property
    def begun(self):
        return self._begun or noise_is_drawn_since(self._mark)

    def settle(self, loss):
        """Count what came out. Nothing else can come out under this charge."""
        reservation, self.reservation = self.reservation, None
        if reservation is not None:
            reservation.settle(loss)


@contextmanager
def charged(owner, most):
    """Reserve a loss for what the block releases; charges of the block's own are included.

    Parameters
    ----------
    owner : object
        What makes the release.
    most : PrivacyLoss
        The largest loss that can come out.

    Yields
    ------
    Charge
        Settled by the block, or else at its end at `most`. If the block fails before any noise was
        drawn, nothing came out and nothing is counted; if it fails later, the reservation stays,
        and counts in full.

    Raises
    ------
    BudgetExceededError
        If the ledger has less left; the block is not entered.
    """
    ledger = current_ledger(owner)
    reservation = None
    if ledger is not None:
        reservation = ledger.reserve(
            most.epsilon, most.delta, label=most.label, neighbours=most.neighbours
        )
    charge = Charge(reservation)
    with uncharged():
        try:
            yield charge
        except BaseException:
            if not charge.begun:
                # where this does not work, the reservation stays, and the first error is told
                with suppress(Exception):
                    charge.settle(PrivacyLoss(0.0, neighbours=most.neighbours))
            raise
    charge.settle(most)

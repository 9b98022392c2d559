"""Who is charged for a release: the ledger of an estimator, or the one that is open."""

import os
import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ..noise.generators import noise_is_drawn_since, noise_mark
from ..privacy import PrivacyLoss
from ..processes import this_process

# ledgers that this thread has opened, the innermost last
_opened = ContextVar("opened ledgers", default=())
# whether releases here are part of one that is charged as a whole, or are none at all
_included = ContextVar("included", default=False)
# ledgers that any thread has opened, with the process that did: a worker spends from its parent's
_everywhere: list[Any] = []
# where the estimator was pickled that is fitted
_origin = ContextVar("origin", default=None)
_lock = threading.Lock()


def _new_lock():
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)  # another thread may hold it


@dataclass(frozen=True)
class Origin:
    """What was open where an estimator was pickled.

    Attributes
    ----------
    ledgers : tuple of str
        Paths of the ledgers that may pay; of several, it is not known which one does.
    withheld : str
        The process that had opened one which is not told, or "".
    included : bool
        Whether releases there were part of one that is charged as a whole.
    strict : bool
        Whether strict mode was on.
    """

    ledgers: tuple[str, ...] = ()
    withheld: str = ""
    included: bool = False
    strict: bool = False


def open_here():
    """Return where an estimator is that is pickled now: what a fit here would be charged to."""
    if _included.get():
        return Origin(included=True)
    if _opened.get():
        return Origin((_opened.get()[-1].path,))
    origin = _origin.get()
    if origin is not None and (origin.included or origin.ledgers or origin.withheld):
        return origin
    return Origin(tuple(sorted(_open_in_other_threads())))


def opener():
    """Return the process that has opened a ledger which is open in this one's memory, or ""."""
    with _lock:
        return _everywhere[-1][1] if _everywhere else ""


def _open_in_other_threads():
    """Paths of ledgers that are open in any thread, or in a process that this one descends from."""
    with _lock:
        paths = {ledger.path for ledger, _ in _everywhere}
    return paths.union(*this_process().told("ledgers"))


def _tell():
    this_process().tell(ledgers=sorted({ledger.path for ledger, _ in _everywhere}) or None)


@contextmanager
def coming_from(origin):
    """Charge what was open where an estimator was pickled, unless one is opened here."""
    before = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(before)


def open_ledger(ledger):
    """Let releases spend from `ledger` until it is closed."""
    _opened.set((*_opened.get(), ledger))
    with _lock:
        _everywhere.append((ledger, this_process().identity))
        _tell()


def close_ledger(ledger):
    """End what `open_ledger` began."""
    opened = list(_opened.get())
    # a generator may close in another thread, or after what was opened later
    if ledger in opened:
        del opened[len(opened) - 1 - opened[::-1].index(ledger)]
        _opened.set(tuple(opened))
    with _lock:
        del _everywhere[[other for other, _ in _everywhere].index(ledger)]
        _tell()


def current_ledger(owner=None):
    """Return the ledger that a release is charged to.

    Parameters
    ----------
    owner : object, default=None
        What makes the release; its attribute `ledger`, if not None, is charged.

    Returns
    -------
    PrivacyLedger or None
        None inside of :func:`uncharged`, and where no ledger is open: neither in this thread, nor
        where the estimator was pickled that is fitted, nor in another thread or in a process that
        this one descends from.

    Raises
    ------
    TypeError
        If the attribute is something else.
    RuntimeError
        If it is not known which ledger pays: others have opened several, and this thread none.
    FileNotFoundError
        If the ledger that was open elsewhere is not here.
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
    return _of_elsewhere(_origin.get() or Origin())


def _of_elsewhere(origin):
    """The ledger that pays where this thread has opened none."""
    if origin.included:
        return None
    paths = set(origin.ledgers) or _open_in_other_threads()
    if len(paths) > 1:
        raise RuntimeError(
            "Several ledgers are open in other threads or processes, so it is not known which one "
            "pays for a release here; give the estimator its ledger=, or open one in this thread."
        )
    if origin.withheld and not paths:
        raise RuntimeError(
            "The estimator was pickled after a fit, while a ledger was open that is not known here, so "
            "another fit would be counted nowhere; give it its ledger=, open one here (with ledger:), "
            "or send sklearn.base.clone(estimator) in its place."
        )
    return _ledger_at(*paths) if paths else None


def _ledger_at(path):
    from .ledger import PrivacyLedger

    if not os.path.exists(path):
        raise FileNotFoundError(
            f"The ledger at {path} was open where the estimator was pickled or this process was "
            "started, and there is none here, so a fit would be counted nowhere; fit where the file "
            "is, or open another ledger (with ledger:)."
        )
    return PrivacyLedger(path)


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

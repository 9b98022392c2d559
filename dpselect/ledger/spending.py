"""Find the ledger that a release spends from: that of the estimator, or the open one."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass

from ..accounting.privacy_loss import PrivacyLoss
from ..noise.generators import noise_is_drawn_since, noise_mark
from ..utils.processes import lock_that_forks_wait_for, this_process
from .open_blocks import block
from .record_parts import WHOLE

# ledgers that this thread has opened, the innermost last
_opened = ContextVar("opened ledgers", default=())
# blocks whose fits are charged as a part of another release, or are no releases: weak references to
# locks, each held by its block alone while the block lasts
_included = ContextVar("included", default=())
# the Spending of the enclosing release
_enclosing = ContextVar("enclosing", default=None)
# ledgers that any thread has opened: a worker thread spends from its parent's
_open_in_process: list[Opening] = []
# the Origin of the unpickled estimator that is being fitted
_origin = ContextVar("origin", default=None)
# paths of all ledgers that this process has ever opened
_ever_opened: set[str] = set()
_lock = lock_that_forks_wait_for()


def _begin_after_fork():
    _ever_opened.clear()
    # a pool process outlives the release that its first task was a part of
    _included.set(())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_after_fork)


class Opening:
    """One ``with ledger:`` block of one process.

    `outer` are the ledgers that the same thread had opened before, which are not charged inside of this
    one.
    """

    def __init__(self, ledger):
        self.ledger, self.outer, self.process = ledger, _opened.get(), this_process().identity

    def begin(self):
        """Open the ledger for releases, and return it."""
        with _lock:
            # The file for other processes is written before the ledger opens, and removed after it has
            # closed: after an interrupt in between, fits are still charged.
            _publish([*_opened_here(), self])
            _ever_opened.add(self.ledger.path)
            _open_in_process.append(self)
            _opened.set((*_opened.get(), self))
        return self.ledger

    def end(self, *exception):
        """Close the ledger, also if `begin` was interrupted."""
        # a generator may close in another thread, or after what was opened later
        with _lock:
            _open_in_process[:] = [other for other in _open_in_process if other is not self]
            _opened.set(tuple(other for other in _opened.get() if other is not self))
            _publish(_opened_here())


@dataclass(frozen=True)
class Origin:
    """The ledgers that were open where an estimator was pickled.

    `ledgers` are the paths of those that may pay; of several, it is not known which one does. `withheld`
    is the process that had opened a ledger that is not named, or "". `strict` is whether strict mode was
    on.
    """

    ledgers: tuple[str, ...] = ()
    withheld: str = ""
    strict: bool = False


def _publish(openings):
    this_process().publish(ledgers=sorted(_innermost(openings)) or None)


def _opened_here():
    """Return the open ledgers of this process's threads, without those inherited by a fork."""
    return [opening for opening in _open_in_process if opening.process == this_process().identity]


def _innermost(openings):
    """Return the paths of openings that no inner one has suspended."""
    suspended = {outer for opening in openings for outer in opening.outer}
    return {opening.ledger.path for opening in openings if opening not in suspended}


def _open_now():
    """Return the paths of ledgers that are open in any thread, or in a parent process."""
    return _innermost(_opened_here()).union(*this_process().published("ledgers"))


def _may_pay(origin):
    """Return the paths of the ledgers that may be charged here; of several, it is not known which."""
    with _lock:
        now, inherited = _open_now(), _innermost(_open_in_process)
        if _opened.get():
            last = _opened.get()[-1]
            if last in _opened_here() or last.ledger.path in now:
                return {last.ledger.path}
            inherited = {last.ledger.path}
    if origin.ledgers:
        return set(origin.ledgers)
    if not _opened.get():
        return now or inherited
    # The inherited ledger has been closed in the process that opened it: a pool process goes on to
    # work for ledgers that are opened later.
    return now | inherited


def has_ended(origin):
    """Return whether this process had opened a ledger of an Origin, and has closed it."""
    with _lock:
        here = {opening.ledger.path for opening in _open_in_process}
        open_still = here.union(*this_process().published("ledgers"))
        return not _ever_opened.intersection(origin.ledgers) <= open_still


def open_here():
    """Return the Origin of an estimator that is pickled now, without its mode."""
    origin = _origin.get() or Origin()
    paths = _may_pay(origin)
    return Origin(tuple(sorted(paths))) if paths else Origin(withheld=origin.withheld)


def opening_process():
    """Return the process that opened the ledger that is open in this one's memory, or ""."""
    with _lock:
        return _open_in_process[-1].process if _open_in_process else ""


@block
def spending_from(origin):
    """Spend from the ledger that was open where an estimator was pickled, unless one is open here."""
    before = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(before)


def current_ledger(owner=None):
    """Return the ledger that a release of `owner` spends from, or None.

    That is its attribute `ledger`, or what is open: in this thread, where the estimator was pickled
    that is fitted, in another thread, or in a process that this one descends from. None inside of
    :func:`without_spending`. It is refused if others have opened several and this thread none, or
    if the one that was open elsewhere is not here.
    """
    if is_included():
        return None
    own = getattr(owner, "ledger", None)
    if own is not None:
        if not hasattr(own, "reserve"):
            raise TypeError(
                f"ledger must be a PrivacyLedger, not a {type(own).__name__}, because nothing else "
                "counts what was spent; write ledger=PrivacyLedger(path)."
            )
        return own
    opened, origin = _opened.get(), _origin.get() or Origin()
    paths = _may_pay(origin)
    if opened and paths == {opened[-1].ledger.path}:
        return opened[-1].ledger
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
    if not paths:
        return None
    found = _opened_elsewhere(*paths)
    # a pickle names the file, and not the part that was open when it was made
    unknown = found is not None and found.part_name != WHOLE and bool(origin.ledgers)
    return _ledger_at(*paths) if found is None or unknown else found


def _opened_elsewhere(path):
    """Return the ledger at a path that other threads have opened, if all with the same settings."""
    with _lock:
        opened = [o.ledger for o in _opened_here() if o.ledger.path == path]
    said = {(ledger.rows_per_person, ledger.label, ledger.user, ledger.part_name) for ledger in opened}
    return opened[0] if len(said) == 1 else None


def _ledger_at(path):
    from .ledger import PrivacyLedger

    if not os.path.exists(path):
        raise FileNotFoundError(
            f"The ledger at {path} was open where the estimator was pickled or this process was "
            "started, and there is none here, so a fit would be counted nowhere; fit where the file "
            "is, or open another ledger (with ledger:)."
        )
    return PrivacyLedger(path)


def without_spending():
    """Return a context manager for fits that are not released, or that another release includes.

    Other threads and processes do not know of it: enter it there.
    """
    # a lock is taken and given back without a line of Python, so no interrupt comes in between
    lasts = threading.Lock()
    _included.set((*_included_now(), weakref.ref(lasts)))
    return lasts


def is_included():
    """Return whether releases of this thread are charged as a part of another one, or not at all."""
    return bool(_included_now())


def _included_now():
    return [block for block in _included.get() if (lock := block()) is not None and lock.locked()]


class Spending:
    """The cost of a release so far, in the ledger that is charged, if there is one."""

    def __init__(self, reservation, enclosing=None):
        self.reservation, self.enclosing = reservation, enclosing
        self._begun = False
        self._mark = noise_mark()

    def begin(self):
        """Mark the release as started: from now on a failing fit is charged in full.

        This holds for every enclosing reservation, too.
        """
        self._begun = True
        if self.enclosing is not None:
            self.enclosing.begin()

    @property
    def begun(self):
        return self._begun or noise_is_drawn_since(self._mark)

    def commit(self, loss):
        """Commit the loss of the outcome, and end the reservation."""
        reservation, self.reservation = self.reservation, None
        if reservation is not None:
            reservation.commit(loss)


@block
def spending(owner, upper_bound):
    """Reserve a loss for a block of code, which includes the losses of fits inside of it.

    `owner` makes the release, and `upper_bound` is the largest PrivacyLoss that can come out. If the
    ledger has less left, the block is not entered. The Spending is committed by the block, or else
    at its end at `upper_bound`. If the block fails before any noise was drawn, nothing came out and
    nothing is counted; if it fails later, the reservation stays, and counts in full.
    """
    ledger = current_ledger(owner)
    reservation = None
    if ledger is not None:
        if ledger.rows_per_person is not None and upper_bound.adjacency.unit == "record":
            # refuse now a loss that could not be converted at the end
            upper_bound.for_persons(ledger.rows_per_person)
        reservation = ledger.reserve(
            upper_bound.epsilon,
            upper_bound.delta,
            label=upper_bound.label,
            adjacency=upper_bound.adjacency,
        )
    release = Spending(reservation, _enclosing.get() if _included_now() else None)
    before = _enclosing.set(release)
    with without_spending():
        try:
            yield release
        except BaseException:
            if not release.begun:
                # if this fails, the reservation stays, and the first error is raised
                with suppress(Exception):
                    release.commit(PrivacyLoss(0.0, adjacency=upper_bound.adjacency))
            raise
        finally:
            _enclosing.reset(before)
    release.commit(upper_bound)

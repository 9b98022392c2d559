"""A budget for one data set, kept on disk, that many processes may spend from.

What the loss of a release is, is not known before its noise is drawn, and a process can die in
between. So a loss is *reserved* before any noise is drawn, and *settled* when the release is
made. A reservation that was never settled counts as spent: its release may have come out.

Every step is one transaction of SQLite, which orders those of all processes of a machine and
survives their death at any moment. Nothing is kept in memory, so copies, pickles and forks of a
ledger are the same ledger.
"""

import json
import math
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from .checks import check_number
from .exceptions import BudgetExceededError
from .privacy import KINDS, NEIGHBOURS, PrivacyLoss

# marks an SQLite file as a ledger of this form
APPLICATION_ID, VERSION = 0x44505345, 1
# a process waits this long for the others, in seconds
PATIENCE = 60.0
# Amounts are exact sums: floats are written as fractions, and rounded once, when they are read.
SCHEMA = """
CREATE TABLE budget (epsilon TEXT NOT NULL, delta TEXT NOT NULL, spent_epsilon TEXT NOT NULL,
                     spent_delta TEXT NOT NULL);
CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL,
                      reserved_epsilon REAL NOT NULL, reserved_delta REAL NOT NULL,
                      epsilon REAL, delta REAL, kind TEXT, reserved_at REAL NOT NULL,
                      settled_at REAL);
"""


@dataclass(frozen=True)
class LedgerEntry:
    """One reservation, and what it was settled at.

    Attributes
    ----------
    id : int
        Number in the order of the reservations.
    label : str
        What it is for. Public.
    reserved_epsilon, reserved_delta : float
    epsilon, delta : float
        What counts as spent: what came out, or what was reserved if nothing was settled.
    kind : str
        "differential privacy", "ex-post", or "unsettled".
    reserved_at, settled_at : float or None
        Seconds since 1970.
    """

    id: int
    label: str
    reserved_epsilon: float
    reserved_delta: float
    epsilon: float
    delta: float
    kind: str
    reserved_at: float
    settled_at: float | None


class PrivacyLedger:
    """The privacy budget of one data set, on disk, shared by processes.

    Parameters
    ----------
    path : str or path-like
        The file. It is made if `epsilon` is given and there is none.
    epsilon : float, default=None
        Budget, greater than 0; None opens a ledger that exists.
    delta : float, default=0.0
        Budget, in [0, 1).

    Raises
    ------
    FileNotFoundError
        If there is no file, and no budget to make one with.
    ValueError
        If the file is no ledger, or one with another budget: what was promised to the people in
        the records does not change.

    Notes
    -----
    Losses add up: basic sequential composition, for neighbours that replace one record, also of
    releases that were planned after others were seen. A loss that came out smaller than its
    reservation ("ex-post") frees the rest. An ex-post loss adds up like the others where what is
    done next depends on what was released only: what a mechanism has used of its budget must be a
    function of its release (Whitehouse et al. 2022). The path is all that the object holds.

    SQLite's journal (WAL) needs a file system of this machine; network file systems lose writes.

    Examples
    --------
    >>> import tempfile, os
    >>> from dpselect import PrivacyLedger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(os.path.join(folder.name, "patients.ledger"), epsilon=1.0)
    >>> ledger.spend(0.25, label="a histogram of ages")
    >>> ledger.remaining()
    (0.75, 0.0)
    >>> with ledger.reserve(0.5, label="a model") as reservation:
    ...     pass  # release something, with reservation.settle(model.privacy_)
    >>> print(ledger)
    epsilon 0.75 of 1 and delta 0 of 0 are spent
      0.25: a histogram of ages
      0.5: a model (unsettled: counts in full)
    >>> folder.cleanup()
    """

    def __init__(self, path, epsilon=None, delta=0.0):
        self.path = str(Path(path).absolute())
        if epsilon is None:
            if not Path(self.path).exists():
                raise FileNotFoundError(
                    f"There is no ledger at {self.path}, and without epsilon none can be made; give "
                    "the budget, as in PrivacyLedger(path, epsilon=1.0)."
                )
            with self._transaction():
                return
        check_number("epsilon", epsilon, why="it is the budget", instead="write 1.0 for instance")
        check_number(
            "delta", delta, low_included=True, high=1.0, why="it is a probability",
            instead="write 0.0 for pure privacy",
        )
        with self._transaction(create=True) as connection:
            held = tuple(map(Fraction, self._amounts(connection)[:2]))
            wanted = Fraction(float(epsilon)), Fraction(float(delta))
            if held == (0, 0):
                connection.execute(
                    "UPDATE budget SET epsilon = ?, delta = ?", tuple(map(str, wanted))
                )
            elif held != wanted:
                raise ValueError(
                    f"epsilon={epsilon!r} and delta={delta!r} are not the budget of the ledger at "
                    f"{self.path}, which is epsilon={float(held[0])} and delta={float(held[1])}, and "
                    "a budget that can grow protects nobody; leave both out."
                )

    def reserve(self, epsilon, delta=0.0, label="release"):
        """Set a loss aside, before noise is drawn.

        Parameters
        ----------
        epsilon : float
            0 or more.
        delta : float, default=0.0
            In [0, 1].
        label : str, default="release"
            Public.

        Returns
        -------
        Reservation
            On disk when this returns. A context manager, which does nothing at its end.

        Raises
        ------
        BudgetExceededError
            If less than that is left.
        """
        loss = PrivacyLoss(float(epsilon), float(delta))
        return Reservation(self.path, self._enter(loss, label), loss.epsilon, loss.delta)

    def _enter(self, loss, label, kind=None):
        """Write an entry, and return its number; `kind` is given for one that is settled."""
        now = time.time()
        settled = (None,) * 4 if kind is None else (loss.epsilon, loss.delta, kind, now)
        with self._transaction() as connection:
            budget = self._amounts(connection)
            # sums are rounded once, as losses are: ten times 0.1 is 1
            spent = budget[2:]
            if loss.epsilon < math.inf:
                spent = spent[0] + _exact(loss.epsilon), spent[1] + _exact(loss.delta)
            if loss.epsilon == math.inf or any(map(_exceeds, spent, budget[:2])):
                left = _left(budget)
                raise BudgetExceededError(
                    f"{label!r} needs epsilon={loss.epsilon:.6g} and delta={loss.delta:.6g}, and the "
                    f"ledger at {self.path} has epsilon={left[0]:.6g} and delta={left[1]:.6g} left; "
                    "ask for less, or for other records."
                )
            self._spend(connection, spent)
            return connection.execute(
                "INSERT INTO entries (label, reserved_epsilon, reserved_delta, reserved_at, epsilon,"
                " delta, kind, settled_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (str(label), loss.epsilon, loss.delta, now, *settled),
            ).lastrowid

    def spend(self, epsilon, delta=0.0, label="release"):
        """Reserve and settle in one step: for a release that is about to be made elsewhere.

        Parameters
        ----------
        epsilon, delta, label
            As for `reserve`.

        Raises
        ------
        BudgetExceededError
            If less than that is left.
        """
        loss = PrivacyLoss(float(epsilon), float(delta))
        self._enter(loss, label, loss.kind)

    def remaining(self):
        """Return what is left.

        Returns
        -------
        epsilon, delta : float
        """
        with self._transaction() as connection:
            return _left(self._amounts(connection))

    def spent(self):
        """Return what was spent, unsettled reservations in full.

        Returns
        -------
        epsilon, delta : float
        """
        with self._transaction() as connection:
            return tuple(map(float, self._amounts(connection)[2:]))

    @property
    def budget(self):
        """(float, float) : epsilon and delta in all."""
        with self._transaction() as connection:
            return tuple(map(float, self._amounts(connection)[:2]))

    def history(self):
        """Return all entries in their order.

        Returns
        -------
        list of LedgerEntry
        """
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT id, label, reserved_epsilon, reserved_delta, epsilon, delta, kind,"
                " reserved_at, settled_at FROM entries ORDER BY id"
            ).fetchall()
        return [
            LedgerEntry(
                *row[:4], row[2] if row[4] is None else row[4], row[3] if row[5] is None else row[5],
                row[6] or "unsettled", *row[7:],
            )
            for row in rows
        ]

    def to_json(self):
        """Return budget and history as JSON.

        Returns
        -------
        str
        """
        epsilon, delta = self.budget
        return json.dumps({
            "epsilon": epsilon, "delta": delta, "neighbours": NEIGHBOURS,
            "entries": [vars(entry) for entry in self.history()],
        })

    @classmethod
    def from_json(cls, text, path):
        """Make a ledger with the budget and history that `to_json` returned.

        Parameters
        ----------
        text : str
        path : str or path-like
            Where no file is yet.

        Returns
        -------
        PrivacyLedger
            Reservations that were not settled stay so, and count in full.

        Raises
        ------
        FileExistsError
            If there is a file: entries that were counted twice, or lost, would make it untrue.
        """
        if Path(path).exists():
            raise FileExistsError(
                f"There is a file at {path}, whose entries would be lost or counted twice; give a "
                "path where none is."
            )
        given = json.loads(text)
        entries = [LedgerEntry(**entry) for entry in given["entries"]]
        ledger = cls(path, given["epsilon"], given["delta"])
        with ledger._transaction() as connection:
            for entry in entries:
                settled = entry.kind != "unsettled"
                connection.execute(
                    "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        entry.id, entry.label, entry.reserved_epsilon, entry.reserved_delta,
                        entry.epsilon if settled else None, entry.delta if settled else None,
                        entry.kind if settled else None, entry.reserved_at, entry.settled_at,
                    ),
                )
            total = (
                sum((_exact(entry.epsilon) for entry in entries), Fraction(0)),
                sum((_exact(entry.delta) for entry in entries), Fraction(0)),
            )
            ledger._spend(connection, total)
        return ledger

    def __repr__(self):
        return f"PrivacyLedger({self.path!r})"

    def __str__(self):
        (epsilon, delta), spent = self.budget, self.spent()
        lines = [
            f"epsilon {spent[0]:.6g} of {epsilon:.6g} and delta {spent[1]:.6g} of {delta:.6g} are spent"
        ]
        for entry in self.history():
            more = f" and delta {entry.delta:.6g}" if entry.delta else ""
            note = {
                "unsettled": " (unsettled: counts in full)", KINDS[0]: "",
                KINDS[1]: f" (ex-post, of {entry.reserved_epsilon:.6g} reserved)",
            }[entry.kind]
            lines.append(f"  {entry.epsilon:.6g}{more}: {entry.label}{note}")
        return "\n".join(lines)

    def __eq__(self, other):
        return isinstance(other, PrivacyLedger) and self.path == other.path

    def __hash__(self):
        return hash(self.path)

    @contextmanager
    def _transaction(self, create=False):
        """Yield a connection on which all or nothing is done, alone among all processes."""
        with closing(_connect(self.path, create)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                    _make_tables(connection, self.path, create)
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version != VERSION:
                    raise ValueError(
                        f"The ledger at {self.path} has version {version}, and this dpselect counts "
                        f"in version {VERSION} only; use the dpselect that wrote it, or a later one."
                    )
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @staticmethod
    def _amounts(connection):
        """Return the budget and what was spent: four exact numbers."""
        return tuple(map(Fraction, connection.execute("SELECT * FROM budget").fetchone()))

    @staticmethod
    def _spend(connection, spent):
        connection.execute(
            "UPDATE budget SET spent_epsilon = ?, spent_delta = ?", tuple(map(str, spent))
        )


@dataclass(frozen=True)
class Reservation:
    """A loss that was set aside, and counts as spent until it is settled at what came out.

    Attributes
    ----------
    path : str
        Of the ledger.
    id : int
    epsilon, delta : float
    """

    path: str
    id: int
    epsilon: float
    delta: float

    def settle(self, loss):
        """Count what came out in place of what was reserved.

        Parameters
        ----------
        loss : PrivacyLoss
            Of everything that was released under this reservation.

        Raises
        ------
        ValueError
            If the loss exceeds the reservation, or was settled before. The reservation then stays
            as it is.
        """
        if loss.neighbours != NEIGHBOURS:
            raise ValueError(
                f"The loss is for neighbours that {loss.neighbours}, and those of a ledger "
                f"{NEIGHBOURS}; state it for these."
            )
        if loss.epsilon > self.epsilon or loss.delta > self.delta:
            raise ValueError(
                f"A loss of epsilon={loss.epsilon:.6g} and delta={loss.delta:.6g} exceeds the "
                f"reservation of epsilon={self.epsilon:.6g} and delta={self.delta:.6g}, which was "
                "all that the budget was asked for; reserve the largest loss that may come out."
            )
        ledger = PrivacyLedger(self.path)
        with ledger._transaction() as connection:
            changed = connection.execute(
                "UPDATE entries SET epsilon = ?, delta = ?, kind = ?, settled_at = ?"
                " WHERE id = ? AND settled_at IS NULL",
                (loss.epsilon, loss.delta, loss.kind, time.time(), self.id),
            ).rowcount
            if not changed:
                raise ValueError(
                    f"Reservation {self.id} was settled before, and a release that is counted once "
                    "cannot be another; reserve again."
                )
            spent = ledger._amounts(connection)[2:]
            ledger._spend(connection, (
                spent[0] - _exact(self.epsilon) + _exact(loss.epsilon),
                spent[1] - _exact(self.delta) + _exact(loss.delta),
            ))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        # what was not settled may have come out, and stays reserved
        return None


def _exact(amount):
    return Fraction(float(amount))


def _exceeds(spent, total):
    return float(spent) > float(total)


def _left(budget):
    """Return what is left, rounded down, so that it can be reserved."""
    left = []
    for total, spent in zip(budget[:2], budget[2:]):
        amount = float(max(total - spent, Fraction(0)))
        while _exceeds(spent + _exact(amount), total):
            amount = math.nextafter(amount, 0.0)
        left.append(amount)
    return tuple(left)


def _connect(path, create):
    """Open the file, which the death of any process leaves as its last transaction did."""
    mode = "rwc" if create else "rw"
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None
    )
    try:
        if create:
            connection.execute("PRAGMA journal_mode=WAL")
        # a reservation is on the disk before its noise is drawn
        connection.execute("PRAGMA synchronous=FULL")
        if hasattr(connection, "setconfig"):  # Python 3.12 and later
            # the journal is tidied from time to time, not whenever a process is alone
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
    except sqlite3.DatabaseError:
        connection.close()
        raise _no_ledger(path) from None
    return connection


def _no_ledger(path):
    return ValueError(
        f"The file at {path} is no ledger, so nothing can be counted in it; give the path of one, or "
        "of no file."
    )


def _make_tables(connection, path, create):
    empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not create or not empty:
        raise _no_ledger(path)
    # one statement after another: a script would end the transaction
    for statement in filter(str.strip, SCHEMA.split(";")):
        connection.execute(statement)
    connection.execute("INSERT INTO budget VALUES ('0', '0', '0', '0')")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")

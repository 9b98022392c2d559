"""The file of a ledger: one budget and its entries, each change a transaction of SQLite.

SQLite orders the transactions of all processes of a machine, and undoes what a process had not
finished when it died. Amounts are exact sums: fractions, that are rounded once, when they are read. What
amounts of a loss count is said by the law of the ledger, which is written when the file is made.
"""

import json
import math
import os
import secrets
import sqlite3
import time
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path

from ..privacy import KINDS, PrivacyLoss
from ..processes import lock_that_forks_wait_for
from .blocks import block
from .composition import of_text, to_text

# marks an SQLite file as a ledger of this form
APPLICATION_ID, VERSION = 0x44505345, 4
# how the name of a file begins that is no ledger yet
UNFINISHED = ".dpselect-unfinished-"
# a process waits this long for the others, in seconds
PATIENCE = 60.0
# by what share amounts that are the same may differ
DUST = Fraction(1, 2**45)
SCHEMA = """
CREATE TABLE budget (epsilon TEXT NOT NULL, delta TEXT NOT NULL, adjacency TEXT NOT NULL,
                     law TEXT NOT NULL, spent TEXT NOT NULL, spent_delta TEXT NOT NULL);
CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, label TEXT NOT NULL,
                      user TEXT NOT NULL,
                      reserved_epsilon REAL NOT NULL, reserved_delta REAL NOT NULL,
                      epsilon REAL, delta REAL, kind TEXT, seeded INTEGER,
                      reserved_at REAL NOT NULL, committed_at REAL, statement TEXT NOT NULL,
                      counted REAL NOT NULL, counted_delta REAL NOT NULL);
"""
COLUMNS = (
    "id", "label", "user", "reserved_epsilon", "reserved_delta", "epsilon", "delta", "kind", "seeded",
    "reserved_at", "committed_at", "statement",
)

# A fork waits until no other thread has a file open. What SQLite knows of its locks would be copied
# with an open connection, and the child would hold none of them: its commits could be lost.
_at_rest = lock_that_forks_wait_for()


@block
def transaction(path):
    """Yield the BudgetFile of a ledger, on which all or nothing is done, alone among all processes."""
    try:
        with _at_rest, closing(_connect(path, "rw")) as connection:
            # (what is not committed when the connection is closed is undone)
            connection.execute("BEGIN IMMEDIATE")
            _check_form(connection, path)
            yield BudgetFile(connection, path)
            connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        # a locked or full disk is no wrong file
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise _no_ledger(path) from None


@block
def new_file(path, epsilon, delta, adjacency, law):
    """Make a ledger at `path`, and yield its BudgetFile in the transaction that makes it.

    The file gets its name when it is whole, and only if no file has it, before and after the block:
    whatever is at `path`, an empty file too, was put there by somebody, and may be what is left of
    a ledger.
    """
    path = os.path.realpath(path)  # what a symbolic link stands for
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"There is no folder for a ledger at {path}, and none is made; give a path in one."
        )
    _refuse_to_replace(path)
    made = os.path.join(folder, f"{UNFINISHED}{secrets.token_hex(16)}")
    try:
        # SQLite makes the file: to close it here would end the locks of other threads
        with _at_rest, closing(_connect(made, "rwc")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            # one statement after another: a script would end the transaction
            for statement in filter(str.strip, SCHEMA.split(";")):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO budget VALUES (?, ?, ?, ?, '0', '0')",
                (str(exact(epsilon)), str(exact(delta)), str(adjacency), to_text(law)),
            )
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            yield BudgetFile(connection, path)
            connection.execute("COMMIT")
            # readers and one writer do not wait for each other; a property of the file from now on
            connection.execute("PRAGMA journal_mode = WAL")
        _refuse_to_replace(path)
        _give_name(made, path)
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(made + ending).unlink(missing_ok=True)


class BudgetFile:
    """What can be done within one transaction."""

    def __init__(self, connection, path):
        self._connection = connection
        self.path = path

    @property
    def budget(self):
        """(Fraction, Fraction) : epsilon and delta in all."""
        return tuple(map(Fraction, self._row("SELECT epsilon, delta FROM budget")))

    @property
    def adjacency(self):
        """str : The adjacency that all losses are for."""
        return self._row("SELECT adjacency FROM budget")[0]

    @property
    def law(self):
        """Sum or RenyiFilter : What counts of a loss, and how much of it there may be."""
        law = of_text(self._row("SELECT law FROM budget")[0])
        if not law.is_of_budget(*map(float, self.budget)):
            raise ValueError(
                f"The ledger at {self.path} was changed from outside: its law is not that of its "
                "budget, so nothing can be said of what was spent; take a copy from before."
            )
        return law

    @property
    def spent(self):
        """(Fraction, Fraction) : The amounts that count, with what is reserved."""
        return tuple(map(Fraction, self._row("SELECT spent, spent_delta FROM budget")))

    def affords(self, loss):
        """Tell whether a loss fits; sums are rounded once, as losses are: ten times 0.1 is 1."""
        if loss.epsilon == math.inf:
            return False
        law = self.law
        return all(
            _fits(spent + exact(more), exact(total))
            for spent, more, total in zip(self.spent, law.amounts(loss), law.limits)
        )

    @property
    def left(self):
        """(float, float) : The epsilon and the delta that can be reserved, rounded down."""
        law = self.law
        return law.reservable(tuple(map(_left, map(exact, law.limits), self.spent)))

    def enter(self, label, user, loss, committed):
        """Write an entry of what is reserved, or committed at once, and return its id and token."""
        token, now, counted = secrets.token_hex(16), time.time(), self.law.amounts(loss)
        came_out = (*_committed(loss), now) if committed else (None,) * 5
        row = self._connection.execute(
            "INSERT INTO entries (token, label, user, reserved_epsilon, reserved_delta, reserved_at,"
            " statement, counted, counted_delta, epsilon, delta, kind, seeded, committed_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (token, str(label), str(user), float(loss.epsilon), float(loss.delta), now,
             _statement(loss), *counted, *came_out),
        ).lastrowid
        self._add(*counted)
        return row, token

    def commit(self, row, token, loss):
        """Put what came out in the place of what was reserved, once, and no more than that."""
        found = self._connection.execute(
            "SELECT reserved_epsilon, reserved_delta, committed_at, counted, counted_delta FROM entries"
            " WHERE id = ? AND token = ?", (row, token)
        ).fetchone()
        if found is None:
            raise ValueError(
                f"The ledger at {self.path} has no such reservation, so it cannot count what came "
                "out; commit it in the ledger where it was made."
            )
        epsilon, delta, committed_at, *counted = found
        if committed_at is not None:
            raise ValueError(
                f"Reservation {row} was committed before, and a release that is counted once "
                "cannot be another; reserve again."
            )
        law, came_out = self.law, counted
        if loss.kind == KINDS[0] or law.counts_outcomes:
            came_out = law.amounts(loss)
        more = [exact(new) - exact(old) for new, old in zip(came_out, counted)]
        # (parts of a very large loss may round up, by less than amounts are rounded up)
        over = any(each > DUST * exact(old) for each, old in zip(more, counted))
        if loss.epsilon > epsilon or loss.delta > delta or over:
            raise ValueError(
                f"A loss of epsilon={loss.epsilon:.6g} and delta={loss.delta:.6g} exceeds the "
                f"reservation of epsilon={epsilon:.6g} and delta={delta:.6g}, which was "
                "all that the budget was asked for; reserve the largest loss that may come out."
            )
        self._connection.execute(
            "UPDATE entries SET epsilon = ?, delta = ?, kind = ?, seeded = ?, committed_at = ?,"
            " counted = ?, counted_delta = ? WHERE id = ?",
            (*_committed(loss), time.time(), *came_out, row),
        )
        if loss.kind == KINDS[0]:  # else only what was reserved holds for all outcomes
            self._connection.execute(
                "UPDATE entries SET statement = ? WHERE id = ?", (_statement(loss), row)
            )
        self._add(*more)

    def copy(self, entry):
        """Write an entry of another file as it is, by its values in COLUMNS."""
        values = dict(zip(COLUMNS, entry))
        counted = self.law.amounts(counted_loss(values, self.law))
        marks = ", ".join("?" * (len(COLUMNS) + 3))
        self._connection.execute(
            f"INSERT INTO entries (token, counted, counted_delta, {', '.join(COLUMNS)})"
            f" VALUES ({marks})", (secrets.token_hex(16), *counted, *entry),
        )
        self._add(*counted)

    @property
    def entries(self):
        """list of tuple : All entries in their order, by COLUMNS."""
        return self._connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM entries ORDER BY id"
        ).fetchall()

    def _add(self, epsilon, delta):
        spent = self.spent
        self._connection.execute(
            "UPDATE budget SET spent = ?, spent_delta = ?",
            (str(spent[0] + exact(epsilon)), str(spent[1] + exact(delta))),
        )

    def _row(self, query):
        return self._connection.execute(query).fetchone()


def counted_loss(values, law):
    """Return the loss of which a law counts the amounts, by the values of an entry in COLUMNS."""
    if values["kind"] == KINDS[1] and law.counts_outcomes:
        return PrivacyLoss(values["epsilon"], values["delta"])
    return PrivacyLoss.from_dict(json.loads(values["statement"]))


def exact(amount):
    """Return a number as a fraction."""
    return amount if isinstance(amount, Fraction) else Fraction(float(amount))


def _committed(loss):
    return float(loss.epsilon), float(loss.delta), loss.kind, int(loss.seeded)


def _statement(loss):
    """Return how a loss is made up, and what is known of its parts, as text."""
    return json.dumps(loss.to_dict())


def _left(total, spent):
    """Return the largest amount, about, that can be added without exceeding the total."""
    amount = float(max(total - spent, Fraction(0)))
    while amount > 0 and not _fits(spent + exact(amount), total):
        amount = math.nextafter(amount, 0.0)
    return amount


def _fits(amount, total):
    # what is less needs no rounding, and what rounds to infinity would be an error
    return amount <= total or (amount < 2 * total and float(amount) <= float(total))


def _connect(path, mode):
    _refuse_second_name(path)
    try:
        connection = sqlite3.connect(
            f"{Path(path).as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None
        )
    except sqlite3.OperationalError:
        raise FileNotFoundError(
            f"The ledger at {path} is gone or cannot be written, so nothing can be counted; restore "
            "it before anything is released."
        ) from None
    try:
        # a reservation is on the disk before its noise is drawn
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_to_replace(path):
    left = [path + ending for ending in ("-wal", "-journal") if os.path.exists(path + ending)]
    # asked for last: another process may have made it in between
    if os.path.exists(path):
        raise FileExistsError(
            f"There is a file at {path}, whose entries would be lost or counted twice; give a path "
            "where none is."
        )
    if left:
        raise ValueError(
            f"There is no ledger at {path} but there is {left[0]}, which belongs to one that was lost, "
            "and a new one would forget what was spent; restore the ledger, or give another path."
        )


def _give_name(made, path):
    """Give a whole file its name, unless another file has it."""
    try:
        os.link(made, path)
        os.unlink(made)
    except FileExistsError:
        raise
    except OSError:
        # no hard links here: who comes in between finds an empty file, and is refused
        open(path, "x").close()
        os.replace(made, path)
    if hasattr(os, "O_DIRECTORY"):
        # the name is on the disk before anything is spent
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _refuse_second_name(path):
    """Refuse a hard link: SQLite keeps what is not yet in a file beside it, under its name."""
    try:
        names = os.stat(path).st_nlink
        if names > 1:
            _end_unfinished_names(path)
            names = os.stat(path).st_nlink
    except OSError:
        return
    if names > 1:
        raise ValueError(
            f"The file of the ledger at {path} has {names} names (hard links), and whoever writes "
            "under one does not see what is written under another; remove all but one, or use a "
            "symbolic link."
        )


def _end_unfinished_names(path):
    """Take away the name under which this file was made; its maker does that too, or has died."""
    for other in Path(os.path.realpath(path)).parent.glob(f"{UNFINISHED}*"):
        with suppress(FileNotFoundError):
            if other.samefile(path):
                other.unlink(missing_ok=True)


def _check_form(connection, path):
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise _no_ledger(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        raise ValueError(
            f"The ledger at {path} has version {version}, and this dpselect counts in version "
            f"{VERSION} only; use the dpselect that wrote it."
        )


def _no_ledger(path):
    return ValueError(
        f"The file at {path} is no ledger, or one that was cut, so nothing can be counted in it; "
        "restore it, or give the path of a ledger or of no file."
    )

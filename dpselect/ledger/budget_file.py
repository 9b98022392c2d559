"""The file of a ledger: one budget and its entries; each change is one SQLite transaction.

SQLite orders the transactions of all processes of a machine, and undoes what a process had not
finished when it died. Amounts add up as the decimals that they print as, in exact fractions. What
amounts of a loss count is said by the law of the ledger, which is written when the file is made. A file
with public parts has a version of its own, which says of each entry what part it is about.
"""

import json
import math
import os
import secrets
import time
from fractions import Fraction
from pathlib import Path

from ..accounting.filters import from_text, to_text
from ..accounting.privacy_loss import KINDS, PrivacyLoss
from .access import UNFINISHED, check_is_file, making, no_ledger, reading, writing
from .amounts import exact, exact_sum, fits, left_of, times
from .open_blocks import block
from .record_parts import WHOLE, of_part, together

# application id that marks an SQLite file as a ledger
APPLICATION_ID, VERSION, VERSION_WITH_PARTS = 0x44505345, 5, 6
# relative rounding error of equal amounts
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
CREATE INDEX amounts ON entries (counted, counted_delta);
"""
SCHEMA_OF_PARTS = """
CREATE TABLE parts (place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
ALTER TABLE entries ADD COLUMN part TEXT NOT NULL DEFAULT '';
"""
COLUMNS = (
    "id",
    "label",
    "user",
    "reserved_epsilon",
    "reserved_delta",
    "epsilon",
    "delta",
    "kind",
    "seeded",
    "reserved_at",
    "committed_at",
    "statement",
    "part",
)
# path -> state of the file when this process last verified its sums
_seen: dict[str, tuple[str, str, int | None]] = {}


@block
def transaction(path):
    """Yield the BudgetFile of a ledger in an exclusive, atomic transaction."""
    with writing(path) as connection:
        _check_form(connection, path)
        yield BudgetFile(connection, path)
        connection.execute("COMMIT")


@block
def snapshot(path):
    """Yield a snapshot of the BudgetFile of a ledger, for reading."""
    with reading(path) as connection:
        _check_form(connection, path)
        yield BudgetFile(connection, path)


@block
def new_file(path, epsilon, delta, adjacency, law, parts=()):
    """Create a ledger at `path`, and yield its BudgetFile in the transaction that creates it.

    The file gets its name when it is whole, and only if no file has it, before and after the block: any
    file at `path`, even an empty one, may be the remains of a ledger.
    """
    check_is_file(path)
    # SQLite keeps its journal beside the real file, not beside a symbolic link
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"There is no folder for a ledger at {path}, and none is made; give a path in one."
        )
    _refuse_to_replace(path)
    made = os.path.join(folder, f"{UNFINISHED}{secrets.token_hex(16)}")
    try:
        with making(made, path) as connection:
            # not executescript(), which would commit the transaction
            for statement in filter(str.strip, (SCHEMA + SCHEMA_OF_PARTS * bool(parts)).split(";")):
                connection.execute(statement)
            if parts:
                connection.executemany("INSERT INTO parts (name) VALUES (?)", zip(parts))
            connection.execute(
                "INSERT INTO budget VALUES (?, ?, ?, ?, '0', '0')",
                (str(exact(epsilon)), str(exact(delta)), str(adjacency), to_text(law)),
            )
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION_WITH_PARTS if parts else VERSION}")
            yield BudgetFile(connection, path)
            connection.execute("COMMIT")
            # so that readers and a writer do not block each other; it is a lasting property of the file
            connection.execute("PRAGMA journal_mode = WAL")
        _refuse_to_replace(path)
        _give_name(made, path)
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(made + ending).unlink(missing_ok=True)


class BudgetFile:
    """Operations on a ledger within one transaction."""

    def __init__(self, connection, path):
        self._connection = connection
        self.path = path

    @property
    def budget(self):
        """(Fraction, Fraction) : Total epsilon and delta."""
        budget = self._amounts("SELECT epsilon, delta FROM budget")
        if not (0 < budget[0] and 0 <= budget[1] < 1):
            raise self._was_changed("there is no such budget as it states")
        return budget

    @property
    def adjacency(self):
        """str : The adjacency that all losses are for."""
        return self._row("SELECT adjacency FROM budget")[0]

    @property
    def law(self):
        """Sum or RenyiFilter : Filter that decides how losses count, and when the budget is spent."""
        try:
            law = from_text(self._row("SELECT law FROM budget")[0])
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self._was_changed("how its losses add up cannot be read") from None
        if not law.is_of_budget(*map(float, self.budget)):
            raise self._was_changed("its law is not that of its budget")
        return law

    @property
    def parts(self):
        """tuple of str : Names of the public parts; empty if there are none."""
        if self._row("PRAGMA user_version")[0] != VERSION_WITH_PARTS:
            return ()
        found = self._connection.execute("SELECT name FROM parts ORDER BY place").fetchall()
        return tuple(name for (name,) in found)

    def spent(self, part=WHOLE):
        """Return the amounts that count for a part, or all records, reservations included: fractions."""
        self.check_sums()
        if part != WHOLE:
            return of_part(self._sums(), part)
        return self._amounts("SELECT spent, spent_delta FROM budget")

    def check_sums(self):
        """Refuse a file whose stated sums are not those of its entries."""
        state = self._state()
        if _seen.get(self.path) != state:
            spent, law = self._amounts("SELECT spent, spent_delta FROM budget"), self.law
            if spent != together(self._sums()):
                raise self._was_changed("what it states to be spent is not the sum of its entries")
            last = self._row("SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'entries')")[0]
            if state[-1] != last:
                raise self._was_changed("its last entries are missing")
            if not all(map(fits, spent, map(exact, law.limits))):
                raise self._was_changed("more is spent than its budget")
            _seen[self.path] = state

    def _state(self):
        return self._row("SELECT spent, spent_delta, (SELECT max(id) FROM entries) FROM budget")

    def _sums(self):
        """Return the sums of the amounts of each part, and of what is about all records."""
        parts = self.parts
        if not parts:
            return {WHOLE: self._sum_of("")}
        part_of = "SELECT DISTINCT part FROM entries"
        if not {WHOLE, *parts}.issuperset(part for (part,) in self._connection.execute(part_of)):
            raise self._was_changed("an entry is about a part that it does not have")
        return {part: self._sum_of("WHERE part = ?", part) for part in (WHOLE, *parts)}

    def _sum_of(self, which, *values):
        # amounts repeat, so let SQLite group them, from the index alone
        found = self._connection.execute(
            f"SELECT counted, counted_delta, count(*) FROM entries {which}"
            " GROUP BY counted, counted_delta",
            values,
        ).fetchall()
        if not all(
            isinstance(amount, (int, float)) and 0 <= amount < math.inf
            for amounts in found
            for amount in amounts
        ):
            raise self._was_changed("an entry has an amount that no loss has")
        *both, counts = zip(*found) if found else ((), (), ())
        return tuple(exact_sum(amounts, counts) for amounts in both)

    def _amounts(self, query):
        try:
            return tuple(map(Fraction, self._row(query)))
        except (ValueError, TypeError, ZeroDivisionError):
            raise self._was_changed("an amount in it is no number") from None

    def _was_changed(self, why):
        return ValueError(
            f"The ledger at {self.path} was changed from outside: {why}, so nothing can be said of what "
            "was spent; take a copy from before."
        )

    def affords(self, loss, part=WHOLE):
        """Return whether a loss about a part, or all records, fits into the remaining budget."""
        return self.carries(loss, part) >= 1

    def carries(self, loss, part=WHOLE):
        """Return how often a loss fits into the remaining budget; inf for a loss of 0."""
        if loss.epsilon == math.inf:
            return 0
        law = self.law
        return min(
            times(exact(more), exact(total), spent)
            for spent, more, total in zip(self.spent(part), law.amounts(loss), law.limits)
        )

    def left(self, part=WHOLE):
        """Return the epsilon and the delta that can be reserved for a part, rounded down: floats."""
        law = self.law
        return law.reservable(tuple(map(left_of, map(exact, law.limits), self.spent(part))))

    def enter(self, label, user, loss, committed, part=WHOLE):
        """Add an entry, reserved or committed at once, and return its id and token."""
        token, now, counted = secrets.token_hex(16), time.time(), self.law.amounts(loss)
        spent = self.spent()
        came_out = (*_committed(loss), now) if committed else (None,) * 5
        row = self._connection.execute(
            "INSERT INTO entries (token, label, user, reserved_epsilon, reserved_delta, reserved_at,"
            " statement, counted, counted_delta, epsilon, delta, kind, seeded, committed_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                token,
                str(label),
                str(user),
                float(loss.epsilon),
                float(loss.delta),
                now,
                _statement(loss),
                *counted,
                *came_out,
            ),
        ).lastrowid
        if part != WHOLE:
            self._connection.execute("UPDATE entries SET part = ? WHERE id = ?", (part, row))
        self._add(spent, counted)
        return row, token

    def commit(self, row, token, loss):
        """Replace a reservation by the loss of the outcome, once, and by no larger one."""
        found = self._connection.execute(
            "SELECT reserved_epsilon, reserved_delta, committed_at, counted, counted_delta FROM entries"
            " WHERE id = ? AND token = ?",
            (row, token),
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
        spent, more = self.spent(), [exact(new) - exact(old) for new, old in zip(came_out, counted)]
        # parts of a very large loss may round up, by less than the tolerance of amounts
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
        if loss.kind == KINDS[0]:  # of an ex-post loss, only the reservation holds for all outcomes
            self._connection.execute(
                "UPDATE entries SET statement = ? WHERE id = ?", (_statement(loss), row)
            )
        self._add(spent, more)

    def copy(self, entry):
        """Add an entry of another file unchanged, given by its values in COLUMNS."""
        values = dict(zip(COLUMNS, entry))
        spent, counted = self.spent(), self.law.amounts(counted_loss(values, self.law))
        names = COLUMNS if self.parts else COLUMNS[:-1]
        marks = ", ".join("?" * (len(names) + 3))
        self._connection.execute(
            f"INSERT INTO entries (token, counted, counted_delta, {', '.join(names)}) VALUES ({marks})",
            (secrets.token_hex(16), *counted, *entry[: len(names)]),
        )
        self._add(spent, counted)

    @property
    def counted(self):
        """list of (float, float) : The amounts by which each entry counts, in order."""
        return self._connection.execute(
            "SELECT counted, counted_delta FROM entries ORDER BY id"
        ).fetchall()

    @property
    def entries(self):
        """list of tuple : All entries in order, by COLUMNS."""
        names = COLUMNS if self.parts else (*COLUMNS[:-1], "''")
        return self._connection.execute(f"SELECT {', '.join(names)} FROM entries ORDER BY id").fetchall()

    @property
    def statements(self):
        """list of str : The statements of all entries in order."""
        found = self._connection.execute("SELECT statement FROM entries ORDER BY id").fetchall()
        return [statement for (statement,) in found]

    def _add(self, spent, more):
        """Update the sums for a new or changed entry."""
        spent = [old + exact(new) for old, new in zip(spent, more)]
        if self.parts:  # an entry about a part changes the larger sum, or not
            spent = together(self._sums())
        self._connection.execute("UPDATE budget SET spent = ?, spent_delta = ?", list(map(str, spent)))
        _seen[self.path] = self._state()  # after a rollback the state differs, and is verified again

    def _row(self, query):
        return self._connection.execute(query).fetchone()


def how_losses_add_up(ledger):
    """Return the meaning of the amounts of a ledger, and the epsilon spent after each entry."""
    with snapshot(ledger.path) as file:
        law, counted, parts = file.law, file.counted, [row[-1] for row in file.entries]
    so_far, sums = [], {part: (0.0, 0.0) for part in (WHOLE, *parts)}
    for part, amounts in zip(parts, counted):
        sums[part] = tuple(map(sum, zip(sums[part], amounts)))
        so_far.append(law.guarantee(of_part(sums, ledger.part_name))[0])
    return law.explained, so_far


def counted_loss(values, law):
    """Return the loss whose amounts count, given the values of an entry in COLUMNS."""
    if values["kind"] == KINDS[1] and law.counts_outcomes:
        return PrivacyLoss(values["epsilon"], values["delta"])
    return PrivacyLoss.from_dict(json.loads(values["statement"]))


def _committed(loss):
    return float(loss.epsilon), float(loss.delta), loss.kind, int(loss.seeded)


def _statement(loss):
    """Return the statement of a loss, with its parts and events, as text."""
    return json.dumps(loss.to_dict())


def _refuse_to_replace(path):
    left = [path + ending for ending in ("-wal", "-journal") if os.path.exists(path + ending)]
    # check this last: another process may have created the file in between
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
    """Give a complete file its name, unless another file has it."""
    try:
        os.link(made, path)
        os.unlink(made)
    except FileExistsError:
        raise
    except OSError:
        # no hard links on this file system: a process that comes in between finds an empty file
        open(path, "x").close()
        os.replace(made, path)
    if hasattr(os, "O_DIRECTORY"):
        # sync the directory, so that the name is on disk before anything is spent
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _check_form(connection, path):
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise no_ledger(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (VERSION, VERSION_WITH_PARTS):
        raise ValueError(
            f"The ledger at {path} has version {version}, and this dpselect counts in version "
            f"{VERSION} and, with parts, {VERSION_WITH_PARTS} only; use the dpselect that wrote it."
        )

"""Connections to the file of a ledger, for writing and reading, with readable errors."""

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from ..utils.processes import lock_that_forks_wait_for
from .open_blocks import block

# prefix of the temporary name of a new file
UNFINISHED = ".dpselect-unfinished-"
# timeout for locks of other processes, in seconds
PATIENCE = 60.0
# resolution of file modification times, in seconds
TICK = 0.05
# A fork waits until no other thread has a file open: the child would inherit an open connection
# without its locks, so its commits could be lost.
_fork_lock = lock_that_forks_wait_for()


class LedgerAccessError(OSError):
    """Raised if the file of a ledger cannot be read or written now; the message has no data."""


@block
def making(path, name):
    """Yield an exclusive connection to a new file, which gets its name as a ledger later."""
    # let SQLite create the file: closing a descriptor here would release locks of other threads
    with _explained(name, "made"), _fork_lock, closing(_connect(path, "rwc")) as connection:
        _begin_to_write(connection)
        yield connection


@block
def writing(path):
    """Yield an exclusive connection that writes a ledger; uncommitted changes are rolled back."""
    _refuse_what_is_no_ledger(path)
    with _explained(path, "written"), _fork_lock, closing(_connect(path, "rw")) as connection:
        _begin_to_write(connection)
        yield connection


def _begin_to_write(connection):
    # durability: a reservation must be on disk before its noise is drawn
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")


@block
def reading(path):
    """Yield a connection that reads a snapshot of a ledger, while others may write it."""
    _refuse_what_is_no_ledger(path)
    with _explained(path, "read"), _fork_lock:
        if os.access(path, os.W_OK) and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):
            with closing(_connect(path, "rw")) as connection:
                connection.execute("BEGIN")
                yield connection
        else:
            with closing(_read_only(path)) as connection:
                yield connection


def _read_only(path):
    """Return a connection to a file where this process can create no files beside it.

    While a process has the file open, SQLite keeps what is not yet in it in a second file. If there is
    none before and after the file is copied into memory, and the file was not changed in between, then
    the copy is consistent.
    """
    for _ in range(20):
        if any(os.path.exists(os.path.realpath(path) + ending) for ending in ("-wal", "-journal")):
            connection = _connect(path, "ro")
            connection.execute("BEGIN")
            return connection
        before = _state(path)
        # only then another change would have changed the modification time
        if time.time_ns() - before[0] > TICK * 1e9:
            copy = sqlite3.connect(":memory:", isolation_level=None)
            with closing(_connect(path, "ro&immutable=1")) as connection:
                connection.backup(copy)
            if _state(path) == before:
                return copy
            copy.close()
        time.sleep(TICK)
    raise LedgerAccessError(
        f"The ledger at {path} is written all the time, and this user may not write in its folder, "
        "so nothing certain could be read; try again, or have its owner give that right."
    )


def _state(path):
    found = os.stat(path)
    wal = os.path.exists(os.path.realpath(path) + "-wal")
    return found.st_mtime_ns, found.st_size, found.st_ino, wal


def _connect(path, mode):
    return sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None
    )


@block
def _explained(path, what):
    """Translate errors of SQLite into sentences."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise LedgerAccessError(_why(path, what, error)) from None
    except sqlite3.DatabaseError:
        raise no_ledger(path) from None


def _why(path, what, error):
    name = error.sqlite_errorname or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return (
            f"Another process has held the ledger at {path} for {PATIENCE:.0f} seconds, so nothing was "
            f"{what}; try again when it is done."
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return (
            f"The disk of the ledger at {path} is full or fails ({error}), so nothing more was {what}; "
            "make room for it before anything else is released."
        )
    if what == "made":
        return (
            f"No ledger can be made at {path}, because its folder cannot be written ({error}); give a "
            "path in a folder that can."
        )
    if what == "read":
        return (
            f"The ledger at {path} cannot be read by this user ({error}); have its owner give the right "
            "to read it, and, if a process that wrote it was killed, open it once."
        )
    return (
        f"The ledger at {path} cannot be written by this user ({error}), so nothing can be counted; "
        "have its owner give the right to write the file and its folder, where SQLite keeps what is not "
        "yet in the file."
    )


def check_is_file(path):
    """Refuse a path that cannot be a file."""
    if "\0" in path:
        raise ValueError(
            f"The path {path!r} has a NUL in it, so no file can have that name; leave it out."
        )
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(
            f"There is a folder or a device at {path}, and a ledger is a file; give the path of a file, "
            "such as patients.ledger in a folder of your own."
        )


def _refuse_what_is_no_ledger(path):
    check_is_file(path)
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"The ledger at {path} is gone, so nothing can be counted; restore it before anything is "
            "released."
        )
    _refuse_second_name(path)


def _refuse_second_name(path):
    """Refuse a hard link: SQLite keeps its write-ahead log under the name of the file."""
    try:
        names = os.stat(path).st_nlink
        if names > 1:
            _remove_temporary_name(path)
            names = os.stat(path).st_nlink
    except OSError:
        return
    if names > 1:
        raise ValueError(
            f"The file of the ledger at {path} has {names} names (hard links), and whoever writes "
            "under one does not see what is written under another; remove all but one, or use a "
            "symbolic link."
        )


def _remove_temporary_name(path):
    """Remove the temporary name of this file: its maker removes it too, unless it has died."""
    for other in Path(os.path.realpath(path)).parent.glob(f"{UNFINISHED}*"):
        with suppress(FileNotFoundError):
            if other.samefile(path):
                other.unlink(missing_ok=True)


def no_ledger(path):
    """Return the error for a file that is no ledger."""
    return ValueError(
        f"The file at {path} is no ledger, or one that was cut, so nothing can be counted in it; "
        "restore it, or give the path of a ledger or of no file."
    )

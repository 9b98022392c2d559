"""``python -m dpselect ledger FILE``: what was spent on a data set, and what is left."""

import math
import sqlite3
from datetime import UTC, datetime

from ..ledger import PrivacyLedger
from .messages import CommandError, name_of, printable

HEAD = ("", "at (UTC)", "epsilon", "delta", "of reserved", "kind", "for")


def open_ledger(path, epsilon=None, delta=0.0):
    """Return the ledger at a path.

    Parameters
    ----------
    path : str
    epsilon : float, default=None
        Given, makes a new ledger.
    delta : float, default=0.0

    Raises
    ------
    CommandError
        If there is none, or it cannot be made or read.
    """
    try:
        return PrivacyLedger(path, epsilon, delta)
    except FileNotFoundError:
        raise CommandError(
            f"There is no ledger at {name_of(path)}; make one with its budget, as in python -m "
            "dpselect ledger FILE --epsilon 3.0."
        ) from None
    except (ValueError, OSError, sqlite3.OperationalError) as error:
        said = f": {error}" if isinstance(error, ValueError) else "."
        raise CommandError(printable(f"{name_of(path)} cannot serve as a ledger{said}")) from None


def to_text(ledger):
    """Return a table of a ledger.

    Parameters
    ----------
    ledger : PrivacyLedger

    Returns
    -------
    str
    """
    (epsilon, delta), spent, left = ledger.budget, ledger.spent(), ledger.remaining()
    rows = [HEAD, *(_row(entry) for entry in ledger.history())]
    widths = [max(len(row[j]) for row in rows) for j in range(len(HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if name in ("at (UTC)", "kind", "for") else cell.rjust(width)
            for name, cell, width in zip(HEAD, row, widths)
        ).rstrip()
        for row in rows
    ]
    if len(rows) == 1:
        lines = ["Nothing was spent yet."]
    return "\n".join([
        printable(f"{ledger.path}, adjacency: {ledger.adjacency}"), "", *lines, "",
        f"spent: epsilon {spent[0]:.6g} of {epsilon:.6g}, delta {spent[1]:.6g} of {delta:.6g}",
        f"left:  epsilon {left[0]:.6g}, delta {left[1]:.6g}",
    ])


def _row(entry):
    at = datetime.fromtimestamp(entry.reserved_at, UTC).strftime("%Y-%m-%d %H:%M")
    more = "" if math.isclose(entry.epsilon, entry.reserved_epsilon) else f"{entry.reserved_epsilon:.6g}"
    kind = entry.kind + (", seeded" if entry.seeded else "")
    return (
        str(entry.id), at, f"{entry.epsilon:.6g}", f"{entry.delta:.6g}", more, kind,
        printable(entry.label),
    )

"""``dpselect ledger``: the spent and the remaining budget of a data set."""

import math
import os
from contextlib import ExitStack, contextmanager

from ..accounting.privacy_loss import PrivacyLoss
from ..exceptions import BudgetExceededError
from ..ledger import PrivacyLedger, how_losses_add_up
from ..records.persons import adjacency_of
from .messages import CommandError, name_of, printable

HEAD = ("", "at (UTC)", "by", "epsilon", "delta", "of reserved", "kind", "for")


def open_ledger(path, label=None, user=None):
    """Return the ledger at a path, for releases with a label, by a user."""
    return _ledger(path, label=label or "", user=user)


def create_ledger(path, epsilon, delta, persons=False, composition=None):
    """Create a ledger, for records or for persons with all rows."""
    if os.path.exists(path):
        raise CommandError(
            f"There is a file at {name_of(path)} already, and a budget that can change protects "
            "nobody; give "
            "another name."
        )
    return _ledger(path, epsilon, delta, adjacency=adjacency_of(persons), composition=composition)


@contextmanager
def charged_to(ledger):
    """Charge a release to a ledger, or to none."""
    with ExitStack() as stack:
        try:
            if ledger is not None:
                stack.enter_context(ledger)
        # the file that publishes the ledger to other processes cannot be written
        except OSError as error:
            raise CommandError(printable(str(error))) from None
        try:
            yield
        except BudgetExceededError as error:
            # the message has the loss and the ledger, and nothing of the records
            raise CommandError(printable(str(error))) from None


def spend(ledger, epsilon, delta, label, rows_per_person=None):
    """Charge a release that was made elsewhere: in the ledger's unit, or about rows of persons."""
    loss = PrivacyLoss(epsilon, delta, label=label, adjacency=ledger.adjacency)
    if rows_per_person is not None:
        if loss.adjacency.unit == "record":
            raise CommandError(
                "--rows-per-person means nothing to a budget of records; leave it out, or make a ledger "
                "with --persons."
            )
        loss = PrivacyLoss(epsilon, delta, label=label).for_persons(rows_per_person)
    try:
        ledger.spend(loss.epsilon, loss.delta, label=loss.label, adjacency=loss.adjacency)
    except BudgetExceededError as error:
        raise CommandError(printable(str(error))) from None


def _ledger(path, *budget, label="", **how):
    try:
        return PrivacyLedger(path, *budget, label=label, **how)
    except FileNotFoundError:
        if budget:
            raise CommandError(f"The folder of {name_of(path)} does not exist.") from None
        raise CommandError(
            f"There is no ledger at {name_of(path)}; make one with its budget, as in dpselect ledger "
            "create "
            "FILE --epsilon 3.0."
        ) from None
    except (ValueError, OSError) as error:
        raise CommandError(printable(f"{name_of(path)} cannot serve as a ledger: {error}")) from None


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
            cell.ljust(width) if name in ("at (UTC)", "by", "kind", "for") else cell.rjust(width)
            for name, cell, width in zip(HEAD, row, widths)
        ).rstrip()
        for row in rows
    ]
    if len(rows) == 1:
        lines = ["Nothing was spent yet."]
    return "\n".join(
        [
            printable(f"{ledger.path}, adjacency: {ledger.adjacency}"),
            "",
            *lines,
            "",
            f"spent: epsilon {spent[0]:.6g} of {epsilon:.6g}, delta {spent[1]:.6g} of {delta:.6g}",
            f"left:  epsilon {left[0]:.6g}, delta {left[1]:.6g}",
            *filter(None, [how_losses_add_up(ledger)[0]]),
        ]
    )


def _row(entry):
    at = entry.reserved_at.strftime("%Y-%m-%d %H:%M")
    more = "" if math.isclose(entry.epsilon, entry.reserved_epsilon) else f"{entry.reserved_epsilon:.6g}"
    kind = entry.kind + (", seeded" if entry.seeded else "")
    return (
        str(entry.id),
        at,
        printable(entry.user),
        f"{entry.epsilon:.6g}",
        f"{entry.delta:.6g}",
        more,
        kind,
        printable(entry.label),
    )

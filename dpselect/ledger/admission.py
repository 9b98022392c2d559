"""Validate what is entered in a ledger."""

import getpass

from ..accounting.privacy_loss import PERSONS_INSTEAD, Adjacency


def account():
    """Return the name of the user's account, the default author of entries."""
    try:
        return getpass.getuser().encode(errors="replace").decode()
    except (OSError, KeyError, ImportError):  # the operating system has no name for this account
        return "unknown"


def check_text(name, text):
    """Refuse a value that is not text, or that the file cannot store."""
    if not isinstance(text, str):
        raise TypeError(
            f"{name} must be a text, not a {type(text).__name__}, because people read it in the "
            "history; say it in words."
        )
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(
            f"{name}={text!r} has a NUL or half of a surrogate pair in it, which the file of a ledger "
            "cannot keep, so the entry could not be read again; leave that out."
        )


def check_unit(rows_per_person, adjacency):
    """Refuse rows per person in a ledger of records."""
    if rows_per_person is not None and Adjacency(adjacency).unit == "record":
        raise ValueError(
            f"rows_per_person={rows_per_person!r} was given for a ledger for the adjacency "
            f"'{adjacency}', where the loss of a row counts once, whoever it belongs to; leave it out, "
            f"or make a ledger with adjacency='{Adjacency.REPLACE_PERSON}'."
        )


def in_unit(loss, file, rows_per_person):
    """Convert a loss to the unit of the ledger, or refuse it."""
    if loss.adjacency == file.adjacency:
        return loss
    instead = f"use a ledger that was made with adjacency={loss.adjacency!r}, for these records alone"
    if PERSONS_INSTEAD.get(Adjacency(loss.adjacency)) == file.adjacency:
        if rows_per_person is not None:
            return loss.for_persons(rows_per_person)
        instead = (
            "give fit the person of each row, groups=person_ids, or say PrivacyLedger(path, "
            "rows_per_person=...), the largest number of rows that anyone has, if these numbers are "
            "public"
        )
    raise ValueError(
        f"{loss.label!r} has a loss for the adjacency {loss.adjacency!r}, and the ledger at "
        f"{file.path} counts for {file.adjacency!r}; {instead}."
    )

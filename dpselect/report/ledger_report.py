"""The contents of a report of a ledger: what was released of a data set, and what is left."""

from __future__ import annotations

import math
import os

import numpy as np

from ..accounting.privacy_loss import KINDS, PrivacyLoss
from ..ledger import PrivacyLedger, how_losses_add_up
from .document import Section, Table

# at which the sum of all releases is stated
DELTAS = (1e-9, 1e-7, 1e-5)
NOT_COVERED = (
    "Releases that no entry counts: scores, plots or logs that were told without this ledger.",
    "Public assumptions, such as bounds and categories, that were looked up in these records.",
    "What can be learned of people in general, whose record was never there.",
)


def ledger_loss(ledger: PrivacyLedger) -> PrivacyLoss:
    """Return what all entries of a ledger cost together, as its budget counts it."""
    epsilon, delta = ledger.spent()
    entries = ledger.history()
    return PrivacyLoss(
        epsilon,
        delta,
        kind=KINDS[any(entry.kind == KINDS[1] for entry in entries)],
        adjacency=ledger.adjacency,
        label=f"all releases in {os.path.basename(ledger.path)}",
        seeded=any(entry.seeded for entry in entries),
    )


def ledger_sections(ledger: PrivacyLedger, about: str | None, protected: str) -> list[Section]:
    """Return the sections on what was released when, for whom, what is left, and how it adds up."""
    return [
        Section("What was released", _released(ledger, about)),
        Section("Who is protected", (f"{protected} (Adjacency: {ledger.adjacency}.)",)),
        Section("What is left", _left(ledger)),
        Section("What all releases cost together", _together(ledger)),
        Section("What is not covered", (NOT_COVERED,)),
    ]


def _released(ledger, about):
    entries, blocks = ledger.history(), [] if about is None else [f"The records: {about}."]
    if not entries:
        return (*blocks, "Nothing was released yet.")
    rows = tuple(
        (
            str(entry.id),
            entry.reserved_at.date().isoformat(),
            entry.user,
            f"{entry.label} (about {entry.part!r} only)" if entry.part else entry.label,
            f"{entry.epsilon:.6g}",
            f"{entry.delta:.6g}",
            entry.kind + (", seeded" if entry.seeded else ""),
        )
        for entry in entries
    )
    first, last = (entries[place].reserved_at.date().isoformat() for place in (0, -1))
    blocks += [
        f"{len(entries)} entries, from {first} to {last} (UTC).",
        Table(("No.", "Day", "By", "For", "epsilon", "delta", "Kind"), rows),
        *_notes(entries),
        "By year, and by who reserved the loss:",
        Table(("Year", "Entries", "epsilon"), _sums(ledger, [e.reserved_at.year for e in entries])),
        Table(("By", "Entries", "epsilon"), _sums(ledger, [entry.user for entry in entries])),
    ]
    return tuple(blocks)


def _sums(ledger, keys):
    """Return a row for each key, with what its entries add to what all cost together."""
    added, keys = np.diff(how_losses_add_up(ledger)[1], prepend=0.0), np.array(keys)
    return tuple(
        (str(key), str(sum(keys == key)), f"{added[keys == key].sum():.6g}") for key in np.unique(keys)
    )


def _notes(entries):
    """Return sentences on entries that are not plain differential privacy."""
    uncommitted = sum(entry.committed_at is None for entry in entries)
    if uncommitted:
        yield (
            f"{uncommitted} uncommitted: of these it is not known whether the release came out, so that "
            "the reserved loss counts in full."
        )
    if any(entry.epsilon == entry.delta == 0 for entry in entries):
        yield (
            "An epsilon of 0: nothing was told of any record, as where an answer is refused before "
            "noise is drawn."
        )
    if any(entry.kind == KINDS[1] for entry in entries):
        yield (
            "Ex-post: the loss of the outcome that came out, and not of all outcomes; what was reserved "
            "holds for all of them."
        )
    if any(entry.part for entry in entries):
        yield (
            "Parts: the records were divided by public knowledge, such as their position, and each "
            "record is in one part, whatever its values are. So a record can be touched by the releases "
            "about its own part alone, of which only the larger sum counts."
        )
    if any(entry.seeded for entry in entries):
        yield "Seeded: whoever knows the seed can remove the noise, so that nothing is protected."


def _left(ledger):
    amounts = (("Budget", ledger.budget), ("Spent", ledger.spent()), ("Left", ledger.remaining()))
    parts = () if ledger.part_name else ledger.parts
    amounts += tuple((f"Left for {name!r}", ledger.part(name).remaining()) for name in parts)
    rows = tuple((name, *(f"{amount:.6g}" for amount in both)) for name, both in amounts)
    return (Table(("", "epsilon", "delta"), rows), *filter(None, [how_losses_add_up(ledger)[0]]))


def _together(ledger):
    epsilon, delta = ledger.spent()
    if epsilon == 0 and delta == 0:
        return ("Nothing was spent.",)
    rows = []
    for at in sorted({*DELTAS, ledger.budget[1]} - {0.0}):
        try:
            total = ledger.total(at)
        except ValueError:  # the releases have more than this delta
            total = math.nan
        known = "none: more than this delta was spent" if math.isnan(total) else f"{total:.6g}"
        rows.append((f"{at:g}", known))
    many = (
        "At a delta, many releases may cost less together than their sum. These bounds hold if how much "
        "each release spent did not depend on earlier results; of an ex-post entry they count what was "
        "reserved:"
    )
    return (
        f"As the budget counts them: epsilon = {epsilon:.6g} and delta = {delta:.6g}.",
        many,
        Table(("delta", "epsilon, at most"), tuple(rows)),
    )

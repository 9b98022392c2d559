"""One entry of a ledger."""

import json
import re
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Self

from ..accounting.privacy_loss import KINDS, PrivacyLoss
from .budget_file import COLUMNS

UNCOMMITTED = "uncommitted"
# a label in a statement, a string of JSON
LABEL = re.compile(r'"label": ("(?:[^"\\]|\\.)*")')
TIMES = ("reserved_at", "committed_at")


@dataclass(frozen=True)
class LedgerEntry:
    """One reservation, and the loss that was committed for it.

    Attributes
    ----------
    id : int
        Number in the order of the reservations.
    label : str
        What it is for. Public.
    user : str
        Author of the entry: the `user` of the ledger, or the name of the account. Public.
    reserved_epsilon, reserved_delta : float
        The largest loss that could come out.
    epsilon, delta : float
        What counts as spent: what came out, or what was reserved if nothing was committed.
    kind : str
        "differential privacy", "ex-post", or "uncommitted".
    seeded : bool
        Whether noise came from a seed. Whoever knows the seed can remove it.
    reserved_at, committed_at : datetime or None
        In UTC.
    statement : PrivacyLoss
        What holds for all outcomes: what was committed, with its parts and events; or, of an entry
        that was committed ex-post or not at all, what was reserved.
    part : str, default=""
        The public part of the records that it is about; empty if it may be about all.
    """

    id: int
    label: str
    user: str
    reserved_epsilon: float
    reserved_delta: float
    epsilon: float
    delta: float
    kind: str
    seeded: bool
    reserved_at: datetime
    committed_at: datetime | None
    statement: PrivacyLoss
    part: str = ""

    @classmethod
    def of(cls, row: Iterable[Any]) -> Self:
        """Return the entry for a row by COLUMNS."""
        values = dict(zip(COLUMNS, row))
        if values["committed_at"] is None:
            values |= {
                "epsilon": values["reserved_epsilon"],
                "delta": values["reserved_delta"],
                "kind": UNCOMMITTED,
            }
        times = {name: _utc(values[name]) for name in TIMES}
        more = times | {"seeded": bool(values["seeded"]), "statement": _loss_of(values["statement"])}
        return cls(**values | more)

    def __str__(self):
        more = f" and delta {self.delta:.6g}" if self.delta else ""
        notes = {
            UNCOMMITTED: ["uncommitted: counts in full"],
            KINDS[0]: [],
            KINDS[1]: [f"ex-post, of {self.reserved_epsilon:.6g} reserved"],
        }[self.kind]
        if self.seeded:
            notes = [*notes, "seeded: whoever knows the seed can remove the noise"]
        if self.part:
            notes = [f"about {self.part!r} only", *notes]
        return f"{self.epsilon:.6g}{more}: {self.label}" + (f" ({'; '.join(notes)})" if notes else "")


def unlabelled_losses(statements):
    """Return the losses of statements, without their labels: equal ones are one object."""
    return [_parsed(LABEL.sub('"label": ""', text)) for text in statements]


@lru_cache(maxsize=256)
def _loss_of(text):
    labels = LABEL.findall(text)
    if len(labels) != 1:
        return _parsed(text)
    loss = copy(_parsed(LABEL.sub('"label": ""', text)))
    # not by the constructor, which would check once more what differs in the label alone
    object.__setattr__(loss, "label", json.loads(labels[0]))
    return loss


@lru_cache(maxsize=256)
def _parsed(text):
    # cached: most entries have equal statements, up to their labels
    return PrivacyLoss.from_dict(json.loads(text))


def _utc(seconds):
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)

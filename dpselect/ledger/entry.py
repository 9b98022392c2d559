"""One entry of a ledger."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from ..privacy import KINDS
from .budget_file import COLUMNS

UNCOMMITTED = "uncommitted"


@dataclass(frozen=True)
class LedgerEntry:
    """One reservation, and what was committed.

    Attributes
    ----------
    id : int
        Number in the order of the reservations.
    label : str
        What it is for. Public.
    reserved_epsilon, reserved_delta : float
        The largest loss that could come out.
    epsilon, delta : float
        What counts as spent: what came out, or what was reserved if nothing was committed.
    kind : str
        "differential privacy", "ex-post", or "uncommitted".
    seeded : bool
        Whether noise came from a seed. Whoever knows the seed can remove it.
    reserved_at, committed_at : float or None
        Seconds since 1970.
    """

    id: int
    label: str
    reserved_epsilon: float
    reserved_delta: float
    epsilon: float
    delta: float
    kind: str
    seeded: bool
    reserved_at: float
    committed_at: float | None

    @classmethod
    def of(cls, row: Iterable[Any]) -> Self:
        """Return the entry of a row by COLUMNS."""
        values = dict(zip(COLUMNS, row))
        if values["committed_at"] is None:
            values |= {"epsilon": values["reserved_epsilon"], "delta": values["reserved_delta"],
                       "kind": UNCOMMITTED}
        return cls(**values | {"seeded": bool(values["seeded"])})

    def __str__(self):
        more = f" and delta {self.delta:.6g}" if self.delta else ""
        notes = {UNCOMMITTED: ["uncommitted: counts in full"], KINDS[0]: [],
                 KINDS[1]: [f"ex-post, of {self.reserved_epsilon:.6g} reserved"]}[self.kind]
        if self.seeded:
            notes = [*notes, "seeded: whoever knows the seed can remove the noise"]
        return f"{self.epsilon:.6g}{more}: {self.label}" + (f" ({'; '.join(notes)})" if notes else "")

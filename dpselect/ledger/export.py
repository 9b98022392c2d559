"""Export of a ledger as JSON, and import that refuses entries that `to_json` cannot have written."""

import json
import math
from datetime import datetime
from fractions import Fraction

from ..accounting.filters import from_text, to_text
from ..accounting.privacy_loss import KINDS, PrivacyLoss
from .amounts import exact, fits
from .budget_file import COLUMNS, counted_loss
from .entry import TIMES, LedgerEntry
from .record_parts import WHOLE, check_parts, together


def write_json(budget, adjacency, law, rows, parts=()):
    """Return the contents of a ledger as JSON; rows are by COLUMNS."""
    names = COLUMNS if parts else COLUMNS[:-1]
    epsilon, delta = map(float, budget)
    entries = [
        dict(zip(names, row))
        | {name: _iso(getattr(entry, name)) for name in TIMES}
        | {"statement": entry.statement.to_dict()}
        for row, entry in ((row, LedgerEntry.of(row)) for row in rows)
    ]
    return json.dumps(
        {
            "epsilon": epsilon,
            "delta": delta,
            "adjacency": adjacency,
            "law": json.loads(to_text(law)),
            **({"parts": list(parts)} if parts else {}),
            "entries": entries,
        },
        indent=1,
    )


def read_json(text):
    """Return budget, adjacency, filter, parts and rows by COLUMNS, or refuse other texts."""
    try:
        given = json.loads(text)
        budget = _number(given["epsilon"]), _number(given["delta"])
        adjacency = _text(given["adjacency"])
        parts = check_parts(given.get("parts"))
        rows = [_row(entry, adjacency, parts) for entry in given["entries"]]
        ids = [LedgerEntry.of(row).id for row in rows]
        in_order = ids == sorted(set(ids)) and all(0 < i < 2**53 for i in ids)
        is_budget = budget[0] > 0 and 0 <= budget[1] < 1
        law = from_text(json.dumps(given["law"]))
        if not (in_order and is_budget and law.is_of_budget(*budget)):
            raise ValueError
        sums = dict.fromkeys((WHOLE, *parts), (Fraction(0), Fraction(0)))
        for row in rows:
            amounts = map(exact, law.amounts(counted_loss(dict(zip(COLUMNS, row)), law)))
            sums[row[-1]] = tuple(map(sum, zip(sums[row[-1]], amounts)))
        if not all(map(fits, together(sums), map(exact, law.limits))):
            raise ValueError
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError, RecursionError):
        raise ValueError(
            "text is not what to_json of a ledger returned, or its entries exceed its budget, so its "
            "sums would not be true; export the ledger again."
        ) from None
    return *budget, adjacency, law, parts, rows


def _row(entry, adjacency, parts):
    """Return the values of an entry by COLUMNS; each value is a number, a text or None."""
    reserved = PrivacyLoss(_number(entry["reserved_epsilon"]), _number(entry["reserved_delta"]))
    values = dict.fromkeys(COLUMNS) | {
        "id": entry["id"],
        "label": _text(entry["label"]),
        "user": _text(entry["user"]),
        "reserved_epsilon": reserved.epsilon,
        "reserved_delta": reserved.delta,
        "reserved_at": _seconds(entry["reserved_at"]),
        "part": _text(entry["part"]) if parts else WHOLE,
    }
    if values["part"] not in (WHOLE, *parts):
        raise ValueError
    if type(entry["id"]) is not int:
        raise TypeError
    if entry["committed_at"] is not None:
        loss = PrivacyLoss(_number(entry["epsilon"]), _number(entry["delta"]), kind=entry["kind"])
        if loss.epsilon > reserved.epsilon or loss.delta > reserved.delta:
            raise ValueError
        values |= {
            "epsilon": loss.epsilon,
            "delta": loss.delta,
            "kind": loss.kind,
            "seeded": int(bool(entry["seeded"])),
            "committed_at": _seconds(entry["committed_at"]),
        }
        reserved = loss if loss.kind == KINDS[0] else reserved
    statement = PrivacyLoss.from_dict(entry["statement"])
    stated = statement.epsilon, statement.delta, statement.kind, statement.adjacency
    if stated != (reserved.epsilon, reserved.delta, KINDS[0], adjacency):
        raise ValueError
    values["statement"] = json.dumps(statement.to_dict())
    return tuple(values[name] for name in COLUMNS)


def _number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _iso(time):
    return None if time is None else time.isoformat(timespec="microseconds")


def _seconds(text):
    time = datetime.fromisoformat(_text(text))
    if time.utcoffset() is None:  # without a time zone it means another time elsewhere
        raise ValueError
    return time.timestamp()


def _text(value):
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # raises for lone surrogates, which cannot be stored
    return value

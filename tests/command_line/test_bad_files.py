"""Damaged files: no cell in any message, and nothing is spent where one is refused."""

import gzip
import json
import random
import re

import pytest

from dpselect import PrivacyLedger, StabilityGridSearchCV
from dpselect._command_line import table_files

SCHEMA = {
    "age": [0, 120],
    "day": {"date": ["2015-01-01", "2026-12-31"]},
    "smoker": ["yes", "no"],
    "ill": ["no", "yes"],
}
HEAD = ["patient", "age", "day", "smoker", "note", "ill"]
FIT = ["--schema", "s.json", "--target", "ill", "--epsilon", "1", "--ledger", "l.ledger"]
FIT += ["--person", "patient", "--drop", "note", "--json"]
MORE = [[], [], ["--decimal", ","], ["--encoding", "cp1252"], ["--separator", ";"]]
# pieces that damage a file where they are inserted
JUNK = [b'"', b'""', b",", b";", b"\n", b"\r", b"\x00", b"\xff", b"\xe4", b'",', b'\n"', b"\xef\xbb\xbf"]


class Accepted(BaseException):
    """Raised in place of a fit."""


def table(rng, n=12):
    """Return rows of which every cell but the categories begins with 88 or zq, and is nowhere else."""
    return [
        [
            *(f"zq{rng.randrange(10**6)}", f"88.{rng.randrange(10**6):06}", f"2018-08-{8 + i:02}T08:08"),
            *(rng.choice(["yes", "no"]), f"zq note {rng.randrange(10**6)}", ["no", "yes"][i % 2]),
        ]
        for i in range(n)
    ]


def as_bytes(head, rows, mark=b","):
    return b"\n".join(mark.join(cell.encode() for cell in row) for row in [head, *rows]) + b"\n"


def wrong_cell(rng, rows):
    column = rng.randrange(5)
    cell = ["", "zq88", "88,8", "88 zq", "inf", "1e999", "zqyes", "2018-88-88", "[88]", "'88'"]
    rng.choice(rows)[column] = rng.choice(cell)
    return as_bytes(HEAD, rows)


def wrong_length(rng, rows):
    row = rng.choice(rows)
    row.pop() if rng.random() < 0.5 else row.insert(rng.randrange(6), "zq88")
    return as_bytes(HEAD, rows)


def wrong_bytes(rng, rows):
    content, start = bytearray(as_bytes(HEAD, rows)), len(",".join(HEAD)) + 1
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(start, len(content))
        content[at:at] = rng.choice(JUNK)
    return bytes(content)


def lost_bytes(rng, rows):
    content, start = as_bytes(HEAD, rows), len(",".join(HEAD)) + 1
    a, b = sorted(rng.randrange(start, len(content)) for _ in range(2))
    return content[:a] + content[b:] if rng.random() < 0.7 else content[:a]


def wrong_head(rng, rows):
    head = list(HEAD)
    kind = rng.randrange(5)
    if kind == 4:  # the first record is in the line of the header
        return as_bytes(HEAD, rows).replace(b"\n", b",", 1)
    if kind == 0:
        return as_bytes(rows[0], rows[1:])
    if kind == 1:
        head[rng.randrange(6)] = rng.choice(["", "age", "Age", "x\ny", "88", '"age'])
    elif kind == 2:
        head.pop(rng.randrange(6))
    return as_bytes(head, rows, rng.choice([b",", b";", b" ", b", "]))


def wrong_form(rng, rows):
    content = as_bytes(HEAD, rows)
    encoded = [content.decode().encode(e) for e in ("utf-16", "utf-16-be", "utf-32", "cp037")]
    packed = gzip.compress(content)
    return rng.choice([*encoded, packed, packed[: len(packed) // 2], b"", b"\n\n", content[::-1]])


DAMAGES = [wrong_cell, wrong_length, wrong_bytes, lost_bytes, wrong_head, wrong_form]


@pytest.fixture
def refusals(run, folder, monkeypatch):
    """Return the messages of all refused files, and the number of those that are accepted."""

    def fit(self, X, y, **_):
        raise Accepted

    monkeypatch.setattr(StabilityGridSearchCV, "fit", fit)
    (folder / "s.json").write_text(json.dumps(SCHEMA))
    ledger = PrivacyLedger(folder / "l.ledger", epsilon=1.0, adjacency="replace all rows of one person")

    def refusals(n):
        said, accepted = [], 0
        for seed in range(n):
            rng = random.Random(seed)
            name = rng.choice(["d.csv", "d.csv", "d.csv", "d.csv.gz", "d.parquet", "d.txt"])
            content = DAMAGES[seed % len(DAMAGES)](rng, table(rng))
            gz = name.endswith("gz") and not content.startswith(b"\x1f\x8b")
            (folder / name).write_bytes(gzip.compress(content) if gz else content)
            more = rng.choice(MORE)
            try:
                code, out, err = run("fit", name, *FIT, *more)
            except Accepted:
                accepted += 1
                continue
            assert (code, out) == (2, "") and len(err.splitlines()) == 1, (seed, err)
            assert "unexpected" not in err, (seed, err)
            said.append(err)
        assert ledger.history() == [] and ledger.spent() == (0, 0)
        return said, accepted

    return refusals


def check(refusals, n=400):
    said, accepted = refusals(n)
    quoted = [text for text in said if re.search("88|zq|2018", text)]
    assert not quoted, quoted[:3]
    assert len(said) > n / 2 and accepted > 2  # both happen


@pytest.mark.parametrize("n", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_no_cell_is_in_a_message_and_nothing_is_spent(refusals, n):
    check(refusals, n)


def test_a_message_with_a_cell_is_seen(refusals, monkeypatch):
    monkeypatch.setattr(table_files, "_why", lambda path, error: str(error))
    with pytest.raises(AssertionError):
        check(refusals, 60)

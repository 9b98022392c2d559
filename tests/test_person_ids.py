"""A person is one, in however many ways the id is written."""

import datetime
import unicodedata
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpselect import DPLogisticRegression
from dpselect.records import persons
from dpselect.records.persons import Persons

UTC, CET = datetime.UTC, datetime.timezone(datetime.timedelta(hours=1))
NOON = datetime.datetime(2030, 1, 31, 12, tzinfo=UTC)
# of each person the ways in which the id may be written in one table
WRITTEN = {
    "numbers": [
        [7, 7.0, np.int64(7), np.float32(7), Decimal("7.00"), Fraction(7), np.uint8(7)],
        [1, True, 1.0, np.True_],
        [0, 0.0, -0.0, False],
        [8],
        [7.5, Decimal("7.5"), Fraction(15, 2)],
    ],
    "digits": [[7.1, np.float32(7.1), Decimal("7.1"), Fraction(71, 10)], [7.2, np.float32(7.2)]],
    "beyond doubles": [[2**53 + 1, float(2**53), 2**53], [2**53 - 1, float(2**53 - 1)], [10**400]],
    "large integers": [[2**53], [2**53 + 1], [2**63 + 5], [10**400]],
    "decimals": [[Decimal("7.10"), Decimal("7.1")], [Decimal(7), 7]],
    "texts": [
        ["José", unicodedata.normalize("NFD", "José"), " José", "José\N{NO-BREAK SPACE}", "José\t"],
        [
            "17",
            "１７",
            "17 ",
            "17.0",
            "17.00",
            "\ufeff17",
            "17\0",
            "1\N{ZERO WIDTH SPACE}7",
            "\u300017\r\n",
        ],
        ["017", "017.0"],
        ["17.05"],
        ["17.0.0"],
        ["1.10"],
        ["1.1"],
        ["ab"],
        ["AB"],
        ["a b"],
    ],
    "plain texts": [["7", "7 ", "\t7"], ["8", np.str_("8")], ["07"]],
    "bytes": [[b"7", b"7 ", b" 7"], [b"8"]],
    "pairs": [[("a", 7), ("a ", 7.0)], [("a", 8)], [("b", 7), ("b", True * 7)]],
    "times": [[NOON, NOON.astimezone(CET), pd.Timestamp(NOON)], [NOON.replace(tzinfo=CET)]],
    "days": [
        [np.datetime64("2030-01-31"), np.datetime64("2030-01-31T00"), np.datetime64("2030-01-31", "ns")],
        [np.datetime64("2030-02-01")],
    ],
}


def number(ids):
    return Persons.of(ids, np.zeros((len(ids), 1))).number


def check_is_whose(kind, rows):
    """`rows` are pairs of a person, and of one of the ways in which the id is written."""
    people = WRITTEN[kind]
    whose = [person % len(people) for person, _ in rows]
    ids = np.empty(len(rows), dtype=object)
    ids[:] = [people[person][way % len(people[person])] for person, (_, way) in zip(whose, rows)]
    found = number(ids)
    assert len(set(zip(found.tolist(), whose))) == len(set(whose)) == len(set(found.tolist()))


ROWS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=30)


@pytest.mark.parametrize("kind", WRITTEN)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows=ROWS)
@example(rows=[(person, way) for person in range(10) for way in range(8)])
def test_a_person_is_one_in_whatever_way_the_id_is_written(kind, rows):
    check_is_whose(kind, rows)


def told_apart_by_what_is_shown(ids):
    shown = list(dict.fromkeys(map(repr, ids)))
    return np.array([shown.index(repr(each)) for each in ids]), [
        next(each for each in ids if repr(each) == one) for one in shown
    ]


@pytest.mark.parametrize("kind", sorted(WRITTEN.keys() - {"large integers"}))
def test_ids_that_are_taken_as_written_are_caught(kind, monkeypatch):
    monkeypatch.setattr(persons, "_in_one_form", lambda number, known: (number, known))
    if kind in {"numbers", "decimals", "times", "days"}:  # some are equal, and of one hash
        monkeypatch.setattr(persons, "_in_order_of_rows", told_apart_by_what_is_shown)
    rows = [(person, way) for person in range(10) for way in range(8)]
    with pytest.raises((AssertionError, TypeError)):
        check_is_whose(kind, rows)


@pytest.mark.parametrize(
    "ids",
    [
        [7, "7"],
        [7.0, "7", 7],
        [b"7", "7"],
        [NOON, NOON.replace(tzinfo=None)],
        [NOON, NOON.date()],
        [("a", 7), 7],
        [None, 7],
        [7, float("nan")],
        ["7", None],
        [Decimal("nan"), 7],
        [Decimal("snan"), 7],
    ],
)
def test_ids_of_several_kinds_and_missing_ones_are_refused_and_not_quoted(ids):
    with pytest.raises(ValueError, match="give each") as caught:
        number(ids)
    assert "7" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("texts", [["José", "José ", "Ｊosé"], ["b", "a\t", "a"]])
def test_all_tables_tell_the_same_persons(texts):
    expected = number(texts).tolist()
    frame = pd.Series(texts)
    for ids in (
        np.array(texts),
        np.array(texts, dtype=object),
        tuple(texts),
        frame,
        frame.astype("category"),
        frame.astype("string"),
        pl.Series(texts),
        pa.array(texts),
        pa.chunked_array([texts]),
        pl.Series(texts, dtype=pl.Categorical),
    ):
        assert number(ids).tolist() == expected
    numbers = [3, 1, 3]
    for ids in (
        np.array(numbers),
        pd.Series(numbers),
        pl.Series(numbers),
        pa.array(numbers),
        np.array(numbers, dtype=float),
        pd.Series(numbers, dtype="category"),
        pd.Series(numbers, dtype="Int64"),
        [3, 1.0, 3.0],
    ):
        assert number(ids).tolist() == [1, 0, 1]


def test_the_order_of_plain_ids_is_their_own():
    texts = [f"{i:03d}" for i in np.random.default_rng(0).permutation(200)]
    assert number(texts).tolist() == [int(text) for text in texts]


def test_a_fit_does_not_depend_on_how_ids_are_written():
    rng = np.random.default_rng(0)
    X, person = rng.uniform(-1, 1, size=(600, 2)), np.arange(600) // 3
    y = (X[:, 0] > 0).astype(int)
    written = np.array([[i, float(i), np.float32(i)][j % 3] for j, i in enumerate(person)], dtype=object)
    one, other = (
        DPLogisticRegression(1e6, classes=[0, 1], alpha=0.1).fit(X, y, groups=ids)
        for ids in (person, written)
    )
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-3)

"""A cell means the same however its column is stored, and no message quotes it."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpselect.preprocessing.table_cells import GAP, UNLISTED, as_number, read_codes, read_numbers


@pytest.mark.parametrize(
    "cell, number",
    [
        (1, 1),
        (1.0, 1),
        (True, 1),
        (np.bool_(True), 1),
        ("1", 1),
        (" 1.0", 1),
        ("True", 1),
        ("FALSE", 0),
        (Decimal("1.5"), 1.5),
        (Fraction(1, 2), 0.5),
        ("1e3", 1000),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        (2**53 + 1, 2**53),
        ("a", None),
        ("1_000", None),
        (b"1", None),
        ([1], None),
        (1j, None),
        (datetime.date(2020, 1, 1), None),
    ],
)
def test_numbers(cell, number):
    assert as_number(cell) == number


@pytest.mark.parametrize("cell", [None, np.nan, "", " ", "?", "NA", "NaN", "<NA>", Decimal("nan")])
def test_gaps(cell):
    assert math.isnan(as_number(cell))


def objects(*cells):
    return np.array([*cells, None], dtype=object)[:-1]


@pytest.mark.parametrize("cell", ["98765x", b"98765", [98765], 10**400, float("-inf")])
def test_what_is_no_number_is_not_quoted(cell):
    with pytest.raises(ValueError, match="^Column 'c' of X holds .*; ") as caught:
        read_numbers(objects(1, cell), "c")
    assert "98765" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("cell", [b"98765", [98765], {98765: 1}, datetime.date(1987, 6, 5)])
def test_what_is_no_category_is_not_quoted(cell):
    with pytest.raises(ValueError, match="^Column 'c' of X holds .*; ") as caught:
        read_codes(objects("a", cell), "c", {"a": 0}, {})
    assert "98765" not in str(caught.value) and caught.value.__context__ is None


def test_codes_of_floats_are_those_of_objects():
    floats = np.array([3.0, 1.0, -0.0, np.nan, 7.0, np.inf])
    numbers = {0.0: 2, 1.0: 0, 3.0: 1}
    codes = read_codes(floats, "c", {}, numbers)
    assert codes.tolist() == [1, 0, 2, GAP, UNLISTED, UNLISTED]
    assert read_codes(objects(*floats), "c", {}, numbers).tolist() == codes.tolist()
    texts = objects("3", "1.0", "-0", "nan", "7", "inf")
    assert read_codes(texts, "c", {}, numbers).tolist() == codes.tolist()

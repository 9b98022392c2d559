"""Columns of any container are encoded as their cells are, in slices of any length."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpselect.preprocessing import TableEncoder, table_form
from dpselect.rows import cutting

LABELS = [0.5, 0.0, 3.0, 2.0, 1.0, 7.0, 0.25]
TEXTS = ["a", " b", None, "1", "c", "?", "a"]
NUMBERS = [0.0, 2.0, None, 1.0, 3.0, 7.0, 2.0]
def pandas(dtype, labels=None):
    """One column of a type, with labels of rows that are no places."""
    def made(cells):
        return pd.DataFrame({"c": pd.Series(cells, dtype=dtype)}).set_axis(labels or range(len(cells)))
    return made


def polars(dtype):
    return lambda cells: pl.DataFrame({"c": pl.Series(cells, dtype=dtype)})


OF_TEXTS = {
    "pandas objects": pandas(object, LABELS),
    "pandas texts": pandas("string[python]"),
    "pandas Arrow": pandas("string[pyarrow]", LABELS),
    "pandas categories": pandas(pd.CategoricalDtype(["a", " b", "c", "1", "?", "x"]), LABELS),
    "polars": polars(pl.String),
    "polars categories": polars(pl.Categorical),
    "polars Enum": polars(pl.Enum(["?", "c", "1", " b", "a", "x"])),
}
OF_NUMBERS = {
    "pandas NA": pandas("Int64", LABELS),
    "pandas floats": pandas(float, LABELS),
    "pandas categories": pandas(pd.CategoricalDtype([7.0, 0, 2, 3, 1, 5])),
    # of which "x" is no number, and is not there
    "pandas texts": lambda x: pandas(pd.CategoricalDtype(["2", "0", "1", "7", "3", "x"]))(
        [None if v is None else str(int(v)) for v in x]
    ),
    "polars chunks": lambda x: pl.concat([polars(pl.Float32)(x[:3]), polars(pl.Float32)(x[3:])]),
}
SCHEMAS = [
    {"c": {"categories": ["b", "a", 1], "missing": True, "unknown": True}}, {"c": ["1", "a"]},
]
OF_BOTH = [{"c": {"bounds": (0, 4), "missing": True}}, {"c": {"categories": [2, 0, 7]}}]


def rows_of(schema, table):
    return TableEncoder(schema, expansion=3).fit(table).transform(table)


@pytest.mark.parametrize("cells, container, schemas", [
    *(pytest.param(TEXTS, made, SCHEMAS, id=f"texts-{name}") for name, made in OF_TEXTS.items()),
    *(pytest.param(NUMBERS, made, OF_BOTH, id=f"numbers-{name}") for name, made in OF_NUMBERS.items()),
])
def test_columns_of_any_container_are_encoded_as_their_cells(cells, container, schemas, monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 8)  # two or three records
    for schema in schemas:
        expected = rows_of(schema, [[cell] for cell in cells])
        np.testing.assert_array_equal(rows_of(schema, container(cells)), expected)


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_different_texts_are_found_by_the_container(module):
    cells = np.repeat(["a", "b", "c"], 1000).tolist()
    column = pd.Series(cells, dtype="string") if module == "pandas" else pl.Series(cells)
    distinct, places = table_form.distinct_cells(column)
    assert sorted(distinct) == ["a", "b", "c"] and (distinct[places] == cells).all()
    assert table_form.distinct_cells(pd.Series([1.0])) is None

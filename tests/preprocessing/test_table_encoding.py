"""Columns of any container are encoded as their cells are, in slices of any length."""

import pickle
from decimal import Decimal
from sys import getsizeof as sizeof

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import clone

import dpselect
from dpselect import DPLogisticRegression
from dpselect.preprocessing import (
    TableEncoder,
    table_cells,
    table_encoding,
    table_form,
    tabular_pipeline,
)
from dpselect.preprocessing.table_cells import as_number
from dpselect.preprocessing.table_encoding import TableEncoding
from dpselect.rows import as_lazy, cutting, distributed, on_workers

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


def arrow(kind, pieces=(slice(None),)):
    """One column of a type, in pieces."""

    def made(cells):
        column = pa.chunked_array([pa.array(cells[piece], kind) for piece in pieces])
        return pa.table({"c": column})

    return made


PIECES = slice(None, 2), slice(2, None)
TO_DICTIONARY = pa.dictionary(pa.int8(), pa.string())
OF_TEXTS = {
    "pandas objects": pandas(object, LABELS),
    "pandas texts": pandas("string[python]"),
    "pandas Arrow": pandas("string[pyarrow]", LABELS),
    "pandas categories": pandas(pd.CategoricalDtype(["a", " b", "c", "1", "?", "x"]), LABELS),
    "polars": polars(pl.String),
    "polars categories": polars(pl.Categorical),
    "polars Enum": polars(pl.Enum(["?", "c", "1", " b", "a", "x"])),
    "Arrow": arrow(pa.string()),
    "Arrow pieces": arrow(pa.large_string(), pieces=PIECES),
    "Arrow dictionaries": arrow(TO_DICTIONARY, pieces=PIECES),
    "Arrow batch": lambda x: arrow(TO_DICTIONARY)(x).to_batches()[0],
}
OF_NUMBERS = {
    "pandas NA": pandas("Int64", LABELS),
    "pandas floats": pandas(float, LABELS),
    "pandas categories": pandas(pd.CategoricalDtype([7.0, 0, 2, 3, 1, 5])),
    # of which "x" is no number, and is not there
    "pandas texts": lambda x: pandas(pd.CategoricalDtype(["2", "0", "1", "7", "3", "x"]))(
        [None if v is None else str(int(v)) for v in x]
    ),
    **{
        f"Arrow {kind}": arrow(kind, pieces=PIECES)
        for kind in (
            pa.int8(),
            pa.uint8(),
            pa.int16(),
            pa.uint16(),
            pa.int32(),
            pa.uint32(),
            pa.int64(),
            pa.uint64(),
            pa.float32(),
            pa.float64(),
            pa.dictionary(pa.int8(), pa.int64()),
        )
    },
    "Arrow half": lambda x: arrow(pa.float16())([v if v is None else np.float16(v) for v in x]),
    "Arrow decimals": lambda x: arrow(pa.decimal128(9, 3))([v if v is None else Decimal(v) for v in x]),
    # of which "x" is no number, and is not there
    "Arrow texts": lambda x: pa.table(
        {
            "c": pa.DictionaryArray.from_arrays(
                pa.array([None if v is None else int(v) for v in x]), [*"0123456", "7", "x"]
            )
        }
    ),
    "polars chunks": lambda x: pl.concat([polars(pl.Float32)(x[:3]), polars(pl.Float32)(x[3:])]),
}
SCHEMAS = [
    {"c": {"categories": ["b", "a", 1], "missing": True, "unknown": True}},
    {"c": ["1", "a"]},
]
OF_BOTH = [{"c": {"bounds": (0, 4), "missing": True}}, {"c": {"categories": [2, 0, 7]}}]


def rows_of(schema, table):
    return TableEncoder(schema, expansion=3).fit(table).transform(table)


@pytest.mark.parametrize(
    "cells, container, schemas",
    [
        *(pytest.param(TEXTS, made, SCHEMAS, id=f"texts-{name}") for name, made in OF_TEXTS.items()),
        *(
            pytest.param(NUMBERS, made, OF_BOTH, id=f"numbers-{name}")
            for name, made in OF_NUMBERS.items()
        ),
    ],
)
def test_columns_of_any_container_are_encoded_as_their_cells(cells, container, schemas, monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 8)  # two or three records
    for schema in schemas:
        expected = rows_of(schema, [[cell] for cell in cells])
        for few in (table_form.FEW_TEXTS, 0):  # texts are read one by one, and each distinct one once
            monkeypatch.setattr(table_form, "FEW_TEXTS", few)
            np.testing.assert_array_equal(rows_of(schema, container(cells)), expected)


@pytest.mark.parametrize("cells", [[True, False, True], [True, None, False]])
def test_booleans_of_arrow(cells):
    for schema in ({"c": {"bounds": (0, 1), "missing": True}}, {"c": [False, True]}):
        expected = rows_of(schema, [[cell] for cell in cells])
        np.testing.assert_array_equal(rows_of(schema, arrow(pa.bool_())(cells)), expected)


def test_numbers_of_arrow_are_those_of_pandas_to_the_last_bit():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=500),
            "b": rng.normal(size=500).astype(np.float32),
            "c": rng.integers(-(2**62), 2**62, 500),
            "d": rng.integers(2**63, 2**64, 500, dtype=np.uint64),
        }
    )
    schema = {"a": (-1, 1), "b": (-1, 1), "c": (-(2.0**62), 2.0**62), "d": (2.0**62, 2.0**64)}
    found = pa.concat_tables(
        [pa.Table.from_pandas(part, preserve_index=False) for part in (table[:70], table[70:])]
    )
    for columns in (found, found.combine_chunks(), found.select(list("dbca"))):
        np.testing.assert_array_equal(rows_of(schema, columns), rows_of(schema, table))


@pytest.mark.parametrize("module", ["pandas", "polars", "Arrow"])
def test_different_texts_are_found_by_the_container(module):
    cells = np.repeat(["a", "b", "c"], 1000).tolist()
    made = {"polars": pl.Series, "Arrow": pa.array}
    column = pd.Series(cells, dtype="string") if module == "pandas" else made[module](cells)
    distinct, places = table_form.distinct_cells(column)
    assert sorted(distinct) == ["a", "b", "c"] and (distinct[places] == cells).all()
    assert table_form.distinct_cells(pd.Series([1.0])) is None


def parsed_by_dask(table, schema, monkeypatch, as_objects=False):
    """Return how many cells are parsed one by one in chunks of a Dask dataframe, and the rows."""
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    parsed = []
    encoder = TableEncoder(schema, expansion=2).fit(table)
    with monkeypatch.context() as patched:
        patched.setattr(table_cells, "as_number", lambda cell: parsed.append(cell) or as_number(cell))
        if as_objects:
            own = TableEncoder._on_a_worker
            patched.setattr(
                TableEncoder, "_on_a_worker", lambda self, X: own(self, X.to_numpy(dtype=object))
            )
        on_workers._unpack.cache_clear()
        rows = encoder.transform(dd.from_pandas(table, npartitions=3))
        with dask.config.set(scheduler="synchronous"):
            computed = rows.compute()
    return len(parsed), computed


def test_chunks_of_a_dask_dataframe_are_encoded_in_their_own_container(monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "z": rng.random(3000),
            "c": pd.Categorical.from_codes(rng.integers(-1, 3, 3000), ["a", "b", "unlisted"]),
            "t": rng.choice(["u", "v", "w"], 3000),
        }
    )
    schema = {"z": (0, 1), "c": {"categories": ["a", "b"], "missing": True}, "t": ["u", "v", "w"]}
    expected = TableEncoder(schema, expansion=2).fit_transform(table)
    n_parsed, rows = parsed_by_dask(table, schema, monkeypatch)
    np.testing.assert_array_equal(rows, expected)
    # a twin makes an array of objects of each chunk, and parses each number
    n_of_twin, rows = parsed_by_dask(table, schema, monkeypatch, as_objects=True)
    np.testing.assert_array_equal(rows, expected)
    assert n_parsed < 100 < 3000 <= n_of_twin


def test_a_fit_makes_the_graph_of_a_dask_dataframe_once_and_no_dense_rows(monkeypatch):
    """A graph may read files, or convert texts; sums are by codes, as of a table in memory."""
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"z": rng.random(9000), "c": rng.choice([*"abcd"], 9000)})
    y = (rng.random(9000) < table["z"]).to_numpy().astype(int)
    schema = {"z": (0, 1), "c": [*"abcd"]}
    model = tabular_pipeline(schema, DPLogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0))
    with pytest.warns(dpselect.SeededNoiseWarning):
        expected = clone(model).fit(table, y)[-1]
    frame, labels = dd.from_pandas(table, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    made, coded = [], []
    original, encoded = distributed._parts, TableEncoding.coded
    monkeypatch.setattr(distributed, "_parts", lambda X: made.append(X) or original(X))
    monkeypatch.setattr(TableEncoding, "coded", lambda *args: coded.append(args) or encoded(*args))
    monkeypatch.setattr(TableEncoder, "_dense", None)
    with dask.config.set(scheduler="synchronous"), pytest.warns(dpselect.SeededNoiseWarning):
        found = model.fit(frame, labels)[-1]
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
    assert sum(X is frame for X in made) == 1 and len(coded) >= 3
    # dataframes of features are made of a Dask array
    monkeypatch.undo()
    with dask.config.set(scheduler="synchronous"), pytest.warns(dpselect.SeededNoiseWarning):
        found = model.set_output(transform="pandas").fit(frame, labels)[-1]
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)


def test_a_fit_encodes_the_chunks_of_a_dask_dataframe_once_and_holds_codes(monkeypatch):
    """What is held are the columns of the chunks and a byte for each category, and no features."""
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    n, levels = 9000, [f"level {i}" for i in range(16)]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"z": rng.random(n), "c": rng.choice(levels, n)})
    y = (rng.random(n) < table["z"]).to_numpy().astype(int)
    model = tabular_pipeline(
        {"z": (0, 1), "c": levels}, DPLogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0)
    )
    frame, labels = dd.from_pandas(table, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    chunks, held = [], []
    encoding, persist = TableEncoder._encoding, distributed.persisted

    def kept(parts):
        held.extend(parts := persist(parts))
        return parts

    monkeypatch.setattr(TableEncoder, "_encoding", lambda *args: chunks.append(1) or encoding(*args))
    monkeypatch.setattr(distributed, "persisted", kept)

    def fitted(**settings):
        chunks.clear()
        held.clear()
        on_workers._unpack.cache_clear()
        with (
            dask.config.set(scheduler="synchronous"),
            config_context(**settings),
            pytest.warns(dpselect.SeededNoiseWarning),
        ):
            return clone(model).fit(frame, labels)[-1].coef_, len(chunks)

    once, n_once = fitted()
    found = [rows for (rows, *_), *_ in dask.compute(*held)]
    sizes = list(map(sizeof, found))
    # workers with little memory write it to disk
    again = pickle.loads(pickle.dumps(found[0])).load(slice(5, 9))
    np.testing.assert_array_equal(again, found[0].load(slice(5, 9)))
    assert 3 <= n_once <= 3 + 3  # of a sample, too
    assert sum(sizes) < (8 + 1 + 1) * n  # 17 features would be 136 n
    # where there is no memory for it, and as a twin does, each pass encodes anew
    anew, n_anew = fitted(working_memory=0)
    assert n_anew > 5 * 3 and not held
    np.testing.assert_allclose(once, anew, rtol=1e-12)
    # processes would send what they hold here, and get it back in each pass
    monkeypatch.setattr(distributed, "in_this_process", lambda: False)
    assert fitted()[1] == n_anew and not held


@pytest.mark.parametrize("n_fourier", [0, 8])
def test_workers_hold_random_features_and_make_others_anew(n_fourier):
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    table = pd.DataFrame({"z": np.linspace(0, 1, 90), "c": [*"abc"] * 30})
    encoder = TableEncoder({"z": (0, 1), "c": [*"abc"]}, n_fourier=n_fourier).fit(table)
    with dask.config.set(scheduler="synchronous"):
        rows = encoder.transform(as_lazy(dd.from_pandas(table, npartitions=2)))
        np.testing.assert_array_equal(rows.computed(), encoder.transform(table))
    assert rows.sliced == (n_fourier == 0)


@pytest.mark.parametrize("codes", [[0, 1, 2, 1], [2, 0, 2, 2], [-1, 1, 1, -1], [-1, -1], [], [3]])
def test_categories_that_do_not_occur_are_not_among_the_distinct_cells(codes):
    column = pd.Series(pd.Categorical.from_codes(codes, ["a", "b", "c", "d"]))
    distinct, places = table_form.distinct_cells(column)
    used = column.cat.remove_unused_categories()
    gaps = [np.nan] * (-1 in codes)
    assert repr([*distinct]) == repr([*used.cat.categories, *gaps])
    assert places.tolist() == used.cat.codes.tolist() and places.dtype == column.cat.codes.dtype


@pytest.mark.parametrize("most, n_codes", [(1, 3), (16, 2), (1024, 1)])
def test_codes_stand_for_features_to_the_last_bit(monkeypatch, most, n_codes):
    """Products with them are those with dense rows, up to rounding."""
    monkeypatch.setattr(table_encoding, "MOST_TOGETHER", most)
    rng = np.random.default_rng(0)
    schema = {"a": [*"xyz"], "n": (0, 1), "b": {"categories": [*"uv"], "missing": True}, "m": (0, 9)}
    cells = rng.choice([*"xyzw"], 50), rng.random(50), rng.choice(["u", "v", "w", None], 50)
    table = pd.DataFrame(dict(zip(schema, (*cells, rng.uniform(0, 9, 50)))))
    for code in ("simplex", "onehot"):
        encoder = TableEncoder(schema, categories=code, expansion=3, cut_points={"m": [2, 5]})
        dense = encoder.fit_transform(table)[5:45]
        encoding = encoder._encoding(table)
        coded, d = encoding.coded(slice(5, 45)), dense.shape[1]
        assert len(coded.codes) == n_codes and coded.shape == dense.shape
        np.testing.assert_array_equal(coded.toarray(), dense)
        np.testing.assert_array_equal(coded[dense[:, 0] > 0].toarray(), dense[dense[:, 0] > 0])
        np.testing.assert_array_equal(
            encoding([slice(5, 9), slice(30, 33)]), dense[[0, 1, 2, 3, 25, 26, 27]]
        )
        W, G = rng.normal(size=(d, 2)), rng.normal(size=(40, 2))
        np.testing.assert_allclose(coded @ W, dense @ W, atol=1e-14)
        np.testing.assert_allclose(coded.adjoint_dot(G), dense.T @ G, atol=1e-14)
        for power in (1, 2):
            np.testing.assert_allclose(coded.power_sums(power), (np.abs(dense) ** power).sum(axis=1))


@pytest.mark.parametrize("listed", ["abc", "abcd", "bac", "ab"])
@pytest.mark.parametrize("gap", [[], [None]])
def test_codes_that_are_those_of_the_schema_are_not_copied(listed, gap):
    column = pd.Series(pd.Categorical([*"abbca", *gap], categories=[*"abc"]))
    table = pd.DataFrame({"c": column, "n": 0.5})
    codes = TableEncoder({"c": [*listed], "n": (0, 1)}).fit(table)._encoding(table).codes["c"]
    assert codes.tolist() == [
        listed.find(cell) % (len(listed) + 1) for cell in [*"abbca", *"?" * len(gap)]
    ]
    assert np.shares_memory(codes, table["c"].array.codes) == ("abc".startswith(listed[:3]) and not gap)

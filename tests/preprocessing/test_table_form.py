"""What is public of a table, and records in its form, each by itself."""

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pytest
from scipy import sparse

from dpselect import RowChunks
from dpselect.preprocessing import BoundedScaler, TableEncoder, table_form
from dpselect.preprocessing.table_form import read_form
from dpselect.rows import as_lazy, block_map, is_lazy

NAN = float("nan")


@pytest.mark.parametrize(
    "X, kinds",
    [
        (np.ones((2, 2), dtype=bool), "nn"),
        (np.ones((2, 1), dtype=np.float32), "n"),
        ([[1, 2.5], [2, NAN]], "nn"),
        ([[1, "a"], [2.5, None]], "nt"),
        ([[1, "a"], [NAN, "b"]], "nt"),
        ([["a", NAN], ["b", "c"]], "tt"),
        (np.array([["a"], ["b"]]), "t"),
        (np.array([[Decimal("1.5"), True]], dtype=object), "nn"),
        (sparse.csr_array((3, 4), dtype=int), "nnnn"),
        (np.empty((0, 2), dtype=object), "nn"),
    ],
)
def test_columns_hold_numbers_or_text(X, kinds):
    form = read_form(X)
    assert "".join(kind[0] for kind in form.kinds) == kinds
    rows = form.convert(X)
    assert rows.dtype == (object if "t" in kinds else float)
    again = form.convert(rows)
    if not sparse.issparse(rows):
        assert repr(again) == repr(rows)
        assert {type(v) for v in rows.ravel().tolist()} <= {float, str, type(None)}
    assert {type(dummy) for dummy in form.dummies()} == {type(rows)}
    assert all(dummy.shape == (1, len(kinds)) for dummy in form.dummies())


@pytest.mark.parametrize(
    "column, said",
    [
        ([1, "SECRET"], "mixes numbers and text"),
        ([0.5, "SECRET", NAN], "mixes numbers and text"),
        ([None, NAN], "no value and no type"),
        ([1, None], "None or NA among numbers"),
        ([datetime.date(2020, 1, 1)], "neither numbers nor text"),
        ([b"SECRET"], "neither numbers nor text"),
        ([{"SECRET": 1}], "neither numbers nor text"),
        ([1j], "neither numbers nor text"),
    ],
)
def test_what_one_record_could_decide_is_refused(column, said):
    X = np.array([[0, value] for value in column], dtype=object)
    with pytest.raises(ValueError, match=f"Column 1 .*{said}.*;") as caught:
        read_form(X)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("name", ["list", "objects", "nullable", "polars"])
def test_gaps_among_objects_are_nan_where_steps_take_them(name):
    """Numbers reach steps as float64, whatever one record holds."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [[True, 1, "a"], [None, 2.5, "b"], [False, None, None]]
    X = {
        "list": lambda: rows,
        "objects": lambda: pd.DataFrame(rows, columns=list("abc"), dtype=object),
        "nullable": lambda: pd.DataFrame(rows, columns=list("abc")).convert_dtypes().astype(object),
        "polars": lambda: pl.DataFrame(rows, schema=list("abc"), orient="row"),
    }[name]()
    with pytest.raises(ValueError, match="None or NA among numbers.*begin with a TableEncoder"):
        read_form(X)
    form = read_form(X, gaps=True)
    assert form.kinds == ("numbers", "numbers", "text")
    found = form.convert(X)
    columns = found.T if name == "list" else [found[column] for column in "abc"]
    for column, expected in zip(columns, ([1, NAN, 0], [1, 2.5, NAN])):
        assert name == "list" or "float" in str(column.dtype).lower()
        np.testing.assert_array_equal(np.array(column, dtype=float), expected)
    assert list(columns[2])[:2] == ["a", "b"]
    with pytest.raises(ValueError, match="Column 1 .*mixes numbers and text"):
        read_form(np.array([[0, v] for v in (1, None, "SECRET")], dtype=object), gaps=True)
    if name == "list":
        chunk = form.convert(np.array([[0.5, None, None]], dtype=object))
        np.testing.assert_array_equal(chunk[0, :2].astype(float), [0.5, NAN])


FINE = [1, 2.5, True, NAN, Decimal("1.5"), np.int8(3), np.float32(0.5)]


@pytest.mark.parametrize("bad", ["SECRET", None, datetime.date(2020, 1, 1), b"SECRET", 1j])
@pytest.mark.parametrize("place", range(len(FINE) + 1))
def test_one_record_of_another_kind_is_refused_wherever_it_stands(bad, place):
    X = np.array([[0, value] for value in FINE], dtype=object)
    assert read_form(X).kinds == ("numbers", "numbers")
    X = np.insert(X, place, np.array([0, bad], dtype=object), axis=0)
    with pytest.raises(ValueError, match="Column 1 ") as caught:
        read_form(X)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("place", range(4))
def test_gaps_hide_neither_numbers_nor_text(place):
    column = [NAN] * 4
    column[place] = 0.5
    X = np.array([[value] for value in [*column, "SECRET"]], dtype=object)
    with pytest.raises(ValueError, match="mixes numbers and text"):
        read_form(X)
    # whatever marks them
    column = ["a", None, np.str_("b"), NAN]
    X = np.array([[value] for value in column[place:] + column[:place]], dtype=object)
    assert read_form(X).kinds == ("text",)


def test_frames_keep_library_names_and_index():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1, None, 3], "b": ["x", None, "y"]}, index=[5, 5, 7]).convert_dtypes()
    X["c"] = pd.Categorical([2, 3, None], categories=[3, 2, 1])
    form = read_form(X)
    rows = form.convert(X)
    assert form.kinds == ("numbers", "text", "numbers")
    assert list(rows.columns) == ["a", "b", "c"] and rows.index.tolist() == [5, 5, 7]
    assert [str(dtype) for dtype in rows.dtypes] == ["float64", "object", "float64"]
    np.testing.assert_array_equal(rows["a"], [1, NAN, 3])
    np.testing.assert_array_equal(rows["c"], [2, 3, NAN])
    assert rows["b"].tolist()[::2] == ["x", "y"] and rows["b"].isna().tolist() == [False, True, False]
    with pytest.raises(ValueError, match="Column 'd' .*neither"):
        read_form(X.assign(d=pd.Timestamp("2020-01-01")))
    twice = pd.DataFrame([[1, "x"]], columns=["a", "a"])
    assert read_form(twice).convert(twice).to_numpy().tolist() == [[1.0, "x"]]


def test_polars():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"a": [1, None], "b": ["x", None], "c": [True, False]})
    form = read_form(X)
    assert form.kinds == ("numbers", "text", "numbers")
    assert form.convert(X).dtypes == [pl.Float64, pl.String, pl.Float64]
    with pytest.raises(ValueError, match="Column 'd' .*neither"):
        read_form(X.with_columns(d=pl.date(2020, 1, 1)))
    with pytest.raises(ValueError, match="Column 'd' .*no value"):
        read_form(X.with_columns(d=pl.lit(None)))
    with pytest.raises(ValueError, match="Column 'c' .*polars' booleans"):
        read_form(X.with_columns(c=pl.Series([True, None])))


def test_arrow():
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    X = pa.table({"a": [1, None], "b": ["x", None], "c": [True, False]})
    X = X.append_column("d", X["b"].dictionary_encode())
    form = read_form(X)
    assert (form.kinds, form.columns) == (("numbers", "text", "numbers", "text"), list("abcd"))
    found = form.convert(X)
    assert found.schema.types == [pa.float64(), pa.string()] * 2
    assert found.to_pydict()["d"] == ["x", None] and np.isnan(found["a"][1].as_py())
    assert [dummy.schema for dummy in form.dummies()] == [found.schema] * 2
    assert read_form(X.slice(1)).kinds[1::2] == ("text", "text")
    for column, error in [
        (pa.array([0, 1], pa.timestamp("ns")), "Column 'e' .*neither"),
        (pa.nulls(2), "Column 'e' .*no value"),
        (pa.array([True, None]), "Column 'e' .*booleans or Arrow's"),
    ]:
        with pytest.raises(ValueError, match=error):
            read_form(X.append_column("e", column))


def test_other_frames_are_refused():
    other = type("Frame", (), {"column_names": ["a"], "shape": (2, 1)})
    with pytest.raises(TypeError, match=r"pandas or polars, or an Arrow table\.$"):
        read_form(other())


def test_of_lazy_rows_the_first_speaks_for_all():
    chunks = [[[1, "a"]], [[2.5, "b"]], [["c", "d"]]]

    def lazy(n):
        return as_lazy(RowChunks(lambda i: np.array(chunks[i], dtype=object), [1] * n, 2))

    form = read_form(lazy(2))
    rows = form.convert(lazy(2))
    assert is_lazy(rows) and form.kinds == ("numbers", "text")
    assert block_map(lambda block: block, rows).tolist() == [[1.0, "a"], [2.5, "b"]]
    with pytest.raises(ValueError, match="Column 0 .*mixes"):
        block_map(lambda block: block, form.convert(lazy(3)))


@pytest.mark.parametrize("gap", ["None", "nan", "NA"])
def test_a_missing_text_stays_what_it_is(gap):
    """Encoders take None, nan and NA for different categories, of records to come as well."""
    pd = pytest.importorskip("pandas")
    value = {"None": None, "nan": NAN, "NA": pd.NA}[gap]
    X = pd.DataFrame({"t": pd.Series(["a", value, np.str_("b")], dtype=object)})
    if gap == "NA":
        assert read_form(X.astype("string")).convert(X.astype("string"))["t"].iloc[1] is pd.NA
    column = read_form(X).convert(X)["t"]
    assert column.iloc[1] is value and [type(v) for v in column.iloc[::2]] == [str, str]


def test_a_chunk_without_values_is_of_either_kind():
    pd = pytest.importorskip("pandas")
    form = read_form(pd.DataFrame({"n": [1], "t": ["a"]}))
    for gaps in ([NAN, NAN], [None, None], pd.array([None, None], dtype="string")):
        rows = form.convert(pd.DataFrame({"n": gaps, "t": gaps}))
        assert rows["n"].dtype == float and rows["t"].dtype == object and rows.isna().all(axis=None)
    with pytest.raises(ValueError, match="Column 't' .*mixes"):
        form.convert(pd.DataFrame({"n": [1], "t": [1]}))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32", "Int8"])
def test_numbers_of_a_frame_are_float64_whatever_one_record_makes_of_their_column(dtype):
    """A gap makes integers floats, and small integers wrap around where floats do not."""
    pd = pytest.importorskip("pandas")
    whole = pd.DataFrame({"a": pd.array([1, 0, 1], dtype=dtype)})
    gap = pd.DataFrame({"a": [1.0, NAN, 1.0]})
    forms = [read_form(X) for X in (whole, gap)]
    assert forms[0] == forms[1]
    rows = [form.convert(X)["a"] for form, X in zip(forms, (whole, gap))]
    assert [column.dtype for column in rows] == [np.float64, np.float64]
    assert rows[0][2] == rows[1][2]


# ---- columns that a parameter knows by name

PUBLIC = {"a": (0, 1), "b": (0, 10), "c": (-5, 100), "d": (0, 2)}
CELLS = {"a": [0.2, 0.9], "b": [9.0, 1.0], "c": [100.0, 0.0], "d": [0.5, 7.0]}
# steps by what they know, and whether their output is in the order of that and not of the table
BY_NAME = {
    "TableEncoder": (lambda known: TableEncoder(known, expansion=2), True),
    "BoundedScaler": (BoundedScaler, False),
}


@pytest.mark.parametrize("container", ["pandas", "polars", "chunks"])
@pytest.mark.parametrize("step", BY_NAME)
def test_columns_are_known_by_name_in_whatever_order_they_stand(step, container):
    make, in_order_of_parameter = BY_NAME[step]
    frame = None if container == "chunks" else pytest.importorskip(container).DataFrame
    alone = {
        name: make({name: PUBLIC[name]}).fit_transform(np.transpose([CELLS[name]])) for name in PUBLIC
    }
    for order in itertools.permutations("abcd"):
        X = np.column_stack([CELLS[name] for name in order])
        table = (
            RowChunks(lambda i, X=X: X[[i]], [1, 1], 4, feature_names=order)
            if frame is None
            else frame({name: CELLS[name] for name in order})
        )
        found = make({name: PUBLIC[name] for name in "dacb"}).fit(table).transform(table)
        expected = [alone[name] for name in ("dacb" if in_order_of_parameter else order)]
        np.testing.assert_allclose(np.asarray(found), np.hstack(expected), atol=1e-12)


def typed_columns():
    """Columns whose type says their kind, and whether it does."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    texts, numbers, truths = ["a", None, "b"], [1.5, None, 2.0], [True, None, False]
    return {
        "pandas texts": (pd.Series(texts, dtype="string[python]"), True),
        "pandas Arrow texts": (pd.Series(texts, dtype="string[pyarrow]"), True),
        "pandas gaps alone": (pd.Series([None, None], dtype="string[python]"), True),
        "pandas floats": (pd.Series(numbers), True),
        "pandas nullable": (pd.Series(numbers, dtype="Float64"), True),
        "pandas objects": (pd.Series(texts, dtype=object), False),
        "pandas categories": (pd.Series(texts, dtype="category"), False),
        "pandas numeric categories": (pd.Series(numbers, dtype="category"), False),
        "pandas truths": (pd.Series(truths, dtype="boolean"), True),
        "numpy texts": (np.array(["a", "b"]), True),
        "numpy truths": (np.array([True, False]), True),
        "polars texts": (pl.Series(texts), True),
        "polars categories": (pl.Series(texts, dtype=pl.Categorical), True),
        "polars numbers": (pl.Series(numbers), True),
        "polars truths": (pl.Series(truths), False),
        "Arrow texts": (pa.chunked_array([texts]), True),
        "Arrow dictionaries": (pa.chunked_array([pa.array(texts).dictionary_encode()]), True),
        "Arrow numbers": (pa.chunked_array([numbers]), True),
        "Arrow truths": (pa.chunked_array([truths]), False),
    }


def kinds_by_type(monkeypatch):
    """Return the kinds of typed columns, and those whose values were read for it."""
    read, real, kinds = [], table_form.read_column, {}
    with monkeypatch.context() as patched:
        for name, (column, _) in typed_columns().items():
            patched.setattr(
                table_form, "read_column", lambda column, name=name: read.append(name) or real(column)
            )
            kinds[name] = table_form.kind_of(column)
    return kinds, set(read)


def test_the_kind_of_a_column_is_that_of_its_values(monkeypatch):
    expected = {name: table_form.read_column(column)[0] for name, (column, _) in typed_columns().items()}
    kinds, read = kinds_by_type(monkeypatch)
    assert kinds == expected
    assert read.isdisjoint(name for name, (_, known) in typed_columns().items() if known)
    monkeypatch.setattr(table_form, "holds_text", lambda column: False)  # a twin
    assert not kinds_by_type(monkeypatch)[1] <= read

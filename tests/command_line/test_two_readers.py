"""The command and a Python program read one file: the same rows, to the last bit."""

import csv
import io
import math
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect._command_line import file_columns, text_files
from dpselect._command_line.file_columns import KeptColumn
from dpselect._command_line.messages import CommandError
from dpselect._command_line.table_files import read_table
from dpselect._command_line.text_files import TextFile, TextFormat
from dpselect.preprocessing import PublicSchema, TableEncoder

SCHEMA = {
    "x": {"bounds": [-1e6, 1e6], "missing_values": ["-9", "k.A.", 99]},
    "job": {"categories": ["nurse", "Ärztin", "7", "07", "a;b"], "missing": True, "unknown": True},
    "day": {"date": ["2015-01-01", "2026-12-31"], "missing": True},
}
NUMBERS = [
    *("1", "+5", "-0.0", "1e5", "1E-3", " 12 ", "5.", ".5", "007", "9007199254740993", "0.1", "True"),
    *("-9", "99", "99.0", "k.A.", "K.A.", "", "NaN", "+nan", "n/a", "-", ".", "１２", "1e-400", "\t3"),
]
JOBS = [
    *("nurse", "NURSE", "Ärztin", "Ärztin", "7", "7.0", "07", "007", "a;b", ' "nurse" ', "", "NA"),
    *("a\nb", '"', '""', "a,b", "a\tb", "\u2028", "\x85", "はい", "x" * 50, "=1+1", "True"),
]
DAYS = [
    "2015-01-05",
    "20150105",
    "2015-01-05T23:30:00+02:00",
    "2016-02-29 12:00",
    "4",
    "",
    "NULL",
    "1e2",
]
HEADS = [
    ("x", "job", "day"),
    ("x", "job", "day", ""),
    ("id", "x", "job", 'Why, "if"\nat\x0ball?', "day"),
]


def text_of(head, rows, **dialect):
    stream = io.StringIO()
    csv.writer(stream, **dialect).writerows([head, *rows])
    return stream.getvalue()


def read_by_command(path, form=None, schema=SCHEMA):
    columns = dict(PublicSchema(schema).columns)
    return read_table(str(path), columns, form, others="left out", few=1)


def read_by_pandas(path, form, encoding):
    """Return the texts of a file as pandas reads them, of which the schema makes numbers."""
    return pd.read_csv(
        path,
        sep=form.separator,
        encoding=encoding,
        dtype=str,
        keep_default_na=False,
        skip_blank_lines=True,
    )


def rows_of(frame, schema=SCHEMA):
    return TableEncoder(schema, categories="onehot").fit_transform(frame[list(schema)])


@st.composite
def files(draw):
    head = draw(st.sampled_from(HEADS))
    cells = {"x": NUMBERS, "job": JOBS, "day": DAYS}
    row = st.tuples(*(st.sampled_from(cells.get(name, JOBS)) for name in head))
    rows = draw(st.lists(row, min_size=1, max_size=30))
    dialect = {
        "delimiter": draw(st.sampled_from(",;\t|")),
        "quoting": draw(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])),
        "lineterminator": draw(st.sampled_from(["\n", "\r\n"])),
    }
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be"]))
    ending = draw(st.sampled_from(["", ".gz", ".xz"]))
    return head, rows, dialect, encoding, ending, draw(st.integers(0, 200))


@given(files())
@settings(max_examples=50, deadline=None)
def test_the_command_and_pandas_make_the_same_rows(tmp_path_factory, file):
    head, rows, dialect, encoding, ending, more = file
    path = tmp_path_factory.mktemp("files") / f"d.csv{ending}"
    with text_files.PACKED[ending](path, "wb") as stream:
        stream.write(text_of(head, rows, **dialect).encode(encoding))
    form = TextFormat(dialect["delimiter"], None if encoding != "utf-16-be" else encoding)
    # no record is longer than a block, which then ends anywhere in the others
    longest = max(len(text_of(row, [], **dialect).encode("utf-16")) for row in [head, *rows])
    with mock.patch.object(text_files, "BLOCK", longest + more):
        found = read_by_command(path, form)
        copied = read_table(str(path), {"job": KeptColumn("job")}, form, others="left out", few=1)
    assert copied["job"].tolist() == [row[head.index("job")] for row in rows]
    expected = read_by_pandas(path, form, encoding)
    assert len(found) == len(rows) == len(expected)
    # no type follows from the cells
    levels = PublicSchema(SCHEMA).columns["job"].levels[:-1]
    assert found.dtypes.tolist() == [np.float64, pd.CategoricalDtype(list(levels)), np.float64]
    assert rows_of(found).tobytes() == rows_of(expected).tobytes()


KNOWN = {"age": [0, 2000], "job": ["clerk", "nurse"]}
ALIKE = {
    "other ends of lines in a heading": "age,job,x\x0by\n{},clerk,1\n50,nurse,1\n",
    "two more of Unicode": "age,job,x\x85y\u2028z\n{},clerk,1\n50,nurse,1\n",
    "an inch in a heading": 'age,job,5" x\n{},clerk,1\n50,nurse,1\n',
    "an inch in the first record": 'age,job,x\n{},clerk,5" x\n50,nurse,1\n',
    "blanks before a quotation mark of a later record": 'age,job,x\n{},clerk,1\n50, "nurse", "a,b"\n',
    "blanks before a quotation mark that begins a record": 'age,job\n{},clerk\n "50",nurse\n',
    "a mark of UTF-8": "\ufeffage,job\n{},clerk\n50,nurse\n",
    "a long text": 'age,job,x\n{},clerk,"' + "long " * 50_000 + '"\n50,nurse,1\n',
    "separators at the ends of records": "age,job\n{},clerk,\n50,nurse, \n",
}


@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-16-le"])
@pytest.mark.parametrize("what", ALIKE)
def test_no_record_is_lost(tmp_path, what, encoding):
    csv.field_size_limit(131_072)  # what Python begins with
    path = tmp_path / "d.csv"
    path.write_bytes(ALIKE[what].format("34").encode(encoding or "utf-8"))
    found = read_by_command(path, TextFormat(encoding=encoding), KNOWN)
    assert found["age"].tolist() == [34, 50] and found["job"].tolist() == ["clerk", "nurse"]


def test_names_of_rows_are_not_taken_for_the_first_column(tmp_path, monkeypatch):
    """R writes no name for them, and a gap at the end of the first record is no mark of this."""
    # the number of pytest's folder, which a message names, may be that of a cell
    monkeypatch.chdir(tmp_path)
    path, schema = Path("d.csv"), {**KNOWN, "job": {"categories": ["clerk"], "unknown": True}}
    path.write_text("age,job,x\n1,34,clerk,\n2,50,nurse,7\n")
    with pytest.raises(CommandError, match="more or fewer fields") as caught:
        read_by_command(path, None, schema)
    assert "34" not in str(caught.value) and "row names" in str(caught.value)


MARKS = [(".", ","), (",", "."), (",", " "), (".", "'"), (",", ""), (".", "")]


@pytest.mark.parametrize("decimal, thousands", MARKS)
def test_numbers_with_marks(tmp_path, decimal, thousands):
    rng = np.random.default_rng(0)
    numbers = (rng.normal(0, 1, 200) * 10.0 ** rng.integers(-3, 9, 200)).round(4).tolist()
    swap = str.maketrans({".": decimal, ",": thousands})
    texts = [f"{x:,.4f}".translate(swap) for x in numbers] + [f"{x:e}".translate(swap) for x in numbers]
    numbers += [float(f"{x:e}") for x in numbers]
    gaps = ["k.A.", ".", "", "no answer", "n/a", "1.#IND", "-9"]
    path, form = tmp_path / "d.csv", TextFormat(";", None, decimal, thousands)
    schema = {"x": {"bounds": [-1, 1], "missing_values": ["k.A.", "no answer", -9]}}
    path.write_text("\n".join(["x;y", *(f"{text};" for text in texts + gaps)]) + "\n")
    found = read_by_command(path, form, schema)["x"].to_numpy()
    np.testing.assert_array_equal(found, [*numbers, *[math.nan] * len(gaps)])
    # what is no number with these marks is none, and no other number either
    wrong = [
        f"1{thousands}5",
        f"1{thousands}5000",
        f"1{decimal}500{thousands}5",
        f"1{decimal}5{decimal}5",
    ]
    wrong = wrong if thousands else [f"1{decimal}5{decimal}5", "1 500", "1'5"]
    for text in [*wrong, "1.500" if decimal == "," and thousands != "." else "1_500"]:
        path.write_text(f"x;y\n{text};\n")
        with pytest.raises(CommandError, match="not a finite number"):
            read_by_command(path, form, schema)


@pytest.mark.parametrize("cell", ["nan(x)", "nan()", "-nan(ind)", "1e400", "inf", "0x10", "5d", "1_000"])
def test_a_cell_is_read_without_an_eye_on_others(tmp_path, cell):
    schema, path = {"x": {"bounds": [0, 9], "missing": True}}, tmp_path / "d.csv"
    for other in ("5", "True"):  # which is no number to Arrow
        path.write_text(f"x,y\n{cell},\n{other},\n")
        with pytest.raises(CommandError, match="not a finite number"):
            read_by_command(path, None, schema)


@pytest.mark.parametrize("code", ["-9", " -9", -9])
def test_a_code_of_gaps_is_one_as_text_and_as_number(tmp_path, code):
    schema = {"x": {"bounds": [-20, 20], "missing_values": [code]}}
    schema["job"] = {"categories": ["1", "2"], "missing_values": [code]}
    frame = pd.DataFrame({"x": [-9, 5], "job": [1, -9]})
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    tables = [read_by_command(tmp_path / name, None, schema) for name in ("d.csv", "d.parquet")]
    assert all(table.isna().to_numpy().tolist() == [[True, False], [False, True]] for table in tables)
    rows = [rows_of(table, schema).tolist() for table in [*tables, frame, frame.astype(str)]]
    assert rows == rows[:1] * 4


BROKEN = {
    "lines of a heading are counted as those of Unicode": ("_record", lambda lines, mark: next(
        (line.splitlines(keepends=True) for line in lines), [])),
    "a quotation mark anywhere begins a cell": ("_quoted", lambda mark: (
        text_files.re.compile('()"[^"]*"'), text_files.re.compile('"[^"]*$'))),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_reader_that_loses_records_is_seen(tmp_path, monkeypatch, what):
    monkeypatch.setattr(text_files, *BROKEN[what])
    heading = next(name for name in ALIKE if ("heading" in name if "lines" in what else "inch" in name))
    with pytest.raises((AssertionError, CommandError)):
        test_no_record_is_lost(tmp_path, heading, None)


def test_a_reader_that_reads_other_numbers_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(file_columns, "holds_text", lambda cells: False)
    test_numbers_with_marks(tmp_path, ".", "")  # cells are read one by one, without marks
    with pytest.raises((AssertionError, CommandError)):
        test_numbers_with_marks(tmp_path, ",", ".")
    monkeypatch.setattr(TextFile, "_without_ends", lambda self, block: block)
    with pytest.raises(pytest.fail.Exception):
        test_names_of_rows_are_not_taken_for_the_first_column(tmp_path, monkeypatch)

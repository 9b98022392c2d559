"""Tables as people have them: separators, headings, encodings, gaps and marks of numbers."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpselect._command_line import file_columns, table_files, text_files
from dpselect._command_line.table_files import read_table
from dpselect._command_line.text_files import TextFile, TextFormat
from dpselect.preprocessing import PublicSchema

N = 12
AGES = [18 + 3 * k for k in range(N)]
JOBS = ["clerk", "nurse"] * (N // 2)
KNOWN = {"age": [18, 90], "job": ["clerk", "nurse"]}


def lines(row="{age},{job}", head="age,job", end="\n", ages=AGES, jobs=JOBS):
    return end.join([head, *(row.format(age=a, job=j) for a, j in zip(ages, jobs))]) + end


def read(tmp_path, text, schema=KNOWN, form=None, encoding="utf-8", name="d.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return read_table(str(path), dict(PublicSchema(schema).columns), form)


def check(frame, ages=AGES, jobs=JOBS):
    age, job = (frame[name].tolist() for name in frame)
    assert age == ages and job == jobs


READ_ALIKE = {
    "commas": lines(),
    "semicolons": lines("{age};{job}", "age;job"),
    "tabs": lines("{age}\t{job}", "age\tjob"),
    "bars": lines("{age}|{job}", "age|job"),
    "separators in quoted cells": lines('"{age}";"{job}"', '"age";"job"'),
    "more separators in another heading": lines("{age};{job};1", 'age;job;"a, b, c, d, e"'),
    "more separators in a bare heading": lines("{age};{job};1;1", "age;job;Why, if at all;x"),
    "a blank first line": "\n" + lines(),
    "blank first lines": " \r\n\r\n" + lines(end="\r\n"),
    "a first line of separators": ",\n" + lines(),
    "a separator line": "sep=;\n" + lines("{age};{job}", "age;job"),
    "a quoted separator line": '"sep=|"\r\n' + lines("{age}|{job}", "age|job", "\r\n"),
    "a separator line of another mark": "SEP=:\n" + lines("{age}:{job}", "age:job"),
    "lines that end as on an old Mac": lines(end="\r"),
    "blank lines between records": lines(end="\n\n"),
    "blanks before quotation marks": lines('"{age}", "{job}"', '"age", "job"'),
    "more blanks before quotation marks": lines('{age},   "{job}"', "age, job"),
    "blanks before quotation marks of records": lines('{age}, "{job}"'),
    "blanks around numbers": lines(" {age} ,{job}"),
    "blanks around texts": lines("{age}, {job} "),
    "separators at the ends": lines("{age},{job},", "age,job,"),
    "separators at the ends of records": lines("{age},{job},"),
    "a column without a name": lines("7,{age},{job}", ",age,job"),
    "two columns without names": lines("7,{age},x,{job}", ",age,,job"),
    "a heading over two lines": lines('{age},"{job}"', '"age","job"') + "\n",
    "a mark of UTF-8": "\ufeff" + lines(),
    "numbers in quotation marks": lines('"{age}",{job}'),
    "decimals and exponents": lines("{age}.0e0,{job}"),
    "signs": lines("+{age},{job}"),
    "capitals": lines(jobs=["Clerk", "NURSE"] * (N // 2)),
}


@pytest.mark.parametrize("what", READ_ALIKE)
def test_one_table_however_it_is_written(tmp_path, what):
    schema = KNOWN
    if "heading" in what and "over" not in what:
        text = READ_ALIKE[what]
        path = tmp_path / "d.csv"
        path.write_text(text, newline="")
        columns = dict(PublicSchema(schema).columns)
        check(read_table(str(path), columns, others="left out"))
    else:
        check(read(tmp_path, READ_ALIKE[what], schema))


BROKEN = {
    "separators are counted inside quotation marks": (
        "more separators in another heading",
        lambda m: m.setattr(text_files, "_separator", lambda head, first: max(",;", key=head.count)),
    ),
    "separator lines are names": (
        "a separator line of another mark",
        lambda m: m.setattr(text_files, "SEPARATOR_LINE", text_files.re.compile("never")),
    ),
    "blanks stay before quotation marks": (
        "blanks before quotation marks",
        lambda m: m.setattr(TextFile, "_tidied", lambda self: iter([Path(self.path).read_bytes()])),
    ),
    "the names of columns are their places": (
        "a column without a name",
        lambda m: m.setattr(TextFile, "blocks", shifted(TextFile.blocks)),
    ),
}


def shifted(blocks):
    return lambda self, places: blocks(self, [place - 1 for place in places])


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_reader_is_seen(tmp_path, monkeypatch, what):
    name, spoil = BROKEN[what]
    spoil(monkeypatch)
    with pytest.raises((AssertionError, table_files.CommandError, ValueError)):
        test_one_table_however_it_is_written(tmp_path, name)


@pytest.mark.parametrize("encoding, mark", [
    ("cp1252", None), ("latin1", None), ("shift_jis", None), ("utf-16", True), ("utf-16-le", None),
    ("cp1251", None), ("utf-8-sig", True),
])  # fmt: skip
def test_encodings(tmp_path, encoding, mark):
    job = {"shift_jis": "はい", "cp1251": "врач"}.get(encoding, "infirmière")
    jobs, schema = ["clerk", job] * (N // 2), {**KNOWN, "job": ["clerk", job]}
    text = lines(jobs=jobs)
    check(read(tmp_path, text, schema, TextFormat(encoding=encoding), encoding), jobs=jobs)
    if mark:
        check(read(tmp_path, text, schema, None, encoding), jobs=jobs)
    elif not encoding.startswith("utf-16"):
        with pytest.raises(table_files.CommandError, match="--encoding cp1252.*CSV UTF-8") as caught:
            read(tmp_path, text, schema, None, encoding)
        assert job not in str(caught.value)


@pytest.mark.parametrize("decimal, thousands, row", [
    (",", "", "{age},5;{job}"), (",", ".", "1.0{age},5;{job}"), (".", ",", "1,0{age}.5;{job}"),
    (".", "'", "1'0{age}.5;{job}"), (",", " ", "1 0{age},5;{job}"), (",", "\xa0", "1\xa00{age},5;{job}"),
])  # fmt: skip
def test_marks_of_numbers(tmp_path, decimal, thousands, row):
    form = TextFormat(decimal=decimal, thousands=thousands)
    text, more = lines(row, "age;job"), 1000.5 if thousands else 0.5
    frame = read(tmp_path, text, {**KNOWN, "age": [0, 9999]}, form)
    check(frame, [age + more for age in AGES])
    with pytest.raises(table_files.CommandError, match="--decimal ,"):
        read(tmp_path, text, {**KNOWN, "age": [0, 9999]})


def test_a_point_is_no_decimal_point_beside_a_decimal_comma(tmp_path, monkeypatch):
    """1.500 is a thousand and a half in such files, or one and a half."""
    text = lines("{age}.500;{job}", "age;job")

    def check_refused():
        with pytest.raises(table_files.CommandError, match="not a finite number"):
            read(tmp_path, text, form=TextFormat(decimal=","))

    check_refused()
    monkeypatch.setattr(TextFormat, "numbers", lambda self, cells: cells)
    with pytest.raises(pytest.fail.Exception):
        check_refused()


GAPS = ["", "?", "-", ".", "NA", "N/A", "n/a", "NULL", "null", "None", "#N/A", "NaN", "<NA>", " N/A "]


@pytest.mark.parametrize("column", ["age", "job"])
@pytest.mark.parametrize("gap", GAPS)
def test_gaps(tmp_path, gap, column):
    schema = {
        "age": {"bounds": [18, 90], "missing": column == "age"},
        "job": {"categories": ["clerk", "nurse"], "missing": column == "job"},
    }
    cells = {"ages": [gap, *AGES[1:]]} if column == "age" else {"jobs": [gap, *JOBS[1:]]}
    frame = read(tmp_path, lines(**cells), schema)
    assert frame[column].isna().tolist() == [True] + [False] * (N - 1)
    with pytest.raises(table_files.CommandError, match="has missing values"):
        read(tmp_path, lines(**cells))


@pytest.mark.parametrize("values, cell", [(["refused"], "refused"), ([-9], "-9"), ([999, "x"], "999.0")])
def test_gaps_of_the_schema(tmp_path, monkeypatch, values, cell):
    schema = {
        "age": {"bounds": [18, 90], "missing_values": values},
        "job": {"categories": ["clerk", "nurse"], "missing_values": values},
    }
    text = lines(ages=[cell, *AGES[1:]], jobs=[*JOBS[:-1], cell])

    def check_gaps():
        frame = read(tmp_path, text, schema)
        assert frame["age"].isna().tolist() == [True] + [False] * (N - 1)
        assert frame["job"].isna().tolist() == [False] * (N - 1) + [True]

    check_gaps()
    # without the codes
    schema = {
        "age": {"bounds": [18, 90], "missing": True},
        "job": {**schema["job"], "missing_values": []},
    }
    with pytest.raises((AssertionError, table_files.CommandError)):
        check_gaps()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_columns_without_any_value(tmp_path, ending):
    schema = {
        "age": {"bounds": [18, 90], "missing": True},
        "job": {"categories": ["clerk", "nurse"], "missing": True},
    }
    path = tmp_path / f"d{ending}"
    frame = pd.DataFrame({"age": [np.nan] * N, "job": [None] * N, "id": range(N)})
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    found = read_table(str(path), dict(PublicSchema(schema).columns), others="left out")
    assert found.isna().all(axis=None) and len(found) == N


STORED = {
    "texts": lambda f: f.astype({"job": object}),
    "categories": lambda f: f.astype({"job": "category"}),
    "short numbers": lambda f: f.astype({"age": np.int8}),
    "numbers with gaps": lambda f: f.astype({"age": "Int64"}),
    "numbers as texts": lambda f: f.astype({"age": str}),
    "an index": lambda f: f.set_index(pd.Index(range(3, 3 + N))),
}


@pytest.mark.parametrize("stored", STORED)
def test_parquet(tmp_path, stored):
    path = tmp_path / "d.parquet"
    STORED[stored](pd.DataFrame({"age": AGES, "job": JOBS})).to_parquet(path)
    check(read_table(str(path), dict(PublicSchema(KNOWN).columns)))


@pytest.mark.parametrize("cells", [[["clerk"]] * N, [{"a": 1}] * N, [{"a": [1]}] * N])
def test_nested_columns_are_named(tmp_path, cells):
    path = tmp_path / "d.parquet"
    pd.DataFrame({"age": AGES, "job": cells}).to_parquet(path)
    with pytest.raises(table_files.CommandError, match="column 'job' holds lists or records"):
        read_table(str(path), dict(PublicSchema(KNOWN).columns))
    columns = dict(PublicSchema({"age": [18, 90]}).columns)
    assert read_table(str(path), columns, drop=["job"])["age"].tolist() == AGES


def test_doubled_names_matter_only_if_they_are_used(tmp_path):
    text = lines("{age},{job},1,2", "age,job,Why?,Why?")
    path = tmp_path / "d.csv"
    path.write_text(text)
    columns = dict(PublicSchema(KNOWN).columns)
    check(read_table(str(path), columns, drop=["Why?"]))
    path.write_text(text.replace("Why?", "age"))
    with pytest.raises(table_files.CommandError, match="the column 'age' more than once"):
        read_table(str(path), columns)


@pytest.mark.parametrize("quoted", [False, True])
def test_numbers_are_those_of_python_to_the_last_bit(tmp_path, quoted):
    rng = np.random.default_rng(0)
    texts = [repr(float(x)) for x in rng.normal(0, 1, 500) * 10.0 ** rng.integers(-300, 300, 500)]
    texts += ["9007199254740993", "0.1e-5", "00012", "5e-324", "-0.0", "1E5", ".5", "5.", "True"]
    row = '"{age}",{job}' if quoted else "{age},{job}"
    text = lines(row, ages=texts, jobs=["clerk"] * len(texts))
    found = read(tmp_path, text, {**KNOWN, "age": [0, 1]})["age"].to_numpy()
    expected = np.array([1.0 if text == "True" else float(text) for text in texts])
    assert (found.view(np.int64) == expected.view(np.int64)).all()


def test_blocks_do_not_matter(tmp_path, monkeypatch):
    text = lines(ages=list(range(18, 90)) * 50, jobs=["clerk", "nurse"] * 1800)
    frames = [read(tmp_path, text)]
    monkeypatch.setattr(text_files, "BLOCK", 200)
    frames.append(read(tmp_path, text))
    pd.testing.assert_frame_equal(*frames)


def test_a_category_keeps_its_code_in_every_block(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK", 200)
    text = lines(ages=AGES * 20, jobs=["nurse"] * 200 + ["clerk"] * 40)
    jobs = ["nurse"] * 200 + ["clerk"] * 40
    check(read(tmp_path, text), AGES * 20, jobs)
    # a reader that takes the code of a block for that of all
    monkeypatch.setattr(file_columns.CategoryCells, "_index", lambda self, cell: 0 if cell else -1)
    with pytest.raises(AssertionError):
        check(read(tmp_path, text), AGES * 20, jobs)


# --- the schema's template


@pytest.mark.parametrize("head, says", [
    ("2019,job", "'2019' is named by a number"), ("job,1999,2019", "'1999' and '2019'"),
])  # fmt: skip
def test_years_are_names_of_columns(run, folder, head, says):
    (folder / "d.csv").write_text(head + "\n1,2\n")
    code, out, err = run("schema", "d.csv")
    assert code == 0 and set(json.loads(out)) == set(head.split(",")) and says in err


@pytest.mark.parametrize("head", ["34,farmer", "2019,2020", "1.5,job", "-1,job", "job,NA"])
def test_records_are_no_names_of_columns(refused, folder, head):
    (folder / "d.csv").write_text(head + "\n1,2\n")
    said = refused("schema", "d.csv")
    assert "its first row must hold the names" in said and head.split(",")[0] not in said


def test_a_template_leaves_out_what_has_no_name_of_its_own(run, folder):
    (folder / "d.csv").write_text(",a,b,b\n1,2,3,4\n")
    code, out, err = run("schema", "d.csv")
    assert code == 0 and json.loads(out) == {"a": None} and "column 'b' is there more than once" in err


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_encodings_of_a_schema(tmp_path, encoding):
    (tmp_path / "s.json").write_bytes(json.dumps({"größe": [0, 3]}, ensure_ascii=False).encode(encoding))
    assert list(PublicSchema.from_json(tmp_path / "s.json").columns) == ["größe"]
    (tmp_path / "s.json").write_bytes(json.dumps({"größe": [0, 3]}, ensure_ascii=False).encode("cp1252"))
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        PublicSchema.from_json(tmp_path / "s.json")

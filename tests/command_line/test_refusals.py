"""What the command refuses: in one line, with code 2, without a value of the records, before any fit."""

import gzip
import json
import sys

import numpy as np
import pandas as pd
import pytest

from dpselect._command_line import files

from .conftest import FULL, HEADER, SCHEMA, SMOKES, TRUST, WAITING_TIME, as_csv, records

WAITS = ["fit", "waits.csv", *WAITING_TIME]
PLAN = ["plan", *FULL[2:], "--records", "1000"]
PREDICT = ["predict", TRUST, "model.pkl", "data.csv"]
EVALUATE = ["evaluate", TRUST, "model.pkl", "data.csv", "--target", "out come", "--epsilon", "1"]


def without(argv, option):
    at = argv.index(option)
    return argv[:at] + argv[at + 2 :]


@pytest.mark.parametrize("argv, says", [
    (["release"], "invalid choice: 'release'"),
    (["data.csv", *FULL[2:]], "invalid choice: 'data.csv'"),
    (["--json"], "unrecognized arguments: --json"),
    (["--epsilon", "1"], "invalid choice: '1'"),
    (["fit"], "required: FILE, --schema, --epsilon"),
    (["fit", "data.csv"], "required: --schema, --epsilon"),
    (without(FULL, "--target"), "--target is missing"),
    (without(FULL, "--epsilon"), "required: --epsilon"),
    (without(FULL, "--schema"), "required: --schema"),
    ([*FULL, "--alpha", "0.1", "0"], "--alpha must be"),
    ([*FULL, "--alpha", "-1"], "--alpha must be"),
    ([*FULL, "--alpha", "nan"], "--alpha must be"),
    ([*FULL, "--alpha", "0.1", "0.10"], "a value twice"),
    ([*FULL, "--alpha"], "expected at least one argument"),
    ([*FULL, "--seed", "3"], "unrecognized arguments"),
    ([*FULL, "line\nbreak"], "line\\nbreak"),
    ([*FULL, "--task", "clustering"], "invalid choice: 'clustering'"),
    ([*FULL, "--task", "regression"], "'out come' must have its two bounds"),
    ([*FULL, "--task", "counts"], "'out come' must have its two bounds"),
    ([*FULL, "--task", "density"], "--target means nothing for a density"),
    (["export", TRUST, "density.pkl", "--output", "m.csv", "--schema", "ages.json"],
     "give the schema of the fit"),
    (["predict", TRUST, "model.pkl", "data.csv", "--schema", "schema.json"], "--schema means nothing"),
    ([*WAITS, "--task", "classification"], "'wait' must have its classes"),
    ([*without(WAITS, "--target"), "--task", "density", "--bins", "1"], "--bins must be a whole number"),
    ([*without(WAITS, "--target"), "--task", "density", "--bins", "x"], "--bins must be"),
    ([*without(WAITS, "--target"), "--task", "density", "--alpha", "1"], "--alpha means nothing"),
    ([*without(WAITS, "--target"), "--task", "density", "--lines"], "--lines means nothing"),
    ([*FULL, "--bins", "8"], "--bins means nothing without --task density"),
    ([*WAITS, "--task", "counts", "--bins", "20"], "--bins means nothing without --task density"),
    (["plan", *FULL[2:], "--records", "100", "--bins", "8"], "--bins means nothing"),
    ([*FULL, "--excess-risk", "0"], "--excess-risk must be"),
    ([*FULL, "--excess-risk", "0.1", "--alpha", "0.1", "1"], "give one --alpha"),
    ([*FULL, "--separator", "ab"], "--separator must be one character"),
    ([*FULL, "--separator", '"'], "--separator must be one character"),
    ([*FULL, "--drop", "height"], "it has no column 'height' (--drop)"),
    ([*FULL, "--drop", "out come"], "The schema has no column 'out come' (--target)"),
    ([*FULL, "--drop", "age", "smoker", "bmi"], "no column to predict from"),
    (["fit", "data.csv", "--target", "ill", *FULL[4:]], "The schema has no column 'ill' (--target)"),
    ([*FULL, "--save", "model.joblib"], "must end in .skops or .pkl"),
    ([*FULL, "--save", "nowhere/model.pkl"], "does not exist"),
    ([*FULL, "--save", "data.csv/model.pkl"], "does not exist"),
    ([*FULL, "--save", "folder.pkl"], "cannot be written"),
    ([*FULL, "--report", "said.pdf"], "must end in .html, .md or .json"),
    ([*FULL, "--report", "nowhere/said.md"], "does not exist"),
    ([*FULL, "--ledger", "none"], "no ledger at 'none'"),
    ([*FULL, "--ledger", "data.csv"], "no ledger"),
    ([*FULL, "--label", "March"], "--label needs --ledger"),
    (["plan"], "required: --schema, --epsilon, --records"),
    (without(PLAN, "--records"), "required: --records"),
    ([*without(PLAN, "--records"), "--records", "0"], "--records must be a whole number from 1"),
    ([*without(PLAN, "--records"), "--records", "many"], "--records must be a whole number"),
    ([*PLAN, "--save", "model.pkl"], "unrecognized arguments"),
    (["schema"], "required: FILE"),
    (["schema", "lost.csv"], "cannot be read (No such file"),
    (["schema", "data.csv", "--check", "waits.json"],
     ("lacks the columns 'out come' and 'smoker', which --drop leaves out; the records lack its column "
     "'wait'")),
    (["schema", "data.csv", "--output", "schema.json"], "is there already"),
    (["predict"], "required: MODEL, FILE"),
    (["predict", TRUST, "lost.pkl", "data.csv"], "The model 'lost.pkl' cannot be read"),
    (["predict", "data.csv", "data.csv"], "must end in .skops or .pkl"),
    (["predict", TRUST, "bad.pkl", "data.csv"], "is damaged, or was not written by"),
    (["predict", TRUST, "other.pkl", "data.csv"], "was not written by dpselect fit --save"),
    ([*PREDICT, "--output", "waits.csv"], "is there already"),
    (["predict", TRUST, "model.pkl", "waits.csv"], "it lacks the column 'smoker'"),
    ([*PREDICT, "--threshold", "1"], "--threshold must be a number from 1e-06"),
    ([*PREDICT, "--threshold", "0.3", "--probabilities"], "leave one out"),
    (["predict", TRUST, "waits.pkl", "waits.csv", "--threshold", "0.3"], "a classifier of two classes"),
    ([*PREDICT, "--keep", "height", "age"], "lacks the column 'height' (--keep)"),
    ([*PREDICT, "--drop", "age"], "unrecognized arguments: --drop"),
    (["predict", TRUST, "waits.pkl", "waits.csv", "--probabilities"],
     "--probabilities needs a classifier"),
    (without(EVALUATE, "--target"), "--target is missing"),
    (["evaluate", TRUST, "density.pkl", "waits.csv", "--target", "wait", "--epsilon", "1"],
     "--target means nothing for a density"),
    (["evaluate", TRUST, "waits.pkl", "data.csv", "--target", "smoker", "--epsilon", "1"],
     "its column 'smoker' has numeric bounds, but holds"),
    ([*FULL, "--evaluation", "0"], "--evaluation must be a number from 0.001"),
    ([*FULL, "--evaluation", "1"], "--evaluation must be a number from 0.001"),
    ([*FULL, "--evaluation", "half"], "--evaluation must be"),
    ([*PLAN[:-1], "2", "--evaluation", "0.9"], "--evaluation 0.9 sets all of the 2 records aside"),
    (without(EVALUATE, "--epsilon"), "required: --epsilon"),
    (["evaluate", TRUST, "model.pkl", "data.csv", "--target", "ill", "--epsilon", "1"],
     "lacks the column 'ill'"),
    (["evaluate", TRUST, "model.pkl", "data.csv", "--target", "age", "--epsilon", "1"],
     "its column 'age' holds something"),
    (["export", TRUST, "model.pkl", "--output", "m.txt"], "must end in .onnx, .skops or .csv"),
    (["export", TRUST, "model.pkl", "--output", "m.csv"], "A .csv holds the cells of a density"),
    (["export", TRUST, "density.pkl", "--output", "m.onnx"], "A density goes into .csv"),
    ([*FULL, "--about", "Visits"], "--about needs --report"),
    (["report"], "required: MODEL"),
    (["report", TRUST, "model.pkl", "--output", "said.txt"], "must end in .html, .md or .json"),
    (["report", TRUST, "model.pkl", "--ledger", "none"], "no ledger at 'none'"),
])  # fmt: skip
def test_arguments(refused, folder, model, argv, says):
    (folder / "folder.pkl").mkdir()
    (folder / "bad.pkl").write_bytes(b"\x80\x04junk")
    (folder / "other.pkl").write_bytes(files.pickle.dumps({"no": "model"}))
    assert says in refused(*argv)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Models that `dpselect fit` has saved, as bytes."""
    from dpselect import DPHistogramDensity, DPLogisticRegression, DPRidge, StabilityGridSearchCV
    from dpselect.preprocessing import tabular_pipeline

    table = pd.DataFrame(records(), columns=HEADER).astype({"age": float})
    schema = {name: SCHEMA[name] for name in ("age", "smoker", "bmi")}
    pipeline = tabular_pipeline(schema, DPLogisticRegression(classes=["ill", "well"]))
    one = StabilityGridSearchCV(pipeline, {}).fit(table[list(schema)], table["out come"])
    del schema["smoker"]
    other = StabilityGridSearchCV(tabular_pipeline(schema, DPRidge(target_range=(0, 10))), {})
    other.fit(table[list(schema)], np.arange(200) % 7)
    density = DPHistogramDensity(bin_width=20, bounds=(0, 120)).fit(table[["age"]])
    density = StabilityGridSearchCV(density, {}).fit(table[["age"]])
    return [files.pickle.dumps(model) for model in (one, other, density)]


@pytest.fixture
def model(saved, folder):
    (folder / "ages.json").write_text(json.dumps({"age": ["young", "old"]}))
    for name, content in zip(("model.pkl", "waits.pkl", "density.pkl"), saved):
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("epsilon", ["0", "-1", "inf", "nan", "one", "", "1e-300", "1e300"])
@pytest.mark.parametrize("argv", [FULL, PLAN, EVALUATE], ids=lambda argv: argv[0])
def test_epsilon(refused, argv, epsilon):
    said = refused(*without(argv, "--epsilon"), f"--epsilon={epsilon}")
    assert "--epsilon must be a number from 1e-06 to 1e+06, not " in said


def test_a_folder_without_permission(refused, folder, monkeypatch):
    def no_file(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "open", no_file, raising=False)
    said = refused(*FULL, "--save", "model.pkl")
    assert "cannot be written (Permission denied)" in said and not (folder / "model.pkl").exists()


def test_skops_is_asked_for_before_the_fit(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    said = refused(*FULL, "--save", "model.skops")
    assert 'python -m pip install "dpselect[skops]"' in said


# --- schemas


@pytest.mark.parametrize(
    "text, says",
    [
        ("{", "not valid JSON (line 1)"),
        ("[" * 100_000, "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        ("[1, 2]", "no JSON object"),
        ('{"age": [0, 1], "age": [0, 2]}', "of 'age' (it is there twice)"),
        ('{"age": [0, 1], "age ": [0, 2]}', "of 'age' (it is there twice)"),
        ('{"age": {"bounds": [0, 1], "bounds": [0, 2]}}', "of 'bounds' (it is there twice)"),
        ('{"age": [0, Infinity]}', "two finite numbers"),
        ('{"age": [0, NaN]}', "two finite numbers"),
        ('{"age": [0, 1e999]}', "two finite numbers"),
        (f'{{"age": [0, 1{"0" * 400}]}}', "two finite numbers"),
        (f'{{"age": [0, 1{"0" * 5000}]}}', "not valid JSON"),
        ('{"age": [5, 5]}', "low < high"),
        ('{"age": [9, 5]}', "low < high"),
        ('{"age": [1, 2, 3]}', "categories are written as texts"),
        ('{"age": [1]}', "not two bounds"),
        ('{"age": [true, 1]}', "two finite numbers"),
        ('{"age": [0, "120"]}', "two finite numbers"),
        ('{"age": []}', "neither bounds nor a list of categories"),
        ('{"age": 3}', "neither bounds nor a list of categories"),
        ('{"age": null}', "not filled in"),
        ('{"smoker": ["yes"]}', "fewer than two categories"),
        ('{"smoker": ["yes", "yes "]}', "categories that mean the same"),
        (
            '{"age": [5, 5], "bmi": null, "bmi": 3, "smoker": {"categories": ["a"], "fill": 1}}',
            (
                "of 'bmi' (it is there twice), of column 'age' (its bounds are not two finite numbers "
                "low < high), of column 'bmi' (it is neither bounds nor a list of categories), of "
                "column 'smoker' (it has fewer than two categories, so it tells nothing, and it has "
                "'fill', which means nothing there); write"
            ),
        ),
    ],
)
@pytest.mark.parametrize(
    "argv", [FULL, ["schema", "data.csv", "--check", "schema.json"]], ids=lambda argv: argv[0]
)
def test_malformed_schemas(refused, folder, argv, text, says):
    (folder / "schema.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert says in refused(*argv)


@pytest.mark.parametrize(
    "change, says",
    [
        ({"out come": [0, 1]}, "its column 'out come' has numeric bounds, but holds"),
        ({"out come": {"categories": ["ill", "well"], "missing": True}}, "its classes in the schema"),
        ({"out come": {"bounds": [0, 1], "missing": True}}, "no gaps"),
        ({"height": [0, 3]}, "it lacks the column 'height'"),
        ({"bmi": None}, "the schema lacks its column 'bmi'"),
        ({"bmi": ["low", "high"]}, "its column 'bmi' holds something that the schema does not list"),
        ({"smoker": [0, 1]}, "its column 'smoker' has numeric bounds, but holds"),
        ({"smoker": ["yes", "no"]}, "its column 'smoker' holds something"),
        ({"out come": ["ill", "dead"]}, "its column 'out come' holds something"),
        (
            {"bmi": ["low", "high"], "smoker": [0, 1]},
            (
                "its column 'smoker' has numeric bounds, but holds something that is not a finite "
                'number (of dates say "date" in the schema, of decimal commas --decimal , and of other '
                "gaps \"missing_values\" in the schema); its column 'bmi' holds"
            ),
        ),
        (
            {"height": [0, 3], "bmi": None},
            "it lacks the column 'height'; the schema lacks its column 'bmi', which --drop leaves out",
        ),
        ({**dict.fromkeys("abcdefghijklmnop", [0, 1])}, "'l' and 4 more."),
        ({"height": [0, 3], "nose": [0, 1]}, "it lacks the columns 'height' and 'nose'."),
        ({"out come": {"bounds": [0, 1], "transform": "log1p"}}, "has a transform in the schema"),
    ],
)
def test_schemas_that_do_not_fit(refused, folder, change, says):
    schema = {name: value for name, value in {**SCHEMA, **change}.items() if value is not None}
    (folder / "schema.json").write_text(json.dumps(schema))
    said = refused(*FULL)
    assert says in said or set(says.split("; ")) <= set(said.replace(".\n", "").split("; "))
    assert "never" not in said and "well" not in said  # values that records have


def test_no_schema_file(refused):
    assert "cannot be read (No such file" in refused(*without(FULL, "--schema"), "--schema", "lost.json")


# --- records


@pytest.mark.parametrize("mark", ["", "?", "NA", "nan", " NaN "])
@pytest.mark.parametrize("column", range(4))
def test_missing_values(refused, folder, mark, column):
    rows = records()
    rows[7][column] = mark
    (folder / "data.csv").write_text(as_csv(rows))
    said = refused(*FULL)
    assert f"its column {HEADER[column]!r} has missing values" in said
    assert "7" not in said and "8" not in said and "9" not in said  # nor which record


SPOILT = {
    "a field too many": lambda cells: [*cells, "1"],
    "a quotation mark": lambda cells: ['"', *cells[1:]],
    "text after a quotation mark": lambda cells: ['"1"2', *cells[1:]],
    "no UTF-8": lambda cells: ["\xff", *cells[1:]],
} | {
    f"{cell!r} in column {j}": lambda cells, j=j, cell=cell: [*cells[:j], cell, *cells[j + 1 :]]
    for cell in ("", "inf", "other")
    for j in range(3)
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_refusal_does_not_tell_which_record_it_is_about(refused, folder, spoilt):
    header, said = ["age", "out come", "bmi"], set()
    rows = [[str(row[0]), row[1], str(row[3])] for row in records()]
    (folder / "schema.json").write_text(json.dumps({name: SCHEMA[name] for name in header}))
    for place in (0, 30, 77, 199):
        lines = [header, *rows]
        lines[1 + place] = SPOILT[spoilt](rows[place])
        text = "\n".join(map(",".join, lines))
        (folder / "data.csv").write_bytes(text.encode("latin1"))
        said.add(refused(*FULL))
    assert len(said) == 1


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e999", "1_000", "a lot"])
def test_cells_that_are_not_numbers(refused, folder, cell):
    rows = records()
    rows[3][3] = cell
    (folder / "data.csv").write_text(as_csv(rows))
    said = refused(*FULL)
    assert "its column 'bmi' has numeric bounds" in said and cell not in said


def test_all_columns_that_do_not_fit_are_named_at_once(refused, folder):
    rows = records()
    rows[3][0], rows[4][2], rows[5][3], rows[6][0] = "aged", "a pipe", "", "?"
    (folder / "data.csv").write_text(as_csv(rows))
    said = refused(*FULL)
    assert said.count("its column 'age'") == 2 and "'smoker' holds" in said
    assert "'bmi' has missing" in said
    assert "aged" not in said and "a pipe" not in said


def bad_files():
    good = as_csv(records())
    head, *lines = good.splitlines(keepends=True)
    packed = gzip.compress(good.encode())
    return [
        ("data.csv", "", "is empty"),
        ("data.csv", "\n\n", "is empty"),
        ("data.csv", head, "fewer than 5 records"),
        ("data.csv", head + "".join(lines[:4]), "fewer than 5 records"),
        ("data.csv", head + lines[0].strip() + ",1\n" + lines[1], "more or fewer fields"),
        ("data.csv", head + "1,2\n" + lines[1], "more or fewer fields"),
        ("data.csv", good.replace("bmi", "age"), "it has the column 'age' more than once"),
        ("data.csv", good.replace("bmi", ""), "column 4 of the file has no name"),
        ("data.csv", good.replace("out come", "in come"), "it lacks the column 'out come'"),
        ("data.csv", good + '"', "not well-formed CSV"),
        ("data.csv", good + '"a"b,ill,yes,1', "not well-formed CSV"),
        ("data.csv", good.encode("utf-16")[:-3], "not UTF-8"),
        ("data.csv", good.replace("yes", "\xff").encode("latin1"), "not UTF-8"),
        ("data.csv.gz", good, "not a complete compressed file"),
        ("data.csv.bz2", good, "cannot be read (it is damaged)"),
        ("data.csv.xz", good, "not a complete compressed file"),
        ("data.csv.gz", packed[:-20], "not a complete compressed file"),
        ("data.csv.gz", packed[:100] + bytes(100) + packed[200:], "not a complete compressed file"),
        ("data.xlsx", good, "must end in .csv, .tsv or .txt"),
        ("data.parquet.gz", good, "must end in .csv, .tsv or .txt"),
    ]


@pytest.mark.parametrize("name, content, says", bad_files())
def test_bad_files(refused, folder, name, content, says):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refused("fit", name, *FULL[2:])
    assert says in said
    assert "never" not in said and "yes" not in said


def test_a_file_without_a_header_is_not_quoted(refused, folder):
    """Its first record stands where the names should."""
    lines = as_csv(records()).split("\n", 1)[1]
    twice = "5.5,5.5,ill,yes\n" + lines
    for text, argv in ((lines, FULL), (lines, ["schema", "data.csv"]), (twice, FULL)):
        (folder / "data.csv").write_text(text)
        said = refused(*argv)
        assert "its first row must hold the names" in said and "5.5" not in said and "yes" not in said


def test_parquet_that_is_none(refused, folder):
    pytest.importorskip("pyarrow")
    (folder / "data.parquet").write_bytes(b"PAR1 something else")
    assert "is not a whole Parquet file" in refused("fit", "data.parquet", *FULL[2:])
    assert "cannot be read (No such file" in refused("fit", "lost.parquet", *FULL[2:])


def test_libraries_that_are_not_there(refused, folder, monkeypatch):
    (folder / "data.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "Parquet files need pyarrow; run python -m pip install" in refused(
        "fit", "data.parquet", *FULL[2:]
    )


def test_files_that_cannot_be_read(refused, folder):
    (folder / "folder.csv").mkdir()
    assert "cannot be read (No such file" in refused("fit", "lost.csv", *FULL[2:])
    assert "cannot be read (Is a directory" in refused("fit", "folder.csv", *FULL[2:])
    assert "\\n" in refused("fit", "line\nbreak.csv", *FULL[2:])


def test_records_that_a_model_does_not_know(refused, folder, model):
    rows = records()
    rows[3][2], rows[4][3] = "a pipe", "heavy"
    (folder / "data.csv").write_text(as_csv(rows))
    for argv in (PREDICT, EVALUATE):
        said = refused(*argv)
        assert "'smoker' holds something" in said and "'bmi' has numeric bounds" in said
        assert SMOKES[2] not in said and "pipe" not in said and "heavy" not in said

"""The command line: what it releases, what it says, and what it never says."""

import csv
import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from dpselect import PrivacyLoss, StabilityGridSearchCV
from dpselect.__main__ import main
from dpselect._command_line import arguments, demo, release
from dpselect._command_line.messages import warnings_as_notes
from dpselect.exceptions import PrivacyLeakWarning

SMOKES = ["yes", "no", "never, ever"]
BOUNDS = {"age": [0, 120], "smoker": SMOKES, "bmi": [10, 60], "out come": ["ill", "well"]}
HEADER = ["age", "out come", "smoker", "bmi"]
# a value that no message and no file may hold
SECRET = "71.8281828"


def records(n=200, seed=0):
    """Return rows for HEADER; the first one holds SECRET."""
    random = np.random.default_rng(seed)
    age, bmi = random.uniform(18, 90, n).round(3), random.uniform(15, 45, n).round(3)
    smoker = random.choice(SMOKES, n)
    ill = (age - 55) / 20 + (smoker == "yes") * 2 - 1 > 0
    rows = [list(row) for row in zip(age, np.where(ill, "ill", "well"), smoker, bmi)]
    rows[0][0] = SECRET
    return rows


def as_csv(rows, header=HEADER):
    stream = io.StringIO()
    csv.writer(stream).writerows([header, *rows])
    return stream.getvalue()


def numeric_rows(n=200, labels=2):
    return [[row[0], i % labels, row[3]] for i, row in enumerate(records(n))]


@pytest.fixture
def folder(tmp_path):
    """A folder with the files of a person who does everything right."""
    (tmp_path / "data.csv").write_text(as_csv(records()))
    (tmp_path / "numeric.csv").write_text(as_csv(numeric_rows(), ["age", "y", "bmi"]))
    (tmp_path / "bounds.json").write_text(json.dumps(BOUNDS))
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run the command inside the folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)

    def run(*argv):
        code = main(list(argv))
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def refused(run, monkeypatch):
    """Run the command, expect one sentence on stderr and no fit; returns the sentence."""

    def fit(*_, **__):
        raise AssertionError("the privacy loss would have been spent")

    monkeypatch.setattr(StabilityGridSearchCV, "fit", fit)

    def refused(*argv):
        code, out, err = run(*argv)
        assert code == 2 and out == ""
        assert len(err.splitlines()) == 1 and err.startswith("error: ") and err.endswith(".\n")
        assert "Traceback" not in err and "unexpected" not in err and SECRET not in err
        return err

    return refused


FULL = ["data.csv", "--target", "out come", "--epsilon", "2", "--bounds", "bounds.json"]
SIMPLE = ["numeric.csv", "--target", "y", "--epsilon", "2"]


def strict(text):
    """Parse JSON, and refuse NaN and Infinity, which are not JSON."""

    def refuse(token):
        raise AssertionError(token)

    return json.loads(text, parse_constant=refuse)


# --- the demonstration


def test_demo_as_a_process():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "dpselect"],
        capture_output=True, text=True,
    )
    assert done.returncode == 0 and done.stderr == ""
    expected = ["Plan for 455 records and 10 columns", "Chosen parameters", "alpha = ",
              "(epsilon = 3, delta = 0) differential privacy", "Not released", "AUC", "only because"]
    places = [done.stdout.index(text) for text in expected]
    assert places == sorted(places)


def test_the_demo_is_not_underpowered():
    search = release.make_search(demo.BOUNDS, [0, 1], demo.ALPHAS, demo.EPSILON)
    plan = search.plan(455, len(demo.BOUNDS))
    assert (plan.strategy, plan.training_epsilon) == ("data_independent", demo.EPSILON)
    assert not any("underpowered" in text or "base rate" in text for text in plan.messages)


def test_the_demo_plans_before_it_loads_the_records(monkeypatch, capsys):
    def fit(self, X, y):
        assert "Plan for 455" in capsys.readouterr().out
        raise KeyboardInterrupt

    monkeypatch.setattr(StabilityGridSearchCV, "fit", fit)
    assert main([]) == 130
    assert capsys.readouterr().err == "error: Interrupted.\n"


# --- releases


def test_text(run):
    code, out, err = run(*FULL, "--alpha", "0.03", "0.3")
    assert (code, err) == (0, "")
    expected = ["Plan for 200 records and 3 columns", "Chosen parameters", "towards well",
              "intercept", "  age ", "smoker=never, ever", "bmi", "epsilon = 2", "Not released"]
    places = [out.index(text) for text in expected]
    assert places == sorted(places)
    assert SECRET not in out and "the scores of the candidates" not in out


def test_json(run):
    code, out, err = run(*FULL, "--alpha", "0.03", "0.3", "--json")
    assert (code, err) == (0, "") and len(out.splitlines()) == 1
    said = strict(out)
    assert list(said) == ["plan", "best_params", "privacy", "coefficients", "intercept",
                          "classes", "not_released"]
    assert said["classes"] == ["ill", "well"]
    assert list(said["coefficients"]) == list(said["intercept"]) == ["well"]
    assert list(said["coefficients"]["well"]) == ["age", "smoker", "bmi"]
    assert list(said["coefficients"]["well"]["smoker"]) == SMOKES
    assert said["privacy"]["epsilon"] == 2.0 and len(said["privacy"]["parts"]) == 1
    assert said["plan"]["strategy"] == "data_independent"
    assert said["best_params"]["model__alpha"] in (0.03, 0.3)
    assert len(said["plan"]["candidates"]) == 2
    assert SECRET not in out


@pytest.mark.parametrize("given, used", [([], "auto"), (["--alpha", "0.5"], 0.5)])
def test_without_alternatives_the_model_gets_the_whole_epsilon(run, given, used):
    _, out, _ = run(*FULL, *given, "--json")
    said = strict(out)
    assert said["best_params"] == {"model__alpha": used}
    assert [part["epsilon"] for part in said["privacy"]["parts"]] == [2.0]
    assert not any("candidates" in text for text in said["not_released"])
    _, out, _ = run(*FULL, *given)
    assert f"alpha = {used} (the only candidate: nothing was selected)" in out


def test_notes_on_what_is_not_covered(run):
    code, out, err = run(*SIMPLE, "--json")
    assert code == 0 and strict(out)["classes"] == ["0", "1"]
    notes = err.splitlines()
    assert len(notes) == 2 and all(note.startswith("note: ") for note in notes)
    assert "labels were learned" in notes[0] and "norm 1" in notes[1]


def test_more_classes_gzip_and_spaces(run, folder):
    rows = [[f" {age} ", y, bmi] for age, y, bmi in numeric_rows(labels=3)]
    text = "\ufeff" + as_csv(rows, [" age", "y ", "bmi"]) + "\r\n"
    (folder / "three.CSV.gz").write_bytes(gzip.compress(text.encode()))
    code, out, err = run("three.CSV.gz", *SIMPLE[1:], "--json")
    assert code == 0
    said = strict(out)
    assert list(said["coefficients"]) == list(said["intercept"]) == ["0", "1", "2"]
    code, out, err = run("three.CSV.gz", *SIMPLE[1:])
    assert code == 0 and "towards 0, 1, 2" in out


def test_learned_labels_with_bounds(run, folder):
    (folder / "b.json").write_text(json.dumps({"age": [0, 120], "bmi": [10, 60]}))
    code, out, err = run(*SIMPLE, "--bounds", "b.json")
    assert code == 0 and len(err.splitlines()) == 1 and "labels were learned" in err
    assert "scaled to [-1, 1]" in out


def test_values_outside_the_bounds_are_clipped(run, folder):
    (folder / "b.json").write_text(json.dumps({"age": [0, 1], "bmi": [10, 11], "y": ["0", "1"]}))
    code, _, err = run(*SIMPLE, "--bounds", "b.json")
    assert (code, err) == (0, "")


def test_a_missing_mark_can_be_a_category(run, folder):
    rows = records()
    rows[5][2] = rows[6][2] = "?"
    (folder / "data.csv").write_text(as_csv(rows))
    (folder / "bounds.json").write_text(json.dumps({**BOUNDS, "smoker": [*SMOKES, "?"]}))
    code, out, err = run(*FULL)
    assert (code, err) == (0, "") and "smoker=?" in out


def test_what_else_a_schema_says(run, folder):
    rows = records()
    rows[5][0], rows[6][2], rows[7][2], rows[8][2] = "", "?", "a pipe", "1.0"
    (folder / "data.csv").write_text(as_csv(rows))
    more = {"missing": True, "transform": "arcsinh", "fill": 50, "unit": "years"}
    smoker = {"categories": [*SMOKES, "1"], "missing": True, "unknown": True}
    bounds = {**BOUNDS, "age": {"bounds": [0, 120], **more}, "smoker": smoker}
    (folder / "bounds.json").write_text(json.dumps(bounds))
    code, out, err = run(*FULL, "--json", "--save", "model.pkl")
    assert (code, err) == (0, "")
    found = strict(out)["coefficients"]["well"]
    assert list(found["age"]) == ["number", "<missing>"]
    assert list(found["smoker"]) == [*SMOKES, "1", "<unknown>", "<missing>"]
    encoder = pickle.loads((folder / "model.pkl").read_bytes())[0]
    gap, pipe, one = encoder.transform([[None, None, 10], [120, "a pipe", 10], [0, 1, 10]])
    assert gap.tolist() == [2 * np.arcsinh(50) / np.arcsinh(120) - 1, 1, 0, 0, 0, 0, 0, 1, -1]
    assert pipe.tolist() == [1, 0, 0, 0, 0, 0, 1, 0, -1]
    assert one.tolist() == [-1, 0, 0, 0, 0, 1, 0, 0, -1]
    code, out, _ = run(*FULL)
    assert code == 0 and "age=<missing>" in out and "smoker=<unknown>" in out


def test_only_categorical_columns(run, folder):
    (folder / "c.csv").write_text(as_csv([row[1:3] for row in records()], HEADER[1:3]))
    bounds = {name: BOUNDS[name] for name in HEADER[1:3]}
    (folder / "b.json").write_text(json.dumps(bounds))
    code, _, err = run("c.csv", *FULL[1:5], "--bounds", "b.json", "--alpha", "0.1", "1")
    assert (code, err) == (0, "")


def test_long_tables_and_strange_names_stay_short_and_on_one_line(run, folder):
    header = [*(f"c{j}" for j in range(40)), "line\nbreak", "y"]
    rows = [[*np.arange(41) + i, i % 2] for i in range(20)]
    (folder / "wide.csv").write_text(as_csv(rows, header))
    code, out, _ = run("wide.csv", *SIMPLE[1:])
    assert code == 0 and "and 11 more; --json prints all" in out
    _, out, _ = run("wide.csv", *SIMPLE[1:], "--json")
    assert list(strict(out)["coefficients"]["1"]) == header[:-1]
    (folder / "few.csv").write_text(as_csv([row[-2:] for row in rows], header[-2:]))
    assert "line\\nbreak" in run("few.csv", *SIMPLE[1:])[1]


@pytest.mark.parametrize("epsilon", ["1e-6", "1e6"])
@pytest.mark.parametrize("alphas", [["1e-6"], ["1e6"], ["1e-6", "1", "1e6"]])
def test_extremes_are_valid_json(run, epsilon, alphas):
    code, out, err = run(*FULL[:3], "--epsilon", epsilon, *FULL[5:], "--json", "--alpha", *alphas)
    assert (code, err) == (0, "")
    strict(out)


# --- saved models


def check_model(model):
    assert list(model.classes_) == ["ill", "well"]
    rows = [[50.0, "yes", 20.0], [20.0, "no", 20.0], [20.0, "unheard of", 1e9]]
    assert model.predict_proba(rows).shape == (3, 2)
    assert set(model.predict(rows)) <= {"ill", "well"}
    assert isinstance(model[-1].privacy_, PrivacyLoss) and model[-1].privacy_.epsilon == 2.0


def check_no_records(content):
    assert len(content) < 10_000  # however many records there are
    for row in records(2000):
        for cell in (row[0], row[3]):
            assert np.float64(cell).tobytes() not in content
            assert np.float64(cell).tobytes()[::-1] not in content  # as pickle writes floats


def test_pickle(run, folder):
    (folder / "data.csv").write_text(as_csv(records(2000)))
    code, _, err = run(*FULL, "--alpha", "0.03", "0.3", "--save", "model.pkl")
    assert (code, err) == (0, "")
    content = (folder / "model.pkl").read_bytes()
    check_no_records(content)
    check_model(pickle.loads(content))


def test_pickle_of_numeric_columns_as_a_process(folder):
    argv = [sys.executable, "-m", "dpselect", *SIMPLE, "--json", "--save", str(folder / "m.pkl")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 2
    coefficients = strict(done.stdout)["coefficients"]["1"]
    model = pickle.loads((folder / "m.pkl").read_bytes())
    np.testing.assert_array_equal(model[-1].coef_[0], list(coefficients.values()))
    assert model.predict(np.zeros((1, 2)))[0] in ("0", "1")


def test_coefficients_belong_to_their_columns(run, folder):
    _, out, _ = run(*FULL, "--json", "--save", "model.pkl")
    model = pickle.loads((folder / "model.pkl").read_bytes())
    said = strict(out)["coefficients"]["well"]
    base = [60.0, "yes", 35.0]

    def effect(column, value):
        row = list(base)
        row[column] = value
        before, after = model[:-1].transform([base, row]) @ model[-1].coef_[0]
        return after - before

    assert effect(0, 120.0) == pytest.approx(said["age"])
    assert effect(1, "no") == pytest.approx(said["smoker"]["no"] - said["smoker"]["yes"])
    assert effect(2, 60.0) == pytest.approx(said["bmi"])


def test_skops(run, folder):
    sio = pytest.importorskip("skops.io")
    (folder / "data.csv").write_text(as_csv(records(2000)))
    code, _, err = run(*FULL, "--alpha", "0.03", "0.3", "--save", "model.skops")
    assert (code, err) == (0, "")
    file = folder / "model.skops"
    types = sio.get_untrusted_types(file=file)
    assert all(name.startswith("dpselect.") for name in types)
    model = sio.load(file, trusted=types)
    check_model(model)
    check_no_records(pickle.dumps(model))


def test_a_model_that_the_disk_refuses_is_still_printed(run, monkeypatch):
    def write(self, model):
        raise release.CommandError("The disk is full.")

    monkeypatch.setattr(release.ModelFile, "write", write)
    code, out, err = run(*FULL, "--json", "--save", "model.pkl")
    assert code == 2 and err == "error: The disk is full.\n"
    strict(out)


def test_writing_reports_the_spent_loss(folder):
    file = release.ModelFile(str(folder / "model.pkl"))
    (folder / "model.pkl").mkdir()
    with pytest.raises(release.CommandError, match="has been spent"):
        file.write({})


# --- refusals: arguments


@pytest.mark.parametrize("argv, says", [
    (["--epsilon", "1"], "--epsilon needs a file"),
    (["--json"], "--json needs a file"),
    (["data.csv", "--epsilon", "1"], "--target is missing"),
    (["data.csv", "--target", "y"], "--epsilon is missing"),
    ([*FULL, "--alpha", "0.1", "0"], "--alpha must be"),
    ([*FULL, "--alpha", "-1"], "--alpha must be"),
    ([*FULL, "--alpha", "nan"], "--alpha must be"),
    ([*FULL, "--alpha", "0.1", "0.10"], "a value twice"),
    ([*FULL, "--alpha"], "expected at least one argument"),
    ([*FULL, "--seed", "3"], "unrecognized arguments"),
    ([*FULL, "line\nbreak"], "line\\nbreak"),
    ([*FULL, "--save", "model.joblib"], "must end in .skops or .pkl"),
    ([*FULL, "--save", "nowhere/model.pkl"], "does not exist"),
    ([*FULL, "--save", "data.csv/model.pkl"], "does not exist"),
    ([*FULL, "--save", "folder.pkl"], "cannot be written"),
])
def test_arguments(refused, folder, argv, says):
    (folder / "folder.pkl").mkdir()
    assert says in refused(*argv)


@pytest.mark.parametrize("epsilon", ["0", "-1", "inf", "nan", "one", "", "1e-300", "1e300"])
def test_epsilon(refused, epsilon):
    assert "--epsilon must be a number greater than 0" in refused(
        "data.csv", "--target", "y", "--epsilon", epsilon
    )


def test_a_folder_without_permission(refused, monkeypatch):
    monkeypatch.setattr(release.os, "access", lambda path, mode: False)
    assert "cannot be written" in refused(*FULL, "--save", "model.pkl")


def test_skops_is_asked_for_before_the_fit(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    said = refused(*FULL, "--save", "model.skops")
    assert 'python -m pip install "dpselect[skops]"' in said


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "--bounds" in out and "demonstration" in out


def test_there_is_no_seed():
    given = vars(arguments.parse(FULL))
    assert set(given) == {"file", "target", "epsilon", "bounds", "alpha", "json", "save", "ledger"}


# --- refusals: the bounds file


@pytest.mark.parametrize("text, says", [
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
    ('{"age": [5, 5], "bmi": null, "bmi": 3, "smoker": {"categories": ["a"], "fill": 1}}',
     "of 'bmi' (it is there twice), of column 'age' (its bounds are not two finite numbers low < high), "
     "of column 'bmi' (it is neither bounds nor a list of categories), of column 'smoker' (it has fewer "
     "than two categories, so it tells nothing, and it has 'fill', which means nothing there); write"),
])
def test_malformed_bounds(refused, folder, text, says):
    (folder / "bounds.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert says in refused(*FULL)


@pytest.mark.parametrize("change, says", [
    ({"out come": [0, 1]}, "the target 'out come' its classes as strings"),
    ({"out come": {"categories": ["ill", "well"], "missing": True}}, "its classes as strings"),
    ({"height": [0, 3]}, "has a column 'height' that the records lack"),
    ({"bmi": None}, "lacks the column 'bmi'"),
    ({"bmi": ["low", "high"]}, "The column 'bmi' holds something that the bounds file does not"),
    ({"smoker": [0, 1]}, "The column 'smoker' has numeric bounds, but holds"),
    ({"smoker": ["yes", "no"]}, "The column 'smoker' holds something"),
    ({"out come": ["ill", "dead"]}, "The column 'out come' holds something"),
])
def test_bounds_that_do_not_fit(refused, folder, change, says):
    bounds = {name: value for name, value in {**BOUNDS, **change}.items() if value is not None}
    (folder / "bounds.json").write_text(json.dumps(bounds))
    said = refused(*FULL)
    assert says in said
    assert "never" not in said and "well" not in said  # values that records have


def test_no_bounds_file(refused):
    assert "cannot be read (No such file" in refused(*FULL[:5], "--bounds", "lost.json")


# --- refusals: the records


@pytest.mark.parametrize("mark", ["", "?", "NA", "nan", " NaN "])
@pytest.mark.parametrize("column", range(4))
def test_missing_values(refused, folder, mark, column):
    rows = records()
    rows[7][column] = mark
    (folder / "data.csv").write_text(as_csv(rows))
    said = refused(*FULL)
    assert f"The column {HEADER[column]!r} has missing values" in said
    assert "7" not in said and "8" not in said and "9" not in said  # nor which record


def test_missing_labels_when_they_are_learned(refused, folder):
    (folder / "numeric.csv").write_text(as_csv([[1, "?", 2]] + numeric_rows(), ["age", "y", "bmi"]))
    assert "The column 'y' has missing values" in refused(*SIMPLE)


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e999", "1_000", "a lot"])
@pytest.mark.parametrize("bounded", [True, False])
def test_cells_that_are_not_numbers(refused, folder, cell, bounded):
    rows = numeric_rows()
    rows[3][2] = cell
    (folder / "numeric.csv").write_text(as_csv(rows, ["age", "y", "bmi"]))
    (folder / "bounds.json").write_text('{"age": [0, 1], "bmi": [0, 1], "y": ["0", "1"]}')
    said = refused(*SIMPLE, *(["--bounds", "bounds.json"] if bounded else []))
    assert "The column 'bmi'" in said and cell not in said
    assert bounded or "with --bounds" in said


def test_a_number_too_large_for_its_own_scale(refused, folder):
    rows = numeric_rows()
    rows[3][2] = "1e200"
    (folder / "numeric.csv").write_text(as_csv(rows, ["age", "y", "bmi"]))
    assert "'bmi'" in refused(*SIMPLE)


def test_categories_without_bounds(refused):
    said = refused(*FULL[:5])
    assert "The column 'smoker'" in said and "categories" in said


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
        ("data.csv", good.replace("bmi", "age"), "two columns with the name 'age'"),
        ("data.csv", good.replace("bmi", ""), "a column without a name"),
        ("data.csv", good.replace("out come", "in come"), "has no column 'out come' (--target)"),
        ("data.csv", "".join(lines), "has no column 'out come' (--target)"),
        ("data.csv", "out come\n" + "ill\nwell\n" * 9, "no column besides the target"),
        ("data.csv", good + '"', "not well-formed CSV"),
        ("data.csv", good + '"a"b,ill,yes,1', "not well-formed CSV"),
        ("data.csv", good.encode("utf-16"), "not UTF-8"),
        ("data.csv", good.replace("yes", "\xff").encode("latin1"), "not UTF-8"),
        ("data.csv.gz", good, "not a complete gzip file"),
        ("data.csv.gz", packed[:-20], "not a complete gzip file"),
        ("data.csv.gz", packed[:100] + bytes(100) + packed[200:], "not a complete gzip file"),
        ("data.txt", good, "must end in .csv or .csv.gz"),
    ]


@pytest.mark.parametrize("name, content, says", bad_files())
def test_bad_files(refused, folder, name, content, says):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refused(name, *FULL[1:])
    assert says in said
    assert "never" not in said and "yes" not in said


def test_files_that_cannot_be_read(refused, folder):
    (folder / "folder.csv").mkdir()
    assert "cannot be read (No such file" in refused("lost.csv", *FULL[1:])
    assert "cannot be read (Is a directory" in refused("folder.csv", *FULL[1:])
    assert "\\n" in refused("line\nbreak.csv", *FULL[1:])


def test_labels_that_are_not_classes(refused, folder):
    header = ["age", "y", "bmi"]
    (folder / "numeric.csv").write_text(as_csv(numeric_rows(labels=1), header))
    assert "The target 'y' has only one label" in refused(*SIMPLE)
    (folder / "numeric.csv").write_text(as_csv(numeric_rows(labels=101), header))
    assert "The target 'y' has more than 100 different labels" in refused(*SIMPLE)


# --- what nobody expected


def test_unexpected_errors_do_not_quote_the_records(run, monkeypatch):
    def fit(self, X, y):
        raise ValueError(f"could not convert string to float: {X[0, 0]} {SECRET}")

    monkeypatch.setattr(StabilityGridSearchCV, "fit", fit)
    code, _, err = run(*FULL)
    assert code == 2 and err == "error: Something unexpected went wrong (ValueError).\n"


def test_interrupt(run, monkeypatch):
    def fit(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(StabilityGridSearchCV, "fit", fit)
    code, _, err = run(*FULL)
    assert (code, err) == (130, "error: Interrupted.\n")


def test_warnings_become_notes_that_do_not_quote_the_records(capsys):
    with warnings_as_notes():
        warnings.warn("labels were learned", PrivacyLeakWarning)
        warnings.warn(f"strange value {SECRET}", RuntimeWarning)
        warnings.warn("soon to be removed", DeprecationWarning)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "note: labels were learned\nnote: A library gave a RuntimeWarning.\n"


def kinds_of_warnings():
    """All that are there, of Python and of the libraries at hand, and one of a library that is not."""
    kinds = {Warning, type("Other", (UserWarning,), {})}
    while more := {kind for known in kinds for kind in known.__subclasses__()} - kinds:
        kinds |= more
    return sorted(kinds, key=lambda kind: (kind.__module__, kind.__qualname__))


def test_no_warning_of_a_library_is_quoted(capsys):
    for kind in kinds_of_warnings():
        try:
            warning = kind(f"strange cell {SECRET}")
        except TypeError:  # it takes more than a text
            continue
        with warnings.catch_warnings(), warnings_as_notes():
            warnings.simplefilter("always")
            warnings.warn_explicit(warning, kind, "of_a_library.py", 1)
        # only our own are known not to quote records
        assert (SECRET in "".join(capsys.readouterr())) == issubclass(kind, PrivacyLeakWarning), kind


def test_an_output_that_nobody_reads(folder):
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with os.fdopen(writer, "w") as stdout:
        done = subprocess.run([sys.executable, "-m", "dpselect", *FULL], stdout=stdout, text=True,
                              stderr=subprocess.PIPE, cwd=folder, env=environment)
    assert done.returncode == 2
    assert done.stderr == "error: The output could not be printed to its end.\n"

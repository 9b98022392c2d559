"""Options of a fit that the Python API has, and predictions that are written as the file is."""

import csv
import io
import json
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from dpselect import PrivacyLedger, StabilityGridSearchCV
from dpselect._command_line import commands

from .conftest import FULL, SECRET, WAITING_TIME, as_csv, records, strict

HEADER = ["age", "out come", "smoker", "bmi", "often", "who"]
SAVE = ["--save", "m.skops"]


@pytest.fixture
def weighted(folder):
    rows = [[*row, 1 + i % 3, f"p{i % 60}"] for i, row in enumerate(records())]
    (folder / "more.csv").write_text(as_csv(rows, HEADER))
    return ["fit", "more.csv", *FULL[2:]]


@pytest.fixture
def searched(monkeypatch):
    """The searches that were fitted, with the parameters of each fit."""
    seen, fit = [], StabilityGridSearchCV.fit

    def watched(self, X, y=None, **params):
        seen.append((self, params))
        return fit(self, X, y, **params)

    monkeypatch.setattr(StabilityGridSearchCV, "fit", watched)
    return seen


OPTIONS = {
    ("--delta", "1e-6"): ("model", {"delta": 1e-6}),
    ("--columns", "age", "bmi"): ("encoder", {"columns": ["age", "bmi"]}),
    ("--columns", "first"): ("encoder", {"columns": "first"}),
    ("--pairs", "age", "smoker"): ("encoder", {"pairs": [("age", "smoker")]}),
    ("--pairs", "age", "bmi", "--pairs", "smoker", "bmi"): (
        "encoder",
        {"pairs": [("age", "bmi"), ("smoker", "bmi")]},
    ),
    ("--pairs", "auto"): ("encoder", {"pairs": "auto"}),
    ("--learn-ranges",): ("encoder", {"ranges": "auto"}),
    ("--base-rate", "0.2"): ("model", {"base_rate": 0.2}),
    ("--class-weight", "ill=5", "well=0.5"): ("model", {"class_weight": {"ill": 5.0, "well": 0.5}}),
}


def check_parameters(run, searched, argv, step, expected):
    code, out, _ = run(*argv, "--json")
    (search, _) = searched[-1]
    params = search.estimator[step].get_params()
    assert code == 0 and {name: params[name] for name in expected} == expected
    assert strict(out)["privacy"]["epsilon"] == 2.0


@pytest.mark.parametrize("options", OPTIONS)
def test_parameters(run, searched, options):
    check_parameters(run, searched, [*FULL, *options], *OPTIONS[options])


def test_an_option_that_sets_nothing_is_seen(run, searched, monkeypatch):
    monkeypatch.setattr(commands, "make_task", without_options(commands.make_task))
    for options, expected in OPTIONS.items():
        with pytest.raises(AssertionError):
            check_parameters(run, searched, [*FULL, *options], *expected)


def without_options(make_task):
    def make(schema, target, arguments):
        arguments.delta = arguments.columns = arguments.pairs = arguments.class_weight = None
        arguments.base_rate, arguments.learn_ranges = None, False
        return make_task(schema, target, arguments)

    return make


@pytest.mark.parametrize("more", [[], ["--person", "who"], ["--delta", "1e-6", "--evaluation", "0.2"]])
def test_weights(run, weighted, searched, more):
    drop = ["--drop", "who"] if "--person" not in more else []
    argv = [*weighted, "--weights", "often", "--max-weight", "2", *drop, *more]
    code, out, err = run(*argv, "--json")
    search, params = searched[-1]
    assert code == 0, err
    assert search.estimator["model"].max_sample_weight == 2
    assert params["model__sample_weight"].tolist() == [1 + i % 3 for i in range(200)]
    assert "often" not in strict(out)["schema"] and ("groups" in params) == ("--person" in more)


@pytest.mark.parametrize("options, says", [
    (["--delta", "1"], "--delta must be a number from 0 to 0.5"),
    (["--delta", "1e-6", "--excess-risk", "0.1"], "do not go together"),
    (["--learn-ranges", "--excess-risk", "0.1"], "leave one out"),
    (["--columns", "height"], "no column 'height' to predict from"),
    (["--columns", "age", "age"], "each once"),
    (["--columns", "age", "--pairs", "age", "bmi"], "columns leaves out ['bmi']"),
    (["--pairs", "age"], "--pairs must be two columns"),
    (["--pairs", "age", "out come"], "no column 'out come' to predict from"),
    (["--pairs", "age", "age"], "two different columns"),
    (["--class-weight", "ill"], "--class-weight must be a weight for each"),
    (["--class-weight", "ill=no"], "--class-weight must be a number"),
    (["--class-weight", "dead=2"], "has the label 'dead'"),
    (["--weights", "often"], "--weights and --max-weight go together"),
    (["--max-weight", "3"], "--weights and --max-weight go together"),
    (["--weights", "age", "--max-weight", "3"], "has no other role"),
    (["--weights", "height", "--max-weight", "3"], "it lacks the column 'height'"),
    (["--encoding", "klingon"], "--encoding must be an encoding that Python knows"),
    (["--encoding", "hex"], "--encoding must be an encoding that Python knows"),
    (["--decimal", ",,"], "--decimal must be one mark"),
    (["--thousands", "."], "must be different marks"),
    (["--decimal", ",", "--separator", ","], "must be different marks"),
    (["--drop", "who,often"], "no column 'who,often' (--drop); write --drop who often"),
])  # fmt: skip
def test_refusals(refused, weighted, options, says):
    more = [] if "--drop" in options else ["--drop", "who", *([] if "often" in options else ["often"])]
    assert says in refused(*weighted, *more, *options)


def test_joined_names_are_refused_in_a_plan(refused):
    plan = ["plan", *FULL[2:], "--records", "1000", "--drop"]
    assert "write --drop age bmi" in refused(*plan, "age,bmi")
    assert "write --drop age id" in refused(*plan, "age, id")


def test_negative_weights(refused, folder, weighted):
    (folder / "more.csv").write_text((folder / "more.csv").read_text().replace(",2,p1\n", ",-71.5,p1\n"))
    said = refused(*weighted, "--drop", "who", "--weights", "often", "--max-weight", "3")
    assert "'often' (--weights) holds a negative number" in said and "71" not in said


@pytest.mark.parametrize(
    "option", ["--delta", "--columns", "--class-weight", "--weights", "--learn-ranges"]
)
def test_a_density_has_none_of_them(refused, option):
    value = {"--delta": "1e-6", "--class-weight": "ill=2"}.get(option, "age")
    more = ["--max-weight", "2"] if option == "--weights" else []
    argv = ["fit", "waits.csv", "--schema", "waits.json", "--epsilon", "1", "--task", "density"]
    given = [option] if option == "--learn-ranges" else [option, value]
    said = refused(*argv, *given, *more)
    assert f"{option} means nothing for a density" in said
    assert ("needs Python" in said) == (option == "--weights")


def test_a_ledger_that_pays_for_nothing_that_is_kept(run, folder):
    run("ledger", "create", "l.ledger", "--epsilon", "9")
    code, out, err = run(*FULL, "--ledger", "l.ledger")
    assert (code, out) == (2, "") and "give --save MODEL" in err
    for more in (SAVE, ["--json"], ["--report", "r.md"]):
        code, out, err = run(*FULL, "--ledger", "l.ledger", *more)
        assert (code, err) == (0, "") and "No ledger counts it" not in out
    assert PrivacyLedger(folder / "l.ledger").spent()[0] == 6.0
    assert "No ledger counts it" in run(*FULL)[1]


def test_errors_name_the_help_of_their_command(refused):
    for argv, command in [
        ([*FULL, "--seed", "1"], "fit"), (["schema"], "schema"),
        (["ledger", "create", "l", "--epsilon"], "ledger create"), (["plan", "--epsilon", "1"], "plan"),
    ]:  # fmt: skip
        assert f"see dpselect {command} --help" in refused(*argv)


# --- how files are written


def test_a_check_reads_the_cells(run, refused, folder):
    assert "every cell is what it says" in run("schema", "data.csv", "--check", "schema.json")[1]
    text = (folder / "data.csv").read_text().replace(SECRET, f"x{SECRET}")
    (folder / "data.csv").write_text(text)
    said = refused("schema", "data.csv", "--check", "schema.json")
    assert "its column 'age' has numeric bounds" in said


def test_a_parquet_file_has_marks_of_numbers_and_no_encoding(run, refused, folder):
    table = pd.DataFrame({"age": ["1.050,5", "20,0"] * 10, "out come": ["ill", "well"] * 10})
    table.to_parquet(folder / "d.parquet")
    (folder / "s.json").write_text(json.dumps({"age": [0, 2000], "out come": ["ill", "well"]}))
    check = ["schema", "d.parquet", "--check", "s.json"]
    assert "numeric bounds" in refused(*check)
    assert run(*check, "--decimal", ",", "--thousands", ".")[0] == 0
    assert "--encoding is of text files" in refused(*check, "--encoding", "cp1252")


def test_values_beyond_the_bounds_are_counted_if_asked(run, folder):
    assert run(*FULL, *SAVE)[0] == 0
    rows = [[-1, "yes", 20], [130, "no", 20], [50, "no", 60], [120, "yes", 61]]
    (folder / "new.csv").write_text(as_csv(rows, ["age", "smoker", "bmi"]))
    predict = ["predict", "m.skops", "new.csv"]
    assert run(*predict)[2] == ""
    said = run(*predict, "--outside")[2]
    assert "2 of 4 values of the column 'age'" in said and "1 of 4 values of the column 'bmi'" in said


def test_formats_of_dates(run, folder):
    schema = {"day": {"date": ["2015-01-01", "2016-01-01"]}, "ill": ["no", "yes"]}
    (folder / "s.json").write_text(json.dumps(schema))
    days = [f"{1 + i % 28:02}.{1 + i % 12:02}.2015" for i in range(60)]
    labels = ["no", "yes"] * 30
    argv = ["--schema", "s.json", "--target", "ill", "--epsilon", "1000"]
    for name, form in [("a.csv", "{2}-{1}-{0}"), ("b.csv", "{0}.{1}.{2}")]:
        rows = [f"{form.format(*day.split('.'))},{label}" for day, label in zip(days, labels)]
        (folder / name).write_text("\n".join(["day,ill", *rows]) + "\n")
    assert "--date-format" in run("fit", "b.csv", *argv)[2]
    more = ["--date-format", "%d.%m.%Y"]
    assert run("fit", "b.csv", *argv, *more, "--save", "m.skops")[0] == 0
    plain = run("predict", "m.skops", "a.csv", "--probabilities")
    assert plain[0] == 0 and plain == run("predict", "m.skops", "b.csv", "--probabilities", *more)


def test_expansion(run, folder):
    code, _, _ = run(*FULL, "--expansion", "3", "--save", "m.pkl", "--json")
    model = pickle.loads((folder / "m.pkl").read_bytes())
    assert code == 0 and model.best_estimator_["encoder"].expansion_ == 3
    for value in ("0", "curves", "1.5"):
        assert "--expansion must be" in run(*FULL, "--expansion", value)[2]
    assert "leave one out" in run(*FULL, "--expansion", "3", "--lines")[2]


# --- the positive label


@pytest.fixture
def judged(run, folder):
    """A model whose schema lists labels in another order than the alphabet's."""
    schema = json.loads((folder / "schema.json").read_text())
    schema["out come"] = ["nein", "ja"]
    (folder / "schema.json").write_text(json.dumps(schema))
    rows = [[row[0], {"ill": "ja", "well": "nein"}[row[1]], *row[2:]] for row in records()]
    (folder / "data.csv").write_text(as_csv(rows))
    code, _, err = run(*FULL, *SAVE)
    assert code == 0, err
    return rows


def flagged(run, label, *options):
    code, out, err = run("predict", "m.skops", "data.csv", "--threshold", "0.3", *options)
    assert code == 0 and f"'{label}' is predicted where its probability is above 0.3" in err
    return out.splitlines()[1:].count(label)


def check_positive(run):
    code, out, _ = run("predict", "m.skops", "data.csv", "--probabilities")
    rows = [dict(zip(("ja", "nein"), map(float, row))) for row in list(csv.reader(io.StringIO(out)))[1:]]
    assert code == 0 and out.startswith("ja,nein\n")
    for label, options in (("ja", []), ("ja", ["--positive", "ja"]), ("nein", ["--positive", "nein"])):
        assert flagged(run, label, *options) == sum(row[label] > 0.3 for row in rows)


def test_the_positive_label_is_the_second_of_the_schema(run, judged, monkeypatch):
    check_positive(run)
    monkeypatch.setattr(commands, "_positive", lambda model, given: 1)  # of the alphabet
    with pytest.raises(AssertionError):
        check_positive(run)


def test_positive_labels_that_are_none(run, judged):
    predict = ["predict", "m.skops", "data.csv", "--positive"]
    code, out, err = run(*predict, "yes", "--threshold", "0.3")
    assert (code, out) == (2, "") and "does not predict 'yes' (--positive)" in err
    code, out, err = run(*predict, "ja")
    assert (code, out) == (2, "") and "without --threshold" in err


# --- predictions


def test_predictions_are_written_as_the_file_is(run, folder):
    assert run(*FULL, *SAVE)[0] == 0
    text = (folder / "data.csv").read_text()
    rows = [[str(cell).replace(".", ",") for cell in row] for row in csv.reader(io.StringIO(text))]
    (folder / "comma.csv").write_text(as_csv(rows[1:], rows[0], delimiter=";"))
    argv = ["predict", "m.skops", "data.csv", "--probabilities", "--keep", "age"]
    plain = list(csv.reader(io.StringIO(run(*argv)[1])))
    argv[2] = "comma.csv"
    code, out, _ = run(*argv, "--decimal", ",")
    found = list(csv.reader(io.StringIO(out), delimiter=";"))
    assert code == 0 and [[cell.replace(",", ".") for cell in row] for row in found] == plain
    assert "." not in out


LABELS = ["いいえ", "はい"]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16"])
def test_a_redirected_output_keeps_every_label(run, folder, encoding):
    schema = {"age": [0, 120], "y": LABELS}
    (folder / "s.json").write_text(json.dumps(schema))
    rows = [[i % 90, LABELS[i % 90 > 45]] for i in range(200)]
    (folder / "d.csv").write_text(as_csv(rows, ["age", "y"]), encoding="utf-8")
    argv = ["fit", "d.csv", "--schema", "s.json", "--target", "y", "--epsilon", "1", *SAVE]
    assert run(*argv)[0] == 0
    argv = [sys.executable, "-m", "dpselect", "predict", "m.skops", "d.csv"]
    done = subprocess.run(
        argv, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": encoding}
    )
    assert set(done.stdout.decode("utf-8").split()) <= {"prediction", *LABELS}
    assert len(done.stdout.decode("utf-8").split()) == 201


def test_a_terminal_that_cannot_show_a_label(run, folder, monkeypatch):
    (folder / "d.csv").write_text("größe,はい\n1,2\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    from dpselect.__main__ import main

    assert main(["schema", "d.csv"]) == 2
    assert sys.stdout.buffer.getvalue() == b""


def test_a_plan_says_what_is_predicted(run, folder):
    plan = ["plan", *FULL[2:], "--records", "1000"]
    assert "classification: 'out come' is one of ill, well" in run(*plan)[1]
    (folder / "schema.json").write_text(
        json.dumps({"age": [0, 9], "b": ["A b", "ab"], "out come": [0, 1]})
    )
    out = run(*plan)[1]
    assert "regression: 'out come' is a number from 0 to 1" in out and '["0", "1"]' in out
    assert "'b' has categories that differ in case or blanks only: 'A b', 'ab'" in out


def test_ids_that_became_floats_are_one_person_in_a_plan(run, folder, weighted):
    text = (folder / "more.csv").read_text()
    ids = [f"{i % 6 + 1}" + ".0" * (i % 12 > 5) for i in range(200)]
    rows = [line.rsplit(",", 1)[0] for line in text.splitlines()]
    lines = [rows[0] + ",who", *(f"{row},{i}" for row, i in zip(rows[1:], ids))]
    (folder / "more.csv").write_text("\n".join(lines))
    out = run(*weighted, "--drop", "often", "--person", "who", "--json")[1]
    assert strict(out)["plan"]["n_samples"] == 6
    assert np.unique(ids).size == 12


PLAN = ["plan", "--schema", "schema.json", "--target", "out come", "--epsilon", "1", "--records", "4000"]


@pytest.mark.slow  # the page has the numbers of many plans
def test_a_plan_can_be_written_as_a_page(run, folder):
    code, out, err = run(*PLAN, "--output", "plan.html")
    assert code == 0 and "plan.html" in err and "expected to keep" in out
    page = (folder / "plan.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and run(*PLAN, "--output", "plan.json")[0] == 0
    numbers = re.search(r'id="numbers">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(numbers) == json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    # nothing is replaced
    code, out, err = run(*PLAN, "--output", "plan.html")
    assert (code, out) == (2, "") and "--force" in err


def test_pages_of_other_endings_and_searches_are_refused(run, folder):
    assert "must end in .html or .json" in run(*PLAN, "--output", "plan.pdf")[2]
    code, _, err = run(*PLAN, "--excess-risk", "0.1", "--output", "plan.html")
    assert code == 2 and not (folder / "plan.html").exists(), err


def test_a_plan_counts_the_releases_of_a_ledger(run, folder):
    for name, more in (("l", []), ("persons", ["--persons"])):
        assert run("ledger", "create", f"{name}.ledger", "--epsilon", "3.5", *more)[0] == 0
    code, out, _ = run(*PLAN, "--ledger", "l.ledger", "--output", "plan.json")
    (carried,) = map(int, re.findall(r"l\.ledger.*pays for (\d+) such releases", out))
    grid = strict((folder / "plan.json").read_text(encoding="utf-8"))
    start = grid["start"]
    cells = grid["plans"][start["epsilon"]][start["records"]]
    assert cells[start["columns"]][start["delta"]]["carried"] == carried == 3
    assert strict(run(*PLAN, "--ledger", "l.ledger", "--json")[1])["carried"] == carried
    assert PrivacyLedger("l.ledger").spent() == (0.0, 0.0)
    assert "adjacency" in run(*PLAN, "--ledger", "persons.ledger")[2]
    code, _, err = run(*PLAN, "--ledger", "l.ledger", "--excess-risk", "0.1")
    assert code == 2 and "--excess-risk looks for one" in err


@pytest.mark.parametrize("labels", [["ill", "well"], ["well", "ill"]])
def test_figures_are_about_the_second_label_in_the_schema(run, folder, searched, labels):
    """Whatever the order of the alphabet is: in fit, evaluate and both reports."""
    schema = json.loads((folder / "schema.json").read_text()) | {"out come": labels}
    (folder / "schema.json").write_text(json.dumps(schema))
    share = np.mean([row[1] == labels[1] for row in records()])
    argv = [*FULL[:5], "500", *FULL[6:], "--evaluation", "0.5", *SAVE, "--base-rate", "0.3"]
    code, out, err = run(*argv, "--json", "--report", "fit.md")
    assert code == 0, err
    judge = ["evaluate", "m.skops", "data.csv", "--target", "out come", "--epsilon", "500"]
    code, figures, err = run(*judge, "--json", "--report", "evaluate.md")
    assert code == 0, err
    for found in (strict(out)["evaluation"], strict(figures)):
        assert found["figures"]["positive_rate"]["value"] == pytest.approx(share, abs=0.1)
    for name in ("fit.md", "evaluate.md"):
        assert f"Positive is {labels[1]}." in (folder / name).read_text()
    assert "release of its own" not in (folder / "fit.md").read_text()
    assert f"'{labels[1]}' predicted above 0.5" in run(*judge)[1]
    model, _ = searched[0]
    assert model.estimator["model"].base_rate == (0.3 if labels[1] == "well" else 0.7)


def test_who_releases_stands_in_the_ledger(run, folder):
    run("ledger", "create", "b.ledger", "--epsilon", "3")
    code, _, err = run(*FULL, *SAVE, "--ledger", "b.ledger", "--user", "Ana", "--label", "March")
    assert code == 0, err
    (entry,) = PrivacyLedger(folder / "b.ledger").history()
    assert entry.user == "Ana" and entry.label.startswith("March: ")


@pytest.mark.parametrize(
    "options, says",
    [
        (["--user", "Ana"], "--user needs --ledger"),
        (["--base-rate", "1.5"], "--base-rate is the share"),
        (["--base-rate", "often"], "--base-rate must be a number"),
    ],
)
def test_refusals_of_users_and_shares(refused, options, says):
    assert says in refused(*FULL, *options)


def test_a_share_means_nothing_for_a_regression(refused):
    assert "--base-rate is the share" in refused("fit", "waits.csv", *WAITING_TIME, "--base-rate", "0.3")

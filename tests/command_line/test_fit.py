"""``dpselect fit``: what it releases, what it saves, and what it says."""

import bz2
import gzip
import json
import lzma
import os
import pickle
import re
import signal
import subprocess
import sys
import warnings
from itertools import count
from pkgutil import resolve_name
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpselect
from dpselect import PrivacyLedger, PrivacyLoss, StabilityGridSearchCV, linear_model
from dpselect.__main__ import main
from dpselect._command_line import arguments, demo, files
from dpselect._command_line.messages import CommandError, warnings_as_notes
from dpselect._command_line.models import load_model
from dpselect.exceptions import PrivacyLeakWarning
from dpselect.linear_model.losses import CappedLogisticLoss
from dpselect.preprocessing import PublicSchema, TableEncoder

from .conftest import (
    FULL,
    HEADER,
    SCHEMA,
    SECRET,
    SMOKES,
    TRUST,
    WAITING_TIME,
    as_csv,
    records,
    strict,
)

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


# --- the demonstration


WITHOUT_PANDAS = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("pandas", "pyarrow"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from dpselect.__main__ import run
run()
"""


@pytest.mark.slow
def test_demo_as_a_process_that_has_no_pandas():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_PANDAS],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0 and done.stderr == ""
    expected = [
        "Plan for 455 records and 10 columns",
        "Chosen parameters",
        "alpha = ",
        "(epsilon = 3, delta = 0) differential privacy",
        "Not released",
        "AUC",
        "only because",
    ]
    place = 0
    for text in expected:  # one after the other
        place = done.stdout.index(text, place)


def test_the_demo_is_not_underpowered():
    plan = demo.make_search().plan(455, len(demo.BOUNDS.columns))
    assert (plan.strategy, plan.training_epsilon) == ("data_independent", demo.EPSILON)
    assert not any("underpowered" in text or "most of it" in text for text in plan.messages)


def test_the_demo_plans_before_it_loads_the_records(monkeypatch, capsys):
    def fit(self, X, y):
        assert "Plan for 455" in capsys.readouterr().out
        raise KeyboardInterrupt

    monkeypatch.setattr(StabilityGridSearchCV, "fit", fit)
    assert main([]) == 130
    assert capsys.readouterr().err == "error: Interrupted.\n"


# --- releases


def test_text(run):
    code, out, err = run(*FULL, "--lines", "--alpha", "0.03", "0.3")
    assert (code, err) == (0, "")
    expected = [
        "Plan for 200 records and 3 columns",
        "Chosen parameters",
        "towards well",
        "intercept",
        "  age ",
        "smoker_never, ever",
        "bmi",
        "epsilon = 2",
        "Not released",
    ]
    places = [out.index(text) for text in expected]
    assert places == sorted(places)
    assert SECRET not in out and "the scores of the candidates" not in out


@pytest.mark.parametrize("more, unit", [
    ([], "the linear prediction of well"), (["--target", "gap"], "the prediction"),
    (["--target", "gap", "--task", "counts"], "the log of the count"),
])  # fmt: skip
def test_the_text_of_curves_adds_up_to_predictions(run, folder, more, unit):
    (folder / "data.csv").write_text(
        as_csv(
            [[*row, "NA" if i % 9 == 0 else i % 7, i % 5] for i, row in enumerate(records())],
            [*HEADER, "visits", "gap"],
        )
    )
    visits = {"visits": {"bounds": [0, 8], "missing": True, "transform": "log1p"}, "gap": [0, 6]}
    (folder / "schema.json").write_text(json.dumps(SCHEMA | visits))
    code, out, err = run(*FULL, *more, "--save", "model.pkl")
    assert (code, err) == (0, "") and f"what values add to {unit}\n" in out and SECRET not in out
    shown = out[out.index(unit) : out.index("Privacy loss")]
    added = {k: float(v) for k, v in re.findall(r"^  (\S.*?) +(\S+)$", shown, re.MULTILINE)}
    search = pickle.loads((folder / "model.pkl").read_bytes())
    row = {"age": 60, "smoker": "no", "bmi": 35, "visits": None, "gap": 3, "out come": "well"}
    names = list(search.best_estimator_[0].schema_.columns)
    said = [f"{name} missing" if row[name] is None else f"{name} = {row[name]}" for name in names]
    total = added["offset"] + sum(added[name] for name in said)
    table = pd.DataFrame({name: [row[name]] for name in names})
    if not more:  # log odds are those of the sum
        total = CappedLogisticLoss(0.6).decision(np.float64(total))
    predicted = search.best_estimator_.predict(table) if more else search.decision_function(table)
    assert total == pytest.approx(np.log(predicted[0]) if "--task" in more else predicted[0], rel=1e-2)


def test_json(run):
    code, out, err = run(*FULL, "--lines", "--alpha", "0.03", "0.3", "--json")
    assert (code, err) == (0, "") and len(out.splitlines()) == 1
    said = strict(out)
    assert said["attributes"]["classes_"] == ["ill", "well"]
    (coefficients,) = said["coefficients"].values()
    assert list(coefficients) == ["intercept", "age", *(f"smoker_{name}" for name in SMOKES), "bmi"]
    assert said["privacy"]["epsilon"] == 2.0 and len(said["privacy"]["parts"]) == 2  # a share first
    assert said["plan"]["strategy"] == "data_independent" and len(said["plan"]["candidates"]) == 2
    assert said["best_params"]["model__alpha"] in (0.03, 0.3)
    assert SECRET not in out


@pytest.mark.parametrize("given, used", [([], "auto"), (["--alpha", "0.5"], 0.5)])
def test_without_alternatives_the_model_gets_the_whole_epsilon(run, given, used):
    _, out, _ = run(*FULL, *given, "--json")
    said = strict(out)
    assert said["best_params"] == {"model__alpha": used}
    share, model = (part["epsilon"] for part in said["privacy"]["parts"])
    assert share == pytest.approx(0.1) and share + model == 2.0
    assert not any("candidates" in text for text in said["not_released"])
    _, out, _ = run(*FULL, *given)
    assert f"alpha = {used} (the only candidate: nothing was selected)" in out


# what is asked for, and the model that comes of it
TASKS = {
    "classes": (FULL, "DPLogisticRegression"),
    "lines": ([*FULL, "--lines"], "DPLogisticRegression"),
    "numbers": (["fit", "waits.csv", *WAITING_TIME], "DPHuberRegressor"),
    "counts": (["fit", "waits.csv", *WAITING_TIME, "--task", "counts"], "DPPoissonRegressor"),
    "density": (
        ["fit", "waits.csv", *WAITING_TIME[2:], "--task", "density", "--drop", "wait", "--bins", "4"],
        "DPHistogramDensity",
    ),
    "accuracy first": (
        [
            "fit",
            "waits.csv",
            *WAITING_TIME[:2],
            "--epsilon",
            "1e6",
            *WAITING_TIME[4:],
            "--excess-risk",
            "20",
        ],
        "DPHuberRegressor",
    ),
}


@pytest.mark.parametrize("task", TASKS)
def test_the_model_can_be_built_again_from_json(run, folder, task):
    argv, kind = TASKS[task]
    code, out, err = run(*argv, "--json", "--save", "model.pkl")
    assert (code, err) == (0, "")
    said = strict(out)
    assert said["model"] == kind
    table = pd.read_csv(argv[1])[list(said["schema"])]
    model = getattr(dpselect, kind, None) or getattr(linear_model, kind)
    model = model(**said["params"])
    for name, value in said["attributes"].items():
        setattr(model, name, np.array(value) if isinstance(value, list) else value)
    X = table.to_numpy()
    if kind != "DPHistogramDensity":
        encoder = TableEncoder(PublicSchema(said["schema"]), **said["encoder"])
        X = encoder.fit(table).transform(table)
        if not hasattr(model, "classes_"):
            model.intercept_ = said["coefficients"]["prediction"]["intercept"]
    saved = pickle.loads((folder / "model.pkl").read_bytes())
    if kind == "DPHistogramDensity":
        model.bin_edges_ = [np.array(edges) for edges in said["attributes"]["bin_edges_"]]
        found, expected = model.score_samples(X), saved.score_samples(table)
    else:
        found, expected = model.predict(X), saved.predict(table)
        if kind == "DPLogisticRegression":
            np.testing.assert_allclose(model.predict_proba(X), saved.predict_proba(table), rtol=1e-9)
            assert (found == expected).all()
            return
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_model_and_evaluation_in_one_loss(run, folder, task):
    argv = [*TASKS[task][0], "--evaluation", "0.25"]
    assert run("ledger", "create", "l.ledger", "--epsilon", "1e6")[0] == 0
    paid = ["--ledger", "l.ledger", "--save", "model.pkl", "--report", "said.md"]
    code, out, err = run(*argv, "--json", *paid)
    assert (code, err) == (0, "")
    said = strict(out)
    found, loss = said["evaluation"], said["privacy"]
    assert found["records"] == 50 and loss["composition"] == "parallel"
    assert found["privacy"]["epsilon"] == loss["epsilon"] <= PrivacyLedger("l.ledger").spent()[0]
    planned = strict(run("plan", *argv[2:], "--records", "200", "--json")[1])
    assert planned == said["plan"] and "50 records are set aside" in planned["messages"][-1]
    model = pickle.loads((folder / "model.pkl").read_bytes())
    assert model.evaluation_.metrics == tuple(found["figures"])
    text = (folder / "said.md").read_text()
    assert "How good it is" in text and "Measured on 50 records" in text
    if task != "accuracy first":  # whose plan has no number of records
        assert planned["n_samples"] == 150 and PrivacyLedger("l.ledger").spent()[0] == 2.0
        assert "there are 200" in text
    code, out, _ = run(*argv)
    assert code == 0 and list(found["figures"])[0] in out[out.index("How good it is") :]
    assert "How good it is" not in run(*argv[:-2])[1]


@pytest.mark.parametrize("name, separator, pack", [
    ("d.csv", ",", bytes), ("d.CSV", ";", bytes), ("d.tsv", "\t", bytes), ("d.txt", "|", bytes),
    ("d.csv.gz", ";", gzip.compress),
    ("d.tsv.bz2", "\t", bz2.compress), ("d.csv.xz", ",", lzma.compress),
])  # fmt: skip
def test_every_kind_of_text_file_is_the_same_table(run, folder, name, separator, pack):
    rows = [[f" {age} ", *rest] for age, *rest in records()]
    text = "\ufeff" + as_csv(rows, [" age", *HEADER[1:]], delimiter=separator) + "\r\n"
    (folder / name).write_bytes(pack(text.encode()))
    code, out, err = run("fit", name, *FULL[2:], "--json")
    assert (code, err) == (0, "") and strict(out)["plan"]["n_samples"] == 200


def test_a_separator_that_is_given(run, folder):
    (folder / "d.csv").write_text(as_csv(records(), delimiter="~"))
    assert run("fit", "d.csv", *FULL[2:], "--separator", "~")[0] == 0
    (folder / "d.csv").write_text(as_csv(records(), delimiter="\t"))
    assert run("fit", "d.csv", *FULL[2:], "--separator", "tab")[0] == 0


def test_parquet(run, folder):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(records(), columns=HEADER).astype({"age": float})
    table.to_parquet(folder / "d.parquet")
    assert run("fit", "d.parquet", *FULL[2:])[0] == 0
    # codes of categories are numbers here, and texts in the schema
    table["out come"] = (table["out come"] == "ill").astype(int)
    table.to_parquet(folder / "d.parquet")
    (folder / "schema.json").write_text(json.dumps({**SCHEMA, "out come": ["0", "1"]}))
    code, out, _ = run("fit", "d.parquet", *FULL[2:], "--json")
    assert code == 0 and strict(out)["attributes"]["classes_"] == ["0", "1"]


class Runs:
    def __reduce__(self):
        return os.mkdir, ("ran",)


def test_types_of_parquet_run_nothing(run, folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    # its protocol 0 is the text that a schema has to be
    program = pickle.dumps(Runs(), protocol=0)
    table = pa.Table.from_pandas(pd.DataFrame(records(), columns=HEADER).astype({"age": float}))
    for name in ("arrow.py_extension_type", "pandas.period", "arrow.parquet_of_somebody"):
        said = {"ARROW:extension:name": name, "ARROW:extension:metadata": program}
        field = table.schema.field("age").with_metadata(said)
        pq.write_table(table.cast(table.schema.set(0, field)), folder / "d.parquet")
        assert run("fit", "d.parquet", *FULL[2:])[0] in (0, 2)
        assert not (folder / "ran").exists()
    pickle.loads(program)  # the twin
    assert (folder / "ran").exists()


def test_columns_may_come_in_any_order_and_be_dropped(run, folder):
    table = pd.read_csv("data.csv").assign(id=range(200))[["id", "bmi", "out come", "smoker", "age"]]
    table.to_csv("other.csv", index=False)
    code, out, _ = run("fit", "other.csv", *FULL[2:], "--drop", "id", "bmi", "--json")
    assert code == 0 and list(strict(out)["schema"]) == ["age", "smoker"]


def test_values_outside_the_bounds_are_clipped(run, folder):
    (folder / "schema.json").write_text(json.dumps({**SCHEMA, "age": [30, 40], "bmi": [20, 22]}))
    code, _, err = run(*FULL)
    assert (code, err) == (0, "")


def test_numbers_that_all_lie_outside_the_bounds_are_refused(run, folder):
    """As by the fit in Python."""
    (folder / "schema.json").write_text(json.dumps({**SCHEMA, "age": [0, 1], "bmi": [10, 11]}))
    for command in (FULL, ["schema", "data.csv", "--check", "schema.json"]):
        code, out, err = run(*command)
        assert code == 2 and out == "" and "its column 'age' has no number between the bounds" in err


def test_a_missing_mark_can_be_a_category(run, folder):
    rows = records()
    rows[5][2] = rows[6][2] = "?"
    (folder / "data.csv").write_text(as_csv(rows))
    (folder / "schema.json").write_text(json.dumps({**SCHEMA, "smoker": [*SMOKES, "?"]}))
    code, out, err = run(*FULL)
    assert (code, err) == (0, "") and "smoker = ?" in out


def test_what_else_a_schema_says(run, folder):
    rows = records()
    rows[5][0], rows[6][2], rows[7][2], rows[8][2] = "", "?", "a pipe", "1.0"
    (folder / "data.csv").write_text(as_csv(rows))
    more = {"missing": True, "transform": "arcsinh", "fill": 50, "unit": "years"}
    smoker = {"categories": [*SMOKES, "1"], "missing": True, "unknown": True}
    schema = {**SCHEMA, "age": {"bounds": [0, 120], **more}, "smoker": smoker}
    (folder / "schema.json").write_text(json.dumps(schema))
    code, out, err = run(*FULL, "--lines", "--json", "--save", "model.pkl")
    assert (code, err) == (0, "")
    encoder = pickle.loads((folder / "model.pkl").read_bytes()).best_estimator_[0]
    strange = pd.DataFrame(
        [[None, None, 10], [120, "a pipe", 10], [0, 1, 10]], columns=["age", "smoker", "bmi"]
    )
    gap, pipe, one = encoder.transform(strange)
    assert gap.tolist() == [2 * np.arcsinh(50) / np.arcsinh(120) - 1, 1, 0, 0, 0, 0, 0, 1, -1]
    assert pipe.tolist() == [1, 0, 0, 0, 0, 0, 1, 0, -1]
    assert one.tolist() == [-1, 0, 0, 0, 0, 1, 0, 0, -1]


def test_long_tables_and_strange_names_stay_short_and_on_one_line(run, folder):
    header = [*(f"c{j}" for j in range(40)), "line\nbreak", "y"]
    rows = [[*np.arange(41) + i, i % 2] for i in range(20)]
    (folder / "wide.csv").write_text(as_csv(rows, header))
    schema = {name: [0, 100] for name in header[:-1]} | {"y": ["0", "1"]}
    (folder / "wide.json").write_text(json.dumps(schema))
    wide = ["fit", "wide.csv", "--target", "y", "--epsilon", "2", "--schema", "wide.json"]
    code, out, _ = run(*wide)
    assert code == 0 and "and 93 more; --json prints all" in out  # an offset, and three of each column
    wide.append("--lines")
    code, out, _ = run(*wide)
    assert code == 0 and "and 11 more; --json prints all" in out
    _, out, _ = run(*wide, "--json")
    assert list(strict(out)["coefficients"]["1"]) == ["intercept", *header[:-1]]
    assert "line\\nbreak" in run(*wide, "--drop", *header[:-2])[1]


@pytest.mark.parametrize("epsilon", ["1e-6", "1e6"])
@pytest.mark.parametrize("alphas", [["1e-6"], ["1e-6", "1", "1e6"]])
def test_extremes_are_valid_json(run, epsilon, alphas):
    argv = [epsilon if word == "2" else word for word in FULL]
    code, out, err = run(*argv, "--json", "--alpha", *alphas)
    assert (code, err) == (0, "")
    strict(out)


# --- saved models


def check_model(model):
    assert list(model.classes_) == ["ill", "well"]
    rows = pd.DataFrame([[50.0, "yes", 20.0], [20.0, "no", 1e9]], columns=["age", "smoker", "bmi"])
    assert model.predict_proba(rows).shape == (2, 2)
    assert set(model.predict(rows)) <= {"ill", "well"}
    assert isinstance(model.privacy_, PrivacyLoss) and model.privacy_.epsilon == 2.0
    for wrong in (rows[["smoker", "age", "bmi"]], rows[["age", "smoker"]], rows.add_suffix("s")):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(wrong)


def check_no_records(content):
    assert len(content) < 15_000  # however many records there are
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
    assert str(folder).encode() not in content


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
    assert run("predict", "model.skops", "data.csv")[0] == 0


@pytest.mark.parametrize("task", ["density", "accuracy first"])
def test_what_skops_has_written_is_read_again(run, folder, task):
    pytest.importorskip("skops.io")
    argv, _ = TASKS[task]
    assert run(*argv, "--evaluation", "0.2", "--save", "model.skops")[0] == 0
    assert run("predict", "model.skops", argv[1])[0] == 0


def test_a_saved_model_knows_no_ledger(run, folder):
    assert run("ledger", "create", "records.ledger", "--epsilon", "9")[0] == 0
    argv = [*FULL, "--save", "model.pkl", "--ledger", "records.ledger"]
    assert run(*argv)[0] == 0
    assert b"records.ledger" not in (folder / "model.pkl").read_bytes()


def test_a_file_that_is_there_is_kept_unless_forced(refused, folder, monkeypatch):
    for option, name in (("--save", "model.pkl"), ("--report", "said.html")):
        (folder / name).write_text("precious")
        assert "is there already; give another name, or --force" in refused(*FULL, option, name)
        assert (folder / name).read_text() == "precious"


def test_force(run, folder):
    (folder / "model.pkl").write_text("old")
    assert run(*FULL, "--save", "model.pkl", "--force")[0] == 0
    check_model(pickle.loads((folder / "model.pkl").read_bytes()))


@pytest.mark.parametrize("ending", [".html", ".md", ".json"])
def test_report(run, folder, ending):
    assert run("ledger", "create", "l.ledger", "--epsilon", "3")[0] == 0
    code, _, err = run(*FULL, "--report", f"said{ending}", "--ledger", "l.ledger")
    text = (folder / f"said{ending}").read_text()
    assert (code, err) == (0, "") and "epsilon = 2" in text and "l.ledger" in text and SECRET not in text


# --- a disk that is full, and a model that the disk refuses


def full_disk(*_):
    raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_before_the_fit_costs_nothing(refused, folder, monkeypatch):
    before = sorted(file.name for file in folder.iterdir())
    monkeypatch.setattr(files, "fsync", full_disk)
    for option, name in (("--save", "model.pkl"), ("--report", "said.html")):
        assert "cannot be written (No space left on device)" in refused(*FULL, option, name)
    assert sorted(file.name for file in folder.iterdir()) == before


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_costs_no_release_and_leaves_no_half_model(run, folder, monkeypatch, call):
    (folder / "model.pkl").write_text("old")
    assert run("ledger", "create", "l.ledger", "--epsilon", "3")[0] == 0
    before = sorted(file.name for file in folder.iterdir())
    write = files.ModelFile.write_model

    def fill_up(*args):
        monkeypatch.setattr(files, call, full_disk)
        monkeypatch.setattr(files, "_fallback_folders", list)
        write(*args)

    monkeypatch.setattr(files.ModelFile, "write_model", fill_up)
    argv = [*FULL, "--json", "--save", "model.pkl", "--force", "--ledger", "l.ledger"]
    code, out, err = run(*argv)
    assert code == 2 and "could not be written (No space left on device), and the privacy loss" in err
    assert strict(out)["privacy"]["epsilon"] == 2.0  # it was paid for, and is printed
    assert PrivacyLedger(folder / "l.ledger").spent() == (2.0, 0.0)
    assert (folder / "model.pkl").read_text() == "old"
    assert sorted(file.name for file in folder.iterdir()) == before


# --- what is stopped on its way

STAGES = {
    "reading": "dpselect._command_line.text_files.TextFile.blocks",
    "planning": "dpselect._command_line.tasks.Task.plan",
    "learning": "dpselect.model_selection.learned_first.ToLearn.learned",
    "training": "dpselect.model_selection.stages.fit_for_release",
    "committing": "dpselect.ledger.ledger.Reservation.commit",
    "saving": "dpselect._command_line.files.ModelFile.write_model",
    "writing": "dpselect._command_line.files.fsync",
    "naming": "dpselect._command_line.files.give_name",
    "reporting": "dpselect._command_line.commands.privacy_report",
    "printing": "dpselect._command_line.printing.to_text",
}
# which call it is, if not the first one: with two outputs, room on the disk is looked for twice
CALLS = {STAGES["writing"]: 3}
# until then nothing has come out that depends on a record
FREE = ("reading", "planning")
needs_forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")


def disturbed(folder, place, disturb, argv):
    """Run the command in a process that something happens to at a place.

    Returns its exit code, and what it printed.
    """
    module, _, name = place.rpartition(".")
    original, calls = getattr(resolve_name(module), name), count(1)

    def disturbed_call(*args, **kwargs):
        if next(calls) >= CALLS.get(place, 1):
            disturb()
        return original(*args, **kwargs)

    reader, writer = os.pipe()  # (a limit on files is none on a pipe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.chdir(folder)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with open(writer, "w") as sys.stdout, mock.patch(place, disturbed_call):
                sys.stderr = sys.stdout
                code = main(argv)
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader) as stream:
        said = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def check_what_is_left(folder, stage, free):
    """Check that no model is half, and no loss uncounted."""
    assert PrivacyLedger(folder / "l.ledger").spent()[0] == (0.0 if free else 2.0)
    if (folder / "model.pkl").exists():
        check_model(pickle.loads((folder / "model.pkl").read_bytes()))
        assert stage in ("reporting", "printing")
    if (folder / "said.html").exists():
        assert (folder / "said.html").read_text().rstrip().endswith("</html>")


ALL_FILES = [*FULL, "--save", "model.pkl", "--report", "said.html", "--ledger", "l.ledger"]


@needs_forks
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda how: how.name)
@pytest.mark.parametrize("stage", STAGES)
def test_a_fit_that_is_stopped_leaves_no_half_model_and_no_uncounted_loss(run, folder, stage, how):
    def stop():
        os.kill(os.getpid(), how)
        signal.pause()

    assert run("ledger", "create", "l.ledger", "--epsilon", "3")[0] == 0
    code, said = disturbed(folder, STAGES[stage], stop, ALL_FILES)
    assert code == (-9 if how == signal.SIGKILL else 130) and SECRET not in said, said
    # who interrupts before the noise is drawn has learned nothing
    check_what_is_left(folder, stage, stage in FREE or (stage, how) == ("learning", signal.SIGINT))


def fill_the_disk():
    """From now on no file takes a byte."""
    import resource  # not everywhere

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


SAYS = {
    "reading": "set TMPDIR",
    "planning": "set TMPDIR",
    "learning": "disk of the ledger",
    "training": "disk of the ledger",
    "committing": "disk of the ledger",
    "saving": "could not be written (File too large), and the",
    # what was on the disk by then has its name
    "writing": "disk of the ledger",
    "naming": "disk of the ledger",
    "reporting": "disk of the ledger",
}


@needs_forks
@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(
            stage, marks=[] if stage in ("committing", "saving", "reporting") else pytest.mark.slow
        )
        for stage in STAGES
    ],
)
def test_a_disk_that_is_full_leaves_no_half_model_and_no_uncounted_loss(run, folder, stage):
    assert run("ledger", "create", "l.ledger", "--epsilon", "3")[0] == 0
    code, said = disturbed(folder, STAGES[stage], fill_the_disk, ALL_FILES)
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if stage == "printing":
        assert code == 0 and errors == []
    else:
        assert code == 2 and len(errors) == 1 and SAYS[stage] in errors[0], said
    free = stage in FREE
    # what was paid for, and came out, is printed
    assert ("Released model" in said) == (
        not free and stage not in ("learning", "training", "committing")
    )
    saved = stage in ("writing", "naming", "reporting", "printing")
    assert (folder / "model.pkl").exists() == saved
    check_what_is_left(folder, "reporting" if saved else stage, free)
    left = {"data.csv", "schema.json", "waits.csv", "waits.json", "l.ledger", "model.pkl", "said.html"}
    assert {file.name for file in folder.iterdir()} <= left


@needs_forks
def test_a_twin_that_writes_under_the_name_itself_is_caught(run, folder, monkeypatch):
    def write(self, content, cost=""):
        with open(self.path, "wb") as stream:
            stream.write(content)

    monkeypatch.setattr(files.OutputFile, "write", write)
    assert run("ledger", "create", "l.ledger", "--epsilon", "3")[0] == 0
    disturbed(folder, STAGES["saving"], fill_the_disk, ALL_FILES)
    with pytest.raises(EOFError):
        check_what_is_left(folder, "reporting", False)


@needs_forks
def test_a_ledger_that_the_disk_refuses(run, folder):
    assert run("ledger", "create", "l.ledger", "--epsilon", "3")[0] == 0
    place = "dpselect._command_line.commands.open_ledger"
    spend = ["ledger", "spend", "l.ledger", "--epsilon", "1", "--label", "a table"]
    code, said = disturbed(folder, place, fill_the_disk, spend)
    assert code == 2 and said.startswith("error: ") and "l.ledger" in said
    place = "dpselect._command_line.commands.create_ledger"
    create = ["ledger", "create", "n.ledger", "--epsilon", "3"]
    code, said = disturbed(folder, place, fill_the_disk, create)
    assert code == 2 and said.startswith("error: 'n.ledger' cannot serve as a ledger: The disk of the ")
    assert "is full or fails" in said and said.count("\n") == 1
    assert PrivacyLedger(folder / "l.ledger").spent()[0] == 0.0
    assert not (folder / "n.ledger").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_an_output_on_a_full_disk(run, folder, more):
    def fill_the_output():
        sys.stdout = open("/dev/full", "w")

    assert run("ledger", "create", "l.ledger", "--epsilon", "3")[0] == 0
    code, said = disturbed(folder, STAGES["reading"], fill_the_output, [*ALL_FILES, *more])
    assert (code, said) == (
        2,
        (
            "error: The output could not be printed, or a temporary file written, to its end (No space "
            "left on device).\n"
        ),
    )
    # a plan is printed first, and without it nothing is spent
    check_what_is_left(folder, "printing", free=not more)
    assert (folder / "model.pkl").exists() == bool(more)


# --- steps


def test_steps_are_told_where_a_person_looks_on(run, monkeypatch):
    argv = [*FULL, "--alpha", "0.1", "1", "--evaluation", "0.2", "--save", "m.pkl"]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, err = run(*argv)
    lines = [line.partition(" s] ")[2] for line in err.splitlines()]
    assert code == 0 and "s]" not in out and SECRET not in err
    assert lines == [
        "reading 'data.csv'",
        "choosing among 2 candidates by 'auto'",
        "training the chosen model on 160 records",
        "evaluating the model on what was set aside",
        "writing 'm.pkl'",
    ]
    code, _, err = run("predict", TRUST, "m.pkl", "data.csv")
    lines = [line.partition(" s] ")[2] for line in err.splitlines()]
    assert lines == ["reading 'data.csv'", "predicting"]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert run(*argv, "--force")[2] == ""


# --- what nobody expected


def test_unexpected_errors_do_not_quote_the_records(run, monkeypatch):
    def fit(self, X, y):
        raise ValueError(f"could not convert string to float: {X.iloc[0, 0]} {SECRET}")

    monkeypatch.setattr(StabilityGridSearchCV, "fit", fit)
    code, _, err = run(*FULL)
    assert code == 2 and err == "error: Something unexpected went wrong (ValueError).\n"


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
    kinds = kinds_of_warnings()
    assert PrivacyLeakWarning in kinds and len(kinds) > 20
    for kind in kinds:
        try:
            warning = kind(f"strange cell {SECRET}")
        except TypeError:  # it takes more than a text
            continue
        with warnings.catch_warnings(), warnings_as_notes():
            warnings.simplefilter("always")
            warnings.warn_explicit(warning, kind, "of_a_library.py", 1)
        # only our own are known not to quote records
        assert (SECRET in "".join(capsys.readouterr())) == issubclass(kind, PrivacyLeakWarning), kind


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv, code, said",
    [
        (FULL, 2, "error: The output could not be printed to its end (Broken pipe).\n"),
        # which costs nothing, and is often piped to head
        (["schema", "data.csv"], 141, ""),
    ],
)
def test_an_output_that_nobody_reads(folder, argv, code, said):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "dpselect", *argv],
            stdout=stdout,
            text=True,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=ENVIRONMENT,
        )
    assert (done.returncode, done.stderr) == (code, said)


def test_there_is_no_seed():
    given = vars(arguments.parse(FULL))
    assert not {"seed", "random_state"} & set(given)


def test_an_unknown_type_in_a_model_is_refused(folder):
    sio = pytest.importorskip("skops.io")
    (folder / "model.skops").write_bytes(sio.dumps(PublicSchemaOfSomebodyElse()))
    with pytest.raises(CommandError, match="which is no part of a saved model"):
        load_model(str(folder / "model.skops"))


class PublicSchemaOfSomebodyElse:
    privacy_ = best_estimator_ = None

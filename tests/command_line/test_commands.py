"""The commands around a fit: a schema before it, predictions, figures and a statement after it."""

import io
import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from dpselect import (
    DPLogisticRegression,
    PrivacyLedger,
    StabilityGridSearchCV,
    TermsDisplay,
    coef_interval,
    privacy_report,
)
from dpselect._command_line import commands, printing
from dpselect._command_line.tasks import coded
from dpselect._command_line.text_files import TextFile
from dpselect.evaluation import CalibratedModel
from dpselect.export import TRUSTED_TYPES, to_onnx
from dpselect.preprocessing import PublicSchema, tabular_pipeline

from .conftest import FULL, HEADER, SCHEMA, SECRET, SMOKES, TRUST, WAITING_TIME, as_csv, records, strict

WITHOUT_TARGET = [*WAITING_TIME[2:], "--task", "density", "--drop", "wait", "--bins", "4"]
DENSITY = ["fit", "waits.csv", *WITHOUT_TARGET]


@pytest.fixture
def model(run, folder):
    """The model that ``dpselect fit`` has saved."""
    assert run(*FULL, "--save", "model.pkl")[0] == 0
    return pickle.loads((folder / "model.pkl").read_bytes())


def test_a_schema_is_made_from_names_alone(run, folder, monkeypatch):
    monkeypatch.setattr(TextFile, "blocks", None)  # which reads records
    code, out, err = run("schema", "data.csv", "--drop", "bmi")
    assert code == 0 and json.loads(out) == dict.fromkeys(["age", "out come", "smoker"])
    assert err.startswith("note: In place of each null") and err.count("\n") == 1
    assert run("schema", "data.csv", "--output", "new.json")[0] == 0
    assert list(json.loads((folder / "new.json").read_text())) == HEADER
    assert "not filled in" in run(*FULL[:-1], "new.json")[2]


def test_a_schema_is_checked(run):
    code, out, err = run("schema", "data.csv", "--check", "schema.json")
    assert (code, err) == (0, "") and "has all 4 columns" in out
    # what a fit leaves out, the check does
    code, out, err = run("schema", "data.csv", "--drop", "bmi", "--check", "schema.json")
    assert (code, err) == (0, "") and "has all 3 columns" in out


def test_a_density_has_as_many_cells_as_asked_for_each_column(run, folder):
    table = pd.DataFrame({"a": np.linspace(0, 1, 50), "b": np.linspace(0, 10, 50)})
    table.to_csv("two.csv", index=False)
    (folder / "two.json").write_text('{"a": [0, 1], "b": [0, 10]}')
    argv = ["fit", "two.csv", "--schema", "two.json", "--task", "density", "--epsilon", "1"]
    for bins, shape in (([], (20, 20)), (["4"], (4, 4)), (["6", "10"], (6, 10))):
        given = ["--bins", *bins] if bins else []
        assert run(*argv, *given, "--save", "two.pkl", "--force")[0] == 0
        density = pickle.loads((folder / "two.pkl").read_bytes()).best_estimator_
        assert density.density_.shape == shape and density.bin_edges_[1][-1] == 10
    err = run(*argv, "--bins", "6", "10", "3")[2]
    assert "--bins has 3 numbers, and the density is of the columns 'a' and 'b'" in err


def test_a_plan_needs_no_records(run, folder):
    (folder / "data.csv").unlink()
    argv = ["plan", *FULL[2:], "--records", "200", "--alpha", "0.1", "1"]
    code, out, err = run(*argv)
    assert (code, err) == (0, "") and "Plan for 200 records and 3 columns" in out
    # nobody can choose a strategy here
    assert "random_stopping" not in out and "random_stopping" in run(*argv, "--json")[1]
    code, out, _ = run(*argv, "--json")
    assert code == 0 and strict(out)["n_samples"] == 200


def test_the_plan_is_that_of_the_fit(run):
    argv = [*FULL[2:], "--alpha", "0.1", "1"]
    planned = strict(run("plan", *argv, "--records", "200", "--json")[1])
    assert strict(run(*FULL[:2], *argv, "--json")[1])["plan"] == planned


def test_an_accuracy_first_plan(run):
    argv = ["plan", *WAITING_TIME, "--records", "1000", "--excess-risk", "1"]
    code, out, err = run(*argv)
    assert (code, err) == (0, "") and "certified" in out
    assert strict(run(*argv, "--json")[1])["messages"]


def test_predictions_are_those_of_the_model(run, folder, model):
    # other columns are left out, and the order is that of the model
    table = pd.DataFrame(records(50, seed=1), columns=HEADER).assign(name="someone")[::-1]
    table[["name", "bmi", "smoker", "age"]].to_csv("new.csv", index=False, sep=";")
    expected = model.predict_proba(table[["age", "smoker", "bmi"]])
    code, out, err = run("predict", TRUST, "model.pkl", "new.csv")
    assert (code, err) == (0, "")
    found = out.splitlines()
    expected_labels = model.predict(table[["age", "smoker", "bmi"]]).tolist()
    assert found == ["prediction", *expected_labels]
    argv = ["predict", TRUST, "model.pkl", "new.csv", "--probabilities", "--output", "p.csv"]
    assert run(*argv)[:2] == (0, "")
    found = pd.read_csv(folder / "p.csv", sep=";")  # as the file of records has it
    assert list(found) == ["ill", "well"]
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-12)


def test_a_threshold_and_columns_that_are_kept(run, folder, model):
    table = pd.DataFrame(records(50, seed=1), columns=HEADER)
    table = table.assign(id=[f"{i:03d}" for i in range(50)], note=["a, b", ""] * 25)
    table.to_csv("new.csv", index=False)
    argv = ["predict", TRUST, "model.pkl", "new.csv", "--keep", "id", "note", "age"]
    well = model.predict_proba(table[["age", "smoker", "bmi"]])[:, 1]
    given = ("id", "note", "age")
    for threshold in np.clip(np.quantile(well, [0.3, 0.7]), 0.001, 0.999).tolist():
        code, out, err = run(*argv, "--threshold", str(threshold))
        assert code == 0
        assert err == f"note: 'well' is predicted where its probability is above {threshold:g}.\n"
        found = pd.read_csv(io.StringIO(out), dtype=str, keep_default_na=False)
        assert list(found) == [*given, "prediction"]
        assert found["prediction"].tolist() == np.where(well > threshold, "well", "ill").tolist()
        for name in given:
            assert found[name].tolist() == table[name].astype(str).tolist()
    found = pd.read_csv(io.StringIO(run(*argv, "--probabilities")[1]))
    assert list(found) == [*given, "ill", "well"]


@pytest.mark.slow
def test_a_calibrated_model_from_python(run, folder):
    assert run(*FULL, "--evaluation", "0.5", "--save", "model.pkl")[0] == 0
    search = pickle.loads((folder / "model.pkl").read_bytes())
    found = CalibratedModel(search, search.evaluation_, threshold=0.4)
    sio = pytest.importorskip("skops.io")
    sio.dump(found, folder / "ours.skops")
    new = pd.DataFrame(records(50, seed=1), columns=HEADER)[["age", "smoker", "bmi"]]
    assert run("predict", "ours.skops", "data.csv")[0] == 0
    new.to_csv("new.csv", index=False)
    assert run("predict", "ours.skops", "new.csv")[1].split() == ["prediction", *found.predict(new)]
    assert "# Privacy statement: CalibratedModel" in run("report", "ours.skops")[1]
    assert run("export", "ours.skops", "--output", "plain.skops")[:2] == (0, "")
    plain = sio.load(folder / "plain.skops", trusted=TRUSTED_TYPES)
    np.testing.assert_array_equal(plain.predict(new), found.predict(new))
    pytest.importorskip("onnx")
    assert run("export", "ours.skops", "--output", "m.onnx")[:2] == (0, "")


@pytest.mark.parametrize("label, said", [("=1+1", True), ("@me", True), ("-1", False), ("x=1", False)])
def test_labels_that_are_formulas_are_said(run, folder, label, said):
    text = (folder / "data.csv").read_text().replace("well", label)
    (folder / "data.csv").write_text(text)
    (folder / "schema.json").write_text(json.dumps({**SCHEMA, "out come": ["ill", label]}))
    assert run(*FULL, "--save", "model.skops")[0] == 0
    code, out, err = run("predict", "model.skops", "data.csv")
    assert code == 0 and label in out
    assert err.startswith("note: A label") == said and bool(err) == said


def test_gaps_and_unknown_categories_in_new_records(run, folder):
    schema = {**SCHEMA, "smoker": {"categories": SCHEMA["smoker"], "missing": True, "unknown": True}}
    (folder / "schema.json").write_text(json.dumps(schema))
    assert run(*FULL, "--save", "model.pkl")[0] == 0
    (folder / "new.csv").write_text(as_csv([[50, "a pipe", 20], [50, "", 20]], ["age", "smoker", "bmi"]))
    code, out, _ = run("predict", TRUST, "model.pkl", "new.csv")
    assert code == 0 and len(out.splitlines()) == 3


def test_densities_of_new_records(run, folder):
    assert run(*DENSITY, "--save", "model.pkl")[0] == 0
    code, out, _ = run("predict", TRUST, "model.pkl", "waits.csv")
    assert code == 0 and out.splitlines()[0] == "log_density" and len(out.splitlines()) == 201


def test_a_table_of_counts_has_the_names_of_categories(run, folder, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(18, 90, 600), "sex": rng.choice(["f", "m"], 600)})
    table["region"] = rng.choice(["north", "South", ""], 600)
    table.to_csv(folder / "people.csv", index=False)
    regions = {"categories": ["west", "south", "north"], "missing": True}
    schema = {"region": regions, "age": [18, 90], "sex": ["f", "m"]}
    (folder / "people.json").write_text(json.dumps(schema))
    argv = ["--schema", "people.json", "--epsilon", "1e5"]
    fit = [
        "fit",
        "people.csv",
        *argv,
        "--task",
        "density",
        "--bins",
        "3",
        "--save",
        "m.skops",
        "--force",
    ]
    parts = {
        "region": table["region"].str.lower().replace("", "<missing>"),
        "age": np.floor((table["age"] - 18) / 24) * 24 + 18,
        "sex": table["sex"],
    }

    def check():
        assert run(*fit)[0] == 0
        run("export", "m.skops", "--schema", "people.json", "--output", "cells.csv", "--force")
        found = pd.read_csv(folder / "cells.csv", keep_default_na=False)
        assert list(found) == ["region", "age from", "age to", "sex", "share", "count"]
        counts = table.groupby(list(parts.values())).size()
        assert len(found) == 4 * 3 * 2 and found[found["region"] == "west"]["count"].eq(0).all()
        found = found[found["region"] != "west"].set_index(["region", "age from", "sex"])["count"]
        assert found.to_dict() == counts.to_dict()

    check()
    assert run("evaluate", "m.skops", "people.csv", *argv)[0] == 0
    assert len(run("predict", "m.skops", "people.csv", *argv[:2])[1].split()) == 601
    # without the names it cannot read the file, and exports places
    assert "'sex' has numeric bounds" in run("predict", "m.skops", "people.csv")[2]
    run("export", "m.skops", "--output", "places.csv")
    assert "sex from" in (folder / "places.csv").read_text()
    monkeypatch.setattr(commands, "coded", lambda frame, columns: coded(frame, columns) * 0)
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize("more", ["", "--person who", "--weights often"])
def test_intervals_of_coefficients(run, folder, more):
    rows = [[*row, 1 + i % 3, f"p{i // 2}"] for i, row in enumerate(records(4000))]
    (folder / "more.csv").write_text(as_csv(rows, [*HEADER, "often", "who"]))
    fit = [
        "fit",
        "more.csv",
        *FULL[2:],
        "--lines",
        "--drop",
        "smoker",
        "who",
        "often",
        "--save",
        "m.pkl",
    ]
    fit += ["--max-weight", "2"] * ("often" in more)
    assert run(*fit, *more.split())[0] == 0
    argv = ["intervals", TRUST, "m.pkl", "more.csv", "--target", "out come", "--epsilon", "1e6"]
    code, out, err = run(*argv, *more.split(), "--json")
    found = strict(out)["coefficients"]
    table = pd.read_csv(folder / "more.csv")
    given = {"who": {"groups": table["who"]}, "often": {"sample_weight": table["often"]}}
    pipeline = pickle.loads((folder / "m.pkl").read_bytes()).best_estimator_
    n = 2000 if "who" in more else 4000
    expected = coef_interval(pipeline, table[["age", "bmi"]], table["out come"], epsilon=np.inf,
                             n_samples=n, **given.get(more.rpartition(" ")[2], {}))  # fmt: skip
    low, high = expected.confidence_interval()
    assert (code, err, list(found)) == (0, "", ["age", "bmi", "intercept"])
    for name, *ends in zip(expected.names, expected.coef, low, high):
        assert list(found[name].values()) == pytest.approx(ends, rel=0.2, abs=0.2)
    assert "both losses add up" in run(*argv, *more.split(), "--report", "said.md")[1]
    assert "coefficients are known" in (folder / "said.md").read_text()


def test_pairs_are_printed_with_both_of_their_values(run, folder):
    fit = [*FULL, "--pairs", "smoker", "age", "--pairs", "age", "bmi", "--save", "m.pkl"]
    out = run(*fit)[1]
    pipeline = pickle.loads((folder / "m.pkl").read_bytes()).best_estimator_
    shown = {"smoker": SMOKES, "age": (0, 120), "bmi": (10, 60)}
    for pair in (("smoker", "age"), ("age", "bmi")):
        (drawn,) = TermsDisplay.from_estimator(pipeline, columns=[pair], target="well").terms
        table = dict(zip(zip(*(x.tolist() for x in drawn.values)), drawn.effect))
        for values in itertools.product(*(shown[name] for name in pair)):
            said = ", ".join(f"{name} = {value}" for name, value in zip(pair, values))
            (line,) = [line for line in out.splitlines() if line.strip().startswith(f"{said} ")]
            assert float(line.split()[-1]) == pytest.approx(table[values], rel=1e-3)
    assert "('" not in out


def test_what_is_printed_speaks_for_the_second_label_of_the_schema(run, folder, monkeypatch):
    """And not for that of scikit-learn, which sorts labels."""
    (folder / "schema.json").write_text(json.dumps({**SCHEMA, "out come": ["well", "ill"]}))
    fit = [*FULL, "--expansion", "linear", "--save", "m.pkl", "--force"]
    argv = ["intervals", TRUST, "m.pkl", "data.csv", "--target", "out come", "--epsilon", "1e6"]

    def check():
        assert "coefficients towards ill" in run(*fit)[1]
        said = strict(run(*fit, "--json")[1])["coefficients"]
        pipeline = pickle.loads((folder / "m.pkl").read_bytes()).best_estimator_
        assert pipeline[-1].classes_.tolist() == ["ill", "well"]
        assert said["ill"]["age"] == -pipeline[-1].coef_[0, 0]
        assert "linear prediction of ill, with" in run(*argv)[1]
        found = strict(run(*argv, "--json")[1])
        (effects,) = found["effects"].values()
        assert found["towards"] == "ill" and list(found["effects"]) == ["ill"]
        assert effects["age = 120"] == pytest.approx(found["coefficients"]["age"], abs=0.2)
        assert effects["age = 120"]["value"] == pytest.approx(said["ill"]["age"], abs=0.2)
        assert all(x["low"] <= x["value"] <= x["high"] for x in found["coefficients"].values())
        # categories beside their mean, and no codes
        shown = [effects[f"smoker = {name}"]["value"] for name in SCHEMA["smoker"]]
        assert abs(sum(shown)) < 1e-9 and not any("code" in name for name in effects)

    check()
    monkeypatch.setattr(printing, "_sign", lambda model: 1)
    with pytest.raises(AssertionError):
        check()


def test_intervals_are_paid_and_refused(run, folder, model):
    argv = ["intervals", TRUST, "model.pkl", "data.csv", "--target", "out come", "--epsilon"]
    run("ledger", "create", "l.ledger", "--epsilon", "9")
    code, _, err = run(*argv, "9", "--ledger", "l.ledger")
    assert (code, err) == (0, "") and PrivacyLedger(folder / "l.ledger").spent()[0] == 9.0
    code, out, err = run(*argv, "1", "--ledger", "l.ledger")
    assert (code, out) == (2, "") and "left" in err
    assert "--weights means nothing" in run(*argv, "1", "--weights", "age")[2]
    run(*DENSITY, "--epsilon", "1", "--save", "density.pkl")
    argv[2:4] = "density.pkl", "waits.csv"
    assert "not a density" in run(*argv, "1")[2]


def test_a_density_is_in_the_units_of_the_table(run, folder):
    _, out, _ = run(*DENSITY, "--epsilon", "1000", "--save", "model.pkl")
    assert "histogram of 4 x 4 cells" in out
    # counts with noise are what was released
    assert "any exact mean, range or count" in out and "solver" not in out
    assert run("export", TRUST, "model.pkl", "--output", "cells.csv")[:2] == (0, "")
    table = pd.read_csv(folder / "cells.csv")
    ends = ["age from", "age to", "bmi from", "bmi to"]
    assert list(table) == [*ends, "share", "count"] and len(table) == 16
    assert table.min().tolist()[:4] == [0, 30, 10, 22.5]
    assert table.max().tolist()[:4] == [90, 120, 47.5, 60]
    assert table["share"].sum() == pytest.approx(1)
    # what is printed at a record is the share of its cell, by area; the last one is outside
    (folder / "new.csv").write_text("age,bmi\n40,30\n100,50\n200,30\n")
    _, out, _ = run("predict", TRUST, "model.pkl", "new.csv")
    found = np.exp(pd.read_csv(io.StringIO(out))["log_density"])
    area = 30 * 12.5
    at = [
        table.query("`age from` == @age and `bmi from` == @bmi")["share"].item() / area
        for age, bmi in ((30, 22.5), (90, 47.5))
    ]
    assert found.tolist() == pytest.approx([*at, 0])
    # noise of scale 0.002, so counts are nearly those of the records
    records = pd.read_csv(folder / "waits.csv")
    exact, *_ = np.histogram2d(records["age"], records["bmi"], 4, [(0, 120), (10, 60)])
    assert np.abs(200 * table["share"].to_numpy() - exact.ravel()).max() < 0.5


def test_a_model_for_programs_without_dpselect(run, folder, model):
    new = pd.DataFrame(records(20, seed=1), columns=HEADER)[["age", "smoker", "bmi"]]
    expected = model.predict_proba(new)
    pytest.importorskip("onnx")
    sio = pytest.importorskip("skops.io")
    for name in ("plain.skops", "m.onnx"):
        assert run("export", TRUST, "model.pkl", "--output", name)[:2] == (0, "")
    plain = sio.load(folder / "plain.skops", trusted=TRUSTED_TYPES)
    assert type(plain).__module__.startswith("sklearn")
    np.testing.assert_allclose(plain.predict_proba(new), expected, rtol=1e-9)
    assert (folder / "m.onnx").read_bytes() == to_onnx(model).SerializeToString()


@pytest.mark.parametrize("name, package", [("plain.skops", "skops"), ("m.onnx", "onnx")])
def test_what_other_programs_cannot_tell_apart_is_said(run, folder, name, package):
    pytest.importorskip(package)
    (folder / "data.csv").write_text((folder / "data.csv").read_text().replace(",no,", ",None,"))
    schema = {**SCHEMA, "smoker": ["None", *SCHEMA["smoker"]]}
    (folder / "schema.json").write_text(json.dumps(schema))
    assert run(*FULL, "--save", "model.pkl")[0] == 0
    code, out, err = run("export", TRUST, "model.pkl", "--output", name)
    assert (code, out) == (2, "") and "category 'None', which scikit-learn and ONNX cannot" in err
    assert not (folder / name).exists()


def test_figures_and_what_they_cost(run, folder, model):
    assert run("ledger", "create", "l.ledger", "--epsilon", "3")[0] == 0
    argv = ["evaluate", TRUST, "model.pkl", "data.csv", "--target", "out come", "--epsilon", "1"]
    code, out, err = run(*argv, "--ledger", "l.ledger", "--report", "said.md")
    assert (code, err) == (0, "") and "accuracy" in out and "roc_auc" in out
    assert "none of these records trained the model" in out
    assert "How good it is" in (folder / "said.md").read_text()
    assert PrivacyLedger(folder / "l.ledger").spent() == (1.0, 0.0)
    code, out, _ = run(*argv, "--json")
    said = strict(out)
    assert code == 0 and said["records"] == 200 and said["privacy"]["epsilon"] == 1.0
    assert {"value", "low", "high"} == set(said["figures"]["accuracy"])
    assert SECRET not in out


@pytest.mark.parametrize("classes", [[0, 1], [False, True], [0.0, 1.0]])
def test_figures_of_a_model_that_was_made_in_python(run, folder, classes):
    rows = pd.read_csv(folder / "waits.csv").assign(late=np.array(classes)[np.arange(200) % 2])
    rows["age"] = 30 + 60 * (np.arange(200) % 2)  # which tells the classes apart
    rows.to_csv(folder / "late.csv", index=False)
    model = DPLogisticRegression(classes=classes, alpha=0.01)
    search = StabilityGridSearchCV(
        tabular_pipeline(PublicSchema({"age": (0, 120)}), model), {"model__alpha": [0.01]}, epsilon=1e4
    ).fit(rows[["age"]], rows["late"].to_numpy())
    (folder / "late.pkl").write_bytes(pickle.dumps(search))
    argv = ["evaluate", TRUST, "late.pkl", "late.csv", "--target", "late", "--epsilon", "1e4", "--json"]
    code, out, err = run(*argv)
    assert (code, err) == (0, "") and strict(out)["figures"]["accuracy"]["low"] > 0.9


@pytest.mark.parametrize(
    "given, target, figures",
    [
        (WAITING_TIME, ["--target", "wait"], ["r2", "rmse", "mae", "bias"]),
        ([*WAITING_TIME, "--task", "counts"], ["--target", "wait"], ["r2", "rmse", "mae", "bias"]),
        (WITHOUT_TARGET, [], ["integrated_squared_error", "log_gain", "zero_density"]),
    ],
)
def test_figures_of_other_models(run, folder, given, target, figures):
    # one that is outside of the bounds, for both
    rows = pd.read_csv(folder / "waits.csv").assign(person=np.arange(200) // 2)
    rows.loc[0, "wait"], rows.loc[1, "age"] = 1000, 400
    rows.to_csv(folder / "held.csv", index=False)
    given = ["1e6" if word == "2" else word for word in given]  # nothing by chance
    assert run("fit", "waits.csv", *given, "--save", "m.pkl")[0] == 0
    argv = ["evaluate", TRUST, "m.pkl", "held.csv", *target, "--epsilon", "1e4", "--report", "said.md"]
    argv.append("--force")
    for more, unit, n in (([], "records", 200), (["--person", "person"], "persons", 100)):
        code, out, err = run(*argv, *more, "--json")
        assert (code, err) == (0, "")
        said = strict(out)
        assert list(said["figures"]) == figures and said[unit] == n
        assert figures[0].replace("_", "\\_") in (folder / "said.md").read_text()
    if target:
        # errors of what is between 0 and 6, by a model that has hardly anything to learn from
        error = said["figures"]["mae"]
        assert 1 < error["low"] < error["high"] < 4
    code, out, _ = run(*argv)
    assert code == 0 and out.startswith("Evaluation on 200 records")


def test_the_statement_of_a_model(run, folder, model):
    code, out, err = run("report", TRUST, "model.pkl")
    assert (code, err) == (0, "") and out.rstrip("\n") == privacy_report(model).to_markdown()
    assert run("report", TRUST, "model.pkl", "--output", "said.html")[:2] == (0, "")
    assert (folder / "said.html").read_text().startswith("<!DOCTYPE html>")
    _, out, _ = run("report", TRUST, "model.pkl", "--about", "Visits of 2029")
    assert "The records: Visits of 2029." in out


def test_help_and_version(run, capsys):
    said = {"--help": "demonstration", "fit --help": "--schema", "--version": "0."}
    for argv, says in said.items():
        with pytest.raises(SystemExit) as stop:
            run(*argv.split())
        assert stop.value.code == 0
        assert says in capsys.readouterr().out


def test_the_model_is_a_search_that_scikit_learn_knows(model):
    assert isinstance(model, StabilityGridSearchCV)
    assert model.best_estimator_.feature_names_in_.tolist() == ["age", "smoker", "bmi"]
    assert isinstance(model.best_estimator_[0].schema_, PublicSchema)

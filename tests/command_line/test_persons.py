"""``--person COLUMN``: protected are persons with any number of rows."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from dpselect import PrivacyLedger

from .conftest import FULL, HEADER, SECRET, TRUST, as_csv, records, strict

PERSON = "replace all rows of one person"
N = 80


@pytest.fixture
def visits(folder):
    """The records of 80 persons, who have ids of text."""
    ids = np.random.default_rng(1).permutation(np.append(np.arange(N), np.arange(120) % 7))
    rows = [[*row, f"id{number}"] for row, number in zip(records(), ids)]
    (folder / "data.csv").write_text(as_csv(rows, [*HEADER, "patient"]))
    return rows


def test_a_fit_and_its_figures_are_of_persons(run, folder, visits):
    assert run("ledger", "create", "budget", "--epsilon", "3", "--persons")[0] == 0
    spent = ["--ledger", "budget"]
    code, out, err = run(*FULL, "--person", "patient", "--save", "model.pkl", *spent)
    assert (code, err) == (0, "") and PERSON in out and f"Plan for {N} persons" in out
    model = pickle.loads((folder / "model.pkl").read_bytes())
    assert model.privacy_.adjacency == PERSON
    assert "patient" not in model.best_estimator_[0].schema_.columns
    argv = ["evaluate", TRUST, "model.pkl", "data.csv", "--target", "out come", "--epsilon", "1", *spent]
    found = strict(run(*argv, "--person", "patient", "--json")[1])
    assert found["persons"] == N and found["privacy"]["adjacency"] == PERSON
    assert PrivacyLedger(folder / "budget").spent()[0] == 3.0
    # predictions read no id
    assert run("predict", TRUST, "model.pkl", "data.csv")[0] == 0
    code, out, _ = run("report", TRUST, "model.pkl")
    assert "The number of persons is public" in out


def test_parquet_and_a_plan(run, folder, visits):
    frame = pd.DataFrame(visits, columns=[*HEADER, "patient"])
    frame = frame.assign(patient=frame["patient"].str[2:].astype(int), age=frame["age"].astype(float))
    frame.to_parquet(folder / "data.parquet")
    argv = [*FULL[2:], "--person", "patient"]
    found = strict(run("fit", "data.parquet", *argv, "--json")[1])
    assert found["privacy"]["adjacency"] == PERSON
    assert strict(run("plan", *argv, "--records", str(N), "--json")[1]) == found["plan"]
    code, out, err = run(*FULL, "--person", "patient", "--excess-risk", "5")
    assert (code, err) == (0, "") and PERSON in out


@pytest.mark.parametrize("rows", [None, 1, 4])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_losses_of_rows_are_counted_for_persons(run, folder, rows, delta):
    run("ledger", "create", "budget", "--epsilon", "3", "--delta", "0.01", "--persons")
    more = [] if rows is None else ["--rows-per-person", str(rows)]
    spend = ["ledger", "spend", "budget", "--epsilon", "0.5", "--delta", str(delta), "--label", "counts"]
    assert run(*spend, *more)[0] == 0
    # what the library itself counts, of which a row's is less
    own = PrivacyLedger(folder / "own", epsilon=3, delta=0.01, adjacency=PERSON, rows_per_person=rows)
    own.spend(0.5, delta, "counts", adjacency=PERSON if rows is None else "replace one record")
    (entry,), (expected,) = PrivacyLedger(folder / "budget").history(), own.history()
    assert (entry.statement, entry.label) == (expected.statement, expected.label)
    assert PrivacyLedger(folder / "budget").spent() == own.spent()
    assert own.spent() > (0.5, delta) or (rows or 1) == 1


@pytest.mark.parametrize(
    "argv, says",
    [
        ([*FULL, "--person", "age"], "The column 'age' (--person) says whose row it is"),
        ([*FULL, "--person", "out come"], "The column 'out come' (--person)"),
        ([*FULL, "--person", "nobody"], "it lacks the column 'nobody'"),
        ([*FULL, "--person", "gaps"], "its column 'gaps' names the persons and has missing values"),
        ([*FULL, "--person", "few"], "has fewer than 5 persons"),
        ([*FULL, "--person", "patient", "--drop", "patient"], "the schema lacks its column"),
        ([*FULL, "--person", "patient", "--ledger", "rows"], "made with --persons go together"),
        ([*FULL, "--ledger", "persons"], "made with --persons go together"),
        (
            ["ledger", "spend", "rows", "--epsilon", "1", "--label", "a", "--rows-per-person", "2"],
            "means nothing to a budget of records",
        ),
        (
            ["ledger", "spend", "persons", "--epsilon", "1", "--label", "a", "--rows-per-person", "0"],
            "--rows-per-person must be",
        ),
    ],
)
def test_refusals(refused, folder, argv, says):
    rows = [[*row, f"id{i % N}", "" if i == 3 else i, i % 2] for i, row in enumerate(records())]
    drop = [name for name in ("gaps", "few", "patient") if name not in argv]
    (folder / "data.csv").write_text(as_csv(rows, [*HEADER, "patient", "gaps", "few"]))
    PrivacyLedger(folder / "rows", epsilon=9.0)
    PrivacyLedger(folder / "persons", epsilon=9.0, adjacency=PERSON)
    if argv[0] == "fit" and "--drop" not in argv:
        argv = [*argv, "--drop", *drop]
    message = refused(*argv)
    assert says in message and SECRET not in message and "id3" not in message
    for name in ("rows", "persons"):
        assert json.loads(PrivacyLedger(folder / name).to_json())["entries"] == []

"""``dpselect ledger``, and releases that a ledger pays for."""

import json

import pytest

from dpselect import PrivacyLedger, PrivacyLoss
from dpselect.accounting.filters import COMPOSITIONS

from .conftest import FULL, strict


def test_a_ledger_is_made_and_shown(run, tmp_path):
    code, out, err = run("ledger", "create", "patients.ledger", "--epsilon", "3", "--delta", "1e-6")
    assert (code, err) == (0, "") and "Nothing was spent yet." in out
    assert out.endswith("left:  epsilon 3, delta 1e-06\n")
    ledger = PrivacyLedger(tmp_path / "patients.ledger")
    ledger.spend(0.5, 1e-7, label="ages,\nby hand")
    ledger.reserve(1.0, label="a path").commit(PrivacyLoss(0.25, kind="ex-post", seeded=True))
    ledger.reserve(1.0, label="a crash")
    code, out, err = run("ledger", "show", "patients.ledger")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[3][4:] == ["0.5", "1e-07", "differential", "privacy", "ages,\\nby", "hand"]
    assert lines[4][4:] == ["0.25", "0", "1", "ex-post,", "seeded", "a", "path"]
    assert lines[5][4:] == ["1", "0", "uncommitted", "a", "crash"]
    assert "spent: epsilon 1.75 of 3, delta 1e-07 of 1e-06\n" in out
    code, out, _ = run("ledger", "show", "patients.ledger", "--json")
    assert code == 0 and json.loads(out) == json.loads(ledger.to_json())


@pytest.mark.parametrize("argv, says", [
    ([], "required: ACTION"),
    (["records.ledger"], "invalid choice: 'records.ledger'"),
    (["show"], "required: LEDGER"),
    (["show", "none"], "no ledger at 'none'"),
    (["show", "data.csv"], "no ledger"),
    (["create", "new"], "required: --epsilon"),
    (["create", "data.csv", "--epsilon", "1"], "a budget that can change protects nobody"),
    (["create", "nowhere/new", "--epsilon", "1"], "The folder of 'nowhere/new' does not exist"),
    (["create", "new", "--epsilon", "0"], "--epsilon must be"),
    (["create", "new", "--epsilon", "1", "--delta", "1"], "--delta must be"),
    (["create", "new", "--epsilon", "1", "--delta", "much"], "--delta must be"),
    (["create", "new", "--epsilon", "1", "--composition", "renyi"], "renyi needs a --delta above 0"),
    (["create", "new", "--epsilon", "1", "--composition", "zcdp"], "invalid choice: 'zcdp'"),
    (["spend", "none", "--epsilon", "1", "--label", "counts"], "no ledger at 'none'"),
    (["spend", "none", "--epsilon", "1"], "required: --label"),
])  # fmt: skip
def test_refusals(refused, folder, argv, says):
    before = sorted(file.name for file in folder.iterdir())
    assert says in refused("ledger", *argv)
    assert sorted(file.name for file in folder.iterdir()) == before


def test_the_report_of_a_ledger(run, refused, tmp_path):
    ledger = PrivacyLedger(tmp_path / "patients.ledger", epsilon=3.0)
    ledger.spend(0.5, label="ages, by hand")
    code, out, err = run("report", "patients.ledger", "--about", "Admissions")
    assert (code, err) == (0, "") and "| ages, by hand | 0.5 |" in out and "Admissions" in out
    code, out, _ = run("report", "patients.ledger", "--output", "year.json")
    assert code == 0 and json.loads((tmp_path / "year.json").read_text())["privacy"]["epsilon"] == 0.5
    assert "leave it out" in refused("report", "patients.ledger", "--ledger", "patients.ledger")


@pytest.mark.parametrize("composition", [None, *COMPOSITIONS])
def test_losses_add_up_as_the_ledger_was_made_for(run, tmp_path, composition):
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    how = [] if composition is None else ["--composition", composition]
    code, out, err = run("ledger", "create", "l.ledger", *budget, *how)
    assert (code, err) == (0, "") and ("Renyi" in out) == (composition == "renyi")
    assert PrivacyLedger(tmp_path / "l.ledger").composition == (composition or "sum")


def test_a_budget_does_not_change(run):
    assert run("ledger", "create", "records.ledger", "--epsilon", "1")[0] == 0
    code, _, err = run("ledger", "create", "records.ledger", "--epsilon", "2")
    assert code == 2 and "a budget that can change protects nobody" in err


def test_releases_of_others_are_counted(run, folder):
    assert run("ledger", "create", "records.ledger", "--epsilon", "1")[0] == 0
    spend = ["ledger", "spend", "records.ledger", "--epsilon", "0.75", "--label", "counts by hand"]
    code, out, err = run(*spend)
    assert (code, err) == (0, "") and "counts by hand" in out and "left:  epsilon 0.25" in out
    code, out, err = run(*spend)
    assert (code, out) == (2, "") and "left" in err and len(err.splitlines()) == 1
    assert PrivacyLedger(folder / "records.ledger").spent() == (0.75, 0.0)


def test_a_release_is_paid_for_or_refused(run, folder):
    assert run("ledger", "create", "records.ledger", "--epsilon", "2.5")[0] == 0
    release = [*FULL, "--json", "--ledger", "records.ledger"]
    code, out, _ = run(*release)
    assert code == 0 and strict(out)["privacy"]["epsilon"] == 2.0
    ledger = PrivacyLedger(folder / "records.ledger")
    assert ledger.spent() == (2.0, 0.0)
    code, out, err = run(*release)
    assert (code, out) == (2, "") and "epsilon=0.5" in err and "unexpected" not in err
    assert ledger.spent() == (2.0, 0.0)


def test_every_entry_says_who_and_what_for(run, folder, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    assert run("ledger", "create", "l.ledger", "--epsilon", "5")[0] == 0
    assert run(*FULL, "--ledger", "l.ledger", "--label", "March\nmodel", "--json")[0] == 0
    (entry,) = PrivacyLedger(folder / "l.ledger").history()
    assert (entry.user, entry.label) == ("ada", "March\nmodel: StabilityGridSearchCV")
    out = run("ledger", "show", "l.ledger")[1]
    assert "  ada  " in out and "March\\nmodel: StabilityGridSearchCV" in out

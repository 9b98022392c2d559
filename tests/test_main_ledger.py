"""``python -m dpselect ledger``, and releases that a ledger pays for."""

import json

import numpy as np
import pytest

from dpselect import PrivacyLedger, PrivacyLoss
from dpselect.__main__ import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).uniform(size=200)
    rows = [f"{value:.6f},{int(value > 0.5)}" for value in x]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *rows]))

    def run(*argv):
        code = main(list(argv))
        return code, *capsys.readouterr()

    return run


def test_a_ledger_is_made_and_shown(run, tmp_path):
    code, out, err = run("ledger", "patients.ledger", "--epsilon", "3", "--delta", "1e-6")
    assert (code, err) == (0, "") and "Nothing was spent yet." in out
    assert out.endswith("left:  epsilon 3, delta 1e-06\n")
    ledger = PrivacyLedger(tmp_path / "patients.ledger")
    ledger.spend(0.5, 1e-7, label="ages,\nby hand")
    ledger.reserve(1.0, label="a path").commit(PrivacyLoss(0.25, kind="ex-post", seeded=True))
    ledger.reserve(1.0, label="a crash")
    code, out, err = run("ledger", "patients.ledger")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[3][3:] == ["0.5", "1e-07", "differential", "privacy", "ages,\\nby", "hand"]
    assert lines[4][3:] == ["0.25", "0", "1", "ex-post,", "seeded", "a", "path"]
    assert lines[5][3:] == ["1", "0", "uncommitted", "a", "crash"]
    assert "spent: epsilon 1.75 of 3, delta 1e-07 of 1e-06\n" in out
    code, out, _ = run("ledger", "patients.ledger", "--json")
    assert code == 0 and json.loads(out) == json.loads(ledger.to_json())


@pytest.mark.parametrize("argv, says", [
    (["ledger"], "required: FILE"),
    (["ledger", "none"], "no ledger at 'none'"),
    (["ledger", "data.csv"], "no ledger"),
    (["ledger", "data.csv", "--epsilon", "1"], "no ledger"),
    (["ledger", "nowhere/new", "--epsilon", "1"], "nowhere/new"),
    (["ledger", "new", "--epsilon", "0"], "--epsilon must be"),
    (["ledger", "new", "--epsilon", "1", "--delta", "1"], "--delta must be"),
    (["ledger", "new", "--epsilon", "1", "--delta", "much"], "--delta must be"),
    (["data.csv", "--target", "y", "--epsilon", "1", "--ledger", "none"], "no ledger at 'none'"),
])  # fmt: skip
def test_refusals(run, tmp_path, argv, says):
    code, out, err = run(*argv)
    assert (code, out) == (2, "") and len(err.splitlines()) == 1
    assert err.startswith("error: ") and says in err and "unexpected" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]


def test_a_budget_does_not_change(run):
    assert run("ledger", "records.ledger", "--epsilon", "1")[0] == 0
    code, _, err = run("ledger", "records.ledger", "--epsilon", "2")
    assert code == 2 and "a budget that can change protects nobody" in err


def test_a_release_is_paid_for_or_refused(run, tmp_path):
    run("ledger", "records.ledger", "--epsilon", "1.5")
    release = ["data.csv", "--target", "y", "--epsilon", "1", "--json", "--ledger", "records.ledger"]
    code, out, _ = run(*release)
    assert code == 0 and json.loads(out)["privacy"]["epsilon"] == 1.0
    ledger = PrivacyLedger(tmp_path / "records.ledger")
    assert ledger.spent() == (1.0, 0.0)
    code, out, err = run(*release)
    assert (code, out) == (2, "") and "epsilon=0.5" in err and "unexpected" not in err
    assert ledger.spent() == (1.0, 0.0)

"""A folder with the files of a person who does everything right, and the command in it."""

import csv
import io
import json

import numpy as np
import pytest

from dpselect import AccuracyFirstSearchCV, StabilityGridSearchCV
from dpselect.__main__ import main

SMOKES = ["yes", "no", "never, ever"]
SCHEMA = {"age": [0, 120], "smoker": SMOKES, "bmi": [10, 60], "out come": ["ill", "well"]}
HEADER = ["age", "out come", "smoker", "bmi"]
# a value that no message and no file may hold
SECRET = "71.8281828"
FULL = ["fit", "data.csv", "--target", "out come", "--epsilon", "2", "--schema", "schema.json"]
# that the pickles of these tests are the command's own
TRUST = "--trust-pickle"
WAITING_TIME = ["--target", "wait", "--epsilon", "2", "--schema", "waits.json"]


def records(n=200, seed=0):
    """Return rows for HEADER; the first one holds SECRET."""
    random = np.random.default_rng(seed)
    age, bmi = random.uniform(18, 90, n).round(3), random.uniform(15, 45, n).round(3)
    smoker = random.choice(SMOKES, n)
    ill = (age - 55) / 20 + (smoker == "yes") * 2 - 1 > 0
    rows = [list(row) for row in zip(age, np.where(ill, "ill", "well"), smoker, bmi)]
    rows[0][0] = SECRET
    return rows


def as_csv(rows, header=HEADER, **params):
    stream = io.StringIO()
    csv.writer(stream, **params).writerows([header, *rows])
    return stream.getvalue()


def strict(text):
    """Parse JSON, and refuse NaN and Infinity, which are not JSON."""

    def refuse(token):
        raise AssertionError(token)

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.csv").write_text(as_csv(records()))
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    waits = [[row[0], i % 7, row[3]] for i, row in enumerate(records())]
    (tmp_path / "waits.csv").write_text(as_csv(waits, ["age", "wait", "bmi"]))
    (tmp_path / "waits.json").write_text(json.dumps({"age": [0, 120], "wait": [0, 10], "bmi": [10, 60]}))
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

    for kind in (StabilityGridSearchCV, AccuracyFirstSearchCV):
        monkeypatch.setattr(kind, "fit", fit)

    def refused(*argv):
        code, out, err = run(*argv)
        assert (code, out) == (2, ""), err
        assert len(err.splitlines()) == 1 and err.startswith("error: ") and err.endswith(".\n")
        assert "Traceback" not in err and "unexpected" not in err and SECRET not in err
        return err

    return refused

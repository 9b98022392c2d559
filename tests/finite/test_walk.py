"""No entry point releases anything of records that are not finite, whatever is switched on or off."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpselect
from dpselect import mechanisms, metrics, preprocessing

from .walk import ALL, ENTRIES, LABELS, SWITCHES, N, X, cells, outcome, switched, walk

# what takes records, or numbers that depend on them, and is not walked
OTHERS = {
    "CalibratedModel": "its fit reads nothing, and it is made of an evaluation",
    "Ladder": "a function of the caller reads its records, and each counts for a number in [0, 1]",
    "RowChunks": "it reads nothing before a fit does",
    "attack_certificate": "attacks release nothing",
    "check_pipeline_privacy": "it takes dummy rows",
    "coef_interval_forecast": "it takes invented records, and releases nothing",
    "schema_template": "it says that it shows records",
    "margins": "what it returns is exact and is not released",
    **dict.fromkeys(mechanisms.__all__, "its own tests give it what is not finite"),
}


def reads_records(thing):
    """Tell whether a public name takes records: scores do, but are exact and never released."""
    if inspect.isclass(thing):
        if issubclass(thing, metrics.Score):
            return False
        methods = ("fit", "transform", "query")
        return any(hasattr(thing, name) for name in methods) or thing is dpselect.RowChunks
    if not inspect.isfunction(thing):
        return False
    return not {"X", "scores", "values"}.isdisjoint(inspect.signature(thing).parameters)


def without_a_case(things):
    walked = {entry.public for entry in ENTRIES.values()}
    return [
        name
        for name, thing in things.items()
        if reads_records(thing) and name not in walked and name not in OTHERS
    ]


def test_every_public_name_that_takes_records_is_walked():
    places = (dpselect, preprocessing, mechanisms, metrics, dpselect.audit, dpselect.evaluation)
    names = {name: getattr(place, name) for place in places for name in place.__all__}
    assert without_a_case(names) == []
    assert {entry.public for entry in ENTRIES.values()} <= set(names) and set(OTHERS) <= set(names)
    # one that were new
    names |= {"DPNew": dpselect.DPRidge, "new": dpselect.evaluate}
    assert without_a_case(names) == ["DPNew", "new"]


@pytest.mark.parametrize(
    "switch",
    [pytest.param(name, marks=() if name in ("none", "all") else pytest.mark.slow) for name in SWITCHES],
)
def test_records_that_are_finite_are_taken(switch):
    with switched(switch):
        found = {name: outcome(entry, None, None, entry.forms[0]) for name, entry in ENTRIES.items()}
    assert {name: said for name, said in found.items() if said != "released"} == {}


@pytest.mark.slow
def test_finite_records_are_taken_in_every_form():
    with switched("none"):
        found = {
            (name, form): outcome(entry, None, None, form)
            for name, entry in ENTRIES.items()
            for form in entry.forms
        }
    assert set(found.values()) == {"released"} and {form for _, form in found} == set(ALL)


@pytest.mark.parametrize(
    "switch", [pytest.param(name, marks=() if name == "all" else pytest.mark.slow) for name in SWITCHES]
)
def test_the_others_are_refused(switch):
    with switched(switch):
        n, released = walk(few=True)
    assert released == [] and n > 90


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["none", "all"])
def test_the_others_are_refused_in_every_form(switch):
    with switched(switch):
        n, released = walk()
    assert released == [] and n > 900


def in_another_process(*arguments, **environment):
    place = Path(dpselect.__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-m", "tests.finite.walk", *arguments],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "PYTHONPATH": f"{place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            **environment,
        },
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.slow
def test_the_environment_decides_nothing():
    found = in_another_process(
        "few",
        SKLEARN_ASSUME_FINITE="1",
        PYTHONWARNINGS="ignore",
        SKLEARN_WORKING_MEMORY="1",
    )
    assert found["assume_finite"] and found["docs"]
    assert found["released"] == [] and found["n"] > 90


@pytest.mark.slow
def test_no_variable_of_the_environment_decides():
    """Without statements that only assert, and without docstrings."""
    found = in_another_process(
        PYTHONOPTIMIZE="2",
        PYTHONWARNINGS="error::RuntimeWarning",
        SCIPY_ARRAY_API="1",
        POLARS_MAX_THREADS="1",
    )
    assert found["docs"] is None
    assert found["released"] == [] and found["n"] > 900


def without_the_check(monkeypatch, *names):
    """Take a check out of every module that has it."""
    for module in list(sys.modules.values()):
        for name in names:
            if module.__name__.startswith("dpselect.") and hasattr(module, name):
                monkeypatch.setattr(module, name, lambda released, *args, **kwargs: released)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("taken", "least"),
    [
        # the gate is still there: what is left are answers that are finite, and transformed rows
        (["check_finite"], 5),
        (["check_finite", "all_finite"], 12),
    ],
)
def test_without_its_own_check_the_walk_sees_releases(monkeypatch, taken, least):
    without_the_check(monkeypatch, *taken)
    with switched("assume_finite"):
        found = [
            outcome(ENTRIES[name], place, value, form)
            for name, place, value, form in cells(few=True)
            if form == "array"
        ]
    assert found.count("released") >= least


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_functions_of_the_caller_say_counts_for_at_most_one_record(value):
    spoiled, labels = X.copy(), LABELS.copy()
    spoiled[7, 1] = labels[7] = value
    answers = []
    with switched("all"):
        for rows, y in ((X, LABELS), (spoiled, labels)):
            ladder = dpselect.Ladder(step=1e-6).fit(rows, y)
            answers.append(ladder.query(lambda rows, y: np.abs(rows[:, 1] - y)))
    assert np.isfinite(answers).all() and abs(answers[0] - answers[1]) <= 1 / N + 2e-6

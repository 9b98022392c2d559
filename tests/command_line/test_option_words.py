"""What the command prints names its options, and no parameters of Python."""

import json
import re

import pytest

from dpselect._command_line import printing
from dpselect._command_line.option_words import OPTIONS, in_options

# a parameter with its value, one of a step, or an attribute
OF_PYTHON = re.compile(r"\b[a-z]\w*=(?!=)|\b\w+__\w+|\b[a-z]\w*_(?!\w)|\bn_samples\b|max_sample_weight")
SCHEMA = {
    "age": [0, 120],
    "zip": [str(i) for i in range(60)],
    "bmi": [10, 60],
    "base_rate": [0, 1],
    "visits": [0, 50],
    "out come": ["ill", "well"],
}
PLAN = ["plan", "--schema", "words.json", "--records", "500", "--epsilon", "0.5"]
WELL = ["--target", "out come"]
OF_PLANS = {
    "columns": [*WELL, "--columns", "first"],
    "delta": [*WELL, "--delta", "1e-6", "--alpha", "0.1", "1"],
    "pairs": [*WELL, "--pairs", "age", "bmi"],
    "ranges": [*WELL, "--learn-ranges", "--evaluation", "0.2"],
    "weights": [*WELL, "--weights", "often", "--max-weight", "5"],
    "rare": [*WELL, "--base-rate", "0.02", "--alpha", "0.1", "1"],
    "persons": [*WELL, "--person", "who"],
    "accuracy": [*WELL, "--excess-risk", "0.05", "--alpha", "0.1"],
    "number": ["--target", "visits", "--lines"],
    "counts": ["--target", "visits", "--task", "counts"],
    "classes": ["--target", "zip"],
}


@pytest.mark.parametrize("name", OF_PLANS)
def test_plans_name_options(run, folder, monkeypatch, name):
    (folder / "words.json").write_text(json.dumps(SCHEMA))
    code, out, err = run(*PLAN, *OF_PLANS[name])
    assert (code, err) == (0, "")
    assert OF_PYTHON.findall(out.replace("'base_rate'", "")) == []
    assert name != "persons" or "persons or more" in out
    # the library's own words are seen
    monkeypatch.setattr(printing, "in_options", lambda line, unit: line)
    assert OF_PYTHON.findall(run(*PLAN, *OF_PLANS[name])[1])


def test_refusals_of_a_plan_name_options(run, folder):
    (folder / "words.json").write_text(json.dumps(SCHEMA))
    code, out, err = run(*PLAN, *WELL, "--base-rate", "2")
    assert code and "--base-rate" in err and OF_PYTHON.findall(err) == []


def test_options_are_those_of_the_command(run, capsys):
    with pytest.raises(SystemExit):
        run("plan", "--help")
    text = capsys.readouterr().out
    with pytest.raises(SystemExit):
        run("fit", "--help")
    text += capsys.readouterr().out
    assert [option for option in OPTIONS.values() if not re.search(rf"{option}\b", text)] == []


def test_names_of_columns_stay_as_they_are():
    said = "Least is known of 'base_rate', by base_rate=0.2 and n_samples >= 40."
    assert in_options(said, "persons") == (
        "Least is known of 'base_rate', by --base-rate 0.2 and 40 persons or more."
    )

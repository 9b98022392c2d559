"""The commands of the page "The command line", as they are printed there."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PAGE = (Path(__file__).parents[2] / "doc" / "command_line.rst").read_text()


@pytest.mark.slow
def test_every_command_of_the_page_runs(run, folder):
    rng, n = np.random.default_rng(0), 1200
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 91, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, 3e4),
            "work": rng.choice(["private", "public", "none"], n),
            "ill": rng.choice(["no", "yes"], n),
        }
    )
    table.to_csv("data.csv", index=False)
    for name in ("visits.csv", "held_out.csv"):
        table.assign(patient=rng.integers(100, size=n)).to_csv(name, index=False)
    table.drop(columns="ill").to_csv("others.csv", index=False)
    table.to_csv("umfrage.csv", sep=";", decimal=",", encoding="cp1252")
    (folder / "schema.json").unlink()
    commands = re.findall(r"^    \$ dpselect (.*)$", PAGE, re.MULTILINE)
    assert len({command.split()[0] for command in commands}) == 9
    for command in commands:
        code, _, err = run(*shlex.split(command))
        assert code == 0, (command, err)
        if "--output schema.json" in command:  # and now it is filled in
            (filled,) = re.findall(r"code-block:: json\n\n((?: {4}.*\n)+)", PAGE)
            assert json.loads(filled).keys() == json.loads((folder / "schema.json").read_text()).keys()
            (folder / "schema.json").write_text(filled)
    assert len(pd.read_csv("predictions.csv")) == n
    assert json.loads((folder / "statement.json").read_text())


@pytest.mark.slow
def test_python_runs_no_file_beside_the_records_if_it_is_told_so(folder):
    assert "python -P -m dpselect" in PAGE
    for name in ("numpy", "pandas", "skops", "csv", "sklearn"):
        (folder / f"{name}.py").write_text("open('ran', 'w')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = ["-m", "dpselect", "schema", "data.csv"]
    said = subprocess.run(
        [sys.executable, "-P", *argv], capture_output=True, text=True, cwd=folder, env=environment
    )
    assert said.returncode == 0 and "out come" in said.stdout and not (folder / "ran").exists()
    subprocess.run([sys.executable, *argv], capture_output=True, cwd=folder, env=environment)
    assert (folder / "ran").exists()

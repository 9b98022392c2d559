"""The commands of the page "The command line", as they are printed there."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd

PAGE = (Path(__file__).parents[2] / "doc" / "command_line.rst").read_text()


def test_every_command_of_the_page_runs(run, folder):
    rng, n = np.random.default_rng(0), 400
    table = pd.DataFrame({
        "age": rng.integers(18, 91, n), "income": np.where(rng.random(n) < 0.1, np.nan, 3e4),
        "work": rng.choice(["private", "public", "none"], n), "ill": rng.choice(["no", "yes"], n),
    })
    table.to_csv("data.csv", index=False)
    for name in ("visits.csv", "held_out.csv"):
        table.assign(patient=rng.integers(100, size=n)).to_csv(name, index=False)
    table.drop(columns="ill").to_csv("others.csv", index=False)
    (folder / "schema.json").unlink()
    commands = re.findall(r"^    \$ dpselect (.*)$", PAGE, re.MULTILINE)
    assert len({command.split()[0] for command in commands}) == 8
    for command in commands:
        code, _, err = run(*shlex.split(command))
        assert code == 0, (command, err)
        if "--output schema.json" in command:  # and now it is filled in
            (filled,) = re.findall(r"code-block:: json\n\n((?: {4}.*\n)+)", PAGE)
            assert json.loads(filled).keys() == json.loads((folder / "schema.json").read_text()).keys()
            (folder / "schema.json").write_text(filled)
    assert len(pd.read_csv("predictions.csv")) == n
    assert json.loads((folder / "statement.json").read_text())

"""What is said twice about the package agrees."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import dpselect

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def bounds(requirements, sign):
    """Lower bounds such as (2, 2), without zeros at the end, by name."""
    found = {}
    for line in requirements:
        match = re.fullmatch(rf"([\w-]+)(?:\[[\w,]+\])?{sign}([\d.]+)", line)
        if match:
            found[match[1]] = tuple(map(int, re.sub(r"(\.0)+$", "", match[2]).split(".")))
    return found


def test_the_oldest_versions_are_the_lower_bounds():
    pinned = bounds((ROOT / "tests" / "oldest.txt").read_text().splitlines(), "==")
    assert pinned == bounds(PROJECT["dependencies"] + EXTRAS["test"], ">=")


def test_tests_have_what_users_may_install():
    for extra in EXTRAS.keys() - {"clients", "doc", "test"}:  # with environments of their own
        assert set(EXTRAS[extra]) <= set(EXTRAS["test"])


def test_citation_names_this_version():
    assert f"\nversion: {dpselect.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_readme_says_what_is_supported_and_links_files_that_exist():
    text = (ROOT / "README.rst").read_text()
    versions = [line.split()[-1] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert f"badge/python-{'_|_'.join(versions)}-blue" in text
    assert f"badge/licence-{PROJECT['license'].replace('-', '--')}-blue" in text
    targets = re.findall(r"<([^>]+)>`__|:target: (\S+)|(?:image|figure):: (?!http)(\S+)", text)
    files = {name for names in targets for name in names if name}
    assert len(files) > 15
    assert not [name for name in files if not (ROOT / name).exists()]


STUBS = {
    # makes an environment, or runs a command
    "python3": """#!/bin/sh
mkdir -p "$3/bin" && echo 'PATH="$STUBS:$PATH"' > "$3/bin/activate"
""",
    "python": """#!/bin/sh
echo "ran: $*"
case "$*" in *"$FAILS"*) exit 3 ;; esac
""",
}


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="the distribution has no .ci")
@pytest.mark.parametrize("fails", ["nothing", "sphinx", "-m slow", "ruff check"])
def test_runs_of_all_checks_leave_nothing_behind_and_tell_what_failed(tmp_path, fails):
    stubs, left = tmp_path / "stubs", tmp_path / "left"
    stubs.mkdir(), left.mkdir()
    for name, text in {**STUBS, "python3.11": STUBS["python3"]}.items():
        (stubs / name).write_text(text)
        (stubs / name).chmod(0o755)
    environment = {
        **{"PATH": f"{stubs}:{os.environ['PATH']}", "STUBS": str(stubs)},
        **{"TMPDIR": str(left), "FAILS": fails},
    }
    run = subprocess.run(
        ["bash", ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False
    )
    assert (run.returncode == 0) == (fails == "nothing"), run.stderr
    # what ran in the background is printed
    if fails != "-m slow":  # which may end before anything runs there
        assert ("sphinx" in run.stdout) == (fails != "ruff check"), run.stdout
    assert list(left.iterdir()) == []

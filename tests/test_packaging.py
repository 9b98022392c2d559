"""What is said twice about the package agrees."""

import re
import tomllib
from pathlib import Path

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

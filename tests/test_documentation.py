"""The documentation lists every public name. Its code blocks run as doctests of their own."""

import re
from importlib import import_module
from pathlib import Path

import pytest

DOC = Path(__file__).parents[1] / "doc"
MODULES = ("", "audit", "mechanisms", "metrics", "noise", "preprocessing", "accounting")
# of these modules the public names are not in __all__
NAMES = {
    "accounting": ["composed_epsilon", "to_dp_event"],
    "metrics": ["AccuracyScore", "BrierScore", "ClippedSquaredErrorScore", "HingeScore",
                "IntegratedSquaredErrorScore", "LogisticScore", "MarginScore", "RampScore", "Score",
                "get_score", "margins"],
}


@pytest.mark.parametrize("module", MODULES)
def test_the_api_page_lists_every_public_name(module):
    names = NAMES.get(module) or import_module(f"dpselect.{module}".rstrip(".")).__all__
    page = (DOC / "api.rst").read_text()
    listed = {*re.findall(r"^   ([\w.]+)$", page, re.MULTILINE), *re.findall(r"``([\w.]+)``", page)}
    prefix = f"{module}." if module else ""
    assert not {f"{prefix}{name}" for name in names if name not in MODULES} - listed


def test_no_page_shows_code_that_does_not_run():
    for page in [*DOC.glob("*.rst"), *DOC.glob("mechanisms/*.rst")]:
        assert not re.search(r"code(-block)?:: *python", page.read_text()), page.name

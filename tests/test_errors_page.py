"""Each error that the page "Errors that are met first" lists is raised by the call that it shows."""

import doctest
import re
import warnings
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "doc" / "errors.rst").read_text()
# the last code of a line that is followed by a message in italics
CALLS = re.findall(r"^``.*?([^`]+)``\n    \*(.+?)\.?\*", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def names():
    """What the page's own block defines."""
    found = {}
    for example in doctest.DocTestParser().get_examples(PAGE):
        exec(example.source, found)  # noqa: S102
    return found


def test_all_are_found():
    assert len(CALLS) == len(re.findall(r"^``", PAGE, re.MULTILINE)) >= 20
    assert len(dict(CALLS)) == len(CALLS)


@pytest.mark.parametrize("call, said", CALLS)
def test_the_call_says_so(call, said, names):
    with pytest.raises(Exception) as error, warnings.catch_warnings():
        warnings.simplefilter("error")
        eval(call, names)  # noqa: S307
    assert said in f"{type(error.value).__name__}: {error.value.args[0]}"

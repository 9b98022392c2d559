"""Noise without a seed is the same in each run of a test: what a test meets does not depend on luck.

A plugin of pytest (setup.cfg), since examples of docstrings and of the documentation are tests, too.
Other processes draw as they do anywhere.
"""

import hashlib
import itertools
import os
import secrets

import pytest

PROCESS = os.getpid()
_from_the_system = secrets.token_bytes
_names: list[str] = []
_places = itertools.count()


def token_bytes(size):
    if not _names or os.getpid() != PROCESS:
        return _from_the_system(size)
    return hashlib.shake_256(f"{_names[-1]} {next(_places)}".encode()).digest(size)


def _named(name):
    """Draw for `name`, from the first draw on."""
    global _places
    before, _places = _places, itertools.count()
    _names.append(name)
    try:
        return (yield)
    finally:
        _names.pop()
        _places = before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    # draws the name of this process when it is imported: not for whichever test comes first
    import dpselect.utils.processes  # noqa: F401

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_bytes", token_bytes)
        return (yield from _named(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    # one of a module is made for whichever of its tests comes first
    return (yield from _named(f"{request.node.nodeid} {fixturedef.argname} {request.param_index}"))

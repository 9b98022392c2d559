"""Freed memory stays in a worker while it works on rows, and goes back to the system afterwards."""

import platform
import subprocess
import sys

import pytest

from dpselect.rows import freed_memory
from dpselect.rows.freed_memory import DEFAULTS, KEPT, NAMES, TRIM_THRESHOLD, freed_memory_kept

FAULTS = """
import resource
import numpy as np
from dpselect.rows.freed_memory import freed_memory_kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(1 << 18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with freed_memory_kept():
    faults()
    kept = faults()
print(kept, faults())
"""


@pytest.fixture
def limits(monkeypatch):
    """The limits that hold, by parameter of mallopt."""
    now = {}
    monkeypatch.setattr(freed_memory, "_mallopt", lambda: now.__setitem__)
    return now


def test_limits_hold_again_when_the_last_thread_has_left(limits, monkeypatch):
    monkeypatch.setenv(NAMES[TRIM_THRESHOLD], "65536")
    with freed_memory_kept():
        assert limits == KEPT
        with pytest.raises(KeyError), freed_memory_kept():
            raise KeyError
        assert limits == KEPT
    assert limits == DEFAULTS | {TRIM_THRESHOLD: 65536}


def test_without_limits_nothing_is_set(monkeypatch):
    monkeypatch.delenv(NAMES[TRIM_THRESHOLD], raising=False)
    freed_memory._mallopt.cache_clear()
    assert freed_memory._mallopt() is None
    with freed_memory_kept():
        pass
    freed_memory._mallopt.cache_clear()


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have no such limits")
def test_temporary_arrays_are_made_of_the_same_pages():
    # as Dask starts its workers; outside of the context, each array is made of new pages
    found = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env={"PYTHONPATH": ":".join(sys.path), NAMES[TRIM_THRESHOLD]: "65536"},
        capture_output=True,
        check=True,
    )
    kept, outside = map(int, found.stdout.split())
    assert kept < 100 < 10 * 512 < outside

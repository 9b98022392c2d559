"""Keep the memory of temporary arrays in a worker while it works on rows.

Dask starts workers in which glibc gives freed memory back to the system at once, so that each temporary
array of a block is made of new pages: a pass over a table then takes several times as long.
"""

import ctypes
import os
import sys
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock

# parameters of mallopt (malloc.h), and their values: while rows are worked on, and by default
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT = {TRIM_THRESHOLD: 1 << 28, MMAP_THRESHOLD: 1 << 25}
DEFAULTS = {TRIM_THRESHOLD: 1 << 17, MMAP_THRESHOLD: 1 << 17}
NAMES = {TRIM_THRESHOLD: "MALLOC_TRIM_THRESHOLD_", MMAP_THRESHOLD: "MALLOC_MMAP_THRESHOLD_"}

_lock = Lock()
_running: set[object] = set()


@contextmanager
def freed_memory_kept():
    """Keep freed memory as long as a thread is in this context, where the environment limits it.

    Then the limits of the environment hold again. Where none is set, glibc adapts to what is freed.
    """
    mallopt = _mallopt()
    if mallopt is None:
        yield
        return
    mark = object()
    with _lock:
        if not _running:
            _set(mallopt, KEPT)
        _running.add(mark)
    try:
        yield
    finally:
        with _lock:
            _running.remove(mark)
            if not _running:
                _set(mallopt, _limits())


def _set(mallopt, values):
    for parameter, value in values.items():
        mallopt(parameter, value)


def _limits():
    return {limit: int(os.environ.get(NAMES[limit], default)) for limit, default in DEFAULTS.items()}


@lru_cache(maxsize=1)
def _mallopt():
    if NAMES[TRIM_THRESHOLD] not in os.environ or sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none

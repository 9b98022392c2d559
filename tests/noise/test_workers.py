"""Workers of every kind, begun before and after noise was drawn: no two releases share noise."""

import copy
import multiprocessing
import os
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from joblib import Parallel, delayed

from dpselect import DPRidge

ROWS = np.linspace(0, 1, 10).reshape(5, 2)
# fits for each kind of worker, a task being a batch of them
KINDS = ["spawn", "loky", "thread"] + (["fork"] if hasattr(os, "fork") else [])
FITS, BATCH = 400, 20
# what a careless library would have: a generator that is made once
GENERATOR = np.random.default_rng()


@contextmanager
def recorded_keys(source=None):
    """Record the keys of all generators of this process; `source` replaces the system's entropy."""
    keys, original = [], secrets.token_bytes

    def token_bytes(size):
        keys.append(original(size) if source is None else source.bytes(size))
        return keys[-1]

    with mock.patch.object(secrets, "token_bytes", token_bytes):
        yield keys


def fits(n_fits):
    """Return the bytes that each of some fits released, all on the same records."""
    models = [DPRidge(target_range=(-1, 1)).fit(ROWS, ROWS[:, 0]) for _ in range(n_fits)]
    return [model.gram_.tobytes() + model.moment_.tobytes() for model in models]


def batch(source=None):
    """Run a batch of fits in this process; return releases, keys and the process."""
    source = GENERATOR if source == "module" else source
    with recorded_keys(source) as keys:
        found = fits(BATCH)
    return found, keys, os.getpid()


def by_processes(kind, source, n_tasks):
    """Share tasks between the parent and workers that begin before, amid and after its draws."""
    context = multiprocessing.get_context(kind)
    share = n_tasks // 5
    with context.Pool(1) as early:
        found = [batch(source) for _ in range(share)]
        with context.Pool(1) as amid:
            waiting = [pool.map_async(batch, [source] * share, chunksize=1) for pool in (early, amid)]
            # both draw at the same time as the parent
            found += [batch(source) for _ in range(share)]
            with context.Pool(1) as late:
                found += late.map(batch, [source] * (n_tasks - 4 * share), chunksize=1)
            return found + [task for result in waiting for task in result.get()]


def by_loky(source, n_tasks):
    share = n_tasks // 3
    found = []
    for n in (share, n_tasks - 2 * share):
        # each time the parent has drawn more; the workers stay
        found += [batch(source) for _ in range(share // 2)]
        found += Parallel(n_jobs=2, backend="loky")(delayed(batch)(source) for _ in range(n))
    return found + [batch(source) for _ in range(n_tasks - len(found))]


def by_threads(source, n_tasks):
    share, own, keys, original = n_tasks // 3, threading.local(), [], secrets.token_bytes

    def token_bytes(size):
        keys.append(original(size) if source is None else own.source.bytes(size))
        return keys[-1]

    def task(_):
        own.source = copy.deepcopy(source)
        return fits(BATCH)

    # one patch for all threads: of several, the last one to end would leave another's in place
    with (
        ThreadPoolExecutor(2) as early,
        ThreadPoolExecutor(2) as late,
        mock.patch.object(secrets, "token_bytes", token_bytes),
    ):
        found = list(early.map(task, range(share)))
        found += map(task, range(share))
        found += late.map(task, range(n_tasks - 2 * share))
    releases = [release for part in found for release in part]
    return [(releases, keys, os.getpid())]


def run(kind, source=None, n_tasks=FITS // BATCH):
    """Return all releases, all keys and the number of processes."""
    if kind == "thread":
        found = by_threads(source, n_tasks)
    elif kind == "loky":
        found = by_loky(source, n_tasks)
    else:
        found = by_processes(kind, source, n_tasks)
    releases, keys = ([item for task in found for item in task[i]] for i in (0, 1))
    return releases, keys, len({task[2] for task in found})


def repeated(items):
    return len(items) - len(set(items))


@pytest.fixture(scope="module")
def found():
    return {kind: run(kind) for kind in KINDS}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_no_noise_is_repeated(kind, found):
    releases, keys, n_processes = found[kind]
    assert len(releases) == FITS and len(keys) >= FITS and {len(key) for key in keys} == {32}
    assert n_processes >= {"thread": 1, "loky": 2}.get(kind, 4)
    assert repeated(releases) == 0 and repeated(keys) == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_noise_is_repeated_by_workers_of_another_kind(found):
    assert repeated([release for part in found.values() for release in part[0]]) == 0
    assert repeated([key for part in found.values() for key in part[1]]) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif("fork" not in KINDS, reason="processes are not forked here")
@pytest.mark.parametrize("source", ["module", np.random.mtrand._rand], ids=["module", "numpy"])
def test_a_generator_that_survives_a_fork_is_caught(source):
    releases, keys, _ = run("fork", source, n_tasks=5)
    # the workers begin where the parent was
    assert repeated(releases) >= BATCH and repeated(keys) >= BATCH


@pytest.mark.parametrize("kind", ["loky", "thread"])
def test_a_generator_that_travels_is_caught(kind):
    # pickled or copied for each task, it draws the same for all
    assert repeated(run(kind, np.random.default_rng(), n_tasks=6)[0]) >= BATCH

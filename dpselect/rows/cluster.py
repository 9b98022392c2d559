"""Interface to a Dask cluster: run tasks, keep their results, and locate them."""

import warnings
from collections import Counter
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from .on_workers import FAN_IN, RowsError

# bound on the bytes of a task's chunks, and tasks per worker thread in a pass (fewer for few chunks)
TASK_BYTES, TASKS_A_THREAD = 1 << 28, 2


def compute(value):
    """Run tasks and return their result."""
    return _run(lambda dask: dask.compute(value)[0])


def persisted(parts):
    """Return tasks whose results stay with the workers as long as they are referenced."""
    return list(_run(lambda dask: dask.persist(*parts)))


def wait(parts):
    """Wait until the workers have computed persisted tasks.

    A fit may be a task itself: it then leaves its thread to those that it waits for.
    """
    from distributed import rejoin, secede, wait

    try:
        secede()
    except (AttributeError, KeyError, ValueError):
        # not in a task, or in one that has already seceded
        return _run(lambda dask: wait(parts))
    try:
        _run(lambda dask: wait(parts))
    finally:
        rejoin()


def delayed(function):
    """Return a function whose calls are tasks."""
    from dask import delayed

    return delayed(function, pure=False)


def original(part):
    """Return the task that another one stands for, or itself.

    Dataframes give each partition that is persisted a new name, by which no worker is known to have it.
    """
    target = getattr(part.dask[part.key], "target", None)
    if target is None:
        return part
    (layer,) = part.__dask_layers__()
    return type(part)(target, part.dask, layer=layer)


def tree(parts, task, *args):
    """Return a task at the root of a tree of tasks that each join FAN_IN parts."""
    task = delayed(task)
    while True:
        parts = [task(*args, parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        if len(parts) == 1:
            return parts[0]


class Group(NamedTuple):
    """Chunks, by number, that share a task, and the address of the worker that has them."""

    chunks: list
    worker: str | None = None


def neighbours(parts, sizes):
    """Split parts of given sizes into groups that each lie in the memory of one worker.

    Parts that are not computed, or not on a cluster, are alone, and nowhere. Groups are in the order of
    their first parts.
    """
    alone = [Group([i]) for i in range(len(parts))]
    futures = futures_of_parts(parts)
    if futures is None:
        return alone
    client = _client()
    places = client.who_has(futures)
    if not all(places.get(part.key) for part in parts):
        return alone
    threads, on_worker, load = client.nthreads(), {}, Counter()
    for i, part in enumerate(parts):
        # of the workers with a copy, the least busy one
        worker = min(places[part.key], key=lambda at: (load[at] / threads.get(at, 1), at))
        load[worker] += max(sizes[i], 1)
        on_worker.setdefault(worker, []).append(i)
    groups = []
    for worker, own in on_worker.items():
        own_sizes = np.maximum([sizes[i] for i in own], 1)
        ends = np.cumsum(own_sizes)
        n_groups = max(TASKS_A_THREAD * threads.get(worker, 1), -(-ends[-1] // TASK_BYTES))
        numbers = ((ends - own_sizes / 2) * n_groups / ends[-1]).astype(int)
        groups += [Group(np.array(own)[numbers == k].tolist(), worker) for k in np.unique(numbers)]
    return sorted(groups)


def futures_of_parts(parts):
    """Return the futures of parts that are persisted on a cluster, or None if not all of them are."""
    if not on_cluster():
        return None
    from distributed import futures_of

    # parts of one collection share a graph
    graphs = list({id(part.dask): part for part in parts}.values())
    futures = {future.key: future for future in futures_of(graphs)}
    return [futures[part.key] for part in parts] if all(part.key in futures for part in parts) else None


def near(group):
    """Return a context in which tasks run on the worker of a group, if it is still there.

    Dask would take few tasks over large results for tasks that read a source, give them to whichever
    worker is free, and send the rows after them.
    """
    import dask

    if group.worker is None:
        return nullcontext()
    return dask.annotate(workers=[group.worker], allow_other_workers=True)


def on_cluster():
    """Return whether the workers of a cluster run tasks."""
    return _client() is not None


def in_this_process():
    """Return whether this process runs tasks, in its threads."""
    from dask import local, threaded
    from dask.base import get_scheduler

    return get_scheduler() in (None, local.get_sync, threaded.get)


def memory_of_workers():
    """Return the memory limit of the workers of the cluster in bytes."""
    known = _client().scheduler_info()
    # with many workers the list may be incomplete
    return known.get("total_memory") or sum(
        worker["memory_limit"] for worker in known["workers"].values()
    )


def _client():
    """Return the client of the cluster that runs tasks, or None."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


def _run(run):
    """Return ``run(dask)``, and raise errors of tasks without records."""
    import dask

    try:
        # warning filters are global: tasks in threads of this process would restore each other's
        with warnings.catch_warnings():
            return run(dask)
    except RowsError as error:
        said = error.kind(str(error))
    except Exception as error:
        # these errors quote only names of files, tasks and workers
        if isinstance(error, (OSError, MemoryError)) or type(error).__module__.startswith(
            "distributed."
        ):
            # its cause may quote records
            error.__cause__ = error.__context__ = None
            raise
        said = ValueError(
            f"A chunk of rows could not be computed ({type(error).__name__}), and the reason may "
            "quote records; try it by itself, where they may be seen."
        )
    # outside the except block, so that the original error is not attached as __context__
    raise said

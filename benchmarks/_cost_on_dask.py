"""What fits on a Dask cluster of two workers take, beside one process that has the records in memory."""

import gc
import pickle
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from _peak_memory import FEW, status
from _timing_clock import seconds
from _timing_contestants import CLASSES
from _timing_data import records
from table_costs import SCHEMA, private, table

from dpselect import DPLogisticRegression, DPRidge

# with who makes the chunks: workers that read a file, or this process, which sends them
DASK = (
    (5_000_000, 20, 16, "workers"),
    (5_000_000, 20, 64, "workers"),
    (1_000_000, 100, 16, "workers"),
    (5_000_000, 20, 16, "client"),
)
# tables: rows, files, and where their partitions are
HERE = "memory of the workers"
PARQUET = (
    (1_000_000, 4, "files"),
    (1_000_000, 400, "files"),
    (10_000_000, 40, "files"),
    (1_000_000, 4, HERE),
    (10_000_000, 40, HERE),
)
WORKERS = 2
IDLE = 2.0  # seconds in which a cluster without work is looked at


def counting_plugin():
    """Return a plugin of the scheduler that counts what was done."""
    from distributed import SchedulerPlugin

    class Counter(SchedulerPlugin):
        def __init__(self):
            self.tasks = self.passes = 0

        def update_graph(self, *args, **kwargs):
            self.passes += 1

        def transition(self, key, start, finish, *args, **kwargs):
            self.tasks += (start, finish) == ("processing", "memory")

    return Counter()


@contextmanager
def two_workers():
    """Start a cluster, and yield its client, and a plugin that counts tasks and passes."""
    from distributed import Client, LocalCluster

    counter = counting_plugin()
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, memory_limit="6GB", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scheduler.add_plugin(counter)
        yield client, counter


def spent(call, client):
    """Return the processor time of a call, on the workers and here, and its time on the clock.

    With what the workers and this process would take in that time if they had nothing to do.
    """

    def taken(call):
        before = sum(client.run(time.process_time).values())
        own, start = time.process_time(), time.perf_counter()
        call()
        own, wall = time.process_time() - own, time.perf_counter() - start
        return np.array([sum(client.run(time.process_time).values()) - before, own, wall])

    idle, found = taken(partial(time.sleep, IDLE)), taken(call)
    names = ("on_workers", "client", "wall", "idle_workers", "idle_client")
    values = (*found, *(idle[:2] / idle[2] * found[2]))
    return {name: f"{value:.4g}" for name, value in zip(names, values)}


def read(path, start, stop):
    """Return the rows of a file from `start` to `stop`."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def in_chunks(array, size, made_by, folder):
    """Return a Dask array whose chunks are made by the workers, or sent to them."""
    import dask.array as da
    from dask import delayed

    if made_by == "client":
        return da.from_array(array, chunks=(size, *array.shape[1:]))
    path = folder / f"{array.ndim}.npy"
    np.save(path, array)
    cuts = [(start, min(start + size, len(array))) for start in range(0, len(array), size)]
    return da.concatenate(
        [
            da.from_delayed(
                delayed(read)(path, start, stop), (stop - start, *array.shape[1:]), array.dtype
            )
            for start, stop in cuts
        ]
    )


def on_dask(rounds):
    """Yield a line for each model, number of chunks and round."""
    import dask
    from distributed import wait

    models = {
        "DPLogisticRegression": DPLogisticRegression(classes=CLASSES),
        "DPRidge": DPRidge(norm="l2", target_range=(0, 1)),
    }
    # workers that keep freed memory between tasks, too
    dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**30})
    with two_workers() as (client, counter), TemporaryDirectory() as folder:
        for n, d, chunks, made_by in DASK:
            X, y = records("labels", n, d)
            there = dask.persist(
                *(in_chunks(array, -(-n // chunks), made_by, Path(folder)) for array in (X, y))
            )
            wait(there)
            for name, model in models.items():
                for played in range(rounds + 1):
                    here, *_ = seconds(partial(model.fit, X, y), 1)
                    counter.tasks = counter.passes = 0
                    found = spent(partial(model.fit, *there), client)
                    if played:
                        yield {
                            "model": name,
                            "n": n,
                            "d": d,
                            "chunks": chunks,
                            "made_by": made_by,
                            "workers": WORKERS,
                            "round": played,
                            "one_process": f"{here:.4g}",
                            **found,
                            "passes": counter.passes,
                            "tasks": counter.tasks,
                        }
                done = f"dask: {name}, {n} x {d} in {chunks} chunks made by {made_by}"
                print(done, file=sys.stderr, flush=True)


def write_tables(folder, n, files):
    """Write the usual table to files, of equal lengths."""
    for i in range(files):
        X, y = table(n // files, seed=i)
        X.assign(y=y).to_parquet(folder / f"{i:04}.parquet")


def forget():
    """Let the system forget the peak of the memory of this process, and return what it has now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return status("VmRSS")


def memory_above(call, client):
    """Return the peaks of a call above the memory before: the sum over workers, and here; and traffic.

    Traffic are the bytes that went from worker to worker, and the bytes of the results that came here.
    """

    def sent(dask_worker):
        return dask_worker.transfer_outgoing_bytes_total

    received, gather = [], client.gather

    def measured(*args, **kwargs):
        found = gather(*args, **kwargs)
        if isinstance(found, list):
            received.append(len(pickle.dumps(found)))
        return found

    client.gather = measured
    traffic = sum(client.run(sent).values())
    workers, here = client.run(forget), forget()
    call()
    here = status("VmHWM") - here
    peaks = client.run(status, "VmHWM")
    client.gather = gather
    return {
        "workers_above": sum(peaks[address] - workers[address] for address in workers),
        "client_above": here,
        "between_workers": sum(client.run(sent).values()) - traffic,
        "to_client": sum(received),
    }


def records_of(frame):
    """Return the columns of the schema, and the labels, of a table of pandas or of Dask."""
    return frame[list(SCHEMA)], frame["y"]


def on_parquet(rounds):
    """Yield a line for each table in files, for each place of its partitions, and round."""
    import dask.dataframe as dd

    for n, files, source in PARQUET:
        sizes = {"n": n, "d": len(SCHEMA), "files": files, "source": source, "workers": WORKERS}
        # a cluster for each, as processes keep memory that they freed
        with TemporaryDirectory() as folder, two_workers() as (client, counter):
            write_tables(Path(folder), n, files)
            # modules are loaded before memory is looked at
            X, y = table(FEW)
            private(SCHEMA).fit(*records_of(dd.from_pandas(X.assign(y=y), npartitions=WORKERS)))
            for line in _of_table(folder, source != HERE, rounds, client, counter):
                yield sizes | line
        print(f"parquet: {n} in {files} files, {source}", file=sys.stderr, flush=True)


def _of_table(folder, in_files, rounds, client, counter):
    import dask
    import dask.dataframe as dd
    from distributed import wait

    frame = dd.read_parquet(folder)
    there, table = records_of(frame), None
    known = {"partitions": int(frame.memory_usage(deep=True).sum().compute())}
    if not in_files:
        there = dask.persist(*there)
        wait(there)
    known |= memory_above(partial(private(SCHEMA).fit, *there), client)
    if not in_files:
        table = pd.read_parquet(folder)

    def here():
        private(SCHEMA).fit(*records_of(pd.read_parquet(folder) if in_files else table))

    for number in range(1, rounds + 1):
        one, *_ = seconds(here, 1)
        counter.tasks = counter.passes = 0
        taken = spent(partial(private(SCHEMA).fit, *there), client)
        counts = {"passes": counter.passes, "tasks": counter.tasks}
        yield {"round": number, "one_process": f"{one:.4g}", **taken, **counts, **known}

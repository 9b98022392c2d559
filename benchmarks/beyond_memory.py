"""Fit on records that do not fit into memory, and print what that takes.

Usage::

    python benchmarks/beyond_memory.py [--gigabytes 20] [--dask-rows 50000000] [--columns 20]

With --gigabytes, a sparse file of that size is mapped into memory, and each model is fitted on it:
printed are the time, and by how much the largest resident memory of the process has grown, pages of
the file included.

With --dask-rows, that many rows are made in chunks on a Dask cluster of two workers with a memory
limit of 1 GB each, in every pass anew, and each model is fitted on them. Printed are the time, the
passes and tasks as the scheduler counts them, the largest resident memory of each worker, what came
to the client, and how far coefficients are from those of numpy on the first million rows.

Noise has a seed, so that both draw the same.
"""

import argparse
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from _cost_on_dask import counting_plugin

from dpselect import DPLogisticRegression, DPRidge

MODELS = {
    "DPRidge": DPRidge(data_norm=2.0, random_state=0, target_range=(-1, 1)),
    "DPLogisticRegression": DPLogisticRegression(classes=[0, 1], data_norm=2.0, random_state=0),
}
CHUNK, COMPARED = 250_000, 1_000_000


def largest_memory():
    """Return the largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_memory_map(gigabytes, columns):
    """Fit on a sparse file."""
    n = int(gigabytes * 2**30 / (8 * columns))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        with path.open("wb") as file:
            file.truncate(8 * n * columns)
        X = np.memmap(path, dtype=np.float64, mode="r", shape=(n, columns))
        y = (np.arange(n) % 2).astype(np.int8)
        for name, model in MODELS.items():
            before, start = largest_memory(), time.perf_counter()
            model.fit(X, y)
            print(
                f"memory map, {gigabytes:g} GB, {n} x {columns}: {name} took "
                f"{time.perf_counter() - start:.1f} s; largest memory {largest_memory():.0f} MB, "
                f"{before:.0f} MB before"
            )


def make_rows(i, rows, columns):
    """Return chunk i."""
    return np.random.default_rng(i).normal(size=(rows, columns)) / np.sqrt(columns)


def make_labels(X):
    """Return a label for each row of a chunk."""
    return (X @ np.linspace(-3, 3, X.shape[1]) + np.sin(1000 * X[:, 0]) > 0).astype(np.int8)


def run_dask(rows, columns):
    """Fit on chunks that two workers make."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster
    from distributed.protocol.pickle import dumps

    lengths = [min(CHUNK, rows - start) for start in range(0, rows, CHUNK)]
    X = da.concatenate(
        [
            da.from_delayed(dask.delayed(make_rows)(i, length, columns), (length, columns), float)
            for i, length in enumerate(lengths)
        ]
    )
    y = X.map_blocks(make_labels, drop_axis=1, dtype=np.int8)
    counter, received = counting_plugin(), []
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scheduler.add_plugin(counter)
        gather = client.gather

        def measured(*args, **kwargs):
            found = gather(*args, **kwargs)
            if isinstance(found, list):
                received.append(len(dumps(found)))
            return found

        client.gather = measured
        for name, model in MODELS.items():
            counter.tasks = counter.passes = 0
            received.clear()
            start = time.perf_counter()
            model.fit(X, y)
            took = time.perf_counter() - start
            memory = ", ".join(f"{mb:.0f}" for mb in client.run(largest_memory).values())
            print(
                f"Dask, {rows} x {columns} in {len(lengths)} chunks: {name} took {took:.1f} s; "
                f"{counter.passes} passes, {counter.tasks} tasks; workers' largest memory {memory} "
                f"MB; received {sum(received)} bytes in all, {max(received)} at most in a pass"
            )
        compare(X, y, min(rows, COMPARED))


def compare(X, y, n):
    """Print how far models of the first rows are from those of numpy."""
    rows = np.concatenate(
        [make_rows(i, length, X.shape[1]) for i, length in enumerate(X.chunks[0]) if i * CHUNK < n]
    )[:n]
    labels = make_labels(rows)
    for name, model in MODELS.items():
        here = model.fit(rows, labels).coef_.copy()
        there = model.fit(X[:n], y[:n]).coef_
        print(f"Dask, first {n} rows: {name} differs from numpy by {np.abs(here - there).max():.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=0.0)
    parser.add_argument("--dask-rows", type=int, default=0)
    parser.add_argument("--columns", type=int, help="default: 200 of the file, 20 with Dask")
    arguments = parser.parse_args()
    # of seeds, which are intended here
    warnings.simplefilter("ignore")
    if arguments.gigabytes:
        run_memory_map(arguments.gigabytes, arguments.columns or 200)
    if arguments.dask_rows:
        run_dask(arguments.dask_rows, arguments.columns or 20)


if __name__ == "__main__":
    main()

"""How time and memory of fits and searches grow, and what a fit on a Dask cluster takes.

Run ``python benchmarks/cost.py``; ``--only growth memory dask parquet`` has parts. Lines of each part go
to a file of results, ``cost_growth.csv`` and so on, of which the last run counts, and ``cost_tables.py``
makes the tables of the documentation from them. Progress goes to the error stream.

- growth: one size at a time varies around a base point (``BASE``), over the values of ``SUBJECTS``: the
  records n, the columns d, the candidates k, the folds, and T, the levels of an accuracy-first
  search. Its target cannot be met, so that it walks through all levels, and models have a
  noise-reduction form (output perturbation for logistic regression). Within a round values come in an
  order that is shuffled anew; a first call at the least value does not count. Memory is the most
  that Python and numpy hold at a time, above the records (``tracemalloc``), in a call of its own;
  buffers within BLAS are not seen.
- memory: the peak of the resident set above the records, for each container, each in a process of its
  own (Linux).
- dask: chunks that are held by two workers, beside one process that has the rows in memory.
- parquet: a table in files that two workers read, or have read, beside one process that reads them, or
  has them in memory. Memory is resident, above what was there.

Times are of the processor, on one thread of BLAS; of a cluster, those of its workers, and those of the
process with the client and the scheduler.
"""

import argparse
import csv
import json
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _cost_on_dask import on_dask, on_parquet
from _timing_clock import seconds
from _timing_contestants import CLASSES
from _timing_data import records
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)

RESULTS = Path(__file__).parent / "results"
BASE = {"n": 50_000, "d": 20, "k": 10, "folds": 5, "T": 40}
# with many columns there are fewer records
WIDE_RECORDS = 10_000
ROWS = {"n": (6_250, 25_000, 100_000, 400_000)}
COLUMNS = {"d": (20, 80, 320, 1_250, 5_000)}
FEWER_COLUMNS = {"d": (20, 80, 320, 1_250)}
CANDIDATES = {"k": (2, 8, 32, 128), "folds": (2, 4, 8, 16)}
LEVELS = {"T": (10, 40, 160, 640)}
ROUNDS = {"growth": 1, "memory": 1, "dask": 2, "parquet": 3}
ORDER_SEED = 2
# no model with noise comes this close to the least loss
IMPOSSIBLE = 1e-9
FIRST_AND_LAST_LEVEL = (0.01, 10.0)
MEMORY_SCRIPT = Path(__file__).with_name("_peak_memory.py")
DENSE, SPARSE = (500_000, 40), (200_000, 10_000)
MEMORY = {
    "DPLogisticRegression": (
        "float64",
        "float32",
        "int64",
        "int8",
        "pandas",
        "polars",
        "Arrow",
        "memory map",
        "CSR",
    ),
    "DPRidge": ("float64", "float32"),
    "search, 10 alphas x 5 folds": ("float64", "float32", "CSR"),
    "scaler, DPLogisticRegression": ("float64",),
    "encoder, DPLogisticRegression": ("pandas", "polars", "Arrow"),
    "encoder, DPRidge": ("pandas", "polars"),
}


@dataclass(frozen=True)
class Subject:
    """What is measured.

    Attributes
    ----------
    name : str
    kind : str
        Of its records.
    make : callable
        Returns an estimator for a dict of sizes.
    sizes : dict
        Values of each size that it depends on.
    columns : int, default=None
        If not the base point's.
    """

    name: str
    kind: str
    make: Callable[[dict], object]
    sizes: dict[str, tuple[int, ...]]
    columns: int | None = None


def stability(model, low):
    """Return a function from sizes to the search by stability over alpha."""
    return lambda sizes: StabilityGridSearchCV(
        model,
        {"alpha": np.geomspace(low, 1, sizes["k"])},
        epsilon=1.0,
        strategy="stability",
        cv=KFold(sizes["folds"], shuffle=True, random_state=0),
    )


def accuracy_first(model):
    """Return a function from sizes to an accuracy-first search that walks through all levels."""
    return lambda sizes: AccuracyFirstSearchCV(
        model,
        {"epsilon": np.geomspace(*FIRST_AND_LAST_LEVEL, sizes["T"])},
        target=IMPOSSIBLE,
        method="above_threshold",
        max_epsilon=np.inf,
        on_failure="last",
    )


LOGISTIC = DPLogisticRegression(classes=CLASSES)
RIDGE = DPRidge(norm="l2", target_range=(-1, 1))
SUBJECTS = (
    Subject("DPLogisticRegression", "labels", lambda sizes: LOGISTIC, ROWS | COLUMNS),
    Subject(
        "DPLogisticRegression, CSR",
        "sparse",
        lambda sizes: LOGISTIC,
        {"d": (1_000, 4_000, 16_000, 64_000)},
    ),
    Subject("DPLinearSVC", "labels", lambda sizes: DPLinearSVC(classes=CLASSES), ROWS | COLUMNS),
    Subject("DPRidge", "targets", lambda sizes: RIDGE, ROWS | {"d": (20, 80, 320, 1_250, 2_500)}),
    # cells, not columns, are what its cost depends on
    Subject("DPHistogramDensity", "uniform", lambda sizes: DPHistogramDensity(bounds=(0, 1)), ROWS, 1),
    Subject(
        "stability, logistic", "labels", stability(LOGISTIC, 1e-4), ROWS | FEWER_COLUMNS | CANDIDATES
    ),
    Subject(
        "stability, ridge",
        "targets",
        stability(DPRidge(perturbation="objective", norm="l2", target_range=(-1, 1)), 1e-3),
        ROWS | FEWER_COLUMNS | CANDIDATES,
    ),
    Subject(
        "accuracy first, logistic",
        "labels",
        accuracy_first(DPLogisticRegression(alpha=0.01, perturbation="output", classes=CLASSES)),
        ROWS | FEWER_COLUMNS | LEVELS,
    ),
    Subject("accuracy first, ridge", "targets", accuracy_first(RIDGE), ROWS | FEWER_COLUMNS | LEVELS),
)


def peak_bytes(call):
    """Return the most that Python and numpy held at a time during a call, and its result."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        try:
            result = call()
            return tracemalloc.get_traced_memory()[1], result
        finally:
            tracemalloc.stop()


def curve(subject, size, values, rounds):
    """Yield a line for each value of a size: the median of seconds over rounds, and bytes."""

    def call_at(value):
        sizes = {**BASE, size: value}
        n = WIDE_RECORDS if size == "d" else sizes["n"]
        X, y = records(subject.kind, n, subject.columns or sizes["d"])
        estimator = subject.make(sizes)
        return lambda: estimator.fit(X, y)

    seconds(call_at(values[0]), 1)
    taken = np.empty((rounds, len(values)))
    rng = np.random.default_rng(ORDER_SEED)
    for row in taken:
        for j in rng.permutation(len(values)):
            row[j], *_ = seconds(call_at(values[j]), 1)
    for value, cpu in zip(values, np.median(taken, axis=0)):
        peak, fitted = peak_bytes(call_at(value))
        check_walk(fitted)
        yield {"subject": subject.name, "size": size, "value": value, "cpu": f"{cpu:.4g}", "peak": peak}
    print(f"{subject.name}: {size}", file=sys.stderr, flush=True)


def check_walk(estimator):
    """Raise AssertionError if an accuracy-first search stopped before its last level."""
    if isinstance(estimator, AccuracyFirstSearchCV):
        ((_, levels),) = estimator.param_grid.items()
        walked = len(estimator.path_["epsilon"])
        if walked != len(levels):
            raise AssertionError(f"The search stopped at level {walked} of {len(levels)}.")


def growth(rounds):
    """Yield the lines of all curves."""
    for subject in SUBJECTS:
        for size, values in subject.sizes.items():
            yield from curve(subject, size, values, rounds)


def memory(rounds):
    """Yield the peak of each model and container."""
    for model, containers in MEMORY.items():
        for container in containers:
            n, d = SPARSE if container == "CSR" else DENSE
            done = subprocess.run(
                [sys.executable, MEMORY_SCRIPT, model, container, str(n), str(d)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            yield {"model": model, "container": container, "n": n, "d": d, **json.loads(done.stdout)}
            print(f"memory: {model}, {container}", file=sys.stderr, flush=True)


PARTS = {"growth": growth, "memory": memory, "dask": on_dask, "parquet": on_parquet}


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, help=f"default: {ROUNDS}")
    parser.add_argument("--only", metavar="PART", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--folder", default=RESULTS, type=Path, help="of the files of results")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Measure, and write the files of results."""
    options = parse(arguments)
    for part in options.only:
        with (options.folder / f"cost_{part}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = None
            for line in PARTS[part](options.rounds or ROUNDS[part]):
                if writer is None:
                    writer = csv.DictWriter(stream, list(line))
                    writer.writeheader()
                writer.writerow(line)
                stream.flush()  # what was measured stays


if __name__ == "__main__":
    main()

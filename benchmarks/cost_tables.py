"""The tables and the figure of the page "Running time and memory", from the results that are kept.

Run ``python benchmarks/cost_tables.py`` after ``compare.py``, ``cost.py`` and ``table_costs.py``;
``--folder`` is the documentation's.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from _cost_figure import draw
from compare import RESULTS, ratios, read
from private_models import rest_table
from scipy.stats import linregress

from dpselect.rows.cluster import TASK_BYTES, TASKS_A_THREAD
from dpselect.rows.distributed import PERSISTED_FRACTION
from dpselect.rows.on_workers import FAN_IN

DOC = Path(__file__).parents[1] / "doc"
LABELS = {
    "n": "records",
    "d": "columns",
    "k": "candidates",
    "folds": "folds",
    "T": "levels",
}
# what is projected: records, columns, workers, bytes of a chunk
PROJECTED = (1_000_000_000, 100, 100, 100_000_000)
FLOAT = 8
# tables in files: records, columns, workers; each file has as many records as those that were measured
TABLES = ((10_000_000, 13, 2), (100_000_000, 13, 2), (1_000_000_000, 30, 100))


def shape(n, d):
    return f"{n:,} x {d:,}"


def beside(lines, part):
    """Return the ratios of a part, one column for each rival."""
    found = ratios(lines[lines["part"] == part])
    one, rivals = found["threads"].nunique() == 1, list(dict.fromkeys(found["side"]))
    rows = []
    for (task, n, d, threads, ours), group in found.groupby(
        ["task", "n", "d", "threads", "ours"], sort=False
    ):
        said = group.set_index("side")
        count = lines[lines["task"] == task].groupby("side")["contestant"].nunique()
        several = found.loc[found["task"] == task, "ours"].nunique() > 1
        cells = [
            f"{said['ratio'][rival]:.2g}" + f" ({said['fastest'][rival]})" * bool(count[rival] > 1)
            if rival in said.index
            else ""
            for rival in rivals
        ]
        rows.append(
            [
                f"{task}, {ours}" if several else task,
                shape(n, d),
                *([] if one else [str(threads)]),
                f"{group['seconds'].iloc[0]:.2g}",
                *cells,
            ]
        )
    return rest_table(["task", "n x d", *([] if one else ["threads"]), "seconds", *rivals], rows)


def public(lines):
    """Return the seconds of what needs no records."""
    found = ratios(lines[lines["part"] == "public"])
    return rest_table(
        ["what", "seconds"], [[line.task, f"{line.seconds:.2g}"] for line in found.itertuples()]
    )


def several(lines):
    """Return the time of searches with more and more candidates."""
    found = ratios(lines[lines["part"] == "growth"])
    return rest_table(
        ["candidates", "seconds", "seconds each"],
        [
            [line.ours, f"{line.seconds:.2g}", f"{line.seconds / int(line.ours):.2g}"]
            for line in found.sort_values("ours", key=lambda column: column.astype(int)).itertuples()
        ],
    )


def jobs(lines):
    """Return how long a search with two threads takes beside one with one."""
    part = lines[lines["part"] == "jobs"]
    cpu, wall = (ratios(part, clock) for clock in ("cpu", "wall"))
    return rest_table(
        ["search", "n x d", "processor time", "time on the clock"],
        [
            [one.task, shape(one.n, one.d), f"{one.ratio:.2g}", f"{other.ratio:.2g}"]
            for one, other in zip(cpu.itertuples(), wall.itertuples())
        ],
    )


def of_tables(lines):
    """Return the medians of what is done with tables, and of their ratios."""
    rows = []
    for (what, beside, n), group in lines.groupby(["what", "beside", "n"], sort=False):
        ratio, ours = (group["ours"] / group["other"]).median(), group["ours"].median()
        said = f"{ours / 2**20:.3g} MiB" if what.startswith("peak") else f"{ours:.2g} s"
        rows.append([what, f"{n:,}", said, beside, f"{ratio:.2g}"])
    return rest_table(["what", "rows", "ours", "beside", "ratio"], rows)


def exponent(values, costs):
    """Return the slope of log(costs) over log(values) on the upper half, and its standard error."""
    part = slice(len(values) // 2 - 1, None)
    line = linregress(np.log(values[part]), np.log(costs[part]))
    return f"{line.slope:.2f} ({line.stderr:.2f})"


def growth(curves):
    """Return the exponents of all curves, with the ends of the sizes."""
    rows = []
    for (subject, size), group in curves.groupby(["subject", "size"], sort=False):
        values, last = group["value"].to_numpy(), group.iloc[-1]
        rows.append(
            [
                subject,
                f"{LABELS[size]}, {values[0]:,} to {values[-1]:,}",
                exponent(values, group["cpu"].to_numpy()),
                exponent(values, group["peak"].to_numpy()),
                f"{last['cpu']:.2g}",
                f"{last['peak'] / 2**20:.3g}",
            ]
        )
    return rest_table(
        ["of", "grows with", "exponent of time", "of memory", "seconds at the end", "MiB there"], rows
    )


def memory(lines):
    """Return the peaks above the records."""
    return rest_table(
        ["model", "records in", "n x d", "records, MiB", "peak above, MiB", "ratio"],
        [
            [
                line.model,
                line.container,
                shape(line.n, line.d),
                f"{line.data / 2**20:.0f}",
                f"{line.above / 2**20:.0f}",
                f"{line.above / line.data:.2f}",
            ]
            for line in lines.itertuples()
        ],
    )


def on_dask(lines):
    """Return the processor time on a cluster over that of one process, with rows in memory."""
    rows = []
    shapes = ["model", "n", "d", "chunks", "made_by"]
    for (model, n, d, chunks, made_by), group in lines.groupby(shapes, sort=False):
        workers, client, *idle = (
            (group[name] / group["one_process"]).median()
            for name in ("on_workers", "client", "idle_workers", "idle_client")
        )
        rows.append(
            [
                model,
                shape(n, d),
                str(chunks),
                made_by,
                f"{group['one_process'].median():.2g}",
                f"{workers:.2g}",
                f"{client:.2g}",
                f"{sum(idle):.2g}",
                f"{group['passes'].median():.0f}",
                f"{group['tasks'].median() / chunks:.1f}",
            ]
        )
    return rest_table(
        [
            "model",
            "n x d",
            "chunks",
            "made by",
            "one process, seconds",
            "workers",
            "client and scheduler",
            "idle cluster",
            "passes",
            "tasks a chunk",
        ],
        rows,
    )


def n_groups(n, d, workers):
    """Return how many groups of chunks share a task on workers of one thread."""
    return workers * max(TASKS_A_THREAD, -(-n * d * FLOAT // (workers * TASK_BYTES)))


def projection(lines):
    """Return what a fit on a large cluster would take, from the most columns that were measured.

    The work of a row and column, the tasks for each group of chunks and the time of the scheduler for
    each task are as measured.
    """
    n, d, workers, chunk = PROJECTED
    chunks = n * d * FLOAT // chunk
    rows = []
    known = lines[lines["d"] == lines["d"].max()]
    for model, group in known.groupby("model", sort=False):
        work = (group["on_workers"] / (group["n"] * group["d"])).median() * n * d / workers
        if model == "DPRidge":  # outer products: d^2 for each row
            work *= d / group["d"].iloc[0]
        groups = [n_groups(*line) for line in zip(group["n"], group["d"], group["workers"])]
        tasks = (group["tasks"] / groups).median() * n_groups(n, d, workers)
        told = tasks * (group["client"] / group["tasks"]).median()
        rows.append([model, f"{work:.0f}", f"{tasks:,.0f}", f"{told:.0f}", f"{work + told:.0f}"])
    said = (
        f"{shape(n, d)} on {workers} workers, in {chunks:,} chunks of {chunk // 1_000_000} MB, "
        f"projected from {shape(*known[['n', 'd']].iloc[0])}:"
    )
    header = ["model", "work of a worker, seconds", "tasks", "client and scheduler", "seconds in all"]
    return f"{said}\n\n{rest_table(header, rows)}"


def on_parquet(lines):
    """Return what a fit of a table in files takes, beside one process with pandas."""
    rows = []
    for (n, d, files, source), group in lines.groupby(["n", "d", "files", "source"], sort=False):
        workers, client, idle_workers, idle_client = (
            (group[name] / group["one_process"]).median()
            for name in ("on_workers", "client", "idle_workers", "idle_client")
        )
        rows.append(
            [
                shape(n, d),
                str(files),
                source,
                f"{group['one_process'].median():.2g}",
                f"{workers:.2g}",
                f"{client:.2g}",
                f"{idle_workers + idle_client:.2g}",
                f"{group['partitions'].iloc[0] / 2**20:,.0f}",
                f"{(group['workers_above'] / group['partitions']).median():.2f}",
            ]
        )
    header = [
        "n x d",
        "files",
        "partitions in",
        "one process, seconds",
        "workers",
        "client and scheduler",
    ]
    return rest_table([*header, "idle cluster", "partitions, MiB", "peak above, ratio"], rows)


def parquet_projection(lines):
    """Return what fits of tables in files take, as measured and as projected from the fewest rows.

    Without what an idle cluster takes in the same time.
    """
    lines = lines[lines["source"] == "files"]
    lines = lines.assign(
        on_workers=lines["on_workers"] - lines["idle_workers"],
        client=lines["client"] - lines["idle_client"],
    )
    known = lines.groupby(["n", "d", "files", "workers"], as_index=False).median(numeric_only=True)
    few, many, *_ = (line for _, line in known.sort_values(["n", "files"]).iterrows())
    measured = [
        line for _, line in known.iterrows() if line["n"] > few["n"] or line["files"] == few["files"]
    ]
    projected = [_projected(few, many, *sizes) for sizes in TABLES]
    rows = [
        [shape(int(line["n"]), int(line["d"])), said, *_of_a_table(line)]
        for said, found in (("measured", measured), ("projected", projected))
        for line in found
    ]
    header = ["n x d", "", "workers", "files", "tasks", "work of a worker, seconds"]
    header += ["client and scheduler", "between workers, MB", "client, MB", "to be held, GB"]
    return rest_table(header, rows)


def _of_a_table(line):
    n, d, workers = (int(line[name]) for name in ("n", "d", "workers"))
    return [
        str(workers),
        f"{line['files']:,.0f}",
        f"{line['tasks']:,.0f}",
        *map(
            _short,
            (
                line["on_workers"] / workers,
                line["client"],
                line["between_workers"] / 1e6,
                line["client_above"] / 1e6,
                FLOAT * n * d / PERSISTED_FRACTION / 1e9,
            ),
        ),
    ]


def _short(number):
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _projected(few, many, n, d, workers):
    """Return a line for n rows, from lines of the same rows in few files, and in many.

    Work and traffic go by rows and columns, tasks by files and by groups of chunks in each pass, and the
    client by tasks.
    """
    times = n * d / (few["n"] * few["d"])
    more_files = n / few["n"] * few["files"] - few["files"]
    by_file = (many["tasks"] - few["tasks"]) / (many["files"] - few["files"])
    groups = n_groups(n, d, workers) - n_groups(*few[["n", "d", "workers"]])
    # a task for each group, and the tree that adds
    tasks = few["tasks"] + by_file * more_files + few["passes"] * groups * (1 + 1 / (FAN_IN - 1))
    return {
        "n": n,
        "d": d,
        "workers": workers,
        "files": few["files"] + more_files,
        "tasks": tasks,
        "on_workers": times * few["on_workers"],
        "client": tasks * many["client"] / many["tasks"],
        "between_workers": times * few["between_workers"],
        "client_above": tasks * many["client_above"] / many["tasks"],
    }


def tables(folder=RESULTS.parent):
    """Return the text of each file that the page includes."""
    lines = read(folder / "compare.csv")
    curves, peaks, cluster, parquet = (
        pd.read_csv(folder / f"cost_{part}.csv") for part in ("growth", "memory", "dask", "parquet")
    )
    found = {part: beside(lines, part) for part in ("small", "single", "wide", "sparse", "search")}
    found |= {
        "public": public(lines),
        "several": several(lines),
        "jobs": jobs(lines),
        "growth": growth(curves),
        "memory": memory(peaks),
        "dask": on_dask(cluster),
        "of_tables": of_tables(pd.read_csv(folder / "table_costs.csv")),
        "projection": projection(cluster),
        "parquet": on_parquet(parquet),
        "parquet_projection": parquet_projection(parquet),
    }
    return {f"cost_{name}.inc": f"{text}\n" for name, text in found.items()}


def main(arguments=None):
    """Write the tables and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=DOC, type=Path)
    folder = parser.parse_args(arguments).folder
    for name, text in tables().items():
        (folder / name).write_text(text, encoding="utf-8")
    draw(pd.read_csv(RESULTS.parent / "cost_growth.csv"), LABELS, folder / "images" / "cost.png")


if __name__ == "__main__":
    main()

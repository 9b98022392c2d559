"""How long roads to a model of a table take beside those of scikit-learn, numpy and pandas.

Run ``python benchmarks/table_costs.py [--rounds 5] [--rows 200000] [--only Dask]``. It writes
``results/table_costs.csv``, with one line for each timing, and ``cost_tables.py`` makes the table of the
documentation from it. ``--only`` measures again what has this text in its name.

The table has eight numbers, one of which has a log scale and one gaps, and five categories with 2 to 16
levels, as a dataframe of pandas. scikit-learn imputes, scales, makes splines of four knots and codes the
categories; its logistic regression has the same alpha. Of a long list there is one column, beside two
numbers. Times are of the processor, on one thread of BLAS. Both sides take turns, and a ratio is the
median of those of the rounds, after a first round that does not count. Of commands it is the time of
whole processes, imports included.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from _timing_clock import seconds
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

from dpselect import DPHistogramDensity, DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import tabular_pipeline
from dpselect.records.public_shape import PublicShape

RESULTS = Path(__file__).parent / "results" / "table_costs.csv"
FIELDS = ("what", "beside", "n", "round", "ours", "other")
LEVELS = {"sex": 2, "job": 12, "region": 16, "school": 6, "state": 4}
CATEGORIES = {name: [f"{name}{i}" for i in range(k)] for name, k in LEVELS.items()}
NUMBERS = {
    "age": (18, 90),
    "hours": (0, 80),
    "income": {"bounds": (0, 1e6), "transform": "log1p"},
    "debt": {"bounds": (-5e4, 5e4), "missing": True},
    "height": (130, 210),
    "weight": (30, 150),
    "visits": (0, 20),
    "score": (0, 1),
}
SCHEMA = NUMBERS | CATEGORIES
KNOTS = 4
MANY_LEVELS = (1_000, 10_000)
# a block is the most of what a fit takes above few rows: memory is measured at more, too
FOR_MEMORY = 5
COMMAND = """
import json, pandas
from dpselect import DPLogisticRegression
from dpselect.preprocessing import tabular_pipeline
table = pandas.read_csv("table.csv")
model = DPLogisticRegression(epsilon=1.0, classes=[0, 1])
y = table.pop("y").to_numpy()
schema = json.load(open("schema.json"))
del schema["y"]
tabular_pipeline(schema, model).fit(table, y)
"""


@dataclass(frozen=True)
class Road:
    """What is timed, beside what; either takes nothing."""

    what: str
    beside: str
    n: int
    ours: Callable
    other: Callable


def table(n, seed=0):
    """Return the usual table, and labels."""
    rng = np.random.default_rng(seed)
    numbers = {
        "age": rng.integers(18, 90, n).astype(float),
        "hours": rng.uniform(0, 80, n),
        "income": rng.lognormal(10, 1, n).clip(0, 1e6),
        "debt": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 1e4, n)),
        "height": rng.normal(170, 10, n),
        "weight": rng.normal(75, 15, n),
        "visits": rng.poisson(3, n).astype(float),
        "score": rng.uniform(0, 1, n),
    }
    codes = {name: rng.integers(0, k, n) for name, k in LEVELS.items()}
    texts = {name: np.array(CATEGORIES[name], dtype=object)[code] for name, code in codes.items()}
    z = (numbers["age"] - 50) / 20 + (numbers["hours"] - 40) / 30 + codes["job"] % 3 - 1
    return pd.DataFrame(numbers | texts), _labels(z, rng)


def long_list(n, levels):
    """Return a table with a long list of categories, its labels, and its schema."""
    rng = np.random.default_rng(0)
    names, code = [f"t{i}" for i in range(levels)], rng.integers(0, levels, n)
    X = pd.DataFrame({"age": rng.uniform(18, 90, n), "hours": rng.uniform(0, 80, n)})
    X["town"] = np.array(names, dtype=object)[code]
    schema = {"age": (18, 90), "hours": (0, 80), "town": names}
    return X, _labels((X["age"] - 50) / 20 + code % 3 - 1, rng), schema


def _labels(z, rng):
    return (rng.random(len(z)) < 1 / (1 + np.exp(-np.asarray(z)))).astype(int)


def private(schema, **params):
    """Return our pipeline."""
    return tabular_pipeline(schema, DPLogisticRegression(epsilon=1.0, classes=[0, 1], **params))


def plain(schema, X, knots=KNOTS):
    """Return scikit-learn's, with the alpha of ours."""
    features = private(schema).fit(X[:1000], np.arange(1000) % 2)[0].get_feature_names_out()
    shape = PublicShape(len(X), len(features))
    alpha = DPLogisticRegression(epsilon=1.0).calibration(shape).alpha
    texts = [name for name, said in schema.items() if isinstance(said, list)]
    numbers = [name for name in schema if name not in texts]
    splines = make_pipeline(
        SimpleImputer(add_indicator=True), StandardScaler(), SplineTransformer(n_knots=knots)
    )
    columns = ColumnTransformer(
        [("numbers", splines, numbers), ("texts", OneHotEncoder(handle_unknown="ignore"), texts)]
    )
    return make_pipeline(columns, LogisticRegression(C=1 / (len(X) * alpha), max_iter=1000))


def roads(n):
    """Return what is timed at a number of rows."""
    X, y = table(n)
    ours, theirs = private(SCHEMA).fit(X, y), plain(SCHEMA, X).fit(X, y)
    search = StabilityGridSearchCV(private(SCHEMA), {}, epsilon=1.0)
    twin = ours.to_sklearn()
    splines = "scikit-learn with splines"
    found = [
        Road("fit", splines, n, lambda: private(SCHEMA).fit(X, y), lambda: plain(SCHEMA, X).fit(X, y)),
        Road("predictions", splines, n, lambda: ours.predict(X), lambda: theirs.predict(X)),
        Road("predictions of to_sklearn()", "ours", n, lambda: twin.predict(X), lambda: ours.predict(X)),
        Road(
            "prediction of one row",
            splines,
            1,
            lambda: ours.predict(X[:1]),
            lambda: theirs.predict(X[:1]),
        ),
        Road(
            "search, empty grid", "fit", n, lambda: search.fit(X, y), lambda: private(SCHEMA).fit(X, y)
        ),
        *_long_lists(n),
        *_counts(n),
        *_on_dask(X, y),
    ]
    return found


def _long_lists(n):
    for levels in MANY_LEVELS:
        X, y, schema = long_list(n, levels)
        yield Road(
            f"fit, {levels:,} levels",
            "scikit-learn with splines",
            n,
            lambda X=X, y=y, schema=schema: private(schema).fit(X, y),
            lambda X=X, y=y, schema=schema: plain(schema, X).fit(X, y),
        )


def _counts(n):
    x = np.random.default_rng(0).beta(2, 5, n)
    density = DPHistogramDensity(epsilon=1.0, bin_width=0.01, bounds=(0, 1))
    yield Road(
        "histogram of one column",
        "numpy.histogram",
        n,
        lambda: density.fit(x[:, np.newaxis]),
        lambda: np.histogram(x, 100, (0, 1)),
    )


def _on_dask(X, y):
    try:
        import dask
        import dask.dataframe as dd
    except ImportError:
        return
    for kind, known in (
        ("texts", X.astype(dict.fromkeys(CATEGORIES, str))),
        ("categories", X.astype({name: pd.CategoricalDtype(CATEGORIES[name]) for name in CATEGORIES})),
    ):
        frame, labels = dd.from_pandas(known, npartitions=4), dd.from_pandas(pd.Series(y), npartitions=4)

        def lazily(frame=frame, labels=labels):
            with dask.config.set(scheduler="synchronous"):
                private(SCHEMA).fit(frame, labels)

        yield Road(
            f"fit, Dask dataframe of {kind}",
            "fit in memory",
            len(X),
            lazily,
            lambda known=known: private(SCHEMA).fit(known, y),
        )


def command(n, folder):
    """Return the command beside a program that reads the file with pandas."""
    X, y = table(n)
    X.assign(y=y).to_csv(folder / "table.csv", index=False)
    (folder / "schema.json").write_text(json.dumps(SCHEMA | {"y": [0, 1]}))
    given = ["-m", "dpselect", "fit", "table.csv", "--schema", "schema.json", "--target", "y"]
    both = [[*given, "--epsilon", "1"], ["-c", COMMAND]]
    return Road(
        "command, CSV",
        "pandas.read_csv and fit",
        n,
        *(lambda args=args: run(args, folder) for args in both),
    )


def run(arguments, folder):
    """Run Python in a folder."""
    python_path = {"PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | python_path,
        check=True,
        capture_output=True,
    )


def of_children(call):
    """Return the processor seconds of the processes that a call starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def peak(call):
    """Return the bytes that Python and numpy hold at most in a call, above what was there."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def memory(n):
    """Measure the peaks above a table."""
    X, y = table(n)
    size = int(X.memory_usage(deep=True).sum()) + y.nbytes
    ours = private(SCHEMA).fit(X, y)
    peaks = {
        "fit": peak(lambda: private(SCHEMA).fit(X, y)),
        "predictions": peak(lambda: ours.predict(X)),
    }
    for what, found in peaks.items():
        line = f"peak above the table, {what}", "bytes of the table", n, 1, found, size
        yield dict(zip(FIELDS, line))


def turns(road, rounds, clock):
    """Time both sides in turn, after a first round."""
    for number in range(rounds + 1):
        pair = clock(road.ours), clock(road.other)
        if number:
            print(f"{road.what} {road.n}: {pair[0]:.3g} {pair[1]:.3g}", file=sys.stderr)
            yield dict(zip(FIELDS, (road.what, road.beside, road.n, number, *pair)))


def main(arguments=None):
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    with RESULTS.open(newline="", encoding="utf-8") as stream:
        known = [line for line in csv.DictReader(stream) if options.only]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lines in measured(options):
            key = [lines[0][name] for name in ("what", "n")]
            old = [[line["what"], int(line["n"])] == key for line in known]
            at = old.index(True) if any(old) else len(known)
            known = [line for line, again in zip(known, old) if not again]
            known[at:at] = lines
            write(known)


def measured(options):
    """Yield the lines of each road."""
    with tempfile.TemporaryDirectory() as folder:
        clocks = dict.fromkeys(roads(options.rows), lambda call: seconds(call, 1)[0])
        clocks[command(options.rows, Path(folder))] = of_children
        for road, clock in clocks.items():
            if options.only in road.what:
                yield list(turns(road, options.rounds, clock))
    for n in (options.rows, FOR_MEMORY * options.rows):
        yield from ([line] for line in memory(n) if options.only in line["what"])


def write(lines):
    """Write the lines, so that what was measured stays."""
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()

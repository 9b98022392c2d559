"""Which private model would people pick? Our model, its peers and others on twelve tables.

Run ``python benchmarks/private_models.py --data DIR``, where DIR holds the four tables that no package
brings; the head of ``_tables.py`` says what to install for the others, that of ``_peers.py`` what
for the peers. What is not there is said in its cells, and the rest runs.

Each line of the file of results is one table, method, epsilon, footing and repetition. What it
holds is not run again, so a run that was stopped goes on where it stopped, and parts can be run by
themselves: ``--tables churn --methods README "DP-EBM .1" --epsilon 0.1``. To run a method again,
give ``--again``.

Two footings: "nominal" gives each method the stated (epsilon, delta), whatever its neighbours are;
"replace-one" gives a method whose neighbours add or remove a record half of it, as replacing a
record is two of its steps.

Metrics: AUC and Brier score (mean squared error of the probability) of classes, R^2 of numbers,
Poisson deviance of counts, with the standard errors over splits. A fifth of the rows is for tests,
by the hash of their place. Noise is seeded: nothing here is released.
"""

import argparse
import csv
import math
import time
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from _fresh_tables import FRESH_TABLES
from _peers import METHODS, predict
from _table_files import MissingPackageError
from _tables import TABLES, load
from _unseen_tables import UNSEEN_TABLES
from joblib import Parallel, delayed
from sklearn.metrics import brier_score_loss, mean_poisson_deviance, r2_score, roc_auc_score

EPSILONS = (0.1, 0.3, 1.0, 3.0)
FOOTINGS = ("nominal", "replace-one")
METRICS = {
    "classes": {"AUC": roc_auc_score, "Brier": brier_score_loss},
    "numbers": {"R2": r2_score},
    "counts": {"deviance": mean_poisson_deviance, "R2": r2_score},
}
ALL_TABLES = {**TABLES, **FRESH_TABLES, **UNSEEN_TABLES}
GREATER_IS_BETTER = {"AUC": True, "Brier": False, "R2": True, "deviance": False}
KEY = ["table", "method", "epsilon", "footing", "repetition"]
FIELDS = [*KEY, "delta", "AUC", "Brier", "R2", "deviance", "seconds", "failed"]


def scores(task, y, predicted):
    """Return the metrics of a task; of several predictions, those of the best by its first metric."""
    metrics = METRICS[task]
    found = [
        {name: float(metric(y, each)) for name, metric in metrics.items()}
        for each in np.atleast_2d(predicted)
    ]
    first = next(iter(metrics))
    sign = 1 if GREATER_IS_BETTER[first] else -1
    return max(found, key=lambda each: sign * each[first])


@lru_cache(maxsize=1)  # all methods of a table, one after the other
def split(table, repetition):
    """Return X_train, y_train, X_test and y_test."""
    return table.split(repetition)


def cell(key, delta, folder, load=load, methods=METHODS):
    """Run one line of the file of results.

    Parameters
    ----------
    key : tuple
        Table, method, epsilon, footing and repetition.
    delta : float
    folder : str or None
    load : callable, default=load
        Returns a table by its name and the folder.
    methods : dict, default=METHODS

    Returns
    -------
    dict
        With ``failed``, a reason, in place of metrics if the method could not be run.
    """
    name, method, epsilon, footing, repetition = key
    line = {**dict(zip(KEY, key)), "delta": delta}
    method = methods[method]
    start = time.perf_counter()
    try:
        table = load(name, folder)
        parts = split(table, repetition)
        seed = 1000 * repetition + 1
        predicted = predict(method, parts, table, *method.nominal(epsilon, delta, footing), seed)
        line.update(scores(table.task, parts[3], predicted))
    except (ImportError, MissingPackageError) as error:
        line["failed"] = f"not installed: {error}"
    except Exception as error:  # a peer may raise anything, and the cell says what
        line["failed"] = f"{type(error).__name__}: {error}".splitlines()[0][:120]
    line["seconds"] = round(time.perf_counter() - start, 2)
    return line


def cells_of(options):
    """Return the keys that the options ask for: all cells of a repetition before the next one's."""
    keys = []
    for repetition in range(options.repetitions):
        for table in options.tables:
            task = ALL_TABLES[table][0]
            for name in options.methods:
                method = METHODS[name]
                if task not in method.tasks:
                    continue
                if not method.adjacency:  # no epsilon
                    keys.append((table, name, math.inf, "nominal", repetition))
                    continue
                footings = options.footing if method.pays_twice else ("nominal",)
                keys += [
                    (table, name, epsilon, footing, repetition)
                    for epsilon in options.epsilon
                    for footing in footings
                ]
    return keys


def read(path):
    """Return the lines of a file of results, the last one of each key, without those that failed."""
    if not Path(path).exists():
        return pd.DataFrame(columns=FIELDS)
    lines = pd.read_csv(path)
    return lines.drop_duplicates(KEY, keep="last").reset_index(drop=True)


def run(options):
    """Run what is missing and append it to the file of results."""
    path = Path(options.results)
    lines = read(path)
    lines = lines[lines["failed"].isna()]  # what failed may be installed by now
    done = set(lines[KEY].itertuples(index=False, name=None))
    keys = [key for key in cells_of(options) if options.again or key not in done]
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        if is_new:
            writer.writeheader()
        one = partial(cell, delta=options.delta, folder=options.data)
        lines = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
            delayed(one)(key) for key in keys
        )
        for number, line in enumerate(lines, 1):
            writer.writerow(line)
            stream.flush()  # what was measured stays
            measured = [f"{name} {line[name]:.4f}" for name in GREATER_IS_BETTER if name in line]
            said = line.get("failed") or ", ".join(measured)
            key = " ".join(str(line[name]) for name in KEY)
            print(f"{number}/{len(keys)} {key}: {said} ({line['seconds']} s)", flush=True)


def text(lines, metric):
    """Return the cell of a report: mean and standard error, or why there is none."""
    if lines is None:
        return ""
    values = lines[metric].dropna()
    if not len(values):
        return str(lines["failed"].iloc[-1])
    form = "{:.3f}" if abs(values.mean()) < 10 else "{:.0f}"
    said = form.format(values.mean())
    if len(values) > 1:
        said += " (" + form.format(values.std() / math.sqrt(len(values))) + ")"
    return said


def rest_table(header, rows):
    """Return a table of reStructuredText."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    rule = "  ".join("=" * max(width, 1) for width in widths)

    def line(cells):
        # an empty first cell would continue the line above
        cells = [cells[0] or "\\", *cells[1:]]
        return "  ".join(each.ljust(width) for each, width in zip(cells, widths)).rstrip()

    return "\n".join([rule, line(header), rule, *map(line, rows), rule])


def report(results, ours="dpselect", methods=METHODS, tables=ALL_TABLES):
    """Return all results as tables of reStructuredText.

    Parameters
    ----------
    results : DataFrame
        Lines of a file of results.
    ours : str, default="dpselect"
        What the names of the methods begin with that are set against each other one.
    methods, tables : dict

    Returns
    -------
    str
    """
    present = [name for name in methods if (results["method"] == name).any()]
    epsilons = sorted(set(results["epsilon"]) - {math.inf})
    cells = dict(list(results.groupby(KEY[:-1])))
    legend = []
    for name in present:
        method = methods[name]
        delta = f"{results['delta'].iloc[0]:g}" if method.delta else "0"
        adjacency = [method.adjacency, delta] if method.adjacency else ["not private", ""]
        legend.append([name, *adjacency, method.note])
    parts = [
        "Methods, their neighbours and delta:",
        rest_table(["method", "neighbours", "delta", "what it is"], legend),
    ]
    for task, metrics in METRICS.items():
        columns = [name for name in present if task in methods[name].tasks]
        for metric in metrics:
            better = "greater" if GREATER_IS_BETTER[metric] else "less"
            for footing in FOOTINGS:
                rows = []
                for table in tables:
                    if tables[table][0] != task or not (results["table"] == table).any():
                        continue
                    for epsilon in epsilons:
                        keys = [key_of(table, methods[name], epsilon, footing) for name in columns]
                        said = [text(cells.get(key), metric) for key in keys]
                        rows.append([table, f"{epsilon:g}", *said])
                if rows:
                    parts += [
                        f"{metric} ({better} is better), footing: {footing}; mean (standard error):",
                        rest_table(["table", "epsilon", *columns], rows),
                    ]
    for name in (each for each in present if each.startswith(ours)):
        against = [
            each for each in present if each != name and (methods[each].delta or not methods[name].delta)
        ]
        peers = [methods[each] for each in against]
        parts += [
            (
                f"Tables where {name} is ahead / not distinguished / behind, that is by two standard "
                "errors of the difference over splits (of one split: by any difference):"
            ),
            rest_table(
                ["metric", "footing", "epsilon", *against],
                standing(cells, methods[name], peers, tables, epsilons),
            ),
        ]
    return "\n\n".join(parts) + "\n"


def standing(cells, ours, methods, tables, epsilons):
    """Return the rows of how our method stands against each other one, counted over tables."""
    rows = []
    for metric, greater in GREATER_IS_BETTER.items():
        order = (1, 0, -1) if greater else (-1, 0, 1)
        for footing in FOOTINGS:
            for epsilon in epsilons:
                counts = []
                for method in methods:
                    signs = []
                    for table in tables:
                        first = cells.get(key_of(table, ours, epsilon, footing))
                        second = cells.get(key_of(table, method, epsilon, footing))
                        if metric in METRICS[tables[table][0]]:
                            signs += signs_of_difference(first, second, metric)
                    counted = " / ".join(str(signs.count(sign)) for sign in order)
                    counts.append(counted if signs else "")
                if any(counts):
                    rows.append([metric, footing, f"{epsilon:g}", *counts])
    return rows


def key_of(table, method, epsilon, footing):
    """Return the key, without the repetition, of the lines that belong in a cell of the report."""
    if not method.adjacency:
        return table, method.name, math.inf, "nominal"
    return table, method.name, epsilon, footing if method.pays_twice else "nominal"


def signs_of_difference(first, second, metric):
    """Return [1], [0] or [-1] as the first is greater, as good or less; [] if one was not run."""
    if first is None or second is None:
        return []
    first, second = (dict(zip(lines["repetition"], lines[metric])) for lines in (first, second))
    difference = np.array([first[split] - second[split] for split in first.keys() & second.keys()])
    difference = difference[~np.isnan(difference)]
    if not len(difference):
        return []
    error = difference.std(ddof=1) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    mean = difference.mean()
    return [int(np.sign(mean)) if abs(mean) > 2 * error else 0]


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", help="folder of the .csv.gz files")
    parser.add_argument("--tables", nargs="+", choices=ALL_TABLES, default=list(TABLES))
    for option, tables, said in (
        ("--fresh", FRESH_TABLES, "fourteen further tables"),
        ("--unseen", UNSEEN_TABLES, "the tables that no rule has seen"),
    ):
        parser.add_argument(
            option,
            action="store_const",
            dest="tables",
            const=list(tables),
            help=f"{said}, in place of the first twelve",
        )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--footing", nargs="+", choices=FOOTINGS, default=FOOTINGS)
    parser.add_argument("--delta", type=float, default=1e-6, help="of methods that have one")
    parser.add_argument("--repetitions", type=int, default=5, help="splits")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--results", metavar="FILE", default="private_models.csv", help="goes on")
    parser.add_argument("--again", action="store_true", help="run what is there, too; the last counts")
    parser.add_argument("--report", metavar="FILE", help="write the tables here too")
    parser.add_argument("--sources", action="store_true", help="print what the tables are, and stop")
    return parser.parse_args(arguments)


def sources(options):
    """Return a table of the tables."""
    rows = []
    for name in options.tables:
        try:
            table = load(name, options.data)
        except (ImportError, MissingPackageError) as error:
            rows.append([name, ALL_TABLES[name][0], "", "", str(error)])
            continue
        shape = [f"{len(table.y):,}", str(len(table.schema))]
        rows.append([name, table.task, *shape, table.source])
    header = ["table", "task", "rows", "columns", "source, licence, where the bounds come from"]
    return rest_table(header, rows)


def main(arguments=None):
    """Run the benchmark and print its report."""
    options = parse(arguments)
    if options.sources:
        print(sources(options))
        return
    run(options)
    written = report(read(options.results))
    print(written)
    if options.report:
        Path(options.report).write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()

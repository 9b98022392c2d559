"""Tables of the page "All results on tables", from results of private_models.py.

Run ``python benchmarks/private_models_pages.py``. It reads ``results/private_models.csv``,
``results/private_models_fresh.csv`` and ``results/private_models_unseen.csv`` and writes all results of
the first, how often our models are behind others in each, and what the fresh and the unseen tables gave,
into the folder of the documentation.
"""

import argparse
import math
from pathlib import Path

from _fresh_tables import FRESH_TABLES
from _peers import METHODS
from _tables import TABLES
from _unseen_tables import UNSEEN_TABLES
from private_models import (
    FOOTINGS,
    GREATER_IS_BETTER,
    KEY,
    METRICS,
    key_of,
    read,
    report,
    rest_table,
    signs_of_difference,
    text,
)

HERE = Path(__file__).parent
FIRST, FRESH, UNSEEN = (
    HERE / "results" / f"private_models{name}.csv" for name in ("", "_fresh", "_unseen")
)
DOC = HERE.parent / "doc"
OURS = ("dpselect", "dpselect, delta=1e-6")
PEERS = ("DP-EBM", "DP-EBM .1", "DP-SGD")
# of a cell that is counted
LEAST_SPLITS = 5
# the score by which a constant is judged, too, and what is shown of each table
SCORE = {"classes": "Brier", "counts": "deviance", "numbers": "R2"}
SHOWN = {"classes": ("AUC", "Brier"), "counts": ("deviance",), "numbers": ("R2",)}


def cells_of(results):
    """Return {(table, method, epsilon, footing): lines}, of what has enough splits."""
    cells = dict(list(results[results["failed"].isna()].groupby(KEY[:-1])))
    return {key: lines for key, lines in cells.items() if len(lines) >= LEAST_SPLITS}


def pairs_of(cells, tables, metric, first, second, footing):
    """Return {(table, epsilon): (lines, lines)} of two methods, where both were measured."""
    found = {}
    for table in tables:
        if metric not in METRICS[tables[table][0]]:
            continue
        for epsilon in sorted({key[2] for key in cells if key[2] < math.inf}):
            pair = [
                cells.get(key_of(table, METHODS[name], epsilon, footing)) for name in (first, second)
            ]
            if all(lines is not None for lines in pair):
                found[table, epsilon] = pair
    return found


def is_behind(first, second, metric):
    """Return whether the first is worse by two standard errors over the same splits."""
    return signs_of_difference(first, second, metric) == [-1 if GREATER_IS_BETTER[metric] else 1]


def promise(name, delta):
    """Return the neighbours and the delta of a method, for a table."""
    method = METHODS[name]
    neighbours = "add or remove" if method.pays_twice else "replace"
    return [neighbours, f"{delta:g}" if method.delta else "0"]


def behind(results, tables):
    """Return in how many cells, one for each table and epsilon, our models are behind others."""
    cells, delta = cells_of(results), results["delta"].iloc[0]
    metrics = [
        metric
        for metric in GREATER_IS_BETTER
        if any(metric in METRICS[tables[key[0]][0]] for key in cells)
    ]
    rows = []
    for footing in reversed(FOOTINGS):
        for peer in PEERS:
            row = [footing, peer, *promise(peer, delta)]
            for ours in OURS:
                for metric in metrics:
                    pairs = pairs_of(cells, tables, metric, ours, peer, footing).values()
                    row.append(f"{sum(is_behind(*pair, metric) for pair in pairs)} of {len(pairs)}")
            rows.append(row)
    header = ["footing", "set against", "neighbours", "delta"]
    header += [f"{name}: {metric}" for name in OURS for metric in metrics]
    return rest_table(header, rows)


def against_constant(results, tables):
    """Return in which cells our models predict worse than the mean of the training rows."""
    cells, delta = cells_of(results), results["delta"].iloc[0]
    rows = []
    for ours in OURS:
        for metric in dict.fromkeys(SCORE[tables[key[0]][0]] for key in cells):
            pairs = pairs_of(cells, tables, metric, ours, "constant", "nominal")
            worse = {key: pair for key, pair in pairs.items() if is_behind(*pair, metric)}
            said = [
                f"{table} at {epsilon:g} ({first[metric].mean():.4f}, {second[metric].mean():.4f})"
                for (table, epsilon), (first, second) in worse.items()
            ]
            count = f"{len(worse)} of {len(pairs)}"
            rows.append([ours, *promise(ours, delta), metric, count, "; ".join(said)])
    header = ["method", "neighbours", "delta", "score", "worse", "where (score, that of the constant)"]
    return rest_table(header, rows)


def scores(results, tables):
    """Return the scores of each table and epsilon at the same promise, all on the same splits."""
    cells, delta = cells_of(results[results["repetition"] < LEAST_SPLITS]), results["delta"].iloc[0]
    columns = [*OURS, *PEERS, "constant", "linear", "boosting"]
    titles = [
        f"{name} ({', '.join(promise(name, delta))})" if METHODS[name].adjacency else name
        for name in columns
    ]
    epsilons = sorted({key[2] for key in cells if key[2] < math.inf})
    parts = []
    for metric in dict.fromkeys(name for key in cells for name in SHOWN[tables[key[0]][0]]):
        rows = []
        for table in tables:
            if metric not in SHOWN[tables[table][0]]:
                continue
            for epsilon in epsilons:
                keys = [key_of(table, METHODS[name], epsilon, "replace-one") for name in columns]
                said = [text(cells.get(key), metric) for key in keys]
                rows.append([table, f"{epsilon:g}", *said])
        better = "greater" if GREATER_IS_BETTER[metric] else "less"
        parts.append(
            f"{metric} ({better} is better) at the same promise: half of the epsilon for a method whose "
            "neighbours add or remove a record; mean (standard error):"
        )
        parts.append(rest_table(["table", "epsilon", *titles], rows))
    return "\n\n".join(parts)


def further(results, tables):
    """Return the part of a page about tables beyond the first."""
    parts = [
        "Cells in which our models are behind, by two standard errors over the same splits:",
        behind(results, tables),
        "Cells in which they are worse than a constant, the mean of the training rows:",
        against_constant(results, tables),
        scores(results, tables),
    ]
    return "\n\n".join(parts) + "\n"


def pages():
    """Return {name: text} of the files that the documentation includes."""
    first = read(FIRST)
    return {
        "private_models.inc": report(first),
        "private_models_behind.inc": behind(first, TABLES) + "\n",
        "private_models_fresh.inc": further(read(FRESH), FRESH_TABLES),
        "private_models_unseen.inc": further(read(UNSEEN), UNSEEN_TABLES),
    }


def main(arguments=None):
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=DOC, help="of the documentation")
    options = parser.parse_args(arguments)
    for name, written in pages().items():
        (Path(options.folder) / name).write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()

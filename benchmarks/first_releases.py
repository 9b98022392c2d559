"""What learning a norm, class shares or a mean count first is worth, on held-out records.

Run ``python benchmarks/first_releases.py --data DIR --output FILE``; the head of ``_tables.py`` says
what to install for the tables, and those that are not there are left out.

- norm: rows of numbers in [-1, 1] and categories as codes, clipped to the norm that a row of such
  bounds seldom exceeds ("known"), to the largest that a row can have ("box"), or to what is learned
  ("auto"); and the same with bounds ten times too wide, of cosines.
- shares: a penalty that knows no shares, shares that are learned, and the true ones, by
  n epsilon / (length of the noise).
- rare: the same of tables in which one record in twenty is of the second class; others of that class
  are left out by chance.
- means: a Poisson model whose penalty counts from one count a record, from the mean count that it
  learned, and from the true one.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _peers import LEAST_COUNT, column_kind
from _tables import TABLES, MissingPackageError, load
from sklearn.metrics import brier_score_loss, mean_poisson_deviance, roc_auc_score

from dpselect import DPLogisticRegression, DPPoissonRegressor
from dpselect.preprocessing import TableEncoder
from dpselect.records.public_shape import PublicShape

EPSILONS = (0.1, 0.3, 1.0, 3.0)
SIZES = (1000, 2000, 5000, 20_000)
TESTS = 4000
# of splits and noise; more where noise is long
REPETITIONS, MANY = 4, 12
BINS = (0, 3, 10, 30, 100)
RARE = 0.05


def widened(entry):
    """Return what is known of a column, with bounds ten times as wide."""
    bounds = entry["bounds"] if isinstance(entry, dict) else entry
    low, high = bounds
    wide = (low, low + 10 * (high - low))
    if not (isinstance(entry, dict) and entry.get("transform")):
        wide = (low - 4.5 * (high - low), high + 4.5 * (high - low))
    return {**entry, "bounds": wide} if isinstance(entry, dict) else wide


def is_number(entry):
    if isinstance(entry, dict):
        return "bounds" in entry
    return isinstance(entry, tuple) and len(entry) == 2 and not isinstance(entry[0], str)


def scored(model, train, test):
    p = model.fit(*train).predict_proba(test[0])[:, 1]
    return brier_score_loss(test[1], p), roc_auc_score(test[1], p)


def parts(X, y, size, repetition):
    """Return records to train with and to test on; None if there are too few."""
    order = np.random.default_rng(repetition).permutation(len(y))
    size = min(size, int(0.8 * len(y)))
    train, test = order[:size], order[size : size + TESTS]
    return (X[train], y[train]), (X[test], y[test])


def norms(name, table):
    """Yield the lines of a table for norms."""
    wide = {column: widened(e) if is_number(e) else e for column, e in table.schema.items()}
    for bounds, schema, expansion in (("right", table.schema, "linear"), ("too wide", wide, 2)):
        encoder = TableEncoder(schema, expansion=expansion).fit(table.X)
        X = encoder.transform(table.X)
        for epsilon in EPSILONS:
            for repetition in range(REPETITIONS):
                train, test = parts(X, table.y, SIZES[-1], repetition)
                for how, norm in (
                    ("known", encoder.typical_norm("l2")),
                    ("box", encoder.max_norm("l2")),
                    ("auto", "auto"),
                ):
                    model = DPLogisticRegression(
                        epsilon, data_norm=norm, classes=[0, 1], random_state=repetition
                    )
                    brier, auc = scored(model, train, test)
                    yield {
                        "table": name,
                        "what": "norm",
                        "bounds": bounds,
                        "how": how,
                        "epsilon": epsilon,
                        "n": len(train[1]),
                        "Brier": brier,
                        "AUC": auc,
                    }


def rare(name, table):
    """Yield the lines of a table for class shares, with fewer records of the second class."""
    second = np.flatnonzero(table.y)
    kept = int(RARE / (1 - RARE) * (len(table.y) - len(second)))
    few = np.random.default_rng(0).choice(second, min(kept, len(second)), replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(table.y == 0), few]))
    fewer = type(table)(**{**vars(table), "X": table.X.iloc[rows], "y": table.y[rows]})
    yield from ({**line, "what": "rare"} for line in shares(name, fewer))


def shares(name, table):
    """Yield the lines of a table for class shares."""
    for expansion in ("linear", 2):
        encoder = TableEncoder(table.schema, expansion=expansion).fit(table.X)
        X = encoder.transform(table.X)
        bounds = {"data_norm": encoder.typical_norm("l2"), "data_norm_l1": encoder.typical_norm("l1")}
        for size in SIZES:
            n = min(size, int(0.8 * len(table.y)))
            for epsilon in EPSILONS:
                model = DPLogisticRegression(epsilon, **bounds, classes=[0, 1])
                told = model.calibration(PublicShape(n, X.shape[1])).signal
                if n < size / 2 or n * epsilon < 200 or told >= BINS[-1]:
                    continue
                known = float(table.y.mean())
                seed = 1000 * size + int(1000 * epsilon)  # noise of its own in each cell
                for repetition in range(MANY):
                    train, test = parts(X, table.y, size, repetition)
                    for how, rate in (("none", None), ("learned", "auto"), ("known", known)):
                        model = DPLogisticRegression(
                            epsilon,
                            **bounds,
                            base_rate=rate,
                            classes=[0, 1],
                            random_state=seed + repetition,
                        )
                        brier, auc = scored(model, train, test)
                        yield {
                            "table": name,
                            "what": "shares",
                            "how": how,
                            "epsilon": epsilon,
                            "n": n,
                            "told": told,
                            "Brier": brier,
                            "AUC": auc,
                        }


def means(name, table):
    """Yield the lines of a table of counts for mean counts."""
    schema = {
        column: ["0", "1"] if column_kind(entry).get("flag") else entry
        for column, entry in table.schema.items()
    }
    encoder = TableEncoder(schema, expansion=2).fit(table.X)
    X, bound = encoder.transform(table.X), table.target_bounds[1]
    bounds = {"data_norm": encoder.typical_norm("l2"), "data_norm_l1": encoder.typical_norm("l1")}
    for size in SIZES[1::2]:
        for epsilon in EPSILONS:
            for repetition in range(REPETITIONS):
                (rows, y), (test, expected) = parts(X, table.y, size, repetition)
                for how, rate in (
                    ("none", None),
                    ("learned", "auto"),
                    ("known", float(table.y.clip(0, bound).mean())),
                ):
                    model = DPPoissonRegressor(
                        epsilon, **bounds, target_bound=bound, base_rate=rate, random_state=repetition
                    )
                    predicted = model.fit(rows, y).predict(test)
                    yield {
                        "table": name,
                        "what": "means",
                        "how": how,
                        "epsilon": epsilon,
                        "n": len(y),
                        "deviance": mean_poisson_deviance(expected, predicted.clip(LEAST_COUNT)),
                    }


def report(lines):
    """Return the tables of the documentation as text."""
    norm, share, mean = (
        lines[lines.what.isin(what)] for what in (["norm"], ["shares", "rare"], ["means"])
    )
    mean = mean.pivot_table("deviance", ["table", "n", "epsilon"], "how")
    norm = norm.pivot_table(["Brier", "AUC"], ["bounds", "table"], ["epsilon", "how"])
    share = share.assign(told=pd.cut(share.told, BINS, right=False))
    # each table counts once in a bin
    share = share.groupby(["what", "told", "table", "how"], observed=True)[["Brier", "AUC"]].mean()
    share = share.groupby(["what", "told", "how"], observed=True).mean().unstack()
    return "\n\n".join(frame.round(4).to_string() for frame in (norm.Brier, norm.AUC, share, mean))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the tables that no package brings")
    parser.add_argument("--output", required=True, help="file for all lines, as CSV")
    parser.add_argument("--tables", nargs="+", help="some tables only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # noise is seeded: nothing here is released
    lines = []
    measures = {"classes": (norms, shares, rare), "counts": (means,), "numbers": ()}
    for name in options.tables or TABLES:
        try:
            table = load(name, options.data)
        except (ImportError, MissingPackageError) as error:
            print(f"{name}: {error}", flush=True)
            continue
        if len(table.y) > SIZES[-1] + TESTS:
            few = np.random.default_rng(0).choice(len(table.y), SIZES[-1] + TESTS, replace=False)
            table = type(table)(**{**vars(table), "X": table.X.iloc[few], "y": table.y[few]})
        for measured in measures[table.task]:
            lines += measured(name, table)
        print(name, flush=True)
        pd.DataFrame(lines).to_csv(Path(options.output), index=False)
    print(report(pd.DataFrame(lines)))


if __name__ == "__main__":
    main()

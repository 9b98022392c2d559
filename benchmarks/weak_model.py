"""What makes a model of few records better, by the AUC on records that were held out.

Run ``python benchmarks/weak_model.py --data DIR``; the head of ``_tables.py`` says what to install for
the tables. It writes every fit into ``benchmarks/results/weak_model.csv``, and the
means into ``doc/weak_model.inc``. Each change is made to the same model of all columns, by its
defaults, on the same splits.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from _tables import load
from sklearn.metrics import roc_auc_score

from dpselect import DPLogisticRegression
from dpselect.preprocessing import tabular_pipeline

RESULTS = Path(__file__).parent / "results" / "weak_model.csv"
TABLE = Path(__file__).parents[1] / "doc" / "weak_model.inc"
SIZE, EPSILONS, REPETITIONS = 4000, (0.1, 0.3, 1.0), 10
# by what is known of the field; the other columns follow in the order of the schema
ORDERS = {
    "adult": ("education-num", "marital-status", "age", "hours-per-week", "occupation"),
    "affairs": ("rate_marriage", "religious", "yrs_married", "age"),
    "magic": ("fAlpha", "fLength", "fWidth", "fDist"),
}
# a quarter of the adults earn as much; a third of the marriages; two thirds are simulated as gamma rays
BASE_RATES = {"adult": 0.25, "affairs": 0.3, "magic": 0.65}


def wider(known):
    """Return bounds ten times as wide, in both directions."""
    if isinstance(known, list) or (isinstance(known, dict) and "bounds" not in known):
        return known
    low, high = known["bounds"] if isinstance(known, dict) else known
    middle, half = (low + high) / 2, 5 * (high - low)
    bounds = (middle - half, middle + half)
    if not isinstance(known, dict):
        return bounds
    transform = {"transform": "arcsinh"} if "transform" in known else {}
    return {**known, "bounds": bounds, **transform}


def models(name, schema, epsilon, seed):
    """Return a model for each row of the table."""
    known = {column: flag_as_category(each) for column, each in schema.items()}
    order = [*ORDERS[name], *(column for column in known if column not in ORDERS[name])]
    first = {column: known[column] for column in order}

    def model(schema=known, columns=None, expansion="auto", **parameters):
        logistic = DPLogisticRegression(epsilon, classes=[0.0, 1.0], random_state=seed, **parameters)
        return tabular_pipeline(schema, logistic, columns=columns, expansion=expansion)

    delta = {"delta": 1e-6}
    rate = {"base_rate": BASE_RATES[name]}
    return {
        "as it is": model(),
        "bounds ten times as wide": model({column: wider(each) for column, each in known.items()}),
        "straight lines": model(expansion="linear"),
        "a public base rate": model(**rate),
        "delta=1e-6": model(**delta),
        'columns="first"': model(first, "first"),
        "three columns": model(known, list(order[:3])),
        "first, base rate, delta": model(first, "first", **rate, **delta),
    }


def flag_as_category(known):
    if isinstance(known, dict) and known.get("flag"):
        return ["0", "1"]
    return known


def line(table, epsilon, repetition):
    """Return the AUC of each model on one split."""
    X, y, X_test, y_test = table.split(repetition)
    rows = np.random.default_rng(repetition).permutation(len(y))[:SIZE]
    fits = models(table.name, table.schema, epsilon, 1000 * repetition + 1)
    return {
        name: roc_auc_score(
            y_test,
            model.fit(X.iloc[rows][used(model)], y[rows]).predict_proba(X_test[used(model)])[:, 1],
        )
        for name, model in fits.items()
    }


def used(model):
    return list(model["encoder"].schema)


def report(results):
    """Return the table of the page: mean AUC, and the largest standard error of a difference."""
    results, keys = results[results["epsilon"] != 0.3], ["table", "epsilon"]
    means = results.drop(columns="repetition").groupby(keys).mean()
    names = means.columns
    differences = results[names].sub(results["as it is"], axis=0).groupby([results[key] for key in keys])
    errors = differences.sem().max()
    head = [
        "change",
        *(f"{name} {epsilon:g}" for name, epsilon in means.index),
        "± at most",
    ]
    rows = [
        [
            f"``{name}``" if "=" in name else name,
            *(f"{auc:.2f}"[1:] for auc in means[name]),
            error(errors[name]),
        ]
        for name in names
    ]
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (head, *rows):
        lines += [f"   {'*' if place == 0 else ' '} - {cell}".rstrip() for place, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def error(number):
    return f"{number:.3f}"[1:] if number else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the tables that no package brings")
    folder = parser.parse_args().data
    lines = [
        {
            "table": name,
            "epsilon": epsilon,
            "repetition": each,
            **line(load(name, folder), epsilon, each),
        }
        for name in ORDERS
        for epsilon in EPSILONS
        for each in range(REPETITIONS)
    ]
    results = pd.DataFrame(lines).round(4)
    results.to_csv(RESULTS, index=False)
    TABLE.write_text(report(results))


if __name__ == "__main__":
    main()

"""What ranges of numbers that are learned first gain or cost, on records that were held out.

Run ``python benchmarks/learned_ranges.py --data DIR``; the head of ``_tables.py`` says what to install
for the tables. It writes every fit into ``benchmarks/results/learned_ranges.csv``, and the means into
``doc/learned_ranges.inc``: the AUC of a classification, and R^2 of a regression. With and without
learned ranges models see the same splits of at most 20,000 rows.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from _tables import TABLES, load
from sklearn.metrics import r2_score, roc_auc_score
from weak_model import flag_as_category

from dpselect import DPHuberRegressor, DPLogisticRegression
from dpselect.preprocessing import tabular_pipeline

RESULTS = Path(__file__).parent / "results" / "learned_ranges.csv"
TABLE = Path(__file__).parents[1] / "doc" / "learned_ranges.inc"
SIZE, REPETITIONS = 20_000, 5
NAMES = ("magic", "adult", "credit", "churn", "houses", "wages")
BUDGETS = ((0.3, 0.0), (0.3, 1e-6), (1.0, 0.0), (1.0, 1e-6))


def score(table, epsilon, delta, ranges, repetition):
    """Return the AUC or R^2 of a model on one split."""
    X, y, X_test, y_test = table.split(repetition)
    rows = np.random.default_rng(repetition).permutation(len(y))[:SIZE]
    given = {"delta": delta, "random_state": 1000 * repetition + 1}
    if table.task == "classes":
        model = DPLogisticRegression(epsilon, classes=[0.0, 1.0], **given)
    else:
        model = DPHuberRegressor(epsilon, target_range=table.target_bounds, **given)
    schema = {column: flag_as_category(each) for column, each in table.schema.items()}
    model = tabular_pipeline(schema, model, ranges=ranges).fit(X.iloc[rows], y[rows])
    if table.task == "classes":
        return roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])
    return r2_score(y_test, model.predict(X_test))


def report(results):
    """Return the table of the page: the mean without ranges, and the gain with its standard error."""
    gains = results.assign(gain=results["auto"] - results["none"])
    groups = gains.groupby(["table", "epsilon", "delta"], sort=False)
    means, errors = groups[["none", "gain"]].mean(), groups["gain"].sem()
    budgets = [(epsilon, delta) for epsilon, delta in BUDGETS]
    heads = [f"{epsilon:g}, {'delta 1e-6' if delta else 'no delta'}" for epsilon, delta in budgets]
    lines = [".. list-table::", "   :header-rows: 1", ""]
    rows = [["table"] + heads]
    for name in NAMES:
        cells = [name if TABLES[name][0] == "classes" else f"{name} (R\\ :sup:`2`)"]
        for budget in budgets:
            mean, gain = means.loc[(name, *budget)]
            cells.append(f"{mean:.3f} {gain:+.3f} ± {errors.loc[(name, *budget)]:.3f}")
        rows.append(cells)
    for row in rows:
        lines += [f"   {'*' if place == 0 else ' '} - {cell}" for place, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the tables that no package brings")
    folder = parser.parse_args().data
    lines = []
    for name in NAMES:
        table = load(name, folder)
        for epsilon, delta in BUDGETS:
            for each in range(REPETITIONS):
                found = {
                    ranges or "none": score(table, epsilon, delta, ranges, each)
                    for ranges in (None, "auto")
                }
                lines.append(
                    {"table": name, "epsilon": epsilon, "delta": delta, "repetition": each, **found}
                )
    results = pd.DataFrame(lines).round({"none": 4, "auto": 4})
    results.to_csv(RESULTS, index=False)
    TABLE.write_text(report(results), encoding="utf-8")


if __name__ == "__main__":
    main()

"""How steep should the logistic loss be? AUC and Brier score of six tables, by its largest derivative.

Run ``python benchmarks/loss_derivative.py --data DIR`` with the tables of private_models.py. Printed are
differences from the usual loss (derivative 1), means over tables, splits and noise; all models but for
the derivative are those of `tabular_pipeline`.
"""

import argparse

import numpy as np
from _peers import column_kind
from _tables import load
from sklearn.metrics import brier_score_loss, roc_auc_score

from dpselect import DPLogisticRegression
from dpselect.preprocessing import tabular_pipeline

TABLES = ("credit", "affairs", "churn", "deaths", "magic", "adult")
EPSILONS, LARGEST = (0.1, 0.3, 1.0, 3.0, 10.0), (1.0, 0.9, 0.75, 0.6, 0.5)


def scores(name, folder, splits, draws):
    """Return AUC and Brier score of a table, shape (5, 5, 2)."""
    table = load(name, folder)
    schema = {
        column: ["0", "1"] if column_kind(entry).get("flag") else entry
        for column, entry in table.schema.items()
    }
    found = np.zeros((len(EPSILONS), len(LARGEST), 2))
    for split in range(splits):
        X_train, y_train, X_test, y_test = table.split(split)
        for i, epsilon in enumerate(EPSILONS):
            model = DPLogisticRegression(epsilon, classes=[0, 1])
            steps = tabular_pipeline(schema, model).bound(len(y_train))
            train = np.asarray(steps[0].fit_transform(X_train))
            test = np.asarray(steps[0].transform(X_test))
            for j, derivative in enumerate(LARGEST):
                for draw in range(draws):
                    seed = 1000 * split + draw
                    model = steps[1].set_params(max_derivative=derivative, random_state=seed)
                    predicted = model.fit(train, y_train).predict_proba(test)[:, 1]
                    found[i, j] += roc_auc_score(y_test, predicted), brier_score_loss(y_test, predicted)
    return found / (splits * draws)


def main():
    """Print the table of each table, and their mean."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR", help="folder of the .csv.gz files")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--draws", type=int, default=3, help="of noise, for each split")
    options = parser.parse_args()
    found = {name: scores(name, options.data, options.splits, options.draws) for name in TABLES}
    for name, each in {**found, "mean": np.mean(list(found.values()), axis=0)}.items():
        print(f"{name}: AUC, Brier score for derivatives {', '.join(map(str, LARGEST))}")
        for epsilon, row in zip(EPSILONS, each):
            more = [f"{auc:+.4f} {brier:+.4f}" for auc, brier in row[1:] - row[0]]
            print(f"  {epsilon:4g}  {row[0][0]:.4f} {row[0][1]:.4f}  " + "  ".join(more), flush=True)


if __name__ == "__main__":
    main()

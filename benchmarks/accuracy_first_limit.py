"""What the limit of AccuracyFirstSearchCV costs and saves: how often a search reaches its target.

50,000 generated records of 20 columns, a logistic regression with noise in
the objective or in the output, and targets for the risk and the Brier score that lie 2 to 60 % above
the least one. Each search runs with limits of 4 and 8 times what its plan expects, and without one.

    python benchmarks/accuracy_first_limit.py --searches 20
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline

from dpselect import AccuracyFirstSearchCV, DPLogisticRegression
from dpselect.metrics import get_score
from dpselect.model_selection.accuracy_first import limit as accuracy_limit
from dpselect.preprocessing import BoundedScaler

ALPHA = 0.01
GRID = {"dplogisticregression__epsilon": np.geomspace(0.001, 100, 500)}
SHARES = (1.02, 1.1, 1.3, 1.6)
TIMES = (4, 8, np.inf)


def model(perturbation, epsilon=1.0):
    """Return the pipeline of the README."""
    return make_pipeline(
        BoundedScaler((-5, 5)),
        DPLogisticRegression(
            epsilon, alpha=ALPHA, data_norm_l1=1.0, classes=[0, 1], perturbation=perturbation
        ),
    )


def least(X, y):
    """Return the least risk, and the Brier score of its model."""
    exact = model("output", np.inf).fit(X, y)
    rows = exact[0].transform(X)
    rows = rows / np.maximum(np.abs(rows).sum(axis=1, keepdims=True), 1)
    theta = np.append(exact[-1].coef_, exact[-1].intercept_)
    margins = np.where(y == 1, 1, -1) * (rows @ theta[:-1] + theta[-1])
    risk = np.logaddexp(0, -margins).mean() + ALPHA / 2 * theta @ theta
    return {"risk": risk, "brier": -get_score("brier")(exact, X, y)}


def main():
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=20, help="for each cell")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = make_classification(n_samples=50_000, random_state=0)
    best = least(X, y)
    print(
        "| noise, criterion, target / least | planned | "
        + " | ".join(f"{times} times: most, mean, reached" for times in TIMES)
        + " |"
    )
    print("| --- " * (2 + len(TIMES)) + "|")
    for perturbation in ("objective", "output"):
        for criterion, value in best.items():
            for share in SHARES:
                cells = []
                for times in TIMES:
                    accuracy_limit.TIMES_EXPECTED = times
                    search = AccuracyFirstSearchCV(
                        model(perturbation),
                        GRID,
                        target=share * value,
                        criterion=criterion,
                        on_failure="last",
                    )
                    runs = []
                    for _ in range(arguments.searches):
                        search.fit(X, y)
                        runs.append((search.privacy_.epsilon, search.reached_))
                    mean, reached = np.mean(runs, axis=0)
                    plan = search.plan_.chosen
                    cells.append(f"{plan.most:.3g}, {mean:.3g}, {reached:.2f}")
                print(
                    f"| {perturbation}, {criterion}, {share} | {plan.total:.3g} | "
                    + " | ".join(cells)
                    + " |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

"""How often intervals of coefficients hold, and how wide they are beside those without privacy.

    python benchmarks/coef_intervals.py --report doc/mechanisms/coef_intervals.inc

For each model, number of records that train (as many others tell how far coefficients are known)
and epsilon (of each part): the share of 95 % intervals that hold the coefficients of two million
records, the least and the mean one over the coefficients; the mean width, and that without privacy;
the share of the variance that is due to the noise of the model; and how often nothing is said.
Each cell is a line of ``results/coef_intervals.csv``, of which the last of a cell counts; the report
is the table of the page "Intervals of coefficients"; ``--repetitions 0`` writes it from what is there.
"""

import argparse
import csv
import itertools
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone

from dpselect import (
    DPHuberRegressor,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    coef_interval,
)
from dpselect.records.public_shape import PublicShape

TRUE = np.array([2.0, -1.0, 0.5, 0.0])
POPULATION = 2_000_000
# of a person, on average
ROWS = 3
# fits without privacy of which the width is a mean
EXACT = 10
# coverage is told where intervals are told in at least this share of repetitions
OFTEN = 0.2
RESULTS = Path(__file__).parent / "results" / "coef_intervals.csv"
FIELDS = [
    "model",
    "records",
    "epsilon",
    "repetitions",
    "least",
    "mean",
    "width",
    "exact",
    "noise_share",
    "silent",
]
MODELS = {
    "logistic": DPLogisticRegression(classes=[0, 1], alpha=0.001),
    "logistic, auto": DPLogisticRegression(classes=[0, 1]),
    "ridge, sums": DPRidge(target_range=(-2, 2), alpha=0.01),
    "ridge, objective": DPRidge(target_range=(-2, 2), alpha=0.01, perturbation="objective"),
    "huber": DPHuberRegressor(target_range=(-2, 2), alpha=0.001),
    "poisson": DPPoissonRegressor(target_bound=6.0, alpha=0.01),
    "logistic, weights": DPLogisticRegression(classes=[0, 1], alpha=0.001, max_sample_weight=3.0),
    "logistic, three classes": DPLogisticRegression(classes=[0, 1, 2], alpha=0.001),
    "logistic, persons": DPLogisticRegression(classes=[0, 1], alpha=0.001),
    "huber, persons": DPHuberRegressor(target_range=(-2, 2), alpha=0.001),
    "ridge, sums, persons": DPRidge(target_range=(-2, 2), alpha=0.01),
}


def records(name, n, rng):
    """Return rows of l2 norm up to 1 with columns that go together, labels, targets or counts, and what
    else `fit` is given, for n records or persons."""
    rows = rng.geometric(1 / ROWS, size=n) if "persons" in name else 1
    person = np.repeat(np.arange(n), rows)
    common = rng.normal(size=(n, 1))[person]
    X = np.tanh(0.5 * common + rng.normal(size=(len(person), len(TRUE)))) / 2
    z, given = X @ TRUE, {}
    if "persons" in name:
        # what rows of one person have in common
        z += rng.normal(size=n)[person]
        given["groups"] = person
    if "weights" in name:
        given["sample_weight"] = np.where(X[:, 0] + rng.normal(size=n) / 4 > 0, 3.0, 1.0)
    if "three" in name:
        scores = np.column_stack([0 * z, z, X[:, 3] - z / 2 - 1]) + rng.gumbel(size=(n, 3))
        return X, scores.argmax(axis=1), given
    if name.startswith("logistic"):
        return X, (z + rng.logistic(size=len(z)) > 1).astype(int), given
    if name == "poisson":
        return X, np.minimum(rng.poisson(np.exp(z / 2)), 6), given
    # errors that grow with a column
    return X, z / 2 + rng.normal(size=len(z)) * (0.2 + 0.3 * np.abs(X[:, 0])), given


def truth(name, model):
    """Return the coefficients of the population, with the same penalty."""
    X, y, given = records(name, POPULATION, np.random.default_rng(1))
    # the loss of a private model, which without noise has another default
    loss = {"max_derivative": model.largest_derivative} if name.startswith("logistic") else {}
    exact = clone(model).set_params(epsilon=float("inf"), **loss).fit(X, y, **given)
    return np.column_stack([np.atleast_2d(exact.coef_), np.ravel(exact.intercept_)]).ravel()


def interval(name, model, n, epsilon, rng):
    """Return the intervals of one fit."""
    (X, y, given), (others, labels, known) = (records(name, n, rng) for _ in range(2))
    fitted = clone(model).set_params(epsilon=epsilon).fit(X, y, **given)
    return coef_interval(fitted, others, labels, epsilon=epsilon, n_samples=n, **known)


def cell(name, model, n, epsilon, repetitions, true):
    """Return the columns of a cell: see FIELDS."""
    rng, d = np.random.default_rng(0), len(true)
    inside, widths, shares = np.full((3, repetitions, d), np.nan)
    for i in range(repetitions):
        found = interval(name, model, n, epsilon, rng)
        low, high = found.confidence_interval()
        widths[i], shares[i] = high - low, found.noise_share
        inside[i] = np.where(np.isnan(low), np.nan, (low <= true) & (true <= high))
    exact = [
        np.subtract(*interval(name, model, n, float("inf"), rng).confidence_interval()[::-1])
        for _ in range(EXACT)
    ]
    coverage = np.nanmean(inside, axis=0)
    figures = {
        "least": coverage.min(),
        "mean": coverage.mean(),
        "width": np.nanmean(widths, axis=0).mean(),
        "exact": np.mean(exact),
        "noise_share": np.nanmean(shares),
        "silent": np.isnan(widths).mean(),
    }
    return {name: f"{figure:.4f}" for name, figure in figures.items()}


def read(path):
    """Return the results, a dict from (model, records, epsilon) to a line; the last one counts."""
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (line["model"], int(line["records"]), float(line["epsilon"])): line
            for line in csv.DictReader(file)
        }


def report(results):
    """Return the table of the documentation."""
    head = [
        "model",
        "records",
        "epsilon",
        "repetitions",
        "least",
        "mean",
        "width",
        "without privacy",
        "noise share",
        "silent",
    ]
    rows = []
    for (name, n, epsilon), line in sorted(results.items(), key=lambda item: item[0]):
        seldom = float(line["silent"]) > 1 - OFTEN
        told = ["", ""] if seldom else [f"{float(line[part]):.3f}" for part in ("least", "mean")]
        told.append("" if seldom else f"{float(line['width']):.3g}")
        share = "" if seldom else f"{float(line['noise_share']):.2f}"
        rows.append(
            [
                name,
                f"{n:,}",
                f"{epsilon:g}",
                f"{int(line['repetitions']):,}",
                *told,
                f"{float(line['exact']):.3g}",
                share,
                f"{float(line['silent']):.3g}",
            ]
        )
    lines = ["   * - " + "\n     - ".join(row) for row in [head, *rows]]
    return "\n".join([".. list-table::", "   :header-rows: 1", "", *lines]).replace("- \n", "-\n") + "\n"


def main(arguments=None):
    """Run the cells that are asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--records", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", type=Path, help="write the table here")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.repetitions:
        run(options)
    if options.report:
        options.report.write_text(report(read(options.results)), encoding="utf-8")


def run(options):
    """Add a line to the results for each cell."""
    new = not options.results.exists()
    with options.results.open("a", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            lines.writeheader()
        for name in options.models:
            true = None
            for n, epsilon in itertools.product(options.records, options.epsilons):
                model = clone(MODELS[name])
                if model.alpha == "auto":
                    shape = PublicShape(n, len(TRUE))
                    model.set_params(alpha=model.calibration(shape, epsilon).alpha)
                if true is None or MODELS[name].alpha == "auto":
                    true = truth(name, model)
                found = cell(name, model, n, epsilon, options.repetitions, true)
                key = {"model": name, "records": n, "epsilon": epsilon}
                lines.writerow(key | {"repetitions": options.repetitions} | found)
                file.flush()


if __name__ == "__main__":
    main()

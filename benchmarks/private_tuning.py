"""Does tuning under differential privacy pay? Adult and MAGIC, by released models.

Run ``python benchmarks/private_tuning.py --data DIR``, where DIR holds ``adult.csv.gz``
and ``magic.csv.gz``; without ``--data`` both are downloaded from openml.org.

For each epsilon, on held-out records, AUC and Brier score (mean squared error of the
predicted probability) of

- not private: LogisticRegression, its C chosen by GridSearchCV, after the same steps;
- auto: DPLogisticRegression(alpha="auto") with the whole epsilon, nothing selected;
- CV13: StabilityGridSearchCV(strategy="stability") over the grid of Chaudhuri and Vinterbo
  (2013);
- geometric: the same over the public rule behind "auto", at the share of epsilon that is
  left for training, times 1/4, 1/2, 1, 2 and 4;
- base rate: the Brier score of always predicting the share of positives in training.

Each repetition shuffles the records by a fixed public seed, trains on four fifths and
draws fresh noise. Standard errors are over repetitions.
"""

import argparse
import math
import platform
import time
from collections import Counter

import joblib
import numpy as np
import pandas as pd
import scipy
import sklearn
from _data import load
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline

import dpselect
from dpselect import DPLogisticRegression, StabilityGridSearchCV

EPSILONS = (0.3, 0.5, 1.0, 2.0, 3.0, 5.0)
# for rows of norm at most 1; see grids()
CV13_ALPHAS = (0.001, 0.112, 0.223, 0.334, 0.445, 0.556, 0.667, 0.778, 0.889, 1.0)
RULE_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
# of epsilon, in a search by stability over alpha
TRAINING_SHARE = 0.9
NON_PRIVATE_C = (0.01, 0.1, 1.0, 10.0, 100.0)
GRIDS = ("CV13", "geometric")
METHODS = ("not private", "auto", *GRIDS)
SPLIT_SEED = 20130


def grids(data, n_samples, epsilon):
    """Return both grids of alpha, from public numbers alone.

    CV13's alphas are for rows of norm at most 1. Rows that are longer by a factor c pose
    the same problem with c^2 alpha.

    Parameters
    ----------
    data : Data
    n_samples : int
        Number of training records.
    epsilon : float
        Privacy loss of selection and training together.

    Returns
    -------
    dict of str to dict
        For each grid the multiples by which it is known, and its alphas.
    """
    n_columns = data.steps().fit_transform(data.example).shape[1]
    unit = data.data_norm**2
    # the rule of alpha="auto", R^2 d / (5 n epsilon), where R^2 and d count the constant
    rule = (unit + 1) * (n_columns + 1) / (5 * n_samples * TRAINING_SHARE * epsilon)
    return {
        "CV13": {value: unit * value for value in CV13_ALPHAS},
        "geometric": {value: rule * value for value in RULE_FACTORS},
    }


def model(data, epsilon=1.0):
    """Return the Pipeline of public steps and a private model."""
    classifier = DPLogisticRegression(epsilon, data_norm=data.data_norm, classes=[0, 1])
    return Pipeline([("prepare", data.steps()), ("model", classifier)])


def search(data, alphas, epsilon):
    """Return the private search over `alphas`."""
    return StabilityGridSearchCV(
        model(data),
        {"model__alpha": list(alphas)},
        epsilon=epsilon,
        strategy="stability",
        n_jobs=1,
        # signed_log works on each number by itself
        trusted_steps=["functiontransformer"],
    )


def non_private(data, X, y, seed):
    """Tune and fit LogisticRegression without privacy.

    Parameters
    ----------
    data : Data
    X : DataFrame
    y : ndarray
    seed : int
        For the folds.

    Returns
    -------
    Pipeline
        Fitted. The steps treat each row by itself, so all folds share their result.
    """
    steps = data.steps()
    tuned = GridSearchCV(
        LogisticRegression(solver="newton-cholesky", max_iter=1000),
        {"C": NON_PRIVATE_C},
        scoring="neg_brier_score",
        cv=KFold(5, shuffle=True, random_state=seed),
    ).fit(steps.fit_transform(X), y)
    return Pipeline([("prepare", steps), ("model", tuned.best_estimator_)])


def split(data, repetition):
    """Return X_train, X_test, y_train, y_test: a shuffled fifth is held out."""
    order = np.random.default_rng([SPLIT_SEED, repetition]).permutation(len(data.y))
    test, train = np.split(order, [len(order) // 5])
    return data.X.iloc[train], data.X.iloc[test], data.y[train], data.y[test]


def evaluate(fitted, X, y):
    """Return AUC and Brier score of a fitted classifier."""
    probability = fitted.predict_proba(X)[:, 1]
    return {"AUC": roc_auc_score(y, probability), "Brier": brier_score_loss(y, probability)}


def repeat(data, repetition, epsilons):
    """Run one repetition.

    Parameters
    ----------
    data : Data
    repetition : int
        Its number; decides the split, but not the noise.
    epsilons : sequence of float

    Returns
    -------
    list of dict
        One row for each method and epsilon (nan where there is none).
    """
    X, X_test, y, y_test = split(data, repetition)

    def row(method, epsilon=math.nan, fitted=None, **more):
        more.update(evaluate(fitted, X_test, y_test) if fitted is not None else {})
        return {
            "data": data.name,
            "repetition": repetition,
            "method": method,
            "epsilon": epsilon,
            **more,
        }

    base_rate = brier_score_loss(y_test, np.full(len(y_test), y.mean()))
    rows = [
        row("base rate", AUC=0.5, Brier=base_rate),
        row("not private", fitted=non_private(data, X, y, repetition)),
    ]
    for epsilon in epsilons:
        rows.append(row("auto", epsilon, model(data, epsilon).fit(X, y)))
        for name, grid in grids(data, len(y), epsilon).items():
            start = time.perf_counter()
            fitted = search(data, grid.values(), epsilon).fit(X, y)
            seconds = time.perf_counter() - start
            chosen = list(grid)[fitted.best_index_]
            rows.append(row(name, epsilon, fitted, chosen=chosen, seconds=seconds))
    return rows


def plan_line(data, name, epsilon):
    """Return what ``plan`` says of a selection's power, in one sentence.

    Parameters
    ----------
    data : Data
    name : str
        Which of the grids.
    epsilon : float

    Returns
    -------
    str
    """
    n_samples = len(data.y) - len(data.y) // 5
    alphas = grids(data, n_samples, epsilon)[name].values()
    plan = search(data, alphas, epsilon).plan(n_samples, data.example.shape[1], example=data.example)
    return next(text for text in plan.messages if "underpowered" in text or "distinguished" in text)


def mean_and_error(values, form="{:.4f} ({:.4f})"):
    """Return the mean of `values` and its standard error as text."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return form.format(values.mean(), error)


def markdown(header, rows):
    """Return a Markdown table whose columns are aligned in plain text too."""
    cells = [list(map(str, line)) for line in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in cells
    )


def score_table(results, metric, epsilons):
    """Return one line for each epsilon, one column for each method."""
    lines = []
    for epsilon in epsilons:
        line = [f"{epsilon:g}"]
        for method in METHODS:
            rows = results[results["method"] == method]
            if method != "not private":
                rows = rows[rows["epsilon"] == epsilon]
            line.append(mean_and_error(rows[metric]))
        base_rate = results.loc[results["method"] == "base rate", metric]
        lines.append([*line, mean_and_error(base_rate)])
    return markdown([f"epsilon ({metric})", *METHODS, "base rate"], lines)


def selection_table(data, results, epsilons):
    """Return one line for each grid and epsilon: what the selection did, beside "auto".

    Parameters
    ----------
    data : Data
    results : DataFrame
        Rows of :func:`repeat` for this data set.
    epsilons : sequence of float

    Returns
    -------
    str
    """
    lines = []
    indexed = results.set_index(["method", "epsilon", "repetition"]).sort_index()
    for name in GRIDS:
        for epsilon in epsilons:
            ours, auto = indexed.loc[(name, epsilon)], indexed.loc[("auto", epsilon)]
            gain = auto["Brier"] - ours["Brier"]
            counts = sorted(Counter(ours["chosen"]).items())
            lines.append(
                [
                    name,
                    f"{epsilon:g}",
                    mean_and_error(gain, "{:+.4f} ({:.4f})"),
                    f"{(gain > 0).mean():.0%}",
                    ", ".join(f"{value:g}: {count}" for value, count in counts),
                    plan_line(data, name, epsilon),
                ]
            )
    header = ["grid", "epsilon", "Brier: auto - grid", "runs better than auto", "chosen: runs", "plan()"]
    return markdown(header, lines)


def report(data, results, epsilons):
    """Return the section of one data set.

    Parameters
    ----------
    data : Data
    results : DataFrame
        Rows of :func:`repeat` for this data set.
    epsilons : sequence of float

    Returns
    -------
    str
    """
    n_test = len(data.y) // 5
    n_columns = data.steps().fit_transform(data.example).shape[1]
    seconds = results.groupby("method")["seconds"].median()
    timing = ", ".join(f"{name} {seconds[name]:.1f} s" for name in GRIDS)
    return "\n\n".join(
        [
            f"## {data.name}",
            (
                f"{len(data.y) - n_test} training records, {n_test} held out, {n_columns} columns after "
                f"the steps, data_norm {data.data_norm:.3g}, {results['repetition'].nunique()} "
                f"repetitions; means with standard errors. Median time of one search: {timing}."
            ),
            "AUC, greater is better:",
            score_table(results, "AUC", epsilons),
            "Brier score, less is better:",
            score_table(results, "Brier", epsilons),
            (
                "The selections. A positive difference from auto means that selecting paid. CV13's "
                "alphas are those for rows of norm 1; the geometric grid's are multiples of the public "
                "rule."
            ),
            selection_table(data, results, epsilons),
        ]
    )


def versions():
    """Return the versions that matter, in one line."""
    modules = (dpselect, sklearn, np, scipy, pd, joblib)
    named = [f"{module.__name__} {module.__version__}" for module in modules]
    return ", ".join([f"Python {platform.python_version()}", *named])


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", help="directory of the .csv.gz files")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="2 repetitions")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--jobs", type=int, default=2, help="processes that share repetitions")
    parser.add_argument("--output", metavar="FILE", help="write the report here too")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the benchmark and print its report."""
    options = parse(arguments)
    start = time.perf_counter()
    repetitions = 2 if options.quick else options.repetitions
    sets = [load(name, options.data) for name in ("adult", "magic")]
    rows = Parallel(n_jobs=options.jobs)(
        delayed(repeat)(data, repetition, options.epsilons)
        for data in sets
        for repetition in range(repetitions)
    )
    results = pd.DataFrame([row for part in rows for row in part])
    sections = ["# Private tuning: does selecting pay?"]
    sections += [report(data, results[results["data"] == data.name], options.epsilons) for data in sets]
    taken = time.perf_counter() - start
    sections.append(f"{versions()}. Took {taken:.0f} s with {options.jobs} jobs.")
    text = "\n\n".join(sections) + "\n"
    print(text)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()

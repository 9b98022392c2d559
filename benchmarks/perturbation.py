"""Output against objective perturbation on Adult and KDD-99, after Chaudhuri et al. (2011).

Run ``python benchmarks/perturbation.py --data DIR``, where DIR holds ``adult.csv.gz`` and
``kddcup99_10percent.csv.gz``; without ``--data`` both are downloaded. ``--output-dir``
writes the report, ``perturbation.md``, and the figure, ``perturbation.png``.

For DPLogisticRegression and DPLinearSVC, the share of held-out records that are
misclassified, over epsilon at all training records, and over the number n of training
records at one epsilon, of

- output: the noise is added to the coefficients;
- objective: the noise is added to what is minimised;
- no privacy: epsilon = inf at the same alpha, so that what is lost to regularisation can
  be told from what is lost to noise;

each with alpha="auto", which falls as n and epsilon grow, and with one fixed alpha, 0.01
times the squared norm. Both are public: nothing is chosen by looking at errors. Beside
them, no privacy at its own alpha (that of alpha="auto" at epsilon = inf), and the class
that most training records have.

Of KDD-99's 10 % file, 70,000 records are drawn in each repetition, as many as Chaudhuri,
Monteleoni and Sarwate used, and they are normal or an attack. 70 % of the file repeats
earlier records, so that many held-out records are among the training records too; the
benchmark runs on the file as it is, and on the file without duplicates.

Each repetition shuffles the records by a fixed public seed, trains on four fifths and
draws fresh noise, twice for each private model. Smaller n are the first of the same
training records. Standard errors are over repetitions, of the means of both.
"""

import argparse
import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from _data import load, without_duplicates
from _together import fitted_together
from joblib import Parallel, delayed
from private_tuning import markdown, mean_and_error, versions

from dpselect import DPLinearSVC, DPLogisticRegression
from dpselect.base.estimator import Trial
from dpselect.linear_model.calibration import public_alpha

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SIZE_EPSILON = 0.1
SIZES = (1000, 2000, 5000, 10_000, 20_000)  # and all training records
MAX_RECORDS = 70_000
DRAWS = 2
FIXED_ALPHA = 0.01  # for rows of norm at most 1
MODELS = {"logistic regression": DPLogisticRegression, "linear SVC": DPLinearSVC}
PERTURBATIONS = ("output", "objective", "no privacy")
ALPHAS = ("auto", "fixed")
SPLIT_SEED = 20110
ERROR_TICKS = (1, 2, 3, 5, 10, 15, 20, 30, 50)  # percent
# Okabe and Ito's colours, distinguished by colour-blind readers too
COLOURS = {"output": "#D55E00", "objective": "#0072B2", "no privacy": "#000000"}


def draw(data, repetition, n_records):
    """Return the data set with at most `n_records` of its records, shuffled."""
    order = np.random.default_rng([SPLIT_SEED, repetition]).permutation(len(data.y))[:n_records]
    return replace(data, X=data.X.iloc[order], y=data.y[order])


def models(name, data_norm, n_samples, n_columns, epsilons):
    """Return all classifiers that are trained on the same records.

    Parameters
    ----------
    name : str
        Of the model.
    data_norm : float
    n_samples, n_columns : int
        Training records, and columns after the steps.
    epsilons : sequence of float

    Returns
    -------
    list of dict of (str, str, float, int) to classifier
        By perturbation, kind of alpha, epsilon, and number of the noise sample. Those in one dict
        have about the same alpha. Without privacy the epsilon is that of the private models
        with the same alpha, or ``inf`` for an alpha of its own.
    """

    def make(where, epsilon, alpha):
        if where == "no privacy":
            return MODELS[name](math.inf, alpha=alpha, data_norm=data_norm, classes=[0, 1])
        return MODELS[name](
            epsilon, alpha=alpha, perturbation=where, data_norm=data_norm, classes=[0, 1]
        )

    radius, loss = math.hypot(data_norm, 1), MODELS[name]().problem().loss
    alike = {}
    for epsilon in (*epsilons, math.inf):
        auto = public_alpha(loss, "objective", n_samples, n_columns + 1, radius, epsilon)
        alike[epsilon] = {("no privacy", "auto", epsilon, 0): make("no privacy", epsilon, auto)}
    alike["fixed"] = {}
    for epsilon in epsilons:
        fixed = FIXED_ALPHA * data_norm**2
        alike["fixed"]["no privacy", "fixed", epsilon, 0] = make("no privacy", epsilon, fixed)
        for where in ("output", "objective"):
            for k in range(DRAWS):
                alike[epsilon][where, "auto", epsilon, k] = make(where, epsilon, "auto")
                alike["fixed"][where, "fixed", epsilon, k] = make(where, epsilon, fixed)
    return list(alike.values())


def repeat(data, repetition):
    """Run one repetition on one data set.

    Parameters
    ----------
    data : Data
        Its records are those of this repetition, held-out records first.
    repetition : int

    Returns
    -------
    list of dict
        One row for each classifier and number of records.
    """
    n_test = len(data.y) // 5
    # the steps treat each row by itself, so they may as well see all of them
    X_test, X = np.split(data.steps().fit_transform(data.X), [n_test])
    y_test, y = np.split(data.y, [n_test])
    keys = pd.util.hash_pandas_object(data.X, index=False)
    seen = np.isin(keys[:n_test], keys[n_test:]).mean()
    rows = []
    for n in [*(size for size in SIZES if size < len(y)), len(y)]:
        place = {
            "data": data.name,
            "repetition": repetition,
            "n": n,
            "columns": X.shape[1],
            "seen": seen,
        }
        majority = int(y[:n].mean() > 0.5)
        rows.append({**place, "perturbation": "majority", "error": (y_test != majority).mean()})
        epsilons = EPSILONS if n == len(y) else (SIZE_EPSILON,)
        for name in MODELS:
            for alike in models(name, data.data_norm, n, X.shape[1], epsilons):
                start = time.perf_counter()
                trials = [Trial(model, model.epsilon) for model in alike.values()]
                trained = fitted_together(trials, X[:n], y[:n])
                seconds = (time.perf_counter() - start) / len(alike)
                rows += [
                    {
                        **place,
                        "model": name,
                        "perturbation": where,
                        "alpha": kind,
                        "epsilon": epsilon,
                        "error": (fitted.predict(X_test) != y_test).mean(),
                        "seconds": seconds,
                    }
                    for (where, kind, epsilon, _), fitted in zip(alike, trained)
                ]
    return rows


def percent(errors, form="{:.2f} ({:.2f})"):
    """Return mean and standard error in percent, as text."""
    return mean_and_error(100 * np.asarray(errors), form)


def sweep(results, over):
    """Return the rows of one sweep.

    Parameters
    ----------
    results : DataFrame
        Rows of one data set and one model.
    over : {"epsilon", "n"}

    Returns
    -------
    DataFrame
    """
    if over == "epsilon":
        return results[results["n"] == results["n"].max()]
    return results[results["epsilon"] == SIZE_EPSILON]


def error_table(results, over):
    """Return one line for each epsilon or n.

    Parameters
    ----------
    results : DataFrame
        Rows of one data set and one model.
    over : {"epsilon", "n"}

    Returns
    -------
    str
    """
    rows = sweep(results, over)
    rows = rows[np.isfinite(rows["epsilon"])]
    errors = rows.pivot_table(
        index=[over, "repetition"], columns=["alpha", "perturbation"], values="error"
    )
    lines = []
    for value, part in errors.groupby(level=0):
        line = [f"{value:g}" if over == "epsilon" else f"{value:,}"]
        for kind in ALPHAS:
            line += [percent(part[kind, where]) for where in PERTURBATIONS]
            line.append(percent(part[kind, "output"] - part[kind, "objective"], "{:+.2f} ({:.2f})"))
        lines.append(line)
    header = [f"{name}, {kind}" for kind in ALPHAS for name in (*PERTURBATIONS, "output - objective")]
    return markdown([over, *header], lines)


def report(data, results):
    """Return the section of one data set.

    Parameters
    ----------
    data : Data
    results : DataFrame
        Rows of :func:`repeat` for this data set.

    Returns
    -------
    str
    """
    full = results[results["n"] == results["n"].max()]
    n, columns = full.iloc[0][["n", "columns"]]
    majority = full[full["perturbation"] == "majority"]
    sections = [
        f"## {data.name}",
        (
            f"{n:,} training records, {columns} columns after the steps, data_norm "
            f"{data.data_norm:.3g}, {full['repetition'].nunique()} repetitions. "
            f"{majority['seen'].mean():.1%} of the held-out records equal a training record. The "
            f"most frequent class errs on {percent(majority['error'])} %."
        ),
    ]
    for name in MODELS:
        part = results[results["model"] == name]
        own = full[(full["model"] == name) & np.isinf(full["epsilon"])]
        sections += [
            f"### {data.name}, {name}",
            (
                f"Without privacy and at its own alpha the error is {percent(own['error'])} % "
                f"({own['seconds'].median():.1f} s a fit). In percent over epsilon, n = {n:,}:"
            ),
            error_table(part, "epsilon"),
            f"Over n, epsilon = {SIZE_EPSILON:g}:",
            error_table(part, "n"),
        ]
    return "\n\n".join(sections)


def panel(axes, results, over):
    """Draw one panel.

    Parameters
    ----------
    axes : matplotlib Axes
    results : DataFrame
        Rows of one data set and one model, and of the majority class.
    over : {"epsilon", "n"}
    """
    rows = sweep(results, over)
    lines = {"output": "s", "objective": "o", "no privacy": "None"}
    for where, marker in lines.items():
        for kind in ALPHAS:
            chosen = rows[(rows["perturbation"] == where) & (rows["alpha"] == kind)]
            chosen = chosen[np.isfinite(chosen["epsilon"])]
            errors = 100 * chosen.groupby([over, "repetition"])["error"].mean()
            errors = errors.groupby(over)
            axes.errorbar(
                errors.mean().index,
                errors.mean(),
                errors.sem(),
                color=COLOURS[where],
                marker=marker,
                markersize=5,
                linewidth=1.3,
                elinewidth=1,
                capsize=2.5,
                linestyle="-" if kind == "auto" else "--",
                markerfacecolor=COLOURS[where] if kind == "auto" else "white",
                label=f"{where}, alpha {kind}",
            )
    majority = results[results["perturbation"] == "majority"]
    majority = majority[majority["n"] == majority["n"].max()]["error"].mean()
    axes.axhline(100 * majority, color="0.5", linewidth=1.3, linestyle=":", label="majority class")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    ticks = (0.01, 0.1, 1) if over == "epsilon" else (1000, 10_000)
    axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.set_xticks(sorted(set(rows[over]) - set(ticks) - {math.inf}), [], minor=True)


def figure(data_sets, results, path):
    """Draw error over epsilon and over n, one column for each data set and model.

    Parameters
    ----------
    data_sets : list of Data
    results : DataFrame
        Rows of :func:`repeat`.
    path : Path
        Of the PNG file.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 11
    columns = [(data.name, model) for data in data_sets for model in MODELS]
    size = (2.7 * len(columns), 6.2)
    fig, grid = plt.subplots(2, len(columns), figsize=size, layout="constrained")
    for (name, model), column in zip(columns, grid.T):
        rows = results[(results["data"] == name)]
        rows = rows[(rows["model"] == model) | (rows["perturbation"] == "majority")]
        column[0].set_title(f"{name}\n{model}", fontsize=11)
        for axes, over in zip(column, ("epsilon", "n")):
            panel(axes, rows, over)
            axes.set_xlabel(
                f"epsilon (n = {rows['n'].max():,})"
                if over == "epsilon"
                else f"n (epsilon = {SIZE_EPSILON:g})"
            )
    for data in data_sets:  # one scale for all panels of a data set
        same = [i for i, (name, _) in enumerate(columns) if name == data.name]
        low, high = np.transpose([axes.get_ylim() for axes in grid[:, same].flat])
        for axes in grid[:, same].flat:
            axes.set_yticks(ERROR_TICKS, [f"{tick:g}" for tick in ERROR_TICKS])
            axes.set_ylim(low.min(), min(high.max(), 100))  # ticks outside are not drawn
    for axes in grid[:, 0]:
        axes.set_ylabel("error on held-out records, %")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: labels[i] == "majority class")
    fig.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    fig.savefig(path, dpi=150)


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", help="directory of the .csv.gz files")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--output-dir", metavar="DIR", help="write report and figure here")
    parser.add_argument("--quick", action="store_true", help="2 repetitions, 20,000 records")
    parser.add_argument("--jobs", type=int, default=2, help="processes that share repetitions")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the benchmark, print its report and draw its figure."""
    options = parse(arguments)
    start = time.perf_counter()
    repetitions, n_records = options.repetitions, MAX_RECORDS
    if options.quick:
        repetitions, n_records = 2, 20_000
    kdd = load("kdd", options.data)
    data_sets = [load("adult", options.data), kdd, without_duplicates(kdd)]
    rows = Parallel(n_jobs=options.jobs)(
        delayed(repeat)(draw(data, repetition, n_records), repetition)
        for data in data_sets
        for repetition in range(repetitions)
    )
    results = pd.DataFrame([row for part in rows for row in part])
    sections = ["# Output and objective perturbation"]
    sections += [report(data, results[results["data"] == data.name]) for data in data_sets]
    sections.append(f"{versions()}. Took {time.perf_counter() - start:.0f} s with {options.jobs} jobs.")
    text = "\n\n".join(sections) + "\n"
    print(text)
    if options.output_dir:
        directory = Path(options.output_dir)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "perturbation.md").write_text(text, encoding="utf-8")
        figure([data_sets[0], data_sets[2]], results, directory / "perturbation.png")


if __name__ == "__main__":
    main()

"""Reusing a holdout set: stepwise regression, and the experiment of the source of Thresholdout.

Run ``python benchmarks/reusable_holdout.py``; no data is needed. ``--quick`` does less,
``--figures DIR`` draws three figures.

Part 1 is the experiment of N. Zumel, *A Simpler Explanation of Differential Privacy*, Win-Vector
blog, 2015: y is -1 or 1, equally likely, x_j is normal with mean 0.1 y for ten signal variables
and mean 0 for a hundred others, variance 1; 1,000 training and 1,000 holdout records, and 10,000
fresh ones that no method sees. Fifty forward steps of logistic regression without penalty; each
takes the candidate with the largest answer about its improvement:

- training only: its improvement on the training records; the holdout set is not used;
- naive: its improvement on the holdout records;
- heuristic: the article's. With e = 0.04, if the two improvements are within e / 2, that on the
  training records with Laplace noise of scale e / 2; else that on the holdout records with noise of
  scale e. The threshold is fixed and the number of answers is not limited: no epsilon is finite.
- Thresholdout: ``ThresholdoutFeatureSelector``, with an epsilon;
- naive, 10,000: naive, with 10,000 holdout records;
- heuristic, no noise: the same threshold, and answers without noise;
- clipped, listed first / clipped, shuffled: the article's rule at e = 0, which is the naive
  improvement cut off at 0, with the signal variables first in the list or the list shuffled;
- heuristic, normal noise: with normal noise of the same standard deviations, as the code that was
  published with Thresholdout draws normal noise;
- bootstrap: the improvement on a bootstrap sample of the holdout records, a new one for each question
  (an idea of the article's comments);
- all records: no holdout set; training and holdout records together train, and the largest improvement
  on them is taken;
- all records, AIC: the same with Akaike's criterion, which is the likelihood among candidates of one
  size; it ends where no step lowers it.

All but "clipped, listed first" shuffle the candidates at each step, and all but "clipped" leave
answers as they are.

Part 2 is the experiment of Dwork et al. (2015): 10,000 records and 10,000 variables, none or twenty
of them weakly correlated with y (shift 6 / sqrt(n)). The classifier is the sign of the sum, with
signs, of the k variables with the largest training correlation whose correlations on both sets have
one sign and are at least 1 / sqrt(n). It is simulated exactly without the variables: X_j'y is
normal, and given X_j'y = c, y X_j is c / n plus normal noise whose mean was taken off. Fresh
accuracy is computed.

Standard errors are over repetitions, in brackets.
"""

import argparse
import math
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
import sklearn
from _holdout_tolerance import (
    answer_deviation,
    counting_deviation,
    privacy_deviation,
    published_tolerance,
)
from joblib import Parallel, delayed
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import dpselect
from dpselect import BudgetExceededError, ThresholdoutFeatureSelector
from dpselect.holdout.feature_selector import forward_selection
from dpselect.mechanisms.reusable_holdout import ReusableHoldout

DATA_SEED = 20150
BETA = 0.05

# part 1
N, N_LARGE, N_FRESH, N_SIGNAL, N_NOISE, SHIFT, STEPS = 1000, 10_000, 10_000, 10, 100, 0.1, 50
ARTICLE = 0.04
GUARANTEE = {"threshold": 0.2, "noise_rate": 0.01, "budget": 30}
METHODS = (
    "training only",
    "naive",
    "heuristic",
    "Thresholdout",
    "naive, 10,000",
    "heuristic, no noise",
    "clipped, listed first",
    "clipped, shuffled",
    "heuristic, normal noise",
    "bootstrap",
    "all records",
    "all records, AIC",
)
TOGETHER = METHODS[-2:]
# an independent replication's: signal variables, fresh accuracy, holdout minus fresh
REPLICATION = {
    "naive": (3.8, 0.561, 0.061),
    "heuristic": (7.6, 0.582, 0.005),
    "naive, 10,000": (9.4, 0.607, 0.013),
}
# names of the sets in the tables
SETS = ("training", "holdout", "fresh")

# part 2
N_DWORK = 10_000
SIZES = (10, 20, 50, 100, 200, 300, 400, 500)
# a product y x_j is cut off at +-4, so that one record's has a width of 8
CUT = 4.0
DWORK = {"threshold": 0.15 / (2 * CUT), "noise_rate": 0.005 / (2 * CUT), "budget": 20}
# Okabe and Ito's colours
COLOURS = {"training": "#009E73", "holdout": "#D55E00", "fresh": "#0072B2"}
MARKS = {"training": "o", "holdout": "^", "fresh": "s"}


# --- part 1: stepwise regression


def draw(rng, n):
    """Return `n` records of the article's experiment."""
    y = rng.choice([-1, 1], size=n)
    X = rng.normal(size=(n, N_SIGNAL + N_NOISE))
    X[:, :N_SIGNAL] += SHIFT * y[:, None]
    # columns are what is taken from it
    return np.asfortranarray(X), y


def logistic():
    """Return the model of all methods: no penalty."""
    return LogisticRegression(C=np.inf)


def right(model, columns, X, y):
    """Return the share of records that a model of these columns predicts right."""
    # (predict() would check them each time)
    positive = model.coef_[0] @ X.T[columns] + model.intercept_[0] > 0
    return float(np.mean(positive == (y > 0)))


def log_likelihood(model, columns, X, y):
    """Return the log-likelihood of a model of these columns."""
    margins = y * (model.coef_[0] @ X.T[columns] + model.intercept_[0])
    return -float(np.logaddexp(0, -margins).sum())


def article_rule(draw):
    """Return the article's heuristic as an answer to a question; draw(scale=) makes its noise."""

    def answer(train, held, _):
        if abs(train - held) <= ARTICLE / 2:
            return train + draw(scale=ARTICLE / 2)
        return held + draw(scale=ARTICLE)

    return answer


def rules(rng):
    """Return the answer of each method but Thresholdout."""
    return {
        "training only": lambda train, held, _: train,
        "naive": lambda train, held, _: held,
        "heuristic": article_rule(rng.laplace),
        "naive, 10,000": lambda train, held, _: held,
        "heuristic, no noise": article_rule(lambda scale: 0.0),
        # a Laplace variable has a standard deviation of sqrt(2) scales
        "heuristic, normal noise": article_rule(lambda scale: rng.normal(scale=math.sqrt(2) * scale)),
        "bootstrap": lambda train, held, _: held,
        "all records": lambda train, held, _: train,
        "all records, AIC": lambda train, held, _: train,
        "clipped, listed first": lambda train, held, _: max(0.0, held),
        "clipped, shuffled": lambda train, held, _: max(0.0, held),
    }


def select(method, sets, rng):
    """Return the chosen columns in order, the epsilon, and how often the holdout set was used."""
    (X, y), (X_held, y_held) = sets["training"], sets["holdout"]
    if method == "Thresholdout":
        selector = ThresholdoutFeatureSelector(
            logistic(),
            n_features_to_select=STEPS,
            cv=[(range(N), range(N, N + len(y_held)))],
            public_splits=True,
            **GUARANTEE,
        )
        with warnings.catch_warnings():
            # where the budget ends is told below
            warnings.simplefilter("ignore", UserWarning)
            selector.fit(np.concatenate([X, X_held]), np.concatenate([y, y_held]))
        return selector.order_, selector.privacy_.epsilon, selector.uses_

    if method in TOGETHER:
        X, y = np.concatenate([X, X_held]), np.concatenate([y, y_held])
    quality = log_likelihood if method == "all records, AIC" else right

    def scores(candidates):
        found = []
        for columns in candidates:
            model = logistic().fit(X[:, columns], y)
            seen = rng.integers(len(y_held), size=len(y_held)) if method == "bootstrap" else slice(None)
            held = right(model, columns, X_held[seen], y_held[seen])
            found.append((quality(model, columns, X, y), held))
        return found

    order = np.asarray if method == "clipped, listed first" else rng.permutation
    chosen, improvements = forward_selection(
        scores, rules(rng)[method], X.shape[1], STEPS, width=1.0, permutation=order
    )
    if method == "all records, AIC":
        # one parameter more must gain more than 1; the first is relative to no model at all
        no_gain = 1 + np.flatnonzero(np.asarray(improvements[1:]) <= 1)
        chosen = chosen[: no_gain[0]] if len(no_gain) else chosen
    return np.array(chosen), math.inf, None


def step_run(method, repetition):
    """Run one method on the data of one repetition; return one row for each number of variables."""
    data = np.random.default_rng([DATA_SEED, repetition])
    sets = {"training": draw(data, N), "holdout": draw(data, N), "fresh": draw(data, N_FRESH)}
    large = draw(data, N_LARGE)
    if method == "naive, 10,000":
        sets["holdout"] = large
    rng = np.random.default_rng([DATA_SEED, repetition, METHODS.index(method)])
    start = time.perf_counter()
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        chosen, epsilon, uses = select(method, sets, rng)
    seconds = time.perf_counter() - start
    rows = []
    X, y = sets["training"]
    if method in TOGETHER:
        X, y = (np.concatenate([sets["training"][i], sets["holdout"][i]]) for i in (0, 1))
    for k in range(1, len(chosen) + 1):
        columns = chosen[:k]
        model = logistic().fit(X[:, columns], y)
        accuracy = {name: right(model, columns, *part) for name, part in sets.items()}
        rows.append(
            {
                "method": method,
                "repetition": repetition,
                "variables": k,
                "signal": int(np.sum(columns < N_SIGNAL)),
                **accuracy,
                "epsilon": epsilon,
                "uses": uses,
                "seconds": seconds,
            }
        )
    return rows


def mean_and_error(values, digits=3):
    """Return "mean (standard error)"."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():.{digits}f} ({error:.{digits}f})"


def markdown(header, lines):
    """Return a table."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def at_size(rows, size):
    """Return the row of each run at a number of variables, or at its last one before."""
    return rows[rows["variables"] <= size].groupby("repetition").last()


def at_best(rows):
    """Return the row of each run at which the holdout accuracy is best, the first of equals."""
    return rows.loc[rows.groupby("repetition")["holdout"].idxmax()]


CONVENTIONS = {
    "at the best holdout accuracy": at_best,
    "after 10": lambda rows: at_size(rows, 10),
    "after 20": lambda rows: at_size(rows, 20),
    f"after {STEPS}": lambda rows: at_size(rows, STEPS),
}


def step_table(results, convention):
    """Return one line for each method."""
    lines = []
    for method, rows in results.groupby("method", sort=False):
        rows = CONVENTIONS[convention](rows)
        lines.append(
            [
                method,
                f"{rows['variables'].mean():.1f}",
                mean_and_error(rows["signal"], 1),
                *(mean_and_error(rows[name]) for name in SETS),
                mean_and_error(rows["holdout"] - rows["fresh"]),
            ]
        )
    header = ["method", "variables", "signal variables", *SETS, "holdout - fresh"]
    return markdown(header, lines)


def replication_table(results):
    """Return our numbers beside those of an independent replication, by convention."""
    lines = []
    for convention, at in CONVENTIONS.items():
        for method, theirs in REPLICATION.items():
            rows = at(results[results["method"] == method])
            ours = rows["signal"], rows["fresh"], rows["holdout"] - rows["fresh"]
            line, agree = [convention, method], []
            for values, other, digits in zip(ours, theirs, (1, 3, 3)):
                values = values.astype(float)
                # the replication's error is about as large as ours
                error = values.std(ddof=1) * math.sqrt(2 / len(values))
                agree.append(abs(values.mean() - other) <= 2 * error)
                line += [mean_and_error(values, digits), f"{other:.{digits}f}"]
            lines.append([*line, f"{sum(agree)} of 3"])
    header = [
        "convention",
        "method",
        "signal",
        "theirs",
        "fresh",
        "theirs",
        "holdout - fresh",
        "theirs",
        "agree",
    ]
    return markdown(header, lines)


def path_table(results, sizes):
    """Return the number of signal variables and the accuracies along the steps."""
    lines = []
    for method, rows in results.groupby("method", sort=False):
        for size in sizes:
            at = at_size(rows, size)
            lines.append(
                [
                    method,
                    str(size),
                    mean_and_error(at["signal"], 1),
                    *(mean_and_error(at[name]) for name in SETS),
                ]
            )
    return markdown(["method", "variables", "signal variables", *SETS], lines)


def guarantee_text(results):
    """Return what holds for Thresholdout's selection."""
    runs = results[results["method"] == "Thresholdout"].groupby("repetition").last()
    sigma, budget, threshold = (GUARANTEE[k] for k in ("noise_rate", "budget", "threshold"))
    questions = sum(N_SIGNAL + N_NOISE - k for k in range(STEPS))
    epsilon = 2 * budget / (sigma * N)
    # in units of a question's width, which is 2 for an improvement
    near = answer_deviation(threshold, sigma, budget, questions, BETA / 2)
    private = privacy_deviation(epsilon, N, questions, BETA / 2)
    counted = counting_deviation(budget, 2 * N + 1, N, questions, BETA / 2)
    published = {n: published_tolerance(1, n, questions, BETA) for n in (N, 10**6, 10**7)}
    return "\n".join(
        [
            (
                f"Thresholdout with T = {threshold:g}, sigma = {sigma:g}, B = {budget}: epsilon = "
                f"{epsilon:g}, used {mean_and_error(runs['uses'], 1)} times, "
                f"{mean_and_error(runs['variables'], 1)} variables; "
                f"{int((runs['variables'] < STEPS).sum())} of {len(runs)} runs ended before {STEPS}."
            ),
            (
                f"For {questions:,} questions, with probability {1 - BETA:g} and in units of a "
                f"question's width: answers are within {near:.3f} of the holdout means; these are "
                f"within {private:.3g} of P by privacy, and {counted:.3g} by counting."
            ),
            (
                "The published theorem, B = 1: tau = "
                + ", ".join(f"{tau:.3g} at n = {n:,}" for n, tau in published.items())
                + "."
            ),
        ]
    )


# --- part 2: the experiment of Dwork et al.


def noise_mean_off(rng, n):
    """Return n normal variables with their mean taken off."""
    z = rng.normal(size=n)
    return z - z.mean()


def accuracies(counts, signs, rng):
    """Return the accuracy on a set, whose products X_j'y are `counts`, at each size.

    Parameters
    ----------
    counts : ndarray of shape (k,)
        Of the chosen variables, in order.
    signs : ndarray of shape (k,)
        With which they vote.
    rng : Generator

    Returns
    -------
    list of float
        The share of records on which y times the sum of votes is positive.
    """
    votes, done, found = np.zeros(N_DWORK), 0, []
    for size in SIZES:
        new = slice(done, min(size, len(counts)))
        # a sum of independent variables with their mean off is one of larger scale
        width = math.sqrt(max(0, new.stop - new.start))
        votes += np.sum(signs[new] * counts[new]) / N_DWORK + width * noise_mean_off(rng, N_DWORK)
        found.append(float(np.mean(votes > 0)))
        done = new.stop
    return found


def dwork_run(n_signal, repetition):
    """Run both methods on one data set; return rows."""
    rng = np.random.default_rng([DATA_SEED, n_signal, repetition])
    n = N_DWORK
    shift = np.zeros(n)
    shift[:n_signal] = 6 / math.sqrt(n)
    train, held = (rng.normal(n * shift, math.sqrt(n)) for _ in range(2))
    holdout = ReusableHoldout(**DWORK, n_holdout=n)
    rows = []
    for method in ("standard", "Thresholdout"):
        if method == "standard":
            seen = held / n
        else:
            seen = np.array([holdout.answer(t, h, 2 * CUT) for t, h in zip(train / n, held / n)])
            chosen_uses = holdout.uses
        least = 1 / math.sqrt(n)
        agree = (np.abs(train / n) >= least) & (np.abs(seen) >= least) & (train * seen > 0)
        order = np.argsort(-np.abs(train), kind="stable")
        chosen = order[agree[order]][: SIZES[-1]]
        signs = np.sign(train[chosen])
        on_train, on_held = (accuracies(part[chosen], signs, rng) for part in (train, held))
        for size, a, b in zip(SIZES, on_train, on_held):
            k = min(size, len(chosen))
            fresh = norm.cdf(np.sum(signs[:k] * shift[chosen[:k]]) / math.sqrt(k))
            if method == "Thresholdout":
                try:
                    b = holdout.answer(a, b)
                except BudgetExceededError:
                    b = math.nan
            rows.append(
                {
                    "method": method,
                    "signal": n_signal,
                    "repetition": repetition,
                    "k": size,
                    "training": a,
                    "holdout": b,
                    "fresh": fresh,
                    "uses": chosen_uses if method == "Thresholdout" else math.nan,
                }
            )
    return rows


def dwork_table(results):
    """Return one line for each method, number of signal variables and k."""
    lines = []
    for (signal, method, k), rows in results.groupby(["signal", "method", "k"]):
        told = rows["holdout"].dropna()
        lines.append(
            [
                str(signal),
                method,
                str(k),
                mean_and_error(rows["training"]),
                mean_and_error(told),
                mean_and_error(rows["fresh"]),
                f"{len(told)} of {len(rows)}",
            ]
        )
    return markdown(["signal", "method", "k", *SETS, "answered"], lines)


# --- figures


def panel(axes, rows, over, title):
    """Draw mean accuracies, with a band of one standard deviation over repetitions."""
    for name in SETS:
        groups = rows.groupby(over)[name]
        mean, spread = groups.mean(), groups.std()
        marks = {"marker": MARKS[name], "markevery": max(1, len(mean) // 8), "markersize": 4}
        axes.plot(mean.index, mean, color=COLOURS[name], label=name, **marks)
        axes.fill_between(
            mean.index, mean - spread, mean + spread, color=COLOURS[name], alpha=0.15, linewidth=0
        )
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)


def draw_figures(steps, dwork, directory):
    """Draw the figures into `directory`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    directory.mkdir(parents=True, exist_ok=True)
    shown = METHODS[:5]
    figure, axes = plt.subplots(1, len(shown), figsize=(13, 3.6), sharey=True)
    for axis, method in zip(axes, shown):
        panel(axis, steps[steps["method"] == method], "variables", method)
        axis.set_xlabel("variables")
    axes[0].set_ylabel("accuracy (band: one sd)")
    axes[2].legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(directory / "stepwise_accuracy.png", dpi=120)

    figure, axis = plt.subplots(figsize=(7.5, 4.2))
    drawn = METHODS[:8]
    styles = dict(zip(drawn, ["-"] * 5 + ["--"] * 3))
    colours = dict(
        zip(
            drawn,
            ["#000000", "#D55E00", "#0072B2", "#009E73", "#E69F00", "#0072B2", "#CC79A7", "#56B4E9"],
        )
    )
    for method, rows in steps[steps["method"].isin(drawn)].groupby("method", sort=False):
        mean = rows.groupby("variables")["signal"].mean()
        axis.plot(mean.index, mean, styles[method], color=colours[method], label=method)
    total = N_SIGNAL + N_NOISE
    axis.plot([0, STEPS], [0, STEPS * N_SIGNAL / total], ":", color="grey", label="by chance")
    axis.set_xlabel("variables chosen")
    axis.set_ylabel(f"signal variables among them, of {N_SIGNAL}")
    axis.set_ylim(0, N_SIGNAL + 0.3)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.tight_layout()
    figure.savefig(directory / "stepwise_signal.png", dpi=120)

    figure, axes = plt.subplots(2, 2, figsize=(8, 6), sharex=True, sharey="row")
    for row, signal in zip(axes, (0, 20)):
        for axis, method in zip(row, ("standard", "Thresholdout")):
            part = dwork[(dwork["signal"] == signal) & (dwork["method"] == method)]
            panel(axis, part, "k", f"{method}, {signal or 'no'} signal variables")
    for axis in axes[1]:
        axis.set_xlabel("variables k")
    for axis in axes[:, 0]:
        axis.set_ylabel("accuracy (band: one sd)")
    axes[0, 1].legend(fontsize=8, loc="center right")
    figure.tight_layout()
    figure.savefig(directory / "dwork.png", dpi=120)


def timed_selection(jobs):
    """Return the seconds of fifty steps of the selector over 110 candidates."""
    X, y = draw(np.random.default_rng(DATA_SEED), 2 * N)
    selector = ThresholdoutFeatureSelector(
        logistic(),
        n_features_to_select=STEPS,
        cv=[(range(N), range(N, 2 * N))],
        public_splits=True,
        n_jobs=jobs,
        **{**GUARANTEE, "budget": 10_000},
    )
    start = time.perf_counter()
    selector.fit(X, y)
    return time.perf_counter() - start


def main():
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--jobs", type=int, default=2, help="processes that share repetitions")
    parser.add_argument("--figures", type=Path, help="directory to draw figures in")
    options = parser.parse_args()
    start = time.perf_counter()
    repetitions, dwork_repetitions = (2, 5) if options.quick else (25, 100)
    with Parallel(n_jobs=options.jobs) as parallel:
        steps = pd.DataFrame(
            [
                row
                for rows in parallel(
                    delayed(step_run)(method, r) for r in range(repetitions) for method in METHODS
                )
                for row in rows
            ]
        )
        after_steps = time.perf_counter() - start
        dwork = pd.DataFrame(
            [
                row
                for rows in parallel(
                    delayed(dwork_run)(signal, r) for signal in (0, 20) for r in range(dwork_repetitions)
                )
                for row in rows
            ]
        )
    # the order of METHODS, whatever came first
    steps["method"] = pd.Categorical(steps["method"], METHODS)
    steps = steps.sort_values(["method", "repetition", "variables"], ignore_index=True)
    steps["method"] = steps["method"].astype(str)
    print(f"## Stepwise regression, {repetitions} repetitions\n")
    for convention in CONVENTIONS:
        print(f"{convention}:\n\n{step_table(steps, convention)}\n")
    print(f"Beside an independent replication:\n\n{replication_table(steps)}\n")
    print(f"Along the steps:\n\n{path_table(steps, (5, 10, 20, 30, 40, 50))}\n")
    print(guarantee_text(steps))
    print(
        f"\nSeconds of fifty steps over {N_SIGNAL + N_NOISE} candidates, n_jobs={options.jobs}: "
        f"{timed_selection(options.jobs):.1f}"
    )
    print(f"\n## The experiment of Dwork et al., {dwork_repetitions} repetitions\n")
    print(dwork_table(dwork))
    runs = dwork[dwork["method"] == "Thresholdout"].groupby(["signal", "repetition"]).first()
    print(
        f"\nThresholdout with T = {DWORK['threshold']:.4g}, sigma = {DWORK['noise_rate']:.4g} "
        f"(times {2 * CUT:g} for a correlation), B = {DWORK['budget']}: epsilon = "
        f"{2 * DWORK['budget'] / (DWORK['noise_rate'] * N_DWORK):.3g}; the correlations used "
        f"{mean_and_error(runs['uses'], 1)} of B."
    )
    if options.figures:
        draw_figures(steps, dwork, options.figures)
    versions = [f"{module.__name__} {module.__version__}" for module in (dpselect, sklearn, np, scipy)]
    print(
        f"\nPython {platform.python_version()}, {', '.join(versions)}. Took "
        f"{time.perf_counter() - start:.0f} s with {options.jobs} jobs, {after_steps:.0f} s of "
        "them for the stepwise regressions."
    )


if __name__ == "__main__":
    main()

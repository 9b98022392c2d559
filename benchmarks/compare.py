"""How long fits and searches take beside scikit-learn's and others'.

Run ``python benchmarks/compare.py --other-python PATH ...``. Each PATH is the Python of another
environment, with threadpoolctl and any of diffprivlib (0.6.6 needs scikit-learn 1.7 or earlier),
interpret-core and dask-ml; what none of them has is left out. Each line of the file of results is one
timing. What it holds is not run again, unless ``--again`` is given, and then the last run of a
workload counts; so a run that was stopped goes on, and parts can be run by themselves:
``--only small search``. Progress goes to the error stream. ``cost_tables.py`` makes the tables of the
documentation from the results.

Before and after in one run: ``--before PATH ... --results FILE``. Each PATH is the Python of an
environment with another version of dpselect, which is called by the folder of that environment. It
takes turns with all others, what it refuses is left out, and a second table has the ratios to it.

- small, single, wide, sparse: one fit of each estimator, from 200 rows to a million, dense and with
  100 entries a row. scikit-learn has the same regularisation, C = 1 / (n alpha), each of several
  solvers, its default tolerance, and one at which it is as exact as we are; alpha="auto" is the public
  rule's value. Its squared hinge and our smooth hinge are different losses, and so are ours and
  diffprivlib's linear regression, which does not regularise.
- search: whole searches, with the last fit. Candidates have the alpha of a single fit on all
  records. scikit-learn scores by accuracy, its default, and the private search by the Brier score,
  unless it decides alpha by public numbers ("auto"). Two rows have one fit of ours as the rival.
- jobs: the search whose passes two threads share beside that of one.
- public: plans and noise, which need no records.
- growth: the search by stability over more and more alphas, with the last fit. A single
  alpha needs no choice: that is one fit.

In each round each contestant runs once at each number of threads (of BLAS and OpenMP, set around the
whole call), in an order that is shuffled anew and after a short rest, in which threads of the one
before go to sleep; a first round does not count. Times are of the processor, summed over the threads
of the process, so that others on the machine weigh little. Of a rival's solvers the one with the least
median counts, and is compared round by round: a ratio is a median of (ours / its), so above 1 we are
slower. Estimators are made anew for each fit, records are made once.

Before anything is timed, it is checked at the first shape that what is timed is right: at
epsilon = inf logistic and ridge regression agree with scikit-learn's at tight tolerance within
1e-6 and histograms with numpy's, "auto" is the alpha that rivals get, and a search by
stability whose noise is next to nothing chooses what GridSearchCV does. scikit-learn does not regularise
the intercept, so that it is given a column of ones here, and none of these checks is timed.
"""

import argparse
import csv
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _timing_contestants import (
    CLASSES,
    CLASSIFIER_ALPHAS,
    OURS,
    RIDGE_ALPHA,
    SPLITS,
    TALL,
    WIDTH,
    public_alpha,
    workloads,
)
from _timing_data import records
from _timing_rounds import BEFORE, OtherPython, play
from private_models import rest_table
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV

from dpselect import (
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    SeededNoiseWarning,
    StabilityGridSearchCV,
)

RESULTS = Path(__file__).parent / "results" / "compare.csv"
PARTS = ("small", "single", "wide", "sparse", "search", "jobs", "public", "growth")
WORKLOAD = ["part", "task", "n", "d"]
FIELDS = [*WORKLOAD, "run", "threads", "side", "contestant", "round", "cpu", "wall", "warned"]
TOLERANCE = 1e-6
# records of the search that is checked: so few, and such labels, that no end of the grid is best
CHOICE_SHAPE = (500, 50)
NEARLY_EXACT = 1e6


def check(shape):
    """Return a table of how right what is timed is, or raise AssertionError."""
    n, d = shape
    found = {}
    for alpha in (1e-4, 1e-2):
        X, y = records("labels", n, d)
        ours = DPLogisticRegression(epsilon=math.inf, alpha=alpha, classes=CLASSES).fit(X, y)
        theirs = LogisticRegression(
            C=1 / (n * alpha),
            fit_intercept=False,
            solver="newton-cholesky",
            tol=1e-12,
            max_iter=1000,
        ).fit(with_ones(X), y)
        found[f"logistic regression, alpha = {alpha}"] = coefficients(ours) - theirs.coef_.ravel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        auto, same = (
            DPLogisticRegression(alpha=alpha, classes=CLASSES, random_state=0).fit(X, y)
            for alpha in ("auto", public_alpha(n, d))
        )
    found["alpha = auto"] = coefficients(auto) - coefficients(same)
    X, y = records("targets", n, d)
    for norm, data_norm in (("l1", math.sqrt(d)), ("l2", 1.0)):
        ours = DPRidge(
            epsilon=math.inf,
            alpha=RIDGE_ALPHA,
            norm=norm,
            data_norm=data_norm,
            target_range=(-1, 1),
            data_norm_l1=data_norm if norm == "l1" else None,
        ).fit(X, y)
        theirs = Ridge(alpha=n * RIDGE_ALPHA, fit_intercept=False, solver="cholesky")
        found[f"ridge regression, {norm}"] = coefficients(ours) - theirs.fit(with_ones(X), y).coef_
    X, _ = records("uniform", n, 2)
    density, _ = np.histogramdd(X, [round(1 / WIDTH)] * 2, [(0.0, 1.0)] * 2, density=True)
    found["histogram"] = (
        DPHistogramDensity(math.inf, bin_width=WIDTH, bounds=(0, 1)).fit(X).density_ - density
    )
    lines = []
    for name, difference in found.items():
        largest = float(np.abs(difference).max())
        if not largest <= TOLERANCE:
            raise AssertionError(f"{name} is off by {largest:.1e}, more than {TOLERANCE:g}.")
        lines.append([name, f"{largest:.1e}"])
    ours, theirs = choices()
    if ours != theirs:
        raise AssertionError(f"The search chose alpha number {ours}, and GridSearchCV {theirs}.")
    lines.append(["search: both choose alpha number", f"{ours} of {len(CLASSIFIER_ALPHAS)}"])
    return rest_table(["at the first shape", "largest difference"], lines)


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def coefficients(model):
    """Return the coefficients and the intercept as one vector."""
    return np.append(model.coef_, model.intercept_)


def choices():
    """Return what a search with hardly any noise chooses, and what GridSearchCV does."""
    n, d = CHOICE_SHAPE
    X, y = records("labels", n, d)
    ours = StabilityGridSearchCV(
        DPLogisticRegression(classes=CLASSES, fit_intercept=False),
        {"alpha": CLASSIFIER_ALPHAS},
        epsilon=NEARLY_EXACT,
        strategy="stability",
        cv=SPLITS,
        refit=False,
    ).fit(X, y)
    # here each candidate has the alpha of the folds' training parts
    n_train = n * (SPLITS.n_splits - 1) / SPLITS.n_splits
    theirs = GridSearchCV(
        LogisticRegression(fit_intercept=False, solver="newton-cholesky", tol=1e-10),
        {"C": 1 / (n_train * CLASSIFIER_ALPHAS)},
        cv=SPLITS,
        scoring="neg_brier_score",
        refit=False,
    ).fit(X, y)
    return int(ours.best_index_), int(theirs.best_index_)


def read(path):
    """Return the timings of a file of results, of each workload those of its last run."""
    lines = pd.read_csv(path, keep_default_na=False)
    return lines[lines["run"] == lines.groupby(WORKLOAD)["run"].transform("max")].reset_index(drop=True)


def ratios(lines, clock="cpu"):
    """Return one line for each of our contestants, rival and number of threads.

    Parameters
    ----------
    lines : DataFrame
        Timings of a file of results.
    clock : {"cpu", "wall"}, default="cpu"

    Returns
    -------
    DataFrame
        With the median of our seconds, the `fastest` of the rival's contestants and its seconds, and
        the median of the `ratio` of both, round by round; the last three are missing without a rival.
    """
    found = []
    for key, group in lines.groupby([*WORKLOAD, "threads"], sort=False):
        table = group.pivot(index="round", columns=["side", "contestant"], values=clock)
        medians = table.median()
        sides = dict.fromkeys(
            side for side, _ in table.columns if side != OURS and not side.startswith(BEFORE)
        ) or {None: None}
        for ours in table[OURS].columns:
            for side in sides:
                line = {
                    **dict(zip([*WORKLOAD, "threads"], key)),
                    "ours": ours,
                    "side": side,
                    "seconds": medians[OURS, ours],
                }
                if side is not None:
                    fastest = medians[side].idxmin()
                    each = table[OURS, ours] / table[side, fastest]
                    line |= {"fastest": fastest, "its": medians[side, fastest], "ratio": each.median()}
                found.append(line)
    return pd.DataFrame(found)


def after_by_before(lines):
    """Return the ratios of our times to those of our other versions, and the latters' seconds.

    Parameters
    ----------
    lines : DataFrame
        Timings of a file of results.

    Returns
    -------
    DataFrame
        One line for each of our contestants, number of threads and other version, with the median, the
        `least` and the `largest` ratio of a round.
    """
    same = [*WORKLOAD, "threads", "contestant"]
    both = lines[lines["side"].str.startswith(BEFORE)].merge(
        lines[lines["side"] == OURS], on=[*same, "round"], suffixes=("_before", "")
    )
    both["ratio"] = both["cpu"] / both["cpu_before"]
    return (
        both.groupby([*same, "side_before"], sort=False)
        .agg(
            before=("cpu_before", "median"),
            after=("cpu", "median"),
            ratio=("ratio", "median"),
            least=("ratio", "min"),
            largest=("ratio", "max"),
        )
        .reset_index()
    )


def run(options):
    """Run what is missing and append it to the file of results."""
    path = Path(options.results)
    is_new = not path.exists()
    known = pd.DataFrame(columns=FIELDS) if is_new else read(path)
    runs = known.drop_duplicates(WORKLOAD).set_index(WORKLOAD)["run"].to_dict()
    others = [OtherPython(each) for each in options.other_python]
    versions = [OtherPython(each) for each in options.before]
    for other in (*others, *versions):
        print(f"Another Python: {other.versions}.")
    try:
        with path.open("a", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, FIELDS)
            if is_new:
                writer.writeheader()
            for workload in workloads():
                key = workload.part, workload.title, *workload.shape
                if workload.part in options.only and (options.again or key not in runs):
                    lines = play(workload, options.threads, options.rounds, others, versions)
                    writer.writerows({**line, "run": runs.get(key, 0) + 1} for line in lines)
                    stream.flush()
    finally:
        for other in (*others, *versions):
            other.close()


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--other-python", metavar="PATH", nargs="+", default=[])
    parser.add_argument("--before", metavar="PATH", nargs="+", default=[])
    parser.add_argument("--only", metavar="PART", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, help="default: 1 to 5, by workload")
    parser.add_argument("--again", action="store_true", help="run what is there, too; the last counts")
    parser.add_argument("--results", metavar="FILE", default=RESULTS, help="goes on")
    options = parser.parse_args(arguments)
    if options.before and Path(options.results).absolute() == RESULTS.absolute():
        parser.error("--before needs a file of its own: write --results FILE")
    return options


def shown(table):
    """Return a DataFrame as text."""
    return rest_table(
        list(table.columns),
        [
            [f"{value:.3g}" if isinstance(value, float) else str(value) or "-" for value in row]
            for row in table.itertuples(index=False)
        ],
    )


def main(arguments=None):
    """Run the benchmark and print its ratios."""
    options = parse(arguments)
    print(check(TALL[0]))
    run(options)
    lines = read(options.results)
    print(shown(ratios(lines).fillna("")))
    if options.before:
        print(shown(after_by_before(lines)))


if __name__ == "__main__":
    main()

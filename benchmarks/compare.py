"""How long fits and searches take beside scikit-learn's and diffprivlib's.

Run ``python benchmarks/compare.py --other-python PATH --output FILE``. PATH is the Python of a
second environment, with diffprivlib, scikit-learn 1.7 or earlier (diffprivlib 0.6.6 needs it) and
threadpoolctl; without it diffprivlib is left out. ``--only single,search`` runs these parts,
``--rounds N`` says how often each contestant runs, and ``--quick`` has few small records, whose
times mean little. Progress goes to the error stream.

- single: one fit of each estimator. scikit-learn has the same regularisation, C = 1 / (n alpha),
  its default tolerance and each of several solvers; alpha="auto" is the public rule's value. Its
  squared hinge and our smooth hinge are different losses, and so are ours and diffprivlib's
  linear regression, which does not regularise.
- search: whole searches, with the last fit. Candidates have the alpha of a single fit on all
  records. scikit-learn scores by accuracy, its default, and the private search by the Brier score,
  unless it decides alpha by public numbers ("auto"). The private search over 50 alphas of ridge
  regression is once by stability and once as it comes, which reads all alphas from one release.
- growth: the search by stability over more and more alphas, with the last fit. A single
  alpha needs no choice: that is one fit.
- memory: the peak of the resident set above the records, each in a process of its own.

In each round each contestant runs once at each number of threads (of BLAS and OpenMP, set around the
whole call), in an order that is shuffled anew and after a short rest, in which threads of the one
before go to sleep; a first round does not count. Seconds are medians over rounds, with quartiles.
Of a rival's solvers the one with the least median counts, and is
compared round by round: a ratio is a median of (our seconds / its seconds), with quartiles, so
above 1 we are slower. Estimators are made anew for each fit, records are made once. Both Pythons run
in turns, never at the same time.

Before anything is timed, it is checked at the first shape that what is timed is right: at
epsilon = inf logistic and ridge regression agree with scikit-learn's at tight tolerance within
1e-6 and histograms with numpy's, "auto" is the alpha that rivals get, and a search by
stability whose noise is next to nothing chooses what GridSearchCV does. scikit-learn does not regularise
the intercept, so that it is given a column of ones here, and none of these checks is timed.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from _timing_contestants import (
    CLASSES,
    CLASSIFIER_ALPHAS,
    DIFFPRIVLIB,
    OURS,
    QUICK_SHAPES,
    RIDGE_ALPHA,
    SHAPES,
    SPLITS,
    WIDTH,
    growth,
    public_alpha,
    searches,
    single_fits,
)
from _timing_data import records
from _timing_rounds import OtherPython, play
from private_tuning import markdown, versions
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV

from dpselect import (
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    SeededNoiseWarning,
    StabilityGridSearchCV,
)

PARTS = ("single", "search", "growth", "memory")
ROUNDS = {"single": 9, "search": 3, "growth": 3}
THREADS = [1, 2]
TOLERANCE = 1e-6
MEMORY_CASES = {
    "logistic": "DPLogisticRegression", "ridge": "DPRidge, l2",
    "search": "search, 10 alphas x 5 folds",
}
MEMORY_SHAPE = {False: (2_000_000, 50), True: (20_000, 10)}
MEMORY_SCRIPT = Path(__file__).with_name("_peak_memory.py")
# records of the search that is checked: so few, and such labels, that no end of the grid is best
CHOICE_SHAPE = (500, 50)
NEARLY_EXACT = 1e6
BAR = 40


def check(shape):
    """Return lines that say how right what is timed is, or raise AssertionError."""
    n, d = shape
    found = {}
    for alpha in (1e-4, 1e-2):
        X, y = records("labels", n, d)
        ours = DPLogisticRegression(epsilon=math.inf, alpha=alpha, classes=CLASSES).fit(X, y)
        theirs = LogisticRegression(
            C=1 / (n * alpha), fit_intercept=False, solver="newton-cholesky", tol=1e-12,
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
        ours = DPRidge(epsilon=math.inf, alpha=RIDGE_ALPHA, norm=norm, data_norm=data_norm,
            target_range=(-1, 1), data_norm_l1=data_norm if norm == "l1" else None).fit(X, y)
        theirs = Ridge(alpha=n * RIDGE_ALPHA, fit_intercept=False, solver="cholesky")
        found[f"ridge regression, {norm}"] = (
            coefficients(ours) - theirs.fit(with_ones(X), y).coef_
        )
    X, _ = records("uniform", n, 2)
    density, _ = np.histogramdd(X, [round(1 / WIDTH)] * 2, [(0.0, 1.0)] * 2, density=True)
    found["histogram"] = DPHistogramDensity(math.inf, bin_width=WIDTH, bounds=(0,
        1)).fit(X).density_ - density
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
    return ["# What is timed is right", markdown(["at the first shape", "largest difference"], lines)]


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
        DPLogisticRegression(classes=CLASSES, fit_intercept=False), {"alpha": CLASSIFIER_ALPHAS},
        epsilon=NEARLY_EXACT, strategy="stability", cv=SPLITS, refit=False,
    ).fit(X, y)
    # here each candidate has the alpha of the folds' training parts
    n_train = n * (SPLITS.n_splits - 1) / SPLITS.n_splits
    theirs = GridSearchCV(
        LogisticRegression(fit_intercept=False, solver="newton-cholesky", tol=1e-10),
        {"C": 1 / (n_train * CLASSIFIER_ALPHAS)}, cv=SPLITS, scoring="neg_brier_score",
        refit=False,
    ).fit(X, y)
    return int(ours.best_index_), int(theirs.best_index_)


def spread(values):
    """Return "median (lower quartile - upper quartile)"."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.3g} ({low:.3g} - {high:.3g})"


def comparison(title, workloads, rounds, other):
    """Time workloads, and return the tables of ratios and of all contestants."""
    ratios, everyone = [], []
    for workload in workloads:
        times, warned = play(workload, THREADS, rounds, other)
        n, d = workload.shape
        sides = {}
        for i in warned:
            sides.setdefault(workload.contestants[i].side, []).append(i)
        for number in THREADS:
            public = [workload.title, f"{n} x {d}", number]
            for side, members in sides.items():
                fastest = min(members, key=lambda i: np.median(times[i, number]))
                for i in members:
                    everyone.append([
                        *public, side, workload.contestants[i].label, spread(times[i, number]),
                        ", ".join(sorted(warned[i])),
                    ])
                if side == OURS:
                    continue
                mark = " *" if "ConvergenceWarning" in warned[fastest] else ""
                for i in sides[OURS]:
                    ratios.append([
                        *public, workload.contestants[i].label, spread(times[i, number]), side,
                        workload.contestants[fastest].label + mark,
                        spread(times[fastest, number]),
                        spread(times[i, number] / times[fastest, number]),
                    ])
    header = ["task", "n x d", "threads", "ours", "seconds", "rival", "its fastest", "its seconds",
              "ratio"]
    notes = [f"{rounds} rounds. Ratio above 1: we are slower. *: it did not converge in max_iter."]
    if other is None:
        notes.append(f"{DIFFPRIVLIB} is left out: there was no --other-python.")
    return [
        f"# {title}", markdown(header, ratios), " ".join(notes), f"## {title}: all contestants",
        markdown([*header[:3], "side", "contestant", "seconds", "warnings"], everyone),
    ]


def growth_report(quick, rounds):
    """Return the time by candidate of ever larger searches, as a table with bars."""
    workload = growth(quick)
    times, _ = play(workload, THREADS, rounds)
    sections = [f"# Growth with the number of alphas, {workload.shape[0]} x {workload.shape[1]}"]
    for number in THREADS:
        counts = [int(contestant.label) for contestant in workload.contestants]
        each = [np.median(times[i, number]) / k for i, k in enumerate(counts)]
        lines = [
            [k, spread(times[i, number]), f"{share:.3g}", "#" * round(BAR * share / max(each))]
            for i, (k, share) in enumerate(zip(counts, each))
        ]
        sections += [
            f"Threads: {number}. {rounds} rounds.",
            markdown(["alphas", "seconds", "seconds / alpha", ""], lines),
        ]
    return sections


def memory_report(quick):
    """Return the peaks of memory, each from a new process."""
    n, d = MEMORY_SHAPE[quick]
    lines = []
    for case, name in MEMORY_CASES.items():
        done = subprocess.run(
            [sys.executable, MEMORY_SCRIPT, case, str(n), str(d)], stdout=subprocess.PIPE,
            text=True, check=True,
        )
        found = json.loads(done.stdout)
        mebi, ratio = 2**20, found["above"] / found["data"]
        lines.append([
            name, f"{found['data'] / mebi:.0f}", f"{found['above'] / mebi:.0f}", f"{ratio:.3f}",
            f"{found['seconds']:.3g}",
        ])
        print(f"memory: {name}", file=sys.stderr)
    header = ["one thread", "records, MiB", "peak above them, MiB", "ratio", "seconds"]
    return [f"# Memory, {n} x {d}", markdown(header, lines)]


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--other-python", metavar="PATH", help="Python of diffprivlib's environment")
    parser.add_argument("--only", metavar="PARTS", default=",".join(PARTS), help="commas between")
    parser.add_argument("--rounds", type=int, help=f"default: {ROUNDS}, and 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="few small records")
    parser.add_argument("--output", metavar="FILE", help="write the report here too")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    unknown = set(options.only) - set(PARTS)
    if unknown:
        parser.error(f"--only knows {', '.join(PARTS)}, and not {', '.join(sorted(unknown))}")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds is 1 or more")
    return options


def sections(options, other):
    """Yield the sections of the report, each as soon as it is measured."""
    rounds = {
        part: options.rounds or (2 if options.quick else number)
        for part, number in ROUNDS.items()
    }
    yield check((QUICK_SHAPES if options.quick else SHAPES)[0])
    if "single" in options.only:
        yield comparison("Single fits", single_fits(options.quick), rounds["single"], other)
    if "search" in options.only:
        yield comparison("Searches", searches(options.quick), rounds["search"], other)
    if "growth" in options.only:
        yield growth_report(options.quick, rounds["growth"])
    if "memory" in options.only:
        yield memory_report(options.quick)


def main(arguments=None):
    """Run the benchmark and print its report."""
    options = parse(arguments)
    start = time.perf_counter()
    other = OtherPython(options.other_python) if options.other_python else None
    text = ""

    def publish(parts):
        nonlocal text
        added = "\n\n".join(parts) + "\n\n"
        print(added, end="", flush=True)
        text += added
        # what was measured so far stays if a later part is stopped
        if options.output:
            Path(options.output).write_text(text, encoding="utf-8")

    try:
        for section in sections(options, other):
            publish(section)
        taken = time.perf_counter() - start
        lines = [f"{versions()}; {os.cpu_count()} cores. Took {taken:.0f} s."]
        if other is not None:
            lines.append(f"The other: {other.versions}.")
        publish(lines)
    finally:
        if other is not None:
            other.close()


if __name__ == "__main__":
    main()

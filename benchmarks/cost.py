"""How time and memory of fits and searches grow with their sizes.

Run ``python benchmarks/cost.py --output FILE --figure FILE.png``. One size at a time varies around
a base point (``BASE``), over values that grow by a constant factor (``SWEEPS``): the records n, the
columns d, the candidates k, the folds, the noise samples that a score is averaged over, and T, the
levels of an accuracy-first search. Its target cannot be met, so that it walks through all levels,
and models have a noise-reduction form (output perturbation for logistic regression). ``--quick``
has small sizes, whose exponents mean little. Progress goes to the error stream.

Seconds are medians over rounds on one thread of BLAS. Within a round all values of a sweep come in
an order that is shuffled anew; a first call at the least value does not count. Memory is the most
that Python and numpy hold at a time, above the records (``tracemalloc``), in a call of its own;
buffers within BLAS are not seen.

An exponent is the slope of log(seconds), or log(bytes), over log(size), by least squares. Only the
upper half of the values counts, the middle one included, because below it fixed costs may still
weigh. The standard error in brackets, from what the line leaves, shows how straight it is there: an
exponent that still grows with the size has a large one.
"""

import argparse
import math
import os
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _cost_figure import draw
from _timing_clock import seconds
from _timing_contestants import CLASSES
from _timing_data import records
from private_tuning import markdown, versions
from scipy.stats import linregress
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)

BASE = {"n": 50_000, "d": 20, "k": 10, "folds": 5, "noise_samples": 1, "T": 40}
SWEEPS = {
    "n": (6_250, 12_500, 25_000, 50_000, 100_000, 200_000, 400_000),
    "d": (5, 10, 20, 40, 80, 160, 320),
    "k": (2, 4, 8, 16, 32, 64, 128),
    "folds": (2, 4, 8, 16, 32),
    "noise_samples": (1, 2, 4, 8, 16, 32),
    "T": (10, 20, 40, 80, 160, 320, 640),
}
QUICK_BASE = {**BASE, "n": 2_000, "d": 5, "k": 3, "folds": 2}
QUICK_SWEEPS = {
    "n": (500, 1_000, 2_000, 4_000, 8_000),
    "d": (2, 4, 8, 16, 32),
    "k": (2, 4, 8, 16, 32),
    "folds": (2, 4, 8, 16, 32),
    "noise_samples": (1, 2, 4, 8, 16),
    "T": (10, 20, 40, 80, 160),
}
ROUNDS = 3
ORDER_SEED = 2
# no model with noise comes this close to the least loss
IMPOSSIBLE = 1e-9
LEVELS = (0.01, 10.0)
SEARCH_SIZES = ("n", "d", "k", "folds", "noise_samples")


@dataclass(frozen=True)
class Subject:
    """What is measured.

    Attributes
    ----------
    name : str
    kind : str
        Of its records.
    make : callable
        Returns an estimator for a dict of sizes.
    sizes : tuple of str
        Those that it depends on.
    columns : int, default=None
        If not the base point's.
    """

    name: str
    kind: str
    make: Callable[[dict], object]
    sizes: tuple[str, ...]
    columns: int | None = None


def stability(model, low):
    """Return a function from sizes to the search by stability over alpha."""
    def make(sizes):
        return StabilityGridSearchCV(
            model, {"alpha": np.geomspace(low, 1, sizes["k"])}, epsilon=1.0,
            strategy="stability", n_noise_samples=sizes["noise_samples"],
            cv=KFold(sizes["folds"], shuffle=True, random_state=0),
        )
    return make


def accuracy_first(model):
    """Return a function from sizes to an accuracy-first search that walks through all levels."""
    def make(sizes):
        return AccuracyFirstSearchCV(
            model, {"epsilon": np.geomspace(*LEVELS, sizes["T"])}, target=IMPOSSIBLE,
            method="above_threshold", max_epsilon=np.inf, on_failure="last",
        )
    return make


SUBJECTS = (
    Subject("DPLogisticRegression", "labels",
            lambda sizes: DPLogisticRegression(classes=CLASSES), ("n", "d")),
    Subject("DPLinearSVC", "labels", lambda sizes: DPLinearSVC(classes=CLASSES), ("n", "d")),
    Subject("DPRidge", "targets", lambda sizes: DPRidge(norm="l2", target_range=(-1, 1)), ("n", "d")),
    # cells, not columns, are what its cost depends on
    Subject("DPHistogramDensity", "uniform", lambda sizes: DPHistogramDensity(bounds=(0, 1)), ("n",), 1),
    Subject("stability, logistic", "labels",
            stability(DPLogisticRegression(classes=CLASSES), 1e-4), SEARCH_SIZES),
    Subject("stability, ridge", "targets",
            stability(DPRidge(perturbation="objective", norm="l2", target_range=(-1, 1)), 1e-3),
            SEARCH_SIZES),
    Subject("accuracy first, logistic", "labels",
            accuracy_first(DPLogisticRegression(
                alpha=0.01, perturbation="output", classes=CLASSES)), ("n", "d", "T")),
    Subject("accuracy first, ridge", "targets",
            accuracy_first(DPRidge(norm="l2", target_range=(-1, 1))), ("n", "d", "T")),
)


@dataclass(frozen=True)
class Curve:
    """The cost of one subject over the values of one size.

    Attributes
    ----------
    subject, size : str
    values : ndarray of shape (v,)
    seconds, peaks : ndarray of shape (v,)
        Medians of seconds, and bytes.
    """

    subject: str
    size: str
    values: np.ndarray
    seconds: np.ndarray
    peaks: np.ndarray


def peak_bytes(call):
    """Return the most that Python and numpy held at a time during a call, and its result."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        try:
            result = call()
            return tracemalloc.get_traced_memory()[1], result
        finally:
            tracemalloc.stop()


def measure(subject, size, values, base, rounds):
    """Return the Curve of a subject over the values of a size."""
    def call_at(value):
        sizes = {**base, size: value}
        d = subject.columns or sizes["d"]
        X, y = records(subject.kind, sizes["n"], d)
        estimator = subject.make(sizes)
        return lambda: estimator.fit(X, y)

    seconds(call_at(values[0]), 1)
    taken = np.empty((rounds, len(values)))
    rng = np.random.default_rng(ORDER_SEED)
    for row in taken:
        for j in rng.permutation(len(values)):
            row[j], _ = seconds(call_at(values[j]), 1)
    peaks = []
    for value in values:
        peak, fitted = peak_bytes(call_at(value))
        peaks.append(peak)
        check_walk(fitted)
    print(f"{subject.name}: {size}", file=sys.stderr)
    return Curve(
        subject.name, size, np.array(values), np.median(taken, axis=0), np.array(peaks, float)
    )


def check_walk(estimator):
    """Raise AssertionError if an accuracy-first search stopped before its last level."""
    if isinstance(estimator, AccuracyFirstSearchCV):
        ((_, levels),) = estimator.param_grid.items()
        walked = len(estimator.path_["epsilon"])
        if walked != len(levels):
            raise AssertionError(f"The search stopped at level {walked} of {len(levels)}.")


def upper_half(values):
    """Return the slice of the values that exponents are fitted on."""
    return slice(len(values) // 2, None)


def exponent(values, costs):
    """Return the slope of log(costs) over log(values) on the upper half, and its standard error."""
    part = upper_half(values)
    line = linregress(np.log(values[part]), np.log(costs[part]))
    return float(line.slope), float(line.stderr)


def report(curves):
    """Return the header and the lines of the table of exponents."""
    lines = []
    for curve in curves:
        fitted = curve.values[upper_half(curve.values)]
        cells = [
            f"{slope:.2f} ({error:.2f})"
            for slope, error in (
                exponent(curve.values, costs) for costs in (curve.seconds, curve.peaks)
            )
        ]
        lines.append([
            curve.subject, curve.size, f"{fitted[0]} - {fitted[-1]} ({len(fitted)})", *cells,
            f"{curve.seconds[-1]:.3g}", f"{curve.peaks[-1] / 2**20:.3g}",
        ])
    header = ["of", "grows with", "fitted on (values)", "time exponent", "memory exponent",
              "seconds at the end", "MiB at the end"]
    return header, lines


def values_table(curves):
    """Return the header and the lines of the table of all measurements."""
    lines = [
        [curve.subject, curve.size, value, f"{taken:.3g}", f"{peak / 2**20:.3g}"]
        for curve in curves
        for value, taken, peak in zip(curve.values, curve.seconds, curve.peaks)
    ]
    return ["of", "varied", "value", "seconds", "MiB"], lines


def rst(header, rows):
    """Return a simple table of reStructuredText."""
    cells = [list(map(str, line)) for line in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    rule = "  ".join("=" * width for width in widths)
    printed = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in cells
    ]
    return "\n".join([rule, printed[0], rule, *printed[1:], rule])


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--format", choices=["markdown", "rst"], default="markdown")
    parser.add_argument("--output", metavar="FILE", help="write the report here too")
    parser.add_argument("--figure", metavar="FILE", help="draw the curves here")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds is 1 or more")
    return options


def main(arguments=None):
    """Measure all curves, print the tables and draw the figure."""
    options = parse(arguments)
    start = time.perf_counter()
    base, sweeps = (QUICK_BASE, QUICK_SWEEPS) if options.quick else (BASE, SWEEPS)
    curves = [
        measure(subject, size, sweeps[size], base, options.rounds)
        for subject in SUBJECTS
        for size in subject.sizes
    ]
    table = {"markdown": markdown, "rst": rst}[options.format]
    point = ", ".join(f"{name} = {value}" for name, value in base.items())
    taken = time.perf_counter() - start
    text = "\n\n".join([
        f"Base point: {point}. Standard errors are in brackets.",
        table(*report(curves)),
        table(*values_table(curves)),
        f"{options.rounds} rounds, one thread. {versions()}; {os.cpu_count()} cores. "
        f"Took {math.ceil(taken)} s.",
    ]) + "\n"
    print(text)
    if options.output:
        Path(options.output).write_text(text, encoding="utf-8")
    if options.figure:
        draw(curves, list(sweeps), options.figure)


if __name__ == "__main__":
    main()

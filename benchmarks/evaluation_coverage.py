"""How often the intervals of an evaluation cover the truth.

Labels are drawn from probabilities whose logits are normal, and models predict these, or others that
are too sure of themselves by a half. The counts of scores and labels are drawn from this law, not from a
model, and an interval is asked whether it holds the figure of the law, as rounded to the same bins.
Coverage is the share that holds it among those that are not declared to say nothing, where that is at
least a fifth::

    python benchmarks/evaluation_coverage.py --output coverage.md
"""

import argparse
import functools
import itertools
import sys

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from dpselect.density.noise import noise_ratio
from dpselect.evaluation.evaluation import BIN, METRICS, noise_variance, read
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.scores import EDGES, N_BINS
from dpselect.noise import as_generator, discrete_laplace, root_stream

SIZES = (500, 1_000, 5_000, 20_000)
EPSILONS = (0.3, 1.0, 3.0)
RATES = (0.01, 0.2, 0.5)
# a standard deviation of the logits, and what a model multiplies them by
SPREAD = 1.5
SLOPES = (1.0, 1.5)
# so many counts stand for the law itself
MANY = 10**12
# coverage is told of figures that are told in at least this share of repetitions
OFTEN = 0.2


@functools.cache
def law(rate, slope):
    """Return the probability of each cell of score and label."""
    nodes = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    centre = brentq(lambda c: expit(c + SPREAD * nodes).mean() - rate, -20, 20)
    p = expit(centre + SPREAD * nodes)
    bins = np.searchsorted(EDGES[1:-1], expit(slope * logit(p)), side="left")
    cells = np.bincount(2 * bins, 1 - p, 2 * N_BINS) + np.bincount(2 * bins + 1, p, 2 * N_BINS)
    return cells / cells.sum()


def coverage(cells, size, epsilon, threshold, repetitions, stream):
    """Yield for each metric its name, and the shares of repetitions that tell it, and tell it right."""
    positive = BIN > np.abs(EDGES[1:-1] - threshold).argmin()
    generator = as_generator(stream)
    drawn = generator.multinomial(size, cells, size=repetitions)
    noise = discrete_laplace(generator, drawn.shape, noise_ratio(epsilon))
    noisy = NoisyCounts.of(1.0 * (drawn + noise), size, noise_variance(epsilon))
    exact = NoisyCounts.of(cells[None] * MANY, MANY, 0.0)
    for name in METRICS:
        truth = read(name, exact, positive)[0][0]
        value, low, high = read(name, noisy, positive)
        told = ~np.isnan(value)
        right = told & (low <= truth + 1e-9) & (truth - 1e-9 <= high)
        yield name, told.mean(), right.mean()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=argparse.FileType("w"), default=sys.stdout)
    options = parser.parse_args(arguments)
    found = {}
    for rate, slope, size, epsilon in itertools.product(RATES, SLOPES, SIZES, EPSILONS):
        case = rate, slope, size, epsilon
        # a threshold that marks records of a rare class
        threshold = 0.5 if rate > 0.1 else 0.05
        stream = root_stream(options.seed).child(*map(str, case))
        for name, told, right in coverage(
            law(rate, slope), size, epsilon, threshold, options.repetitions, stream
        ):
            found.setdefault(name, []).append((told, right, case))
    write(found, options.repetitions, options.output)
    return found


def write(found, repetitions, output):
    """Write a line for each metric."""
    print(f"{repetitions} repetitions in each of {len(next(iter(found.values())))} cases", file=output)
    print("", file=output)
    print(
        "| metric | least coverage | its rate, slope, m, epsilon | mean coverage "
        "| told and wrong, at most | never told | told in under a fifth |",
        file=output,
    )
    print("|" + " --- |" * 7, file=output)
    for name, rows in found.items():
        often = [(right / told, case) for told, right, case in rows if told >= OFTEN]
        least, case = min(often)
        wrong = max(told - right for told, right, _ in rows)
        never = sum(told == 0 for told, _, _ in rows)
        seldom = sum(0 < told < OFTEN for told, _, _ in rows)
        print(
            f"| {name} | {least:.3f} | {', '.join(map(str, case))} | "
            f"{np.mean([share for share, _ in often]):.3f} | {wrong:.3f} | {never} | {seldom} |",
            file=output,
        )


if __name__ == "__main__":
    main()

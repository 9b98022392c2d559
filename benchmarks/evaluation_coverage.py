"""How often the intervals of an evaluation cover the truth.

Two classes: labels are drawn from probabilities whose logits are normal, and models predict these, or
others that are too sure of themselves by a half. Three classes: labels are drawn from probabilities that
are softmax of normal scores, and models are as sure, or too sure by a half; "confidence" is about how
often they are right. Regressions: predictions are normal or, as for counts, far from symmetric, and
errors are normal, have heavy tails or are skewed. Densities: private histograms of 2,000 records in one
or two columns, with wide cells and with fine. The counts of cells are drawn from the law, not from a
model, and an interval is asked whether it holds the figure of the law; of two classes and of confidence,
as rounded to the same bins, and otherwise that of the law without any rounding. Coverage is the share
that holds it among those that are not declared to say nothing, where that is at least a fifth::

    python benchmarks/evaluation_coverage.py --output coverage.md
    python benchmarks/evaluation_coverage.py --rows 5 --alike 0.5 --repetitions 200

``--brier 3`` prints what the cells of so many classes know of the Brier score.
"""

import argparse
import functools
import itertools
import sys

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, softmax
from scipy.stats import norm

from dpselect import DPHistogramDensity, PrivacyLoss
from dpselect.evaluation import DensityEvaluation, MulticlassEvaluation, RegressionEvaluation
from dpselect.evaluation.binary import BIN, METRICS
from dpselect.evaluation.confidence import CONFIDENCE_METRICS, ConfidenceCells
from dpselect.evaluation.density import LEAST_SHARE, DensityCells
from dpselect.evaluation.estimate import Metric
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.evaluation.multiclass import MulticlassCells
from dpselect.evaluation.regression import RegressionCells
from dpselect.evaluation.score_bins import EDGES, N_BINS
from dpselect.noise import as_generator, discrete_laplace, root_stream
from dpselect.noise.grid import noise_ratio

SIZES = (500, 1_000, 5_000, 20_000)
EPSILONS = (0.3, 1.0, 3.0)
RATES = (0.01, 0.2, 0.5)
# a standard deviation of the logits, and what a model multiplies them by
SPREAD = 1.5
SLOPES = (1.0, 1.5)
# so many counts stand for the law itself, and so many records for laws that are drawn
MANY, DRAWN = 10**12, 2_000_000
# coverage is told of figures that are told in at least this share of repetitions
OFTEN = 0.2
ANY_LOSS = PrivacyLoss(1.0, label="")


@functools.cache
def two_classes(rate, slope):
    """Return the probabilities of cells, the metrics, and the true figures."""
    nodes = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    centre = brentq(lambda c: expit(c + SPREAD * nodes).mean() - rate, -20, 20)
    p = expit(centre + SPREAD * nodes)
    bins = np.searchsorted(EDGES[1:-1], expit(slope * logit(p)), side="left")
    cells = np.bincount(2 * bins, 1 - p, 2 * N_BINS) + np.bincount(2 * bins + 1, p, 2 * N_BINS)
    # a threshold that marks records of a rare class
    return of_bins(cells / cells.sum(), 0.5 if rate > 0.1 else 0.05)


def of_bins(cells, threshold, names=METRICS):
    """Return the probabilities of cells, the metrics at a threshold, and the true figures."""
    positive = BIN > np.abs(EDGES[1:-1] - threshold).argmin()
    metrics = {
        name: functools.partial(lambda metric, counts: metric(counts, positive), metric)
        for name, metric in names.items()
    }
    exact = NoisyCounts.of(cells[None] * MANY, MANY, 0.0)
    return cells, metrics, {name: metric(exact)[0][0] for name, metric in metrics.items()}


def of_softmax(rate, slope):
    """Return probabilities of three classes, and labels."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(DRAWN, 3)) * SPREAD + np.log([1 - 3 * rate, 2 * rate, rate])
    y = (softmax(scores, axis=1).cumsum(axis=1) < rng.random((DRAWN, 1))).sum(axis=1)
    return softmax(slope * scores, axis=1), y


@functools.cache
def three_classes(rate, slope):
    """Likewise; `rate` is about the share of the last class, twice as much that of the second one."""
    classes, (p, y) = np.arange(3), of_softmax(rate, slope)
    cells = MulticlassCells(classes, True)
    evaluation = MulticlassEvaluation(
        counts_=np.zeros(cells.shape),
        n_records=1,
        privacy_=ANY_LOSS,
        classes=classes,
        calibrated_scores=True,
    )
    right, label = p.argmax(axis=1) == y, evaluation.cells["label"]
    last = label == 2, evaluation.cells["prediction"] == 2
    metrics = dict(evaluation._readers) | {
        "recall of last": Metric(lambda counts: counts.mean(1.0 * last[1], 1.0 * last[0])),
        "precision of last": Metric(lambda counts: counts.mean(1.0 * last[0], 1.0 * last[1])),
    }
    recalls = [right[y == k].mean() for k in classes]
    shares = np.bincount(cells.index(p, y), minlength=len(label)) / DRAWN
    return (
        shares,
        metrics,
        {
            "accuracy": right.mean(),
            "balanced_accuracy": np.mean(recalls),
            "log_loss": -np.log(p[np.arange(DRAWN), y]).mean(),
            "recall of last": recalls[2],
            "precision of last": right[p.argmax(axis=1) == 2].mean(),
        },
    )


@functools.cache
def confidence(rate, slope):
    """Likewise, of whether the most probable of three classes is right."""
    places = ConfidenceCells(np.arange(3), True).index(*of_softmax(rate, slope))
    return of_bins(np.bincount(places, minlength=2 * N_BINS) / DRAWN, 0.7, CONFIDENCE_METRICS)


@functools.cache
def regression(predicted, error, spread):
    """Likewise, of predictions and errors in shares of the range."""
    rng = np.random.default_rng(0)
    predicted = np.clip(
        {
            "normal": 0.45 + 0.1 * rng.normal(size=DRAWN),
            "skewed": 0.03 * rng.lognormal(size=DRAWN),
        }[predicted],
        0,
        1,
    )
    errors = (
        spread
        * {
            "normal": lambda: rng.normal(size=DRAWN),
            "tails": lambda: rng.standard_t(3, size=DRAWN),
            "skewed": lambda: rng.exponential(size=DRAWN) - 1,
        }[error]()
    )
    y = np.clip(predicted + errors, 0, 1)
    error, cells = y - predicted, RegressionCells((0.0, 1.0))
    evaluation = RegressionEvaluation(
        counts_=np.zeros(cells.shape),
        n_records=1,
        privacy_=ANY_LOSS,
        target_range=(0.0, 1.0),
    )
    shares = np.bincount(cells.index(predicted, y), minlength=cells.shape[0]) / DRAWN
    return (
        shares,
        dict(evaluation._readers),
        {
            "r2": 1 - np.mean(error**2) / y.var(),
            "rmse": np.mean(error**2) ** 0.5,
            "mae": np.abs(error).mean(),
            "bias": error.mean(),
        },
    )


@functools.cache
def density(columns, width):
    """Likewise, of a histogram density with an epsilon of 1 of so many columns."""
    rows = np.random.default_rng(0).beta(2, 5, size=(DRAWN, columns))
    model = DPHistogramDensity(bin_width=width, bounds=(0, 1), random_state=root_stream(0))
    model.fit(rows[:2_000])
    cells = DensityCells.of(model.density_, model.bin_edges_)
    evaluation = DensityEvaluation(
        counts_=np.zeros(cells.shape), n_records=1, privacy_=ANY_LOSS, **vars(cells)
    )
    found = np.exp(model.score_samples(rows))
    shares = np.bincount(cells.index(found, None), minlength=cells.shape[0]) / DRAWN
    return (
        shares,
        dict(evaluation._readers),
        {
            "integrated_squared_error": 2 * found.mean() - model.squared_integral(),
            "log_gain": np.log(np.maximum(found, LEAST_SHARE)).mean(),
            "zero_density": np.mean(found == 0),
        },
    )


KINDS = {
    "two classes": (two_classes, itertools.product(RATES, SLOPES)),
    "three classes": (three_classes, itertools.product((0.01, 0.2), SLOPES)),
    "confidence": (confidence, itertools.product((0.01, 0.2), SLOPES)),
    "regression": (
        regression,
        itertools.product(("normal", "skewed"), ("normal", "tails", "skewed"), (0.03, 0.1)),
    ),
    "density": (density, itertools.product((1, 2), (0.1, 0.02))),
}


def of_records(cells, size, epsilon, repetitions, stream):
    """Return noisy counts of records."""
    generator = as_generator(stream)
    drawn = generator.multinomial(size, cells, size=repetitions)
    noise = discrete_laplace(generator, drawn.shape, noise_ratio(epsilon, 2))
    return NoisyCounts.of(1.0 * (drawn + noise), size, noise_variance(epsilon))


def of_persons(cells, size, epsilon, repetitions, stream, rows, alike):
    """Likewise of persons, with `rows` each on average, of which a share `alike` equals their first."""
    generator = as_generator(stream)
    counts = np.empty((repetitions, len(cells)))
    for i in range(repetitions):
        m = generator.geometric(1 / rows, size=size)
        person, start = np.repeat(np.arange(size), m), np.cumsum(m) - m
        cell = generator.choice(len(cells), size=len(person), p=cells)
        cell = np.where(generator.random(len(person)) < alike, cell[start][person], cell)
        counts[i] = np.bincount(cell, 1 / m[person], len(cells))
    noise = generator.laplace(scale=2 / epsilon, size=counts.shape)
    return NoisyCounts.of(counts + noise, size, noise_variance(epsilon, True))


def coverage(law, draw, *case):
    """Yield for each metric its name, and the shares of repetitions that tell it, and tell it right."""
    cells, metrics, truths = law
    noisy = draw(cells, *case)
    for name, metric in metrics.items():
        value, low, high = metric(noisy)
        told = ~np.isnan(value)
        right = told & (low <= truths[name] + 1e-9) & (truths[name] - 1e-9 <= high)
        yield name, told.mean(), right.mean()


def brier_bounds(cells):
    """Return the least and the largest Brier score that a record of each cell can have."""
    K, (label, prediction, low, high) = len(cells.classes), cells.table
    right, low = label == prediction, np.where(label == prediction, np.maximum(low, 1 / K), low)
    # both fall with the probability of the label. The least: a wrong prediction is no less probable
    rest = 1 - high
    first = np.where(right, rest / (K - 1), np.maximum(high, rest / (K - 1)))
    least = rest**2 + first**2 + (rest - first) ** 2 / (K - 2)
    # the largest: as few others as can be, of which none is more probable than a right prediction
    rest, many = 1 - low, np.where(right, np.floor((1 - low) / np.where(low > 0, low, 1.0)), 0.0)
    largest = rest**2 + many * low**2 + (rest - many * low) ** 2
    return least, largest


def brier(n_classes, size, epsilon, repetitions):
    """Print what is known of a Brier score by such bounds."""
    rng, cells = np.random.default_rng(0), MulticlassCells(np.arange(n_classes), True)
    p = softmax(rng.normal(size=(DRAWN // 10, n_classes)) * SPREAD, axis=1)
    y = (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1).clip(max=n_classes - 1)
    scores, place = ((p - np.eye(n_classes)[y]) ** 2).sum(axis=1), cells.index(p, y)
    least, largest = brier_bounds(cells)
    assert (least[place] <= scores + 1e-9).all() and (scores <= largest[place] + 1e-9).all()
    shares = np.bincount(place, minlength=len(least)) / len(p)
    noisy = of_records(shares, size, epsilon, repetitions, root_stream(0))
    weights = np.ones(len(shares))
    low, high = noisy.mean(least, weights)[1].mean(), noisy.mean(largest, weights)[2].mean()
    said = f"{n_classes} classes, m = {size}, epsilon = {epsilon}"
    print(f"{said}: {scores.mean():.3f} [{low:.3f}, {high:.3f}]")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=float, help="rows a person; without it, each row is a person")
    parser.add_argument("--alike", type=float, default=0.5, help="share of equal rows of a person")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--brier", type=int, nargs="*", default=[], help="numbers of classes")
    parser.add_argument("--output", type=argparse.FileType("w"), default=sys.stdout)
    options = parser.parse_args(arguments)
    for n_classes in options.brier:
        for size in SIZES:
            brier(n_classes, size, 1.0, options.repetitions)
    everything = {}
    draw = (
        of_records
        if options.rows is None
        else functools.partial(of_persons, rows=options.rows, alike=options.alike)
    )
    for kind in options.kinds:
        law, cases = KINDS[kind]
        found = {}
        for (*case, size), epsilon in itertools.product(
            ((*case, size) for case, size in itertools.product(list(cases), SIZES)), EPSILONS
        ):
            where = (*case, size, epsilon)
            stream = root_stream(options.seed).child(*map(str, where))
            told_of = coverage(law(*case), draw, size, epsilon, options.repetitions, stream)
            for name, told, right in told_of:
                found.setdefault(name, []).append((told, right, where))
        write(kind, found, options.repetitions, options.output)
        everything[kind] = found
    return everything


def write(kind, found, repetitions, output):
    """Write a line for each metric."""
    cases = len(next(iter(found.values())))
    print(f"{kind}, {repetitions} repetitions in each of {cases} cases", file=output)
    print("", file=output)
    print(
        "| metric | least coverage | where | mean coverage "
        "| told and wrong, at most | never told | told in under a fifth |",
        file=output,
    )
    print("|" + " --- |" * 7, file=output)
    for name, rows in found.items():
        often = [(right / told, case) for told, right, case in rows if told >= OFTEN]
        least, case = min(often, default=(np.nan, ()))
        wrong = max(told - right for told, right, _ in rows)
        never = sum(told == 0 for told, _, _ in rows)
        seldom = sum(0 < told < OFTEN for told, _, _ in rows)
        print(
            f"| {name} | {least:.3f} | {', '.join(map(str, case))} | "
            f"{np.mean([share for share, _ in often]):.3f} | {wrong:.3f} | {never} | {seldom} |",
            file=output,
            flush=True,
        )
    print("", file=output)


if __name__ == "__main__":
    main()

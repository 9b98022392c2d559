"""Does choosing the bin width of a private histogram pay? Known densities, and columns of tables.

Run ``python benchmarks/density_tuning.py``. For each density on [0, 1], number of records n and
epsilon, the integrated squared error (exact, against the known density; less is better) of

- search: StabilityGridSearchCV over ``WIDTHS``, three tenths of epsilon for the choice, with a head
  start for the rule's width, as it comes;
- scores: the same without the head start, half of epsilon for the choice;
- best: the width with the least mean error in hindsight, with the whole epsilon;
- fixed: width 0.1 with the whole epsilon;
- rule: the width that the library's public rule takes from the grid, with the whole epsilon. It reads
  public numbers only and costs nothing.

``--data DIR``, where DIR holds ``adult.csv.gz`` and ``magic.csv.gz``, adds their columns of at least 15
values, between the least and the largest one; records are drawn from the column, which is the truth.
Then errors are less the integral of the squared density, which histograms do not know.

The last table counts combinations of density, n and epsilon in which the search is better or worse than
the other two by two standard errors of the paired difference.

The last columns show the widths that the search chose, what its plan() says, the difference
of scores that the plan says it can detect, and the difference between the errors of the
worst and the best width at half of epsilon. Expected scores differ by as much as errors do,
so a search is worth its price only where the last number is well above the one before it.

Each repetition draws new records from a fixed public seed, and fresh noise. Standard errors
are over repetitions.
"""

import argparse
import platform
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
import sklearn
from joblib import Parallel, delayed
from scipy import integrate, stats

import dpselect
from dpselect import DPHistogramDensity, StabilityGridSearchCV
from dpselect.model_selection.strategies.stability import Stability
from dpselect.records import PublicShape

WIDTHS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
FIXED = 0.1
EPSILONS = (0.1, 0.5, 1.0, 5.0)
SIZES = (1000, 10_000, 100_000)
DATA_SEED = 20130


def bell(centre, scale):
    """Return a normal law that is cut off at 0 and 1."""
    return stats.truncnorm(-centre / scale, (1 - centre) / scale, loc=centre, scale=scale)


class Mixture:
    """A density on [0, 1] that is known exactly.

    Parameters
    ----------
    *parts : (float, frozen law of scipy.stats)
        Weights, which add up to 1, and laws.
    breaks : sequence of float
        Where the density is steep, for its integral.
    """

    def __init__(self, *parts, breaks=()):
        self.weights, self.laws = zip(*parts)
        self.squared_integral = integrate.quad(
            lambda x: self._mix("pdf", x) ** 2,
            0,
            1,
            points=breaks or None,
            limit=500,
            epsabs=1e-10,
        )[0]

    def _mix(self, method, x):
        return sum(w * getattr(law, method)(x) for w, law in zip(self.weights, self.laws))

    def rows(self, n, rng):
        """Return `n` records, shape (n, 1)."""
        counts = rng.multinomial(n, self.weights)
        drawn = [law.rvs(k, random_state=rng) for law, k in zip(self.laws, counts)]
        return rng.permutation(np.concatenate(drawn))[:, None]

    def error(self, model):
        """Return the integrated squared error of a fitted histogram."""
        truth = np.diff(self._mix("cdf", model.bin_edges_[0]))
        return model.squared_integral() - 2 * np.sum(model.density_ * truth) + self.squared_integral


class Column:
    """A column of a table, scaled to [0, 1], from which records are drawn with replacement."""

    squared_integral = 0.0

    def __init__(self, values):
        self.values = values

    def rows(self, n, rng):
        """Return `n` records, shape (n, 1)."""
        return rng.choice(self.values, n)[:, None]

    def error(self, model):
        """Return the integrated squared error of a fitted histogram, but for a constant."""
        shares = np.histogram(self.values, model.bin_edges_[0])[0] / len(self.values)
        return model.squared_integral() - 2 * np.sum(model.density_ * shares)


def columns(directory):
    """Return the columns of the tables in a directory, by name."""
    found = {}
    for table in ("magic", "adult"):
        frame = pd.read_csv(Path(directory) / f"{table}.csv.gz")
        for name in frame:
            values = pd.to_numeric(frame[name], errors="coerce").dropna().to_numpy(float)
            if len(values) == len(frame) and len(np.unique(values)) >= 15:
                low, high = values.min(), values.max()
                found[f"{table} {name}"] = Column((values - low) / (high - low))
    return found


DENSITIES = {
    "nearly uniform": Mixture((1.0, stats.beta(1.2, 1.2))),
    "smooth": Mixture((1.0, stats.beta(2, 5))),
    "bimodal": Mixture((0.5, bell(0.3, 0.07)), (0.5, bell(0.7, 0.07))),
    "spiky": Mixture((0.7, stats.uniform()), (0.3, bell(0.42, 0.01)), breaks=[0.36, 0.42, 0.48]),
}


class ScoresAlone(Stability):
    """The search without the public rule."""

    def _head_start_and_fraction(self):
        return 0.0, 0.5


def rule(n, epsilon):
    """Return the width that the public rule takes from the grid."""

    def cost(width):
        model = DPHistogramDensity(epsilon, bin_width=width, bounds=(0, 1))
        return sum(model.calibration(PublicShape(n, 1)).regularisation_parts())

    return min(WIDTHS, key=cost)


def search(epsilon, strategy="stability"):
    """Return the private search."""
    return StabilityGridSearchCV(
        DPHistogramDensity(bounds=(0, 1)),
        {"bin_width": list(WIDTHS)},
        epsilon=epsilon,
        strategy=strategy,
    )


def repeat(name, truth, n, repetition):
    """Return the errors of one data set.

    Parameters
    ----------
    name : str
        Of the density.
    truth : Mixture or Column
    n : int
    repetition : int

    Returns
    -------
    dict of float to dict
        For each epsilon the searches' errors, the width of the first, and the error of each width with
        all and with half of epsilon.
    """
    seed = [DATA_SEED, *name.encode(), n, repetition]
    X = truth.rows(n, np.random.default_rng(seed))
    results = {}
    for epsilon in EPSILONS:
        tuned = search(epsilon).fit(X)
        results[epsilon] = {
            "search": truth.error(tuned.best_estimator_),
            "chosen": tuned.best_params_["bin_width"],
            "scores": truth.error(search(epsilon, ScoresAlone).fit(X).best_estimator_),
            "widths": [
                truth.error(DPHistogramDensity(epsilon, bin_width=h, bounds=(0, 1)).fit(X))
                for h in WIDTHS
            ],
            "candidates": [
                truth.error(DPHistogramDensity(epsilon / 2, bin_width=h, bounds=(0, 1)).fit(X))
                for h in WIDTHS
            ],
        }
    return results


def mean_and_error(values):
    """Return "mean (standard error)"."""
    values = np.asarray(values)
    return f"{values.mean():.4f} ({values.std(ddof=1) / np.sqrt(len(values)):.4f})"


def row(n, epsilon, results):
    """Return one line of a density's table."""
    by_width = np.array([result["widths"] for result in results])
    candidates = np.mean([result["candidates"] for result in results], axis=0)
    best = int(by_width.mean(axis=0).argmin())
    counts = sorted(Counter(result["chosen"] for result in results).items())
    plan = search(epsilon).plan(n, 1)
    said = " ".join(plan.messages)
    cells = [
        f"{n}",
        f"{epsilon:g}",
        mean_and_error([result["search"] for result in results]),
        mean_and_error([result["scores"] for result in results]),
        f"{mean_and_error(by_width[:, best])} {WIDTHS[best]:g}",
        mean_and_error(by_width[:, WIDTHS.index(FIXED)]),
        f"{mean_and_error(by_width[:, WIDTHS.index(rule(n, epsilon))])} {rule(n, epsilon):g}",
        ", ".join(f"{h:g}: {k}" for h, k in counts),
        "underpowered" if "underpowered" in said else "powered",
        f"{plan.minimum_detectable_difference:.3f}",
        f"{candidates.max() - candidates.min():.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def compared(cells, methods):
    """Return how often the search is better and worse than each method, and mean errors.

    `cells` holds the results of each combination; errors are less that of the best width.
    """
    lines = []
    for method in methods:
        better = worse = 0
        means = []
        for (_, n, epsilon), results in cells.items():
            ours = np.array([result["search"] for result in results])
            if method == "rule":
                theirs = [result["widths"][WIDTHS.index(rule(n, epsilon))] for result in results]
            else:
                theirs = [result[method] for result in results]
            least = np.mean([result["widths"] for result in results], axis=0).min()
            means.append([ours.mean() - least, np.mean(theirs) - least])
            difference = np.array(theirs) - ours
            margin = 2 * difference.std(ddof=1) / np.sqrt(len(difference))
            better += difference.mean() > margin
            worse += difference.mean() < -margin
        ours, theirs = np.mean(means, axis=0)
        lines.append(f"| {method} | {better} | {worse} | {len(cells)} | {ours:.4f} | {theirs:.4f} |")
    return lines


def main():
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--data", help="a directory with adult.csv.gz and magic.csv.gz")
    parser.add_argument("--jobs", type=int, default=2, help="processes that share repetitions")
    options = parser.parse_args()
    start = time.perf_counter()
    truths = DENSITIES | (columns(options.data) if options.data else {})
    # columns have fewer records than that
    sizes = {name: SIZES if name in DENSITIES else SIZES[:2] for name in truths}
    tasks = [
        (name, truths[name], n, r)
        for name in truths
        for n in sorted(sizes[name], reverse=True)
        for r in range(options.repetitions)
    ]
    errors = Parallel(n_jobs=options.jobs)(delayed(repeat)(*task) for task in tasks)
    done = {(name, n, r): found for (name, _, n, r), found in zip(tasks, errors)}
    cells = {
        (name, n, epsilon): [done[name, n, r][epsilon] for r in range(options.repetitions)]
        for name in truths
        for n in sizes[name]
        for epsilon in EPSILONS
    }
    header = [
        "n",
        "epsilon",
        "search",
        "scores",
        "best, width",
        "fixed 0.1",
        "rule, width",
        "chosen: runs",
        "plan()",
        "detects",
        "worst - best",
    ]
    for name, truth in truths.items():
        print(f"\n## {name}: integral of the squared density {truth.squared_integral:.3f}\n")
        print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}")
        for n in sizes[name]:
            for epsilon in EPSILONS:
                print(row(n, epsilon, cells[name, n, epsilon]))
    for title, prefix in (("known densities", ""), ("magic", "magic "), ("adult", "adult ")):
        chosen = {
            key: results
            for key, results in cells.items()
            if (key[0].startswith(prefix) if prefix else key[0] in DENSITIES)
        }
        if chosen:
            print(f"\n## {title}: the search against others; errors less that of the best width\n")
            print("| against | better | worse | of | search | other |\n|" + " --- |" * 6)
            print("\n".join(compared(chosen, ("scores", "rule"))))
    versions = [f"{module.__name__} {module.__version__}" for module in (dpselect, sklearn, np, scipy)]
    print(
        f"\n{options.repetitions} repetitions. Python {platform.python_version()}, "
        f"{', '.join(versions)}. Took {time.perf_counter() - start:.0f} s with "
        f"{options.jobs} jobs."
    )


if __name__ == "__main__":
    main()

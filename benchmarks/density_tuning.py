"""Does choosing the bin width of a private histogram pay? Four known densities on [0, 1].

Run ``python benchmarks/density_tuning.py``. For each density, number of records n and
epsilon, the integrated squared error (exact, against the known density; less is better) of

- search: StabilityGridSearchCV over ``WIDTHS``, half of epsilon for the choice, as it
  comes;
- best: the width with the least mean error in hindsight, with the whole epsilon;
- fixed: width 0.1 with the whole epsilon;
- rule: the width of the grid at which 100 h^2 / 12 + 1 / (n h) + 8 / (n epsilon h)^2 is
  least, with the whole epsilon. These are the mean errors from the derivative (the integral
  of its square being 100, as for a bell of standard deviation 0.11), from sampling and
  from noise. It reads public numbers only and costs nothing.

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

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed
from scipy import integrate, stats

import dpselect
from dpselect import DPHistogramDensity, StabilityGridSearchCV

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


DENSITIES = {
    "nearly uniform": Mixture((1.0, stats.beta(1.2, 1.2))),
    "smooth": Mixture((1.0, stats.beta(2, 5))),
    "bimodal": Mixture((0.5, bell(0.3, 0.07)), (0.5, bell(0.7, 0.07))),
    "spiky": Mixture((0.7, stats.uniform()), (0.3, bell(0.42, 0.01)), breaks=[0.36, 0.42, 0.48]),
}


def rule(n, epsilon):
    """Return the width that the public rule takes from the grid."""
    return min(WIDTHS, key=lambda h: 100 * h**2 / 12 + 1 / (n * h) + 8 / (n * epsilon * h) ** 2)


def search(epsilon):
    """Return the private search."""
    return StabilityGridSearchCV(
        DPHistogramDensity(bounds=(0, 1)),
        {"bin_width": list(WIDTHS)},
        epsilon=epsilon,
        strategy="stability",
    )


def repeat(name, n, repetition):
    """Return the errors of one data set.

    Parameters
    ----------
    name : str
        Of the density.
    n : int
    repetition : int

    Returns
    -------
    dict of float to dict
        For each epsilon the search's error and width, and the error of each width with all
        and with half of epsilon.
    """
    truth = DENSITIES[name]
    seed = [DATA_SEED, list(DENSITIES).index(name), n, repetition]
    X = truth.rows(n, np.random.default_rng(seed))
    results = {}
    for epsilon in EPSILONS:
        tuned = search(epsilon).fit(X)
        results[epsilon] = {
            "search": truth.error(tuned.best_estimator_),
            "chosen": tuned.best_params_["bin_width"],
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
        f"{mean_and_error(by_width[:, best])} {WIDTHS[best]:g}",
        mean_and_error(by_width[:, WIDTHS.index(FIXED)]),
        f"{mean_and_error(by_width[:, WIDTHS.index(rule(n, epsilon))])} {rule(n, epsilon):g}",
        ", ".join(f"{h:g}: {k}" for h, k in counts),
        "underpowered" if "underpowered" in said else "powered",
        f"{plan.minimum_detectable_difference:.3f}",
        f"{candidates.max() - candidates.min():.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def main():
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2, help="processes that share repetitions")
    options = parser.parse_args()
    start = time.perf_counter()
    tasks = [
        (name, n, r)
        for n in sorted(SIZES, reverse=True)
        for name in DENSITIES
        for r in range(options.repetitions)
    ]
    done = dict(zip(tasks, Parallel(n_jobs=options.jobs)(delayed(repeat)(*task) for task in tasks)))
    header = [
        "n",
        "epsilon",
        "search",
        "best, width",
        "fixed 0.1",
        "rule, width",
        "chosen: runs",
        "plan()",
        "detects",
        "worst - best",
    ]
    for name, truth in DENSITIES.items():
        print(f"\n## {name}: integral of the squared density {truth.squared_integral:.3f}\n")
        print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}")
        for n in SIZES:
            for epsilon in EPSILONS:
                results = [done[name, n, r][epsilon] for r in range(options.repetitions)]
                print(row(n, epsilon, results))
    versions = [f"{module.__name__} {module.__version__}" for module in (dpselect, sklearn, np, scipy)]
    print(
        f"\n{options.repetitions} repetitions. Python {platform.python_version()}, "
        f"{', '.join(versions)}. Took {time.perf_counter() - start:.0f} s with "
        f"{options.jobs} jobs."
    )


if __name__ == "__main__":
    main()

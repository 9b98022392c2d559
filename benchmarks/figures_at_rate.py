"""Recall where a share of the records is flagged: coverage, width, and the share that is flagged.

A rare class has normal scores, 1.5 standard deviations above the others. Models know its probability,
or are as cautious as a strongly regularised one: logits are a fifth as far from that of the share.
Thresholds are the default ones, or those around the public share of the class.

    python benchmarks/figures_at_rate.py --repetitions 400
"""

import argparse
import itertools

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from dpselect.evaluation.calibrated import threshold_for
from dpselect.evaluation.release import EvaluationPlan, count
from dpselect.evaluation.score_bins import BinaryCells, edges_of

SHARES, SIZES, RATES = (0.02, 0.05, 0.1), (5_000, 20_000), (0.05, 0.1, 0.2)
EPSILON, SEPARATION, POPULATION = 1.0, 1.5, 1_000_000


def drawn(m, share, caution, rng):
    """Return labels and scores of m records."""
    y = (rng.random(m) < share).astype(int)
    x = rng.normal(size=m) + SEPARATION * y
    odds = logit(share) + norm.logpdf(x - SEPARATION) - norm.logpdf(x)
    return y, expit(logit(share) + caution * (odds - logit(share)))


def recall(y, p, rate):
    return (p[y == 1] > np.quantile(p, 1 - rate)).mean()


def measured(share, m, caution, around, repetitions, rng):
    """Return for each rate and repetition: known, covered, width, and the share flagged by the asked."""
    population = drawn(POPULATION, share, caution, rng)
    true = {rate: recall(*population, rate) for rate in RATES}
    cells = BinaryCells(np.array([0, 1]), True, edges_of(share if around else None))
    rows = {rate: [] for rate in RATES}
    for repetition in range(repetitions):
        plan = EvaluationPlan(cells, EPSILON, random_state=rng.integers(2**31))
        y, p = drawn(m, share, caution, rng)
        evaluation = plan.read(count(cells, 1, p, y) + plan.standard_noise(64), m)
        for rate in RATES:
            found = evaluation.metric("recall", rate=rate)
            flagged = np.nan
            if repetition % 10 == 0:  # it takes most of the time
                threshold = threshold_for(evaluation, "rate", rate)
                flagged = np.mean(population[1][:100_000] > threshold)
            inside = found.low <= true[rate] <= found.high
            rows[rate].append((not found.empty, inside, found.high - found.low, flagged / rate))
    return rows


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    print("| share | m | model | thresholds | rate | told | coverage | width | flagged / asked |")
    print("|" + " --- |" * 9)
    for share, m, caution, around in itertools.product(SHARES, SIZES, (1.0, 0.2), (False, True)):
        rows = measured(share, m, caution, around, options.repetitions, rng)
        for rate, found in rows.items():
            told, inside, width, flagged = np.array(found).T
            known = told == 1
            coverage, median = (
                (f"{inside[known].mean():.3f}", f"{np.median(width[known]):.3f}")
                if known.any()
                else "--"
            )
            low, high = np.nanquantile(flagged, [0.05, 0.95])
            model, where = ("cautious", "sure")[caution == 1.0], ("default", "around")[around]
            print(
                f"| {share} | {m} | {model} | {where} | {rate} | {told.mean():.2f} "
                f"| {coverage} | {median} | {low:.2f} to {high:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""A lower bound on the privacy loss from samples of a release on two neighbouring data sets."""

import itertools

import numpy as np
from scipy.stats import beta

FALSE_ALARM = 1e-7
# stands for samples that a statistic does not look at
OUTSIDE = 1e300


def loss_lower_bound(outputs, neighbour_outputs, alarm=FALSE_ALARM):
    """Bound the privacy loss from below, wrongly with probability at most `alarm`.

    Parameters
    ----------
    outputs, neighbour_outputs : ndarray of shape (N,)
        A statistic of the released values, on the two data sets.
    alarm : float

    Returns
    -------
    float
        log(p / q) for the interval whose log-ratio was largest on one half of the samples, with
        Clopper-Pearson bounds for p and q from the other half.
    """
    halves = [(s[: len(s) // 2], s[len(s) // 2 :]) for s in (outputs, neighbour_outputs)]
    best, event = -np.inf, None
    pooled = np.concatenate([halves[0][0], halves[1][0]])
    edges = np.quantile(pooled[pooled < OUTSIDE], np.linspace(0, 1, 81)[1:-1])
    edges = np.concatenate([[-np.inf], edges, [np.inf]])
    counts = [np.histogram(half[0], edges)[0].cumsum() for half in halves]
    for i, j in itertools.combinations(range(len(edges)), 2):
        p, q = ((c[j - 1] - (c[i - 1] if i else 0) + 0.5) / len(halves[0][0]) for c in counts)
        for swapped, value in ((False, np.log(p / q)), (True, np.log(q / p))):
            # rate an event by what could be proved of it, not by its ratio alone
            rare = min(p, q) * len(halves[0][0])
            value -= 5 / np.sqrt(rare)
            if value > best:
                best, event = value, (edges[i], edges[j], swapped)
    low, high, swapped = event
    hits = [int(((low < half[1]) & (half[1] <= high)).sum()) for half in halves]
    sizes = [len(half[1]) for half in halves]
    if swapped:
        hits, sizes = hits[::-1], sizes[::-1]
    p = beta.ppf(alarm / 2, hits[0], sizes[0] - hits[0] + 1) if hits[0] else 0.0
    q = beta.isf(alarm / 2, hits[1] + 1, sizes[1] - hits[1]) if hits[1] < sizes[1] else 1.0
    return float(np.log(p / q)) if p > 0 else -np.inf

"""Which law of the number of runs does random stopping want? MAGIC and Adult, by released models.

Run ``python benchmarks/stopping_laws.py --data DIR``, where DIR holds ``adult.csv.gz`` and
``magic.csv.gz``; without ``--data`` both are downloaded from openml.org.

Candidates are three or ten values of alpha of DPLogisticRegression, in geometric steps from 1e-4 to 1
times the squared norm of rows. Four fifths of 10,000 records (8,000 of Adult) train, and one fifth
chooses.
For each epsilon of a run, which the law decides, pools of trained models are made once (25 of each
candidate, 16 of Adult), with their Brier scores on the records that choose, and on all others. A
search then draws its runs from the pool, as often as the law says, with new noise on the scores. A line
has the law's shape eta and its mean over the number of candidates, the epsilon of a run, and the Brier
score of what comes out, times 100: mean and standard error over 1,500 searches. The pools are the
same for all of them, so differences between laws of different epsilon have the noise of the
pools besides.
"""

import argparse

import numpy as np
from _data import load

from dpselect import DPLogisticRegression
from dpselect.mechanisms.random_stopping import run_epsilon
from dpselect.mechanisms.stopping_laws import TruncatedNegativeBinomial
from dpselect.metrics import BrierScore

TABLES = {"magic": (10_000, 25), "adult": (8_000, 16)}
EPSILONS = (0.3, 1.0, 3.0)
ETAS, MEANS = (0.0, 0.5, 1.0, 2.0), (3, 5, 10, 20)
SEARCHES = 1500


def pool(models, X, y, parts, size):
    """Return the scores on the records that choose and on the others, shape (k, size, 2)."""
    train, choose, test = parts
    score, found = BrierScore(), np.empty((len(models), size, 2))
    for i, model in enumerate(models):
        for j in range(size):
            model.fit(X[train], y[train])
            found[i, j] = score(model, X[choose], y[choose]), score(model, X[test], y[test])
    return found


def searches(pool, law, scale, rng):
    """Return what searches release, by its score on other records."""
    found = np.empty(SEARCHES)
    for search in range(SEARCHES):
        runs = law.draw(rng)
        i, j = rng.integers(len(pool), size=runs), rng.integers(pool.shape[1], size=runs)
        best = np.argmax(pool[i, j, 0] + rng.laplace(scale=scale, size=runs))
        found[search] = -100 * pool[i[best], j[best], 1]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", help="folder of the two files")
    folder = parser.parse_args().data
    for name, (n, size) in TABLES.items():
        data = load(name, folder)
        order = np.random.default_rng(0).permutation(len(data.y))
        X, y = np.asarray(data.steps().fit_transform(data.X))[order], np.asarray(data.y)[order]
        parts = slice(0, n * 4 // 5), slice(n * 4 // 5, n), slice(n, None)
        ten = data.data_norm**2 * np.geomspace(1e-4, 1, 10)
        for alphas in (ten, ten[[1, 4, 8]]):
            for epsilon in EPSILONS:
                pools = {}
                print(f"{name}, {len(alphas)} candidates, epsilon {epsilon}")
                for eta in ETAS:
                    for mean in MEANS:
                        law = TruncatedNegativeBinomial.from_mean(float(mean * len(alphas)), eta)
                        run = run_epsilon(epsilon, law)
                        key = round(run / epsilon, 2)  # nearly the same epsilon
                        if key not in pools:
                            models = [
                                DPLogisticRegression(
                                    key * epsilon,
                                    alpha=alpha,
                                    data_norm=data.data_norm,
                                    classes=np.unique(y),
                                )
                                for alpha in alphas
                            ]
                            pools[key] = pool(models, X, y, parts, size)
                        scale = 1 / (n - n * 4 // 5) / run
                        found = searches(pools[key], law, scale, np.random.default_rng(1))
                        print(
                            f"  eta {eta}, mean {mean} k, run {run:.3f}: {found.mean():.3f} "
                            f"({found.std(ddof=1) / SEARCHES**0.5:.3f})",
                            flush=True,
                        )


if __name__ == "__main__":
    main()

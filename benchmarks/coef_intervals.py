"""How often intervals of coefficients hold, and how wide they are beside those without privacy.

    python benchmarks/coef_intervals.py --repetitions 1000 --records 2000 20000 --epsilons 0.3 1 3

For each model, number of records that train (as many others tell how far coefficients are known)
and epsilon (of each part): the share of 95 % intervals that hold the coefficients of two million
records, the least and the mean one over the coefficients; the mean width divided by that without
privacy; the share of the variance that is due to the noise of the model; and how often nothing is said.
"""

import argparse
import warnings

import numpy as np
from sklearn.base import clone

from dpselect import (
    DPHuberRegressor,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    coef_interval,
)
from dpselect.capabilities import PublicShape

TRUE = np.array([2.0, -1.0, 0.5, 0.0])
POPULATION = 2_000_000
MODELS = {
    "logistic": DPLogisticRegression(classes=[0, 1], alpha=0.001),
    "logistic, auto": DPLogisticRegression(classes=[0, 1]),
    "ridge, sums": DPRidge(target_range=(-2, 2), alpha=0.01),
    "ridge, objective": DPRidge(target_range=(-2, 2), alpha=0.01, perturbation="objective"),
    "huber": DPHuberRegressor(target_range=(-2, 2), alpha=0.001),
    "poisson": DPPoissonRegressor(target_bound=6.0, alpha=0.01),
}


def records(name, n, rng):
    """Return rows of l2 norm up to 1 with columns that go together, and labels, targets or counts."""
    common = rng.normal(size=(n, 1))
    X = np.tanh(0.5 * common + rng.normal(size=(n, len(TRUE)))) / 2
    z = X @ TRUE
    if name.startswith("logistic"):
        return X, (z + rng.logistic(size=n) > 1).astype(int)
    if name == "poisson":
        return X, np.minimum(rng.poisson(np.exp(z / 2)), 6)
    # errors that grow with a column
    return X, z / 2 + rng.normal(size=n) * (0.2 + 0.3 * np.abs(X[:, 0]))


def truth(name, model, alpha):
    """Return the coefficients of the population, with the same penalty."""
    X, y = records(name, POPULATION, np.random.default_rng(1))
    exact = clone(model).set_params(epsilon=float("inf"), alpha=alpha).fit(X, y)
    return np.append(np.ravel(exact.coef_), exact.intercept_)


def interval(name, model, n, epsilon, rng):
    """Return the intervals of one fit."""
    X, y = records(name, 2 * n, rng)
    fitted = clone(model).set_params(epsilon=epsilon).fit(X[:n], y[:n])
    return coef_interval(fitted, X[n:], y[n:], epsilon=epsilon, n_samples=n)


def cell(name, model, n, epsilon, repetitions, true):
    """Return least and mean coverage, relative width, share of noise, and share of silence."""
    rng, inside, widths, shares, empty = np.random.default_rng(0), [], [], [], 0
    for _ in range(repetitions):
        found = interval(name, model, n, epsilon, rng)
        if found.empty:
            empty += 1
            continue
        low, high = found.confidence_interval()
        inside.append((low <= true) & (true <= high))
        widths.append(high - low)
        shares.append(found.noise_share.mean())
    low, high = interval(name, model, n, float("inf"), rng).confidence_interval()
    if not inside:
        return *[float("nan")] * 4, 1.0
    coverage = np.mean(inside, axis=0)
    width = (np.mean(widths, axis=0) / (high - low)).mean()
    return coverage.min(), coverage.mean(), width, np.mean(shares), empty / repetitions


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--records", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'model':18}{'n':>8}{'epsilon':>9}{'least':>8}{'mean':>8}{'width':>8}{'noise':>8}{'silent':>8}")
    for name in options.models:
        model, true = MODELS[name], None
        for n in options.records:
            for epsilon in options.epsilons:
                alpha = model.alpha
                if alpha == "auto":
                    alpha = model.calibration(PublicShape(n, len(TRUE)), epsilon).alpha
                if true is None or model.alpha == "auto":
                    true = truth(name, model, alpha)
                fixed = clone(model).set_params(alpha=alpha)
                numbers = cell(name, fixed, n, epsilon, options.repetitions, true)
                said = "".join(f"{number:8.3f}" for number in numbers)
                print(f"{name:18}{n:8}{epsilon:9}{said}", flush=True)


if __name__ == "__main__":
    main()

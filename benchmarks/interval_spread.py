"""How wide are intervals of coefficients, in standard deviations of the coefficients over fits?

Run ``python benchmarks/interval_spread.py``. For Poisson regressions of several sizes and bounds on the
counts, with epsilon 1 for the model and 1 for the intervals, on as many other records: the median over
coefficients of the half-width of 95 % intervals over 1.96 standard deviations of

- 25 fits of the same records, which differ by the noise alone;
- 25 fits of fresh records each, which differ by sampling, too: that is what an interval covers;

and the same half-width without privacy (epsilon = inf for the intervals) over the latter. "nan" is
where nothing is said.
"""

import warnings

import numpy as np

from dpselect import DPPoissonRegressor, coef_interval

SIZES = (5000, 20_000, 80_000)
MODELS = ((6, 0.01), (6, "auto"), (20, 0.01))
FITS, INTERVALS, SEED = 25, 6, 0
COEF = [1.0, -0.5, 0.3, 0.0]


def records(n, bound, rng):
    """Return rows and counts of one law."""
    X = rng.uniform(-0.5, 0.5, size=(n, len(COEF)))
    return X, np.minimum(rng.poisson(np.exp(X @ COEF)), bound)


def half_widths(model, X, y, epsilon):
    """Return half the widths of the 95 % intervals, but for the intercept."""
    found = coef_interval(model, X, y, epsilon=epsilon, n_samples=len(X)).confidence_interval()
    return (found.high - found.low)[: len(COEF)] / 2


def ratios(n, bound, alpha):
    """Return the three ratios."""
    rng = np.random.default_rng(SEED)
    model = DPPoissonRegressor(epsilon=1.0, target_bound=float(bound), alpha=alpha)
    same = records(n, bound, rng)
    one = np.std([model.fit(*same).coef_.copy() for _ in range(FITS)], axis=0)
    fresh = np.std([model.fit(*records(n, bound, rng)).coef_.copy() for _ in range(FITS)], axis=0)
    found = []
    for _ in range(INTERVALS):
        fitted, others = model.fit(*records(n, bound, rng)), records(n, bound, rng)
        private, exact = (half_widths(fitted, *others, epsilon) for epsilon in (1.0, np.inf))
        found.append([private / one, private / fresh, exact / fresh])
    return np.median(np.array(found) / 1.96, axis=(0, 2))


def main():
    """Print the table."""
    print("| records | bound | alpha | same records | fresh records | fresh, exact |\n|" + " --- |" * 6)
    for n in SIZES:
        for bound, alpha in MODELS:
            cells = " | ".join(f"{ratio:.2f}" for ratio in ratios(n, bound, alpha))
            print(f"| {n:,} | {bound} | {alpha} | {cells} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()

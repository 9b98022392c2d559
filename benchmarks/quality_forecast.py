"""What share of its gain over a constant does a model keep under privacy, by public numbers?

Run ``python benchmarks/quality_forecast.py --data DIR``, and with ``--fresh`` for the tables of
``_fresh_tables.py``; its head and that of ``_tables.py`` say what to install. What the files of results
hold is not run again. It prints the lines of ``dpselect/model_selection/quality_forecast.py``, and how
often a band holds on a table that took no part in its fit.

Those of the AUC and the Brier score were fitted on the first tables. Of the first tables only three are
of numbers, which is too few for a band: lines of R^2 are fitted on all, and checked on each half of the
fresh ones with lines of the other half.

A model is ours by its defaults (of counts, too, DPHuberRegressor), and its gain that over the mean of
the training rows (an AUC of 1/2, a Brier score or R^2 of a constant). The share is this gain over that
of the same model without noise on the same rows. What it is compared with is the signal, n epsilon over
the length of the noise, times 4 s (1 - s) of two classes of which the rarer one has the share s.
"""

import argparse
import itertools
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _fresh_tables import FRESH_TABLES
from _peers import default_pipeline
from _tables import TABLES, MissingPackageError, load
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import brier_score_loss, r2_score, roc_auc_score

from dpselect.model_selection.quality_forecast import weighted
from dpselect.records.public_shape import PublicShape

EPSILONS = (math.inf, 0.1, 0.3, 1.0, 3.0, 10.0)
DELTAS = (0.0, 1e-6)
SIZES, REPETITIONS = (800, 4000, 20_000), 2
# of a band for eight of ten; beyond that for classes, where few tables differ by more than splits of one
QUANTILES = {"roc_auc": (0.05, 0.5, 0.95), "brier": (0.05, 0.5, 0.95), "r2": (0.1, 0.5, 0.9)}
# metrics whose lines are fitted on the fresh tables, too
WITH_FRESH = ("r2",)
# R^2 without noise from which on there is something to keep
LEAST_GAIN = {"r2": 0.05}
# shares are cut to these before their logarithms are taken
LEAST, MOST = 0.01, 0.99
RESULTS, FILES = (
    Path(__file__).parent / "results",
    ("quality_forecast.csv", "quality_forecast_fresh.csv"),
)
KEY = ["table", "size", "epsilon", "delta", "repetition"]


def gains(table, y_train, y, predicted):
    """Return the gain of each metric over a constant."""
    mean = np.full(len(y), y_train.mean())
    if table.task == "classes":
        return {
            "roc_auc": roc_auc_score(y, predicted) - 0.5,
            "brier": brier_score_loss(y, mean) - brier_score_loss(y, predicted),
        }
    return {"r2": r2_score(y, np.clip(predicted, *table.target_bounds)) - r2_score(y, mean)}


def line(table, size, epsilon, delta, repetition):
    """Return one line of the file of results."""
    X, y, X_test, y_test = table.split(repetition)
    order = np.random.default_rng(repetition).permutation(len(y))[:size]
    X, y = X.iloc[order], y[order]
    task, seed = "classes" if table.task == "classes" else "numbers", 1000 * repetition + 1
    pipeline = default_pipeline(table.schema, task, table.target_bounds, epsilon, seed, delta=delta)
    fitted = pipeline.fit(X, y)
    share = min(y.mean(), 1 - y.mean()) if table.task == "classes" else 0.5
    last = fitted[-1]
    planned = clone(last).set_params(base_rate=None) if table.task == "classes" else last
    signal = planned.calibration(PublicShape(len(y), last.n_features_in_)).signal
    predicted = fitted.predict_proba(X_test)[:, 1] if table.task == "classes" else fitted.predict(X_test)
    known = {"n": len(y), "share": round(share, 4), "signal": float(f"{signal:.6g}")}
    found = {name: round(gain, 6) for name, gain in gains(table, y, y_test, predicted).items()}
    return dict(zip(KEY, (table.name, size, epsilon, delta, repetition))) | known | found


def shares(results):
    """Return the shares of a file of results, where a gain is to be had, with metric and signal."""
    noisy = results[results["epsilon"] < math.inf]
    without = results[(results["epsilon"] == math.inf) & (results["delta"] == 0)]
    both = noisy.merge(without, on=["table", "size", "repetition"], suffixes=("", "_without"))
    parts = []
    for metric in ("roc_auc", "brier", "r2"):
        part = both[both[f"{metric}_without"] > LEAST_GAIN.get(metric, 0.0)]
        parts.append(
            pd.DataFrame(
                {
                    "table": part["table"],
                    "metric": metric,
                    "signal": weighted(part["signal"], part["share"]),
                    "share": part[metric] / part[f"{metric}_without"],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def fitted_lines(found):
    """Return the lines of each metric: of each quantile (a, b), logit(share) = a + b log(signal)."""
    lines = {}
    for metric, part in found.groupby("metric", sort=False):
        x = np.log(part["signal"].to_numpy())[:, None]
        share = np.clip(part["share"].to_numpy(), LEAST, MOST)
        # each table counts as much as any other
        weight = 1 / part.groupby("table")["share"].transform("size").to_numpy()
        fits = [
            QuantileRegressor(quantile=q, alpha=0.0).fit(x, logit(share), weight)
            for q in QUANTILES[metric]
        ]
        lines[metric] = tuple((round(float(f.intercept_), 2), round(float(f.coef_[0]), 2)) for f in fits)
    return lines


def coverage(found):
    """Return, by metric, how often a share lies in the band that was fitted without its table."""
    inside = {}
    for table in found["table"].unique():
        lines = fitted_lines(found[found["table"] != table])
        for metric, part in found[found["table"] == table].groupby("metric"):
            low, _, high = (expit(a + b * np.log(part["signal"])) for a, b in lines[metric])
            share = np.clip(part["share"], LEAST, MOST)
            inside.setdefault(metric, {})[table] = float(((low <= share) & (share <= high)).mean())
    return inside


def fitted(first, fresh):
    """Return the shares that lines are fitted on."""
    return pd.concat([first, fresh[fresh["metric"].isin(WITH_FRESH)]], ignore_index=True)


def in_band(lines, found):
    """Return, by metric and table, how often a share lies in a band, and how far the median is off."""
    rows = []
    for (metric, table), part in found.groupby(["metric", "table"], sort=False):
        low, median, high = (expit(a + b * np.log(part["signal"])) for a, b in lines[metric])
        share = np.clip(part["share"], LEAST, MOST)
        rows.append(
            (metric, table, ((low <= share) & (share <= high)).mean(), abs(median - share).mean())
        )
    return pd.DataFrame(rows, columns=["metric", "table", "inside", "off"]).set_index(
        ["metric", "table"]
    )


def halves(first, fresh, metric):
    """Return :func:`in_band` of each half of the fresh tables, by lines of all others."""
    first, fresh = (found[found["metric"] == metric] for found in (first, fresh))
    names = sorted(fresh["table"].unique())
    covered = {}
    for checked in itertools.combinations(names, len(names) // 2):
        held = fresh["table"].isin(checked)
        lines = fitted_lines(pd.concat([first, fresh[~held]]))
        covered[checked] = in_band(lines, fresh[held])
    return covered


def run(options):
    """Run what is missing and append it to the file of results."""
    path, tables = RESULTS / FILES[options.fresh], FRESH_TABLES if options.fresh else TABLES
    done = set()
    if path.exists():
        done = set(pd.read_csv(path)[KEY].itertuples(index=False, name=None))
    for name in tables:
        keys = [
            (name, size, epsilon, delta, repetition)
            for repetition in range(REPETITIONS)
            for size in SIZES
            for epsilon in EPSILONS
            for delta in (DELTAS if epsilon < math.inf else (0.0,))
        ]
        keys = [key for key in keys if key not in done]
        try:
            table = load(name, options.data) if keys else None
        except MissingPackageError as missing:
            print(f"{name}: {missing}")
            continue
        for key in keys:
            made = pd.DataFrame([line(table, *key[1:])])
            columns = [*KEY, "n", "share", "signal", "roc_auc", "brier", "r2"]
            made.reindex(columns=columns).to_csv(path, mode="a", header=not path.exists(), index=False)
        print(name, flush=True)
    report()


def report():
    """Print the lines and how often their bands hold."""
    first, fresh = (shares(pd.read_csv(RESULTS / name)) for name in FILES)
    lines, covered = fitted_lines(fitted(first, fresh)), coverage(fitted(first, fresh))
    for metric, each in lines.items():
        inside = covered[metric]
        print(f'"{metric}": {each},  # {len(inside)} tables')
        print(f"   in bands fitted without the table: {np.mean(list(inside.values())):.2f}", inside)
    print("Fresh tables in the bands of all lines, and how far the median is off:")
    print(in_band(lines, fresh).groupby("metric").agg(["mean", "count"]).round(3))
    for metric in WITH_FRESH:
        checked = [half.mean() for half in halves(first, fresh, metric).values()]
        inside, off = ([float(half[name]) for half in checked] for name in ("inside", "off"))
        print(
            f"{metric}: on {len(checked)} halves of the fresh tables by lines of the others: "
            f"{np.mean(inside):.2f} in the bands ({min(inside):.2f} to {max(inside):.2f}), "
            f"the median off by {np.mean(off):.3f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", help="folder of the tables that no package brings")
    parser.add_argument("--fresh", action="store_true", help="the fresh tables, in place of the first")
    warnings.simplefilter("ignore")  # noise is seeded: nothing here is released
    run(parser.parse_args())

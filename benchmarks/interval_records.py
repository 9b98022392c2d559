"""How many records do intervals of coefficients need, for so many coefficients?

    python benchmarks/interval_records.py --report doc/interval_records.inc

For each model, number of coefficients (with the intercept) and epsilon (of the model, and of the
intervals, from as many other records): the fewest records with which the median interval of 95 % is at
most twice as wide as without privacy. They are forecast, as ``plan`` does it, for invented records:
numbers that fill their bounds, as lines, and targets that nothing moves. Two lines are of four columns
of four categories each, whose codes share coefficients ("simplex") or have one each ("onehot").
Nothing is drawn anew: the law of the noise is simulated with a seed of its own.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from dpselect import DPHuberRegressor, DPLogisticRegression
from dpselect.preprocessing import tabular_pipeline

MODELS = {
    "logistic": DPLogisticRegression(classes=[0, 1], alpha=0.001, base_rate=0.5),
    "robust": DPHuberRegressor(target_range=(0, 1), alpha=0.001),
}
# numbers of coefficients, and codes of four columns of four categories
NUMBERS, CODES, LEVELS = (4, 8, 16, 32), ("simplex", "onehot"), 4
EPSILONS = (0.3, 1.0, 3.0)
# records: the fewest of these
SIZES = tuple(round(100 * 2 ** (k / 4)) for k in range(61))
TIMES, ROWS, SPREAD = 2.0, 1000, 0.13
NO_NOISE = 1e9


def table(columns):
    """Return a schema and invented rows: of numbers, or of categories with such codes."""
    rng = np.random.default_rng(0)
    if columns in CODES:
        names = [f"c{j}" for j in range(LEVELS)]
        X = rng.integers(LEVELS, size=(ROWS, LEVELS)).astype(str).astype(object)
        return dict.fromkeys(names, list(map(str, range(LEVELS)))), X
    names = [f"x{j}" for j in range(columns - 1)]
    return dict.fromkeys(names, (0, 1)), rng.uniform(size=(ROWS, columns - 1))


def half_width(name, columns, epsilon, n):
    """Return half the width of the median interval; inf if some are not known."""
    schema, X = table(columns)
    code = {"categories": columns} if columns in CODES else {}
    pipeline = tabular_pipeline(schema, MODELS[name], expansion="linear", **code)
    encoder, model = (step for _, step in pipeline.bound(n, min(epsilon, 1.0)).steps)
    y = np.arange(ROWS) % 2
    if name == "robust":
        y = 0.5 + SPREAD * np.random.default_rng(1).normal(size=ROWS)
    try:
        widths = model.half_widths_before(encoder.fit_transform(X), y, epsilon, n)
    except ValueError:  # so few say nothing
        return math.inf
    widths.pop("intercept", None)
    found = np.median(list(widths.values()))
    return math.inf if math.isnan(found) else float(found)


def records(name, columns, epsilon):
    """Return the fewest records of `SIZES` that do, by bisection."""
    low, high = -1, len(SIZES)
    while high - low > 1:
        middle = (low + high) // 2
        n = SIZES[middle]
        wide = half_width(name, columns, epsilon, n) > TIMES * half_width(name, columns, NO_NOISE, n)
        low, high = (middle, high) if wide else (low, middle)
    return SIZES[high] if high < len(SIZES) else math.inf


def shown(n):
    """Return a number of records with two digits."""
    if n == math.inf:
        return f"above {SIZES[-1]:,}"
    digits = 10 ** (math.floor(math.log10(n)) - 1)
    return f"{math.ceil(n / digits) * digits:,}"


def rows():
    """Return the lines of the table."""
    columns = [*((name, str(n), n) for name in MODELS for n in NUMBERS)]
    for code, what in zip(CODES, (f"{LEVELS * (LEVELS - 1) + 1}", f"{LEVELS**2 + 1}, one-hot")):
        columns += [(name, what, code) for name in MODELS]
    return [
        [name, what, *(shown(records(name, each, epsilon)) for epsilon in EPSILONS)]
        for name, what, each in columns
    ]


def report(lines):
    """Return the table as reStructuredText."""
    head = ["model", "coefficients", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    text = [".. list-table::", "   :header-rows: 1", ""]
    for line in [head, *lines]:
        text += [f"   {'* -' if j == 0 else '  -'} {cell}" for j, cell in enumerate(line)]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--report", type=Path, help="write the table here, too")
    made = report(rows())
    print(made)
    if (path := parser.parse_args().report) is not None:
        path.write_text(made)

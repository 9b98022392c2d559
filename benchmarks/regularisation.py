"""How strong the regularisation should be, and what is given back after training, by the signal.

Run ``python benchmarks/regularisation.py --data DIR``, where DIR holds the tables that no package
brings; those that are not there are left out. It writes each fit into
``benchmarks/results/regularisation.csv`` and the means into ``doc/mechanisms/regularisation.inc``.

Each two-class table by the defaults, with k of alpha="auto" two thirds, once, 4/3 and twice as large,
coefficients multiplied by 1, 1.25 and 1.5, and intercepts as they were trained or with what the penalty
keeps of twice the share given back. The same splits and noise throughout; a fifth of the rows is for
tests.
"""

import argparse
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from _peers import default_pipeline
from _tables import MissingPackageError, load
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, roc_auc_score

from dpselect.linear_model.linear_noise import LinearNoise
from dpselect.linear_model.losses import LogisticLoss
from dpselect.records.public_shape import PublicShape

RESULTS = Path(__file__).parent / "results" / "regularisation.csv"
TABLE = Path(__file__).parents[1] / "doc" / "mechanisms" / "regularisation.inc"
# with at most some 20,000 rows, for time
TABLES = (
    *("affairs", "churn", "credit", "deaths", "magic", "attrition", "german"),
    *("hmda", "lending", "pima", "shoppers", "stroke"),
)
EPSILONS, DELTAS, REPETITIONS = (0.1, 0.3, 1.0, 3.0), (0.0, 1e-6), 4
STRENGTHS, STRETCHES = (2 / 3, 1.0, 4 / 3, 2.0), (1.0, 1.25, 1.5)
BINS = (0, 10, 30, 60, 100, 225, 400, 900, np.inf)

NO_LEVELS = property(lambda noise: np.zeros(1))


def fits(name, table, repetition):
    """Yield the lines of a table and a split."""
    X, y, X_test, y_test = table.split(repetition)
    constant = brier_score_loss(y_test, np.full(len(y_test), y.mean()))
    rule = LogisticLoss.shrinkage
    for epsilon in EPSILONS:
        for delta in DELTAS:
            for strength in STRENGTHS:

                def shrinkage(loss, perturbation, signal, strength=strength):
                    return strength * rule(loss, perturbation, signal)

                for stretch in STRETCHES:
                    for given_back in (True, False) if strength == 1 and stretch == 1 else (True,):
                        levels = (
                            LinearNoise.levels if given_back else property(lambda noise: np.zeros(1))
                        )
                        with (
                            patch.object(LogisticLoss, "shrinkage", shrinkage),
                            patch.object(LogisticLoss, "stretch_after", lambda *args, s=stretch: s),
                            patch.object(LinearNoise, "levels", levels),
                        ):
                            model = default_pipeline(
                                table.schema, "classes", (0, 1), epsilon, repetition, delta=delta
                            )
                            predicted = model.fit(X, y).predict_proba(X_test)[:, 1]
                        shape = PublicShape(len(y), model[-1].n_features_in_)
                        # which no base rate changes
                        noise = clone(model[-1]).set_params(base_rate=None).calibration(shape)
                        yield {
                            "table": name,
                            "epsilon": epsilon,
                            "delta": delta,
                            "repetition": repetition,
                            "strength": round(strength, 3),
                            "stretch": stretch,
                            "given_back": given_back,
                            "signal": noise.signal,
                            "AUC": roc_auc_score(y_test, predicted),
                            "Brier": 100 * (brier_score_loss(y_test, predicted) / constant - 1),
                        }


def report(lines):
    """Return the table of the documentation: changes against the rule with no factor, by the signal."""
    key = ["table", "epsilon", "delta", "repetition"]
    usual = (lines.strength == 1) & (lines.stretch == 1) & lines.given_back
    base = lines[usual].set_index(key)[["AUC", "Brier", "signal"]]
    lines = lines.join(base, on=key, rsuffix="_usual")
    lines = lines.assign(
        AUC=lines.AUC - lines.AUC_usual,
        Brier=lines.Brier - lines.Brier_usual,
        bin=pd.cut(lines.signal_usual, BINS, right=False),
    )
    rows = ["strength", "stretch", "given_back"]
    means = lines.groupby([*rows, "bin"], observed=True)[["AUC", "Brier"]].mean().unstack()
    names = [
        f"{low:g} to {high:g}" if np.isfinite(high) else f"above {low:g}"
        for low, high in zip(BINS[:-1], BINS[1:])
    ]
    text = [".. list-table::", "   :header-rows: 1", "", "   * - k times", "     - factor after"]
    text += [f"     - {name}" for name in names]
    for (strength, stretch, given_back), row in means.iterrows():
        if strength == 1 and stretch == 1 and given_back:
            continue
        text.append(f"   * - {strength:.3g}" + ("" if given_back else ", level as trained"))
        text.append(f"     - {stretch:g}")
        for label in means.columns.levels[1]:
            text.append(f"     - {row['AUC'][label]:+.3f}, {row['Brier'][label]:+.1f}")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the tables that no package brings")
    options = parser.parse_args()
    lines = []
    for name in TABLES:
        try:
            table = load(name, options.data)
        except (ImportError, MissingPackageError) as error:
            print(f"{name}: {error}", flush=True)
            continue
        for repetition in range(REPETITIONS):
            lines += fits(name, table, repetition)
        print(name, flush=True)
        pd.DataFrame(lines).round(6).to_csv(RESULTS, index=False)
    TABLE.write_text(report(pd.read_csv(RESULTS)), encoding="utf-8")


if __name__ == "__main__":
    main()

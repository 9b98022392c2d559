"""A model of Adult and its evaluation in one loss of 1; calibration beside scikit-learn's.

A search trains on three quarters of 39,000 records, and evaluates on the rest. Exact figures are those
of the other 9,842 records. ``CalibratedClassifierCV`` and ``TunedThresholdClassifierCV`` look at as many
exact records as were set aside, without any privacy::

    python benchmarks/evaluation_adult.py --data DIR --output adult.md
"""

import argparse
import sys

import numpy as np
from _tables import load
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    make_scorer,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import TunedThresholdClassifierCV

from dpselect import DPLogisticRegression, StabilityGridSearchCV, calibrated
from dpselect.preprocessing import tabular_pipeline

N_TRAINING, SHARE, EPSILON = 39_000, 0.25, 1.0
FIGURES = {
    "roc_auc": roc_auc_score,
    "accuracy": lambda y, p: accuracy_score(y, p > 0.5),
    "brier": brier_score_loss,
}
METHODS, RECALLS = ("sigmoid", "isotonic"), (0.7, 0.9)


def calibration_error(y, p):
    """Return the mean distance of predicted and observed rates in ten ranges of predictions."""
    place = np.minimum((10 * p).astype(int), 9)
    return sum(abs((y - p)[place == i].sum()) for i in range(10)) / len(y)


def selective(recall):
    """Return a score that is largest for the highest threshold with this recall."""

    def score(y, predicted):
        return 1 - np.mean(predicted) if recall_score(y, predicted) >= recall else -1.0

    return make_scorer(score)


def measure(table, seed):
    """Return what is found in one repetition, a dict of numbers."""
    rng = np.random.default_rng(seed)
    order, y = rng.permutation(len(table.y)), table.y.astype(int)
    train, test = order[:N_TRAINING], order[N_TRAINING:]
    X_test, y_test = table.X.iloc[test], y[test]
    pipeline = tabular_pipeline(table.schema, DPLogisticRegression(classes=[0, 1]))
    search = StabilityGridSearchCV(pipeline, {}, epsilon=EPSILON, evaluation=SHARE)
    search.fit(table.X.iloc[train], y[train])
    scores, evaluation = search.predict_proba(X_test)[:, 1], search.evaluation_
    exact = rng.choice(train, size=evaluation.n_records, replace=False)
    exact, model = (table.X.iloc[exact], y[exact]), FrozenEstimator(search.best_estimator_)
    found = {"epsilon": search.privacy_.epsilon}
    for name, figure in FIGURES.items():
        estimate = evaluation.metric(name)
        found[name], found[f"{name}, exact"] = estimate.value, figure(y_test, scores)
        found[f"{name}, width of interval"] = estimate.high - estimate.low
    found["calibration error"] = calibration_error(y_test, scores)
    for method in METHODS:
        ours = calibrated(search, evaluation, method=method).predict_proba(X_test)[:, 1]
        other = CalibratedClassifierCV(model, method=method).fit(*exact).predict_proba(X_test)[:, 1]
        found[f"calibration error, {method}"] = calibration_error(y_test, ours)
        found[f"calibration error, {method}, scikit-learn"] = calibration_error(y_test, other)
    for recall in RECALLS:
        ours = calibrated(search, evaluation, recall=recall)
        other = TunedThresholdClassifierCV(
            model, scoring=selective(recall), cv="prefit", refit=False, thresholds=200
        ).fit(*exact)
        found[f"recall for {recall}"] = recall_score(y_test, ours.predict(X_test))
        found[f"recall for {recall}, scikit-learn"] = recall_score(y_test, other.predict(X_test))
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--output", type=argparse.FileType("w"), default=sys.stdout)
    options = parser.parse_args(arguments)
    table = load("adult", options.data)
    found = [measure(table, seed) for seed in range(options.repetitions)]
    print(f"| figure | mean of {len(found)} | standard deviation |", file=options.output)
    print("| --- | --- | --- |", file=options.output)
    for name in found[0]:
        values = [row[name] for row in found]
        print(f"| {name} | {np.mean(values):.4f} | {np.std(values):.4f} |", file=options.output)
    return found


if __name__ == "__main__":
    main()

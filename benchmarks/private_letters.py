"""Texts: a fixed epsilon, and a target accuracy, with and without a delta of the model.

5,000 artificial letters of eight words, with an age and a channel; 5,000 others score the models. Prints
medians of the loss and the accuracy of ten fits, the least and the largest. Seeded.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline

from dpselect import AccuracyFirstSearchCV, AccuracyNotReachedError, DPLogisticRegression
from dpselect.preprocessing import TableEncoder

SCHEMA = {"age": (18, 95), "channel": ["web", "phone"]}
COMMON = "please help my the order with it when and again today".split()
OWN = (
    "invoice payment account bank refund card fee balance".split(),
    "broken screen battery repair noise cable device crash".split(),
)
TARGET, LIMIT, GRID = 0.8, 5.0, np.geomspace(0.01, 10, 200)


def draw(n, seed):
    """Return letters, and what they are about."""
    rng = np.random.default_rng(seed)
    about = rng.integers(0, 2, n)
    letters = [
        " ".join([*rng.choice(COMMON, 4), *rng.choice(OWN[k], 3), *rng.choice(OWN[1 - k], 1)])
        for k in about
    ]
    return pd.DataFrame(
        {
            "age": np.clip(rng.normal(45 + 6 * about, 15), 18, 95).round(),
            "channel": np.where(rng.random(n) < 0.6 + 0.1 * about, "web", "phone"),
            "letter": letters,
        }
    ), about


def model(columns, **parameters):
    encoder = TableEncoder(SCHEMA, expansion="linear")
    words = HashingVectorizer(n_features=columns, alternate_sign=False)
    both = ColumnTransformer(
        [("table", encoder, list(SCHEMA)), ("words", words, "letter")], sparse_threshold=0
    )
    # a row of words has norm 1
    norm = (encoder.typical_norm() ** 2 + 1) ** 0.5
    return make_pipeline(both, DPLogisticRegression(classes=[0, 1], data_norm=norm, **parameters))


def show(name, losses, scores):
    print(
        f"{name:50} epsilon {np.median(losses):5.2f} ({min(losses):.2f} to {max(losses):.2f}), accuracy "
        f"{np.median(scores):.3f} ({min(scores):.3f} to {max(scores):.3f})",
        flush=True,
    )


def main(n, rounds):
    (train, y), (test, labels) = draw(n, 0), draw(5000, 1)
    row = pd.DataFrame({"age": [50], "channel": ["web"], "letter": ["hello"]})
    for columns in (64, 128):
        for delta in (0.0, 1e-6):
            scores = [
                model(columns, epsilon=1.0, delta=delta, random_state=seed)
                .fit(train, y)
                .score(test, labels)
                for seed in range(rounds)
            ]
            show(f"{columns} columns, fixed epsilon, delta={delta}", [1.0], scores)
        for perturbation, delta, path in (
            ("objective", 1e-6, 0.0),
            ("objective", 0.0, 0.0),
            ("output", 0.0, 0.0),
            ("output", 0.0, 1e-6),
        ):
            losses, scores, failed = [], [], 0
            for seed in range(rounds):
                search = AccuracyFirstSearchCV(
                    model(columns, delta=delta, perturbation=perturbation),
                    {"dplogisticregression__epsilon": GRID},
                    target=TARGET,
                    criterion="accuracy",
                    max_epsilon=LIMIT,
                    delta=path,
                    random_state=seed,
                )
                try:
                    scores.append(search.fit(train, y).score(test, labels))
                except AccuracyNotReachedError:
                    failed += 1
                losses.append(search.privacy_.epsilon)
            chosen = search.plan(n, 3, example=row).chosen
            name = f"{columns} columns, {perturbation}, delta={delta}, path {path}"
            show(name, losses, scores or [np.nan])
            print(f"    {chosen.method}, forecast {chosen.total:.2f}; {failed} found no model")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    main(arguments.records, arguments.rounds)

"""One search over kinds of models, ours and those of other libraries, on Adult.

Run ``python benchmarks/other_models.py --data DIR``, where DIR holds ``adult.csv.gz``, in an
environment with ``pip install interpret-core diffprivlib "scikit-learn<1.8"`` (diffprivlib 0.6.6
cannot be imported with scikit-learn 1.9).

Candidates are our additive model (``tabular_pipeline``), InterpretML's DP-EBM at two learning rates
and diffprivlib's random forest at two depths, each behind steps of its own. ``strategy=
"random_stopping"`` compares them by the Brier score at one (epsilon, delta) for replacing one record;
peers are declared for records that come or go, and converted. A fifth of the rows is for tests, by the
hash of their place. For each repetition the report has what was chosen, the total that was stated,
how long it took, and the AUC and Brier score of what came out; and at its end those of each
candidate by itself, which has the whole loss. At last a candidate without a declared conversion is
tried, before which records are out of reach.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from _peers import _ebm_columns, _ebm_kinds
from _tables import load
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from dpselect import CertificateError, DPLogisticRegression, PrivateModel, StabilityGridSearchCV
from dpselect.preprocessing import TableEncoder, tabular_pipeline

TABLE = "adult"
DECLARED = {
    "adjacency": "add or remove one record",
    "conversion": "remove and add",
    "classes": [0, 1],
}
# mean number of runs, by which a search divides epsilon by about three
SHARE = 1 / 3


def ours(schema, n_samples, epsilon, delta):
    """Return the steps of our model, bounded for what the search leaves it."""
    model = DPLogisticRegression(classes=[0, 1], delta=delta)
    return tabular_pipeline(schema, model).bound(n_samples, epsilon).named_steps


def boosting(schema, delta):
    """Return the steps of DP-EBM. Every category and label is in public records."""
    from interpret.privacy import DPExplainableBoostingClassifier

    kinds = _ebm_kinds(schema)
    levels = {name: kind for name, kind in kinds.items() if kind != "continuous"}
    n_public = max(map(len, levels.values()))
    public = pd.DataFrame(
        {
            name: [
                levels[name][i % len(levels[name])] if name in levels else 0.0 for i in range(n_public)
            ]
            for name in kinds
        }
    )
    estimator = DPExplainableBoostingClassifier(
        feature_names=list(kinds),
        feature_types=list(kinds.values()),
        n_jobs=1,
        privacy_bounds={name: (-1.0, 1.0) for name in kinds if name not in levels},
    )
    return {
        "encoder": FunctionTransformer(_ebm_columns, kw_args={"schema": schema}),
        "model": PrivateModel(
            estimator,
            **DECLARED,
            delta=delta,
            delta_parameter="delta",
            public_parameters=["feature_types", "privacy_bounds"],
            public_records=(public, np.arange(n_public) % 2),
        ),
    }


def forest(schema):
    """Return the steps of diffprivlib's forest, whose encoded columns lie in [-1, 1]."""
    from diffprivlib.models import RandomForestClassifier

    return {
        "encoder": TableEncoder(schema, expansion="linear", categories="onehot"),
        "model": PrivateModel(
            RandomForestClassifier(bounds=(-1, 1)),
            **DECLARED,
            classes_parameter="classes",
            public_parameters=["bounds"],
        ),
    }


def grid(schema, n_samples, epsilon, delta):
    """Return the grid of a search."""

    def steps(named, **more):
        return {name: [step] for name, step in named.items()} | more

    return [
        steps(ours(schema, n_samples, SHARE * epsilon, delta)),
        steps(boosting(schema, delta), model__estimator__learning_rate=[0.01, 0.1]),
        steps(forest(schema), model__estimator__max_depth=[5, 10]),
    ]


def name_of(params):
    """Return a candidate in words."""
    model = params["model"]
    kind = type(getattr(model, "estimator", model)).__name__
    return " ".join(
        [
            kind,
            *(f"{name.rpartition('__')[2]}={value}" for name, value in params.items() if "__" in name),
        ]
    )


def search(schema, n_samples, epsilon, delta, grid):
    """Return the search over a grid of kinds."""
    start = Pipeline([*ours(schema, n_samples, epsilon, delta).items()])
    return StabilityGridSearchCV(
        start,
        grid,
        epsilon=epsilon,
        delta=delta,
        strategy="random_stopping",
        scoring="brier",
        trusted_steps=[FunctionTransformer],
    )


def measured(model, X, y):
    """Return AUC and Brier score of what was released."""
    predicted = model.predict_proba(X)[:, 1]
    return roc_auc_score(y, predicted), brier_score_loss(y, predicted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, help="folder of adult.csv.gz")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    epsilon, delta = arguments.epsilon, arguments.delta
    table = load(TABLE, arguments.data)
    for repetition in range(arguments.repetitions):
        X, y, X_test, y_test = table.split(repetition)
        candidates = grid(table.schema, len(y), epsilon, delta)
        start = time.perf_counter()
        fitted = search(table.schema, len(y), epsilon, delta, candidates).fit(X, y)
        seconds = time.perf_counter() - start
        auc, brier = measured(fitted, X_test, y_test)
        if repetition == 0:
            print(fitted.plan_.messages[0])
            print(fitted.privacy_)
        print(
            f"search {repetition}: {name_of(fitted.best_params_)}, AUC {auc:.4f}, Brier {brier:.4f}, "
            f"{seconds:.0f} s",
            flush=True,
        )
    # with the whole epsilon in place of a run's
    for params in ParameterGrid(grid(table.schema, len(y), epsilon / SHARE, delta)):
        start = time.perf_counter()
        named = {name: clone(step) for name, step in params.items() if name in ("encoder", "model")}
        rest = {name: value for name, value in params.items() if name not in named}
        model = Pipeline([*named.items()]).set_params(**rest, model__epsilon=epsilon)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        auc, brier = measured(model, X_test, y_test)
        print(
            f"alone: {name_of(params)}, AUC {auc:.4f}, Brier {brier:.4f}, "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )
    undeclared = forest(table.schema)["model"].set_params(conversion=None)
    try:
        search(table.schema, len(y), epsilon, delta, {"model": [undeclared]}).fit(None, None)
    except CertificateError as refusal:
        print(f"refused: {refusal}")


if __name__ == "__main__":
    main()

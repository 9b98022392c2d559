"""Settings of which any two meet, and the estimators and records that they stand for."""

import functools
import os
import tempfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    RowChunks,
    StabilityGridSearchCV,
)
from dpselect.linear_model import accuracy, solver
from dpselect.linear_model.ridge import decomposition, ridge_noise
from dpselect.metrics import get_score
from dpselect.model_selection import exact_scores as evaluation
from dpselect.model_selection.accuracy_first import methods
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler
from dpselect.rows import cutting

from .covering import covering_array

KINDS = {
    "logistic": DPLogisticRegression,
    "svc": DPLinearSVC,
    "huber": DPHuberRegressor,
    "poisson": DPPoissonRegressor,
    "ridge": DPRidge,
    "steep": partial(DPLogisticRegression, max_derivative=None),
    "capped": partial(DPLogisticRegression, max_derivative=0.75),
}
CLASSIFIERS = ("logistic", "steep", "svc", "capped")
# labels of the classes as they are written, and never in ascending order but for two
LABELS = {
    "two": [0, 1],
    "two texts": ["yes", "no"],
    "three": [3, -7, 1],
    "four texts": ["d", "b", "a", "c"],
}
N = 120
# how long rows may be: of raw columns, and of scaled ones
UNITS = {"none": 3.0, "bounds": 0.6, "private": 0.6}
FIT_AXES = {
    "kind": [*KINDS],
    "labels": ["-", *LABELS],
    "where": ["objective", "output", "covariance"],
    "norm": ["l2", "l1", "auto"],
    "data_norm": ["given", "auto"],
    "data_norm_l1": ["none", "given", "auto"],
    "intercept": [1.0, 0.0, 0.7],
    "base_rate": ["none", "given", "auto"],
    "class_weight": ["none", "some", "all", "ones"],
    "sample_weight": ["none", "given", "bound"],
    "groups": ["none", "integers", "texts", "objects", "own"],
    "alpha": [0.05, 1e-4, "auto"],
    "epsilon": [0.5, 6.0, 30.0, np.inf],
    "delta": [0.0, 0.02],
    "columns": [2, 5, 80],
    "container": [
        "C",
        "F",
        "float32",
        "int16",
        "csr",
        "frame",
        "types",
        "list",
        "memory map",
        "chunks",
        "coo",
    ],
    "step": ["none", "bounds", "private"],
    "ledger": ["none", "given", "open"],
    "state": ["integer", "none"],
    "pieces": ["whole", "small", "threads"],
}
# what a kind takes, where that is not all
TAKES = {
    **dict.fromkeys(CLASSIFIERS, {"labels": {*LABELS}, "where": {"objective", "output"}}),
    **dict.fromkeys(
        ("huber", "poisson"),
        {
            "labels": {"-"},
            "where": {"objective", "output"},
            "class_weight": {"none"},
        },
    ),
    "ridge": {
        "labels": {"-"},
        "class_weight": {"none"},
        "sample_weight": {"none"},
        "base_rate": {"none"},
        "alpha": {0.05, 1e-4},
        "intercept": {0.0, 1.0},
    },
}
TAKES["svc"] = {**TAKES["svc"], "base_rate": {"none"}}
TAKES["huber"] = {**TAKES["huber"], "base_rate": {"none"}}
# pairs of values that a fit refuses
REFUSED = [
    ("delta", {0.02}, "norm", {"l1"}),
    ("intercept", {0.0}, "base_rate", {"given"}),
    ("ledger", {"given", "open"}, "epsilon", {np.inf}),
    ("intercept", {0.0}, "base_rate", {"auto"}),
    # scalers take no sparse rows
    ("container", {"csr", "coo", "chunks"}, "step", {"bounds", "private"}),
]


def work_in_pieces(monkeypatch, row):
    """Let rows, models, splits and levels be worked on a few at a time, where the row says so."""
    if row["pieces"] == "whole":
        return
    for module, name, size in (
        (cutting, "BLOCK_ELEMENTS", 25 * row["columns"]),
        (evaluation, "MOST_SPLITS", 2),
        (solver, "GROUP_ELEMENTS", 2 * (row["columns"] + 1) ** 2),
        (solver, "SAMPLE_ROWS", 16),
        (solver, "SAMPLE_ROWS_PER_COEFFICIENT", 1),
        (ridge_noise, "MAX_CACHED", 0),
        (decomposition, "LARGE", 1),
        (methods, "CHUNK", 3),
        (accuracy, "CHUNK", 4),
    ):
        monkeypatch.setattr(module, name, size)


def meet_in_a_search(*pair):
    """Tell whether some search takes two values."""
    return meet_in_a_fit(*pair, refused=REFUSED + REFUSED_BY_SEARCHES)


def meet_in_a_fit(axis, value, other_axis, other, refused=REFUSED):
    """Tell whether some fit takes two values."""
    for a, values, b, others in refused:
        if (axis, other_axis) == (a, b) and value in values and other in others:
            return False
    kinds = [value] if axis == "kind" else [other] if other_axis == "kind" else KINDS
    return any(
        value in TAKES[kind].get(axis, [value]) and other in TAKES[kind].get(other_axis, [other])
        for kind in kinds
    )


SEARCH_AXES = {
    "strategy": [
        "stability",
        "optimal_risk",
        "data_independent",
        "budget_split",
        "data_split",
        "random_stopping",
        "random",
        "auto",
    ],
    "kind": [*KINDS],
    "labels": ["-", *LABELS],
    "vary": ["alpha", "data_norm", "features", "dicts"],
    "where": ["objective", "output", "covariance"],
    "norm": ["l2", "auto"],
    "data_norm": ["given", "auto"],
    "data_norm_l1": ["none", "given", "auto"],
    "intercept": [1.0, 0.0, 0.7],
    "base_rate": ["none", "given", "auto"],
    "class_weight": ["none", "some", "all"],
    "sample_weight": ["none", "given"],
    "groups": ["none", "integers", "objects"],
    "epsilon": [40.0, 4.0],
    "delta": [0.0, 0.02],
    "columns": [3, 40],
    "container": ["C", "float32", "int16", "csr", "frame", "types", "list", "memory map", "chunks"],
    "step": ["none", "bounds", "private"],
    "cv": [3, "list"],
    "evaluation": [None, 0.3],
    "refit": [True, False],
    "samples": [1, 2],
    "ledger": ["none", "given", "open"],
    "state": ["integer", "none"],
    "pieces": ["whole", "small"],
}
REFUSED_BY_SEARCHES = [
    ("strategy", {"data_independent"}, "kind", {"ridge"}),
    ("strategy", {"data_independent"}, "vary", {"data_norm", "features", "dicts"}),
    ("strategy", {"stability", "data_independent"}, "where", {"covariance"}),
    ("vary", {"data_norm", "features", "dicts"}, "where", {"covariance"}),
    ("vary", {"data_norm", "dicts"}, "data_norm", {"auto"}),
    ("vary", {"features"}, "data_norm", {"auto"}),
    ("vary", {"features"}, "data_norm_l1", {"auto"}),
    ("vary", {"features"}, "columns", {40}),
    ("vary", {"features"}, "container", {"csr", "chunks"}),
    ("evaluation", {0.3}, "refit", {False}),
    # too little for a choice
    ("strategy", {"optimal_risk"}, "epsilon", {4.0}),
]


DENSITY_AXES = {
    "noise": ["laplace", "discrete_laplace"],
    "bounds": ["one", "each"],
    "bin_width": ["one", "each"],
    "columns": [1, 3],
    **{axis: FIT_AXES[axis] for axis in ("groups", "epsilon", "container", "ledger", "state", "pieces")},
    "sample_weight": FIT_AXES["sample_weight"],
}


def density_rows(seed=0):
    """Return rows of settings of histograms by their names, with their place among them."""
    rows = covering_array(
        DENSITY_AXES,
        lambda axis, value, other_axis, other: (
            not (
                # parts of persons or of weights are no integers
                value == "discrete_laplace"
                and other_axis in ("groups", "sample_weight")
                and other != "none"
                or (axis, other_axis) == ("ledger", "epsilon")
                and value != "none"
                and other == np.inf
                or (axis, value) == ("container", "csr")
                or (axis, value) == ("container", "coo")
            )
        ),
        seed,
    )
    return {f"{i} {row['noise']}": row | {"place": i} for i, row in enumerate(rows)}


def density_of(row, **parameters):
    """Return the histogram of a row of settings."""
    p = row["columns"]
    return DPHistogramDensity(
        epsilon=row["epsilon"],
        noise=row["noise"],
        max_sample_weight=2.0 if row["sample_weight"] == "given" else None,
        bounds=(-4, 6) if row["bounds"] == "one" else [(-4, 6), (-2, 2), (0, 4)][:p],
        bin_width=1.0
        if row["bin_width"] == "one"
        else [2.5, 1.0, 4.0][:p]
        if row["bounds"] == "each"
        else [2.5, 1.0, 5.0][:p],
        **parameters,
    )


ACCURACY_AXES = {
    "method": [
        "certified",
        "reduced_above_threshold",
        "above_threshold",
        "predict_verify",
        "brownian",
        "doubling",
    ],
    "criterion": ["excess_risk", "risk", "score"],
    "hard": [True, False],
    **{
        axis: SEARCH_AXES[axis]
        for axis in (
            "kind",
            "labels",
            "norm",
            "class_weight",
            "sample_weight",
            "groups",
            "step",
            "intercept",
            "cv",
            "evaluation",
            "ledger",
            "state",
            "pieces",
        )
    },
    "where": ["output", "objective", "covariance"],
    "data_norm_l1": ["none", "given"],
    "base_rate": ["none", "given"],
    # (each that a fit reads in a way of its own)
    "container": ["C", "int16", "csr", "frame", "list", "chunks"],
}
REFUSED_BY_ACCURACY = [
    ("method", {"reduced_above_threshold", "above_threshold", "brownian"}, "where", {"objective"}),
    ("method", {"certified"}, "criterion", {"risk", "score"}),
    # a loss of it may be anywhere between both ends
    ("criterion", {"risk"}, "kind", {"huber"}),
]


def meet_in_accuracy_first(*pair):
    """Tell whether some accuracy-first search takes two values."""
    return meet_in_a_fit(*pair, refused=REFUSED + REFUSED_BY_ACCURACY)


def accuracy_rows(seed=0):
    """Return rows of settings of accuracy-first searches by their names, with their place among them."""
    rows = covering_array(ACCURACY_AXES, meet_in_accuracy_first, seed)
    usual = {"alpha": 0.1, "delta": 0.0, "columns": 3, "data_norm": "given", "epsilon": 1.0}
    return {
        f"{i} {row['method']} {row['kind']}": row | usual | {"place": i} for i, row in enumerate(rows)
    }


def fit_rows(seed=0):
    """Return rows of settings of fits by their names, with their place among them."""
    rows = covering_array(FIT_AXES, meet_in_a_fit, seed)
    # with some signal intercepts count from twice the shares of the classes
    for kind, labels, columns in (("capped", "two", 80), ("logistic", "four texts", 5)):
        row = {axis: values[0] for axis, values in FIT_AXES.items()} | {"base_rate": "auto"}
        rows.append(row | {"kind": kind, "labels": labels, "epsilon": 30.0, "columns": columns})
    return {f"{i} {row['kind']} {row['where']}": row | {"place": i} for i, row in enumerate(rows)}


def search_rows(seed=0):
    """Return rows of settings of searches by their names."""
    rows = covering_array(SEARCH_AXES, meet_in_a_search, seed)
    # some candidates need a more precise base rate than others
    rows.append(
        {axis: values[0] for axis, values in SEARCH_AXES.items()}
        | {
            "labels": "four texts",
            "vary": "features",
            "base_rate": "auto",
            "epsilon": 4.0,
            "columns": 12,
            "step": "bounds",
        }
    )
    return {
        f"{i} {row['strategy']} {row['kind']}": row | {"alpha": 0.1, "place": i}
        for i, row in enumerate(rows)
    }


def every_second(names, start):
    """Mark all other names slow: what is fitted once more for them would take too long."""
    return [
        pytest.param(name, marks=[] if i % 2 == start else [pytest.mark.slow])
        for i, name in enumerate(names)
    ]


# ---- records


def integers(n, p, seed=0):
    """Return rows of small integers, two of them very long; integers are exact in all containers."""
    rng = np.random.default_rng(seed)
    X = np.rint(rng.normal(size=(n, p)) * np.resize([3.0, 2.0, 1.5, 1.0, 0.5], p))
    X[5], X[n // 2] = 30_000, -30_000
    X[7] = 0
    return X


def targets_of(row, X, seed=0):
    """Return labels or targets that depend on the rows."""
    rng = np.random.default_rng(seed + 1)
    score = np.clip(X[:, 0] - X[:, 1], -9, 9) + rng.normal(size=len(X))
    if row["labels"] == "-":
        if row["kind"] == "poisson":
            return np.rint(np.exp(score / 4))
        y = 0.2 * score
        y[3] = 1e9  # far off
        return y
    labels = LABELS[row["labels"]]
    ranks = np.argsort(np.argsort(score)) * len(labels) // len(X)
    return np.array(labels)[ranks]


def weights_of(row, n, seed=0):
    """Return weights of the records, some of them larger than what they are clipped to."""
    if row["sample_weight"] != "given":
        return None
    weight = np.random.default_rng(seed + 2).uniform(0, 3, size=n)
    weight[[1, 2]] = 0.0, 1e6
    return weight


def groups_of(row, n, seed=0):
    """Return the ids of the persons, of unequal numbers of rows, in no order."""
    if row["groups"] == "none":
        return None
    rng = np.random.default_rng(seed + 3)
    if row["groups"] == "own":
        return rng.permutation(n)
    number = rng.permutation(np.repeat(np.arange(n), np.resize([1, 2, 3, 5], n))[:n])
    if row["groups"] == "integers":
        return 10**12 - 7 * number
    texts = [f"person {i % 3}-{i}" for i in number]
    return texts if row["groups"] == "texts" else np.array(texts, dtype=object)


LENGTHS = [1, 40, 17, 61, 1]


def contained(X, container, names=None):
    """Return the same numbers in another container."""
    if names is None and X.ndim == 2:
        names = [f"c{j}" for j in range(X.shape[1])]
    if container == "chunks":
        lengths = [len(X) // N * length for length in LENGTHS]
        cuts = np.cumsum([0, *lengths])
        kinds = ["C", "float32", "frame", "int16", "F"]

        def read(i):
            chunk = X[cuts[i] : cuts[i + 1]]
            return contained(chunk, kinds[i], names) if X.ndim == 2 else chunk

        return RowChunks(read, lengths, X.shape[1] if X.ndim == 2 else 1)
    if container == "memory map":
        folder = tempfile.mkdtemp()
        file = os.path.join(folder, "rows")
        stored = np.memmap(file, dtype=np.float64, mode="w+", shape=X.shape)
        stored[:] = X
        os.unlink(file)
        os.rmdir(folder)
        return stored
    if container == "types":
        frame = pd.DataFrame(X, columns=names)
        return frame.astype({names[0]: np.int32, names[-1]: np.float32})
    return {
        "C": np.ascontiguousarray,
        "F": np.asfortranarray,
        "float32": np.float32,
        "int16": np.int16,
        "csr": sparse.csr_matrix,
        "coo": sparse.coo_array,
        "list": lambda X: X.tolist(),
        "frame": functools.partial(pd.DataFrame, columns=names),
    }[container](X)


def labels_in(y, container):
    if container == "chunks":
        return contained(y, "chunks") if y.dtype.kind in "fi" else y
    return {
        "list": np.ndarray.tolist,
        "frame": pd.Series,
        "types": pd.Series,
    }.get(container, np.asarray)(y)


# ---- estimators


def shares_of(row):
    """Return public shares of the classes that are not those of the records."""
    if row["kind"] == "poisson":
        return 0.4
    labels = LABELS[row["labels"]]
    if len(labels) == 2:
        return 0.2
    return {label: 0.1 + 0.15 * i for i, label in enumerate(labels)}


def class_weights_of(row):
    if row["class_weight"] == "none":
        return None
    labels = LABELS[row["labels"]]
    weights = dict(zip(labels, [0.5, 3.0, 1.5, 0.1]))
    if row["class_weight"] == "some":  # the one that is not named has the largest
        weights = dict(zip(labels[1:], [0.3, 0.2, 0.1]))
    return dict.fromkeys(weights, 1.0) if row["class_weight"] == "ones" else weights


def model_of(row, **parameters):
    """Return the private model of a row of settings."""
    unit, kind = UNITS[row["step"]], row["kind"]
    given = {
        "epsilon": row["epsilon"],
        "delta": row["delta"],
        "alpha": row["alpha"],
        "norm": row["norm"],
        "perturbation": row["where"],
        "fit_intercept": row["intercept"] > 0,
        "data_norm": {"given": unit, "auto": "auto"}[row["data_norm"]],
        "data_norm_l1": {"none": None, "given": 1.3 * unit, "auto": "auto"}[row["data_norm_l1"]],
    }
    if kind == "ridge":
        if row["where"] != "covariance":
            given["delta"] = 0.0
    else:
        given["intercept_scaling"] = row["intercept"] or 1.0
        given["max_sample_weight"] = {"none": None, "given": 2.0, "bound": 0.5}[row["sample_weight"]]
        given["n_jobs"] = 2 if row["pieces"] == "threads" else None
    if kind in ("ridge", "huber"):
        given["target_range"] = (-0.5, 1.0)
    if kind == "poisson":
        given["target_bound"] = 2.5
    if kind in CLASSIFIERS:
        given |= {"classes": LABELS[row["labels"]], "class_weight": class_weights_of(row)}
    if kind in ("logistic", "steep", "capped", "poisson"):
        given["base_rate"] = (
            shares_of(row)
            if row["base_rate"] == "given"
            else ("auto" if row["base_rate"] == "auto" else None)
        )
    return KINDS[kind](**given | parameters)


def estimator_of(row, random_state, **parameters):
    """Return the model of a row of settings, behind its step."""
    model = model_of(row, random_state=random_state, **parameters)
    if row["step"] == "none":
        return model
    if row["step"] == "bounds":
        return make_pipeline(BoundedScaler((-4, 6)), model)
    ledger = parameters.get("ledger")
    scaler = DPBoundsScaler(
        3.0 if np.isfinite(row["epsilon"]) else np.inf,
        random_state=random_state,
        ledger=ledger,
        delta=row["delta"],
    )
    return make_pipeline(scaler, model)


def scaled(X, low, high):
    """Return columns, clipped to bounds, and these at -1 and 1."""
    return 2 * (np.clip(X, low, high) - low) / (high - low) - 1


# ---- searches


def splits_of(n):
    """Return splits of different sizes, with records in several parts or in none."""
    order = np.random.default_rng(3).permutation(n)
    return [(order[: n // 2], order[n // 2 + 7 :]), (order[n // 3 :], order[: n // 4])]


def steps_of(row):
    """Return the named steps before the model of a search."""
    if row["step"] == "private":
        return [("scaled", DPBoundsScaler(1.0, delta=row["delta"]))]
    return [("scaled", BoundedScaler((-4, 6)))] if row["step"] == "bounds" else []


LEVELS = np.geomspace(2.0, 200.0, 6)


def accuracy_search_of(row, n, random_state, **parameters):
    """Return the accuracy-first search of a row of settings; n records train."""
    steps, model = steps_of(row), model_of(row)
    score = model.default_scoring
    whole = get_score(score, model=model).width
    target = {"excess_risk": 1.0, "risk": 3.0, "score": 0.95 * whole}[row["criterion"]]
    estimator = Pipeline([*steps, ("model", model)]) if steps else model
    cv = {"cv": splits_of(n), "public_splits": True} if row["cv"] == "list" else {"cv": row["cv"]}
    cv = cv if row["criterion"] == "score" else {}
    return AccuracyFirstSearchCV(
        estimator,
        {"model__epsilon" if steps else "epsilon": LEVELS},
        method=row["method"],
        criterion=score if row["criterion"] == "score" else row["criterion"],
        **cv,
        target=0.01 * target if row["hard"] else target,
        max_epsilon=np.inf,
        on_failure="last",
        delta=1e-4 if row["method"] == "brownian" else 0.0,
        evaluation=row["evaluation"],
        random_state=random_state,
        **parameters,
    )


def search_of(row, n, random_state, **parameters):
    """Return the search of a row of settings; n records train."""
    steps, model, unit = steps_of(row), model_of(row), UNITS[row["step"]]
    grid = {
        # of several classes, and persons, noise in the objective adds to the first one
        "alpha": {"alpha": [1e-5, 0.1, 0.5]},
        "data_norm": {"data_norm": [0.5 * unit, unit, 2 * unit]},
        "features": {"powers__degree": [1, 2], "alpha": [0.1, 0.02]},
        "dicts": [
            {"alpha": [0.5], "data_norm": [unit]},
            {"alpha": [0.1, 0.02], "data_norm": [2 * unit, 0.5 * unit]},
        ],
    }[row["vary"]]
    if row["vary"] == "features":
        steps.append(("powers", PolynomialFeatures(include_bias=False)))
    if steps:
        model = Pipeline([*steps, ("model", model)])
        grids = [
            {name if "__" in name else f"model__{name}": values for name, values in one.items()}
            for one in (grid if isinstance(grid, list) else [grid])
        ]
        grid = grids if isinstance(grid, list) else grids[0]
    cv = {"cv": splits_of(n), "public_splits": True} if row["cv"] == "list" else {"cv": row["cv"]}
    delta = 0.05 if row["strategy"] == "random_stopping" and row["delta"] else 0.0
    return StabilityGridSearchCV(
        model,
        grid,
        **{
            "epsilon": row["epsilon"],
            "delta": delta,
            "strategy": row["strategy"],
            **cv,
            "evaluation": row["evaluation"],
            "refit": row["refit"],
            "n_noise_samples": row["samples"],
            "random_state": random_state,
            **parameters,
        },
    )

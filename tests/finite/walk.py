"""Every public entry point, given records of which one holds a number that is not finite.

``python -m tests.finite.walk`` walks in a process of its own, with the environment that it is given, and
prints how many cells there were and which of them released something.
"""

import json
import os
import sys
import traceback
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import sklearn
from scipy import sparse
from sklearn.pipeline import make_pipeline

import dpselect
from dpselect import preprocessing

from ..private_model.other_library import SignedSum

N, ROW = 60, 7
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (N, 3))
TARGETS = X[:, 0].copy()
LABELS = (X[:, 0] > 0).astype(float)
WEIGHTS = np.ones(N)
NAMES = ["a", "b", "c"]
SCHEMA = dict.fromkeys(NAMES, (-1, 1))
VALUES = (np.nan, np.inf, -np.inf)


LOGISTIC = {"classes": [0, 1], "max_sample_weight": 2.0}
RANGE = {"target_range": (-1, 1)}


def in_chunks(rows):
    return dpselect.RowChunks(lambda i: rows[20 * i : 20 * (i + 1)], [20] * 3, 3)


def nullable(rows):
    return pd.DataFrame(rows, columns=NAMES).astype("Float64")


FORMS = {
    "array": np.asarray,
    "float32": np.float32,
    "Fortran": np.asfortranarray,
    "objects": lambda rows: rows.astype(object),
    "list": np.ndarray.tolist,
    "csr": sparse.csr_array,
    "csr of float32": lambda rows: sparse.csr_matrix(rows.astype(np.float32)),
    "csc": sparse.csc_matrix,
    "chunks": in_chunks,
    "chunks of csr": lambda rows: dpselect.RowChunks(
        lambda i: sparse.csr_array(rows[20 * i : 20 * (i + 1)]), [20] * 3, 3
    ),
    "dask": lambda rows: da.from_array(rows, chunks=(20, 3)),
    "pandas": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "nullable pandas": nullable,
    "polars": lambda rows: pl.DataFrame(rows, schema=NAMES),
    "arrow": lambda rows: pl.DataFrame(rows, schema=NAMES).to_arrow(),
}
TABLES = ("pandas", "nullable pandas", "polars", "arrow")
FEW = ("array", "csr", "chunks", "dask", "nullable pandas")
SPARSE = ("csr", "csr of float32", "csc", "chunks of csr")
DENSE = tuple(form for form in FORMS if form not in SPARSE)
ALL = tuple(FORMS)


@dataclass(frozen=True)
class Entry:
    """A public entry point: ``call(X, y, weight)`` releases something, of a model if there is one."""

    public: str
    call: object
    y: np.ndarray | None = None
    forms: tuple = DENSE
    weighs: bool = False

    def places(self, form):
        yield "X"
        # what goes with rows is read in the same way whatever holds these
        if form in ("array", "chunks", "dask"):
            yield from ["y"] * (self.y is not None) + ["weight"] * self.weighs


def fitted(make):
    """Return the call that fits what `make` makes; a refused fit must leave nothing on it."""

    def call(rows, y, weight):
        model = make()
        try:
            model.fit(rows, y, **({} if weight is None else {"sample_weight": weight}))
        finally:
            call.left = sorted(name for name in vars(model) if name.endswith("_"))

    return call


def transformed(make):
    fit = make().fit(X)

    def call(rows, y, weight):
        found = fit.transform(rows)
        return found.compute() if dask.is_dask_collection(found) else found

    return call


def weighing(model):
    """Return a model that asks for weights where they are routed."""
    if sklearn.get_config()["enable_metadata_routing"]:
        model.set_fit_request(sample_weight=True)
    return model


def searched(kind, **params):
    def make():
        grid = {"alpha": [0.1, 1.0]} if kind is dpselect.StabilityGridSearchCV else {"epsilon": [1, 2]}
        model = weighing(dpselect.DPLogisticRegression(**LOGISTIC, alpha=0.5))
        return kind(model, grid, **params)

    return fitted(make)


def accuracy_first(**params):
    return searched(dpselect.AccuracyFirstSearchCV, target=0.9, on_failure="last", **params)


def steps_searched():
    steps = make_pipeline(
        preprocessing.BoundedScaler((-1, 1)), dpselect.DPLogisticRegression(classes=[0, 1])
    )
    return dpselect.StabilityGridSearchCV(steps, {"dplogisticregression__alpha": [0.1, 1.0]})


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    CLASSIFIER = dpselect.DPLogisticRegression(9.0, classes=[0, 1]).fit(X, LABELS)
    REGRESSION = dpselect.DPHuberRegressor(9.0, **RANGE).fit(X, TARGETS)
    WEIGHTED = dpselect.DPLogisticRegression(9.0, **LOGISTIC).fit(X, LABELS, sample_weight=WEIGHTS)
    DENSITY = dpselect.DPHistogramDensity(9.0, bounds=(-1, 1), bin_width=0.5).fit(X)


def held_out(rows, y, weight):
    return dpselect.Thresholdout().fit(X, LABELS, X_holdout=rows, y_holdout=LABELS).score(CLASSIFIER)


def private_bounds():
    return make_pipeline(preprocessing.DPBoundsScaler(), dpselect.DPLogisticRegression(classes=[0, 1]))


def linear(kind, weighs=True, **params):
    params |= {"max_sample_weight": 2.0} if weighs else {}
    return fitted(lambda: kind(**params))


def intervals(rows, y, weight):
    return dpselect.coef_interval(WEIGHTED, rows, y, epsilon=9.0, n_samples=N, sample_weight=weight)


ENTRIES = {
    "logistic": Entry(
        "DPLogisticRegression", linear(dpselect.DPLogisticRegression, classes=[0, 1]), LABELS, ALL, True
    ),
    "logistic, learns norms": Entry(
        "DPLogisticRegression",
        linear(dpselect.DPLogisticRegression, classes=[0, 1], data_norm="auto", base_rate="auto"),
        LABELS,
        ALL,
        True,
    ),
    "svc": Entry("DPLinearSVC", linear(dpselect.DPLinearSVC, classes=[0, 1]), LABELS, ALL, True),
    "huber": Entry("DPHuberRegressor", linear(dpselect.DPHuberRegressor, **RANGE), TARGETS, ALL, True),
    "poisson": Entry(
        "DPPoissonRegressor", linear(dpselect.DPPoissonRegressor, target_bound=2.0), LABELS, ALL, True
    ),
    "ridge": Entry("DPRidge", linear(dpselect.DPRidge, False, **RANGE), TARGETS, ALL),
    "density": Entry(
        "DPHistogramDensity",
        fitted(
            lambda: dpselect.DPHistogramDensity(bounds=(-1, 1), bin_width=0.5, max_sample_weight=2.0)
        ),
        weighs=True,
    ),
    "model of another library": Entry(
        "PrivateModel",
        fitted(
            lambda: dpselect.PrivateModel(
                SignedSum(),
                epsilon_parameter="epsilon",
                classes_parameter="labels",
                classes=[0, 1],
                adjacency="add or remove one record",
                conversion="remove and add",
            )
        ),
        LABELS,
        tuple(form for form in DENSE if form not in ("dask", "arrow")),
    ),
    "stability": Entry(
        "StabilityGridSearchCV",
        searched(dpselect.StabilityGridSearchCV, strategy="stability", scoring="brier"),
        LABELS,
        ALL,
        True,
    ),
    "search of one model, evaluated": Entry(
        "StabilityGridSearchCV",
        searched(dpselect.StabilityGridSearchCV, evaluation=0.2),
        LABELS,
    ),
    "search with steps": Entry("StabilityGridSearchCV", fitted(steps_searched), LABELS),
    "accuracy first": Entry("AccuracyFirstSearchCV", accuracy_first(), LABELS, ALL, True),
    "selector": Entry(
        "ThresholdoutFeatureSelector",
        fitted(
            lambda: dpselect.ThresholdoutFeatureSelector(
                dpselect.DPLogisticRegression(classes=[0, 1]), n_features_to_select=1
            )
        ),
        LABELS,
        ("array", "float32", "csr", "pandas"),
    ),
    "holdout": Entry("Thresholdout", held_out, None, ("array", "csr", "pandas")),
    "evaluate, labels": Entry(
        "evaluate",
        lambda rows, y, weight: dpselect.evaluate(
            CLASSIFIER, rows, y, epsilon=1.0, sample_weight=weight, max_weight=2.0
        ),
        LABELS,
        ALL,
        True,
    ),
    "evaluate, targets": Entry(
        "evaluate",
        lambda rows, y, weight: dpselect.evaluate(REGRESSION, rows, y, epsilon=1.0, **RANGE),
        TARGETS,
        ALL,
    ),
    "evaluate, density": Entry(
        "evaluate",
        lambda rows, y, weight: dpselect.evaluate(DENSITY, rows, epsilon=1.0),
    ),
    "intervals": Entry("coef_interval", intervals, LABELS, ALL, True),
    "private bounds": Entry("DPBoundsScaler", fitted(preprocessing.DPBoundsScaler)),
    "private bounds and a model": Entry(
        "DPBoundsScaler",
        fitted(private_bounds),
        LABELS,
        ("array", "float32", "pandas"),
    ),
    "bounds": Entry("BoundedScaler", transformed(lambda: preprocessing.BoundedScaler((-1, 1)))),
    "norms": Entry("NormClipper", transformed(preprocessing.NormClipper), forms=ALL),
    "encoder": Entry("TableEncoder", transformed(lambda: preprocessing.TableEncoder((-1, 1)))),
    "tabular pipeline": Entry(
        "TabularPipeline",
        fitted(
            lambda: preprocessing.tabular_pipeline(SCHEMA, dpselect.DPLogisticRegression(classes=[0, 1]))
        ),
        LABELS,
        TABLES,
    ),
    "learned ranges": Entry(
        "TabularPipeline",
        fitted(
            lambda: preprocessing.tabular_pipeline(
                SCHEMA, dpselect.DPLogisticRegression(100.0, classes=[0, 1]), ranges="auto"
            )
        ),
        LABELS,
        TABLES,
    ),
}


def spoiled(entry, place, value, form):
    """Return rows, labels and weights of which one holds the value."""
    rows, y, weight = X.copy(), entry.y, WEIGHTS if entry.weighs else None
    if place == "X":
        rows[ROW, 1] = value
    elif place == "y":
        y = y.copy()
        y[ROW] = value
    elif place == "weight":
        weight = weight.copy()
        weight[ROW] = value
    return FORMS[form](rows), y, weight


def outcome(entry, place, value, form):
    """Return "refused", or what happened in place of a refusal by this library."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry.call(*spoiled(entry, place, value, form))
    except (TypeError, ValueError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if Path(dpselect.__file__).parent not in Path(last).parents:
            return f"another library's {type(error).__name__}: {error}"
        if place is not None and getattr(entry.call, "left", []):
            return f"refused, but there remain {entry.call.left}"
        return "refused" if place is not None else f"clean records are refused: {error}"
    return "released"


def cells(few=False):
    """Yield entry point, place, value and form of each cell; of few, some forms with one value each."""
    values = cycle(VALUES)
    for name, entry in ENTRIES.items():
        for form in entry.forms:
            for place in entry.places(form):
                if not few:
                    yield from ((name, place, value, form) for value in VALUES)
                elif form in FEW:
                    yield name, place, next(values), form


def walk(few=False):
    """Return how many cells there are, and what happened where nothing was refused."""
    found = {cell: outcome(ENTRIES[cell[0]], *cell[1:]) for cell in cells(few)}
    return len(found), [[*map(str, cell), said] for cell, said in found.items() if said != "refused"]


@contextmanager
def settings_of_pandas():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some will go
        with pd.option_context("mode.string_storage", "python", "future.infer_string", False):
            yield


@contextmanager
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sets(**settings):
    return partial(sklearn.config_context, **settings)


# settings of other libraries that any part of a process may have changed
SWITCHES = {
    "none": (),
    "assume_finite": (sets(assume_finite=True),),
    "skip_parameter_validation": (sets(skip_parameter_validation=True),),
    "routing": (sets(enable_metadata_routing=True),),
    "tables between steps": (sets(transform_output="pandas"),),
    "little memory": (sets(working_memory=0.001),),
    "numpy raises": (partial(np.errstate, all="raise"),),
    "numpy prints little": (partial(np.printoptions, precision=0, threshold=0, legacy="1.13"),),
    "pandas": (settings_of_pandas,),
    "no warnings": (no_warnings,),
}
SWITCHES["all"] = tuple(context for contexts in SWITCHES.values() for context in contexts)


@contextmanager
def switched(name):
    with ExitStack() as stack, dask.config.set(scheduler="synchronous"):
        for context in SWITCHES[name]:
            stack.enter_context(context())
        yield


def main(few):
    """Walk, and print what was found."""
    # (scikit-learn refuses this one unless the environment allows it)
    dispatch = {"array_api_dispatch": True} if os.environ.get("SCIPY_ARRAY_API") else {}
    with switched("none"), sklearn.config_context(**dispatch):
        n, released = walk(few)
    assumed = sklearn.get_config()["assume_finite"]
    print(json.dumps({"n": n, "released": released, "assume_finite": assumed, "docs": main.__doc__}))


if __name__ == "__main__":
    main(few="few" in sys.argv)

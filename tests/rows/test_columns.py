"""Tables whose columns lie apart give what one array of them gives, and are never made into one."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpselect import (
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler
from dpselect.rows import columns, is_lazy

NAMES = ["age", "dose", "weight"]


def pandas(X):
    table = pd.DataFrame(X, columns=NAMES).astype({"age": np.int8, "dose": np.float32})
    return table.set_axis(np.arange(len(X)) / 2 % 7)


def polars(X):
    return pl.from_pandas(pandas(X))


def polars_in_pieces(X):
    return pl.concat([polars(X[:70]), polars(X[70:])], rechunk=False)


def arrow(X):
    return pa.Table.from_pandas(pandas(X), preserve_index=False)


def arrow_in_pieces(X):
    return pa.concat_tables([arrow(X[:70]), arrow(X[70:])])


CONTAINERS = [pandas, polars, polars_in_pieces, arrow, arrow_in_pieces]
LOGISTIC = DPLogisticRegression(classes=[0, 1], data_norm=2.0, max_iter=5)
ESTIMATORS = [
    LOGISTIC,
    DPRidge(target_range=(0, 1)),
    DPHistogramDensity(bounds=(-3, 3), bin_width=1.0),
    DPBoundsScaler(),
    BoundedScaler((-1, 1)),
    StabilityGridSearchCV(LOGISTIC, {"alpha": [0.01, 1.0]}),
]


@pytest.fixture
def data(monkeypatch):
    monkeypatch.setattr(columns, "FEW_NUMBERS", 0)
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(0, 1.5, size=(300, 3)))
    return X, rng.integers(2, size=300)


def fitted(estimator, X, y):
    params = estimator.get_params(deep=False)
    seed = {"random_state": root_stream(3)} if "random_state" in params else {}
    return type(estimator)(**params | seed).fit(X, y)


def released(model, X):
    """What is released, and what is made of other rows."""
    found = {
        name: value
        for name, value in vars(getattr(model, "best_estimator_", model)).items()
        if name.endswith("_") and name != "privacy_"
    }
    asked = ("transform", "predict", "decision_function", "score_samples")
    return found | {name: getattr(model, name)(X) for name in asked if hasattr(model, name)}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_they_give_what_one_array_gives(data, estimator, container):
    X, y = data
    table, others = container(X), container(X[::-1])
    assert is_lazy(columns.by_columns(table))
    found = released(fitted(estimator, table, y), others)
    order = "C" if isinstance(table, pa.Table) else "F"
    whole, reverse = np.array(X, order=order), np.array(X[::-1], order=order)
    expected = released(fitted(estimator, whole, y), reverse)
    assert found.pop("feature_names_in_", NAMES) is not None
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.usefixtures("small_blocks")
def test_the_broken_twin_reads_slices_by_labels(data, monkeypatch):
    X, y = data
    load = columns.ColumnRows.load
    monkeypatch.setattr(
        columns.ColumnRows,
        "load",
        lambda rows, part: load(rows, slice(0, part.stop - part.start)),
    )
    found = fitted(LOGISTIC, polars(X), y).coef_
    assert (found != fitted(LOGISTIC, np.asfortranarray(X), y).coef_).any()


@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
@pytest.mark.parametrize("container", CONTAINERS)
def test_gaps_and_infinity_are_refused(data, container, bad):
    X, y = data
    table = container(X)
    weights = [bad if i == 250 else float(v) for i, v in enumerate(X[:, 2])]
    if isinstance(table, pd.DataFrame):
        table["weight"] = np.array(weights, dtype=float)
    elif isinstance(table, pl.DataFrame):
        table = table.with_columns(weight=pl.Series(weights, dtype=pl.Float64))
    else:
        table = table.set_column(2, "weight", pa.array(weights, pa.float64()))
    with pytest.raises(ValueError, match="Input X contains"):
        fitted(LOGISTIC, table, y)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(np.zeros((4, 2))),  # one array already
        pd.DataFrame({"a": [1, 2], "b": ["1", "2"]}),
        pl.DataFrame({"a": [1.0, 2.0], "b": [True, None]}),
        pa.table({"a": [1.0, 2.0], "b": [True, None]}),
        pl.DataFrame({"a": [1.0, 2.0], "b": ["1", "2"]}),
        [[1.0], [2.0]],
    ],
)
def test_other_tables_stay_as_they_are(data, table):
    assert columns.by_columns(table) is table


@pytest.mark.parametrize("container", [pandas, arrow])
def test_a_large_table_is_never_copied(container):
    X = np.random.default_rng(0).normal(size=(400_000, 3))
    table, y = container(X), X[:, 0] > 0
    tracemalloc.start()
    try:
        fitted(DPRidge(target_range=(0, 1)), table, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # an array would be 9.6 MB, and blocks are of 2 MB
    assert peak < 8e6

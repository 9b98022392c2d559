import gc
import pickle
import warnings
import weakref
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    DPLogisticRegression,
    DPRidge,
    PrivacyLeakWarning,
    StabilityGridSearchCV,
)
from dpselect import training_records as module
from dpselect.preprocessing import BoundedScaler

MODEL = DPLogisticRegression(alpha=0.1, classes=[0, 1])
INF = float("inf")


@pytest.fixture
def data():
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    return X, (X[:, 0] > 0).astype(int)


def notices(model, X, y, method="score"):
    """Tell whether a score of `X` warns of a leak, once and at the line that called it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model, method)(*((X, y) if method == "score" else (X,)))
    assert len(caught) <= 1
    places = {(warning.category, warning.filename) for warning in caught}
    assert places <= {(PrivacyLeakWarning, __file__)}
    return bool(caught)


# --- what is the same object


def test_a_score_that_failed_takes_no_warning_away(data):
    model = clone(MODEL).fit(*data)
    with pytest.warns(PrivacyLeakWarning), pytest.raises(ValueError, match="inconsistent"):
        model.score(data[0], data[1][:-1])
    assert notices(model, *data)


@pytest.mark.parametrize(
    ("kind", "noticed"),
    [
        (np.asfortranarray, True), (pd.DataFrame, True), (sparse.csr_array, True),
        (sparse.coo_matrix, True), (lambda X: pl.DataFrame(X, schema=["a", "b"]), True),
        (lambda X: X.astype(object), True), (np.ndarray.tolist, False),
    ],
)
def test_containers(data, kind, noticed):
    X, y = kind(data[0]), data[1]
    model = clone(MODEL).fit(X, y)
    assert notices(model, X, y) is noticed
    assert not notices(model, kind(data[0]), y)


def test_slices(data):
    X, y = data
    model = clone(MODEL).fit(X[:100], y[:100])
    for part, noticed in (
        (slice(0, 100), True), (slice(50, 60), True), (slice(99, None, -1), True),
        (slice(None), True), (slice(99, 200), True), (slice(100, 200), False),
    ):
        assert notices(model, X[part], y[part]) is noticed
    # a selection by indices is a copy
    assert not notices(model, X[np.arange(50)], y[:50])
    model = clone(MODEL).fit(X[::2], y[::2])
    assert notices(model, X[::4], y[::4]) and not notices(model, X[1::2], y[1::2])


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_table_that_holds_the_labels(data, order):
    """The slice is another object each time, and only the table lives."""
    table = np.asarray(np.column_stack(data), order=order)
    model = clone(MODEL).fit(table[:150, :-1], table[:150, -1])
    assert notices(model, table[:150, :-1], table[:150, -1])
    assert not notices(model, table[150:, :-1], table[150:, -1])


def test_what_lies_in_a_frame(data):
    frame = pd.DataFrame(data[0])
    model = clone(MODEL).fit(frame.to_numpy(), data[1])
    assert notices(model, frame.to_numpy(), data[1])


def test_memory_maps(data, tmp_path):
    X, y = data
    table = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    table[:] = X
    model = clone(MODEL).fit(table[:100], y[:100])
    assert notices(model, table[50:150], y[50:150]) and not notices(model, table[100:], y[100:])


def test_slices_of_objects_count_by_themselves(data):
    X, y = data[0].astype(object), data[1]
    model = clone(MODEL).fit(X[:100], y[:100])
    assert not notices(model, X[100:], y[100:])


def test_what_is_too_hard_to_tell_is_not_told(data, monkeypatch):
    X, y = data
    X = np.asfortranarray(X)
    model = clone(MODEL).fit(X[::3], y[::3])
    assert notices(model, X[1::7], y[1::7])
    monkeypatch.setattr(module, "MAX_WORK", 1)
    assert not notices(model, X[1::7], y[1::7])


# --- which models


def test_readings_of_one_release(data):
    X, y = data
    reading = DPRidge(target_range=(-1, 1)).fit(X, y).post_process(alpha=0.5)
    assert notices(reading, X, y) and not notices(reading, X.copy(), y)


@pytest.mark.parametrize(
    "search",
    [
        StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}),
        StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, strategy="stability"),
        StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, strategy="budget_split"),
        AccuracyFirstSearchCV(MODEL, {"epsilon": [1.0, 1e6]}, target=0.1),
        AccuracyFirstSearchCV(
            MODEL, {"epsilon": [1.0, 1e6]}, target=0.1, method="doubling", on_failure="last"
        ),
    ],
    ids=lambda search: type(search).__name__,
)
def test_searches(data, search):
    X, y = data
    search = clone(search).fit(X, y)
    for model in (search, search.best_estimator_):
        assert notices(model, X, y) and not notices(model, X.copy(), y)


def test_a_search_sees_through_its_pipeline(data):
    X, y = data
    pipeline = make_pipeline(BoundedScaler((-1, 1)), clone(MODEL))
    assert notices(StabilityGridSearchCV(pipeline, {}).fit(X, y), X, y)
    # which the last step of a Pipeline cannot
    assert not notices(pipeline.fit(X, y), X, y)


def test_without_privacy_there_is_no_leak(data):
    X, y = data
    search = StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, epsilon=INF)
    for model in (clone(MODEL).set_params(epsilon=INF), DPRidge(INF, target_range=(-1, 1)), search):
        assert not notices(model.fit(X, y), X, y)
    model = clone(MODEL).fit(X, y)
    assert notices(model, X, y)
    assert not notices(model.set_params(epsilon=INF).fit(X, y), X, y)


def test_the_last_fit_counts(data):
    X, y = data
    model = clone(MODEL).fit(X, y).fit(X.copy(), y)
    assert not notices(model, X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 2), np.nan), y[:5])
    assert notices(model, X, y)


# --- what is kept


def test_the_records_are_not_kept(data):
    X, y = data[0].copy(), data[1]
    model = clone(MODEL).fit(X, y)
    reference = weakref.ref(X)
    del X
    gc.collect()
    assert reference() is None
    # others may come to lie in the same place
    assert not notices(model, data[0].copy(), y)


def test_the_model_holds_nothing(data):
    X, y = data
    model = clone(MODEL).fit(X, y)
    bare = clone(MODEL)
    type(bare).fit.__wrapped__(bare, X, y)
    assert vars(model).keys() == vars(bare).keys()
    for twin in (deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert not notices(twin, X, y)
    assert clone(model) not in module._TRAINED_ON


def test_nothing_is_left_of_a_search_but_itself_and_its_model(data):
    gc.collect()
    before = set(map(id, module._TRAINED_ON))
    search = StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, strategy="data_split").fit(*data)
    gc.collect()
    found = set(map(id, module._TRAINED_ON)) - before
    assert found == {id(search), id(search.best_estimator_)}
    del search
    gc.collect()
    assert not found & set(map(id, module._TRAINED_ON))

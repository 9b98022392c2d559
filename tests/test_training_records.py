import gc
import pickle
import warnings
import weakref
from copy import copy, deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    PrivacyLeakError,
    PrivacyLeakWarning,
    PrivacyLedger,
    StabilityGridSearchCV,
    calibrated,
    coef_interval,
    config_context,
    evaluate,
    privacy_report,
)
from dpselect.base.estimator import ReleaseMixin
from dpselect.evaluation import CalibratedModel
from dpselect.ledger import CarriesLedgerMixin
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, tabular_pipeline
from dpselect.records import training as module
from dpselect.utils.parameters import KEPT

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
        (np.asfortranarray, True),
        (pd.DataFrame, True),
        (sparse.csr_array, True),
        (sparse.coo_matrix, True),
        (lambda X: pl.DataFrame(X, schema=["a", "b"]), True),
        (lambda X: X.astype(object), True),
        (np.ndarray.tolist, False),
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
        (slice(0, 100), True),
        (slice(50, 60), True),
        (slice(99, None, -1), True),
        (slice(None), True),
        (slice(99, 200), True),
        (slice(100, 200), False),
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


@pytest.mark.slow
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
    # (the parameters of a fit are kept with it)
    assert vars(model).keys() == vars(bare).keys() | {KEPT}
    for twin in (deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert not notices(twin, X, y)
    assert clone(model) not in module._TRAINED_ON


@pytest.mark.slow
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


# --- what is asked of a model besides its score


def calibrated_by(model, X, y):
    return calibrated(model, evaluate(model, X.copy(), y, epsilon=10.0))


SEARCH = StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]})
SOFT = DPLogisticRegression(10.0, classes=[0, 1])
# made from records, with what they were trained on
TRAINED = {
    "model": lambda X, y: clone(MODEL).fit(X, y),
    "copy": lambda X, y: copy(clone(MODEL).fit(X, y)),
    "search": lambda X, y: clone(SEARCH).fit(X, y),
    "copy of a search": lambda X, y: copy(clone(SEARCH).fit(X, y)),
    "best": lambda X, y: clone(SEARCH).fit(X, y).best_estimator_,
    "calibrated": lambda X, y: calibrated_by(clone(SOFT).fit(X, y), X, y),
    "calibrated search": lambda X, y: calibrated_by(clone(SEARCH).fit(X, y), X, y),
    "copy of calibrated": lambda X, y: copy(calibrated_by(clone(SOFT).fit(X, y), X, y)),
    "frozen": lambda X, y: FrozenEstimator(clone(MODEL).fit(X, y)),
    "first step": lambda X, y: make_pipeline(DPBoundsScaler(), clone(MODEL)).fit(X, y),
    "passthrough": lambda X, y: make_pipeline("passthrough", clone(MODEL)).fit(X, y),
    "copy of a pipeline": lambda X, y: copy(make_pipeline(DPBoundsScaler(), clone(MODEL)).fit(X, y)),
}


def told(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    assert len(caught) <= 1 and {w.category for w in caught} <= {PrivacyLeakWarning}
    return bool(caught)


def check_is_noticed(model, X, y):
    """An evaluation and a score of training records warn, and are errors in strict mode; no others."""
    asked = [lambda X: evaluate(model, X, y, epsilon=1.0)]
    # (scores of a Pipeline and of FrozenEstimator are scikit-learn's own)
    if isinstance(model, (ReleaseMixin, CalibratedModel)):
        asked.append(lambda X: model.score(X, y))
    for ask in asked:
        assert told(lambda: ask(X)) and told(lambda: ask(X[:])) and not told(lambda: ask(X.copy()))
        with config_context(strict=True), pytest.raises(PrivacyLeakError, match="trained on"):
            ask(X)


@pytest.mark.parametrize("name", TRAINED)
def test_every_form_of_a_model_is_noticed(name, data):
    check_is_noticed(TRAINED[name](*data), *data)


@pytest.mark.parametrize("name", sorted(TRAINED.keys() - {"model", "search", "best"}))
def test_a_form_that_is_not_looked_into_is_caught(name, data, monkeypatch):
    monkeypatch.setattr(module, "_parts", lambda model: [model])
    monkeypatch.setattr(ReleaseMixin, "__copy__", CarriesLedgerMixin.__copy__)
    model = TRAINED[name](*data)
    with pytest.raises(AssertionError):
        check_is_noticed(model, *data)


def test_tables_are_noticed(data):
    X, y = data
    table = pd.DataFrame(X, columns=["a", "b"])
    schema = {"a": (-1, 1), "b": (-1, 1)}
    for epsilon in (1.0, INF):
        pipeline = tabular_pipeline(schema, DPLogisticRegression(epsilon, classes=[0, 1])).fit(table, y)
        assert told(lambda: evaluate(pipeline, table, y, epsilon=1.0)) == (epsilon < INF)
        assert not told(lambda: evaluate(pipeline, table.copy(), y, epsilon=1.0))


def test_an_evaluation_of_a_density_is_asked_once(data):
    X, y = data
    density = DPHistogramDensity(bounds=(-1, 1)).fit(X)
    with config_context(strict=True):
        assert evaluate(density, X.copy(), epsilon=1.0).n_records == 200
    assert told(lambda: evaluate(density, X, epsilon=1.0))


def test_nothing_is_read_or_spent_where_strict_mode_refuses(data, tmp_path):
    X, y = data
    model = clone(MODEL).fit(X, y)
    ledger = PrivacyLedger(tmp_path / "a.ledger", epsilon=10.0)
    with config_context(strict=True), pytest.raises(PrivacyLeakError):
        evaluate(model, X, y, epsilon=1.0, ledger=ledger)
    assert not ledger.history()


def test_models_of_others_need_no_hash(data):
    class Odd(LogisticRegression):
        def __eq__(self, other):
            return True

    assert not told(lambda: evaluate(Odd().fit(*data), *data, epsilon=1.0))


def stated(X, Z, y):
    """What is stated of a model that is trained on X and evaluated on Z: in all, and in words."""
    model = clone(MODEL).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        evaluation = evaluate(model, Z, y, epsilon=2.0)
    report = privacy_report(model, evaluation=evaluation)
    return evaluation, report.privacy, str(report)


def check_statement(stated, X, y):
    evaluation, loss, text = stated(X, X, y)
    assert evaluation.of_training_records and "trained on the same records" in str(evaluation.privacy_)
    assert loss.epsilon == 3.0 and loss.composition == "sequential"
    assert "epsilon = 3" in text and "both together have" not in text
    evaluation, loss, text = stated(X, X.copy(), y)
    assert not evaluation.of_training_records and loss.epsilon == 1.0
    assert "both together have epsilon = 2" in text and "Otherwise they have 3" in text


def test_losses_of_an_evaluation_of_training_records_add_up(data):
    check_statement(stated, *data)
    with pytest.raises(AssertionError):
        check_statement(lambda X, Z, y: stated(X, Z.copy(), y), *data)


def test_losses_of_persons_and_records_do_not_add_up(data):
    X, y = data
    model = clone(MODEL).fit(X, y)
    with pytest.warns(PrivacyLeakWarning):
        evaluation = evaluate(model, X, y, epsilon=2.0, groups=np.arange(200) // 2)
    report = privacy_report(model, evaluation=evaluation)
    assert report.privacy.epsilon == 1.0 and "another adjacency" in str(report)


def test_intervals_may_be_of_the_training_records_and_their_losses_add_up():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(40_000, 2)) / 2**0.5
    y = (X @ [2, -1] + rng.logistic(size=40_000) > 0).astype(int)
    for model in (MODEL, make_pipeline(DPBoundsScaler(), MODEL)):
        model = clone(model).fit(X, y)
        with config_context(strict=True):
            same, other = (
                coef_interval(model, Z, y, epsilon=1.0, n_samples=40_000) for Z in (X, X.copy())
            )
        assert same.of_training_records and not other.of_training_records
        assert "so its own loss adds to this one" in str(same.privacy_)
        assert "so its own loss adds to this one" not in str(other.privacy_)
        assert "and its training records" in str(privacy_report(other))
        assert "and its training records" not in str(privacy_report(same))

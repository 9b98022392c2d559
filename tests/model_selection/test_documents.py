"""Documents, one text a record, before a vectorizer in a search."""

import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dpselect import AccuracyFirstSearchCV, DPLogisticRegression, StabilityGridSearchCV
from dpselect.model_selection import exact_scores as evaluation
from dpselect.model_selection.row_steps import PublicRows
from dpselect.noise import root_stream
from dpselect.preprocessing.table_form import TableForm, read_form

WORDS = ["warm", "dry", "cold", "wet", "and"]
LABELS = np.tile([0, 1], 60)
DOCUMENTS = [f"{WORDS[i % 3 + label]} and {WORDS[i % 5]}" for i, label in enumerate(LABELS)]
MODEL = DPLogisticRegression(classes=[0, 1])
VECTORIZERS = [
    HashingVectorizer(n_features=64),
    CountVectorizer(vocabulary=WORDS),
    TfidfVectorizer(vocabulary=WORDS, use_idf=False),
]
ALPHA = {"dplogisticregression__alpha": [0.1, 1.0]}


def series(documents):
    return pytest.importorskip("pandas").Series(documents, index=range(7, 7 + len(documents)))


def polars(documents):
    return pytest.importorskip("polars").Series(documents)


CONTAINERS = [
    list,
    tuple,
    np.array,
    lambda documents: np.array(documents, dtype=object),
    series,
    polars,
]


def search(steps, grid=ALPHA, **params):
    return StabilityGridSearchCV(
        clone(make_pipeline(*steps, MODEL)),
        grid,
        random_state=root_stream(0),
        cv=KFold(3, shuffle=True, random_state=0),
        **params,
    )


@pytest.mark.parametrize("strategy", ["stability", "data_split", "random_stopping", "optimal_risk"])
@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=lambda step: type(step).__name__)
def test_a_search_does_what_it_does_on_the_table_of_words(vectorizer, strategy):
    table = clone(vectorizer).fit(DOCUMENTS).transform(DOCUMENTS)
    fitted = search([vectorizer], strategy=strategy).fit(DOCUMENTS, LABELS)
    expected = search(["passthrough"], strategy=strategy).fit(table, LABELS)
    assert fitted.best_params_ == expected.best_params_
    assert fitted.privacy_.epsilon == 1.0
    np.testing.assert_array_equal(fitted.best_estimator_[-1].coef_, expected.best_estimator_[-1].coef_)
    np.testing.assert_array_equal(fitted.predict(DOCUMENTS[:9]), expected.predict(table[:9]))


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers(container):
    found = search(VECTORIZERS[:1]).fit(container(DOCUMENTS), LABELS)
    expected = search(VECTORIZERS[:1]).fit(DOCUMENTS, LABELS)
    np.testing.assert_array_equal(
        found.decision_function(container(DOCUMENTS)), expected.decision_function(DOCUMENTS)
    )


def test_an_accuracy_first_search_and_plans():
    pipeline = make_pipeline(VECTORIZERS[0], DPLogisticRegression(alpha=1.0, classes=[0, 1]))
    grid = {"dplogisticregression__epsilon": [1.0, 10.0, 100.0]}
    accurate = AccuracyFirstSearchCV(pipeline, grid, target=10.0, random_state=root_stream(0))
    assert accurate.fit(DOCUMENTS, LABELS).predict(DOCUMENTS[:3]).shape == (3,)
    for model in (accurate, search(VECTORIZERS[:1])):
        assert str(model.plan(n_samples=120, n_features=1, example=["a text"]))


@pytest.mark.parametrize("other", [None, np.nan, 3.0, b"bytes", ["a", "list"]], ids=repr)
@pytest.mark.parametrize("container", [list, series], ids=["list", "series"])
def test_what_is_no_text_is_refused_and_not_quoted(other, container):
    documents = [*DOCUMENTS[:5], other, *DOCUMENTS[6:]]
    with pytest.raises(ValueError, match="one record would decide") as caught:
        search(VECTORIZERS[:1]).fit(container(documents), LABELS)
    assert "warm" not in str(caught.value) and "bytes" not in str(caught.value)
    with pytest.raises(ValueError, match="2 dimensions"):
        search(VECTORIZERS[:1]).fit(list(range(120)), LABELS)


def test_a_step_for_tables_is_refused_without_a_document():
    step = OneHotEncoder(categories=[["warm and dry"]], handle_unknown="ignore")
    with pytest.raises(ValueError, match="dummy row") as caught:
        search([step]).fit(DOCUMENTS, LABELS)
    assert "warm" not in str(caught.value)


class Unconverted(TableForm):
    def convert(self, X):
        return X


def all_records(X, *steps):
    """Let steps see the records: the broken twin."""
    X, form = np.array(X, dtype=object), read_form(X)
    return PublicRows([X], Unconverted(form.container, form.kinds))


class Remembers(HashingVectorizer):
    """Treats each document by itself, but keeps what it was fitted on."""

    def fit(self, X, y=None):
        self.seen_ = list(X)
        return super().fit(X, y)


@pytest.mark.parametrize("broken", [False, True], ids=["search", "broken twin"])
def test_steps_see_no_document(broken, monkeypatch):
    if broken:
        monkeypatch.setattr(evaluation, "public_rows", all_records)
    kept = []
    for document in ("cold and dry", "a longer text", "", "WARM"):
        documents = [*DOCUMENTS[:5], document, *DOCUMENTS[6:]]
        fitted = search([Remembers(n_features=64)], trusted_steps=[Remembers]).fit(documents, LABELS)
        kept.append(pickle.dumps(fitted.best_estimator_[:-1]))
    assert (len(set(kept)) > 1) == broken


@pytest.mark.slow
def test_many_columns_take_little_memory():
    """Not the 4 GB of 2,000 documents with 2^18 numbers each."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=2000)
    documents = [" ".join(f"w{i}" for i in rng.integers(5000 * t, 8000 + t, size=50)) for t in labels]
    tracemalloc.start()
    try:
        grid = {"dplogisticregression__alpha": [0.1, 1.0, 5.0, 20.0]}
        search([HashingVectorizer(n_features=2**18)], grid).fit(documents, labels)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4e8

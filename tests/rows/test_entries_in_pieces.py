"""Sparse rows in every form give what the same rows give as an array, also if entries come in pieces.

A matrix may store an entry many times, and means their sum. Whoever squares what is stored, to clip a
row or to weigh it, has a norm that is too small or too large, in one of the places where rows are read.
"""

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
    coef_interval,
    evaluate,
)
from dpselect.linear_model import design
from dpselect.preprocessing import DPBoundsScaler, NormClipper
from dpselect.rows import on_workers
from tests.marks import slow_but

from .kinds import in_pieces, sparse_forms

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning"),
]

N, INF = 60, float("inf")
RNG = np.random.default_rng(0)
# some rows are longer than 1, and some shorter, in eighths
X = np.where(RNG.random((N, 3)) < 0.6, np.rint(8 * RNG.normal(size=(N, 3))) / 8, 0.0)
X[::4] *= 5
LABELS = (X[:, 0] + 0.2 * RNG.normal(size=N) > 0).astype(int)
TARGETS = np.clip(X @ [0.4, -0.2, 0.1], -1, 1)
COUNTS = RNG.poisson(np.exp(TARGETS))
MODELS = {
    "logistic": (DPLogisticRegression(classes=[0, 1], alpha=0.01), LABELS),
    "three classes, l1": (
        DPLogisticRegression(classes=[0, 1, 2], alpha=0.01, norm="l1", data_norm_l1=1.2),
        LABELS + (X[:, 1] > 0.5),
    ),
    "learned norm": (DPLogisticRegression(epsilon=200.0, classes=[0, 1], data_norm="auto"), LABELS),
    "svc": (DPLinearSVC(classes=[0, 1], alpha=0.01, perturbation="output"), LABELS),
    "poisson": (DPPoissonRegressor(target_bound=4.0, alpha=0.01), COUNTS),
    "huber": (DPHuberRegressor(target_range=(-1, 1), alpha=0.01), TARGETS),
    "sums": (DPRidge(target_range=(-1, 1), alpha=0.01), TARGETS),
    "sums, l1": (DPRidge(target_range=(-1, 1), norm="l1", data_norm_l1=1.2), TARGETS),
    "ridge": (DPRidge(target_range=(-1, 1), alpha=0.1, perturbation="objective"), TARGETS),
}
SEARCH = StabilityGridSearchCV(
    DPLogisticRegression(classes=[0, 1]),
    {"alpha": [0.01, 0.1], "data_norm": [0.5, 1.0]},
    epsilon=50.0,
    strategy="stability",
    evaluation=0.3,
    cv=2,
)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def serial():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def forms_of(X, y, cluster, few=False):
    """Return the forms that a place has: of a cluster those that are lazy. A few are in pieces."""
    return {
        name: form
        for name, form in sparse_forms(X, y).items()
        if ("dask" in name or not cluster) and (not few or name.endswith("in pieces"))
    }


def numbers_of(model, X, y):
    """Return all that is told of records by a model that was fitted on them, in numbers."""
    params = {"target_range": (-1.0, 4.0)} if not hasattr(model, "classes_") else {}
    found = {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "score": model.score(X, y),
        "predict": model.predict(X),
        "evaluation": evaluate(model, X, y, epsilon=INF, **params).counts_,
    }
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(X)
    if hasattr(model, "decision_function"):
        found["decisions"] = model.decision_function(X)
    intervals = coef_interval(model, X, y, epsilon=INF, n_samples=N)
    return found | {"curvature": intervals.curvature_, "gradients": intervals.gradients_}


def check_model(name, cluster, few=False):
    model, y = MODELS[name]
    model = clone(model).set_params(random_state=1)
    if name != "learned norm":
        model.set_params(epsilon=INF)
    expected = numbers_of(clone(model).fit(X, y), X, y)
    for form, given in forms_of(X, y, cluster, few).items():
        found = numbers_of(clone(model).fit(*given), *given)
        for what, number in expected.items():
            number = np.asarray(number)
            np.testing.assert_allclose(
                np.asarray(found[what]),
                number,
                rtol=1e-6,
                atol=1e-7 * np.abs(number).max(),
                err_msg=f"{what} of {form}",
            )


# in the fast runs one of them, of entries in pieces
CASES = slow_but([*((name, False) for name in MODELS), ("sums, l1", True), ("logistic", True)], -1)


@pytest.mark.usefixtures("serial")
@pytest.mark.parametrize("name, few", CASES)
def test_models_here(name, few):
    check_model(name, False, few)


# a cluster reads rows in the same way for all of them
ON_A_CLUSTER = slow_but(
    [
        *((name, False) for name in ("logistic", "learned norm", "sums", "sums, l1")),
        ("three classes, l1", True),
        ("ridge", True),
        ("logistic", True),
    ],
    -1,
)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("name, few", ON_A_CLUSTER)
def test_models_on_a_cluster(name, few):
    check_model(name, True, few)


def check_search(cluster):
    expected = clone(SEARCH).set_params(random_state=2).fit(X, LABELS)
    for form, given in forms_of(X, LABELS, cluster).items():
        found = clone(SEARCH).set_params(random_state=2).fit(*given)
        assert found.best_params_ == expected.best_params_, form
        coefs = [search.best_estimator_.coef_ for search in (found, expected)]
        np.testing.assert_allclose(*coefs, rtol=1e-6)
        np.testing.assert_array_equal(found.evaluation_.counts_, expected.evaluation_.counts_)


@pytest.mark.slow
@pytest.mark.usefixtures("serial")
def test_searches_here():
    check_search(False)


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_searches_on_a_cluster():
    check_search(True)


@pytest.mark.usefixtures("serial")
@pytest.mark.parametrize(
    "step",
    [
        DPHistogramDensity(bounds=(-1, 1), bin_width=0.5),
        DPBoundsScaler(),
        NormClipper(),
    ],
    ids=repr,
)
def test_other_estimators_take_sparse_rows_in_all_forms_or_in_none(step):
    found = {}
    for form, (rows, _) in sparse_forms(X, LABELS).items():
        try:
            given = clone(step).fit(rows).transform(rows)
            found[form] = np.asarray(given.toarray() if hasattr(given, "toarray") else given)
        except (TypeError, ValueError) as error:
            found[form] = type(error)
    kinds = {type(value) for value in found.values()}
    assert len(kinds) == 1
    if kinds == {np.ndarray}:
        for form, value in found.items():
            np.testing.assert_allclose(value, found["csr"], err_msg=form)


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_entries_that_are_taken_as_they_are_stored_are_caught(monkeypatch):
    monkeypatch.setattr(on_workers, "canonical", lambda X: X)
    with pytest.raises(AssertionError):
        check_model("logistic", True, True)


@pytest.mark.slow
@pytest.mark.usefixtures("serial")
def test_so_they_are_in_memory(monkeypatch):
    monkeypatch.setattr(design, "canonical", lambda X: X.tocsr() if hasattr(X, "tocsr") else X)
    with pytest.raises(AssertionError):
        check_model("logistic", False, True)


def test_pieces_are_what_they_say():
    for cancelling in (False, True):
        given = in_pieces(X, cancelling)
        assert given.nnz >= 2 * np.count_nonzero(X)
        np.testing.assert_array_equal(given.toarray(), X)
        lengths = np.sqrt(np.add.reduceat(given[[0]].data ** 2, [0])), np.linalg.norm(X[0])
        assert (lengths[0] > 2 * lengths[1]) == cancelling and (lengths[0] < lengths[1]) != cancelling

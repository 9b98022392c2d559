"""A TabularPipeline: bounds that follow from the encoder, in a fit, a search and a plan."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
    privacy_of,
)
from dpselect.model_selection.candidates import make_candidates
from dpselect.preprocessing import TableEncoder, TabularPipeline, tabular_pipeline

SCHEMA = {
    "age": (18, 100),
    "income": {"bounds": (0, 1e5), "transform": "log1p", "missing": True},
    "job": ["farmer", "clerk", "cook"],
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 2000
    age, income = rng.integers(18, 100, n), rng.lognormal(9, 1, n)
    X = np.array([age, income, rng.choice(SCHEMA["job"], n)], dtype=object).T
    X[rng.random(n) < 0.1, 1] = np.nan
    return X, (age > 55).astype(int)


def bounds(model):
    return {name: value for name, value in model.get_params().items() if name.startswith("data_norm")}


@pytest.mark.parametrize("model", [
    DPLogisticRegression(classes=[0, 1]), DPLinearSVC(classes=[0, 1]), DPPoissonRegressor(),
])
@pytest.mark.parametrize("expansion", ["linear", 3])
def test_a_fit_reads_bounds_from_the_encoder(model, expansion, table):
    pipeline = tabular_pipeline(SCHEMA, model, expansion=expansion).fit(*table)
    encoder = TableEncoder(SCHEMA, expansion=expansion)
    assert bounds(pipeline[-1]) == {
        "data_norm": encoder.typical_norm("l2"), "data_norm_l1": encoder.typical_norm("l1"),
    }
    assert privacy_of(pipeline).epsilon == 1.0
    assert model.data_norm == 1.0  # it was cloned


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_model_with_one_bound_has_that_of_its_norm(norm, table):
    pipeline = tabular_pipeline(SCHEMA, DPRidge(norm=norm)).fit(*table)
    assert pipeline[-1].data_norm == TableEncoder(SCHEMA).typical_norm(norm)


def test_bounds_follow_the_encoder(table):
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1])).fit(*table)
    before = bounds(pipeline[-1])
    for other in (clone(pipeline), pickle.loads(pickle.dumps(pipeline)), pipeline):
        other.set_params(encoder__expansion=5).fit(*table)
        assert bounds(other[-1])["data_norm"] > before["data_norm"]


def test_each_candidate_of_a_search_has_its_own(table):
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    grid = {"encoder__expansion": ["linear", 4]}
    found = [bounds(c.model) for c in make_candidates(pipeline, grid, trusted_steps=())]
    assert [one["data_norm"] for one in found] == [
        TableEncoder(SCHEMA, expansion=k).typical_norm("l2") for k in grid["encoder__expansion"]
    ]
    search = StabilityGridSearchCV(pipeline, grid, epsilon=2.0, random_state=0)
    search.plan(2000, 3, example=table[0][:1])
    with pytest.warns(UserWarning, match="seed"):
        search.fit(*table)
    assert bounds(search.best_estimator_[-1]) == found[search.best_index_]
    assert search.privacy_.epsilon == 2.0
    assert bounds(pipeline[-1])["data_norm"] == 1.0


@pytest.mark.parametrize("name", ["model__data_norm", "model__data_norm_l1"])
def test_a_grid_that_contradicts_the_encoder_is_refused(name, table):
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    with pytest.raises(ValueError, match=name):
        StabilityGridSearchCV(pipeline, {name: [1.0, 2.0]}).fit(*table)


def test_accuracy_first(table):
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1], alpha=0.1))
    grid = {"model__epsilon": np.geomspace(0.1, 100, 20)}
    search = AccuracyFirstSearchCV(pipeline, grid, target=0.1).fit(*table)
    assert bounds(search.best_estimator_[-1])["data_norm"] == TableEncoder(SCHEMA).typical_norm("l2")


def test_without_an_encoder_nothing_is_known(table):
    steps = make_pipeline(DPLogisticRegression(classes=[0, 1])).steps
    with pytest.raises(TypeError, match="no TableEncoder"):
        TabularPipeline(steps).fit(*table)

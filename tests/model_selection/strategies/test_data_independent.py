from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

from dpselect import CertificateError, DPLogisticRegression
from dpselect.model_selection.strategies.data_independent import best_by_rule
from dpselect.records.public_shape import PublicShape

from .common import GRID, LOGISTIC, RIDGE, SVC, Untouchable, records, search

ALPHAS = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0]


@pytest.mark.parametrize("model", [LOGISTIC, SVC])
@pytest.mark.parametrize("n", [100, 10_000])
def test_the_choice_is_that_of_the_public_cost(model, n):
    X, y = records(n)
    s = search("data_independent", model, {"alpha": ALPHAS}, epsilon=0.5).fit(X, y)
    costs = [
        type(model)(epsilon=0.5, alpha=alpha, classes=[0, 1]).regularisation_cost(n, 3)
        for alpha in ALPHAS
    ]
    assert s.best_index_ == np.argmin(costs)
    assert [loss.epsilon for loss in s.privacy_.releases] == [0.5]
    assert s.best_estimator_.epsilon == 0.5


def test_more_records_need_less_regularisation():
    chosen = [
        search("data_independent", grid={"alpha": ALPHAS}, refit=False).fit(*records(n)).best_index_
        for n in (30, 30_000)
    ]
    assert chosen[1] < chosen[0]


def test_no_record_moves_the_choice():
    X, y = records(300)
    chosen = {
        search("data_independent", grid={"alpha": ALPHAS}, refit=False).fit(*data).best_index_
        for data in ((X, y), (-X, y), (0 * X, y), (X, 1 - y), (X, np.ones(300, dtype=int)))
    }
    assert len(chosen) == 1


def test_the_columns_that_reach_the_model_count():
    """RBFSampler makes 500 columns of 3, whose noise wants another alpha."""
    X, y = records(3000)
    kernel = RBFSampler(gamma=1.0, n_components=500)
    pipeline = make_pipeline(kernel, DPLogisticRegression(classes=[0, 1]))
    s = search("data_independent", pipeline, {"dplogisticregression__alpha": ALPHAS}, refit=False)
    alone = search("data_independent", grid={"alpha": ALPHAS}, refit=False)
    chosen = s.fit(X, y).best_params_["dplogisticregression__alpha"]
    assert chosen > alone.fit(X, y).best_params_["alpha"]
    assert s.best_index_ == np.argmin(
        [
            DPLogisticRegression(epsilon=1.0, alpha=alpha).regularisation_cost(3000, 500)
            for alpha in ALPHAS
        ]
    )


@pytest.mark.parametrize(
    "model, grid",
    [
        (LOGISTIC, {"alpha": [0.1, 1.0], "data_norm": [1.0, 2.0]}),
        (LOGISTIC, {"perturbation": ["objective", "output"]}),
        (LOGISTIC, [{"alpha": [0.1]}, {"max_iter": [10]}]),
        (RIDGE, GRID),
        (make_pipeline(RBFSampler(), LOGISTIC), {"rbfsampler__gamma": [0.1, 1.0]}),
    ],
)
def test_other_grids_are_refused_before_the_data(model, grid):
    with pytest.raises(CertificateError, match="'data_independent'.*alpha only.*'optimal_risk'"):
        search("data_independent", model, grid).fit(Untouchable(), Untouchable())


class Member:
    def __init__(self, alpha, model=LOGISTIC):
        self.ruled, self.model = alpha, clone(model).set_params(alpha=alpha)

    but_for_ruled = ()

    def shape(self, n):
        return PublicShape(n, 5)


@pytest.mark.parametrize("model", [LOGISTIC, SVC])
def test_of_alphas_that_cost_the_same_the_smallest_is_taken(model):
    def best(*alphas):
        members = [Member(alpha, model) for alpha in alphas]
        return best_by_rule(SimpleNamespace(candidates=members, n_samples=10**5), 1.0)

    alphas = [0.3, 0.1 + 0.2, 0.3, 1e-3, 0.1, 0.1, 0.1 * (1 + 1e-12), 1, 1.0, np.float32(0.1)]
    assert best(*alphas) == [3] and best(*alphas[:3], 1, 1.0) == [0]
    assert best(np.finfo(np.float32).max, 1e39, 1e-3) == [2]
    assert best(0.1 * (1 + 1e-12), 0.1) == [1]


@pytest.mark.parametrize("odd", [1e-300, -1.0, float("nan"), True, "0.1"])
def test_one_alpha_that_is_refused_refuses_the_grid(odd):
    grid = {"alpha": [0.01, odd, *np.geomspace(1e-3, 1, 20).tolist()]}
    model = clone(LOGISTIC).set_params(perturbation="output")
    with pytest.raises((ValueError, TypeError), match="alpha"):
        search("data_independent", model, grid).fit(Untouchable(), Untouchable())

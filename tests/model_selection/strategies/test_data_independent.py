from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

from dpselect import CertificateError, DPHuberRegressor, DPLogisticRegression, DPPoissonRegressor
from dpselect.model_selection.strategies.data_independent import AlphaCosts, apart, least_cost
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


def looked_at(costs, near):
    """Return what the search for the least cost finds, and what it looked at."""
    seen = set()

    def look(i):
        seen.add(i)
        return costs[i]

    return least_cost(len(costs), look, near), seen


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    "model",
    [
        LOGISTIC,
        SVC,
        DPHuberRegressor(target_range=(-1, 1)),
        DPPoissonRegressor(target_bound=5.0),
    ],
)
def test_few_calibrations_find_what_all_would(model, delta, perturbation, persons):
    model = clone(model).set_params(delta=delta, perturbation=perturbation)
    # the curvature of a person's Huber loss is counted in steps
    smooth = 1 + (1e-2 if persons and isinstance(model, DPHuberRegressor) else 1e-10)
    alphas = np.geomspace(1e-3, 10, 40).tolist()
    for n, epsilon in ((20, 3.0), (3_000, 0.1), (10**6, 1.0)):
        shape = PublicShape(n, 5, 1, persons)
        parts = [
            model.set_params(alpha=alpha).calibration(shape, epsilon).regularisation_parts()
            for alpha in alphas
        ]
        costs = np.sum(parts, axis=1)
        best = np.argmin(costs)
        # they have one valley
        assert (costs[1 : best + 1] <= smooth * costs[:best]).all()
        assert (smooth * costs[best + 1 :] >= costs[best:-1]).all()
        for near in (0, best, 20, 40):
            found, _ = looked_at(costs, near)
            assert costs[found] <= smooth * costs[best]
        # as a search has them: one calibration, and what follows from it
        first = model.set_params(alpha=min(alphas)).calibration(shape, epsilon)
        assert [first.with_alpha(alpha).regularisation_parts() for alpha in alphas] == parts


def test_the_least_of_any_costs_with_one_valley_is_found():
    rng = np.random.default_rng(0)
    for _ in range(500):
        # whole numbers, so that many that fall are equal
        falls = np.cumsum(rng.integers(0, 3, size=rng.integers(0, 40)))[::-1] + 1
        rises = np.cumsum(rng.integers(1, 3, size=rng.integers(1, 40)))
        costs = np.concatenate([falls, rises + (falls[-1] if len(falls) else 0)])
        found, seen = looked_at(costs, int(rng.integers(len(costs) + 1)))
        assert found == np.argmin(costs) and len(seen) <= 24


@pytest.mark.parametrize("alpha", [1e-3, 0.02, 0.9])
def test_of_many_alphas_few_are_calibrated(alpha):
    alphas = np.geomspace(1e-4, 1, 200)
    costs = alpha / alphas + alphas / alpha
    best = np.argmin(costs)
    for near, most in ((best, 3), (best + 1, 4), (best + 20, 18), (0, 26), (199, 26)):
        found, seen = looked_at(costs, near)
        assert found == best and len(seen) <= most


class Member:
    def __init__(self, alpha, model=LOGISTIC):
        self.alpha, self.model = alpha, clone(model).set_params(alpha=alpha)

    def shape(self, n):
        return PublicShape(n, 5)


@pytest.mark.parametrize("model", [LOGISTIC, SVC])
def test_alphas_that_are_nearly_equal_do_not_mislead(model):
    """Where costs rise, nearly equal alphas cost the same, as where costs are level."""
    alphas = [0.3, 0.1 + 0.2, 0.3, 1e-3, 0.1, 0.1, 0.1 * (1 + 1e-12), 1, 1.0, np.float32(0.1)]
    members = [Member(alpha, model) for alpha in alphas]
    problem = SimpleNamespace(candidates=members, n_samples=10**5)
    assert AlphaCosts(problem, list(range(len(alphas))), 1.0).least() == 3
    assert AlphaCosts(problem, [0, 1, 2, 7, 8], 1.0).least() == 0
    members[:] = [Member(alpha, model) for alpha in (np.finfo(np.float32).max, 1e39, 1e-3)]
    assert AlphaCosts(problem, [0, 1, 2], 1.0).least() == 2
    assert apart(sorted({*alphas})) == [1e-3, 0.1, 0.3, 1]


@pytest.mark.parametrize("odd", [1e-300, -1.0, float("nan"), True, "0.1"])
def test_one_alpha_that_is_refused_refuses_the_grid(odd):
    grid = {"alpha": [0.01, odd, *np.geomspace(1e-3, 1, 20).tolist()]}
    model = clone(LOGISTIC).set_params(perturbation="output")
    with pytest.raises((ValueError, TypeError), match="alpha"):
        search("data_independent", model, grid).fit(Untouchable(), Untouchable())


def test_a_long_grid_costs_little_more_than_a_short_one(monkeypatch):
    """What a model checks of its parameters is checked at both ends of the grid."""
    looked = []
    for name in ("calibration", "first_releases"):
        asked = getattr(DPLogisticRegression, name)
        monkeypatch.setattr(
            DPLogisticRegression,
            name,
            lambda *args, name=name, asked=asked: looked.append(name) or asked(*args),
        )

    def counts(k):
        looked.clear()
        search("auto", LOGISTIC, {"alpha": np.geomspace(1e-4, 1, k)}).fit(*records(300))
        return np.array([looked.count("calibration"), looked.count("first_releases")])

    assert counts(200).tolist() == counts(5).tolist()

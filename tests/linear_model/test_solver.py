import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.model_selection import KFold

from dpselect.linear_model import problems, solver, tolerance
from dpselect.linear_model.design import Design, Rows
from dpselect.linear_model.losses import (
    CappedLogisticLoss,
    HuberHingeLoss,
    LogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
)
from dpselect.linear_model.solver import minimise
from dpselect.linear_model.tolerance import attainable, guaranteed_steps
from dpselect.rows import Parts, in_part
from tests.trials import fitted, solved

from .tables import gradient_norms, problem


@pytest.mark.parametrize(
    "loss",
    [
        LogisticLoss(),
        HuberHingeLoss(),
        HuberHingeLoss(0.01),
        PoissonLoss(0.2),
        PoissonLoss(30.0),
        PseudoHuberLoss(5.0, 0.1),
        CappedLogisticLoss(0.6),
    ],
    ids=repr,
)
@pytest.mark.parametrize("R", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("n, d, k, K", [(1, 1, 1, 1), (5, 30, 4, 1), (500, 6, 40, 3)])
def test_reaches_the_tolerance(loss, R, n, d, k, K):
    p = problem(n, d, k, seed=n + d, K=K, R=R, loss=loss)
    t = np.linalg.norm(p["linear"], axis=0)
    tau = np.array([attainable(loss, np.sqrt(2) * R, *column, 1e-10) for column in zip(p["mu"], t)])
    W = minimise(loss=loss, tau=tau, **p)
    # twice: the test adds up the rows in another order
    assert (gradient_norms(p, loss, W) <= 2 * tau).all()


def test_agrees_with_a_generic_optimiser():
    p = problem(300, 3, 2, seed=0)
    p["mu"] = np.array([0.01, 0.3])
    W = minimise(loss=LogisticLoss(), tau=np.full(2, 1e-12), **p)
    A = np.hstack([p["design"].factor * p["design"].X, np.ones((300, 1))])
    y = p["targets"][:, 0]
    for k in range(2):

        def J(w, k=k):
            return np.logaddexp(0, -y * (A @ w)).mean() + p["mu"][k] / 2 * w @ w + p["linear"][:, k] @ w

        best = minimize(J, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
        np.testing.assert_allclose(W[:, k], best.x, atol=1e-5)
        assert J(W[:, k]) <= best.fun + 1e-12


def test_a_batch_equals_one_by_one(monkeypatch):
    p = problem(400, 5, 12, seed=2, K=3)
    tau = np.full(12, 1e-12)
    together = minimise(loss=LogisticLoss(), tau=tau, **p)
    bound = 2 * tau / p["mu"]
    for k in range(12):
        one = {**p, "which": p["which"][[k]], "mu": p["mu"][[k]], "linear": p["linear"][:, [k]]}
        alone = minimise(loss=LogisticLoss(), tau=tau[[k]], **one)[:, 0]
        assert np.linalg.norm(together[:, k] - alone) <= bound[k]
    # five at a time
    monkeypatch.setattr(solver, "GROUP_ELEMENTS", 5 * p["design"].n_columns ** 2)
    grouped = minimise(loss=LogisticLoss(), tau=tau, **p)
    assert (np.linalg.norm(together - grouped, axis=0) <= bound).all()


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(0.1)], ids=repr)
@pytest.mark.parametrize("n", [30, 5000])
def test_very_many_columns_equal_few(loss, n, monkeypatch):
    """Their curvatures are inverted all at once, on all rows and on a sample of them."""
    p, k = problem(n, 3, 200, seed=7, K=2), 200
    t = np.linalg.norm(p["linear"], axis=0)
    tau = np.array([attainable(loss, np.sqrt(2), *column, 1e-10) for column in zip(p["mu"], t)])
    made, many = [], problems.ManyFactors
    monkeypatch.setattr(problems, "ManyFactors", lambda *args: made.append(1) or many(*args))
    together = minimise(loss=loss, tau=tau, **p)
    assert made
    assert (gradient_norms(p, loss, together) <= 2 * tau).all()
    del made[:]
    monkeypatch.setattr(problems, "MANY", k)
    few = minimise(loss=loss, tau=tau, **p)
    assert not made
    assert (np.linalg.norm(together - few, axis=0) <= 2 * tau / p["mu"]).all()


@pytest.mark.parametrize("max_iter", [0, 1])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss()], ids=repr)
def test_the_last_resort_reaches_the_tolerance_too(loss, max_iter):
    p = problem(100, 3, 4, seed=3)
    p["mu"] = np.array([0.01, 0.05, 0.1, 1.0])
    tau = np.full(4, 1e-10)
    W = minimise(loss=loss, tau=tau, max_iter=max_iter, **p)
    assert (gradient_norms(p, loss, W) <= 2 * tau).all()


@pytest.mark.parametrize("known", [True, False])
def test_a_start_where_nothing_curves_takes_no_halving(known, monkeypatch):
    """At margins of 0 the hinge is straight. The broken twin goes as far as mu alone allows."""
    passes, gradients = [], problems.Problems.gradients
    monkeypatch.setattr(
        problems.Problems, "gradients", lambda *args: passes.append(1) or gradients(*args)
    )
    if not known:
        second = problems._Terms.second_derivatives
        monkeypatch.setattr(
            problems._Terms, "second_derivatives", lambda self, W, *args: second(self, W + 1e-300, *args)
        )
    p, loss = problem(400, 5, 1, seed=5), HuberHingeLoss()
    p["mu"], p["linear"] = np.array([1e-3]), 0.0 * p["linear"]
    W = minimise(loss=loss, tau=np.array([1e-10]), **p)
    assert gradient_norms(p, loss, W) <= 2e-10
    assert (len(passes) <= 12) == known


def test_cycling_start_does_not_trap_newton():
    # undamped Newton diverges here: a huge linear term throws the first step far out
    design = Design(np.array([[1.0], [-1.0]]), 1.0, None)
    p = dict(
        design=design,
        targets=np.array([[1], [1]], np.int8),
        which=np.array([0]),
        mu=np.array([1e-9]),
        linear=np.array([[0.49]]),
    )
    tau = np.array([1e-10])
    W = minimise(loss=LogisticLoss(), tau=tau, **p)
    u = np.array([1.0, -1.0]) * W[0, 0]
    gradient = (np.array([1.0, -1.0]) * LogisticLoss().derivative(u)).mean() + 1e-9 * W[0, 0] + 0.49
    assert abs(gradient) <= 2e-10


@pytest.mark.slow
@pytest.mark.parametrize("alpha, epsilon, norm", [(1e-8, 100.0, 5.0), (1e-5, 30.0, 10.0)])
def test_newton_suffices_far_out_where_losses_curve_in_narrow_strips(alpha, epsilon, norm, monkeypatch):
    """Weak regularisation and a large linear term: models of length 10^5, margins to match."""
    from dpselect import DPLogisticRegression

    def fall_back(*args):
        raise AssertionError("Newton's method was given up")

    monkeypatch.setattr(solver, "_last_resort", fall_back)
    X = np.random.default_rng(2).normal(size=(50, 4))
    models = [
        DPLogisticRegression(epsilon, alpha=alpha, data_norm=norm, classes=[0, 1], random_state=seed)
        for seed in range(100)
    ]
    for model in models:  # one by one: models that are solved together share their curvature
        fitted(model, X, X[:, 0] > 0)
    solved(models, X, X[:, 0] > 0)


def hinge_problem(n, d, J, loss, seed=1):
    """Few records a coefficient, weak regularisation: each part curves elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    mu = np.full((J, 1), 1e-6)
    R = np.sqrt(2)
    return dict(
        design=Design(X, 1.0, 1.0),
        which=np.array([0]),
        loss=loss,
        mu=mu,
        targets=np.where(X @ rng.normal(size=d) + 0.3 * rng.logistic(size=n) > 0, 1, -1)[:, None],
        linear=np.zeros((J, d + 1, 1)),
        tau=np.full((J, 1), attainable(loss, R, 1e-6, 0.0, 1e-10)),
        parts=None if J == 1 else Parts.from_splits(list(KFold(J).split(X)), X),
    )


@pytest.mark.parametrize(
    "n, d, J, loss",
    [
        (100, 100, 1, HuberHingeLoss()),
        (100, 100, 5, HuberHingeLoss()),
        (100, 100, 5, HuberHingeLoss(0.1)),
        (1000, 50, 1, HuberHingeLoss(0.01)),
    ],
    ids=repr,
)
def test_stragglers_are_solved_by_newtons_method(n, d, J, loss, monkeypatch):
    """Not by accelerated descent, which takes 10^5 passes here; and the sample needs neither."""

    def fall_back(*args):
        raise AssertionError("Newton's method was given up")

    monkeypatch.setattr(solver, "_last_resort", fall_back)
    p = hinge_problem(n, d, J, loss)
    W = minimise(**p)
    for j, w in enumerate(W):
        rows = slice(None) if J == 1 else in_part(p["parts"].train, j)
        part = {
            "design": Design(p["design"].X[rows], 1.0, 1.0),
            "targets": p["targets"][rows],
            "which": p["which"],
            "mu": p["mu"][j],
            "linear": p["linear"][j],
        }
        assert (gradient_norms(part, loss, w) <= 2 * p["tau"][j]).all()


def test_a_large_constant_hides_no_curvature(monkeypatch):
    def fall_back(*args):
        raise AssertionError("Newton's method was given up")

    monkeypatch.setattr(solver, "_last_resort", fall_back)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5)) / 3
    design = Design(X, 1.0, 1e7)
    p = dict(
        design=design,
        targets=np.where(X[:, :1] + X[:, 1:2] > 0, 1, -1),
        which=np.array([0]),
        mu=np.array([1e-3]),
        linear=np.zeros((6, 1)),
    )
    tau = np.array([attainable(LogisticLoss(), design.radius, 1e-3, 0.0, 1e-10)])
    W = minimise(loss=LogisticLoss(), tau=tau, **p)
    assert (gradient_norms(p, LogisticLoss(), W) <= 2 * tau).all()


def test_the_sample_has_no_last_resort(monkeypatch):
    """A start need not be exact, and the last resort takes as long on a sample."""
    sizes = []
    last_resort = solver._last_resort

    def seen(problems, *args):
        sizes.append(problems.design.n_rows)
        return last_resort(problems, *args)

    monkeypatch.setattr(solver, "_last_resort", seen)
    p = problem(1000, 3, 1, seed=3)
    p["mu"] = np.array([0.1])
    W = minimise(loss=LogisticLoss(), tau=np.array([1e-10]), max_iter=0, **p)
    assert sizes == [1000]
    assert (gradient_norms(p, LogisticLoss(), W) <= 2e-10).all()


def test_the_last_resort_in_small_units():
    """The squares of tolerances below 1e-162 are 0."""
    R = 1e-100
    p = problem(20, 2, 2, seed=5, R=R)
    p["mu"] = np.array([0.1, 1.0]) * R * R
    p["linear"] = p["linear"] * 0.0
    tau = np.full(2, 1e-10 * R)
    W = minimise(loss=LogisticLoss(), tau=tau, max_iter=0, **p)
    scaled = gradient_norms(p, LogisticLoss(), W) / R
    assert (scaled <= 2e-10).all()


@pytest.fixture
def guessing(monkeypatch):
    """Every problem counts as wide: no matrix of its curvature is made."""

    def refuse(*args):
        raise AssertionError("a curvature matrix was made")

    for module in (solver, tolerance):
        monkeypatch.setattr(module, "MAX_SQUARE", 0)
    monkeypatch.setattr(solver, "CHEAP", 0)
    monkeypatch.setattr(solver, "SMALL_SAMPLE_ROWS", 10)
    monkeypatch.setattr(Rows, "gram", refuse)
    monkeypatch.setattr(problems, "ManyFactors", refuse)


@pytest.mark.parametrize(
    "loss", [LogisticLoss(), HuberHingeLoss(), PoissonLoss(3.0), PseudoHuberLoss(5.0, 0.1)], ids=repr
)
@pytest.mark.parametrize("R", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("n, d, k, K", [(1, 1, 1, 1), (5, 30, 4, 1), (500, 6, 20, 3)])
def test_reaches_the_tolerance_without_curvature_matrices(loss, R, n, d, k, K, guessing):
    p = problem(n, d, k, seed=n + d, K=K, R=R, loss=loss)
    p["mu"] = np.maximum(p["mu"], 1e-3 * R * R)
    t = np.linalg.norm(p["linear"], axis=0)
    tau = np.array([attainable(loss, np.sqrt(2) * R, *column, 1e-10) for column in zip(p["mu"], t)])
    W = minimise(loss=loss, tau=tau, **p)
    assert (gradient_norms(p, loss, W) <= 2 * tau).all()


def test_parts_share_the_steps_of_a_sample(guessing):
    p = hinge_problem(800, 10, 5, LogisticLoss())
    p["mu"] = np.full((5, 1), 1e-3)
    for j, w in enumerate(minimise(**p)):
        rows = in_part(p["parts"].train, j)
        part = {
            "design": Design(p["design"].X[rows], 1.0, 1.0),
            "targets": p["targets"][rows],
            "which": p["which"],
            "mu": p["mu"][j],
            "linear": p["linear"][j],
        }
        assert (gradient_norms(part, p["loss"], w) <= 2 * p["tau"][j]).all()


@pytest.mark.parametrize("max_iter", [0, 1])
def test_without_curvature_matrices_accelerated_descent_is_the_last_resort(max_iter, guessing):
    p = problem(100, 3, 4, seed=3)
    p["mu"] = np.array([0.01, 0.05, 0.1, 1.0])
    tau = np.full(4, 1e-10)
    W = minimise(loss=LogisticLoss(), tau=tau, max_iter=max_iter, **p)
    assert (gradient_norms(p, LogisticLoss(), W) <= 2 * tau).all()
    assert guaranteed_steps(LogisticLoss(), 1.0, 1e-9, 0.0, 1e-10, 3)[1] == np.inf


def wide(n, d, container=np.asarray, seed=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.05)
    design = Design(container(X), 1.0, 1.0)
    mu = np.array([0.05, 0.2])
    return X, dict(
        design=design,
        targets=np.where(X[:, :1] + X[:, 1:2] > 0, 1, -1).astype(np.int8),
        which=np.zeros(2, dtype=int),
        mu=mu,
        tau=np.full(2, 1e-10),
        loss=LogisticLoss(),
        linear=0.01 * rng.normal(size=(d + 1, 2)),
        **more,
    )


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_wide_problem_takes_few_passes_and_little_memory(container, monkeypatch):
    """Not the 200 MB of a matrix of 5,000 x 5,000; nor the dense rows, if they are sparse."""
    asked, gradients = [], problems.Problems.gradients
    monkeypatch.setattr(
        problems.Problems, "gradients", lambda *args: asked.append(1) or gradients(*args)
    )
    X, p = wide(1000, 5000, container)
    tracemalloc.start()
    try:
        W = minimise(**p)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6 < X.nbytes
    assert len(asked) < 25
    dense = {**p, "design": Design(X, 1.0, 1.0)}
    tau = dense.pop("tau")
    assert (gradient_norms(dense, dense.pop("loss"), W) <= 2 * tau).all()


@pytest.mark.parametrize("forgotten", ["mean", "variance"])
def test_what_a_sample_tells_of_the_columns_is_worth_its_place(forgotten, monkeypatch):
    """Rows that are 0 or more, some columns much rarer than others, and a small mu."""
    asked, gradients = [], problems.Problems.gradients
    monkeypatch.setattr(
        problems.Problems, "gradients", lambda *args: asked.append(1) or gradients(*args)
    )
    n, d = 5000, 300
    rng = np.random.default_rng(3)
    X = (rng.random((n, d)) < 1 / np.arange(1, d + 1)).astype(float)
    p = dict(
        design=Design(sparse.csr_array(X), 3.0, 1.0),
        which=np.array([0]),
        loss=LogisticLoss(),
        targets=np.where(rng.random((n, 1)) < X[:, :1] * 0.6 + 0.2, 1, -1).astype(np.int8),
        mu=np.array([1e-2]),
        tau=np.array([1e-10]),
        linear=np.zeros((d + 1, 1)),
    )
    minimise(**p)
    good, kept = len(asked), problems.IndependentColumns.__init__

    def forgets(self, *args):
        kept(self, *args)
        if forgotten == "mean":
            self.mean = 0.0 * self.mean
        else:
            self.variance = np.full_like(self.variance, self.variance.mean())

    monkeypatch.setattr(problems.IndependentColumns, "__init__", forgets)
    del asked[:]
    minimise(**p)
    assert len(asked) > 1.2 * good


def directions(n_directions, n=8000, d=300):
    """Rows that vary most in a few directions, or alike in all; and a small mu."""
    rng = np.random.default_rng(5)
    X = (0.3 if n_directions else 1.0) * rng.normal(size=(n, d))
    X += rng.normal(size=(n, n_directions)) @ rng.normal(size=(n_directions, d))
    X /= np.linalg.norm(X, axis=1).max()
    scores = X @ rng.normal(size=(d, 1))
    return dict(
        design=Design(X, 1.0, 1.0),
        which=np.array([0]),
        loss=LogisticLoss(),
        targets=np.where(scores + scores.std() * rng.normal(size=(n, 1)) > 0, 1, -1).astype(np.int8),
        mu=np.array([1e-4]),
        tau=np.array([1e-9]),
        linear=np.zeros((d + 1, 1)),
    )


@pytest.fixture
def counted(monkeypatch):
    """The rows of each pass for gradients, and of each for a curvature matrix."""
    passes = {"gradients": [], "_curvatures": []}

    def counts(name):
        kept = getattr(problems.Problems, name)

        def count(self, *args):
            passes[name].append(self.design.n_rows)
            return kept(self, *args)

        monkeypatch.setattr(problems.Problems, name, count)

    for name in passes:
        counts(name)
    return passes["gradients"], passes["_curvatures"]


def test_matrices_are_made_only_where_rows_vary_in_few_directions(counted):
    """What is made without need, or not made where it is needed, costs several times the passes."""
    gradients, curvatures = counted
    p = directions(0)
    minimise(**p)
    assert not curvatures
    assert gradients.count(8000) < 20

    gradients.clear()
    p = directions(5)
    W = minimise(**p)
    tau = p.pop("tau")
    assert (gradient_norms(p, p.pop("loss"), W) <= 2 * tau).all()
    assert curvatures
    assert max(curvatures) < 2000
    assert gradients.count(8000) < 15


@pytest.mark.parametrize("blind", ["sample", "all rows", "both"])
def test_both_the_sample_and_all_rows_tell_that_steps_are_slow(blind, counted, monkeypatch):
    """Each of them suffices, the sample with fewer passes; without both there are many."""
    gradients, curvatures = counted
    if blind != "all rows":
        monkeypatch.setattr(solver, "FEW_ON_SAMPLE", np.inf)
    if blind != "sample":
        monkeypatch.setattr(solver, "_is_slow", lambda *args: False)
    minimise(**directions(5))
    assert bool(curvatures) == (blind != "both")
    full = gradients.count(8000)
    assert full > 50 if blind == "both" else full < (15 if blind == "all rows" else 35)


def few_coefficients(scale, mu, n=20_000, d=20):
    """Rows of one length, the last column of which has entries smaller by `scale`."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d)) * np.geomspace(1, scale, d)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    labels = np.where(X @ rng.normal(size=(d, 1)) + 0.2 * rng.normal(size=(n, 1)) > 0, 1, -1)
    return dict(
        design=Design(X, 1.0, 1.0),
        which=np.array([0]),
        loss=LogisticLoss(),
        targets=labels.astype(np.int8),
        mu=np.array([mu]),
        tau=np.array([1e-9]),
        linear=np.zeros((d + 1, 1)),
    )


def test_no_matrix_is_made_for_the_last_few_steps(counted, monkeypatch):
    """The one of the sample serves to the end where that is near, and is renewed where it is far."""
    gradients, curvatures = counted

    def passes(problem):
        gradients.clear(), curvatures.clear()
        minimise(**problem)
        return gradients.count(20_000), curvatures.count(20_000)

    near, far = few_coefficients(1.0, 1e-2), few_coefficients(1e-3, 1e-6)
    few, matrices = passes(near)
    assert matrices == 0 and few < 10
    fewer, matrices = passes(far)
    assert matrices == 1 and fewer < 10

    monkeypatch.setattr(solver, "_steps_left", lambda *args: np.inf)
    assert passes(near)[1] == 1
    monkeypatch.setattr(solver, "_steps_left", lambda *args: 0.0)
    assert passes(far)[0] > fewer + 4


def test_each_step_over_few_rows_has_a_matrix_of_its_own(counted, monkeypatch):
    gradients, curvatures = counted
    problem = few_coefficients(1e-2, 1e-4, n=200, d=5)
    minimise(**problem)
    steps = len(gradients) - 1
    assert len(curvatures) == steps
    curvatures.clear()
    monkeypatch.setattr(solver, "TINY", 0)
    minimise(**problem)
    assert len(curvatures) < steps


def test_what_a_matrix_costs_is_public():
    rng = np.random.default_rng(0)
    empty, full = np.zeros((2000, 600)), rng.normal(size=(2000, 600))
    assert solver._cost(Design(empty, 1.0, None)) == solver._cost(Design(full, 1.0, None)) < np.inf
    # sparse or not is public, and how many entries are stored is not; of so many columns there is none
    for X in (sparse.csr_array(empty), sparse.csr_array(full), np.zeros((9, 2000))):
        assert solver._cost(Design(X, 1.0, None)) == np.inf

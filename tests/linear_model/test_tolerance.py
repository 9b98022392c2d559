"""The solver ends within a public number of passes, and its tolerance is reached, on any records."""

import math
import re

import numpy as np
import pytest

from dpselect import DPLinearSVC, DPLogisticRegression
from dpselect.linear_model import solver, tolerance
from dpselect.linear_model.calibration import calibrate, public_alpha
from dpselect.linear_model.design import Design, design_and_targets
from dpselect.linear_model.losses import (
    HuberHingeLoss,
    LogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
)
from dpselect.linear_model.problems import Problems
from dpselect.linear_model.solver import minimise
from dpselect.linear_model.tolerance import MAX_STEPS, attainable, guaranteed_steps
from tests.trials import fitted, scales_of, trial

from .tables import targets_for

INF = float("inf")
LOSSES = [LogisticLoss(), HuberHingeLoss(0.1), PoissonLoss(3.0), PseudoHuberLoss(0.5, 2.0)]
R = 100.0  # so that R and its square differ


def adversarial(kind, d, loss, seed=0):
    """Rows all along one axis, each along some axis, of very different columns, or of no kind."""
    rng = np.random.default_rng(seed)
    A = {
        "one": lambda: np.tile(np.eye(d)[:1], (20, 1)),
        "some": lambda: np.eye(d)[rng.integers(d, size=20)],
        "spread": lambda: rng.normal(size=(20, d)) * 10 ** rng.uniform(-4, 0, d),
        "none": lambda: rng.normal(size=(20, d)),
    }[kind]()
    A = R * A / np.linalg.norm(A, axis=1, keepdims=True)
    b = rng.normal(size=(d, 1))
    mu, b = R * R * 1e-3, R / 2 * b / np.linalg.norm(b)
    signs = rng.choice(np.array([-1, 1], np.int8), (20, 1))
    targets = targets_for(loss, signs)
    return Problems(Design(A, R, None), targets, np.array([0]), loss, np.array([[mu]]), b[None])


def run(method, problems, tau, steps):
    """Return the gradient that a method leaves, over tau, and how many it asked for."""
    asked, gradients = [], problems.gradients
    problems.gradients = lambda W, columns: asked.append(1) or gradients(W, columns)
    d = problems.linear.shape[0]
    radius = [float(problems.longest[0]) + tau / R**2] if method is solver._ellipsoids else []
    w = method(problems, 0, np.zeros(d), *radius, tau, int(steps))
    return np.linalg.norm(gradients(w[:, None], np.array([0]))) / tau, len(asked)


METHODS = [solver._accelerated_descent, solver._ellipsoids]
CASES = [
    (kind, d, loss) for kind in ("one", "some", "spread", "none") for d in (1, 2, 5) for loss in LOSSES
]


def left_over(number, share=1.0, radius=R):
    """Return what one of the two methods leaves over tau on each case, and the share of steps."""
    tau = 1e-8 * R
    for case in CASES:
        p = adversarial(*case)
        bounds = guaranteed_steps(case[2], radius, R * R * 1e-3, R / 2, tau, case[1])
        steps = math.ceil(share * bounds[number])
        rest, asked = run(METHODS[number], p, tau, steps)
        assert asked <= steps
        yield rest, asked / steps


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_the_guaranteed_steps_suffice(number):
    rests, shares = zip(*left_over(number))
    assert max(rests) <= 1 + 1e-6
    # and not many fewer would
    assert max(shares) > (0.4, 0.9)[number]


@pytest.mark.slow
@pytest.mark.parametrize("number, share", [(0, 0.4), (1, 0.6)])
def test_fewer_steps_are_caught(number, share):
    assert max(rest for rest, _ in left_over(number, share)) > 1.5


def test_the_norm_in_place_of_its_square_is_caught():
    """The twin's curvature is c R + mu."""
    assert max(rest for rest, _ in left_over(0, radius=math.sqrt(R))) > 1.5


@pytest.mark.slow
def test_ellipsoids_that_are_too_thin_are_caught(monkeypatch):
    """The twin loses the minimiser: the half of the ball sticks out of its cover."""
    monkeypatch.setattr(solver, "ellipsoid_factors", lambda d: (d / (d + 2), 1.0))
    assert max(rest for rest, _ in left_over(1)) > 1.5


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_ellipsoid_factors(d):
    along, across = tolerance.ellipsoid_factors(d)
    points = np.random.default_rng(0).normal(size=(10_000, d))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points[:, 0] = -np.abs(points[:, 0])  # the half that is kept, all of whose edge is on the cover
    centred = points + np.eye(d)[0] / (d + 1)
    inside = (centred[:, 0] / along) ** 2 + (centred[:, 1:] ** 2).sum(axis=1) / across**2
    assert inside.max() <= 1 + 1e-12
    ends = np.eye(d)[[0, -1]] * [[-1.0], [1.0]] if d > 1 else -np.eye(1)
    ends = ends + np.eye(d)[0] / (d + 1)
    edge = (ends[:, 0] / along) ** 2 + (ends[:, 1:] ** 2).sum(axis=1) / across**2
    np.testing.assert_allclose(edge, 1.0)


def draw(k):
    """Return one case of a wide random search: a classifier and its records."""
    rng = np.random.default_rng([11, k])
    n, d = int(rng.choice([1, 2, 3, 10, 100, 500])), int(rng.choice([1, 2, 5, 30]))
    data_norm = float(10.0 ** rng.choice([-8, -3, 0, 0, 0, 2, 6]))
    constant = float(10.0 ** rng.choice([-6, -2, 0, 0, 3, 7, 8]))
    intercept = bool(rng.integers(2))
    alpha = (
        "auto"
        if rng.integers(2)
        else float(np.hypot(data_norm, constant * intercept) ** 2 * 10.0 ** rng.integers(-14, 3))
    )
    X = rng.normal(size=(n, d)) * data_norm * 10.0 ** rng.choice([-12, -3, 0, 3, 100])
    kind = rng.integers(4)
    if kind == 1:
        X *= 10.0 ** rng.integers(-20, 5, size=(1, d))
    elif kind == 2:
        X = np.tile(X[:1], (n, 1)) * rng.choice([-1, 1], (n, 1))
    elif kind == 3:
        X *= rng.random((n, d)) < 0.05
    hinge = {"huber_width": float(10.0 ** rng.choice([-4, -2, -0.3, 1]))}
    largest = {"max_derivative": [None, "auto", 0.75][k % 3]}
    cls, extra = [(DPLogisticRegression, largest), (DPLinearSVC, hinge)][rng.integers(2)]
    model = cls(
        float(10.0 ** rng.choice([-6, -3, -1, 0, 1, 3, 6])),
        alpha=alpha,
        data_norm=data_norm,
        fit_intercept=intercept,
        intercept_scaling=constant,
        classes=[0, 1],
        random_state=k,
        perturbation=str(rng.choice(["objective", "output"])),
        **extra,
    )
    return model, X, rng.integers(0, 2, n)


def exact_residual(design, signs, loss, mu, linear, w):
    """Return the length of the gradient in extended precision."""
    A = np.asarray(design.X, np.longdouble) * design.factor
    if design.constant is not None:
        A = np.hstack([A, np.full((len(A), 1), np.longdouble(design.constant))])
    w = w.astype(np.longdouble)
    u, y = (A @ w) * signs[:, 0], signs[:, 0]
    if isinstance(loss, LogisticLoss):
        with np.errstate(over="ignore"):
            derivatives = np.maximum(-1 / (1 + np.exp(u)), -np.longdouble(loss.lipschitz))
    else:
        h = np.longdouble(loss.width)
        derivatives = -np.clip(1 + h - u, 0, 2 * h) / (2 * h)
    G = A.T @ (derivatives * y) / len(A) + mu * w + linear[:, 0]
    return float(np.sqrt((G * G).sum()))


def passes_and_residuals(monkeypatch, cases, max_iter, looser=1.0, a_step=153, most=2 * MAX_STEPS):
    """Solve random cases; return passes over their public bound, and residuals over tau.

    Cases that may need more than `most` steps in the end are left out.
    """
    asked, sums = [], Design.sums

    def counted(*args, **kwargs):
        total = sums(*args, **kwargs)
        return lambda *args, **kwargs: asked.append(1) or total(*args, **kwargs)

    monkeypatch.setattr(Design, "sums", counted)
    found, refused = [], 0
    for k in cases:
        model, X, y = draw(k)
        try:
            s = scales_of(model, *X.shape)
        except ValueError as error:
            assert "passes over the records" in str(error)
            refused += 1
            continue
        design, signs = design_and_targets(model.problem(), trial(model).records(X, y))
        loss, linear = model.problem().loss, s.linear_scale * model.standard_noise(X.shape[1])[0].T
        d, t = len(linear), float(np.linalg.norm(linear))
        steps = min(guaranteed_steps(loss, design.radius, s.mu, t, s.tau, d))
        assert steps <= 2 * MAX_STEPS
        if steps > most:
            continue
        del asked[:]
        W = minimise(
            design,
            signs,
            np.array([0]),
            loss,
            mu=np.array([s.mu]),
            linear=linear,
            tau=np.array([looser * s.tau]),
            max_iter=max_iter,
        )
        rest = exact_residual(design, signs, loss, s.mu, linear, W[:, 0])
        found.append((len(asked) / (7 + a_step * max_iter + steps), rest / s.tau))
    return *np.array(found).T, refused


@pytest.mark.slow
def test_random_search_in_extended_precision(monkeypatch):
    passes, residuals, refused = passes_and_residuals(monkeypatch, range(250), max_iter=100)
    assert residuals.max() <= 1.01 and passes.max() <= 1
    assert refused < 25  # only what is far out, see below


@pytest.mark.slow
@pytest.mark.parametrize("max_iter", [0, 20])
def test_random_search_without_curvature_matrices(max_iter, monkeypatch):
    for module in (solver, tolerance):
        monkeypatch.setattr(module, "MAX_SQUARE", 0)
    monkeypatch.setattr(solver, "CHEAP", 0)
    passes, residuals, _ = passes_and_residuals(monkeypatch, range(250), max_iter, a_step=595, most=2000)
    assert len(passes) > 40
    assert residuals.max() <= 1.01 and passes.max() <= 1


def test_a_solver_that_stops_too_early_is_caught(monkeypatch):
    _, residuals, _ = passes_and_residuals(monkeypatch, range(60), max_iter=100, looser=100.0)
    assert residuals.max() > 2


@pytest.mark.slow
def test_random_search_for_the_last_resort(monkeypatch):
    # (with more columns it takes up to MAX_STEPS)
    few = [k for k in range(400) if draw(k)[1].shape[1] <= 5][:100]
    passes, residuals, _ = passes_and_residuals(monkeypatch, few, max_iter=0)
    assert residuals.max() <= 1.01
    assert 0.5 < passes.max() <= 1


@pytest.mark.parametrize("constant", [1e3, 1e5, 1e7, 1e8])
@pytest.mark.parametrize("width", [0.5, 1e-4])
@pytest.mark.parametrize("alike", [False, True])
def test_problems_with_a_large_constant_or_a_narrow_hinge_do_not_crawl(
    constant, width, alike, monkeypatch
):
    """These took 10^4 passes of halved steps, and then 10^6 and more of accelerated descent."""
    asked, gradients = [], Problems.gradients
    monkeypatch.setattr(Problems, "gradients", lambda *args: asked.append(1) or gradients(*args))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)) / 2
    y = X[:, 0] + 0.3 * rng.logistic(size=100) > 0
    if alike:
        X = X[:1] * rng.choice([-1, 1], (100, 1))
    model = DPLinearSVC(
        1.0,
        alpha=1e-3,
        perturbation="output",
        intercept_scaling=constant,
        huber_width=width,
        classes=[False, True],
        random_state=0,
    )
    fitted(model, X, y)
    assert len(asked) < 1000  # (at most 690 for 12 such tables)


def refused(epsilon=1.0, n=1000, d=300, **parameters):
    with pytest.raises(ValueError, match="passes over the records") as caught:
        scales_of(DPLinearSVC(epsilon, perturbation="output", **parameters), n, d)
    return str(caught.value)


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": 1e-9},
        {"huber_width": 1e-9},
        {"intercept_scaling": 1e5, "alpha": 1e-3},
        {"alpha": 1e-12, "data_norm": 1e3},
        {"alpha": 1e-30},
    ],
    ids=str,
)
def test_what_the_refusal_says_to_write_is_taken(parameters):
    message = refused(**parameters)
    for name in ("alpha", "huber_width", "intercept_scaling", "data_norm"):
        assert name in message
    enough = float(re.search(r"write alpha=(\S+?),", message)[1])
    alpha = {**parameters, "alpha": enough}
    scales_of(DPLinearSVC(perturbation="output", **alpha), 1000, 300)


def test_the_refusal_is_the_same_whatever_the_records():
    rng = np.random.default_rng(0)
    easy, hard = np.zeros((50, 200)), rng.normal(size=(50, 200))
    messages = set()
    for X in (easy, hard):
        model = DPLinearSVC(perturbation="output", alpha=1e-10, classes=[0, 1])
        with pytest.raises(ValueError, match="passes over the records") as caught:
            model.fit(X, np.arange(50) % 2)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_nothing_is_refused_without_privacy(monkeypatch):
    """No promise is made then; but the fit ends."""
    monkeypatch.setattr(solver, "MAX_STEPS", 10)
    asked = []
    gradients = Problems.gradients
    monkeypatch.setattr(Problems, "gradients", lambda *args: asked.append(1) or gradients(*args))
    X = np.random.default_rng(0).normal(size=(50, 200))
    model = DPLinearSVC(INF, alpha=1e-10, max_iter=0, classes=[0, 1]).fit(X, np.arange(50) % 2)
    assert np.isfinite(model.coef_).all() and len(asked) <= 2 + 20


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss()], ids=repr)
@pytest.mark.parametrize("perturbation", ["output", "objective"])
def test_the_public_choice_of_alpha_is_never_refused(loss, perturbation):
    for n in np.geomspace(1, 1e8, 9).astype(int):
        for d in (1, 2, 10, 30, 100, 1000, 10_000):
            for epsilon in (1e-3, 0.1, 1.0, 10.0):
                alpha = public_alpha(loss, perturbation, n, d, math.sqrt(2), epsilon)
                scales = calibrate(
                    perturbation,
                    loss,
                    n_samples=n,
                    dimension=d,
                    radius=math.sqrt(2),
                    alpha=alpha,
                    epsilon=epsilon,
                    tol=1e-10,
                )
                assert scales.mu >= alpha


def test_steps_are_finite_or_infinite_and_never_wrong():
    assert guaranteed_steps(HuberHingeLoss(1e-4), 1e150, 1e-150, 0.0, 1.0, 3) == (INF, INF)
    few = guaranteed_steps(LogisticLoss(), 1.0, 1e6, 0.0, 2.0, 3)
    assert few == (1.0, min(few[1], 10.0))
    loss = LogisticLoss()
    tau = attainable(loss, 1e-100, 1e-202, 0.0, 1e-10)
    units = guaranteed_steps(loss, 1.0, 1e-2, 0.0, attainable(loss, 1.0, 1e-2, 0.0, 1e-10), 5)
    assert guaranteed_steps(loss, 1e-100, 1e-202, 0.0, tau, 5) == units

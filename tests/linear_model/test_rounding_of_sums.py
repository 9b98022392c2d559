"""What sums over rows round is hidden, too, where the solver works harder than by its default."""

import math

import numpy as np
import pytest
from scipy import sparse

from dpselect import DPLogisticRegression
from dpselect.linear_model.design import Design
from dpselect.linear_model.losses import LogisticLoss
from dpselect.linear_model.problems import Problems
from dpselect.linear_model.solver import minimise
from dpselect.linear_model.tolerance import FINEST
from dpselect.metrics import get_score
from dpselect.records.public_shape import PublicShape

N = 2**18


def with_tolerance(tol, **params):
    return DPLogisticRegression(1.0, alpha=10.0, tol=tol, fit_intercept=False, classes=[0, 1], **params)


def hidden(model, n, p):
    """Return the gradient norm that noise hides, from what was spent on the noise in the objective."""
    calibration = model.calibration(PublicShape(n, p))
    s, problem = calibration.scales, calibration.problem
    spent = 2 * problem.loss.lipschitz * problem.radius / (n * s.linear_scale)
    if model.largest_derivative < 1:  # curvature has a price of its own
        spent += math.log1p(problem.loss.curvature * problem.radius**2 / (n * s.mu))
    return (s.output_scale * (model.epsilon - spent) - s.rounding) * s.mu / 2


@pytest.mark.parametrize("tol", [1e-12, 1e-15])
@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("max_derivative", [None, "auto", 0.75])
def test_noise_pays_for_rounding_of_sums_at_any_tolerance(max_derivative, tol, perturbation):
    model = with_tolerance(tol, perturbation=perturbation, max_derivative=max_derivative)
    s, L = model.calibration(PublicShape(N, 1)).scales, model.largest_derivative
    assert s.tau >= s.solved + FINEST * (L + s.linear_scale)
    if perturbation == "objective":
        assert hidden(model, N, 1) == pytest.approx(s.tau, rel=1e-6)
    else:
        assert s.output_scale >= (2 * L / N + 2 * s.tau) / s.mu


@pytest.mark.slow
@pytest.mark.parametrize("tol", [1e-12, 1e-13])
def test_the_true_gradient_is_hidden_where_all_rows_are_alike(tol):
    s, v, found = (
        with_tolerance(tol, max_derivative=None).calibration(PublicShape(N, 1)).scales,
        0.93,
        [],
    )
    for b in np.random.default_rng(0).normal(size=10) * s.linear_scale:
        design = Design(sparse.csr_array(np.full((N, 1), v)), 1.0, None)
        w = minimise(
            design,
            np.ones((N, 1)),
            np.array([0]),
            LogisticLoss(),
            np.array([s.mu]),
            np.array([[b]]),
            np.array([s.solved]),
        )
        x, w = np.longdouble(v), np.longdouble(w[0, 0])
        found.append(abs(float(-x / (1 + np.exp(x * w)) + np.longdouble(s.mu) * w + np.longdouble(b))))
    assert max(found) <= s.tau
    # what was computed hides less: the rounding is there
    assert max(found) > s.solved


def test_sums_over_sparse_rows_of_many_columns_round_as_little():
    n, p, v, worst = 2**20, 2**18, 0.9, 0.0
    X = sparse.csr_array((np.full(n, v), np.zeros(n, np.int32), np.arange(n + 1)), shape=(n, p))
    problems = Problems(
        Design(X, 1.0, None),
        np.ones((n, 1)),
        np.array([0]),
        LogisticLoss(),
        np.array([[1e-30]]),
        np.zeros((1, p, 1)),
    )
    for u in -np.random.default_rng(0).uniform(2, 6, size=5):
        w = np.zeros((p, 1))
        w[0] = u / v
        exact = -np.longdouble(v) / (1 + np.exp(np.longdouble(v) * np.longdouble(w[0, 0])))
        worst = max(worst, float(abs(problems.gradients(w, np.array([0]))[0, 0] - exact)))
    assert worst <= FINEST


@pytest.mark.parametrize("max_derivative", [None, "auto", 0.75])
def test_a_certificate_counts_what_the_noise_hides(max_derivative):
    model = DPLogisticRegression(3.0, alpha=1e-3, fit_intercept=False, max_derivative=max_derivative)
    calibration, score = model.calibration(PublicShape(10**6, 3)), get_score("ramp")
    assert calibration.scales.tau > calibration.scales.solved
    apart = 2 * hidden(model, 10**6, 3) / calibration.scales.mu * calibration.problem.radius
    residual = calibration.certificate(score, np.zeros((2, 1, 3))).residual
    assert residual >= score.lipschitz * apart * (1 - 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("persons", [False, True])
def test_an_event_at_another_norm_is_no_less(persons):
    model = DPLogisticRegression(1.0, classes=[0, 1, 2], max_derivative=0.6, delta=1e-6, norm="l2")
    for R in np.geomspace(0.1, 1000, 5):
        shape = PublicShape(10**5, 30, 3, persons)
        calibration = model.set_params(data_norm=R).calibration(shape)
        assert calibration.event(learned=True).mu >= calibration.event().mu * (1 - 1e-12)

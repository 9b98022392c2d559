"""The law of released classifiers on neighbouring data sets, sampled.

The bound of the audit must stay under the claimed epsilon, and go over it for twins that
are deliberately broken. n = 10 records, epsilon = 1.
"""

import dataclasses
import math

import numpy as np
import pytest

from dpselect import DPLinearSVC, DPLogisticRegression
from dpselect.linear_model.solver import minimise
from dpselect.noise import as_generator, spherical_laplace
from tests.trials import scales_of

from .audit import OUTSIDE, loss_lower_bound

N = 200_000
n = 10


def sample(model, scales, X, y, size, seed):
    """Released coefficients (size, d) of `size` fits that differ in their noise."""
    problem = model.problem()
    noise = model._standard_noise(as_generator(seed), X.shape[1], size, model.epsilon)
    W = minimise(
        problem.design(X),
        y[:, None],
        np.zeros(size, dtype=int),
        problem.loss,
        mu=np.full(size, scales.mu),
        linear=scales.linear_scale * noise[0].T,
        tau=np.full(size, scales.tau),
    )
    return W.T + scales.output_scale * noise[1]


def neighbours(R, d):
    """Pairs of data sets that differ in record 0; signed rows z = y x with l2 norm at most R."""
    z, zero = np.eye(d)[-1] * R, np.zeros(d)
    rest = np.zeros((n - 1, d))
    pairs = [(z, zero, rest), (z, -z, rest)]
    for first, second, others in pairs:
        yield np.vstack([[first], others]), np.vstack([[second], others])


def audit(model, scales, R, d, size=N):
    worst = -np.inf
    for D, E in neighbours(R, d):
        y = np.ones(n)
        w = sample(model, scales, D, y, size, seed=1)
        w_neighbour = sample(model, scales, E, y, size, seed=2)
        worst = max(worst, loss_lower_bound(w[:, -1], w_neighbour[:, -1]))
        if d == 2:
            # record 0 moves the second coordinate; its effect is largest near the axis
            for share in (0.2, 0.4):
                near = np.quantile(np.abs(w[: size // 2, 0]), share)
                worst = max(
                    worst,
                    loss_lower_bound(
                        *(np.where(np.abs(v[:, 0]) < near, v[:, 1], OUTSIDE) for v in (w, w_neighbour))
                    ),
                )
    return worst


def model_for(perturbation, R, d, classifier=DPLogisticRegression):
    # output noise is attacked best where the regularisation keeps all margins small, the
    # calibration of objective noise where it needs extra regularisation
    alpha = {"objective": 1e-4, "output": 0.5}[perturbation] * R**2
    return classifier(
        epsilon=1.0,
        alpha=alpha,
        perturbation=perturbation,
        data_norm=R,
        fit_intercept=False,
        classes=[-1, 1],
    )


@pytest.mark.slow
@pytest.mark.parametrize("classifier, least", [(DPLogisticRegression, 0.25), (DPLinearSVC, 0.6)])
@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("d, R", [(1, 100.0), (2, 1.0)])
def test_loss_stays_under_the_claim(classifier, least, perturbation, R, d):
    model = model_for(perturbation, R, d, classifier)
    assert least < audit(model, scales_of(model, n, d), R, d) <= 1.0


# the derivatives of the logistic loss on two neighbours add up to about 1, not 2, near w = 0: its
# noise can be halved before these data sets show it, and a fifth of it is a fair test
@pytest.mark.slow
@pytest.mark.parametrize("classifier, factor", [(DPLogisticRegression, 0.2), (DPLinearSVC, 0.5)])
@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("d", [1, 2])
def test_too_little_noise_is_caught(classifier, factor, perturbation, d):
    R = 10.0
    model = model_for(perturbation, R, d, classifier)
    right = scales_of(model, n, d)
    broken = dataclasses.replace(
        right, linear_scale=factor * right.linear_scale, output_scale=factor * right.output_scale
    )
    assert audit(model, broken, R, d) > 1.0


def test_the_sampler_is_the_estimator():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 2)), np.repeat([-1, 1], 5)
    for perturbation in ("objective", "output"):
        model = model_for(perturbation, 1.0, 2).set_params(random_state=7)
        with pytest.warns(match="seed"):
            model.fit(X, y)
        s = scales_of(model, n, 2)
        w = sample(model, s, X, y, 1, seed=7)
        # what is released lies on a grid
        np.testing.assert_allclose(model.coef_, w, rtol=1e-9, atol=s.step)


@pytest.mark.slow
def test_an_intercept_without_penalty_is_caught():
    """Output perturbation whose intercept is not regularised: one label decides it.

    All records are x = 0, so the model is its intercept. On ten positive labels an
    intercept without penalty is infinite, and no noise hides that; on nine it is log 9. With
    the penalty the two are close.
    """
    y, y_neighbour = np.ones(n), np.concatenate([[-1.0], np.ones(n - 1)])
    model = DPLogisticRegression(epsilon=1.0, alpha=0.1, perturbation="output", classes=[-1, 1])
    scales = scales_of(model, n, 1)
    X = np.zeros((n, 1))
    right = [sample(model, scales, X, labels, N, seed) for seed, labels in enumerate((y, y_neighbour))]
    assert loss_lower_bound(right[0][:, 1], right[1][:, 1]) <= 1.0

    noise = scales.output_scale * spherical_laplace(as_generator(3), 2 * N, 2)[:, 1]
    solver_limit = 40.0  # where log(1 + exp(-b)) rounds to 0
    broken = [solver_limit + noise[:N], math.log(n - 1) + noise[N:]]
    assert loss_lower_bound(*broken) > 1.0

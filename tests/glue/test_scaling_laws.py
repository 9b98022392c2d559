"""Units change nothing: weights of all records and the penalty times W, and K problems for K times one.

A mean loss with weights up to W and the penalty W alpha is W times that with weights up to 1 and alpha.
So the model is the same, and so is all that is stated, whatever the loss, the noise, and whose rows.
K one-vs-rest problems with the noise of one each lose K times what this one does.
"""

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    SeededNoiseWarning,
    coef_interval,
)
from dpselect.accounting.gaussian import gaussian_mu
from dpselect.linear_model import calibration, gaussian_noise
from dpselect.linear_model.calibration import Perturbation
from dpselect.linear_model.gaussian_noise import RESIDUAL_FRACTION, gaussian_event, gaussian_sharpness
from dpselect.linear_model.losses import WeightedLoss
from dpselect.records.public_shape import PublicShape, n_problems
from tests.marks import slow_but

from .covering import covering_array

N = 150
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3)) * [1.0, 0.5, 0.3]
SCORE = X @ [1.0, -0.7, 0.4] + 0.3 * RNG.normal(size=N)
WEIGHTS = np.where(np.arange(N) % 7 == 0, 5.0, RNG.uniform(0, 1.2, size=N))
GROUPS = RNG.permutation(np.repeat(np.arange(60), [1, 2, 3, 4, 2, 3] * 10)[:N])
KINDS = {
    "logistic": DPLogisticRegression(classes=[0, 1]),
    "steep": DPLogisticRegression(classes=[0, 1], max_derivative=None),
    "capped": DPLogisticRegression(classes=[0, 1], max_derivative=0.75),
    "three classes": DPLogisticRegression(classes=[0, 1, 2]),
    "three steep": DPLogisticRegression(classes=[0, 1, 2], max_derivative=None),
    "svc": DPLinearSVC(classes=[0, 1]),
    "four classes": DPLinearSVC(classes=[0, 1, 2, 3]),
    "poisson": DPPoissonRegressor(target_bound=4.0),
    "huber": DPHuberRegressor(target_range=(-1.0, 2.0)),
    "base rates": DPLogisticRegression(
        classes=[0, 1, 2], base_rate={0: 0.2, 1: 0.2, 2: 0.7}, fit_intercept=True
    ),
}


def targets_of(model):
    if isinstance(model, DPPoissonRegressor):
        return np.rint(np.exp(SCORE))
    if isinstance(model, DPHuberRegressor):
        return SCORE
    K = len(model.classes)
    return np.digitize(SCORE, np.quantile(SCORE, np.arange(1, K) / K))


# kinds, with and without persons and a delta, in both places, with alphas that are too small or not
AXES = {
    "name": [*KINDS],
    "where": ["objective", "output"],
    "delta": [0.0, 0.02],
    "persons": [False, True],
    "alpha": [0.05, 1e-4, "auto"],
}
CASES = [tuple(row.values()) for row in covering_array(AXES, lambda *pair: True)]


def fitted(name, where, delta, persons, alpha, W):
    """Return a model of weights up to W, of which alpha is W times as large."""
    model = clone(KINDS[name]).set_params(
        epsilon=0.6 if delta else 1.5,
        delta=delta,
        perturbation=where,
        max_sample_weight=W,
        alpha=alpha if alpha == "auto" else W * alpha,
        random_state=3,
        norm="l2",
    )
    params = {"groups": GROUPS} if persons else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return model.fit(X, targets_of(model), sample_weight=W * WEIGHTS, **params)


def check_weights(*case, W=8.0):
    one, other = fitted(*case, 1.0), fitted(*case, W)
    scale = np.abs(one.coef_).max()
    # the search for the noise of persons ends at a precision
    slack = 1e-3 if case[3] and case[2] else 1e-6
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=slack, atol=slack * scale)
    np.testing.assert_allclose(other.intercept_, one.intercept_, rtol=slack, atol=slack * scale)
    assert (other.privacy_.epsilon, other.privacy_.delta) == (one.privacy_.epsilon, one.privacy_.delta)
    events = [model.privacy_.event for model in (one, other)]
    assert type(events[0]) is type(events[1])
    if events[0] is not None:
        numbers = [list(vars(event).values()) for event in events]
        assert numbers[1] == pytest.approx(numbers[0], rel=max(slack, 1e-9))
    # (certificates tell how far scores move, and bounds of risks are W times as large)
    shape = PublicShape(N, 3, n_problems(one), case[3])
    scales = [model.calibration(shape).scales for model in (one, other)]
    for attribute, factor in (("mu", W), ("linear_scale", W), ("output_scale", 1.0)):
        expected = factor * getattr(scales[0], attribute)
        assert getattr(scales[1], attribute) == pytest.approx(expected, rel=max(slack, 1e-6))


@pytest.mark.parametrize("name, where, delta, persons, alpha", slow_but(CASES, *range(0, len(CASES), 2)))
def test_only_the_ratio_of_weights_and_alpha_counts(name, where, delta, persons, alpha):
    check_weights(name, where, delta, persons, alpha)


@pytest.mark.parametrize("name", slow_but(["huber", "three classes", "poisson", "logistic"], 0))
@pytest.mark.parametrize("persons", [False, True])
def test_intervals_know_no_unit_of_weights(name, persons):
    found, params = [], {"groups": GROUPS} if persons else {}
    for W in (1.0, 8.0):
        model = fitted(name, "objective", 0.0, persons, 0.05, W)
        n = len(set(GROUPS)) if persons else N
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            found.append(
                coef_interval(
                    model,
                    X,
                    targets_of(model),
                    epsilon=1000.0,
                    n_samples=n,
                    random_state=1,
                    sample_weight=W * WEIGHTS,
                    **params,
                )
            )
    one, other = found
    scale = np.abs(one.coef).max()
    assert not one.empty
    np.testing.assert_allclose(other.coef, one.coef, rtol=1e-5, atol=1e-5 * scale)
    np.testing.assert_allclose(other.curvature_, 8 * one.curvature_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.gradients_, 64 * one.gradients_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other.noise_share, one.noise_share, rtol=1e-3)


def bound_of_a_record_without_weight(loss, R, n, mu, tau):
    return (2 * loss.unweighted.lipschitz * R / n + 2 * tau) / mu


class Unscaled(WeightedLoss):
    """Weights of which the curvature knows nothing."""

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "curvature", self.loss.curvature)


TWINS = {
    "how far a minimiser moves": (
        calibration,
        "minimiser_sensitivity",
        bound_of_a_record_without_weight,
        ("logistic", "output", 0.0, False, 0.05),
    ),
    "and with Gaussian noise": (
        gaussian_noise,
        "minimiser_sensitivity",
        bound_of_a_record_without_weight,
        ("svc", "output", 0.02, False, 0.05),
    ),
    "curvature with Gaussian noise": (
        gaussian_noise,
        "_weight",
        lambda loss: 1.0,
        ("three steep", "objective", 0.02, False, 1e-4),
    ),
    "and of persons": (
        gaussian_noise,
        "_weight",
        lambda loss: 1.0,
        ("three steep", "objective", 0.02, True, 1e-4),
    ),
    "curvature that is added": (
        calibration,
        "extra_regularisation",
        lambda loss, n, R, alpha, epsilon, rank=None: max(
            0.0, loss.unweighted.curvature * R**2 / (n * math.expm1(epsilon / 2)) - alpha
        ),
        ("svc", "objective", 0.0, False, 1e-4),
    ),
}


@pytest.mark.parametrize("twin", TWINS)
def test_weights_that_are_forgotten_are_caught(twin, monkeypatch):
    *place, case = TWINS[twin]
    check_weights(*case)
    monkeypatch.setattr(*place)
    with pytest.raises((AssertionError, ValueError)):
        check_weights(*case)


# ---- K problems


def losses_of(name):
    """Return the loss of a model, and that with weights."""
    loss = KINDS[name].calibration(PublicShape(1000, 3)).problem.loss
    return [loss, WeightedLoss(loss, 4.0), WeightedLoss(loss, 0.25)]


LOSSES = {
    f"{name} {weight}": loss
    for name in ("logistic", "steep", "capped", "svc", "poisson", "huber")
    for loss, weight in zip(losses_of(name), ("", "of weight 4", "of weight 1/4"))
}


def check_events(name, persons, learned=False):
    """Compare the event of K problems with that of one that has the same noise."""
    for K, alpha in itertools.product((2, 3, 7), (0.01, 1e-4)):
        given = {"n_samples": 1000, "radius": 1.0, "epsilon": 2.0, "delta": 1e-6, "persons": persons}
        # (whatever the noise is)
        scales = Perturbation(alpha, 0.02, 1.0, 0.0)
        one, many = (
            gaussian_noise.gaussian_event(
                "objective", LOSSES[name], scales, learned=False, n_problems=k, **given
            )
            for k in (1, K)
        )
        # the residual is hidden once for all problems
        residual = gaussian_mu(RESIDUAL_FRACTION * 2.0, RESIDUAL_FRACTION * 1e-6)
        for k_times, once, own in (
            (many.mu**2, one.mu**2, residual**2),
            (many.shift, one.shift, residual**2 / 2),
        ):
            assert k_times - own == pytest.approx(K * (once - own), rel=1e-6)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_the_event_of_several_problems_is_that_of_one_several_times(name, persons):
    check_events(name, persons)


def check_learned(name, persons):
    """What is stated where bounds are learned is no less than what it is for any bound."""
    for K, (alpha, R) in itertools.product((1, 3), ((0.01, 1.0), (1e-4, 30.0), (1e-4, 1e-3))):
        given = {"n_samples": 1000, "radius": R, "epsilon": 2.0, "delta": 1e-6, "persons": persons}
        scales = gaussian_noise.calibrate_gaussian(
            "objective", LOSSES[name], alpha=alpha, dimension=3, tol=1e-10, n_problems=K, **given
        )
        known, learned = (
            gaussian_noise.gaussian_event(
                "objective", LOSSES[name], scales, learned=learned, n_problems=K, **given
            )
            for learned in (False, True)
        )
        slack = 1e-3 if persons else 1e-9
        assert learned.mu >= known.mu * (1 - slack) and learned.shift >= known.shift * (1 - slack)


LEARNED = [(name, persons) for name in LOSSES for persons in (False, True)]


@pytest.mark.parametrize("name, persons", slow_but(LEARNED, 0))
def test_what_is_learned_states_no_less_than_what_is_known(name, persons):
    check_learned(name, persons)


def check_noise(name, persons):
    """Compare the noise of K problems with that of one."""
    model = clone(KINDS[name])
    for where, K in itertools.product(("objective", "output"), (3, 5)):
        # an epsilon that is divided without rounding decides nothing
        pure = [
            model.set_params(perturbation=where, delta=0.0, alpha=0.05, norm="l2")
            .calibration(PublicShape(1000, 3, k, persons), epsilon)
            .scales
            for k, epsilon in ((K, 1.5 * K), (1, 1.5))
        ]
        for attribute in ("mu", "linear_scale", "output_scale"):
            found, expected = (getattr(scales, attribute) for scales in pure)
            assert found == pytest.approx(expected, rel=1e-9)
    for loss in losses_of(name):
        assert gaussian_sharpness("output", loss, 1.0, 1e-5, 9) == pytest.approx(
            gaussian_sharpness("output", loss, 1.0, 1e-5, 1) / 3, rel=1e-12
        )


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("name", ["three classes", "three steep", "four classes", "base rates"])
def test_noise_of_several_problems_is_that_of_one_at_its_share(name, persons):
    check_noise(name, persons)


def curvature_of_one(usual):
    def event(*args, n_problems, **given):
        found, one = (usual(*args, n_problems=k, **given) for k in (n_problems, 1))
        # a hundredth of what the other problems charge
        return replace(found, shift=found.shift - (n_problems - 1) * 0.01 * one.shift)

    return event


def learned_of_one(*args, n_problems, learned, **given):
    return gaussian_event(*args, n_problems=1 if learned else n_problems, learned=learned, **given)


def test_what_is_charged_for_one_problem_only_is_caught(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(gaussian_noise, "gaussian_event", curvature_of_one(gaussian_event))
        for name, persons in itertools.product(LOSSES, (False, True)):
            with pytest.raises(AssertionError):
                check_events(name, persons)
    with monkeypatch.context() as patch:
        patch.setattr(gaussian_noise, "gaussian_event", learned_of_one)
        with pytest.raises(AssertionError):
            check_learned("steep ", False)
    with monkeypatch.context() as patch:
        # as if a record entered one of the problems only
        patch.setattr(gaussian_noise, "_output_mu", lambda *args: gaussian_mu(*args[:2]))
        with pytest.raises(AssertionError):
            check_noise("three classes", False)

"""Noise that is drawn has the deviation that is stated, of each entry, for two classes, three and five.

Of the matrices of intervals, of which the stated deviation is a number; and of the coefficients of every
model, of which intervals say how much of their errors is noise.
"""

import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    SeededNoiseWarning,
    coef_interval,
)
from dpselect.linear_model.coefficient_fits import fits_of
from dpselect.linear_model.coefficient_intervals import upper
from dpselect.linear_model.coefficients import IntervalPlan, released_matrices
from dpselect.noise import root_stream
from tests.marks import slow_but
from tests.trials import with_noise

N = 400
RNG = np.random.default_rng(8)
X = np.tanh(RNG.normal(size=(N, 2)))
SCORE = X @ [1.5, -1.0] + 0.5 * RNG.logistic(size=N)
GROUPS = RNG.permutation(np.repeat(np.arange(200), [1, 3] * 100))
WEIGHTS = RNG.uniform(0.2, 2.5, size=N)
REGRESSORS = {
    "poisson": DPPoissonRegressor(target_bound=5.0, alpha=0.1),
    "huber": DPHuberRegressor(target_range=(-3, 3), alpha=0.1),
    "ridge": DPRidge(target_range=(-3, 3), alpha=0.2, perturbation="objective"),
    "ridge, output": DPRidge(target_range=(-3, 3), alpha=0.2, perturbation="output"),
    "sums": DPRidge(target_range=(-3, 3), alpha=0.2),
    "sums, l1": DPRidge(target_range=(-3, 3), alpha=0.2, norm="l1", data_norm_l1=1.5),
    "sums, Gaussian": DPRidge(target_range=(-3, 3), alpha=0.2, norm="l2", delta=1e-5),
}
MODELS = {
    **REGRESSORS,
    **{
        f"{name}, {K} classes": clone(model).set_params(classes=[*range(K)], alpha=0.1)
        for K in (2, 3, 5)
        for name, model in {
            "logistic": DPLogisticRegression(),
            "output": DPLogisticRegression(perturbation="output"),
            "svc": DPLinearSVC(huber_width=2.0),
            "Gaussian": DPLogisticRegression(delta=0.02, norm="l2"),
            "no constant": DPLinearSVC(huber_width=2.0, fit_intercept=False),
            "weighted": DPLogisticRegression(max_sample_weight=2.0),
        }.items()
    },
}


def targets_of(model):
    if isinstance(model, DPPoissonRegressor):
        return np.rint(np.exp(SCORE / 2))
    if not hasattr(model, "classes"):
        return SCORE
    K = len(model.classes)
    return np.digitize(SCORE, np.quantile(SCORE, np.arange(1, K) / K))


def fitted(model, seed, persons=False):
    params = {"groups": GROUPS} if persons else {}
    if getattr(model, "max_sample_weight", None):
        params["sample_weight"] = WEIGHTS
    model = clone(model).set_params(random_state=root_stream(8).child(seed), epsilon=40.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return model.fit(X, targets_of(model), **params), params


# ---- matrices of intervals


def check_matrices(name, draws=150):
    """Compare the stated deviation of an entry, in shares of its bound, with that of drawn ones."""
    model, _ = fitted(MODELS[name], 0)
    fits, found = fits_of(model, N), []
    d = len(fits[0].w)
    nothing = [(np.zeros((d, d)),) * 2] * len(fits)
    rows, columns, share = upper(d)
    for seed in range(draws):
        plan = IntervalPlan(fits, 2.0, None, root_stream(8).child("matrices", seed))
        for fit, pair in zip(fits, released_matrices(plan, nothing, N)):
            W = np.outer(fit.weights, fit.weights)
            for matrix, bound in zip(pair, fit.bounds):
                found.append((share * (W * matrix)[rows, columns] / bound) ** 2)
    # noise of one length for all entries: a mean of squares of 150 lengths
    assert np.sqrt(np.mean(found)) == pytest.approx(plan.deviation(N), rel=0.2)
    # and of each entry, of which each sample has one for each class
    each = np.sqrt(np.mean(found, axis=0)) / plan.deviation(N)
    assert ((each > 0.6) & (each < 1.5)).all()


@pytest.mark.parametrize("name", slow_but([*MODELS], 13))
def test_matrices_have_the_stated_deviation(name):
    check_matrices(name)


@pytest.mark.parametrize("K", [3, 5])
def test_a_deviation_that_forgets_the_classes_is_caught(K, monkeypatch):
    def of_two_classes(plan, m):
        d = len(plan.fits[0].w)
        return plan.scale(m)[1] * math.sqrt(d * (d + 1) + 1)

    monkeypatch.setattr(IntervalPlan, "deviation", of_two_classes)
    check_matrices("logistic, 2 classes")
    with pytest.raises(AssertionError):
        check_matrices(f"logistic, {K} classes")


# ---- coefficients


def coefficients(model):
    told = np.column_stack([np.atleast_2d(model.coef_), np.ravel(model.intercept_)])
    return told[:, : told.shape[1] - (not model.fit_intercept)].ravel()


def check_coefficients(name, persons=False, draws=100, twin=lambda model: model):
    """Compare how far coefficients spread over the noise with what intervals say of it."""
    model = MODELS[name]
    known, params = fitted(model, 0, persons)
    n = len(set(GROUPS)) if persons else N
    told = coef_interval(known, X, targets_of(model), epsilon=math.inf, n_samples=n, **params)
    stated = told.noise_share * told.errors.var(axis=0)
    found = np.array(
        [coefficients(fitted(twin(model), seed, persons)[0]) for seed in range(1, draws + 1)]
    )
    shares = found.var(axis=0) / stated
    assert math.sqrt(shares.mean()) == pytest.approx(1.0, abs=0.25), shares
    assert ((shares > 0.35) & (shares < 2.2)).all(), shares


COEFFICIENTS = [(name, persons) for name in MODELS for persons in (False, True)]


@pytest.mark.parametrize("name, persons", slow_but(COEFFICIENTS, 13))
def test_coefficients_spread_as_intervals_say(name, persons):
    check_coefficients(name, persons)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sums, l1", "logistic, 3 classes"])
def test_noise_that_is_longer_than_stated_is_caught(name):
    with pytest.raises(AssertionError):
        check_coefficients(name, twin=lambda model: with_noise(model, lambda usual: 1.5 * usual))

"""What rounding to the grid moves is paid for wherever a number is released, and counted in bounds.

The grid is made so coarse that rounding counts.
"""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from dpselect import DPLinearSVC, DPLogisticRegression, DPRidge
from dpselect.accounting.gaussian import gaussian_mu
from dpselect.base.accuracy_form import NoiseLevels, SensitivityNoise
from dpselect.linear_model import calibration
from dpselect.linear_model.calibration import Perturbation, norm_bound
from dpselect.linear_model.ridge import calibration as ridge_calibration
from dpselect.linear_model.ridge.ridge_noise import (
    released_entries,
    statistic_noise,
    statistic_sensitivity,
)
from dpselect.metrics import ClippedSquaredErrorScore, HingeScore
from dpselect.noise import gate, nearest_multiple, root_stream
from dpselect.records.public_shape import PublicShape
from tests.trials import fitted, scales_of, solved, with_noise

EPSILON = 0.3


@pytest.fixture
def released(monkeypatch):
    """A list of (noise, step) of each release that follows."""
    seen, whole = [], gate.release

    def release(values, noise, step, unit=None):
        seen.append((np.array(noise), step))
        return whole(values, noise, step, unit)

    for name, module in list(sys.modules.items()):
        if name.startswith("dpselect") and vars(module).get("release") is whole:
            monkeypatch.setattr(module, "release", release)
    return seen


def worst_loss(noise, scales, loss, step):
    """Return the loss of two values whose difference is the longest, and rounded up in each place.

    `noise` has one number for each place, the scale of its noise.
    """
    apart = np.full(len(noise), step)
    apart *= loss / np.linalg.norm(apart / scales)
    return np.linalg.norm((apart + step) / noise)


def linear_scales(model, n, d, k):
    """Scales without a charge for rounding, and the loss that is left for what they hide."""
    s, epsilon = scales_of(model, n, d - 1, k), EPSILON / k
    if model.perturbation == "objective":
        epsilon *= calibration.RESIDUAL_FRACTION
        return 2 * s.tau / s.mu / epsilon, epsilon
    return (2 * math.sqrt(2) / n + 2 * s.tau) / s.mu / epsilon, epsilon


def ridge_scales(model, n, d):
    if model.perturbation == "covariance":
        loss = gaussian_mu(EPSILON, model.delta) if model.delta else EPSILON
        rows, columns = np.nonzero(released_entries(d - 1, d + 1))
        weights = statistic_noise(d - 1, fit_intercept=True, norm="l2", epsilon=1.0, delta=0.0).weights
        scale = statistic_sensitivity(True, "l2") / loss * np.where(rows == columns, 1, 0.5**0.5)
        return scale / weights[rows] / weights[columns], loss
    s = scales_of(model, n, d - 1)
    if model.perturbation == "objective":
        loss = ridge_calibration.RESIDUAL_FRACTION * EPSILON
        return 2 * s.tau / s.mu / loss, loss
    change = model.problem().gradient_change()
    return ridge_calibration.minimiser_sensitivity(change, n, s.mu) / EPSILON, EPSILON


MODELS = [
    *(
        kind(EPSILON, perturbation=perturbation, classes=classes, alpha=0.1, **steepest)
        # both with a largest derivative of 1
        for kind, steepest in ((DPLogisticRegression, {"max_derivative": None}), (DPLinearSVC, {}))
        for perturbation in ("output", "objective")
        for classes in ([0, 1], [0, 1, 2])
    ),
    *(
        DPRidge(
            EPSILON, perturbation=perturbation, norm="l2", alpha=0.1, delta=delta, target_range=(-1, 1)
        )
        for perturbation, delta in (
            ("output", 0),
            ("objective", 0),
            ("covariance", 0),
            ("covariance", 1e-5),
        )
    ),
]


def name_of(model):
    parameters = {name: getattr(model, name, None) for name in ("perturbation", "classes", "delta")}
    return "-".join([type(model).__name__, *map(str, parameters.values())])


@pytest.mark.parametrize("model", MODELS, ids=name_of)
@pytest.mark.parametrize("fineness", [1, 24])
def test_noise_pays_for_rounding_in_every_place(model, fineness, released, monkeypatch):
    monkeypatch.setattr(gate, "FINENESS", fineness)
    rng, n, d = np.random.default_rng(0), 50, 4
    X, y = rng.normal(size=(n, d - 1)), rng.integers(len(getattr(model, "classes", [0, 1])), size=n)
    fitted(with_noise(model, np.ones_like), X, y)
    ((noise, step),) = released
    ridge, k = isinstance(model, DPRidge), 1 if y.max() == 1 else 3
    scales, loss = ridge_scales(model, n, d) if ridge else linear_scales(model, n, d, k)
    step = float(np.ravel(step)[0])
    assert 2.0**-fineness / 2 < step / np.min(scales) <= 2.0**-fineness
    for row in noise.reshape(k, -1):
        assert worst_loss(row, scales, loss, step) == pytest.approx(loss, rel=1e-8)


@pytest.mark.parametrize("fineness", [1, 24])
@pytest.mark.parametrize("how", ["path", "brownian", "fresh"])
def test_noise_of_all_levels_pays_for_one_rounding(how, fineness, released, monkeypatch):
    monkeypatch.setattr(gate, "FINENESS", fineness)
    monkeypatch.setattr(
        SensitivityNoise,
        "_standard",
        lambda self, generator, levels: lambda epsilon: np.ones(self.shape),
    )
    k, scales = 3, np.array([5.0, 1.0, 2.0, 0.7])
    levels = NoiseLevels(how, 0.01, 10.0, delta=1e-6)
    noise = SensitivityNoise("l2", (k, 4), 0.3, scales)
    put_noise_on = noise.start(levels, None)
    values = np.random.default_rng(0).normal(size=(k, 4))
    for level in (0.01, 0.5, 10.0):
        on_grid = put_noise_on(values, level)
        added, step = released.pop()
        # the values are rounded once and for all
        assert step == noise.step(levels)
        # of each vector; Gaussian noise hides all of them at once
        loss = levels.time(level) ** -0.5 / math.sqrt(k) if how == "brownian" else level / k
        least = 0.3 * 0.7 / loss
        for row in added:
            assert worst_loss(row, 0.3 * scales / loss, loss, step) == pytest.approx(loss, rel=1e-8)
        # and what comes out is coarser where the noise is longer
        coarse = 2.0 ** math.floor(math.log2(least) - fineness)
        assert coarse >= step and (nearest_multiple(on_grid, coarse) == on_grid).all()
    assert step == coarse


@pytest.mark.parametrize("perturbation", ["output", "objective"])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPRidge])
def test_certificates_count_what_rounding_moves(kind, perturbation, monkeypatch):
    """With a step longer than what a record moves, neighbours are a step or none apart.

    All coordinates are equal, so that they move together.
    """
    n, d, ridge = 40, 4, kind is DPRidge
    model = with_noise(
        kind(
            10.0,
            perturbation=perturbation,
            norm="l2",
            alpha=1.0,
            fit_intercept=False,
            **({"target_range": (-1, 1)} if ridge else {"classes": [0, 1]}),
        ),
        np.zeros_like,
    )
    bare = (model.problem().gradient_change() if ridge else 2.0) / n / scales_of(model, n, d).mu
    for fineness in range(0, -40, -1):
        monkeypatch.setattr(gate, "FINENESS", fineness)
        if scales_of(model, n, d).step > 1.5 * bare:
            break
    score, derivative = (ClippedSquaredErrorScore(1e6), 2e3) if ridge else (HingeScore(), 1.0)
    bound = model.stability_certificate(score, n, d).training
    X, labels = np.full((n, d), d**-0.5), np.tri(n + 1, n, -1, dtype=int)
    w = [fitted(model, X, y).coef_.ravel() for y in labels]
    moved = derivative * np.linalg.norm(np.diff(w, axis=0), axis=1)
    # further than the record, and a step in a single coordinate
    assert derivative * (1.001 * bare + scales_of(model, n, d).step) < max(moved) <= bound


def test_the_bound_on_the_norm_counts_rounding(monkeypatch):
    """Noise of little more than half a step makes a coefficient of a whole one."""
    monkeypatch.setattr(gate, "FINENESS", -6)

    model = DPLogisticRegression(
        1.0, perturbation="output", alpha=1.0, fit_intercept=False, classes=[0, 1]
    )
    s = scales_of(model, 30, 1)
    model = with_noise(model, np.full((2, 1, 1), 0.51 * s.step / s.output_scale))
    X = np.random.default_rng(0).normal(size=(30, 1))
    model = fitted(model, X, np.arange(30) % 2)
    length = np.linalg.norm(model.standard_noise(1)[1])
    bound = norm_bound(model.problem().loss, s, 1.0, 0.0, length)
    assert bound - s.rounding < abs(model.coef_.item()) <= bound


@pytest.mark.parametrize("perturbation", ["output", "objective"])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPRidge])
def test_bounds_on_the_excess_count_rounding(kind, perturbation, monkeypatch):
    """With hardly any noise, a coefficient below half a step becomes 0."""
    n, classes = 100, {"target_range": (-1, 1)} if kind is DPRidge else {"classes": [0, 1]}
    model = kind(
        1e6, perturbation=perturbation, alpha=1.0, random_state=0, fit_intercept=False, **classes
    )
    X, y = np.ones((n, 1)), np.arange(n) < 60
    form = model.accuracy_form()
    reduction = form.reduction(X, y, NoiseLevels("fresh", 1.0, 2.0), root_stream(0))
    (exact,) = np.ravel(reduction.minimiser)
    for fineness in range(0, -60, -1):
        monkeypatch.setattr(gate, "FINENESS", fineness)
        if scales_of(model, n, 1).step > 2.1 * exact:
            break
    model = fitted(model, X, y)
    assert model.coef_.item() == 0
    (excess,) = reduction.excesses(np.zeros((1, *np.shape(reduction.minimiser))))
    assert 0 < excess <= form.excess_bound(PublicShape(n, 1), 1e6)
    whole = Perturbation.on_grid
    monkeypatch.setattr(
        Perturbation,
        "on_grid",
        lambda *scales, **public: replace(whole(*scales, **public), rounding=0.0),
    )
    assert excess > form.excess_bound(PublicShape(n, 1), 1e6)


def test_models_that_are_solved_together_have_steps_of_their_own(released):
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    models = [DPLogisticRegression(epsilon, classes=[0, 1], random_state=0) for epsilon in (1e-3, 1e3)]
    solved(models, X, y)
    ((_, steps),) = released
    own = [scales_of(model, 50, 3).step for model in models]
    assert np.ravel(steps).tolist() == own and own[0] > own[1]

"""Gaussian noise of linear models against the exact density of what is released.

With noise b of standard deviation sigma objective perturbation releases w with density
exp(-|g|^2 / (2 sigma^2)) |det H|, g being the gradient at w, without noise, and H its derivative. The
delta that is spent is the mean of (1 - exp(epsilon - L))_+ over the noise, L the log-ratio of that
density on neighbouring data sets: an integral over the noise, here on a grid.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from dpselect import DPHuberRegressor, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor
from dpselect.accounting.events import GaussianEvent
from dpselect.accounting.gaussian import gaussian_log_delta
from dpselect.linear_model.calibration import RESIDUAL_FRACTION
from dpselect.linear_model.gaussian_noise import (
    calibrate_gaussian,
    gaussian_event,
    gaussian_sharpness,
)
from dpselect.linear_model.losses import (
    HuberHingeLoss,
    LogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
    WeightedLoss,
)
from dpselect.noise import root_stream
from dpselect.noise.tails import noise_length
from dpselect.records.public_shape import PublicShape

from ..mechanisms.test_gaussian_objective import spent as largest_loss

LOGISTIC, HINGE, HUBER = LogisticLoss(), HuberHingeLoss(), PseudoHuberLoss(0.0, 1.0)
FAR = 1e100


def minimisers(loss, rows, targets, counts, mu, b, start):
    """Newton's method with halved steps, for each row of b."""
    n, w = counts.sum(), np.broadcast_to(start, b.shape)

    def value(w):
        losses = loss.value(w @ rows.T, targets) @ counts / n
        return losses + (mu / 2 * w * w + b * w).sum(axis=1)

    now = value(w)
    for _ in range(300):
        z = w @ rows.T
        gradient = loss.derivative(z.copy(), targets) * counts @ rows / n + mu * w + b
        curvature = loss.second_derivative(z, targets) * counts / n
        H = np.einsum("bk,ki,kj->bij", curvature, rows, rows) + mu * np.eye(rows.shape[1])
        step = np.linalg.solve(H, gradient[:, :, None])[:, :, 0]
        for _ in range(40):
            new = value(w - step)
            worse = new > now + 1e-15 * abs(now)
            if not worse.any():
                break
            step[worse] /= 2
        w, now = w - step, new
        if abs(step).max() <= 1e-9 * (1 + abs(w).max()):
            return w
    raise AssertionError("no minimiser")


def spent(loss, data, neighbour, s, epsilon, size=81, reach=7.0):
    """The delta that one problem spends on (rows, targets, counts), of which the first row changes."""
    (rows, targets, counts), d = data, data[0].shape[1]
    sigma, n = s.linear_scale, counts.sum()
    axis = np.linspace(-reach, reach, size)
    grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    weights = np.exp(-(grid**2).sum(axis=1) / 2) * ((axis[1] - axis[0]) / math.sqrt(2 * math.pi)) ** d
    start = minimisers(loss, rows, targets, counts, s.mu, np.zeros((1, d)), 0.0)
    w = minimisers(loss, rows, targets, counts, s.mu, sigma * grid, start)

    def log_density(rows, targets, counts):
        z = w @ rows.T
        gradient = loss.derivative(z.copy(), targets) * counts @ rows / n + s.mu * w
        curvature = loss.second_derivative(z, targets) * counts / n
        H = np.einsum("bk,ki,kj->bij", curvature, rows, rows) + s.mu * np.eye(d)
        return -(gradient**2).sum(axis=1) / (2 * sigma**2) + np.linalg.slogdet(H)[1]

    gap = epsilon - (log_density(*data) - log_density(*neighbour))
    return weights @ -np.expm1(np.minimum(gap, 0))


def calibrated(loss, n, alpha, epsilon, delta, dimension=2, n_problems=1):
    return calibrate_gaussian(
        "objective",
        loss,
        n_samples=n,
        dimension=dimension,
        radius=1.0,
        alpha=alpha,
        epsilon=epsilon,
        delta=delta,
        n_problems=n_problems,
        tol=1e-10,
    )


def opposed(share, n):
    """Records that pull w along the first axis; one that pulls across, this way or that way."""
    across = math.sqrt(1 - share**2)
    counts = np.array([1.0, n - 1.0])
    return [(np.array([[-share, side * across], [1.0, 0.0]]), 1.0, counts) for side in (1, -1)]


# --- the logistic loss


# epsilon, delta, how far the records pull along the first axis, and the share of delta that is spent
TIGHT = [(1.0, 1e-3, 0.1, 0.8), (1.0, 1e-6, 0.2, 0.5), (0.1, 1e-6, 0.2, 0.6), (3.0, 1e-3, 0.3, 0.3)]
# so many records that they outweigh the penalty until w is long
MANY = 1e60


@pytest.mark.parametrize("epsilon, delta, share, least", TIGHT)
def test_the_logistic_loss_spends_what_is_stated_and_comes_close(epsilon, delta, share, least):
    s = calibrated(LOGISTIC, MANY, 1e-300, epsilon, delta)
    # as much curvature as is free
    assert 1 / (MANY * s.mu) == pytest.approx((1 - RESIDUAL_FRACTION) * epsilon / 2)
    assert least < spent(LOGISTIC, *opposed(share, MANY), s, epsilon) / delta <= 1


@pytest.mark.parametrize("epsilon, delta, share, least", TIGHT[:3])
@pytest.mark.parametrize("broken", [{"linear_scale": 1 / 2}, {"mu": 1 / 20}])
def test_half_the_noise_and_too_much_curvature_are_caught(broken, epsilon, delta, share, least):
    n = MANY if "linear_scale" in broken else 1e6
    s = calibrated(LOGISTIC, n, 1e-300, epsilon, delta)
    ((name, factor),) = broken.items()
    s = replace(s, **{name: factor * getattr(s, name)})
    assert spent(LOGISTIC, *opposed(share, n), s, epsilon, size=61) > 5 * delta


def test_weights_count_in_the_noise_and_in_the_curvature():
    loss, epsilon, delta, W = WeightedLoss(LOGISTIC, 4.0), 1.0, 1e-3, 4.0
    s = calibrated(loss, MANY, 1e-300, epsilon, delta)
    plain = calibrated(LOGISTIC, MANY, 1e-300, epsilon, delta)
    assert (s.mu, s.linear_scale) == pytest.approx((W * plain.mu, W * plain.linear_scale))
    data = [(rows, targets, W * counts) for rows, targets, counts in opposed(0.1, MANY)]
    # (weights that all count W: their sum is W n)
    same = replace(s, mu=s.mu / W, linear_scale=s.linear_scale / W)
    assert 0.8 < spent(LOGISTIC, *data, same, epsilon) / delta <= 1


@pytest.mark.slow
def test_one_record_of_several_classes_spends_a_joint_budget():
    # each class loses what a Gaussian mechanism does, where both slopes are 1: the losses' sum is normal
    epsilon, delta = 1.0, 1e-3
    for K in (3, 10):
        sharpness = gaussian_sharpness("objective", LOGISTIC, epsilon, delta, K)
        joint = math.exp(gaussian_log_delta(epsilon, math.sqrt(K) * sharpness))
        assert 0.02 * delta < joint <= delta
        # the broken twin gives each class the m of one model
        alone = gaussian_sharpness("objective", LOGISTIC, epsilon, delta, 1)
        assert math.exp(gaussian_log_delta(epsilon, math.sqrt(K) * alone)) > 10 * delta
        # and with epsilon / K and delta / K for each the noise is far longer
        apart = gaussian_sharpness("objective", LOGISTIC, epsilon / K, delta / K, 1)
        assert sharpness > 1.5 * apart


# --- other losses


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-3), (1.0, 1e-6), (0.1, 1e-6)])
@pytest.mark.parametrize(
    "loss, alpha, data, least",
    [
        # at 0 both slopes are 1, and nothing curves
        (HINGE, 100.0, [([[1.0]], 1.0), ([[-1.0]], 1.0)], 0.8),
        # (noise of half of delta on either side of 0)
        (HUBER, 100.0, [([[1.0]], FAR), ([[1.0]], -FAR)], 0.4),
        (HUBER, 1e-3, [([[1.0]], 0.0), ([[1.0]], -FAR)], 0.0),
        (HINGE, 1e-3, [([[1.0]], 1.0), ([[-1.0]], 1.0)], 0.0),
        (PoissonLoss(1.0), 1e-3, [([[1.0]], 0.0), ([[1.0]], 1.0)], 0.0),
    ],
)
def test_other_losses_spend_what_is_stated(loss, alpha, data, least, epsilon, delta):
    s = calibrated(loss, 10.0, alpha, epsilon, delta, dimension=1)
    values, twin = [
        [
            spent(
                loss,
                *(
                    (np.vstack([rows, np.zeros((1, 1))]), np.array([target, 0.0]), np.array([1.0, 9.0]))
                    for rows, target in pair
                ),
                scales,
                epsilon,
                size=2001,
            )
            for pair in (data, data[::-1])
        ]
        for scales in (s, replace(s, linear_scale=s.linear_scale / 2.5))
    ]
    assert least * delta <= max(values) <= delta
    if least:
        assert max(twin) > 2 * delta


def test_curvature_of_a_loss_of_predictions_is_paid_for():
    m = [
        2 / (10 * calibrated(HUBER, 10.0, alpha, 1.0, 1e-6, dimension=1).linear_scale)
        for alpha in (1e6, 1.0, 0.3, 1e-6)
    ]
    assert m == sorted(m, reverse=True) and m[1] > 0.95 * m[0] and m[3] < 0.9 * m[0]

    class Elsewhere(PseudoHuberLoss):
        pass

    # a subclass may curve elsewhere, and pays for the most
    assert calibrated(Elsewhere(0.0, 1.0), 10.0, 1.0, 1.0, 1e-6).linear_scale > 1.05 * (
        calibrated(HUBER, 10.0, 1.0, 1.0, 1e-6).linear_scale
    )


# --- the law that is taken


def model_of(kind, **parameters):
    public = {"classes": [0, 1]}
    if kind is DPHuberRegressor:
        public = {"target_range": (-4, 4)}
    elif kind is DPPoissonRegressor:
        public = {"target_bound": 5.0}
    return kind(**public, **parameters)


KINDS = (DPLogisticRegression, DPLinearSVC, DPHuberRegressor, DPPoissonRegressor)


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("kind", KINDS)
def test_delta_is_used_where_gaussian_noise_is_the_shortest(kind, perturbation):
    model = model_of(kind, delta=1e-6, perturbation=perturbation)
    laws = {p: model.calibration(PublicShape(1000, p)) for p in (3, 10, 50)}
    assert [noise.law for noise in laws.values()] == ["l2", "l2", "gaussian"]
    assert [noise.delta for noise in laws.values()] == [0.0, 0.0, 1e-6]
    pure = model_of(kind, perturbation=perturbation)
    assert laws[10].scales == pure.calibration(PublicShape(1000, 10)).scales
    noise = [model.set_params(random_state=root_stream(0)).standard_noise(p) for p in (10, 50)]
    other = [pure.set_params(random_state=root_stream(0)).standard_noise(p) for p in (10, 50)]
    assert np.array_equal(noise[0], other[0]) and not np.array_equal(noise[1], other[1])
    # l1 noise of short one-hot rows is the shortest there
    short = model_of(kind, delta=1e-6, data_norm=2**0.5, data_norm_l1=2.0, fit_intercept=False)
    assert short.calibration(PublicShape(1000, 5)).delta == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [10, 100, 500, 2000])
def test_lengths_of_the_noise_are_those_of_theory(kind, d):
    shape, loss = PublicShape(10_000, d), model_of(kind)._loss()
    parameters = {"alpha": 1e4, "fit_intercept": False}  # nothing curves
    pure = model_of(kind, **parameters).calibration(shape).scales.linear_scale
    noise = model_of(kind, delta=1e-6, **parameters).calibration(shape)
    drawn = model_of(kind, delta=1e-6, random_state=root_stream(0), **parameters).standard_noise(d)[0, 0]
    if d == 10:
        assert noise.law == "l2"
        return
    assert noise.law == "gaussian"
    assert np.linalg.norm(drawn) == pytest.approx(math.sqrt(d), rel=5 / math.sqrt(2 * d))
    ratio = pure * noise_length("l2", d) / (noise.scales.linear_scale * math.sqrt(d))
    sided = {DPHuberRegressor: 0.97, DPPoissonRegressor: 0.97}.get(kind, 1.0)
    assert ratio == pytest.approx(sided * math.sqrt(d) / 4.2247, rel=0.02)
    assert loss.lipschitz * 2 / 10_000 / noise.scales.linear_scale < 0.2368


@pytest.mark.parametrize("kind", KINDS)
def test_classes_have_noise_of_their_own(kind):
    if kind in KINDS[2:]:
        return
    model = kind(delta=1e-6, classes=[0, 1, 2], random_state=root_stream(0))
    assert model.calibration(PublicShape(1000, 10, 3)).law == "gaussian"
    vectors = model.standard_noise(10, 3).reshape(6, -1)
    assert np.linalg.matrix_rank(vectors) == 6


def test_laplace_noise_would_not_use_delta():
    with pytest.raises(ValueError, match="norm='l1', because its noise gives pure privacy"):
        DPLogisticRegression(delta=1e-6, norm="l1").fit([[0.0]], [0])
    with pytest.raises(ValueError, match="delta"):
        DPLogisticRegression(delta=1.0).fit([[0.0]], [0])


# --- the rest of a release


def test_the_residual_is_hidden_by_a_thousandth_of_both():
    n, epsilon, delta, K = 1000.0, 1.0, 1e-6, 3
    s = calibrated(LOGISTIC, n, 0.1, epsilon, delta, dimension=30, n_problems=K)
    moved = 2 * s.tau / s.mu + math.sqrt(30) * s.step
    # together all problems move sqrt(K) times as far
    sharpness = math.sqrt(K) * moved / s.output_scale
    spent_delta = math.exp(gaussian_log_delta(epsilon / 1000, sharpness))
    assert spent_delta == pytest.approx(delta / 1000, rel=1e-4)


def test_output_noise_hides_how_far_the_minimiser_moves():
    s = calibrate_gaussian(
        "output",
        LOGISTIC,
        n_samples=50,
        dimension=30,
        radius=2.0,
        alpha=0.1,
        epsilon=1.0,
        delta=1e-6,
        n_problems=3,
        tol=1e-10,
    )
    moved = (2 * 2.0 / 50 + 2 * s.tau) / 0.1 + math.sqrt(30) * s.step
    spent_delta = math.exp(gaussian_log_delta(1.0, math.sqrt(3) * moved / s.output_scale))
    assert s.linear_scale == 0 and spent_delta == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("max_derivative", [None, "auto", 0.75])
def test_what_is_released_solves_the_perturbed_problem(max_derivative, perturbation, K):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 30)) / 8, np.arange(200) % K
    model = DPLogisticRegression(
        delta=1e-6,
        alpha=0.1,
        perturbation=perturbation,
        classes=list(range(K)),
        fit_intercept=False,
        max_derivative=max_derivative,
        random_state=root_stream(1),
    )
    K = 1 if K == 2 else K
    noise, s = model.standard_noise(30, K), model.calibration(PublicShape(200, 30, K)).scales
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    model.fit(X, y)
    assert model.privacy_.delta == 1e-6
    w = model.coef_ - s.output_scale * noise[1]
    classes = np.array([[1]]) if K == 1 else np.arange(K)[:, None]
    signs = np.where(y == classes, 1.0, -1.0)
    slopes = -signs * np.minimum(expit(-signs * (w @ X.T)), model.largest_derivative)
    gradient = slopes @ X / 200 + s.mu * w + s.linear_scale * noise[0]
    assert abs(gradient).max() < s.tau + 2 * s.mu * s.step


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("n", [10.0, MANY])
def test_events_hold_at_every_epsilon_and_for_the_reverse(share, n):
    # one fit, whose loss is looked at where it is likely and composes with others
    s = calibrated(LOGISTIC, n, 1e-300 if n == MANY else 0.5, 1.0, 1e-3)
    event = gaussian_event(
        "objective",
        LOGISTIC,
        s,
        n_samples=n,
        radius=1.0,
        epsilon=1.0,
        delta=1e-3,
        n_problems=1,
        learned=False,
    )
    data, neighbour = opposed(share, n)
    assert event.tail_from < (0.9 if n == 10 else 1.1)
    for epsilon in (0.0, 0.1, 0.3, 0.6, event.tail_from, 1.1):
        for pair in ((data, neighbour), (neighbour, data)):
            found = spent(LOGISTIC, *pair, s, epsilon, size=41)
            assert found <= event.profile(np.array([epsilon]))[0]
    # the tail begins where the lemma does, and not where curvature counts
    m, kappa = 2 / (n * s.linear_scale), 1 / (n * s.mu)
    where = event.tail_from - event.tail_lost
    assert largest_loss(m, kappa, where, 1.0) <= GaussianEvent(m).profile(where) * (1 + 1e-3)
    twin = replace(event, tail_from=1e-9)
    assert largest_loss(m, kappa, 0.1, 1.0) > twin.profile(np.array([0.1]))[0]
    if share == 0.1:
        less = replace(s, linear_scale=s.linear_scale / 4)
        assert spent(LOGISTIC, data, neighbour, less, 0.6, size=41) > 2 * event.profile(0.6)

"""Attacks on private ridge regression: its sensitivities, its released law, its certificate.

Every bound must hold and be nearly attained, and the same attack must go through twins that
are deliberately broken.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import beta

from dpselect.accounting.gaussian import gaussian_mu
from dpselect.linear_model.ridge import DPRidge, ridge_noise
from dpselect.linear_model.ridge.ridge_noise import WEIGHTS, released_entries, statistic_noise
from dpselect.linear_model.ridge.sums import outer_sums
from dpselect.metrics import ClippedSquaredErrorScore
from dpselect.noise import (
    InnerStream,
    as_generator,
    gaussian,
    grid_noise,
    laplace,
    spherical_laplace,
)
from dpselect.records.public_shape import PublicShape
from dpselect.records.records import Records
from tests.marks import a_third

from ..trials import fitted
from .audit import FALSE_ALARM, loss_lower_bound

INF = float("inf")
R, Y = 0.7, 1.5


def exact(X, y, norm, fit_intercept=True, bits=None):
    """The released sums without noise, as a vector in the order of the noise."""
    sums = outer_sums(Records(X, y, {}), bits, problem(norm, fit_intercept))
    p = X.shape[1]
    return (sums.values * sums.units)[released_entries(p, p + fit_intercept + 1)]


def problem(norm, fit_intercept):
    return DPRidge(
        norm=norm,
        data_norm=R,
        target_range=(-Y, Y),
        fit_intercept=fit_intercept,
        data_norm_l1=R if norm == "l1" else None,
    ).problem()


def units(p, fit_intercept):
    return np.outer(*2 * [[R] * p + [1.0] * fit_intercept + [Y]])


def scales(p, noise, fit_intercept):
    """The scale of the noise of each released sum, in the same order."""
    entries = released_entries(p, len(noise.weights))
    return units(p, fit_intercept)[entries] * noise.scales(p)


def adversaries(p, norm, fit_intercept):
    """Pairs of records (x, y): random ones, some too long; the worst ones of the proofs."""
    rng = np.random.default_rng(p)
    for _ in range(150):
        x, x_new = rng.normal(size=(2, p)) * rng.choice([0.1, 10.0], size=(2, 1))
        if rng.random() < 0.3:
            x_new = -x
        yield (x, rng.choice([-9, 9, 0.3])), (x_new, rng.choice([-9, 9, 0.3]))
    x = 9 * np.eye(p)[0]
    tau, kappa = WEIGHTS[norm]
    # weighted records orthogonal to each other: l1 asks for disjoint x
    cosine = 0.0 if norm == "l1" else kappa**2 - fit_intercept * tau**2
    x_new = 9 * np.eye(p)[-1] * math.sqrt(1 - cosine**2) + cosine * x if p > 1 else -x
    for y_new in (9.0, -9.0):
        yield (x, 9.0), (x_new, y_new)


def worst_change(p, noise, norm, fit_intercept, bits=None):
    """The largest change of the sums in units of their noise, in the norm of the proof."""
    scale = scales(p, noise, fit_intercept)
    others = np.random.default_rng(0).normal(size=(2, p))
    worst = 0.0
    for (x, y), (x_new, y_new) in adversaries(p, norm, fit_intercept):
        pair = [
            exact(np.vstack([others, row]), np.array([0.1, -0.2, target]), norm, fit_intercept, bits)
            for row, target in ((x, y), (x_new, y_new))
        ]
        move = (pair[1] - pair[0]) / scale
        worst = max(worst, np.abs(move).sum() if norm == "l1" else np.linalg.norm(move))
    return worst


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("p", a_third([2, 3, 6]))
def test_no_record_moves_the_sums_further_than_their_noise_covers(p, norm, fit_intercept):
    noise = statistic_noise(p, fit_intercept=fit_intercept, norm=norm, epsilon=0.8, delta=0.0)
    worst = worst_change(p, noise, norm, fit_intercept)
    assert 0.9 * 0.8 <= worst <= 0.8 * (1 + 1e-9)
    # truncated records are no longer, however few bits they have
    for bits in (4, 19):
        assert 0.7 * 0.8 <= worst_change(p, noise, norm, fit_intercept, bits) <= 0.8 * (1 + 1e-9)
    # twins: half the noise, the diagonal at the scale of the rest, and half the rest
    for broken in (
        dict(diagonal=noise.diagonal / 2, off_diagonal=noise.off_diagonal / 2),
        dict(diagonal=noise.off_diagonal),
        dict(off_diagonal=noise.diagonal / 2 if norm == "l2" else noise.diagonal / 4),
    ):
        assert worst_change(p, dataclasses.replace(noise, **broken), norm, fit_intercept) > 0.8


def test_the_constant_has_to_be_counted():
    noise = statistic_noise(3, fit_intercept=True, norm="l1", epsilon=1.0, delta=0.0)
    without = ridge_noise.statistic_sensitivity(False, "l1")
    broken = dataclasses.replace(noise, diagonal=without, off_diagonal=without / 2)
    assert worst_change(3, broken, "l1", True) > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_an_optimiser_finds_nothing_worse(norm):
    p = 2
    noise = statistic_noise(p, fit_intercept=True, norm=norm, epsilon=1.0, delta=0.0)
    scale = scales(p, noise, True)

    def loss(v):
        pair = [exact(v[i : i + 2][None], v[i + 2 : i + 3], norm=norm) for i in (0, 3)]
        move = (pair[1] - pair[0]) / scale
        return -(np.abs(move).sum() if norm == "l1" else np.linalg.norm(move))

    rng = np.random.default_rng(0)
    best = min(
        minimize(loss, rng.normal(size=6), method="Nelder-Mead", options={"maxiter": 300}).fun
        for _ in range(6)
    )
    assert 0.9 <= -best <= 1 + 1e-9


# ---- the released law ----

N = 200_000
n = 10


def neighbours(norm):
    """Data sets of n records that differ in record 0, by the worst pair of the proofs.

    Without an intercept: the fewer sums there are, the likelier is noise along the change.
    """
    rest, targets = np.zeros((n - 1, 2)), np.zeros(n - 1)
    *_, ((x, y), (x_new, y_new)) = adversaries(2, norm, False)
    return [
        (np.vstack([row[None], rest]), np.append(target, targets))
        for row, target in ((x, y), (x_new, y_new))
    ]


def log_ratios(noise, law, norm):
    """Log-likelihood ratios of the released sums of two neighbours, N samples each.

    The samples have the scales of `noise`; the ratio is that of the same law.
    """
    sums = [exact(X, y, norm=norm, fit_intercept=False) for X, y in neighbours(norm)]
    scale = scales(2, noise, False)
    size = {
        laplace: lambda v: np.abs(v).sum(axis=1),
        spherical_laplace: lambda v: np.linalg.norm(v, axis=1),
        gaussian: lambda v: (v * v).sum(axis=1) / 2,
    }[law]
    result = []
    for seed, center in enumerate(sums):
        generator = as_generator(seed)
        shape = (N, len(center))
        unit = law(generator, *shape) if law is spherical_laplace else law(generator, shape)
        z = center + scale * unit
        ratio = size((z - sums[1]) / scale) - size((z - sums[0]) / scale)
        # the ratios of Laplace variables have atoms, which quantiles cannot tell apart
        result.append(ratio + 1e-6 * generator.random(N))
    return result


def halved(noise):
    return dataclasses.replace(noise, diagonal=noise.diagonal / 2, off_diagonal=noise.off_diagonal / 2)


@pytest.mark.parametrize("norm, law, least", [("l1", laplace, 0.8), ("l2", spherical_laplace, 0.6)])
def test_loss_stays_under_the_claim(norm, law, least):
    noise = statistic_noise(2, fit_intercept=False, norm=norm, epsilon=1.0, delta=0.0)
    assert least < loss_lower_bound(*log_ratios(noise, law, norm)) <= 1.0
    assert loss_lower_bound(*log_ratios(halved(noise), law, norm)) > 1.0


def delta_lower_bound(outputs, neighbour_outputs, epsilon):
    """Bound from below the delta that a release needs at `epsilon`, as `loss_lower_bound` does."""
    halves = [np.split(s, 2) for s in (outputs, neighbour_outputs)]
    cuts = np.quantile(halves[0][0], np.linspace(0.01, 0.999, 100))
    p, q = ((half[0][:, None] > cuts).mean(axis=0) for half in halves)
    cut = cuts[np.argmax(p - math.exp(epsilon) * q)]
    size = len(halves[0][1])
    hits = [int((half[1] > cut).sum()) for half in halves]
    low = beta.ppf(FALSE_ALARM / 2, hits[0], size - hits[0] + 1)
    high = beta.isf(FALSE_ALARM / 2, hits[1] + 1, size - hits[1])
    return low - math.exp(epsilon) * high


def test_gaussian_noise_stays_under_the_claim():
    delta = 0.05
    noise = statistic_noise(2, fit_intercept=False, norm="l2", epsilon=1.0, delta=delta)
    needed = delta_lower_bound(*log_ratios(noise, gaussian, "l2"), 1.0)
    assert 0.6 * delta < needed <= delta
    # sigma / 2 above the diagonal, in place of sigma / sqrt(2)
    broken = dataclasses.replace(noise, off_diagonal=noise.diagonal / 2)
    assert delta_lower_bound(*log_ratios(broken, gaussian, "l2"), 1.0) > delta
    # the scale of pure privacy, taken for Gaussian noise
    scale = ridge_noise.statistic_sensitivity(False, "l2")
    assert scale < noise.diagonal == pytest.approx(scale / gaussian_mu(1.0, delta))
    broken = dataclasses.replace(noise, diagonal=scale / 2, off_diagonal=scale / 2**1.5)
    assert delta_lower_bound(*log_ratios(broken, gaussian, "l2"), 1.0) > delta


@pytest.mark.parametrize(
    "norm, delta, law",
    [
        ("l1", 0.0, laplace),
        ("l2", 0.0, spherical_laplace),
        ("l2", 1e-3, gaussian),
    ],
)
def test_the_sampler_is_the_estimator(norm, delta, law):
    (X, y), _ = neighbours(norm)
    state = InnerStream(bytes(32))
    model = DPRidge(
        random_state=state,
        norm=norm,
        delta=delta,
        data_norm=R,
        target_range=(-Y, Y),
        data_norm_l1=R if norm == "l1" else None,
    ).fit(X, y)
    released = np.column_stack([model.gram_, model.moment_])[released_entries(2, 4)[:3]]
    noise = statistic_noise(2, fit_intercept=True, norm=norm, epsilon=1.0, delta=delta)
    size = len(released)
    if law is laplace:
        step, sizes = 2.0**-38, units(2, True)[released_entries(2, 4)]
        unit = grid_noise(as_generator(state), size, noise.scales(2), step)
        # 19 bits: the least scale is 2.24, and the greatest power of two up to a 2^-40-th of it 4^-19
        expected = exact(X, y, norm, bits=19) + sizes * unit
    else:
        unit = law(as_generator(state), *((1, size) if law is spherical_laplace else (size,)))
        expected = exact(X, y, norm) + scales(2, noise, True) * np.ravel(unit)
    # noise that is not drawn on a grid is rounded to one, with the sums
    atol = 1e-12 if law is laplace else noise.step * max(R * R, R * Y)
    np.testing.assert_allclose(released, expected, rtol=1e-9, atol=atol)


def output_neighbours(p=1):
    """Two targets of opposite sign at a row of full length; all other records are 0."""
    X = np.zeros((n, p))
    X[0, 0] = 1.0
    return X, np.eye(n)[0], -np.eye(n)[0]


def test_output_perturbation_stays_under_the_claim():
    X, y, y_new = output_neighbours()
    model = DPRidge(
        alpha=4.0, perturbation="output", norm="l2", fit_intercept=False, target_range=(-1, 1)
    )
    centers = [clone_fit(model, X, t).coef_[0] for t in (y, y_new)]
    unit = spherical_laplace(as_generator(0), 2 * N, 1)[:, 0]
    for share, broken in ((1.0, False), (0.5, True)):
        noise = share * model.calibration(PublicShape(n, 1)).scales.output_scale * unit
        bound = loss_lower_bound(centers[0] + noise[:N], centers[1] + noise[N:])
        assert bound > 1.0 if broken else 0.6 < bound <= 1.0


def clone_fit(model, X, y):
    return DPRidge(**{**model.get_params(), "epsilon": INF}).fit(X, y)


# ---- the certificate ----


def score_change(model, X, y, x_new, y_new, score, probe):
    """How far the score at `probe` moves when record 0 is replaced, with the same noise."""
    X_new, y_swapped = X.copy(), y.copy()
    X_new[0], y_swapped[0] = x_new, y_new
    models = [fitted(model, X, y), fitted(model, X_new, y_swapped)]
    predictions = [m.predict(probe) for m in models]
    # where the squared error is steepest: just under its clip for the better model
    edge = max(p[0] for p in predictions) - math.sqrt(score.bound)
    values = [score(m, probe, np.array([edge])) for m in models]
    return abs(values[1] - values[0])


def attack(model, score, seed):
    """The change that was found, as a share of a certificate that is below its clip."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([30, 200, 1000]))
    X, y = rng.normal(size=(size, 2)), rng.normal(size=size)
    probe = np.array([[9.0, 0.0]])
    if seed % 2:
        X, y = np.zeros((size, 2)), np.zeros(size)
        X[0], y[0] = probe[0], 9.0
        x_new, y_new = probe[0], -9.0
    else:
        x_new, y_new = rng.normal(size=2) * 9, 9 * rng.choice([-1, 1])
    certificate = model.stability_certificate(score, size, 2)
    if certificate.training == certificate.span:
        return 0.0
    moved = score_change(model, X, y, x_new, y_new, score, probe)
    return moved / certificate.training


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_no_record_moves_a_score_further_than_certified(norm, fit_intercept, monkeypatch):
    score = ClippedSquaredErrorScore(0.3)
    cases = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        model = DPRidge(
            epsilon=10.0,
            alpha=float(rng.choice([0.3, 1.0, 5.0])),
            perturbation="output",
            norm=norm,
            fit_intercept=fit_intercept,
            coef_bound=float(rng.choice([0.05, 0.3, 10.0])),
            random_state=InnerStream(bytes(31) + bytes([seed])),
            target_range=(-1, 1),
            data_norm_l1=1.0 if norm == "l1" else None,
        )
        cases.append((model, seed))
    assert 0.5 <= max(attack(model, score, seed) for model, seed in cases) <= 1.0

    # a twin that counts one gradient of the replaced record in place of two
    right = DPRidge.stability_certificate

    def broken(self, *arguments):
        certificate = right(self, *arguments)
        return dataclasses.replace(certificate, training=certificate.training / 2)

    monkeypatch.setattr(DPRidge, "stability_certificate", broken)
    assert max(attack(model, score, seed) for model, seed in cases) > 1.0

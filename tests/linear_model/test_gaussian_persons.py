"""Gaussian noise where one person has any number of rows: what it spends, by exact densities."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from dpselect import DPHuberRegressor, DPLogisticRegression, DPPoissonRegressor
from dpselect.accounting.gaussian import gaussian_log_delta
from dpselect.linear_model.calibration import RESIDUAL_FRACTION
from dpselect.linear_model.gaussian_noise import calibrate_gaussian, gaussian_event
from dpselect.linear_model.losses import PseudoHuberLoss, WeightedLoss
from dpselect.mechanisms.person_objective import person_mu
from dpselect.metrics import RampScore
from dpselect.noise import root_stream
from dpselect.records.persons import Persons
from dpselect.records.public_shape import PublicShape

from .test_gaussian_noise import FAR, HINGE, HUBER, KINDS, LOGISTIC, MANY, minimisers, spent
from .test_persons import IDS, MODELS, N_ROWS, RowsCounted, WeightsForgotten, X, model_and_targets

INF = float("inf")


def calibrated(loss, n, alpha, epsilon, delta, dimension=2, n_problems=1, persons=True):
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
        persons=persons,
    )


def table(rows, targets, n, others=(1.0, 0.0)):
    """One person with these rows, and n - 1 with one row each."""
    rows, others = np.atleast_2d(rows), np.array(others)[None, :]
    counts = np.append(np.full(len(rows), 1 / len(rows)), n - 1.0)
    targets = np.broadcast_to(targets, len(rows))
    return np.vstack([rows, others]), np.append(targets, 1.0), counts


def fan(shares, n):
    """Persons whose rows pull the model in several directions, this way or that way."""
    return [
        table([[-share, side * math.sqrt(1 - share**2)] for share in shares], 1.0, n) for side in (1, -1)
    ]


# epsilon, delta, how far each row pulls against the others, and the share of delta that is spent
FANS = [
    (1.0, 1e-3, (0.05, 0.15), 0.15),
    (1.0, 1e-6, (0.2, 0.2, 0.2), 0.5),
    (3.0, 1e-3, (0.15, 0.45), 0.4),
]


@pytest.mark.parametrize("epsilon, delta, shares, least", FANS)
def test_several_rows_spend_what_is_stated(epsilon, delta, shares, least):
    s, record = (calibrated(LOGISTIC, MANY, 1e-300, epsilon, delta, persons=p) for p in (True, False))
    # the noise of a record, with a little less curvature
    assert s.linear_scale == record.linear_scale and 1 < s.mu / record.mu < 1.2
    assert least < spent(LOGISTIC, *fan(shares, MANY), s, epsilon, size=61) / delta <= 1
    # broken twins: half the noise, too much curvature, rows that are added up
    for name, factor, n in (("linear_scale", 1 / 2, MANY), ("mu", 1 / 20, 1e6)):
        twin = replace(s, **{name: factor * getattr(s, name)})
        assert spent(LOGISTIC, *fan(shares, n), twin, epsilon, size=41) > 5 * delta
    summed = [
        (rows, targets, np.append(np.ones(len(rows) - 1), counts[-1]))
        for rows, targets, counts in fan(shares, MANY)
    ]
    assert spent(LOGISTIC, *summed, s, epsilon, size=41) > 5 * delta


@pytest.mark.parametrize(
    "loss, alpha, one, other, least",
    [
        # nothing curves at 0, and both slopes are 1
        (HINGE, 100.0, [([[1.0, 0.0]] * 3, 1.0)], [([[-1.0, 0.0]], 1.0)], 0.8),
        (HUBER, 100.0, [([[1.0, 0.0]] * 2, FAR)], [([[1.0, 0.0]] * 3, -FAR)], 0.4),
        # two rows at a right angle curve in two directions
        (HINGE, 1e-3, [([[0.7, 0.7], [0.7, -0.7]], 1.0)], [([[-1.0, 0.0]], 1.0)], 0.0),
        (HUBER, 1e-3, [([[0.7, 0.7], [0.7, -0.7]], [0.0, FAR])], [([[1.0, 0.0]], -FAR)], 0.0),
        (PseudoHuberLoss(0.0, 1.0), 0.02, [([[1.0, 0.0]] * 2, [0.0, FAR])], [([[1.0, 0.0]], -FAR)], 0.0),
    ],
)
@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-3), (0.1, 1e-6)])
def test_other_losses_spend_what_is_stated(loss, alpha, one, other, least, epsilon, delta):
    s = calibrated(loss, 10.0, alpha, epsilon, delta)
    data, neighbour = (table(*pair[0], 10.0, others=(0.0, 0.0)) for pair in (one, other))
    found = [spent(loss, *pair, s, epsilon, size=61) for pair in ((data, neighbour), (neighbour, data))]
    assert least * delta <= max(found) <= delta
    if least:
        twin = replace(s, linear_scale=s.linear_scale / 2)
        assert spent(loss, data, neighbour, twin, epsilon) > 2 * delta


def scores(data, neighbour, t, s, size=61, reach=6.0):
    """The score of the way from the second to the first, at t, for noise on a grid, and its weights."""
    axis = np.linspace(-reach, reach, size)
    z = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    weights = np.exp(-(z**2).sum(axis=1) / 2) * (axis[1] - axis[0]) ** 2 / (2 * math.pi)
    rows, targets = (np.concatenate(pair) for pair in zip(data[:2], neighbour[:2]))
    counts = np.append(t * data[2], (1 - t) * neighbour[2])
    w = minimisers(LOGISTIC, rows, targets, counts, s.mu, s.linear_scale * z, np.zeros((1, 2)))

    def gradient_and_hessian(rows, targets, counts):
        u, n = w @ rows.T, data[2].sum()
        curved = LOGISTIC.second_derivative(u, targets) * counts / n
        return LOGISTIC.derivative(u.copy(), targets) * counts @ rows / n, np.einsum(
            "bk,ki,kj->bij", curved, rows, rows
        )

    (g, M), (other, N) = gradient_and_hessian(*data), gradient_and_hessian(*neighbour)
    A = t * M + (1 - t) * N + s.mu * np.eye(2)
    score = (z * (g - other)).sum(axis=1) / s.linear_scale
    return score + np.trace(np.linalg.solve(A, M - N), axis1=1, axis2=2), weights


@pytest.mark.parametrize("shares", [(0.05, 0.15), (-0.4, 0.0, 0.4)])
def test_scores_have_the_tails_of_a_gaussian_mechanism_all_the_way(shares):
    n, epsilon, delta = 1e3, 1.0, 1e-3
    s = calibrated(LOGISTIC, n, 1e-300, epsilon, delta)
    m = 2 / (n * s.linear_scale)
    for t in (0.0, 0.5, 1.0):
        found, weights = scores(*fan(shares, n), t, s)
        # without the trace the mean would not be 0
        assert weights @ found == pytest.approx(0, abs=1e-3 * m)
        for level in (epsilon - m * m / 2, epsilon, 1.5 * epsilon):
            y = level / m
            gaussian = m * (norm.pdf(y) - y * norm.sf(y))
            assert weights @ np.maximum(found - level, 0) <= gaussian


def test_classes_spend_a_joint_budget():
    # each class loses what a Gaussian mechanism does, where both slopes are 1: the losses' sum is normal
    epsilon, delta, K = 1.0, 1e-3, 3
    m, alone = (
        2 / (MANY * calibrated(LOGISTIC, MANY, 1.0, epsilon, delta, n_problems=k).linear_scale)
        for k in (K, 1)
    )
    joint = math.exp(gaussian_log_delta(epsilon, math.sqrt(K) * m))
    assert 0.1 * delta < joint <= delta
    assert math.exp(gaussian_log_delta(epsilon, math.sqrt(K) * alone)) > 10 * delta


@pytest.mark.parametrize(
    "epsilon, delta, n_problems, weight",
    [(0.1, 1e-6, 10, 1.0), (1.0, 1e-6, 3, 3.0), (3.0, 1e-5, 3, 1.0)],
)
def test_classes_hide_as_much_curvature_as_there_is(epsilon, delta, n_problems, weight):
    """Their noise is what is proved at the curvature that the regularisation leaves, and not at less."""
    n, loss = 1000, LOGISTIC if weight == 1 else WeightedLoss(LOGISTIC, weight)
    s = calibrated(loss, n, 1e-9, epsilon, delta, n_problems=n_problems)
    left = tuple((1 - RESIDUAL_FRACTION) * whole for whole in (epsilon, delta))
    proved, with_less = (
        person_mu(*left, n_problems, kappa=part * weight / (n * s.mu)) for part in (1, 1e-6)
    )
    used = 2 * weight / (n * s.linear_scale)
    assert 0.999 * proved < used <= proved * (1 + 1e-9) < 0.999 * with_less


@pytest.mark.parametrize("n", [10.0, MANY])
def test_events_hold_at_every_epsilon(n):
    s = calibrated(LOGISTIC, n, 1e-300 if n == MANY else 0.5, 1.0, 1e-3)
    shape = {"n_samples": n, "radius": 1.0, "epsilon": 1.0, "delta": 1e-3, "n_problems": 1}
    event, record = (
        gaussian_event("objective", LOGISTIC, s, **shape, learned=False, persons=p)
        for p in (True, False)
    )
    assert event.shift > record.shift and record.tail_from <= event.tail_from < 1.1
    learned = gaussian_event("objective", LOGISTIC, s, **shape, learned=True, persons=True)
    assert learned.shift >= event.shift and learned.mu >= event.mu * (1 - 1e-9)
    data, neighbour = fan((0.05, 0.15), n)
    for epsilon in (0.0, 0.3, 0.6, event.tail_from):
        for pair in ((data, neighbour), (neighbour, data)):
            assert spent(LOGISTIC, *pair, s, epsilon, size=41) <= event.profile(np.array([epsilon]))[0]
    less = replace(s, linear_scale=s.linear_scale / 4)
    assert spent(LOGISTIC, data, neighbour, less, 0.6, size=41) > 2 * event.profile(0.6)
    # where a row would pay a logarithm, no tail is known
    hinge = calibrated(HINGE, 10.0, 0.5, 1.0, 1e-3)
    shape["n_samples"] = 10.0
    event = gaussian_event("objective", HINGE, hinge, **shape, learned=False, persons=True)
    assert event.tail_delta == 0


# --- fits


DELTA = {"delta": 1e-3, "epsilon": 0.4, "alpha": 10.0}


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("name", MODELS)
def test_one_row_a_person_is_a_record(name, perturbation):
    model, y = model_and_targets(name, perturbation=perturbation, **DELTA)
    wide = np.hstack([X, X[:, ::-1] ** 2, np.sin(9 * X), np.cos(5 * X)])
    record = model.fit(wide, y)
    assert record.privacy_.delta == 1e-3
    expected = record.coef_
    person = clone(model).fit(wide, y, groups=np.arange(N_ROWS))
    assert person.privacy_.delta == 1e-3 and "person" in person.privacy_.adjacency
    if perturbation == "output" or name == "steep":
        assert np.array_equal(person.coef_, expected)
    else:  # a person may curve in more directions than a row
        assert person.coef_ == pytest.approx(expected, rel=0.05, abs=0.05 * abs(expected).max())
    # and rows in any order, of persons with many
    many = clone(model).fit(wide, y, groups=IDS).coef_
    order = np.random.default_rng(0).permutation(N_ROWS)
    again = clone(model).fit(wide[order], y[order], groups=IDS[order]).coef_
    assert again == pytest.approx(many, rel=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_calibrations_of_persons_and_of_records(kind):
    public = {
        DPHuberRegressor: {"target_range": (-4, 4)},
        DPPoissonRegressor: {"target_bound": 5.0},
    }.get(kind, {"classes": [0, 1]})
    model = kind(delta=1e-6, **public)
    person, record = (model.calibration(PublicShape(1000, 50, persons=p)) for p in (True, False))
    assert person.law == record.law == "gaussian" and person.alpha == record.alpha
    # curvature costs a person a little more
    assert 1 <= person.scales.linear_scale / record.scales.linear_scale < 1.03
    assert 1 <= person.scales.mu / record.scales.mu < 1.03
    if kind is DPLogisticRegression:
        model.set_params(max_derivative=None)
        person, record = (model.calibration(PublicShape(1000, 50, persons=p)) for p in (True, False))
        assert person.scales == record.scales and person.risk_bound(2.0) == record.risk_bound(2.0)
        found = person.certificate(RampScore(-2, 2), failure_probability=1e-6)
        assert found == record.certificate(RampScore(-2, 2), failure_probability=1e-6)


@pytest.mark.slow
def test_no_budget_is_too_large_or_too_small():
    for epsilon in (1e-4, 1e3, 1e6):
        for loss, K in ((LOGISTIC, 1), (LOGISTIC, 3), (HINGE, 1), (HUBER, 1)):
            s = calibrated(loss, 100.0, 1e-3, epsilon, 1e-6, n_problems=K)
            assert 0 < s.linear_scale < INF
            if loss is LOGISTIC:
                assert s.mu * 100 * epsilon * (1 - RESIDUAL_FRACTION) * (1 + 1e-12) >= 2 * K


@pytest.mark.slow
def test_twins_of_fits_are_as_wrong_as_without_a_delta():
    """Weights that are forgotten, and noise of as many persons as there are rows."""
    rows, y, ids = np.full((49, 12), 0.2), np.ones(49, dtype=int), np.minimum(np.arange(49), 9)

    def fitted(kind, epsilon, i=0, rows=rows):
        return (
            kind(
                classes=[0, 1],
                fit_intercept=False,
                delta=1e-3,
                epsilon=epsilon,
                alpha=1.0,
                random_state=root_stream(i),
            )
            .fit(rows, y, groups=ids)
            .coef_
        )

    other = np.where(ids[:, None] == 9, -rows, rows)  # all 40 rows of one of ten persons
    moved = {
        kind: np.linalg.norm(fitted(kind, INF) - fitted(kind, INF, rows=other))
        for kind in (DPLogisticRegression, WeightsForgotten)
    }
    assert moved[DPLogisticRegression] < 2 / 10 < moved[WeightsForgotten]
    spread = [
        np.std([fitted(kind, 1.0, i) - fitted(kind, INF) for i in range(20)])
        for kind in (DPLogisticRegression, RowsCounted)
    ]
    assert spread[1] / spread[0] == pytest.approx(10 / 49, rel=0.1)
    assert Persons.of(ids, rows).n == 10

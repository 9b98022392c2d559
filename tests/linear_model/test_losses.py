import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from dpselect.linear_model.losses import (
    CappedLogisticLoss,
    HuberHingeLoss,
    LogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
    WeightedLoss,
)

LOSSES = [
    LogisticLoss(),
    *map(CappedLogisticLoss, (0.5, 0.6, 0.9)),
    HuberHingeLoss(),
    HuberHingeLoss(0.1),
    HuberHingeLoss(1 / 3),
    HuberHingeLoss(2.0),
    *map(PoissonLoss, (0.05, 0.7, 1.0, 3.0, 40.0)),
    PseudoHuberLoss(50.0, 10.0),
]
Z = np.linspace(-40, 40, 200_001)


def targets(loss):
    """The extreme targets, and others."""
    if isinstance(loss, PseudoHuberLoss):
        return loss.centre + loss.unit * np.array([-1e300, -30.0, -0.3, 0.0, 1.0, 1e300])
    bound = getattr(loss, "target_bound", None)
    # what lies beyond is clipped
    return np.array([-1.0, 1.0]) if bound is None else bound * np.array([-2.0, 0.0, 0.3, 1.0, 9.0])


def on_grid(function, loss, z=Z):
    return np.array([function(z.copy(), t) for t in targets(loss)])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivatives(loss):
    middle, tolerance = (Z[1:] + Z[:-1]) / 2, {"rtol": 1e-4, "atol": 1e-4 * loss.lipschitz}
    first, second = (np.diff(on_grid(f, loss)) / (Z[1] - Z[0]) for f in (loss.value, loss.derivative))
    np.testing.assert_allclose(first, on_grid(loss.derivative, loss, middle), **tolerance)
    expected = on_grid(loss.second_derivative, loss, middle)
    corners = ~np.isclose(second, expected, **tolerance)
    assert corners.sum(axis=1).max() <= 4


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_constants_are_bounds_and_tight(loss):
    first, second = (on_grid(f, loss) for f in (loss.derivative, loss.second_derivative))
    for bound, found in [
        (loss.lipschitz, np.abs(first)),
        (loss.curvature, second),
        (loss.pull, -Z * first),
    ]:
        assert bound == np.inf or 0.999 * bound <= found.max() <= bound
    assert second.min() >= 0 and (on_grid(loss.value, loss).min() >= 0) == loss.nonnegative


@pytest.mark.parametrize("bound", [0.5, 3.0, 8.0])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_spans_are_bounds_and_tight(loss, bound):
    z = Z[np.abs(Z) <= bound]
    values = on_grid(loss.value, loss, z)
    assert values.max() == pytest.approx(loss.largest(bound), rel=1e-3)
    assert np.ptp(values) <= loss.span(bound) * (1 + 1e-12)
    # the targets of this grid meet the rate at no prediction if the ball is small
    assert bound < 3 or np.ptp(values) >= 0.9 * loss.span(bound)
    assert values.max() <= loss.largest(bound) * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_bounds_of_weighted_losses_hold_whatever_a_record_weighs(loss):
    W, bound = 3.0, 8.0
    z, weighted = Z[np.abs(Z) <= bound][::100], WeightedLoss(loss, W)
    value, first, second = (
        np.multiply.outer([0.0, 1.0, W], on_grid(f, loss, z))
        for f in (loss.value, loss.derivative, loss.second_derivative)
    )
    for stated, found in [
        (weighted.span(bound), np.ptp(value)),
        (weighted.largest(bound), value.max()),
        (weighted.lipschitz, np.abs(first).max()),
        (weighted.curvature, second.max()),
    ]:
        assert found <= stated * (1 + 1e-12)
    assert np.ptp(value) >= 0.9 * weighted.span(bound)


def test_a_rate_that_meets_its_target_costs_nothing():
    loss, rates = PoissonLoss(7.0), np.array([1e-9, 0.3, 1.0, 6.99, 7.0])
    z = np.log(rates)
    np.testing.assert_allclose(loss.rate(z), rates, rtol=1e-14)
    np.testing.assert_allclose(loss.value(z, rates), 0.0, atol=1e-14)
    np.testing.assert_allclose(loss.derivative(z, rates), 0.0, atol=1e-14)


def test_extreme_predictions_do_not_overflow():
    z = np.array([-1e306, -800.0, 800.0, 1e306])
    for loss in LOSSES:
        with np.errstate(over="raise", invalid="raise"):
            for function in (loss.value, loss.derivative, loss.second_derivative):
                assert np.isfinite(on_grid(function, loss, z)).all()


# --- what predictions say


CAPPED = [*map(CappedLogisticLoss, (0.5, 0.6, 0.75, 0.9, 0.999))]


def expected_loss(loss, z, p):
    return p * loss.value(np.float64(z)) + (1 - p) * loss.value(np.float64(-z))


@pytest.mark.parametrize("p", [1e-6, 0.02, 0.3, 0.45, 0.5, 0.7, 0.999])
@pytest.mark.parametrize("loss", [LogisticLoss(), *CAPPED], ids=repr)
def test_the_least_expected_loss_is_where_the_probability_is_predicted(loss, p):
    best = minimize_scalar(
        lambda z: expected_loss(loss, z, p), bounds=(-40, 40), method="bounded", options={"xatol": 1e-12}
    ).x
    assert expit(loss.decision(np.float64(best))) == pytest.approx(p, rel=1e-4)
    # and exactly: there the derivative is 0
    z = loss.prediction(np.array([logit(p)]))
    slope = p * loss.derivative(z.copy()) - (1 - p) * loss.derivative(-z)
    assert abs(slope) <= 1e-12 * min(p, 1 - p)
    if isinstance(loss, CappedLogisticLoss) and min(p, 1 - p) < 0.9 * (1 - loss.max_derivative):
        # the logistic function of the prediction is not
        assert abs(expit(best) - p) > 0.05 * min(p, 1 - p) * (1 - loss.max_derivative)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_decisions_rise_with_predictions_and_by_no_more(loss):
    if not hasattr(loss, "decision"):
        assert "target_bound" in vars(loss) or "centre" in vars(loss)
        return
    found = loss.decision(Z.copy())
    slopes = np.diff(found) / np.diff(Z)
    assert slopes.max() <= 1 + 1e-9 and slopes.min() >= getattr(loss, "max_derivative", 1) - 1e-9
    assert np.array_equal(loss.decision(-Z), -found) and (np.abs(found) <= np.abs(Z)).all()
    np.testing.assert_allclose(loss.prediction(found), Z, rtol=0, atol=1e-13)
    # bounds that scores have in the decision: of a probability, 1 / 4
    assert (np.diff(expit(found)) / np.diff(Z)).max() <= 0.25


def test_how_fast_probabilities_rise():
    # dp / dz = L s (1 - s) / (s + L)^2 below 1 - L, which is at most 1 / 6 for L = 1 / 2
    z, loss = np.linspace(-9, -0.45, 10_001), CappedLogisticLoss(0.6)
    s = expit(z)
    found = np.gradient(expit(loss.decision(z.copy())), z)
    np.testing.assert_allclose(found[1:-1], (0.6 * s * (1 - s) / (s + 0.6) ** 2)[1:-1], atol=1e-6)
    half = expit(CappedLogisticLoss(0.5).decision(Z.copy()))
    assert (np.diff(half) / np.diff(Z)).max() == pytest.approx(1 / 6, rel=1e-5)


def test_extreme_decisions():
    z = np.array([-np.inf, -1e300, -800.0, -0.0, 0.0, 800.0, 1e300, np.inf, np.nan])
    for loss in CAPPED:
        with np.errstate(all="raise", under="ignore"):
            found, back = loss.decision(z.copy()), loss.prediction(z.copy())
        # far out the odds of a rare label are divided by L
        np.testing.assert_array_equal(found, z + np.log(loss.max_derivative) * np.sign(z))
        np.testing.assert_allclose(back, z - np.log(loss.max_derivative) * np.sign(z), rtol=1e-15)

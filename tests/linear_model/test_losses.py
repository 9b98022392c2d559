import numpy as np
import pytest

from dpselect.linear_model.losses import HuberHingeLoss, LogisticLoss

LOSSES = [LogisticLoss(), HuberHingeLoss(), HuberHingeLoss(0.1), HuberHingeLoss(1 / 3),
          HuberHingeLoss(2.0)]
U = np.linspace(-40, 40, 800_001)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivatives(loss):
    step = U[1] - U[0]
    middle = (U[1:] + U[:-1]) / 2
    np.testing.assert_allclose(np.diff(loss.value(U)) / step, loss.derivative(middle), atol=1e-4)
    kinks = np.abs(np.abs(1 - middle) - getattr(loss, "width", np.inf)) < 2 * step
    np.testing.assert_allclose(
        (np.diff(loss.derivative(U)) / step)[~kinks], loss.second_derivative(middle)[~kinks], atol=1e-4
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_constants_are_bounds_and_tight(loss):
    assert loss.derivative(U).min() >= -1 and loss.derivative(U).max() <= 0
    assert loss.second_derivative(U).min() >= 0
    assert loss.curvature * 0.999 <= loss.second_derivative(U).max() <= loss.curvature
    pulls = -U * loss.derivative(U)
    assert loss.pull * (1 - 1e-6) <= pulls.max() <= loss.pull


def test_extreme_margins_do_not_overflow():
    u = np.array([-1e308, -800.0, 800.0, 1e308])
    for loss in LOSSES:
        with np.errstate(over="raise", invalid="raise"):
            assert np.isfinite(loss.value(u)).all()
            assert np.isfinite(loss.derivative(u)).all() and np.isfinite(loss.second_derivative(u)).all()

"""Constants of a problem bound its loss for all weights, offsets and targets, and nearly are reached.

The noise, the length of a minimiser, and the risk that a model can reach follow from them.
"""

import numpy as np
import pytest

from dpselect import DPHuberRegressor, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor
from dpselect.linear_model.linear_noise import LinearProblem

Z = np.linspace(-60, 60, 60_001)
RARE, THREE = {"classes": [0, 1], "base_rate": 0.01}, {"classes": [0, 1, 2]}
MODELS = {
    "logistic": DPLogisticRegression(**RARE),
    "steep": DPLogisticRegression(**RARE, max_derivative=None),
    "heavy": DPLogisticRegression(**RARE, max_sample_weight=20.0),
    "light": DPLogisticRegression(**RARE, max_sample_weight=0.1),
    "of classes": DPLogisticRegression(**RARE, class_weight={0: 0.5, 1: 8.0}),
    "of both": DPLogisticRegression(**RARE, class_weight={0: 0.5, 1: 8.0}, max_sample_weight=3.0),
    "three": DPLogisticRegression(
        **THREE, base_rate={0: 0.01, 1: 0.3, 2: 0.6}, class_weight={0: 5.0, 1: 1.0, 2: 0.2}
    ),
    "svc": DPLinearSVC(classes=[0, 1], class_weight={0: 0.5, 1: 8.0}),
    "poisson": DPPoissonRegressor(target_bound=5.0, base_rate=0.02),
    "heavy poisson": DPPoissonRegressor(target_bound=5.0, base_rate=0.02, max_sample_weight=4.0),
    "huber": DPHuberRegressor(target_range=(0, 1), max_sample_weight=4.0),
}


def targets(model):
    if isinstance(model, DPPoissonRegressor):
        return [0.0, 1.0, model.target_bound]
    return [-1e6, 0.5, 1e6] if isinstance(model, DPHuberRegressor) else [-1.0, 1.0]


def largest(model, value):
    """Return the largest number that `value` has for a prediction beside its offset, and a target."""
    problem = model.problem()
    weight = 1.0 if problem.weights is None else problem.weights.largest
    return max(
        (weight * value(problem.loss, Z + offset, target)).max()
        for offset in problem.offsets or (0.0,)
        for target in targets(model)
    )


def check_constants(model):
    problem = model.problem()
    slope = largest(model, lambda loss, z, t: np.abs(loss.derivative(z, t)))
    assert 0.99 * problem.loss.lipschitz <= slope <= problem.loss.lipschitz
    curved = largest(model, lambda loss, z, t: loss.second_derivative(z, t))
    assert 0.99 * problem.loss.curvature <= curved <= problem.loss.curvature * (1 + 1e-12)
    # how far the loss can draw a prediction, counted from its offset, away from 0
    drawn = largest(model, lambda loss, z, t: -Z * loss.derivative(z, t))
    assert drawn <= problem.pull and (drawn >= 0.4 * problem.pull or problem.pull == np.inf)


@pytest.mark.parametrize("name", MODELS)
def test_constants(name):
    check_constants(MODELS[name])


BROKEN = {
    "weights forgotten beside offsets": (
        lambda self: self.loss.pull + self.loss.unweighted.lipschitz * self.farthest_offset,
        ["heavy", "of classes", "of both", "heavy poisson"],
    ),
    "a largest derivative of 1": (
        lambda self: self.loss.pull + self.farthest_offset,
        ["heavy", "of classes", "three", "poisson"],
    ),
    "offsets forgotten": (lambda self: self.loss.pull, ["logistic", "steep", "light", "poisson"]),
}


@pytest.mark.parametrize(
    "kind, name", [(kind, name) for kind, (_, names) in BROKEN.items() for name in names]
)
def test_a_bound_that_is_too_small_is_found(kind, name, monkeypatch):
    monkeypatch.setattr(LinearProblem, "pull", property(BROKEN[kind][0]))
    with pytest.raises(AssertionError):
        check_constants(MODELS[name])

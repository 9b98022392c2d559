"""The least risk of ridge regression over a ball, and its sensitivity.

Symbols as in :mod:`~dpselect.linear_model.ridge.calibration`. The risk is that of predicting 0,
mean(y^2) / 2, less: a shift that all candidates with the same target_range share. Targets and
predictions are counted from the middle of that range.
"""

import math

from ...base.certificates import INEXACTNESS, RiskBound
from ...noise.tails import noise_length
from .calibration import RESIDUAL
from .decomposition import Decomposition
from .sums import outer_sums


def ridge_risk_bound(calibration, reach):
    """Return the RiskBound of ridge regression; a `reach` of more than 1 counts as 1.

    Notes
    -----
    As for linear classifiers, the value moves by at most the span over n of one record's loss
    at a minimiser. With y^2 / 2 taken off, that loss is u^2 / 2 - u y. For |u| <= U <= Y and
    |y| <= Y it lies between U^2 / 2 - U Y and U^2 / 2 + U Y: its span is 2 U Y. With y^2 / 2 it
    would be (U + Y)^2 / 2, which is more.

    The forecast is as for linear classifiers, with R^2 / d for the curvature.
    """
    problem, mu = calibration.problem, calibration.mu
    n, d, R, Y = calibration.shape.n_samples, calibration.dimension, problem.radius, problem.target_bound
    ball = _ball(calibration, reach)
    span = 2 * R * ball * Y
    # a solution's residual tau raises its value by at most tau^2 / (2 mu); the rest is rounding
    tau = RESIDUAL * problem.gradient_change()
    residual = (tau * tau / (2 * mu) + INEXACTNESS * span / n) / 2
    average = R**2 / d
    if problem.perturbation == "output":
        added = calibration.scales.output_scale * noise_length("l2", d)
        forecast = added * added * (average + mu) / 2
    else:
        added = calibration.gradient_noise(ball / 2)
        forecast = added * added / (2 * (mu + average))
    middle = problem.centre
    unit = ("half the mean squared error to targets between", middle - Y, "and", middle + Y)
    return RiskBound.of(span, n, residual, forecast, ball, unit, stake=Y**2 / 2)


def ridge_optimal_values(problem, calibrations, records, reach):
    """Return the least risks over balls of models of one RidgeProblem, relative to predicting 0."""
    sums = outer_sums(records, None, problem)
    means = sums.values * sums.units / sums.n_samples
    gram, moment = means[:-1, :-1], means[:-1, -1]
    decomposed = Decomposition.of(gram, moment, 0.0)

    def value(calibration):
        mu = calibration.mu
        w = decomposed.minimiser(mu, _ball(calibration, reach))
        return (w @ gram @ w + mu * w @ w) / 2 - moment @ w

    return [value(calibration) for calibration in calibrations]


def _ball(calibration, reach):
    """Return a radius that bounds the coefficients, with predictions within the target's range.

    For mu in place of lambda the minimiser is still shorter than Y / (2 sqrt(lambda)).
    """
    problem = calibration.problem
    natural = problem.target_bound / (2 * math.sqrt(calibration.mu))
    target = min(reach, 1.0) * problem.target_bound / problem.radius
    return min(problem.ball, natural, target)

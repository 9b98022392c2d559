"""The least risk of ridge regression over a ball, and how far one record moves it.

Symbols as in :mod:`~dpselect.linear_model.ridge.calibration`. The risk is that of predicting 0,
mean(y^2) / 2, less: a shift that all candidates with the same target_bound share.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...certificates import INEXACTNESS, RiskBound
from ...estimator import Trial
from ...noise.tails import noise_length
from ...type_aliases import FloatArray, MatrixLike
from ..sweep import alike
from .calibration import RESIDUAL
from .noise import Decomposition
from .sums import outer_sums


def ridge_risk_bound(calibration, reach):
    """Return the RiskBound of ridge regression; a `reach` of more than 1 is 1.

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
    residual = (tau**2 / (2 * mu) + INEXACTNESS * span / n) / 2
    average = R**2 / d
    if problem.perturbation == "output":
        added = calibration.scales.output_scale * noise_length("l2", d)
        forecast = added**2 * (average + mu) / 2
    else:
        forecast = calibration.gradient_noise(ball / 2) ** 2 / (2 * (mu + average))
    unit = ("half the mean squared error to targets within", Y)
    return RiskBound.of(span, n, residual, forecast, ball, unit, stake=Y**2 / 2)


def ridge_optimal_values(
    trials: Sequence[Trial], X: MatrixLike, y: npt.ArrayLike, reach: float
) -> FloatArray:
    """Return the least risks of ridge regressions over their balls, less that of predicting 0.

    Those that see the records alike share one pass over them.

    Parameters
    ----------
    trials : list of Trial
        Models and what they will be trained with.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    reach : float
        As for :func:`ridge_risk_bound`.

    Returns
    -------
    ndarray of shape (len(trials),)
        Exact functions of the records, which must not leave a search without noise.
    """
    values = np.empty(len(trials))
    for problem, members in alike(trials):
        records = trials[members[0]].records(X, y)
        sums = outer_sums(records.X, records.y, None, problem)
        means = sums.values * sums.units / sums.n_samples
        gram, moment = means[:-1, :-1], means[:-1, -1]
        decomposed = Decomposition.of(gram, moment, 0.0)
        for i in members:
            calibration = trials[i].calibration(records.shape)
            mu = calibration.mu
            w = decomposed.minimiser(mu, _ball(calibration, reach))
            values[i] = (w @ gram @ w + mu * w @ w) / 2 - moment @ w
    return values


def _ball(calibration, reach):
    """Return a radius within which the coefficients stay, and predictions reach as far as the target.

    For mu in place of lambda the minimiser is still shorter than Y / (2 sqrt(lambda)).
    """
    problem = calibration.problem
    natural = problem.target_bound / (2 * math.sqrt(calibration.mu))
    target = min(reach, 1.0) * problem.target_bound / problem.radius
    return min(problem.ball, natural, target)

"""The least risk of ridge regression over a ball, and how far one record moves it.

Symbols as in :mod:`~dpselect.linear_model.ridge.calibration`. The risk is that of predicting 0,
mean(y^2) / 2, less: a shift that all candidates with the same target_bound share.
"""

import math

import numpy as np

from ...certificates import INEXACTNESS, RiskBound
from ...noise.tails import noise_length
from ...records import regression_records
from .calibration import RESIDUAL
from .noise import Reading
from .sums import exact_sums


def ridge_risk_bound(model, n_samples, n_features, reach):
    """Return the RiskBound of ridge regression.

    Parameters
    ----------
    model : DPRidge
        With the epsilon that it will be trained with.
    n_samples, n_features : int
        Shape of X.
    reach : float
        Largest prediction of a model in the ball, in units of target_bound; more than 1 is 1.

    Returns
    -------
    RiskBound

    Notes
    -----
    As for linear classifiers, the value moves by at most the span over n of one record's loss
    at a minimiser. With y^2 / 2 taken off, that loss is u^2 / 2 - u y. For |u| <= U <= Y and
    |y| <= Y it lies between U^2 / 2 - U Y and U^2 / 2 + U Y: its span is 2 U Y. With y^2 / 2 it
    would be (U + Y)^2 / 2, which is more.

    The forecast is as for linear classifiers, with R^2 / d for the curvature.
    """
    n, d = n_samples, n_features + bool(model.fit_intercept)
    mu = _mu(model, n, d)
    ball = _ball(model, mu, reach)
    R, Y = model._row_radius(), float(model.target_bound)
    span = 2 * R * ball * Y
    # a solution's residual tau raises its value by at most tau^2 / (2 mu); the rest is rounding
    tau = RESIDUAL * model._gradient_change("l2")
    residual = (tau**2 / (2 * mu) + INEXACTNESS * span / n) / 2
    average = R**2 / d
    if model.perturbation == "output":
        added = model._noise(n, d).output_scale * noise_length("l2", d)
        forecast = added**2 * (average + mu) / 2
    else:
        gradient = _gradient_noise(model, n, n_features, ball / 2)
        forecast = gradient**2 / (2 * (mu + average))
    unit = ("half the mean squared error to targets within", Y)
    return RiskBound.of(span, n, residual, forecast, ball, unit, stake=Y**2 / 2)


def ridge_optimal_values(models, X, y, reach):
    """Return the least risks of ridge regressions over their balls, less that of predicting 0.

    Those that see the records alike share one pass over them.

    Parameters
    ----------
    models : list of DPRidge
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    reach : float
        As for :func:`ridge_risk_bound`.

    Returns
    -------
    ndarray of shape (len(models),)
        Exact functions of the records, which must not leave a search without noise.
    """
    alike = {}
    for i, model in enumerate(models):
        alike.setdefault(tuple(model._bounds().values()), []).append(i)
    values = np.empty(len(models))
    for members in alike.values():
        leader = models[members[0]]
        rows, targets = regression_records(leader, X, y)
        n = rows.shape[0]
        sums = exact_sums(rows, targets, **leader._bounds()) / n
        gram, moment = sums[:-1, :-1], sums[:-1, -1]
        reading = Reading.of(gram, moment, 0.0)
        for i in members:
            mu = _mu(models[i], n, len(moment))
            w = reading.minimiser(mu, _ball(models[i], mu, reach))
            values[i] = (w @ gram @ w + mu * w @ w) / 2 - moment @ w
    return values


def _mu(model, n_samples, dimension):
    """Return mu, which is lambda unless objective perturbation adds to it."""
    if model.perturbation == "objective":
        return model._noise(n_samples, dimension).mu
    return float(model.alpha)


def _ball(model, mu, reach):
    """Return a radius within which the coefficients stay, and predictions reach as far as wanted.

    For mu in place of lambda the minimiser is still shorter than Y / (2 sqrt(lambda)).
    """
    natural = float(model.target_bound) / (2 * math.sqrt(mu))
    wanted = min(reach, 1.0) * float(model.target_bound) / model._row_radius()
    return min(model._ball_radius(), natural, wanted)


def _gradient_noise(model, n_samples, n_features, length):
    """Return the root mean square length of the noise in the gradient at coefficients.

    With covariance perturbation it is (noise in X'X) theta - (noise in X'y), for theta of
    the given length.
    """
    d = n_features + bool(model.fit_intercept)
    if model.perturbation == "objective":
        return model._noise(n_samples, d).linear_scale * noise_length(model.norm, d)
    noise, R = model._statistic_noise(n_features), float(model.data_norm)
    spread = noise.spread * R / n_samples
    return spread * math.sqrt(d) * math.hypot(R * length, model.target_bound / noise.weights[-1])

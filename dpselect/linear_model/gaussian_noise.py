"""Calibrate the Gaussian noise of a linear model, where a delta is accepted.

Symbols as in :mod:`~dpselect.linear_model.calibration`. Noise hides all one-vs-rest problems together.
The proofs are on the pages "Gaussian noise in the objective" and "A person, not a row" of the
documentation.
"""

import math
from dataclasses import replace

from ..accounting.events import GaussianEvent, ObjectiveEvent
from ..accounting.gaussian import gaussian_mu
from ..mechanisms.gaussian_objective import LARGEST, largest_kappa, objective_mu, signless_mu
from ..mechanisms.person_objective import person_kappa, person_mu, person_signless_mu
from .calibration import (
    RESIDUAL_FRACTION,
    Perturbation,
    extra_regularisation,
    minimiser_sensitivity,
)
from .losses import LogisticLoss, MarginLoss, PseudoHuberLoss, WeightedLoss
from .tolerance import check_steps, harmless_scale, tightened

# ends of the parts of the range of slopes, each with its own cost of curvature
SLOPES = tuple(i / 8 for i in range(9))


def calibrate_gaussian(
    perturbation,
    loss,
    *,
    n_samples,
    dimension,
    radius,
    alpha,
    epsilon,
    delta,
    n_problems,
    tol,
    origin=0.0,
    persons=False,
):
    """Return the Gaussian noise that makes all one-vs-rest problems (epsilon, delta)-private together.

    Parameters and what is raised are those of :func:`~dpselect.linear_model.calibration.calibrate`, with
    finite `epsilon` and `delta` for all problems together. The residual of objective perturbation is
    hidden by a thousandth of both.

    Returns
    -------
    Perturbation
        Of each problem.
    """
    n, d, R = n_samples, dimension, radius
    mu, linear_scale, fraction = alpha, 0.0, 1.0
    if perturbation == "objective":
        fraction = RESIDUAL_FRACTION
        main, remaining = epsilon - fraction * epsilon, delta - fraction * delta
        mu += _extra_regularisation(loss, n, R, alpha, main, remaining, n_problems, persons)
        m = _objective_mu(loss, R**2 / (n * mu), main, remaining, n_problems, persons)
        linear_scale = 2 * (loss.lipschitz * R) / (n * m)
    sharpness = _output_mu(fraction * epsilon, fraction * delta, n_problems)
    t = linear_scale * math.sqrt(d) + mu * origin
    if linear_scale:
        harmless = harmless_scale(loss, R, mu, d, linear_scale)
        goal, tau = tightened(loss, R, mu, t, tol, harmless * mu * sharpness / 2)
        moved = 2 * tau / mu
    else:
        goal, tau = tightened(loss, R, mu, t, tol)
        moved = minimiser_sensitivity(loss, R, n, mu, tau)
    scales = Perturbation.on_grid(
        mu, linear_scale, moved, tau, d, alpha=alpha, epsilon=epsilon, loss=sharpness, goal=goal
    )
    check_steps(loss, R, mu, t, goal, d, alpha, tol)
    return scales


def gaussian_event(
    perturbation,
    loss,
    scales,
    *,
    n_samples,
    radius,
    epsilon,
    delta,
    n_problems,
    learned,
    persons=False,
):
    """Return the Event of Gaussian noise: proposition 6 of the page "Gaussian noise in the objective".

    With `learned` it is that for the worst bounds of rows, which were not known beforehand.
    """
    if perturbation == "output":
        return GaussianEvent(gaussian_mu(epsilon, delta))
    n, R, K, main = n_samples, radius, n_problems, epsilon - RESIDUAL_FRACTION * epsilon
    free = type(loss.unweighted) is LogisticLoss
    # the rows of a person contribute curvature in many directions
    determinant = (lambda trace: trace) if persons else math.log1p
    if learned:
        m = gaussian_sharpness(perturbation, loss, epsilon, delta, K, persons)
        # both are upper bounds after _extra_regularisation
        curvature = K * determinant(largest_kappa(main, K) / 4) if free else main / 2
    else:
        m = 2 * (loss.lipschitz * R) / (n * scales.linear_scale)
        curvature = K * determinant(loss.curvature * R**2 / (n * scales.mu))
    slopes = 1 if isinstance(loss.unweighted, MarginLoss) else 2
    residual = gaussian_mu(RESIDUAL_FRACTION * epsilon, RESIDUAL_FRACTION * delta)
    shift = K * (slopes * m / math.sqrt(2 * math.pi) + m * m / 2) + curvature + residual**2 / 2
    up = 1 + 2**-40  # covers rounding errors
    event = ObjectiveEvent(math.hypot(math.sqrt(K) * m, residual) * up, shift * up)
    if K > 1 or slopes > 1 or learned or (persons and not free):
        return event
    # lemma 1; only for the logistic loss with its curvature
    kappa = 4 * loss.curvature * R**2 / (n * scales.mu) if free else 0.0
    lost = RESIDUAL_FRACTION * epsilon + (0.0 if free else curvature)
    tail_from = max(2 * kappa, 2 * m) + m * m / 2 if persons else max(2 * kappa, 2 * m + m * m / 2)
    return replace(
        event,
        tail_from=(tail_from + lost) * up,
        tail_mu=m * up,
        tail_lost=lost * up,
        tail_delta=RESIDUAL_FRACTION * delta * up,
    )


def gaussian_sharpness(perturbation, loss, epsilon, delta, n_problems, persons=False):
    """Return m, the sensitivity in standard deviations, where curvature costs nothing."""
    if perturbation == "output":
        return _output_mu(epsilon, delta, n_problems)
    remaining = 1 - RESIDUAL_FRACTION
    return _objective_mu(loss, 0.0, remaining * epsilon, remaining * delta, n_problems, persons)


def _output_mu(epsilon, delta, n_problems):
    # together the problems move sqrt(K) times as far as one
    return gaussian_mu(epsilon, delta) / math.sqrt(n_problems)


def _extra_regularisation(loss, n, R, alpha, epsilon, delta, n_problems, persons):
    if type(loss.unweighted) is LogisticLoss:
        kappa = (
            person_kappa(epsilon, delta, n_problems) if persons else largest_kappa(epsilon, n_problems)
        )
        least = _weight(loss) * R**2 / (n * kappa)
    elif persons:
        # curvature adds at most half of epsilon to all scores
        least = 2 * n_problems * loss.curvature * R**2 / (n * min(epsilon, LARGEST))
    else:
        return extra_regularisation(loss, n, R, alpha, epsilon / n_problems)
    # rounded up, so that kappa is not too large
    return max(0.0, least * (1 + 2**-50) - alpha)


def _objective_mu(loss, kappa, epsilon, delta, n_problems, persons):
    """Return m of theorem 1, 2, 3 or 4, or of persons, for kappa = R^2 / (n mu)."""
    if persons:
        return _person_mu(loss, kappa, min(epsilon, LARGEST), delta, n_problems)
    plain = loss.unweighted
    if type(plain) is LogisticLoss:
        return objective_mu(epsilon, delta, n_problems)
    left = epsilon - n_problems * math.log1p(loss.curvature * kappa)
    if isinstance(plain, MarginLoss):
        return objective_mu(left, delta, n_problems)
    joint = signless_mu(delta, ((1.0, left),))
    if type(plain) is not PseudoHuberLoss:  # exact type: a subclass may have another curvature
        return joint
    parts = tuple((high, epsilon - math.log1p(curvature)) for high, curvature in _parts(loss, kappa))
    return max(joint, signless_mu(delta, parts))


def _person_mu(loss, kappa, epsilon, delta, n_problems):
    plain = loss.unweighted
    if type(plain) is LogisticLoss:
        free = person_kappa(epsilon, delta, n_problems)
        return person_mu(epsilon, delta, n_problems, kappa=free)
    charge = n_problems * loss.curvature * kappa
    if isinstance(plain, MarginLoss):
        return person_mu(epsilon, delta, n_problems, charge=charge)
    joint = person_signless_mu(epsilon, delta, ((1.0, charge),))
    if type(plain) is not PseudoHuberLoss:
        return joint
    return max(joint, person_signless_mu(epsilon, delta, _parts(loss, kappa)))


def _parts(loss, kappa):
    """Split the range of slopes of the pseudo-Huber loss, and return the curvature of each part."""
    kappa *= _weight(loss)
    return tuple(
        (high, loss.unweighted.curvature_at(low) * kappa) for low, high in zip(SLOPES[:-1], SLOPES[1:])
    )


def _weight(loss):
    return loss.largest_weight if isinstance(loss, WeightedLoss) else 1.0

"""The public part of a fitted linear model: how its loss is summed over rows, and its noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..accounting.privacy_loss import Adjacency
from ..base.estimator import Trial
from ..base.learned_numbers import epsilon_of_fit, first_releases
from ..records.persons import person_weights
from ..records.public_shape import PublicShape
from ..rows import align, block_sum
from ..utils.type_aliases import FloatArray
from .design import design_and_targets
from .model import LinearModel
from .ridge import DPRidge
from .ridge.ridge_noise import symmetric
from .ridge.sums import clipped_rows

# weight of the constant in the matrices: it is estimated best, and a small weight leaves less noise to
# others
CONSTANT_WEIGHT = 0.3
# number of simulated errors of the coefficients
DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Fit:
    """The public part of a fit: coefficients w, how its loss is summed over rows, and its noise.

    Attributes
    ----------
    names : tuple
        Names of the released coefficients.
    w : ndarray of shape (d,)
        In the model's own units.
    weights : ndarray of shape (d,)
        By which columns are multiplied before they are released.
    scale, centre : ndarray of shape (d,)
        The released coefficients are scale w + centre.
    mu : float
        The regularisation of what was minimised.
    n : int
        Records of the fit, or persons.
    bounds : tuple of float
        The largest second derivative times the squared length of a weighted row, and the largest
        squared length of a weighted gradient.
    sums : callable
        ``sums(X, y)`` returns the sums of second derivatives, and of products of gradients; of persons
        the mean of their rows counts for each. Weights and ids come with y.
    pull : ndarray of shape (d,)
        Gradient at w of what was minimised, less that of the penalised loss and the noise.
    draw : callable
        ``draw(generator)`` draws the noise of the gradient, and that of w.
    """

    names: tuple[Any, ...]
    w: FloatArray
    weights: FloatArray
    scale: FloatArray
    centre: FloatArray
    mu: float
    n: int
    bounds: tuple[float, float]
    sums: Callable[[Any, Any], tuple[FloatArray, FloatArray]]
    pull: FloatArray
    draw: Callable[[Any], tuple[FloatArray, FloatArray]]

    @property
    def n_columns(self):
        """int : Number of columns that the model sees, without the constant."""
        return int((self.weights == 1.0).sum())


def check_model(model):
    """Refuse a model whose noise has an unknown distribution."""
    if isinstance(model, type) or not isinstance(model, (LinearModel, DPRidge)):
        raise TypeError(
            "model must be a fitted linear model or DPRidge of dpselect, because the law of the noise "
            "of its coefficients has to be known; or a Pipeline that ends with one; of a search write "
            "search.best_estimator_."
        )
    check_is_fitted(model)
    if epsilon_of_fit(model) is None:
        raise ValueError(
            "model was released by a search that looked at its noise, whose law is bent by that; give a "
            "model whose own fit has spent its epsilon."
        )


def of_persons(model):
    """Return whether a fitted model was trained on rows of persons."""
    return model.privacy_.adjacency == Adjacency.REPLACE_PERSON


def check_same_unit(model, sample_weight, groups):
    """Refuse records of another unit (rows or persons) than the model was fitted on."""
    max_weight = getattr(model, "max_sample_weight", None)
    takes_weights = max_weight is not None
    if takes_weights != (sample_weight is not None):
        given, instead = (
            ("is missing", "give it, as ones if the fit had none")
            if takes_weights
            else ("is given", "leave it out, or fit a model with max_sample_weight=... and with weights")
        )
        raise ValueError(
            f"sample_weight {given}, and model has max_sample_weight={max_weight!r}, so intervals "
            f"would be about other coefficients; {instead}."
        )
    if of_persons(model) != (groups is not None):
        given, instead = (
            ("is missing", "give the id of each row's person")
            if of_persons(model)
            else ("is given", "leave it out, or fit the model with groups, too")
        )
        raise ValueError(
            f"groups {given}, and model was trained on {model.privacy_.adjacency.unit}s, so intervals "
            f"would be about other coefficients; {instead}."
        )


def fits_of(model, n_samples, names=None, epsilon=None):
    """Return a Fit for each class of a model, or one if there are no more than two.

    `names` are those of the columns, and `epsilon` is that of the training; None is for those of the
    model.
    """
    check_model(model)
    if getattr(model, "n_samples_", n_samples) != n_samples:
        raise ValueError(
            f"n_samples={n_samples!r} is not the number of {model.privacy_.adjacency.unit}s that the "
            f"model was trained on, {model.n_samples_}; write that."
        )
    learned = {name: getattr(model, f"{name}_") for name in first_releases(model)}
    like = clone(model).set_params(**learned)
    if hasattr(model, "classes_"):
        like.set_params(classes=list(model.classes_))
    ridge = isinstance(model, DPRidge)
    K = 1 if ridge else len(np.atleast_2d(model.coef_))
    shape = PublicShape(n_samples, model.n_features_in_, K, of_persons(model))
    epsilon = epsilon_of_fit(model) if epsilon is None else epsilon
    calibration, checked = like.calibration(shape, epsilon), Trial(like, 1.0).records
    if names is None:
        names = tuple(getattr(model, "feature_names_in_", range(model.n_features_in_)))
    if ridge:
        return (_ridge_fit(model, checked, calibration, names),)
    return tuple(_linear_fit(model, checked, calibration, names, k) for k in range(K))


def simulated_noise(model, n_samples):
    """Simulate the noise of a ridge regression's coefficients, from what it released.

    Noise in the sums moves the coefficients by the inverse of the Gram matrix, which was released with
    them; noise in the result is added to them. Neither law depends on anything else of the records.

    Returns
    -------
    ndarray of shape (1000, n_features)
    """
    (fit,) = fits_of(model, n_samples)
    generator = np.random.default_rng(0)
    linear, result = map(np.array, zip(*(fit.draw(generator) for _ in range(DRAWS))))
    if hasattr(model, "gram_"):
        gram = at_least_zero(model.gram_ / fit.n) + fit.mu * np.eye(len(fit.w))
        result -= np.linalg.solve(gram, linear.T).T
    return (fit.scale * result)[:, : model.n_features_in_]


def at_least_zero(matrices):
    """Project symmetric matrices onto the positive semi-definite ones."""
    try:
        np.linalg.cholesky(matrices)
        return matrices
    except np.linalg.LinAlgError:  # one of them has a negative eigenvalue
        roots = root(matrices)
        return roots @ np.swapaxes(roots, -1, -2)


def root(matrices):
    """Return factors F of these projections, F F'."""
    values, vectors = np.linalg.eigh(matrices)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def _weights(d, constant):
    weights = np.ones(d)
    if constant is not None:
        weights[-1] = CONSTANT_WEIGHT
    return weights


def _products_of_gradients(gradients, number, n):
    """Return a block's part of the sum of products of gradients; of persons, of their gradients."""
    if number is None:
        return gradients.T @ gradients
    rows = np.arange(len(number))
    return sparse.csr_array((np.ones(len(number)), (number, rows)), shape=(n, len(number))) @ gradients


def _summed(sums, persons):
    curvature, gradients = sums
    return curvature, gradients if persons is None else gradients.T @ gradients


def _numbers(records):
    """Return the person of each row in a tuple, empty if each row is a person, and their number."""
    if records.persons is None:
        return (), 0
    return (align(records.X, records.persons.number)[1],), records.persons.n


def _linear_fit(model, checked, calibration, names, k):
    """Return the Fit of one-vs-rest problem k."""
    problem, s = calibration.problem, calibration.scales
    loss, constant, d = problem.loss, problem.constant, calibration.dimension
    scale, centre = np.full(d, loss.unit * calibration.stretch), np.zeros(d)
    released = np.atleast_2d(model.coef_)[k]
    if constant is not None:
        names = (*names, "intercept")
    if calibration.shape.n_problems > 1:
        names = tuple((model.classes_.tolist()[k], name) for name in names)
    if constant is not None:
        scale[-1], centre[-1] = loss.unit * constant, loss.centre
        released = np.append(released, np.ravel(model.intercept_)[k])
        if problem.shares:
            centre[-1] += calibration.levels[k]
    w = (released - centre) / scale
    origin = problem.origin(d)
    law = calibration.law

    def sums(X, y):
        records = checked(X, y)
        design, targets = design_and_targets(problem, records)
        numbers, n_persons = _numbers(records)

        def products(rows, targets, number=None):
            z, t = rows.dot(w[:, None]), targets[:, [k]]
            curvatures = np.clip(loss.second_derivative(z.copy(), t), 0.0, loss.unweighted.curvature)
            curvatures, derivatives = rows.weighted(curvatures), rows.weighted(loss.derivative(z, t))
            if number is None:
                return rows.gram(curvatures[:, 0]), rows.gram(derivatives[:, 0] ** 2)
            return rows.gram(curvatures[:, 0]), _products_of_gradients(
                rows.matrix(derivatives), number, n_persons
            )

        total = design.sum(products, targets, *numbers, columns=1, dense=True)
        return _summed(total, records.persons)

    def draw(generator):
        linear, result = problem.standard_noise(generator, law, d - (constant is not None), 1)[:, 0]
        return s.linear_scale * linear, s.output_scale * result

    R = math.hypot(min(problem.data_norm, problem.data_norm_l1), CONSTANT_WEIGHT * (constant or 0.0))
    return Fit(
        names,
        w,
        _weights(d, constant),
        scale,
        centre,
        s.mu,
        calibration.shape.n_samples,
        (loss.curvature * R**2, (loss.lipschitz * R) ** 2),
        sums,
        (s.mu - calibration.alpha) * (w - origin[k if len(origin) > 1 else 0]),
        draw,
    )


def _ridge_fit(model, checked, calibration, names):
    problem, p, n = calibration.problem, model.n_features_in_, calibration.shape.n_samples
    d = problem.dimension(p)
    w, centre = np.ravel(model.coef_), np.zeros(d)
    if problem.fit_intercept:
        w = np.append(w, model.intercept_ - problem.centre)
        centre[-1] = problem.centre
    Y, intercept = problem.target_bound, problem.fit_intercept
    R = math.hypot(problem.largest, CONSTANT_WEIGHT * intercept)
    bounds = problem.row_bounds(p)

    def products(rows, targets, person_weight=None, number=None, n_persons=0):
        A = np.ones((len(rows), d))
        A[:, :p] = clipped_rows(rows, bounds, 1.0)
        residual = A @ w - Y * problem.scaled_targets(targets)
        if number is None:
            return A.T @ A, (A * residual[:, None] ** 2).T @ A
        return (A * person_weight[:, None]).T @ A, _products_of_gradients(
            A * (person_weight * residual)[:, None], number, n_persons
        )

    def sums(X, y):
        records = checked(X, y)
        numbers, n_persons = _numbers(records)
        total = block_sum(
            partial(products, n_persons=n_persons),
            records.X,
            records.y,
            *person_weights(records),
            *numbers,
        )
        return _summed(total, records.persons)

    if intercept:
        names = (*names, "intercept")
    if problem.perturbation == "covariance":
        pull = model.moment_ / n - (model.gram_ / n + problem.alpha * np.eye(d)) @ w
    else:
        pull = (calibration.mu - problem.alpha) * w
    return Fit(
        names,
        w,
        _weights(d, intercept or None),
        np.ones(d),
        centre,
        calibration.mu,
        n,
        (R**2, (R * _largest_residual(problem, w, p)) ** 2),
        sums,
        pull,
        partial(_ridge_noise, calibration, w),
    )


def _largest_residual(problem, w, p):
    """Return the largest residual that any record can have at coefficients w."""
    x, constant = w[:p], float(np.abs(w[p:]).sum())
    # Hoelder's inequality in both norms to which rows are clipped
    product = min(
        problem.largest * float(np.linalg.norm(x)),
        problem.largest_l1(p) * float(np.abs(x).max(initial=0.0)),
    )
    return problem.target_bound + constant + product


def _ridge_noise(calibration, w, generator):
    """Draw the noise in the gradient, and in the coefficients."""
    problem, s, p = calibration.problem, calibration.scales, calibration.shape.n_features
    noise = problem.standard_noise(generator, p, calibration.epsilon)
    if problem.perturbation == "output":
        return np.zeros(len(w)), s.output_scale * noise
    if problem.perturbation == "objective":
        return s.linear_scale * noise[0], s.output_scale * noise[1]
    if not calibration.on_grid:
        noise = s.scales(p) * noise
    unit = np.concatenate(
        [
            np.full(p, problem.row_unit(p)),
            np.ones(len(w) - p),
            [problem.target_bound],
        ]
    )
    N = symmetric(noise, p, len(unit)) * np.outer(unit, unit) / calibration.shape.n_samples
    return N[:-1, :-1] @ w - N[:-1, -1], np.zeros(len(w))

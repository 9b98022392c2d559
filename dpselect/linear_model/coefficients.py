"""Confidence intervals of the coefficients of a private linear model."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..capabilities import PublicShape
from ..estimator import Trial, warn_if_seeded
from ..first_releases import first_releases
from ..held_records import HeldRecords
from ..ledger import PrivacyLedger, spending
from ..noise import (
    as_generator,
    check_random_state,
    is_seeded,
    release,
    release_step,
    scale_with_rounding,
    spherical_laplace,
)
from ..noise.generators import RandomState
from ..privacy import KINDS, Adjacency, PrivacyLoss
from ..records import numeric_rows
from ..rows import block_sum
from ..type_aliases import Estimator, FloatArray, MatrixLike
from ..validation import check_epsilon, check_number, imported_pandas
from .base import LinearModel
from .design import design_and_targets
from .ridge import DPRidge
from .ridge.noise import symmetric
from .ridge.sums import clipped_rows

if TYPE_CHECKING:
    from pandas import DataFrame

# one replaced record takes two matrices of length 1 away and adds two others
SENSITIVITY = 2.0
# simulated errors of the coefficients, of which quantiles are taken
DRAWS = 1000
# numbers of the matrices that are inverted at once
IN_MEMORY = 2**20
# in standard deviations of its noise, the least curvature of which an inverse is taken
FEWEST_DEVIATIONS = 1.5
# what the constant counts in the matrices: it is known best, and less of it leaves less noise to others
CONSTANT_WEIGHT = 0.3


class ConfidenceInterval(NamedTuple):
    """The ends of confidence intervals, as scipy's results have them.

    Parameters
    ----------
    low, high : ndarray of shape (n_coefficients,)
    """

    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class CoefficientIntervals:
    """Coefficients, and what chance and noise do to them: see :func:`coef_interval`.

    Parameters
    ----------
    names : tuple
        Of the columns, "intercept" last if there is one.
    coef : ndarray of shape (n_coefficients,)
        What intervals are around: the model's coefficients, less what the noise calibration added to
        `alpha`, to first order.
    curvature_, gradients_ : ndarray of shape (n_coefficients, n_coefficients)
        Released, with noise: the mean second derivatives of the loss, and the mean products of first
        derivatives, in the model's own units.
    errors : ndarray of shape (1000, n_coefficients)
        Simulated errors of the coefficients, from these and the known law of the model's noise.
    noise_share : ndarray of shape (n_coefficients,)
        Share of the errors' variance that is due to the noise of the model.
    empty : bool
        Whether the curvature is lost in its noise, so that nothing can be said.
    privacy_ : PrivacyLoss
        What the release spent. It does not cover the model.
    """

    names: tuple[Any, ...]
    coef: FloatArray
    curvature_: FloatArray
    gradients_: FloatArray
    errors: FloatArray
    noise_share: FloatArray
    empty: bool
    privacy_: PrivacyLoss

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Return intervals, each of which holds with a probability.

        Parameters
        ----------
        confidence_level : float, default=0.95
            In (0, 1).

        Returns
        -------
        ConfidenceInterval
            NaN where nothing can be said.
        """
        level = check_number(
            "confidence_level", confidence_level, high=1.0,
            why="it is the probability of an interval", instead="write a number such as 0.95",
        )
        # signs do not matter to the law of the errors
        reach = np.quantile(np.abs(self.errors), level, axis=0)
        reach = np.where(self.empty, np.nan, reach)
        return ConfidenceInterval(self.coef - reach, self.coef + reach)

    def to_frame(self, confidence_level: float = 0.95) -> "DataFrame":
        """Return the intervals as a dataframe.

        Parameters
        ----------
        confidence_level : float, default=0.95

        Returns
        -------
        pandas.DataFrame
            A row for each coefficient, with columns "coef", "low", "high" and "noise_share".

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = imported_pandas("to_frame", "call confidence_interval")
        low, high = self.confidence_interval(confidence_level)
        columns = {"coef": self.coef, "low": low, "high": high, "noise_share": self.noise_share}
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="column"))

    def __repr__(self) -> str:
        low, high = self.confidence_interval()
        lines = [
            f"{name!s:<18} nothing to be said: too few records at this epsilon" if self.empty
            else f"{name!s:<18} {c:.4g} [{start:.4g}, {end:.4g}], noise {share:.0%} of the variance"
            for name, c, start, end, share in zip(self.names, self.coef, low, high, self.noise_share)
        ]
        return "\n".join(["Coefficients with intervals of 95 %", *lines, str(self.privacy_)])


def coef_interval(
    model: Estimator,
    X: MatrixLike,
    y: npt.ArrayLike,
    *,
    epsilon: float,
    n_samples: int,
    ledger: PrivacyLedger | None = None,
    random_state: RandomState = None,
) -> CoefficientIntervals:
    """Return confidence intervals of a private model's coefficients, with epsilon-differential privacy.

    They cover both the chance by which records came into the data and the noise of privacy, and are
    about the coefficients that the model would have without noise for infinitely many records of the
    same kind, with the same `alpha` and the same bounds on rows and targets. A penalty and clipping move
    these away from those of an unpenalised regression, and no interval tells how far.

    The law of the model's noise is known. What is not are the curvature of the loss and the spread of
    its derivatives: two matrices, which are released from these records with noise. Neighbouring data
    sets differ in one record. Public are the number of records, the model and every parameter.

    **The model is taken to be public**: records that were set aside by their index compose with it as a
    maximum, ``PrivacyLoss.parallel([model.privacy_, intervals.privacy_])``; of the training records
    themselves the losses add up.

    Parameters
    ----------
    model : DPLogisticRegression, DPLinearSVC, DPPoissonRegressor, DPHuberRegressor or DPRidge
        Fitted, of two classes if it is a classifier, without `groups` and `max_sample_weight`. Of a
        Pipeline give the last step, and rows as it sees them. Not one that "budget_split" or
        "data_split" chose: their choice looked at its noise, which intervals take for that of one fit.
    X : array-like of shape (m, n_features)
        Records like those that the model was trained on.
    y : array-like of shape (m,)
        Their labels or targets.
    epsilon : float
        Privacy loss of the release, greater than 0; ``inf`` gives exact matrices.
    n_samples : int
        How many records the model was trained on, which is public.
    ledger : PrivacyLedger, default=None
        Pays, in place of one that is open (``with ledger:``).
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None draws noise from a cryptographic generator keyed by the operating system. Everything else
        is for tests: the noise can be drawn again.

    Returns
    -------
    CoefficientIntervals

    Raises
    ------
    BudgetExceededError
        If the ledger has less left; no record is read.
    NotFittedError
        If the model is not fitted.
    TypeError, ValueError
        If a parameter is out of range, the law of the model's noise is not known, or the model refuses a
        record; what it says is not repeated.

    Warns
    -----
    SeededNoiseWarning
        If `random_state` is not None.

    References
    ----------
    White, *Maximum Likelihood Estimation of Misspecified Models*, Econometrica 50, 1982, for the
    variance without noise. The page "Intervals of coefficients" has statement and proof.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, coef_interval
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(40_000, 2)) / 2**0.5
    >>> y = (X @ [2, -1] + rng.logistic(size=40_000) > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1], alpha=0.001).fit(X[:20_000], y[:20_000])
    >>> intervals = coef_interval(model, X[20_000:], y[20_000:], epsilon=1.0, n_samples=20_000)
    >>> low, high = intervals.confidence_interval(0.95)
    >>> bool((low < high).all()), low.shape
    (True, (3,))
    """
    epsilon = check_epsilon(epsilon)
    check_random_state(random_state)
    n_samples = check_number(
        "n_samples", n_samples, integer=True, why="the errors of coefficients fall with it",
        instead="write how many records the model was trained on",
    )
    plan = IntervalPlan(fit_of(model, n_samples), epsilon, ledger, random_state)
    warn_if_seeded(plan)
    with spending(plan, plan.loss):
        # with the columns of the fit: others would make longer rows than the noise is for
        return plan.intervals(numeric_rows(model, X, **model.reads, reset=False), y)


@dataclass(frozen=True, eq=False)
class Fit:
    """What is public of a fit: coefficients w, how its loss is summed over rows, and its noise.

    Attributes
    ----------
    names : tuple
        Of the coefficients that are told.
    w : ndarray of shape (d,)
        In the model's own units.
    weights : ndarray of shape (d,)
        By which columns are multiplied before they are released.
    scale, centre : ndarray of shape (d,)
        Told are scale w + centre.
    mu : float
        The regularisation of what was minimised.
    n : int
        Records of the fit.
    bounds : tuple of float
        The largest second derivative times the squared length of a weighted row, and the largest
        squared length of a weighted gradient.
    sums : callable
        ``sums(X, y)`` returns the sums of second derivatives, and of products of gradients.
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


@dataclass(frozen=True)
class IntervalPlan:
    """What will be released, and what a ledger knows of it; from public numbers."""

    fit: Fit
    epsilon: float
    ledger: Any = None
    random_state: Any = None

    @property
    def loss(self):
        """PrivacyLoss : Of the release."""
        d = len(self.fit.w)
        return PrivacyLoss(
            self.epsilon,
            label=f"coef_interval: two matrices of {d} x {d} derivatives; the model is not covered",
            seeded=self.epsilon != math.inf and is_seeded(self.random_state),
        )

    def intervals(self, X, y):
        """Release the matrices, and read intervals from them; somebody else pays."""
        held = HeldRecords(X, y)
        sums = held.evaluate_quietly(self.fit.sums)
        matrices = released_matrices(self, sums, len(held))
        return intervals_of(self, matrices, len(held))


def entry_scale(epsilon, m):
    """Return the step of the grid, and the scale of spherical noise that hides the mean matrices."""
    if epsilon == math.inf:
        return None, 0.0
    moved = SENSITIVITY / m
    return release_step(moved / epsilon), moved / epsilon


def upper(d):
    """Return the places of the upper triangle, and how much each counts in the squared length of all."""
    rows, columns = np.triu_indices(d)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


def released_matrices(plan, sums, m):
    """Return both mean matrices with noise."""
    d = len(plan.fit.w)
    rows, columns, share = upper(d)
    weighted = np.outer(plan.fit.weights, plan.fit.weights)
    values = np.concatenate([
        share * (weighted * matrix)[rows, columns] / (bound * m)
        for matrix, bound in zip(sums, plan.fit.bounds)
    ])
    if plan.epsilon < math.inf:
        step, scale = entry_scale(plan.epsilon, m)
        scale = scale_with_rounding(scale, step, plan.epsilon, len(values))
        noise = scale * spherical_laplace(as_generator(plan.random_state), 1, len(values))[0]
        values = release(values, noise, step)
    return [
        bound * _matrix(half / share, d) / weighted
        for half, bound in zip(np.split(values, 2), plan.fit.bounds)
    ]


def _matrix(entries, d):
    rows, columns, _ = upper(d)
    matrix = np.zeros((d, d))
    matrix[rows, columns] = entries
    return matrix + np.triu(matrix, 1).T


def intervals_of(plan, matrices, m):
    """Return the intervals that follow from released matrices: post-processing."""
    fit, d = plan.fit, len(plan.fit.w)
    curvature, gradients = matrices
    weighted = np.outer(fit.weights, fit.weights)
    # of an entry of spherical noise in D dimensions, and about the largest eigenvalue of such a matrix
    deviation = entry_scale(plan.epsilon, m)[1] * math.sqrt(d * (d + 1) + 1)
    noisy = fit.bounds[0] * deviation * math.sqrt(2 * d)
    least = np.linalg.eigvalsh(weighted * (curvature + fit.mu * np.eye(d)))[0]
    moved = np.linalg.solve(_at_least_zero(curvature) + fit.mu * np.eye(d), fit.pull)
    generator = np.random.default_rng(0)
    sampled, added = np.empty((2, DRAWS, d))
    at_once = max(1, IN_MEMORY // d**2)
    for start in range(0, DRAWS, at_once):
        part = slice(start, min(start + at_once, DRAWS))
        size = part.stop - part.start
        # what else the noise of the matrices could have been
        M, B = (
            matrix + bound * deviation * _noise(generator, size, d) / weighted
            for matrix, bound in zip((curvature, gradients), fit.bounds)
        )
        M = _at_least_zero(M) + fit.mu * np.eye(d)
        linear, result = map(np.array, zip(*(fit.draw(generator) for _ in range(size))))
        chance = _root(B) @ generator.normal(size=(size, d, 1)) / math.sqrt(fit.n)
        both = np.concatenate([chance, linear[..., None]], axis=-1)
        sampled[part], away = np.moveaxis(np.linalg.solve(M, both), -1, 0)
        added[part] = result - away
    told = fit.scale * sampled, fit.scale * added
    variances = [each.var(axis=0) for each in told]
    return CoefficientIntervals(
        names=fit.names, coef=fit.scale * (fit.w + moved) + fit.centre, curvature_=curvature,
        gradients_=gradients, errors=sum(told), noise_share=variances[1] / sum(variances),
        empty=bool(least < FEWEST_DEVIATIONS * noisy), privacy_=plan.loss,
    )


def _noise(generator, size, d):
    """Draw symmetric matrices whose entries, each counted once, have a standard deviation of 1."""
    rows, columns, share = upper(d)
    matrices = np.zeros((size, d, d))
    entries = generator.normal(size=(size, len(rows))) / share
    matrices[:, rows, columns] = matrices[:, columns, rows] = entries
    return matrices


def _at_least_zero(matrices):
    """Return the nearest symmetric matrices that curve nowhere downwards."""
    roots = _root(matrices)
    return roots @ np.swapaxes(roots, -1, -2)


def _root(matrices):
    """Return factors F of the nearest such matrices F F'."""
    values, vectors = np.linalg.eigh(matrices)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def fit_of(model, n_samples):
    """Return the Fit of a model, or refuse one whose noise has no law that is known."""
    if isinstance(model, type) or not isinstance(model, (LinearModel, DPRidge)):
        raise TypeError(
            "model must be a fitted linear model or DPRidge of dpselect, because the law of the noise "
            "of its coefficients has to be known; of a Pipeline give the last step."
        )
    check_is_fitted(model)
    privacy = model.privacy_
    learned = {name: getattr(model, f"{name}_") for name in first_releases(model)}
    # what was learned first has taken its share of epsilon
    rest = privacy.parts[-1].epsilon if learned and privacy.parts else float(model.epsilon)
    if (privacy.kind, privacy.epsilon) != (KINDS[0], float(model.epsilon)):
        raise ValueError(
            "model was released by a search that looked at its noise, whose law is bent by that; give a "
            "model whose own fit has spent its epsilon."
        )
    if privacy.adjacency == Adjacency.REPLACE_PERSON or getattr(model, "max_sample_weight", None):
        raise ValueError(
            "model was trained on rows of persons or takes weights, and intervals are for records that "
            "count alike; give a model that was fitted without groups, and max_sample_weight=None."
        )
    if getattr(model, "n_samples_", n_samples) != n_samples:
        raise ValueError(
            f"n_samples={n_samples!r} is not the number of records that the model was trained on, "
            f"{model.n_samples_}; write that."
        )
    like = clone(model).set_params(**learned)
    if hasattr(model, "classes_"):
        like.set_params(classes=list(model.classes_))
    calibration = like.calibration(PublicShape(n_samples, model.n_features_in_), rest)
    make = _ridge_fit if isinstance(model, DPRidge) else _linear_fit
    return make(model, Trial(like, 1.0).records, calibration, n_samples)


def _names(model, intercept):
    columns = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return (*columns, "intercept") if intercept else tuple(columns)


def _weights(d, constant):
    weights = np.ones(d)
    if constant is not None:
        weights[-1] = CONSTANT_WEIGHT
    return weights


def _linear_fit(model, checked, calibration, n):
    problem, s = calibration.problem, calibration.scales
    if len(np.atleast_2d(model.coef_)) > 1:
        raise ValueError(
            "model has coefficients for each of its classes, which mean nothing alone; give a model of "
            "two classes."
        )
    loss, constant, d = problem.loss, problem.constant, calibration.dimension
    scale, centre = np.full(d, loss.unit), np.zeros(d)
    told = np.ravel(model.coef_)
    if constant is not None:
        scale[-1], centre[-1] = loss.unit * constant, loss.centre
        told = np.append(told, model.intercept_)
    w = (told - centre) / scale
    origin = np.ravel(problem.origin(d))
    law = calibration.law

    def sums(X, y):
        design, targets = design_and_targets(problem, checked(X, y))

        def products(rows, targets):
            z = rows.dot(w[:, None])
            bends = np.clip(loss.second_derivative(z.copy(), targets), 0.0, loss.unweighted.curvature)
            bends, slopes = rows.weighted(bends), rows.weighted(loss.derivative(z, targets))
            return rows.gram(bends[:, 0]), rows.gram(slopes[:, 0] ** 2)

        return design.sum(products, targets, columns=1, dense=True)

    def draw(generator):
        linear, result = problem.standard_noise(generator, law, d - (constant is not None), 1)[:, 0]
        return s.linear_scale * linear, s.output_scale * result

    weights = _weights(d, constant)
    R = math.hypot(min(problem.data_norm, problem.data_norm_l1), CONSTANT_WEIGHT * (constant or 0.0))
    return Fit(
        _names(model, constant is not None), w, weights, scale, centre, s.mu, n,
        (loss.curvature * R**2, (loss.lipschitz * R) ** 2), sums,
        (s.mu - calibration.alpha) * (w - origin), draw,
    )


def _ridge_fit(model, checked, calibration, n):
    problem, p = calibration.problem, model.n_features_in_
    d = problem.dimension(p)
    w, centre = np.ravel(model.coef_), np.zeros(d)
    if problem.fit_intercept:
        w = np.append(w, model.intercept_ - problem.centre)
        centre[-1] = problem.centre
    Y, intercept = problem.target_bound, problem.fit_intercept
    R = math.hypot(problem.largest, CONSTANT_WEIGHT * intercept)
    largest = Y + problem.radius * float(np.linalg.norm(w))
    bounds = problem.row_bounds(p)

    def products(rows, targets):
        A = np.ones((len(rows), d))
        A[:, :p] = clipped_rows(rows, bounds, 1.0)
        residual = A @ w - Y * problem.scaled_targets(targets)
        return A.T @ A, (A * residual[:, None] ** 2).T @ A

    def sums(X, y):
        records = checked(X, y)
        return block_sum(products, records.X, records.y)

    if problem.perturbation == "covariance":
        pull = model.moment_ / n - (model.gram_ / n + problem.alpha * np.eye(d)) @ w
    else:
        pull = (calibration.mu - problem.alpha) * w
    names, weights = _names(model, intercept), _weights(d, intercept or None)
    return Fit(
        names, w, weights, np.ones(d), centre, calibration.mu, n,
        (R**2, (R * largest) ** 2), sums, pull,
        partial(_ridge_noise, calibration, w),
    )


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
    unit = np.concatenate([
        np.full(p, problem.row_unit(p)), np.ones(len(w) - p), [problem.target_bound],
    ])
    N = symmetric(noise, p, len(unit)) * np.outer(unit, unit) / calibration.shape.n_samples
    return N[:-1, :-1] @ w - N[:-1, -1], np.zeros(len(w))

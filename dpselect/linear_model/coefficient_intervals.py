"""Confidence intervals of coefficients, read from released matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..accounting.privacy_loss import PrivacyLoss
from ..evaluation.estimate import Estimate
from ..utils.type_aliases import FloatArray
from ..utils.validation import check_number, imported_pandas
from .coefficient_fits import DRAWS, at_least_zero, root

if TYPE_CHECKING:
    from pandas import DataFrame

# With more than so many columns, so many errors share the noise of their matrices, whose inversion takes
# almost all of the time. The level of an interval then has a Monte-Carlo error between those of 200 and
# of 1,000 independent draws: a standard deviation of .7 % to 1.6 % at 95 %.
MANY, SHARING = 100, 5
# numbers in the matrices that are inverted at once
IN_MEMORY = 2**20
# smallest curvature that is inverted, in standard deviations of its noise
FEWEST_DEVIATIONS = 1.5
# number of columns that a hint names
NAMED = 3


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
    """Coefficients with their sampling and noise errors: see :func:`coef_interval`.

    Parameters
    ----------
    names : tuple
        Of the columns, "intercept" last if there is one; of three or more classes, pairs of a label and
        such a name, class by class.
    coef : ndarray of shape (n_coefficients,)
        Centres of the intervals: the model's coefficients, corrected to first order for what the noise
        calibration added to `alpha`.
    curvature_, gradients_ : ndarray of shape (d, d), or (n_classes, d, d)
        Released, with noise: the mean second derivatives of the loss, and the mean products of first
        derivatives, in the model's own units; of three or more classes those of each.
    errors : ndarray of shape (1000, n_coefficients)
        Simulated errors of the coefficients, from these and the known law of the model's noise. They are
        joint: those of a difference of coefficients are differences of columns. NaN for a class all of
        whose curvature is lost in its noise, so that nothing can be said.
    noise_share : ndarray of shape (n_coefficients,)
        Share of the errors' variance that is due to the noise of the model.
    privacy_ : PrivacyLoss
        What the release spent. It does not cover the model.
    lost : tuple
        The `names` by which directions of little curvature are lost in the noise, the first one most:
        there an interval is about as wide as the penalty alone allows. Drop such a column, give it
        narrower bounds or fewer curves, or take more records.
    of_training_records : bool
        Whether the records are known to be those that the model was trained on: then both losses add up.
        False also where it is not known.
    """

    names: tuple[Any, ...]
    coef: FloatArray
    curvature_: FloatArray
    gradients_: FloatArray
    errors: FloatArray
    noise_share: FloatArray
    privacy_: PrivacyLoss
    lost: tuple[Any, ...] = ()
    of_training_records: bool = False

    @property
    def empty(self) -> bool:
        """bool : Whether all intervals are unbounded."""
        return bool(np.isnan(self.errors).all())

    @property
    def hint(self) -> str:
        """str : What to change if curvature is lost in the noise, else empty."""
        if not self.lost:
            return ""
        columns = ", ".join(map(_name_text, self.lost[:NAMED]))
        return (
            f"Least is known of {columns}: drop such columns, give them narrower bounds or fewer "
            "curves, or take more records."
        )

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Return confidence intervals at a level.

        Parameters
        ----------
        confidence_level : float, default=0.95
            In (0, 1).

        Returns
        -------
        ConfidenceInterval
            NaN where nothing can be said.
        """
        level = _checked_level(confidence_level)
        # the distribution of the errors is symmetric, so signs do not matter
        half_width = np.quantile(np.abs(self.errors), level, axis=0)
        return ConfidenceInterval(self.coef - half_width, self.coef + half_width)

    def contrast(self, weights: npt.ArrayLike, confidence_level: float = 0.95) -> Estimate:
        """Return a weighted sum of the coefficients with its confidence interval.

        The difference of two rows is that of the model's linear predictions for them: of two categories
        of one column, for instance, whose codes share coefficients. Rows are as the model sees them, of
        a table after its encoder, and no longer than its `data_norm`.

        Parameters
        ----------
        weights : array-like of shape (n_features,) or (n_coefficients,)
            One for each of `names`; of an intercept at the end it may be left out, and is then 0.
        confidence_level : float, default=0.95
            In (0, 1).

        Returns
        -------
        Estimate
            NaN if nothing can be said.

        Raises
        ------
        ValueError
            If there is not one finite number for each coefficient.

        Examples
        --------
        >>> import numpy as np
        >>> from dpselect import DPLogisticRegression, coef_interval
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(40_000, 2)) / 2**0.5
        >>> y = (X @ [2, -1] + rng.logistic(size=40_000) > 0).astype(int)
        >>> model = DPLogisticRegression(classes=[0, 1], alpha=0.001).fit(X[:20_000], y[:20_000])
        >>> intervals = coef_interval(model, X[20_000:], y[20_000:], epsilon=1.0, n_samples=20_000)
        >>> difference = intervals.contrast([0.5, -0.5])  # of the rows (0.5, 0) and (0, 0.5)
        >>> bool(difference.low < difference.value < difference.high)
        True
        """
        level = _checked_level(confidence_level)
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape == (len(self.names) - 1,) and self.names[-1] == "intercept":
            weights = np.append(weights, 0.0)
        if weights.shape != (len(self.names),) or not np.isfinite(weights).all():
            raise ValueError(
                f"weights of shape {weights.shape} are not one finite number for each of "
                f"{len(self.names)} coefficients, of which they make a sum; give the difference of two "
                "rows as the model sees them."
            )
        value = float(weights @ self.coef)
        half_width = float(np.quantile(np.abs(self.errors @ weights), level))
        centre = value if math.isfinite(half_width) else math.nan
        return Estimate(centre, value - half_width, value + half_width)

    def to_frame(self, confidence_level: float = 0.95) -> DataFrame:
        """Return the intervals as a dataframe.

        Parameters
        ----------
        confidence_level : float, default=0.95

        Returns
        -------
        pandas.DataFrame
            A row for each coefficient, with columns "coef", "low", "high" and "noise_share"; of three or
            more classes for each class and coefficient.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = imported_pandas("to_frame", "call confidence_interval")
        low, high = self.confidence_interval(confidence_level)
        columns = {"coef": self.coef, "low": low, "high": high, "noise_share": self.noise_share}
        if isinstance(self.names[0], tuple):
            index = pandas.MultiIndex.from_tuples(self.names, names=["class", "column"])
        else:
            index = pandas.Index(self.names, name="column")
        return pandas.DataFrame(columns, index=index)

    def __repr__(self) -> str:
        low, high = self.confidence_interval()
        names = list(map(_name_text, self.names))
        width = max(18, *map(len, names))
        lines = [
            f"{name:<{width}} not known: too few records at this epsilon"
            if np.isnan(start)
            else f"{name:<{width}} {c:.4g} [{start:.4g}, {end:.4g}], noise {part:.0%} of the variance"
            for name, c, start, end, part in zip(names, self.coef, low, high, self.noise_share)
        ]
        lines += [self.hint] if self.lost else []
        return "\n".join(["Coefficients with intervals of 95 %", *lines, str(self.privacy_)])


def _checked_level(level):
    return check_number(
        "confidence_level",
        level,
        high=1.0,
        why="it is the probability of an interval",
        instead="write a number such as 0.95",
    )


def _name_text(name):
    return f"{name[0]!s}: {name[1]!s}" if isinstance(name, tuple) else str(name)


def intervals_of(fits, matrices, deviation, loss, sharing=None):
    """Compute the intervals from released matrices: post-processing.

    `matrices` has both of each fit, and `deviation` is that of an entry, relative to its bound. So many
    errors as `sharing` share the noise of their matrices; None is for as many as columns require.
    """
    found = [_errors(fit, *pair, deviation, sharing) for fit, pair in zip(fits, matrices)]
    coef, errors, noise_share = (np.concatenate(part, axis=-1) for part in zip(*(f[:3] for f in found)))
    curvature, gradients = (np.stack(part) if len(fits) > 1 else part[0] for part in zip(*matrices))
    return CoefficientIntervals(
        names=sum((fit.names for fit in fits), ()),
        coef=coef,
        curvature_=curvature,
        gradients_=gradients,
        errors=errors,
        noise_share=noise_share,
        privacy_=loss,
        lost=sum((f[3] for f in found), ()),
    )


def least_curvature(fit, deviation):
    """Return the least eigenvalue that can be distinguished from noise of that deviation."""
    # approximately the largest eigenvalue of a random matrix with such entries
    return FEWEST_DEVIATIONS * fit.bounds[0] * deviation * math.sqrt(2 * len(fit.w))


def _errors(fit, curvature, gradients, deviation, sharing):
    """Return centres, simulated errors, the fraction due to the model's noise, and lost names."""
    d = len(fit.w)
    weighted = np.outer(fit.weights, fit.weights)
    values, vectors = np.linalg.eigh(weighted * (curvature + fit.mu * np.eye(d)))
    missing = least_curvature(fit, deviation) - values
    lost = _lost(fit, vectors, missing)
    # curvature is at least that of the penalty, which bounds the inverse where noise hides the rest
    moved = np.linalg.solve(at_least_zero(curvature) + fit.mu * np.eye(d), fit.pull)
    coef = fit.scale * (fit.w + moved) + fit.centre
    if missing[-1] > 0:  # no direction is known
        return coef, np.full((DRAWS, d), np.nan), np.full(d, np.nan), lost
    generator = np.random.default_rng(0)
    sharing = sharing or (SHARING if d > MANY else 1)
    sampled, added = np.empty((2, DRAWS, d))
    at_once = max(1, IN_MEMORY // d**2)
    for start in range(0, DRAWS // sharing, at_once):
        size = min(at_once, DRAWS // sharing - start)
        part = slice(start * sharing, (start + size) * sharing)
        # simulate other draws of the matrices' noise
        M, B = (
            matrix + bound * deviation * _noise(generator, size, d) / weighted
            for matrix, bound in zip((curvature, gradients), fit.bounds)
        )
        M = at_least_zero(M) + fit.mu * np.eye(d)
        linear, result = map(np.array, zip(*(fit.draw(generator) for _ in range(size * sharing))))
        factors = _any_factor(B) if d > MANY else root(B)
        chance = factors @ generator.normal(size=(size, d, sharing)) / math.sqrt(fit.n)
        pulled = (linear - fit.pull).reshape(size, sharing, d).swapaxes(1, 2)
        solved = np.linalg.solve(M, np.concatenate([chance, pulled], axis=-1))
        solved = solved.reshape(size, d, 2, sharing).transpose(2, 0, 3, 1)
        sampled[part], away = solved.reshape(2, size * sharing, d)
        # the centre is moved by a matrix whose noise is one of these draws
        added[part] = result - away - moved
    errors = fit.scale * sampled, fit.scale * added
    variances = [each.var(axis=0) for each in errors]
    with np.errstate(invalid="ignore"):  # 0 / 0 for a column without errors, at epsilon=inf
        share = variances[1] / sum(variances)
    return coef, sum(errors), share, lost


def _any_factor(matrices):
    """Return factors F of projected matrices, F F', without eigenvectors if all are definite."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return root(matrices)


def _lost(fit, vectors, missing):
    """Return the names of the columns that lie mostly in directions of too little curvature."""
    if missing[0] <= 0:
        return ()
    directions = fit.weights[:, None] * vectors
    parts = (directions**2 @ np.maximum(missing, 0.0))[: fit.n_columns]
    return tuple(fit.names[j] for j in np.argsort(-parts) if 2 * parts[j] >= parts.max())


def upper(d):
    """Return the indices of the upper triangle, and the weight of each in the squared Frobenius norm."""
    rows, columns = np.triu_indices(d)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


def _noise(generator, size, d):
    """Draw symmetric matrices whose entries, each counted once, have a standard deviation of 1."""
    rows, columns, weight = upper(d)
    matrices = np.zeros((size, d, d))
    entries = generator.normal(size=(size, len(rows))) / weight
    matrices[:, rows, columns] = matrices[:, columns, rows] = entries
    return matrices

"""Confidence intervals of coefficients, read from released matrices."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..privacy import PrivacyLoss
from ..type_aliases import FloatArray
from ..validation import check_number, imported_pandas

if TYPE_CHECKING:
    from pandas import DataFrame

# simulated errors of the coefficients, of which quantiles are taken
DRAWS = 1000
# numbers of the matrices that are inverted at once
IN_MEMORY = 2**20
# in standard deviations of its noise, the least curvature of which an inverse is taken
FEWEST_DEVIATIONS = 1.5


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
        Of the columns, "intercept" last if there is one; of three or more classes, pairs of a label and
        such a name, class by class.
    coef : ndarray of shape (n_coefficients,)
        What intervals are around: the model's coefficients, less what the noise calibration added to
        `alpha`, to first order.
    curvature_, gradients_ : ndarray of shape (d, d), or (n_classes, d, d)
        Released, with noise: the mean second derivatives of the loss, and the mean products of first
        derivatives, in the model's own units; of three or more classes those of each.
    errors : ndarray of shape (1000, n_coefficients)
        Simulated errors of the coefficients, from these and the known law of the model's noise. NaN
        where the curvature is lost in its noise, so that nothing can be said.
    noise_share : ndarray of shape (n_coefficients,)
        Share of the errors' variance that is due to the noise of the model.
    privacy_ : PrivacyLoss
        What the release spent. It does not cover the model.
    """

    names: tuple[Any, ...]
    coef: FloatArray
    curvature_: FloatArray
    gradients_: FloatArray
    errors: FloatArray
    noise_share: FloatArray
    privacy_: PrivacyLoss

    @property
    def empty(self) -> bool:
        """bool : Whether nothing can be said of any coefficient."""
        return bool(np.isnan(self.errors).all())

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
        return ConfidenceInterval(self.coef - reach, self.coef + reach)

    def to_frame(self, confidence_level: float = 0.95) -> "DataFrame":
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
        names = [
            f"{name[0]!s}: {name[1]!s}" if isinstance(name, tuple) else str(name) for name in self.names
        ]
        lines = [
            f"{name:<18} not known: too few records at this epsilon" if np.isnan(start)
            else f"{name:<18} {c:.4g} [{start:.4g}, {end:.4g}], noise {share:.0%} of the variance"
            for name, c, start, end, share in zip(names, self.coef, low, high, self.noise_share)
        ]
        return "\n".join(["Coefficients with intervals of 95 %", *lines, str(self.privacy_)])


def intervals_of(fits, matrices, deviation, loss):
    """Return the intervals that follow from released matrices: post-processing.

    `matrices` has both of each fit, and `deviation` is that of an entry, in shares of its bound.
    """
    found = [_errors(fit, *pair, deviation) for fit, pair in zip(fits, matrices)]
    coef, errors, noise_share = (np.concatenate(part, axis=-1) for part in zip(*found))
    curvature, gradients = (
        np.stack(part) if len(fits) > 1 else part[0] for part in zip(*matrices)
    )
    return CoefficientIntervals(
        names=sum((fit.names for fit in fits), ()), coef=coef, curvature_=curvature,
        gradients_=gradients, errors=errors, noise_share=noise_share, privacy_=loss,
    )


def _errors(fit, curvature, gradients, deviation):
    """Return what intervals are around, simulated errors of it, and the share of the model's noise."""
    d = len(fit.w)
    weighted = np.outer(fit.weights, fit.weights)
    moved = np.linalg.solve(_at_least_zero(curvature) + fit.mu * np.eye(d), fit.pull)
    coef = fit.scale * (fit.w + moved) + fit.centre
    # about the largest eigenvalue of a matrix of such entries
    noisy = fit.bounds[0] * deviation * math.sqrt(2 * d)
    least = np.linalg.eigvalsh(weighted * (curvature + fit.mu * np.eye(d)))[0]
    if least < FEWEST_DEVIATIONS * noisy:
        return coef, np.full((DRAWS, d), np.nan), np.full(d, np.nan)
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
    return coef, sum(told), variances[1] / sum(variances)


def upper(d):
    """Return the places of the upper triangle, and how much each counts in the squared length of all."""
    rows, columns = np.triu_indices(d)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


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

"""Bands around the terms of a linear model: a known law of their errors, or a bound on their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..accounting.privacy_loss import Adjacency
from ..base.capabilities import Calibrated
from ..base.learned_numbers import epsilon_of_fit, first_releases
from ..linear_model.coefficient_fits import simulated_noise
from ..linear_model.linear_noise import LinearNoise
from ..linear_model.ridge import DPRidge
from ..records.public_shape import PublicShape
from ..utils.type_aliases import FloatArray

# half-width of bands, in upper bounds on the noise's standard deviation
DEVIATIONS = 2
# share of errors within a band, where their law is known
LEVEL = 0.95


class Band(NamedTuple):
    """The band of a term: ends, standard deviation, and whether that is only an upper bound."""

    low: FloatArray
    high: FloatArray
    noise: FloatArray
    is_bound: bool


@dataclass(frozen=True, eq=False)
class Errors:
    """Simulated errors of coefficients, shape (m, p), around coefficients moved by `shift`."""

    errors: FloatArray
    shift: Any = 0.0

    def band(self, features, effect, sign):
        """Return the Band of a term with centred features, shape (n, q)."""
        moved = features @ self.errors.T
        half = np.quantile(np.abs(moved), LEVEL, axis=1)
        centre = effect + sign * features @ np.broadcast_to(self.shift, features.shape[1:])
        return Band(centre - half, centre + half, moved.std(axis=1), False)

    def of(self, outputs):
        """Return the errors of some of the coefficients."""
        shift = self.shift if np.ndim(self.shift) == 0 else self.shift[outputs]
        return Errors(self.errors[:, outputs], shift)


@dataclass(frozen=True, eq=False)
class NoiseBound:
    """A bound on the standard deviation of the noise of a.w for any a of length 1."""

    deviation: float
    is_bound: bool

    def band(self, features, effect, sign):
        """Return the Band of a term with centred features, shape (n, q)."""
        noise = self.deviation * np.linalg.norm(features, axis=1)
        half = DEVIATIONS * noise
        return Band(effect - half, effect + half, noise, self.is_bound)

    def of(self, outputs):
        """Return the bound for some of the coefficients, which is the same."""
        return self


def errors_of_intervals(intervals, coef, row):
    """Return the Errors that `coef_interval` has simulated, for row `row` of the coefficients."""
    n_rows, p = coef.shape
    if len(intervals.coef) not in (n_rows * p, n_rows * (p + 1)):
        raise ValueError(
            f"intervals are of {len(intervals.coef)} coefficients, and the model has {n_rows * p} and "
            "intercepts, so they are of another one; write coef_interval(estimator, ...) of this model."
        )
    d = len(intervals.coef) // n_rows
    place = slice(row * d, row * d + p)
    return Errors(intervals.errors[:, place], intervals.coef[place] - coef[row])


def noise_of_fit(model, n_samples):
    """Return Errors or a NoiseBound of a fit's noise, from public numbers and what was released."""
    if isinstance(model, DPRidge) and model.perturbation != "objective":
        return Errors(simulated_noise(model, n_samples))
    noise = None
    if isinstance(model, Calibrated):
        persons = model.privacy_.adjacency == Adjacency.REPLACE_PERSON
        shape = PublicShape(n_samples, *np.atleast_2d(model.coef_).T.shape, persons)
        learned = {name: getattr(model, f"{name}_") for name in first_releases(model)}
        noise = (
            clone(model).set_params(**learned).calibration(shape, epsilon_of_fit(model) or model.epsilon)
        )
    if not isinstance(noise, LinearNoise):
        why = f"no bound is known on the noise of a {type(model).__name__}"
    elif epsilon_of_fit(model) is None:
        why = "the noise of this model had a part in its choice, which changes the law of the noise"
    else:
        # noise that is added to the minimiser has this deviation, and no smaller one
        exact = noise.perturbation == "output" or noise.epsilon == float("inf")
        return NoiseBound(noise.deviation(), not exact)
    raise ValueError(f"n_samples={n_samples!r} asks for bands, and {why}; leave it out.")

"""The accuracy form of an estimator: its models at a sequence of noise levels, and their errors.

A private model is often a statistic of the records plus noise, and a function of the sum.
Such a model can be had at every epsilon of a grid, from the most private one on, either
along a *noise-reduction path*, where the last value pays for all before it, or with
*fresh* noise, where losses add up. How accurate each of them is can be computed from the
records again and again; what leaves is decided by the mechanisms of
:mod:`dpselect.mechanisms`.

Ligett, Neel, Roth, Waggoner and Wu 2017, section 3; the page "Accuracy first" of the
documentation has statements and proofs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..mechanisms.brownian import brownian_time, mixture_rho
from ..noise import (
    as_generator,
    grid_noise,
    grid_step,
    nearest_multiple,
    release,
    release_step,
    scale_with_rounding,
    spherical_laplace,
)
from ..noise.paths import BrownianPath, DiscreteLaplacePath, SphericalLaplacePath, path_step
from ..utils.validation import check_choice


@dataclass(frozen=True)
class NoiseLevels:
    """A public sequence of noise levels, by epsilon.

    Parameters
    ----------
    how : {"path", "brownian", "fresh"}
        "path": the noise of the estimator itself, correlated so that its reductions cost
        no more than the last one. "brownian": likewise, Gaussian. "fresh": independent.
    low, high : float
        The least and the largest epsilon that will be read.
    delta : float, default=0.0
        For "brownian": the probability with which the loss may exceed its bound.
    """

    how: str
    low: float
    high: float
    delta: float = 0.0

    def time(self, epsilon):
        """Return the variance of a Brownian path at a level, for a sensitivity of 1."""
        return brownian_time(epsilon, self.delta, self._rho)

    @cached_property
    def _rho(self):
        # the bound is tightest at one time, fixed in advance: the middle of the grid of epsilons
        middle = math.sqrt(self.low * self.high)
        rho = 2 * math.log(1 / self.delta) / middle**2
        for _ in range(3):
            rho = mixture_rho(brownian_time(middle, self.delta, rho), self.delta)
        return rho


@dataclass(frozen=True)
class SensitivityNoise:
    """Noise for a statistic of known sensitivity.

    Parameters
    ----------
    kind : {"l1", "integers", "l2"}
        "l1": independent Laplace variables, on a grid of :meth:`step`, hide a change in l1
        norm. "integers": integers do, for a statistic of integers. "l2": one spherical Laplace
        vector for each of k vectors hides a change in l2 norm in all of them at once, at epsilon /
        k each.
    shape : tuple of int
        Of the statistic; (k, d) for "l2".
    sensitivity : float
        In that norm, of the statistic divided by `scales`.
    scales : float or ndarray, default=1.0
        How much longer the noise of each coordinate is.
    """

    kind: str
    shape: tuple
    sensitivity: float
    scales: np.ndarray | float = 1.0

    def __post_init__(self):
        check_choice("kind", self.kind, ("l1", "integers", "l2"), why="its law is unknown")

    def deviation(self, levels, epsilon):
        """Return the standard deviation of one coordinate, of scale 1, at a level."""
        if self.kind == "l1":
            return self.sensitivity * math.sqrt(2) / epsilon
        if self.kind == "integers":
            # 2 p / (1 - p)^2 with p = exp(-epsilon / sensitivity)
            return 1 / (math.sqrt(2) * math.sinh(min(epsilon / self.sensitivity, 1400.0) / 2))
        length = 1.0 if levels.how == "brownian" else math.sqrt(self.shape[-1] + 1)
        return length * self._scale(levels, epsilon)

    def start(self, levels, stream):
        """Draw all random numbers in advance, and return the function that adds noise.

        Parameters
        ----------
        levels : NoiseLevels
        stream : InnerStream

        Returns
        -------
        callable
            Takes values, an epsilon, and the `unit` of :func:`~dpselect.noise.release`; epsilons in
            increasing order, each once, and the same values at all of them. Returns an ndarray of
            the values' shape.
        """
        generator, step = as_generator(stream), self.step(levels)
        if self.kind != "l2":
            noise = self._laplace(generator, levels, step)
            return lambda values, epsilon, unit=None: release(
                values, noise(epsilon).reshape(np.shape(values)), step, unit
            )
        noise = self._standard(generator, levels)
        # rounding adds to the sensitivity
        scales = np.broadcast_to(self.sensitivity * np.asarray(self.scales), self.shape[-1:])
        allowance = scale_with_rounding(scales, step, 1.0) / self.sensitivity

        def put_noise_on(values, epsilon, unit=None):
            scaled = allowance * (self._scale(levels, epsilon) * noise(epsilon))
            noisy = release(values, scaled.reshape(np.shape(values)), step, unit)
            # a coarser grid for longer noise, so that each of its cells holds many doubles
            return nearest_multiple(noisy, self._step_at(levels, epsilon))

        return put_noise_on

    def step(self, levels):
        """Return the step of the release grid, a power of two.

        Multiples of it may be released with noise of kind "l1" or "integers", without rounding.
        """
        if self.kind == "integers":
            return 1.0
        if self.kind == "l2":
            return self._step_at(levels, levels.high)
        scales = self.sensitivity * np.atleast_1d(self.scales)
        if levels.how == "fresh":
            return grid_step([scales.min() / levels.high, scales.max() / levels.low], unit=1.0)
        return min(1.0, path_step(float(scales.max()) / levels.low))

    def _step_at(self, levels, epsilon):
        return release_step(np.min(self.scales) * self._scale(levels, epsilon))

    def _scale(self, levels, epsilon):
        """Return the scale of standard noise of kind "l2" at a level."""
        if levels.how == "brownian":
            return self.sensitivity * math.sqrt(self.shape[0] * levels.time(epsilon))
        return self.sensitivity * self.shape[0] / epsilon

    def _standard(self, generator, levels):
        """Return the function from an epsilon to standard noise of kind "l2"."""
        if levels.how == "fresh":
            return lambda epsilon: spherical_laplace(generator, *self.shape)
        if levels.how == "brownian":
            path = BrownianPath(generator, self.shape)
            return lambda epsilon: path.read_at(levels.time(epsilon)) / math.sqrt(levels.time(epsilon))
        k = self.shape[0]
        path = SphericalLaplacePath(generator, *self.shape, levels.low / k, levels.high / k)
        return lambda epsilon: path.read(epsilon / k) * (epsilon / k)

    def _laplace(self, generator, levels, step):
        """Return the function from an epsilon to noise of the Laplace kinds, on the grid."""
        if levels.how == "fresh":
            scales = self.sensitivity * np.asarray(self.scales)
            return lambda epsilon: grid_noise(generator, self.shape, scales / epsilon, step)
        scales = np.broadcast_to(self.sensitivity * np.asarray(self.scales), self.shape)
        # rate of the discrete Laplace law at epsilon 1, in grid steps
        rates = step / scales
        paths = [
            (rate, where, DiscreteLaplacePath(generator, n, levels.low * rate, levels.high * rate))
            for rate, where, n in ((r, rates == r, np.sum(rates == r)) for r in np.unique(rates))
        ]

        def read(epsilon):
            noise = np.empty(self.shape)
            for rate, where, path in paths:
                noise[where] = path.read(epsilon * rate)
            return noise * step

        return read


@dataclass(frozen=True)
class AccuracyBounds:
    """Public numbers on the errors of an estimator's models, before any data.

    Attributes
    ----------
    risk : float
        How far one record moves the risk L of any model of a :class:`Reduction`.
    minimum : float
        How far it moves min L.
    root : float
        How far it moves the square root of the excess L - min L.
    forecast : callable
        (levels, epsilon) to a guess of the excess at a level. Promises nothing.
    """

    risk: float
    minimum: float
    root: float
    forecast: Callable

    @property
    def excess(self):
        """float : Sensitivity of the excess to one record."""
        return self.risk + self.minimum


class AccuracyForm(ABC):
    """Bounds on the accuracy of an estimator's models, before any data.

    The risk L is what the estimator minimises without noise. Everything here follows from
    public numbers, but `reduction`.

    Parameters
    ----------
    model : estimator

    Attributes
    ----------
    certified_params : dict
        The parameters under which the excess of one fit can be promised with the least noise.
    reduces_noise : bool
        Whether the release is a statistic plus noise, so that its noise can be reduced.
    nonnegative : bool
        Whether L is 0 or more.
    alpha_by_rule : bool
        Whether ``alpha="auto"`` computes alpha from public numbers.
    """

    certified_params: dict[str, Any] = {}
    alpha_by_rule = False
    reduces_noise = True
    nonnegative = True

    def __init__(self, model):
        self.model = model

    def delta(self, shape, epsilon):
        """Return the delta of one fit."""
        return float(self.model.get_params().get("delta", 0.0))

    @abstractmethod
    def excess_bound(self, shape, epsilon, failure_probability=None):
        """Bound L - min L of one fit with the model's parameters at a given epsilon.

        Parameters
        ----------
        shape : PublicShape
        epsilon : float
        failure_probability : float, default=None
            A number in (0, 1): the bound fails with at most this probability. None bounds
            the expected excess.

        Returns
        -------
        float

        Raises
        ------
        CertificateError
            If no bound is known.
        """

    @abstractmethod
    def bounds(self, shape):
        """Return the AccuracyBounds of the models of a reduction."""

    @abstractmethod
    def score_span(self, score, n_features):
        """Return the largest difference of two records' contributions to a score of any model.

        Raises
        ------
        CertificateError
            If no such bound is known.
        """

    @abstractmethod
    def reduction(self, X, y, levels, stream):
        """Return the Reduction of the records.

        Parameters
        ----------
        X, y
            As for `fit`.
        levels : NoiseLevels
        stream : InnerStream
            Of the noise.
        """


def root_rounding(largest_risk):
    """Bound the effect of rounding up two risks on the root of their difference.

    On each of two data sets the difference is off by some units in the last place, and its root
    by no more than the root of that.
    """
    return 2 * math.sqrt(2.0**-50 * largest_risk)


class Reduction(ABC):
    """Models at increasing epsilon, and their errors on the records.

    `read` gives what would be released, and `forecast` a guess from it. The rest are exact
    functions of the records, which must not leave a search without a mechanism.

    Attributes
    ----------
    levels : NoiseLevels
    bounds : AccuracyBounds
    """

    levels: NoiseLevels
    bounds: AccuracyBounds

    @abstractmethod
    def read(self, epsilon):
        """Return the model at the next level.

        Parameters
        ----------
        epsilon : float
            Larger than the ones read before.

        Returns
        -------
        ndarray
            The model's numbers.
        """

    @abstractmethod
    def risks(self, models):
        """Return L of each model, shape (t,)."""

    @property
    @abstractmethod
    def minimum(self):
        """float : The least L of all models."""

    @abstractmethod
    def publish(self, model, epsilon):
        """Return a fitted estimator for a model from `read`; without `privacy_`."""

    def forecast(self, model, epsilon):
        """Return an estimate of the excess of a model from `read`; it costs nothing."""
        return self.bounds.forecast(self.levels, epsilon)

    def excesses(self, models):
        """Return L - min L of each model, shape (t,)."""
        return np.maximum(self.risks(models) - self.minimum, 0.0)

"""Noise-reduction paths: correlated noise, of unit sensitivity, at many epsilons.

The values of a path are made one from the other: the noise at a smaller epsilon is the noise at a larger
one plus something independent of it. So all values up to epsilon together are post-processing of the
value at epsilon, and releasing them costs epsilon, not the sum.

Which epsilon to stop at may be chosen by looking at the values so far, never at those beyond or at the
data. A path lives as long as one fit: it contains all the noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..utils.type_aliases import Array, FloatArray, Shape
from ..utils.validation import check_number
from .grid import discrete_laplace_at_rate, geometric
from .standard_noise import exponential, gaussian

# float64 is exact for the integers of a path: one is larger than 64 / epsilon with a probability
# below exp(-64)
LOWEST_DISCRETE_EPSILON = 1e-14


class _JumpPath:
    """Independent coordinates, each a sum of jumps at random epsilons.

    The value at epsilon, from `low` to `high`, is `first`, that at `high`, plus all jumps at places
    of at least epsilon. `places`, from the largest to the smallest, and the sizes `jumps` have
    shape (n_jumps,); the generator gives each jump its coordinate.
    """

    def __init__(self, generator, low, high, first, places, jumps):
        self._low, self._high = low, high
        self._shape = np.shape(first)
        self._value = np.array(first).ravel()
        self._negative_places = -places
        self._cursor = 0
        # a table with a row per coordinate: its value at `high`, then after each jump
        self._coordinates = generator.integers(self._value.size, size=len(places))
        counts = np.bincount(self._coordinates, minlength=self._value.size)
        by_coordinate = np.argsort(self._coordinates, kind="stable")
        rank = np.empty(len(places), dtype=np.int64)
        rank[by_coordinate] = np.arange(len(places)) - np.repeat(counts.cumsum() - counts, counts)
        table = np.zeros((self._value.size, counts.max() + 1), dtype=self._value.dtype)
        table[:, 0] = self._value
        table[self._coordinates, rank + 1] = jumps
        np.cumsum(table, axis=1, out=table)
        self._before = table[self._coordinates, rank]
        self._after = table[self._coordinates, rank + 1]

    def read(self, epsilon: float) -> Array:
        """Return the noise at `epsilon`, for unit sensitivity.

        Parameters
        ----------
        epsilon : float
            Between `low` and `high`; in any order.

        Returns
        -------
        ndarray
            The same values each time.

        Raises
        ------
        ValueError
            If `epsilon` is outside.
        """
        _check_inside(epsilon, self._low, self._high)
        end = int(np.searchsorted(self._negative_places, -epsilon, side="right"))
        # assign values instead of adding jumps, so that rounding does not depend on the order; for a
        # coordinate that occurs twice numpy keeps the last assignment
        if end > self._cursor:
            passed = slice(self._cursor, end)
            self._value[self._coordinates[passed]] = self._after[passed]
        else:
            passed = slice(end, self._cursor)
            self._value[self._coordinates[passed][::-1]] = self._before[passed][::-1]
        self._cursor = end
        return self._value.reshape(self._shape).copy()


class DiscreteLaplacePath(_JumpPath):
    """Independent discrete Laplace integers of ratio exp(-epsilon), for all epsilons in a range.

    Added to integers of l1 sensitivity 1, the values up to epsilon are epsilon-differentially
    private, without rounding.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int
        Of a value, which is an array of int64.
    low, high : float
        Smallest and largest epsilon, 1e-14 <= low <= high.

    Raises
    ------
    ValueError
        If the bounds are not finite and in order, or `low` is so small that integers might not
        fit.

    Notes
    -----
    With p = exp(-e), each coordinate is a discrete Laplace variable at `high` and the jumps of
    a Poisson process of intensity ``2 p / (1 - p) de``, that is ``2 log(1 - p)`` cumulated. A
    jump at e is k = 1, 2, ... with probability ``(1 - p) p^(k-1)``, with a random sign.

    *Marginals.* The characteristic function of a discrete Laplace variable is
    ``(1 - p)^2 / |1 - p z|^2``, ``z = exp(is)``, with logarithmic derivative
    ``2 p / (1 - p) - 2 Re(p z / (1 - p z))`` in e. That is the intensity times one minus
    ``Re((1 - p) z / (1 - p z))``, the characteristic function of a jump: minus the derivative of
    the exponent of the jumps from e on, so the sum has the right function at every epsilon.

    *Privacy.* The jumps below epsilon are independent of the value at epsilon, so all noisier
    values are post-processing of that one.

    On a grid: from level e' to e < e' a coordinate is kept with probability
    ``sinh(e/2)^2 / sinh(e'/2)^2`` and otherwise takes a discrete Laplace variable of ratio p
    more. The jumps of that rule, of cumulated intensity ``2 log sinh(e/2)``, are 0 with
    probability ``(1 - p) / (1 + p)``; the process here leaves these out, so that a large `high`
    costs nothing.

    References
    ----------
    Koufogiannis, Han and Pappas, *Gradual Release of Sensitive Data under Differential Privacy*,
    Journal of Privacy and Confidentiality 7(2), 2016, for Laplace noise; the form for integers is
    derived here.

    Examples
    --------
    >>> from dpselect.noise import as_generator
    >>> from dpselect.noise.paths import DiscreteLaplacePath
    >>> path = DiscreteLaplacePath(as_generator(), 3, low=0.01, high=800.0)
    >>> path.read(800.0)
    array([0, 0, 0])
    """

    def __init__(
        self,
        generator: np.random.Generator,
        shape: Shape,
        low: float,
        high: float,
    ) -> None:
        low, high = _check_bounds(low, high)
        if low < LOWEST_DISCRETE_EPSILON:
            raise ValueError(
                f"low={low} would need integers that do not fit; give {LOWEST_DISCRETE_EPSILON} or more."
            )
        # exponential variables over epsilon: computing exp(-epsilon) would round a small epsilon
        first = np.asarray(discrete_laplace_at_rate(generator, shape, high))
        # negative cumulative intensities, which stay small up to `high`
        start, end = 2 * _log_one_minus_exp(low), 2 * _log_one_minus_exp(high)
        n_jumps = generator.poisson(first.size * (end - start))
        reached = end + (start - end) * (1 - generator.random(n_jumps))
        places = np.clip(-_log_one_minus_exp(-reached / 2), low, high)
        places = np.sort(places)[::-1]
        signs = 2 * generator.integers(2, size=n_jumps) - 1
        jumps = signs * (1 + geometric(generator, n_jumps, places))
        super().__init__(generator, low, high, first, places, jumps)


class BrownianPath:
    """Independent Brownian motions, read backwards in time.

    The value at time t is N(0, t) in each coordinate, and values at later times are it plus
    something independent.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int
        Of a value.

    Notes
    -----
    Given the value x at time T, the value at t <= T is ``N(t/T x, t (T - t) / T)``, independent of
    all values beyond T. Read at random times that do not depend on it, it is still a path: given
    the times, the noisier values are post-processing of the last.

    References
    ----------
    Whitehouse, Ramdas, Wu and Rogers, *Brownian Noise Reduction: Maximizing Privacy Subject to
    Accuracy Constraints*, NeurIPS 2022.

    Examples
    --------
    >>> from dpselect.noise import as_generator
    >>> from dpselect.noise.paths import BrownianPath
    >>> path = BrownianPath(as_generator(), (2, 3))
    >>> noisy, less_noisy = path.read_at(9.0), path.read_at(1.0)
    >>> bool((path.read_at(1.0) == less_noisy).all())
    True
    """

    def __init__(self, generator: np.random.Generator, shape: Shape) -> None:
        self._generator = generator
        self._shape = shape
        self._time: Any = None
        self._value: Any = None

    def read_at(self, time: npt.ArrayLike) -> FloatArray:
        """Return the motion at `time`.

        Parameters
        ----------
        time : float or ndarray
            Broadcasts to the shape of a value, for coordinates with times of their own. Nowhere
            negative or larger than at the value before.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            If a time is negative or increases.
        """
        time = np.asarray(time, dtype=np.float64)
        last = np.inf if self._time is None else self._time
        if not ((time >= 0) & (time <= last)).all():
            raise ValueError("a Brownian path is read backwards: times must not increase.")
        noise = gaussian(self._generator, self._shape)
        if self._time is None:
            self._value = np.sqrt(time) * noise
        else:
            # a Brownian motion is 0 at time 0
            ratio = time / np.where(last > 0, last, 1)
            # in place: at equal times the ratio is 1 and the value unchanged, exactly
            self._value *= ratio
            noise *= np.sqrt(ratio * (last - time))
            self._value += noise
        self._time = np.array(time)
        return self._value.copy()


class SphericalLaplacePath:
    """Independent vectors with density prop. to exp(-epsilon ||r||_2), at increasing epsilons.

    Added to k vectors whose changes have l2 lengths of 1 in total, the values up to epsilon are
    epsilon-differentially private.

    Parameters
    ----------
    generator : numpy.random.Generator
    n_vectors : int
        Number of independent vectors k.
    dimension : int
        Number of coordinates d of each, 1 or more.
    low, high : float
        Smallest and largest epsilon, 0 < low <= high.

    Raises
    ------
    ValueError
        If the bounds are not positive, finite and in order.

    Notes
    -----
    Each vector is a Brownian motion in d coordinates, read at a random time ``tau(epsilon)`` that
    falls as epsilon grows: ``2 Gamma((d + 1) / 2, 1) / high^2`` and, for each place e of at least
    epsilon of a Poisson process of intensity ``(d + 1) de / e``, ``2 W / e^2`` more, W standard
    exponential. There are ``(d + 1) log(high / low)`` jumps of the time per vector on average.

    *Marginals.* Given the time, a coordinate is N(0, tau), so the characteristic function at s is
    ``E exp(-tau ||s||^2 / 2)``; with the Gamma time at epsilon it is
    ``(1 + ||s||^2 / epsilon^2)^(-(d+1)/2)``, that of the density. Its logarithmic derivative at e
    is ``(d + 1) / e`` times ``1 - 1 / (1 + ||s||^2 / e^2)``, one minus the value for a jump of
    the time: minus the derivative of the exponent of the jumps from e on.

    *Privacy.* The jumps of the time below epsilon and the motion after ``tau(epsilon)`` are
    independent of the value at epsilon, so all noisier values are post-processing of it.

    References
    ----------
    The density: Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk
    Minimization*, JMLR 12, 2011, equation (7). The motion: Whitehouse, Ramdas, Wu and Rogers,
    *Brownian Noise Reduction*, NeurIPS 2022. The random time is derived here.

    Examples
    --------
    >>> from dpselect.noise import as_generator
    >>> from dpselect.noise.paths import SphericalLaplacePath
    >>> path = SphericalLaplacePath(as_generator(), 2, 3, low=0.01, high=10.0)
    >>> noisy, less_noisy = path.read(0.1), path.read(1.0)
    >>> less_noisy.shape
    (2, 3)
    """

    def __init__(
        self,
        generator: np.random.Generator,
        n_vectors: int,
        dimension: int,
        low: float,
        high: float,
    ) -> None:
        low, high = _check_bounds(low, high, power=2)
        n_vectors, dimension = int(n_vectors), int(dimension)
        self._epsilon = low
        shape = (n_vectors, 1)
        first = 2 / high**2 * generator.standard_gamma((dimension + 1) / 2, size=shape)
        n_jumps = generator.poisson(n_vectors * (dimension + 1) * (np.log(high) - np.log(low)))
        places = _log_uniform(generator, n_jumps, low, high)
        jumps = 2 * exponential(generator, n_jumps) / places**2
        self._times = _JumpPath(generator, low, high, first, places, jumps)
        self._motion = BrownianPath(generator, (n_vectors, dimension))

    def read(self, epsilon: float) -> FloatArray:
        """Return the noise at `epsilon`, for unit sensitivity.

        Parameters
        ----------
        epsilon : float
            Between `low` and `high`, and not below that of the value before.

        Returns
        -------
        ndarray of shape (n_vectors, dimension)

        Raises
        ------
        ValueError
            If `epsilon` is outside, or falls.
        """
        time = self._times.read(epsilon)
        if epsilon < self._epsilon:
            raise ValueError(
                f"epsilon={epsilon} after {self._epsilon}: a spherical Laplace path is read at "
                "epsilons that do not fall."
            )
        self._epsilon = epsilon
        return self._motion.read_at(time)


def path_step(longest):
    """Return the step of a grid for a :class:`DiscreteLaplacePath`, from public numbers.

    The least power of two of which `longest`, the scale of the noise at the least epsilon, is no
    more multiples than doubles hold.
    """
    return 2.0 ** math.ceil(math.log2(longest) + math.log2(LOWEST_DISCRETE_EPSILON * (1 + 2.0**-40)))


def _check_bounds(low, high, power=1):
    """Return the bounds as floats, whose powers and inverses must be finite, too."""
    low, high = (
        check_number(
            name,
            value,
            low=1e-300 ** (1 / power),
            low_included=True,
            high=1e300 ** (1 / power),
            high_included=True,
            why="such numbers are not the ends of a range of epsilons",
            instead="write the smallest and the largest epsilon that will be read",
        )
        for name, value in (("low", low), ("high", high))
    )
    if low > high:
        raise ValueError(f"low={low} and high={high} are not the ends of a range of epsilons.")
    return low, high


def _check_inside(epsilon, low, high):
    if not low <= epsilon <= high:
        raise ValueError(f"epsilon={epsilon} is not between {low} and {high}.")


def _log_uniform(generator, n, low, high):
    """Draw `n` epsilons with density prop. to 1/e, sorted from the largest."""
    logs = np.log(low) + (np.log(high) - np.log(low)) * generator.random(n)
    return np.clip(np.sort(np.exp(logs))[::-1], low, high)


def _log_one_minus_exp(x):
    """Return log(1 - exp(-x)) for x > 0 to full relative precision; minus it is its own inverse."""
    near = np.log(-np.expm1(-x))
    return np.where(x < np.log(2), near, np.log1p(-np.exp(-np.maximum(x, np.log(2)))))

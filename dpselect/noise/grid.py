"""Noise on a grid, so that floating-point bits do not reveal the values.

A sum of a double and Laplace noise lies on a grid that depends on the double, so its last bits
tell data sets apart. Here the values and the noise are multiples of one power of two, which is fixed
by public numbers. Both are exact as doubles, and a processor rounds their sum as a function of
the exact one; so all data sets reach the same doubles.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..utils.type_aliases import FloatArray, IntArray, Shape
from ..utils.validation import unquoted

# binary logarithm of the grid steps per scale of the noise
FINENESS = 40
# random bits per digit, and the leading ones, which suffice unless there is a tie
RANDOM_BITS = 64
LATER_BITS = RANDOM_BITS - 8
# batch size, so that random bytes stay in a processor's cache
BATCH = 1 << 11
# float64 is exact for integers up to this one
LARGEST_PLACE = 2.0**53
# step that leaves all values unchanged
NO_GRID = 2.0**-1000
# noise exceeds so many scales with a probability below exp(-64)
LONGEST = 64
# smallest rate, at which an integer of 62 digits or more has a probability below exp(-45)
LEAST_RATE = 45 / 2.0**62


def geometric(generator: np.random.Generator, shape: Shape, rate: npt.ArrayLike) -> IntArray:
    """Draw independent integers k from 0 with probabilities proportional to exp(-rate k).

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int
    rate : float or array-like
        At least 1e-17, at most ``inf``, which gives zeros; broadcast against `shape`.

    Returns
    -------
    ndarray of int64 of shape `shape`

    Raises
    ------
    ValueError
        If a rate is out of its range.

    Notes
    -----
    The binary digits of such an integer are independent: digit j is 1 with probability
    1 / (1 + exp(rate 2^j)). Each is decided by 64 random bits, of which all but the first 8 are drawn
    only where those leave it open; digits whose probability is below 2^-65 are 0. The page "Noise on a
    grid" says how close the law is to the exact one.

    Examples
    --------
    >>> from dpselect.noise import as_generator, geometric
    >>> geometric(as_generator(), 3, rate=float("inf"))
    array([0, 0, 0])
    """
    shape = tuple(np.atleast_1d(shape).tolist())
    rate = unquoted(np.asarray, rate, dtype=np.float64, what="rate")
    if not (rate >= LEAST_RATE).all():
        raise ValueError(
            f"rate has an entry that is not a number of {LEAST_RATE:.3g} or more, for which the "
            "integers would not fit into 64 bits, or be no noise; give larger rates."
        )
    unquoted(np.broadcast_to, rate, shape, what="rate")
    different, which = rate.reshape(-1), None
    if rate.size > 1:
        # noise of many numbers has few distinct scales, so compute the limits once for each
        different, which = np.unique(rate, return_inverse=True)
        which = np.broadcast_to(which.reshape(rate.shape), shape).reshape(-1)
    n_digits = _n_digits(different)
    limits_of = _limits_of(different, which, n_digits)
    drawn = np.zeros((math.prod(shape), 8), dtype=np.uint8)
    for start in range(0, len(drawn), BATCH):
        part = drawn[start : start + BATCH]
        limits, own = limits_of(slice(start, start + BATCH))
        digits = _digits(generator, len(part), limits, own)
        part[:, : -(-n_digits // 8)] = np.packbits(digits, axis=1, bitorder="little")
    return drawn.view("<i8").astype(np.int64, copy=False).reshape(shape)


def _limits_of(different, which, n_digits):
    """Return a function from a slice of the numbers to distinct limits, and the index of each one's."""
    if which is None or len(different) <= BATCH:
        limits = _limits(different, n_digits)
        return lambda part: (limits, None if which is None else which[part])
    return lambda part: (_limits(different[which[part]], n_digits), slice(None))


def _digits(generator, n, limits, which):
    """Draw the digits of `n` integers, with limits ``limits[which]``, or ``limits[0]`` for all."""
    n_digits = limits.shape[1]
    first = (limits >> LATER_BITS).astype(np.uint8)
    drawn = _words(generator, -(-n * n_digits // 8)).view(np.uint8)[: n * n_digits]
    drawn = drawn.reshape(n, n_digits)
    if which is not None:
        first, limits = first[which], limits[which]
    digits = drawn < first
    # a tie, with a probability of 1 / 256
    ties = np.flatnonzero(drawn == first)
    later = limits.reshape(-1)[ties if which is not None else ties % max(n_digits, 1)]
    digits.reshape(-1)[ties] = _words(generator, len(ties)) >> 8 < later & (2**LATER_BITS - 1)
    return digits


def _words(generator, n):
    return generator.integers(0, 2**RANDOM_BITS, size=n, dtype=np.uint64)


def _n_digits(rates):
    """Return the number of digits that can be 1: exp(46) is above 2^66."""
    return min(max(math.frexp(46 / rates.min(initial=np.inf))[1], 0), 62)


def _limits(rates, n_digits):
    """Return the limits out of 2^64 below which a digit is 1, shape (n_rates, n_digits)."""
    with np.errstate(over="ignore"):
        odds = np.exp(np.ldexp(rates[:, None], np.arange(n_digits)))
    # at most 2**63, because each digit is 1 with a probability of at most 1 / 2
    return np.rint(np.ldexp(1 / (1 + odds), RANDOM_BITS)).astype(np.uint64)


def discrete_laplace(
    generator: np.random.Generator,
    shape: Shape,
    ratio: npt.ArrayLike,
) -> IntArray:
    """Draw independent integers k with probabilities proportional to ``ratio ** abs(k)``.

    The difference of two geometric variables. Added to integers of l1 sensitivity S it gives
    ``-S log(ratio)``-differential privacy, without rounding.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int
    ratio : float or array-like
        In [0, 1); 0 gives zeros. Broadcast against `shape`.

    Returns
    -------
    ndarray of int64

    References
    ----------
    Ghosh, Roughgarden and Sundararajan, *Universally Utility-Maximizing Privacy
    Mechanisms*, STOC 2009.

    Examples
    --------
    >>> from dpselect.noise import as_generator, discrete_laplace
    >>> discrete_laplace(as_generator(), 3, ratio=0.0)
    array([0, 0, 0])
    """
    ratio = unquoted(np.asarray, ratio, dtype=np.float64, what="ratio")
    if not ((ratio >= 0) & (ratio < 1)).all():
        raise ValueError(
            "ratio has an entry that is not a number from 0 to less than 1, and no law has "
            "probabilities proportional to its powers; write such a number."
        )
    unquoted(np.broadcast_to, ratio, shape, what="ratio")
    with np.errstate(divide="ignore"):
        rate = -np.log(ratio)
    return discrete_laplace_at_rate(generator, shape, rate)


def noise_ratio(epsilon, sensitivity):
    """Return the ratio of :func:`discrete_laplace` for integers of this l1 sensitivity."""
    # rounded up, so that rounding does not exceed the stated loss
    return np.nextafter(math.exp(-epsilon / sensitivity), 1.0)


def grid_noise(
    generator: np.random.Generator,
    shape: Shape,
    scales: npt.ArrayLike,
    step: float,
) -> FloatArray:
    """Draw independent Laplace variables on a grid.

    Added to multiples of `step`, as doubles, they hide what Laplace variables of these scales hide
    among real numbers; nothing has to be rounded.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int
    scales : float or array-like
        b_j, 0 or more, of each variable; broadcast against `shape`. 0 gives zeros.
    step : float
        g, a power of two, from public numbers.

    Returns
    -------
    ndarray of float64 of shape `shape`
        Multiples k g, exactly, with probabilities proportional to ``exp(-g |k| / b_j)``.

    Raises
    ------
    ValueError
        If a scale is so much longer than the step that doubles would not hold the multiples.

    Examples
    --------
    >>> from dpselect.noise import as_generator, grid_noise
    >>> noise = grid_noise(as_generator(), 3, scales=0.7, step=2.0**-40)
    >>> (noise % 2.0**-40).tolist()
    [0.0, 0.0, 0.0]
    """
    scales = np.asarray(scales, dtype=np.float64)
    if not (LONGEST * scales <= LARGEST_PLACE * step).all():
        raise ValueError(
            f"scales of up to {scales.max(initial=0.0):.3g} are too long for a grid of "
            f"step={step:.3g}, so the last bits of the noise would be lost; give a larger step."
        )
    with np.errstate(divide="ignore"):
        # by the rate itself: exp(-rate) is so near 1 that its logarithm would be inaccurate
        rate = step / scales
    return discrete_laplace_at_rate(generator, shape, rate).astype(np.float64) * step


def discrete_laplace_at_rate(generator, shape, rate):
    """Draw independent integers k with probabilities proportional to ``exp(-rate |k|)``."""
    one, other = geometric(generator, (2, *np.atleast_1d(shape)), rate)
    return one - other


def nearest_multiple(values: npt.ArrayLike, step: float | FloatArray) -> FloatArray:
    """Round values to the nearest multiples of a power of two, exactly.

    Parameters
    ----------
    values : float or ndarray
    step : float or ndarray
        The powers of two.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> from dpselect.noise import nearest_multiple
    >>> nearest_multiple([0.3, 1.0], 0.25).tolist()
    [0.25, 1.0]
    """
    values = np.asarray(values, dtype=np.float64)
    # larger floats are multiples already, and might overflow
    inside = np.abs(values) < LARGEST_PLACE * step
    # dividing by a power of two is exact
    if inside.all():
        return np.rint(values / step) * step
    return np.where(inside, np.rint(np.where(inside, values, 0.0) / step) * step, values)


def grid_step(scales: npt.ArrayLike, unit: float = np.inf) -> float:
    """Return the step of a grid for noise: a power of two, from public numbers.

    Parameters
    ----------
    scales : float or array-like
        Of the noise. If all are 0, the step is so small that nothing is rounded.
    unit : float, default=inf
        A power of two of which the values are multiples; the step divides it, so that they need
        not be rounded.

    Returns
    -------
    float
        About a 2^-40-th of the least scale, or more where doubles would not hold the noise of the
        largest.

    Examples
    --------
    >>> from dpselect.noise import grid_step
    >>> grid_step(1.0) == 2.0**-40
    True
    """
    least, largest = float(np.min(scales)), float(np.max(scales))
    if largest == 0:
        return NO_GRID
    # one power more than needed, because the allowance for rounding increases scales
    coarse = math.ceil(math.log2(largest) + math.log2(LONGEST / LARGEST_PLACE)) + 1
    return min(unit, 2.0 ** max(math.ceil(math.log2(least)) - FINENESS, coarse))

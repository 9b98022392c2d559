"""Noise on a lattice: numbers whose floating-point bits tell nothing of what they were.

A sum of a double and Laplace noise lies on a grid that depends on the double, so its last bits
tell data sets apart. Here values are first rounded to a grid that is fixed by public numbers, and
integers are added to their places on it, so all data sets reach the same doubles.
"""

import math

import numpy as np

from ..checks import check_number
from ..unquoted import unquoted

# steps of the grid in a scale of the noise, as a power of two
FINENESS = 40
# uniform integers that decide a bit
RANDOM_BITS = 64
# places on the grid are integers of 64 bits, of which noise takes about one in two thousand
LARGEST_PLACE = 2.0**62
# an integer of 62 digits or more has a probability below exp(-45) at this rate
LEAST_RATE = 45 / 2.0**62


def geometric(generator, shape, rate):
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
    1 / (1 + exp(rate 2^j)). Each is decided by 64 random bits; digits whose probability is below
    2^-65 are 0. The page "Noise on a lattice" says how close the law is to the exact one.

    Examples
    --------
    >>> from dpselect.noise import as_generator, geometric
    >>> geometric(as_generator(), 3, rate=float("inf"))
    array([0, 0, 0])
    """
    shape = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    rate = unquoted(np.asarray, rate, dtype=np.float64, what="rate")
    if not (rate >= LEAST_RATE).all():
        raise ValueError(
            f"rate has an entry that is not a number of {LEAST_RATE:.3g} or more, for which the "
            "integers would not fit into 64 bits, or be no noise; give larger rates."
        )
    unquoted(np.broadcast_to, rate, shape, what="rate")
    drawn = np.zeros(shape, dtype=np.int64)
    for digit in range(62):
        with np.errstate(over="ignore"):
            limit = np.ldexp(1 / (1 + np.exp(np.ldexp(rate, digit))), RANDOM_BITS)
        if not limit.max(initial=0.0) >= 0.5:
            break
        # below 2**63, since no digit is more likely 1 than 0
        limit = np.minimum(np.rint(limit), 2.0**63).astype(np.uint64)
        bits = generator.integers(0, 2**RANDOM_BITS, size=shape, dtype=np.uint64)
        drawn += (bits < limit).astype(np.int64) << digit
    return drawn


def two_sided_geometric(generator, shape, ratio):
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
    >>> from dpselect.noise import as_generator, two_sided_geometric
    >>> two_sided_geometric(as_generator(), 3, ratio=0.0)
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
    return geometric(generator, shape, rate) - geometric(generator, shape, rate)


def lattice_laplace(generator, values, scales, epsilon, largest):
    """Round values to a grid and add discrete Laplace noise.

    Parameters
    ----------
    generator : numpy.random.Generator
    values : ndarray
        What is released, with noise.
    scales : float or ndarray
        b_j, for which ``sum |values_j - values'_j| / b_j <= epsilon`` for all neighbours: the
        scales that Laplace noise would have.
    epsilon : float
        Privacy loss, greater than 0.
    largest : float
        Public bound on the absolute values.

    Returns
    -------
    ndarray of float64
        Multiples of a power of two that depends on `scales` and `largest` only.

    Raises
    ------
    ValueError
        If a value exceeds `largest`, or another number is out of its range.

    Notes
    -----
    With the step g of the grid, rounding moves two values apart by at most g, so that their
    places differ by ``|values_j - values'_j| / g + 1`` at most. Noise of ratio exp(-g / b'_j), b'_j =
    b_j (1 + sum_i g / (b_i epsilon)), then costs ``sum (|values_j - values'_j| + g) / b'_j <=
    epsilon``. The last conversion to float64 is a function of the places alone.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect.noise import as_generator, lattice_laplace
    >>> noisy = lattice_laplace(as_generator(), np.array([0.1, 0.2]), 1.0, 0.5, largest=1.0)
    >>> (noisy % 2.0**-40).tolist()
    [0.0, 0.0]
    """
    values = unquoted(np.asarray, values, dtype=np.float64, what="values")
    if values.size == 0:
        return values.copy()
    scales = unquoted(np.asarray, scales, dtype=np.float64, what="scales")
    scales = unquoted(np.broadcast_to, scales, values.shape, what="scales")
    # beyond these the grid would leave the range of doubles
    if not ((scales >= 1e-250) & (scales <= 1e250)).all():
        raise ValueError(
            "scales has an entry that is not a number between 1e-250 and 1e250, without which "
            "values would be released with other noise than was meant; write a number there."
        )
    epsilon, largest = (
        check_number(
            name, given, low=1e-250, low_included=True, high=1e250, high_included=True,
            why="values would be released with other noise than was meant",
            instead="write a number between 1e-250 and 1e250",
        )
        for name, given in (("epsilon", epsilon), ("largest", largest))
    )
    step = grid_step(scales, largest)
    if not (np.abs(values) <= largest).all():
        raise ValueError(
            "values exceed their public bound, so the grid that is made for it would not hold them; "
            "clip records before they are summed."
        )
    # dividing by a power of two is exact
    places = np.rint(values / step).astype(np.int64)
    wider = scales * (1 + float(np.sum(step / scales)) / epsilon)
    # not by the ratio exp(-rate), which is so near 1 that its logarithm would be off
    up, down = (geometric(generator, values.shape, step / wider) for _ in range(2))
    return (places + up - down).astype(np.float64) * step


def grid_step(scales, largest):
    """Return the step of the grid: a power of two, from public numbers.

    Parameters
    ----------
    scales : ndarray
        Of the noise.
    largest : float
        Bound on the absolute values.

    Returns
    -------
    float
        About a 2^-40-th of the least scale, or more where 64 bits would not hold the places.
    """
    least = float(np.min(scales))
    fine = math.ceil(math.log2(least)) - FINENESS
    # noise is hardly ever longer than 64 scales
    longest = max(float(largest), 64 * float(np.max(scales)))
    coarse = math.ceil(math.log2(longest / LARGEST_PLACE))
    return 2.0 ** max(fine, coarse)

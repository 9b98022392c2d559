"""Norms of standard noise, their quantiles, and its spread, for guarantees and pictures."""

import functools
import math

import numpy as np
from scipy import fft
from scipy.special import gammainc, gammaincc, gammainccinv

# step of the grid of squared norms, relative to the quantile; the error is half a step, and half of
# that in the norm
STEP = 0.01
# fraction of the failure probability for each of the two parts outside the grid
FRACTION = 1e-3
# error of the transform in double precision, measured against extended precision up to d = 1e6
ROUNDING = 1e-11
# smallest probability above the rounding error
RARE = 1e-9


@functools.lru_cache(maxsize=1024)
def laplace_length_quantile(dimension, probability):
    """Bound the l2 norm of d standard Laplace variables, except with a given probability.

    For d from 1 to 1e6 and probabilities of at most 0.5: q with ``P(||r||_2 > q) <= probability``,
    at most 1 % above the smallest such; more for probabilities below 1e-9, where the length is
    bounded by the sum of the coordinates and by the longest of them.

    The squares have ``P(r_i^2 > x) = exp(-sqrt(x))``. They are rounded up to a grid, which can only
    lengthen the vector, and their law is convolved with itself by a power of its Fourier transform.
    The parts that the grid does not hold count towards `probability`:

      * a square beyond the cap C, which has probability at most ``d exp(-sqrt(C))``;
      * a sum S of capped squares beyond the top L of the grid, which the transform would fold
        back to small values; by Chernoff's bound it has probability at most
        ``exp(-theta L) E(exp(theta S))`` for every theta > 0, with the law on the grid;
      * the rounding of the transform.

    In high dimension the window of the transform begins above 0. What lies below is folded to the
    top, where it makes the bound larger, not wrong, and not by much: sums fall t or more short of
    their mean 2 d with probability at most ``exp(-t^2 / (48 d))``, by Maurer's bound for
    nonnegative variables, with ``E r_i^4 = 24``: *A Bound on the Deviation Probability for Sums of
    Non-Negative Random Variables*, Journal of Inequalities in Pure and Applied Mathematics 4(1),
    2003, theorem 1.

    The step is 1 % of a low guess of the quantile of the sum, divided by d. So the sum grows by 1 %
    at most, and its root by half of that.
    """
    if probability < RARE:
        longest = math.log(dimension / probability)
        return min(float(gammainccinv(dimension, probability)), math.sqrt(dimension) * longest)
    allowance = -np.log(FRACTION * probability)
    cap = (np.log(dimension) + allowance) ** 2
    # lower bounds: from the largest square alone, the median for few coordinates, mean minus deviations
    guess = max(np.log(probability) ** 2, 0.48 * dimension, 2 * dimension - 3 * dimension**0.5)
    step = STEP * guess / dimension
    n_steps = int(np.ceil(cap / step))
    grid = step * np.arange(n_steps + 1)
    beyond = np.exp(-np.sqrt(grid))
    law = np.append(0.0, beyond[:-1] - beyond[1:])

    # upper end of the grid: beyond the cap's inverse root the exponential moment explodes
    theta = np.geomspace(1e-4, 2 / cap**0.5, 16)
    log_moment = np.log([law @ np.exp(rate * grid) for rate in theta])
    top = np.min((dimension * log_moment + allowance) / theta)
    bottom = max(0.0, 2 * dimension - np.sqrt(48 * dimension * allowance))
    start = int(bottom / step)
    size = fft.next_fast_len(max(int(np.ceil(top / step)) + 1 - start, n_steps + 1), real=True)

    sums = fft.irfft(fft.rfft(law, size) ** dimension, size)
    sums = np.roll(sums, -(start % size))
    # probabilities of a sum beyond start + i steps
    tails = sums[::-1].cumsum()[::-1] - sums
    failure = tails + dimension * beyond[-1] + FRACTION * probability + ROUNDING
    return float(np.sqrt(step * (start + np.flatnonzero(failure <= probability)[0])))


def noise_length(law, dimension, probability=None):
    """Return an upper quantile of the l2 norm of standard noise, or its root mean square.

    Independent Laplace variables for `law` "l1", standard normal ones for "gaussian"; for "l2" a
    spherical Laplace vector, whose length has the law Gamma(d, 1).
    """
    if probability is None:
        return math.sqrt(squared_length(law, dimension))
    if law == "gaussian":
        return math.sqrt(2 * gammainccinv(dimension / 2, probability))
    if law == "l1":
        return laplace_length_quantile(dimension, probability)
    return float(gammainccinv(dimension, probability))


def squared_length(law, dimension):
    """Return the mean of the squared l2 norm of standard noise: see :func:`noise_length`."""
    d = dimension
    return {"l1": 2 * d, "l2": d * (d + 1), "gaussian": d}[law]


def lipschitz_deviation(law, dimension):
    """Bound the standard deviation over standard noise of a function with l2 Lipschitz constant 1.

    The square is a Poincare constant: see "What noise does to a curve" on the page "Linear classifiers".
    """
    d = dimension
    if law == "gaussian":
        return 1.0
    if law == "l1" or d == 1:
        return 2.0
    # the mean of max(rho, rho^2 / (d - 1)) over lengths with the law Gamma(d, 1)
    short, long = d * gammainc(d + 1, d - 1), d * (d + 1) / (d - 1) * gammaincc(d + 2, d - 1)
    return math.sqrt(short + long)

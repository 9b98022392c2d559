"""The minimiser of a quadratic over a ball, convex or not: the trust-region subproblem.

Given the eigendecomposition of a symmetric matrix, each further shift of its diagonal,
linear term or radius costs a few sums over the spectrum.
"""

import numpy as np

# Newton's steps converge quadratically; after so many, bisection takes over
MAX_STEPS = 200
TINY = np.finfo(np.float64).tiny


def minimise_on_ball(spectrum, linear, radius):
    """Return a global minimiser of a quadratic over a ball, in the matrix's eigenbasis.

    Minimises sum_i (spectrum_i t_i^2 / 2 - linear_i t_i) over ||t||_2 <= radius. Eigenvalues may be
    negative, and ``inf`` holds its coordinate at 0.

    Notes
    -----
    t is a global minimiser if and only if (spectrum + nu) t = linear for some nu >= 0 with
    spectrum + nu >= 0 and nu (radius - ||t||) = 0. Written in sigma = nu + min(spectrum),
    1 / ||t(sigma)|| is concave and increasing, so Newton's method for
    1 / ||t(sigma)|| = 1 / radius cannot overshoot from the left; a bracket guards against
    rounding. In the *hard case* (the smallest eigenvalue is negative, the linear term
    vanishes on its eigenvectors, and the rest is too short) sigma is 0 and the length that
    is missing lies along such an eigenvector. Moré and Sorensen, *Computing a Trust Region
    Step*, 1983.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect.linear_model.ridge.trust_region import minimise_on_ball
    >>> minimise_on_ball(np.array([1.0, 2.0]), np.array([0.5, 0.5]), radius=1.0)
    array([0.5 , 0.25])
    >>> minimise_on_ball(np.array([-1.0, 1.0]), np.array([0.0, 1.2]), radius=1.0)  # hard case
    array([0.8, 0.6])
    """
    spectrum, linear = np.asarray(spectrum, np.float64), np.asarray(linear, np.float64)
    smallest = spectrum.min()
    if smallest == np.inf:
        return np.zeros_like(linear)
    if smallest > 0:
        inside = linear / spectrum
        if length_of(inside) <= radius:
            return inside
    # exact zeros for the smallest eigenvalue: sigma keeps its relative precision near 0
    gaps = spectrum - smallest
    bottom = gaps == 0
    low = max(smallest, 0.0, length_of(linear[bottom]) / radius)
    if low < TINY:  # below, sigma would be subnormal
        loose = ~bottom & (linear != 0)
        t = np.zeros_like(linear)
        with np.errstate(over="ignore"):
            t[loose] = linear[loose] / gaps[loose]
            length = length_of(t)
        if length <= radius:
            t[np.flatnonzero(bottom)[0]] = np.sqrt((radius - length) * (radius + length))
            return t
    sigma = _secular_root(gaps, linear, radius, low)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(linear == 0, 0.0, linear / (gaps + sigma))
    return t * (radius / length_of(t))


def _secular_root(gaps, linear, radius, low):
    """Return sigma > 0 with ||linear / (gaps + sigma)|| = radius, which exists above `low`."""
    finite = (linear != 0) & np.isfinite(gaps)
    gaps, linear = gaps[finite], linear[finite]
    # ||t(sigma)|| <= ||linear|| / sigma
    high = max(length_of(linear) / radius, low)
    # bisect geometrically while the root may be far below `high`
    low = max(low, TINY)
    sigma = low
    for _ in range(MAX_STEPS):
        with np.errstate(over="ignore"):
            t = linear / (gaps + sigma)
            length = length_of(t)
        if length > radius:
            low = sigma
        else:
            high = sigma
        step = np.nan
        if 0 < length < np.inf:
            direction = t / length
            second_derivative = (direction * direction / (gaps + sigma)).sum()
            step = sigma + (length - radius) / radius / second_derivative
        if step == sigma or high <= low * (1 + 2**-52):
            break
        sigma = step if low < step < high else np.sqrt(low) * np.sqrt(high)
    return sigma


def length_of(vector):
    """Return the l2 norm, without overflow or underflow of the squares."""
    largest = np.abs(vector).max(initial=0.0)
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * np.linalg.norm(vector / largest)

"""The release gate: add noise, and round the sum to a grid.

Whatever is released as numbers is a sum of values, which are functions of the records, and of noise,
which is not. Both are rounded to multiples of one power of two that public numbers fix, and added
exactly. So all data sets reach the same doubles, and the last bits tell nothing. The page "Noise on a
grid" has statement and proof. No noise hides NaN or infinity, so they do not pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..utils.type_aliases import FloatArray
from ..utils.validation import check_number, unquoted
from .grid import NO_GRID, grid_noise, grid_step, nearest_multiple

# binary logarithm of the grid steps per scale of float64 noise
FINENESS = 24


def release(
    values: npt.ArrayLike,
    noise: npt.ArrayLike,
    step: float | FloatArray,
    unit: float | None = None,
) -> FloatArray:
    """Add noise to values and return the sums, on a grid.

    Nothing else in this library makes a released number from records.

    Parameters
    ----------
    values : ndarray
        Functions of the records. As integers, they count `unit`.
    noise : ndarray
        Of the shape of `values`, independent of the records, scaled.
    step : float or ndarray
        g of each number: powers of two, from public numbers.
    unit : float, default=None
        For `values` that are integers of 64 bits: the power of two that they count, a multiple of
        `step`.

    Returns
    -------
    ndarray of float64
        ``g (rint(values / g) + rint(noise / g))``, as the nearest double.

    Raises
    ------
    ValueError
        If a sum is not finite, or `unit` is no multiple of `step`.

    Notes
    -----
    For noise of real numbers this is a function of the sum of the rounded values and the noise, so it is
    as private as that sum. Rounding moves two data sets' values apart by up to g in each coordinate,
    which :func:`scale_with_rounding` accounts for. The nearest double is a function of the exact sum.

    Examples
    --------
    >>> from dpselect.noise import release
    >>> release([0.3, 1.0], [0.1, -0.2], step=0.25).tolist()
    [0.25, 0.75]
    """
    return _sum(values, noise, step, unit)


# a separate function, which `dpselect.testing` can replace even for modules that imported `release`
def _sum(values, noise, step, unit):
    # rounding leaves -0.0 near 0, which as a sum only values of 0 could give: + 0.0 makes it 0.0
    noise = nearest_multiple(noise, step) + 0.0
    if unit is None:
        return all_finite(nearest_multiple(values, step) + noise)
    if np.any(np.remainder(unit, step)):
        raise ValueError(
            f"unit={unit!r} is no multiple of step={step!r}, so the values would show beside the noise; "
            "give a finer step, or a coarser unit."
        )
    # quotient and remainder of the exact sum by the unit, because float64 may not represent the sum
    carried = np.floor(noise / unit)
    multiples = np.asarray(values) + carried.astype(np.int64)
    return all_finite(multiples * unit + (noise - carried * unit))


def all_finite(released: Any) -> Any:
    """Return values that are to be released, or refuse them if one is not finite.

    Parameters
    ----------
    released : object
        Numbers, arrays and sparse matrices are looked at, in lists, tuples and dicts, too.

    Returns
    -------
    object
        As it was given.

    Raises
    ------
    ValueError
        If there is NaN or infinity. Which of the numbers it is, is not said.

    Examples
    --------
    >>> from dpselect.noise import all_finite
    >>> all_finite({"coef_": [0.5, 1.0], "kind_": "linear"})
    {'coef_': [0.5, 1.0], 'kind_': 'linear'}
    >>> all_finite({"coef_": [0.5, float("nan")]})
    Traceback (most recent call last):
    ...
    ValueError: X or y leads to a number that is not finite, which no noise hides, so nothing is \
released; give smaller numbers.
    """
    waiting = [released]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple)):
            waiting.extend(part)
        elif sparse.issparse(part):
            waiting.append(part.tocsr().data)
        elif isinstance(part, np.ndarray) and part.dtype == object:
            waiting.extend(part.flat)
        elif _has_reals(part) and not np.isfinite(part).all():
            raise ValueError(
                "X or y leads to a number that is not finite, which no noise hides, so nothing is "
                "released; give smaller numbers."
            )
    return released


def _has_reals(part):
    kind = getattr(getattr(part, "dtype", None), "kind", None)
    return isinstance(part, (float, complex)) or kind in ("f", "c")


def release_step(scale: npt.ArrayLike) -> float:
    """Return the step of the grid for noise of float64: a power of two, from public numbers.

    Parameters
    ----------
    scale : float or array-like
        Of the noise; the least one counts. 0 for no noise.

    Returns
    -------
    float
        At most a 2^-24-th of the scale.

    Examples
    --------
    >>> from dpselect.noise import release_step
    >>> release_step(1.0) == 2.0**-24
    True
    """
    # math is faster than numpy for single numbers, and each calibration comes here
    least = float(scale if isinstance(scale, float) else np.min(scale))
    if least == 0:
        return NO_GRID
    return max(NO_GRID, math.ldexp(1.0, math.frexp(least)[1] - 1 - FINENESS))


def scale_with_rounding(
    scale: float | FloatArray,
    step: float,
    loss: float,
    dimension: int = 1,
) -> Any:
    """Return the scale of noise that also covers rounding to the grid.

    Parameters
    ----------
    scale : float or ndarray of shape (d,)
        b of each coordinate of one vector, for which ``||(v - v') / b||_2 <= loss`` on neighbouring
        data sets.
    step : float
        g.
    loss : float
        In units of a standard noise sample: epsilon for noise of density prop. to
        ``exp(-||r||_2)``, the sensitivity in standard deviations for Gaussian noise.
    dimension : int, default=1
        d, for a `scale` that is one number.

    Returns
    -------
    float or ndarray
        ``b (1 + ||g / b||_2 / loss)``.

    Notes
    -----
    The rounded values of neighbouring data sets satisfy ``||(v - v') / b||_2 <= loss + ||g / b||_2``.

    Examples
    --------
    >>> from dpselect.noise import scale_with_rounding
    >>> scale_with_rounding(2.0, step=0.01, loss=1.0, dimension=4)
    2.02
    """
    if (scale if isinstance(scale, float) else np.min(scale)) == 0:
        return scale
    ratio = step / scale
    single = isinstance(ratio, float) or np.ndim(ratio) == 0
    length = math.sqrt(dimension) * ratio if single else np.linalg.norm(ratio)
    return scale * (1 + float(length) / loss)


def grid_laplace(
    generator: np.random.Generator,
    values: npt.ArrayLike,
    scales: npt.ArrayLike,
    epsilon: float,
) -> FloatArray:
    """Round values to a grid and add Laplace noise on it.

    Parameters
    ----------
    generator : numpy.random.Generator
    values : float or ndarray
        What is released, with noise.
    scales : float or ndarray
        b_j, for which ``sum |values_j - values'_j| / b_j <= epsilon`` for all neighbours: the
        scales that Laplace noise would have.
    epsilon : float
        Privacy loss, greater than 0.

    Returns
    -------
    ndarray of float64
        Multiples of a power of two that depends on `scales` only.

    Raises
    ------
    ValueError
        If a scale or `epsilon` is out of its range.

    Notes
    -----
    With the step g of the grid, rounding moves two values apart by at most g. Noise of scales
    b'_j = b_j (1 + sum_i g / (b_i epsilon)) then costs ``sum (|values_j - values'_j| + g) / b'_j <=
    epsilon``. The sum of two doubles is a function of the exact sum.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect.noise import as_generator, grid_laplace
    >>> noisy = grid_laplace(as_generator(), np.array([0.1, 0.2]), 1.0, 0.5)
    >>> (noisy % 2.0**-40).tolist()
    [0.0, 0.0]
    """
    values = unquoted(np.asarray, values, dtype=np.float64, what="values")
    if values.size == 0:
        return values.copy()
    if not np.isfinite(values).all():
        raise ValueError("values holds NaN or infinity, which no noise hides; give finite numbers.")
    scales = unquoted(np.asarray, scales, dtype=np.float64, what="scales")
    scales = unquoted(np.broadcast_to, scales, values.shape, what="scales")
    # beyond these bounds the grid would overflow or underflow float64
    if not ((scales >= 1e-250) & (scales <= 1e250)).all():
        raise ValueError(
            "scales has an entry that is not a number between 1e-250 and 1e250, without which "
            "values would be released with other noise than was meant; write a number there."
        )
    epsilon = check_number(
        "epsilon",
        epsilon,
        low=1e-250,
        low_included=True,
        high=1e250,
        high_included=True,
        why="values would be released with other noise than was meant",
        instead="write a number between 1e-250 and 1e250",
    )
    step = grid_step(scales)
    wider = scales * (1 + float(np.sum(step / scales)) / epsilon)
    return release(values, grid_noise(generator, values.shape, wider, step), step)

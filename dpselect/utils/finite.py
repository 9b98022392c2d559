"""Check that numbers are finite, independently of scikit-learn's settings.

scikit-learn's check is off under its setting ``assume_finite``, which an environment variable sets, too.
One record with a gap would make all coefficients NaN, whatever the noise.
"""

import numpy as np
from scipy import sparse

# block size for the exact check, if the sum is not finite
BLOCK = 1 << 16


def check_finite(values, name, allow_nan=False):
    """Refuse an array or sparse matrix with NaN or infinity; in objects only NaN is looked for.

    The sum is finite where all numbers are, unless it overflows: only then each is looked at, block by
    block. So no array of booleans is made.

    Parameters
    ----------
    values : array-like or sparse matrix
        Texts and integers pass.
    name : str
        "X" or "y", for the message.
    allow_nan : bool, default=False
        Whether only infinity is refused.

    Raises
    ------
    ValueError
        With the words of scikit-learn, which quote nothing.

    Examples
    --------
    >>> from dpselect.utils.finite import check_finite
    >>> check_finite([1e308, 1e308], "y")
    >>> check_finite([0.5, float("nan")], "y")
    Traceback (most recent call last):
    ...
    ValueError: Input y contains NaN.
    """
    # as a plain array, because subclasses may override sum
    values = np.atleast_1d(np.asarray(values.tocsr().data if sparse.issparse(values) else values))
    if values.dtype == object:
        if not allow_nan and (values != values).any():
            raise ValueError(f"Input {name} contains NaN.")
        return
    if values.dtype.kind not in "fc":
        return
    with np.errstate(all="ignore"):
        # a sum in half precision would overflow for most tables
        if np.isfinite(values.sum(dtype=np.float64 if values.dtype.itemsize < 4 else None)):
            return
    if not allow_nan and any(np.isnan(block).any() for block in _blocks(values)):
        raise ValueError(f"Input {name} contains NaN.")
    if any(np.isinf(block).any() for block in _blocks(values)):
        raise ValueError(f"Input {name} contains infinity or a value too large for {values.dtype!r}.")


def _blocks(values):
    step = max(1, BLOCK * len(values) // values.size)
    return (values[start : start + step] for start in range(0, len(values), step))

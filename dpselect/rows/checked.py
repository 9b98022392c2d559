"""Lazy rows that are checked when they are read: finite numbers, as float64."""

from functools import partial

import numpy as np
from sklearn.utils import check_array

from ..utils.finite import check_finite
from ..utils.validation import unquoted
from .blocks import block_sum, map_rows


def dummy_rows(X):
    """Return at most one row of zeros of the form of lazy rows, for checks of shape and names."""
    if X.in_memory:
        return X.first()
    zeros = np.zeros((min(1, len(X)), *X.shape[1:]), dtype=X.dtype)
    if X.names is None:
        return zeros
    import pandas as pd

    return pd.DataFrame(zeros, columns=X.names)


def checked_rows(X, owner, ensure_all_finite=True, **checks):
    """Return lazy rows as rows of float64, checked by check_array whenever they are read.

    That all are finite is checked here, in whatever process reads them. Those in memory are checked
    once, now, unless they are known to be finite.
    """
    if X.finite:
        return X
    check = partial(_checked, owner, ensure_all_finite, checks)
    if not X.in_memory:
        return map_rows(check, X, X.shape[1:], X.names)
    block_sum(lambda block: (check(block).shape[0],), X)
    return X


def _checked(owner, ensure_all_finite, checks, block):
    block = unquoted(
        check_array,
        block,
        dtype=np.float64,
        ensure_all_finite=False,
        estimator=owner,
        input_name="X",
        **checks,
    )
    if ensure_all_finite:
        unquoted(check_finite, block, "X", ensure_all_finite == "allow-nan")
    return block

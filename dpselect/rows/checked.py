"""Lazy rows that are checked as they are read: finite numbers, as float64."""

from functools import partial

import numpy as np
from sklearn.utils import check_array

from ..validation import unquoted
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


def checked_rows(X, owner, **checks):
    """Return lazy rows as rows of float64, checked by check_array whenever they are read.

    Those in memory are checked once, here, unless they are known to be finite.
    """
    if X.finite:
        return X
    check = partial(_checked, owner, checks)
    if not X.in_memory:
        return map_rows(check, X, X.shape[1:], X.names)
    block_sum(lambda block: (check(block).shape[0],), X)
    return X


def _checked(owner, checks, block):
    return unquoted(
        check_array, block, dtype=np.float64, estimator=owner, input_name="X", **checks
    )

"""Lazy rows that are checked as they are read: finite numbers, as float64."""

from functools import partial

import numpy as np
from sklearn.utils import check_array

from ..validation import unquoted
from .blocks import map_rows


def dummy_rows(X):
    """Return at most one row of zeros of the form of lazy rows, for checks of shape and names."""
    zeros = np.zeros((min(1, len(X)), *X.shape[1:]), dtype=X.dtype)
    if X.names is None:
        return zeros
    import pandas as pd

    return pd.DataFrame(zeros, columns=X.names)


def checked_rows(X, owner, **checks):
    """Return lazy rows as rows of float64, checked by check_array whenever they are read."""
    return map_rows(partial(_checked, owner, checks), X, X.shape[1:], X.names)


def _checked(owner, checks, block):
    return unquoted(
        check_array, block, dtype=np.float64, estimator=owner, input_name="X", **checks
    )

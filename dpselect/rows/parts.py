"""Membership of rows in the splits of cross-validation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .labels import align

# largest number of splits that are handled together: one bit for each in two codes per row
MOST_SPLITS = 16


@dataclass(frozen=True)
class Parts:
    """The parts T_j and V_j of J splits of n rows, or of persons.

    `train` and `test`, of shape (n,), are codes of which :func:`in_part` tells whether a row belongs to
    T_j, and to V_j; they are cut as the rows are, wherever these are. `train_sizes` and `test_sizes`
    count their rows, or persons. With `left_out_once` each row lies in every T_j but one, as with folds.
    """

    train: Any
    test: Any
    train_sizes: np.ndarray
    test_sizes: np.ndarray
    left_out_once: bool

    @classmethod
    def from_splits(cls, splits, X, persons=None):
        """Return the parts of J pairs of index arrays, or None if one of them contains a row twice.

        The arrays name persons if `persons`, an array of shape (n,), has the number of each row's.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if persons is not None:
            n = int(persons.max()) + 1
        in_all = (1 << len(splits)) - 1
        codes = np.zeros((2, n), dtype=np.min_scalar_type(in_all))
        sizes = np.empty((2, len(splits)), dtype=int)
        for j, split in enumerate(splits):
            for i, part in enumerate(split):
                codes[i, part] |= 1 << j
                sizes[i, j] = np.count_nonzero(in_part(codes[i], j))
                if sizes[i, j] != len(part):
                    return None
        once = bool((codes[0] != in_all).all()) and (n - sizes[0]).sum() == n
        if persons is not None:
            codes = codes[:, persons]
        train, test = (align(X, code)[1] for code in codes)
        return cls(train, test, *sizes, left_out_once=bool(once))


def in_part(codes, j):
    """Return a mask of the rows that belong to T_j, or to V_j, for the codes of a block of rows."""
    return codes & (1 << j) != 0

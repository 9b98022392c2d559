"""Which rows take part in which splits of cross-validation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .labels import align

# splits that are worked on together: their tables have as many bytes a row, twice
MOST_SPLITS = 16


@dataclass(frozen=True)
class Parts:
    """The parts T_j and V_j of J splits of n rows, or of the persons whose rows they are.

    `train` and `test`, of shape (n, J), tell whether a row belongs to T_j, and to V_j; they are cut
    as the rows are, wherever these are. `train_sizes` and `test_sizes` count their rows, or persons.
    With `left_out_once` each row lies in every T_j but one, as with folds.
    """

    train: Any
    test: Any
    train_sizes: np.ndarray
    test_sizes: np.ndarray
    left_out_once: bool

    @classmethod
    def from_splits(cls, splits, X, persons=None):
        """Return the parts of J pairs of index arrays, or None if one of them names a row twice.

        The arrays name persons if `persons`, an array of shape (n,), has the number of each row's.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if persons is not None:
            n = int(persons.max()) + 1
        tables = np.zeros((2, n, len(splits)), dtype=bool)
        for j, split in enumerate(splits):
            for table, part in zip(tables, split):
                table[part, j] = True
        sizes = tables.sum(axis=1)
        if not (sizes.T == [[len(part) for part in split] for split in splits]).all():
            return None
        once = bool((tables[0].sum(axis=1) == len(splits) - 1).all())
        if persons is not None:
            tables = tables[:, persons]
        train, test = (align(X, table)[1] for table in tables)
        return cls(train, test, *sizes, left_out_once=once)

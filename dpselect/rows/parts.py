"""Which rows take part in which splits of cross-validation."""

from dataclasses import dataclass

import numpy as np

# splits that are worked on together: their tables have as many bytes a row, twice
MOST_SPLITS = 16


@dataclass(frozen=True)
class Parts:
    """The parts of J splits of n rows, as tables of truth values.

    Attributes
    ----------
    train, test : ndarray of bool, shape (n, J)
        Whether a row belongs to T_j, and to V_j.
    """

    train: np.ndarray
    test: np.ndarray

    @classmethod
    def from_splits(cls, splits, n_rows):
        """Return the parts of `splits`, or None if one of them names a row twice.

        Parameters
        ----------
        splits : list of (train, test)
            J pairs of index arrays.
        n_rows : int
            n.

        Returns
        -------
        Parts or None
        """
        tables = np.zeros((2, n_rows, len(splits)), dtype=bool)
        for j, split in enumerate(splits):
            for table, part in zip(tables, split):
                table[part, j] = True
        parts = cls(*tables)
        named = [[len(part) for part in split] for split in splits]
        return parts if (np.stack([parts.train_sizes, parts.test_sizes], 1) == named).all() else None

    @property
    def train_sizes(self):
        """ndarray of shape (J,) : Rows of each T_j."""
        return self.train.sum(axis=0)

    @property
    def test_sizes(self):
        """ndarray of shape (J,) : Rows of each V_j."""
        return self.test.sum(axis=0)

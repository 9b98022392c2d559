"""Tables whose rows are converted to numbers at each read, where these are not worth storing."""

from itertools import chain
from sys import getsizeof

import numpy as np
from sklearn import get_config

from .blocks import as_lazy, is_lazy
from .coded import MOST_CODED
from .cutting import (
    add_up,
    collect,
    equally_sparse_blocks,
    join,
    over_blocks,
    row_blocks,
    rows_in_block,
    spread_runs,
)
from .distributed import DistributedRows
from .source import LocalRows, column_names, rows_at

# up to so many numbers (32 MiB) are always stored
FEW_NUMBERS = 1 << 22
# blocks of codes are longer by this factor: fewer steps in Python are worth more than the cache
# (they have 2**18 rows at most, over which the allowance for rounding in linear models' noise holds)
SHORTER = 2


def read_by_block(X, n_columns, cheap=False):
    """Return a table as lazy rows, or None if `n_columns` numbers of each row are to be stored.

    They are if they are few. So are those that fit into scikit-learn's ``working_memory``, unless they
    are `cheap` to make anew in each pass. X is a table in memory that slices cut, a memory map or
    chunks; sparse rows are small.
    """
    X = as_lazy(X)
    if len(getattr(X, "shape", ())) != 2 or hasattr(X, "tocsr") or isinstance(X, DistributedRows):
        return None
    fitting = 0 if cheap else get_config()["working_memory"] * 2**20 / 8
    if X.shape[0] * n_columns <= max(FEW_NUMBERS, fitting):
        return None
    return X if is_lazy(X) else TableRows(X)


class SlicedRows(LocalRows):
    """Rows of finite float64 that a function computes from any slice of a table in memory.

    They are dense, or CSR arrays that store `n_entries` of each row. `function` also takes a list of
    slices. With `coded`, a function that returns :class:`~dpselect.rows.CodedRows` of a slice with
    `n_entries` numbers and codes of each row, functions with few columns `beside` a row get these in
    place of dense rows.
    """

    in_memory = finite = True

    def __init__(self, function, shape, n_entries=None, coded=None):
        super().__init__(shape)
        self.function, self.n_entries, self.coded = function, n_entries, coded
        self.sparse = n_entries is not None and coded is None

    def block_sum(self, function, aligned, n_jobs, row_elements, beside=None):
        if not self._by_codes(beside):
            return super().block_sum(function, aligned, n_jobs, row_elements, beside)
        return add_up(self._over_coded(function, aligned, n_jobs))

    def block_map(self, function, aligned, n_jobs, row_elements, beside=None):
        if not self._by_codes(beside):
            return super().block_map(function, aligned, n_jobs, row_elements, beside)
        return collect(self._over_coded(function, aligned, n_jobs), len(self))

    def over_blocks(self, function, aligned, row_elements, n_jobs=None, beside=None):
        """Iterate over ``function(block, *aligned_blocks)`` of the blocks of rows."""
        if self._by_codes(beside):
            return self._over_coded(function, aligned, n_jobs)

        def on_piece(piece, parts):
            return over_blocks(function, piece, parts, row_elements, beside=beside)

        return chain.from_iterable(self._over_pieces(on_piece, aligned, n_jobs, row_elements))

    def __sizeof__(self):
        """Return the bytes that holding the rows takes, by which Dask frees memory."""
        return object.__sizeof__(self) + getsizeof(self.function)

    def _by_codes(self, beside):
        return self.coded is not None and beside is not None and beside <= MOST_CODED

    def _over_coded(self, function, aligned, n_jobs):
        def on_piece(piece, parts):
            return function(piece, *parts)

        width = max(1, self.n_entries // SHORTER)
        return self._over_pieces(on_piece, aligned, n_jobs, width, self.coded)

    def sample(self, n_rows, aligned):
        runs = spread_runs(n_rows, len(self))
        at_a_time = max(1, rows_in_block(self.shape[1]) // max(1, runs[0].stop - runs[0].start))
        parts = (self.function(runs[i : i + at_a_time]) for i in range(0, len(runs), at_a_time))
        n = sum(rows.stop - rows.start for rows in runs)
        X = join(list(parts)) if self.sparse else collect(parts, n)
        return X, *(join([array[rows] for rows in runs]) for array in aligned)

    def pieces(self, row_elements):
        if self.sparse:
            return equally_sparse_blocks(self.shape, self.n_entries)
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        return self.function(rows)


class TableRows(LocalRows):
    """Rows of a table in memory, in its own container."""

    def __init__(self, X):
        super().__init__(X.shape, getattr(X, "dtype", np.dtype(object)), column_names(X))
        self.X = X

    def pieces(self, row_elements):
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        return rows_at(self.X, rows)

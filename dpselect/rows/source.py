"""Rows that this process reads, a piece at a time."""

from abc import ABC, abstractmethod
from itertools import chain

import numpy as np
from scipy import sparse

from .cutting import add_up, collect, in_threads, join, n_threads_of, over_blocks, spread_runs

# upper bound on the chunks that a sample reads
FEW = 8


class RowSource(ABC):
    """Rows of shape (n, d), or (n,) for labels, that are read when they are needed.

    `dtype` is that of a dummy row; `names` are those of the columns, or None. `in_memory` sources
    yield identical rows in every pass. `finite` ones yield finite float64, which needs no check.
    `sparse` ones are known to yield CSR arrays.
    """

    in_memory = finite = sparse = False

    def __init__(self, shape, dtype=np.float64, names=None):
        self.shape, self.ndim = tuple(shape), len(shape)
        self.dtype, self.names = dtype, names

    def __len__(self):
        return self.shape[0]

    @abstractmethod
    def block_sum(self, function, aligned, n_jobs, row_elements, beside=None):
        """Sum over blocks; see :func:`~dpselect.rows.block_sum`."""

    @abstractmethod
    def block_map(self, function, aligned, n_jobs, row_elements, beside=None):
        """Collect over blocks; see :func:`~dpselect.rows.block_map`."""

    def hold(self, function, aligned, tails):
        """Keep rows together with a function of them; see :func:`~dpselect.rows.hold`."""
        return None

    @abstractmethod
    def sample(self, n_rows, aligned):
        """Return evenly spread rows; see :func:`~dpselect.rows.sample`."""

    @abstractmethod
    def pick(self, indices):
        """Return the rows at ascending indices."""

    @abstractmethod
    def map(self, function, tail, names=None, dtype=np.float64):
        """Apply `function` to these rows, and return rows of shape `tail`."""

    @abstractmethod
    def on_first_row(self, function):
        """Return ``function(row)`` for the first row, in the container of its chunk."""


class LocalRows(RowSource):
    """Rows that this process reads, a piece at a time."""

    # whether reading a slice costs time proportional to its length
    random_access = True

    @abstractmethod
    def pieces(self, row_elements):
        """Return the slices that are loaded at once, of several blocks each."""

    @abstractmethod
    def load(self, rows):
        """Return the rows of a slice that lies within one piece."""

    def release(self, rows):
        """Release the memory of rows that were loaded."""

    def block_sum(self, function, aligned, n_jobs, row_elements, beside=None):
        def on_piece(piece, parts):
            return add_up(over_blocks(function, piece, parts, row_elements, beside=beside))

        return add_up(self._over_pieces(on_piece, aligned, n_jobs, row_elements))

    def block_map(self, function, aligned, n_jobs, row_elements, beside=None):
        def on_piece(piece, parts):
            found = over_blocks(function, piece, parts, row_elements, beside=beside)
            return collect(found, piece.shape[0])

        return collect(self._over_pieces(on_piece, aligned, n_jobs, row_elements), len(self))

    def _over_pieces(self, on_piece, aligned, n_jobs, row_elements, load=None):
        load = load or self.load

        def run(rows):
            part = on_piece(load(rows), [array[rows] for array in aligned])
            self.release(rows)
            return part

        pieces = self.pieces(row_elements)
        n_threads = min(n_threads_of(n_jobs), len(pieces))
        return map(run, pieces) if n_threads <= 1 else in_threads(run, pieces, n_threads)

    def sample(self, n_rows, aligned):
        runs = self._runs(n_rows)

        def copied(rows):
            # loaded rows may be views, which must be dropped before their memory is released
            part = self.load(rows)
            part = part.copy("K") if isinstance(part, np.ndarray) else part.copy()
            self.release(rows)
            return part

        first, others = copied(runs[0]), map(copied, runs[1:])
        if isinstance(first, np.ndarray):
            # concatenating parts at the end would need twice the memory
            X = collect(chain([first], others), sum(rows.stop - rows.start for rows in runs))
        else:
            X = join([first, *others])
        return X, *(join([array[rows] for rows in runs]) for array in aligned)

    def _runs(self, requested):
        if self.random_access:
            return spread_runs(requested, len(self))
        pieces = self.pieces(1)
        few = min(FEW, len(pieces), max(1, requested))
        chosen = [pieces[i] for i in np.linspace(0, len(pieces) - 1, few).astype(int)]
        n_each = -(-requested // few)
        return [slice(rows.start, min(rows.stop, rows.start + n_each)) for rows in chosen]

    def first(self):
        """Return at most one row, in the container of its chunk."""
        return self.load(slice(0, min(1, len(self))))

    def pick(self, indices):
        return PickedRows(self, indices)

    def map(self, function, tail, names=None, dtype=np.float64):
        return MappedRows(self, function, tail, names, dtype)

    def on_first_row(self, function):
        return function(self.load(slice(0, 1)))


class PickedRows(LocalRows):
    """The rows of a source at ascending `indices`."""

    def __init__(self, base, indices):
        super().__init__((len(indices), *base.shape[1:]), base.dtype, base.names)
        self.base, self.indices = base, indices
        self.random_access = base.random_access
        self.in_memory, self.finite, self.sparse = base.in_memory, base.finite, base.sparse

    def pieces(self, row_elements):
        cuts = [
            np.searchsorted(self.indices, [rows.start, rows.stop]).tolist()
            for rows in self.base.pieces(row_elements)
        ]
        return [slice(low, high) for low, high in cuts if low < high]

    def load(self, rows):
        span = self._span(rows)
        return rows_at(self.base.load(span), self.indices[rows] - span.start)

    def release(self, rows):
        self.base.release(self._span(rows))

    def _span(self, rows):
        indices = self.indices[rows]
        return slice(int(indices[0]), int(indices[-1]) + 1)


class MappedRows(LocalRows):
    """A function of the rows of a source, each row by itself, of shape `tail`."""

    def __init__(self, base, function, tail, names, dtype):
        super().__init__((len(base), *tail), dtype, names)
        self.base, self.function = base, function
        self.random_access = base.random_access

    def pieces(self, row_elements):
        return self.base.pieces(row_elements)

    def load(self, rows):
        return self.function(self.base.load(rows))

    def release(self, rows):
        self.base.release(rows)


def rows_at(piece, indices):
    """Return rows of an array, a sparse matrix, a dataframe or an Arrow table."""
    if sparse.issparse(piece):
        piece = piece.tocsr()
    if is_arrow(piece) and not isinstance(indices, slice):
        return piece.take(indices)
    return piece.iloc[indices] if hasattr(piece, "iloc") else piece[indices]


def library_of(X):
    """Return the name of the library that a table or a column belongs to; imports nothing."""
    return type(X).__module__.partition(".")[0]


def is_arrow(X):
    """Return whether X is a table or a column of Arrow."""
    return library_of(X) == "pyarrow"


def column_names(X):
    """Return the column names of a table as a list, or None if there are none."""
    names = X.column_names if is_arrow(X) else getattr(X, "columns", None)
    return None if names is None else list(names)

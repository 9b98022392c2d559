"""Rows that this process reads, a piece at a time."""

import warnings
from abc import ABC, abstractmethod

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from .cutting import add_up, join, over_blocks, row_blocks

# consecutive rows in a sample, and chunks that it reads at most
RUN, FEW = 64, 8


class RowSource(ABC):
    """Rows that are read when they are needed.

    Parameters
    ----------
    shape : tuple
        (n, d), or (n,) for labels.
    dtype : dtype, default=float64
        Of a dummy row.
    names : list of str, default=None
        Of the columns.
    """

    def __init__(self, shape, dtype=np.float64, names=None):
        self.shape, self.ndim = tuple(shape), len(shape)
        self.dtype, self.names = dtype, names

    def __len__(self):
        return self.shape[0]

    @abstractmethod
    def block_sum(self, function, aligned, n_jobs, row_elements):
        """Sum over blocks; see :func:`~dpselect.rows.block_sum`."""

    @abstractmethod
    def block_map(self, function, aligned, n_jobs, row_elements):
        """Collect over blocks; see :func:`~dpselect.rows.block_map`."""

    @abstractmethod
    def sample(self, n_rows, aligned):
        """Return rows that are spread evenly; see :func:`~dpselect.rows.sample`."""

    @abstractmethod
    def pick(self, indices):
        """Return the rows at ascending indices."""

    @abstractmethod
    def map(self, function, tail, names=None, dtype=np.float64):
        """Return the rows that `function` makes of these, each of shape `tail`."""

    @abstractmethod
    def on_first_row(self, function):
        """Return ``function(row)`` for the first row, in the container of its chunk."""


class LocalRows(RowSource):
    """Rows that this process reads, a piece at a time."""

    # whether any slice of the rows costs no more than its own length
    random_access = True

    @abstractmethod
    def pieces(self, row_elements):
        """Return the slices that are read at once: as many blocks as make sense."""

    @abstractmethod
    def load(self, rows):
        """Return the rows of a slice that lies within one piece."""

    def release(self, rows):
        """Give back the memory of rows that were loaded."""

    def block_sum(self, function, aligned, n_jobs, row_elements):
        def on_piece(piece, parts):
            return add_up(over_blocks(function, piece, parts, row_elements))

        return add_up(self._over_pieces(on_piece, aligned, n_jobs, row_elements))

    def block_map(self, function, aligned, n_jobs, row_elements):
        def on_piece(piece, parts):
            return join(over_blocks(function, piece, parts, row_elements))

        collected, at = None, 0
        for part in self._over_pieces(on_piece, aligned, n_jobs, row_elements):
            if len(part) == len(self):
                return part
            if collected is None:
                # here, and not joined in the end: that would need the memory twice
                collected = np.empty((len(self), *part.shape[1:]), dtype=part.dtype)
            # labels that are texts become longer on the way
            if part.dtype != collected.dtype:
                collected = collected.astype(np.result_type(collected, part))
            collected[at : at + len(part)] = part
            at += len(part)
        return collected

    def _over_pieces(self, on_piece, aligned, n_jobs, row_elements):
        def run(rows):
            part = on_piece(self.load(rows), [array[rows] for array in aligned])
            self.release(rows)
            return part

        pieces = self.pieces(row_elements)
        if n_jobs in (None, 1) or len(pieces) == 1:
            return map(run, pieces)
        return _in_threads(run, pieces, n_jobs)

    def sample(self, n_rows, aligned):
        runs = self._runs(n_rows)
        loaded = [self.load(rows) for rows in runs]
        # a single run may be a view
        X = loaded[0].copy() if len(runs) == 1 else join(loaded)
        for rows in runs:
            self.release(rows)
        return X, *(join([array[rows] for rows in runs]) for array in aligned)

    def _runs(self, requested):
        n = len(self)
        if requested >= n and self.random_access:
            return [slice(0, n)]
        if self.random_access:
            starts = np.linspace(0, n - min(RUN, requested), max(1, -(-requested // RUN))).astype(int)
            return [slice(start, start + min(RUN, requested)) for start in starts.tolist()]
        pieces = self.pieces(1)
        few = min(FEW, len(pieces), max(1, requested))
        chosen = [pieces[i] for i in np.linspace(0, len(pieces) - 1, few).astype(int)]
        share = -(-requested // few)
        return [slice(rows.start, min(rows.stop, rows.start + share)) for rows in chosen]

    def pick(self, indices):
        return PickedRows(self, indices)

    def map(self, function, tail, names=None, dtype=np.float64):
        return MappedRows(self, function, tail, names, dtype)

    def on_first_row(self, function):
        return function(self.load(slice(0, 1)))


class ArrayRows(LocalRows):
    """Rows in memory.

    Parameters
    ----------
    X : ndarray or CSR matrix
    """

    def __init__(self, X):
        super().__init__(X.shape, X.dtype)
        self.X = X

    def pieces(self, row_elements):
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        return self.X[rows]


class PickedRows(LocalRows):
    """Some of the rows of a source.

    Parameters
    ----------
    base : LocalRows
    indices : ndarray of int
        Ascending.
    """

    def __init__(self, base, indices):
        super().__init__((len(indices), *base.shape[1:]), base.dtype, base.names)
        self.base, self.indices = base, indices
        self.random_access = base.random_access

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
    """What a function makes of the rows of a source, each row by itself.

    Parameters
    ----------
    base : LocalRows
    function : callable
    tail : tuple
        Shape of a row.
    names, dtype
        As for :class:`RowSource`.
    """

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


def _in_threads(run, pieces, n_jobs):
    # the threads restore each other's filters of warnings
    with warnings.catch_warnings():
        yield from Parallel(n_jobs=n_jobs, backend="threading", return_as="generator")(
            delayed(run)(rows) for rows in pieces
        )


def rows_at(piece, indices):
    """Return rows of an array, a sparse matrix or a dataframe."""
    if sparse.issparse(piece):
        piece = piece.tocsr()
    return piece.iloc[indices] if hasattr(piece, "iloc") else piece[indices]

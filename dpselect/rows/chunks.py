"""Rows read in chunks by a function, from files of any format."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..utils.validation import check_number, unquoted
from .source import LocalRows, column_names, rows_at


class RowChunks:
    """Rows that your function reads, a chunk at a time: X or y of any estimator or search.

    For records that do not fit into memory, in files of any format. Each pass over the rows reads
    every chunk once; one chunk at a time is in memory, and with ``n_jobs`` as many.

    Read more in :doc:`/big_tables`.

    Parameters
    ----------
    read : callable
        ``read(i)`` returns chunk i, the same in each pass: an array, a sparse matrix or a dataframe
        of shape (lengths[i], n_columns). For labels, an array of shape (lengths[i],) will do.
    lengths : sequence of int
        Rows of each chunk, at least 1. Public, as the number of records is.
    n_columns : int
        Columns of each chunk.
    feature_names : sequence of str, default=None
        Names of the columns; needs pandas. Without them columns are known by their place, those of
        dataframes too.

    Attributes
    ----------
    shape : tuple of int
        (number of rows, n_columns).

    Raises
    ------
    ValueError, TypeError
        If a parameter is of the wrong kind.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPRidge, RowChunks
    >>> def read(i):  # stands for a file
    ...     return np.random.default_rng(i).uniform(-1, 1, size=(5000, 3))
    >>> X = RowChunks(read, lengths=[5000] * 4, n_columns=3)
    >>> y = RowChunks(lambda i: read(i) @ [1.0, 0.0, -1.0], lengths=[5000] * 4, n_columns=1)
    >>> model = DPRidge(epsilon=1.0, data_norm=2.0, target_range=(-2, 2)).fit(X, y)
    >>> bool(model.coef_[0] > 0.5 > -0.5 > model.coef_[2])
    True
    """

    def __init__(
        self,
        read: Callable[[int], Any],
        lengths: Iterable[int],
        n_columns: int,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if not callable(read):
            raise TypeError(
                f"read of type {type(read).__name__} cannot be called, so no chunk can be read; "
                "write a function from the number of a chunk to its rows."
            )
        self.read = read
        self.lengths = tuple(
            check_number(
                "lengths",
                length,
                integer=True,
                why="each counts the rows of a chunk",
                instead="write a list of integers of 1 or more",
            )
            for length in lengths
        )
        if not self.lengths:
            raise ValueError(
                "lengths is empty, so there are no rows to learn from; list the rows of each chunk."
            )
        self.n_columns = check_number(
            "n_columns",
            n_columns,
            integer=True,
            why="it counts the columns of each chunk",
            instead="write an integer of 1 or more",
        )
        self.feature_names = None if feature_names is None else list(feature_names)
        if self.feature_names is not None and len(self.feature_names) != self.n_columns:
            raise ValueError(
                f"feature_names lists {len(self.feature_names)} names for n_columns="
                f"{self.n_columns}, so names would belong to other columns; name each column."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """tuple of int : Number of rows, and of columns."""
        return sum(self.lengths), self.n_columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Return the shape, and nothing of the rows."""
        return f"RowChunks({len(self.lengths)} chunks of {self.n_columns} columns, {len(self)} rows)"


class ChunkRows(LocalRows):
    """The rows of :class:`RowChunks`."""

    random_access = False

    def __init__(self, chunks):
        super().__init__(chunks.shape, names=chunks.feature_names)
        self.chunks = chunks
        self.borders = np.concatenate([[0], np.cumsum(chunks.lengths)]).tolist()

    def pieces(self, row_elements):
        return [slice(low, high) for low, high in zip(self.borders, self.borders[1:])]

    def load(self, rows):
        i = int(np.searchsorted(self.borders, rows.start, side="right")) - 1
        chunk = self._read(i)
        low = self.borders[i]
        if (rows.start, rows.stop) == (low, self.borders[i + 1]):
            return chunk
        return rows_at(chunk, slice(rows.start - low, rows.stop - low))

    def _read(self, i):
        source = self.chunks
        chunk = quoting_nothing(source.read, i)
        if not hasattr(chunk, "shape"):
            chunk = unquoted(np.asarray, chunk)
        requested = (source.lengths[i], source.n_columns)
        if chunk.shape != requested and (chunk.shape, source.n_columns) != (requested[:1], 1):
            raise ValueError(
                f"read({i}) returned rows of another shape than lengths[{i}]={requested[0]} and "
                f"n_columns={requested[1]} say, on which the noise depends; return the same rows in "
                "each pass."
            )
        names = column_names(chunk)
        if names is not None and self.names is not None and names != self.names:
            raise ValueError(
                f"read({i}) returned columns of other names than feature_names, so models would mix "
                "them up; return the columns in the order of feature_names."
            )
        if names is None and self.names is not None and isinstance(chunk, np.ndarray):
            import pandas as pd

            # steps that are fitted on it know the names, as checks of X do
            return pd.DataFrame(chunk, columns=self.names)
        return chunk


def quoting_nothing(read, *args):
    """Wrap a value function: errors that may quote records become a ValueError without them."""
    try:
        return read(*args)
    except (OSError, MemoryError) as error:  # these quote names of files, not records
        # but its cause may quote records
        error.__cause__ = error.__context__ = None
        raise
    except Exception as error:
        kind = type(error).__name__
    # outside the except block, so that the original error is not attached as __context__
    raise ValueError(
        f"A chunk of rows could not be read ({kind}), and the reason may quote records; try the "
        "function by itself."
    )

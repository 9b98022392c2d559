"""Rows on a Dask cluster: they stay where they are, and sums come back.

Each pass is one reduction, a task for each chunk and a tree of additions in an order that shapes
alone decide: results do not depend on which worker was the first, nor on whether one was lost and
its tasks were run again.
"""

import io
import sys
import warnings
from functools import lru_cache

import numpy as np
from sklearn.utils import check_consistent_length

from ..validation import unquoted
from .cutting import add_up, collect, over_blocks
from .source import FEW, RowSource, rows_at

# sums that one task adds
FAN_IN = 8
# larger functions, with the coefficients that they hold, are sent once and not with each task
SENT_ONCE = 1 << 16


def is_dask(X):
    """Tell whether `X` is a Dask array, dataframe or series; imports nothing."""
    return "dask" in sys.modules and sys.modules["dask"].is_dask_collection(X) and hasattr(
        type(X), "ndim"
    )


def from_dask(X):
    """Return a Dask collection as rows; unknown lengths of chunks are computed."""
    return align_dask(X, None)[0]


def align_dask(X, y):
    """Return distributed rows, and labels (or None) cut at the same rows."""
    open_ends = [
        source for source in (X, y) if is_dask(source) and not _is_measured(source)
    ]
    known = dict(zip(map(id, open_ends), _measure(open_ends)))
    X = _rows(X, known.get(id(X)))
    if y is None:
        return X, None
    if is_dask(y):
        y = _rows(y, known.get(id(y)))
    elif not isinstance(y, DistributedRows):
        y = unquoted(np.asarray, y, what="y")
    unquoted(check_consistent_length, np.broadcast_to(0, len(X)), y, what="y")
    if isinstance(y, DistributedRows):
        return X, y if y.lengths == X.lengths else _rows(_recut(y.to_dask(), X.lengths))
    # in the memory of the workers from here on, so that no pass sends it again
    return X, _rows(_cut_array(y, X.lengths).persist())


class DistributedRows(RowSource):
    """Rows in chunks that tasks of a Dask cluster compute.

    `parts` are the chunks, as Delayed, none of them empty; `lengths` their rows, and `tail` is the
    shape of a row.
    """

    def __init__(self, parts, lengths, tail, names=None, dtype=np.float64):
        super().__init__((sum(lengths), *tail), dtype, names)
        self.parts, self.lengths = parts, lengths

    def block_sum(self, function, aligned, n_jobs, row_elements, beside=None):
        parts = self._tasks(_sum_chunk, function, aligned, (row_elements, None, beside))
        return _compute(_tree(parts, add_up))

    def block_map(self, function, aligned, n_jobs, row_elements, beside=None):
        aligned = [self._cut(array) for array in aligned]
        dummy = [np.zeros((1, *rows.shape[1:]), rows.dtype) for rows in (self, *aligned)]
        with np.errstate(all="ignore"):
            example = np.asarray(function(*dummy))
        parts = self._tasks(_map_chunk, function, aligned, (row_elements, None, beside))
        return DistributedRows(
            parts, self.lengths, example.shape[1:], dtype=example.dtype
        ).to_dask()

    def reduce(self, function, combine):
        """Return what `combine` makes of lists of ``function(chunk)``, in one pass."""
        parts = self._tasks(_on_chunk, function, (), None)
        return _compute(_tree(parts, _combine, _pack(combine)))

    def sample(self, n_rows, aligned):
        few = min(FEW, len(self.parts), max(1, n_rows))
        chosen = np.unique(np.linspace(0, len(self.parts) - 1, few).astype(int)).tolist()
        share = -(-n_rows // len(chosen))
        aligned = [self._cut(array) for array in aligned]
        X, *rest = (rows._heads(chosen, share) for rows in (self, *aligned))
        return X, *(rows.to_dask() for rows in rest)

    def _heads(self, chosen, share):
        lengths = tuple(min(self.lengths[i], share) for i in chosen)
        parts = [
            _delayed(rows_at)(self.parts[i], slice(0, length)) for i, length in zip(chosen, lengths)
        ]
        return self._like(parts, lengths)

    def pick(self, indices):
        parts, lengths, start = [], [], 0
        cuts = np.searchsorted(indices, np.concatenate([[0], np.cumsum(self.lengths)]))
        for part, length, low, high in zip(self.parts, self.lengths, cuts, cuts[1:]):
            if low < high:
                requested = _packed_indices(indices[low:high] - start, length)
                parts.append(_delayed(_picked)(part, requested))
                lengths.append(int(high - low))
            start += length
        return self._like(parts, tuple(lengths))

    def map(self, function, tail, names=None, dtype=np.float64):
        parts = self._tasks(_on_chunk, function, (), None)
        return DistributedRows(parts, self.lengths, tail, names, dtype)

    def on_first_row(self, function):
        return _compute(_delayed(_on_first)(_pack(function), self.parts[0]))

    def computed(self):
        """Return the rows as an array in this process."""
        return _compute(self.to_dask())

    def to_dask(self):
        """Return the rows as a lazy Dask array."""
        import dask.array as da

        return da.concatenate([
            da.from_delayed(part, (length, *self.shape[1:]), dtype=self.dtype)
            for part, length in zip(self.parts, self.lengths)
        ])

    def _tasks(self, task, function, aligned, cut):
        packed, task = _pack(function), _delayed(task)
        columns = zip(self.lengths, self.parts, *(self._cut(array).parts for array in aligned))
        return [
            task(packed, cut, (length, *self.shape[1:]), *blocks)
            for length, *blocks in columns
        ]

    def _cut(self, array):
        """Return an array of as many rows as distributed rows that are cut as these."""
        if isinstance(array, DistributedRows) and array.lengths == self.lengths:
            return array
        if isinstance(array, DistributedRows):
            array = array.to_dask()
        if not is_dask(array):
            array = _cut_array(array, self.lengths)
        return _rows(_recut(array, self.lengths))

    def _like(self, parts, lengths):
        return DistributedRows(parts, lengths, self.shape[1:], self.names, self.dtype)


def _rows(X, lengths=None):
    """Return a Dask collection, whose `lengths` were measured or are known, as rows."""
    if isinstance(X, DistributedRows):
        return X
    names = list(X.columns) if X.ndim == 2 and hasattr(X, "columns") else None
    tail = tuple(X.shape[1:]) if names is None else (len(names),)
    parts, lengths = _parts(X), lengths or X.chunks[0]
    full = [i for i, length in enumerate(lengths) if length]
    dtype = getattr(X, "dtype", None)
    return DistributedRows(
        # an empty table has a chunk, too
        [parts[i] for i in full or [0]], tuple(int(lengths[i]) for i in full or [0]), tail, names,
        dtype if isinstance(dtype, np.dtype) else np.dtype(np.float64 if names else object),
    )


def _parts(X):
    if not hasattr(X, "chunks"):  # a dataframe or series
        # pandas' own types of labels, text among them, cannot be cut as arrays are
        return [part if X.ndim == 2 else _delayed(np.asarray)(part) for part in X.to_delayed()]
    whole = X.rechunk({axis: -1 for axis in range(1, X.ndim)})
    # optimised graphs forget what keeps persisted chunks alive; each pass is optimised as a whole
    return whole.to_delayed(optimize_graph=False).ravel().tolist()


def _is_measured(X):
    return hasattr(X, "chunks") and not any(np.isnan(length) for length in X.chunks[0])


def _measure(sources):
    """Return the lengths of the chunks of collections, in one pass over all of them."""
    if not sources:
        return []
    return _compute([[_delayed(len)(part) for part in _parts(X)] for X in sources])


def _cut_array(array, lengths):
    import dask.array as da

    array = np.asarray(array)
    return da.from_array(array, chunks=(lengths, *array.shape[1:]))


def _recut(array, lengths):
    return array if array.chunks[0] == lengths else array.rechunk({0: lengths})


def _tree(parts, task, *args):
    """Return a task at the root of a tree of tasks that each join FAN_IN parts."""
    task = _delayed(task)
    while True:
        parts = [task(*args, parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        if len(parts) == 1:
            return parts[0]


def _delayed(function):
    from dask import delayed

    return delayed(function, pure=False)


def _compute(value):
    """Run tasks; an error of theirs is told without records."""
    import dask

    try:
        # tasks in threads of this process restore each other's filters of warnings
        with warnings.catch_warnings():
            return dask.compute(value)[0]
    except _RowsError as error:
        said = error.kind(str(error))
    except Exception as error:
        # names of files, and of tasks and workers that were lost
        if isinstance(error, (OSError, MemoryError)) or type(error).__module__.startswith(
            "distributed."
        ):
            # what it came from may quote records
            error.__cause__ = error.__context__ = None
            raise
        said = ValueError(
            f"A chunk of rows could not be computed ({type(error).__name__}), and the reason may "
            "quote records; try it by itself, where they may be seen."
        )
    # outside the except block, so that the original does not hang on as __context__
    raise said


class _RowsError(ValueError):
    """An error of a task of this library, without records; the client raises its `kind`."""

    def __init__(self, said, kind):
        super().__init__(said, kind)
        self.kind = kind

    def __str__(self):
        return self.args[0]


def _run(function, *args):
    try:
        return function(*args)
    except _RowsError:
        raise
    except (TypeError, ValueError) as error:
        found = _RowsError(str(error), TypeError if isinstance(error, TypeError) else ValueError)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        found = _RowsError(f"A chunk of rows was refused ({type(error).__name__}).", ValueError)
    raise found


def _sum_chunk(packed, cut, shape, *blocks):
    X, *aligned = map(_plain, blocks)
    _run(_check_shapes, shape, X, *aligned)
    return _run(lambda: add_up(over_blocks(_unpack(packed), X, aligned, *cut)))


def _map_chunk(packed, cut, shape, *blocks):
    X, *aligned = map(_plain, blocks)
    _run(_check_shapes, shape, X, *aligned)
    return _run(lambda: collect(over_blocks(_unpack(packed), X, aligned, *cut), X.shape[0]))


def _on_chunk(packed, cut, shape, block):
    _run(_check_shapes, shape, block)
    return _run(_unpack(packed), _aligned_bytes(block))


def _on_first(packed, block):
    return _run(_unpack(packed), rows_at(block, slice(0, 1)))


def _combine(packed, parts):
    return _run(_unpack(packed), parts)


def _check_shapes(shape, X, *aligned):
    if np.shape(X) != shape or any(len(array) != shape[0] for array in aligned):
        raise ValueError(
            "A chunk has another shape than its Dask collection says, on which the noise depends; "
            "call compute_chunk_sizes() on an array whose chunks were filtered."
        )


def _plain(block):
    return block if hasattr(block, "tocsr") else _aligned_bytes(np.asarray(block))


def _aligned_bytes(block):
    """Return a block whose bytes lie as they do on every worker.

    What came from another worker may begin at any byte, or have lost the order of a slice. Products
    of such arrays are computed in another order, and the last bits would tell.
    """
    if isinstance(block, np.ndarray):
        return np.require(block, requirements=["C", "ALIGNED"])
    return block.copy() if hasattr(block, "iloc") else block


def _packed_indices(indices, length):
    """Return a mask of one bit a row; or the ascending indices, where one is repeated."""
    mask = np.zeros(length, dtype=bool)
    mask[indices] = True
    return np.packbits(mask) if np.count_nonzero(mask) == len(indices) else indices


def _picked(block, requested):
    if requested.dtype == np.uint8:
        requested = np.flatnonzero(np.unpackbits(requested, count=block.shape[0]))
    return rows_at(block, requested)


def _pack(function):
    """Return a function as bytes for the workers, without the collections that it may hold.

    What the library sums over blocks are methods and closures, whose objects know all rows. The
    function gets its own blocks, and looks at no others.
    """
    import cloudpickle
    import dask

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, value):
            if isinstance(value, DistributedRows) or dask.is_dask_collection(value):
                return _left_out, ()
            return super().reducer_override(value)

    buffer = io.BytesIO()
    Pickler(buffer).dump(function)
    packed = buffer.getvalue()
    return packed if len(packed) <= SENT_ONCE else _delayed(packed)


def _left_out():
    return None


@lru_cache(maxsize=8)
def _unpack(packed):
    import cloudpickle

    return cloudpickle.loads(packed)

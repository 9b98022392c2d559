"""Rows on a Dask cluster: they stay where they are, and sums come back.

Each pass is one reduction, a task for each chunk and a tree of additions in an order that shapes
alone decide: results do not depend on which worker was the first, nor on whether one was lost and
its tasks were run again.

What many passes read is checked once and held in the memory of the workers, with all that was computed
of it, as one result a chunk: whoever loses a chunk loses what belongs to it, and both are made anew.
"""

import io
import sys
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from sklearn.utils import check_consistent_length

from ..validation import unquoted
from .cutting import add_up, collect, join, over_blocks
from .source import FEW, RowSource, rows_at
from .sparse_rows import canonical

# sums that one task adds
FAN_IN = 8
# larger functions, with the coefficients that they hold, are sent once and not with each task
SENT_ONCE = 1 << 16
# rows are held for many passes if they take no more than this share of the memory of all workers
HELD = 0.3


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


@dataclass(frozen=True)
class _Reading:
    """How a task makes rows of a chunk: by functions, in the task itself.

    A chunk that is held is a tuple, with the rows at a `place`. `steps` are pairs of the shape of a row
    before, and a function.
    """

    place: int | None = None
    steps: tuple = ()

    def __call__(self, length, chunk):
        block = chunk if self.place is None else chunk[self.place]
        for tail, function in self.steps:
            _check_shapes((length, *tail), block)
            block = function(_aligned_bytes(block))
        return block


class DistributedRows(RowSource):
    """Rows in chunks that tasks of a Dask cluster compute.

    `parts` are the chunks, as Delayed, none of them empty; `lengths` their rows, `tail` is the
    shape of a row, and `reading` makes rows of a chunk.
    """

    def __init__(self, parts, lengths, tail, names=None, dtype=np.float64, reading=_Reading()):
        super().__init__((sum(lengths), *tail), dtype, names)
        self.parts, self.lengths, self.reading = parts, lengths, reading

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

    def hold(self, function, aligned, tails):
        if not 0 < 8 * len(self) * self.shape[1] <= HELD * _memory_of_workers():
            return None
        parts = self._tasks(_hold_chunk, function, aligned, (self.shape[1], None, 1))
        return self._held(parts, self.lengths, (self.shape[1:], *tails))

    def reduce(self, function, combine):
        """Return what `combine` makes of lists of ``function(chunk)``, in one pass."""
        parts = self._tasks(_on_chunk, function)
        return _compute(_tree(parts, _combine, _pack(combine)))

    def in_one_place(self, function, aligned):
        """Return ``function(X, *aligned)`` of the only chunk."""
        (task,) = self._tasks(_on_chunks, function, aligned)
        return _compute(task)

    def sample(self, n_rows, aligned):
        few = min(FEW, len(self.parts), max(1, n_rows))
        chosen = np.unique(np.linspace(0, len(self.parts) - 1, few).astype(int)).tolist()
        share = -(-n_rows // len(chosen))
        lengths = [min(self.lengths[i], share) for i in chosen]
        rows = [self, *map(self._cut, aligned)]
        parts = self._tasks(_take_chunk, None, rows[1:], [slice(0, n) for n in lengths], chosen)
        # they are few: in one place they take a task a pass
        whole = _delayed(_join)(parts)
        return self._held([whole], (sum(lengths),), [array.shape[1:] for array in rows])

    def pick(self, indices):
        requested, chosen, lengths, start = [], [], [], 0
        cuts = np.searchsorted(indices, np.concatenate([[0], np.cumsum(self.lengths)]))
        for i, (length, low, high) in enumerate(zip(self.lengths, cuts, cuts[1:])):
            if low < high:
                requested.append(_packed_indices(indices[low:high] - start, length))
                chosen.append(i)
                lengths.append(int(high - low))
            start += length
        parts = self._tasks(_take_chunk, None, (), requested, chosen)
        return DistributedRows(
            parts, tuple(lengths), self.shape[1:], self.names, self.dtype, _Reading(0)
        )

    def map(self, function, tail, names=None, dtype=np.float64):
        steps = (*self.reading.steps, (self.shape[1:], function))
        reading = replace(self.reading, steps=steps)
        return DistributedRows(self.parts, self.lengths, tail, names, dtype, reading)

    def on_first_row(self, function):
        (first,) = self._tasks(_take_chunk, None, (), [slice(0, 1)], [0])
        return _compute(_delayed(_on_first)(_pack(function), first))

    def computed(self):
        """Return the rows as an array in this process."""
        return _compute(self.to_dask())

    def to_dask(self):
        """Return the rows as a lazy Dask array."""
        import dask.array as da

        as_read = self.reading == _Reading()
        return da.concatenate([
            da.from_delayed(part, (length, *self.shape[1:]), dtype=self.dtype)
            for part, length in zip(
                self.parts if as_read else self._tasks(_on_chunk, _same), self.lengths
            )
        ])

    def _tasks(self, task, function, aligned=(), cut=None, chosen=None):
        """Return a task for each (or each chosen) chunk; a list for `cut` has an entry for each."""
        rows = [self, *map(self._cut, aligned)]
        # what is held together is one argument
        sources = list({id(array.parts): array.parts for array in rows}.values())
        packed = _pack((function, [
            ([array.parts is source for source in sources].index(True), array.shape[1:], array.reading)
            for array in rows
        ]))
        task, chosen = _delayed(task), range(len(self.parts)) if chosen is None else chosen
        cuts = cut if isinstance(cut, list) else [cut] * len(chosen)
        return [
            task(packed, cut, self.lengths[i], *(source[i] for source in sources))
            for i, cut in zip(chosen, cuts)
        ]

    def _held(self, parts, lengths, tails):
        """Return what chunks of arrays hold, the first like these rows, in the memory of workers."""
        parts = _persisted(parts)
        first = DistributedRows(
            parts, lengths, self.shape[1:], self.names, self.dtype, _Reading(0)
        )
        return first, *(
            DistributedRows(parts, lengths, tail, reading=_Reading(i))
            for i, tail in enumerate(tails) if i
        )

    def _cut(self, array):
        """Return an array of as many rows as distributed rows that are cut as these."""
        if isinstance(array, DistributedRows) and array.lengths == self.lengths:
            return array
        if isinstance(array, DistributedRows):
            array = array.to_dask()
        if not is_dask(array):
            array = _cut_array(array, self.lengths)
        return _rows(_recut(array, self.lengths))


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


def _persisted(parts):
    """Return tasks whose results stay with the workers as long as somebody holds them."""
    return list(_told(lambda dask: dask.persist(*parts)))


def _compute(value):
    """Run tasks and return their result."""
    return _told(lambda dask: dask.compute(value)[0])


def _told(run):
    """Return ``run(dask)``; an error of a task is told without records."""
    import dask

    try:
        # tasks in threads of this process restore each other's filters of warnings
        with warnings.catch_warnings():
            return run(dask)
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


def _sum_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    return _run(lambda: add_up(over_blocks(function, X, aligned, *cut)))


def _map_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    return _run(lambda: collect(over_blocks(function, X, aligned, *cut), length))


def _hold_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    X = canonical(X)
    found = _run(lambda: list(over_blocks(function, X, aligned, *cut)))
    return X, *(np.concatenate(parts) for parts in zip(*found))


def _take_chunk(packed, requested, length, *chunks):
    _, *arrays = _run(_read, packed, length, chunks, False)
    if isinstance(requested, np.ndarray) and requested.dtype == np.uint8:
        requested = np.flatnonzero(np.unpackbits(requested, count=length))
    return tuple(rows_at(array, requested) for array in arrays)


def _join(parts):
    return tuple(join(arrays) for arrays in zip(*parts))


def _on_chunk(packed, cut, length, chunk):
    function, block = _run(_read, packed, length, (chunk,), False)
    return _run(function, _aligned_bytes(block))


def _on_chunks(packed, cut, length, *chunks):
    function, *blocks = _run(_read, packed, length, chunks)
    return _run(function, *blocks)


def _on_first(packed, first):
    return _run(_unpack(packed), first[0])


def _combine(packed, parts):
    return _run(_unpack(packed), parts)


def _same(block):
    return block


def _read(packed, length, chunks, plain=True):
    """Return the function and the rows that a task works on, `plain` ones as arrays."""
    function, readings = _unpack(packed)
    blocks = [(tail, reading(length, chunks[source])) for source, tail, reading in readings]
    if plain:
        blocks = [(tail, _plain(block)) for tail, block in blocks]
    (tail, X), *aligned = blocks
    _check_shapes((length, *tail), X, *(array for _, array in aligned))
    return function, X, *(array for _, array in aligned)


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


def _memory_of_workers():
    """Return the bytes that the workers of a cluster may use, 0 without a cluster."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "scheduler_info"):
        return 0
    known = client.scheduler_info()
    # of many workers the list may have only some
    return known.get("total_memory") or sum(
        worker["memory_limit"] for worker in known["workers"].values()
    )


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

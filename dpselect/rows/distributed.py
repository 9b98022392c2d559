"""Rows on a Dask cluster: they stay on their workers, and sums come back.

Each pass is one reduction. Chunks that a worker has in its memory share a task, and sums are added in an
order that the numbers of the chunks alone decide: results do not depend on where chunks lie, on which
worker was the first, nor on whether one was lost and its tasks were run again.

What many passes read is checked once and held in the memory of the workers, with all that was computed
of it, as one result: if a worker loses a chunk, it also loses the results for it, and both are
recomputed.
"""

import io
import sys
from dataclasses import replace
from functools import cached_property
from operator import getitem

import numpy as np
from sklearn import get_config
from sklearn.utils import check_consistent_length

from ..utils.validation import unquoted
from .cluster import (
    Group,
    compute,
    delayed,
    futures_of_parts,
    in_this_process,
    memory_of_workers,
    near,
    neighbours,
    on_cluster,
    original,
    persisted,
    tree,
    wait,
)
from .cutting import packed
from .on_workers import (
    AS_IT_IS,
    Reading,
    add_sums,
    chain,
    combine_lists,
    hold_group,
    join_chunks,
    map_chunk,
    on_chunk,
    on_chunks,
    on_first,
    on_group,
    same,
    sum_group,
    take_chunk,
    take_group,
)
from .source import FEW, RowSource

# larger functions, with their coefficients, are sent once instead of with each task
SENT_ONCE = 1 << 16
# rows are persisted for many passes if they fit in this fraction of the workers' memory
PERSISTED_FRACTION = 0.3


def is_dask(X):
    """Return whether `X` is a Dask array, dataframe or series; imports nothing."""
    return (
        "dask" in sys.modules and sys.modules["dask"].is_dask_collection(X) and hasattr(type(X), "ndim")
    )


def from_dask(X):
    """Return a Dask collection as rows; unknown lengths of chunks are computed."""
    return align_dask(X, None)[0]


def align_dask(X, y):
    """Return distributed rows, and labels (or None) cut at the same rows."""
    open_ends = [source for source in (X, y) if is_dask(source) and not _is_measured(source)]
    # a graph is made once: it may read files, or convert what lies in this process
    parts = list(map(_parts, open_ends))
    lengths = _measure(list(map(_narrow, open_ends, parts)))
    known = dict(zip(map(id, open_ends), zip(parts, lengths)))
    X = _rows(X, *known.get(id(X), ()))
    if y is None:
        return X, None
    if is_dask(y):
        y = _rows(y, *known.get(id(y), ()))
    elif not isinstance(y, DistributedRows):
        y = unquoted(np.asarray, y, what="y")
    unquoted(check_consistent_length, np.broadcast_to(0, len(X)), y, what="y")
    if isinstance(y, DistributedRows):
        return X, y if y.lengths == X.lengths else _rows(_recut(y.to_dask(), X.lengths))
    # persisted on the workers, so that passes do not send it again
    return X, _rows(_cut_array(y, X.lengths).persist())


class DistributedRows(RowSource):
    """Rows in chunks that tasks of a Dask cluster compute.

    `parts` are the chunks, as Delayed, none of them empty; `lengths` their rows, `tail` is the
    shape of a row, and `reading` makes rows of a chunk. With `groups` a part is the list of the
    chunks of one of these.
    """

    def __init__(
        self, parts, lengths, tail, names=None, dtype=np.float64, reading=AS_IT_IS, groups=None
    ):
        super().__init__((sum(lengths), *tail), dtype, names)
        self.parts, self.lengths, self.reading, self.groups = parts, lengths, reading, groups
        # numbers that a row takes in memory, and whether it is computed from a slice of a table
        self.width, self.sliced = tail[0] if tail else 1, False

    def block_sum(self, function, aligned, n_jobs, row_elements, beside=None):
        n, cut = len(self.lengths), (row_elements, None, beside)
        parts = self._tasks_of_groups(sum_group, function, aligned, cut, self._together)
        ((_, _, sums),) = compute(tree(parts, add_sums, n))
        return sums

    def block_map(self, function, aligned, n_jobs, row_elements, beside=None):
        aligned = [self._cut(array) for array in aligned]
        dummy = [np.zeros((1, *rows.shape[1:]), rows.dtype) for rows in (self, *aligned)]
        with np.errstate(all="ignore"):
            example = np.asarray(function(*dummy))
        parts = self._tasks(map_chunk, function, aligned, (row_elements, None, beside))
        return DistributedRows(parts, self.lengths, example.shape[1:], dtype=example.dtype).to_dask()

    def hold(self, function, aligned, tails):
        if not 0 < sum(self._bytes) <= self._memory_to_hold():
            return None
        groups, cut = self._together, (self.shape[1], None, 1)
        parts = persisted(self._tasks_of_groups(hold_group, function, aligned, cut, groups))
        if on_cluster() and any(group.worker is None for group in groups):
            # their locations are known only now
            wait(parts)
            groups = neighbours(parts, self._bytes)
            if len(groups) < len(parts):
                parts = persisted(
                    _in_groups(groups, lambda chunks: delayed(chain)([parts[i] for i in chunks]))
                )
        return self._with(parts, self.lengths, (self.shape[1:], *tails), groups)

    def reduce(self, function, combine):
        """Return ``combine`` of lists of ``function(chunk)``, in one pass."""
        parts = self._tasks_of_groups(on_group, function, (), None, self._together)
        (found,) = compute(tree(parts, combine_lists, _pack(combine)))
        return found

    def in_one_place(self, function, aligned):
        """Return ``function(X, *aligned)`` of the only chunk."""
        (task,) = self._tasks(on_chunks, function, aligned)
        return compute(task)

    def sample(self, n_rows, aligned):
        few = min(FEW, len(self.lengths), max(1, n_rows))
        chosen = np.unique(np.linspace(0, len(self.lengths) - 1, few).astype(int)).tolist()
        n_each = -(-n_rows // len(chosen))
        lengths = {i: min(self.lengths[i], n_each) for i in chosen}
        rows = [self, *map(self._cut, aligned)]
        groups = [Group([i for i in own if i in lengths], at) for own, at in self._together]
        groups = [group for group in groups if group.chunks]
        cuts = {i: slice(0, n) for i, n in lengths.items()}
        parts = self._tasks_of_groups(take_group, None, rows[1:], cuts, groups)
        order = np.argsort([i for group in groups for i in group.chunks]).tolist()
        # few rows: in one chunk they take one task per pass
        joined = delayed(join_chunks)(order, parts)
        return self._with([joined], (sum(lengths.values()),), [array.shape[1:] for array in rows])

    def pick(self, indices):
        requested, chosen, lengths, start = [], [], [], 0
        cuts = np.searchsorted(indices, np.concatenate([[0], np.cumsum(self.lengths)]))
        for i, (length, low, high) in enumerate(zip(self.lengths, cuts, cuts[1:])):
            if low < high:
                requested.append(packed(indices[low:high] - start, length))
                chosen.append(i)
                lengths.append(int(high - low))
            start += length
        # before the steps, each of which treats rows by themselves
        parts = self._as_read()._tasks(take_chunk, None, (), requested, chosen)
        picked = DistributedRows(
            parts,
            tuple(lengths),
            self.shape[1:],
            self.names,
            self.dtype,
            Reading(0, self.reading.steps),
        )
        picked.finite, picked.sliced, picked.width = self.finite, self.sliced, self.width
        return picked

    def _as_read(self):
        """Return the rows as they are before the steps."""
        if not self.reading.steps:
            return self
        (tail, *_), *_ = self.reading.steps
        reading = replace(self.reading, steps=())
        return DistributedRows(self.parts, self.lengths, tail, reading=reading, groups=self.groups)

    def map(self, function, tail, names=None, dtype=np.float64):
        reading = self._then(function, copies=False)
        return DistributedRows(self.parts, self.lengths, tail, names, dtype, reading, self.groups)

    def map_slices(self, function, tail):
        """Return the rows of the :class:`SlicedRows` that `function` makes of a chunk.

        These copy the cells of a slice. They take no more memory than the chunk, and are held as they
        are.
        """
        reading = self._then(function, copies=True)
        rows = DistributedRows(self.parts, self.lengths, tail, reading=reading, groups=self.groups)
        rows.finite, rows.sliced, rows.width = True, True, self.width
        return rows

    def _then(self, function, copies):
        return replace(self.reading, steps=(*self.reading.steps, (self.shape[1:], function, copies)))

    def on_first_row(self, function):
        (first,) = self._tasks(take_chunk, None, (), [slice(0, 1)], [0])
        return compute(delayed(on_first)(_pack(function), first))

    def computed(self):
        """Return the rows as an array in this process."""
        return compute(self.to_dask())

    def to_dask(self):
        """Return the rows as a lazy Dask array."""
        import dask.array as da

        as_read = self.reading == AS_IT_IS and self.groups is None
        return da.concatenate(
            [
                da.from_delayed(part, (length, *self.shape[1:]), dtype=self.dtype)
                for part, length in zip(
                    self.parts if as_read else self._tasks(on_chunk, same), self.lengths
                )
            ]
        )

    def _tasks(self, task, function, aligned=(), cut=None, chosen=None):
        """Return a task for each (or each selected) chunk; a list for `cut` has an entry for each."""
        packed, sources = self._packed(function, aligned)
        task, chosen = delayed(task), range(len(self.lengths)) if chosen is None else chosen
        cuts = cut if isinstance(cut, list) else [cut] * len(chosen)
        return [
            task(packed, cut, self.lengths[i], *(source._chunk(i) for source in sources))
            for i, cut in zip(chosen, cuts)
        ]

    def _tasks_of_groups(self, task, function, aligned, cut, groups):
        """Return a task for each group of chunks; a dict for `cut` has an entry for each chunk."""
        packed, sources = self._packed(function, aligned)
        task, n = delayed(task), len(self.lengths)
        return _in_groups(
            groups,
            lambda chunks: task(
                packed,
                [cut[i] for i in chunks] if isinstance(cut, dict) else [cut],
                chunks,
                n,
                [self.lengths[i] for i in chunks],
                *(source._chunks(chunks) for source in sources),
            ),
        )

    def _packed(self, function, aligned):
        """Return the function, how its rows are read, and the parts that these are read from."""
        rows = [self, *map(self._cut, aligned)]
        # persisted together, they are one argument
        sources = list({id(array.parts): array for array in rows}.values())
        return _pack(
            (
                function,
                [
                    (
                        [array.parts is source.parts for source in sources].index(True),
                        array.shape[1:],
                        array.reading,
                    )
                    for array in rows
                ],
            )
        ), sources

    def _chunk(self, i):
        if self.groups is None:
            return self.parts[i]
        part, place = self._places[i]
        return delayed(getitem)(self.parts[part], place)

    def _chunks(self, numbers):
        """Return pairs of a part, or chunks, and of the positions of the numbered chunks in it."""
        if self.groups is None:
            return [self.parts[i] for i in numbers], None
        parts, places = zip(*(self._places[i] for i in numbers))
        if len(set(parts)) == 1:
            return self.parts[parts[0]], list(places)
        return [self._chunk(i) for i in numbers], None

    @cached_property
    def _places(self):
        return {
            i: (part, place)
            for part, group in enumerate(self.groups)
            for place, i in enumerate(group.chunks)
        }

    @cached_property
    def _together(self):
        """Return the groups of chunks that share a task."""
        return self.groups or neighbours(self.parts, self._bytes)

    def _memory_to_hold(self):
        if on_cluster():
            return PERSISTED_FRACTION * memory_of_workers()
        # of a table, as much as a search stores
        return get_config()["working_memory"] * 2**20 if self.sliced and in_this_process() else 0

    @property
    def _bytes(self):
        return [8 * length * self.width for length in self.lengths]

    def _with(self, parts, lengths, tails, groups=None):
        """Return rows for each array of the tasks' tuples, the first with the columns of these rows."""
        first = DistributedRows(
            parts, lengths, self.shape[1:], self.names, self.dtype, Reading(0), groups
        )
        return first, *(
            DistributedRows(parts, lengths, tail, reading=Reading(i), groups=groups)
            for i, tail in enumerate(tails)
            if i
        )

    def _cut(self, array):
        """Return an array cut into the same chunks as these rows."""
        if isinstance(array, DistributedRows) and array.lengths == self.lengths:
            return array
        if isinstance(array, DistributedRows):
            array = array.to_dask()
        if not is_dask(array):
            array = _cut_array(array, self.lengths)
        return _rows(_recut(array, self.lengths))


def _rows(X, parts=None, lengths=None):
    """Return a Dask collection as rows, with known or measured `lengths` of its parts."""
    if isinstance(X, DistributedRows):
        return X
    names = list(X.columns) if X.ndim == 2 and hasattr(X, "columns") else None
    tail = tuple(X.shape[1:]) if names is None else (len(names),)
    parts, lengths = parts or _parts(X), lengths or X.chunks[0]
    full = [i for i, length in enumerate(lengths) if length]
    dtype = getattr(X, "dtype", None)
    # of a series: pandas' extension types, such as text, cannot be sliced as arrays
    steps = () if tail or hasattr(X, "chunks") else ((tail, np.asarray, False),)
    return DistributedRows(
        # an empty table still has one chunk
        [parts[i] for i in full or [0]],
        tuple(int(lengths[i]) for i in full or [0]),
        tail,
        names,
        dtype if isinstance(dtype, np.dtype) else np.dtype(np.float64 if names else object),
        Reading(steps=steps),
    )


def _parts(X):
    if not hasattr(X, "chunks"):  # a dataframe or series
        return list(map(original, X.to_delayed()))
    rechunked = X.rechunk({axis: -1 for axis in range(1, X.ndim)})
    # not optimised, because that drops the references that keep persisted chunks; passes are optimised
    return rechunked.to_delayed(optimize_graph=False).ravel().tolist()


def _in_groups(groups, task):
    """Return ``task(chunks)`` for each group, run where the group is."""
    tasks = []
    for group in groups:
        with near(group):
            tasks.append(task(group.chunks))
    return tasks


def _is_measured(X):
    return hasattr(X, "chunks") and not any(np.isnan(length) for length in X.chunks[0])


def _narrow(X, parts):
    """Return parts of as many rows: of a dataframe the first column, which is less to read."""
    if X.ndim == 1 or hasattr(X, "chunks") or futures_of_parts(parts) is not None:
        return parts
    return X[list(X.columns[:1])].to_delayed()


def _measure(sources):
    """Return the lengths of the parts of collections, in one pass over all of them."""
    if not sources:
        return []
    return compute([[delayed(len)(part) for part in parts] for parts in sources])


def _cut_array(array, lengths):
    import dask.array as da

    array = np.asarray(array)
    return da.from_array(array, chunks=(lengths, *array.shape[1:]))


def _recut(array, lengths):
    return array if array.chunks[0] == lengths else array.rechunk({0: lengths})


def _pack(function):
    """Return a function as bytes for the workers, without Dask collections that it may reference.

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
    return packed if len(packed) <= SENT_ONCE else delayed(packed)


def _left_out():
    return None

"""Rows on a Dask cluster: they stay where they are, and sums come back.

Each pass is one reduction. Chunks that a worker has in its memory share a task, and sums are added in an
order that the numbers of the chunks alone decide: results do not depend on where chunks lie, on which
worker was the first, nor on whether one was lost and its tasks were run again.

What many passes read is checked once and held in the memory of the workers, with all that was computed
of it, as one result: whoever loses a chunk loses what belongs to it, and both are made anew.
"""

import io
import sys
import warnings
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import getitem

import numpy as np
from sklearn.utils import check_consistent_length

from ..validation import unquoted
from .cutting import add_up, collect, join, over_blocks, packed, unpacked
from .source import FEW, RowSource, rows_at
from .sparse_rows import canonical

# sums that are added at a time
FAN_IN = 8
# a task takes chunks of no more bytes together, and a thread of a worker has so many tasks in a pass
# (or all its chunks have one)
TASK_BYTES, TASKS_A_THREAD = 1 << 28, 2
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
    shape of a row, and `reading` makes rows of a chunk. With `groups` a part is a list of chunks, of
    which these are the numbers.
    """

    def __init__(
        self, parts, lengths, tail, names=None, dtype=np.float64, reading=_Reading(), groups=None
    ):
        super().__init__((sum(lengths), *tail), dtype, names)
        self.parts, self.lengths, self.reading, self.groups = parts, lengths, reading, groups

    def block_sum(self, function, aligned, n_jobs, row_elements, beside=None):
        n, cut = len(self.lengths), (row_elements, None, beside)
        parts = self._tasks_of_groups(_sum_group, function, aligned, cut, self._together)
        ((_, _, sums),) = _compute(_tree(parts, _add_sums, n))
        return sums

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
        groups, cut = self._together, (self.shape[1], None, 1)
        parts = _persisted(self._tasks_of_groups(_hold_group, function, aligned, cut, groups))
        if len(groups) == len(self.lengths) > 1:
            # where they are is known only now
            _wait(parts)
            groups = _neighbours(parts, self._bytes)
            if len(groups) < len(parts):
                parts = _persisted([_delayed(_chain)([parts[i] for i in own]) for own in groups])
        return self._with(parts, self.lengths, (self.shape[1:], *tails), groups)

    def reduce(self, function, combine):
        """Return what `combine` makes of lists of ``function(chunk)``, in one pass."""
        parts = self._tasks_of_groups(_on_group, function, (), None, self._together)
        (found,) = _compute(_tree(parts, _combine, _pack(combine)))
        return found

    def in_one_place(self, function, aligned):
        """Return ``function(X, *aligned)`` of the only chunk."""
        (task,) = self._tasks(_on_chunks, function, aligned)
        return _compute(task)

    def sample(self, n_rows, aligned):
        few = min(FEW, len(self.lengths), max(1, n_rows))
        chosen = np.unique(np.linspace(0, len(self.lengths) - 1, few).astype(int)).tolist()
        share = -(-n_rows // len(chosen))
        lengths = {i: min(self.lengths[i], share) for i in chosen}
        rows = [self, *map(self._cut, aligned)]
        groups = [[i for i in own if i in lengths] for own in self._together]
        cuts = {i: slice(0, n) for i, n in lengths.items()}
        parts = self._tasks_of_groups(_take_group, None, rows[1:], cuts, list(filter(None, groups)))
        order = np.argsort([i for own in groups for i in own]).tolist()
        # they are few: in one place they take a task a pass
        whole = _delayed(_join)(order, parts)
        return self._with([whole], (sum(lengths.values()),), [array.shape[1:] for array in rows])

    def pick(self, indices):
        requested, chosen, lengths, start = [], [], [], 0
        cuts = np.searchsorted(indices, np.concatenate([[0], np.cumsum(self.lengths)]))
        for i, (length, low, high) in enumerate(zip(self.lengths, cuts, cuts[1:])):
            if low < high:
                requested.append(packed(indices[low:high] - start, length))
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
        return DistributedRows(
            self.parts, self.lengths, tail, names, dtype, reading, self.groups
        )

    def on_first_row(self, function):
        (first,) = self._tasks(_take_chunk, None, (), [slice(0, 1)], [0])
        return _compute(_delayed(_on_first)(_pack(function), first))

    def computed(self):
        """Return the rows as an array in this process."""
        return _compute(self.to_dask())

    def to_dask(self):
        """Return the rows as a lazy Dask array."""
        import dask.array as da

        as_read = self.reading == _Reading() and self.groups is None
        return da.concatenate([
            da.from_delayed(part, (length, *self.shape[1:]), dtype=self.dtype)
            for part, length in zip(
                self.parts if as_read else self._tasks(_on_chunk, _same), self.lengths
            )
        ])

    def _tasks(self, task, function, aligned=(), cut=None, chosen=None):
        """Return a task for each (or each chosen) chunk; a list for `cut` has an entry for each."""
        packed, sources = self._packed(function, aligned)
        task, chosen = _delayed(task), range(len(self.lengths)) if chosen is None else chosen
        cuts = cut if isinstance(cut, list) else [cut] * len(chosen)
        return [
            task(packed, cut, self.lengths[i], *(source._chunk(i) for source in sources))
            for i, cut in zip(chosen, cuts)
        ]

    def _tasks_of_groups(self, task, function, aligned, cut, groups):
        """Return a task for each group of chunks; a dict for `cut` has an entry for each chunk."""
        packed, sources = self._packed(function, aligned)
        task, n = _delayed(task), len(self.lengths)
        return [
            task(
                packed, [cut[i] for i in own] if isinstance(cut, dict) else [cut], own, n,
                [self.lengths[i] for i in own], *(source._chunks(own) for source in sources),
            )
            for own in groups
        ]

    def _packed(self, function, aligned):
        """Return the function with how its rows are read, and whose parts these are read of."""
        rows = [self, *map(self._cut, aligned)]
        # what is held together is one argument
        sources = list({id(array.parts): array for array in rows}.values())
        return _pack((function, [
            ([array.parts is source.parts for source in sources].index(True), array.shape[1:],
             array.reading)
            for array in rows
        ])), sources

    def _chunk(self, i):
        if self.groups is None:
            return self.parts[i]
        part, place = self._places[i]
        return _delayed(getitem)(self.parts[part], place)

    def _chunks(self, numbers):
        """Return pairs of a part, or chunks, and of the places of the numbered chunks in it."""
        if self.groups is None:
            return [self.parts[i] for i in numbers], None
        parts, places = zip(*(self._places[i] for i in numbers))
        if len(set(parts)) == 1:
            return self.parts[parts[0]], list(places)
        return [self._chunk(i) for i in numbers], None

    @cached_property
    def _places(self):
        return {i: (j, k) for j, own in enumerate(self.groups) for k, i in enumerate(own)}

    @cached_property
    def _together(self):
        """Lists of the numbers of chunks that share a task."""
        return self.groups or _neighbours(self.parts, self._bytes)

    @property
    def _bytes(self):
        width = self.shape[1] if self.ndim > 1 else 1
        return [8 * length * width for length in self.lengths]

    def _with(self, parts, lengths, tails, groups=None):
        """Return what tasks made of chunks of arrays as rows, the first like these."""
        first = DistributedRows(
            parts, lengths, self.shape[1:], self.names, self.dtype, _Reading(0), groups
        )
        return first, *(
            DistributedRows(parts, lengths, tail, reading=_Reading(i), groups=groups)
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


def _neighbours(parts, sizes):
    """Return lists of the numbers of parts of so many bytes that a task should take together.

    They lie in the memory of one worker; parts that are not computed, or not on a cluster, are alone.
    The lists are in the order of their first numbers.
    """
    alone = [[i] for i in range(len(parts))]
    client = _client()
    if client is None or len(parts) == 1:
        return alone
    from distributed import futures_of

    # parts of one collection have one graph
    graphs = list({id(part.dask): part for part in parts}.values())
    futures = {future.key: future for future in futures_of(graphs)}
    if not all(part.key in futures for part in parts):
        return alone
    places = client.who_has([futures[part.key] for part in parts])
    if not all(places.get(part.key) for part in parts):
        return alone
    threads, on_worker = client.nthreads(), {}
    for i, part in enumerate(parts):
        on_worker.setdefault(min(places[part.key]), []).append(i)
    groups = []
    for worker, own in on_worker.items():
        ends = np.cumsum([sizes[i] for i in own])
        n_groups = max(TASKS_A_THREAD * threads.get(worker, 1), -(-ends[-1] // TASK_BYTES))
        middles = ends - np.array([sizes[i] for i in own]) / 2
        numbers = (middles * n_groups / ends[-1]).astype(int)
        groups += [np.array(own)[numbers == k].tolist() for k in np.unique(numbers)]
    return sorted(groups)


def _client():
    """Return the client of the cluster that runs tasks, or None."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


def _wait(parts):
    """Wait until the workers have made them."""
    from distributed import wait

    _told(lambda dask: wait(parts))


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


def _on_each(task):
    """Return a generator of what a task on one chunk makes of each chunk of a group.

    `sources` are as :meth:`DistributedRows._chunks` returns them.
    """

    def on_each(packed, cuts, numbers, n, lengths, *sources):
        chunks = zip(*(
            part if places is None else [part[place] for place in places] for part, places in sources
        ))
        if len(cuts) == 1:
            cuts = cuts * len(lengths)
        for cut, length, own in zip(cuts, lengths, chunks):
            yield task(packed, cut, length, *own)

    return on_each


def _sum_group(packed, cuts, numbers, n, *group):
    sums = _on_each(_sum_chunk)(packed, cuts, numbers, n, *group)
    return _add_sums(n, [zip([0] * len(numbers), numbers, sums)])


def _sum_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    return _run(lambda: add_up(over_blocks(function, X, aligned, *cut)))


def _add_sums(n, parts):
    """Add sums of a tree with n leaves, as far as all that belong to a node are there.

    Of a sum there are its level in the tree, its number there, and the sum. Where sums are of, and in
    which order they come, makes no difference.
    """
    nodes = {}
    for part in parts:
        for level, i, sums in part:
            nodes[level, i] = sums
            while (size := -(-n // FAN_IN**level)) > 1:
                first = i - i % FAN_IN
                family = [(level, j) for j in range(first, min(first + FAN_IN, size))]
                if not all(member in nodes for member in family):
                    break
                level, i = level + 1, i // FAN_IN
                nodes[level, i] = add_up(map(nodes.pop, family))
    return [(*node, sums) for node, sums in nodes.items()]


def _map_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    return _run(lambda: collect(over_blocks(function, X, aligned, *cut), length))


def _hold_group(*group):
    return list(_on_each(_hold_chunk)(*group))


def _hold_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    X = canonical(X)
    found = _run(lambda: list(over_blocks(function, X, aligned, *cut)))
    return X, *(np.concatenate(parts) for parts in zip(*found))


def _take_group(*group):
    return list(_on_each(_take_chunk)(*group))


def _take_chunk(packed, requested, length, *chunks):
    _, *arrays = _run(_read, packed, length, chunks, False)
    requested = unpacked(requested, length)
    return tuple(rows_at(array, requested) for array in arrays)


def _join(order, parts):
    parts = _chain(parts)
    return tuple(join(arrays) for arrays in zip(*(parts[i] for i in order)))


def _chain(parts):
    return [chunk for part in parts for chunk in part]


def _on_group(*group):
    return list(_on_each(_on_chunk)(*group))


def _on_chunk(packed, cut, length, chunk):
    function, block = _run(_read, packed, length, (chunk,), False)
    return _run(function, _aligned_bytes(block))


def _on_chunks(packed, cut, length, *chunks):
    function, *blocks = _run(_read, packed, length, chunks)
    return _run(function, *blocks)


def _on_first(packed, first):
    return _run(_unpack(packed), first[0])


def _combine(packed, parts):
    return [_run(_unpack(packed), _chain(parts))]


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


def _memory_of_workers():
    """Return the bytes that the workers of a cluster may use, 0 without a cluster."""
    client = _client()
    if client is None:
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

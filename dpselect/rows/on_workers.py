"""Code for the workers of a Dask cluster: tasks over chunks of rows, which return sums."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..config import usual_settings
from .cutting import add_up, collect, join, over_blocks, unpacked
from .freed_memory import freed_memory_kept
from .source import RowSource, rows_at
from .sparse_rows import canonical

# fan-in of the tree of sums
FAN_IN = 8


@dataclass(frozen=True)
class Reading:
    """Recipe by which a task makes rows from a chunk, in the task itself.

    A chunk that is held is a tuple, with the rows at a `place`. `steps` are triples of the shape of a
    row before, a function, and whether it copies what it reads.
    """

    place: int | None = None
    steps: tuple = ()

    def __call__(self, length, chunk):
        block = chunk if self.place is None else chunk[self.place]
        for tail, function, copies in self.steps:
            _check_shapes((length, *tail), block)
            block = _stored(block)
            block = function(block if copies else _aligned_bytes(block))
        return block


AS_IT_IS = Reading()


class RowsError(ValueError):
    """An error of a task, without records; the client raises its `kind`."""

    def __init__(self, said, kind):
        super().__init__(said, kind)
        self.kind = kind

    def __str__(self):
        return self.args[0]


def _run(function, *args):
    try:
        with usual_settings(), freed_memory_kept():
            return function(*args)
    except RowsError:
        raise
    except (TypeError, ValueError) as error:
        found = RowsError(str(error), TypeError if isinstance(error, TypeError) else ValueError)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        found = RowsError(f"A chunk of rows was refused ({type(error).__name__}).", ValueError)
    raise found


def _on_each(task):
    """Return a generator of a task's results for each chunk of a group.

    `sources` are as :meth:`DistributedRows._chunks` returns them.
    """

    def on_each(packed, cuts, numbers, n, lengths, *sources):
        chunks = zip(
            *(part if places is None else [part[place] for place in places] for part, places in sources)
        )
        if len(cuts) == 1:
            cuts = cuts * len(lengths)
        for cut, length, own in zip(cuts, lengths, chunks):
            yield task(packed, cut, length, *own)

    return on_each


def sum_group(packed, cuts, numbers, n, *group):
    sums = _on_each(_sum_chunk)(packed, cuts, numbers, n, *group)
    return add_sums(n, [zip([0] * len(numbers), numbers, sums)])


def _sum_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    if isinstance(X, RowSource):
        row_elements, n_jobs, beside = cut
        return _run(X.block_sum, function, aligned, n_jobs, row_elements, beside)
    return _run(lambda: add_up(over_blocks(function, X, aligned, *cut)))


def add_sums(n, parts):
    """Add sums along a tree with n leaves, as far as all children of a node are there.

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


def map_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    if isinstance(X, RowSource):
        row_elements, n_jobs, beside = cut
        return _run(X.block_map, function, aligned, n_jobs, row_elements, beside)
    return _run(lambda: collect(over_blocks(function, X, aligned, *cut), length))


def hold_group(*group):
    return list(_on_each(_hold_chunk)(*group))


def _hold_chunk(packed, cut, length, *chunks):
    function, X, *aligned = _run(_read, packed, length, chunks)
    if isinstance(X, RowSource):
        # held as it is: dense rows would take several times the memory, and longer to read
        found = _run(lambda: list(X.over_blocks(function, aligned, *cut)))
    else:
        X = canonical(X)
        found = _run(lambda: list(over_blocks(function, X, aligned, *cut)))
    return X, *(np.concatenate(parts) for parts in zip(*found))


def take_group(*group):
    return list(_on_each(take_chunk)(*group))


def take_chunk(packed, requested, length, *chunks):
    _, *arrays = _run(_read, packed, length, chunks, False)
    requested = unpacked(requested, length)
    return tuple(_run(_rows_of, array, requested) for array in arrays)


def _rows_of(block, requested):
    if isinstance(block, RowSource):
        return _stored(block.pick(np.arange(len(block))[requested]))
    return rows_at(block, requested)


def join_chunks(order, parts):
    parts = chain(parts)
    return tuple(join(arrays) for arrays in zip(*(parts[i] for i in order)))


def chain(parts):
    return [chunk for part in parts for chunk in part]


def on_group(*group):
    return list(_on_each(on_chunk)(*group))


def on_chunk(packed, cut, length, chunk):
    function, block = _run(_read, packed, length, (chunk,), False)
    return _run(lambda: function(_aligned_bytes(_stored(block))))


def on_chunks(packed, cut, length, *chunks):
    function, *blocks = _run(_read, packed, length, chunks)
    return _run(lambda: function(*map(_stored, blocks)))


def on_first(packed, first):
    return _run(_unpack(packed), first[0])


def combine_lists(packed, parts):
    return [_run(_unpack(packed), chain(parts))]


def same(block):
    return block


def _read(packed, length, chunks, plain=True):
    """Return the function and the rows of a task, `plain` ones as arrays."""
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


def _stored(block):
    """Return rows that a step computes from slices of its chunk as an array, in the order of C.

    Passes over blocks of rows are several times slower in the other order.
    """
    if not isinstance(block, RowSource):
        return block
    return np.ascontiguousarray(block.block_map(np.asarray, (), None, block.shape[1]))


def _plain(block):
    as_it_is = hasattr(block, "tocsr") or isinstance(block, RowSource)
    return block if as_it_is else _aligned_bytes(np.asarray(block))


def _aligned_bytes(block):
    """Copy a block with the same memory alignment on every worker.

    What came from another worker may begin at any byte, or have lost the order of a slice. Products
    of such arrays are computed in another order, and the last bits would tell.
    """
    if isinstance(block, np.ndarray):
        return np.require(block, requirements=["C", "ALIGNED"])
    return block.copy() if hasattr(block, "iloc") else block


@lru_cache(maxsize=8)
def _unpack(packed):
    import cloudpickle

    return cloudpickle.loads(packed)

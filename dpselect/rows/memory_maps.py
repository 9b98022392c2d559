"""Rows of memory-mapped files: read block by block, and released."""

import mmap

import numpy as np

from .cutting import row_blocks
from .source import LocalRows

# a smaller fraction of the rows is copied: reading it in every pass costs more than its memory
COPIED_ELEMENTS = 1 << 24
# The system also maps neighbours of a page that is read, up to its largest page size. Release them, too.
MARGIN = 1 << 21


def is_memory_map(X):
    """Return whether an array lies in a memory-mapped file."""
    return isinstance(X, np.ndarray) and X.ndim > 0 and _origin(X)[0] is not None


class MemoryMapRows(LocalRows):
    """Rows of a memory map, or of a view of one."""

    def __init__(self, X):
        super().__init__(X.shape, X.dtype)
        # a plain array for sums over blocks; its slices are still views of the file
        self.X = np.asarray(X)

    def pieces(self, row_elements):
        return row_blocks(len(self), row_elements)

    def load(self, rows):
        return self.X[rows]

    def release(self, rows):
        release_pages(self.X[rows])

    def pick(self, indices):
        if len(indices) * self.X[:1].size <= COPIED_ELEMENTS:
            picked = self.X[indices]
            release_pages(self.X)
            return picked
        return super().pick(indices)

    def __reduce__(self):
        # other processes map the same file, unless this is a private copy (copy-on-write)
        origin, buffer = _origin(self.X)
        if origin.mode == "c" or origin.filename is None or not self.X.flags.c_contiguous:
            return super().__reduce__()
        offset = origin.offset + _address(self.X) - _address(origin)
        return _mapped, (str(origin.filename), self.X.dtype, offset, self.X.shape)


def _mapped(filename, dtype, offset, shape):
    return MemoryMapRows(np.memmap(filename, dtype=dtype, mode="r", offset=offset, shape=shape))


def release_pages(X):
    """Release the pages of a view of a memory map to the operating system.

    The next read brings them in again. What was written to a shared map is in the file's pages that
    the system keeps; a private map would lose it, and is left alone.
    """
    origin, buffer = _origin(X)
    if origin is None or origin.mode == "c" or not hasattr(buffer, "madvise") or X.size == 0:
        return
    first = _address(X) + sum(min(0, step * (k - 1)) for step, k in zip(X.strides, X.shape))
    last = first + sum(abs(step) * (k - 1) for step, k in zip(X.strides, X.shape)) + X.itemsize
    start = _address(np.frombuffer(buffer, dtype=np.uint8))
    low = max(0, first - start - MARGIN) // MARGIN * MARGIN
    buffer.madvise(mmap.MADV_DONTNEED, low, min(last - start + MARGIN, len(buffer)) - low)


def _origin(X):
    """Return the array that numpy mapped and the map itself, or (None, None)."""
    found = None
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            found = X
        X = X.base
    return (found, X) if found is not None and isinstance(X, mmap.mmap) else (None, None)


def _address(X):
    return X.__array_interface__["data"][0]

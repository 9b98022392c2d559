"""The same records in every form that an estimator takes."""

import numpy as np

import dpselect

LENGTHS = (700, 200, 900, 200)
NAMES = ["a", "b", "c", "d"]


def cut(array):
    return np.split(array, np.cumsum(LENGTHS)[:-1])


class Parts:
    """Chunks as a function that can be sent to other processes; counts what was read."""

    def __init__(self, array):
        self.parts, self.read = cut(array), []

    def __call__(self, i):
        self.read.append(i)
        return self.parts[i]


def chunked(array):
    return dpselect.RowChunks(Parts(array), LENGTHS, array.shape[1] if array.ndim > 1 else 1)


def mapped(array, folder, mode="r"):
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode=mode)


def few_forms(X, y, folder):
    """Return one of each kind, with few chunks: a search makes many passes."""
    import dask.array as da

    return {
        "memory map": (mapped(X, folder), mapped(y, folder)),
        "chunks": (chunked(X), chunked(y)),
        "dask": (da.from_array(X, chunks=1100), da.from_array(y, chunks=1100)),
    }


def forms(X, y, folder):
    """Return X and y in every form, by name."""
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=3)
    return {
        "memory map": (mapped(X, folder), mapped(y, folder)),
        "slice of a memory map": (mapped(np.tile(X, 2), folder)[:, :4], y),
        "chunks": (chunked(X), chunked(y)),
        "chunks, labels in memory": (chunked(X), y),
        "dask": (da.from_array(X, chunks=(700, 2)), da.from_array(y, chunks=300)),
        "dask, labels in memory": (da.from_array(X, chunks=700), list(y)),
        "dask of unknown lengths": (frame[NAMES].to_dask_array(), frame["y"].to_dask_array()),
        "dask dataframe": (frame[NAMES], frame["y"]),
    }

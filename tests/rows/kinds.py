"""The same records in every form that an estimator takes."""

from functools import partial

import numpy as np
from scipy import sparse

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


# ---- sparse rows


def in_pieces(X, cancelling=False):
    """Return CSR rows in which each entry is stored several times, of eighths: their sums are exact.

    As eight equal pieces they look shorter than they are, and as two that cancel much longer.
    """
    X = sparse.csr_array(X)
    k = 2 if cancelling else 8
    pieces = (
        np.stack([X.data + 64.0, np.full(len(X.data), -64.0)], axis=1)
        if cancelling
        else (np.repeat(X.data[:, None] / 8, 8, axis=1))
    )
    parts = pieces.ravel(), np.repeat(X.indices, k), X.indptr * k
    return sparse.csr_array(parts, shape=X.shape)


def sparse_forms(X, y, sizes=(25, 35)):
    """Return X and y with sparse rows in every form, by name; X holds multiples of 1/8."""
    import dask
    import dask.array as da

    found = {}
    for name, kind in (
        ("csr", sparse.csr_array),
        ("csr matrix", sparse.csr_matrix),
        ("in pieces", in_pieces),
        ("in pieces that cancel", partial(in_pieces, cancelling=True)),
        ("in pieces, as a coo", lambda X: sparse.coo_array(in_pieces(X))),
    ):
        parts = [kind(part) for part in np.split(X, np.cumsum(sizes)[:-1])]
        found[name] = kind(X), y
        found[f"chunks, {name}"] = dpselect.RowChunks(parts.__getitem__, sizes, X.shape[1]), y
        arrays = [da.from_delayed(dask.delayed(part), part.shape, dtype=float) for part in parts]
        found[f"dask, {name}"] = da.concatenate(arrays), da.from_array(y, chunks=(sizes,))
    return found

"""Peak memory of one call in this process, above that of its records: run in a new process, on Linux.

Usage::

    python benchmarks/_peak_memory.py MODEL CONTAINER N D

The peak is that of the resident set, which the system is told to forget once the records are made.
The process first does the same on a few records, so that modules and thread pools are loaded.
"""

import gc
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _timing_contestants import CLASSES, CLASSIFIER_ALPHAS, stability_search
from _timing_data import ENTRIES, records
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from dpselect import DPLogisticRegression, DPRidge
from dpselect.preprocessing import BoundedScaler, tabular_pipeline

FEW = 1000
EXPANSION = 4
LOGISTIC = DPLogisticRegression(classes=CLASSES)
RIDGE = DPRidge(norm="l2", target_range=(0, 1))


def encoded(model, d):
    """Return the model behind an encoder that makes EXPANSION columns of each of d numbers."""
    return tabular_pipeline({f"c{i}": (-1.0, 1.0) for i in range(d)}, model, expansion=EXPANSION)


def scaled(model, d):
    """Return the model behind a scaler, in a search, which makes no copy of the scaled rows."""
    from sklearn.pipeline import make_pipeline

    return make_pipeline(BoundedScaler((-1.0, 1.0)), model)


MODELS = {
    "DPLogisticRegression": lambda d: LOGISTIC,
    "DPRidge": lambda d: RIDGE,
    "search, 10 alphas x 5 folds": lambda d: stability_search(CLASSIFIER_ALPHAS),
    "scaler, DPLogisticRegression": lambda d: scaled(LOGISTIC, d),
    "encoder, DPLogisticRegression": lambda d: encoded(LOGISTIC, d),
    "encoder, DPRidge": lambda d: encoded(RIDGE, d),
}


def pandas_table(X):
    return pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])


def polars_table(X):
    import polars

    return polars.DataFrame(X, schema=[f"c{i}" for i in range(X.shape[1])])


def arrow_table(X):
    import pyarrow

    return pyarrow.table({f"c{i}": X[:, i].copy() for i in range(X.shape[1])})


def memory_map(X):
    """Return rows in a file, of which the fit may keep no page."""
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115 (it lives as long as the process)
    found = np.memmap(file, dtype=X.dtype, mode="w+", shape=X.shape)
    found[:] = X
    found.flush()
    again = np.memmap(file.name, dtype=X.dtype, mode="r", shape=X.shape)
    FILES.append(file)
    return again


FILES = []
CONTAINERS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: np.rint(100 * X).astype(np.int64),
    "int8": lambda X: np.rint(100 * X).astype(np.int8),
    "pandas": pandas_table,
    "polars": polars_table,
    "Arrow": arrow_table,
    "memory map": memory_map,
    "CSR": sparse.csr_matrix,
}


def size(X):
    """Return the bytes of rows in any container."""
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    for name in ("estimated_size", "memory_usage"):
        if hasattr(X, name):
            return int(np.sum(getattr(X, name)()))
    return X.nbytes


def status(name):
    """Return a number of bytes that the system knows of this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {name}.")


def made(container, n, d):
    """Return records in a container."""
    X, y = records("sparse" if container == "CSR" else "labels", n, d)
    X = CONTAINERS[container](X)
    records.cache_clear()
    return X, y


def main(model, container, n, d):
    """Measure one case and print it as JSON."""
    estimator = MODELS[model](d)
    with threadpool_limits(1):
        clone(estimator).fit(*made(container, max(FEW, 10 * ENTRIES), d))
        X, y = made(container, n, d)
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before, start = status("VmRSS"), time.process_time()
        clone(estimator).fit(X, y)
        taken = time.process_time() - start
        above = status("VmHWM") - before
    print(json.dumps({"data": size(X) + y.nbytes, "above": max(above, 0), "cpu": taken}))


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))

"""What all suites share: synthetic records, the same in each version, and how often something is run."""

import time

import numpy as np
from scipy import sparse

ENTRIES = 100  # of a sparse row


class Suite:
    """Few runs, so that two commits take a quarter of an hour, by the time of the processor."""

    rounds, repeat, warmup_time, timeout = 2, (2, 5, 0.5), 0, 120
    # others who use the machine weigh little in it
    timer = time.process_time


def labelled(n, d):
    """Return rows in the unit ball and labels 0 and 1 of a logistic model."""
    X, signal, rng = _rows(n, d)
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * signal))).astype(int)


def with_targets(n, d):
    """Return rows in the unit ball and targets in [-1, 1]."""
    X, signal, rng = _rows(n, d)
    return X, np.clip((signal + 0.2 * rng.standard_normal(n)) / 3, -1, 1)


def uniform(n, d):
    """Return rows in the unit cube."""
    return np.random.default_rng(0).beta(2, 5, (n, d))


def sparse_labelled(n, d):
    """Return a CSR matrix of ENTRIES equal entries a row, more in the first columns, and labels."""
    rng = np.random.default_rng(0)
    columns = (d * rng.random((n, ENTRIES)) ** 2).astype(np.int32)
    X = sparse.csr_matrix(
        (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, ENTRIES)), (n, d)
    )
    X.sum_duplicates()
    X.data[:] = ENTRIES**-0.5
    signal = 2 * (X @ rng.standard_normal(d))
    return X, (rng.random(n) < 1 / (1 + np.exp(-signal))).astype(int)


def _rows(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.sqrt(d) + 2)
    return X, (np.sqrt(d) + 2) * X[:, 0], rng

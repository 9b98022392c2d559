"""Synthetic records for timings: the same numbers in each process and under each scikit-learn.

Only numpy and scipy are imported, so that an environment without dpselect can make them too. Rows are
written block by block, so that making them takes no memory beside them.
"""

from functools import lru_cache

import numpy as np
from scipy import sparse

SEED = 20131
# so few that the allocator keeps hardly any memory that could be used again
BLOCK_ELEMENTS = 1 << 14
# standard deviation of the log-odds, and of what a linear function leaves of the targets
LOG_ODDS, RESIDUAL = 2.0, 0.2
ENTRIES = 100  # of a sparse row


@lru_cache(maxsize=1)
def records(kind, n, d):
    """Return rows and what is to be predicted; the last call's are kept.

    Parameters
    ----------
    kind : {"labels", "targets", "uniform", "sparse"}
        Labels 0 and 1 of a logistic model, targets in [-1, 1] of a linear one, or rows alone; "sparse"
        has labels.
    n, d : int
        Records and columns.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        In the unit ball of the l2 norm; values in [0, 1] for "uniform".
    y : ndarray of shape (n,)
        Zeros for "uniform".
    """
    rng = np.random.default_rng([SEED, n, d])
    if kind == "sparse":
        return _sparse(rng, n, d)
    X, y = np.empty((n, d)), np.zeros(n, dtype=int if kind == "labels" else float)
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    # the length of normal rows is sqrt(d) and a little more; beyond it they are scaled down
    longest = np.sqrt(d) + 2
    step = max(1, BLOCK_ELEMENTS // d)
    for start in range(0, n, step):
        block, expected = X[start : start + step], y[start : start + step]
        if kind == "uniform":
            block[:] = rng.beta(2, 5, block.shape)
            continue
        rng.standard_normal(out=block)
        block /= np.maximum(np.linalg.norm(block, axis=1, keepdims=True), longest)
        signal = longest * (block @ direction)  # about standard normal
        if kind == "labels":
            expected[:] = rng.random(len(block)) < 1 / (1 + np.exp(-LOG_ODDS * signal))
        else:
            noisy = signal + RESIDUAL * rng.standard_normal(len(block))
            expected[:] = np.clip(noisy / 3, -1, 1)
    return X, y


def _sparse(rng, n, d):
    """Return a CSR matrix of ENTRIES equal entries a row, more in the first columns, and labels."""
    columns = (d * rng.random((n, ENTRIES)) ** 2).astype(np.int32)
    X = sparse.csr_matrix(
        (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, ENTRIES)), (n, d)
    )
    X.sum_duplicates()
    X.data[:] = ENTRIES**-0.5
    signal = X @ rng.standard_normal(d)
    return X, (rng.random(n) < 1 / (1 + np.exp(-LOG_ODDS * signal))).astype(int)

"""Cross-validation of private histograms: records are counted once for all widths and splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.estimator import Trial
from ..metrics import IntegratedSquaredErrorScore
from ..records.persons import person_weights
from ..rows import Parts, block_sum, in_part
from ..utils.type_aliases import FloatArray, MatrixLike
from .cells import cell_masses

# bound on the counts in memory
MAX_COUNTS = 1 << 23


def density_split_scores(
    trials: Sequence[Trial], score: IntegratedSquaredErrorScore, X: MatrixLike, y: Any, parts: Parts
) -> FloatArray:
    """Fit on each split's training part and score on its other part.

    Records are counted once for all widths that are multiples of one another.

    Parameters
    ----------
    trials : list of Trial
        Of histograms.
    score : IntegratedSquaredErrorScore
    X : array-like of shape (n_samples, n_features)
    y : None
        Ignored.
    parts : Parts
        Of J splits.

    Returns
    -------
    ndarray of shape (J, k)
        Exact functions of the records, not released.
    """
    scores = np.empty((len(parts.test_sizes), len(trials)))
    records = trials[0].records(X, y)
    calibrations = [trial.calibration(records.shape) for trial in trials]
    calibrations[0].certified(score)
    cells = [calibration.cells for calibration in calibrations]
    for tiled in cells:
        tiled.check_columns(records.shape.n_features)
    for chain in _chains(cells):
        finest = cells[chain[0]]
        step = max(1, MAX_COUNTS // (2 * finest.size))
        for start in range(0, len(scores), step):
            some = range(len(scores))[start : start + step]
            train, test = _counts(records, finest, parts, some)
            sizes = parts.test_sizes[some]
            for i in chain:
                noise = trials[i].noise(records.shape)
                noisy = (_merged(train, finest, cells[i]) + noise).reshape(len(sizes), -1)
                density = cell_masses(noisy) / cells[i].volume
                seen = _merged(test, finest, cells[i]).reshape(len(sizes), -1)
                squared = cells[i].volume * (density * density).sum(axis=1)
                scores[some, i] = 2 * (seen * density).sum(axis=1) / sizes - squared
    return scores


def _chains(cells):
    """Group cells so that those of a group are unions of those of its first; return indices."""
    chains = []
    for i in sorted(range(len(cells)), key=lambda i: -cells[i].size):
        for chain in chains:
            if _covers(cells[chain[0]], cells[i]):
                chain.append(i)
                break
        else:
            chains.append([i])
    return chains


def _covers(fine, coarse):
    """Return whether every edge of the coarse cells is one of the fine ones', to the last bit."""
    return all(
        n % m == 0 and np.array_equal(edges[:: n // m], others)
        for n, m, edges, others in zip(fine.shape, coarse.shape, fine.edges, coarse.edges)
    )


def _counts(records, cells, parts, some):
    """Count the records of some parts; test records only within the bounds."""

    def count(block, train, test, weight=None):
        index, inside = cells.index(block), cells.contains(block)

        def counted(member):
            return np.bincount(index[member], None if weight is None else weight[member], cells.size)

        return (
            np.array([counted(in_part(train, j)) for j in some]),
            np.array([counted(in_part(test, j) & inside) for j in some]),
        )

    width = records.X.shape[1] + len(parts.train_sizes)
    counts = block_sum(
        count, records.X, parts.train, parts.test, *person_weights(records), row_elements=width
    )
    return tuple(part.reshape(-1, *cells.shape) for part in counts)


def _merged(counts, fine, coarse):
    """Add up counts of fine cells, shape (J, ...), to those of the coarse cells."""
    for axis, (n, m) in enumerate(zip(fine.shape, coarse.shape), start=1):
        counts = np.add.reduceat(counts, np.arange(0, n, n // m), axis=axis) if n > m else counts
    return counts

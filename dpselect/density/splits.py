"""Cross-validation of private histograms: records are counted once for all widths and splits."""

import numpy as np

from ..noise import as_generator
from ..records import numeric_rows
from ..rows import block_sum
from .cells import Cells, cell_masses

# counts that are held at a time
MOST_COUNTS = 1 << 23


def density_split_scores(models, X, parts):
    """Return integrated squared errors on splits; see DPHistogramDensity.split_scores."""
    scores = np.empty((len(parts.test_sizes), len(models)))
    for model in models:
        model._check_parameters()
    table = numeric_rows(models[0], X, lazily=True)
    cells = [Cells.tile(m.bounds, m.bin_width, *table.shape[::-1]) for m in models]
    for chain in _chains(cells):
        finest = cells[chain[0]]
        step = max(1, MOST_COUNTS // (2 * finest.size))
        for start in range(0, len(scores), step):
            some = slice(start, start + step)
            train, test = _counts(table, finest, parts, some)
            sizes = parts.test_sizes[some]
            for i in chain:
                noise = models[i]._draw(as_generator(models[i].random_state), cells[i].shape)
                noisy = (_merged(train, finest, cells[i]) + noise).reshape(len(sizes), -1)
                density = cell_masses(noisy) / cells[i].volume
                seen = _merged(test, finest, cells[i]).reshape(len(sizes), -1)
                squared = cells[i].volume * (density * density).sum(axis=1)
                scores[some, i] = 2 * (seen * density).sum(axis=1) / sizes - squared
    return scores


def _chains(cells):
    """Group cells so that those of each group are unions of those of its first; return places."""
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
    """Tell whether every edge of the coarse cells is one of the fine ones', to the last bit."""
    return all(
        n % m == 0 and np.array_equal(edges[:: n // m], others)
        for n, m, edges, others in zip(fine.shape, coarse.shape, fine.edges, coarse.edges)
    )


def _counts(table, cells, parts, some):
    """Count the records of some parts; those of test parts only if they lie within the bounds.

    Returns
    -------
    train, test : ndarray of shape (J, ...)
        Over the cells.
    """

    def count(block, train, test):
        index, inside = cells.index(block), cells.contains(block)
        return tuple(
            np.array([np.bincount(index[member], minlength=cells.size) for member in part.T])
            for part in (train[:, some], test[:, some] & inside[:, None])
        )

    width = table.shape[1] + len(parts.train_sizes)
    counts = block_sum(count, table, parts.train, parts.test, row_elements=width)
    return tuple(part.reshape(-1, *cells.shape) for part in counts)


def _merged(counts, fine, coarse):
    """Add up counts of fine cells, shape (J, ...), to those of the coarse cells."""
    for axis, (n, m) in enumerate(zip(fine.shape, coarse.shape), start=1):
        counts = np.add.reduceat(counts, np.arange(0, n, n // m), axis=axis) if n > m else counts
    return counts

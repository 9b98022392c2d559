"""Figures of a classifier at a rate: its positive predictions are that share of the highest scores."""

import numpy as np

from .estimate import Metric
from .intervals import Z, figure

# figures at a rate
NAMES = ("recall", "precision", "lift")


def at_rate(name, rate):
    """Return the Metric of a figure at a rate; read from counts of (bin, label), the label last."""

    def read(counts, _above):
        value, low, high, margin = _share(counts, rate, name == "precision")
        scale = 1 / rate if name == "lift" else 1.0
        return scale * value, scale * low, scale * high, margin

    return Metric(read)


def _share(counts, rate, of_predictions):
    """Return (value, low, high, margin) of the positive records that are predicted as such.

    As a share of all positive records, or of all positive predictions. The threshold lies in a bin.
    Which of its records are above it is not known: the value is that of an even mix, and the interval
    reaches from the lower end of the interval for the worst order to the upper end for the best one.
    """
    negative, positive = counts.h[0::2], counts.h[1::2]
    size, labels = counts.h.sum(), np.tile([0.0, 1.0], len(negative))
    if not (counts.stands(labels) and counts.stands(1 - labels)):
        return (np.nan,) * 4
    chosen = rate * size
    from_top = np.cumsum((negative + positive)[::-1])[::-1]
    # the highest bin down to which there are enough records
    k = int(np.flatnonzero(np.append(from_top[1:], 0.0) < chosen)[0])
    bins = np.arange(len(negative))
    above, here = 1.0 * (bins > k), 1.0 * (bins == k)
    n, p = max(negative[k], 0.0), max(positive[k], 0.0)
    taken = min(max(chosen - (negative + positive) @ above, 0.0), n + p)
    local, fraction = (p / (n + p), taken / (n + p)) if n + p else (0.0, 0.0)
    ends = [
        # weights of positive records and of negative ones, and how far the figure follows the rate
        (above + fraction * here, above + fraction * here, local),
        _worst(above, here, n, taken, local),
        _best(above, here, n, p, taken, local),
    ]
    found = [_figure(counts, rate, of_predictions, *end) for end in ends]
    value, low, high = found[0][0], found[1][1], found[2][2]
    margins = found[0][0] - found[1][0] + found[1][3], found[2][0] - found[0][0] + found[2][3]
    return value, min(low, value), max(high, value), max(margins)


def _worst(above, here, n, taken, local):
    """Return the weights where negative records of the bin come first."""
    if taken <= n:
        return above, above + here * (taken / n if n else 0.0), local
    # positive records are what is taken beyond the negative ones, which follows the rate one to one
    return above, above + here, 1.0


def _best(above, here, n, p, taken, local):
    """Return the weights where positive records of the bin come first."""
    if taken >= p:
        return above + here, above + here * ((taken - p) / n if n else 0.0), local
    return above, above, 1.0


def _figure(counts, rate, of_predictions, of_positive, of_negative, follows):
    h = counts.h
    size, labels = h.sum(), np.tile([0.0, 1.0], len(of_positive))
    hits = labels * np.repeat(of_positive, 2)
    selected = hits + (1 - labels) * np.repeat(of_negative, 2)
    share = np.full(len(h), rate) if of_predictions else labels
    # records that a bin with an uneven order lacks, or has too many, are told by the rate
    moved = hits + follows * (rate - selected)
    total = h @ share
    found = (h @ moved) / total
    inside = np.clip(found, 0.0, 1.0)
    n_positive = h @ labels

    @np.vectorize
    def excess(s):
        hit = np.clip(s * total, 0.0, min(n_positive, rate * size))
        cells = np.array([hit, n_positive - hit, rate * size - hit, 0.0])
        cells[3] = max(size - cells[:3].sum(), 0.0)
        is_hit, is_selected, is_positive = np.array([[1, 0, 0, 0], [1, 0, 1, 0], [1, 1, 0, 0]])
        g = is_hit + follows * (rate - is_selected) - s * (rate if of_predictions else is_positive)
        return (h @ (moved - s * share)) ** 2 - Z**2 * (cells @ g**2 + counts.noise(moved - s * share))

    return tuple(map(float, figure(True, found, inside, excess, 0.0, 1.0)))

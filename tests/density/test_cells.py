"""The cell of a record is computed, and is the one that a search among the edges finds."""

import warnings

import numpy as np
import pytest

from dpselect.density import cells
from dpselect.density.cells import Cells

TILINGS = [
    ((0.0, 1.0), 0.1),
    ((0.0, 1.0), 1.0),
    ((-4.0, 4.0), 0.08),
    ((18.0, 90.0), 1.0),
    ((-1e-3, 2e5), (2e5 + 1e-3) / 99_991),
    ((1e6, 1e6 + 3), 1e-3),
    ((1e15, 1e15 + 300), 3.0),  # of few floating-point numbers each, so they are searched
    ((1e16, 1e16 + 600), 6.0),
    ((-8e307, 8e307), 1e306),
    ((0.0, 7e-300), 1e-301),
    ((0.0, 2.0**-1015), 2.0**-1020),
]


def searched(edges, x):
    return np.searchsorted(edges[1:-1], x, side="right")


def numbers(edges):
    """Numbers at edges, next to them, between them, and far outside."""
    rng = np.random.default_rng(0)
    at = rng.choice(edges, 3000) if len(edges) > 3000 else edges
    low, high = edges[[0, -1]]
    between = low + rng.random(5000) * (high - low)
    far = [-1.7e308, 1.7e308, 0.0, -0.0, 2 * low - 1.0, 2 * high + 1.0]
    x = np.concatenate([at, between, far])
    return np.concatenate([x, np.nextafter(x, -np.inf), np.nextafter(x, np.inf)])


@pytest.mark.parametrize("bounds, width", TILINGS)
def test_cells_are_those_that_a_search_finds(bounds, width):
    found = Cells.tile(bounds, width, 1)
    (edges,) = found.edges
    x = numbers(edges)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an overflow would warn of a value far outside
        np.testing.assert_array_equal(found.index(x[:, None]), searched(edges, x))


def test_edges_decide(monkeypatch):
    (edges,) = Cells.tile((0.0, 1.0), 0.1, 1).edges
    monkeypatch.setattr(cells, "NEAR", 0.0)  # a twin that believes the quotient
    assert (Cells((edges,)).index(numbers(edges)[:, None]) != searched(edges, numbers(edges))).any()


def test_cells_of_several_columns():
    tiled = Cells.tile([(0, 1), (-1, 3), (1e15, 1e15 + 300)], [0.25, 0.5, 3.0], 3)
    X = np.stack([np.random.default_rng(0).permutation(numbers(e)[-9000:]) for e in tiled.edges], axis=1)
    expected = np.ravel_multi_index([searched(e, x) for e, x in zip(tiled.edges, X.T)], tiled.shape)
    for rows in (X, np.asfortranarray(X)):
        np.testing.assert_array_equal(tiled.index(rows), expected)

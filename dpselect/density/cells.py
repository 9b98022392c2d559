"""Equal cells that tile a box with public bounds."""

import math
from dataclasses import dataclass

import numpy as np

from ..records.persons import cell_counts
from ..utils.validation import check_number, unquoted

MAX_CELLS = 10**7
# smallest width of computed bins, relative to the largest edge and absolute, and where edges decide
NARROW, TINY, NEAR = 2.0**-40, 2.0**-1000, 2.0**-8


@dataclass(frozen=True)
class Cells:
    """Equal cells that tile a box.

    Parameters
    ----------
    edges : tuple of D ndarrays
        Equally spaced edges along each column.
    """

    edges: tuple

    @classmethod
    def tile(cls, bounds, bin_width, n_features):
        """Return the cells for the listed columns, or for `n_features`, or refuse them."""
        limits, n_bins = tiling(bounds, bin_width)
        if columns_listed(bounds, bin_width) is None:
            limits, n_bins = limits * n_features, n_bins * n_features
        n_cells = math.prod(n_bins)
        if n_cells > MAX_CELLS:
            # larger integers raise OverflowError when formatted as float
            shown = f"{n_cells:.3g}" if n_cells < 10**300 else "more than 1e300"
            raise ValueError(
                f"bin_width={bin_width!r} cuts {len(n_bins)} columns into {shown} cells, and each of "
                "them gets noise; write a larger width or use fewer columns, for at most "
                f"{MAX_CELLS} cells."
            )
        cells = cls(tuple(np.linspace(*pair, k + 1) for pair, k in zip(limits, n_bins)))
        if not all((np.diff(edges) > 0).all() for edges in cells.edges):
            raise ValueError(
                f"bin_width={bin_width!r} is below the spacing of floating-point numbers at the "
                "bounds; write a larger width."
            )
        if not (cells.volume > 0 and 0 < 1 / cells.volume < math.inf):
            raise ValueError(
                "bounds and bin_width give cells whose volume is no floating-point number; bring "
                "the columns to other units, for instance with BoundedScaler."
            )
        return cells

    @property
    def shape(self):
        """tuple of int : Number of cells along each column."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @property
    def size(self):
        """int : Number of cells."""
        return math.prod(self.shape)

    @property
    def volume(self):
        """float : Volume of one cell, in the units of the data."""
        return math.prod((float(e[-1]) - float(e[0])) / (len(e) - 1) for e in self.edges)

    def index(self, X):
        """Return the flat index of the cell of each row, or of the nearest one."""
        bins = [_bins(edges, column) for edges, column in zip(self.edges, X.T)]
        return bins[0] if len(bins) == 1 else np.ravel_multi_index(bins, self.shape)

    def check_columns(self, n_features):
        """Refuse records with other columns than the listed ones."""
        if len(self.edges) != n_features:
            raise ValueError(
                f"bounds and bin_width list {len(self.edges)} columns, but X has {n_features}; list "
                "every column, or write one pair of bounds and one width for all."
            )

    def counts(self, records, step=1.0):
        """Return the number of records in each cell, shape (n_cells,), for noise on a grid of `step`.

        A record with a weight, which is in [0, 1], counts for that.
        """
        self.check_columns(records.X.shape[1])
        X, persons = records.X, records.persons
        return cell_counts(self.index, self.size, X, persons, step, weight=records.weight)

    def density(self, masses):
        """Return the released attributes for probabilities of the cells, as a dict."""
        density = (masses / self.volume).reshape(self.shape)
        return {"density_": density, "bin_edges_": list(self.edges)}

    def contains(self, X):
        """Return a mask of the rows inside the box, edges included."""
        low, high = np.array([(edges[0], edges[-1]) for edges in self.edges]).T
        return ((low <= X) & (X <= high)).all(axis=1)


def _bins(edges, x):
    """Return the bin of each number between equally spaced edges, or the nearest one.

    They are computed, as (x - low) / width, and decided by an edge where that is NEAR an integer.
    Rounding cannot lead further: of at most 10^7 bins it adds up to less than 10^7 * 2^-50 < 2^-26 in
    the quotient, and, with M the largest absolute edge, 2^-50 M / width <= 2^-10 in the place of an
    edge, where a width is 2^-40 M or more. Narrower bins are searched.
    """
    low, high, inner = float(edges[0]), float(edges[-1]), edges[1:-1]
    n = len(edges) - 1
    if (high - low) / n < max(NARROW * max(abs(low), abs(high)), TINY):
        # only inner edges, so that values outside fall in a border cell
        return np.searchsorted(inner, x, side="right")
    # clipped first, as an overflow would warn of a value far outside
    places = np.clip(x, low, high)
    places -= low
    places *= n / (high - low)
    found, nearest = places.astype(np.intp), np.rint(places)
    places -= nearest
    near = np.abs(places, out=places) < NEAR
    if near.any():
        edge = nearest.astype(np.intp)
        edge -= x < edges[edge]
        np.copyto(found, edge, where=near)
    return np.clip(found, 0, n - 1, out=found)


def columns_listed(bounds, bin_width):
    """Return the number of columns in checked `bounds` or `bin_width`, or None."""
    if np.ndim(bounds) == 1 and np.ndim(bin_width) == 0:
        return None
    return len(tiling(bounds, bin_width)[1])


def tiling(bounds, bin_width):
    """Check bounds and widths, and return limits and numbers of cells: of each column, or of one."""
    try:
        limits = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        limits = np.empty(0)
    limits = limits[None] if limits.shape == (2,) else limits
    if limits.shape[1:] != (2,) or not (
        np.isfinite(limits).all() and (limits[:, 0] < limits[:, 1]).all()
    ):
        raise ValueError(
            f"bounds={bounds!r} must be one pair low < high, or one pair a column in the order of the "
            "columns, because cells outside public bounds would tell where the records are; write for "
            "instance bounds=(0, 1) or bounds=[(0, 120), (30, 300)]."
        )
    limits = [tuple(pair) for pair in limits.tolist()]
    single = unquoted(np.ndim, bin_width, what="bin_width") == 0
    widths = [
        check_number(
            "bin_width",
            width,
            why="cells have positive volume",
            instead="write a number greater than 0 that divides the range of the bounds",
        )
        for width in ([bin_width] if single else bin_width)
    ]
    n_columns = max(len(limits), len(widths))
    if not {len(limits), len(widths)} <= {1, n_columns}:
        raise ValueError(
            f"bounds lists {len(limits)} columns and bin_width {len(widths)}; list the same ones "
            "in both, or write one value for all."
        )
    limits = limits * (n_columns // len(limits))
    widths = widths * (n_columns // len(widths))
    return limits, [number_of_bins(*pair, width) for pair, width in zip(limits, widths)]


def number_of_bins(low, high, width):
    """Return the number of bins of `width` that tile [low, high], or refuse another width."""
    ratio = (high - low) / width
    if not ratio < 2**53:
        raise ValueError(
            f"bin_width={width!r} is too small for bounds from {low:g} to {high:g}; write a larger "
            "width."
        )
    n_bins = round(ratio)
    # widths such as 0.1 and 0.3333333 are rounded, so round the number of cells and cut them exactly
    if n_bins < 1 or abs(ratio - n_bins) > 1e-6 * n_bins:
        near = sorted({max(1, math.ceil(ratio)), max(1, math.floor(ratio))}, reverse=True)
        raise ValueError(
            f"bin_width={width!r} does not divide the range from {low:g} to {high:g}, and the "
            "proof needs equal cells that tile the bounds; write "
            f"{' or '.join(repr((high - low) / k) for k in near)}."
        )
    return n_bins


def cell_masses(noisy_counts):
    """Return noisy counts, clipped at 0, divided by their sum; uniform if nothing is left."""
    clipped = np.maximum(noisy_counts, 0.0)
    total = clipped.sum(axis=-1, keepdims=True)
    empty = total == 0
    return np.where(empty, 1.0 / clipped.shape[-1], clipped / np.where(empty, 1.0, total))

"""Sums of outer products of clipped records, and their release on a grid.

For a grid, entries of the clipped records are truncated to multiples of 2^-b, so that products
and sums are integers which no step rounds: the sums depend neither on the order of the records nor
on how they are cut into blocks. Noise is a multiple of a power of two that divides the unit of the
sums. The page "Noise on a grid" of the documentation has statement and proof.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...records.persons import person_weights
from ...rows import block_sum, in_part, rows_in_block
from .decomposition import Decomposition
from .ridge_noise import released_entries, symmetric

# number of columns at which a block has as many rows as columns
WIDE = 512


@dataclass(frozen=True)
class OuterSums:
    """Sums of z z' over n clipped records z = (x / R, 1, y / Y).

    They have no noise, so they must not leave a fit without it. The square of the target is neither
    released nor needed, and is 0 here.

    Attributes
    ----------
    places : ndarray of shape (q, q)
        The sums as doubles; or as integers of 64 bits, in units of 2^(-2 bits). Only those on the
        diagonal and above it count: others may be rounded in another way.
    bits : int or None
        b, if entries of the records are multiples of 2^-b.
    problem : RidgeProblem
    n_samples : int
        n.
    """

    places: np.ndarray
    bits: int | None
    problem: Any
    n_samples: int

    @property
    def units(self):
        """ndarray of shape (q, q) : The largest contribution of one record to each sum, R^2, R Y, ..."""
        problem = self.problem
        p = self._n_features
        column = np.append(
            [problem.row_unit(p)] * p + [1.0] * problem.fit_intercept, problem.target_bound
        )
        return np.outer(column, column)

    @property
    def values(self):
        """ndarray of shape (q, q) : The sums as doubles, in `units`."""
        upper = np.triu(self.places if self.bits is None else self.places * self._unit)
        both = upper + upper.T
        both.flat[:: len(both) + 1] = upper.diagonal()
        return both

    @cached_property
    def means(self):
        """tuple of ndarray : The exact Gram matrix and moments, divided by n."""
        values = self.values * self.units
        return values[:-1, :-1] / self.n_samples, values[:-1, -1] / self.n_samples

    @cached_property
    def decomposed(self):
        """Decomposition : Of the exact means."""
        return Decomposition.of(*self.means, 0.0)

    def noisy(self, put_noise_on):
        """Return the matrix of sums, in `units`, with noise on those that are not public.

        ``put_noise_on(values, unit=unit)`` is as :func:`~dpselect.noise.release`. Both triangles have
        one value and one noise: two that were rounded apart would reveal by how much. The square of
        the constant is n.
        """
        shape = self._n_features, len(self.places)
        unit = None if self.bits is None else self._unit
        noisy = symmetric(put_noise_on(self.places[released_entries(*shape)], unit=unit), *shape)
        if self.problem.fit_intercept:
            noisy[-2, -2] = self.places[-2, -2] * (unit or 1.0)
        return noisy

    @property
    def _n_features(self):
        return len(self.places) - 1 - self.problem.fit_intercept

    @property
    def _unit(self):
        return 2.0 ** (-2 * self.bits)


def outer_sums(records, bits, problem):
    """Return the OuterSums of all records in one pass, with at most :func:`entry_bits`."""
    clipped = _Records(records.X.shape[1], bits, problem)
    (sums,) = block_sum(
        lambda *rows: (clipped.products(clipped(*rows)),),
        records.X,
        records.y,
        *person_weights(records),
        row_elements=row_elements(clipped.q),
    )
    return clipped.summed(sums, records.shape.n_samples)


def split_sums(records, parts, chosen, bits, problem):
    """Return the sums for the training parts of chosen splits, in one pass over the rows.

    A record that most splits train on is multiplied once for each split that leaves it out, and
    taken away from the sums over all records; with K folds that is once in all.
    """
    clipped = _Records(records.X.shape[1], bits, problem)
    n = records.shape.n_samples
    majority = 2 * parts.train_sizes[chosen] > n
    one_by_one = parts.left_out_once and len(chosen) == len(parts.train_sizes) and majority.all()
    # float64 is exact for sums of entries over a block, but maybe not over all records
    in_block = min(n, rows_in_block(row_elements(clipped.q)))
    taken_away = majority & (one_by_one or bits is None or in_block <= 2.0 ** (53 - 2 * bits))

    def products(rows, targets, train, *weight):
        z, sums = clipped(rows, targets, *weight), []
        for j, away in zip(chosen, taken_away):
            piece = np.flatnonzero(in_part(train, j) != away)
            sums.append(clipped.products(z[piece]))
        total = sum(sums) if one_by_one or not taken_away.any() else clipped.products(z)
        return (np.array(sums), total)

    # int64 suffices: there are fewer than twice as many records as in such a part
    pieces, total = block_sum(
        products,
        records.X,
        records.y,
        parts.train,
        *person_weights(records),
        row_elements=row_elements(clipped.q),
    )
    return [
        clipped.summed(total - piece if away else piece, int(size))
        for piece, away, size in zip(pieces, taken_away, parts.train_sizes[chosen])
    ]


class _Records:
    """Blocks of clipped records z = (x / R, 1, y / Y), with truncated entries if `bits` is given."""

    def __init__(self, n_features, bits, problem):
        self.n_features, self.q = n_features, problem.dimension(n_features) + 1
        self.bits, self.problem, self.scaled_targets = bits, problem, problem.scaled_targets
        self.bounds, self.unit = problem.row_bounds(n_features), problem.row_unit(n_features)

    def __call__(self, rows, targets, weight=None):
        # divide rows and targets by their bounds, so that nothing overflows in any units
        z = np.empty((len(rows), self.q))
        x = z[:, : self.n_features]
        np.multiply(rows, clip_factor(rows, self.bounds, self.unit, scratch=x), out=x)
        z[:, self.n_features : -1] = 1.0
        z[:, -1] = self.scaled_targets(targets)
        if weight is not None:  # weigh a person's rows before truncation, which only shrinks entries
            z *= np.sqrt(weight)[:, None]
        return z if self.bits is None else truncated(z, self.bits, out=z)

    def products(self, z):
        """Return the sum of the outer products of a block."""
        return z.T @ z if self.bits is None else (z.T @ z).astype(np.int64)

    def summed(self, sums, n):
        """Return the OuterSums of n records, or persons, for sums of products."""
        sums[-1, -1] = 0
        if self.problem.fit_intercept:  # this sum is public, although a person's rows were truncated
            sums[-2, -2] = n if self.bits is None else n << 2 * self.bits
        return OuterSums(sums, self.bits, self.problem, n)


def row_elements(n_columns):
    """Return the number of elements per record when blocks are cut: wide rows make longer blocks.

    Else as much time went into adding the sums up as into the products.
    """
    return n_columns if n_columns <= WIDE else WIDE**2 // min(n_columns, 4 * WIDE)


def entry_bits(n_samples, n_columns, step):
    """Return the number of bits of a record's entries, from public numbers.

    The most for which sums over a block fit into the 53 bits of a double, those over all records
    into 62 bits, and the step of the noise, at most 1, divides the unit of the sums.
    """
    in_block = min(n_samples, rows_in_block(row_elements(n_columns)))
    limits = (
        53 - math.ceil(math.log2(in_block)),
        62 - math.ceil(math.log2(n_samples)),
        -int(math.log2(step)),
    )
    return min(limits) // 2


def truncated(values, bits, out=None):
    """Return 2^bits times the values, truncated toward 0, so that no entry grows."""
    return np.trunc(np.multiply(values, 2.0**bits, out=out), out=out)


def clipped_rows(rows, bounds, unit):
    """Return the rows scaled to norms of at most `bounds`, the long ones before any product."""
    return rows * (unit * clip_factor(rows, bounds, unit))


def clip_factor(rows, bounds, unit, scratch=None):
    """Return factors that scale rows to norms of at most `bounds`, in units of `unit`, shape (b, 1).

    `scratch` is an array of the shape of `rows` that may be overwritten: one more temporary
    array for each block would double the time of the pass.
    """
    factor = np.full(len(rows), 1 / unit)
    for norm, bound in bounds.items():
        # a warning about short rows, which need no factor, would disclose them
        with np.errstate(divide="ignore", over="ignore"):
            factor = np.minimum(factor, bound / unit * _inverse_norms(rows, norm, scratch))
    return factor[:, None]


def _inverse_norms(rows, norm, scratch):
    # the tiny shrinkage keeps the norm within the bound despite rounding
    shrinkage = 1 - (rows.shape[1] + 8) * 2.0**-52
    norms = _norms(rows, norm, scratch)
    inverse, huge = shrinkage / norms, np.isinf(norms)
    if huge.any():  # squares or sums overflow
        largest = np.abs(rows[huge]).max(axis=1)
        if np.isinf(largest).any():  # duplicate entries of a sparse row add up, and may overflow
            raise ValueError(
                "X contains infinity: entries of a sparse matrix that are stored more than once add up "
                "to it; call sum_duplicates() and bound the columns first."
            )
        inverse[huge] = shrinkage / _norms(rows[huge] / largest[:, None], norm, None) / largest
        # the factor may be subnormal, with fewer digits than the shrinkage covers
        inverse[huge] = np.nextafter(inverse[huge], 0.0)
    return inverse


def _norms(rows, norm, scratch):
    if norm == "l1":
        # not a matrix product, whose rounding might depend on a row's position in the block
        return np.einsum("ij->i", np.abs(rows, out=scratch))
    return np.sqrt(np.einsum("ij,ij->i", rows, rows))

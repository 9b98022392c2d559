"""Sums of outer products of clipped records, and their release on a lattice.

For a lattice, entries of the clipped records are truncated to multiples of 2^-b, so that products
and sums are integers which no step rounds: the sums depend neither on the order of the records nor
on how they are cut into blocks. Noise is a multiple of a power of two that divides the unit of the
sums. The page "Noise on a lattice" of the documentation has statement and proof.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...rows import block_sum, rows_in_block
from .noise import released_entries, symmetric


@dataclass(frozen=True)
class OuterSums:
    """Sums of z z' over the clipped records z = (x / R, 1, y / Y).

    They have no noise, so they must not leave a fit without it. The square of the target is neither
    released nor needed, and is 0 here.

    Attributes
    ----------
    places : ndarray of shape (q, q)
        The sums as doubles; or as integers of 64 bits, in units of 2^(-2 bits).
    bits : int or None
        b, if entries of the records are multiples of 2^-b.
    """

    places: np.ndarray
    bits: int

    @property
    def values(self):
        """ndarray of shape (q, q) : The sums as doubles."""
        return self.places if self.bits is None else self.places * self._unit

    def noisy(self, n_features, put_noise_on):
        """Return the matrix of sums with noise on those that are not public.

        Parameters
        ----------
        n_features : int
        put_noise_on : callable
            ``put_noise_on(values, unit=unit)`` returns the sums of :func:`released_entries` with
            noise, as :func:`~dpselect.noise.release` does.

        Returns
        -------
        ndarray of shape (q, q)
            Both triangles have one noise. The square of the constant is the number of records.
        """
        entries = released_entries(n_features, len(self.places))
        unit = None if self.bits is None else self._unit
        noisy = symmetric(put_noise_on(self.places[entries], unit=unit), n_features, len(self.places))
        if len(self.places) == n_features + 2:
            noisy[-2, -2] = self.places[-2, -2] * (unit or 1.0)
        return noisy

    @property
    def _unit(self):
        return 2.0 ** (-2 * self.bits)


def outer_sums(X, y, bits, *, norm, data_norm, target_bound, fit_intercept):
    """Return the sums of the clipped records' outer products, in one pass.

    Parameters
    ----------
    X : ndarray, sparse matrix or lazy rows of shape (n, p)
    y : ndarray of shape (n,)
    bits : int or None
        As for :class:`OuterSums`; not more than :func:`entry_bits`.
    norm, data_norm, target_bound, fit_intercept
        As for :class:`~dpselect.DPRidge`.

    Returns
    -------
    OuterSums
    """
    records = _Records(X.shape[1], bits, norm, data_norm, target_bound, fit_intercept)
    (sums,) = block_sum(
        lambda rows, targets: (records.products(records(rows, targets)),),
        X, y, row_elements=records.q,
    )
    return OuterSums(_mirrored(sums), bits)


def split_sums(X, y, parts, chosen, bits, *, norm, data_norm, target_bound, fit_intercept):
    """Return the sums for the training parts of chosen splits, in one pass over the rows.

    A record that most splits train on is multiplied once for each split that leaves it out, and
    taken away from the sums over all records; with K folds that is once in all.

    Parameters
    ----------
    X, y, bits, norm, data_norm, target_bound, fit_intercept
        As for :func:`outer_sums`; not more bits than for the least of the chosen parts.
    parts : Parts
    chosen : list of int
        Numbers of the splits.

    Returns
    -------
    list of OuterSums
        Sums of integers are exact, all of them. Others are rounded as sums over all records are.
    """
    records = _Records(X.shape[1], bits, norm, data_norm, target_bound, fit_intercept)
    n = X.shape[0]
    most = 2 * parts.train_sizes[chosen] > n
    one_by_one = parts.left_out_once and len(chosen) == len(parts.train_sizes) and most.all()
    # doubles that hold the sums of each part over a block need not hold those of all its records
    in_block = min(n, rows_in_block(records.q))
    taken_away = most & (one_by_one or bits is None or in_block <= 2.0 ** (53 - 2 * bits))

    def products(rows, targets, train):
        z, pieces = records(rows, targets), train[:, chosen] ^ taken_away
        sums = [records.products(z[np.flatnonzero(piece)]) for piece in pieces.T]
        whole = sum(sums) if one_by_one or not taken_away.any() else records.products(z)
        return (np.array(sums), whole)

    # integers stay below 2^63: there are less than twice as many records as in such a part
    pieces, whole = block_sum(products, X, y, parts.train, row_elements=records.q)
    return [
        OuterSums(_mirrored(whole - piece if away else piece), bits)
        for piece, away in zip(pieces, taken_away)
    ]


class _Records:
    """Blocks of clipped records z = (x / R, 1, y / Y), with entries of so many bits, if any."""

    def __init__(self, n_features, bits, norm, data_norm, target_bound, fit_intercept):
        self.n_features, self.q = n_features, n_features + fit_intercept + 1
        self.bits, self.norm = bits, norm
        self.data_norm, self.target_bound = data_norm, target_bound

    def __call__(self, rows, targets):
        # rows divided by R and targets by Y: nothing overflows, whatever the units
        z = np.empty((len(rows), self.q))
        x = z[:, : self.n_features]
        np.multiply(rows, clip_factor(rows, self.norm, self.data_norm, scratch=x), out=x)
        z[:, self.n_features : -1] = 1.0
        z[:, -1] = scaled_targets(targets, self.target_bound)
        return z if self.bits is None else truncated(z, self.bits, out=z)

    def products(self, z):
        """Return the sum of the outer products of a block."""
        return z.T @ z if self.bits is None else (z.T @ z).astype(np.int64)


def _mirrored(sums):
    # one value for both triangles: they get the same noise, so two that were rounded apart would
    # reveal by how much
    sums[-1, -1] = 0
    return np.triu(sums) + np.triu(sums, 1).T


def exact_sums(X, y, **bounds):
    """Return the sums of z z' over the clipped records z = (x, 1, y), as doubles."""
    return outer_sums(X, y, None, **bounds).values * units(
        X.shape[1], bounds["data_norm"], bounds["target_bound"], bounds["fit_intercept"]
    )


def entry_bits(n_samples, n_columns, step):
    """Return how many bits an entry of a record may have, from public numbers.

    Parameters
    ----------
    n_samples : int
    n_columns : int
        q, columns of the records with constant and target.
    step : float
        Of the noise, a power of two; at most 1.

    Returns
    -------
    int
        The largest b for which sums over a block fit into the 53 bits of a double, those over all
        records into 62 bits, and `step` divides 2^(-2b).
    """
    in_block = min(n_samples, rows_in_block(n_columns))
    rooms = (
        53 - math.ceil(math.log2(in_block)), 62 - math.ceil(math.log2(n_samples)),
        -int(math.log2(step)),
    )
    return min(rooms) // 2


def scaled_targets(targets, target_bound):
    """Return the clipped targets in units of their bound."""
    return np.clip(targets, -target_bound, target_bound) / target_bound


def truncated(values, bits, out=None):
    """Return 2^bits times the values, truncated toward 0: no entry of a record becomes larger."""
    return np.trunc(np.multiply(values, 2.0**bits, out=out), out=out)


def clip_factor(rows, norm, bound, scratch=None):
    """Return what brings each row to a norm of at most 1 in units of `bound`, shape (b, 1).

    `scratch` is an array of the shape of `rows` that may be overwritten: one more temporary
    array for each block would double the time of the pass.
    """
    with np.errstate(over="ignore"):
        if norm == "l1":
            # no matrix product, whose rounding might depend on a row's place in the block
            norms = np.einsum("ij->i", np.abs(rows, out=scratch))
        else:
            norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not np.isfinite(norms).all():
        raise ValueError(
            "X contains infinity or a value too large to be squared in float64; "
            "bound the columns first, for instance with BoundedScaler."
        )
    # the tiny shrinkage keeps the rounded norm of a clipped row from exceeding the bound
    shrinkage = 1 - (rows.shape[1] + 8) * 2.0**-52
    # short rows are not clipped, and no warning may tell of them
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(1 / bound, shrinkage / norms)[:, None]


def units(n_features, data_norm, target_bound, fit_intercept):
    """Return the largest size that one record gives each sum, R^2, R, R Y and so on."""
    column = np.array([data_norm] * n_features + [1.0] * fit_intercept + [target_bound])
    return np.outer(column, column)

"""Terms: the maps from columns to features of an additive model.

z in [0, 1] is a number between its public bounds. All numbers here are public: norms are maxima, or
means over a z that is uniform, and read no record.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import helmert

from ..utils.type_aliases import Array, FloatArray
from .cosines import cosine, wave, write_cosines

# mean of |cos| over half-periods
MEAN_COSINE = 2 / math.pi
# of categories with more levels a table of all codes costs more than it saves
MOST_IN_A_TABLE = 64
# of a periodic number, where others have cosines; found by experiment
FEWEST_WAVES = 4


class Lengths(NamedTuple):
    """Norms of the features of a term: the largest one, and the one for uniform numbers."""

    max_l1: float
    max_l2_squared: float
    typical_l1: float
    typical_l2_squared: float


@dataclass(frozen=True)
class Term(ABC):
    """The map from one column, or several, to features.

    Attributes
    ----------
    parts : tuple of NumberColumn or CategoryColumn
        The columns.
    names : tuple of str
        Of the features.
    start : int
        Place of the first feature.
    """

    parts: tuple[Any, ...]
    names: tuple[str, ...] = ()
    start: int = 0

    @property
    def columns(self) -> tuple[Any, ...]:
        """tuple : Names of the columns."""
        return tuple(part.name for part in self.parts)

    @property
    def outputs(self) -> slice:
        """slice : Columns of the features in the rows of the encoder."""
        return slice(self.start, self.start + len(self.names))

    def values(self, n: int = 101) -> list[Array]:
        """Return values of the columns at which the term can be drawn.

        Parameters
        ----------
        n : int, default=101
            How many numbers between bounds.

        Returns
        -------
        list of ndarray
            For each column: numbers (and nan) or categories (and None); of a pair, all combinations.

        Raises
        ------
        ValueError
            If the term mixes more than two columns.
        """
        if len(self.parts) > 2:
            raise ValueError(
                f"The term mixes {len(self.parts)} columns, so it has no picture; draw others."
            )
        mesh = np.meshgrid(*(part.values(n) for part in self.parts), indexing="ij")
        return [axis.ravel() for axis in mesh]

    def at(self, *values: Any) -> FloatArray:
        """Return the features at values of the columns, such as those of :meth:`values`.

        Parameters
        ----------
        *values : array-like of shape (n,)
            For each of the columns.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        cells = [np.array([*given, None], dtype=object)[:-1] for given in values]
        return self.encode(*[part.read(given) for part, given in zip(self.parts, cells)])

    @abstractmethod
    def encode(self, *read: Array) -> FloatArray:
        """Return the features of columns that were read."""

    def write(self, out: FloatArray, *read: Array) -> None:
        """Write the features of columns that were read into `out`, of shape (n_features, b)."""
        out[:] = self.encode(*read).T

    @property
    def n_entries(self) -> int:
        """int : Upper bound on the features of a record that are not 0."""
        return len(self.names)

    def entries(self, *read: Array) -> tuple[FloatArray, Array]:
        """Return `n_entries` features of each record, all others being 0, and their places.

        Of shape (n_entries, b), and a shape that can be broadcast to it. Places of a record ascend.
        """
        return self.encode(*read).T, np.arange(len(self.names))[:, np.newaxis]

    @property
    @abstractmethod
    def lengths(self) -> Lengths:
        """Lengths : Norms of the features, in l1 and l2."""


@dataclass(frozen=True)
class NumberTerm(Term):
    """2 z - 1, or k^(-1/2) cos(pi k z) for k = 1..K; 0 for a gap without a fill; a flag for gaps.

    Of a periodic number there are i^(-1/2) cos(2 pi h z) for i = 2 h - 1 and i^(-1/2) sin(2 pi h z) for
    i = 2 h: as many of one as of the other, in place of 2 z - 1 one, and of cosines two or more.
    """

    expansion: str | int = "linear"

    @property
    def n_curves(self) -> int:
        """int : Number of features, without the flag."""
        (column,) = self.parts
        if column.periodic:
            return n_waves(self.expansion)
        return 1 if isinstance(self.expansion, str) else self.expansion

    @property
    def is_line(self) -> bool:
        """bool : Whether the only feature is 2 z - 1."""
        return self.expansion == "linear" and not self.parts[0].periodic

    @property
    def factor(self):
        """CosineTerm : What the column is in a pair."""
        (column,) = self.parts
        ends = ("_cos1", "_sin1") if column.periodic else ("",)
        return CosineTerm(self.parts, tuple(f"{column.name}{end}" for end in ends))

    def encode(self, z):
        terms = NumberTerms([self])
        features = np.empty((terms.width, len(z)))
        terms.write(z[np.newaxis], features)
        return features.T

    @property
    def lengths(self):
        (column,) = self.parts
        lengths = (
            Lengths(1.0, 1.0, 1 / 2, 1 / 3)
            if self.is_line
            else _lengths_of_waves(self.n_curves, column.periodic)
        )
        if not column.missing:
            return lengths
        (gap,) = self.encode(np.array([np.nan]))
        gaps = float(np.abs(gap).sum()), float(gap @ gap)
        return Lengths(*map(max, lengths[:2], gaps), *lengths[2:])


@dataclass(frozen=True)
class CycleTerm(Term):
    """Waves of what comes round in a column of dates, as of a periodic number; 0 for a gap.

    Attributes
    ----------
    parts : tuple of NumberColumn
        The days since the beginning of the cycle, between 0 and its length, as for a picture.
    source : NumberColumn
        The column of dates. A date beyond its bounds counts as the nearer one.
    phase : float
        Days from a beginning to the first date.
    """

    source: Any = None
    phase: float = 0.0

    @property
    def columns(self):
        return (self.source.name,)

    @property
    def turns_of_z(self) -> tuple[float, float]:
        """(float, float) : How many cycles lie before the first date, and between the bounds."""
        (shown,) = self.parts
        return self.phase / shown.high, (self.source.high - self.source.low) / shown.high

    def encode(self, z):
        before, cycles = self.turns_of_z
        turned = _filled(self.source, z, gap=0.0) * cycles + before
        features = self._waves(turned)
        if self.source.fill is None:
            features[np.isnan(z)] = 0.0
        return features

    def at(self, *values):
        (days,) = values
        return self._waves(np.asarray(days, dtype=np.float64) / self.parts[0].high)

    def _waves(self, turned):
        features = np.empty((1, len(self.names), len(turned)))
        write_cosines((turned - np.floor(turned))[np.newaxis], features, periodic=True)
        return features[0].T

    @property
    def lengths(self):
        return _lengths_of_waves(len(self.names), True)


def n_waves(expansion):
    """Return the number of features of what is periodic."""
    return 2 if isinstance(expansion, str) else max(FEWEST_WAVES, expansion + expansion % 2)


@lru_cache(maxsize=64)
def _lengths_of_waves(n_curves, periodic):
    """Return the Lengths of cosines, or of cosines and sines; the same for all columns."""
    k = np.arange(1, n_curves + 1)
    l1, square = float((k**-0.5).sum()), float((1 / k).sum())
    mean = MEAN_COSINE * l1, square / 2
    if periodic:
        # c^2 + s^2 = 1, so at most the cosine's weight, and |c| a + |s| b <= sqrt(a^2 + b^2)
        l1 = float(((1 / k[::2] + 1 / k[1::2]) ** 0.5).sum())
        square = float((1 / k[::2]).sum())
    return Lengths(l1, square, *mean)


class NumberTerms:
    """Terms of numbers that differ only in their columns; `width` counts the features of each."""

    def __init__(self, terms):
        (column,) = terms[0].parts
        self.missing, self.periodic = column.missing, column.periodic
        self.linear, self.n_curves = terms[0].is_line, terms[0].n_curves
        self.width = self.n_curves + self.missing
        if self.missing:
            fills = np.array([[_fill(term.parts[0])] for term in terms], dtype=np.float64)
            self.fills, self.blank = np.where(np.isnan(fills), 0.5, fills), np.isnan(fills)

    def write(self, z, features):
        """Write the features of z of shape (p, b), column by column, into rows, shape (p width, b)."""
        features = features.reshape(len(z), self.width, -1)
        curves = features[:, : self.n_curves]
        if self.missing:
            gaps = np.isnan(z)
            z = np.where(gaps, self.fills, z)
            features[:, -1] = gaps
        if self.linear:
            np.multiply(z, 2.0, out=curves[:, 0])
            curves -= 1.0
        else:
            write_cosines(z, curves, self.periodic)
        if self.missing:
            np.copyto(curves, 0.0, where=(gaps & self.blank)[:, np.newaxis])


@dataclass(frozen=True)
class CategoryTerm(Term):
    """A code for each category: corners of a simplex around 0, or a column for each.

    The cuts, if there are any, make categories of a number.
    """

    code: str = "simplex"
    cuts: tuple[float, ...] = ()

    @property
    def factor(self):
        """CategoryTerm : What the column is in a pair."""
        return self

    @property
    def levels(self) -> tuple[Any, ...]:
        """tuple : Levels that the codes stand for."""
        return levels_of(self.parts[0], self.cuts)

    def cells(self, n: int = 0) -> Array:
        """Return a cell for each level, of a number with cuts the lowest; ignores `n`."""
        (column,) = self.parts
        if not self.cuts:
            return column.values(n)
        return np.array([column.low, *self.cuts, *([np.nan] if column.missing else [])])

    def encode(self, read):
        """Return codes; 0 for a value that is not one of the levels."""
        codes = np.empty((len(self.levels) - (self.code != "onehot"), len(read)))
        self.write(codes, read)
        return codes.T

    @property
    def table(self):
        """ndarray : Features of each code of :meth:`places`, (n_features, n_codes); None if many."""
        n = len(self.levels)
        if n > MOST_IN_A_TABLE:
            return None
        return np.eye(n, n + 1) if self.code == "onehot" else _corners(n)

    def write(self, out, read):
        places = self.places(read)
        if self.code == "onehot":
            out[:] = 0.0
            listed = np.flatnonzero((places >= 0) & (places < len(out)))
            out[places[listed], listed] = 1.0
        else:
            # "wrap" writes without a copy, and -1 is the last column
            np.take(_corners(len(out) + 1), places, axis=1, out=out, mode="wrap")

    @property
    def n_entries(self):
        return 1 if self.code == "onehot" else super().n_entries

    def entries(self, *read):
        if self.code != "onehot":
            return super().entries(*read)
        places = self.places(*read)[np.newaxis]
        listed = (places >= 0) & (places < len(self.levels))
        # codes are of a short type, in which products of places would overflow
        return listed.astype(np.float64), np.where(listed, places, 0).astype(np.intp)

    def places(self, read):
        """Return the column of :attr:`table` for each record; the last one is for other values."""
        if not self.cuts:
            return read
        (column,) = self.parts
        # NaN sorts after all cuts
        places = np.searchsorted(column.read(np.array(self.cuts)), read, side="right")
        return np.where(np.isnan(read), len(self.cuts) + 1, places)

    @property
    def lengths(self):
        if self.code == "onehot":
            return Lengths(1.0, 1.0, 1.0, 1.0)
        # the corner with the largest l1 norm is the first one, whose coordinates are (k (k + 1))^(-1/2)
        k = np.arange(1, len(self.levels))
        l1, square = float(np.cumsum(1 / np.sqrt(k * (k + 1)))[-1]), 1 - 1 / len(self.levels)
        return Lengths(l1, square, l1, square)


@dataclass(frozen=True)
class CosineTerm(Term):
    """cos(pi z) of a number, or cos(2 pi z) and sin(2 pi z) of a periodic one: a factor of pairs.

    It is 0 for a gap without a fill.
    """

    def encode(self, z):
        (column,) = self.parts
        if not column.periodic:
            return cosine(_filled(column, z, gap=0.5))[:, np.newaxis]
        features = np.array(wave(_filled(column, z, gap=0.5)))
        if column.fill is None:
            features[:, np.isnan(z)] = 0.0
        return features.T

    def cells(self, n: int) -> Array:
        """Return n numbers between the bounds, and nan for gaps."""
        return self.parts[0].values(n)

    @property
    def lengths(self):
        if self.parts[0].periodic:
            return Lengths(2**0.5, 1.0, 2 * MEAN_COSINE, 1.0)
        return Lengths(1.0, 1.0, MEAN_COSINE, 1 / 2)


@dataclass(frozen=True)
class PairTerm(Term):
    """All products of the features of two factors, times an amplitude.

    Factors are cosines of numbers and codes of categories. The norm of all products is the product of
    both norms, in l1 and l2: sum_ij |a_i b_j| = sum_i |a_i| sum_j |b_j|.
    """

    factors: tuple[CosineTerm | CategoryTerm, ...] = ()
    amplitude: float = 1.0

    def values(self, n=101):
        mesh = np.meshgrid(*(factor.cells(n) for factor in self.factors), indexing="ij")
        return [axis.ravel() for axis in mesh]

    def encode(self, *read):
        one, other = (factor.encode(x).T for factor, x in zip(self.factors, read))
        products = one[:, np.newaxis] * other
        products *= self.amplitude
        return products.reshape(len(one) * len(other), one.shape[1]).T

    @property
    def n_entries(self):
        one, other = self.factors
        return one.n_entries * other.n_entries

    def entries(self, *read):
        (one, at), (other, beside) = (factor.entries(x) for factor, x in zip(self.factors, read))
        products = one[:, np.newaxis] * other
        products *= self.amplitude
        places = at[:, np.newaxis] * len(self.factors[1].names) + beside
        return products.reshape(self.n_entries, -1), places.reshape(self.n_entries, -1)

    @property
    def lengths(self):
        one, other = (factor.lengths for factor in self.factors)
        size = self.amplitude
        return Lengths(*np.prod([one, other, (size, size**2, size, size**2)], axis=0).tolist())


@dataclass(frozen=True)
class FourierTerm(Term):
    """sqrt(2 / D) cos(w . (2 z - 1) + b) of all numbers, D times, w normal with variance 2 gamma."""

    weights: FloatArray = field(default_factory=lambda: np.empty((0, 0)), compare=False)
    offsets: FloatArray = field(default_factory=lambda: np.empty(0), compare=False)

    def encode(self, *read):
        angle = np.tile(self.offsets, (len(read[0]), 1))
        # column by column, because the rounding of a matrix product depends on its number of rows
        for column, z, weights in zip(self.parts, read, self.weights):
            angle += (2 * _filled(column, z, gap=0.5) - 1)[:, np.newaxis] * weights
        return np.sqrt(2 / len(self.offsets)) * np.cos(angle)

    @property
    def lengths(self):
        longest = math.sqrt(2 * len(self.names))
        return Lengths(longest, 2.0, MEAN_COSINE * longest, 1.0)


def levels_of(column, cuts=()):
    """Return the levels of a category, or of a number that is cut."""
    if not cuts:
        return column.levels
    ends = [column.low, *cuts, column.high]
    between = tuple(f"{low:.15g} to {high:.15g}" for low, high in zip(ends, ends[1:]))
    return (*between, "<missing>") if column.missing else between


def turns(n, periodic):
    """Return k and s of n features proportional to cos(pi (k z - s)) of a number."""
    i = np.arange(1, n + 1)
    return (i + i % 2, (1 - i % 2) / 2) if periodic else (i, 0.0 * i)


def random_directions(n_columns, n_features, gamma, seed):
    """Return the weights and offsets of random Fourier features, from a public seed."""
    generator = np.random.default_rng(seed)
    weights = generator.normal(0.0, math.sqrt(2 * gamma), size=(n_columns, n_features))
    return weights, generator.uniform(0.0, 2 * math.pi, size=n_features)


@lru_cache
def _corners(n):
    """Return the corners of a simplex as columns, with a last column of 0 for index -1."""
    return np.pad(helmert(n), [(0, 0), (0, 1)])


def _fill(column):
    return None if column.fill is None else float(column.read(np.array([column.fill]))[0])


def _filled(column, z, gap):
    fill = _fill(column)
    return np.where(np.isnan(z), gap if fill is None else fill, z)

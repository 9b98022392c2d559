"""Choose columns and terms of a table by its schema and public numbers."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from ..utils.same import Same
from .dates import CYCLES, phase
from .schema import CategoryColumn, NumberColumn, PublicSchema
from .terms import (
    CategoryTerm,
    CycleTerm,
    FourierTerm,
    Lengths,
    NumberTerm,
    PairTerm,
    Term,
    levels_of,
    n_waves,
    random_directions,
)

# fewer and more cosines of a number, and the signal, n * epsilon / E[noise norm], from which on more
# are better, and pairs of numbers too; found by experiment
FEWER, MORE, ENOUGH = 2, 4, 300.0
# the signal down to which columns are taken in the order of their importance
ENOUGH_FOR_COLUMNS = 30.0
# pairs that are taken unasked are at most so many for each number, and one more for each level
PAIRS_OF_A_NUMBER = 8
# largest number of records times epsilon
LARGEST = 1e300
# squared length of all pairs, in units of that of all other terms
SHARE_OF_PAIRS = 1 / 4


@dataclass(frozen=True)
class TableTerms:
    """The terms of a table, and what was chosen to make them.

    Attributes
    ----------
    schema : PublicSchema
        Of the columns that are read.
    expansion : "linear" or int
        Of numbers.
    pairs : tuple of (object, object)
        Names of columns.
    terms : tuple of Term
        In the order of the features.
    """

    schema: PublicSchema
    expansion: str | int
    pairs: tuple[tuple[Any, Any], ...]
    terms: tuple[Term, ...]

    @classmethod
    def of(cls, encoder, schema):
        """Choose by the parameters of a TableEncoder, which are valid."""
        schema = _read_columns(encoder, schema)
        automatic = isinstance(encoder.pairs, str)
        pairs = () if automatic else tuple(map(tuple, encoder.pairs))
        # of the first columns, others are lacking; of a list they were refused
        pairs = tuple(pair for pair in pairs if all(name in schema.columns for name in pair))
        expansion, noise = encoder.expansion, TypicalNoise.of(encoder)
        if expansion == "auto":
            expansion, terms = MORE, _shortest(encoder, schema, MORE, pairs)
            if not noise.signal(terms) >= ENOUGH:
                expansion, terms = FEWER, _shortest(encoder, schema, FEWER, pairs)
        else:
            terms = _shortest(encoder, schema, expansion, pairs)
        if automatic and (all_pairs := _pairs_of_numbers(terms)):
            more = _shortest(encoder, schema, expansion, all_pairs)
            if noise.signal(more) >= ENOUGH:
                pairs, terms = all_pairs, more
        return cls(schema, expansion, pairs, terms)


def total_lengths(terms):
    """Return the Lengths of a row."""
    return _total(Same(terms))


@lru_cache(maxsize=64)
def _total(terms):
    return Lengths(*np.sum([term.lengths for term in terms], axis=0).tolist())


@dataclass(frozen=True)
class TypicalNoise:
    """The shortest noise of a linear model, by public numbers.

    Attributes
    ----------
    n_epsilon, n_mu : float
        As of a TableEncoder; 0.0 if there is no such noise.
    """

    n_epsilon: float
    n_mu: float

    @classmethod
    def of(cls, encoder):
        """Return the noise of the model behind an encoder."""
        # of an infinite epsilon the noise is short, and not 0: it is divided by
        return cls(min(float(encoder.n_epsilon or 0.0), LARGEST), float(encoder.n_mu or 0.0))

    def lengths(self, total, d):
        """Return the approximate norm of the noise for rows of these lengths and d features."""
        spherical, independent = d * total.typical_l2_squared**0.5, (2 * d) ** 0.5 * total.typical_l1
        pure = np.minimum(spherical, independent) / (self.n_epsilon or 1.0)
        if not self.n_mu:
            return pure
        return np.minimum(pure, (d * total.typical_l2_squared) ** 0.5 / self.n_mu)

    def length(self, terms):
        """Return the approximate norm of the noise with all of these terms."""
        return self.lengths(total_lengths(terms), terms[-1].outputs.stop)

    def signal(self, terms):
        """Return the typical norm of a row over that of the noise; 0 if the latter is not known."""
        if not self.n_epsilon:
            return 0.0
        total = total_lengths(terms)
        return total.typical_l2_squared**0.5 / self.lengths(total, terms[-1].outputs.stop)


def _read_columns(encoder, schema):
    """Return the schema of the columns that are read."""
    if encoder.columns is None:
        return schema
    names = list(schema.columns)
    if encoder.columns == "first":
        names = names[: _n_first(encoder, schema)]
    else:
        names = [name for name in names if name in encoder.columns]
    return PublicSchema({name: schema.columns[name] for name in names})


def _n_first(encoder, schema):
    """Return how many of the columns the signal is enough for, in their order."""
    n = len(schema.columns)
    if encoder.n_epsilon is None:
        return n
    share = 1 / 2 if encoder.class_share is None else encoder.class_share
    noise, lengths, signals = TypicalNoise.of(encoder), [], []
    for terms in _codings(encoder, schema, FEWER):
        # a column has all of its terms, or none
        last = np.flatnonzero(
            [a.columns != b.columns for a, b in zip(terms, [*terms[1:], PairTerm(())])]
        )
        total = Lengths(*np.cumsum([term.lengths for term in terms], axis=0)[last].T)
        lengths.append(noise.lengths(total, np.array([terms[i].outputs.stop for i in last])))
        signals.append(total.typical_l2_squared**0.5 / lengths[-1])
    signal = np.choose(np.argmin(lengths, axis=0), signals) * 4 * share * (1 - share)
    enough = np.flatnonzero(signal >= ENOUGH_FOR_COLUMNS)
    return min(n, max(2, enough[-1] + 1 if len(enough) else 0))


def _pairs_of_numbers(terms):
    """Return all pairs of numbers, or none if they are many beside the numbers and levels."""
    numbers = [term.columns[0] for term in terms if isinstance(term, NumberTerm)]
    levels = sum(len(term.levels) for term in terms if isinstance(term, CategoryTerm))
    pairs = tuple(combinations(numbers, 2))
    return pairs if len(pairs) <= PAIRS_OF_A_NUMBER * len(numbers) + levels else ()


def _shortest(encoder, schema, expansion, pairs):
    """Return the terms with the given code of categories, or that with the shortest noise."""
    coded, noise = _codings(encoder, schema, expansion), TypicalNoise.of(encoder)
    return min((_complete(encoder, terms, pairs) for terms in coded), key=noise.length)


def _codings(encoder, schema, expansion):
    """Return the terms of single columns, for each code of categories that may be taken."""
    codes = ("simplex", "onehot") if encoder.categories == "auto" else (encoder.categories,)
    names, columns = Same(schema.columns), Same(schema.columns.values())
    given = encoder.cut_points or {}
    cuts = tuple(tuple(map(float, given[name])) if name in given else None for name in names)
    return [_of_columns(names, columns, cuts, expansion, code) for code in codes]


# plans of one schema differ in epsilon and numbers of records
@lru_cache(maxsize=64, typed=True)
def _of_columns(names, columns, cuts, expansion, code):
    """Return a term for each column, with the chosen code for all categories."""
    terms = []
    for name, column, cut in zip(names, columns, cuts):
        if isinstance(column, CategoryColumn) or cut is not None:
            levels = levels_of(column, cut or ())
            codes = [f"code{j}" for j in range(1, len(levels))]
            ends = codes if code == "simplex" else levels
            named = tuple(f"{name}_{end}" for end in ends)
            term = CategoryTerm((column,), named, code=code, cuts=cut or ())
        else:
            term = NumberTerm((column,), expansion=expansion)
            n = term.n_curves
            named = [name] if term.is_line else [f"{name}_cos{k}" for k in range(1, n + 1)]
            named = _names_of_waves(name, n) if column.periodic else named
            term = replace(
                term, names=(*map(str, named), *([f"{name}_missing"] if column.missing else []))
            )
        terms += [term, *_cycles(column, expansion)]
    return _in_place(terms)


def _cycles(column, expansion):
    """Return the terms of what comes round in a column of dates."""
    for cycle in getattr(column, "cycles", ()):
        name, (length, _, unit) = f"{column.name}_{cycle}", CYCLES[cycle]
        shown = NumberColumn(name, 0.0, length, unit=unit, periodic=True)
        names, before = _names_of_waves(name, n_waves(expansion)), phase(column.dates[0], cycle)
        yield CycleTerm((shown,), names, source=column, phase=float(before))


def _names_of_waves(name, n):
    return tuple(f"{name}_{'cos' if i % 2 else 'sin'}{(i + 1) // 2}" for i in range(1, n + 1))


def _complete(encoder, terms, pairs):
    """Return terms of columns, then those of pairs, then random features of all numbers."""
    single = [part for term in terms if not isinstance(term, CycleTerm) for part in term.parts]
    columns = tuple(part for part in single if isinstance(part, NumberColumn))
    random = []
    if encoder.n_fourier and columns:
        drawn = random_directions(len(columns), encoder.n_fourier, encoder.gamma, encoder.random_state)
        names = [f"fourier{j}" for j in range(encoder.n_fourier)]
        random.append(FourierTerm(columns, tuple(names), 0, *drawn))
    if not (pairs or random):
        return terms
    return _in_place([*terms, *_pair_terms(terms, pairs, [*terms, *random]), *random])


def _pair_terms(terms, pairs, others):
    """Return terms of pairs, all of one length, and together a share of all others."""
    by_name = {term.columns[0]: term for term in terms if not isinstance(term, CycleTerm)}
    made = []
    for one, other in pairs:
        first, second = (by_name[name].factor for name in (one, other))
        names = tuple(f"{a}*{b}" for a in first.names for b in second.names)
        made.append(PairTerm((*first.parts, *second.parts), names, factors=(first, second)))
    if not made:
        return made
    square = SHARE_OF_PAIRS / len(made) * total_lengths(others).typical_l2_squared
    return [replace(term, amplitude=(square / term.lengths.typical_l2_squared) ** 0.5) for term in made]


def _in_place(terms):
    """Return terms with the positions of their features, or refuse duplicate names of features."""
    placed, start = [], 0
    for term in terms:
        placed.append(replace(term, start=start))
        start = placed[-1].outputs.stop
    names = Counter(name for term in placed for name in term.names)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        raise ValueError(
            f"The schema makes features of one name, {twice}, which cannot be distinguished; give "
            "columns or categories other names."
        )
    return tuple(placed)

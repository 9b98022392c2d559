"""Choose the terms of a table by its schema and public numbers: expansion, codes and pairs."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from .schema import CategoryColumn, NumberColumn, PublicSchema
from .terms import (
    CategoryTerm,
    FourierTerm,
    Lengths,
    NumberTerm,
    PairTerm,
    Term,
    levels_of,
    random_directions,
)

# fewer and more cosines of a number, and the signal, n * epsilon / E[noise norm], from which on more
# are better, and pairs of numbers too; found by experiment
FEWER, MORE, ENOUGH = 2, 4, 300.0
# pairs that are taken unasked are at most so many for each number, and one more for each level
PAIRS_OF_A_NUMBER = 8
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
        automatic = isinstance(encoder.pairs, str)
        pairs = () if automatic else tuple(map(tuple, encoder.pairs))
        expansion, n_epsilon = encoder.expansion, encoder.n_epsilon
        if expansion == "auto":
            expansion, terms = MORE, _shortest(encoder, schema, MORE, pairs)
            if not _is_enough(terms, n_epsilon):
                expansion, terms = FEWER, _shortest(encoder, schema, FEWER, pairs)
        else:
            terms = _shortest(encoder, schema, expansion, pairs)
        if automatic and (all_pairs := _pairs_of_numbers(terms)):
            more = _shortest(encoder, schema, expansion, all_pairs)
            if _is_enough(more, n_epsilon):
                pairs, terms = all_pairs, more
        return cls(schema, expansion, pairs, terms)


def total_lengths(terms):
    """Return the Lengths of a row."""
    return Lengths(*np.sum([term.lengths for term in terms], axis=0).tolist())


def _is_enough(terms, n_epsilon, enough=ENOUGH):
    """Return whether n_epsilon is so many times the length of the noise, in units of a row's."""
    if n_epsilon is None:
        return False
    return n_epsilon * total_lengths(terms).typical_l2_squared ** 0.5 >= enough * _noise_length(terms)


def _noise_length(terms):
    """Return the approximate norm of a linear model's noise: spherical, or of independent variables."""
    total, d = total_lengths(terms), terms[-1].outputs.stop
    return min(d * total.typical_l2_squared**0.5, (2 * d) ** 0.5 * total.typical_l1)


def _pairs_of_numbers(terms):
    """Return all pairs of numbers, or none if they are many beside the numbers and levels."""
    numbers = [term.columns[0] for term in terms if isinstance(term, NumberTerm)]
    levels = sum(len(term.levels) for term in terms if isinstance(term, CategoryTerm))
    pairs = tuple(combinations(numbers, 2))
    return pairs if len(pairs) <= PAIRS_OF_A_NUMBER * len(numbers) + levels else ()


def _shortest(encoder, schema, expansion, pairs):
    """Return the terms with the given code of categories, or that with the shortest noise."""
    codes = ("simplex", "onehot") if encoder.categories == "auto" else (encoder.categories,)
    coded = [_coded(encoder, schema, expansion, code, pairs) for code in codes]
    return min(coded, key=_noise_length) if len(coded) > 1 else coded[0]


def _coded(encoder, schema, expansion, code, pairs):
    """Return the terms, with the chosen code for all categories."""
    cuts = {name: tuple(map(float, given)) for name, given in (encoder.cut_points or {}).items()}
    terms = {}
    for name, column in schema.columns.items():
        if isinstance(column, CategoryColumn) or name in cuts:
            levels = levels_of(column, cuts.get(name, ()))
            codes = [f"code{j}" for j in range(1, len(levels))]
            names = [f"{name}_{end}" for end in (codes if code == "simplex" else levels)]
            term = CategoryTerm((column,), tuple(names), code=code, cuts=cuts.get(name, ()))
        else:
            ends = [""] if expansion == "linear" else [f"_cos{k}" for k in range(1, expansion + 1)]
            ends += ["_missing"] if column.missing else []
            names = [f"{name}{end}" for end in ends]
            term = NumberTerm((column,), tuple(names), expansion=expansion)
        terms[name] = term
    random = []
    if encoder.n_fourier:
        columns = tuple(c for c in schema.columns.values() if isinstance(c, NumberColumn))
        drawn = random_directions(len(columns), encoder.n_fourier, encoder.gamma, encoder.random_state)
        names = [f"fourier{j}" for j in range(encoder.n_fourier)]
        random.append(FourierTerm(columns, tuple(names), 0, *drawn))
    return _in_place([*terms.values(), *_pair_terms(terms, pairs, random), *random])


def _pair_terms(terms, pairs, others):
    """Return terms of pairs, all of one length, and together a share of all others."""
    made = []
    for pair in pairs:
        factors = tuple(terms[name].factor for name in pair)
        names = tuple(f"{one}*{other}" for one in factors[0].names for other in factors[1].names)
        columns = tuple(terms[name].parts[0] for name in pair)
        made.append(PairTerm(columns, names, factors=factors))
    if not made:
        return made
    square = SHARE_OF_PAIRS / len(made) * total_lengths([*terms.values(), *others]).typical_l2_squared
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

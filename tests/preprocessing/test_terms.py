"""The maps from columns to features: their values, and how long they can be."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import helmert
from sklearn.linear_model import Ridge

from dpselect.preprocessing.schema import CategoryColumn, NumberColumn
from dpselect.preprocessing.terms import (
    CategoryTerm,
    CycleTerm,
    FourierTerm,
    Lengths,
    NumberTerm,
    PairTerm,
    random_directions,
)

NAN = float("nan")
AGE, GAPS = NumberColumn("age", 0.0, 1.0), NumberColumn("gaps", 0.0, 1.0, missing=True)
FILLED = NumberColumn("filled", 0.0, 1.0, missing=True, fill=0.25)
HOUR = NumberColumn("hour", 0.0, 1.0, periodic=True)
GAPS_OF_HOURS = replace(HOUR, name="gaps of hours", missing=True)
FILLED_HOUR = replace(GAPS_OF_HOURS, name="filled hour", fill=0.25)
JOB = CategoryColumn("job", ("a", "b", "c", "d"))
Z = np.linspace(0, 1, 1001)


def pair(*terms, amplitude=0.5):
    columns = tuple(term.parts[0] for term in terms)
    return PairTerm(columns, factors=tuple(term.factor for term in terms), amplitude=amplitude)


def fourier(*columns, n=4000, gamma=0.5):
    drawn = random_directions(len(columns), n, gamma, seed=0)
    return FourierTerm(columns, tuple(map(str, range(n))), 0, *drawn)


def test_cosines():
    features = NumberTerm((AGE,), expansion=3).encode(Z)
    for k in (1, 2, 3):
        np.testing.assert_allclose(features[:, k - 1], np.cos(np.pi * k * Z) / k**0.5, atol=1e-15)
    np.testing.assert_array_equal(NumberTerm((AGE,)).encode(Z)[:, 0], 2 * Z - 1)


def test_waves_of_a_period():
    for expansion, n in (("linear", 2), (1, 4), (2, 4), (4, 4), (5, 6), (7, 8)):
        term = NumberTerm((HOUR,), expansion=expansion)
        features = term.encode(Z)
        assert features.shape == (len(Z), n) and term.n_curves == n and not term.is_line
        for i in range(1, n + 1):
            expected = (np.cos if i % 2 else np.sin)(2 * np.pi * ((i + 1) // 2) * Z) / i**0.5
            np.testing.assert_allclose(features[:, i - 1], expected, atol=1e-14)
        # the upper bound is the lower one
        assert features[0].tolist() == features[-1].tolist()
    factor = term.factor.encode(Z)
    turned = 2 * np.pi * Z
    np.testing.assert_allclose(factor, np.transpose([np.cos(turned), np.sin(turned)]), atol=1e-15)
    gap, fill = NumberTerm((FILLED_HOUR,), expansion=4).encode(np.array([NAN, 0.25]))
    assert gap[:-1].tolist() == fill[:-1].tolist() and (gap[-1], fill[-1]) == (1, 0)
    gap, half = NumberTerm((GAPS_OF_HOURS,), expansion=4).encode(np.array([NAN, 0.5]))
    assert gap.tolist() == [0, 0, 0, 0, 1] and half[-1] == 0
    assert NumberTerm((GAPS_OF_HOURS,)).factor.encode(np.array([NAN])).tolist() == [[0, 0]]
    found = NumberTerm((FILLED_HOUR,)).factor.encode(np.array([NAN]))
    np.testing.assert_allclose(found, [[0, 1]], atol=1e-15)


@pytest.mark.parametrize("expansion", ["linear", 2])
def test_gaps(expansion):
    gap, half = NumberTerm((GAPS,), expansion=expansion).encode(np.array([NAN, 0.5]))
    assert gap.tolist() == [0] * (len(gap) - 1) + [1] and half[-1] == 0
    gap, fill = NumberTerm((FILLED,), expansion=expansion).encode(np.array([NAN, 0.25]))
    assert gap[:-1].tolist() == fill[:-1].tolist() and (gap[-1], fill[-1]) == (1, 0)
    gaps, filled = (NumberTerm((part,), expansion=expansion) for part in (GAPS, FILLED))
    found = pair(gaps, filled).encode(np.array([NAN, 1.0, 1.0]), np.array([1.0, NAN, 1.0]))
    np.testing.assert_allclose(found[:, 0], [0, -np.cos(np.pi / 4) / 2, 0.5], atol=1e-15)


def test_codes_are_the_corners_of_a_simplex():
    codes = CategoryTerm((JOB,)).encode(np.array([0, 1, 2, 3, -1]))
    np.testing.assert_allclose(codes[:4] @ codes[:4].T, np.eye(4) - 1 / 4, atol=1e-15)
    assert codes.shape == (5, 3) and (codes[4] == 0).all()
    columns = CategoryTerm((JOB,), code="onehot").encode(np.array([0, 1, 2, 3, -1]))
    np.testing.assert_array_equal(columns, np.eye(5)[:, :4])


def norms_by_rows(term):
    """Lengths of a simplex from all of its corners, whose number is the square of that of the levels."""
    corners = helmert(len(term.levels))
    l1, square = float(np.abs(corners).sum(axis=0).max()), 1 - 1 / len(term.levels)
    return Lengths(l1, square, l1, square)


def levels(n, code="simplex"):
    names = tuple(map(str, range(n - (code == "simplex"))))
    return CategoryTerm((CategoryColumn("c", tuple(map(str, range(n)))),), names, code=code)


def test_the_norms_of_corners_are_known_without_the_corners():
    for n in (*range(2, 60), 300):
        assert levels(n).lengths == norms_by_rows(levels(n))  # to the last bit
    tracemalloc.start()
    try:
        peaks = []
        for norms in (lambda term: term.lengths, norms_by_rows):
            tracemalloc.reset_peak()
            norms(levels(2000))
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    # linear in the levels, and of the twin their square
    assert peaks[0] < 1000 * 2000 < 2000**2 < peaks[1]


def test_both_codes_give_the_same_model():
    rng = np.random.default_rng(0)
    places, y = rng.integers(0, 4, 200), rng.normal(size=200)
    fits = [
        Ridge(alpha=5.0, solver="cholesky").fit(X, y).predict(X)
        for X in (CategoryTerm((JOB,), code=code).encode(places) for code in ("simplex", "onehot"))
    ]
    np.testing.assert_allclose(*fits, rtol=1e-10)


def test_a_number_at_a_cut_belongs_to_the_upper_part():
    column = NumberColumn("age", 0.0, 120.0, "log1p", missing=True)
    term = CategoryTerm((column,), code="onehot", cuts=(18.0, 65.0))
    assert term.levels == ("0 to 18", "18 to 65", "65 to 120", "<missing>")
    found = term.at([-1, 17.999, 18, 64, 65, 999, None]).argmax(axis=1)
    assert found.tolist() == [0, 0, 1, 1, 2, 2, 3]


def test_random_features_approximate_the_kernel():
    X = np.random.default_rng(1).random((30, 2))
    rows = fourier(AGE, AGE).encode(*X.T)
    squares = ((2 * X[:, np.newaxis] - 2 * X) ** 2).sum(axis=2)
    assert np.abs(rows @ rows.T - np.exp(-0.5 * squares)).max() < 0.1
    assert np.abs(rows @ rows.T - np.exp(-1.0 * squares)).max() > 0.1  # another gamma


TERMS = [
    *(NumberTerm((part,), expansion=k) for part in (AGE, GAPS, FILLED) for k in ("linear", 1, 4)),
    *(
        NumberTerm((part,), expansion=k)
        for part in (HOUR, GAPS_OF_HOURS, FILLED_HOUR)
        for k in ("linear", 4)
    ),
    *(CategoryTerm((JOB,), code=code) for code in ("simplex", "onehot")),
    CategoryTerm((GAPS,), cuts=(0.3, 0.6)),
    *(CycleTerm((HOUR,), tuple("abcd"), source=part, phase=3.0) for part in (AGE, GAPS, FILLED)),
    pair(NumberTerm((AGE,)), NumberTerm((GAPS,)), amplitude=0.7),
    pair(NumberTerm((HOUR,)), NumberTerm((GAPS_OF_HOURS,)), amplitude=1.7),
    pair(NumberTerm((GAPS_OF_HOURS,)), CategoryTerm((JOB,)), amplitude=0.7),
    *(
        pair(first, CategoryTerm((JOB,), code=code))
        for first in (NumberTerm((FILLED,)), CategoryTerm((GAPS,), cuts=(0.3, 0.6)))
        for code in ("simplex", "onehot")
    ),
    fourier(AGE, n=1000),
]


def longest(term):
    """The largest norms on a fine grid, over all combinations of a pair."""
    grids = [
        np.arange(-1, 4)
        if isinstance(part, CategoryColumn)
        else np.append(Z[:: 1 if len(term.parts) == 1 else 10], NAN if part.missing else 1.0)
        for part in term.parts
    ]
    features = term.encode(*(axis.ravel() for axis in np.meshgrid(*grids)))
    return np.abs(features).sum(axis=1).max(), (features**2).sum(axis=1).max()


@pytest.mark.parametrize("term", TERMS, ids=lambda term: f"{type(term).__name__} {term.columns[-1]}")
def test_no_row_is_longer_and_some_are_as_long(term):
    reached = np.divide(longest(term), term.lengths[:2])
    assert (reached <= 1 + 1e-12).all()
    if isinstance(term, FourierTerm):  # random features are not at their largest all at once
        return
    assert reached[1] > 1 - 1e-12
    # several harmonics neither, in l1, and the grid has no eighth of a period
    waves = any(getattr(part, "periodic", False) for part in term.parts)
    assert reached[0] > 1 - (0.03 if waves else 1e-12)


def test_the_broken_twin_takes_the_mean_of_both_weights_of_a_wave():
    class Mean(NumberTerm):
        @property
        def lengths(self):
            known = super().lengths
            return known._replace(max_l2_squared=known.typical_l2_squared)

    for k in ("linear", 4):
        term = Mean((HOUR,), expansion=k)
        assert longest(term)[1] > 1.2 * term.lengths.max_l2_squared


def test_the_broken_twin_forgets_the_flag():
    class Forgetful(NumberTerm):
        @property
        def lengths(self):
            return NumberTerm((AGE,), expansion=self.expansion).lengths

    term = Forgetful((FILLED,), expansion=1)
    assert np.divide(longest(term), term.lengths[:2]).max() > 1.4


@pytest.mark.parametrize("term", TERMS, ids=lambda term: f"{type(term).__name__} {term.columns[-1]}")
def test_typical_lengths_are_means_over_even_numbers(term):
    z = (np.arange(10_000) + 0.5) / 10_000
    categories = isinstance(term, CategoryTerm) or isinstance(
        getattr(term, "factors", [0])[0], CategoryTerm
    )
    if categories:
        assert term.lengths[:2] == pytest.approx(term.lengths[2:])
        return
    if isinstance(term.parts[-1], CategoryColumn):  # categories count with their largest code
        z = np.repeat(z, 4)
        features = term.encode(z, np.arange(len(z)) % 4)
        largest = np.abs(features).sum(axis=1).reshape(-1, 4).max(axis=1)
        found = largest.mean(), (features**2).sum(axis=1).mean()
        np.testing.assert_allclose(found, term.lengths[2:], rtol=1e-3)
        return
    others = [np.random.default_rng(0).permutation(z) for _ in term.parts[1:]]
    features = term.encode(z, *others)
    found = np.abs(features).sum(axis=1).mean(), (features**2).sum(axis=1).mean()
    # those of random features are means over the offsets, too
    rtol = 0.1 if isinstance(term, (PairTerm, FourierTerm)) else 1e-3
    np.testing.assert_allclose(found, term.lengths[2:], rtol=rtol)


def dense_rows(n_features, values, places):
    """Rows with entries at places, which must be in ascending order."""
    places = np.broadcast_to(places, values.shape)
    assert (np.diff(places, axis=0) > 0).all()
    rows = np.zeros((values.shape[1], n_features))
    np.put_along_axis(rows, places.T, values.T, axis=1)
    return rows


def named(term, *read):
    """A term whose features have names."""
    if isinstance(term, PairTerm):
        term = replace(term, factors=tuple(map(named, term.factors, read)))
    return replace(term, names=tuple(map(str, range(term.encode(*read).shape[1]))))


@pytest.mark.parametrize("term", TERMS)
def test_entries_are_the_features_that_are_not_0(term):
    rng = np.random.default_rng(0)
    read = [
        rng.integers(-1, len(part.levels), 50).astype(np.int8)
        if isinstance(part, CategoryColumn)
        else np.where(rng.random(50) < 0.2 * part.missing, NAN, rng.random(50))
        for part in term.parts
    ]
    term = named(term, *read)
    rows, (values, places) = term.encode(*read), term.entries(*read)
    assert values.shape == (term.n_entries, 50)
    np.testing.assert_array_equal(dense_rows(rows.shape[1], values, places), rows)
    if rows.shape[1] > 1:  # a twin with each entry one place further
        twin = dense_rows(rows.shape[1] + 1, values, places + 1)
        assert (twin[:, :-1] != rows).any()


def test_places_of_pairs_of_long_lists():
    """Codes are of a short type, and places of their products are not."""
    one, other = levels(100, "onehot"), levels(120, "onehot")
    names = tuple(f"{i}*{j}" for i in range(100) for j in range(120))
    term = PairTerm((*one.parts, *other.parts), names, factors=(one, other), amplitude=0.5)
    read = np.array([99, 0, -1, 57], dtype=np.int8), np.array([119, 119, 3, 64], dtype=np.int8)
    values, places = term.entries(*read)
    assert term.n_entries == 1 and values.tolist() == [[0.5, 0.5, 0.0, 0.5]]
    assert places[0, [0, 1, 3]].tolist() == [99 * 120 + 119, 119, 57 * 120 + 64]


@pytest.mark.parametrize("code", ["simplex", "onehot"])
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int64])
def test_codes_are_those_of_a_table_of_codes(code, kind):
    """Written in place, to the last bit; of a value that is not listed, 0."""
    for n in (2, 3, 7, 100):
        term, read = (
            levels(n, code),
            np.append(np.random.default_rng(0).integers(-1, n, 300), [-1, n - 1]),
        )
        table = np.vstack([np.eye(n) if code == "onehot" else helmert(n).T, np.zeros(len(term.names))])
        found = np.full((len(term.names), len(read)), np.nan)
        term.write(found, read.astype(kind))
        np.testing.assert_array_equal(found.T, table[read])
        np.testing.assert_array_equal(term.encode(read.astype(kind)), table[read])
        assert (found.T != table[read - 1]).any()  # a twin with other codes

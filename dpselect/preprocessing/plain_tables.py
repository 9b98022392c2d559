"""A TableEncoder as scikit-learn steps: one branch of a ColumnTransformer for each term."""

from itertools import product

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from scipy.linalg import helmert
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
)

from .number_scale import TRANSFORMS
from .plain_rows import affine, as_float64, between, having
from .table_cells import GAP, MISSING_TEXTS, TRUTHS
from .terms import CategoryTerm, CosineTerm, CycleTerm, FourierTerm, NumberTerm, PairTerm, turns

# spellings of missing values by Python, numpy and pandas
WRITTEN_GAPS = ("None", "nan", "<NA>", "NaT")


@config_context(transform_output="default")
def plain_encoder(terms, places, n_columns, names=None):
    """Return a fitted ColumnTransformer with the features of terms.

    Parameters
    ----------
    terms : tuple of Term
    places : dict
        From the name of each column that is read to its place in a table.
    n_columns : int
        Of tables.
    names : array-like of str, default=None
        Of all columns, if tables have names.
    """
    branches = []
    for i, term in enumerate(terms):
        chosen = [places[name] for name in term.columns]
        branches.append((f"term{i}", FrozenEstimator(BRANCHES[type(term)](term)), chosen))
    encoder = ColumnTransformer(branches, sparse_threshold=0).fit(np.zeros((1, n_columns)))
    if names is not None:
        having(encoder, feature_names_in_=np.asarray(names, dtype=object))
    return encoder.set_output(transform="default")


def _read(column, largest=1.0):
    """Return the steps from cells to z, between 0 and `largest`, with nan for gaps."""
    if column.codes:
        raise ValueError(
            f"Column {column.name!r} has numbers among its 'missing_values', which no step of "
            "scikit-learn makes gaps; write NaN for them in the table, and leave them out of the schema."
        )
    transform = TRANSFORMS[column.transform]
    low, high = transform(column.low), transform(column.high)
    steps = [_fit(as_float64(gaps=column.missing)), between(column.low, column.high)]
    if column.transform:
        steps.append(_fit(FunctionTransformer(transform)))
    return [*steps, affine(low, (high - low) / largest), between(0.0, largest)]


def _read_all(parts, gap):
    """Return a step from cells to a z for each column, `gap` for a gap without a fill."""
    branches = [
        (f"column{i}", FrozenEstimator(make_pipeline(*_read(part), _filled(_fill(part, gap)))), [i])
        for i, part in enumerate(parts)
    ]
    return ColumnTransformer(branches, sparse_threshold=0).fit(np.zeros((1, len(parts))))


def _fill(column, gap):
    """Return the z of a column's fill, or `gap` if it has none."""
    return gap if column.fill is None else column.read(np.array([column.fill]))[0]


def _number(term):
    (column,) = term.parts
    read = _read(column)
    if term.is_line:
        features = _with_gaps(column, [affine(0.5, 0.5)], 1)
    elif column.periodic:
        i = np.arange(1, term.n_curves + 1)
        turned = [*_turned(True, term.n_curves), affine(0.0 * i, np.sqrt(i))]
        features = _with_gaps(column, turned, term.n_curves)
    else:
        read, features = _read(column, np.pi), _multiples(column, term.n_curves)
    if column.missing:
        flag = _fit(MissingIndicator(features="all"))
        features = [FeatureUnion([("features", make_pipeline(*features)), ("missing", flag)])]
    return make_pipeline(*read, *features)


def _multiples(column, n):
    """Return the steps from an angle to cosines of its multiples, which are Chebyshev polynomials."""
    rows = np.pad(np.diag(np.arange(1.0, n + 1) ** -0.5), [(1, 0), (0, 0)])
    turned = [
        _fit(FunctionTransformer(np.cos)),
        _fit(FunctionTransformer(chebvander, kw_args={"deg": n})),
        _fit(FunctionTransformer(np.squeeze, kw_args={"axis": 1})),
    ]
    return [*_with_gaps(column, turned, n + 1, np.pi), _product(rows)]


def _cycle(term):
    n, (before, cycles) = len(term.names), term.turns_of_z
    i = np.arange(1, n + 1)
    turned = [affine(-before / cycles, 1 / cycles), *_turned(True, n), affine(0.0 * i, np.sqrt(i))]
    return make_pipeline(*_read(term.source), *_with_gaps(term.source, turned, n))


def _turned(periodic, n):
    """Return the steps from z to n cosines."""
    k, shift = turns(n, periodic)
    turned = _fit(FunctionTransformer(np.outer, kw_args={"b": np.pi * k}))
    moved = [affine(np.pi * shift, np.ones(n))] if periodic else []
    return [turned, *moved, _fit(FunctionTransformer(np.cos))]


def _with_gaps(column, features, n, largest=1.0):
    """Return steps after which a gap is its fill, in units of `largest`, or 0 in all n features."""
    if not column.missing:
        return features
    if column.fill is None:
        return [*features, _filled(0.0, n)]
    return [_filled(largest * _fill(column, None)), *features]


def _category(term):
    (column,) = term.parts
    n = len(term.levels)
    codes = np.eye(n) if term.code == "onehot" else helmert(n).T
    if term.cuts:
        edges = [0.0, *column.read(np.array(term.cuts)), *([1.5] if column.missing else []), 2.0]
        bins = KBinsDiscretizer(n, encode="ordinal", strategy="uniform", subsample=None)
        bins = having(
            _fit(bins, np.linspace(0, 2, n)[:, np.newaxis]),
            bin_edges_=np.array([np.array(edges), None], dtype=object)[:1],
        )
        gaps = [_filled(2.0)] if column.missing else []
        return make_pipeline(*_read(column), *gaps, bins, *_coded(np.arange(float(n)), codes))
    other = column.levels.index("<unknown>") if column.unknown else -1
    known = {text: i for text, i in spellings(column).items() if i != other}
    # a cell that is not listed has no entry in the rows of indicators
    nothing = codes[other] if column.unknown else np.zeros(codes.shape[1])
    rows = np.array([codes[i] - nothing for i in known.values()])
    if column.missing or column.spellings()[1]:
        # gaps and numbers are known as they are written
        read = [_fit(FunctionTransformer(np.asarray, kw_args={"dtype": "U"}))]
    else:
        read = []
    # OneHotEncoder looks up objects in half the time that fixed-width texts take
    read.append(_fit(FunctionTransformer(np.asarray, kw_args={"dtype": "O"})))
    shift = [affine(-nothing, np.ones(len(nothing)))] if column.unknown else []
    return make_pipeline(*read, *_coded(np.array(list(known), dtype=object), rows), *shift)


def _coded(categories, rows):
    """Return the steps from a category to its row of a matrix; 0 for one that is not listed."""
    indicators = OneHotEncoder(categories=[categories], handle_unknown="ignore")
    return [_fit(indicators, categories[:1, np.newaxis]), _product(rows)]


def _product(rows):
    """Return a step that multiplies by a matrix of shape (n, n_features)."""
    n, width = rows.shape
    return having(TruncatedSVD(width), components_=rows.T.copy(), n_features_in_=n)


def spellings(column):
    """Return all spellings of a category with its index among the levels; -1 for none.

    Numbers are written as Python and numpy write them, and there may be one blank at either end.

    Parameters
    ----------
    column : CategoryColumn

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If a category is written as a gap is.
    """
    other = column.levels.index("<unknown>") if column.unknown else -1
    known = {}
    for text in MISSING_TEXTS:
        cases = product(*({letter.lower(), letter.upper()} for letter in text))
        known.update(dict.fromkeys(map("".join, cases)))
    known.update(dict.fromkeys(WRITTEN_GAPS))
    gap = len(column.levels) - 1 if column.missing else other
    known = dict.fromkeys(sorted(known), gap)
    texts, numbers = column.spellings()
    for number, i in numbers.items():
        written = {str(number), *([str(int(number))] if number.is_integer() else [])}
        truths = [truth for truth, value in TRUTHS.items() if value == number]
        written |= {f(truth) for truth in truths for f in (str.lower, str.upper, str.title)}
        known.update(dict.fromkeys(sorted(written | ({"-0.0"} if number == 0 else set())), i))
    if unclear := [text for text, i in texts.items() if text in WRITTEN_GAPS and i != GAP]:
        raise ValueError(
            f"Column {column.name!r} has the category {unclear[0]!r}, which scikit-learn and ONNX "
            "cannot tell from a missing cell; call it something else in table and schema."
        )
    known = {text: gap if i == GAP else i for text, i in (known | texts).items()}
    return {
        f"{before}{text}{after}": i
        for text, i in known.items()
        for before in ("", " ")
        for after in ("", " ")
    }


def _cosine(term):
    (column,) = term.parts
    n = len(term.names)
    return make_pipeline(*_read(column), *_with_gaps(column, _turned(column.periodic, n), n))


def _pair(term):
    branches = [
        (f"factor{i}", FrozenEstimator(BRANCHES[type(factor)](factor)), [i])
        for i, factor in enumerate(term.factors)
    ]
    m, k = (len(factor.names) for factor in term.factors)
    first, second = np.repeat(np.arange(m), k), m + np.tile(np.arange(k), m)
    chosen = [("first", "passthrough", first), ("second", "passthrough", second)]
    return make_pipeline(
        ColumnTransformer(branches, sparse_threshold=0).fit(np.zeros((1, 2))),
        ColumnTransformer(chosen, sparse_threshold=0).fit(np.zeros((1, m + k))),
        # [first, second], whose product it is
        _fit(FunctionTransformer(np.split, kw_args={"indices_or_sections": 2, "axis": 1})),
        _fit(FunctionTransformer(np.prod, kw_args={"axis": 0})),
        affine(np.zeros(m * k), np.full(m * k, 1 / term.amplitude)),
    )


def _fourier(term):
    n, D = term.weights.shape
    sampler = _fit(RBFSampler(n_components=D, random_state=0), np.zeros((1, n)))
    return make_pipeline(
        _read_all(term.parts, 0.5),
        affine(np.full(n, 0.5), np.full(n, 0.5)),
        having(sampler, random_weights_=term.weights, random_offset_=term.offsets),
    )


BRANCHES = {
    CategoryTerm: _category,
    CosineTerm: _cosine,
    CycleTerm: _cycle,
    FourierTerm: _fourier,
    NumberTerm: _number,
    PairTerm: _pair,
}


def _filled(value, n_features=1):
    fill = SimpleImputer(strategy="constant", fill_value=float(value), keep_empty_features=True)
    return _fit(fill, np.zeros((1, n_features)))


def _fit(step, dummy=None):
    return step.fit(np.zeros((1, 1)) if dummy is None else dummy)

"""A TableEncoder as scikit-learn steps: one branch of a ColumnTransformer for each term."""

from itertools import product

import numpy as np
from scipy.linalg import helmert
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
)

from .number_scale import TRANSFORMS
from .plain_rows import affine, as_float64, between, having, known_columns
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
        _name_columns(encoder, np.asarray(names, dtype=object))
    return encoder.set_output(transform="default")


def _name_columns(step, names):
    """Make the steps that see cells refuse columns with other names."""
    if isinstance(step, FrozenEstimator):
        _name_columns(step.estimator, names)
    elif isinstance(step, Pipeline):
        _name_columns(step[0], names)
    elif isinstance(step, ColumnTransformer):
        for _, part, places in having(step, feature_names_in_=names).transformers_:
            _name_columns(part, names[places])
    elif isinstance(step, MaxAbsScaler):
        having(step, feature_names_in_=names)


def _read(column):
    """Return the steps from cells to z, between 0 and 1, with nan for gaps."""
    if column.codes:
        raise ValueError(
            f"Column {column.name!r} has numbers among its 'missing_values', which no step of "
            "scikit-learn makes gaps; write NaN for them in the table, and leave them out of the schema."
        )
    transform = TRANSFORMS[column.transform]
    low, high = transform(column.low), transform(column.high)
    steps = [known_columns(1), _fit(as_float64(gaps=column.missing)), between(column.low, column.high)]
    if column.transform:
        steps.append(_fit(FunctionTransformer(transform)))
    return [*steps, affine(low, high - low), between(0.0, 1.0)]


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
    if term.is_line:
        features = [affine(0.5, 0.5)]
    else:
        i = np.arange(1, term.n_curves + 1)
        features = [*_turned(column.periodic, term.n_curves), affine(0.0 * i, np.sqrt(i))]
    features = _with_gaps(column, features, term.n_curves)
    if column.missing:
        flag = _fit(MissingIndicator(features="all"))
        features = [FeatureUnion([("features", make_pipeline(*features)), ("missing", flag)])]
    return make_pipeline(*_read(column), *features)


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


def _with_gaps(column, features, n):
    """Return steps after which a gap is its fill, or 0 in all of the n features."""
    if not column.missing:
        return features
    if column.fill is None:
        return [*features, _filled(0.0, n)]
    return [_filled(_fill(column, None)), *features]


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
        return make_pipeline(*_read(column), *gaps, bins, *_coded(codes))
    known = spellings(column)
    texts = _fit(
        OrdinalEncoder(
            categories=[list(known)], handle_unknown="use_encoded_value", unknown_value=len(known)
        ),
        np.array([[next(iter(known))]], dtype=object),
    )
    nothing = np.zeros((1, codes.shape[1]))
    other = column.levels.index("<unknown>") if column.unknown else -1
    return make_pipeline(
        _fit(FunctionTransformer(np.asarray, kw_args={"dtype": "U"})),
        # OrdinalEncoder looks up objects in half the time that fixed-width texts take
        _fit(FunctionTransformer(np.asarray, kw_args={"dtype": "O"})),
        texts,
        *_coded(np.vstack([codes, nothing])[[*known.values(), other]]),
    )


def _coded(rows):
    """Return the steps from an index to the row of a matrix."""
    n, width = rows.shape
    places = np.arange(float(n))
    return [
        _fit(OneHotEncoder(categories=[places])),
        having(TruncatedSVD(width), components_=rows.T.copy(), n_features_in_=n),
    ]


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

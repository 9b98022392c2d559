"""Tables that differ in one record, in every container, and steps that a private search lets pass.

Containers choose their own types, as users' do: one gap makes floats of integers.
"""

import io

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from dpselect.preprocessing import BoundedScaler, NormClipper, TableEncoder

N, NAMES = 12, ["grade", "visits"]
LABELS = np.tile([0, 1], N // 2)
WHOLE = [[i % 3, i % 2] for i in range(N)]
TEXTS = [["abc"[i % 3], "xy"[i % 2]] for i in range(N)]
BOTH = [[i % 3, "xy"[i % 2]] for i in range(N)]
# what the record that differs may hold
NUMBERS = [[2, 1], [2.0, 1], [1.5, 1], [None, 1], [-0.0, 0], [True, 1], [10**12, 1]]
WORDS = [["a", "x"], ["c", "y"], ["a longer text", "x"], [None, "y"], ["", "x"]]
PAIRS = [[2, "x"], [2.0, "y"], [1.5, "a longer text"], [None, "x"], [2, None]]
FAMILIES = {"numbers": (WHOLE, NUMBERS), "texts": (TEXTS, WORDS), "both": (BOTH, PAIRS)}


def neighbours(family):
    """Tables as lists of rows, which differ in one record."""
    rows, others = FAMILIES[family]
    return [[*rows[:5], other, *rows[6:]] for other in others]


def pandas(*args, **kwargs):
    return pytest.importorskip("pandas").DataFrame(*args, **kwargs)


def read_csv(rows, **kwargs):
    pd = pytest.importorskip("pandas")
    text = pandas(rows, columns=NAMES, dtype=object).to_csv(index=False)
    return pd.read_csv(io.StringIO(text), **kwargs)


def pyarrow(rows):
    pytest.importorskip("pyarrow", exc_type=ImportError)
    return pandas(rows, columns=NAMES).convert_dtypes(dtype_backend="pyarrow")


def polars(rows):
    pl = pytest.importorskip("polars")
    return pl.DataFrame(rows, schema=NAMES, orient="row", strict=False)


def floats(rows):
    return np.array(rows, dtype=float)


def with_nan(rows):
    return [[np.nan if v is None else v for v in row] for row in rows]


def plain_array(rows):
    return np.array(with_nan(rows))


CONTAINERS = {
    "array": plain_array,
    "array of objects": lambda rows: np.array(with_nan(rows), dtype=object),
    "list": lambda rows: with_nan(rows),
    "pandas": lambda rows: pandas(rows, columns=NAMES),
    "pandas without names": pandas,
    "pandas objects": lambda rows: pandas(with_nan(rows), columns=NAMES, dtype=object),
    "csv": read_csv,
    "nullable": lambda rows: pandas(rows, columns=NAMES).convert_dtypes(),
    "pyarrow": pyarrow,
    "categories": lambda rows: pandas(rows, columns=NAMES).astype("category"),
    "polars": polars,
}
SPARSE = {
    "csr": lambda rows: sparse.csr_array(floats(rows)),
    "csc": lambda rows: sparse.csc_matrix(plain_array(rows).astype(float)),
    "coo": lambda rows: sparse.coo_array(floats(rows)),
    "sparse columns": lambda rows: pandas(floats(rows), columns=NAMES).astype(
        pytest.importorskip("pandas").SparseDtype(float)
    ),
}

IMPUTER = SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True)
FILL_TEXT = SimpleImputer(strategy="constant", fill_value="none", keep_empty_features=True)
ANY = {"handle_unknown": "ignore"}
ORDINAL = {"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -2}
SEED = {"random_state": 0}
GRADE = {"categories": ["0", 1, "2"], "missing": True}
GRADE_NUMBER = {"bounds": (0, 2), "missing": True}
VISITS_NUMBER = {"bounds": (0, 1), "missing": True, "fill": 0.5}


def table_encoder(grade, visits, **parameters):
    return TableEncoder({"grade": grade, "visits": visits}, **parameters)


STEPS = {
    "numbers": [
        BoundedScaler((0, 1)),
        NormClipper(),
        Binarizer(),
        FunctionTransformer(np.tanh),
        FunctionTransformer(np.tanh, validate=True, inverse_func=np.arctanh, check_inverse=True),
        FunctionTransformer(np.cbrt),
        GaussianRandomProjection(2, **SEED),
        SparseRandomProjection(2, **SEED),
        make_pipeline(IMPUTER, Normalizer()),
        MissingIndicator(features="all"),
        Normalizer(),
        PolynomialCountSketch(n_components=4, **SEED),
        PolynomialFeatures(2),
        RBFSampler(gamma=1.0, n_components=4, **SEED),
        SkewedChi2Sampler(skewedness=10.0, n_components=4, **SEED),
        make_pipeline(IMPUTER, SplineTransformer(knots=[[0.0, 0.0], [1.0, 0.5], [2.0, 1.0]])),
        make_pipeline(IMPUTER, TfidfTransformer(use_idf=False)),
        IMPUTER,
        OneHotEncoder(categories=[[0, 1, 2], [0, 1]], **ANY),
        OneHotEncoder(categories=[[0.0, 1.0, 1.5, 2.0], [0, 1]], drop="first", **ANY),
        OneHotEncoder(categories=[[0, 1, 2], [0, 1]], drop="if_binary", sparse_output=False),
        OneHotEncoder(categories=[[0, 1, 2, np.nan], [0, 1, 2, np.nan]], dtype=np.float32),
        OrdinalEncoder(categories=[[0, 1, 2], [0, 1]], **ORDINAL),
        OrdinalEncoder(categories=[[0, 1, 2], [0, 1]], dtype=np.uint8),
        make_pipeline(IMPUTER, MissingIndicator(features="all")),
        make_union(make_pipeline(IMPUTER, Normalizer()), MissingIndicator(features="all")),
        ColumnTransformer(
            [
                ("a", make_pipeline(IMPUTER, BoundedScaler((0, 2))), [0]),
                ("b", OneHotEncoder(categories=[[0, 1]], **ANY), slice(1, 2)),
            ],
            sparse_threshold=0,
        ),
        ColumnTransformer(
            [("a", make_pipeline(IMPUTER, PolynomialFeatures(2)), [1])],
            remainder=IMPUTER,
            sparse_threshold=0,
        ),
        table_encoder(GRADE_NUMBER, VISITS_NUMBER, expansion=3, n_fourier=2, cut_points={"grade": [1]}),
        table_encoder(GRADE, VISITS_NUMBER, categories="onehot", expansion="linear", sparse_output=True),
    ],
    "texts": [
        OneHotEncoder(categories=[["a", "b", "c"], ["x", "y"]], **ANY),
        OneHotEncoder(categories=[["a", "b", "c"], ["x", "y"]]),
        OrdinalEncoder(categories=[["a", "b", "c"], ["x", "y"]], **ORDINAL),
        make_pipeline(FILL_TEXT, OneHotEncoder(categories=[["a", "none"], ["none", "x"]], **ANY)),
        MissingIndicator(features="all"),
        ColumnTransformer(
            [("words", HashingVectorizer(n_features=4), 0), ("no", "drop", [1])],
            sparse_threshold=0,
        ),
        ColumnTransformer(
            [
                ("words", CountVectorizer(vocabulary=["longer", "text"]), 0),
                ("more", TfidfVectorizer(vocabulary=["text"], use_idf=False), 0),
            ],
            sparse_threshold=0,
        ),
        table_encoder({"categories": ["a", "c"], "unknown": True, "missing": True}, ["x", "y"]),
    ],
    "both": [
        OneHotEncoder(categories=[[0, 1, 2], ["x", "y"]], **ANY),
        OrdinalEncoder(categories=[[0, 1, 2], ["x", "y"]], **ORDINAL),
        MissingIndicator(features="all"),
        ColumnTransformer(
            [
                ("n", make_pipeline(IMPUTER, BoundedScaler((0, 2))), [0]),
                ("t", OneHotEncoder(categories=[["x", "y"]], **ANY), [1]),
            ],
            sparse_threshold=0,
        ),
        ColumnTransformer([("n", IMPUTER, [0]), ("t", "drop", [1])], sparse_threshold=0),
        table_encoder(GRADE_NUMBER, ["x", "y"]),
        ColumnTransformer([("t", TableEncoder(["0", "1"]), [0])], remainder="drop"),
    ],
}

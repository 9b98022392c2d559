import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from dpselect import DPLogisticRegression
from dpselect.preprocessing import (
    DATA_INDEPENDENT,
    BoundedScaler,
    NormClipper,
    TableEncoder,
    check_pipeline_privacy,
)


def check(step, **kwargs):
    check_pipeline_privacy(make_pipeline(step, DPLogisticRegression()), **kwargs)


class OwnStep(FunctionTransformer):
    pass


class OwnUnion(FeatureUnion):
    pass


SAFE = [
    BoundedScaler((0, 1)),
    NormClipper(),
    Normalizer(),
    PolynomialFeatures(3),
    FunctionTransformer(np.log1p),
    FunctionTransformer(np.invert),
    RBFSampler(gamma=0.5),
    GaussianRandomProjection(3),
    HashingVectorizer(),
    CountVectorizer(vocabulary=["word"]),
    TfidfVectorizer(vocabulary={"word": 0}, use_idf=False),
    TfidfTransformer(use_idf=False),
    SplineTransformer(knots=[[0.0], [1.0]]),
    ColumnTransformer([("s", SplineTransformer(knots=[[0.0], [1.0]]), [0])]),
    OneHotEncoder(categories=[["a", "b"]]),
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", drop="first"),
    OrdinalEncoder(categories=[["low", "high"]]),
    SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
    "passthrough",
    None,
    make_pipeline(BoundedScaler((0, 1)), PolynomialFeatures()),
    FeatureUnion([("one", RBFSampler(gamma=1.0)), ("two", "passthrough"), ("three", "drop")]),
    ColumnTransformer(
        [
            ("n", BoundedScaler((0, 1)), ["n"]),
            ("c", OneHotEncoder(categories=[["a"]], handle_unknown="ignore"), ["c"]),
        ],
        sparse_threshold=0,
    ),
]

UNSAFE = [
    (StandardScaler(), "BoundedScaler"),
    (MinMaxScaler(), "BoundedScaler"),
    (PCA(2), "GaussianRandomProjection"),
    (Nystroem(), "RBFSampler"),
    (SelectKBest(), "ColumnTransformer"),
    (TargetEncoder(), "OneHotEncoder"),
    (OneHotEncoder(), "categories="),
    (OneHotEncoder(categories=[["a", "b"]], min_frequency=2), "min_frequency"),
    (OneHotEncoder(categories=[["a", "b"]], max_categories=2), "max_categories"),
    (OrdinalEncoder(), "categories="),
    (RBFSampler(gamma="scale"), "gamma as a number"),
    (SimpleImputer(), "constant"),
    (SimpleImputer(strategy="constant"), "keep_empty_features=True"),
    (SimpleImputer(strategy="constant", fill_value=0), "keep_empty_features=True"),
    (KNNImputer(), "SimpleImputer"),
    (CountVectorizer(), "use HashingVectorizer, or give vocabulary="),
    (TfidfVectorizer(), "HashingVectorizer"),
    (TfidfVectorizer(use_idf=False), "give vocabulary="),
    (TfidfVectorizer(vocabulary=["word"]), "use_idf=False, for idf counts"),
    (TfidfTransformer(), "write use_idf=False"),
    (SplineTransformer(), "give knots="),
    (SplineTransformer(knots="quantile"), "give knots="),
    (
        ColumnTransformer([("s", SplineTransformer(knots=[[0.0], [1.0]], sparse_output=True), [0])]),
        "sparse_threshold=0",
    ),
    (OwnStep(), "trusted_steps=\\[OwnStep\\]"),
    (make_pipeline(BoundedScaler((0, 1)), StandardScaler()), "standardscaler"),
    (FeatureUnion([("p", PCA())]), "Step 'p'"),
    (ColumnTransformer([("a", StandardScaler(), [0])]), "Step 'a'"),
    (ColumnTransformer([("a", BoundedScaler((0, 1)), [0])], remainder=MinMaxScaler()), "remainder"),
    (FunctionTransformer(lambda X: X - X.mean(axis=0)), "np.log1p"),
    (FunctionTransformer(np.add), "np.log1p"),
    (FunctionTransformer(np.reciprocal), "other values for integers than for floats"),
    (FunctionTransformer(np.frompyfunc(str, 1, 1)), "other values for integers than for floats"),
    (FunctionTransformer(np.modf), "np.log1p"),
    (FunctionTransformer(np.tanh, kw_args={"out": np.zeros((3, 4))}), "leave kw_args"),
    (FunctionTransformer(np.tanh, inv_kw_args={"out": np.zeros((3, 4))}), "leave kw_args"),
    (GaussianRandomProjection(), "n_components as a number"),
    (SparseRandomProjection(), "n_components as a number"),
    (SimpleImputer(strategy="constant", keep_empty_features=True), "fill_value"),
    (ColumnTransformer([("n", PolynomialFeatures(), [0])]), "sparse_threshold=0"),
    (ColumnTransformer([("n", BoundedScaler((0, 1)), make_column_selector("n"))]), "names or numbers"),
    (ColumnTransformer([("n", "passthrough", [0])]), "sparse_threshold=0"),
    (ColumnTransformer([("n", MissingIndicator(features="all"), [0])]), "sparse_threshold=0"),
    (OwnUnion([("one", BoundedScaler((0, 1)))]), "container of its own kind"),
    (FrozenEstimator(BoundedScaler((0, 1))), "trusted_steps"),
    (
        ColumnTransformer([("c", OneHotEncoder(categories=[["a"]], handle_unknown="ignore"), [0])]),
        "sparse_threshold=0",
    ),
]


@pytest.mark.parametrize("step", SAFE, ids=lambda step: repr(step)[:60])
def test_safe_steps_pass(step):
    check(step)


@pytest.mark.parametrize("step, fix", UNSAFE, ids=lambda step: repr(step).partition(" at 0x")[0][:60])
def test_unsafe_steps_are_refused_with_a_fix(step, fix):
    with pytest.raises(ValueError, match=fix):
        check(step)


@pytest.mark.parametrize("trusted", [["ownstep"], [OwnStep], {OwnStep}])
def test_trusted_steps(trusted):
    check(OwnStep(), trusted_steps=trusted)
    check(make_pipeline(BoundedScaler((0, 1)), OwnStep()), trusted_steps=trusted)


def test_a_pipeline_in_last_place_is_checked_too():
    with pytest.raises(ValueError, match="standardscaler"):
        check_pipeline_privacy(
            make_pipeline(BoundedScaler((0, 1)), make_pipeline(StandardScaler(), DPLogisticRegression()))
        )


def test_trusted_steps_is_a_collection():
    with pytest.raises(TypeError, match="trusted_steps=\\['ownstep'\\]"):
        check(OwnStep(), trusted_steps="ownstep")


def test_the_last_step_is_not_checked():
    check_pipeline_privacy(make_pipeline(StandardScaler()))
    check_pipeline_privacy(DPLogisticRegression())


NUMBERS = np.abs(np.random.default_rng(0).normal(size=(3, 4)))
MISSING = np.array([[np.nan, 1.0], [np.nan, 2.0], [1.0, np.nan]])
LETTERS = np.array([["a"], ["b"], ["c"]])
ROWWISE = [
    (BoundedScaler((-1, 1)), NUMBERS),
    (NormClipper(), NUMBERS),
    (Binarizer(), NUMBERS),
    (CountVectorizer(vocabulary=["one", "four"]), ["one two", "three", "four"]),
    (FeatureHasher(8), [{"a": 1.0}, {"b": 2.0}, {"c": 1.0}]),
    (FunctionTransformer(np.tanh), NUMBERS),
    (GaussianRandomProjection(2, random_state=0), NUMBERS),
    (HashingVectorizer(n_features=8), ["one two", "three", "four"]),
    (MissingIndicator(features="all"), MISSING),
    (Normalizer(), NUMBERS),
    (OneHotEncoder(categories=[["a", "b", "c"]]), LETTERS),
    (OrdinalEncoder(categories=[["a", "b", "c"]]), LETTERS),
    (PolynomialCountSketch(n_components=3, random_state=0), NUMBERS),
    (PolynomialFeatures(2), NUMBERS),
    (RBFSampler(gamma=0.3, random_state=0), NUMBERS),
    (SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True), MISSING),
    (SkewedChi2Sampler(random_state=0), NUMBERS),
    (SparseRandomProjection(2, random_state=0), NUMBERS),
    (SplineTransformer(knots=np.outer([0.0, 0.5, 3.0], np.ones(4))), NUMBERS),
    (TableEncoder((0, 1), expansion=3), NUMBERS),
    (TfidfTransformer(use_idf=False), NUMBERS),
    (TfidfVectorizer(vocabulary=["one", "four"], use_idf=False), ["one two", "three", "four"]),
]


def test_every_step_that_may_pass_is_tried():
    assert {type(step) for step, _ in ROWWISE} == set(DATA_INDEPENDENT)


@pytest.mark.parametrize("step, X", ROWWISE, ids=lambda value: type(value).__name__)
def test_what_passes_treats_each_row_by_itself(step, X):
    """Fitted on neighbouring data, a step does the same to a row that is in both."""
    check(step)
    neighbour = [X[0], X[1], X[1]]
    neighbour = np.array(neighbour) if isinstance(X, np.ndarray) else neighbour

    def dense(Z):
        return Z.toarray() if sparse.issparse(Z) else np.asarray(Z)

    one, other = dense(step.fit(X).transform(X)), dense(step.fit(neighbour).transform(neighbour))
    np.testing.assert_array_equal(one[:2], other[:2])

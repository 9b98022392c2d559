"""Every step that the page "Migrating" says to use stands before a private model, in searches."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
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

from dpselect import AccuracyFirstSearchCV, DPLinearSVC, DPLogisticRegression, StabilityGridSearchCV
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, NormClipper, TableEncoder

N = 60
LABELS = np.tile([0, 1], N // 2)
NUMBERS = np.random.default_rng(0).uniform(0, 10, size=(N, 3))
GAPS = np.where(NUMBERS > 8, np.nan, NUMBERS)
TEXT = np.array([["ab"[i % 2], "xyz"[i % 3]] for i in range(N)], dtype=object)
CATEGORIES = [["a", "b"], ["x", "y", "z"]]
WORDS = ["warm", "dry", "cold"]
DOCUMENTS = [f"{WORDS[i % 3]} and {WORDS[i % 2]}" for i in range(N)]
FILL = {"strategy": "constant", "fill_value": 0, "keep_empty_features": True}
STEPS = [
    (BoundedScaler((0, 10)), NUMBERS),
    (DPBoundsScaler(epsilon=0.1), NUMBERS),
    (TableEncoder((0, 10)), NUMBERS),
    (OneHotEncoder(categories=CATEGORIES), TEXT),
    (OrdinalEncoder(categories=CATEGORIES), TEXT),
    (SimpleImputer(**FILL), GAPS),
    (GaussianRandomProjection(2), NUMBERS),
    (SparseRandomProjection(2), NUMBERS),
    (RBFSampler(gamma=1.0, n_components=8), NUMBERS),
    (PolynomialCountSketch(n_components=8), NUMBERS),
    (ColumnTransformer([("some", BoundedScaler((0, 10)), [0, 2])], sparse_threshold=0), NUMBERS),
    (HashingVectorizer(n_features=32), DOCUMENTS),
    (CountVectorizer(vocabulary=WORDS), DOCUMENTS),
    (TfidfVectorizer(vocabulary=WORDS, use_idf=False), DOCUMENTS),
    (make_pipeline(CountVectorizer(vocabulary=WORDS), TfidfTransformer(use_idf=False)), DOCUMENTS),
    (FeatureHasher(8, input_type="string"), TEXT),
    (SplineTransformer(knots=[[0, 0, 0], [5, 5, 5], [10, 10, 10]]), NUMBERS),
    (Normalizer(), NUMBERS),
    (Binarizer(threshold=5.0), NUMBERS),
    (SkewedChi2Sampler(n_components=8), NUMBERS),
    (PolynomialFeatures(2), NUMBERS),
    (FunctionTransformer(np.log1p), NUMBERS),
    (FeatureUnion([("gaps", MissingIndicator(features="all")), ("rest", SimpleImputer(**FILL))]), GAPS),
    (make_pipeline(BoundedScaler((0, 10)), RBFSampler(gamma=1.0), NormClipper()), NUMBERS),
]
# the page's words that are no steps
OTHERS = {"DPLinearSVC", "Pipeline"}


def names(step):
    """The classes of a step and of its parts."""
    parts = step.get_params().values() if hasattr(step, "get_params") else ()
    return {type(step).__name__, *(type(part).__name__ for part in parts)}


def test_every_step_of_the_page_is_tried():
    page = (Path(__file__).parents[1] / "doc" / "migrating.rst").read_text()
    table, after = page.split("Pipelines\n---------")[1].split("Steps are fitted on a dummy row")
    kernels = re.search(r"``SVC\(kernel=.*\n +- (.*)", page)[1]
    uses = re.findall(r"^     - (.*)$", table, re.MULTILINE)[1:]
    as_they_are = after.split("As they are: ")[1].split(". To check")[0]
    said = set(re.findall(r"(?:``|`)([A-Z]\w+)", " ".join([kernels, *uses, as_they_are]))) - OTHERS
    assert len(said) > 15
    assert said <= set().union(*(names(step) for step, _ in STEPS))


@pytest.mark.parametrize("step, X", STEPS, ids=lambda value: type(value).__name__)
def test_it_stands_in_searches_and_plans(step, X):
    model = DPLinearSVC if "NormClipper" in names(step) else DPLogisticRegression
    pipeline = Pipeline([("step", step), ("model", model(alpha=1.0, classes=[0, 1]))])
    stream = root_stream(0)
    search = StabilityGridSearchCV(pipeline, {"model__alpha": [0.1, 1.0]}, random_state=stream)
    accurate = AccuracyFirstSearchCV(
        pipeline,
        {"model__epsilon": [1.0, 100.0]},
        target=1e3,
        random_state=stream,
    )
    for model in (search,) if isinstance(step, DPBoundsScaler) else (search, accurate):
        assert model.fit(X, LABELS).predict(X[:4]).shape == (4,)
        assert str(model.plan(n_samples=N, n_features=np.ndim(X) + 1, example=X[:1]))

"""What the page "Migrating" says to use: steps before a private model, and each row of its tables."""

import functools
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import randint
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
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import KFold, ParameterSampler, StratifiedKFold
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

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
    calibrated,
    coef_interval,
)
from dpselect.exceptions import CertificateError, PrivacyLeakWarning
from dpselect.noise import root_stream
from dpselect.preprocessing import (
    BoundedScaler,
    DPBoundsScaler,
    NormClipper,
    TableEncoder,
    tabular_pipeline,
)

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


# ---- the other tables: each row that they have is tried here


SCHEMA = {"dose": (0, 10), "ward": ["A", "B"]}
RNG = np.random.default_rng(0)
TABLE = np.array([[RNG.uniform(0, 10), "AB"[i % 2]] for i in range(4000)], dtype=object)
ILL = (TABLE[:, 0].astype(float) + 3 * (TABLE[:, 1] == "A") > RNG.normal(7, 2, 4000)).astype(int)
ROWS_OF_NUMBERS = 0.1 * RNG.normal(size=(4000, 2))
LINEAR = (DPLogisticRegression, DPLinearSVC, DPHuberRegressor, DPPoissonRegressor)


def search(grid=None, estimator=None, fit=None, **parameters):
    model = estimator or tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    made = StabilityGridSearchCV(model, grid or {}, random_state=root_stream(0), **parameters)
    return made.fit(TABLE, ILL, **fit or {})


def refused(error, said, **parameters):
    with pytest.raises(error, match=said):
        search(**{"grid": {"model__alpha": [0.1, 1]}} | parameters)
    return True


def weighted(model, **weights):
    return model.set_params(random_state=root_stream(0)).fit(ROWS_OF_NUMBERS, ILL, **weights)


def no_best_score():
    assert not hasattr(search(), "best_score_")
    assert search(evaluation=0.2).evaluation_.metric("roc_auc").value > 0.5
    return True


def no_exact_scores():
    with pytest.raises(KeyError, match="mean_test_score"):
        search().cv_results_["mean_test_score"]
    public = {"considered", "training_stability", "score_span", "sensitivity", "noise_scale"}
    found = search({"encoder__expansion": [2, 4]}, strategy="stability").cv_results_
    assert public <= {*found}
    return True


def scores_by_name():
    grid = {"encoder__expansion": [2, 4]}
    for name in ("brier", "ramp", "accuracy", "roc_auc", "f1"):
        assert search(grid, scoring=name, strategy="budget_split").best_index_ in (0, 1)
    refused(CertificateError, "'brier' or 'ramp'", grid=grid, scoring="roc_auc", strategy="stability")
    return True


def several_scores():
    grid, scores = {"encoder__expansion": [2, 4]}, ["roc_auc", "f1"]
    with pytest.warns(UserWarning, match="'f1' are not computed"):
        return search(grid, scoring=scores, refit="roc_auc", strategy="budget_split")


def persons_are_protected():
    found = search(fit={"groups": np.arange(4000) // 2})
    assert found.privacy_.adjacency.unit == "person"
    return True


def weights_with_a_bound():
    for kind in LINEAR[:2]:
        model = kind(classes=[0, 1], max_sample_weight=2.0)
        assert weighted(model, sample_weight=np.ones(4000)).coef_.size
    with pytest.raises((TypeError, ValueError), match="sample_weight"):
        weighted(DPRidge(target_range=(0, 1)), sample_weight=np.ones(4000))
    return True


def weights_reach_the_model():
    model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1], max_sample_weight=2.0))
    search(estimator=model, fit={"model__sample_weight": np.ones(4000)})
    return True


def drawn():
    draws = ParameterSampler({"encoder__expansion": randint(1, 6)}, n_iter=3, random_state=0)
    assert len(search(draws).cv_results_["params"]) == 3
    return True


def all_metrics(*names):
    def check():
        evaluation = search(evaluation=0.2).evaluation_
        assert all(evaluation.metric(name).low <= evaluation.metric(name).high for name in names)
        return True

    return check


def of_classes_and_of_numbers():
    all_metrics("roc_auc", "f1", "log_loss", "brier", "recall")()
    model = tabular_pipeline(SCHEMA, DPHuberRegressor(target_range=(0, 1)))
    found = search(estimator=model, evaluation=0.2).evaluation_
    assert {"r2", "mae", "rmse"} <= {*found.metrics}
    return True


def thresholds():
    model = search(evaluation=0.2)
    for aim in ({"rate": 0.2}, {"recall": 0.8}, {"precision": 0.6}, {}):
        assert calibrated(model, model.evaluation_, **aim).privacy_.epsilon == model.privacy_.epsilon
    return True


def curve():
    made = StabilityGridSearchCV(DPLogisticRegression(classes=[0, 1]), {})
    few, many = [made.plan(n, 10).advice[0] for n in (100, 100_000)]
    assert few != many
    return True


def intervals():
    model = weighted(DPLogisticRegression(max_derivative=None, classes=[0, 1]))
    found = coef_interval(model, ROWS_OF_NUMBERS, ILL, epsilon=1.0, n_samples=4000)
    assert len(found.coef) == 3
    return True


def own_parameters(*kinds, refused=(), **parameters):
    def check():
        for kind in kinds:
            model = kind(**parameters | {"random_state": root_stream(0)})
            assert model.fit(ROWS_OF_NUMBERS, ILL).privacy_.epsilon == 1.0
        for name in refused:
            with pytest.raises(TypeError, match=f"no parameter {name}, which other libraries have"):
                kinds[0](**{name: 1})
        return True

    return check


def balanced_is_refused():
    own_parameters(DPLogisticRegression, classes=[0, 1], class_weight={0: 1.0, 1: 5.0})()
    with pytest.raises(ValueError, match="counts the labels"):
        own_parameters(DPLogisticRegression, classes=[0, 1], class_weight="balanced")()
    return True


def labels_are_named():
    with pytest.warns(PrivacyLeakWarning, match="classes"):
        weighted(DPLogisticRegression())
    return True


def solved_exactly():
    own_parameters(DPLogisticRegression, classes=[0, 1], tol=1e-10)()
    with pytest.raises(ValueError, match="tol"):
        own_parameters(DPLogisticRegression, classes=[0, 1], tol=1e-4)()
    return True


def the_same_candidates_as_scikit_learn():
    found = search({"model__alpha": [0.1, 1]}, epsilon=float("inf"), cv=KFold(3))
    assert found.best_score_ > 0.5
    return True


GRID = {"model__alpha": [0.1, 1]}
FITS = functools.partial(own_parameters, classes=[0, 1])
TRIED = {
    # What is different
    "``best_score_``": no_best_score,
    '``cv_results_["mean_test_score"]``, ranks, times': no_exact_scores,
    "``scoring``: any": scores_by_name,
    "``scoring``: a list or a dict, and ``refit``: a name": several_scores,
    "``refit``: a function": lambda: refused(ValueError, "refit", refit=lambda found: 0),
    "``cv=5``: stratified, in order": lambda: refused(ValueError, "labels", cv=StratifiedKFold(5)),
    "``fit(groups=...)``, for splitters by group": persons_are_protected,
    "``error_score``": the_same_candidates_as_scikit_learn,
    "``return_train_score=True``": lambda: refused(ValueError, "exact", return_train_score=True),
    "``fit(X, y, sample_weight=...)``": lambda: (weights_reach_the_model(), weights_with_a_bound()),
    "``random_state`` of estimators": lambda: search(GRID),
    "``estimator``: any": lambda: refused(
        CertificateError, "private", grid={"C": [1]}, estimator=LogisticRegression()
    ),
    # Other searches and functions
    "``RandomizedSearchCV``": drawn,
    "``HalvingGridSearchCV``, ``HalvingRandomSearchCV``": lambda: search(GRID),
    "``cross_val_score``, ``cross_validate``, ``cross_val_predict``": all_metrics("roc_auc"),
    'several metrics, ``scoring=["roc_auc", "f1"]``': several_scores,
    "``make_scorer(...)``": lambda: refused(
        CertificateError, "use one of 'brier'", scoring=make_scorer(fbeta_score, beta=2)
    ),
    "``roc_auc_score``, ``f1_score``, ``log_loss``, ``brier_score_loss``, ``recall_score``": (
        of_classes_and_of_numbers
    ),
    "``fbeta_score(beta=2)``": lambda: search(evaluation=0.2).evaluation_.metric("fbeta", beta=2),
    "``train_test_split(X, y, stratify=y)``": all_metrics("roc_auc"),
    "``TunedThresholdClassifierCV``, ``CalibratedClassifierCV``": thresholds,
    "``learning_curve``": curve,
    "``permutation_importance``": intervals,
    "``DummyClassifier``": all_metrics("lift"),
    # Parameters of the models
    "``LogisticRegression(C)``, ``LinearSVC(C)``": FITS(
        DPLogisticRegression, DPLinearSVC, alpha=1 / 400, refused=["C"]
    ),
    "``Ridge(alpha)``": own_parameters(DPRidge, alpha=1 / 400, target_range=(0, 1)),
    "``HuberRegressor(epsilon, alpha)``": own_parameters(DPHuberRegressor, target_range=(0, 1)),
    "``PoissonRegressor(alpha)``": own_parameters(DPPoissonRegressor, alpha=0.1, target_bound=1),
    "``class_weight={...}``": balanced_is_refused,
    "``fit_intercept``": FITS(DPLogisticRegression, fit_intercept=False),
    "labels learned from ``y``": labels_are_named,
    "``tol``, ``max_iter``": solved_exactly,
    "``KernelDensity``": lambda: DPHistogramDensity(bounds=(-1, 1)).fit(ROWS_OF_NUMBERS),
    '``SVC(kernel="rbf", gamma=...)``': lambda: STEPS,  # tried above
}


def test_every_row_is_tried():
    page = (Path(__file__).parents[1] / "doc" / "migrating.rst").read_text()
    tables = page.split("What is different\n---")[1].split("Pipelines\n---")[0]
    lefts = re.findall(r"^   \* - (.*)$", tables, re.MULTILINE)
    assert {*lefts} - {"GridSearchCV", "scikit-learn"} == {*TRIED}


@pytest.mark.parametrize("row", TRIED)
def test_what_a_row_says(row):
    assert TRIED[row]()

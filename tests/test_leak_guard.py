"""Every leak of the page "Leaks": seen or not, as its table says."""

import inspect
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import dpselect
from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    PrivacyLeakError,
    PrivacyLeakWarning,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    Thresholdout,
    ThresholdoutFeatureSelector,
    config_context,
)
from dpselect.preprocessing import (
    BoundedScaler,
    DPBoundsScaler,
    NormClipper,
    check_pipeline_privacy,
)

# no message may hold one of these
SECRETS = (0.123456789, 987654)
MODEL = DPLogisticRegression(alpha=0.1, classes=[0, 987654])
DENSITY = DPHistogramDensity(bounds=(-1, 1), bin_width=1.0)
GRID = {"alpha": [0.1, 1.0]}


@pytest.fixture
def data():
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    X[7] = SECRETS[0]
    return X, np.where(X[:, 0] > 0, 987654, 0)


def fitted_names(estimator):
    return vars(estimator).keys() - estimator.get_params(deep=False).keys()


def assert_guarded(category, message, action, estimator):
    """A warning, an error in strict mode with the same words, no data in them, nothing changed."""
    before = fitted_names(estimator)
    with pytest.raises(PrivacyLeakError, match=message) as caught, config_context(strict=True):
        action()
    assert fitted_names(estimator) == before
    assert caught.value.__context__ is None
    with pytest.warns(category, match=message) as warned:
        action()
    said = [str(warning.message) for warning in warned if warning.category is category]
    assert said == [str(caught.value)]
    assert not any(repr(secret) in said[0] for secret in SECRETS)


def says_nothing(action):
    with warnings.catch_warnings(), config_context(strict=True):
        warnings.simplefilter("error")
        return action()


# --- labels

LEARNS = [
    StabilityGridSearchCV(DPLogisticRegression(), GRID),
    StabilityGridSearchCV(DPLogisticRegression(), GRID, strategy="stability"),
    AccuracyFirstSearchCV(DPLogisticRegression(alpha=0.1), {"epsilon": [1.0, 1e6]}, target=0.1),
]


@pytest.mark.parametrize("estimator", LEARNS, ids=lambda estimator: type(estimator).__name__)
def test_labels(estimator, data):
    estimator = clone(estimator)
    assert_guarded(
        PrivacyLeakWarning, "classes=None.*give classes=", lambda: estimator.fit(*data), estimator
    )


def test_a_model_that_was_fitted_stays_as_it_was(data):
    model = clone(MODEL).fit(*data)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(PrivacyLeakError), config_context(strict=True):
        model.set_params(classes=None).fit(data[0][:50], data[1][:50])
    assert all(vars(model)[name] is value for name, value in before.items())


def test_without_privacy_labels_are_no_leak(data):
    model = says_nothing(lambda: DPLogisticRegression(float("inf")).fit(*data))
    assert model.privacy_.epsilon == float("inf")


def test_no_other_default_learns_from_the_records():
    """Every parameter that is None by default, with what None means."""
    harmless = {
        "random_state": "noise from the operating system",
        "n_jobs": "one job",
        "cv": "shuffled folds, from the number of records",
        "scoring": "the model's own score",
        "coef_bound": "a bound from other parameters",
        "cut_points": "no cuts",
        "data_norm_l1": "no bound of its own",
        "class_weight": "all labels count alike",
        "max_sample_weight": "weights of records are refused",
        "target_range": "refused",
        "base_rate": "the penalty counts from 0",
        "n_epsilon": "the map does not follow it",
        "class_share": "as 1/2",
        "n_mu": "no delta",
        "columns": "all of the schema",
        "ranges": "the bounds of the schema",
        "conversion": "an account for other neighbours is refused",
        "delta_parameter": "the model has no delta",
        "classes_parameter": "as classes=None, unless public records have all labels: a warning",
        "public_records": "no others join those of the fit",
        "target_bound": "refused",
        "bounds": "refused",
        "memory": "no cache",
        "transform_input": "no fit parameters",
        "ledger": "the one that is open, or none",
        "evaluation": "nothing is evaluated",
    }
    estimators = [
        getattr(module, name) for module in (dpselect, dpselect.preprocessing) for name in module.__all__
    ]
    seen = set()
    for estimator in estimators:
        # (Ladder's step=None is no private statement in any case: its loss is infinite)
        if inspect.isclass(estimator) and hasattr(estimator, "fit") and estimator is not dpselect.Ladder:
            parameters = inspect.signature(estimator).parameters.values()
            seen |= {parameter.name for parameter in parameters if parameter.default is None}
    assert seen == {"classes", *harmless}


# --- scores of training records

SCORED = [
    StabilityGridSearchCV(MODEL, GRID),
    StabilityGridSearchCV(make_pipeline(BoundedScaler((-1, 1)), MODEL), {}),
    AccuracyFirstSearchCV(MODEL, {"epsilon": [1.0, 1e6]}, target=0.1),
]


@pytest.mark.parametrize("estimator", SCORED, ids=lambda estimator: type(estimator).__name__)
def test_scores_of_training_records(estimator, data):
    X, y = data
    model = clone(estimator).fit(X, y)
    assert_guarded(
        PrivacyLeakWarning,
        "trained on.*score records that took no part",
        lambda: model.score(X, y),
        model,
    )
    says_nothing(lambda: model.score(X.copy(), y))


def test_likelihoods_of_training_records(data):
    model = clone(DENSITY).fit(data[0])
    assert_guarded(PrivacyLeakWarning, "trained on", lambda: model.score_samples(data[0]), model)


def test_training_scores_of_a_foreign_search(data):
    search = GridSearchCV(clone(MODEL), GRID, return_train_score=True, cv=2)
    with pytest.warns(PrivacyLeakWarning, match="trained on"):
        search.fit(*data)


def test_scores_that_cannot_be_seen(data):
    X, y = data
    model = clone(MODEL).fit(X, y)
    pipeline = make_pipeline(BoundedScaler((-1, 1)), clone(MODEL)).fit(X, y)
    says_nothing(lambda: accuracy_score(y, model.predict(X)))
    says_nothing(lambda: model.score(X.tolist(), y))
    says_nothing(lambda: pipeline.score(X, y))


def test_there_is_no_best_score(data):
    search = StabilityGridSearchCV(MODEL, GRID).fit(*data)
    with pytest.raises(AttributeError, match="not paid for"):
        search.best_score_  # noqa: B018


# --- steps before the model

LEARNING_STEPS = [
    StandardScaler(),
    MinMaxScaler(),
    PCA(),
    SimpleImputer(),
    OneHotEncoder(),
    TfidfVectorizer(),
    SelectKBest(),
]


@pytest.mark.parametrize("step", LEARNING_STEPS, ids=lambda step: type(step).__name__)
def test_steps_that_learn(step, data):
    pipeline = make_pipeline(step, clone(MODEL))
    searches = [
        StabilityGridSearchCV(pipeline, {}),
        AccuracyFirstSearchCV(pipeline, {"dplogisticregression__epsilon": [1.0, 2.0]}, target=0.1),
    ]
    for search in searches:
        with pytest.raises(ValueError, match="learns from the data, or may.*; ") as caught:
            search.fit(*data)
        assert not fitted_names(search)
        assert not any(repr(secret) in str(caught.value) for secret in SECRETS)
    with pytest.raises(ValueError, match="learns from the data"):
        check_pipeline_privacy(pipeline)


def test_steps_that_cannot_be_seen(data):
    model = says_nothing(lambda: make_pipeline(StandardScaler(), clone(MODEL)).fit(*data))
    assert hasattr(model[-1], "privacy_")


def test_a_search_over_nothing_is_the_checked_fit(data):
    pipeline = make_pipeline(BoundedScaler((-1, 1)), NormClipper(), clone(MODEL))
    search = says_nothing(lambda: StabilityGridSearchCV(pipeline, {}, epsilon=0.5).fit(*data))
    assert search.privacy_.epsilon == search.best_estimator_[-1].epsilon == 0.5


# --- bounds, foreign searches, splits


def test_bounds_that_were_looked_up_cannot_be_seen(data):
    X, y = data
    bounds = list(zip(X.min(axis=0), X.max(axis=0)))
    pipeline = make_pipeline(BoundedScaler(bounds), clone(MODEL))
    says_nothing(lambda: StabilityGridSearchCV(pipeline, {}).fit(X, y))
    pipeline = make_pipeline(DPBoundsScaler(0.5), clone(MODEL))
    assert StabilityGridSearchCV(pipeline, {}).fit(X, y).privacy_.epsilon == 1.0


COMPARED = {
    "GridSearchCV": lambda data, model: GridSearchCV(model, GRID, cv=2).fit(*data),
    "of a Pipeline": lambda data, model: GridSearchCV(
        make_pipeline(BoundedScaler((-1, 1)), model), {}, cv=2
    ).fit(*data),
    # one after the other: Python's warnings get lost where two threads change the filters
    "in threads": lambda data, model: cross_val_score(model, *data, cv=2, n_jobs=2, pre_dispatch=1),
    "cross_val_score": lambda data, model: cross_val_score(model, *data, cv=2),
    "of a search": lambda data, model: cross_val_score(
        StabilityGridSearchCV(model, GRID, epsilon=model.epsilon, cv=2), *data, cv=2
    ),
}


@pytest.mark.parametrize("name", COMPARED)
def test_searches_of_scikit_learn_are_warned_of_once(name, data):
    with warnings.catch_warnings(record=True) as caught, parallel_config("threading"):
        warnings.simplefilter("always")
        COMPARED[name](data, clone(MODEL))
    said = [w for w in caught if "k fits lose k times" in str(w.message)]
    assert len(said) == 1 and said[0].category is PrivacyLeakWarning
    # at the line that searches, not at one of scikit-learn
    assert said[0].filename == __file__ or name == "in threads"
    says_nothing(lambda: COMPARED[name](data, clone(MODEL).set_params(epsilon=float("inf"))))
    with pytest.raises(ValueError, match="k fits lose k times"), config_context(strict=True):
        warnings.simplefilter("ignore")
        COMPARED[name](data, clone(MODEL))


def test_other_fits_are_no_search_of_scikit_learn(data):
    says_nothing(
        lambda: StabilityGridSearchCV(clone(MODEL), GRID, cv=2, strategy="data_split").fit(*data)
    )
    models = says_nothing(lambda: [clone(MODEL).fit(*data) for _ in range(3)])
    assert len(models) == 3


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"cv": StratifiedKFold(5)}, ValueError),
        ({"cv": [(np.arange(100), np.arange(100, 200))]}, ValueError),
        ({"scoring": "average_precision"}, CertificateError),
        ({"return_train_score": True}, ValueError),
    ],
)
def test_what_a_search_refuses(parameters, error, data):
    search = StabilityGridSearchCV(MODEL, GRID, **parameters)
    with pytest.raises(error, match="; "):
        search.fit(*data)
    assert not fitted_names(search)


def test_groups_and_weights(data):
    X, y = data
    with pytest.raises(ValueError, match="groups must have one id for each row"):
        StabilityGridSearchCV(MODEL, GRID).fit(X, y, groups=y[:-1])
    with pytest.raises(ValueError, match="sample_weight.*write max_sample_weight"):
        StabilityGridSearchCV(MODEL, GRID).fit(X, y, sample_weight=np.ones(200))
    with pytest.raises(CertificateError, match="sample_weight.*write DPHuberRegressor"):
        StabilityGridSearchCV(DPRidge(target_range=(-1, 1)), GRID).fit(X, y, sample_weight=np.ones(200))


# --- seeds, and the strategy that is not private

SEEDED = [
    StabilityGridSearchCV(MODEL, GRID, random_state=0),
    StabilityGridSearchCV(make_pipeline(DPBoundsScaler(0.5, random_state=0), MODEL), {}),
    AccuracyFirstSearchCV(MODEL, {"epsilon": [1.0, 1e6]}, target=0.1, random_state=0),
    ThresholdoutFeatureSelector(clone(MODEL), n_features_to_select=1, budget=1000, random_state=0),
]


@pytest.mark.parametrize("estimator", SEEDED, ids=lambda estimator: type(estimator).__name__)
def test_seeds(estimator, data):
    estimator = clone(estimator)
    assert_guarded(SeededNoiseWarning, "use random_state=None", lambda: estimator.fit(*data), estimator)


def test_seeds_of_a_holdout(data):
    X, y = data
    holdout = Thresholdout(random_state=0)
    assert_guarded(
        SeededNoiseWarning,
        "use random_state=None",
        lambda: holdout.fit(X[:100], y[:100], X_holdout=X[100:], y_holdout=y[100:]),
        holdout,
    )


def test_an_exact_choice(data):
    search = StabilityGridSearchCV(MODEL, GRID, strategy="control")
    assert_guarded(PrivacyLeakWarning, "exact scores.*public records", lambda: search.fit(*data), search)
    assert search.privacy_.epsilon == float("inf")

import math
import pickle
from itertools import product

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from scipy.stats import binom
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    AccuracyNotReachedError,
    CertificateError,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    SeededNoiseWarning,
)
from dpselect.mechanisms.above_threshold import HIGH_FRACTION, LOW_FRACTION
from dpselect.metrics import BrierScore, ClippedSquaredErrorScore
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, NormClipper
from dpselect.records.public_shape import PublicShape
from tests.marks import a_third, slow_but

GRID = {"epsilon": np.geomspace(0.01, 100, 30)}
LABELS = ["ill", "well"]
PATHS = ["above_threshold", "published_above_threshold", "reduced_above_threshold", "brownian"]
STATIC = ["certified", "theory"]
METHODS = [*STATIC, *PATHS, "predict_verify", "doubling"]
RIDGE = DPRidge(alpha=0.1, target_range=(-1, 1))
LOGISTIC = DPLogisticRegression(alpha=0.1, classes=LABELS)
OUTPUT = clone(LOGISTIC).set_params(perturbation="output")
DENSITY = DPHistogramDensity(bin_width=0.25, bounds=(0, 1))
ESTIMATORS = [
    RIDGE,
    clone(RIDGE).set_params(norm="l2"),
    clone(RIDGE).set_params(perturbation="output"),
    clone(RIDGE).set_params(perturbation="objective"),
    LOGISTIC,
    OUTPUT,
    clone(LOGISTIC).set_params(max_derivative=None),
    clone(OUTPUT).set_params(max_derivative=None),
    DPLinearSVC(alpha=0.1, classes=LABELS),
    DPLinearSVC(alpha=0.1, classes=LABELS, perturbation="output", norm="l1"),
    DENSITY,
    clone(DENSITY).set_params(noise="discrete_laplace"),
]


def make(n, p=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) / 3
    signal = X[:, 0] - X[:, -1] / 2
    labels = np.where(signal + rng.logistic(size=n) / 8 > 0, "well", "ill")
    return X, {"classifier": labels, "regressor": signal / 2 + rng.normal(size=n) / 10}


TABLE = make(2000)
SMALL = make(400)


def records(estimator, table=TABLE):
    X, targets = table
    if is_classifier(estimator):
        return X, targets["classifier"]
    if is_regressor(estimator):
        return X, targets["regressor"]
    return np.clip(X[:, :1] + 0.4, 0, 1), None


def search(estimator=RIDGE, grid=GRID, target=0.1, **parameters):
    # a test of accuracy may refuse every model, though rarely
    parameters.setdefault("on_failure", "last")
    # of the whole grid; what limits it has tests of its own
    parameters.setdefault("max_epsilon", np.inf)
    return AccuracyFirstSearchCV(estimator, grid, target=target, **parameters)


def seeded_fit(data, *args, seed=0, **parameters):
    with pytest.warns(SeededNoiseWarning):
        return search(*args, random_state=seed, **parameters).fit(*data)


def fitted_attributes(search):
    return [name for name in vars(search) if name.endswith("_")]


def name_of(value):
    return value if isinstance(value, str) else repr(value).replace("classes=['ill', 'well']", "")


def served(estimator, method):
    """Whether a method serves an estimator."""
    perturbation = estimator.get_params().get("perturbation")
    if method == "theory":
        return perturbation != "covariance"
    return method not in PATHS or perturbation != "objective"


THREE = [clone(model).set_params(classes=[*LABELS, "unknown"]) for model in (LOGISTIC, OUTPUT)]


# --- every method with every estimator


def geometry(model):
    """R, the radius of the ball of models, and the span of the loss on it, in the test's own words."""
    R, alpha = math.sqrt(2), 0.1
    if isinstance(model, DPRidge):
        ball = 1 / (2 * math.sqrt(alpha))
        return R, ball, (1 + R * ball) ** 2 / 2
    if isinstance(model, DPLogisticRegression):
        # sup u / (1 + e^u) = 0.2785, and ln(1 + e^m) - ln(1 + e^-m) = m
        L = 0.6 if model.max_derivative == "auto" else 1.0
        ball = min(L * R / alpha, math.sqrt(0.27846454276107 / alpha))
        m, bend = R * ball, math.log(L / (1 - L)) if L < 1 else math.inf
        if m > bend:  # straight beyond
            return R, ball, math.log1p(math.exp(bend)) + L * (m - bend) - math.log1p(math.exp(-m))
        return R, ball, m
    # the hinge, rounded on [1/2, 3/2]; 0 at margins beyond
    ball = math.sqrt(1.5**2 / 4 / alpha)
    assert R * ball > 1.5
    return R, ball, 1 + R * ball


def sensitivity(model, n):
    """How far one record moves the excess risk, and its square root."""
    if isinstance(model, DPHistogramDensity):
        return 4 / (n * 0.25), math.sqrt(2 / 0.25) / n
    R, ball, span = geometry(model)
    # ridge: half the change of the gradient; else the gradient
    G = R * (2 + R * ball) / 2 if isinstance(model, DPRidge) else R
    G *= getattr(model, "largest_derivative", 1.0)
    return 2 * span / n, 2 * G / (n * math.sqrt(2 * 0.1))


def losses_of_tests(search, n, target=0.1, gamma=0.1):
    """The losses of the tests that a fitted search made, from the published formulas."""
    excess, root = sensitivity(search.estimator, n)
    T, level = len(GRID["epsilon"]), search.best_index_ + 1
    if search.method_ in STATIC:
        return []
    if search.method_ == "published_above_threshold":
        return [16 * excess * math.log(2 * T / gamma) / target]
    if search.method_ == "above_threshold":
        return [8 * excess * math.log(1.5**0.75 * math.sqrt(T) / gamma) / target]
    if search.method_ in ("reduced_above_threshold", "brownian"):
        share = LOW_FRACTION + (HIGH_FRACTION - LOW_FRACTION) * (level / T) ** 2
        y = 2 - math.sqrt(4 - 6 * gamma / T)
        return [-4 * excess * math.log(y) / ((1 - share) * target)]
    asked = len(search.path_["tested"])
    if search.method_ == "doubling":
        levels = [GRID["epsilon"][0]]
        while (rest := GRID["epsilon"][GRID["epsilon"] >= 2 * levels[-1]]).size:
            levels.append(rest[0])
        assert list(search.path_["epsilon"]) == levels[:asked]
        return [excess * math.log(len(levels) / (2 * gamma)) / (target / 2)] * asked
    unit, first = math.sqrt(target), math.log(1 / (2 * gamma / 2))
    # the margin of a question is a public share of the root of the target
    share = root * first / (search.plan_.chosen.testing * unit)
    assert 0.03 < share < 0.61
    return [root * math.log(1 / (2 * gamma / 2**k)) / (share * unit) for k in range(1, asked + 1)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_every_method_with_every_estimator(estimator, method):
    X, y = records(estimator)
    if not served(estimator, method):
        with pytest.raises(CertificateError, match="perturbation"):
            search(estimator, method=method, delta=1e-6).fit(X, y)
        return
    s = seeded_fit((X, y), estimator, method=method, delta=1e-6)
    assert s.reached_ and s.method_ == s.plan_.method == method
    assert s.best_epsilon_ == GRID["epsilon"][s.best_index_]
    assert s.best_params_ == {"epsilon": s.best_epsilon_}
    assert s.best_estimator_.epsilon == s.best_epsilon_
    assert s.n_features_in_ == X.shape[1] and not np.isnan(s.score(X.copy(), y))
    loss = s.privacy_
    assert loss.delta == (1e-6 if method == "brownian" else 0.0) and loss.seeded
    if method in STATIC:
        assert loss.kind == "differential privacy" and s.path_ == {}
        assert [release.epsilon for release in loss.releases] == [s.best_epsilon_]
        return
    assert loss.kind == "ex-post" and len(s.path_["model"]) == len(s.path_["epsilon"])
    assert s.path_["epsilon"][-1] == s.best_epsilon_
    (whole,) = loss.parts
    generating, testing = whole.parts
    assert (generating.label, testing.label) == ("generating", "testing")
    independent = method == "doubling" or estimator.get_params().get("perturbation") == "objective"
    levels = s.path_["epsilon"] if independent else s.path_["epsilon"][-1:]
    np.testing.assert_allclose([part.epsilon for part in generating.parts], levels)
    np.testing.assert_allclose(
        [part.epsilon for part in testing.parts], losses_of_tests(s, len(X)), rtol=1e-5
    )
    assert loss.epsilon == pytest.approx(generating.epsilon + testing.epsilon, rel=1e-12)
    if len(s.path_["answer"]):
        assert len(s.path_["answer"]) == len(s.path_["tested"]) == len(testing.parts)
        assert s.path_["tested"][-1] == len(s.path_["model"]) - 1
    # the model that is released is the last of the path
    last = s.path_["model"][-1].ravel()
    if isinstance(estimator, DPHistogramDensity):
        np.testing.assert_allclose(s.best_estimator_.density_.ravel() * 0.25, last)
    else:
        model = s.best_estimator_
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), last)


@pytest.mark.parametrize("method", ["above_threshold", "brownian", "predict_verify", "doubling"])
@pytest.mark.parametrize(
    "estimator, score, target",
    [
        (RIDGE, "clipped_squared_error", 0.5),
        (OUTPUT, BrierScore(), 0.5),
        (DENSITY, "integrated_squared_error", -0.8),
    ],
    ids=name_of,
)
def test_models_and_tests_of_a_score_read_other_records(estimator, score, target, method):
    X, y = records(estimator)
    s = search(estimator, target=target, criterion=score, method=method, delta=1e-6).fit(X, y)
    (whole,) = s.privacy_.parts
    assert whole.composition == "parallel" and whole.kind == "ex-post"
    generating, testing = whole.parts
    assert s.privacy_.epsilon == max(generating.epsilon, testing.epsilon)
    assert s.privacy_.delta == (1e-6 if method == "brownian" else 0.0)
    target = -0.8 if y is None else 1.0
    risk = search(estimator, target=target, criterion="risk", method=method, delta=1e-6)
    (whole,) = risk.fit(X, y).privacy_.parts
    assert whole.composition == "sequential"
    assert risk.privacy_.epsilon == pytest.approx(sum(part.epsilon for part in whole.parts))


def test_a_score_is_that_of_the_held_out_part():
    X, y = records(RIDGE)
    parameters = {"criterion": "clipped_squared_error", "method": "above_threshold", "target": 0.5}
    assert search(**parameters).fit(X, y).best_estimator_.n_samples_ == 1600
    for cv, n in ((4, 1500), (KFold(2), 1000), (ShuffleSplit(1, test_size=0.1), 1800)):
        assert search(cv=cv, **parameters).fit(X, y).best_estimator_.n_samples_ == n
    # targets that nobody can predict, on the part that is held out alone
    spoilt = np.where(np.arange(2000) < 500, np.sign(np.sin(1e6 * X[:, 0])), y)
    split = [(np.arange(500, 2000), np.arange(500))]
    for train_and_test, reached in ((split, False), ([split[0][::-1]], True)):
        s = seeded_fit((X, spoilt), cv=train_and_test, public_splits=True, **parameters)
        assert s.reached_ is reached
    s = search(cv=split, public_splits=True, **parameters).fit(X, y)
    assert s.plan_.sensitivity == 1 / 500
    assert s.scorer_ == ClippedSquaredErrorScore() and s.score(X.copy(), y) == s.scorer_(s, X, y)


@pytest.mark.parametrize("estimator, target", [(RIDGE, 0.015), (LOGISTIC, 0.6)], ids=name_of)
def test_each_further_question_has_half_of_the_failure_probability(estimator, target):
    X, y = records(estimator)
    s = seeded_fit(
        (X, y),
        estimator,
        {"epsilon": np.geomspace(0.1, 1000, 60)},
        target,
        criterion="risk",
        method="predict_verify",
    )
    asked = len(s.path_["tested"])
    assert asked >= 3 and (np.diff(s.path_["tested"]) > 0).all()
    losses = [part.epsilon for part in s.privacy_.parts[0].parts[1].parts]
    # ln(1 / (2 gamma_k)), gamma_k = gamma / 2^k
    expected = [math.log(2**k / 0.2) for k in range(1, asked + 1)]
    np.testing.assert_allclose(losses, s.plan_.chosen.testing * np.array(expected) / expected[0])


# --- certified


@pytest.mark.parametrize("method", STATIC)
@pytest.mark.parametrize("estimator", a_third(ESTIMATORS), ids=name_of)
def test_epsilon_is_known_before_the_data_and_the_least_that_is_enough(estimator, method):
    if not served(estimator, method):
        return
    X, y = records(estimator)
    for target in (0.003, 0.1):
        s = search(estimator, target=target, method=method)
        plan = s.plan(*X.shape)
        s.fit(X, y)
        assert plan.chosen == s.plan_.chosen and plan.chosen.testing == 0.0
        assert s.privacy_.epsilon == s.best_epsilon_ == plan.chosen.total
        model, gamma = s.best_estimator_, 0.1 if method == "certified" else None
        form, shape = model.accuracy_form(), PublicShape(*X.shape)
        bounds = [form.excess_bound(shape, epsilon, gamma) for epsilon in GRID["epsilon"]]
        assert s.best_index_ == np.flatnonzero(np.array(bounds) <= target)[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "discrete_laplace"])
def test_the_bound_of_a_histogram_holds_where_it_is_tightest(noise):
    """All records in one of many cells."""
    n, cells, runs = 200_000, 64, 2000
    model = DPHistogramDensity(0.05, bin_width=1 / cells, noise=noise, bounds=(0, 1))
    masses = np.eye(cells)[0]
    found = np.empty(runs)
    for i in range(runs):
        draw = clone(model).set_params(random_state=i).standard_noise(1)
        counts = np.maximum(n * masses + draw, 0)
        found[i] = ((counts / counts.sum() - masses) ** 2).sum() * cells
    for p in (0.3, 0.02):
        bound = model.accuracy_form().excess_bound(PublicShape(n, 1), 0.05, p)
        assert (found > bound).mean() < p and bound < 1.8 * np.quantile(found, 1 - p)


def test_certified_takes_the_form_with_the_least_noise():
    for estimator in (RIDGE, OUTPUT):
        s = search(estimator, method="certified").fit(*records(estimator))
        assert s.best_estimator_.perturbation == "objective"
        assert s.best_estimator_.alpha == 0.1 and s.estimator.perturbation != "objective"


@pytest.mark.parametrize("method", ["auto", "certified", "above_threshold"])
def test_the_noise_of_a_gaussian_ridge_is_replaced(method):
    s = search(DPRidge(alpha=0.1, norm="l2", delta=1e-6, target_range=(-1, 1)), method=method).fit(
        *records(RIDGE)
    )
    assert s.privacy_.delta == 0.0


# --- the promise


# seeded runs, in which a search for a larger excess is caught
RUNS = 40


def exact_excess(s, X, y):
    """The excess risk of the released model, by closed forms or scikit-learn's solver."""
    model = s.best_estimator_
    if isinstance(model, DPHistogramDensity):
        cells = np.minimum((X[:, 0] * 4).astype(int), 3)
        masses = np.bincount(cells, minlength=4) / len(X)
        return ((model.density_ * 0.25 - masses) ** 2).sum() / 0.25
    theta = np.append(model.coef_, model.intercept_)
    order = 1 if isinstance(model, DPRidge) and model.norm == "l1" else 2
    size = np.linalg.norm(X, ord=order, axis=1, keepdims=True)
    A = np.hstack([X / np.maximum(size, 1), np.ones((len(X), 1))])
    if isinstance(model, DPRidge):
        t = np.clip(y, -1, 1)
        best = Ridge(alpha=0.1 * len(X), fit_intercept=False, tol=1e-12).fit(A, t).coef_

        def risk(w):
            return ((A @ w - t) ** 2).mean() / 2 + 0.05 * w @ w
    else:
        solver = LogisticRegression(C=10 / len(X), fit_intercept=False, tol=1e-10, max_iter=1000)
        best, signs = solver.fit(A, y).coef_[0], np.where(y == "well", 1, -1)

        def risk(w):
            return np.logaddexp(0, -signs * (A @ w)).mean() + 0.05 * w @ w

    return risk(theta) - risk(best)


def misses(estimator, target, runs=RUNS, asked=None, **parameters):
    """In how many seeded runs the released model is worse than the target."""
    X, y = records(estimator, SMALL)
    s = search(estimator, {"epsilon": np.geomspace(0.03, 300, 20)}, target=asked or target, **parameters)
    return sum(
        exact_excess(s.set_params(random_state=seed).fit(X, y), X, y) > target for seed in range(runs)
    )


def most_misses(gamma, runs=RUNS):
    """What a search that keeps its promise exceeds with probability below 1e-6."""
    return int(binom.isf(1e-6, runs, gamma))


PROMISES = [
    *((RIDGE, method) for method in METHODS if method != "theory"),
    (OUTPUT, "certified"),
    (OUTPUT, "reduced_above_threshold"),
    (DENSITY, "certified"),
    (DENSITY, "above_threshold"),
    (DENSITY, "predict_verify"),
]


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("estimator, method", slow_but(PROMISES, 0), ids=name_of)
def test_the_promise(estimator, method):
    parameters = {"method": method, "failure_probability": 0.05, "delta": 1e-6}
    assert misses(estimator, 0.02, **parameters) <= most_misses(0.05)
    # the check is not idle: a search for a larger excess is caught
    assert misses(estimator, 0.02, asked=2.0, **parameters) > most_misses(0.05)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("estimator", slow_but([ESTIMATORS[2], OUTPUT, DENSITY], 1), ids=name_of)
def test_theory_promises_the_mean(estimator):
    X, y = records(estimator, SMALL)
    s = search(estimator, {"epsilon": np.geomspace(0.03, 300, 20)}, target=0.02, method="theory")

    def mean():
        return np.mean(
            [exact_excess(s.set_params(random_state=seed).fit(X, y), X, y) for seed in range(15)]
        )

    assert mean() < 0.02
    # the check is not idle
    s.set_params(target=4.0)
    assert mean() > 0.02


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize(
    "criterion, method",
    slow_but(
        list(
            product(["risk", "clipped_squared_error"], ["above_threshold", "predict_verify", "doubling"])
        ),
        1,
    ),
)
def test_the_promise_on_absolute_targets(criterion, method):
    X, y = records(RIDGE, SMALL)
    y = np.sign(y)
    A = np.hstack([X / np.maximum(np.abs(X).sum(axis=1, keepdims=True), 1), np.ones((400, 1))])
    cv = None if criterion == "risk" else [(np.arange(200, 400), np.arange(200))]
    train, test = (np.arange(400),) * 2 if cv is None else cv[0]

    def value(w):
        if criterion == "risk":
            return ((A @ w - y) ** 2).mean() / 2 + 0.05 * w @ w
        return np.minimum((A @ w - y) ** 2, 1)[test].mean()

    solver = Ridge(alpha=0.1 * len(train), fit_intercept=False, tol=1e-12)
    least = value(solver.fit(A[train], y[train]).coef_)

    def late(target, asked):
        s = search(
            grid={"epsilon": np.geomspace(0.03, 300, 20)},
            target=asked,
            criterion=criterion,
            cv=cv,
            public_splits=True,
            method=method,
            failure_probability=0.05,
        )
        return sum(
            s.set_params(random_state=seed).fit(X, y).reached_
            and value(np.append(s.best_estimator_.coef_, s.best_estimator_.intercept_)) > target
            for seed in range(RUNS)
        )

    assert late(1.1 * least, 1.1 * least) <= most_misses(0.05)
    assert late(1.1 * least, 3 * least) > most_misses(0.05)


# --- targets that cannot be met


@pytest.mark.parametrize("method", METHODS)
def test_the_last_model_can_be_had_if_none_is_found(method):
    estimator = ESTIMATORS[2]
    X, y = records(estimator)
    s = search(estimator, {"epsilon": [0.5, 1.0, 4.0]}, method=method, delta=1e-6, target=1e-9).fit(X, y)
    assert s.reached_ is False and (s.best_epsilon_, s.best_index_) == (4.0, 2)
    assert np.isfinite(s.privacy_.epsilon) and s.predict(X).shape == (2000,)
    kind = "differential privacy" if method in STATIC else "ex-post"
    assert s.privacy_.kind == kind and s.privacy_.epsilon >= 4.0
    exact = clone(estimator).set_params(epsilon=math.inf).fit(X, y)
    assert (s.best_estimator_.coef_ != exact.coef_).all()


# --- pipelines and containers


def test_pipeline():
    X, y = records(LOGISTIC)
    pipeline = make_pipeline(
        BoundedScaler((-2, 2)), NormClipper(), RBFSampler(gamma=0.5, n_components=5), clone(OUTPUT)
    )
    for method in ("certified", "reduced_above_threshold", "doubling"):
        s = search(pipeline, {"dplogisticregression__epsilon": GRID["epsilon"]}, method=method).fit(X, y)
        assert s.best_params_ == {"dplogisticregression__epsilon": s.best_epsilon_}
        assert s.best_estimator_[-1].epsilon == s.best_epsilon_
        # five random features, whose seed is public and stays
        assert s.best_estimator_[-1].n_features_in_ == 5 and s.n_features_in_ == 2
        assert isinstance(s.best_estimator_[-2].random_state, int)
        assert set(s.predict(X)) <= set(LABELS) and s.predict_proba(X).shape == (2000, 2)
        assert s.plan(*X.shape).chosen == s.plan_.chosen
    assert pipeline[-2].random_state is None and not hasattr(pipeline[0], "n_features_in_")


def test_a_private_step_that_was_fitted_counts_with_its_parameters_of_now():
    X, y = records(RIDGE)
    scaler = ColumnTransformer([("scaler", DPBoundsScaler(0.25), [0])])
    pipeline = make_pipeline(scaler, clone(RIDGE)).fit(X, y)
    pipeline.set_params(columntransformer__scaler__epsilon=2.0)
    s = search(pipeline, {"dpridge__epsilon": [0.5, 1.0, 8.0]}, target=0.5, method="certified")
    assert s.plan(*X.shape).at_most.epsilon == s.fit(X, y).privacy_.epsilon >= 2.5


def test_what_cannot_be_certified_is_known_before_bounds_are_learned():
    pipeline = make_pipeline(DPBoundsScaler(0.25), clone(RIDGE))
    s = search(pipeline, {"dpridge__epsilon": [0.5, 8.0]}, target=1e-9, method="certified")
    with pytest.raises(AccuracyNotReachedError):
        s.set_params(on_failure="raise").fit(*records(RIDGE))
    assert s.privacy_.epsilon == 0.0


@pytest.mark.parametrize("method", a_third(["certified", "above_threshold", "doubling"]))
@pytest.mark.parametrize("criterion", ["excess_risk", "score"])
@pytest.mark.parametrize("estimator", [RIDGE, OUTPUT, DENSITY], ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning")
def test_containers(estimator, criterion, method):
    import pandas as pd
    import polars as pl

    if method == "certified" and criterion == "score":
        return
    X, y = records(estimator)
    names = [f"x{i}" for i in range(X.shape[1])]
    parameters = {"method": method, "target": -0.5 if y is None and criterion == "score" else 0.6}
    parameters["criterion"] = estimator.default_scoring if criterion == "score" else criterion

    def model(rows, labels):
        s = seeded_fit((rows, labels), estimator, **parameters)
        return s, s.best_estimator_.density_ if y is None else s.best_estimator_.coef_

    expected = model(X, y)[1]
    containers = [
        (X.tolist(), None if y is None else y.tolist()),
        (pd.DataFrame(X, columns=names, index=np.arange(2000)[::-1]), y if y is None else pd.Series(y)),
        (pl.DataFrame(X, schema=names), y if y is None else pl.Series(y)),
    ]
    if y is not None:
        containers += [(sparse.csr_array(X), y), (sparse.coo_array(X), y), (sparse.csc_matrix(X), y)]
    for rows, labels in containers:
        s, coefficients = model(rows, labels)
        np.testing.assert_allclose(coefficients, expected, rtol=1e-7, atol=1e-12)
        if hasattr(rows, "columns"):
            assert list(s.feature_names_in_) == list(s.best_estimator_.feature_names_in_) == names
        else:
            assert not hasattr(s, "feature_names_in_")
        # an empty cell of a density has the logarithm -inf
        assert not np.isnan(s.score(rows, labels))


def test_frames_inside_a_pipeline():
    import pandas as pd

    X, y = records(RIDGE)
    frame = pd.DataFrame(X, columns=["a", "b"])
    pipeline = make_pipeline(BoundedScaler((-2, 2)).set_output(transform="pandas"), clone(RIDGE))
    for method in ("certified", "above_threshold"):
        s = search(pipeline, {"dpridge__epsilon": GRID["epsilon"]}, method=method).fit(frame, y)
        # without a warning about missing names
        assert s.predict(frame).shape == (2000,)
        assert list(s.feature_names_in_) == list(s.best_estimator_[-1].feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        s.predict(frame[["b", "a"]])


@pytest.mark.parametrize("method", ["certified", "above_threshold", "predict_verify", "doubling"])
def test_more_classes(method):
    X, _ = TABLE
    y = np.digitize(X[:, 0], [-0.2, 0.2])
    for estimator in (DPLogisticRegression(alpha=0.1), DPLinearSVC(alpha=0.1)):
        estimator.set_params(classes=[0, 1, 2], perturbation="output")
        s = search(estimator, {"epsilon": np.geomspace(0.1, 1000, 20)}, 0.01, method=method).fit(X, y)
        assert s.best_estimator_.coef_.shape == (3, 2) and list(s.classes_) == [0, 1, 2]
        assert s.decision_function(X).shape == (2000, 3) and s.score(X.copy(), y) > 0.4
        assert s.plan(2000, 2).chosen == s.plan_.chosen
        # labels that are not given yet are counted by the caller
        unknown = clone(s).set_params(estimator__classes=None)
        assert unknown.plan(2000, 2, n_classes=3).chosen == s.plan_.chosen
        assert unknown.plan(2000, 2).chosen.total < s.plan_.chosen.total


# --- seeds


@pytest.mark.parametrize(
    "method", ["certified", "above_threshold", "brownian", "predict_verify", "doubling"]
)
@pytest.mark.parametrize("estimator", [RIDGE, OUTPUT, DENSITY], ids=lambda e: type(e).__name__)
def test_seeded_searches_repeat_and_are_marked(estimator, method):
    data = records(estimator)
    one, two, other = (
        seeded_fit(data, estimator, seed=seed, method=method, delta=1e-6) for seed in (0, 0, 1)
    )
    attribute = "density_" if estimator is DENSITY else "coef_"
    first, second, third = (getattr(s.best_estimator_, attribute) for s in (one, two, other))
    np.testing.assert_array_equal(first, second)
    assert (first != third).any() and one.privacy_ == two.privacy_
    for name, value in one.path_.items():
        np.testing.assert_array_equal(value, two.path_[name])
    assert one.privacy_.seeded and all(release.seeded for release in one.privacy_.releases)
    assert one.best_estimator_.random_state is None and one.best_estimator_.privacy_.seeded
    assert b"InnerStream" not in pickle.dumps(one)


@pytest.mark.parametrize("method", ["certified", "above_threshold", "doubling"])
def test_none_gives_new_noise_each_time(method):
    models, answers = set(), set()
    for _ in range(3):
        s = search(OUTPUT, method=method).fit(*records(OUTPUT))
        models.add(tuple(s.best_estimator_.coef_.ravel()))
        answers.add(tuple(s.path_.get("answer", ())))
        assert s.random_state is None and s.best_estimator_.random_state is None
        assert not s.privacy_.seeded and b"InnerStream" not in pickle.dumps(s)
    assert len(models) == 3 and (method != "doubling" or len(answers) == 3)


def test_a_seeded_search_seeds_its_private_step_too():
    pipeline = make_pipeline(DPBoundsScaler(0.25), clone(RIDGE))
    grid = {"dpridge__epsilon": [1.0, 8.0]}
    one, two = (seeded_fit(records(RIDGE), pipeline, grid, target=0.5) for _ in range(2))
    np.testing.assert_array_equal(one.best_estimator_[0].bounds_, two.best_estimator_[0].bounds_)
    assert all(release.seeded for release in one.privacy_.releases)
    assert one.best_estimator_[0].random_state is None
    with pytest.warns(SeededNoiseWarning, match="DPBoundsScaler"):
        own = search(pipeline.set_params(dpboundsscaler__random_state=0), grid, target=0.5)
        own.fit(*records(RIDGE))
    assert [release.seeded for release in own.privacy_.releases] == [True, False]


# --- an estimator among scikit-learn's


@pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning")
def test_it_is_delegated_to_the_model():
    for estimator, methods in (
        (RIDGE, {"predict"}),
        (LOGISTIC, {"predict", "predict_proba", "predict_log_proba", "decision_function"}),
        (ESTIMATORS[8], {"predict", "decision_function"}),
        (DENSITY, {"score_samples"}),
    ):
        X, y = records(estimator)
        s = search(estimator)
        every = {
            "predict",
            "predict_proba",
            "predict_log_proba",
            "decision_function",
            "score_samples",
            "transform",
            "inverse_transform",
        }
        assert {name for name in every if hasattr(s, name)} == methods
        s.fit(X, y)
        assert {name for name in every if hasattr(s, name)} == methods
        for name in methods:
            np.testing.assert_array_equal(getattr(s, name)(X), getattr(s.best_estimator_, name)(X))
        assert s.score(X, y) == s.best_estimator_.score(X, y)
        assert is_classifier(s) == is_classifier(estimator)
        assert is_regressor(s) == is_regressor(estimator)
        assert hasattr(s, "classes_") == is_classifier(estimator)


def test_clone_parameters_and_pickle():
    s = search(clone(RIDGE), method="above_threshold", trusted_steps=("a",), cv=None)
    copy = clone(s.fit(*records(RIDGE)))
    assert not fitted_attributes(copy) and copy.get_params().keys() == s.get_params().keys()
    assert copy.target == 0.1 and copy.trusted_steps == ("a",) and copy.estimator is not s.estimator
    copy.set_params(estimator__alpha=0.2, target=0.3)
    assert copy.estimator.alpha == 0.2 and s.estimator.alpha == 0.1 and s.target == 0.1
    restored = pickle.loads(pickle.dumps(s))
    np.testing.assert_array_equal(restored.predict(TABLE[0]), s.predict(TABLE[0]))
    assert restored.privacy_ == s.privacy_ and str(restored.plan_) == str(s.plan_)
    np.testing.assert_array_equal(restored.path_["model"], s.path_["model"])
    assert "target=0.1" in repr(s)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
def test_searches_in_threads_are_those_in_turn():
    def fit(seed, estimator, method):
        s = search(estimator, method=method, random_state=seed).fit(*records(estimator))
        return s.best_estimator_.coef_

    methods = ("above_threshold", "doubling")
    jobs = [(i, e, m) for i in range(3) for e in (RIDGE, OUTPUT) for m in methods]
    together = Parallel(n_jobs=2, backend="threading")(delayed(fit)(*job) for job in jobs)
    for job, coefficients in zip(jobs, together, strict=True):
        np.testing.assert_array_equal(fit(*job), coefficients)


def test_a_second_fit_forgets_the_first():
    import pandas as pd

    X, y = records(RIDGE)
    s = search(method="above_threshold").fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert s.path_ and hasattr(s, "feature_names_in_")
    s.set_params(method="certified").fit(X, y)
    assert s.path_ == {} and s.method_ == "certified" and len(s.privacy_.releases) == 1
    assert not hasattr(s, "feature_names_in_")
    s.set_params(estimator=DENSITY, target=0.3).fit(records(DENSITY)[0])
    assert not hasattr(s, "predict") and s.n_features_in_ == 1


# --- bad data


def spoilt(X, value):
    X = X.copy()
    X[3, 1] = value
    return X


BAD_DATA = [
    (lambda X, y: (spoilt(X, np.nan), y), "NaN"),
    (lambda X, y: (spoilt(X, np.inf), y), "infinity"),
    (lambda X, y: (X, np.where(np.arange(2000) == 3, np.nan, y)), "NaN"),
    (lambda X, y: (X, None), "requires y"),
    (lambda X, y: (X[:-1], y), "inconsistent numbers"),
    (lambda X, y: (np.where(X > 0, "secret", "1.0"), y), "not a number"),
]


@pytest.mark.parametrize("method", ["certified", "above_threshold", "predict_verify", "doubling"])
@pytest.mark.parametrize("change, match", BAD_DATA[:4] + BAD_DATA[5:])
def test_bad_data(change, match, method):
    s = search(method=method)
    with pytest.raises(ValueError, match=match) as caught:
        s.fit(*change(*records(RIDGE)))
    assert "secret" not in str(caught.value) and caught.value.__context__ is None
    assert not fitted_attributes(s), "half-fitted"


def test_records_that_are_too_few():
    X, y = records(RIDGE)
    parameters = {"criterion": "clipped_squared_error", "on_failure": "last"}
    with pytest.raises(ValueError, match="n_splits=5"):
        search(**parameters).fit(X[:3], y[:3])
    for method in ("certified", "above_threshold", "predict_verify", "doubling"):
        assert not search(method=method, target=1e-6).fit(X[:1], y[:1]).reached_


@pytest.mark.parametrize("estimator", [RIDGE, OUTPUT, DENSITY], ids=lambda e: type(e).__name__)
def test_no_records(estimator):
    X, y = records(estimator)
    with pytest.raises(ValueError, match="0 sample"):
        search(estimator).fit(X[:0], None if y is None else y[:0])


@pytest.mark.parametrize("failure_probability", [1e-6, 0.1, 0.9])
@pytest.mark.parametrize("method", METHODS)
def test_grids_of_any_sizes(method, failure_probability):
    X, y = records(OUTPUT, SMALL)
    for epsilons in ([1.0], [1e-9, 1e9], [1.0, np.nextafter(1.0, 2.0), 1 + 1e-12]):
        for target in (1e-6, 1e6):
            s = search(
                OUTPUT,
                {"epsilon": epsilons},
                target,
                method=method,
                delta=1e-6,
                failure_probability=failure_probability,
            ).fit(X, y)
            assert np.isfinite(s.privacy_.epsilon) and np.isfinite(s.best_estimator_.coef_).all()

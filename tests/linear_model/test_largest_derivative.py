"""max_derivative="auto": 0.6 with noise and 1 without, by the epsilon of the fit and no other."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from dpselect import (
    AccuracyFirstSearchCV,
    DPLogisticRegression,
    StabilityGridSearchCV,
    TermsDisplay,
    coef_interval,
)
from dpselect.export import to_onnx
from dpselect.linear_model import accuracy, sweep
from dpselect.linear_model.linear_noise import LinearNoise
from dpselect.linear_model.losses import CappedLogisticLoss, LogisticLoss
from dpselect.linear_model.model import LinearModel
from dpselect.mechanisms import exponential_mechanism, noisy_argmax
from dpselect.metrics import BrierScore
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import root_stream
from dpselect.preprocessing import tabular_pipeline
from dpselect.records.public_shape import PublicShape
from tests.glue.recording import Recorder

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
ROWS = 3 * RNG.normal(size=(40, 3))
LABELS = {K: np.argsort(np.argsort(X[:, 0] + RNG.logistic(size=N) / 4)) * K // N for K in (2, 3)}


def equal(found, expected):
    """Tell whether two dicts of facts are equal, but for rounding."""
    try:
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
    except AssertionError:
        return False
    return found.keys() == expected.keys()


# ---- a fit


def facts(model, K):
    """Return all that a loss decides: noise, certificates, bounds, the model and what it predicts."""
    shape = PublicShape(N, 3, 1 if K == 2 else K)
    model = clone(model).set_params(classes=list(range(K)), random_state=root_stream(0))
    calibration = model.calibration(shape)
    found = {
        "scales": [
            calibration.scales.mu,
            calibration.scales.linear_scale,
            calibration.scales.output_scale,
        ],
        "alpha": calibration.alpha,
        "cost": model.regularisation_cost(N, 3, shape.n_problems),
        "risk bound": model.risk_bound(N, 3, shape.n_problems).sensitivity,
        "noise": model.standard_noise(3, shape.n_problems),
    }
    if model.epsilon < math.inf:
        for failure in (None, 0.1):
            certificate = model.stability_certificate(BrierScore(), N, 3, shape.n_problems, failure)
            found[f"certificate {failure}"] = [certificate.training, certificate.span]
    fitted = model.fit(X, LABELS[K])
    z = ROWS / np.maximum(1, np.linalg.norm(ROWS, axis=1, keepdims=True)) @ fitted.coef_.T
    return found | {
        "coefficients": np.column_stack([fitted.coef_, fitted.intercept_]),
        "linear": z + fitted.intercept_,
        "decisions": fitted.decision_function(ROWS),
        "probabilities": fitted.predict_proba(ROWS),
        "logarithms": fitted.predict_log_proba(ROWS),
    }


SETTINGS = {
    "objective": {},
    "output": {"perturbation": "output"},
    "gaussian": {"delta": 0.02, "norm": "l2"},
    "l1": {"norm": "l1", "data_norm_l1": 1.2},
    "base rate": {"base_rate": "by class"},
    "alpha": {"alpha": 0.01},
}


def check_auto(kind, name, K, epsilon):
    settings = dict(SETTINGS[name])
    if "base_rate" in settings:
        settings["base_rate"] = {k: (k + 1) / (K * (K + 1) / 2) for k in range(K)}
    found = facts(kind(epsilon, **settings), K)
    typed = {
        L: facts(DPLogisticRegression(epsilon, max_derivative=L, **settings), K)
        for L in (None, 0.6, 0.75)
    }
    own = None if epsilon == math.inf else 0.6
    assert equal(found, typed[own])
    assert not any(equal(found, typed[L]) for L in typed if L != own)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("epsilon", [0.5, 20.0, math.inf])
def test_auto_is_a_number_by_epsilon(epsilon, name, K):
    check_auto(DPLogisticRegression, name, K, epsilon)


class NeverSteep(DPLogisticRegression):
    """The broken twin has the less steep loss without noise, too."""

    largest_derivative = 0.6


class AlwaysSteep(DPLogisticRegression):
    """The broken twin never has it."""

    largest_derivative = 1.0


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("twin, epsilon", [(NeverSteep, math.inf), (AlwaysSteep, 0.5)])
def test_another_number_is_seen(twin, epsilon):
    with pytest.raises(AssertionError):
        check_auto(twin, "objective", 2, epsilon)


@pytest.mark.parametrize("given", ["auto", None, 0.5, 0.75, 1, np.float32(0.75)])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6, math.inf])
def test_the_largest_derivative_of_the_loss(given, epsilon):
    model = DPLogisticRegression(epsilon, max_derivative=given, classes=[0, 1])
    expected = {"auto": 1.0 if epsilon == math.inf else 0.6, None: 1.0}.get(given, given)
    assert model.largest_derivative == expected and type(model.largest_derivative) is float
    # of each epsilon that a search may train with
    for other in (0.5, math.inf):
        expected = {"auto": 1.0 if other == math.inf else 0.6, None: 1.0}.get(given, given)
        loss = model.problem(other).loss
        assert loss == (LogisticLoss() if expected == 1 else CappedLogisticLoss(float(expected)))
        assert loss.lipschitz == expected
        assert model.calibration(PublicShape(50, 2), other).problem.loss == loss
    # no loss of a fit is left behind by such a question
    assert model.epsilon == epsilon and model.problem() == model.problem(epsilon)


def test_it_is_scikit_learns_without_noise():
    rows = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    model = DPLogisticRegression(math.inf, alpha=0.01, fit_intercept=False, classes=[0, 1])
    other = LogisticRegression(C=1 / (N * 0.01), fit_intercept=False, tol=1e-10)
    p = [one.fit(rows, LABELS[2]).predict_proba(rows) for one in (model, other)]
    np.testing.assert_allclose(*p, atol=1e-6)
    (logistic,) = [step for _, step in model.to_sklearn().steps if isinstance(step, LogisticRegression)]
    np.testing.assert_allclose(logistic.coef_, model.coef_)


@pytest.mark.parametrize("K", [2, 3])
def test_probabilities_are_those_of_the_documented_loss(K):
    """The probability is a / (a + b), with a = min(s, L) and b = min(1 - s, L)."""
    model = DPLogisticRegression(1000.0, alpha=1e-4, classes=list(range(K))).fit(X, LABELS[K])
    rows = ROWS / np.maximum(1, np.linalg.norm(ROWS, axis=1, keepdims=True))
    s = expit(rows @ model.coef_.T + model.intercept_)
    a, b = np.minimum(s, 0.6), np.minimum(1 - s, 0.6)
    p = a / (a + b)
    assert np.abs(p - s).max() > 0.02  # some are where they differ
    np.testing.assert_allclose(model.decision_function(ROWS).reshape(p.shape), logit(p), rtol=1e-9)
    expected = np.column_stack([1 - p, p]) if K == 2 else p / p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(ROWS), expected, rtol=1e-9)
    labels = (p[:, 0] > 0.5).astype(int) if K == 2 else p.argmax(axis=1)
    assert (model.predict(ROWS) == labels).all()
    plain = model.to_sklearn()
    np.testing.assert_allclose(plain.predict_proba(ROWS), expected, rtol=1e-9)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    (found,) = session.run(["probabilities"], {"X": ROWS})
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("epsilon, unit", [(5.0, "linear prediction of 1"), (math.inf, "log odds of 1")])
def test_terms_name_their_unit(epsilon, unit):
    model = DPLogisticRegression(epsilon, classes=[0, 1])
    pipeline = tabular_pipeline(dict.fromkeys(range(3), (-3, 3)), model, expansion="linear")
    pipeline.fit(X, LABELS[2])
    assert TermsDisplay.from_estimator(pipeline).unit == unit
    pipeline.set_params(model__epsilon=math.inf if epsilon < math.inf else 5.0)
    assert TermsDisplay.from_estimator(pipeline).unit == unit


@pytest.mark.parametrize("epsilon, typed, others", [(5.0, 0.6, None), (math.inf, None, 0.6)])
def test_intervals_have_the_derivatives_of_the_loss(epsilon, typed, others):
    model = DPLogisticRegression(epsilon, alpha=0.01, data_norm=4.0, classes=[0, 1]).fit(X, LABELS[2])

    def matrices(L):
        model.set_params(max_derivative=L)
        same = clone(model)
        vars(same).update({k: v for k, v in vars(model).items() if k.endswith("_") and k[0] != "_"})
        told = coef_interval(same, X.copy(), LABELS[2], epsilon=math.inf, n_samples=N)
        return {"curvature": told.curvature_, "gradients": told.gradients_}

    found = matrices("auto")
    assert equal(found, matrices(typed)) and not equal(found, matrices(others))


# ---- a search, whatever the epsilon of its model

OWN = [0.1, 1.0, math.inf]


def search_facts(search):
    model = search.best_estimator_
    model = model[-1] if isinstance(model, Pipeline) else model
    plan = search.plan_
    return {
        "best": search.best_index_,
        "model": np.column_stack([model.coef_, model.intercept_]),
        "probabilities": search.predict_proba(ROWS),
        "plan": [plan.training_epsilon, plan.selection_epsilon],
        "scales": np.nan_to_num(np.array(plan.noise_scale, dtype=float)),
        "sensitivities": np.nan_to_num(plan.sensitivity),
        "largest": model.largest_derivative,
    }


def stability_search(strategy, own, max_derivative="auto", epsilon=None, K=2, **parameters):
    model = DPLogisticRegression(
        own, max_derivative=max_derivative, classes=list(range(K)), **{"alpha": 0.05, **parameters}
    )
    name = "alpha" if strategy in ("data_independent", "stability") else "intercept_scaling"
    return StabilityGridSearchCV(
        model,
        {name: [0.01, 0.1, 1.0]},
        # with less, risks are not compared
        epsilon=epsilon or (80.0 if strategy == "optimal_risk" else 2.0),
        strategy=strategy,
        n_noise_samples=2,
        random_state=root_stream(3),
    )


def accuracy_search(method, own, max_derivative="auto", K=2, **parameters):
    where = "objective" if method in ("certified", "doubling") else "output"
    model = DPLogisticRegression(
        own,
        max_derivative=max_derivative,
        classes=list(range(K)),
        alpha=0.1,
        **{"perturbation": where, **parameters},
    )
    return AccuracyFirstSearchCV(
        model,
        {"epsilon": np.geomspace(1.0, 3000.0, 300 if method == "certified" else 12)},
        target=0.05,
        method=method,
        max_epsilon=math.inf,
        on_failure="last",
        delta=1e-6 if method == "brownian" else 0.0,
        random_state=root_stream(3),
    )


def accuracy_facts(search):
    model = search.best_estimator_
    found = {
        "epsilon": search.best_epsilon_,
        "model": np.column_stack([model.coef_, model.intercept_]),
        "probabilities": search.predict_proba(ROWS),
        "largest": model.largest_derivative,
        "at most": search.plan_.at_most.epsilon,
    }
    if search.method_ != "certified":
        found["path"] = np.array(search.path_["epsilon"])
        found["models"] = np.array(search.path_["model"])
    return found


STRATEGIES_HERE = [name for name in STRATEGIES if name != "control"]
METHODS = ["certified", "above_threshold", "reduced_above_threshold", "predict_verify", "doubling"]
SEARCHES = {
    **{name: (stability_search, search_facts) for name in STRATEGIES_HERE},
    **{name: (accuracy_search, accuracy_facts) for name in [*METHODS, "brownian"]},
}


def facts_of(name, own, max_derivative="auto", K=2, **parameters):
    make, read = SEARCHES[name]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorder = Recorder(patch).watch(noisy_argmax, exponential_mechanism)
        found = read(make(name, own, max_derivative, K=K, **parameters).fit(X, LABELS[K]))
        compared = [call["scores"] for call in recorder.of("noisy_argmax", "exponential_mechanism")]
    return found | {"scores": np.ravel(compared)}


def check_search(name, owns=OWN, K=2, **parameters):
    """A search trains, compares, states and releases what it would with the number itself."""
    expected = facts_of(name, 1.0, 0.6, K, **parameters)
    assert expected["largest"] == 0.6
    for own in owns:
        assert equal(facts_of(name, own, "auto", K, **parameters), expected), own
    assert not equal(facts_of(name, 1.0, None, K, **parameters), expected)


@pytest.mark.parametrize("name", SEARCHES)
def test_the_epsilon_of_a_search_decides(name):
    check_search(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_the_epsilon_of_a_search_decides_for_several_classes(name):
    check_search(name, K=3)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["objective", "output"])
@pytest.mark.parametrize("name", ["stability", "optimal_risk", "random", "data_independent"])
def test_the_epsilon_of_a_search_decides_for_other_noise(name, where):
    check_search(name, perturbation=where, base_rate=0.3)


def of_the_model_alone(patch):
    """Every question about the problem is answered for the model's own epsilon."""
    problem = LinearModel.problem
    patch.setattr(LinearModel, "problem", lambda self, epsilon=None: problem(self))


def calibration_of_the_model(patch):
    """Noise is calibrated for the loss of the model's own epsilon."""

    def calibration(self, shape, epsilon):
        return LinearNoise.of(self.problem(), shape, epsilon, self.perturbation, self.alpha)

    patch.setattr(LinearModel, "_calibration", calibration)


def sweep_of_the_model(patch):
    """Splits are scored by the loss of the model's own epsilon."""

    def by_problem(trials):
        groups = {}
        for i, trial in enumerate(trials):
            groups.setdefault(trial.model.problem(), []).append(i)
        return groups.items()

    patch.setattr(sweep, "by_problem", by_problem)


def form_of_the_model(patch):
    """The accuracy of a path is that of the loss of the model's own epsilon."""
    start = accuracy.LinearAccuracy.__init__

    def started(self, model):
        start(self, model)
        L, pull = model.problem().loss.lipschitz, model.problem().pull
        self.problem, self.loss = model.problem(), model.problem().loss
        self.ball = min(L * self.radius / self.alpha, math.sqrt(pull / self.alpha))

    patch.setattr(accuracy.LinearAccuracy, "__init__", started)


TWINS = {
    of_the_model_alone: ["stability", "optimal_risk", "above_threshold", "doubling"],
    calibration_of_the_model: ["stability", "optimal_risk", "doubling"],
    sweep_of_the_model: ["stability", "optimal_risk"],
    form_of_the_model: ["above_threshold", "predict_verify", "reduced_above_threshold", "doubling"],
}


@pytest.mark.parametrize("twin, name", [(twin, name) for twin, names in TWINS.items() for name in names])
def test_searches_that_ask_for_the_model_s_own_epsilon_are_seen(twin, name, monkeypatch):
    twin(monkeypatch)
    with pytest.raises(AssertionError):
        check_search(name, owns=[math.inf])


@pytest.mark.parametrize("own", [0.5, math.inf])
def test_a_search_without_noise_has_scikit_learns_loss(own):
    search = stability_search("random", own, epsilon=math.inf).set_params(random_state=None)
    model = search.fit(X, LABELS[2]).best_estimator_
    typed = clone(model).set_params(max_derivative=None).fit(X, LABELS[2])
    assert model.epsilon == math.inf and model.largest_derivative == 1.0
    np.testing.assert_allclose(model.predict_proba(ROWS), typed.predict_proba(ROWS), rtol=1e-9)


def test_candidates_with_one_loss_are_compared_alike():
    """In a grid, "auto" and its number are one model."""
    grid = {"max_derivative": ["auto", 0.6, None, 1.0, 0.75]}
    search = StabilityGridSearchCV(
        DPLogisticRegression(math.inf, alpha=0.1, classes=[0, 1]),
        grid,
        epsilon=5.0,
        strategy="stability",
    )
    plan = search.plan(N, 3)
    auto, same, steep, one, between = plan.sensitivity
    assert auto == pytest.approx(same, rel=0.2) and steep == pytest.approx(one, rel=0.2)
    assert auto < between < steep
    for own in OWN:
        certificates = [
            search.estimator.set_params(epsilon=own, max_derivative=L).calibration(
                PublicShape(N, 3), 5.0
            )
            for L in grid["max_derivative"]
        ]
        certificates = [one.certificate(BrierScore(), None, 0.1).training for one in certificates]
        assert certificates[0] == certificates[1] and certificates[2] == certificates[3]
        assert len(set(certificates)) == 3


@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_of_any_columns_has_one_loss():
    pipeline = make_pipeline(
        PolynomialFeatures(include_bias=False), DPLogisticRegression(math.inf, classes=[0, 1])
    )
    search = StabilityGridSearchCV(
        pipeline, {"polynomialfeatures__degree": [1, 2]}, epsilon=3.0, strategy="budget_split"
    ).fit(X, LABELS[2])
    assert search.best_estimator_[-1].largest_derivative == 0.6
    assert search.best_estimator_[-1].epsilon == pytest.approx(1.5)


# ---- parameters that are changed after the fit


def predictions(model):
    return {
        name: getattr(model, name)(ROWS)
        for name in ("decision_function", "predict_proba", "predict_log_proba", "predict")
    } | {"plain": model.to_sklearn().predict_proba(ROWS)}


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("first, then", [(5.0, math.inf), (math.inf, 5.0), (5.0, 0.1)])
def test_a_fitted_model_keeps_its_loss(first, then, K, monkeypatch):
    model = DPLogisticRegression(first, alpha=0.01, classes=list(range(K))).fit(X, LABELS[K])
    before = predictions(model)
    model.set_params(epsilon=then)
    after = predictions(model)
    assert all(np.array_equal(after[name], before[name]) for name in before)
    # the twin forgets the parameters of the fit
    vars(model).pop("_params_of_fit")
    assert np.array_equal(predictions(model)["decision_function"], before["decision_function"]) == (
        math.inf not in (first, then)
    )

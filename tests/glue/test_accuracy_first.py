"""What an accuracy-first search states is what it did: models, noise, questions, losses.

Every kind of model that can be read at several noise levels, every method and every criterion.
"""

import functools
import itertools
import math
import warnings
from functools import cache, partial

import numpy as np
import pytest
from scipy.stats import gamma, kstest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    AccuracyNotReachedError,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    SeededNoiseWarning,
)
from dpselect.base.accuracy_form import NoiseLevels, SensitivityNoise
from dpselect.base.estimator import PrivateEstimator
from dpselect.density.accuracy import HistogramReduction
from dpselect.linear_model.accuracy import LinearReduction
from dpselect.linear_model.ridge.accuracy import RidgeReduction
from dpselect.mechanisms.above_threshold import (
    above_threshold,
    published_test,
    reduced_above_threshold,
    reduced_tests,
    tighter_test,
)
from dpselect.mechanisms.verification import verify
from dpselect.metrics import ClippedSquaredErrorScore, IntegratedSquaredErrorScore, MarginScore
from dpselect.model_selection.accuracy_first.methods import METHODS
from dpselect.preprocessing import DPBoundsScaler
from dpselect.records.public_shape import PublicShape

from . import reference
from .cases import P, key, n_problems, records_for
from .covering import every_pair
from .recording import Call, Recorder, replace_everywhere

N = 150
REDUCTIONS = (LinearReduction, RidgeReduction, HistogramReduction)
SCORED = (MarginScore, ClippedSquaredErrorScore, IntegratedSquaredErrorScore)
LOGISTIC = DPLogisticRegression(classes=[0, 1, 2], alpha=0.1, data_norm=0.8)
SVC = DPLinearSVC(classes=[0, 1, 2], alpha=0.1, data_norm=0.8, norm="l1")
RIDGE = DPRidge(alpha=0.3, norm="l1", data_norm=0.8, data_norm_l1=0.8, target_range=(-0.5, 1.3))
MODELS = {
    "logistic, objective": LOGISTIC,
    "logistic, output": clone(LOGISTIC).set_params(perturbation="output"),
    "logistic, output, weighted": clone(LOGISTIC).set_params(
        perturbation="output", class_weight={0: 0.5, 1: 4.0, 2: 1.5}
    ),
    "logistic, output, two classes": clone(LOGISTIC).set_params(perturbation="output", classes=[0, 1]),
    "steep, objective": clone(LOGISTIC).set_params(max_derivative=None),
    "steep, output": clone(LOGISTIC).set_params(max_derivative=None, perturbation="output"),
    "svc, objective": SVC,
    "svc, output": clone(SVC).set_params(perturbation="output"),
    "ridge, sums l1": RIDGE,
    "ridge, sums l2": clone(RIDGE).set_params(norm="l2"),
    "ridge, output": clone(RIDGE).set_params(perturbation="output"),
    "ridge, objective l1": clone(RIDGE).set_params(perturbation="objective"),
    "ridge, objective l2": clone(RIDGE).set_params(perturbation="objective", norm="l2"),
    "density, laplace": DPHistogramDensity(bounds=(-1, 1), bin_width=0.5),
    "density, discrete_laplace": DPHistogramDensity(
        bounds=(-1, 1), bin_width=0.5, noise="discrete_laplace"
    ),
}
LEVELS = np.geomspace(2.0, 400.0, 7)
DELTA = 1e-4


def columns(model):
    return 1 if isinstance(model, DPHistogramDensity) else P


def data_of(model, seed=0, n=N):
    return records_for(model, n, columns(model), seed)


def hows(model):
    reduces = getattr(model, "perturbation", None) != "objective"
    return ("path", "brownian", "fresh") if reduces else ("fresh",)


# the tests of a case come one after the other, and share its run
each_of = partial(pytest.mark.parametrize, scope="module")
READ = [(name, how) for name, model in MODELS.items() for how in hows(model)]


class Levels:
    """Models of one reduction at all levels, with the noise that they were made with."""

    def __init__(self, name, how, seed=0):
        self.model = MODELS[name]
        self.X, self.y = data_of(self.model, seed)
        self.levels = NoiseLevels(how, LEVELS[0], LEVELS[-1], DELTA)
        self.noises, self.units = [], []
        start = SensitivityNoise.start

        def recorded(noise, levels, stream):
            self.noise = noise
            put_noise_on = start(noise, levels, stream)

            def put_recorded(values, epsilon, unit=None):
                noisy = put_noise_on(values, epsilon, unit)
                # (integers count the unit)
                self.noises.append(noisy - np.asarray(values) * (1.0 if unit is None else unit))
                return noisy

            return put_recorded

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SensitivityNoise, "start", recorded)
            recorded = self._recorded(PrivateEstimator._noise_sample)
            patch.setattr(PrivateEstimator, "_noise_sample", recorded)
            form = self.model.accuracy_form()
            self.reduction = form.reduction(self.X, self.y, self.levels, key("reduction"))
            self.models = [np.array(self.reduction.read(float(e))) for e in LEVELS]

    def _recorded(self, noise_sample):
        def wrapper(*args):
            self.units.append(noise_sample(*args))
            return self.units[-1]

        return wrapper


@cache
def levels_of(name, how, seed=0):
    found = Levels(name, how, seed)
    assert len(found.models) == len(LEVELS) == len(found.noises or found.units)
    return found


# ---- each model is the documented function of its noise


@each_of("name, how", [case for case in READ if "objective" in case[0]])
def test_fresh_models_with_noise_in_the_objective(name, how):
    found = levels_of(name, how)
    assert len(found.units) == len(LEVELS)
    for epsilon, unit, w in zip(LEVELS, found.units, found.models):
        model = clone(found.model).set_params(epsilon=float(epsilon))
        release = reference.ridge_release if "ridge" in name else reference.linear_release
        expected, precision = release(model, found.X, found.y, unit)
        if "ridge" not in name:
            expected = in_ball(model, expected)
        assert w == pytest.approx(expected, abs=precision, rel=0)


def in_ball(model, w):
    """Bring models back to where every minimiser lies."""
    R = math.hypot(model.data_norm, model.intercept_scaling)
    # the largest u phi'(-u): W(1/e) for the logistic loss, and (1 + h)^2 / (8 h) at h = 1/2
    hinge = reference.kind_of(model) == reference.HINGE
    pull, L = (1.5**2 / 4, 1.0) if hinge else (0.2784645427610738, reference.steepest(model))
    W = reference.largest_weight(model)
    ball = min(W * L * R / model.alpha, math.sqrt(W * pull / model.alpha))
    lengths = np.linalg.norm(w, axis=1, keepdims=True)
    return w * np.minimum(1, ball / lengths)


@each_of("name, how", [case for case in READ if "output" in case[0]])
def test_models_with_noise_that_is_added(name, how):
    found = levels_of(name, how)
    model = clone(found.model).set_params(epsilon=1.0)
    for noise, w in zip(found.noises, found.models):
        if "ridge" in name:
            gram, moment = reference.ridge_statistics(model, found.X, found.y)
            ball = reference.ridge_ball(model)
            theta = reference.ridge_minimiser(gram, moment, model.alpha, ball)
            expected = reference.on_ball(theta + np.ravel(noise), ball)
        else:
            K = n_problems(model)
            bare, _ = reference.linear_release(model, found.X, found.y, np.zeros((2, K, P + 1)))
            expected = in_ball(model, bare + noise)
        assert w == pytest.approx(expected, abs=1e-6)


@each_of("name, how", [case for case in READ if "density" in case[0]])
def test_histograms_of_noisy_counts(name, how):
    found = levels_of(name, how)
    counts = reference.histogram_counts(found.model, found.X)
    for noise, masses in zip(found.noises, found.models):
        assert masses == pytest.approx(reference.masses_of(counts + np.ravel(noise)), abs=1e-9)


@each_of("name, how", [case for case in READ if "sums" in case[0]])
def test_sums_are_read_with_their_own_noise(name, how, monkeypatch):
    # what is read of noisy sums is the minimiser of `Decomposition`; the sums are taken from it
    from dpselect.linear_model.ridge.decomposition import Decomposition as Statistics

    seen, of = [], Statistics.of.__func__

    def recorded(kind, gram, moment, rho):
        seen.append((gram, moment))
        return of(kind, gram, moment, rho)

    monkeypatch.setattr(Statistics, "of", classmethod(recorded))
    found = Levels(name, how)
    model, noisy = found.model, seen[-len(LEVELS) :]
    assert len(noisy) == len(LEVELS)
    gram, moment = reference.ridge_statistics(model, found.X, found.y)
    norm = "l2" if how == "brownian" else reference.ridge_norm(model, P)
    scales = reference.statistic_scales(clone(model).set_params(norm=norm, epsilon=1.0), P)
    upper = np.nonzero(np.triu(scales))
    bounds = np.array([model.data_norm] * P + [1.0, reference.ridge_target(model)[1]])
    units = np.outer(bounds, bounds)[upper] / N
    for noise, (found_gram, found_moment) in zip(found.noises, noisy, strict=True):
        apart = np.zeros_like(scales)
        apart[:-1, :-1] = found_gram - gram
        apart[:-1, -1] = found_moment - moment
        assert apart[upper] == pytest.approx(np.ravel(noise) * units, abs=1e-6)


@each_of("name, how", [case for case in READ if "objective" not in case[0]])
def test_the_noise_of_a_path_is_that_of_the_documented_sensitivity(name, how):
    found = levels_of(name, how)
    noise, model = found.noise, clone(found.model).set_params(epsilon=1.0)
    if "density" in name:
        kind = {"laplace": "l1", "discrete_laplace": "integers"}[model.noise]
        moved = 2.0
        if how == "brownian":
            kind, moved = "l2", math.sqrt(2)
        assert noise.kind == kind and noise.sensitivity == pytest.approx(moved, rel=1e-5)
        assert np.prod(noise.shape) == 4
    elif "sums" in name:
        kind = "l2" if how == "brownian" else reference.ridge_norm(model, P)
        scales = reference.statistic_scales(clone(model).set_params(norm=kind), P)
        scales = scales[np.nonzero(np.triu(scales))]
        assert noise.kind == kind and noise.sensitivity == pytest.approx(1.0, rel=1e-5)
        # for a vector in l2 norm, all of it shares one noise vector
        assert noise.scales == pytest.approx(scales, rel=1e-5)
        assert noise.shape == ((len(scales),) if kind == "l1" else (1, len(scales)))
    else:
        scales = reference.ridge_scales if "ridge" in name else reference.linear_scales
        shape = (N, P) if "ridge" in name else (N, P, 1)
        assert noise.kind == "l2" and noise.shape == (n_problems(model), P + 1)
        assert noise.sensitivity == pytest.approx(scales(model, *shape)[2], rel=1e-5)


@pytest.mark.parametrize("how", ["path", "brownian", "fresh"])
def test_vectors_that_move_together_share_the_loss(how):
    levels, noise = NoiseLevels(how, 0.5, 8.0, DELTA), SensitivityNoise("l2", (3, 2), 0.7)
    for epsilon in (0.5, 3.0):
        samples = np.array(
            [
                noise.start(levels, key("law", how, epsilon, i))(np.zeros((3, 2)), epsilon)
                for i in range(300)
            ]
        )
        if how == "brownian":
            lengths = np.square(samples).sum(axis=2) / (3 * 0.7**2 * levels.time(epsilon))
            law = gamma(1, scale=2).cdf
        else:
            # each of three vectors has a third of epsilon
            lengths, law = np.linalg.norm(samples, axis=2) * epsilon / 3 / 0.7, gamma(2).cdf
        for problem in lengths.T:
            assert kstest(problem, law).pvalue > 1e-7
        signs = np.sign(samples).reshape(300, -1)
        assert np.abs(signs.T @ signs / 300 - np.eye(6)).max() < 7 / math.sqrt(300)


def vectors_of(found, how):
    """Return the noise of all problems, of all levels if it is drawn anew for each."""
    if found.units:
        units = [unit if unit.ndim == 3 else unit[:, None] for unit in found.units]
        return np.concatenate([unit.reshape(-1, unit.shape[-1]) for unit in units])
    levels = [noise.reshape(-1, noise.shape[-1]) for noise in found.noises]
    return np.concatenate(levels) if how == "fresh" else levels[0]


@each_of("name, how", READ)
def test_no_two_vectors_of_noise_are_alike(name, how):
    found = levels_of(name, how)
    vectors = vectors_of(found, how)
    vectors = vectors[np.linalg.norm(vectors, axis=1) > 0]
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = np.abs(np.triu(directions @ directions.T, 1))
    if "discrete_laplace" in name and how != "brownian":
        # small integers are often alike; all of them never
        assert len(np.unique(np.abs(vectors))) > 1
        return
    assert cosines.max() < 1 - 1e-9
    assert len(np.unique(np.abs(vectors))) == vectors.size


# ---- losses are those of the model, its records and its own problem


def exact_risks(model, X, y, models):
    if isinstance(model, DPHistogramDensity):
        masses = reference.histogram_counts(model, X) / len(X)
        return [((m - 2 * masses) @ m) / model.bin_width for m in models]
    if isinstance(model, DPRidge):
        gram, moment = reference.ridge_statistics(model, X, y)
        clipped = np.clip(y, *model.target_range) - reference.ridge_target(model)[0]
        return [
            (np.mean(clipped**2) - 2 * moment @ w + w @ gram @ w + model.alpha * w @ w) / 2
            for w in models
        ]
    A, signs = reference.design(model, X), reference.signs_of(y, np.array(model.classes))
    found = []
    for w in models:
        u = A @ w.T * signs
        if reference.kind_of(model) == reference.LOGISTIC:
            losses = np.logaddexp(0, -u)
        elif reference.kind_of(model) == reference.CAPPED:
            L, bend = reference.steepest(model), math.log(1 / reference.steepest(model) - 1)
            losses = np.logaddexp(0, -np.maximum(u, bend)) + L * np.maximum(bend - u, 0)
        else:
            h = model.huber_width
            losses = np.clip(1 + h - u, 0, 2 * h) ** 2 / (4 * h) + np.maximum(1 - h - u, 0)
        means = (reference.weights_of(model, y)[:, None] * losses).mean(axis=0)
        found.append((means + model.alpha / 2 * (w**2).sum(axis=1)).mean())
    return found


@each_of("name, how", READ)
def test_risks_and_excesses_are_exact(name, how):
    found = levels_of(name, how)
    risks = exact_risks(found.model, found.X, found.y, found.models)
    assert found.reduction.risks(found.models) == pytest.approx(np.array(risks), abs=1e-6)
    least = found.reduction.minimum
    assert found.reduction.excesses(found.models) == pytest.approx(
        np.maximum(np.array(risks) - least, 0), abs=1e-6
    )
    assert least <= min(risks) + 1e-6


@each_of("name, how", READ)
def test_what_is_published_is_what_was_read(name, how):
    found = levels_of(name, how)
    fitted = found.reduction.publish(found.models[2], LEVELS[2])
    assert fitted.epsilon == LEVELS[2] and fitted.random_state is None
    if "density" in name:
        assert fitted.density_ * 0.5 == pytest.approx(found.models[2])
        return
    of = reference.ridge_coefficients if "ridge" in name else reference.linear_coefficients
    assert of(fitted) == pytest.approx(found.models[2])


# ---- what decides without noise is the same on all records


@each_of("name, how", READ)
def test_a_forecast_reads_what_is_released_and_no_records(name, how):
    found = levels_of(name, how)
    others = found.model.accuracy_form().reduction(
        *data_of(found.model, seed=1), found.levels, key("other")
    )
    for epsilon, model in zip(LEVELS, found.models):
        forecast = found.reduction.forecast(model, float(epsilon))
        assert forecast == others.forecast(model, float(epsilon))
    bounds, other = found.reduction.bounds, others.bounds
    assert (bounds.risk, bounds.minimum, bounds.root) == (other.risk, other.minimum, other.root)


# ---- whole searches

CRITERIA = ("excess_risk", "risk", "score")
TARGETS = {
    ("density", "excess_risk"): 0.02,
    ("density", "risk"): -0.3,
    ("density", "score"): -0.3,
    ("ridge", "excess_risk"): 0.01,
    ("ridge", "risk"): 0.2,
    ("ridge", "score"): 0.2,
    ("logistic", "excess_risk"): 0.02,
    ("logistic", "risk"): 0.68,
    ("logistic", "score"): 0.24,
    ("svc", "excess_risk"): 0.05,
    ("svc", "risk"): 0.95,
    ("svc", "score"): 0.24,
}
SEARCHED = (
    "logistic, objective",
    "logistic, output",
    "ridge, sums l1",
    "ridge, output",
    "ridge, objective l2",
    "density, laplace",
    "density, discrete_laplace",
)
SCORES = {"density": "integrated_squared_error", "ridge": "clipped_squared_error"}


def served(name, method, criterion):
    if method in ("certified", "theory"):
        return criterion == "excess_risk" and not (method == "theory" and "sums" in name)
    walks = method in ("predict_verify", "doubling")
    return walks or "objective" not in name


def settings_of(case):
    params, (name, method, criterion) = MODELS[case[0]].get_params(), case
    kind = {key: params.get(key) for key in ("perturbation", "norm", "noise")}
    return {"class": name.partition(",")[0], **kind, "method": method, "criterion": criterion}


# any two settings that a search takes meet in one of them
SEARCHES = every_pair(
    {case: case for case in itertools.product(SEARCHED, METHODS, CRITERIA) if served(*case)},
    settings_of,
)
WALKS = [case for case in SEARCHES if case[1] not in ("certified", "theory")]


def accuracy_search(name, method, criterion, **parameters):
    kind = name.partition(",")[0]
    model = clone(MODELS[name])
    if method in ("certified", "theory") and kind == "svc":
        model.set_params(alpha=0.5)
    usual = {"target": TARGETS[kind, criterion], "max_epsilon": math.inf, "on_failure": "last"}
    return AccuracyFirstSearchCV(
        model,
        {"epsilon": LEVELS},
        method=method,
        criterion=SCORES.get(kind, "brier") if criterion == "score" else criterion,
        delta=DELTA if method == "brownian" else 0.0,
        **{**usual, **parameters},
    )


def note_fit(call):
    return call["self"].epsilon, len(call["X"]), call["self"].random_state


class Run:
    """An accuracy-first search that was fitted, with all that it called."""

    def __init__(self, case, monkeypatch, random_state=0):
        self.name, self.method, self.criterion = case
        self.losses = []
        for function in (above_threshold, reduced_above_threshold):
            replace_everywhere(monkeypatch, function, self._listened(function))
        self.recorder = Recorder(monkeypatch).watch(verify).watch_keys()
        for kind in REDUCTIONS:
            self.recorder.watch_methods(kind, "read", "__init__")
        self.recorder.watch_methods(PrivateEstimator, "fit", note=note_fit)
        for kind in SCORED:
            self.recorder.watch_methods(kind, "__call__")
        self.records = data_of(MODELS[self.name])
        self.search = accuracy_search(*case, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            self.search.fit(*self.records)

    def _listened(self, function):
        """Return the function, so that the losses it takes are kept, and its call recorded."""

        @functools.wraps(function)
        def wrapper(losses, test, random_state=None):
            def listened():
                for loss in losses:
                    self.losses.append(loss)
                    yield loss

            call = Call(function.__name__, {"test": test, "random_state": random_state})
            self.recorder.calls.append(call)
            call.result = function(listened(), test, random_state)
            return call.result

        return wrapper

    @property
    def levels(self):
        (call,) = self.recorder.of("__init__")
        return call["levels"]

    def epsilons(self, label):
        return [r.epsilon for r in self.search.privacy_.releases if r.label.startswith(label)]


@cache
def run_of(*case):
    with pytest.MonkeyPatch.context() as patch:
        return Run(case, patch)


@each_of("case", SEARCHES, ids=", ".join)
def test_what_is_stated_is_what_was_spent(case):
    run = run_of(*case)
    loss, recorder = run.search.privacy_, run.recorder
    fits = [call.noted for call in recorder.of("fit") if call.noted[1] > 10]
    if run.method in ("certified", "theory"):
        ((epsilon, n, _),) = fits
        assert (loss.epsilon, n) == (epsilon, N) and epsilon == run.search.best_epsilon_
        return
    assert not fits
    reads = [call["epsilon"] for call in recorder.of("read")]
    fresh = run.method == "doubling" or "objective" in run.name
    # on a path the model that comes last has paid for those before it
    path = run.search.path_["epsilon"]
    assert set(path) <= set(reads) and len(np.unique(reads)) == len(reads)
    assert run.epsilons("generating") == pytest.approx(path if fresh else path[-1:])
    tests = recorder.of("verify", "above_threshold", "reduced_above_threshold")
    answers = [call for call in tests if call.name == "verify"]
    if answers:
        spent = [call["verification"].epsilon for call in answers]
        assert [call.result[1] for call in answers] == list(run.search.path_["answer"])
    else:
        (test,) = tests
        levels = getattr(test["test"], "epsilons", None)
        # the reduced test costs what the comparisons up to where it halts cost
        halted = -1 if test.result is None else test.result
        spent = [test["test"].epsilon if levels is None else levels[halted]]
        last = len(LEVELS) - 1 if test.result is None else test.result
        assert len(path) == last + 1
    assert run.epsilons("testing") == pytest.approx(spent)
    assert loss.kind == "ex-post"
    assert loss.delta == (DELTA if run.method == "brownian" else 0.0)
    composition = "parallel" if run.criterion == "score" else "sequential"
    total = max if composition == "parallel" else sum
    assert loss.epsilon == pytest.approx(
        total([sum(run.epsilons("generating")), sum(run.epsilons("testing"))])
    )
    assert run.search.best_epsilon_ == path[-1] == run.search.best_estimator_.epsilon


@each_of("case", SEARCHES, ids=", ".join)
def test_no_key_draws_two_noises(case):
    run = run_of(*case)
    keys = [
        k
        for k, call in run.recorder.keys()
        if not any(c.name == "fit" and c.noted[1] <= 10 for c in call.within)
    ]
    assert keys and len(set(keys)) == len(keys)
    asked = [
        call["random_state"].key
        for call in run.recorder.of("verify", "above_threshold", "reduced_above_threshold")
    ]
    assert len(set(asked)) == len(asked)


def part_sizes(run):
    """Return how many records train models, and how many are asked about."""
    first = run.recorder.of("read")[0]["self"]
    return first.n, (N - first.n if run.criterion == "score" else first.n)


@each_of("case", WALKS, ids=", ".join)
def test_questions_are_asked_with_the_sensitivity_of_their_value(case):
    run = run_of(*case)
    n_train, n_asked = part_sizes(run)
    assert n_train == N or n_train < N and run.criterion == "score"
    model = MODELS[run.name]
    form, p = model.accuracy_form(), columns(model)
    bounds = form.bounds(PublicShape(n_train, p, n_problems(model)))
    if run.criterion == "score":
        sensitivity = form.score_span(run.search.scorer_, p) / n_asked
    elif run.criterion == "risk":
        sensitivity = bounds.risk
    else:
        sensitivity = bounds.root if run.method == "predict_verify" else bounds.excess
    answers = run.recorder.of("verify")
    for call in answers:
        assert call["verification"].sensitivity == pytest.approx(sensitivity, rel=1e-12)
    for call in run.recorder.of("above_threshold"):
        test = call["test"]
        assert test.threshold_scale == pytest.approx(2 * sensitivity / test.epsilon)
        assert test.query_scale == pytest.approx(4 * sensitivity / test.epsilon)
    for call in run.recorder.of("reduced_above_threshold"):
        assert call["test"].sensitivity == pytest.approx(sensitivity, rel=1e-12)
    # all questions together fail with the probability that was asked for
    shares = [call["verification"].failure_probability for call in answers]
    assert sum(shares) <= run.search.failure_probability * (1 + 1e-9)
    if run.criterion == "excess_risk":
        target = run.search.target, sensitivity, len(LEVELS), run.search.failure_probability
        for call in run.recorder.of("above_threshold"):
            kind = published_test if "published" in run.method else tighter_test
            assert call["test"] == kind(*target)
        for call in run.recorder.of("reduced_above_threshold"):
            tests = reduced_tests(*target)
            assert call["test"].epsilons == pytest.approx(tests.epsilons)
            assert call["test"].thresholds == pytest.approx(tests.thresholds)
    how = {"brownian": "brownian", "doubling": "fresh"}.get(run.method, "path")
    how = "fresh" if "objective" in run.name else how
    delta = DELTA if how == "brownian" else 0.0
    found = run.levels
    assert (found.how, found.low, found.high, found.delta) == (how, LEVELS[0], LEVELS[-1], delta)


@each_of("case", WALKS, ids=", ".join)
def test_each_question_is_about_the_model_that_was_read(case):
    run = run_of(*case)
    X, y = run.records
    reduction = run.recorder.of("read")[0]["self"]
    tested, models = run.search.path_["tested"], run.search.path_["model"]

    def expected(model):
        if run.criterion == "risk":
            return reduction.risks(model[None])[0]
        if run.criterion == "excess_risk":
            return reduction.excesses(model[None])[0]
        return -run.search.scorer_(reduction.publish(model, 1.0), *held_records(run))

    for place, call in zip(tested, run.recorder.of("verify")):
        value, target = expected(models[place]), run.search.target
        if run.method == "predict_verify" and run.criterion == "excess_risk":
            value, target = math.sqrt(value), math.sqrt(target)
        assert (call["value"], call["target"]) == pytest.approx((value, target), abs=1e-12)
    if run.losses:
        # what the slack leaves of the target: an absolute one is shared with the noise
        offsets = np.array([loss - expected(m) for loss, m in zip(run.losses, models, strict=True)])
        assert np.ptp(offsets) < 1e-12
        share = 0.0 if run.criterion == "excess_risk" else 1.0
        assert -offsets[0] <= share * run.search.target + 1e-12


def held_records(run):
    """Return the records that a score was computed on, none of which has trained a model."""
    (made,) = run.recorder.of("__init__")
    X = run.records[0]
    places = {row.tobytes(): i for i, row in enumerate(X)}
    trained = {places[row.tobytes()] for row in np.ascontiguousarray(made["X"])}
    held = sorted(set(range(N)) - trained)
    for call in run.recorder.of("__call__"):
        asked = {places[row.tobytes()] for row in np.ascontiguousarray(call["X"])}
        assert asked == set(held)
    return X[held], None if run.records[1] is None else run.records[1][held]


@each_of("case", SEARCHES, ids=", ".join)
def test_without_a_seed_no_key_is_kept(case):
    with pytest.MonkeyPatch.context() as patch:
        run = Run(case, patch, random_state=None)
    assert not run.search.privacy_.seeded and run_of(*case).search.privacy_.seeded
    for call in run.recorder.of("fit"):
        assert call.noted[2] is None
    assert run.search.best_estimator_.random_state is None
    keys = [k for k, _ in run.recorder.keys()]
    others = [k for k, _ in run_of(*case).recorder.keys()]
    assert not set(keys) & set(others)


# ---- what decides is equal on records that give the same release


FREE = [case for case in WALKS if case[1] in ("predict_verify", "doubling")]


def decisions(case, seed, answers):
    """Return what a search reads and asks, where models and answers are given."""
    name = case[0]
    given = levels_of(name, "fresh" if "objective" in name else "path").models
    said = []

    def read(self, epsilon):
        said.append(("read", epsilon))
        return given[int(np.argmin(np.abs(LEVELS - epsilon)))]

    def answer(value, target, verification, random_state=None):
        said.append(("asked", target, verification, random_state.key))
        return answers, 0.0

    with pytest.MonkeyPatch.context() as patch:
        replace_everywhere(patch, verify, answer)
        for kind in REDUCTIONS:
            patch.setattr(kind, "read", read)
        search = accuracy_search(*case, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            search.fit(*data_of(MODELS[name], seed))
    return said, str(search.privacy_), str(search.plan_)


@pytest.mark.parametrize("answers", [True, False])
@each_of("case", FREE, ids=", ".join)
def test_the_same_release_leads_to_the_same_decisions(case, answers):
    assert decisions(case, 0, answers) == decisions(case, 1, answers)


# ---- what fails late is paid for


class Stop(Exception):
    pass


@pytest.mark.parametrize("where", ["test", "read"])
@pytest.mark.parametrize("case", WALKS, ids=", ".join)
def test_a_search_that_fails_on_the_way_has_spent(case, where, monkeypatch, tmp_path):
    def stops(function):
        def wrapper(*args, **kwargs):
            function(*args, **kwargs)
            raise Stop

        return wrapper

    if where == "test":
        for function in (verify, above_threshold, reduced_above_threshold):
            replace_everywhere(monkeypatch, function, stops(function))
    else:
        for kind in REDUCTIONS:
            monkeypatch.setattr(kind, "read", stops(kind.read))
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1e9, delta=0.1)
    search = accuracy_search(*case, ledger=ledger)
    with pytest.raises(Stop):
        search.fit(*data_of(MODELS[case[0]]))
    # all that could have come out: the reservation stays
    assert ledger.spent()[0] >= LEVELS[0]


@each_of("case", SEARCHES, ids=", ".join)
def test_a_ledger_pays_what_is_stated(case, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1e9, delta=0.1)
    search = accuracy_search(*case, ledger=ledger).fit(*data_of(MODELS[case[0]]))
    loss = search.privacy_
    assert ledger.spent() == pytest.approx((loss.epsilon, loss.delta))


@each_of("case", WALKS, ids=", ".join)
def test_no_search_spends_more_than_its_limit_and_its_ledger_is_asked_for_no_more(case, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1e9, delta=0.1)
    # the last level of the grid is too costly
    limit = 0.9 * run_of(*case).search.plan_.at_most.epsilon
    search = accuracy_search(*case, max_epsilon=limit, ledger=ledger)
    loss = search.fit(*data_of(MODELS[case[0]])).privacy_
    (entry,) = ledger.history()
    assert loss.epsilon == entry.epsilon <= entry.reserved_epsilon <= limit
    assert entry.reserved_epsilon == search.plan_.at_most.epsilon
    assert search.path_["epsilon"].max() <= search.plan_.last_epsilon < LEVELS[-1]


@pytest.mark.parametrize("reached", [True, False])
def test_private_steps_before_the_model_are_paid_for(reached, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1e9)
    search = AccuracyFirstSearchCV(
        make_pipeline(DPBoundsScaler(epsilon=3.0), clone(RIDGE)),
        {"dpridge__epsilon": LEVELS},
        target=0.05 if reached else 1e-9,
        method="above_threshold",
        ledger=ledger,
    )
    if reached:
        loss = search.fit(*data_of(RIDGE)).privacy_
    else:
        with pytest.raises(AccuracyNotReachedError) as failure:
            search.fit(*data_of(RIDGE))
        loss = failure.value.privacy
    assert ledger.spent()[0] == pytest.approx(loss.epsilon)
    assert loss.releases[0].epsilon == 3.0 and loss.epsilon > 3.0

"""What a search states is what it did: epsilons, keys, sensitivities, records, decisions.

Each check runs over every strategy with every kind of model that it serves. The calls of the
mechanisms and of the models' fits are recorded, and compared with `privacy_`, with the records
that were read, and with sensitivities that are computed anew.
"""

import itertools
import math
import warnings
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from dpselect import (
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    SeededNoiseWarning,
    StabilityGridSearchCV,
)
from dpselect.accounting.zcdp import pure_to_zcdp, zcdp_to_epsilon
from dpselect.base.certificates import public_reach
from dpselect.base.estimator import PrivateEstimator, Trial
from dpselect.linear_model.classifier import DPLinearClassifier
from dpselect.linear_model.linear_noise import LinearNoise
from dpselect.linear_model.ridge.problem import RidgeNoise
from dpselect.mechanisms import exponential_mechanism, noisy_argmax
from dpselect.mechanisms.random_stopping import random_stopping, total_epsilon
from dpselect.metrics import (
    BrierScore,
    ClippedSquaredErrorScore,
    IntegratedSquaredErrorScore,
    MarginScore,
)
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import InnerStream, grid_laplace
from dpselect.preprocessing import DPBoundsScaler
from dpselect.records import PublicShape
from dpselect.rows import in_part
from tests.trials import trial

from . import reference
from .cases import P, records_for, standard_noise
from .covering import every_pair
from .recording import Recorder, replace_everywhere

N = 200
# enough for a choice by risk bounds among so few records
EPSILON = 40.0
MODELS = {
    "logistic": DPLogisticRegression(classes=[0, 1], alpha=0.05),
    "logistic, three classes": DPLogisticRegression(classes=[0, 1, 2], alpha=0.05),
    "svc by output, three classes": DPLinearSVC(classes=[0, 1, 2], alpha=0.05, perturbation="output"),
    "ridge": DPRidge(perturbation="objective", norm="l2", alpha=0.5, target_range=(-1, 1)),
    "ridge by output": DPRidge(perturbation="output", norm="l2", alpha=0.5, target_range=(-1, 1)),
}
ROWS = {"data_norm": [0.5, 1.0, 2.0]}
# so many models that zero-concentrated privacy gives each of them more than the k-th part
MANY = 12
SWEPT = (DPLinearClassifier, DPRidge, DPHistogramDensity)
SCORES = (MarginScore, ClippedSquaredErrorScore, IntegratedSquaredErrorScore)
CHOICES = ("noisy_argmax", "exponential_mechanism")


@dataclass(frozen=True)
class Case:
    """A search over models."""

    strategy: str
    model: object
    grid: dict = field(default_factory=lambda: ROWS)
    parameters: dict = field(default_factory=dict)

    def search(self, random_state=0, **parameters):
        parameters = {"epsilon": EPSILON, **self.parameters, **parameters}
        return StabilityGridSearchCV(
            clone(self.model),
            self.grid,
            strategy=self.strategy,
            random_state=random_state,
            **parameters,
        )

    @property
    def last(self):
        return self.model.steps[-1][1] if hasattr(self.model, "steps") else self.model

    @property
    def parameter(self):
        (name,) = self.grid
        return name.rpartition("__")[2]

    def records(self, seed=0):
        """Return records; with another seed than 0, all of them are nearly the same."""
        X, y = records_for(self.last, N, P)
        return (0.5 + 1e-6 * X, None if y is None else 0 * y) if seed else (X, y)


def splits(n=N):
    """Return three splits of different sizes, with records in several parts or in none.

    A record weighs most in the last test part, which alone tells it from others.
    """
    order = np.random.default_rng(3).permutation(n)
    return [
        (order[: n // 2], order[n // 2 + 40 :]),
        (order[90:], order[:70]),
        (order[:80], order[110:120]),
    ]


def _cases():
    served = sorted(set(STRATEGIES) - {"control", "data_independent"})
    for strategy, (name, model) in itertools.product(served, MODELS.items()):
        yield f"{strategy}, {name}", Case(strategy, model)
    unequal = {"cv": splits(), "public_splits": True, "n_noise_samples": 3}
    for name, model in MODELS.items():
        yield f"stability, {name}, splits", Case("stability", model, parameters=unequal)
        if hasattr(model, "classes"):
            yield (
                f"data_independent, {name}",
                Case("data_independent", model, {"alpha": [0.01, 0.1, 1.0]}),
            )
            yield f"stability, {name}, alpha", Case("stability", model, {"alpha": [0.01, 0.1, 1.0]})
    held_out = {"cv": splits()[1:2], "public_splits": True}
    for strategy in ("budget_split", "data_split", "random_stopping"):
        yield f"{strategy}, splits", Case(strategy, MODELS["ridge"], parameters=held_out)
    density = DPHistogramDensity(bounds=(-1, 1))
    widths = {"bin_width": [0.25, 0.5, 1.0]}
    for strategy in ("stability", "random"):
        yield f"{strategy}, density", Case(strategy, density, widths, {"epsilon": 1.0})
    yield "stability, density, splits", Case("stability", density, widths, {**unequal, "epsilon": 1.0})
    for norm in ("l1", "l2"):
        covariance = DPRidge(norm=norm, target_range=(-1, 1), data_norm_l1=1.0 if norm == "l1" else None)
        yield (
            f"stability, processed {norm}",
            Case("stability", covariance, {"alpha": [0.01, 0.1, 1.0]}, held_out),
        )
    yield "auto, processed", Case("auto", DPRidge(target_range=(-1, 1)), {"alpha": [0.01, 0.1, 1.0]})
    gaussian = DPRidge(norm="l2", delta=1e-6, target_range=(-1, 1))
    yield (
        "budget_split, delta of the models",
        Case("budget_split", gaussian, ROWS, {"delta": 1e-6, "epsilon": 1.0}),
    )
    yield (
        "budget_split, delta",
        Case(
            "budget_split",
            MODELS["logistic"],
            {"data_norm": [0.5 + i / 10 for i in range(MANY)]},
            {"delta": 0.01, "epsilon": 1.0},
        ),
    )
    yield (
        "stability, delta",
        Case(
            "stability", MODELS["logistic, three classes"], ROWS, {"delta": 1e-3, "n_noise_samples": 2}
        ),
    )
    yield (
        "stability, delta, density",
        Case("stability", density, widths, {"delta": 1e-3, "n_noise_samples": 2, "epsilon": 1.0}),
    )
    scaled = make_pipeline(DPBoundsScaler(epsilon=3.0), MODELS["logistic"])
    for strategy in ("stability", "optimal_risk", "budget_split", "random_stopping", "random"):
        yield (
            f"{strategy}, private step",
            Case(strategy, scaled, {"dplogisticregression__data_norm": [0.5, 1.0, 2.0]}),
        )
    several = Pipeline(
        [
            ("first", DPBoundsScaler(epsilon=3.0)),
            ("both", FeatureUnion([("a", DPBoundsScaler(epsilon=2.0)), ("b", DPBoundsScaler())])),
            ("model", MODELS["logistic"]),
        ]
    )
    yield "stability, private steps", Case("stability", several, {"model__data_norm": [0.5, 1.0, 2.0]})
    yield "random, delta of the models", Case("random", gaussian, ROWS)
    yield "data_split, delta of the models", Case("data_split", gaussian, ROWS)
    yield (
        "stability, processed, delta of the models",
        Case("stability", gaussian, {"alpha": [0.01, 0.1, 1.0]}),
    )


def settings_of(case):
    params, steps = case.last.get_params(), getattr(case.model, "steps", [])[:-1]
    return {
        "strategy": case.strategy,
        "class": type(case.last).__name__,
        **{name: params.get(name) for name in ("perturbation", "norm", "delta", "classes")},
        "steps": [type(step).__name__ for _, step in steps],
        "grid": [case.parameter, *[len(values) for values in case.grid.values()]],
        **{name: value for name, value in case.parameters.items() if name != "epsilon"},
    }


# any two settings that a search takes meet in one of them
CASES = every_pair(dict(_cases()), settings_of)
# and candidates that differ by alpha, certified one by one
CASES["stability, alpha"] = Case(
    "stability", MODELS["logistic, three classes"], {"alpha": [0.01, 0.1, 1.0]}
)


FAST = [*CASES][::3]


def each_of(names):
    """Parametrise a test; the tests of a name come one after the other, and share its run."""
    cases = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in names]
    return pytest.mark.parametrize("name", cases, scope="module")


STABLE = {name: case for name, case in CASES.items() if "stability" in name and "processed" not in name}
CERTAIN = {name: case for name, case in STABLE.items() if "delta" not in name}
HELD_OUT = {
    name: case
    for name, case in CASES.items()
    if "processed" in name or case.strategy in ("budget_split", "data_split", "random_stopping")
}


@dataclass
class Fit:
    """A private fit on records."""

    kind: str
    params: dict
    epsilon: float
    key: bytes
    rows: np.ndarray


def note_fit(call):
    model, X = call["self"], np.asarray(call["X"])
    params = model.get_params(deep=False)
    state = params.pop("random_state")
    key = None if state is None else state.key
    return Fit(type(model).__name__, params, float(params.pop("epsilon")), key, X)


def note_trials(call):
    """Return the parameters of the models, with the epsilon and the key that they are trained with."""
    trials = call["trials"] if "trials" in call.arguments else [call["self"]]
    return [
        {
            **trial.model.get_params(deep=False),
            "epsilon": trial.epsilon,
            "random_state": getattr(trial.random_state, "key", None),
        }
        for trial in trials
    ]


class Run:
    """A search that was fitted, with all that it called."""

    def __init__(self, case, monkeypatch, seed, random_state, **parameters):
        self.case, self.recorder = case, Recorder(monkeypatch)
        self.recorder.watch(
            noisy_argmax, exponential_mechanism, grid_laplace, random_stopping
        ).watch_keys()
        self.recorder.watch_methods(PrivateEstimator, "fit", note=note_fit)
        self.recorder.watch_methods(Trial, "certificate", note=note_trials)
        for kind in SWEPT:
            self.recorder.watch_methods(kind, "split_scores", note=note_trials)
        for kind in SCORES:
            self.recorder.watch_methods(kind, "__call__", note=lambda call: np.asarray(call["X"]))
        self.records = case.records(seed)
        self.search = case.search(random_state, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            self.search.fit(*self.records)

    def calls(self, *names):
        """Return the calls that were made on records, and not to try the search out."""
        return [
            call
            for call in self.recorder.of(*names)
            if not any(other.name == "fit" and len(other["X"]) <= 10 for other in call.within)
        ]

    @property
    def fits(self):
        """list of Fit : On records; a fit of a few rows tries the search out."""
        return [call.noted for call in self.recorder.of("fit") if len(call.noted.rows) > 10]

    @property
    def choices(self):
        return self.recorder.of(*CHOICES)

    @property
    def scored(self):
        """list of ndarray : The rows that models were scored on."""
        return [call.noted for call in self.recorder.of("__call__") if len(call.noted) > 10]

    @property
    def held(self):
        """set of bytes : The keys of the noise samples that train candidates on all splits."""
        return {
            model["random_state"] for call in self.recorder.of("split_scores") for model in call.noted
        }

    @property
    def noise_keys(self):
        """dict : From the value of a candidate's parameter to the keys of its noise."""
        found = {}
        for call in self.recorder.of("split_scores"):
            for model in call.noted:
                found.setdefault(model[self.case.parameter], {})[model["random_state"]] = None
        return {value: list(keys) for value, keys in found.items()}

    @property
    def training_epsilon(self):
        (epsilon,) = {
            model["epsilon"] for call in self.recorder.of("split_scores") for model in call.noted
        }
        return epsilon

    @property
    def generators(self):
        """list of (bytes, Call) : Keys of all generators but those that try the search out."""
        return [
            (key, call)
            for key, call in self.recorder.keys()
            if not any(c.name == "fit" and len(c.noted.rows) <= 10 for c in call.within)
        ]


@cache
def run_of(name, seed=0):
    """Return the run of a case with a seed, which every test reads and none changes."""
    with pytest.MonkeyPatch.context() as patch:
        return Run(CASES[name], patch, seed, random_state=0)


def unseeded(name, ledger):
    with pytest.MonkeyPatch.context() as patch:
        return Run(CASES[name], patch, 0, random_state=None, ledger=ledger)


def names_of(rows, among):
    """Return which records these are; no step has changed them."""
    places = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(among))}
    return {places[row.tobytes()] for row in np.ascontiguousarray(rows)}


# ---- the epsilon that reaches each mechanism is the one that is stated


@each_of(CASES)
def test_what_is_stated_is_what_was_spent(name):
    run = run_of(name)
    loss = run.search.privacy_
    stated = [release.epsilon for release in loss.releases]
    # deltas of a choice and of models of the same records add up; here only one of them is there
    assert loss.delta == pytest.approx(own_delta(run) or run.search.delta, rel=1e-12)
    assert loss.seeded and all(release.seeded for release in loss.releases)
    asked = run.search.epsilon
    steps = sum(fit.epsilon for fit in run.fits if fit.kind == "DPBoundsScaler")
    assert asked * (1 - 1e-9) <= loss.epsilon <= (asked + steps) * (1 + 1e-9)
    if run.case.strategy == "random_stopping":
        check_random_stopping(run, stated)
        return
    trained = [fit.epsilon for fit in run.fits]
    chosen = [call["epsilon"] for call in run.choices]
    assert not run.recorder.of("grid_laplace")
    if name == "budget_split, delta":
        # many models, whose losses add up as those of zero-concentrated privacy
        rho, delta = math.fsum(map(pure_to_zcdp, trained)), run.search.delta
        assert len(trained) == MANY and max(trained) > 1.0 / MANY
        assert zcdp_to_epsilon(rho, delta) <= stated[0] * (1 + 1e-9)
        trained = stated[:1]
    assert sorted(trained + chosen) == pytest.approx(sorted(stated), rel=1e-12)
    # what the plan says in advance
    plan = run.search.plan_
    (planned,) = {fit.epsilon for fit in run.fits if fit.kind != "DPBoundsScaler"}
    assert plan.training_epsilon == pytest.approx(planned, rel=1e-12)
    if not chosen:
        assert plan.selection_epsilon == 0
        return
    assert [plan.selection_epsilon] == pytest.approx(chosen, rel=1e-12)
    (choice,) = run.choices
    if choice.name == "noisy_argmax":
        moved = np.array(choice["sensitivities"])
        scales = [moved[i] + np.delete(moved, i).max() for i in range(len(moved))]
    else:
        scales = 2 * choice["sensitivity"] * np.ones(len(plan.params))
    assert plan.noise_scale == pytest.approx(np.array(scales) / chosen[0])


def own_delta(run):
    """Return what the deltas of the released models add up to, or the largest of disjoint ones."""
    deltas = [fit.params.get("delta", 0.0) for fit in run.fits]
    return max(deltas) if run.case.strategy == "data_split" else math.fsum(deltas)


def check_random_stopping(run, stated):
    models = [fit for fit in run.fits if fit.kind != "DPBoundsScaler"]
    steps = [fit.epsilon for fit in run.fits if fit.kind == "DPBoundsScaler"]
    scores = run.recorder.of("grid_laplace")
    assert len(models) == len(scores) >= 1
    (stopping,) = run.recorder.of("random_stopping")
    # model and score read different records, so a run costs the larger of the two
    (of_a_run,) = {fit.epsilon for fit in models} | {call["epsilon"] for call in scores}
    total = total_epsilon(of_a_run, stopping["law"])
    assert stated == pytest.approx([*steps, total], rel=1e-9)
    (n_held,) = {len(rows) for rows in run.scored}
    for call in scores:
        assert call["scales"] == pytest.approx(run.search.scorer_.width / n_held / of_a_run)


@each_of(CASES)
def test_the_model_that_is_released_is_one_that_was_paid_for(name):
    run = run_of(name)
    model = run.search.best_estimator_
    model = model[-1] if hasattr(model, "steps") else model
    assert model.random_state is None
    chosen = {key.rpartition("__")[2]: v for key, v in run.search.best_params_.items()}
    processed = (
        isinstance(model, DPRidge)
        and model.perturbation == "covariance"
        and (run.case.parameter == "alpha")
    )
    own = [
        call
        for call in run.calls("fit")
        if len(call.noted.rows) > 10
        and call.noted.kind == type(model).__name__
        and (processed or all(call.noted.params[key] == v for key, v in chosen.items()))
    ]
    assert own
    without_split = ("stability", "optimal_risk", "data_independent", "random")
    if run.case.strategy in without_split and not processed:
        # it alone was trained, on all records
        assert len(own) == 1 and len(own[0].noted.rows) == N
    assert {fit.epsilon for fit in (call.noted for call in own)} == {model.epsilon}
    if not isinstance(model, DPLinearClassifier):
        return
    distances = []
    for call in own:
        # the records of this fit, with the noise of its key
        again = clone(model).set_params(random_state=InnerStream(call.noted.key))
        expected, precision = reference.linear_release(
            again,
            call.noted.rows,
            np.asarray(call["y"]),
            standard_noise(again, call.noted.rows.shape[1]),
        )
        apart = np.abs(reference.linear_coefficients(model) - expected).max()
        distances.append(apart / precision)
    assert min(distances) < 1


ASKED = [
    name
    for name, case in CASES.items()
    if case.strategy not in ("random", "random_stopping", "data_independent") and "splits" not in name
]


@pytest.mark.parametrize("place", [1, 2])
@each_of(ASKED)
def test_the_candidate_that_the_mechanism_names_is_the_one_that_is_released(name, place, monkeypatch):
    case = CASES[name]
    for mechanism in (noisy_argmax, exponential_mechanism):
        replace_everywhere(monkeypatch, mechanism, lambda *args, **kwargs: place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        search = case.search().fit(*case.records())
    ((parameter, values),) = case.grid.items()
    assert search.best_index_ == place and search.best_params_ == {parameter: values[place]}
    model = search.best_estimator_
    assert model.get_params()[parameter] == values[place]
    model = model[-1] if hasattr(model, "steps") else model
    if isinstance(model, DPRidge) and model.perturbation == "covariance" and parameter == "alpha":
        # what its own parameters make of the release, and those of others do not
        again, other = (model.post_process(alpha=values[i]) for i in (place, 0))
        assert np.array_equal(again.coef_, model.coef_)
        assert not np.array_equal(other.coef_, model.coef_)


@pytest.mark.parametrize("place", [1, 2])
def test_what_auto_leaves_out_moves_no_place_of_the_grid(place, monkeypatch):
    # the regularisation is chosen by public numbers, and one of three candidates for each bound stays
    grid = {"alpha": [0.01, 0.1, 1.0], "data_norm": [0.5, 1.0, 2.0]}
    case = Case("auto", MODELS["logistic"], grid)
    for mechanism in (noisy_argmax, exponential_mechanism):
        replace_everywhere(monkeypatch, mechanism, lambda *args, **kwargs: place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        search = case.search().fit(*case.records())
    plan = search.plan_
    assert list(plan.params) == list(ParameterGrid(grid)) and plan.considered.sum() == 3
    assert search.best_index_ == np.flatnonzero(plan.considered)[place]
    assert search.best_params_ == plan.params[search.best_index_]
    assert search.best_estimator_.get_params().items() >= search.best_params_.items()


# ---- keys are pairwise distinct


@each_of(CASES)
def test_no_key_draws_two_noises(name):
    run = run_of(name)
    drawn = {}
    for key, call in run.generators:
        drawn.setdefault(key, []).append(call)
    for key, calls in drawn.items():
        if key not in run.held:
            assert len(calls) == 1, f"{len(calls)} generators have one key"
            continue
        # one noise sample trains a candidate on all splits and is certified; it is never released
        for call in calls:
            within = {other.name for other in call.within}
            assert within & {"split_scores", "certificate"}, (
                "the key of noise that trains candidates has another use"
            )
    fits = [fit.key for fit in run.fits]
    assert len(set(fits)) == len(fits) and not run.held & set(fits)


@each_of(STABLE)
def test_each_candidate_and_noise_sample_has_a_key_of_its_own(name):
    run = run_of(name)
    (values,) = run.case.grid.values()
    keys = [key for keys in run.noise_keys.values() for key in keys]
    assert sorted(run.noise_keys) == sorted(values)
    assert {len(keys) for keys in run.noise_keys.values()} == {run.search.n_noise_samples}
    assert len(set(keys)) == len(keys)


@each_of(CASES)
def test_without_a_seed_a_search_spends_the_same_from_a_ledger_and_keeps_no_key(name, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1000.0, delta=0.1)
    run = unseeded(name, ledger)
    loss = run.search.privacy_
    assert ledger.spent() == pytest.approx((loss.epsilon, loss.delta))
    stated = sorted(release.epsilon for release in run_of(name).search.privacy_.releases)
    assert sorted(release.epsilon for release in loss.releases) == pytest.approx(stated)
    assert {fit.key for fit in run.fits} == {None}
    others, seeded = ([key for key, _ in r.generators if key not in r.held] for r in (run, run_of(name)))
    assert len(set(others)) == len(others) and not set(others) & set(seeded)
    for call in run.choices:
        assert call["random_state"].key not in run.held


# ---- sensitivities are those of the records that are read


@each_of(CERTAIN)
def test_the_noise_samples_that_train_are_those_that_are_certified(name):
    run = run_of(name)
    certified = {
        (model[run.case.parameter], model["random_state"])
        for call in run.recorder.of("certificate")
        for model in call.noted
        if call["failure_probability"] is None and model["epsilon"] == run.training_epsilon
    }
    assert certified == {(value, key) for value, keys in run.noise_keys.items() for key in keys}


@each_of([n for n in STABLE if "step" not in n])
def test_the_sensitivities_of_a_choice_by_stability(name):
    run = run_of(name)
    search, case = run.search, run.case
    delta = float(search.delta)
    # the bounds hold for all noise samples at once with probability 1 - delta
    tail = delta / sum(map(len, run.noise_keys.values())) if delta else None
    used = {call["failure_probability"] for call in run.recorder.of("certificate")}
    assert used - {0.5} == {tail}
    K = len(getattr(case.model, "classes", [0, 1]))
    parts, expected = parts_of(run), []
    for value, keys in run.noise_keys.items():
        moved = np.zeros(N)
        for train, test in parts:
            bounds = [
                clone(case.model)
                .set_params(
                    **{case.parameter: value},
                    epsilon=run.training_epsilon,
                    random_state=InnerStream(key),
                )
                .stability_certificate(
                    search.scorer_, len(train), P, 1 if K == 2 else K, failure_probability=tail
                )
                for key in keys
            ]
            a, span, rest = (
                np.mean([getattr(bound, name) for bound in bounds])
                for name in ("training", "span", "residual")
            )
            moved += np.where(np.isin(np.arange(N), train), a, rest) / len(parts)
            moved[test] += span / len(test) / len(parts)
        expected.append(moved.max())
    (choice,) = run.choices
    assert choice["sensitivities"] == pytest.approx(np.array(expected), rel=1e-9)
    assert search.plan_.sensitivity == pytest.approx(np.array(expected), rel=1e-9)


def parts_of(run):
    """Return the index arrays of the splits."""
    if isinstance(run.search.cv, list):
        return run.search.cv
    parts = run.recorder.of("split_scores")[0]["parts"]
    return [
        (np.flatnonzero(in_part(parts.train, j)), np.flatnonzero(in_part(parts.test, j)))
        for j in range(len(parts.test_sizes))
    ]


@each_of([n for n in CERTAIN if "splits" in n or "alpha" in n])
def test_the_scores_of_a_choice_by_stability_are_the_candidates_own(name):
    run = run_of(name)
    X, y = run.records
    parts = parts_of(run)
    means = []
    for value, keys in run.noise_keys.items():
        found = []
        for key, (train, test) in itertools.product(keys, parts):
            model = clone(run.case.model).set_params(
                **{run.case.parameter: value},
                epsilon=run.training_epsilon,
                random_state=InnerStream(key),
            )
            model.fit(X[train], None if y is None else y[train])
            found.append(run.search.scorer_(model, X[test], None if y is None else y[test]))
        means.append(np.mean(found))
    (choice,) = run.choices
    starts = np.zeros(len(means))
    if run.case.parameter == "alpha":
        # the regularisation that public numbers prefer has a head start of twice the minimum
        # detectable difference
        K = len(run.case.model.classes)
        costs = [
            clone(run.case.model)
            .set_params(alpha=value, epsilon=run.training_epsilon)
            .regularisation_cost(N, P, 1 if K == 2 else K)
            for value in run.noise_keys
        ]
        starts[np.argmin(costs)] = 2 * run.search.plan_.minimum_detectable_difference
    if run.case.parameter == "bin_width":
        # and so has the width, but once the difference
        costs = [
            sum(
                clone(run.case.model)
                .set_params(bin_width=value)
                .calibration(PublicShape(N, P), run.training_epsilon)
                .regularisation_parts()
            )
            for value in run.noise_keys
        ]
        starts[np.argmin(costs)] = run.search.plan_.minimum_detectable_difference
    assert choice["scores"] == pytest.approx(np.array(means) + starts, abs=1e-6)


BOUNDED = [
    name
    for name, case in CASES.items()
    if case.strategy in ("optimal_risk", "auto") and "processed" not in name and "step" not in name
]


@each_of(BOUNDED)
def test_a_choice_by_risk_bounds_compares_each_candidate_s_own(name):
    run = run_of(name)
    X, y = run.records
    (choice,) = run.choices
    (values,) = run.case.grid.values()
    training, reach = run.search.epsilon - choice["epsilon"], public_reach(N, 3, choice["epsilon"])
    models = [
        clone(run.case.model).set_params(**{run.case.parameter: value}, epsilon=training)
        for value in values
    ]
    K = len(getattr(run.case.model, "classes", [0, 1]))
    bounds = [model.risk_bound(N, P, 1 if K == 2 else K, reach) for model in models]
    least = [model.optimal_values([trial(model)], X, y, reach)[0] for model in models]
    worst = [value + bound.forecast for value, bound in zip(least, bounds)]
    rounding = max(bound.inexactness for bound in bounds)
    assert choice["scores"] == pytest.approx(-np.array(worst), abs=2 * rounding)
    assert choice["sensitivities"] == pytest.approx([bound.sensitivity for bound in bounds])


SCORED = [name for name, case in HELD_OUT.items() if case.strategy != "random_stopping"]


@each_of(SCORED)
def test_a_choice_on_held_out_records_compares_each_candidate_s_own_score(name):
    run = run_of(name)
    (values,) = run.case.grid.values()
    found = {
        getattr(call["estimator"], run.case.parameter): call.result
        for call in run.recorder.of("__call__")
        if len(call.noted) > 10
    }
    (choice,) = run.choices
    assert choice["scores"] == pytest.approx([found[value] for value in values], abs=0)


@each_of([n for n in HELD_OUT if "step" not in n])
def test_models_and_choice_read_different_records(name):
    run = run_of(name)
    X = run.records[0]
    trained = [names_of(fit.rows, X) for fit in run.fits]
    (held,) = {frozenset(names_of(rows, X)) for rows in run.scored}
    assert not any(part & held for part in trained)
    if run.case.strategy == "data_split":
        assert sum(map(len, trained)) == len(set().union(*trained))
    for call in run.choices:
        # one record of those that are held out moves a mean score by its share
        moved = run.search.scorer_.width / len(held)
        found = call["sensitivities" if call.name == "noisy_argmax" else "sensitivity"]
        assert np.asarray(found) == pytest.approx(moved, rel=1e-12)


# ---- what decides without noise reads public numbers only


def public_calls(run):
    """Return which calls were made up to the choice, with all numbers that are no records'."""
    said = []
    for call in run.calls(*CHOICES, "grid_laplace", "certificate", "fit"):
        if call.name == "fit":
            fit = call.noted
            numbers = fit.kind, fit.params.keys(), fit.epsilon, fit.key, fit.rows.shape
        elif call.name == "certificate":
            numbers = call["shape"], call["failure_probability"], call.noted
        else:
            state = call.arguments.get("random_state")
            names = "sensitivities", "sensitivity", "scales"
            scales = [np.asarray(call.arguments.get(name)) for name in names]
            numbers = call["epsilon"], getattr(state, "key", None), scales
        said.append(f"{call.name} {numbers}")
        if call.name in CHOICES:
            # it is released, and decides which candidate is trained
            break
    return said


@each_of(CASES)
def test_other_records_change_nothing_but_scores_and_choice(name):
    run, other = run_of(name), run_of(name, seed=1)
    assert public_calls(run) == public_calls(other)
    assert repr(run.search.plan_) == repr(other.search.plan_)
    assert str(run.search.privacy_) == str(other.search.privacy_)
    assert repr(run.search.cv_results_) == repr(other.search.cv_results_)
    # which candidate is best is released, and the model
    chosen = {"best_index_", "best_params_", "best_estimator_"}
    for name, value in vars(run.search).items():
        if name.endswith("_") and name not in chosen:
            assert repr(value) == repr(vars(other.search)[name]), name


@each_of(CASES)
def test_a_released_model_keeps_nothing_that_a_fit_alone_does_not(name):
    run = run_of(name)
    model = run.search.best_estimator_
    model = model[-1] if hasattr(model, "steps") else model
    alone = clone(model).fit(*records_for(model, 50, min(model.n_features_in_, 5)))
    assert set(vars(model)) <= set(vars(alone))


@each_of(CASES)
def test_no_key_stays_with_what_is_released(name):
    run = run_of(name)
    assert not any(isinstance(value, InnerStream) for value in vars(run.search).values())
    parameters = run.search.best_estimator_.get_params()
    assert not [
        name
        for name, value in parameters.items()
        if name.rpartition("__")[2] == "random_state" and value is not None
    ]


class OwnBrier(BrierScore):
    """A score that is called, since it has a `__call__` of its own."""

    def __call__(self, estimator, X, y):
        return super().__call__(estimator, X, y)


def test_a_score_of_one_s_own_is_chosen_by_like_any_other():
    name = "stability, logistic, splits"
    (choice,) = run_of(name).choices
    with pytest.MonkeyPatch.context() as patch:
        run = Run(CASES[name], patch, 0, random_state=0, scoring=OwnBrier())
    (own,) = run.choices
    assert own["scores"] == pytest.approx(choice["scores"], abs=1e-6)
    assert own["sensitivities"] == pytest.approx(choice["sensitivities"], rel=1e-12)
    assert own["epsilon"] == choice["epsilon"]


@pytest.mark.parametrize("model", ["logistic, three classes", "ridge"])
def test_candidates_are_certified_for_the_rows_that_they_see(model):
    # with steps that vary, candidates see other rows, of other numbers of columns
    last = MODELS[model]
    pipeline = Pipeline([("powers", PolynomialFeatures()), ("model", last)])
    grid = {"powers__degree": [1, 2], "model__data_norm": [0.5, 1.0]}
    widths = {}
    for strategy in ("stability", "optimal_risk", "budget_split", "random_stopping"):
        case = Case(strategy, pipeline, grid)
        with pytest.MonkeyPatch.context() as patch:
            recorder = Recorder(patch)
            kind, noise = DPLinearClassifier, LinearNoise
            if model == "ridge":
                kind, noise = DPRidge, RidgeNoise
            recorder.watch_methods(kind, "split_scores", note=note_trials)
            recorder.watch_methods(Trial, "certificate", note=note_trials)
            recorder.watch_methods(kind, "optimal_values").watch_methods(noise, "risk_bound")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SeededNoiseWarning)
                search = case.search(random_state=0).fit(*case.records())
        width = 1 + P if search.best_params_["powers__degree"] == 1 else 1 + P + P * (P + 1) // 2
        assert search.best_estimator_[-1].n_features_in_ == width
        trained = {
            m["random_state"]: call["X"].shape[1]
            for call in recorder.of("split_scores")
            for m in call.noted
        }
        certified = {
            (m["random_state"], call["shape"].n_features)
            for call in recorder.of("certificate")
            for m in call.noted
            if m["random_state"] is not None
        }
        assert certified == set(trained.items())
        solved = sorted(
            call["X"].shape[1] for call in recorder.of("optimal_values") for _ in call["trials"]
        )
        shapes = [call["self"].shape for call in recorder.of("risk_bound")]
        bounded = [shape.n_features for shape in shapes if shape.n_samples == N]
        assert solved == sorted(bounded)
        widths[strategy] = trained or solved
    assert all(widths[strategy] for strategy in ("stability", "optimal_risk"))


# ---- what fails late is paid for


class Stop(Exception):
    pass


LATE = [name for name in CASES if "splits" not in name and "logistic" not in name and "svc" not in name]


@each_of(LATE)
def test_a_search_that_fails_after_a_mechanism_answered_has_spent(name, monkeypatch, tmp_path):
    case = CASES[name]
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1000.0, delta=0.1)
    search = case.search(random_state=None, ledger=ledger)
    failed = []

    def stops(function):
        def wrapper(*args, **kwargs):
            result = function(*args, **kwargs)
            if function.__name__ == "fit" and len(args[1]) <= 10:
                return result
            failed.append(function.__name__)
            raise Stop

        return wrapper

    for function in (noisy_argmax, exponential_mechanism, grid_laplace):
        replace_everywhere(monkeypatch, function, stops(function))
    monkeypatch.setattr(PrivateEstimator, "fit", stops(PrivateEstimator.fit))
    # (a private step's own error may quote records, and is told in other words)
    with pytest.raises((Stop, ValueError)):
        search.fit(*case.records())
    assert failed and ledger.spent()[0] >= search.epsilon

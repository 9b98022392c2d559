"""Any two settings of a search meet in one of these, and all that it did is computed anew.

By what it chose, on which records it trained, what it evaluated, stated and planned.
"""

import math
import os
import tempfile
import warnings
from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
from scipy.special import expit, xlogy
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

from dpselect import PrivacyLedger
from dpselect.base.certificates import public_reach
from dpselect.base.estimator import PrivateEstimator, Trial
from dpselect.base.learned_numbers import Division
from dpselect.evaluation.release import EvaluationPlan
from dpselect.linear_model.model import LinearModel
from dpselect.linear_model.ridge.estimator import DPRidge
from dpselect.mechanisms import exponential_mechanism, noisy_argmax
from dpselect.mechanisms.random_stopping import random_stopping, run_delta, total_epsilon
from dpselect.model_selection.set_aside import SetAside
from dpselect.model_selection.splits import make_splits
from dpselect.model_selection.strategies.held_out import DataSplit
from dpselect.noise import InnerStream, as_generator, discrete_laplace, grid_laplace, grid_noise
from dpselect.noise.grid import noise_ratio
from dpselect.records.persons import adjacency_of
from dpselect.records.public_shape import PublicShape

from . import reference
from .pairs import (
    contained,
    groups_of,
    integers,
    labels_in,
    scaled,
    search_of,
    search_rows,
    targets_of,
    weights_of,
    work_in_pieces,
)
from .recording import Recorder, entropy_for_a_test, replace_everywhere

ROWS = search_rows()
N = 240
CHOICES = ("noisy_argmax", "exponential_mechanism")
HELD_OUT = ("budget_split", "data_split", "random_stopping")


class Run:
    """A row of settings, searched, with all that was called on records."""

    def __init__(self, row, seed=0, ledger=None, forced=False):
        self.row, self.ledger = row, ledger
        self.X = integers(N, row["columns"], seed)
        self.y = targets_of(row, self.X, seed)
        self.weight, self.groups = weights_of(row, N, seed), groups_of(row, N, 0)
        held = 0 if row["evaluation"] is None else round(row["evaluation"] * self.n_all)
        self.n = self.n_all - held
        self.search = self.search_of(
            row,
            self.n,
            7 if row["state"] == "integer" else None,
            ledger=ledger if row["ledger"] == "given" else None,
        )
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            entropy_for_a_test(patch, seed, row["place"])
            work_in_pieces(patch, row)
            self.recorder = Recorder(patch).watch_keys()
            self.recorder.watch(grid_laplace, make_splits, random_stopping)
            for mechanism in (noisy_argmax, exponential_mechanism):
                if forced:
                    replace_everywhere(patch, mechanism, lambda scores, *rest, **named: len(scores) - 1)
                else:
                    self.recorder.watch(mechanism)
            self.recorder.watch_methods(PrivateEstimator, "fit", "_noise_sample")
            self.recorder.watch_methods(LinearModel, "_release", "split_scores")
            self.recorder.watch_methods(DPRidge, "_release", "split_scores")
            self.recorder.watch_methods(DataSplit, "parts")
            self.recorder.watch_methods(SetAside, "of")
            self.recorder.watch_methods(Trial, "certificate").watch_methods(Division, "learn")
            self.recorder.watch_methods(EvaluationPlan, "evaluate", "_counts", "standard_noise")
            self.watch()
            with ledger if row["ledger"] == "open" else nullcontext():
                self.fit(self.search)
        self.said = [(message.category, str(message.message)) for message in said]

    search_of = staticmethod(search_of)

    def watch(self):
        """Record what else is called."""

    def fit(self, search):
        container, params = self.row["container"], {}
        piped = isinstance(search.estimator, Pipeline)
        if self.weight is not None:
            params["model__sample_weight" if piped else "sample_weight"] = self.weight
        if self.groups is not None:
            params["groups"] = self.groups
        search.fit(contained(self.X, container), labels_in(self.y, container), **params)

    @property
    def n_all(self):
        """int : Records or persons, those that are set aside included."""
        return N if self.groups is None else len(set(self.groups))

    @property
    def model(self):
        best = self.search.best_estimator_
        return best[-1] if isinstance(best, Pipeline) else best

    @property
    def training(self):
        """ndarray : The rows that are not set aside."""
        (aside,) = [call.result for call in self.recorder.of("of")]
        return np.arange(N) if aside.training is None else np.asarray(aside.training)

    def rows_of(self, part):
        """Return the rows of a part of the training records, or persons, as their numbers say."""
        training = self.training
        if self.groups is None:
            return training[np.asarray(part)]
        ids = np.array(self.groups, dtype=object)
        known = sorted(set(ids[training].tolist()))
        chosen = {known[i] for i in part}
        return np.array([i for i in training if ids[i] in chosen])

    @property
    def splits(self):
        (call,) = [call for call in self.recorder.of("make_splits")]
        return call.result

    @property
    def params(self):
        """list of dict : The parameters of each candidate."""
        return list(ParameterGrid(self.search.param_grid))

    def guess(self, i):
        """Return a candidate's model before anything is learned, with guesses, and its rows."""
        known, rows = self.unlearned(i)
        waiting = [name for name in LEARNED if getattr(known, name, None) == "auto"]
        known.set_params(epsilon=self.before_learning)
        return known.set_params(**{name: {"data_norm": 1.0}.get(name) for name in waiting}), rows

    @property
    def fractions_for_rates(self):
        """dict : By candidates that learn a base rate, the fraction of epsilon."""
        found = {}
        for i in range(len(self.params)):
            if getattr(self.unlearned(i)[0], "base_rate", None) == "auto":
                known, rows = self.guess(i)
                found[i] = reference.fraction_for_rate(known, self.n, rows.shape[1], n_problems(known))
        return {i: planned for i, planned in found.items() if planned}

    def candidate(self, i):
        """Return a candidate's model with what was learned, and the rows as it sees them."""
        known, rows = self.unlearned(i)
        learned = {call["name"]: call.result for call in self.recorder.of("learn")}
        waiting = [name for name in LEARNED if getattr(known, name, None) == "auto"]
        if "base_rate" in waiting and i not in self.fractions_for_rates:
            known.set_params(base_rate=None)
            waiting.remove("base_rate")
        return known.set_params(**{name: learned[name] for name in waiting}), rows

    def unlearned(self, i):
        """Return a candidate's model, and the rows as it sees them."""
        params = self.params[i]
        known, rows = clone(self.last(self.search.estimator)), self.seen(self.X, params)
        given = {name.removeprefix("model__"): value for name, value in params.items()}
        known.set_params(**{name: value for name, value in given.items() if "powers" not in name})
        if self.row["strategy"] == "random_stopping" and known.delta:
            (stopping,) = self.recorder.of("random_stopping")
            known.set_params(delta=run_delta(self.search.delta, stopping["law"]))
        return known, rows

    @property
    def before_learning(self):
        """float : Epsilon of all but the private steps."""
        return self.row["epsilon"] - 1.0 * (self.row["step"] == "private")

    @property
    def shares(self):
        """list of float : Epsilon of each number that was learned."""
        unit, fractions = math.ulp(self.before_learning), []
        for call in self.recorder.of("learn"):
            planned = self.fractions_for_rates.values() if call["name"] == "base_rate" else [1 / 20]
            fractions.append(max(planned))
        return [math.floor(f * self.before_learning / unit) * unit for f in fractions]

    @property
    def rest(self):
        """float : Epsilon of the choice and the model."""
        return math.fsum([self.before_learning, *(-share for share in self.shares)])

    @property
    def strategy(self):
        plan = self.search.plan_
        return plan.strategy

    @property
    def considered(self):
        """list of int : The candidates that are compared."""
        return np.flatnonzero(self.search.plan_.considered).tolist()

    @property
    def training_epsilon(self):
        k = len(self.considered)
        if self.strategy in ("stability", "optimal_risk"):
            return self.rest - sum(call["epsilon"] for call in self.recorder.of(*CHOICES))
        if self.strategy == "random_stopping":
            return self.recorder.of("grid_laplace")[0]["epsilon"]
        return self.rest / k if self.strategy == "budget_split" else self.rest

    def trained_on(self, i):
        """Return the rows that the released model of a candidate was trained on."""
        if self.strategy == "data_split":
            return self.rows_of(self.recorder.of("parts")[0].result[i])
        if self.strategy in (*HELD_OUT, "one_release"):
            return self.rows_of(self.splits[0][0])
        return self.training

    def part(self, values, rows):
        return None if values is None else np.array(values, dtype=object)[rows]

    def release(self, known, X, rows, unit, epsilon):
        """Return the coefficients of a model that is trained on some rows, and a precision."""
        known = clone(known).set_params(epsilon=epsilon)
        y, groups = self.y[rows], self.part(self.groups, rows)
        if reference.kind_of(known) == reference.RIDGE:
            w, precision = reference.ridge_release(known, X[rows], y, unit, groups)
        else:
            weight = 1.0 if self.weight is None else self.weight[rows]
            w, precision = reference.linear_release(known, X[rows], y, unit, weight, groups)
        rounding = 1e-6 + 2.0**-22 * math.sqrt(w.shape[-1]) * len(np.atleast_2d(w)) / epsilon
        precision = precision * (known.perturbation == "objective") + rounding * np.abs(w).max()
        return w, precision

    def linear(self, known, w, X, rows):
        """Return linear predictions of some rows."""
        if reference.kind_of(known) == reference.RIDGE:
            A = reference.clipped_rows(known, X[rows])
            A = np.hstack([A, np.ones((len(A), 1))])[:, : len(w)]
        else:
            A = reference.design(known, X[rows])
        return A @ np.atleast_2d(w).T

    def score(self, known, w, X, rows):
        """Return the estimator's own score of coefficients on some rows, or persons."""
        y, groups = self.y[rows], self.part(self.groups, rows)
        share = np.ones(len(rows)) if groups is None else reference.shares_of(groups)
        kind, z = reference.kind_of(known), self.linear(known, w, X, rows)
        if kind in reference.MARGINS:
            u = reference.decisions(known, z) * reference.signs_of(y, np.unique(known.classes))
            penalty = np.clip(1 - u, 0, 1) if kind == reference.HINGE else expit(-u) ** 2
            penalty = penalty.mean(axis=1)
        elif kind == reference.POISSON:
            B = known.target_bound
            rate, t = np.minimum(np.exp(np.minimum(z[:, 0], 50)), B), np.clip(y, 0, B)
            penalty = np.minimum(B, rate - t + xlogy(t, t) - xlogy(t, rate))
        elif kind == reference.HUBER:
            centre, h = reference.units_of(known)
            penalty = np.minimum(np.abs(y - centre - h * z[:, 0]), 4 * h)
        else:
            centre, half = reference.ridge_target(known)
            penalty = np.minimum((y - centre - z[:, 0]) ** 2, half**2)
        return -(share * penalty).sum() / share.sum()

    def index_of(self, model, n_features):
        """Return which candidate a model is of."""
        found = []
        for i, params in enumerate(self.params):
            given = {name.removeprefix("model__"): value for name, value in params.items()}
            degree = given.pop("powers__degree", None)
            same = all(getattr(model, name) == value for name, value in given.items())
            wide = degree is None or (n_features > self.X.shape[1]) == (degree == 2)
            found += [i] if same and wide else []
        (i,) = found
        return i

    def calls(self, name):
        """Return the calls of a name that were made on records, and not to try the search out."""
        return [
            call
            for call in self.recorder.of(name)
            if not any(n_rows(c["X"]) <= 3 for c in (*call.within, call) if c.name == "fit")
        ]

    @property
    def releases(self):
        """list of (int, Call) : Of models that were fitted on records, and whose they are."""
        return [
            (self.index_of(call["self"], call["records"].X.shape[1]), call)
            for call in self.calls("_release")
            if any(outer.name == "fit" for outer in call.within)
        ]

    @staticmethod
    def last(estimator):
        return estimator[-1] if isinstance(estimator, Pipeline) else estimator

    def seen(self, X, params):
        if self.row["step"] == "bounds":
            X = scaled(X, -4, 6)
        elif self.row["step"] == "private":
            (bounds,) = [c.result for c in self.calls("fit") if hasattr(c.result, "bounds_")]
            X = scaled(X, *bounds.bounds_.T)
        if "powers__degree" in params:
            X = PolynomialFeatures(params["powers__degree"], include_bias=False).fit_transform(X)
        return X


LEARNED = ("data_norm", "data_norm_l1", "base_rate")


def n_rows(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def n_problems(model):
    K = len(getattr(model, "classes", [0, 1]))
    return 1 if K == 2 else K


@cache
def run_of(name, seed=0):
    row = ROWS[name]
    return Run(row, seed, None if row["ledger"] == "none" else new_ledger(row))


def new_ledger(row):
    unit = adjacency_of(row["groups"] != "none")
    file = os.path.join(tempfile.mkdtemp(), "records.ledger")
    return PrivacyLedger(file, epsilon=1e9, delta=0.5, adjacency=unit)


FAST = [*ROWS][::3]


def some_now(names, fast=FAST):
    """Return names of rows, of which most are slow: each is searched anew."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


each_row = pytest.mark.parametrize("name", some_now(ROWS), scope="module")


@each_row
def test_the_released_model_is_the_documented_function_of_its_records(name):
    run = run_of(name)
    if not run.row["refit"] and run.strategy not in (*HELD_OUT, "one_release"):
        assert not run.releases and not hasattr(run.search, "best_estimator_")
        return
    releases = run.releases
    best = run.search.best_index_
    assert run.search.best_params_ == run.params[best]
    # random stopping makes many
    for i, call in releases[:4]:
        known, X = run.candidate(i)
        rows = run.trained_on(i)
        if known.get_params().get("perturbation") == "covariance":
            continue
        w, precision = run.release(known, X, rows, call["noise"], run.training_epsilon)
        model = clone(known)
        vars(model).update(call.result)
        coefficients = (
            reference.ridge_coefficients if isinstance(known, DPRidge) else reference.linear_coefficients
        )
        assert coefficients(model) == pytest.approx(w, abs=precision, rel=0)
    if not run.row["refit"]:
        return
    model = run.model
    whole = "gram_" if hasattr(model, "gram_") else "coef_"
    (own,) = [i for i, call in releases if call.result[whole] is vars(model)[whole]] or [None]
    assert own == best or run.strategy == "one_release"
    assert (
        model.get_params().items()
        >= {
            name.removeprefix("model__"): value
            for name, value in run.params[best].items()
            if "powers" not in name
        }.items()
    )
    assert model.random_state is None and model.epsilon == pytest.approx(run.training_epsilon, rel=1e-12)
    counts = {"budget_split": len(run.params), "data_split": len(run.params)}
    if run.strategy != "random_stopping":
        assert len(releases) == counts.get(run.strategy, 1)


# the least risks of many columns are computed anew for seconds
LONG = [
    name
    for name, row in ROWS.items()
    if row["strategy"] == "optimal_risk"
    and row["columns"] == 40
    and row["kind"] in ("huber", "capped", "steep", "logistic")
]


@pytest.mark.parametrize("name", some_now(ROWS, {*FAST}.difference(LONG)), scope="module")
def test_a_choice_compares_each_candidate_s_own_score(name):
    run = run_of(name)
    choices, considered = run.recorder.of(*CHOICES), run.considered
    assert len(choices) <= 1
    if run.strategy in ("data_independent", "random", "first_candidate"):
        assert not choices
        return
    sizes = len(run.splits[0][1])
    width = run.search.scorer_.width
    if run.strategy in (*HELD_OUT, "one_release"):
        held = run.rows_of(run.splits[0][1])
        models = {}
        for i, call in run.releases:
            known, X = run.candidate(i)
            model = clone(known)
            vars(model).update(call.result)
            models.setdefault(i, []).append((model, X))
        expected = {
            i: [run.score(model, coefficients_of(model), X, held) for model, X in found]
            for i, found in models.items()
        }
        if run.strategy == "random_stopping":
            calls = run.recorder.of("grid_laplace")
            told = sorted(float(call["values"]) for call in calls)
            assert told == pytest.approx(sorted(sum(expected.values(), [])), abs=1e-9)
            scales = np.ravel([call["scales"] for call in calls])
            assert scales == pytest.approx(width / sizes / run.training_epsilon)
            return
        (call,) = choices
        assert call["epsilon"] == pytest.approx(run.rest, rel=1e-12)
        moved = call["sensitivity" if "sensitivity" in call.arguments else "sensitivities"]
        assert np.asarray(moved) == pytest.approx(width / sizes)
        if run.strategy != "one_release":
            assert call["scores"] == pytest.approx([expected[i][0] for i in considered], abs=1e-9)
        return
    if not choices:
        assert run.strategy == "optimal_risk"
        assert public_reach(run.n, len(considered), 0.1 * run.rest) is None
        return
    (call,) = choices
    check = check_stability if run.strategy == "stability" else check_optimal_risk
    check(run, call, considered)


def coefficients_of(model):
    ridge = isinstance(model, DPRidge)
    return reference.ridge_coefficients(model) if ridge else reference.linear_coefficients(model)


def check_stability(run, call, considered):
    training = run.training_epsilon
    keys = {}
    for swept in run.calls("split_scores"):
        for trial in swept["trials"]:
            assert trial.epsilon == pytest.approx(training, rel=1e-12)
            i = run.index_of(trial.model, n_columns(swept["X"]))
            keys.setdefault(i, {})[trial.random_state.key] = trial.random_state
    assert sorted(keys) == considered
    assert {len(states) for states in keys.values()} == {run.row["samples"]}
    assert len(set().union(*keys.values())) == sum(map(len, keys.values()))
    scores, moved, costs = [], [], []
    for i in considered:
        known, X = run.candidate(i)
        known.set_params(epsilon=training)
        K, persons = n_problems(known), run.groups is not None
        shape = PublicShape(run.n, X.shape[1], K, persons)
        states = list(keys[i].values())
        found, most = [], np.zeros(run.n)
        for train, test in run.splits:
            bounds = []
            for state in states:
                unit = known._noise_sample(PublicShape(1, X.shape[1], K), training, state)
                w, _ = run.release(known, X, run.rows_of(train), unit, training)
                found.append(run.score(known, w, X, run.rows_of(test)))
                model = clone(known).set_params(random_state=state)
                bounds.append(
                    model.stability_certificate(
                        run.search.scorer_, len(train), X.shape[1], K, persons=persons
                    )
                )
            a, span, rest = (
                np.mean([getattr(b, part) for b in bounds]) for part in ("training", "span", "residual")
            )
            most += np.where(np.isin(np.arange(run.n), train), a, rest) / len(run.splits)
            most[test] += span / len(test) / len(run.splits)
        scores.append(np.mean(found))
        moved.append(most.max())
        if not isinstance(known, DPRidge):
            costs.append(known.calibration(shape, training).regularisation_cost())
    assert call["sensitivities"] == pytest.approx(moved, rel=1e-9)
    if costs:
        others = [
            tuple(v for k, v in sorted(run.params[i].items()) if not k.endswith("alpha"))
            for i in considered
        ]
        preferred = {cheapest(run, costs, [i for i in considered if others[i] == o]) for o in others}
        if len(preferred) < len(considered):
            for i in preferred:
                scores[i] += 2 * run.search.plan_.minimum_detectable_difference
    assert call["scores"] == pytest.approx(scores, abs=1e-5)
    fraction = call["epsilon"] / run.rest
    assert fraction == pytest.approx(0.1 if costs and len(set(others)) == 1 else 0.5)


def cheapest(run, costs, members):
    """Return the candidate with the least cost, and of equal ones that with the least alpha."""
    least = min(costs[i] for i in members)
    alphas = [{k.split("__")[-1]: v for k, v in params.items()}.get("alpha") for params in run.params]
    return min((alphas[i] or 0.0, i) for i in members if costs[i] <= (1 + 1e-9) * least)[1]


def n_columns(X):
    return X.shape[1] if hasattr(X, "shape") else len(X[0])


def check_optimal_risk(run, call, considered):
    training = run.training_epsilon
    assert call["epsilon"] == pytest.approx(0.1 * run.rest)
    reach = public_reach(run.n, len(considered), call["epsilon"])
    scores, moved, off = [], [], []
    for i in considered:
        known, X = run.candidate(i)
        known.set_params(epsilon=training)
        K = n_problems(known)
        calibration = known.calibration(PublicShape(run.n, X.shape[1], K, run.groups is not None))
        bound = calibration.risk_bound(reach)
        moved.append(bound.sensitivity)
        scores.append(None)
        if not isinstance(known, DPRidge):
            mu = reference.linear_scales(known, run.n, X.shape[1], K, run.groups is not None)[0]
            scores[-1] = -(least_risk(run, known, X, reach, mu) + bound.forecast)
        off.append(2 * bound.inexactness + 1e-9)
    assert call["sensitivities"] == pytest.approx(moved)
    for found, expected, precision in zip(call["scores"], scores, off):
        if expected is not None:
            assert found == pytest.approx(expected, abs=precision)


def least_risk(run, known, X, reach, mu):
    """Return the least regularised risk over the ball in which predictions reach so far."""
    rows, kind = run.training, reference.kind_of(known)
    A, y, groups = reference.design(known, X[rows]), run.y[rows], run.part(run.groups, rows)
    share = np.ones(len(rows)) if groups is None else reference.shares_of(groups)
    weight = reference.weights_of(known, y, 1.0 if run.weight is None else run.weight[rows])
    weight = weight * share * len(rows) / share.sum()
    ball = reach / reference.linear_bounds(known, X.shape[1])[1]
    K = n_problems(known)
    values = []
    for k, origin in enumerate(np.resize(reference.origins(known), K)):
        o = np.zeros(A.shape[1])
        o[-1] = origin
        sign, width = 1.0, reference.width_of(known)
        if kind in reference.MARGINS:
            sign = reference.signs_of(y, np.unique(known.classes))[:, [k]]
        elif kind == reference.POISSON:
            width = np.clip(y, 0, known.target_bound), known.target_bound
        else:
            centre, h = reference.units_of(known)
            width = (np.clip(y, -1e9, 1e9) - centre) / h

        def solved(M, sign=sign, width=width, o=o):
            return reference.minimiser(kind, A * sign, M, -M * o, width, weight)

        low, high, w = mu, mu, solved(mu)
        while np.linalg.norm(w - o) > ball:
            low, high = high, 2 * high
            w = solved(high)
        for _ in range(40 * (high > mu)):
            middle = (low + high) / 2
            w = solved(middle)
            low, high = (middle, high) if np.linalg.norm(w - o) > ball else (low, middle)
        loss = losses_of(kind, (A * sign) @ w, width)
        values.append((weight * loss).mean() + mu / 2 * (w - o) @ (w - o))
    return np.mean(values)


def losses_of(kind, z, width):
    """Return the losses of margins, or predictions; `width` is as for :func:`reference.minimiser`."""
    if kind == reference.LOGISTIC:
        return np.logaddexp(0, -z)
    if kind == reference.CAPPED:
        bend = math.log(1 / width - 1)
        return np.logaddexp(0, -np.maximum(z, bend)) + width * np.maximum(bend - z, 0)
    if kind == reference.HINGE:
        return np.clip(1 + width - z, 0, 2 * width) ** 2 / (4 * width) + np.maximum(1 - width - z, 0)
    if kind == reference.POISSON:
        t, B = width
        short = np.minimum(z, math.log(B))
        return np.exp(short) - t * short + xlogy(t, t) - t + (B - t) * np.maximum(z - short, 0)
    return z * (z - 2 * width) / (np.hypot(1, z - width) + np.hypot(1, width))


# ---- what is stated


@each_row
def test_the_statement_is_that_of_what_was_done(name):
    run = run_of(name)
    row, loss = run.row, run.search.privacy_
    k, rest, training = len(run.considered), run.rest, run.training_epsilon
    before = [1.0] * (row["step"] == "private") + run.shares
    chosen = [call["epsilon"] for call in run.recorder.of(*CHOICES)]
    spent, counted = [training] * row["refit"], training * row["refit"]
    if run.strategy in ("budget_split", "data_split"):
        spent, counted = [training] * k, rest
        assert chosen == pytest.approx([rest])
    elif run.strategy == "one_release":
        spent, counted = [rest], rest
        assert chosen == pytest.approx([rest])
    elif run.strategy == "random_stopping":
        spent, counted = [rest], rest
        (stopped,) = {call["epsilon"] for call in run.recorder.of("grid_laplace")}
        assert total_epsilon(stopped, run.recorder.of("random_stopping")[0]["law"]) <= rest * (1 + 1e-9)
    else:
        counted += sum(chosen)
        assert counted == pytest.approx(rest) or not row["refit"]
    expected = before + spent + chosen
    total = sum(before) + counted
    if row["evaluation"] is not None:
        expected.append(row["epsilon"])
        total = max(total, row["epsilon"])
    stated = [part.epsilon for part in loss.releases if part.epsilon > 0]
    assert sorted(stated) == pytest.approx(sorted(expected), rel=1e-9)
    assert loss.epsilon == pytest.approx(total, rel=1e-9) or (
        loss.delta > 0 and 0.3 * total < loss.epsilon < total
    )
    assert loss.epsilon <= row["epsilon"]
    # deltas of the models, and of the steps
    fits = [call for call in run.calls("fit") if hasattr(call.result, "privacy_")]
    # (what won a part of the budget states all parts)
    deltas = [min(call.result.privacy_.delta, 0.02) for call in fits]
    if row["delta"] == 0:
        assert loss.delta == 0
    elif run.strategy == "random_stopping":
        assert loss.delta <= 0.05 + 0.02
    else:
        least = max(deltas, default=0) if run.strategy == "data_split" else math.fsum(deltas)
        if run.strategy == "data_split" and row["step"] == "private":
            least = deltas[0] + max(deltas[1:])
        assert loss.delta >= least * (1 - 1e-12)
        assert loss.delta <= 0.02 * (1 + (k if run.strategy == "budget_split" else 1)) + 1e-12
    seeded = row["state"] == "integer"
    parts = [part for part in loss.releases if part.epsilon > 0]
    assert all(part.seeded == seeded for part in parts) and loss.seeded == (seeded and bool(parts))
    assert loss.adjacency == adjacency_of(run.groups is not None)
    if run.ledger is not None:
        (entry,) = run.ledger.history()
        assert (entry.epsilon, entry.delta) == (loss.epsilon, loss.delta)
        assert entry.reserved_epsilon == row["epsilon"] and entry.reserved_delta >= loss.delta
        assert entry.committed_at is not None and entry.label == type(run.search).__name__


@each_row
def test_the_plan_tells_what_was_done(name):
    run = run_of(name)
    plan, search = run.search.plan_, run.search
    K = 2 if run.row["labels"] == "-" else len(np.unique(run.last(search.estimator).classes))
    told = search.plan(run.n_all, run.row["columns"], K, persons=run.groups is not None)
    for attribute in (
        "strategy",
        "training_epsilon",
        "selection_epsilon",
        "training_size",
        "n_samples",
        "params",
        "epsilon",
    ):
        assert getattr(told, attribute) == getattr(plan, attribute), attribute
    assert (told.considered == plan.considered).all() and plan.n_samples == run.n
    assert plan.epsilon == run.row["epsilon"]
    assert plan.training_epsilon == pytest.approx(run.training_epsilon, rel=1e-12)
    assert list(plan.params) == run.params == search.cv_results_["params"]
    for call in run.recorder.of(*CHOICES):
        assert plan.selection_epsilon == call["epsilon"]
        moved = call["sensitivity" if "sensitivity" in call.arguments else "sensitivities"]
        stated = plan.sensitivity[run.considered]
        assert stated == pytest.approx(np.broadcast_to(moved, stated.shape))
        assert search.cv_results_["sensitivity"][run.considered] == pytest.approx(stated)


@each_row
def test_no_key_draws_two_noises(name):
    run = run_of(name)
    held = {trial.random_state.key for call in run.calls("split_scores") for trial in call["trials"]}
    drawn = {}
    for key, call in run.recorder.keys():
        if not any(c.name == "fit" and n_rows(c["X"]) <= 3 for c in call.within):
            drawn.setdefault(key, []).append({c.name for c in call.within})
    for key, uses in drawn.items():
        if key in held:
            assert all(use & {"split_scores", "certificate"} for use in uses)
        else:
            assert len(uses) == 1
    if run.row["state"] == "none" and run.row["place"] % 3 == 0:
        again = Run({**run.row, "place": 1000}, ledger=run.ledger and new_ledger(run.row))
        assert not drawn.keys() & {key for key, _ in again.recorder.keys()}


EVALUATED = [name for name, row in ROWS.items() if row["evaluation"]]


def around(predicted, by=1e-9):
    """Yield predictions with one number of each row moved a little, either way."""
    for place in range(predicted.shape[1]) if predicted.ndim == 2 else [slice(None)]:
        for sign in (-by, by):
            moved = predicted.copy()
            moved[..., place] += sign
            yield moved


@pytest.mark.parametrize("name", some_now(EVALUATED))
def test_what_is_set_aside_is_evaluated_and_took_no_part(name):
    run = run_of(name)
    (aside,) = [call.result for call in run.recorder.of("of")]
    training, held = map(np.asarray, (aside.training, aside.held))
    assert sorted([*training, *held]) == list(range(N))
    n_held = run.n_all - run.n
    shares = np.ones(len(held))
    if run.groups is not None:
        ids = np.array(run.groups, dtype=object)
        assert not set(ids[training]) & set(ids[held])
        shares, n_held = reference.shares_of(ids[held]), len(set(ids[held]))
    assert n_held == run.n_all - run.n == round(0.3 * run.n_all)
    (counted,) = run.recorder.of("_counts")
    plan, model = counted["self"], run.model
    known, X = run.candidate(run.search.best_index_)
    z = run.linear(known, coefficients_of_best(run, known), X, held)
    y = run.y[held]
    if run.row["labels"] == "-":
        predicted = z[:, 0]
        if run.row["kind"] == "poisson":
            predicted = np.minimum(np.exp(np.minimum(predicted, 50)), known.target_bound)
        elif run.row["kind"] == "huber":
            centre, h = reference.units_of(known)
            predicted = centre + h * predicted
        else:
            predicted = predicted + reference.ridge_target(known)[0]
    else:
        classes = np.unique(known.classes)
        predicted = expit(reference.decisions(known, z))
        if len(classes) == 2:
            predicted = predicted[:, 0]
        elif run.row["kind"] == "svc":
            predicted = classes[z.argmax(axis=1)]
        else:
            predicted = predicted / predicted.sum(axis=1, keepdims=True)
    weighted = run.weight is not None
    assert plan.max_weight == (known.max_sample_weight if weighted else None)
    if weighted:  # as the model that is released
        shares = shares * np.minimum(run.weight[held], plan.max_weight) / plan.max_weight
    cell = plan.cells.index(predicted, y)
    expected = np.bincount(cell, shares, np.prod(plan.shape))
    # models with much noise are sure of two classes at once: which comes first is rounding
    moved = [predicted] if predicted.dtype.kind not in "f" else list(around(predicted))
    unsure = np.any([plan.cells.index(other, y) != cell for other in moved], axis=0)
    assert unsure.mean() < 0.5
    apart = np.abs(counted.result - expected)
    assert apart.max() < 1e-3 or apart.sum() < 2 * shares[unsure].sum() + 1e-3
    assert counted.result.sum() == pytest.approx(n_held, abs=1e-2) or weighted
    evaluation = run.search.evaluation_
    assert plan.epsilon == run.row["epsilon"] == evaluation.privacy_.epsilon
    assert evaluation.n_records == n_held and plan.persons == (run.groups is not None)
    (noise,) = run.recorder.of("standard_noise")
    (key,) = [key for key, made in run.recorder.keys() if noise in made.within]
    generator, size = as_generator(InnerStream(key)), len(expected)
    if plan.persons or weighted:
        drawn = grid_noise(generator, size, 2 / plan.epsilon, plan.step)
    else:
        drawn = discrete_laplace(generator, size, noise_ratio(plan.epsilon, 2.0))
    assert np.ravel(evaluation.counts_) == pytest.approx(counted.result + drawn, abs=1e-9)
    assert model is run.model


def coefficients_of_best(run, known):
    model = clone(known)
    vars(model).update({name: vars(run.model)[name] for name in ("coef_", "intercept_")})
    return coefficients_of(model)


def public_facts(run):
    """Return all that a search shows, but what is released."""
    search = run.search
    facts = [run.said, repr(search.plan_), str(search.privacy_), repr(search.cv_results_)]
    facts += [sorted(name for name in vars(search) if name != "best_index_")]
    if run.row["refit"]:
        facts += [search.n_features_in_, sorted(vars(run.model))]
    if run.ledger is not None:
        facts += [[(e.epsilon, e.delta, e.reserved_delta) for e in run.ledger.history()]]
    return facts


@pytest.mark.parametrize("name", some_now(ROWS, FAST[::2]), scope="module")
def test_other_records_change_nothing_but_what_is_released(name):
    run = run_of(name)
    if run.row["state"] == "none" or "private" in run.row["step"] or run.recorder.of("learn"):
        # plans of this or that noise differ, and those for bounds that were learned
        return
    if run.strategy == "random_stopping":
        return
    other = run_of(name, seed=1)
    for fact, same in zip(public_facts(run), public_facts(other), strict=True):
        assert fact == same


@pytest.mark.parametrize("name", some_now(ROWS, FAST[1::2]), scope="module")
def test_the_candidate_that_a_mechanism_names_is_released(name):
    run = run_of(name)
    if not run.recorder.of(*CHOICES):
        return
    last = Run(run.row, ledger=run.ledger and new_ledger(run.row), forced=True)
    best = run.considered[-1]
    assert last.search.best_index_ == best and last.search.best_params_ == run.params[best]
    if run.row["refit"]:
        own = [c for i, c in last.releases if i == best or last.strategy == "one_release"]
        whole = "gram_" if hasattr(last.model, "gram_") else "coef_"
        assert any(c.result[whole] is vars(last.model)[whole] for c in own)
        given = {n.removeprefix("model__"): v for n, v in run.params[best].items() if "powers" not in n}
        assert last.model.get_params().items() >= given.items()
        if "powers__degree" in run.params[best]:
            assert last.search.best_estimator_["powers"].degree == run.params[best]["powers__degree"]

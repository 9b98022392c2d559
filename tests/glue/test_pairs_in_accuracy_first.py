"""Any two settings of an accuracy-first search meet in one of these; what it read is computed anew."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import expit, lambertw
from sklearn.base import clone

from dpselect import DPRidge
from dpselect.base.accuracy_form import SensitivityNoise
from dpselect.linear_model.accuracy import LinearReduction
from dpselect.linear_model.ridge.accuracy import RidgeReduction
from dpselect.mechanisms.above_threshold import above_threshold, reduced_above_threshold
from dpselect.mechanisms.verification import verify
from dpselect.model_selection.accuracy_first.goals import Goal
from dpselect.noise import release
from dpselect.records.persons import adjacency_of
from dpselect.records.public_shape import PublicShape
from tests.marks import a_third

from . import reference
from .pairs import accuracy_rows, accuracy_search_of
from .test_pairs_in_searches import N, Run, losses_of, n_problems, n_rows, new_ledger

ROWS = accuracy_rows()


class Walk(Run):
    """A row of settings, searched for an accuracy, with all that was called on records."""

    search_of = staticmethod(accuracy_search_of)

    def watch(self):
        for kind in (LinearReduction, RidgeReduction):
            self.recorder.watch_methods(kind, "__init__", "read", "risks")
        self.recorder.watch_methods(Goal, "loss").watch_methods(SensitivityNoise, "start")
        self.recorder.watch(verify, above_threshold, reduced_above_threshold, release)

    @property
    def known(self):
        return clone(self.last(self.search.estimator))

    @property
    def rows(self):
        return self.seen(self.X, {})

    @property
    def trained(self):
        """ndarray : The rows that models were trained on."""
        return self.rows_of(self.splits[0][0]) if self.row["criterion"] == "score" else self.training

    def count(self, rows):
        return len(rows) if self.groups is None else len(set(self.part(self.groups, rows)))

    def unit_of(self, index):
        """Return the standard noise of the model that was read at a place."""
        read = self.recorder.of("read")[index]
        (call,) = [call for call in self.recorder.of("_noise_sample") if read in call.within]
        return call.result


@cache
def run_of(name, seed=0):
    row = {**ROWS[name], "refit": True, "samples": 1, "vary": "alpha", "strategy": "", "delta": 0.0}
    return Walk(row, seed, None if row["ledger"] == "none" else new_ledger(row))


each_row = pytest.mark.parametrize("name", a_third(ROWS), scope="module")


def ball_of(known, X):
    """Return the radius of the public ball about the origins that holds all minimisers."""
    kind, W = reference.kind_of(known), reference.largest_weight(known)
    _, R, _, _ = reference.linear_bounds(known, X.shape[1])
    L, width = 1.0, getattr(known, "huber_width", 0.5)
    L = reference.steepest(known) if kind == reference.CAPPED else L
    pull = {
        reference.LOGISTIC: 0.2784645427610738,
        reference.HUBER: math.inf,
        reference.CAPPED: 0.2784645427610738,
        reference.HINGE: (1 + width) ** 2 / (8 * width),
    }.get(kind)
    if kind == reference.POISSON:
        L = B = known.target_bound
        z = max(0.0, lambertw(math.e * B).real - 1)
        pull = max(math.exp(-1) if B >= math.exp(-1) else -B * math.log(B), z * z * math.exp(z))
    offset = np.abs(reference.origins(known)).max() * getattr(known, "intercept_scaling", 1.0)
    pull = W * (pull + L * offset)
    return min(W * L * R / known.alpha, math.sqrt(pull / known.alpha))


def in_ball(known, X, w):
    origin = np.zeros_like(w)
    origin[:, -1] = np.resize(reference.origins(known), len(w))
    ball = ball_of(known, X)
    lengths = np.linalg.norm(w - origin, axis=1, keepdims=True)
    share = ball / np.maximum(lengths, ball)
    return w * share + (1 - share) * origin


@each_row
def test_models_are_the_documented_functions_of_records_and_noise(name):
    run = run_of(name)
    search, known, X, rows = run.search, run.known, run.rows, run.trained
    model, epsilon = run.model, search.best_epsilon_
    assert model.epsilon == epsilon and model.random_state is None
    if search.method_ == "certified":
        (call,) = [c for _, c in run.releases]
        if not isinstance(known, DPRidge):
            known.set_params(perturbation="objective", tol=1e-12)
        if known.get_params()["perturbation"] == "objective":
            w, precision = run.release(known, X, rows, call["noise"], epsilon)
            found = coefficients_of(known, model)
            assert found == pytest.approx(w, abs=precision, rel=0)
        return
    (made,) = [c for c in run.recorder.of("__init__") if "levels" in c.arguments]
    fresh = search.method_ == "doubling" or known.perturbation == "objective"
    expected_how = "fresh" if fresh else "brownian" if search.method_ == "brownian" else "path"
    assert made["levels"].how == expected_how
    path = search.path_
    assert coefficients_of(known, model) == pytest.approx(path["model"][-1], abs=1e-9)
    n, p = run.count(rows), X.shape[1]
    if known.perturbation == "objective":
        i = len(path["epsilon"]) - 1
        w, precision = run.release(known, X, rows, run.unit_of(i), path["epsilon"][i])
        if not isinstance(known, DPRidge):
            w = in_ball(known, X, w)
        assert path["model"][i] == pytest.approx(w, abs=precision, rel=0)
        return
    (started,) = run.recorder.of("start")
    noise = started["self"]
    one = clone(known).set_params(epsilon=1.0)
    if known.perturbation == "covariance":
        norm = "l2" if search.method_ == "brownian" else reference.ridge_norm(one, p)
        scales = reference.statistic_scales(clone(one).set_params(norm=norm), p)
        scales = scales[np.nonzero(np.triu(scales))]
        assert np.ravel(noise.sensitivity * np.asarray(noise.scales)) == pytest.approx(scales, rel=1e-5)
        return
    if isinstance(known, DPRidge):
        _, _, scale = reference.ridge_scales(one, n, p)
        bare, _ = reference.ridge_release(
            clone(known).set_params(epsilon=math.inf),
            X[rows],
            run.y[rows],
            np.zeros(p + bool(known.fit_intercept)),
            run.part(run.groups, rows),
        )
    else:
        _, _, scale = reference.linear_scales(one, n, p, 1)
        K, weight = n_problems(known), 1.0 if run.weight is None else run.weight[rows]
        bare, _ = reference.linear_release(
            reference.without_noise(known),
            X[rows],
            run.y[rows],
            np.zeros((2, K, p + bool(known.fit_intercept))),
            weight,
            run.part(run.groups, rows),
        )
    assert noise.sensitivity == pytest.approx(scale, rel=1e-5)
    assert noise.shape[0] == n_problems(known)
    released = [c for c in run.recorder.of("release") if any(o.name == "read" for o in c.within)]
    assert len(released) >= len(path["epsilon"])
    for call in released:
        assert np.reshape(call["values"], bare.shape) == pytest.approx(bare, abs=1e-6)


def coefficients_of(known, model):
    return (
        reference.ridge_coefficients if isinstance(known, DPRidge) else reference.linear_coefficients
    )(model)


def risk_of(run, known, X, rows, w):
    """Return the regularised risk of coefficients, over rows that weights and persons count."""
    y, groups = run.y[rows], run.part(run.groups, rows)
    share = np.ones(len(rows)) if groups is None else reference.shares_of(groups)
    z, kind = run.linear(known, w, X, rows), reference.kind_of(known)
    if kind == reference.RIDGE:
        centre, half = reference.ridge_target(known)
        errors = np.clip(y - centre, -half, half) - z[:, 0]
        return (share * errors**2).sum() / share.sum() / 2 + known.alpha / 2 * w @ w
    weight = reference.weights_of(known, y, 1.0 if run.weight is None else run.weight[rows])
    width = reference.width_of(known)
    if kind in reference.MARGINS:
        z = z * reference.signs_of(y, np.unique(known.classes))
    elif kind == reference.POISSON:
        width = np.clip(y, 0, known.target_bound)[:, None], known.target_bound
    else:
        centre, h = reference.units_of(known)
        width = ((np.clip(y, -1e9, 1e9) - centre) / h)[:, None]
    loss = losses_of(kind, z, width)
    origin = np.zeros_like(w)
    origin[:, -1] = np.resize(reference.origins(known), len(w))
    means = ((share * weight)[:, None] * loss).sum(axis=0) / share.sum()
    return (means + known.alpha / 2 * ((w - origin) ** 2).sum(axis=1)).mean()


@each_row
def test_questions_are_about_the_exact_losses_of_their_models(name):
    run = run_of(name)
    if run.search.method_ == "certified":
        return
    known, X, rows = run.known, run.rows, run.trained
    for call in run.recorder.of("risks"):
        models = np.asarray(call["models"])
        shape = (-1, X.shape[1] + bool(known.fit_intercept))
        shape = shape if isinstance(known, DPRidge) else (-1, n_problems(known), shape[1])
        for w, found in list(zip(models.reshape(shape), np.ravel(call.result)))[:2]:
            assert found == pytest.approx(risk_of(run, known, X, rows, w), rel=1e-5, abs=1e-9)
    losses = run.recorder.of("loss")
    assert bool(losses) == (run.row["criterion"] == "score")
    if losses:
        held = run.rows_of(run.splits[0][1])
        for call in losses[:2]:
            w = coefficients_of(known, call["model"])
            assert call.result == pytest.approx(-run.score(known, w, X, held), abs=1e-9)


@each_row
def test_answers_hide_what_a_record_moves(name):
    run = run_of(name)
    search, known, p = run.search, run.known, run.rows.shape[1]
    form, persons = known.accuracy_form(), run.groups is not None
    shape = PublicShape(run.count(run.trained), p, n_problems(known), persons)
    if search.method_ == "certified":
        return
    if run.row["criterion"] == "score":
        sensitivity = form.score_span(search.scorer_, p) / run.count(run.rows_of(run.splits[0][1]))
    else:
        bounds = form.bounds(shape)
        excess = bounds.root if search.method_ == "predict_verify" else bounds.excess
        sensitivity = bounds.risk if run.row["criterion"] == "risk" else excess
    for call in run.recorder.of("verify"):
        assert call["verification"].sensitivity == pytest.approx(sensitivity, rel=1e-12)
    for call in run.recorder.of("above_threshold"):
        assert call["test"].query_scale == pytest.approx(4 * sensitivity / call["test"].epsilon)
    for call in run.recorder.of("reduced_above_threshold"):
        assert call["tests"].sensitivity == pytest.approx(sensitivity, rel=1e-12)


@each_row
def test_the_statement_is_that_of_what_was_done(name):
    run = run_of(name)
    row, search, loss = run.row, run.search, run.search.privacy_
    steps = [1.0] * (row["step"] == "private")
    if search.method_ == "certified":
        generating, tests = [search.best_epsilon_], []
    else:
        path = search.path_["epsilon"]
        fresh = search.method_ == "doubling" or run.known.perturbation == "objective"
        generating = [*path] if fresh else [path[-1]]
        tests = [call["verification"].epsilon for call in run.recorder.of("verify")]
        for call in run.recorder.of("above_threshold"):
            tests.append(call["test"].epsilon)
        for call in run.recorder.of("reduced_above_threshold"):
            tests.append(call["tests"].epsilons[-1 if call.result is None else call.result])
    both = max if row["criterion"] == "score" else math.fsum
    total = sum(steps) + both([sum(generating), sum(tests)])
    expected = [*steps, *generating, *tests]
    if row["evaluation"] is not None:
        expected.append(total)
    assert sorted(part.epsilon for part in loss.releases) == pytest.approx(sorted(expected), rel=1e-9)
    assert loss.epsilon == pytest.approx(total, rel=1e-9)
    assert loss.epsilon <= search.plan_.at_most.epsilon * (1 + 1e-12)
    assert loss.delta == (1e-4 if search.method_ == "brownian" else 0.0)
    assert loss.kind == ("differential privacy" if search.method_ == "certified" else "ex-post")
    assert loss.adjacency == adjacency_of(run.groups is not None)
    assert all(part.seeded == (row["state"] == "integer") for part in loss.releases)
    if run.ledger is not None:
        (entry,) = run.ledger.history()
        assert (entry.epsilon, entry.delta) == (loss.epsilon, loss.delta)
        assert entry.reserved_epsilon == search.plan_.at_most.epsilon
    K = 2 if row["labels"] == "-" else len(np.unique(run.known.classes))
    told = search.plan(run.n_all, row["columns"], K, persons=run.groups is not None)
    assert (told.method, told.at_most.epsilon) == (search.method_, search.plan_.at_most.epsilon)
    assert told.at_most.adjacency == loss.adjacency


@each_row
def test_no_key_draws_two_noises(name):
    run = run_of(name)
    keys = [
        key
        for key, call in run.recorder.keys()
        if not any(c.name == "fit" and n_rows(c["X"]) <= 3 for c in call.within)
    ]
    assert keys and len(set(keys)) == len(keys)


EVALUATED = [name for name, row in ROWS.items() if row["evaluation"]]


@pytest.mark.parametrize("name", EVALUATED)
def test_what_is_set_aside_took_no_part_and_is_counted(name):
    run = run_of(name)
    (aside,) = [call.result for call in run.recorder.of("of")]
    training, held = map(np.asarray, (aside.training, aside.held))
    assert sorted([*training, *held]) == list(range(N))
    assert run.count(held) == run.n_all - run.n == round(0.3 * run.n_all)
    (counted,) = run.recorder.of("_counts")
    plan = counted["self"]
    shares = np.ones(len(held))
    if run.groups is not None:
        shares = reference.shares_of(run.part(run.groups, held))
    assert plan.max_weight == (None if run.weight is None else run.known.max_sample_weight)
    if run.weight is not None:  # as the model that is released
        shares = shares * np.minimum(run.weight[held], plan.max_weight) / plan.max_weight
    assert counted.result.sum() == pytest.approx(shares.sum(), abs=1e-2)
    assert plan.persons == (run.groups is not None) == (len(training) + len(held) > run.n_all)
    spent = [part.epsilon for part in run.search.privacy_.parts]
    assert plan.epsilon == run.search.evaluation_.privacy_.epsilon == spent[0] == spent[1]
    assert counted["model"] is run.model
    if run.row["labels"] != "-":
        z = run.linear(run.known, coefficients_of(run.known, run.model), run.rows, held)
        classes = np.unique(run.known.classes)
        if len(classes) == 2:
            p = expit(reference.decisions(run.known, z[:, 0]))
            expected = np.bincount(plan.cells.index(p, run.y[held]), shares, 64)
            assert counted.result == pytest.approx(expected, abs=1e-3)

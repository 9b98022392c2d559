"""Any two settings of a fit meet in one of these, and it releases what the documentation says.

Slips hide where two features meet: a bound that was learned, and a step before it; weights of classes,
and persons; labels in no order, and shares of them. Each row of a covering array is fitted, and all
that it drew and stated is computed anew, in plain numpy.
"""

import math
import os
import pickle
import tempfile
import warnings
from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dpselect import PrivacyLedger, SeededNoiseWarning, coef_interval, privacy_of
from dpselect.accounting.zcdp import zcdp_budget
from dpselect.base.estimator import PrivateEstimator
from dpselect.export import to_sklearn
from dpselect.linear_model.coefficient_fits import fits_of
from dpselect.mechanisms.selection import largest_sum
from dpselect.noise import (
    InnerStream,
    as_generator,
    discrete_laplace,
    gaussian,
    grid_noise,
    gumbel,
    laplace,
    spherical_laplace,
)
from dpselect.preprocessing.private_bounds import bound_grid
from dpselect.records.persons import adjacency_of
from tests.marks import a_third

from . import reference
from .pairs import (
    CLASSIFIERS,
    N,
    contained,
    density_of,
    density_rows,
    estimator_of,
    every_second,
    fit_rows,
    groups_of,
    integers,
    labels_in,
    scaled,
    targets_of,
    weights_of,
    work_in_pieces,
)
from .recording import Recorder, entropy_for_a_test

ROWS = fit_rows()
# of the epsilon of a fit, for each norm that is learned first
SHARE = 1 / 20


class Fit:
    """A row of settings, fitted, with all that it drew.

    Attributes
    ----------
    X, y, weight, groups
        The records, in plain numpy.
    estimator, model
        What was fitted, and the private model in it.
    noises : list of Call
        Standard noises of the fits in their order.
    """

    def __init__(self, row, seed=0, ledger=None):
        self.row, self.ledger = row, ledger
        self.X = integers(N, row["columns"], seed)
        self.y = targets_of(row, self.X, seed)
        self.weight, self.groups = weights_of(row, N, seed), groups_of(row, N, 0)
        state = 7 if row["state"] == "integer" else None
        self.unfitted = estimator_of(row, state, ledger=ledger if row["ledger"] == "given" else None)
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            entropy_for_a_test(patch, seed, row["place"])
            work_in_pieces(patch, row)
            self.recorder = Recorder(patch).watch(largest_sum, grid_noise, gumbel).watch_keys()
            self.recorder.watch_methods(PrivateEstimator, "_noise_sample", "_release")
            self.estimator = clone(self.unfitted)
            with ledger if row["ledger"] == "open" else nullcontext():
                self.fit(self.estimator)
        self.said = [(message.category, str(message.message)) for message in said]
        self.model = self.last(self.estimator)
        self.noises = self.recorder.of("_noise_sample")

    def fit(self, estimator):
        """Fit an estimator on the records in their container."""
        container, of_model = self.row["container"], {}
        if self.weight is not None:
            of_model["sample_weight"] = self.weight
        if self.groups is not None:
            of_model["groups"] = self.groups
        X, y = contained(self.X, container), labels_in(self.y, container)
        if isinstance(estimator, Pipeline):
            name, of_model = estimator.steps[-1][0], dict(of_model)
            first = estimator.steps[0][0]
            params = {f"{name}__{key}": value for key, value in of_model.items()}
            if self.row["step"] == "private" and self.groups is not None:
                params[f"{first}__groups"] = self.groups
            estimator.fit(X, y, **params)
        else:
            estimator.fit(X, y, **of_model)

    @staticmethod
    def last(estimator):
        return estimator[-1] if isinstance(estimator, Pipeline) else estimator

    @property
    def n(self):
        """int : Records, or persons."""
        return N if self.groups is None else len(set(self.groups))

    @property
    def shares(self):
        """ndarray : What each row counts for."""
        return np.ones(N) if self.groups is None else reference.shares_of(self.groups)

    @property
    def rows(self):
        """ndarray : The rows as the model sees them."""
        return self.seen(self.X)

    def seen(self, X):
        if self.row["step"] == "bounds":
            return scaled(X, -4, 6)
        return X if self.row["step"] == "none" else scaled(X, *self.estimator[0].bounds_.T)

    def key_of(self, call):
        """Return the key under which a call drew its noise."""
        (key,) = [key for key, made in self.recorder.keys() if call in made.within]
        return InnerStream(key)

    @property
    def learned(self):
        """dict : What the fit learned first, by the names of the parameters."""
        names = [
            name
            for name in ("data_norm", "data_norm_l1", "base_rate")
            if self.model.get_params().get(name) == "auto"
        ]
        return {name: getattr(self.model, f"{name}_") for name in names}

    @property
    def parts(self):
        """tuple : Epsilons of the numbers that were learned, by their names, and what is left."""
        names, epsilon = learned_now(self, *self.learned), float(self.model.epsilon)
        if epsilon == math.inf:
            return dict.fromkeys(names, math.inf), math.inf
        unit, fractions = math.ulp(epsilon), dict.fromkeys(names, SHARE)
        if "base_rate" in names:
            fractions["base_rate"] = self.fraction_for_rate
        shares = {name: math.floor(fractions[name] * epsilon / unit) * unit for name in names}
        return shares, math.fsum([epsilon, *(-share for share in shares.values())])

    @property
    def fraction_for_rate(self):
        """float or None : Fraction of epsilon for a base rate."""
        guess = {key: {"data_norm": 1.0}.get(key) for key in self.learned}
        model, K = clone(self.model).set_params(**guess), 1
        if self.row["kind"] in CLASSIFIERS:
            K = {2: 1}.get(len(model.classes), len(model.classes))
        return reference.fraction_for_rate(model, self.n, self.rows.shape[1], K)

    @property
    def known(self):
        """The model as it would be if what was learned had been given."""
        return clone(self.model).set_params(**self.learned, epsilon=self.parts[1])


@cache
def fit_of(name, seed=0):
    row = ROWS[name]
    return Fit(row, seed, None if row["ledger"] == "none" else new_ledger(row))


def new_ledger(row):
    unit = adjacency_of(row["groups"] != "none")
    file = os.path.join(tempfile.mkdtemp(), "records.ledger")
    return PrivacyLedger(file, epsilon=1000.0, delta=0.5, adjacency=unit)


each_row = pytest.mark.parametrize("name", a_third(ROWS), scope="module")


def law_of(model, p, K):
    if reference.kind_of(model) == reference.RIDGE:
        return "ridge"
    if reference.is_gaussian(model, p, K):
        return "gaussian"
    return "l1" if reference.linear_bounds(model, p)[-1] else "l2"


def expected_noise(model, state, p, K):
    """Return the standard noise of the documented law, drawn anew."""
    generator, d = as_generator(state), p + bool(model.fit_intercept)
    law = law_of(model, p, K)
    if law == "gaussian":
        return gaussian(generator, (2, K, d))
    if law == "l1":
        linear = laplace(generator, (K, d))
        return np.stack([linear, spherical_laplace(generator, K, d)])
    return spherical_laplace(generator, 2 * K, d).reshape(2, K, d)


@each_row
def test_a_model_is_the_documented_function_of_records_and_noise(name):
    fit = fit_of(name)
    model, known = fit.model, fit.known
    call = fit.noises[-1]
    unit, p = call.result, fit.rows.shape[1]
    assert call["epsilon"] == pytest.approx(fit.parts[1], rel=1e-12)
    if fit.row["kind"] == "ridge":
        check_ridge(fit, known, unit)
        return
    K = 1
    if fit.row["kind"] in CLASSIFIERS:
        labels = np.unique(fit.model.classes)
        assert (model.classes_ == labels).all()
        K = 1 if len(labels) == 2 else len(labels)
    assert (unit == expected_noise(known, fit.key_of(call), p, K)).all()
    weight = 1.0 if fit.weight is None else fit.weight
    expected, precision = reference.linear_release(known, fit.rows, fit.y, unit, weight, fit.groups)
    found = reference.linear_coefficients(model)
    assert found.shape == expected.shape == (K, p + bool(model.fit_intercept))
    # (the noise that is added pays for rounding to its grid, too)
    share = 1e-6 + 2.0**-23 * math.sqrt(found.shape[1]) * K / known.epsilon
    if fit.groups is not None and law_of(known, p, K) == "gaussian":
        share += 3e-4  # to which the noise for persons is computed
    precision = share * np.abs(expected).max() + precision * (known.perturbation == "objective")
    assert found == pytest.approx(expected, abs=precision, rel=0)


def check_ridge(fit, known, unit):
    model, p = fit.model, fit.rows.shape[1]
    found = reference.ridge_coefficients(model)
    if known.perturbation != "covariance":
        expected, precision = reference.ridge_release(known, fit.rows, fit.y, unit, fit.groups)
        precision += 3e-6 * np.abs(expected).max()
        assert found == pytest.approx(expected, abs=precision, rel=0)
        return
    exact = reference.exact_statistics(known, fit.rows, fit.y, fit.groups)
    noise = reference.released_statistics(known, model) - exact
    upper = np.triu_indices(len(noise))
    finite = known.epsilon < math.inf
    m = reference.gaussian_root(known.epsilon, known.delta) if known.delta and finite else None
    scales = reference.statistic_scales(known, p, m)
    drawn = reference.statistic_scales(clone(known).set_params(epsilon=1.0), p)[upper] > 0
    released = reference.released_statistics(known, model)
    assert (released == released.T).all()
    assert noise[upper][~drawn] == pytest.approx(0.0, abs=1e-9)
    if reference.ridge_norm(known, p) == "l1" and known.epsilon < math.inf:
        call = fit.recorder.of("grid_noise")[-1]
        assert np.allclose(call["scales"], scales[upper][drawn], rtol=1e-4, atol=0)
        scales = np.ones_like(scales)
    precision = 1e-4 * scales.max() + 1e-5 * np.abs(noise).max() + 1e-6
    assert np.abs(noise[upper][drawn] - scales[upper][drawn] * unit).max() < precision
    theta = reference.read_statistics(known, model.gram_, model.moment_, fit.n, p)
    assert found == pytest.approx(theta, abs=1e-4 * max(1.0, np.abs(theta).max()))
    other, twin = clone(known).set_params(alpha=0.7), model.post_process(alpha=0.7)
    theta = reference.read_statistics(other, model.gram_, model.moment_, fit.n, p)
    found = reference.ridge_coefficients(twin)
    assert found == pytest.approx(theta, abs=1e-4 * max(1.0, np.abs(theta).max()))
    assert twin.privacy_ == model.privacy_


# ---- what is learned first


def learned_now(fit, *names):
    """Return the names of what was learned with noise of its own, in their order."""
    return [name for name in names if fit.learned.get(name) is not None]


def ranks_of(values, shares, ends):
    """Return how many records have a value of at most each end."""
    order = np.argsort(values)
    counted = np.concatenate([[0.0], np.cumsum(shares[order])])
    return counted[np.searchsorted(values[order], ends, side="right")]


NORMS = [name for name, row in ROWS.items() if "auto" in (row["data_norm"], row["data_norm_l1"])]
RATES = [name for name, row in ROWS.items() if row["base_rate"] == "auto"]
RADII = 2.0 ** (np.arange(-160, 161) / 4)


@pytest.mark.parametrize("name", NORMS)
def test_norms_are_learned_from_the_rows_that_the_model_sees(name):
    fit = fit_of(name)
    shares, p = fit.parts[0], fit.rows.shape[1]
    names = learned_now(fit, "data_norm", "data_norm_l1")
    (share,) = {shares[name] for name in names}
    assert len(names) == [fit.row["data_norm"], fit.row["data_norm_l1"]].count("auto")
    calls = [call for call in fit.recorder.of("largest_sum") if np.ndim(call["noise"]) == 1]
    drawn = [call.result for call in fit.recorder.of("gumbel") if call.result.ndim == 1]
    assert len(calls) == len(names) == len(drawn) + len(names) * (share == math.inf)
    for i, (label, call) in enumerate(zip(names, calls)):
        lengths = np.linalg.norm(fit.rows, 2 if label == "data_norm" else 1, axis=1)
        apart = []
        for rounding in (1 - 1e-12, 1 + 1e-12):  # some rows are as long as a radius
            ranks = ranks_of(lengths, fit.shares, rounding * RADII)
            utility = -np.maximum(0, np.maximum(ranks[:-1] - fit.n / 2, fit.n / 2 - ranks[1:]))
            apart.append(np.abs(utility - call["values"]))
        assert np.minimum(*apart).max() < 1e-3
        noise = np.zeros(len(utility))
        if share < math.inf:
            octaves = np.abs(np.log2(RADII[1:]) - np.log2(np.sqrt(p) / 2))
            noise = 2 / share * (drawn[i] - math.log(2) * octaves)
        assert np.abs(call["noise"] - noise).max() < 1e-3
        best = int(np.argmax(np.asarray(call["values"]) + call["noise"]))
        assert fit.learned[label] == RADII[1:][best]


@pytest.mark.parametrize("name", RATES)
def test_base_rates_are_learned_from_the_labels_of_the_records(name):
    fit = fit_of(name)
    n, model, planned = fit.n, fit.model, fit.fraction_for_rate
    calls, value = fit.recorder.of("grid_noise"), fit.learned["base_rate"]
    assert (value is not None) == (planned is not None)
    if planned is None:
        assert not calls
        return
    share = fit.parts[0]["base_rate"]
    assert share == pytest.approx(planned * model.epsilon, rel=1e-12)
    if fit.row["kind"] == "poisson":
        B = model.target_bound
        exact = [(fit.shares * np.clip(fit.y, 0, B)).sum() / B]
        scale, K = 1 / share, 1
    else:
        labels = np.unique(model.classes)
        exact = [fit.shares[fit.y == label].sum() for label in labels][len(labels) == 2 :]
        K = len(exact)
        scale = (1 if K == 1 else 2) / share
    (call,) = calls
    assert np.asarray(call["scales"]) == pytest.approx(scale, rel=1e-9) and len(call.result) == K
    noisy = np.array(exact) + call.result
    if fit.row["kind"] == "poisson":
        least = min(max(scale, 0.5 / B), n / 2)
        assert value == pytest.approx(B * min(max(noisy[0], least), n) / n, abs=1e-4)
        return
    least = min(max(scale, 0.5), n / 2)
    told = np.clip(noisy, least, n - least) / n
    found = [value] if K == 1 else [value[label] for label in labels.tolist()]
    assert found == pytest.approx(told, abs=1e-4)


def test_base_rates_are_learned_in_some_fits():
    """Or the test above would look at nothing."""
    learned = [name for name in RATES if learned_now(fit_of(name), "base_rate")]
    assert {ROWS[name]["kind"] for name in learned} == {"logistic", "steep", "capped", "poisson"}
    # with all limits, and between them
    fractions = {fit_of(name).fraction_for_rate for name in learned}
    assert len(fractions) >= 4


def share_of_bounds(fit):
    """Return the epsilon of the choice of each bound, where these add up, and with a delta."""
    scaler, p = fit.estimator[0], fit.X.shape[1]
    if scaler.delta == 0 or scaler.epsilon == math.inf:
        return scaler.epsilon / (2 * p), 0.0
    # rho = eps^2 / 8 for each choice, and all of them together stay within delta
    rho = zcdp_budget(scaler.epsilon, scaler.delta)
    return scaler.epsilon / (2 * p), math.sqrt(8 * rho / (2 * p))


LEARNED_BOUNDS = [name for name, row in ROWS.items() if row["step"] == "private"]


@pytest.mark.parametrize("name", LEARNED_BOUNDS)
def test_bounds_are_learned_from_the_columns_of_the_records(name):
    fit = fit_of(name)
    scaler = fit.estimator[0]
    (call,) = [call for call in fit.recorder.of("largest_sum") if np.ndim(call["noise"]) == 3]
    grid = bound_grid()
    ranks = np.array([ranks_of(column, fit.shares, grid) for column in fit.X.T])[:, None]
    target = (fit.n * np.array([scaler.tail, 1 - scaler.tail]))[:, None]
    utility = -np.maximum(0, np.maximum(ranks[..., :-1] - target, target - ranks[..., 1:]))
    assert np.abs(call["values"] - utility).max() < 2e-3
    scale = 0.0
    if scaler.epsilon < math.inf:
        (gumbels,) = [c.result for c in fit.recorder.of("gumbel") if c.result.ndim == 3]
        scale = 2 / max(share_of_bounds(fit))
        assert np.abs(call["noise"] - scale * gumbels).max() < 1e-2 + 1e-6 * scale
    else:
        assert not call["noise"].any()
    cells = np.sort(np.argmax(np.asarray(call["values"]) + call["noise"], axis=2), axis=1)
    assert (scaler.bounds_ == np.column_stack([grid[cells[:, 0]], grid[cells[:, 1] + 1]])).all()


# ---- intervals of coefficients

# of what they serve
ALONE = {"groups": "none", "sample_weight": "none", "columns": 5, "ledger": "none"}
TOLD = {
    name: row | ALONE
    for name, row in ROWS.items()
    if row["labels"] in ("-", "two", "two texts") and row["step"] != "private"
}


def derivatives_of(known, z, y):
    """Return first and second derivatives of the losses at predictions."""
    kind = reference.kind_of(known)
    if kind == reference.RIDGE:
        centre, half = reference.ridge_target(known)
        return z - np.clip(y - centre, -half, half), np.ones_like(z)
    if kind == reference.HUBER:
        centre, h = reference.units_of(known)
        r = z - (y - centre) / h
        return r / np.hypot(1, r), np.hypot(1, r) ** -3
    if kind == reference.POISSON:
        rate = np.minimum(np.exp(np.minimum(z, 50)), known.target_bound)
        second = np.where(rate < known.target_bound, rate, 0.0)
        return rate - np.clip(y, 0, known.target_bound), second
    signs = reference.signs_of(y, np.unique(known.classes))[:, 0]
    if kind in (reference.LOGISTIC, reference.CAPPED):
        share, steep = expit(-z * signs), reference.steepest(known)
        return -signs * np.minimum(share, steep), np.where(share <= steep, share * (1 - share), 0.0)
    h, u = known.huber_width, z * signs
    return -signs * np.clip(1 + h - u, 0, 2 * h) / (2 * h), (np.abs(1 - u) <= h) / (2 * h)


@pytest.mark.parametrize("name", every_second(TOLD, 0))
def test_intervals_are_told_from_the_derivatives_of_the_model_that_was_fitted(name):
    fit = Fit(TOLD[name])
    known, model = fit.known, fit.model
    X = contained(fit.rows, "frame" if hasattr(model, "feature_names_in_") else "C")
    told = coef_interval(model, X, fit.y, epsilon=math.inf, n_samples=N)
    if fit.row["kind"] == "ridge":
        w, A = reference.ridge_coefficients(model), reference.clipped_rows(known, fit.rows)
        A = np.hstack([A, np.ones((N, 1))])[:, : len(w)]
        s, W, L, c = 1.0 * known.fit_intercept, 1.0, None, 1.0
    else:
        w, A = reference.linear_coefficients(model), reference.design(known, fit.rows)
        # the model as it was trained, before anything is given back
        nothing, ones = (
            reference.given_back(known, N, fit.rows.shape[1], np.full(w.shape, x)) for x in (0.0, 1.0)
        )
        w = ((w - nothing) / (ones - nothing))[0]
        W, s = reference.largest_weight(known), known.intercept_scaling * known.fit_intercept
        L = known.target_bound if fit.row["kind"] == "poisson" else 1.0
        if hasattr(known, "max_derivative"):
            L = reference.steepest(known)
        c = {"svc": None, "huber": 1.0, "poisson": L}.get(fit.row["kind"], 0.25)
        c = 0.5 / known.huber_width if c is None else c
    first, second = derivatives_of(known, A @ w, fit.y)
    weight = 1.0 if fit.row["kind"] == "ridge" else reference.weights_of(known, fit.y)
    largest = max(1.0, np.abs(told.curvature_).max(), np.abs(told.gradients_).max())
    assert told.curvature_ == pytest.approx((A.T * weight * second) @ A / N, abs=1e-7 * largest)
    assert told.gradients_ == pytest.approx((A.T * (weight * first) ** 2) @ A / N, abs=1e-7 * largest)
    # no record adds more to the matrices, the constant's column being counted 0.3-fold
    l1 = math.inf if known.data_norm_l1 is None else known.data_norm_l1
    R = math.hypot(min(known.data_norm, l1), 0.3 * s)
    if L is None:
        u, b = (w[:-1], abs(w[-1])) if s else (w, 0.0)
        R1 = min(l1, math.sqrt(len(u)) * known.data_norm)
        reach = min(min(known.data_norm, l1) * np.linalg.norm(u), R1 * np.abs(u).max())
        L = reference.ridge_target(known)[1] + b + reach
    (public,) = fits_of(model, N)
    assert public.bounds == pytest.approx((W * c * R**2, (W * L * R) ** 2))
    mu = (
        reference.ridge_scales(known, N, fit.rows.shape[1])
        if fit.row["kind"] == "ridge"
        else reference.linear_scales(known, N, fit.rows.shape[1], 1)
    )[0]
    if known.get_params().get("perturbation") != "covariance":
        assert public.mu == pytest.approx(mu, rel=1e-6)


# ---- what is stated, and kept


@each_row
def test_the_statement_names_what_was_spent_and_the_ledger_what_is_stated(name):
    fit = fit_of(name)
    row, model = fit.row, fit.model
    shares, rest = fit.parts
    epsilons = [*shares.values(), rest]
    delta = model.delta if model.epsilon < math.inf else 0.0
    if not shares and fit.row["kind"] != "ridge":
        # where noise is not Gaussian it is neither used nor spent
        delta *= law_of(model, fit.rows.shape[1], fit.noises[-1].result.shape[1]) == "gaussian"
    steps = []
    if row["step"] == "private":
        steps = [fit.estimator[0].privacy_]
        used = fit.estimator[0].delta * (share_of_bounds(fit)[1] > share_of_bounds(fit)[0])
        assert (steps[0].epsilon, steps[0].delta) == (fit.estimator[0].epsilon, used)
    seeded = row["state"] == "integer" and model.epsilon < math.inf
    for loss in [*steps, model.privacy_]:
        assert loss.seeded == seeded and loss.kind == "differential privacy"
        assert loss.adjacency == adjacency_of(fit.groups is not None)
    loss = model.privacy_
    assert [part.epsilon for part in loss.releases] == pytest.approx(epsilons, rel=1e-12)
    assert sum(part.delta for part in loss.releases) == loss.delta == delta
    assert loss.epsilon <= model.epsilon and (delta > 0 or loss.epsilon == model.epsilon)
    labels = [part.label for part in loss.releases]
    for label, learned in zip(labels, learned_now(fit, "data_norm", "data_norm_l1", "base_rate")):
        what = {"data_norm": "median l2 norm", "data_norm_l1": "median l1 norm"}
        told = "mean of the targets" if row["kind"] == "poisson" else "shares of the classes"
        assert what.get(learned, told) in label and type(model).__name__ in label
    assert f"by {model.perturbation} perturbation" in labels[-1]
    if steps:
        together, added = privacy_of(fit.estimator), steps[0].epsilon + loss.epsilon
        assert together.delta == pytest.approx(steps[0].delta + loss.delta, rel=1e-12)
        # with a delta they may cost less than their sum
        assert together.epsilon == pytest.approx(added, rel=1e-12) or (
            together.delta > 0 and 0.5 * added < together.epsilon < added
        )
    if fit.ledger is not None:
        entries = fit.ledger.history()
        assert [(e.epsilon, e.delta, e.label, e.seeded) for e in entries] == [
            (part.epsilon, part.delta, part.label, seeded) for part in [*steps, loss]
        ]
        most = [*steps, model._loss_of_a_fit()]
        assert [(e.reserved_epsilon, e.reserved_delta) for e in entries] == [
            (part.epsilon, part.delta) for part in most
        ]
        assert most[-1].epsilon == model.epsilon and most[-1].delta == model.delta


@each_row
def test_no_key_draws_two_noises(name):
    fit = fit_of(name)
    keys = [key for key, _ in fit.recorder.keys()]
    if fit.row["step"] == "private" and fit.row["state"] == "integer":
        # two fits have one seed, as they would in a Pipeline of anybody's
        keys = keys[1:]
    assert len(set(keys)) == len(keys) >= 1


def decisions_of(fit, X):
    """Return the linear predictions of rows, shape (n, K), as the documentation has them."""
    known = fit.known
    rows = reference.clipped_rows(known, fit.seen(X))
    return rows @ np.atleast_2d(fit.model.coef_).T + fit.model.intercept_


def all_may_round_to_0(fit):
    """Tell whether of some row no class may have a probability above 0 in float64."""
    known, coef, b = fit.known, np.atleast_2d(fit.model.coef_), np.ravel(fit.model.intercept_)
    if len(coef) == 1:
        return False
    lengths = known.data_norm * np.linalg.norm(coef, axis=1)
    if known.data_norm_l1 is not None:
        lengths = np.minimum(lengths, known.data_norm_l1 * np.abs(coef).max(axis=1))
    return (b - lengths).max() < -600


@each_row
def test_predictions_are_those_of_rows_as_they_were_trained_on(name):
    fit = fit_of(name)
    X = integers(N, fit.row["columns"], seed=9)
    z = decisions_of(fit, X)
    labels, size = None, 1e-9 * (1 + np.abs(z).max())
    given = contained(X, fit.row["container"])
    again = pickle.loads(pickle.dumps(fit.estimator))
    if fit.row["kind"] in CLASSIFIERS:
        classes = np.unique(fit.model.classes)
        labels = classes[(z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)]
        expected = reference.decisions(fit.known, z[:, 0] if z.shape[1] == 1 else z)
        for estimator in (fit.estimator, again):
            assert np.asarray(estimator.decision_function(given)) == pytest.approx(expected, abs=size)
        assert (np.asarray(again.predict(given)) == labels).all()
    else:
        expected = z[:, 0]
        if fit.row["kind"] == "poisson":
            expected = np.minimum(np.exp(np.minimum(expected, 10)), fit.model.target_bound)
        for estimator in (fit.estimator, again):
            assert np.asarray(estimator.predict(given)) == pytest.approx(expected, abs=size)
    if hasattr(fit.model, "predict_proba") and all_may_round_to_0(fit):
        with pytest.raises(ValueError, match="coefficients so large"):
            to_sklearn(fit.estimator)
        return
    plain = to_sklearn(fit.estimator)
    of_plain = plain.predict(contained(X, "frame" if hasattr(again, "feature_names_in_") else "C"))
    if labels is None:
        assert of_plain == pytest.approx(expected, abs=size)
    else:
        assert (of_plain == labels).all()


def public_facts(fit):
    """Return all that a fit shows, but released numbers."""
    facts = [fit.said, str(fit.model.privacy_), fit.model.get_params().keys()]
    for estimator in fit.estimator if isinstance(fit.estimator, Pipeline) else [fit.estimator]:
        for name, value in vars(estimator).items():
            if name.endswith("_") or name.startswith("_"):
                facts.append((name, type(value), np.shape(value), getattr(value, "dtype", None)))
        if name in ("classes_", "n_features_in_", "feature_names_in_", "n_iter_", "n_samples_"):
            facts.append(value.tolist() if isinstance(value, np.ndarray) else value)
    if fit.row["state"] == "integer":
        facts.append([key for key, _ in fit.recorder.keys()])
    if fit.ledger is not None:
        facts.append([(e.epsilon, e.delta, e.label, e.reserved_epsilon) for e in fit.ledger.history()])
    return facts


FEW = "n epsilon over the length of the noise"


@pytest.mark.parametrize("name", every_second(ROWS, 0), scope="module")
def test_other_records_change_released_numbers_only(name):
    fit, other = fit_of(name), fit_of(name, seed=1)
    for fact, same in zip(public_facts(fit), public_facts(other), strict=True):
        assert fact == same
    # that there are few records is public, too
    assert [said for said in fit.said if FEW in said[1]] == [
        said for said in other.said if FEW in said[1]
    ]
    kinds = {category for category, message in fit.said if FEW not in message}
    assert kinds <= {SeededNoiseWarning}
    assert kinds == {SeededNoiseWarning} or not fit.model.privacy_.seeded


class Stop(Exception):
    pass


@pytest.mark.parametrize("name", every_second(ROWS, 1), scope="module")
def test_a_fit_that_fails_at_its_end_is_paid_for_and_leaves_nothing(name, monkeypatch):
    fit, ledger = fit_of(name), new_ledger(ROWS[name])
    estimator = clone(fit.unfitted)
    model, release = fit.last(estimator), type(fit.model)._release
    model.set_params(ledger=ledger)

    def stops(*args):
        release(*args)
        raise Stop

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        work_in_pieces(patch, fit.row)
        release_of = type(model)
        patch.setattr(release_of, "_release", stops)
        if model.epsilon == math.inf:
            model.set_params(ledger=None)
        with pytest.raises(Stop):
            fit.fit(estimator)
        assert not [key for key in vars(model) if key not in model.get_params()]
        if model.epsilon < math.inf:
            (entry,) = ledger.history()
            loss = fit.model.privacy_
            assert entry.committed_at is None or entry.epsilon >= loss.epsilon
            assert ledger.spent()[0] >= loss.epsilon and ledger.spent()[1] >= loss.delta
        patch.setattr(release_of, "_release", release)
        fit.fit(estimator)
    if fit.row["state"] == "integer":
        assert (model.coef_ == fit.model.coef_).all()
    assert str(model.privacy_) == str(fit.model.privacy_)


# ---- histograms

DENSITIES = density_rows()


@pytest.mark.parametrize("name", DENSITIES)
def test_a_histogram_is_the_documented_function_of_records_and_noise(name):
    row = DENSITIES[name]
    ledger, X = new_ledger(row), integers(N, row["columns"])
    given = {"groups": groups_of(row, N), "sample_weight": weights_of(row, N)}
    given = {name: value for name, value in given.items() if value is not None}
    groups = given.get("groups")
    state = 7 if row["state"] == "integer" else None
    model = density_of(row, random_state=state, ledger=ledger if row["ledger"] == "given" else None)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        entropy_for_a_test(patch, row["place"])
        work_in_pieces(patch, row)
        recorder = Recorder(patch).watch(grid_noise, discrete_laplace)
        recorder.watch_methods(PrivateEstimator, "_noise_sample")
        with ledger if row["ledger"] == "open" else nullcontext():
            model.fit(contained(X, row["container"]), **given)
    low, high = np.broadcast_to(model.bounds, (row["columns"], 2)).T
    widths = np.broadcast_to(model.bin_width, row["columns"])
    place = np.clip(np.floor((np.clip(X, low, high) - low) / widths), 0, (high - low) / widths - 1)
    counts = np.zeros(tuple(((high - low) / widths).astype(int)))
    parts = 1.0 if groups is None else reference.shares_of(groups)
    if "sample_weight" in given:
        parts = parts * np.minimum(given["sample_weight"], model.max_sample_weight) / 2.0
    np.add.at(counts, tuple(place.astype(int).T), parts)
    (call,) = recorder.of("_noise_sample")
    masses = reference.masses_of(counts + call.result)
    assert model.density_ * widths.prod() == pytest.approx(masses, abs=1e-5)
    drawn = recorder.of("grid_noise", "discrete_laplace")
    if model.epsilon == math.inf:
        assert not drawn and not call.result.any()
    elif model.noise == "laplace":
        assert np.asarray(drawn[0]["scales"]) == pytest.approx(2 / model.epsilon, rel=1e-9)
    else:
        assert drawn[0]["ratio"] == pytest.approx(math.exp(-model.epsilon / 2), rel=1e-9)
    loss = model.privacy_
    assert (loss.epsilon, loss.delta) == (model.epsilon, 0.0)
    assert loss.adjacency == adjacency_of(groups is not None)
    assert loss.seeded == (state is not None and model.epsilon < math.inf)
    assert [e.epsilon for e in ledger.history()] == [loss.epsilon] * (row["ledger"] != "none")
    inside = ((low <= X) & (X <= high)).all(axis=1)
    with np.errstate(divide="ignore"):
        expected = np.where(inside, np.log(model.density_[tuple(place.astype(int).T)]), -np.inf)
    again = pickle.loads(pickle.dumps(model))
    assert np.asarray(again.score_samples(contained(X, row["container"]))) == pytest.approx(expected)

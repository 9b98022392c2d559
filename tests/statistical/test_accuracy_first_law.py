"""The law of what an accuracy-first search releases, on two neighbouring data sets.

The loss is stated for each outcome, so it is attacked for each: outcomes are grouped by what
was stated for them, and no group may be likelier on one data set than on the other by more
than that. The law is exact where it can be computed, and sampled elsewhere. The same checker
must find twins that are deliberately broken.
"""

import copy
import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
)
from dpselect.base.accuracy_form import SensitivityNoise
from dpselect.density.accuracy import HistogramReduction, counts_noise
from dpselect.linear_model.ridge.ridge_noise import released_entries
from dpselect.mechanisms.above_threshold import (
    ReducedTests,
    above_threshold,
    reduced_above_threshold,
)
from dpselect.metrics import BrierScore
from dpselect.model_selection.accuracy_first.methods import METHODS
from dpselect.model_selection.accuracy_first.question import Question, outcome_loss
from dpselect.noise import InnerStream
from dpselect.records.public_shape import PublicShape
from tests.marks import slow_but
from tests.trials import scales_of

from .audit import FALSE_ALARM
from .test_accuracy_bounds import log_noise, ridge_log_density

N = 4000
ROOT = InnerStream(bytes(32))


# ---- the checker ----


def interval_counts(values, edges):
    return np.histogram(values, edges)[0].cumsum()


def loss_ratio(runs, neighbour_runs, alarm=FALSE_ALARM):
    """Bound from below the largest privacy loss of an outcome, in units of what was stated for it.

    Parameters
    ----------
    runs, neighbour_runs : (ndarray, ndarray)
        The stated loss and a statistic of each outcome, on the two data sets.
    alarm : float
        The bound is wrong with at most this probability.

    Returns
    -------
    float
        More than 1 is a proof that something was stated too low. The event, an interval of the
        statistic among the outcomes with one stated loss, is chosen on one half of the runs.
    """
    halves = [[(c[i::2], s[i::2]) for c, s in (runs, neighbour_runs)] for i in (0, 1)]
    sizes = [len(c) for c, _ in halves[0]]
    best, event = -np.inf, None
    for stated in np.unique(np.concatenate([c for c, _ in halves[0]])):
        groups = [s[c == stated] for c, s in halves[0]]
        pooled = np.concatenate(groups)
        if len(pooled) < 50:
            continue
        edges = np.unique(np.quantile(pooled, np.linspace(0, 1, 41)[1:-1]))
        edges = np.concatenate([[-np.inf], edges, [np.inf]])
        counts = [np.append(0, interval_counts(g, edges)) for g in groups]
        i, j = np.triu_indices(len(edges), 1)
        p, q = ((c[j] - c[i] + 0.5) / size for c, size in zip(counts, sizes))
        # an event is rated by what could be proved of it
        doubt = 5 * np.sqrt(1 / (p * sizes[0]) + 1 / (q * sizes[1]))
        for swapped, value in ((False, np.log(p / q) - doubt), (True, np.log(q / p) - doubt)):
            k = int(np.argmax(value))
            if value[k] / stated > best:
                best, event = value[k] / stated, (stated, edges[i[k]], edges[j[k]], swapped)
    stated, low, high, swapped = event
    hits = [int(((c == stated) & (low < s) & (s <= high)).sum()) for c, s in halves[1]]
    sizes = [len(c) for c, _ in halves[1]]
    if swapped:
        hits, sizes = hits[::-1], sizes[::-1]
    p = beta.ppf(alarm / 2, hits[0], sizes[0] - hits[0] + 1) if hits[0] else 0.0
    q = beta.isf(alarm / 2, hits[1] + 1, sizes[1] - hits[1]) if hits[1] < sizes[1] else 1.0
    return float(np.log(p / q) / stated) if p > 0 else -np.inf


# ---- runs of a method ----


@dataclasses.dataclass
class Search:
    """A method on two neighbouring data sets, without what a search does only once.

    Parameters
    ----------
    model : estimator
    data : pair of (X, y)
    epsilons : list
    target : float
    method : str
    twin : str
        What is broken; empty for nothing.
    held_out : pair of (X, y), default=None
        Records on which the Brier score is taken.
    """

    model: object
    data: tuple
    epsilons: tuple
    target: float
    method: str
    twin: str = ""
    held_out: tuple = None
    gamma: float = 0.3
    delta: float = 0.0
    absolute: bool = False
    size: int = N

    @functools.cached_property
    def setup(self):
        form = self.model.accuracy_form()
        X, _ = self.data[0]
        shape, absolute = PublicShape(*X.shape), self.absolute or self.held_out is not None
        bounds = form.bounds(shape)
        sensitivity = bounds.risk if absolute else bounds.excess
        if self.held_out:
            sensitivity = form.score_span(BrierScore(), X.shape[1]) / len(self.held_out[0][0])
        if self.twin == "half sensitivity":
            sensitivity /= 2
        if self.twin == "half root":
            right = form.bounds
            form.bounds = lambda shape: dataclasses.replace(right(shape), root=right(shape).root / 2)
        slack = 0.2 * abs(self.target) if absolute else self.target
        return METHODS[self.method](
            Question(
                np.array(self.epsilons, dtype=float),
                absolute,
                self.target,
                slack,
                sensitivity,
                self.gamma,
                self.delta,
                form,
                shape,
            )
        )

    @functools.cached_property
    def reductions(self):
        levels = self.setup.question.levels(self.setup.how)
        return [self.setup.question.form.reduction(X, y, levels, ROOT) for X, y in self.data]

    def fresh(self, reduction, stream):
        """A reduction of the same records with new noise."""
        reduction = copy.copy(reduction)
        reduction.stream, reduction.n_read = stream, 0
        noise = self.noise(reduction)
        if noise is not None:
            levels = reduction.levels
            noise = self.made_for(noise)
            if self.twin == "independent levels":
                levels = dataclasses.replace(levels, how="fresh")
            put_noise_on, reduction.drawn = noise.start(levels, stream.child("levels")), []

            def recorded(values, epsilon, unit=None):
                noisy = put_noise_on(values, epsilon, unit)
                reduction.drawn.append(noisy - np.asarray(values) * (unit or 1.0))
                return noisy

            reduction.put_noise_on = recorded
        return reduction

    def made_for(self, noise):
        """The noise that is drawn: a twin's is made for a part of the sensitivity."""
        share = {"half sensitivity": 2, "quarter sensitivity": 4}.get(self.twin, 1)
        return dataclasses.replace(noise, sensitivity=noise.sensitivity / share)

    def noise(self, reduction):
        if getattr(self.model, "perturbation", "") == "objective":
            return None
        if isinstance(reduction, HistogramReduction):
            return counts_noise(reduction.form.model, reduction.cells.size, reduction.levels.how)
        return reduction.noise

    def losses(self, which, reduction):
        """The function that gives the exact losses of models on one of the data sets."""
        if self.held_out:
            records, score = self.held_out[which], BrierScore()
            last = self.epsilons[-1]
            return lambda models: [-score(reduction.publish(m, last), *records) for m in models]
        return reduction.risks if self.setup.question.absolute else reduction.excesses

    def run(self, which, stream):
        """One outcome."""
        reduction = self.fresh(self.reductions[which], stream.child("generating"))
        losses = self.losses(which, reduction)
        outcome = self.setup.run(reduction, losses, stream.child("testing"))
        # not released: what the noise was, from which the law of the outcome follows
        outcome.drawn = getattr(reduction, "drawn", None)
        return outcome

    def stated(self, outcome, twin=""):
        """What the search would state for an outcome, or what a twin would."""
        loss = outcome_loss(self.setup, outcome, self.held_out is not None, False)
        parts = [part.epsilon for part in loss.parts]
        if twin == "no testing":
            return parts[0]
        if twin == "max":
            return max(parts)
        if twin == "last model":
            return loss.epsilon - sum(outcome.epsilons[:-1])
        return loss.epsilon

    @functools.cached_property
    def outcomes(self):
        return [[self.run(which, ROOT.child(which, i)) for i in range(self.size)] for which in (0, 1)]

    def ratio(self, statistic, twin=""):
        """Bound the loss of the outcomes from below, in units of what is stated for them."""
        runs = []
        for which, outcomes in enumerate(self.outcomes):
            stated, memory = [], {}
            for outcome in outcomes:
                key = (len(outcome.epsilons), len(outcome.tests), outcome.accepted)
                if key not in memory:
                    # refused and accepted outcomes are distinguished, whatever is stated
                    loss = self.stated(outcome, twin)
                    memory[key] = loss + 1e-9 * (len(outcome.tests) + 0.5 * outcome.accepted)
                stated.append(memory[key])
            values = np.array([statistic(self, outcome) for outcome in outcomes])
            # the ratios of Laplace variables have atoms, which quantiles cannot tell apart
            values += 1e-6 * np.random.default_rng(which).random(len(values))
            runs.append((np.array(stated), values))
        return loss_ratio(*runs)


# ---- the exact law of an outcome ----


def center(reduction):
    """What noise is added to, in the units of that noise."""
    if isinstance(reduction, HistogramReduction):
        return reduction.counts
    if getattr(reduction, "scale", None) is None:
        return reduction.minimiser
    values = reduction.sums.values
    return values[released_entries(reduction.shape.n_features, len(values))]


def log_law(noise, levels, epsilon, r):
    """Log-density of a value, up to a constant."""
    k, sensitivity = noise.shape[0] if noise.kind == "l2" else 1, noise.sensitivity
    r = r / noise.scales
    if levels.how == "brownian":
        return -(r * r).sum() / (2 * sensitivity**2 * k * levels.time(epsilon))
    if noise.kind == "l2":
        return -np.linalg.norm(r.reshape(noise.shape), axis=1).sum() * epsilon / (k * sensitivity)
    return -np.abs(r).sum() * epsilon / sensitivity


def model_ratio(search, outcome, which=0):
    """Log-ratio of the models that were read, on the data set they come from and the other one.

    Of the noisy statistics, that is, of which the models are functions.
    """
    here, there = search.reductions[which], search.reductions[1 - which]
    if outcome.drawn is None:
        return sum(
            objective_ratio(search, here, there, epsilon, model)
            for epsilon, model in zip(outcome.epsilons, outcome.models)
        )
    noise, levels = search.made_for(search.noise(here)), here.levels
    difference = center(here) - center(there)
    total, n_read = 0.0, len(outcome.epsilons)
    alone = search.setup.how == "fresh" or search.twin == "independent levels"
    for epsilon, r in list(zip(outcome.epsilons, outcome.drawn[:n_read]))[0 if alone else -1 :]:
        total += log_law(noise, levels, epsilon, r) - log_law(noise, levels, epsilon, r + difference)
    return total


def objective_ratio(search, here, there, epsilon, model):
    """Log-ratio of one model with noise in the objective, the tiny noise for its residual apart."""
    estimator = type(search.model)(**{**search.model.get_params(), "epsilon": epsilon})
    laws = []
    for X, y in (search.data[search.reductions.index(r)] for r in (here, there)):
        # these data sets have rows of length 1 at most, and no intercept
        if isinstance(estimator, DPRidge):
            s = scales_of(estimator, *X.shape)
            laws.append(
                ridge_log_density(
                    model, X, y, s.mu, s.linear_scale, estimator.norm, estimator.problem().ball
                )
            )
        else:
            s, signs = scales_of(estimator, len(X), X.shape[1]), np.where(y == 1, 1, -1)
            laws.append(
                margin_log_density(
                    model[0], signs[:, None] * X, s, estimator.problem().loss, estimator.norm
                )
            )
    return laws[0] - laws[1]


def margin_log_density(w, signed, s, loss, norm):
    n, d = signed.shape
    u = signed @ w
    hessian = (signed * loss.second_derivative(u)[:, None]).T @ signed / n + s.mu * np.eye(d)
    b = -(s.mu * w + signed.T @ loss.derivative(u) / n) / s.linear_scale
    return log_noise(b, norm) + np.linalg.slogdet(hessian)[1]


def laplace_below(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def halting(losses, test, target_less_slack=0.0, halts=True):
    """Probability that a sequence of comparisons ends at the last of `losses`, by quadrature.

    With ``halts=False``, that it refuses them all.
    """
    losses = np.asarray(losses) - target_less_slack
    if not isinstance(test, ReducedTests):
        b, q = test.threshold_scale, test.query_scale
        x = b * np.linspace(-40, 40, 16001)
        weight = np.exp(-np.abs(x) / b)
        accept = [laplace_below((test.threshold + x - f) / q) for f in losses]
        value = np.prod([1 - a for a in accept[: len(accept) - halts]], axis=0) * weight
        return float((value * (accept[-1] if halts else 1.0)).sum() / weight.sum())
    e, Delta = test.epsilons, test.sensitivity
    x = np.linspace(-30, 30, 901) / e[0]
    refused = np.ones_like(x)  # all before, given the threshold's noise x at this level
    for n, f in enumerate(losses):
        accept = laplace_below((test.thresholds[n] + 2 * Delta * x - f) * e[n] / (4 * Delta))
        if n == len(losses) - 1:
            weight = np.exp(-e[n] * np.abs(x))
            return float((weight * refused * (accept if halts else 1 - accept)).sum() / weight.sum())
        refused = refused * (1 - accept)
        # the noise one level before is this one, or this one and more
        jump = np.exp(-e[n] * np.abs(x[:, None] - x))
        keep = (e[n] / e[n + 1]) ** 2
        refused = keep * refused + (1 - keep) * (jump @ refused) / jump.sum(axis=1)


def test_ratio(search, outcome, which=0):
    """Log-ratio of the answers, or of where the comparisons ended."""
    q, setup = search.setup.question, search.setup
    losses = [search.losses(w, search.reductions[w]) for w in (which, 1 - which)]
    if hasattr(setup, "test"):
        halts = [
            halting(f(outcome.models), setup.test, q.target - q.slack, outcome.accepted) for f in losses
        ]
        return math.log(halts[0] / halts[1])
    total = 0.0
    for k, (index, answer) in enumerate(zip(outcome.tested, outcome.answers)):
        values = [float(f([outcome.models[index]])[0]) for f in losses]
        verification = getattr(setup, "verification", None)
        if verification is None:
            verification = setup._verification(k + 1, setup.share)
            values = values if q.absolute else [math.sqrt(v) for v in values]
        total += (abs(answer - values[1]) - abs(answer - values[0])) / verification.scale
    return total


test_ratio.__test__ = False


def both(search, outcome, which=0):
    return model_ratio(search, outcome, which) + test_ratio(search, outcome, which)


def exact_ratios(search, twins=(), size=60):
    """The largest log-ratios of outcomes, in units of what is stated for them, and of twins."""
    worst = dict.fromkeys(("", *twins), 0.0)
    for which in (0, 1):
        for i in range(size):
            outcome = search.run(which, ROOT.child("exact", which, i))
            ratio = both(search, outcome, which)
            for twin in worst:
                worst[twin] = max(worst[twin], ratio / search.stated(outcome, twin))
    return worst


# ---- data: one record with everything, the others with nothing ----


def one_record(n, first, second, p=1, y=None):
    """Neighbours: record 0 is (x, y) as given, and the others are 0."""
    data = []
    for x, target in (first, second):
        X, targets = np.zeros((n, p)), np.zeros(n, dtype=type(target))
        X[0], targets[0] = x, target
        data.append((X, targets))
    return tuple(data)


def cells(first, second, rest):
    """Neighbouring records of a histogram with two cells: record 0 changes cells."""
    tail = [0.25] * rest[0] + [0.75] * rest[1]
    return tuple((np.array([[x], *([v] for v in tail)]), None) for x in (first, second))


FLIP = one_record(10, (1.0, 1.0), (1.0, -1.0))
SIGNS = one_record(10, (1.0, 1), (-1.0, 1))
EAST, NORTH = np.eye(2)
CORNERS = one_record(10, (EAST, 1), (NORTH, 0), 2)
SHORT = dict(alpha=25.0, fit_intercept=False)
CLASSES = dict(alpha=1.0, classes=[0, 1], fit_intercept=False)
LEVELS = (0.25, 0.5, 1.0)

RIDGE = (DPRidge(perturbation="output", norm="l2", target_range=(-1, 1), **SHORT), FLIP, LEVELS)
SVC = (DPLinearSVC(perturbation="output", **CLASSES), SIGNS, LEVELS)
LOGISTIC = (DPLogisticRegression(perturbation="output", **CLASSES), SIGNS, LEVELS)
LAPLACE = (DPHistogramDensity(bin_width=0.5, bounds=(0, 1)), cells(0.25, 0.75, (0, 60)), LEVELS)
DISCRETE = (
    DPHistogramDensity(bin_width=0.5, noise="discrete_laplace", bounds=(0, 1)),
    cells(0.25, 0.75, (30, 31)),
    LEVELS,
)
SUMS_L1 = (
    DPRidge(alpha=0.25, norm="l1", data_norm_l1=1.0, fit_intercept=False, target_range=(-1, 1)),
    one_record(3, (1.0, 1.0), (1.0, -1.0)),
    LEVELS,
)
SUMS_L2 = (
    DPRidge(alpha=0.25, norm="l2", target_range=(-1, 1)),
    one_record(6, (EAST, 1.0), (NORTH, -1.0), 2),
    LEVELS,
)
OBJECTIVE = {
    norm: (
        (
            DPRidge(
                norm=norm,
                perturbation="objective",
                target_range=(-1, 1),
                data_norm_l1=1.0 if norm == "l1" else None,
                **SHORT,
            ),
            FLIP,
            LEVELS,
        ),
        (DPLogisticRegression(norm=norm, data_norm_l1=1.0, **CLASSES), CORNERS, LEVELS),
        (DPLinearSVC(norm=norm, data_norm_l1=1.0, **CLASSES), CORNERS, LEVELS),
    )
    for norm in ("l1", "l2")
}


# ---- the exact loss of each outcome ----


# `least`: how much of what is stated some outcome uses
CASES = [
    (RIDGE, "predict_verify", 0.04, 0.9),
    (RIDGE, "doubling", 0.2, 0.2),
    (SVC, "predict_verify", 0.1, 0.95),
    (SVC, "above_threshold", 4.0, 0.45),
    (SVC, "reduced_above_threshold", 4.0, 0.3),
    (LOGISTIC, "predict_verify", 0.1, 0.4),
    (LOGISTIC, "published_above_threshold", 4.0, 0.05),
    (LOGISTIC, "doubling", 1.0, 0.3),
    (LAPLACE, "predict_verify", 0.5, 0.95),
    (LAPLACE, "above_threshold", 4.0, 0.35),
    (LAPLACE, "published_above_threshold", 4.0, 0.1),
    (LAPLACE, "reduced_above_threshold", 4.0, 0.5),
    (LAPLACE, "doubling", 0.5, 0.4),
    (DISCRETE, "predict_verify", 0.1, 0.95),
    (DISCRETE, "above_threshold", 0.3, 0.05),
    (DISCRETE, "doubling", 0.3, 0.3),
    (SUMS_L1, "predict_verify", 0.3, 0.3),
    (SUMS_L1, "reduced_above_threshold", 5.0, 0.1),
    (SUMS_L2, "predict_verify", 0.3, 0.2),
    (SUMS_L2, "doubling", 5.0, 0.3),
    *[(case, "predict_verify", 0.1, 0.2) for norm in ("l1", "l2") for case in OBJECTIVE[norm]],
    *[(case, "doubling", 1.0, 0.2) for norm in ("l1", "l2") for case in OBJECTIVE[norm]],
]


@pytest.mark.parametrize("case, method, target, least", slow_but(CASES, *range(0, len(CASES), 9)))
def test_no_outcome_loses_more_than_is_stated_for_it(case, method, target, least):
    worst = exact_ratios(Search(*case, target, method), size=100)[""]
    assert least <= worst <= 1 + 1e-9


@pytest.mark.parametrize("method", ["predict_verify", "above_threshold", "doubling"])
@pytest.mark.parametrize("case", [RIDGE, SVC, LAPLACE])
def test_nor_does_one_with_an_absolute_target(case, method):
    # a density's risk is negative
    target = -0.7 if case is LAPLACE else 0.3 if case is RIDGE else 1.2
    assert 0.01 <= exact_ratios(Search(*case, target, method, absolute=True))[""] <= 1 + 1e-9


@pytest.mark.parametrize("seed", slow_but(range(16), 0, -1))
def test_nor_does_any_on_random_neighbours(seed):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(2, 9), rng.integers(1, 3)
    X = rng.normal(size=(n, p)) * rng.choice([0.3, 5.0])
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    X_new = X.copy()
    X_new[0] = -X[0] if seed % 2 else rng.normal(size=p) / 4
    y, y_new = rng.uniform(-1, 1, (2, n))
    y_new[1:] = y[1:]
    case = [RIDGE, SVC, LOGISTIC, SUMS_L1, SUMS_L2, *OBJECTIVE["l2"]][seed % 8]
    if not isinstance(case[0], DPRidge):
        y, y_new = np.where(y > 0, 1, 0), np.where(y_new > 0, 1, 0)
    methods = ["predict_verify", "doubling"]
    if case not in OBJECTIVE["l2"]:
        methods += ["above_threshold", "reduced_above_threshold"]
    for method in methods:
        search = Search(case[0], ((X, y), (X_new, y_new)), LEVELS, rng.choice([0.1, 1.0]), method)
        assert exact_ratios(search, size=10)[""] <= 1 + 1e-9


TWINS = [
    # the root of an excess moved by one gradient in place of two
    (RIDGE, "predict_verify", 0.04, "half root", ""),
    (SVC, "predict_verify", 0.1, "half root", ""),
    (LAPLACE, "predict_verify", 0.5, "half root", ""),
    # noise for half of a record's effect
    (RIDGE, "predict_verify", 0.04, "half sensitivity", ""),
    (SVC, "above_threshold", 8.0, "half sensitivity", ""),
    (LAPLACE, "above_threshold", 8.0, "half sensitivity", ""),
    (DISCRETE, "predict_verify", 0.1, "half sensitivity", ""),
    # new noise at each level, counted as a path
    (RIDGE, "predict_verify", 0.02, "independent levels", ""),
    (SVC, "predict_verify", 0.02, "independent levels", ""),
    (LAPLACE, "predict_verify", 0.1, "independent levels", ""),
    # new models, of which only the last is counted
    (SVC, "doubling", 30.0, "", "last model"),
    # models alone, or the larger of both losses where tests read the same records
    (RIDGE, "predict_verify", 0.04, "", "no testing"),
    (RIDGE, "predict_verify", 0.04, "", "max"),
    (LAPLACE, "predict_verify", 0.5, "", "no testing"),
    (LAPLACE, "predict_verify", 0.5, "", "max"),
    (DISCRETE, "predict_verify", 0.1, "", "max"),
    (OBJECTIVE["l1"][2], "predict_verify", 0.1, "", "no testing"),
]


@pytest.mark.parametrize("case, method, target, how, twin", slow_but(TWINS, *range(0, len(TWINS), 3)))
def test_what_is_broken_is_caught(case, method, target, how, twin):
    search = Search(*case, target, method, twin=how)
    size = 150 if twin == "last model" else 100
    assert exact_ratios(search, [twin], size)[twin] > 1.05


def held_out_search(differ, method="above_threshold", target=0.3):
    """Models and a Brier score that read disjoint records; `differ` says which part changes."""
    first = SIGNS[0]
    data = SIGNS if differ in ("train", "both") else (first, first)
    held_out = SIGNS if differ in ("held out", "both") else (first, first)
    return Search(SVC[0], data, LEVELS, target, method, held_out=held_out)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["predict_verify", "above_threshold", "doubling"])
def test_with_records_held_out_the_larger_loss_counts(method):
    for differ, target in itertools.product(("train", "held out"), (0.3, 4.0)):
        assert exact_ratios(held_out_search(differ, method, target), size=30)[""] <= 1 + 1e-9
    if method == "predict_verify":
        # both are attained, and a twin whose tests read the records of the models has their sum
        assert exact_ratios(held_out_search("train", method, 4.0))[""] > 0.95
        assert exact_ratios(held_out_search("held out", method, 0.3))[""] > 0.95
        assert exact_ratios(held_out_search("both", method, 1.0))[""] > 1.5


# ---- the worst sequence of comparisons ----


METHODS_OF_COMPARISON = ("above_threshold", "published_above_threshold", "reduced_above_threshold")


def worst_halting(method, twin, n_levels=20, n=30):
    """The loss of one comparison after another, for a histogram all of whose records share a cell.

    On the neighbour one record is in the other cell. Models that are refused lie there, which
    lowers their excess by all that one record can; then one that is accepted lies where all
    others do, and its excess hardly moves. One record cannot do worse, since it moves the least
    risk for all models alike: that is 3/4 of what is stated.
    """
    target = {"above_threshold": 64.0, "published_above_threshold": 32.0}.get(method, 40.0)
    grid = np.geomspace(0.1, 1, n_levels)
    search = Search(LAPLACE[0], cells(0.25, 0.75, (n - 1, 0)), grid, target, method, twin=twin)
    losses, setup = [r.excesses for r in search.reductions], search.setup
    stated = np.broadcast_to(getattr(setup.test, "epsilons", setup.testing), n_levels)
    worst = 0.0
    for t, last in itertools.product((1, n_levels // 2, n_levels), (1.0, 0.6)):
        models = np.array([[0.0, 1.0]] * (t - 1) + [[last, 1 - last]])
        law = [math.log(halting(f(models), setup.test)) for f in losses]
        worst = max(worst, abs(law[0] - law[1]) / stated[t - 1])
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS_OF_COMPARISON)
def test_no_sequence_of_comparisons_loses_more_than_is_stated(method):
    assert 0.55 < worst_halting(method, "") <= 0.75
    # as in the code that the authors of the source published
    assert worst_halting(method, "half sensitivity") > 1.1


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS_OF_COMPARISON)
def test_comparisons_end_where_the_quadrature_says(method):
    search = Search(*LAPLACE, 2.0, method)
    test, mechanism = search.setup.test, above_threshold
    if isinstance(test, ReducedTests):
        mechanism = reduced_above_threshold
    losses, size = [1.2, 0.7, 0.9], 1500
    ends = [mechanism(losses, test, ROOT.child("end", i)) for i in range(size)]
    law = {t: halting(losses[: t + 1], test) for t in range(3)}
    law[None] = halting(losses, test, halts=False)
    assert sum(law.values()) == pytest.approx(1, abs=1e-3)
    for t, p in law.items():
        count = ends.count(t)
        assert binom.isf(1e-9, size, 1 - p + 1e-3) >= size - count
        assert count <= binom.isf(1e-9, size, p + 1e-3)


# ---- Gaussian noise ----


def exceeding(case, target, twin="", size=400):
    """How often the loss of the models exceeds what is stated for them."""
    search = Search(*case, target, "brownian", delta=0.1, twin=twin)
    counts = []
    for which in (0, 1):
        outcomes = [search.run(which, ROOT.child("brownian", which, i)) for i in range(size)]
        counts.append(sum(model_ratio(search, o, which) > o.epsilons[-1] for o in outcomes))
    return max(counts) / size


@pytest.mark.slow
@pytest.mark.parametrize("case, target", [(RIDGE, 0.5), (SVC, 8.0), (LAPLACE, 8.0), (SUMS_L2, 20.0)])
def test_gaussian_noise_exceeds_the_stated_loss_with_probability_delta(case, target):
    most = binom.isf(1e-9, 400, 0.1) / 400
    assert exceeding(case, target) <= most
    # a twin with noise for a part of the sensitivity; the published bound allows it
    if case is not SUMS_L2:
        assert exceeding(case, target, "quarter sensitivity") > most


# ---- sampled: what is released, and nothing else ----


def seen(search, outcome):
    """The ratio of the last model, had nothing been cut off, and of the answers."""
    here, there = (np.ravel(r.minimiser) for r in search.reductions)
    moved = search.noise(search.reductions[0]).sensitivity
    model, epsilon = np.ravel(outcome.models[-1]), outcome.epsilons[-1]
    away = np.linalg.norm(model - there) - np.linalg.norm(model - here)
    return away * epsilon / moved + test_ratio(search, outcome)


@pytest.mark.slow
def test_sampled_outcomes_lose_no_more_than_is_stated():
    # with fewer outcomes a bound from below tells neither the loss nor the twin
    search = Search(*RIDGE, 0.04, "predict_verify", size=12_000)
    assert 0.4 < search.ratio(seen) <= 1
    assert search.ratio(seen, "no testing") > 1


def mass_of_the_neighbour(search, size=400):
    """The mean of one over the exact ratio, in standard errors from 1.

    It is 1 if outcomes have the law that the ratio is made of: the neighbour's total mass.
    """
    outcomes = [search.run(0, ROOT.child("mass", i)) for i in range(size)]
    weights = np.exp([-both(search, outcome) for outcome in outcomes])
    return abs(weights.mean() - 1) / (weights.std() / math.sqrt(size))


@pytest.mark.slow
@pytest.mark.parametrize(
    "case, method, target",
    [
        (RIDGE, "predict_verify", 0.04),
        (SVC, "above_threshold", 8.0),
        (LAPLACE, "doubling", 2.0),
        (LAPLACE, "reduced_above_threshold", 8.0),
        (DISCRETE, "predict_verify", 0.3),
        (SUMS_L1, "predict_verify", 3.0),
        (SUMS_L2, "brownian", 40.0),
        (OBJECTIVE["l2"][0], "doubling", 2.0),
        (OBJECTIVE["l1"][1], "predict_verify", 0.1),
    ],
)
def test_runs_have_the_law_that_the_exact_ratios_are_made_of(case, method, target):
    delta = 0.1 if method == "brownian" else 0.0
    assert mass_of_the_neighbour(Search(*case, target, method, delta=delta)) < 6


@pytest.mark.slow
@pytest.mark.parametrize("case, target", [(RIDGE, 0.04), (SVC, 0.1), (LAPLACE, 0.5)])
def test_noise_of_another_length_does_not(case, target, monkeypatch):
    search = Search(*case, target, "predict_verify")
    drawn = SensitivityNoise.start

    def shorter(self, levels, stream):
        return drawn(dataclasses.replace(self, sensitivity=self.sensitivity / 6), levels, stream)

    monkeypatch.setattr(SensitivityNoise, "start", shorter)
    assert mass_of_the_neighbour(search, size=1000) > 6


# ---- the search itself ----


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "case, method, target",
    [
        (RIDGE, "predict_verify", 0.04),
        (RIDGE, "brownian", 0.5),
        (SVC, "above_threshold", 4.0),
        (LOGISTIC, "reduced_above_threshold", 4.0),
        (SUMS_L1, "doubling", 5.0),
        (SUMS_L2, "brownian", 20.0),
        (OBJECTIVE["l1"][1], "predict_verify", 0.1),
        (OBJECTIVE["l2"][0], "doubling", 0.3),
        (DISCRETE, "predict_verify", 0.1),
        (LAPLACE, "published_above_threshold", 4.0),
    ],
)
def test_a_search_releases_and_states_what_these_runs_do(case, method, target):
    delta = 0.1 if method == "brownian" else 0.0
    attack = Search(*case, target, method, delta=delta)
    (X, y), _ = attack.data
    for i in range(4):
        stream = ROOT.child("search", i)
        search = AccuracyFirstSearchCV(
            attack.model,
            {"epsilon": list(attack.epsilons)},
            target=target,
            method=method,
            delta=delta,
            failure_probability=attack.gamma,
            max_epsilon=np.inf,
            on_failure="last",
            random_state=stream,
        ).fit(X, y)
        outcome = attack.run(0, stream)
        assert search.reached_ == outcome.accepted
        assert search.privacy_.epsilon == attack.stated(outcome)
        assert search.privacy_.delta == delta and search.privacy_.kind == "ex-post"
        assert search.plan_.sensitivity == attack.setup.question.sensitivity
        np.testing.assert_array_equal(search.path_["epsilon"], outcome.epsilons)
        np.testing.assert_array_equal(search.path_["model"], outcome.models)
        np.testing.assert_array_equal(search.path_["answer"], outcome.answers)
        # and no more: the levels that were read ahead stay inside
        public = {name for name in vars(search) if name.endswith("_")}
        assert public <= {
            "best_epsilon_",
            "best_params_",
            "best_index_",
            "best_estimator_",
            "reached_",
            "privacy_",
            "path_",
            "plan_",
            "method_",
            "scorer_",
            "multimetric_",
            "feature_names_in_",
        }
        assert "random_state" not in search.best_estimator_.get_params() or (
            search.best_estimator_.random_state is None
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [RIDGE, SVC, LOGISTIC, LAPLACE, *OBJECTIVE["l1"], *OBJECTIVE["l2"]])
def test_a_certified_search_is_one_fit_at_a_level_that_is_known(case):
    model, data, _ = case
    grid, target = np.geomspace(0.1, 1e4, 60), 0.3
    levels = []
    for X, y in data:
        search = AccuracyFirstSearchCV(
            model, {"epsilon": grid}, target=target, method="certified", random_state=5
        ).fit(X, y)
        levels.append(search.best_epsilon_)
        assert search.privacy_.epsilon == search.best_epsilon_
        assert search.privacy_.kind == "differential privacy" and search.path_ == {}
        form = search.best_estimator_.accuracy_form()
        assert form.excess_bound(PublicShape(*X.shape), search.best_epsilon_, 0.1) <= target
    # whatever the records
    assert levels[0] == levels[1]

"""What accuracy costs in privacy: figure 1 of Ligett et al. (2017) again, and absolute targets.

Run ``python benchmarks/accuracy_first.py --data DIR``, where DIR holds ``adult.csv.gz``,
``kddcup99_10percent.csv.gz`` and ``blogfeedback.csv.gz``; without ``--data`` the first two are
downloaded, and BlogFeedback is left out. ``--output-dir`` writes the report,
``accuracy_first.md``, and the figure, ``accuracy_first.png``. ``--speed`` does nothing but the
comparison of running times, which wants an idle machine.

As in the source: lambda = 0.005, T = 1000 levels of epsilon from 1/n to four times what the
source's theorem asks for the smallest target, failure probability 0.1, rows of l1-norm at most
1, no intercept; logistic regression on 100,000 records of KDD-99 with 38 columns, and ridge
regression. Other than there, ridge regression is on BlogFeedback, 60,021 records of 280
columns: it stands in for the Twitter data, which could not be had. As 70 % of KDD-99's
file repeats earlier records, the benchmark also runs on the file without duplicates.

The rows of the tables:

- certified, theory: one fit, its epsilon known in advance; nothing is tested;
- predict_verify: few questions, about the square root of the excess risk;
- above_threshold, published_above_threshold, reduced_above_threshold: every model along the
  path is compared with a threshold; they differ in its constants, and in whether they change;
- brownian: likewise along a Gaussian path, with delta = 1e-6, so that its promise is weaker;
- doubling: new models at doubled levels, each tested;
- OUTPUTNR: the source's own generation for logistic regression, independent Laplace noise of
  scale 2 sqrt(p) / (n lambda epsilon) on the minimiser, not projected, with the sharper test of
  above_threshold and its sensitivity, and as published, with the sensitivity
  2 sqrt(2 ln 2 / lambda) / n. Neither sensitivity holds for models that are not projected, so
  that the losses of these two rows are what the source states, not what is proven;
- theorem: the closed form of the source's theory, a number.

"objective" is noise in what is minimised; "reducible" is noise that can be reduced along a
path: of output perturbation for logistic regression, of covariance perturbation for
ridge regression. Methods without either word read the path.

Within one trial all targets, and all methods with the same kind of noise, read the same models;
tests have noise of their own. So trials are independent, and the columns of a table are not.
Searches of their own, by AccuracyFirstSearchCV, give the running times, and are compared with
the trials. A run that finds nothing counts with all it has spent.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from _data import blogfeedback, kdd_numeric, load
from _together import fitted_together
from joblib import Parallel, delayed
from private_tuning import markdown, mean_and_error, split, versions
from scipy.stats import beta
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    AccuracyNotReachedError,
    DPLogisticRegression,
    DPRidge,
    PrivacyLoss,
)
from dpselect.base.estimator import Trial
from dpselect.linear_model.calibration import public_alpha
from dpselect.linear_model.losses import LogisticLoss
from dpselect.metrics import get_score
from dpselect.model_selection.accuracy_first.methods import METHODS, Static
from dpselect.model_selection.accuracy_first.question import Method, Question, outcome_loss
from dpselect.noise import as_generator, laplace, root_stream
from dpselect.records.public_shape import PublicShape

LAMBDA = 0.005
FAILURE_PROBABILITY = 0.1
LEVELS = 1000
DELTA = 1e-6  # of brownian alone
# from the source's linspace(0.005, 0.2, 40)
KDD_TARGETS = (0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.2)
DISTINCT_TARGETS = (0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1)
# theta = 0 is enough for the source's targets
BLOG_TARGETS = (0.0005, 0.001, 0.0015, 0.002)

# row: method of the search, and the noise of its models
ROWS = {
    "certified": ("certified", "objective"),
    "theory, objective": ("theory", "objective"),
    "theory, reducible": ("theory", "reducible"),
    "predict_verify, objective": ("predict_verify", "objective"),
    "predict_verify, reducible": ("predict_verify", "reducible"),
    "above_threshold": ("above_threshold", "reducible"),
    "published_above_threshold": ("published_above_threshold", "reducible"),
    "reduced_above_threshold": ("reduced_above_threshold", "reducible"),
    "brownian (delta = 1e-6)": ("brownian", "reducible"),
    "doubling, objective": ("doubling", "objective"),
    "doubling, reducible": ("doubling", "reducible"),
    "OUTPUTNR, sharper test": ("above_threshold", "source"),
    "OUTPUTNR, as published": ("published_above_threshold", "source"),
}
CERTIFIED, OBJECTIVE, REDUCIBLE = ("certified", "predict_verify, objective", "predict_verify, reducible")
DOUBLINGS = ("doubling, objective", "doubling, reducible")
CHEAPER = "the cheaper doubling"
# cheap row, expensive row, by which factor it should be cheaper
CLAIMS = (
    (CERTIFIED, "above_threshold", 25),
    (CERTIFIED, "published_above_threshold", 50),
    (CERTIFIED, "OUTPUTNR, sharper test", 25),
    (CERTIFIED, "OUTPUTNR, as published", 50),
    (OBJECTIVE, "above_threshold", 5),
    (REDUCIBLE, "above_threshold", 5),
    (CERTIFIED, CHEAPER, 1),
    (OBJECTIVE, CHEAPER, 1),
    (REDUCIBLE, CHEAPER, 1),
)

ABSOLUTE_TARGETS = {"brier": 0.15, "ramp": 0.3}
UNREACHABLE = ("brier", 0.05)
ABSOLUTE_METHODS = ("above_threshold", "reduced_above_threshold", "predict_verify", "auto")
ABSOLUTE_EPSILONS = np.geomspace(0.01, 20, LEVELS)
# the public rule of alpha="auto" at this epsilon
ABSOLUTE_RULE_EPSILON = 1.0

UNLABELLED = (0.035, 0.075)  # targets without a label, for lack of space
# Okabe and Ito's colours, distinguished by colour-blind readers too
STYLES = {
    "certified": ("#0072B2", "-"),
    "predict_verify, objective": ("#009E73", "-"),
    "predict_verify, reducible": ("#009E73", "--"),
    "above_threshold": ("#D55E00", "-"),
    "reduced_above_threshold": ("#E69F00", "-"),
    "brownian (delta = 1e-6)": ("#E69F00", ":"),
    "published_above_threshold": ("#D55E00", "--"),
    "doubling, objective": ("#CC79A7", "-"),
    "doubling, reducible": ("#CC79A7", "--"),
    "OUTPUTNR, sharper test": ("0.45", "-"),
    "OUTPUTNR, as published": ("0.45", "--"),
    "theorem": ("#000000", ":"),
}


@dataclass(frozen=True)
class Problem:
    """One regression whose excess risk has targets.

    Attributes
    ----------
    name : str
    X, y : ndarray
    model : estimator
    reducible : str
        The perturbation whose noise can be reduced.
    targets : tuple of float
    theorem : str
        Of the source, on the expected excess risk.
    theory : callable
        From a target to the epsilon that this theorem asks for.
    minimiser : ndarray of shape (p,)
        Without privacy.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    model: BaseEstimator
    reducible: str
    targets: tuple
    theorem: str
    theory: Callable
    minimiser: np.ndarray

    @property
    def epsilons(self):
        """ndarray : The grid."""
        return np.geomspace(1 / len(self.y), 4 * self.theory(self.targets[0]), LEVELS)

    @property
    def classifies(self):
        """bool : Whether it is logistic regression, or else ridge regression."""
        return isinstance(self.model, DPLogisticRegression)

    @property
    def rows(self):
        """list of str : Of the tables."""
        # no bound for covariance perturbation is known here, which the source walks along too
        lacking = () if self.classifies else ("theory, reducible", "OUTPUTNR")
        return [row for row in ROWS if not row.startswith(lacking)]

    def perturbed(self, noise):
        """Return the model with "objective" or "reducible" noise."""
        where = "objective" if noise == "objective" else self.reducible
        return clone(self.model).set_params(perturbation=where)

    def risk(self, theta):
        """Return what the model minimises."""
        f = self.X @ theta
        if self.classifies:
            loss = np.logaddexp(0, np.where(self.y == 1, -f, f)).mean()
        else:
            loss = ((self.y - f) ** 2).mean() / 2
        return loss + LAMBDA / 2 * theta @ theta

    def excess(self, theta):
        """Return how far the risk exceeds the least one."""
        return self.risk(theta) - self.risk(self.minimiser)

    @property
    def trivial(self):
        """float : The excess risk of theta = 0, which needs no data."""
        return self.excess(np.zeros_like(self.minimiser))

    def label(self, target):
        """Return a target as text, marked if theta = 0 meets it."""
        return f"{target:g} (trivial)" if self.trivial <= target else f"{target:g}"


def logistic_problem(name, X, y, targets):
    """Return the Problem of logistic regression."""
    n, p = X.shape
    exact = LogisticRegression(
        C=1 / (LAMBDA * n), fit_intercept=False, solver="newton-cholesky", tol=1e-10
    ).fit(X, y)

    def theory(target):
        # 2 sqrt(2) p / (n lambda epsilon) + 4 p^2 / (n^2 lambda epsilon^2), solved for epsilon
        a, b = 2 * math.sqrt(2) * p / (n * LAMBDA), 4 * p**2 / (n**2 * LAMBDA)
        return (a + math.sqrt(a**2 + 4 * target * b)) / (2 * target)

    model = DPLogisticRegression(alpha=LAMBDA, data_norm_l1=1.0, fit_intercept=False, classes=[0, 1])
    return Problem(name, X, y, model, "output", targets, "theorem 3.3", theory, exact.coef_[0])


def ridge_problem(name, X, y, targets):
    """Return the Problem of ridge regression."""
    n, p = X.shape
    minimiser = np.linalg.solve(X.T @ X / n + LAMBDA * np.eye(p), X.T @ y / n)

    def theory(target):
        return 4 * math.sqrt(2) * (2 * math.sqrt(p / LAMBDA) + p / LAMBDA) / (n * target)

    model = DPRidge(
        alpha=LAMBDA, norm="l1", data_norm=1, fit_intercept=False, target_range=(-1, 1), data_norm_l1=1
    )
    return Problem(name, X, y, model, "covariance", targets, "theorem 3.1", theory, minimiser)


@dataclass(frozen=True)
class Case:
    """One row of the tables at one target.

    Attributes
    ----------
    row : str
    target : float
    method : Method
        Planned, from public numbers.
    """

    row: str
    target: float
    method: Method

    @property
    def noise(self):
        return ROWS[self.row][1]


def cases(problem):
    """Return the cases of a problem."""
    n, p = problem.X.shape
    planned = []
    for row in problem.rows:
        name, noise = ROWS[row]
        form = problem.perturbed(noise).accuracy_form()
        sensitivity = form.bounds(PublicShape(n, p)).excess
        if row == "OUTPUTNR, as published":
            # the source's bound on the norm of the minimiser
            sensitivity = 2 * math.sqrt(2 * math.log(2) / LAMBDA) / n
        for target in problem.targets:
            question = Question(
                epsilons=problem.epsilons,
                absolute=False,
                target=target,
                slack=target,
                sensitivity=sensitivity,
                failure_probability=FAILURE_PROBABILITY,
                delta=DELTA if name == "brownian" else 0.0,
                form=form,
                shape=PublicShape(n, p),
            )
            planned.append(Case(row, target, METHODS[name](question)))
    return planned


class LaplacePath:
    """Independent Laplace variables of scale 1/epsilon, for all epsilons between two bounds.

    A variable of scale 1/high and Laplace jumps of scale 1/e, at places e of a Poisson process of
    intensity 2 de / e (Koufogiannis, Han and Pappas 2016). On a grid it is algorithm 1 of Ligett et al.

    Parameters
    ----------
    generator : numpy.random.Generator
    size : int
    low, high : float
        Smallest and largest epsilon.
    """

    def __init__(self, generator, size, low, high):
        self.first = laplace(generator, size) / high
        span = np.log(high) - np.log(low)
        n_jumps = generator.poisson(2 * size * span)
        places = np.sort(np.exp(np.log(low) + span * generator.random(n_jumps)))[::-1]
        self.places = np.clip(places, low, high)
        self.jumps = laplace(generator, n_jumps) / self.places
        self.coordinates = generator.integers(size, size=n_jumps)

    def read(self, epsilon):
        reached = self.places >= epsilon
        value = self.first.copy()
        np.add.at(value, self.coordinates[reached], self.jumps[reached])
        return value


class SourceReduction:
    """The models of OUTPUTNR.

    Parameters
    ----------
    reduction : Reduction
        Of output perturbation; gives the minimiser and the excess risks.
    epsilons : ndarray
    stream : InnerStream
    """

    def __init__(self, reduction, epsilons, stream):
        self.minimiser, self.excesses = np.ravel(reduction.minimiser), reduction.excesses
        p = self.minimiser.size
        self.scale = 2 * math.sqrt(p) / (reduction.n * LAMBDA)
        self.path = LaplacePath(as_generator(stream), p, epsilons[0], epsilons[-1])

    def read(self, epsilon):
        return self.minimiser + self.scale * self.path.read(epsilon)


class Walk:
    """The models of one trial, and their excess risks, computed once for all that read them.

    A model is known by the number of its level. Path methods read all levels from the first
    one on; the others read fresh noise, in any order.

    Parameters
    ----------
    reduction : Reduction or SourceReduction
    epsilons : ndarray
    """

    def __init__(self, reduction, epsilons):
        self.reduction, self.epsilons = reduction, epsilons
        self.models, self.known = {}, {}

    def read(self, epsilon):
        level = int(np.searchsorted(self.epsilons, epsilon))
        if level not in self.models:
            self.models[level] = self.reduction.read(epsilon)
        return level

    def losses(self, levels):
        unknown = [level for level in levels if level not in self.known]
        if unknown:
            excesses = self.reduction.excesses([self.models[level] for level in unknown])
            self.known.update(zip(unknown, excesses))
        return [self.known[level] for level in levels]

    def forecast(self, level, epsilon):
        return self.reduction.forecast(self.models[level], epsilon)


def start_walk(problem, case, stream):
    """Return the Walk that a case reads."""
    question, epsilons = case.method.question, problem.epsilons
    levels = question.levels(case.method.how)
    reduction = question.form.reduction(problem.X, problem.y, levels, stream.child("models"))
    if case.noise == "source":
        reduction = SourceReduction(reduction, epsilons, stream.child("source"))
    return Walk(reduction, epsilons)


def result(problem, case, theta, privacy, reached, **more):
    """Return one line of results.

    Parameters
    ----------
    problem : Problem
    case : Case
    theta : ndarray
        Coefficients that were released.
    privacy : PrivacyLoss
    reached : bool
        Whether success was reported.
    **more
        Further columns.

    Returns
    -------
    dict
    """
    testing = math.fsum(
        release.epsilon for release in privacy.releases if release.label.startswith("testing")
    )
    excess = float(problem.excess(np.ravel(theta)))
    return {
        "data": problem.name,
        "row": case.row,
        "target": case.target,
        "total": privacy.epsilon,
        "generating": privacy.epsilon - testing,
        "testing": testing,
        "nothing": not reached,
        "failed": reached and excess > case.target,
        **more,
    }


def trial(problem, planned):
    """Run every case once.

    Parameters
    ----------
    problem : Problem
    planned : list of Case

    Returns
    -------
    list of dict
    """
    static = [case for case in planned if isinstance(case.method, Static)]
    levels = [-1 if case.method.level is None else case.method.level for case in static]
    trials = [
        Trial(case.method.model, float(problem.epsilons[level])) for case, level in zip(static, levels)
    ]
    models = fitted_together(trials, problem.X, problem.y)
    rows = [
        result(problem, case, model.coef_, PrivacyLoss(model.epsilon), level >= 0)
        for case, model, level in zip(static, models, levels)
    ]
    root, walks = root_stream(), {}
    for case in planned:
        method = case.method
        if isinstance(method, Static):
            continue
        kind = (case.noise, method.how)
        if kind not in walks:
            walks[kind] = start_walk(problem, case, root.child("models", *kind))
        walk = walks[kind]
        outcome = method.run(walk, walk.losses, root.child("tests", case.row, str(case.target)))
        privacy = outcome_loss(method, outcome, disjoint=False, seeded=False)
        theta = walk.models[outcome.models[-1]]
        rows.append(result(problem, case, theta, privacy, outcome.accepted))
    return rows


def search_once(problem, case):
    """Run the search of one case as a user would, and time it.

    Parameters
    ----------
    problem : Problem
    case : Case

    Returns
    -------
    dict
    """
    search = AccuracyFirstSearchCV(
        problem.perturbed(case.noise),
        {"epsilon": problem.epsilons},
        target=case.target,
        failure_probability=FAILURE_PROBABILITY,
        method=case.method.name,
        delta=case.method.question.delta,
        max_epsilon=np.inf,
        on_failure="last",
    )
    start = time.perf_counter()
    search.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    coef = search.best_estimator_.coef_
    return result(problem, case, coef, search.privacy_, search.reached_, seconds=seconds)


def clopper_pearson(failures, trials):
    """Return the exact 95 % interval of a probability."""
    low = beta.ppf(0.025, failures, trials - failures + 1) if failures else 0.0
    high = beta.ppf(0.975, failures + 1, trials - failures) if failures < trials else 1.0
    return low, high


def table(problem, title, lines):
    """Return a Markdown table with a column for each target.

    Parameters
    ----------
    problem : Problem
    title : str
    lines : list of list
        A name, and a cell for each target.

    Returns
    -------
    str
    """
    return markdown([f"{problem.name}: {title}", *map(problem.label, problem.targets)], lines)


def lines_of(problem, results, cell, rows=None):
    """Return a line for each row of the tables.

    Parameters
    ----------
    problem : Problem
    results : DataFrame
        Lines of this problem.
    cell : callable
        From the lines of one row and target to text.
    rows : list of str, default=None
        None is all.

    Returns
    -------
    list of list
    """
    parts = dict(list(results.groupby(["row", "target"])))
    return [
        [row, *(cell(parts[row, target]) for target in problem.targets)] for row in rows or problem.rows
    ]


def mean_totals(problem, trials):
    """Return the mean total loss, a row for each method and a column for each target."""
    means = trials.pivot_table(index="row", columns="target", values="total")
    means.loc["theorem"] = [problem.theory(target) for target in means.columns]
    means.loc[CHEAPER] = means.loc[list(DOUBLINGS)].min()
    return means


def total_cell(runs):
    """Return mean and standard error of the totals; the error of equal ones is exactly 0."""
    totals = runs["total"]
    if totals.nunique() == 1:
        return f"{totals.iloc[0]:.4g} (0)"
    return mean_and_error(totals, "{:.4g} ({:.2g})")


def failure_cell(runs):
    """Return the share of runs that failed, with its interval, in percent."""
    failures, n = int(runs["failed"].sum()), len(runs)
    low, high = clopper_pearson(failures, n)
    return f"{100 * failures / n:.3g} [{100 * low:.2g}, {100 * high:.2g}]"


def ratio_lines(problem, means):
    """Return how many times more each of the expensive methods pays than the cheap ones."""
    expensive = [row for row in problem.rows if "threshold" in row or "OUTPUTNR" in row]
    return [
        [f"{whole} / {part}", *(f"{ratio:.3g}" for ratio in means.loc[whole] / means.loc[part])]
        for whole in (*expensive, *DOUBLINGS, "theorem")
        for part in (CERTIFIED, OBJECTIVE, REDUCIBLE)
    ]


def summary(problem, means):
    """Return for each of CLAIMS at which targets it holds, and at which it does not.

    Parameters
    ----------
    problem : Problem
    means : DataFrame
        Of :func:`mean_totals`.

    Returns
    -------
    str
    """
    sentences = []
    for part, whole, factor in CLAIMS:
        if whole not in means.index:
            continue
        ratios = means.loc[whole] / means.loc[part]
        texts = {
            verdict: ", ".join(
                f"{problem.label(target)}: 1/{ratio:.3g}"
                for target, ratio in ratios.items()
                if (ratio >= factor) == holds
            )
            for verdict, holds in (("holds at", True), ("does NOT hold at", False))
        }
        what = f"at most 1/{factor} of" if factor > 1 else "no more than"
        verdicts = "; ".join(f"{verdict} {text}" for verdict, text in texts.items() if text)
        sentences.append(f"- {part} pays {what} {whole}. This {verdicts}.")
    return "\n".join(sentences)


def agreement(trials, searched):
    """Return how the searches compare with the trials, in one sentence."""
    ranges = trials.groupby(["row", "target"])["total"].agg(["min", "max", "size"])
    single = searched.join(ranges, on=["row", "target"])
    # one part in 1e9 for sums in another order
    inside = single["total"].between(single["min"] * (1 - 1e-9), single["max"] * (1 + 1e-9))
    n = single["size"].iloc[0]
    return (
        f"Of {len(single)} searches by AccuracyFirstSearchCV, {inside.sum()} paid a total within "
        f"the range of the trials with the same row and target; {(n - 1) / (n + 1):.0%} or more "
        "is expected."
    )


def report(problem, trials, searched):
    """Return the section of one problem.

    Parameters
    ----------
    problem : Problem
    trials, searched : DataFrame
        Of this problem.

    Returns
    -------
    str
    """
    n, p = problem.X.shape
    means = mean_totals(problem, trials)
    totals = lines_of(problem, trials, total_cell)
    theorem = [f"{value:.4g}" for value in means.loc["theorem"]]
    halves = lines_of(
        problem,
        trials,
        lambda runs: f"{runs['generating'].mean():.3g} + {runs['testing'].mean():.3g}",
    )
    failed = lines_of(problem, trials, failure_cell)
    nothing = lines_of(problem, trials, lambda runs: f"{100 * runs['nothing'].mean():.3g}")
    nothing = [line for line in nothing if set(line[1:]) != {"0"}]
    in_library = [row for row in problem.rows if not row.startswith("OUTPUTNR")]
    seconds = lines_of(problem, searched, lambda runs: f"{runs['seconds'].median():.2f}", in_library)
    return "\n\n".join(
        [
            f"## {problem.name}",
            (
                f"{n:,} records, {p} columns, {LEVELS} epsilons from {problem.epsilons[0]:.3g} to "
                f"{problem.epsilons[-1]:.4g}, {trials.groupby(['row', 'target']).size().iloc[0]} "
                f"trials. Reducible noise is that of {problem.reducible} perturbation. theta = 0 has "
                f"excess risk {problem.trivial:.4g}, so that larger targets are trivial."
            ),
            "Privacy loss: mean of the total (standard error). The source's theorem is a formula.",
            table(problem, "total", [*totals, [f"{problem.theorem} (formula)", *theorem]]),
            "Its parts:",
            table(problem, "generating + testing", halves),
            (
                "Runs that reported success and whose excess risk is above the target, with the 95 % "
                f"interval of Clopper and Pearson; {FAILURE_PROBABILITY:.0%} is promised by all but "
                "theory, which bounds the mean:"
            ),
            table(problem, "failed, %", failed),
            "Runs that found nothing: none."
            if not nothing
            else "\n\n".join(
                [
                    "Runs that found nothing, rows where there were any:",
                    table(problem, "nothing found, %", nothing),
                ]
            ),
            f"Time of one search, the median of {searched.groupby(['row', 'target']).size().iloc[0]}:",
            table(problem, "seconds", seconds),
            agreement(trials, searched),
            "Ratios of mean totals:",
            table(problem, "ratio", ratio_lines(problem, means)),
            f"What was hoped for, {problem.name}, from these numbers:",
            summary(problem, means),
        ]
    )


def absolute(data, repetition):
    """Run every method once for the absolute targets, and once for what cannot be reached.

    Parameters
    ----------
    data : Data
    repetition : int
        Its number; decides the split, but not the noise.

    Returns
    -------
    list of dict
    """
    X, X_test, y, y_test = split(data, repetition)
    classifier = DPLogisticRegression(
        alpha=absolute_alpha(data), perturbation="output", data_norm=data.data_norm, classes=[0, 1]
    )
    rows = []
    for criterion, target in (*ABSOLUTE_TARGETS.items(), UNREACHABLE):
        for method in ABSOLUTE_METHODS:
            search = AccuracyFirstSearchCV(
                Pipeline([("prepare", data.steps()), ("model", classifier)]),
                {"model__epsilon": ABSOLUTE_EPSILONS},
                target=target,
                criterion=criterion,
                failure_probability=FAILURE_PROBABILITY,
                method=method,
                max_epsilon=np.inf,
                # signed_log works on each number by itself
                trusted_steps=["functiontransformer"],
            )
            row = {"criterion": criterion, "target": target, "method": method}
            start = time.perf_counter()
            try:
                search.fit(X, y)
            except AccuracyNotReachedError as error:
                found = {"total": error.privacy.epsilon, "reached": False, "message": str(error)}
            else:
                found = {
                    "total": search.privacy_.epsilon,
                    "reached": True,
                    "method_": search.method_,
                    "level": search.best_epsilon_,
                    "test": -get_score(criterion)(search.best_estimator_, X_test, y_test),
                }
            rows.append({**row, **found, "seconds": time.perf_counter() - start})
    return rows


def absolute_alpha(data):
    """Return the public alpha of the models with absolute targets."""
    n_columns = data.steps().fit_transform(data.example).shape[1]
    return public_alpha(
        LogisticLoss(),
        "objective",
        n_trained(data),
        n_columns + 1,
        math.hypot(data.data_norm, 1),
        ABSOLUTE_RULE_EPSILON,
    )


def n_trained(data):
    """Return how many records train: four fifths, and of these another four fifths."""
    n = len(data.y) - len(data.y) // 5
    return n - math.ceil(n / 5)


def absolute_report(data, results):
    """Return the section on absolute targets.

    Parameters
    ----------
    data : Data
    results : DataFrame
        Lines of :func:`absolute`.

    Returns
    -------
    str
    """
    lines = []
    for (criterion, target, method), runs in results.groupby(
        ["criterion", "target", "method"], sort=False
    ):
        found = runs[runs["reached"]]
        cells = ["", "", ""]
        if len(found):
            cells = [
                mean_and_error(found["test"]),
                f"{found['test'].max():.4f}",
                f"{(found['test'] > target).sum()} of {len(found)}",
            ]
        used = ", ".join(sorted(set(found["method_"]))) if method == "auto" and len(found) else ""
        lines.append(
            [
                f"{criterion} at most {target:g}",
                method + (f" ({used})" if used else ""),
                f"{len(found)} of {len(runs)}",
                (
                    f"{mean_and_error(runs['total'], '{:.3g} ({:.2g})')}, "
                    f"{runs['total'].min():.3g} to {runs['total'].max():.3g}"
                ),
                *cells,
                f"{runs['seconds'].median():.2f}",
            ]
        )
    header = [
        f"{data.name}: target",
        "method",
        "reached",
        "privacy loss, and its range",
        "score on test records",
        "worst",
        "above target",
        "seconds",
    ]
    base_rate = float(np.mean(data.y))
    message = results.loc[~results["reached"].astype(bool), "message"].iloc[0]
    return "\n\n".join(
        [
            f"## Absolute targets: {data.name}",
            (
                f'DPLogisticRegression(perturbation="output", alpha={absolute_alpha(data):.3g}) after '
                f'the public steps. The alpha is that of the public rule behind alpha="auto" at epsilon '
                f"= {ABSOLUTE_RULE_EPSILON:g} and the {n_trained(data):,} records that train (1, 2 "
                "and 4 were tried, and all reached the targets); the search holds out a fifth of what "
                "it is given and tests on it, and another "
                f"fifth, the test records, it never sees. {LEVELS} epsilons from "
                f"{ABSOLUTE_EPSILONS[0]:g} to {ABSOLUTE_EPSILONS[-1]:g}. Models and "
                "tests read different records, so the larger of their losses counts. "
                "Always predicting the share of positives has Brier score "
                f"{base_rate * (1 - base_rate):.3f}, and always saying no with margin 1 has ramp risk "
                f"{base_rate:.3f}, which meets the target here."
            ),
            markdown(header, lines),
            (
                "What cannot be reached raises AccuracyNotReachedError, which says what was spent: "
                f"{message}"
            ),
        ]
    )


def figure(problems, trials, path):
    """Draw total and generating loss over the target, one column for each problem.

    Parameters
    ----------
    problems : list of Problem
    trials : DataFrame
        Lines of :func:`trial`.
    path : Path
        Of the PNG file.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 11
    size = (4.4 * len(problems), 8.6)
    fig, grid = plt.subplots(
        2, len(problems), figsize=size, layout="constrained", sharex="col", squeeze=False
    )
    for problem, column in zip(problems, grid.T):
        runs = trials[trials["data"] == problem.name]
        means = runs.groupby(["row", "target"])[["total", "generating"]].mean()
        column[0].set_title(problem.name, fontsize=11)
        for axes, part in zip(column, ("total", "generating")):
            for row, (colour, style) in STYLES.items():
                if row == "theorem" and part == "total":
                    values = [problem.theory(target) for target in problem.targets]
                elif row in problem.rows:
                    values = means.loc[row, part]
                else:
                    continue
                axes.plot(
                    problem.targets,
                    values,
                    color=colour,
                    linestyle=style,
                    linewidth=1.6,
                    marker="o",
                    markersize=3.5,
                    label="the source's theorem, in expectation" if row == "theorem" else row,
                )
            if problem.trivial < problem.targets[-1]:
                axes.axvspan(
                    problem.trivial,
                    problem.targets[-1],
                    color="0.9",
                    zorder=0,
                    label="trivial: theta = 0 is enough",
                )
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.minorticks_off()
            axes.grid(axis="y", color="0.9", linewidth=0.8)
            ticks = [target for target in problem.targets if target not in UNLABELLED]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        column[1].set_xlabel("target of the excess risk")
    grid[0, 0].set_ylabel("total privacy loss")
    grid[1, 0].set_ylabel("privacy loss of the models alone")
    handles = {}
    for axes in grid[0]:
        handles.update(zip(*reversed(axes.get_legend_handles_labels())))
    # each kind of line once
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False)
    fig.savefig(path, dpi=150)


def speed(n_samples=1_000_000, n_features=77, repetitions=5):
    """Return the section on running times beside scikit-learn's Ridge.

    Parameters
    ----------
    n_samples, n_features : int
        Of the generated records.
    repetitions : int
        Medians are over them.

    Returns
    -------
    str
    """
    generator = np.random.default_rng(77)
    X = generator.uniform(-1, 1, size=(n_samples, n_features)) / n_features
    y = X @ generator.normal(size=n_features) + 0.1 * generator.normal(size=n_samples)
    y = np.clip(y, -1, 1)
    grid = {"epsilon": np.geomspace(1 / n_samples, 1, LEVELS)}
    model = DPRidge(alpha=LAMBDA, target_range=(-1, 1))
    contestants = {
        "Ridge.fit": Ridge(alpha=LAMBDA * n_samples),
        f"above_threshold, all {LEVELS} levels": AccuracyFirstSearchCV(
            model, grid, target=1e-9, method="above_threshold", max_epsilon=np.inf, on_failure="last"
        ),
        "certified": AccuracyFirstSearchCV(model, grid, target=0.01, method="certified"),
    }
    seconds = {name: [] for name in contestants}
    for _ in range(repetitions):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            contestant.fit(X, y)
            seconds[name].append(time.perf_counter() - start)
    walked = contestants[f"above_threshold, all {LEVELS} levels"]
    if walked.reached_ or len(walked.path_["epsilon"]) != LEVELS:
        raise RuntimeError("The walk ended early, so its time is not that of all levels.")
    medians = {name: float(np.median(taken)) for name, taken in seconds.items()}
    lines = [
        [
            name,
            f"{median:.3f}",
            f"{min(seconds[name]):.3f} to {max(seconds[name]):.3f}",
            f"{median / medians['Ridge.fit']:.2f}",
            limit,
        ]
        for (name, median), limit in zip(medians.items(), ("", "3", "1.5"))
    ]
    return "\n\n".join(
        [
            "## Speed",
            (
                f"DPRidge on {n_samples:,} generated records of {n_features} columns, beside "
                f"scikit-learn's Ridge at the same regularisation; medians of {repetitions} fits in "
                "turn."
            ),
            markdown(["generated records", "seconds", "range", "ratio to Ridge", "at most"], lines),
        ]
    )


def problems(directory):
    """Return the regressions of the figure."""
    kdd = logistic_problem("KDD-99", *kdd_numeric(directory), KDD_TARGETS)
    distinct = logistic_problem(
        "KDD-99 without duplicates", *kdd_numeric(directory, duplicates=False), DISTINCT_TARGETS
    )
    if directory is None:
        warnings.warn("BlogFeedback is left out: it is not downloaded.", stacklevel=2)
        return [kdd, distinct]
    blog = ridge_problem("BlogFeedback (stands in for Twitter)", *blogfeedback(directory), BLOG_TARGETS)
    return [kdd, distinct, blog]


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", help="directory of the .csv.gz files")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--absolute-trials", type=int, default=10)
    parser.add_argument("--searches", type=int, default=3, help="of which the time is taken")
    parser.add_argument("--output-dir", metavar="DIR", help="write report and figure here")
    parser.add_argument("--quick", action="store_true", help="2 trials of each kind, 1 search")
    parser.add_argument("--speed", action="store_true", help="compare running times, no more")
    parser.add_argument("--jobs", type=int, default=2, help="processes that share trials")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the benchmark, print its report and draw its figure."""
    options = parse(arguments)
    start = time.perf_counter()
    directory = None
    if options.output_dir:
        directory = Path(options.output_dir)
        directory.mkdir(parents=True, exist_ok=True)
    name, sections = "accuracy_first", ["# Accuracy first"]
    if options.speed:
        name = "accuracy_first_speed"
        sections.append(speed())
    else:
        if options.quick:
            options.trials = options.absolute_trials = 2
            options.searches = 1
        sections += compare(options, directory)
    taken = time.perf_counter() - start
    sections.append(f"{versions()}. Took {taken:.0f} s with {options.jobs} jobs.")
    text = "\n\n".join(sections) + "\n"
    print(text)
    if directory:
        (directory / f"{name}.md").write_text(text, encoding="utf-8")


def compare(options, directory):
    """Run everything but the speed comparison, and draw the figure.

    Parameters
    ----------
    options : Namespace
    directory : Path or None
        For the figure.

    Returns
    -------
    list of str
        Sections of the report.
    """
    regressions = problems(options.data)
    planned = [cases(problem) for problem in regressions]
    adult = load("adult", options.data)
    with Parallel(n_jobs=options.jobs) as parallel:
        trials = parallel(
            delayed(trial)(problem, some)
            for problem, some in zip(regressions, planned)
            for _ in range(options.trials)
        )
        searched = parallel(
            delayed(search_once)(problem, case)
            for problem, some in zip(regressions, planned)
            for case in some
            if case.noise != "source"
            for _ in range(options.searches)
        )
        met = parallel(
            delayed(absolute)(adult, repetition) for repetition in range(options.absolute_trials)
        )
    trials = pd.DataFrame([row for part in trials for row in part])
    searched = pd.DataFrame(searched)
    if directory:
        figure(regressions, trials, directory / "accuracy_first.png")
    sections = [
        report(
            problem,
            trials[trials["data"] == problem.name],
            searched[searched["data"] == problem.name],
        )
        for problem in regressions
    ]
    return [*sections, absolute_report(adult, pd.DataFrame([row for part in met for row in part]))]


if __name__ == "__main__":
    main()

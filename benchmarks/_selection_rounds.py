"""Contests and their rounds for ``selection_strategies.py``: splits, candidates, trained models.

Within one round methods have common random numbers: a candidate has the same noise, at unit
scale, wherever it is trained for a choice, and another wherever it is trained for release.
Noise of the choice is common too. Between rounds everything is independent but the records.
"""

import math
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from _together import fitted_together
from scipy.special import expit
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.base.certificates import public_reach
from dpselect.base.estimator import Trial
from dpselect.metrics import AccuracyScore, BrierScore
from dpselect.model_selection.candidates import make_candidates, with_columns
from dpselect.model_selection.exact_scores import records_for_steps
from dpselect.model_selection.strategies import Problem
from dpselect.noise import root_stream

SEED = 20130
FOLDS = 10
WIDTHS, SIZES = (0.5, 1.0, 2.0), (40, 100, 200)
N_TEST = 5000  # records that judge, where few train

# A model to be trained: which candidate, its epsilon, its noise, and on which records
Order = namedtuple("Order", "candidate epsilon noise part", defaults=["T"])


def alpha_grid(alphas, seed):
    """Return a grid of alpha; nothing in it depends on `seed`."""
    return {"alpha": list(alphas)}


def map_grid(data_norm, seed):
    """Return the linear features, and random Fourier features that follow from `seed`.

    For rows of norm at most 1. The constant of the intercept is what it is for rows that have
    not been divided by `data_norm`.
    """
    samplers = [
        RBFSampler(gamma=1 / (2 * width**2), n_components=size, random_state=seed)
        for width in WIDTHS
        for size in SIZES
    ]
    return [
        {"map": ["passthrough"], "model__data_norm": [1.0], "model__intercept_scaling": [1 / data_norm]},
        # cosines of amplitude sqrt(2 / size): no row is longer than this
        {"map": samplers, "model__data_norm": [math.sqrt(2)]},
    ]


@dataclass(frozen=True)
class Contest:
    """One data set and grid on which methods compete.

    Attributes
    ----------
    data, title : str
        Name of the data set; what is chosen.
    X : ndarray of shape (n, p)
        Rows, none longer than what the models are told.
    y : ndarray of shape (n,)
        0 or 1.
    estimator : estimator
    grid : callable
        ``grid(seed)`` is the grid of one round.
    epsilons : tuple of float
    methods : tuple of str
        Keys of `METHODS`.
    rounds, stopping_rounds : int
        How many there are, and in how many of them random stopping plays: it trains more models
        than all others together.
    n_records : int, default=None
        A round takes this many records and judges on others. None takes all, in folds.
    """

    data: str
    title: str
    X: np.ndarray
    y: np.ndarray
    estimator: object
    grid: object
    epsilons: tuple
    methods: tuple
    rounds: int
    stopping_rounds: int = 0
    n_records: int | None = None

    def parts(self, number):
        """Return the records for training, validation and test in one round.

        As Chaudhuri and Vinterbo: fold i tests, fold i + 1 validates, the others train, and
        after all folds the records are shuffled anew.
        """
        if self.n_records is not None:
            order = np.random.default_rng([SEED, number]).permutation(len(self.y))
            chosen, test = order[: self.n_records], order[self.n_records :][:N_TEST]
            validation, train = np.split(chosen, [self.n_records // (FOLDS - 1)])
            return train, validation, test
        shuffle, i = divmod(number, FOLDS)
        splitter = KFold(FOLDS, shuffle=True, random_state=SEED + shuffle)
        folds = [fold for _, fold in splitter.split(self.y)]
        test, validation = folds[i], folds[(i + 1) % FOLDS]
        return np.setdiff1d(np.arange(len(self.y)), [*test, *validation]), validation, test

    def problem(self, number, epsilon, delta=0.0):
        """Return what the library's strategies are told of a round."""
        train, validation, _ = self.parts(number)
        n_samples = len(train) + len(validation)
        split = tuple(np.split(np.arange(n_samples), [len(train)]))
        candidates = make_candidates(self.estimator, self.grid(number), trusted_steps=())
        _, public = records_for_steps(candidates, self.X[:1])
        candidates = with_columns(candidates, self.X.shape[1], public)
        return Problem(candidates, BrierScore(), [split], n_samples, self.X.shape[1], epsilon, delta)

    def search(self, strategy, epsilon, number, **options):
        """Return the library's search over the records that do not test, training first."""
        train, validation, _ = self.parts(number)
        places = np.arange(len(train) + len(validation))
        split = np.split(places, [len(train)])
        options = {"cv": [split], "public_splits": True, **options}
        return StabilityGridSearchCV(
            self.estimator, self.grid(number), epsilon=epsilon, strategy=strategy, **options
        )


class Round:
    """One split with what all methods share.

    Parameters
    ----------
    contest : Contest
    plans : dict
        ``contest.plans()``.
    number : int
        Decides the split, the random features and the noise.
    """

    def __init__(self, contest, plans, number):
        self.contest, self.plans = contest, plans
        self.stream = root_stream(SEED).child(contest.data, contest.title, number)
        train, validation, test = contest.parts(number)
        self.parts = {
            "T": train,
            "V": validation,
            "T+V": np.concatenate([train, validation]),
            "test": test,
        }
        self.problem = contest.problem(number, max(contest.epsilons))
        self.candidates = self.problem.candidates
        self.features = {}
        for candidate in self.candidates:
            if candidate.steps_key not in self.features:
                self.features[candidate.steps_key] = candidate.transform(contest.X)
        self.values = {}

    @property
    def k(self):
        return len(self.candidates)

    def size(self, part):
        return len(self.parts[part])

    def trial(self, i, epsilon, noise=None):
        """Return the trial of candidate i's model."""
        return Trial(self.candidates[i].model, epsilon, noise)

    def for_choice(self, epsilon):
        """Return orders of all candidates on T with the noise that choices see."""
        return [Order(i, epsilon, self.stream.child("choice of", i)) for i in range(self.k)]

    def release(self, i, epsilon, part="T+V"):
        """Return the order of a model for release, whose noise no choice has seen."""
        return Order(i, epsilon, self.stream.child("release of", i), part)

    def noise(self):
        """Return the stream of the choice itself."""
        return self.stream.child("choice")

    def train(self, orders):
        """Return a dict from orders to fitted models; those that see the same rows are a batch."""
        models, batches = {}, {}
        for order in dict.fromkeys(orders):
            key = self.candidates[order.candidate].steps_key, order.part
            batches.setdefault(key, []).append(order)
        for (steps_key, part), batch in batches.items():
            records = self.parts[part]
            trials = [self.trial(*order[:3]) for order in batch]
            trained = fitted_together(trials, self.features[steps_key][records], self.contest.y[records])
            models.update(zip(batch, trained))
        return models

    def decisions(self, orders, models, part):
        """Return the decision functions of models, shape (records, models).

        No row is longer than what the models are told, so that none would be clipped.
        """
        records, columns = self.parts[part], {}
        for j, order in enumerate(orders):
            columns.setdefault(self.candidates[order.candidate].steps_key, []).append(j)
        decisions = np.empty((len(records), len(models)))
        for key, members in columns.items():
            W = np.vstack([models[j].coef_ for j in members])
            intercepts = np.concatenate([models[j].intercept_ for j in members])
            decisions[:, members] = self.features[key][records] @ W.T + intercepts
        return decisions

    def scores(self, orders, models, score):
        """Return the exact scores of models on V."""
        decisions = self.decisions(orders, models, "V")
        positive = self.contest.y[self.parts["V"], None] == 1
        if isinstance(score, AccuracyScore):
            return np.mean((decisions > 0) == positive, axis=0)
        return -score.penalty(np.where(positive, decisions, -decisions)).mean(axis=0)

    def optimal_values(self, i, epsilon, reach):
        """Return candidate i's least risk on T and V; those for all epsilons are found together."""
        if (i, epsilon, reach) not in self.values:
            records = self.parts["T+V"]
            n = len(records)
            epsilons = {epsilon} | {
                plan.training_epsilon
                for plan in self.plans.values()
                if plan.strategy == "optimal_risk"
                and public_reach(n, self.k, plan.selection_epsilon) == reach
            }
            groups = {}
            for j, candidate in enumerate(self.candidates):
                groups.setdefault(candidate.steps_key, []).extend((j, e) for e in sorted(epsilons))
            for key, members in groups.items():
                found = DPLogisticRegression.optimal_values(
                    [self.trial(j, e) for j, e in members],
                    self.features[key][records],
                    self.contest.y[records],
                    reach,
                )
                self.values.update({(j, e, reach): v for (j, e), v in zip(members, found)})
        return self.values[i, epsilon, reach]

    def judge(self, order, model):
        """Return AUC and mean squared error of the probability on the test records."""
        decision = self.decisions([order], [model], "test")[:, 0]
        y = self.contest.y[self.parts["test"]]
        return {"AUC": roc_auc_score(y, decision), "MSE": np.mean((expit(decision) - y) ** 2)}

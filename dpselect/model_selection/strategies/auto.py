"""The strategy that fits a search, by public numbers only."""

import math
from copy import copy
from dataclasses import replace

import numpy as np

from ...exceptions import CertificateError
from . import data_independent, post_processing
from .data_free import FirstCandidate
from .data_independent import DataIndependent
from .held_out import BudgetSplit
from .optimal_risk import SHARE, TOO_SHORT, OptimalRisk
from .post_processing import PostProcessing
from .random_stopping import RandomStopping
from .stability import Stability
from .stability_plan import UNDERPOWERED, USEFUL
from .strategy import Strategy

# A choice by scores that sees less than this many times the stake was worse than one by chance.
# Found by experiment, on histograms of four columns of Adult and MAGIC.
HOPELESS = 5.0


class Auto(Strategy):
    """Takes the strategy that did best on data of the same public description.

    The page "Strategies of a private search" has the rules. They read the grid, the shapes and
    the budgets, never a record and never a result, so the loss is that of the strategy taken.
    """

    name = "auto"
    takes_groups = True

    def prepare(self):
        self.strategy, self.share, self.reason = choose_strategy(self.problem)
        self.members = self._members(self.problem)
        self.compares_scores = self.strategy.compares_scores
        # of several, another number of records may lead to another strategy
        self.takes_delta = len(self.problem.candidates) > 1
        self.training_epsilon = self.strategy.training_epsilon
        self.training_size = self.strategy.training_size

    def after_learning(self, candidates):
        # which strategy was taken stays, and with it what is spent on what: only `alpha` is
        # decided anew, once for each set of the other parameters as before
        again = copy(self)
        again.problem = replace(self.problem, candidates=candidates, learned=True)
        again.members = self._members(again.problem)
        again.strategy = type(self.strategy)(again.problem.restricted(again.members))
        return again

    def _members(self, problem):
        """Return the candidates that the strategy is restricted to."""
        if isinstance(self.strategy, FirstCandidate):
            return _preferred(problem, self.share)
        return _shortlist(problem, self.share)

    def dry_run(self):
        self.strategy.dry_run()

    def plan(self):
        return self._expanded(self.strategy.plan())

    def delta_of_models(self):
        if not any(self.deltas):
            return 0.0
        # with other numbers of records another strategy may be taken, but where one of these serves
        # none that releases several models
        if any(_attempt(kind, self.problem)[0] for kind in (OptimalRisk, Stability)):
            return super().delta_of_models()
        if _attempt(RandomStopping, self.problem)[0]:  # or one model, but not both
            return max(self.deltas) if max(self.deltas) > self.problem.delta else 0.0
        return min(1.0, math.fsum(self.deltas))

    def choose(self, X, y, stream):
        # another strategy may have had its dry run, for other shapes
        self.strategy.dry_run()
        choice = self.strategy.choose(X, y, stream)
        plan = self._expanded(choice.plan or self.strategy.plan())
        return replace(choice, best=self.members[choice.best], plan=plan)

    def _expanded(self, plan):
        """Return the plan with the candidates that are not considered, and with the reason."""
        candidates, members = self.problem.candidates, np.array(self.members)
        considered = np.zeros(len(candidates), dtype=bool)
        considered[members] = True

        def column(values):
            full = np.full(len(candidates), np.nan)
            full[members] = values
            return full

        return replace(
            plan,
            params=tuple([candidate.params for candidate in candidates]),
            considered=considered,
            training=column(plan.training),
            span=column(plan.span),
            sensitivity=column(plan.sensitivity),
            noise_scale=column(plan.noise_scale),
            messages=(f'strategy="auto" takes {plan.strategy}: {self.reason}.', *plan.messages),
        )


def choose_strategy(problem):
    """Return a strategy for some of the candidates, the share of epsilon that decides these, and why.

    They are those of `_shortlist`, or of `FirstCandidate` the first. The reason is the rest of a
    sentence.
    """
    if len(problem.candidates) == 1:
        return FirstCandidate(problem), None, "there is one candidate"
    if post_processing.applies(problem.candidates) and math.isfinite(problem.score.sensitivity(1)):
        reason = "all candidates post-process one release, so comparing them costs no training"
        return PostProcessing(problem), None, reason
    if data_independent.applies(problem.candidates):
        reason = "only alpha varies, and no choice that pays for looking at the records was better"
        return DataIndependent(problem), None, reason
    members = _shortlist(problem, 1 - SHARE)
    bound, _ = _attempt(OptimalRisk, problem.restricted(members))
    if bound is None:
        return _by_scores(problem)
    if bound.reach is None:
        return _first(problem, 1.0, TOO_SHORT)
    reason = (
        f"{len(members)} candidates differ in more than alpha, and the least mean loss that each can "
        "reach depends little on any one record"
    )
    return bound, 1 - SHARE, reason


def _shortlist(problem, share):
    """Return the candidates that are left when the public rule has chosen alpha for each rest.

    It is for models that are trained with a `share` of epsilon; None leaves all.
    """
    if share is None or not data_independent.has_costs(problem.candidates):
        return list(range(len(problem.candidates)))
    return data_independent.best_by_rule(problem, share * problem.epsilon)


def _by_scores(problem):
    """Choose among strategies that train every candidate, as `choose_strategy` does."""
    share = 0.5  # about what is left for a model
    few = problem.restricted(_shortlist(problem, share))
    stability, no_stability = _attempt(Stability, few)
    if stability is not None:
        plan = stability.plan()
        if plan.minimum_detectable_difference <= USEFUL * plan.stake:
            reason = "one record hardly moves the scores of models trained with fixed noise"
            return stability, share, reason
    stopping, no_stopping = _attempt(RandomStopping, few)
    if stopping is not None:
        plan = stopping.plan()
        if plan.minimum_detectable_difference > UNDERPOWERED * plan.stake:
            return _first(problem, share, "a choice on so few held-out records is underpowered")
        reason = "models that may be of any kind can be compared on held-out records only"
        return stopping, share, reason
    if stability is None:
        split, no_split = _attempt(BudgetSplit, few)
        if split is not None:
            return split, share, "models with a delta of their own can only share the loss"
        raise CertificateError(
            "No strategy serves these candidates with this scoring: "
            f"stability: {no_stability} random_stopping: {no_stopping} budget_split: {no_split}"
        )
    if plan.minimum_detectable_difference > HOPELESS * plan.stake:
        reason = "a choice by scores would be left to chance, and cost half of the loss"
        return _first(problem, share, reason)
    reason = "no other strategy has a bound for this score"
    if plan.minimum_detectable_difference > UNDERPOWERED * plan.stake:
        reason += ", and a choice as weak as this one was still better than one by chance"
    return stability, share, reason


def _first(problem, share, reason):
    return FirstCandidate(problem.restricted(_preferred(problem, share))), share, reason


def _preferred(problem, share):
    """Return the candidate that is taken where nothing is chosen: by the public rule, or the first."""
    candidates = problem.candidates
    if len(candidates) > 1 and data_independent.has_rule(candidates):
        # the rule for widths is for a model that is trained with the whole epsilon, as this one is
        share = share if data_independent.has_costs(candidates) else 1.0
        return data_independent.best_by_rule(problem, share * problem.epsilon)[:1]
    return _shortlist(problem, share)[:1]


def _attempt(kind, problem):
    """Return the strategy and None, or None and why it does not serve."""
    try:
        strategy = kind(problem)
        strategy.dry_run()
    except CertificateError as refusal:
        return None, refusal
    return strategy, None

"""Selection by stability: all candidates on all splits, with noise that stays the same."""

from dataclasses import replace

import numpy as np

from ...base.capabilities import Certified, require
from ...base.estimator import Trial
from ...mechanisms import noisy_argmax
from ...noise.generators import search_stream
from ...records.public_shape import PublicShape
from ..exact_scores import exact_scores
from ..plan import describe
from . import data_independent, post_processing
from .stability_plan import make_plan
from .strategy import Choice, Strategy

# Shares of epsilon for the choice. Where the public rule decides all that varies, records only
# have to overrule it, and what is left for the model counts for more. Found by experiment.
DECIDED, WIDTHS, OPEN = 0.1, 0.3, 0.5
# What the public rule's alpha is ahead of other alphas, in minimum detectable differences, and its width
# of other widths, of which it knows less.
HEAD_START, WIDTH_HEAD_START = 2.0, 1.0


class Stability(Strategy):
    """Choose by a noisy argmax that hides the certified amount by which one record moves each score.

    Chaudhuri and Vinterbo 2013, algorithms 1 and 2, and a head start for the regularisation or the
    width that the public rule prefers. It reads public numbers only, so it costs nothing.
    """

    name = "stability"
    takes_groups = True

    @classmethod
    def of(cls, problem):
        if post_processing.applies(problem.candidates):
            return post_processing.PostProcessing(problem)
        return cls(problem)

    def dry_run(self):
        """`prepare` asks for certificates, which refuse what they do not hold for."""

    def prepare(self):
        problem = self.problem
        self.head_start, fraction = self._head_start_and_fraction()
        self.selection_epsilon = problem.selection_epsilon(fraction)
        self.training_epsilon = float(problem.epsilon) - self.selection_epsilon
        for candidate in problem.candidates:
            require(Certified, candidate.model, "strategy='stability'", "use 'random_stopping'")
            # dummy shapes: refuses bad parameters, and pairs without a certificate, early
            trial = Trial(candidate.model, self.training_epsilon)
            trial.certificate(problem.score, PublicShape(1000, 1), failure_probability=0.5)
        self.preferred = self._preferred()

    def plan(self):
        # the tail bounds all noise samples, so that any will do
        return self._plan(self._trials(search_stream(0)), tail=0.5)

    def choose(self, X, y, stream):
        problem = self.problem
        trials = self._trials(stream)
        scores = exact_scores(
            problem.candidates,
            trials,
            problem.score,
            X,
            y,
            problem.splits,
            progress=problem.progress,
            **problem.jobs,
        )
        k = len(problem.candidates)
        tail = problem.delta / (k * problem.n_noise_samples) if problem.delta > 0 else None
        plan = self._plan(trials, tail)
        if k == 1:
            return Choice(0, plan=plan)
        best = noisy_argmax(
            scores + self._head_starts(plan),
            plan.sensitivity,
            self.selection_epsilon,
            stream.child("selection").for_release(),
        )
        loss = self.choice_loss(self.selection_epsilon, problem.delta)
        return Choice(best, [loss], plan=plan)

    def _trials(self, stream):
        return [
            [
                Trial(candidate.model, self.training_epsilon, stream.child("draw", i, j))
                for j in range(self.problem.n_noise_samples)
            ]
            for i, candidate in enumerate(self.problem.candidates)
        ]

    def _plan(self, trials, tail):
        plan = make_plan(self, trials, tail)
        if not self.preferred:
            return plan
        names = "; ".join(describe(plan.params[i]) for i in self.preferred)
        ruled = self.problem.candidates[0].model.ruled_param
        said = (
            "Where scores cannot be distinguished, the public rule decides: it prefers "
            f"{names}, and another {ruled} is taken only if its score is better by about "
            f"{self.head_start * plan.minimum_detectable_difference:.2g}."
        )
        return replace(plan, messages=(*plan.messages, said))

    def _head_start_and_fraction(self):
        """Return what the preferred candidates are ahead, and the share of epsilon for the choice."""
        candidates = self.problem.candidates
        if data_independent.has_costs(candidates):
            return HEAD_START, DECIDED if data_independent.applies(candidates) else OPEN
        return WIDTH_HEAD_START, WIDTHS if data_independent.has_rule(candidates) else OPEN

    def _preferred(self):
        """Return the candidates that the public rule prefers; none if that makes no difference."""
        if not data_independent.has_rule(self.problem.candidates):
            return []
        best = data_independent.best_by_rule(self.problem, self.training_epsilon)
        return best if len(best) < len(self.problem.candidates) else []

    def _head_starts(self, plan):
        starts = np.zeros(len(plan.params))
        starts[self.preferred] = self.head_start * plan.minimum_detectable_difference
        return starts

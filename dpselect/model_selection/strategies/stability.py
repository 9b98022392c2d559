"""Selection by stability: all candidates on all splits, with noise that stays the same."""

from ...exceptions import CertificateError
from ...mechanisms import noisy_argmax
from ...noise import root_stream
from ..evaluation import exact_scores
from .base import Choice, Strategy
from .stability_plan import make_plan


class Stability(Strategy):
    """One record moves each candidate's score by a certified amount, and a noisy argmax hides it.

    Chaudhuri and Vinterbo 2013, algorithms 1 and 2.
    """

    name = "stability"

    def prepare(self):
        problem = self.problem
        self.epsilon = problem.selection_epsilon(0.5)
        self.training_epsilon = float(problem.epsilon) - self.epsilon
        for candidate in problem.candidates:
            if not hasattr(candidate.model, "stability_certificate"):
                raise CertificateError(
                    "strategy='stability' needs models with the method stability_certificate, and "
                    f"{type(candidate.model).__name__} has none; use 'random_stopping'."
                )
            # made-up shapes: refuses bad parameters, and pairs without a certificate, early
            candidate.model.set_params(epsilon=self.training_epsilon).stability_certificate(
                problem.score, 1000, 1, failure_probability=0.5
            )

    def plan(self):
        # the tail bounds all draws, so that any will do
        return self._plan(self._draws(root_stream(0)), tail=0.5)

    def choose(self, X, y, stream):
        problem = self.problem
        draws = self._draws(stream)
        scores = exact_scores(
            problem.candidates, draws, problem.score, X, y, problem.splits, **problem.jobs
        )
        k = len(problem.candidates)
        tail = problem.delta / (k * problem.n_draws) if problem.delta > 0 else None
        plan = self._plan(draws, tail)
        if k == 1:
            return Choice(0, plan, [], training_epsilon=self.training_epsilon)
        best = noisy_argmax(scores, plan.sensitivity, self.epsilon, stream.child("selection"))
        loss = self.choice_loss(self.epsilon, problem.delta)
        return Choice(best, plan, [loss], training_epsilon=self.training_epsilon)

    def _draws(self, stream):
        return [
            [stream.child("draw", i, j) for j in range(self.problem.n_draws)]
            for i in range(len(self.problem.candidates))
        ]

    def _plan(self, draws, tail):
        problem = self.problem
        return make_plan(
            problem.candidates, draws, problem.score, problem.splits, problem.n_samples,
            problem.n_features, epsilon=problem.epsilon, selection_epsilon=self.epsilon, tail=tail,
        )

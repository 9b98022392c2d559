"""Random stopping: a random number of random candidates, of which the best one is released."""

import math
import warnings

from ...exceptions import CertificateError
from ...mechanisms.random_stopping import random_stopping, run_epsilon
from ...mechanisms.stopping_laws import logarithmic
from ...noise import as_generator, grid_laplace
from ...privacy import KINDS, PrivacyLoss
from .base import Choice
from .held_out import HeldOut

# mean number of runs for each candidate
RUNS = 3


class RandomStopping(HeldOut):
    """Every run trains a candidate on one part and scores it with noise on the other.

    A run is private, model and score together; the best of a random number of runs costs
    less than twice a run, and how many runs there were is never told. Liu and Talwar 2019;
    Papernot and Steinke 2022.
    """

    name = "random_stopping"

    def prepare(self):
        super().prepare()
        if any(self.deltas):
            raise CertificateError(
                "strategy='random_stopping' needs models with delta=0, because its theorem is about "
                f"pure privacy, and a candidate has delta={max(self.deltas):.4g}; write delta=0.0, or "
                "use strategy='stability', or 'budget_split'."
            )
        self.law = logarithmic(float(max(2, RUNS * len(self.problem.candidates))))
        self.training_epsilon = run_epsilon(float(self.problem.epsilon), self.law)
        self.scale = self.sensitivity / self.training_epsilon

    def dry_run_candidate(self, candidate):
        model = super().dry_run_candidate(candidate)
        self.check_run(model)
        return model

    def check_run(self, model):
        """Refuse a model that did not keep to what a run may spend; looks at its loss only."""
        loss = model.privacy_
        if loss.delta > 0 or loss.kind != KINDS[0] or loss.epsilon > self.training_epsilon:
            raise CertificateError(
                f"strategy='random_stopping' needs models with delta=0 and the epsilon that they "
                f"are given, and {type(model).__name__} states (epsilon = {loss.epsilon:.4g}, "
                f"delta = {loss.delta:.4g}); write delta=0.0, or use strategy='budget_split'."
            )

    def plan(self):
        # the largest of r two-sided noise samples stays under ln(2 r) with probability 1/2 or more,
        # and the score of the best run and that of the chosen one may both be off by it
        blur = 2 * self.scale * math.log(2 * self.law.mean)
        said = (
            f"random_stopping: about {self.law.mean:.0f} runs, each with epsilon "
            f"{self.training_epsilon:.3g} for the model on {len(self.train)} records and for its "
            f"score on {len(self.test)} others.",
            self.problem.score.indistinguishable(blur),
        )
        return self.held_out_plan(said, self.scale, blur)

    def choose(self, X, y, stream):
        problem = self.problem

        def run(i, noise):
            noise = noise.for_release()
            state = noise.child("model") if problem.seeded else None
            rows = problem.candidates[i].transform(X)
            with warnings.catch_warnings():  # so many warnings as runs would tell how many there were
                warnings.simplefilter("ignore")
                model = self.fit(i, rows, y, self.train, self.training_epsilon, state)
            self.check_run(model)
            score = self.score(model, rows, y)
            if self.scale > 0:
                generator = as_generator(noise.child("score"))
                score = float(grid_laplace(generator, score, self.scale, self.training_epsilon))
            return score, model

        best, model = random_stopping(
            run, len(problem.candidates), self.law, stream.child("selection")
        )
        loss = PrivacyLoss(
            float(problem.epsilon), seeded=problem.seeded, adjacency=problem.adjacency,
            label=f"the best of a random number of runs of {len(problem.candidates)} candidates",
        )
        model.privacy_ = loss
        return Choice(best, [loss], problem.candidates[best].with_steps(model))

"""Random stopping: a random number of random candidates, of which the best one is released."""

import math
import warnings

from ...accounting.privacy_loss import KINDS, Adjacency, PrivacyLoss
from ...exceptions import CertificateError
from ...mechanisms.random_stopping import random_stopping, run_delta, run_epsilon
from ...mechanisms.stopping_laws import geometric
from ...noise import as_generator, grid_laplace
from ..candidates import parameters
from .held_out import HeldOut
from .strategy import Choice

# Mean number of runs for each candidate. Found by experiment, as was the law: with 3, or with the
# logarithmic law, whose runs have half of epsilon in place of a third, the best candidate is missed
# too often.
RUNS = 10


class RandomStopping(HeldOut):
    """Every run trains a candidate on one part and scores it with noise on the other.

    A run is private, model and score together; the best of a random number of runs costs
    less than three times a run, and how many runs there were is never told. A delta of the search is
    divided among the runs. Liu and Talwar 2019; Papernot and Steinke 2022.
    """

    name = "random_stopping"

    def prepare(self):
        super().prepare()
        problem, self.run_delta = self.problem, 0.0
        self.law = geometric(float(RUNS * len(problem.candidates)))
        if any(self.deltas):
            if problem.delta == 0:
                raise CertificateError(
                    "strategy='random_stopping' divides the delta of the search among its runs, and it "
                    f"has none while a model has delta={max(self.deltas):.4g}; write delta=1e-6 for the "
                    "search, or delta=0.0 for the models, or use 'stability' or 'budget_split'."
                )
            self.run_delta = run_delta(float(problem.delta), self.law)
        self.training_epsilon = run_epsilon(float(problem.epsilon), self.law, self.run_delta)
        self.scale = self.sensitivity / self.training_epsilon

    def delta_of_models(self):
        return 0.0  # it is the search's

    def model(self, i):
        model = super().model(i)
        return model.set_params(delta=self.run_delta) if self.deltas[i] else model

    def dry_run_candidate(self, candidate):
        model = super().dry_run_candidate(candidate)
        # dummy rows are nobody's
        self.check_run(model, Adjacency.REPLACE_RECORD)
        return model

    def check_run(self, model, adjacency):
        """Refuse a model that did not keep to what a run may spend; looks at its loss only."""
        loss, delta = model.privacy_, float(parameters(model).get("delta", 0.0))
        if loss.delta > delta or loss.kind != KINDS[0] or loss.epsilon > self.training_epsilon:
            raise CertificateError(
                f"strategy='random_stopping' needs models with the epsilon and delta that they are "
                f"given, and {type(model).__name__} states (epsilon = {loss.epsilon:.4g}, "
                f"delta = {loss.delta:.4g}); write delta=0.0, or use strategy='budget_split'."
            )
        if loss.adjacency != adjacency:
            raise CertificateError(
                f"strategy='random_stopping' states its loss for {str(adjacency)!r}, and "
                f"{type(model).__name__} for {str(loss.adjacency)!r}, which may be less; declare it as "
                "a PrivateModel, with a conversion."
            )

    def plan(self):
        # the largest of r two-sided noise samples stays under ln(2 r) with probability 1/2 or more,
        # and the score of the best run and that of the chosen one may both be off by it
        blur = 2 * self.scale * math.log(2 * self.law.mean)
        delta = f" and delta {self.run_delta:.3g}" if self.run_delta else ""
        said = (
            (
                f"random_stopping: about {self.law.mean:.0f} runs, each with epsilon "
                f"{self.training_epsilon:.3g}{delta} for the model on {len(self.train)} records and for "
                f"its score on {len(self.test)} others."
            ),
            self.problem.score.indistinguishable(blur),
        )
        return self.held_out_plan(said, self.scale, blur)

    def choose(self, X, y, stream):
        problem = self.problem

        def run(i, noise):
            state = noise.child("model") if problem.seeded else None
            rows = problem.candidates[i].transform(X)
            with warnings.catch_warnings():  # so many warnings as runs would tell how many there were
                warnings.simplefilter("ignore")
                model = self.fit(i, rows, y, self.train, self.training_epsilon, state)
            self.check_run(model, problem.adjacency)
            score = self.score(model, rows, y)
            if self.scale > 0:
                generator = as_generator(noise.child("score"))
                score = float(grid_laplace(generator, score, self.scale, self.training_epsilon))
            return score, model

        best, model = random_stopping(
            run, len(problem.candidates), self.law, stream.child("selection").for_release()
        )
        loss = PrivacyLoss(
            float(problem.epsilon),
            float(problem.delta) if self.run_delta else 0.0,
            seeded=problem.seeded or model.privacy_.seeded,
            adjacency=problem.adjacency,
            label=f"the best of a random number of runs of {len(problem.candidates)} candidates",
        )
        model.privacy_ = loss
        return Choice(best, [loss], problem.candidates[best].with_steps(model))

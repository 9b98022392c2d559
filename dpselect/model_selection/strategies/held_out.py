"""Strategies that train on one part of the records and choose on another.

No record is in both, so the losses of the models and of the choice do not add: the larger one
counts. Certificates are not used, and the score only has to be bounded: accuracy will do.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from sklearn.base import clone

from ...accounting.privacy_loss import KINDS, PrivacyLoss
from ...accounting.zcdp import ROUNDING, pure_to_zcdp, zcdp_budget, zcdp_to_epsilon
from ...config import warn_caller
from ...exceptions import CertificateError, PrivacyLeakWarning
from ...mechanisms import exponential_mechanism
from ...mechanisms.selection import gumbel_choice
from ...noise import as_generator
from ...records.records import score_on, take_part
from ..candidates import parameters, places_by
from ..final_fit import fit_for_release, release_state
from ..plan import minimum_detectable_difference
from ..splits import disjoint_parts
from .strategy import Choice, Strategy


class HeldOut(Strategy):
    """The first split says which records train and which ones choose."""

    takes_groups = True

    def prepare(self):
        score = self.problem.score
        if not math.isfinite(score.sensitivity(1)):
            raise CertificateError(
                f"strategy={self.name!r} needs a score to which one record adds a bounded amount, "
                f"and {type(score).__name__} has no such bound; use 'brier', 'ramp', 'accuracy', "
                "'roc_auc' or 'clipped_squared_error'."
            )
        self.train, self.test = disjoint_parts(self.problem.splits)
        self.selection_epsilon, self.training_size = self.problem.epsilon, len(self.train)
        self.sensitivity = score.sensitivity(len(self.test))

    def plan(self):
        scale = 2 * self.sensitivity / self.problem.epsilon
        blur = minimum_detectable_difference(np.full(len(self.problem.candidates), scale))
        said = (
            (
                f"{self.name}: the chosen model is trained with epsilon {self.training_epsilon:.3g} on "
                f"{self.training_size} records; the choice is made on {len(self.test)} others."
            ),
            self.problem.score.indistinguishable(blur),
        )
        return self.held_out_plan(said, scale, blur)

    def held_out_plan(self, messages, scale, blur):
        """Return the plan of a choice by scores on the held-out records."""
        score = self.problem.score
        return self.make_plan(
            messages,
            sensitivity=self.sensitivity,
            scales=scale,
            span=score.compared_width,
            minimum_detectable_difference=blur,
            stake=score.stake or score.compared_width,
        )

    def fit(self, i, rows, y, part, epsilon, state):
        """Return candidate i's model, fitted on a part of the rows that its steps give."""
        model = fit_for_release(self.model(i), epsilon, state, *take_part(rows, y, part))
        if self.problem.learned:
            # what was learned may have decided whether its delta is used
            loss, delta = model.privacy_, float(parameters(model).get("delta", 0.0))
            model.privacy_ = replace(loss, delta=max(loss.delta, delta), event=None)
        return model

    def model(self, i):
        """Return candidate i's model, to be fitted."""
        return clone(self.problem.candidates[i].model)

    def parts(self, stream):
        """Return the records that each candidate is trained on."""
        return [self.train] * len(self.problem.candidates)

    def fit_and_score(self, X, y, stream):
        """Train each candidate on its part, and return the models and their exact scores."""
        candidates, parts = self.problem.candidates, self.parts(stream)
        models, scores = [None] * len(candidates), [None] * len(candidates)
        groups = places_by(candidates, lambda candidate: candidate.steps_key)
        for members in self.problem.progress.over(groups, "group of candidates"):
            rows = candidates[members[0]].transform(X)
            # one by one: what a model costs is what its own `fit` states
            for i in members:
                state = self.release_state(stream, i)
                models[i] = self.fit(i, rows, y, parts[i], self.training_epsilon, state)
                scores[i] = self.score(models[i], rows, y)
        return models, scores

    def score(self, model, rows, y):
        return score_on(self.problem.score, model, *take_part(rows, y, self.test))

    def release_state(self, stream, *path):
        return release_state(stream, self.problem.seeded, *path)


class TrainedApart(HeldOut):
    """Every candidate is trained privately; an exponential mechanism takes one of the models."""

    def choice_event(self):
        epsilon = self.problem.epsilon
        return gumbel_choice(epsilon) if epsilon < math.inf else None

    def choose(self, X, y, stream):
        problem = self.problem
        models, scores = self.fit_and_score(X, y, stream)
        best = exponential_mechanism(
            scores, self.sensitivity, problem.epsilon, stream.child("selection").for_release()
        )
        loss = PrivacyLoss.parallel(
            [
                self.training_loss(models),
                replace(self.choice_loss(problem.epsilon), event=self.choice_event()),
            ],
            label="models and choice, on disjoint parts",
        )
        # the choice looked at its noise: it is not a model that its own fit alone released
        models[best].privacy_ = loss
        return Choice(best, [loss], problem.candidates[best].with_steps(models[best]))


class BudgetSplit(TrainedApart):
    """Train all candidates on the same records, so that they share the privacy loss.

    Chaudhuri and Vinterbo 2013, section 5. With delta the shares are those of zero-concentrated
    differential privacy, which fall with sqrt(k) only.
    """

    name = "budget_split"

    def prepare(self):
        super().prepare()
        problem, k = self.problem, len(self.problem.candidates)
        self.training_epsilon = problem.epsilon / k
        # by the last bit
        if k * Fraction(float(self.training_epsilon)) > Fraction(float(problem.epsilon)):
            self.training_epsilon = math.nextafter(self.training_epsilon, 0.0)
        # a delta of the models' own is no zero-concentrated differential privacy
        if problem.delta > 0 and not any(self.deltas):
            shared = math.sqrt(2 * zcdp_budget(problem.epsilon, problem.delta) / k)
            shared *= 1 - ROUNDING
            self.training_epsilon = max(self.training_epsilon, shared)

    def delta_of_models(self):
        return min(1.0, math.fsum(self.deltas))

    def training_loss(self, models):
        problem, losses = self.problem, [model.privacy_ for model in models]
        added = PrivacyLoss.sequential(losses, label="models")
        # what is known of the models is that they are purely private, and no more
        if problem.delta == 0 or added.delta > 0 or added.kind != KINDS[0]:
            return added
        rho = math.fsum(pure_to_zcdp(loss.epsilon) for loss in losses)
        together = zcdp_to_epsilon(rho, problem.delta)
        if added.epsilon <= max(problem.epsilon, together):
            return added
        return PrivacyLoss(
            max(problem.epsilon, together),
            problem.delta,
            seeded=added.seeded,
            adjacency=added.adjacency,
            label=f"{len(models)} models of epsilon {self.training_epsilon:.4g} each",
        )


class DataSplit(TrainedApart):
    """Each candidate is trained on records of its own, with the whole privacy loss.

    Chaudhuri, Monteleoni and Sarwate 2011, section 6.
    """

    name = "data_split"

    def prepare(self):
        super().prepare()
        self.training_size = len(self.train) // len(self.problem.candidates)
        if len(self.train) < len(self.problem.candidates):
            raise ValueError(
                f"strategy='data_split' cuts the {len(self.train)} training records into "
                f"{len(self.problem.candidates)} parts, of which some would be empty; use fewer "
                "candidates."
            )

    def parts(self, stream):
        # files that are sorted by class are common
        shuffled = as_generator(stream.child("parts")).permutation(self.train)
        return np.array_split(shuffled, len(self.problem.candidates))

    def training_loss(self, models):
        return PrivacyLoss.parallel([model.privacy_ for model in models], label="models")


class Control(HeldOut):
    """The best exact score decides. Not private: a yardstick for the others."""

    name = "control"

    def prepare(self):
        super().prepare()
        self.selection_epsilon = math.inf

    def plan(self):
        said = (f"{self.name}: an exact choice, which no privacy loss covers.",)
        return self.held_out_plan(said, 0.0, 0.0)

    def at_most(self):
        return [PrivacyLoss(math.inf, label="an exact choice", adjacency=self.problem.adjacency)]

    def choose(self, X, y, stream):
        warn_caller(
            "strategy='control' chooses by exact scores, which no privacy loss covers; use it to "
            "compare strategies on public records only.",
            PrivacyLeakWarning,
        )
        models, scores = self.fit_and_score(X, y, stream)
        best = int(np.argmax(scores))
        loss = PrivacyLoss(
            math.inf,
            label="an exact choice",
            seeded=self.problem.seeded,
            adjacency=self.problem.adjacency,
        )
        models[best].privacy_ = loss
        model = self.problem.candidates[best].with_steps(models[best])
        return Choice(best, [loss], model)

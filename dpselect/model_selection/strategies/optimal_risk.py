"""Selection by risk bounds: the least risk that any model could reach, and what noise will add."""

import numpy as np

from ...base.capabilities import BoundsRisk, require
from ...base.certificates import check_units, public_reach, select_by_risk_bound
from ...base.estimator import Trial
from ...mechanisms import exponential_noise_scales
from ..candidates import places_by
from ..plan import minimum_detectable_difference
from .strategy import Choice, Strategy

# share of epsilon for the choice
SHARE = 0.1
TOO_SHORT = "a choice could only compare models that say little"


class OptimalRisk(Strategy):
    """Candidates are judged by their optimal values, and only the winner is trained.

    It takes no validation records. Where the noise of the choice would leave nothing to see, the
    first candidate is trained with the whole privacy loss.
    """

    name = "optimal_risk"
    takes_groups = True
    compares_scores = False
    takes_delta = False

    def prepare(self):
        problem = self.problem
        for candidate in problem.candidates:
            require(
                BoundsRisk,
                candidate.model,
                f"strategy={self.name!r}",
                "use 'stability' or 'random_stopping'",
            )
        self.selection_epsilon = problem.selection_epsilon(SHARE)
        k = len(problem.candidates)
        self.reach = public_reach(problem.n_samples, k, self.selection_epsilon) if k > 1 else None
        if self.reach is None:
            self.selection_epsilon = 0.0
        self.training_epsilon = float(problem.epsilon) - self.selection_epsilon
        self.bounds = [
            Trial(candidate.model, self.training_epsilon)
            .calibration(candidate.shape(problem.n_samples))
            .risk_bound(self.reach or 1.0)
            for candidate in problem.candidates
        ]
        check_units(self.bounds)

    def dry_run(self):
        """The bounds refuse what they do not hold for."""

    def plan(self):
        problem = self.problem
        sensitivity = np.array([bound.sensitivity for bound in self.bounds])
        if self.reach is None:
            said = ("One candidate: nothing is selected, and the whole epsilon goes to training.",)
            if len(self.problem.candidates) > 1:
                said = (
                    (
                        f"The first candidate is trained with the whole epsilon: {TOO_SHORT}; use more "
                        "records, a larger epsilon, or fewer candidates."
                    ),
                )
            return self.make_plan(said)
        scales = exponential_noise_scales(sensitivity, self.selection_epsilon)
        blur = minimum_detectable_difference(scales)
        said = (
            (
                "Candidates are compared by the least mean loss that each can reach, not by a score; "
                f"the noise hides differences below about {blur:.2g}. Only the chosen candidate is "
                "trained, on all records."
            ),
        )
        return self.make_plan(
            said,
            sensitivity=sensitivity,
            scales=scales,
            span=problem.n_samples * sensitivity,
            minimum_detectable_difference=blur,
            stake=self.bounds[0].stake,
        )

    def choose(self, X, y, stream):
        if self.reach is None:
            return Choice(0)
        epsilon, noise = self.selection_epsilon, stream.child("selection").for_release()
        best = select_by_risk_bound(self._values(X, y), self.bounds, epsilon, noise)
        return Choice(best, [self.choice_loss(epsilon)])

    def _values(self, X, y):
        """Return the optimal values; candidates that see the same rows are solved together."""
        candidates = self.problem.candidates
        values = np.empty(len(candidates))
        groups = places_by(candidates, lambda c: (c.steps_key, type(c.model)))
        for members in self.problem.progress.over(groups, "group of candidates"):
            first, rows = candidates[members[0]], candidates[members[0]].transform(X)
            trials = [Trial(candidates[i].model, self.training_epsilon) for i in members]
            values[members] = type(first.model).optimal_values(trials, rows, y, self.reach)
        return values

"""The public rule: the regularisation is a function of public numbers, and nothing is selected."""


import numpy as np

from ...exceptions import CertificateError
from .base import Choice, Strategy


class PublicRule(Strategy):
    """Of candidates that differ in their regularisation only, the one that the rule prefers.

    Each model has a `regularisation_cost`, the least of which is best for data of ordinary
    difficulty. The whole privacy loss trains the winner.
    """

    name = "public_rule"

    def prepare(self):
        if not applies(self.problem.candidates):
            raise CertificateError(
                "strategy='public_rule' needs candidates that differ in alpha only, and models with "
                "the method regularisation_cost, such as DPLogisticRegression; use 'risk_bound' or "
                "'stability'."
            )
        problem = self.problem
        self.costs = np.array([
            candidate.model.set_params(epsilon=float(problem.epsilon)).regularisation_cost(
                problem.n_samples, candidate.n_features, candidate.n_problems
            )
            for candidate in problem.candidates
        ])
        self.best = int(np.argmin(self.costs))

    def plan(self):
        said = ("alpha follows from public numbers, and the whole epsilon goes to training: no "
                "private choice of alpha was better on average on the data it was tried on.",)
        return self.bare_plan(self.problem.epsilon, 0.0, 0.0, 0.0, said)

    def choose(self, X, y, stream):
        return Choice(self.best, self.plan(), [], training_epsilon=self.problem.epsilon)


def applies(candidates):
    """Tell whether candidates differ in the regularisation of one kind of model only."""
    return all(
        hasattr(candidate.model, "regularisation_cost")
        and candidate.belongs_to_model(name)
        and name.rpartition("__")[2] == "alpha"
        for candidate in candidates
        for name in candidate.params
    ) and hasattr(candidates[0].model, "regularisation_cost")

"""The public rule: the regularisation is a function of public numbers, and nothing is selected."""

from ...capabilities import RanksRegularisation
from ...exceptions import CertificateError
from ..candidates import places_by
from .base import Choice, Strategy
from .dry_run import needs_fit


class DataIndependent(Strategy):
    """Of candidates that differ in their regularisation only, the one that the rule prefers.

    Each model has a `regularisation_cost`, the least of which is best for data of ordinary
    difficulty. The whole privacy loss trains the winner.
    """

    name = "data_independent"
    compares_scores = False
    said = (
        "alpha follows from public numbers, and the whole epsilon goes to training: no private "
        "choice of alpha was better on average on the data it was tried on.",
    )

    def prepare(self):
        if not applies(self.problem.candidates):
            raise CertificateError(
                "strategy='data_independent' needs candidates that differ in alpha only, and models "
                "with the method regularisation_cost, such as DPLogisticRegression; use "
                "'optimal_risk' or 'stability'."
            )
        self.best = best_regularisations(self.problem, float(self.problem.epsilon))[0]

    def dry_run(self):
        """The rule has asked all calibrations, which refuse what they do not hold for."""
        for candidate in needs_fit(self.problem.candidates):
            self.dry_run_candidate(candidate)

    def choose(self, X, y, stream):
        return Choice(self.best)


def applies(candidates):
    """Tell whether candidates differ in the regularisation of one kind of model only."""
    return has_costs(candidates) and len({_but_for_alpha(c) for c in candidates}) == 1


def has_costs(candidates):
    """Tell whether the public rule is known for all models."""
    models = {type(candidate.model): candidate.model for candidate in candidates}
    return all(isinstance(model, RanksRegularisation) for model in models.values())


def best_regularisations(problem, epsilon):
    """Return the candidate that the rule prefers for each set of parameters other than alpha.

    They are in the order of the grid; `epsilon` is what the model is trained with.
    """
    return [
        min(members, key=lambda i: _cost(problem, problem.candidates[i], epsilon))
        for members in places_by(problem.candidates, _but_for_alpha)
    ]


def _but_for_alpha(candidate):
    # values of a grid need not be comparable, and one value is one object in all candidates
    return tuple(
        (name, id(value))
        for name, value in sorted(candidate.params.items())
        if not (candidate.belongs_to_model(name) and name.rpartition("__")[2] == "alpha")
    )


def _cost(problem, candidate, epsilon):
    shape = candidate.shape(problem.n_samples)
    return candidate.model.calibration(shape, epsilon).regularisation_cost()

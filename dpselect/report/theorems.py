"""Find the theorem of the documentation that proves a release private, by its loss."""

import re
from dataclasses import dataclass

# pages of doc/mechanisms, and their titles
PAGES = {
    "accuracy_first": "Accuracy first",
    "coefficients": "Intervals of coefficients",
    "density": "Histogram density",
    "evaluation": "Evaluation",
    "gaussian_objective": "Gaussian noise in the objective",
    "first_releases": "First releases",
    "huber": "Robust regression",
    "other_models": "Models of other libraries",
    "linear_classifiers": "Linear classifiers: output and objective noise",
    "persons": "A person, not a row",
    "poisson": "Poisson regression",
    "private_bounds": "Private bounds",
    "reusable_holdout": "Reusable holdout",
    "ridge": "Ridge regression: noise in the sums, the objective or the solution",
    "risk_bound": "Choosing among models by the risk",
    "selection_strategies": "Strategies of a private search",
    "stability_selection": "Choosing among classifiers by stable validation",
}

ACCOUNT = ".*, by the account of .*"
LINEAR = "DP(Logistic|LinearSVC|Poisson|Huber).*: coefficients by "


@dataclass(frozen=True)
class Proof:
    """Theorems on a page, and the releases that they cover.

    Attributes
    ----------
    label : str
        Pattern of the whole `label` of the release's loss.
    where, page : str
        Place on a page, and a key of PAGES.
    delta : bool
        Whether they are about releases with a delta or about those without.
    strategy : str
        Pattern of the strategy of the search that made the release.
    persons : bool
        Whether they are about all rows of a person or about a record.
    """

    label: str
    where: str
    page: str
    delta: bool = False
    strategy: str = ".*"
    persons: bool = False

    def covers(self, loss, strategy):
        return (
            re.fullmatch(self.label, loss.label) is not None
            and self.delta == (loss.delta > 0)
            and self.persons == (loss.adjacency.unit == "person")
            and re.fullmatch(self.strategy, strategy) is not None
        )

    def __str__(self):
        return f'{self.where} of "{PAGES[self.page]}"'


PROOFS = (
    Proof("DPLogisticRegression: .* by objective perturbation", "Theorems 2 to 5", "linear_classifiers"),
    Proof("DPLinearSVC: .* by objective perturbation", "Theorems 2 to 5", "linear_classifiers"),
    Proof("DPL.*: .* by output perturbation", "Theorems 1 and 5", "linear_classifiers"),
    Proof("DPLog.*: .* by objective perturbation", "Theorems 1 to 3 and 5", "gaussian_objective", True),
    Proof("DPLin.*: .* by objective perturbation", "Theorems 3 and 5", "gaussian_objective", True),
    Proof(LINEAR + "objective perturbation", "Theorems 4 and 5", "gaussian_objective", True),
    Proof(LINEAR + "output perturbation", "Section Output perturbation", "gaussian_objective", True),
    Proof("DPLog.*: .* by objective perturbation", "Theorems 2b and 2c", "persons", True, persons=True),
    Proof(LINEAR + "objective perturbation", "Theorems 2b and 2d", "persons", True, persons=True),
    Proof(LINEAR + "output perturbation", "Theorem 1", "persons", True, persons=True),
    Proof("DPHuber.*: .* by objective perturbation", "Theorem 2a", "persons", persons=True),
    Proof(LINEAR + "objective perturbation", "Theorem 2", "persons", persons=True),
    Proof(LINEAR + "output perturbation", "Theorem 1", "persons", persons=True),
    *(Proof("DPRidge: .*", "Theorem 3", "persons", delta, persons=True) for delta in (False, True)),
    Proof("(DPHistogramDensity|DPBoundsScaler): .*", "Theorem 4", "persons", persons=True),
    Proof("DPBoundsScaler: .*", "Theorem 4", "persons", True, persons=True),
    Proof(
        r"\w+: (median l[12] norm of the rows|shares of the classes)",
        "Theorem 4",
        "persons",
        persons=True,
    ),
    *(
        Proof(
            r"(choice among|\d+ models of epsilon|the best of a random number of runs of) .*",
            "Theorem 5",
            "persons",
            delta,
            persons=True,
        )
        for delta in (False, True)
    ),
    *(
        Proof(r"evaluate: \d+ weighted .*", "Theorem 4", "evaluation", persons=persons)
        for persons in (False, True)
    ),
    Proof("evaluate: .*", "Theorem 6", "persons", persons=True),
    *(
        Proof("(generating|testing): .*", "Theorem 7", "persons", delta, persons=True)
        for delta in (False, True)
    ),
    Proof("Thresholdout.*: at most .*", "Theorem 8", "persons", persons=True),
    Proof("DPHuberRegressor: coefficients by .*", "Theorems 1 and 1a", "huber"),
    Proof("DPPoissonRegressor: coefficients by .*", "Theorem 1", "poisson"),
    Proof("DPRidge: .* by covariance perturbation", "Theorems 1 and 2", "ridge"),
    Proof("DPRidge: .* by covariance perturbation", "Theorem 2", "ridge", delta=True),
    Proof("DPRidge: .* by output perturbation", "Theorem 3", "ridge"),
    Proof("DPRidge: coefficients by objective perturbation", "Theorems 4 and 5", "ridge"),
    Proof("DPHistogramDensity: histogram with .*", "Theorem 1", "density"),
    Proof("DPBoundsScaler: bounds of all columns", "Theorem 1", "private_bounds"),
    Proof("DPBoundsScaler: bounds of all columns", "Theorem 3", "private_bounds", delta=True),
    Proof(r"\w+: median l[12] norm of the rows", "Theorem 2", "first_releases"),
    Proof(r"\w+: shares of the classes", "Theorem 4", "first_releases"),
    *(
        Proof(r"\w+: mean of the targets", "Theorem 5", "first_releases", persons=persons)
        for persons in (False, True)
    ),
    *(
        Proof(
            "TableEncoder: ranges of the numbers", "Theorem 6", "first_releases", delta, persons=persons
        )
        for delta in (False, True)
        for persons in (False, True)
    ),
    Proof("choice among .*", "Theorem 4", "stability_selection", strategy="stability"),
    Proof("choice among .*", "Theorem 5", "stability_selection", delta=True, strategy="stability"),
    Proof("choice among .*", "Theorem 4", "risk_bound", strategy="optimal_risk"),
    Proof("choice among .*", "Theorems 1 and 2", "selection_strategies", strategy="budget_split"),
    Proof("choice among .*", "Theorems 1 and 4", "selection_strategies", strategy="data_split"),
    Proof("choice among .* of one release.*", "Corollary of Theorem 1", "selection_strategies"),
    Proof(r"\d+ models of epsilon .* each", "Theorem 3", "selection_strategies", delta=True),
    Proof("the best of a random number of runs of .*", "Theorem 5", "selection_strategies"),
    Proof("the best of a random number of runs of .*", "Theorem 6", "selection_strategies", delta=True),
    Proof("generating: a model", "Theorem 5", "accuracy_first", strategy="predict_verify"),
    Proof("(generating: a model|testing: doubling)", "Section Doubling", "accuracy_first"),
    Proof("generating: .* along a noise-reduction path", "Theorem 1", "accuracy_first"),
    Proof("generating: .* along a noise-reduction path", "Theorem 6", "accuracy_first", delta=True),
    Proof("testing: predict_verify", "Theorem 5", "accuracy_first"),
    Proof("testing: (.*above_threshold|brownian)", "Theorem 2", "accuracy_first"),
    Proof("(Thresholdout|ThresholdoutFeatureSelector): at most .*", "Theorem 1", "reusable_holdout"),
    Proof("evaluate: .*", "Theorem 1", "evaluation"),
    *(
        Proof("coef_interval: .*", "Theorem 1", "coefficients", persons=persons)
        for persons in (False, True)
    ),
    Proof(ACCOUNT, "The account of its library, and Theorem 1", "other_models"),
    Proof(ACCOUNT, "The account of its library, and Theorem 1", "other_models", True),
)


def proof_of(loss, strategy=""):
    """Return the first Proof that covers a single release, or None.

    Parameters
    ----------
    loss : PrivacyLoss
        Of a finite epsilon.
    strategy : str, default=""
        Name of the strategy or method of the search that made the release; "" if none did.

    Returns
    -------
    Proof or None
    """
    return next((proof for proof in PROOFS if proof.covers(loss, strategy)), None)

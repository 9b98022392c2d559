"""Capabilities that a search requires of an estimator: Protocols, and one error for a lack."""

from typing import Any, Protocol, runtime_checkable

from ..exceptions import CertificateError
from ..records.public_shape import PublicShape
from ..utils.validation import LEAVE_OUT


@runtime_checkable
class Calibrated(Protocol):
    """An estimator whose noise is a function of public numbers, for any epsilon."""

    def calibration(self, shape: PublicShape, epsilon: float | None = None) -> Any:
        """Return the frozen noise calibration of one fit."""


@runtime_checkable
class Certified(Calibrated, Protocol):
    """An estimator whose scores have a known sensitivity at fixed noise (strategy "stability")."""

    def stability_certificate(self, score: Any, n_samples: int, n_features: int) -> Any:
        """Return the Certificate of a score."""


@runtime_checkable
class ScoresSplits(Protocol):
    """An estimator that trains many models on many splits together."""

    def split_scores(self, trials: Any, score: Any, X: Any, y: Any, parts: Any) -> Any:
        """Return the exact scores of trials of this class."""


@runtime_checkable
class BoundsRisk(Calibrated, Protocol):
    """An estimator whose least risk has a low sensitivity (strategy "optimal_risk")."""

    def risk_bound(self, n_samples: int, n_features: int) -> Any:
        """Return the RiskBound."""

    def optimal_values(self, trials: Any, X: Any, y: Any, reach: float) -> Any:
        """Return the least risks of trials of this class."""


@runtime_checkable
class PrefersByCost(Calibrated, Protocol):
    """An estimator of whose values of a parameter public numbers prefer one (a head start in choices).

    Its calibration has `regularisation_parts()`, whose sum the best value makes least.
    """

    ruled_param: str


@runtime_checkable
class RanksRegularisation(Calibrated, Protocol):
    """An estimator whose regularisation follows from public numbers (strategy "data_independent")."""

    def regularisation_cost(self, n_samples: int, n_features: int) -> float:
        """Return the cost that the best regularisation minimises."""


@runtime_checkable
class HasSignal(Protocol):
    """A calibration with n epsilon over the length of the noise (what quality a plan expects)."""

    signal: float


@runtime_checkable
class HasNoiseLength(Protocol):
    """An estimator whose noise has a known length (what a delta gains in a plan)."""

    def noise_length(self, shape: PublicShape, epsilon: float | None = None) -> float:
        """Return the root mean square length of the noise in the gradient."""


@runtime_checkable
class ForecastsIntervals(Protocol):
    """An estimator whose intervals of coefficients can be forecast from invented rows."""

    def half_widths_before(
        self, X: Any, y: Any, epsilon: float, n_samples: int, persons: bool = False
    ) -> dict[Any, float]:
        """Return half the widths of 95 % intervals, before there is a fit."""


@runtime_checkable
class PostProcesses(Protocol):
    """An estimator with parameters that may change after the release, at no cost."""

    post_processing_params: Any

    def post_process(self, **params: Any) -> Any:
        """Return the model with other values of these parameters."""


@runtime_checkable
class HasAccuracyForm(Calibrated, Protocol):
    """An estimator with bounds on its accuracy (AccuracyFirstSearchCV)."""

    def accuracy_form(self) -> Any:
        """Return the AccuracyForm."""


@runtime_checkable
class TakesWeights(Protocol):
    """An estimator whose `fit` takes `sample_weight`, if a public bound is given."""

    def check_takes_weights(self) -> None:
        """Refuse weights if the bound is not given."""


@runtime_checkable
class TakesGroups(Protocol):
    """An estimator with a proof for all rows of one person, whose `fit` takes `groups`."""

    def check_takes_groups(self) -> None:
        """Refuse groups if there is no proof with these parameters."""


@runtime_checkable
class DeclaresLoss(Protocol):
    """An estimator that states the loss of a fit in advance, or refuses its parameters."""

    def declared_loss(self, epsilon: float | None = None) -> Any:
        """Return the PrivacyLoss of a fit."""


@runtime_checkable
class HasDefaultScore(Protocol):
    """An estimator with a score for searches without `scoring`."""

    default_scoring: Any


@runtime_checkable
class HasPlainForm(Protocol):
    """An estimator with an equal object of scikit-learn alone (:func:`dpselect.export.to_sklearn`)."""

    def to_sklearn(self) -> Any:
        """Return the equal object of scikit-learn."""


@runtime_checkable
class LearnsFirst(Protocol):
    """An estimator that may learn some of its parameters privately before it is trained."""

    def first_releases(self) -> dict[str, Any]:
        """Return the FirstRelease of each parameter that is to be learned, by name."""


@runtime_checkable
class HasScoreStake(Protocol):
    """The attainable gain of the score depends on the estimator's parameters."""

    score_stake: float


def require(capability, model, asker, instead):
    """Refuse a model that lacks a capability.

    Parameters
    ----------
    capability : type
        A Protocol of this module.
    model : estimator
    asker : str
        What needs it, such as ``"strategy='stability'"``.
    instead : str
        What to write instead.

    Raises
    ------
    CertificateError
    """
    if isinstance(model, capability):
        return
    named = [
        name
        for part in capability.__mro__
        if issubclass(part, Protocol)
        for name in {**vars(part), **vars(part).get("__annotations__", {})}
        if not name.startswith("_") and not hasattr(model, name)
    ]
    raise CertificateError(
        f"{asker} needs models with {' and '.join(named)}, and {type(model).__name__} has none; "
        f"{instead}."
    )


def require_weights(model):
    """Refuse a model whose `fit` takes no weights of records, or has no public bound for them.

    Parameters
    ----------
    model : estimator

    Raises
    ------
    CertificateError, ValueError
    """
    require(TakesWeights, model, "sample_weight", getattr(model, "instead_of_weights", LEAVE_OUT))
    model.check_takes_weights()

"""The privacy loss of a composite estimator: all of its private parts together."""

from __future__ import annotations

from collections.abc import Collection

from sklearn.ensemble import VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..accounting.joint import jointly
from ..accounting.privacy_loss import PrivacyLoss
from ..utils.type_aliases import Estimator
from . import check_pipeline_privacy
from .pipeline_check import fitted_parts, keep_their_columns, releases_privately


def privacy_of(estimator: Estimator, trusted_steps: Collection[str | type] = ()) -> PrivacyLoss:
    """Return the loss of a fitted estimator with all of its parts.

    A Pipeline of scikit-learn has no `privacy_`: each of its private parts states its own. This
    adds them up, where a sum is what they lose together, and refuses everything else.

    Parameters
    ----------
    estimator : estimator
        Fitted: a private estimator or search of dpselect, or a Pipeline, ColumnTransformer,
        FeatureUnion, FixedThresholdClassifier, VotingRegressor, MultiOutputClassifier,
        MultiOutputRegressor, ClassifierChain or RegressorChain of such, all of whose other steps
        treat each row by itself (:func:`~dpselect.preprocessing.check_pipeline_privacy`). Of a search
        give the search: its `best_estimator_` does not know of the choice.
    trusted_steps : collection of str or class, default=()
        Steps of your own that treat each row by itself.

    Returns
    -------
    PrivacyLoss
        The one loss that was stated, or the sum of all; of a Pipeline with a delta it can be less, for
        parts that one `fit` of it has fitted.

    Raises
    ------
    ValueError
        If nothing in it states a loss, if something was fitted to the records without one, or if
        the parts were not all handed every record once, in which case their losses do not add up.
    NotFittedError
        If it is not fitted: nothing was released yet.

    Notes
    -----
    Sequential composition, with each fit's rows a function of one record each and of earlier
    releases: proposition 2 of the page "How losses add up", which also says how a Pipeline
    with a delta can lose less ("Within one fit"). How often `estimator` was fitted before is not known
    to it; a :class:`~dpselect.PrivacyLedger` counts every fit.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.pipeline import make_pipeline
    >>> from dpselect import DPLogisticRegression, privacy_of
    >>> from dpselect.preprocessing import DPBoundsScaler
    >>> X, y = make_blobs(2000, centers=[(-0.5, 0), (0.5, 0)], cluster_std=0.2, random_state=0)
    >>> model = make_pipeline(DPBoundsScaler(0.25), DPLogisticRegression(0.75, classes=[0, 1]))
    >>> print(privacy_of(model.fit(X, y)))
    (epsilon = 1, delta = 0) differential privacy, adjacency: replace one record
      sum of
        epsilon 0.25: DPBoundsScaler: bounds of all columns
        epsilon 0.75: DPLogisticRegression: coefficients by objective perturbation
    """
    losses = _losses(estimator, trusted_steps)
    if not losses:
        raise ValueError(
            f"Nothing in {type(estimator).__name__} states a privacy loss, so there is none to add up; "
            "give a fitted private estimator of dpselect, or a Pipeline with one."
        )
    if len(losses) == 1:
        return losses[0]
    # joint composition needs releases that are fixed beforehand: a model's noise depends on its number
    # of
    # columns, and parts that were fitted earlier may have decided on later ones
    fixed = (
        isinstance(estimator, Pipeline)
        and not _fitted_apart(estimator)
        and keep_their_columns(step for _, step in estimator.steps[:-1])
    )
    compose = jointly if fixed else PrivacyLoss.sequential
    return compose(losses, label=type(estimator).__name__)


def _losses(estimator, trusted):
    """Return the losses of an estimator's parts, or refuse if they do not add up."""
    if isinstance(getattr(estimator, "privacy_", None), PrivacyLoss):
        return [estimator.privacy_]
    if type(estimator) in MEMBERS:
        members = MEMBERS[type(estimator)](estimator)
        return [loss for member in members for loss in _losses(member, trusted)]
    if isinstance(estimator, Pipeline):
        check_pipeline_privacy(estimator, trusted)
        last = estimator.steps[-1][1]
        paid = [loss for _, step in estimator.steps[:-1] for loss in _paid(step)]
        return paid if last is None or isinstance(last, str) else paid + _losses(last, trusted)
    check_is_fitted(estimator)
    if hasattr(estimator, "transform"):
        check_pipeline_privacy(
            Pipeline([(type(estimator).__name__, estimator), ("end", "passthrough")]), trusted
        )
        return _paid(estimator)
    raise ValueError(
        f"{type(estimator).__name__} was fitted and states no privacy loss, and that of its parts, if "
        f"they state one, need not cover what it did with the records; {_instead(estimator)}."
    )


def _fitted_apart(step):
    """Return whether something in a step was fitted before, so that others may depend on its results."""
    return isinstance(step, FrozenEstimator) or any(
        _fitted_apart(part) for _, part in fitted_parts(step)
    )


def _paid(step):
    """Return the losses of a fitted step's private parts; the step is known to learn nothing else."""
    if step is None or isinstance(step, str):
        return []
    if isinstance(step, FrozenEstimator):
        return _paid(step.estimator)
    if releases_privately(step):
        check_is_fitted(step, "privacy_")
    if isinstance(getattr(step, "privacy_", None), PrivacyLoss):  # an encoder may have learned ranges
        return [step.privacy_]
    return [loss for _, part in fitted_parts(step) for loss in _paid(part)]


def _chain(chain):
    if chain.cv is not None:
        raise ValueError(
            f"{type(chain).__name__}(cv={chain.cv!r}) fits more models than it keeps, so their losses "
            "are not all known here; write cv=None, or let a PrivacyLedger count them."
        )
    return _fitted_members(chain)


def _fitted_members(estimator):
    check_is_fitted(estimator, "estimators_")
    return estimator.estimators_


def _fitted_member(estimator):
    check_is_fitted(estimator, "estimator_")
    return [estimator.estimator_]


# meta-estimators that pass each record once to each model that they keep, and keep nothing else of it
MEMBERS = {
    ClassifierChain: _chain,
    FixedThresholdClassifier: _fitted_member,
    MultiOutputClassifier: _fitted_members,
    MultiOutputRegressor: _fitted_members,
    RegressorChain: _chain,
    VotingRegressor: _fitted_members,
}

_SEARCH = "it chose by exact scores, which no loss covers: use StabilityGridSearchCV"
_LABELS = (
    "it codes labels by which of them occur, so one record can relabel all others: fit each model "
    "yourself with classes=[...], or take a DPLogisticRegression, which is one-vs-rest by itself"
)
INSTEAD = {
    "GridSearchCV": _SEARCH,
    "RandomizedSearchCV": _SEARCH,
    "HalvingGridSearchCV": _SEARCH,
    "HalvingRandomSearchCV": _SEARCH,
    "OptunaSearchCV": _SEARCH,
    "BayesSearchCV": _SEARCH,
    "VotingClassifier": _LABELS,
    "OneVsRestClassifier": _LABELS,
    "OneVsOneClassifier": _LABELS,
    "OutputCodeClassifier": _LABELS,
}


def _instead(estimator):
    return INSTEAD.get(
        type(estimator).__name__,
        "use a private estimator of dpselect, alone or as the last step of a Pipeline (the page "
        '"Meta-estimators and other libraries" goes through all of scikit-learn)',
    )

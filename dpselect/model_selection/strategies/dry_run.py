"""A dry run of a model, on dummy rows: what it would refuse later, it refuses before any data."""

from types import SimpleNamespace

import numpy as np
from sklearn.base import clone, is_classifier

from ...accounting.privacy_loss import PrivacyLoss
from ...base.capabilities import DeclaresLoss
from ...base.estimator import PrivateEstimator
from ...exceptions import CertificateError
from ...ledger import without_spending
from ...noise.generators import noise_for_dummy_data
from ...records.public_shape import PublicShape
from ..final_fit import fit_for_release


def needs_fit(candidates, score=None):
    """Return the candidates whose dry run is a fit; the calibrations of others say as much.

    The fit of a PrivateEstimator states the loss that its parameters say, and its calibration refuses
    its numbers. So the first of those that differ in numbers is fitted, and only to try a score.
    """
    first = {}
    for candidate in candidates:
        if score is not None or not isinstance(candidate.model, PrivateEstimator):
            first.setdefault(_but_for_numbers(candidate), candidate)
    return list(first.values())


def _but_for_numbers(candidate):
    if not isinstance(candidate.model, PrivateEstimator):
        return id(candidate)
    # values of a grid need not be comparable, and one value is one object in all candidates
    return tuple(
        (name, id(value))
        for name, value in sorted(candidate.params.items())
        if candidate.belongs_to_model(name)
        and (name.rpartition("__")[2] == "delta" or not isinstance(value, float))
    )


def check_calibration(candidate, epsilon):
    """Calibrate a PrivateEstimator, which refuses the parameters that its fit on two rows would."""
    model = candidate.model
    if isinstance(model, PrivateEstimator):
        n_columns = _listed_columns(model) or candidate.n_features or 1
        model.calibration(PublicShape(2, n_columns, candidate.n_problems), epsilon)


def _listed_columns(model):
    """Return how many columns a model has bounds for, each with its own; None if it lists none."""
    bounds = getattr(model, "bounds", None)
    return len(bounds) if np.ndim(bounds) == 2 else None


def dry_run_fit(candidate, epsilon, score=None):
    """Return the candidate's model, fitted on two dummy rows, of one column unless it lists its columns.

    Refuses a model that does not state what it spent, or that the score, if one is given, cannot score.
    One that states its loss without a fit is not fitted.
    """
    model = clone(candidate.model)
    # a classifier that learns its labels needs two, to come as far as stating what it spent
    labels = np.arange(2.0) if is_classifier(model) else np.zeros(2)
    if "classes" in model.get_params():
        classes = [0, 1] if model.classes is None else model.classes
        model.set_params(classes=classes)
        labels = np.asarray(classes)[:2]
    rows = np.zeros((2, _listed_columns(model) or 1))
    if isinstance(model, DeclaresLoss):
        model.privacy_, scored = candidate.model.declared_loss(epsilon), _predicting(model, labels)
    else:
        scored = model
        with without_spending(), noise_for_dummy_data():
            fit_for_release(model, epsilon, None, rows, labels)
    if not isinstance(getattr(model, "privacy_", None), PrivacyLoss):
        raise CertificateError(
            f"{type(model).__name__} states no privacy_ when it is fitted, so no search can say what "
            "was spent; use a private estimator of dpselect as the last step, or epsilon=float('inf') "
            "for a search that is not private."
        )
    if score is None:
        return model
    try:
        score(scored, rows, labels)
    except CertificateError:
        raise
    except (AttributeError, TypeError, ValueError):
        raise CertificateError(
            f"{type(score).__name__} cannot score a {type(model).__name__}; use another "
            f"scoring, or None for the model's own."
        ) from None
    return model


def _predicting(model, labels):
    """Return what predicts, by the methods that a model has, the same for two dummy rows."""
    classes = model.classes if is_classifier(model) else labels
    shares = np.full((2, len(classes)), 1 / len(classes))
    predictions = {
        "predict": labels,
        "predict_proba": shares,
        "score_samples": np.zeros(2),
        "decision_function": shares if len(classes) > 2 else np.zeros(2),
    }
    return SimpleNamespace(
        classes_=np.unique(classes),
        **{
            name: lambda X, predicted=predicted: predicted
            for name, predicted in predictions.items()
            if hasattr(model, name)
        },
    )

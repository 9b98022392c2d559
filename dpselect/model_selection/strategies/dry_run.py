"""A dry run of a model, on dummy rows: what it would refuse later, it refuses before any data."""

import numpy as np
from sklearn.base import clone, is_classifier

from ...exceptions import CertificateError
from ...ledger import without_spending
from ...noise.generators import noise_for_dummy_data
from ...privacy import PrivacyLoss
from ..release import fit_for_release


def dry_run_fit(candidate, epsilon, score=None):
    """Return the candidate's model, fitted on two dummy rows.

    Refuses a model that does not state what it spent, or that the score, if one is given, cannot score.
    """
    model = clone(candidate.model)
    # a classifier that learns its labels needs two, to come as far as stating what it spent
    labels = np.arange(2.0) if is_classifier(model) else np.zeros(2)
    if "classes" in model.get_params():
        classes = [0, 1] if model.classes is None else model.classes
        model.set_params(classes=classes)
        labels = np.asarray(classes)[:2]
    # a model that lists bounds for each column says how many there are
    bounds = model.get_params().get("bounds")
    n_columns = len(bounds) if np.ndim(bounds) == 2 else candidate.n_features or 1
    rows = np.zeros((2, n_columns))
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
        score(model, rows, labels)
    except (AttributeError, TypeError, ValueError):
        raise CertificateError(
            f"{type(score).__name__} cannot score a {type(model).__name__}; use another "
            f"scoring, or None for the model's own."
        ) from None
    return model

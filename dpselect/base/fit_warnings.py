"""Warnings of fits and other releases: of leaks beside them, of seeds, and of noise that hides most."""

import math

from ..config import is_called_by, warn_caller
from ..exceptions import PrivacyLeakWarning, SeededNoiseWarning
from ..noise import is_seeded
from ..noise.generators import is_from_search
from .capabilities import HasSignal

# signal below which models keep less than half of their gain: benchmarks/quality_forecast.py
LEAST_SIGNAL = 5.0


def warn_if_logged(estimator, fit):
    """Warn if MLflow autologging is active: it logs training scores, which no privacy loss covers."""
    if _is_private(estimator) and is_called_by("mlflow.utils.autologging_utils", fit):
        warn_caller(
            "mlflow's autologging records scores of the training records, and a digest of them, which "
            "the privacy loss does not cover; switch it off by mlflow.sklearn.autolog(disable=True), "
            'and log what was released (the page "Hand over a model").',
            PrivacyLeakWarning,
        )


def warn_if_compared(estimator, fit):
    """Warn once if scikit-learn's search or cross-validation fits the model, to show exact scores."""
    if _is_private(estimator) and is_called_by("sklearn.model_selection", fit):
        warn_caller(
            f"A search or cross-validation of scikit-learn fits {type(estimator).__name__} once for "
            "each candidate and split: k fits lose k times its epsilon together (more if folds are "
            "stratified, as by default), of which each model states its own, and the exact scores are "
            "not covered at all; use StabilityGridSearchCV, or evaluate for the figures of one model.",
            PrivacyLeakWarning,
            through=("sklearn.", "joblib."),
            once=True,
        )


def _is_private(estimator):
    # other invalid values are refused by `fit`
    epsilon = getattr(estimator, "epsilon", None)
    return not isinstance(epsilon, float) or epsilon != math.inf


def warn_if_seeded(estimator):
    """Warn if the noise of a release by `estimator` can be drawn again."""
    state = estimator.random_state
    if is_seeded(state) and not is_from_search(state) and _is_private(estimator):
        warn_caller(
            f"{type(estimator).__name__} was given a random_state of type {type(state).__name__}: "
            "whoever knows the seed can remove the noise, so use random_state=None for anything "
            "that leaves your hands.",
            SeededNoiseWarning,
        )


def warn_of_little(kind, calibration):
    """Warn, by public numbers, if noise hides most of what the models of a fit could learn."""
    if isinstance(calibration, HasSignal) and calibration.signal < LEAST_SIGNAL:
        warn_caller(
            f"n epsilon over the length of the noise is {calibration.signal:.2g} in this fit of "
            f"{kind.__name__}, and below {LEAST_SIGNAL:.0f} noise hides most of what a model could "
            "learn; give more records, a larger epsilon or fewer columns, and ask the plan of a search, "
            "which reads no record, what to expect.",
            UserWarning,
        )

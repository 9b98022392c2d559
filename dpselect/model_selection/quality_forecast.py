"""Forecast of the share of its gain over a constant that a model keeps, from public numbers alone.

The share is that of an additive model without privacy: an AUC of 1/2, and the Brier score and R^2 of a
constant, keep nothing. It follows the signal, n epsilon over the length of the noise.
"""

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import expit, logit
from sklearn.base import is_classifier

from ..base.capabilities import Calibrated, HasSignal, RanksRegularisation

# of a low, the median and a high share, (a, b): the logit of the share is a + b log(signal). Made by
# benchmarks/quality_forecast.py
LINES: dict[str, tuple[tuple[float, float], ...]] = {
    "roc_auc": ((-5.21, 1.28), (-1.32, 0.87), (1.62, 0.58)),
    "brier": ((-6.22, 1.34), (-4.0, 1.23), (-1.56, 1.11)),
    "r2": ((-7.28, 1.35), (-4.48, 1.28), (-0.85, 0.85)),
}
# what a constant has
CONSTANT = {"roc_auc": 0.5, "r2": 0.0}
WORDS = {"roc_auc": "AUC", "brier": "Brier score", "r2": "R^2"}
# medians below which more records are worth their while, and below which nothing is
GOOD, POOR = 0.8, 0.2


@dataclass(frozen=True)
class QualityForecast:
    """Expected share of a model's gain over a constant that is left under privacy.

    The gain is that of the same model without noise. In eight of ten cases of tables that took no part
    in making the forecast it was between `low` and `high`: no promise.

    Attributes
    ----------
    metric : {"roc_auc", "brier", "r2"}
        Whose gain it is: over an AUC of 1/2, or over the Brier score or R^2 of a constant.
    low, median, high : float
        Between 0 and 1.
    signal : float
        What it follows from: n epsilon over the length of the noise; of two classes of which the share s
        is public times 4 s (1 - s).
    """

    metric: str
    low: float
    median: float
    high: float
    signal: float

    def __str__(self):
        return f"{self.median:.0%} of the {WORDS[self.metric]} ({self.low:.0%} to {self.high:.0%})"

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes by their names.

        Returns
        -------
        dict
        """
        return dict(vars(self))


def forecast(metric, signal):
    """Return the QualityForecast of a metric at a signal."""
    # lines may cross where the noise hides everything
    shares = sorted(float(expit(a + b * math.log(signal))) for a, b in LINES[metric])
    return QualityForecast(metric, *shares, float(signal))


def signal_for(metric, share):
    """Return the signal at which the median of a forecast is this share."""
    a, b = LINES[metric][1]
    return math.exp((float(logit(share)) - a) / b)


def forecast_metrics(model, n_problems):
    """Return the metrics for which there is a forecast."""
    if is_classifier(model) and n_problems == 1:
        return ("roc_auc", "brier") if hasattr(model, "predict_proba") else ("roc_auc",)
    return ("r2",) if hasattr(model, "target_range") and isinstance(model, RanksRegularisation) else ()


def expected_quality(candidate, n_samples, epsilon, share=None):
    """Return the forecasts for a candidate; none for models without one."""
    metrics = forecast_metrics(candidate.model, candidate.n_problems)
    calibration = calibration_of(candidate, n_samples, epsilon) if metrics else None
    if not isinstance(calibration, HasSignal):
        return ()
    signal = weighted(calibration.signal, share)
    return tuple(forecast(metric, signal) for metric in metrics)


def calibration_of(candidate, n_samples, epsilon):
    """Return the noise calibration of a fit of a candidate, or None."""
    model = candidate.model
    if not isinstance(model, Calibrated):
        return None
    return model.calibration(candidate.shape(n_samples), epsilon)


def weighted(signal, share):
    """Return a signal as the records of the rarer of two classes have it."""
    return signal if share is None else signal * 4 * share * (1 - share)


def quality_messages(expected, n_samples, share=None):
    """Return what a plan says about quality; the share of one of two classes is None if unknown."""
    if not expected:
        return ()
    first = expected[0]
    equal = ", if both classes are equally frequent (write class_share= if not)"
    condition = equal if share is None and first.metric != "r2" else ""
    lines = [
        (
            "Of what such a model gains over a constant without privacy, this one is expected to keep "
            f"{' and '.join(map(str, expected))}{condition}; a forecast from public tables, and no "
            "promise."
        )
    ]
    if first.median < GOOD:
        needed = math.ceil(n_samples * signal_for(first.metric, GOOD) / first.signal)
        said = "Little is to be had here, so choose nothing, and" if first.median < POOR else "For 80 %"
        lines.append(f"{said} use n_samples >= {needed}, a larger epsilon, or fewer columns.")
    return tuple(lines)

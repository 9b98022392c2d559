"""Private density estimation."""

from .estimator import DPHistogramDensity

__all__ = ["DPHistogramDensity"]

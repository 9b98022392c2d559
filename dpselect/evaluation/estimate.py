"""An estimate with its interval, and the rule when it is shown."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95 % interval, which covers sampling and noise.

    Parameters
    ----------
    value, low, high : float
        NaN if the interval is too wide to be informative.

    Examples
    --------
    >>> from dpselect.evaluation import Estimate
    >>> print(Estimate(0.81, 0.79, 0.83))
    0.81 [0.79, 0.83]
    """

    value: float
    low: float
    high: float

    @property
    def empty(self) -> bool:
        """bool : Whether the interval is uninformative at this size and epsilon."""
        return math.isnan(self.value)

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Return the difference of two estimates from different records.

        Each end is the difference less, or plus, the root of the sum of the squares of what the two
        intervals reach on that side (Zou and Donner 2008).
        """
        value = self.value - other.value
        below = math.hypot(self.value - self.low, other.high - other.value)
        above = math.hypot(self.high - self.value, other.value - other.low)
        return Estimate(value, value - below, value + above)

    def __str__(self) -> str:
        if self.empty:
            return "not known: too few records at this epsilon"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class Metric:
    """A function that estimates a metric from counts.

    Attributes
    ----------
    read : callable
        ``read(counts, *asked)`` returns value, low, high, and how far the interval reaches from the
        value where no end of the range cuts it off.
    farthest : float
        An interval with a larger margin is uninformative.
    unit : float
        Factor of all four for display.
    """

    read: Callable[..., tuple[Any, ...]]
    farthest: float = 0.25
    unit: float = 1.0

    def __call__(self, counts, *asked):
        """Return (value, low, high), NaN where the interval is uninformative."""
        *numbers, margin = self.read(counts, *asked)
        return tuple(np.where(margin <= self.farthest, self.unit * number, np.nan) for number in numbers)


def columns(name, estimates):
    """Return a list of estimates as three columns."""
    parts = {"": "value", "_low": "low", "_high": "high"}
    return {
        name + suffix: np.array([getattr(estimate, part) for estimate in estimates])
        for suffix, part in parts.items()
    }

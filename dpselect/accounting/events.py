"""Events: the mechanism behind a release, for tighter composition than its epsilon and delta.

The page "How losses add up" has the propositions that are cited here.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import erfcx, expit, ndtr, ndtri

from ..utils.type_aliases import FloatArray
from ..utils.validation import check_number

__all__ = ["ChoiceEvent", "Event", "GaussianEvent", "ObjectiveEvent"]
# relative rounding error of computed deltas, which are increased by it
ROUNDING = 1e-10
# relative amount by which a stated loss may be less than that of its event
SLACK = 1e-6
# bound on the epsilon that the grid of Gumbel noise adds to a choice
GRID_COST = 2.0**-36


class Event(ABC):
    """A mechanism, described as far as composition needs it.

    See Also
    --------
    GaussianEvent, ChoiceEvent, ObjectiveEvent : The kinds that are known.
    """

    kind: ClassVar[str]
    times: int = 1

    @abstractmethod
    def profile(self, epsilon: FloatArray) -> FloatArray:
        """Return the privacy profile: the delta at which one release is (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : ndarray
            0 or more.

        Returns
        -------
        ndarray
        """

    @property
    @abstractmethod
    def concentrated(self) -> tuple[float, float]:
        """(float, float) : xi and rho: Renyi divergences of all orders a are at most xi + rho a."""

    @property
    def gaussian(self) -> float:
        """float : mu of a dominating Gaussian mechanism, or inf."""
        return math.inf

    def exceeds(self, epsilon: float, delta: float) -> bool:
        """Return whether the mechanism is known not to be (epsilon, delta)-private.

        Parameters
        ----------
        epsilon, delta : float

        Returns
        -------
        bool
        """
        # rounding errors are relative to both
        return bool(self.profile(np.array(epsilon * (1 + SLACK))) > delta * (1 + SLACK))

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain numbers and its `kind`.

        Returns
        -------
        dict
        """
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class GaussianEvent(Event):
    """Gaussian noise on numbers that one record moves by a known length.

    Parameters
    ----------
    mu : float
        That length in standard deviations of the noise, greater than 0.

    Examples
    --------
    >>> from dpselect.accounting import GaussianEvent
    >>> print(f"{GaussianEvent(0.237).profile(1.0):.1e}")
    1.0e-06
    """

    mu: float
    kind = "gaussian"

    def __post_init__(self):
        _check_positive(self, "mu")

    def profile(self, epsilon: FloatArray) -> FloatArray:
        return _gaussian_profile(epsilon, self.mu)

    @property
    def concentrated(self) -> tuple[float, float]:
        return 0.0, self.mu**2 / 2

    @property
    def gaussian(self) -> float:
        return self.mu


@dataclass(frozen=True)
class ChoiceEvent(Event):
    """Choices by the exponential mechanism, which is Gumbel noise on scores.

    Parameters
    ----------
    epsilon : float
        Of each of them, greater than 0.
    times : int, default=1
        How many there were.

    Examples
    --------
    >>> from dpselect.accounting import ChoiceEvent
    >>> float(ChoiceEvent(1.0).profile(1.0))
    0.0
    """

    epsilon: float
    times: int = 1
    kind = "choice"

    def __post_init__(self):
        _check_positive(self, "epsilon")
        times = check_number(
            "times", self.times, integer=True, why="it counts releases", instead="write 1 or more"
        )
        object.__setattr__(self, "times", int(times))

    def profile(self, epsilon: FloatArray) -> FloatArray:
        remaining = np.minimum((np.asarray(epsilon) - self.epsilon) / 2, 0.0)
        return np.expm1(remaining) ** 2 / -math.expm1(-self.epsilon) * (1 + ROUNDING)

    def exceeds(self, epsilon: float, delta: float) -> bool:
        # a statement may omit the cost of the grid, which for a tiny epsilon is more than SLACK covers
        epsilon += min(self.times * GRID_COST, epsilon)
        if self.times == 1:
            return super().exceeds(epsilon, delta)
        # two bounds for several choices: the largest losses add up, or the sum is concentrated
        least = self.times * self.epsilon
        if delta:
            rho = self.concentrated[1]
            least = min(least, rho + 2 * math.sqrt(-rho * math.log(delta)))
        return epsilon * (1 + SLACK) < least

    @property
    def concentrated(self) -> tuple[float, float]:
        return 0.0, self.times * self.epsilon**2 / 8

    @property
    def gaussian(self) -> float:
        return math.sqrt(self.times) * pure_gaussian(self.epsilon / 2)


@dataclass(frozen=True)
class ObjectiveEvent(Event):
    """Gaussian noise in an objective, which is minimised.

    Parameters
    ----------
    mu : float
        How fast the loss grows with the noise, greater than 0.
    shift : float
        A bound on the mean of the largest loss, greater than 0.
    tail_from, tail_mu, tail_lost, tail_delta : float
        From the epsilon `tail_from` on, delta is at most `tail_delta` more than that of a Gaussian
        mechanism of `tail_mu` at an epsilon that is `tail_lost` less; by default nowhere.

    Examples
    --------
    >>> from dpselect.accounting import ObjectiveEvent
    >>> print(f"{ObjectiveEvent(0.2, shift=0.1).profile(1.0):.1e}")
    1.3e-07
    """

    mu: float
    shift: float
    tail_from: float = sys.float_info.max
    tail_mu: float = 1.0
    tail_lost: float = 0.0
    tail_delta: float = 0.0
    kind = "objective"

    def __post_init__(self):
        for name in ("mu", "shift", "tail_from", "tail_mu"):
            _check_positive(self, name)
        for name in ("tail_lost", "tail_delta"):
            _check_positive(self, name, low_included=True)

    def profile(self, epsilon: FloatArray) -> FloatArray:
        over = np.asarray(epsilon) - self.shift
        # P(loss > shift + mu z) is at most the probability that a normal variable exceeds z
        above = _gaussian_profile(np.maximum(over, 0.0) + self.mu**2 / 2, self.mu)
        over = np.minimum(over, 0.0)
        everywhere = -np.expm1(over) + np.exp(over) * above
        left = np.maximum(np.asarray(epsilon) - self.tail_lost, 0.0)
        tail = _gaussian_profile(left, self.tail_mu) + self.tail_delta
        return np.where(epsilon >= self.tail_from, np.minimum(tail, everywhere), everywhere)

    def exceeds(self, epsilon: float, delta: float) -> bool:
        return False  # the profile is only an upper bound, so it proves nothing here

    @property
    def concentrated(self) -> tuple[float, float]:
        return max(0.0, self.shift - self.mu**2 / 2), self.mu**2 / 2


def pure_gaussian(epsilon):
    """Return the mu of the Gaussian mechanism that dominates every epsilon-private one."""
    return -2 * float(ndtri(expit(-epsilon)))


def worst_event(events: Sequence[Event | None]) -> Event | None:
    """Return an event that dominates each of several, or None if there is none.

    Parameters
    ----------
    events : sequence of Event or None

    Returns
    -------
    Event or None
    """
    first = events[0]
    if any(type(event) is not type(first) for event in events):
        return None
    if isinstance(first, GaussianEvent):
        return GaussianEvent(max(event.gaussian for event in events if event))
    if isinstance(first, ObjectiveEvent):
        numbers = zip(*(astuple(event) for event in events if isinstance(event, ObjectiveEvent)))
        return ObjectiveEvent(*map(max, numbers))
    return None


def event_of_fit(calibration: Any, learned: bool = False) -> Event | None:
    """Return the event of a noise calibration, or None if it has none.

    Parameters
    ----------
    calibration : object
    learned : bool
        Whether some numbers of it were learned from the same records.

    Returns
    -------
    Event or None
    """
    return calibration.event(learned) if hasattr(calibration, "event") else None


def event_of(values: dict[str, Any]) -> Event:
    """Rebuild the event from the values that `to_dict` returned.

    Parameters
    ----------
    values : dict

    Returns
    -------
    Event

    Raises
    ------
    ValueError, TypeError, KeyError
        If there is no such event.
    """
    kinds = {kind.kind: kind for kind in (GaussianEvent, ChoiceEvent, ObjectiveEvent)}
    arguments = dict(values)
    return kinds[arguments.pop("kind")](**arguments)


def _gaussian_profile(epsilon, mu):
    """Return delta of a Gaussian mechanism; by differences of Mills' ratios where tails are small."""
    x = np.asarray(epsilon) / mu - mu / 2
    far = np.maximum(x, 0.0)
    fall = erfcx(far / math.sqrt(2)) - erfcx((far + mu) / math.sqrt(2))
    tail = np.exp(-(far**2) / 2) * fall / 2
    near = np.minimum(x, 0.0)
    with np.errstate(over="ignore", under="ignore"):
        delta = np.where(x > 0, tail, ndtr(-near) - np.exp(mu * (near + mu / 2)) * ndtr(-near - mu))
    return np.clip(delta * (1 + ROUNDING), 0.0, 1.0)


def _check_positive(event, name, low_included=False):
    number = check_number(
        name,
        getattr(event, name),
        low_included=low_included,
        why="no mechanism has such a loss",
        instead="write a number above 0",
    )
    object.__setattr__(event, name, float(number))

"""Margin losses: convex functions of u = y w.x with derivatives between -1 and 0."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw


class MarginLoss(ABC):
    """A convex loss phi(u) of the margin, with |phi'| <= 1 and 0 <= phi'' <= c.

    Attributes
    ----------
    curvature : float
        c, the largest second derivative.
    pull : float
        kappa_l = sup over u of -u phi'(u): bounds how far the loss can pull w
        away from 0, lambda ||w||^2 <= kappa_l at the minimiser without noise.
    """

    curvature: float
    pull: float

    @abstractmethod
    def value(self, u):
        """Return phi(u), elementwise."""

    @abstractmethod
    def derivative(self, u):
        """Return phi'(u), elementwise."""

    @abstractmethod
    def second_derivative(self, u):
        """Return phi''(u), elementwise (where it exists; one-sided elsewhere)."""


@dataclass(frozen=True)
class LogisticLoss(MarginLoss):
    """phi(u) = log(1 + exp(-u)).

    c = 1/4 and kappa_l = W(1/e) = 0.2785, W being Lambert's function. Chaudhuri,
    Monteleoni and Sarwate 2011, section 3.4.1.
    """

    curvature = 0.25
    # rounded up, since it bounds a norm
    pull = float(lambertw(np.exp(-1.0)).real) * (1 + 2**-50)

    def value(self, u):
        return np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)

    def derivative(self, u):
        # several times faster than scipy's expit, and as exact: where exp overflows, 0 is right
        with np.errstate(over="ignore"):
            derivative = np.exp(u)
        derivative += 1.0
        return np.divide(-1.0, derivative, out=derivative)

    def second_derivative(self, u):
        e = np.exp(-np.abs(u))
        return e / (1.0 + e) ** 2


@dataclass(frozen=True)
class HuberHingeLoss(MarginLoss):
    """The hinge max(0, 1 - u), rounded off by a parabola for \\|1 - u\\| <= h.

    c = 1/(2h). Chaudhuri, Monteleoni and Sarwate 2011, equation (23).

    Parameters
    ----------
    width : float
        h, the half-width of the rounded part; greater than 0.
    """

    width: float = 0.5

    @property
    def curvature(self):
        return 0.5 / self.width

    @property
    def pull(self):
        h = self.width
        return (1 + h) ** 2 / (8 * h) if h >= 1 / 3 else 1 - h

    def value(self, u):
        short = np.clip(1 + self.width - u, 0.0, 2 * self.width)
        return short**2 / (4 * self.width) + np.maximum(1 - self.width - u, 0.0)

    def derivative(self, u):
        return -np.clip(1 + self.width - u, 0.0, 2 * self.width) / (2 * self.width)

    def second_derivative(self, u):
        return np.where(np.abs(1 - u) <= self.width, 0.5 / self.width, 0.0)

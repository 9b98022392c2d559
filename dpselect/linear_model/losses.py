"""Losses: convex functions of a linear prediction and a target, with bounded derivatives."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, lambertw, xlogy

from ..metrics import MarginScore, PoissonDevianceScore, Score
from ..metrics.regression_scores import ClippedErrorScore

# computed suprema are rounded up by this, because norms and noise rely on them
UP = 1 + 2**-50
# larger residuals are clipped to this, which keeps squares finite and derivatives unchanged
FAR = 2.0**500
# units in half of the target range; found by experiment, as `reach`, `even` and `least_shrinkage` were
HALF_RANGE = 4.0
# the factor of lambda, over the value that balances bias and noise in the objective, for noise in the
# result, where only lambda is sure to give curvature
OUTPUT_SHRINKAGE = 4.0
# the factor below `no_signal`
SHRINKAGE_OF_NOISE = 12.0


class Loss(ABC):
    """A loss phi(z, t), convex in the prediction z, with phi' in [-L, L] and phi'' in [0, c].

    Derivatives are in z. Arrays of predictions may be overwritten.

    Attributes
    ----------
    lipschitz : float
        L.
    curvature : float
        c; phi' is c-Lipschitz, and phi'' may be missing at single points.
    pull : float
        kappa_l = sup over z and t of -z phi'(z, t): bounds how far the loss can pull w
        away from 0, lambda ||w||^2 <= kappa_l at the minimiser without noise; may be ``inf``.
    stake : float
        Largest gain of a perfect model over one that predicts 0; for plans only.
    reach : float
        Size of a typical model's predictions; used by heuristics on alpha only.
    nonnegative : bool
        Whether phi is 0 or more.
    even, least_shrinkage, most_shrinkage : float
        In objective perturbation "auto" takes a larger alpha where the signal, n * epsilon / E[noise
        norm], is below `even`, and a smaller one above, from `least_shrinkage` to `most_shrinkage` times
        the usual one.
    no_signal : float
        Signal below which a model is noise, and kept close to where it starts.
    stretch, stretched_from : float
        By `stretch` coefficients are multiplied after training with "auto" in objective perturbation,
        where the signal is from `stretched_from` to `even`.
    certifies : type
        Of the scores whose Lipschitz constant and span in the prediction are known.
    certified_score : str
        Such a score, for messages.
    smoother : tuple of str
        For messages: the estimator's parameter that sets the curvature, and how to change it.
    unit, centre : float
        A linear prediction z stands for `unit` z + `centre` in what is predicted.
    """

    lipschitz: float
    curvature: float
    pull: float
    stake: float
    reach: float
    certifies: type[Score]
    certified_score: str
    smoother: tuple[str, str] = ("", "")
    nonnegative: bool = True
    even: float = 100.0
    least_shrinkage: float = 1.0
    most_shrinkage: float = 3.0
    no_signal: float = 0.0
    stretch: float = 1.0
    stretched_from: float = 0.0
    unit: float = 1.0
    centre: float = 0.0

    @property
    def unweighted(self):
        """Loss : The loss of a record of weight 1."""
        return self

    @abstractmethod
    def value(self, prediction, target):
        """Return phi(z, t), elementwise."""

    @abstractmethod
    def derivative(self, prediction, target):
        """Return phi'(z, t), elementwise."""

    @abstractmethod
    def second_derivative(self, prediction, target):
        """Return phi''(z, t), elementwise (where it exists; one-sided elsewhere)."""

    def shrinkage(self, perturbation, signal):
        """Return the factor of alpha="auto" at a signal n epsilon / E[noise norm]."""
        if perturbation == "output":
            return OUTPUT_SHRINKAGE
        if signal < self.no_signal:
            return SHRINKAGE_OF_NOISE
        return min(max(math.sqrt(self.even / signal), self.least_shrinkage), self.most_shrinkage)

    def stretch_after(self, perturbation, signal):
        """Return the factor of the coefficients after training with alpha="auto"."""
        stretched = perturbation == "objective" and self.stretched_from <= signal < self.even
        return self.stretch if stretched else 1.0

    @abstractmethod
    def penalties(self, score, prediction, target, weight=None):
        """Return the sums over the rows, weighted or not, of a score's penalties of predictions."""

    @abstractmethod
    def largest(self, bound):
        """Return the largest loss of a prediction between -bound and bound."""

    @abstractmethod
    def span(self, bound):
        """Return the largest difference of the losses of two such predictions."""


class MarginLoss(Loss):
    """A decreasing function phi(u) of the margin u = t z, t being -1 or 1, with phi' in [-1, 0].

    Without a target, what is handed over are margins, and derivatives are in u.
    """

    lipschitz = 1.0
    reach = 5.0
    least_shrinkage = 0.5
    no_signal = 1.0
    certifies = MarginScore
    certified_score = "a score of margins, such as 'brier' or 'ramp'"

    @property
    def stake(self):
        return self.value(np.float64(0.0))

    def value(self, prediction, target=None):
        return self._value(_margins(prediction, target))

    def derivative(self, prediction, target=None):
        derivative = self._derivative(_margins(prediction, target))
        if target is not None:
            derivative *= target
        return derivative

    def second_derivative(self, prediction, target=None):
        return self._second_derivative(_margins(prediction, target))

    def penalties(self, score, prediction, target, weight=None):
        return score.total(_margins(self.decision(prediction), target), weight)

    def decision(self, prediction):
        """Return the decision values of linear predictions, the log odds if there are probabilities.

        An odd function, which rises, and by no more than the prediction: what is certified for
        predictions holds for decisions.
        """
        return prediction

    def prediction(self, decision):
        """Return the linear predictions of decision values."""
        return decision

    def largest(self, bound):
        return self.value(np.float64(-bound))

    def span(self, bound):
        return self.largest(bound) - self.value(np.float64(bound))

    @abstractmethod
    def _value(self, u):
        """Return phi(u)."""

    @abstractmethod
    def _derivative(self, u):
        """Return phi'(u)."""

    @abstractmethod
    def _second_derivative(self, u):
        """Return phi''(u)."""


def _margins(prediction, target):
    if target is not None:
        prediction *= target
    return prediction


@dataclass(frozen=True)
class LogisticLoss(MarginLoss):
    """phi(u) = log(1 + exp(-u)).

    c = 1/4 and kappa_l = W(1/e) = 0.2785, W being Lambert's function. Chaudhuri,
    Monteleoni and Sarwate 2011, section 3.4.1.
    """

    curvature = 0.25
    pull = float(lambertw(np.exp(-1.0)).real) * UP
    even = 225.0
    most_shrinkage = 4.5
    stretch = 1.25
    stretched_from = 10.0

    def _value(self, u):
        return np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)

    def _derivative(self, u):
        # several times faster than scipy's expit, and as exact: where exp overflows, the result 0 is
        # right
        with np.errstate(over="ignore"):
            derivative = np.exp(u)
        derivative += 1.0
        return np.divide(-1.0, derivative, out=derivative)

    def _second_derivative(self, u):
        e = np.exp(-np.abs(u))
        return e / (1.0 + e) ** 2


@dataclass(frozen=True)
class CappedLogisticLoss(LogisticLoss):
    """The logistic loss with its slope capped at L: a tangent below the margin log(1/L - 1).

    With s = 1 / (1 + exp(-z)), the prediction z is the best one for the probability a / (a + b),
    a = min(s, L) and b = min(1 - s, L).

    Parameters
    ----------
    max_derivative : float
        L, from 1/2 on and below 1.
    """

    max_derivative: float

    @property
    def lipschitz(self):
        return self.max_derivative

    @property
    def _straight_from(self):
        return float(np.log(1 / self.max_derivative - 1))

    def _value(self, u):
        beyond = np.maximum(self._straight_from - u, 0.0)
        return super()._value(np.maximum(u, self._straight_from)) + self.max_derivative * beyond

    def _derivative(self, u):
        derivative = super()._derivative(u)
        return np.maximum(derivative, -self.max_derivative, out=derivative)

    def _second_derivative(self, u):
        return np.where(u >= self._straight_from, super()._second_derivative(u), 0.0)

    def decision(self, prediction):
        excess = np.maximum(expit(np.abs(prediction)), self.max_derivative) / self.max_derivative
        return prediction - np.copysign(np.log(excess), prediction)

    def prediction(self, decision):
        size = np.abs(decision)
        beyond = size - np.log(self.max_derivative)
        # log(exp(beyond) - 1); where the loss is the logistic one, the other argument is smaller
        return np.copysign(np.maximum(size, beyond + np.log(-np.expm1(-beyond))), decision)


@dataclass(frozen=True)
class HuberHingeLoss(MarginLoss):
    """The hinge max(0, 1 - u), smoothed by a parabola for \\|1 - u\\| <= h.

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

    @property
    def smoother(self):
        return f" and huber_width={self.width!r}", ", a larger huber_width"

    def _value(self, u):
        short = np.clip(1 + self.width - u, 0.0, 2 * self.width)
        return short**2 / (4 * self.width) + np.maximum(1 - self.width - u, 0.0)

    def _derivative(self, u):
        # in place: as exact as np.clip, in a third of its time
        derivative = np.asarray(1 + self.width - u)
        np.maximum(derivative, 0.0, out=derivative)
        np.minimum(derivative, 2 * self.width, out=derivative)
        return np.divide(derivative, -2 * self.width, out=derivative)

    def _second_derivative(self, u):
        return np.where(np.abs(1 - u) <= self.width, 0.5 / self.width, 0.0)


@dataclass(frozen=True)
class PoissonLoss(Loss):
    """Half the Poisson deviance of a target at the rate exp(z), linear beyond the rate B.

    phi(z, t) = exp(z) - t z + t log t - t, tangent to itself from exp(z) = B on, so that
    phi' = min(exp(z), B) - t: L = c = B. Targets are clipped to [0, B] here, so that no caller
    can forget it. The page "Poisson regression" of the documentation has the proofs.

    Parameters
    ----------
    target_bound : float
        B, greater than 0.
    """

    target_bound: float
    reach = 1.5
    certifies = PoissonDevianceScore
    certified_score = "PoissonDevianceScore of dpselect.metrics"

    @property
    def lipschitz(self):
        return self.target_bound

    @property
    def curvature(self):
        return self.target_bound

    @property
    def pull(self):
        B = self.target_bound
        # the extreme targets are 0 and B
        down = math.exp(-1.0) if B >= math.exp(-1.0) else -B * math.log(B)
        z = max(0.0, float(lambertw(math.e * B).real) - 1)
        return max(down, z * z * math.exp(z)) * UP

    @property
    def stake(self):
        return self.value(np.float64(0.0), self.target_bound)

    @property
    def smoother(self):
        return f" and target_bound={self.target_bound!r}", ", a smaller target_bound"

    def rate(self, prediction):
        """Return the expected target, at most B."""
        with np.errstate(over="ignore"):
            rate = np.exp(prediction)
        return np.minimum(rate, self.target_bound)

    def value(self, prediction, target):
        target, highest = self._clipped(target), math.log(self.target_bound)
        z = np.minimum(prediction, highest)
        value = np.exp(z) - target * z + (xlogy(target, target) - target)
        # rounding must not make a loss negative
        return np.maximum(value, 0.0) + (self.target_bound - target) * (
            np.maximum(prediction, highest) - highest
        )

    def derivative(self, prediction, target):
        derivative = self.rate(prediction)
        derivative -= self._clipped(target)
        return derivative

    def second_derivative(self, prediction, target):
        rate = self.rate(prediction)
        return np.where(rate < self.target_bound, rate, 0.0)

    def penalties(self, score, prediction, target, weight=None):
        return score.total(target, self.rate(prediction), weight)

    def largest(self, bound):
        B = self.target_bound
        return max(self.value(np.float64(bound), 0.0), self.value(np.float64(-bound), B))

    def span(self, bound):
        return self.largest(bound)  # the smallest loss is 0, at the target

    def _clipped(self, target):
        return np.clip(target, 0.0, self.target_bound)


@dataclass(frozen=True)
class PseudoHuberLoss(Loss):
    """sqrt(1 + (z - t)^2) - sqrt(1 + t^2), with the target t in `unit` from `centre`.

    A parabola for small residuals and straight for large ones, less the loss of predicting 0:
    whatever the target, it lies in [-|z|, |z|], and L = c = 1. The page "Robust regression" of the
    documentation has the proofs.

    Parameters
    ----------
    centre : float
    unit : float
        h, greater than 0.
    """

    centre: float
    unit: float
    lipschitz = 1.0
    curvature = 1.0
    nonnegative = False
    pull = math.inf
    reach = 5.0
    even = 300.0
    certifies = ClippedErrorScore
    certified_score = "ClippedAbsoluteErrorScore or ClippedSquaredErrorScore of dpselect.metrics"

    @property
    def stake(self):
        return self.largest(HALF_RANGE)

    def value(self, prediction, target):
        target = self._scaled(target)
        residual = _bounded(prediction - target)
        # difference of two roots, without cancellation
        slope = (residual - target) / (np.sqrt(1 + residual**2) + np.sqrt(1 + target**2))
        return prediction * slope

    def derivative(self, prediction, target):
        prediction -= self._scaled(target)
        residual = _bounded(prediction)
        return residual / np.sqrt(1 + residual**2)

    def second_derivative(self, prediction, target):
        residual = _bounded(prediction - self._scaled(target))
        return (1 + residual**2) ** -1.5

    def curvature_at(self, s):
        """Return phi'' where \\|phi'\\| is s."""
        return (1 - s * s) ** 1.5

    def mean_curvature_at(self, s):
        """Return the largest mean of phi'' over points at which \\|phi'\\| has the mean s."""
        # concave envelope, whose linear part touches the curve at 1/2 and ends at 1
        return np.where(s < 0.5, self.curvature_at(s), math.sqrt(27) / 4 * (1 - s))

    def penalties(self, score, prediction, target, weight=None):
        return score.total(target, self.unit * prediction + self.centre, weight)

    def largest(self, bound):
        return bound

    def span(self, bound):
        return 2 * bound

    def _scaled(self, target):
        with np.errstate(over="ignore"):
            return _bounded((target - self.centre) / self.unit)


@dataclass(frozen=True)
class WeightedLoss(Loss):
    """w phi(z, t), for weights w of the records between 0 and W: its bounds are W times as large.

    The functions of z are those of a weight of 1: the rows have the weights, see
    :class:`~dpselect.linear_model.design.Rows`.

    Parameters
    ----------
    loss : Loss
        phi.
    largest_weight : float
        W, greater than 0.
    """

    loss: Loss
    largest_weight: float

    def __post_init__(self):
        for name in Loss.__annotations__:
            value = getattr(self.loss, name)
            scaled = name in ("lipschitz", "curvature", "pull", "stake")
            object.__setattr__(self, name, self.largest_weight * value if scaled else value)

    @property
    def unweighted(self):
        return self.loss

    def value(self, prediction, target):
        return self.loss.value(prediction, target)

    def derivative(self, prediction, target):
        return self.loss.derivative(prediction, target)

    def second_derivative(self, prediction, target):
        return self.loss.second_derivative(prediction, target)

    def penalties(self, score, prediction, target, weight=None):
        return self.loss.penalties(score, prediction, target, weight)

    def largest(self, bound):
        return self.largest_weight * self.loss.largest(bound)

    def span(self, bound):
        # a record of weight 0 has no loss at all
        span = self.loss.largest(bound) if self.nonnegative else self.loss.span(bound)
        return self.largest_weight * span


def _bounded(values):
    return np.clip(values, -FAR, FAR)

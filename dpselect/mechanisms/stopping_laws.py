"""Distributions of the number of runs of random stopping, and the privacy loss of the choice."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from ..noise import as_generator

BLOCK = 128
# below this epsilon, a difference of logarithms would cancel
SMALL = 1e-4


@dataclass(frozen=True)
class TruncatedNegativeBinomial:
    """Negative binomial number of runs, given that it is 1 or more.

    The number does not depend on the data. The shape eta is greater than -1; 1 is the geometric law
    and 0 the logarithmic one. The smaller gamma, in (0, 1), the more runs. P(K = k) is proportional
    to (1 - gamma)^k times the product of (l + eta) / (l + 1) over l = 0, ..., k - 1, without the
    factor eta of all of them where eta = 0. The generating function f(x) = E[x^K] has

        f'(x) = E[K] (gamma / (1 - (1 - gamma) x))^(1 + eta).

    Papernot and Steinke, *Hyperparameter Tuning with Renyi Differential Privacy*, 2022, definition
    1.
    """

    eta: float
    gamma: float

    def __post_init__(self):
        if not -1 < self.eta < math.inf:
            raise ValueError(f"eta={self.eta!r} is not a shape; give a number greater than -1.")
        if not 0 < self.gamma < 1:
            raise ValueError(f"gamma={self.gamma!r} is out of range; give a number in (0, 1).")

    @classmethod
    def from_mean(cls, mean, eta):
        """Return the law of shape `eta` with a given mean, greater than 1."""
        if not 1 < mean < math.inf:
            raise ValueError(f"mean={mean!r} is not a number of runs; give a number above 1.")

        def excess(log_odds):
            return cls(eta, 1 / (1 + math.exp(log_odds))).mean - mean

        # the mean increases with ln((1 - gamma) / gamma); no float64 gamma is closer to 0 or 1
        low, high = -36.0, 650.0
        if excess(low) > 0 or excess(high) < 0:
            raise ValueError(f"No law of shape eta={eta!r} has mean={mean!r}; give another shape.")
        log_odds = brentq(excess, low, high, xtol=1e-14, rtol=1e-14)
        return cls(eta, 1 / (1 + math.exp(log_odds)))

    @property
    def mean(self):
        """Mean of the number of runs, eta (1 - gamma) / (gamma (1 - gamma^eta))."""
        log_gamma = math.log(self.gamma)
        log_mean = _log_mean_exp(self.eta * log_gamma) + math.log(-log_gamma)
        return math.exp(math.log1p(-self.gamma) - log_gamma - log_mean)

    def pmf(self, k):
        """Return the probability of `k` runs."""
        k = np.asarray(k, dtype=np.float64)
        runs = np.maximum(k, 1.0)
        log_gamma = math.log(self.gamma)
        log_scale = _log_mean_exp(-self.eta * log_gamma) + math.log(-log_gamma)
        log_product = gammaln(runs + self.eta) - gammaln(runs + 1) - gammaln(1 + self.eta)
        log_pmf = runs * math.log1p(-self.gamma) + log_product - log_scale
        return np.where(k >= 1, np.exp(log_pmf), 0.0)[()]

    def draw(self, random_state=None):
        """Draw the number of runs, by inversion of a uniform number of 53 bits.

        The numbers of runs that have a probability of about 1e-16 together, beyond all others, are
        not drawn.
        """
        left = as_generator(random_state).random()
        start = 0
        while True:
            masses = self.pmf(np.arange(start, start + BLOCK))
            sums = np.cumsum(masses)
            if left < sums[-1]:
                return start + int(np.searchsorted(sums, left, side="right"))
            # the remainder of the sum is rounding error once the masses vanish
            if start > self.mean and sums[-1] < 2.0**-60:
                return start
            left -= sums[-1]
            start += BLOCK

    def selection_loss(self, run_epsilon, run_delta=0.0):
        """Return the loss that the choice adds to the epsilon of one run, (e, d).

        (1 + eta) ln((exp(e) + gamma + c) / (1 + gamma exp(e) - c)) with c = (1 - gamma) d, or (1 + eta)
        ln(1 + c / gamma) if that is more; less than (1 + eta) e for d = 0.
        """
        if run_epsilon == math.inf:
            return math.inf
        c = (1 - self.gamma) * run_delta
        if run_epsilon < SMALL:
            more = (1 - self.gamma) * math.expm1(run_epsilon) + 2 * c
            ratio = math.log1p(more / (1 + self.gamma * math.exp(run_epsilon) - c))
            return (1 + self.eta) * max(math.log1p(c / self.gamma), ratio)
        above = np.logaddexp(run_epsilon, math.log(self.gamma + c))
        ratio = above - np.logaddexp(math.log1p(-c), run_epsilon + math.log(self.gamma))
        return float((1 + self.eta) * max(math.log1p(c / self.gamma), ratio))


def geometric(mean):
    """Return the geometric law, of shape 1: after each run the next one has the same probability."""
    return TruncatedNegativeBinomial.from_mean(mean, 1.0)


def _log_mean_exp(a):
    """Return ln((exp(a) - 1) / a), the logarithm of the mean of exp between 0 and a."""
    return max(a, 0.0) + (math.log(-math.expm1(-abs(a)) / abs(a)) if a else 0.0)

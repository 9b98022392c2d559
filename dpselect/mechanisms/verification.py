"""Verification: answer privately whether a loss is at most the target."""

import math
from dataclasses import dataclass

from ..noise import as_generator, grid_laplace


@dataclass(frozen=True)
class Verification:
    """Privacy loss, noise and margin of one question.

    The answer has the privacy loss `epsilon`; replacing one record moves the value in question by
    at most the `sensitivity`, Delta; a value above the target is accepted with probability at most
    the `failure_probability`, gamma in (0, 1/2].
    """

    epsilon: float
    sensitivity: float
    failure_probability: float

    @property
    def scale(self):
        """Scale of the Laplace noise, Delta / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def margin(self):
        """Distance below the target that an answer needs, scale * ln(1 / (2 gamma)) >= 0."""
        return max(0.0, self.scale * math.log(1 / (2 * self.failure_probability)))


def verify(value, target, verification, random_state=None):
    """Answer whether `value` is at most the public `target`, epsilon-differentially private.

    Returns whether the answer is at most the target less the margin, and the answer: `value` with
    Laplace noise, on a grid that `verification` fixes. Both may be released. A value above the
    target is accepted only if its noise is at most -margin, and P(Lap(scale) <= -margin) =
    exp(-margin / scale) / 2 = gamma. A value that is not finite is refused.
    """
    answer = float(value)
    if verification.scale > 0:
        generator = as_generator(random_state)
        answer = float(grid_laplace(generator, value, verification.scale, verification.epsilon))
    return answer <= target - verification.margin, answer


def root_excess_sensitivity(gradient_bound, n_samples, alpha):
    """Return the sensitivity of the square root of an excess risk.

    v = 2 G / (n sqrt(2 alpha)), the square root of a loss. G bounds the l2 norm of the gradient of
    each record's loss, at the model, at the minimiser on either data set and between them; terms
    that are the same for all records, such as a penalty, are left out. The mean objective over n
    records is alpha-strongly convex on both data sets.

    Let E be the excess of a fixed model t over the minimum of the mean objective L, at m, and E'
    and m' the same on a neighbouring data set; t, m and m' lie in the same convex set, over which L
    and L' are minimised. With h the difference of the two records' losses, L' = L + h / n, and h
    changes by at most 2 G ||t - m'|| between t and m'. So

        E' = L(t) - L(m') + (h(t) - h(m')) / n <= E - (L(m') - L(m)) + (2 G / n) ||t - m'||.

    With r = ||m' - m||, strong convexity around the minimum m gives L(m') - L(m) >= alpha r^2 / 2
    and ||t - m|| <= sqrt(2 E / alpha), hence

        E' <= E - alpha r^2 / 2 + (2 G / n) (sqrt(2 E / alpha) + r).

    The right side is largest at r = 2 G / (n alpha), where it is E + (2 G / n) sqrt(2 E / alpha) +
    2 G^2 / (n^2 alpha) = (sqrt(E) + v)^2. The condition is symmetric in the data sets, so
    abs(sqrt(E') - sqrt(E)) <= v.

    v is attained: the loss -g x for a record x = +-1 and a number g, with the penalty alpha g^2 /
    2, has E = alpha (g - mean(x) / alpha)^2 / 2 and G = 1. E itself can move by v (2 sqrt(E) + v),
    which no number of records bounds for all models at once.

    Only the gradient of h enters. For a loss like the logistic one, where it may be known to be
    less than 2 G, half the bound on it can be given as G.
    """
    return 2 * gradient_bound / (n_samples * math.sqrt(2 * alpha))


def failure_share(k, failure_probability):
    """Return the fraction of a failure probability for the k-th question, from 1 on.

    gamma / 2^k: each question takes half of what remains. The sum over all k is gamma.
    """
    return failure_probability * 0.5**k

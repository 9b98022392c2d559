"""Verification: one private answer to the question whether a loss is at most the target."""

import math
from dataclasses import dataclass

from ..noise import as_generator, grid_laplace


@dataclass(frozen=True)
class Verification:
    """Price, noise and margin of one question.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the answer, greater than 0.
    sensitivity : float
        Delta >= 0: how far replacing one record can move the value in question.
    failure_probability : float
        gamma in (0, 1/2]: probability that a value above the target is accepted.
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
        """How far below the target an answer has to be, scale * ln(1 / (2 gamma)) >= 0."""
        return max(0.0, self.scale * math.log(1 / (2 * self.failure_probability)))


def verify(value, target, verification, random_state=None):
    """Answer whether `value` is at most `target`, epsilon-differentially private.

    Parameters
    ----------
    value : float
        Of sensitivity at most `verification.sensitivity`.
    target : float
        In the unit of `value`, public.
    verification : Verification
    random_state : None, int, SeedSequence, RandomState, Generator or InnerStream
        See :func:`dpselect.noise.root_stream`.

    Returns
    -------
    accepted : bool
        Whether `answer` is at most `target` less the margin. True with probability at most gamma
        if `value` is above `target`.
    answer : float
        `value` with Laplace noise, on a grid that `verification` fixes. Both may be released.

    Notes
    -----
    A value above the target is accepted only if its noise is at most -margin, and
    P(Lap(scale) <= -margin) = exp(-margin / scale) / 2 = gamma.

    Examples
    --------
    >>> from dpselect.mechanisms.verification import Verification, verify
    >>> verification = Verification(epsilon=0.5, sensitivity=1e-3, failure_probability=0.01)
    >>> verification.margin
    0.0078...
    >>> verify(0.02, 0.1, verification, random_state=0)
    (True, 0.0...)
    """
    answer = float(value)
    if verification.scale > 0 and math.isfinite(answer):
        generator = as_generator(random_state)
        answer = float(grid_laplace(generator, value, verification.scale, verification.epsilon))
    return answer <= target - verification.margin, answer


def root_excess_sensitivity(gradient_bound, n_samples, alpha):
    """Return how far replacing one record can move the square root of an excess risk.

    Parameters
    ----------
    gradient_bound : float
        G >= 0: bound on the l2-norm of the gradient of each record's loss, at the model, at the
        minimiser on either data set and between them. Terms that are the same for all
        records, such as a penalty, are left out.
    n_samples : int
        Number of records n of the mean, the same on both data sets.
    alpha : float
        The mean objective is alpha-strongly convex on both data sets, alpha > 0.

    Returns
    -------
    float
        v = 2 G / (n sqrt(2 alpha)), the square root of a loss.

    Notes
    -----
    Let E be the excess of a fixed model t over the minimum of the mean objective L, at m, and E'
    and m' the same on a neighbouring data set; t, m and m' lie in the same convex set, over which
    L and L' are minimised. With h the difference of the two records' losses, L' = L + h / n, and
    h changes by at most 2 G ||t - m'|| between t and m'. So

        E' = L(t) - L(m') + (h(t) - h(m')) / n <= E - (L(m') - L(m)) + (2 G / n) ||t - m'||.

    With r = ||m' - m||, strong convexity around the minimum m gives L(m') - L(m) >= alpha r^2 / 2
    and ||t - m|| <= sqrt(2 E / alpha), hence

        E' <= E - alpha r^2 / 2 + (2 G / n) (sqrt(2 E / alpha) + r).

    The right side is largest at r = 2 G / (n alpha), where it is
    E + (2 G / n) sqrt(2 E / alpha) + 2 G^2 / (n^2 alpha) = (sqrt(E) + v)^2. The condition is
    symmetric in the data sets, so abs(sqrt(E') - sqrt(E)) <= v.

    v is attained: the loss -g x for a record x = +-1 and a number g, with the penalty
    alpha g^2 / 2, has E = alpha (g - mean(x) / alpha)^2 / 2 and G = 1. E itself can move by
    v (2 sqrt(E) + v), which no number of records bounds for all models at once.

    Only the gradient of h enters. For a loss like the logistic one, where it may be known to be
    less than 2 G, half the bound on it can be given as G.

    Examples
    --------
    >>> from dpselect.mechanisms.verification import root_excess_sensitivity
    >>> root_excess_sensitivity(gradient_bound=1.0, n_samples=1000, alpha=0.02)
    0.01
    """
    return 2 * gradient_bound / (n_samples * math.sqrt(2 * alpha))


def failure_share(k, failure_probability):
    """Return the part of a failure probability that the k-th question may use.

    Parameters
    ----------
    k : int
        1 for the first question.
    failure_probability : float
        gamma in (0, 1), for all questions together, however many are asked.

    Returns
    -------
    float
        gamma / 2^k: each question takes half of what remains. The sum over all k is gamma.

    Examples
    --------
    >>> from dpselect.mechanisms.verification import failure_share
    >>> [failure_share(k, 0.1) for k in (1, 2, 3)]
    [0.05, 0.025, 0.0125]
    """
    return failure_probability * 0.5**k

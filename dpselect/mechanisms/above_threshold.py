"""Above threshold: find the first loss in a sequence that is small enough, and release nothing else.

Models are released one by one along a path whose prefix up to t has a privacy loss of its own. A
loss f_t of each, the excess risk say, is tested without being released. Functions of numbers; they
know nothing of estimators.

Losses, thresholds and noise are brought to a grid that public numbers fix, and compared exactly.
Rounding moves two losses apart by a step g of it at most, so the noise is that for Delta + g. The
page "Noise on a grid" of the documentation has statement and proof.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..noise import (
    DiscreteLaplacePath,
    as_generator,
    grid_noise,
    grid_step,
    nearest_multiple,
    root_stream,
)
from ..noise.paths import path_step

# The threshold as a fraction of the target, at the first and at the last level. A small fraction makes
# each test cheap and a large one halts earlier. Along a path the privacy loss of the models grows, so
# at its end halting early is worth more than cheap tests.
LOW_FRACTION, HIGH_FRACTION = 0.05, 0.4


@dataclass(frozen=True)
class ThresholdTest:
    """A threshold and the noise of a sequence of comparisons with it.

    `epsilon` is the privacy loss of all comparisons together. A loss is accepted if, with Laplace
    noise of `query_scale`, 4 Delta / epsilon, it is at most the `threshold` W with Laplace noise of
    `threshold_scale`, 2 Delta / epsilon, drawn once.
    """

    epsilon: float
    threshold: float
    threshold_scale: float
    query_scale: float


@dataclass(frozen=True, eq=False)
class ReducedTests:
    """Thresholds of a sequence of comparisons with increasing privacy loss.

    `epsilons`, of shape (n_levels,), are the nondecreasing privacy losses e_n of the comparisons up
    to n, if n is where they halt; `thresholds` the W_n. Replacing one record moves any loss by at
    most the `sensitivity`, Delta.
    """

    epsilons: np.ndarray
    thresholds: np.ndarray
    sensitivity: float


def published_test(target, sensitivity, n_levels, failure_probability):
    """Return the test that finds a loss of at most `target`, alpha, as published.

    Replacing one record moves any of at most T = `n_levels` losses by at most the `sensitivity`,
    Delta. A loss above the target is accepted with probability at most gamma. epsilon = 16 Delta
    ln(2 T / gamma) / alpha and W = alpha / 2.

    Ligett, Neel, Roth, Waggoner and Wu, *Accuracy First: Selecting a Differential Privacy Level for
    Accuracy-Constrained ERM*, 2017, theorem 3.2.
    """
    epsilon = 16 * sensitivity * math.log(2 * n_levels / failure_probability) / target
    return ThresholdTest(epsilon, target / 2, 2 * sensitivity / epsilon, 4 * sensitivity / epsilon)


def tighter_test(target, sensitivity, n_levels, failure_probability):
    """Return a test with the guarantee of :func:`published_test`, at a smaller privacy loss.

    With b = alpha / (4 ln(1.5^(3/4) sqrt(T) / gamma)), the scale of the threshold's noise: epsilon
    = 2 Delta / b and W = alpha / 4 + (3/4) b ln 1.5 - (1/2) b ln T, the numbers of the code that
    Ligett et al. published with their paper. Let X and Y be independent of scales b and 2b. Their
    sum has density (4 Lap(2b) - Lap(b)) / 3, so P(X + Y >= x) = (4 exp(-x / 2b) - exp(-x / b)) / 6
    for x >= 0. A loss above alpha is accepted only if X + Y >= alpha - W, where X is the
    threshold's noise and Y the loss's, negated. From alpha = b (3 ln 1.5 + 2 ln T + 4 ln(1 /
    gamma)),

        W = b (1.5 ln 1.5 + ln(1 / gamma)),
        alpha - W = b (1.5 ln 1.5 + 2 ln T + 3 ln(1 / gamma)).

    W is positive for every T and gamma. The probability that some one of T losses above alpha is
    accepted is at most

        T (2/3) exp(-(alpha - W) / 2b) = 1.5^(-1.75) gamma^1.5 < gamma / 2.

    It is smaller than promised by a factor of about 2 / sqrt(gamma), which :func:`reduced_tests`
    does not leave unused.
    """
    b = target / (4 * math.log(1.5**0.75 * math.sqrt(n_levels) / failure_probability))
    threshold = target / 4 + 0.75 * b * math.log(1.5) - 0.5 * b * math.log(n_levels)
    return ThresholdTest(2 * sensitivity / b, threshold, b, 2 * b)


def reduced_tests(target, sensitivity, n_levels, failure_probability):
    """Return tests with the guarantee of :func:`published_test`, cheaper if they halt early.

    W_n = s_n alpha with fractions s_n from `LOW_FRACTION` to `HIGH_FRACTION` that grow with n squared,
    and the smallest e_n for which a loss above alpha is accepted at level n with probability at
    most gamma / T. With y = exp(-x / 2b), P(X + Y >= x) of :func:`tighter_test` is (4 y - y^2) / 6,
    and equals gamma / T at y = 2 - sqrt(4 - 6 gamma / T). So alpha - W_n = -2 b_n ln y, where b_n =
    2 Delta / e_n, and e_n = -4 Delta ln(y) / ((1 - s_n) alpha). The union bound over the levels
    needs the law of the noise at each level alone.

    The fractions are constants, chosen for excess risks that fall with the square of the models' privacy
    loss along a geometric grid.
    """
    # from 1/2 on no margin is needed, and the scale is infinite
    probability = min(0.49, failure_probability / n_levels)
    # 2 - sqrt(4 - 6 share), without cancellation
    y = 6 * probability / (2 + math.sqrt(4 - 6 * probability))
    levels = np.arange(1, n_levels + 1) / n_levels
    fractions = LOW_FRACTION + (HIGH_FRACTION - LOW_FRACTION) * levels**2
    epsilons = -4 * sensitivity * math.log(y) / ((1 - fractions) * target)
    return ReducedTests(epsilons, fractions * target, sensitivity)


class Comparisons:
    """The comparisons of one run of above threshold, for losses that come one at a time.

    The noise of the threshold is drawn once. After the first acceptance no more may be compared.
    """

    def __init__(self, test, random_state=None):
        root = root_stream(random_state)
        self.noise = as_generator(root.child("queries"))
        self.step = grid_step([test.threshold_scale, test.query_scale])
        # 2 and 4 (Delta + g) / epsilon
        threshold_scale = test.threshold_scale + 2 * self.step / test.epsilon
        self.query_scale = test.query_scale + 4 * self.step / test.epsilon
        self.threshold = float(nearest_multiple(test.threshold, self.step))
        self.threshold_noise = float(
            grid_noise(as_generator(root.child("threshold")), (), threshold_scale, self.step)
        )

    def accepts(self, loss):
        """Return whether `loss` is, with noise, at most the noisy threshold."""
        query_noise = float(grid_noise(self.noise, (), self.query_scale, self.step))
        return _at_most(loss, query_noise, self.threshold, self.threshold_noise, self.step)


def above_threshold(losses, test, random_state=None):
    """Return the index of the first loss that is, with noise, at most the noisy threshold, or None.

    `losses` is an iterable of f_1, f_2, ..., each of sensitivity at most Delta given what was
    released before it. No more of them are taken than are compared.

    Algorithm 2 of Ligett et al. 2017 (InteractiveAboveThreshold), for small losses in place of
    large queries. Their lemma 2.8: if the models up to t have privacy loss eps_t, the index t and
    these models have epsilon + eps_t. For fixed models, lower the threshold's noise by Delta on the
    neighbouring data, at a factor exp(epsilon / 2): a loss that was refused still is. Then the
    accepted loss needs its own noise to move by at most 2 Delta, another exp(epsilon / 2).
    """
    comparisons = Comparisons(test, random_state)
    return next((i for i, loss in enumerate(losses) if comparisons.accepts(loss)), None)


def reduced_above_threshold(losses, tests, random_state=None):
    """Find the first small loss, at a privacy loss that depends on where it is.

    Returns its index n, or None after the tests' last level. The ex-post privacy loss is
    ``tests.epsilons[n]``, added to that of the models up to n; of None, at most the last of them.

    ReducedAboveThreshold of Whitehouse, Ramdas, Wu and Rogers, *Brownian Noise Reduction:
    Maximizing Privacy Subject to Accuracy Constraints*, NeurIPS 2022. The threshold's noise is a
    Laplace noise-reduction path, 2 Delta / e_n times a standard Laplace variable at level n, and
    the loss's is fresh, of scale 4 Delta / e_n. As the noise up to n can be drawn from the noise at
    n alone, lowering it all by Delta costs a factor exp(e_n / 2): every loss that was refused still
    is, at whatever scale. Accepting the last one costs another exp(e_n / 2).
    """
    root = root_stream(random_state)
    noise = as_generator(root.child("queries"))
    epsilons = tests.epsilons
    ends = 2 * tests.sensitivity / epsilons[[0, -1]]
    step = max(grid_step([ends[1], 2 * ends[0]]), path_step(1.1 * ends[0]))
    sensitivity = tests.sensitivity + step
    # integers of this rate times epsilon are multiples of the step, of scale 2 Delta / epsilon
    rate = step / (2 * sensitivity)
    path = DiscreteLaplacePath(
        as_generator(root.child("threshold")), 1, epsilons[0] * rate, epsilons[-1] * rate
    )
    # losses last, so that zip draws none after the last level
    for index, (epsilon, threshold, loss) in enumerate(zip(epsilons, tests.thresholds, losses)):
        query_noise = float(grid_noise(noise, (), 4 * sensitivity / epsilon, step))
        threshold_noise = step * float(path.read(epsilon * rate)[0])
        threshold = float(nearest_multiple(threshold, step))
        if _at_most(loss, query_noise, threshold, threshold_noise, step):
            return index
    return None


def _at_most(loss, query_noise, threshold, threshold_noise, step):
    """Compare two sums, with the loss rounded to the grid; fsum has the sign of the exact sum."""
    if not math.isfinite(loss):
        raise ValueError("A loss is NaN or infinity, which no noise hides; give finite numbers.")
    loss = float(nearest_multiple(loss, step))
    return math.fsum((loss, query_noise, -threshold, -threshold_noise)) <= 0

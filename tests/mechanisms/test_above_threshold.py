import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom, chisquare

from dpselect.mechanisms import above_threshold as module
from dpselect.mechanisms.above_threshold import (
    Comparisons,
    ReducedTests,
    ThresholdTest,
    above_threshold,
    published_test,
    reduced_above_threshold,
    reduced_tests,
    tighter_test,
)

FALSE_ALARM = 1e-7
ALL_TESTS = [published_test, tighter_test]
T, GAMMA, ALPHA, DELTA = 1000, 0.1, 2.0, 0.01


def laplace_cdf(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def smoothed(values, scale, step):
    """Return E[values(. + Laplace noise)] on a grid, constant beyond its ends."""
    a = math.exp(-step / scale)
    up, down = (lfilter([1.0], [1.0, -a], v, zi=[a * v[0] / (1 - a)])[0] for v in (values, values[::-1]))
    return (1 - a) / (1 + a) * (up + down[::-1] - values)


def law(losses, thresholds, scales, query_scales, nodes=3001, fresh=False):
    """Return the probability of halting at each loss, and of not halting, by quadrature.

    The threshold's noise is a Laplace path that is read at the nonincreasing `scales`, or drawn
    again for each loss if `fresh`.
    """
    noise = np.linspace(-30, 30, nodes) * scales[0]
    refused, halts = np.ones(nodes), []
    for n, (loss, threshold) in enumerate(zip(losses, thresholds)):
        density = np.exp(-np.abs(noise) / scales[n])
        density /= density.sum()
        if fresh:
            refused = np.full(nodes, refused @ density)
        elif n and scales[n] < scales[n - 1]:
            same = (scales[n] / scales[n - 1]) ** 2
            step = noise[1] - noise[0]
            refused = same * refused + (1 - same) * smoothed(refused, scales[n - 1], step)
        accepted = laplace_cdf((threshold + noise - loss) / query_scales[n])
        halts.append(density @ (accepted * refused))
        refused = refused * (1 - accepted)
    return np.array([*halts, density @ refused])


def law_of(losses, tests, **options):
    if isinstance(tests, ThresholdTest):
        parts = (tests.threshold, tests.threshold_scale, tests.query_scale)
        return law(losses, *(np.full(len(losses), part) for part in parts), **options)
    scales = 2 * tests.sensitivity / tests.epsilons
    return law(losses, tests.thresholds, scales, 2 * scales, **options)


def worst_excess(law_of_losses, epsilons, sensitivity, unit, rng, cases=60):
    """Return the largest log-ratio of an outcome less its allowance, over neighbouring losses.

    All losses move by the sensitivity, each up or down; not halting is allowed the last epsilon.
    """
    n = len(epsilons)
    allowed = np.append(epsilons, epsilons[-1])
    worst = -np.inf
    # the cut-off of the threshold's noise is sharpest behind losses that were all much too small
    steep = [
        np.r_[np.full(k, -depth * unit), (3 - depth) * unit * np.ones(n - k)]
        for k in range(n)
        for depth in (4, 8, 14)
    ]
    for losses in [*steep, *(rng.normal(scale=8 * unit, size=(cases, n)))]:
        for signs in itertools.product([-1.0, 1.0], repeat=n):
            shift = sensitivity * np.array(signs)
            p, q = law_of_losses(losses), law_of_losses(losses + shift)
            worst = max(worst, (np.abs(np.log(p / q)) - allowed).max())
    return worst


def falling(excess_at, n_levels=T):
    """Return losses c eps^-2 on a geometric grid that reach alpha / 4 at a part of the levels."""
    epsilons = np.geomspace(1e-3, 1.0, n_levels)
    return ALPHA / 4 * (epsilons / epsilons[int(excess_at * n_levels)]) ** -2.0, epsilons


def test_published_numbers():
    test = published_test(0.3, 0.002, 1000, 0.1)
    assert test.epsilon == pytest.approx(16 * 0.002 * math.log(20_000) / 0.3)
    assert test.threshold == 0.15
    for make in ALL_TESTS:
        test = make(0.3, 0.002, 50, 0.02)
        scales = np.array([test.threshold_scale, test.query_scale])
        assert scales == pytest.approx(np.array([2, 4]) * 0.002 / test.epsilon)


@pytest.mark.parametrize("n_levels, gamma", [(1, 0.5), (7, 1e-6), (1000, 0.1), (10**6, 0.9)])
def test_numbers_of_tighter_test(n_levels, gamma):
    test = tighter_test(ALPHA, DELTA, n_levels, gamma)
    b, small = test.threshold_scale, math.log(1 / gamma)
    assert test.threshold == pytest.approx(b * (1.5 * math.log(1.5) + small))
    tail = math.exp(-(ALPHA - test.threshold) / (2 * b))
    assert n_levels * 2 / 3 * tail == pytest.approx(1.5**-1.75 * gamma**1.5)


def test_reduced_tests_meet_their_shares_of_the_failure_probability():
    for n_levels, gamma in [(1, 0.4), (5, 0.01), (1000, 0.1), (1000, 1e-9)]:
        tests = reduced_tests(ALPHA, DELTA, n_levels, gamma)
        scales = 2 * DELTA / tests.epsilons
        y = np.exp(-(ALPHA - tests.thresholds) / (2 * scales))
        np.testing.assert_allclose((4 * y - y**2) / 6, gamma / n_levels, rtol=1e-9)
        assert (np.diff(tests.epsilons) >= 0).all() and len(tests.thresholds) == n_levels


def test_no_noise():
    test = ThresholdTest(math.inf, 1.0, 0.0, 0.0)
    assert above_threshold([3.0, 1.5, 1.0, 0.5], test) == 2
    assert above_threshold([3.0, 1.5], test) is None
    assert above_threshold([], test) is None
    for loss in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="no noise hides"):
            above_threshold([loss, 0.0], test)


def test_losses_are_taken_one_by_one():
    tests = reduced_tests(ALPHA, 1e-9, 3, 0.1)
    for find, with_tests in [
        (above_threshold, tighter_test(ALPHA, 1e-9, 3, 0.1)),
        (reduced_above_threshold, tests),
    ]:
        losses = iter([1e3, -1e3, 7.0])
        assert find(losses, with_tests) == 1 and next(losses) == 7.0
    losses = iter([1e3, 1e3, 1e3, 7.0])
    assert reduced_above_threshold(losses, tests) is None and next(losses) == 7.0


@pytest.mark.slow
def test_reproducible():
    test = tighter_test(ALPHA, DELTA, 40, 0.1)
    tests = reduced_tests(ALPHA, DELTA, 40, 0.1)
    losses = np.linspace(0.8, 0.0, 40)
    for find, t in [(above_threshold, test), (reduced_above_threshold, tests)]:
        found = [find(losses, t, random_state=i) for i in range(30)]
        assert found == [find(losses, t, random_state=i) for i in range(30)]
        assert len(set(found)) > 5


STEPS = ReducedTests(np.array([0.4, 1.0, 1.0, 3.0]), np.array([-1.0, 0.0, 1.0, 1.0]), 1.0)
LAWS = {
    "fixed": (above_threshold, ThresholdTest(1.0, 1.0, 2.0, 4.0)),
    "reduced": (reduced_above_threshold, STEPS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_law_is_the_one_that_is_attacked_below(name):
    find, tests = LAWS[name]
    losses = np.array([6.0, -1.0, 4.0, 1.0])
    rng = np.random.default_rng(0)
    found = [find(losses, tests, rng) for _ in range(3_000)]
    counts = np.bincount([4 if i is None else i for i in found], minlength=5)

    def agreement(law):
        return chisquare(counts, law * len(found) / law.sum()).pvalue

    assert agreement(law_of(losses, tests, nodes=20_001)) > FALSE_ALARM
    # the check is not idle: other losses by a third of the noise's scale would be noticed
    assert agreement(law_of(losses + 1.3, tests, nodes=20_001)) < FALSE_ALARM


UNIT_TEST = ThresholdTest(1.0, 0.0, 2.0, 4.0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_loss_stays_under_epsilon(n):
    rng = np.random.default_rng(n)
    worst = 1 + worst_excess(lambda f: law_of(f, UNIT_TEST), np.ones(n), 1.0, 4.0, rng)
    # each answer by itself costs 1/4, so that only the fourth comes up to epsilon
    assert n / 4 - 0.01 < worst < n / 4 + 1e-3


def worst_long(law_of_losses, n=7, depth=40.0):
    """Return the log-ratio of halting at the last of `n` losses, all the others much too small."""
    losses = np.r_[np.full(n - 1, -depth), 0.0]
    neighbour = losses + np.r_[np.full(n - 1, 1.0), -1.0]
    return abs(math.log(law_of_losses(losses)[n - 1] / law_of_losses(neighbour)[n - 1]))


def test_loss_comes_close_to_epsilon():
    assert 0.99 < worst_long(lambda f: law_of(f, UNIT_TEST, nodes=6001)) < 1.001


@pytest.mark.slow
def test_half_the_sensitivity_is_caught():
    halved = replace(UNIT_TEST, threshold_scale=1.0, query_scale=2.0)
    rng = np.random.default_rng(0)
    assert worst_excess(lambda f: law_of(f, halved), np.ones(3), 1.0, 2.0, rng) > 0.3
    assert worst_long(lambda f: law_of(f, halved, nodes=6001), depth=20.0) > 1.8


def test_threshold_noise_drawn_again_at_each_loss_is_caught():
    assert worst_long(lambda f: law_of(f, UNIT_TEST, fresh=True)) > 1.6


@pytest.mark.parametrize(
    "epsilons",
    [[0.5, 1.0], [1.0, 4.0], [0.5, 1.0, 2.0], [1.0, 1.0, 4.0], [0.5, 0.5, 0.5, 0.5, 1.0]],
)
def test_ex_post_loss_of_reduced_tests(epsilons):
    tests = ReducedTests(np.array(epsilons), np.zeros(len(epsilons)), 1.0)
    rng = np.random.default_rng(0)
    unit = 4.0 / epsilons[-1]
    assert worst_excess(lambda f: law_of(f, tests), epsilons, 1.0, unit, rng, cases=20) < 2e-3


def test_ex_post_loss_of_reduced_tests_comes_close():
    tests = ReducedTests(np.linspace(0.9, 1.0, 10), np.zeros(10), 1.0)
    assert 0.92 < worst_long(lambda f: law_of(f, tests, nodes=6001), n=10, depth=5.0) < 1.001


RISING = np.array([1.0] * 7 + [4.0])


def test_noise_of_the_last_level_read_early_is_caught():
    # halting at the seventh of eight levels is to cost 1, not 4
    def early_threshold(losses):
        scales = np.full(7, 2 / RISING[-1])
        return law(losses, np.zeros(7), scales, 4 / RISING[:7], nodes=20_001)

    def early_query(losses):
        return law(losses, np.zeros(7), 2 / RISING[:7], np.full(7, 4 / RISING[-1]), nodes=20_001)

    assert worst_long(early_threshold, depth=10.0) > 1.5
    assert worst_long(early_query, depth=10.0) > 1.5


def failure(losses, tests):
    return 1 - law_of(losses, tests)[-1]


@pytest.mark.slow
def test_losses_just_above_the_target_are_refused():
    losses = np.full(T, ALPHA)
    assert failure(losses, published_test(ALPHA, DELTA, T, GAMMA)) < GAMMA / 3
    assert failure(losses, tighter_test(ALPHA, DELTA, T, GAMMA)) < 0.5 * GAMMA**1.5
    assert failure(losses, reduced_tests(ALPHA, DELTA, T, GAMMA)) < GAMMA


def test_a_threshold_without_its_margin_is_caught():
    test = tighter_test(ALPHA, DELTA, T, GAMMA)
    assert failure(np.full(T, ALPHA), replace(test, threshold=ALPHA / 2)) > GAMMA


@pytest.mark.slow
@pytest.mark.parametrize("make", [*ALL_TESTS, reduced_tests])
def test_accuracy_in_runs(make):
    find = reduced_above_threshold if make is reduced_tests else above_threshold
    tests, losses = make(ALPHA, DELTA, 100, GAMMA), np.full(100, ALPHA * (1 + 1e-9))
    rng = np.random.default_rng(0)
    failures = sum(find(losses, tests, rng) is not None for _ in range(150))
    assert binom.sf(failures - 1, 150, GAMMA) > FALSE_ALARM


@pytest.mark.parametrize("make", ALL_TESTS)
def test_losses_that_fall_to_half_the_threshold_are_found(make):
    test = make(ALPHA, DELTA, T, GAMMA)
    losses = np.r_[np.full(T // 2, 5 * ALPHA), np.full(T // 2, test.threshold / 2)]
    assert law_of(losses, test)[-1] < 1e-3
    assert above_threshold(losses, test, random_state=0) >= T // 2


@pytest.mark.parametrize("excess_at", [0.5, 0.6, 0.7])
def test_reduced_tests_cost_less(excess_at):
    losses, epsilons = falling(excess_at)
    fixed, reduced = (make(ALPHA, DELTA, T, GAMMA) for make in (tighter_test, reduced_tests))
    p = law_of(losses, fixed, nodes=2001)
    q = law_of(losses, reduced, nodes=2001)
    assert p[-1] < 1e-4 and q[-1] < 1e-4
    # the models' privacy loss at the middle of the levels in question is that of the tests
    models = epsilons * fixed.epsilon / epsilons[int(0.6 * T)]
    cost = p[:-1] @ (models + fixed.epsilon)
    reduced_cost = q[:-1] @ (models + reduced.epsilons)
    assert reduced_cost < 0.92 * cost


@pytest.mark.parametrize("fineness", [40, 2])
def test_rounding_of_losses_is_paid_for(fineness, monkeypatch):
    """The scales that noise is drawn with, against how far apart rounded losses can lie."""
    scales = []

    def spy(generator, shape, scale, step):
        scales.append(scale)
        return np.zeros(shape)

    monkeypatch.setattr("dpselect.noise.grid.FINENESS", fineness)
    monkeypatch.setattr(module, "grid_noise", spy)
    epsilon, delta = 0.5, 0.1
    comparisons = Comparisons(ThresholdTest(epsilon, 0.0, 2 * delta / epsilon, 4 * delta / epsilon), 0)
    comparisons.accepts(0.0)
    step = comparisons.step
    near = np.random.default_rng(0).uniform(-1, 1, size=2000)
    near = np.append(near, 0.5 * step * (1 - 1e-9))
    both = [module.nearest_multiple(near + shift, step) for shift in (0.0, delta)]
    apart = np.abs(both[1] - both[0]).max()
    # half of epsilon for the threshold, and half for the loss, which moves twice
    assert apart / scales[0] <= epsilon / 2 * (1 + 1e-9)
    assert 2 * apart / scales[1] <= epsilon / 2 * (1 + 1e-9)
    if fineness == 2:
        assert apart > delta


def test_comparisons_are_exact():
    # 2^55 steps and two more, which a sum of doubles does not hold
    big, step = 2.0**15, 2.0**-40
    assert module._at_most(big, step, big, step, step)
    assert not module._at_most(big, 2 * step, big, step, step)
    assert big + 2 * step == big

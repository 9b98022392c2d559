import itertools
import math

import numpy as np
import pytest

from dpselect.mechanisms.holdout_tolerance import (
    answer_deviation,
    counting_deviation,
    privacy_deviation,
    published_tolerance,
)
from dpselect.mechanisms.reusable_holdout import ReusableHoldout

BETA = 0.05


def hoeffding(m, n, beta):
    return math.sqrt(math.log(2 * m / beta) / (2 * n))


def test_without_reuse_they_are_hoeffding():
    assert privacy_deviation(1e-12, 500, 40, BETA) == pytest.approx(hoeffding(40, 500, BETA / 2))
    assert counting_deviation(1, 501, 500, 40, BETA) == pytest.approx(hoeffding(40, 500, BETA))


def test_privacy_exponent_is_that_of_the_proof():
    """k is where the bound k - k^2 / (2 v) on the logarithm comes down to ln(beta / 2)."""
    for n, epsilon in itertools.product((100, 10_000), (0.01, 0.3, 2.0)):
        v = n * epsilon**2 / 4
        k = 2 * n * privacy_deviation(epsilon, n, 7, BETA) ** 2 - math.log(4 * 7 / BETA)
        assert k - k * k / (2 * v) == pytest.approx(math.log(BETA / 2))
        published = epsilon**2 * n / 2 + epsilon * math.sqrt(n * math.log(4 / BETA) / 2)
        assert k <= published


@pytest.mark.parametrize("m, budget", [(1, 1), (4, 2), (5, 5), (6, 3), (3, 8)])
def test_the_count_is_the_number_of_questions_that_can_be_reached(m, budget):
    n_values, reached = 3, 0
    for asked in range(m):
        for course in itertools.product((False, True), repeat=asked):
            if sum(course) < budget:
                reached += n_values ** sum(course)
    found = counting_deviation(budget, n_values, 50, m, BETA)
    assert found == pytest.approx(math.sqrt(math.log(2 * reached / BETA) / 100))


def test_the_count_holds_for_an_analyst_who_overfits():
    """Ask for subsets of ten cells, and keep those that came out large."""
    rng, n, m = np.random.default_rng(0), 400, 30
    bound = counting_deviation(4, n + 1, n, m, BETA)
    for _ in range(50):
        cells = rng.integers(10, size=n)
        holdout = ReusableHoldout(0.03, 0.001, 4, n, random_state=rng)
        kept, asked = [], 0
        while asked < m and holdout.uses < 4:
            subset = [*kept, int(rng.integers(10))]
            truth = len(set(subset)) / 10
            mean = np.isin(cells, subset).mean()
            assert abs(mean - truth) <= bound
            if holdout.answer(truth, mean) > truth:
                kept = subset[-9:]
            asked += 1


def test_answers_keep_to_their_deviation():
    threshold, sigma, budget, m = 0.1, 0.02, 5, 40
    bound = answer_deviation(threshold, sigma, budget, m, 0.5)
    rng, worst = np.random.default_rng(0), []
    for _ in range(200):
        holdout = ReusableHoldout(threshold, sigma, budget, 100, random_state=rng)
        differences = []
        for _ in range(m):
            held = rng.uniform(0.0, 0.3)
            if holdout.uses < budget:
                differences.append(abs(holdout.answer(0.0, held) - held))
        worst.append(max(differences))
    # half of the runs may be worse
    assert np.mean(np.array(worst) > bound) < 0.1
    assert max(worst) > threshold + sigma


@pytest.mark.parametrize("budget", [1, 10])
def test_published_tolerance_is_the_smallest(budget):
    n, m = 10**7, 1000
    tau = published_tolerance(budget, n, m, BETA)
    for scale, holds in ((1.001, True), (0.999, False)):
        t = scale * tau
        sigma = t / (96 * math.log(4 * m / BETA))
        deviation = privacy_deviation(2 * budget / (sigma * n), n, m, BETA / 4)
        assert (deviation <= t / 8) == holds
        # the noise of a question, and of an answer, in the units of the proof
        most = math.log(4 * m / BETA)
        assert 6 * sigma * most == pytest.approx(t / 16) and sigma * most <= t / 96 * (1 + 1e-12)


def test_a_thousand_records_are_too_few():
    assert published_tolerance(1, 1000, 1000, BETA) > 1
    assert published_tolerance(1, 10**6, 1000, BETA) < 0.15

"""The law of the reusable holdout: what it says, and how much of a holdout record that shows.

The probabilities of all courses of a few questions are computed by quadrature; the loss that
follows must stay under the claim, come close to it, and go over it for twins with less noise.
Sampled runs of the mechanism must follow the same probabilities, and those of the twins must not.
One record moves each holdout value by at most 1 here, and sigma = 1: a use is to cost 2.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, laplace

from dpselect import BudgetExceededError, Thresholdout
from dpselect.mechanisms.above_threshold import ThresholdTest
from dpselect.mechanisms.reusable_holdout import ReusableHoldout
from dpselect.noise import root_stream

from .audit import FALSE_ALARM, OUTSIDE, loss_lower_bound

T = 1.0
# the noise of the threshold, of each difference, and of an answer
SCALES = (2.0, 4.0, 1.0)
# sampled runs; twins that differ little in their courses need many
N, MANY = 1_000, 3_000


def course_law(gaps, budget, scales=SCALES, renewed=True, nodes=3001):
    """Return the probability of each course: which of the questions used the holdout set.

    Parameters
    ----------
    gaps : sequence of float
        |holdout - training| of the questions, in turn.
    budget : int
    scales : tuple of float
    renewed : bool
        Whether each use draws the threshold's noise again.

    Returns
    -------
    dict of tuple of bool to float
        A course ends early when the budget is spent.
    """
    noise = np.linspace(-30, 30, nodes) * scales[0]
    density = np.exp(-np.abs(noise) / scales[0])
    density /= density.sum()
    live, ended = {(): (1.0, np.ones(nodes))}, {}
    for gap in gaps:
        above = laplace.cdf((gap - T - noise) / scales[1])
        now = {}
        for course, (factor, given) in live.items():
            now[(*course, False)] = factor, given * (1 - above)
            used = given * above
            new = (factor * (density @ used), np.ones(nodes)) if renewed else (factor, used)
            (ended if sum(course) + 1 == budget else now)[(*course, True)] = new
        live = now
    ended.update(live)
    return {course: float(factor * (density @ given)) for course, (factor, given) in ended.items()}


def losses(gaps, neighbour, budget, scales=SCALES, **options):
    """Return the loss of each course with its answers, at the answers that show most."""
    p, q = (course_law(g, budget, scales, **options) for g in (gaps, neighbour))
    return {c: abs(math.log(p[c] / q[c])) + sum(c) / scales[2] for c in p}


def neighbours(n_questions, cases=12):
    """Yield gaps of n questions, and those when all holdout values have moved by 1."""
    rng = np.random.default_rng(n_questions)
    for base in rng.exponential(4.0, size=(cases, n_questions)):
        for signs in itertools.product([-1.0, 1.0], repeat=n_questions):
            yield base, np.abs(base + signs)


def long_case(uses, n_below=6, depth=40.0):
    """Return a course whose loss comes close to the claim: far above, and yet called below."""
    gaps = np.tile(np.r_[np.full(n_below, depth), 0.0], uses)
    neighbour = np.tile(np.r_[np.full(n_below, depth - 1), 1.0], uses)
    return gaps, neighbour, (*([False] * n_below), True) * uses


def long_loss(uses, scales=SCALES, **case):
    gaps, neighbour, course = long_case(1, **case)
    # rounds are independent
    return uses * losses(gaps, neighbour, 1, scales)[course]


# --- the law, on paper


@pytest.mark.parametrize("n_questions", [1, 2, 3])
@pytest.mark.parametrize("budget", [1, 2])
def test_loss_stays_under_the_claim(n_questions, budget):
    worst = max(max(losses(*pair, budget, nodes=1501).values()) for pair in neighbours(n_questions))
    assert worst < 2 * budget + 1e-3
    assert worst > 1.1 * min(budget, n_questions)


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_ex_post_loss_stays_under_what_was_spent(budget):
    for pair in neighbours(3):
        for course, loss in losses(*pair, budget, nodes=1501).items():
            begun = not course[-1]
            assert loss < 2 * sum(course) + 0.5 * begun + 1e-3


def test_loss_comes_close_to_the_claim():
    assert 1.98 < long_loss(1) < 2.0 + 1e-3
    # two rounds in one
    gaps, neighbour, course = long_case(2, n_below=3)
    assert 3.5 < losses(gaps, neighbour, 2)[course] < 4.0 + 1e-3


def test_a_round_that_ends_without_a_use_comes_close_to_its_half():
    gaps = np.full(8, 40.0)
    loss = losses(gaps, gaps - 1, 1)[(False,) * 8]
    assert 0.49 < loss < 0.5 + 1e-3


@pytest.mark.parametrize(
    "scales, case",
    [((1.0, 4.0, 1.0), {"depth": 40.0}), ((2.0, 2.0, 1.0), {"depth": 40.0}), ((2.0, 4.0, 0.5), {})],
)
def test_half_the_noise_is_caught_on_paper(scales, case):
    assert long_loss(1, scales, **case) > 2.3


def test_one_more_answer_than_the_budget_is_caught_on_paper():
    gaps, neighbour, course = long_case(2, n_below=1)
    assert losses(gaps, neighbour, 2)[course] > 2.0 * 1 + 0.5


@pytest.mark.slow
def test_a_threshold_that_is_not_renewed_would_not_cost_more():
    """It would cost (3 B + 1) / 2 units: its noise is moved once for all rounds."""
    for budget in (1, 2, 3):
        worst = max(
            max(losses(*pair, budget, renewed=False, nodes=1501).values()) for pair in neighbours(3)
        )
        assert worst < (3 * budget + 1) / 2 + 1e-3


# --- the law, sampled

GAPS = (3.0, 1.0, 6.0, 0.5)
TRAIN = 0.25


@cache
def courses(kind, budget, size=N):
    """Return how often each course came out, and the noise of the first use."""
    root = np.random.default_rng(0)
    counts, noise = {}, []
    for _ in range(size):
        holdout, course = kind(T, 1.0, budget, 1, root), ()
        for gap in GAPS:
            before = holdout.uses
            try:
                answer = holdout.answer(TRAIN, TRAIN + gap)
            except BudgetExceededError:
                break
            used = holdout.uses > before
            if used and not any(course):
                noise.append(answer - TRAIN - gap)
            assert used or answer == TRAIN
            course = (*course, used)
        counts[course] = counts.get(course, 0) + 1
    return counts, np.array(noise)


def agreement(kind, budget=2, size=N):
    """Return the p-value of the sampled courses under the law, 0 if one is impossible."""
    counts, _ = courses(kind, budget, size)
    law = course_law(GAPS, budget, nodes=12_001)
    if set(counts) - set(law):
        return 0.0
    # courses that were never seen count too
    expected = np.array(list(law.values()))
    return chisquare([counts.get(c, 0) for c in law], size * expected / expected.sum()).pvalue


class NotRenewed(ReusableHoldout):
    def _begin_round(self):
        if self.uses == 0:
            super()._begin_round()


class RenewedAtEachQuestion(ReusableHoldout):
    def answer(self, *args):
        self._root = self._root.child("again")
        self._begin_round()
        return super().answer(*args)


class Scaled(ReusableHoldout):
    threshold_share = query_share = 1.0

    def __init__(self, *args):
        super().__init__(*args)
        test = self._test
        self._test = ThresholdTest(
            test.epsilon,
            test.threshold,
            self.threshold_share * test.threshold_scale,
            self.query_share * test.query_scale,
        )
        self._begin_round()


class HalfThresholdNoise(Scaled):
    threshold_share = 0.5


class HalfQueryNoise(Scaled):
    query_share = 0.5


class OneMore(ReusableHoldout):
    def refuse_if_spent(self):
        if self.uses > self.budget:
            super().refuse_if_spent()


class OneFewer(ReusableHoldout):
    def refuse_if_spent(self):
        if self.uses >= self.budget - 1:
            raise BudgetExceededError


class HalfAnswerNoise(ReusableHoldout):
    def answer(self, train_value, holdout_value, width=1.0):
        found = super().answer(train_value, holdout_value, width)
        return found if found == train_value else (found + holdout_value) / 2


class ExactAnswers(ReusableHoldout):
    def answer(self, train_value, holdout_value, width=1.0):
        found = super().answer(train_value, holdout_value, width)
        return found if found == train_value else holdout_value


@pytest.mark.parametrize("budget, size", [(1, N), pytest.param(2, MANY, marks=pytest.mark.slow)])
def test_courses_follow_the_law(budget, size):
    assert agreement(ReusableHoldout, budget, size) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken, size",
    [
        (NotRenewed, MANY),
        (HalfThresholdNoise, MANY),
        (RenewedAtEachQuestion, N),
        (HalfQueryNoise, N),
        (OneMore, N),
        (OneFewer, N),
    ],
)
def test_courses_of_a_broken_twin_do_not(broken, size):
    assert agreement(broken, size=size) < FALSE_ALARM


@pytest.mark.slow
def test_answers_follow_the_law():
    assert kstest(courses(ReusableHoldout, 1)[1], laplace.cdf).pvalue > FALSE_ALARM
    for broken in (HalfAnswerNoise, ExactAnswers):
        assert kstest(courses(broken, 1)[1], laplace.cdf).pvalue < FALSE_ALARM


# --- what one record shows, through the public class


def answers(kind, held, seed, size=2_500):
    """Sample the answer to a question about ten holdout records; OUTSIDE if from training."""
    X = np.array(held, dtype=float)[:, None]
    found, rng = np.empty(size), np.random.default_rng(0)
    for i in range(size):
        # sigma n = 1
        holdout = Thresholdout(0.1, 1 / len(X), budget=1, random_state=root_stream(seed).child(i))
        holdout.fit(np.zeros((1, 1)), X_holdout=X)
        holdout._answers.__class__ = kind
        answer = holdout.query(lambda X, y: X[:, 0])
        # spread a little, as the audit looks at intervals
        found[i] = answer + 1e-9 * rng.random() if holdout.uses_ else OUTSIDE
    return found


def one_record_shows(kind):
    records = np.r_[np.ones(9), 0.0], np.r_[np.ones(9), 1.0]
    return loss_lower_bound(*(answers(kind, held, seed) for seed, held in enumerate(records)))


@pytest.mark.slow
def test_one_record_stays_under_the_claim():
    claim = Thresholdout(0.1, 0.1, budget=1).fit([[0.0]], X_holdout=np.zeros((10, 1))).privacy_
    assert claim.epsilon == pytest.approx(2.0)
    assert 0.4 < one_record_shows(ReusableHoldout) < claim.epsilon


@pytest.mark.slow
def test_exact_answers_are_caught():
    assert one_record_shows(ExactAnswers) > 2.0

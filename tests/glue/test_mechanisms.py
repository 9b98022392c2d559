"""The noise that a mechanism draws has the scale of its sensitivity, its epsilon and its grid.

The numbers are such that the grid is not negligible: noise that does not pay for rounding shows.
"""

import math

import numpy as np
import pytest

from dpselect.mechanisms import exponential_mechanism, noisy_argmax
from dpselect.mechanisms.above_threshold import (
    ReducedTests,
    ThresholdTest,
    above_threshold,
    published_test,
    reduced_above_threshold,
    reduced_tests,
    tighter_test,
)
from dpselect.mechanisms.reusable_holdout import ReusableHoldout
from dpselect.mechanisms.selection import largest_sum
from dpselect.mechanisms.verification import Verification, verify
from dpselect.noise import (
    DiscreteLaplacePath,
    geometric,
    grid_laplace,
    grid_noise,
    grid_step,
    gumbel,
)
from dpselect.noise.paths import path_step

from .cases import key
from .recording import Recorder


def on_grid(values, step):
    return (np.asarray(values) % step == 0).all()


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("sensitivities", [[1.0, 1.0, 1.0], [1.0, 5.0, 2.0], [1e-9, 1e4, 1e-9]])
def test_the_choice_among_unequal_candidates(sensitivities, epsilon, monkeypatch):
    recorder = Recorder(monkeypatch).watch(geometric, largest_sum)
    noisy_argmax([0.1, 0.2, 0.3], sensitivities, epsilon, key("argmax"))
    moved = np.array(sensitivities)
    others = [np.delete(moved, i).max() for i in range(3)]
    step = grid_step((moved + others) / epsilon)
    (drawn,), (chosen,) = recorder.of("geometric"), recorder.of("largest_sum")
    scales = (moved + others + 2 * step) / epsilon
    assert drawn["rate"] == pytest.approx(step / scales, rel=1e-13, abs=0)
    assert on_grid(chosen["values"], step) and on_grid(chosen["noise"], step)
    if moved.min() < 1e-6:
        assert 2 * step > 1e-3 * moved.min()  # so that the charge for the grid shows


@pytest.mark.parametrize("sensitivity", [0.0, 0.7])
def test_the_exponential_mechanism(sensitivity, monkeypatch):
    recorder = Recorder(monkeypatch).watch(gumbel, largest_sum)
    exponential_mechanism([0.1, 0.2, 0.3], sensitivity, 0.3, key("exponential"))
    if sensitivity == 0:
        assert not recorder.calls
        return
    (drawn,), (chosen,) = recorder.of("gumbel"), recorder.of("largest_sum")
    step = grid_step(2 * sensitivity / 0.3)
    expected = 2 * (sensitivity + step) / 0.3 * drawn.result
    assert chosen["noise"] == pytest.approx(expected, abs=step)
    assert on_grid(chosen["values"], step) and on_grid(chosen["noise"], step)


def test_one_answer(monkeypatch):
    recorder = Recorder(monkeypatch).watch(grid_laplace, grid_noise)
    question = Verification(0.3, 0.02, 0.05)
    accepted, answer = verify(0.4, 0.5, question, key("verify"))
    (called,) = recorder.of("grid_laplace")
    assert (called["values"], called["scales"], called["epsilon"]) == (0.4, 0.02 / 0.3, 0.3)
    (drawn,) = recorder.of("grid_noise")
    assert drawn["scales"] == pytest.approx(0.02 / 0.3, rel=1e-9)
    assert answer == float(called.result)
    assert accepted == (answer <= 0.5 - 0.02 / 0.3 * math.log(10))


@pytest.mark.parametrize("calibrate", [published_test, tighter_test])
def test_above_threshold(calibrate, monkeypatch):
    recorder = Recorder(monkeypatch).watch(grid_noise)
    test = calibrate(0.2, 0.01, 5, 0.1)
    found = above_threshold([0.5, 0.4, 0.3, 0.2, 0.1], test, key("above"))
    threshold, *queries = recorder.of("grid_noise")
    step = threshold["step"]
    assert threshold["scales"] == pytest.approx((2 * 0.01 + 2 * step) / test.epsilon, rel=1e-9)
    assert len(queries) == (5 if found is None else found + 1)
    for query in queries:
        expected = (4 * 0.01 + 4 * step) / test.epsilon
        assert query["scales"] == pytest.approx(expected, rel=1e-9) and query["step"] == step
    assert len({float(call.result) for call in recorder.calls}) == len(recorder.calls)


def test_a_threshold_pays_for_its_grid(monkeypatch):
    # noise of such different scales that the grid of the longer one is coarse for the shorter
    recorder = Recorder(monkeypatch).watch(grid_noise)
    test = ThresholdTest(1e-3, 0.0, 1.0, 1e11)
    above_threshold([1.0], test, key("coarse"))
    threshold, query = recorder.of("grid_noise")
    step = threshold["step"]
    assert 2 * step / test.epsilon > 1e-2
    assert threshold["scales"] == pytest.approx(1.0 + 2 * step / test.epsilon, rel=1e-12)
    assert query["scales"] == pytest.approx(1e11 + 4 * step / test.epsilon, rel=1e-12)


@pytest.mark.parametrize("low", [0.1, 1e-9])
def test_the_reduced_test_pays_for_its_grid(low, monkeypatch):
    recorder = Recorder(monkeypatch).watch(grid_noise)
    paths, make = [], DiscreteLaplacePath.__init__

    def recorded(self, generator, shape, lowest, highest):
        paths.append((lowest, highest))
        make(self, generator, shape, lowest, highest)

    monkeypatch.setattr(DiscreteLaplacePath, "__init__", recorded)
    sensitivity, epsilons = 0.01, np.array([low, 1.0, 3.0])
    tests = ReducedTests(epsilons, np.array([0.1, 0.2, 0.3]), sensitivity)
    reduced_above_threshold([50.0 / low, 40.0 / low, 30.0 / low], tests, key("reduced", low))
    queries = recorder.of("grid_noise")
    step = queries[0]["step"]
    assert step <= grid_step([2 * sensitivity / 3.0, 4 * sensitivity / low]) or (
        step == path_step(1.1 * 2 * sensitivity / low)
    )
    if low < 1e-6:
        assert step > 1e-6 * sensitivity  # so that the charge for the grid shows
    for epsilon, query in zip(epsilons, queries):
        expected = 4 * (sensitivity + step) / epsilon
        assert query["scales"] == pytest.approx(expected, rel=1e-9, abs=0)
    ((lowest, highest),) = paths
    rates = epsilons[[0, -1]] * step / (2 * (sensitivity + step))
    assert (lowest, highest) == pytest.approx(tuple(rates), rel=1e-9, abs=0)
    assert len(queries) == 3


def test_reduced_tests_cost_what_the_comparison_up_to_there_costs():
    tests = reduced_tests(0.2, 0.01, 6, 0.1)
    assert (np.diff(tests.epsilons) > 0).all() and tests.sensitivity == 0.01
    # the probability that a loss at the target is accepted, at each level
    for epsilon, threshold in zip(tests.epsilons, tests.thresholds):
        b = 2 * 0.01 / epsilon
        y = math.exp(-(0.2 - threshold) / (2 * b))
        assert (4 * y - y * y) / 6 == pytest.approx(0.1 / 6)


def test_a_holdout_draws_anew_for_each_round_and_answer(monkeypatch):
    recorder = Recorder(monkeypatch).watch(grid_noise, grid_laplace).watch_keys()
    holdout = ReusableHoldout(0.35, 0.01, 3, 500, key("holdout"))
    assert holdout.epsilon == pytest.approx(2 * 3 / (0.01 * 500))
    for used, width in enumerate((1.0, 2.5, 0.5)):
        # a round that has begun costs half of what a use costs
        assert holdout.spent == pytest.approx(2 * used / (0.01 * 500))
        assert holdout.answer(0.4 * width, 0.4 * width, width) == 0.4 * width
        assert holdout.spent == pytest.approx((2 * used + 0.5) / (0.01 * 500))
        holdout.answer(0.9 * width, 0.2 * width, width)
    answers = recorder.of("grid_laplace")
    loss = 1 / (0.01 * 500)
    for call, width in zip(answers, (1.0, 2.5, 0.5)):
        # one record moves the mean by a 500th of the width, at a fifth of epsilon each
        assert call["scales"] == pytest.approx(width / 500 / loss)
        assert call["epsilon"] == pytest.approx(loss)
    own = [c for c in recorder.of("grid_noise") if not c.within]
    thresholds = [c for c in own if c["scales"] == pytest.approx(0.02, rel=1e-4)]
    queries = [c for c in own if c["scales"] == pytest.approx(0.04, rel=1e-4)]
    # one more round has begun
    assert (len(thresholds), len(queries), len(answers)) == (4, 6, 3)
    assert len({float(call.result) for call in own}) == len(own) == 10
    keys = [key for key, _ in recorder.keys()]
    assert len(set(keys)) == len(keys) == 4 * 2 + 3

import copy
import math
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpselect import BudgetExceededError
from dpselect.mechanisms.reusable_holdout import ReusableHoldout


def exact(threshold=0.1, budget=3, n_holdout=10**12):
    """Noise that cannot be seen."""
    return ReusableHoldout(threshold, 1e-9, budget, n_holdout, random_state=0)


def test_answers_without_visible_noise():
    holdout = exact()
    assert holdout.answer(0.75, 0.66) == 0.75
    assert holdout.answer(0.75, 0.84) == 0.75
    assert holdout.uses == 0
    assert holdout.answer(0.75, 0.64) == pytest.approx(0.64, abs=1e-6)
    assert holdout.answer(-0.2, 0.5) == pytest.approx(0.5, abs=1e-6)
    assert holdout.uses == 2


def test_a_question_of_another_width():
    holdout = exact()
    assert holdout.answer(7.0, 7.39, width=4.0) == 7.0
    assert holdout.answer(7.0, 7.41, width=4.0) == pytest.approx(7.41, abs=1e-6)
    # the same noise, in units of the width
    for width in (1.0, 0.25, 8.0):
        one, other = (ReusableHoldout(0.0, 0.1, 50, 100, random_state=3) for _ in range(2))
        scaled = [one.answer(0.2 * width, 0.5 * width, width) / width for _ in range(30)]
        assert scaled == pytest.approx([other.answer(0.2, 0.5) for _ in range(30)])
        assert one.uses == other.uses


def test_no_answer_after_the_budget():
    holdout = exact(budget=2)
    for _ in range(2):
        holdout.refuse_if_spent()
        holdout.answer(0.0, 1.0)
    for train, held in ((0.0, 1.0), (0.5, 0.5)):
        with pytest.raises(BudgetExceededError, match="budget=2 times"):
            holdout.answer(train, held)
    with pytest.raises(BudgetExceededError):
        holdout.refuse_if_spent()
    assert holdout.uses == 2


def test_losses():
    holdout = ReusableHoldout(0.1, 1e-3, 4, 10_000, random_state=0)
    unit = 1 / (1e-3 * 10_000)
    assert holdout.epsilon == pytest.approx(8 * unit)
    assert holdout.spent == 0.0
    holdout.answer(0.5, 0.5)
    assert holdout.spent == pytest.approx(unit / 2)
    holdout.answer(0.5, 0.9)
    assert holdout.spent == pytest.approx(2 * unit)
    for _ in range(3):
        holdout.answer(0.5, 0.5)
        holdout.answer(0.5, 0.9)
    assert holdout.spent == pytest.approx(holdout.epsilon)


def test_each_use_has_noise_of_its_own():
    holdout = ReusableHoldout(0.0, 0.01, 40, 100, random_state=0)
    answers = [holdout.answer(0.0, 1.0) for _ in range(40)]
    assert len(set(answers)) == 40
    again = ReusableHoldout(0.0, 0.01, 40, 100, random_state=0)
    assert answers == [again.answer(0.0, 1.0) for _ in range(40)]
    others = {ReusableHoldout(0.0, 0.1, 1, 10, seed).answer(0.0, 1.0) for seed in [*range(20), None]}
    assert len(others) > 15


def test_neither_pickled_nor_copied():
    holdout = exact()
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="each copy would spend"):
            copied(holdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_no_answer():
    holdout, context = exact(), multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def ask():
        try:
            there.send(holdout.answer(0.0, 1.0))
        except RuntimeError as error:
            there.send(str(error))

    process = context.Process(target=ask)
    process.start()
    said = here.recv()
    process.join()
    assert "only in the process that made it" in said
    assert holdout.uses == 0


def test_threads_share_one_budget():
    holdout = ReusableHoldout(0.0, 1e-6, 50, 100)

    def ask(_):
        try:
            holdout.answer(0.0, 1.0)
        except BudgetExceededError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(400))) == 50


def test_shows_no_noise():
    holdout = exact()
    assert not any(character.isdigit() for character in repr(holdout).split("0x")[0])
    assert math.isfinite(holdout._comparisons.threshold)


@pytest.mark.slow
def test_answers_are_as_close_as_the_noise_allows():
    threshold, sigma, budget, m, beta = 0.1, 0.02, 5, 40, 0.5
    bound = threshold + 6 * sigma * math.log((m + 2 * budget) / beta)
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

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpselect import Ladder


def board(n=100, **parameters):
    return Ladder(**parameters).fit(np.zeros((n, 1)))


def losing(share, n=100):
    """A submission that is wrong on the first `share` percent of a hundred records."""
    return lambda X, y: np.arange(n) < share


def test_worked_by_hand():
    ladder = board(step=0.1)
    assert ladder.best_loss_ == math.inf
    # 0.52 is reported as 0.5; 0.41 is not less than 0.4; 0.38 is, as 0.4; 0.3 is not less than 0.3
    told = [ladder.query(losing(share)) for share in (52, 41, 38, 30, 29, 90, 0)]
    assert told == [0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.0]
    assert (ladder.n_submissions_, ladder.n_accepted_) == (7, 4)


def test_without_a_step_by_hand():
    ladder = board()
    assert ladder.query(losing(50)) == 0.5
    # 0.49 differs on one record: sd = sqrt(0.01 * 0.99), over 10 is 0.00995 < 0.01
    assert ladder.query(losing(49)) == 0.49
    # wrong on ten other records and right on eleven: sd = sqrt(0.21 - 0.0001), step 0.0458 > 0.01
    swapped = np.arange(100) < 49
    swapped[:11], swapped[60:70] = False, True
    assert ladder.query(lambda X, y: swapped) == 0.49
    # the comparison is with the best one, not with the last
    assert ladder.query(losing(48)) == 0.48
    assert (ladder.n_submissions_, ladder.n_accepted_) == (4, 3)


def test_losses_are_clipped_and_rounded():
    ladder = board(n=4)
    assert ladder.query(lambda X, y: [0.3, -7.0, 9.0, 0.4]) == 0.5
    assert board(n=3, step=0.3).query(lambda X, y: [1, 1, 1]) == 0.9


def test_not_private():
    ladder = board()
    assert ladder.privacy_.epsilon == math.inf and "not private" in str(ladder.privacy_)


def test_labels():
    y = np.repeat([0, 1], 50)
    ladder = Ladder(step=0.05).fit(np.zeros((100, 1)), y)
    assert ladder.query(lambda X, y: y == 1) == 0.5


def test_an_attack_that_climbs_a_plain_leaderboard():
    """Majority votes of those random guesses that the leaderboard liked."""
    rng, n = np.random.default_rng(0), 1000
    y = rng.integers(2, size=n)
    guesses = rng.integers(2, size=(300, n))
    ladder = Ladder().fit(np.zeros((n, 1)), y)
    told, plain = [], []
    for guess in guesses:
        told.append(ladder.query(lambda X, y, guess=guess: guess != y))
        plain.append(np.mean(guess != y))

    def attack(liked):
        return np.mean((guesses[liked].mean(axis=0) > 0.5) != y)

    assert attack(np.array(plain) < 0.5) < 0.4
    assert attack(np.diff([1.0, *told]) < 0) > 0.45
    assert ladder.n_accepted_ < 10 and ladder.best_loss_ > 0.45


@pytest.mark.parametrize("step, error", [(0.0, ValueError), (1.5, ValueError), ("a", TypeError)])
def test_refused(step, error):
    with pytest.raises(error, match="step"):
        board(step=step)


def test_shows_no_record():
    with pytest.raises(NotFittedError):
        Ladder().query(losing(1))
    ladder = board(step=0.1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ladder)
    assert pickle.loads(pickle.dumps(clone(ladder))).step == 0.1
    with pytest.raises(ValueError, match="shape"):
        ladder.query(lambda X, y: 0.5)
    assert ladder.n_submissions_ == 0


def test_a_loss_that_is_not_a_number_is_the_worst():
    ladder = Ladder(step=0.1).fit(np.zeros((10, 1)))
    assert ladder.query(lambda X, y: np.full(len(X), np.nan)) == 1.0
    assert ladder.query(lambda X, y: np.full(len(X), 0.5)) == 0.5

"""The game of guesses counts each release once, refutes false claims and lets true ones stand."""

import numpy as np
import pytest

from dpselect.audit import guessing_game

ZEROS, ONE = np.zeros(4), np.array([1.0, 0.0, 0.0, 0.0])


def noisy_sum(epsilon, seed=0):
    rng, released = np.random.default_rng(seed), []

    def release(records):
        released.append(records.sum() + rng.laplace(scale=1 / epsilon))
        return released[-1]

    return release, released


@pytest.mark.parametrize("claim, refuted", [(0.5, True), (1.0, False), (3.0, False)])
@pytest.mark.parametrize("n_trials", [400, 3000])
def test_each_release_is_counted_and_a_false_claim_refuted(claim, refuted, n_trials):
    release, released = noisy_sum(1.0)
    found = guessing_game(
        release, ZEROS, ONE, epsilon=claim, n_trials=n_trials, false_alarm=1e-7, random_state=0
    )
    assert found.n_trials == len(released) <= n_trials
    assert found.right + found.wrong <= found.n_trials
    assert not found.refuted or refuted
    if n_trials == 3000:
        assert found.refuted == refuted


def test_guesses_are_counted_on_their_own_side():
    # without noise every guess is right
    found = guessing_game(np.sum, ZEROS, ONE, epsilon=1.0, n_trials=2000, random_state=0)
    assert found.refuted and found.right > 10 and found.wrong == 0


def test_a_delta_excuses_releases_that_tell_everything():
    rng = np.random.default_rng(0)

    def release(records):
        # with a probability of 1/20 the records themselves
        noise = rng.laplace() if rng.random() > 0.05 else 0.0
        return np.array([records.sum() + noise, 1000.0 * (noise == 0.0) * records.sum()])

    parameters = dict(n_trials=2000, false_alarm=1e-7, random_state=0)
    assert guessing_game(release, ZEROS, ONE, epsilon=0.3, **parameters).refuted
    assert not guessing_game(release, ZEROS, ONE, epsilon=1.0, delta=0.05, **parameters).refuted

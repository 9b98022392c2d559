import math

import numpy as np
import pytest
from scipy.stats import binom

from dpselect import DPRidge
from dpselect.audit import epsilon_lower_bound, privacy
from dpselect.noise import as_generator, grid_laplace, laplace

ZEROS, ONE = np.zeros(5), np.array([1.0, 0, 0, 0, 0])


def noisy_sum(epsilon, dimension=1):
    """The first number tells; the others are noise that a classifier has to see through."""
    rng = np.random.default_rng(0)

    def release(records):
        return np.append(records.sum(), np.zeros(dimension - 1)) + rng.laplace(
            scale=1 / epsilon, size=dimension
        )

    return release


@pytest.mark.slow
@pytest.mark.parametrize("epsilon, dimension", [(1.0, 1), (2.0, 4)])
def test_a_true_claim_stands_and_a_false_one_does_not(epsilon, dimension):
    parameters = dict(n_trials=5_000, confidence=1 - 1e-7, float_bits=False, random_state=0)
    found = epsilon_lower_bound(noisy_sum(epsilon, dimension), ZEROS, ONE, **parameters)
    assert 0.4 * epsilon < found.epsilon <= epsilon
    broken = epsilon_lower_bound(noisy_sum(3 * epsilon, dimension), ZEROS, ONE, **parameters)
    assert epsilon < broken.epsilon <= 3 * epsilon
    assert (found.n_trials, found.delta, found.confidence) == (5_000, 0.0, 1 - 1e-7)


@pytest.mark.slow
def test_either_data_set_may_be_the_first():
    parameters = dict(float_bits=False, random_state=0)
    one = epsilon_lower_bound(noisy_sum(2.0), ZEROS, ONE, **parameters)
    two = epsilon_lower_bound(noisy_sum(2.0), ONE, ZEROS, **parameters)
    assert one.epsilon == pytest.approx(two.epsilon, abs=0.3) and min(one.epsilon, two.epsilon) > 1


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is():
    found = [
        epsilon_lower_bound(
            lambda records: rng.normal(size=2),
            ZEROS,
            ONE,
            n_trials=200,
            confidence=0.9,
            random_state=seed,
        ).epsilon
        for seed, rng in ((seed, np.random.default_rng(seed)) for seed in range(40))
    ]
    # above 0 in one of ten runs at most
    assert np.count_nonzero(found) <= binom.isf(1e-6, 40, 0.1)


class Passes:
    """In place of the forest: its answer is what was released; it keeps what it learned from."""

    def __init__(self, *args, **kwargs):
        pass

    def fit(self, X, labels):
        self.learned[:] = X[labels == 0, 0], X[labels == 1, 0]

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


@pytest.mark.slow
def test_each_release_learns_or_chooses_or_counts(monkeypatch):
    """What counts took no part in choosing the event: a bound holds for an event that is fixed."""
    n, learned, chose, counted = 100, [], [], [[], []]

    def event(answers, delta, error):
        chose[:] = answers
        return 1.0, threshold

    monkeypatch.setattr(Passes, "learned", learned, raising=False)
    monkeypatch.setattr(privacy, "RandomForestClassifier", Passes)
    monkeypatch.setattr(privacy, "_best_event", event)
    before = None
    for threshold in range(-1, 2 * n):
        releases = iter(range(2 * n))  # of the first data set, then of the second
        found = epsilon_lower_bound(
            lambda _: next(releases), ZEROS, ONE, n_trials=n, float_bits=False, random_state=0
        )
        for k in range(2):  # a count that falls counted the threshold
            if before is not None and found.shares[k] < before[k]:
                counted[k].append(threshold)
        before = found.shares
    for k in range(2):
        assert min(len(learned[k]), len(chose[k]), len(counted[k])) >= n / 10
        assert sorted([*learned[k], *chose[k], *counted[k]]) == list(range(k * n, k * n + n))


@pytest.mark.slow
def test_delta_is_allowed_for():
    rng = np.random.default_rng(0)

    def leaky(records):  # tells the sum once in twenty times
        return records.sum() if rng.random() < 0.05 else 0.5

    parameters = dict(float_bits=False, n_trials=4_000, random_state=0)
    assert epsilon_lower_bound(leaky, ZEROS, ONE, **parameters).epsilon > 1
    assert epsilon_lower_bound(leaky, ZEROS, ONE, delta=0.05, **parameters).epsilon == 0.0


@pytest.mark.slow
def test_bits_of_floating_point_give_noise_away():
    generator = as_generator(0)

    def doubles(records):
        return records.sum() + laplace(generator, ())

    def on_grid(records):
        return grid_laplace(generator, records.sum(), 1.0, 1.0)

    parameters = dict(n_trials=4_000, confidence=1 - 1e-7, random_state=0)
    assert epsilon_lower_bound(doubles, ZEROS, ONE, **parameters).epsilon > 3
    assert epsilon_lower_bound(doubles, ZEROS, ONE, float_bits=False, **parameters).epsilon < 1
    assert epsilon_lower_bound(on_grid, ZEROS, ONE, **parameters).epsilon < 1


@pytest.mark.slow
def test_an_estimator_by_its_attributes():
    X, y = np.zeros((20, 1)), np.zeros(20)
    X[0], y[0] = 1.0, 1.0

    def release(y):
        return DPRidge(epsilon=16.0, fit_intercept=False, target_range=(-1, 1)).fit(X, y).moment_

    other = y.copy()
    other[0] = -1.0
    found = epsilon_lower_bound(release, y, other, n_trials=1_000, random_state=0)
    # about 3.1, give or take 0.2
    assert 1.0 < found.epsilon <= 16.0


@pytest.mark.parametrize("parameters", [
    {"n_trials": 99}, {"n_trials": 200.5}, {"delta": 1.0}, {"delta": -0.1}, {"confidence": 1.0},
    {"confidence": 0.0}, {"delta": math.nan},
])  # fmt: skip
def test_bad_parameters(parameters):
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        epsilon_lower_bound(None, None, None, **parameters)

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chisquare

from dpselect.mechanisms import exponential_mechanism, exponential_noise_scales, noisy_argmax
from dpselect.mechanisms.selection import largest_sum
from dpselect.noise import geometric

N = 100_000


def test_scales():
    np.testing.assert_allclose(exponential_noise_scales([1.0, 5.0, 3.0], 2.0), [3.0, 4.0, 4.0])
    np.testing.assert_allclose(exponential_noise_scales([2.0, 2.0], 1.0), [4.0, 4.0])
    assert exponential_noise_scales([7.0], 1.0) == 0.0


def test_one_candidate_is_always_chosen():
    assert noisy_argmax([3.0], [100.0], 0.01) == 0


def test_no_noise():
    assert noisy_argmax([0.0, 0.1, 0.05], [1.0] * 3, float("inf")) == 1
    assert exponential_mechanism([0.0, 0.1, 0.05], 1.0, float("inf")) == 1


def test_the_largest_sum_is_exact():
    rng = np.random.default_rng(0)
    values = 2.0**-40 * rng.integers(-(2**60), 2**60, size=(200, 1))
    values = values + rng.choice([0.0, 2.0**-20], size=(200, 5))
    noise = 2.0**-40 * rng.integers(-8, 8, size=(200, 5))
    found = largest_sum(values, noise)
    for v, r, i in zip(values, noise, found):
        exact = [Fraction(a) + Fraction(b) for a, b in zip(v.tolist(), r.tolist())]
        assert i == exact.index(max(exact))
    # rounded sums take others
    assert (found != np.argmax(values + noise, axis=1)).sum() > 50


def grid_loss(charge, fineness, k=3, epsilon=1.0):
    """The largest log-ratio of a choice of `noisy_argmax` on a coarse grid, by its exact law.

    ``charge`` 1 is that of the library, for scores that are rounded apart by a step each.
    """
    step, scale = 2.0**-fineness, 2 / epsilon
    t = step / (scale + charge * 2 * step / epsilon)
    n = np.arange(int(60 / t))
    law = -np.expm1(-t) * np.exp(-t * n)
    below = np.cumsum(law)

    def probability(places, i):
        # the first of equal sums wins
        p = law.copy()
        for j in range(k):
            if j != i:
                at = n + places[i] - places[j] - (j < i)
                p *= np.where(at >= 0, below[np.clip(at, 0, len(n) - 1)], 0.0)
        return p.sum()

    worst, moved = 0.0, int(1 / step) + 1
    rng = np.random.default_rng(0)
    for _ in range(100):
        places = rng.integers(-3 * moved, 3 * moved, size=k)
        other = places + moved * rng.choice([-1, 1], size=k)
        i = rng.integers(k)
        worst = max(worst, abs(np.log(probability(places, i) / probability(other, i))))
    return worst


@pytest.mark.parametrize("fineness", [0, 2, 5])
def test_rounding_of_scores_is_paid_for(fineness):
    assert 0.85 < grid_loss(1, fineness) <= 1 + 1e-9


def test_rounding_that_is_not_paid_for_is_caught():
    assert grid_loss(0, 0) > 1.5 and grid_loss(0, 2) > 1.05


def test_the_noise_of_a_choice_is_drawn_for_what_is_charged(monkeypatch):
    rates = []

    def spy(generator, shape, rate):
        rates.append(rate)
        return geometric(generator, shape, rate)

    monkeypatch.setattr("dpselect.mechanisms.selection.geometric", spy)
    monkeypatch.setattr("dpselect.noise.grid.FINENESS", 2)
    noisy_argmax([0.0, 1.0, 2.0], [1.0, 2.0, 2.0], 0.5, random_state=0)
    # scales 6, 8 and 8: the least needs a step of 2 at most
    np.testing.assert_allclose(rates[0], 2.0 / (np.array([6.0, 8.0, 8.0]) + 2 * 2.0 / 0.5))
    noises = []
    monkeypatch.setattr(
        "dpselect.mechanisms.selection.largest_sum", lambda values, noise: noises.append(noise) or 0
    )
    exponential_mechanism(np.zeros(N), 1.0, 0.5, random_state=0)
    # a step of 1, which counts once more than the sensitivity
    assert (noises[0] % 1.0 == 0).all()
    assert noises[0].std() == pytest.approx(np.pi / np.sqrt(6) * 2 * (1 + 1.0) / 0.5, rel=0.03)


def test_reproducible():
    first = [noisy_argmax(np.zeros(50), np.ones(50), 1.0, random_state=i) for i in range(20)]
    again = [noisy_argmax(np.zeros(50), np.ones(50), 1.0, random_state=i) for i in range(20)]
    assert first == again and len(set(first)) > 5


@pytest.mark.slow
def test_exponential_mechanism_law():
    rng = np.random.default_rng(0)
    q, sensitivity, epsilon = np.array([0.0, 1.0, 2.5, 2.0]), 0.7, 1.3
    chosen = [exponential_mechanism(q, sensitivity, epsilon, rng) for _ in range(N // 10)]
    expected = softmax(epsilon * q / (2 * sensitivity)) * len(chosen)
    assert chisquare(np.bincount(chosen, minlength=4), expected).pvalue > 1e-7


@pytest.mark.slow
def test_noisy_argmax_with_equal_sensitivities_is_permute_and_flip():
    # permute and flip: go through the candidates in random order, accept i with
    # probability exp(epsilon (q_i - max q) / (2 Delta)) (McKenna and Sheldon 2020)
    q, epsilon = np.array([0.0, 1.0, 1.6]), 1.1
    rng = np.random.default_rng(0)
    chosen = [noisy_argmax(q, np.ones(3), epsilon, rng) for _ in range(N // 10)]
    accept = np.exp(epsilon * (q - q.max()) / 2)
    flips = np.random.default_rng(1)
    expected = np.zeros(3)
    for _ in range(N):
        order = flips.permutation(3)
        expected[next(i for i in order if flips.random() < accept[i])] += 1
    counts = np.bincount(chosen, minlength=3)
    both = np.vstack([counts, expected])
    from scipy.stats import chi2_contingency

    assert chi2_contingency(both).pvalue > 1e-7


def law(q, scales, center=1.0, nodes=20_000):
    """Return P(argmax q_i + s_i (Z_i - center) = i) by quadrature over Z_i's quantiles."""
    u = (np.arange(nodes) + 0.5) / nodes
    probabilities = []
    for i in range(len(q)):
        value = q[i] + scales[i] * (-np.log(u) - center)
        others = [
            -np.expm1(-np.maximum(0.0, (value - q[j]) / scales[j] + center))
            for j in range(len(q))
            if j != i
        ]
        probabilities.append(np.prod(others, axis=0).mean())
    return np.array(probabilities)


@pytest.fixture(scope="module")
def neighbouring_scores():
    """Scores and neighbours at the edge of what the sensitivities allow."""
    rng = np.random.default_rng(3)
    cases = []
    for _ in range(300):
        k = rng.integers(2, 5)
        sensitivities = np.exp(rng.normal(scale=2.0, size=k))
        q = rng.normal(scale=3 * sensitivities.max(), size=k) * rng.choice([0.01, 1.0])
        cases.append((q, q + sensitivities * rng.choice([-1.0, 1.0], size=k), sensitivities))
    return cases


def worst_loss(cases, scales_of, epsilon=1.0):
    worst = 0.0
    for q, q_neighbour, sensitivities in cases:
        scales = scales_of(sensitivities, epsilon)
        p, p_neighbour = law(q, scales), law(q_neighbour, scales)
        seen = (p > 1e-3) & (p_neighbour > 1e-3)  # quadrature resolves these to about 1e-3
        if seen.any():
            worst = max(worst, np.abs(np.log(p[seen] / p_neighbour[seen])).max())
    return worst


@pytest.mark.slow
def test_loss_stays_under_epsilon_and_comes_close(neighbouring_scores):
    worst = worst_loss(neighbouring_scores, exponential_noise_scales)
    assert 0.9 < worst < 1.01


@pytest.mark.slow
def test_scaling_each_candidate_by_its_own_sensitivity_is_caught(neighbouring_scores):
    broken = worst_loss(neighbouring_scores, lambda s, epsilon: 2 * s / epsilon)
    assert broken > 2.0


@pytest.mark.slow
def test_halving_the_noise_is_caught(neighbouring_scores):
    broken = worst_loss(neighbouring_scores, lambda s, epsilon: exponential_noise_scales(s, 2 * epsilon))
    assert broken > 1.8

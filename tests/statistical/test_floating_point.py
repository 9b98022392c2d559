"""Attacks on the last bits of what is released (Mironov 2012), 200,000 numbers each.

The doubles that value + noise can reach may depend on the value, and then tell it. Every release
that has a form on a grid must reach the same doubles from all data sets: multiples of a step
that public numbers fix, whose last digits have one law. The same attacks find out sums of doubles
and standard Laplace noise.
"""

import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from dpselect import DPHistogramDensity, DPRidge
from dpselect.base.accuracy_form import NoiseLevels
from dpselect.density.accuracy import counts_noise
from dpselect.mechanisms import above_threshold, reusable_holdout, selection, verification
from dpselect.mechanisms.above_threshold import Comparisons, ReducedTests, ThresholdTest
from dpselect.model_selection.strategies import random_stopping
from dpselect.noise import as_generator, grid_laplace, grid_step, laplace, root_stream
from dpselect.preprocessing import private_bounds
from tests.trials import fitted, scales_of

N = 200_000
FALSE_ALARM = 1e-7
# last digits of the places on the grid that are compared
DIGITS = 6


def stream(*path):
    """The key of a generator that neither warns nor is drawn from the operating system."""
    return root_stream(11).child(*path)


def reached(numbers):
    """Share below 1 that are no multiples of 2^-53: none if 1 was hidden, .27 if it was 0."""
    return np.mean((np.abs(numbers) < 1) & (numbers * 2.0**53 % 1 != 0))


def off_the_grid(numbers, step):
    return np.count_nonzero(np.remainder(numbers, step))


def digits_p_value(pair, step):
    """The p-value of one law for the last digits on two data sets; 0 if one is off the grid."""
    if any(off_the_grid(numbers, step) for numbers in pair):
        return 0.0
    # the remainder of a double is exact
    counts = [
        np.bincount((np.remainder(numbers, 2**DIGITS * step) / step).astype(int), minlength=2**DIGITS)
        for numbers in pair
    ]
    counts = np.array(counts)[:, np.sum(counts, axis=0) > 0]
    return chi2_contingency(counts).pvalue if counts.shape[1] > 1 else 1.0


def test_the_attacks_find_sums_of_doubles_out():
    noise = [laplace(as_generator(stream("twin", i)), N) for i in range(2)]
    pair = [noise[0], 1.0 + noise[1]]
    assert reached(pair[0]) > 0.25 and reached(pair[1]) == 0
    assert digits_p_value(pair, 2.0**-40) == 0
    # noise on a grid, but values that are not: all that is reached tells the value
    noise = [2.0**-40 * np.rint(2.0**40 * r) for r in noise]
    pair = [noise[0], 1 / 3 + noise[1]]
    assert off_the_grid(pair[0], 2.0**-40) == 0 < off_the_grid(pair[1], 2.0**-40)
    # values on the grid, with noise on a coarser one: the last digits stay what they were
    noise = [2.0**-34 * np.rint(2.0**34 * r) for r in noise]
    assert digits_p_value([noise[0], 2.0**-40 + noise[1]], 2.0**-40) < FALSE_ALARM


@pytest.mark.slow
def test_values_that_are_rounded_to_a_grid():
    """All answers that are released one by one go through this function: see below."""
    pair = [
        grid_laplace(as_generator(stream("integers", i)), np.full(N, value), 1.0, 1.0)
        for i, value in enumerate((0.0, 1.0, 1 / 3))
    ]
    assert [reached(numbers) for numbers in pair] == [0, 0, 0]
    for other in pair[1:]:
        assert digits_p_value([pair[0], other], grid_step(1.0)) > FALSE_ALARM


# ---- sums and counts ----


CELLS = 1000
COUNTED = [np.full((20, 1), 0.0005), np.append(np.full((19, 1), 0.0005), [[0.9]], axis=0)]


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "discrete_laplace"])
def test_histograms(noise, monkeypatch):
    noisy = []
    monkeypatch.setattr(
        "dpselect.density.estimator.cell_masses",
        lambda counts: noisy.append(counts) or np.full(CELLS, 1 / CELLS),
    )
    pair = []
    for i, X in enumerate(COUNTED):
        noisy.clear()
        for t in range(N // CELLS):
            DPHistogramDensity(
                noise=noise, bin_width=1 / CELLS, random_state=stream(noise, i, t), bounds=(0, 1)
            ).fit(X)
        pair.append(np.concatenate(noisy))
    step = 2.0**-39 if noise == "laplace" else 1.0
    assert pair[0].size == N and [reached(numbers) for numbers in pair] == [0, 0]
    if noise == "discrete_laplace":
        assert not any(off_the_grid(numbers, 1.0) for numbers in pair)
    else:
        assert digits_p_value(pair, step) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("how", ["path", "fresh"])
def test_histograms_at_every_level(how):
    levels, pair = NoiseLevels(how, 0.1, 2.0), []
    model = DPHistogramDensity(bin_width=1 / CELLS, bounds=(0, 1))
    step = counts_noise(model, CELLS, how).step(levels)
    for i, X in enumerate(COUNTED):
        numbers = []
        for t in range(N // CELLS // 2):
            reduction = model.accuracy_form().reduction(X, None, levels, stream(how, i, t))
            numbers += [reduction.put_noise_on(reduction.counts, epsilon) for epsilon in (0.1, 2.0)]
        pair.append(np.concatenate(numbers))
    assert pair[0].size == N and digits_p_value(pair, step) > FALSE_ALARM


P = 99
ROWS = np.random.default_rng(0).normal(size=(10, P)) / P
REGRESSIONS = [(ROWS, ROWS[:, 0]), (np.vstack([np.eye(P)[:1] / 3, ROWS[1:]]), ROWS[:, 0])]
UPPER = np.triu_indices(P + 1)


def released(gram, moment):
    """The released numbers, but for the constant's square, which is public."""
    return np.append(gram[UPPER][:-1], moment)


def covariance_releases(**parameters):
    pair = []
    for i, (X, y) in enumerate(REGRESSIONS):
        numbers = []
        for t in range(N // 5149 + 1):
            key = stream("ridge", i, t)
            model = DPRidge(random_state=key, **{"target_range": (-1, 1), **parameters})
            model = fitted(model, X, y)
            numbers.append(released(model.gram_, model.moment_))
        pair.append(np.concatenate(numbers))
    return pair


@pytest.mark.slow
def test_covariance_perturbation():
    # the least scale is that of a product of two features, 2.24 / epsilon
    pair = covariance_releases()
    assert pair[0].size >= N and digits_p_value(pair, 2.0**-38) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_covariance_perturbation_in_l2(delta, monkeypatch):
    step = scales_of(DPRidge(norm="l2", delta=delta, target_range=(-1, 1)), 10, P).step
    pair = covariance_releases(norm="l2", delta=delta)
    assert pair[0].size >= N and digits_p_value(pair, step) > FALSE_ALARM
    # the twin rounds the noise alone
    monkeypatch.setattr(
        "dpselect.linear_model.ridge.problem.release", lambda values, noise, step, unit: values + noise
    )
    assert digits_p_value(covariance_releases(norm="l2", delta=delta), step) == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["path", "fresh"])
def test_covariance_perturbation_at_every_level(how, monkeypatch):
    levels, pair = NoiseLevels(how, 0.1, 2.0), []
    model = DPRidge(norm="l1", data_norm_l1=1.0, target_range=(-1, 1))

    class Read(Exception):
        pass

    def stop(gram, moment, rho):
        raise Read(gram, moment)

    for i, (X, y) in enumerate(REGRESSIONS):
        numbers = []
        for t in range(N // 5149 // 2 + 1):
            with monkeypatch.context() as patch:
                reduction = model.accuracy_form().reduction(X, y, levels, stream(how, i, t))
                # means are sums over n: a power of two would keep the grid, 10 does not
                reduction.n = 1
                patch.setattr("dpselect.linear_model.ridge.accuracy.Decomposition.of", stop)
                for epsilon in (0.1, 2.0):
                    with pytest.raises(Read) as found:
                        reduction.read(epsilon)
                    numbers.append(released(*found.value.args))
        pair.append(np.concatenate(numbers))
    step = reduction.noise.step(levels)
    assert pair[0].size >= N and digits_p_value(pair, step) > FALSE_ALARM


# ---- answers that are released one by one ----


def answers(module, monkeypatch, ask, value):
    """Ask once, and N times at once what was then asked of `grid_laplace`."""
    asked = []

    def spy(generator, value, scale, epsilon):
        asked.append((value, scale, epsilon))
        return grid_laplace(generator, value, scale, epsilon)

    monkeypatch.setattr(module, "grid_laplace", spy)
    answer = ask(value)
    ((center, scale, epsilon),) = asked
    step = grid_step(scale)
    # nothing is added to it or taken off afterwards
    assert off_the_grid(answer, step) == 0
    generator = as_generator(stream("answers", str(value)))
    return grid_laplace(generator, np.full(N, center), scale, epsilon), step


def verified(value):
    question = verification.Verification(epsilon=0.7, sensitivity=0.7, failure_probability=0.1)
    return verification.verify(value, 0.0, question, stream("verify"))[1]


def held_out(value):
    holdout = reusable_holdout.ReusableHoldout(0.0, 0.5, 1, 2, random_state=stream("holdout"))
    while True:
        # the training value is given as it is
        answer = holdout.answer(-100.0, value, width=2.0)
        if answer != -100.0:
            return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "module, ask",
    [
        (verification, verified),
        (reusable_holdout, held_out),
    ],
    ids=["verify", "thresholdout"],
)
def test_answers(module, ask, monkeypatch):
    found = []
    for value in (0.0, 1.0):
        with monkeypatch.context() as patch:
            found.append(answers(module, patch, ask, value))
    (one, step), (other, _) = found
    assert reached(one) == reached(other) == 0
    assert digits_p_value([one, other], step) > FALSE_ALARM


def test_scores_of_random_stopping(monkeypatch):
    """They are released inside the proof, though not outside."""
    seen, run_all = [], random_stopping.random_stopping

    def spy(run, n_candidates, law, state):
        def told(index, noise):
            score, model = run(index, noise)
            seen.append(score)
            return score, model

        return run_all(told, n_candidates, law, state)

    monkeypatch.setattr(random_stopping, "random_stopping", spy)
    from dpselect import DPLogisticRegression, StabilityGridSearchCV

    X = np.random.default_rng(0).normal(size=(300, 2)) / 3
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1]),
        {"alpha": [0.1, 1.0]},
        epsilon=1.0,
        strategy="random_stopping",
        scoring="accuracy",
    )
    search.fit(X, (X[:, 0] > 0).astype(int))
    # a scale of 1 / (n epsilon) is above 2^-10
    assert len(seen) > 0 and off_the_grid(np.array(seen), 2.0**-51) == 0
    assert len({score % 2.0**-30 for score in seen}) == len(seen)


# ---- choices and comparisons: what they are made of ----


@pytest.mark.parametrize(
    "mechanism, step",
    [
        (lambda scores, state: selection.noisy_argmax(scores, np.ones(N), 1.0, state), 2.0**-39),
        (lambda scores, state: selection.exponential_mechanism(scores, 1.0, 1.0, state), 2.0**-39),
    ],
    ids=["noisy_argmax", "exponential_mechanism"],
)
def test_choices(mechanism, step, monkeypatch):
    pair = []
    monkeypatch.setattr(selection, "largest_sum", lambda values, noise: pair.append(values + noise) or 0)
    scores = np.random.default_rng(0).normal(size=N)
    for i, sign in enumerate((1, -1)):
        mechanism(scores * sign, stream("choice", i))
    assert digits_p_value(pair, step) > FALSE_ALARM


def test_private_bounds(monkeypatch):
    pair = []

    def spy(values, noise):
        pair.append((values + noise).ravel())
        return selection.largest_sum(values, noise)

    monkeypatch.setattr(private_bounds, "largest_sum", spy)
    X = np.random.default_rng(0).normal(size=(77, N // 2592 + 1))
    for i, shift in enumerate((0.0, 3.0)):
        private_bounds.DPBoundsScaler(tail=1 / 30, random_state=stream("bounds", i)).fit(X + shift)
    step = grid_step(4.0 * X.shape[1])
    assert pair[0].size >= N and digits_p_value(pair, step) > FALSE_ALARM


@pytest.mark.slow
def test_comparisons(monkeypatch):
    """Both sides of each comparison, on a grid for all losses and exactly."""
    seen, at_most = [], above_threshold._at_most

    def spy(loss, query_noise, threshold, threshold_noise, step):
        seen.append(
            (
                float(above_threshold.nearest_multiple(loss, step)),
                query_noise,
                threshold,
                threshold_noise,
                step,
            )
        )
        return at_most(loss, query_noise, threshold, threshold_noise, step)

    monkeypatch.setattr(above_threshold, "_at_most", spy)
    rng = np.random.default_rng(0)
    for i in range(500):
        comparisons = Comparisons(ThresholdTest(0.3, rng.normal(), 2 / 0.3, 4 / 0.3), stream(i))
        for loss in rng.normal(size=5):
            comparisons.accepts(loss)
        tests = ReducedTests(np.geomspace(0.1, 1.0, 5), rng.normal(size=5), 1.0)
        above_threshold.reduced_above_threshold(rng.normal(size=5), tests, stream(i))
    assert len(seen) > 3000
    for *numbers, step in seen:
        assert math.log2(step).is_integer() and off_the_grid(np.array(numbers), step) == 0

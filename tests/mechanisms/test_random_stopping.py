import gc
import itertools
import math
import weakref

import numpy as np
import pytest
from scipy.stats import chisquare, poisson

from dpselect.mechanisms.random_stopping import (
    random_stopping,
    run_delta,
    run_epsilon,
    total_epsilon,
)
from dpselect.mechanisms.stopping_laws import TruncatedNegativeBinomial, geometric
from dpselect.noise import as_generator

from .test_stopping_laws import FALSE_ALARM, LAWS, logarithmic, masses

EPSILONS = [0.01, 0.3, 1.0, 4.0]


# Exact laws and attacks


def selection_law(q, scores, p):
    """Return the law of the first best of K runs of law `q`, given the masses `p` of K."""
    k = np.arange(1, len(p))
    chosen = np.zeros(len(q))
    for score in np.unique(scores[q > 0]):
        tie = scores == score
        low, group = q[scores < score].sum(), q[tie].sum()
        # high^k - low^k, where a small difference keeps its digits
        share = group / (low + group)
        reached = np.ones(len(k)) if share >= 1 else -np.expm1(k * np.log1p(-share))
        chosen[tie] = q[tie] / group * (p[1:] @ (min(1.0, low + group) ** k * reached))
    return chosen


def neighbour(q, epsilon, order):
    """Return the vertex of the laws that are epsilon-close to `q` that raises it in `order`."""
    ratios, left = np.full(len(q), math.exp(-epsilon)), 1 - math.exp(-epsilon)
    for y in order:
        step = min(math.exp(epsilon) - math.exp(-epsilon), left / q[y])
        ratios[y] += step
        left -= step * q[y]
    return q * ratios


def random_cases(epsilon, n_cases=150):
    """Return laws of a run on neighbouring data sets, of two or three candidates, and scores."""
    rng = np.random.default_rng(0)
    cases = []
    for _ in range(n_cases):
        candidates, outputs = rng.integers(2, 4), rng.integers(2, 4)
        runs = rng.dirichlet(np.full(outputs, rng.choice([0.3, 1.0, 5.0])), size=candidates)
        runs = np.maximum(runs, 1e-6)
        runs /= runs.sum(axis=1, keepdims=True)
        moved = [neighbour(run, epsilon, rng.permutation(outputs)) for run in runs]
        scores = rng.integers(0, rng.choice([3, 100]), size=candidates * outputs)
        cases.append((runs.ravel() / candidates, np.ravel(moved) / candidates, scores))
    return cases


def sharpest_case(epsilon, mass=1e-6):
    """Return three outputs of one candidate: a rare one between worse and better ones."""
    better, rare = 1 / (1 + math.exp(epsilon)), mass * math.exp(epsilon)
    q = np.array([1 - better - rare, rare, better])
    q_neighbour = q * np.exp([-epsilon, -epsilon, epsilon])
    return q, q_neighbour, np.array([0, 1, 2])


def top_case(epsilon):
    q = np.array([1.0, math.exp(epsilon)]) / (1 + math.exp(epsilon))
    return q, q[::-1], np.array([0, 1])


def worst_loss(p, epsilon):
    cases = [*random_cases(epsilon), sharpest_case(epsilon), top_case(epsilon)]
    worst = 0.0
    for q, q_neighbour, scores in cases:
        ours, theirs = selection_law(q, scores, p), selection_law(q_neighbour, scores, p)
        # a probability below rounding is no evidence
        seen = (ours > 1e-12) & (theirs > 1e-12)
        worst = max(worst, np.abs(np.log(ours[seen] / theirs[seen])).max())
    return worst


def test_formula_of_the_selection_law_is_that_of_counting():
    q, scores = np.array([0.1, 0.2, 0.3, 0.15, 0.25]), np.array([2, 0, 1, 2, 1])
    expected = np.zeros(5)
    for runs in itertools.product(range(5), repeat=4):
        expected[max(runs, key=lambda y: scores[y])] += q[list(runs)].prod()
    np.testing.assert_allclose(selection_law(q, scores, np.array([0, 0, 0, 0, 1.0])), expected)


def test_attacked_runs_have_their_loss():
    for epsilon in EPSILONS:
        for q, q_neighbour, _ in [*random_cases(epsilon), sharpest_case(epsilon)]:
            assert q.sum() == pytest.approx(1) and q_neighbour.sum() == pytest.approx(1)
            assert np.abs(np.log(q / q_neighbour)).max() <= epsilon + 1e-5


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_loss_stays_under_the_total_and_comes_close(law, epsilon):
    total = total_epsilon(epsilon, law)
    worst = worst_loss(masses(law), epsilon)
    assert 0.999 * total < worst < total * (1 + 1e-6)


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0, 3.0])
def test_total_is_close_to_the_published_one_if_there_are_many_runs(eta):
    for epsilon in EPSILONS:
        published = (2 + eta) * epsilon
        totals = [
            total_epsilon(epsilon, TruncatedNegativeBinomial(eta, g))
            for g in (0.9, 0.5, 0.1, 1e-3, 1e-9)
        ]
        assert (np.diff(totals) > 0).all() and epsilon < totals[0] and totals[-1] < published
        assert totals[-1] == pytest.approx(published, rel=1e-4)


@pytest.mark.parametrize("mean", [2, 4, 10])
def test_a_fixed_number_of_runs_is_caught(mean):
    fixed = np.zeros(mean + 1)
    fixed[mean] = 1.0
    for law in (geometric(mean), logarithmic(mean)):
        assert worst_loss(fixed, 0.3) > 1.2 * total_epsilon(0.3, law)
    assert worst_loss(fixed, 0.3) == pytest.approx(mean * 0.3)


def test_a_law_other_than_the_stated_one_is_caught():
    spending = total_epsilon(1.0, geometric(2))
    assert worst_loss(masses(geometric(10)), 1.0) > 1.3 * spending
    poisson_runs = poisson.pmf(np.arange(100), 10)
    assert worst_loss(poisson_runs, 1.0) > 3.0
    spending = total_epsilon(1.0, logarithmic(10))
    assert worst_loss(masses(geometric(10)), 1.0) > 1.1 * spending


def test_scores_without_noise_are_caught():
    # the output of a run is its candidate, drawn without the data; the scores tell the data sets
    p, q = masses(geometric(10)), np.full(2, 0.5)
    ours, theirs = (selection_law(q, np.array(s), p) for s in ([0, 1], [1, 0]))
    assert np.abs(np.log(ours / theirs)).max() > 2.0


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_each_run_gets_its_share(law):
    for total in (1e-4, 0.5, 3.0, 20.0):
        run = run_epsilon(total, law)
        assert total_epsilon(run, law) <= total
        assert total_epsilon(run * (1 + 1e-12), law) > total
    assert run_epsilon(math.inf, law) == math.inf == total_epsilon(math.inf, law)
    assert total_epsilon(0.0, law) == 0.0


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_no_digits_cancel_in_a_small_loss(law):
    # what the choice adds is odd in epsilon, so its square does not occur
    share = 1 + (1 + law.eta) * (1 - law.gamma) / (1 + law.gamma)
    assert total_epsilon(1e-9, law) == pytest.approx(1e-9 * share, rel=1e-13)
    run = run_epsilon(1e-9, law)
    assert run * share <= 1e-9 * (1 + 1e-14) and run * share >= 1e-9 * (1 - 1e-13)
    # with a delta, both forms agree where they meet
    below, above = (law.selection_loss(1e-4 * x, 1e-9) for x in (1 - 1e-12, 1 + 1e-12))
    assert below == pytest.approx(above, rel=1e-9)


def with_delta(case, delta, rng):
    """Runs that end, with probability delta, in an output that tells the data set."""
    q, q_neighbour, scores = case
    place = rng.choice([scores.min() - 1, scores.max() + 1, *scores], size=2)
    zero = np.array([0.0])
    return (
        np.concatenate([(1 - delta) * q, [delta], zero]),
        np.concatenate([(1 - delta) * q_neighbour, zero, [delta]]),
        np.concatenate([scores, place]),
    )


def exceeding(p, epsilon, total, delta):
    """The largest probability of an event, less exp(total) times that on a neighbour."""
    rng, worst = np.random.default_rng(1), 0.0
    cases = [*random_cases(epsilon, 60), *40 * [sharpest_case(epsilon)], *10 * [top_case(epsilon)]]
    for q, q_neighbour, scores in [with_delta(case, delta, rng) for case in cases]:
        ours, theirs = selection_law(q, scores, p), selection_law(q_neighbour, scores, p)
        for one, other in ((ours, theirs), (theirs, ours)):
            worst = max(worst, np.maximum(one - math.exp(total) * other, 0.0).sum())
    return worst


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("epsilon, delta", [(0.3, 1e-7), (0.3, 0.02), (2.0, 1e-4), (2.0, 0.2)])
def test_a_delta_of_the_runs_counts_as_often_as_there_are_runs_and_hardly_less(law, epsilon, delta):
    total, p = total_epsilon(epsilon, law, delta), masses(law)
    worst, most = exceeding(p, epsilon, total, delta), law.mean * delta
    assert worst <= most * (1 + 1e-6)
    if law.mean * delta < 1e-4 and law.gamma > 1e-3:
        assert worst > 0.98 * most
    # counted as that of one run
    assert law.mean < 2 or delta > 1e-4 or worst > 2 * delta


def test_an_epsilon_that_forgets_the_delta_of_the_runs_is_caught():
    """A rare run, the best of all but for a better one that a delta brings in."""
    law, epsilon, delta, rare = geometric(100), 0.1, 0.05, 1e-9
    a = math.exp(epsilon)
    q, q_neighbour = np.array([1 - a * rare, a * rare, 0]), np.array([1 - delta - rare, rare, delta])
    for one, other in ((q, q_neighbour), (q_neighbour, q)):
        assert np.maximum(one - a * other, 0).sum() <= delta * (1 + 1e-9)
    ours, theirs = (selection_law(each, np.arange(3), masses(law)) for each in (q, q_neighbour))
    found = math.log(ours[1] / theirs[1])
    assert total_epsilon(epsilon, law) < 0.2 * found
    assert 0.999 * total_epsilon(epsilon, law, delta) < found <= total_epsilon(epsilon, law, delta)


def test_each_run_gets_its_share_of_both():
    for law in LAWS.values():
        d = run_delta(1e-6, law)
        assert (1 - 1e-8) * 1e-6 < d * law.mean <= 1e-6
        run = run_epsilon(0.5, law, d)
        assert total_epsilon(run, law, d) <= 0.5 < total_epsilon(run * (1 + 1e-12), law, d)
    with pytest.raises(ValueError, match="leaves nothing of epsilon"):
        run_epsilon(0.1, geometric(10), 0.9)


def test_no_accounting_can_use_a_delta_for_much():
    delta = 1e-6
    for epsilon in (0.1, 1.0, 3.0):
        for law in (geometric(10), logarithmic(10), geometric(100)):
            found, p = 0.0, masses(law)
            for mass in np.geomspace(1e-6, 1e-2, 50):
                q, q_neighbour, scores = sharpest_case(epsilon, mass)
                ours, theirs = selection_law(q, scores, p), selection_law(q_neighbour, scores, p)
                if ours[1] > delta:
                    found = max(found, math.log((ours[1] - delta) / theirs[1]))
            assert 0.97 * total_epsilon(epsilon, law) < found < total_epsilon(epsilon, law)


# The mechanism


RUNS = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
SCORES = np.array([[0.0, 1.0, 3.0], [1.0, 2.0, 2.0]])


def tabled_run(index, stream):
    output = int(as_generator(stream).choice(3, p=RUNS[index]))
    return SCORES[index, output], output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["geometric", "heavy"])
def test_released_law_is_the_one_that_is_attacked_above(name):
    law, n = LAWS[name], 1500
    if name == "geometric":
        law = geometric(3)
    rng = np.random.default_rng(0)
    counts = np.zeros(6)
    for _ in range(n):
        index, output = random_stopping(tabled_run, 2, law, rng)
        counts[3 * index + output] += 1
    expected = selection_law(RUNS.ravel() / 2, SCORES.ravel(), masses(law))
    assert chisquare(counts, n * expected / expected.sum()).pvalue > FALSE_ALARM


def calls(scores, random_state=0):
    """Return what was released, and the calls, for scores that are given one by one."""
    seen, scores = [], itertools.chain(scores, itertools.repeat(-1e9))

    def run(index, stream):
        seen.append((index, stream))
        return next(scores), len(seen)

    return random_stopping(run, 5, geometric(12), random_state), seen


def test_best_run_is_released_and_the_first_of_equals():
    (index, output), seen = calls([1.0, 3.0, 2.0, 3.0], random_state=1)
    assert len(seen) > 4 and output == 2 and index == seen[1][0]


@pytest.mark.parametrize("scores", [[math.nan, 1.0, 0.0], [1.0, math.nan, 0.0]])
def test_a_score_that_is_not_a_number_is_the_least(scores):
    (_, output), seen = calls(scores, random_state=1)
    assert len(seen) > 2 and scores[output - 1] == 1.0
    assert calls([math.nan] + 100 * [-math.inf], random_state=1)[0][1] == 1


def test_runs_differ_and_are_reproducible():
    released, seen = calls([], random_state=1)
    assert (released, seen) == calls([], random_state=1)
    assert len({stream.key for _, stream in seen}) == len(seen) > 5
    assert len({index for index, _ in seen}) > 1
    assert len({len(calls([], random_state=None)[1]) for _ in range(30)}) > 1


@pytest.mark.slow
def test_other_runs_are_forgotten():
    class Model:
        pass

    models = []

    def run(index, stream):
        model = Model()
        models.append(weakref.ref(model))
        return float(as_generator(stream).random()), model

    released = random_stopping(run, 3, geometric(20), random_state=1)
    gc.collect()
    assert len(released) == 2 and len(models) > 5
    assert [model() for model in models if model() is not None] == [released[1]]

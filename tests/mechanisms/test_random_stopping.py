import gc
import itertools
import math
import weakref

import numpy as np
import pytest
from scipy.stats import chisquare, geom, logser, nbinom, poisson

from dpselect.mechanisms.random_stopping import (
    Poisson,
    TruncatedNegativeBinomial,
    geometric,
    logarithmic,
    random_stopping,
    run_epsilon,
    total_epsilon,
)
from dpselect.mechanisms.renyi import ORDERS, pure_rdp, rdp_to_epsilon
from dpselect.noise import as_generator

FALSE_ALARM = 1e-7
with_shape = TruncatedNegativeBinomial.from_mean
LAWS = {
    "geometric": geometric(10),
    "logarithmic": logarithmic(10),
    "heavy": with_shape(4, eta=-0.5),
    "light": with_shape(10, eta=5.0),
    "short": geometric(1.5),
    "poisson": Poisson(3.0),
}
EPSILONS = [0.01, 0.3, 1.0, 4.0]


def masses(law):
    """Return the probabilities of 0, 1, ... runs, but for 1e-16 of them."""
    size = 1024
    while law.pmf(size) > 1e-20 or size < law.mean:
        size *= 2
    return law.pmf(np.arange(size))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_masses_sum_to_one_and_have_the_mean(law):
    p = masses(law)
    assert (p >= 0).all() and p.sum() == pytest.approx(1, abs=1e-10)
    assert p @ np.arange(len(p)) == pytest.approx(law.mean, rel=1e-9)


def test_masses_are_those_of_known_laws():
    k = np.arange(60)
    for gamma in (0.9, 0.3, 0.01):
        negative = nbinom.pmf(k, 2.5, gamma) / nbinom.sf(0, 2.5, gamma)
        for eta, expected in [
            (1.0, geom.pmf(k, gamma)), (0.0, logser.pmf(k, 1 - gamma)), (2.5, negative)
        ]:
            expected[0] = 0
            law = TruncatedNegativeBinomial(eta, gamma)
            np.testing.assert_allclose(law.pmf(k), expected, rtol=1e-9)
    np.testing.assert_allclose(Poisson(7.0).pmf(k), poisson.pmf(k, 7.0), rtol=1e-9)
    assert geometric(4).pmf(1) == pytest.approx(0.25) and geometric(4).pmf(-1) == 0.0


@pytest.mark.parametrize("eta", [-0.9, -0.3, -1e-9, 0.0, 1e-9, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("mean", [1.001, 2.0, 50.0, 1e4])
def test_laws_from_their_means(mean, eta):
    law = with_shape(mean, eta)
    assert law.mean == pytest.approx(mean, rel=1e-9)
    # with shapes near 0 the formulas do not lose digits
    if abs(eta) < 1e-6:
        assert law.gamma == pytest.approx(logarithmic(mean).gamma, rel=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TruncatedNegativeBinomial(-1.0, 0.5),
        lambda: TruncatedNegativeBinomial(math.nan, 0.5),
        lambda: TruncatedNegativeBinomial(1.0, 0.0),
        lambda: TruncatedNegativeBinomial(1.0, 1.0),
        lambda: geometric(1.0),
        lambda: geometric(math.inf),
        lambda: with_shape(1e6, -0.9999),
        lambda: Poisson(0.9),
    ],
)
def test_laws_that_do_not_exist_are_refused(make):
    with pytest.raises(ValueError, match="give"):
        make()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_draws_have_the_law(law):
    rng = np.random.default_rng(0)
    draws = np.array([law.draw(rng) for _ in range(2500)])
    p = masses(law)
    classes = np.minimum(np.cumsum(p) * 40, 39).astype(int)  # of about equal probability
    counts = np.bincount(classes[draws], minlength=40)
    expected = np.bincount(classes, weights=p, minlength=40)
    seen = expected > 1e-3
    assert counts[~seen].sum() <= 8 and seen.sum() > 2
    expected = expected[seen] / expected[seen].sum() * counts[seen].sum()
    assert chisquare(counts[seen], expected).pvalue > FALSE_ALARM


def test_draws_beyond_the_first_block():
    law = logarithmic(2000)
    rng = np.random.default_rng(0)
    draws = [law.draw(rng) for _ in range(500)]
    far = law.pmf(np.arange(5000)).sum()
    above = sum(draw >= 5000 for draw in draws)
    assert abs(above - 500 * (1 - far)) < 5.5 * math.sqrt(500 * far * (1 - far)) and above > 10


def test_draws_do_not_depend_on_the_blocks(monkeypatch):
    draws = [law.draw(i) for law in LAWS.values() for i in range(40)]
    monkeypatch.setattr("dpselect.mechanisms.random_stopping.BLOCK", 3)
    assert draws == [law.draw(i) for law in LAWS.values() for i in range(40)]


# Exact laws and attacks


def selection_law(q, scores, p):
    """Return the law of the first best of K runs of law `q`, given the masses `p` of K."""
    k = np.arange(1, len(p))
    chosen = np.zeros(len(q))
    for score in np.unique(scores):
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
        totals = [total_epsilon(epsilon, TruncatedNegativeBinomial(eta, g))
                  for g in (0.9, 0.5, 0.1, 1e-3, 1e-9)]
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
    charged = total_epsilon(1.0, geometric(2))
    assert worst_loss(masses(geometric(10)), 1.0) > 1.3 * charged
    assert worst_loss(masses(Poisson(10)), 1.0) > 3.0
    charged = total_epsilon(1.0, logarithmic(10))
    assert worst_loss(masses(geometric(10)), 1.0) > 1.1 * charged


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


# Renyi curves


def renyi(p, q, orders):
    """Return the larger one of D_a(p || q) and D_a(q || p) at each order."""
    a = orders[:, None]
    terms = [a * np.log(x) + (1 - a) * np.log(y) for x, y in ((p, q), (q, p))]
    return np.max([np.logaddexp.reduce(t, axis=1) for t in terms], axis=0) / (orders - 1)


RENYI_LAWS = {**LAWS, "few": Poisson(1.0)}


@pytest.mark.parametrize("law", RENYI_LAWS.values(), ids=RENYI_LAWS)
def test_renyi_curves_of_exact_laws_stay_under_the_bound(law):
    p, orders = masses(law), ORDERS[(ORDERS < 1e3)][::4]
    without_slope = False
    for epsilon in (0.3, 2.0):
        for q, q_neighbour, scores in [*random_cases(epsilon, 60), sharpest_case(epsilon)]:
            rdp = renyi(q, q_neighbour, orders)
            ours, theirs = selection_law(q, scores, p), selection_law(q_neighbour, scores, p)
            seen = (ours > 0) & (theirs > 0)
            none = [p[0]] if p[0] > 0 else []  # no run at all
            found = renyi(np.r_[ours[seen], none], np.r_[theirs[seen], none], orders)
            assert (found <= law.selection_rdp(rdp, orders) + 1e-9).all()
            without_slope |= (found > rdp + math.log(law.mean) / (orders - 1) + 1e-3).any()
    assert without_slope or law.mean < 2


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 4.0, math.inf])
@pytest.mark.parametrize("mean", [1.5, 10.0, 300.0])
@pytest.mark.parametrize("base", ["gaussian", "laplace"])
def test_renyi_curves_agree_with_dp_accounting(eta, mean, base):
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    rdp_accountant = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = np.array([1.02, 1.1, 1.5, 2, 3, 5, 8, 16, 40, 128, 1024.0])
    make = dp_event.GaussianDpEvent if base == "gaussian" else dp_event.LaplaceDpEvent
    event = make(noise_multiplier=3.0)

    def curve(event):
        return rdp_accountant.RdpAccountant(orders=list(orders)).compose(event).rdp

    law = Poisson(mean) if eta == math.inf else with_shape(mean, eta)
    # a higher order bounds a lower one, which is not used there for the Poisson law
    expected = curve(dp_event.RepeatAndSelectDpEvent(event, mean, eta))
    expected = np.minimum.accumulate(expected[::-1])[::-1]
    np.testing.assert_allclose(law.selection_rdp(curve(event), orders), expected, rtol=1e-6)


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0])
def test_many_runs_with_gaussian_noise_cost_less_than_three(eta):
    delta, run = 1e-6, 0.01 * ORDERS
    one = rdp_to_epsilon(run, delta)
    totals = [rdp_to_epsilon(with_shape(mean, eta).selection_rdp(run), delta) for mean in (2, 100)]
    assert one < totals[0] < totals[1] < 2.6 * one


def test_delta_does_not_help_if_runs_have_a_pure_loss():
    for epsilon in (0.1, 0.5, 2.0, 10.0):
        for law in [*LAWS.values(), geometric(1000), logarithmic(1000)]:
            curve = law.selection_rdp(pure_rdp(epsilon))
            total = total_epsilon(epsilon, law)
            # orders above 1 / delta could give a part of about delta
            assert rdp_to_epsilon(curve, delta=1e-6) > total * (1 - 1e-4)


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


@pytest.mark.parametrize("name", ["geometric", "heavy", "poisson"])
def test_released_law_is_the_one_that_is_attacked_above(name):
    law, n = LAWS[name], 1500
    if name == "geometric":
        law = geometric(3)
    rng = np.random.default_rng(0)
    counts = np.zeros(7)
    for _ in range(n):
        index, output = random_stopping(tabled_run, 2, law, rng)
        counts[6 if index is None else 3 * index + output] += 1
    p = masses(law)
    expected = np.append(selection_law(RUNS.ravel() / 2, SCORES.ravel(), p), p[0])
    assert counts[6] == 0 or name == "poisson"
    seen = expected > 0
    assert chisquare(counts[seen], n * expected[seen] / expected.sum()).pvalue > FALSE_ALARM


def calls(scores, random_state=0, law=None):
    """Return what was released, and the calls, for scores that are given one by one."""
    law = law or geometric(12)
    seen, scores = [], itertools.chain(scores, itertools.repeat(-1e9))

    def run(index, stream):
        seen.append((index, stream))
        return next(scores), len(seen)

    return random_stopping(run, 5, law, random_state), seen


def test_best_run_is_released_and_the_first_of_equals():
    (index, output), seen = calls([1.0, 3.0, 2.0, 3.0], random_state=1)
    assert len(seen) > 4 and output == 2 and index == seen[1][0]


@pytest.mark.parametrize("scores", [[math.nan, 1.0, 0.0], [1.0, math.nan, 0.0]])
def test_a_score_that_is_not_a_number_is_the_least(scores):
    (_, output), seen = calls(scores, random_state=1)
    assert len(seen) > 2 and scores[output - 1] == 1.0
    assert calls([math.nan] + 100 * [-math.inf], random_state=1)[0][1] == 1


def test_no_run():
    released = [calls([], random_state=i, law=Poisson(1.0)) for i in range(20)]
    assert all((r == (None, None)) == (not seen) for r, seen in released)
    assert any(not seen for _, seen in released)


def test_runs_differ_and_are_reproducible():
    released, seen = calls([], random_state=1)
    assert (released, seen) == calls([], random_state=1)
    assert len({stream.key for _, stream in seen}) == len(seen) > 5
    assert len({index for index, _ in seen}) > 1
    assert len({len(calls([], random_state=None)[1]) for _ in range(30)}) > 1


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

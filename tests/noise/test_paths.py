"""Laws of the noise-reduction paths, each with a broken twin that the same check refuses."""

import numpy as np
import pytest
from scipy import stats

from dpselect.noise import as_generator, spherical_laplace
from dpselect.noise.paths import (
    BrownianPath,
    DiscreteLaplacePath,
    SphericalLaplacePath,
    _JumpPath,
)

from ..statistical.audit import loss_lower_bound

N = 25_000
# a p-value below this is a false alarm with probability 1e-7
ALARM = 1e-7
LEVELS = (0.3, 0.7, 1.5)


def lose_jumps(monkeypatch):
    """Let paths have half of their jumps: an intensity of 1/e in place of 2/e."""
    whole = _JumpPath.__init__

    def halved(self, generator, low, high, first, places, jumps):
        kept = generator.random(len(places)) < 0.5
        whole(self, generator, low, high, first, places[kept], jumps[kept])

    monkeypatch.setattr(_JumpPath, "__init__", halved)


def pooled_chisquare(counts, expected):
    """Return the p-value of Pearson's test, cells of fewer than 20 pooled."""
    counts, expected = np.ravel(counts), np.ravel(expected)
    small = expected < 20
    counts = np.append(counts[~small], counts[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    kept = expected > 0
    return stats.chisquare(counts[kept], expected[kept] * counts.sum() / expected.sum()).pvalue


def discrete_laplace_law(epsilon, k):
    """Return the probabilities of a discrete Laplace variable of ratio exp(-epsilon)."""
    return np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(k))


# Laplace


def laplace_pvalue(path, epsilon):
    return stats.kstest(path.read(epsilon).ravel() * epsilon, stats.laplace().cdf).pvalue


def ligett_values(generator, n, levels):
    """Read Laplace noise on a grid by algorithm 1 of Ligett et al., from the last level."""
    path_values = [generator.laplace(size=n) / levels[-1]]
    for e, larger in zip(levels[-2::-1], levels[:0:-1], strict=True):
        moves = generator.random(n) >= (e / larger) ** 2
        path_values.append(path_values[-1] + moves * generator.laplace(size=n) / e)
    return np.array(path_values[::-1])


def prefix_pvalues(path_values, other_models):
    """Compare the joint laws of prefixes, shape (n_levels, N), by some of their statistics."""
    pvalues = []
    for weights in ((1, 1, 1), (1, -1, 0), (0, 1, -1), (1, -2, 1), (-1, 3, 2)):
        pair = [np.tensordot(weights, r, axes=1) for r in (path_values, other_models)]
        pvalues.append(stats.ks_2samp(*pair).pvalue)
    return pvalues


# integers


def discrete_joint_law(levels, k):
    """Return the law of a prefix of three levels on k x k x k, by the discrete rule.

    From a level to the next noisier one: keep, or add a discrete Laplace variable.
    """
    difference = k[:, None] - k
    law = discrete_laplace_law(levels[2], k)[None, None, :]
    for t in (1, 0):
        keep = (np.sinh(levels[t] / 2) / np.sinh(levels[t + 1] / 2)) ** 2
        step = keep * (difference == 0) + (1 - keep) * discrete_laplace_law(levels[t], difference)
        law = law * (step[None] if t == 1 else step[:, :, None])
    return law


def loss_of_prefix(law):
    """Return the largest log-ratio of the laws of value + noise for the values 0 and 1."""
    return np.abs(np.log(law[1:, 1:, 1:] / law[:-1, :-1, :-1])).max()


def test_discrete_rule_has_the_right_marginals():
    wide, k = np.arange(-400, 401), np.arange(-20, 21)
    keep = (np.sinh(LEVELS[0] / 2) / np.sinh(LEVELS[1] / 2)) ** 2
    law = discrete_laplace_law(LEVELS[1], wide)
    moved = np.convolve(law, discrete_laplace_law(LEVELS[0], wide), mode="same")
    found = (keep * law + (1 - keep) * moved)[np.searchsorted(wide, k)]
    assert found == pytest.approx(discrete_laplace_law(LEVELS[0], k), rel=1e-9)


def test_discrete_prefix_costs_its_last_epsilon_exactly():
    k = np.arange(-15, 16)
    assert loss_of_prefix(discrete_joint_law(LEVELS, k)) <= LEVELS[-1] + 1e-9
    # independent noise at the three levels costs the sum
    a, b, c = (discrete_laplace_law(e, k) for e in LEVELS)
    independent = a[:, None, None] * b[:, None] * c
    assert loss_of_prefix(independent) == pytest.approx(sum(LEVELS))


def discrete_prefix_pvalue(path, edge=4):
    """Compare a path's values at three levels with the exact joint law."""
    path_values = [path.read(e).ravel() for e in LEVELS]
    k = np.arange(-60, 61)
    cells = np.clip(k, -edge, edge) + edge
    expected = np.zeros((2 * edge + 1,) * 3)
    np.add.at(expected, np.ix_(cells, cells, cells), discrete_joint_law(LEVELS, k))
    counts = np.zeros(expected.shape)
    np.add.at(counts, tuple(np.clip(r, -edge, edge) + edge for r in path_values), 1)
    return pooled_chisquare(counts, expected * counts.sum())


@pytest.mark.slow
def test_discrete_prefix_is_that_of_the_discrete_rule():
    assert discrete_prefix_pvalue(DiscreteLaplacePath(as_generator(0), 4 * N, 0.2, 3.0)) > ALARM
    # the process may begin at the last level, or far beyond
    assert discrete_prefix_pvalue(DiscreteLaplacePath(as_generator(1), 4 * N, 0.3, 1.5)) > ALARM
    assert discrete_prefix_pvalue(DiscreteLaplacePath(as_generator(2), 4 * N, 0.2, 800.0)) > ALARM


@pytest.mark.slow
def test_discrete_prefix_check_catches_lost_jumps_and_independent_noise(monkeypatch):
    class Independent:
        def read(self, epsilon):
            return DiscreteLaplacePath(generator, 4 * N, epsilon, epsilon).read(epsilon)

    generator = as_generator(3)
    assert discrete_prefix_pvalue(Independent()) < ALARM
    lose_jumps(monkeypatch)
    assert discrete_prefix_pvalue(DiscreteLaplacePath(as_generator(0), 4 * N, 0.2, 3.0)) < ALARM


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5, 2.0, 6.0])
def test_discrete_marginals(epsilon):
    path_values = DiscreteLaplacePath(as_generator(4), (N, 2), 0.02, 6.0).read(epsilon)
    assert path_values.shape == (N, 2) and path_values.dtype == np.int64
    edge = int(10 / epsilon) + 5
    k = np.arange(-edge, edge + 1)
    law = discrete_laplace_law(epsilon, k)
    law[[0, -1]] = np.exp(-epsilon * edge) / (1 + np.exp(-epsilon))
    counts = np.bincount(np.clip(path_values.ravel(), -edge, edge) + edge, minlength=len(k))
    assert pooled_chisquare(counts, law * path_values.size) > ALARM


@pytest.mark.slow
def test_discrete_at_the_ends_of_what_it_takes():
    path = DiscreteLaplacePath(as_generator(5), 20_000, 1e-14, 800.0)
    assert not path.read(800.0).any() and not path.read(50.0).any()
    for epsilon in (1e-14, 1e-12, 3e-7, 1e-4):
        assert laplace_pvalue(path, epsilon) > ALARM
    # both bounds small, and both large
    narrow = DiscreteLaplacePath(as_generator(6), 20_000, 1e-14, 2e-14)
    assert laplace_pvalue(narrow, 1e-14) > ALARM and laplace_pvalue(narrow, 2e-14) > ALARM
    assert not DiscreteLaplacePath(as_generator(7), 1000, 700.0, 1e5).read(700.0).any()
    with pytest.raises(ValueError, match="do not fit"):
        DiscreteLaplacePath(as_generator(), 1, 9e-15, 1.0)


def test_discrete_number_of_jumps():
    # twice the logarithm of the ratio when both ends are small; nothing for what lies above
    for low, high in ((1e-6, 1e-2), (0.5, 500.0)):
        n_jumps = len(DiscreteLaplacePath(as_generator(8), 1000, low, high)._after)
        mean = 2000 * np.log(np.expm1(-high) / np.expm1(-low))
        assert abs(n_jumps - mean) < 6 * mean**0.5


def test_discrete_coordinates_are_independent():
    path_values = DiscreteLaplacePath(as_generator(10), (N, 2), 0.05, 5.0).read(0.05)
    for part in (path_values, np.abs(path_values)):
        assert stats.pearsonr(*part.T).pvalue > ALARM


def test_discrete_is_the_same_in_any_order():
    path = DiscreteLaplacePath(as_generator(9), (3, 40), 1e-4, 20.0)
    levels = np.geomspace(1e-4, 20.0, 60)
    rising = [path.read(e) for e in levels]
    falling = [path.read(e) for e in levels[::-1]][::-1]
    order = np.random.default_rng(0).permutation(60)
    mixed = dict(zip(order, [path.read(levels[i]) for i in order], strict=True))
    assert np.array_equal(rising, falling)
    assert all(np.array_equal(rising[i], mixed[i]) for i in order)
    # a new path of the same seed, read the other way first
    again = DiscreteLaplacePath(as_generator(9), (3, 40), 1e-4, 20.0)
    assert np.array_equal([again.read(e) for e in levels[::-1]][::-1], rising)
    # what is handed out is not the path's own
    path.read(1e-4)[:] = 0
    assert path.read(1e-4).any()


# Brownian motion


def brownian_pvalue(path_values, times):
    """Test that values at falling times, shape (n_times, N), are those of a Brownian motion."""
    steps = -np.diff(np.append(path_values, np.zeros((1, path_values.shape[1])), axis=0), axis=0)
    deviations = np.sqrt(-np.diff(np.append(times, 0.0)))
    pvalues = [
        stats.kstest(-step / s, stats.norm().cdf).pvalue
        for step, s in zip(steps, deviations, strict=True)
    ]
    pvalues += [stats.pearsonr(a, b).pvalue for a, b in zip(steps[1:], steps[:-1], strict=True)]
    return min(pvalues)


def test_brownian_law():
    times = np.array([50.0, 9.0, 8.9, 1.0, 1e-6])
    path = BrownianPath(as_generator(0), N)
    assert brownian_pvalue(np.array([path.read_at(t) for t in times]), times) > ALARM


def test_brownian_check_catches_other_motions():
    times = np.array([50.0, 9.0, 1.0])
    normal = as_generator(1).standard_normal((3, N))
    independent = np.sqrt(times)[:, None] * normal
    straight = times[:, None] / times[0] * independent[0]
    scaled = np.sqrt(times / times[0])[:, None] * independent[0]
    for twin in (independent, straight, scaled):
        assert brownian_pvalue(twin, times) < ALARM


def test_brownian_times_of_their_own():
    path = BrownianPath(as_generator(2), (3, N))
    before = np.array([[4.0], [9.0], [1.0]])
    after = np.array([[4.0], [1.0], [0.0]])
    first, second = path.read_at(before), path.read_at(after)
    # the same time, an earlier time, and the start
    assert np.array_equal(second[0], first[0])
    assert brownian_pvalue(np.array([first[1], second[1]]), np.array([9.0, 1.0])) > ALARM
    assert not second[2].any() and not path.read_at(after)[2].any()
    assert np.array_equal(path.read_at(after), second)
    second[:] = 7
    assert not path.read_at(0.0).any()


def test_brownian_times_do_not_increase():
    path = BrownianPath(as_generator(), (2, 3))
    with pytest.raises(ValueError, match="must not increase"):
        path.read_at(-1.0)
    time = np.array([[1.0], [2.0]])
    value = path.read_at(time)
    time += 1
    for wrong in (time, 1.5, np.nan):
        with pytest.raises(ValueError, match="must not increase"):
            path.read_at(wrong)
    # a refused value leaves the path as it was
    assert np.array_equal(path.read_at(time - 1), value)


# spherical Laplace


def ball_pvalue(path_values, epsilon):
    """Test the lengths and directions of vectors, shape (N, d)."""
    d = path_values.shape[1]
    lengths = np.linalg.norm(path_values, axis=1)
    pvalues = [stats.kstest(lengths * epsilon, stats.gamma(d).cdf).pvalue]
    cosine = path_values[:, -1] / lengths
    if d == 1:
        pvalues.append(stats.binomtest(int((cosine > 0).sum()), len(cosine)).pvalue)
    else:
        law = stats.beta((d - 1) / 2, (d - 1) / 2)
        pvalues.append(stats.kstest((cosine + 1) / 2, law.cdf).pvalue)
        pvalues.append(stats.spearmanr(cosine, lengths).pvalue)
    return min(pvalues)


def naive_spherical_values(generator, n, d, levels):
    """Read spherical Laplace noise on a grid, jump by jump, from the last level.

    Each jump, at a place e drawn in a step of the grid, adds N(0, 2 W / e^2) to the vector.
    """
    path_values = [spherical_laplace(generator, n, d) / levels[-1]]
    for e, larger in zip(levels[-2::-1], levels[:0:-1], strict=True):
        left = generator.poisson((d + 1) * np.log(larger / e), size=(n, 1))
        value = path_values[-1].copy()
        while left.any():
            place = e * (larger / e) ** generator.random((n, 1))
            spread = np.sqrt(2 * generator.standard_exponential((n, 1))) / place
            value += (left > 0) * spread * generator.standard_normal((n, d))
            left = np.maximum(left - 1, 0)
        path_values.append(value)
    return np.array(path_values[::-1])


def ball_prefix_pvalue(path_values, other_models):
    """Compare the joint laws of prefixes, shape (3, N, d), by lengths of combinations."""
    pvalues = []
    for weights in ((1, 0, 0), (1, -1, 0), (0, 1, -1), (1, 1, 1), (1, -2, 1), (1, 0, -3)):
        pair = [np.tensordot(weights, r, axes=1) for r in (path_values, other_models)]
        pvalues.append(stats.ks_2samp(*(np.linalg.norm(r, axis=1) for r in pair)).pvalue)
        pvalues.append(stats.ks_2samp(*(r[:, 0] for r in pair)).pvalue)
    return min(pvalues)


def read_ball(seed, d):
    path = SphericalLaplacePath(as_generator(seed), N, d, 0.1, 3.0)
    return np.array([path.read(e) for e in LEVELS])


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 5])
def test_ball_marginals_and_prefix(d, monkeypatch):
    path_values = read_ball(d, d)
    for path_value, epsilon in zip(path_values, LEVELS, strict=True):
        assert ball_pvalue(path_value, epsilon) > ALARM
    naive = naive_spherical_values(as_generator(10 + d), N, d, LEVELS)
    assert ball_prefix_pvalue(path_values, naive) > ALARM
    # what the noisiest adds, along the next reading, is independent of the rest
    unit = path_values[1] / np.linalg.norm(path_values[1], axis=1, keepdims=True)
    along = ((path_values[0] - path_values[1]) * unit).sum(axis=1)
    for split in (
        np.linalg.norm(path_values[1], axis=1) > d,
        np.linalg.norm(path_values[2], axis=1) > d,
        (path_values[1] == path_values[2]).all(axis=1),
    ):
        assert stats.ks_2samp(along[split], along[~split]).pvalue > ALARM
    assert stats.ks_2samp(along, -along).pvalue > ALARM

    # the same checks refuse independent noise, and a path with half of its jumps
    independent = np.array([spherical_laplace(as_generator(t), N, d) / e for t, e in enumerate(LEVELS)])
    assert ball_prefix_pvalue(independent, naive) < ALARM
    lose_jumps(monkeypatch)
    broken = read_ball(d, d)
    assert ball_pvalue(broken[0], LEVELS[0]) < ALARM
    assert ball_prefix_pvalue(broken, naive) < ALARM


def test_ball_in_one_dimension_is_the_rule_for_laplace_noise(monkeypatch):
    published = ligett_values(as_generator(20), N, LEVELS)
    ball = read_ball(21, 1)[:, :, 0]
    assert min(prefix_pvalues(published, ball)) > ALARM
    kept = int((ball[0] == ball[1]).sum())
    assert stats.binomtest(kept, N, (LEVELS[0] / LEVELS[1]) ** 2).pvalue > ALARM

    # the same check refuses independent noise, scaled noise, and a path with half of its jumps
    generator = as_generator(4)
    independent = np.array([generator.laplace(size=N) / e for e in LEVELS])
    scaled = independent[2] * LEVELS[2] / np.array(LEVELS)[:, None]
    lose_jumps(monkeypatch)
    for twin in (independent, scaled, read_ball(21, 1)[:, :, 0]):
        assert min(prefix_pvalues(published, twin)) < ALARM


@pytest.mark.slow
def test_ball_in_many_dimensions():
    path = SphericalLaplacePath(as_generator(22), 400, 1000, 1e-3, 1e3)
    for epsilon in (1e-3, 1.0, 1e3):
        lengths = np.linalg.norm(path.read(epsilon), axis=1) * epsilon
        assert stats.kstest(lengths, stats.gamma(1000).cdf).pvalue > ALARM


def test_ball_is_read_at_epsilons_that_do_not_fall():
    path = SphericalLaplacePath(as_generator(23), 2, 3, 0.1, 10.0)
    value = path.read(1.0)
    assert np.array_equal(path.read(1.0), value)
    with pytest.raises(ValueError, match="do not fall"):
        path.read(0.999)
    assert np.array_equal(path.read(1.0), value)
    assert not np.array_equal(path.read(9.0), value)


# all paths


@pytest.mark.parametrize(
    "make",
    [
        lambda low, high: DiscreteLaplacePath(as_generator(), 2, low, high),
        lambda low, high: SphericalLaplacePath(as_generator(), 2, 3, low, high),
    ],
)
def test_refusals(make):
    for low, high in ((0.0, 1.0), (2.0, 1.0), (-1.0, 1.0), (1.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(ValueError, match="not the ends of a range"):
            make(low, high)
    path = make(0.5, 2.0)
    for epsilon in (0.499, 2.001, np.nan):
        with pytest.raises(ValueError, match="is not between"):
            path.read(epsilon)
    # one level alone
    path = make(1.0, 1.0)
    assert np.array_equal(path.read(1.0), path.read(1.0))


def loss_of_models(path_values, neighbour_values, levels):
    """Bound from below the loss of prefixes around 0 and around a unit vector.

    The statistic is the log-ratio that would be exact if the values, of shape (3, N, d), were
    independent.
    """
    unit = np.eye(path_values.shape[2])[0]
    statistics = [
        np.tensordot(levels, np.linalg.norm(r - unit, axis=2) - np.linalg.norm(r, axis=2), axes=1)
        for r in (path_values, neighbour_values + unit)
    ]
    return loss_lower_bound(*statistics)


@pytest.mark.parametrize("d", [1, 2])
def test_audit_of_sampled_prefixes(d):
    levels, n = (0.6, 0.8, 1.0), 2 * N
    prefixes = []
    for seed in (30, 31):
        path = SphericalLaplacePath(as_generator(seed), n, d, levels[0], levels[2])
        prefixes.append(np.array([path.read(e) for e in levels]))
    assert loss_of_models(*prefixes, levels) <= levels[-1]
    independent = [
        np.array(
            [spherical_laplace(as_generator(s), n, d) / e for s, e in zip(seeds, levels, strict=True)]
        )
        for seeds in ((32, 33, 34), (35, 36, 37))
    ]
    assert loss_of_models(*independent, levels) > levels[-1]

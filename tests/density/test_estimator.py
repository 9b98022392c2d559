"""Histogram densities: the released law, the certificate under attack, scikit-learn's ways."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline

from dpselect import (
    CertificateError,
    DPHistogramDensity,
    SeededNoiseWarning,
    StabilityGridSearchCV,
)
from dpselect.density.cells import Cells, cell_masses, number_of_bins
from dpselect.density.count_noise import least_total, training_stability
from dpselect.metrics import BrierScore, IntegratedSquaredErrorScore
from dpselect.preprocessing import BoundedScaler
from dpselect.records import records
from dpselect.records.public_shape import PublicShape

INF = float("inf")
ISE = IntegratedSquaredErrorScore()
NOISES = ["laplace", "discrete_laplace"]
# a p-value below this is a false alarm with probability 1e-7
ALARM = 1e-7


class FixedNoise(DPHistogramDensity):
    """A density whose standard noise is given, for the corners that random ones rarely reach."""

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        shape = super()._standard_noise(generator, n_features, n_problems, epsilon).shape
        return np.broadcast_to(2 / epsilon * self.draw, shape)


def with_noise(model, draw):
    model.draw = np.asarray(draw)
    return model


def seeded(X, **parameters):
    with pytest.warns(SeededNoiseWarning):
        return DPHistogramDensity(random_state=0, **{"bounds": (0, 1), **parameters}).fit(X)


# --- the histogram


def test_without_noise_it_is_numpys():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 2)) * [2, 5] - [1, 0]
    model = DPHistogramDensity(INF, bin_width=[0.5, 1], bounds=[(-1, 1), (0, 5)]).fit(X)
    density, edges = np.histogramdd(X, bins=(4, 5), range=[(-1, 1), (0, 5)], density=True)
    np.testing.assert_allclose(model.density_, density)
    for ours, numpys in zip(model.bin_edges_, edges):
        np.testing.assert_allclose(ours, numpys)
    assert model.privacy_.epsilon == INF


def test_edges_belong_to_the_upper_cell_and_outliers_to_the_border():
    X = np.array([[0.0], [0.5], [1.0], [-3.0], [1e300], [np.nextafter(0.5, 0)]])
    model = DPHistogramDensity(INF, bin_width=0.25, bounds=(0, 1)).fit(X)
    np.testing.assert_allclose(model.density_, 4 * np.array([2, 1, 1, 2]) / 6)


def test_cells_agree_with_the_published_edges():
    # 0.29 * 100 rounds to less than 29
    X = np.linspace(0, 1, 101)[:-1, None]
    model = DPHistogramDensity(INF, bin_width=0.01, bounds=(0, 1)).fit(X)
    np.testing.assert_allclose(model.density_, 1.0)
    np.testing.assert_allclose(model.score_samples(X), 0.0, atol=1e-12)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 100.0, INF])
@pytest.mark.parametrize("D", [1, 2, 3])
def test_integrates_to_one(noise, epsilon, D):
    X = np.random.default_rng(0).normal(size=(50, D))
    bounds = [(-1.5, 3.0)] * D
    model = DPHistogramDensity(epsilon, bin_width=0.25, bounds=bounds, noise=noise).fit(X)
    assert model.density_.shape == (18,) * D and (model.density_ >= 0).all()
    assert abs(model.density_.sum() * 0.25**D - 1) < 1e-12
    assert math.isclose(model.squared_integral(), (model.density_**2).sum() * 0.25**D)


def test_nothing_left_is_uniform():
    model = with_noise(FixedNoise(bin_width=0.5, bounds=(0, 4)), -1e6).fit([[1.0, 2.0]] * 3)
    np.testing.assert_allclose(model.density_, np.full((8, 8), 1 / 16))
    assert math.isclose(model.squared_integral(), 1 / 16)


# --- noise


def test_discrete_laplace_noise_has_the_smaller_variance():
    draws = DPHistogramDensity(
        5.0, noise="discrete_laplace", bin_width=1e-5, bounds=(0, 1)
    ).standard_noise(1)
    ratio = math.exp(-2.5)
    assert math.isclose(draws.var(), 2 * ratio / (1 - ratio) ** 2, rel_tol=0.1)
    assert draws.var() < 8 / 5.0**2


# --- weights


def test_weights_count_as_fractions_of_their_bound():
    X, weight = np.random.default_rng(0).uniform(size=(500, 2)), np.repeat([0.25, 1.0, 9.0, 0.0], 125)
    model = DPHistogramDensity(INF, bin_width=0.25, bounds=(0, 1), max_sample_weight=2.0)
    found = model.fit(X, sample_weight=weight).density_
    expected = np.histogramdd(X, model.bin_edges_, weights=np.minimum(weight, 2), density=True)[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert not np.allclose(found, model.fit(X).density_, atol=0.1)
    ids = np.arange(500) // 5
    persons = model.fit(X, sample_weight=weight, groups=ids)
    np.testing.assert_allclose(persons.density_, expected, atol=1e-6)  # all have five rows
    assert persons.privacy_.adjacency == "replace all rows of one person"


@pytest.mark.parametrize("persons", [False, True])
def test_a_replaced_record_moves_weighted_counts_by_two(monkeypatch, persons):
    """The noise is that of counts; the twins forget to clip weights, or add those of a person up."""
    taken, worst, original = [], [], Cells.counts

    def spy(self, records, step=1.0):
        found = original(self, records, step)
        twin = np.bincount(self.index(np.asarray(records.X)), weight / 2.0, self.size)
        taken.append((found, twin, step))
        return found

    monkeypatch.setattr(Cells, "counts", spy)
    rng = np.random.default_rng(1)
    model = DPHistogramDensity(1.0, bin_width=0.25, bounds=(0, 1), max_sample_weight=2.0)
    for _ in range(10):
        for m in rng.integers(1, 9, 2) if persons else (1, 1):
            X, weight = np.full((20 + m, 1), 0.1), np.full(20 + m, 1.5)
            X[20:], weight[20:] = rng.uniform(size=(m, 1)), rng.choice([2.0, 50.0], m)
            ids = np.append(np.arange(20), np.full(m, 30)) if persons else None
            model.fit(X, sample_weight=weight, groups=ids)
        (one, one_twin, step), (other, other_twin, _) = taken[-2:]
        assert (one % step == 0).all()
        worst.append((abs(one - other).sum(), abs(one_twin - other_twin).sum()))
    assert 1.5 < np.max(worst, axis=0)[0] <= 2 < 10 < np.max(worst, axis=0)[1]


def test_weights_are_checked_in_one_pass(monkeypatch):
    passes, original = [], records._as_weights
    monkeypatch.setattr(records, "_as_weights", lambda weight: passes.append(1) or original(weight))
    model = DPHistogramDensity(bounds=(0, 1), max_sample_weight=2.0)
    model.fit(np.full((9, 1), 0.5), sample_weight=np.ones(9))
    assert len(passes) == 1


@pytest.mark.parametrize(
    "given, said",
    [
        ({}, "sample_weight needs a public bound"),
        ({"max_sample_weight": 0.0}, "max_sample_weight"),
        ({"max_sample_weight": 2.0, "noise": "discrete_laplace"}, "hides integers"),
    ],
)
def test_weights_without_a_proof_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        DPHistogramDensity(bounds=(0, 1), **given).fit([[0.5]] * 9, sample_weight=np.ones(9))
    # whatever fits, such as a stage of one's own
    with pytest.raises(ValueError, match=said):
        DPHistogramDensity(bounds=(0, 1), **given).fit([[0.5]] * 9, records.Weighted(None, np.ones(9)))
    search = StabilityGridSearchCV(
        DPHistogramDensity(bounds=(0, 1), max_sample_weight=2.0), {"bin_width": [0.1, 0.5]}
    )
    with pytest.raises(CertificateError, match="sample_weight"):
        search.fit([[0.5]] * 9, sample_weight=np.ones(9))


# --- scikit-learn's ways


def test_methods_have_the_shapes_of_kernel_density():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    ours, theirs = DPHistogramDensity(INF, bin_width=0.5, bounds=(0, 1)).fit(X), KernelDensity().fit(X)
    for method in ("score_samples", "score"):
        assert np.shape(getattr(ours, method)(X)) == np.shape(getattr(theirs, method)(X))
    assert ours.sample().shape == theirs.sample().shape == (1, 2)
    assert ours.sample(7, random_state=0).shape == theirs.sample(7, random_state=0).shape
    assert ours.score(X) == ours.score_samples(X).sum()


def test_density_is_zero_outside_and_where_nothing_was_counted():
    model = DPHistogramDensity(INF, bin_width=0.5, bounds=(0, 1)).fit([[0.1], [0.2]])
    np.testing.assert_array_equal(
        model.score_samples([[-0.01], [0.0], [0.6], [1.0], [1.01]]),
        [-np.inf, np.log(2.0), -np.inf, -np.inf, -np.inf],
    )
    assert model.score([[0.1], [2.0]]) == -np.inf


def test_samples_follow_the_density():
    X = np.random.default_rng(0).beta(2, 5, size=(500, 2))
    model = seeded(X, bin_width=[0.2, 0.25], bounds=[(0, 1), (-0.5, 1)])
    rows = model.sample(100_000, random_state=1)
    assert (rows >= [0, -0.5]).all() and (rows <= 1).all()
    counts = np.histogramdd(rows, model.bin_edges_)[0]
    expected = 100_000 * model.density_ * 0.05
    assert (counts[expected == 0] == 0).all()
    some = expected > 0
    assert stats.chisquare(counts[some], expected[some]).pvalue > ALARM
    # uniform inside the cells
    place = (rows - [0, -0.5]) / [0.2, 0.25] % 1
    for column in place.T:
        assert stats.kstest(column, "uniform").pvalue > ALARM
    np.testing.assert_array_equal(rows, model.sample(100_000, random_state=1))


def test_in_a_pipeline_after_a_scaler():
    X = np.random.default_rng(0).uniform(size=(500, 2)) * [100, 3]
    model = make_pipeline(
        BoundedScaler([(0, 100), (0, 3)]), DPHistogramDensity(INF, bin_width=0.5, bounds=(-1, 1))
    ).fit(X)
    counts = np.histogramdd(X, (4, 4), [(0, 100), (0, 3)])[0]
    np.testing.assert_allclose(model[-1].density_, counts / 500 / 0.25)
    assert model.score_samples(X).shape == (500,)


def test_blocks_are_added_up(monkeypatch):
    from dpselect.rows import cutting

    X = np.random.default_rng(0).uniform(size=(1000, 2))
    expected = DPHistogramDensity(INF, bounds=(0, 1)).fit(X)
    likelihood = expected.score_samples(X)
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 64)
    model = DPHistogramDensity(INF, bounds=(0, 1)).fit(X)
    assert (model.density_ == expected.density_).all()
    assert (model.score_samples(X) == likelihood).all()


# --- what is refused


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        (dict(epsilon=0), ValueError, "epsilon=0"),
        (dict(noise="gaussian"), ValueError, "'laplace', 'discrete_laplace'"),
        (dict(bin_width=0.3), ValueError, "write 0.25 or 0.3333333333333333"),
        (dict(bin_width=3.0), ValueError, "write 1.0"),
        (dict(bin_width=1e-320), ValueError, "too small"),
        (dict(bin_width=-0.1), ValueError, "bin_width=-0.1"),
        (dict(bin_width=math.nan), ValueError, "bin_width=nan"),
        (dict(bin_width="0.1"), TypeError, "bin_width must be a number"),
        (dict(bin_width=[]), ValueError, "bin_width 0"),
        (dict(bin_width=[0.1, 0.1]), ValueError, "list 2 columns, but X has 1"),
        (dict(bin_width=[0.1] * 3, bounds=[(0, 1)] * 2), ValueError, "2 columns and bin_width 3"),
        (dict(bounds=[(0, 1)] * 3), ValueError, "list 3 columns, but X has 1"),
        (dict(bounds=None), ValueError, "one pair low < high"),
        (dict(bounds=(1, 0)), ValueError, "one pair low < high"),
        (dict(bounds=(1, 1)), ValueError, "one pair low < high"),
        (dict(bounds=(0, math.inf)), ValueError, "one pair low < high"),
        (dict(bounds=(0, 1, 2)), ValueError, "one pair low < high"),
        (dict(bounds=[(0, 1), (2,)]), ValueError, "one pair low < high"),
        (dict(bin_width=1e-8), ValueError, "1e\\+08 cells"),
        (dict(bounds=(1e16, 1e16 + 8)), ValueError, "spacing"),
        (dict(bounds=(0, 1e-310), bin_width=1e-311), ValueError, "other units"),
        (dict(random_state=-1), ValueError, "not a seed"),
    ],
)
def test_bad_parameters_are_refused_and_nothing_is_half_fitted(parameters, error, message):
    model = DPHistogramDensity(**{"bounds": (0, 1), **parameters})
    with pytest.raises(error, match=message) as caught:
        model.fit([[0.123456]])
    assert "123456" not in str(caught.value)
    assert not [name for name in vars(model) if name.endswith("_")]
    if "X has" not in message:  # the certificate takes the listed columns at their word
        with pytest.raises(error):
            model.stability_certificate(ISE, 10, 1)


def test_the_widths_that_an_error_names_are_accepted():
    for high, width in [(1.0, 0.3), (7.0, 0.9), (1e-3, 3.7e-5), (0.7, 0.11)]:
        with pytest.raises(ValueError) as caught:
            number_of_bins(0.0, high, width)
        named = str(caught.value).rpartition("write ")[2].rstrip(".").split(" or ")
        assert [number_of_bins(0.0, high, float(text)) for text in named] == [
            math.ceil(high / width),
            math.floor(high / width),
        ]


@pytest.mark.parametrize("k", [1, 3, 7, 10, 49, 1000])
def test_rounded_widths_divide(k):
    for low, high in [(0.0, 1.0), (-0.1, 0.2), (1e5, 1e5 + 0.3)]:
        assert number_of_bins(low, high, (high - low) / k) == k
    assert number_of_bins(0.0, 1.0, float(np.float32(1 / k))) == k
    assert DPHistogramDensity(bin_width=np.float32(1 / k), bounds=(0, 1)).standard_noise(1).shape == (k,)


def test_too_many_columns_are_refused_before_memory_is_taken():
    with pytest.raises(ValueError, match="20 columns into 1e\\+20 cells"):
        DPHistogramDensity(bounds=(0, 1)).fit(np.zeros((3, 20)))


# --- the certificate


def q(masses, w):
    """v times the score of `masses` on a validation set with shares `w` of its cells."""
    return 2 * (w * masses).sum(-1) - (masses**2).sum(-1)


def attack(n_cases, seed):
    """Random neighbours with random noise: v times the change of the score, noise, n."""
    rng = np.random.default_rng(seed)
    s, n = int(rng.integers(1, 9)), int(rng.integers(1, 40))
    # counts from even to all in one cell, noise from none to drowning, often near the corners
    shares = rng.dirichlet(np.full(s, 10 ** rng.uniform(-2, 1)), size=n_cases)
    rest = rng.multinomial(n - 1, shares).astype(float)
    a, b = rng.integers(s, size=(2, n_cases))
    cases = np.arange(n_cases)
    counts, neighbour = rest.copy(), rest.copy()
    counts[cases, a] += 1
    neighbour[cases, b] += 1
    noise = rng.laplace(size=(n_cases, s)) * 10 ** rng.uniform(-2, 2, size=(n_cases, 1))
    aimed = rng.random(n_cases) < 0.5  # clipping sets in between the two counts
    noise[aimed, a[aimed]] = -counts[aimed, a[aimed]] + rng.uniform(0, 1, size=aimed.sum())
    w = np.zeros((n_cases, s))
    w[cases, rng.integers(s, size=n_cases)] = rng.uniform(size=n_cases)
    w[cases, np.where(rng.random(n_cases) < 0.5, a, b)] += 1 - w.sum(1)
    changes = [q(cell_masses(c + noise), w) for c in (counts, neighbour)]
    return np.abs(changes[0] - changes[1]), noise, n


def test_200_000_neighbours_never_exceed_the_certificate():
    worst, beyond_two, beyond_noise_free = 0.0, 0, 0
    for seed in range(400):
        change, noise, n = attack(500, seed)
        bound = training_stability(least_total(noise, n))
        assert (change <= bound * (1 + 1e-9) + 1e-12).all()
        worst = max(worst, (change / bound).max())
        total = n + noise.sum(1)
        with np.errstate(divide="ignore"):
            beyond_two += (change > 2 / np.maximum(total, 0)).sum()  # the constant of one term
        beyond_noise_free += (change > np.minimum(2, 4 / n) * (1 + 1e-9)).sum()
        # the plain sum, without the clipping at 0, is a weaker bound
        assert (bound <= training_stability(np.maximum(total, 0))).all()
    assert worst > 0.9  # the attack is not idle
    # broken twins: constant 2, and n in place of the noisy total
    assert beyond_two > 100 and beyond_noise_free > 100


def moved_by_one_record(n, epsilon=INF, draw=0.0, **parameters):
    """All records in the first cell, one of them moves to the last, where the test records are."""
    model = with_noise(FixedNoise(epsilon, bin_width=0.25, bounds=(0, 1), **parameters), draw)
    T = np.full((n, 1), 0.1)
    T_neighbour = T.copy()
    T_neighbour[0] = 0.9
    V = np.full((3, 1), 0.9)
    change = abs(ISE(clone_with(model).fit(T), V) - ISE(clone_with(model).fit(T_neighbour), V))
    return change, model.stability_certificate(ISE, n, 1)


def clone_with(model):
    return with_noise(clone(model), model.draw)


def test_certificate_is_nearly_attained():
    change, bound = moved_by_one_record(100)
    assert bound.training == 4 / (0.25 * 100) and bound.span == 2 / 0.25
    assert 0.99 < change / bound.training <= 1
    # with noise that drowns the other cells
    change, bound = moved_by_one_record(100, 1.0, np.array([-10.0, -3.0, -3.0, 0.0]))
    assert math.isclose(bound.training, 4 / (0.25 * (100 - 2 * 16)))
    assert 0.5 < change / bound.training <= 1


def test_a_constant_of_two_is_caught():
    change, bound = moved_by_one_record(100)
    assert change > 1.9 * (bound.training / 2)


def test_a_sum_that_forgets_the_noise_is_caught():
    # noise removes most of the 100 records
    change, bound = moved_by_one_record(100, 1.0, np.array([-40.0, -0.5, -0.5, 0.0]))
    assert 4 / (0.25 * 100) < change <= bound.training


def test_an_unclipped_sum_is_caught():
    # n + noise < 0: as it stands the sum gives a negative bound, and its size one far too small
    draw = np.array([-0.6, -200.0, -200.0, -0.4])
    change, bound = moved_by_one_record(2, 1.0, draw)
    total = 2 + 2 * draw.sum()
    assert total < 0 and change > 4 / (0.25 * abs(total))
    assert 0.5 < change / bound.training <= 1


def test_positive_noise_alone_bounds_the_total():
    model = FixedNoise(1.0, bin_width=0.25, bounds=(0, 1))
    model = with_noise(model, np.array([10.0, -100.0, -100.0, 5.0]))
    assert model.stability_certificate(ISE, 20, 1).training == 4 / (0.25 * 2 * 15)


def test_nothing_left_on_one_side_only():
    # T keeps half a record in the first cell, its neighbour nothing, which is uniform
    change, bound = moved_by_one_record(1, 1.0, np.array([-0.25, -1.0, -1.0, -1.0]))
    assert 0 < change <= bound.training == 2 / 0.25


def test_validation_certificate_is_attained():
    model = DPHistogramDensity(INF, bin_width=0.25, bounds=(0, 1)).fit([[0.1]])
    change = abs(ISE(model, [[0.1], [0.1]]) - ISE(model, [[0.1], [0.9]]))
    assert math.isclose(change, model.stability_certificate(ISE, 1, 1).span / 2)


def sums(calibration, size):
    return np.array([calibration.standard_noise(np.random.default_rng(i)).sum() for i in range(size)])


def calibrated(epsilon, n_cells, noise="laplace"):
    model = DPHistogramDensity(epsilon, noise=noise, bin_width=1 / n_cells, bounds=(0, 1))
    return model.calibration(PublicShape(1000, 1))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n_cells, epsilon", [(1, 1.0), (4, 10.0), (100, 0.01)])
def test_failure_probability_bounds_all_but_a_share_of_the_noise(noise, epsilon, n_cells):
    calibration = calibrated(epsilon, n_cells, noise)
    drawn = sums(calibration, 2000)
    for probability in (0.01, 0.1, 0.4, 0.499, 0.5, 0.9):
        least = calibration.least_noise(probability)
        failures = int((drawn < least).sum())
        assert stats.binomtest(failures, 2000, probability, alternative="greater").pvalue > ALARM
    if epsilon <= 1:  # not needlessly low
        assert calibration.least_noise(0.01) >= 2.5 * np.quantile(drawn, 0.01)


def test_laplace_tail_against_the_exact_law():
    # |sum| is a mixture of Gamma(s - j) laws with weights of a negative binomial
    s, calibration = 10, calibrated(2.0, 10)
    j = np.arange(s)
    weights = 2 * stats.nbinom.pmf(j, s, 0.5)
    assert math.isclose(weights.sum(), 1)
    for probability in (1e-12, 1e-6, 1e-2, 0.3):
        t = -calibration.least_noise(probability)
        exact = 0.5 * np.sum(weights * stats.gamma.sf(t, s - j))
        assert 0.01 * probability < exact <= probability


def test_certificate_with_failure_probability():
    model = DPHistogramDensity(1.0, bounds=(0, 1))
    assert model.stability_certificate(ISE, 1000, 1, failure_probability=0.5).training == 4 / 100
    rare = model.stability_certificate(ISE, 1000, 1, failure_probability=1e-6)
    total = 1000 + calibrated(1.0, 10).least_noise(1e-6)
    assert math.isclose(rare.training, 4 / (0.1 * total)) and total < 970 and rare.span == 20
    drowned = model.stability_certificate(ISE, 10, 1, failure_probability=1e-6)
    assert drowned.training == drowned.span == 20
    with pytest.raises(ValueError, match="failure_probability=0"):
        model.stability_certificate(ISE, 1000, 1, failure_probability=0)


def test_certificate_knows_listed_columns():
    # a search asks before it knows the shape of X
    model = DPHistogramDensity(bin_width=[0.1, 0.2], bounds=[(0, 1), (0, 2)])
    assert model.stability_certificate(ISE, 10, 1).span == pytest.approx(2 / 0.02)
    assert DPHistogramDensity(bounds=(0, 1)).stability_certificate(ISE, 10, 2).span == pytest.approx(
        2 / 0.1**2
    )


def test_other_scores_are_refused_with_the_pair():
    with pytest.raises(CertificateError, match="DPHistogramDensity with BrierScore"):
        DPHistogramDensity(bounds=(0, 1)).stability_certificate(BrierScore(), 10, 1)


# --- search


def test_search_chooses_a_width():
    X = np.random.default_rng(0).beta(20, 5, size=(20_000, 1))
    grid = {"bin_width": [0.5, 0.05]}
    search = StabilityGridSearchCV(DPHistogramDensity(bounds=(0, 1)), grid, epsilon=5.0).fit(X)
    assert search.best_params_ == {"bin_width": 0.05}
    assert search.privacy_.epsilon == 5.0
    assert search.score_samples([[0.1], [0.2], [0.3]]).shape == (3,)
    # 4 of 5 training folds hold a record, the fifth validates on it
    sensitivity = search.cv_results_["sensitivity"]
    expected = (4 * 4 / (0.5 * 16_000) + 2 / (0.5 * 4000)) / 5
    np.testing.assert_allclose(sensitivity[0], expected, rtol=0.01)


def test_search_over_two_columns():
    X = np.random.default_rng(0).uniform(size=(500, 2)) * [1, 100]
    search = StabilityGridSearchCV(
        DPHistogramDensity(bounds=[(0, 1), (0, 100)], noise="discrete_laplace"),
        {"bin_width": [[0.5, 50], [0.25, 25]]},
    ).fit(X)
    assert search.best_estimator_.density_.shape in ((2, 2), (4, 4))


def test_without_privacy_the_search_is_scikit_learns():
    X = np.random.default_rng(0).beta(20, 5, size=(500, 1))
    grid = {"bin_width": [1.0, 0.5, 0.1, 0.05]}
    search = StabilityGridSearchCV(
        DPHistogramDensity(bounds=(0, 1)), grid, epsilon=INF, cv=3, scoring="integrated_squared_error"
    ).fit(X)
    theirs = GridSearchCV(DPHistogramDensity(INF, bounds=(0, 1)), grid, scoring=ISE, cv=3).fit(X)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )


def test_cells_of_several_columns_are_planned_for_as_those_of_one():
    """As many cells of the same volume, with as much noise among them."""
    square = DPHistogramDensity(bounds=[(0, 1), (0, 1)], bin_width=1 / 4)
    line = DPHistogramDensity(bounds=(0, 1), bin_width=1 / 16)
    score = IntegratedSquaredErrorScore()
    for probability in (0.1, 1e-6):
        planned = [
            model.stability_certificate(score, 200, d, failure_probability=probability)
            for model, d in ((square, 2), (line, 1))
        ]
        assert planned[0].training == planned[1].training < planned[0].span

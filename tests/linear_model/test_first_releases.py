import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, logit, softmax
from scipy.stats import binom
from sklearn.base import clone

import dpselect.linear_model.norms_and_rates as first_releases
from dpselect import DPLogisticRegression, DPPoissonRegressor, DPRidge, SeededNoiseWarning
from dpselect.linear_model.linear_noise import LinearNoise
from dpselect.linear_model.logistic import doubled
from dpselect.linear_model.norms_and_rates import RADII, ClassShares, MeanCount, MedianNorm
from dpselect.noise import as_generator
from dpselect.records.persons import Persons
from dpselect.records.public_shape import PublicShape
from dpselect.records.records import Records
from tests.trials import fitted, with_noise

EPSILON = 0.7


def records(X, y=(), classes=()):
    return Records(np.asarray(X, dtype=float), np.asarray(y), {"classes_": np.asarray(classes)})


# ---- the median norm


class NoDraw:
    """A generator whose Gumbel variables are given."""

    def __init__(self, value):
        self.value = value

    def gumbel(self, size):
        return np.full(size, self.value)


def law_of_median(X, monkeypatch, epsilon=EPSILON):
    """Return the probabilities of the radii, from what reaches the exact sum."""
    seen = []
    monkeypatch.setattr(first_releases, "largest_sum", lambda *sums: seen.append(sums) or 0)
    for value in (0.0, 1.0):
        MedianNorm("l2").learn(records(X), epsilon, NoDraw(value))
    (utility, offset), (_, moved) = seen
    scale = (moved - offset)[0]  # of the Gumbel variables
    return softmax((utility + offset) / scale)


def small_data_sets(n=3):
    """All data sets of few rows, with norms that are far apart, next to each other, 0 or infinite."""
    rows = [[0.0, 0.0], [0.5, 0.0], [0.0, 0.55], [3.0, 4.0], [1e200, 1e200]]
    return [np.array(chosen) for chosen in itertools.product(rows, repeat=n)]


def neighbours(data):
    return [
        (i, j)
        for i, j in itertools.combinations(range(len(data)), 2)
        if (data[i] != data[j]).any(axis=1).sum() == 1
    ]


def worst_ratio(data, monkeypatch):
    laws = np.array([law_of_median(X, monkeypatch) for X in data])
    return max(np.abs(np.log(laws[i] / laws[j])).max() for i, j in neighbours(data))


def test_the_exact_law_of_the_median_norm(monkeypatch):
    data = small_data_sets()
    assert 0.9 * EPSILON < worst_ratio(data, monkeypatch) <= EPSILON * (1 + 1e-6)


def test_half_of_the_noise_is_too_little(monkeypatch):
    # utilities of some radii rise where those of others fall
    gumbel = first_releases.gumbel
    monkeypatch.setattr(first_releases, "gumbel", lambda *args: gumbel(*args) / 2)
    assert worst_ratio(small_data_sets(), monkeypatch) > 1.7 * EPSILON


@pytest.mark.slow
def test_what_is_drawn_follows_the_law(monkeypatch):
    X = [[0.5], [1.1], [1.2], [40.0], [40.0]]
    with monkeypatch.context() as patched:
        expected = law_of_median(X, patched, epsilon=8.0)
    n, generator = 3000, as_generator(np.random.RandomState(0))
    drawn = [MedianNorm("l2").learn(records(X), 8.0, generator) for _ in range(n)]
    counts = np.bincount(np.searchsorted(RADII, drawn) - 1, minlength=len(expected))
    tails = np.minimum(binom.cdf(counts, n, expected), binom.sf(counts - 1, n, expected))
    assert tails.min() > 1e-9


@pytest.mark.parametrize("scale", [1e-9, 1.0, 3e8])
@pytest.mark.parametrize("norm, order", [("l1", 1), ("l2", 2)])
def test_the_median_is_found_at_any_scale(norm, order, scale):
    X = scale * np.random.default_rng(0).normal(size=(3000, 4))
    found = MedianNorm(norm).learn(records(X), 2.0, as_generator(np.random.RandomState(1)))
    # the upper end of a cell of a quarter of an octave, or of one next to it
    assert 0.8 < found / np.median(np.linalg.norm(X, order, axis=1)) < 1.5


def test_norms_that_are_all_alike_have_a_cell():
    X = np.full((3000, 1), 7.0) + np.linspace(0, 1e-3, 3000)[:, None]
    assert 7.0 < MedianNorm("l2").learn(records(X), 1.0, as_generator(np.random.RandomState(2))) < 9.0


def test_without_noise_it_is_the_cell_of_the_median():
    X = np.geomspace(0.1, 10, 101)[:, None]
    assert 1.0 <= MedianNorm("l2").learn(records(X), np.inf, as_generator()) < 1.2


@pytest.mark.slow
def test_few_records_leave_a_norm_of_rows_of_ordinary_size():
    X, generator = np.full((20, 16), 0.5), as_generator(np.random.RandomState(3))
    found = [MedianNorm("l2").learn(records(X), 1e-6, generator) for _ in range(2000)]
    assert 0.25 < np.median(found) / 2 < 4 and np.mean(np.abs(np.log2(found) - 1) > 8) < 0.05


# ---- the shares of classes


@pytest.mark.parametrize("classes", [[0, 1], ["a", "b", "c"]])
def test_counts_are_hidden_as_far_as_a_label_moves_them(classes, monkeypatch):
    scales, counts = [], []

    def noise(generator, shape, scale, step):
        scales.append(scale)
        return np.zeros(shape)

    monkeypatch.setattr(first_releases, "grid_noise", noise)
    for label in classes:
        y = np.array([*classes, *classes, label])
        learned = ClassShares().learn(records(np.zeros((len(y), 1)), y, classes), 2.5, None)
        shares = [learned] if len(classes) == 2 else [learned[k] for k in classes]
        counts.append(len(y) * np.array(shares))
    moved = max(np.abs(one - other).sum() for one, other in itertools.combinations(counts, 2))
    assert scales[0] == pytest.approx(moved / 2.5)


def test_shares_are_near_and_no_surer_than_their_noise():
    y = np.arange(2000) % 10 == 0
    generator = as_generator(np.random.RandomState(0))
    data = records(np.zeros((len(y), 1)), y.astype(int), [0, 1])
    found = [ClassShares().learn(data, 0.1, generator) for _ in range(300)]
    assert np.mean(found) == pytest.approx(0.1, abs=0.003)
    assert np.std(found) == pytest.approx(np.sqrt(2) * 10 / 2000, rel=0.3)
    nothing = records(data.X, np.zeros(2000, int), [0, 1])
    found = [ClassShares().learn(nothing, 0.1, generator) for _ in range(300)]
    assert min(found) == 10 / 2000
    assert ClassShares().learn(nothing, 1e-5, generator) == 0.5


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
@pytest.mark.parametrize("scale", [0.1, 20.0, 1e6])
def test_no_share_is_closer_to_none_or_all_than_the_noise(classes, scale):
    """Neither of a class that all have, nor of one that none has."""
    n, epsilon = 500, (1 if len(classes) == 2 else 2) / scale
    least = min(max(scale, 0.5), n / 2) / n
    generator = as_generator(np.random.RandomState(0))
    for everyone in classes:
        data = records(np.zeros((n, 1)), np.full(n, everyone), classes)
        found = [ClassShares().learn(data, epsilon, generator) for _ in range(50)]
        shares = np.array([[each] if len(classes) == 2 else list(each.values()) for each in found])
        assert least - 1e-12 <= shares.min() and shares.max() <= 1 - least + 1e-12


def limits_of(signal):
    """Return the smallest and the largest fraction of epsilon that shares of classes take."""
    if signal < 3:
        return 0.8, 0.8
    return (0.05, 0.25) if signal < 10 else (0.05, 0.05) if signal < 30 else (0.01, 0.05)


def check_fractions(kind):
    """Shares are known to 0.04, or at a limit, from which on more or less of epsilon serves better."""
    seen = set()
    for n, p, epsilon, K in itertools.product(
        (21, 310, 1100, 4000, 10**5), (1, 9, 80), (0.01, 0.3, 8.0), (2, 3, 5)
    ):
        model = DPLogisticRegression(epsilon, norm="l2")
        shape = PublicShape(n, p, 1 if K == 2 else K)
        planned = kind().planned(model, shape, epsilon)
        signal = n * epsilon / shape.n_problems / (p + 1)
        if signal >= 100:  # there is a model to learn, which tells shares, too
            assert planned is None
            continue
        low, high = limits_of(signal)
        moved = 1 if K == 2 else 2
        deviation = np.sqrt(2) * moved / (planned.fraction * epsilon) / n
        assert (
            deviation == pytest.approx(0.04, rel=1e-9)
            or (planned.fraction == low and deviation < 0.04)
            or (planned.fraction == high and deviation > 0.04)
            or planned.fraction == low == high
        )
        seen.add((low, high, planned.fraction in (low, high)))
    assert len(seen) == 6


class AlwaysATwentieth(ClassShares):
    """The broken twin takes one fraction of epsilon for all shapes."""

    def planned(self, model, shape, epsilon):
        planned = super().planned(model, shape, epsilon)
        return planned and replace(planned, fraction=1 / 20)


class OfAllProblems(ClassShares):
    """The broken twin forgets that two counts of several move together."""

    def planned(self, model, shape, epsilon):
        return super().planned(model, replace(shape, n_problems=1), epsilon)


def test_shares_are_as_precise_as_an_intercept_needs_them():
    check_fractions(ClassShares)


@pytest.mark.parametrize("twin", [AlwaysATwentieth, OfAllProblems])
def test_twins_that_plan_other_fractions_are_found(twin):
    with pytest.raises(AssertionError):
        check_fractions(twin)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_learned_shares_deviate_as_planned(classes):
    n, epsilon, p = (3000, 0.1, 50) if len(classes) == 2 else (8000, 0.1, 50)
    data = records(np.zeros((n, p)), np.arange(n) % len(classes), classes)
    planned = ClassShares().planned(DPLogisticRegression(epsilon), data.shape, epsilon)
    assert 0.05 < planned.fraction < 0.25
    generator = as_generator(np.random.RandomState(0))
    found = [planned.learn(data, planned.fraction * epsilon, generator) for _ in range(400)]
    found = found if len(classes) == 2 else [shares[0] for shares in found]
    # its square has a relative deviation of sqrt(5 / 400), so this is more than five deviations
    assert np.std(found) == pytest.approx(0.04, rel=0.3)


def test_shares_are_not_learned_where_they_are_of_no_use():
    shape = PublicShape(2000, 30)

    def planned(epsilon=0.1, **parameters):
        return ClassShares().planned(DPLogisticRegression(epsilon, **parameters), shape, epsilon)

    assert planned() is not None and planned(base_rate=0.3) is not None
    assert planned(fit_intercept=False) is None and planned(np.inf) is None
    # weights of classes change shares in the order of the public labels
    weights = {0: 1.0, 1: 3.0}
    assert planned(class_weight=weights) is None
    assert planned(class_weight=weights, classes=[0, 1]) is not None and planned(3.0) is None


def check_doubled(function):
    shares = np.linspace(0, 1, 2**12 + 1)[1:-1]
    values = function(shares)
    assert (np.diff(values) >= 0).all() and (np.diff(values) <= 2 * np.diff(shares)).all()
    assert (values + values[::-1] == 1).all()
    assert ((values > 0) & (values < 1)).all()
    low = shares <= 0.5
    assert (values[low] <= 0.5).all() and (values[~low] >= 0.5).all()
    assert (values[shares <= 0.25] == 2 * shares[shares <= 0.25]).all()
    assert (values[low & (shares >= 0.25)] == 0.5).all()


@pytest.mark.parametrize(
    "twin",
    [
        lambda p: p,
        lambda p: np.minimum(2 * p, 0.5),
        lambda p: np.minimum(2 * p, 1 - 1e-9),
        lambda p: np.where(p <= 0.5, np.minimum(2 * p, 0.5), p),
        lambda p: np.where(p <= 0.5, 2 * p, 2 * p - 1),
    ],
)
def test_what_is_doubled_stays_on_its_side(twin):
    check_doubled(doubled)
    with pytest.raises(AssertionError):
        check_doubled(twin)


def told_of_nothing(rate, epsilon, length, multiples=1.0):
    """Return the probability over the share, of rows that are all equal, without noise."""
    n, p = 2000, 9
    X = np.zeros((n, p))
    X[:, 0] = length
    y = np.arange(n) < rate * n
    model = DPLogisticRegression(epsilon, base_rate=rate, classes=[False, True])
    return fitted(with_noise(model, np.zeros((2, 1, p + 1))), X, y).predict_proba(X[:1])[0, 1] / rate


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("length", [0.0, 1.0])
def test_rows_that_tell_nothing_are_given_the_share(rate, length, monkeypatch):
    """Whether the penalty rules, or records do; it counts from twice the share."""
    epsilons = (0.002, 0.01, 0.025, 0.1)  # 0.4 to 20 units of the noise
    for epsilon in epsilons:
        assert told_of_nothing(rate, epsilon, length) == pytest.approx(1, abs=0.13)
    # without what is given back it would be too likely
    monkeypatch.setattr(LinearNoise, "levels", property(lambda noise: np.zeros(1)))
    assert all(told_of_nothing(rate, epsilon, length) > 1.4 for epsilon in epsilons[:3])


@pytest.mark.parametrize("largest", [None, 4.0])
def test_what_is_given_back_is_from_the_least_of_the_documented_sum(largest):
    """With the penalty of what was minimised, which may be more than lambda; no weight adds to it."""
    rates, s, R2 = {0: 0.05, 1: 0.4, 2: 0.9}, 0.6, 0.6**2 + 0.9**2
    model = DPLogisticRegression(
        0.5,
        base_rate=rates,
        classes=[0, 1, 2],
        intercept_scaling=s,
        data_norm=0.9,
        max_sample_weight=largest,
        max_derivative=None,
    )
    noise = model.calibration(PublicShape(300, 4, 3))
    mu = 3 * noise.alpha
    noise = replace(noise, scales=replace(noise.scales, mu=mu))
    for p, level in zip(rates.values(), noise.levels, strict=True):

        def total(z, p=p):
            squared = (z - logit(doubled(p))) ** 2
            penalty = mu / (2 * (largest or 1.0)) * 2 * squared / (s**2 + R2)
            return -p * log_expit(z) - (1 - p) * log_expit(-z) + penalty

        assert level == pytest.approx(logit(p) - minimize_scalar(total).x, abs=1e-6)
        assert abs(level) > 0.1


@pytest.mark.parametrize(
    "parameters", [{"alpha": 0.1}, {"epsilon": np.inf}, {"class_weight": {True: 1.0}}]
)
def test_where_the_penalty_is_given_it_counts_from_the_share(parameters):
    shape = PublicShape(2000, 9)
    model = DPLogisticRegression(0.1, base_rate=0.05, classes=[False, True])
    (start,), (level,) = model.problem().offsets, model.calibration(shape).levels
    plain = model.set_params(**parameters)
    (exact,) = plain.problem().offsets
    noise = plain.calibration(shape)
    assert not len(noise.levels) and plain.problem().shares == () and level < 0 and exact < start < 0
    z = plain.problem().loss.unweighted.decision(np.array([exact]))
    assert expit(z[0]) == pytest.approx(0.05)


# ---- the mean count


def mean_counts(targets, persons, monkeypatch, bound=4.0):
    """Return the scale of the noise and the sums of targets beside it, which has been left out."""
    scales, sums = [], []

    def noise(generator, shape, scale, step):
        scales.append(scale)
        return np.zeros(shape)

    monkeypatch.setattr(first_releases, "grid_noise", noise)
    for y in targets:
        ids = [0, 0, 0, 1, 1, 2] if persons else range(len(y))
        one = Records(np.zeros((len(y), 1)), np.asarray(y, float), {}, persons=Persons.of(ids, y))
        sums.append(MeanCount(bound).learn(one, 2.5, None) / bound * one.persons.n)
    return scales[0], np.array(sums)


@pytest.mark.parametrize("persons", [False, True])
def test_a_sum_is_hidden_as_far_as_a_target_moves_it(persons, monkeypatch):
    # the first record, or all rows of the first person, takes all values; those of others stay
    own, others = (3, [1.5, 0.5, 2.0]) if persons else (1, [0.5, 1.0, 1.5, 0.5, 2.0])
    targets = [[value] * own + others for value in (-3.0, 0.0, 0.7, 4.0, 1e300)]
    scale, sums = mean_counts(targets, persons, monkeypatch)
    assert scale == pytest.approx(np.ptp(sums) / 2.5, rel=1e-9)


def test_targets_that_are_not_clipped_move_it_more(monkeypatch):
    monkeypatch.setattr(MeanCount, "_part", lambda self, targets: targets / self.bound)
    scale, sums = mean_counts([[0.0, 1.0, 1.0], [12.0, 1.0, 1.0]], False, monkeypatch, bound=6.0)
    assert np.ptp(sums) / 2.5 > 1.5 * scale


def test_a_mean_is_near_and_no_smaller_than_its_noise():
    y = np.arange(2000) % 4.0
    generator = as_generator(np.random.RandomState(0))
    data = records(np.zeros((len(y), 1)), y)
    found = [MeanCount(10.0).learn(data, 0.1, generator) for _ in range(300)]
    assert np.mean(found) == pytest.approx(1.5, abs=0.03)
    assert np.std(found) == pytest.approx(np.sqrt(2) * 10 / 2000 * 10, rel=0.3)
    nothing = records(data.X, np.zeros(2000))
    assert min(MeanCount(10.0).learn(nothing, 0.1, generator) for _ in range(300)) == 0.05
    assert MeanCount(10.0).learn(data, np.inf, generator) == pytest.approx(1.5, abs=1e-7)


def check_fractions_of_means(kind):
    """The noise is a thirtieth of the bound long, or shorter with a hundredth of epsilon."""
    model = DPPoissonRegressor(target_bound=10.0)
    found = {
        n: kind(10.0).planned(model, PublicShape(n, 30), 0.1) for n in (900, 1100, 7000, 40_000, 10**6)
    }
    assert found[900] is None  # it would take more than three tenths
    for n in (1100, 7000):
        assert 10 / (found[n].fraction * 0.1) / n == pytest.approx(10 / 30, rel=1e-9)
    assert found[40_000].fraction == found[10**6].fraction == 0.01
    assert {release.bound for release in found.values() if release} == {10.0}


class MeanForATwentieth(MeanCount):
    """The broken twin takes one fraction of epsilon for all shapes."""

    def planned(self, model, shape, epsilon):
        planned = super().planned(model, shape, epsilon)
        return planned and replace(planned, fraction=1 / 20)


def test_a_mean_is_bought_where_it_will_be_known():
    check_fractions_of_means(MeanCount)
    with pytest.raises(AssertionError):
        check_fractions_of_means(MeanForATwentieth)
    for parameters in ({"fit_intercept": False}, {"epsilon": np.inf}):
        model = DPPoissonRegressor(target_bound=10.0).set_params(**parameters)
        assert MeanCount(10.0).planned(model, PublicShape(7000, 30), model.epsilon) is None


# ---- a penalty that counts from the base rate


def test_counts_start_from_the_mean_count():
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 3
    model = DPPoissonRegressor(
        float("inf"), alpha=1e9, target_bound=9.0, base_rate=2.5, intercept_scaling=0.5
    ).fit(X, y)
    assert np.exp(model.intercept_) == pytest.approx(2.5, rel=1e-6)
    assert np.abs(model.coef_).max() < 1e-6
    assert model.predict([[0.0, 0.0]]) == pytest.approx([2.5], rel=1e-6)


@pytest.mark.parametrize("max_derivative", [None, "auto", 0.6])
@pytest.mark.parametrize("rate", [0.02, {0: 0.2, 1: 0.05, 2: 0.9}])
def test_a_model_that_learned_nothing_predicts_the_base_rate(rate, max_derivative):
    K = 2 if rate == 0.02 else 3
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % K
    model = DPLogisticRegression(
        float("inf"),
        alpha=1e9,
        base_rate=rate,
        classes=list(range(K)),
        intercept_scaling=0.5,
        max_derivative=max_derivative,
    ).fit(X, y)
    expected = [0.02] if K == 2 else list(rate.values())
    found = expit(model.decision_function([[0.0, 0.0]]).ravel())
    assert found == pytest.approx(expected, rel=1e-6)
    # the intercept alone would tell less of a rare label
    assert (expit(model.intercept_[0]) < 0.99 * expected[0]) == (max_derivative == 0.6)
    assert np.abs(model.coef_).max() < 1e-6


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("rate", [1e-9, 0.1, 0.999])
def test_a_base_rate_moves_no_record_s_influence(perturbation, rate):
    # at fixed noise: the sensitivity of the minimiser, and that of the noise which explains a model
    models = [
        DPLogisticRegression(
            alpha=1.0,
            data_norm=1.0,
            fit_intercept=True,
            perturbation=perturbation,
            classes=[0, 1],
            base_rate=base,
            random_state=5,
        )
        for base in (None, rate)
    ]
    shape = PublicShape(20, 1)
    plain, moved = (model.calibration(shape).scales for model in models)
    assert (plain.mu, plain.linear_scale) == (moved.mu, moved.linear_scale)
    X, y = np.zeros((20, 1)), np.arange(20) % 2
    found = []
    for row, label in itertools.product((-9.0, 0.0, 9.0), (0, 1)):
        X[0], y[0] = row, label
        with pytest.warns(SeededNoiseWarning):
            model = models[1].fit(X, y)
        found.append(np.append(model.coef_, model.intercept_))
    apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(found, 2))
    assert apart <= (2 * np.sqrt(2) / 20 + 1e-6) / moved.mu


@pytest.mark.parametrize("max_derivative", [None, "auto", 0.75])
def test_the_least_risk_is_that_of_the_penalty_from_the_base_rate(max_derivative):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 2)), rng.integers(2, size=400)
    model = DPLogisticRegression(
        alpha=0.3, data_norm=2.0, classes=[0, 1], base_rate=0.01, max_derivative=max_derivative
    )
    records = model._check_records(X, y)
    (value,) = model.problem().optimal_values([model.calibration(records.shape)], records, 10.0)
    mu = model.calibration(records.shape).scales.mu
    loss = model.problem().loss
    exact = clone(model).set_params(
        epsilon=float("inf"), alpha=mu, max_derivative=model.largest_derivative
    )
    exact.fit(X, y)
    risk = loss.value((2 * y - 1) * loss.prediction(exact.decision_function(X))).mean()
    apart = np.append(exact.coef_, exact.intercept_ - loss.prediction(np.log(0.01 / 0.99)))
    assert value == pytest.approx(risk + mu / 2 * apart @ apart, abs=1e-6)


@pytest.mark.parametrize(
    "parameters, said",
    [
        ({"base_rate": 0.0}, "neither 0 nor 1"),
        ({"base_rate": {0: 0.5, 1: 1.5}}, "neither 0 nor 1"),
        ({"base_rate": 0.2, "classes": [0, 1, 2]}, "each of 3 classes"),
        ({"base_rate": {0: 0.2, 2: 0.8}}, "each of 2 classes"),
        ({"base_rate": 0.2, "fit_intercept": False}, "fit_intercept=True"),
    ],
)
def test_shares_that_cannot_be(parameters, said):
    with pytest.raises(ValueError, match=said):
        DPLogisticRegression(**{"classes": [0, 1], **parameters}).fit("no records", None)


@pytest.mark.parametrize(
    "parameters, said",
    [
        ({"base_rate": 0.0}, "counts from its logarithm"),
        ({"base_rate": np.float32(2.0), "fit_intercept": False}, "fit_intercept=True"),
        ({"base_rate": "auto", "target_bound": None}, "target_bound must be a number"),
    ],
)
def test_means_that_cannot_be(parameters, said):
    with pytest.raises((TypeError, ValueError), match=said):
        DPPoissonRegressor(**{"target_bound": 9.0, **parameters}).fit("no records", None)


@pytest.mark.parametrize("max_derivative", [None, "auto", 0.6])
@pytest.mark.parametrize("weights", [{0: 3.0, 1: 0.5}, {0: 0.2, 1: 4.0, 2: 1.5}])
def test_weights_of_classes_change_the_base_rate_as_they_change_counts(weights, max_derivative):
    K = len(weights)
    counts = np.array([50, 200, 30][:K])
    y = np.repeat(np.arange(K), counts)
    shares = counts / counts.sum()
    model = DPLogisticRegression(
        float("inf"),
        alpha=1e9,
        class_weight=weights,
        classes=list(range(K)),
        base_rate=dict(enumerate(shares.tolist())),
        max_derivative=max_derivative,
    ).fit(np.zeros((len(y), 1)), y)
    weighted = counts * np.array(list(weights.values()))
    expected = weighted / weighted.sum()
    found = expit(model.decision_function([[0.0]]).ravel())
    assert found == pytest.approx(expected[1:] if K == 2 else expected, rel=1e-6)
    with pytest.raises(ValueError, match="without classes"):
        model.set_params(classes=None).fit("no records", None)


def test_shares_of_labels_that_are_learned():
    X, y = np.zeros((30, 1)), np.arange(30) % 3
    with pytest.warns(match="learns the set of labels"), pytest.raises(ValueError, match="3 classes"):
        DPLogisticRegression(base_rate=0.2).fit(X, y)


def test_ridge_learns_the_norm_that_it_bounds():
    X = np.random.default_rng(0).normal(size=(4000, 9)) * 50
    for name, order in (("data_norm_l1", 1), ("data_norm", 2)):
        bounds = {"data_norm": 1e3, name: "auto"}
        model = DPRidge(2.0, target_range=(-1, 1), **bounds).fit(X, X[:, 0] / 100)
        learned = getattr(model, f"{name}_")
        assert 0.8 < learned / np.median(np.linalg.norm(X, order, axis=1)) < 1.5
        again = model.post_process(alpha=0.5)
        assert getattr(again, f"{name}_") == learned and again.predict(X[:1]).shape == (1,)

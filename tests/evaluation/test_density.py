"""Histogram densities: every density has a range, and figures are near the exact ones."""

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline

from dpselect import DPHistogramDensity, StabilityGridSearchCV, evaluate
from dpselect.accounting.privacy_loss import PrivacyLoss
from dpselect.evaluation import DensityEvaluation
from dpselect.evaluation.density import LEAST_SHARE, DensityCells
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.metrics import IntegratedSquaredErrorScore
from dpselect.noise import as_generator, discrete_laplace, root_stream
from dpselect.noise.grid import noise_ratio
from dpselect.preprocessing import BoundedScaler

INF = float("inf")
RNG = np.random.default_rng(0)
X = RNG.beta(2, 5, size=(12_000, 2))
HELD = X[2000:]
NAMES = "integrated_squared_error", "log_gain", "zero_density"


def density(width, stream=0, **given):
    # noise that is long makes cells without density, and cells of any density
    model = DPHistogramDensity(0.3, bin_width=width, bounds=(0, 1), **given)
    return model.set_params(random_state=root_stream(stream)).fit(X[:2000])


def exact(model, X):
    logarithms = model.score_samples(X)
    return dict(
        zip(
            NAMES,
            (
                IntegratedSquaredErrorScore()(model, X),
                np.mean(np.maximum(logarithms, np.log(LEAST_SHARE))),
                np.mean(logarithms == -np.inf),
            ),
        )
    )


@pytest.mark.parametrize("width", [0.5, 0.1, 0.02])
def test_figures_without_noise_are_near_the_exact_ones(width):
    model = density(width)
    found = evaluate(model, HELD, epsilon=INF)
    assert isinstance(found, DensityEvaluation) and found.metrics == NAMES
    for name, truth in exact(model, HELD).items():
        estimate = found.metric(name)
        assert estimate.value == pytest.approx(truth, abs=0.003), name
        assert estimate.low <= truth <= estimate.high, name
    # to mistake a sum for a mean, or a volume for 1, would show
    assert abs(exact(model, HELD)["integrated_squared_error"]) > 0.3


def test_a_gain_does_not_depend_on_units():
    bounds, noise = {0: (0, 1), 1: (0, 1)}, root_stream(0)
    model = DPHistogramDensity(0.3, bin_width=0.2, bounds=(-1, 1), random_state=noise)
    search = StabilityGridSearchCV(
        make_pipeline(BoundedScaler(bounds), model), {}, epsilon=0.3, random_state=noise
    ).fit(X[:2000])
    found = evaluate(search, HELD, epsilon=INF).metric("log_gain")
    # cells of the scaled columns have four times the volume
    gains = np.log(4) + search.score_samples(HELD)
    assert found.low <= np.mean(np.maximum(gains, np.log(LEAST_SHARE))) <= found.high
    assert found.high - found.low < 0.1


def test_every_row_has_the_range_of_its_density():
    model = density(0.02)
    cells = DensityCells.of(model.density_, model.bin_edges_)
    assert (np.diff(cells.densities.ravel()) >= 0).all() and len(cells.densities) > 30
    found = np.exp(model.score_samples(np.vstack([HELD, [[2.0, 0.5], [-1.0, 0.5]]])))
    least, most = cells.densities[cells.index(found, None)].T
    assert (least <= found * (1 + 1e-12)).all() and (found * (1 - 1e-12) <= most).all()
    assert cells.index(np.array([0.0, np.nan]), None).tolist() == [0, 0]
    assert (least[1:] * 2 ** (1 / 16) * (1 + 1e-12) >= most[1:]).all() or least.min() == 0


def test_a_density_that_is_the_same_everywhere_gains_nothing():
    model = DPHistogramDensity(INF, bin_width=0.5, bounds=(0, 1)).fit(
        [[0.2, 0.2], [0.2, 0.8], [0.8, 0.2], [0.8, 0.8]]
    )
    found = evaluate(model, HELD, epsilon=1.0, random_state=root_stream(0))
    assert found.metric("log_gain").low <= 0 <= found.metric("log_gain").high
    assert found.metric("integrated_squared_error").value == pytest.approx(1.0, abs=0.01)


def coverage(m, epsilon, scale=1.0, repetitions=500):
    """Shares of repetitions, with records drawn anew, that are told, and of these right."""
    model = density(0.1)
    rows = np.random.default_rng(1).beta(2, 5, size=(200_000, 2))
    truth = exact(model, rows)
    cells = DensityCells.of(model.density_, model.bin_edges_)
    shares = np.bincount(
        cells.index(np.exp(model.score_samples(rows)), None), minlength=cells.shape[0]
    ) / len(rows)
    generator = as_generator(0)
    counts = generator.multinomial(m, shares, size=repetitions)
    noise = scale * discrete_laplace(generator, counts.shape, noise_ratio(epsilon, 2))
    noisy = NoisyCounts.of(1.0 * (counts + noise), m, noise_variance(epsilon))
    readers = DensityEvaluation(
        counts_=noisy.h, n_records=m, privacy_=PrivacyLoss(1.0, label=""), **vars(cells)
    )._readers
    for name, metric in readers.items():
        value, low, high = metric(noisy)
        told = ~np.isnan(value)
        right = (low <= truth[name]) & (truth[name] <= high)
        yield name, told.mean(), right[told].mean() if told.any() else np.nan


@pytest.mark.parametrize("m, epsilon", [(1000, 1.0), (5000, 0.3), (20_000, 3.0)])
def test_intervals_cover(m, epsilon):
    found = list(coverage(m, epsilon))
    # 0.89 of 500 and more has a probability below 1e-7 at 0.95
    assert all(covered > 0.89 for _, told, covered in found if told > 0.5), found
    assert sum(told > 0.5 for _, told, _ in found) >= 2


def test_noise_that_is_longer_than_stated_is_caught():
    found = {name: covered for name, _, covered in coverage(5000, 0.3, 3.0)}
    assert found["log_gain"] < 0.85 and found["zero_density"] < 0.85


def test_groups_and_persons():
    model, rng = density(0.1), np.random.default_rng(0)
    by = np.where(HELD[:, 0] > 0.3, "high", "low")
    noise = root_stream(0)
    found = evaluate(model, HELD, epsilon=1.0, by=by, levels=["low", "high"], random_state=noise)
    gap = found.group("low").metric("log_gain") - found.group("high").metric("log_gain")
    assert gap.low > 0 or gap.high < 0  # where densities are high, and where they are low
    whose = rng.integers(3000, size=len(HELD))
    persons = evaluate(model, HELD, epsilon=1.0, groups=whose, random_state=noise)
    truth = exact(model, HELD)["log_gain"]
    assert persons.privacy_.adjacency.unit == "person" and persons.n_records < 3001
    assert persons.metric("log_gain").low - 0.1 < truth < persons.metric("log_gain").high + 0.1


def test_refusals():
    other = KernelDensity().fit(X[:10])
    for given, says in (
        (dict(model=other), "give a fitted DPHistogramDensity"),
        (dict(target_range=(0, 1)), "target_range is of regressions"),
        (dict(X=X[:, :1].copy()), "could not be answered"),
    ):
        given = {"model": density(0.5), "X": HELD[:10], "epsilon": 1.0} | given
        with pytest.raises((TypeError, ValueError), match=says):
            evaluate(given.pop("model"), given.pop("X"), **given)

"""The public rule for the width of a histogram's bins: what it counts, and where it decides."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpselect import DPHistogramDensity, StabilityGridSearchCV
from dpselect.density.count_noise import BELL
from dpselect.records import PublicShape

WIDTHS = [0.5, 0.2, 0.1, 0.05, 0.02]


def parts(epsilon=1.0, n=1000, width=0.1, bounds=(0, 1), d=1):
    model = DPHistogramDensity(epsilon, bin_width=width, bounds=bounds)
    return model.calibration(PublicShape(n, d)).regularisation_parts()


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("d", [1, 2])
def test_noise_and_sampling_are_what_fits_have(d):
    """Of uniform records, without clipping: mean integrated squared errors of 300 histograms."""
    n, width, epsilon = 20_000, 0.25, 0.5
    rng = np.random.default_rng(0)
    noise, sampling = [], []
    for i in range(300):
        X = rng.random((n, d))
        exact = DPHistogramDensity(math.inf, bin_width=width, bounds=(0, 1)).fit(X).density_
        noisy = (
            DPHistogramDensity(epsilon, bin_width=width, bounds=(0, 1), random_state=i).fit(X).density_
        )
        noise.append(np.mean((noisy - exact) ** 2))
        sampling.append(np.mean((exact - 1) ** 2))
    expected = parts(epsilon, n, width, d=d)
    # one constraint among the cells: the shares add up to 1
    free = 1 - width**d
    assert np.mean(noise) == pytest.approx(free * expected[0], rel=0.25)
    assert np.mean(sampling) == pytest.approx(free * expected[1], rel=0.25)


@pytest.mark.parametrize("widths", [(0.005,), (0.01, 0.005), (0.5,), (0.5, 0.5)])
def test_the_width_counts_as_for_bells(widths):
    """The squared error of the exact histogram of normal columns, for wide cells roughly."""
    square, known = 1.0, 1.0
    for width in widths:
        law = norm(0.47, BELL)
        masses = np.diff(law.cdf(np.linspace(0, 1, round(1 / width) + 1)))
        square *= 1 / (2 * math.sqrt(math.pi) * BELL)
        known *= np.sum(masses**2) / width
    found = parts(width=widths, bounds=[(0, 1)] * len(widths), d=len(widths))[2]
    assert found == pytest.approx(square - known, rel=0.05 if max(widths) < 0.1 else 0.2)


def test_units_do_not_matter():
    assert parts(width=8.0, bounds=(10, 90)) == pytest.approx(parts(width=0.1))


def test_without_noise_the_noise_costs_nothing():
    assert parts(math.inf)[0] == 0.0 < parts(1.0)[0]


def plan(n, epsilon, strategy="stability"):
    model = DPHistogramDensity(bounds=(0, 1))
    return StabilityGridSearchCV(model, {"bin_width": WIDTHS}, epsilon=epsilon, strategy=strategy).plan(
        n, 1
    )


def test_the_plan_says_what_the_rule_prefers():
    (said,) = [m for m in plan(1000, 1.0).messages if "public rule" in m]
    assert "bin_width=0.02" in said and "another bin_width" in said


@pytest.mark.parametrize("n, epsilon", [(100, 0.1), (2000, 0.05), (300, 0.1)])
def test_where_a_choice_would_be_left_to_chance_the_rule_decides(n, epsilon):
    planned = plan(n, epsilon, "auto")
    assert planned.strategy == "first_candidate"
    (place,) = np.flatnonzero(planned.considered)
    assert place == np.argmin([sum(parts(epsilon, n, width)) for width in WIDTHS]) > 0


@pytest.mark.parametrize("strategy", ["auto", "stability"])
def test_no_records_are_refused_as_such(strategy):
    model = DPHistogramDensity(bounds=(0, 1))
    search = StabilityGridSearchCV(model, {"bin_width": WIDTHS}, strategy=strategy)
    with pytest.raises(ValueError, match="n_samples=0"):
        search.fit(np.empty((0, 1)))
    with pytest.raises(ValueError, match="feature"):
        search.fit(np.empty((20, 0)))

"""The law of released histograms on neighbouring data sets, sampled.

The bound of the audit must stay under the claimed epsilon and go over it for a twin with half
the noise. epsilon = 1.
"""

import numpy as np
import pytest

from dpselect import SeededNoiseWarning
from dpselect.density import DPHistogramDensity
from dpselect.density.cells import cell_masses
from dpselect.noise import as_generator
from dpselect.records.public_shape import PublicShape
from tests.marks import slow_but

from .audit import loss_lower_bound

N = 200_000
# one record moves from the first cell to the second. The last cell holds enough records for
# the total, by which the counts are divided, to be nearly constant: the release then shows them.
COUNTS = np.array([6, 5, 0, 100_000])
NEIGHBOUR = np.array([5, 6, 0, 100_000])


def sample(model, counts, size, seed):
    """Released masses (size, cells) of `size` fits that differ in their noise."""
    calibration = model.calibration(PublicShape(len(counts), 1))
    noise = calibration.standard_noise(as_generator(seed), (size, len(counts)))
    return cell_masses(counts + noise)


def audit(model):
    # the record's effect is largest where the first count is high and the second low
    def statistic(masses, seed):
        first, second = 100_011 * masses[:, :2].T
        low = np.rint(np.minimum(first - 6, 5 - second))
        return low + np.random.default_rng(seed).uniform(0, 0.5, size=len(low))

    released = [sample(model, counts, N, seed) for seed, counts in enumerate((COUNTS, NEIGHBOUR))]
    small = [
        sample(model, counts, N, seed)
        for seed, counts in enumerate((np.array([1, 0]), np.array([0, 1])), start=2)
    ]
    return max(
        loss_lower_bound(*(statistic(masses, seed) for seed, masses in enumerate(released))),
        loss_lower_bound(*(masses[:, 0] for masses in released)),
        # where clipping and the division by a small total decide
        loss_lower_bound(*(masses[:, 0] for masses in small)),
    )


@pytest.mark.parametrize("noise", slow_but(["laplace", "discrete_laplace"], 1))
def test_loss_stays_under_the_claim(noise):
    assert 0.8 < audit(DPHistogramDensity(1.0, noise=noise, bounds=(0, 1))) <= 1.0


@pytest.mark.parametrize("noise", slow_but(["laplace", "discrete_laplace"], 1))
def test_half_the_noise_is_caught(noise):
    # scale 1 / epsilon, as if one record changed one count only
    assert audit(DPHistogramDensity(2.0, noise=noise, bounds=(0, 1))) > 1.0


@pytest.mark.parametrize("noise", ["laplace", "discrete_laplace"])
def test_the_sampler_is_the_estimator(noise):
    model = DPHistogramDensity(1.0, bin_width=0.25, noise=noise, random_state=7, bounds=(0, 1))
    counts = np.array([6, 5, 0, 20])
    X = np.repeat([[0.1], [0.3], [0.6], [0.9]], counts, axis=0)
    with pytest.warns(SeededNoiseWarning):
        model.fit(X)
    np.testing.assert_allclose(model.density_ * 0.25, sample(model, counts, 1, seed=7)[0])

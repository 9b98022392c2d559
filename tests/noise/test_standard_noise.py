import numpy as np
import pytest
from scipy import stats

from dpselect.noise import as_generator, exponential, gaussian, gumbel, laplace, spherical_laplace

N = 100_000
# a Kolmogorov-Smirnov p-value below this is a false alarm with probability 1e-7
ALARM = 1e-7


@pytest.mark.parametrize("d", [1, 2, 7, 100])
def test_spherical_laplace(d):
    r = spherical_laplace(as_generator(d), N, d)
    assert r.shape == (N, d)
    assert stats.kstest(np.linalg.norm(r, axis=1), stats.gamma(d).cdf).pvalue > ALARM
    # a coordinate of a uniform direction: (c + 1) / 2 is Beta((d - 1) / 2, (d - 1) / 2)
    cosine = (r / np.linalg.norm(r, axis=1, keepdims=True))[:, -1]
    if d == 1:
        assert stats.binomtest(int((cosine > 0).sum()), N).pvalue > ALARM
    else:
        law = stats.beta((d - 1) / 2, (d - 1) / 2)
        assert stats.kstest((cosine + 1) / 2, law.cdf).pvalue > ALARM


@pytest.mark.parametrize(
    "noise_sample, law",
    [
        (laplace, stats.laplace()),
        (exponential, stats.expon()),
        (gaussian, stats.norm()),
        (gumbel, stats.gumbel_r()),
    ],
)
def test_laws(noise_sample, law):
    r = noise_sample(as_generator(1), (N // 2, 2))
    assert r.shape == (N // 2, 2)
    assert stats.kstest(r.ravel(), law.cdf).pvalue > ALARM

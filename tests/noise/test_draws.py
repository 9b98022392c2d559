import numpy as np
import pytest
from scipy import stats

from dpselect.noise import (
    as_generator,
    ball_laplace,
    exponential,
    gaussian,
    gumbel,
    laplace,
    two_sided_geometric,
)

N = 100_000
# a Kolmogorov-Smirnov p-value below this is a false alarm with probability 1e-7
ALARM = 1e-7


@pytest.mark.parametrize("d", [1, 2, 7, 100])
def test_ball_laplace(d):
    r = ball_laplace(as_generator(d), N, d)
    assert r.shape == (N, d)
    assert stats.kstest(np.linalg.norm(r, axis=1), stats.gamma(d).cdf).pvalue > ALARM
    # a coordinate of a uniform direction: (c + 1) / 2 is Beta((d - 1) / 2, (d - 1) / 2)
    cosine = (r / np.linalg.norm(r, axis=1, keepdims=True))[:, -1]
    if d == 1:
        assert stats.binomtest(int((cosine > 0).sum()), N).pvalue > ALARM
    else:
        law = stats.beta((d - 1) / 2, (d - 1) / 2)
        assert stats.kstest((cosine + 1) / 2, law.cdf).pvalue > ALARM


def test_ball_laplace_in_one_dimension_is_laplace():
    r = ball_laplace(as_generator(0), N, 1).ravel()
    assert stats.kstest(r, stats.laplace().cdf).pvalue > ALARM


@pytest.mark.parametrize(
    "unit_draw, law",
    [
        (laplace, stats.laplace()),
        (exponential, stats.expon()),
        (gaussian, stats.norm()),
        (gumbel, stats.gumbel_r()),
    ],
)
def test_laws(unit_draw, law):
    r = unit_draw(as_generator(1), (N // 2, 2))
    assert r.shape == (N // 2, 2)
    assert stats.kstest(r.ravel(), law.cdf).pvalue > ALARM


@pytest.mark.parametrize("ratio", [1e-3, 0.3, 0.6, 0.95, 0.999])
def test_two_sided_geometric(ratio):
    r = two_sided_geometric(as_generator(2), (N // 2, 2), ratio)
    assert r.shape == (N // 2, 2) and r.dtype == np.int64
    # cut where the expected counts become small, and compare all pieces
    edge = max(1, int(np.log(50 / (N * (1 - ratio))) / np.log(ratio)))
    k = np.arange(-edge + 1, edge)
    inner = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k)
    outer = ratio**edge / (1 + ratio)
    expected = N * np.concatenate([[outer], inner, [outer]])
    counts = np.bincount(np.clip(r.ravel(), -edge, edge) + edge, minlength=2 * edge + 1)
    assert stats.chisquare(counts, expected).pvalue > ALARM


def test_two_sided_geometric_limits():
    assert not two_sided_geometric(as_generator(), 100, 0.0).any()
    # a scale of 2e9, that of the smallest epsilon, and a scale below 1
    wide = two_sided_geometric(as_generator(0), N, np.exp(-5e-10))
    assert stats.kstest(wide * 5e-10, stats.laplace().cdf).pvalue > ALARM
    assert (two_sided_geometric(as_generator(0), N, np.exp(-5.0)) != 0).mean() < 0.02

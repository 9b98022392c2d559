"""Cosines by sums and products: how exact they are, and the same wherever a number is."""

import math

import numpy as np
import pytest

from dpselect.preprocessing import cosines
from dpselect.preprocessing.cosines import cosine, write_cosines

ENDS = [0.0, 2.0**-60, 2.0**-30, 0.25, 0.5, 0.5 - 2.0**-54, 0.5 + 2.0**-53, 1 - 2.0**-53, 1.0]
Z = np.append(np.random.default_rng(0).random(100_000), ENDS)


def features(z, K, periodic=False):
    out = np.empty((len(z), K, z.shape[1]))
    write_cosines(z, out, periodic)
    return out


def error_of_waves(K):
    i = np.arange(1, K + 1)[:, np.newaxis]
    (found,) = features(Z[np.newaxis], K, periodic=True)
    angle = 2 * np.pi * ((i + 1) // 2) * Z
    return np.abs(found - np.where(i % 2, np.cos(angle), np.sin(angle)) / np.sqrt(i)).max()


def error(K=10):
    k = np.arange(1, K + 1)[:, np.newaxis]
    (found,) = features(Z[np.newaxis], K)
    return np.abs(found - np.cos(np.pi * k * Z) / np.sqrt(k)).max()


def test_they_are_exact_but_for_rounding(monkeypatch):
    assert np.abs(cosine(Z) - np.cos(np.pi * Z)).max() < 5e-16
    assert error(4) < 4e-15 and error(10) < 1.2e-14
    assert error_of_waves(2) < 1e-15 and error_of_waves(10) < 1.2e-14
    # a digit less of one coefficient
    rounded = [*cosines.QUARTER_SINE[:-1], round(cosines.QUARTER_SINE[-1], 13)]
    monkeypatch.setattr(cosines, "QUARTER_SINE", rounded)
    assert error(4) > 1e-14


def test_known_values():
    found = cosine(np.array([0.0, 0.5, 1.0, math.nan]))
    assert abs(found[0] - 1) < 1e-15 and found[1] == 0 and found[2] == -found[0] and math.isnan(found[3])


@pytest.mark.parametrize("K, periodic", [(1, False), (2, False), (5, False), (4, True)])
def test_the_same_bits_at_every_place_of_a_block(K, periodic, monkeypatch):
    z = Z[:6000].reshape(6, 1000)
    expected = features(z, K, periodic)
    alone = [features(z[:, j : j + 1], K, periodic) for j in range(50)]
    alone = np.concatenate(alone, axis=2)
    np.testing.assert_array_equal(alone, expected[:, :, :50])
    for at_a_time in (1, 2500, 1 << 20):
        monkeypatch.setattr(cosines, "CACHED", at_a_time)
        np.testing.assert_array_equal(features(z, K, periodic), expected)
        found = features(np.asfortranarray(z[:, ::3]), K, periodic)
        np.testing.assert_array_equal(found, expected[:, :, ::3])

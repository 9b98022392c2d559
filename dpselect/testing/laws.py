"""Estimate the law of a noise sample, and the privacy loss of differences under it."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import gamma, norm

# quantile of Kolmogorov's distance times sqrt(sample size), exceeded with a probability of 1e-7
FAR = 2.9
# tolerance of a correlation of 1, which means that two numbers have the same noise
SAME = 1e-9
# least number of draws other than 0 to estimate a scale
LEAST = 10


@dataclass(frozen=True)
class Law:
    """Noise of m numbers: independent Laplace, spherical Laplace or Gaussian.

    Attributes
    ----------
    kind : {"laplace", "spherical", "gaussian"}
    scales : ndarray of shape (m,)
        b of each number, or its standard deviation; 0 where there is no noise.
    error : float
        Standard error of the scales, as a share of them.
    block : int
        Numbers to a vector of spherical noise.
    same : ndarray of shape (m, 2)
        The number from which each one has its noise, and the factor.
    """

    kind: str
    scales: np.ndarray
    error: float
    block: int
    same: np.ndarray

    def loss(self, differences):
        """Return the largest loss of differences of shape (..., m), or mu^2 of Gaussian noise."""
        differences = np.asarray(differences, dtype=np.float64)
        source, factor = self.same[:, 0].astype(int), self.same[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            # two numbers with the same noise must move together, or their difference is revealed
            explained = differences / factor
            apart = np.abs(explained - explained[..., source]) > 1e-9 * np.abs(explained)
            apart &= source != np.arange(len(source))
            units = np.where(differences == 0, 0.0, differences / self.scales)
        units = np.where(source == np.arange(len(source)), np.abs(units), 0.0)
        units = np.where(apart, np.inf, units)
        if self.kind == "laplace":
            return units.sum(axis=-1)
        if self.kind == "gaussian":
            return (units**2).sum(axis=-1)
        blocks = units.reshape(*units.shape[:-1], -1, self.block)
        return np.sqrt((blocks**2).sum(axis=-1)).sum(axis=-1)


def law_of(draws, step=0.0, blocks=()):
    """Return the Law of draws of shape (n, m) on a grid, or None if it is none of those.

    `blocks` are sizes of vectors that spherical noise may have.
    """
    draws = np.asarray(draws, dtype=np.float64)
    n, m = draws.shape
    same = _same_noise(draws)
    means = np.abs(draws).mean(axis=0)
    kept = np.flatnonzero((same[:, 0] == np.arange(m)) & (means > 0))
    if not len(kept):
        return Law("laplace", means, 0.0, m, same)
    shown = np.count_nonzero(draws, axis=0)
    if shown[shown > 0].min() < LEAST or (shown == 0).any() and shown.max() < n / 2:
        return None  # integer noise that is nearly always 0
    step = np.broadcast_to(step, m)[kept]
    found, means = np.abs(draws[:, kept]), means[kept]
    laws = []
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = np.where(step > 0, step / np.arcsinh(step / means), means)
    scales, error = _pooled(scales, n)
    if _is_near(found / scales, _laplace_cdf, step / scales):
        density = -n * np.log(2 * scales).sum() - (found / scales).sum()
        laws.append((density, "laplace", scales, error, 1))
    deviations, error = _pooled(np.sqrt((found**2).mean(axis=0)), n)
    if _is_near(found / deviations, lambda z, _: 2 * norm.cdf(z) - 1, step / deviations):
        density = -n * np.log(math.sqrt(2 * math.pi) * deviations).sum()
        laws.append((density - ((found / deviations) ** 2).sum() / 2, "gaussian", deviations, error, 1))
    for block in blocks if len(kept) == m else ():
        if block > 1 and m % block == 0:
            mean = math.exp(
                math.log(block) + math.lgamma(block / 2) - math.lgamma((block + 1) / 2)
            ) / math.sqrt(math.pi)
            scales, error = _pooled(means / mean, n)
            norms = np.linalg.norm((found / scales).reshape(n, -1, block), axis=2)
            if _is_near(norms, lambda z, _, block=block: gamma.cdf(z, block), 0.0):
                volume = (
                    math.log(2)
                    + block / 2 * math.log(math.pi)
                    + math.lgamma(block)
                    - math.lgamma(block / 2)
                )
                density = -n * np.log(scales).sum() - norms.size * volume - norms.sum()
                laws.append((density, "spherical", scales, error, block))
    if not laws:
        return None
    _, kind, scales, error, block = max(laws, key=lambda law: law[0])
    full = np.zeros(m)
    full[kept] = scales
    return Law(kind, full, error, block, same)


def is_cut_off(draws, law):
    """Return whether Laplace noise is truncated, so that its support reveals the records."""
    if law.kind != "laplace":
        return False
    kept = law.scales > 0
    sizes = np.abs(draws[:, kept]) / law.scales[kept]
    # the largest of N exceeds log(N) - 3.2, except with a probability of exp(-exp(3.2))
    return bool(sizes.size and sizes.max() < math.log(sizes.size) - 3.2)


def gaussian_delta(epsilon, mu):
    """Return the least delta for which a Gaussian mechanism of sensitivity mu is private."""
    if mu == 0:
        return 0.0
    if not math.isfinite(mu):
        return 1.0
    tail = math.exp(min(epsilon + norm.logcdf(-mu / 2 - epsilon / mu), 0.0))
    return float(norm.cdf(mu / 2 - epsilon / mu) - tail)


def _same_noise(draws):
    m = draws.shape[1]
    same = np.column_stack([np.arange(m), np.ones(m)])
    sizes = np.linalg.norm(draws, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        units = np.where(sizes > 0, draws / sizes, 0.0)
    likeness = units.T @ units
    for j in range(1, m):
        before = np.flatnonzero(np.abs(likeness[j, :j]) > 1 - SAME)
        if len(before):
            k = before[0]
            same[j] = k, np.sign(likeness[j, k]) * sizes[j] / sizes[k]
    return same


def _pooled(scales, n):
    """Pool scales whose differences are within sampling error; return the standard error, too."""
    middle = scales.mean()
    if (np.abs(scales / middle - 1) < 5 / math.sqrt(n)).all():
        return np.full(len(scales), middle), 1.2 / math.sqrt(n * len(scales))
    return scales, 1.2 / math.sqrt(n)


def _laplace_cdf(z, step):
    """Return P(size <= z) of discrete Laplace noise of scale 1 on a grid, or of Laplace noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.nan_to_num(np.rint(z / step))
    return np.where(step > 0, 1 - 2 * np.exp(-step * (steps + 1)) / (1 + np.exp(-step)), 1 - np.exp(-z))


def _is_near(sizes, cdf, step):
    """Return whether sizes have a distribution, by Kolmogorov's distance."""
    expected = cdf(sizes, step).ravel()
    order = np.argsort(sizes.ravel(), kind="stable")
    expected, sizes = expected[order], sizes.ravel()[order]
    found = np.searchsorted(sizes, sizes, side="right") / len(sizes)
    # on a grid the distribution function has jumps, whose left limits are compared at the point before
    below = np.searchsorted(sizes, sizes, side="left") / len(sizes)
    gaps = np.abs(found - expected).max()
    if np.max(step) < 1e-6:
        gaps = max(gaps, np.abs(below - expected).max())
    return bool(gaps * math.sqrt(len(sizes)) < FAR)

"""Means and ratios of noisy counts, with intervals that cover sampling and noise.

The page "Evaluation" of the documentation has the formulas by the same letters. All functions work on
the last axis, so that many releases can be read at once.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

# quantile of a two-sided 95 % interval
Z = float(ndtri(0.975))
# denominators must be so many standard deviations of their noise above 0
FEWEST_DEVIATIONS = 4.0
# bisection steps
STEPS = 45


@dataclass(frozen=True)
class NoisyCounts:
    """Counts of cells with independent noise, shifted evenly to sum to the total if it is public.

    Attributes
    ----------
    h : ndarray of shape (..., K)
    variance : float
        sigma^2, of the noise of one count before they were moved.
    moved : float
        Number of counts that were moved together, K or more; inf if they were not moved.
    """

    h: np.ndarray
    variance: float
    moved: float

    @classmethod
    def of(cls, released, total, variance):
        """Shift the released counts by the same number each."""
        excess = released.sum(axis=-1, keepdims=True) - total
        moved = released.shape[-1]
        return cls(released - excess / moved, variance, moved)

    def group(self, i, n_groups):
        """Return the counts of one of the groups, which follow each other in `h`."""
        return replace(self, h=self._by_group(n_groups)[..., i, :])

    def over_groups(self, n_groups):
        """Return the sums over the groups."""
        h = self._by_group(n_groups).sum(axis=-2)
        return NoisyCounts(h, n_groups * self.variance, self.moved / n_groups)

    def _by_group(self, n_groups):
        return self.h.reshape(*self.h.shape[:-1], n_groups, -1)

    def noise(self, g):
        """Return the variance of ``sum(g h)`` due to the noise."""
        squares = (g**2).sum(axis=-1) - g.sum(axis=-1) ** 2 / self.moved
        return self.variance * np.maximum(squares, 0.0)  # rounding errors may be negative

    def stands(self, weights):
        """Return whether ``sum(weights h)`` is positive beyond the noise."""
        size = self.h @ weights
        return (size > 0) & (size > FEWEST_DEVIATIONS * np.sqrt(self.noise(weights)))

    def mean(self, values, weights, z=Z):
        """Return (value, low, high, margin) of ``sum(weights values h) / sum(weights h)``.

        Weights lie in [0, 1]. NaN where the denominator does not stand.
        """
        return tuple(number[..., 0] for number in self.means([(values, weights)], z))

    def means(self, pairs, z=Z):
        """Return :meth:`mean` of many pairs of values and weights, on a last axis."""
        parts = (self._sums(*pair) for pair in pairs)
        stands, least, upper_end, a, b, spread, *noise = (np.stack(p, axis=-1) for p in zip(*parts))
        found = a / b
        r = np.clip(found, least, upper_end)
        spread = np.clip(spread, 0.0, (upper_end - r) * (r - least))
        # sums of the products of g = weights (values - r) and the weights, and of g and the weights
        gg, wg, ww, g, w = noise

        def excess(s):
            tilted = spread + np.maximum((least + upper_end - 2 * r) * (s - r), 0.0)
            sampling = b * np.minimum(tilted, (upper_end - s) * (s - least))
            t = s - r
            squares = gg - 2 * t * wg + t**2 * ww - (g - t * w) ** 2 / self.moved
            return (a - s * b) ** 2 - z**2 * (sampling + self.variance * np.maximum(squares, 0.0))

        return figure(stands, found, r, excess, least, upper_end)

    def _sums(self, values, weights):
        """Return the sums of which a mean and its interval are made."""
        among = weights > 0
        h = self.h
        if not among.all():
            h, values, weights = h[..., among], values[among], weights[among]
        least, upper_end = values.min(), values.max()
        size, a = h @ weights, h @ (weights * values)
        ww, w = (weights**2).sum(), weights.sum()
        noise = self.variance * np.maximum(ww - w**2 / self.moved, 0.0)
        stands = (size > 0) & (size > FEWEST_DEVIATIONS * np.sqrt(noise))
        b = np.where(stands, size, 1.0)
        away = values - np.clip(a / b, least, upper_end)[..., None]
        spread = (h * weights * away**2).sum(axis=-1) / b
        g = weights * away
        sums = (g**2).sum(axis=-1), (weights * g).sum(axis=-1), ww, g.sum(axis=-1), w
        shape = np.shape(a)
        return stands, *(np.broadcast_to(x, shape) for x in (least, upper_end, a, b, spread, *sums))

    def pairs(self, wins):
        """Return (value, low, high, margin) of the mean of ``wins[j, k]`` over all pairs.

        A pair is a positive record in bin j and a negative one in bin k.

        Cells are (bin, label) with the label last.
        """
        n, p = self.h[..., 0::2], self.h[..., 1::2]
        label = np.arange(self.h.shape[-1]) % 2
        stands = self.stands(label) & self.stands(1 - label)
        P = np.where(stands, p.sum(axis=-1), 2.0)
        N = np.where(stands, n.sum(axis=-1), 2.0)
        found = self.surplus(wins, np.zeros(P.shape)) / (P * N)
        r = np.clip(found, 0.0, 1.0)

        def excess(s):
            column = s[..., None]
            by_p = n @ wins.T - column * n.sum(axis=-1, keepdims=True)
            by_n = p @ wins - column * p.sum(axis=-1, keepdims=True)
            drawn = (p * by_p**2).sum(axis=-1) + (n * by_n**2).sum(axis=-1)
            sampling = np.maximum(drawn, P * N * pair_variance(s, P, N))
            g = np.concatenate([by_p, by_n], axis=-1)
            return self.surplus(wins, s) ** 2 - Z**2 * (sampling + self.noise(g))

        return figure(stands, found, r, excess, 0.0, 1.0)

    def surplus(self, wins, s):
        """Return the sum of ``wins - s`` over all pairs, without bias from the noise."""
        n, p = self.h[..., 0::2], self.h[..., 1::2]
        # shifting all counts made their noise dependent
        moved = self.variance * (wins.sum() - s * wins.size) / self.moved
        return ((p @ wins) * n).sum(axis=-1) - s * p.sum(axis=-1) * n.sum(axis=-1) + moved

    def share_of_variance(self, errors, y, squares, upper_end):
        """Return (value, low, high, margin) of ``sum(errors h)`` over the variation of y, and that.

        The variation is the sum of squared deviations of y.

        `squares` are those of y. What exceeds `upper_end` is cut off.
        """
        size = self.h.sum(axis=-1)
        stands = self.stands(np.ones(self.h.shape[-1]))
        size = np.where(stands, size, 1.0)
        centre = (self.h @ y / size)[..., None]
        deviations = squares - 2 * centre * y + centre**2
        # correct the bias from the noise in the centre
        total = (self.h * deviations).sum(axis=-1) + self.noise(y - centre) / size
        noise = np.sqrt(self.noise(deviations))
        stands &= (total > 0) & (total > FEWEST_DEVIATIONS * noise)
        total = np.where(stands, total, 1.0)
        lost = self.h @ errors
        found = lost / total
        inside = np.clip(found, 0.0, upper_end)

        def excess(s):
            g = errors - s[..., None] * deviations
            drawn = (self.h * g**2).sum(axis=-1) - (self.h * g).sum(axis=-1) ** 2 / size
            return (lost - s * total) ** 2 - Z**2 * (np.maximum(drawn, 0.0) + self.noise(g))

        return *figure(stands, found, inside, excess, 0.0, upper_end), total

    def absolute_sum(self, rows):
        """Return (value, low, high, margin) of ``sum_i |rows[i] h| / sum(h)``; rows share no cell."""
        everything = np.ones(self.h.shape[-1])
        stands = self.stands(everything)
        size = np.where(stands, self.h.sum(axis=-1), 1.0)[..., None]
        d = self.h @ rows.T / size
        drawn = np.maximum(self.h @ (rows**2).T / size - d**2, 0.0) / size
        noise = [self.noise(row - d[..., i, None]) for i, row in enumerate(rows)]
        s = np.sqrt(drawn + np.stack(noise, axis=-1) / size**2)
        found, length = np.abs(d).sum(axis=-1), np.sqrt((s**2).sum(axis=-1))
        # upper quantile of the sum of absolute normal errors
        above = np.sqrt(2 / np.pi) * s.sum(axis=-1) + Z * np.sqrt(1 - 2 / np.pi) * length
        # bias of |d + e|, whose mean exceeds |d|
        ratio = np.divide(d, s, out=np.full_like(d, np.inf), where=s > 0)
        surplus = np.sqrt(2 / np.pi) * s * np.exp(-(ratio**2) / 2)
        low, high = np.maximum(found - above, 0.0), found + Z * length
        value = np.clip(found - surplus.sum(axis=-1), low, high)
        numbers = value, low, high, np.maximum(above, Z * length)
        return tuple(np.where(stands, number, np.nan) for number in numbers)


def pair_variance(s, P, N):
    """Return Hanley and McNeil's variance of one pair's mean, times the number of pairs."""
    two_positives, two_negatives = s / (2 - s) - s**2, 2 * s**2 / (1 + s) - s**2
    more_P, more_N = np.maximum(P - 1, 0.0), np.maximum(N - 1, 0.0)
    return s * (1 - s) + more_P * two_positives + more_N * two_negatives


def figure(stands, found, inside, excess, least, upper_end):
    """Return value, low, high and margin; the interval ends where `excess` turns positive.

    `excess` is asked for both ends at once, along a first axis. The margin is the longer distance from
    what was `found`, which may lie beyond the ends of the range: they cut off one side only.
    """
    inside = np.asarray(inside, dtype=np.float64)
    ends = np.stack([np.zeros_like(inside) + end for end in (least, upper_end)])
    low, high = _turns(excess, inside, ends)
    margin = np.maximum(high - found, found - low)
    return tuple(np.where(stands, number, np.nan) for number in (inside, low, high, margin))


def _turns(excess, inside, ends):
    """Return where `excess` turns positive between the inside and each of the ends."""
    covered = excess(ends) <= 0
    inside, outside = np.broadcast_to(inside, ends.shape), ends
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        within = excess(middle) <= 0
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    return np.where(covered, ends, inside)

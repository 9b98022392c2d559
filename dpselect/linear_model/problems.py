"""A table of regularised problems, with gradients and curvatures from shared passes over the rows.

The problem of column k on part j of the rows is

    minimise  J_jk(w) = (1/n_j) sum_(i in part j) phi(a_i.w, t_ik) + (mu_jk / 2) ||w||^2 + b_jk.w

A part is what a split of cross-validation trains on; without parts there is one, of all rows.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..rows import in_part
from .losses import Loss, MarginLoss
from .tolerance import longest

# with at most so many coefficients, and more than so many columns, curvatures are inverted in a batch
SMALL, MANY = 16, 64
ONE = np.ones((1, 1))


@dataclass(frozen=True)
class _Terms:
    """Contributions of one row to gradients and curvatures; the only object that is sent to the rows."""

    loss: Loss
    which: np.ndarray
    n_parts: int

    def gradients(self, W, columns, rows, targets, parts=None):
        """Return the sum of the chosen problems' gradients over a block: one array of shape (d, k)."""
        if rows.dense and targets.shape[1] == 1 and 2 * len(columns) > len(W):
            # for many columns a copy is cheaper than factors, constant and labels in each product
            signs = ONE
            if isinstance(self.loss.unweighted, MarginLoss):
                signs, targets = targets, None
            A = rows.matrix(signs)
            derivatives = rows.weighted(self.loss.derivative(A @ W, targets))
            return ((self._left_out(derivatives, parts, columns).T @ A).T,)
        targets = self._targets(targets, columns)
        derivatives = rows.weighted(self.loss.derivative(rows.dot(W), targets))
        return (rows.adjoint_dot(self._left_out(derivatives, parts, columns)),)

    def second_derivatives(self, W, columns, rows, targets, parts=None):
        """Return the second derivatives, shape (b, k)."""
        targets = self._targets(targets, columns)
        curvatures = self.loss.second_derivative(rows.dot(W), targets)
        if not W.any():
            # at 0, a step with a curvature of 0 would lead far out
            curvatures[curvatures == 0] = self.loss.unweighted.curvature
        curvatures = rows.weighted(curvatures)
        return self._left_out(curvatures, parts, columns)

    def _targets(self, targets, columns):
        # broadcast one column to all problems without copying
        if targets.shape[1] > 1:
            targets = targets[:, self.which[columns % len(self.which)]]
        return targets.astype(np.float64, copy=False)

    def _left_out(self, values, parts, columns):
        """Set to 0 the contributions of rows outside of a problem's part; parts follow each other."""
        if parts is not None:
            ends = np.searchsorted(columns, np.arange(self.n_parts + 1) * len(self.which))
            for j, (start, end) in enumerate(zip(ends[:-1], ends[1:])):
                if start < end:
                    values[np.flatnonzero(~in_part(parts, j)), start:end] = 0.0
        return values


class Problems:
    """Gradients and curvatures of k columns on J parts, which are numbered j k + column."""

    def __init__(self, design, targets, which, loss, mu, linear, parts=None):
        self.design, self.terms = design, _Terms(loss, which, len(mu))
        self.shape = mu.shape
        self.mu = mu.ravel()
        self.linear = linear.swapaxes(0, 1).reshape(linear.shape[1], -1)
        # bounds on the norms of the minimisers
        self.longest = longest(loss, design.radius, self.mu, np.linalg.norm(self.linear, axis=0))
        if parts is None:
            self.aligned, self.sizes = (targets,), np.full(mu.size, float(design.n_samples))
        else:
            self.aligned = (targets, parts.train)
            self.sizes = np.repeat(parts.train_sizes.astype(float), len(which))
        self.sum = design.sums(*self.aligned, columns=mu.size)
        self.n_passes = 0  # counts passes for gradients

    def on_sample(self, n_rows, function):
        """Return ``function`` of each column's problem on a sample of the rows.

        Parts make no difference there.
        """
        design, targets = self.design.sample(n_rows, self.aligned[0])
        terms, mu = self.terms, self.mu.reshape(self.shape).mean(axis=0)[None]
        linear = self.linear.reshape(-1, *self.shape).mean(axis=1)[None]

        def on_problems(design, targets):
            return function(Problems(design, targets, terms.which, terms.loss, mu, linear))

        return design.on_few_rows(on_problems, targets)

    def gradients(self, W, columns):
        """Return the gradients of the chosen problems at W, shape (d, len(columns))."""
        self.n_passes += 1
        gradients = partial(self.terms.gradients, W, columns)
        (total,) = self.sum(gradients, columns=len(columns))
        sizes, mu, linear = self.sizes, self.mu, self.linear
        if len(columns) < len(mu):
            sizes, mu, linear = sizes[columns], mu[columns], linear[:, columns]
        return total / sizes + mu * W + linear

    def moments(self, W):
        """Return the mean row, the variances of the columns, and each problem's mean curvature at W.

        Of shapes (d, 1), (d, 1) and (k,). For rows without parts.
        """
        terms, columns = self.terms, np.arange(W.shape[1])

        def sums(rows, *aligned):
            curvatures = terms.second_derivatives(W, columns, rows, *aligned)
            return *rows.moments(), curvatures.sum(axis=0)

        total, first, second, curvatures = self.design.sum(sums, *self.aligned, columns=len(columns))
        weight = total if total > 0 else 1.0
        mean = first / weight
        variance = np.maximum(second / weight - mean * mean, 0.0)
        # shrink the mean of the sample, whose norm is too large by the sampling error (James and Stein
        # 1961)
        varying = mean if self.design.constant is None else mean[:-1]
        length, added = float((varying**2).sum()), float(variance.sum()) / self.design.n_rows
        varying *= max(1 - added / length, 0.0) if length > 0 else 0.0
        return mean, variance, curvatures / self.design.n_samples

    def curvature_factors(self, W, columns):
        """Return the factors of each column's curvature, averaged over its chosen problems."""
        if len(columns) > 1 and not W.any():
            return self._factors_at_zero(columns)
        if self.shape[0] == 1 and len(W) <= SMALL and len(columns) > MANY:
            return self._many_factors(W, columns)
        if len(columns) == 1:
            owners, places = columns % self.shape[1], [np.zeros(1, dtype=int)]
        else:
            owners, own = np.unique(columns % self.shape[1], return_inverse=True)
            places = [np.flatnonzero(own == i) for i in range(len(owners))]
        mu = self.mu[columns]
        return Factors(
            [
                ([k], _factor(H, _mean_of(mu, place)))
                for k, place, H in zip(owners, places, self._curvatures(W, columns, places))
            ]
        )

    def _factors_at_zero(self, columns):
        """Return the factors at 0, where the losses of all columns are equal and only mu differs."""
        owners = columns % self.shape[1]
        one = columns[owners == owners[0]]
        W = np.zeros((len(self.linear), len(one)))
        (H,) = self._curvatures(W, one, [np.arange(len(one))])
        owners = np.unique(owners)
        mu = self.mu.reshape(self.shape).mean(axis=0)[owners]
        different = np.unique(mu)
        if len(H) <= SMALL and len(different) > MANY:
            return ManyFactors(owners, np.broadcast_to(H, (len(mu), *H.shape)), mu)
        return Factors([(owners[mu == m], _factor(H, m)) for m in different])

    def _curvatures(self, W, columns, places):
        """Return the curvatures, without mu, averaged over the columns at each of the indices."""
        terms, sizes = self.terms, self.sizes[columns]

        def grams(rows, *aligned):
            curvatures = terms.second_derivatives(W, columns, rows, *aligned) / sizes
            return tuple(rows.gram(_mean_of(curvatures, place)) for place in places)

        return self.sum(grams, columns=len(columns), dense=True)

    def _many_factors(self, W, columns):
        """Return the factors of columns that have one problem each."""
        terms = self.terms

        def products(rows, *aligned):
            A = rows.matrix(ONE)
            outer = (A[:, :, None] * A[:, None, :]).reshape(len(A), -1)
            return (outer.T @ terms.second_derivatives(W, columns, rows, *aligned),)

        (total,) = self.sum(products, columns=len(columns), dense=True)
        H = np.moveaxis((total / self.sizes[columns]).reshape(len(W), len(W), -1), 2, 0)
        return ManyFactors(columns, H, self.mu[columns])


class IndependentColumns:
    """Curvatures of independent columns of rows: a diagonal, and the mean row.

    mu + c (diag(v) + m m'), with the mean m and the variances v of the columns, and each problem's mean
    curvature c. Inverses are by the formula of Sherman and Morrison. A factor makes them fit what is
    remembered of the last step: where few directions have most of the variance, that is much too large
    for the others.
    """

    guessed = True

    def __init__(self, problems, mean, variance, curvature):
        self.mean, self.variance, self.mu = mean, variance, problems.mu
        self.curvature = np.tile(curvature, problems.shape[0])

    def solve(self, q, n_columns):
        """Return the inverse curvatures times q."""
        diagonal = self.curvature * self.variance + self.mu
        r, along = q / diagonal, self.mean / diagonal
        damping = self.curvature / (1 + self.curvature * (self.mean * along).sum(axis=0))
        along *= damping * (self.mean * r).sum(axis=0)
        r -= along
        return r

    def correction(self, s, y, rho):
        """Return one factor a column, from a remembered step."""
        yy = rho * (y * self.solve(y, None)).sum(axis=0)
        return 1 / np.where(yy > 0, yy, 1.0)


class Factors(list):
    """Pairs of columns and their common Cholesky factor, in LAPACK's form.

    (scipy's functions around LAPACK take several times as long as it does for few coefficients.)
    """

    guessed = False

    def solve(self, q, n_columns):
        """Return the inverse curvatures times q, shape (d, J n_columns); 0 for other columns."""
        if len(self) == 1 and len(self[0][0]) == n_columns:
            return np.ascontiguousarray(dpotrs(self[0][1], q)[0])
        r = np.zeros(q.shape)
        by_part, solved = (a.reshape(len(q), -1, n_columns) for a in (q, r))
        for own, factor in self:
            b = by_part[:, :, own]
            x, _ = dpotrs(factor, b.reshape(len(q), -1))
            solved[:, :, own] = x.reshape(b.shape)
        return r


class ManyFactors:
    """Inverse curvatures of very many columns of few coefficients, of shape (k, d, d), all at once."""

    guessed = False

    def __init__(self, columns, curvatures, mu):
        self.columns = columns
        H = (curvatures + curvatures.transpose(0, 2, 1)) / 2
        diagonal = np.einsum("kii->ki", H)
        diagonal += np.maximum(mu[:, None], 1e-13 * H.shape[1] * diagonal)
        # scale to the units of the columns; nearly singular problems are solved alone later
        scale = 1 / np.sqrt(diagonal)
        scaled = H * scale[:, :, None] * scale[:, None, :]
        self.inverses = np.linalg.inv(scaled) * scale[:, :, None] * scale[:, None, :]

    def solve(self, q, n_columns):
        """Return the inverse curvatures times q, shape (d, J n_columns); 0 for other columns."""
        # with several parts, q has the columns of all parts, which share inverses
        r = np.zeros_like(q)
        for start in range(0, q.shape[1], n_columns):
            own = start + self.columns
            r[:, own] = (self.inverses @ q[:, own].T[:, :, None])[:, :, 0].T
        return r


def _mean_of(columns, some):
    return columns[..., some[0]] if len(some) == 1 else columns[..., some].mean(axis=-1)


def _factor(curvature, mu):
    H = (curvature + curvature.T) / 2
    # a ridge above the rounding error keeps it positive definite; it is relative to each column, so that
    # a large constant does not hide the curvature of the others
    H.flat[:: len(H) + 1] += np.maximum(mu, 1e-13 * len(H) * H.diagonal())
    factor, failed = dpotrf(H, clean=False, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("A curvature matrix is not positive definite.")
    return factor


def mean_losses(design, targets, which, loss, W):
    """Return the mean loss of each column of W, shape (d, k), over the rows, in one pass."""

    def losses(rows, targets):
        return (rows.weighted(loss.value(rows.dot(W), targets[:, which])).sum(axis=0),)

    (total,) = design.sum(losses, targets, columns=W.shape[1])
    return total / design.n_samples

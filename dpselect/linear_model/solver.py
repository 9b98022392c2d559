"""A globally convergent solver for a whole table of regularised margin-loss problems.

The problem of column k on part j of the rows is

    minimise  J_jk(w) = (1/n_j) sum_(i in part j) phi(y_ik a_i.w) + (mu_jk / 2) ||w||^2 + b_jk.w

All of them are advanced together: each pass over the rows is one matrix product for all problems.
A part is what a split of cross-validation trains on; without parts there is one, of all rows.

The directions are those of L-BFGS (Liu and Nocedal, *On the limited memory BFGS method for large
scale optimization*, Mathematical Programming 45, 1989), started from the inverse of a column's
curvature matrix in place of a multiple of the identity. With a matrix taken at the point itself
the first step would be Newton's. It is taken at the minimiser over a sample of the rows, which is
where the descent begins; the parts of one column share it. A new one costs as much as about d / 4
gradients, and is made after about as many.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .losses import MarginLoss

# curvature matrices that are held at a time have at most this many entries
GROUP_ELEMENTS = 1 << 22
# a sample has one row in so many and at most so many entries, but at least so many rows in all,
# and for each coefficient
SAMPLE_SHARE, SAMPLE_ELEMENTS, SAMPLE_ROWS, SAMPLE_ROWS_PER_COEFFICIENT = 16, 1 << 21, 1024, 4
MEMORY = 10
BISECTIONS = 50
# with at most so many coefficients, more than so many columns have their curvatures inverted at once
SMALL, MANY = 16, 64


def minimise(design, signs, which, loss, mu, linear, tau, max_iter=100, parts=None):
    """Minimise all problems until every gradient's l2 norm is at most its `tau`.

    Parameters
    ----------
    design : Design
        The rows a_i, n of them with d coordinates and l2 norm at most R.
    signs : ndarray of shape (n, K)
        Labels, -1 or 1, of the K one-vs-rest problems.
    which : ndarray of int, shape (k,)
        The column of `signs` that holds column k's labels.
    loss : MarginLoss
        phi.
    mu : ndarray of shape (k,), or (J, k)
        Regularisation; greater than 0.
    linear : ndarray of shape (d, k), or (J, d, k)
        The linear terms b.
    tau : ndarray of shape (k,), or (J, k)
        Tolerances; greater than 0.
    max_iter : int, default=100
        Steps of all problems together, and then again of each that is left by itself, with
        Newton's method, before the solver turns to accelerated gradient descent with a number of
        steps that is known in advance.
    parts : Parts, default=None
        Whose J training parts are meant; None is one part, of all rows. The problems of one column
        should be much alike on all of them.

    Returns
    -------
    ndarray of shape (d, k), or (J, d, k)
        Points with gradient norm at most `tau`, so within tau / mu of the minimisers.
    """
    if mu.ndim == 1:
        (W,) = minimise(design, signs, which, loss, mu[None], linear[None], tau[None], max_iter)
        return W
    W = np.empty(linear.shape)
    size = max(1, GROUP_ELEMENTS // design.n_columns**2)
    for start in range(0, len(which), size):
        group = slice(start, start + size)
        problems = _Problems(
            design, signs, which[group], loss, mu[:, group], linear[:, :, group], parts
        )
        W[:, :, group] = _solve(problems, tau[:, group], max_iter)
    return W


def mean_losses(design, signs, which, loss, W):
    """Return the mean loss of each column of W over the rows, in one pass.

    Parameters
    ----------
    design, signs, which, loss
        As for :func:`minimise`.
    W : ndarray of shape (d, k)

    Returns
    -------
    ndarray of shape (k,)
    """

    def losses(rows, signs):
        margins = rows.dot(W)
        margins *= signs[:, which]
        return (loss.value(margins).sum(axis=0),)

    (total,) = design.sum(losses, signs, columns=W.shape[1])
    return total / design.n_rows


@dataclass(frozen=True)
class _Terms:
    """What one row adds to gradients and curvatures; this is all that goes to where the rows are."""

    loss: MarginLoss
    which: np.ndarray
    n_parts: int

    def gradients(self, W, columns, rows, signs, parts=None):
        """Return the sums of the chosen problems' gradients over a block, shape (d, k)."""
        if signs.shape[1] == 1 and 2 * len(columns) > len(W):
            # for many columns a copy costs less than factors, constant and signs in each of them
            A = rows.matrix(signs)
            slopes = self._left_out(self.loss.slope(A @ W), parts, columns)
            return (slopes.T @ A).T
        y = self._labels(signs, columns)
        u = rows.dot(W)
        u *= y
        slopes = self.loss.slope(u)
        slopes *= y
        return rows.adjoint_dot(self._left_out(slopes, parts, columns))

    def bends(self, W, columns, rows, signs, parts=None):
        """Return the second derivatives, shape (b, k)."""
        u = rows.dot(W)
        u *= self._labels(signs, columns)
        return self._left_out(self.loss.bend(u), parts, columns)

    def _labels(self, signs, columns):
        # one column serves all problems without being copied
        if signs.shape[1] > 1:
            signs = signs[:, self.which[columns % len(self.which)]]
        return signs.astype(np.float64)

    def _left_out(self, values, parts, columns):
        """Set to 0 what rows outside of a problem's part would add; parts follow each other."""
        if parts is not None:
            ends = np.searchsorted(columns, np.arange(self.n_parts + 1) * len(self.which))
            for j, (start, end) in enumerate(zip(ends[:-1], ends[1:])):
                if start < end:
                    values[np.flatnonzero(~parts[:, j]), start:end] = 0.0
        return values


class _Problems:
    """Gradients and curvatures of k columns on J parts, which are numbered j k + column."""

    def __init__(self, design, signs, which, loss, mu, linear, parts=None):
        self.design, self.terms = design, _Terms(loss, which, len(mu))
        self.shape = mu.shape
        self.mu = mu.ravel()
        self.linear = np.moveaxis(linear, 0, 1).reshape(linear.shape[1], -1)
        if parts is None:
            self.aligned, self.sizes = (signs,), np.full(mu.size, float(design.n_rows))
        else:
            self.aligned = (signs, parts.train)
            self.sizes = np.repeat(parts.train_sizes.astype(float), len(which))

    def sample(self, n_rows):
        """Return each column's problem on a sample of the rows, where parts make no difference."""
        design, signs = self.design.sample(n_rows, self.aligned[0])
        mu = self.mu.reshape(self.shape).mean(axis=0)
        linear = self.linear.reshape(-1, *self.shape).mean(axis=1)
        return _Problems(
            design, signs, self.terms.which, self.terms.loss, mu[None], linear[None]
        )

    def gradients(self, W, columns):
        """Return the gradients of the chosen problems at W, shape (d, len(columns))."""
        terms = self.terms

        def gradients(rows, *aligned):
            return (terms.gradients(W, columns, rows, *aligned),)

        (total,) = self.design.sum(gradients, *self.aligned, columns=len(columns))
        return total / self.sizes[columns] + self.mu[columns] * W + self.linear[:, columns]

    def curvature_factors(self, W, columns):
        """Return the factors of each column's curvature, averaged over its chosen problems.

        Returns
        -------
        _Factors or _ManyFactors
        """
        if not W.any():
            return self._factors_at_zero(columns)
        if self.shape[0] == 1 and len(W) <= SMALL and len(columns) > MANY:
            return self._many_factors(W, columns)
        owners, own = np.unique(columns % self.shape[1], return_inverse=True)
        curvatures = self._curvatures(W, columns, own)
        return _Factors([
            ([k], _factor(H, self.mu[columns[own == i]].mean()))
            for i, (k, H) in enumerate(zip(owners, curvatures))
        ])

    def _factors_at_zero(self, columns):
        """Return the factors at 0, where every loss bends alike: only mu makes a difference."""
        owners = columns % self.shape[1]
        one = columns[owners == owners[0]]
        W = np.zeros((len(self.linear), len(one)))
        (H,) = self._curvatures(W, one, np.zeros(len(one), dtype=int))
        owners = np.unique(owners)
        mu = self.mu.reshape(self.shape).mean(axis=0)[owners]
        different = np.unique(mu)
        if len(H) <= SMALL and len(different) > MANY:
            return _ManyFactors(owners, np.broadcast_to(H, (len(mu), *H.shape)), mu)
        return _Factors([(owners[mu == m], _factor(H, m)) for m in different])

    def _curvatures(self, W, columns, own):
        """Return the curvatures, without mu, averaged over the problems that `own` numbers alike."""
        terms, sizes = self.terms, self.sizes[columns]
        places = [np.flatnonzero(own == i) for i in range(own.max() + 1)]

        def grams(rows, *aligned):
            bends = terms.bends(W, columns, rows, *aligned) / sizes
            return tuple(rows.gram(bends[:, place].mean(axis=1)) for place in places)

        return self.design.sum(grams, *self.aligned, columns=len(columns))

    def _many_factors(self, W, columns):
        """Return the factors of columns that have one problem each."""
        terms = self.terms

        def products(rows, *aligned):
            A = rows.matrix(np.ones((1, 1)))
            outer = (A[:, :, None] * A[:, None, :]).reshape(len(A), -1)
            return (outer.T @ terms.bends(W, columns, rows, *aligned),)

        (total,) = self.design.sum(products, *self.aligned, columns=len(columns))
        H = np.moveaxis((total / self.sizes[columns]).reshape(len(W), len(W), -1), 2, 0)
        return _ManyFactors(columns, H, self.mu[columns])


class _Factors(list):
    """Pairs of columns and the factor that they share, as :func:`scipy.linalg.cho_solve` wants it."""

    def solve(self, q, n_columns):
        """Return the inverse curvatures times q, shape (d, J n_columns); 0 for other columns."""
        r = np.zeros(q.shape)
        by_part, solved = (a.reshape(len(q), -1, n_columns) for a in (q, r))
        for own, factor in self:
            b = by_part[:, :, own]
            x = cho_solve(factor, b.reshape(len(q), -1), check_finite=False)
            solved[:, :, own] = x.reshape(b.shape)
        return r


class _ManyFactors:
    """Inverse curvatures of very many columns of few coefficients, all at once.

    Parameters
    ----------
    columns : ndarray of int, shape (k,)
    curvatures : ndarray of shape (k, d, d)
    mu : ndarray of shape (k,)
    """

    def __init__(self, columns, curvatures, mu):
        self.columns = columns
        H = (curvatures + curvatures.transpose(0, 2, 1)) / 2
        diagonal = np.einsum("kii->ki", H)
        diagonal += np.maximum(mu[:, None], 1e-13 * H.shape[1] * diagonal)
        # each in its own units: what is nearly singular is left to be solved alone
        scale = 1 / np.sqrt(diagonal)
        scaled = H * scale[:, :, None] * scale[:, None, :]
        self.inverses = np.linalg.inv(scaled) * scale[:, :, None] * scale[:, None, :]

    def solve(self, q, n_columns):
        """Return the inverse curvatures times q, shape (d, J n_columns); 0 for other columns."""
        # (with more parts than one, q has columns of all of them, which share their inverses)
        r = np.zeros_like(q)
        for start in range(0, q.shape[1], n_columns):
            own = start + self.columns
            r[:, own] = (self.inverses @ q[:, own].T[:, :, None])[:, :, 0].T
        return r


def _factor(curvature, mu):
    H = (curvature + curvature.T) / 2
    # more than rounding can take away, so that it stays positive definite; in each column's own
    # units, since a large constant must not hide the curvature of the others
    H.flat[:: len(H) + 1] += np.maximum(mu, 1e-13 * len(H) * H.diagonal())
    return cho_factor(H, overwrite_a=True, check_finite=False)


def _solve(problems, tau, max_iter):
    """Return the solutions of all problems, shape (J, d, k)."""
    W, G = _descend_together(problems, tau.ravel(), max_iter)
    for number in np.flatnonzero(~(_norms(G) <= tau.ravel())):
        W = _solve_alone(problems, number, W, tau.ravel(), max_iter)
    return np.moveaxis(W.reshape(len(W), *problems.shape), 0, 1)


def _solve_alone(problems, number, W, tau, max_iter):
    """Solve one problem that needs a curvature matrix of its own at each point."""
    column = np.array([number])
    factors = problems.curvature_factors(W[:, column], column)
    W, G = _descend(problems, column, W, factors, tau, max_iter, refresh=1)
    if not _norms(G[:, number]) <= tau[number]:
        W[:, number] = _accelerated_descent(
            problems, number, W[:, number], G[:, number], tau[number]
        )
    return W


def _descend_together(problems, tau, max_iter):
    """Return points after at most `max_iter` steps, and the gradients there."""
    everything = np.arange(len(tau))
    W, factors = _start(problems, tau, max_iter)
    refresh = min(max(2, len(W) // 4), 2 * MEMORY)
    return _descend(problems, everything, W, factors, tau, max_iter, refresh)


def _start(problems, tau, max_iter):
    """Return where the descent begins, and the factors of the curvature there."""
    n, d = problems.design.n_rows, problems.design.n_columns
    n_sample = min(n // SAMPLE_SHARE, SAMPLE_ELEMENTS // d)
    n_sample = max(n_sample, SAMPLE_ROWS_PER_COEFFICIENT * d, SAMPLE_ROWS)
    if n_sample > n // 2:
        W = np.zeros_like(problems.linear)
        return W, problems.curvature_factors(W, np.arange(len(problems.mu)))
    smaller = problems.sample(n_sample)
    # where the sample's own error begins to count, there is no use to go on
    enough = 0.1 * problems.design.radius / math.sqrt(n_sample)
    goal = np.maximum(tau.reshape(problems.shape).max(axis=0), enough)
    # a start need not be a solution, so that there is no last resort here
    W, _ = _descend_together(smaller, goal, max_iter)
    factors = smaller.curvature_factors(W, np.arange(problems.shape[1]))
    return np.tile(W, problems.shape[0]), factors


def _norms(vectors):
    return np.sqrt((vectors * vectors).sum(axis=0))


def _descend(problems, chosen, W, factors, tau, max_iter, refresh):
    """Move the chosen problems by at most `max_iter` steps.

    After each `refresh` steps the factors are those of the curvature at the points then.

    Returns
    -------
    W, G : ndarray of shape (d, J k)
        The points, and the gradients of the chosen problems there.
    """
    G = np.zeros_like(W)
    G[:, chosen] = problems.gradients(W[:, chosen], chosen)
    memory = []
    shortest = np.full(len(tau), np.inf)
    for step in range(max_iter):
        shortest = np.minimum(shortest, _norms(G))
        # "not at most" rather than "more than", so that nothing undefined counts as solved
        active = chosen[~(_norms(G[:, chosen]) <= tau[chosen])]
        if not len(active):
            break
        if step and step % refresh == 0:
            factors = problems.curvature_factors(W[:, active], active)
            memory = []
        direction = np.zeros_like(W)
        direction[:, active] = -_precondition(G, memory, factors, problems.shape[1])[:, active]
        before = W, G
        W, G = _line_search(problems, W, G, direction, active, shortest)
        memory = [*memory[1 - MEMORY :], (W - before[0], G - before[1])]
    return W, G


def _precondition(G, memory, factors, n_columns):
    """Return L-BFGS's inverse curvatures times G: Liu and Nocedal 1989, the two loops."""
    q, steps = G, []
    for s, y in reversed(memory):
        sy = (s * y).sum(axis=0)
        # a problem that stood still, or moved by rounding only, has nothing to tell
        rho = np.where(sy > 0, 1.0, 0.0) / np.where(sy > 0, sy, 1.0)
        share = rho * (s * q).sum(axis=0)
        q = q - share * y
        steps.append((s, y, rho, share))
    r = factors.solve(q, n_columns)
    for s, y, rho, share in reversed(steps):
        r = r + (share - rho * (y * r).sum(axis=0)) * s
    return r


def _line_search(problems, W, G, direction, active, shortest):
    """Take the whole step if it makes certain progress, otherwise go to the lowest point.

    The whole step is taken when one of these holds:

    - the slope at its end is still at most 0: for a convex function the value has then
      fallen;
    - the gradient is shorter than 0.9 times the shortest so far, which can happen
      only finitely often before the tolerance is reached.

    Otherwise the lowest point of the line is bracketed by the sign of the slope. Halving
    the step until the value falls would not do: far from 0 the losses bend in narrow
    strips only, the lowest point lies in one, and the curvature has to be taken there.
    """
    slope = (G * direction).sum(axis=0)
    step, low, high = (np.full(len(slope), x) for x in (1.0, 0.0, 1.0))
    start, W, G = W, W.copy(), G.copy()
    pending = active
    for trial in range(BISECTIONS):
        there = start[:, pending] + step[pending] * direction[:, pending]
        g = problems.gradients(there, pending)
        slope_there = (g * direction[:, pending]).sum(axis=0)
        before = slope_there <= 0
        if trial == 0:
            fine = before | (_norms(g) <= 0.9 * shortest[pending])
        else:
            fine = before & (-slope_there <= 0.1 * np.abs(slope[pending]))
        # a point before the lowest one is progress too, and is kept until there is a better one
        keep = fine | before
        W[:, pending[keep]], G[:, pending[keep]] = there[:, keep], g[:, keep]
        low[pending[before]] = step[pending[before]]
        high[pending[~before]] = step[pending[~before]]
        pending = pending[~fine]
        if not len(pending):
            break
        step[pending] = 0.5 * (low[pending] + high[pending])
    return W, G


def _accelerated_descent(problems, k, w, gradient, tau):
    """Run Nesterov's method for strongly convex functions, for a known number of steps.

    From a start whose gradient is no longer than that at 0 can be, R + ||b||, the
    squared gradient after N steps is at most
    2 L (R + ||b||)^2 / mu * (1 - sqrt(mu / L))^N
    with L = c R^2 + mu (Nesterov, *Lectures on Convex Optimization*, 2018, theorem 2.2.3).
    """
    mu, column = float(problems.mu[k]), np.array([k])
    bound = problems.design.radius + float(np.linalg.norm(problems.linear[:, k]))
    if not np.linalg.norm(gradient) <= bound:
        w = np.zeros_like(w)
    L = problems.terms.loss.curvature * problems.design.radius**2 + mu
    # (a smaller mu is a valid bound too, and keeps the rate below 1)
    rate = min(math.sqrt(mu / L), 0.9)
    # logarithms one by one: in small units the squares would be 0
    fall = math.log(2 * L / mu) + 2 * (math.log(bound) - math.log(tau))
    steps = math.ceil(fall / -math.log1p(-rate))
    momentum = (1 - rate) / (1 + rate)
    ahead = w
    for _ in range(steps):
        previous = w
        w = ahead - problems.gradients(ahead[:, None], column)[:, 0] / L
        ahead = w + momentum * (w - previous)
    return w

"""A globally convergent solver for a whole batch of regularised margin-loss problems.

Column k of the batch is the problem

    minimise  J_k(w) = (1/n) sum_i phi(y_ik a_i.w) + (mu_k / 2) ||w||^2 + b_k.w

All columns share the rows a_i and are advanced together: each pass over the rows
is one matrix product for all of them.

Newton's equation is solved by conjugate gradients, preconditioned by one shared
curvature matrix, the average over the columns. For a single column that matrix is
the Hessian, and the method is Newton's.
"""

import math

import numpy as np

# columns are solved in groups whose per-row curvatures take at most this many numbers
GROUP_ELEMENTS = 1 << 23
CONJUGATE_GRADIENT_STEPS = 60
BISECTIONS = 50


def minimise(design, signs, which, loss, mu, linear, tau, max_iter=100):
    """Minimise all columns until every gradient's l2 norm is at most its `tau`.

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
    mu : ndarray of shape (k,)
        Regularisation; greater than 0.
    linear : ndarray of shape (d, k)
        The linear terms b_k.
    tau : ndarray of shape (k,)
        Tolerances; greater than 0.
    max_iter : int, default=100
        Newton steps before the solver turns to accelerated gradient descent with a
        number of steps that is known in advance.

    Returns
    -------
    ndarray of shape (d, k)
        Points with gradient norm at most `tau`, so within tau / mu of the minimisers.
    """
    W = np.empty(linear.shape)
    size = max(1, GROUP_ELEMENTS // design.n_rows)
    for start in range(0, W.shape[1], size):
        group = slice(start, start + size)
        problem = _Batch(
            design, signs, which[group], loss, mu[group], linear[:, group]
        )
        W[:, group] = _newton(problem, tau[group], max_iter)
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


class _Batch:
    """Values, gradients and curvature products of a group of columns."""

    def __init__(self, design, signs, which, loss, mu, linear):
        self.design, self.signs, self.which, self.loss = design, signs, which, loss
        self.mu, self.linear = mu, linear

    def columns(self, chosen):
        """Return the batch of the chosen columns only."""
        return _Batch(self.design, self.signs, self.which[chosen], self.loss,
                      self.mu[chosen], self.linear[:, chosen])

    def _labels(self, signs):
        # one column serves all problems without being copied
        return signs if signs.shape[1] == 1 else signs[:, self.which]

    def value_and_gradient(self, W):
        """Return J, shape (k,), and its gradients, shape (d, k), in one pass."""
        loss = self.loss

        def terms(rows, signs):
            y = self._labels(signs)
            u = y * rows.dot(W)
            return loss.value(u).sum(axis=0), rows.adjoint_dot(y * loss.slope(u))

        value, gradient = self.design.sum(terms, self.signs, columns=W.shape[1])
        n = self.design.n_rows
        value = value / n + 0.5 * self.mu * (W * W).sum(axis=0) + (self.linear * W).sum(axis=0)
        return value, gradient / n + self.mu * W + self.linear

    def curvatures(self, W):
        """Return phi'' for every row and column, shape (n, k)."""
        return self.design.map(
            lambda rows, signs: self.loss.bend(self._labels(signs) * rows.dot(W)),
            self.signs,
            columns=W.shape[1],
        )

    def shared_curvature(self, bend):
        """Return the curvature matrix of the loss, averaged over the columns, shape (d, d)."""
        (gram,) = self.design.sum(
            lambda rows, c: (rows.gram(c.mean(axis=1)),), bend, columns=bend.shape[1]
        )
        return gram / self.design.n_rows

    def hessian_dot(self, bend, V):
        """Return the products of all Hessians with their columns of V, shape (d, k)."""
        (product,) = self.design.sum(
            lambda rows, c: (rows.adjoint_dot(c * rows.dot(V)),), bend, columns=V.shape[1]
        )
        return product / self.design.n_rows + self.mu * V


def _newton(batch, tau, max_iter):
    W = np.zeros_like(batch.linear)
    value, gradient = batch.value_and_gradient(W)
    smallest = _norms(gradient)
    # "not at most" rather than "more than", so that nothing undefined counts as solved
    active = np.flatnonzero(~(smallest <= tau))
    for _ in range(max_iter):
        if not len(active):
            return W
        inner = batch.columns(active)
        direction = _newton_direction(inner, W[:, active], gradient[:, active], tau[active])
        W[:, active], value[active], gradient[:, active] = _line_search(
            inner, W[:, active], value[active], gradient[:, active], direction, smallest[active]
        )
        smallest[active] = np.minimum(smallest[active], _norms(gradient[:, active]))
        active = active[~(_norms(gradient[:, active]) <= tau[active])]
    for k in active:
        column = batch.columns(np.array([k]))
        W[:, [k]] = _accelerated_descent(column, W[:, [k]], gradient[:, [k]], tau[k])
    return W


def _norms(vectors):
    return np.sqrt((vectors * vectors).sum(axis=0))


def _newton_direction(batch, W, gradient, tau):
    """Solve H_k v_k = -g_k by conjugate gradients under the shared curvature matrix."""
    bend = batch.curvatures(W)
    spectrum, basis = np.linalg.eigh(batch.shared_curvature(bend))
    scale = 1.0 / (np.maximum(spectrum, 0.0)[:, None] + batch.mu)

    def precondition(residual):
        return basis @ (scale * (basis.T @ residual))

    size = _norms(gradient)
    # superlinear, but no closer than the solver's own tolerance asks for
    goal = np.maximum(size * np.minimum(0.1, size), 0.1 * tau)
    V = np.zeros_like(gradient)
    residual = -gradient
    z = precondition(residual)
    p = z.copy()
    rz = (residual * z).sum(axis=0)
    for _ in range(CONJUGATE_GRADIENT_STEPS):
        running = _norms(residual) > goal
        if not running.any():
            break
        Hp = batch.hessian_dot(bend, p)
        pHp = (p * Hp).sum(axis=0)
        step = np.where(running & (pHp > 0), rz / np.where(pHp > 0, pHp, 1.0), 0.0)
        V += step * p
        residual -= step * Hp
        z = precondition(residual)
        rz_next = (residual * z).sum(axis=0)
        p = z + np.where(rz > 0, rz_next / np.where(rz > 0, rz, 1.0), 0.0) * p
        rz = rz_next
    return V


def _line_search(batch, W, value, gradient, direction, smallest):
    """Take the whole step if it makes certain progress, otherwise go to the lowest point.

    The whole step is taken when one of these holds:

    - the value falls by a fixed share of what the slope promises (Armijo);
    - the slope at its end is still at most 0: for a convex function the value has then
      fallen, whatever rounding does to the difference of two nearly equal values;
    - the gradient is shorter than 0.9 times the shortest so far, which can happen
      only finitely often before the tolerance is reached.

    Otherwise the lowest point of the line is bracketed by the sign of the slope. Halving
    the step until the value falls would not do: far from 0 the losses bend in narrow
    strips only, the lowest point lies in one, and the Hessian has to be taken there.
    """
    slope = (gradient * direction).sum(axis=0)
    k = W.shape[1]
    step, low, high = np.ones(k), np.zeros(k), np.ones(k)
    W, value, gradient = W.copy(), value.copy(), gradient.copy()
    start, start_value = W.copy(), value.copy()
    pending = np.arange(k)
    for trial in range(BISECTIONS):
        there = start[:, pending] + step[pending] * direction[:, pending]
        f, g = batch.columns(pending).value_and_gradient(there)
        slope_there = (g * direction[:, pending]).sum(axis=0)
        if trial == 0:
            fine = (
                (f <= start_value[pending] + 1e-4 * slope[pending])
                | (slope_there <= 0)
                | (_norms(g) <= 0.9 * smallest[pending])
            )
        else:
            flat = np.abs(slope_there) <= 0.1 * np.abs(slope[pending])
            fine = flat & ((f <= start_value[pending]) | (slope_there <= 0))
        # a point before the lowest one is progress too, and is kept until there is a better one
        keep = fine | (slope_there <= 0)
        kept = pending[keep]
        W[:, kept], value[kept], gradient[:, kept] = there[:, keep], f[keep], g[:, keep]
        before = slope_there < 0
        low[pending[before]] = step[pending[before]]
        high[pending[~before]] = step[pending[~before]]
        pending = pending[~fine]
        if not len(pending):
            break
        step[pending] = 0.5 * (low[pending] + high[pending])
    return W, value, gradient


def _accelerated_descent(batch, W, gradient, tau):
    """Run Nesterov's method for strongly convex functions, for a known number of steps.

    From a start whose gradient is no longer than that at 0 can be, R + ||b||, the
    squared gradient after N steps is at most
    2 L (R + ||b||)^2 / mu * (1 - sqrt(mu / L))^N
    with L = c R^2 + mu (Nesterov, *Lectures on Convex Optimization*, 2018, theorem 2.2.3).
    """
    mu = float(batch.mu[0])
    bound = batch.design.radius + float(_norms(batch.linear)[0])
    if not float(_norms(gradient)[0]) <= bound:
        W = np.zeros_like(W)
    L = batch.loss.curvature * batch.design.radius**2 + mu
    # (a smaller mu is a valid bound too, and keeps the rate below 1)
    rate = min(math.sqrt(mu / L), 0.9)
    steps = math.ceil(math.log(2 * L * bound**2 / (mu * tau**2)) / -math.log1p(-rate))
    momentum = (1 - rate) / (1 + rate)
    ahead = W
    for _ in range(steps):
        previous = W
        W = ahead - batch.value_and_gradient(ahead)[1] / L
        ahead = W + momentum * (W - previous)
    return W

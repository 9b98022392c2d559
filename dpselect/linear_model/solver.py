"""A globally convergent solver for a whole table of regularised problems.

All problems J_jk of :mod:`~dpselect.linear_model.problems` are advanced together: each pass over
the rows is one matrix product for all of them.

The directions are those of L-BFGS (Liu and Nocedal, *On the limited memory BFGS method for large
scale optimization*, Mathematical Programming 45, 1989), started from the inverse of a column's
curvature matrix in place of a multiple of the identity. With a matrix taken at the point itself
the first step would be Newton's. It is taken at the minimiser over a sample of the rows, which is
where the descent begins; the parts of one column share it. A new one is made after as many steps
as it costs, if more steps than that seem to be left without it; of few rows at each step, as in
Newton's method.

With many coefficients a matrix may cost more than it saves. The descent then starts from the curvature
of rows with independent columns, a diagonal and one more direction, which the sample gives, and turns to
matrices if it is slow. Of sparse rows, or for very many coefficients, none is made.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from .problems import IndependentColumns, Problems
from .tolerance import MAX_SQUARE, MAX_STEPS, ellipsoid_factors, guaranteed_steps

# bound on the entries of curvature matrices, or remembered steps, that are in memory together
GROUP_ELEMENTS = 1 << 22
# size of a sample: one row in so many, at most so many entries, at least so many rows in all and
# per coefficient
SAMPLE_DIVISOR, SAMPLE_ELEMENTS, SAMPLE_ROWS, SAMPLE_ROWS_PER_COEFFICIENT = 12, 1 << 20, 1024, 4
# smaller sample for descents without curvature matrices; so many rows suffice for column variances
SMALL_SAMPLE_DIVISOR, SMALL_SAMPLE_ROWS = 16, 256
# tolerance on a sample relative to its sampling error, without and with curvature matrices
NEAR, NEARER = 0.3, 0.1
# up to so many coefficients curvature matrices are cheap, for dense and for sparse rows
CHEAP, CHEAP_SPARSE = 256, 128
# A curvature costs (rows of the sample) * coefficients / (PASS * rows) passes, and up to AFTER passes
# follow. After as many passes as it costs, or a few, over a sample and over all rows, it is checked
# whether more than that are left without it. Found by experiment.
PASS, AFTER, FEW_ON_SAMPLE, FEW = 8, 20, 5, 3
# A curvature matrix of all rows costs about RENEWAL + coefficients / RENEWAL_COEFFICIENTS gradients, and
# FEW_AFTER steps follow. Up to a cost of CHEAP_RENEWAL it is always renewed. Found by experiment.
RENEWAL, RENEWAL_COEFFICIENTS, FEW_AFTER, CHEAP_RENEWAL = 1.4, 20, 3, 2
# up to so many entries, the curvature matrix of one problem costs no more than a gradient
TINY = 1 << 11
# remembered steps of L-BFGS, with curvature matrices, and without; their numbers at most
MEMORY = 10
LONG_MEMORY, MEMORY_ELEMENTS = 20, 1 << 21
# factor of `max_iter` for descents without matrices
PATIENCE = 10
# halvings of a step, and the largest full step, relative to the largest norm of a minimiser
BISECTIONS, OUTSIDE = 50, 2**10


@dataclass(frozen=True)
class _Descent:
    """Configuration of a descent: its number of `steps`, and exact or `guessing` curvatures.

    A guess is abandoned after more than `max_passes` passes, and if it is slow relative to the `cost` of
    matrices, in passes.
    """

    steps: int
    guessing: bool = False
    cost: float = math.inf
    max_passes: float = math.inf


def minimise(design, targets, which, loss, mu, linear, tau, max_iter=100, parts=None):
    """Minimise all problems until every gradient's l2 norm is at most its `tau`.

    The `design` has n rows a_i of d coordinates; column k has its targets t (for a MarginLoss labels, -1
    or 1) in column which[k] of `targets`, of shape (n, K). mu and tau, greater than 0, are of shape
    (k,), or (J, k) for the J training parts of `parts`; `linear`, the terms b, of shape (d, k), or (J,
    d, k). The problems of one column should be similar on all parts.

    `max_iter` counts steps of all problems together, and then again of each that is left by itself,
    with Newton's method, before the solver turns to a method with a number of steps that is known
    in advance: see :func:`~dpselect.linear_model.tolerance.guaranteed_steps`.

    Returns points of the shape of `linear` with gradient norm at most `tau`, so within tau / mu of
    the minimisers, wherever ``MAX_STEPS`` steps are certain to suffice.
    """
    if mu.ndim == 1:
        (W,) = minimise(design, targets, which, loss, mu[None], linear[None], tau[None], max_iter)
        return W
    W, d = np.empty(linear.shape), design.n_columns
    guessing = d > (CHEAP_SPARSE if design.sparse else CHEAP)
    squares = d**2 if not guessing or math.isfinite(_cost(design)) else 0
    n_numbers = max(squares, 2 * _n_remembered(d) * d * len(mu) if guessing else 0)
    size = max(1, GROUP_ELEMENTS // n_numbers)
    for start in range(0, len(which), size):
        group = slice(start, start + size)
        problems = Problems(
            design, targets, which[group], loss, mu[:, group], linear[:, :, group], parts
        )
        W[:, :, group] = _solve(problems, tau[:, group], max_iter, guessing)
    return W


def _cost(design):
    """Return the number of passes that an expensive curvature matrix costs, from public numbers."""
    n, d = design.n_rows, design.n_columns
    return math.inf if design.sparse or d > MAX_SQUARE else _n_sampled(n, d) * d / (PASS * n)


def _n_remembered(d):
    return min(max(MEMORY_ELEMENTS // d, 5), LONG_MEMORY)


def _solve(problems, tau, max_iter, guessing):
    """Return the solutions of all problems, shape (J, d, k)."""
    solved = None
    if guessing:
        # steps without matrices are cheap, and the alternative may be the last resort
        descent = _Descent(PATIENCE * max_iter, guessing=True, cost=_cost(problems.design))
        solved = _descend_together(problems, tau.ravel(), descent)
    W, G = solved or _descend_together(problems, tau.ravel(), _Descent(max_iter))
    for number in np.flatnonzero(~(_norms(G) <= tau.ravel())):
        W = _solve_alone(problems, number, W, G, tau.ravel(), max_iter)
    return W.reshape(len(W), *problems.shape).swapaxes(0, 1)


def _solve_alone(problems, number, W, G, tau, max_iter):
    """Solve one problem that may need a curvature matrix of its own at each point."""
    if len(W) <= MAX_SQUARE:
        column = np.array([number])
        factors = problems.curvature_factors(W[:, column], column)
        W, G = _descend(problems, column, W, factors, tau, _Descent(max_iter), renewal=0)
    if not _norms(G[:, number]) <= tau[number]:
        W[:, number] = _last_resort(problems, number, W[:, number], G[:, number], tau[number])
    return W


def _descend_together(problems, tau, descent):
    """Return points with their gradients, or None where the guess is abandoned for matrices."""
    W, factors = _start(problems, tau, descent)
    if factors is None:
        return None
    tiny = len(tau) == 1 and problems.design.n_rows * len(W) <= TINY
    renewal = math.inf if descent.guessing else 0 if tiny else RENEWAL + len(W) / RENEWAL_COEFFICIENTS
    W, G = _descend(problems, np.arange(len(tau)), W, factors, tau, descent, renewal)
    return (W, G) if descent.cost == math.inf or (_norms(G) <= tau).all() else None


def _start(problems, tau, descent):
    """Return the starting point of the descent, and the factors of the curvature there.

    None in place of factors where a guess is given up on the sample.
    """
    n, d = problems.design.n_rows, problems.design.n_columns
    if descent.guessing:
        n_sample = n // SMALL_SAMPLE_DIVISOR
        small = n_sample < SMALL_SAMPLE_ROWS
        n_sample = max(n_sample, SMALL_SAMPLE_ROWS)
    else:
        n_sample = _n_sampled(n, d)
        small = n_sample == n
    if small and not descent.guessing:
        W = np.zeros_like(problems.linear)
        return W, problems.curvature_factors(W, np.arange(len(problems.mu)))
    # more accuracy than the sampling error is useless
    fraction = NEAR if descent.guessing else NEARER
    enough = fraction * (problems.terms.loss.lipschitz * problems.design.radius) / math.sqrt(n_sample)
    goal = np.maximum(tau.reshape(problems.shape).max(axis=0), enough)
    there = replace(descent, cost=math.inf, max_passes=max(FEW_ON_SAMPLE, descent.cost))

    def on_sample(smaller):
        W = np.zeros_like(smaller.linear)
        if not small:
            # a starting point need not be a solution, so no guaranteed method is needed here
            W, _ = _descend_together(smaller, goal, there)
            if smaller.n_passes > there.max_passes:
                return W, None
        if descent.guessing:
            return W, smaller.moments(W)
        return W, smaller.curvature_factors(W, np.arange(smaller.shape[1]))

    W, found = problems.on_sample(n_sample, on_sample)
    factors = IndependentColumns(problems, *found) if descent.guessing and found else found
    return np.tile(W, problems.shape[0]), factors


def _n_sampled(n, d):
    """Return the number of rows in the sample for a curvature matrix, often all of them."""
    least = max(SAMPLE_ROWS_PER_COEFFICIENT * d, SAMPLE_ROWS)
    rows = max(min(n // SAMPLE_DIVISOR, SAMPLE_ELEMENTS // d), least)
    return rows if rows <= n // 2 else n


def _is_slow(cost, passes, first, lengths, tau):
    """Return whether the remaining steps cost more than a curvature matrix and its steps."""
    return passes >= max(FEW, cost) and _steps_left(passes - 1, first, lengths, tau) > cost + AFTER


def _pays(renewal, steps, since, lengths, tau):
    """Return whether new factors, after `steps` steps, cost less than the steps that they save."""
    return steps >= renewal and (
        renewal <= CHEAP_RENEWAL or _steps_left(steps, since, lengths, tau) > renewal + FEW_AFTER
    )


def _steps_left(steps, first, lengths, tau):
    """Return the number of remaining steps, at the mean rate of `steps` steps since `first`."""
    left = ~(lengths <= tau)
    with np.errstate(all="ignore"):
        missing, shortened = np.log((lengths / tau)[left]), np.log((first / lengths)[left])
        return (steps * np.where(shortened > 0, missing / shortened, np.inf)).max(initial=0.0)


def _norms(vectors):
    return np.sqrt(_products(vectors, vectors))


def _products(vectors, others):
    """Return the dot products of corresponding columns."""
    return np.add.reduce(vectors * others)


def _columns(W, some):
    """Return some columns, or W itself for all of them."""
    return W if len(some) == W.shape[1] else W[:, some]


def _with_columns(W, some, new):
    """Return W, of shape (d, k) or (k,), with some columns replaced."""
    if len(some) == W.shape[-1]:
        return new
    W = W.copy()
    W[..., some] = new
    return W


def _descend(problems, chosen, W, factors, tau, descent, renewal):
    """Move the chosen problems.

    `renewal` is what factors of the curvature at the points then cost, in gradients: 0 for new ones at
    each step, as in Newton's method. Returns all points, and the gradients there.
    """
    G = _with_columns(np.zeros_like(W), chosen, problems.gradients(_columns(W, chosen), chosen))
    remembered = _n_remembered(len(W)) if factors.guessed else MEMORY
    memory, change, still, made = [], None, False, 0
    first = since = shortest = lengths = _norms(G)
    for step in range(descent.steps):
        # "not <=" rather than ">", so that NaN does not count as solved
        active = chosen[~(lengths[chosen] <= tau[chosen])]
        passes = problems.n_passes
        if (
            not len(active)
            or passes > descent.max_passes
            or _is_slow(descent.cost, passes, first, lengths, tau)
        ):
            break
        renewed = step > 0 and (still or _pays(renewal, step - made, since, lengths, tau))
        if renewed:
            memory, made, since = [], step, lengths
            if not factors.guessed:
                factors = problems.curvature_factors(W[:, active], active)
        elif step > 0:
            memory = [*memory[1 - remembered :], _pair(*change)]
        direction = -_columns(_precondition(G, memory, factors, problems.shape[1]), active)
        before = W, G
        W, G, lengths = _line_search(problems, W, G, lengths, direction, active, shortest)
        shortest, change = np.minimum(shortest, lengths), (W - before[0], G - before[1])
        still = not change[0].any()
        if still and renewed:
            break  # converged to a point where the next step would be the same
    return W, G


def _precondition(G, memory, factors, n_columns):
    """Return L-BFGS's inverse curvatures times G: Liu and Nocedal 1989, the two loops."""
    q, coefficients = G, []
    for s, y, rho in reversed(memory):
        coefficients.append(rho * _products(s, q))
        q = q - coefficients[-1] * y
    r = factors.solve(q, n_columns)
    if memory and factors.guessed:
        r = r * factors.correction(*memory[-1])
    for s, y, rho in memory:
        r = r + (coefficients.pop() - rho * _products(y, r)) * s
    return r


def _pair(s, y):
    """Return a step, the change of the gradient, and one over their product."""
    sy = _products(s, y)
    # a step of 0, or of the size of rounding, has no curvature information
    return s, y, np.divide(1.0, sy, out=np.zeros_like(sy), where=sy > 0)


def _line_search(problems, W, G, lengths, direction, active, shortest):
    """Move active problems by the full step of a `direction`, or to the minimum on the line.

    Returns the points, the gradients there, and their `lengths`.

    The whole step is taken when one of these holds:

    - the derivative at its end is still at most 0: for a convex function the value has then
      fallen;
    - the gradient is shorter than 0.9 times the shortest so far, which can happen
      only finitely often before the tolerance is reached.

    Otherwise the lowest point of the line is bracketed by the sign of the derivative. Halving
    the step until the value falls would not do: far from 0 the losses curve in narrow
    strips only, the lowest point lies in one, and the curvature has to be taken there.

    Steps that lead too far out of the ball that holds all minimisers are cut short, so that
    halving them can find the strips.
    """
    start, longest = _columns(W, active), problems.longest[active]
    full, step = _norms(direction), np.ones(len(active))
    if (full > OUTSIDE * longest).any():
        farthest = OUTSIDE * (_norms(start) + longest)
        np.divide(farthest, full, out=step, where=full > farthest)
    there = start + step * direction
    g = problems.gradients(there, active)
    reached = _norms(g)
    fine = reached <= 0.9 * shortest[active]
    if not fine.all():
        fine |= _products(g, direction) <= 0
    if fine.all():
        W, G = _with_columns(W, active, there), _with_columns(G, active, g)
        return W, G, _with_columns(lengths, active, reached)
    derivative = np.abs(_products(_columns(G, active), direction))
    low, high = np.zeros_like(step), step.copy()
    W, G = W.copy(), G.copy()
    W[:, active[fine]], G[:, active[fine]] = there[:, fine], g[:, fine]
    pending = np.flatnonzero(~fine)
    for _ in range(1, BISECTIONS):
        step = 0.5 * (low[pending] + high[pending])
        there = start[:, pending] + step * direction[:, pending]
        g = problems.gradients(there, active[pending])
        derivative_there = _products(g, direction[:, pending])
        # a point short of the minimum is progress too, so keep it until there is a better one
        before = derivative_there <= 0
        where = active[pending[before]]
        W[:, where], G[:, where] = there[:, before], g[:, before]
        low[pending[before]], high[pending[~before]] = step[before], step[~before]
        fine = before & (-derivative_there <= 0.1 * derivative[pending])
        pending = pending[~fine]
        if not len(pending):
            break
    return W, G, _norms(G)


def _last_resort(problems, k, w, gradient, tau):
    """Solve one problem by the guaranteed method with the smaller bound on its steps.

    How many steps that takes depends on public numbers and on the linear term.
    """
    loss, R, mu = problems.terms.loss, problems.design.radius, float(problems.mu[k])
    t = float(np.linalg.norm(problems.linear[:, k]))
    accelerated, ellipsoids = guaranteed_steps(loss, R, mu, t, tau, len(w))
    # 2 * MAX_STEPS suffice up to noise 10^4 times its mean length; without privacy more may be needed
    steps = int(min(accelerated, ellipsoids, 2 * MAX_STEPS))
    length = float(np.linalg.norm(gradient))
    if accelerated <= ellipsoids:
        # no gradient at 0 is longer than this
        start = w if length <= loss.lipschitz * R + t else np.zeros_like(w)
        return _accelerated_descent(problems, k, start, tau, steps)
    far = float(problems.longest[k])
    M = loss.curvature * R**2 + mu
    if length / mu < far:
        return _ellipsoids(problems, k, w, length / mu + tau / M, tau, steps)
    return _ellipsoids(problems, k, np.zeros_like(w), far + tau / M, tau, steps)


def _accelerated_descent(problems, k, w, tau, steps):
    """Run Nesterov's method for strongly convex functions; see :func:`guaranteed_steps`."""
    mu, column = float(problems.mu[k]), np.array([k])
    L = problems.terms.loss.curvature * problems.design.radius**2 + mu
    rate = min(math.sqrt(mu / L), 0.9)
    momentum = (1 - rate) / (1 + rate)
    ahead = w
    for _ in range(steps):
        gradient = problems.gradients(ahead[:, None], column)[:, 0]
        if np.linalg.norm(gradient) <= tau:
            return ahead
        previous = w
        w = ahead - gradient / L
        ahead = w + momentum * (w - previous)
    return w


def _ellipsoids(problems, k, center, radius, tau, steps):
    """Run the ellipsoid method from a ball about `center`; see :func:`guaranteed_steps`.

    The ellipsoid is the image of the unit ball under a matrix, which is kept in place of its
    square: rounding then cannot make it anything else than an ellipsoid.
    """
    d, column = len(center), np.array([k])
    along, across = ellipsoid_factors(d)
    axes = radius * np.eye(d)
    best, shortest = center, np.inf
    for _ in range(steps):
        gradient = problems.gradients(center[:, None], column)[:, 0]
        length = np.linalg.norm(gradient)
        if length < shortest:
            best, shortest = center, length
        normal = gradient @ axes
        if length <= tau or not normal.any():
            break
        normal /= np.linalg.norm(normal)
        cut = axes @ normal
        center = center - cut / (d + 1)
        axes = across * axes + np.outer((along - across) * cut, normal)
    return best

"""A globally convergent solver for a whole table of regularised problems.

All problems J_jk of :mod:`~dpselect.linear_model.problems` are advanced together: each pass over
the rows is one matrix product for all of them.

The directions are those of L-BFGS (Liu and Nocedal, *On the limited memory BFGS method for large
scale optimization*, Mathematical Programming 45, 1989), started from the inverse of a column's
curvature matrix in place of a multiple of the identity. With a matrix taken at the point itself
the first step would be Newton's. It is taken at the minimiser over a sample of the rows, which is
where the descent begins; the parts of one column share it. A new one costs as much as about d / 4
gradients, and is made after about as many.

Where that does not pay, the descent starts from what public numbers say of the curvature, and from the
steps that the sample took: they show the few directions in which it is large.
"""

import math

import numpy as np

from .problems import GuessedCurvature, Problems
from .tolerance import MAX_STEPS, MOST_SQUARE, ellipsoid_factors, guaranteed_steps

# curvature matrices that are held at a time have at most this many entries, and remembered steps
GROUP_ELEMENTS, STEP_ELEMENTS = 1 << 22, 1 << 24
# a sample has one row in so many and at most so many entries, but at least so many rows in all,
# and for each coefficient
SAMPLE_SHARE, SAMPLE_ELEMENTS, SAMPLE_ROWS, SAMPLE_ROWS_PER_COEFFICIENT = 16, 1 << 21, 1024, 4
# without curvature matrices a smaller one is worth its passes
SMALL_SAMPLE_ROWS = 256
# up to so many coefficients curvature matrices cost next to nothing, of dense and of sparse rows
CHEAP, CHEAP_SPARSE = 256, 128
# A curvature costs as many passes as the sample has rows times coefficients for each row and PASS.
# It saves about SAVED sqrt(r) passes, r being how much larger the curvature is than mu in an average
# direction. Found by experiment.
PASS, SAVED = 8, 4
# steps that are remembered, with curvature matrices, and without; of so many numbers at most
MEMORY = 10
LONG_MEMORY, MEMORY_ELEMENTS = 20, 1 << 21
# without matrices, so many times `max_iter` steps are taken
PATIENCE = 10
# so often a step is halved; a whole one is at most so many times longer than a minimiser can be
BISECTIONS, OUTSIDE = 50, 2**10


def minimise(design, targets, which, loss, mu, linear, tau, max_iter=100, parts=None):
    """Minimise all problems until every gradient's l2 norm is at most its `tau`.

    The `design` has n rows a_i of d coordinates; column k has its targets t (for a MarginLoss
    labels, -1 or 1) in column which[k] of `targets`, of shape (n, K). mu and tau, greater than 0,
    are of shape (k,), or (J, k) for the J training parts of `parts`; `linear`, the terms b, of
    shape (d, k), or (J, d, k). The problems of one column should be much alike on all parts.

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
    guessing = _does_not_pay(design, loss, mu.min(initial=np.inf))
    if guessing:
        size = max(1, STEP_ELEMENTS // (2 * _n_remembered(d) * d * len(mu)))
    else:
        size = max(1, GROUP_ELEMENTS // d**2)
    for start in range(0, len(which), size):
        group = slice(start, start + size)
        problems = Problems(
            design, targets, which[group], loss, mu[:, group], linear[:, :, group], parts
        )
        W[:, :, group] = _solve(problems, tau[:, group], max_iter, guessing)
    return W


def _does_not_pay(design, loss, mu):
    """Tell by public numbers whether curvature matrices cost more passes than they save."""
    n, d = design.n_rows, design.n_columns
    if d <= (CHEAP_SPARSE if design.sparse else CHEAP):
        return False
    if d > MOST_SQUARE or design.sparse:
        return True
    rows = min(max(n // SAMPLE_SHARE, SAMPLE_ROWS_PER_COEFFICIENT * d), n)
    average = loss.curvature * design.radius**2 / d
    return rows * d / (PASS * n) > SAVED * math.sqrt(average / mu)


def _n_remembered(d):
    return min(max(MEMORY_ELEMENTS // d, 5), LONG_MEMORY)


def _solve(problems, tau, max_iter, guessing):
    """Return the solutions of all problems, shape (J, d, k)."""
    # steps without matrices are cheap, and there may be nothing behind them but the last resort
    patience = PATIENCE * max_iter if guessing else max_iter
    W, G, _ = _descend_together(problems, tau.ravel(), patience, guessing)
    for number in np.flatnonzero(~(_norms(G) <= tau.ravel())):
        W = _solve_alone(problems, number, W, G, tau.ravel(), max_iter)
    return np.moveaxis(W.reshape(len(W), *problems.shape), 0, 1)


def _solve_alone(problems, number, W, G, tau, max_iter):
    """Solve one problem that needs a curvature matrix of its own at each point, if there may be one."""
    if len(W) <= MOST_SQUARE:
        column = np.array([number])
        factors = problems.curvature_factors(W[:, column], column)
        W, G, _ = _descend(problems, column, W, factors, tau, max_iter, refresh=1)
    if not _norms(G[:, number]) <= tau[number]:
        W[:, number] = _last_resort(problems, number, W[:, number], G[:, number], tau[number])
    return W


def _descend_together(problems, tau, max_iter, guessing):
    """Return points after at most `max_iter` steps, the gradients there, and the last steps."""
    W, factors, memory = _start(problems, tau, max_iter, guessing)
    refresh = math.inf if guessing else min(max(2, len(W) // 4), 2 * MEMORY)
    return _descend(problems, np.arange(len(tau)), W, factors, tau, max_iter, refresh, memory)


def _start(problems, tau, max_iter, guessing):
    """Return where the descent begins, the factors of the curvature there, and remembered steps."""
    n, d = problems.design.n_rows, problems.design.n_columns
    if guessing:
        n_sample = n // SAMPLE_SHARE
        small = n_sample < SMALL_SAMPLE_ROWS
    else:
        n_sample = min(n // SAMPLE_SHARE, SAMPLE_ELEMENTS // d)
        n_sample = max(n_sample, SAMPLE_ROWS_PER_COEFFICIENT * d, SAMPLE_ROWS)
        small = n_sample > n // 2
    if small:
        W = np.zeros_like(problems.linear)
        if guessing:
            return W, GuessedCurvature(problems), []
        return W, problems.curvature_factors(W, np.arange(len(problems.mu))), []
    # where the sample's own error begins to count, there is no use to go on
    enough = 0.1 * (problems.terms.loss.lipschitz * problems.design.radius) / math.sqrt(n_sample)
    goal = np.maximum(tau.reshape(problems.shape).max(axis=0), enough)

    def on_sample(smaller):
        # a start need not be a solution, so that there is no last resort here
        W, _, steps = _descend_together(smaller, goal, max_iter, guessing)
        if guessing:
            return W, steps
        return W, smaller.curvature_factors(W, np.arange(smaller.shape[1]))

    W, found = problems.on_sample(n_sample, on_sample)
    n_parts = problems.shape[0]
    if guessing:
        return np.tile(W, n_parts), GuessedCurvature(problems), found
    return np.tile(W, n_parts), found, []


def _norms(vectors):
    return np.sqrt((vectors * vectors).sum(axis=0))


def _descend(problems, chosen, W, factors, tau, max_iter, refresh, memory=()):
    """Move the chosen problems by at most `max_iter` steps.

    After each `refresh` steps the factors are those of the curvature at the points then. Returns all
    points, the gradients there, and the last steps, with which the next call may begin.
    """
    G = np.zeros_like(W)
    G[:, chosen] = problems.gradients(W[:, chosen], chosen)
    remembered = _n_remembered(len(W)) if factors.guessed else MEMORY
    memory, still = list(memory), False
    shortest = np.full(len(tau), np.inf)
    for step in range(max_iter):
        lengths = _norms(G)
        shortest = np.minimum(shortest, lengths)
        # "not at most" rather than "more than", so that nothing undefined counts as solved
        active = chosen[~(lengths[chosen] <= tau[chosen])]
        if not len(active):
            break
        renewed = step > 0 and (still or step % refresh == 0)
        if renewed:
            memory = []
            if not factors.guessed:
                factors = problems.curvature_factors(W[:, active], active)
        direction = np.zeros_like(W)
        direction[:, active] = -_precondition(G, memory, factors, problems.shape[1])[:, active]
        before = W, G
        W, G = _line_search(problems, W, G, direction, active, shortest)
        still = not (W != before[0]).any()
        if still and renewed:
            break  # the next step would be this one again
        memory = [*memory[1 - remembered :], _pair(W - before[0], G - before[1])]
    return W, G, memory


def _precondition(G, memory, factors, n_columns):
    """Return L-BFGS's inverse curvatures times G: Liu and Nocedal 1989, the two loops."""
    q, shares = G, []
    for step in reversed(memory):
        s, y, rho = _of_all_parts(step, G)
        shares.append(rho * (s * q).sum(axis=0))
        q = q - shares[-1] * y
    r = factors.solve(q, n_columns)
    if memory and factors.guessed:
        r = r * factors.correction(*_of_all_parts(memory[-1], G))
    for step in memory:
        s, y, rho = _of_all_parts(step, G)
        r = r + (shares.pop() - rho * (y * r).sum(axis=0)) * s
    return r


def _of_all_parts(step, G):
    """Return a step for all columns of G; those on a sample are stored once for all parts."""
    n_parts = G.shape[1] // len(step[-1])
    return step if n_parts == 1 else tuple(np.tile(of_step, n_parts) for of_step in step)


def _pair(s, y):
    """Return a step, how the gradient changed, and one over their product."""
    sy = (s * y).sum(axis=0)
    # a problem that stood still, or moved by rounding only, has nothing to tell
    return s, y, np.where(sy > 0, 1.0, 0.0) / np.where(sy > 0, sy, 1.0)


def _line_search(problems, W, G, direction, active, shortest):
    """Take the whole step if it makes certain progress, otherwise go to the lowest point.

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
    derivative = (G * direction).sum(axis=0)
    whole, farthest = _norms(direction), OUTSIDE * (_norms(W) + problems.longest)
    step = np.where(whole <= farthest, 1.0, farthest / np.where(whole > 0, whole, 1.0))
    low, high = np.zeros(len(derivative)), step.copy()
    start, W, G = W, W.copy(), G.copy()
    pending = active
    for trial in range(BISECTIONS):
        there = start[:, pending] + step[pending] * direction[:, pending]
        g = problems.gradients(there, pending)
        derivative_there = (g * direction[:, pending]).sum(axis=0)
        before = derivative_there <= 0
        if trial == 0:
            fine = before | (_norms(g) <= 0.9 * shortest[pending])
        else:
            fine = before & (-derivative_there <= 0.1 * np.abs(derivative[pending]))
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


def _last_resort(problems, k, w, gradient, tau):
    """Solve one problem by whichever of two methods is certain to end sooner.

    How many steps that takes depends on public numbers and on the linear term.
    """
    loss, R, mu = problems.terms.loss, problems.design.radius, float(problems.mu[k])
    t = float(np.linalg.norm(problems.linear[:, k]))
    accelerated, ellipsoids = guaranteed_steps(loss, R, mu, t, tau, len(w))
    # without privacy a problem may need more; with noise 10^4 times longer than its mean, twice as many
    steps = int(min(accelerated, ellipsoids, 2 * MAX_STEPS))
    length = float(np.linalg.norm(gradient))
    if accelerated <= ellipsoids:
        # no gradient at 0 is longer than this
        start = w if length <= loss.lipschitz * R + t else np.zeros_like(w)
        return _accelerated_descent(problems, k, start, tau, steps)
    reach = float(problems.longest[k])
    M = loss.curvature * R**2 + mu
    if length / mu < reach:
        return _ellipsoids(problems, k, w, length / mu + tau / M, tau, steps)
    return _ellipsoids(problems, k, np.zeros_like(w), reach + tau / M, tau, steps)


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
        pull = gradient @ axes
        if length <= tau or not pull.any():
            break
        pull /= np.linalg.norm(pull)
        cut = axes @ pull
        center = center - cut / (d + 1)
        axes = across * axes + np.outer((along - across) * cut, pull)
    return best

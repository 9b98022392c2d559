"""The least regularised risk of a linear model over a ball, and its sensitivity.

Symbols as in :mod:`~dpselect.linear_model.calibration`; B is the radius of the ball, about the
coefficients from which the penalty counts, and w is counted from there, too. With several classes, all
is averaged over the one-vs-rest problems.
"""

import math

import numpy as np

from ..base.certificates import INEXACTNESS, RiskBound
from ..noise.tails import noise_length
from .design import design_and_targets
from .problems import mean_losses
from .solver import minimise
from .tolerance import attainable, check_steps

# Number of regularisations that are tried at once: between known ones, and about a guess.
SPREAD = 8
CLOSENESS = np.array([-0.1, -0.01, -0.001, 0.001, 0.01, 0.1])
# The noise-free curvature in an average direction, c R^2 / d, falls short of that in the few
# directions that matter by about this factor; found by experiment.
CONCENTRATION = 30.0
# Smallest span, relative to L times the largest prediction: INEXACTNESS times it, over n, has to cover
# the rounding error of a mean of losses.
LEAST_SPAN = 1e-5


def linear_risk_bound(calibration, reach):
    """Return the RiskBound of a linear model.

    Parameters
    ----------
    calibration : LinearNoise
        Of what it will be trained with.
    reach : float
        Largest prediction |a.w| that a model in the ball has: B = reach / R.

    Returns
    -------
    RiskBound

    Notes
    -----
    Let w minimise J over the ball for records D, and let D' have z' in place of z. Then
    min J' <= J'(w) = min J + (l(w, z') - l(w, z)) / n, and vice versa: the value moves by
    at most the span of the loss at U over n, where U bounds |a.w|. A minimiser on the ball is one
    without the ball for mu + nu in place of mu, nu >= 0, so its length is at most
    sqrt(kappa_l / mu) as well as B.

    The forecast is the mean of b' H^-1 b / 2 for the noise b of objective perturbation, and of
    o' H o / 2 for the noise o of output perturbation, at a curvature H that is a guess.
    """
    problem, s, d = calibration.problem, calibration.scales, calibration.dimension
    loss, R = problem.loss, problem.radius
    ball = _Ball(calibration, reach)
    average = loss.curvature * R**2 / d
    if calibration.perturbation == "objective":
        length = noise_length(calibration.law, d)
        moved = s.linear_scale * length
        forecast = moved * moved / (2 * (s.mu + CONCENTRATION * average))
    else:
        moved = s.output_scale * noise_length(calibration.law, d)
        forecast = moved * moved * (average + s.mu) / 2
    shape = calibration.shape
    unit = (f"mean {loss!r}", f"of {shape.n_problems} problems")
    return RiskBound.of(
        ball.span, shape.n_samples, ball.residual, forecast, ball.length, unit, loss.stake
    )


def linear_optimal_values(problem, calibrations, records, reach):
    """Return the least regularised risks over the balls, of models with one LinearProblem."""
    balls = [_Ball(calibration, reach) for calibration in calibrations]
    design, targets = design_and_targets(problem, records)
    path = _Path(problem, design, targets, balls)
    return [path.values(ball.mu).mean() for ball in balls]


class _Ball:
    """Public numbers of one problem with mu on a ball.

    Attributes
    ----------
    mu : float
    radius : float
        B.
    pull : float
        kappa_l where |a.w| is at most `reach`.
    length : float
        Bound on the minimiser on the ball.
    span : float
        Largest difference of two records' losses at such a point.
    goal : float
        Gap at which a search for the multiplier stops.
    tau : float
        Bound on the gradient norm that the solver reaches.
    residual : float
        Half the length of an interval about the exact value that holds the computed one.

    Notes
    -----
    The dual function is D(nu) = min J(w) + nu (||w||^2 - B^2) / 2, concave, with
    D'(nu) = (||w(nu)||^2 - B^2) / 2, and its largest value over nu >= 0 is the value that is
    sought. It lies at nu <= kappa_l / B^2 - mu, beyond which ||w(nu)|| <= B. If it is known to
    lie between a and b, with ||w(b)|| <= B, then D(b) is too low by at most
    (b - a) |D'(b)|. Of a length next to B, the solver can only say that
    | ||w||^2 - B^2 | / 2 <= e = (tau / mu) (B + tau / mu). The place of the maximum is then
    misjudged at a cost of at most e kappa_l / B^2, and D'(b) by at most e, at the same cost. A
    computed value of J exceeds the least by at most tau^2 / (2 mu).
    """

    def __init__(self, calibration, reach):
        problem, self.mu = calibration.problem, calibration.scales.mu
        loss, R, mu = problem.loss, problem.radius, self.mu
        self.pull = min(problem.pull, loss.lipschitz * reach)
        natural = math.sqrt(self.pull / mu)
        self.radius = reach / R
        self.length = min(self.radius, natural)
        U = R * self.length + problem.farthest_offset
        # for nearly constant models the difference of two losses may round to 0
        self.span = max(float(loss.span(U)), LEAST_SPAN * loss.lipschitz * reach)
        self.goal = INEXACTNESS * self.span / calibration.shape.n_samples
        steepness, tol = 0.0, problem.tol
        if self.radius < natural:
            steepness = 2 * self.pull / self.radius**2
            tol = min(tol, self.goal * mu / (2 * steepness * self.radius * R))
        t = mu * problem.origin_length
        self.tau = attainable(loss, R, mu, t, tol)
        if calibration.epsilon != math.inf:
            check_steps(loss, R, mu, t, self.tau, calibration.dimension, calibration.alpha, tol)
        moved = self.tau / mu
        e = moved * (self.radius + moved)
        # without a path, the gap that a path may leave covers the rounding
        self.residual = (steepness * e + self.tau * moved / 2 + self.goal) / 2


class _Path:
    """Minimisers of all one-vs-rest problems at regularisations M, on a common ball.

    Whatever mu is, w(nu) is the minimiser at M = mu + nu: one path serves all candidates that
    see the same rows. Where it enters the ball, at M*, all with mu < M* have their maximum.
    """

    def __init__(self, problem, design, targets, balls):
        self.problem, self.design, self.targets = problem, design, targets
        self.loss, self.B = problem.loss, balls[0].radius
        self.K = targets.shape[1]
        self.goal, self.taus = min(b.goal for b in balls), [b.tau for b in balls]
        self.mus = mus = np.array([b.mu for b in balls])
        # regularisations M, with the value and the norm of each problem's minimiser
        self.evaluated = [({}, {}) for _ in range(self.K)]
        grid, last = np.unique(mus), balls[0].pull / self.B**2
        if grid[0] < last:
            grid = np.union1d(grid, np.geomspace(grid[0], last, SPREAD))
        self._solve(np.tile(grid, self.K), np.repeat(np.arange(self.K), len(grid)))
        self._enter_the_ball(last)

    def _solve(self, M, which):
        # the smallest tolerance of all candidates whose value may be computed at M
        tau = np.min(np.where(self.mus[:, None] <= M, np.array(self.taus)[:, None], np.inf), axis=0)
        origin = self.problem.origin(self.design.n_columns).T
        origin = origin[:, which % origin.shape[1]]
        W = minimise(
            self.design,
            self.targets,
            which,
            self.loss,
            mu=M,
            linear=-M * origin,
            tau=tau,
            max_iter=self.problem.max_iter,
        )
        squares = ((W - origin) ** 2).sum(axis=0)
        values = mean_losses(self.design, self.targets, which, self.loss, W) + M / 2 * squares
        for m, k, value, length in zip(M, which, values, np.sqrt(squares)):
            self.evaluated[k][0][float(m)], self.evaluated[k][1][float(m)] = float(value), float(length)

    def _bracket(self, k, last):
        """Return the neighbours a < b between which problem k's path enters the ball, or None."""
        length = self.evaluated[k][1]
        inside = [M for M in length if length[M] <= self.B]
        # beyond `last` the path is inside the ball, despite the solver's residual
        b = min(inside, default=last)
        outside = [M for M in length if length[M] > self.B and M < b]
        return (max(outside), b) if outside else None

    def _enter_the_ball(self, last):
        # each round at least halves the bracket, and the gap is at most (b - a) B^2 / 2
        rounds = max(1, math.ceil(math.log2(max(2.0, last * self.B**2 / (2 * self.goal)))))
        for _ in range(rounds):
            M, which = [], []
            for k in range(self.K):
                bracket = self._bracket(k, last)
                if bracket is None or self._gap(k, *bracket) <= self.goal:
                    continue
                there = self._between(k, *bracket)
                M.append(there)
                which.append(np.full(len(there), k))
            if not M:
                return
            self._solve(np.concatenate(M), np.concatenate(which))

    def _gap(self, k, a, b):
        length = self.evaluated[k][1]
        return (b - a) * max(self.B**2 - length[b] ** 2, 0.0) / 2

    def _between(self, k, a, b):
        length = self.evaluated[k][1]
        # interpolate linearly in the inverse norm, which is nearly linear in M
        fraction = length[b] * (length[a] - self.B) / (self.B * (length[a] - length[b]))
        guess = a + (b - a) * fraction
        points = np.append(guess + (b - a) * CLOSENESS, (a + b) / 2)
        return np.unique(points[(points > a) & (points < b)])

    def values(self, mu):
        """Return the value of each problem at mu."""
        values = np.empty(self.K)
        for k, (value, _) in enumerate(self.evaluated):
            # the dual function at every point of the path from mu on
            M = np.array([M for M in value if M >= mu])
            dual = np.array([value[m] for m in M]) - (M - mu) * self.B**2 / 2
            values[k] = dual.max()
        return values

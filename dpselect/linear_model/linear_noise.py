"""The public part of a linear model before any data: its problem, and the noise of a fit.

Symbols as in :mod:`~dpselect.linear_model.calibration`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit

from ..base.certificates import margin_certificate
from ..exceptions import CertificateError
from ..noise import gaussian, laplace, spherical_laplace
from ..noise.tails import lipschitz_deviation, noise_length, squared_length
from ..records.public_shape import PublicShape
from ..rows import block_map
from ..utils.parameters import with_values
from .calibration import (
    Perturbation,
    added_cost,
    calibrate,
    larger_alpha,
    norm_bound,
    public_alpha,
)
from .design import Design
from .gaussian_noise import calibrate_gaussian, gaussian_event, gaussian_sharpness
from .losses import Loss, MarginLoss
from .risk_bound import linear_optimal_values, linear_risk_bound
from .sweep import linear_split_scores
from .weights import Weights

# Without privacy a smaller lambda, or 0, counts as this multiple of the largest curvature c R^2: with
# less, models may be so long that rounding hides their gradient.
NO_PENALTY = 1e-13


@dataclass(frozen=True)
class LinearProblem:
    """The noise-free problem, without lambda: models with equal problems are solved together.

    Attributes
    ----------
    kind : type
        The estimator's class.
    loss : Loss
        For records of any weight that they may have.
    weights : Weights or None
        None if all records have weight 1.
    norm : {"auto", "l2", "l1"}
        For which the noise of the objective is made.
    data_norm, data_norm_l1 : float
        The largest l2 and l1 norm of a row.
    constant : float or None
        The column from which the intercept is learned.
    classes : tuple or None
        The public labels of a classifier.
    tol, max_iter, n_jobs
        Of the solver.
    offsets : tuple of float
        Intercepts of the one-vs-rest problems from which the penalty counts; empty for 0.
    shares : tuple of float
        Share of the positive class in each, if the offsets are those of other shares; empty if not.
    delta : float
        Of a fit, if Gaussian noise is the shortest.
    """

    kind: type
    loss: Loss
    weights: Weights | None
    norm: str
    data_norm: float
    data_norm_l1: float
    constant: float | None
    classes: tuple | None
    # models with other tolerances are solved together, each to its own
    tol: float = field(compare=False)
    max_iter: int
    n_jobs: int | None
    offsets: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    delta: float = 0.0

    @property
    def radius(self):
        """float : R, bound on the l2 norm of the rows, the constant included."""
        # the l1 norm bounds the l2 norm
        return math.hypot(min(self.data_norm, self.data_norm_l1), self.constant or 0.0)

    def noise_radius(self, norm, n_features):
        """Return G, the bound on the norm of rows that calibrates the noise, constant included."""
        if norm == "l2":
            return self.radius
        return min(self.data_norm_l1, math.sqrt(n_features) * self.data_norm) + (self.constant or 0.0)

    def noise_norm(self, n_features):
        """Return `norm`, or, if it is "auto", the norm with the shorter Laplace noise."""
        if self.norm != "auto":
            return self.norm
        lengths = {
            norm: noise_length(norm, self.dimension(n_features)) * self.noise_radius(norm, n_features)
            for norm in ("l2", "l1")
        }
        return min(lengths, key=lengths.get)

    def noise_law(self, perturbation, epsilon, n_features, n_problems):
        """Return the law of the noise: "l1", "l2" or "gaussian", the shortest by public numbers.

        Not by the number of records: where noise is drawn, it is not known.
        """
        norm = self.noise_norm(n_features) if perturbation == "objective" else "l2"
        if self.delta == 0 or epsilon == math.inf:
            return norm
        d = self.dimension(n_features)
        sharpness = gaussian_sharpness(perturbation, self.loss, epsilon, self.delta, n_problems)
        length = noise_length("gaussian", d) * self.radius / sharpness
        pure = noise_length(norm, d) * self.noise_radius(norm, n_features) * n_problems / epsilon
        return "gaussian" if length < pure else norm

    @property
    def farthest_offset(self):
        """float : The largest intercept from which a penalty counts."""
        return max(map(abs, self.offsets), default=0.0)

    @property
    def origin_length(self):
        """float : Bound on the length of `origin`."""
        return self.farthest_offset / (self.constant or 1.0)

    @property
    def pull(self):
        """float : kappa_l of the loss of a prediction z + offset, as a function of z."""
        return self.loss.pull + self.loss.lipschitz * self.farthest_offset

    def origin(self, n_columns):
        """Return the coefficients from which the penalty counts, shape (K, d), or (1, d) for 0."""
        origin = np.zeros((max(len(self.offsets), 1), n_columns))
        if self.offsets:
            origin[:, -1] = np.array(self.offsets) / self.constant
        return origin

    def dimension(self, n_features):
        """Return d, the number of coefficients of one binary problem."""
        return n_features + (self.constant is not None)

    def farthest(self, y):
        """Return how far a target is from the centre at most, in units, where the loss has no bound."""
        loss = self.loss.unweighted
        if loss.pull < math.inf:
            return 0.0
        return float(block_map(lambda block: abs(block - loss.centre), y).max()) / loss.unit

    def design(self, X):
        """Return the rows in the form in which they are trained on."""
        return Design(X, self.data_norm, self.constant, self.n_jobs, self.data_norm_l1)

    def standard_noise(self, generator, law, n_features, n_problems):
        """Return independent vectors of shape (2, n_problems, d): see DPLogisticRegression."""
        d = self.dimension(n_features)
        if law == "gaussian":
            return gaussian(generator, (2, n_problems, d))
        if self.noise_norm(n_features) == "l1":
            linear = laplace(generator, (n_problems, d))
            return np.stack([linear, spherical_laplace(generator, n_problems, d)])
        return spherical_laplace(generator, 2 * n_problems, d).reshape(2, n_problems, d)

    def split_scores(self, trials, score, records, parts):
        """Return the scores of trials of this problem on splits, shape (J, k)."""
        return linear_split_scores(self, trials, score, records, parts)

    def optimal_values(self, calibrations, records, reach):
        """Return the least risks for calibrations of this problem."""
        return linear_optimal_values(self, calibrations, records, reach)

    def attributes(self, w):
        """Return the released attributes for noisy coefficients of shape (K, d)."""
        coef, intercept = w, np.zeros(len(w))
        if self.constant is not None:
            coef, intercept = w[:, :-1].copy(), self.constant * w[:, -1]
        # regressions have 1-d coefficients, as in scikit-learn
        if not isinstance(self.loss.unweighted, MarginLoss):
            unit, centre = self.loss.unit, self.loss.centre
            coef, intercept = unit * coef[0], float(unit * intercept[0] + centre)
        # report the public limit, because the number of steps depends on the data
        return {"coef_": coef, "intercept_": intercept, "n_iter_": self.max_iter}

    def certified(self, score):
        """Refuse a score without a known certificate."""
        if not isinstance(score, self.loss.certifies):
            raise CertificateError(
                f"No certificate exists for {self.kind.__name__} with {type(score).__name__}; "
                f"use {self.loss.certified_score}."
            )


def refuse_zero(alpha):
    """Refuse alpha=0, which only a model without noise takes, for a model with noise."""
    if not alpha > 0:
        raise ValueError(
            "alpha=0.0 is not allowed with a finite epsilon, because without regularisation one record "
            "can move the model without limit; write a number from 1e-100 to 1e100, such as 0.01, or "
            '"auto".'
        )


@lru_cache(maxsize=1024)  # certificates, models and intervals ask for the same ones
def _level(loss, pull, share, start):
    """Return how far from that of a share a prediction ends that pull / 2 (z - start)^2 penalises."""
    wanted = float(loss.prediction(logit(share)))

    def slope(z):
        up, down = loss.derivative(np.array([z, z]), np.array([1.0, -1.0]))
        return share * up + (1 - share) * down + pull * (z - start)

    # where both are nearly equal, rounding decides on the signs
    if slope(start) * slope(wanted) >= 0:
        return 0.0
    return wanted - brentq(slope, *sorted((start, wanted)))


@dataclass(frozen=True)
class LinearNoise:
    """The noise calibration of one fit of a linear model.

    Attributes
    ----------
    problem : LinearProblem
    shape : PublicShape
    epsilon : float
        Of the fit.
    perturbation : {"objective", "output"}
    law : {"l2", "l1", "gaussian"}
        Of the noise that enters there.
    alpha : float
        lambda.
    signal : float
        n * epsilon / E[noise norm]; used by heuristics only, never by a proof.
    typical_prediction : float
        Size of a typical model's predictions; used by heuristics on alpha only.
    scales : Perturbation
        Of each one-vs-rest problem.
    by_rule : bool
        Whether `alpha` is the value of the public rule, a multiple of R^2 / n, and no larger one.
    stretch : float
        By which coefficients are multiplied after training.
    calibrated : callable
        From ``alpha=`` to the scales of a fit with this lambda.
    """

    problem: LinearProblem
    shape: PublicShape
    epsilon: float
    perturbation: str
    law: str
    alpha: float
    signal: float
    typical_prediction: float
    scales: Perturbation
    by_rule: bool
    stretch: float
    calibrated: Callable[..., Perturbation] = field(repr=False, compare=False)

    @classmethod
    def of(cls, problem, shape, epsilon, perturbation, alpha):
        """Calibrate the noise; `alpha` may be "auto"."""
        p, K, R = shape.n_features, shape.n_problems, problem.radius
        d, law = problem.dimension(p), problem.noise_law(perturbation, epsilon, p, K)
        epsilon_each = epsilon / K
        rows = {
            "n_samples": shape.n_samples,
            "dimension": d,
            "radius": R,
            "tol": problem.tol,
            "origin": problem.origin_length,
            "persons": shape.persons,
        }
        if law == "gaussian":
            sharpness = gaussian_sharpness(perturbation, problem.loss, epsilon, problem.delta, K)
            length = epsilon_each * math.sqrt(d) / sharpness
        else:
            G = problem.noise_radius("l1", p) if law == "l1" else None
            length = d if law == "l2" else math.sqrt(2 * d) * G / R
        signal = shape.n_samples * epsilon_each / length
        typical_prediction = problem.loss.reach / problem.loss.shrinkage(perturbation, signal)
        if law == "gaussian":
            calibrated = partial(
                calibrate_gaussian,
                perturbation,
                problem.loss,
                epsilon=epsilon,
                delta=problem.delta,
                n_problems=K,
                **rows,
            )
        else:
            calibrated = partial(
                calibrate, perturbation, problem.loss, epsilon=epsilon_each, noise_radius=G, **rows
            )

        given, auto = alpha, isinstance(alpha, str)
        if auto:
            given = public_alpha(problem.loss, perturbation, shape.n_samples, length, R, epsilon_each)
        given = float(given)
        if epsilon < math.inf:
            refuse_zero(given)
        else:
            given = max(given, NO_PENALTY * problem.loss.curvature * R**2)
        noise = cls(
            problem,
            shape,
            epsilon,
            perturbation,
            law,
            given,
            signal,
            typical_prediction,
            calibrated(alpha=given),
            by_rule=False,
            stretch=problem.loss.stretch_after(perturbation, signal) if auto else 1.0,
            calibrated=calibrated,
        )
        if not auto:
            return noise
        if noise.added_cost() <= 1:
            return replace(noise, by_rule=True)
        return noise.with_alpha(
            larger_alpha(noise.alpha, lambda alpha: noise.with_alpha(alpha).added_cost())
        )

    def with_alpha(self, alpha):
        """Return the noise of a fit that differs in lambda only, a number."""
        alpha = float(alpha)
        return with_values(self, alpha=alpha, scales=self.calibrated(alpha=alpha), by_rule=False)

    def at_bounds(self, data_norm, farthest, alpha):
        """Return the calibration of the same fit without noise, for the bounds that records keep.

        No row is longer than `data_norm`, and no target farther from the centre than `farthest` units.
        """
        problem = self.problem
        if 0 < data_norm < problem.data_norm:
            # rounding must not make a row longer
            problem = replace(problem, data_norm=data_norm * (1 + 1e-9))
        if problem.loss.pull == math.inf:
            pull = problem.loss.lipschitz * farthest
            problem = replace(problem, loss=with_values(problem.loss, pull=pull))
        return self.of(problem, self.shape, self.epsilon, self.perturbation, alpha)

    @property
    def levels(self):
        """ndarray of shape (K,) : By how much predictions are moved after training.

        Where rows tell nothing, training ends between where the penalty counts from and the share of the
        class; this is from there to the share. Of public numbers alone.
        """
        problem = self.problem
        # rows that have the same mean help to move a prediction
        squared = (problem.constant**2 + problem.radius**2) / 2 if problem.shares else 1.0
        # as if all records had the largest weight
        pull = self.scales.mu / (problem.weights.largest if problem.weights else 1.0) / squared
        starts = zip(problem.shares, problem.offsets)
        return np.array([_level(problem.loss.unweighted, pull, *each) for each in starts])

    def given_back(self, w):
        """Return coefficients of shape (K, d) after what is known of the penalty is given back."""
        if self.stretch == 1.0 and not self.problem.shares:
            return w
        w = w.copy()
        w[:, : self.shape.n_features] *= self.stretch
        if self.problem.shares:
            w[:, -1] += self.levels / self.problem.constant
        return w

    @property
    def dimension(self):
        """int : d, the number of coefficients of one binary problem."""
        return self.problem.dimension(self.shape.n_features)

    @property
    def delta(self):
        """float : Delta of the fit; 0 unless the noise is Gaussian."""
        return self.problem.delta if self.law == "gaussian" else 0.0

    def event(self, learned=False):
        """Return the Event of the fit; with `learned`, one that holds for any learned bounds."""
        # learned bounds may decide the noise of "auto", unless all norms are multiples of them
        multiples = self.problem.constant is None and self.problem.data_norm_l1 == math.inf
        decided = multiples or self.problem.norm == "l2" or self.perturbation == "output" or not learned
        if self.law != "gaussian" or not decided:
            return None
        if learned and self.by_rule and (event := self._event_at_any_radius()):
            return event
        return gaussian_event(
            self.perturbation,
            self.problem.loss,
            self.scales,
            n_samples=self.shape.n_samples,
            radius=self.problem.radius,
            epsilon=self.epsilon,
            delta=self.problem.delta,
            n_problems=self.shape.n_problems,
            learned=learned,
            persons=self.shape.persons,
        )

    def _event_at_any_radius(self):
        """Return the Event at R = 1 if R cancels in R^2 / (n mu), else None.

        Nothing here may depend on the R at hand, which was learned from the records.
        """
        # alpha scales with R**2 / n only if no term is independent of R: not with offsets, and not with
        # groups, whose calibration rounds
        if self.problem.offsets or self.shape.persons:
            return None
        if not isinstance(self.problem.loss.unweighted, MarginLoss):
            return None
        problem = replace(self.problem, data_norm=1.0, data_norm_l1=math.inf)
        unit = self.of(problem, self.shape, self.epsilon, self.perturbation, "auto")
        # R changes the rounding of the added noise, which cannot decide far from 1
        return unit.event() if unit.by_rule and unit.added_cost() < 0.9 else None

    @property
    def added_law(self):
        """{"l2", "gaussian"} : Law of the noise that is added to the minimiser."""
        return "gaussian" if self.law == "gaussian" else "l2"

    def certificate(self, score, noise=None, failure_probability=None):
        """Return the Certificate of a score, at a noise sample or for nearly all of them."""
        problem, s = self.problem, self.scales
        loss, R = problem.loss, problem.radius
        problem.certified(score)
        if failure_probability is None:
            lengths = np.linalg.norm(noise, axis=2)
        else:
            probability = failure_probability / (2 * self.shape.n_problems)
            lengths = np.empty((2, self.shape.n_problems))
            lengths[0] = noise_length(self.law, self.dimension, probability)
            lengths[1] = noise_length(self.added_law, self.dimension, probability)
        residual = 2 * s.tau / s.mu + s.rounding
        moved = 2 * (loss.lipschitz * R) / self.shape.n_samples / s.mu + residual
        longest = self.stretch * norm_bound(loss, s, R, *lengths, problem.origin_length)
        if problem.shares:
            longest = longest + np.abs(self.levels) / problem.constant
        moved, residual = self.stretch * moved, self.stretch * residual
        return margin_certificate(score, loss.unit * R, moved, longest, residual)

    def risk_bound(self, reach):
        """Return the RiskBound over the ball of models whose radius is `reach`."""
        return linear_risk_bound(self, reach)

    def deviation(self):
        """Bound the standard deviation over the noise of v.w for any v of length 1, records fixed.

        In units of `coef_`. The proof is on the page "Linear classifiers": "What noise does to a curve".
        """
        if self.epsilon == math.inf:
            return 0.0
        s, d = self.scales, self.dimension
        objective = s.linear_scale * lipschitz_deviation(self.law, d) / s.mu
        # deviation of one coordinate of the noise, plus bounds on the solver's and the grid's errors
        coordinate = 1.0 if self.added_law == "gaussian" else math.sqrt(d + 1)
        added = s.output_scale * coordinate + s.tau / s.mu + s.rounding
        return self.problem.loss.unit * self.stretch * float(objective + added)

    @property
    def noise_length(self):
        """float : Root mean square length of the noise in the gradient of one problem."""
        s, d = self.scales, self.dimension
        if self.perturbation == "objective":
            return s.linear_scale * noise_length(self.law, d)
        return s.mu * s.output_scale * noise_length(self.added_law, d)

    def added_cost(self):
        """Return the cost of the noise that is added to the minimiser, relative to the cost of mu."""
        return added_cost(
            self.problem.loss,
            self.scales,
            squared_length(self.added_law, self.dimension),
            self.dimension,
            self.problem.radius,
        )

    def regularisation_cost(self):
        """Return the cost that the public rule for lambda minimises over a grid."""
        return sum(self.regularisation_parts())

    def regularisation_parts(self):
        """Return the noise and the bias in that cost, which decrease and increase with lambda."""
        s, length = self.scales, squared_length(self.law, self.dimension)
        # products, because a power of Python floats raises on overflow
        if self.perturbation == "objective":
            noise = s.linear_scale * s.linear_scale * length / (8 * s.mu)
        else:
            noise = s.output_scale * s.output_scale * length * s.mu / 8
        bias = self.typical_prediction**2 / 2 * s.mu / self.problem.radius**2
        # the added noise counts as a fraction of the bias, and decreases nevertheless
        return float(noise + bias * self.added_cost()), float(bias)

    def forecast(self):
        """Return the expected excess at this alpha, where more epsilon may follow.

        That of a typical model, and not only what a rule may minimise. Of noise in the result twice the
        price of regularising: it falls with the square of epsilon, and the price stays.
        """
        if self.perturbation == "objective":
            return self.regularisation_cost()
        return float((self.problem.loss.reach / self.problem.radius) ** 2 * self.scales.mu)

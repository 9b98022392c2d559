"""Differentially private ridge regression."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from ...atomic import all_or_nothing
from ...certificates import Certificate, RiskBound
from ...estimator import PrivacyHTMLMixin, release_loss
from ...exceptions import CertificateError
from ...ledger import PrivacyLedger, charged
from ...metrics import ClippedSquaredErrorScore
from ...metrics.plain import r_squared
from ...noise import as_generator, ball_laplace, gaussian, laplace, lattice_noise, release
from ...noise.generators import RandomState
from ...records import numeric_rows, refuse_fit_params, regression_records
from ...rows import Parts, block_map
from ...training_records import (
    remembers_records,
    share_records,
    warns_of_training_records,
)
from ...type_aliases import FloatArray, MatrixLike
from .accuracy import RidgeAccuracy
from .calibration import ball_radius, gradient_change, objective_noise, output_noise
from .noise import Reading, released_entries, statistic_noise
from .parameters import check_parameters
from .risk_bound import ridge_optimal_values, ridge_risk_bound
from .splits import ridge_split_scores
from .sums import clip_factor, entry_bits, outer_sums, units
from .trust_region import length_of


class DPRidge(PrivacyHTMLMixin, RegressorMixin, BaseEstimator):
    """Ridge regression, released with differential privacy.

    Minimises half the mean squared error plus alpha / 2 times the squared norm of the
    coefficients, the intercept included, over a ball. Either the Gram matrix and the moments
    are released with noise and the coefficients computed from them (covariance
    perturbation), or noise enters the objective, or it is added to the coefficients (output
    perturbation).

    Neighbouring data sets differ in one record (row and target). Public are the number of
    records, the columns, and every parameter.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of the fit, greater than 0; ``inf`` fits without noise.
    alpha : float, default=0.01
        Strength of the regularisation of the *mean* loss; scikit-learn's Ridge has
        alpha = n_samples times this one.
    perturbation : {"covariance", "objective", "output"}, default="covariance"
        Where the noise enters. With covariance perturbation other values of `alpha` cost
        nothing more: see :meth:`post_process`. The other two need a large `alpha`; the noise
        of objective perturbation is made of d variables, not d^2.
    delta : float, default=0.0
        Probability with which the privacy loss may exceed epsilon. Greater than 0, it turns
        the noise of covariance perturbation under ``norm="l2"`` into Gaussian noise.
    norm : {"l1", "l2"}, default="l1"
        Norm in which rows are bounded. "l1" suits sparse rows such as one-hot columns; "l2"
        suits dense ones.
    data_norm : float, default=1.0
        Rows with a larger norm are scaled down to it, in training and in prediction. A dense
        row of l2 norm 1 with p columns has l1 norm up to sqrt(p), and about
        sqrt(2 p / pi).
    target_bound : float, default=1.0
        Targets are clipped to [-target_bound, target_bound].
    coef_bound : float, default=None
        Largest l2 norm of the coefficients, the intercept included. It is never more than
        target_bound / (2 sqrt(alpha)), within which the minimiser lies on any data.
    fit_intercept : bool, default=True
        Whether to learn an intercept, as the coefficient of a constant column of ones that
        is regularised as the others are.
    ledger : PrivacyLedger, default=None
        Pays for each fit, in place of one that is open (``with ledger:``). If too little is left,
        BudgetExceededError is raised before any data is touched.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None draws noise from a cryptographic generator keyed by the operating system, new
        at each fit. Everything else is for tests: the noise can be drawn again.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Released coefficients.
    intercept_ : float
        Released intercept.
    gram_ : ndarray of shape (d, d)
        X'X of the clipped rows with noise, the column of ones being the last one if there is
        an intercept (its square is n_samples, without noise). Only for covariance
        perturbation; need not be positive semi-definite.
    moment_ : ndarray of shape (d,)
        X'y with noise, likewise.
    privacy_ : PrivacyLoss
        What the fit spent.
    n_samples_ : int
        Number of records, which is public.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    References
    ----------
    Ligett, Neel, Roth, Waggoner and Wu, *Accuracy First: Selecting a Differential Privacy
    Level for Accuracy-Constrained ERM*, NeurIPS 2017, section 3.1. The calibration and the
    reading of the noisy matrix differ from theirs; the page "Ridge regression" has statement
    and proof.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from dpselect import DPRidge
    >>> X, y = make_regression(30_000, 5, noise=5.0, random_state=0)
    >>> model = DPRidge(epsilon=1.0, norm="l2", data_norm=3.0, target_bound=300.0)
    >>> model = model.fit(X[:20_000], y[:20_000])
    >>> model.privacy_.epsilon
    1.0
    >>> bool(model.score(X[20_000:], y[20_000:]) > 0.9)  # other records
    True
    >>> grid = [model.post_process(alpha=alpha) for alpha in (0.001, 0.1)]  # costs nothing more
    >>> bool(abs(grid[1].coef_).max() < abs(grid[0].coef_).max())
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        alpha: float = 0.01,
        perturbation: Literal["covariance", "objective", "output"] = "covariance",
        delta: float = 0.0,
        norm: Literal["l1", "l2"] = "l1",
        data_norm: float = 1.0,
        target_bound: float = 1.0,
        coef_bound: float | None = None,
        fit_intercept: bool = True,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.perturbation = perturbation
        self.delta = delta
        self.norm = norm
        self.data_norm = data_norm
        self.target_bound = target_bound
        self.coef_bound = coef_bound
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.random_state = random_state

    @property
    def default_scoring(self) -> ClippedSquaredErrorScore:
        """ClippedSquaredErrorScore : Errors count up to that of predicting 0 for the largest target."""
        return ClippedSquaredErrorScore(bound=float(self.target_bound) ** 2)

    @property
    def post_processing_params(self) -> tuple[str, ...]:
        """tuple of str : Parameters that may change after the release at no further cost."""
        return ("alpha",) if self.perturbation == "covariance" else ()

    @remembers_records
    @all_or_nothing
    def fit(self, X: MatrixLike, y: npt.ArrayLike, **fit_params: Any) -> Self:
        """Train and release a model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows longer than `data_norm` are scaled down to it.
        y : array-like of shape (n_samples,)
            Targets; clipped to `target_bound`.
        **fit_params : dict
            None is supported. `sample_weight` would change how far one record can move
            the model, and is refused.

        Returns
        -------
        self : object
            The fitted model; `privacy_` states what was spent.

        Raises
        ------
        TypeError
            If `fit_params` are given.
        ValueError
            If a parameter is out of range, or X or y is malformed.

        Warns
        -----
        SeededNoiseWarning
            If `random_state` is not None.
        """
        refuse_fit_params(self, fit_params)
        self._check_parameters()
        what = "Gram matrix and moments" if self.perturbation == "covariance" else "coefficients"
        what = f"{what} by {self.perturbation} perturbation"
        loss = release_loss(self, what, self.delta)
        with charged(self, loss):
            self.fit_batch([self], X, y)
            self.privacy_ = loss
        return self

    @staticmethod
    def fit_batch(
        estimators: Sequence["DPRidge"],
        X: MatrixLike,
        y: npt.ArrayLike,
    ) -> Sequence["DPRidge"]:
        """Fit several models on the same rows; those that see them alike share one pass.

        Nothing is recorded in `privacy_`: a search uses this for models that it never
        releases.

        Parameters
        ----------
        estimators : list of DPRidge
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        list of DPRidge
            The same objects, fitted.
        """
        alike: dict[Any, list[Any]] = {}
        for estimator in estimators:
            alike.setdefault(tuple(estimator._bounds().values()), []).append(estimator)
        for group in alike.values():
            leader = group[0]
            X_rows, targets = regression_records(leader, X, y)
            sums = {}
            for estimator in group:
                bits = estimator._entry_bits(*X_rows.shape)
                if bits not in sums:
                    sums[bits] = outer_sums(X_rows, targets, bits, **leader._bounds())
                estimator._publish(sums[bits], X_rows.shape, leader)
        return estimators

    @staticmethod
    def split_scores(
        estimators: Sequence["DPRidge"],
        score: ClippedSquaredErrorScore,
        X: MatrixLike,
        y: npt.ArrayLike,
        parts: Parts,
    ) -> FloatArray:
        """Train on each split's training part and score on its other part, in two passes.

        Parameters
        ----------
        estimators : list of DPRidge
            Left with the coefficients of the last split.
        score : ClippedSquaredErrorScore
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        parts : Parts
            Of J splits.

        Returns
        -------
        ndarray of shape (J, k)
            Exact functions of the records, not released.
        """
        return ridge_split_scores(estimators, score, X, y, parts)

    def _publish(self, sums, shape, leader, decomposed=None):
        """Turn the exact sums into what is released, and nothing else."""
        n_samples, n_features = shape
        drawn = self.unit_noise(n_features)
        # of an earlier fit, whose loss `privacy_` no longer states
        for name in ("gram_", "moment_", "_reading"):
            vars(self).pop(name, None)
        if self.perturbation == "covariance":
            noise = self._statistic_noise(n_features)
            if not self._on_lattice():
                drawn = noise.scales(n_features) * drawn
            noisy = sums.noisy(n_features, partial(release, noise=drawn, step=noise.step))
            noisy *= self._units(n_features)
            gram, moment = noisy[:-1, :-1].copy(), noisy[:-1, -1].copy()
            # rho^2 n^2 ||theta||^2 is about the expected squared length of (noise theta)
            rho = noise.spread * float(self.data_norm) ** 2 * math.sqrt(len(gram)) / n_samples
            self.gram_, self.moment_ = gram, moment
            self._reading = Reading.of(gram / n_samples, moment / n_samples, rho)
            theta = self._read()
        else:
            sums = sums.values * self._units(n_features)
            theta = self._minimise(sums, n_samples, drawn, decomposed)
        self.n_samples_ = n_samples
        self.n_features_in_ = n_features
        if hasattr(leader, "feature_names_in_"):
            self.feature_names_in_ = leader.feature_names_in_
        self._set_coefficients(theta)

    def _minimise(self, sums, n_samples, unit, decomposed=None):
        """Return the coefficients with noise in the objective or in the result, on the ball.

        `decomposed` is a Reading of the same sums, if there is one already.
        """
        radius, moment = self._ball_radius(), sums[:-1, -1] / n_samples
        s = self._noise(n_samples, len(moment))
        if self.perturbation == "objective":
            moment, unit = moment - s.linear_scale * unit[0], unit[1]
        if decomposed is None:
            decomposed = Reading.of(sums[:-1, :-1] / n_samples, moment, 0.0)
        theta = decomposed.with_moment(moment).minimiser(s.mu, radius)
        theta = release(theta, s.output_scale * unit, s.step)
        # the ball is public, and no noise leads out of it to a better model
        return theta * (radius / max(radius, length_of(theta)))

    def _read(self):
        """Compute the coefficients from the released statistics; touches nothing else."""
        return self._reading.minimiser(float(self.alpha), self._ball_radius())

    def _set_coefficients(self, theta):
        self.coef_ = theta[:-1].copy() if self.fit_intercept else theta
        self.intercept_ = float(theta[-1]) if self.fit_intercept else 0.0

    def post_process(self, **params: Any) -> Self:
        """Return the model with another `alpha`, from the same release and at no cost.

        Parameters
        ----------
        **params : dict
            Parameters named in `post_processing_params`.

        Returns
        -------
        DPRidge
            A new fitted model with the same `gram_`, `moment_` and `privacy_`. No data is
            touched.

        Raises
        ------
        ValueError
            If a parameter needs a release of its own, or is out of range.
        """
        check_is_fitted(self)
        free = self.post_processing_params if hasattr(self, "gram_") else ()
        refused = sorted(set(params) - set(free))
        if refused:
            raise ValueError(
                f"{', '.join(refused)} cannot change after this release by {self.perturbation} "
                "perturbation, because its noise was calibrated for it; fit a new model, or "
                'change only alpha with perturbation="covariance".'
            )
        twin = clone(self).set_params(**params)
        twin._check_parameters()
        released = {name: value for name, value in vars(self).items() if name not in twin.__dict__}
        vars(twin).update(released)
        share_records(self, twin)
        if hasattr(twin, "gram_"):
            twin._set_coefficients(twin._read())
        return twin

    def unit_noise(self, n_features: int) -> FloatArray:
        """Draw the noise of one fit, from `random_state` and public numbers alone.

        Parameters
        ----------
        n_features : int
            Columns of X.

        Returns
        -------
        ndarray of shape (n_entries,), (2, d) or (d,)
            Covariance perturbation: one number for each released sum. For "l1" the very noise
            that is added, in units of `data_norm` and `target_bound`: Laplace variables on a
            grid, so that `epsilon` matters. All else is at unit scale: for "l2" Gaussian
            variables or, with delta = 0, one ball-Laplace vector. Objective
            perturbation: d Laplace variables for "l1" and a ball-Laplace vector for "l2", d
            being `n_features` and one for the intercept; and a ball-Laplace vector that
            hides the solver's residual. Output perturbation: one ball-Laplace vector.
        """
        generator = as_generator(self.random_state)
        d = n_features + bool(self.fit_intercept)
        if self.perturbation == "output":
            return ball_laplace(generator, 1, d)[0]
        if self.perturbation == "objective":
            if self.norm == "l1":
                return np.stack([laplace(generator, d), ball_laplace(generator, 1, d)[0]])
            return ball_laplace(generator, 2, d)
        n_entries = len(released_entries(n_features, d + 1)[0])
        if self._on_lattice():
            noise = self._statistic_noise(n_features)
            return lattice_noise(generator, n_entries, noise.scales(n_features), noise.step)
        if self.norm == "l1":
            return np.zeros(n_entries)
        if self.delta == 0:
            return ball_laplace(generator, 1, n_entries)[0]
        return gaussian(generator, n_entries)

    def stability_certificate(
        self,
        score: ClippedSquaredErrorScore,
        n_samples: int,
        n_features: int,
        n_problems: int = 1,
        failure_probability: float | None = None,
    ) -> Certificate:
        """Bound how far one record moves a score of this model at its draw.

        Parameters
        ----------
        score : ClippedSquaredErrorScore
        n_samples : int
            Training records n.
        n_features : int
            Columns of X.
        n_problems : int, default=1
            Ignored: a regression is one problem.
        failure_probability : float, default=None
            Ignored: the bound holds for every draw.

        Returns
        -------
        Certificate

        Raises
        ------
        CertificateError
            If no certificate exists: for another score, and for covariance perturbation.
        """
        self._check_parameters()
        self._certified(score)
        if self.perturbation == "covariance":
            raise CertificateError(
                f"No certificate exists for {type(self).__name__}(perturbation='covariance') with "
                f"{type(score).__name__}, because one record can turn the solution of a "
                'noisy system from one side of the ball to the other; use perturbation="objective" '
                'or "output", or search over alpha alone, for which one release and post_process '
                "serve the whole grid."
            )
        s = self._noise(n_samples, n_features + bool(self.fit_intercept))
        # sums over a part are rounded as those over all records are, so a record outside of it may
        # move a coefficient to the next multiple of the step, too
        residual = 2 * s.tau / s.mu + s.rounding
        moved = self._gradient_change("l2") / n_samples / s.mu + residual
        slope = 2 * math.sqrt(score.bound) * self._row_radius()
        training, apart = (min(score.bound, slope * far) for far in (moved, residual))
        return Certificate(float(training), float(score.bound), float(apart))

    def accuracy_form(self) -> RidgeAccuracy:
        """Return what is known of the accuracy of this estimator's models, for accuracy first.

        Returns
        -------
        RidgeAccuracy
        """
        return RidgeAccuracy(self)

    def risk_bound(
        self,
        n_samples: int,
        n_features: int,
        n_problems: int = 1,
        reach: float = 1.0,
    ) -> RiskBound:
        """Return public numbers about the least risk over a ball.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of X.
        n_problems : int, default=1
            Ignored: a regression is one problem.
        reach : float, default=1.0
            Largest prediction of a model in the ball, in units of `target_bound`.

        Returns
        -------
        RiskBound
            For training with the model's `epsilon`.
        """
        self._check_parameters()
        return ridge_risk_bound(self, n_samples, n_features, reach)

    @staticmethod
    def optimal_values(
        estimators: Sequence["DPRidge"],
        X: MatrixLike,
        y: npt.ArrayLike,
        reach: float,
    ) -> FloatArray:
        """Return the least risks over the balls; exact functions of the records, not released.

        Parameters
        ----------
        estimators : list of DPRidge
            That see the same rows. They are not fitted.
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        reach : float
            As in :meth:`risk_bound`.

        Returns
        -------
        ndarray of shape (k,)
        """
        for estimator in estimators:
            estimator._check_parameters()
        return ridge_optimal_values(estimators, X, y, reach)

    def _certified(self, score):
        if not isinstance(score, ClippedSquaredErrorScore):
            raise CertificateError(
                f"No certificate exists for {type(self).__name__}(perturbation="
                f"{self.perturbation!r}) with {type(score).__name__}; use "
                "ClippedSquaredErrorScore of dpselect.metrics."
            )

    def _statistic_noise(self, n_features):
        return statistic_noise(
            n_features, fit_intercept=self.fit_intercept, norm=self.norm,
            # low-precision numbers would weaken the noise
            epsilon=float(self.epsilon), delta=float(self.delta),
        )

    def _on_lattice(self):
        """Tell whether sums are released on a lattice; without noise there is none."""
        return self.perturbation == "covariance" and self.norm == "l1" and self.epsilon < math.inf

    def _entry_bits(self, n_samples, n_features):
        """Return the bits of a record's entries, None if they are not truncated."""
        if not self._on_lattice():
            return None
        noise = self._statistic_noise(n_features)
        return entry_bits(n_samples, len(noise.weights), noise.step)

    def _units(self, n_features):
        bounds = self._bounds()
        return units(
            n_features, bounds["data_norm"], bounds["target_bound"], bounds["fit_intercept"]
        )

    def _bounds(self):
        # numbers of low precision would round records and noise
        return {"norm": self.norm, "data_norm": float(self.data_norm),
                "target_bound": float(self.target_bound),
                "fit_intercept": bool(self.fit_intercept)}

    def _noise(self, n_samples, dimension):
        """Return the Perturbation of noise in the objective or in the result."""
        objective = self.perturbation == "objective"
        bounds = {"row_radius": self._row_radius()} if objective else {}
        noise = (objective_noise if objective else output_noise)(
            n_samples=n_samples, dimension=dimension, alpha=float(self.alpha),
            change=self._gradient_change(self.norm if objective else "l2"),
            epsilon=float(self.epsilon), **bounds,
        )
        if not math.isfinite(noise.mu + noise.linear_scale + noise.output_scale):
            raise ValueError(
                f"alpha={self.alpha!r} and epsilon={self.epsilon!r} with these bounds need noise "
                'beyond the range of float64; write a larger alpha, or perturbation="covariance".'
            )
        return noise

    def _gradient_change(self, norm):
        return gradient_change(
            norm, float(self.data_norm), float(self.fit_intercept), float(self.target_bound),
            self._ball_radius(),
        )

    def _row_radius(self):
        # the l1 norm bounds the l2 norm
        return math.hypot(self.data_norm, bool(self.fit_intercept))

    def _ball_radius(self):
        bound = None if self.coef_bound is None else float(self.coef_bound)
        return ball_radius(float(self.alpha), float(self.target_bound), bound)

    def _check_parameters(self):
        check_parameters(self)

    def predict(self, X: MatrixLike) -> FloatArray:
        """Predict the targets of rows, clipped as the training rows were.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = numeric_rows(self, X, lazily=True, accept_sparse="csr", reset=False)
        # all that goes to where the rows are
        norm, data_norm = self.norm, float(self.data_norm)
        coef, intercept = self.coef_, self.intercept_

        def values(rows):
            # clipped first: the product of a long row could overflow
            clipped = rows * (data_norm * clip_factor(rows, norm, data_norm))
            return clipped @ coef + intercept

        return block_map(values, X)

    @warns_of_training_records
    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the coefficient of determination R^2 of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Records that took no part in training.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float

        Warns
        -----
        PrivacyLeakWarning
            If `X` is what the model was trained on, or a part of it.
        """
        return r_squared(self.predict(X), y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # on small data the noise of privacy can be larger than the signal
        tags.regressor_tags.poor_score = True
        return tags

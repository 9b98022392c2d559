"""What private linear classifiers share: validate, draw, solve, record the loss."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..atomic import all_or_nothing
from ..certificates import Certificate, RiskBound, margin_certificate
from ..estimator import PrivacyHTMLMixin, release_loss
from ..exceptions import CertificateError
from ..ledger import charged
from ..metrics import MarginScore
from ..metrics.plain import accuracy
from ..noise import as_generator, ball_laplace, check_random_state, laplace
from ..noise.tails import noise_length
from ..records import check_classes, numeric_rows, refuse_fit_params
from ..rows import Parts, block_map
from ..training_records import remembers_records, warns_of_training_records
from ..type_aliases import Array, FloatArray, MatrixLike
from ..validation import (
    SMALLEST_BOUND,
    check_choice,
    check_epsilon,
    check_flag,
    check_n_jobs,
    check_number,
)
from .accuracy import LinearAccuracy
from .calibration import calibrate, norm_bound, public_alpha
from .design import Design
from .risk_bound import linear_optimal_values, linear_risk_bound
from .sweep import alike, fit_alike, scores_alike

TOL = 1e-10


class DPLinearClassifier(PrivacyHTMLMixin, ClassifierMixin, BaseEstimator):
    """Base of linear classifiers trained by output or objective perturbation.

    A subclass has the parameters of :class:`DPLogisticRegression` and says which margin
    loss it minimises.
    """

    default_scoring = "brier"

    @abstractmethod
    def _loss(self):
        """Return the MarginLoss of this classifier."""

    @remembers_records
    @all_or_nothing
    def fit(self, X: MatrixLike, y: npt.ArrayLike, **fit_params: Any) -> Self:
        """Train and release a classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows longer than `data_norm` are scaled down to it.
        y : array-like of shape (n_samples,)
            Labels, all in `classes`.
        **fit_params : dict
            None is supported. `sample_weight` would change how far one record can move
            the model, and is refused.

        Returns
        -------
        self : object
            The fitted classifier; `privacy_` states what was spent.

        Raises
        ------
        TypeError
            If `fit_params` are given.
        ValueError
            If a parameter is out of range, X or y is malformed, or only one class is
            known.

        Warns
        -----
        PrivacyLeakWarning
            If `classes` is None: the labels are then learned from `y`.
        SeededNoiseWarning
            If `random_state` is not None.
        """
        refuse_fit_params(self, fit_params)
        self._check_parameters()
        loss = release_loss(self, f"coefficients by {self.perturbation} perturbation")
        with charged(self, loss):
            self.fit_batch([self], X, y)
            self.privacy_ = loss
        return self

    @staticmethod
    def fit_batch(
        estimators: Sequence["DPLinearClassifier"],
        X: MatrixLike,
        y: npt.ArrayLike,
    ) -> Sequence["DPLinearClassifier"]:
        """Fit several classifiers on the same rows; those that see them alike are solved together.

        Nothing is recorded in `privacy_`: a search uses this for models that it never
        releases.

        Parameters
        ----------
        estimators : list of DPLinearClassifier
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        list of DPLinearClassifier
            The same objects, fitted.
        """
        for group in alike(estimators):
            fit_alike([estimators[i] for i in group], X, y)
        return estimators

    @staticmethod
    def split_scores(
        estimators: Sequence["DPLinearClassifier"],
        score: MarginScore,
        X: MatrixLike,
        y: npt.ArrayLike,
        parts: Parts,
    ) -> FloatArray:
        """Train on each split's training part and score on its other part, in one sweep.

        Parameters
        ----------
        estimators : list of DPLinearClassifier
            They are not fitted.
        score : MarginScore
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        parts : Parts
            Of J splits.

        Returns
        -------
        ndarray of shape (J, k)
            Exact functions of the records, not released.
        """
        scores = np.empty((len(parts.test_sizes), len(estimators)))
        for group in alike(estimators):
            some = [estimators[i] for i in group]
            scores[:, group] = scores_alike(some, score, X, y, parts)
        return scores

    def _problem_key(self):
        """What has to agree for problems to be solved together: rows, labels, loss and steps."""
        classes = None if self.classes is None else tuple(np.asarray(self.classes).tolist())
        return (
            type(self), self._loss(), self.norm, self.data_norm, self._constant(), classes,
            self.max_iter, self.n_jobs,
        )

    def _publish(self, w, classes, leader):
        constant = self._constant()
        self.coef_ = w if constant is None else w[:, :-1].copy()
        self.intercept_ = np.zeros(len(w)) if constant is None else constant * w[:, -1]
        self.classes_ = classes
        self.n_features_in_ = leader.n_features_in_
        if hasattr(leader, "feature_names_in_"):
            self.feature_names_in_ = leader.feature_names_in_
        # the public limit: the number of steps that were needed depends on the data
        self.n_iter_ = self.max_iter

    def unit_noise(self, n_features: int, n_problems: int = 1) -> FloatArray:
        """Draw the noise of one fit at unit scale, from `random_state` and public shapes alone.

        Parameters
        ----------
        n_features : int
            Columns of X.
        n_problems : int, default=1
            1 for two classes, otherwise the number of classes.

        Returns
        -------
        ndarray of shape (2, n_problems, d)
            Independent vectors, d being `n_features` and one for the intercept: for the
            objective (ball-Laplace for "l2", independent Laplace variables for "l1"), and
            for what is added to its minimiser (ball-Laplace).
        """
        d = self._dimension(n_features)
        generator = as_generator(self.random_state)
        if self.norm == "l1":
            linear = laplace(generator, (n_problems, d))
            return np.stack([linear, ball_laplace(generator, n_problems, d)])
        return ball_laplace(generator, 2 * n_problems, d).reshape(2, n_problems, d)

    def stability_certificate(
        self,
        score: MarginScore,
        n_samples: int,
        n_features: int,
        n_problems: int = 1,
        failure_probability: float | None = None,
    ) -> Certificate:
        """Bound how far one record moves a score of this classifier at its draw.

        Parameters
        ----------
        score : MarginScore
        n_samples : int
            Training records n.
        n_features : int
            Columns of X.
        n_problems : int, default=1
            1 for two classes, otherwise the number of classes.
        failure_probability : float, default=None
            None bounds the draw that `random_state` gives. A number bounds all draws but
            a share of at most this probability, for planning and for the accounting of
            Chaudhuri and Vinterbo.

        Returns
        -------
        Certificate

        Raises
        ------
        CertificateError
            If no certificate exists for the score.
        """
        self._check_parameters()
        self._certified(score)
        s = self._perturbation(n_samples, n_features, n_problems)
        if failure_probability is None:
            lengths = np.linalg.norm(self.unit_noise(n_features, n_problems), axis=2)
        else:
            d, share = self._dimension(n_features), failure_probability / (2 * n_problems)
            lengths = np.empty((2, n_problems))
            lengths[0] = noise_length(self.norm, d, share)
            lengths[1] = noise_length("l2", d, share)
        residual = 2 * s.tau / s.mu + s.rounding
        movement = 2 * self._radius() / n_samples / s.mu + residual
        norms = norm_bound(self._loss(), s, self._radius(), *lengths)
        return margin_certificate(score, self._radius(), movement, norms, residual)

    def accuracy_form(self) -> LinearAccuracy:
        """Return what is known of the accuracy of this estimator's models, for accuracy first.

        Returns
        -------
        LinearAccuracy
        """
        return LinearAccuracy(self)

    def risk_bound(
        self,
        n_samples: int,
        n_features: int,
        n_problems: int = 1,
        reach: float = 10.0,
    ) -> RiskBound:
        """Return public numbers about the least risk over a ball.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of X.
        n_problems : int, default=1
            1 for two classes, otherwise the number of classes.
        reach : float, default=10.0
            Largest prediction of a model in the ball.

        Returns
        -------
        RiskBound
            For training with the classifier's `epsilon`.
        """
        self._check_parameters()
        return linear_risk_bound(self, n_samples, n_features, n_problems, reach)

    @staticmethod
    def optimal_values(
        estimators: Sequence["DPLinearClassifier"],
        X: MatrixLike,
        y: npt.ArrayLike,
        reach: float,
    ) -> FloatArray:
        """Return the least risks over the balls; exact functions of the records, not released.

        Parameters
        ----------
        estimators : list of DPLinearClassifier
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
        return linear_optimal_values(estimators, X, y, reach)

    def regularisation_cost(self, n_samples: int, n_features: int, n_problems: int = 1) -> float:
        """Return what the public rule for `alpha` minimises over a grid.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of X.
        n_problems : int, default=1
            1 for two classes, otherwise the number of classes.

        Returns
        -------
        float
            An eighth of the squared length of the noise over mu, and 12.5 mu / R^2 for the bias.
            A rule for choosing; no bound.
        """
        self._check_parameters()
        s = self._perturbation(n_samples, n_features, n_problems)
        d, R = self._dimension(n_features), self._radius()
        squared_length = 2 * d if self.norm == "l1" else d * (d + 1)
        if self.perturbation == "objective":
            noise = s.linear_scale**2 * squared_length / (8 * s.mu)
        else:
            noise = s.output_scale**2 * d * (d + 1) * s.mu / 8
        return float(noise + 12.5 * s.mu / R**2)

    def _certified(self, score):
        if not isinstance(score, MarginScore):
            raise CertificateError(
                f"No certificate exists for {type(self).__name__} with {type(score).__name__}; "
                "use a score of margins, such as 'brier' or 'ramp'."
            )

    def _perturbation(self, n_samples, n_features, n_problems):
        d, R = self._dimension(n_features), self._radius()
        noise_radius, length = R, d
        if self.norm == "l1" and self.perturbation == "objective":
            noise_radius = float(self.data_norm) + (self._constant() or 0.0)
            length = math.sqrt(2 * d) * noise_radius / R
        # low-precision numbers would weaken the noise
        epsilon = float(self.epsilon) / n_problems
        alpha = (
            public_alpha(n_samples, length, R, epsilon) if self._automatic_alpha()
            else float(self.alpha)
        )
        return calibrate(
            self.perturbation, self._loss(), n_samples=n_samples, dimension=d, radius=R,
            alpha=alpha, epsilon=epsilon, tol=float(self.tol), noise_radius=noise_radius,
        )

    def _dimension(self, n_features):
        return n_features + bool(self.fit_intercept)

    def _constant(self):
        return float(self.intercept_scaling) if self.fit_intercept else None

    def _radius(self):
        # the l1 norm bounds the l2 norm
        return math.hypot(float(self.data_norm), self._constant() or 0.0)

    def _automatic_alpha(self):
        return isinstance(self.alpha, str) and self.alpha == "auto"

    def _check_parameters(self):
        check_epsilon(self.epsilon)
        if not self._automatic_alpha():
            check_number(
                "alpha", self.alpha,
                why="the noise is proportional to 1 / alpha, and without regularisation one record "
                "can move the model without limit",
                instead='write a number greater than 0, or "auto"',
            )
        check_choice(
            "perturbation", self.perturbation, ("objective", "output"),
            why="only these have a proof",
        )
        check_choice("norm", self.norm, ("l2", "l1"), why="only these norms are known here")
        check_number(
            "data_norm", self.data_norm, low=SMALLEST_BOUND, low_included=True,
            why="the noise is proportional to the largest norm that a row may have, and squares of "
            "smaller numbers are 0 in float64",
            instead="write the norm to which rows are scaled down, such as 1.0",
        )
        check_flag(
            "fit_intercept", self.fit_intercept, why="the noise depends on the number of columns"
        )
        if self.fit_intercept:
            check_number(
                "intercept_scaling", self.intercept_scaling,
                why="it is the constant column from which the intercept is learned",
                instead="write a number greater than 0, or fit_intercept=False",
            )
        check_number(
            "tol", self.tol, high=TOL, high_included=True,
            why=f"the noise is calibrated for a solver that is at least as exact as {TOL}",
            instead=f"write {TOL} or a smaller number",
        )
        check_number(
            "max_iter", self.max_iter, integer=True, low_included=True,
            why="it counts steps of the solver", instead="write an integer of 0 or more, such as 100",
        )
        check_n_jobs(self.n_jobs)
        check_classes(self.classes)
        check_random_state(self.random_state)

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return the confidence scores w.x + b of rows, clipped as the training rows were.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class; with more than two classes, one column each.
        """
        check_is_fitted(self)
        X = numeric_rows(self, X, lazily=True, accept_sparse="csr", reset=False)
        rows = Design(X, self.data_norm, None, self.n_jobs, self.norm)
        decision = rows.dot(self.coef_.T) + self.intercept_
        return decision[:, 0] if decision.shape[1] == 1 else decision

    def predict(self, X: MatrixLike) -> Array:
        """Predict the class of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decisions = self.decision_function(X)
        classes = self.classes_

        def labels(decision):
            if decision.ndim == 1:
                return classes[(decision > 0).astype(int)]
            return classes[decision.argmax(axis=1)]

        return block_map(labels, decisions)

    @warns_of_training_records
    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the share of labels that are predicted right.

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
            If `X` is what the classifier was trained on, or a part of it.
        """
        return accuracy(self.predict(X), y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # on small data the noise of privacy can be larger than the signal
        tags.classifier_tags.poor_score = True
        return tags

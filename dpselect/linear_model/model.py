"""The common part of linear models trained by output or objective perturbation."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..base.certificates import RiskBound
from ..base.estimator import PrivateEstimator
from ..ledger import PrivacyLedger
from ..noise.generators import RandomState
from ..records.public_shape import PublicShape
from ..records.records import (
    Weighted,
    check_weights,
    check_weights_are_bounded,
    numeric_rows,
    split_weights,
)
from ..utils.parameters import with_parameters, with_values
from ..utils.type_aliases import MatrixLike
from ..utils.validation import check_n_jobs, flag, number, one_of, size, unless
from .accuracy import LinearAccuracy
from .design import design_and_targets, largest_norm
from .linear_noise import LinearNoise, LinearProblem
from .losses import WeightedLoss
from .norms_and_rates import LearnsNormsMixin
from .sklearn_models import plain_model
from .sweep import optimal_values, scores_of_splits, solve
from .tolerance import TOL
from .weights import Weights

_check_intercept_scaling = size(
    why="it is the constant column from which the intercept is learned, and its square has to be a "
    "number of float64",
    instead="write a number from 1e-100 to 1e100, such as 1.0, or fit_intercept=False",
)


@with_parameters
class LinearModel(LearnsNormsMixin, PrivateEstimator):
    """Base of linear models: a subclass adds its loss, and the parameters of the loss."""

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    alpha: float | Literal["auto"] = "auto"
    perturbation: Literal["objective", "output"] = "objective"
    norm: Literal["auto", "l2", "l1"] = "auto"
    data_norm: float | Literal["auto"] = 1.0
    data_norm_l1: float | Literal["auto"] | None = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    max_sample_weight: float | None = None
    tol: float = TOL
    max_iter: int = 100
    n_jobs: int | None = None
    ledger: PrivacyLedger | None = None
    random_state: RandomState = None

    reads: ClassVar = {"lazily": True, "accept_sparse": "csr"}
    takes_groups: ClassVar = True
    ruled_param: ClassVar = "alpha"
    zero_without_noise: ClassVar = ("alpha",)
    parameter_checks: ClassVar = {
        "alpha": unless(
            "auto",
            size(
                why="the noise is proportional to 1 / alpha, and without regularisation one record "
                "can move the model without limit",
                instead='write a number from 1e-100 to 1e100, such as 0.01, or "auto"',
            ),
        ),
        "perturbation": one_of("objective", "output", why="only these have a proof"),
        "delta": number(
            low_included=True,
            high=1.0,
            why="it is a probability",
            instead="write 0.0, or a number such as 1e-6",
        ),
        "norm": one_of("auto", "l2", "l1", why="only for these norms is there noise with a proof"),
        "data_norm": unless(
            "auto",
            size(
                why="the noise is proportional to the largest norm that a row may have, whose square "
                "has to be a number of float64",
                instead='write the l2 norm to which rows are scaled down, such as 1.0, or "auto"',
            ),
        ),
        "data_norm_l1": unless(
            None,
            unless(
                "auto",
                size(
                    why="the noise is proportional to the largest l1 norm that a row may have, whose "
                    "square has to be a number of float64",
                    instead="write the l1 norm to which rows are scaled down, such as 1.0, "
                    '"auto" or None',
                ),
            ),
        ),
        "fit_intercept": flag(why="the noise depends on the number of columns"),
        "max_sample_weight": unless(
            None,
            size(
                why="the noise is proportional to the largest weight that a record may have",
                instead="write a number that few weights exceed, from knowledge of how they are made, "
                "or None for records that all count alike",
            ),
        ),
        "tol": number(
            high=TOL,
            high_included=True,
            why=f"the noise is calibrated for a solver that is at least as exact as {TOL}",
            instead=f"write {TOL} or a smaller number",
        ),
        "max_iter": number(
            integer=True,
            low_included=True,
            why="it counts steps of the solver",
            instead="write an integer of 0 or more, such as 100",
        ),
    }
    split_scores = staticmethod(scores_of_splits)
    optimal_values = staticmethod(optimal_values)

    @abstractmethod
    def _loss(self):
        """Return the Loss that is minimised, for a record of weight 1."""

    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        groups: npt.ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train and release.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Scaled down to the public norms, in training and in prediction.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each record counts, 0 or more; clipped to `max_sample_weight`, without which it
            is refused. Part of the record: a neighbour may have another weight in one record, and in
            one only. So each weight must come from its own record, and from what is public: weights
            that were divided by their sum, or made from the errors of a model on these records, are
            functions of all of them, and the stated loss does not cover that. None weighs all by 1.
        groups : array-like of shape (n_samples,), default=None
            The id of the person whose row it is, a number or a text; it is not kept. Neighbours then
            differ in all rows of one person, however many these are, and public is n, the number of
            persons. A person counts as one record, the mean of their rows, so the noise is that of n
            records. None if each row is a person.
        **fit_params : dict
            None is supported.

        Returns
        -------
        self : object
            The fitted estimator; `privacy_` states what was spent.

        Raises
        ------
        BudgetExceededError
            If the ledger has less left; no record is read.
        TypeError
            If `fit_params` are given.
        ValueError
            If a parameter is out of range, or X, y, `sample_weight` or `groups` is malformed.

        Warns
        -----
        PrivacyLeakWarning
            If the labels are learned from `y`, because `classes` is None, or if mlflow's autologging
            records the fit.
        SeededNoiseWarning
            If `random_state` is not None.
        UserWarning
            If, by public numbers, noise hides most of what the model could learn.

        Examples
        --------
        In a survey each third person of a town was asked, and each person of a village:

        >>> import numpy as np
        >>> from dpselect import DPLogisticRegression
        >>> rng = np.random.default_rng(0)
        >>> X, town = rng.uniform(-0.7, 0.7, size=(1000, 2)), rng.integers(2, size=1000)
        >>> y = (X[:, 0] > 0.3 * town).astype(int)
        >>> model = DPLogisticRegression(classes=[0, 1], max_sample_weight=3.0)
        >>> model.fit(X, y, sample_weight=np.where(town, 3.0, 1.0)).privacy_.epsilon
        1.0

        In a hospital, people came more than once:

        >>> person = rng.integers(100, size=1000)
        >>> model = DPLogisticRegression(classes=[0, 1])
        >>> print(model.fit(X, y, groups=person).privacy_)
        (epsilon = 1, delta = 0) differential privacy, adjacency: replace all rows of one person
          epsilon 1: DPLogisticRegression: coefficients by objective perturbation
        """
        if sample_weight is not None:
            self.check_takes_weights()
            y = Weighted(y, sample_weight)
        return super().fit(X, y, groups=groups, **fit_params)

    def check_takes_weights(self) -> None:
        """Refuse weights of records if their bound is not given.

        Raises
        ------
        ValueError
        """
        check_weights_are_bounded(type(self).__name__, self.max_sample_weight, "the model")

    def _check_records(self, X, y):
        y, weight = split_weights(y)
        records = super()._check_records(X, y)
        if weight is None:
            return records
        self.check_takes_weights()
        return replace(records, weight=check_weights(weight, records.X))

    def _check_parameters(self):
        super()._check_parameters()
        if self.fit_intercept:
            _check_intercept_scaling("intercept_scaling", self.intercept_scaling)
        check_n_jobs(self.n_jobs)
        rate = getattr(self, "base_rate", None)
        if rate is not None and not isinstance(rate, str) and not self.fit_intercept:
            raise ValueError(
                "base_rate is given with fit_intercept=False, but it is from there that the intercept "
                "counts; write fit_intercept=True, or base_rate=None."
            )
        if self.delta > 0 and self.norm == "l1":
            raise ValueError(
                f"delta={self.delta!r} is not allowed with norm='l1', because its noise gives pure "
                "privacy and would not use it; write delta=0.0, or norm='auto'."
            )

    def problem(self, epsilon: float | None = None) -> LinearProblem:
        """Return the noise-free problem, in public numbers.

        Parameters
        ----------
        epsilon : float, default=None
            Of the fit, since a loss may depend on whether there is noise; None is the estimator's.

        Returns
        -------
        LinearProblem
        """
        if epsilon is not None and epsilon != self.epsilon:
            return with_values(self, epsilon=float(epsilon)).problem()
        self._refuse_unknown()
        classes = getattr(self, "classes", None)
        classes = None if classes is None else tuple(np.asarray(classes).tolist())
        weights = Weights.of(getattr(self, "class_weight", None), self.max_sample_weight, classes)
        loss = self._loss()
        return LinearProblem(
            type(self),
            loss if weights is None else WeightedLoss(loss, weights.largest),
            weights,
            self.norm,
            float(self.data_norm),
            math.inf if self.data_norm_l1 is None else float(self.data_norm_l1),
            float(self.intercept_scaling) if self.fit_intercept else None,
            classes,
            float(self.tol),
            self.max_iter,
            self.n_jobs,
            self._offsets(),
            self._shares(),
            float(self.delta),
        )

    def _offsets(self):
        """Return the public intercepts from which the penalty counts."""
        return ()

    def _shares(self):
        """Return the shares of the positive classes, if the offsets are those of other shares."""
        return ()

    def _what(self):
        return f"coefficients by {self.perturbation} perturbation"

    def _calibration(self, shape, epsilon):
        return LinearNoise.of(self.problem(epsilon), shape, epsilon, self.perturbation, self.alpha)

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        problem = self.problem(epsilon)
        law = problem.noise_law(self.perturbation, epsilon, n_features, n_problems)
        return problem.standard_noise(generator, law, n_features, n_problems)

    def _release(self, records, calibration, noise):
        if calibration.epsilon == math.inf:
            # without privacy nothing depends on bounds, nor does the accuracy of the solver
            alpha = calibration.alpha if isinstance(self.alpha, str) else self.alpha
            farthest = calibration.problem.farthest(records.y)
            calibration = calibration.at_bounds(largest_norm(records.X), farthest, alpha)
        ((w,),) = solve([[calibration]], [noise], *design_and_targets(calibration.problem, records))
        return calibration.problem.attributes(w)

    def accuracy_form(self) -> LinearAccuracy:
        """Return the AccuracyForm of this estimator, for accuracy first.

        Returns
        -------
        LinearAccuracy
        """
        self._check_parameters()
        return LinearAccuracy(self)

    def risk_bound(
        self,
        n_samples: int,
        n_features: int,
        n_problems: int = 1,
        reach: float = 10.0,
    ) -> RiskBound:
        """Return public numbers about the least risk over a ball, for training with `epsilon`.

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
        """
        return self.calibration(PublicShape(n_samples, n_features, n_problems)).risk_bound(reach)

    def regularisation_cost(self, n_samples: int, n_features: int, n_problems: int = 1) -> float:
        """Return the cost that the public rule for `alpha` minimises over a grid.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of X.
        n_problems : int, default=1
            1 for two classes, otherwise the number of classes.

        Returns
        -------
        float
            An eighth of the squared length of the noise over mu, and mu / 2 (reach / R)^2 for the
            bias, where a typical model predicts up to `reach`: 5 for margins. The bias counts as much
            again as what the noise in the result costs over it. A rule for choosing; no bound.
        """
        return self.calibration(PublicShape(n_samples, n_features, n_problems)).regularisation_cost()

    def noise_length(self, shape: PublicShape, epsilon: float | None = None) -> float:
        """Return the root mean square length of the noise in the gradient.

        With half of it a model is about as good as with twice as many records.

        Parameters
        ----------
        shape : PublicShape
        epsilon : float, default=None
            Privacy loss of the fit; None is the estimator's.

        Returns
        -------
        float
            Of each one-vs-rest problem. A function of public numbers alone.

        Examples
        --------
        >>> from dpselect import DPLogisticRegression
        >>> from dpselect.records import PublicShape
        >>> shape = PublicShape(n_samples=10_000, n_features=50)
        >>> models = [DPLogisticRegression(delta=delta) for delta in (0.0, 1e-6)]
        >>> pure, gaussian = [model.noise_length(shape, 1.0) for model in models]
        >>> round(pure / gaussian, 1)
        1.6
        """
        return float(self.calibration(shape, epsilon).noise_length)

    def half_widths_before(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        epsilon: float,
        n_samples: int,
        persons: bool = False,
    ) -> dict[Any, float]:
        """Forecast half the widths of 95 % intervals of the coefficients, before there is a fit.

        For plans; :func:`~dpselect.coef_interval_forecast` is for models that were fitted.

        Parameters
        ----------
        X : array-like of shape (k, n_features)
            Invented or public rows.
        y : array-like of shape (k,)
            Their labels or targets.
        epsilon : float
            Privacy loss of the model; the intervals, of other records, have the same.
        n_samples : int
            Number of records, or persons, that train; as many others are for the intervals.
        persons : bool, default=False
            Whether records are persons with any number of rows.

        Returns
        -------
        dict
            From the name of each coefficient to half the width; NaN where nothing would be known.

        Raises
        ------
        ValueError
            If so few records say nothing of the coefficients, whatever they are.

        Examples
        --------
        >>> import numpy as np
        >>> from dpselect import DPLogisticRegression
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.uniform(-0.7, 0.7, size=(1000, 2)), rng.integers(2, size=1000)
        >>> model = DPLogisticRegression(classes=[0, 1])
        >>> widths = [model.half_widths_before(X, y, 1.0, n)[0] for n in (10_000, 100_000)]
        >>> bool(widths[1] < widths[0])
        True
        """
        from .coefficients import half_widths_before  # which imports this module

        return half_widths_before(self, X, y, epsilon, n_samples, persons)

    def to_sklearn(self) -> Pipeline:
        """Return an equal model of scikit-learn alone: steps that clip rows, and a linear model.

        Returns
        -------
        sklearn.pipeline.Pipeline
            The last step has `coef_` and `intercept_`, and sees clipped rows. With a largest derivative
            below 1 it is a StackingClassifier of a model that has them, without `predict_log_proba`.

        Raises
        ------
        ValueError
            If the probabilities of more than two classes would not be equal: of some row all of them
            may be too small for float64.
        """
        return plain_model(self, self.row_bounds(), self._plain_predictor())

    def row_bounds(self) -> dict[str, float]:
        """Return the norms to which a fitted model scales rows down.

        Returns
        -------
        dict
            From "l2", "l1" or both to the largest norm.
        """
        check_is_fitted(self)
        return self._with_values().problem().design(np.empty((0, self.n_features_in_))).bounds

    def _plain_predictor(self):
        """Return an unfitted scikit-learn model with the predictions of this one, given `coef_`."""
        raise TypeError(
            f"{type(self).__name__} does not say which model of scikit-learn predicts as it does, and "
            "another one would be wrong in silence; write its method _plain_predictor."
        )

    def _predictor(self, X, function):
        """Return a function of w.x + b, shape (b, K), of blocks of rows clipped as in training."""
        check_is_fitted(self)
        X = numeric_rows(self, X, **self.reads, reset=False)
        rows = replace(self._with_values().problem(), constant=None).design(X)
        W, b = np.atleast_2d(self.coef_).T, self.intercept_
        return rows.dot(W, lambda z: function(z + b))

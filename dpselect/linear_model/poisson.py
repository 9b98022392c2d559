"""Differentially private Poisson regression."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ..base.estimator import PrivateRegressor
from ..base.learned_numbers import FirstRelease
from ..metrics import PoissonDevianceScore
from ..metrics.exact import d_squared
from ..utils.parameters import with_parameters
from ..utils.type_aliases import FloatArray, MatrixLike
from ..utils.validation import size, unless
from .losses import PoissonLoss
from .model import LinearModel
from .norms_and_rates import MeanCount
from .sklearn_models import exponential_predictor

# logarithm of the smallest predicted rate, which keeps deviances finite
LEAST = -700.0


@with_parameters
class DPPoissonRegressor(LinearModel, PrivateRegressor):
    """Poisson regression of counts, released with differential privacy.

    Minimises half the mean Poisson deviance at the rate exp(w.x + b), plus alpha / 2 times the
    squared norm of the coefficients, the intercept included, with noise in the objective or in
    the result. Counts and rates beyond `target_bound` count as `target_bound`, which gives the
    deviance a bounded derivative.

    Neighbouring data sets differ in one record (row, count and weight). Public are the number of
    records, the columns, and every parameter.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of the fit, greater than 0; ``inf`` fits without noise.
    delta : float, default=0.0
        Probability with which the privacy loss may exceed epsilon; far below 1 / n_samples, such as
        1e-6. Greater than 0, it allows Gaussian noise, whose length grows with sqrt(d) and not with d,
        and which is shorter from 15 to 20 columns on. The
        shortest noise by public numbers is taken. If it is not Gaussian, delta is not spent, unless a
        number is learned first (`data_norm="auto"`).
    alpha : float or "auto", default="auto"
        Strength lambda of the regularisation of the *mean* loss, as in scikit-learn's
        PoissonRegressor. "auto" is a function of public numbers, 2 B R^2 d / (3 n epsilon) for
        the bounds B on counts and R on rows, or 2 B R G sqrt(2 d) / (3 n epsilon) with the noise of
        "l1", up to three times as much where n epsilon / d is below 100, and costs nothing. Output
        perturbation has four times as much. With very many records, and in output perturbation often,
        it is the least at which the noise in the result costs less than bias. With
        ``epsilon=inf`` it may be 0.
    perturbation : {"objective", "output"}, default="objective"
        Where the noise enters. Objective perturbation is the more accurate one on most
        data.
    target_bound : float, default=None
        Larger counts are clipped to it, negative ones to 0, and no larger rate is predicted. Must be
        given, from knowledge of the field and not from the counts: a number that few records exceed,
        as the noise is proportional to it.
    norm : {"auto", "l2", "l1"}, default="auto"
        Norm in which objective perturbation measures rows, and which its noise suits. "l2":
        spherical Laplace noise, about d R long. "l1": independent Laplace variables, about
        sqrt(2 d) G long, R and G being the largest l2 and l1 norm of a row. "auto" takes the
        shorter noise, by public numbers.
    data_norm : float or "auto", default=1.0
        Rows with a larger l2 norm are scaled down to it, in training and in prediction.
        Bring the columns to comparable scales first, by public bounds: see
        :class:`~dpselect.preprocessing.BoundedScaler`. "auto" is for rows of which nobody knows how
        long they are: their median norm is learned first, for a twentieth of `epsilon`.
    data_norm_l1 : float, "auto" or None, default=None
        Rows with a larger l1 norm are scaled down to it, too. Of m categories, one-hot, the norms
        are sqrt(m) and m. None adds no bound: the l1 norm is at most sqrt(n_features) data_norm.
    fit_intercept : bool, default=True
        Whether to learn an intercept.
    intercept_scaling : float, default=1.0
        The constant column s from which it is learned; it is regularised, and the norms
        of a row become R = sqrt(data_norm^2 + s^2) and G = data_norm_l1 + s.
    base_rate : None, float or "auto", default=None
        The mean count, greater than 0, as far as it is known. The penalty of the intercept then counts
        from its logarithm in place of 0, so a model that has learned nothing predicts it. "auto" learns
        it first, for 30 / (n epsilon) of `epsilon` but at least a hundredth, if n epsilon is at least
        100; elsewhere it is None. It is the mean over records, whatever they weigh.
    max_sample_weight : float, default=None
        To which the weights of records are clipped, if `fit` is given a `sample_weight`; None lets it
        refuse them. The loss stays a mean over all records, whatever they weigh, and noise and "auto"
        are multiplied by this number: write one that few weights exceed, from knowledge of how they
        are made.
    tol : float, default=1e-10
        Accuracy of the solver, relative to the norm of a row and the expected noise; at
        most 1e-10. The remaining error is covered by the proof. With many records the solver works
        harder than that, so that little noise hides it.
    max_iter : int, default=100
        Steps of the solver, after which a slower method with a fixed number of steps takes over.
    n_jobs : int, default=None
        Threads that share passes over the rows; results do not depend on it.
    ledger : PrivacyLedger, default=None
        Pays for each fit, in place of one that is open (``with ledger:``). If too little is left,
        BudgetExceededError is raised before any data is touched.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None draws noise from a cryptographic generator keyed by the operating system, new
        at each fit. Everything else is for tests: the noise can be drawn again.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Released coefficients, of rows that are scaled down to their norms: of a longer row the
        prediction is not ``x @ coef_ + intercept_``. :meth:`to_sklearn` has both.
    intercept_ : float
        Released intercept.
    data_norm_, data_norm_l1_ : float
        Released norms, if `data_norm` or `data_norm_l1` is "auto".
    base_rate_ : float or None
        Released mean count, if `base_rate` is "auto"; None if it was not learned.
    privacy_ : PrivacyLoss
        What the fit spent.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.
    n_iter_ : int
        The limit `max_iter`. The number of steps that were needed depends on the data
        and is not released.

    See Also
    --------
    dpselect.StabilityGridSearchCV : Tunes `alpha` and the steps before the model.

    Notes
    -----
    With ``epsilon=float("inf")`` and ``fit_intercept=False`` the coefficients are those of
    scikit-learn's PoissonRegressor, if no row, count or rate of its model is beyond the bounds.
    scikit-learn leaves its intercept without a penalty; the one here is that of a constant
    column. The page "Poisson regression" of the documentation has statement and proof.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk
    Minimization*, JMLR 12, 2011, algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = rng.poisson(np.exp(1 + X[:, 0] - X[:, 1]))
    >>> model = DPPoissonRegressor(epsilon=1.0, target_bound=15.0).fit(X[:10_000], y[:10_000])
    >>> model.privacy_.epsilon
    1.0
    >>> bool(model.score(X[10_000:], y[10_000:]) > 0.2)  # other records
    True
    """

    _: KW_ONLY
    target_bound: float | None = None
    base_rate: float | Literal["auto"] | None = None

    parameter_checks: ClassVar = {
        **LinearModel.parameter_checks,
        "target_bound": size(
            why="the noise is proportional to the largest count that a record may have",
            instead="write a count that few records exceed, from knowledge of the field, such as 10.0",
        ),
        "base_rate": unless(
            None,
            unless(
                "auto",
                size(
                    why="the penalty of the intercept counts from its logarithm",
                    instead='write the mean count that is usual in the field, "auto" or None',
                ),
            ),
        ),
    }

    @property
    def default_scoring(self) -> PoissonDevianceScore:
        """PoissonDevianceScore : Half the deviance, up to `target_bound`."""
        return PoissonDevianceScore(
            self.parameter_checks["target_bound"]("target_bound", self.target_bound)
        )

    def first_releases(self) -> dict[str, FirstRelease]:
        """Return the first releases of the parameters that are "auto", except `alpha`.

        Returns
        -------
        dict
            From the parameter to its FirstRelease.
        """
        mean = {"base_rate": MeanCount(self.target_bound)} if self.base_rate == "auto" else {}
        return super().first_releases() | mean

    def _offsets(self):
        return () if self.base_rate is None else (math.log(self.base_rate),)

    def _loss(self):
        return PoissonLoss(float(self.target_bound))

    def _plain_predictor(self):
        return exponential_predictor(self.n_features_in_, LEAST, self.target_bound)

    def predict(self, X: MatrixLike) -> FloatArray:
        """Predict the rates of rows, clipped as the training rows were; at most `target_bound`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        loss = self._loss()
        return self._predictor(X, lambda z: loss.rate(np.maximum(z[:, 0], LEAST)))

    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return D^2, the fraction of the Poisson deviance that is explained.

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
        return d_squared(self.predict(X), y, sample_weight)

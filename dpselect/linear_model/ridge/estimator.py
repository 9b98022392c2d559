"""Differentially private ridge regression."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ...base.certificates import RiskBound
from ...base.estimator import PrivateRegressor
from ...ledger import PrivacyLedger
from ...metrics import ClippedSquaredErrorScore
from ...noise.generators import RandomState
from ...records.public_shape import PublicShape
from ...records.records import numeric_rows
from ...records.training import share_records
from ...rows import block_map
from ...utils.parameters import as_fitted, keep_params
from ...utils.type_aliases import FloatArray, MatrixLike
from ...utils.validation import (
    SMALLEST_BOUND,
    flag,
    interval,
    middle_and_half,
    number,
    one_of,
    size,
    unless,
)
from ..norms_and_rates import LearnsNormsMixin
from ..sklearn_models import plain_model
from ..sweep import optimal_values, scores_of_splits
from .accuracy import RidgeAccuracy
from .decomposition import Decomposition
from .problem import RidgeNoise, RidgeProblem
from .sums import clipped_rows, outer_sums

_largest_norm = size(
    why="the noise is proportional to the largest norm that a row may have, and has to be a number of "
    "float64",
    instead='write a bound from knowledge of the field, such as 1.0, or "auto"',
)


class DPRidge(LearnsNormsMixin, PrivateRegressor):
    """Ridge regression, released with differential privacy.

    Minimises half the mean squared error plus alpha / 2 times the squared norm of the
    coefficients, the intercept included, over a ball. Targets are clipped to a public range and
    counted from its middle. Either the Gram matrix and the moments
    are released with noise and the coefficients computed from them (covariance
    perturbation), or noise enters the objective, or it is added to the coefficients (output
    perturbation).

    Neighbouring data sets differ in one record (row and target). Public are the number of
    records, the columns, and every parameter.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of the fit, greater than 0; ``inf`` fits without noise.
    target_range : (float, float), default=None
        Targets are clipped to it, in units of the target; between -1e100 and 1e100. Must be given,
        from knowledge of the field and not from the targets: the noise is proportional to its length.
    alpha : float, default=0.01
        Strength of the regularisation of the *mean* loss; scikit-learn's Ridge has
        alpha = n_samples times this one. With ``epsilon=inf`` it may be 0.
    perturbation : {"covariance", "objective", "output"}, default="covariance"
        Where the noise enters. With covariance perturbation other values of `alpha` cost
        nothing more: see :meth:`post_process`. The other two need a large `alpha`; the noise
        of objective perturbation is made of d variables, not d^2.
    delta : float, default=0.0
        Probability with which the privacy loss may exceed epsilon. Greater than 0, it turns
        the noise of covariance perturbation under ``norm="l2"`` into Gaussian noise.
    norm : {"auto", "l2", "l1"}, default="auto"
        Norm in which the noise of covariance and of objective perturbation measures rows. "l2" suits
        dense rows, and "l1" sparse ones such as one-hot columns. "auto" takes the shorter noise, by
        public numbers, and "l2" without `data_norm_l1` or with `delta`.
    data_norm : float or "auto", default=1.0
        Rows with a larger l2 norm are scaled down to it, in training and in prediction.
        Bring the columns to comparable scales first, by public bounds: see
        :class:`~dpselect.preprocessing.BoundedScaler`. "auto" learns the median norm first, for a
        twentieth of `epsilon`.
    data_norm_l1 : float or "auto", default=None
        Rows with a larger l1 norm are scaled down to it, too. Of m categories, one-hot, the norms
        are sqrt(m) and m. None adds no bound: the l1 norm is at most sqrt(n_features) data_norm.
    coef_bound : float, default=None
        Largest l2 norm of the coefficients, the intercept less the middle of the range included. It is
        never more than half the length of the range over 2 sqrt(alpha), within which the minimiser
        lies on any data.
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
        Released coefficients, of rows that are scaled down to their norms: of a longer row the
        prediction is not ``x @ coef_ + intercept_``. :meth:`to_sklearn` has both.
    intercept_ : float
        Released intercept, the middle of the range included.
    gram_ : ndarray of shape (d, d)
        X'X of the clipped rows with noise, the column of ones being the last one if there is
        an intercept (its square is n_samples, without noise). Only for covariance
        perturbation; need not be positive semi-definite.
    moment_ : ndarray of shape (d,)
        X'y with noise, likewise, with targets counted from the middle of the range.
    data_norm_, data_norm_l1_ : float
        Released norms, each if its parameter is "auto".
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
    post-processing of the noisy matrix differ from theirs; the page "Ridge regression" has
    statement and proof.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from dpselect import DPRidge
    >>> X, y = make_regression(30_000, 5, noise=5.0, random_state=0)
    >>> model = DPRidge(epsilon=1.0, target_range=(-300, 300), data_norm=3.0)
    >>> model = model.fit(X[:20_000], y[:20_000])
    >>> model.privacy_.epsilon
    1.0
    >>> bool(model.score(X[20_000:], y[20_000:]) > 0.9)  # other records
    True
    >>> grid = [model.post_process(alpha=alpha) for alpha in (0.001, 0.1)]  # costs nothing more
    >>> bool(abs(grid[1].coef_).max() < abs(grid[0].coef_).max())
    True
    """

    reads = {"lazily": True, "accept_sparse": "csr"}
    reads_once = True
    zero_without_noise = ("alpha",)
    instead_of_weights = "write DPHuberRegressor(max_sample_weight=...), which takes weights"
    keeps = ("_rho", "_decomposed")
    parameter_checks = {
        "alpha": size(
            why="without regularisation one record can move the model without limit",
            instead="write a number from 1e-100 to 1e100, such as 0.01",
        ),
        "perturbation": one_of("covariance", "objective", "output", why="only these have a proof"),
        "norm": one_of("auto", "l1", "l2", why="only for these norms is there noise with a proof"),
        "delta": number(
            low_included=True,
            high=1.0,
            why="it is a probability",
            instead="write 0.0, or a number such as 1e-6",
        ),
        "data_norm": unless("auto", _largest_norm),
        "data_norm_l1": unless(None, unless("auto", _largest_norm)),
        "target_range": interval(
            why="targets are clipped to it, and the noise is proportional to its length",
            instead="write target_range=(low, high), beyond which few targets are by knowledge of the "
            "field, such as (0, 100)",
        ),
        "fit_intercept": flag(why="the noise depends on the number of columns"),
        "coef_bound": unless(
            None,
            size(
                why="it is the radius of the ball in which the coefficients are sought",
                instead="write a number from 1e-100 to 1e100, or None for the public bound",
            ),
        ),
    }
    takes_groups = True
    split_scores = staticmethod(scores_of_splits)
    optimal_values = staticmethod(optimal_values)

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        target_range: tuple[float, float] | None = None,
        alpha: float = 0.01,
        perturbation: Literal["covariance", "objective", "output"] = "covariance",
        delta: float = 0.0,
        norm: Literal["auto", "l2", "l1"] = "auto",
        data_norm: float | Literal["auto"] = 1.0,
        data_norm_l1: float | Literal["auto"] | None = None,
        coef_bound: float | None = None,
        fit_intercept: bool = True,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.target_range = target_range
        self.alpha = alpha
        self.perturbation = perturbation
        self.delta = delta
        self.norm = norm
        self.data_norm = data_norm
        self.data_norm_l1 = data_norm_l1
        self.coef_bound = coef_bound
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.random_state = random_state

    @property
    def default_scoring(self) -> ClippedSquaredErrorScore:
        """ClippedSquaredErrorScore : Errors count up to half the length of `target_range`, squared."""
        self.parameter_checks["target_range"]("target_range", self.target_range)
        return ClippedSquaredErrorScore(bound=middle_and_half(self.target_range)[1] ** 2)

    @property
    def post_processing_params(self) -> tuple[str, ...]:
        """tuple of str : Parameters that may change after the release at no further cost."""
        return ("alpha",) if self.perturbation == "covariance" else ()

    def _check_parameters(self):
        super()._check_parameters()
        if self.delta > 0 and (self.norm == "l1" or self.perturbation != "covariance"):
            raise ValueError(
                f"delta={self.delta!r} is not allowed with norm={self.norm!r} and "
                f"perturbation={self.perturbation!r}, because their noise gives pure privacy and "
                'would not use it; write delta=0.0, or norm="l2" with perturbation="covariance".'
            )

    def problem(self, epsilon: float | None = None) -> RidgeProblem:
        """Return all public numbers of this regression, except epsilon.

        Parameters
        ----------
        epsilon : float, default=None
            As for other linear models; no number follows from it.

        Returns
        -------
        RidgeProblem
        """
        self._refuse_unknown()
        # arithmetic in a low-precision type would round records and noise
        centre, half = middle_and_half(self.target_range)
        return RidgeProblem(
            type(self),
            self.norm,
            float(self.data_norm),
            math.inf if self.data_norm_l1 is None else float(self.data_norm_l1),
            centre,
            half,
            bool(self.fit_intercept),
            max(float(self.alpha), SMALLEST_BOUND),
            None if self.coef_bound is None else float(self.coef_bound),
            self.perturbation,
            float(self.delta),
        )

    def _what(self):
        what = "Gram matrix and moments" if self.perturbation == "covariance" else "coefficients"
        return f"{what} by {self.perturbation} perturbation"

    def _calibration(self, shape, epsilon):
        return RidgeNoise.of(self.problem(), shape, epsilon)

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        return self.problem().standard_noise(generator, n_features, epsilon)

    def _release(self, records, calibration, noise):
        sums = outer_sums(records, calibration.bits, calibration.problem)
        return calibration.released(sums, noise)

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
        free = as_fitted(self).post_processing_params if hasattr(self, "gram_") else ()
        refused = sorted(set(params) - set(free))
        if refused:
            raise ValueError(
                f"{', '.join(refused)} cannot change after this release by {self.perturbation} "
                "perturbation, because its noise was calibrated for it; fit a new model, or "
                'change only alpha with perturbation="covariance".'
            )
        model = clone(as_fitted(self)).set_params(**params)
        model._check_parameters()
        if hasattr(self, "gram_") and not hasattr(self, "_decomposed"):
            n = self.n_samples_
            self._decomposed = Decomposition.of(self.gram_ / n, self.moment_ / n, self._rho)
        released = {name: value for name, value in vars(self).items() if name not in model.__dict__}
        vars(model).update(released)
        keep_params(model)
        share_records(self, model)
        if hasattr(model, "gram_"):
            model._read_release()
        return model

    def __getstate__(self):
        """Omit from pickles what is computed from `gram_`, which is twice as large."""
        return {name: value for name, value in super().__getstate__().items() if name != "_decomposed"}

    def _read_release(self):
        problem = self._with_values().problem()
        theta = self._decomposed.minimiser(problem.alpha, problem.ball)
        vars(self).update(problem.attributes(theta))

    def accuracy_form(self) -> RidgeAccuracy:
        """Return the AccuracyForm of this estimator, for accuracy first.

        Returns
        -------
        RidgeAccuracy
        """
        self._check_parameters()
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
            Largest distance of a prediction of a model in the ball from the middle of `target_range`,
            in units of half its length.

        Returns
        -------
        RiskBound
            For training with the model's `epsilon`.
        """
        return self.calibration(PublicShape(n_samples, n_features)).risk_bound(reach)

    def noise_length(self, shape: PublicShape, epsilon: float | None = None) -> float:
        """Return the root mean square length of the noise in the gradient.

        That is for coefficients halfway to the end of the ball. With half of it a model is about as good
        as with twice as many records.

        Parameters
        ----------
        shape : PublicShape
        epsilon : float, default=None
            Privacy loss of the fit; None is the estimator's.

        Returns
        -------
        float
            For "covariance" without the rounding to a grid. A function of public numbers alone.

        Examples
        --------
        >>> from dpselect import DPRidge
        >>> from dpselect.records import PublicShape
        >>> shape = PublicShape(n_samples=10_000, n_features=50)
        >>> models = [DPRidge(target_range=(0, 1), delta=delta) for delta in (0.0, 1e-6)]
        >>> pure, gaussian = [model.noise_length(shape, 1.0) for model in models]
        >>> round(pure / gaussian, 1)
        8.8
        """
        self._check_parameters()
        epsilon = float(self.epsilon if epsilon is None else epsilon)
        problem = self.problem(epsilon)
        if problem.perturbation != "covariance":
            return float(self.calibration(shape, epsilon).noise_length)
        return problem.covariance_noise_length(shape, epsilon)

    def to_sklearn(self) -> Pipeline:
        """Return an equal model of scikit-learn alone: steps that clip rows, and a linear model.

        Returns
        -------
        sklearn.pipeline.Pipeline
            The last step has `coef_` and `intercept_`, and sees clipped rows.
        """
        return plain_model(self, self.row_bounds(), LinearRegression())

    def row_bounds(self) -> dict[str, float]:
        """Return the norms to which a fitted model scales rows down.

        Returns
        -------
        dict
            From "l2", "l1" or both to the largest norm.
        """
        check_is_fitted(self)
        return self._with_values().problem().row_bounds(self.n_features_in_)

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
        X = numeric_rows(self, X, **self.reads, reset=False)
        # the only object that is sent to the rows
        problem, p = self._with_values().problem(), X.shape[1]
        bounds, unit = problem.row_bounds(p), problem.row_unit(p)
        coef, intercept = self.coef_, self.intercept_
        return block_map(lambda rows: clipped_rows(rows, bounds, unit) @ coef + intercept, X)

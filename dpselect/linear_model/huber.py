"""Differentially private robust regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from sklearn.linear_model import LinearRegression

from ..base.estimator import PrivateRegressor
from ..metrics import ClippedAbsoluteErrorScore
from ..utils.parameters import with_parameters
from ..utils.type_aliases import FloatArray, MatrixLike
from ..utils.validation import interval, middle_and_half
from .losses import HALF_RANGE, PseudoHuberLoss
from .model import LinearModel


@with_parameters
class DPHuberRegressor(LinearModel, PrivateRegressor):
    """Robust linear regression for targets of any size, released with differential privacy.

    Minimises the mean pseudo-Huber loss h^2 (sqrt(1 + (r / h)^2) - 1) of the residuals
    r = y - m - w.x - b, plus alpha / 2 times the squared norm of the coefficients, the intercept b
    included, with noise in the objective or in the result. Small residuals count as in ridge
    regression, those beyond h by their size. However wrong a target is, it moves the model no
    more than one that is off by a few h: so no target is clipped, and none needs a bound. The unit
    h and the centre m are public: see `target_range`.

    Neighbouring data sets differ in one record (row, target and weight). Public are the number of
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
    target_range : (float, float), default=None
        Between which two numbers most targets lie, in units of the target; between -1e100 and 1e100.
        Must be given, from knowledge of the field and not from the targets: m is its middle, and h an
        eighth of its length. Targets and predictions beyond it remain what they are. With a range
        ten times too long, the noise is ten times as long, and errors of one h are still small.
    alpha : float or "auto", default="auto"
        Strength lambda of the regularisation of the *mean* loss; scikit-learn's Ridge, which this is
        where residuals are small, has alpha = n_samples times this one. "auto" is a function of public
        numbers, R^2 d / (5 n epsilon) for rows of l2 norm up to R, or R G sqrt(2 d) / (5 n epsilon) with
        the noise of "l1", up to three times as much where n epsilon / d is below 300, and costs
        nothing. Output perturbation has four times as much. With very many records, and in output
        perturbation often, it is the least at which the noise in the result costs less than bias. With
        ``epsilon=inf`` it may be 0.
    perturbation : {"objective", "output"}, default="objective"
        Where the noise enters. Objective perturbation is the more accurate one on most
        data.
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
        Released intercept, m included.
    data_norm_, data_norm_l1_ : float
        Released norms, if `data_norm` or `data_norm_l1` is "auto".
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
    dpselect.DPRidge : One release that serves every `alpha`, for targets with a bound.
    dpselect.StabilityGridSearchCV : Tunes `alpha` and the steps before the model.

    Notes
    -----
    In an accuracy-first search the risk is in units of h^2, and less that of predicting m. The page
    "Robust regression" of the documentation has statement and proof.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk
    Minimization*, JMLR 12, 2011, algorithms 1 and 2; the loss is that of Charbonnier, Blanc-Féraud,
    Aubert and Barlaud, *Deterministic edge-preserving regularization in computed imaging*, IEEE
    Transactions on Image Processing 6, 1997.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from dpselect import DPHuberRegressor
    >>> X, y = make_regression(30_000, 5, noise=5.0, random_state=0)
    >>> y[:100] = 1e9  # typing errors
    >>> model = DPHuberRegressor(epsilon=1.0, target_range=(-300, 300), data_norm=3.0)
    >>> model = model.fit(X[:20_000], y[:20_000])
    >>> model.privacy_.epsilon
    1.0
    >>> bool(model.score(X[20_000:], y[20_000:]) > 0.9)  # other records
    True
    """

    _: KW_ONLY
    target_range: tuple[float, float] | None = None

    parameter_checks: ClassVar = {
        **LinearModel.parameter_checks,
        "target_range": interval(
            why="targets are counted from its middle, in eighths of its length, not to be read off them",
            instead="write target_range=(low, high), between which most targets lie by knowledge of the "
            "field, such as (0, 100); targets beyond count as they are",
        ),
    }

    @property
    def default_scoring(self) -> ClippedAbsoluteErrorScore:
        """ClippedAbsoluteErrorScore : Errors count up to half the length of `target_range`."""
        self.parameter_checks["target_range"]("target_range", self.target_range)
        return ClippedAbsoluteErrorScore(HALF_RANGE * self._loss().unit)

    def _loss(self):
        centre, half = middle_and_half(self.target_range)
        return PseudoHuberLoss(centre, half / HALF_RANGE)

    def _plain_predictor(self):
        return LinearRegression()

    def predict(self, X: MatrixLike) -> FloatArray:
        """Predict the targets of rows, clipped as the training rows were.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._predictor(X, lambda z: z[:, 0])

"""Differentially private linear support vector classification."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from sklearn.svm import LinearSVC

from ..utils.parameters import with_parameters
from ..utils.validation import size
from .classifier import DPLinearClassifier
from .losses import HuberHingeLoss


@with_parameters
class DPLinearSVC(DPLinearClassifier):
    """A linear support vector classifier, released with differential privacy.

    Minimises the mean Huber hinge loss plus alpha / 2 times the squared norm of the
    coefficients, the intercept included, with noise in the objective or in the result. The
    Huber hinge is the hinge with its corner rounded off: objective perturbation needs a loss
    whose derivative is continuous.

    Neighbouring data sets differ in one record (row, label and weight). Public are the number of
    records, the columns, the labels in `classes`, and every parameter.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of the fit, greater than 0; ``inf`` fits without noise. With K > 2
        classes each of the K one-vs-rest problems has epsilon / K; with Gaussian noise they share it.
    delta : float, default=0.0
        Probability with which the privacy loss may exceed epsilon; far below 1 / n_samples, such as
        1e-6. Greater than 0, it allows Gaussian noise, whose length grows with sqrt(d) and not with d,
        and which is shorter from 15 to 20 columns on (from 5 on with three classes). The
        shortest noise by public numbers is taken. If it is not Gaussian, delta is not spent, unless a
        number is learned first (`data_norm="auto"`).
    alpha : float or "auto", default="auto"
        Strength lambda of the regularisation of the *mean* loss; scikit-learn's LinearSVC
        has C = 1 / (n_samples alpha). "auto" is a function of public numbers,
        R^2 d / (5 n epsilon), or R G sqrt(2 d) / (5 n epsilon) with the noise of "l1", up to three
        times as much where n epsilon / d is below 100 and down to half where it is above, and costs
        nothing. Output perturbation has four times as much. With very many records, and in output
        perturbation often, it is the least at which the noise in the result costs less than bias. With
        ``epsilon=inf`` it may be 0.
    perturbation : {"objective", "output"}, default="objective"
        Where the noise enters.
    huber_width : float, default=0.5
        Half-width h of the rounded part of the hinge, in units of the margin; greater
        than 0. A narrow one costs objective perturbation regularisation, c = 1 / (2 h).
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
    class_weight : dict, default=None
        How often a record counts, by its label; 1 where the dict has none. Public: made from
        knowledge of how often labels occur, and never from `y`. With K > 2 classes a record has the
        weight of its label in all K problems. Noise and "auto" are multiplied by the largest weight.
    max_sample_weight : float, default=None
        To which the weights of records are clipped, if `fit` is given a `sample_weight`; None lets it
        refuse them. The loss stays a mean over all records, whatever they weigh, and noise and "auto"
        are multiplied by this number: write one that few weights exceed, from knowledge of how they
        are made.
    classes : array-like of shape (n_classes,), default=None
        All labels that a record may have. With None they are learned from `y`, which the
        privacy loss does not cover (a warning says so).
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
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Released coefficients, of rows that are scaled down to their norms: of a longer row the
        prediction is not ``x @ coef_ + intercept_``. :meth:`to_sklearn` has both.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercepts.
    classes_ : ndarray of shape (n_classes,)
        The labels.
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

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk
    Minimization*, JMLR 12, 2011, algorithms 1 and 2, equation (23). The page "Linear
    classifiers" has statement and proof.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dpselect import DPLinearSVC
    >>> X, y = make_blobs(2000, centers=[(-0.5, 0), (0.5, 0)], cluster_std=0.2, random_state=0)
    >>> model = DPLinearSVC(epsilon=1.0, classes=[0, 1]).fit(X[:1000], y[:1000])
    >>> model.privacy_.epsilon
    1.0
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9)  # other records
    True
    """

    _: KW_ONLY
    huber_width: float = 0.5

    default_scoring = "ramp"
    parameter_checks: ClassVar = {
        **DPLinearClassifier.parameter_checks,
        "huber_width": size(
            why="the noise is calibrated for a hinge whose corner is rounded off",
            instead="write a number from 1e-100 to 1e100, such as 0.5",
        ),
    }

    def _loss(self):
        return HuberHingeLoss(float(self.huber_width))

    def _plain_predictor(self):
        return LinearSVC()

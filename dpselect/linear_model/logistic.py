"""Differentially private logistic regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, logit

from ..base.learned_numbers import FirstRelease
from ..rows import block_map
from ..utils.parameters import with_parameters
from ..utils.type_aliases import FloatArray, MatrixLike
from ..utils.validation import check_number, number, unless
from .classifier import DPLinearClassifier
from .losses import CappedLogisticLoss, LogisticLoss
from .model import LinearModel
from .norms_and_rates import ClassShares
from .sklearn_models import check_probabilities, logistic_predictor

# best of .5 to 1 on the tables of "Linear classifiers"
LARGEST_DERIVATIVE = 0.6


def doubled(shares):
    """Return twice the smaller of each share and its complement, on its side and no farther than 1/2."""
    return np.where(shares <= 0.5, np.minimum(2 * shares, 0.5), np.maximum(2 * shares - 1, 0.5))


def _check_frequencies(name, value):
    if value is None or (isinstance(value, str) and value == "auto"):
        return
    for frequency in value.values() if isinstance(value, Mapping) else [value]:
        check_number(
            name,
            frequency,
            high=1.0,
            why="it is the share of a class, which is neither 0 nor 1",
            instead='write a number between 0 and 1 from knowledge of the field, "auto" or None',
        )


@with_parameters
class DPLogisticRegression(DPLinearClassifier):
    """Logistic regression, released with differential privacy.

    Minimises the mean logistic loss plus alpha / 2 times the squared norm of the
    coefficients, the intercept included, with noise in the objective or in the result.

    Neighbouring data sets differ in one record (row, label and weight). Public are the number
    of records, the columns, the labels in `classes`, and every parameter.

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
        Strength lambda of the regularisation of the *mean* loss; scikit-learn's
        LogisticRegression has C = 1 / (n_samples alpha). "auto" is a function of public
        numbers, R^2 d / (5 n epsilon), or R G sqrt(2 d) / (5 n epsilon) with the noise of "l1", up to
        4.5 times as much where n epsilon / d is below 225 and down to half where it is above, and
        costs nothing. Output perturbation has four times as much. With very many records, and in output
        perturbation often, it is the least at which the noise in the result costs less than bias. With
        n epsilon / d from 10 to 225 the coefficients are 1.25 times those that were trained, as so
        strong a penalty makes probabilities too even. With ``epsilon=inf`` it may be 0.
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
    base_rate : None, float, dict or "auto", default=None
        Shares of the classes that are known, greater than 0 and less than 1: of the second of two
        labels in sorted order, or a dict from each label to its share, such as
        ``{"ja": 0.07, "nein": 0.93}``. The penalty of the intercept then counts
        from their logits in place of 0, so a model that has learned nothing predicts them. With
        ``alpha="auto"`` it counts from twice a share, but no farther than 1/2, which ranks better, and
        what it keeps of that is taken from the intercept after training. "auto"
        learns shares first where noise leaves little else: with N the number of records times epsilon
        over the mean length of the noise, for 0.8 of `epsilon` where N is below 3, for 0.05 to 0.25
        below 10, for 0.05 below 30, and for 0.01 to 0.05 below 100. Elsewhere it is None. Weights of
        classes change shares as they change how often a record counts; the penalty then counts from
        these.
    max_derivative : float, "auto" or None, default="auto"
        Largest derivative L of the loss, from 0.5 to 1; noise is proportional to it. The logistic loss
        is steeper where a record is far on the wrong side, and goes straight on there. "auto" is 0.6,
        with which noise is shorter by two fifths and predictions are better on most tables; without
        noise (``epsilon=inf``) it is 1. Decisions are then log odds as such a loss has them: from the
        prediction z = w.x + b and s = 1 / (1 + exp(-z)) the probability is a / (a + b), with
        a = min(s, L) and b = min(1 - s, L). None is 1, scikit-learn's loss.
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
        Released coefficients, of rows that are scaled down to their norms. Where an entry of such a row
        is larger by 1, the log odds are larger by its coefficient where probabilities lie from 1 - L to
        L, L being `largest_derivative`, and elsewhere by L to 1 times as much. :meth:`to_sklearn` has
        all that is between.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercepts.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    data_norm_, data_norm_l1_ : float
        Released norms, if `data_norm` or `data_norm_l1` is "auto".
    base_rate_ : float, dict or None
        What was learned of the shares of the classes, if `base_rate` is "auto", and took its place; None
        if nothing was.
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
    dpselect.StabilityGridSearchCV : Tunes `alpha` and the steps before the classifier.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk
    Minimization*, JMLR 12, 2011, algorithms 1 and 2. The calibration differs from theirs
    in three places; the page "Linear classifiers" has statement and proof.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dpselect import DPLogisticRegression
    >>> X, y = make_blobs(2000, centers=[(-0.5, 0), (0.5, 0)], cluster_std=0.2, random_state=0)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X[:1000], y[:1000])
    >>> model.privacy_.epsilon
    1.0
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9)  # other records
    True
    """

    _: KW_ONLY
    base_rate: float | Mapping[Any, float] | Literal["auto"] | None = None
    max_derivative: float | Literal["auto"] | None = "auto"

    parameter_checks: ClassVar = {
        **LinearModel.parameter_checks,
        "base_rate": _check_frequencies,
        "max_derivative": unless(
            None,
            unless(
                "auto",
                number(
                    low=0.5,
                    low_included=True,
                    high=1.0,
                    high_included=True,
                    why="the noise is proportional to it, and a loss that is straight on both sides "
                    "of 0 would learn nothing",
                    instead='write 0.6, "auto" or None',
                ),
            ),
        ),
    }

    def _check_parameters(self):
        super()._check_parameters()
        if self.base_rate is None or isinstance(self.base_rate, str):
            return
        if self.classes is not None:
            self._check_base_rate(np.asarray(self.classes).tolist())
        elif self.class_weight is not None:
            raise ValueError(
                "base_rate is given with class_weight and without classes, so it is not known whose "
                "weight changes it; write classes=[...], or base_rate=None."
            )

    def _check_base_rate(self, classes):
        """Refuse class frequencies that do not match the labels."""
        rate = self.base_rate
        if set(rate) != set(classes) if isinstance(rate, Mapping) else len(classes) != 2:
            raise ValueError(
                f"base_rate does not tell the share of each of {len(classes)} classes, from which their "
                "intercepts count; write the share of the second of two, or a dict from each label to "
                "its share, such as {'a': 0.2, 'b': 0.5, 'c': 0.3}."
            )

    def _check_records(self, X, y):
        records = super()._check_records(X, y)
        if self.base_rate is not None and not isinstance(self.base_rate, str):
            self._check_base_rate(records.classes.tolist())  # again, as classes=None is learned only now
        return records

    def first_releases(self) -> dict[str, FirstRelease]:
        """Return the first releases of the parameters that are "auto", except `alpha`.

        Returns
        -------
        dict
            From the parameter to its FirstRelease.
        """
        base_rate = {"base_rate": ClassShares()} if isinstance(self.base_rate, str) else {}
        return super().first_releases() | base_rate

    def _frequencies(self):
        rate = self.base_rate
        mapped = isinstance(rate, Mapping)
        return np.array([rate[label] for label in sorted(rate)] if mapped else [1 - rate, rate], float)

    def _shares(self):
        # a number for alpha is of a penalty that counts from the shares themselves
        exact = not isinstance(self.alpha, str) or self.epsilon == np.inf
        if self.base_rate is None or self.class_weight is not None or exact:
            return ()
        frequencies = self._frequencies().tolist()
        return tuple(frequencies[1:] if len(frequencies) == 2 else frequencies)

    def _offsets(self):
        if self.base_rate is None:
            return ()
        frequencies = self._frequencies()
        offsets = logit(doubled(frequencies) if self._shares() else frequencies)
        if self.class_weight is not None:
            labels = np.unique(np.asarray(self.classes)).tolist()
            weights = np.array([self.class_weight.get(label, 1.0) for label in labels], dtype=float)
            weighted = weights * frequencies
            # one-vs-rest: a class has its weight, all others the mean of theirs
            others = (weighted.sum() - weighted) / (frequencies.sum() - frequencies)
            offsets += np.log(weights / others)
        # of two classes, the row is that of the second
        offsets = offsets[1:] if len(offsets) == 2 else offsets
        return tuple(self._loss().prediction(offsets).tolist())

    @property
    def largest_derivative(self) -> float:
        """float : L, the largest derivative of the loss: `max_derivative`, or what it stands for."""
        if isinstance(self.max_derivative, str):
            # without noise nothing is gained by another loss than scikit-learn's
            return 1.0 if self.epsilon == np.inf else LARGEST_DERIVATIVE
        return 1.0 if self.max_derivative is None else float(self.max_derivative)

    def _loss(self):
        L = self.largest_derivative
        return LogisticLoss() if L == 1 else CappedLogisticLoss(L)

    def _plain_predictor(self):
        if len(self.classes_) > 2:
            check_probabilities(self)
        return logistic_predictor(self.classes_, self.largest_derivative)

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows add up to 1. With more than two classes the one-vs-rest probabilities
            are divided by their sum.
        """
        # shorter blocks, of which less is held beside the result
        return block_map(_probabilities, self.decision_function(X), row_elements=8)

    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return block_map(_log_probabilities, self.decision_function(X))


def _probabilities(decision):
    if decision.ndim == 1:
        return np.column_stack([expit(-decision), expit(decision)])
    # in logarithms, so that very negative decisions do not all round to 0
    logarithms = -np.logaddexp(0.0, -decision)
    logarithms -= logarithms.max(axis=1, keepdims=True)
    probabilities = np.exp(logarithms)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def _log_probabilities(decision):
    if decision.ndim == 1:
        return -np.logaddexp(0.0, np.column_stack([decision, -decision]))
    return np.log(_probabilities(decision))

"""The one `fit` of private estimators: the author of an estimator writes only its mathematics."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from types import FunctionType
from typing import Any, ClassVar, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, RegressorMixin, clone

from ..accounting.events import event_of_fit
from ..accounting.joint import jointly
from ..accounting.privacy_loss import Adjacency, PrivacyLoss
from ..config import usual_settings
from ..exceptions import AccuracyNotReachedError, CertificateError
from ..ledger import (
    CarriesLedgerMixin,
    is_included,
    restored_origin,
    spending,
    without_spending,
)
from ..metrics.exact import accuracy, r_squared
from ..noise import all_finite, as_generator, check_random_state, is_seeded, root_stream
from ..records.persons import Persons, check_one_label_a_row
from ..records.public_shape import PublicShape
from ..records.records import (
    Weighted,
    check_classes,
    classification_records,
    regression_records,
    split_groups,
    split_weights,
    table_records,
)
from ..records.training import remember, share_records, warns_of_training_records
from ..rows import block_map
from ..utils.parameters import (
    KEPT,
    QuickParamsMixin,
    counterpart,
    keep_params,
    naming_counterparts,
    reads_params_of_fit,
    with_values,
)
from ..utils.type_aliases import Array, FloatArray, MatrixLike
from ..utils.validation import LEAVE_OUT, check_epsilon, is_zero, refuse_fit_params
from .certificates import Certificate
from .fit_warnings import warn_if_compared, warn_if_logged, warn_if_seeded, warn_of_little
from .learned_numbers import Division, first_releases

# methods that read the fitted state
READ_FROM_FIT = {
    "decision_function",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "row_bounds",
    "score_samples",
    "to_sklearn",
    "transform",
}
# methods that are exact functions of the records that they are given
SCORES = {"score", "score_samples"}


def _as_a_release(fit):
    @wraps(fit)
    def fit_as_a_release(self, X, *args, **kwargs):
        # fit a copy: parameters that other threads, or readers of X, change meanwhile must not matter
        fitted = with_values(self)
        vars(fitted).pop(KEPT, None)
        try:
            with restored_origin(self), usual_settings():
                warn_if_logged(self, fit_as_a_release.__code__)
                warn_if_compared(self, fit_as_a_release.__code__)
                fit(fitted, X, *args, **kwargs)
        except AccuracyNotReachedError:
            # the release has been paid for, so its attributes are kept
            self.__dict__ = vars(fitted)
            keep_params(self)
            raise
        self.__dict__ = vars(fitted)
        keep_params(self)
        remember(self, X)
        return self

    return fit_as_a_release


class ReleaseMixin(CarriesLedgerMixin, QuickParamsMixin):
    """Mixin for all objects whose `fit` releases something; comes before BaseEstimator.

    A `fit` that fails leaves them as they were, wherever it is written. The parameters of the fit are
    kept, so that later `set_params` does not change statements about a release. The training records are
    remembered, so that scoring them warns; pickles carry the ledger that is open, and fits of unpickled
    estimators spend from it; notebooks show `privacy_` beneath scikit-learn's diagram.
    """

    privacy_: PrivacyLoss

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in vars(cls):
            cls.fit = _as_a_release(vars(cls)["fit"])  # type: ignore[attr-defined]

    def __copy__(self):
        duplicate = super().__copy__()
        share_records(self, duplicate)
        return duplicate

    @property
    def _repr_html_(self):
        # scikit-learn raises AttributeError here if `display` is "text"
        diagram = super()._repr_html_
        return lambda: diagram() + self._privacy_html()

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._privacy_html()
        return bundle

    def _privacy_html(self):
        loss = vars(self).get("privacy_")
        return "" if loss is None else loss._repr_html_()


class PrivateEstimator(ReleaseMixin, BaseEstimator, ABC):
    """Base of estimators that release a function of records, with differential privacy.

    `fit` checks the parameters, reserves the loss from the ledger before any record is read, checks
    the records, draws the noise, calls `_release` and states the loss. If it fails, the estimator is
    left as it was. A subclass has the parameters `epsilon`, `ledger` and `random_state`, and writes
    its mathematics:

    - `parameter_checks`, what each other parameter may be;
    - `_calibration`, how much noise a fit needs;
    - `_standard_noise`, the noise before it is scaled;
    - `_release`, from records and noise to what is released, by the names of the attributes;
    - `_what`, what that is in words.

    Take :class:`PrivateClassifier`, :class:`PrivateRegressor` or :class:`PrivateDensity` for the task.
    :func:`dpselect.testing.check_private_estimator` finds mistakes of a subclass.

    Attributes
    ----------
    parameter_checks : dict
        For each parameter a function of its name and value that refuses what breaks the guarantee:
        see :func:`~dpselect.utils.validation.number` and what follows it there.
    reads : dict
        How the records are read: ``lazily=True`` for estimators that read rows by
        :mod:`dpselect.rows` alone, ``accept_sparse="csr"`` if they may be sparse.
    reads_once : bool
        Whether a fit makes one or two passes, so that what is computed of records need not be stored.
    keeps : tuple of str
        Names of private attributes that are functions of what was released, and forgotten with it.
    zero_without_noise : tuple of str
        Parameters that may be 0 with ``epsilon=inf``.
    instead_of_weights : str
        What to do where `sample_weight` is refused, by `fit` or by a search.
    takes_groups : bool
        Whether `_release` weighs rows by ``records.persons.weight``, and `_calibration` makes the noise
        that hides all rows of one person where ``shape.persons``.
    """

    epsilon: float
    random_state: Any
    parameter_checks: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}
    reads: ClassVar[dict[str, Any]] = {}
    reads_once: ClassVar[bool] = False
    keeps: ClassVar[tuple[str, ...]] = ()
    takes_groups: ClassVar[bool] = False
    zero_without_noise: ClassVar[tuple[str, ...]] = ()
    instead_of_weights: ClassVar[str] = LEAVE_OUT

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = naming_counterparts(cls.__init__)  # type: ignore[method-assign]
        for names, decorate in (
            (READ_FROM_FIT, reads_params_of_fit),
            (SCORES, warns_of_training_records),
        ):
            for name in names & vars(cls).keys():
                if isinstance(vars(cls)[name], FunctionType):
                    setattr(cls, name, decorate(vars(cls)[name]))

    def set_params(self, **params: Any) -> Self:
        if instead := counterpart(type(self), params):
            raise ValueError(instead)
        return super().set_params(**params)

    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        *,
        groups: npt.ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train and release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Brought within the public bounds that the parameters state, in training and in
            prediction. Sparse where the estimator takes sparse rows.
        y : array-like of shape (n_samples,), default=None
            Labels or targets; estimators that have none ignore it.
        groups : array-like of shape (n_samples,), default=None
            The id of the person whose row it is. Neighbours then differ in all rows of one person, and a
            person counts as one record, the mean of their rows; public is the number of persons. None
            if each row is a person. Estimators without a proof for that refuse it.
        **fit_params : dict
            None is supported: `sample_weight`, for instance, would change how far one record can
            move the model, and is refused.

        Returns
        -------
        self : object
            The fitted estimator; `privacy_` states what was spent.

        Raises
        ------
        BudgetExceededError
            If the ledger has less left; no record is read.
        TypeError
            If `fit_params` are given, or `groups` that the estimator does not take.
        ValueError
            If a parameter is out of range, or X, y or `groups` is malformed.

        Warns
        -----
        PrivacyLeakWarning
            If the labels are learned from `y`, because `classes` is None, or if mlflow's autologging
            records the fit.
        SeededNoiseWarning
            If `random_state` is not None.
        UserWarning
            If, by public numbers, noise hides most of what a linear model could learn.
        """
        refuse_fit_params(
            self, fit_params, self.instead_of_weights if "sample_weight" in fit_params else LEAVE_OUT
        )
        self._check_parameters()
        if groups is not None:
            self.check_takes_groups()
            y, weight = split_weights(y)
            y = Weighted.of(y, weight, groups)
        warn_if_seeded(self)
        loss = self._loss_of_a_fit()
        if groups is not None:
            loss = replace(loss, adjacency=Adjacency.REPLACE_PERSON)
        # a search warns by itself, once
        told = None if is_included() else partial(warn_of_little, type(self))
        with spending(self, loss) as reservation:
            first, calibration = self._train(X, y, self.epsilon, self.random_state, before_noise=told)
            self.privacy_ = self._stated(loss, first, calibration)
            reservation.commit(self.privacy_)
        return self

    def _stated(self, loss, first, calibration):
        """Return what a fit states, by its largest loss, its Division and its noise calibration."""
        known = {}
        if loss.epsilon < math.inf:
            known["event"] = event_of_fit(calibration, bool(first.releases))
        # whether delta was used depends on the records, so it must be charged either way
        if not first.releases:
            known["delta"] = min(loss.delta, getattr(calibration, "delta", loss.delta))
        if any(value != getattr(loss, name) for name, value in known.items()):
            loss = replace(loss, **known)
        if not first.releases:
            return loss
        owners = dict.fromkeys(first.releases, type(self).__name__)
        losses = first.losses(owners, loss.seeded, loss.adjacency)
        return jointly([*losses, replace(loss, epsilon=first.rest)], label=loss.label)

    def planned_loss(self, shape: PublicShape) -> PrivacyLoss:
        """Return what a fit of records of a shape will state: a function of public numbers alone.

        Parameters
        ----------
        shape : PublicShape

        Returns
        -------
        PrivacyLoss
        """
        self._check_parameters()
        epsilon, loss = float(self.epsilon), self._loss_of_a_fit()
        if shape.persons:
            loss = replace(loss, adjacency=Adjacency.REPLACE_PERSON)
        learned = first_releases(self)
        model = self._with_values({name: release.stand_in for name, release in learned.items()})
        first = self._division(model, shape, epsilon)
        return self._stated(loss, first, model._calibration(shape, first.rest))

    def _division(self, guess, shape, epsilon):
        """Return the Division of epsilon between first releases and training, by public numbers."""
        planned = {
            name: release.planned(guess, shape, epsilon)
            for name, release in first_releases(self).items()
        }
        return Division({name: release for name, release in planned.items() if release}, epsilon)

    def _train(self, X, y, epsilon, random_state, before_noise=None):
        """Set the released attributes, for an epsilon and a random state; charges no ledger.

        Parameters were checked, and `before_noise` is called with a calibration by public numbers.
        Returns the Division of epsilon between first releases and training, and the noise calibration.
        """
        # remove attributes of an earlier fit, whose loss `privacy_` no longer states
        for name in [name for name in vars(self) if _is_released(name) or name in self.keeps]:
            del vars(self)[name]
        records, epsilon = self._records(X, y), float(epsilon)
        model, first = self, Division({}, epsilon)
        learned = first_releases(self)
        if learned:
            guess = self._with_values({name: release.stand_in for name, release in learned.items()})
            if before_noise is not None:  # here, as what is learned is private
                before_noise(guess._calibration(records.shape, epsilon))
            first = self._division(guess, records.shape, epsilon)
            stream = root_stream(random_state)
            values = dict.fromkeys(learned) | {
                name: first.learn(name, records, stream) for name in first.releases
            }
            vars(self).update({f"{name}_": value for name, value in values.items()})
            model, random_state = self._with_values(values), stream.child("model")
        calibration = model._calibration(records.shape, first.rest)
        if before_noise is not None and not learned:
            before_noise(calibration)
        noise = model._noise_sample(records.shape, first.rest, random_state)
        vars(self).update(records.public | all_finite(model._release(records, calibration, noise)))
        return first, calibration

    def _with_values(self, values=None):
        """Return the estimator with values for what is learned first; None takes the released ones."""
        if values is None:
            names = [name for name in first_releases(self) if f"{name}_" in vars(self)]
            values = {name: vars(self)[f"{name}_"] for name in names}
        return with_values(self, **values) if values else self

    def _refuse_unknown(self):
        """Refuse a question about a model that still has a number to learn."""
        for name in first_releases(self):
            raise CertificateError(
                f'{name}="auto" is learned from the records by a fit, so nothing is known of the model '
                f"and its noise before; write a number for {name}."
            )

    def calibration(self, shape: PublicShape, epsilon: float | None = None) -> Any:
        """Return the noise calibration of a fit: a function of public numbers alone.

        Parameters
        ----------
        shape : PublicShape
        epsilon : float, default=None
            Privacy loss of the fit; None is the estimator's.

        Returns
        -------
        object
            Frozen, with the numbers that certificates, bounds and plans read.
        """
        self._check_parameters()
        # convert: arithmetic in a low-precision type would weaken the noise
        epsilon = float(self.epsilon if epsilon is None else check_epsilon(epsilon))
        return self._calibration(shape, epsilon)

    def standard_noise(self, n_features: int, n_problems: int = 1) -> Any:
        """Draw the noise of one fit before it is scaled, from `random_state` and public numbers alone.

        Parameters
        ----------
        n_features : int
            Columns of X.
        n_problems : int, default=1
            1 for two classes and for other tasks, otherwise the number of classes.

        Returns
        -------
        ndarray
        """
        shape = PublicShape(1, n_features, n_problems)
        return self._noise_sample(shape, self.epsilon, self.random_state)

    def _noise_sample(self, shape, epsilon, random_state):
        """Return the standard noise of one fit, from a random state; independent of the records."""
        return self._standard_noise(
            as_generator(random_state), shape.n_features, shape.n_problems, float(epsilon)
        )

    def _check_parameters(self):
        check_epsilon(self.epsilon)
        noisy = self.epsilon < math.inf
        for name, check in self.parameter_checks.items():
            value = getattr(self, name)
            if noisy or name not in self.zero_without_noise or not is_zero(value):
                check(name, value)
        check_random_state(self.random_state)

    def _loss_of_a_fit(self):
        noisy = self.epsilon != math.inf
        return PrivacyLoss(
            float(self.epsilon),
            float(getattr(self, "delta", 0.0)) if noisy else 0.0,
            label=f"{type(self).__name__}: {self._what()}",
            seeded=noisy and is_seeded(self.random_state),
        )

    def check_takes_groups(self) -> None:
        """Refuse rows of persons, if there is no proof for them.

        Raises
        ------
        TypeError
        """
        if not self.takes_groups:
            raise TypeError(
                f"{type(self).__name__}.fit got groups, and it is not known how far all rows of one "
                "person can move its model; leave it out, and give one row a person."
            )

    def _records(self, X, y):
        """Return the checked records, with their persons."""
        y, groups = split_groups(y)
        if groups is not None:
            self.check_takes_groups()
            check_one_label_a_row(X, split_weights(y)[0])
        records = self._check_records(X, y)
        if groups is None:
            return records
        return replace(records, persons=Persons.of(groups, records.X))

    def _check_records(self, X, y):
        """Return the checked records."""
        return table_records(self, X, **self.reads)

    @abstractmethod
    def _what(self):
        """Return a description of what is released."""

    @abstractmethod
    def _calibration(self, shape, epsilon):
        """Return the frozen noise calibration for a shape and an epsilon.

        Its `delta`, if it has one, is what a fit spends of the estimator's.
        """

    @abstractmethod
    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        """Return the noise of one fit before it is scaled; must not depend on the records."""

    @abstractmethod
    def _release(self, records, calibration, noise):
        """Return the released attributes as a dict, each past :func:`dpselect.noise.release`.

        Parameters
        ----------
        records : Records
        calibration
            As `_calibration` gives it for ``records.shape``.
        noise : ndarray
            As `_standard_noise` gives it.
        """


@dataclass(frozen=True)
class Trial:
    """A model at an epsilon and a noise sample, which is trained for comparison and never released.

    Attributes
    ----------
    model : PrivateEstimator
    epsilon : float
    random_state : InnerStream or None
        Of its noise.

    Examples
    --------
    >>> from dpselect import DPLogisticRegression
    >>> from dpselect.base import Trial
    >>> X, y = [[-1.0], [1.0]] * 50, [0, 1] * 50
    >>> trial = Trial(DPLogisticRegression(classes=[0, 1]), epsilon=2.0)
    >>> hasattr(trial.fitted(X, y), "privacy_")
    False
    """

    model: Any
    epsilon: float
    random_state: Any = None

    def calibration(self, shape):
        """Return the noise calibration for a shape."""
        return self.model.calibration(shape, self.epsilon)

    def noise(self, shape):
        """Return the standard noise for a shape."""
        return self.model._noise_sample(shape, self.epsilon, self.random_state)

    def certificate(self, score, shape, failure_probability=None):
        """Return the Certificate of a score, at this noise sample or for nearly all of them."""
        calibration = self.calibration(shape)
        if not hasattr(calibration, "certificate"):
            raise CertificateError(
                f"No certificate exists for {type(self.model).__name__}, because its noise calibration "
                "has no method certificate; use strategy='random_stopping', which needs none."
            )
        noise = self.noise(shape) if failure_probability is None else None
        return calibration.certificate(score, noise, failure_probability)

    def records(self, X, y):
        """Return the records in the form that the model takes."""
        return clone(self.model)._records(X, y)

    def published(self, **released):
        """Return the model with attributes of a release that was made elsewhere."""
        model = clone(self.model).set_params(epsilon=self.epsilon, random_state=None)
        vars(model).update(all_finite(released))
        keep_params(model)
        return model

    def fitted(self, X, y):
        """Return the trained model; it charges no ledger, and states no loss."""
        model = clone(self.model)
        model._check_parameters()
        with without_spending():
            model._train(X, y, check_epsilon(self.epsilon), self.random_state)
        return model


class CertifiedEstimator(PrivateEstimator):
    """Base of estimators whose calibration may have ``certificate(score, noise, failure_probability)``.

    Without it no search can choose by stability; strategies that need no certificate take them.
    """

    def stability_certificate(
        self,
        score: Any,
        n_samples: int,
        n_features: int,
        n_problems: int = 1,
        failure_probability: float | None = None,
        persons: bool = False,
    ) -> Certificate:
        """Bound how far one record moves a score of this estimator's model at its noise.

        Parameters
        ----------
        score : Score
        n_samples : int
            Training records n.
        n_features : int
            Columns of X.
        n_problems : int, default=1
            1 for two classes and for other tasks, otherwise the number of classes.
        failure_probability : float, default=None
            None bounds the noise sample that `random_state` gives. A number in (0, 1) bounds all samples
            except with at most this probability, for planning and for the accounting of Chaudhuri and
            Vinterbo.
        persons : bool, default=False
            Whether records are persons with any number of rows, as with `groups` of `fit`.

        Returns
        -------
        Certificate

        Raises
        ------
        CertificateError
            If no certificate exists for the score.
        """
        shape = PublicShape(n_samples, n_features, n_problems, persons)
        trial = Trial(self, self.epsilon, self.random_state)
        return trial.certificate(score, shape, failure_probability)


class PrivateClassifier(ClassifierMixin, CertifiedEstimator):
    """Base of private classifiers: labels are public, in a parameter `classes`.

    `_release` gets records with ``classes`` and labels that all belong to them; `classes_` is set.
    A subclass writes `decision_function` as well, from which labels are predicted.
    """

    classes: npt.ArrayLike | None
    classes_: Array

    def _check_parameters(self):
        super()._check_parameters()
        check_classes(self.classes)

    def _check_records(self, X, y):
        return classification_records(self, X, y, **self.reads)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = "accept_sparse" in self.reads
        # on small data the noise can exceed the signal, so scikit-learn's accuracy checks may fail
        tags.classifier_tags.poor_score = True
        return tags

    @abstractmethod
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return the confidence scores of rows, brought within the bounds of `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class; with more than two classes, one column each.
        """

    def predict(self, X: MatrixLike) -> Array:
        """Predict the class of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

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

        # shorter blocks, of which less is held beside the result
        return block_map(labels, decisions, row_elements=8)

    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
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


class PrivateRegressor(RegressorMixin, CertifiedEstimator):
    """Base of private regressors: `_release` gets targets of float64, and clips them."""

    def _check_records(self, X, y):
        return regression_records(self, X, y, **self.reads)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = "accept_sparse" in self.reads
        tags.regressor_tags.poor_score = True
        return tags

    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the coefficient of determination R^2 of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
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


class PrivateDensity(DensityMixin, CertifiedEstimator):
    """Base of private density estimators, which have no labels."""


def _is_released(name):
    return name.endswith("_") and not name.startswith("_")

"""Wrap private models of other libraries, whose privacy is accounted for by those libraries."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Collection, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .accounting.privacy_loss import Adjacency, PrivacyLoss
from .base.estimator import ReleaseMixin
from .base.fit_warnings import warn_if_seeded
from .config import usual_settings, warn_caller
from .exceptions import CertificateError, PrivacyLeakError, PrivacyLeakWarning
from .ledger import PrivacyLedger, refuse_inner_ledger, spending
from .noise import check_random_state, is_seeded, root_stream
from .noise.generators import RandomState
from .preprocessing import check_pipeline_privacy
from .preprocessing.pipeline_check import private_parts
from .preprocessing.table_form import list_columns, plain_values
from .records.records import (
    as_targets,
    check_classes,
    one_label_a_row,
    public_classes,
    warn_if_labels_learned,
)
from .records.training import warns_of_training_records
from .rows import align, gathered, is_lazy
from .utils.finite import check_finite
from .utils.parameters import as_fitted
from .utils.type_aliases import Array, Estimator, FloatArray, MatrixLike
from .utils.validation import (
    HARMLESS,
    check_choice,
    check_epsilon,
    check_estimator,
    check_number,
    imported_pandas,
    refuse_fit_params,
    unquoted,
)

ADJACENCIES = (Adjacency.REPLACE_RECORD, Adjacency.ADD_OR_REMOVE_RECORD)
REMOVE_AND_ADD = "remove and add"
# above the rounding errors of what a library computes from its epsilon and delta
ROUNDING = 2.0**-40
SEEDS = "random_state"


def _inner_has(*names):
    """Return whether the fitted model, or the given one before, has one of the methods."""

    def check(self):
        inner = vars(self).get("estimator_", self.estimator)
        if any(hasattr(inner, name) for name in names):
            return True
        raise AttributeError(f"{type(inner).__name__} has no {' and no '.join(names)}.")

    return available_if(check)


class PrivateModel(ReleaseMixin, MetaEstimatorMixin, BaseEstimator):
    """A model of another library that is private by its own account.

    Declare once what its epsilon is called and which data sets its account compares; it then takes
    part in searches, ledgers, strict mode and reports as models of dpselect do. Nothing here proves,
    tests or adds to its guarantee: `privacy_` says by whose account the model is private.

    Neighbouring data sets differ in one record that is replaced, and the number of records is public. A
    library that calibrates its noise to a record that comes or goes has another adjacency. Replacing
    is removing and adding: with ``conversion="remove and add"`` the model is given half of `epsilon`,
    and of `delta` the share ``1 / (1 + exp(epsilon / 2))``.

    You state by declaring a model that its account holds for the records that it is given, for all
    values that one record can have; that what it is given in parameters is public; and that its
    fitted object holds nothing that its account does not cover. Its warnings are not shown, as they
    may tell of records, and one that speaks of privacy ends the fit.

    Parameters
    ----------
    estimator : estimator
        With scikit-learn's interface, unfitted; a clone of it is fitted. A Pipeline goes through
        :func:`~dpselect.preprocessing.check_pipeline_privacy`. What its parameters of epsilon, delta
        and classes hold is replaced, and its `random_state` must be None.
    epsilon : float, default=1.0
        Privacy loss of the fit, for one record that is replaced; greater than 0. ``inf`` is
        handed on, to models that take it.
    adjacency : {"replace one record", "add or remove one record"}
        What the model's own account compares: see :class:`Adjacency`. "Bounded" differential privacy
        is the first, "unbounded" the second.
    conversion : {None, "remove and add"}, default=None
        What makes an account for another adjacency one for a record that is replaced. None refuses
        other adjacencies. "remove and add" is right if the account holds for numbers of records
        that differ by one.
    delta : float, default=0.0
        Of the fit, in (0, 1) for models with a parameter `delta_parameter`, and 0.0 for others.
    epsilon_parameter : str, default="epsilon"
        Name of the model's parameter that is its epsilon; ``step__parameter`` of the last step of a
        Pipeline.
    delta_parameter : str, default=None
        Likewise of its delta; None for models without.
    classes : array-like of shape (n_classes,), default=None
        All labels that a record may have. None learns them from `y`, with a warning. Regressions
        have none.
    classes_parameter : str, default=None
        Name of the model's parameter that takes them. None for models without: those read from their
        records which labels there are, so give `public_records` with each.
    public_parameters : collection of str, default=()
        Names of the model's parameters, such as bounds, that it reads from the records if they are
        None; `fit` then refuses, before any record is read.
    public_records : (X, y), default=None
        Rows and labels that are public, invented for the purpose, in the form in which the model gets
        them. They join the records of every fit, so that each label and each category is there for
        models that make a list of them.
    ledger : PrivacyLedger, default=None
        Pays for each fit, in place of one that is open (``with ledger:``). A fit that fails once the
        model has records counts in full.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None leaves the model to its own source of noise. Everything else is for tests: it seeds
        every `random_state` of the model, and the noise can be drawn again.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model, and models in it, without their `random_state`. Released, by the account of its
        library.
    privacy_ : PrivacyLoss
        What was spent, and by whose account.
    classes_ : ndarray of shape (n_classes,)
        Of a classifier.
    n_features_in_, feature_names_in_
        Those of `estimator_`, if it has them.

    Raises
    ------
    CertificateError
        By `fit`, before any record is read, if the adjacency is another one and no conversion is
        declared, if a delta is given and none is declared, or the reverse, if `epsilon_parameter` is
        that of a part of a meta-estimator, or if steps of a Pipeline learn privately themselves.
    PrivacyLeakError
        By `fit`, if the model warns of a leak: its account then does not hold.

    See Also
    --------
    StabilityGridSearchCV : Chooses among such models and those of dpselect, by "random_stopping" or
        "budget_split".

    References
    ----------
    The page "Models of other libraries" proves the conversion, and has declarations for InterpretML
    and diffprivlib. Vadhan, *The Complexity of Differential Privacy*, 2017, lemma 2.2.

    Examples
    --------
    A library's model, written here in a few lines: the share of each label, with noise for one record
    that comes or goes.

    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, ClassifierMixin
    >>> class NoisyPrior(ClassifierMixin, BaseEstimator):
    ...     def __init__(self, epsilon=1.0, labels=None):
    ...         self.epsilon = epsilon
    ...         self.labels = labels
    ...     def fit(self, X, y):
    ...         self.classes_ = np.unique(self.labels)
    ...         noise = np.random.default_rng().laplace(scale=1 / self.epsilon, size=len(self.classes_))
    ...         counts = (np.asarray(y)[:, None] == self.classes_).sum(axis=0) + noise
    ...         self.prior_ = np.maximum(counts, 1) / np.maximum(counts, 1).sum()
    ...         return self
    ...     def predict_proba(self, X):
    ...         return np.tile(self.prior_, (len(X), 1))
    ...     def predict(self, X):
    ...         return np.full(len(X), self.classes_[self.prior_.argmax()])
    >>> from dpselect import PrivateModel
    >>> model = PrivateModel(
    ...     NoisyPrior(), epsilon=1.0, adjacency="add or remove one record",
    ...     conversion="remove and add", classes=[0, 1], classes_parameter="labels",
    ... )
    >>> model.fit(np.zeros((1000, 1)), [0, 1, 1, 1] * 250).estimator_.epsilon
    0.5
    >>> model.predict([[0.0]])
    array([1])
    >>> model.privacy_.epsilon, str(model.privacy_.adjacency)
    (1.0, 'replace one record')
    """

    def __init__(
        self,
        estimator: Estimator,
        epsilon: float = 1.0,
        *,
        adjacency: Adjacency | str,
        conversion: str | None = None,
        delta: float = 0.0,
        epsilon_parameter: str = "epsilon",
        delta_parameter: str | None = None,
        classes: npt.ArrayLike | None = None,
        classes_parameter: str | None = None,
        public_parameters: Collection[str] = (),
        public_records: tuple[Any, Any] | None = None,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.adjacency = adjacency
        self.conversion = conversion
        self.delta = delta
        self.epsilon_parameter = epsilon_parameter
        self.delta_parameter = delta_parameter
        self.classes = classes
        self.classes_parameter = classes_parameter
        self.public_parameters = public_parameters
        self.public_records = public_records
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, **fit_params: Any) -> Self:
        """Fit the model, with its part of epsilon and delta.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Handed on as it is; rows that are not in memory are gathered first.
        y : array-like of shape (n_samples,), default=None
            Labels or targets; models that have none ignore it.
        **fit_params : dict
            None is supported.

        Returns
        -------
        self : object

        Raises
        ------
        BudgetExceededError
            If the ledger has less left; no record is read.
        CertificateError, TypeError, ValueError
            If what is declared does not go together, or the records are malformed, or the model
            fails; its own message may quote records, and is not shown.

        Warns
        -----
        PrivacyLeakWarning
            If labels are learned from `y`.
        SeededNoiseWarning
            If `random_state` is not None.
        """
        refuse_fit_params(self, fit_params)
        loss = self.declared_loss()
        warn_if_seeded(self)
        with spending(self, loss) as reservation:
            # remove attributes of an earlier fit
            for name in ("estimator_", "classes_"):
                self.__dict__.pop(name, None)
            X, y = self._records(X, y)
            model = self._prepared()
            # its noise is not watched: from now on a failing fit is charged in full
            reservation.begin()
            self._quietly("fit", model.fit, *self._with_public(X, y))
            _forget_seeds(model)
            self.estimator_ = model
            self.privacy_ = loss
            reservation.commit(loss)
        return self

    def declared_loss(self, epsilon: float | None = None) -> PrivacyLoss:
        """Return the loss of a fit with these parameters, or refuse them; no record is needed.

        Parameters
        ----------
        epsilon : float, default=None
            Privacy loss of the fit; None is the estimator's.

        Returns
        -------
        PrivacyLoss

        Raises
        ------
        CertificateError, TypeError, ValueError
            As `fit` does before it reads a record.

        Warns
        -----
        PrivacyLeakWarning
            If labels will be learned from `y`.
        """
        self._check_parameters()
        self._warn_of_labels()
        # convert: arithmetic in a low-precision type would weaken the noise
        epsilon = float(self.epsilon if epsilon is None else check_epsilon(epsilon))
        noisy, twice, (own, _) = epsilon != math.inf, "", self._part(epsilon)
        if self._is_converted():
            twice = f": epsilon {own:.6g} for {ADJACENCIES[1]}, twice"
        return PrivacyLoss(
            epsilon,
            float(self.delta) if noisy else 0.0,
            seeded=noisy and is_seeded(self.random_state),
            label=f"{self.account}{twice}",
        )

    @property
    def account(self) -> str:
        """str : The model, and the library whose account states its privacy."""
        model = _in_pipelines(self.estimator)[0]
        return f"{type(model).__name__}, by the account of {_author(model)}"

    def _part(self, epsilon):
        """Return the epsilon and delta for the model: theorem 1 of the page."""
        delta = float(self.delta)
        if not self._is_converted() or epsilon == math.inf:
            return epsilon, delta
        return epsilon / 2, delta * float(expit(-epsilon / 2)) * (1 - ROUNDING)

    def _is_converted(self):
        return Adjacency(self.adjacency) != Adjacency.REPLACE_RECORD

    def _check_parameters(self):
        check_epsilon(self.epsilon)
        check_estimator(self.estimator)
        refuse_inner_ledger(self.estimator, type(self).__name__)
        check_random_state(self.random_state)
        check_classes(self.classes)
        name = type(self.estimator).__name__
        check_choice(
            "adjacency", self.adjacency, ADJACENCIES, why="no conversion to one record is known for it"
        )
        if self.conversion is not None:
            check_choice(
                "conversion", self.conversion, (REMOVE_AND_ADD,), why="no other conversion is proved"
            )
        if self._is_converted() and self.conversion is None:
            raise CertificateError(
                f"{name} is declared for {str(self.adjacency)!r}, and to replace one record takes two "
                f"steps of that kind; write conversion={REMOVE_AND_ADD!r}, which gives the model half "
                "of epsilon, if its account holds for numbers of records that differ by one."
            )
        check_number(
            "delta",
            self.delta,
            low_included=True,
            high=1.0,
            why="it is the probability with which the bound may fail",
            instead="write 0.0, or 1e-6",
        )
        if (self.delta > 0) != (self.delta_parameter is not None):
            raise CertificateError(
                f"delta={self.delta!r} does not go with delta_parameter={self.delta_parameter!r}, so it "
                f"is not known what {name} spends; give both, or neither for a model without a delta."
            )
        check_pipeline_privacy(self.estimator)
        self._refuse_private_steps()
        self._check_names(name, self.estimator.get_params())
        pair = self.public_records
        if pair is not None and not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(
                f"public_records must be a pair (X, y), not a {type(pair).__name__}, because rows and "
                "labels join those of the fit; write (X, y), or (X, None)."
            )

    def _check_names(self, name, params):
        """Check the names of the estimator's parameters that are given, and what these hold."""
        for what in ("epsilon_parameter", "delta_parameter", "classes_parameter"):
            self._check_name(what, getattr(self, what), params, optional=what != "epsilon_parameter")
        self._refuse_names_of_parts()
        if isinstance(self.public_parameters, str):
            raise TypeError(
                f"public_parameters={self.public_parameters!r} is one text, of which each letter would "
                f"be a name; write public_parameters=[{self.public_parameters!r}]."
            )
        for public in self.public_parameters:
            self._check_name("public_parameters", public, params)
        missing = [public for public in self.public_parameters if params[public] is None]
        if missing:
            raise ValueError(
                f"{name} reads {' and '.join(missing)} from the records if nothing is given, which its "
                f"account does not cover; write {', '.join(f'{public}=...' for public in missing)} from "
                "knowledge of the field."
            )
        for seed in _seeds(params):
            if params[seed] is not None:
                raise ValueError(
                    f"{seed} of {name} is given, and whoever knows it can remove the noise; leave it at "
                    "None, or give random_state to the PrivateModel, which says so in privacy_."
                )

    def _check_name(self, what, name, params, optional=False):
        if (name is None and optional) or (isinstance(name, str) and name in params):
            return
        raise ValueError(
            f"{what}={name!r} is no parameter of {type(self.estimator).__name__}, so the model would "
            "not be given what is stated; write a name that its get_params() has."
        )

    def _refuse_private_steps(self):
        steps = sorted({type(part).__name__ for part in private_parts(self.estimator)})
        if steps:
            raise CertificateError(
                f"estimator has steps that learn privately ({', '.join(steps)}), whose losses are not "
                "among what is stated; write them in a Pipeline before the PrivateModel."
            )

    def _refuse_names_of_parts(self):
        model, prefix = _in_pipelines(self.estimator)
        for what in ("epsilon_parameter", "delta_parameter"):
            name = getattr(self, what)
            if name is None or name.startswith(prefix) and "__" not in name.removeprefix(prefix):
                continue
            raise CertificateError(
                f"{what}={name!r} is of a part of {type(model).__name__} or of a step before it, which "
                "says nothing of what the whole spends: a part may be trained many times; declare the "
                "part as a PrivateModel of its own."
            )

    def _warn_of_labels(self):
        if not is_classifier(self.estimator) or self.epsilon == math.inf:
            return
        warn_if_labels_learned(self.classes, type(self).__name__)
        known = self.classes_parameter is not None
        if self.classes is None or known:
            return
        given = () if self.public_records is None else np.unique(self.public_records[1])
        if not np.isin(self.classes, given).all():
            warn_caller(
                f"{type(self.estimator).__name__} learns from its records which labels there are, which "
                "the privacy loss does not cover; write classes_parameter= if it has a parameter for "
                "them, or public_records=(X, y) with a row for each.",
                PrivacyLeakWarning,
            )

    def _records(self, X, y):
        """Return the records in memory, the labels checked."""
        owner = type(self).__name__
        X, y = align(X, y)
        if is_lazy(X):
            X = gathered(X, owner)
        self._refuse_gaps(X)
        if is_classifier(self.estimator) or is_regressor(self.estimator) or y is not None:
            y = one_label_a_row(y, owner)
            unquoted(check_consistent_length, X, y, what="X or y")
        if is_regressor(self.estimator):
            y = as_targets(owner, y)
        if is_classifier(self.estimator):
            self.classes_ = public_classes(y, self.classes, owner)
            if len(self.classes_) > 2 and not get_tags(self.estimator).classifier_tags.multi_class:
                raise ValueError(
                    f"Only binary classification is supported by {type(self.estimator).__name__}; give "
                    "two labels in classes=[...]."
                )
        return X, y

    def _refuse_gaps(self, X):
        """Refuse NaN and infinity, unless the model is declared to take gaps.

        Its account need not hold for them. What lists and texts hold, the model itself checks.
        """
        tags = get_tags(self.estimator)
        if isinstance(X, np.ndarray) or sparse.issparse(X):
            parts = [X]
        else:
            parts = map(plain_values, list_columns(X)) if hasattr(X, "columns") else []
            parts = [part for part in parts if part.dtype != object]
        for part in parts if not tags.no_validation else []:
            unquoted(check_finite, part, "X", tags.input_tags.allow_nan)

    def _prepared(self):
        """Return a clone of the model with its epsilon, delta, labels and seeds."""
        epsilon, delta = self._part(float(self.epsilon))
        given = {self.epsilon_parameter: epsilon}
        if self.delta_parameter is not None:
            given[self.delta_parameter] = delta
        if self.classes_parameter is not None:
            given[self.classes_parameter] = self.classes_
        model = clone(self.estimator)
        if is_seeded(self.random_state):
            stream = root_stream(self.random_state)
            given |= {name: stream.child(name).integer() for name in _seeds(model.get_params())}
        return model.set_params(**given)

    def _with_public(self, X, y):
        if self.public_records is None:
            return X, y
        rows, labels = self.public_records
        if sparse.issparse(X):
            X = sparse.vstack([X, rows], format="csr")
        elif hasattr(X, "columns"):
            pd = imported_pandas("public_records of a table", "give X as an array")
            X = pd.concat([X, rows], ignore_index=True)
        else:
            X = np.concatenate([np.asarray(X), np.asarray(rows)])
        return X, y if y is None else np.concatenate([y, np.asarray(labels)])

    def _quietly(self, name, method, *args):
        """Call the model with output and errors suppressed; its privacy warnings are raised."""
        leaks, failed, seeded = [], None, is_seeded(self.random_state)

        def hear(message, category, *args, **kwargs):
            said = f"{category.__name__} {message}"
            if "privacy" in said.lower() and not (seeded and SEEDS in said):
                leaks.append(category.__name__)
                raise PrivacyLeakError

        with warnings.catch_warnings(), usual_settings():
            warnings.simplefilter("always")
            warnings.showwarning = hear
            try:
                found = method(*args)
            except Exception as error:
                failed, said = type(error), str(error)
        owner = type(self.estimator).__name__
        # outside the except block, so that the original error is not attached as __context__
        if leaks:
            params = self.estimator.get_params()
            none = [each for each in params if params[each] is None and each not in _seeds(params)]
            raise PrivacyLeakError(
                f"{owner}.{name} warns of a leak ({leaks[0]}), so its own account does not hold; give "
                "what it reads from the records as parameters of the model: it has None for "
                f"{', '.join(none) or 'none of them'}."
            )
        if failed is not None:
            kind = TypeError if issubclass(failed, TypeError) else ValueError
            if HARMLESS.match(said):
                raise kind(said)
            raise kind(
                f"{owner}.{name} failed ({failed.__name__}), and its message is not shown, as it may "
                "quote records; try it on invented records, without PrivateModel, to see it."
            )
        return found

    def _predicted(self, name, X):
        check_is_fitted(self)
        return as_fitted(self)._quietly(name, getattr(self.estimator_, name), X)

    @_inner_has("predict")
    def predict(self, X: MatrixLike) -> Array:
        """Return the predictions of the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._predicted("predict", X)

    @_inner_has("predict_proba")
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the model's probabilities of the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._predicted("predict_proba", X)

    @_inner_has("predict_proba", "decision_function")
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return confidence scores, which scores of margins such as "brier" use.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log-odds of the model's probabilities; its own decision function if it has none.
        """
        if not hasattr(vars(self).get("estimator_", self.estimator), "predict_proba"):
            return self._predicted("decision_function", X)
        with np.errstate(all="ignore"):
            odds = logit(np.asarray(self._predicted("predict_proba", X), dtype=np.float64))
        # finite log odds for probabilities 0 and 1
        odds = np.clip(odds, -50.0, 50.0)
        return odds[:, 1] if odds.shape[1:] == (2,) else odds

    @_inner_has("score")
    @warns_of_training_records
    def score(self, X: MatrixLike, y: npt.ArrayLike | None = None) -> float:
        """Return the model's own score, as its library defines it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records that took no part in training.
        y : array-like of shape (n_samples,), default=None

        Returns
        -------
        float

        Warns
        -----
        PrivacyLeakWarning
            If `X` is what the model was trained on, or a part of it.
        """
        check_is_fitted(self)
        return as_fitted(self)._quietly("score", self.estimator_.score, X, y)

    @property
    def default_scoring(self) -> str:
        """str : Score by which a search without `scoring` compares classifiers."""
        if is_classifier(self.estimator) and hasattr(self, "decision_function"):
            return "brier"
        raise AttributeError(f"{type(self.estimator).__name__} has no default_scoring.")

    @property
    def n_features_in_(self) -> int:
        """int : Number of features of the fitted model."""
        return self._of_fitted("n_features_in_")

    @property
    def feature_names_in_(self) -> Array:
        """ndarray of str : Feature names of the fitted model."""
        return self._of_fitted("feature_names_in_")

    def _of_fitted(self, name):
        if "estimator_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return getattr(self.estimator_, name)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in (
            "estimator_type",
            "classifier_tags",
            "regressor_tags",
            "target_tags",
            "input_tags",
        ):
            setattr(tags, name, getattr(inner, name))
        return tags


def _seeds(params):
    """Return the names of a model's random states."""
    return [name for name in params if name.rpartition("__")[2] == SEEDS]


def _forget_seeds(fitted):
    """Remove the seeds from a fitted model and all models in it, which would reproduce its noise."""
    waiting, seen = [fitted], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple)):
            waiting.extend(part)
        elif isinstance(part, np.ndarray):
            waiting.extend(part.flat if part.dtype == object else ())
        elif hasattr(part, "get_params") and not isinstance(part, type):
            for name, value in list(getattr(part, "__dict__", {}).items()):
                if name.strip("_") == SEEDS:
                    setattr(part, name, None)
                else:
                    waiting.append(value)


def _in_pipelines(estimator):
    """Return the model at the end of Pipelines, and the prefix of its parameters."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return estimator, prefix


def _author(estimator):
    """Return the library of a model, with its version."""
    name = type(estimator).__module__.partition(".")[0]
    version = getattr(sys.modules.get(name), "__version__", None)
    return f"{name} {version}" if isinstance(version, str) else "its author"

"""Methods that searches share, and those that a fitted search passes on to the chosen estimator."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

import numpy.typing as npt
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..preprocessing.plain_pipelines import to_sklearn
from ..records.training import warns_of_training_records
from ..rows import as_lazy, is_lazy
from ..utils.parameters import as_fitted
from ..utils.type_aliases import Array, MatrixLike
from .private_steps import thaw
from .row_steps import as_model_sees
from .sklearn_forms import scoring_that_chooses

Delegated: TypeAlias = Callable[[MatrixLike], Any]


def _require_refit(search, attr):
    if not search.refit:  # an AttributeError: hasattr() must answer False
        raise AttributeError(
            f"This {type(search).__name__} instance was initialized with "
            f"`refit=False`. {attr} is available only after refitting on the best "
            "parameters. You can refit an estimator manually using the "
            "`best_params_` attribute"
        )


def _estimator_has(attr):
    """Is ``attr`` there on the chosen estimator or, before fit, on the given one?"""

    def check(self):
        _require_refit(self, attr)
        # getattr, not hasattr: the inner AttributeError becomes the cause.
        getattr(getattr(self, "best_estimator_", self.estimator), attr)
        return True

    return check


def _delegated(name, doc):
    """A method ``name(X)`` that calls ``best_estimator_.name(X)``."""

    def method(self: Any, X: MatrixLike) -> Any:
        check_is_fitted(self)
        model, rows = self.best_estimator_, X
        if name != "inverse_transform":
            model, rows = as_model_sees(model, X)
        try:
            return getattr(model, name)(rows)
        except ValueError as error:
            # Array API: the inner estimator names itself; name the method that the user called
            if "must use the same namespace" not in str(error):
                raise
            inner = re.escape(type(self.best_estimator_).__name__)
            outer = f"{type(self).__name__}.{name}()"
            message = re.sub(rf"{inner}\.\w+\(\)", outer, str(error))
            raise ValueError(message) from None

    method.__name__ = name
    # for tracebacks, and for the signature checks of scikit-learn
    method.__qualname__ = f"SearchDelegationMixin.{name}"
    method.__doc__ = f"""{doc}

        Only available if ``refit`` is not False and the estimator has ``{name}``.

        Parameters
        ----------
        X : indexable, length n_samples
            Must fulfil the input assumptions of the underlying estimator.

        Returns
        -------
        result : object
            What ``best_estimator_.{name}(X)`` returns.
        """
    return available_if(_estimator_has(name))(method)


class SearchDelegationMixin:
    """Prediction methods, score, tags and metadata routing of a search.

    They need ``estimator``, ``scoring``, ``refit`` and ``cv`` (parameters) and, once fitted,
    ``best_estimator_``, ``scorer_`` and ``multimetric_``, with privacy or without. It comes before
    ``BaseEstimator`` in the bases, or BaseEstimator's own tags and routing win.
    """

    predict: Delegated = _delegated("predict", "Predict with the chosen estimator.")
    predict_proba: Delegated = _delegated("predict_proba", "Class probabilities.")
    predict_log_proba: Delegated = _delegated("predict_log_proba", "Class log-probabilities.")
    decision_function: Delegated = _delegated("decision_function", "Decision function.")
    score_samples: Delegated = _delegated("score_samples", "Score of each sample.")
    transform: Delegated = _delegated("transform", "Transform with the chosen estimator.")
    inverse_transform: Delegated = _delegated("inverse_transform", "Undo ``transform``.")

    @warns_of_training_records
    def score(self: Any, X: MatrixLike, y: npt.ArrayLike | None = None, **params: Any) -> float:
        """Score the chosen estimator on the given data.

        Uses ``scoring`` where given, else ``best_estimator_.score``, as GridSearchCV does. Of names
        that scikit-learn has, too, the score is scikit-learn's, without bounds on errors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test samples, which took no part in the search.

        y : array-like of shape (n_samples,) or (n_samples, n_output), default=None
            Their targets; None for unsupervised learning.

        **params : dict
            Metadata for the scorer, only with ``enable_metadata_routing=True``.

        Returns
        -------
        score : float
            The score.

        Warns
        -----
        PrivacyLeakWarning
            If `X` is what the search was fitted on, or a part of it.
        """
        _require_refit(self, "score")
        check_is_fitted(self)
        if get_config()["enable_metadata_routing"]:
            score_params = process_routing(self, "score", **params).scorer["score"]
        elif params:
            raise ValueError(
                f"Passing extra keyword arguments to {type(self).__name__}.score is "
                "only supported if enable_metadata_routing=True, which you can set "
                "using `sklearn.set_config`. See the User Guide "
                "<https://scikit-learn.org/stable/metadata_routing.html> for more "
                f"details. Extra parameters passed are: {set(params)}"
            )
        else:
            score_params = {}

        scorer = self._score_function(X)
        model, X = as_model_sees(self.best_estimator_, X)
        if isinstance(scorer, dict):  # scoring was a list, tuple or dict
            return scorer[self.refit](model, X, y, **score_params)
        score = scorer(model, X, y, **score_params)
        # A single callable may return a dict of scores.
        return score[self.refit] if self.multimetric_ else score

    def _score_function(self: Any, X: Any) -> Any:
        """Return what GridSearchCV computes scores with, whether the choice had noise or not."""
        if "scoring" not in self.get_params(deep=False) or "best_score_" in vars(self):
            return self.scorer_
        scoring = scoring_that_chooses(self)
        if scoring is None and hasattr(self.best_estimator_, "score"):
            return check_scoring(self.best_estimator_)
        in_memory = not is_lazy(as_lazy(X))
        if isinstance(scoring, str) and in_memory and scoring in get_scorer_names():
            return get_scorer(scoring)
        return self.scorer_

    def to_sklearn(self: Any) -> Any:
        """Return an object of scikit-learn alone that is equal to the chosen estimator.

        Returns
        -------
        estimator
            As :func:`dpselect.export.to_sklearn` makes it.
        """
        _require_refit(self, "to_sklearn")
        check_is_fitted(self)
        return to_sklearn(self.best_estimator_, as_fitted(self).trusted_steps)

    @property
    def n_features_in_(self: Any) -> int:
        """Number of features seen during fit, only if ``refit`` is not False."""
        try:
            check_is_fitted(self)
        except NotFittedError as error:  # hasattr() must answer False
            raise AttributeError(
                f"{type(self).__name__} object has no n_features_in_ attribute."
            ) from error
        return self.best_estimator_.n_features_in_

    @property
    def classes_(self: Any) -> Array:
        """Class labels, only if ``refit`` is not False and for a classifier."""
        _estimator_has("classes_")(self)
        return self.best_estimator_.classes_

    def _forget(self):
        # what an earlier fit left, exact scores of epsilon=inf among it, must not outlive it
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            del vars(self)[name]

    def _publish(self, estimator, **released):
        """Set what is released; the estimator's private steps are put in place of their frozen forms."""
        if estimator is not None:
            self.best_estimator_ = thaw(estimator)
            if hasattr(estimator, "feature_names_in_"):
                self.feature_names_in_ = estimator.feature_names_in_
        vars(self).update(released, multimetric_=False)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "array_api_support"):
            setattr(tags, name, deepcopy(getattr(inner, name)))
        # lets an outer cross-validation see 'precomputed' kernels and distances
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def get_metadata_routing(self: Any) -> MetadataRouter:
        """Metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            Where ``fit`` and ``score`` send the metadata they are given.
        """
        # a callable goes in as it is: check_scoring refuses plain metric functions, a search need not
        given = callable(self.scoring)
        scorer = self.scoring if given else check_scoring(self.estimator, self.scoring)

        def called_by(**callers):
            mapping = MethodMapping()
            for caller, callee in callers.items():
                mapping.add(caller=caller, callee=callee)
            return mapping

        return (
            MetadataRouter(owner=self)
            .add(estimator=self.estimator, method_mapping=called_by(fit="fit"))
            .add(scorer=scorer, method_mapping=called_by(score="score", fit="score"))
            .add(splitter=self.cv, method_mapping=called_by(fit="split"))
        )

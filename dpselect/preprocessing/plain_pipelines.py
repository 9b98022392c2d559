"""Convert objects of this library, and Pipelines with some, to scikit-learn alone."""

from collections.abc import Collection
from copy import copy, deepcopy
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..base.capabilities import HasPlainForm
from ..base.estimator import PrivateDensity
from ..utils.type_aliases import Estimator
from .pipeline_check import check_pipeline_privacy, inner_parts


def to_sklearn(estimator: Estimator, trusted_steps: Collection[str | type] = ()) -> Any:
    """Return an equal object of scikit-learn alone, which runs without dpselect.

    Its predictions are those of `estimator`, up to rounding. It states no loss, has no ledger and
    warns of nothing, and its `fit` is not private.

    Parameters
    ----------
    estimator : estimator
        Fitted: a model, scaler, encoder or search of dpselect, what :func:`~dpselect.calibrated` returns
        for two classes, or a Pipeline with such, all of whose other steps treat each row by itself
        (:func:`~dpselect.preprocessing.check_pipeline_privacy`).
    trusted_steps : collection of str or class, default=()
        Steps of your own that treat each row by itself.

    Returns
    -------
    estimator
        Of scikit-learn 1.6 or later: a Pipeline for most. It holds what was released and public
        numbers.

    Raises
    ------
    NotFittedError
        If it is not fitted.
    TypeError
        If there is nothing in scikit-learn that is equal.
    ValueError
        If a step learned from the data and did not pay for it, or a category is written as a gap is.

    Notes
    -----
    Equal up to an error of 1e-12, in units of the largest term, for rows that both take. These
    scikit-learn refuses and dpselect takes: rows beyond memory, entries above 1e150, text for a gap
    among numbers. A category may have one blank at either end, and a number that is one be written as 1,
    1.0, True or "1"; what is written otherwise, as "01", is not listed. Text "None" is a gap. Logarithms
    of probabilities near 0 are less exact.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from dpselect import DPLogisticRegression
    >>> from dpselect.export import to_sklearn
    >>> from dpselect.preprocessing import BoundedScaler
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(0, 10, size=(1000, 2)), rng.integers(2, size=1000)
    >>> model = make_pipeline(BoundedScaler((0, 10)), DPLogisticRegression(classes=[0, 1])).fit(X, y)
    >>> plain = to_sklearn(model)
    >>> bool(np.allclose(plain.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12))
    True
    """
    if isinstance(estimator, HasPlainForm):
        return estimator.to_sklearn()
    parts = inner_parts(estimator)
    if isinstance(estimator, Pipeline):
        check_pipeline_privacy(estimator, trusted_steps)
        _refuse_without(estimator.steps[-1][1])
    elif parts is not None:
        check_pipeline_privacy(Pipeline([("step", estimator), ("end", "passthrough")]), trusted_steps)
    else:
        _refuse_without(estimator)
    check_is_fitted(estimator)
    return plain_form(estimator)


def _refuse_without(estimator):
    if isinstance(estimator, PrivateDensity):
        raise TypeError(
            f"{type(estimator).__name__} has no equal in scikit-learn, which has no histograms; write "
            "to_frame(), a table of all that was released, or save the model with skops."
        )
    named = isinstance(estimator, (HasPlainForm, Pipeline)) or isinstance(estimator, str | None)
    if not named:
        raise TypeError(
            f"{type(estimator).__name__} is no model or step of dpselect that has an equal one in "
            "scikit-learn, and what it learned from the records is not known to be paid for; give a "
            "fitted model, search or Pipeline of dpselect's, or keep dpselect where it predicts."
        )


def plain_form(part):
    """Convert one part to scikit-learn, with all parts of a container."""
    if part is None or isinstance(part, str):
        return part
    if isinstance(part, HasPlainForm):
        return part.to_sklearn()
    if isinstance(part, FrozenEstimator):
        return FrozenEstimator(plain_form(part.estimator))
    if inner_parts(part) is None:
        return deepcopy(part)
    duplicate = copy(part)
    if isinstance(duplicate, ColumnTransformer):
        fitted = [(name, plain_form(step), columns) for name, step, columns in part.transformers_]
        by_name = {name: step for name, step, _ in fitted}
        # the given transformers are stateless, and need not be fitted
        duplicate.transformers = [
            (name, by_name[name], columns) for name, _, columns in part.transformers
        ]
        duplicate.remainder = by_name.get("remainder", "drop")
        duplicate.transformers_ = fitted
    elif isinstance(duplicate, Pipeline):
        duplicate.steps, duplicate.memory = [(name, plain_form(step)) for name, step in part.steps], None
    else:
        duplicate.transformer_list = [(name, plain_form(step)) for name, step in part.transformer_list]
    return duplicate

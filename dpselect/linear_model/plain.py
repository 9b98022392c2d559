"""Linear models of scikit-learn that predict as those of this library do."""

from copy import deepcopy

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ..preprocessing.plain_rows import clipping, having

# of a fitted model, and of one of scikit-learn
SHARED = ("coef_", "intercept_", "classes_")


def plain_model(model, bounds, last):
    """Return a Pipeline that scales rows down to `bounds`, and predicts by `last`.

    `last` is a linear model of scikit-learn, or has one as its `regressor_`.
    """
    n, names = model.n_features_in_, getattr(model, "feature_names_in_", None)
    released = {name: deepcopy(vars(model)[name]) for name in SHARED if name in vars(model)}
    having(getattr(last, "regressor_", last), **released, n_features_in_=n)
    return Pipeline([*clipping(bounds, n, names).steps, ("model", last)])


def logistic_predictor(n_classes):
    """Return a model whose probabilities are one-vs-rest, divided by their sum."""
    # of more than two classes, LogisticRegression's are a softmax
    return LogisticRegression() if n_classes == 2 else SGDClassifier(loss="log_loss")


def exponential_predictor(n_features, least, bound):
    """Return a regressor that predicts exp(z), for z of at least `least`, and no more than `bound`."""
    limit = {"a_min": least, "a_max": float(np.log(bound))}
    rates = make_pipeline(
        FunctionTransformer(np.log, np.exp, check_inverse=False),
        FunctionTransformer(inverse_func=np.clip, inv_kw_args=limit, check_inverse=False),
    )
    regressor = TransformedTargetRegressor(LinearRegression(), transformer=rates, check_inverse=False)
    return regressor.fit(np.zeros((2, n_features)), np.ones(2))  # dummy rows
